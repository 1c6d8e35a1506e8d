"""The applicants decided on so far: accepted ones with their outcomes, rejected ones by id only.

All methods remember applicants in a ``PeopleStore``. An accepted applicant gets a row when the
decision is made, and an outcome fills in that row's slot whenever it arrives. So the order in which
outcomes arrive cannot matter. A rejected applicant has no slot for an outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairchance.core.saved import saved
from fairchance.errors import InputError, LedgerError, UnknownIdError
from fairchance.frames import concat, take
from fairchance.people.ids import IdIndex, increasing

__all__ = [
    "HISTORY",
    "NEVER",
    "NOT_TAKEN",
    "PENDING",
    "REJECTED",
    "ApplicantRows",
    "GrowingArray",
    "OutcomeChanges",
    "PeopleStore",
]

Bits = NDArray[np.uint64]
Places = NDArray[np.int64]
# Yields bits of ids and features of the accepted applicants of some rounds, in any order.
Record = Callable[[NDArray[np.int32]], Iterable[tuple[Bits, Any]]]

# Codes of outcomes that are not known: not yet, never, and none since the applicant did not take
# what was offered. Known ones are 0, 1, ...
PENDING, NEVER, NOT_TAKEN = -1, -2, -3
# Places of applicants without a row.
REJECTED, HISTORY = -1, -2


@saved
class GrowingArray:
    """An array that is appended to in amortised constant time."""

    def __init__(self, values: NDArray[Any]) -> None:
        self._room = values.copy()
        self._size = values.shape[0]

    def __getstate__(self) -> dict[str, Any]:
        return {"_room": self.view().copy(), "_size": self._size}  # without the room to grow

    def append(self, values: NDArray[Any]) -> None:
        """Append values."""
        self.grow(values.shape[0])[:] = values

    def grow(self, n: int) -> NDArray[Any]:
        """Append n zeros and return a view of them."""
        first, end = self._size, self._size + n
        if end > self._room.shape[0]:
            size = max(end, 2 * self._room.shape[0])
            room = np.zeros((size, *self._room.shape[1:]), self._room.dtype)
            room[:first] = self._room[:first]
            self._room = room
        self._size = end
        return self._room[first:end]

    def view(self) -> NDArray[Any]:
        """Return the values without a copy."""
        return self._room[: self._size]


@saved
class ApplicantRows:
    """Features and named columns of applicants, one row each; ``rows["round"]`` is a column.

    Columns are views: writing to one changes the record. Features that a ledger has can be left out
    of a stored state (``without_features``); ``source``, which is never stored, reads them again.

    Parameters
    ----------
    columns
        Default value of each column, which also gives its type.
    """

    source: Callable[[NDArray[np.int32]], Iterator[tuple[Places, Any]]] | None = None

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._defaults = {name: np.asarray(value)[()] for name, value in columns.items()}
        self._columns = {
            name: GrowingArray(np.empty(0, value.dtype)) for name, value in self._defaults.items()
        }
        self._n_left_out = 0  # rows, the first ones, whose features are not here
        self._array: GrowingArray | None = None
        self._frames: list[Any] = []

    def __len__(self) -> int:
        return int(self["round"].size)

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._columns[name].view()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "source"}

    def without_features(self) -> dict[str, Any]:
        """Return the state to be stored where features are recorded; all of it without a source."""
        state = self.__getstate__()
        if self.source is not None and self._here is not None:
            nobody = take(self._here, np.empty(0, np.intp))
            state["_n_left_out"] = len(self)
            if self._array is not None:
                state["_array"] = GrowingArray(nobody)
            else:
                state["_frames"] = [nobody]
        return state

    @property
    def X(self) -> Any:  # noqa: N802
        """Features: an array (as a view), a frame, or None if none were recorded."""
        if self._n_left_out:
            X, self._n_left_out = self.features(np.arange(len(self))), 0
            if self._array is not None:
                self._array = GrowingArray(X)
            else:
                self._frames = [X]
        return self._here

    def features(self, rows: NDArray[np.integer]) -> Any:
        """Return the features of some rows; what has to be read from the source is not kept."""
        first = self._n_left_out
        is_here = rows >= first
        if is_here.all():
            return take(self._here, rows - first)
        assert self.source is not None
        rounds = np.unique(self["round"][rows[~is_here]])
        pieces = [(rows[is_here], take(self._here, rows[is_here] - first))]
        pieces = [(at, X) for at, X in (*pieces, *self.source(rounds)) if at.size]
        at = np.concatenate([np.empty(0, np.int64), *(places for places, _ in pieces)])
        if np.setdiff1d(rows, at).size:
            raise LedgerError("the features of accepted applicants are missing; verify the ledger.")
        order = np.argsort(at, kind="stable")
        found = order[np.searchsorted(at[order], rows)]
        return take(concat([X for _, X in pieces]), found)

    @property
    def _here(self) -> Any:
        """The features that are not left out."""
        if self._array is not None:
            return self._array.view()
        if len(self._frames) > 1:
            self._frames = [concat(self._frames)]
        return self._frames[0] if self._frames else None

    def append(self, n: int, X: Any, values: Mapping[str, ArrayLike | None]) -> range:
        """Append n rows and return their positions; columns without values get their default."""
        first = len(self)
        for name, column in self._columns.items():
            room, value = column.grow(n), values.get(name)
            if value is None:
                value = self._defaults[name]
            if np.ndim(value) > 0 or value != 0:  # new room holds zeros
                room[:] = value
        if isinstance(X, np.ndarray):
            if self._array is None:
                self._array = GrowingArray(X[:0])
            self._array.append(X)
        elif X is not None:
            self._frames.append(X)
        return range(first, first + n)

    def remove(self, positions: NDArray[Any]) -> NDArray[np.int64]:
        """Delete rows and return the new position of each old row, −1 for the deleted."""
        stays = np.ones(len(self), np.bool_)
        stays[positions] = False
        for name, column in self._columns.items():
            self._columns[name] = GrowingArray(column.view()[stays])
        here = stays[self._n_left_out :]
        self._n_left_out = int(stays[: self._n_left_out].sum())
        if self._array is not None:
            self._array = GrowingArray(self._array.view()[here])
        elif self._frames:
            self._frames = [take(self._here, np.flatnonzero(here))]
        return np.where(stays, np.cumsum(stays) - 1, -1)

    def known_outcomes(self) -> NDArray[np.bool_]:
        """Return which rows have a recorded outcome."""
        return np.asarray(self["outcome"] >= 0)

    def counted(self, waiting: tuple[int, ...] | None) -> NDArray[np.bool_]:
        """Return which rows learning may use.

        Without ``waiting``, these are the rows with a recorded outcome. With it, all rows except
        those of the waiting rounds and those that will never have an outcome.
        """
        if waiting is None:
            return self.known_outcomes()
        never = np.isin(self["outcome"], (NEVER, NOT_TAKEN))
        return np.asarray(~np.isin(self["round"], waiting) & ~never)


@dataclass(frozen=True)
class OutcomeChanges:
    """Outcomes that differ from the recorded ones, one entry per applicant.

    Attributes
    ----------
    at
        Position in the ids that were passed in; increasing.
    place
        Place in the store.
    before, after
        Codes of the old and the new outcome.
    """

    at: NDArray[np.intp]
    place: Places
    before: NDArray[np.int8]
    after: NDArray[np.int8]

    def __len__(self) -> int:
        return int(self.at.size)


@saved
class PeopleStore:
    """All applicants ever decided on, with a slot for the outcome of each accepted one.

    Accepted applicants are rows of one of several parts (the folds of Algorithm 1, the engines of
    the certified method). A *place* is one number per applicant: ``row · n_parts + part`` for a
    row, REJECTED or HISTORY for applicants without a row, ``IdIndex.UNKNOWN`` for unknown ids; use
    ``find`` to look places up and ``rows_by_part`` to take them apart.

    Each row has the columns ``group``, ``round`` (0 for the history), ``outcome`` (0 bad, 1 good or
    the code of a class; PENDING, NEVER or NOT_TAKEN if not known) and the extra columns of the
    method. All methods check everything before they write anything: an error leaves the store
    unchanged.

    Parameters
    ----------
    n_parts
        Number of parts.
    columns
        Extra columns: name and default value, which also gives the type, as in
        ``{"p": 0.0, "cell": np.int32(0)}``.
    keep_rejected
        Keep the features and columns of rejected applicants in ``rejected``. These rows have no
        column ``outcome``.

    Attributes
    ----------
    parts : the rows of accepted applicants, a list of ``ApplicantRows``.
    rejected : the rows of rejected applicants, None unless ``keep_rejected``.

    Examples
    --------
    >>> store, ids = PeopleStore(columns={"p": 1.0}), np.arange(3)
    >>> bits = ids.astype(np.uint64)
    >>> store.record(bits, np.array([True, False, True]), 1, X=np.array([[5.0], [6.0], [7.0]]))
    array([ 0, -1,  1])
    >>> changes = store.observe(np.array([2]), bits[2:], np.array([1], np.int8))
    >>> rows = store.parts[0]
    >>> rows["outcome"].tolist(), rows["p"].tolist(), rows.X.tolist()
    ([-1, 1], [1.0, 1.0], [[5.0], [7.0]])
    """

    def __init__(
        self,
        n_parts: int = 1,
        columns: Mapping[str, Any] | None = None,
        *,
        keep_rejected: bool = False,
    ) -> None:
        every = {"group": np.intp(0), "round": np.int32(0), **(columns or {})}
        accepted = {**every, "outcome": np.int8(PENDING)}
        self.parts = [ApplicantRows(accepted) for _ in range(n_parts)]
        self.rejected = ApplicantRows(every) if keep_rejected else None
        self._index = IdIndex()

    def check_new(self, ids: NDArray[Any], bits: Bits) -> None:
        """Raise InputError if an id was decided on before."""
        known = self._index.known(bits)
        if known.size:
            raise InputError(
                f"{known.size} of {ids.size} ids were decided on before, first "
                f"{ids[known[0]].item()!r}; a person who applies again needs a new id."
            )

    def check_known(self, ids: NDArray[Any], bits: Bits) -> None:
        """Raise UnknownIdError if an id is not known."""
        unknown = np.flatnonzero(self._index.find(bits) == IdIndex.UNKNOWN)
        if unknown.size:
            raise UnknownIdError(
                f"{unknown.size} of {ids.size} ids are not known, first "
                f"{ids[unknown[0]].item()!r}; none was forgotten, remove them."
            )

    def record(
        self,
        bits: Bits,
        accepted: NDArray[np.bool_],
        round: int,
        *,
        X: Any = None,
        group: NDArray[np.intp] | None = None,
        part: NDArray[np.intp] | None = None,
        outcome: NDArray[np.int8] | None = None,
        columns: Mapping[str, NDArray[Any]] | None = None,
        sort: bool = True,
    ) -> Places:
        """Record the decisions on new applicants and return their places.

        ``outcome`` are the outcomes of the accepted only, in their order; None means that all are
        pending. Rows are written in the order of the bits, so that a batch in another order leaves
        the same rows, unless ``sort`` is False.
        """
        n, rows = len(self._tables), np.arange(bits.size)
        if sort and not increasing(bits):
            rows = np.argsort(bits, kind="stable")
        table = np.where(accepted, 0 if part is None else part, len(self.parts))
        values: dict[str, NDArray[Any]] = dict(columns or {})
        if group is not None:
            values["group"] = group
        if outcome is not None:
            values["outcome"] = np.full(bits.size, PENDING, np.int8)
            values["outcome"][accepted] = outcome
        place = np.full(bits.size, REJECTED, np.int64)
        for number, target in enumerate(self._tables):
            chosen = rows[table[rows] == number]
            at = target.append(
                chosen.size,
                None if X is None else take(X, chosen),
                {"round": round, **{name: column[chosen] for name, column in values.items()}},
            )
            place[chosen] = np.arange(at.start, at.stop) * n + number
        self._index.add(bits, place)
        # The rows of rejected applicants are reached through ``rejected_rows`` only.
        return np.where(accepted, place, REJECTED)

    def record_history(self, bits: Bits, accepted: NDArray[np.bool_]) -> None:
        """Record the ids of a history that is kept elsewhere; its accepted get place HISTORY."""
        self._index.add(bits, np.where(accepted, np.int64(HISTORY), np.int64(REJECTED)))

    def find(self, bits: Bits) -> Places:
        """Return the place of each id, IdIndex.UNKNOWN for unknown ids."""
        place = self._index.find(bits)
        place[self._in_rejected(place)] = REJECTED
        return place

    def rows_by_part(self, place: Places) -> list[tuple[NDArray[np.bool_], NDArray[np.int64]]]:
        """Return for each part which of these applicants are in it, and in which rows."""
        n = len(self._tables)
        number = np.where(place >= 0, place % n, -1)
        return [(number == z, place[number == z] // n) for z in range(len(self.parts))]

    def rejected_rows(self, bits: Bits) -> NDArray[np.int64]:
        """Return the rows in ``rejected`` of those of the ids that were rejected."""
        place = self._index.find(bits)
        return place[self._in_rejected(place)] // len(self._tables)

    def recorded(self, ids: NDArray[Any], bits: Bits) -> NDArray[np.int8]:
        """Return the outcome codes of accepted applicants; raise UnknownIdError for others."""
        return self._outcomes(self._accepted_places(ids, bits))

    def check_outcomes(
        self,
        ids: NDArray[Any],
        bits: Bits,
        outcome: NDArray[np.int8],
        *,
        correcting: bool = False,
    ) -> OutcomeChanges:
        """Return the changes that ``observe`` would make; raise as it does, and write nothing."""
        place = self._accepted_places(ids, bits)
        _, first, again = np.unique(place, return_index=True, return_inverse=True)
        contradicts = outcome[first][again] != outcome
        if contradicts.any():
            name = ids[np.argmax(contradicts)].item()
            raise InputError(f"outcomes contradict each other for id {name!r}; give one per id.")
        at = np.sort(first)
        ids, place, outcome = ids[at], place[at], outcome[at]
        before = self._outcomes(place)
        _check_recorded(ids, before, outcome, correcting)
        changed = before != outcome
        return OutcomeChanges(at[changed], place[changed], before[changed], outcome[changed])

    def observe(
        self,
        ids: NDArray[Any],
        bits: Bits,
        outcome: NDArray[np.int8],
        *,
        correcting: bool = False,
    ) -> OutcomeChanges:
        """Record outcomes of accepted applicants, all or none of them.

        The same outcome may come again, in one call or in several.

        ``correcting`` replaces recorded outcomes and refuses an applicant with a pending one;
        otherwise a recorded outcome cannot change.
        """
        changes = self.check_outcomes(ids, bits, outcome, correcting=correcting)
        self._write(changes)
        return changes

    def withdraw(self, ids: NDArray[Any], bits: Bits) -> OutcomeChanges:
        """Record that outcomes will never be known, even if some are recorded already."""
        place = self._accepted_places(ids, bits)
        at = np.sort(np.unique(place, return_index=True)[1])
        before = self._outcomes(place[at])
        at, before = at[before != NEVER], before[before != NEVER]
        after = np.full(at.size, NEVER, np.int8)
        changes = OutcomeChanges(at, place[at], before, after)
        self._write(changes)
        return changes

    def not_taken(self, ids: NDArray[Any], bits: Bits) -> OutcomeChanges:
        """Record that accepted applicants did not take what was offered; again is harmless.

        An outcome is then refused unless it is a correction. An applicant with an outcome, or
        withdrawn, is refused: a bad loan must not be called "not taken" afterwards.
        """
        return self.observe(ids, bits, np.full(ids.size, NOT_TAKEN, np.int8))

    def forget(self, ids: NDArray[Any], bits: Bits) -> list[NDArray[np.int64]]:
        """Delete applicants and their ids for good.

        Return, for each part, the new row of each old row, −1 for the deleted.
        """
        self.check_known(ids, bits)
        place, n = self._index.find(bits), len(self._tables)
        moved = [
            table.remove(place[(place >= 0) & (place % n == number)] // n)
            for number, table in enumerate(self._tables)
        ]
        self._index.remove(bits, moved)
        return moved[: len(self.parts)]

    def read_features(self, record: Record) -> None:
        """Read features that are left out of a stored state from where they are recorded."""

        def of_part(number: int, rounds: NDArray[np.int32]) -> Iterator[tuple[Places, Any]]:
            for bits, X in record(rounds):
                here, rows = self.rows_by_part(self.find(bits))[number]
                yield rows, take(X, np.flatnonzero(here))

        for number, rows in enumerate(self.parts):
            rows.source = partial(of_part, number)

    def waiting(self, t: int, maturity: int | None) -> tuple[int, ...] | None:
        """Return rounds before ``t`` with pending outcomes that are not mature yet.

        A round is mature ``maturity`` rounds after its decisions. None if there is no maturity.
        """
        if maturity is None:
            return None
        pending = [rows["round"][rows["outcome"] == PENDING] for rows in self.parts]
        rounds = np.unique(np.concatenate(pending))
        return tuple(rounds[t - rounds <= maturity].tolist())

    @property
    def n_outcomes(self) -> int:
        """Number of recorded outcomes."""
        return sum(int(rows.known_outcomes().sum()) for rows in self.parts)

    @property
    def _tables(self) -> list[ApplicantRows]:
        return self.parts if self.rejected is None else [*self.parts, self.rejected]

    def _in_rejected(self, place: Places) -> NDArray[np.bool_]:
        n = len(self._tables)
        return np.asarray((place >= 0) & (place % n >= len(self.parts)))

    def _outcomes(self, place: Places) -> NDArray[np.int8]:
        outcome = np.empty(place.size, np.int8)
        for table, (here, rows) in zip(self.parts, self.rows_by_part(place), strict=True):
            outcome[here] = table["outcome"][rows]
        return outcome

    def _write(self, changes: OutcomeChanges) -> None:
        parts = self.rows_by_part(changes.place)
        for table, (here, rows) in zip(self.parts, parts, strict=True):
            table["outcome"][rows] = changes.after[here]

    def _accepted_places(self, ids: NDArray[Any], bits: Bits) -> Places:
        """Return the places of accepted applicants; raise UnknownIdError for others."""
        place = self.find(bits)
        for code, problem, why in (
            (IdIndex.UNKNOWN, "were never decided on", ""),
            (REJECTED, "were rejected", ", and only accepted applicants have outcomes"),
            (HISTORY, "belong to the history", ", and its outcomes were given to fit"),
        ):
            wrong = np.flatnonzero(place == code)
            if wrong.size:
                raise UnknownIdError(
                    f"{wrong.size} of {ids.size} ids {problem}, first "
                    f"{ids[wrong[0]].item()!r}{why}; nothing was recorded, remove or correct them."
                )
        return place


def _check_recorded(
    ids: NDArray[Any],
    recorded: NDArray[np.int8],
    outcome: NDArray[np.int8],
    correcting: bool,
) -> None:
    """Raise if an outcome would change without a correction, or none is there to correct."""
    pending = recorded == PENDING
    wrong = pending if correcting else ~pending & (recorded != outcome)
    if not wrong.any():
        return
    name = ids[np.argmax(wrong)].item()
    if correcting:
        raise InputError(
            f"no outcome is recorded for id {name!r}; nothing was changed, record it with observe."
        )
    before, after = recorded[np.argmax(wrong)], outcome[np.argmax(wrong)]
    if after == NOT_TAKEN:
        has = "was withdrawn" if before == NEVER else "has an outcome"
        raise InputError(
            f"id {name!r} {has}, so it cannot be recorded as not taken; nothing was changed, leave "
            f"it out."
        )
    has = {NEVER: "is withdrawn", NOT_TAKEN: "is not taken"}.get(before, "has another outcome")
    raise InputError(
        f"id {name!r} {has} in the record; nothing was changed, record a correction with correct."
    )
