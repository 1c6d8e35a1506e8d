"""Fitted likelihood models as they are logged: they score applicants, and nothing else."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from fairchance.core.saved import saved
from fairchance.errors import InputError
from fairchance.frames import n_rows, take
from fairchance.people.columns import Expansion

__all__ = [
    "ConstantLikelihood",
    "EstimatorLikelihood",
    "ExpandedLikelihood",
    "GroupedLikelihood",
    "Likelihood",
    "LinearLikelihood",
    "MeanLikelihood",
    "PolicyFunction",
    "expanded",
    "sigmoid",
    "without_expansion",
]

Floats = NDArray[np.floating]
Groups = NDArray[np.intp]


class Likelihood(Protocol):
    """Anything that gives each applicant a score in [0, 1]."""

    @property
    def reads_group(self) -> bool:
        """Whether an applicant's group changes the score."""

    def score(self, X: Any, group: Groups) -> Floats:
        """Return the likelihood of the good outcome (for f_0: of having been accepted)."""


def sigmoid(z: Floats) -> Floats:
    """Return 1 / (1 + exp(−z)) as ½ + ½·tanh(z/2), the form that vectorises best.

    Examples
    --------
    >>> sigmoid(np.array([0.0, 1000.0])).tolist()
    [0.5, 1.0]
    """
    half = z * 0.5
    np.tanh(half, out=half)
    half *= 0.5
    half += 0.5
    return half


@saved
@dataclass(frozen=True)
class LinearLikelihood:
    """A logistic model: score = σ(x · coef + intercept)."""

    reads_group: ClassVar[bool] = False
    coef: NDArray[np.float64]
    intercept: float

    def score(self, X: Any, group: Groups) -> Floats:  # noqa: ARG002
        """Return σ(x · coef + intercept)."""
        return sigmoid(X @ self.coef.astype(X.dtype, copy=False) + X.dtype.type(self.intercept))


@saved
@dataclass(frozen=True)
class ConstantLikelihood:
    """The same score for all applicants."""

    reads_group: ClassVar[bool] = False
    value: float

    def score(self, X: Any, group: Groups) -> Floats:  # noqa: ARG002
        """Return the value for each applicant."""
        return np.full(n_rows(X), self.value)


@saved
@dataclass(frozen=True, eq=False)
class EstimatorLikelihood:
    """Any fitted classifier: the column of ``predict_proba`` that belongs to one class."""

    reads_group: ClassVar[bool] = False
    estimator: Any
    column: int

    def score(self, X: Any, group: Groups) -> Floats:  # noqa: ARG002
        """Return the estimator's probability."""
        return np.asarray(self.estimator.predict_proba(X)[:, self.column], dtype=np.float64)


@saved
@dataclass(frozen=True, eq=False)
class GroupedLikelihood:
    """One likelihood per group."""

    reads_group: ClassVar[bool] = True
    of_group: tuple[Likelihood, ...]

    def score(self, X: Any, group: Groups) -> Floats:
        """Score each applicant by their group's likelihood."""
        score = np.empty(n_rows(X))
        for z, likelihood in enumerate(self.of_group):
            rows = np.flatnonzero(group == z)
            if rows.size:
                score[rows] = likelihood.score(take(X, rows), group[rows])
        return score


@saved
@dataclass(frozen=True, eq=False)
class ExpandedLikelihood:
    """A likelihood of numbers, for features that are codes (``columns.py``)."""

    expansion: Expansion
    likelihood: Likelihood

    @property
    def reads_group(self) -> bool:
        """Whether the likelihood of numbers does."""
        return self.likelihood.reads_group

    def score(self, X: Any, group: Groups) -> Floats:
        """Score applicants by the numbers that their codes become."""
        return self.likelihood.score(self.expansion.numbers(X), group)


def expanded(likelihood: Likelihood, expansion: Expansion | None) -> Likelihood:
    """Return a likelihood of codes from one of numbers; None means that both are the same."""
    return likelihood if expansion is None else ExpandedLikelihood(expansion, likelihood)


def without_expansion(
    likelihoods: Sequence[Likelihood],
) -> tuple[list[Likelihood], Expansion | None]:
    """Return likelihoods of numbers and the expansion that all share, so that it is done once."""
    parts = [part for part in likelihoods if isinstance(part, ExpandedLikelihood)]
    if parts and len(parts) == len(likelihoods):
        first = parts[0].expansion
        if all(part.expansion is first or part.expansion == first for part in parts):
            return [part.likelihood for part in parts], first
    return list(likelihoods), None


@saved
@dataclass(frozen=True, eq=False)
class MeanLikelihood:
    """Mean of several likelihoods on the log-odds scale, as cross-fitting deploys them."""

    parts: tuple[Likelihood, ...]

    @property
    def reads_group(self) -> bool:
        """Whether any part does."""
        return any(part.reads_group for part in self.parts)

    @staticmethod
    def of(parts: tuple[Likelihood, ...]) -> Likelihood:
        """Return the mean; that of linear likelihoods is linear again."""
        inner, expansion = without_expansion(parts)
        linear = [part for part in inner if isinstance(part, LinearLikelihood)]
        if len(linear) < len(parts):
            return MeanLikelihood(parts)
        coef = np.mean([part.coef for part in linear], axis=0)
        mean = LinearLikelihood(coef, float(np.mean([part.intercept for part in linear])))
        return expanded(mean, expansion)

    def score(self, X: Any, group: Groups) -> Floats:
        """Return σ of the mean log-odds."""
        total = np.zeros(n_rows(X))
        for part in self.parts:
            p = np.clip(part.score(X, group), 1e-15, 1 - 1e-15)
            total += np.log(p) - np.log1p(-p)
        return sigmoid(total / len(self.parts))


@saved
@dataclass(frozen=True, eq=False)
class PolicyFunction:
    """A past policy given by the user: a function of the features, or a fitted classifier.

    It gets the user's own features, without a group that was appended to them.
    """

    reads_group: ClassVar[bool] = False
    policy: Any
    n_features: int

    def score(self, X: Any, group: Groups) -> Floats:  # noqa: ARG002
        """Return the probability that the past accepted each applicant."""
        own = X[:, : self.n_features] if isinstance(X, np.ndarray) else X
        if hasattr(self.policy, "predict_proba"):
            with warnings.catch_warnings():
                # It may have been fitted to a frame; the intake has checked the columns.
                warnings.filterwarnings("ignore", "X does not have valid feature names")
                raw = self.policy.predict_proba(own)[:, self._accepting_class()]
        else:
            raw = self.policy(own)
        score = np.asarray(raw, dtype=np.float64)
        if score.shape != (n_rows(X),) or not np.all((score >= 0) & (score <= 1)):
            raise InputError(
                f"past_policy must return one probability in [0, 1] per applicant, "
                f"got shape {score.shape} for {n_rows(X)} rows; return 0 or 1 for a fixed rule."
            )
        return score

    def _accepting_class(self) -> int:
        """Return the column of the class that means accepted."""
        classes = np.asarray(self.policy.classes_).tolist()
        if 1 not in classes or not set(classes) <= {0, 1}:
            raise InputError(
                f"past_policy must have the classes 0 and 1, got {classes}; fit it to whether "
                f"applicants were accepted."
            )
        return int(classes.index(1))
