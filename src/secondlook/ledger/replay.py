"""A program's state, rebuilt from its entries.

Classifiers are deterministic: settings, history, batches and outcomes, told in the same order, give
the same state. So an entry is applied by telling the classifier what it says.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.decisions import Decisions
from secondlook.errors import LearningWarning, LedgerError
from secondlook.ledger.base import DecisionRows, Entry, Facts, OutcomeRows, PeopleRows, Reader
from secondlook.ledger.columns import Columns, decode_groups
from secondlook.storage import loads

__all__ = ["Allowed", "Shape", "State", "erased_rows", "first_difference"]

_CLOSE = 1e-6  # other machines sum in other orders, and a solver stops a little elsewhere


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
        )

    def people(self, rows: PeopleRows) -> tuple[Any, Any, NDArray[Any]]:
        """Return features, group values and ids."""
        numbers = [one or b"" for one in rows.numbers]
        X = self.columns.decode(numbers, rows.texts)
        return X, self.groups(rows), self.ids(rows.applications)

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
    """A classifier, and the number of the last entry that it knows."""

    def __init__(self, classifier: Any, shape: Shape, applied: int) -> None:
        self.classifier, self.shape, self.applied = classifier, shape, applied

    @staticmethod
    def first(entry: Entry, facts: Facts, allowed: Allowed) -> State:
        """Return the state after a program's first entry: settings and nothing else."""
        classifier = _loaded(facts.payload, entry, allowed)
        return State(classifier, Shape.read(entry.says), entry.number)

    @staticmethod
    def from_snapshot(entry: Entry, facts: Facts, shape: Shape, allowed: Allowed) -> State:
        """Return the state that an entry keeps."""
        return State(_loaded(facts.payload, entry, allowed), shape, entry.number)

    def apply(self, reader: Reader, entry: Entry) -> Decisions | None:
        """Tell the classifier what an entry says; return the decisions if it is a batch."""
        facts, decided = reader.facts(entry), None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LearningWarning)  # said when it happened
            if entry.kind == "history":
                self._fit(facts)
            elif entry.kind == "batch" and facts.people is not None:
                X, groups, ids = self.shape.people(facts.people)
                decided = self.classifier.decide(X, sensitive_features=groups, ids=ids)
            elif entry.kind in ("outcomes", "correction") and facts.outcomes is not None:
                self._tell(reader, entry.kind, facts.outcomes)
            elif entry.kind == "override" and facts.overrides is not None:
                taken_back = facts.overrides.persons[~facts.overrides.accepted]
                self.withdraw(self.shape.ids(reader.names(taken_back)))
        self.applied = entry.number
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
        self.classifier.fit(X, y, accepted=accepted, sensitive_features=groups, ids=ids)

    def _tell(self, reader: Reader, kind: str, told: OutcomeRows) -> None:
        names = reader.names(told.persons)
        ours = ~reader.standing([str(one) for one in names]).overridden
        self.tell(
            kind,
            self.shape.ids(names)[ours],
            [s for s, o in zip(told.states, ours, strict=True) if o],
        )

    def tell(self, kind: str, ids: NDArray[Any], states: list[str]) -> None:
        """Hand outcomes to the classifier."""
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


def first_difference(recorded: DecisionRows, decided: Decisions) -> tuple[int, str] | None:
    """Return the first row where two decisions differ, and in what; None if they are the same."""
    if recorded.round != decided.round:
        return 0, "round"
    other = np.stack(
        [
            recorded.accepted != decided.accepted,
            recorded.exploit != decided.exploit,
            ~np.isclose(recorded.score, decided.score, _CLOSE, _CLOSE, equal_nan=True),
            ~np.isclose(recorded.propensity, decided.propensity, _CLOSE, _CLOSE, equal_nan=True),
        ]
    )
    if not other.any():
        return None
    row = int(np.flatnonzero(other.any(axis=0))[0])
    return row, ("accepted", "region", "score", "propensity")[int(np.argmax(other[:, row]))]
