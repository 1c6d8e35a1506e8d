"""What a round promises in words, from records as the certified method makes them."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from methods.certified.test_late_outcomes import Desk, certified_desk
from secondlook.cli.commands.decide import promise_message


def said(desk):
    return promise_message([asdict(desk.classifier.rounds_[-1])], 0.15, 0.1)


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
    begun = f"no promise yet; testing began again with round {desk.engine.stage.began}, and "
    assert begun in said(desk)


def test_bad_outcomes_are_not_called_few():
    desk = Desk()
    bad_round(desk)
    assert "too few outcomes" in said(desk)  # of that round, when none was known
    desk.decide()
    assert "the outcomes so far do not support one" in said(desk)
