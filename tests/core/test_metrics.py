import math

from secondlook.core.metrics import (
    false_discovery_rate,
    group_rates,
    selection_rate,
    true_positive_rate,
)

ACCEPTED = [True, True, True, False, False]
OUTCOMES = [1, 0, 1, 1, 0]
GROUP = ["a", "a", "b", "b", "b"]


def test_rates_by_hand():
    assert false_discovery_rate(ACCEPTED, OUTCOMES) == 1 - 2 / 3
    assert selection_rate(ACCEPTED) == 3 / 5
    assert true_positive_rate(ACCEPTED, OUTCOMES) == 2 / 3
    assert group_rates(ACCEPTED, GROUP) == {"a": 1.0, "b": 1 / 3}
    assert group_rates(ACCEPTED, GROUP, OUTCOMES) == {"a": 1.0, "b": 1 / 2}


def test_rates_of_empty_groups_are_nan():
    assert math.isnan(false_discovery_rate([False], [1]))
    assert math.isnan(selection_rate([]))
    assert math.isnan(true_positive_rate([True], [0]))
