"""Models of class probabilities: any scikit-learn classifier, by default a multinomial logistic.

A model gives every applicant a probability of each class, 0 for classes it was not trained on.
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

from fairchance.core.saved import saved
from fairchance.frames import n_rows, subset
from fairchance.learners.wrap import fit_arguments
from fairchance_lab.many_classes.decision_table import DecisionTable

__all__ = ["ClassModel", "EstimatorModel", "NetUtility", "SoftmaxModel", "fit_class_model"]

Floats = NDArray[np.float64]


class ClassModel(Protocol):
    """A model that gives each applicant a probability of each class."""

    def probabilities(self, X: Any) -> Floats:
        """Return a row per applicant, a column per class."""


@saved
@dataclass(frozen=True, eq=False)
class SoftmaxModel:
    """A multinomial logistic model as plain arrays; ``trained`` are the codes of its rows."""

    coef: Floats
    intercept: Floats
    trained: NDArray[np.intp]
    n_classes: int

    def probabilities(self, X: Any) -> Floats:
        """Return the softmax of x · coef + intercept."""
        z = np.asarray(X, np.float64) @ self.coef.T + self.intercept
        z -= z.max(axis=1, keepdims=True)
        np.exp(z, out=z)
        z /= z.sum(axis=1, keepdims=True)
        return _with_all_classes(z, self.trained, self.n_classes)


@saved
@dataclass(frozen=True, eq=False)
class EstimatorModel:
    """A fitted scikit-learn classifier of class codes."""

    estimator: Any
    n_classes: int

    def probabilities(self, X: Any) -> Floats:
        """Return the probabilities of the estimator."""
        trained = np.asarray(self.estimator.classes_, dtype=np.intp)
        return _with_all_classes(self.estimator.predict_proba(X), trained, self.n_classes)


def _with_all_classes(p: Any, trained: NDArray[np.intp], n_classes: int) -> Floats:
    """Return probabilities with columns of 0 for classes that the model was not trained on."""
    if trained.size == n_classes:
        return np.asarray(p, np.float64)
    complete = np.zeros((n_rows(p), n_classes))
    complete[:, trained] = p
    return complete


@saved
@dataclass(frozen=True, eq=False)
class NetUtility:
    """f_t in the form of a likelihood: the net utility of accepting, scaled to [0, 1]."""

    reads_group: ClassVar[bool] = False
    model: ClassModel
    table: DecisionTable
    multiplier: float

    def score(self, X: Any, group: NDArray[np.intp]) -> Floats:  # noqa: ARG002
        """Return the score of ``DecisionTable.evaluate``."""
        return self.table.evaluate(self.model.probabilities(X), self.multiplier).score


def fit_class_model(
    learner: Any,
    X: Any,
    outcome: NDArray[np.int8],
    weight: Floats,
    n_classes: int,
) -> ClassModel:
    """Fit a learner, None for the default, to rows with positive weight."""
    used = weight > 0
    features, codes = subset(X, used), outcome[used]
    weight = weight[used] / weight[used].mean()  # a penalty then means the same in every round
    if learner is None:
        return _fit_softmax(np.asarray(features, np.float64), codes, weight, n_classes)
    model = clone(learner)
    arguments = fit_arguments(model, weight, np.zeros(codes.size, np.intp))
    with config_context(enable_metadata_routing=False):
        model.fit(features, codes, **arguments)
    return EstimatorModel(model, n_classes)


def _fit_softmax(
    X: Floats, outcome: NDArray[np.int8], weight: Floats, n_classes: int
) -> SoftmaxModel:
    """Fit a multinomial logistic to scaled features and undo the scaling in its coefficients."""
    scaler = StandardScaler().fit(X)
    fitted = LogisticRegression(max_iter=1000).fit(scaler.transform(X), outcome, weight)
    coef, intercept = fitted.coef_ / scaler.scale_, fitted.intercept_
    intercept = intercept - coef @ scaler.mean_
    if coef.shape[0] == 1:  # for two classes scikit-learn keeps only the log-odds of the second
        coef, intercept = np.vstack([0 * coef, coef]), np.append(0.0, intercept)
    return SoftmaxModel(coef, intercept, fitted.classes_.astype(np.intp), n_classes)
