"""Logged rounds of every kind, and the walk over them person by person, as the method says it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from fairchance.core.coverage import CoverageRule, MeanPastScore, SummedAcceptance, SumOfG
from fairchance.core.strategies import (
    EqualGroups,
    FromFunction,
    GroupShare,
    ScoreWeighted,
    Strategy,
    Uniform,
)
from fairchance.methods.algorithm1.policy_log import LoggedPolicy, PolicyLog
from fairchance.people.likelihoods import (
    EstimatorLikelihood,
    GroupedLikelihood,
    Likelihood,
    LinearLikelihood,
)

N_GROUPS, N_HISTORY, N_FEATURES = 3, 50, 4


RULES = [
    SummedAcceptance(0.5),
    SummedAcceptance(1.2, reference_size=20),
    MeanPastScore(0.55),
    SumOfG(8.0),
]


# Strategies with the person's factor of g written out once more, for one person.
Factor = Callable[[np.ndarray, float, int], float]


BLIND: list[tuple[Strategy, Factor]] = [
    (ScoreWeighted(), lambda _x, s, _z: max(s, 1e-6)),
    (GroupShare(ScoreWeighted(beta=0.3)), lambda _x, s, _z: 0.3 + 0.7 * s),
    (Uniform() * EqualGroups(), lambda *_: 1.0),
]


READING: list[tuple[Strategy, Factor]] = [
    *BLIND[:2],
    (
        FromFunction(lambda X, score, group: np.exp(0.3 * X[:, 0]) + score * (group == 1)),
        lambda x, s, z: float(np.exp(0.3 * x[0])) + s * (z == 1),
    ),
]


@dataclass
class Walked:
    """What the slow walk finds for each person."""

    own: np.ndarray
    coverage: np.ndarray
    margin: np.ndarray  # least distance to any bound on the way: rounding may decide near zero


def people(n: int, dtype: Any = np.float64, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([seed, n])
    return rng.normal(size=(n, N_FEATURES)).astype(dtype), rng.integers(N_GROUPS, size=n)


@cache
def likelihoods(kind: str) -> tuple[Likelihood, ...]:
    rng = np.random.default_rng(5)
    linear = [LinearLikelihood(rng.normal(size=N_FEATURES) * 0.8, b) for b in (-1, 0, 0.5, -0.5)]
    if kind == "linear":
        return tuple(linear)
    X = rng.normal(size=(300, N_FEATURES))
    y = rng.random(300) < 1 / (1 + np.exp(-2 * X[:, 0]))
    tree = EstimatorLikelihood(DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y), 1)
    smooth = EstimatorLikelihood(LogisticRegression().fit(X[:, ::-1], y), 1)
    return (linear[0], tree, GroupedLikelihood((linear[1], linear[2], smooth)), smooth)


def random_rounds(
    kind: str, strategies: list[tuple[Strategy, Factor]], n_rounds: int = 9, seed: int = 1
) -> list[tuple[LoggedPolicy, Factor]]:
    """Return rounds of different sizes.

    Every third explored nobody, every fourth treats groups alike, one explores almost all of one.
    """
    rng, scales = np.random.default_rng(seed), {5: np.array([1, 1, 50])}
    rounds = []
    for t in range(n_rounds):
        strategy, factor = strategies[t % len(strategies)]
        p = (N_GROUPS,) if t % 4 else ()
        policy = LoggedPolicy(
            likelihood=int(rng.integers(1, len(likelihoods(kind)))) if t else 0,
            thresholds=np.broadcast_to(rng.uniform(0.3, 0.7, p), N_GROUPS).copy(),
            strategy=strategy,
            group_factor=np.broadcast_to(rng.uniform(0.5, 2, p), N_GROUPS).copy(),
            left=rng.uniform(0.2, 4, N_GROUPS) * scales.get(t, t % 3 != 1),
            others=rng.uniform(20, 60, N_GROUPS),
            n_people=int(rng.integers(1, 60)),
        )
        rounds.append((policy, factor))
    return rounds


def log_of(kind: str, policies: list[LoggedPolicy]) -> PolicyLog:
    log = PolicyLog(likelihoods(kind)[0], N_HISTORY)
    for likelihood in likelihoods(kind)[1:]:
        log.add_likelihood(likelihood)
    for policy in policies:
        log.append(policy)
    return log


def slow_walk(
    kind: str,
    rounds: list[tuple[LoggedPolicy, Factor]],
    rule: CoverageRule,
    X: Any,
    group: Any,
    incumbent: Any = None,
) -> Walked:
    """Walk the rounds for one person after the other, in Python's numbers."""
    walked = Walked(np.zeros(len(X)), np.zeros(len(X)), np.full(len(X), np.inf))
    for i, z in enumerate(group.tolist()):
        scores = [float(one.score(X[i : i + 1], group[i : i + 1])[0]) for one in likelihoods(kind)]
        n_ref = getattr(rule, "reference_size", None) or max(100, rounds[0][0].n_people)
        w, own, margins = scores[0], 0.0, []
        d = scores[0] if incumbent is None else float(incumbent[i])
        for t, (policy, factor) in enumerate(rounds):
            score = scores[policy.likelihood]
            g = factor(X[i].astype(float), score, z) * policy.group_factor[z]
            mean_of = t + 1 if isinstance(rule, MeanPastScore) else 1
            margins += [abs(w / mean_of - rule.threshold), abs(score - policy.thresholds[z])]
            if w / mean_of > rule.threshold:
                pi = float(score >= policy.thresholds[z])
            else:
                pi = min(1.0, policy.left[z] * g / (policy.others[z] + g))
            p, given_to_d = policy.ramp * pi, (1 - policy.ramp) * d
            own += policy.n_people * (p + given_to_d)
            if isinstance(rule, SummedAcceptance):
                w += policy.n_people / n_ref * (p + given_to_d)
            else:
                w += policy.ramp * (score if isinstance(rule, MeanPastScore) else g) + given_to_d
        last = len(rounds) + 1 if isinstance(rule, MeanPastScore) else 1
        margins.append(abs(w / last - rule.threshold))
        walked.own[i], walked.coverage[i], walked.margin[i] = own, w, min(margins)
    return walked


def fast_walk(
    log: PolicyLog,
    rule: CoverageRule,
    X: Any,
    group: Any,
    begin: int = 0,
    start: Any = None,
    incumbent: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return Σ n_i·π_i and w by ``PolicyLog.walk``."""
    own, coverage = (np.zeros(len(X)), None) if start is None else start
    if coverage is None:
        coverage = log.past_acceptance(X, group)
        np.testing.assert_allclose(coverage, log.likelihoods[0].score(X, group), 1e-5)
    added, after = log.walk(X, group, rule, coverage, begin=begin, incumbent=incumbent)
    return own + added, after


def quiet(likelihood: int, n_people: int, threshold: float = 0.5) -> LoggedPolicy:
    """Return a round that explored nobody."""
    none, one = np.zeros(N_GROUPS), np.ones(N_GROUPS)
    return LoggedPolicy(likelihood, none + threshold, ScoreWeighted(), one, none, one, n_people)
