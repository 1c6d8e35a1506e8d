"""Does a ledger prove itself? The chain is checked, and every decision is made again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from secondlook.errors import InputError, UntrustedError
from secondlook.ledger.base import Entry, Ledger, Reader
from secondlook.ledger.chain import NOTHING, Checkpoint
from secondlook.ledger.kept_outcomes import kept_after
from secondlook.ledger.locating import Locates
from secondlook.ledger.policies import START
from secondlook.ledger.proofs import ByLearning, ByPolicies, DoesNotFitError, Proof, called
from secondlook.ledger.replay import Allowed
from secondlook.ledger.sql import SqlLedger

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
        Decisions that could not be made again in full, since people they rest on were erased.
    n_learned_again
        Decisions that were also made again by policies learned anew; None if that was not asked
        for. None of those between an erasure's people and the next stored state can be.
    not_learned_from
        The first entry, in words, at which learning again had to stop for erased people; None if
        it did not.
    """

    problem: str | None
    head: Checkpoint
    n_entries: int
    n_decisions: int
    n_not_repeated: int
    n_learned_again: int | None = None
    not_learned_from: str | None = None

    @property
    def ok(self) -> bool:
        """Whether everything fits."""
        return self.problem is None


def verify(
    ledger: Ledger | str,
    program: str = "main",
    *,
    checkpoint: Checkpoint | str | None = None,
    types: Iterable[type] = (),
    trusted: Iterable[str] = (),
    relearn: bool = False,
) -> Verification:
    """Recompute a program from its stored facts, and name the first thing that does not fit.

    Every hash is computed again from the rows it covers, so that nothing can have been changed
    since without rewriting the chain from there on; whoever keeps a checkpoint elsewhere finds that
    too. And every batch is decided again from its stored policy, the people as they applied and
    the randomness keyed by seed, round and id: regions, scores, thresholds, draws, probabilities,
    folds and reasons come out as recorded, so that each decision is the one its policy makes. Where
    groups may not decide, each batch is also decided with the groups handed on from person to
    person, and with each group in the place of another: the decisions must stay as they are.

    Where rows were changed, it is said whose, and what had been there, if the hash fits again
    without these changes, which proves them. People have hashes of their own, so that each can be
    judged alone. Outcomes and overrides have one for all of an entry's: there several changes are
    found together, or not at all.

    That a policy is the one which settings, history and outcomes lead to is proved by
    ``relearn``: everything is learned again in its order, and stored policies, certificates and
    states are compared with what comes out.

    Parameters
    ----------
    ledger, program
        What to verify; a ledger, or the URL of one.
    checkpoint
        Where the chain once stood, as kept elsewhere, or its text: whoever rewrote everything
        since cannot have the same hash there.
    types, trusted
        What stored classifiers may be made of, as for ``load``.
    relearn
        Learn every policy again too, which takes as long as the program's life did. Classifiers
        that store no policies are always verified so.

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
    >>> found = verify(url, checkpoint=program.checkpoint())
    >>> found.ok, found.n_entries, found.n_decisions
    (True, 6, 100)
    >>> folder.cleanup()
    """
    if isinstance(ledger, str):
        ledger = SqlLedger(ledger)
    if isinstance(checkpoint, str):
        checkpoint = Checkpoint.read(checkpoint)
    if checkpoint is not None and checkpoint.number < 1:
        raise InputError(
            f"a checkpoint is of an entry, and these are numbered from 1, got {checkpoint.number}; "
            f"pass one as it was exported."
        )
    if checkpoint is not None and checkpoint.program != program:
        raise InputError(
            f"the checkpoint is of the program {checkpoint.program!r}, and {program!r} was to be "
            f"verified; name its own program (--program), or pass a checkpoint of {program!r}."
        )
    with ledger.reading(program) as reader:
        allowed = Allowed(tuple(types), tuple(trusted))
        stored = reader.entry("policy", START) is not None
        proofs: list[Proof] = [ByPolicies(reader, allowed)] if stored else []
        if relearn or not stored:
            proofs.append(ByLearning(reader, allowed))
        walk = _Walk(reader, program, proofs, checkpoint, allowed)
        try:
            for entry in reader.entries():
                walk.step(entry)
            walk.end()
            problem = None
        except DoesNotFitError as found:
            problem = str(found)
    first = proofs[0]
    return Verification(
        problem,
        walk.head,
        walk.head.number,
        first.n_decisions,
        first.n_not_repeated,
        n_learned_again=proofs[-1].n_decisions if relearn or not stored else None,
        not_learned_from=proofs[-1].stopped,
    )


class _Walk:
    """One pass over the entries of a program."""

    def __init__(
        self,
        reader: Reader,
        program: str,
        proofs: list[Proof],
        checkpoint: Checkpoint | None,
        allowed: Allowed,
    ) -> None:
        self._reader, self._program, self._proofs = reader, program, proofs
        self._checkpoint, self._allowed = checkpoint, allowed
        self._rows: Counter[str] = Counter()
        self.head = Checkpoint(program, 0, NOTHING)

    def step(self, entry: Entry) -> None:
        """Check the next entry."""
        number = self.head.number + 1
        if entry.number != number:
            raise DoesNotFitError(f"entry {number} is missing: {entry.number} comes next.")
        wrong = self._reader.check(entry, self.head.hash)
        if wrong is not None:
            raise DoesNotFitError(f"{called(entry)}: {self._where(entry) or wrong}.")
        self._count(entry)
        try:
            for proof in self._proofs:
                proof.step(entry)
        except UntrustedError:
            raise  # nothing is wrong with the ledger
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise DoesNotFitError(f"{called(entry)}: it cannot be repeated, {error}") from error
        self.head = Checkpoint(self._program, entry.number, entry.hash)
        kept = self._checkpoint
        if kept is not None and kept.number == number and kept.hash != entry.hash:
            raise DoesNotFitError(
                f"{called(entry)}: its hash is not that of the checkpoint, so it, or something "
                f"before it, was rewritten."
            )

    def _where(self, entry: Entry) -> str | None:
        """Say more exactly what does not fit, where that is known."""
        if not isinstance(self._reader, Locates):
            return None
        return self._reader.where(
            entry,
            lambda: self._proofs[0].decide_again(entry),
            lambda: kept_after(self._reader, entry, self._allowed),
        )

    def end(self) -> None:
        """Check that nothing is missing at the end, and nothing is there that no entry covers."""
        if self.head.number == 0:
            raise DoesNotFitError("the program has no entries.")
        kept = self._checkpoint
        if kept is not None and kept.number > self.head.number:
            raise DoesNotFitError(
                f"the checkpoint is of entry {kept.number} of {kept.program!r}, and the chain of "
                f"{self._program!r} ends at {self.head.number}."
            )
        for name, n in self._reader.count().items():
            if n != self._rows[name]:
                found = f"there are {n} rows of {name}, and the entries cover {self._rows[name]}"
                if isinstance(self._reader, Locates):
                    first = self._reader.uncovered(name, self._rows["people"])
                    found += "" if first is None else f": {first}"
                raise DoesNotFitError(f"{found}.")
        for proof in self._proofs:
            proof.end()

    def _count(self, entry: Entry) -> None:
        rows = entry.says["rows"]
        if rows["first"] != self._rows["people"]:
            raise DoesNotFitError(
                f"{called(entry)}: its people begin at {rows['first']}, and those before end at "
                f"{self._rows['people']}."
            )
        self._rows["people"] += rows["n"]
        facts = self._reader.facts(entry)
        self._rows["groups"] += rows["n"] if rows["groups"] else 0
        self._rows["entries"] += 1
        self._rows["outcomes"] += 0 if facts.outcomes is None else len(facts.outcomes.states)
        self._rows["overrides"] += 0 if facts.overrides is None else len(facts.overrides.reasons)
        self._rows["erasures"] += 0 if facts.erased is None else facts.erased.size
        self._rows["payloads"] += facts.payload is not None
