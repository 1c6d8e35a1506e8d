"""Fairness bounds for several protected attributes at once, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from attribute_gaps import LEVELS, gaps
from secondlook import (
    ConstrainedLogistic,
    Revenue,
    SelectionRateParity,
    TruePositiveRateParity,
)
from secondlook.errors import InputError
from secondlook.learners.thresholds import group_thresholds, shared_threshold
from secondlook.learners.wrap import fit_likelihood

pytestmark = pytest.mark.filterwarnings("ignore:No threshold keeps")

PARITIES = [SelectionRateParity, TruePositiveRateParity]
labelled = st.lists(
    st.tuples(
        st.sampled_from([0.1, 0.3, 0.5, 0.7, 0.9]),
        st.integers(0, 1),
        st.sampled_from([0.0, 1.0, 2.0]),
        st.integers(0, 4),
    ),
    min_size=1,
    max_size=14,
)


@settings(deadline=None, max_examples=200)
@given(
    rows=labelled,
    parity=st.sampled_from(PARITIES),
    difference=st.sampled_from([0.0, 0.2, 0.5]),
    least=st.sampled_from([0.0, 0.4]),
)
def test_a_shared_threshold_is_the_best_for_all_attributes(rows, parity, difference, least):
    score, outcome, weight, group = (np.array(one) for one in zip(*rows, strict=True))
    fairness = parity(difference).over(LEVELS)
    utility = Revenue(gain=2, loss=3)
    point = shared_threshold(
        score,
        outcome,
        weight,
        group,
        5,
        utility=utility,
        max_fdr=0.5,
        min_selection_rate=least,
        fairness=fairness,
    )
    total = weight.sum() or 1.0

    def judge(threshold):
        accepted = (score >= threshold).astype(float)
        taken = (accepted * weight).sum()
        bad = (accepted * weight * (outcome == 0)).sum()
        worst = max(gaps(parity, accepted, outcome, weight, group))
        violation = max(least - taken / total, worst - difference, 0.0)
        worth = (2 * (taken - bad) - 3 * bad) / total
        return bad <= 0.5 * taken + 1e-12, violation, worth, worst

    used = score[weight > 0]
    cuts = [judge(threshold) for threshold in [np.inf, *np.unique(used)]]
    allowed = [cut for cut in cuts if cut[0]]
    smallest = min(cut[1] for cut in allowed)
    best = max(cut[2] for cut in allowed if cut[1] <= smallest + 1e-9)
    chosen = judge(point.thresholds[0])
    assert np.all(point.thresholds == point.thresholds[0])
    assert chosen[0]
    assert chosen[1] == pytest.approx(smallest, abs=1e-9)
    assert chosen[2] == pytest.approx(best, abs=1e-9)
    assert point.utility == pytest.approx(chosen[2], abs=1e-9)
    assert point.disparity == pytest.approx(chosen[3], abs=1e-9)
    assert point.feasible == (smallest <= 1e-9)
    accepted = (score >= point.thresholds[0]).astype(float)
    found = fairness.disparity(accepted, outcome.astype(np.int8), weight, group, 5)
    assert found == pytest.approx(chosen[3], abs=1e-9)


def attributes_apart(seed=0, n=400):
    """Labelled rows in which both attributes go with the features, in different ways."""
    rng = np.random.default_rng(seed)
    sex, age = rng.integers(2, size=n), rng.integers(3, size=n)
    X = rng.normal(size=(n, 3))
    X[:, 0] += 0.9 * sex
    X[:, 1] -= 0.6 * age
    good = rng.random(n) < expit(0.4 + X[:, 0] + 0.8 * X[:, 1])
    levels = ((0,) * 3 + (1,) * 3, (0, 1, 2) * 2)
    return X, good.astype(np.int8), 3 * sex + age, levels, rng.uniform(0.5, 2, size=n)


def expected_gaps(parity, model, X, good, weight, group, levels):
    score = model.predict_proba(X)[:, 1]
    return gaps(parity, score, good, weight, group, levels)


@pytest.mark.parametrize("parity", PARITIES)
def test_the_fit_keeps_the_bound_for_every_attribute(parity):
    """Against scipy's solver, from several starts."""
    X, good, group, levels, weight = attributes_apart()
    bound, l2 = 0.05, 1.0
    model = ConstrainedLogistic(fairness=parity(bound).over(levels), l2=l2)
    model.fit(X, good, weight, sensitive_features=group)
    assert model.status_.feasible
    found = expected_gaps(parity, model, X, good, weight, group, levels)
    assert max(found) <= bound + 1e-5

    def loss(x):
        margin = X @ x[:3] + x[3]
        return weight @ (np.logaddexp(0, margin) - good * margin) + l2 / 2 * x[:3] @ x[:3]

    def slack(x):
        score = expit(X @ x[:3] + x[3])
        counts = weight * (good == 1 if parity is TruePositiveRateParity else 1)
        out = []
        for level_of in levels:
            level = np.array(level_of)[group]
            rates = [
                (counts * score)[level == z].sum() / counts[level == z].sum() for z in set(level_of)
            ]
            out += [bound - (a - b) for a in rates for b in rates if a is not b]
        return np.array(out)

    starts = [np.zeros(4), *np.random.default_rng(1).normal(size=(4, 4))]
    others = [
        minimize(loss, x, method="SLSQP", constraints={"type": "ineq", "fun": slack}, tol=1e-10)
        for x in starts
    ]
    best = min(one.fun for one in others if slack(one.x).min() >= -1e-6)
    own = loss(np.append(model.coef_[0], model.intercept_))
    assert own <= best * (1 + 1e-4)
    # The controls: without a constraint both attributes are apart, and a bound on one leaves the
    # other apart.
    free = ConstrainedLogistic(l2=l2).fit(X, good, weight)
    assert min(expected_gaps(parity, free, X, good, weight, group, levels)) > 2 * bound
    for one in (0, 1):
        single = ConstrainedLogistic(fairness=parity(bound).over((levels[one],)), l2=l2)
        single.fit(X, good, weight, sensitive_features=group)
        apart = expected_gaps(parity, single, X, good, weight, group, levels)
        assert apart[one] <= bound + 1e-5
        assert apart[1 - one] > 2 * bound


def test_the_same_attribute_twice_is_the_attribute():
    X, good, group, levels, weight = attributes_apart()
    fits = []
    for some in ((levels[0],), (levels[0], levels[0])):
        model = ConstrainedLogistic(fairness=SelectionRateParity(0.05).over(some))
        model.fit(X, good, weight, sensitive_features=group)
        assert model.status_.feasible
        fits.append(np.append(model.coef_, model.intercept_))
    assert fits[0] == pytest.approx(fits[1], abs=1e-4)


def test_codes_keep_their_meaning_where_a_group_has_no_rows():
    """A pipeline's last step is handed codes; those of absent groups must not close ranks."""
    X, good, group, levels, weight = attributes_apart()
    weight = weight * (group != 0)
    fair = ConstrainedLogistic(fairness=SelectionRateParity(0.03).over(levels), l2=1.0)
    alone, _ = fit_likelihood(fair, X, good, weight, group, 6)
    piped, _ = fit_likelihood(
        make_pipeline(StandardScaler(with_mean=False, with_std=False), fair),
        X,
        good,
        weight,
        group,
        6,
    )
    assert piped.score(X, group) == pytest.approx(alone.score(X, group), abs=1e-4)
    found = gaps(SelectionRateParity, piped.score(X, group), good, weight, group, levels)
    assert max(found) <= 0.03 + 1e-4
    with pytest.raises(InputError, match="codes of the 6 groups"):
        fair.fit(X, good, sensitive_features=np.full(len(X), "a"))
    with pytest.raises(InputError, match="from 0 to 5"):
        fair.fit(X, good, sensitive_features=np.full(len(X), 6))


def test_thresholds_per_group_compare_groups_only():
    with pytest.raises(InputError, match="a constraint over attributes needs a shared threshold"):
        group_thresholds(
            [0.5],
            [1],
            [1.0],
            [0],
            5,
            utility=Revenue(1, 1),
            max_fdr=0.5,
            fairness=SelectionRateParity().over(LEVELS),
        )
