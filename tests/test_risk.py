"""Limits on exploration: exact draws, money never exceeded, and nothing promised of the barred."""

from __future__ import annotations

import copy
import runpy
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import binom, binomtest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from certified.known_truth import ALPHA, start, too_many
from secondlook import (
    CertifiedClassifier,
    EqualGroups,
    FdrBudget,
    GroupShare,
    PartialFeedbackClassifier,
    ScoreWeighted,
    Uniform,
    load,
    save,
)
from secondlook.coverage import SummedAcceptance, SumOfG
from secondlook.errors import InputError
from secondlook.evidence import values
from secondlook.exploration import draw_explored, find_candidates
from secondlook.floors import Floor
from secondlook.ids import id_bits
from secondlook.intake import Batch
from secondlook.ladders import Ladder, Reach, Seen
from secondlook.likelihoods import LinearLikelihood
from secondlook.rankings import Ranking
from secondlook.risk import Above, Below, Column, Limited, OneOf, Rule
from secondlook.simulate.people import People
from secondlook.simulate.populations import Lender, draw_applicants
from secondlook.simulate.run import run
from secondlook.strategies import FromFunction, Strategy
from small_worlds import lender_world

YOUNG = Below(0, -0.5)  # the first column of these worlds


# Rules.

AGES = np.array([[17.0, 1], [18, 2], [19, 3], [np.nan, 2]])


@pytest.mark.parametrize(
    ("rule", "named", "excluded"),
    [
        (Below(0, 18), Below("age", 18), [True, False, False, True]),
        (Above(0, 18), Above("age", 18), [False, False, True, True]),
        (OneOf(1, [2, 7]), OneOf("purpose", (2, 7)), [False, True, False, True]),
        (OneOf(1, ()), OneOf("purpose", ()), [False] * 4),
        (
            Below(0, 18) | OneOf(1, (3,)),
            Below("age", 18) | OneOf("purpose", (3,)),
            [True, False, True, True],
        ),
    ],
    ids=repr,
)
def test_rules_exclude_whom_they_name_and_whom_they_cannot_judge(rule, named, excluded):
    names = ("age", "purpose")
    assert rule.excludes(AGES).tolist() == excluded
    assert rule.for_columns(names) == rule == named.for_columns(names)
    for frame in (pd.DataFrame(AGES, columns=names), pl.DataFrame(AGES, schema=list(names))):
        assert rule.excludes(frame).tolist() == excluded
        assert named.excludes(frame).tolist() == excluded


def test_words_in_raw_columns():
    frame = pd.DataFrame({"trade": ["smith", None, "baker"]})
    assert OneOf("trade", ("smith",)).excludes(frame).tolist() == [True, True, False]
    with pytest.raises(InputError, match=r"numbers are needed .* use OneOf for words"):
        Below("trade", 3).excludes(frame)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Limited(max_risk=1.0), r"max_risk .* in \[0, 1\), or None for no cap, got 1.0"),
        (lambda: Limited(max_risk=np.nan), "max_risk .* got nan"),
        (lambda: Limited(exclude=3), "exclude must be a Rule .* or a function of X, got 3"),
        (lambda: Limited(exclude=Below), "exclude must be a Rule .* got <class"),
        (lambda: Limited(exposure=10), "go together.*got exposure=10 and amount=None"),
        (lambda: Limited(amount=10), "go together.*got exposure=None and amount=10"),
        (lambda: Limited(exposure=0, amount=1), "exposure .* positive number, got 0"),
        (lambda: Limited(exposure=np.inf, amount=1), "exposure .* positive number, got inf"),
        (lambda: Limited(exposure=9, amount=-1), "amounts are money .* got -1.0"),
        (lambda: Limited(exposure=9, amount=[1]), "amount must be a number, the name of a column"),
        (lambda: Limited("uniform"), "strategy must be a Strategy or a function"),
        (lambda: Limited(Limited(max_risk=0.5)), "one Limited is enough"),
        (lambda: Column(1.5), "by its name or its position from 0, got 1.5"),
        (lambda: OneOf(0, "car"), "values must be a tuple or list, got the word 'car'"),
        (lambda: GroupShare(Limited(max_risk=0.5)), r"never inside one.*Limited\(GroupShare"),
        (lambda: Limited(max_risk=0.5) * Uniform(), r"never inside one.*write Limited\(a \* b"),
        (lambda: Column(7).values(AGES), "position must be from 0 to 1, got 7"),
        (
            lambda: Column("age").values(AGES),
            "'age' cannot be found by its name.*position",
        ),
        (lambda: Column("age").found(("a", "b")), "no column 'age' .* fit got 'a', 'b'"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(make, words):
    with pytest.raises(InputError, match=words):
        make()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ([True, np.nan, False], "must say True or False for everybody, got NaN or None for 1 of 3"),
        ([True, None, None], "got NaN or None for 2 of 3 people; say what holds"),
        ([0.3, 1, 0], r"must say True or False for everybody, got \[0.3"),
        ([True], r"one value per person, shape \(3,\), got shape \(1,\)"),
    ],
)
def test_answers_of_a_users_rule(answer, words):
    limited = Limited(exclude=lambda X: answer)
    with pytest.raises(InputError, match=words):
        limited.barred(np.zeros((3, 1)), np.full(3, 0.5))
    assert Limited(exclude=lambda X: pd.Series([1, 0, 1])).barred(AGES[:3], np.ones(3)).any()


def test_reasons_come_one_a_person_and_limits_are_inclusive():
    limited = Limited(max_risk=0.75, exclude=Below(0, 18), exposure=500, amount=Column(1))
    X = np.array([[17.0, 900], [18, 500], [18, 501], [40, 1], [40, 1]])
    why = limited.barred(X, np.array([0.1, 0.25, 0.1, 0.25 - 1e-9, 0.9]))
    assert [limited.reasons.get(one) for one in why.tolist()] == [
        "excluded",
        None,
        "amount above 500",
        "risk above 0.75",
        None,
    ]
    g = limited.person_factor(X, np.array([0.1, 0.25, 0.1, 0.2, 0.9]), np.zeros(5, np.intp))
    assert g.tolist() == [0, 0.25, 0, 0, 0.9]


def test_a_table_of_scores_gives_a_table_of_g():
    table = np.array([[0.1, 0.6], [0.7, 0.3]])
    limited = Limited(Uniform(), max_risk=0.5, exposure=2, amount=1)
    assert not limited.reads_features
    g = limited.person_factor(None, table, np.zeros((2, 1), np.intp))
    assert g.tolist() == [[0, 1], [1, 0]]


def test_what_is_passed_on_to_the_strategy_inside():
    limited = Limited(EqualGroups(), max_risk=0.5)
    counts = np.array([30.0, 10.0])
    assert np.array_equal(
        limited.group_factor(counts, counts), EqualGroups().group_factor(counts, counts)
    )
    assert Limited(GroupShare()).group_shares(counts).tolist() == [0.75, 0.25]
    assert limited.reads_group
    assert not Limited(Uniform()).reads_group
    blind = Limited(FromFunction(lambda X, s, z: s + z), max_risk=0.5).without_group()
    assert blind.is_limited
    assert blind.person_factor(AGES[:2], np.array([0.4, 0.6]), np.array([1, 1])).tolist() == [
        0,
        0.6,
    ]


def test_so_many_fit_as_whoever_is_drawn(rng):
    """Against enumeration: the largest k of which every subset of k people fits."""
    for _ in range(200):
        n = int(rng.integers(1, 8))
        amounts = rng.integers(0, 20, n).astype(float)
        limit = float(rng.integers(20, 60))
        limited = Limited(exposure=limit, amount=Column(0))
        every = [all(sum(some) <= limit for some in combinations(amounts, k)) for k in range(n + 1)]
        assert limited.at_most(amounts[:, None], n) == max(np.flatnonzero(every))
    assert Limited(exposure=0.3, amount=0.1).at_most(None, 9) == 3  # though 3 · 0.1 > 0.3 by a bit
    assert Limited(exposure=7, amount=0).at_most(None, 9) == 9


# Draws.


def people(n, seed=0, *, dtype=np.float64):
    """Return a batch of people, half of whom the first column excludes, and their scores."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)).astype(dtype)
    X[:, 1] = rng.integers(1, 30, n)
    ids = np.arange(n)
    group = rng.choice(2, n, p=[0.7, 0.3])
    return Batch(X, group, ids, id_bits(ids), "numpy"), rng.uniform(0.05, 0.95, n).astype(dtype)


def drawn(batch, score, strategy, n_explore, t=1, explore=None, n_instead=None):
    explore = np.arange(5, len(batch)) if explore is None else explore
    n_instead = n_explore if n_instead is None else n_instead
    draw, _ = draw_explored(
        batch, explore, score, n_explore, strategy, 2, seed=3, round=t, n_instead=n_instead
    )
    return draw


INSIDE = [Uniform(), ScoreWeighted(), GroupShare(), ScoreWeighted() * EqualGroups()]


@pytest.mark.parametrize("inside", INSIDE, ids=repr)
@pytest.mark.parametrize(
    "limits",
    [
        {"max_risk": 0.6},
        {"exclude": YOUNG},
        {"exclude": lambda X: X[:, 0] < -0.5},
        {"max_risk": 0.7, "exclude": YOUNG, "exposure": 60, "amount": Column(1)},
    ],
    ids=["risk", "rule", "function", "all"],
)
def test_a_limited_draw_is_the_draw_among_those_left(inside, limits):
    batch, score = people(60)
    explore = np.arange(5, 60)
    limited = Limited(inside, **limits)
    barred = score[explore] < 1 - limits.get("max_risk", 1)
    barred |= ("exclude" in limits) & (batch.X[explore, 0] < -0.5)
    barred |= batch.X[explore, 1] > limits.get("exposure", np.inf)
    n_explore = 9
    if "exposure" in limits:
        fit = np.cumsum(np.sort(batch.X[explore[~barred], 1])[::-1]) <= 60
        n_explore = int(fit.sum())
        assert 0 < n_explore < 9
    one = drawn(batch, score, limited, 9)
    other = drawn(batch, score, inside, n_explore, explore=explore[~barred])
    assert 5 < barred.sum() < 50
    assert not one.drawn[barred].any()
    assert np.array_equal(one.probability[barred], np.zeros(barred.sum()))
    assert np.array_equal(one.drawn[~barred], other.drawn)
    assert np.array_equal(one.probability[~barred], other.probability)
    assert one.probability.sum() == pytest.approx(n_explore)
    assert np.array_equal(one.left, other.left)


N_DRAWS = 5000


def rejected(times, probability):
    """Say whether frequencies differ from probabilities: exact binomial, false alarm 0.001."""
    worst = min(
        binomtest(int(k), N_DRAWS, min(1.0, float(p))).pvalue
        for k, p in zip(times, probability, strict=True)
    )
    return worst < 0.001 / times.size


@pytest.mark.parametrize(
    "limited",
    [
        Limited(ScoreWeighted(), max_risk=0.7, exclude=YOUNG),
        Limited(GroupShare(), exclude=YOUNG, exposure=100, amount=Column(1)),
    ],
    ids=["people", "money"],
)
def test_frequencies_are_the_propensities(limited):
    batch, score = people(30)
    times = np.zeros(25)
    for t in range(1, N_DRAWS + 1):
        draw = drawn(batch, score, limited, 6, t)
        times += draw.drawn
    assert not rejected(times, draw.probability)
    without = drawn(batch, score, limited.strategy, 6)
    assert rejected(times, without.probability)  # the control: g as if nobody were barred


@pytest.mark.parametrize(
    ("n", "dtype", "n_draws"),
    [(40, np.float64, N_DRAWS), (40, np.float32, 1500), (1, np.float64, 300)],
)
def test_the_chance_of_somebody_who_was_not_in_the_batch(n, dtype, n_draws):
    """They take the place of a random person; the log must give that frequency."""
    batch, score = people(n, dtype=dtype)
    limited = Limited(ScoreWeighted(), exclude=YOUNG)
    stranger = np.array([0.3, 1.0], dtype)
    log = drawn(batch, score, limited, 5 if n > 1 else 1, explore=np.arange(n), n_instead=min(5, n))
    chance = float(log.chance(np.array([0.6]), np.array([0]))[0])
    rng, times = np.random.default_rng(1), 0
    for t in range(1, n_draws + 1):
        at = int(rng.integers(n))
        X, own, group = batch.X.copy(), score.copy(), batch.group.copy()
        X[at], own[at], group[at] = stranger, 0.6, 0
        changed = Batch(X, group, batch.ids, batch.bits, "numpy")
        times += drawn(
            changed, own, limited, min(5, n), t, explore=np.arange(n), n_instead=min(5, n)
        ).drawn[at]
    assert times / n_draws == pytest.approx(
        chance, rel=4 * np.sqrt((1 / chance - 1) / n_draws) + 0.02
    )
    if n > 1:
        wrong = drawn(batch, score, ScoreWeighted(), 5, explore=np.arange(n))
        assert wrong.chance(np.array([0.6]), np.array([0]))[0] < 0.85 * times / n_draws


def test_money_is_never_exceeded(rng):
    """Over many random rounds, and that it is without the limit."""
    exceeded = 0
    for t in range(1, 400):
        n = int(rng.integers(6, 60))
        batch, score = people(n, seed=t)
        limit = float(rng.integers(5, 120))
        n_explore = int(rng.integers(0, n - 5))
        inside = INSIDE[t % len(INSIDE)]
        explore = np.arange(5, n)
        one = drawn(batch, score, Limited(inside, exposure=limit, amount=Column(1)), n_explore, t)
        assert batch.X[explore[one.drawn], 1].sum() <= limit
        free = drawn(batch, score, inside, n_explore, t)
        exceeded += batch.X[explore[free.drawn], 1].sum() > limit
        # As many as fit whoever is drawn: one more and the largest would not.
        fitting = np.sort(batch.X[explore, 1][batch.X[explore, 1] <= limit])[::-1]
        k = int(one.drawn.sum())
        assert k == min(n_explore, fitting.size) or fitting[: k + 1].sum() > limit
    assert exceeded > 100


def test_group_quotas_count_those_who_may_be_explored():
    batch, score = people(400, seed=2)
    limited = Limited(GroupShare(), exclude=YOUNG)
    draw = drawn(batch, score, limited, 40, explore=np.arange(400))
    may = batch.X[:, 0] >= -0.5
    shares = np.bincount(batch.group[may]) / may.sum()
    assert np.bincount(batch.group, draw.probability) == pytest.approx(40 * shares)


# A run of Algorithm 1.


def spent(classifier, world, amount):
    """Run a classifier and return rounds, with what their explored sum to."""
    for result in run(classifier, world):
        X, decided = result.applicants.people.X, result.decided
        yield result, classifier.rounds_[-1], float(amount(X)[decided.explored].sum())


def income(X):
    return 50 + 20 * np.abs(X[:, 0])


@pytest.mark.parametrize("inside", [ScoreWeighted(), GroupShare()], ids=repr)
def test_every_round_of_a_run_keeps_the_limits(make_classifier, inside):
    limited = Limited(inside, max_risk=0.6, exclude=Below(1, -1), exposure=400, amount=income)
    classifier, world = make_classifier(strategy=limited, first_round="learned")
    explored = 0
    for result, record, money in spent(classifier, world, income):
        people, decided = result.applicants.people, result.decided
        barred = (decided.score < 0.4) | (people.X[:, 1] < -1) | (income(people.X) > 400)
        candidates = ~decided.exploit
        assert np.array_equal(decided.propensity[candidates] == 0, barred[candidates])
        assert not decided.explored[barred].any()
        assert money <= 400
        here = candidates & barred
        assert record.n_unreachable == here.sum() > 0
        assert record.unreachable == tuple(int((people.group[here] == z).sum()) for z in "AB")
        never = classifier.never_explored(people.X, sensitive_features=people.group)
        assert np.array_equal(never, barred)
        excluded = int((candidates & (people.X[:, 1] < -1)).sum())
        assert record.note.startswith(
            f"{here.sum()} of {candidates.sum()} candidates cannot be explored (excluded: "
            f"{excluded}, risk above 0.6: {here.sum() - excluded}): that everybody is explored is "
            f"promised of the others only. The exposure limit let {record.n_explored} people be "
            f"explored of "
        )
        p = classifier.acceptance_probability(people.X, sensitive_features=people.group)
        assert p[here].max() < 1e-20
        assert p[candidates & ~barred].min() > 0
        explored += record.n_explored
    assert explored > 10


def test_without_the_limit_the_same_run_spends_more(make_classifier):
    classifier, world = make_classifier(strategy=ScoreWeighted(), first_round="learned")
    assert max(money for *_, money in spent(classifier, world, income)) > 1.5 * 400


@pytest.mark.parametrize("n_batch", [10, 300])
@pytest.mark.parametrize("limits", [{"max_risk": 0.3}, {"exclude": Below(1, 0)}], ids=str)
def test_the_log_knows_how_often_those_left_are_explored(n_batch, limits):
    """Σ n_i·π_i of strangers, over the rounds, against how often such candidates were explored."""
    world = lender_world(4, n_history=400, n_batch=n_batch, n_rounds=1500 // n_batch)
    past = world.history()
    classifier = PartialFeedbackClassifier(
        budget=FdrBudget(alpha=0.3, exploit=0.1),
        # Nobody becomes known on the way, so that all rounds see the same candidates.
        coverage=SummedAcceptance(reference_size=10**9),
        strategy=Limited(Uniform(), **limits),
        first_round="learned",
        random_state=0,
    ).fit(
        past.people.X,
        past.outcomes,
        accepted=past.accepted,
        sensitive_features=past.people.group,
    )
    candidates = explored = 0
    for batch in world.batches():
        people = batch.applicants.people
        decided = classifier.decide(people.X, sensitive_features=people.group)
        barred = classifier.never_explored(people.X, sensitive_features=people.group)
        candidates += (~decided.exploit & ~barred).sum()
        explored += decided.explored.sum()
    log, probe = classifier._log, Lender().draw(2000, np.random.default_rng(1))
    group = (probe.group == "B").astype(np.intp)
    unknown = ~log.look(probe.X, group, classifier._rule, score_of=0).known
    barred = classifier.never_explored(probe.X, sensitive_features=probe.group)
    rows = np.flatnonzero(unknown)
    own, coverage = np.zeros(2000), np.zeros(2000)
    log.start(probe.X, group, rows, np.zeros(2000), coverage)
    log.catch_up(probe.X, group, classifier._rule, begin=0, own=own, coverage=coverage, rows=rows)
    assert 50 < (unknown & barred).sum() < unknown.sum() - 50
    assert own[unknown & barred].max() < 1e-8 * log.n_people
    assert explored > 40
    logged = own[unknown & ~barred].mean() / log.n_people
    assert logged == pytest.approx(explored / candidates, rel=0.25)


@pytest.mark.parametrize("rule", [SummedAcceptance(), SumOfG()], ids=repr)
def test_coverage_of_the_excluded_never_grows_by_exploration(make_classifier, rule):
    limited = Limited(Uniform(), exclude=Below(1, 0))
    classifier, world = make_classifier(strategy=limited, coverage=rule)
    strangers = Lender().draw(300, np.random.default_rng(5))
    group = strangers.group
    before = classifier.coverage_of(strangers.X, sensitive_features=group)
    unknown = before <= classifier.coverage.threshold
    excluded = strangers.X[:, 1] < 0
    for _ in run(classifier, world):
        pass
    grown = classifier.coverage_of(strangers.X, sensitive_features=group) - before
    assert (unknown & excluded).sum() > 50
    assert np.abs(grown[unknown & excluded]).max() < 1e-9
    assert grown[unknown & ~excluded].min() > 0.01  # the control


def test_weights_of_labelled_rows_are_those_of_the_policies(make_classifier):
    """Σ n_i·π_i of our own accepted rows, against a sum over rounds person by person."""
    limited = Limited(ScoreWeighted(), max_risk=0.6, exclude=Below(1, -0.5))
    classifier, world = make_classifier(strategy=limited, n_rounds=4)
    for _ in run(classifier, world):
        pass
    log = classifier._log
    probe = Lender().draw(150, np.random.default_rng(3))
    code = (probe.group == "B").astype(np.intp)
    own, coverage = np.zeros(150), np.zeros(150)
    rows = np.arange(150)
    log.start(probe.X, code, rows, np.zeros(150), coverage)
    log.catch_up(probe.X, code, classifier._rule, begin=0, own=own, coverage=coverage, rows=rows)
    slow = []
    for x, z in zip(probe.X, code, strict=True):
        who = x[None], np.array([z])
        w, total, seen = float(log.likelihoods[0].score(*who)[0]), 0.0, 0
        for policy in log.policies:
            score = float(log.likelihoods[policy.likelihood].score(*who)[0])
            if w > classifier._rule.level(seen):
                pi = float(score >= policy.thresholds[z])
            elif score < 0.4 or x[1] < -0.5:
                pi = 0.0
            else:
                g = max(score, 1e-6)
                pi = min(1.0, policy.left[z] * g / (policy.others[z] + g))
            total += policy.n_people * pi
            w += pi * classifier._rule.round_weight(
                policy.n_people, policy.n_rounds, log.first_batch
            )
            seen += policy.n_rounds
        slow.append(total)
    assert own == pytest.approx(slow, abs=1e-9)


KEYS = ("accepted", "exploit", "score", "propensity")


def alike(one, other):
    return all(np.array_equal(getattr(one, key), getattr(other, key)) for key in KEYS)


def test_limits_that_bar_nobody_change_nothing(make_classifier):
    loose = Limited(GroupShare(), max_risk=0.9999, exclude=Below(0, -99), exposure=1e9, amount=1)
    classifier, world = make_classifier(strategy=loose)
    plain, _ = make_classifier(strategy=GroupShare())
    for batch in world.batches():
        X, group = batch.applicants.people.X, batch.applicants.people.group
        one, other = (c.decide(X, sensitive_features=group) for c in (classifier, plain))
        assert alike(one, other)
        for c in (classifier, plain):
            c.observe(one.ids[one.accepted], batch.applicants.outcome[one.accepted])
    assert classifier.rounds_[-1].n_unreachable == 0
    assert [one.note for one in classifier.rounds_] == [one.note for one in plain.rounds_]
    assert not plain.never_explored(X, sensitive_features=group).any()
    assert not classifier.never_explored(X, sensitive_features=group).any()


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ({"exclude": lambda X: np.ones(len(X), bool)}, "excluded"),
        ({"exposure": 10, "amount": 11}, "amount above 10"),
        ({"max_risk": 0.0}, "risk above 0.0"),
    ],
    ids=["excluded", "amount", "risk"],
)
def test_where_nobody_is_left_nobody_is_explored_and_the_budget_is_carried(
    make_classifier, limits, why
):
    classifier, world = make_classifier(strategy=Limited(**limits))
    for result in run(classifier, world):
        record, n = classifier.rounds_[-1], int((~result.decided.exploit).sum())
        assert record.n_explored == 0
        assert record.carried == 1.0  # at most one person is carried over, as ever
        assert record.n_unreachable == n == sum(record.unreachable)
        assert record.note.endswith(
            f"None of {n} candidates can be explored ({why}: {n}): that everybody is explored is "
            f"promised of nobody."
        )
        assert np.isin(result.decided.propensity, [0, 1]).all()
    assert record.n_exploited > 0


def test_a_rule_that_answers_nan_is_refused_and_nothing_is_lost(make_classifier):
    broken = Limited(exclude=lambda X: np.where(X[:, 0] > 9, np.nan, 0.0))
    classifier, world = make_classifier(strategy=broken, n_rounds=2)
    (first, second) = (one.applicants.people for one in world.batches())
    classifier.decide(first.X, sensitive_features=first.group)
    untouched = copy.deepcopy(classifier)
    wrong = np.vstack([second.X, [[-9.0, 9.0, 0.0]]])
    classifier.strategy = Limited(exclude=lambda X: np.where(X[:, 1] > 8, np.nan, 0.0))
    group = np.append(second.group, "A")
    with pytest.raises(InputError, match=r"got NaN or None for 1 of \d+ people; say what holds"):
        classifier.decide(wrong, sensitive_features=group)
    with pytest.raises(InputError, match="got NaN or None for 1 of 301 people"):
        classifier.never_explored(wrong, sensitive_features=group)
    classifier.strategy = broken
    one, other = (
        c.decide(second.X, sensitive_features=second.group) for c in (classifier, untouched)
    )
    assert alike(one, other)


def test_amounts_that_are_none_are_refused(make_classifier):
    limited = Limited(exposure=100, amount=lambda X: np.where(X[:, 0] < 0, np.nan, 3))
    classifier, world = make_classifier(strategy=limited, n_rounds=1)
    (batch,) = world.batches()
    people = batch.applicants.people
    with pytest.raises(InputError, match=r"amounts are money .* got nan, [0-9]+ such in all"):
        classifier.decide(people.X, sensitive_features=people.group)


def test_a_stream_of_single_applications(make_classifier):
    limited = Limited(Uniform(), exclude=Below(1, 0))
    classifier, world = make_classifier(
        strategy=limited, budget=FdrBudget(alpha=0.3, exploit=0.1), n_batch=120, n_rounds=1
    )
    (batch,) = world.batches()
    people = batch.applicants.people
    explored = 0
    for i in range(120):
        one = classifier.decide(people.X[i : i + 1], sensitive_features=people.group[i : i + 1])
        explored += int(one.explored[0])
        assert not (one.explored[0] and people.X[i, 1] < 0)
        assert one.exploit[0] or people.X[i, 1] >= 0 or one.propensity[0] == 0
        p = classifier.acceptance_probability(people.X, sensitive_features=people.group)
        unknown = classifier.coverage_of(people.X, sensitive_features=people.group) <= 0.5
        assert p[unknown & (people.X[:, 1] < 0)].max() < 1e-9
    assert explored > 3


# Frames and files.

NAMES = ["income", "debt", "years"]


def framed(kind, people):
    return kind(people.X, columns=NAMES) if kind is pd.DataFrame else kind(people.X, schema=NAMES)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("raw", [True, False])
def test_columns_are_found_by_their_names(kind, raw, tmp_path):
    world = lender_world(1, n_rounds=2)
    past = world.history()
    learner = make_pipeline(FunctionTransformer(), LogisticRegression()) if raw else None

    def classifier(column, table):
        limited = Limited(
            exclude=Below(column("debt"), -0.5) | Above(column("years"), 1.5),
            exposure=40,
            amount=FIVE,
        )
        return PartialFeedbackClassifier(
            strategy=limited, learner=learner, first_round="learned", random_state=0
        ).fit(
            table(past.people),
            past.outcomes,
            accepted=past.accepted,
            sensitive_features=past.people.group,
        )

    def framed_here(people):
        return framed(kind, people)

    def array(people):
        return people.X

    named, numbered = classifier(str, framed_here), classifier(NAMES.index, array)
    for batch in world.batches():
        people = batch.applicants.people
        one = named.decide(framed_here(people), sensitive_features=people.group)
        other = numbered.decide(people.X, sensitive_features=people.group)
        assert np.array_equal(one.accepted, other.accepted)
        assert one.propensity == pytest.approx(other.propensity, abs=1e-9)
        barred = (people.X[:, 1] < -0.5) | (people.X[:, 2] > 1.5)
        assert np.array_equal(
            named.never_explored(framed_here(people), sensitive_features=people.group), barred
        )
        assert not one.explored[barred].any()
    assert named.rounds_[-1].n_explored > 0


FIVE = 5.0


def test_a_column_that_is_not_there_is_refused_by_fit(tmp_path):
    world = lender_world(1)
    past = world.history()
    for kind in (PartialFeedbackClassifier, CertifiedClassifier):
        classifier = kind(strategy=Limited(exclude=Below("age", 18)))
        with pytest.raises(InputError, match=r"no column 'age' .*fit got 'income', 'debt', 'y"):
            classifier.fit(framed(pd.DataFrame, past.people), past.outcomes, accepted=past.accepted)


def test_rules_are_saved_and_go_on_as_they_would_have(tmp_path):
    world = lender_world(2, n_rounds=3)
    past = world.history()

    def table(people):
        return framed(pd.DataFrame, people).assign(years=np.abs(people.X[:, 2]))

    limited = Limited(
        GroupShare(),
        max_risk=0.7,
        exclude=Below("debt", -1) | OneOf("years", (0.0,)) | Above("income", 3),
        exposure=30,
        amount="years",
    )
    classifier = PartialFeedbackClassifier(
        strategy=limited, first_round="learned", random_state=0
    ).fit(
        table(past.people),
        past.outcomes,
        accepted=past.accepted,
        sensitive_features=past.people.group,
    )
    *before, last = (one.applicants for one in world.batches())
    for one in before:
        decided = classifier.decide(table(one.people), sensitive_features=one.people.group)
        classifier.observe(decided.ids[decided.accepted], one.outcome[decided.accepted])
    save(classifier, tmp_path / "x")
    again = load(tmp_path / "x")
    assert again.strategy == limited
    assert repr(again.rounds_) == repr(classifier.rounds_)
    one, other = (
        c.decide(table(last.people), sensitive_features=last.people.group)
        for c in (classifier, again)
    )
    assert alike(one, other)
    assert one.explored.any()
    assert again.rounds_[-1].n_unreachable > 0


@pytest.mark.parametrize(
    "limits", [{"exclude": lambda X: X[:, 0] < 0}, {"exposure": 9, "amount": lambda X: X[:, 0]}]
)
def test_functions_live_in_memory_only(make_classifier, tmp_path, limits):
    classifier, _ = make_classifier(strategy=Limited(**limits))
    with pytest.raises(InputError, match="lives in memory only and cannot be saved"):
        save(classifier, tmp_path / "x")


@dataclass(frozen=True)
class OddDebt(Rule):
    """A rule of the user's own."""

    answer: float = 1.0

    def excludes(self, X):
        return np.where(np.floor(X[:, 1]) % 2 == 1, self.answer, 0.0)


def test_a_rule_of_ones_own_is_saved_by_name_and_checked(make_classifier, tmp_path):
    classifier, _ = make_classifier(strategy=Limited(exclude=OddDebt()))
    save(classifier, tmp_path / "x")
    with pytest.raises(InputError, match="names the type 'OddDebt'"):
        load(tmp_path / "x")
    again = load(tmp_path / "x", types=[OddDebt])
    X = np.array([[0.0, 1.5, 0], [0, 2.5, 0]])
    assert again.never_explored(X, sensitive_features=["A", "B"]).tolist() == [True, False]
    with pytest.raises(InputError, match="got NaN or None for 1 of 2"):
        Limited(exclude=OddDebt(np.nan)).barred(X, np.ones(2))


# Certificates.

X_OF = LinearLikelihood(np.array([3.0, 0.0]), 0.0)  # ranks by the first column


def ladder_of(strategy, share, rng, n=4000, tau=0.08):
    """Return a ladder frozen on reference people, of whom the second column bars some."""
    X, group = rng.normal(size=(n, 2)), np.zeros(n, np.intp)
    score = X_OF.score(X, group)
    ranking = Ranking.freeze(X_OF, score, group, 1, within=False)
    floor = Floor.freeze(strategy, share, X, score, group, 1)
    return Ladder(ranking, tau, floor, 0.05, ((0, 1.0),), 1, ALPHA)


CERTIFIED_LIMITS = [Limited(Uniform(), exclude=Above(1, 0.5)), Limited(Uniform(), max_risk=0.8)]


@pytest.mark.parametrize("share", [0.0, 0.02])
@pytest.mark.parametrize("limited", CERTIFIED_LIMITS, ids=["rule", "risk"])
def test_the_barred_are_accepted_for_sure_or_not_at_all(limited, share, rng):
    ladder = ladder_of(limited, share, rng)
    free = ladder_of(Uniform(), share, np.random.default_rng(0))
    X, group = rng.normal(size=(500, 2)), np.zeros(500, np.intp)
    barred = X[:, 1] > 0.5 if limited.exclude else X_OF.score(X, group) < 0.2
    at = ladder.standing(X, group)
    pi = ladder.policies(at)
    assert np.array_equal(at.barred, barred)
    assert 50 < barred.sum() < 450
    assert np.array_equal(pi[barred], at.rank[barred, None] <= ladder.grid)
    assert pi[~barred].min() > (share / 2 if share else 0)
    assert pi[~barred] == pytest.approx(free.policies(free.standing(X, group))[~barred])
    assert at.chance[~barred] == pytest.approx(share)
    assert np.array_equal(at[barred].barred, np.ones(barred.sum(), bool))


@pytest.mark.parametrize("limited", CERTIFIED_LIMITS, ids=["rule", "risk"])
def test_sums_over_people_are_those_of_the_table(limited, rng):
    ladder = ladder_of(limited, 0.02, rng)
    X, group = rng.normal(size=(300, 2)), np.zeros(300, np.intp)
    reach = Reach(ladder, ladder.standing(X[:0], group[:0]))
    for part in (slice(0, 120), slice(120, 300)):
        reach.extend(ladder.standing(X[part], group[part]))
    worth = rng.normal(size=300)
    table = ladder.policies(ladder.standing(X, group))
    assert reach.sums(worth) == pytest.approx(worth @ table)
    some = np.flatnonzero(rng.random(300) < 0.4)
    assert reach.sums(worth[some], some) == pytest.approx(worth[some] @ table[some])


@pytest.mark.parametrize("limited", CERTIFIED_LIMITS, ids=["rule", "risk"])
@pytest.mark.parametrize("share", [0.0, 0.05])
def test_no_row_loses_more_than_its_bound_and_none_gains_in_expectation(limited, share, rng):
    """Z over both coins and both outcomes of everybody, for every pair of rungs and two ladders."""
    ladder = ladder_of(limited, share, rng)
    other = ladder_of(Limited(Uniform(), exclude=Below(1, 0)), share, rng, tau=0.2)
    X, group = rng.normal(size=(400, 2)), np.zeros(400, np.intp)
    f = rng.random(400)  # P(bad)
    pi = ladder.policies(ladder.standing(X, group))
    for deployed, on in [(0, ladder), (15, ladder), (40, ladder), (79, ladder), (30, other)]:
        p = on.policy(on.standing(X, group), deployed)
        bound = ladder.ratio_bounds(deployed if on is ladder else None)
        no = np.zeros(400, bool)
        z_out = values(pi, p, no, no, ALPHA)
        taken = p > 0
        z_good, z_bad = (values(pi, p, taken, no | bad, ALPHA) for bad in (False, True))
        for z in (z_out, z_good, z_bad):
            assert np.all(z >= -(1 - ALPHA) * np.maximum(bound, 1) - 1e-12)
        mean = (1 - p)[:, None] * z_out + p[:, None] * (
            (1 - f)[:, None] * z_good + f[:, None] * z_bad
        )
        assert np.all(mean <= pi * (ALPHA - f)[:, None] + 1e-12)
    assert (p == 0).sum() > 20


class Uncounted(Ladder):
    """The control: what the deployed policy cannot see is left out instead of counted as bad."""

    def test(self, seen, deployed, use):
        look = seen.p > 0
        seen = Seen(*(part[look] for part in (seen.X, seen.group, seen.p, seen.accepted, seen.bad)))
        super().test(seen, deployed, use)


@pytest.mark.parametrize(("kind", "blind"), [(Ladder, False), (Uncounted, True)])
def test_nobody_is_certified_through_people_who_are_never_seen(kind, blind):
    """Those barred look as good as the others and are bad beyond the deployed rung."""
    runs, level, wrong = 25, 0.05, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        made = ladder_of(Limited(Uniform(), exclude=Above(1, 0.0)), 0.0, rng)
        ladder = kind(made.ranking, made.tau, made.floor, level, ((0, 1.0),), 1, ALPHA)
        deployed, wide = ladder.nearest(0.2), ladder.nearest(0.32)
        use = np.zeros(ladder.grid.size, bool)
        use[wide] = True
        for _ in range(12):
            X, group = rng.normal(size=(500, 2)), np.zeros(500, np.intp)
            at = ladder.standing(X, group)
            p = ladder.policy(at, deployed)
            accepted = rng.random(500) < p
            unseen = at.barred & (at.rank > ladder.grid[deployed])
            bad = rng.random(500) < np.where(unseen, 1.0, 0.02)
            ladder.test(Seen(X, group, p, accepted, bad & accepted), deployed, use)
        many = ladder.standing(rng.normal(size=(20_000, 2)), np.zeros(20_000, np.intp))
        unseen = many.barred & (many.rank > ladder.grid[deployed])
        pi = ladder.policy(many, wide)
        assert pi @ np.where(unseen, 1.0, 0.02) / pi.sum() > ALPHA  # it must not be certified
        wrong += ladder.wealth.best[wide] >= -np.log(level)
    assert (binom.sf(wrong - 1, runs, level) < 0.001) == blind


class TwoColumns:
    """Good by the first column; the second bars a quarter, who are worse than they look."""

    features = ("x", "v")
    groups = ("all",)

    def draw(self, n, rng):
        X = np.column_stack([rng.normal(size=n), rng.random(n) < 0.25]).astype(float)
        return People(X, np.full(n, "all"))

    def probability_good(self, people):
        return 1 / (1 + np.exp(-1.5 - 2 * people.X[:, 0] + people.X[:, 1]))


@pytest.mark.parametrize("floor", [0.0, 0.02])
def test_certified_rounds_keep_the_bound_within_limits(floor, rng, tmp_path):
    population = TwoColumns()
    everybody = draw_applicants(population, 10_000, rng)
    barred = everybody.people.X[:, 1] == 1
    certified, violated = 0, 0
    for seed in range(3):
        own = np.random.default_rng(seed)
        limited = Limited(Uniform(), exclude=OneOf(1, (1,)))
        classifier = start(population, own, floor=floor, strategy=limited, horizon=15)
        broken = False
        for _ in range(15):
            batch = draw_applicants(population, 600, own)
            decided = classifier.decide(batch.people.X)
            classifier.observe(decided.ids[decided.accepted], batch.outcome[decided.accepted])
            p = classifier.acceptance_probability(everybody.people.X)
            assert np.isin(p[barred], [0, 1]).all()
            assert p[~barred].min() > 0
            record, out = classifier.rounds_[-1], batch.people.X[:, 1] == 1
            assert record.n_unreachable == (out & ~decided.exploit).sum()
            assert np.array_equal(decided.propensity == 0, out & ~decided.exploit)
            assert record.message.endswith(
                f"{record.n_unreachable} of {(~decided.exploit).sum()} candidates cannot be "
                f"explored (excluded: {record.n_unreachable}): that everybody is explored is "
                f"promised of the others only."
            )
            if decided.certified:
                certified += 1
                broken |= p @ (1 - everybody.probability_good) / p.sum() > ALPHA
        violated += broken
        assert np.array_equal(classifier.never_explored(everybody.people.X), barred)
    assert certified > 10
    assert not too_many(violated, 3, 0.1, false_alarm=0.05)
    save(classifier, tmp_path / "x")
    again = load(tmp_path / "x")
    X = population.draw(300, rng).X
    one, other = classifier.decide(X), again.decide(X)
    assert np.array_equal(one.propensity, other.propensity)


def test_the_certified_method_with_everybody_barred_and_per_group(rng):
    everybody = Limited(exclude=lambda X: np.ones(len(X), bool))
    population = TwoColumns()
    classifier = start(population, rng, floor=0.02, strategy=everybody, horizon=5)
    assert classifier.never_explored(population.draw(9, rng).X).all()
    decided = classifier.decide(population.draw(400, rng).X)
    assert np.array_equal(decided.accepted, decided.exploit)
    assert "None of " in classifier.rounds_[0].message
    X = rng.normal(size=(600, 2))
    group = np.where(rng.random(600) < 0.5, "A", "B")
    good = (X[:, 0] + rng.normal(size=600) > 0).astype(int)
    two = CertifiedClassifier(
        strategy=Limited(max_risk=0.6, exclude=Above(1, 1)), certify="per_group", random_state=0
    ).fit(X, good, accepted=X[:, 0] > -1, sensitive_features=group)
    decided = two.decide(X, sensitive_features=group)
    never = two.never_explored(X, sensitive_features=group)
    assert np.array_equal(decided.propensity == 0, never & ~decided.exploit)
    assert sum(one.n_unreachable for one in two.rounds_) == (decided.propensity == 0).sum() > 0


def test_what_coins_cannot_keep_is_refused(rng):
    limited = Limited(exposure=100, amount=1)
    with pytest.raises(InputError, match=r"exposure cannot be kept by independent coins.*got 100"):
        start(TwoColumns(), rng, strategy=limited)
    nan = Limited(exclude=lambda X: np.where(X[:, 0] > 5, np.nan, 0))
    classifier = start(TwoColumns(), rng, strategy=nan)
    X = TwoColumns().draw(50, rng).X
    with pytest.raises(InputError, match="got NaN or None for 1 of 51 people"):
        classifier.decide(np.vstack([X, [[6.0, 0.0]]]))
    assert classifier.rounds_ == ()
    classifier.decide(X)


def test_a_floor_is_shared_by_those_left(rng):
    group = rng.choice(2, 2000, p=[0.7, 0.3])
    X, score = rng.normal(size=(2000, 1)), rng.uniform(0.02, 0.98, 2000)
    limited = Limited(GroupShare(), max_risk=0.6, exclude=Below(0, -1))
    may = (score >= 0.4) & (X[:, 0] >= -1)
    floor = Floor.freeze(limited, 0.03, X, score, group, 2)
    chance = floor.chance(X, score, group)
    assert np.array_equal(chance > 0, may)
    for z in (0, 1):
        assert chance[may & (group == z)].mean() == pytest.approx(0.03)
    nobody = Floor.freeze(Limited(exclude=Below(0, 99)), 0.03, X, score, group, 2)
    assert not nobody.chance(X, score, group).any()
    assert nobody.barred(X, score).all()


class Stingy(Strategy):
    def person_factor(self, X, score, group):
        return np.where(score > 0.5, score, 0.0)


def test_positivity_is_still_demanded_of_those_left(rng):
    batch, score = people(40)
    assert drawn(batch, score, Limited(Stingy(), max_risk=0.5), 3).drawn.sum() == 3
    with pytest.raises(InputError, match="positive finite number for every candidate"):
        drawn(batch, score, Limited(Stingy(), max_risk=0.6), 3)
    found = find_candidates(batch, np.arange(40), score, Stingy(), 2)
    assert found.at_most == 40
    assert found.note(3, 3) == ""


def test_the_example_runs(capsys):
    path = Path(__file__).parents[1] / "examples" / "risk_limits.py"
    example = runpy.run_path(str(path))
    table = example["main"]()
    assert (table["lent_to_explored"] <= example["EXPOSURE"]).all()
    assert (table["n_unreachable"] > 0).all()
    said = capsys.readouterr().out
    assert "that everybody is explored is promised of the others only" in said
