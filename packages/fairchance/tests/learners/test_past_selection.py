"""Does a history tell how it was selected, and never with confidence what is wrong?"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from fairchance.learners.past_selection import read_past

N = 5_000
TRUTHS = {
    "additive": lambda X: X[:, 0] + X[:, 1],
    "xor": lambda X: 3 * np.sign(X[:, 0] * X[:, 1]),
    "product": lambda X: 2 * X[:, 0] * X[:, 1],
    "perfect": lambda X: 1000 * X[:, 0],
}


def history(truth, selects, n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    score = TRUTHS[truth](X)
    good = (rng.random(n) < expit(score)).astype(np.int8)
    noisy = X[:, 0] + X[:, 1] + rng.normal(size=n)
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
    assert np.isnan(reading.z)


def test_the_order_of_rows_does_not_matter():
    X, good, rejected = history("additive", "cut", n=600)
    assert read_past(X, good, rejected) == read_past(X[::-1], good[::-1], rejected[::-1])
