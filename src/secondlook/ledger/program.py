"""A program: a classifier whose every decision and outcome is in a ledger before it counts."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import asdict, replace
from importlib.metadata import version
from typing import Any

import numpy as np

from secondlook.core.decisions import Decisions
from secondlook.errors import InputError, LedgerError
from secondlook.ledger.asking import Asking
from secondlook.ledger.base import (
    DecisionRows,
    Entry,
    Facts,
    Ledger,
    PeopleRows,
    Reader,
    Writer,
)
from secondlook.ledger.certificates import record_certificates
from secondlook.ledger.columns import Kept
from secondlook.ledger.keeping import Keeping, store_state
from secondlook.ledger.observing import Observing
from secondlook.ledger.overriding import Overriding
from secondlook.ledger.policies import record_policy, record_start
from secondlook.ledger.replay import Allowed, Shape, State, first_difference
from secondlook.ledger.retention import check_months
from secondlook.ledger.sql import SqlLedger
from secondlook.ledger.starting import first_facts, who_writes
from secondlook.ledger.telling import (
    as_names,
    check_batch,
    check_new_name,
    fold_of,
    fresh_copy,
    groups_of,
    new_ids,
    recorded_decisions,
)
from secondlook.ledger.texts import check_about, check_program_name
from secondlook.people.reasons import reasons_for

__all__ = ["Program"]

_NAME = "main"


class Program(Asking, Observing, Overriding, Keeping):
    """Decide batches and take in outcomes on the record.

    ``Program.create`` starts one from a classifier and a history, ``Program.open`` goes on with it,
    in this process or another. Every call writes first and answers then; a call that raises has
    recorded nothing, unless ``erase`` raises a ``LedgerWarning`` where warnings are errors. Several
    processes may have the same program open: they take turns, and each catches up with what the
    others have written. On SQLite, programs of one file take turns too.

    Examples
    --------
    >>> import tempfile
    >>> from secondlook import PartialFeedbackClassifier
    >>> rng = np.random.default_rng(0)
    >>> def people(n):
    ...     X = rng.normal(size=(n, 2))
    ...     return X, (rng.random(n) < 1 / (1 + np.exp(-2 - 3 * X[:, 0]))).astype(int)
    >>> folder = tempfile.TemporaryDirectory()
    >>> url = f"sqlite:///{folder.name}/lender.db"
    >>> X, good = people(1000)
    >>> clf = PartialFeedbackClassifier(random_state=0)
    >>> program = Program.create(url, clf, X, good, accepted=X[:, 0] > 0)
    >>> X, good = people(500)
    >>> batch = program.decide(X, batch="2031-01")
    >>> program.observe(batch.ids[batch.accepted], good[batch.accepted])
    >>> again = Program.open(url).decide(X, batch="2031-01")
    >>> bool((again.accepted == batch.accepted).all()), again.round
    (True, 1)
    >>> folder.cleanup()
    """

    _state: State | None = None

    def __init__(
        self, ledger: Ledger, name: str, *, by: str, allowed: Allowed, snapshot_every: int
    ) -> None:
        if snapshot_every < 1:
            raise InputError(f"snapshot_every counts rounds, 1 or more, got {snapshot_every}.")
        self.ledger, self.name, self.by = ledger, name, by
        self._allowed, self._every = allowed, snapshot_every

    @classmethod
    def create(
        cls,
        url: str,
        classifier: Any,
        X: Any,
        y: Any,
        *,
        accepted: Any = None,
        sensitive_features: Any = None,
        ids: Any = None,
        name: str = _NAME,
        by: str | None = None,
        types: Iterable[type] = (),
        trusted: Iterable[str] = (),
        snapshot_every: int = 20,
        about: dict[str, Any] | None = None,
        past_policy: Any = None,
    ) -> Program:
        """Start a program; the ledger is made if it is not there.

        Parameters
        ----------
        url
            ``sqlite:///lender.db`` or ``postgresql://host/database``.
        classifier
            With its settings; ``random_state`` must be a whole number, so that decisions can be
            recomputed. It is copied, and not changed.
        X, y, accepted, sensitive_features, ids
            The history, as for ``fit``.
        name
            The program's, one of several that a ledger may hold.
        by
            Who writes; None means the user's login name.
        types, trusted
            What the stored classifier may be made of, as for ``load``; it holds for all that this
            object does, ``summary`` and ``verify`` too.
        snapshot_every
            Rounds after which the state is stored, so that opening need not replay more.
        about
            Whatever else is to be kept with the program's settings, as JSON.
        past_policy
            f_0 if it is known, as for ``fit``: a fitted classifier, which is kept as data.
        """
        check_program_name(name)
        check_about(about)
        check_months(about)
        fresh, allowed = fresh_copy(classifier), Allowed(tuple(types), tuple(trusted))
        program = cls(
            SqlLedger(url, make=True),
            name,
            by=who_writes(by),
            allowed=allowed,
            snapshot_every=snapshot_every,
        )
        history = {"accepted": accepted, "sensitive_features": sensitive_features, "ids": ids}
        start = first_facts(classifier, fresh, X, y, history, past_policy)
        with program.ledger.creating(name) as writer:
            header = start.header | {"about": about or {}}
            first = writer.append("program", header, start.settings, by=program.by)
            second = writer.append("history", {}, start.history, by=program.by)
            state = State.first(first, writer.facts(first), allowed)
            state.apply(writer, second)
            store_state(writer, state, program.by)
            record_start(writer, state.classifier, program.by)
        program._state = state
        return program

    @classmethod
    def open(
        cls,
        url: str,
        name: str = _NAME,
        *,
        by: str | None = None,
        types: Iterable[type] = (),
        trusted: Iterable[str] = (),
        snapshot_every: int = 20,
    ) -> Program:
        """Go on with a program; what the parameters mean is said at ``create``."""
        allowed = Allowed(tuple(types), tuple(trusted))
        who = who_writes(by)
        program = cls(SqlLedger(url), name, by=who, allowed=allowed, snapshot_every=snapshot_every)
        with program.ledger.reading(name) as reader:
            program._state = program._current(reader)
        return program

    @property
    def classifier(self) -> Any:
        """A copy of the classifier as the ledger has it now; what is done to it is not recorded.

        Each look makes another, which for a million people takes some tenths of a second.
        """
        with self.ledger.reading(self.name) as reader:
            state = self._current(reader)
        found = deepcopy(state.classifier)  # before another thread may go on with it
        self._state = state
        return found

    def decide(
        self,
        X: Any,
        *,
        sensitive_features: Any = None,
        ids: Any = None,
        batch: str | None = None,
        about: dict[str, Any] | None = None,
    ) -> Decisions:
        """Decide a batch, record the decisions, and return them once they are durable.

        Parameters
        ----------
        X, sensitive_features, ids
            The people, as for the classifier's ``decide``.
        batch
            A name for the batch. Whoever is not sure that a call got through sends it again under
            the same name: a batch that was recorded is answered from the record.
        about
            Whatever else is to be kept with the batch, as JSON, for good: name nobody. Of a batch
            that was recorded before it changes nothing.

        Raises
        ------
        InputError
            If there is something wrong with the batch or its name, or another one was recorded
            under it.
        LedgerError
            If the ledger failed. The batch may be sent again.
        """
        check_batch(X, batch)
        check_about(about)
        with self.ledger.writing(self.name) as writer:
            state = self._current(writer)  # and none in memory until all is durable
            kept = state.shape.columns.encode(X)
            groups = groups_of(state.classifier, sensitive_features, len(kept))
            known = None if batch is None else writer.entry("batch", batch)
            if known is not None:
                decided = recorded_decisions(writer, state.shape, known, kept, groups, ids)
            else:
                check_new_name(batch)
                named = new_ids(ids, len(kept))
                decided = self._decide(writer, state, kept, groups, named, batch, about)
        self._state = state
        return replace(decided, backend=kept.backend)

    def _decide(
        self,
        writer: Writer,
        state: State,
        kept: Kept,
        groups: list[str] | None,
        ids: Any,
        batch: str | None,
        about: dict[str, Any] | None,
    ) -> Decisions:
        rows = PeopleRows([""] * len(kept), kept.numbers, kept.texts, groups)
        shown = state.shape.groups(rows)
        decided: Decisions = state.classifier.decide(kept.X, sensitive_features=shown, ids=ids)
        reasons = reasons_for(
            state.classifier,
            kept.X,
            decided.accepted,
            state.shape.reference,
            sensitive_features=shown,
        )
        t = decided.round
        rounds = [asdict(one) for one in state.classifier.rounds_ if one.round == t]
        header = {
            "round": t,
            "certified": decided.certified,
            "group_mode": decided.group_mode,
            "rounds": rounds,
            "secondlook": version("secondlook"),
            **record_policy(writer, state.classifier, self.by),
            **({"about": about} if about else {}),
        }
        facts = Facts(
            replace(rows, applications=as_names(decided.ids), reasons=reasons),
            DecisionRows(
                t,
                decided.accepted,
                decided.exploit,
                decided.score.astype(np.float64),
                decided.propensity,
                None if decided.threshold is None else decided.threshold.astype(np.float64),
                fold_of(state.classifier, decided.ids),
            ),
        )
        entry = writer.append("batch", header, facts, by=self.by, key=batch)
        state.reach(entry)
        record_certificates(writer, state.classifier, self.by, why="outcomes")
        if t % self._every == 0:
            store_state(writer, state, self.by)
        return decided

    def snapshot(self) -> None:
        """Store the state, so that opening the program need not replay what came before."""
        with self.ledger.writing(self.name) as writer:
            state = self._current(writer)
            store_state(writer, state, self.by)
        self._state = state

    def _current(self, reader: Reader) -> State:
        """Return the state after the last entry, and keep none: what follows may fail."""
        state: State | None = vars(self).pop("_state", None)  # in one step: no two threads get it
        later = None if state is None else state.missed(reader)
        if state is None or later is None or any(one.kind == "erasure" for one in later):
            state = self._stored(reader)  # nobody who was erased stays in memory
            later = list(reader.entries(state.applied))
        for entry in later:
            decided = state.apply(reader, entry)
            if decided is not None:
                recorded = reader.facts(entry).decisions
                fold = fold_of(state.classifier, decided.ids)
                if recorded is None or first_difference(recorded, decided, fold=fold) is not None:
                    raise LedgerError(
                        f"round {decided.round} of program {self.name!r} comes out otherwise than "
                        f"recorded, so the state cannot be rebuilt; verify the ledger, and check "
                        f"that the learner has a fixed random_state."
                    )
        return state

    def _stored(self, reader: Reader) -> State:
        settings = self._settings(reader)
        for entry in reader.newest_first("snapshot"):
            facts = reader.facts(entry)
            if facts.payload is not None:
                shape = Shape.read(settings.says)
                return State.from_snapshot(entry, facts, shape, self._allowed)
        return State.first(settings, reader.facts(settings), self._allowed)

    def _settings(self, reader: Reader) -> Entry:
        settings = reader.entry("program", "#1")
        if settings is None:
            raise LedgerError(f"the program {self.name!r} has no entries; verify the ledger.")
        return settings
