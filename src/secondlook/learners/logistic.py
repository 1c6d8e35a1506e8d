"""Logistic regression under expected FDR, selection-rate and fairness constraints."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from secondlook.errors import InputError, LearningWarning
from secondlook.fairness import RateParity
from secondlook.learners.sqp import Array, Point, Solution, minimise

__all__ = ["ConstrainedLogistic", "FitStatus"]

Floats = NDArray[Any]

# A block of rows and its scaled copy fit in a core's second-level cache.
BLOCK_BYTES = 640_000
# A start on every tenth row pays once those are many, and several times the coefficients.
THINNING, LEAST_ROWS, ROWS_PER_COEFFICIENT = 10, 2000, 200


@dataclass(frozen=True)
class FitStatus:
    """How a solver ended.

    Parameters
    ----------
    converged
        Whether the stopping rule was met: of the constrained problem, or of least violation.
    feasible
        Whether no constraint is exceeded by more than the tolerance.
    violation
        Largest amount by which a constraint is exceeded, 0 if none is.
    n_iter
        Steps tried on all rows.
    message
        One sentence for people.
    """

    converged: bool
    feasible: bool
    violation: float
    n_iter: int
    message: str


@dataclass(frozen=True)
class _Bounds:
    """The constraints ``c(F) ≤ 0`` as functions of the sums ``F`` of :class:`_Problem`.

    The FDR's is ``F_bad / F_all − max_fdr``, or, with a ``usual`` accepted weight in place of
    ``F_all`` in the denominator, ``(F_bad − max_fdr·F_all) / usual``: that allows the same models,
    bends far less, and so needs far fewer steps, but accepting nobody is no violation of it.
    """

    max_fdr: float | None = None
    min_selection_rate: float | None = None
    difference: float = 0.0
    n_groups: int = 0
    usual: float | None = None

    @property
    def shared(self) -> int:
        """How many sums come before the groups' rates: accepted weight, accepted bad weight."""
        return 2 if self.max_fdr is not None else int(self.min_selection_rate is not None)

    @property
    def size(self) -> int:
        """How many constraints there are."""
        given = (self.max_fdr is not None) + (self.min_selection_rate is not None)
        return given + self.n_groups * (self.n_groups - 1)

    def values(self, sums: Array) -> Array:
        """FDR, selection rate and every ordered pair of groups, each minus its bound."""
        c = [np.empty(0)]
        if self.max_fdr is not None:
            c.append((sums[1:2] - self.max_fdr * sums[0]) / self._accepted(sums))
        if self.min_selection_rate is not None:
            c.append(self.min_selection_rate - sums[:1])
        if self.n_groups > 1:
            one, other = self._pairs()
            c.append(sums[one] - sums[other] - self.difference)
        return np.concatenate(c)

    def slopes(self, sums: Array) -> Array:
        """Differentiate each constraint by each sum."""
        unit = np.eye(sums.size)
        rows = [unit[:0]]
        if self.max_fdr is not None:
            accepted = self._accepted(sums)
            share = self.max_fdr if self.usual else sums[1] / accepted
            rows.append((unit[1:2] - share * unit[:1]) / accepted)
        if self.min_selection_rate is not None:
            rows.append(-unit[:1])
        if self.n_groups > 1:
            one, other = self._pairs()
            rows.append(unit[one] - unit[other])
        return np.concatenate(rows)

    def curvature(self, sums: Array, slopes: Array, multipliers: Array) -> Array:
        """Second derivative of ``multipliers · c`` by the sums; only a ratio has one."""
        second = np.zeros((sums.size, sums.size))
        if self.max_fdr is not None and not self.usual:
            cross = -multipliers[0] * slopes[0] / self._accepted(sums)
            second[0] += cross
            second[:, 0] += cross
        return second

    def _pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return where the rates of each ordered pair of groups are among the sums."""
        one, other = np.nonzero(~np.eye(self.n_groups, dtype=np.bool_))
        return self.shared + one, self.shared + other

    def _accepted(self, sums: Array) -> float:
        """Return what the FDR constraint is divided by."""
        return self.usual or max(float(sums[0]), 1e-300)


@dataclass(frozen=True)
class _Pass:
    """What the Hessian reuses of an evaluation: σ, the sums ``F`` and their gradients."""

    likelihood: Floats
    sums: Array
    gradients: Array


class _Problem:
    """Weighted mean log-loss under the smooth constraints, with exact derivatives.

    With weights summing to one, every constraint is a function of few sums ``F_k = Σ b_ki σ_i``:
    the accepted weight, the accepted bad weight, each group's rate; ``basis`` holds the ``b_k`` as
    rows. All is computed in blocks of rows, and blocks without weight are skipped. ``l2`` has one
    entry per variable; one more than there are features means a last one, the intercept.
    """

    def __init__(
        self, X: Floats, good: Floats, weight: Floats, basis: Floats, bounds: _Bounds, l2: Array
    ) -> None:
        self.X, self.good, self.weight, self.basis = X, good, weight, basis
        self.bounds, self.l2, self.intercept = bounds, l2, l2.size > X.shape[1]
        self.noise = 10.0 * float(np.finfo(X.dtype).eps)
        self.good_weight = good * weight
        rows = int(np.clip(BLOCK_BYTES // (X.itemsize * X.shape[1]), 256, 8192))
        cuts = range(0, X.shape[0], rows)
        self.blocks = [slice(i, i + rows) for i in cuts if weight[i : i + rows].any()]

    def evaluate(self, x: Array) -> Point:
        """Objective, constraints and their gradients."""
        d, dtype = self.X.shape[1], self.X.dtype
        coef, shift = x[:d].astype(dtype), dtype.type(x[d] if self.intercept else 0)
        likelihood = np.zeros_like(self.weight)
        gradients = np.zeros((len(self.basis) + 1, x.size))
        sums, loss = np.zeros(len(self.basis)), 0.0
        for block in self.blocks:
            X, w, b = self.X[block], self.weight[block], self.basis[:, block]
            margin = X @ coef + shift
            tail = np.exp(-np.abs(margin))
            upper = 1 + tail
            surprise = np.log(upper)
            surprise += np.maximum(margin, 0)
            loss += float(surprise @ w) - float(margin @ self.good_weight[block])
            np.divide(1, upper, out=upper)
            tail *= upper
            p = likelihood[block]
            p[:] = np.where(margin >= 0, upper, tail)
            columns = np.empty((len(b) + 1, p.size), dtype)
            np.subtract(p * w, self.good_weight[block], out=columns[0])
            np.multiply(b, np.multiply(tail, upper, out=tail), out=columns[1:])
            sums += b @ p
            gradients[:, :d] += columns @ X
            if self.intercept:
                gradients[:, d] += columns.sum(axis=1)
        c, jacobian = self.bounds.values(sums), self.bounds.slopes(sums) @ gradients[1:]
        value = loss + 0.5 * float(self.l2 @ (x * x))
        cache = _Pass(likelihood, sums, gradients[1:])
        return Point(x, value, gradients[0] + self.l2 * x, c, jacobian, cache)

    def hessian(self, point: Point, multipliers: Array) -> Array:
        """Second derivative of the objective plus ``multipliers · constraints``."""
        d, done = self.X.shape[1], point.cache
        slopes = self.bounds.slopes(done.sums)
        tilt = (multipliers @ slopes).astype(self.X.dtype)
        second = np.zeros((point.x.size, point.x.size))
        for block in self.blocks:
            X, p = self.X[block], done.likelihood[block]
            curve = self.weight[block]
            if multipliers.any():
                curve = curve + (1 - 2 * p) * (tilt @ self.basis[:, block])
            curve = curve * (p - p * p)
            second[:d, :d] += X.T @ (X * curve[:, None])
            if self.intercept:
                second[d, :d] += curve @ X
                second[d, d] += curve.sum()
        second[:d, d:] = second[d:, :d].T
        second[np.diag_indices_from(second)] += self.l2
        bend = self.bounds.curvature(done.sums, slopes, multipliers)
        return np.asarray(second + done.gradients.T @ bend @ done.gradients)

    def thinned(self) -> _Problem | None:
        """Return the same problem on every tenth row, or None where those are too few to help."""
        few = slice(None, None, THINNING)
        weight, basis = self.weight[few], self.basis[:, few]
        if np.count_nonzero(weight) < max(LEAST_ROWS, ROWS_PER_COEFFICIENT * self.l2.size):
            return None
        total = weight.sum(dtype=np.float64)
        # A group that none of these rows belongs to keeps rates of zero and constrains nothing.
        shares = basis.sum(axis=1, dtype=np.float64)
        shares[shares == 0] = 1.0
        shares[: self.bounds.shared] = total
        scaled = (basis / shares[:, None]).astype(self.X.dtype)
        weight = (weight / total).astype(self.X.dtype)
        return _Problem(self.X[few], self.good[few].copy(), weight, scaled, self.bounds, self.l2)

    def start(self) -> Array:
        """No coefficients, and the intercept that gives the mean outcome."""
        x, share = np.zeros(self.l2.size), float(self.good_weight.sum(dtype=np.float64))
        if self.intercept:
            x[-1] = np.log(share) - np.log1p(-share)
        return x

    def solve(self, start: Array | None, tol: float, max_iter: int) -> Solution:
        """Solve from a start if given, else from the solution on every tenth row if enough."""
        multipliers, metric = np.zeros(self.bounds.size), None
        few = self.thinned() if start is None else None
        if few is not None:
            rough = few.solve(None, max(tol, 1e-3), max_iter)
            if not rough.trouble and rough.point.violations.max(initial=0.0) <= 1e-3:
                start, multipliers, metric = rough.point.x, rough.multipliers, rough.metric
        start = self.start() if start is None else start
        return minimise(self, start, multipliers, metric, tol=tol, max_iter=max_iter)

    def use_ratio(self) -> None:
        """Bound the FDR itself from now on, rather than its easier form."""
        self.bounds = replace(self.bounds, usual=None)

    def solve_exactly(
        self, start: Array | None, tol: float, max_iter: int
    ) -> tuple[Array, FitStatus]:
        """Solve with the FDR's easier form, and if that does not do, with the ratio."""
        bounded = self.bounds.max_fdr is not None
        solution = self.solve(start, tol, -(-max_iter // 2) if bounded else max_iter)
        easy = not solution.trouble and solution.point.violations.max(initial=0.0) <= tol
        n_iter = solution.n_iter
        if bounded:
            self.use_ratio()
            if not easy or self._misses(solution, tol)[0] > 0:
                first = solution.point.x if easy else self.start()
                tries = self._insist(first, tol, max_iter - n_iter)
                n_iter += sum(s.n_iter for s in tries)
                solution = min([*tries, solution], key=lambda s: self._misses(s, tol))
        violation = float(self.bounds.values(solution.point.cache.sums).max(initial=0.0))
        return solution.point.x, _status(solution.trouble, violation, tol, n_iter)

    def _insist(self, first: Array, tol: float, max_iter: int) -> list[Solution]:
        """Solve from up to three starts that share the steps left, until one ends well."""
        free = _Problem(self.X, self.good, self.weight, self.basis[:0], _Bounds(), self.l2)
        calibrated = free.solve(None, 1e-3, 20).point.x
        tries: list[Solution] = []
        for still, x in zip((3, 2, 1), (first, calibrated, 2 * calibrated), strict=True):
            left = max_iter - sum(s.n_iter for s in tries)
            if left < still:
                break
            none = np.zeros(self.bounds.size)
            tries.append(minimise(self, x, none, tol=tol, max_iter=left // still))
            if not tries[-1].trouble and self._misses(tries[-1], tol)[0] == 0:
                break
        return tries

    def _misses(self, solution: Solution, tol: float) -> tuple[float, float]:
        """Rank solutions: by total violation (none if all are within tolerance), then by loss."""
        c = self.bounds.values(solution.point.cache.sums)
        total = float(np.maximum(c, 0.0).sum()) if c.max(initial=0.0) > tol else 0.0
        return total, solution.point.value


def _status(trouble: str, violation: float, tol: float, n_iter: int) -> FitStatus:
    """Put how the solver ended into a sentence."""
    feasible = violation <= tol
    message = f"Stopped because {trouble}" if trouble else "Converged"
    message += "." if feasible else f", with a constraint exceeded by {violation:.2g}."
    return FitStatus(not trouble, feasible, violation, n_iter, message)


class ConstrainedLogistic(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Logistic regression whose expected decisions respect FDR, selection rate and fairness.

    Minimises ``Σ w_i·logloss_i + l2/2·|coef|²`` over linear models, with ``σ_i`` the likelihood of
    the good outcome (``classes_[1]``) in place of the 0/1 decision, subject to those asked for of

    - ``Σ w σ (1−y) / Σ w σ ≤ max_fdr``,
    - ``Σ w σ / Σ w ≥ min_selection_rate``,
    - ``rate_a − rate_b ≤ fairness.difference`` for every two groups, where
      ``rate_z = Σ w σ m 1{z} / Σ w m 1{z}`` and ``m = fairness.counts(y)``; groups with no counted
      weight are left out.

    This is the paper's learning step (Algorithm 1, step 1, as its experiments do it). The solver is
    :func:`secondlook.learners.sqp.minimise`; without constraints it is a damped Newton method.

    The constraints are not convex: the solution is a local one. If the first run ends badly and
    ``max_fdr`` is set, up to three more are made, from the mean outcome, from the unconstrained
    fit and from twice its coefficients, which share the steps left. Constraints that no run meets
    are answered with the visited model of least total violation: a run raises the price of a unit
    of violation, beside the mean log-loss, up to 10⁴ and keeps the iterate with the smallest sum of
    constraint excesses, and the best run's is returned. ``status_.feasible`` is then False and a
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
        Largest number of steps on all rows.
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
        problem = self._problem(X, y, sample_weight, sensitive_features)
        x, self.status_ = problem.solve_exactly(self._previous(), self.tol, self.max_iter)
        d = self.n_features_in_
        self.coef_ = x[None, :d].copy()
        self.intercept_ = x[d:].copy() if self.fit_intercept else np.zeros(1)
        self.n_iter_ = self.status_.n_iter
        self._warn()
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
    ) -> _Problem:
        """Check the rows and turn weights and constraints into sums over them."""
        X, good = self._rows(X, y)
        weight = _check_sample_weight(sample_weight, X, dtype=X.dtype)
        if np.any(weight < 0):
            raise InputError(f"sample_weight must be at least 0, got {weight.min()}.")
        total = float(weight.sum(dtype=np.float64))
        if not (weight[good].any() and weight[~good].any()):
            raise InputError(
                "both classes need rows of positive sample_weight, got one class or none; "
                "give weight to rows of the other."
            )
        weight = (weight / total).astype(X.dtype)
        groups = self._group_rows(weight, good, sensitive_features)
        bounds = _Bounds(
            self.max_fdr,
            self.min_selection_rate,
            0.0 if self.fairness is None else self.fairness.difference,
            len(groups),
            float(weight[good].sum(dtype=np.float64)),
        )
        basis = np.empty((bounds.shared + len(groups), len(weight)), dtype=X.dtype)
        for row, values in enumerate([weight, weight * ~good][: bounds.shared] + groups):
            basis[row] = values
        l2 = np.full(X.shape[1] + bool(self.fit_intercept), self.l2 / total)
        l2[X.shape[1] :] = 0.0
        return _Problem(X, good.astype(X.dtype), weight, basis, bounds, l2)

    def _rows(self, X: ArrayLike, y: ArrayLike) -> tuple[Floats, NDArray[np.bool_]]:
        """Features as they are, and who had the good outcome."""
        rows: Floats
        rows, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y")
        if kind != "binary":
            raise InputError(
                f"Only binary classification is supported. The type of the target is {kind}."
            )
        self.classes_ = np.unique(y)
        if self.classes_.size < 2:
            raise InputError(
                f"y must hold two classes, got one class, {self.classes_.tolist()[0]!r}; "
                "fit on rows with both outcomes."
            )
        return rows, np.asarray(y == self.classes_[1])

    def _group_rows(
        self, weight: Floats, good: NDArray[np.bool_], sensitive_features: ArrayLike | None
    ) -> list[Floats]:
        """For each group that counts, everybody's share in its rate."""
        if self.fairness is None:
            return []
        group = _groups(sensitive_features, len(weight))
        counted = weight * self.fairness.counts(good.astype(np.int8))
        rows = []
        for name in np.unique(group):
            row = counted * (group == name)
            total = row.sum(dtype=np.float64)
            if total > 0:
                rows.append(row / total)
        return rows

    def _previous(self) -> Array | None:
        """Where a warm start begins, if there is one of the same shape."""
        if not self.warm_start or getattr(self, "coef_", np.empty(0)).shape[-1] != (
            self.n_features_in_
        ):
            return None
        return np.append(self.coef_[0], self.intercept_ if self.fit_intercept else [])

    def _warn(self) -> None:
        """Say aloud what ``status_`` holds, unless all went well."""
        if not self.status_.feasible:
            warnings.warn(
                f"No model found that meets the constraints; the one of least violation is kept. "
                f"{self.status_.message}",
                LearningWarning,
                stacklevel=3,
            )
        if not self.status_.converged:
            warnings.warn(self.status_.message, ConvergenceWarning, stacklevel=3)


def _number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1


def _within(value: Any) -> bool:
    return value is None or (_number(value) and 0 <= value < 1)


def _groups(sensitive_features: ArrayLike | None, n_rows: int) -> NDArray[Any]:
    """Return the group of each row as an array that can be sorted."""
    if sensitive_features is None:
        raise InputError(
            "fairness bounds a difference between groups and needs the group of every row, "
            "got sensitive_features=None; pass sensitive_features to fit or set fairness=None."
        )
    group = np.asarray(sensitive_features)
    if group.shape != (n_rows,):
        raise InputError(
            f"sensitive_features must be one-dimensional with one group per row, of shape "
            f"({n_rows},), got {group.shape}; pass one value for each row of X."
        )
    try:
        np.unique(group)
    except TypeError:
        raise InputError(
            "sensitive_features must hold values that can be sorted, got mixed types; "
            "turn them all into text or numbers."
        ) from None
    return group
