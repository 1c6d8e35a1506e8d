"""Evidence: its mean by enumeration, its range, wealth by brute force, and the drift monitor."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binom

from fairchance.methods.certified.evidence import (
    BETS,
    RATIO_CAPS,
    DriftMonitor,
    Wealth,
    ladder_grid,
    log_growth,
    soft_edge,
    values,
)
from methods.certified.known_truth import ALPHA, too_many

# Three kinds of applicants: covered, truncated (π/p above the caps), and truncated with π = 1.
PI = np.array([[0.9, 0.3], [0.5, 1.0], [1.0, 0.02]])
P = np.array([0.6, 0.05, 0.01])
BAD = np.array([0.1, 0.3, 0.7])  # f
ATOL = 1e-12


@pytest.mark.parametrize("cap", RATIO_CAPS)
@pytest.mark.parametrize("alpha", [0.05, 0.15, 0.6])
def test_mean_of_z_by_enumeration(alpha, cap):
    mean = np.zeros_like(PI)
    for accepted, bad in itertools.product([True, False], repeat=2):
        chance = np.where(accepted, P, 1 - P) * np.where(bad, BAD, 1 - BAD)
        z = values(PI, P, np.full(3, accepted), np.full(3, bad), alpha, cap)
        mean += chance[:, None] * z
    rem = PI - np.minimum(PI / P[:, None], cap) * P[:, None]
    assert (rem > 0.1).any()
    assert (rem == 0).any()
    f = BAD[:, None]
    assert mean == pytest.approx(PI * (alpha - f) - rem * (1 - f), abs=ATOL)
    assert np.all(mean <= PI * (alpha - f) + ATOL)


def test_outcomes_of_the_rejected_are_not_read():
    accepted = np.array([True, False, False])
    usual = values(PI, P, accepted, np.array([True, True, False]), ALPHA, 4.0)
    other = values(PI, P, accepted, np.array([True, False, True]), ALPHA, 4.0)
    assert np.array_equal(usual, other)


probabilities = st.floats(1e-9, 1.0)


@given(
    pi=arrays(float, (6, 3), elements=probabilities),
    p=arrays(float, 6, elements=probabilities),
    accepted=arrays(bool, 6),
    bad=arrays(bool, 6),
    alpha=st.floats(0.01, 0.95),
)
def test_no_applicant_can_ruin_a_gambler(pi, p, accepted, bad, alpha):
    bound = np.tile(np.array(RATIO_CAPS)[:, None] + 1, 3)
    shares = Wealth.start(alpha, 3).shares(bound)
    for i, cap in enumerate(RATIO_CAPS):
        z = values(pi, p, accepted, bad, alpha, cap)
        assert np.all(z >= -(1 - alpha) * bound[i] - 1e-9)
        assert np.all(1 + shares[i][:, None, :] * z >= 0.05 - 1e-9)


def test_wealth_is_the_product_of_its_bets(rng):
    n_rounds, n, n_policies, n_caps = 5, 37, 4, len(RATIO_CAPS)
    wealth = Wealth.start(ALPHA, n_policies)
    gamblers = np.ones((n_caps, len(BETS), n_policies))
    best = np.ones(n_policies)
    for _ in range(n_rounds):
        bound = rng.choice([1.0, 2.5, 5.0, 9.0], (n_caps, n_policies))
        z = rng.uniform(-(1 - ALPHA), ALPHA, (n_caps, n, n_policies)) * bound[:, None]
        z[:, rng.random(n) < 0.3] = 0
        shares = wealth.shares(bound)
        wealth.add(np.array([log_growth(*pair) for pair in zip(z, shares, strict=True)]))
        for k, i, j in itertools.product(range(n_caps), range(len(BETS)), range(n_policies)):
            share = min(BETS[i] / (1 - ALPHA), 0.95 / ((1 - ALPHA) * bound[k, j]))
            gamblers[k, i, j] *= math.prod(1 + share * value for value in z[k, :, j])
        best = np.maximum(best, gamblers.mean(axis=(0, 1)))
        assert np.exp(wealth.mixed()) == pytest.approx(gamblers.mean(axis=(0, 1)), rel=1e-9)
        assert np.exp(wealth.best) == pytest.approx(best, rel=1e-9)


def test_growth_of_no_applicants_and_of_extreme_ones():
    shares = np.array([[0.5], [0.95]])
    assert not log_growth(np.empty((0, 1)), shares).any()
    z = np.concatenate([np.full((100, 1), -1.0), np.full((300, 1), 1e6)])
    expected = [100 * math.log1p(-share) + 300 * math.log1p(share * 1e6) for share in (0.5, 0.95)]
    assert log_growth(z, shares)[:, 0] == pytest.approx(expected)


def test_the_mean_wealth_of_all_gamblers_is_fair_by_enumeration():
    """E[wealth] after two rows is 1 where FDR = α and all is covered, and less where not.

    π = 1 and p = 0.18 is covered with W = 8 and not with W = 4.
    """
    pi, p = np.array([[0.18, 0.5, 1.0]]), np.array([0.18])
    bound = np.array([[1.0, 2.8, 5.0], [1.0, 2.8, 5.6]])
    means = np.zeros((2, 3))
    for k, f in enumerate((ALPHA, 2 * ALPHA)):
        for rows in itertools.product([(0, 0), (1, 0), (1, 1)], repeat=2):
            wealth, chance = Wealth.start(ALPHA, 3), 1.0
            shares = wealth.shares(bound)
            for accepted, bad in rows:
                outcome = (f if bad else 1 - f) if accepted else 1.0
                chance *= (p[0] if accepted else 1 - p[0]) * outcome
                row = pi, p, np.array([accepted == 1]), np.array([bad == 1]), ALPHA
                z = [values(*row, cap) for cap in RATIO_CAPS]
                wealth.add(np.array(list(map(log_growth, z, shares))))
            means[k] += chance * np.exp(wealth.mixed())
    assert means[0, :2] == pytest.approx(1, abs=ATOL)
    assert means[0, 2] < 1 - 1e-3
    assert np.all(means[1] < 1)


@pytest.mark.parametrize(("first", "last"), [(0.01, 0.98), (0.05, 0.6), (0.3, 0.99)])
def test_the_grid_rises_in_small_steps(first, last):
    grid = ladder_grid(first, last)
    steps = np.diff(grid)
    assert (grid[0], grid[-1]) == (first, last)
    assert np.all(steps > 0)
    assert np.all(steps <= np.minimum(0.08 * grid[:-1], 0.02) + ATOL)


ranks = arrays(float, 20, elements=st.floats(0, 1))


@given(rank=ranks, q=st.floats(0.01, 0.98), tau=st.floats(0.003, 3))
def test_soft_edge_is_sure_inside_and_falls_outside(rank, q, tau):
    pi = soft_edge(rank, q, tau)
    assert np.all((pi >= 0) & (pi <= 1))
    assert np.all(pi[rank <= q] == 1)
    assert pi == pytest.approx([math.exp(-max(0.0, r - q) / tau) for r in rank], abs=ATOL)
    assert np.all(np.diff(pi[np.argsort(rank)]) <= 0)
    assert np.all(soft_edge(rank, min(1.0, q + 0.1), tau) >= pi)


@pytest.mark.parametrize("fdr", [ALPHA, 0.05])
def test_the_monitor_cannot_expect_to_gain_by_enumeration(fdr):
    mean, n = 0.0, 5
    for counts in itertools.product(range(n + 1), repeat=3):
        monitor = DriftMonitor(ALPHA)
        for bad in counts:
            monitor.add(np.arange(n) < bad)
        mean += np.prod(binom.pmf(counts, n, fdr)) * math.exp(monitor.log_wealth())
    if fdr == ALPHA:
        assert mean == pytest.approx(1, abs=1e-10)
    else:
        assert mean < 1


def alarm(rng, fdrs, n=60, delta=0.05):
    """Return the number of rounds after which a monitor fires; 0 if it does not."""
    monitor = DriftMonitor(ALPHA)
    for t, fdr in enumerate(fdrs, 1):
        monitor.add(rng.random(n) < fdr)
        if monitor.log_wealth() >= -math.log(delta):
            return t
    return 0


def test_the_monitor_seldom_raises_a_false_alarm():
    """At most δ = 5 % of 400 streams at FDR = α; a false alarm of this test has chance 0.001."""
    rng = np.random.default_rng(np.random.SeedSequence(7))
    alarms = sum(alarm(rng, [ALPHA] * 40) > 0 for _ in range(400))
    assert not too_many(alarms, 400, 0.05)


def test_the_monitor_notices_drift_soon():
    rng = np.random.default_rng(np.random.SeedSequence(8))
    delays = [alarm(rng, [0.1] * 20 + [0.3] * 20) - 20 for _ in range(60)]
    assert min(delays) > 0  # none missed, none early
    assert np.median(delays) <= 6


def test_a_monitor_without_rounds_has_lost_nothing():
    assert DriftMonitor(ALPHA).log_wealth() == 0
    assert not too_many(14, 100, 0.1)
    assert too_many(30, 100, 0.1)
