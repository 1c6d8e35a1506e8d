"""The fit of the released code: SLSQP with constraints on hard decisions (B3, B4, B6)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import expit

from fairchance.core.fairness import SelectionRateParity
from fairchance.errors import InputError
from fairchance.learners.logistic import ConstrainedLogistic

__all__ = ["ReleasedLogistic"]

Floats = NDArray[np.float64]
_MAX_ITER = 100


class ReleasedLogistic(ConstrainedLogistic):
    """Logistic regression under constraints, solved as in the released code.

    Parameters beside those of ``ConstrainedLogistic``
    ----------
    hard
        B3: constraints count decisions at 0.5 while their derivatives are those of likelihoods.
    random_start
        B4: start at a random point of the unit cube, once; otherwise at zero.
    one_sided
        B6: the smaller group's rate may not be lower than the other's by more than the difference,
        but may be higher.
    minority
        Code of the smaller group.
    random_state
        Seed of the starts.
    """

    def __init__(
        self,
        *,
        l2: float = 1.0,
        fairness: Any = None,
        max_fdr: float | None = None,
        min_selection_rate: float | None = None,
        warm_start: bool = False,
        hard: bool = True,
        random_start: bool = True,
        one_sided: bool = True,
        minority: int = 0,
        random_state: int = 0,
    ) -> None:
        super().__init__(
            l2=l2,
            fairness=fairness,
            max_fdr=max_fdr,
            min_selection_rate=min_selection_rate,
            warm_start=warm_start,
        )
        self.hard = hard
        self.random_start = random_start
        self.one_sided = one_sided
        self.minority = minority
        self.random_state = random_state

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: ArrayLike | None = None,
    ) -> ReleasedLogistic:
        """Fit to rows with known outcomes."""
        rows = np.column_stack([np.asarray(X, dtype=np.float64), np.ones(np.shape(X)[0])])
        good = np.asarray(y, dtype=np.float64)
        weight = np.ones(good.size) if sample_weight is None else np.asarray(sample_weight)
        group = (
            np.zeros(good.size) if sensitive_features is None else np.asarray(sensitive_features)
        )
        rows, good, group, weight = _without_repeats(rows, good, group, weight)
        problem = _Problem(rows, good, weight / weight.sum(), self.l2 / weight.sum(), self.hard)
        constraints = []
        if self.max_fdr is not None:
            constraints.append(problem.least(weight / weight.sum() * (self.max_fdr - (1 - good))))
        if self.fairness is not None:
            parity = self.fairness
            if not isinstance(parity, SelectionRateParity) or parity.difference is None:
                raise InputError(
                    f"the released fit bounds a difference of selection rates, got {parity!r}; "
                    f"leave out fairness and fairness_ratio, or --as-released."
                )
            gap = _rate_gap(group == self.minority, weight)
            sides = (1.0,) if self.one_sided else (1.0, -1.0)
            constraints += [problem.least(s * gap, parity.difference) for s in sides]
        self._fits = getattr(self, "_fits", 0) + 1
        rng = np.random.default_rng([self.random_state, self._fits])
        start = rng.random(rows.shape[1]) if self.random_start else np.zeros(rows.shape[1])
        solution = minimize(
            problem.loss,
            start,
            jac=problem.gradient,
            method="SLSQP",
            constraints=constraints,
            options={"maxiter": _MAX_ITER},
        ).x
        self.classes_ = np.array([0, 1])
        self.n_features_in_ = rows.shape[1] - 1
        self.coef_, self.intercept_ = solution[None, :-1], solution[-1:]
        return self


class _Problem:
    """Mean log-loss of rows, and constraints that are sums over them."""

    def __init__(self, X: Floats, good: Floats, weight: Floats, l2: float, hard: bool) -> None:
        self.X, self.good, self.weight, self.l2, self.hard = X, good, weight, l2, hard
        self._seen: Floats | None = None

    def _log_odds(self, u: Floats) -> Floats:
        if self._seen is None or not np.array_equal(u, self._seen):
            self._seen = u.copy()
            self._u = self.X @ u
            self._p = expit(self._u)
        return self._u

    def loss(self, u: Floats) -> float:
        v = self._log_odds(u)
        softplus = np.maximum(v, 0) - np.log(np.maximum(self._p, 1 - self._p))
        penalty = self.l2 / 2 * u[:-1] @ u[:-1]
        return float(self.weight @ (softplus - self.good * v) + penalty)

    def gradient(self, u: Floats) -> Floats:
        self._log_odds(u)
        slope = (self.weight * (self._p - self.good)) @ self.X
        slope[:-1] += self.l2 * u[:-1]
        return np.asarray(slope)

    def least(self, share: Floats, slack: float = 0.0) -> dict[str, Any]:
        """Return the constraint Σ share·decision + slack ≥ 0, for scipy."""

        def value(u: Floats) -> float:
            v = self._log_odds(u)
            return float(share @ (v > 0 if self.hard else self._p)) + slack

        def derivative(u: Floats) -> Floats:
            self._log_odds(u)
            return np.asarray((share * self._p * (1 - self._p)) @ self.X)

        return {"type": "ineq", "fun": value, "jac": derivative}


def _without_repeats(
    rows: Floats, good: Floats, group: Floats, weight: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Join equal rows and add their weights, which keeps sums and shrinks resampled data."""
    used = weight > 0
    rows, good, group, weight = rows[used], good[used], group[used], weight[used]
    kinds, kind = np.unique(np.column_stack([rows, good, group]), axis=0, return_inverse=True)
    total = np.bincount(kind.ravel(), weight).astype(np.float64)
    return np.ascontiguousarray(kinds[:, :-2]), kinds[:, -2], kinds[:, -1], total


def _rate_gap(small: NDArray[np.bool_], weight: Floats) -> Floats:
    """Return each decision's part in the smaller group's rate minus the rate of all others.

    If one of the two sides is empty, there is nothing to compare.
    """
    smaller, others = np.where(small, weight, 0.0), np.where(small, 0.0, weight)
    if smaller.sum() == 0 or others.sum() == 0:
        return np.zeros(weight.size)
    return np.asarray(smaller / smaller.sum() - others / others.sum())
