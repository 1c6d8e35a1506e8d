"""What a constrained fit says when it cannot do what is asked, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from learners.samples import excess, sample
from secondlook.core.fairness import SelectionRateParity
from secondlook.errors import InputError, LearningWarning
from secondlook.learners.logistic import ConstrainedLogistic


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
        with pytest.warns(LearningWarning, match="No model found that meets the constraints"):
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
        with pytest.warns(ConvergenceWarning, match="allowed by max_iter were not enough"):
            ConstrainedLogistic(l2=0.0, max_iter=10).fit(X, X[:, 0] > 0)


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
