"""Tests of when outcomes arrive."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

from fairchance.core.decisions import Decisions
from fairchance.errors import InputError
from fairchance.simulate.feedback import (
    Between,
    ByOutcome,
    Feedback,
    Fixed,
    Geometric,
)
from fairchance.simulate.populations import Lender, draw_applicants
from fairchance.simulate.run import run
from small_worlds import lender_world


class Odd:
    """A method that accepts every second person and records when each outcome arrives."""

    def __init__(self):
        self.round, self.arrived = 0, {}

    def decide(self, X, *, sensitive_features=None, ids=None):
        self.round += 1
        accepted = np.arange(len(X)) % 2 == 1
        ids = 1000 * self.round + np.arange(len(X))
        chance = accepted * 1.0
        return Decisions(ids, accepted, accepted, chance, chance, round=self.round)

    def observe(self, ids, outcomes):
        for name, outcome in zip(ids.tolist(), outcomes.tolist(), strict=True):
            assert name not in self.arrived
            self.arrived[name] = (self.round, outcome)


class SlowB:
    """Delays group B by two rounds, and people with many years by one more."""

    def rounds(self, applicants, rng):
        return np.where(applicants.people.group == "B", 2, 0) + (applicants.people.X[:, 2] > 0)


def test_users_own_delay():
    """Compare arrivals with a loop over all people of all rounds."""
    world = lender_world(3, n_batch=60, n_rounds=6, feedback=Feedback(SlowB()))
    method, due, delays = Odd(), {}, set()
    for result in run(method, world):
        people, decided = result.applicants.people, result.decided
        for i in np.flatnonzero(decided.accepted):
            after = (2 if people.group[i] == "B" else 0) + (1 if people.X[i, 2] > 0 else 0)
            delays.add(after)
            if decided.round + after <= 6:
                due[int(decided.ids[i])] = (
                    decided.round + after,
                    int(result.applicants.outcome[i]),
                )
    assert delays == {0, 1, 2, 3}
    assert method.arrived == due


@pytest.mark.parametrize("mean", [0.0, 0.5, 3.0])
def test_distribution_of_geometric_delays(mean, rng):
    """Compare with mean^k / (1 + mean)^(k+1); the control has a mean that is 10 % larger."""
    n = 20_000
    delays = Geometric(mean).rounds(draw_applicants(Lender(), n, rng), rng)
    if mean == 0:
        assert not delays.any()
        return
    k = np.arange(5)
    counts = np.append(np.bincount(delays, minlength=5)[:5], (delays >= 5).sum())
    for stated, fits in ((mean, True), (1.1 * mean, False)):
        chances = stated**k / (1 + stated) ** (k + 1)
        expected = n * np.append(chances, 1 - chances.sum())
        assert expected.min() > 5
        assert (chisquare(counts, expected).pvalue > 0.001) == fits


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Fixed(-1), "after.*-1"),
        (lambda: Fixed(1.5), "after.*1.5"),
        (lambda: Geometric(-0.1), "mean.*-0.1"),
        (lambda: Geometric(np.nan), "mean.*nan"),
        (lambda: ByOutcome(bad=-2), "bad.*-2"),
        (lambda: Feedback(missing=1.2), "missing.*1.2"),
        (lambda: Feedback(corrected_after=0), "1.*0"),
    ],
)
def test_invalid_options_are_rejected(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_between_is_uniform(rng):
    applicants = draw_applicants(Lender(), 7_000, rng)
    delays = Between(3, 9).rounds(applicants, rng)
    values, counts = np.unique(delays, return_counts=True)
    assert values.tolist() == list(range(3, 10))
    assert chisquare(counts).pvalue > 1e-4
    assert chisquare(np.bincount(np.maximum(delays, 4) - 4)).pvalue < 1e-4  # the control
    assert np.array_equal(Between(4, 4).rounds(applicants, rng), Fixed(4).rounds(applicants, rng))


def test_larger_bounds_never_make_an_outcome_arrive_earlier(rng):
    applicants = draw_applicants(Lender(), 500, rng)
    bounds = [(least, most) for least in range(4) for most in range(least, 7)]
    delays = {b: Between(*b).rounds(applicants, np.random.default_rng(3)) for b in bounds}
    for small, early in delays.items():
        for large, late in delays.items():
            if small[0] <= large[0] and small[1] <= large[1]:
                assert (early <= late).all()
