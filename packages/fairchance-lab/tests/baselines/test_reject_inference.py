"""Outcomes that are made up: by assumption, by extrapolation, by fuzzy augmentation."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import PolynomialFeatures

from fairchance.errors import InputError
from fairchance_lab.baselines.greedy import Greedy, LabelAugmentation
from fairchance_lab.baselines.reject_inference import Extrapolation, FuzzyAugmentation

KINDS = (LabelAugmentation, Extrapolation, FuzzyAugmentation)


def people(rng, n=800):
    X = rng.normal(size=(n, 2))
    y = (rng.random(n) < 1 / (1 + np.exp(-0.5 - 2 * X[:, 0]))).astype(int)
    return X, y, rng.random(n) < 1 / (1 + np.exp(-2.5 * X[:, 0]))


def scikit(X, y, weight=None):
    model = LogisticRegression(C=1.0, tol=1e-12, max_iter=1000)
    return model.fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("l2", [0.0, 1.0, 50.0])
def test_extrapolation_by_the_same_model_is_greedy(rng, l2):
    """The first model already solves the second one's equations, penalty and all."""
    X, y, accepted = people(rng)
    same = Extrapolation(products=False, l2=l2).fit(X, y, accepted=accepted)
    greedy = Greedy(l2=l2).fit(X, y, accepted=accepted)
    assert same._theta == pytest.approx(greedy._theta, abs=1e-4)
    other = Extrapolation(l2=l2).fit(X, y, accepted=accepted)
    assert np.abs(other._theta - greedy._theta).max() > 1e-3


def test_extrapolation_is_a_share_of_good_a_rejected_person(rng):
    X, y, accepted = people(rng)
    method = Extrapolation().fit(X, y, accepted=accepted)
    squares = PolynomialFeatures(2, include_bias=False)
    first = scikit(squares.fit_transform(X[accepted]), y[accepted])
    good = first.predict_proba(squares.transform(X[~accepted]))[:, 1]
    n = good.size
    model = scikit(
        np.vstack([X[accepted], X[~accepted], X[~accepted]]),
        np.concatenate([y[accepted], np.ones(n, int), np.zeros(n, int)]),
        np.concatenate([np.ones(accepted.sum()), good, 1 - good]),
    )
    assert method.decide(X).score == pytest.approx(model.predict_proba(X)[:, 1], abs=1e-4)


def test_fuzzy_augmentation_is_two_weighted_rows_a_rejected_person(rng):
    X, y, accepted = people(rng)
    method = FuzzyAugmentation(bad_ratio=1.7).fit(X, y, accepted=accepted)
    good = scikit(X[accepted], y[accepted]).predict_proba(X[~accepted])[:, 1]
    bad = np.minimum(1.0, 1.7 * (1 - good))
    n = int((~accepted).sum())
    model = scikit(
        np.vstack([X[accepted], X[~accepted], X[~accepted]]),
        np.concatenate([y[accepted], np.ones(n, int), np.zeros(n, int)]),
        np.concatenate([np.ones(accepted.sum()), 1 - bad, bad]),
    )
    batch = method.decide(X)
    assert batch.score == pytest.approx(model.predict_proba(X)[:, 1], abs=1e-4)


def test_the_ratio_of_bad_makes_it_stricter(rng):
    X, y, accepted = people(rng)
    shares = [
        FuzzyAugmentation(5 / 7, bad_ratio=k).fit(X, y, accepted=accepted).accepts(X).mean()
        for k in (0.5, 1.0, 2.0, 3.0)
    ]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > shares[-1] + 0.05


def test_label_augmentation_counts_sure_rejections_as_bad(rng):
    X, y, accepted = people(rng)
    method = LabelAugmentation(sure_below=0.1).fit(X, y, accepted=accepted)
    propensity = scikit(X, accepted).predict_proba(X)[:, 1]
    sure = ~accepted & (propensity < 0.1)
    assert 0 < method.n_augmented_ == sure.sum() < (~accepted).sum()
    used = accepted | sure
    model = scikit(X[used], np.where(sure, 0, y)[used])
    assert method.decide(X).score == pytest.approx(model.predict_proba(X)[:, 1], abs=1e-4)


def test_without_sure_rejections_label_augmentation_is_greedy(rng):
    X, y, accepted = people(rng)
    never = LabelAugmentation(sure_below=0.0).fit(X, y, accepted=accepted)
    assert never.n_augmented_ == 0
    assert never._theta == pytest.approx(Greedy().fit(X, y, accepted=accepted)._theta, abs=1e-6)
    everybody = LabelAugmentation(sure_below=1.0).fit(X, y, accepted=accepted)
    assert everybody.n_augmented_ == (~accepted).sum()
    assert LabelAugmentation().fit(X, y).n_augmented_ == 0  # nobody was rejected


def test_own_rejections_are_augmented_only_if_asked(rng):
    X, y, accepted = people(rng)
    method = LabelAugmentation(sure_below=1.0).fit(X, y, accepted=accepted)
    batch = method.decide(X)
    method.observe(batch.ids[batch.accepted], y[batch.accepted])
    method.decide(X)
    assert method.n_augmented_ == (~accepted).sum()


@pytest.mark.parametrize("kind", KINDS)
def test_made_up_outcomes_are_not_the_true_ones(rng, kind):
    X, y, accepted = people(rng)
    answers = []
    for lie in (y, 1 - y, np.full(len(y), np.nan)):
        method = kind(5 / 7).fit(X, np.where(accepted, y, lie), accepted=accepted)
        first = method.decide(X)
        method.observe(first.ids[first.accepted], y[first.accepted])
        answers.append(method.decide(X).score.tolist())
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize("kind", KINDS)
def test_each_says_what_it_assumes(kind):
    assert kind.assumption.endswith(".")
    assert "reject" in kind.assumption


@pytest.mark.parametrize(
    ("method", "named"),
    [
        (FuzzyAugmentation(bad_ratio=-1.0), "bad_ratio.* -1.0"),
        (LabelAugmentation(sure_below=2), "sure_below.* 2"),
        (Extrapolation(0.0), "cutoff.* 0.0"),
    ],
)
def test_parameters_are_checked(rng, method, named):
    X, y, accepted = people(rng, 100)
    with pytest.raises(InputError, match=named):
        method.fit(X, y, accepted=accepted)
