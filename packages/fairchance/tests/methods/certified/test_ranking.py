"""Rankings: ranks and knees by counting, and cuts that agree with ranks."""

from __future__ import annotations

import numpy as np
import pytest

from fairchance.methods.certified.ranking import Ranking
from fairchance.people.likelihoods import ConstantLikelihood, LinearLikelihood

ANY = ConstantLikelihood(0.5)  # ranks are made of scores alone


def frozen(score, group=None, n_groups=1, *, within=False):
    score = np.asarray(score, float)
    group = np.zeros(score.size, np.intp) if group is None else np.asarray(group)
    return Ranking.freeze(ANY, score, group, n_groups, within=within)


@pytest.mark.parametrize("within", [False, True])
def test_a_cut_is_the_score_from_which_the_rank_is_at_most_a_share(rng, within):
    score = rng.integers(1, 10, 40) / 10  # with ties
    group = np.arange(40) % 2
    ranking = frozen(score, group, 2, within=within)
    people = np.unique(np.concatenate([[0.0, 1.0], score, np.nextafter(score, 1)]))
    people, groups = np.repeat(people, 2), np.tile([0, 1], people.size)
    rank = ranking.rank(people, groups)
    for share in np.concatenate([np.arange(0, 41) / 40, rng.random(20)]):
        assert np.array_equal(people >= ranking.cut(share, groups), rank <= share), share


def test_rank_0_is_above_all_reference_applicants():
    ranking = frozen([0.2, 0.4, 0.4, 0.8])
    group = np.zeros(5, np.intp)
    ranks = ranking.rank(np.array([0.9, 0.8, 0.4, 0.2, 0.1]), group)
    assert ranks.tolist() == [0, 0.25, 0.75, 1, 1]


def test_a_group_without_reference_applicants_is_ranked_among_all():
    ranking = frozen([0.2, 0.4, 0.6, 0.8], [0, 0, 2, 2], 3, within=True)
    ranks = ranking.rank(np.full(3, 0.7), np.arange(3))
    assert ranks.tolist() == [0, 0.25, 0.5]


def test_a_knee_may_be_exactly_at_its_bound():
    """Of the best 1, 2, 3 and 4 of four people, 0, 1/4, 1/2 and 5/8 are bad by the scores."""
    ranking = frozen([1.0, 0.5, 0.0, 0.0])
    assert [ranking.knee(bad) for bad in (0.0, 0.25, 0.5, 0.625)] == [0.25, 0.5, 0.75, 1.0]
    assert [ranking.knee(bad) for bad in (0.2, 0.4, 0.6, 1.0)] == [0.25, 0.5, 0.75, 1.0]
    assert frozen([0.5, 0.5]).knee(0.49) == 0


def test_ranks_and_knee_by_counting(rng):
    X = rng.normal(size=(200, 1))
    likelihood = LinearLikelihood(np.array([2.0]), 1.0)
    group = np.zeros(200, np.intp)
    ranking = Ranking.freeze(likelihood, likelihood.score(X, group), group, 1, within=False)
    new = rng.normal(size=(20, 1))
    expected = [1 - np.mean(X[:, 0] < x) for x in new[:, 0]]
    nobody = np.zeros(20, np.intp)
    assert ranking.rank(ranking.score(new, nobody), nobody) == pytest.approx(expected)
    bad = np.sort(1 - likelihood.score(X, np.zeros(200, np.intp)))
    shares = [q for q in range(1, 101) if bad[: 2 * q].mean() <= 0.15]
    assert ranking.knee(0.15) == pytest.approx(max(shares) / 100)
    assert ranking.knee(bad[0] / 2) == 0


def test_ranks_within_groups(rng):
    X, group = rng.normal(size=(300, 1)), np.repeat([0, 1], [200, 100])
    X[group == 1] -= 5
    likelihood = LinearLikelihood(np.array([2.0]), 1.0)
    score = likelihood.score(X, group)
    rank = Ranking.freeze(likelihood, score, group, 2, within=True).rank(score, group)
    for z in (0, 1):
        chosen = X[group == z, 0]
        expected = [1 - np.mean(chosen < x) for x in chosen]
        assert rank[group == z] == pytest.approx(expected)
