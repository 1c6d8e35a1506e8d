import numpy as np
import pytest
from fairlearn import metrics as fairlearn

from fairchance.core.fairness import EqualizedOdds
from fairchance.core.metrics import RATES, SELECTION_RATE, difference, ratio


def rates_of(rate, accepted, outcome, group):
    kinds = [(accepted == a) & (outcome == y) for a in (0, 1) for y in (0, 1)]
    return rate(*(np.bincount(group, kind, 3) for kind in kinds))


@pytest.mark.parametrize("seed", range(5))
def test_differences_and_ratios_are_those_of_fairlearn(seed):
    rng = np.random.default_rng(seed)
    group = rng.integers(3, size=200)
    accepted = (rng.random(200) < 0.3 + 0.2 * group).astype(int)
    outcome = (rng.random(200) < 0.7 - 0.2 * group).astype(int)
    given = {"y_true": outcome, "y_pred": accepted, "sensitive_features": group}
    for compared, theirs in (
        ((SELECTION_RATE,), "demographic_parity"),
        (EqualizedOdds.compared, "equalized_odds"),
    ):
        found = np.array([rates_of(rate, accepted, outcome, group) for rate in compared])
        expected = [
            getattr(fairlearn, f"{theirs}_{how}")(**given) for how in ("difference", "ratio")
        ]
        assert [difference(found).max(), ratio(found).min()] == pytest.approx(expected)
    # fairlearn has no FDR and FOR; they are ours with decisions and outcomes in each other's place.
    theirs = {
        "selection_rate": (fairlearn.selection_rate, outcome, accepted),
        "true_positive_rate": (fairlearn.true_positive_rate, outcome, accepted),
        "false_positive_rate": (fairlearn.false_positive_rate, outcome, accepted),
        "false_discovery_rate": (fairlearn.false_negative_rate, accepted, outcome),
        "false_omission_rate": (fairlearn.false_positive_rate, accepted, outcome),
    }
    for rate in RATES:
        metric, y_true, y_pred = theirs[rate.name]
        frame = fairlearn.MetricFrame(
            metrics=metric, y_true=y_true, y_pred=y_pred, sensitive_features=group
        )
        found = rates_of(rate, accepted, outcome, group)
        assert found == pytest.approx(frame.by_group.to_numpy())
        assert difference(found) == pytest.approx(frame.difference())
        assert ratio(found) == pytest.approx(frame.ratio())


def test_rates_of_no_one_are_nan():
    for rate in RATES:
        assert np.isnan(rate(0, 0, 0, 0))
