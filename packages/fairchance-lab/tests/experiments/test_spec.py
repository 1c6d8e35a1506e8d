"""Experiments as data, and the paper's experiments."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import numpy as np
import pytest

from fairchance.errors import InputError
from fairchance.simulate.populations import Lender
from fairchance_lab.experiments.methods import (
    ALGORITHM1,
    BASELINES,
    METHODS,
    REFERENCES,
    SETS,
    check_options,
    find_main,
    find_once,
    make_classifier,
)
from fairchance_lab.experiments.repetition import run_repetition
from fairchance_lab.experiments.spec import Experiment, Goal
from fairchance_lab.experiments.world_spec import WorldSpec
from fairchance_lab.paper.experiment import (
    DEFAULT_METHODS,
    EXPERIMENTS,
    paper_experiment,
)
from sentences import one_sentence

SMALL = WorldSpec("lender", n_batch=80, n_rounds=3, past=({"rule": "policy"},))


def experiment(**options):
    return Experiment(**{"name": "x", "world": SMALL, "methods": ("plain",)} | options)


def test_sweep_schedules_half_of_each_bound(monkeypatch):
    built = []

    def keep(setup):
        built.append((setup.goal.alpha, METHODS["plain"][1](setup)))
        return built[-1][1]

    monkeypatch.setitem(METHODS, "kept", ("Kept", keep))
    alphas = (0.05, 0.15, 0.30)
    varied = experiment(methods=("kept",), vary={"alpha": alphas})
    columns = run_repetition(varied, Lender(), 0).columns
    assert list(dict.fromkeys(columns["setting"].tolist())) == ["α = 0.05", "α = 0.15", "α = 0.3"]
    assert [alpha for alpha, _ in built] == list(alphas)
    for alpha, classifier in built:
        expected = [min(alpha / 2 * t**0.2, alpha - 0.001 - 0.01) for t in (1, 2, 3)]
        assert [record.alpha_exploit for record in classifier.rounds_] == pytest.approx(expected)


COUNTED = ("n_people", "n_accepted", "n_accepted_good", "n_explored")


def rows_of(columns, method, setting):
    at = (columns["method"] == method) & (columns["setting"] == setting)
    return [columns[name][at].tolist() for name in COUNTED]


def test_varying_an_option_equals_single_runs_with_it():
    """Methods that do not take it run once, with our default, and their other rows are empty."""
    methods = ("plain", "mine", "fair-clf", "opt-offline")
    options = {"methods": methods, "variants": {"mine": {"method": "plain", "slack": 0.0}}}
    values = (0.1, 0.5, 0.9)
    varied = experiment(vary={"coverage_threshold": values}, **options)
    assert (find_main(varied), find_once(varied)) == (1, methods[2:])
    columns = run_repetition(varied, Lender(), 0).columns
    for value in values:
        given = {"coverage_threshold": value}
        alone = run_repetition(experiment(classifier=given, **options), Lender(), 0)
        for method in methods:
            got = rows_of(columns, method, f"coverage_threshold = {value}")
            if method in methods[2:] and value != 0.5:
                assert not np.any(got)
            else:
                assert got == rows_of(alone.columns, method, "α = 0.15")
    low, high = (rows_of(columns, "plain", f"coverage_threshold = {v}") for v in (0.1, 0.9))
    assert low != high


@pytest.mark.parametrize(
    ("options", "main"),
    [
        ({}, 0),
        ({"vary": {"alpha": (0.3, 0.2)}}, 1),
        ({"vary": {"slack": (0.1, 0.01)}}, 0),
        ({"vary": {"coverage_threshold": (0.1, 0.5, 2)}}, 1),
        ({"vary": {"weight_cap": (1, 3, 10)}, "classifier": {"weight_cap": 10}}, 2),
        ({"vary": {"explore": (False, True)}, "methods": ("fair-clf", "plain")}, 1),
    ],
)
def test_the_main_setting_is_the_one_without_the_option(options, main):
    assert find_main(experiment(**options)) == main


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classifier": {"fairness_difference": 0.1}}, "plain.* fairness_difference"),
        ({"vary": {"strategy": ("uniform",)}, "methods": ("fair-clf",)}, "strategy"),
        ({"classifier": {"paper_text": True}, "methods": ("ceiling",)}, "paper_text"),
        ({"classifier": {"coverage_threshold": -1}}, "threshold.* -1"),
        ({"vary": {"slack": (0.001, 0.2)}}, "slack.* alpha.* 0.2"),
    ],
)
def test_options_that_do_not_apply_are_refused(options, message):
    with pytest.raises(InputError, match=message) as error:
        check_options(experiment(**options))
    one_sentence(error)


def test_defaults_are_the_papers_values():
    assert EXPERIMENTS["german"].world.n_rounds == 39
    assert EXPERIMENTS["german"].world.n_batch == 500
    assert {EXPERIMENTS[f"adult-{by}"].world.n_parts for by in ("race", "gender")} == {40}
    assert {experiment.repetitions for experiment in EXPERIMENTS.values()} == {50}
    goal = Goal()
    assert (goal.alpha, goal.gain, goal.loss) == (0.15, 200, 500)
    budget = make_classifier(ALGORITHM1["plain"], goal, {}).budget
    assert (budget.slack, budget.alpha_exploit(1)) == (0.001, 0.075)
    left_out = {"certified-within-group", "certified-per-group", "plug-in", "plain-unweighted"}
    left_out |= {*SETS["parity"]} - {"plain", "exploit-fair", "fair-clf"}
    assert set(DEFAULT_METHODS) == {*METHODS, *REFERENCES} - left_out - {*BASELINES}


def test_another_data_set_keeps_all_other_settings():
    other = paper_experiment("adult-race", "acs:PA+MA+IN:2024")
    assert other.world == replace(EXPERIMENTS["adult-race"].world, data="acs:PA+MA+IN:2024")
    assert "acs:PA+MA+IN:2024" in other.name
    assert other.goal == Goal()
    assert paper_experiment("german", "german") == EXPERIMENTS["german"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: paper_experiment("germany"), "german, adult-race, adult-gender"),
        (lambda: paper_experiment("german", "fico"), "german"),
        (lambda: experiment(repetitions=0), "repetitions.* 0"),
        (lambda: experiment(methods=()), "method"),
        (lambda: experiment(methods=("plain", "yang", "plain")), r"\['plain'\]"),
        (lambda: experiment(classifier={"wieght_cap": 3}), "wieght_cap.* weight_cap"),
        (lambda: experiment(classifier={"alpha": 0.1}), r"alpha.* \[goal\]"),
        (lambda: experiment(classifier={"q": 1}), "'q'.* coverage"),
        (lambda: experiment(classifier={"weight_cap": "no"}), "weight_cap.* 'none'.* 'no'"),
        (lambda: experiment(variants={"m": {"slack": 0}}), r"\[variants.m\].* method"),
        (lambda: experiment(variants={"m": {"method": "plain", "q": 1}}), r"\[variants.m\].* 'q'"),
        (lambda: experiment(vary={"slack": (0,), "alpha": (0.1,)}), "slack, alpha"),
        (lambda: experiment(vary={"slack": ()}), "slack"),
        (lambda: experiment(vary={"weight_cap": (3, 3.0)}), "weight_cap"),
        (lambda: experiment(vary={"weight_cap": "none"}), "weight_cap"),
        (lambda: experiment(vary={"wieght_cap": (3,)}), "wieght_cap.* weight_cap"),
        (lambda: experiment(vary={"alpha": (0.1, 2)}), r"\(0, 1\).* 2"),
        (lambda: experiment(segments="town"), "'group'.* 'past'.* 'town'"),
    ],
)
def test_invalid_experiments_are_rejected(make, message):
    with pytest.raises(InputError, match=message) as error:
        make()
    one_sentence(error)


def test_experiment_as_plain_data():
    original = experiment(vary={"alpha": (0.1, 0.2)}, switches=("C1",))
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
        "vary": {"slack": (0.0, 0.01)},
        "seed": 1,
        "switches": ("C2",),
        "published": "german_gender",
        "segments": "past",
        "focus": "B",
        "judged": True,
    }
    assert set(changed) == {field.name for field in fields(Experiment)} - {
        *("name", "description", "repetitions")
    }
    prints = {replace(original, **{name: value}).fingerprint for name, value in changed.items()}
    assert len(prints | {original.fingerprint}) == 1 + len(changed)
