"""Stored content and records are compared value by value."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import fairchance as fc
from fairchance.ledger.verification.compare import first_other_content, first_other_value
from fairchance.methods.storage import dumps
from fairchance.people.likelihoods import LinearLikelihood


def test_contents_are_compared_part_by_part():
    one = LinearLikelihood(np.array([1.0, np.nan]), 0.5)
    assert first_other_content(dumps(one), dumps(one), 0.0) is None
    other = dumps(LinearLikelihood(np.array([1.0 + 1e-7, np.nan]), 0.5))
    assert first_other_content(dumps(one), other, 1e-6) is None
    assert first_other_content(dumps(one), other, 1e-9) == "LinearLikelihood.coef"
    longer = dumps(LinearLikelihood(np.ones(3), 0.5))
    assert first_other_content(dumps(one), longer, 1.0) == "LinearLikelihood.coef"
    assert first_other_content(dumps(one), dumps(fc.Uniform()), 1.0) is not None


def test_a_changed_field_of_a_round_is_named(rng):
    X = rng.normal(size=(300, 2))
    classifier = fc.CertifiedClassifier(random_state=0)
    classifier.fit(X, X[:, 0] > 0, accepted=X[:, 1] > -1)
    classifier.decide(X)
    (before,) = classifier.rounds_
    after = dumps(replace(before, share=before.share + 0.1))
    assert first_other_content(dumps(before), after, 1e-6) == "CertifiedRound.share"


def test_two_equal_objects_are_not_the_same_object():
    """Two equal strategies differ from one strategy that is used twice."""
    one, equal = fc.Uniform(), fc.Uniform()
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
