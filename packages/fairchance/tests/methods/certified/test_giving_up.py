"""Evidence that no rung keeps α, what a pilot does then, and that it has reasons for it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.special import expit

from fairchance import CertifiedClassifier
from fairchance.core.noise import OutcomeNoise
from fairchance.errors import InputError
from fairchance.methods.certified import evidence
from fairchance.methods.certified.engine import Engine
from fairchance.methods.certified.evidence import MIRROR_CAP, Dependence, MirrorTest, Outlook
from fairchance.methods.certified.pilot import outlook_of
from fairchance.methods.storage import dumps, loads
from fairchance.simulate.populations import draw_applicants
from methods.certified.controls import with_engine
from methods.certified.known_truth import (
    ALPHA,
    DELTA,
    Flat,
    OneFeature,
    Slope,
    rngs,
    start,
    too_many,
)
from methods.certified.ladders import make_ladder, play_round
from methods.certified.lender import Town, open_program, tell

GIVEN_UP = "none_in_sight"
NULL_ROUNDS, CORRECTED = 39, 8


@dataclass(frozen=True)
class Hopeless(OneFeature):
    """Even the best applicants are bad too often; the best tenth has an FDR of about .24."""

    least: float = 0.2

    def probability_good(self, people):
        return 1 - self.least - (0.75 - self.least) * expit(-2 * people.X[:, 0] + 0.5)


def notes_of(classifier):
    return [note for note in classifier.rounds_[-1].notes if note.code == GIVEN_UP]


def decide_and_tell(classifier, population, rng, n=600):
    """Decide a round, tell its outcomes, and return the decisions and which applicants are bad."""
    people = draw_applicants(population, n, rng)
    decided = classifier.decide(people.people.X)
    classifier.observe(decided.ids[decided.accepted], people.outcome[decided.accepted])
    return decided, people.outcome == 0


# The bets


def a_round(rng, n=300, n_policies=4):
    """Return π, p, who is accepted and took the loan, who is bad, and who applied."""
    pi = np.sort(rng.random((n, n_policies)), axis=1) * (rng.random((n, 1)) < 0.5)
    p = np.clip(pi[:, 1] * rng.choice([0.05, 0.5, 1.0], n), 1e-3, 1.0)
    accepted = (rng.random(n) < p) & (rng.random(n) < 0.8)
    return pi, p, accepted, rng.random(n) < 0.3, rng.integers(0, n // 2, n)


@pytest.mark.parametrize("shock", [0.0, 0.02])
def test_several_policies_and_bounds_are_as_many_single_tests(rng, shock):
    bounds = np.array([0.1, ALPHA, 0.4])
    together = MirrorTest(bounds, 4)
    alone = {(i, j): MirrorTest(bounds[i]) for i in range(3) for j in range(4)}
    for _ in range(3):
        pi, p, accepted, bad, persons = a_round(rng)
        depend = Dependence(persons, 5, shock)
        ratio = np.full(4, MIRROR_CAP + 1)
        together.add(pi, p, accepted, bad, ratio_bound=ratio, dependence=depend)
        for (_, j), one in alone.items():
            one.add(pi[:, j], p, accepted, bad, ratio_bound=ratio[j], dependence=depend)
    for (i, j), one in alone.items():
        assert together.best[i, j] == pytest.approx(one.best[0, 0], abs=1e-9)


def test_wealth_is_a_product_over_applicants_that_counts_the_uncovered_as_good(rng):
    mirror, wealth = MirrorTest(ALPHA, 4), np.ones((4, 4))
    pi, p, accepted, bad, _ = a_round(rng)
    mirror.add(pi, p, accepted, bad, ratio_bound=MIRROR_CAP + 1)
    for i, j in np.ndindex(pi.shape):
        w = min(pi[i, j] / p[i], MIRROR_CAP)
        z = accepted[i] * w * (bad[i] - ALPHA) - (pi[i, j] - w * p[i]) * ALPHA
        for k, bet in enumerate((0.1, 0.3, 0.8, 2.0)):
            share = min(bet, 0.95 / (ALPHA * (MIRROR_CAP + 1)))
            wealth[k, j] *= 1 + share * z
    expected = np.maximum(np.log(wealth.mean(axis=0)), 0)
    assert mirror.best[0] == pytest.approx(expected, abs=1e-9)
    assert mirror.best_of_mean[0] == pytest.approx(max(0, math.log(wealth.mean())), abs=1e-9)


# Giving up without reason


def false_end(rng, *, rounds=15, n=400, only_one=False):
    """Return whether it is ever said that no policy keeps α, although the first one just does.

    Cells of 10 %, 10 % and 80 %; the first policy accepts the first cell, the second one both.
    """
    f = np.array([ALPHA, 0.4, 0.5])
    outlook = Outlook(np.arange(2), 2, ALPHA)
    for _ in range(rounds):
        cell = rng.choice(3, n, p=[0.1, 0.1, 0.8])
        pi = np.column_stack([cell == 0, cell <= 1]).astype(float)
        p = np.where(cell <= 1, 0.5, 0.0)
        accepted, bad = rng.random(n) < p, rng.random(n) < f[cell]
        outlook.add(pi, p, accepted, bad, ~bad, ratio_bound=np.full(2, 2.0))
    if only_one:
        return bool(np.any(outlook._above.best[2] >= -math.log(DELTA)))
    low, high = outlook.interval(DELTA)
    assert outlook.broken(DELTA) in (0, 2) or not outlook.none_keeps(DELTA)
    return outlook.none_keeps(DELTA) or low >= ALPHA or high <= ALPHA - 1e-9


def test_a_policy_that_just_keeps_alpha_is_seldom_given_up():
    """Exact binomial, for both ends of the interval together, each of which may be wrong in δ."""
    wrong = sum(false_end(rng) for rng in rngs(70, 100))
    assert not too_many(wrong, 100, 2 * DELTA)


def test_a_test_that_needs_only_one_policy_is_caught():
    wrong = sum(false_end(rng, only_one=True) for rng in rngs(71, 20))
    assert too_many(wrong, 20, 2 * DELTA)


def uncovered_end(rng, *, rounds=25, n=400):
    """The same for a policy whose better half is hardly covered; its FDR is α."""
    f, mirror = np.array([0.25, 0.05]), MirrorTest(ALPHA)
    for _ in range(rounds):
        cell = rng.choice(3, n, p=[0.1, 0.1, 0.8])
        p = np.array([1.0, 0.01, 0.0])[cell]
        bad = rng.random(n) < np.append(f, 0.5)[cell]
        pi = (cell <= 1).astype(float)
        mirror.add(pi, p, rng.random(n) < p, bad, ratio_bound=MIRROR_CAP + 1)
    return bool(mirror.best[0, 0] >= -math.log(DELTA))


def test_what_is_not_covered_counts_as_good(monkeypatch):
    """The control counts it as bad, as certificates do."""
    assert not too_many(sum(uncovered_end(rng) for rng in rngs(72, 100)), 100, DELTA)
    plain = evidence.uncovered
    as_bad = -(1 - ALPHA) / ALPHA
    monkeypatch.setattr(evidence, "uncovered", lambda *args: as_bad * plain(*args))
    assert too_many(sum(uncovered_end(rng) for rng in rngs(72, 20)), 20, DELTA)


def test_rungs_that_just_keep_alpha_are_seldom_given_up():
    """The rungs of a ladder, with their soft edges, in rounds of pilots of different reach."""
    wrong, runs = 0, 80
    for rng in rngs(73, runs):
        ladder = make_ladder(tau=0.03, n=2000)
        ladder.outlook = outlook_of(ladder, 600, OutcomeNoise())
        for rung in (29, 29, 15, 9, 9, 9, 20, 20):
            at, p, accepted, bad = play_round(rng, ladder, rung, ALPHA, n=600)
            known = np.where(bad, 0, 1).astype(np.int8)
            bounds = ladder.ratio_bounds(rung)
            ladder.look(at, p, accepted, known, ratio_bounds=bounds, dependence=Dependence())
        wrong += ladder.outlook.none_keeps(DELTA)
    assert not too_many(wrong, runs, DELTA)


def test_outcomes_that_are_not_known_speak_for_no_end(rng):
    """If none is known, the lower end does not rise and the upper end does not fall."""
    ladder = make_ladder(tau=0.03, n=2000)
    ladder.outlook = outlook_of(ladder, 600, OutcomeNoise())
    for _ in range(5):
        at, p, accepted, bad = play_round(rng, ladder, 20, 0.5, n=600)
        known = np.full(bad.size, -1, np.int8)
        bounds = ladder.ratio_bounds(20)
        ladder.look(at, p, accepted, known, ratio_bounds=bounds, dependence=Dependence())
    assert ladder.outlook.interval(DELTA) == (0.0, 1.0)


# Pilots


@pytest.mark.parametrize("n", [600, 200])
def test_a_book_without_a_policy_is_given_up_within_three_rounds(n):
    for rng in rngs(80, 3):
        classifier = start(Hopeless(), rng, learner=None, n_history=n)
        full, bad_then = 0, []
        for _ in range(20):
            decided, bad = decide_and_tell(classifier, Hopeless(), rng, n)
            assert not decided.certified
            if notes_of(classifier):
                bad_then.append(np.sum(bad & decided.accepted))
                assert classifier.deployed_[0].scale == 1 or not decided.exploit.any()
            else:
                full += 1
        assert full <= 3
        assert np.mean(bad_then) < 2 * n / 200  # the price, and chance
        assert sum(bad_then) > 0  # evidence goes on


# Certificates of pilots that give up


def null_run(rng, method=CertifiedClassifier):
    """Return whether a run was ever certified, and how often it gave up and began again.

    After some rounds an outcome is told wrongly and corrected, so that all tests begin again.
    """
    classifier = start(Flat(), rng, method=method)
    certified, given_up = False, []
    for t in range(1, NULL_ROUNDS + 1):
        decided, bad = decide_and_tell(classifier, Flat(), rng)
        certified |= decided.certified
        given_up.append(bool(notes_of(classifier)))
        if t == CORRECTED:
            one = np.flatnonzero(decided.accepted)[:1]
            classifier.correct(decided.ids[one], bad[one].astype(int))
            classifier.correct(decided.ids[one], 1 - bad[one].astype(int))
    changes = np.diff(np.array([False, *given_up], int))
    return certified, np.sum(changes > 0), np.sum(changes < 0)


class InSightAgain(Engine):
    """Takes a pilot that goes on after it gave up for proof that a policy keeps α."""

    gave_up = False

    def choose(self, **how):
        policy = super().choose(**how)
        self.gave_up |= bool(policy.notes)
        return replace(policy, certified=policy.certified or (self.gave_up and not policy.notes))


NULL = pytest.mark.filterwarnings("ignore:The history ranks", "ignore:.*Testing begins again")


@pytest.mark.long
@NULL
def test_null_runs_that_give_up_and_begin_again_are_seldom_certified():
    """Exact binomial; a false alarm of this test has probability 0.001."""
    runs = [null_run(rng) for rng in rngs(85, 100)]
    certified, gave_up, began_again = np.array(runs, int).T
    assert np.mean(gave_up > 0) > 0.9
    assert np.mean(began_again > 0) > 0.5
    assert not too_many(certified.sum(), 100, DELTA)


@pytest.mark.long
@NULL
def test_nulls_that_give_up_catch_a_hope_that_is_taken_for_proof():
    runs = [null_run(rng, with_engine(InSightAgain))[0] for rng in rngs(86, 10)]
    assert too_many(sum(runs), 10, DELTA)


def test_a_book_with_a_policy_is_not_given_up():
    for rng in rngs(81, 4):
        classifier = start(Slope(), rng, learner=None)
        given_up = []
        for _ in range(8):
            decide_and_tell(classifier, Slope(), rng, 300)
            given_up.append(bool(notes_of(classifier)))
        assert sum(given_up) <= 1  # an estimate from two rounds may mislead
        assert not any(given_up[3:])
        assert classifier.deployed_[0].scale == 1


def test_a_price_of_zero_leaves_the_floor_and_a_high_one_all_of_the_smallest_policy():
    accepted = {}
    for price in (0.0, 300.0, 1e6):
        (rng,) = rngs(82, 1)
        classifier = start(Hopeless(), rng, learner=None, exploration_price=price)
        rounds = [decide_and_tell(classifier, Hopeless(), rng)[0] for _ in range(6)]
        (note,) = notes_of(classifier)
        accepted[price] = rounds[-1].propensity.sum()
        least = max(classifier.deployed_[0].scale, classifier.floor)
        assert rounds[-1].propensity.max() == pytest.approx(least)
        assert note.facts["low"] <= 0.24 <= note.facts["high"]
    assert accepted[0.0] == pytest.approx(0.0005 * 600)
    assert accepted[0.0] < accepted[300.0] < accepted[1e6]
    with pytest.raises(InputError, match=r"exploration_price must be a number from 0 on.*-1"):
        start(Hopeless(), rng, exploration_price=-1)


def test_each_ranking_has_evidence_of_its_own_and_a_correction_starts_again():
    (rng,) = rngs(83, 1)
    classifier = start(Hopeless(least=0.3), rng, learner=None, exploration_price=1e6)
    (engine,) = classifier._engines
    first, _ = decide_and_tell(classifier, Hopeless(least=0.3), rng)
    while len(engine.ladders) < 2:
        decide_and_tell(classifier, Hopeless(least=0.3), rng)
    before, after = (ladder.outlook for ladder in engine.ladders)
    assert before.none_keeps(DELTA)
    assert before is not after
    again = loads(dumps(classifier))._engines[0].ladders[0].outlook
    assert again.interval(DELTA) == before.interval(DELTA)
    taken = first.ids[first.accepted][:1]
    known = engine.rows["outcome"][0]
    with pytest.warns(match="Testing begins again"):
        classifier.correct(taken, [1 - known])
    assert not engine.ladders
    decide_and_tell(classifier, Hopeless(least=0.3), rng)
    assert engine.ladders[0].outlook is not before


def test_the_first_pilot_of_a_cold_start_is_never_given_up(rng):
    """Random acceptance has no policy at α, and finds the outcomes of the first ranking."""
    population = Slope()
    people = draw_applicants(population, 50, rng)
    classifier = start(population, rng)
    with pytest.warns(match="No applicant of the history was accepted"):
        classifier.fit(people.people.X, None, accepted=np.zeros(50, bool))
    for _ in range(3):
        decide_and_tell(classifier, population, rng)
        assert not notes_of(classifier)


def test_beside_a_lender_giving_up_only_explores_less():
    """The lender's own business stays, and with a price of zero nobody else is accepted."""
    explored = {price: [] for price in (0.0, 300.0, 1e6)}
    town = Town(bad=0.4, slope=0.3, lender=(0.6, 0.4))
    for price, found in explored.items():
        (rng,) = rngs(84, 1)
        classifier = open_program(town, rng, learner=None, floor=0, exploration_price=price)
        for _ in range(8):
            month = town.draw(600, rng)
            decided = classifier.decide(month.X, incumbent=month.incumbent)
            assert np.all(decided.propensity[month.incumbent] == 1)
            tell(classifier, month, decided)
            if notes_of(classifier):
                found.append(decided.propensity[~month.incumbent].sum())
        assert len(found) >= 2
    assert max(explored[0.0]) == 0
    assert 0 < np.mean(explored[300.0]) <= 1.2 * 300 / 200 / 0.15  # batches differ
    assert max(explored[1e6]) > max(explored[300.0])
