"""Accepted people and their outcomes: one slot each, filled in any order, all or none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secondlook.core.coverage import SummedAcceptance
from secondlook.core.strategies import Uniform
from secondlook.errors import InputError, UnknownIdError
from secondlook.methods.algorithm1.policy_log import LoggedPolicy, PolicyLog
from secondlook.people.ids import as_ids, id_bits
from secondlook.people.intake import Batch
from secondlook.people.likelihoods import ConstantLikelihood
from secondlook.people.observed import PENDING, GrowingArray, ObservedRows
from secondlook.people.store import Memory

COLUMNS = ("group", "outcome", "round", "past", "own", "coverage", "walked")


def append(rows: ObservedRows, X: Any, first: int = 0) -> list[int]:
    """Write people down whose group follows their number; nobody has an outcome yet."""
    n = len(X)
    pending = np.full(n, PENDING, np.int8)
    return list(rows.append(X, np.arange(first, first + n) % 3, pending, round=1 + first))


def batch_of(ids: Any, X: Any = None) -> Batch:
    names = as_ids(ids, len(ids))
    bits = id_bits(names)
    features = bits[:, None].astype(float) if X is None else X
    return Batch(features, (bits % np.uint64(3)).astype(np.intp), names, bits, "numpy")


def observe(memory: Memory, ids: Any, outcomes: Any) -> int:
    names = as_ids(ids, len(ids))
    changed, _ = memory.observe(names, id_bits(names), np.array(outcomes, np.int8))
    return np.unique(names[changed]).size


def content(memory: Memory) -> list[np.ndarray]:
    """Return a copy of everything written down."""
    folds = [
        np.array(part) for fold in memory.folds for part in (fold.X, *map(fold.column, COLUMNS))
    ]
    return [*folds, *(column for run in memory.index._runs for column in run)]


def same(left: list[np.ndarray], right: list[np.ndarray]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))


@pytest.fixture
def memory() -> Memory:
    """Ten people, of whom those with even ids were accepted; 0 was good and 2 was bad."""
    memory = Memory(seed=4)
    memory.record(batch_of(range(10)), np.arange(10) % 2 == 0, round=1)
    observe(memory, [0, 2], [1, 0])
    return memory


@settings(deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=12))
def test_rows_grow_and_keep_their_positions(sizes):
    rows, first, rounds = ObservedRows(), 0, []
    for n in sizes:
        X = np.arange(first, first + n)[:, None] * [1.0, -1.0]
        assert append(rows, X, first) == list(range(first, first + n))
        rounds += [1 + first] * n
        first += n
        assert len(rows) == rows.X.shape[0] == first
    everybody = np.arange(first)
    assert np.array_equal(rows.X, everybody[:, None] * [1.0, -1.0])
    assert np.array_equal(rows.column("group"), everybody % 3)
    assert rows.column("round").tolist() == rounds
    assert not rows.known_outcomes().any()
    assert all(rows.column(name).shape == (first,) for name in COLUMNS)


def test_an_empty_record():
    assert len(ObservedRows()) == 0


def test_columns_are_views_and_the_callers_arrays_are_copied():
    rows, X, group = ObservedRows(), np.zeros((2, 1)), np.zeros(2, np.intp)
    rows.append(X, group, np.full(2, PENDING, np.int8), round=1)
    rows.column("outcome")[1] = 1
    X[:], group[:] = 9, 9
    assert rows.known_outcomes().tolist() == [False, True]
    assert not rows.X.any()
    assert not rows.column("group").any()


def test_frames_are_joined_when_they_are_read():
    rows = ObservedRows()
    for first in (0, 2):
        frame = pd.DataFrame({"city": ["x", "y"], "age": [first, first + 1]})
        assert append(rows, frame, first) == [first, first + 1]
    assert rows.X["age"].tolist() == [0, 1, 2, 3]
    assert rows.X["city"].tolist() == ["x", "y", "x", "y"]
    assert len(rows) == 4


def quiet(n_people: int, threshold: float) -> LoggedPolicy:
    one, none = np.ones(1), np.zeros(1)
    return LoggedPolicy(1, none + threshold, Uniform(), one, none, one, n_people)


def explores(n_people: int, scale: float) -> LoggedPolicy:
    one = np.ones(1)
    return LoggedPolicy(1, one, Uniform(), one, 2 * scale * one, one, n_people)


def test_acceptance_is_the_mean_over_people_decided_on():
    log = PolicyLog(ConstantLikelihood(0.25), n_history=40)
    log.add_likelihood(ConstantLikelihood(0.6))
    rows, rule = ObservedRows(), SummedAcceptance(0.3, reference_size=40)
    rows.append(np.zeros((2, 1)), np.zeros(2, np.intp), np.array([1, PENDING], np.int8), round=1)

    log.append(explores(20, 0.5))  # w = .25 is not above .3: explored with probability ½
    rows.catch_up(log, rule)
    assert rows.column("own").tolist() == [10, 0]  # those without outcome are left for later
    assert rows.column("coverage").tolist() == [0.5, 0]
    log.append(quiet(10, threshold=0.5))  # known now, and accepted
    log.append(quiet(30, threshold=0.7))  # known, and rejected
    rows.catch_up(log, rule)
    assert rows.column("own").tolist() == [10 + 10, 0]
    assert rows.column("walked")[0] == 3
    assert rows.known_people(log, rule).tolist() == [True, False]

    # Σ n_i·π_i = 20·½ + 10·1 + 30·0 of 60 people; with the history 40·¼ of 40 more.
    assert rows.acceptance(log, own_rounds_only=True)[0] == pytest.approx(20 / 60)
    assert rows.acceptance(log, own_rounds_only=False)[0] == pytest.approx(30 / 100)

    rows.column("outcome")[1] = 0  # a late outcome: the same rounds are walked at once
    rows.catch_up(log, rule)
    assert rows.column("own").tolist() == [20, 20]
    assert rows.column("past").tolist() == [0.25, 0.25]
    assert rows.column("coverage")[1] == rows.column("coverage")[0] == pytest.approx(0.75)


def test_who_is_accepted_gets_a_slot(memory):
    assert sum(map(len, memory.folds)) == 5
    assert memory.n_outcomes == 2
    for number, fold in enumerate(memory.folds):
        ids = fold.X[:, 0].astype(np.uint64)
        assert np.all(ids % 2 == 0)
        assert np.array_equal(fold.column("group"), ids % 3)
        assert np.all(fold.column("round") == 1)
        assert np.array_equal(memory.index.find(ids), 2 * np.arange(ids.size) + number)
    rejected = memory.index.find(np.array([1, 3, 5, 7, 9], np.uint64))
    assert rejected.tolist() == [-1] * 5


def test_folds_are_halves_that_depend_on_seed_and_id_only():
    folds = []
    for seed, n_batches in ((1, 1), (1, 7), (2, 1)):
        memory = Memory(seed)
        for ids in np.array_split(np.arange(2000), n_batches):
            memory.record(batch_of(ids), np.ones(ids.size, bool), round=1)
        folds.append(set(memory.folds[0].X[:, 0].tolist()))
    assert folds[0] == folds[1] != folds[2]
    assert abs(len(folds[0]) - 1000) < 5 * np.sqrt(500)  # five standard deviations
    assert abs(len(folds[0] & folds[2]) - 500) < 5 * np.sqrt(375)


@settings(deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from(["integers", "strings"]))
def test_order_of_rows_and_of_outcomes_does_not_matter(random, kind):
    names = np.arange(24) if kind == "integers" else np.array([f"p{i}" for i in range(24)])
    accepted, good = np.arange(24) % 3 > 0, np.arange(24) % 4 > 0
    plain, mixed = Memory(0), Memory(0)
    for half in (np.arange(12), np.arange(12, 24)):
        plain.record(batch_of(names[half]), accepted[half], round=1)
        shuffled = np.array(random.sample(half.tolist(), 12))
        mixed.record(batch_of(names[shuffled]), accepted[shuffled], round=1)
    assert observe(plain, names[accepted], good[accepted]) == 16

    queue = np.array(random.sample(np.flatnonzero(accepted).tolist(), 16))
    cuts = sorted(random.sample(range(1, 16), 4))
    parts = np.split(queue, cuts)
    assert [observe(mixed, names[part], good[part]) for part in parts] == [p.size for p in parts]
    assert same(content(plain)[:-2], content(mixed)[:-2])
    assert np.array_equal(plain.index.find(id_bits(names)), mixed.index.find(id_bits(names)))


def test_an_outcome_may_come_again(memory):
    before = content(memory)
    assert observe(memory, [0, 0, 2], [1, 1, 0]) == 0
    assert same(content(memory), before)
    assert observe(memory, [0, 4, 4], [1, 1, 1]) == 1


@pytest.mark.parametrize(
    ("ids", "outcomes", "error", "text"),
    [
        (
            [4, 99],
            [1, 1],
            UnknownIdError,
            "never decided on, .*first 99; nothing was",
        ),
        (
            [4, 3],
            [1, 1],
            UnknownIdError,
            "1 of 2 ids were rejected, first 3, .* remove them",
        ),
        ([4, 6, 4], [1, 1, 0], InputError, "contradict each other for id 4; give one per id"),
        ([4, 6, 2], [1, 1, 1], InputError, "outcome of id 2 is recorded already and differs"),
        ([8, 0], [1, 0], InputError, "outcome of id 0 is recorded already .* nothing was changed"),
    ],
)
def test_wrong_outcomes_change_nothing(memory, ids, outcomes, error, text):
    before = content(memory)
    with pytest.raises(error, match=text):
        observe(memory, ids, outcomes)
    assert same(content(memory), before)


def test_ids_are_unique_for_ever(memory):
    memory.check_new(batch_of([10, 11]))
    for ids, name in (([20, 4], 4), ([3], 3)):  # accepted, rejected
        with pytest.raises(InputError, match=f"decided on before, first {name}; .* a new id"):
            memory.check_new(batch_of(ids))
    named = Memory(0)
    named.record(batch_of(["a", "b"]), np.array([True, False]), round=1)
    with pytest.raises(InputError, match="decided on before, first 'b'"):
        named.check_new(batch_of(["c", "b"]))


def test_a_round_may_accept_nobody_or_everybody(memory):
    memory.record(batch_of([10, 11]), np.zeros(2, bool), round=2)
    memory.record(batch_of([12, 13]), np.ones(2, bool), round=3)
    assert sum(map(len, memory.folds)) == 7
    assert observe(memory, [13, 12], [0, 1]) == 2
    rounds = np.concatenate([fold.column("round") for fold in memory.folds])
    assert sorted(rounds.tolist()) == [1] * 5 + [3] * 2


def test_a_history_comes_with_its_outcomes():
    memory, ids = Memory(0), np.arange(6)
    accepted = ids > 1
    memory.record(batch_of(ids), accepted, round=0, outcome=(ids[accepted] % 2).astype(np.int8))
    assert memory.n_outcomes == 4
    for fold in memory.folds:
        assert np.array_equal(fold.column("outcome"), fold.X[:, 0] % 2)
        assert not fold.column("round").any()
    assert observe(memory, [2, 3], [0, 1]) == 0


def test_features_keep_their_precision():
    memory = Memory(0)
    for first in (0, 50):
        ids = np.arange(first, first + 50)
        X = ids[:, None].astype(np.float32)
        memory.record(batch_of(ids, X), np.ones(50, bool), round=1)
    assert all(fold.X.dtype == np.float32 for fold in memory.folds)


def test_rounds_logged_after_somebody_was_brought_up_to_date_count_too():
    """They may not be merged into a policy that is in somebody's sums already."""
    rule, log, rows = SummedAcceptance(), PolicyLog(ConstantLikelihood(1.0), 10), ObservedRows()
    rows.append(np.zeros((1, 1)), np.zeros(1, np.intp), np.ones(1, np.int8), 0)
    assert log.add_likelihood(ConstantLikelihood(1.0)) == 1
    for n_people in (10, 30, 20):
        log.append(quiet(n_people, 0.5))
        rows.catch_up(log, rule)
    assert rows.column("own").tolist() == [60]
    assert rows.acceptance(log, own_rounds_only=True).tolist() == [1]


def test_an_array_that_grows_by_zeros_holds_them_until_it_is_written_to():
    array, written = GrowingArray(np.full(3, 7.0)), [7.0] * 3
    for n in (1, 2, 40, 3, 200):
        room = array.grow(n, zeros=True)
        assert not room.any()
        if n % 2:
            room[:] = n
        written += [n if n % 2 else 0] * n
    assert array.view().tolist() == written


def test_sums_of_new_people_start_at_zero_after_others_went():
    rows, X, group = ObservedRows(), np.ones((50, 2)), np.ones(50, np.intp)
    rows.append(X, group, 1, 1)
    for name in ("past", "own", "coverage"):
        rows.column(name)[:] = 9.0
    rows.remove(np.arange(40))
    rows.append(X, None, PENDING, 2)
    for name in ("past", "own", "coverage", "group"):
        assert not rows.column(name)[10:].any()
        assert rows.column(name)[:10].all()
