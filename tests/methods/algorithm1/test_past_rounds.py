"""The walk over past rounds against a slow one, person by person."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from logged_rounds import (
    BLIND,
    N_FEATURES,
    N_GROUPS,
    N_HISTORY,
    READING,
    RULES,
    fast_walk,
    likelihoods,
    log_of,
    people,
    quiet,
    random_rounds,
    slow_walk,
)
from secondlook.core.coverage import MeanPastScore, SummedAcceptance, SumOfG
from secondlook.core.strategies import FromFunction, ScoreWeighted
from secondlook.methods.algorithm1 import past_rounds
from secondlook.methods.algorithm1.policy_log import LoggedPolicy, PolicyLog
from secondlook.people.likelihoods import ConstantLikelihood, LinearLikelihood


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
def test_rows_are_answered_for_in_their_order(rows):
    X, group = people(200)
    log = log_of("linear", [policy for policy, _ in random_rounds("linear", BLIND)])
    coverage, rows = np.linspace(0.1, 0.6, 200), np.array(rows)
    found = log.catch_up(X, group, RULES[0], begin=0, coverage=coverage, rows=rows)
    np.testing.assert_array_equal(coverage, np.linspace(0.1, 0.6, 200))
    alone = fast_walk(log, RULES[0], X[rows], group[rows], 0, (np.zeros(3), coverage[rows]))
    np.testing.assert_allclose(found, alone)


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


@pytest.mark.parametrize(
    ("rule", "own", "known"),
    [
        (SummedAcceptance(0.5, reference_size=8), 10, [False, True, True]),
        (SummedAcceptance(0.75, reference_size=8), 4, [False, False, True]),
        (MeanPastScore(0.5), 4, [False, False, False]),
        (SumOfG(0.5), 10, [False, True, True]),
        (SumOfG(1.0), 4, [False, False, True]),
    ],
    ids=repr,
)
@pytest.mark.parametrize(
    "likelihood", [LinearLikelihood(np.zeros(2), 0.0), ConstantLikelihood(0.5)], ids=repr
)
def test_whoever_is_exactly_at_tau_is_not_known(likelihood, rule, own, known):
    """Everybody scores ½, which is the cut too, and is explored with ¼ by a round of eight."""
    X, group = np.zeros((3, 2)), np.zeros(3, np.intp)
    one = np.ones(1)
    policy = LoggedPolicy(0, 0.5 * one, ScoreWeighted(), one, one, 1.5 * one, 8)
    log, found = PolicyLog(likelihood, N_HISTORY), []
    for _ in range(2):
        found.append(log.look(X, group, rule, score_of=0).known.tolist())
        log.append(policy)
    found.append(log.look(X, group, rule, score_of=0).known.tolist())
    assert found == [[one] * 3 for one in known]
    assert fast_walk(log, rule, X, group)[0].tolist() == [own] * 3


def test_whom_a_function_gives_nothing_or_nonsense_had_no_chance():
    """It need only be positive for the candidates of its own round."""
    strategy = FromFunction(lambda X, score, group: X[:, 0])
    X, one = np.array([[np.nan, 0], [0, 0], [-1, 0], [0.5, 0]]), np.ones(1)
    log, group = PolicyLog(ConstantLikelihood(0.1), N_HISTORY), np.zeros(4, np.intp)
    log.append(LoggedPolicy(0, 0.5 * one, strategy, one, one, one, 8))
    own, coverage = fast_walk(log, SummedAcceptance(0.9, reference_size=8), X, group)
    np.testing.assert_allclose(own, [0, 0, 0, 8 / 3], atol=1e-20)
    np.testing.assert_allclose(coverage, 0.1 + own / 8)


def test_people_leave_the_exploit_region_under_the_mean():
    log, one = log_of("linear", []), np.zeros(1, np.intp)
    log.likelihoods[:2] = [ConstantLikelihood(0.9), ConstantLikelihood(0.2)]
    X, rule = np.zeros((1, N_FEATURES)), MeanPastScore(0.5)
    known = []
    for t in range(4):
        known.append(bool(log.look(X, one, rule, score_of=0).known[0]))
        log.policies.append(quiet(1, n_people=t + 1))
    assert known == [True, True, False, False]  # means .9, .55, .43, .375


def test_known_people_get_their_decision():
    X, group = people(200)
    log = log_of("linear", [quiet(1, 7, threshold=0.4)])
    own, coverage = fast_walk(log, SummedAcceptance(0.0), X, group)  # everybody is known
    score = likelihoods("linear")[1].score(X, group)
    assert np.array_equal(own, 7.0 * (score >= 0.4))
    past = likelihoods("linear")[0].score(X, group)
    np.testing.assert_allclose(coverage, past + own / 100)


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
