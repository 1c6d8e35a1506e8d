"""The log of a program's decisions is the record of its own decisions and their outcomes."""

from __future__ import annotations

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import mixed_tables
from cli.hostile_lender import run
from fairchance.audit import DecisionLog, evaluate, unknown
from fairchance.errors import InputError
from fairchance.frames import as_array
from fairchance.ledger import Program
from fairchance.simulate.populations import Lender
from fairchance.simulate.run import decision_log
from fairchance.simulate.run import run as run_method
from ledger.lived_programs import lived
from ledger_worlds import algorithm_1, certified, started
from small_worlds import lender_world


def decide(program, batch):
    return program.decide(batch.people.X, sensitive_features=batch.people.group)


def together(parts, name):
    return np.concatenate([getattr(part, name) for part in parts])


@pytest.mark.parametrize("make", [algorithm_1, certified])
def test_the_log_of_a_ledger_is_that_of_the_same_run_in_memory(url, make):
    program, twin, batches = started(url, make(), n_rounds=3, n_batch=80)
    results = list(run_method(twin, lender_world(0, n_batch=80, n_rounds=3)))
    for one, batch in zip(results, batches, strict=True):
        decided = decide(program, batch)
        program.observe(decided.ids[decided.accepted], batch.outcome[decided.accepted])
        assert np.array_equal(one.decided.accepted, decided.accepted)
    expected = decision_log(results, coins=make is certified)
    log = program.decision_log()
    for name, value in vars(expected).items():
        if isinstance(value, np.ndarray):
            assert np.array_equal(getattr(log, name), value, equal_nan=value.dtype.kind == "f")
    (one,), (other,) = log.groups, expected.groups
    assert (one.attribute, one.names) == (other.attribute, other.names)
    assert np.array_equal(one.codes, other.codes)
    assert log.drawn.any() == (make is algorithm_1)


def test_outcomes_that_are_not_recorded_are_pending(place):
    program, _, batches = started(place, certified(), n_rounds=2, n_batch=80)
    decided = [decide(program, batch) for batch in batches]
    taken = decided[0].accepted
    program.observe(decided[0].ids[taken], batches[0].outcome[taken])
    log = program.decision_log()
    assert np.array_equal(log.known, log.accepted & (log.round == 1))
    assert np.array_equal(log.pending, log.accepted & (log.round == 2))
    assert log.pending.any()


def test_acceptances_depend_on_each_other_in_draws_of_fixed_size_only(tmp_path):
    def log_of(classifier):
        place = f"sqlite:///{tmp_path}/{len(list(tmp_path.iterdir()))}.db"
        program, _, batches = started(place, classifier, n_rounds=2, n_batch=80)
        exploit = np.concatenate([decide(program, batch).exploit for batch in batches])
        return program.decision_log(), exploit

    log, exploit = log_of(algorithm_1())
    assert np.array_equal(log.drawn, ~exploit)
    assert log.drawn.any()
    log, exploit = log_of(algorithm_1(first_round="drawn"))
    assert np.array_equal(log.drawn, ~exploit & (log.round == 2))
    assert (log.propensity[log.round == 1] < 1).any()  # round 1 flipped coins
    log, exploit = log_of(certified())
    assert not exploit.all()
    assert not log.drawn.any()


def test_a_ranking_is_another_when_it_is_learned_again(tmp_path):
    """Algorithm 1 learns one for each round, and the certified method keeps one for some rounds."""
    found = []
    for at, classifier in enumerate((algorithm_1(), certified())):
        place = f"sqlite:///{tmp_path}/{at}.db"
        program, _, batches = started(place, classifier, n_rounds=4, n_batch=80)
        for batch in batches:
            decided = decide(program, batch)
            program.observe(decided.ids[decided.accepted], batch.outcome[decided.accepted])
        log = program.decision_log()
        found.append([set(log.ranking[log.round == t].tolist()) for t in range(1, 5)])
    assert found[0] == [{0}, {1}, {2}, {3}]
    assert found[1] == [{0}, {0}, {0}, {1}]


def eventful(url):
    """Return a program after one of everything, its first batch's decisions, and whom it erased."""
    program, _, batches = started(url, algorithm_1(), n_rounds=2, n_batch=80)
    decided, later = (decide(program, batch) for batch in batches)
    accepted, rejected = decided.ids[decided.accepted], decided.ids[~decided.accepted]
    program.override(accepted[:2], False, "fraud was found")
    program.undo_override(accepted[1:2], "it was a mistake")
    program.override(rejected[:2], True, "a guarantor signed")
    program.undo_override(rejected[1:2], "the guarantor left")
    program.observe([*accepted[1:5], rejected[0]], [1, 0, 1, 0, 1])
    program.observe(accepted[4:5], [1])  # a correction
    program.withdraw([*accepted[3:4], *accepted[5:6]])
    gone = [accepted[2], rejected[-1], later.ids[0]]
    program.erase(gone, "asked", early=True)
    return program, decided, gone


def test_outcomes_belong_to_the_decisions_of_the_program(url):
    program, decided, _ = eventful(url)
    log = program.decision_log()
    first = log.select(log.round == 1)
    assert np.array_equal(first.accepted, decided.accepted)
    taken = first.select(first.accepted)
    assert np.array_equal(taken.outcome[:6], [np.nan, 1, 0, np.nan, 1, np.nan], equal_nan=True)
    assert taken.withdrawn[:6].tolist() == [True, False, False, True, False, True]
    assert log.known.sum() == 3
    assert log.withdrawn.sum() == 3
    assert first.pending.sum() == decided.accepted.sum() - 6


@pytest.mark.filterwarnings("ignore:Testing begins again")
@pytest.mark.parametrize("make", [lambda: algorithm_1(exploration="coins"), certified])
def test_decisions_imported_too_late_are_in_the_log(place, make):
    program, _, (batch, *_) = started(place, make(), n_batch=80)
    ids, people = np.arange(80) + 10_000, batch.people
    made = program.open_round(80).decide(people.X, sensitive_features=people.group, ids=ids)
    for rows in (slice(30), slice(30, 50), slice(50, 80)):
        given = {"sensitive_features": people.group[rows], "ids": ids[rows]}
        if rows.start is None:
            program.decide(people.X[rows], **given)
            continue
        given |= {
            "accepted": made.accepted[rows],
            "round": 1,
            "at": "2031-03-20",
            "where": "branch 7",
        }
        program.import_decisions(people.X[rows], **given)
        if rows.stop == 50:
            program.close_round()
    log = program.decision_log()
    for name in ("accepted", "score", "propensity", "exploit"):
        assert np.array_equal(getattr(log, name), getattr(made, name)), name
    assert set(log.ranking) == {log.ranking[0]}
    assert not log.drawn.any()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_an_exported_table_gives_the_same_log(place, tmp_path, kind):
    program, _, gone = eventful(place)
    path = tmp_path / f"log.{kind}"
    run("export", place, "--features", "--groups", "-o", path)
    log = program.decision_log()
    read = {
        "csv": (pd.read_csv, pl.read_csv, pyarrow.csv.read_csv),
        "parquet": (pd.read_parquet, pl.read_parquet, pq.read_table),
    }
    for one in read[kind]:
        found = DecisionLog.from_frame(one(path))
        near = {"rtol": 1e-12 if one is pd.read_csv else 0, "atol": 0}  # pandas 2 reads roughly
        for name in (
            "accepted",
            "propensity",
            "outcome",
            "withdrawn",
            "round",
            "score",
            "erased",
            "drawn",
        ):
            assert np.allclose(getattr(found, name), getattr(log, name), **near, equal_nan=True)
        assert found.erased.sum() == len(gone)
        for own, other in zip(found.groups, log.groups, strict=True):
            assert (own.attribute, own.names) == (other.attribute, other.names)
            assert np.array_equal(own.codes, other.codes)
        columns = [as_array(column) for column in nw.from_native(found.X).iter_columns()]
        assert np.allclose(np.array(columns, float).T, log.X, **near, equal_nan=True)


def test_erased_applicants_have_no_features_and_no_group(place):
    program = lived(place, algorithm_1(), n_rounds=2)
    before = program.decision_log()
    ids = np.arange(600, 720)  # after the history
    gone = [0, 5, *range(60, 120)]  # the second batch as a whole
    program.erase(ids[gone], "asked", early=True)
    log = program.decision_log()
    assert np.flatnonzero(log.erased).tolist() == gone
    assert np.isnan(log.X[gone]).all()
    assert np.array_equal(log.X[~log.erased], before.X[~log.erased])
    for name in ("accepted", "propensity", "score", "outcome", "round", "drawn"):
        assert np.array_equal(getattr(log, name), getattr(before, name), equal_nan=True)
    assert (log.groups[0].codes[gone] == -1).all()
    kept = log.groups[0].codes[~log.erased]
    assert np.array_equal(kept, before.groups[0].codes[~log.erased])
    program.erase(np.delete(ids, gone), "asked", early=True)
    log = program.decision_log()
    assert log.X is None
    assert log.groups == ()


def test_a_table_of_all_kinds_of_columns_with_several_attributes(place, rng):
    def people(n):
        X, good, _ = mixed_tables.applicants(rng, n)
        X = X.drop(columns="name")  # an identifier
        groups = {"sex": rng.choice(["f", "m"], n), "old": rng.choice([0, 1], n)}
        return X, pd.DataFrame(groups), good

    X, groups, good = people(300)
    accepted = rng.random(300) < 0.7
    program = Program.create(
        place, algorithm_1(), X, good, accepted=accepted, sensitive_features=groups
    )
    batches = [people(50) for _ in range(2)]
    ids = np.concatenate(
        [program.decide(X, sensitive_features=groups).ids for X, groups, _ in batches]
    )
    X, groups = (pd.concat([batch[at] for batch in batches], ignore_index=True) for at in (0, 1))
    program.erase(ids[:1], "asked", early=True)
    log = program.decision_log()
    assert log.backend == "pyarrow"
    found = log.X.to_pandas()
    assert found.iloc[0].isna().all()
    for name in X.columns:
        assert (found[name][1:].astype(X[name].dtype) == X[name][1:])[X[name][1:].notna()].all()
    assert [group.attribute for group in log.groups] == ["sex", "old"]
    for group in log.groups:
        values = np.array(group.names)[group.codes]
        assert group.codes[0] == -1
        assert np.array_equal(values[1:], groups[group.attribute][1:].astype(str))


def test_a_program_without_a_batch_has_no_log(place):
    program, _, _ = started(place, algorithm_1(), n_rounds=1)
    with pytest.raises(InputError, match="no batch"):
        program.decision_log()


def test_the_history_is_a_log_with_estimated_probabilities(url):
    program = lived(url, algorithm_1(), n_rounds=1)
    past = lender_world(0, n_batch=60, n_rounds=1).history()
    log = program.decision_log(history=True)
    assert np.array_equal(log.accepted, past.accepted)
    assert np.array_equal(log.X, past.people.X)
    assert np.array_equal(log.outcome[log.accepted], past.outcomes[past.accepted])
    assert not log.known[~log.accepted].any()
    assert (log.round == 0).all()
    assert log.estimated
    assert log.score is None
    error = log.propensity - Lender().probability_accepted_before(past.people)
    assert np.abs(error).mean() < 0.12
    fdr = evaluate(log, "x0 >= 0.5").of("false_discovery_rate")
    assert 0 < fdr.value < 1
    assert np.isnan(fdr.high)


def test_groups_are_read_on_request_only(place):
    program = lived(place, algorithm_1(), n_rounds=1)
    log = program.decision_log(groups=False)
    assert log.groups == ()
    assert log.sensitive_features is None
    assert program.decision_log().groups[0].names == ("A", "B")


@pytest.mark.parametrize("make", [algorithm_1, certified])
def test_the_mixture_is_the_mean_over_the_policies_of_all_rounds(url, make):
    program, twin, batches = started(url, make(), n_rounds=4, n_batch=120)
    for batch in batches:
        options = {"sensitive_features": batch.people.group}
        decided = program.decide(batch.people.X, **options)
        twin.decide(batch.people.X, **options)
        for one in (program, twin):
            one.observe(decided.ids[decided.accepted], batch.outcome[decided.accepted])
    again = Program.open(url)
    log = again.decision_log(mixture=True, groups=False)
    assert log.groups == ()
    X, group = (together([batch.people for batch in batches], name) for name in ("X", "group"))
    mean = twin.mean_acceptance(X, sensitive_features=group)
    np.testing.assert_allclose(log.mixture, np.maximum(mean, log.propensity / 4), rtol=1e-9)
    np.testing.assert_allclose(log.mixture, mean, atol=0.02)  # in large batches the same
    assert max(s.largest_chance for s in unknown(log).slices) == log.mixture.max()
    assert program.decision_log().mixture is None
    again.erase(decided.ids[:2], "asked", early=True)
    erased = again.decision_log(mixture=True)
    gone = np.flatnonzero(erased.erased)
    assert np.array_equal(erased.mixture[gone], erased.propensity[gone])
    kept = ~erased.erased
    np.testing.assert_allclose(erased.mixture[kept], log.mixture[kept], rtol=1e-9)


def test_no_mixture_of_the_history(place):
    program = lived(place, algorithm_1(), n_rounds=1)
    with pytest.raises(InputError, match="the history"):
        program.decision_log(history=True, mixture=True)
