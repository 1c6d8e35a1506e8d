"""What is written down of a round of Algorithm 1, and what its reader must know."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.core.coverage import CoverageRule
from secondlook.core.decisions import Round
from secondlook.core.sampling import Draw
from secondlook.methods.algorithm1.learning import Learned

__all__ = ["ENOUGH_TO_TELL", "nobody_accepted_words", "nobody_known_words", "round_record"]

ENOUGH_TO_TELL = 30  # people of whom nobody is known, before we say that nothing can start


def round_record(
    t: int,
    f: Learned,
    exploit: NDArray[np.bool_],
    n_exploited: int,
    draw: Draw,
    barred: tuple[int, ...],
    *,
    alpha_exploit: float,
    carried: float,
    note: str,
    group_mode: str,
) -> Round:
    """Return the record of a round.

    Parameters
    ----------
    t, f
        Number of the round, and its f_t.
    exploit, n_exploited
        Who of the batch was known, and how many of these f_t accepted.
    draw, barred
        Who of the others was drawn, and how many of each group could not be.
    alpha_exploit, carried
        α_exploit, and the part of a person that is left to the next round.
    note, group_mode
        What went differently from what was asked for, and what groups could change.
    """
    return Round(
        round=t,
        n_people=exploit.size,
        n_exploit_region=int(np.count_nonzero(exploit)),
        n_exploited=n_exploited,
        n_explored=int(np.count_nonzero(draw.drawn)),
        alpha_exploit=alpha_exploit,
        carried=carried,
        thresholds=tuple(f.thresholds.tolist()),
        calibrated=f.calibrated,
        n_outcomes=f.n_outcomes,
        effective_sample_size=f.effective_sample_size,
        estimated_fdr=f.estimated_fdr,
        disparity=f.disparity,
        feasible=f.feasible,
        note=note,
        n_unreachable=sum(barred),
        unreachable=barred,
        group_mode=group_mode,
    )


def nobody_known_words(so_far: int, largest: float, rule: CoverageRule) -> str:
    """Say that of everybody decided on so far nobody was known; ``largest`` is their coverage."""
    return (
        f"Nobody among the {so_far} people decided on so far is known well enough to exploit "
        f"(largest coverage {largest:.3g}, threshold {rule.threshold}), so nobody can be explored "
        f"either; lower the threshold of the coverage rule."
    )


def nobody_accepted_words(max_fdr: float, good: Any) -> str:
    """Say that no threshold keeps the bound, although enough people are known."""
    return (
        f"No threshold keeps the estimated FDR at or below {max_fdr:.3g} with anybody worth "
        f"accepting, so nobody was accepted or explored; check that {good!r} is the good outcome "
        f"(pos_label), raise alpha, or change the utility."
    )
