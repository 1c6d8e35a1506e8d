"""Random samples for the constrained fit, and its definitions written out once more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import parities
from fairchance.learners.logistic import ConstrainedLogistic


@dataclass(frozen=True)
class Sample:
    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    group: np.ndarray

    def fit(self, model: ConstrainedLogistic) -> ConstrainedLogistic:
        return model.fit(self.X, self.y, self.weight, sensitive_features=self.group)


def sample(rng: np.random.Generator, n: int = 400, d: int = 3, n_groups: int = 2) -> Sample:
    group = rng.integers(n_groups, size=n)
    X = rng.normal(size=(n, d)) + 0.4 * group[:, None] * rng.normal(size=d)
    margin = X @ rng.normal(size=d) + 0.5 * group + rng.normal()
    y = (rng.random(n) < 1 / (1 + np.exp(-margin))).astype(int)
    return Sample(X, y, rng.exponential(size=n), group)


def expected_fdr(p: np.ndarray, s: Sample) -> float:
    return float((s.weight * p * (1 - s.y)).sum() / (s.weight * p).sum())


def excess(model: ConstrainedLogistic, s: Sample) -> float:
    """Largest amount by which a constraint is exceeded, from its definition."""
    p = model.predict_proba(s.X)[:, 1].astype(float)
    found = [0.0]
    if model.max_fdr is not None:
        found.append(expected_fdr(p, s) - model.max_fdr)
    if model.min_selection_rate is not None:
        found.append(model.min_selection_rate - float(np.average(p, weights=s.weight)))
    if model.fairness is not None:
        rates = [
            parities.rates(model.fairness, p[m], s.y[m], s.weight[m])
            for m in (s.group == z for z in np.unique(s.group))
        ]
        found.append(float(parities.worst(model.fairness, rates)[0]))
    return max(found)


def objective(model: ConstrainedLogistic, s: Sample) -> float:
    margin = s.X @ model.coef_[0] + model.intercept_[0]
    loss = np.logaddexp(0, margin) - s.y * margin
    return float(s.weight @ loss + model.l2 / 2 * (model.coef_**2).sum())
