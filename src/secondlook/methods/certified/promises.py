"""What a certified classifier promises, by its options."""

from __future__ import annotations

from typing import Any

from secondlook.core.limits import Limited
from secondlook.core.noise import OutcomeNoise
from secondlook.core.strategies import Strategy, Uniform, as_strategy
from secondlook.core.utility import Accuracy
from secondlook.errors import InputError
from secondlook.methods.certified.rules import Rules

__all__ = ["FIXED", "coin_strategy", "promised_rules"]

# What the tests, and with them the promise, rest on: it stays as it was fitted.
FIXED = (
    "alpha",
    "delta",
    "utility",
    "learner",
    "horizon",
    "ranks",
    "certify",
    "floor",
    "strategy",
    "maturity",
    "patience",
    "noise",
    "monitor",
    "group_as_feature",
    "group_mode",
    "attributes",
    "pos_label",
)


def coin_strategy(strategy: Any) -> Strategy:
    """Return how the floor is spread; raise if independent coins cannot keep what it asks for."""
    found = Uniform() if strategy is None else as_strategy(strategy)
    if isinstance(found, Limited) and found.exposure is not None:
        raise InputError(
            f"exposure cannot be kept by independent coins, which a certificate needs, got "
            f"{found.exposure}; leave it out here, or use PartialFeedbackClassifier."
        )
    return found


def promised_rules(classifier: Any, n_engines: int, strategy: Strategy) -> Rules:
    """Return the rules of one of several engines, each of which has the same part of δ."""
    return Rules(
        classifier.alpha,
        classifier.delta / n_engines,
        Accuracy() if classifier.utility is None else classifier.utility,
        classifier.horizon,
        within=classifier.ranks == "within_group" and n_engines == 1,
        floor=classifier.floor,
        strategy=strategy,
        noise=OutcomeNoise() if classifier.noise is None else classifier.noise,
        maturity=classifier.maturity,
        patience=classifier.patience,
        monitor=classifier.monitor / n_engines,
    )
