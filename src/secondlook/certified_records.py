"""What is written down of a round of the certified method, and what its reader must know."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.certificates import Choice, Engine
from secondlook.decisions import CertifiedRound
from secondlook.exploration import barred_words
from secondlook.ladders import Ladder, nearest_certificate
from secondlook.pilots import pilot_words
from secondlook.rankings import Groups
from secondlook.risk import Limited

__all__ = ["certified_record"]


def certified_record(
    t: int,
    engine: Engine,
    choice: Choice,
    X: Any,
    groups: Groups,
    accepted: NDArray[np.bool_],
    group: Any,
    *,
    group_mode: str,
) -> CertifiedRound:
    """Return the record of a round that an engine is about to log.

    Parameters
    ----------
    t
        Number of the round.
    engine, choice
        Who chose the policy, and which.
    X, groups, accepted
        The engine's people, and whom of them the coins accepted.
    group
        The group that the engine is for; None for everybody.
    group_mode
        What groups could change.
    """
    ladder, rung = choice.ladder, choice.rung
    certified = ladder.certified()
    coming, following = _coming(engine, choice, certified)
    rules, nan = engine.rules, float("nan")
    message = ""
    if not choice.certified:
        message = pilot_words(ladder.grid[rung], coming, following, rules.alpha, rules.delta)
    n_unreachable, limits = _left_out(choice, X, groups)
    return CertifiedRound(
        round=t,
        group=group,
        status="certified" if choice.certified else "pilot",
        n_people=int(groups.size),
        n_accepted=int(accepted.sum()),
        ladder=engine.ladders.index(ladder),
        share=float(ladder.grid[rung]),
        log_wealth=float(ladder.wealth.best[rung]),
        threshold=ladder.threshold(rung),
        certified_from=float(ladder.grid[certified][0]) if certified.any() else nan,
        certified_to=float(ladder.grid[certified][-1]) if certified.any() else nan,
        next_share=float(coming.grid[following]),
        next_log_wealth=float(coming.wealth.best[following]),
        next_threshold=coming.threshold(following),
        more_outcomes=coming.more_outcomes(following),
        delta_spent=engine.delta_spent,
        n_outcomes=engine.rows.known().size,
        estimated_fdr=choice.estimated_fdr,
        message=f"{message} {limits}".strip(),
        group_mode=group_mode,
        n_unreachable=n_unreachable,
    )


def _coming(engine: Engine, choice: Choice, certified: NDArray[np.bool_]) -> tuple[Ladder, int]:
    """Return the ladder and the rung that may be certified next.

    The next rung of the ladder if the round is certified; of a pilot whatever is nearest to a
    certificate on any ladder, deployed or not.
    """
    ladder, start = choice.ladder, choice.ladder.starts[0][0]
    beyond = np.flatnonzero(~certified[start:]) + start
    following = ladder, int(beyond[0]) if beyond.size else choice.rung
    return following if choice.certified else nearest_certificate(engine.ladders) or following


def _left_out(choice: Choice, X: Any, groups: Groups) -> tuple[int, str]:
    """Return how many of those not accepted for sure limits leave out, and that in words."""
    ladder = choice.ladder
    strategy = ladder.floor.strategy
    if not isinstance(strategy, Limited) or groups.size == 0:
        return 0, ""
    score = ladder.ranking.score(X, groups)
    beyond = ladder.ranking.rank(score, groups) > ladder.grid[choice.rung]
    if not beyond.any():
        return 0, ""
    why = strategy.barred(X[beyond], score[beyond])
    return int((why != 0).sum()), barred_words(strategy, why)
