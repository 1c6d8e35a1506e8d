"""Does a ledger prove itself? The chain is checked, and every decision is made again."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from secondlook.errors import InputError, LearningWarning
from secondlook.ledger.base import Entry, Facts, Ledger, PeopleRows, Reader
from secondlook.ledger.chain import NOTHING, Checkpoint
from secondlook.ledger.replay import Allowed, State, erased_rows, first_difference

__all__ = ["Verification", "verify"]


@dataclass(frozen=True)
class Verification:
    """What ``verify`` found.

    Attributes
    ----------
    problem
        The first thing that does not fit, in one sentence; None if everything does.
    head
        Where the chain stands, or stood before the problem.
    n_entries, n_decisions
        How many entries were checked, and how many decisions were made again.
    n_not_repeated
        Decisions that could not be made again, since people they rest on were erased.
    """

    problem: str | None
    head: Checkpoint
    n_entries: int
    n_decisions: int
    n_not_repeated: int

    @property
    def ok(self) -> bool:
        """Whether everything fits."""
        return self.problem is None


class _DoesNotFitError(Exception):
    """Ends a verification; its text is the problem."""


def verify(
    ledger: Ledger,
    program: str = "main",
    *,
    checkpoint: Checkpoint | None = None,
    types: Iterable[type] = (),
    trusted: Iterable[str] = (),
) -> Verification:
    """Recompute a program from its stored facts, and name the first thing that does not fit.

    Every hash is computed again from the rows it covers, and every batch is decided again by a
    classifier that is told the stored history, batches and outcomes in their order. Where groups
    may not decide, each batch is also decided with the groups handed on from person to person: the
    decisions must stay as they are.

    Parameters
    ----------
    ledger, program
        What to verify.
    checkpoint
        Where the chain once stood, as kept elsewhere: whoever rewrote everything since cannot have
        the same hash there.
    types, trusted
        What stored classifiers may be made of, as for ``load``.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from secondlook import PartialFeedbackClassifier
    >>> from secondlook.ledger.program import Program
    >>> folder = tempfile.TemporaryDirectory()
    >>> url = f"sqlite:///{folder.name}/lender.db"
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> clf = PartialFeedbackClassifier(random_state=0)
    >>> program = Program.create(url, clf, X[:200], X[:200, 0] > 0)
    >>> batch = program.decide(X[200:])
    >>> found = verify(program.ledger)
    >>> found.ok, found.n_entries, found.n_decisions
    (True, 4, 100)
    >>> folder.cleanup()
    """
    with ledger.reading(program) as reader:
        walk = _Walk(reader, program, Allowed(tuple(types), tuple(trusted)), checkpoint)
        try:
            for entry in reader.entries():
                walk.step(entry)
            walk.end()
            problem = None
        except _DoesNotFitError as found:
            problem = str(found)
    return Verification(problem, walk.head, walk.head.number, walk.n_decisions, walk.n_not_repeated)


class _Walk:
    """One pass over the entries of a program."""

    def __init__(
        self, reader: Reader, program: str, allowed: Allowed, checkpoint: Checkpoint | None
    ) -> None:
        self._reader, self._program, self._allowed = reader, program, allowed
        self._checkpoint = checkpoint
        self._state: State | None = None
        self._first: State | None = None
        self._rows = {"people": 0, "groups": 0}
        self.head = Checkpoint(program, 0, NOTHING)
        self.n_decisions = self.n_not_repeated = 0

    def step(self, entry: Entry) -> None:
        """Check the next entry."""
        number = self.head.number + 1
        if entry.number != number:
            raise _DoesNotFitError(f"entry {number} is missing: {entry.number} comes next.")
        wrong = self._reader.check(entry, self.head.hash)
        if wrong is not None:
            raise _DoesNotFitError(f"entry {number} ({_called(entry)}): {wrong}.")
        self._count(entry)
        try:
            self._repeat(entry)
        except (InputError, ValueError, KeyError) as error:
            raise _DoesNotFitError(
                f"entry {number} ({_called(entry)}): it cannot be repeated, {error}"
            ) from error
        self.head = Checkpoint(self._program, entry.number, entry.hash)
        kept = self._checkpoint
        if kept is not None and kept.number == number and kept.hash != entry.hash:
            raise _DoesNotFitError(
                f"entry {number} ({_called(entry)}): its hash is not that of the checkpoint, so "
                f"it, or something before it, was rewritten."
            )

    def end(self) -> None:
        """Check that nothing is missing at the end, and nothing is there that no entry covers."""
        if self.head.number == 0:
            raise _DoesNotFitError("the program has no entries.")
        kept = self._checkpoint
        if kept is not None and (kept.number > self.head.number or kept.program != self._program):
            raise _DoesNotFitError(
                f"the checkpoint is of entry {kept.number} of {kept.program!r}, and the chain of "
                f"{self._program!r} ends at {self.head.number}."
            )
        for name, n in self._reader.count().items():
            if n != self._rows[name]:
                raise _DoesNotFitError(
                    f"there are {n} rows of {name}, and the entries cover {self._rows[name]}."
                )

    def _count(self, entry: Entry) -> None:
        rows = entry.says["rows"]
        if rows["first"] != self._rows["people"]:
            raise _DoesNotFitError(
                f"entry {entry.number} ({_called(entry)}): its people begin at {rows['first']}, "
                f"and those before end at {self._rows['people']}."
            )
        self._rows["people"] += rows["n"]
        self._rows["groups"] += rows["n"] if rows["groups"] else 0

    def _repeat(self, entry: Entry) -> None:
        facts = self._reader.facts(entry)
        if entry.kind == "program":
            self._state = self._first = State.first(entry, facts, self._allowed)
        elif entry.kind == "snapshot" and self._state is None and self._first is not None:
            if facts.payload is not None:  # people before it were erased; from here on it goes
                shape = self._first.shape
                self._state = State.from_snapshot(entry, facts, shape, self._allowed)
        elif self._state is not None and self._is_whole(facts):
            self._repeat_with(self._state, entry, facts)
        else:
            self._state = None
            if entry.kind == "batch" and facts.people is not None:
                self.n_not_repeated += len(facts.people)

    def _is_whole(self, facts: Facts) -> bool:
        if facts.people is not None and erased_rows(facts.people).any():
            return False
        persons = [one.persons for one in (facts.outcomes, facts.overrides) if one is not None]
        return all(None not in self._reader.names(one) for one in persons)

    def _repeat_with(self, state: State, entry: Entry, facts: Facts) -> None:
        self._check_groups(state, entry, facts)
        decided = state.apply(self._reader, entry)
        if decided is None or facts.decisions is None or facts.people is None:
            return
        other = first_difference(facts.decisions, decided)
        if other is not None:
            row, what = other
            raise _DoesNotFitError(
                f"entry {entry.number} ({_called(entry)}): the {what} of application "
                f"{facts.people.applications[row]!r} comes out otherwise than recorded."
            )
        self.n_decisions += len(decided)

    def _check_groups(self, state: State, entry: Entry, facts: Facts) -> None:
        """Where groups may not decide, give everybody the next one's group and decide again."""
        people = facts.people
        if entry.kind != "batch" or people is None or people.groups is None:
            return
        if facts.decisions is None or entry.says["group_mode"] == "aware":
            return
        handed_on = [*people.groups[1:], people.groups[0]]
        rows = PeopleRows(people.applications, people.numbers, people.texts, handed_on)
        X, groups, ids = state.shape.people(rows)
        twin: Any = copy.deepcopy(state.classifier)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LearningWarning)
            decided = twin.decide(X, sensitive_features=groups, ids=ids)
        other = first_difference(facts.decisions, decided)
        if other is not None:
            raise _DoesNotFitError(
                f"entry {entry.number} ({_called(entry)}): the {other[1]} of application "
                f"{people.applications[other[0]]!r} depends on groups, which may not decide."
            )


def _called(entry: Entry) -> str:
    return f"{entry.kind} {entry.key!r}"
