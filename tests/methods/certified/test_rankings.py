"""Rankings: cuts that agree with ranks, knees at their very bound, groups that were not there."""

from __future__ import annotations

import numpy as np
import pytest

from secondlook.methods.certified.ranking import Ranking
from secondlook.people.likelihoods import ConstantLikelihood

ANY = ConstantLikelihood(0.5)  # ranks are made of scores alone


def frozen(score, group=None, n_groups=1, *, within=False):
    score = np.asarray(score, float)
    group = np.zeros(score.size, np.intp) if group is None else np.asarray(group)
    return Ranking.freeze(ANY, score, group, n_groups, within)


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


def test_the_very_best_has_rank_0_only_above_all_others():
    ranking = frozen([0.2, 0.4, 0.4, 0.8])
    nobody = np.zeros(5, np.intp)
    ranks = ranking.rank(np.array([0.9, 0.8, 0.4, 0.2, 0.1]), nobody)
    assert ranks.tolist() == [0, 0.25, 0.75, 1, 1]


def test_whoever_is_of_a_group_that_nobody_was_there_of_is_ranked_among_all():
    ranking = frozen([0.2, 0.4, 0.6, 0.8], [0, 0, 2, 2], 3, within=True)
    ranks = ranking.rank(np.full(3, 0.7), np.arange(3))
    assert ranks.tolist() == [0, 0.25, 0.5]


def test_a_knee_may_be_at_its_very_bound():
    """Of the best 1, 2, 3 and 4 of four people, 0, 1/4, 1/2 and 5/8 are bad by the scores."""
    ranking = frozen([1.0, 0.5, 0.0, 0.0])
    assert [ranking.knee(bad) for bad in (0.0, 0.25, 0.5, 0.625)] == [0.25, 0.5, 0.75, 1.0]
    assert [ranking.knee(bad) for bad in (0.2, 0.4, 0.6, 1.0)] == [0.25, 0.5, 0.75, 1.0]
    assert frozen([0.5, 0.5]).knee(0.49) == 0
