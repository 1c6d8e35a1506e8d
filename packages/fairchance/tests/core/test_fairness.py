"""Group rates and their bounds against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import parities
from fairchance.core.fairness import (
    EqualizedOdds,
    FalseDiscoveryRateParity,
    FalseOmissionRateParity,
    RateParity,
    SelectionRateParity,
    TruePositiveRateParity,
)
from fairchance.core.metrics import ConfusionRate
from fairchance.errors import InputError

N_GROUPS = 4
person = st.tuples(
    st.floats(0, 1),  # decision
    st.integers(0, 1),  # outcome
    st.one_of(st.just(0.0), st.floats(0.01, 10)),  # weight
    st.integers(0, N_GROUPS - 2),  # the last group is always empty
)
# What counts in the part and in the whole of each rate, for a decision d and an outcome y.
DEFINITIONS = {
    "SelectionRateParity": [(lambda d, y: d, lambda d, y: 1)],
    "TruePositiveRateParity": [(lambda d, y: d * y, lambda d, y: y)],
    "FalsePositiveRateParity": [(lambda d, y: d * (1 - y), lambda d, y: 1 - y)],
    "FalseDiscoveryRateParity": [(lambda d, y: d * (1 - y), lambda d, y: d)],
    "FalseOmissionRateParity": [(lambda d, y: (1 - d) * y, lambda d, y: 1 - d)],
}
DEFINITIONS["EqualizedOdds"] = (
    DEFINITIONS["TruePositiveRateParity"] + DEFINITIONS["FalsePositiveRateParity"]
)


@pytest.mark.parametrize("kind", parities.FAMILY)
@settings(max_examples=50)
@given(people=st.lists(person, min_size=1, max_size=12))
def test_rates_against_brute_force(kind, people):
    decisions, outcomes, weight, group = (np.array(c) for c in zip(*people, strict=True))
    found = kind().rates(decisions, outcomes, weight, group, N_GROUPS)
    for row, (part, whole) in zip(found, DEFINITIONS[kind.__name__], strict=True):
        for z in range(N_GROUPS):
            mine = [(d, y, w) for d, y, w, g in people if g == z]
            total = sum(w * whole(d, y) for d, y, w in mine)
            share = sum(w * part(d, y) for d, y, w in mine) / total if total > 0 else np.nan
            assert row[z] == pytest.approx(share, nan_ok=True)


def test_rates_of_one_table_all_differ():
    """Group 0: 4 rejected bad, 3 rejected good, 2 accepted bad, 1 accepted good."""
    decisions, outcomes = (
        np.repeat([0.0, 0, 1, 1], [4, 3, 2, 1]),
        np.repeat([0, 1, 0, 1], [4, 3, 2, 1]),
    )
    arguments = (decisions, outcomes.astype(np.int8), np.ones(10), np.zeros(10, int), 1)
    found = {kind.__name__: kind().rates(*arguments)[:, 0].tolist() for kind in parities.FAMILY}
    assert found == {
        "SelectionRateParity": [3 / 10],
        "TruePositiveRateParity": [1 / 4],
        "FalsePositiveRateParity": [2 / 6],
        "EqualizedOdds": [1 / 4, 2 / 6],
        "FalseDiscoveryRateParity": [2 / 3],
        "FalseOmissionRateParity": [3 / 7],
    }


def test_a_new_constraint_is_a_new_class():
    class FalseNegativeRateParity(RateParity):
        compared = (ConfusionRate("false negative rate", (0, 1, 0, 0), (0, 1, 0, 1)),)

    rates = FalseNegativeRateParity(0.1).rates(
        np.array([1.0, 0.0, 1.0]), np.array([1, 1, 0], np.int8), np.ones(3), np.zeros(3, int), 1
    )
    assert rates.tolist() == [[0.5]]
    with pytest.raises(TypeError, match="compared"):
        RateParity()


@pytest.mark.parametrize(
    ("rates", "difference", "ratio"),
    [
        ([0.2, 0.8, 0.4], 0.6, 0.25),
        ([0.25, np.nan, 0.5], 0.25, 0.5),
        ([np.nan, 0.5], 0.0, 1.0),
        ([np.nan, np.nan], 0.0, 1.0),
        ([0.4], 0.0, 1.0),
        ([0.0, 0.0], 0.0, 1.0),
        ([0.0, 0.1], 0.1, 0.0),
        ([], 0.0, 1.0),
    ],
)
def test_the_spread_is_over_groups_that_have_a_rate(rates, difference, ratio):
    assert SelectionRateParity(0.1).spread(np.array(rates)) == pytest.approx(difference)
    assert SelectionRateParity(ratio=0.8).spread(np.array(rates)) == pytest.approx(1 - ratio)


def test_the_worse_of_two_rates_counts():
    rates = np.array([[0.5, 0.6], [0.2, 0.5]])
    assert EqualizedOdds(0.1).spread(rates) == pytest.approx(0.3)
    assert EqualizedOdds(ratio=0.5).spread(rates) == pytest.approx(0.6)


@pytest.mark.parametrize("bound", [0.0, 1.0])
def test_bounds_include_both_ends(bound):
    assert SelectionRateParity(bound).difference == bound
    assert SelectionRateParity(bound).largest_disparity == bound
    assert SelectionRateParity(ratio=1.0).largest_disparity == 0.0


def test_a_difference_of_five_points_is_the_default():
    assert FalseOmissionRateParity() == FalseOmissionRateParity(0.05)
    assert FalseOmissionRateParity(ratio=0.9).difference is None
    assert FalseOmissionRateParity(ratio=0.9).over(((0, 1),)).ratio == 0.9


@pytest.mark.parametrize("bound", [-0.01, 1.01, np.nan])
@pytest.mark.parametrize("parity", [TruePositiveRateParity, FalseDiscoveryRateParity])
def test_bounds_outside_are_refused(parity, bound):
    with pytest.raises(InputError, match=rf"difference.*got {bound}"):
        parity(bound)
    with pytest.raises(InputError, match=rf"ratio.*got {bound}"):
        parity(ratio=bound)
    with pytest.raises(InputError, match=r"difference.*ratio"):
        parity(0.1, ratio=0.8)
