"""What a certificate promises, and how its part of δ and its time are divided."""

from __future__ import annotations

from dataclasses import dataclass

from secondlook.core.noise import OutcomeNoise
from secondlook.core.strategies import Strategy
from secondlook.core.utility import Utility

__all__ = ["Rules"]

_FIRST_STAGE = 0.8  # of δ; restarts share the rest
_LEVELS = (0.05, 0.30, 0.35, 0.30)  # of a stage's δ, ladder by ladder
_FREEZES = ((0.0, 0), (0.1, 100), (0.2, 200), (0.4, 400))  # share of the horizon, own outcomes
_SOFTNESS = (0.3, 0.3, 0.22, 0.1)  # of the share that a ladder's model thinks it can accept
_USUAL_HORIZON = 40  # rounds, where none is known
_DOUBLINGS = 20  # further rankings then, each after twice as many rounds as the one before


@dataclass(frozen=True)
class Rules:
    """What is promised, and to whom it pays.

    Attributes
    ----------
    alpha, delta
        α and δ.
    utility
        What decisions are worth; it chooses among certified policies.
    horizon
        Rounds expected; None means not known.
    within
        Whether people are ranked among their own group only.
    floor
        Mean chance of everybody, whatever their rank.
    strategy
        How that chance is spread.
    noise
        How often outcomes are recorded wrongly.
    maturity
        Rounds that must have passed before a round enters the tests.
    patience
        Rounds after which outcomes that have not come count as bad; None means never.
    monitor
        δ of the drift monitor; 0 means none.
    """

    alpha: float
    delta: float
    utility: Utility
    horizon: int | None
    within: bool
    floor: float
    strategy: Strategy
    noise: OutcomeNoise
    maturity: int = 0
    patience: int | None = None
    monitor: float = 0.05

    @property
    def freezes(self) -> tuple[tuple[float, int], ...]:
        """Rounds of a stage before which rankings are frozen, and own outcomes needed for it."""
        horizon = _USUAL_HORIZON if self.horizon is None else self.horizon
        planned = tuple((max(1.0, share * horizon), n) for share, n in _FREEZES)
        if self.horizon is not None:
            return planned
        return planned + tuple((horizon * 2.0**i, 800 * 2**i) for i in range(_DOUBLINGS))

    @property
    def levels(self) -> tuple[float, ...]:
        """Parts of a stage's δ, ladder by ladder; they sum to at most one."""
        if self.horizon is not None:
            return _LEVELS
        half = tuple(level / 2 for level in _LEVELS)
        return half + tuple(0.25 / 2**i for i in range(_DOUBLINGS))

    def level(self, ladder: int, restarts: int) -> float:
        """Return the part of δ that a ladder of a stage may spend; all together at most δ."""
        stage = _FIRST_STAGE if restarts == 0 else (1 - _FIRST_STAGE) / 2**restarts
        return self.delta * stage * self.levels[ladder]

    def softness(self, ladder: int) -> float:
        """Return the softness of a ladder's edge, as a part of the share its model would accept."""
        return _SOFTNESS[min(ladder, len(_SOFTNESS) - 1)]

    def monitor_limit(self, restarts: int) -> float:
        """Return the monitor's δ of a stage; all together at most ``monitor``."""
        return self.monitor / 2.0 ** (restarts + 1)
