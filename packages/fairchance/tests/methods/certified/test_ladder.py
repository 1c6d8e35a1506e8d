"""Ladders: walks, ratio bounds, sums, floors and limits, against tables written out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from fairchance import (
    CertifiedClassifier,
    EqualGroups,
    GroupShare,
    ScoreWeighted,
    Uniform,
    load,
    save,
)
from fairchance.core.decisions import Note
from fairchance.core.limits import Above, Below, Limited, OneOf
from fairchance.errors import InputError
from fairchance.methods.certified.evidence import BETS, RATIO_CAPS, values
from fairchance.methods.certified.ladder import (
    Floor,
    Ladder,
    LadderRows,
    Positions,
    nearest_certificate,
)
from fairchance.methods.certified.ranking import Ranking
from fairchance.people.likelihoods import LinearLikelihood
from fairchance.simulate.people import People
from fairchance.simulate.populations import draw_applicants
from methods.certified.known_truth import ALPHA, QUICK, start, too_many
from methods.certified.ladders import LEVEL, make_ladder, play_round


def positions(ladder, rank):
    """Return the positions of applicants with these ranks."""
    group = np.zeros(rank.size, np.intp)
    return Positions(rank, ladder.floor.chance(None, rank, group))


def reaching(rungs, level, ladder=None):
    """Return a ladder with some rungs at just the wealth that a level needs."""
    ladder = make_ladder() if ladder is None else ladder
    ladder.wealth.best[list(rungs)] = -np.log(level) + 1e-9
    return ladder


def certified(ladder):
    return np.flatnonzero(ladder.certified()).tolist()


def test_a_rung_counts_only_if_all_between_it_and_the_start_do():
    assert certified(reaching([20, 21, 22, 24, 25], LEVEL * 0.8)) == [20, 21, 22]
    assert certified(reaching(range(21, 60), LEVEL * 0.2)) == []  # the start itself is missing


def test_two_starts_each_with_its_share():
    # Enough for the main walk is not enough for the ladder that starts further in.
    assert certified(reaching(range(8, 30), LEVEL * 0.8)) == list(range(20, 30))
    assert certified(reaching(range(8, 15), LEVEL * 0.2)) == list(range(8, 15))
    assert certified(reaching(range(8, 80), LEVEL * 0.2)) == list(range(8, 80))
    # The inner walk may go through the main start, and past it.
    inner = reaching(range(8, 25), LEVEL * 0.2)
    assert certified(reaching([25, 26], LEVEL * 0.8, inner)) == list(range(8, 27))
    assert inner.threshold(10) == pytest.approx(-np.log(LEVEL * 0.2))
    assert inner.threshold(30) == pytest.approx(-np.log(LEVEL * 0.8))
    assert inner.threshold(3) == np.inf


def test_never_uncertified(rng):
    ladder = make_ladder()
    everywhere = np.ones(ladder.grid.size, np.bool_)
    for _ in range(8):
        ladder.test(
            *play_round(rng, ladder, 25, 0.02), ratio_bounds=ladder.ratio_bounds(25), use=everywhere
        )
    before = ladder.certified()
    assert before[20:26].all()
    for _ in range(30):
        ladder.test(
            *play_round(rng, ladder, 25, 0.6), ratio_bounds=ladder.ratio_bounds(25), use=everywhere
        )
        assert np.array_equal(ladder.certified() & before, before)
    assert np.all(ladder.wealth.mixed()[20:26] < 0)  # though nothing speaks for it any more


def test_rungs_without_a_bet_keep_their_wealth(rng):
    ladder = make_ladder()
    use = np.arange(ladder.grid.size) < 30
    ladder.test(*play_round(rng, ladder, 25, 0.1), ratio_bounds=ladder.ratio_bounds(25), use=use)
    assert np.all(ladder.wealth.log[..., :30] != 0)
    assert np.all(ladder.wealth.log[..., 30:] == 0)


def test_a_cap_without_a_bet_keeps_its_wealth(rng):
    ladder = make_ladder()
    use = np.array([np.arange(ladder.grid.size) < 30, np.arange(ladder.grid.size) < 50])
    ladder.test(*play_round(rng, ladder, 25, 0.1), ratio_bounds=ladder.ratio_bounds(25), use=use)
    assert np.array_equal((ladder.wealth.log != 0).all(axis=1), use)
    assert np.array_equal((ladder.wealth.log != 0).any(axis=1), use)


@pytest.mark.parametrize("deployed", [10, 40, None])
@pytest.mark.parametrize("floor", [0.0, 0.05])
def test_evidence_equals_that_of_one_table_of_all_applicants(deployed, floor, rng, monkeypatch):
    """Applicants who add nothing are left out, and the others come in parts."""
    monkeypatch.setattr("fairchance.methods.certified.ladder._CHUNK", 64)
    ladder, other = make_ladder(0.05, floor), make_ladder(0.02)
    on = other if deployed is None else ladder
    at, p, accepted, bad = play_round(rng, on, 10 if deployed is None else deployed, 0.1)
    use = rng.random((2, ladder.grid.size)) < 0.8
    ladder.test(at, p, accepted, bad, ratio_bounds=ladder.ratio_bounds(deployed), use=use)
    shares = ladder.wealth.shares(ladder.ratio_bounds(deployed))
    for i, cap in enumerate(RATIO_CAPS):
        z = values(ladder.policies(at), p, accepted, bad, ALPHA, cap)
        for k in range(len(BETS)):
            expected = np.log1p(shares[i, k] * z).sum(axis=0) * use[i]
            assert ladder.wealth.log[i, k] == pytest.approx(expected, abs=1e-9)


@given(
    tau=st.floats(0.006, 1.5),
    floor=st.floats(0, 0.1),
    deployed=st.integers(0, 79),
    seed=st.integers(0, 10**6),
)
def test_ratios_of_the_same_ladder_are_bounded(tau, floor, deployed, seed):
    ladder = make_ladder(tau, floor)
    rank = np.random.default_rng(seed).random(50)
    p = ladder.policy(positions(ladder, rank), deployed)
    pi = ladder.policies(positions(ladder, rank))
    apart = np.maximum(0, ladder.grid - ladder.grid[deployed]) / tau
    seen_by = p > 1e-200
    assert np.all(np.log(pi[seen_by] / p[seen_by, None]) <= apart + 1e-9)
    # What wealth relies on: w + rem, and with it the worst loss in a row, stays below the bound.
    bound = ladder.ratio_bounds(deployed)
    shares, all_of_them = ladder.wealth.shares(bound), np.ones(int(seen_by.sum()), np.bool_)
    for i, cap in enumerate(RATIO_CAPS):
        z = values(pi[seen_by], p[seen_by], all_of_them, all_of_them, ALPHA, cap)
        assert np.all(z >= -(1 - ALPHA) * bound[i] * (1 + 1e-9))
        assert np.all(1 + shares[i][:, None, :] * z >= 0.05 - 1e-9)
        assert np.all(bound[i] <= cap + 1)
        assert np.all(ladder.ratio_bounds(None)[i] == cap + 1)


def test_the_barred_are_accepted_up_to_the_very_rung(rng):
    ladder = make_ladder()
    rank = np.concatenate([ladder.grid, np.nextafter(ladder.grid, 2)])
    barred = Positions(rank, np.zeros(rank.size), np.ones(rank.size, np.bool_))
    expected = rank[:, None] <= ladder.grid
    assert np.array_equal(ladder.policies(barred), expected)
    worth = rng.normal(size=rank.size)
    assert LadderRows(ladder, barred).sums(worth) == pytest.approx(worth @ expected)


def test_joined_positions_are_appended(rng):
    rank, chance, barred = rng.random(7), rng.random(7), rng.random(7) < 0.5
    applicants = Positions(rank, chance, barred)
    joined = Positions(np.empty(0), np.empty(0)).join(applicants[:3]).join(applicants[3:])
    for name in ("rank", "chance", "barred"):
        assert np.array_equal(getattr(joined, name), getattr(applicants, name))
    later = Positions(rank[:3], chance[:3]).join(applicants[3:])  # none was barred so far
    assert later.barred.tolist() == [False] * 3 + barred[3:].tolist()
    assert Positions(rank[:3], chance[:3]).join(Positions(rank[3:], chance[3:])).barred is None


@pytest.mark.parametrize("floor", [0.0, 0.05])
@pytest.mark.parametrize("tau", [0.008, 0.2])
def test_fast_sums_equal_those_of_the_table(rng, tau, floor):
    ladder = make_ladder(tau, floor)
    rank = np.concatenate([rng.random(300), ladder.grid, [0.0, 1.0]])
    worth = rng.normal(size=rank.size)
    standing = Positions(rank, floor * 2 * rng.random(rank.size))
    reach = LadderRows(ladder, standing[:100])
    reach.extend(standing[100:])
    table = ladder.policies(standing)
    assert reach.sums(worth) == pytest.approx(worth @ table, abs=1e-9)
    rows = np.flatnonzero(rng.random(rank.size) < 0.4)
    assert reach.sums(worth[rows], rows) == pytest.approx(worth[rows] @ table[rows], abs=1e-9)


def test_bets_are_on_covered_rungs_and_on_those_that_look_good_enough(rng):
    ladder = make_ladder(tau=0.05)
    at = positions(ladder, rng.random(2000))
    p = ladder.policy(at, 30)
    pi = ladder.policies(at)
    uncovered = np.array(
        [np.clip(pi - cap * p[:, None], 0, None).sum(axis=0) / pi.sum(axis=0) for cap in (4, 8)]
    )
    (covered,) = ladder.worth_betting(at, p, np.array(np.nan))
    assert np.array_equal(covered, uncovered <= 0.02)
    assert covered[:, :31].all()
    assert not covered[:, -1].any()
    assert covered[1].sum() > covered[0].sum()  # the larger cap reaches further
    fdr = np.linspace(0, 0.1, ladder.grid.size)
    (chosen,) = ladder.worth_betting(at, p, fdr)
    assert np.array_equal(chosen, (uncovered <= 0.02) | (fdr + uncovered <= 0.9 * ALPHA))
    assert (chosen.sum(axis=1) > covered.sum(axis=1)).all()
    nobody = ladder.worth_betting(at[:0], p[:0], np.array(np.nan))
    assert nobody.all()


def test_more_outcomes_assumes_the_same_rounds_again(rng):
    ladder = make_ladder()
    use = np.ones(ladder.grid.size, np.bool_)
    rounds = [play_round(rng, ladder, 25, fdr) for fdr in (0.1, 0.12)]
    assert np.isnan(ladder.more_outcomes(26))  # nothing is known yet
    for batch in rounds:
        ladder.test(*batch, ratio_bounds=ladder.ratio_bounds(25), use=use)
    known, times = sum(int(accepted.sum()) for _, _, accepted, _ in rounds), 1
    more = ladder.more_outcomes(26)
    assert more > known
    while ladder.wealth.best[26] < ladder.threshold(26):
        assert more > (times - 1) * known
        for batch in rounds:
            ladder.test(*batch, ratio_bounds=ladder.ratio_bounds(25), use=use)
        times += 1
    assert more <= (times - 1) * known
    assert ladder.more_outcomes(26) == 0


def test_evidence_against_a_rung_leaves_the_missing_outcomes_unknown(rng):
    ladder = make_ladder()
    ladder.test(
        *play_round(rng, ladder, 25, 1.0),
        ratio_bounds=ladder.ratio_bounds(25),
        use=np.ones(ladder.grid.size, np.bool_),
    )
    assert np.isnan(ladder.more_outcomes(26))
    assert np.isnan(ladder.more_outcomes(3))  # inside both starts: none can come
    assert nearest_certificate([ladder, make_ladder()]) is None


def test_the_nearest_certificate_is_the_nearest_start_of_any_ladder(rng):
    better, worse, untested = make_ladder(), make_ladder(starts=((30, 1.0),)), make_ladder()
    for ladder, fdr in ((better, 0.02), (worse, 0.09)):
        use = np.ones(ladder.grid.size, np.bool_)
        ladder.test(
            *play_round(rng, ladder, 30, fdr), ratio_bounds=ladder.ratio_bounds(30), use=use
        )
    outer, inner = (better.more_outcomes(rung) for rung in (20, 8))
    assert 0 < outer < inner
    assert outer < worse.more_outcomes(30) < np.inf
    for ladders in ([better, worse, untested], [untested, worse, better]):
        assert nearest_certificate(ladders) == (better, 20)
    assert nearest_certificate([worse, untested]) == (worse, 30)
    better.starts = ((60, 0.8), (8, 0.2))  # the outer start is not covered
    assert np.isnan(better.more_outcomes(60))
    assert nearest_certificate([better]) == (better, 8)


FLOOR = 0.02


FLOOR_STRATEGIES = [
    Uniform(),
    ScoreWeighted(),
    ScoreWeighted(beta=0.3),
    GroupShare(),
    GroupShare(reading="product"),
    EqualGroups(),
    ScoreWeighted() * EqualGroups(),
]


class ThreeGroups:
    """x ~ N(0, 1), lower in B and lower still in C, which is small."""

    features = ("x",)
    groups = ("A", "B", "C")

    def draw(self, n, rng):
        z = rng.choice(3, n, p=[0.6, 0.3, 0.1])
        return People((rng.normal(size=n) - 0.5 * z)[:, None], np.array(self.groups)[z])

    def probability_good(self, people):
        return 1 / (1 + np.exp(-1.5 - 2 * people.X[:, 0]))


@pytest.fixture
def people(rng):
    group = rng.choice(3, 3000, p=[0.6, 0.3, 0.1])
    return rng.uniform(0.02, 0.98, 3000) * (1 - 0.3 * group), group


@pytest.mark.parametrize("strategy", FLOOR_STRATEGIES, ids=repr)
def test_the_mean_chance_over_reference_applicants_is_the_share(strategy, people):
    score, group = people
    floor = Floor.freeze(strategy, FLOOR, None, score, group, 3)
    chance = floor.chance(None, score, group)
    assert chance.mean() == pytest.approx(FLOOR)
    assert chance.min() > 0


def test_group_share_gives_each_group_its_part(people):
    score, group = people
    chance = Floor.freeze(GroupShare(), FLOOR, None, score, group, 3).chance(None, score, group)
    by_score = Floor.freeze(ScoreWeighted(), FLOOR, None, score, group, 3)
    for z in range(3):
        assert chance[group == z].mean() == pytest.approx(FLOOR)
    assert by_score.chance(None, score, group)[group == 2].mean() < 0.8 * FLOOR  # the control


def test_a_frozen_floor_does_not_look_at_the_batch(people):
    score, group = people
    floor = Floor.freeze(GroupShare(), FLOOR, None, score, group, 3)
    whole = floor.chance(None, score, group)
    some = np.flatnonzero((group == 2) | (score > 0.7))
    assert np.array_equal(floor.chance(None, score[some], group[some]), whole[some])


@pytest.mark.parametrize("strategy", FLOOR_STRATEGIES, ids=repr)
def test_every_applicant_can_be_explored_and_ratios_stay_bounded(strategy, rng):
    """What the proof needs of a rung: a fixed policy, and π_j/π_d ≤ exp((q_j − q_d)/τ)."""
    population = ThreeGroups()
    classifier = start(population, rng, floor=FLOOR, strategy=strategy, horizon=10)
    for _ in range(4):
        batch = draw_applicants(population, 500, rng)
        decided = classifier.decide(batch.people.X, sensitive_features=batch.people.group)
        classifier.observe(decided.ids[decided.accepted], batch.outcome[decided.accepted])
        assert decided.propensity.min() > 1e-4
        assert decided.propensity.max() <= 1
    group = np.searchsorted(population.groups, batch.people.group)
    for ladder in classifier._engines[0].ladders:
        pi = ladder.policies(ladder.locate(batch.people.X, group))
        for rung in (0, 20, 60):
            apart = np.maximum(0, ladder.grid - ladder.grid[rung]) / ladder.tau
            assert np.all(np.log(pi / pi[:, [rung]]) <= apart + 1e-9)


def test_certified_rounds_keep_the_bound_with_a_floor(rng):
    """The FDR of a certified round counts applicants accepted by the floor."""
    population = ThreeGroups()
    applicants = draw_applicants(population, 10_000, rng)
    good = applicants.probability_good
    certified, floored = 0, 0.0
    for seed in range(4):
        own = np.random.default_rng(seed)
        classifier = start(
            population, own, floor=FLOOR, strategy=GroupShare(), horizon=20, learner=QUICK
        )
        for _ in range(20):
            batch = draw_applicants(population, 800, own)
            decided = classifier.decide(batch.people.X, sensitive_features=batch.people.group)
            classifier.observe(decided.ids[decided.accepted], batch.outcome[decided.accepted])
            if decided.certified:
                p = classifier.acceptance_probability(
                    applicants.people.X, sensitive_features=applicants.people.group
                )
                certified += 1
                assert p @ (1 - good) / p.sum() <= ALPHA
                floored = max(floored, p[good < 0.2].min())
    assert certified > 20
    assert floored > 0


def test_a_user_function_spreads_the_floor(rng):
    X = rng.normal(size=(600, 2))
    good = (X[:, 0] + rng.normal(size=600) > 0).astype(int)

    def near(X, score, group):
        return np.exp(-(X[:, 1] ** 2))

    classifier = CertifiedClassifier(floor=0.05, strategy=near, random_state=0)
    classifier.fit(X, good, accepted=X[:, 1] > -1)
    new = np.array([[-9.0, 0.0], [-9.0, 2.0]])
    p = classifier.decide(np.vstack([new, X])).propensity[:2]
    assert p[0] / p[1] == pytest.approx(np.exp(4), rel=1e-2)  # the soft edge adds a little


def test_a_strategy_that_leaves_applicants_out_is_refused(rng):
    X = rng.normal(size=(100, 1))
    good = (X[:, 0] > 0).astype(int)
    classifier = CertifiedClassifier(floor=0.01, strategy=lambda X, s, z: (s > 0.5) * 1.0)
    with pytest.raises(InputError):
        classifier.fit(X, good, accepted=X[:, 0] > -1).decide(X)
    with pytest.raises(InputError, match="strategy"):
        CertifiedClassifier(floor=0.01, strategy="uniform").fit(X, good, accepted=X[:, 0] > -1)


BY_FIRST_COLUMN = LinearLikelihood(np.array([3.0, 0.0]), 0.0)  # ranks by the first column


def ladder_of(strategy, share, rng, n=4000, tau=0.08):
    """Return a ladder frozen on reference applicants; the second column bars some."""
    X, group = rng.normal(size=(n, 2)), np.zeros(n, np.intp)
    score = BY_FIRST_COLUMN.score(X, group)
    ranking = Ranking.freeze(BY_FIRST_COLUMN, score, group, 1, within=False)
    floor = Floor.freeze(strategy, share, X, score, group, 1)
    return Ladder(ranking, tau, floor, 0.05, ((0, 1.0),), 1, ALPHA)


LIMITS = [Limited(Uniform(), exclude=Above(1, 0.5)), Limited(Uniform(), max_risk=0.8)]


@pytest.mark.parametrize("share", [0.0, 0.02])
@pytest.mark.parametrize("limited", LIMITS, ids=["rule", "risk"])
def test_the_barred_are_accepted_for_sure_or_not_at_all(limited, share, rng):
    ladder = ladder_of(limited, share, rng)
    free = ladder_of(Uniform(), share, np.random.default_rng(0))
    X, group = rng.normal(size=(500, 2)), np.zeros(500, np.intp)
    barred = X[:, 1] > 0.5 if limited.exclude else BY_FIRST_COLUMN.score(X, group) < 0.2
    at = ladder.locate(X, group)
    pi = ladder.policies(at)
    assert np.array_equal(at.barred, barred)
    assert 50 < barred.sum() < 450
    assert np.array_equal(pi[barred], at.rank[barred, None] <= ladder.grid)
    assert pi[~barred].min() > (share / 2 if share else 0)
    assert pi[~barred] == pytest.approx(free.policies(free.locate(X, group))[~barred])
    assert at.chance[~barred] == pytest.approx(share)
    assert np.array_equal(at[barred].barred, np.ones(barred.sum(), bool))


@pytest.mark.parametrize("limited", LIMITS, ids=["rule", "risk"])
def test_sums_with_limits_equal_those_of_the_table(limited, rng):
    ladder = ladder_of(limited, 0.02, rng)
    X, group = rng.normal(size=(300, 2)), np.zeros(300, np.intp)
    reach = LadderRows(ladder, ladder.locate(X[:0], group[:0]))
    for part in (slice(0, 120), slice(120, 300)):
        reach.extend(ladder.locate(X[part], group[part]))
    worth = rng.normal(size=300)
    table = ladder.policies(ladder.locate(X, group))
    assert reach.sums(worth) == pytest.approx(worth @ table)
    some = np.flatnonzero(rng.random(300) < 0.4)
    assert reach.sums(worth[some], some) == pytest.approx(worth[some] @ table[some])


@pytest.mark.parametrize("limited", LIMITS, ids=["rule", "risk"])
@pytest.mark.parametrize("share", [0.0, 0.05])
def test_no_applicant_loses_more_than_the_bound_and_none_gains_in_expectation(limited, share, rng):
    """Z over both coins and both outcomes of every applicant, for several rungs of two ladders."""
    ladder = ladder_of(limited, share, rng)
    other = ladder_of(Limited(Uniform(), exclude=Below(1, 0)), share, rng, tau=0.2)
    X, group = rng.normal(size=(400, 2)), np.zeros(400, np.intp)
    f = rng.random(400)  # P(bad)
    pi = ladder.policies(ladder.locate(X, group))
    for deployed, on in [(0, ladder), (15, ladder), (40, ladder), (79, ladder), (30, other)]:
        p = on.policy(on.locate(X, group), deployed)
        bound = ladder.ratio_bounds(deployed if on is ladder else None)
        no, taken = np.zeros(400, bool), p > 0
        for i, cap in enumerate(RATIO_CAPS):
            z_out = values(pi, p, no, no, ALPHA, cap)
            z_good, z_bad = (values(pi, p, taken, no | bad, ALPHA, cap) for bad in (False, True))
            for z in (z_out, z_good, z_bad):
                assert np.all(z >= -(1 - ALPHA) * np.maximum(bound[i], 1) - 1e-12)
            mean = (1 - p)[:, None] * z_out + p[:, None] * (
                (1 - f)[:, None] * z_good + f[:, None] * z_bad
            )
            assert np.all(mean <= pi * (ALPHA - f)[:, None] + 1e-12)
    assert (p == 0).sum() > 20


class Uncounted(Ladder):
    """The control: applicants whom the deployed policy bars are left out, not counted as bad."""

    def test(self, *people, ratio_bounds, use):
        _, p, _, _ = people
        super().test(*(part[p > 0] for part in people), ratio_bounds=ratio_bounds, use=use)


@pytest.mark.parametrize(("kind", "blind"), [(Ladder, False), (Uncounted, True)])
def test_unseen_applicants_do_not_help_a_certificate(kind, blind):
    """Barred applicants look as good as the others and are bad beyond the deployed rung."""
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
            at = ladder.locate(X, group)
            p = ladder.policy(at, deployed)
            accepted = rng.random(500) < p
            unseen = at.barred & (at.rank > ladder.grid[deployed])
            bad = rng.random(500) < np.where(unseen, 1.0, 0.02)
            ladder.test(
                at, p, accepted, bad & accepted, ratio_bounds=ladder.ratio_bounds(deployed), use=use
            )
        many = ladder.locate(rng.normal(size=(20_000, 2)), np.zeros(20_000, np.intp))
        unseen = many.barred & (many.rank > ladder.grid[deployed])
        pi = ladder.policy(many, wide)
        assert pi @ np.where(unseen, 1.0, 0.02) / pi.sum() > ALPHA  # it must not be certified
        wrong += ladder.wealth.best[wide] >= -np.log(level)
    assert (binom.sf(wrong - 1, runs, level) < 0.001) == blind


class TwoColumns:
    """Good by the first column; the second bars a quarter, which is worse than it looks."""

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
    applicants = draw_applicants(population, 10_000, rng)
    barred = applicants.people.X[:, 1] == 1
    certified, violated = 0, 0
    for seed in range(3):
        own = np.random.default_rng(seed)
        limited = Limited(Uniform(), exclude=OneOf(1, (1,)))
        classifier = start(
            population, own, floor=floor, strategy=limited, horizon=15, learner=QUICK
        )
        broken = False
        for _ in range(15):
            batch = draw_applicants(population, 600, own)
            decided = classifier.decide(batch.people.X)
            classifier.observe(decided.ids[decided.accepted], batch.outcome[decided.accepted])
            p = classifier.acceptance_probability(applicants.people.X)
            assert np.isin(p[barred], [0, 1]).all()
            assert p[~barred].min() > 0
            record, out = classifier.rounds_[-1], batch.people.X[:, 1] == 1
            assert record.n_unreachable == (out & ~decided.exploit).sum()
            assert np.array_equal(decided.propensity == 0, out & ~decided.exploit)
            n, of = record.n_unreachable, (~decided.exploit).sum()
            facts = {"n_barred": n, "n_candidates": of, "excluded": n}
            said = tuple(note for note in record.notes if note.code == "barred")
            assert said == ((Note("barred", facts),) if n else ())
            if decided.certified:
                certified += 1
                broken |= p @ (1 - applicants.probability_good) / p.sum() > ALPHA
        violated += broken
        assert np.array_equal(classifier.never_explored(applicants.people.X), barred)
    assert certified > 10
    assert not too_many(violated, 3, 0.1, false_alarm=0.05)
    save(classifier, tmp_path / "x")
    again = load(tmp_path / "x")
    X = population.draw(300, rng).X
    assert np.array_equal(classifier.decide(X).propensity, again.decide(X).propensity)


def test_all_applicants_barred_and_limits_per_group(rng):
    applicants = Limited(exclude=lambda X: np.ones(len(X), bool))
    population = TwoColumns()
    classifier = start(population, rng, floor=0.02, strategy=applicants, horizon=5)
    assert classifier.never_explored(population.draw(9, rng).X).all()
    decided = classifier.decide(population.draw(400, rng).X)
    assert np.array_equal(decided.accepted, decided.exploit)
    facts = classifier.rounds_[0].notes[0].facts
    assert facts["n_barred"] == facts["n_candidates"] == classifier.rounds_[0].n_unreachable
    X = rng.normal(size=(600, 2))
    group = np.where(rng.random(600) < 0.5, "A", "B")
    good = (X[:, 0] + rng.normal(size=600) > 0).astype(int)
    two = CertifiedClassifier(
        strategy=Limited(max_risk=0.6, exclude=Above(1, 1)), certify="per_group", random_state=0
    ).fit(X, good, accepted=X[:, 0] > -1, sensitive_features=group)
    decided = two.decide(X, sensitive_features=group)
    never = two.never_explored(X, sensitive_features=group)
    assert np.array_equal(decided.propensity == 0, never & ~decided.exploit)
    assert (
        sum(record.n_unreachable for record in two.rounds_) == (decided.propensity == 0).sum() > 0
    )


def test_exposure_and_missing_values_in_limits_are_refused(rng):
    limited = Limited(exposure=100, amount=1)
    with pytest.raises(InputError, match=r"exposure.*100"):
        start(TwoColumns(), rng, strategy=limited)
    nan = Limited(exclude=lambda X: np.where(X[:, 0] > 5, np.nan, 0))
    classifier = start(TwoColumns(), rng, strategy=nan)
    X = TwoColumns().draw(50, rng).X
    with pytest.raises(InputError, match=r"NaN.*1.*51"):
        classifier.decide(np.vstack([X, [[6.0, 0.0]]]))
    assert classifier.rounds_ == ()
    classifier.decide(X)


def test_a_floor_is_shared_by_the_applicants_left(rng):
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
