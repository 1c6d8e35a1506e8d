"""Policies to be judged on a log: what probability of acceptance each gives every applicant."""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairchance.audit.log import DecisionLog
from fairchance.errors import InputError
from fairchance.frames import as_array, column, is_frame
from fairchance.people.intake import good_outcome

__all__ = ["Challenger", "PolicyChances", "Rule", "chances"]

Floats = NDArray[np.float64]

_COMPARISONS = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
}
_SHOWN = {">=": "≥", "<=": "≤", "==": "="}
_RULE = re.compile(
    r"\s*(?P<column>.+?)\s*(?P<comparison>>=|<=|==|>|<)\s*(?P<number>[^\s<>=]+)\s*", re.DOTALL
)


@dataclass(frozen=True)
class Rule:
    """Accept if a column compares with a number in a certain way; never if its value is missing.

    Parameters
    ----------
    column
        A column of the log's features, or ``"score"`` for the score that was recorded with each
        decision if the log has one.
    comparison
        ``">="``, ``"<="``, ``">"``, ``"<"`` or ``"=="``.
    number
        The number.

    Examples
    --------
    >>> Rule.parse("score >= 0.85")
    Rule(column='score', comparison='>=', number=0.85)
    """

    column: str
    comparison: str
    number: float

    def __post_init__(self) -> None:
        if self.comparison not in _COMPARISONS:
            raise InputError(
                f"comparison must be one of {', '.join(_COMPARISONS)}, got {self.comparison!r}."
            )

    def __str__(self) -> str:
        shown = _SHOWN.get(self.comparison, self.comparison)
        return f"{self.column} {shown} {self.number:g}"

    @staticmethod
    def parse(text: str) -> Rule:
        """Read a rule from text; nothing in it is ever evaluated."""
        found = _RULE.fullmatch(text)
        try:
            number = float(found["number"]) if found else np.nan
        except ValueError:
            number = np.nan
        if found is None or not np.isfinite(number):
            raise InputError(
                f"a policy is a column, a comparison and a number, such as 'score >= 0.85', got "
                f"{text!r}; text cannot be compared."
            )
        return Rule(found["column"], found["comparison"], number)

    def of(self, log: DecisionLog) -> PolicyChances:
        """Return which applicants the rule accepts."""
        values, recorded = _values(log, self.column)
        pi = _COMPARISONS[self.comparison](values, self.number).astype(np.float64)
        name = f"recorded {self}" if recorded else str(self)
        return PolicyChances(name, pi, changes=recorded and np.unique(log.round).size > 1)


@dataclass(frozen=True, eq=False)
class Challenger:
    """A fitted classifier with an operating point.

    Parameters
    ----------
    model
        A scikit-learn classifier with ``predict_proba``, which gets the log's features.
    threshold
        Applicants with at least this probability of a good outcome are accepted.
    trained_through
        The last round with outcomes that the model, or the choice of its threshold, has seen in any
        form; 0 if it has seen the history only, −1 if not even that. It is judged on later rounds
        only: on outcomes that it has learned, a model is nearly always right.
    name
        What reports call it; None for the name of its class.
    pos_label
        The good outcome, unless the model's classes are 0 and 1.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from fairchance.audit import DecisionLog
    >>> X = np.arange(8.0)[:, None]
    >>> model = LogisticRegression().fit(X, X[:, 0] > 3)
    >>> log = DecisionLog([1] * 8, [1.0] * 8, [0, 0, 0, 0, 1, 1, 1, 1], X=X)
    >>> Challenger(model, 0.5, trained_through=0).of(log).pi.tolist()
    [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]
    """

    model: Any
    threshold: float = 0.5
    trained_through: int = field(kw_only=True)
    name: str | None = None
    pos_label: Any = None

    def __post_init__(self) -> None:
        seen = self.trained_through
        if isinstance(seen, bool) or not isinstance(seen, int | np.integer) or seen < -1:
            raise InputError(
                f"{{option}} must be the last round that the challenger has seen, 0 if none, got "
                f"{seen!r}.",
                option="trained_through",
            )

    def of(self, log: DecisionLog) -> PolicyChances:
        """Return which applicants the challenger accepts."""
        X = _features(log)
        classes = list(getattr(self.model, "classes_", ()))
        if len(classes) != 2 or not hasattr(self.model, "predict_proba"):
            raise InputError(
                f"a challenger must be a fitted classifier of two outcomes with predict_proba, got "
                f"{type(self.model).__name__}; fit it first."
            )
        wanted = getattr(self.model, "feature_names_in_", None)
        if is_frame(X):
            X = _selected(X, log.features if wanted is None else [*map(str, wanted)])
            # scikit-learn selects columns of pandas and polars frames only.
            if wanted is None:
                X = as_array(X)
            elif nw.from_native(X, eager_only=True).implementation.is_pyarrow():
                X = nw.from_native(X, eager_only=True).to_pandas()
        place = classes.index(good_outcome(classes, self.pos_label))
        try:
            score = np.asarray(self.model.predict_proba(X))[:, place]
        except (TypeError, ValueError) as error:  # what scikit-learn raises on other columns
            raise InputError(
                f"the challenger cannot read the log's features ("
                f"{str(error).partition(chr(10))[0].rstrip('.')}); give the log the columns that "
                f"it was fitted on."
            ) from error
        name = self.name or f"{type(self.model).__name__} ≥ {self.threshold:g}"
        pi = (score >= self.threshold).astype(np.float64)
        return PolicyChances(name, pi, trained_through=self.trained_through)


@dataclass(frozen=True, eq=False)
class PolicyChances:
    """A policy on a log.

    Attributes
    ----------
    name
        What reports call it.
    pi
        The probability with which it accepts each applicant; NaN if that is not known.
    changes
        Whether it may be another function of the applicant in another round.
    trained_through
        The last round that it has seen; −1 if it has not even seen the history.
    """

    name: str
    pi: Floats
    changes: bool = False
    trained_through: int = -1


def chances(log: DecisionLog, policy: Any, name: str | None = None) -> PolicyChances:
    """Return the probability with which a policy accepts each applicant of a log.

    A policy is a ``Rule`` or its text, a ``Challenger``, one of our classifiers after a round (it
    has seen all of its own rounds), a column of probabilities, which may change between rounds
    and must not rest on the log's outcomes, or ``"incumbent"``, π = d. The incumbent may know more
    than the log and have a quota: then its rates are those of the applicants who came.
    """
    if isinstance(policy, str) and policy == "incumbent":
        own = np.full(len(log), np.nan) if log.incumbent is None else log.incumbent
        if np.isnan(own).any():
            raise InputError(
                f"the log has no decision of the incumbent in round {log.round[np.isnan(own)][0]}; "
                f"pass incumbent with the log, or select the rounds that have one."
            )
        policy, name = own, name or policy
    if isinstance(policy, str):
        policy = Rule.parse(policy)
    on_score = isinstance(policy, Rule) and policy.column == "score" and log.score is not None
    if isinstance(policy, Rule | Challenger) or hasattr(policy, "acceptance_probability"):
        kept = None if on_score or not log.erased.any() else ~log.erased
        some = log if kept is None else log.select(kept)
        ours = not isinstance(policy, Rule | Challenger)
        found = _of_ours(some, policy) if ours else policy.of(some)
        if kept is not None:
            pi = np.full(len(log), np.nan)
            pi[kept] = found.pi
            found = replace(found, pi=pi)
    elif hasattr(policy, "predict_proba"):
        raise InputError(
            f"a classifier needs an operating point and the last round that it has seen: pass "
            f"Challenger({type(policy).__name__}(…), threshold=…, trained_through=…)."
        )
    else:
        found = _of_column(log, policy)
    return found if name is None else replace(found, name=name)


def _of_ours(log: DecisionLog, classifier: Any) -> PolicyChances:
    d = log.incumbent  # if some are missing, a classifier that needs them says so
    known = {} if d is None or np.isnan(d).any() else {"incumbent": d}
    pi = classifier.acceptance_probability(
        _features(log), sensitive_features=log.sensitive_features, **known
    )
    seen = max(record.round for record in classifier.rounds_)
    return PolicyChances(
        f"{type(classifier).__name__} after round {seen}", pi, trained_through=seen
    )


def _of_column(log: DecisionLog, policy: Any) -> PolicyChances:
    try:
        pi = column(policy, len(log), "the policy", per="decision").astype(np.float64)
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"a policy is a rule such as 'score >= 0.85', a Challenger, one of our classifiers or "
            f"a column of probabilities, got {type(policy).__name__}."
        ) from None
    wrong = ~((pi >= 0) & (pi <= 1)) & ~(log.erased & np.isnan(pi))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"a policy has a probability from 0 to 1 for every decision, got {pi[row]} in row "
            f"{row}."
        )
    return PolicyChances("given probabilities", pi, changes=np.unique(log.round).size > 1)


def _features(log: DecisionLog) -> Any:
    if log.X is None:
        raise InputError("this policy reads features, and the log has none; pass X with the log.")
    return log.X


def _values(log: DecisionLog, name: str) -> tuple[Floats, bool]:
    """Return a column of numbers, and whether it is the recorded score."""
    if name == "score" and log.score is not None:
        return log.score, True
    known: list[str] = ["score"] if log.score is not None else []
    if log.X is not None:
        if is_frame(log.X):
            known += map(str, nw.from_native(log.X, eager_only=True).columns)
        else:
            known += [f"x{at}" for at in range(log.X.shape[1])]
    if name not in known:
        one = "; a rule has one comparison" if re.search("[<>=]", name) else ""
        raise InputError(
            f"the policy reads the column {name!r}, which the log lacks{one}; it has "
            f"{', '.join(map(repr, known)) or 'no columns'}."
        )
    if not is_frame(log.X):
        return np.asarray(log.X[:, int(name[1:])], np.float64), False
    values = as_array(nw.from_native(log.X, eager_only=True)[name])
    try:
        if values.dtype.kind in "mM":  # as numbers, times would be nanoseconds or days
            raise TypeError
        return values.astype(np.float64), False
    except (TypeError, ValueError):
        raise InputError(
            f"the policy compares the column {name!r} with a number, and it holds "
            f"{next(v for v in values if not isinstance(v, int | float | np.number))!r}."
        ) from None


def _selected(X: Any, names: Sequence[str | int] | None) -> Any:
    """Return some columns of a frame, None for all."""
    frame = nw.from_native(X, eager_only=True)
    if names is None:
        return X
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise InputError(
            f"the challenger reads the columns {', '.join(map(repr, missing))}, which the log "
            f"lacks; it has {', '.join(map(repr, frame.columns))}."
        )
    return nw.to_native(frame.select(names))
