"""The walk over past rounds against a slow one, person by person, as the method says it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from secondlook import past_rounds
from secondlook.block_scores import Bar, LinearScores, Stack
from secondlook.coverage import CoverageRule, MeanPastScore, SummedAcceptance, SumOfG
from secondlook.errors import InputError
from secondlook.ids import keyed_bits, round_key
from secondlook.likelihoods import (
    ConstantLikelihood,
    EstimatorLikelihood,
    GroupedLikelihood,
    Likelihood,
    LinearLikelihood,
)
from secondlook.policies import LoggedPolicy, PolicyLog
from secondlook.sampling import fixed_size_draw
from secondlook.strategies import (
    EqualGroups,
    FromFunction,
    GroupShare,
    ScoreWeighted,
    Strategy,
    Uniform,
)

N_GROUPS, N_HISTORY, N_FEATURES = 3, 50, 4
FALSE_ALARM = 1e-6

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
    kind: str, rounds: list[tuple[LoggedPolicy, Factor]], rule: CoverageRule, X: Any, group: Any
) -> Walked:
    """Walk the rounds for one person after the other, in Python's numbers."""
    walked = Walked(np.zeros(len(X)), np.zeros(len(X)), np.full(len(X), np.inf))
    for i, z in enumerate(group.tolist()):
        scores = [float(one.score(X[i : i + 1], group[i : i + 1])[0]) for one in likelihoods(kind)]
        n_ref = getattr(rule, "reference_size", None) or max(100, rounds[0][0].n_people)
        w, own, margins = scores[0], 0.0, []
        for t, (policy, factor) in enumerate(rounds):
            score = scores[policy.likelihood]
            g = factor(X[i].astype(float), score, z) * policy.group_factor[z]
            mean_of = t + 1 if isinstance(rule, MeanPastScore) else 1
            margins += [abs(w / mean_of - rule.threshold), abs(score - policy.thresholds[z])]
            if w / mean_of > rule.threshold:
                pi = float(score >= policy.thresholds[z])
            else:
                pi = min(1.0, policy.left[z] * g / (policy.others[z] + g))
            own += policy.n_people * pi
            if isinstance(rule, SummedAcceptance):
                w += policy.n_people / n_ref * pi
            else:
                w += score if isinstance(rule, MeanPastScore) else g
        last = len(rounds) + 1 if isinstance(rule, MeanPastScore) else 1
        margins.append(abs(w / last - rule.threshold))
        walked.own[i], walked.coverage[i], walked.margin[i] = own, w, min(margins)
    return walked


def fast_walk(
    log: PolicyLog, rule: CoverageRule, X: Any, group: Any, begin: int = 0, start: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return Σ n_i·π_i and w by ``catch_up``."""
    own, coverage = (np.zeros(len(X)), None) if start is None else start
    rows = np.arange(len(X))
    if coverage is None:
        past, coverage = np.empty(len(X)), np.empty(len(X))
        log.start(X, group, rows, past, coverage)
        np.testing.assert_allclose(past, log.likelihoods[0].score(X, group), 1e-5)
    log.catch_up(X, group, rule, begin=begin, own=own, coverage=coverage, rows=rows)
    return own, coverage


@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("strategies", [BLIND[:1], BLIND, READING], ids=["one", "blind", "reading"])
@pytest.mark.parametrize("kind", ["linear", "estimators"])
def test_against_the_slow_walk(kind, strategies, dtype, rule):
    X, group = people(80, dtype)
    rounds = random_rounds(kind, strategies)
    slow = slow_walk(kind, rounds, rule, X, group)
    log = log_of(kind, [policy for policy, _ in rounds])
    tolerance = 1e-12 if dtype is np.float64 else 1e-5
    clear = slow.margin > 10 * tolerance
    assert clear.mean() > 0.95

    own, coverage = fast_walk(log, rule, X, group)
    np.testing.assert_allclose(own[clear], slow.own[clear], tolerance, 50 * tolerance)
    np.testing.assert_allclose(coverage[clear], slow.coverage[clear], tolerance, 50 * tolerance)
    assert np.array_equal(log.coverage(X, group, rule), coverage)

    look = log.look(X, group, rule, score_of=2)
    known = coverage > rule.level(log.n_rounds)
    assert 0.1 < known.mean() < 0.9  # both regions are there
    assert np.array_equal(look.known[clear], known[clear])
    for position in (0, 2):
        score = log.look(X, group, rule, score_of=position).score
        # Anything but a linear model scores in double precision, so no tie is rounded apart.
        assert score.dtype == (dtype if kind == "linear" else np.float64)
        expected = likelihoods(kind)[position].score(X, group)
        np.testing.assert_allclose(score, expected, 10 * tolerance)


@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize("kind", ["linear", "estimators"])
def test_in_steps_as_at_once(kind, rule):
    X, group = people(300)
    rounds = [policy for policy, _ in random_rounds(kind, READING)]
    at_once = fast_walk(log_of(kind, rounds), rule, X, group)
    log = log_of(kind, [])
    so_far = fast_walk(log, rule, X, group)
    for begin, end in ((0, 1), (1, 4), (4, 6), (6, 9)):
        for policy in rounds[begin:end]:
            log.append(policy)
        so_far = fast_walk(log, rule, X, group, begin, so_far)
    np.testing.assert_allclose(so_far, at_once, 1e-12, 1e-12)


@pytest.mark.parametrize("kind", ["linear", "estimators"])
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_a_person_is_judged_alone(kind, rule):
    X, group = people(5000)  # several blocks
    log = log_of(kind, [policy for policy, _ in random_rounds(kind, BLIND)])
    own, coverage = fast_walk(log, rule, X, group)
    some = np.r_[np.arange(2040, 2060), np.arange(4990, 5000)]
    np.testing.assert_allclose(
        fast_walk(log, rule, X[some], group[some]), (own[some], coverage[some]), 1e-12
    )
    look, part = (log.look(X[rows], group[rows], rule, score_of=1) for rows in (slice(None), some))
    assert np.array_equal(look.known[some], part.known)
    np.testing.assert_allclose(look.score[some], part.score, 1e-12)


@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize("kind", ["linear", "estimators"])
def test_what_was_made_ready_is_made_again_when_it_changes(kind, rule):
    (X, group), (single, _) = people(60), people(60, np.float32)
    used = PolicyLog(likelihoods(kind)[0], N_HISTORY)
    rounds = [policy for policy, _ in random_rounds(kind, BLIND)]
    for number, policy in enumerate([*rounds, quiet(1, 5), quiet(1, 3)], start=1):
        for likelihood in likelihoods(kind):
            used.add_likelihood(likelihood)
        used.append(policy)
        fresh = log_of(kind, [*rounds, quiet(1, 5), quiet(1, 3)][:number])
        for features in (X, single):
            looks = [log.look(features, group, rule, score_of=1) for log in (used, fresh)]
            assert np.array_equal(looks[0].known, looks[1].known)
            assert np.array_equal(looks[0].score, looks[1].score)
            walks = [fast_walk(log, rule, features, group) for log in (used, fresh)]
            np.testing.assert_array_equal(*walks)
    assert used.n_rounds == len(used.policies) + 1  # the quiet rounds are one policy


@pytest.mark.parametrize("rows", [[150, 3, 77], [5, 9, 7], [6, 5, 7], [40, 41, 42]], ids=repr)
def test_only_the_rows_asked_for_change(rows):
    X, group = people(200)
    log = log_of("linear", [policy for policy, _ in random_rounds("linear", BLIND)])
    own, coverage = np.full(200, -1.0), np.full(200, 0.3)
    rows = np.array(rows)
    log.catch_up(X, group, RULES[0], begin=0, own=own, coverage=coverage, rows=rows)
    others = np.setdiff1d(np.arange(200), rows)
    assert np.all(own[others] == -1)
    assert np.all(coverage[others] == 0.3)
    alone = fast_walk(log, RULES[0], X[rows], group[rows], 0, (np.full(3, -1.0), np.full(3, 0.3)))
    np.testing.assert_allclose((own[rows], coverage[rows]), alone)


@pytest.mark.parametrize("rule", [SummedAcceptance(0.5), SumOfG(1.5)], ids=repr)
def test_nobody_becomes_unknown(rule):
    X, group = people(500)
    log, before = log_of("linear", []), np.zeros(500, bool)
    for policy, _ in random_rounds("linear", BLIND):
        log.append(policy)
        known = log.look(X, group, rule, score_of=0).known
        assert np.all(known >= before)
        before = known


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_most_telling_rounds_speak_for_the_others_only_where_they_can(dtype, monkeypatch):
    X, group = people(300, dtype)
    X *= 4  # so that some have hardly any chance
    rule, rounds = SummedAcceptance(0.5), random_rounds("linear", BLIND[:1])
    for t, (policy, factor) in enumerate(rounds):
        few = {"left": np.ones(N_GROUPS), "others": np.full(N_GROUPS, 0.05)} if t in (4, 7) else {}
        rounds[t] = replace(policy, n_people=100, **few), factor
    log = log_of("linear", [policy for policy, _ in rounds])
    past = log._rounds_of(rule, np.dtype(dtype))
    assert sorted(past.most_telling().tolist()) == [4, 7]

    ((_, scores),) = log._scorer_of(X).blocks(X, group)
    start = scores.score(0)
    known, unsure = past.known_for_sure(scores, start, past.most_telling())
    assert 0 < unsure.size < np.sum(start <= 0.5)  # they tell of some, and not of all
    assert known[np.setdiff1d(np.arange(300), unsure)].all()

    slow = slow_walk("linear", rounds, rule, X, group)
    clear = slow.margin > 1e-4
    expected = slow.coverage > 0.5
    assert not expected[unsure].all()
    assert expected[unsure].any()
    assert np.array_equal(log.look(X, group, rule, score_of=1).known[clear], expected[clear])
    # A control: rounds that spoke before the level is reached would be wrong.
    monkeypatch.setattr(past_rounds, "_FOR_SURE", 0.3)
    assert not np.array_equal(log.look(X, group, rule, score_of=1).known[clear], expected[clear])


def test_no_round_speaks_for_others_where_coverage_is_no_sum_of_chances():
    X, _ = people(10)
    policies = [replace(policy, others=np.zeros(3)) for policy, _ in random_rounds("linear", BLIND)]
    for rule in (MeanPastScore(), SumOfG()):
        log = log_of("linear", policies)
        assert log._rounds_of(rule, X.dtype).most_telling().size == 0


def mean_of_models(
    seed: int, n_models: int = 6, apart: float = 1.0
) -> tuple[np.ndarray, np.ndarray, Stack]:
    """Return halved coefficients with intercepts, weights, and the stack of these models."""
    rng = np.random.default_rng([6, seed])
    one = rng.normal(size=(N_FEATURES + 1, 1))
    half = one + apart * rng.normal(size=(N_FEATURES + 1, n_models))
    return half, rng.integers(1, 5, n_models).astype(float), Stack(half[:-1], half[-1])


@pytest.mark.parametrize("seed", range(20))
def test_the_mean_of_models_is_off_by_no_more_than_their_spread(seed):
    half, weights, stack = mean_of_models(seed)
    X = np.random.default_rng(seed).normal(size=(500, N_FEATURES))
    bar = Bar.of(weights, 1.0, stack)
    middle = X @ bar.mean + bar.intercept
    h = X @ half[:-1] + half[-1]
    np.testing.assert_allclose(middle, h @ weights / weights.sum())
    q = ((h - middle[:, None]) ** 2) @ weights
    error = q / np.sqrt(27) / weights.sum() * 2
    np.testing.assert_allclose(LinearScores(X, np.zeros(500, np.intp), stack)._error(bar), error)
    assert np.all(error <= X**2 @ bar.bound + bar.least_error)
    exact = (1 / (1 + np.exp(-2 * h))) @ weights
    assert np.all(np.abs(exact - weights.sum() * (1 + np.tanh(middle)) / 2) <= q / np.sqrt(27))


def test_the_spread_of_models_does_not_depend_on_the_units_of_features():
    _, weights, stack = mean_of_models(0)
    units = 10.0 ** np.linspace(-5, 3, N_FEATURES)
    X = np.random.default_rng(0).normal(size=(500, N_FEATURES))
    bar = Bar.of(weights, 1.0, stack)
    other = Bar.of(weights, 1.0, Stack(stack.half_coef / units[:, None], stack.half_intercept))
    np.testing.assert_allclose(X**2 @ bar.bound, (X * units) ** 2 @ other.bound)
    assert other.least_error == pytest.approx(bar.least_error)


def test_models_that_share_a_coefficient_are_no_further_apart_for_it():
    half, weights, _ = mean_of_models(1)
    half[0] = 0.25  # the mean of which is exact
    bar = Bar.of(weights, 1.0, Stack(half[:-1], half[-1]))
    assert bar.bound[0] == pytest.approx(0, abs=1e-30)
    assert np.isfinite(bar.bound).all()
    assert bar.bound[1] > 0


def test_no_smaller_bound_on_the_error_of_the_mean_holds():
    """Two models close to each other, where tanh bends most, reach it."""
    h, d = np.arctanh(1 / np.sqrt(3)), 1e-3
    exact = np.sum(1 / (1 + np.exp(-2 * (h + np.array([d, -d])))))
    assert abs(exact - (1 + np.tanh(h))) / (2 * d**2 / np.sqrt(27)) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("apart", [0.3, 1.0])
def test_who_exceeds_a_level_does_not_depend_on_short_cuts(dtype, apart):
    half, weights, stack = mean_of_models(30, apart=apart)
    stack = Stack(half[:-1].astype(dtype), half[-1].astype(dtype))
    X, group = (
        np.random.default_rng(31).normal(size=(20_000, N_FEATURES)),
        np.zeros(20_000, np.intp),
    )
    X[0, 0], X = 1e38, X.astype(dtype)  # its square is beyond single precision
    h = X.astype(float) @ half[:-1] + half[-1]
    total = 0.5 * (1 + np.tanh(h)) @ weights
    by_mean = 0.5 * weights.sum() * (1 + np.tanh(h @ weights / weights.sum()))
    tolerance = 1e-9 if dtype is np.float64 else 1e-4
    for level in np.quantile(total, [0.1, 0.5, 0.9]):
        scores, bar = LinearScores(X, group, stack), Bar.of(weights, float(level), stack)
        exceeds = scores.exceeds(bar)
        clear = np.abs(total - level) > tolerance
        assert clear.mean() > 0.99
        np.testing.assert_array_equal(exceeds[clear], total[clear] > level)
        wrong = (by_mean > level) != (total > level)
        assert wrong.any()  # the mean alone would not do
        with_spread = scores._exceeds_by_mean(bar, scores._error(bar))
        assert with_spread[1].size < 19_000
        for quickly, doubtful in (with_spread, scores.exceeds_for_sure(bar)):
            sure = np.setdiff1d(np.arange(20_000), doubtful)
            assert sure.size > 1000 or apart == 1
            np.testing.assert_array_equal(quickly[sure], exceeds[sure])
            assert not wrong[np.intersect1d(sure, np.flatnonzero(clear))].any()


def test_people_leave_the_exploit_region_under_the_mean():
    log, one = log_of("linear", []), np.zeros(1, np.intp)
    log.likelihoods[:2] = [ConstantLikelihood(0.9), ConstantLikelihood(0.2)]
    X, rule = np.zeros((1, N_FEATURES)), MeanPastScore(0.5)
    known = []
    for t in range(4):
        known.append(bool(log.look(X, one, rule, score_of=0).known[0]))
        log.policies.append(quiet(1, n_people=t + 1))
    assert known == [True, True, False, False]  # means .9, .55, .43, .375


def quiet(likelihood: int, n_people: int, threshold: float = 0.5) -> LoggedPolicy:
    """Return a round that explored nobody."""
    none, one = np.zeros(N_GROUPS), np.ones(N_GROUPS)
    return LoggedPolicy(likelihood, none + threshold, ScoreWeighted(), one, none, one, n_people)


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_merging_quiet_rounds_changes_no_coverage(rule):
    X, group = people(300)
    loud = [policy for policy, _ in random_rounds("linear", BLIND[:1], 2)]
    rounds = [loud[0], *(quiet(1, n) for n in (5, 1, 30)), quiet(2, 7), loud[0], quiet(2, 4)]
    merged, apart = log_of("linear", rounds), log_of("linear", [])
    apart.policies.extend(rounds)
    assert (len(merged.policies), len(apart.policies)) == (5, 7)
    assert (merged.n_rounds, merged.n_people) == (apart.n_rounds, apart.n_people)
    coverage = [log.coverage(X, group, rule) for log in (merged, apart)]
    np.testing.assert_allclose(*coverage, 1e-12)
    looks = [log.look(X, group, rule, score_of=0) for log in (merged, apart)]
    assert np.array_equal(looks[0].known, looks[1].known)
    if isinstance(rule, SummedAcceptance):
        own = [fast_walk(log, rule, X, group)[0] for log in (merged, apart)]
        np.testing.assert_allclose(*own, 1e-12)


LOUD = replace(quiet(1, 5), left=np.array([0.0, 0.0, 0.1]))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (quiet(1, 3), quiet(2, 3)),
        (quiet(1, 3), quiet(1, 3, threshold=0.6)),
        (quiet(1, 3), replace(quiet(1, 3), group_factor=np.arange(1.0, 4))),
        (quiet(1, 3), LOUD),
        (LOUD, quiet(1, 3)),
        (LOUD, LOUD),
    ],
    ids=["likelihood", "threshold", "factor", "explores", "explored", "both"],
)
def test_rounds_that_act_otherwise_are_kept_apart(first, second):
    log = log_of("linear", [])
    log.append(first)
    log.append(second)
    assert len(log.policies) == 2


def test_quiet_rounds_are_merged_until_somebody_was_walked_past_them():
    log = log_of("linear", [quiet(1, 5), quiet(1, 5)])
    assert [one.n_people for one in log.policies] == [10]
    log.seal()
    log.append(quiet(1, 3))
    log.append(quiet(1, 4))
    log.append(quiet(1, 2), merge=False)
    assert [one.n_people for one in log.policies] == [10, 7, 2]


def test_a_score_at_the_threshold_is_accepted_in_the_log_as_in_the_decision():
    """In single precision too, where .3 and .7 are rounded to different sides."""
    X, group = np.zeros((1, 1), np.float32), np.zeros(1, np.intp)
    for value in (0.3, 0.7):
        likelihood, cut = ConstantLikelihood(value), np.array([value])
        log = PolicyLog(likelihood, 1)
        one = np.ones(1)
        log.append(LoggedPolicy(0, cut, ScoreWeighted(), one, np.zeros(1), one, 100))
        rule = SummedAcceptance(threshold=0.1)
        own, _ = fast_walk(log, rule, X, group)
        look = log.look(X, group, rule, score_of=0)
        assert own[0] == 100
        assert look.score >= cut.astype(look.score.dtype)
        assert not log.look(X, group, SummedAcceptance(value + 1), score_of=0).known
        assert log.coverage(X, group, rule) == value + 1


def test_likelihoods_are_logged_once():
    first, second = likelihoods("linear")[:2]
    log = PolicyLog(first, 10)
    assert [log.add_likelihood(one) for one in (second, first, second)] == [1, 0, 1]
    equal = LinearLikelihood(second.coef.copy(), second.intercept)
    assert log.add_likelihood(equal) == 2


@pytest.mark.parametrize(
    "strategy", [ScoreWeighted(), GroupShare(), ScoreWeighted() * EqualGroups()], ids=repr
)
def test_people_are_accepted_as_often_as_the_log_says(strategy):
    n, n_draw, n_redraws = 14, 5, 4000
    X, group = people(n, seed=3)
    log, rule = log_of("linear", []), SummedAcceptance(10.0)  # nobody is known
    look = log.look(X, group, rule, score_of=1)
    counts = np.bincount(group, minlength=N_GROUPS).astype(float)
    factor = strategy.group_factor(counts, counts)
    size = strategy.person_factor(None, look.score, group) * factor[group]
    accepted = np.zeros(n, int)
    for t in range(n_redraws):
        bits = keyed_bits(np.arange(n, dtype=np.uint64), round_key(0, t, 1))
        shares, start = strategy.group_shares(counts), round_key(0, t, 2)
        draw = fixed_size_draw(size, n_draw, bits, start, group, N_GROUPS, shares)
        accepted += draw.drawn
    half = np.full(N_GROUPS, 0.5)
    log.append(LoggedPolicy(1, half, strategy, factor, draw.left, draw.others, n))
    logged = fast_walk(log, rule, X, group)[0] / n
    assert logged == pytest.approx(draw.chance(size, group))
    # For people of the batch themselves the log is right up to one person's share of the draw.
    pi = draw.probability
    assert np.max(np.abs(logged - pi)) < 0.2
    assert logged.sum() == pytest.approx(n_draw, abs=1)
    tails = binom.cdf(accepted, n_redraws, pi), binom.sf(accepted - 1, n_redraws, pi)
    assert np.min(tails) > FALSE_ALARM / (2 * n)
    off = np.clip(pi + np.where(np.arange(n) % 2, 0.06, -0.06), 0.01, 0.99)
    assert np.min(binom.cdf(accepted, n_redraws, off)) < FALSE_ALARM / (2 * n)  # it can fail


def test_known_people_get_their_decision():
    X, group = people(200)
    log = log_of("linear", [quiet(1, 7, threshold=0.4)])
    own, coverage = fast_walk(log, SummedAcceptance(0.0), X, group)  # everybody is known
    score = likelihoods("linear")[1].score(X, group)
    assert np.array_equal(own, 7.0 * (score >= 0.4))
    past = likelihoods("linear")[0].score(X, group)
    np.testing.assert_allclose(coverage, past + own / 100)


@pytest.mark.parametrize("rule", [SummedAcceptance, MeanPastScore, SumOfG])
@pytest.mark.parametrize("wrong", [-0.1, np.nan, np.inf])
def test_tau_is_a_number(rule, wrong):
    with pytest.raises(InputError, match=rf"threshold \(τ\) must be a number ≥ 0, got {wrong}"):
        rule(wrong)


def test_reference_size_is_positive():
    with pytest.raises(InputError, match="reference_size must be 1 or more, got 0"):
        SummedAcceptance(reference_size=0)


@pytest.mark.parametrize(
    ("sizes", "reference", "precision"),
    [
        ([200, 400, 1000], 200, np.float32),
        ([200, 401, 1000], 200, np.float64),  # 401/200 is no whole number
        ([2**24, 1, 1], 1, np.float64),  # and this sum is none that single precision has
    ],
)
def test_sums_of_whom_every_round_accepts_or_rejects_are_exact(sizes, reference, precision):
    policies = [quiet(0, n_people=n) for n in sizes]
    rule = SummedAcceptance(reference_size=reference)
    rounds = past_rounds.PastRounds.of(policies, sizes[0], rule, np.dtype(np.float64))
    reached = np.array(list(itertools.product([False, True], repeat=3))).T
    own, more = rounds.accumulate_known(reached)
    assert rounds._people_and_weights.dtype == precision
    assert own.dtype == more.dtype == np.float64
    for i, told in enumerate(reached.T):
        assert own[i] == sum(n for n, one in zip(sizes, told, strict=True) if one)
        assert more[i] == pytest.approx(own[i] / reference, rel=1e-15)
