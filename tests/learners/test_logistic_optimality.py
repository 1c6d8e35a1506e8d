"""The constrained fit against the best of many starts of a second solver."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import binomtest
from sklearn.exceptions import ConvergenceWarning

from learners.samples import Sample, excess, expected_fdr, objective, sample
from secondlook.core.fairness import RateParity, SelectionRateParity, TruePositiveRateParity
from secondlook.errors import LearningWarning
from secondlook.learners.logistic import ConstrainedLogistic


def reference(model: ConstrainedLogistic, s: Sample, rng: np.random.Generator) -> float:
    """Best feasible objective of ten random starts of SLSQP, with our derivatives."""
    problem = model._problem(s.X, s.y, s.weight, s.group)
    problem.use_ratio()
    best = np.inf
    for _ in range(10):
        # SLSQP needs contiguous Jacobians, which evaluate() returns and negation keeps.
        result = minimize(
            lambda x: problem.evaluate(x).value,
            rng.normal(size=s.X.shape[1] + 1),
            jac=lambda x: problem.evaluate(x).gradient,
            method="SLSQP",
            constraints={
                "type": "ineq",
                "fun": lambda x: -problem.evaluate(x).constraints,
                "jac": lambda x: np.ascontiguousarray(-problem.evaluate(x).jacobian),
            },
            options={"maxiter": 300, "ftol": 1e-10},
        )
        if problem.evaluate(result.x).constraints.max() <= 1e-6:
            best = min(best, result.fun)
    return best * float(s.weight.sum())


def random_problem(seed: int) -> tuple[ConstrainedLogistic, Sample]:
    """Bounds that bind for the unconstrained fit but leave room for a model."""
    rng = np.random.default_rng([7, seed])
    s = sample(rng, n=300, d=int(rng.integers(2, 6)), n_groups=int(rng.integers(2, 4)))
    p = s.fit(ConstrainedLogistic()).predict_proba(s.X)[:, 1]
    parity: type[RateParity] = [SelectionRateParity, TruePositiveRateParity][seed % 2]
    model = ConstrainedLogistic(
        max_fdr=expected_fdr(p, s) * rng.uniform(0.7, 0.95),
        min_selection_rate=float(np.average(p, weights=s.weight)) * rng.uniform(0.4, 0.8),
        fairness=parity(float(rng.uniform(0.01, 0.1))),
    )
    return model, s


def misses(seeds: range) -> tuple[int, int, int]:
    """Count ends 0.1 % worse than the reference, ends infeasible where it is not, and problems."""
    worse = infeasible = compared = 0
    for seed in seeds:
        model, s = random_problem(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LearningWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            s.fit(model)
        best = reference(model, s, np.random.default_rng(seed))
        assert model.status_.violation == pytest.approx(excess(model, s), abs=1e-9)
        # Some bounds cannot be met together; where nobody meets them there is nothing to compare.
        if np.isfinite(best):
            compared += 1
            if excess(model, s) > 1e-3:
                infeasible += 1
            else:
                worse += objective(model, s) > 1.001 * best
    assert compared >= 0.8 * len(seeds)
    return worse, infeasible, compared


class TestOptimality:
    """The solver's settings were chosen on seeds 0 to 399; these are others.

    Up to 5 % of problems may end worse than the best of ten runs of SLSQP: in a local solution of
    higher loss or, rarely (2 of 177 among seeds 1000 to 1199), without a feasible one. Which points
    SLSQP finds depends on rounding, so the counts move a little with any change of the arithmetic.
    """

    ALLOWED = 0.05

    def test_against_random_starts_of_slsqp(self):
        worse, infeasible, compared = misses(range(2000, 2016))
        assert infeasible == 0
        # Few problems: fail only on what a miss rate of 5 % would show once in a hundred times.
        assert binomtest(worse, compared, self.ALLOWED, alternative="greater").pvalue > 0.01

    @pytest.mark.long
    def test_against_random_starts_of_slsqp_on_many_problems(self):
        worse, infeasible, compared = misses(range(1000, 1200))
        assert worse + infeasible <= self.ALLOWED * compared

    def test_other_starts_are_searched_the_same_way_each_time(self):
        # One of the problems whose first solution is far from the best.
        model, s = random_problem(19)
        first = s.fit(model).coef_
        assert objective(model, s) <= 1.001 * 181.1757
        np.testing.assert_array_equal(s.fit(model).coef_, first)
