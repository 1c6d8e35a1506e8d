"""The store of applicants: a slot per accepted applicant, filled in any order, all or none."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairchance.errors import InputError, LedgerError, UnknownIdError
from fairchance.people.ids import IdIndex, as_ids, id_bits
from fairchance.people.store import (
    HISTORY,
    NEVER,
    NOT_TAKEN,
    PENDING,
    REJECTED,
    ApplicantRows,
    GrowingArray,
    PeopleStore,
)


def bits_of(ids: Any) -> np.ndarray:
    return id_bits(as_ids(ids, len(ids)))


def record(store: PeopleStore, ids: Any, accepted: Any, round: int = 1, **options: Any) -> Any:
    """Record applicants with features, a group and a part that follow from their id's bits."""
    bits = bits_of(ids)
    X = options.pop("X", bits[:, None].astype(float))
    group, part = ((bits % np.uint64(n)).astype(np.intp) for n in (3, len(store.parts)))
    accepted = np.asarray(accepted, bool)
    return store.record(bits, accepted, round, X=X, group=group, part=part, **options)


def observe(store: PeopleStore, ids: Any, outcomes: Any, **options: Any) -> int:
    names = as_ids(ids, len(ids))
    return len(store.observe(names, id_bits(names), np.array(outcomes, np.int8), **options))


def content(store: PeopleStore) -> list[np.ndarray]:
    """Return a copy of all rows and of the index."""
    columns = [
        np.array(column)
        for rows in store._tables
        for column in (rows.X, *(rows[name] for name in rows._columns))
    ]
    return [*columns, *(column for run in store._index._runs for column in run)]


def same(left: list[np.ndarray], right: list[np.ndarray]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))


@pytest.fixture(params=[False, True], ids=["rejected by id", "rejected with rows"])
def store(request: Any) -> PeopleStore:
    """Ten applicants, those with even ids accepted; 0 was good and 2 was bad."""
    store = PeopleStore(2, {"p": 0.5}, keep_rejected=request.param)
    record(store, range(10), np.arange(10) % 2 == 0)
    observe(store, [0, 2], [1, 0])
    return store


@given(st.lists(st.integers(0, 9), min_size=1, max_size=12))
def test_rows_grow_and_keep_their_positions(sizes):
    rows, first, rounds = ApplicantRows({"round": np.int32(0), "p": -1.0, "q": 0.0}), 0, []
    for n in sizes:
        X = np.arange(first, first + n)[:, None] * [1.0, -1.0]
        values = {"round": 1 + first, "q": np.arange(first, first + n) / 2}
        assert rows.append(n, X, values) == range(first, first + n)
        rounds += [1 + first] * n
        first += n
        assert len(rows) == rows.X.shape[0] == first
    assert np.array_equal(rows.X, np.arange(first)[:, None] * [1.0, -1.0])
    assert np.array_equal(rows["q"], np.arange(first) / 2)
    assert rows["round"].tolist() == rounds
    assert rows["p"].tolist() == [-1.0] * first


def test_columns_are_views_and_the_callers_arrays_are_copied():
    store, X, group = PeopleStore(), np.zeros((2, 1)), np.zeros(2, np.intp)
    store.record(bits_of([0, 1]), np.ones(2, bool), 1, X=X, group=group)
    rows = store.parts[0]
    rows["outcome"][1] = 1
    X[:], group[:] = 9, 9
    assert rows.known_outcomes().tolist() == [False, True]
    assert not rows.X.any()
    assert not rows["group"].any()


def test_frames_are_joined_when_they_are_read():
    store = PeopleStore()
    for first in (0, 2):
        frame = pd.DataFrame({"city": ["x", "y"], "age": [first, first + 1]})
        assert record(store, [first, first + 1], [True, True], X=frame).tolist() == [
            first,
            first + 1,
        ]
    rows = store.parts[0]
    assert rows.X["age"].tolist() == [0, 1, 2, 3]
    assert rows.X["city"].tolist() == ["x", "y", "x", "y"]
    store.forget(np.array([1]), bits_of([1]))
    assert rows.X["age"].tolist() == [0, 2, 3]


def test_a_store_without_features():
    store = PeopleStore(columns={"cell": np.int32(0)}, keep_rejected=True)
    cell = np.array([4, 5, 6], np.int32)
    store.record(bits_of([7, 8, 9]), np.array([True, False, True]), 1, columns={"cell": cell})
    assert store.parts[0].X is None
    assert store.parts[0]["cell"].tolist() == [4, 6]
    assert store.rejected is not None
    assert store.rejected["cell"].tolist() == [5]
    assert store.rejected_rows(bits_of([9, 8])).tolist() == [0]


def test_only_accepted_applicants_get_a_slot(store):
    assert sum(map(len, store.parts)) == 5
    assert store.n_outcomes == 2
    place = store.find(bits_of(range(10)))
    for number, (rows, (here, at)) in enumerate(
        zip(store.parts, store.rows_by_part(place), strict=True)
    ):
        ids = np.arange(10)[here]
        assert np.all((ids % 2 == 0) & (ids % 2 == number))
        assert np.array_equal(rows.X[at, 0], ids)
        assert np.array_equal(rows["group"][at], ids % 3)
        assert np.all(rows["round"] == 1)
        assert np.all(rows["p"] == 0.5)
    assert np.array_equal(place == REJECTED, np.arange(10) % 2 == 1)
    if store.rejected is not None:
        assert store.rejected.X[:, 0].tolist() == [1, 3, 5, 7, 9]
        with pytest.raises(KeyError):
            store.rejected["outcome"]


@given(st.randoms(use_true_random=False), st.sampled_from(["integers", "strings"]))
def test_order_of_rows_and_of_outcomes_does_not_matter(random, kind):
    names = np.arange(24) if kind == "integers" else np.array([f"p{i}" for i in range(24)])
    accepted, good = np.arange(24) % 3 > 0, np.arange(24) % 4 > 0
    plain, mixed = PeopleStore(2), PeopleStore(2)
    for half in (np.arange(12), np.arange(12, 24)):
        record(plain, names[half], accepted[half])
        shuffled = np.array(random.sample(half.tolist(), 12))
        record(mixed, names[shuffled], accepted[shuffled])
    assert observe(plain, names[accepted], good[accepted]) == 16

    queue = np.array(random.sample(np.flatnonzero(accepted).tolist(), 16))
    cuts = sorted(random.sample(range(1, 16), 4))
    parts = np.split(queue, cuts)
    assert [observe(mixed, names[part], good[part]) for part in parts] == [p.size for p in parts]
    assert same(content(plain), content(mixed))


def test_unsorted_rows_keep_the_order_of_the_batch():
    store = PeopleStore()
    place = record(store, [5, 3, 4], [True, True, True], sort=False)
    assert place.tolist() == [0, 1, 2]
    assert store.parts[0].X[:, 0].tolist() == [5, 3, 4]


def test_an_outcome_may_come_again(store):
    before = content(store)
    assert observe(store, [0, 0, 2], [1, 1, 0]) == 0
    assert same(content(store), before)
    assert observe(store, [0, 4, 4], [1, 1, 1]) == 1


def test_changes_name_each_applicant_once(store):
    ids = np.array([6, 0, 4, 6])
    changes = store.observe(ids, id_bits(ids), np.array([0, 1, 1, 0], np.int8))
    assert changes.at.tolist() == [0, 2]
    assert np.array_equal(changes.place, store.find(bits_of([6, 4])))
    assert (changes.before.tolist(), changes.after.tolist()) == ([PENDING, PENDING], [0, 1])
    corrected = store.observe(ids[:1], id_bits(ids[:1]), np.ones(1, np.int8), correcting=True)
    assert (corrected.before.tolist(), corrected.after.tolist()) == ([0], [1])
    assert store.recorded(ids, id_bits(ids)).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("ids", "outcomes", "error", "name"),
    [
        ([4, 99], [1, 1], UnknownIdError, "99"),
        ([4, 3], [1, 1], UnknownIdError, "3"),
        ([4, 6, 4], [1, 1, 0], InputError, "4"),
        ([4, 6, 2], [1, 1, 1], InputError, "2"),
        ([8, 0], [1, 0], InputError, "0"),
    ],
)
def test_wrong_outcomes_change_nothing(store, ids, outcomes, error, name):
    before = content(store)
    with pytest.raises(error, match=rf"\b{name}\b"):
        observe(store, ids, outcomes)
    assert same(content(store), before)


def test_a_pending_outcome_cannot_be_corrected(store):
    before = content(store)
    with pytest.raises(InputError, match="id 4"):
        observe(store, [0, 4], [0, 1], correcting=True)
    assert same(content(store), before)


def test_withdrawn_applicants_have_no_outcome(store):
    ids = np.array([0, 4, 4])
    changes = store.withdraw(ids, id_bits(ids))
    assert changes.before.tolist() == [1, PENDING]
    assert store.recorded(ids, id_bits(ids)).tolist() == [NEVER] * 3
    assert len(store.withdraw(ids, id_bits(ids))) == 0
    with pytest.raises(InputError, match="id 4"):
        observe(store, [4], [1])
    assert observe(store, [4], [1], correcting=True) == 1


def test_not_taken_is_recorded_once_and_only_without_an_outcome(store):
    ids, before = np.array([4, 6, 4]), content(store)
    store.withdraw(np.array([8]), bits_of([8]))
    for wrong, error in ((0, InputError), (8, InputError), (3, UnknownIdError)):
        names = np.array([4, wrong])
        with pytest.raises(error, match=rf"\b{wrong}\b"):
            store.not_taken(names, id_bits(names))
    assert store.recorded(ids, id_bits(ids)).tolist() == [PENDING] * 3
    assert len(store.not_taken(ids, id_bits(ids))) == 2
    assert len(store.not_taken(ids, id_bits(ids))) == 0
    assert store.recorded(ids, id_bits(ids)).tolist() == [NOT_TAKEN] * 3
    assert store.n_outcomes == 2
    with pytest.raises(InputError, match=r"id 4.*not taken"):
        observe(store, [4], [1])
    assert observe(store, [4], [1], correcting=True) == 1
    assert not same(content(store), before)


def test_what_is_not_taken_is_neither_learned_from_nor_waited_for(store):
    ids = np.array([4, 6, 8])
    assert store.waiting(2, 3) == (1,)
    store.not_taken(ids, id_bits(ids))
    assert store.waiting(2, 3) == ()
    for waiting in (None, ()):
        assert sum(int(rows.counted(waiting).sum()) for rows in store.parts) == 2


def test_ids_are_unique_for_ever(store):
    store.check_new(np.array([10, 11]), bits_of([10, 11]))
    for ids, name in (([20, 4], 4), ([3], 3)):  # accepted, rejected
        with pytest.raises(InputError, match=f"first {name};"):
            store.check_new(np.array(ids), bits_of(ids))


def test_the_history_of_a_method_that_keeps_it_elsewhere():
    store = PeopleStore()
    store.record_history(bits_of([1, 2]), np.array([True, False]))
    assert store.find(bits_of([1, 2])).tolist() == [HISTORY, REJECTED]
    for name in (1, 2):
        with pytest.raises(UnknownIdError, match=rf"first {name},"):
            observe(store, [name], [1])


def test_a_round_may_accept_none_or_all(store):
    record(store, [10, 11], [False, False], 2)
    record(store, [12, 13], [True, True], 3)
    assert sum(map(len, store.parts)) == 7
    assert observe(store, [13, 12], [0, 1]) == 2
    rounds = np.concatenate([rows["round"] for rows in store.parts])
    assert sorted(rounds.tolist()) == [1] * 5 + [3] * 2


def test_a_history_comes_with_its_outcomes():
    store, ids = PeopleStore(2), np.array([3, 0, 5, 1, 4, 2])
    accepted = ids > 1
    record(store, ids, accepted, 0, outcome=(ids[accepted] // 3).astype(np.int8))
    assert store.n_outcomes == 4
    for rows in store.parts:
        assert np.array_equal(rows["outcome"], rows.X[:, 0] // 3)
        assert not rows["round"].any()
    assert observe(store, [2, 3], [0, 1]) == 0


def test_features_keep_their_precision():
    store = PeopleStore(2)
    for first in (0, 50):
        ids = np.arange(first, first + 50)
        record(store, ids, np.ones(50, bool), X=ids[:, None].astype(np.float32))
    assert all(rows.X.dtype == np.float32 for rows in store.parts)


def test_rounds_wait_until_they_are_complete_or_mature(store):
    record(store, [20, 21], [True, True], 2)
    observe(store, [20, 21], [1, 0])
    record(store, [30, 31], [True, True], 3)
    assert store.waiting(4, None) is None
    assert store.waiting(4, 3) == (1, 3)
    assert store.waiting(4, 2) == (3,)
    assert store.waiting(4, 0) == ()
    for rows in store.parts:
        assert not np.isin(rows["round"][rows.counted((1, 3))], (1, 3)).any()


@given(st.sets(st.integers(0, 29), min_size=1), st.booleans())
def test_forgotten_applicants_are_gone_and_others_stay(gone, keep_rejected):
    store, ids = PeopleStore(2, {"p": 0.0}, keep_rejected=keep_rejected), np.arange(30)
    for round, some in enumerate(np.split(ids, 3)):
        record(store, some, some % 3 > 0, round, columns={"p": some / 7})
    accepted = ids[ids % 3 > 0]
    observe(store, accepted, accepted // 5 % 2)
    forgotten = np.array(sorted(gone))
    store.forget(forgotten, id_bits(forgotten))
    assert np.all(store._index.find(id_bits(forgotten)) == IdIndex.UNKNOWN)
    store.check_new(forgotten, id_bits(forgotten))
    left = np.setdiff1d(accepted, forgotten)
    assert store.recorded(left, id_bits(left)).tolist() == (left // 5 % 2).tolist()
    for rows, (here, at) in zip(
        store.parts, store.rows_by_part(store.find(id_bits(left))), strict=True
    ):
        assert len(rows) == at.size
        assert np.array_equal(rows.X[at, 0], left[here])
        assert np.array_equal(rows["p"][at], left[here] / 7)
    if store.rejected is not None:
        rejected = np.setdiff1d(ids[ids % 3 == 0], forgotten)
        at = store.rejected_rows(id_bits(rejected))
        assert len(store.rejected) == at.size == rejected.size
        assert np.array_equal(store.rejected.X[at, 0], rejected)


@given(st.sets(st.integers(0, 29)), st.lists(st.integers(0, 59), unique=True), st.booleans())
def test_features_that_a_state_leaves_out_are_read_where_they_are_recorded(gone, asked, framed):
    """After some were forgotten and others came."""

    def table(ids):
        return pd.DataFrame({"x": ids / 1.0}) if framed else ids[:, None] / 1.0

    store, rng, read = PeopleStore(2), np.random.default_rng(0), []

    def recorded(rounds):
        for round in rng.permutation(rounds):
            ids = rng.permutation(np.setdiff1d(np.arange(10 * round, 10 * round + 10), forgotten))
            read.append(int(round))
            yield id_bits(ids), table(ids)

    for round in range(3):
        ids = np.arange(10 * round, 10 * round + 10)
        record(store, ids, ids % 3 > 0, round, X=table(ids))
    store.read_features(recorded)
    for rows in store.parts:
        vars(rows).update(copy.deepcopy(rows.without_features()))
    forgotten = np.array(sorted(gone), np.int64)
    store.forget(forgotten, id_bits(forgotten))
    later = np.arange(30, 60)
    record(store, later, later % 3 > 0, 3, X=table(later))
    ids = np.array([one for one in asked if one % 3 and one not in gone], np.int64)
    for rows, (here, at) in zip(
        store.parts, store.rows_by_part(store.find(id_bits(ids))), strict=True
    ):
        read.clear()
        assert np.array_equal(np.ravel(rows.features(at)), ids[here])
        assert set(read) == {*(ids[here][ids[here] < 30] // 10).tolist()}
        assert np.array_equal(np.ravel(rows.X)[at], ids[here])
        read.clear()
        assert len(rows.X) == len(rows)
        assert not read


def test_a_record_without_an_accepted_applicant_is_damaged():
    store = PeopleStore()
    record(store, [1, 2], [True, True])
    store.read_features(lambda _: [(bits_of([1]), np.ones((1, 1)))])
    vars(store.parts[0]).update(store.parts[0].without_features())
    with pytest.raises(LedgerError):
        _ = store.parts[0].X


def test_unknown_ids_cannot_be_forgotten(store):
    before = content(copy.deepcopy(store))
    with pytest.raises(UnknownIdError, match="first 99"):
        store.forget(np.array([4, 99]), bits_of([4, 99]))
    assert same(content(store), before)


def test_columns_of_new_applicants_start_at_their_default_after_others_were_forgotten():
    store, ids = PeopleStore(columns={"own": 0.0}), np.arange(50)
    record(store, ids, np.ones(50, bool))
    rows = store.parts[0]
    rows["own"][:] = 9.0
    store.forget(ids[:40], id_bits(ids[:40]))
    store.record(bits_of(ids + 50), np.ones(50, bool), 2, X=np.ones((50, 1)))
    for name in ("own", "group"):
        assert not rows[name][10:].any()
    assert (rows["own"][:10] == 9.0).all()


def test_a_growing_array_holds_zeros_until_it_is_written_to():
    array, written = GrowingArray(np.full(3, 7.0)), [7.0] * 3
    for n in (1, 2, 40, 3, 200):
        room = array.grow(n)
        assert not room.any()
        if n % 2:
            room[:] = n
        written += [n if n % 2 else 0] * n
    assert array.view().tolist() == written
