"""Plug-in thresholds: the certified method with estimates instead of tests.

Each round deploys the widest policy with an estimated FDR of at most α. A policy that is chosen
because its estimate is good has an estimate that is too good. The method shows how often the bound
fails without tests. Its rounds carry no certificate.
"""

from __future__ import annotations

import numpy as np

from fairchance.methods.certified.classifier import CertifiedClassifier
from fairchance.methods.certified.engine import Engine
from fairchance.methods.certified.rounds import ChosenPolicy

__all__ = ["PlugInClassifier"]

_ENOUGH = 30  # outcomes before an estimate means anything; until then the pilot decides


class PlugInClassifier(CertifiedClassifier):
    """Decide by the widest policy whose estimated FDR is at most α, without a test.

    Options are those of ``CertifiedClassifier``; δ and the drift monitor have nothing to do.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> def people(n):
    ...     X = rng.normal(size=(n, 2))
    ...     return X, (rng.random(n) < 1 / (1 + np.exp(-2 - 3 * X[:, 0]))).astype(int)
    >>> X, good = people(1000)
    >>> clf = PlugInClassifier(horizon=20, random_state=0)
    >>> clf = clf.fit(X, good, accepted=X[:, 0] > 0)
    >>> for _ in range(3):
    ...     X, good = people(1000)
    ...     batch = clf.decide(X)
    ...     clf = clf.observe(batch.ids[batch.accepted], good[batch.accepted])
    >>> batch.certified, int(batch.accepted.sum()) > 600
    (False, True)
    """

    def _engine(self, n_engines: int, z: int) -> Engine:
        usual = super()._engine(n_engines, z)
        return _Untested(usual.rules, usual.rows, usual.n_groups)


class _Untested(Engine):
    """Chooses by estimates alone."""

    def choose(self, *, beside: bool = False, ramp: float = 1.0) -> ChosenPolicy:  # noqa: ARG002
        """Return the widest rung of the newest ladder that looks allowed, else the pilot."""
        newest, estimates = self.stage.ladder_rows[-1], self.estimates
        if self.n_known < _ENOUGH:
            return self.choose_pilot()
        rungs = range(newest.ladder.grid.size)
        shares = np.array([estimates.mistakes(newest, rung)[0] for rung in rungs])
        allowed = np.flatnonzero(shares <= self.rules.alpha)
        if allowed.size == 0:
            return self.choose_pilot()
        return ChosenPolicy(newest.ladder, int(allowed[-1]), False, float(shares[allowed[-1]]))
