"""What a round promises in words, from records as the certified method makes them."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from methods.certified.test_late_outcomes import Desk, certified_desk
from secondlook.cli.commands.decide import promise


def said(desk):
    return promise([asdict(desk.classifier.rounds_[-1])], 0.15, 0.1)


def bad_round(desk):
    """Decide a round of which every outcome is bad."""
    desk.decide()
    ids, outcome = desk.accepted[-1]
    desk.classifier.observe(ids, np.zeros_like(outcome))


def test_after_drift_it_says_that_testing_began_again():
    desk = certified_desk()
    while desk.engine.stage.restarts == 0:
        bad_round(desk)
        assert len(desk.accepted) < 40
    desk.decide()
    begun = (
        f"Pilot: no promise until there is new evidence. Testing began again with round "
        f"{desk.engine.stage.began} after outcomes that spoke against what had been certified, and "
    )
    assert said(desk).startswith(begun)


def test_bad_outcomes_are_not_called_few():
    desk = Desk()
    bad_round(desk)
    few = "Pilot: no promise yet, and too few outcomes to say how many a promise needs."
    assert said(desk) == few  # of that round, when none was known
    desk.decide()
    assert said(desk) == (
        "Pilot: no promise yet; outcomes so far do not speak for one, so nobody can say how many "
        "it needs."
    )
