"""The tests between two restarts: what a correction or drift drops, and what tells drift."""

from __future__ import annotations

from dataclasses import dataclass, field

from fairchance.core.saved import saved
from fairchance.methods.certified.evidence import DriftMonitor, MirrorTest
from fairchance.methods.certified.ladder import LadderRows
from fairchance.methods.certified.pilot import BesidePilot, Pilot

__all__ = ["Change", "Generation", "Stage"]


@saved
@dataclass(frozen=True)
class Change:
    """A suspicion that applicants have changed: more bad than before among those of the same rank.

    Attributes
    ----------
    first, last
        The rounds that were compared with earlier ones.
    p
        Probability that bad outcomes are as frequent in them by chance, at one look.
    times
        The share of bad outcomes in them, as a multiple of the estimated FDR of their last policy.
    alarm
        Whether certificates have to be dropped: more than α of the outcomes are bad, or a change
        was suspected before, and p is so small that over all looks chance does that with a
        probability of at most ``monitor``.
    """

    first: int
    last: int
    p: float
    times: float
    alarm: bool


@saved
@dataclass(frozen=True)
class Generation:
    """The certificates whose evidence began with the same round, if certificates lapse.

    Attributes
    ----------
    began
        Its first round.
    restarts
        Number of restarts before it.
    freezes
        Number of freezes of the stage before it.
    """

    began: int = 1
    restarts: int = 0
    freezes: int = 0


@saved
@dataclass(eq=False)
class Stage:
    """The tests since certificates were last dropped: everything that a restart drops.

    Attributes
    ----------
    restarts
        Number of restarts so far.
    began
        First round of the stage.
    reason
        ``"correction"`` or ``"drift"``, which ended the stage before; empty for the first stage.
    ladder_rows
        The ladders, with the positions of our own accepted applicants.
    lapsed
        Number of ladders before them, whose certificates have lapsed.
    pilot
        The pilot; None before the first ladder is frozen.
    widest
        The largest share that a policy of the stage accepted for sure.
    monitor
        The drift monitor; None before the first certified round is tested.
    looks, change
        How often rounds were compared with earlier ones, and what the last comparison suspects;
        None if chance explains them.
    freezes
        The rounds before which rankings were frozen, with the outcomes known then.
    with_lender
        Whether the lender decided on the first round too, so that δ is spent accordingly.
    beside
        The pilot beside the lender's own policy; None without one.
    mirror
        The test that the lender's own policy breaks α; None without one.
    n_tested
        Accepted applicants in its tests.
    """

    restarts: int = 0
    began: int = 1
    reason: str = ""
    ladder_rows: list[LadderRows] = field(default_factory=list)
    lapsed: int = 0
    pilot: Pilot | None = None
    widest: float = 0.0
    monitor: DriftMonitor | None = None
    looks: int = 0
    change: Change | None = None
    freezes: list[tuple[int, int]] = field(default_factory=list)
    with_lender: bool = False
    beside: BesidePilot | None = None
    mirror: MirrorTest | None = None
    n_tested: int = 0
