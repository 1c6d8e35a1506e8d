"""Experiments as data, and the paper's experiments."""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace

import pytest

from secondlook.errors import InputError
from secondlook.lab.experiments.methods import (
    ALGORITHM1,
    BASELINES,
    METHODS,
    REFERENCES,
    SETS,
    make_classifier,
)
from secondlook.lab.experiments.paper import (
    ALPHAS,
    DEFAULT_METHODS,
    EXPERIMENTS,
    alpha_sweep,
    paper_experiment,
)
from secondlook.lab.experiments.repetition import run_repetition
from secondlook.lab.experiments.spec import Experiment, Goal
from secondlook.lab.experiments.world_spec import WorldSpec
from secondlook.lab.simulate.populations import Lender

SMALL = WorldSpec("lender", n_batch=80, n_rounds=3, past=({"rule": "policy"},))


def one_sentence(error):
    """Return the message of an error after checking that it is one sentence."""
    text = str(error.value if hasattr(error, "value") else error)
    assert "\n" not in text, text
    assert text[-1] in ".?", text
    assert not re.search(r"[a-z)\]'\"]{2}\. [A-Z]", text), text
    return text


def experiment(**options):
    return Experiment(**{"name": "x", "world": SMALL, "methods": ("plain",)} | options)


def test_sweep_schedules_half_of_each_bound(monkeypatch):
    built = []

    def keep(setup):
        built.append((setup.goal.alpha, METHODS["plain"][1](setup)))
        return built[-1][1]

    monkeypatch.setitem(METHODS, "kept", ("Kept", keep))
    swept = alpha_sweep(experiment(methods=("kept",)))
    assert swept.alphas == ALPHAS == (0.05, 0.10, 0.15, 0.20, 0.25, 0.30)
    columns = run_repetition(swept, Lender(), 0).columns
    assert list(dict.fromkeys(columns["alpha"].tolist())) == list(ALPHAS)
    assert [alpha for alpha, _ in built] == list(ALPHAS)
    for alpha, classifier in built:
        expected = [min(alpha / 2 * t**0.2, alpha - 0.001 - 0.01) for t in (1, 2, 3)]
        assert [record.alpha_exploit for record in classifier.rounds_] == pytest.approx(expected)


def test_sweep_keeps_all_other_settings():
    swept = alpha_sweep(EXPERIMENTS["german"])
    assert swept.methods == DEFAULT_METHODS
    assert replace(swept, name="german", alphas=()) == EXPERIMENTS["german"]
    assert [goal.alpha for goal in swept.goals] == list(ALPHAS)
    for goal in swept.goals:
        assert replace(goal, alpha=0.15) == Goal()


def test_defaults_are_the_papers_values():
    assert EXPERIMENTS["german"].world.n_rounds == 39
    assert EXPERIMENTS["german"].world.n_batch == 500
    assert {EXPERIMENTS[f"adult-{by}"].world.n_parts for by in ("race", "gender")} == {40}
    assert {experiment.repetitions for experiment in EXPERIMENTS.values()} == {50}
    goal = Goal()
    assert (goal.alpha, goal.gain, goal.loss) == (0.15, 200, 500)
    budget = make_classifier(ALGORITHM1["plain"], goal, {}).budget
    assert (budget.slack, budget.alpha_exploit(1)) == (0.001, 0.075)
    left_out = {"certified-within-group", "certified-per-group", "plug-in"}
    left_out |= {"plain-searched", "plain-unweighted"}
    left_out |= {*SETS["parity"]} - {"plain", "exploit-fair", "fair-clf"}
    assert set(DEFAULT_METHODS) == {*METHODS, *REFERENCES} - left_out - {*BASELINES}


def test_another_data_set_keeps_all_other_settings():
    other = paper_experiment("adult-race", "acs:PA+MA+IN:2024")
    assert other.world == replace(EXPERIMENTS["adult-race"].world, data="acs:PA+MA+IN:2024")
    assert "acs:PA+MA+IN:2024" in other.name
    assert other.goal == Goal()
    assert paper_experiment("adult-race", "compas").goal == Goal(alpha=0.3, gain=1.0, loss=1.0)
    assert paper_experiment("german", "german") == EXPERIMENTS["german"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: paper_experiment("germany"), "known are german, adult-race, adult-gender"),
        (lambda: paper_experiment("german", "fico"), "leave the data out"),
        (lambda: experiment(repetitions=0), "repetitions must be 1 or more, got 0"),
        (lambda: experiment(methods=()), "at least one method"),
        (lambda: experiment(methods=("plain", "yang", "plain")), r"got \['plain'\]"),
        (lambda: experiment(classifier={"wieght_cap": 3}), "did you mean weight_cap"),
        (lambda: experiment(classifier={"alpha": 0.1}), r"it belongs in \[goal\]"),
        (lambda: experiment(classifier={"q": 1}), "known are .*coverage"),
        (lambda: experiment(classifier={"weight_cap": "no"}), "number, or one of 'none', got 'no'"),
        (lambda: experiment(variants={"m": {"slack": 0}}), r"\[variants.m\] needs method"),
        (lambda: experiment(variants={"m": {"method": "plain", "q": 1}}), r"\[variants.m\] has"),
        (lambda: experiment(segments="town"), "must be 'group' or 'past', got 'town'"),
    ],
)
def test_invalid_experiments_are_rejected(make, message):
    with pytest.raises(InputError, match=message) as error:
        make()
    one_sentence(error)


def test_experiment_as_plain_data():
    original = experiment(alphas=(0.1, 0.2), switches=("C1",))
    data = original.as_dict()
    assert json.loads(json.dumps(data)) == data
    assert data["world"]["n_batch"] == 80
    assert data["goal"]["alpha"] == 0.15


def test_fingerprint():
    original = experiment()
    assert replace(original, name="y", repetitions=7).fingerprint == original.fingerprint
    changed = {
        "world": replace(SMALL, n_batch=81),
        "methods": ("no-exploration",),
        "goal": Goal(loss=499.0),
        "classifier": {"weight_cap": 5},
        "variants": {"mine": {"method": "plain"}},
        "alphas": (0.2,),
        "seed": 1,
        "switches": ("C2",),
        "published": "german_gender",
        "segments": "past",
        "focus": "B",
        "judged": True,
    }
    assert set(changed) == {field.name for field in fields(Experiment)} - {"name", "repetitions"}
    prints = {replace(original, **{name: value}).fingerprint for name, value in changed.items()}
    assert len(prints | {original.fingerprint}) == 1 + len(changed)


def test_sweep_keeps_all_methods():
    named = ("plain", "explore-fair@0.12", "my_module:function", "plian")
    assert alpha_sweep(experiment(methods=named)).methods == named
