"""The policy of a round on cells: f_t with its scores, and whom the last round would accept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from secondlook.core.budget import FdrBudget
from secondlook.core.fairness import RateParity
from secondlook.core.noise import OutcomeNoise
from secondlook.core.strategies import Strategy, as_strategy
from secondlook.core.utility import Accuracy, Utility
from secondlook.errors import InputError
from secondlook.methods.finite.encoding import CellTable, Placed
from secondlook.methods.finite.exploration import plan_from_cells, sizes_of_cells
from secondlook.methods.finite.learner import ExactFit
from secondlook.methods.finite.learning import CellLearning, following
from secondlook.methods.finite.past import CellPast
from secondlook.methods.finite.state import CellState
from secondlook.methods.finite.telling import ToldCells

__all__ = ["CellPolicies", "LastRound"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class LastRound:
    """What the last round went by, to tell what it would have done in a cell new to it.

    Attributes
    ----------
    state
        What counted in it, its batch included.
    heads
        Its people by cell.
    n_explore
        How many it drew.
    n_instead
        How many it might have drawn had a candidate been in the place of an average person.
    """

    state: CellState
    heads: NDArray[np.int64]
    n_explore: int
    n_instead: int


class CellPolicies(ToldCells):
    """Base of ``FiniteClassifier``: how a round comes to its policy."""

    utility: Utility | None
    budget: FdrBudget | None
    strategy: Strategy | Callable[..., ArrayLike] | None
    hypothesis: Literal["cells", "threshold", "threshold_per_group"]
    constraints: Literal["joint", "per_group"]
    fairness: RateParity | None
    weights: Literal["applicants", "none"]
    gap: float
    cut_score: Callable[..., ArrayLike] | None
    first_round: Literal["past", "learned"]
    noise: OutcomeNoise | None
    _past: CellPast
    _last: LastRound | None = None  # none in files of earlier versions, and once people are gone

    def acceptance_probability(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """Return the probability with which the last round's policy accepts anybody.

        0 or 1 in the exploit region of that round. Elsewhere the chance of being drawn: that of the
        people of the same cell in its batch or, if there were none, that of somebody in the place
        of an average person of the batch, also for a cell that nobody has ever been in.
        """
        check_is_fitted(self, "_fitted")
        if not self._policies:
            raise InputError("no round has been decided yet, so no policy is deployed; decide one.")
        placed = self._intake.place_people(self._state.table, X, sensitive_features)
        p = self._policies[-1].acceptance
        if len(placed.table) > p.size:
            p = np.concatenate([p, self._acceptance_of_new(placed.table)[p.size :]])
        return np.asarray(p.take(placed.cell))

    def _acceptance_of_new(self, table: CellTable) -> Floats:
        """Return what the last round would have done in each cell; right for those new to it."""
        last, t = self._last, len(self._rounds)
        if last is None:
            raise InputError(
                "some of these people are of cells that the last round did not know, and what it "
                "went by is gone, as people were forgotten since or an earlier version saved it; "
                "decide another round first, or leave them out."
            )
        heads = np.pad(last.heads, (0, len(table) - last.heads.size))
        nobody = Placed(np.empty(0, np.int32), np.zeros_like(heads), table)
        state = last.state.with_batch(nobody, self._past, self._rule)
        exploit = self._exploit_of_round(t, state)
        accepts = np.zeros(len(table), np.bool_)  # where there is no outcome, f_t accepts nobody
        if self._follows_past(t):
            accepts = following(state.summed).accepts
        placed = replace(nobody, heads=heads)
        score = self._score_of_round(t, state)
        sizes = sizes_of_cells(self._strategy, placed, score, exploit)
        _, chance = plan_from_cells(placed, exploit, sizes, last.n_explore, last.n_instead)
        return np.where(exploit, accepts, chance)

    def _exploit_of_round(self, t: int, state: CellState) -> Flags:
        """Return EXPLOIT_t; in round 1 it is where f_0 covers."""
        return state.exploit(self._rule, self.min_outcomes) if t > 1 else state.known

    def _follows_past(self, t: int) -> bool:
        return t == 1 and self._past.decides and self.first_round == "past"

    def _score_of_round(self, t: int, state: CellState) -> Floats:
        """Return the scores of cells: shares of good, or f_0's in a round that follows the past."""
        # No round has added to what is summed when the past decides.
        return state.summed if self._follows_past(t) else state.counts.good_share()

    def _classifier_of_round(self, t: int, state: CellState, exploit: Flags) -> ExactFit:
        """Return f_t; f_0 in a round that follows the past."""
        if self._follows_past(t):
            return following(state.summed)
        learning = CellLearning(
            utility=Accuracy() if self.utility is None else self.utility,
            budget=self._budget,
            hypothesis=self.hypothesis,
            constraints=self.constraints,
            fairness=self.fairness,
            weights=self.weights,
            gap=self.gap,
            cut_score=self.cut_score,
            group_mode=self.group_mode,
            noise=OutcomeNoise() if self.noise is None else self.noise,
        )
        return learning.learn(t, state, exploit)

    @property
    def _budget(self) -> FdrBudget:
        return FdrBudget() if self.budget is None else self.budget

    @property
    def _strategy(self) -> Strategy:
        return self._allowed(as_strategy(self.strategy))
