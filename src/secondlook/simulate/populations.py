"""Populations whose P(good | x, z) is known in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from secondlook.utility import Utility

__all__ = ["Lender", "Optimum", "People", "Population", "constrained_optimum"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class People:
    """What a method may see of people: features and group."""

    X: Floats
    group: NDArray[np.str_]

    def __len__(self) -> int:
        return int(self.X.shape[0])


class Population(Protocol):
    """Where people come from, how good they are, and how the past decided on them."""

    def draw(self, n: int, rng: np.random.Generator) -> People:
        """Draw people."""

    def probability_good(self, people: People) -> Floats:
        """Return the true P(good | x, z)."""

    def probability_accepted_before(self, people: People) -> Floats:
        """Return the probability with which the past accepted each person, by features only."""


@dataclass(frozen=True)
class Lender:
    """Applicants for credit in two groups, one of which the past hardly accepted.

    Features: income, debt and years at the job, standardised. Both groups repay alike given their
    features. The past looked at income, and at the group, and over-represents the well-to-do.

    Parameters
    ----------
    share_b
        Share of group B.
    income_gap
        How much lower the mean income of group B is, in standard deviations.
    past_penalty
        How much the past held against group B, in log-odds of acceptance.
    past_intercept, past_slope
        Log-odds of past acceptance at mean income in group A, and per standard deviation.
    curvature
        Weight of debt squared in the log-odds of repaying, which a linear model misses.
    """

    share_b: float = 0.3
    income_gap: float = 0.3
    past_penalty: float = 2.0
    past_intercept: float = 0.0
    past_slope: float = 2.0
    curvature: float = 0.0

    def draw(self, n: int, rng: np.random.Generator) -> People:
        """Draw applicants."""
        in_b = rng.random(n) < self.share_b
        X = rng.normal(size=(n, 3))
        X[:, 0] -= self.income_gap * in_b
        return People(X, np.where(in_b, "B", "A"))

    def probability_good(self, people: People) -> Floats:
        """Return P(repays | x): the same function in both groups."""
        income, debt, years = people.X.T
        bend = self.curvature * (debt**2 - 1)
        return np.asarray(expit(1.3 + 1.5 * income - 0.8 * debt + 0.4 * years - bend))

    def probability_accepted_before(self, people: People) -> Floats:
        """Return how likely the past was to accept: by income, and less in group B."""
        held_against = self.past_penalty * (people.group == "B")
        log_odds = self.past_intercept + self.past_slope * people.X[:, 0] - held_against
        return np.asarray(expit(log_odds))


@dataclass(frozen=True)
class Optimum:
    """The best rule under full knowledge: accept when P(good) is at least ``threshold``."""

    threshold: float
    utility: float
    fdr: float
    selection_rate: float


def constrained_optimum(
    population: Population,
    utility: Utility,
    alpha: float,
    *,
    n: int = 400_000,
    rng: np.random.Generator,
) -> Optimum:
    """Return f_opt^α: the largest utility per person with FDR ≤ α, knowing P(good | x, z).

    Ranking by P(good) is optimal among all rules for utilities that prefer accepting the good, so
    a sorted sample of ``n`` people and cumulative sums are enough.
    """
    p = np.sort(population.probability_good(population.draw(n, rng)))[::-1]
    gain = np.cumsum(utility.expected(1.0, p) - utility.expected(0.0, p)) / n
    fdr = np.cumsum(1 - p) / np.arange(1, n + 1)
    allowed = np.where(fdr <= alpha, gain, -np.inf)
    best = int(np.argmax(allowed))
    nobody = float(np.mean(utility.expected(0.0, p)))
    if allowed[best] <= 0:
        return Optimum(np.inf, nobody, 0.0, 0.0)
    return Optimum(float(p[best]), nobody + float(gain[best]), float(fdr[best]), (best + 1) / n)
