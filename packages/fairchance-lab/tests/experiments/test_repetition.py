"""One repetition: counts compared with a loop over people, seeds, segments."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from experiments.spies import SPEC, Spy, numbered_people
from fairchance.errors import InputError, LearningWarning
from fairchance.simulate.populations import Lender
from fairchance_lab.experiments import methods
from fairchance_lab.experiments.methods import METHODS
from fairchance_lab.experiments.repetition import check_world, run_repetition
from fairchance_lab.experiments.results import COUNTS, KEYS, SHARES
from fairchance_lab.experiments.spec import Experiment
from fairchance_lab.experiments.world_spec import WorldSpec


class LookingAhead(Spy):
    def accepts(self, X, *, sensitive_features=None):
        assert len(sensitive_features) == len(X)
        return (X[:, 0].astype(int) + len(self.batches)) % 4 == 0


@pytest.fixture
def spies(monkeypatch):
    """Return the spies that repetitions have built, by method name."""
    built = {"spy": [], "ahead": []}

    def put(name, kind):
        def make(setup):
            built[name].append(kind(setup))
            return built[name][-1]

        monkeypatch.setitem(METHODS, name, (name, make))

    put("spy", Spy)
    put("ahead", LookingAhead)
    return built


def spied(methods=("spy",), number=0, spec=SPEC, **options):
    experiment = Experiment("x", spec, methods, **options)
    results = run_repetition(experiment, numbered_people(), number)
    assert results.failures == ()
    return results.columns


def recount(spy, table, segment, names):
    """Return rows of counts, computed in a loop over people."""
    rows = []
    for t, (numbers, _, _) in enumerate(spy.batches):
        for name in names:
            row = dict.fromkeys(COUNTS, 0)
            for i, person in enumerate(numbers.tolist()):
                if segment(person) != name:
                    continue
                good, decided = table.outcome[person] == 1, spy.decided[t]
                accepted, explored = decided.accepted[i], not decided.exploit[i]
                row["n_people"] += 1
                row["n_good"] += int(good)
                row["n_accepted"] += int(accepted)
                row["n_accepted_good"] += int(accepted and good)
                row["n_exploit_region"] += int(not explored)
                row["n_explored"] += int(accepted and explored)
                row["n_explored_good"] += int(accepted and explored and good)
            if isinstance(spy, LookingAhead) and t + 1 < len(spy.batches):
                for person in spy.batches[t + 1][0].tolist():
                    if segment(person) == name:
                        good, accepted = table.outcome[person] == 1, (person + t + 1) % 4 == 0
                        row["n_next"] += 1
                        row["n_next_good"] += int(good)
                        row["n_next_accepted"] += int(accepted)
                        row["n_next_accepted_good"] += int(accepted and good)
            past = spy.setup.past
            for person, accepted in zip(
                past.people.X[:, 0].astype(int), past.accepted, strict=True
            ):
                if t == 0 and segment(person) == name:
                    row["n_past"] += 1
                    row["n_past_accepted"] += int(accepted)
                    row["n_past_accepted_good"] += int(accepted and table.outcome[person] == 1)
            rows.append(row)
    return rows


def same(columns, chosen, rows):
    return all(columns[count][chosen].tolist() == [row[count] for row in rows] for count in COUNTS)


def test_counts_equal_a_recount(spies):
    columns, table = spied(("spy", "ahead")), numbered_people()
    names = ["mid", "new", "old"]
    assert list(columns) == [*KEYS, *COUNTS]
    assert columns["group"].tolist() == names * 8
    assert columns["round"].tolist() == [t for t in (1, 2, 3, 4) for _ in names] * 2
    for name in ("spy", "ahead"):
        rows = recount(spies[name][0], table, lambda person: table.group[person], names)
        assert same(columns, columns["method"] == name, rows)


def test_counts_of_the_next_batch(spies):
    columns = spied(("spy", "ahead"))
    ahead, last = columns["method"] == "ahead", columns["round"] == 4
    assert columns["n_next"][ahead & ~last].sum() == 3 * 80
    assert not columns["n_next"][last].any()
    assert not any(columns[f"n_next{part}"][~ahead].any() for part in ("", "_good", "_accepted"))


def test_counts_by_side_of_the_cutoff(spies):
    past = ({"rule": "cutoff", "feature": "income", "share": 0.6},)
    spec = WorldSpec("numbered", n_batch=80, n_rounds=4, past=past)
    columns, table = spied(("ahead",), spec=spec, segments="past"), numbered_people()
    (spy,) = spies["ahead"]
    history = spy.setup.past
    income = history.people.X[:, 1]
    lowest = income[history.accepted].min()
    assert income[~history.accepted].max() < lowest
    assert 0.5 < history.accepted.mean() < 0.7
    names = ["let in", "shut out"]
    rows = recount(spy, table, lambda person: names[int(table.X[person, 1] < lowest)], names)
    assert columns["group"].tolist() == names * 4
    assert same(columns, columns["method"] == "ahead", rows)
    assert all(row["n_people"] for row in rows)


def test_all_methods_get_the_same_people_and_seed(spies):
    spied(("spy", "ahead"), vary={"alpha": (0.1, 0.2)})
    (first, *others) = [*spies["spy"], *spies["ahead"]]
    assert len(others) == 3
    for other in others:
        assert other.setup.seed == first.setup.seed
        past, same_past = other.setup.past, first.setup.past
        assert np.array_equal(past.people.X, same_past.people.X)
        assert np.array_equal(past.outcomes, same_past.outcomes, equal_nan=True)
        for batch, same_batch in zip(other.batches, first.batches, strict=True):
            assert np.array_equal(batch[1], same_batch[1])
            assert np.array_equal(batch[2], same_batch[2])
    assert [spy.setup.goal.alpha for spy in spies["spy"]] == [0.1, 0.2]


def test_repetitions_differ_and_are_reproducible(spies):
    for number in (0, 1, 2, 1):
        spied(number=number)
    spied(number=0, seed=1)
    first, second, third, again, other = spies["spy"]
    seeds = [spy.setup.seed for spy in (first, second, third, other)]
    assert len(set(seeds)) == 4
    assert again.setup.seed == second.setup.seed
    drawn = [spy.batches[0][0].tolist() for spy in (first, second, third, other)]
    assert len({tuple(rows) for rows in drawn}) == 4
    assert again.batches[0][0].tolist() == drawn[1]


def test_methods_observe_outcomes_of_the_accepted(spies):
    spied()
    (spy,), table = spies["spy"], numbered_people()
    expected = {
        name: int(table.outcome[person])
        for (numbers, _, _), decisions in zip(spy.batches, spy.decided, strict=True)
        for person, name, accepted in zip(
            numbers, decisions.ids.tolist(), decisions.accepted, strict=True
        )
        if accepted
    }
    assert spy.observed == expected
    past = spy.setup.past
    assert np.array_equal(np.isnan(past.outcomes), ~past.accepted)
    numbers = past.people.X[past.accepted, 0].astype(int)
    assert np.array_equal(past.outcomes[past.accepted], table.outcome[numbers])


def test_group_is_appended_if_it_is_not_a_feature(spies):
    for source, appended in (
        (numbered_people(), True),
        (replace(numbered_people(), group_feature="debt"), False),
        (Lender(), True),
    ):
        run_repetition(Experiment("x", SPEC, ("spy",)), source, 0)
        assert spies["spy"][-1].setup.group_as_feature == appended


class Warns(Spy):
    kind = LearningWarning

    def decide(self, X, *, sensitive_features=None, ids=None):
        warnings.warn("no one can be accepted", self.kind, stacklevel=1)
        return super().decide(X, sensitive_features=sensitive_features)


class WarnsOfElse(Warns):
    kind = RuntimeWarning


class WarnsOfIterations(Warns):
    kind = ConvergenceWarning


def test_only_learning_warnings_are_ignored(monkeypatch):
    monkeypatch.setitem(METHODS, "warns", ("", Warns))
    monkeypatch.setitem(METHODS, "warns of else", ("", WarnsOfElse))
    monkeypatch.setitem(METHODS, "warns of iterations", ("", WarnsOfIterations))
    for name in ("warns", "warns of iterations"):
        assert spied((name,))["n_people"].sum() == 320
    with pytest.warns(RuntimeWarning, match="no one can be accepted"):
        spied(("warns of else",))


def test_global_random_state_is_unchanged():
    before = np.random.get_state()[1].copy()  # noqa: NPY002 (checked here)
    run_repetition(Experiment("x", SPEC, ("plain",)), Lender(), 0)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


class Broken(Spy):
    def decide(self, X, *, sensitive_features=None, ids=None):
        raise KeyError("a bug")


class Short(Spy):
    def decide(self, X, *, sensitive_features=None, ids=None):
        return super().decide(X[:10], sensitive_features=sensitive_features)


class Nothing(Spy):
    def decide(self, X, *, sensitive_features=None, ids=None):
        return X


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Broken, r"^KeyError: 'a bug' \(at .*test_repetition.py, line \d+\)\.$"),
        (Short, "accepted must hold True or False"),
        (Nothing, "decide must return Decisions, got ndarray"),
    ],
)
def test_failing_method_is_reported_and_does_not_affect_others(monkeypatch, spies, kind, message):
    setups = []

    def make(setup):
        setups.append(setup)
        return kind(setup)

    monkeypatch.setattr(methods, "_import_method", lambda name: make)
    experiment = Experiment("x", SPEC, ("spy", "own:make", "ahead"), judged=True)
    results = run_repetition(experiment, Lender(), 3)
    (failure,) = results.failures
    assert (failure.setting, failure.method, failure.repetition) == ("α = 0.15", "own:make", 3)
    assert failure.seed == setups[0].seed == spies["spy"][-1].setup.seed
    assert re.search(message, failure.sentence)
    failed = results.columns["method"] == "own:make"
    assert not any(results.columns[name][failed].any() for name in COUNTS)
    assert all(np.isnan(results.columns[name][failed]).all() for name in SHARES)
    alone = run_repetition(replace(experiment, methods=("spy", "ahead")), Lender(), 3)
    for name in (*KEYS, *COUNTS):
        assert results.columns[name][~failed].tolist() == alone.columns[name].tolist()


def test_interrupt_is_not_a_failure(monkeypatch):
    def interrupted(setup):
        raise KeyboardInterrupt

    monkeypatch.setitem(METHODS, "interrupted", ("", interrupted))
    with pytest.raises(KeyboardInterrupt):
        run_repetition(Experiment("x", SPEC, ("interrupted",)), Lender(), 0)


def test_unknown_focus_is_rejected():
    with pytest.raises(InputError, match=r"focus.* A, B.* 'Q'"):
        check_world(Experiment("x", SPEC, ("plain",), focus="Q"), Lender())
