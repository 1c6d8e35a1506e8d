"""A ladder over one feature, a round of it, and the rules of a classifier."""

from __future__ import annotations

import numpy as np

from fairchance.core.noise import OutcomeNoise
from fairchance.core.strategies import Uniform
from fairchance.methods.certified.ladder import Floor, Ladder
from fairchance.methods.certified.ranking import Ranking
from fairchance.methods.certified.rules import Rules
from fairchance.people.likelihoods import LinearLikelihood
from methods.certified.known_truth import ALPHA, DELTA, UTILITY

LEVEL = 0.03
RULES = Rules(ALPHA, DELTA, UTILITY, 20, False, 0.0, Uniform(), OutcomeNoise())


def make_ladder(tau=0.1, floor=0.0, starts=((20, 0.8), (8, 0.2)), n=500):
    X = np.random.default_rng(1).normal(size=(n, 1))
    likelihood = LinearLikelihood(np.array([1.0]), 0.0)
    group = np.zeros(n, np.intp)
    score = likelihood.score(X, group)
    ranking = Ranking.freeze(likelihood, score, group, 1, within=False)
    frozen = Floor.freeze(Uniform(), floor, X, score, group, 1)
    return Ladder(ranking, tau, frozen, LEVEL, starts, 1, ALPHA)


def play_round(rng, ladder, rung, fdr, n=400):
    X = rng.normal(size=(n, 1))
    group = np.zeros(n, np.intp)
    p = ladder.policy(ladder.locate(X, group), rung)
    accepted = rng.random(n) < p
    return ladder.locate(X, group), p, accepted, accepted & (rng.random(n) < fdr)
