"""The deviations of the paper's released code from the paper, each a switch of its own."""

from __future__ import annotations

from collections.abc import Iterable

from secondlook.errors import InputError

__all__ = ["ALGORITHM", "REPORTING", "SETUP", "SWITCHES", "check_switches"]

SETUP = {
    "A1": "all outcomes of S_0 are known from the start, so the history is not biased",
    "A3": "f_0 is fitted to outcomes with balanced classes, and its intercept is dropped",
    "A7": "features are standardised by all rounds together, future included",
    "A8": "1 % of the people are dropped, so batches are smaller",
    "A9": "all repetitions share one resample of the data, so errors look smaller than they are",
}
ALGORITHM = {
    "B3": "constraints of the fit count decisions at 0.5, with the derivatives of smooth ones",
    "B4": "the fit starts once, at a random point, and its status is ignored",
    "B6": "the selection rate of the smaller group may not be lower by 0.05, but may be higher",
    "B7": "rows are not weighted, and people outside the exploit region train f_t too",
    "B9": "the cut is always 0.5, so revenue affects no decision; only the fit holds the bounds",
    "C1": "the four variants share one object, which keeps what earlier variants learned",
    "C2": "coverage is the mean of past scores, so people can leave the exploit region again",
    "C4": "round 1 decides by a classifier trained on the history instead of f_0",
    "C5": "the number to explore lacks the division by 1 − α, and its fraction is lost each round",
    "C6": "α_exploit lags a round behind its schedule and passes α in the end",
    "C7": "group quotas of the explored are rounded down, group by group",
}
# B3, B4, B6 and B9 change the fit: with any of them the fit holds group parity, as in the released
# code, and thresholds do not.
REPORTING = {"E2": "revenue loses its sign before it is averaged"}
SWITCHES = SETUP | ALGORITHM | REPORTING


def check_switches(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names in the order of ``SWITCHES``; raise if a name is unknown."""
    wanted = set(names)
    unknown = sorted(wanted - set(SWITCHES))
    if unknown:
        raise InputError(
            f"there is no switch {', '.join(unknown)}; known are {', '.join(SWITCHES)}."
        )
    return tuple(name for name in SWITCHES if name in wanted)
