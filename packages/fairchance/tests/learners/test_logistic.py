"""The estimator ConstrainedLogistic: scikit-learn's contract, rows, weights, groups and errors."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairchance.core.fairness import SelectionRateParity, TruePositiveRateParity
from fairchance.errors import InputError, LearningWarning
from fairchance.learners.logistic import ConstrainedLogistic, FitStatus
from fairchance.learners.problem import group_codes
from learners.samples import Sample, excess, sample


@parametrize_with_checks([ConstrainedLogistic(), ConstrainedLogistic(max_fdr=0.4)])
def test_scikit_learn_contract(estimator, check):
    # Checks draw their outcomes at random, so the bound on the FDR can be out of reach.
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

    def test_status(self):
        ours = sample(np.random.default_rng(1)).fit(ConstrainedLogistic())
        assert ours.status_ == FitStatus(True, True, 0.0, ours.n_iter_, "Converged.")

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
        expected = weighted.fit(model).coef_.copy()
        np.testing.assert_allclose(again.fit(model).coef_, expected, rtol=1e-6)

    def test_float32(self, rows):
        single = Sample(rows.X.astype(np.float32), rows.y, rows.weight, rows.group)
        model, exact = single.fit(binding()), rows.fit(binding())
        assert np.shares_memory(model._problem(single.X, rows.y, None, rows.group).X, single.X)
        assert model.coef_.dtype == np.float64
        assert model.predict_proba(single.X).dtype == np.float32
        assert model.status_.feasible
        assert excess(model, rows) <= 1e-5
        np.testing.assert_allclose(model.coef_, exact.coef_, atol=1e-5)

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


class TestGroups:
    def test_group_without_counted_members_is_left_out(self):
        s = sample(np.random.default_rng(14))
        # A third group without a good outcome has no true positive rate.
        group = np.where((s.y == 0) & (s.X[:, 0] > 0), 2, s.group)
        model = ConstrainedLogistic(fairness=TruePositiveRateParity(0.01))
        assert model._problem(s.X, s.y, s.weight, group).bounds.rates.levels == (2,)
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


class TestOutcomes:
    @pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, np.bool_])
    def test_any_two_whole_numbers(self, dtype):
        s = sample(np.random.default_rng(18))
        model = ConstrainedLogistic().fit(s.X, s.y.astype(dtype))
        assert model.classes_.dtype == dtype
        other = ConstrainedLogistic().fit(s.X.tolist(), np.where(s.y == 1, 7, -2).tolist())
        assert other.classes_.tolist() == [-2, 7]
        np.testing.assert_array_equal(model.coef_, other.coef_)

    @pytest.mark.parametrize("third", [-5, 3, 20])
    def test_a_third_outcome_is_refused(self, third):
        s = sample(np.random.default_rng(18))
        outcomes = np.where(s.y == 1, 7, -2)
        outcomes[5] = third
        with pytest.raises(InputError, match="Only binary classification is supported"):
            ConstrainedLogistic().fit(s.X, outcomes)

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_features_that_are_not_numbers_are_refused(self, value):
        s = sample(np.random.default_rng(18))
        s.X[7, 1] = value
        with pytest.raises(ValueError, match="Input X contains"):
            ConstrainedLogistic().fit(s.X, s.y)

    def test_names_of_columns(self):
        s = sample(np.random.default_rng(18))
        model = ConstrainedLogistic().fit(pd.DataFrame(s.X, columns=["a", "b", "c"]), s.y)
        assert model.feature_names_in_.tolist() == ["a", "b", "c"]
        assert not hasattr(model.fit(s.X, s.y), "feature_names_in_")


class TestErrors:
    @pytest.mark.parametrize(
        ("parameter", "value", "text"),
        [
            ("l2", -1.0, "l2.*-1.0"),
            ("l2", "1", "l2.*'1'"),
            ("max_fdr", 0.0, "max_fdr.*0.0"),
            ("max_fdr", 1.0, "max_fdr.*1.0"),
            ("min_selection_rate", 1.0, "min_selection_rate.*1.0"),
            ("tol", 0.0, "tol.*0.0"),
            ("max_iter", 0, "max_iter.*1.*0"),
            ("max_iter", 2.5, "max_iter.*1.*2.5"),
            ("fairness", 0.05, "fairness.*RateParity.*0.05"),
        ],
    )
    def test_parameters(self, parameter, value, text):
        with pytest.raises(InputError, match=text):
            ConstrainedLogistic(**{parameter: value}).fit([[0.0], [1.0]], [0, 1])

    @pytest.mark.parametrize(
        ("group", "text"),
        [
            (None, "sensitive_features"),
            (["a"], r"\(2,\).*\(1,\)"),
            ([["a"], ["b"]], r"\(2,\).*\(2, 1\)"),
            (np.array(["a", 1], dtype=object), None),
        ],
    )
    def test_groups(self, group, text):
        model = ConstrainedLogistic(fairness=SelectionRateParity())
        with pytest.raises(InputError, match=text):
            model.fit([[0.0], [1.0]], [0, 1], sensitive_features=group)

    @pytest.mark.parametrize(
        ("weight", "text"),
        [([1.0, -1.0], "sample_weight.*-1.0"), ([1.0, 0.0], None)],
    )
    def test_weights(self, weight, text):
        with pytest.raises(InputError, match=text):
            ConstrainedLogistic().fit([[0.0], [1.0]], [0, 1], weight)

    def test_one_class(self):
        with pytest.raises(InputError, match="'good'"):
            ConstrainedLogistic().fit([[0.0], [1.0]], ["good", "good"])
