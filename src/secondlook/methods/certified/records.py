"""What is written down of a round of the certified method, and what its reader must know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.core.decisions import CertifiedRound
from secondlook.core.limits import Limited
from secondlook.methods.algorithm1.exploration import barred_message
from secondlook.methods.certified.engine import Choice, Engine
from secondlook.methods.certified.ladder import Ladder, nearest_certificate
from secondlook.methods.certified.pilot import pilot_words
from secondlook.methods.certified.ranking import Groups
from secondlook.methods.deployed import DeployedRung

__all__ = ["BegunAgain", "begun_again", "certified_record", "given_up_words", "n_tested"]


@dataclass(frozen=True)
class BegunAgain:
    """Testing that begins again, for everybody or one group.

    Attributes
    ----------
    group
        The group whose certificate it is about; None for everybody.
    round
        The round with which it begins.
    n_outcomes
        How many outcomes the evidence that is given up rested on.
    """

    group: Any
    round: int
    n_outcomes: int


def begun_again(
    before: Sequence[DeployedRung], after: Sequence[DeployedRung]
) -> tuple[BegunAgain, ...]:
    """Return where testing began again between two looks at what decided the last round."""
    return tuple(
        BegunAgain(now.record.group, now.stage_began, then.n_tested)
        for then, now in zip(before, after, strict=True)
        if now.restarts > then.restarts
    )


def given_up_words(found: Sequence[BegunAgain]) -> str:
    """Return in one sentence what a correction cost.

    Examples
    --------
    >>> print(given_up_words([BegunAgain("A", 7, 526)]))
    A corrected outcome had been tested, so the evidence of 526 outcomes (group A) is given up with
    all that was certified by it, and testing begins again with round 7; a larger maturity tests
    rounds later, and corrections that come before that cost nothing.
    """
    counts = " and of ".join(
        f"{one.n_outcomes:,} outcomes" + ("" if one.group is None else f" (group {one.group})")
        for one in found
    )
    return (
        f"A corrected outcome had been tested, so the evidence of {counts} is given up with all "
        f"that was certified by it, and testing begins again with round {found[0].round}; a "
        f"larger maturity tests rounds later, and corrections that come before that cost nothing."
    )


def n_tested(engine: Engine) -> int:
    """Return how many accepted people the tests of now rest on: the oldest ladder saw them all."""
    return max((ladder.n_used for ladder in engine.ladders), default=0)


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
        message = f"{_began_again(engine)} {message}".strip()
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
        n_tested=n_tested(engine),
        next_n_tested=coming.n_used,
        tests_began=engine.stage_began,
        restart_reason=engine.restart_reason,
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


def _began_again(engine: Engine) -> str:
    """Say when and why testing last began again, and what has been tested since."""
    if not engine.restarts:
        return ""
    why = "a correction of an outcome that had been tested"
    if engine.restart_reason == "drift":
        why = "outcomes that spoke against what had been certified"
    n, since = n_tested(engine), engine.stage_began
    tested = "1 outcome is" if n == 1 else f"{n:,} outcomes are" if n else "no outcome is"
    return f"Testing began again with round {since} after {why}, and {tested} in the tests since."


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
    return int((why != 0).sum()), barred_message(strategy, why)
