"""Intervals of audits with a shock that all applicants of a round share."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from fairchance.audit import DecisionLog, evaluate, groups

SIGMA, BAD, ROUNDS, RUNS, ERROR = 0.03, 0.2, 12, 60, 0.05


def log_of(rng, told, n=800, rounds=ROUNDS):
    """Return a log of independent coins, in which every round has a shock of its own."""
    number = np.repeat(np.arange(1, rounds + 1), n)
    shock = SIGMA * rng.normal(size=rounds)[number - 1]
    propensity = np.where(rng.random(number.size) < 0.5, 0.9, 0.4)
    accepted = rng.random(number.size) < propensity
    good = rng.random(number.size) >= BAD + shock
    outcome = np.where(accepted, good, np.nan)
    shock = SIGMA if told else 0.0
    return DecisionLog(accepted, propensity, outcome, round=number, shock=shock)


def ever_wrong(log, measure):
    """Return whether an interval is wrong after a round; its value is known."""
    true = {"bad_rate": BAD, "false_discovery_rate": BAD, "true_positive_rate": 0.65}[measure]
    for last in (3, 6, 9, ROUNDS):
        some = log.select(log.round <= last)
        found = (
            evaluate(some, np.ones(len(some))).measured
            if measure == "false_discovery_rate"
            else groups(some).measured
        )
        (row,) = [one for one in found if one.measure == measure]
        if not row.low <= true <= row.high:
            return True
    return False


@pytest.mark.parametrize("measure", ["bad_rate", "true_positive_rate", "false_discovery_rate"])
def test_intervals_that_allow_for_shocks_are_right(measure):
    rngs = map(np.random.default_rng, np.random.SeedSequence(81).spawn(RUNS))
    wrong = sum(ever_wrong(log_of(rng, told=True), measure) for rng in rngs)
    assert binom.sf(wrong - 1, RUNS, ERROR) > 1e-3


def test_intervals_that_are_not_told_of_shocks_are_wrong():
    rngs = map(np.random.default_rng, np.random.SeedSequence(82).spawn(RUNS))
    wrong = sum(ever_wrong(log_of(rng, told=False), "bad_rate") for rng in rngs)
    assert binom.sf(wrong - 1, RUNS, ERROR) < 1e-3


def test_an_interval_with_shocks_still_says_something(rng):
    (row,) = [one for one in groups(log_of(rng, told=True)).measured if one.measure == "bad_rate"]
    assert row.low < BAD < row.high
    assert row.high - row.low < 0.2, row


def test_a_wrong_shock_is_refused():
    with pytest.raises(ValueError, match=r"shock must be from 0 to 0\.2, got 2"):
        DecisionLog([True], [1.0], [1], shock=2)
