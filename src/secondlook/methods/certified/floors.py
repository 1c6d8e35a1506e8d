"""A chance for everybody, whatever their rank, spread by an exploration strategy.

A test is about a fixed policy, so the floor is frozen with its ladder: shares of groups and the
scale of g come from the reference people of that moment, never from the batch being decided.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.core.strategies import Strategy, Uniform, check_sizes
from secondlook.errors import InputError
from secondlook.frames import take

__all__ = ["Floor"]

Floats = NDArray[np.float64]
Groups = NDArray[np.intp]


@dataclass(frozen=True)
class Floor:
    """min(1, scale_z · g(x, z)): the chance of somebody whom the soft edge does not accept.

    Attributes
    ----------
    strategy
        g, as in Algorithm 1.
    scale
        What g is multiplied with, per group; all zero for no floor. Limits of the strategy
        hold without a floor too: nobody whom they bar is accepted by a soft edge.

    Examples
    --------
    >>> from secondlook.core.strategies import EqualGroups
    >>> group = np.array([0, 0, 0, 1])
    >>> floor = Floor.freeze(EqualGroups(), 0.01, None, np.full(4, 0.5), group, 2)
    >>> floor.chance(None, np.array([0.5, 0.5]), np.array([0, 1])).round(4).tolist()
    [0.0067, 0.02]
    """

    strategy: Strategy
    scale: Floats

    @staticmethod
    def freeze(
        strategy: Strategy, share: float, X: Any, score: Floats, group: Groups, n_groups: int
    ) -> Floor:
        """Return the floor whose mean chance over reference people is ``share``.

        Parameters
        ----------
        strategy
            g; if it has group quotas, each group gets its part of the share.
        share
            Mean chance over everybody who may be explored.
        X, score, group
            Reference people.
        n_groups
            How many groups there are.
        """
        if share == 0 or group.size == 0:
            return Floor(strategy if strategy.is_limited else Uniform(), np.full(n_groups, share))
        in_all = np.bincount(group, minlength=n_groups).astype(np.float64)
        why = strategy.barred(X, score)
        if why is not None:
            may = np.flatnonzero(why == 0)
            if may.size == 0:
                return Floor(strategy, np.zeros(n_groups))
            X = take(X, may) if strategy.reads_features else None
            score, group = score[may], group[may]
        counts = np.bincount(group, minlength=n_groups).astype(np.float64)
        per_group = strategy.group_factor(in_all, counts)
        g = np.asarray(strategy.person_factor(X, score, group), np.float64)
        check_sizes(g, strategy)
        _check_same_alone(strategy, g, X, score, group)
        g = g * per_group[group]
        scale = np.full(n_groups, share * group.size / g.sum())
        quota = strategy.group_shares(counts)
        if quota is not None:
            total = np.bincount(group, g, n_groups)
            here = total > 0
            scale[here] = share * group.size * quota[here] / total[here]
        return Floor(strategy, scale * per_group)

    def chance(self, X: Any, score: Floats, group: Groups) -> Floats:
        """Return the chance of each person."""
        if not self.scale.any() or group.size == 0:
            return np.zeros(group.size)
        g = np.asarray(self.strategy.person_factor(X, score, group), np.float64)
        barred = self.barred(X, score)
        check_sizes(g if barred is None else g[~barred], self.strategy)
        return np.minimum(1.0, self.scale[group] * g)

    def barred(self, X: Any, score: Floats) -> NDArray[np.bool_] | None:
        """Say who may not be explored for the strategy's limits; None for nobody."""
        if not self.strategy.is_limited:
            return None
        why = self.strategy.barred(X, score) if score.size else None
        return np.zeros(score.size, np.bool_) if why is None else np.asarray(why != 0)


def _check_same_alone(strategy: Strategy, g: Floats, X: Any, score: Floats, group: Groups) -> None:
    """Raise if g of a person depends on who else is there: a rung would be no fixed policy."""
    half = np.arange(0, group.size, 2)
    part = take(X, half) if strategy.reads_features else None
    again = np.asarray(strategy.person_factor(part, score[half], group[half]), np.float64)
    if not np.allclose(again, g[half], rtol=1e-6, atol=0.0):
        raise InputError(
            f"with a certificate a strategy must give a person the same g whoever else applies, "
            f"and {strategy!r} does not; compare people with fixed numbers, not with each other."
        )
