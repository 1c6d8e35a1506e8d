import math

import numpy as np
import pytest
from fairlearn import metrics as fairlearn

from fairchance.core.metrics import (
    by_group,
    disparities,
    false_discovery_rate,
    false_omission_rate,
    false_positive_rate,
    selection_rate,
    true_positive_rate,
)

ACCEPTED = [True, True, True, False, False]
OUTCOMES = [1, 0, 1, 1, 0]


def test_rates_by_hand():
    assert selection_rate(ACCEPTED) == 3 / 5
    assert true_positive_rate(ACCEPTED, OUTCOMES) == 2 / 3
    assert false_positive_rate(ACCEPTED, OUTCOMES) == 1 / 2
    assert false_discovery_rate(ACCEPTED, OUTCOMES) == 1 - 2 / 3
    assert false_omission_rate(ACCEPTED, OUTCOMES) == 1 / 2


def test_rates_of_no_one_are_nan():
    assert math.isnan(selection_rate([]))
    assert math.isnan(true_positive_rate([True], [0]))
    assert math.isnan(false_positive_rate([True], [1]))
    assert math.isnan(false_discovery_rate([False], [1]))
    assert math.isnan(false_omission_rate([True], [1]))


@pytest.mark.parametrize("seed", range(5))
def test_differences_and_ratios_are_those_of_fairlearn(seed):
    rng = np.random.default_rng(seed)
    group = rng.integers(3, size=200)
    accepted = (rng.random(200) < 0.3 + 0.2 * group).astype(int)
    outcome = (rng.random(200) < 0.7 - 0.2 * group).astype(int)
    rows = by_group(accepted, group, outcome)
    given = {"y_true": outcome, "y_pred": accepted, "sensitive_features": group}
    found = {row.rate: (row.difference, row.ratio) for row in disparities(rows)}
    for name, theirs in (("selection_rate", "demographic_parity"), ("equalized_odds",) * 2):
        expected = [
            getattr(fairlearn, f"{theirs}_{how}")(**given) for how in ("difference", "ratio")
        ]
        assert found[name] == pytest.approx(expected)
    # fairlearn has no FDR and FOR; they are ours with decisions and outcomes in each other's place.
    for name, mine, y_true, y_pred in (
        ("true_positive_rate", fairlearn.true_positive_rate, outcome, accepted),
        ("false_positive_rate", fairlearn.false_positive_rate, outcome, accepted),
        ("false_discovery_rate", fairlearn.false_negative_rate, accepted, outcome),
        ("false_omission_rate", fairlearn.false_positive_rate, accepted, outcome),
    ):
        frame = fairlearn.MetricFrame(
            metrics=mine, y_true=y_true, y_pred=y_pred, sensitive_features=group
        )
        assert [getattr(row, name) for row in rows] == pytest.approx(frame.by_group.tolist())
        assert found[name] == pytest.approx((frame.difference(), frame.ratio()))


def test_partial_feedback_leaves_only_the_selection_rate_and_the_fdr():
    outcome = np.where(np.array(ACCEPTED), OUTCOMES, np.nan)
    rows = by_group(ACCEPTED, ["a", "b", "b", "a", "b"], outcome)
    found = {row.rate: (row.difference, row.ratio) for row in disparities(rows)}
    assert found.pop("selection_rate") == pytest.approx((2 / 3 - 1 / 2, 3 / 4))
    assert found.pop("false_discovery_rate") == pytest.approx((1 / 2, 0.0))
    assert np.isnan(list(found.values())).all()
    # Without the outcome of an accepted applicant, only the false omission rate remains.
    later = by_group([1, 0, 0], ["a"] * 3, [np.nan, 1, 0])[0]
    assert later.false_omission_rate == 1 / 2
    assert math.isnan(later.true_positive_rate)


def test_disparities_are_those_of_each_attribute():
    people = [["f", "old"], ["f", "young"], ["m", "old"], ["m", "old"]]
    rows = by_group([1, 0, 1, 1], people, attributes="side_by_side")
    found = [
        (row.attribute, row.difference) for row in disparities(rows) if row.rate == "selection_rate"
    ]
    assert [difference for _, difference in found] == [0.5, 1.0]
    assert len({attribute for attribute, _ in found}) == 2
