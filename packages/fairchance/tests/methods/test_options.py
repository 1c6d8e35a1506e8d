"""Options that need another: they reach an object, or are refused if they have no effect."""

from __future__ import annotations

import pytest

import fairchance as fc
from fairchance.errors import InputError
from fairchance.learners.logistic import ConstrainedLogistic
from fairchance.methods.options import PARTIAL, build_classifier


def build(**settings):
    return build_classifier({"kind": PARTIAL, "seed": 7, **settings}, {})


def test_options_that_go_together():
    shared = build(strategy="group-share", strategy_reading="product", strategy_beta=0.2)
    assert shared.strategy == fc.GroupShare(fc.ScoreWeighted(0.2), "product")
    assert build(alpha_exploit_start=0.05, alpha_exploit_power=0.3).budget == fc.FdrBudget(
        exploit=fc.PowerSchedule(0.05, 0.3)
    )
    fair = build(fairness="selection-rate", fairness_in="fit")
    assert fair.fairness is None
    assert isinstance(fair.learner, ConstrainedLogistic)
    assert fair.learner.fairness == fc.SelectionRateParity()
    counted = build(explore=False, coverage="sum-of-g", strategy="uniform")
    assert counted.strategy == fc.Uniform()  # g counts coverage, whether or not it explores


@pytest.mark.parametrize(
    ("key", "value", "others", "reason"),
    [
        ("weight_cap", 5, {"weights": "none"}, "weights = 'none'"),
        ("reserve", 0.02, {"alpha_exploit": 0.1}, "alpha_exploit = 0.1"),
        ("strategy_reading", "product", {}, "strategy = 'score-weighted'"),
        ("fairness_in", "fit", {}, "fairness"),
        ("bounds_in", "fit", {"learner": "gradient-boosting"}, "learner = 'gradient-boosting'"),
    ],
)
def test_an_option_without_effect_is_refused(key, value, others, reason):
    """Before a round decides as if it were not there."""
    with pytest.raises(InputError, match=f"{key}.*{reason}"):
        build(**{key: value}, **others)
