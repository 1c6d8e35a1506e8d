"""People of unknown cells are explored as often as is stated."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from methods.finite.small_domain import DOMAIN, PAST, REVENUE, draw
from secondlook import (
    EqualGroups,
    GroupShare,
)
from secondlook.core.strategies import FromFunction
from secondlook.methods.finite import FiniteClassifier


def sizes(X, score, group):
    return 1.0 + X[:, 0] + 20 * X[:, 1] + 2 * group


@pytest.mark.parametrize(
    "strategy", [sizes, GroupShare(FromFunction(sizes)), FromFunction(sizes) * EqualGroups()]
)
def test_people_are_explored_as_often_as_stated(strategy):
    people, _ = draw(np.random.default_rng(1), 60)
    n_runs, times = 800, np.zeros(60, int)
    for seed in range(n_runs):
        classifier = FiniteClassifier(REVENUE, strategy=strategy, random_state=seed)
        classifier.fit(None, None, domain=(DOMAIN.X, DOMAIN.group), past_policy=PAST)
        batch = classifier.decide(people.X, sensitive_features=people.group)
        times += batch.accepted
    explore = ~batch.exploit
    assert batch.propensity[explore].sum() == pytest.approx(batch.explored.sum())
    assert np.unique(batch.propensity[explore]).size > 2
    low = binom.cdf(times, n_runs, batch.propensity)
    high = binom.sf(times - 1, n_runs, batch.propensity)
    assert np.minimum(low, high).min() > 1e-6 / 120
    # As if everybody were as likely as everybody else.
    alike = np.where(explore, batch.propensity[explore].mean(), batch.propensity)
    low, high = binom.cdf(times, n_runs, alike), binom.sf(times - 1, n_runs, alike)
    assert np.minimum(low, high).min() < 1e-6 / 120
