"""Verify a program: check its chain, and make every decision again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from fairchance.errors import InputError, LedgerError, UntrustedError, VersionsError
from fairchance.ledger.base import Entry
from fairchance.ledger.chain import NOTHING, Checkpoint
from fairchance.ledger.control import Control
from fairchance.ledger.outcomes import TakeUpWindow
from fairchance.ledger.replay import Allowed
from fairchance.ledger.sql import LedgerReader, SqlLedger
from fairchance.ledger.verification.hashes import entry_problem, round_problem
from fairchance.ledger.verification.proofs import (
    ByLearning,
    ByPolicies,
    GroupTrial,
    MismatchError,
    OpenRoundTrial,
    OtherVersions,
    Proof,
    describe,
)

__all__ = ["Verification", "verify"]


@dataclass(frozen=True)
class Verification:
    """The result of ``verify``.

    Attributes
    ----------
    problem
        The first mismatch, in one sentence; None if there is none.
    head
        The end of the chain, or the last entry before the problem.
    n_entries, n_decisions
        The number of entries that were checked, and of decisions that were made again.
    n_not_repeated
        The number of decisions that could not be made again in full, since applicants of their
        batch were erased.
    n_learned_again
        The number of decisions that were also made again by policies learned anew; None if that was
        not asked for. Decisions between an erased applicant and the next stored state are excluded.
    not_learned_from
        The first entry, in words, at which learning again had to stop because of erased applicants;
        None if it did not.
    skipped
        The decisions that were not learned again, because other versions of packages had learned
        them.
    groups
        Whether groups may decide, and how it was tried that they did not.
    open_round
        The round that is open, whose decisions were made again too; None if none is. That nobody is
        missing in it can be proved once it is closed.
    moved
        The last entry, if the program was moved to another ledger with it; None if it lives here.
    not_checked
        What the database could not check of itself, in words; None if it checked everything.
    """

    problem: str | None
    head: Checkpoint
    n_entries: int
    n_decisions: int
    n_not_repeated: int
    n_learned_again: int | None = None
    not_learned_from: str | None = None
    skipped: tuple[OtherVersions, ...] = ()
    groups: GroupTrial = field(default_factory=GroupTrial)
    open_round: OpenRoundTrial | None = None
    not_checked: str | None = None
    moved: Entry | None = None

    @property
    def ok(self) -> bool:
        """Whether everything fits."""
        return self.problem is None


def verify(
    ledger: SqlLedger | str,
    program: str | None = None,
    *,
    checkpoint: Checkpoint | str | None = None,
    types: Iterable[type] = (),
    trusted: Iterable[str] = (),
    relearn: bool = False,
) -> Verification:
    """Recompute a program from its stored facts, and return the first mismatch.

    Every digest and hash is computed again from the stored rows, so a row that was changed, added
    or removed is found and named. A forger could only rewrite the whole chain from some entry on; a
    checkpoint that is kept elsewhere reveals that too.

    Every batch is decided again from its stored policy, the applicants and the randomness keyed by
    seed, round and id: regions, scores, thresholds, draws, probabilities, folds and reasons must be
    as recorded. If groups may not decide, each batch is also decided with the groups handed on from
    applicant to applicant, and with each group replaced by another: the decisions must not change.

    The tables must be those that this version makes, and the database's own checks of its pages and
    indexes must pass. Nothing is written.

    ``relearn`` proves that the policies follow from settings, history and outcomes: everything is
    learned again in its order, and stored policies, certificates and states are compared with it.
    What other versions of packages learned is skipped, since these may learn something else.
    Of the states only the last two are kept, and the first after the last erasure; a false one
    that was dropped since is noticed only by what was decided from it.

    Parameters
    ----------
    ledger, program
        The ledger or its URL, and the program to verify; None means the checkpoint's, or the only
        one.
    checkpoint
        An earlier end of the chain, as kept elsewhere, or its text: a chain that was rewritten
        cannot have the same hash there.
    types, trusted
        The types that stored classifiers may contain, as for ``load``.
    relearn
        Learn every policy again too, which takes as long as the program's life did. Classifiers
        that store no policies are always verified so.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from fairchance import PartialFeedbackClassifier
    >>> from fairchance.ledger.program import Program
    >>> folder = tempfile.TemporaryDirectory()
    >>> url = f"sqlite:///{folder.name}/lender.db"
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> clf = PartialFeedbackClassifier(random_state=0)
    >>> program = Program.create(url, clf, X[:200], X[:200, 0] > 0)
    >>> batch = program.decide(X[200:])
    >>> result = verify(url, checkpoint=program.checkpoint())
    >>> result.ok, result.n_entries, result.n_decisions
    (True, 4, 100)
    >>> folder.cleanup()
    """
    if isinstance(ledger, str):
        ledger = SqlLedger(ledger, check=False)
    if isinstance(checkpoint, str):
        checkpoint = Checkpoint.read(checkpoint)
    proofs: list[Proof] = []
    walk, problem, not_checked = None, None, None
    try:
        if checkpoint is not None:
            program = checkpoint.program if program is None else program
            _check_checkpoint(checkpoint, program)
        program = ledger.named(program)
        with ledger.reading(program) as reader:
            allowed = Allowed(tuple(types), tuple(trusted))
            if _has_policies(reader):
                proofs.append(ByPolicies(reader, allowed))
            else:
                relearn = True
            if relearn:
                proofs.append(ByLearning(reader, allowed))
            walk = _Walk(reader, program, proofs, checkpoint)
            problem = walk.problem()
        if problem is None:
            problem, not_checked = ledger.own_check()
    except LedgerError:  # the database may be damaged
        problem, not_checked = ledger.own_check()
        if problem is None:
            raise
    if walk is None:
        return Verification(problem, Checkpoint(program or "", 0, NOTHING), 0, 0, 0)
    first = proofs[0]
    return Verification(
        problem,
        walk.head,
        walk.head.number,
        first.n_decisions,
        first.n_not_repeated,
        n_learned_again=proofs[-1].n_decisions if relearn else None,
        not_learned_from=proofs[-1].stopped,
        skipped=proofs[-1].skipped,
        groups=first.groups,
        open_round=first.open_round,
        not_checked=not_checked,
        moved=walk.moved,
    )


def _has_policies(reader: LedgerReader) -> bool:
    """Return whether rounds store their policies; a classifier that opens none is replayed."""
    first = next(chain(reader.entries(kind="round"), reader.entries(kind="batch")), None)
    # Not from its header, which may be damaged.
    return first is None or reader.payload(first.number) is not None


def _check_checkpoint(checkpoint: Checkpoint, program: str) -> None:
    """Raise if a checkpoint cannot be one of the program."""
    if checkpoint.number < 1:
        raise InputError(
            f"a checkpoint's entry is numbered from 1, got {checkpoint.number}; pass one as it "
            f"was exported."
        )
    if checkpoint.program != program:
        raise InputError(
            f"the checkpoint is of program {checkpoint.program!r}, got {program!r} to verify; "
            f"change {{option}}.",
            option="program",
        )


class _Walk:
    """One pass over the entries of a program."""

    def __init__(
        self, reader: LedgerReader, program: str, proofs: list[Proof], checkpoint: Checkpoint | None
    ) -> None:
        self._reader, self._program, self._proofs = reader, program, proofs
        self._checkpoint = checkpoint
        self._n_people = 0
        self._about: dict[str, Any] = {}
        self._control, self._batches = Control(), list[Entry]()
        self._opened: Entry | None = None
        self.head = Checkpoint(program, 0, NOTHING)
        self.moved: Entry | None = None

    def problem(self) -> str | None:
        """Check all entries; return the first mismatch, if there is one."""
        try:
            for entry in self._reader.entries():
                self.step(entry)
            self.end()
        except MismatchError as error:
            return str(error)
        return None

    def step(self, entry: Entry) -> None:
        """Check the next entry."""
        number = self.head.number + 1
        if entry.number != number:
            raise MismatchError(f"entry {number} is missing: {entry.number} comes next.")
        problem = entry_problem(self._reader, entry, self.head.hash)
        if problem is not None:
            raise MismatchError(f"{describe(entry)}: {problem}.")
        people = entry.people_range
        if people.start != self._n_people:
            raise MismatchError(
                f"{describe(entry)}: its applicants begin at {people.start}, not {self._n_people}."
            )
        self._n_people = people.stop
        self._check_control(entry)
        self._check_take_up(entry)
        try:
            for proof in self._proofs:
                proof.step(entry)
        except (UntrustedError, VersionsError):
            raise  # the ledger is not at fault
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise MismatchError(f"{describe(entry)}: it cannot be repeated, {error}") from error
        self.head = Checkpoint(self._program, entry.number, entry.hash)
        self.moved = None if entry.moved_to is None else entry
        kept = self._checkpoint
        if kept is not None and kept.number == number and kept.hash != entry.hash:
            raise MismatchError(
                f"{describe(entry)}: it or an entry before differs from the checkpoint."
            )

    def _check_control(self, entry: Entry) -> None:
        """Check that a batch was decided with the ramp that was in force."""
        if entry.kind == "program":
            self._about = entry.says["about"]
            self._control = Control.of(self._about, ())
        self._control = self._control.after(entry)
        if entry.kind == "batch":
            self._batches.append(entry)
        if entry.kind in ("round", "batch"):
            self._opened = entry if entry.kind == "round" else None
            if entry.says["ramp"] != self._control.in_force:
                raise MismatchError(f"{describe(entry)}: the ramp in force was another.")

    def _check_take_up(self, entry: Entry) -> None:
        """Check that loans were recorded as not taken within the program's window."""
        outcomes = None
        if entry.kind == "outcomes":
            outcomes = self._reader.facts(entry, people=False).outcomes
        if outcomes is None or "not_taken" not in outcomes.states:
            return
        persons = outcomes.persons[np.array(outcomes.states) == "not_taken"]
        late = TakeUpWindow.of(self._about).over(self._batches, self._opened, persons, entry.when)
        if late.any():
            name = self._reader.names(persons[late][:1])[0]
            raise MismatchError(
                f"{describe(entry)}: application {name!r} was recorded as not taken too late."
            )

    def end(self) -> None:
        """Check that no entry is missing at the end, and that every row belongs to an entry."""
        if self.head.number == 0:
            raise MismatchError("the program has no entries.")
        kept = self._checkpoint
        if kept is not None and kept.number > self.head.number:
            raise MismatchError(
                f"the checkpoint is of entry {kept.number}, and the chain ends at "
                f"{self.head.number}."
            )
        stray = self._reader.uncovered() or round_problem(self._reader)
        if stray is not None:
            raise MismatchError(f"{stray}.")
        for proof in self._proofs:
            proof.end()
