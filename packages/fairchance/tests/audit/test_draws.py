"""Draws and losses that chance explains are hardly ever called odd, however often one looks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from fairchance.audit.draws import Tally, explored_among_lost

ERROR = 0.05
SURE = 1e-4  # the probability that a test of ours fails by chance


def at_one_look(tally, *, only_more=False):
    """Return the p-value of a test that is right for one look."""
    z = (tally.count - tally.expected) / np.sqrt(tally.variance) if tally.variance else 0.0
    return norm.sf(z) if only_more else 2 * norm.sf(abs(z))


def drawn(rng, n_rounds=40, n=200, *, again=0.0):
    """Yield what is known after each round; a share of the rejected is sent again under new ids."""
    whole = Tally()
    for _ in range(n_rounds):
        p = np.where(rng.random(n) < 0.3, 1.0, rng.random(n) ** 2)
        accepted = rng.random(n) < p
        sent_again = ~accepted & (rng.random(n) < again)
        accepted |= sent_again & (rng.random(n) < p)
        whole += Tally(int(accepted.sum()), float(p.sum()), float((p * (1 - p)).sum()))
        yield whole


def lost(rng, n_rounds=12, *, dropped=0.0):
    """Yield what is known after each file of losses.

    Rounds differ in size, in the share of the explored and in take-up. Losses come after different
    delays, explored or not, and a caller drops a share of the explored.
    """
    accepted, events = {}, []
    for t in range(1, n_rounds + 1):
        n = int(rng.integers(20, 150))
        explored = rng.random(n) < rng.uniform(0.05, 0.9)
        accepted[t] = int(explored.sum()), int((~explored).sum())
        gone = (rng.random(n) < rng.uniform(0.05, 0.5)) | (explored & (rng.random(n) < dropped))
        when = t + rng.exponential(3, n) // rng.choice([0.2, 2.0])
        events += [(when[i], t, explored[i]) for i in np.flatnonzero(gone)]
    files = []
    for when in sorted({one[0] for one in events}):
        for t in range(1, n_rounds + 1):
            some = [one[2] for one in events if one[:2] == (when, t)]
            if some:
                files.append((t, sum(some), len(some) - sum(some)))
    for last in range(1, len(files) + 1):
        yield explored_among_lost(files[:last], accepted)


def ever_odd(lives, p, **options):
    """Return in how many lives a p-value is ever as small as the error."""
    return sum(any(p(tally, **options) <= ERROR for tally in life) for life in lives)


@pytest.mark.parametrize("runs", [100, pytest.param(2000, marks=pytest.mark.long)])
@pytest.mark.parametrize(("life", "options"), [(drawn, {}), (lost, {"only_more": True})])
def test_what_chance_explains_is_hardly_ever_odd(life, options, runs):
    odd = ever_odd((life(np.random.default_rng([3, i])) for i in range(runs)), Tally.p, **options)
    assert binomtest(odd, runs, ERROR, "greater").pvalue > SURE


@pytest.mark.parametrize(("life", "options"), [(drawn, {}), (lost, {"only_more": True})])
def test_one_look_at_a_time_would_not_do(life, options):
    lives = (life(np.random.default_rng([3, i])) for i in range(100))
    assert binomtest(ever_odd(lives, at_one_look, **options), 100, ERROR, "greater").pvalue < SURE


def test_callers_who_choose_are_found():
    seeds = [np.random.default_rng([4, i]) for i in range(20)]
    assert ever_odd((drawn(rng, again=0.3) for rng in seeds), Tally.p) == 20
    assert ever_odd((lost(rng, dropped=0.5) for rng in seeds), Tally.p, only_more=True) == 20


def test_a_drop_of_others_is_not_held_against_the_explored():
    tally = explored_among_lost([(1, 0, 40)], {1: (50, 50)})
    assert tally.p(only_more=True) == 1.0
    assert tally.p() < 1e-3


def test_sums_that_are_far_apart_overflow_nothing():
    assert Tally(1_000_000, 1.0, 1.0).p() == 0.0
    assert Tally(0, 0.0, 0.0).p() == 1.0
