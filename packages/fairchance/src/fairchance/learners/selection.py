"""Logistic regression on a history that was selected by an unknown rule.

In a history selected on the outcome itself, accepted applicants look better than they are. The
rejected, although their outcomes are unknown, show by how much: with P(accepted | good) = s₁ and
P(accepted | bad) = s₀, a rejected applicant contributes log(1 − s₁·p − s₀·(1 − p)) to the
log-likelihood, and s₁, s₀ are fitted along with the model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logit

__all__ = ["SelectedPast", "fit_selected_past"]

Floats = NDArray[np.float64]
_START = (0.7, 0.3)  # s₁, s₀


@dataclass(frozen=True)
class SelectedPast:
    """A logistic model, and the acceptance rates of the past policy.

    Attributes
    ----------
    coef, intercept
        P(good | x) = σ(x · coef + intercept).
    accepted_good, accepted_bad
        s₁ and s₀; NaN if the history has no rejections, which leaves them unknown.
    """

    coef: Floats
    intercept: float
    accepted_good: float
    accepted_bad: float


def fit_selected_past(
    X: Floats,
    outcome: NDArray[np.int8],
    rejected: Floats,
    own_X: Floats,
    own_outcome: NDArray[np.int8],
    *,
    l2: float,
) -> SelectedPast:
    """Fit by penalised maximum likelihood.

    Without rejected applicants, s₁ and s₀ are left out. ``own_X`` are applicants that we accepted
    by their features only, so they need no correction. The penalty is ``l2/2·|coef|²``; features
    should be standardised.
    """
    problem = _SelectionLikelihood(X, outcome, rejected, own_X, own_outcome, l2)
    solution = minimize(problem.value_and_gradient, problem.start(), jac=True, method="L-BFGS-B").x
    return problem.read(solution)


class _SelectionLikelihood:
    """Minus the log-likelihood; parameters are coef, intercept, logit s₁ and logit s₀."""

    def __init__(
        self,
        X: Floats,
        outcome: NDArray[np.int8],
        rejected: Floats,
        own_X: Floats,
        own_outcome: NDArray[np.int8],
        l2: float,
    ) -> None:
        self.labelled = np.vstack([X, own_X])
        self.good = np.concatenate([outcome, own_outcome]).astype(np.float64)
        self.n_good, self.n_bad = float(np.sum(outcome == 1)), float(np.sum(outcome == 0))
        self.rejected = rejected
        self.l2 = l2
        self.d = X.shape[1]

    def start(self) -> Floats:
        shares = logit(_START) if len(self.rejected) else np.empty(0)
        return np.append(np.zeros(self.d + 1), shares)

    def read(self, parameters: Floats) -> SelectedPast:
        shares = expit(parameters[self.d + 1 :]) if len(self.rejected) else [np.nan, np.nan]
        return SelectedPast(
            parameters[: self.d], float(parameters[self.d]), float(shares[0]), float(shares[1])
        )

    def value_and_gradient(self, parameters: Floats) -> tuple[float, Floats]:
        coef, intercept = parameters[: self.d], parameters[self.d]
        v = self.labelled @ coef + intercept
        value = self.l2 / 2 * coef @ coef - (
            self.good @ log_expit(v) + (1 - self.good) @ log_expit(-v)
        )
        residual = expit(v) - self.good
        slope = np.append(residual @ self.labelled + self.l2 * coef, residual.sum())
        if not len(self.rejected):
            return float(value), slope
        a, b = parameters[self.d + 1 :]
        s1, s0 = expit(a), expit(b)
        value -= self.n_good * log_expit(a) + self.n_bad * log_expit(b)
        p = expit(self.rejected @ coef + intercept)
        left = np.maximum(1 - s1 * p - s0 * (1 - p), 1e-12)
        value -= np.log(left).sum()
        by_v = (s1 - s0) * p * (1 - p) / left
        slope += np.append(by_v @ self.rejected, by_v.sum())
        by_a = -self.n_good * (1 - s1) + s1 * (1 - s1) * np.sum(p / left)
        by_b = -self.n_bad * (1 - s0) + s0 * (1 - s0) * np.sum((1 - p) / left)
        return float(value), np.concatenate([slope, [by_a, by_b]])
