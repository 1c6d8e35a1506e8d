"""Contents and records are compared part by part."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np

import secondlook as sl
from secondlook.ledger.comparing import first_other_content, first_other_value
from secondlook.methods.storage import dumps
from secondlook.people.likelihoods import LinearLikelihood


def test_contents_are_compared_part_by_part():
    one = LinearLikelihood(np.array([1.0, np.nan]), 0.5)
    assert first_other_content(dumps(one), dumps(one), 0.0) is None
    other = dumps(LinearLikelihood(np.array([1.0 + 1e-7, np.nan]), 0.5))
    assert first_other_content(dumps(one), other, 1e-6) is None
    assert first_other_content(dumps(one), other, 1e-9) == "LinearLikelihood.coef"
    longer = dumps(LinearLikelihood(np.ones(3), 0.5))
    assert first_other_content(dumps(one), longer, 1.0) == "LinearLikelihood.coef"
    assert first_other_content(dumps(one), dumps(sl.Uniform()), 1.0) is not None


def test_what_a_round_only_says_may_come_out_otherwise(rng):
    X = rng.normal(size=(300, 2))
    classifier = sl.CertifiedClassifier(random_state=0)
    classifier.fit(X, X[:, 0] > 0, accepted=X[:, 1] > -1)
    classifier.decide(X)
    (before,) = classifier.rounds_
    said = dumps(replace(before, message="in other words", more_outcomes=7.0))
    assert first_other_content(dumps(before), said, 0.0) is None
    done = dumps(replace(before, share=before.share + 0.1))
    assert first_other_content(dumps(before), done, 1e-6) == "CertifiedRound.share"


def test_what_nothing_is_decided_by_is_left_out_with_all_that_only_it_refers_to(rng):
    X = rng.integers(3, size=(200, 2))
    now = sl.FiniteClassifier(random_state=0).fit(X, X[:, 0] > 0, accepted=X[:, 1] > 0)
    now.decide(X)
    earlier, other = copy(now), copy(now)
    del earlier._last  # as it was stored before there was one
    assert first_other_content(dumps(earlier), dumps(now), 0.0) is None
    assert first_other_content(dumps(now), dumps(earlier), 0.0) is None
    other._state = replace(now._state, summed=now._state.summed + 1)
    assert first_other_content(dumps(earlier), dumps(other), 1e-6) == "CellState.summed"


def test_objects_stand_in_the_same_places():
    """Two equal strategies are not one that stands in both places."""
    one, equal = sl.Uniform(), sl.Uniform()
    twice, each = (dumps(one * two) for two in (one, equal))
    assert first_other_content(twice, twice, 0.0) is None
    assert first_other_content(each, each, 0.0) is None
    assert first_other_content(twice, each, 0.0) is not None
    assert first_other_content(each, twice, 0.0) is not None


def test_records_are_compared_value_by_value():
    assert first_other_value({"a": "nan", "b": [1, 2.0]}, {"a": "nan", "b": [1, 2.0]}) is None
    assert first_other_value({"a": 1}, {}) == "a"
    assert first_other_value({}, {"b": None}) == "b"
    assert first_other_value({"a": True}, {"a": 1.5}) == "a"
    assert first_other_value({"a": [1]}, {"a": [1, 2]}) == "a"
    assert first_other_value({"a": 1}, {"a": 2}, leave_out=("a",)) is None
