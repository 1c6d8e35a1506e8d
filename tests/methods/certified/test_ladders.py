"""Ladders: walks, ratio bounds and sums over people, against tables written out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from methods.certified.known_truth import ALPHA
from secondlook.core.strategies import Uniform
from secondlook.methods.certified.evidence import RATIO_CAP, values
from secondlook.methods.certified.ladder import (
    Floor,
    Ladder,
    LadderRows,
    Positions,
    nearest_certificate,
)
from secondlook.methods.certified.ranking import Ranking
from secondlook.people.likelihoods import LinearLikelihood

LEVEL = 0.03


def ladder(tau=0.1, floor=0.0, starts=((20, 0.8), (8, 0.2)), n=500):
    X = np.random.default_rng(1).normal(size=(n, 1))
    likelihood = LinearLikelihood(np.array([1.0]), 0.0)
    group = np.zeros(n, np.intp)
    score = likelihood.score(X, group)
    ranking = Ranking.freeze(likelihood, score, group, 1, within=False)
    frozen = Floor.freeze(Uniform(), floor, X, score, group, 1)
    return Ladder(ranking, tau, frozen, LEVEL, starts, 1, ALPHA)


def at(one, rank):
    """Return where people of these ranks stand, if nothing else is known of them."""
    group = np.zeros(rank.size, np.intp)
    return Positions(rank, one.floor.chance(None, rank, group))


def reaching(rungs, level, one=None):
    """Return a ladder of which some rungs have the wealth that a level needs, and no more."""
    one = ladder() if one is None else one
    one.wealth.best[list(rungs)] = -np.log(level) + 1e-9
    return one


def certified(one):
    return np.flatnonzero(one.certified()).tolist()


def test_a_rung_counts_only_if_all_between_it_and_the_start_do():
    assert certified(reaching([20, 21, 22, 24, 25], LEVEL * 0.8)) == [20, 21, 22]
    assert certified(reaching(range(21, 60), LEVEL * 0.2)) == []  # the start itself is missing


def test_two_starts_each_with_its_share():
    # Enough for the main walk is not enough for the one that starts further in.
    assert certified(reaching(range(8, 30), LEVEL * 0.8)) == list(range(20, 30))
    assert certified(reaching(range(8, 15), LEVEL * 0.2)) == list(range(8, 15))
    assert certified(reaching(range(8, 80), LEVEL * 0.2)) == list(range(8, 80))
    # The inner walk may go through the main start, and past it.
    inner = reaching(range(8, 25), LEVEL * 0.2)
    assert certified(reaching([25, 26], LEVEL * 0.8, inner)) == list(range(8, 27))
    assert inner.threshold(10) == pytest.approx(-np.log(LEVEL * 0.2))
    assert inner.threshold(30) == pytest.approx(-np.log(LEVEL * 0.8))
    assert inner.threshold(3) == np.inf


def seen(rng, one, rung, fdr, n=400):
    X = rng.normal(size=(n, 1))
    group = np.zeros(n, np.intp)
    p = one.policy(one.locate(X, group), rung)
    accepted = rng.random(n) < p
    return one.locate(X, group), p, accepted, accepted & (rng.random(n) < fdr)


def test_never_uncertified(rng):
    one = ladder()
    everywhere = np.ones(one.grid.size, np.bool_)
    for _ in range(8):
        one.test(*seen(rng, one, 25, 0.02), deployed=25, use=everywhere)
    before = one.certified()
    assert before[20:26].all()
    for _ in range(30):
        one.test(*seen(rng, one, 25, 0.6), deployed=25, use=everywhere)
        assert np.array_equal(one.certified() & before, before)
    assert np.all(one.wealth.mixed()[20:26] < 0)  # though nothing speaks for it any more


def test_rungs_without_a_bet_keep_their_wealth(rng):
    one = ladder()
    use = np.arange(one.grid.size) < 30
    one.test(*seen(rng, one, 25, 0.1), deployed=25, use=use)
    assert np.all(one.wealth.log[:, :30] != 0)
    assert np.all(one.wealth.log[:, 30:] == 0)


@given(
    tau=st.floats(0.006, 1.5),
    floor=st.floats(0, 0.1),
    deployed=st.integers(0, 79),
    seed=st.integers(0, 10**6),
)
def test_ratios_of_the_same_ladder_are_bounded(tau, floor, deployed, seed):
    one = ladder(tau, floor)
    rank = np.random.default_rng(seed).random(50)
    p = one.policy(at(one, rank), deployed)
    pi = one.policies(at(one, rank))
    apart = np.maximum(0, one.grid - one.grid[deployed]) / tau
    seen_by = p > 1e-200
    assert np.all(np.log(pi[seen_by] / p[seen_by, None]) <= apart + 1e-9)
    # What wealth relies on: w + rem, and with it the worst loss in a row, stays below the bound.
    bound = one.ratio_bounds(deployed)
    everybody = np.ones(50, np.bool_)
    z = values(pi[seen_by], p[seen_by], everybody[seen_by], everybody[seen_by], ALPHA)
    assert np.all(z >= -(1 - ALPHA) * bound * (1 + 1e-9))
    assert np.all(1 + one.wealth.shares(bound)[:, None, :] * z >= 0.05 - 1e-9)
    assert np.all(bound <= RATIO_CAP + 1)
    assert np.all(one.ratio_bounds(None) == RATIO_CAP + 1)


def test_the_barred_are_accepted_up_to_the_very_rung(rng):
    one = ladder()
    rank = np.concatenate([one.grid, np.nextafter(one.grid, 2)])
    barred = Positions(rank, np.zeros(rank.size), np.ones(rank.size, np.bool_))
    expected = rank[:, None] <= one.grid
    assert np.array_equal(one.policies(barred), expected)
    worth = rng.normal(size=rank.size)
    assert LadderRows(one, barred).sums(worth) == pytest.approx(worth @ expected)


def test_people_who_join_stand_behind_those_who_were_there(rng):
    rank, chance, barred = rng.random(7), rng.random(7), rng.random(7) < 0.5
    everybody = Positions(rank, chance, barred)
    joined = Positions(np.empty(0), np.empty(0)).join(everybody[:3]).join(everybody[3:])
    for name in ("rank", "chance", "barred"):
        assert np.array_equal(getattr(joined, name), getattr(everybody, name))
    later = Positions(rank[:3], chance[:3]).join(everybody[3:])  # nobody was barred so far
    assert later.barred.tolist() == [False] * 3 + barred[3:].tolist()
    assert Positions(rank[:3], chance[:3]).join(Positions(rank[3:], chance[3:])).barred is None


@pytest.mark.parametrize("floor", [0.0, 0.05])
@pytest.mark.parametrize("tau", [0.008, 0.2])
def test_sums_without_the_table_equal_those_with_it(rng, tau, floor):
    one = ladder(tau, floor)
    rank = np.concatenate([rng.random(300), one.grid, [0.0, 1.0]])
    worth = rng.normal(size=rank.size)
    standing = Positions(rank, floor * 2 * rng.random(rank.size))
    reach = LadderRows(one, standing[:100])
    reach.extend(standing[100:])
    table = one.policies(standing)
    assert reach.sums(worth) == pytest.approx(worth @ table, abs=1e-9)
    rows = np.flatnonzero(rng.random(rank.size) < 0.4)
    assert reach.sums(worth[rows], rows) == pytest.approx(worth[rows] @ table[rows], abs=1e-9)


def test_worth_betting_says_what_is_covered(rng):
    one = ladder(tau=0.05)
    rank = rng.random(2000)
    p = one.policy(at(one, rank), 30)
    pi = one.policies(at(one, rank))
    uncovered = np.clip(pi - RATIO_CAP * p[:, None], 0, None).sum(axis=0) / pi.sum(axis=0)
    assert np.array_equal(one.worth_betting(at(one, rank), p), uncovered <= 0.02)
    assert one.worth_betting(at(one, rank), p)[:31].all()
    assert not one.worth_betting(at(one, rank), p)[-1]


def test_more_outcomes_is_how_many_the_same_rounds_again_would_bring(rng):
    one = ladder()
    use = np.ones(one.grid.size, np.bool_)
    rounds = [seen(rng, one, 25, fdr) for fdr in (0.1, 0.12)]
    assert np.isnan(one.more_outcomes(26))  # nothing is known yet
    for batch in rounds:
        one.test(*batch, deployed=25, use=use)
    known, times = sum(int(accepted.sum()) for _, _, accepted, _ in rounds), 1
    more = one.more_outcomes(26)
    assert more > known
    while one.wealth.best[26] < one.threshold(26):
        assert more > (times - 1) * known
        for batch in rounds:
            one.test(*batch, deployed=25, use=use)
        times += 1
    assert more <= (times - 1) * known
    assert one.more_outcomes(26) == 0


def test_where_evidence_is_against_a_rung_nobody_can_say_how_much_is_missing(rng):
    one = ladder()
    one.test(*seen(rng, one, 25, 1.0), deployed=25, use=np.ones(one.grid.size, np.bool_))
    assert np.isnan(one.more_outcomes(26))
    assert np.isnan(one.more_outcomes(3))  # inside both starts: none can come
    assert nearest_certificate([one, ladder()]) is None


def test_the_nearest_certificate_is_the_nearest_start_of_any_ladder(rng):
    better, worse, untested = ladder(), ladder(starts=((30, 1.0),)), ladder()
    for one, fdr in ((better, 0.02), (worse, 0.09)):
        use = np.ones(one.grid.size, np.bool_)
        one.test(*seen(rng, one, 30, fdr), deployed=30, use=use)
    outer, inner = (better.more_outcomes(rung) for rung in (20, 8))
    assert 0 < outer < inner
    assert outer < worse.more_outcomes(30) < np.inf
    for ladders in ([better, worse, untested], [untested, worse, better]):
        assert nearest_certificate(ladders) == (better, 20)
    assert nearest_certificate([worse, untested]) == (worse, 30)
    better.starts = ((45, 0.8), (8, 0.2))  # the outer one is not covered
    assert np.isnan(better.more_outcomes(45))
    assert nearest_certificate([better]) == (better, 8)


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
        mine = X[group == z, 0]
        expected = [1 - np.mean(mine < x) for x in mine]
        assert rank[group == z] == pytest.approx(expected)
