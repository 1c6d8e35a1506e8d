"""The names of the deviations, as a reader of the results knows them."""

from __future__ import annotations

from collections.abc import Iterable

from secondlook.errors import InputError

__all__ = ["ALGORITHM", "REPORTING", "SETUP", "SWITCHES", "check_switches"]

SETUP = {
    "A1": "every outcome of S_0 is known from the start, so the history is not biased at all",
    "A3": "f_0 is fitted to outcomes with balanced classes, and its intercept is dropped",
    "A7": "features are standardised by all rounds together, future included",
    "A8": "one per cent of the people is thrown away, so batches are smaller",
    "A9": "all repetitions share one resample of the data, so errors look smaller than they are",
}
ALGORITHM = {
    "B3": "constraints of the fit count decisions at 0.5, with the derivatives of smooth ones",
    "B4": "the fit starts once, at random, and how it ended is not looked at",
    "B6": "the selection rate of the smaller group may not be lower by 0.05, but may be higher",
    "B7": "rows are not weighted, and people outside the exploit region train f_t too",
    "B9": "the cut is always 0.5, so revenue enters no decision; the fit alone holds the bounds",
    "C1": "the four variants are one object that keeps what the variants before it learned",
    "C2": "coverage is the mean of past scores, from which people can drop out again",
    "C4": "round 1 decides by a classifier trained on the history instead of f_0",
    "C5": "the number to explore lacks the division by 1 − α, and its fraction is lost each round",
    "C6": "α_exploit lags a round behind its schedule and passes α in the end",
    "C7": "group quotas of the explored are rounded down, group by group",
}
# B3, B4, B6 and B9 concern the fit: with any of them group parity is held in the fit, as the
# released code holds it, and not by thresholds.
REPORTING = {"E2": "revenue loses its sign before it is averaged"}
SWITCHES = SETUP | ALGORITHM | REPORTING


def check_switches(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names in the order of the list, or raise if one is unknown."""
    asked = set(names)
    unknown = sorted(asked - set(SWITCHES))
    if unknown:
        raise InputError(
            f"there is no switch {', '.join(unknown)}; known are {', '.join(SWITCHES)}."
        )
    return tuple(name for name in SWITCHES if name in asked)
