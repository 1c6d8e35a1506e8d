"""Policies and evidence beside the lender's own decisions, against tables and plain loops."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairchance.core.limits import Above, Limited
from fairchance.core.noise import OutcomeNoise
from fairchance.core.strategies import Uniform
from fairchance.methods.certified.evidence import RATIO_CAPS, MirrorTest, values
from fairchance.methods.certified.ladder import Floor, Ladder, LadderRows, Positions
from fairchance.methods.certified.rounds import ChosenPolicy
from methods.certified.known_truth import ALPHA
from methods.certified.ladders import LEVEL, make_ladder

RAMPS = [0.0, 0.05, 0.3, 0.7, 1.0]
TAUS = (0.006, 0.03, 0.1, 1.2)
RANKINGS = [make_ladder(n=n).ranking for n in (500, 400)]


def ladder_of(*, union, tau=0.1, floor=0.0, ranking=0, limited=False, most_bad=1.0):
    strategy = Limited(Uniform(), exclude=Above(0, 9.0)) if limited else Uniform()
    frozen = Floor(strategy, np.array([floor]))
    starts = ((0, 1.0),) if union else ((20, 0.8), (8, 0.2))
    return Ladder(RANKINGS[ranking], tau, frozen, LEVEL, starts, 1, ALPHA, most_bad, union)


def draw_positions(rng, n, floor=0.0, limited=False, of_lender=None, barred=None):
    """Return applicants with some ranks at rungs, and what limits and the lender say of them."""
    rank = np.where(rng.random(n) < 0.3, rng.choice(make_ladder().grid, n), rng.random(n))
    by_limits = (rng.random(n) < 0.4) & limited
    at = Positions(rank, np.where(by_limits, 0.0, floor), by_limits if limited else None)
    return at.beside(of_lender, barred)


def plain_policy(ladder, at, i, j):
    """Return π of one applicant on one rung, from the words of the module."""
    q, d = ladder.grid[j], at.incumbent is not None and bool(at.incumbent[i])
    if ladder.union and d:
        return 1.0
    if ladder.union and j == 0:
        return 0.0
    edge = math.exp(-max(0.0, at.rank[i] - q) / ladder.tau)
    if at.barred is not None and at.barred[i] and at.rank[i] > q:
        edge = 0.0
    return edge + at.chance[i] * (1 - edge)


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("floor", [0.0, 0.02])
@pytest.mark.parametrize("union", [False, True])
def test_policies_equal_those_of_a_plain_loop(union, floor, limited, rng):
    n, ladder = 60, ladder_of(union=union, floor=floor, limited=limited)
    barred = rng.random(n) < 0.2
    d = (rng.random(n) < 0.5) & ~barred
    at = draw_positions(rng, n, floor, limited, d, barred)
    table = ladder.policies(at)
    expected = [[plain_policy(ladder, at, i, j) for j in range(ladder.grid.size)] for i in range(n)]
    assert table == pytest.approx(np.array(expected), abs=1e-12)
    assert np.all(table[barred] == 0)  # whom the lender bars no rung accepts
    if union:
        assert np.array_equal(table[:, 0], d)  # the first rung is the lender's own policy
        assert np.all(np.diff(table, axis=1) >= 0)


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("floor", [0.0, 0.02])
@pytest.mark.parametrize("tau", [0.008, 0.2])
def test_sums_of_a_union_equal_those_of_a_plain_loop(tau, floor, limited, rng):
    n, ladder = 80, ladder_of(union=True, tau=tau, floor=floor, limited=limited)
    barred = rng.random(n) < 0.1
    at = draw_positions(rng, n, floor, limited, (rng.random(n) < 0.4) & ~barred, barred)
    worth = rng.normal(size=n)
    rows = LadderRows(ladder, at[:30])
    rows.extend(at[30:])
    for some in (np.arange(n), np.flatnonzero(rng.random(n) < 0.5)):
        expected = [
            sum(worth[i] * plain_policy(ladder, at, i, j) for i in some)
            for j in range(ladder.grid.size)
        ]
        assert rows.sums(worth[some], some) == pytest.approx(expected, abs=1e-9)
    stays = rng.random(n) < 0.6
    rows.keep(stays)
    left = np.flatnonzero(stays)
    first = sum(worth[i] * plain_policy(ladder, at, i, 0) for i in left)
    assert rows.sums(worth[left])[0] == pytest.approx(first, abs=1e-9)


def test_applicants_without_a_lender_join_those_with_one(rng):
    n, ladder = 40, ladder_of(union=True)
    alone, beside = draw_positions(rng, n), draw_positions(rng, n, of_lender=rng.random(n) < 0.5)
    rows = LadderRows(ladder, alone)
    rows.extend(beside)
    worth = rng.normal(size=2 * n)
    expected = worth[:n] @ ladder.policies(alone) + worth[n:] @ ladder.policies(beside)
    assert rows.sums(worth) == pytest.approx(expected, abs=1e-9)
    assert rows.at.accepted_by_lender.tolist() == [False] * n + beside.incumbent.tolist()


@pytest.mark.parametrize("ramp", RAMPS)
@pytest.mark.parametrize("union", [False, True])
def test_what_is_done_is_a_mixture_of_the_policy_and_the_lender(union, ramp, rng):
    n, ladder, rung = 50, ladder_of(union=union, floor=0.01), 12
    at = draw_positions(rng, n, 0.01, of_lender=rng.random(n) < 0.5)
    policy = ChosenPolicy(ladder, rung, False, math.nan, ramp=ramp)
    expected = [
        (1 - ramp) * at.incumbent[i] + ramp * plain_policy(ladder, at, i, rung) for i in range(n)
    ]
    assert policy.probability(at) == pytest.approx(expected, abs=1e-12)
    assert policy.uses_incumbent == (union or ramp < 1)
    sure = (at.rank <= ladder.grid[rung]) | (at.incumbent & policy.uses_incumbent)
    assert np.array_equal(policy.sure(at), sure)


def test_the_lenders_policy_accepts_nobody_by_rank():
    best = Positions(np.zeros(2), np.zeros(2)).beside(np.array([True, False]), None)
    policy = ChosenPolicy(ladder_of(union=True), 0, False, math.nan)
    assert policy.kind == "incumbent"
    assert policy.probability(best).tolist() == [1.0, 0.0]
    assert policy.sure(best).tolist() == [True, False]


# A row has x (through own π), d, T and bad. The mean is over the coin alone, given all of them.
ROWS = list(itertools.product([0.0, 0.002, 0.3, 1.0], [False, True], [False, True], [False, True]))


@pytest.mark.parametrize("cap", RATIO_CAPS)
@pytest.mark.parametrize("ramp", RAMPS)
@pytest.mark.parametrize("deployed", ["own", "union", "incumbent"])
@pytest.mark.parametrize("tested", ["own", "union", "incumbent"])
def test_the_mean_of_z_over_the_coin_by_enumeration(tested, deployed, ramp, cap):
    """E[Z | x, d, T, bad] = w·p·T·(α − bad) − rem·(1 − α) ≤ π·T·(α − bad), row by row."""

    def policy(kind, own, d):
        return {"own": own, "union": max(float(d), own), "incumbent": float(d)}[kind]

    for own, d, takes, bad in ROWS:
        pi = policy(tested, own, d)
        for own_deployed in (0.0, 0.01, 0.5, 1.0):
            p = (1 - ramp) * d + ramp * policy(deployed, own_deployed, d)
            mean = 0.0
            for coin, chance in ((True, p), (False, 1 - p)):
                if chance > 0:
                    counted = np.array([coin and takes])
                    row = np.array([[pi]]), np.array([p]), counted, np.array([bad])
                    mean += chance * values(*row, ALPHA, cap)[0, 0]
            w = min(pi / p, cap) if p > 0 else 0.0
            rem = pi - w * p
            assert mean == pytest.approx(
                w * p * takes * (ALPHA - bad) - rem * (1 - ALPHA), abs=1e-12
            )
            assert mean <= pi * takes * (ALPHA - bad) + 1e-12
            assert mean == pytest.approx(pi * takes * (ALPHA - bad), abs=1e-12) or rem > 0


@pytest.mark.parametrize("ramp", RAMPS)
@pytest.mark.parametrize("union", [False, True])
def test_the_mean_wealth_of_the_mirror_test_by_enumeration(union, ramp):
    """With FDR(d) = α among loans taken the mean wealth after two rows is at most 1."""
    own, mean = 0.1, 0.0
    # d, T and bad are dependent: P(T) is .5 for good and .9 for bad, and FDR(d) is α.
    odds = ALPHA / (1 - ALPHA) * 0.5 / 0.9
    f = odds / (1 + odds)
    kinds = []  # chance, d, T, bad
    for bad, takes in itertools.product([False, True], repeat=2):
        take = 0.9 if bad else 0.5
        chance = 0.6 * (f if bad else 1 - f) * (take if takes else 1 - take)
        kinds.append((chance, True, takes, bad))
    kinds.append((0.4, False, True, True))
    policy = ChosenPolicy(ladder_of(union=union), 12, False, math.nan, ramp=ramp)
    bound = policy.ratio_of_incumbent()
    for rows in itertools.product(kinds, [False, True], repeat=2):
        mirror, chance = MirrorTest(ALPHA), 1.0
        for (share, d, takes, bad), coin in zip(rows[::2], rows[1::2], strict=True):
            p = (1 - ramp) * d + ramp * (max(float(d), own) if union else own)
            chance *= share * (p if coin else 1 - p)
            if chance > 0:
                row = np.array([float(d)]), np.array([p]), np.array([coin and takes])
                mirror.add(*row, np.array([bad]), ratio_bound=bound)
        wealth = np.exp(mirror._log).mean() if chance > 0 else 0.0
        mean += chance * wealth
    assert mean <= 1 + 1e-12
    if union or ramp <= 0.7:  # all that d accepts is covered
        assert mean == pytest.approx(1, abs=1e-12)


kinds = st.sampled_from(["own", "union"])


@given(
    seed=st.integers(0, 10**6),
    ramp=st.sampled_from(RAMPS),
    deployed=kinds,
    tested=kinds,
    same=st.booleans(),
    rung=st.integers(0, 79),
    taus=st.tuples(st.sampled_from(TAUS), st.sampled_from(TAUS)),
    floor=st.sampled_from([0.0, 0.0005, 0.05]),
    limited=st.booleans(),
    noise=st.sampled_from([OutcomeNoise(), OutcomeNoise(0.1, 0.05)]),
)
@example(0, 0.7, "own", "own", True, 5, (0.1, 0.1), 0.0, True, OutcomeNoise())
def test_no_applicant_beside_a_lender_can_ruin_a_gambler(
    seed, ramp, deployed, tested, same, rung, taus, floor, limited, noise
):
    """1 + λZ ≥ .05 for accepted and rejected, good, bad and not taken, on every rung."""
    n, rng = 40, np.random.default_rng(seed)
    options = {"floor": floor, "limited": limited, "most_bad": noise.most_bad}
    made = {
        (union, ranking): ladder_of(
            union=union, tau=taus[0] if union else taus[1], ranking=ranking, **options
        )
        for union in (False, True)
        for ranking in (0, 1)
    }
    barred = rng.random(n) < 0.2
    d = (rng.random(n) < 0.5) & ~barred
    at = draw_positions(rng, n, floor, limited, d, barred)
    policy = ChosenPolicy(made[deployed == "union", 0], rung, False, math.nan, ramp=ramp)
    elsewhere = draw_positions(rng, n, floor, limited, d, barred)
    ladder, found = made[tested == "union", 0 if same else 1], at if same else elsewhere
    p, pi = policy.probability(at), ladder.policies(found)
    bounds = policy.ratio_bounds(ladder)
    assert np.all(bounds >= 1)
    shares = ladder.wealth.shares(bounds)
    badness = noise.badness(np.array([False, True]))
    for i, cap in enumerate(RATIO_CAPS):
        for counted, bad in ((p > 0, badness[0]), (p > 0, badness[1]), (np.zeros(n, bool), 0.0)):
            z = values(pi, p, counted, np.full(n, bad), ALPHA, cap)
            assert np.all(1 + shares[i][:, None, :] * z >= 0.05 - 1e-9)


def test_a_bound_that_ignores_the_ramp_would_ruin_gamblers(rng):
    """The control: at a ramp of 5 % weights are up to twenty times as large."""
    ladder, n = ladder_of(union=False), 200
    at = draw_positions(rng, n, of_lender=np.zeros(n, np.bool_))
    policy = ChosenPolicy(ladder, 20, False, math.nan, ramp=0.05)
    z = values(ladder.policies(at), policy.probability(at), at.rank < 2, at.rank < 2, ALPHA, 4.0)
    least = {
        name: float((1 + ladder.wealth.shares(bounds)[0][:, None, :] * z).min())
        for name, bounds in (
            ("usual", policy.ratio_bounds(ladder)),
            ("ramp ignored", ladder.ratio_bounds(20)),
        )
    }
    assert least["usual"] >= 0.05 - 1e-9
    assert least["ramp ignored"] < 0
