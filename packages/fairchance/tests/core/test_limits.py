"""Limits on exploration: what rules bar, exact draws among those left, money never exceeded."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import binomtest

from fairchance import EqualGroups, GroupShare, ScoreWeighted, Uniform
from fairchance.core.limits import REASONS, Above, Below, Column, ColumnNames, Limited, OneOf
from fairchance.core.strategies import FromFunction, Strategy
from fairchance.errors import InputError
from fairchance.methods.algorithm1.exploration import draw_explored, find_candidates
from fairchance.people.ids import id_bits
from fairchance.people.intake import Batch

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
def test_rules_exclude_matching_and_missing_values(rule, named, excluded):
    names = ("age", "purpose")
    assert rule.excludes(AGES).tolist() == excluded
    columns = ColumnNames(names)
    assert rule.for_columns(columns) == rule == named.for_columns(columns)
    assert len(Limited(exclude=named).named_values) == len(rule.named_values)
    for frame in (pd.DataFrame(AGES, columns=names), pl.DataFrame(AGES, schema=list(names))):
        assert rule.excludes(frame).tolist() == excluded
        assert named.excludes(frame).tolist() == excluded


def test_words_in_raw_columns():
    frame = pd.DataFrame({"trade": ["smith", None, "baker"]})
    assert OneOf("trade", ("smith",)).excludes(frame).tolist() == [True, True, False]
    with pytest.raises(InputError, match="OneOf"):
        Below("trade", 3).excludes(frame)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Limited(max_risk=1.0), r"max_risk.* got 1\.0"),
        (lambda: Limited(max_risk=np.nan), "max_risk .* got nan"),
        (lambda: Limited(exclude=3), "exclude.* got 3"),
        (lambda: Limited(exclude=Below), "exclude.* got <class"),
        (lambda: Limited(exposure=10), "exposure=10 and amount=None"),
        (lambda: Limited(amount=10), "exposure=None and amount=10"),
        (lambda: Limited(exposure=0, amount=1), "exposure.* got 0"),
        (lambda: Limited(exposure=np.inf, amount=1), "exposure.* got inf"),
        (lambda: Limited(exposure=9, amount=-1), r"amounts.* got -1\.0"),
        (lambda: Limited(exposure=9, amount=[1]), r"amount.* got \[1\]"),
        (lambda: Limited("uniform"), "strategy.* got 'uniform'"),
        (lambda: Limited(Limited(max_risk=0.5)), "Limited"),
        (lambda: Column(1.5), r"got 1\.5"),
        (lambda: OneOf(0, "car"), "values.*'car'"),
        (lambda: GroupShare(Limited(max_risk=0.5)), r"Limited\(GroupShare"),
        (lambda: Limited(max_risk=0.5) * Uniform(), r"Limited\(a \* b"),
        (lambda: Column(7).values(AGES), "0 to 1, got 7"),
        (
            lambda: Column("age").values(AGES),
            "'age'",
        ),
        (
            lambda: Column("age").found(ColumnNames(("a", "b"))),
            "'age'.*'a', 'b'",
        ),
    ],
)
def test_wrong_limits_are_refused(make, words):
    with pytest.raises(InputError, match=words):
        make()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ([True, np.nan, False], "1 of 3"),
        ([True, None, None], "2 of 3"),
        ([0.3, 1, 0], r"got \[0\.3"),
        ([True], r"\(3,\), got shape \(1,\)"),
    ],
)
def test_answers_of_a_users_rule(answer, words):
    limited = Limited(exclude=lambda X: answer)
    with pytest.raises(InputError, match=words):
        limited.barred(np.zeros((3, 1)), np.full(3, 0.5))
    assert Limited(exclude=lambda X: pd.Series([1, 0, 1])).barred(AGES[:3], np.ones(3)).any()


def test_applicants_that_a_rule_cannot_judge_had_no_chance_in_the_past():
    """A round's candidates must all be judged; people of other rounds need not be."""
    score, group = np.full(3, 0.5), np.zeros(3, np.intp)
    for limited in (
        Limited(exclude=lambda X: [True, np.nan, False]),
        Limited(exposure=10, amount=lambda X: [11, np.nan, 10]),
        Limited(exposure=10, amount=lambda X: [11, -1, 10]),
    ):
        assert limited.person_factor(np.zeros((3, 1)), score, group).tolist() == [0, 0, 0.5]


def test_reasons_come_one_a_person_and_limits_are_inclusive():
    limited = Limited(max_risk=0.75, exclude=Below(0, 18), exposure=500, amount=Column(1))
    X = np.array([[17.0, 900], [18, 500], [18, 501], [40, 1], [40, 1]])
    why = limited.barred(X, np.array([0.1, 0.25, 0.1, 0.25 - 1e-9, 0.9]))
    assert [REASONS.get(one) for one in why.tolist()] == [
        "excluded",
        None,
        "amount",
        "risk",
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


def test_the_inner_strategy_gets_its_inputs():
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


def test_any_draw_of_the_allowed_size_fits_the_exposure(rng):
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


@pytest.mark.parametrize("limit", [0.3, 7.0, 1e9])
def test_each_candidate_fits_the_exposure_alone(limit):
    """Also where they are above the limit by what rounding adds to sums of fractions, at most."""
    limited = Limited(exposure=limit, amount=Column(0))
    allowed = limit * (1 + 1e-12)
    near = np.array([limit, np.nextafter(allowed, 0), allowed, np.nextafter(allowed, np.inf)])
    fits = limited.barred(near[:, None], np.ones(4)) == 0
    assert fits.tolist() == [True, True, True, False]
    assert [limited.at_most(one[None, None], 1) == 1 for one in near] == fits.tolist()


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


N_DRAWS = 2000


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
    [(40, np.float64, 2500), (40, np.float32, 1000), (1, np.float64, 300)],
)
def test_the_chance_of_an_applicant_outside_the_batch(n, dtype, n_draws):
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


class Stingy(Strategy):
    def person_factor(self, X, score, group):
        return np.where(score > 0.5, score, 0.0)


def test_positivity_is_still_demanded_of_those_left(rng):
    batch, score = people(40)
    assert drawn(batch, score, Limited(Stingy(), max_risk=0.5), 3).drawn.sum() == 3
    with pytest.raises(InputError, match="got"):
        drawn(batch, score, Limited(Stingy(), max_risk=0.6), 3)
    found = find_candidates(batch, np.arange(40), score, Stingy(), 2)
    assert found.at_most == 40
