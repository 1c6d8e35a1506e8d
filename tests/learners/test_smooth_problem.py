"""The smooth problem behind a fit: exact derivatives, and easier problems like it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from learners.samples import excess, objective, sample
from secondlook.core.fairness import SelectionRateParity, TruePositiveRateParity
from secondlook.learners.logistic import ConstrainedLogistic
from secondlook.learners.smooth_problem import _weighted_square


class TestDerivatives:
    """Exact first and second derivatives against central differences."""

    @pytest.fixture(params=["ratio", "linear"])
    def problem(self, request, monkeypatch):
        # Small blocks, so that sums over several of them are tested.
        monkeypatch.setattr("secondlook.learners.smooth_problem.BLOCK_BYTES", 1)
        s = sample(np.random.default_rng(4), n=900, n_groups=3)
        s.weight[256:512] = 0.0
        model = ConstrainedLogistic(
            max_fdr=0.2, min_selection_rate=0.3, fairness=TruePositiveRateParity(0.1)
        )
        problem = model._problem(s.X, s.y, s.weight, s.group)
        assert len(problem.blocks) == 3
        if request.param == "ratio":
            problem.use_ratio()
        return problem

    @staticmethod
    def differences(function, x, h=1e-5):
        steps = h * np.eye(x.size)
        return np.array([(function(x + e) - function(x - e)) / (2 * h) for e in steps]).T

    @pytest.mark.parametrize("seed", range(3))
    def test_gradient_and_jacobian(self, problem, seed):
        x = np.random.default_rng(seed).normal(size=4)
        point = problem.evaluate(x)
        gradient = self.differences(lambda v: problem.evaluate(v).value, x)
        jacobian = self.differences(lambda v: problem.evaluate(v).constraints, x)
        np.testing.assert_allclose(point.gradient, gradient, rtol=1e-6, atol=1e-9)
        assert jacobian.shape == (8, 4)
        np.testing.assert_allclose(point.jacobian, jacobian, rtol=1e-6, atol=1e-9)

    @pytest.mark.parametrize("constraint", range(-1, 8))
    def test_hessian_of_objective_and_every_constraint(self, problem, constraint):
        x = np.random.default_rng(5).normal(size=4)
        multipliers = np.zeros(8)
        if constraint >= 0:
            multipliers[constraint] = 1.7

        def gradient(v):
            point = problem.evaluate(v)
            return point.gradient + multipliers @ point.jacobian

        hessian = problem.hessian(problem.evaluate(x), multipliers)
        np.testing.assert_allclose(hessian, self.differences(gradient, x), rtol=1e-5, atol=1e-8)

    @pytest.mark.parametrize("d", [3, 40])
    @pytest.mark.parametrize("least", [-1.0, 0.0])
    def test_weighted_squares_of_few_and_many_columns(self, d, least):
        rng = np.random.default_rng(25)
        X, curve = rng.normal(size=(200, d)), rng.uniform(least, 1.0, size=200)
        expected = sum(c * np.outer(x, x) for x, c in zip(X, curve, strict=True))
        np.testing.assert_allclose(_weighted_square(X, curve), expected, atol=1e-11)

    def test_values_are_the_definitions(self):
        s = sample(np.random.default_rng(6))
        model = ConstrainedLogistic(max_fdr=0.3, fairness=SelectionRateParity(0.05))
        problem = model._problem(s.X, s.y, s.weight, s.group)
        problem.use_ratio()
        x = np.array([0.5, -1.0, 2.0, 0.3])
        model.coef_, model.intercept_, point = x[None, :3], x[3:], problem.evaluate(x)
        assert point.value * s.weight.sum() == pytest.approx(objective(model, s))
        assert point.constraints.max() == pytest.approx(excess(model, s))

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_margins_whose_exponential_overflows(self, dtype):
        """Beyond them the log-loss is a line, and odds of nothing are exact."""
        X = np.array([[-900.0], [-60.0], [-30.0], [0.5], [70.0], [95.0], [900.0]], dtype)
        y, bad = np.array([0, 1, 1, 0, 1, 0, 0]), np.array([1, 0, 0, 1, 0, 1, 1])
        problem = ConstrainedLogistic(max_fdr=0.2, l2=0.0, fit_intercept=False)._problem(
            X, y, None, None
        )
        point, exact = problem.evaluate(np.ones(1)), X[:, 0].astype(np.float64)
        eps = 10 * float(np.finfo(dtype).eps)
        assert point.value == pytest.approx(np.mean(np.logaddexp(0, exact) - y * exact), rel=eps)
        sigma = np.exp(-np.logaddexp(0, -exact))
        assert point.gradient[0] == pytest.approx(np.mean((sigma - y) * exact), rel=eps)
        np.testing.assert_allclose(point.cache.sums, [sigma.mean(), (sigma * bad).mean()], eps)
        # A likelihood of nearly nothing keeps all its digits.
        np.testing.assert_allclose(point.cache.likelihood[1:3], sigma[1:3], eps)


class TestEasierProblems:
    @pytest.fixture
    def problem(self):
        s = sample(np.random.default_rng(18), n=900, n_groups=3)
        model = ConstrainedLogistic(max_fdr=0.2, fairness=SelectionRateParity(0.05))
        return model._problem(s.X, s.y, s.weight, s.group)

    def test_a_start_in_single_precision_ends_in_the_same_place(self):
        s = sample(np.random.default_rng(19), n=60_000, d=20)
        ours = s.fit(ConstrainedLogistic(tol=1e-8))
        theirs = LogisticRegression(solver="newton-cholesky", tol=1e-10).fit(s.X, s.y, s.weight)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5, atol=1e-8)

    def test_copies_hold_the_same_numbers(self, problem):
        np.testing.assert_array_equal(problem.rounded().X, problem.X.astype(np.float32))
        np.testing.assert_array_equal(problem.thinned(100, most=5).X, problem.X[::5])
        x = np.random.default_rng(24).normal(size=4)
        one, other = problem.evaluate(x), problem.rounded().evaluate(x)
        assert one.value == pytest.approx(other.value, rel=1e-5)
        np.testing.assert_allclose(one.jacobian, other.jacobian, atol=1e-5)

    def test_numbers_beyond_single_precision_are_not_rounded(self, problem):
        assert problem.rounded().X.dtype == np.float32
        problem.X[0, 0] = 1e300
        assert problem.rounded() is None

    def test_fewer_rows_keep_both_classes_or_are_not_used(self, problem):
        assert len(problem.thinned(100, most=5).X) == 180
        assert problem.thinned(100, most=5, least=6) is None
        problem.good_weight[::5] = 0.0
        assert problem.thinned(100, most=5) is None

    def test_violations_of_many_models_are_those_of_each(self, problem):
        models = np.random.default_rng(20).normal(size=(7, 4))
        each = [problem.evaluate(x).violations.sum() for x in models]
        np.testing.assert_allclose(problem.total_violations(models), each, atol=1e-12)
