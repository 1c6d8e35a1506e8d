"""A program: a classifier that records every decision and outcome in a ledger before it counts."""

from __future__ import annotations

import getpass
import inspect
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import datetime
from itertools import chain
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.audit.log import DecisionLog
from fairchance.core.decisions import Chances, ClosedRound, Decisions
from fairchance.core.versions import versions
from fairchance.errors import (
    InputError,
    LearningWarning,
    LedgerError,
    LedgerWarning,
    NoRoundError,
    PausedError,
    RoundClosedError,
    UnknownIdError,
)
from fairchance.frames import as_array
from fairchance.learners.watch import watching_fits
from fairchance.ledger.answers import Lookalikes, Sent, facts_of, new_ids, recorded_batch
from fairchance.ledger.base import (
    Entry,
    Facts,
    OutcomeRows,
    OverrideRows,
    Standing,
    check_about,
    check_program_name,
    check_text,
)
from fairchance.ledger.chain import Checkpoint
from fairchance.ledger.config import input_table
from fairchance.ledger.control import Control, read_ramp
from fairchance.ledger.creation import first_facts, unfitted_copy
from fairchance.ledger.database import shown_url
from fairchance.ledger.encoding import Shape, encode_batch_groups
from fairchance.ledger.objections import (
    Request,
    check_objections,
    to_erasure,
    to_hold,
    to_not_taken,
    to_outcome,
    to_override,
    to_release,
    to_undo,
)
from fairchance.ledger.outcomes import (
    TakeUpWindow,
    UnlikeExpected,
    check_states,
    compare_outcomes,
    new_outcomes,
    outcomes_are_final,
    read_outcomes,
    unique_outcomes,
)
from fairchance.ledger.policies import pack_policy, record_certificates, stores_policies
from fairchance.ledger.replay import (
    Allowed,
    State,
    check_opens_rounds,
    close_recorded,
    first_difference,
    lender_options,
    recorded_round,
)
from fairchance.ledger.retention import (
    Deadlines,
    check_reason,
    expired,
    in_utc,
    retention_months,
)
from fairchance.ledger.rounds import Desk, RoundRules, made_after_close, made_at
from fairchance.ledger.sql import LedgerReader, SqlLedger, Writer
from fairchance.ledger.summary import Summary
from fairchance.ledger.verification.walk import Verification, verify
from fairchance.ledger.view import ProgramView
from fairchance.methods.certified.classifier import (
    CertifiedClassifier,
    DeployedRung,
    RestartedTests,
    restarts_since,
)
from fairchance.methods.policy import Policy
from fairchance.methods.storage import dumps
from fairchance.people.features import EncodedFeatures
from fairchance.people.ids import id_bits, keyed_bits
from fairchance.people.intake import read_persons
from fairchance.people.likeness import Checks
from fairchance.people.reasons import reasons_for
from fairchance.words.batches import unlike_expected_words
from fairchance.words.rounds import restart_cost

__all__ = ["Program", "ProgramView", "login_name"]

_TRIES = 10  # times that a decision may find its round closed


class Program:
    """Decide batches and record outcomes in a ledger.

    ``Program.create`` starts a program from a classifier and a history; ``Program.open`` continues
    it, in this process or another. Every call writes first and answers then: a call that raises
    has recorded nothing, unless ``erase`` raises a ``LedgerWarning`` because warnings are errors.
    Several processes may have the same program open: they take turns to write, and each catches up
    with the entries of the others. On SQLite, all programs of a file take turns.

    Every call that writes takes a name: ``batch`` in ``decide``, ``request`` in the others. If it
    is uncertain whether a call succeeded, repeat it under the same name. A call that is recorded
    changes nothing then, and raises ``InputError`` if its content differs. The name is never
    erased, so it must not name applicants. Outcomes, overrides, holds, erasures and changes of the
    ramp have names of their own.

    Examples
    --------
    >>> import tempfile
    >>> from fairchance import PartialFeedbackClassifier
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
    _desk: Desk | None = None  # what decides in the open round
    _rules: RoundRules | None = None
    _is_at_once: bool = False  # a view has just seen that each batch is a round

    def __init__(self, ledger: SqlLedger, name: str, *, by: str, allowed: Allowed) -> None:
        if not isinstance(by, str):
            raise InputError(f"by must be text, got {by!r}; name the person who writes.")
        self.ledger, self.name, self.by, self._allowed = ledger, name, by, allowed
        self._turn = RLock()  # threads take turns to write: they share the state

    @classmethod
    def create(
        cls,
        url: str,
        classifier: Any,
        X: Any,
        y: Any,
        *,
        accepted: Any = None,
        not_taken: Any = None,
        sensitive_features: Any = None,
        ids: Any = None,
        persons: Any = None,
        name: str = "main",
        by: str | None = None,
        types: Iterable[type] = (),
        trusted: Iterable[str] = (),
        about: dict[str, Any] | None = None,
        past_policy: Any = None,
        clock: Callable[[], datetime] | None = None,
    ) -> Program:
        """Start a program, and create the ledger if it does not exist.

        Parameters
        ----------
        url
            ``sqlite:///lender.db`` or ``postgresql://host/database``.
        classifier
            A classifier with its settings; it is copied, not changed. Its ``random_state`` is
            stored, so that decisions can be recomputed; None means 128 random bits, which nobody
            can guess.
        X, y, accepted, not_taken, sensitive_features, ids, persons
            The history, as for ``fit``. Names of persons are not stored, only which applications
            are of the same person.
        name
            Name of the program; a ledger may hold several.
        by
            Who writes; None means the user's login name.
        types, trusted
            What the stored classifier may be made of, as for ``load``; this applies to everything
            that this object does, ``summary`` and ``verify`` included.
        about
            Further data to store with the program's settings, as JSON. ``retention_months``, the
            first ``ramp`` and ``not_taken_within`` ("2 rounds" or "30 days", after which nobody can
            be recorded as not having taken the loan) are settings.
        past_policy
            f_0 if it is known, as for ``fit``: a fitted classifier, which is stored as data.
        clock
            Returns the time (in UTC) at which this object writes entries, in a simulation; None
            means the time.
        """
        check_program_name(name)
        check_about(about)
        retention_months(about or {})  # raises if it is unusable
        RoundRules.of(about or {})
        Control.of(about or {}, ())
        if "not_taken_within" in (about or {}):
            TakeUpWindow.of(about or {})
        fresh = unfitted_copy(classifier)
        allowed = Allowed(tuple(types), tuple(trusted))
        program = cls(
            SqlLedger(url, make=True),
            name,
            by=login_name() if by is None else by,
            allowed=allowed,
        )
        program.ledger.clock = clock or program.ledger.clock
        given = {"accepted": accepted, "sensitive_features": sensitive_features, "ids": ids}
        given |= {} if not_taken is None else {"not_taken": not_taken}
        given |= {} if persons is None else {"persons": persons}
        header, settings, history = first_facts(fresh, X, y, given, past_policy)
        header["about"] = about or {}
        with program.ledger.creating(name) as writer:
            first = writer.append("program", header, settings, by=program.by)
            header = {"versions": versions()}
            second = writer.append("history", header, history, by=program.by)
            state = State.first(first, writer.facts(first), allowed)
            state.apply(writer, second)
            program._store_state(writer, state)
        program._state = state
        return program

    @classmethod
    def open(
        cls,
        url: str,
        name: str | None = None,
        *,
        by: str | None = None,
        types: Iterable[type] = (),
        trusted: Iterable[str] = (),
        load: bool = True,
    ) -> Program:
        """Open a program that exists.

        Parameters
        ----------
        url, by, types, trusted
            As for ``create``.
        name
            Name of the program; None means the only one of the ledger.
        load
            Rebuild the state now. False leaves that to the first call that needs it, which then
            also raises if the program does not exist; a command that reads once needs no more.
        """
        allowed = Allowed(tuple(types), tuple(trusted))
        who = login_name() if by is None else by
        ledger = SqlLedger(url, check=load)
        name = ledger.named(name)
        program = cls(ledger, name, by=who, allowed=allowed)
        if load:
            with program.ledger.reading(name) as reader:
                program._state = program._current(reader)
        return program

    def __repr__(self) -> str:
        """Return name, ledger and user; a password in the URL is not shown."""
        engine = getattr(self.ledger, "engine", None)
        place = repr(self.ledger) if engine is None else repr(shown_url(engine.url))
        return f"{type(self).__name__}(name={self.name!r}, ledger={place}, by={self.by!r})"

    def _repr_html_(self) -> str | None:
        return self.summary()._repr_html_()

    @contextmanager
    def acting_as(self, by: str) -> Iterator[None]:
        """Record the calls in the ``with`` block under another author; other threads wait.

        Parameters
        ----------
        by
            Who writes.
        """
        with self._turn:
            own, self.by = self.by, by
            try:
                yield
            finally:
                self.by = own

    # Reading

    @contextmanager
    def reading(self) -> Iterator[ProgramView]:
        """Read the program as it is at one moment, in one transaction.

        Yields
        ------
        ProgramView
            Shape, classifier, applicants, entries and summary, for use inside the ``with`` block.

        Examples
        --------
        >>> with program.reading() as view:  # doctest: +SKIP
        ...     known = view.standing(["a17", "a18"]).persons >= 0
        ...     mistakes = view.summary().outcomes.fdr
        """
        with self.ledger.reading(self.name) as reader:
            view = ProgramView(self, reader)
            try:
                yield view
            finally:
                # Another thread may have rebuilt the state meanwhile, and maybe gone on with it.
                if self._state is None:
                    self._state = vars(view).get("_state")

    @property
    def about(self) -> dict[str, Any]:
        """Data that ``create`` stored with the program's settings."""
        with self.reading() as view:
            return view.about

    @property
    def shape(self) -> Shape:
        """The columns, groups, ids and outcome labels of the program."""
        with self.reading() as view:
            return view.shape

    @property
    def classifier(self) -> Any:
        """A copy of the classifier in its current state; changes to it are not recorded.

        Every access makes a copy, which takes some tenths of a second for a million applicants;
        ``reading`` gives access without one.
        """
        with self.reading() as view:
            return view._state.copy()

    def standing(self, ids: Any) -> Standing:
        """Return what is decided and known about applicants, in the order asked for.

        Parameters
        ----------
        ids
            Ids as for ``observe``, or all as text; unknown ones get the number −1.
        """
        with self.reading() as view:
            return view.standing(ids)

    def reasons(self, ids: Any) -> dict[Any, list[tuple[str, float]]]:
        """Return why the program rejected applicants, as it was recorded.

        For each applicant at most four columns with their contribution to the log-odds of the
        score, compared with a reference applicant; see ``fairchance.people.reasons``.

        Parameters
        ----------
        ids
            Ids of rejected applicants.
        """
        with self.reading() as view:
            return view.reasons(ids)

    def expired(self) -> NDArray[Any]:
        """Return the ids whose retention period is over, without those held or erased."""
        with self.reading() as view:
            deadlines = Deadlines.of(view.reader, retention_months(view.about))
            return view.shape.ids(
                expired(view.reader, deadlines, view.reader.believed(self.ledger.clock()))
            )

    def checkpoint(self) -> Checkpoint:
        """Return the end of the chain, to be stored elsewhere and given to ``verify`` later."""
        with self.ledger.reading(self.name) as reader:
            return reader.head()

    def summary(self, *, groups: bool = True) -> Summary:
        """Return rounds, outcomes, mistakes and changes; see ``summarise``.

        Parameters
        ----------
        groups
            Whether to count groups too.
        """
        with self.reading() as view:
            return view.summary(groups=groups)

    def decision_log(
        self, *, history: bool = False, mixture: bool = False, groups: bool = True
    ) -> DecisionLog:
        """Return all decisions with their probabilities, for ``fairchance.audit``.

        Decisions and probabilities are the program's own, and outcomes are the newest on record.
        Where a person replaced a decision, the outcome does not belong to the program's: it is
        never known for an applicant whom the program accepted, and left out for one whom it
        rejected. Erased applicants have no features and no group.

        Parameters
        ----------
        history
            Return the decisions of the history instead, as round 0. Their probabilities are not on
            record and are estimated from features and groups.
        mixture
            Add each applicant's mean probability of acceptance over the policies of all rounds, by
            which ``unknown`` divides applicants then. It needs a ``PartialFeedbackClassifier`` or a
            ``CertifiedClassifier``.
        groups
            Whether the log has group values.

        Examples
        --------
        >>> from fairchance.audit import evaluate
        >>> evaluate(program.decision_log(), "score >= 0.85")  # doctest: +SKIP
        """
        with self.reading() as view:
            return view.decision_log(history=history, mixture=mixture, groups=groups)

    def verify(
        self, *, checkpoint: Checkpoint | str | None = None, relearn: bool = False
    ) -> Verification:
        """Check the record and make its decisions again; see ``fairchance.ledger.verify``.

        Parameters
        ----------
        checkpoint, relearn
            As for ``fairchance.ledger.verify``.
        """
        return verify(
            self.ledger,
            self.name,
            checkpoint=checkpoint,
            types=self._allowed.types,
            trusted=self._allowed.trusted,
            relearn=relearn,
        )

    # Deciding

    def decide(
        self,
        X: Any,
        *,
        sensitive_features: Any = None,
        ids: Any = None,
        incumbent: Any = None,
        barred: Any = None,
        persons: Any = None,
        batch: str | None = None,
        about: dict[str, Any] | None = None,
        unlike_history: bool = False,
    ) -> Decisions:
        """Decide a batch, record the decisions, and return them once they are durable.

        Parameters
        ----------
        X, sensitive_features, ids, incumbent, barred, persons
            The applicants, as for the classifier's ``decide``; the ramp is the program's.
        batch
            A name for the batch. If it is uncertain whether a call succeeded, send the batch again
            under the same name: a recorded batch is answered from the record. If it has ids, its
            rows may come in another order.
        about
            Further data to store with the batch, as JSON; they are never erased, so do not name
            applicants. Ignored for a batch that is recorded already.
        unlike_history
            Decide although columns differ much from the history (``Checks``); the differences are
            recorded with the batch.

        Returns
        -------
        Decisions
            With ``reasons`` for rejected applicants.

        Raises
        ------
        InputError
            If the batch or its name cannot be used, another batch has the name, or the batch is
            unlike the history.
        PausedError
            If the program is paused, and ``incumbent`` is not given.
        LedgerError
            If the ledger failed. The batch may be sent again.
        """
        _check_name("a batch's name", batch)
        _check_size(X)
        check_about(about)
        given = {"sensitive_features": sensitive_features, "ids": ids, "incumbent": incumbent}
        given |= {"barred": barred, "persons": persons}

        def in_round(desk: Desk | None) -> Decisions:
            if desk is not None and (batch is not None or about):
                raise InputError(
                    f"round {desk.policy.round} is open, in which ids name applications; leave out "
                    f"batch and about."
                )
            answered = self._answered(X, given) if desk is None and batch is None else None
            if answered is not None:
                return answered
            if desk is None:
                return self._decide_batch(X, given, batch, about, unlike_history=unlike_history)
            return desk.decide(self.ledger, self.name, X, **given)

        return self._at_desk(in_round, beside=incumbent is not None, opens=batch is None)

    def decide_in_round(
        self,
        X: Any,
        *,
        ids: Any,
        sensitive_features: Any = None,
        incumbent: Any = None,
        barred: Any = None,
        persons: Any = None,
    ) -> Decisions:
        """Decide on applicants in the open round, and never as a round of their own.

        Parameters
        ----------
        X, ids, sensitive_features, incumbent, barred, persons
            As for ``decide``.

        Raises
        ------
        NoRoundError
            If no round is open, the program has no rounds by time or number, and the last round was
            not ended by something else than ``close_round``.
        """
        given = {"sensitive_features": sensitive_features, "ids": ids, "incumbent": incumbent}
        given |= {"barred": barred, "persons": persons}

        def in_round(desk: Desk | None) -> Decisions:
            answered = self._answered(X, given) if desk is None else None
            if answered is not None:
                return answered
            if desk is None:
                raise NoRoundError(
                    f"no round of program {self.name!r} is open; open one, or make a program with "
                    f"[rounds]."
                )
            return desk.decide(self.ledger, self.name, X, **given)

        return self._at_desk(in_round, beside=incumbent is not None, opens=True)

    def _at_desk(
        self, decide: Callable[[Desk | None], Decisions], *, beside: bool, opens: bool
    ) -> Decisions:
        """Return decisions by what decides now, again if its round is closed meanwhile."""
        for _ in range(_TRIES):
            try:
                return decide(self._desk_now(beside=beside, opens=opens))
            except RoundClosedError:
                self._desk = None
        raise LedgerError("rounds are closed faster than a decision can be made; try again.")

    def _answered(self, X: Any, given: dict[str, Any]) -> Decisions | None:
        """Return the recorded decisions of a closed round; None if applications are new to it.

        The round was open, so that its applications have no other name than their ids.
        """
        if given["ids"] is None:
            return None
        first = as_array(given["ids"]).ravel()[:1].tolist()
        with self.ledger.reading(self.name) as reader:
            known = [round for round in reader.standing([*map(str, first)]).round if round > 0]
            for opened in reader.newest_first("round") if known else ():
                if opened.says["round"] == known[0]:
                    desk = Desk(reader, self._settings(reader), opened, self._allowed)
                    sent, batch = desk.read(X, **given)
                    if desk.unrecorded(reader, sent, batch).size:
                        return None
                    return replace(desk.answer(reader, batch), backend=batch.backend)
        return None

    def _decide_batch(
        self,
        X: Any,
        given: dict[str, Any],
        batch: str | None,
        about: dict[str, Any] | None,
        *,
        unlike_history: bool,
    ) -> Decisions:
        """Decide a batch that is a round by itself."""
        with self._writing() as (writer, state):
            if state.opened is not None:
                raise RoundClosedError("a round was opened meanwhile; decide in it.")
            encoded = state.shape.columns.encode(X)
            _check_width(encoded, state.classifier)
            groups = given["sensitive_features"]
            sent = Sent(
                encoded, encode_batch_groups(state.classifier, groups, len(encoded)), **given
            )
            known = None if batch is None else writer.entry("batch", batch)
            if known is not None:
                decided = recorded_batch(known, writer.facts(known), state.shape, sent)
            else:
                _check_new_name("a batch's name", batch)
                options = {"unlike_history": unlike_history, "ids": new_ids(sent.ids, len(sent))}
                decided = self._decide(writer, state, sent, options, batch, about)
        return replace(decided, backend=encoded.backend)

    def _decide(
        self,
        writer: Writer,
        state: State,
        sent: Sent,
        options: dict[str, Any],
        batch: str | None,
        about: dict[str, Any] | None,
    ) -> Decisions:
        """Decide a new batch and append it."""
        classifier, control = state.classifier, ProgramView(self, writer).control
        _check_not_paused(control, given=sent.incumbent is not None)
        ramp = control.in_force
        options |= sent.options | lender_options(None, ramp)
        strange = [*{*options} - {*inspect.signature(classifier.decide).parameters}]
        if strange:
            raise InputError(
                f"a {type(classifier).__name__} takes no {strange[0]}; leave it out, or set the "
                f"ramp to 1."
            )
        held_up = _held_up(classifier)  # before the round is decided, as ``decide`` warns
        decided: Decisions = classifier.decide(sent.encoded.X, **options)
        stored: dict[str, Any] = {}
        payload, who = None, None
        if stores_policies(classifier):
            policy = classifier.policy_
            stored, payload = pack_policy(writer, policy)
            if sent.persons is not None:
                names = read_persons(sent.persons, len(sent))
                who = keyed_bits(id_bits(names), policy.ramp_key)  # as the coins are
        reasons = reasons_for(
            classifier,
            sent.encoded.X,
            decided.accepted,
            state.shape.reference,
            sensitive_features=sent.sensitive_features,
        )
        # Persons that are not known could explain applicants who look alike.
        asks = sent.persons is None and isinstance(classifier, CertifiedClassifier)
        n_identical = sent.n_identical() if asks else 0
        header = {
            **_header(classifier, ClosedRound.of(decided), held_up, n_identical),
            **stored,
            "versions": versions(),
            **({"about": about} if about else {}),
        }
        facts = replace(facts_of(sent, decided, reasons, who), payload=payload)
        entry = writer.append("batch", header, facts, by=self.by, key=batch)
        state.reach(entry, len(decided))
        record_certificates(writer, classifier, self.by, after="outcomes")
        return replace(decided, reasons=state.shape.reasons(reasons), applicants=None)

    # Rounds that stay open

    def open_round(
        self, expected: int | None = None, *, incumbent: bool = False, request: str | None = None
    ) -> Policy:
        """Open a round, in which ``decide`` decides until ``close_round``.

        Applicants then come one at a time or in any pieces, to any number of processes at once.
        Each is decided on by the policy of the round alone, and its decision is durable before it
        is answered.

        Parameters
        ----------
        expected
            About how many applicants will come; None means as many as in the last round.
        incumbent
            Whether the lender's own decisions will be given.
        request
            A name that makes it harmless to repeat the call.

        Returns
        -------
        Policy
            The policy of the round, which ``save`` writes for other machines.
        """
        with self._writing() as (writer, state):
            _check_name("a request's name", request)
            known = Request.recorded(writer, "round", request)
            if known is None:
                _check_new_name("a request's name", request)
                self._open(writer, state, expected, incumbent, request)
            elif (expected, incumbent) != tuple(
                known.entry.says[name] for name in ("expected", "incumbent")
            ):
                raise known.other_content()
            elif known.entry != state.opened:
                raise InputError(
                    f"the request {request!r} opened round {known.entry.says['round']}, which is "
                    f"closed; take another name for another round."
                )
        return self.policy()

    def close_round(self, *, batch: str | None = None) -> None:
        """Close the open round: its decisions become evidence, and outcomes of it are learned.

        Parameters
        ----------
        batch
            A name for the round's batch, which makes it harmless to repeat the call.
        """
        with self._writing() as (writer, state):
            _check_name("a batch's name", batch)
            known = None if batch is None else writer.entry("batch", batch)
            if known is None:
                _check_new_name("a batch's name", batch)
                self._close(writer, state, batch)
            elif "opened" not in known.says:
                raise InputError(f"the batch {batch!r} was decided at once; take another name.")
        self._desk = None

    def policy(self) -> Policy:
        """Return the policy of the open round, for example to ``save`` it for another machine.

        It knows what the columns of the program's files are called.
        """
        with self.ledger.reading(self.name) as reader:
            desk = self._desk_of(reader)
            settings = self._settings(reader).says
        if desk is None:
            raise InputError(f"no round of program {self.name!r} is open; open one first.")
        return replace(desk.policy, inputs=input_table(settings, Shape.read(settings)))  # type: ignore[type-var]

    def import_decisions(
        self,
        X: Any,
        accepted: Any,
        *,
        round: int,
        ids: Any,
        at: str,
        where: str,
        sensitive_features: Any = None,
        incumbent: Any = None,
        barred: Any = None,
        persons: Any = None,
        policy: str | None = None,
    ) -> Decisions:
        """Record decisions that were made by a round's policy elsewhere, in pieces of any size.

        Each must follow from the policy of the round. If the round is closed by now, the decisions
        stand and are no evidence, and the certified method begins testing again, once for each
        round. If they were made after it had been closed, as by a machine that kept its
        policy file in a pause, ``status`` says so. Applications that are recorded already are left
        as they are.

        Parameters
        ----------
        X, ids, sensitive_features, incumbent, barred, persons
            The applicants, as for ``decide``.
        accepted
            Whether each was accepted.
        round
            The round whose policy decided.
        at, where
            When the decisions were made, a day or a time (ISO 8601; UTC unless it has a zone), and
            where, as text that names no applicant.
        policy
            The key of the policy that decided (``Policy.key``), as ``decide_batches`` returns it;
            that of another round or program is refused. None if it is not known.

        Returns
        -------
        Decisions
            The decisions that are recorded now, with receipts.

        Raises
        ------
        InputError
            If a decision does not follow from the policy; then nothing is recorded.
        """
        made_at(at)  # raises if it is unusable
        check_text("where decisions were made", [where])
        given = {"sensitive_features": sensitive_features, "ids": ids, "incumbent": incumbent}
        given |= {"barred": barred, "persons": persons}
        with self._writing() as (writer, state):
            desk = Desk(writer, self._settings(writer), self._opening(writer, round), self._allowed)
            if policy not in (None, desk.policy.key):
                raise InputError(
                    f"the decisions are by the policy {policy!r}, and that of round {round} of "
                    f"program {self.name!r} is {desk.policy.key!r}; nothing was recorded, import "
                    f"them into their own program and round."
                )
            sent, batch = desk.read(X, **given)
            new = desk.unrecorded(writer, sent, batch)
            facts = desk.decided_elsewhere(sent, batch, accepted, new)
            if new.size:
                self._import(writer, state, desk, facts, {"made_at": at, "where": where})
            return desk.answer(writer, batch)

    def _import(
        self, writer: Writer, state: State, desk: Desk, facts: Facts, made: dict[str, Any]
    ) -> None:
        """Record decisions that were made elsewhere, in their round or after it."""
        policy, opened = desk.policy, writer.open_round()
        assert facts.decisions is not None
        header = made | {
            "round": policy.round,
            "ramp": policy.ramp,
            "status": policy.status,
            "certified": policy.certified,
            "group_mode": desk.opened.says["group_mode"],
            "n": int(facts.decisions.accepted.size),
            "void": False,
            "after_close": made_after_close(writer, policy.round, made["made_at"]),
        }
        if opened is not None and opened.says["round"] == policy.round:
            writer.record_in_round(opened, facts)
            state.reach(writer.append("import", header, Facts(), by=self.by))
            return
        if opened is not None:
            # Only an open round adds applicants meanwhile.
            self._close(writer, state, ended_by="import")
        late = facts.decisions
        # Evidence lacks the rejected too: whoever imports them late leaves out uncovered mass.
        testifies = isinstance(state.classifier, CertifiedClassifier)
        header["void"] = testifies or bool(late.accepted.any())
        # The closing counted without them, and who imports only the accepted must be found.
        header["chance"] = asdict(Chances.of(late.propensity, late.exploit))
        header["explored"] = int((late.accepted & ~late.exploit).sum())
        if header["void"]:
            state.classifier.void_round(policy.round)
        state.reach(writer.append("import", header, facts, by=self.by))
        record_certificates(writer, state.classifier, self.by, after="import")

    def _opening(self, reader: LedgerReader, round: int) -> Entry:
        """Return the entry with the policy of a round."""
        for kind in ("round", "batch"):
            for entry in reader.newest_first(kind):
                if entry.says["round"] == round and "policy" in entry.says:
                    return entry
                if entry.says["round"] < round:
                    break
        raise InputError(f"program {self.name!r} has no policy of round {round!r}.")

    def _desk_of(self, reader: LedgerReader) -> Desk | None:
        """Return what decides in the open round; None if none is open."""
        opened = reader.open_round()
        if opened is None:
            return None
        return Desk(reader, self._settings(reader), opened, self._allowed)

    def _desk_now(self, *, beside: bool, opens: bool) -> Desk | None:
        """Return what decides now; None if each batch is a round.

        In a program with rounds by time or by number, a round that is due is closed first, and the
        next one is opened; ``beside`` says whether the lender's own decisions are given then. If
        something else than ``close_round`` ended the last round, such as a pause, its applications
        still come, so the next one is opened, too, if the call ``opens`` rounds.
        """
        at_once, self._is_at_once = self._is_at_once, False
        if at_once and not opens:
            return None
        desk: Desk | None = self._desk
        ended: Entry | None = None
        if desk is None or desk.has_to_look or not opens:
            with self.ledger.reading(self.name) as reader:
                self._rules = RoundRules.of(self._settings(reader).says.get("about", {}))
                desk = self._desk_of(reader)
                if opens and desk is None:
                    ended = _ended_round(reader)
        due = self._rules is not None and (desk is None or desk.is_due(self.ledger.clock()))
        if due or ended is not None:
            with self._writing() as (writer, state):
                desk = self._desk_of(writer)  # another process may have been quicker
                if desk is not None and desk.is_due(self.ledger.clock()):
                    self._close(writer, state)
                    desk = None
                if desk is None:
                    expected = None if ended is None else ended.says["expected"]
                    self._open(writer, state, expected, beside)
                    desk = self._desk_of(writer)
        self._desk = desk
        return desk

    def _open(
        self,
        writer: Writer,
        state: State,
        expected: int | None,
        incumbent: bool,
        request: str | None = None,
    ) -> None:
        classifier, control = state.classifier, ProgramView(self, writer).control
        check_opens_rounds(classifier)
        _check_not_paused(control, given=incumbent)
        held_up = _held_up(classifier)
        policy = classifier.open_round(expected, incumbent=incumbent, ramp=control.in_force)
        about = self._settings(writer).says.get("about", {})
        rules = RoundRules.of(about)
        due = None if rules is None else rules.due(self.ledger.clock())
        policy = replace(policy, expires=None if due is None else due.isoformat())
        stored, payload = pack_policy(writer, policy)
        header = {
            "ramp": policy.ramp,
            "expected": expected,
            "incumbent": incumbent,
            "expires": policy.expires,
            "status": policy.status,
            "certified": policy.certified,
            "group_mode": getattr(classifier, "group_mode", "aware"),
            "versions": versions(),
            **stored,
            **({"held_up": held_up} if held_up else {}),
        }
        state.opened = writer.begin_round(
            policy.round,
            header,
            Facts(payload=payload),
            groups=state.shape.has_groups,
            by=self.by,
            key=request,
        )
        state.reach(state.opened)

    def _close(
        self, writer: Writer, state: State, batch: str | None = None, *, ended_by: str | None = None
    ) -> None:
        """Close the open round; ``ended_by`` is the kind of an entry that ends it early."""
        classifier, opened = state.classifier, writer.hold_round()
        alike = Lookalikes()
        look = alike.add if isinstance(classifier, CertifiedClassifier) else None
        parts = recorded_round(writer, opened, classifier.open_policy_, state.shape, look)
        closed = close_recorded(classifier, parts)
        header = _header(classifier, closed, opened.says.get("held_up", []), alike.count())
        header |= {"versions": versions()} | ({"ended_by": ended_by} if ended_by else {})
        entry = writer.close_round(header, by=self.by, key=batch)
        state.reach(entry, closed.n_people)
        record_certificates(writer, classifier, self.by, after="outcomes")
        state.learn_deferred(writer, entry)
        record_certificates(writer, classifier, self.by, after="outcomes")

    # Control

    def ramp(self, value: float, *, request: str | None = None) -> None:
        """Record the share of applicants, drawn by id, on whom the program decides from now on.

        The lender's own decision (``incumbent``) stands for the others; 0 is shadow mode.

        Parameters
        ----------
        value
            From 0 to 1.
        request
            A name that makes it harmless to repeat the call.
        """
        self._control("ramp", request, ramp=read_ramp(value))

    def pause(self, *, request: str | None = None) -> None:
        """Record that the lender's own decisions stand until ``resume``, whatever the ramp.

        A batch without them is refused meanwhile.

        Parameters
        ----------
        request
            A name that makes it harmless to repeat the call.
        """
        self._control("pause", request)

    def resume(self, *, request: str | None = None) -> None:
        """Record the end of a pause: the ramp counts again.

        Parameters
        ----------
        request
            A name that makes it harmless to repeat the call.
        """
        self._control("resume", request)

    def hand_over(self, *, request: str | None = None) -> None:
        """Record that the best certified policy takes over from the lender's own decisions.

        It is for a ``CertifiedClassifier`` with ``handover="by hand"``.

        Parameters
        ----------
        request
            A name that makes it harmless to repeat the call.
        """
        self._control("handover", request)

    def _control(self, what: str, request: str | None, **facts: float) -> None:
        header = {"what": what, **facts}
        with self._writing() as (writer, state):
            _check_name("a request's name", request)
            recorded = Request.recorded(writer, "control", request)
            if recorded is not None:
                if header != {key: recorded.entry.says.get(key) for key in header}:
                    raise recorded.other_content()
                return
            _check_new_name("a request's name", request)
            roles = self._settings(writer).says["about"].get("roles")
            if facts.get("ramp", 1.0) < 1 and roles is not None and not roles.get("incumbent"):
                raise InputError(
                    f"the program has no [columns] incumbent, so the ramp must be 1, got "
                    f"{facts['ramp']:g}; nothing was recorded."
                )
            if what == "handover":
                if not hasattr(state.classifier, "hand_over"):
                    raise InputError(
                        f"a {type(state.classifier).__name__} has no certified policy to hand over "
                        f"to; nothing was recorded."
                    )
                state.classifier.hand_over()
            if what != "handover" and state.opened is not None:
                self._close(writer, state, ended_by="control")  # its policy has the ramp of before
            state.reach(writer.append("control", header, Facts(), by=self.by, key=request))

    # Outcomes

    def observe(
        self,
        ids: Any,
        outcomes: Any,
        *,
        request: str | None = None,
        unlike_expected: bool = False,
    ) -> None:
        """Record outcomes of accepted applicants, in any order, in parts, at any later time.

        An outcome that is already recorded changes nothing. One that contradicts the record is
        stored as a correction, with who gave it and when; past decisions stay as they are. If a
        certificate or a pilot was tested on the corrected outcome, testing begins again, and a
        ``LearningWarning`` says so.

        Parameters
        ----------
        ids
            Ids of accepted applicants.
        outcomes
            Their outcomes, in the labels of the history or of the configuration.
        request
            A name that makes it harmless to repeat the call.
        unlike_expected
            Record the outcomes although they would fit better with good and bad exchanged; the
            difference is recorded with them.

        Raises
        ------
        UnknownIdError
            If an applicant is unknown or not accepted; then nothing is recorded.
        InputError
            If the outcomes cannot be read, or contradict what was expected; then nothing is
            recorded.
        """
        with self._writing() as (writer, state):
            names = state.shape.read_ids(ids)
            about = self._settings(writer).says.get("about", {})
            states = read_outcomes(outcomes, len(names), state.shape, about)
            if self._is_repeated(writer, "outcomes", request, names, states):
                return
            lost, unlike = self._record_outcomes(
                writer, state, names, states, request, unlike_expected=unlike_expected
            )
            # Inside the transaction: if warnings are errors, nothing is recorded.
            for one in () if unlike_expected else unlike:
                message = f"Unlike expected: {unlike_expected_words(one)}"
                warnings.warn(message, LearningWarning, stacklevel=2)
            if lost:
                warnings.warn(restart_cost(lost), LearningWarning, stacklevel=2)

    def withdraw(self, ids: Any, *, request: str | None = None) -> None:
        """Record that the outcomes of accepted applicants will never be known.

        Nothing is learned from these applicants; the tests of a certificate count them as bad. If
        there are no certificates, a withdrawal can be undone by an outcome, and an outcome can be
        withdrawn; both are stored as corrections.

        Parameters
        ----------
        ids
            Ids of accepted applicants.
        request
            A name that makes it harmless to repeat the call.
        """
        with self._writing() as (writer, state):
            names = state.shape.read_ids(ids)
            states = ["withdrawn"] * len(names)
            if not self._is_repeated(writer, "outcomes", request, names, states):
                self._record_outcomes(writer, state, names, states, request, compare=False)

    def not_taken(self, ids: Any, *, request: str | None = None) -> None:
        """Record that accepted applicants did not take the loan, and no money was paid out.

        They count neither as good nor as bad. It is possible within ``not_taken_within`` of the
        decision, and not for applicants with an outcome; after that, withdraw them.

        Parameters
        ----------
        ids
            Ids of accepted applicants.
        request
            A name that makes it harmless to repeat the call.
        """
        with self._writing() as (writer, state):
            names = state.shape.read_ids(ids)
            states = ["not_taken"] * len(names)
            if not self._is_repeated(writer, "outcomes", request, names, states):
                self._record_outcomes(writer, state, names, states, request, compare=False)

    def observe_parts(
        self,
        parts: Iterable[tuple[Iterable[Any], Iterable[str]]],
        *,
        request: str | None = None,
        unlike_expected: bool = False,
    ) -> list[tuple[RestartedTests, ...]]:
        """Record several lists of outcomes, one after the other, in one transaction.

        Parameters
        ----------
        parts
            Ids, which may all be text, and for each a state: ``"good"``, ``"bad"``,
            ``"withdrawn"`` or ``"not_taken"``.
        request
            A name that makes it harmless to repeat the call. Then first outcomes must be in one
            part, and corrections too.
        unlike_expected
            As for ``observe``.

        Returns
        -------
        list of tuple of RestartedTests
            For each part, which tests it made begin again; nothing if the request is recorded.
        """
        listed = [([*map(str, ids)], [*map(str, outcomes)]) for ids, outcomes in parts]
        for names, states in listed:
            check_states(names, states)
        restarts = []
        with self._writing() as (writer, state):
            sent = ([*chain(*part)] for part in zip(*listed, strict=True)) if listed else ([], [])
            if self._is_repeated(writer, "outcomes", request, *sent):
                return []
            for names, states in listed:
                before = _deployed_rungs(state.classifier)
                self._record_outcomes(
                    writer, state, names, states, request, unlike_expected=unlike_expected
                )
                restarts.append(restarts_since(before, _deployed_rungs(state.classifier)))
            if not listed:
                self._record_outcomes(writer, state, [], [], request)
        return restarts

    def _record_outcomes(
        self,
        writer: Writer,
        state: State,
        names: list[str],
        states: list[str],
        request: str | None = None,
        *,
        compare: bool = True,
        unlike_expected: bool = False,
    ) -> tuple[tuple[RestartedTests, ...], list[UnlikeExpected]]:
        """Append the outcomes that are new, unless they contradict what was expected.

        Returns which tests a correction made begin again, and how outcomes are unlike expected.
        """
        outcomes = unique_outcomes(names, states)
        names, listed = list(outcomes), np.array([*outcomes.values()], np.object_)
        standing = writer.standing(names)
        check_objections(names, to_outcome(standing), "nothing was recorded", UnknownIdError)
        self._check_not_taken(writer, state, names, listed == "not_taken")
        checks = getattr(state.classifier, "checks", None) or Checks()
        unlike = {}
        if compare:
            unlike = compare_outcomes(writer, state.classifier, standing, listed.tolist(), checks)
        for one in () if unlike_expected else unlike.values():
            one.check()
        lost: tuple[RestartedTests, ...] = ()
        final = outcomes_are_final(state.classifier)
        new = new_outcomes(outcomes, standing, final=final)
        if request is not None and not new and writer.entry("outcomes", request) is None:
            # A repeated call must change nothing, also if these are corrected meanwhile.
            state.reach(writer.append("outcomes", {}, Facts(), by=self.by, key=request))
        for kind, rows in new:
            facts = Facts(outcomes=OutcomeRows(standing.persons[rows], listed[rows].tolist()))
            header = {"unlike_expected": asdict(unlike[kind])} if kind in unlike else {}
            entry = writer.append(kind, header, facts, by=self.by, key=request)
            # The classifier did not accept applicants whom an override accepted.
            learned = rows[~standing.overridden[rows]]
            before = _deployed_rungs(state.classifier)
            some = [names[row] for row in learned.tolist()]
            state.learn(writer, entry, standing.persons[learned], some, listed[learned].tolist())
            began_again = self._learned(writer, state, before, kind)
            if kind == "correction":
                lost = began_again
        return lost, [*unlike.values()]

    def _learned(
        self, writer: Writer, state: State, before: tuple[DeployedRung, ...], kind: str
    ) -> tuple[RestartedTests, ...]:
        """Record what an entry did to certificates; return which tests began again by it.

        They close the open round: what it decides from now on has no promise.
        """
        record_certificates(writer, state.classifier, self.by, after=kind)
        began_again = restarts_since(before, _deployed_rungs(state.classifier))
        if began_again and state.opened is not None:
            self._close(writer, state, ended_by=kind)
        return began_again

    def _check_not_taken(
        self, writer: Writer, state: State, names: list[str], which: NDArray[np.bool_]
    ) -> None:
        """Raise unless these applicants may be recorded as not having taken the loan."""
        if not which.any():
            return
        if not hasattr(state.classifier, "not_taken"):
            raise InputError(
                f"a {type(state.classifier).__name__} knows no loans that are not taken; nothing "
                f"was recorded, withdraw the applicants."
            )
        window = TakeUpWindow.of(self._settings(writer).says["about"])
        mine = [name for name, is_mine in zip(names, which.tolist(), strict=True) if is_mine]
        objections = to_not_taken(writer, writer.standing(mine), window, self.ledger.clock())
        check_objections(mine, objections, "nothing was recorded")

    # Overrides
    #
    # An undo is an entry of its own that repeats the program's decision, and nothing is learned
    # from an applicant who was ever overridden; a certificate keeps counting an applicant as bad
    # whom the program accepted and an override rejected. Otherwise a user could wait for outcomes
    # and then undo overrides to influence the tests.

    def override(self, ids: Any, accepted: Any, reason: str, *, request: str | None = None) -> None:
        """Record that a person decided differently from the program.

        Outcomes follow the override. Nothing is learned from overridden applicants, and a
        certificate counts applicants as bad whom the program accepted and the override rejects.

        Parameters
        ----------
        ids
            Ids of applicants without an outcome.
        accepted
            The new decision for all of them, True or False.
        reason
            The reason, as text.
        request
            A name that makes it harmless to repeat the call.
        """
        check_reason("an override", reason)
        if not isinstance(accepted, bool | np.bool_):
            raise InputError(
                f"accepted must be True or False, got {accepted!r}; override the accepted and the "
                f"rejected in two calls."
            )
        self._replace(ids, bool(accepted), reason, request)

    def undo_override(self, ids: Any, reason: str, *, request: str | None = None) -> None:
        """Record that overrides no longer hold: the program's decisions apply again.

        Outcomes follow the program's decision. The override stays on the record, and so do its
        effects on learning and certificates.

        Parameters
        ----------
        ids
            Ids of overridden applicants without an outcome.
        reason
            The reason, as text.
        request
            A name that makes it harmless to repeat the call.
        """
        check_reason("the end of an override", reason)
        self._replace(ids, None, reason, request)

    def _replace(self, ids: Any, accepted: bool | None, reason: str, request: str | None) -> None:
        """Append an override; None undoes the override in force."""
        with self._writing() as (writer, state):
            names = _unique(state.shape.read_ids(ids))
            asked = [(accepted, reason)] * len(names)
            if self._is_repeated(writer, "override", request, names, asked):
                return
            standing = writer.standing(names)
            if accepted is None:
                check_objections(names, to_undo(writer, standing), "nothing was undone")
                header, decisions = {"undo": True}, ~standing.accepted
            else:
                objections = to_override(writer, standing, accepted)
                check_objections(names, objections, "nothing was recorded")
                header, decisions = {}, np.full(len(names), accepted)
            if not names:
                return
            rows = OverrideRows(standing.persons, decisions, [reason] * len(names))
            entry = writer.append(
                "override", header, Facts(overrides=rows), by=self.by, key=request
            )
            # Applicants whom an undo rejects again were never accepted by the classifier.
            rejected = names if accepted is False else []
            persons = standing.persons[: len(rejected)]
            before = _deployed_rungs(state.classifier)
            state.learn(writer, entry, persons, rejected, ["withdrawn"] * len(rejected))
            self._learned(writer, state, before, "override")

    # Retention

    def hold(self, ids: Any, reason: str, *, request: str | None = None) -> None:
        """Record that applicants must not be erased until they are released.

        Parameters
        ----------
        ids
            Ids of applicants.
        reason
            The reason, as text.
        request
            A name that makes it harmless to repeat the call.
        """
        self._hold(ids, reason, request, is_held=True)

    def release(self, ids: Any, reason: str, *, request: str | None = None) -> None:
        """Record that applicants are no longer held; every hold on them ends.

        Parameters
        ----------
        ids
            Ids of held applicants.
        reason
            The reason, as text.
        request
            A name that makes it harmless to repeat the call.
        """
        self._hold(ids, reason, request, is_held=False)

    def _hold(self, ids: Any, reason: str, request: str | None, *, is_held: bool) -> None:
        check_reason("a hold" if is_held else "a release", reason)
        with self.ledger.writing(self.name) as writer:
            names = _unique(Shape.read(self._settings(writer).says).read_ids(ids))
            asked = [(is_held, reason)] * len(names)
            if self._is_repeated(writer, "hold", request, names, asked):
                return
            persons = writer.standing(names).persons
            objections = to_hold(persons) if is_held else to_release(writer, persons)
            check_objections(names, objections, f"nothing was {'held' if is_held else 'released'}")
            if names:
                header = {"held": is_held, "reason": reason, "persons": np.sort(persons).tolist()}
                writer.append("hold", header, Facts(), by=self.by, key=request)

    def erase(
        self,
        ids: Any,
        reason: str,
        *,
        early: bool = False,
        compact: bool | None = False,
        request: str | None = None,
    ) -> int:
        """Erase applicants; decisions on them stay, and the program continues without them.

        Their names, features, group values and reasons are deleted with the salts of their hashes,
        and so is every stored state; the classifier forgets them, and a new state is stored, all in
        one transaction. The chain still holds, and records how many were erased, when, by whom and
        why. On SQLite the file is then written anew, so that no trace of them is left in it.

        Parameters
        ----------
        ids
            Ids of applicants, also of the history.
        reason
            The reason, as text; it is never erased, so do not name applicants in it.
        early
            Erase applicants before their retention period is over, for example at their request.
        compact
            Write the files anew on PostgreSQL too (``VACUUM FULL``), which locks the tables against
            everyone else meanwhile. Until then its files keep what was erased. None leaves all
            files as they are, for ``SqlLedger.left_in_files``.
        request
            A name that makes it harmless to repeat the call. What was erased cannot be compared:
            the call is taken for the same if the reason is, and as many ids are unknown now.

        Returns
        -------
        int
            How many were erased.

        Raises
        ------
        InputError
            If an applicant is unknown, held, or must be kept longer; then nothing is erased.

        Warns
        -----
        LedgerWarning
            If the files were not written anew: on PostgreSQL without ``compact``, or since another
            process reads them. The applicants are erased even if warnings are errors.
        """
        check_reason("an erasure", reason)
        with self._writing() as (writer, state):
            names = _unique(state.shape.read_ids(ids))
            asked = [reason] * len(names)
            if names and not self._is_repeated(writer, "erasure", request, names, asked):
                self._erase(writer, state, names, reason, early, request)
        if names and compact is not None:
            left = self.ledger.left_in_files(lock=compact)
            if left:
                warnings.warn(left, LedgerWarning, stacklevel=2)
        return len(names)

    def _erase(
        self,
        writer: Writer,
        state: State,
        names: list[str],
        reason: str,
        early: bool,
        request: str | None,
    ) -> None:
        if not hasattr(state.classifier, "forget"):
            raise InputError(
                f"a {type(state.classifier).__name__} cannot forget applicants, so nothing was "
                f"erased."
            )
        months = retention_months(self._settings(writer).says.get("about", {}))
        now, persons = writer.believed(self.ledger.clock()), writer.standing(names).persons
        if state.opened is not None and (persons >= state.opened.people_range.start).any():
            self._close(writer, state, ended_by="erasure")  # which counts what they contribute
        objections = to_erasure(writer, persons, months=months, now=now, early=early)
        check_objections(names, objections, "nothing was erased")
        until = Deadlines.of(writer, months).of_people(persons)
        n_early = int((until > np.datetime64(in_utc(now))).sum())
        header = {"reason": reason, "retention_months": months, "n_early": n_early}
        facts = Facts(erased=persons)
        state.reach(writer.append("erasure", header, facts, by=self.by, key=request))
        before = _deployed_rungs(state.classifier)
        known = np.flatnonzero(state.knows(writer, persons))
        state.classifier.forget(state.shape.ids([names[row] for row in known.tolist()]))
        self._learned(writer, state, before, "erasure")
        state.is_due = True  # earlier states have no content any more

    # Requests

    def _is_repeated(
        self, writer: Writer, kind: str, name: str | None, names: list[str], asked: Sequence[Any]
    ) -> bool:
        """Return whether a call is recorded under its name; raise if it has other content.

        ``asked`` is what is to be recorded for each applicant, as in ``Request.done``.
        """
        _check_name("a request's name", name)
        recorded = Request.recorded(writer, kind, name)
        if recorded is None:
            _check_new_name("a request's name", name)
            return False
        if not recorded.covers(writer, writer.standing(names), asked).all():
            raise recorded.other_content()
        return True

    # State

    def snapshot(self) -> None:
        """Store the state, so that opening the program need not replay earlier entries."""
        with self._writing() as (_, state):
            state.is_due = True

    def _store_state(self, writer: Writer, state: State) -> None:
        """Append the state, from which a later process can continue."""
        facts = Facts(payload=dumps(state.classifier, features=False))
        header = {"after": state.applied, "versions": versions()}
        state.stored(writer.append("snapshot", header, facts, by=self.by))

    @contextmanager
    def _writing(self) -> Iterator[tuple[Writer, State]]:
        """Write, with the current state; it is kept in memory only if everything is durable.

        The state is stored in the same transaction if a model was fitted: nobody can fit the same
        one again, so an entry that depends on it must not be durable without it.
        """
        with self._turn:
            with self.ledger.writing(self.name) as writer:
                state = self._current(writer)
                with watching_fits() as fits:
                    yield writer, state
                if state.is_due or fits.n:
                    self._store_state(writer, state)
            self._state = state

    def _current(self, reader: LedgerReader) -> State:
        """Return the state after the last entry, and keep none: the caller may fail."""
        state: State | None = vars(self).pop("_state", None)  # in one step: no two threads get it
        later = None if state is None else state.missed(reader)
        if state is None or later is None or any(entry.kind == "snapshot" for entry in later):
            # Another process fitted a model, or erased applicants, who must not stay in memory.
            state = self._stored(reader)
            later = list(reader.entries(state.applied))
        else:
            state.attach(reader)
        for entry in later:
            with watching_fits(refuse=self._would_learn(entry)):
                state.apply(reader, entry, compare=self._check_same)
        return state

    def _check_same(self, recorded: Decisions, decided: Decisions) -> None:
        if first_difference(recorded, decided) is not None:
            raise LedgerError(
                f"round {decided.round} of program {self.name!r} differs from the record when it "
                f"is decided again; does the learner have a fixed random_state?"
            )

    def _would_learn(self, entry: Entry) -> LedgerError:
        return LedgerError(
            f"entry {entry.number} ({entry.kind}) of program {self.name!r} fitted a model, and no "
            f"later state is stored, so the program cannot go on; verify the ledger."
        )

    def _stored(self, reader: LedgerReader) -> State:
        """Return the newest stored state, or the one before the history."""
        settings = self._settings(reader)
        for entry in reader.newest_first("snapshot"):
            facts = reader.facts(entry)
            if facts.payload is not None:  # states before an erasure are deleted
                shape = Shape.read(settings.says)
                return State.from_snapshot(reader, entry, facts, shape, self._allowed)
        return State.first(settings, reader.facts(settings), self._allowed)

    def _settings(self, reader: LedgerReader) -> Entry:
        """Return the program's first entry."""
        settings = reader.entry("program", "#1")
        if settings is None:
            raise LedgerError(f"the program {self.name!r} has no entries; verify the ledger.")
        return settings


def login_name() -> str:
    """Return the author of entries if nobody is named."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"


def _unique(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _deployed_rungs(classifier: Any) -> tuple[DeployedRung, ...]:
    """Return what decided the last round of the certified method; nothing for other methods."""
    return classifier.deployed_ if isinstance(classifier, CertifiedClassifier) else ()


def _held_up(classifier: Any) -> list[dict[str, Any]]:
    """Return the certificates whose tests are held up, and by which round."""
    awaited = classifier.awaited_ if isinstance(classifier, CertifiedClassifier) else ()
    return [{"group": one.group, "round": one.round} for one in awaited if one.held_up]


def _header(
    classifier: Any, closed: ClosedRound, held_up: list[dict[str, Any]], n_identical: int
) -> dict[str, Any]:
    """Return what a batch says of its round."""
    t = closed.round
    return {
        "round": t,
        "ramp": closed.ramp,
        "status": closed.status,
        "certified": closed.certified,
        "group_mode": closed.group_mode,
        "rounds": [asdict(record) for record in classifier.rounds_ if record.round == t],
        "chance": asdict(closed.chances),
        **({"unlike": [one.as_dict() for one in closed.unlike]} if closed.unlike else {}),
        **({"held_up": held_up} if held_up else {}),
        **({"identical": n_identical} if n_identical else {}),
    }


def _ended_round(reader: LedgerReader) -> Entry | None:
    """Return the opening of the last round, if it was open and nobody closed it."""
    last = next(reader.newest_first("batch"), None)
    if last is None or "ended_by" not in last.says:
        return None
    return next(reader.newest_first("round"))


def _check_not_paused(control: Control, *, given: bool) -> None:
    if control.paused and not given:
        raise PausedError(
            "the program is paused, and the lender's own decisions (incumbent) are not given; "
            "nothing was decided, give them or resume the program."
        )


def _check_name(what: str, name: Any) -> None:
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise InputError(f"{what} must be text, got {name!r}; take another.")


def _check_size(X: Any) -> None:
    """Raise if a batch is empty."""
    n = X.shape[:1] if hasattr(X, "shape") else (len(X) if hasattr(X, "__len__") else 1,)
    if tuple(n) == (0,):
        raise InputError("the batch is empty; pass at least one application.")


def _check_width(encoded: EncodedFeatures, classifier: Any) -> None:
    """Raise if a batch without column names has another number of columns than the history."""
    width = getattr(classifier, "n_features_in_", encoded.X.shape[1])
    if encoded.X.shape[1] != width:
        raise InputError(
            f"X must have {width} columns, as the history had, got {encoded.X.shape[1]}."
        )


def _check_new_name(what: str, name: str | None) -> None:
    """Raise if a new entry has a name that an unnamed entry may have."""
    if name is not None and re.fullmatch(r"#\d+", name):
        raise InputError(f"{what} must not be # and a number, got {name!r}; take another.")
