"""What a log says about groups: recorded, corrected and bounded."""

from __future__ import annotations

import math

import numpy as np
import pytest

from secondlook.audit import DecisionLog, evaluate
from secondlook.audit.evaluate import gap_between


def test_a_gap_has_an_interval_only_if_groups_have_one():
    nothing = (math.nan, math.nan)
    gap = gap_between("sex", "bad_rate", [0.1, 0.4, math.nan], [nothing] * 3)
    assert (gap.difference, gap.ratio) == pytest.approx((0.3, 0.25))
    ends = [gap.difference_low, gap.difference_high, gap.ratio_low, gap.ratio_high]
    assert np.isnan(ends).all()
    assert gap_between("sex", "bad_rate", [0.1, math.nan], [(0.0, 1.0), nothing]) is None


def test_gaps_of_estimated_probabilities_have_no_interval():
    rng = np.random.default_rng(0)
    accepted = rng.random(200) < 0.5
    log = DecisionLog(
        accepted,
        np.full(200, 0.5),
        np.where(accepted, rng.random(200) < 0.7, np.nan),
        sensitive_features=np.repeat(["a", "b"], 100),
        estimated=True,
    )
    for gap in evaluate(log, np.ones(200)).gaps:
        assert math.isnan(gap.difference_low)
        assert math.isnan(gap.ratio_high)
