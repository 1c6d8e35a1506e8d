"""Utilities against hand computations and enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairchance.core.utility import Accuracy, PositiveRate, Revenue, Utility
from fairchance.errors import InputError

ACCEPTED = [1, 1, 1, 0, 0]
OUTCOMES = [1, 1, 0, 1, 0]
GROUP = ["b", "a", "b", "b", "a"]

amounts = st.floats(-1e3, 1e3)
shares = st.floats(0, 1)


def test_a_utility_prints_as_the_call_that_makes_it():
    for one in (Accuracy(), PositiveRate(), Revenue(200, 500), Utility(1, -2, 3, 5), Utility()):
        assert eval(repr(one)) == one
    assert repr(Revenue(200, 500)) == "Revenue(gain=200, loss=500)"


@pytest.mark.parametrize(
    ("utility", "gamma", "worth", "by_group"),
    [
        (Accuracy(), (1, 0, 0, 1), [1, 1, 0, 0, 1], {"a": 1.0, "b": 1 / 3}),
        (PositiveRate(), (0, 0, 1, 1), [1, 1, 1, 0, 0], {"a": 0.5, "b": 2 / 3}),
        (Revenue(200, 500), (0, 0, -500, 200), [200, 200, -500, 0, 0], {"a": 100.0, "b": -100.0}),
        (Utility(1, 2, 3, 4), (1, 2, 3, 4), [4, 4, 3, 2, 1], {"a": 2.5, "b": 3.0}),
    ],
)
def test_by_hand(utility, gamma, worth, by_group):
    assert utility.gamma == gamma
    assert utility.of(ACCEPTED, OUTCOMES).tolist() == worth
    assert utility.mean(ACCEPTED, OUTCOMES) == pytest.approx(sum(worth) / 5)
    assert utility.by_group(ACCEPTED, OUTCOMES, GROUP) == pytest.approx(by_group)


def test_first_index_of_gamma_is_the_decision():
    only_false_positives = Utility(accept_bad=1)
    assert only_false_positives.of([0, 0, 1, 1], [0, 1, 0, 1]).tolist() == [0, 0, 1, 0]


def test_gains_are_differences_between_accepting_and_rejecting():
    utility = Utility(1, 2, 30, 400)
    assert (utility.gain_bad, utility.gain_good) == (29, 398)


def test_weighted_mean_ignores_people_of_weight_zero():
    assert Accuracy().mean([1, 1, 0], [1, 0, 1], weight=[3, 1, 0]) == 0.75


def test_booleans_are_read_as_zero_and_one():
    accepted, good = np.array(ACCEPTED, bool), np.array(OUTCOMES, bool)
    assert np.array_equal(Revenue(2, 5).of(accepted, good), Revenue(2, 5).of(ACCEPTED, OUTCOMES))


@given(st.tuples(amounts, amounts, amounts, amounts), shares, shares)
def test_expected_is_the_sum_over_the_four_cases(gamma, a, p):
    utility = Utility(*gamma)
    cases = itertools.product([(0, 1 - a), (1, a)], [(0, 1 - p), (1, p)])
    enumerated = sum(utility.of(i, j) * pi * pj for (i, pi), (j, pj) in cases)
    assert utility.expected([a], [p])[0] == pytest.approx(enumerated, abs=1e-9)


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 2)), min_size=1))
def test_group_means_average_to_the_mean(people):
    accepted, outcomes, group = (np.array(column) for column in zip(*people, strict=True))
    utility = Utility(1, -2, 3, 5)
    parts = utility.by_group(accepted, outcomes, group)
    assert set(parts) == set(group.tolist())
    total = sum(value * np.mean(group == z) for z, value in parts.items())
    assert total == pytest.approx(utility.mean(accepted, outcomes))


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_gamma_must_be_finite(wrong):
    with pytest.raises(InputError, match="gamma"):
        Utility(0, 0, wrong, 1)


@pytest.mark.parametrize(("gain", "loss"), [(0, 1), (1, 0), (200, -500), (np.nan, 1)])
def test_revenue_takes_positive_amounts(gain, loss):
    with pytest.raises(InputError, match=f"gain={gain}, loss={loss}"):
        Revenue(gain, loss)


def test_an_unknown_outcome_has_no_worth():
    with pytest.raises(InputError, match="accepted and outcomes"):
        Accuracy().of([0, 1], [-1, 1])
