"""Classifiers from the values of a configuration."""

from __future__ import annotations

from functools import reduce
from importlib.util import find_spec
from operator import or_
from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from secondlook.core.budget import FdrBudget
from secondlook.core.coverage import MeanPastScore, SummedAcceptance, SumOfG
from secondlook.core.fairness import SelectionRateParity, TruePositiveRateParity
from secondlook.core.limits import Above, Below, Limited, OneOf
from secondlook.core.noise import OutcomeNoise
from secondlook.core.strategies import EqualGroups, GroupShare, ScoreWeighted, Uniform
from secondlook.core.utility import Accuracy, PositiveRate, Revenue
from secondlook.errors import InputError, to_install
from secondlook.learners.logistic import ConstrainedLogistic
from secondlook.ledger.config_kinds import (
    FLAG,
    NUMBER,
    TEXT,
    WHOLE,
    Choice,
    Kind,
    OneOfKinds,
    Rows,
    Table,
)
from secondlook.methods.algorithm1.classifier import PartialFeedbackClassifier, check_settings
from secondlook.methods.certified.classifier import CertifiedClassifier
from secondlook.methods.certified.rules import check_certified_settings

__all__ = ["CLASSIFIERS", "LIMITS", "build_classifier", "takes_missing"]

_CERTIFIED, _PARTIAL = "certified", "partial-feedback"
_LOGISTIC, _BOOSTING = "logistic", "gradient-boosting"
_REFUSE, _IMPUTE = "refuse", "impute"
_LARGEST_SEED = 2**32 - 1  # what numpy and scikit-learn take
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
    "kind": Choice((_CERTIFIED, _PARTIAL)),
    "alpha": NUMBER,
    "utility": OneOfKinds(
        (Table({"good": NUMBER, "bad": NUMBER}, ("good", "bad")), Choice(tuple(_UTILITIES)))
    ),
    "strategy": Choice(tuple(_STRATEGIES)),
    "learner": Choice((_LOGISTIC, _BOOSTING)),
    "missing": Choice((_REFUSE, _IMPUTE)),
    "maturity": WHOLE,
    "noise": Table({"bad_as_good": NUMBER, "good_as_bad": NUMBER}),
    "group_mode": Choice(("aware", "blind", "audit")),
    "group_as_feature": FLAG,
    "attributes": Choice(("crossed", "side-by-side")),
    "seed": Kind(
        f"a whole number from 0 to {_LARGEST_SEED}",
        lambda one: WHOLE.fits(one) and 0 <= one <= _LARGEST_SEED,
    ),
}
CLASSIFIERS: dict[str, dict[str, Any]] = {
    _CERTIFIED: {
        **_COMMON,
        "delta": NUMBER,
        "horizon": WHOLE,
        "ranks": Choice(("overall", "within-group")),
        "certify": Choice(("overall", "per-group")),
        "floor": NUMBER,
        "patience": WHOLE,
        "monitor": NUMBER,
    },
    _PARTIAL: {
        **_COMMON,
        "alpha_exploit": NUMBER,
        "min_selection_rate": NUMBER,
        "coverage": Choice(tuple(_COVERAGE)),
        "coverage_threshold": NUMBER,
        "fairness": Choice(tuple(_FAIRNESS)),
        "fairness_difference": NUMBER,
        "thresholds": Choice(("shared", "per-group")),
        "split": Choice(("half", "cross")),
        "weights": Choice(("acceptance", "none")),
        "weight_cap": NUMBER,
        "min_outcomes": WHOLE,
        "first_round": Choice(("past", "learned")),
        "constrain_fit": FLAG,
    },
}
_VALUES = Kind(
    "a list of numbers or words",
    lambda value: (
        isinstance(value, list)
        and all(isinstance(one, str | int | float) and not isinstance(one, bool) for one in value)
    ),
)
LIMITS: dict[str, Any] = {
    "max_risk": NUMBER,
    "exposure": NUMBER,
    "amount": OneOfKinds((NUMBER, TEXT)),
    "exclude": Rows(
        Table({"column": TEXT, "below": NUMBER, "above": NUMBER, "one_of": _VALUES}, ("column",))
    ),
}
_RULES = {"below": Below, "above": Above, "one_of": OneOf}
# Keys that are handed on under their own names; words take the library's underscores.
_AS_THEY_ARE = (
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
    "weights",
    "weight_cap",
    "min_outcomes",
    "first_round",
    "constrain_fit",
)


def build_classifier(
    settings: dict[str, Any],
    limits: dict[str, Any],
    texts: tuple[str, ...] = (),
    numbers: tuple[str, ...] = (),
) -> Any:
    """Return the classifier that [classifier] and [limits] describe.

    Parameters
    ----------
    settings, limits
        Values that were read; ``settings`` has a seed.
    texts, numbers
        Features that hold text, and numbers.

    Examples
    --------
    >>> build_classifier({"kind": "certified", "alpha": 0.1, "seed": 7}, {})
    CertifiedClassifier(alpha=0.1, random_state=7)
    """
    options: dict[str, Any] = {
        key: settings[key].replace("-", "_") if isinstance(settings[key], str) else settings[key]
        for key in _AS_THEY_ARE
        if key in settings
    }
    options["utility"] = _utility(settings.get("utility"))
    options["strategy"] = _strategy(settings.get("strategy"), limits)
    options["noise"] = OutcomeNoise(**settings["noise"]) if "noise" in settings else None
    options["random_state"] = settings["seed"]
    learner, impute = settings.get("learner", _LOGISTIC), settings.get("missing") == _IMPUTE
    if impute and learner != _LOGISTIC:
        raise InputError(
            f"[classifier] missing = 'impute' goes with learner = 'logistic', got {learner!r}, "
            f"which takes missing values as they are; take one of the two keys out."
        )
    if settings["kind"] == _CERTIFIED:
        if texts:
            raise InputError(
                f"kind = 'certified' decides by numbers, and the features "
                f"{', '.join(map(repr, texts))} hold text; encode them as numbers, name the "
                f"features to use in [columns] features, or take kind = 'partial-feedback'."
            )
        if "alpha" in settings:
            options["alpha"] = settings["alpha"]
        options["learner"] = _learner(learner, (), numbers, impute)
        certified = CertifiedClassifier(**options)
        check_certified_settings(certified)
        return certified
    options["budget"] = _budget(settings)
    options["coverage"] = _made(_COVERAGE, settings, "coverage", "coverage_threshold")
    options["fairness"] = _made(_FAIRNESS, settings, "fairness", "fairness_difference")
    options["learner"] = _learner(learner, texts, numbers, impute)
    if settings.get("constrain_fit") and options["learner"] is not None:
        raise InputError(
            "[classifier] constrain_fit = true needs the logistic learner on numbers alone, got "
            "features that hold text, missing = 'impute' or another learner; take it out, or these."
        )
    plain = PartialFeedbackClassifier(**options)
    check_settings(plain)
    return plain


def _utility(value: Any) -> Any:
    if value is None or isinstance(value, str):
        return None if value is None else _UTILITIES[value]()
    if not value["good"] > 0 > value["bad"]:
        raise InputError(
            f"[classifier] utility is what accepting brings, above 0 for good and below 0 for bad "
            f"people, got good = {value['good']} and bad = {value['bad']}; write a loss of 500 as "
            f"-500."
        )
    return Revenue(gain=value["good"], loss=-value["bad"])


def _strategy(word: str | None, limits: dict[str, Any]) -> Any:
    strategy = None if word is None else _STRATEGIES[word]()
    if not limits:
        return strategy
    rules = [_rule(one) for one in limits.get("exclude", ())]
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
            f"[limits] exclude must say for each column one of {', '.join(_RULES)}, got {row!r}; "
            f"write a row for each."
        )
    value = row[tests[0]]
    return _RULES[tests[0]](row["column"], tuple(value) if isinstance(value, list) else value)


def _budget(settings: dict[str, Any]) -> FdrBudget:
    names = (("alpha", "alpha"), ("alpha_exploit", "exploit"), ("min_selection_rate",) * 2)
    return FdrBudget(**{name: settings[key] for key, name in names if key in settings})


def _made(known: dict[str, Any], settings: dict[str, Any], key: str, number: str) -> Any:
    """Return the object that a word names, with its number if there is one."""
    if key not in settings:
        if number in settings:
            raise InputError(
                f"[classifier] {number} belongs to {key}, which is missing; add {key} = one of "
                f"{', '.join(map(repr, known))}."
            )
        return None
    return known[settings[key]](*([settings[number]] if number in settings else []))


def takes_missing(settings: dict[str, Any]) -> bool:
    """Say whether rows with missing features can be used under [classifier].

    Examples
    --------
    >>> takes_missing({}), takes_missing({"missing": "impute"})
    (False, True)
    """
    boosting = settings.get("learner") == _BOOSTING
    return bool(settings.get("missing", _IMPUTE if boosting else _REFUSE) == _IMPUTE)


def _learner(word: str, texts: tuple[str, ...], numbers: tuple[str, ...], impute: bool) -> Any:
    if not texts:
        model = None if word == _LOGISTIC else _boosting()
        return Pipeline([*_filled(), ("model", ConstrainedLogistic())]) if impute else model
    for package in ("pandas", "skops"):
        if find_spec(package) is None:
            raise InputError(
                f"features that hold text, here {', '.join(map(repr, texts))}, need {package}, "
                f"which is not installed; {to_install('production')} installs it."
            )
    scale = StandardScaler() if word == _LOGISTIC else "passthrough"
    parts = [
        ("text", OneHotEncoder(handle_unknown="ignore", sparse_output=False), list(texts)),
        ("numbers", Pipeline(_filled()) if impute else scale, list(numbers)),
    ]
    model = ConstrainedLogistic() if word == _LOGISTIC else _boosting()
    return Pipeline([("columns", ColumnTransformer(parts)), ("model", model)])


def _filled() -> list[tuple[str, Any]]:
    """Return steps that put the median where a number is missing, and say so in a column."""
    fill = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    return [("fill", fill), ("scale", StandardScaler())]


def _boosting() -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(random_state=0)
