"""The curve of earned against α: its tests, its certificates and its shape."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fairchance import load, save
from fairchance.methods.certified.evidence import Wealth
from fairchance.methods.certified.ladder import BoundTest
from fairchance.methods.certified.rules import Rules
from methods.certified.known_truth import (
    ALPHA,
    DELTA,
    QUICK,
    UTILITY,
    Flat,
    Slope,
    play,
    playing,
    rngs,
    start,
    too_many,
)
from methods.certified.ladders import RULES, make_ladder, play_round

BOUNDS = [0.05, 0.1, 0.15, 0.2, 0.25]


def test_bounds_are_thirds_of_alpha_below_one():
    assert RULES.other_bounds == pytest.approx([0.05, 0.1, 0.2, 0.25])
    assert replace(RULES, alpha=0.6).other_bounds == pytest.approx([0.2, 0.4, 0.8])


def test_a_test_at_another_bound_is_that_of_a_ladder_of_its_own(rng):
    """The same rounds, walks and levels, with α replaced."""
    bounds, starts = (0.05, 0.25), ((10, 1.0),)
    ladder = make_ladder()
    ladder.others = tuple(
        BoundTest(starts, Wealth.start(bound, ladder.grid.size)) for bound in bounds
    )
    alone = [make_ladder(starts=starts) for _ in bounds]
    for other, bound in zip(alone, bounds, strict=True):
        other.alpha, other.wealth = bound, Wealth.start(bound, ladder.grid.size)
    for _ in range(4):
        batch = play_round(rng, ladder, 25, 0.04)
        use = rng.random((3, 2, ladder.grid.size)) < 0.9
        ladder.test(*batch, ratio_bounds=ladder.ratio_bounds(25), use=use)
        for k, other in enumerate(alone, 1):
            other.test(*batch, ratio_bounds=other.ratio_bounds(25), use=use[k])
    for own, other in zip(ladder.others, alone, strict=True):
        assert own.wealth.log == pytest.approx(other.wealth.log, abs=1e-9)
        assert np.array_equal(own.certified(ladder.level), other.certified())
    certified = [int(test.certified(ladder.level).sum()) for test in ladder.tests]
    assert 0 == certified[1] < certified[0] < certified[2]


def test_other_bounds_bet_where_that_can_change_what_is_certified(rng):
    ladder = make_ladder()
    other = BoundTest(((20, 0.8), (8, 0.2)), Wealth.start(0.2, ladder.grid.size))
    ladder.others = (other,)
    needed = -np.log(ladder.level * np.array([0.8, 0.2]))
    other.wealth.best[10:30] = needed[0] + 1e-9  # enough for one walk only
    other.wealth.best[30:40] = needed[1] + 1e-9
    everybody = np.arange(ladder.grid.size)
    expected = (everybody >= 8) & ((everybody < 30) | (everybody >= 40))
    assert np.array_equal(other.undecided(ladder.level), expected)
    at, p, _, _ = play_round(rng, ladder, 79, 0.1)
    use = ladder.worth_betting(at, p, np.zeros(ladder.grid.size))
    assert use[0].all()
    assert np.array_equal(use[1], np.tile(expected, (2, 1)))


def test_decisions_do_not_depend_on_other_bounds(monkeypatch):
    def propensities():
        rng = np.random.default_rng(3)
        classifier = start(Slope(), rng, horizon=10, learner=QUICK)
        shares = [policy.share for policy in playing(classifier, Slope(), rng, rounds=10)]
        return shares, [len(record.curve) for record in classifier.rounds_]

    usual, points = propensities()
    assert points == [0] + [5] * 9
    monkeypatch.setattr(Rules, "other_bounds", ())
    alone, points = propensities()
    assert alone == usual
    assert points == [0] + [1] * 9


def test_null_points_are_seldom_certified():
    """All policies break two thirds of α and keep α; a false alarm has probability 0.001."""
    population, runs = Flat(fdr=2 / 3 * ALPHA + 0.0005), 16
    found = np.zeros(5)
    for rng in rngs(51, runs):
        classifier = start(population, rng, horizon=12, learner=QUICK)
        play(classifier, population, rng, n=400, rounds=12, truth=False)
        curves = [record.curve for record in classifier.rounds_ if record.curve]
        assert all([point.bound for point in curve] == pytest.approx(BOUNDS) for curve in curves)
        found += np.any([[point.certified for point in curve] for curve in curves], axis=0)
    assert not too_many(found[0], runs, DELTA)
    assert not too_many(found[1], runs, DELTA)
    assert np.all(found[2:] >= 0.9 * runs)  # and the others are true, and found to be


@pytest.fixture(scope="module")
def late():
    """Return runs on a population in which a wider policy has a higher FDR."""
    runs = []
    for rng in rngs(52, 6):
        classifier = start(Slope(), rng, n_history=1500, horizon=30, learner=QUICK)
        play(classifier, Slope(), rng, n=500, rounds=30, truth=False)
        runs.append(classifier)
    return runs


def truth(ladder):
    """Return the true FDR and the true earnings per applicant of every rung."""
    applicants = Slope().whole_population()
    pi = ladder.policies(ladder.locate(applicants.X, np.zeros(len(applicants), np.intp)))
    good = Slope().probability_good(applicants)
    fdr = (1 - good) @ pi / pi.sum(axis=0)
    return fdr, np.array([UTILITY.expected(column, good).mean() for column in pi.T])


@pytest.mark.xdist_group("curve")  # one worker makes the late runs once
def test_what_is_certified_at_a_bound_keeps_it(late):
    broken = np.zeros(5)
    for classifier in late:
        for ladder in classifier._engines[0].ladders:
            fdr, _ = truth(ladder)
            for k, test in enumerate(ladder.tests):
                broken[k] += np.any(fdr[test.certified(ladder.level)] > test.wealth.alpha)
    for events in broken:
        assert not too_many(events, len(late), DELTA, false_alarm=0.01)


@pytest.mark.xdist_group("curve")  # one worker makes the late runs once
def test_the_curve_rises_to_what_the_bounds_allow(late):
    """Estimates of each point against the truth, and the shape of the mean curve."""
    earned = []
    for classifier in late:
        curve = classifier.rounds_[-1].curve
        earned.append([point.earned for point in curve])
        assert [point.certified for point in curve][2:] == [True] * 3
        now = classifier.rounds_[-1]
        assert curve[2].bound == ALPHA
        assert curve[2].share == now.share
        assert curve[2].estimated_fdr == pytest.approx(now.estimated_fdr)
        truths = [truth(ladder) for ladder in classifier._engines[0].ladders]
        for point in curve:
            if not point.share:
                continue
            found = [  # the same share on each ladder
                (fdr[j], worth[j])
                for ladder, (fdr, worth) in zip(classifier._engines[0].ladders, truths, strict=True)
                for j in np.flatnonzero(ladder.grid == point.share)
            ]
            assert min(abs(point.estimated_fdr - fdr) for fdr, _ in found) < 0.03
            assert min(abs(point.earned / worth - 1) for _, worth in found) < 0.1
    mean = np.mean(earned, axis=0)
    assert np.all(np.diff(mean) > 0)
    best = [max(worth[fdr <= bound].max(initial=0) for fdr, worth in truths) for bound in BOUNDS]
    assert np.all(mean[1:] > 0.8 * np.array(best[1:]))
    assert np.all(mean <= 1.05 * np.array(best))


@pytest.mark.xdist_group("curve")  # one worker makes the late runs once
def test_a_curve_is_saved_with_its_round(late, tmp_path):
    save(late[0], tmp_path / "x")
    again = load(tmp_path / "x")
    assert again.rounds_[-1].curve == late[0].rounds_[-1].curve


def test_a_curve_promises_no_more_than_can_be_earned():
    """A few explored applicants with large weights do not make a point."""
    applicants = Slope().whole_population()
    worth = UTILITY.expected(np.ones(len(applicants)), Slope().probability_good(applicants))
    most = 1.25 * np.maximum(worth, 0).mean()  # an estimate may err
    for rng in rngs(53, 6):
        classifier = start(Slope(), rng, n_history=1500, learner=QUICK, evidence="history")
        play(classifier, Slope(), rng, n=300, rounds=4, truth=False)
        for record in classifier.rounds_:
            assert all(not point.earned > most for point in record.curve)
            certified = [point.certified for point in record.curve if point.bound == ALPHA]
            assert certified in ([], [record.status == "certified"])
