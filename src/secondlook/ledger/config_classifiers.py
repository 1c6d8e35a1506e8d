"""Classifiers, built from the tables [classifier], [limits] and [checks] of a configuration."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from sklearn.ensemble import HistGradientBoostingClassifier

from secondlook.core.budget import FdrBudget
from secondlook.core.coverage import MeanPastScore, SummedAcceptance, SumOfG
from secondlook.core.fairness import SelectionRateParity, TruePositiveRateParity
from secondlook.core.limits import Above, Below, Limited, OneOf
from secondlook.core.noise import OutcomeNoise
from secondlook.core.strategies import EqualGroups, GroupShare, ScoreWeighted, Uniform
from secondlook.core.utility import Accuracy, PositiveRate, Revenue
from secondlook.errors import InputError
from secondlook.learners.logistic import ConstrainedLogistic
from secondlook.ledger.config_values import (
    FLAG,
    NUMBER,
    TEXT,
    WHOLE,
    AnyOf,
    ChoiceValue,
    PlainValue,
    TableList,
    TableValue,
)
from secondlook.methods.algorithm1.classifier import PartialFeedbackClassifier, check_settings
from secondlook.methods.certified.classifier import CertifiedClassifier
from secondlook.methods.certified.rules import check_certified_settings
from secondlook.people.likeness import Checks

__all__ = ["CLASSIFIERS", "LIMITS", "build_classifier"]

_CERTIFIED, _PARTIAL = "certified", "partial-feedback"
_NEVER = "never"  # a patience without end
_DEFAULT, _LOGISTIC, _BOOSTING = "default", "logistic", "gradient-boosting"
_LARGEST_SEED = 2**32 - 1  # the largest that numpy and scikit-learn accept
_UTILITIES = {"accuracy": Accuracy, "positive-rate": PositiveRate}
_STRATEGIES = {
    "uniform": Uniform,
    "score-weighted": ScoreWeighted,
    "group-share": GroupShare,
    "equal-groups": EqualGroups,
}
_COVERAGE = {
    "summed-acceptance": SummedAcceptance,
    "mean-past-score": MeanPastScore,
    "sum-of-g": SumOfG,
}
_FAIRNESS = {
    "selection-rate": SelectionRateParity,
    "true-positive-rate": TruePositiveRateParity,
}

_COMMON: dict[str, Any] = {
    "kind": ChoiceValue((_CERTIFIED, _PARTIAL)),
    "alpha": NUMBER,
    "utility": AnyOf(
        (
            TableValue({"good": NUMBER, "bad": NUMBER}, ("good", "bad")),
            ChoiceValue(tuple(_UTILITIES)),
        )
    ),
    "strategy": ChoiceValue(tuple(_STRATEGIES)),
    "learner": ChoiceValue((_DEFAULT, _LOGISTIC, _BOOSTING)),
    "maturity": WHOLE,
    "noise": TableValue({"bad_as_good": NUMBER, "good_as_bad": NUMBER}),
    "group_mode": ChoiceValue(("aware", "blind", "audit")),
    "group_as_feature": FLAG,
    "attributes": ChoiceValue(("crossed", "side-by-side")),
    "seed": PlainValue(
        f"a whole number from 0 to {_LARGEST_SEED}",
        lambda value: WHOLE.fits(value) and 0 <= value <= _LARGEST_SEED,
    ),
}
CLASSIFIERS: dict[str, dict[str, Any]] = {
    _CERTIFIED: {
        **_COMMON,
        "delta": NUMBER,
        "horizon": WHOLE,
        "ranks": ChoiceValue(("overall", "within-group")),
        "certify": ChoiceValue(("overall", "per-group")),
        "floor": NUMBER,
        "patience": AnyOf((WHOLE, ChoiceValue((_NEVER,)))),
        "monitor": NUMBER,
    },
    _PARTIAL: {
        **_COMMON,
        "alpha_exploit": NUMBER,
        "min_selection_rate": NUMBER,
        "coverage": ChoiceValue(tuple(_COVERAGE)),
        "coverage_threshold": NUMBER,
        "fairness": ChoiceValue(tuple(_FAIRNESS)),
        "fairness_difference": NUMBER,
        "thresholds": ChoiceValue(("shared", "per-group")),
        "split": ChoiceValue(("half", "cross")),
        "operating_point": ChoiceValue(("threshold", "searched")),
        "weights": ChoiceValue(("acceptance", "none")),
        "weight_cap": NUMBER,
        "min_outcomes": WHOLE,
        "first_round": ChoiceValue(("past", "learned")),
        "constrain_fit": FLAG,
    },
}
_VALUES = PlainValue(
    "a list of numbers or words",
    lambda value: (
        isinstance(value, list)
        and all(isinstance(v, str | int | float) and not isinstance(v, bool) for v in value)
    ),
)
LIMITS: dict[str, Any] = {
    "max_risk": NUMBER,
    "exposure": NUMBER,
    "amount": AnyOf((NUMBER, TEXT)),
    "exclude": TableList(
        TableValue(
            {"column": TEXT, "below": NUMBER, "above": NUMBER, "one_of": _VALUES}, ("column",)
        )
    ),
}
_RULES: dict[str, Any] = {"below": Below, "above": Above, "one_of": OneOf}
# Keys that are options of the classifier under the same name.
_SAME_NAME = (
    "maturity",
    "group_mode",
    "group_as_feature",
    "attributes",
    "delta",
    "horizon",
    "ranks",
    "certify",
    "floor",
    "patience",
    "monitor",
    "thresholds",
    "split",
    "operating_point",
    "weights",
    "weight_cap",
    "min_outcomes",
    "first_round",
    "constrain_fit",
)


def build_classifier(
    settings: dict[str, Any],
    limits: dict[str, Any],
    missing_values: tuple[Any, ...] = (),
    checks: dict[str, Any] | None = None,
) -> Any:
    """Return the classifier that [classifier], [limits] and [checks] describe.

    Parameters
    ----------
    settings, limits
        The tables, as read; ``settings`` has a seed.
    missing_values
        Texts and numbers that mean that a feature is missing.
    checks
        The table, as read.

    Examples
    --------
    >>> build_classifier({"kind": "certified", "alpha": 0.1, "seed": 7}, {})
    CertifiedClassifier(alpha=0.1, random_state=7)
    """
    options: dict[str, Any] = {
        key: settings[key].replace("-", "_") if isinstance(settings[key], str) else settings[key]
        for key in _SAME_NAME
        if key in settings
    }
    options["utility"] = _utility(settings.get("utility"))
    options["strategy"] = _strategy(settings.get("strategy"), limits)
    options["noise"] = OutcomeNoise(**settings["noise"]) if "noise" in settings else None
    options["random_state"] = settings["seed"]
    options["missing_values"] = missing_values or None
    options["checks"] = Checks(**checks) if checks else None
    options["learner"] = _learner(settings)
    if settings["kind"] == _CERTIFIED:
        if "alpha" in settings:
            options["alpha"] = settings["alpha"]
        if options.get("patience") == _NEVER:
            options["patience"] = None
        certified = CertifiedClassifier(**options)
        check_certified_settings(certified)
        return certified
    options["budget"] = _budget(settings)
    options["coverage"] = _made(_COVERAGE, settings, "coverage", "coverage_threshold")
    options["fairness"] = _made(_FAIRNESS, settings, "fairness", "fairness_difference")
    if settings.get("constrain_fit") and options["learner"] is not None:
        raise InputError(
            f"[classifier] constrain_fit = true needs the logistic learner, got learner = "
            f"{settings['learner']!r}; remove one of the two keys."
        )
    plain = PartialFeedbackClassifier(**options)
    check_settings(plain)
    return plain


def _utility(value: Any) -> Any:
    if value is None or isinstance(value, str):
        return None if value is None else _UTILITIES[value]()
    if not value["good"] > 0 > value["bad"]:
        raise InputError(
            f"[classifier] utility must be above 0 for good and below 0 for bad applicants, got "
            f"good = {value['good']} and bad = {value['bad']}; write a loss of 500 as -500."
        )
    return Revenue(gain=value["good"], loss=-value["bad"])


def _strategy(word: str | None, limits: dict[str, Any]) -> Any:
    strategy = None if word is None else _STRATEGIES[word]()
    if not limits:
        return strategy
    rules = [_rule(row) for row in limits.get("exclude", ())]
    return Limited(
        strategy,
        max_risk=limits.get("max_risk"),
        exclude=reduce(or_, rules) if rules else None,
        exposure=limits.get("exposure"),
        amount=limits.get("amount"),
    )


def _rule(row: dict[str, Any]) -> Any:
    tests = [key for key in _RULES if key in row]
    if len(tests) != 1:
        raise InputError(
            f"[limits] exclude must have for each column one of {', '.join(_RULES)}, got {row!r}; "
            f"write a row for each."
        )
    value = row[tests[0]]
    return _RULES[tests[0]](row["column"], tuple(value) if isinstance(value, list) else value)


def _budget(settings: dict[str, Any]) -> FdrBudget:
    names = (("alpha", "alpha"), ("alpha_exploit", "exploit"), ("min_selection_rate",) * 2)
    return FdrBudget(**{name: settings[key] for key, name in names if key in settings})


def _made(known: dict[str, Any], settings: dict[str, Any], key: str, number: str) -> Any:
    """Return the object that a word names, with its parameter if there is one."""
    if key not in settings:
        if number in settings:
            raise InputError(
                f"[classifier] {number} belongs to {key}, which is missing; add {key} = one of "
                f"{', '.join(map(repr, known))}."
            )
        return None
    return known[settings[key]](*([settings[number]] if number in settings else []))


def _learner(settings: dict[str, Any]) -> Any:
    """Return the learner; None is the classifier's own."""
    word, certified = settings.get("learner", _DEFAULT), settings["kind"] == _CERTIFIED
    if word == _BOOSTING:
        return HistGradientBoostingClassifier(random_state=0)
    # The logistic learner is the own one of kind = "partial-feedback".
    return ConstrainedLogistic() if word == _LOGISTIC and certified else None
