"""A program's state, rebuilt from its entries.

Classifiers are deterministic: the same settings, history, rounds and outcomes in the same order
give the same state. So an entry is applied by calling the classifier with its content. Only
``verify`` lets it learn: elsewhere a state is stored with what was learned.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.core.decisions import ClosedRound, Decisions
from fairchance.errors import InputError, LearningWarning, LedgerError
from fairchance.ledger.base import DecisionRows, Entry, Facts, Ints, PeopleRows
from fairchance.ledger.encoding import Shape
from fairchance.ledger.sql import LedgerReader
from fairchance.methods.algorithm1.classifier import PartialFeedbackClassifier
from fairchance.methods.certified.classifier import CertifiedClassifier
from fairchance.methods.closing import RoundParts
from fairchance.methods.policy import Policy
from fairchance.methods.storage import loads
from fairchance.people.likelihoods import PolicyFunction

__all__ = ["CLOSE", "Allowed", "Comparison", "State", "as_decisions", "close_recorded"]
__all__ += [
    "check_opens_rounds",
    "erased_rows",
    "first_difference",
    "lender_options",
    "opens_rounds",
    "recorded_parts",
]
__all__ += ["recorded_round", "rows_of"]

Comparison = Callable[[Decisions, Decisions], None]  # of recorded decisions with those made again

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

    def missed(self, reader: LedgerReader) -> list[Entry] | None:
        """Return the entries after the last one applied; None if the ledger lacks that entry.

        It lacks it after the file was replaced, for example by an older copy.
        """
        entries = list(reader.entries(self.applied - 1))
        if [(entry.number, entry.hash) for entry in entries[:1]] != [(self.applied, self._hash)]:
            return None
        return entries[1:]

    def attach(self, reader: LedgerReader) -> None:
        """Let the classifier read features of applicants from the ledger, which states leave out.

        ``reader`` has to be open when the classifier is used.
        """
        if hasattr(self.classifier, "read_features"):
            self.classifier.read_features(partial(_recorded, reader, self.shape))

    def copy(self) -> Any:
        """Return a copy of the classifier that can be used without the ledger."""
        if hasattr(self.classifier, "keep_features"):
            self.classifier.keep_features()
        return deepcopy(self.classifier)

    @staticmethod
    def first(entry: Entry, facts: Facts, allowed: Allowed) -> State:
        """Return the state after a program's first entry: an unfitted classifier."""
        classifier = _loaded(facts.payload, entry, allowed)
        return State(classifier, Shape.read(entry.says), entry, allowed)

    @staticmethod
    def from_snapshot(
        reader: LedgerReader, entry: Entry, facts: Facts, shape: Shape, allowed: Allowed
    ) -> State:
        """Return the state that an entry stores."""
        state = State(_loaded(facts.payload, entry, allowed), shape, entry, allowed)
        state.attach(reader)
        if getattr(state.classifier, "open_policy_", None) is not None:
            rounds = reader.newest_first("round")
            state.opened = next(one for one in rounds if one.number < entry.number)
        return state

    def apply(
        self,
        reader: LedgerReader,
        entry: Entry,
        *,
        again: bool = False,
        compare: Comparison | None = None,
    ) -> None:
        """Apply an entry to the classifier.

        ``compare`` is called with the recorded decisions of a round that ends with the entry, part
        by part, and with those that the classifier makes. With ``again`` these may differ;
        otherwise it raises ``LedgerError`` if the recorded ones do not follow from the policy.
        """
        is_whole = entry.kind == "history" or not opens_rounds(self.classifier)
        facts, numbers = reader.facts(entry, people=is_whole), entry.people_range
        if len(numbers) and reader.erased_between(numbers.start, numbers.stop):
            raise LedgerError(
                f"entry {entry.number} ({entry.kind}) has erased applicants, and no later state is "
                f"stored; verify the ledger."
            )
        n = 0 if facts.outcomes is None else len(facts.outcomes.states)
        with _silent():
            if entry.kind == "history":
                self._fit(facts)
                self.attach(reader)
            elif entry.kind == "round":
                self._open(entry)
            elif entry.kind == "batch":
                n = entry.says["rows"]["n"]
                if is_whole:
                    self._decide_at_once(entry, facts, compare)
                else:
                    self._decide(reader, entry, again, compare)
            elif entry.kind in ("outcomes", "correction", "override"):
                persons, states = _told(reader, entry, facts)
                self._learn(reader, entry.kind, persons, reader.names(persons), states)
            elif entry.kind == "import" and entry.says["void"]:
                self.classifier.void_round(entry.says["round"])
            elif entry.kind == "control" and entry.says["what"] == "handover":
                self.classifier.hand_over()
        self.reach(entry, n)

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
        self, reader: LedgerReader, entry: Entry, again: bool, compare: Comparison | None
    ) -> None:
        """Open the round of a batch unless it is open, and close it."""
        says = entry.says
        if "opened" not in says:
            self.classifier.open_round(
                says["rows"]["n"], incumbent=_has_incumbent(reader, entry), ramp=float(says["ramp"])
            )
        policy: Policy = self.classifier.open_policy_
        recorded = recorded_round(reader, entry, policy, self.shape)

        def parts() -> Iterator[Decisions]:
            for part in recorded.parts:
                made = policy.decide_batch(part.applicants) if again else part
                if compare is not None:
                    compare(part, made)
                yield made

        close_recorded(self.classifier, replace(recorded, parts=parts()))
        self.learn_deferred(reader, entry)

    def _decide_at_once(self, entry: Entry, facts: Facts, compare: Comparison | None) -> None:
        """Let a classifier decide that opens no rounds."""
        people, recorded = facts.people, facts.decisions
        assert people is not None
        assert recorded is not None
        X, groups, ids = self.shape.people(people)
        options = lender_options(recorded, float(entry.says["ramp"]), people)
        decided = self.classifier.decide(
            X, sensitive_features=groups, ids=ids, unlike_history=True, **options
        )
        if compare is not None:
            compare(as_decisions(recorded, ids), decided)

    # Outcomes

    def learn(
        self, reader: LedgerReader, entry: Entry, persons: Ints, names: Sequence[str], states: Any
    ) -> None:
        """Apply outcomes, a correction or an override whose content the caller has at hand.

        Applicants are without those overridden before, and ``"withdrawn"`` if an override rejects
        them.
        """
        with _silent():
            self._learn(reader, entry.kind, persons, names, np.array(states, np.str_))
        self.reach(entry, len(states))

    def learn_deferred(self, reader: LedgerReader, closed: Entry) -> None:
        """Apply what was recorded about applicants of a round while it was open.

        Only the newest state of each counts: a correction before the tests costs nothing.
        """
        opened, self.opened = self.opened, None
        if opened is None:
            return
        newest: dict[int, str] = {}
        for entry in reader.entries(opened.number):
            if entry.number > closed.number:
                break
            if entry.kind in ("outcomes", "correction", "override"):
                told = _told(reader, entry, reader.facts(entry, people=False))
                newest.update(zip(*(column.tolist() for column in told), strict=True))
        listed = sorted(person for person in newest if person >= opened.people_range.start)
        persons = np.array(listed, np.int64)
        states = np.array([newest[person] for person in listed], np.str_)
        self._learn(reader, "outcomes", persons, reader.names(persons), states)

    def _learn(
        self,
        reader: LedgerReader,
        kind: str,
        persons: Ints,
        names: Sequence[str | None],
        states: NDArray[np.str_],
    ) -> None:
        order = np.argsort(persons, kind="stable")
        order = order[self.knows(reader, persons[order])]
        ids, states = self.shape.ids([names[row] for row in order.tolist()]), states[order]
        self._withdraw(ids[states == "withdrawn"])
        if (states == "not_taken").any():
            self.classifier.not_taken(ids[states == "not_taken"])
        labelled = np.isin(states, ("good", "bad"))
        if labelled.any():
            learn = self.classifier.correct if kind == "correction" else self.classifier.observe
            learn(ids[labelled], self.shape.labels(states[labelled].tolist()))

    def knows(self, reader: LedgerReader, persons: Ints) -> NDArray[np.bool_]:
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


def _recorded(
    reader: LedgerReader, shape: Shape, rounds: NDArray[np.int32]
) -> Iterator[tuple[Any, Any, NDArray[Any]]]:
    """Yield features, groups and ids of the accepted applicants of some rounds, erased ones not."""
    for kind in ("batch", "history"):
        for entry in reader.newest_first(kind):
            round = entry.says.get("round", 0)
            if round in rounds:
                yield from map(shape.people, reader.accepted(entry))
            elif round < rounds.min():
                break


def _told(reader: LedgerReader, entry: Entry, facts: Facts) -> tuple[Ints, NDArray[np.str_]]:
    """Return the applicants of whom a classifier learns something by an entry, and their states."""
    if facts.outcomes is not None:
        persons, states = facts.outcomes.persons, np.array(facts.outcomes.states, np.str_)
        kept = reader.overridden_by(persons) < 0
    elif facts.overrides is not None:
        # Applicants whom an undo rejects again were never accepted by the classifier.
        persons = facts.overrides.persons
        states = np.full(persons.size, "withdrawn")
        kept = ~facts.overrides.accepted & (not entry.says.get("undo", False))
    else:
        return np.empty(0, np.int64), np.empty(0, np.str_)
    return persons[kept], states[kept]


def opens_rounds(classifier: Any) -> bool:
    """Return whether a classifier opens and closes rounds by policies.

    A subclass may decide in another way than its policy does.
    """
    if type(classifier) is PartialFeedbackClassifier:
        return bool(classifier.exploration == "coins")
    return type(classifier) is CertifiedClassifier


def check_opens_rounds(classifier: Any) -> None:
    """Raise if a classifier decides on whole batches only."""
    if not opens_rounds(classifier):
        raise InputError(
            f"a {type(classifier).__name__} draws from whole batches; send these to decide, or "
            f"make a program with exploration = 'coins' or kind = 'certified'."
        )


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


def recorded_round(
    reader: LedgerReader,
    entry: Entry,
    policy: Policy,
    shape: Shape,
    look: Callable[[PeopleRows], None] | None = None,
) -> RoundParts:
    """Return the recorded decisions of a round, read part by part, as ``close_round`` takes them.

    ``entry`` is its batch, or the entry that opened it while it is open. ``look`` is called with
    each part of its applicants.
    """

    def parts() -> Iterator[Decisions]:
        for people, decisions in reader.parts(entry):
            if look is not None:
                look(people)
            yield from recorded_parts(policy, shape, people, decisions)

    return RoundParts(parts(), *reader.several(entry))


def close_recorded(classifier: Any, parts: RoundParts) -> ClosedRound:
    """Close a round with recorded decisions, which must follow from its policy."""
    round = classifier.open_policy_.round
    try:
        closed: ClosedRound = classifier.close_round(parts)
    except LedgerError:
        raise
    except ValueError as error:
        raise LedgerError(
            f"round {round} does not follow from its policy ({error}); verify the ledger."
        ) from error
    return closed


def _has_incumbent(reader: LedgerReader, entry: Entry) -> bool:
    """Return whether the lender's own decisions were given with a batch."""
    _, decisions = next(reader.parts(entry, 1))
    return decisions.incumbent is not None


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
