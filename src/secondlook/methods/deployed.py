"""What decided the last round, for whoever keeps a record of it."""

from __future__ import annotations

from dataclasses import dataclass

from secondlook.core.decisions import CertifiedRound
from secondlook.methods.certified.ladder import Ladder

__all__ = ["DeployedRung"]


@dataclass(frozen=True, eq=False)
class DeployedRung:
    """What decided the last round of the certified method, for everybody or one group.

    Attributes
    ----------
    ladder, rung
        The frozen ranking with its policies, and which of them.
    certified
        Whether it carried a promise.
    record
        What the round says of it.
    restarts
        How often certificates have been dropped so far, after the round too.
    stage_began
        The round with which testing last began anew, 1 if it never did; ladders that were frozen
        before are out of use.
    n_tested
        Accepted people whose outcomes, come or given up, the tests of now rest on.
    """

    ladder: Ladder
    rung: int
    certified: bool
    record: CertifiedRound
    restarts: int
    stage_began: int
    n_tested: int
