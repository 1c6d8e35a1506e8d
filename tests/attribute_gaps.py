"""Differences between groups, counted person by person for each attribute."""

from __future__ import annotations

from secondlook import SelectionRateParity

LEVELS = ((0, 0, 1, 1, 2), (0, 1, 0, 1, 1))  # of five groups


def gap(parity, accepted, outcome, weight, level):
    """Largest minus smallest rate over levels, person by person."""
    rates = []
    for z in set(level):
        mine = [
            (a, w)
            for a, y, w, one in zip(accepted, outcome, weight, level, strict=True)
            if one == z and (y == 1 or parity is SelectionRateParity)
        ]
        total = sum(w for _, w in mine)
        if total > 0:
            rates.append(sum(a * w for a, w in mine) / total)
    return max(rates) - min(rates) if len(rates) > 1 else 0.0


def gaps(parity, accepted, outcome, weight, group, levels=LEVELS):
    return [gap(parity, accepted, outcome, weight, [one[g] for g in group]) for one in levels]
