"""How a policy would have done: intervals that hold at all times, properties, hidden selection."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import strategies as st

from audit.cells import (
    rngs,
)
from secondlook.audit import DecisionLog, evaluate
from secondlook.audit.estimates import MEASURES
from secondlook.errors import InputError

SEEDS = st.integers(0, 2**32 - 1)
SIZES = [60] * 5


# Coverage: an interval must hold at every look in 95 % of runs.


def misses(result, right, measures=MEASURES, group=""):
    """Return which measures have an interval without the true value."""
    return {
        name
        for name in measures
        if not result.of(name, group).low <= right[name] <= result.of(name, group).high
    }


def count_misses(seed, runs, run):
    """Return in how many runs each measure was missed at any look."""
    counts = dict.fromkeys(MEASURES, 0)
    for rng in rngs(seed, runs):
        for measure in run(rng):
            counts[measure] += 1
    return counts


# What is said about groups, and if there is nothing to say.


def group_log(rng, n=400, small=5):
    """Return a log of three groups; the policy accepts none of B, and C is small."""
    group = np.array(["A"] * (n // 2) + ["B"] * (n // 2 - small) + ["C"] * small)
    accepted = rng.random(n) < 0.5
    outcome = np.where(accepted, rng.random(n) < 0.8, np.nan)
    log = DecisionLog(accepted, np.full(n, 0.5), outcome, sensitive_features=group)
    return log, (group != "B").astype(float)


def test_a_group_that_the_policy_rejects_is_not_too_small(rng):
    log, pi = group_log(rng)
    result = evaluate(log, pi)
    rejected = result.of("selection_rate", "B")
    assert (rejected.value, rejected.note, rejected.n_outcomes) == (0.0, "", 0)
    assert rejected.low <= 0.0 < rejected.high
    assert result.of("profit", "B").value == 0.0
    assert "accepts none" in result.of("false_discovery_rate", "B").note
    gap = next(gap for gap in result.gaps if gap.measure == "selection_rate")
    assert (gap.difference, gap.ratio) == (1.0, 0.0)
    for measure in MEASURES:
        small = result.of(measure, "C")
        assert "Too small: 5 applicants" in small.note
        assert math.isnan(small.value)
        assert math.isnan(small.high)


def test_a_group_with_few_outcomes_has_a_selection_rate_only(rng):
    log, pi = group_log(rng, small=15)
    result = evaluate(log, pi)
    assert result.of("selection_rate", "C").value == 1.0
    few = result.of("profit", "C")
    assert few.n_outcomes < 10
    assert f"Too small: {few.n_outcomes} outcomes" in few.note


def test_a_log_without_a_complete_round_has_intervals_only(rng):
    accepted = rng.random(300) < 0.5
    outcome = np.where(accepted, rng.random(300) < 0.8, np.nan)
    outcome[np.flatnonzero(accepted)[0]] = np.nan  # pending
    log = DecisionLog(accepted, np.full(300, 0.5), outcome)
    with pytest.raises(InputError, match="round 1 still waits"):
        evaluate(log, np.ones(300))
    result = evaluate(log, np.ones(300), pending="worst")
    for measure in MEASURES:
        row = result.of(measure)
        assert math.isnan(row.value)
        assert math.isnan(row.most)
        assert row.low < row.high
        assert "No round" in row.note
    assert "No round" in result.verdict()
    assert len(result.to_frame("pandas")) == 3


def test_rounds_are_numbered_from_1():
    """A challenger that has seen no round says trained_through=0, so round 0 would be left out."""
    with pytest.raises(InputError, match="from 1, got 0"):
        DecisionLog([True, True], [0.5, 0.5], [1, 0], round=[0, 1])


def test_what_is_not_covered_ranges_from_all_good_to_all_bad():
    """Half of a policy's acceptances have p = 0.001; those few who were accepted prove nothing."""
    p = np.repeat([1.0, 0.001], 5000)
    accepted = np.repeat([True, False], 5000)
    bad = np.arange(10_000) % 10 == 0
    accepted[5000:5005], bad[5000:5005] = True, True
    log = DecisionLog(accepted, p, np.where(accepted, ~bad, np.nan))
    row = evaluate(log, np.ones(10_000)).of("false_discovery_rate")
    assert (math.isnan(row.value), row.note) == (True, "Not identified.")
    # Covered: 5,000 of whom 500 are bad, and 50 · 0.001 of the others, all of them bad.
    covered, capped = 0.5 * (1 + 50 * 0.001), (500 + 5 * 50) / (5000 + 5 * 50)
    assert row.least == pytest.approx(covered * capped)
    assert row.most == pytest.approx(covered * capped + 1 - covered)
