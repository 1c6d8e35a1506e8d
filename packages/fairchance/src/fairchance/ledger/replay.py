"""A program's state, rebuilt from its entries.

Classifiers are deterministic: the same settings, history, batches and outcomes in the same order
give the same state. So an entry is applied by calling the classifier with its content.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.core.decisions import Decisions
from fairchance.errors import LearningWarning, LedgerError
from fairchance.ledger.base import DecisionRows, Entry, Facts, PeopleRows
from fairchance.ledger.encoding import Shape
from fairchance.ledger.sql import Reader
from fairchance.methods.storage import loads
from fairchance.people.likelihoods import PolicyFunction

__all__ = ["CLOSE", "Allowed", "State", "differences", "erased_rows", "first_difference"]
__all__ += ["fold_of", "lender_options"]

CLOSE = 1e-6  # other machines sum in another order, and a solver stops at a slightly other point


@dataclass(frozen=True)
class Allowed:
    """What stored classifiers may be made of: the ``types`` and ``trusted`` of ``load``."""

    types: tuple[type, ...] = ()
    trusted: tuple[str, ...] = ()


class State:
    """A classifier, and the number (``applied``) and hash of the last entry applied to it."""

    def __init__(
        self, classifier: Any, shape: Shape, last: Entry, allowed: Allowed | None = None
    ) -> None:
        self.classifier, self.shape = classifier, shape
        self.allowed = Allowed() if allowed is None else allowed
        self.reach(last)

    def reach(self, entry: Entry) -> None:
        """Note that everything up to an entry is applied."""
        self.applied, self._hash = entry.number, entry.hash

    def missed(self, reader: Reader) -> list[Entry] | None:
        """Return the entries after the last one applied; None if the ledger lacks that entry.

        It lacks it after the file was replaced, for example by an older copy.
        """
        entries = list(reader.entries(self.applied - 1))
        if [(entry.number, entry.hash) for entry in entries[:1]] != [(self.applied, self._hash)]:
            return None
        return entries[1:]

    @staticmethod
    def first(entry: Entry, facts: Facts, allowed: Allowed) -> State:
        """Return the state after a program's first entry: an unfitted classifier."""
        classifier = _loaded(facts.payload, entry, allowed)
        return State(classifier, Shape.read(entry.says), entry, allowed)

    @staticmethod
    def from_snapshot(entry: Entry, facts: Facts, shape: Shape, allowed: Allowed) -> State:
        """Return the state that an entry stores."""
        return State(_loaded(facts.payload, entry, allowed), shape, entry, allowed)

    def apply(self, reader: Reader, entry: Entry) -> Decisions | None:
        """Apply an entry to the classifier; return the decisions if it is a batch."""
        facts, decided = reader.facts(entry), None
        if facts.people is not None and erased_rows(facts.people).any():
            raise LedgerError(
                f"entry {entry.number} ({entry.kind}) has erased applicants, and no later state is "
                f"stored; verify the ledger."
            )
        with _silent():
            if entry.kind == "history":
                self._fit(facts)
            elif entry.kind == "batch" and facts.people is not None:
                X, groups, ids = self.shape.people(facts.people)
                by_lender = lender_options(facts.decisions, entry.says["ramp"], facts.people)
                decided = self.classifier.decide(
                    X, sensitive_features=groups, ids=ids, unlike_history=True, **by_lender
                )
            elif entry.kind in ("outcomes", "correction") and facts.outcomes is not None:
                outcomes = facts.outcomes
                learned = np.flatnonzero(reader.overridden_by(outcomes.persons) < 0)
                ids = self.shape.ids(reader.names(outcomes.persons[learned]))
                self._learn(entry.kind, ids, [outcomes.states[row] for row in learned.tolist()])
            elif entry.kind == "override" and facts.overrides is not None:
                # Applicants whom an undo rejects again were never accepted by the classifier.
                undo = entry.says.get("undo", False)
                rejected = facts.overrides.persons[~facts.overrides.accepted & (not undo)]
                self._withdraw(self.shape.ids(reader.names(rejected)))
            elif entry.kind == "control" and entry.says["what"] == "handover":
                self.classifier.hand_over()
        self.reach(entry)
        return decided

    def _fit(self, facts: Facts) -> None:
        assert facts.people is not None
        assert facts.decisions is not None
        X, groups, ids = self.shape.people(facts.people)
        accepted = facts.decisions.accepted
        y = None
        if facts.outcomes is not None:
            # Rejected applicants have no outcome; the label in their place is never read.
            y = np.full(len(facts.people), self.shape.bad, self.shape.labels(["good", "bad"]).dtype)
            states = np.array(facts.outcomes.states, np.str_)
            taken = states != "not_taken"
            y[facts.outcomes.persons[taken]] = self.shape.labels(states[taken].tolist())
        known = {"accepted": accepted, "sensitive_features": groups, "ids": ids}
        if facts.outcomes is not None and not taken.all():
            known["not_taken"] = np.zeros(len(facts.people), np.bool_)
            known["not_taken"][facts.outcomes.persons[~taken]] = True
        if facts.people.person_keys is not None:
            known["persons"] = np.array(facts.people.person_keys)
        if facts.payload is not None:
            known["past_policy"] = self._past_policy(facts.payload)
        self.classifier.fit(X, y, **known)

    def _past_policy(self, payload: bytes) -> Any:
        types, trusted = self.allowed.types, self.allowed.trusted
        name = "the past policy stored with the history"
        return loads(payload, types=types, trusted=trusted, name=name, holds=PolicyFunction).policy

    def learn(self, entry: Entry, ids: NDArray[Any], states: Sequence[str]) -> None:
        """Apply outcomes, a correction or an override whose content the caller has at hand.

        Applicants come in the order of the record, without those overridden before, and are
        ``"withdrawn"`` if an override rejects them.
        """
        with _silent():
            self._learn(entry.kind, ids, states)
        self.reach(entry)

    def _learn(self, kind: str, ids: NDArray[Any], states: Sequence[str]) -> None:
        given = np.array(states, np.str_)
        self._withdraw(ids[given == "withdrawn"])
        if (given == "not_taken").any():
            self.classifier.not_taken(ids[given == "not_taken"])
        known = np.isin(given, ("good", "bad"))
        if known.any():
            learn = self.classifier.correct if kind == "correction" else self.classifier.observe
            learn(ids[known], self.shape.labels(given[known].tolist()))

    def _withdraw(self, ids: NDArray[Any]) -> None:
        """Withdraw accepted applicants; a classifier that cannot do so waits for them forever."""
        if ids.size and hasattr(self.classifier, "withdraw"):
            self.classifier.withdraw(ids)


@contextmanager
def _silent() -> Iterator[None]:
    """Hide warnings about learning: they were shown when the entry was written."""
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
    """Return whether each applicant of an entry is erased."""
    return np.array([name is None for name in people.applications], np.bool_)


def lender_options(
    decided: DecisionRows | None, ramp: float, people: PeopleRows | None = None
) -> dict[str, Any]:
    """Return what a lender adds to a batch, and who applied, as options of ``decide``.

    Without these there are none, so that classifiers need not know these options.
    """
    names = ("incumbent", "barred")
    given = {} if decided is None else {name: getattr(decided, name) for name in names}
    if people is not None and people.person_keys is not None:
        given["persons"] = np.array(people.person_keys)
    options = {name: values for name, values in given.items() if values is not None}
    return options if ramp == 1 else options | {"ramp": ramp}


def fold_of(classifier: Any, ids: NDArray[Any]) -> NDArray[np.int64] | None:
    """Return the fold of each applicant; None if the classifier has no folds."""
    if not hasattr(classifier, "fold_of"):
        return None
    return np.asarray(classifier.fold_of(ids), np.int64)


def first_difference(
    recorded: DecisionRows,
    decided: Decisions,
    *,
    fold: NDArray[np.int64] | None = None,
    rows: NDArray[np.bool_] | None = None,
    drawn: NDArray[np.bool_] | None = None,
    close: float = CLOSE,
) -> tuple[int, str] | None:
    """Return the first row in which decisions differ, and the column; None if they are equal.

    ``rows`` are the applicants to compare, and ``drawn`` those whose acceptance and its probability
    are compared too; None means all, and ``rows``. Numbers may differ by ``close``, relative and
    absolute.
    """
    if recorded.round != decided.round:
        return 0, "round"
    by_column = differences(recorded, decided, fold=fold, rows=rows, drawn=drawn, close=close)
    table = np.stack(list(by_column.values()))
    if not table.any():
        return None
    row = int(np.flatnonzero(table.any(axis=0))[0])
    return row, list(by_column)[int(np.argmax(table[:, row]))]


def differences(
    recorded: DecisionRows,
    decided: Decisions,
    *,
    fold: NDArray[np.int64] | None = None,
    rows: NDArray[np.bool_] | None = None,
    drawn: NDArray[np.bool_] | None = None,
    close: float = CLOSE,
) -> dict[str, NDArray[np.bool_]]:
    """Return in which rows each column of the decisions differs; see ``first_difference``."""
    rows = np.ones(len(decided), np.bool_) if rows is None else rows
    drawn = rows if drawn is None else drawn
    by_column = {
        "accepted": drawn & (recorded.accepted != decided.accepted),
        "region": rows & (recorded.exploit != decided.exploit),
        "score": rows & _differ(recorded.score, decided.score, close),
        "propensity": drawn & _differ(recorded.propensity, decided.propensity, close),
    }
    if recorded.threshold is not None and decided.threshold is not None:
        by_column["threshold"] = rows & _differ(recorded.threshold, decided.threshold, close)
    if recorded.fold is not None and fold is not None:
        by_column["fold"] = rows & (recorded.fold != fold)
    return by_column


def _differ(a: NDArray[np.float64], b: NDArray[np.floating], close: float) -> NDArray[np.bool_]:
    if np.array_equal(a, b):
        return np.zeros(a.shape, np.bool_)
    return np.asarray(~np.isclose(a, b, close, close, equal_nan=True))
