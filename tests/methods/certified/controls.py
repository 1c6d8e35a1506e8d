"""The method with one thing left out: each must break the bound, or tests of it are blind."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from secondlook import CertifiedClassifier
from secondlook.methods.certified.engine import Choice, Engine
from secondlook.methods.certified.ladder import Seen


class PlugIn(Engine):
    """Deploys the widest rung whose estimated FDR is at most α, without a test."""

    def choose(self):
        if self.rows.known().size < 30:
            return super().choose()
        reach = self._reach[-1]
        for rung in reversed(range(reach.ladder.grid.size)):
            share = self._estimates.mistakes(reach, rung)[0]
            if share <= self.rules.alpha:
                return Choice(reach.ladder, rung, True, share)
        return super().choose()


class WeightsDropped(Engine):
    """Counts the accepted as if everybody had been accepted with probability 1."""

    def _test(self, one):
        super()._test(replace(one, p=np.ones_like(one.p)))

    def _use(self, ladder, choice):
        return np.ones(ladder.grid.size, np.bool_)


class HistoryTrusted(Engine):
    """Tests every ladder on the history's accepted, as if the past had taken everybody."""

    history: tuple

    def _freeze(self, t, reference, likelihood):
        super()._freeze(t, reference, likelihood)
        ladder = self.ladders[-1]
        X, group, bad = self.history
        everybody = np.ones(bad.size, np.bool_)
        seen = Seen(X, group, np.ones(bad.size), everybody, bad)
        ladder.test(seen, None, np.ones(ladder.grid.size, np.bool_))


class Overtaking(Engine):
    """Tests people as soon as their outcomes come, whoever of their round is still waited for."""

    def test_complete_rounds(self):
        for one in self.waiting:
            if not hasattr(one, "untested"):
                one.untested = np.ones(one.accepted.size, np.bool_)
            arrived = ~one.accepted
            arrived[one.accepted] = self.rows["outcome"][one.places] >= 0
            bad = np.zeros(arrived.size, np.bool_)
            bad[one.accepted] = self.rows["outcome"][one.places] == 0
            now = arrived & one.untested
            part = Seen(one.X[now], one.group[now], one.p[now], one.accepted[now], bad[now])
            for ladder, use in one.use:
                ladder.test(part, one.rung if ladder is one.deployed else None, use)
            one.untested &= ~now
        self.waiting = [one for one in self.waiting if one.untested.any()]
        return 0


def with_engine(kind):
    """Return the classifier with another engine."""

    class Controlled(CertifiedClassifier):
        def _engine(self, n_engines):
            usual = super()._engine(n_engines)
            engine = kind(usual.rules, usual.rows, usual.n_groups)
            past = self._history
            engine.history = past.X, past.group, past.outcome == 0
            return engine

    return Controlled
