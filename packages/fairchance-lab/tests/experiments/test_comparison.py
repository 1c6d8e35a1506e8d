"""Compare results with loops over rounds, and standard errors with a bootstrap."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from experiments.known_results import METHODS_HERE, judged_results
from experiments.spies import SPEC, Spy, numbered_people
from fairchance.errors import InputError
from fairchance.simulate.populations import FiniteDomain, Lender
from fairchance.simulate.run import run
from fairchance_lab.datasets import load
from fairchance_lab.experiments.comparison import (
    COMPARED,
    compared,
    comparison,
    find_unjudged,
    judge,
    population_fdr,
)
from fairchance_lab.experiments.methods import METHODS, REFERENCES, Setup, build
from fairchance_lab.experiments.repetition import check_world, run_repetition
from fairchance_lab.experiments.results import COUNTS, KEYS, SHARES, read_results
from fairchance_lab.experiments.runner import Run, run_experiment
from fairchance_lab.experiments.spec import Experiment, Goal
from fairchance_lab.experiments.world_spec import WorldSpec
from fairchance_lab.paper.experiment import EXPERIMENTS
from sentences import one_sentence


def by_hand(results, method):
    """Return acceptances, certificates and TPRs of each round of each repetition, row by row."""
    records = {}
    columns = results.columns
    for i in range(len(results)):
        if columns["method"][i] == method:
            key = int(columns["repetition"][i]), int(columns["round"][i])
            record = records.setdefault(
                key, {"accepted": 0.0, "good": 0.0, "cert": False, "tpr": {}}
            )
            record["accepted"] += columns["p_accepted"][i]
            record["good"] += columns["p_accepted_good"][i]
            record["cert"] |= bool(columns["n_certified"][i])
            rate = columns["p_accepted_good"][i] / columns["p_good"][i]
            record["tpr"][columns["group"][i]] = rate
    return records


def mean_utility(records, rounds):
    worth = [
        200 * record["good"] - 500 * (record["accepted"] - record["good"])
        for (_, t), record in records.items()
        if t in rounds
    ]
    return sum(worth) / len(worth)


def test_comparison_equals_a_loop_over_rounds(rng):
    results = judged_results(rng)
    ceiling = by_hand(results, "ceiling")
    some_certified_break = False
    for method, row in zip(METHODS_HERE, compared(results), strict=True):
        records = by_hand(results, method)
        for period, rounds in (
            ("early", range(1, 6)),
            ("middle", range(6, 11)),
            ("late", range(11, 15)),
            ("whole", range(1, 15)),
        ):
            best = mean_utility(ceiling, rounds)
            expected = mean_utility(records, rounds) / best if best > 0 else math.nan
            assert row.earned[period].share == pytest.approx(expected, nan_ok=True), period
        for kind, breaks in ((True, row.certified), (False, row.uncertified)):
            of_kind = {key: record for key, record in records.items() if record["cert"] == kind}
            broken = {
                key
                for key, record in of_kind.items()
                if record["accepted"] and 1 - record["good"] / record["accepted"] > 0.15
            }
            assert (breaks.rounds, breaks.broken) == (len(of_kind), len(broken))
            assert breaks.runs == len({run for run, _ in of_kind})
            assert breaks.broken_runs == len({run for run, _ in broken})
            some_certified_break |= kind and bool(broken)
        for group in results.groups:
            late = [record["tpr"][group] for (_, t), record in records.items() if t > 10]
            assert row.true_positive_rates[group] == pytest.approx(sum(late) / len(late))
        of_kind = results.columns["method"] == method
        explored, accepted = (
            results.columns[f"n_{n}"][of_kind].sum() for n in ("explored", "accepted")
        )
        assert row.explored == pytest.approx(explored / accepted)
    assert some_certified_break
    assert compared(results)[2].earned["whole"].share == 1


def test_standard_error_equals_a_bootstrap_over_runs(rng):
    results = judged_results(rng, size=(60, 8))
    earned = compared(results)[0].earned["whole"]
    worth = {}
    for method in ("plain", "ceiling"):
        rounds = by_hand(results, method)
        worth[method] = np.array(
            [
                mean_utility({k: v for k, v in rounds.items() if k[0] == r}, range(9))
                for r in range(60)
            ]
        )
    picks = rng.integers(60, size=(4000, 60))
    ratios = worth["plain"][picks].mean(1) / worth["ceiling"][picks].mean(1)
    assert earned.standard_error == pytest.approx(ratios.std(), rel=0.15)


def test_shares_are_nan_if_the_ceiling_earns_nothing(rng):
    results = judged_results(rng)
    columns = dict(results.columns)
    ceiling = columns["method"] == "ceiling"
    for name in ("p_accepted", "p_accepted_good"):
        columns[name] = np.where(ceiling, 0.0, columns[name])
    rows = compared(replace(results, columns=columns))
    assert [row.method for row in rows] == list(results.methods)
    for row in rows:
        assert math.isnan(row.earned["whole"].share)
        assert math.isnan(row.earned["whole"].standard_error)


def test_comparison_needs_the_ceiling(rng):
    results = judged_results(rng)
    columns = {k: v[results.columns["method"] != "ceiling"] for k, v in results.columns.items()}
    with pytest.raises(InputError, match=r"ceiling.*plain, certified") as caught:
        compared(replace(results, columns=columns))
    one_sentence(caught)


def test_comparison_keeps_seed_goal_and_world():
    german = EXPERIMENTS["german"]
    changed = comparison(replace(german, seed=4, vary={"alpha": (0.1, 0.2)}))
    assert changed.methods == COMPARED
    assert set(COMPARED) <= {*METHODS, *REFERENCES}
    assert changed.judged
    assert changed.vary == {}
    assert (changed.seed, changed.goal, changed.world) == (4, german.goal, german.world)


def test_chosen_methods_are_compared_with_the_ceiling():
    german, known = EXPERIMENTS["german"], ("logistic-all-labels", "ceiling")
    assert comparison(german, ("greedy-aligned", "plain")).methods == (
        *("greedy-aligned", "plain"),
        *known,
    )
    assert comparison(german, ("ceiling", "plain")).methods == ("ceiling", "plain", known[0])
    assert comparison(german, ("plain", "usual", "own:method", "plain")).methods == (
        *("plain", "plain-unweighted"),
        *COMPARED[2:],
        "own:method",
    )
    assert set(comparison(german, ("not-deep",)).methods) >= set(COMPARED)


def test_methods_without_probabilities_are_listed(rng):
    results = judged_results(rng)
    assert find_unjudged(results) == []
    columns = dict(results.columns)
    plain = columns["method"] == "plain"
    columns["p_accepted"] = np.where(plain, np.nan, columns["p_accepted"])
    assert find_unjudged(replace(results, columns=columns)) == ["plain"]
    columns["n_people"] = np.where(plain, 0, columns["n_people"])  # it always failed
    assert find_unjudged(replace(results, columns=columns)) == []


GERMAN = WorldSpec("german", "sex", n_batch=150, n_rounds=4)
CELLS = FiniteDomain(
    [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [2.0, 0.5]],
    ["a", "a", "b", "b", "a"],
    mass=[4, 2, 3, 1, 2],
    good=[0.3, 0.6, 0.7, 0.9, 0.97],
)


def in_order(X, group, outcome):
    rows = [
        (*x, z, y) for x, z, y in zip(X.tolist(), group.tolist(), outcome.tolist(), strict=True)
    ]
    return sorted(rows)


@pytest.mark.parametrize("scaling", ["history", "stream", "none"])
def test_population_of_a_data_set_equals_its_stream(scaling):
    """A data set that is cut into parts appears completely in the stream."""
    table, spec = load("german"), WorldSpec("german", "sex", n_parts=5, scaling=scaling)
    world = spec.build(table, 7)
    population = world.population()
    stream = [world.full_history(), *(batch.applicants for batch in world.batches())]
    arrived = [
        np.concatenate(parts)
        for parts in zip(*((s.people.X, s.people.group, s.outcome) for s in stream), strict=True)
    ]
    population_rows = population.people.X, population.people.group, population.good.astype(int)
    assert in_order(*population_rows) == in_order(*arrived)
    assert population.mass.tolist() == [1 / 1000] * 1000


def test_populations_of_finite_domains_and_of_others():
    spec = WorldSpec("cells", n_batch=50, n_rounds=2)
    cells = spec.build(CELLS, 3).population()
    assert np.array_equal(cells.people.X, CELLS.X)
    assert np.array_equal(cells.mass, CELLS.mass)
    assert np.array_equal(cells.good, CELLS.good)
    lender = WorldSpec("lender", n_batch=50, n_rounds=2)
    first, second = (lender.build(Lender(), seed).population() for seed in (1, 2))
    assert np.array_equal(first.people.X, second.people.X)
    assert np.array_equal(first.good, Lender().probability_good(first.people))
    assert first.mass.sum() == pytest.approx(1)
    fresh = Lender().draw(400_000, np.random.default_rng(0))
    assert first.good.mean() == pytest.approx(Lender().probability_good(fresh).mean(), abs=0.006)


class Fixed:
    """Accepts people with given probabilities."""

    def __init__(self, p):
        self.p = p

    def acceptance_probability(self, X, *, sensitive_features=None):
        return self.p


def test_shares_equal_a_loop_over_people(rng):
    population = WorldSpec("lender", n_batch=9, n_rounds=1).build(Lender(), 0).population()
    n = len(population.people)
    p, segment = rng.random(n), rng.integers(3, size=n)
    expected = np.zeros((3, 4))
    for i in range(n):
        mass, good = population.mass[i], population.mass[i] * population.good[i]
        expected[segment[i]] += mass, good, mass * p[i], good * p[i]
    assert judge(Fixed(p), population, segment, 3) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["certified", "plain", "plug-in"])
def test_fdr_of_a_policy_equals_a_simulation(name):
    """Compare the last policy with 200,000 simulated people, within four standard errors."""
    spec = WorldSpec("cells", n_batch=300, n_rounds=4, past=({"rule": "random", "rate": 0.5},))
    world = spec.build(CELLS, 5)
    method = build(name, world, Setup(world.history(), Goal(loss=200.0), True, 1, n_rounds=4))
    for _ in run(method, world):
        pass
    population = world.population()
    segment = (population.people.group == "b").astype(int)
    people, good, accepted, both = judge(method, population, segment, 2).sum(axis=0)
    assert (people, good) == pytest.approx((1, CELLS.base_rate))
    rng = np.random.default_rng(2)
    drawn = CELLS.draw(200_000, rng)
    outcome = rng.random(200_000) < CELLS.probability_good(drawn)
    p = method.acceptance_probability(drawn.X, sensitive_features=drawn.group)
    taken = rng.random(200_000) < p
    assert taken.mean() == pytest.approx(accepted, abs=4 * np.sqrt(0.25 / 200_000))
    fdr = 1 - both / accepted
    error = np.sqrt(fdr * (1 - fdr) / taken.sum())
    assert 1 - outcome[taken].mean() == pytest.approx(fdr, abs=4 * error)
    assert error < 0.01


@pytest.fixture(scope="module")
def judged():
    experiment = Experiment("x", GERMAN, COMPARED, repetitions=1, judged=True)
    return experiment, run_repetition(experiment, load("german"), 0)


def test_judging_changes_no_decision(judged):
    experiment, results = judged
    without = run_repetition(replace(experiment, judged=False), load("german"), 0)
    assert list(results.columns) == [*KEYS, *COUNTS, *SHARES]
    assert list(without.columns) == [*KEYS, *COUNTS]
    for name in (*KEYS, *COUNTS):
        assert results.columns[name].tolist() == without.columns[name].tolist()
    assert results.certificates == without.certificates


def test_every_compared_method_can_be_judged(judged):
    _, results = judged
    table = load("german")
    for name in SHARES:
        assert np.isfinite(results.columns[name]).all()
    female = results.columns["group"] == "female"
    in_group = table.group == "female"
    assert results.columns["p_people"][female] == pytest.approx(in_group.mean())
    assert results.columns["p_good"][female] == pytest.approx(
        (in_group & (table.outcome == 1)).mean()
    )
    assert results.shape == (1, len(COMPARED), 1, 4, 2)


class Asked(Spy):
    """Keeps the inputs of ``acceptance_probability``, which it may not change."""

    asked: list

    def acceptance_probability(self, X, *, sensitive_features=None):
        if not hasattr(self, "asked"):
            self.asked = []
        self.asked.append((X, sensitive_features))
        with pytest.raises(ValueError, match="read-only"):
            X[0] = 0
        return np.full(len(X), 0.25)


def test_methods_get_features_and_groups_only_and_may_lack_probabilities(monkeypatch):
    built = []
    monkeypatch.setitem(METHODS, "asked", ("Asked", lambda s: built.append(Asked(s)) or built[-1]))
    monkeypatch.setitem(METHODS, "silent", ("Silent", Spy))
    table = numbered_people()
    experiment = Experiment("x", SPEC, ("asked", "silent"), judged=True)
    columns = run_repetition(experiment, table, 0).columns
    asked = columns["method"] == "asked"
    assert len(built[0].asked) == 4
    for X, group in built[0].asked:
        assert X.shape == table.X.shape
        assert np.array_equal(group, table.group)
    assert columns["p_accepted"][asked] == pytest.approx(columns["p_people"][asked] / 4)
    assert np.isnan(columns["p_accepted"][~asked]).all()
    assert np.isfinite(columns["p_people"][~asked]).all()


@pytest.mark.parametrize("p", [np.full(200, 1.5), np.full(3, 0.5), np.full(200, np.nan)])
def test_invalid_probabilities_are_rejected(p):
    population = SPEC.build(numbered_people(), 0).population()
    with pytest.raises(InputError, match="Fixed") as caught:
        judge(Fixed(p), population, np.zeros(200, int), 1)
    one_sentence(caught)


def test_drifting_worlds_cannot_be_judged():
    spec = replace(GERMAN, drift={"feature": "age", "spoil": 0.01})
    with pytest.raises(InputError, match="drift") as caught:
        check_world(Experiment("x", spec, ("plain",), judged=True), load("german"))
    one_sentence(caught)


def test_resumed_run_writes_the_same_bytes(tmp_path):
    small = WorldSpec("cells", n_batch=80, n_rounds=3)
    experiment = Experiment(
        "x",
        small,
        ("certified", "ceiling"),
        vary={"alpha": (0.15, 0.3)},
        repetitions=4,
        judged=True,
    )
    whole = run_experiment(experiment, CELLS, Run(tmp_path / "whole", 1))
    part = tmp_path / "part"
    run_experiment(replace(experiment, repetitions=2), CELLS, Run(part, 1))
    resumed = run_experiment(experiment, CELLS, Run(part, 2))
    for name in ("results.parquet", "settings.json"):
        assert (part / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    again = read_results(part)
    assert again.certificates == resumed.certificates == whole.certificates
    assert len(again.certificates) == 2 * 3  # α, rounds; of the first repetition only
    assert np.array_equal(population_fdr(again), population_fdr(whole), equal_nan=True)
    assert again.shape == (2, 2, 4, 3, 2)


def test_results_without_shares():
    small = WorldSpec("lender", n_batch=80, n_rounds=2)
    results = run_experiment(
        Experiment("x", small, ("opt-offline",), repetitions=1), Lender(), Run(jobs=1)
    )
    assert not results.judged
    with pytest.raises(InputError, match="judged = true") as caught:
        population_fdr(results)
    one_sentence(caught)
