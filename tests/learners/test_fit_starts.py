"""Where the constrained fit starts, what it computes of its constraints, and its quick checks."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from secondlook.core.fairness import SelectionRateParity
from secondlook.errors import InputError
from secondlook.learners import multistart
from secondlook.learners.logistic import ConstrainedLogistic
from secondlook.learners.smooth_problem import Bounds, SmoothProblem
from secondlook.learners.sqp import minimise


def rows(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X, group = rng.normal(size=(n, d)), rng.integers(2, size=n)
    margin = X @ rng.normal(scale=2 / np.sqrt(d), size=d) - 0.5 - 0.5 * group
    return X, (rng.random(n) < 1 / (1 + np.exp(-margin))).astype(np.int8), group


class TestParts:
    """Derivatives are taken of parts of the sums; against every pair written out."""

    LEVELS = (3, 1, 2)

    def pairs(self, first):
        for n in self.LEVELS:
            yield from permutations(range(first, first + n), 2)
            first += n

    @pytest.mark.parametrize("max_fdr", [None, 0.2])
    @pytest.mark.parametrize("least", [None, 0.3])
    def test_constraints_are_sums_and_differences(self, max_fdr, least):
        bounds = Bounds(max_fdr, least, 0.1, self.LEVELS, usual=0.6)
        sums = np.random.default_rng(1).random(bounds.shared + 6)
        expected = []
        if max_fdr is not None:
            expected.append((sums[1] - max_fdr * sums[0]) / 0.6)
        if least is not None:
            expected.append(least - sums[0])
        expected += [sums[a] - sums[b] - 0.1 for a, b in self.pairs(bounds.shared)]
        assert bounds.values(sums) == pytest.approx(expected, abs=1e-15)
        assert bounds.size == len(expected)

    @pytest.mark.parametrize("usual", [0.6, None])
    @pytest.mark.parametrize("least", [None, 0.3])
    def test_slopes_by_parts_are_slopes_by_sums(self, usual, least):
        bounds = Bounds(0.2, least, 0.1, self.LEVELS, usual)
        sums, h = np.random.default_rng(2).random(8), 1e-6
        numeric = [
            (bounds.values(sums + e) - bounds.values(sums - e)) / (2 * h) for e in h * np.eye(8)
        ]
        found = bounds.slopes(sums) @ bounds.parts
        np.testing.assert_allclose(found, np.transpose(numeric), atol=1e-8)

    def test_as_few_parts_as_there_are_independent_constraints(self):
        bounds = Bounds(0.2, None, 0.1, self.LEVELS, usual=0.6)
        slopes = bounds.slopes(np.ones(8)) @ bounds.parts
        assert len(bounds.parts) == np.linalg.matrix_rank(slopes) == 1 + 2 + 0 + 1


class TestFirstStepsOnFewRows:
    MODEL = ConstrainedLogistic(max_fdr=0.2, fairness=SelectionRateParity(0.05))

    @pytest.fixture
    def lengths(self, monkeypatch):
        """Numbers of rows of the problems that are evaluated, in order."""
        seen, evaluate = [], SmoothProblem.evaluate

        def counting(problem, x):
            if seen[-1:] != [len(problem.X)]:
                seen.append(len(problem.X))
            return evaluate(problem, x)

        monkeypatch.setattr(SmoothProblem, "evaluate", counting)
        return seen

    def test_end_in_the_same_place(self, lengths, monkeypatch):
        X, y, group = rows(4000, 40)
        few = self.MODEL.fit(X, y, sensitive_features=group).coef_.copy()
        assert lengths == [1000, 4000]
        monkeypatch.setattr(multistart, "FEWEST_PER_COEFFICIENT", 10**6)
        lengths.clear()
        every = self.MODEL.fit(X, y, sensitive_features=group).coef_
        assert lengths == [4000]
        np.testing.assert_allclose(few, every, atol=2e-5)

    def test_are_forgotten_where_the_problem_is_not_benign(self, monkeypatch):
        X, y, group = rows(4000, 40)
        monkeypatch.setattr(multistart, "FEWEST_PER_COEFFICIENT", 10**6)
        every = self.MODEL.fit(X, y, sensitive_features=group).coef_.copy()
        monkeypatch.undo()
        monkeypatch.setattr(multistart, "BENIGN", 1.0)
        np.testing.assert_array_equal(self.MODEL.fit(X, y, sensitive_features=group).coef_, every)

    def test_narrow_problems_do_without(self, lengths):
        X, y, group = rows(4000, 25)
        self.MODEL.fit(X, y, sensitive_features=group)
        assert lengths == [4000]

    def test_unconstrained_equals_scikit_learn(self, lengths):
        X, y, _ = rows(20_000, 40)
        ours = ConstrainedLogistic().fit(X, y)
        assert lengths == [834, 5000, 20_000]
        theirs = LogisticRegression(solver="newton-cholesky", tol=1e-10).fit(X, y)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("unit", [1e15, 1e25, 1e36, 1e45])
@pytest.mark.parametrize("d", [10, 40])
def test_units_too_large_for_single_precision_change_nothing(d, unit):
    X, y, _ = rows(12_000, d)
    expected = ConstrainedLogistic(l2=0.0).fit(X, y).coef_
    X[:, 1] *= unit
    found = ConstrainedLogistic(l2=0.0).fit(X, y).coef_
    found[:, 1] *= unit
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_ahead_of_a_rough_solution_is_closer_to_the_exact_one():
    X, y, group = rows(1500, 5)
    model = ConstrainedLogistic(max_fdr=0.2, fairness=SelectionRateParity(0.05))
    problem = model._problem(X, y, None, group)
    exact = minimise(problem, problem.start(), tol=1e-9).point.x
    rough = minimise(problem, problem.start(), tol=1e-2)
    off = np.linalg.norm(rough.point.x - exact)
    assert off > 1e-5
    assert np.linalg.norm(rough.ahead - exact) < 0.3 * off


class TestQuickChecks:
    """Plain arrays skip scikit-learn's questions, and nothing else differs."""

    @pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, np.bool_])
    def test_same_model_as_from_lists(self, dtype):
        X, y, _ = rows(300, 3)
        quick = ConstrainedLogistic().fit(X, y.astype(dtype))
        slow = ConstrainedLogistic().fit(X.tolist(), y.astype(dtype).tolist())
        np.testing.assert_array_equal(quick.coef_, slow.coef_)
        assert quick.classes_.dtype == dtype
        assert quick.classes_.tolist() == slow.classes_.tolist()
        assert quick.n_features_in_ == slow.n_features_in_ == 3

    def test_outcomes_of_any_two_numbers(self):
        X, y, _ = rows(300, 3)
        model = ConstrainedLogistic().fit(X, np.where(y == 1, 7, -2))
        assert model.classes_.tolist() == [-2, 7]
        np.testing.assert_array_equal(model.coef_, ConstrainedLogistic().fit(X, y).coef_)

    @pytest.mark.parametrize("third", [-5, 3, 20])
    def test_a_third_outcome_is_refused(self, third):
        X, y, _ = rows(300, 3)
        outcomes = np.where(y == 1, 7, -2)
        outcomes[5] = third
        with pytest.raises(InputError, match="Only binary classification is supported"):
            ConstrainedLogistic().fit(X, outcomes)

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_numbers_that_are_none_are_refused(self, value):
        X, y, _ = rows(300, 3)
        X[7, 1] = value
        with pytest.raises(ValueError, match="Input X contains"):
            ConstrainedLogistic().fit(X, y)

    @pytest.mark.parametrize(("dtype", "large"), [(np.float64, 1e307), (np.float32, 3e37)])
    def test_finite_numbers_whose_sum_is_not_are_taken(self, dtype, large):
        X, y, _ = rows(300, 3)
        X[:, 2] = large
        found, good = ConstrainedLogistic()._rows(X.astype(dtype), y)
        np.testing.assert_array_equal(found, X.astype(dtype))
        np.testing.assert_array_equal(good, y == 1)

    def test_names_of_columns_are_forgotten_with_an_array(self):
        X, y, _ = rows(300, 3)
        model = ConstrainedLogistic().fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
        assert model.feature_names_in_.tolist() == ["a", "b", "c"]
        assert not hasattr(model.fit(X, y), "feature_names_in_")
