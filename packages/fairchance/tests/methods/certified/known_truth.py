"""Populations with a known FDR of every policy, and runs of the certified method on them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import expit
from scipy.stats import binom, norm
from sklearn.linear_model import LogisticRegression

from fairchance import CertifiedClassifier, Revenue
from fairchance.simulate.people import People
from fairchance.simulate.populations import draw_applicants

ALPHA, DELTA = 0.15, 0.1
QUICK = LogisticRegression()  # a ranking as good as any in these populations
UTILITY = Revenue(gain=200, loss=200)  # break-even at one half, so that the bound binds


class OneFeature:
    """x ~ N(0, 1), so that a policy that reads x has an FDR by quadrature, without any noise."""

    features = ("x",)
    groups = ("all",)

    def draw(self, n, rng):
        return People(rng.normal(size=(n, 1)), np.full(n, "all"))

    def whole_population(self, n=4000):
        """Return the population as n people of equal mass."""
        return _equal_masses(n)


@cache
def _equal_masses(n):
    X = norm.ppf((np.arange(n) + 0.5) / n)[:, None]
    X.flags.writeable = False  # all tests look at the same people
    return People(X, np.full(n, "all"))


@dataclass(frozen=True)
class Flat(OneFeature):
    """All applicants have the same P(good), so every policy has the same FDR."""

    fdr: float = ALPHA + 0.0005

    def probability_good(self, people):
        return np.full(len(people), 1 - self.fdr)


@dataclass(frozen=True)
class Slope(OneFeature):
    """Logistic in x: the wider a policy, the more of its accepted are bad."""

    intercept: float = 1.0
    slope: float = 2.0

    def probability_good(self, people):
        return expit(self.intercept + self.slope * people.X[:, 0])


@dataclass(frozen=True)
class Cliff(OneFeature):
    """Good down to an edge, bad below it."""

    share: float = 0.25
    above: float = 0.93
    below: float = 0.35

    def probability_good(self, people):
        return np.where(people.X[:, 0] > norm.isf(self.share), self.above, self.below)


def start(population, rng, *, n_history=600, method=CertifiedClassifier, **options):
    """Return a classifier fitted to a history that was selected on the outcome.

    Its ranking is a quick one; with ``learner=None`` it is the default.
    """
    past = draw_applicants(population, n_history, rng)
    accepted = rng.random(n_history) < np.where(past.outcome == 1, 0.9, 0.1)
    options = {"learner": QUICK, "horizon": 39} | options
    options = {"alpha": ALPHA, "delta": DELTA, "utility": UTILITY} | options
    options.setdefault("random_state", int(rng.integers(2**31)))
    groups = past.people.group if len(population.groups) > 1 else None
    return method(**options).fit(
        past.people.X, past.outcome, accepted=accepted, sensitive_features=groups
    )


@dataclass(frozen=True)
class Policy:
    """The policy of a round, and its true FDR."""

    certified: bool
    fdr: float
    share: float


def deployed_fdr(classifier, population):
    """Return the true FDR of the policy of the last round over the whole population."""
    applicants = population.whole_population()
    (choice,) = classifier._choices
    group = np.zeros(len(applicants), np.intp)
    pi = choice.ladder.policy(choice.ladder.locate(applicants.X, group), choice.rung)
    return float(pi @ (1 - population.probability_good(applicants)) / pi.sum())


def playing(classifier, population, rng, *, n=600, rounds=39, truth=True):
    """Run a classifier and yield the policies it deploys."""
    for _ in range(rounds):
        people = draw_applicants(population, n, rng)
        decided = classifier.decide(people.people.X)
        classifier.observe(decided.ids[decided.accepted], people.outcome[decided.accepted])
        fdr = deployed_fdr(classifier, population) if truth else float("nan")
        yield Policy(decided.certified, fdr, classifier.rounds_[-1].share)


def play(classifier, population, rng, **options):
    """Run a classifier to its end and return the policies it deployed."""
    return list(playing(classifier, population, rng, **options))


def rngs(seed, n):
    return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(n)]


def too_many(events, runs, rate, *, false_alarm=0.001):
    """Return whether the exact binomial test rejects that the rate of events is at most this."""
    return binom.sf(events - 1, runs, rate) < false_alarm
