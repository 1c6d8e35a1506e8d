"""The constrained logistic fit: derivatives, optimality, statuses, and scikit-learn's contract."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import binomtest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from secondlook.errors import InputError, LearningWarning
from secondlook.fairness import RateParity, SelectionRateParity, TruePositiveRateParity
from secondlook.learners.box_qp import PricedStep, box_qp
from secondlook.learners.group_shares import group_codes
from secondlook.learners.logistic import ConstrainedLogistic, FitStatus
from secondlook.learners.quadratic_model import QuadraticModel
from secondlook.learners.smooth_problem import _weighted_square


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
        n_groups = int(s.group.max()) + 1
        rates = model.fairness.rates(p, s.y.astype(np.int8), s.weight, s.group, n_groups)
        found.append(float(np.nanmax(rates) - np.nanmin(rates)) - model.fairness.difference)
    return max(found)


def objective(model: ConstrainedLogistic, s: Sample) -> float:
    margin = s.X @ model.coef_[0] + model.intercept_[0]
    loss = np.logaddexp(0, margin) - s.y * margin
    return float(s.weight @ loss + model.l2 / 2 * (model.coef_**2).sum())


@parametrize_with_checks([ConstrainedLogistic(), ConstrainedLogistic(max_fdr=0.4)])
def test_scikit_learn_contract(estimator, check):
    # Checks draw their outcomes at random: a bound on the FDR can be out of reach, which we say.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LearningWarning)
        check(estimator)


class TestUnconstrained:
    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("l2", [0.1, 1.0, 30.0])
    def test_equals_scikit_learn(self, l2, fit_intercept):
        s = sample(np.random.default_rng(0))
        ours = s.fit(ConstrainedLogistic(l2=l2, fit_intercept=fit_intercept))
        theirs = LogisticRegression(
            C=1 / l2, fit_intercept=fit_intercept, solver="newton-cholesky", tol=1e-10
        ).fit(s.X, s.y, s.weight)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5, atol=1e-8)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-5, atol=1e-8)
        np.testing.assert_allclose(ours.predict_proba(s.X), theirs.predict_proba(s.X), atol=1e-6)

    def test_many_rows_start_on_a_tenth_and_end_in_the_same_place(self):
        s = sample(np.random.default_rng(1), n=30_000, d=5)
        ours = s.fit(ConstrainedLogistic())
        theirs = LogisticRegression(solver="newton-cholesky", tol=1e-10).fit(s.X, s.y, s.weight)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5, atol=1e-8)
        assert ours.status_ == FitStatus(True, True, 0.0, ours.n_iter_, "Converged.")
        assert ours.n_iter_ <= 5

    def test_collinear_features_without_a_penalty(self):
        s = sample(np.random.default_rng(2))
        once = s.fit(ConstrainedLogistic(l2=0.0))
        twice = ConstrainedLogistic(l2=0.0).fit(np.hstack([s.X, s.X]), s.y, s.weight)
        both = np.hstack([s.X, s.X])
        np.testing.assert_allclose(
            twice.decision_function(both), once.decision_function(s.X), atol=1e-6
        )

    def test_inactive_constraints_change_nothing(self):
        s = sample(np.random.default_rng(3))
        loose = ConstrainedLogistic(
            max_fdr=0.99, min_selection_rate=0.01, fairness=SelectionRateParity(1.0)
        )
        np.testing.assert_allclose(
            s.fit(loose).coef_, s.fit(ConstrainedLogistic()).coef_, atol=1e-6
        )


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


class TestStatus:
    def test_infeasible_is_reported_and_least_violated(self):
        s = sample(np.random.default_rng(8))
        model = ConstrainedLogistic(max_fdr=0.01, min_selection_rate=0.95, max_iter=400)
        with pytest.warns(LearningWarning, match="No model found that meets the constraints"):
            s.fit(model)
        assert not model.status_.feasible
        assert model.status_.message.endswith("."), model.status_
        assert model.status_.violation == pytest.approx(excess(model, s), rel=1e-6)
        # Accepting everybody has no better FDR than the share of bad outcomes.
        bad = float(np.average(1 - s.y, weights=s.weight))
        assert model.status_.violation <= bad - 0.01

    def test_accepting_nobody_is_no_way_round_the_fdr(self):
        rng = np.random.default_rng(9)
        y = (rng.random(200) < 0.5).astype(int)
        model = ConstrainedLogistic(max_fdr=0.1)
        with pytest.warns(LearningWarning):
            model.fit(np.zeros((200, 1)), y)
        assert model.status_.violation == pytest.approx(1 - y.mean() - 0.1)

    def test_a_ratio_may_bend_beyond_all_numbers_without_a_warning(self):
        s = sample(np.random.default_rng(26))
        problem = ConstrainedLogistic(max_fdr=0.1)._problem(s.X, s.y, s.weight, None)
        problem.use_ratio()
        nobody = np.array([0.0, 0.0, 0.0, -500.0])
        assert 0 < problem.evaluate(nobody).cache.sums[0] < 1e-200
        assert not np.isfinite(problem.hessian(problem.evaluate(nobody), np.ones(1))).all()

    def test_too_few_steps_are_reported(self):
        s = sample(np.random.default_rng(10))
        model = ConstrainedLogistic(max_iter=1)
        with pytest.warns(ConvergenceWarning, match="allowed by max_iter were not enough"):
            s.fit(model)
        assert not model.status_.converged
        assert model.n_iter_ == model.status_.n_iter == 1

    def test_separable_without_a_penalty_does_not_converge(self):
        X = np.linspace(-1, 1, 50)[:, None]
        with pytest.warns(ConvergenceWarning):
            ConstrainedLogistic(l2=0.0, max_iter=10).fit(X, X[:, 0] > 0)


def binding() -> ConstrainedLogistic:
    return ConstrainedLogistic(max_fdr=0.2, fairness=SelectionRateParity(0.03))


class TestRows:
    @pytest.fixture
    def rows(self):
        return sample(np.random.default_rng(11), n=2000, d=4)

    def test_constraints_bind(self, rows):
        model = rows.fit(binding())
        assert excess(model, rows) == pytest.approx(0.0, abs=1e-6)
        assert excess(rows.fit(ConstrainedLogistic()).set_params(max_fdr=0.2), rows) > 0.01

    def test_warm_start_is_quicker_and_ends_in_the_same_place(self, rows):
        cold = rows.fit(binding())
        warm = rows.fit(binding().set_params(warm_start=True))
        first = warm.n_iter_
        rows.fit(warm)
        assert warm.n_iter_ < first == cold.n_iter_
        np.testing.assert_allclose(warm.coef_, cold.coef_, atol=1e-5)
        narrow = Sample(rows.X[:, :2], rows.y, rows.weight, rows.group)
        np.testing.assert_array_equal(narrow.fit(warm).coef_, narrow.fit(binding()).coef_)

    def test_zero_weights_are_removed_rows(self, rows):
        weight = np.where(np.arange(2000) % 3 == 0, 0.0, rows.weight)
        kept = weight > 0
        some = Sample(rows.X[kept], rows.y[kept], weight[kept], rows.group[kept])
        junk = np.where(kept[:, None], rows.X, 1e3)
        whole = Sample(junk, rows.y, weight, rows.group)
        np.testing.assert_allclose(whole.fit(binding()).coef_, some.fit(binding()).coef_, rtol=1e-6)

    def test_whole_weights_are_repeated_rows(self, rows):
        times = np.random.default_rng(12).integers(1, 4, size=2000)
        again = Sample(
            *(np.repeat(a, times, axis=0) for a in (rows.X, rows.y, np.ones(2000))),
            group=np.repeat(rows.group, times),
        )
        weighted = Sample(rows.X, rows.y, times.astype(float), rows.group)
        model = binding().set_params(tol=1e-9)
        one, other = weighted.fit(model).coef_, again.fit(model).coef_
        np.testing.assert_allclose(one, other, rtol=1e-6)

    def test_float32_stays_float32(self, rows):
        single = Sample(rows.X.astype(np.float32), rows.y, rows.weight, rows.group)
        model, exact = single.fit(binding()), rows.fit(binding())
        assert model._problem(single.X, rows.y, None, rows.group).basis.dtype == np.float32
        assert model.coef_.dtype == np.float64
        assert model.predict_proba(single.X).dtype == np.float32
        assert model.status_.feasible
        assert excess(model, rows) <= 1e-5
        np.testing.assert_allclose(model.coef_, exact.coef_, atol=1e-3)

    @pytest.mark.parametrize("take", [np.s_[:1500], np.s_[::2]])
    def test_views_are_not_copied(self, rows, take):
        problem = binding()._problem(rows.X[take], rows.y[take], None, rows.group[take])
        assert np.shares_memory(problem.X, rows.X)

    def test_row_order_and_memory_order_do_not_matter(self, rows):
        order = np.random.default_rng(13).permutation(2000)
        mixed = Sample(*(a[order] for a in (rows.X, rows.y, rows.weight, rows.group)))
        fortran = Sample(np.asfortranarray(rows.X), rows.y, rows.weight, rows.group)
        expected = rows.fit(binding()).coef_
        np.testing.assert_allclose(mixed.fit(binding()).coef_, expected, atol=1e-6)
        np.testing.assert_allclose(fortran.fit(binding()).coef_, expected, atol=1e-6)


class TestChecked:
    """Rows that need no checks are fitted as any other."""

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize("n_groups", [1, 3])
    def test_equals_fit(self, n_groups, dtype):
        s = sample(np.random.default_rng(21), n_groups=n_groups)
        s = Sample(s.X.astype(dtype), s.y.astype(np.int8), s.weight, s.group)
        one, other = s.fit(binding()), binding()
        # A group that nobody belongs to changes nothing.
        other.fit_checked(s.X, s.y, s.weight, s.group, n_groups + 1)
        np.testing.assert_array_equal(one.coef_, other.coef_)
        np.testing.assert_array_equal(one.intercept_, other.intercept_)
        np.testing.assert_array_equal(one.predict(s.X), other.predict(s.X))
        assert vars(one).keys() == vars(other).keys()
        assert (one.status_, one.n_iter_) == (other.status_, other.n_iter_)
        assert one.complaints() == other.complaints() == []

    def test_tells_what_fit_warns_of(self):
        s = sample(np.random.default_rng(8))
        model = ConstrainedLogistic(max_fdr=0.01, min_selection_rate=0.95, max_iter=2)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            s.fit(model)
        told = [(one.category, str(one.message)) for one in caught]
        assert [category for category, _ in told] == [LearningWarning, ConvergenceWarning]
        assert Path(caught[0].filename).name == Path(__file__).name
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.fit_checked(s.X, s.y.astype(np.int8), s.weight, s.group, 2)
        assert model.complaints() == told


class TestGroups:
    def test_group_without_counted_members_is_left_out(self):
        s = sample(np.random.default_rng(14))
        # A third group without a good outcome has no true positive rate.
        group = np.where((s.y == 0) & (s.X[:, 0] > 0), 2, s.group)
        model = ConstrainedLogistic(fairness=TruePositiveRateParity(0.01))
        assert len(model._problem(s.X, s.y, s.weight, group).basis) == 2
        with_third = model.fit(s.X, s.y, s.weight, sensitive_features=group).coef_
        np.testing.assert_allclose(with_third, s.fit(model).coef_, atol=1e-6)

    def test_one_group_constrains_nothing(self):
        s = sample(np.random.default_rng(15), n_groups=1)
        fair = s.fit(ConstrainedLogistic(fairness=SelectionRateParity(0.0)))
        np.testing.assert_allclose(fair.coef_, s.fit(ConstrainedLogistic()).coef_, atol=1e-6)

    @pytest.mark.parametrize("names", [["a", "b", "c"], [3.5, 1.5, 2.0], [True, False, True]])
    def test_groups_of_any_type(self, names):
        s = sample(np.random.default_rng(16), n_groups=3)
        group = np.array(names)[s.group]
        model = ConstrainedLogistic(fairness=SelectionRateParity(0.02))
        model.fit(s.X, s.y, s.weight, sensitive_features=group.tolist())
        p = model.predict_proba(s.X)[:, 1]
        rates = [np.average(p[group == z], weights=s.weight[group == z]) for z in set(names)]
        assert np.ptp(rates) <= 0.02 + 1e-6

    @pytest.mark.parametrize("names", [[7, 2, 40], [-1, 5, 3], [10**6, 1, 0]])
    def test_whole_numbers_are_numbered_as_anything_else(self, names):
        group = np.array(names)[np.random.default_rng(23).integers(3, size=100)]
        codes, n_groups = group_codes(group, 100)
        expected, n_expected = group_codes(group.astype(object), 100)
        assert (codes.tolist(), n_groups) == (expected.tolist(), n_expected)

    def test_rates_can_be_equal_in_many_groups(self):
        s = sample(np.random.default_rng(17), n=3000, d=8, n_groups=5)
        model = s.fit(ConstrainedLogistic(fairness=SelectionRateParity(0.0)))
        assert excess(model, s) <= 1e-6


class TestErrors:
    @pytest.mark.parametrize(
        ("parameter", "value", "text"),
        [
            ("l2", -1.0, "l2 must be at least 0, got -1.0."),
            ("l2", "1", "l2 must be at least 0, got '1'."),
            ("max_fdr", 0.0, "max_fdr must be in (0, 1), or None, got 0.0."),
            ("max_fdr", 1.0, "max_fdr must be in (0, 1), or None, got 1.0."),
            ("min_selection_rate", 1.0, "min_selection_rate must be in [0, 1), or None, got 1.0."),
            ("tol", 0.0, "tol must be positive, got 0.0."),
            ("max_iter", 0, "max_iter must be a whole number of at least 1, got 0."),
            ("max_iter", 2.5, "max_iter must be a whole number of at least 1, got 2.5."),
            ("fairness", 0.05, "fairness must be a RateParity, or None, got 0.05."),
        ],
    )
    def test_parameters(self, parameter, value, text):
        with pytest.raises(InputError) as error:
            ConstrainedLogistic(**{parameter: value}).fit([[0.0], [1.0]], [0, 1])
        assert str(error.value) == text

    @pytest.mark.parametrize(
        ("group", "text"),
        [
            (None, "needs the group of every row, got sensitive_features=None; pass"),
            (["a"], "of shape (2,), got (1,); pass one value for each row"),
            ([["a"], ["b"]], "of shape (2,), got (2, 1); pass one value for each row"),
            (np.array(["a", 1], dtype=object), "can be sorted, got mixed types; turn"),
        ],
    )
    def test_groups(self, group, text):
        model = ConstrainedLogistic(fairness=SelectionRateParity())
        with pytest.raises(InputError) as error:
            model.fit([[0.0], [1.0]], [0, 1], sensitive_features=group)
        assert text in str(error.value)

    @pytest.mark.parametrize(
        ("weight", "text"),
        [([1.0, -1.0], "sample_weight must be at least 0, got -1.0"), ([1.0, 0.0], "both classes")],
    )
    def test_weights(self, weight, text):
        with pytest.raises(InputError, match=text):
            ConstrainedLogistic().fit([[0.0], [1.0]], [0, 1], weight)

    def test_one_class(self):
        with pytest.raises(InputError, match="two classes, got one class, 'good'; fit on rows"):
            ConstrainedLogistic().fit([[0.0], [1.0]], ["good", "good"])


class TestBoxQp:
    @pytest.mark.parametrize("seed", range(20))
    def test_optimality_conditions(self, seed):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(5, int(rng.integers(2, 9))))
        M, q = rows @ rows.T, 3 * rng.normal(size=5)
        solution = box_qp(M, q, 2.0, rng.random(5) < 0.5)
        slope = q - M @ solution
        assert np.all((solution >= 0) & (solution <= 2.0 + 1e-12))
        assert np.all(slope[solution < 2.0 - 1e-9] <= 1e-8)
        assert np.all(slope[solution > 1e-9] >= -1e-8)

    @pytest.mark.parametrize("seed", range(20))
    def test_a_guess_changes_nothing(self, seed):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(int(rng.integers(1, 4)), 4))
        M, q = rows @ rows.T, 3 * rng.normal(size=len(rows))
        everything = np.ones(len(rows), dtype=bool)
        np.testing.assert_allclose(
            box_qp(M, q, 2.0, everything), box_qp(M, q, 2.0), rtol=1e-9, atol=1e-9
        )

    @pytest.mark.parametrize(("q", "expected"), [(-1.0, 0.0), (3.0, 1.5), (9.0, 2.0)])
    def test_one_alone(self, q, expected):
        assert box_qp(np.array([[2.0]]), np.array([q]), 2.0).tolist() == [expected]

    @pytest.mark.parametrize("price", [0.1, 1.0, 50.0])
    @pytest.mark.parametrize("seed", range(10))
    def test_a_priced_step_is_the_best_of_its_model(self, seed, price):
        """Against a second solver, with the excess over each constraint as a variable."""
        rng = np.random.default_rng([22, seed])
        d, n = 4, int(rng.integers(1, 6))
        root, gradient = rng.normal(size=(d, d)), rng.normal(size=d)
        matrix, jacobian = root @ root.T + np.eye(d), rng.normal(size=(n, d))
        offset = rng.normal(size=n)
        both = np.linalg.solve(matrix, np.vstack((gradient, jacobian)).T)
        program = PricedStep(jacobian, offset, -both[:, 0], both[:, 1:])
        step, multipliers = program.solve(price, rng.random(n) < 0.5)

        def worth(p):
            return p @ matrix @ p / 2 + gradient @ p

        found = worth(step) + price * np.maximum(offset + jacobian @ step, 0).sum()
        best = minimize(
            lambda v: worth(v[:d]) + price * v[d:].sum(),
            np.concatenate((np.zeros(d), np.maximum(offset, 0))),
            method="SLSQP",
            bounds=[(None, None)] * d + [(0, None)] * n,
            constraints={"type": "ineq", "fun": lambda v: v[d:] - offset - jacobian @ v[:d]},
            options={"ftol": 1e-12, "maxiter": 500},
        )
        assert found == pytest.approx(best.fun, rel=1e-6, abs=1e-6)
        assert np.all((multipliers >= 0) & (multipliers <= price * (1 + 1e-9)))
        # Where it ends, the model is level but for what the constraints ask for.
        np.testing.assert_allclose(matrix @ step + gradient + multipliers @ jacobian, 0, atol=1e-9)

    def test_opposed_and_empty_rows(self):
        rows = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]])
        solution = box_qp(rows @ rows.T, np.array([2.0, -2.0, 1.0]), 10.0)
        np.testing.assert_allclose(solution, [2.0, 0.0, 0.0], atol=1e-9)


def test_directions_that_curve_down_are_turned_round():
    # Two directions of the metric, one of which curves down by 2 and the other up by 5.
    root = np.array([[2.0, 0.0], [1.0, 1.0]])
    metric, curves = root @ root.T, root @ np.diag([-2.0, 5.0]) @ root.T
    model = QuadraticModel(curves)
    assert not model.definite
    turned = model.reflected(metric)
    assert turned.definite
    np.testing.assert_allclose(turned.matrix, root @ np.diag([2.0, 5.0]) @ root.T, rtol=1e-12)
    endless = QuadraticModel(curves * np.nan)
    assert endless.reflected(metric) is endless
