"""Differences between groups for each attribute."""

from __future__ import annotations

import numpy as np

import parities

LEVELS = ((0, 0, 1, 1, 2), (0, 1, 0, 1, 1))  # of five groups


def gap(parity, accepted, outcome, weight, level):
    """Largest minus smallest rate over levels."""
    used = np.asarray(weight) > 0
    accepted, outcome, weight, level = (
        np.asarray(one)[used] for one in (accepted, outcome, weight, level)
    )
    rates = [
        parities.rates(parity, accepted[m], outcome[m], weight[m])
        for m in (level == z for z in np.unique(level))
    ]
    return float(parities.worst(parity(), rates)[1]) if rates else 0.0


def gaps(parity, accepted, outcome, weight, group, levels=LEVELS):
    return [gap(parity, accepted, outcome, weight, [one[g] for g in group]) for one in levels]
