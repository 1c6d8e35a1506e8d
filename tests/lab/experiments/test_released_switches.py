"""The switches of the released code: each changes something, and with none on nothing does."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import secondlook
from lab.experiments.released_worlds import driven, lender_setup, on
from lab.experiments.test_spec import one_sentence
from secondlook.errors import InputError
from secondlook.lab.datasets import load
from secondlook.lab.experiments.methods import ABLATIONS, VARIANTS, build
from secondlook.lab.experiments.released import REPORTING, SWITCHES, check_switches
from secondlook.lab.experiments.released.classifier import build_released
from secondlook.lab.experiments.repetition import run_repetition
from secondlook.lab.experiments.spec import Experiment
from secondlook.lab.experiments.world_spec import WorldSpec


def test_switches_come_in_the_order_of_the_list():
    assert check_switches(["E2", "C1", "A1", "C1"]) == ("A1", "C1", "E2")
    assert check_switches([]) == ()
    assert all(words and words[-1] != "." for words in SWITCHES.values())


def test_an_unknown_switch_is_refused_in_one_sentence():
    with pytest.raises(InputError, match="there is no switch C99, X; known are A1, A3") as error:
        check_switches(["C1", "X", "C99"])
    one_sentence(error)


def test_the_core_knows_nothing_of_switches():
    package = Path(secondlook.__file__).parent
    folders = [package / name for name in ("core", "people", "learners", "methods")]
    files = [*package.glob("*.py"), *(file for folder in folders for file in folder.rglob("*.py"))]
    assert len(files) > 50
    names = re.compile(rf"\b(?:{'|'.join(SWITCHES)}|switch(?:es)?|released)\b")
    found = {path.name: names.findall(path.read_text()) for path in files}
    assert not {name: hits for name, hits in found.items() if hits}


def counts_with(*switches, n_rounds=5):
    spec = WorldSpec("german", "sex", n_batch=400, n_rounds=n_rounds)
    methods = ("explore-fair", "both-fair")
    experiment = Experiment("x", spec, methods, switches=switches, repetitions=1)
    return run_repetition(experiment, load("german"), 1).columns


@pytest.fixture(scope="module")
def without():
    return {n: counts_with(n_rounds=n) for n in (2, 5)}


@pytest.mark.parametrize("name", [name for name in SWITCHES if name not in REPORTING])
def test_every_switch_changes_what_is_counted(name, without):
    n = 2 if name == "B9" else 5  # whose fits are slow
    switched = counts_with(name, n_rounds=n)
    assert any(not np.array_equal(switched[key], without[n][key]) for key in without[n])


@pytest.mark.parametrize("name", [*VARIANTS, *ABLATIONS])
def test_with_no_switch_on_it_is_the_classifier_itself(name):
    for seed in range(2):
        world, setup = lender_setup(seed)
        ours = driven(build(name, world, setup), world)
        theirs = driven(build_released(name, setup, on(), {}), world)
        for (one, _), (two, _) in zip(ours, theirs, strict=True):
            assert np.array_equal(one.accepted, two.accepted)
            assert np.array_equal(one.exploit, two.exploit)
            assert np.array_equal(one.propensity, two.propensity)
            assert np.array_equal(one.score, two.score)


def test_with_no_switch_on_it_is_the_classifier_itself_where_round_1_is_learned():
    spec = WorldSpec("lender", n_batch=400, n_rounds=3, past=({"rule": "everybody"},))
    world, setup = lender_setup(3, spec)
    ours = driven(build("plain", world, setup), world)
    theirs = driven(build_released("plain", setup, on(), {}), world)
    for (one, _), (two, _) in zip(ours, theirs, strict=True):
        assert np.array_equal(one.accepted, two.accepted)
