"""Methods by name: every one runs, and is what its name says."""

from __future__ import annotations

import numpy as np
import pytest

from lab.experiments.test_spec import one_sentence
from secondlook.errors import InputError
from secondlook.lab.datasets import load
from secondlook.lab.experiments.methods import (
    ABLATIONS,
    BASELINES,
    METHODS,
    VARIANTS,
    Setup,
    build,
    label,
)
from secondlook.lab.experiments.paper import DEFAULT_METHODS
from secondlook.lab.experiments.repetition import run_repetition
from secondlook.lab.experiments.results import COUNTS
from secondlook.lab.experiments.spec import Experiment, Goal
from secondlook.lab.experiments.world_spec import WorldSpec
from secondlook.lab.simulate.populations import Lender
from secondlook.lab.simulate.run import run

LENDER = WorldSpec("lender", n_batch=150, n_rounds=3, past=({"rule": "policy"},))


def make_setup(world, **goal):
    return Setup(world.history(), Goal(**goal), True, 11)


@pytest.fixture(scope="module")
def world():
    return LENDER.build(Lender(), 2)


def after_rounds(name, world, **goal):
    """Return a method that has been through a world, and what it decided."""
    method = build(name, world, make_setup(world, **goal))
    return method, [result.decided for result in run(method, world)]


@pytest.mark.parametrize("name", DEFAULT_METHODS)
def test_every_method_runs_on_a_data_set(name):
    spec = WorldSpec("german", "sex", n_batch=120, n_rounds=3)
    columns = run_repetition(Experiment("x", spec, (name,)), load("german"), 0).columns
    assert set(columns["method"]) == {name}
    assert columns["round"].tolist() == [1, 1, 2, 2, 3, 3]
    assert columns["group"].tolist() == ["female", "male"] * 3
    people = columns["n_people"].reshape(3, 2)
    assert people.sum(axis=1).tolist() == [120] * 3
    for part, whole in (
        ("n_good", "n_people"),
        ("n_accepted", "n_people"),
        ("n_accepted_good", "n_accepted"),
        ("n_accepted_good", "n_good"),
        ("n_explored", "n_accepted"),
        ("n_explored_good", "n_explored"),
        ("n_exploit_region", "n_people"),
    ):
        assert np.all(columns[part] <= columns[whole]), (part, whole)
    assert all(np.all(columns[count] >= 0) for count in COUNTS)
    assert columns["n_accepted"].sum() > 0


@pytest.mark.parametrize("name", ["no-exploration", "alpha-at-once", "fair-clf"])
def test_what_does_not_explore_explores_nobody(name, world):
    assert not any(one.explored.any() for one in after_rounds(name, world)[1])


@pytest.mark.parametrize("name", VARIANTS)
def test_variants_explore(name, world):
    assert any(one.explored.any() for one in after_rounds(name, world)[1])


def test_alpha_over_the_rounds(world):
    rising = [0.075, 0.075 * 2**0.2, 0.075 * 3**0.2]
    names = (*VARIANTS, "plain-unweighted", "no-exploration", "fair-clf-schedule")
    want = dict.fromkeys(names, rising)
    want |= dict.fromkeys(("alpha-at-once", "fair-clf"), [0.15] * 3)
    ladders = {name for name in METHODS if name.startswith("certified")} | {"plug-in"}
    assert set(want) == set(METHODS) - ladders - set(BASELINES)
    for name, alphas in want.items():
        method, _ = after_rounds(name, world)
        assert [one.alpha_exploit for one in method.rounds_] == pytest.approx(alphas), name


def test_rows_are_weighted_unless_the_name_says_not(world):
    weights = {name: after_rounds(name, world)[0].weights for name in (*VARIANTS, *ABLATIONS)}
    assert set(weights.values()) == {"acceptance"}
    unweighted, decided = after_rounds("plain-unweighted", world)
    assert unweighted.weights == "none"
    assert type(unweighted.strategy) is type(after_rounds("plain", world)[0].strategy)
    assert any(one.explored.any() for one in decided)


def test_variants_are_fair_where_they_say(world):
    """Fair exploration draws each group by its share of the explore region."""
    for name in VARIANTS:
        method, decided = after_rounds(name, world, difference=0.02)
        constraint = method.fairness or getattr(method.learner, "fairness", None)
        assert (constraint is not None) == (name in ("exploit-fair", "both-fair"))
        assert constraint is None or constraint.difference == 0.02
        groups = [one.applicants.people.group for one in world.batches()]
        gaps = []
        for one, group in zip(decided, groups, strict=True):
            explore, total = ~one.exploit, one.propensity[~one.exploit].sum()
            in_b = group[explore] == "B"
            if total > 0 and 0 < in_b.sum() < in_b.size:
                share = one.propensity[explore][in_b].sum() / total
                gaps.append(abs(share - in_b.mean()))
        assert gaps
        by_share = max(gaps) < 1e-9
        assert by_share == (name in ("explore-fair", "both-fair"))


def test_goals_reach_the_methods(world):
    goal = {"alpha": 0.2, "gain": 10.0, "loss": 70.0, "threshold": 0.7, "slack": 0.004}
    for name in (*VARIANTS, *ABLATIONS):
        method, _ = after_rounds(name, world, min_selection_rate=0.1, **goal)
        assert (method.utility.gain_good, method.utility.gain_bad) == (10.0, -70.0)
        assert method.coverage.threshold == 0.7
        assert (method.budget.alpha, method.budget.slack) == (0.2, 0.004)
        assert method.budget.min_selection_rate == 0.1


def test_a_variant_with_alpha_exploit_held_constant(world):
    method, _ = after_rounds("explore-fair@0.12", world)
    assert [one.alpha_exploit for one in method.rounds_] == [0.12] * 3
    plain, _ = after_rounds("explore-fair", world)
    assert type(method.strategy) is type(plain.strategy)
    assert label("explore-fair@0.12") == "Algorithm 1, fair exploration, α_exploit = 0.12"


OWN = """
import numpy as np
from secondlook.core.decisions import Decisions

SETUPS = []

class AcceptAll:
    def decide(self, X, *, sensitive_features=None, ids=None):
        yes = np.ones(len(X), bool)
        return Decisions(np.arange(len(X)), yes, yes, yes * 1.0, yes * 1.0, 1)

    def observe(self, ids, outcomes):
        pass

def make(setup):
    SETUPS.append(setup)
    return AcceptAll()
"""


def test_a_method_of_ones_own(tmp_path, monkeypatch):
    (tmp_path / "own_method_of_a_test.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    name = "own_method_of_a_test:make"
    columns = run_repetition(Experiment("x", LENDER, (name, "plain")), Lender(), 3).columns
    mine = columns["method"] == name
    assert np.array_equal(columns["n_accepted"][mine], columns["n_people"][mine])
    assert np.array_equal(columns["n_good"][mine], columns["n_good"][~mine])
    import own_method_of_a_test as own  # noqa: PLC0415 (only there now)

    (setup,) = own.SETUPS
    assert np.isnan(setup.past.outcomes[~setup.past.accepted]).all()
    assert setup.goal == Goal()
    assert label(name) == name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("plian", "there is no method 'plian'; known are plain, .*module:function for your own"),
        ("explore-fair@", "there is no method 'explore-fair@'"),
        ("fair-clf@0.1", "there is no method 'fair-clf@0.1'"),
        ("explore-fair@much", "needs a number after the @, such as explore-fair@0.13"),
        ("explore-fair@0.15", r"must be in \(0, alpha\) = \(0, 0.15\), got 0.15; lower it"),
        ("no_such_module_at_all:f", "cannot be imported: .*name it module:function"),
        ("math:no_such_function", "cannot be imported: .*name it module:function"),
    ],
)
def test_an_unknown_method_is_refused_in_one_sentence(world, name, words):
    with pytest.raises(InputError, match=words) as error:
        build(name, world, make_setup(world))
    one_sentence(error)


def test_labels_tell_methods_apart():
    assert len({label(name) for name in DEFAULT_METHODS}) == len(DEFAULT_METHODS)


@pytest.mark.parametrize("name", [":f", ".x:f", "os:path"])
def test_what_is_no_function_of_a_setup_is_refused_in_one_sentence(world, name):
    with pytest.raises(InputError) as error:
        build(name, world, make_setup(world))
    assert name in one_sentence(error)
