"""What groups may change: everything, only what is learned, or nothing at all.

``"aware"``: a decision may depend on the group of the person decided on. ``"blind"``: it may not;
the groups of labelled people shape what is learned, through a constraint in the fit or on a shared
threshold. ``"audit"``: no group value anywhere changes a decision; groups are read, checked and
counted for reports. The edge hands each part of the library what its mode lets it see
(``batches.seen_by``); here is what cannot be combined with that, and the binding of constraints to
several attributes.
"""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline

from secondlook.core.fairness import RateParity
from secondlook.core.groups import Attributes
from secondlook.core.strategies import Strategy, as_strategy
from secondlook.errors import InputError
from secondlook.learners.per_group import PerGroup

__all__ = [
    "ATTRIBUTES",
    "MODES",
    "bound_fairness",
    "bound_learner",
    "check_group_mode",
    "deciding_strategy",
]

MODES = ("aware", "blind", "audit")
ATTRIBUTES = ("crossed", "side_by_side")

_BY_GROUP = {
    "thresholds": "per_group",
    "ranks": "within_group",
    "certify": "per_group",
    "group_as_feature": True,
}
_WHY = {
    "blind": "the group of a person decided on must change nothing",
    "audit": "no group may change a decision",
}


def check_group_mode(classifier: Any) -> None:
    """Raise unless the options of a classifier go together with its mode and its attributes."""
    for name, allowed in (("group_mode", MODES), ("attributes", ATTRIBUTES)):
        if getattr(classifier, name) not in allowed:
            raise InputError(f"{name} must be one of {allowed}, got {getattr(classifier, name)!r}.")
    fairness = getattr(classifier, "fairness", None)
    per_group = getattr(classifier, "thresholds", "shared") == "per_group"
    if classifier.attributes == "side_by_side" and per_group and fairness is not None:
        raise InputError(
            "attributes='side_by_side' with a fairness constraint needs thresholds='shared', got "
            "'per_group'; share them, or compare combinations with attributes='crossed'."
        )
    if classifier.group_mode != "aware":
        _check_decisions_see_no_group(classifier)
    if classifier.group_mode == "audit":
        if fairness is not None:
            _refuse(classifier, "fairness", "set it to None, or use 'blind'")
        if _constraints(classifier.learner):
            _refuse(classifier, "a fairness constraint in the learner", "drop it, or use 'blind'")


def _check_decisions_see_no_group(classifier: Any) -> None:
    for name, value in _BY_GROUP.items():
        if getattr(classifier, name, None) == value:
            _refuse(classifier, f"{name}={value!r}", "leave that out")
    if _fits_by_group(classifier.learner):
        _refuse(classifier, "a learner with a model per group", "give one model for everybody")
    strategy = as_strategy(classifier.strategy)
    if strategy.reads_group:
        what = f"the strategy {strategy!r}, which depends on the group"
        _refuse(classifier, what, "explore with Uniform() or ScoreWeighted()")


def _refuse(classifier: Any, what: str, instead: str) -> None:
    mode = classifier.group_mode
    raise InputError(
        f"group_mode={mode!r} cannot be combined with {what}, since {_WHY[mode]}; {instead}, or "
        f"use group_mode='aware'."
    )


def _fits_by_group(learner: Any) -> bool:
    last = learner.steps[-1][1] if isinstance(learner, Pipeline) else learner
    return isinstance(last, PerGroup)


def _constraints(learner: Any) -> dict[str, RateParity]:
    """Return the fairness constraints among the parameters of a learner and of its parts."""
    if not hasattr(learner, "get_params"):
        return {}
    found = learner.get_params(deep=True).items()
    return {name: value for name, value in found if isinstance(value, RateParity)}


def deciding_strategy(strategy: Strategy, group_mode: str) -> Strategy:
    """Return a strategy that sees no more than the mode allows.

    Examples
    --------
    >>> from secondlook.core.strategies import ScoreWeighted
    >>> deciding_strategy(as_strategy(lambda X, score, group: 1 + group), "blind").reads_group
    False
    >>> deciding_strategy(ScoreWeighted(), "blind")
    ScoreWeighted(beta=0.0, floor=1e-06)
    """
    return strategy if group_mode == "aware" else strategy.without_group()


def bound_fairness(
    fairness: RateParity | None, known: Attributes | None, attributes: str
) -> RateParity | None:
    """Return a constraint over each attribute of a history, where they stand side by side."""
    if fairness is None or known is None or attributes == "crossed":
        return fairness
    return fairness.over(known.partitions)


def bound_learner(learner: Any, known: Attributes | None, attributes: str) -> Any:
    """Bind the constraints of a learner, in place, as ``bound_fairness`` does; return it."""
    constraints = _constraints(learner)
    if constraints:
        learner.set_params(
            **{name: bound_fairness(one, known, attributes) for name, one in constraints.items()}
        )
    return learner
