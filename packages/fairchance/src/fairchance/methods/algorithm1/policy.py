"""The policy of a round of Algorithm 1, as a value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.core.coverage import CoverageRule
from fairchance.core.decisions import Decisions
from fairchance.core.sampling import Draw, ramped
from fairchance.core.saved import saved
from fairchance.methods.algorithm1.exploration import (
    Candidates,
    draw_by_coins,
    draw_by_score,
    draw_fixed,
    find_candidates,
)
from fairchance.methods.algorithm1.learning import Learned
from fairchance.methods.algorithm1.policy_log import LoggedPolicy, PolicyLog, per_person
from fairchance.methods.policy import Policy
from fairchance.people.intake import Batch, Reader
from fairchance.people.likelihoods import Likelihood
from fairchance.people.tables import InputTable

__all__ = ["Algorithm1Policy", "Regions"]

# Fields of f_t that the record of a round repeats.
_STATED = ("calibrated", "n_outcomes", "estimated_fdr", "disparity", "feasible", "follows")


@dataclass(frozen=True)
class Regions:
    """Steps 1 and 2 of a round for some applicants.

    Attributes
    ----------
    score, threshold
        f_t's score of each applicant, and the score from which f_t accepts.
    exploit
        Who is in the exploit region.
    accepted
        Whom f_t accepts there.
    explore
        Rows of the explore region, without barred applicants.
    candidates
        Which of these may be explored.
    """

    score: NDArray[np.floating]
    threshold: NDArray[np.floating]
    exploit: NDArray[np.bool_]
    accepted: NDArray[np.bool_]
    explore: NDArray[np.intp]
    candidates: Candidates

    @property
    def n_exploited(self) -> int:
        """How many are accepted in the exploit region."""
        return int(np.count_nonzero(self.accepted))

    @property
    def n_candidates(self) -> int:
        """How many may be explored."""
        return int(np.count_nonzero(self.candidates.may))


@saved
@dataclass(frozen=True, eq=False)
class Algorithm1Policy(Policy):
    """f_t in the exploit region, and independent coins in the explore region.

    Attributes
    ----------
    f
        f_t, its likelihood and thresholds.
    log
        The policies of earlier rounds, which say who is known.
    rule
        How these count.
    logged
        The policy as it is logged after the round; it defines the coins.
    fixed
        How many a draw of fixed size explores, and the key with which it starts. Such a policy
        decides on the whole batch at once; None for coins.

    Examples
    --------
    >>> from fairchance import PartialFeedbackClassifier
    >>> X = np.arange(200.0)[:, None]
    >>> clf = PartialFeedbackClassifier(exploration="coins", random_state=0)
    >>> clf = clf.fit(X, X[:, 0] > 20, accepted=X[:, 0] > 10)
    >>> policy = clf.open_round()
    >>> one, two = (policy.decide(X[rows], ids=rows + 200) for rows in np.split(np.arange(200), 2))
    >>> clf.close_round([two, one])
    ClosedRound(round 1: 200 applicants, 189 by score, 11 explored)
    """

    round: int
    ramp: float
    needs_incumbent: bool
    f: Learned
    log: PolicyLog
    rule: CoverageRule
    logged: LoggedPolicy
    reader: Reader
    round_key: np.uint64
    ramp_key: np.uint64
    versions: dict[str, str]
    expires: str | None = None
    inputs: InputTable | None = None
    fixed: tuple[int, np.uint64] | None = None

    @property
    def draws_together(self) -> bool:  # type: ignore[override]
        """Whether a draw depends on all applicants of the batch."""
        return self.fixed is not None and self.f.follows != "drawn"

    def without_draw(self) -> Algorithm1Policy:
        """Return a policy that explores nobody."""
        return replace(self, fixed=(0, self.round_key))

    @property
    def status(self) -> str:  # type: ignore[override]
        """``"shadow"`` if the lender decides on all applicants, else empty."""
        return "shadow" if self.ramp == 0 else ""

    @property
    def certified(self) -> bool:  # type: ignore[override]
        """False: Algorithm 1 promises nothing with confidence."""
        return False

    def stated(self) -> tuple[dict[str, Any], ...]:
        """Return what the record of its round repeats of f_t."""
        f = self.f
        told = {name: getattr(f, name) for name in _STATED}
        return (told | {"thresholds": f.thresholds.tolist(), "ramp": self.ramp},)

    def decide_batch(self, batch: Batch) -> Decisions:
        """Decide on applicants that were read, also after the policy has expired."""
        regions = self.regions(batch)
        return self.answer(batch, regions, self.draw(batch, regions))

    @property
    def likelihood(self) -> Likelihood:
        """The model that gives the scores."""
        return self.f.likelihood

    def regions(self, batch: Batch) -> Regions:
        """Split applicants into EXPLOIT_t and EXPLORE_t, and exploit."""
        f, logged = self.f, self.logged
        look = self.log.look(
            batch.X,
            batch.group,
            self.rule,
            score_of=logged.likelihood,
            incumbent=batch.incumbent,
        )
        threshold = per_person(f.thresholds.astype(look.score.dtype), batch.group)
        accepted = look.score >= threshold
        exploit = look.known
        if f.follows == "matched":
            exploit |= accepted
        elif f.follows == "drawn":
            exploit = accepted.copy()
        may = np.ones(len(batch), np.bool_) if batch.barred is None else ~batch.barred
        exploit &= may
        explore = np.flatnonzero(may & ~exploit)
        return Regions(
            look.score,
            np.broadcast_to(threshold, len(batch)),
            exploit,
            accepted & exploit,
            explore,
            find_candidates(batch, explore, look.score, logged.strategy, f.thresholds.size),
        )

    def draw(self, batch: Batch, regions: Regions) -> Draw:
        """Flip the coins of the explore region."""
        bits, _ = self.coins(batch)
        if self.f.follows == "drawn":
            return draw_by_score(regions.explore, regions.score, self.f.thresholds.size, bits)
        if self.fixed is not None:
            n, start = self.fixed
            keys, n_groups = (self.round_key, start), self.f.thresholds.size
            draw, _ = draw_fixed(
                batch,
                regions.explore,
                regions.score,
                n,
                self.logged.strategy,
                n_groups,
                keys,
                n_instead=n,
            )
            return draw
        return draw_by_coins(
            batch, regions.explore, regions.candidates.may, regions.score, self.logged, bits
        )

    def answer(self, batch: Batch, regions: Regions, draw: Draw) -> Decisions:
        """Return the decisions that follow from a draw in the explore region."""
        accepted, propensity = regions.accepted.copy(), regions.accepted.astype(np.float64)
        accepted[regions.explore[draw.drawn]] = True
        propensity[regions.explore] = draw.probability
        _, bits = self.coins(batch)
        accepted, propensity = ramped(accepted, propensity, batch.incumbent, self.ramp, bits)
        exploit = regions.exploit
        if batch.incumbent is not None and self.ramp < 1:
            exploit = exploit | batch.incumbent
        return Decisions(
            batch.ids,
            accepted,
            exploit,
            regions.score,
            propensity,
            self.round,
            batch.backend,
            group_mode=self.reader.group_mode,
            threshold=regions.threshold,
            incumbent=batch.incumbent,
            barred=batch.barred,
            ramp=self.ramp,
            status=self.status,
            applicants=batch,
        )
