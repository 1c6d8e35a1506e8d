"""Classifiers, built from words: the tables [classifier], [limits] and [checks] of a file.

Programs read the tables from their configuration, experiments from the file of a world, which may
also set the options of Algorithm 1 in ``RESEARCH``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from inspect import signature
from operator import or_
from typing import Any

from fairchance.core.budget import ExploitOnly, FdrBudget, PowerSchedule
from fairchance.core.coverage import MeanPastScore, SummedAcceptance, SumOfG
from fairchance.core.fairness import (
    EqualizedOdds,
    FalseDiscoveryRateParity,
    FalseOmissionRateParity,
    FalsePositiveRateParity,
    SelectionRateParity,
    TruePositiveRateParity,
)
from fairchance.core.limits import Above, Below, Limited, OneOf
from fairchance.core.noise import OutcomeNoise
from fairchance.core.strategies import EqualGroups, GroupShare, ScoreWeighted, Uniform
from fairchance.core.utility import Accuracy, PositiveRate, Revenue
from fairchance.errors import InputError
from fairchance.learners.logistic import ConstrainedLogistic
from fairchance.learners.trees import GradientBoosting
from fairchance.methods.algorithm1.classifier import PartialFeedbackClassifier, check_settings
from fairchance.methods.certified.classifier import CertifiedClassifier
from fairchance.methods.certified.rules import check_certified_settings
from fairchance.methods.option_values import (
    FLAG,
    NUMBER,
    TEXT,
    WHOLE,
    ChoiceValue,
    PlainValue,
    is_table,
)
from fairchance.people.likeness import Checks

__all__ = [
    "CLASSIFIERS",
    "LIMITS",
    "PARTIAL",
    "RESEARCH",
    "build_classifier",
    "why_useless",
]

_CERTIFIED, PARTIAL = "certified", "partial-feedback"
_NEVER = "never"  # a patience without end
_NONE = "none"  # weights without a cap, and thresholds that always use the history
_DEFAULT, _LOGISTIC, _BOOSTING = "default", "logistic", "gradient-boosting"
_LARGEST_SEED = 2**63 - 1  # the largest number of TOML; a seed that is drawn has 128 bits
_UTILITIES = {"accuracy": Accuracy, "positive-rate": PositiveRate}


def _group_share(reading: Any = "quota", **within: Any) -> GroupShare:
    return GroupShare(ScoreWeighted(**within), reading)


_STRATEGIES: dict[str, Any] = {
    "uniform": Uniform,
    "score-weighted": ScoreWeighted,
    "group-share": _group_share,
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
    "false-positive-rate": FalsePositiveRateParity,
    "equalized-odds": EqualizedOdds,
    "false-discovery-rate": FalseDiscoveryRateParity,
    "false-omission-rate": FalseOmissionRateParity,
}
# What kind = "partial-feedback" uses if no key names another.
_OWN = {"strategy": "score-weighted", "coverage": "summed-acceptance"}
# Keys without an effect beside some values of another key; None is a missing key.
_NO_BETA = (None, "uniform", "equal-groups")
_USELESS: dict[str, dict[str, tuple[Any, ...]]] = {
    "strategy_beta": {"strategy": _NO_BETA},
    "strategy_floor": {"strategy": _NO_BETA},
    "strategy_reading": {"strategy": (*_NO_BETA, "score-weighted")},
    "coverage_reference_size": {"coverage": ("mean-past-score", "sum-of-g")},
    "fairness_difference": {"fairness": (None,)},
    "fairness_ratio": {"fairness": (None,)},
    "fairness_in": {"fairness": (None,), "learner": (_BOOSTING,)},
    "weight_cap": {"weights": ("none",)},
    "bounds_in": {"learner": (_BOOSTING,)},
    "past_selection": {"learner": (_LOGISTIC, _BOOSTING)},
}

_UTILITY_WORDS = ChoiceValue(tuple(_UTILITIES))
_WORTH = {"good": NUMBER, "bad": NUMBER}
_NOISE = {"bad_as_good": NUMBER, "good_as_bad": NUMBER}
_COMMON: dict[str, Any] = {
    "kind": ChoiceValue((_CERTIFIED, PARTIAL)),
    "alpha": NUMBER,
    "utility": PlainValue(
        "{ good = 200, bad = -500 } or " + _UTILITY_WORDS.description,
        lambda value: is_table(value, _WORTH, tuple(_WORTH)) or _UTILITY_WORDS.fits(value),
    ),
    "strategy": ChoiceValue(tuple(_STRATEGIES)),
    "strategy_beta": NUMBER,
    "strategy_floor": NUMBER,
    "learner": ChoiceValue((_DEFAULT, _LOGISTIC, _BOOSTING)),
    "maturity": WHOLE,
    "noise": PlainValue(
        "{ bad_as_good = 0.1, good_as_bad = 0.1 }", lambda value: is_table(value, _NOISE)
    ),
    "group_mode": ChoiceValue(("aware", "blind", "audit")),
    "group_as_feature": FLAG,
    "attributes": ChoiceValue(("crossed", "side-by-side")),
    "seed": PlainValue(
        f"a whole number from 0 to {_LARGEST_SEED}",
        lambda value: WHOLE.fits(value) and 0 <= value <= _LARGEST_SEED,
    ),
}
# The keys of a program's [classifier], by its kind.
CLASSIFIERS: dict[str, dict[str, Any]] = {
    _CERTIFIED: {
        **_COMMON,
        "delta": NUMBER,
        "past_selection": ChoiceValue(("automatic", "features", "outcome", "unknown")),
        "horizon": WHOLE,
        "ranks": ChoiceValue(("overall", "within-group")),
        "certify": ChoiceValue(("overall", "per-group")),
        "floor": NUMBER,
        "shock": NUMBER,
        "per_person": WHOLE,
        "exploration_price": NUMBER,
        "patience": PlainValue(
            f"a whole number or {_NEVER!r}", lambda value: value == _NEVER or WHOLE.fits(value)
        ),
        "monitor": NUMBER,
        "validity": WHOLE,
    },
    PARTIAL: {
        **_COMMON,
        "min_selection_rate": NUMBER,
        "explore": FLAG,
        "exploration": ChoiceValue(("fixed", "coins")),
        "coverage_threshold": NUMBER,
        "fairness": ChoiceValue(tuple(_FAIRNESS)),
        "fairness_difference": NUMBER,
        "fairness_ratio": NUMBER,
        "thresholds": ChoiceValue(("shared", "per-group")),
    },
}
# Further options of kind = "partial-feedback", for experiments; a program's file has none of them.
RESEARCH: dict[str, Any] = {
    "strategy_reading": ChoiceValue(("quota", "product")),
    "alpha_exploit": NUMBER,
    "alpha_exploit_start": NUMBER,
    "alpha_exploit_power": NUMBER,
    "reserve": NUMBER,
    "slack": NUMBER,
    "coverage": ChoiceValue(tuple(_COVERAGE)),
    "coverage_reference_size": WHOLE,
    "fairness_in": ChoiceValue(("thresholds", "fit")),
    "constraints": ChoiceValue(("joint", "per-group")),
    "split": ChoiceValue(("half", "cross")),
    "weights": ChoiceValue(("acceptance", "none")),
    "weight_cap": PlainValue(
        f"a number or {_NONE!r}", lambda value: value == _NONE or NUMBER.fits(value)
    ),
    "min_outcomes": PlainValue(
        f"a whole number or {_NONE!r}", lambda value: value == _NONE or WHOLE.fits(value)
    ),
    "first_round": ChoiceValue(("matched", "drawn", "cut", "learned")),
    "bounds_in": ChoiceValue(("thresholds", "fit", "both")),
}
_VALUES = PlainValue(
    "numbers or words",
    lambda value: isinstance(value, list) and all(NUMBER.fits(v) or TEXT.fits(v) for v in value),
)
_TESTS = {"below": NUMBER, "above": NUMBER, "one_of": _VALUES}


def _is_rule(row: Any) -> bool:
    return is_table(row, {"column": TEXT, **_TESTS}, ["column"]) and len(row) == 2


LIMITS: dict[str, Any] = {
    "max_risk": NUMBER,
    "exposure": NUMBER,
    "amount": PlainValue(
        "a number or a column", lambda value: NUMBER.fits(value) or TEXT.fits(value)
    ),
    "exclude": PlainValue(
        'a list of tables { column = "age", below = 18 }, each with below, above or one_of',
        lambda value: isinstance(value, list) and all(map(_is_rule, value)),
    ),
}
_RULES: dict[str, Any] = {"below": Below, "above": Above, "one_of": OneOf}


def build_classifier(
    settings: dict[str, Any],
    limits: dict[str, Any],
    missing_values: tuple[Any, ...] = (),
    checks: dict[str, Any] | None = None,
) -> Any:
    """Return the classifier that [classifier], [limits] and [checks] describe.

    Examples
    --------
    >>> build_classifier({"kind": "certified", "alpha": 0.1, "seed": 7}, {})
    CertifiedClassifier(alpha=0.1, random_state=7)
    """
    for key in settings:
        reason = why_useless(key, settings)
        if reason:
            raise InputError(f"[classifier] {key} has no effect, because {reason}; remove it.")
    certified = settings["kind"] == _CERTIFIED
    kind = CertifiedClassifier if certified else PartialFeedbackClassifier
    options: dict[str, Any] = {
        key: value.replace("-", "_") if isinstance(value, str) else value
        for key, value in settings.items()
        if key in signature(kind).parameters
    }
    options["utility"] = _utility(settings.get("utility"))
    options["strategy"] = _limited(_made(_STRATEGIES, settings, "strategy"), limits)
    options["noise"] = OutcomeNoise(**settings["noise"]) if "noise" in settings else None
    options["random_state"] = settings["seed"]
    options["missing_values"] = missing_values or None
    options["checks"] = Checks(**checks) if checks else None
    options["learner"] = _learner(settings)
    if certified:
        if options.get("patience") == _NEVER:
            options["patience"] = None
        made = CertifiedClassifier(**options)
        check_certified_settings(made)
        return made
    options["budget"] = _budget(settings)
    options["coverage"] = _made(_COVERAGE, settings, "coverage")
    options["fairness"] = _made(_FAIRNESS, settings, "fairness")
    if settings.get("fairness_in") == "fit":
        options["learner"] = ConstrainedLogistic(fairness=options.pop("fairness"))
    options |= {key: None for key in ("weight_cap", "min_outcomes") if options.get(key) == _NONE}
    plain = PartialFeedbackClassifier(**options)
    check_settings(plain)
    return plain


def why_useless(key: str, settings: Mapping[str, Any]) -> str:
    """Return why a key has no effect beside the others; empty if it has one.

    Examples
    --------
    >>> why_useless("weight_cap", {"weight_cap": 5, "weights": "none"})
    "weights = 'none'"
    """
    own = _OWN if settings.get("kind", PARTIAL) == PARTIAL else {}
    for other, values in _USELESS.get(key, {}).items():
        word = settings.get(other, own.get(other))
        if word in values and settings.get(key) is not False:
            return f"{other} is missing" if word is None else f"{other} = {word!r}"
    # Without exploration, a strategy has an effect only if it also counts coverage by g.
    if key == "exploration" and settings.get("explore") is False:
        return "explore = False"
    explored = settings.get("explore", True) or settings.get("coverage") == "sum-of-g"
    if key.startswith("strategy") and not explored:
        return "explore = False"
    growing = key in ("alpha_exploit_start", "alpha_exploit_power", "reserve")
    if growing and (constant := settings.get("alpha_exploit")) is not None:
        return f"alpha_exploit = {constant} is constant"
    return ""


def _utility(value: Any) -> Any:
    if value is None or isinstance(value, str):
        return None if value is None else _UTILITIES[value.replace("_", "-")]()
    if not value["good"] > 0 > value["bad"]:
        raise InputError(
            f"[classifier] utility must be above 0 for good and below 0 for bad, got {value!r}; "
            f"write a loss of 500 as -500."
        )
    return Revenue(gain=value["good"], loss=-value["bad"])


def _limited(strategy: Any, limits: dict[str, Any]) -> Any:
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
    (test,) = row.keys() - {"column"}
    value = row[test]
    return _RULES[test](row["column"], tuple(value) if isinstance(value, list) else value)


def _budget(settings: dict[str, Any]) -> FdrBudget:
    names = ("alpha", "min_selection_rate", "slack", "reserve")
    options = {name: settings[name] for name in names if name in settings}
    keys = {"alpha_exploit_start": "start", "alpha_exploit_power": "power"}
    schedule = {name: settings[key] for key, name in keys.items() if key in settings}
    if "alpha_exploit" in settings:
        options["exploit"] = settings["alpha_exploit"]
    elif schedule:
        options["exploit"] = PowerSchedule(**schedule)
    return (FdrBudget if settings.get("explore", True) else ExploitOnly)(**options)


def _made(known: dict[str, Any], settings: dict[str, Any], key: str) -> Any:
    """Return the object that a word names, with its parameters; None without any of them.

    The key strategy_beta is the parameter beta of a strategy.
    """
    parameters = {
        other.removeprefix(f"{key}_"): value
        for other, value in settings.items()
        if other.startswith(f"{key}_") and other != "fairness_in"
    }
    if key not in settings and not parameters:
        return None
    return known[settings.get(key) or _OWN[key]](**parameters)


def _learner(settings: dict[str, Any]) -> Any:
    """Return the learner; None is the classifier's own."""
    word, certified = settings.get("learner", _DEFAULT), settings["kind"] == _CERTIFIED
    if word == _BOOSTING:
        return GradientBoosting()
    # The logistic learner is the own one of kind = "partial-feedback".
    return ConstrainedLogistic() if word == _LOGISTIC and certified else None
