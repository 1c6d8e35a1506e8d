"""A program's state, rebuilt from its entries.

Classifiers are deterministic: settings, history, batches and outcomes, told in the same order, give
the same state. So an entry is applied by telling the classifier what it says.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.core.decisions import Decisions
from secondlook.errors import LearningWarning, LedgerError
from secondlook.ledger.base import DecisionRows, Entry, Facts, PeopleRows, Reader
from secondlook.ledger.columns import Columns, decode_groups
from secondlook.methods.storage import loads
from secondlook.people.likelihoods import PolicyFunction
from secondlook.people.reasons import Reference

__all__ = ["CLOSE", "Allowed", "Shape", "State", "differences", "erased_rows", "first_difference"]

CLOSE = 1e-6  # other machines sum in other orders, and a solver stops a little elsewhere


@dataclass(frozen=True)
class Allowed:
    """What stored classifiers may be made of: ``types`` and ``trusted`` of ``load``."""

    types: tuple[type, ...] = ()
    trusted: tuple[str, ...] = ()


@dataclass(frozen=True)
class Shape:
    """What a program's people, groups, ids and outcomes look like."""

    columns: Columns
    group_names: tuple[str, ...] | None
    has_groups: bool
    id_kind: str
    good: Any
    bad: Any
    reference: Reference | None = None  # whom refused people are compared with

    @staticmethod
    def read(header: dict[str, Any]) -> Shape:
        """Return it from the header of a program's first entry."""
        names = header["group_names"]
        return Shape(
            Columns.read(header["columns"]),
            None if names is None else tuple(names),
            header["has_groups"],
            header["id_kind"],
            header["good"],
            header["bad"],
            Reference.read(header.get("reference")),
        )

    def people(self, rows: PeopleRows) -> tuple[Any, Any, NDArray[Any]]:
        """Return features, group values and ids."""
        numbers = [one or b"" for one in rows.numbers]
        try:
            X = self.columns.decode(numbers, rows.texts)
            return X, self.groups(rows), self.ids(rows.applications)
        except (ValueError, TypeError) as error:
            raise LedgerError(
                f"people of the ledger cannot be read ({str(error).splitlines()[0]}); verify it."
            ) from error

    def groups(self, rows: PeopleRows) -> Any:
        """Return group values as the classifier reads them."""
        if rows.groups is None:
            return None
        return decode_groups(self.group_names, [str(one) for one in rows.groups])

    def ids(self, applications: Iterable[str | None]) -> NDArray[Any]:
        """Return ids of the kind that the program has."""
        return np.array(
            [str(one) for one in applications], np.int64 if self.id_kind == "i" else np.str_
        )

    def labels(self, states: Iterable[str]) -> NDArray[Any]:
        """Return outcomes in the program's labels."""
        return np.array([self.good if one == "good" else self.bad for one in states])


class State:
    """A classifier, and the last entry that it knows: its number (``applied``) and its hash."""

    def __init__(
        self, classifier: Any, shape: Shape, last: Entry, allowed: Allowed | None = None
    ) -> None:
        self.classifier, self.shape = classifier, shape
        self.allowed = Allowed() if allowed is None else allowed
        self.reach(last)

    def reach(self, entry: Entry) -> None:
        """Take note that the classifier knows all up to an entry."""
        self.applied, self._hash = entry.number, entry.hash

    def missed(self, reader: Reader) -> list[Entry] | None:
        """Return the entries after the last one; None if a ledger does not have that very one.

        It has not when something else was put in its place, as an older copy is.
        """
        found = list(reader.entries(self.applied - 1))
        mine = [(one.number, one.hash) for one in found[:1]] == [(self.applied, self._hash)]
        return found[1:] if mine else None

    @staticmethod
    def first(entry: Entry, facts: Facts, allowed: Allowed) -> State:
        """Return the state after a program's first entry: settings and nothing else."""
        classifier = _loaded(facts.payload, entry, allowed)
        return State(classifier, Shape.read(entry.says), entry, allowed)

    @staticmethod
    def from_snapshot(entry: Entry, facts: Facts, shape: Shape, allowed: Allowed) -> State:
        """Return the state that an entry keeps."""
        return State(_loaded(facts.payload, entry, allowed), shape, entry, allowed)

    def apply(self, reader: Reader, entry: Entry) -> Decisions | None:
        """Tell the classifier what an entry says; return the decisions if it is a batch."""
        facts, decided = reader.facts(entry), None
        if facts.people is not None and erased_rows(facts.people).any():
            raise LedgerError(
                f"people of entry {entry.number} ({entry.kind}) were erased, and no state is "
                f"stored from which the program could go on without them; verify the ledger."
            )
        with _silent():
            if entry.kind == "history":
                self._fit(facts)
            elif entry.kind == "batch" and facts.people is not None:
                X, groups, ids = self.shape.people(facts.people)
                decided = self.classifier.decide(X, sensitive_features=groups, ids=ids)
            elif entry.kind in ("outcomes", "correction") and facts.outcomes is not None:
                told = facts.outcomes
                ours = np.flatnonzero(reader.overridden_by(told.persons) < 0)
                ids = self.shape.ids(reader.names(told.persons[ours]))
                self._tell(entry.kind, ids, [told.states[row] for row in ours.tolist()])
            elif entry.kind == "override" and facts.overrides is not None:
                # Whom an undo turns away again was never accepted by the classifier.
                undo = entry.says.get("undo", False)
                turned_away = facts.overrides.persons[~facts.overrides.accepted & (not undo)]
                self.withdraw(self.shape.ids(reader.names(turned_away)))
        self.reach(entry)
        return decided

    def _fit(self, facts: Facts) -> None:
        assert facts.people is not None
        assert facts.decisions is not None
        X, groups, ids = self.shape.people(facts.people)
        accepted = facts.decisions.accepted
        y = None
        if facts.outcomes is not None:
            # The rejected have no outcome; the label in their place is never read.
            y = np.full(len(facts.people), self.shape.bad, self.shape.labels(["good", "bad"]).dtype)
            y[facts.outcomes.persons] = self.shape.labels(facts.outcomes.states)
        known = {"accepted": accepted, "sensitive_features": groups, "ids": ids}
        if facts.payload is not None:
            known["past_policy"] = self._past_policy(facts.payload)
        self.classifier.fit(X, y, **known)

    def _past_policy(self, payload: bytes) -> Any:
        types, trusted = self.allowed.types, self.allowed.trusted
        name = "the past policy stored with the history"
        return loads(payload, types=types, trusted=trusted, name=name, holds=PolicyFunction).policy

    def learn(self, entry: Entry, ids: NDArray[Any], states: Sequence[str]) -> None:
        """Do as ``apply``, given whom of the classifier's own people an entry tells something of.

        Parameters
        ----------
        entry
            Outcomes, a correction, or an override.
        ids, states
            Who has which outcome, in the order of the record, without those who are overridden;
            whoever an override turns away has none and never will.
        """
        with _silent():
            self._tell(entry.kind, ids, states)
        self.reach(entry)

    def _tell(self, kind: str, ids: NDArray[Any], states: Sequence[str]) -> None:
        never = np.array([one == "indeterminate" for one in states], np.bool_)
        if never.any():
            self.withdraw(ids[never])
        if not never.all():
            tell = self.classifier.correct if kind == "correction" else self.classifier.observe
            tell(ids[~never], self.shape.labels(s for s in states if s != "indeterminate"))

    def withdraw(self, ids: NDArray[Any]) -> None:
        """Tell of accepted people whose outcome will never be known.

        A classifier that has no word for it just goes on waiting for them.
        """
        if ids.size and hasattr(self.classifier, "withdraw"):
            self.classifier.withdraw(ids)


@contextmanager
def _silent() -> Iterator[None]:
    """Leave out warnings of what was learned: they were said when it happened."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LearningWarning)
        yield


def _loaded(payload: bytes | None, entry: Entry, allowed: Allowed) -> Any:
    if payload is None:
        raise LedgerError(
            f"entry {entry.number} ({entry.kind}) has no stored classifier; verify the ledger."
        )
    name = f"the classifier stored in entry {entry.number}"
    return loads(payload, types=allowed.types, trusted=allowed.trusted, name=name)


def erased_rows(people: PeopleRows) -> NDArray[np.bool_]:
    """Say who of an entry's people has been erased."""
    return np.array([one is None for one in people.applications], np.bool_)


def first_difference(
    recorded: DecisionRows,
    decided: Decisions,
    *,
    fold: NDArray[np.int64] | None = None,
    rows: NDArray[np.bool_] | None = None,
    drawn: NDArray[np.bool_] | None = None,
    close: float = CLOSE,
) -> tuple[int, str] | None:
    """Return the first row where two decisions differ, and in what; None if they are the same.

    Parameters
    ----------
    recorded, decided
        What is in the ledger, and what came out again.
    fold
        Folds that came out again; None to leave them out.
    rows
        Whom to compare; None means everybody.
    drawn
        For whom acceptance and its probability are compared too; None means all of ``rows``.
    close
        By how much numbers may differ, relative and absolute.
    """
    if recorded.round != decided.round:
        return 0, "round"
    others = differences(recorded, decided, fold=fold, rows=rows, drawn=drawn, close=close)
    table = np.stack(list(others.values()))
    if not table.any():
        return None
    row = int(np.flatnonzero(table.any(axis=0))[0])
    return row, list(others)[int(np.argmax(table[:, row]))]


def differences(
    recorded: DecisionRows,
    decided: Decisions,
    *,
    fold: NDArray[np.int64] | None = None,
    rows: NDArray[np.bool_] | None = None,
    drawn: NDArray[np.bool_] | None = None,
    close: float = CLOSE,
) -> dict[str, NDArray[np.bool_]]:
    """Say for everything that is decided on a person where it differs; see ``first_difference``."""
    rows = np.ones(len(decided), np.bool_) if rows is None else rows
    drawn = rows if drawn is None else drawn
    others = {
        "accepted": drawn & (recorded.accepted != decided.accepted),
        "region": rows & (recorded.exploit != decided.exploit),
        "score": rows & _other_numbers(recorded.score, decided.score, close),
        "propensity": drawn & _other_numbers(recorded.propensity, decided.propensity, close),
    }
    if recorded.threshold is not None and decided.threshold is not None:
        others["threshold"] = rows & _other_numbers(recorded.threshold, decided.threshold, close)
    if recorded.fold is not None and fold is not None:
        others["fold"] = rows & (recorded.fold != fold)
    return others


def _other_numbers(
    one: NDArray[np.float64], other: NDArray[np.floating], close: float
) -> NDArray[np.bool_]:
    if np.array_equal(one, other):
        return np.zeros(one.shape, np.bool_)
    return np.asarray(~np.isclose(one, other, close, close, equal_nan=True))
