"""Bounds on rates and means that hold at all times: the bets behind them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairchance.audit.bounds import _SHARES, CAPS, Bets, cover, upper_bound

SEEDS = st.integers(0, 2**32 - 1)


def random_rows(rng, n=40):
    """Return a policy, logged probabilities, who was accepted, and who is bad."""
    p = rng.choice([0.0, 0.001, 0.05, 0.3, 0.9, 1.0], size=n)
    pi = np.where(rng.random(n) < 0.2, 0.0, rng.random(n)).round(3)
    return pi, p, rng.random(n) < p, (rng.random(n) < 0.3).astype(float)


def fdr_bets(part, bad, rounds, **options):
    """Return the bets on a false discovery rate."""
    u, v = part.weight + part.rem, part.weight * bad + part.rem
    options = {"per_round": part.per_round} | options
    return Bets.of(u, v, rounds, (part.cap + 1, part.cap + 1), **options)


@given(SEEDS)
def test_the_mean_of_u_is_the_policy_and_that_of_v_is_at_least_its_share_of_bad(seed):
    """By enumeration of both decisions on each applicant."""
    rng = np.random.default_rng(seed)
    pi, p, _, _ = random_rows(rng)
    bad, none = rng.random(p.size), np.zeros(p.size, bool)
    if_accepted = cover(pi, p, p > 0, none)
    if_rejected = cover(pi, p, none, none)
    for one, zero in zip(if_accepted, if_rejected, strict=True):
        np.testing.assert_allclose(p * one.weight + zero.rem, pi, atol=1e-12)
        mean_bad = p * one.weight * bad + zero.rem
        assert np.all(mean_bad >= pi * bad - 1e-12)
        exact = pi <= one.cap * p
        np.testing.assert_allclose(mean_bad[exact], (pi * bad)[exact], atol=1e-12)


def growth_by_hand(u, v, rounds, worst, b):
    """Return the log growth of each gambler in each round, one applicant after the other."""
    grown = np.zeros((_SHARES.size, len(rounds) - 1))
    for gambler, share in enumerate(_SHARES):
        bet = share / (worst[0] - worst[1] * b)
        for t, (begin, end) in enumerate(itertools.pairwise(rounds)):
            for i in range(begin, end):
                grown[gambler, t] += np.log(1 + bet * (b * u[i] - v[i]))
    return grown


@given(SEEDS, st.floats(0.01, 0.99))
def test_growth_is_that_of_bets_on_one_applicant_after_the_other(seed, b):
    rng = np.random.default_rng(seed)
    pi, p, accepted, bad = random_rows(rng, 70)
    if seed % 2:  # few distinct values, which are counted
        pi, p = np.where(pi > 0, 0.5, 0.0), np.where(p > 0, 0.3, 0.0)
    rounds = np.array([0, 1, 20, 55, 70])
    for part in cover(pi, p, accepted, np.zeros(70, bool)):
        u, v = part.weight + part.rem, part.weight * bad + part.rem
        bets = fdr_bets(part, bad, rounds)
        expected = growth_by_hand(u, v, rounds, bets.worst, b)
        np.testing.assert_allclose(bets.growth(b), expected, atol=1e-9)
        assert np.all(expected >= np.log(1 - _SHARES[0]) * np.diff(rounds) - 1e-9)  # no ruin


@given(SEEDS, st.sampled_from([(1.0, -1.0), (1.0, -2.0), (-1.0, 2.0), (2.0, 1.0), (-1.0, -3.0)]))
def test_a_larger_value_is_refuted_whenever_a_smaller_one_is(seed, gains):
    """Every gambler's growth rises with b; if not, a bound would be the answer of many tests."""
    rng = np.random.default_rng(seed)
    pi, p, accepted, bad = random_rows(rng)
    rounds, values = np.arange(p.size + 1), np.linspace(0, 1 - 2**-20, 30)
    least, most = min(0.0, *gains), max(0.0, *gains)
    for part in cover(pi, p, accepted, np.zeros(p.size, bool)):
        earned = part.weight * np.where(bad, gains[1], gains[0]) + part.rem * max(gains)
        v = (earned - least) / (most - least)
        largest = ((part.cap + 1) * most - least) / (most - least)
        profit = Bets.of(np.ones(p.size), v, rounds, (largest, 1.0))
        for bets in (fdr_bets(part, bad, rounds), profit):
            assert np.all(bets.v * bets.worst[1] <= bets.u * bets.worst[0] + 1e-12)
            grown = np.array([bets.growth(b) for b in values])
            assert np.all(np.diff(grown, axis=0) >= -1e-8)  # rounding near b = 1
            assert grown.min() >= np.log(1 - _SHARES[0]) - 1e-8


@pytest.mark.parametrize("rate", [0.02, 0.3])
def test_a_bound_is_the_smallest_rate_that_is_refuted_after_any_round(rate):
    n, error, rounds = 500, 0.02, np.arange(0, 501, 50)
    bad = (np.arange(n) < rate * n).astype(float)
    np.random.default_rng(0).shuffle(bad)
    bets = Bets.of(np.ones(n), bad, rounds, (1.0, 1.0))

    def wealth(b):
        grown = growth_by_hand(np.ones(n), bad, rounds, (1.0, 1.0), b)
        return np.exp(np.cumsum(grown, axis=1)).mean(axis=0)

    bound = upper_bound([bets], error)
    assert rate < bound < rate + 0.1
    assert wealth(bound).max() >= 1 / error * (1 - 1e-9)
    assert wealth(bound - 1e-5).max() < 1 / error
    # If the policy changes, present wealth must refute a value of the grid among 256.
    changing = upper_bound([bets], error, changes=True)
    assert changing * 255 == pytest.approx(round(changing * 255))
    assert wealth(changing)[-1] >= 256 / error
    assert wealth(changing - 1 / 255)[-1] < 256 / error


def test_without_evidence_the_bound_is_the_end_of_the_range():
    assert upper_bound([], 0.05) == 1.0
    nothing = Bets.of(np.zeros(3), np.zeros(3), np.array([0, 3]), (1.0, 1.0))
    assert upper_bound([nothing], 0.05) == 1.0
    all_bad = Bets.of(np.ones(300), np.ones(300), np.array([0, 300]), (1.0, 1.0))
    assert upper_bound([all_bad], 0.05) == 1.0


# A population of two cells, small enough that every batch of three can be enumerated.

MASS, BAD, PI = np.array([0.6, 0.4]), np.array([0.1, 0.7]), np.array([1.0, 0.5])
FDR = MASS @ (PI * BAD) / (MASS @ PI)


def one_of_the_batch(cells):
    """Yield the outcomes of a draw of fixed size among cell 1; cell 0 is accepted by coins.

    Each has its probability, who was accepted, the logged probabilities and the candidates.
    """
    candidates = np.flatnonzero(cells == 1)
    others = np.flatnonzero(cells == 0)
    p = np.where(cells == 1, 1 / max(candidates.size, 1), 0.5)
    for heads in itertools.product([False, True], repeat=others.size):
        accepted = np.zeros(cells.size, bool)
        accepted[others] = heads
        for drawn in candidates if candidates.size else [None]:
            chosen = accepted.copy()
            if drawn is not None:
                chosen[drawn] = True
            yield 0.5**others.size / max(candidates.size, 1), chosen, p, cells == 1


def all_of_a_cell_or_none(cells):
    """Yield the outcomes of one coin per cell, the strongest dependence that there is."""
    chance = np.array([0.5, 0.2])
    for heads in itertools.product([False, True], repeat=2):
        probability = np.prod(np.where(heads, chance, 1 - chance))
        yield probability, np.array(heads)[cells], chance[cells], np.ones(cells.size, bool)


def expected_wealth(design, b, **options):
    """Return the expected wealth of every gambler after one batch of three, exactly."""
    total = 0.0
    for cells in map(np.array, itertools.product([0, 1], repeat=3)):
        for probability, accepted, p, drawn in design(cells):
            # A candidate whom the policy rejects, so that each batch has the same gamblers.
            rows = [*PI[cells], 0.0], [*p, 0.5], [*accepted, False], [*drawn, True]
            covered = cover(*map(np.array, rows))
            for bad in map(np.array, itertools.product([0.0, 1.0], repeat=3)):
                chance = probability * np.prod(MASS[cells])
                chance *= np.prod(np.where(bad == 1, BAD[cells], 1 - BAD[cells]))
                bets = [fdr_bets(part, [*bad, 0], np.array([0, 4]), **options) for part in covered]
                wealth = np.exp([part.growth(b).sum(axis=1) for part in bets])
                total = total + chance * wealth
    return total


@pytest.mark.parametrize("design", [one_of_the_batch, all_of_a_cell_or_none])
def test_no_gambler_can_expect_to_gain_even_if_acceptances_depend_on_each_other(design):
    assert expected_wealth(design, FDR).max() <= 1 + 1e-12
    assert expected_wealth(design, FDR - 0.05).max() < 1
    # A larger b is false, and gamblers do gain.
    assert expected_wealth(design, FDR + 0.2).max() > 1.01


def test_bets_on_one_applicant_after_the_other_would_gain_if_acceptances_depend():
    """A control: it shows that the enumeration finds what is not fair."""
    assert expected_wealth(all_of_a_cell_or_none, FDR, per_round=False).max() > 1.005


def test_candidates_of_draws_are_bets_by_round_or_not_covered(rng):
    pi, p, accepted, _ = random_rows(rng)
    candidates = p < 0.5
    covered = cover(pi, p, accepted, candidates)
    kinds = [(part.cap, part.per_round) for part in covered]
    assert kinds == [(cap, per_round) for cap in CAPS for per_round in (True, False)]
    for by_round, by_person in zip(covered[::2], covered[1::2], strict=True):
        assert not by_person.weight[candidates].any()
        np.testing.assert_array_equal(by_person.rem[candidates], pi[candidates])
        for name in ("weight", "rem"):
            one, other = getattr(by_person, name), getattr(by_round, name)
            np.testing.assert_array_equal(one[~candidates], other[~candidates])


def test_rounds_count_by_their_size_if_the_policy_changes(rng):
    u, v = rng.random(30), rng.random(30)
    rounds = np.array([0, 4, 10, 30])  # of 4, 6 and 20 applicants
    fixed = Bets.of(u, v, rounds, (2.0, 2.0), per_round=True)
    np.testing.assert_allclose(fixed.u, [u[:4].mean(), u[4:10].mean(), u[10:].mean()])
    changing = Bets.of(u, v, rounds, (2.0, 2.0), per_round=True, changes=True)
    np.testing.assert_allclose(
        changing.v, [v[:4].sum() / 32, v[4:10].sum() / 32, v[10:].sum() / 32]
    )
    assert changing.capital == 1 / 16  # 32 = 4·2³, so the fourth gambler plays
    # Rounds of one size are the cheapest case.
    even = Bets.of(u, v, np.array([0, 15, 30]), (2.0, 2.0), per_round=True, changes=True)
    assert (even.capital, even.u[0]) == (0.5, pytest.approx(u[:15].mean()))
