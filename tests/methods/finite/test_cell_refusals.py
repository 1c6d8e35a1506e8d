"""What a classifier on cells refuses, and what it says aloud."""

from __future__ import annotations

import numpy as np
import pytest

from methods.finite.small_domain import DOMAIN, PAST, draw, fitted, run
from secondlook import (
    FdrBudget,
    MeanPastScore,
)
from secondlook.errors import InputError, LearningWarning, UnknownIdError
from secondlook.lab.simulate.finite import FiniteDomain
from secondlook.methods.finite import CountedOutcomes, FiniteClassifier, NormalisedG

WRONG_OPTIONS = [
    ({"hypothesis": "trees"}, "hypothesis must be one of"),
    ({"constraints": "none"}, "constraints must be one of"),
    ({"weights": "acceptance"}, "weights must be one of"),
    ({"first_round": "third"}, "first_round must be one of"),
    ({"utility": "revenue"}, "utility must be a Utility"),
    ({"gap": 2.0}, "gap is a share"),
    ({"min_outcomes": -1}, "min_outcomes must be 0 or more"),
    ({"coverage": MeanPastScore()}, "known cells stay known"),
    ({"strategy": 3}, "strategy must be a Strategy"),
    ({"cut_score": 1.0}, "cut_score must be a function"),
]


@pytest.mark.parametrize(("options", "message"), WRONG_OPTIONS)
def test_wrong_options_are_refused(rng, options, message):
    with pytest.raises(InputError, match=message):
        fitted(rng, **options)


def test_wrong_input_is_refused_and_changes_nothing(rng):
    classifier = run(rng, n_rounds=2)
    rejected = classifier.decide([[1, 1]], sensitive_features=["a"])
    assert not rejected.accepted.any()
    before, n_cells = classifier.counts_, classifier.rounds_[-1].n_cells
    wrong = [
        (([[np.nan, 1.0]],), {"sensitive_features": ["a"]}, "has no value"),
        (([[1, 1]],), {"sensitive_features": ["c"]}, "holds the group 'c'"),
        (([[1, 1]],), {}, "sensitive_features is missing"),
        (([[1, 1, 1]],), {"sensitive_features": ["a"]}, "is expecting 2 features"),
        (([[1, 1]],), {"sensitive_features": ["a", "b"]}, "1 in all"),
        (([[1, 1]] * 2,), {"sensitive_features": ["a"] * 2, "ids": [5000, 5000]}, "unique"),
        (([[1, 1]],), {"sensitive_features": ["a"], "ids": [3]}, "decided on before"),
        (([[1, 1]],), {"sensitive_features": ["a"], "ids": ["x"]}, "must be integers"),
    ]
    for arguments, named, message in wrong:
        with pytest.raises(InputError, match=message):
            classifier.decide(*arguments, **named)
    with pytest.raises(UnknownIdError, match="were rejected"):
        classifier.observe(rejected.ids, [1])
    with pytest.raises(UnknownIdError, match="never decided on"):
        classifier.observe([10**6], [1])
    with pytest.raises(InputError, match="outcomes must be 0 or 1"):
        classifier.observe(rejected.ids, [2])
    classifier.set_params(strategy=lambda X, score, group: np.zeros(score.shape))
    with pytest.raises(InputError, match="positive finite number"):
        classifier.decide([[9, 9]], sensitive_features=["a"])
    classifier.set_params(strategy=None, coverage=CountedOutcomes())
    with pytest.raises(InputError, match="coverage was None when the history was fitted"):
        classifier.decide([[1, 1]], sensitive_features=["a"])
    assert classifier.counts_ is before
    assert classifier.rounds_[-1].n_cells == n_cells


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"domain": (DOMAIN.X, None)}, "the cells of the domain have no groups"),
        ({"domain": DOMAIN.X}, "domain must be a pair"),
        ({"domain": ([[1, 1], [1, 1]], ["a", "a"])}, "once only"),
        ({"past_policy": PAST[:3]}, "one probability per cell of the domain, 8 in all"),
        ({"past_policy": PAST * 2}, "must be in \\[0, 1\\]"),
        ({"past_policy": lambda X, group: [1]}, "one probability per cell"),
        ({"X": None, "past_policy": None}, "past_policy must be given"),
        ({"X": None, "domain": None}, "domain and past_policy must be given"),
        ({"sensitive_features": None}, "sensitive_features is missing"),
    ],
)
def test_a_wrong_start_is_refused(rng, changes, message):
    people, good = draw(rng, 100)
    given = {
        "X": people.X,
        "y": good,
        "sensitive_features": people.group,
        "domain": (DOMAIN.X, DOMAIN.group),
        "past_policy": PAST,
    } | changes
    with pytest.raises(InputError, match=message):
        FiniteClassifier().fit(**given)


def test_what_went_wrong_is_said(rng):
    people, _ = draw(rng, 100)
    nothing = fitted(rng, coverage=NormalisedG(threshold=3))
    with pytest.warns(LearningWarning, match="No cell of anybody who applied is known"):
        nothing.decide(people.X, sensitive_features=people.group)
    domain = FiniteDomain([[0], [1]], ["a", "a"], mass=[1, 1], good=[0.95, 0.5])
    past = np.ones(2)
    strict = fitted(
        rng,
        domain=domain,
        past=past,
        budget=FdrBudget(min_selection_rate=0.99),
        first_round="learned",
    )
    people = domain.draw(100, rng)
    with pytest.warns(LearningWarning, match="meets the other constraints"):
        batch = strict.decide(people.X, sensitive_features=people.group)
    assert not batch.accepted.any()
    assert not strict.rounds_[-1].feasible
