"""Learning from a past that selected on the outcome, against numbers and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from fairchance.learners.selection import _SelectionLikelihood, fit_selected_past

COEF, INTERCEPT = np.array([1.5, -1.0, 0.0]), 0.5


def people(n, rng):
    X = rng.normal(size=(n, 3))
    return X, (rng.random(n) < expit(X @ COEF + INTERCEPT)).astype(np.int8)


def history(n, rng, good=0.9, bad=0.1):
    """Return features and outcomes of those accepted, and features of those rejected."""
    X, y = people(n, rng)
    accepted = rng.random(n) < np.where(y == 1, good, bad)
    return X[accepted], y[accepted], X[~accepted]


def no_rows():
    return np.empty((0, 3)), np.empty(0, np.int8)


@pytest.mark.parametrize("selected", [True, False])
def test_gradient_against_differences(rng, selected):
    X, y, rejected = history(200, rng)
    problem = _SelectionLikelihood(
        X, y, rejected if selected else rejected[:0], *people(50, rng), 20.0
    )
    n_parameters = problem.start().size
    assert n_parameters == (6 if selected else 4)
    for _ in range(5):
        at = rng.normal(size=n_parameters)
        value = lambda u: problem.value_and_gradient(u)[0]  # noqa: E731
        slope = lambda u: problem.value_and_gradient(u)[1]  # noqa: E731
        size = np.linalg.norm(slope(at))
        assert check_grad(value, slope, at) <= 1e-5 * max(1.0, size)


@pytest.mark.parametrize(("good", "bad"), [(0.9, 0.1), (0.6, 0.3)])
def test_recovers_how_the_past_selected(rng, good, bad):
    fit = fit_selected_past(*history(20_000, rng, good, bad), *no_rows(), l2=1.0)
    assert fit.accepted_good == pytest.approx(good, abs=0.05)
    assert fit.accepted_bad == pytest.approx(bad, abs=0.05)
    assert fit.coef == pytest.approx(COEF, abs=0.15)
    assert fit.intercept == pytest.approx(INTERCEPT, abs=0.3)


def test_without_it_the_accepted_look_better_than_they_are(rng):
    """The control: plain logistic regression on the accepted does not find the intercept."""
    X, y, rejected = history(20_000, rng)
    plain = fit_selected_past(X, y, rejected[:0], *no_rows(), l2=1.0)
    assert plain.intercept > INTERCEPT + 1.5


def test_own_rows_count_as_they_are(rng):
    """Own rows settle the model where the history accepted good applicants only."""
    past = history(2_000, rng, 1.0, 0.0)
    fit = fit_selected_past(*past, *people(20_000, rng), l2=1.0)
    assert fit.coef == pytest.approx(COEF, abs=0.1)
    assert fit.intercept == pytest.approx(INTERCEPT, abs=0.1)


@pytest.mark.parametrize("l2", [0.5, 20.0])
def test_without_rejected_people_it_is_logistic_regression(rng, l2):
    X, y = people(2_000, rng)
    fit = fit_selected_past(X[:1500], y[:1500], X[:0], X[1500:], y[1500:], l2=l2)
    reference = LogisticRegression(C=1 / l2, tol=1e-10, max_iter=1000).fit(X, y)
    assert fit.coef == pytest.approx(reference.coef_[0], abs=1e-3)
    assert fit.intercept == pytest.approx(reference.intercept_[0], abs=1e-3)
    assert np.isnan([fit.accepted_good, fit.accepted_bad]).all()
