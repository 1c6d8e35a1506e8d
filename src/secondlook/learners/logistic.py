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

from secondlook.core.fairness import RateParity
from secondlook.errors import InputError, LearningWarning
from secondlook.learners.box_qp import Array
from secondlook.learners.group_shares import Codes, checked_codes, group_codes, group_shares
from secondlook.learners.multistart import FitStatus, solve
from secondlook.learners.smooth_problem import Bounds, Floats, SmoothProblem

__all__ = ["ConstrainedLogistic", "FitStatus"]


class ConstrainedLogistic(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Logistic regression whose expected decisions respect FDR, selection rate and fairness.

    Minimises ``Σ w_i·logloss_i + l2/2·|coef|²`` over linear models, with ``σ_i`` the likelihood of
    the good outcome (``classes_[1]``) in place of the 0/1 decision, subject to those asked for of

    - ``Σ w σ (1−y) / Σ w σ ≤ max_fdr``,
    - ``Σ w σ / Σ w ≥ min_selection_rate``,
    - ``rate_a − rate_b ≤ fairness.difference`` for every two groups, where
      ``rate_z = Σ w σ m 1{z} / Σ w m 1{z}`` and ``m = fairness.counts(y)``; groups with no counted
      weight are left out. If the constraint has attributes, for every two levels of each of them.

    This is the paper's learning step (Algorithm 1, step 1, as its experiments do it). The solver is
    :func:`secondlook.learners.sqp.minimise`; without constraints it is a damped Newton method.

    The constraints are not convex: the solution is a local one. Where there are signs that another
    may be better or, where this one is not feasible, that any is (see
    :func:`secondlook.learners.multistart.solve`), some ten to thirty more are sought on about 2,000
    rows and the best two improved on all. That search takes a tenth of a second to seconds; its
    random starts are always the same. Constraints that no run meets are answered with the visited
    model of least total violation: a run raises the price of a unit of violation, beside the mean
    log-loss, up to 10⁴ and keeps the iterate with the smallest sum of constraint excesses, and the
    best run's is returned. ``status_.feasible`` is then False and a
    :class:`~secondlook.errors.LearningWarning` says so.

    Parameters
    ----------
    l2
        Strength of the penalty on the coefficients, at least 0; scikit-learn's ``1 / C``.
    fairness
        Bound on the difference of a group rate; needs ``sensitive_features`` in :meth:`fit`.
    max_fdr
        Largest expected share of bad outcomes among the accepted, in (0, 1).
    min_selection_rate
        Smallest expected share of accepted people, in [0, 1).
    fit_intercept
        Whether to add an intercept, which is not penalised.
    tol
        Largest violation of a constraint, and largest last step (its length in the metric of the
        mean loss's Hessian: the loss is then within about ``tol²`` of its minimum).
    max_iter
        Largest number of steps on all rows; a search for other starts is not counted.
    warm_start
        Start from the previous solution of this object if it has the same number of features.

    Attributes
    ----------
    coef_, intercept_
        The model, of shapes (1, n_features) and (1,).
    classes_
        The two outcomes; the second is the good one.
    status_
        How the solver ended, a :class:`~FitStatus`.
    n_iter_
        Steps tried on all rows.
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
            Features; float32 stays float32 in the products over rows.
        y
            Outcomes, two classes.
        sample_weight
            Weight of each row, at least 0; rows of weight 0 do not matter.
        sensitive_features
            Group of each row, of any type that can be sorted; needed with ``fairness``.
        """
        self._check_parameters()
        self._solve(self._problem(X, y, sample_weight, sensitive_features))
        for category, message in self.complaints():
            warnings.warn(message, category, stacklevel=2)
        return self

    def fit_checked(
        self,
        X: Floats,
        outcome: NDArray[np.int8],
        sample_weight: NDArray[np.float64],
        group: Codes,
        n_groups: int,
    ) -> Self:
        """Fit to rows that need no checks, such as those that a classifier has recorded.

        The same as :meth:`fit` with outcomes 0 and 1 and groups 0 … ``n_groups`` − 1, but for small
        data several times as fast. What went wrong is told by :meth:`complaints` only.
        """
        self._check_parameters()
        self.classes_, self.n_features_in_ = np.array([0, 1], np.int8), X.shape[1]
        weight = sample_weight.astype(X.dtype, copy=False)
        self._solve(self._sums(X, outcome == 1, weight, group, n_groups))
        return self

    def complaints(self) -> list[tuple[type[Warning], str]]:
        """Return what went wrong in the last fit, as kinds of warnings and sentences."""
        found: list[tuple[type[Warning], str]] = []
        if not self.status_.feasible:
            text = "No model found that meets the constraints; the one of least violation is kept."
            found.append((LearningWarning, f"{text} {self.status_.message}"))
        if not self.status_.converged:
            found.append((ConvergenceWarning, self.status_.message))
        return found

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
        X, good = self._rows(X, y)
        weight = np.ones(len(X), X.dtype)
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, X, dtype=X.dtype)
        if np.any(weight < 0):
            raise InputError(f"sample_weight must be at least 0, got {weight.min()}.")
        if self.fairness is None:
            return self._sums(X, good, weight, np.zeros(len(weight), np.intp), 1)
        if self.fairness.attributes:
            codes = checked_codes(sensitive_features, len(weight), len(self.fairness.attributes[0]))
        else:
            codes = group_codes(sensitive_features, len(weight))
        return self._sums(X, good, weight, *codes)

    def _sums(
        self, X: Floats, good: NDArray[np.bool_], weight: Floats, group: Codes, n_groups: int
    ) -> SmoothProblem:
        """Turn weights and constraints into sums over rows."""
        total = float(weight.sum(dtype=np.float64))
        weight = (weight / (total or 1.0)).astype(X.dtype, copy=False)
        good_weight = weight * good
        bad_weight = weight - good_weight
        if not (bad_weight.any() and good_weight.any()):
            raise InputError(
                "both classes need rows of positive sample_weight, got one class or none; "
                "give weight to rows of the other."
            )
        groups: list[Floats] = []
        levels: tuple[int, ...] = ()
        difference = 0.0
        if self.fairness is not None:
            groups, levels = group_shares(self.fairness, group, n_groups, weight, good)
            difference = self.fairness.difference
        usual = 1.0 - float(bad_weight.sum(dtype=np.float64))
        bounds = Bounds(self.max_fdr, self.min_selection_rate, difference, levels, usual)
        rows = [*(weight, bad_weight)[: bounds.shared], *groups]
        basis = np.array(rows, X.dtype).reshape(-1, len(weight))
        l2 = np.full(X.shape[1] + bool(self.fit_intercept), self.l2 / total)
        l2[X.shape[1] :] = 0.0
        return SmoothProblem(X, good_weight, weight, basis, bounds, l2)

    def _rows(self, X: ArrayLike, y: ArrayLike) -> tuple[Floats, NDArray[np.bool_]]:
        """Features as they are, and who had the good outcome."""
        rows, target = self._validated(X, y)
        self.classes_ = _classes(target)
        if self.classes_.size < 2:
            raise InputError(
                f"y must hold two classes, got one class, {self.classes_.tolist()[0]!r}; "
                "fit on rows with both outcomes."
            )
        return rows, np.asarray(target == self.classes_[1])

    def _validated(self, X: ArrayLike, y: ArrayLike) -> tuple[Floats, NDArray[Any]]:
        """Check features and outcomes as scikit-learn does, at once where all is as it should be.

        That is the usual case, and scikit-learn's many questions take as long as a step or two.
        """
        if (
            type(X) is np.ndarray
            and type(y) is np.ndarray
            and X.dtype in (np.float64, np.float32)
            and X.ndim == 2
            and y.ndim == 1
            and y.dtype.kind in "biu"
            and len(X) == len(y) > 1
            and X.shape[1] > 0
            and _finite_sum(X)
        ):
            self.n_features_in_ = X.shape[1]
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
            return X, y
        rows, target = validate_data(self, X, y, dtype=[np.float64, np.float32])
        return rows, target

    def _solve(self, problem: SmoothProblem) -> None:
        """Solve from the last solution or from scratch, and keep the answer."""
        x, self.status_ = solve(problem, self._previous(), self.tol, self.max_iter)
        d = self.n_features_in_
        self.coef_ = x[None, :d].copy()
        self.intercept_ = x[d:].copy() if self.fit_intercept else np.zeros(1)
        self.n_iter_ = self.status_.n_iter

    def _previous(self) -> Array | None:
        """Where a warm start begins, if there is one of the same shape."""
        if not self.warm_start or getattr(self, "coef_", np.empty(0)).shape[-1] != (
            self.n_features_in_
        ):
            return None
        return np.append(self.coef_[0], self.intercept_ if self.fit_intercept else [])


def _classes(target: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct outcomes, and refuse more than two."""
    if target.dtype.kind in "biu":
        # What scikit-learn asks of other targets takes as long as a step of the solver.
        low, high = target.min(), target.max()
        if np.count_nonzero(target == low) + np.count_nonzero(target == high) >= target.size:
            return np.array([low] if low == high else [low, high])
    kind = type_of_target(target, input_name="y")
    if kind != "binary":
        check_classification_targets(target)
        raise InputError(
            f"Only binary classification is supported. The type of the target is {kind}."
        )
    return np.unique(target)


@np.errstate(over="ignore", invalid="ignore")
def _finite_sum(X: Floats) -> bool:
    return bool(np.isfinite(X.sum()))


def _number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1


def _within(value: Any) -> bool:
    return value is None or (_number(value) and 0 <= value < 1)
