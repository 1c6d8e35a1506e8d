"""Models of class probabilities: any scikit-learn classifier, by default a multinomial logistic.

A model gives everybody a probability of each class; a class that it has not met gets 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from secondlook.frames import n_rows, subset
from secondlook.learners.wrap import _fit_arguments as fit_arguments
from secondlook.methods.many_classes.decision_table import DecisionTable

__all__ = ["ClassModel", "EstimatorModel", "NetWorth", "SoftmaxModel", "fit_class_model"]

Floats = NDArray[np.float64]


class ClassModel(Protocol):
    """Anything that gives each person a probability of each class."""

    def probabilities(self, X: Any) -> Floats:
        """Return a row a person, a column a class."""


@dataclass(frozen=True, eq=False)
class SoftmaxModel:
    """A multinomial logistic model as plain arrays, a row a class that it has met."""

    coef: Floats
    intercept: Floats
    met: NDArray[np.intp]
    n_classes: int

    def probabilities(self, X: Any) -> Floats:
        """Return the softmax of x · coef + intercept."""
        z = np.asarray(X, np.float64) @ self.coef.T + self.intercept
        z -= z.max(axis=1, keepdims=True)
        np.exp(z, out=z)
        z /= z.sum(axis=1, keepdims=True)
        return _spread(z, self.met, self.n_classes)


@dataclass(frozen=True, eq=False)
class EstimatorModel:
    """Any fitted classifier of class codes."""

    estimator: Any
    n_classes: int

    def probabilities(self, X: Any) -> Floats:
        """Return the estimator's probabilities."""
        met = np.asarray(self.estimator.classes_, dtype=np.intp)
        return _spread(self.estimator.predict_proba(X), met, self.n_classes)


def _spread(p: Any, met: NDArray[np.intp], n_classes: int) -> Floats:
    if met.size == n_classes:
        return np.asarray(p, np.float64)
    spread = np.zeros((n_rows(p), n_classes))
    spread[:, met] = p
    return spread


@dataclass(frozen=True, eq=False)
class NetWorth:
    """f_t as the log of policies keeps it: accepting somebody is worth this much, from 0 to 1."""

    reads_group: ClassVar[bool] = False
    model: ClassModel
    table: DecisionTable
    multiplier: float

    def score(self, X: Any, group: NDArray[np.intp]) -> Floats:  # noqa: ARG002
        """Return the score of ``DecisionTable.look``."""
        return self.table.look(self.model.probabilities(X), self.multiplier).score


def fit_class_model(
    learner: Any,
    X: Any,
    outcome: NDArray[np.int8],
    weight: Floats,
    n_classes: int,
) -> ClassModel:
    """Fit a learner, None for the default, to weighted rows; rows of weight zero are left out."""
    used = weight > 0
    people, seen = subset(X, used), outcome[used]
    weight = weight[used] / weight[used].mean()  # a penalty then means the same in every round
    if learner is None:
        return _fit_softmax(np.asarray(people, np.float64), seen, weight, n_classes)
    model = clone(learner)
    arguments = fit_arguments(model, weight, np.zeros(seen.size, np.intp))
    with config_context(enable_metadata_routing=False):
        model.fit(people, seen, **arguments)
    return EstimatorModel(model, n_classes)


def _fit_softmax(
    X: Floats, outcome: NDArray[np.int8], weight: Floats, n_classes: int
) -> SoftmaxModel:
    """Fit a multinomial logistic to scaled features, and undo the scaling in its coefficients."""
    scaler = StandardScaler().fit(X)
    fitted = LogisticRegression(max_iter=1000).fit(scaler.transform(X), outcome, weight)
    coef, intercept = fitted.coef_ / scaler.scale_, fitted.intercept_
    intercept = intercept - coef @ scaler.mean_
    if coef.shape[0] == 1:  # two classes: the first has log-odds 0
        coef, intercept = np.vstack([0 * coef, coef]), np.append(0.0, intercept)
    return SoftmaxModel(coef, intercept, fitted.classes_.astype(np.intp), n_classes)
