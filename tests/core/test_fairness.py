"""Group rates against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secondlook.core.fairness import (
    RateParity,
    SelectionRateParity,
    TruePositiveRateParity,
    disparity,
)
from secondlook.errors import InputError

N_GROUPS = 4
person = st.tuples(
    st.floats(0, 1),  # decision
    st.integers(0, 1),  # outcome
    st.one_of(st.just(0.0), st.floats(0.01, 10)),  # weight
    st.integers(0, N_GROUPS - 2),  # the last group is always empty
)


def brute_force(people, only_good):
    rates = []
    for z in range(N_GROUPS):
        counted = [(d, w) for d, y, w, group in people if group == z and (y or not only_good)]
        total = sum(w for _, w in counted)
        rates.append(sum(d * w for d, w in counted) / total if total > 0 else np.nan)
    return rates


@pytest.mark.parametrize(
    ("parity", "only_good"), [(SelectionRateParity(), False), (TruePositiveRateParity(), True)]
)
@settings(deadline=None)
@given(people=st.lists(person, min_size=1, max_size=12))
def test_rates_against_brute_force(parity, only_good, people):
    decisions, outcomes, weight, group = (np.array(c) for c in zip(*people, strict=True))
    rates = parity.rates(decisions, outcomes, weight, group, N_GROUPS)
    assert rates == pytest.approx(brute_force(people, only_good), nan_ok=True)


def test_selection_and_true_positive_rates_differ():
    decisions, outcomes = np.array([1.0, 0.0, 1.0, 1.0]), np.array([1, 0, 0, 1], np.int8)
    weight, group = np.array([1.0, 3.0, 1.0, 1.0]), np.array([0, 0, 1, 1])
    arguments = (decisions, outcomes, weight, group, 2)
    assert SelectionRateParity().rates(*arguments).tolist() == [0.25, 1.0]
    assert TruePositiveRateParity().rates(*arguments).tolist() == [1.0, 1.0]


def test_a_new_constraint_is_a_new_class():
    class FalsePositiveRateParity(RateParity):
        def counts(self, outcomes):
            return outcomes == 0

    rates = FalsePositiveRateParity(0.1).rates(
        np.array([1.0, 0.0, 1.0]), np.array([0, 0, 1], np.int8), np.ones(3), np.zeros(3, int), 1
    )
    assert rates.tolist() == [0.5]


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ([0.2, 0.9, 0.4], 0.7),
        ([0.2, np.nan, 0.5], 0.3),
        ([np.nan, 0.5], 0.0),
        ([np.nan, np.nan], 0.0),
        ([0.4], 0.0),
    ],
)
def test_disparity_is_over_groups_that_have_a_rate(rates, expected):
    assert disparity(np.array(rates)) == pytest.approx(expected)


@pytest.mark.parametrize("bound", [0.0, 1.0])
def test_bounds_include_both_ends(bound):
    assert SelectionRateParity(bound).difference == bound


@pytest.mark.parametrize("bound", [-0.01, 1.01, np.nan])
@pytest.mark.parametrize("parity", [SelectionRateParity, TruePositiveRateParity])
def test_bounds_outside_are_refused(parity, bound):
    with pytest.raises(InputError, match=rf"difference .* must be in \[0, 1\], got {bound}"):
        parity(bound)
