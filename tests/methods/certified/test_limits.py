"""Limits under a certificate: the barred count as bad, and nothing is promised of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from methods.certified.known_truth import ALPHA, start, too_many
from secondlook import CertifiedClassifier, GroupShare, Uniform, load, save
from secondlook.core.limits import Above, Below, Limited, OneOf
from secondlook.errors import InputError
from secondlook.lab.simulate.people import People
from secondlook.lab.simulate.populations import draw_applicants
from secondlook.methods.certified.evidence import values
from secondlook.methods.certified.ladder import Floor, Ladder, LadderRows
from secondlook.methods.certified.ranking import Ranking
from secondlook.people.likelihoods import LinearLikelihood

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
    at = ladder.locate(X, group)
    pi = ladder.policies(at)
    assert np.array_equal(at.barred, barred)
    assert 50 < barred.sum() < 450
    assert np.array_equal(pi[barred], at.rank[barred, None] <= ladder.grid)
    assert pi[~barred].min() > (share / 2 if share else 0)
    assert pi[~barred] == pytest.approx(free.policies(free.locate(X, group))[~barred])
    assert at.chance[~barred] == pytest.approx(share)
    assert np.array_equal(at[barred].barred, np.ones(barred.sum(), bool))


@pytest.mark.parametrize("limited", CERTIFIED_LIMITS, ids=["rule", "risk"])
def test_sums_over_people_are_those_of_the_table(limited, rng):
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


@pytest.mark.parametrize("limited", CERTIFIED_LIMITS, ids=["rule", "risk"])
@pytest.mark.parametrize("share", [0.0, 0.05])
def test_no_row_loses_more_than_its_bound_and_none_gains_in_expectation(limited, share, rng):
    """Z over both coins and both outcomes of everybody, for every pair of rungs and two ladders."""
    ladder = ladder_of(limited, share, rng)
    other = ladder_of(Limited(Uniform(), exclude=Below(1, 0)), share, rng, tau=0.2)
    X, group = rng.normal(size=(400, 2)), np.zeros(400, np.intp)
    f = rng.random(400)  # P(bad)
    pi = ladder.policies(ladder.locate(X, group))
    for deployed, on in [(0, ladder), (15, ladder), (40, ladder), (79, ladder), (30, other)]:
        p = on.policy(on.locate(X, group), deployed)
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

    def test(self, *people, deployed, use):
        _, p, _, _ = people
        super().test(*(part[p > 0] for part in people), deployed=deployed, use=use)


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
            at = ladder.locate(X, group)
            p = ladder.policy(at, deployed)
            accepted = rng.random(500) < p
            unseen = at.barred & (at.rank > ladder.grid[deployed])
            bad = rng.random(500) < np.where(unseen, 1.0, 0.02)
            ladder.test(at, p, accepted, bad & accepted, deployed=deployed, use=use)
        many = ladder.locate(rng.normal(size=(20_000, 2)), np.zeros(20_000, np.intp))
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
            assert (
                f"{record.n_unreachable} of {(~decided.exploit).sum()} candidates cannot be "
                f"explored (excluded: {record.n_unreachable})"
            ) in record.message
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
