"""Policies judged on whole populations: who they are, what is computed, and what stays hidden."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lab.experiments.test_repetition import SPEC, Spy, numbered_people
from lab.experiments.test_spec import one_sentence
from secondlook.errors import InputError
from secondlook.lab.datasets import load
from secondlook.lab.experiments.comparison import COMPARED, WholePopulation, judge, population_fdr
from secondlook.lab.experiments.methods import METHODS, Setup, build
from secondlook.lab.experiments.repetition import check_world, run_repetition
from secondlook.lab.experiments.results import COUNTS, KEYS, SHARES, read_results
from secondlook.lab.experiments.runner import Run, run_experiment
from secondlook.lab.experiments.spec import Experiment, Goal
from secondlook.lab.experiments.world_spec import WorldSpec
from secondlook.lab.simulate.finite import FiniteDomain
from secondlook.lab.simulate.populations import Lender
from secondlook.lab.simulate.run import run

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
def test_everybody_of_a_data_set_looks_as_in_the_world(scaling):
    """Cut into parts, a data set's people all come: the stream is the population."""
    table, spec = load("german"), WorldSpec("german", "sex", n_parts=5, scaling=scaling)
    world, population = spec.build(table, 7), WholePopulation.of(spec, table, 7)
    stream = [world.full_history(), *(one.applicants for one in world.batches())]
    came = [
        np.concatenate(parts)
        for parts in zip(*((s.people.X, s.people.group, s.outcome) for s in stream), strict=True)
    ]
    mine = population.people.X, population.people.group, population.good.astype(int)
    assert in_order(*mine) == in_order(*came)
    assert population.mass.tolist() == [1 / 1000] * 1000


def test_a_finite_domain_is_its_own_population_and_others_are_drawn_once():
    spec = WorldSpec("cells", n_batch=50, n_rounds=2)
    cells = WholePopulation.of(spec, CELLS, 3)
    assert np.array_equal(cells.people.X, CELLS.X)
    assert np.array_equal(cells.mass, CELLS.mass)
    assert np.array_equal(cells.good, CELLS.good)
    lender = WorldSpec("lender", n_batch=50, n_rounds=2)
    one, two = (WholePopulation.of(lender, Lender(), seed) for seed in (1, 2))
    assert np.array_equal(one.people.X, two.people.X)
    assert np.array_equal(one.good, Lender().probability_good(one.people))
    assert one.mass.sum() == pytest.approx(1)
    fresh = Lender().draw(400_000, np.random.default_rng(0))
    assert one.good.mean() == pytest.approx(Lender().probability_good(fresh).mean(), abs=0.006)


class Says:
    """Accepts population with a probability of their own."""

    def __init__(self, p):
        self.p = p

    def acceptance_probability(self, X, *, sensitive_features=None):
        return self.p


def test_shares_are_sums_person_by_person(rng):
    population = WholePopulation.of(WorldSpec("lender", n_batch=9, n_rounds=1), Lender(), 0)
    n = len(population.people)
    p, segment = rng.random(n), rng.integers(3, size=n)
    want = np.zeros((3, 4))
    for i in range(n):
        mass, good = population.mass[i], population.mass[i] * population.good[i]
        want[segment[i]] += mass, good, mass * p[i], good * p[i]
    assert judge(Says(p), population, segment, 3) == pytest.approx(want)


@pytest.mark.parametrize("name", ["certified", "plain", "plug-in"])
def test_a_deployed_policy_has_the_fdr_that_many_draws_show(name):
    """The last policy against 200,000 people with coins and outcomes; four standard errors."""
    spec = WorldSpec("cells", n_batch=300, n_rounds=4, past=({"rule": "random", "rate": 0.5},))
    world = spec.build(CELLS, 5)
    method = build(name, world, Setup(world.history(), Goal(loss=200.0), True, 1, n_rounds=4))
    for _ in run(method, world):
        pass
    population = WholePopulation.of(spec, CELLS, 5)
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
    assert error < 0.005


@pytest.fixture(scope="module")
def judged():
    experiment = Experiment("x", GERMAN, COMPARED, repetitions=1, judged=True)
    return experiment, run_repetition(experiment, load("german"), 0)


def test_being_judged_changes_no_decision(judged):
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
    mine = table.group == "female"
    assert results.columns["p_people"][female] == pytest.approx(mine.mean())
    assert results.columns["p_good"][female] == pytest.approx((mine & (table.outcome == 1)).mean())
    assert results.shape == (1, len(COMPARED), 1, 4, 2)


class Told(Spy):
    """Keeps what it is asked about; may not change it."""

    asked: list

    def acceptance_probability(self, X, *, sensitive_features=None):
        if not hasattr(self, "asked"):
            self.asked = []
        self.asked.append((X, sensitive_features))
        with pytest.raises(ValueError, match="read-only"):
            X[0] = 0
        return np.full(len(X), 0.25)


def test_a_method_is_asked_about_features_and_groups_and_can_stay_silent(monkeypatch):
    built = []
    monkeypatch.setitem(METHODS, "told", ("Told", lambda s: built.append(Told(s)) or built[-1]))
    monkeypatch.setitem(METHODS, "silent", ("Silent", Spy))
    table = numbered_people()
    experiment = Experiment("x", SPEC, ("told", "silent"), judged=True)
    columns = run_repetition(experiment, table, 0).columns
    told = columns["method"] == "told"
    assert len(built[0].asked) == 4
    for X, group in built[0].asked:
        assert X.shape == table.X.shape
        assert np.array_equal(group, table.group)
    assert columns["p_accepted"][told] == pytest.approx(columns["p_people"][told] / 4)
    assert np.isnan(columns["p_accepted"][~told]).all()
    assert np.isfinite(columns["p_people"][~told]).all()


@pytest.mark.parametrize("p", [np.full(200, 1.5), np.full(3, 0.5), np.full(200, np.nan)])
def test_what_is_no_probability_is_refused(p):
    population = WholePopulation.of(SPEC, numbered_people(), 0)
    with pytest.raises(InputError, match=r"one number in \[0, 1\] per person.*from Says") as no:
        judge(Says(p), population, np.zeros(200, int), 1)
    one_sentence(no)


def test_a_world_that_drifts_has_no_one_population():
    spec = replace(GERMAN, drift={"feature": "age", "spoil": 0.01})
    with pytest.raises(InputError, match=r"spoil.*set judged to false") as no:
        check_world(Experiment("x", spec, ("plain",), judged=True), load("german"))
    one_sentence(no)


def test_a_run_that_stopped_goes_on_with_the_same_bytes(tmp_path):
    small = WorldSpec("cells", n_batch=80, n_rounds=3)
    experiment = Experiment(
        "x", small, ("certified", "opt-hindsight"), alphas=(0.15, 0.3), repetitions=4, judged=True
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


def test_results_that_were_not_judged_say_so():
    small = WorldSpec("lender", n_batch=80, n_rounds=2)
    results = run_experiment(
        Experiment("x", small, ("opt-offline",), repetitions=1), Lender(), Run(jobs=1)
    )
    assert not results.judged
    with pytest.raises(InputError, match="judged = true") as no:
        population_fdr(results)
    one_sentence(no)
