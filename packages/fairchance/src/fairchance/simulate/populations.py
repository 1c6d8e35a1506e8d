"""Populations whose P(good | x, z) is known in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer

from fairchance.core.utility import Utility
from fairchance.errors import InputError
from fairchance.simulate.people import Applicants, Floats, People

__all__ = [
    "Binormal",
    "Drifting",
    "FiniteDomain",
    "Lender",
    "Optimum",
    "PastPopulation",
    "Population",
    "best_ranking",
    "constrained_optimum",
    "draw_applicants",
]

_QUANTILES = 100  # of a column, for normal scores
_STEPS = 500  # of a logistic fit


class Population(Protocol):
    """A distribution of people with known probabilities of the good outcome."""

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""

    @property
    def groups(self) -> tuple[str, ...]:
        """All groups, in order."""

    def draw(self, n: int, rng: np.random.Generator) -> People:
        """Draw people."""

    def probability_good(self, people: People) -> Floats:
        """Return the true P(good | x, z)."""


def draw_applicants(population: Population, n: int, rng: np.random.Generator) -> Applicants:
    """Draw people and their outcomes."""
    people = population.draw(n, rng)
    p = population.probability_good(people)
    return Applicants(people, (rng.random(n) < p).astype(np.int8), p)


@dataclass(frozen=True)
class Lender:
    """Credit applicants in two groups; the past rejected most of group B.

    Features: income, debt and years at the job, standardised. Given the features, both groups repay
    equally well. The past looked at income and group, so high incomes are over-represented in it.

    Parameters
    ----------
    share_b
        Share of group B.
    income_gap
        How much lower the mean income of group B is, in standard deviations.
    past_penalty
        Penalty of the past on group B, in log-odds of acceptance.
    past_intercept, past_slope
        Log-odds of past acceptance at mean income in group A, and per standard deviation.
    curvature
        Weight of debt squared in the log-odds of repaying, which a linear model cannot represent.
    years_weight
        Weight of the years at the job in the log-odds of repaying.
    """

    share_b: float = 0.3
    income_gap: float = 0.3
    past_penalty: float = 2.0
    past_intercept: float = 0.0
    past_slope: float = 2.0
    curvature: float = 0.0
    years_weight: float = 0.4

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not isinstance(value, int | float) or isinstance(value, bool):
                raise InputError(f"{name} must be a number, got {value!r}.")
        if not 0 < self.share_b < 1:
            raise InputError(f"share_b is a share and must be in (0, 1), got {self.share_b}.")

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""
        return ("income", "debt", "years")

    @property
    def groups(self) -> tuple[str, ...]:
        """All groups, in order."""
        return ("A", "B")

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
        return np.asarray(expit(1.3 + 1.5 * income - 0.8 * debt + self.years_weight * years - bend))

    def probability_accepted_before(self, people: People) -> Floats:
        """Return the past's probability of acceptance: by income, and lower in group B."""
        penalty = self.past_penalty * (people.group == "B")
        log_odds = self.past_intercept + self.past_slope * people.X[:, 0] - penalty
        return np.asarray(expit(log_odds))


@dataclass(frozen=True)
class Binormal:
    """People with one score, which is normal among the good and among the bad.

    P(good | score) is logistic in the score, so base rate and AUC determine the population.

    Parameters
    ----------
    good
        Share of good people.
    auc
        Probability that a good person scores higher than a bad one, in (0.5, 1).
    shares
        Groups with their shares; the group is independent of the outcome.

    Examples
    --------
    >>> population = Binormal(good=0.7, auc=0.75)
    >>> people = population.draw(100_000, np.random.default_rng(0))
    >>> round(float(population.probability_good(people).mean()), 2)
    0.7
    """

    good: float = 0.7
    auc: float = 0.75
    shares: tuple[tuple[str, float], ...] = (("everybody", 1.0),)

    def __post_init__(self) -> None:
        if not 0 < self.good < 1:
            raise InputError(f"good is a share and must be in (0, 1), got {self.good}.")
        if not 0.5 < self.auc < 1:
            raise InputError(f"auc must be in (0.5, 1), got {self.auc}.")
        if not self.shares or not all(share > 0 for _, share in self.shares):
            raise InputError("every group needs a share above 0.")

    @property
    def distance(self) -> float:
        """Difference of the mean scores of good and bad people, in standard deviations."""
        return float(np.sqrt(2) * ndtri(self.auc))

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""
        return ("score",)

    @property
    def groups(self) -> tuple[str, ...]:
        """All groups, in order."""
        return tuple(sorted(name for name, _ in self.shares))

    def draw(self, n: int, rng: np.random.Generator) -> People:
        """Draw people."""
        good = rng.random(n) < self.good
        score = rng.normal(size=n) + self.distance * good
        share = np.array([share for _, share in self.shares])
        names = np.array([name for name, _ in self.shares])
        return People(score[:, None], rng.choice(names, size=n, p=share / share.sum()))

    def probability_good(self, people: People) -> Floats:
        """Return P(good | score), by Bayes' rule."""
        d = self.distance
        return np.asarray(expit(logit(self.good) + d * people.X[:, 0] - d**2 / 2))


class PastPopulation:
    """Applicants like those of a history, who come with the decision that today's policy made.

    An applicant whom it accepted is good with the probability p(x) of a logistic model, fitted to
    the outcomes of the history. Its columns are normal scores, so that no wild value rules them. A
    rejected applicant is good with the same p(x), or never: the history does not tell how good
    the rejected are, and the truth is most likely in between.

    Parameters
    ----------
    X, group, features
        All applicants of the history, with the names of their features.
    accepted
        Whether the history accepted each of them.
    outcome
        1 good, 0 bad, of those that it accepted.
    rejected_are_bad
        Whether all rejected applicants are bad.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(9000, 1))
    >>> accepted, good = X[:, 0] > 0, rng.random(9000) < expit(X[:, 0])
    >>> past = (X, np.full(9000, "A"), ("score",), accepted, good[accepted])
    >>> round(good[~accepted].mean(), 1), round(PastPopulation(*past).rejected_good, 1)
    (np.float64(0.3), 0.3)
    >>> PastPopulation(*past, rejected_are_bad=True).rejected_good
    0.0
    """

    def __init__(
        self,
        X: Floats,
        group: NDArray[np.str_],
        features: tuple[str, ...],
        accepted: NDArray[np.bool_],
        outcome: NDArray[np.integer | np.bool_],
        *,
        rejected_are_bad: bool = False,
    ) -> None:
        self.X, self.group, self.features, self.accepted = X, group, features, accepted
        self.rejected_are_bad = rejected_are_bad
        scores = QuantileTransformer(
            n_quantiles=min(_QUANTILES, len(X)), output_distribution="normal", random_state=0
        ).fit(X)
        self._likelihood = make_pipeline(scores, LogisticRegression(max_iter=_STEPS))
        self._likelihood[-1].fit(scores.transform(X[accepted]), outcome)

    @property
    def groups(self) -> tuple[str, ...]:
        """All groups, in order."""
        return tuple(np.unique(self.group).tolist())

    @property
    def rejected_good(self) -> float:
        """The share of good applicants among the rejected of the history, in this reading."""
        rejected = ~self.accepted
        people = People(self.X[rejected], self.group[rejected], self.accepted[rejected])
        return float(self.probability_good(people).mean())

    def draw(self, n: int, rng: np.random.Generator) -> People:
        """Draw applicants with replacement; a row may come again, with another outcome."""
        rows = rng.integers(len(self.X), size=n)
        return People(self.X[rows], self.group[rows], self.accepted[rows])

    def probability_good(self, people: People) -> Floats:
        """Return P(good | x, today's decision) in this reading of the history."""
        p = self._likelihood.predict_proba(people.X)[:, 1]
        accepted = np.asarray(people.today)
        return np.where(accepted, p, 0.0) if self.rejected_are_bad else np.asarray(p)


@dataclass(frozen=True)
class Drifting:
    """A population that changes from round to round.

    Parameters
    ----------
    population
        The population of the history; round 1 has drifted once.
    shift
        Change of each feature per round.
    log_odds
        Change of the log-odds of the good outcome per round: P(y | x) itself drifts.

    Examples
    --------
    >>> later = Drifting(Lender(), shift=(-0.1, 0, 0), log_odds=-0.05).at(10)
    >>> people = later.draw(10_000, np.random.default_rng(0))
    >>> bool(people.X[:, 0].mean() < -0.9)
    True
    """

    population: Population
    shift: tuple[float, ...] = ()
    log_odds: float = 0.0

    def __post_init__(self) -> None:
        if self.shift and len(self.shift) != len(self.population.features):
            raise InputError(
                f"shift must have one number per feature {self.population.features}, "
                f"got {len(self.shift)}."
            )

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""
        return self.population.features

    @property
    def groups(self) -> tuple[str, ...]:
        """All groups, in order."""
        return self.population.groups

    def at(self, round: int) -> Drifting:
        """Return the population of a round."""
        shift = tuple(step * round for step in self.shift)
        return Drifting(self.population, shift, self.log_odds * round)

    def draw(self, n: int, rng: np.random.Generator) -> People:
        """Draw people whose features have moved by ``shift``."""
        people = self.population.draw(n, rng)
        return People(people.X + np.asarray(self.shift), people.group) if self.shift else people

    def probability_good(self, people: People) -> Floats:
        """Return P(good | x, z) of the drifted features, moved by ``log_odds``."""
        return np.asarray(expit(logit(self.population.probability_good(people)) + self.log_odds))


@dataclass(frozen=True)
class FiniteDomain:
    """Finitely many kinds of people, for which all quantities are exact.

    They are cells (x, z), each with its share of the population and its P(good).

    Parameters
    ----------
    X
        Features, a row a cell.
    group
        Group of each cell.
    mass
        Share of the population in each cell; scaled to sum to one.
    good
        P(good) of each cell.
    features
        Names of the features; empty means x0, x1, …

    Examples
    --------
    >>> domain = FiniteDomain([[0.0], [1.0]], ["a", "b"], mass=[3, 1], good=[0.5, 0.9])
    >>> domain.mass.tolist(), round(domain.base_rate, 3)
    ([0.75, 0.25], 0.6)
    """

    X: Floats
    group: NDArray[np.str_]
    mass: Floats
    good: Floats
    features: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        X = np.atleast_2d(np.asarray(self.X, dtype=np.float64))
        group = np.asarray(self.group, dtype=np.str_)
        mass, good = (np.asarray(a, dtype=np.float64) for a in (self.mass, self.good))
        if not (mass.shape == good.shape == group.shape == X.shape[:1]):
            raise InputError(
                f"every cell needs features, a group, a mass and a probability: got {X.shape[0]} "
                f"rows of X, {group.size} groups, {mass.size} masses, {good.size} probabilities."
            )
        if not (np.all(mass >= 0) and 0 < mass.sum() < np.inf):
            raise InputError("mass must be at least 0 in every cell, and above 0 in some.")
        if not np.all((good >= 0) & (good <= 1)):
            raise InputError("good holds probabilities and must be in [0, 1] in every cell.")
        names = self.features or tuple(f"x{i}" for i in range(X.shape[1]))
        values = {"X": X, "group": group, "mass": mass / mass.sum(), "good": good}
        for name, value in (values | {"features": names}).items():
            object.__setattr__(self, name, value)
        if np.unique(self._codes(X, group), axis=0).shape[0] < X.shape[0]:
            raise InputError(
                "cells must differ in features or group; add up the masses of equal cells."
            )

    @property
    def groups(self) -> tuple[str, ...]:
        """All groups, in order."""
        return tuple(np.unique(self.group).tolist())

    @property
    def base_rate(self) -> float:
        """P(good) over the whole population."""
        return float(self.mass @ self.good)

    def draw(self, n: int, rng: np.random.Generator) -> People:
        """Draw people."""
        cell = rng.choice(self.mass.size, size=n, p=self.mass)
        return People(self.X[cell], self.group[cell])

    def probability_good(self, people: People) -> Floats:
        """Return P(good) of each person's cell."""
        return self.good[self.cell_of(people)]

    def cell_of(self, people: People) -> NDArray[np.intp]:
        """Return the number of each person's cell."""
        n_cells = self.mass.size
        both = np.vstack([self._codes(self.X, self.group), self._codes(people.X, people.group)])
        _, first, kind = np.unique(both, axis=0, return_index=True, return_inverse=True)
        cell = first[kind.ravel()[n_cells:]]
        if np.any(cell >= n_cells):
            unknown = int(np.flatnonzero(cell >= n_cells)[0])
            raise InputError(
                f"no cell holds the person with features {people.X[unknown].tolist()} in group "
                f"{people.group[unknown].item()!r}; draw people from this domain."
            )
        return cell

    def optimum(self, utility: Utility, alpha: float) -> Optimum:
        """Return the best threshold on P(good) with FDR ≤ α, exactly."""
        return best_ranking(self.good, self.mass, utility, alpha)

    def _codes(self, X: Floats, group: NDArray[np.str_]) -> Floats:
        names = np.unique(self.group)
        code = np.searchsorted(names, group).clip(max=names.size - 1)
        return np.column_stack([X, np.where(names[code] == group, code, -1)])


@dataclass(frozen=True)
class Optimum:
    """The best rule under full knowledge: accept if P(good) is at least ``threshold``."""

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
    p = population.probability_good(population.draw(n, rng))
    return best_ranking(p, np.full(n, 1 / n), utility, alpha)


def best_ranking(p: Floats, mass: Floats, utility: Utility, alpha: float) -> Optimum:
    """Return the best threshold on P(good) among people, or cells, of given mass."""
    order = np.argsort(p)[::-1]
    p, mass = p[order], mass[order]
    gain = np.cumsum(mass * (utility.expected(1.0, p) - utility.expected(0.0, p)))
    selected = np.cumsum(mass)
    fdr = np.cumsum(mass * (1 - p)) / selected
    allowed_fdr = alpha + 1e-12  # rounding alone may push sums of decimals above the bound
    last_of_ties = np.append(p[1:] < p[:-1], True)
    allowed = np.where((fdr <= allowed_fdr) & last_of_ties, gain, -np.inf)
    best = int(np.argmax(allowed))
    no_one = float(mass @ utility.expected(0.0, p))
    if allowed[best] <= 0:
        return Optimum(np.inf, no_one, 0.0, 0.0)
    return Optimum(
        float(p[best]), no_one + float(gain[best]), float(fdr[best]), float(selected[best])
    )
