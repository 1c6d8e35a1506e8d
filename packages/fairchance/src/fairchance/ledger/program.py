"""A program: a classifier that records every decision and outcome in a ledger before it counts."""

from __future__ import annotations

import getpass
import inspect
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

import fairchance
from fairchance.audit.log import DecisionLog
from fairchance.core.decisions import Decisions
from fairchance.errors import (
    InputError,
    LearningWarning,
    LedgerError,
    LedgerWarning,
    PausedError,
    UnknownIdError,
)
from fairchance.frames import as_array, column
from fairchance.ledger.base import (
    DecisionRows,
    Entry,
    Facts,
    OutcomeRows,
    OverrideRows,
    PeopleRows,
    Standing,
    check_about,
    check_program_name,
)
from fairchance.ledger.chain import Checkpoint
from fairchance.ledger.control import Control, read_ramp
from fairchance.ledger.database import shown_url
from fairchance.ledger.decision_log import decision_log_of
from fairchance.ledger.encoding import (
    EncodedFeatures,
    FeatureColumns,
    Shape,
    encode_batch_groups,
    encode_groups,
)
from fairchance.ledger.health import TINY
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
from fairchance.ledger.policies import kept_past, record_certificates, record_policy, record_start
from fairchance.ledger.replay import (
    Allowed,
    State,
    erased_rows,
    first_difference,
    fold_of,
    lender_options,
)
from fairchance.ledger.retention import (
    Deadlines,
    check_reason,
    expired,
    in_utc,
    retention_months,
)
from fairchance.ledger.sql import Reader, SqlLedger, Writer
from fairchance.ledger.summary import Summary, summary_of
from fairchance.ledger.verification.walk import Verification, verify
from fairchance.methods.certified.classifier import (
    CertifiedClassifier,
    DeployedRung,
    RestartedTests,
    restarts_since,
)
from fairchance.methods.storage import dumps
from fairchance.people.columns import as_missing_values
from fairchance.people.ids import as_ids, check_spelling, seed_of
from fairchance.people.intake import good_outcome, read_flags, read_persons
from fairchance.people.likeness import Checks, Unlike
from fairchance.people.reasons import Reference, reasons_for
from fairchance.words.batches import unlike_expected_words
from fairchance.words.rounds import restart_cost

__all__ = ["Program", "ProgramView"]


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

    def __init__(
        self, ledger: SqlLedger, name: str, *, by: str, allowed: Allowed, snapshot_every: int
    ) -> None:
        if not isinstance(snapshot_every, int) or snapshot_every < 1:
            raise InputError(f"snapshot_every must be a number of rounds, got {snapshot_every!r}.")
        if not isinstance(by, str):
            raise InputError(f"by must be text, got {by!r}; name the person who writes.")
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
        not_taken: Any = None,
        sensitive_features: Any = None,
        ids: Any = None,
        persons: Any = None,
        name: str = "main",
        by: str | None = None,
        types: Iterable[type] = (),
        trusted: Iterable[str] = (),
        snapshot_every: int = 20,
        about: dict[str, Any] | None = None,
        past_policy: Any = None,
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
        snapshot_every
            The state is stored after so many rounds, so that opening replays no more than these;
            older states are dropped.
        about
            Further data to store with the program's settings, as JSON. ``retention_months``, the
            first ``ramp`` and ``not_taken_within`` ("2 rounds" or "30 days", after which nobody can
            be recorded as not having taken the loan) are settings.
        past_policy
            f_0 if it is known, as for ``fit``: a fitted classifier, which is stored as data.
        """
        check_program_name(name)
        check_about(about)
        retention_months(about or {})  # raises if it is unusable
        Control.of(about or {}, ())
        if "not_taken_within" in (about or {}):
            TakeUpWindow.of(about or {})
        fresh = _unfitted_copy(classifier)
        allowed = Allowed(tuple(types), tuple(trusted))
        program = cls(
            SqlLedger(url, make=True),
            name,
            by=_login_name() if by is None else by,
            allowed=allowed,
            snapshot_every=snapshot_every,
        )
        given = {"accepted": accepted, "sensitive_features": sensitive_features, "ids": ids}
        given |= {} if not_taken is None else {"not_taken": not_taken}
        given |= {} if persons is None else {"persons": persons}
        header, settings, history = _first_facts(fresh, X, y, given, past_policy)
        header["about"] = about or {}
        with program.ledger.creating(name) as writer:
            first = writer.append("program", header, settings, by=program.by)
            second = writer.append("history", {}, history, by=program.by)
            state = State.first(first, writer.facts(first), allowed)
            state.apply(writer, second)
            program._store_state(writer, state)
            record_start(writer, state.classifier, program.by)
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
        snapshot_every: int = 20,
        load: bool = True,
    ) -> Program:
        """Open a program that exists.

        Parameters
        ----------
        url, by, types, trusted, snapshot_every
            As for ``create``.
        name
            Name of the program; None means the only one of the ledger.
        load
            Rebuild the state now. False leaves that to the first call that needs it, which then
            also raises if the program does not exist; a command that reads once needs no more.
        """
        allowed = Allowed(tuple(types), tuple(trusted))
        who = _login_name() if by is None else by
        ledger = SqlLedger(url, check=load)
        name = ledger.named(name)
        program = cls(ledger, name, by=who, allowed=allowed, snapshot_every=snapshot_every)
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
            return deepcopy(view.classifier)

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
        with self._writing() as (writer, state):
            encoded = state.shape.columns.encode(X)
            _check_width(encoded, state.classifier)
            groups = encode_batch_groups(state.classifier, sensitive_features, len(encoded))
            known = None if batch is None else writer.entry("batch", batch)
            by_lender = {"incumbent": incumbent, "barred": barred}
            same_person = _first_rows(persons, len(encoded))
            if known is not None:
                decided = _recorded_decisions(
                    writer, state.shape, known, encoded, groups, ids, by_lender, same_person
                )
            else:
                _check_new_name("a batch's name", batch)
                options = {
                    "sensitive_features": sensitive_features,
                    "ids": _new_ids(ids, len(encoded)),
                    "unlike_history": unlike_history,
                    **{name: values for name, values in by_lender.items() if values is not None},
                    **({} if same_person is None else {"persons": same_person}),
                }
                decided = self._decide(writer, state, encoded, groups, options, batch, about)
        return replace(decided, backend=encoded.backend)

    def _decide(
        self,
        writer: Writer,
        state: State,
        encoded: EncodedFeatures,
        groups: list[str] | None,
        options: dict[str, Any],
        batch: str | None,
        about: dict[str, Any] | None,
    ) -> Decisions:
        """Decide a new batch and append it; ``groups`` are the sensitive features as stored."""
        classifier, control = state.classifier, ProgramView(self, writer).control
        if control.paused and "incumbent" not in options:
            raise PausedError(
                "the program is paused, and the lender's own decisions (incumbent) are not given; "
                "nothing was decided, give them or resume the program."
            )
        ramp = control.in_force
        options |= lender_options(None, ramp)
        strange = [*{*options} - {*inspect.signature(classifier.decide).parameters}]
        if strange:
            raise InputError(
                f"a {type(classifier).__name__} takes no {strange[0]}; leave it out, or set the "
                f"ramp to 1."
            )
        held_up = _held_up(classifier)  # before the round is decided, as ``decide`` warns
        decided: Decisions = classifier.decide(encoded.X, **options)
        reasons = reasons_for(
            classifier,
            encoded.X,
            decided.accepted,
            state.shape.reference,
            sensitive_features=options["sensitive_features"],
        )
        t = decided.round
        header = {
            "round": t,
            "ramp": ramp,
            "status": decided.status,
            "certified": decided.certified,
            "group_mode": decided.group_mode,
            "rounds": [asdict(record) for record in classifier.rounds_ if record.round == t],
            "fairchance": fairchance.__version__,
            "chance": _chances(decided),
            **record_policy(writer, classifier, self.by),
            **({"about": about} if about else {}),
            **({"unlike": [one.as_dict() for one in decided.unlike]} if decided.unlike else {}),
            **({"held_up": held_up} if held_up else {}),
            **_identical(encoded, classifier, options),
        }
        names = list(map(str, decided.ids.tolist()))
        facts = Facts(
            PeopleRows(
                names,
                encoded.numbers,
                encoded.texts,
                groups,
                reasons,
                options["persons"].tolist() if "persons" in options else None,
            ),
            DecisionRows(
                t,
                decided.accepted,
                decided.exploit,
                decided.score.astype(np.float64),
                decided.propensity,
                None if decided.threshold is None else decided.threshold.astype(np.float64),
                fold_of(classifier, decided.ids),
                decided.incumbent,
                decided.barred,
            ),
        )
        state.reach(writer.append("batch", header, facts, by=self.by, key=batch))
        record_certificates(writer, classifier, self.by, after="outcomes")
        if t % self._every == 0:
            self._store_state(writer, state)
        return replace(decided, reasons=state.shape.reasons(reasons))

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
        ids = state.shape.ids(names)
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
            state.learn(entry, ids[learned], listed[learned].tolist())
            if kind == "correction":
                lost = restarts_since(before, _deployed_rungs(state.classifier))
            record_certificates(writer, state.classifier, self.by, after=kind)
        return lost, [*unlike.values()]

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
            ordered = state.shape.ids(names)[np.argsort(standing.persons)]
            rejected = ordered if accepted is False else ordered[:0]
            state.learn(entry, rejected, ["withdrawn"] * rejected.size)
            record_certificates(writer, state.classifier, self.by, after="override")

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
        compact: bool = False,
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
            everyone else meanwhile. Until then its files keep what was erased.
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
        if names:
            why = "PostgreSQL keeps them in its files until the ledger is compacted."
            try:
                is_left = not self.ledger.compact(lock=compact)
            except LedgerError as error:
                is_left, why = True, str(error)
            if is_left:
                words = f"the applicants are erased and that is recorded, but {why}"
                warnings.warn(words, LedgerWarning, stacklevel=2)
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
        objections = to_erasure(writer, persons, months=months, now=now, early=early)
        check_objections(names, objections, "nothing was erased")
        until = Deadlines.of(writer, months).of_people(persons)
        n_early = int((until > np.datetime64(in_utc(now))).sum())
        header = {"reason": reason, "retention_months": months, "n_early": n_early}
        facts = Facts(erased=persons)
        state.reach(writer.append("erasure", header, facts, by=self.by, key=request))
        state.classifier.forget(state.shape.ids(names))
        record_certificates(writer, state.classifier, self.by, after="erasure")
        self._store_state(writer, state)

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
        with self._writing() as (writer, state):
            self._store_state(writer, state)

    def _store_state(self, writer: Writer, state: State) -> None:
        """Append the state, from which a later process can continue."""
        facts = Facts(payload=dumps(state.classifier))
        state.reach(writer.append("snapshot", {"after": state.applied}, facts, by=self.by))

    @contextmanager
    def _writing(self) -> Iterator[tuple[Writer, State]]:
        """Write, with the current state; it is kept in memory only if everything is durable."""
        with self.ledger.writing(self.name) as writer:
            state = self._current(writer)
            yield writer, state
        self._state = state

    def _current(self, reader: Reader) -> State:
        """Return the state after the last entry, and keep none: the caller may fail."""
        state: State | None = vars(self).pop("_state", None)  # in one step: no two threads get it
        later = None if state is None else state.missed(reader)
        if state is None or later is None or any(entry.kind == "erasure" for entry in later):
            state = self._stored(reader)  # erased applicants do not stay in memory
            later = list(reader.entries(state.applied))
        for entry in later:
            decided = state.apply(reader, entry)
            if decided is not None:
                recorded = reader.facts(entry).decisions
                fold = fold_of(state.classifier, decided.ids)
                if recorded is None or first_difference(recorded, decided, fold=fold) is not None:
                    raise LedgerError(
                        f"round {decided.round} of program {self.name!r} differs from the record "
                        f"when it is decided again; does the learner have a fixed random_state?"
                    )
        return state

    def _stored(self, reader: Reader) -> State:
        """Return the newest stored state, or the one before the history."""
        settings = self._settings(reader)
        for entry in reader.newest_first("snapshot"):
            facts = reader.facts(entry)
            if facts.payload is not None:  # states before an erasure are deleted
                shape = Shape.read(settings.says)
                return State.from_snapshot(entry, facts, shape, self._allowed)
        return State.first(settings, reader.facts(settings), self._allowed)

    def _settings(self, reader: Reader) -> Entry:
        """Return the program's first entry."""
        settings = reader.entry("program", "#1")
        if settings is None:
            raise LedgerError(f"the program {self.name!r} has no entries; verify the ledger.")
        return settings


class ProgramView:
    """A program at one moment: everything comes from the same read transaction.

    ``Program.reading`` makes it; it is valid inside that ``with`` block. Nothing is read before it
    is asked for, and what was read once is kept.
    """

    def __init__(self, program: Program, reader: Reader) -> None:
        self.program, self.reader = program, reader

    @cached_property
    def settings(self) -> Entry:
        """The program's first entry."""
        return self.program._settings(self.reader)

    @property
    def about(self) -> dict[str, Any]:
        """Data that ``Program.create`` stored with the settings."""
        about: dict[str, Any] = self.settings.says.get("about", {})
        return about

    @cached_property
    def shape(self) -> Shape:
        """The columns, groups, ids and outcome labels of the program."""
        return Shape.read(self.settings.says)

    @cached_property
    def control(self) -> Control:
        """The ramp in force, and whether the program is paused."""
        return Control.of(self.about, self.reader.entries(kind="control"))

    @cached_property
    def _state(self) -> State:
        return self.program._current(self.reader)

    @property
    def classifier(self) -> Any:
        """The classifier itself, not a copy: do not change it.

        Later calls of the program go on with this object, so copy what must outlive the block.
        """
        return self._state.classifier

    def standing(self, ids: Any) -> Standing:
        """Return what is decided and known about applicants, as ``Program.standing`` does."""
        return self.reader.standing(self.shape.read_names(ids))

    def reasons(self, ids: Any) -> dict[Any, list[tuple[str, float]]]:
        """Return why the program rejected applicants, as ``Program.reasons`` does."""
        names = self.shape.read_ids(ids)
        persons = self.reader.standing(names).persons
        check_objections(names, to_hold(persons), "no reasons were read")
        recorded = self._recorded_reasons(persons)
        pairs = zip(names, recorded, strict=True)
        without = [name for name, reasons in pairs if reasons is None]
        if without:
            raise InputError(
                f"{len(without)} of {len(names)} ids have no reasons on record, first "
                f"{without[0]!r}; only applicants whom the program rejected have some."
            )
        reasons = self.shape.reasons(recorded)
        assert reasons is not None
        listed = [reason or [] for reason in reasons]
        return dict(zip(self.shape.ids(names).tolist(), listed, strict=True))

    def _recorded_reasons(self, persons: NDArray[np.int64]) -> list[bytes | None]:
        """Return the stored reasons of applicants; None for those without."""
        recorded: list[bytes | None] = [None] * persons.size
        for entry in self.reader.entries(kind="batch"):
            rows = entry.people_range
            inside = np.flatnonzero((persons >= rows.start) & (persons < rows.stop))
            people = self.reader.facts(entry).people if inside.size else None
            if people is not None and people.reasons is not None:
                assert people.persons is not None
                places = np.searchsorted(people.persons, persons[inside])
                for at, place in zip(inside.tolist(), places.tolist(), strict=True):
                    recorded[at] = people.reasons[place]
        return recorded

    def summary(self, *, groups: bool = True, money: bool = True) -> Summary:
        """Return rounds, outcomes, mistakes and changes, as ``Program.summary`` does."""
        return summary_of(
            self.reader,
            self.program.name,
            now=self.program.ledger.clock(),
            groups=groups,
            money=money,
            types=self.program._allowed.types,
            trusted=self.program._allowed.trusted,
        )

    def decision_log(
        self, *, history: bool = False, mixture: bool = False, groups: bool = True
    ) -> DecisionLog:
        """Return all decisions with their probabilities, as ``Program.decision_log`` does."""
        mean = getattr(self.classifier, "mean_acceptance", None) if mixture else None
        if mixture and (history or mean is None):
            whose = "the history" if history else f"a {type(self.classifier).__name__}"
            raise InputError(
                f"{{option}} needs stored policies, and {whose} has none; leave it out.",
                option="mixture",
            )
        return decision_log_of(
            self.reader, self.settings, history=history, groups=groups, mean_acceptance=mean
        )


def _unfitted_copy(classifier: Any) -> Any:
    """Return an unfitted classifier with the same settings, if its decisions can be replayed."""
    seed = getattr(classifier, "random_state", None)
    if seed is None:
        return clone(classifier).set_params(random_state=seed_of(None))
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise InputError(
            f"random_state must be None or a whole number in a ledger, got {seed!r}; leave it out."
        )
    return clone(classifier)


def _first_facts(
    classifier: Any, X: Any, y: Any, given: dict[str, Any], past_policy: Any
) -> tuple[dict[str, Any], Facts, Facts]:
    """Return header and facts of the settings, and the facts of the history.

    The classifier is fitted here to see that it can learn from the history; ``given`` holds
    ``accepted``, ``sensitive_features``, ``ids`` and maybe ``not_taken`` and ``persons``, as for
    ``fit``.
    """
    settings, columns = dumps(classifier), FeatureColumns.of(X)
    encoded = columns.encode(X)
    n, groups = len(encoded), given["sensitive_features"]
    new_ids = _new_ids(given["ids"], n)
    ids = np.arange(n) if new_ids is None else new_ids
    mode = getattr(classifier, "group_mode", "aware")
    names, values = None, None
    if groups is not None:
        names, values = encode_groups(groups, n, not_stated=mode != "aware")
    past = kept_past(classifier, past_policy)
    known = {} if past_policy is None else {"past_policy": past_policy}
    same_person = _first_rows(given.get("persons"), n)
    if same_person is not None:
        given = given | {"persons": same_person}
        if "persons" not in inspect.signature(classifier.fit).parameters:
            raise InputError(f"a {type(classifier).__name__} takes no persons; leave them out.")
    classifier.fit(encoded.X, y, **given, **known)
    accepted, outcomes, good, bad = _past_outcomes(classifier, y, given, n)
    header = {
        "classifier": type(classifier).__name__,
        "settings": {key: repr(value) for key, value in classifier.get_params(deep=False).items()},
        "group_mode": mode,
        "columns": asdict(columns),
        "group_names": names,
        "has_groups": values is not None,
        "id_kind": ids.dtype.kind,
        "good": good,
        "bad": bad,
        "reference": Reference.of(
            encoded.X,
            accepted,
            names or (getattr(groups, "name", None),),
            most_frequent=getattr(classifier, "reads_cells", False),
            missing_values=as_missing_values(getattr(classifier, "missing_values", None)),
        ).as_dict(),
        "fairchance": fairchance.__version__,
    }
    applications = list(map(str, ids.tolist()))
    keys = None if same_person is None else same_person.tolist()
    people = PeopleRows(applications, encoded.numbers, encoded.texts, values, person_keys=keys)
    unknown = np.full(n, np.nan)
    decisions = DecisionRows(0, accepted, accepted, unknown, unknown)
    return header, Facts(payload=settings), Facts(people, decisions, outcomes, payload=past)


def _past_outcomes(
    fitted: Any, y: Any, given: dict[str, Any], n: int
) -> tuple[NDArray[np.bool_], OutcomeRows | None, Any, Any]:
    """Return who was accepted in a history, the outcomes, and the labels of good and bad."""
    labels = fitted.classes_.tolist()
    if len(labels) != 2:
        raise InputError(f"a ledger needs two outcomes, got {labels}; merge some.")
    decisions = list(getattr(fitted, "decisions_", ()))
    if len(decisions) > 2:
        raise InputError(
            f"a ledger needs two decisions, got {', '.join(map(str, decisions))}; leave out some."
        )
    fitted._intake.check_good()
    good = good_outcome(labels, fitted.pos_label)
    bad = next(label for label in labels if label != good)
    accepted = np.ones(n, np.bool_)
    if given["accepted"] is not None:
        accepted = column(given["accepted"], n, "accepted").astype(np.bool_)
    rows = np.flatnonzero(accepted)
    if not rows.size:
        return accepted, None, good, bad
    states = np.where(as_array(y).reshape(n)[rows] == good, "good", "bad").astype(np.object_)
    if "not_taken" in given:
        states[column(given["not_taken"], n, "not_taken").astype(np.bool_)[rows]] = "not_taken"
    return accepted, OutcomeRows(rows, states.tolist()), good, bad


def _login_name() -> str:
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


def _new_ids(ids: Any, n: int) -> NDArray[Any] | None:
    """Return the ids of new applicants; None if the program is to number them."""
    if ids is None:
        return None
    names = as_ids(ids, n)
    check_spelling(names)
    return names


def _identical(
    encoded: EncodedFeatures, classifier: Any, options: dict[str, Any]
) -> dict[str, int]:
    """Return how many applicants repeat the features of another, if persons could explain it."""
    if "persons" in options or not isinstance(classifier, CertifiedClassifier):
        return {}
    n = len(encoded) - len({*zip(encoded.numbers, encoded.texts, strict=True)})
    return {"identical": n} if n else {}


def _chances(decided: Decisions) -> dict[str, Any]:
    """Return the smallest chance of applicants who could be explored, and how many were tiny."""
    chances = decided.propensity[~decided.exploit & (decided.propensity > 0)]
    least = float(chances.min()) if chances.size else float("nan")
    return {"least": least, "n_hardly": int((chances < TINY).sum())}


def _recorded_decisions(
    reader: Reader,
    shape: Shape,
    entry: Entry,
    encoded: EncodedFeatures,
    groups: list[str] | None,
    ids: Any,
    by_lender: dict[str, Any],
    same_person: NDArray[np.intp] | None,
) -> Decisions:
    """Return the decisions of a recorded batch if it has the content that was sent."""
    facts = reader.facts(entry)
    people, decisions = facts.people, facts.decisions
    assert people is not None
    assert decisions is not None
    rows = _check_same_batch(entry, people, encoded, groups, ids)
    for name, given in by_lender.items():
        recorded = getattr(decisions, name)
        sent = None if given is None else read_flags(given, len(rows), name)
        if (recorded is None) != (sent is None) or (
            sent is not None and not np.array_equal(recorded[rows], sent)
        ):
            raise _recorded_with_other(entry, name)
    stored = None if people.person_keys is None else np.array(people.person_keys)[rows]
    sent_again = _first_rows(stored, len(rows))
    if sent_again is None or same_person is None:
        differs = sent_again is not same_person
    else:
        differs = not np.array_equal(sent_again, same_person)
    if differs:
        raise _recorded_with_other(entry, "persons")
    reasons = None if people.reasons is None else [people.reasons[row] for row in rows]
    return Decisions(
        shape.ids(people.applications)[rows],
        decisions.accepted[rows],
        decisions.exploit[rows],
        decisions.score[rows],
        decisions.propensity[rows],
        decisions.round,
        certified=entry.says["certified"],
        group_mode=entry.says["group_mode"],
        threshold=None if decisions.threshold is None else decisions.threshold[rows],
        reasons=shape.reasons(reasons),
        unlike=tuple(Unlike(**row) for row in entry.says.get("unlike", ())),
        incumbent=None if decisions.incumbent is None else decisions.incumbent[rows],
        barred=None if decisions.barred is None else decisions.barred[rows],
        ramp=entry.says["ramp"],
        status=entry.says["status"],
    )


def _recorded_with_other(entry: Entry, name: str) -> InputError:
    return InputError(
        f"batch {entry.key!r} is recorded with another {name}; send it as recorded, or take "
        f"another name.",
        option="batch",
    )


def _first_rows(persons: Any, n: int) -> NDArray[np.intp] | None:
    """Return the row of each person's first application; None if persons are not known.

    >>> _first_rows(["Ada", "Bob", "Ada"], 3).tolist()
    [0, 1, 0]
    """
    if persons is None:
        return None
    _, first, number = np.unique(read_persons(persons, n), return_index=True, return_inverse=True)
    return np.asarray(first[number])


def _check_same_batch(
    entry: Entry, people: PeopleRows, encoded: EncodedFeatures, groups: list[str] | None, ids: Any
) -> list[int]:
    """Return the recorded row of each applicant that was sent, in any order if they have ids.

    Raises unless the batch is the recorded one, and nothing of it was erased.
    """
    erased = erased_rows(people)
    rows = list(range(len(encoded)))
    if ids is not None:
        # Erased applicants have no id, so their rows stand for ids that are unknown now.
        row_of = {name: row for row, name in enumerate(people.applications) if name is not None}
        gone = iter(np.flatnonzero(erased).tolist())
        sent = map(str, as_ids(ids, len(encoded)).tolist())
        rows = [row_of[name] if name in row_of else next(gone, -1) for name in sent]
    none: Sequence[Any] = [None] * max(len(people), len(rows))
    stored = [*zip(people.numbers, people.texts, people.groups or none[: len(people)], strict=True)]
    given = zip(encoded.numbers, encoded.texts, groups or none[: len(rows)], strict=True)
    if sorted(rows) != list(range(len(people))) or any(
        new != stored[row] and not erased[row] for row, new in zip(rows, given, strict=True)
    ):
        raise InputError(
            f"batch {entry.key!r} is recorded with other applicants ({len(people)}); send it as "
            f"recorded, or take another name.",
            option="batch",
        )
    if erased.any():
        raise InputError(
            f"batch {entry.key!r} has {erased.sum()} erased applicants and cannot be answered "
            f"again; export its decisions, and send others under another name.",
            option="batch",
        )
    return rows
