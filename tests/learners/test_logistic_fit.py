"""The constrained logistic fit: scikit-learn's contract and answers, rows, weights and groups."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from learners.samples import Sample, excess, sample
from secondlook.core.fairness import SelectionRateParity, TruePositiveRateParity
from secondlook.errors import LearningWarning
from secondlook.learners.group_shares import group_codes
from secondlook.learners.logistic import ConstrainedLogistic, FitStatus


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
            model.fit(s.X, s.y, s.weight, sensitive_features=s.group)
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
