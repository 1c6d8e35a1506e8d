"""The solver of constrained fits: optimal, feasible where it can be, and honest where it cannot."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import NonlinearConstraint, minimize, nnls
from scipy.stats import binomtest
from sklearn.exceptions import ConvergenceWarning

import parities
from fairchance.core.fairness import RateParity, SelectionRateParity, TruePositiveRateParity
from fairchance.errors import LearningWarning
from fairchance.learners import solver
from fairchance.learners.logistic import ConstrainedLogistic
from fairchance.learners.problem import SmoothProblem
from learners.samples import Sample, excess, expected_fdr, sample


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


def fitted(seed: int) -> tuple[ConstrainedLogistic, Sample, SmoothProblem, np.ndarray]:
    """Return a fitted random problem, and its solution as the solver's variables."""
    model, s = random_problem(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LearningWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        s.fit(model)
    problem = model._problem(s.X, s.y, s.weight, s.group)
    return model, s, problem, np.append(model.coef_[0], model.intercept_)


def best_of_random_starts(
    problem: SmoothProblem, rng: np.random.Generator, starts: int = 10
) -> float:
    """Return the best feasible objective of runs of SLSQP in the original variables."""
    best = np.inf
    for _ in range(starts):
        result = minimize(
            lambda x: problem.evaluate(x).value,
            rng.normal(size=problem.l2.size),
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
    return best


def misses(seeds: range) -> tuple[int, int, int]:
    """Count ends 0.1 % worse than the reference, ends that miss its feasibility, and problems."""
    worse = infeasible = compared = 0
    for seed in seeds:
        model, s, problem, x = fitted(seed)
        best = best_of_random_starts(problem, np.random.default_rng(seed))
        assert model.status_.violation == pytest.approx(excess(model, s), abs=1e-9)
        # Some bounds cannot be met together; then there is nothing to compare.
        if np.isfinite(best):
            compared += 1
            if excess(model, s) > 1e-3:
                infeasible += 1
            else:
                worse += problem.evaluate(x).value > 1.001 * best
    assert compared >= 0.8 * len(seeds)
    return worse, infeasible, compared


@pytest.mark.parametrize("kind", parities.FAMILY)
@pytest.mark.parametrize("bound", [{"difference": 0.02}, {"ratio": 0.95}])
def test_each_constraint_binds_and_is_met_at_the_least_loss(kind, bound):
    s = sample(np.random.default_rng(3), n=300, n_groups=3)
    free = s.fit(ConstrainedLogistic())
    free.fairness = kind(**bound)
    assert excess(free, s) > 0.01
    fair = s.fit(ConstrainedLogistic(fairness=kind(**bound)))
    assert fair.status_.feasible
    assert fair.status_.converged
    assert excess(fair, s) <= 1e-6
    problem = fair._problem(s.X, s.y, s.weight, s.group)
    x = np.append(fair.coef_[0], fair.intercept_)
    best = best_of_random_starts(problem, np.random.default_rng(0), starts=3)
    assert problem.evaluate(x).value <= best * 1.001


class TestOptimality:
    """Up to 10 % of problems may end worse than the best of ten random starts.

    They end in a local solution of higher loss or, rarely, without a feasible one, because a start
    that converges is the last one tried: of the problems 1000 to 1199, 12 of 175 did. The starts
    were chosen on seeds 0 to 399. Which points SLSQP finds depends on rounding, so the counts move
    a little with any change of the arithmetic.
    """

    ALLOWED = 0.10

    def test_against_random_starts(self):
        worse, infeasible, compared = misses(range(2000, 2005))
        assert infeasible == 0
        # Few problems: fail only if a miss rate of 10 % would show as much once in a hundred times.
        assert binomtest(worse, compared, self.ALLOWED, alternative="greater").pvalue > 0.01

    @pytest.mark.long
    def test_against_random_starts_on_many_problems(self):
        worse, infeasible, compared = misses(range(1000, 1200))
        assert worse + infeasible <= self.ALLOWED * compared

    @pytest.mark.parametrize("seed", range(3000, 3012))
    def test_first_order_conditions(self, seed):
        """The gradient is balanced by prices of binding constraints, none of them negative."""
        model, _, problem, x = fitted(seed)
        if not model.status_.feasible:
            pytest.skip("no feasible model")
        point = problem.evaluate(x)
        binding = point.jacobian[point.constraints > -1e-6]
        scale = np.sqrt(problem.loss_hessian(problem.mean_model()).diagonal())
        _, left = nnls((binding / scale).T, -point.gradient / scale)
        assert left <= 1e-5

    @pytest.mark.parametrize("seed", [3000, 3001, 3003])
    def test_against_another_algorithm(self, seed):
        """From our solution an interior-point method finds no better one close by."""
        model, _, problem, x = fitted(seed)
        assert model.status_.feasible
        result = minimize(
            lambda v: problem.evaluate(v).value,
            x,
            jac=lambda v: problem.evaluate(v).gradient,
            hess=problem.loss_hessian,
            method="trust-constr",
            constraints=NonlinearConstraint(
                lambda v: problem.evaluate(v).constraints,
                -np.inf,
                0.0,
                jac=lambda v: problem.evaluate(v).jacobian,
            ),
            options={"maxiter": 300, "gtol": 1e-7, "xtol": 1e-9},
        )
        assert problem.evaluate(x).value <= result.fun + 1e-5


class TestStarts:
    def test_an_ordinary_problem_takes_one_start(self, monkeypatch):
        _, s = random_problem(2000)
        runs = []
        run = solver._ScaledProblem.run
        monkeypatch.setattr(
            solver._ScaledProblem, "run", lambda *given: runs.append(run(*given)) or runs[-1]
        )
        s.fit(ConstrainedLogistic(max_fdr=0.3, fairness=SelectionRateParity(0.05)))
        assert len(runs) == 1

    def test_other_starts_find_a_feasible_model(self, monkeypatch):
        model, s = random_problem(311)
        assert s.fit(model).status_.feasible
        first = model.coef_.copy()
        np.testing.assert_array_equal(s.fit(model).coef_, first)
        monkeypatch.setattr(solver, "START_LENGTHS", (1.0,))
        with pytest.warns(LearningWarning):
            s.fit(model)

    @pytest.mark.parametrize("unit", [1e-12, 1e-6, 1e6, 1e12])
    def test_units_of_features_change_nothing(self, unit):
        _, s = random_problem(2000)
        model = ConstrainedLogistic(l2=0.0, max_fdr=0.3, fairness=SelectionRateParity(0.05))
        expected = s.fit(model).coef_.copy()
        s.X[:, 1] *= unit
        found = s.fit(model).coef_
        found[:, 1] *= unit
        np.testing.assert_allclose(found, expected, atol=1e-5)


class TestInfeasible:
    @pytest.mark.parametrize("seed", [2002, 2010, 2011, 2020, 2041, 2057, 2066])
    def test_the_model_kept_is_a_sane_one(self, seed):
        """No model with less loss than the mean outcome's, plus the price of its violation."""
        model, s, problem, x = fitted(seed)
        assert not model.status_.feasible
        assert model.status_.converged
        mean = problem.evaluate(problem.mean_model())
        point = problem.evaluate(x)
        assert point.value < 2 * mean.value
        assert model.status_.violation == pytest.approx(excess(model, s), abs=1e-9)

    def test_only_bounds_that_cannot_be_met_are_exceeded(self):
        """A fairness bound still holds if the FDR is out of reach."""
        s = sample(np.random.default_rng(8))
        model = ConstrainedLogistic(
            max_fdr=0.01, min_selection_rate=0.95, fairness=SelectionRateParity(0.02)
        )
        with pytest.warns(LearningWarning):
            s.fit(model)
        p = model.predict_proba(s.X)[:, 1]
        rates = [np.average(p[s.group == z], weights=s.weight[s.group == z]) for z in (0, 1)]
        assert abs(rates[0] - rates[1]) <= 0.02 + 1e-6
        assert expected_fdr(p, s) > 0.02

    def test_is_reported(self):
        s = sample(np.random.default_rng(8))
        model = ConstrainedLogistic(max_fdr=0.01, min_selection_rate=0.95)
        with pytest.warns(LearningWarning):
            s.fit(model)
        assert not model.status_.feasible
        assert f"{model.status_.violation:.2g}" in model.status_.message
        assert model.status_.violation == pytest.approx(excess(model, s), rel=1e-6)
        # Accepting all rows has the FDR of the share of bad outcomes.
        bad = float(np.average(1 - s.y, weights=s.weight))
        assert model.status_.violation <= bad - 0.01

    def test_rejecting_all_does_not_evade_the_fdr(self):
        rng = np.random.default_rng(9)
        y = (rng.random(200) < 0.5).astype(int)
        model = ConstrainedLogistic(max_fdr=0.1)
        with pytest.warns(LearningWarning):
            model.fit(np.zeros((200, 1)), y)
        assert model.status_.violation == pytest.approx(1 - y.mean() - 0.1)
        assert model.predict_proba([[0.0]])[0, 1] == pytest.approx(y.mean(), abs=1e-4)


class TestStatus:
    @pytest.mark.parametrize("max_fdr", [None, 0.2])
    def test_too_few_iterations(self, max_fdr):
        s = sample(np.random.default_rng(10))
        model = ConstrainedLogistic(max_fdr=max_fdr, max_iter=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LearningWarning)
            with pytest.warns(ConvergenceWarning, match="max_iter"):
                s.fit(model)
        assert not model.status_.converged
        assert model.n_iter_ == model.status_.n_iter >= 1

    def test_separable_without_a_penalty_does_not_converge(self):
        X = np.linspace(-1, 1, 50)[:, None]
        with pytest.warns(ConvergenceWarning, match="max_iter"):
            ConstrainedLogistic(l2=0.0, max_iter=10).fit(X, X[:, 0] > 0)


def test_a_wide_fit_without_bounds_does_not_wait_for_slsqp(monkeypatch):
    """With 990 columns of text a step of SLSQP took four seconds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, solver.WIDE))
    y = (rng.random(400) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    methods = []

    def noted(*args, **options):
        methods.append(options["method"])
        return minimize(*args, **options)

    monkeypatch.setattr(solver, "minimize", noted)
    wide = ConstrainedLogistic().fit(X, y)
    monkeypatch.setattr(solver, "WIDE", X.shape[1] + 2)
    narrow = ConstrainedLogistic().fit(X, y)
    assert methods == ["L-BFGS-B", "SLSQP"]
    np.testing.assert_allclose(wide.coef_, narrow.coef_, atol=1e-4)
