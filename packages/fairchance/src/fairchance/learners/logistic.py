"""Logistic regression under expected FDR, selection-rate and fairness constraints."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from fairchance.core.fairness import RateParity
from fairchance.core.saved import saved
from fairchance.errors import InputError, LearningWarning
from fairchance.learners.problem import (
    Array,
    FitBounds,
    Floats,
    SmoothProblem,
    checked_codes,
    group_codes,
    smooth_rates,
)
from fairchance.learners.solver import FitStatus, solve

__all__ = ["ConstrainedLogistic", "FitStatus"]


@saved
class ConstrainedLogistic(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Logistic regression whose expected decisions respect FDR, selection rate and fairness.

    Minimises ``Σ w_i·logloss_i + l2/2·|coef|²`` over linear models, with ``σ_i`` the likelihood of
    the good outcome (``classes_[1]``) in place of the 0/1 decision, subject to those asked for of

    - ``Σ w σ (1−y) / Σ w σ ≤ max_fdr``,
    - ``Σ w σ / Σ w ≥ min_selection_rate``,
    - ``rate_a − rate_b ≤ fairness.difference`` for every two groups, or
      ``rate_b ≥ fairness.ratio · rate_a``, where a rate is the weight of some kinds of decisions
      over that of more kinds, with ``w σ`` accepted and ``w (1 − σ)`` rejected of each row; groups
      without such weight are left out. If the constraint has attributes, for every two levels of
      each of them.

    This is the paper's learning step (Algorithm 1, step 1, as its experiments do it). The solver is
    scipy's SLSQP with exact derivatives, in variables scaled by the second derivative of the loss
    (``learners/solver.py``). Its time grows with the cube of the number of
    features: hundreds take seconds at most, several thousands are too many.

    The constraints are not convex, so the solution is a local one. Up to four starts are tried,
    further ones only if the one before failed; they are always the same. If none of them leads to
    a model that meets the constraints, the answer is the model with the best balance of the mean
    log-loss and the excess over each bound, an excess of 0.1 counting as much as a log-loss of 1.
    Then ``status_.feasible`` is False and a :class:`~fairchance.errors.LearningWarning` is given.

    Parameters
    ----------
    l2
        Strength of the penalty on the coefficients, at least 0; scikit-learn's ``1 / C``.
    fairness
        Bound on group rates; needs ``sensitive_features`` in :meth:`fit`.
    max_fdr
        Largest expected share of bad outcomes among the accepted, in (0, 1).
    min_selection_rate
        Smallest expected share of accepted applicants, in [0, 1).
    fit_intercept
        Whether to add an intercept, which is not penalised.
    tol
        Largest violation of a constraint; the mean log-loss is within about ``tol²`` of its
        minimum.
    max_iter
        Largest number of iterations from each start.
    warm_start
        Start from the previous solution of this object if it has the same number of features.

    Attributes
    ----------
    coef_, intercept_
        The model, of shapes (1, n_features) and (1,).
    classes_
        The two outcomes; the second is the good one.
    status_
        How the solver ended, a ``FitStatus``.
    n_iter_
        Iterations over all starts.
    n_features_in_
        Number of features seen in :meth:`fit`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> y = (X[:, 0] + rng.normal(size=500) > 0).astype(int)
    >>> model = ConstrainedLogistic(max_fdr=0.2).fit(X, y)
    >>> p = model.predict_proba(X)[:, 1]
    >>> round(float(p[y == 0].sum() / p.sum()), 4), model.status_.feasible
    (0.2, True)
    """

    def __init__(
        self,
        *,
        l2: float = 1.0,
        fairness: RateParity | None = None,
        max_fdr: float | None = None,
        min_selection_rate: float | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 100,
        warm_start: bool = False,
    ) -> None:
        self.l2 = l2
        self.fairness = fairness
        self.max_fdr = max_fdr
        self.min_selection_rate = min_selection_rate
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: ArrayLike | None = None,
    ) -> Self:
        """Fit to rows with known outcomes.

        Parameters
        ----------
        X
            Features, in float64 or float32.
        y
            Outcomes, two classes.
        sample_weight
            Weight of each row, at least 0; rows of weight 0 do not matter.
        sensitive_features
            Group of each row, of any type that can be sorted; needed with ``fairness``.
        """
        self._check_parameters()
        problem = self._problem(X, y, sample_weight, sensitive_features)
        x, self.status_ = solve(problem, self._previous(), self.tol, self.max_iter)
        d = self.n_features_in_
        self.coef_ = x[None, :d].copy()
        self.intercept_ = x[d:].copy() if self.fit_intercept else np.zeros(1)
        self.n_iter_ = self.status_.n_iter
        if not self.status_.feasible:
            warnings.warn(
                "No model was found that meets the constraints; the one kept balances their "
                f"violation against the log-loss. {self.status_.message}",
                LearningWarning,
                stacklevel=2,
            )
        if not self.status_.converged:
            warnings.warn(self.status_.message, ConvergenceWarning, stacklevel=2)
        return self

    def decision_function(self, X: ArrayLike) -> Floats:
        """Log-odds of the good outcome."""
        check_is_fitted(self)
        rows: Floats = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        dtype = rows.dtype
        return np.asarray(rows @ self.coef_[0].astype(dtype) + dtype.type(self.intercept_[0]))

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Likelihood of each of ``classes_``."""
        margin = self.decision_function(X)
        return np.column_stack((expit(-margin), expit(margin)))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class that is more likely than not."""
        margin = self.decision_function(X)
        return np.asarray(self.classes_[(margin > 0).astype(np.intp)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _check_parameters(self) -> None:
        """Refuse values outside their range, by name."""
        for name, allowed, valid in (
            ("l2", "at least 0", _number(self.l2) and 0 <= self.l2 < np.inf),
            ("max_fdr", "in (0, 1), or None", _within(self.max_fdr) and self.max_fdr != 0),
            ("min_selection_rate", "in [0, 1), or None", _within(self.min_selection_rate)),
            ("tol", "positive", _number(self.tol) and 0 < self.tol < np.inf),
            ("max_iter", "a whole number of at least 1", _whole(self.max_iter)),
            ("fairness", "a RateParity, or None", isinstance(self.fairness, RateParity | None)),
        ):
            if not valid:
                raise InputError(f"{name} must be {allowed}, got {getattr(self, name)!r}.")

    def _problem(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        sensitive_features: ArrayLike | None,
    ) -> SmoothProblem:
        """Check the rows and turn weights and constraints into sums over them."""
        rows, target = validate_data(self, X, y, dtype=[np.float64, np.float32])
        self.classes_ = _classes(target)
        good = target == self.classes_[1]
        weight = _check_sample_weight(sample_weight, rows, dtype=np.float64)
        if np.any(weight < 0):
            raise InputError(f"sample_weight must be at least 0, got {weight.min()}.")
        if not (weight[good].any() and weight[~good].any()):
            raise InputError(
                "both classes need rows of positive sample_weight, got one class or none; "
                "give weight to rows of the other."
            )
        total = float(weight.sum())
        weight = weight / total
        bounds, basis = self._constraints(good, weight, sensitive_features)
        l2 = np.full(rows.shape[1] + bool(self.fit_intercept), self.l2 / total)
        l2[rows.shape[1] :] = 0.0
        return SmoothProblem(rows, weight * good, weight, basis, bounds, l2)

    def _constraints(
        self, good: NDArray[np.bool_], weight: Array, sensitive_features: ArrayLike | None
    ) -> tuple[FitBounds, Array]:
        """Return the bounds and the sums over rows that they are functions of."""
        rows, bounds = [weight, weight * ~good], FitBounds(self.max_fdr, self.min_selection_rate)
        if self.fairness is not None:
            if self.fairness.attributes:
                n_groups = len(self.fairness.attributes[0])
                codes = checked_codes(sensitive_features, weight.size, n_groups)
            else:
                codes, n_groups = group_codes(sensitive_features, weight.size)
            more, rates = smooth_rates(self.fairness, codes, n_groups, weight, good, len(rows))
            rows += more
            bounds = FitBounds(self.max_fdr, self.min_selection_rate, *self.fairness.bound, rates)
        if not bounds.size:
            return FitBounds(), np.empty((0, weight.size))
        return bounds, np.array(rows)

    def _previous(self) -> Array | None:
        """Where a warm start begins, if there is one of the same shape."""
        if not self.warm_start or getattr(self, "coef_", np.empty(0)).shape[-1] != (
            self.n_features_in_
        ):
            return None
        return np.append(self.coef_[0], self.intercept_ if self.fit_intercept else [])


def _classes(target: NDArray[Any]) -> NDArray[Any]:
    """Return the two outcomes."""
    classes = np.unique(target)
    if classes.size == 2 and classes.dtype.kind in "biu":
        return classes  # scikit-learn's check of other targets takes as long as a small fit
    kind = type_of_target(target, input_name="y")
    if kind != "binary":
        check_classification_targets(target)
        raise InputError(
            f"Only binary classification is supported. The type of the target is {kind}."
        )
    if classes.size < 2:
        raise InputError(
            f"y must hold two classes, got one class, {classes.tolist()[0]!r}; "
            "fit on rows with both outcomes."
        )
    return classes


def _number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1


def _within(value: Any) -> bool:
    return value is None or (_number(value) and 0 <= value < 1)
