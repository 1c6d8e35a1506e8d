"""The smooth problem behind a fit: its values and exact derivatives."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import parities
from fairchance.core.fairness import EqualizedOdds, SelectionRateParity, TruePositiveRateParity
from fairchance.learners.logistic import ConstrainedLogistic
from fairchance.learners.problem import FitBounds, SmoothRates
from learners.samples import excess, objective, sample


def differences(function, x, h=1e-5):
    """Return central differences."""
    steps = h * np.eye(x.size)
    return np.array([(function(x + e) - function(x - e)) / (2 * h) for e in steps]).T


class TestDerivatives:
    """Exact derivatives against central differences."""

    @pytest.fixture(params=[TruePositiveRateParity(0.1), EqualizedOdds(ratio=0.8)])
    def problem(self, monkeypatch, request):
        # Small blocks, so that sums over several of them are tested.
        monkeypatch.setattr("fairchance.learners.problem.BLOCK_BYTES", 1)
        s = sample(np.random.default_rng(4), n=900, n_groups=3)
        s.weight[256:512] = 0.0
        model = ConstrainedLogistic(max_fdr=0.2, min_selection_rate=0.3, fairness=request.param)
        problem = model._problem(s.X, s.y, s.weight, s.group)
        assert len(problem.blocks) == 3
        return problem

    @pytest.mark.parametrize("seed", range(3))
    def test_gradient_and_jacobian(self, problem, seed):
        x = np.random.default_rng(seed).normal(size=4)
        point = problem.evaluate(x)
        gradient = differences(lambda v: problem.evaluate(v).value, x)
        jacobian = differences(lambda v: problem.evaluate(v).constraints, x)
        np.testing.assert_allclose(point.gradient, gradient, rtol=1e-6, atol=1e-9)
        assert len(jacobian) in (8, 14)
        np.testing.assert_allclose(point.jacobian, jacobian, rtol=1e-6, atol=1e-9)

    def test_hessian_of_the_loss(self, problem):
        x = np.random.default_rng(5).normal(size=4)
        numeric = differences(lambda v: problem.evaluate(v).gradient, x)
        np.testing.assert_allclose(problem.loss_hessian(x), numeric, rtol=1e-5, atol=1e-8)

    def test_without_an_intercept(self):
        s = sample(np.random.default_rng(4))
        model = ConstrainedLogistic(max_fdr=0.2, fit_intercept=False)
        problem = model._problem(s.X, s.y, s.weight, None)
        x = np.array([0.5, -1.0, 2.0])
        gradient = differences(lambda v: problem.evaluate(v).value, x)
        np.testing.assert_allclose(problem.evaluate(x).gradient, gradient, rtol=1e-6, atol=1e-9)
        hessian = differences(lambda v: problem.evaluate(v).gradient, x)
        np.testing.assert_allclose(problem.loss_hessian(x), hessian, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("kind", parities.FAMILY)
@pytest.mark.parametrize("bound", [{"difference": 0.01}, {"ratio": 0.99}])
def test_each_constraint_is_its_definition_with_exact_derivatives(kind, bound):
    s = sample(np.random.default_rng(6), n_groups=3)
    model = ConstrainedLogistic(fairness=kind(**bound))
    problem = model._problem(s.X, s.y, s.weight, s.group)
    x = np.array([0.5, -1.0, 2.0, 0.3])
    model.coef_, model.intercept_, point = x[None, :3], x[3:], problem.evaluate(x)
    model.classes_, model.n_features_in_ = np.array([0, 1]), 3
    assert excess(model, s) > 0
    assert point.constraints.max() == pytest.approx(excess(model, s))
    jacobian = differences(lambda v: problem.evaluate(v).constraints, x)
    np.testing.assert_allclose(point.jacobian, jacobian, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("margin", [-800.0, 800.0])
def test_rates_of_no_one_stay_finite(margin):
    """If nearly no one is rejected, or accepted, a rate among them is a quotient of rounding."""
    s = sample(np.random.default_rng(6), n_groups=3)
    for kind in parities.FAMILY:
        problem = ConstrainedLogistic(fairness=kind())._problem(s.X, s.y, s.weight, s.group)
        point = problem.evaluate(np.array([0.0, 0.0, 0.0, margin]))
        assert np.abs(point.constraints).max() <= 1.1
        assert np.isfinite(point.jacobian).all()


def test_values_are_the_definitions():
    s = sample(np.random.default_rng(6))
    model = ConstrainedLogistic(max_fdr=0.3, fairness=SelectionRateParity(0.05))
    problem = model._problem(s.X, s.y, s.weight, s.group)
    x = np.array([0.5, -1.0, 2.0, 0.3])
    model.coef_, model.intercept_, point = x[None, :3], x[3:], problem.evaluate(x)
    assert point.value * s.weight.sum() == pytest.approx(objective(model, s))
    assert point.constraints.max() == pytest.approx(excess(model, s))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_margins_whose_exponential_overflows(dtype):
    """For such margins the log-loss is a line, and small likelihoods keep all their digits."""
    X = np.array([[-900.0], [-60.0], [-30.0], [0.5], [70.0], [95.0], [900.0]], dtype)
    y, bad = np.array([0, 1, 1, 0, 1, 0, 0]), np.array([1, 0, 0, 1, 0, 1, 1])
    model = ConstrainedLogistic(max_fdr=0.2, l2=0.0, fit_intercept=False)
    point = model._problem(X, y, None, None).evaluate(np.ones(1))
    margin = X[:, 0].astype(np.float64)
    assert point.value == pytest.approx(np.mean(np.logaddexp(0, margin) - y * margin), rel=1e-14)
    sigma = np.exp(-np.logaddexp(0, -margin))
    assert point.gradient[0] == pytest.approx(np.mean((sigma - y) * margin), rel=1e-14)
    assert point.constraints == pytest.approx([sigma @ bad / sigma.sum() - 0.2], rel=1e-14)
    few = model._problem(X[:3], y[:3], None, None).evaluate(np.ones(1))
    assert few.constraints == pytest.approx([sigma[0] / sigma[:3].sum() - 0.2], rel=1e-14)


class TestBounds:
    """Constraints as functions of sums, against every pair written out."""

    # The first three rates are sums; the others are quotients, of sums plus numbers.
    RATES = SmoothRates(
        start=np.array([0.0, 0.0, 0.0, 0.3, 0.2, 0.1]),
        rest=np.array([1.0, 1.0, 1.0, 0.5, 0.0, 0.4]),
        part=np.arange(2, 8),
        whole=np.array([-1, -1, -1, 8, 9, 10]),
        levels=(3, 1, 2),
    )

    def rates(self, sums):
        quotients = (sums[5:8] + self.RATES.start[3:]) / (sums[8:] + self.RATES.rest[3:])
        return np.concatenate((sums[2:5], quotients))

    def pairs(self):
        first = 0
        for n in self.RATES.levels:
            yield from permutations(range(first, first + n), 2)
            first += n

    @pytest.mark.parametrize("max_fdr", [None, 0.2])
    @pytest.mark.parametrize("least", [None, 0.3])
    def test_constraints_are_ratios_sums_and_differences(self, max_fdr, least):
        bounds = FitBounds(max_fdr, least, 0.9, 0.1, self.RATES)
        sums = np.random.default_rng(1).random(11)
        expected, kinds = [], []
        if max_fdr is not None:
            expected.append(sums[1] / sums[0] - max_fdr)
            kinds.append(0)
        if least is not None:
            expected.append(least - sums[0])
            kinds.append(1)
        known = self.rates(sums)
        rates = [0.9 * known[a] - known[b] - 0.1 for a, b in self.pairs()]
        assert bounds.values(sums) == pytest.approx(expected + rates, abs=1e-15)
        assert bounds.size == len(expected + rates)
        assert bounds.kinds.tolist() == kinds + [2] * len(rates)

    @pytest.mark.parametrize("max_fdr", [None, 0.2])
    @pytest.mark.parametrize("least", [None, 0.3])
    def test_slopes(self, max_fdr, least):
        bounds = FitBounds(max_fdr, least, 0.9, 0.1, self.RATES)
        sums = np.random.default_rng(2).random(11)
        numeric = differences(bounds.values, sums, 1e-6)
        np.testing.assert_allclose(bounds.slopes(sums), numeric, atol=1e-8)
