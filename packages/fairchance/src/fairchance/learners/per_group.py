"""A separate classifier for each group."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from fairchance.core.saved import saved
from fairchance.errors import InputError
from fairchance.frames import column, is_frame, n_rows, take
from fairchance.learners.logistic import ConstrainedLogistic

__all__ = ["PerGroup"]


@saved
class PerGroup(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Fit a copy of a learner to each group (the paper's setting for its per-group theorems).

    A group with a single outcome has nothing to learn from and uses the model fitted to all rows,
    as does a group that was absent at fit.

    Parameters
    ----------
    learner
        Any scikit-learn classifier with ``predict_proba``; None means ``ConstrainedLogistic()``.

    Examples
    --------
    >>> X, y, z = np.array([[0.0], [1.0], [0.0], [1.0]]), [0, 1, 1, 0], ["a", "a", "b", "b"]
    >>> model = PerGroup().fit(X, y, sensitive_features=z)
    >>> model.predict(X, sensitive_features=z).tolist()
    [0, 1, 1, 0]
    """

    def __init__(self, learner: Any = None) -> None:
        self.learner = learner

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: Any = None,
    ) -> PerGroup:
        """Fit a model to each group, and one to all rows."""
        if is_frame(X):
            validate_data(self, X, skip_check_array=True)
            target = np.asarray(y)
        else:
            X, target = validate_data(self, X, y, dtype=[np.float64, np.float32])
        check_classification_targets(target)
        self.classes_ = np.unique(target)
        if self.classes_.size > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{type_of_target(target)}."
            )
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        group = _groups(sensitive_features, X)
        self.groups_ = np.unique(group)
        self.shared_model_ = self._fit_rows(X, target, weight, np.arange(n_rows(X)))
        self.models_ = {}
        for z in self.groups_.tolist():
            rows = np.flatnonzero((group == z) & (weight > 0))
            if np.unique(target[rows]).size == 2:
                self.models_[z] = self._fit_rows(X, target, weight, rows)
        return self

    def _fit_rows(
        self, X: Any, y: NDArray[Any], weight: NDArray[np.float64], rows: NDArray[np.intp]
    ) -> Any:
        model = ConstrainedLogistic() if self.learner is None else clone(self.learner)
        return model.fit(take(X, rows), y[rows], sample_weight=weight[rows])

    def model_of(self, group: object) -> Any:
        """Return the fitted model that scores a group."""
        return self.models_.get(group, self.shared_model_)

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> NDArray[np.float64]:
        """Return the probability of each class under the model of each row's group."""
        check_is_fitted(self)
        if not is_frame(X):
            X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        if sensitive_features is None and self.groups_.size > 1:
            raise InputError(
                "sensitive_features is needed to choose each row's model, since fit got groups "
                f"{', '.join(map(repr, self.groups_.tolist()))}; pass one group per row."
            )
        group = _groups(sensitive_features, X, self.groups_[0])
        probability = np.empty((n_rows(X), self.classes_.size))
        for z in np.unique(group).tolist():
            rows = np.flatnonzero(group == z)
            probability[rows] = self.model_of(z).predict_proba(take(X, rows))
        return probability

    def predict(self, X: Any, *, sensitive_features: Any = None) -> NDArray[Any]:
        """Return the likelier class under the model of each row's group."""
        probability = self.predict_proba(X, sensitive_features=sensitive_features)
        return np.asarray(self.classes_[np.argmax(probability, axis=1)])


def _groups(sensitive_features: Any, X: Any, only: object = 0) -> NDArray[Any]:
    if sensitive_features is None:
        return np.full(n_rows(X), only)
    return column(sensitive_features, n_rows(X), "sensitive_features")
