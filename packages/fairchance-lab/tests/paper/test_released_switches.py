"""Switches of the released code: each changes the counts; without switches nothing changes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import fairchance
from experiments.known_results import from_counts
from fairchance.errors import InputError
from fairchance_lab.datasets import load
from fairchance_lab.experiments.all_tables import overview
from fairchance_lab.experiments.methods import ABLATIONS, VARIANTS, build
from fairchance_lab.experiments.repetition import run_repetition
from fairchance_lab.experiments.spec import Experiment
from fairchance_lab.experiments.world_spec import WorldSpec
from fairchance_lab.paper.published import why_different
from fairchance_lab.paper.released import (
    DEVIATIONS,
    REPORTING,
    SWITCHES,
    check_switches,
)
from fairchance_lab.paper.released.classifier import build_released
from paper.released_worlds import driven, lender_setup, on
from sentences import one_sentence


def test_order_of_switches():
    assert check_switches(["E2", "C1", "A1", "C1"]) == ("A1", "C1", "E2")
    assert check_switches([]) == ()
    assert all(text and text[-1] != "." for text in SWITCHES.values())


def test_the_catalogue_says_how_each_deviation_is_modelled():
    sizes = {letter: sum(name[0] == letter for name in DEVIATIONS) for letter in "ABCDKE"}
    assert sizes == {"A": 10, "B": 12, "C": 11, "D": 11, "K": 9, "E": 12}
    for name, found in DEVIATIONS.items():
        assert found.released, name
        assert found.ours, name
        assert (found.where == "") == (found.modelled == "switch"), name


@pytest.mark.parametrize("row", [*VARIANTS, "fair-clf", "opt-offline", "kilbertus-icml"])
def test_no_reason_for_a_difference_contradicts_the_switches(row):
    """A reason is what holds without a switch, so it must not appear if the switch is on."""

    def reason(*on, n_parts=0, **options):
        experiment = {"published": "german_gender", "world": {"n_parts": n_parts}}
        return why_different(experiment | {"switches": on, "classifier": options}, row)

    touched = [name for name in SWITCHES if name[0] not in "BC" or row in VARIANTS]
    for name in SWITCHES:
        on_list = reason(name).partition("as released: ")[2]
        assert on_list == (name if name in touched else "")
        if name in touched:
            assert DEVIATIONS[name].ours not in reason(name)
        else:
            assert reason(name) == reason()
    if row in VARIANTS:
        assert "outcomes of the rejected hidden, variants apart, rows weighted" in reason()
        assert "13 smaller" in reason()
        unweighted = reason(weights="none", coverage="sum-of-g")
        assert "rows weighted" not in unweighted
        assert "12 smaller" in unweighted
        assert "set: weights = none, coverage = sum-of-g" in unweighted
        assert "11 smaller" in reason(paper_text=True)  # which sets coverage and the first round
        assert "12 smaller" in reason(n_parts=40)  # nothing is resampled, so A9 does not apply
        assert "unexplained: 26 findings" in reason(*SWITCHES)
        assert "ours" not in reason(*(name for name in SWITCHES if name != "A9"))


def test_an_unknown_switch_is_refused_in_one_sentence():
    with pytest.raises(InputError, match=r"C99, X.* A1, A3") as error:
        check_switches(["C1", "X", "C99"])
    one_sentence(error)


def test_the_core_knows_nothing_of_switches():
    package = Path(fairchance.__file__).parent
    folders = [package / name for name in ("core", "people", "learners", "methods")]
    files = [*package.glob("*.py"), *(file for folder in folders for file in folder.rglob("*.py"))]
    assert len(files) > 50
    names = re.compile(rf"\b(?:{'|'.join(SWITCHES)}|switch(?:es)?|released)\b")
    matches = {path.name: names.findall(path.read_text()) for path in files}
    assert not {name: hits for name, hits in matches.items() if hits}


def counts_with(*switches, n_rounds=5):
    spec = WorldSpec("german", "sex", n_batch=500, n_rounds=n_rounds)
    methods = ("explore-fair", "both-fair")
    experiment = Experiment("x", spec, methods, switches=switches, repetitions=1)
    return run_repetition(experiment, load("german"), 1).columns


@pytest.fixture(scope="module")
def without():
    return {n: counts_with(n_rounds=n) for n in (2, 5)}


@pytest.mark.parametrize("name", [name for name in SWITCHES if name not in REPORTING])
def test_every_switch_changes_the_counts(name, without):
    n = 2 if name == "B9" else 5  # its fits are slow
    switched = counts_with(name, n_rounds=n)
    assert any(not np.array_equal(switched[key], without[n][key]) for key in without[n])


@pytest.mark.parametrize("name", [*VARIANTS, *ABLATIONS])
def test_without_switches_it_is_the_classifier(name):
    for seed in range(2):
        world, setup = lender_setup(seed)
        own_decisions = driven(build(name, world, setup), world)
        released_decisions = driven(build_released(name, setup, on(), {}), world)
        for (first, _), (second, _) in zip(own_decisions, released_decisions, strict=True):
            assert np.array_equal(first.accepted, second.accepted)
            assert np.array_equal(first.exploit, second.exploit)
            assert np.array_equal(first.propensity, second.propensity)
            assert np.array_equal(first.score, second.score)


def test_without_switches_it_is_the_classifier_with_learned_first_round():
    spec = WorldSpec("lender", n_batch=400, n_rounds=3, past=({"rule": "everybody"},))
    world, setup = lender_setup(3, spec)
    own_decisions = driven(build("plain", world, setup), world)
    released_decisions = driven(build_released("plain", setup, on(), {}), world)
    for (first, _), (second, _) in zip(own_decisions, released_decisions, strict=True):
        assert np.array_equal(first.accepted, second.accepted)


def test_e2_drops_the_sign_of_revenue():
    """Rounds earn 200, 200 and −1,000 thousandths: the mean is −0.2, without signs 0.47."""
    accepted = np.array([1, 1, 2]).reshape(1, 1, 1, 3, 1) * np.ones((1, 1, 2, 1, 1), int)
    good = np.array([1, 1, 0]).reshape(1, 1, 1, 3, 1) * np.ones((1, 1, 2, 1, 1), int)
    counts = {
        "n_people": np.full(accepted.shape, 9),
        "n_good": np.full(accepted.shape, 5),
        "n_accepted": accepted,
        "n_accepted_good": good,
    }
    rows = {
        switches: overview(from_counts(counts, ("plain",), "a", switches=list(switches)), 0).rows
        for switches in ((), ("E2",))
    }
    assert rows[()][0]["revenue"] == pytest.approx((0.2 + 0.2 - 1.0) / 3)
    assert rows[("E2",)][0]["revenue"] == pytest.approx((0.2 + 0.2 - 1.0) / 3)
    assert rows[("E2",)][0]["revenue_without_sign"] == pytest.approx((0.2 + 0.2 + 1.0) / 3)
    assert "revenue_without_sign" not in rows[()][0]
    assert rows[()][0]["pooled_fdr"] == rows[("E2",)][0]["pooled_fdr"] == 0.5
