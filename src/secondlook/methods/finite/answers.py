"""What can be asked of a finite classifier between rounds; nothing here changes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from secondlook.errors import InputError
from secondlook.frames import n_rows
from secondlook.methods.estimator import DecidingClassifier
from secondlook.methods.finite.counts import Counts
from secondlook.methods.finite.coverage import CellCoverage, as_cell_coverage
from secondlook.methods.finite.intake import CellIntake
from secondlook.methods.finite.ledger import Ledger
from secondlook.methods.finite.records import CellPolicy, FiniteRound
from secondlook.methods.finite.state import CellState
from secondlook.people.reasons import Scored

__all__ = ["CellAnswers"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CellScores:
    """The scores of some people's cells, as a likelihood of these people."""

    reads_group: ClassVar[bool] = True
    value: Floats

    def score(self, X: Any, group: NDArray[np.intp]) -> Floats:  # noqa: ARG002
        """Return the scores."""
        return self.value


class CellAnswers(DecidingClassifier):
    """Base of ``FiniteClassifier``: its record, and what it says about people."""

    reads_cells: ClassVar[bool] = True  # every value is a kind of its own, numbers too
    learner = None
    coverage: Any
    maturity: int | None
    _intake: CellIntake
    _ledger: Ledger
    _state: CellState
    _rounds: list[FiniteRound]
    _policies: list[CellPolicy]

    def accepts(self, X: Any, *, sensitive_features: Any = None) -> NDArray[np.bool_]:
        """Return whom f_t of the last round accepts; nobody of a cell that it does not know."""
        check_is_fitted(self, "_fitted")
        if not self._policies:
            raise InputError(
                "no round has been decided yet, so there is no f_t; call decide first."
            )
        f = self._policies[-1].accepts
        return np.asarray(self._of_people(f, X, sensitive_features, False), dtype=np.bool_)

    def scored_by(self, X: Any, *, sensitive_features: Any = None) -> Scored:
        """Return people with the scores that f_t of the last round gives to their cells.

        A cell that was not there then has the share of good among all outcomes.
        """
        check_is_fitted(self, "_fitted")
        if not self._policies:
            raise InputError(
                "no round has been decided yet, so there is no f_t; call decide first."
            )
        pooled = self._state.counts.pooled_share
        score = self._of_people(self._policies[-1].score, X, sensitive_features, pooled)
        return Scored(CellScores(score), X, np.zeros(n_rows(X), np.intp))

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """Return the observed share of each outcome in people's cells, as ``classes_`` orders them.

        Where no outcome was observed, that is the share among all outcomes.
        """
        check_is_fitted(self, "_fitted")
        counts = self._state.counts
        share = self._of_people(counts.good_share(), X, sensitive_features, counts.pooled_share)
        return self._per_class(share)

    def coverage_of(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """Return the coverage w of people's cells as the next round will see it."""
        check_is_fitted(self, "_fitted")
        w: Floats = self._of_people(self.coverage_, X, sensitive_features, 0.0)
        return w

    @property
    def rounds_(self) -> tuple[FiniteRound, ...]:
        """What happened in each round."""
        check_is_fitted(self, "_rounds")
        return tuple(self._rounds)

    @property
    def policies_(self) -> tuple[CellPolicy, ...]:
        """The policy of each round, by cell."""
        check_is_fitted(self, "_policies")
        return tuple(self._policies)

    @property
    def counts_(self) -> Counts:
        """Head counts by cell."""
        check_is_fitted(self, "_state")
        return self._state.counts

    @property
    def coverage_(self) -> Floats:
        """Coverage w by cell."""
        check_is_fitted(self, "_state")
        return self._counting(self._state, len(self._rounds) + 1).coverage(self._rule)

    @property
    def n_outcomes_(self) -> int:
        """Number of outcomes known, those of the history included."""
        return int(self.counts_.outcomes.sum())

    @property
    def cells_(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Features and groups of the known cells, in the order of all arrays over cells.

        Groups are all the same where cells have none.
        """
        check_is_fitted(self, "_state")
        table = self._state.table
        return table.X, table.groups[table.group]

    def _of_people(self, values: Any, X: Any, sensitive_features: Any, fill: Any) -> Any:
        """Return a value of each person's cell; ``fill`` where the cell is not known."""
        placed = self._intake.place_people(self._state.table, X, sensitive_features)
        room = np.full(len(placed.table), fill, dtype=values.dtype)
        room[: values.size] = values
        return room.take(placed.cell)

    def _counting(self, state: CellState, t: int) -> CellState:
        """Return a state with the outcomes that count in round t, as ``maturity`` has it."""
        if self.maturity is None:
            return state
        return state.with_outcomes(*self._ledger.unripe(t, self.maturity, len(state.table)))

    @property
    def _rule(self) -> CellCoverage:
        return as_cell_coverage(self.coverage)
