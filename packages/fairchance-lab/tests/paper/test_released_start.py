"""Deviations A of the released code: what is known at the start."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from experiments.spies import Spy, numbered_people
from fairchance_lab.datasets import load
from fairchance_lab.experiments.methods import METHODS, Setup
from fairchance_lab.experiments.repetition import run_repetition
from fairchance_lab.experiments.spec import Experiment, Goal
from fairchance_lab.experiments.world_spec import WorldSpec
from fairchance_lab.paper.released.setup import released_setup, released_world
from paper.released_worlds import GERMAN, LENDER, lender_setup, on


def spied(spies, switches, number, spec=GERMAN, source=None):
    """Return the spy of a repetition."""
    spies.clear()
    table = load("german") if source is None else source
    run_repetition(Experiment("x", spec, ("spy",), switches=switches), table, number)
    return spies[0]


@pytest.fixture
def spies(monkeypatch):
    built = []

    def make(setup):
        built.append(Spy(setup))
        return built[-1]

    monkeypatch.setitem(METHODS, "spy", ("Spy", make))
    return built


def test_a1_reveals_all_outcomes_of_the_history(spies):
    table = numbered_people()
    spec = WorldSpec("numbered", n_batch=80, n_rounds=2, past=({"rule": "random", "rate": 0.4},))
    for switches in ((), ("A1",)):
        past = spied(spies, switches, 0, spec, table).setup.past
        numbers = past.people.X[:, 0].astype(int)
        known = ~np.isnan(past.outcomes)
        assert known.all() == past.accepted.all() == (switches == ("A1",))
        assert np.array_equal(past.outcomes[known], table.outcome[numbers[known]])


def test_a1_alone_keeps_a_past_policy_that_imitates_past_decisions():
    world, setup = lender_setup()
    changed = released_setup(setup, world, on("A1"))
    chance = changed.past_policy(setup.past.people.X)
    accepted = setup.past.accepted
    assert chance[accepted].mean() > chance[~accepted].mean() + 0.2
    assert chance.mean() == pytest.approx(accepted.mean(), abs=0.01)
    assert setup.past_policy is None


@pytest.mark.parametrize("known", [(), ("A1",)])
def test_a3_fits_the_past_policy_to_outcomes_and_drops_its_intercept(known):
    world = GERMAN.build(load("german"), 3)
    setup = Setup(world.history(), Goal(), False, 0)
    policy = released_setup(setup, world, on("A3", *known)).past_policy
    X, accepted = setup.past.people.X, setup.past.accepted
    good = world.full_history().outcome == 1
    labels = good if known else good & accepted
    fit = LogisticRegression(class_weight="balanced").fit(X, labels)
    assert abs(fit.intercept_[0]) > 0.05
    assert policy(X) == pytest.approx(expit(X @ fit.coef_[0]))
    assert policy(np.zeros((1, X.shape[1]))) == pytest.approx([0.5])
    appended = np.column_stack([X, np.ones(len(X))])
    assert np.array_equal(policy(appended), policy(X))


def test_a7_scales_by_all_rounds():
    table = load("german")
    scaled = [i for i, name in enumerate(table.features) if name not in table.unscaled]
    for switches, of_all in ((on(), False), (on("A7"), True)):
        spec, source = released_world(GERMAN, table, switches, 0)
        world = spec.build(source, 4)
        first = world.full_history().people.X[:, scaled]
        batches = [batch.applicants.people.X[:, scaled] for batch in world.batches()]
        whole = np.concatenate([first, *batches])
        for part, is_standard in ((whole, of_all), (first, not of_all)):
            close = np.allclose(part.mean(0), 0, atol=1e-9) and np.allclose(part.std(0), 1)
            assert close == is_standard


def test_a8_drops_one_per_cent():
    table = load("german")
    spec, source = released_world(replace(GERMAN, n_batch=500), table, on("A8"), 0)
    world = spec.build(source, 0)
    sizes = [len(world.full_history()), *(len(batch.applicants) for batch in world.batches())]
    assert sizes == [495] * 5
    spec, source = released_world(
        replace(GERMAN, n_parts=40, n_batch=None, n_rounds=None), table, on("A8"), 0
    )
    assert len(source) == 990
    assert sum(len(batch.applicants) for batch in spec.build(source, 0).batches()) > 900


def seen_by(spy):
    """Return the people of S_0 and of each batch."""
    history = spy.setup.past.people.X[:, 0].astype(int).tolist()
    return [history, *(numbers.tolist() for numbers, _, _ in spy.batches)]


def test_a9_shares_one_resample_between_repetitions(spies):
    table = numbered_people()
    spec = WorldSpec("numbered", n_batch=100, n_rounds=5, past=({"rule": "random", "rate": 0.5},))
    for switches, shared in (((), False), (("A9",), True)):
        streams = [seen_by(spied(spies, switches, number, spec, table)) for number in (0, 1)]
        assert [len(part) for part in streams[0]] == [100] * 6
        people = [Counter(person for part in stream for person in part) for stream in streams]
        assert (people[0] == people[1]) == shared
        assert streams[0] != streams[1]


def test_a8_and_a9_together():
    spec = WorldSpec("german", "sex", n_batch=500, n_rounds=39)
    both, source = released_world(spec, load("german"), on("A8", "A9"), 7)
    _, again = released_world(spec, load("german"), on("A8", "A9"), 7)
    assert len(source) == 19_800
    assert source.fingerprint == again.fingerprint
    world = both.build(source, 0)
    sizes = [len(world.full_history()), *(len(batch.applicants) for batch in world.batches())]
    assert sizes == [495] * 40


def test_a1_if_the_past_accepted_everyone():
    spec = replace(LENDER, past=({"rule": "everybody"},))
    world, setup = lender_setup(0, spec)
    assert released_setup(setup, world, on("A1")).past.accepted.all()
