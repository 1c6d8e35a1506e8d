"""Does a history tell how it was selected, and never with confidence what is wrong?"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from fairchance.learners.past_selection import PastReading, _binned, _Readings, read_past

N = 5_000
TRUTHS = {
    "additive": lambda X: X[:, 0] + X[:, 1],
    "xor": lambda X: 3 * np.sign(X[:, 0] * X[:, 1]),
    "product": lambda X: 2 * X[:, 0] * X[:, 1],
    "perfect": lambda X: 1000 * X[:, 0],
}


def history(truth, selects, n=N, seed=0, missing=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    score = TRUTHS[truth](X)
    good = (rng.random(n) < expit(score)).astype(np.int8)
    noisy = X[:, 0] + X[:, 1] + rng.normal(size=n)
    X[rng.random(X.shape) < missing] = np.nan
    by_outcome = rng.random(n) < np.where(good == 1, 0.9, 0.1)
    accepted = {
        "cut": score > np.quantile(score, 0.7),
        "human": noisy > np.median(noisy),
        "outcome": by_outcome,
    }[selects]
    return X[accepted], good[accepted], X[~accepted]


@pytest.mark.parametrize("truth", ["additive", "xor", "product"])
def test_selection_on_the_outcome_is_not_read_as_a_cut(truth):
    assert read_past(*history(truth, "outcome")).selected_on != "features"


@pytest.mark.parametrize("truth", ["additive", "product"])
def test_a_cut_on_a_score_is_seen(truth):
    assert read_past(*history(truth, "cut", n=2000)).selected_on == "features"


def test_a_noisy_human_on_features_is_not_read_as_the_outcome():
    assert read_past(*history("additive", "human")).selected_on != "outcome"


def test_too_few_applicants_of_a_kind_tell_nothing():
    """After a cut on a perfect predictor, where both readings are the same, nobody is bad."""
    reading = read_past(*history("perfect", "cut", n=1000))
    assert reading.selected_on == "unknown"
    assert reading.z is None


def test_the_order_of_rows_does_not_matter():
    X, good, rejected = history("additive", "cut", n=600)
    assert read_past(X, good, rejected) == read_past(X[::-1], good[::-1], rejected[::-1])


def test_both_readings_against_the_largest_likelihood_of_a_discrete_case():
    """Three values of x: the likelihood of features is that of frequencies, the other a search."""
    rng = np.random.default_rng(3)
    x = rng.integers(0, 3, 30_000)
    good = rng.random(x.size) < np.array([0.2, 0.5, 0.9])[x]
    accepted = rng.random(x.size) < np.where(good, 0.8, 0.3) * np.array([1.0, 0.7, 1.0])[x]
    kind = np.where(accepted, good, -1)
    counts = np.array([[np.sum((x == v) & (kind == k)) for k in (1, 0, -1)] for v in range(3)])
    by_features = (counts * np.log(counts / counts.sum(axis=1, keepdims=True))).sum() / x.size

    def minus_likelihood(parameters):
        *p, s1, s0 = expit(parameters)
        accepted = np.column_stack([s1 * np.array(p), s0 * (1 - np.array(p))])
        cells = np.column_stack([accepted, 1 - accepted.sum(axis=1)])
        return -(counts * np.log(cells)).sum() / x.size

    best = min((minimize(minus_likelihood, start) for start in np.eye(5)), key=lambda fit: fit.fun)
    models = _Readings(x[:, None].astype(float), kind, ())
    gain = models.gain(x[:, None].astype(float), kind).mean()
    assert gain == pytest.approx(by_features + best.fun, abs=5e-4)
    assert by_features + best.fun > 2e-3


def test_bins_keep_the_order_of_numbers_and_gather_rare_categories(rng):
    x = np.append(rng.normal(size=500), np.nan)
    order = np.argsort(x[:-1])
    assert np.all(np.diff(_binned(x, category=False)[:-1][order]) >= 0)
    assert np.isnan(_binned(x, category=False)[-1])
    codes = np.append(np.repeat(np.arange(60.0), np.arange(60, 0, -1)), np.nan)
    binned = _binned(codes, category=True)
    assert np.array_equal(np.unique(binned[codes < 31]), np.arange(31))
    assert np.unique(binned[codes >= 31]).tolist() == [31]


@pytest.mark.parametrize("selects", ["cut", "outcome"])
def test_missing_values_and_categories_are_read(selects):
    rng = np.random.default_rng(1)
    X, good, rejected = history("additive", selects, missing=0.1)
    codes = rng.permutation(50)  # categories have no order
    X[:, 1], rejected[:, 1] = (codes[_tenths(part[:, 1])] for part in (X, rejected))
    reading = read_past(X, good, rejected, categorical=(1,))
    assert reading.selected_on in ({"features"} if selects == "cut" else {"outcome", "unknown"})


def _tenths(x):
    return np.clip(np.nan_to_num(x) * 10 + 25, 0, 49).astype(np.intp)


def test_a_short_history_that_speaks_for_the_outcome_leans_there_and_does_not_decide():
    reading = read_past(*history("xor", "outcome", n=1000))
    assert reading.z < -3
    assert (reading.selected_on, reading.leaning) == ("unknown", "outcome")
    assert PastReading("unknown").leaning == "features"
