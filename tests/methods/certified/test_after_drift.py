"""After an alarm: estimates from the rounds that are kept, and from none that are forgotten."""

from __future__ import annotations

import numpy as np
import pytest

from methods.certified.known_truth import Slope, play, rngs, start
from secondlook.methods.certified.engine import ChosenPolicy

PEOPLE = Slope()
N, WIDE, NARROW = 1000, 0.5, 0.1
KEPT = 5


class Told:
    """A run whose rungs are told, round by round."""

    def __init__(self, rng, **options):
        self.rng, self.rounds = rng, []
        self.classifier = start(PEOPLE, rng, horizon=400, monitor=0, **options)
        (self.engine,) = self.classifier._engines
        self.engine.choose = self._choose

    @property
    def reach(self):
        return self.engine.stage.ladder_rows[-1]

    def _choose(self):
        ladder, rung = self.reach.ladder, self.reach.ladder.nearest(self.share)
        self.rounds.append((ladder, rung))
        return ChosenPolicy(ladder, rung, False, float("nan"), self.share)

    def play(self, share, n_rounds):
        self.share = share
        play(self.classifier, PEOPLE, self.rng, n=N, rounds=n_rounds, truth=False)

    def estimate(self):
        """Return the engine's estimate of the wide rung's FDR, with its standard error."""
        return self.engine.estimates.mistakes(self.reach, self.reach.ladder.nearest(WIDE))

    def by_hand(self, kept, counted):
        """Return it from people of the last rounds, weighted by policies of as many or more."""
        rows, ladder = self.engine.rows, self.reach.ladder
        mine = rows["round"] > len(self.rounds) - kept
        X, group = rows.X[mine], rows["group"][mine]
        past = self.rounds[len(self.rounds) - counted :]
        p = sum(other.policy(other.locate(X, group), rung) for other, rung in past)
        weight = ladder.policy(ladder.locate(X, group), ladder.nearest(WIDE)) / p
        return float(weight @ (rows["outcome"][mine] != 1) / weight.sum())

    def truth(self):
        """Return it in the population, by quadrature."""
        everybody, ladder = PEOPLE.everybody(), self.reach.ladder
        at = ladder.locate(everybody.X, np.zeros(len(everybody), np.intp))
        pi = ladder.policy(at, ladder.nearest(WIDE))
        return float(pi @ (1 - PEOPLE.probability_good(everybody)) / pi.sum())


def test_estimates_count_rounds_that_are_kept_and_no_others():
    """Ten wide rounds, of which five are forgotten, and ten narrow ones: against the truth.

    The control counts all twenty in the weights, so that people whom only wide rounds accept, who
    are worse than others, count too little.
    """
    z = []
    for rng in rngs(41, 6):
        one = Told(rng)
        one.play(WIDE, 10)
        one.engine.restart("drift")
        one.play(NARROW, 10)
        share, error = one.estimate()
        assert share == pytest.approx(one.by_hand(kept=15, counted=15), rel=1e-9)
        z.append((np.array([share, one.by_hand(kept=15, counted=20)]) - one.truth()) / error)
    ours, control = np.sum(z, axis=0) / np.sqrt(len(z))
    assert abs(ours) < 3.5
    assert control < -4.5


def test_how_far_rounds_went_is_said_of_those_kept():
    one = Told(np.random.default_rng(0))
    one.play(WIDE, 4)
    one.play(NARROW, 6)
    assert one.engine.estimates.widest == pytest.approx(WIDE, abs=0.02)
    one.engine.restart("drift")
    assert one.engine.estimates.widest == pytest.approx(NARROW, abs=0.02)
    assert one.engine.estimates.n_people == KEPT * N


@pytest.mark.parametrize("waiting", [2, 8])
def test_rounds_that_wait_for_outcomes_count_if_they_are_kept(waiting):
    """Some of the kept rounds, or all of them and some forgotten ones, come in later."""
    one = Told(np.random.default_rng(1), maturity=waiting)
    one.play(WIDE, 9)
    one.play(NARROW, 1)
    one.engine.restart("drift")
    assert one.engine.estimates.n_people == max(0, KEPT - waiting) * N
    one.play(NARROW, 10)
    settled = 10 - waiting
    assert one.engine.estimates.n_people == (KEPT + settled) * N
    rows, in_tests = one.engine.rows, one.engine.estimates.settled
    assert rows["round"][in_tests].min() == 10 - KEPT + 1
    assert np.unique(rows["round"][in_tests]).size == KEPT + settled
    p = np.zeros(in_tests.size)
    X, group = rows.X[in_tests], rows["group"][in_tests]
    for ladder, rung in one.rounds[10 - KEPT : 10 + settled]:
        p += N * ladder.policy(ladder.locate(X, group), rung)
    assert rows["p_sum"][in_tests] == pytest.approx(p, rel=1e-9)
