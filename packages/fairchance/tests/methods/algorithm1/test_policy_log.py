"""The policy log: what it keeps and merges, and its walk against a slow one, person by person."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from fairchance.core.coverage import MeanPastScore, SummedAcceptance, SumOfG
from fairchance.core.sampling import fixed_size_draw
from fairchance.core.strategies import (
    EqualGroups,
    FromFunction,
    GroupShare,
    ScoreWeighted,
    Uniform,
)
from fairchance.methods.algorithm1.policy_log import LOG_COLUMNS, LoggedPolicy, PolicyLog
from fairchance.people.ids import keyed_bits, round_key
from fairchance.people.likelihoods import (
    ConstantLikelihood,
    LinearLikelihood,
)
from fairchance.people.store import PENDING, ApplicantRows, PeopleStore
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

FALSE_ALARM = 1e-6
COINS = 2.0**60  # ``others`` of a round that explored by coins


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_merging_rounds_that_draw_alike_changes_no_coverage(rule):
    X, group = people(300)
    loud = [policy for policy, _ in random_rounds("linear", BLIND[:1], 2)]
    rounds = [loud[0], *(quiet(1, n) for n in (5, 1, 30)), quiet(2, 7), loud[0], quiet(2, 4)]
    merged, apart = log_of("linear", rounds), log_of("linear", [])
    apart.policies.extend(rounds)
    assert (len(merged.policies), len(apart.policies)) == (3, 7)
    assert (merged.n_rounds, merged.n_people) == (apart.n_rounds, apart.n_people)
    looks = [log.look(X, group, rule, score_of=0) for log in (merged, apart)]
    assert np.array_equal(looks[0].known, looks[1].known)
    # A known applicant's coverage goes on by what f_i decides, in the order of the rounds.
    never = ~looks[0].known if isinstance(rule, SummedAcceptance) else slice(None)
    coverage = [log.coverage(X, group, rule)[never] for log in (merged, apart)]
    np.testing.assert_allclose(*coverage, 1e-12)
    if isinstance(rule, SummedAcceptance):
        own = [fast_walk(log, rule, X, group)[0][never] for log in (merged, apart)]
        np.testing.assert_allclose(*own, 1e-12)


LOUD = replace(quiet(1, 5), left=np.array([0.0, 0.0, 0.1]))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (quiet(1, 3), quiet(2, 3)),
        (quiet(1, 3), quiet(1, 3, threshold=0.6)),
        (quiet(1, 3), replace(quiet(1, 3), strategy=Uniform())),
        (quiet(1, 3), replace(quiet(1, 3), ramp=0.5)),
        (quiet(1, 3), replace(quiet(1, 3), follows="matched")),
        (LOUD, replace(LOUD, others=np.array([1.0, 1.0, 2.0]))),
        (LOUD, replace(LOUD, group_factor=np.array([1.0, 1.0, 2.0]))),
    ],
    ids=["likelihood", "threshold", "strategy", "ramp", "past", "size", "factor"],
)
def test_rounds_that_act_otherwise_are_kept_apart(first, second):
    log = log_of("linear", [])
    log.append(first)
    log.append(second)
    assert len(log.policies) == 2


def test_quiet_rounds_are_merged_until_they_are_final():
    log = log_of("linear", [quiet(1, 5), quiet(1, 5)])
    assert [one.n_people for one in log.policies] == [10]
    log.n_final = 1
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


@pytest.mark.parametrize("name", ["thresholds", "group_factor", "left", "others"])
def test_logged_arrays_are_read_only(name):
    with pytest.raises(ValueError, match="read-only"):
        getattr(quiet(1, 3), name)[0] = 0.1


def test_likelihoods_are_logged_once():
    first, second = likelihoods("linear")[:2]
    log = PolicyLog(first, 10)
    assert [log.add_likelihood(one) for one in (second, first, second)] == [1, 0, 1]
    equal = LinearLikelihood(second.coef.copy(), second.intercept)
    assert log.add_likelihood(equal) == 2


@pytest.mark.parametrize(
    "strategy", [ScoreWeighted(), GroupShare(), ScoreWeighted() * EqualGroups()], ids=repr
)
def test_applicants_are_accepted_as_often_as_logged(strategy):
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


def deciding(n_people: int, threshold: float) -> LoggedPolicy:
    """Return a policy that accepts scores from a threshold on and explores nobody."""
    unit, nothing = np.ones(1), np.zeros(1)
    return LoggedPolicy(1, nothing + threshold, Uniform(), unit, nothing, unit, n_people)


def exploring(n_people: int, probability: float) -> LoggedPolicy:
    """Return a policy that explores unknown applicants with a probability."""
    unit = np.ones(1)
    return LoggedPolicy(1, unit, Uniform(), unit, 2 * probability * unit, unit, n_people)


def rows_of(outcomes: list[int]) -> ApplicantRows:
    store, n = PeopleStore(1, LOG_COLUMNS), len(outcomes)
    bits, outcome = np.arange(n).astype(np.uint64), np.array(outcomes, np.int8)
    store.record(bits, np.ones(n, bool), 1, X=np.zeros((n, 1)), outcome=outcome)
    return store.parts[0]


def test_acceptance_is_the_mean_over_people_decided_on():
    log = PolicyLog(ConstantLikelihood(0.25), n_history=40)
    log.add_likelihood(ConstantLikelihood(0.6))
    rows, rule = rows_of([1, PENDING]), SummedAcceptance(0.3, reference_size=40)

    log.append(exploring(20, 0.5))  # w = .25 is not above .3: explored with probability ½
    log.update(rows, rule)
    assert rows["own"].tolist() == [10, 0]  # those without outcome are left for later
    assert rows["coverage"].tolist() == [0.5, 0]
    log.append(deciding(10, threshold=0.5))  # known now, and accepted
    log.append(deciding(30, threshold=0.7))  # known, and rejected
    log.update(rows, rule)
    assert rows["own"].tolist() == [10 + 10, 0]
    assert rows["walked"][0] == 3
    assert log.known(rows, rule).tolist() == [True, False]

    # Σ n_i·π_i = 20·½ + 10·1 + 30·0 of 60 people; with the history 40·¼ of 40 more.
    assert log.mean_acceptance(rows, own_rounds_only=True)[0] == pytest.approx(20 / 60)
    assert log.mean_acceptance(rows, own_rounds_only=False)[0] == pytest.approx(30 / 100)

    rows["outcome"][1] = 0  # a late outcome: the same rounds are walked at once
    log.update(rows, rule)
    assert rows["own"].tolist() == [20, 20]
    assert rows["past"].tolist() == [0.25, 0.25]
    assert rows["coverage"][1] == rows["coverage"][0] == pytest.approx(0.75)


def test_rounds_logged_after_an_update_count_too():
    """They may not be merged into a policy that is in a row's sums already."""
    rule, log, rows = SummedAcceptance(), PolicyLog(ConstantLikelihood(1.0), 10), rows_of([1])
    assert log.add_likelihood(ConstantLikelihood(1.0)) == 1
    for n_people in (10, 30, 20):
        log.append(deciding(n_people, 0.5))
        log.update(rows, rule)
    assert rows["own"].tolist() == [60]
    assert log.mean_acceptance(rows, own_rounds_only=True).tolist() == [1]


def alike_rounds(n_rounds: int, *, coins: bool, ramp: float, seed: int) -> list[LoggedPolicy]:
    """Return rounds with one f, whose draws differ in size, in group factors and in ``others``."""
    rng, rounds = np.random.default_rng(seed), []
    for _ in range(n_rounds):
        factor = np.ones(N_GROUPS) if coins else rng.uniform(0.9, 1.1, N_GROUPS)
        others = np.full(N_GROUPS, COINS) if coins else rng.uniform(2.5, 3.3, N_GROUPS)
        left = rng.uniform(0, 1, N_GROUPS) * rng.integers(2) * (others if coins else 4)
        quiet_one = quiet(1, int(rng.integers(1, 30)))
        more = {"group_factor": factor, "left": left, "others": others, "ramp": ramp}
        rounds.append(replace(quiet_one, **more))
    return rounds


def h(policies: list[LoggedPolicy], person: np.ndarray) -> np.ndarray:
    """Return the mean chance of being explored over applicants, by group and person's factor."""
    total = sum(policy.n_people for policy in policies)
    chances = []
    for policy in policies:
        g = person * policy.group_factor[:, None]
        ratio = policy.left[:, None] * g / (policy.others[:, None] + g)
        chances.append(policy.n_people / total * np.minimum(ratio, policy.most[:, None]))
    return np.sum(chances, axis=0)


@pytest.mark.parametrize("coins", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_merged_rounds_explore_at_most_as_often(seed, coins):
    """For every g, also far beyond the limits; exactly so with coins below the limits."""
    rounds = alike_rounds(8, coins=coins, ramp=1.0, seed=seed)
    merged = rounds[0]
    for policy in rounds[1:]:
        merged = merged.joined(policy)
    person = np.append(0, np.logspace(-6, 6, 400))
    apart, together = h(rounds, person), h([merged], person)
    assert (merged.n_rounds, merged.n_people) == (8, sum(one.n_people for one in rounds))
    assert np.all(together <= apart * (1 + 1e-12))
    below = person <= 0.7  # where no coin is certain
    assert np.all(together[:, below] >= apart[:, below] * (1 - 1e-12 if coins else 0.9))
    too_much = replace(merged, others=merged.others * 0.9)  # a control
    assert np.any(h([too_much], person) > apart * (1 + 1e-9))


@pytest.mark.parametrize("ramp", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("coins", [True, False])
def test_merging_claims_no_coverage_that_was_not_there(coins, ramp):
    X, group = people(2000)
    rule, d = SummedAcceptance(0.5), X[:, 1] > 0
    loud = [policy for policy, _ in random_rounds("linear", BLIND[:1], 2)]
    rounds = [*loud, *alike_rounds(12, coins=coins, ramp=ramp, seed=1), quiet(1, 30)]
    merged, apart = log_of("linear", rounds), log_of("linear", [])
    apart.policies.extend(rounds)
    assert (len(merged.policies), len(apart.policies)) == (3 if ramp == 1 else 4, 15)
    known = [log.look(X, group, rule, score_of=0, incumbent=d).known for log in (merged, apart)]
    assert np.all(known[0] <= known[1])
    assert 0.01 < known[0].mean() < 0.99
    assert known[0].mean() == known[1].mean() if coins else known[0].mean() > known[1].mean() - 0.05
    walked = [
        log.walk(X, group, rule, log.past_acceptance(X, group), incumbent=d)
        for log in (merged, apart)
    ]
    never = ~known[1]
    if coins:
        np.testing.assert_allclose(walked[0][0][never], walked[1][0][never], 1e-9)
        np.testing.assert_allclose(walked[0][1][never], walked[1][1][never], 1e-9)
    assert np.all(walked[0][1][never] <= walked[1][1][never] * (1 + 1e-12))
    # Applicants who become known on the way are accepted about as often.
    assert np.mean(np.abs(walked[0][0] - walked[1][0])) < 0.05 * apart.n_people


def test_merged_rounds_that_are_alike_are_walked_as_if_apart():
    """Then it is known in which of them an applicant became known."""
    X, group = people(2000)
    rule, one = SummedAcceptance(0.5), alike_rounds(9, coins=True, ramp=1.0, seed=4)[0]
    assert one.left.max() > 0
    rounds = [replace(one, n_people=20)] * 9
    merged, apart = log_of("linear", rounds), log_of("linear", [])
    apart.policies.extend(rounds)
    merged.first_batch = apart.first_batch = 20
    assert len(merged.policies) == 1
    walked = [fast_walk(log, rule, X, group) for log in (merged, apart)]
    on_the_way = (walked[1][1] > 0.5) & (merged.past_acceptance(X, group) < 0.5)
    assert on_the_way.mean() > 0.1
    np.testing.assert_allclose(walked[0], walked[1], 1e-9)


def test_the_last_round_is_remembered_by_itself():
    X, group = people(300)
    rule, rounds = SummedAcceptance(0.5), alike_rounds(6, coins=True, ramp=1.0, seed=2)
    merged, apart = log_of("linear", rounds), log_of("linear", [])
    for policy in rounds:
        apart.append(policy, merge=False)
    assert (len(merged.policies), len(apart.policies)) == (1, 6)
    assert merged.last is rounds[-1]
    found = [log.last_acceptance(X, group, rule) for log in (merged, apart)]
    np.testing.assert_allclose(*found, 1e-9)


RAMPS = {"full": (1.0,), "ramped": (1.0, 0.3, 0.9, 0.0)}


@pytest.mark.parametrize("ramps", RAMPS)
@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("strategies", [BLIND[:1], BLIND, READING], ids=["one", "blind", "reading"])
@pytest.mark.parametrize("kind", ["linear", "estimators"])
def test_against_the_slow_walk(kind, strategies, dtype, rule, ramps):
    X, group = people(80, dtype)
    rounds = [
        (replace(policy, ramp=RAMPS[ramps][t % len(RAMPS[ramps])]), factor)
        for t, (policy, factor) in enumerate(random_rounds(kind, strategies))
    ]
    d = X[:, 1] > 0.8 if ramps == "ramped" and strategies is not READING else None
    slow = slow_walk(kind, rounds, rule, X, group, d)
    log = log_of(kind, [policy for policy, _ in rounds])
    tolerance = 1e-12 if dtype is np.float64 else 1e-5
    clear = slow.margin > 10 * tolerance
    assert clear.mean() > 0.95

    own, coverage = fast_walk(log, rule, X, group, incumbent=d)
    np.testing.assert_allclose(own[clear], slow.own[clear], tolerance, 50 * tolerance)
    np.testing.assert_allclose(coverage[clear], slow.coverage[clear], tolerance, 50 * tolerance)
    assert np.array_equal(log.coverage(X, group, rule, d), coverage)

    look = log.look(X, group, rule, score_of=2, incumbent=d)
    known = coverage > rule.level(log.n_rounds)
    edge = 0.1 if ramps == "full" else 0.01
    assert edge < known.mean() < 1 - edge  # both regions are there
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
def test_each_applicant_is_judged_alone(kind, rule):
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


@pytest.mark.parametrize("rows", [[150, 3, 77], [5, 9, 7], [6, 5, 7], [40, 41, 42]], ids=repr)
def test_rows_keep_their_order(rows):
    X, group = people(200)
    log = log_of("linear", [policy for policy, _ in random_rounds("linear", BLIND)])
    coverage, rows = np.linspace(0.1, 0.6, 200), np.array(rows)
    found = log.walk(X, group, RULES[0], coverage[rows], rows)
    alone = fast_walk(log, RULES[0], X[rows], group[rows], 0, (np.zeros(3), coverage[rows]))
    np.testing.assert_allclose(found, alone)


@pytest.mark.parametrize("rule", [SummedAcceptance(0.5), SumOfG(1.5)], ids=repr)
def test_known_applicants_stay_known(rule):
    X, group = people(500)
    log, before = log_of("linear", []), np.zeros(500, bool)
    for policy, _ in random_rounds("linear", BLIND):
        log.append(policy)
        known = log.look(X, group, rule, score_of=0).known
        assert np.all(known >= before)
        before = known


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
def test_an_applicant_exactly_at_tau_is_not_known(likelihood, rule, own, known):
    """Everybody scores ½, which is the cut too, and is explored with ¼ by a round of eight."""
    X, group = np.zeros((3, 2)), np.zeros(3, np.intp)
    one = np.ones(1)
    policy = LoggedPolicy(0, 0.5 * one, ScoreWeighted(), one, one, 1.5 * one, 8)
    log, found = PolicyLog(likelihood, N_HISTORY), []
    for _ in range(2):
        found.append(log.look(X, group, rule, score_of=0).known.tolist())
        log.append(policy, merge=rule.needs == "acceptance")
    found.append(log.look(X, group, rule, score_of=0).known.tolist())
    assert found == [[one] * 3 for one in known]
    assert fast_walk(log, rule, X, group)[0].tolist() == [own] * 3


def test_zero_or_nan_from_a_function_means_no_chance():
    """It need only be positive for the candidates of its own round."""
    strategy = FromFunction(lambda X, score, group: X[:, 0])
    X, one = np.array([[np.nan, 0], [0, 0], [-1, 0], [0.5, 0]]), np.ones(1)
    log, group = PolicyLog(ConstantLikelihood(0.1), N_HISTORY), np.zeros(4, np.intp)
    log.append(LoggedPolicy(0, 0.5 * one, strategy, one, one, one, 8))
    own, coverage = fast_walk(log, SummedAcceptance(0.9, reference_size=8), X, group)
    np.testing.assert_allclose(own, [0, 0, 0, 8 / 3], atol=1e-20)
    np.testing.assert_allclose(coverage, 0.1 + own / 8)


def test_applicants_leave_the_exploit_region_under_the_mean():
    log, one = log_of("linear", []), np.zeros(1, np.intp)
    log.likelihoods[:2] = [ConstantLikelihood(0.9), ConstantLikelihood(0.2)]
    X, rule = np.zeros((1, N_FEATURES)), MeanPastScore(0.5)
    known = []
    for t in range(4):
        known.append(bool(log.look(X, one, rule, score_of=0).known[0]))
        log.policies.append(quiet(1, n_people=t + 1))
    assert known == [True, True, False, False]  # means .9, .55, .43, .375


def test_known_applicants_get_their_decision():
    X, group = people(200)
    log = log_of("linear", [quiet(1, 7, threshold=0.4)])
    own, coverage = fast_walk(log, SummedAcceptance(0.0), X, group)  # everybody is known
    score = likelihoods("linear")[1].score(X, group)
    assert np.array_equal(own, 7.0 * (score >= 0.4))
    past = likelihoods("linear")[0].score(X, group)
    np.testing.assert_allclose(coverage, past + own / 100)
