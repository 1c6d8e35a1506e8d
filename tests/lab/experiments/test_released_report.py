"""Deviations E of the released code, in the report, against a fact that shows it."""

from __future__ import annotations

import numpy as np
import pytest

from lab.experiments.test_tables import from_counts
from secondlook.cli.runs import summary_rows


def test_e2_takes_the_sign_of_revenue_away():
    """Rounds earn 200, 200 and −1,000 thousandths: the mean is −0.2, without signs 0.47."""
    accepted = np.array([1, 1, 2]).reshape(1, 1, 1, 3, 1) * np.ones((1, 1, 2, 1, 1), int)
    good = np.array([1, 1, 0]).reshape(1, 1, 1, 3, 1) * np.ones((1, 1, 2, 1, 1), int)
    counts = {
        "n_people": np.full(accepted.shape, 9),
        "n_good": np.full(accepted.shape, 5),
        "n_accepted": accepted,
        "n_accepted_good": good,
    }
    found = {
        switches: summary_rows(from_counts(counts, ("plain",), "a", switches=list(switches)))
        for switches in ((), ("E2",))
    }
    assert found[()][0]["revenue"] == pytest.approx((0.2 + 0.2 - 1.0) / 3)
    assert found[("E2",)][0]["revenue"] == pytest.approx((0.2 + 0.2 - 1.0) / 3)
    assert found[("E2",)][0]["revenue_without_sign"] == pytest.approx((0.2 + 0.2 + 1.0) / 3)
    assert "revenue_without_sign" not in found[()][0]
    assert found[()][0]["pooled_fdr"] == found[("E2",)][0]["pooled_fdr"] == 0.5
