"""Broken methods: each must break the bound, or the tests are blind."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairchance import CertifiedClassifier
from fairchance.methods.certified.engine import Engine
from fairchance.methods.certified.evidence import RATIO_CAPS
from fairchance.methods.certified.rounds import ChosenPolicy
from fairchance.people.store import NOT_TAKEN


class PlugIn(Engine):
    """Deploys the widest rung whose estimated FDR is at most α, without a test."""

    def choose(self, *, beside=False, ramp=1.0):
        if self.n_known < 30:
            return super().choose()
        newest = self.stage.ladder_rows[-1]
        for rung in reversed(range(newest.ladder.grid.size)):
            share = self.estimates.mistakes(newest, rung)[0]
            if share <= self.rules.alpha:
                return ChosenPolicy(newest.ladder, rung, True, share)
        return super().choose()


class WeightsDropped(Engine):
    """Counts the accepted as if all applicants had been accepted with probability 1."""

    def prepare(self, opened, X, group, at, decided, *more):
        certain = replace(decided, propensity=np.ones(len(decided)))
        return super().prepare(opened, X, group, at, certain, *more)

    def _choose_bets(self, policy, *, beside):
        return [
            np.ones((len(ladder.tests), len(RATIO_CAPS), ladder.grid.size), np.bool_)
            for ladder in self.ladders
        ]


class HistoryTrusted(Engine):
    """Tests every ladder on the history's accepted, as if the past had accepted all."""

    history: tuple

    def _freeze(self, *args):
        super()._freeze(*args)
        ladder = self.ladders[-1]
        X, group, bad = self.history
        applicants = np.ones(bad.size, np.bool_)
        at, p, use = ladder.locate(X, group), np.ones(bad.size), np.ones(ladder.grid.size, np.bool_)
        ladder.test(at, p, applicants, bad, ratio_bounds=ladder.ratio_bounds(None), use=use)


class Overtaking(Engine):
    """Tests applicants as soon as their outcomes arrive, before their round is complete."""

    def test_complete_rounds(self):
        for waiting in self.waiting:
            accepted, outcome = waiting.accepted, self.rows["outcome"][waiting.rows]
            if not hasattr(waiting, "untested"):
                waiting.untested = np.ones(accepted.size, np.bool_)
            arrived = ~accepted
            arrived[accepted] = outcome >= 0
            bad = np.zeros(arrived.size, np.bool_)
            bad[accepted] = outcome == 0
            now = arrived & waiting.untested
            for bet in waiting.bets:
                bounds = waiting.policy.ratio_bounds(bet.ladder)
                part = bet.positions[now], waiting.p[now], accepted[now], bad[now]
                bet.ladder.test(*part, ratio_bounds=bounds, use=bet.use, others=bet.others)
                bet.others = np.zeros_like(bet.others)  # the rejected are tested once
            waiting.untested &= ~now
        self.waiting = [waiting for waiting in self.waiting if waiting.untested.any()]


def with_engine(kind):
    """Return the classifier with another engine."""

    class Controlled(CertifiedClassifier):
        def _engine(self, n_engines, z):
            usual = super()._engine(n_engines, z)
            engine = kind(usual.rules, usual.rows, usual.n_groups)
            past = self._history
            engine.history = past.X, past.group, past.outcome == 0
            return engine

    return Controlled


class ErasedLeftOut(Engine):
    """Leaves erased applicants out of the tests, instead of counting them as bad."""

    def _outcomes(self, waiting):
        outcome = super()._outcomes(waiting)
        return np.where(waiting.rows < 0, NOT_TAKEN, outcome).astype(np.int8)


class VetoedLeftOut(Engine):
    """Lets the lender bar, after our answer, half of the accepted who turn out to be bad."""

    def _settle(self, waiting):
        super()._settle(waiting)  # the tests come next
        bad = np.zeros(waiting.accepted.size, np.bool_)
        bad[waiting.accepted] = self._outcomes(waiting) == 0
        vetoed = bad & (np.cumsum(bad) % 2 == 0)
        for bet in waiting.bets:
            if bet.positions is not None:
                bet.positions = bet.positions.beside(waiting.incumbent & ~vetoed, vetoed)


class MixtureUnproven(Engine):
    """Calls a mixture certified although nothing is known of the lender's own policy."""

    @property
    def incumbent_certified(self):
        return True

    @property
    def incumbent_rejected(self):
        return False
