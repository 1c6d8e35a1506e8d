"""A program's state, rebuilt from its entries.

Classifiers are deterministic: the same settings, history, rounds and outcomes in the same order
give the same state. So an entry is applied by calling the classifier with its content. Only
``verify`` lets it learn: elsewhere a state is stored with what was learned.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.core.decisions import Decisions
from fairchance.errors import LearningWarning, LedgerError
from fairchance.ledger.base import DecisionRows, Entry, Facts, Ints, PeopleRows
from fairchance.ledger.encoding import Shape
from fairchance.ledger.sql import Reader
from fairchance.methods.algorithm1.classifier import PartialFeedbackClassifier
from fairchance.methods.certified.classifier import CertifiedClassifier
from fairchance.methods.policy import Policy
from fairchance.methods.storage import loads
from fairchance.people.likelihoods import PolicyFunction

__all__ = ["CLOSE", "Allowed", "State", "as_decisions", "erased_rows", "first_difference"]
__all__ += ["lender_options", "opens_rounds", "recorded_parts", "rows_of"]

# A second of replay, about, in applicants: a state is stored once more would have to be replayed.
_SECOND = 50_000
_ENTRY = 500  # what an entry costs in addition to its applicants
CLOSE = 1e-6  # other machines sum in another order, and a solver stops at a slightly other point


@dataclass(frozen=True)
class Allowed:
    """What stored classifiers may be made of: the ``types`` and ``trusted`` of ``load``."""

    types: tuple[type, ...] = ()
    trusted: tuple[str, ...] = ()


class State:
    """A classifier, and the number (``applied``) and hash of the last entry applied to it.

    ``opened`` is the entry that opened the round that is open, if one is. ``is_due`` says that the
    state has to be stored, since replaying the entries after the last stored one would take long.
    """

    opened: Entry | None = None

    def __init__(
        self, classifier: Any, shape: Shape, last: Entry, allowed: Allowed | None = None
    ) -> None:
        self.classifier, self.shape = classifier, shape
        self.allowed = Allowed() if allowed is None else allowed
        self._cost, self.is_due = 0, False
        self.reach(last)

    def reach(self, entry: Entry, n: int = 0) -> None:
        """Note that everything up to an entry is applied, which has so many applicants."""
        self.applied, self._hash = entry.number, entry.hash
        self._cost += _ENTRY + n
        self.is_due |= self._cost > _SECOND

    def stored(self, entry: Entry) -> None:
        """Note that an entry stores the state."""
        self.reach(entry)
        self._cost, self.is_due = 0, False

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
    def from_snapshot(
        reader: Reader, entry: Entry, facts: Facts, shape: Shape, allowed: Allowed
    ) -> State:
        """Return the state that an entry stores."""
        state = State(_loaded(facts.payload, entry, allowed), shape, entry, allowed)
        if getattr(state.classifier, "open_policy_", None) is not None:
            rounds = reader.newest_first("round")
            state.opened = next(one for one in rounds if one.number < entry.number)
        return state

    def apply(
        self, reader: Reader, entry: Entry, *, again: bool = False
    ) -> list[tuple[Decisions, Decisions]]:
        """Apply an entry to the classifier.

        Returns the recorded decisions of a round that ends with the entry, in parts, and those that
        the classifier makes. With ``again`` these may differ; otherwise it raises ``LedgerError``
        if the recorded ones do not follow from the policy.
        """
        facts, decided = reader.facts(entry), []
        if facts.people is not None and erased_rows(facts.people).any():
            raise LedgerError(
                f"entry {entry.number} ({entry.kind}) has erased applicants, and no later state is "
                f"stored; verify the ledger."
            )
        n = 0 if facts.outcomes is None else len(facts.outcomes.states)
        with _silent():
            if entry.kind == "history":
                self._fit(facts)
            elif entry.kind == "round":
                self._open(entry)
            elif entry.kind == "batch":
                n = entry.says["rows"]["n"]
                decided = self._decide(reader, entry, facts, again=again)
            elif entry.kind in ("outcomes", "correction", "override"):
                self._learn_facts(reader, entry, facts)
            elif entry.kind == "import" and entry.says["void"]:
                self.classifier.void_round(entry.says["round"])
            elif entry.kind == "control" and entry.says["what"] == "handover":
                self.classifier.hand_over()
        self.reach(entry, n)
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

    # Rounds

    def _open(self, entry: Entry) -> None:
        says = entry.says
        self.classifier.open_round(
            says["expected"], incumbent=says["incumbent"], ramp=float(says["ramp"])
        )
        self.opened = entry

    def _decide(
        self, reader: Reader, entry: Entry, facts: Facts, *, again: bool
    ) -> list[tuple[Decisions, Decisions]]:
        """Open the round of a batch unless it is open, and close it."""
        people, recorded = facts.people, facts.decisions
        if not opens_rounds(self.classifier):
            assert people is not None
            assert recorded is not None
            return [self._decide_at_once(entry, people, recorded)]
        if "opened" not in entry.says:
            given = recorded is not None and recorded.incumbent is not None
            n = entry.says["rows"]["n"]
            self.classifier.open_round(n, incumbent=given, ramp=float(entry.says["ramp"]))
        policy: Policy = self.classifier.open_policy_
        parts = [] if people is None else [*recorded_parts(policy, self.shape, people, recorded)]
        made = [policy.decide_batch(part.applicants) for part in parts] if again else parts
        try:
            self.classifier.close_round(made)
        except ValueError as error:
            raise LedgerError(
                f"round {policy.round} cannot be closed as recorded ({error}); verify the ledger."
            ) from error
        self.learn_deferred(reader, entry)
        return list(zip(parts, made, strict=True))

    def _decide_at_once(
        self, entry: Entry, people: PeopleRows, recorded: DecisionRows
    ) -> tuple[Decisions, Decisions]:
        """Let a classifier decide that opens no rounds."""
        X, groups, ids = self.shape.people(people)
        options = lender_options(recorded, float(entry.says["ramp"]), people)
        decided = self.classifier.decide(
            X, sensitive_features=groups, ids=ids, unlike_history=True, **options
        )
        return as_decisions(recorded, ids), decided

    # Outcomes

    def learn(
        self, reader: Reader, entry: Entry, persons: Ints, names: Sequence[str], states: Any
    ) -> None:
        """Apply outcomes, a correction or an override whose content the caller has at hand.

        Applicants are without those overridden before, and ``"withdrawn"`` if an override rejects
        them.
        """
        with _silent():
            self._learn(reader, entry.kind, persons, names, np.array(states, np.str_))
        self.reach(entry, len(states))

    def learn_deferred(self, reader: Reader, closed: Entry) -> None:
        """Apply what was recorded about applicants of a round while it was open."""
        opened, self.opened = self.opened, None
        if opened is None:
            return
        first = opened.people_range.start
        for entry in reader.entries(opened.number):
            if entry.number > closed.number:
                break
            if entry.kind in ("outcomes", "correction", "override"):
                self._learn_facts(reader, entry, reader.facts(entry), first)

    def _learn_facts(self, reader: Reader, entry: Entry, facts: Facts, first: int = 0) -> None:
        """Learn what an entry says about applicants from a number on."""
        if facts.outcomes is not None:
            persons, states = facts.outcomes.persons, np.array(facts.outcomes.states, np.str_)
            kept = (reader.overridden_by(persons) < 0) & (persons >= first)
        elif facts.overrides is not None:
            # Applicants whom an undo rejects again were never accepted by the classifier.
            persons = facts.overrides.persons
            states = np.full(persons.size, "withdrawn")
            undo = entry.says.get("undo", False)
            kept = ~facts.overrides.accepted & (not undo) & (persons >= first)
        else:
            return
        self._learn(reader, entry.kind, persons[kept], reader.names(persons[kept]), states[kept])

    def _learn(
        self,
        reader: Reader,
        kind: str,
        persons: Ints,
        names: Sequence[str | None],
        states: NDArray[np.str_],
    ) -> None:
        order = np.argsort(persons, kind="stable")
        order = order[self._knows(reader, persons[order])]
        ids, states = self.shape.ids([names[row] for row in order.tolist()]), states[order]
        self._withdraw(ids[states == "withdrawn"])
        if (states == "not_taken").any():
            self.classifier.not_taken(ids[states == "not_taken"])
        labelled = np.isin(states, ("good", "bad"))
        if labelled.any():
            learn = self.classifier.correct if kind == "correction" else self.classifier.observe
            learn(ids[labelled], self.shape.labels(states[labelled].tolist()))

    def _knows(self, reader: Reader, persons: Ints) -> NDArray[np.bool_]:
        """Return which applicants the classifier knows: not those of an open round, nor late ones.

        An applicant whose decision was imported after the round had closed is no evidence.
        """
        known = np.ones(persons.size, np.bool_)
        if self.opened is not None:
            known &= persons < self.opened.people_range.start
        for entry in reader.entries(kind="import"):
            rows = entry.people_range
            known &= (persons < rows.start) | (persons >= rows.stop)
        return known

    def _withdraw(self, ids: NDArray[Any]) -> None:
        """Withdraw accepted applicants; a classifier that cannot do so waits for them forever."""
        if ids.size and hasattr(self.classifier, "withdraw"):
            self.classifier.withdraw(ids)


def opens_rounds(classifier: Any) -> bool:
    """Return whether a classifier opens and closes rounds by policies.

    A subclass may decide in another way than its policy does.
    """
    if type(classifier) is PartialFeedbackClassifier:
        return bool(classifier.exploration == "coins")
    return type(classifier) is CertifiedClassifier


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


def recorded_parts(
    policy: Policy, shape: Shape, people: PeopleRows, decisions: DecisionRows | None
) -> Iterator[Decisions]:
    """Yield recorded decisions as a policy's round takes them back.

    Applicants whose person is known come apart from the others.
    """
    assert decisions is not None
    keys = people.person_keys
    has_key = np.array([False] * len(people) if keys is None else [key is not None for key in keys])
    for with_key in (False, True):
        rows = np.flatnonzero(has_key == with_key)
        if not rows.size:
            continue
        some, decided = rows_of(people, rows), rows_of(decisions, rows)
        X, groups, ids = shape.people(some)
        options = {"incumbent": decided.incumbent, "barred": decided.barred}
        batch = policy.read(X, ids=ids, sensitive_features=groups, **options)
        if with_key:
            batch = replace(batch, persons=np.array(some.person_keys, np.int64).view(np.uint64))
        yield as_decisions(decided, ids, batch)


def rows_of(table: Any, rows: NDArray[np.intp]) -> Any:
    """Return some rows of people or of decisions."""
    columns = {
        name: values[rows] if isinstance(values, np.ndarray) else [values[row] for row in rows]
        for name, values in vars(table).items()
        if values is not None and not isinstance(values, int)
    }
    return replace(table, **columns)


def as_decisions(recorded: DecisionRows, ids: NDArray[Any], applicants: Any = None) -> Decisions:
    """Return recorded decisions as a policy returns them."""
    return Decisions(
        ids,
        recorded.accepted,
        recorded.exploit,
        recorded.score,
        recorded.propensity,
        recorded.round,
        threshold=recorded.threshold,
        incumbent=recorded.incumbent,
        barred=recorded.barred,
        applicants=applicants,
    )


def first_difference(
    recorded: Decisions,
    decided: Decisions,
    *,
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
    by_column = differences(recorded, decided, rows=rows, drawn=drawn, close=close)
    table = np.stack(list(by_column.values()))
    if not table.any():
        return None
    row = int(np.flatnonzero(table.any(axis=0))[0])
    return row, list(by_column)[int(np.argmax(table[:, row]))]


def differences(
    recorded: Decisions,
    decided: Decisions,
    *,
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
    return by_column


def _differ(a: NDArray[np.floating], b: NDArray[np.floating], close: float) -> NDArray[np.bool_]:
    if np.array_equal(a, b):
        return np.zeros(a.shape, np.bool_)
    return np.asarray(~np.isclose(a, b, close, close, equal_nan=True))
