"""Commands on single applicants: ``override``, ``withdraw``, ``hold``, ``release``, ``erase``.

Applicants are named by a file or by ``--id``. An id given by ``--id`` that cannot be used is an
error; such a row of a file is refused, and the command goes on with the others. All commands take
the options of ``Given``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from itertools import repeat
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from fairchance.cli.files.refusals import (
    Refusals,
    refused_counts,
    refused_message,
    refused_path,
)
from fairchance.cli.files.rows import check_there, roles_and_labels
from fairchance.cli.files.tables import check_output, file_name, read_listed
from fairchance.cli.input_checks import as_recorded
from fairchance.cli.options import (
    By,
    Json,
    LedgerUrl,
    ProgramName,
    Refused,
    RequestName,
    Strict,
    Trusted,
    check_name,
    errors,
    open_program,
    printed_warnings,
    progress,
    repeated,
    repeated_message,
)
from fairchance.cli.output import print_json, print_lines
from fairchance.errors import InputError, LedgerWarning
from fairchance.people.cells import trimmed
from fairchance.words import counted, people

if TYPE_CHECKING:  # an extra, and slow to import
    from fairchance.ledger.base import Standing
    from fairchance.ledger.objections import Objection, Request
    from fairchance.ledger.program import Program, ProgramView

    # Why applicants cannot be changed, given their standing.
    Objections = Callable[[ProgramView, Standing], Sequence[Objection]]
    # The kind of entry to record, and what for each applicant, as in ``Request.done``.
    Asked = tuple[str, Any]

__all__ = ["erase", "hold", "override", "release", "withdraw"]

_COMPACTED = "The files of the ledger are written anew, without erased applicants."
_NOT_COMPACTED = "Run erase --compact, which writes the files of PostgreSQL anew."
_ON_SERVER = "Its write-ahead log, replicas and backups keep them until they are replaced."

_REASON = typer.Option(help="The reason. It is never erased, so it must not name applicants.")
Reason = Annotated[str, _REASON]


def _no_ledger(file: str | None) -> str | None:
    """Return the file, unless it is the ledger, which commands that only read take there."""
    if file is not None and "://" in file:
        raise typer.BadParameter("the ledger is an option of this command; write --ledger URL.")
    return file


@dataclass(frozen=True)
class Given:
    """The options that all commands on applicants take."""

    ledger: LedgerUrl
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            callback=_no_ledger,
            help="Ids: .csv or .parquet, or - for csv on standard input; or use --id.",
        ),
    ] = None
    ids: Annotated[
        list[str] | None,
        typer.Option("--id", metavar="ID", help="An application; may be repeated."),
    ] = None
    program: ProgramName = None
    refused: Refused = None
    request: RequestName = None
    strict: Strict = False
    trusted: Trusted = None
    by: By = None
    json: Json = False

    def open(self) -> Program:
        """Return the program; nothing is read yet."""
        return open_program(self.ledger, self.program, self.by, self.trusted)

    def read(self, view: ProgramView, objections: Objections, done: str, asked: Asked) -> _Chosen:
        """Return the applicants without objections, or those of the request that is repeated.

        ``done`` is the participle for messages; ``asked`` is the kind of entry to record, and what
        for each applicant, as in ``Request.done``.
        """
        if (self.file is None) == (not self.ids):
            raise InputError(
                f"name applicants by a file or by --id, got {'both' if self.ids else 'neither'}."
            )
        recorded = self.recorded(view, asked)

        def left(view: ProgramView, standing: Standing) -> Sequence[Objection]:
            """Return objections to applicants that the request does not cover."""
            found = objections(view, standing)
            if recorded is None:
                return found
            covered = recorded.covers(view.reader, standing, [asked[1]] * standing.persons.size)
            found = [one._replace(applies=one.applies & ~covered) for one in found]
            if not np.logical_or.reduce([covered, *(one.applies for one in found)]).all():
                raise recorded.other_content()
            return found

        if self.file is not None:
            chosen = self._read_file(self.file, view, left, done)
        else:
            chosen = self._read_ids(self.ids or [], view, left, done)
        # The ids of a recorded request may be erased, and are needed no more.
        ids = np.empty(0) if recorded else view.shape.ids(chosen.names)
        return replace(chosen, ids=ids, recorded=recorded)

    def recorded(self, view: ProgramView, asked: Asked) -> Request | None:
        """Return the request of this name, if it is recorded."""
        check_name("request", self.request)
        from fairchance.ledger.objections import Request  # noqa: PLC0415 - an extra

        return Request.recorded(view.reader, asked[0], self.request)

    def _read_ids(
        self, ids: list[str], view: ProgramView, objections: Objections, done: str
    ) -> _Chosen:
        meant = as_recorded(view.reader, ids, erasing=done == "erased")
        names = list(dict.fromkeys(map(str, meant)))
        from fairchance.ledger.objections import check_objections  # noqa: PLC0415 - an extra

        found = objections(view, view.reader.standing(names))
        check_objections(names, found, f"nothing was {done}")
        return _Chosen(names)

    def _read_file(
        self, file: str, view: ProgramView, objections: Objections, done: str
    ) -> _Chosen:
        refused_file = refused_path(self.refused, file, "--json" if self.json else None)
        check_output(refused_file)
        source = file_name(file)
        sent, column = read_listed(file, roles_and_labels(view)[0].id)
        table = sent.table
        check_there(table, (column,), source)
        given, plain = table[column].to_pylist(), trimmed(table, column)[column].to_pylist()
        meant = as_recorded(view.reader, given, plain, erasing=done == "erased")
        listed = [name or "" for name in meant]
        refusals = Refusals(table, list(listed), sent.as_written, (column,))
        no_id = np.array([not name or "\0" in name for name in listed], np.bool_)
        refusals.add(np.flatnonzero(no_id), "no_id", column)
        rows = np.flatnonzero(~no_id)
        names, place = np.unique(np.array(listed, np.object_)[rows], return_inverse=True)
        usable = np.ones(names.size, np.bool_)
        for one in objections(view, view.reader.standing(names.tolist())):
            wrong, until = rows[(one.applies & usable)[place]], repeat(one.until)
            refusals.add(wrong, one.code, values=until, allowed=done, option=one.option)
            usable &= ~one.applies
        if self.strict:
            refusals.stop(source)
        return _Chosen(
            names[usable].tolist(),
            refusals=refusals,
            refused_file=refusals.write(refused_file),
        )


@dataclass(frozen=True)
class _Chosen:
    """The applicants that a command changes, and the rows of its file that are refused.

    ``names`` has the ids as text, ``ids`` in the type of the program's ids; ``recorded`` is the
    request that the command repeats.
    """

    names: list[str]
    ids: NDArray[Any] = field(default_factory=lambda: np.empty(0))
    refusals: Refusals | None = None
    refused_file: str = ""
    recorded: Request | None = None

    def __len__(self) -> int:
        return len(self.names) if self.recorded is None else len(self.recorded.done)

    @property
    def people(self) -> str:
        """How many they are."""
        return people(len(self))

    def record(self, call: Callable[..., Any], *arguments: Any, **options: Any) -> None:
        """Call a method of the program with the ids, unless that was done before."""
        if self.names and self.recorded is None:
            call(self.ids, *arguments, **options)


def _on_applicants(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of ``Given`` in addition to its own, and print its errors."""
    shared = inspect.signature(Given, eval_str=True).parameters
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]

    @wraps(command)
    def run(**options: Any) -> None:
        given = Given(**{name: options.pop(name) for name in shared})
        with errors(given.json):
            command(given, **options)

    ordered = sorted([*shared.values(), *own], key=lambda each: each.default is not each.empty)
    run.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    return run


@_on_applicants
def override(
    given: Given,
    reason: Reason,
    accept: Annotated[
        bool | None, typer.Option("--accept/--reject", help="The decision that replaces it.")
    ] = None,
    undo: Annotated[
        bool, typer.Option("--undo", help="Undo an override: the program's decision holds again.")
    ] = False,
) -> None:
    """Record that a person decided differently from the program, or undo that.

    Outcomes follow the override. The program learns nothing from overridden applicants, and a
    certificate counts applicants who were accepted and then rejected as bad, even after an undo.

    Example: fairchance override --id a17 --accept --reason 'has a guarantor'
    """
    if undo == (accept is not None):
        raise InputError(
            f"give one of --accept, --reject and --undo, got {'two' if undo else 'none'}."
        )
    program = given.open()
    from fairchance.ledger.objections import to_override, to_undo  # noqa: PLC0415 - an extra

    def objections(view: ProgramView, standing: Standing) -> Sequence[Objection]:
        if accept is None:
            return to_undo(view.reader, standing)
        return to_override(view.reader, standing, accept)

    done = "undone" if accept is None else "overridden"
    with program.reading() as view:
        chosen = given.read(view, objections, done, ("override", (accept, reason)))
    if accept is None:
        chosen.record(program.undo_override, reason, request=given.request)
        message = f"Override undone for {chosen.people}."
    else:
        chosen.record(program.override, accept, reason, request=given.request)
        message = f"{chosen.people} {'accepted' if accept else 'rejected'} by override."
    _finish(chosen, {done: len(chosen)}, [message], given.json)


@_on_applicants
def withdraw(given: Given) -> None:
    """Record that the outcome of accepted applicants will never be known.

    The program learns nothing from them; the tests of a certificate count them as bad. In a
    program without certificates, a recorded outcome can be withdrawn too.

    Example: fairchance withdraw sold-loans.csv --ledger sqlite:///lender.db
    """
    program = given.open()
    from fairchance.ledger.objections import Objection, to_outcome  # noqa: PLC0415 - an extra
    from fairchance.ledger.outcomes import outcomes_are_final  # noqa: PLC0415

    def objections(view: ProgramView, standing: Standing) -> Sequence[Objection]:
        known = np.array([state not in (None, "withdrawn") for state in standing.states], np.bool_)
        final = known & outcomes_are_final(view.classifier)
        return [*to_outcome(standing), Objection(final, "final_outcome")]

    with program.reading() as view:
        chosen = given.read(view, objections, "withdrawn", ("outcomes", "withdrawn"))
        before = view.reader.standing(chosen.names).states.count("withdrawn")
    if chosen.recorded is not None:
        before = len(chosen.names) - len(chosen)
    chosen.record(program.withdraw, request=given.request)
    n = len(chosen.names) - before
    already = f", {before:,} were withdrawn before" if before else ""
    message = f"{people(n)} withdrawn: no outcome will be known{already}."
    _finish(chosen, {"withdrawn": n, "withdrawn_before": before}, [message], given.json)


@_on_applicants
def hold(given: Given, reason: Reason) -> None:
    """Protect applicants from erasure until they are released.

    Example: fairchance hold disputed.csv --reason 'case 12/31'
    """
    program = given.open()
    from fairchance.ledger.objections import to_hold  # noqa: PLC0415 - an extra

    with program.reading() as view:
        asked = "hold", (True, reason)
        chosen = given.read(view, lambda _, standing: to_hold(standing.persons), "held", asked)
    chosen.record(program.hold, reason, request=given.request)
    _finish(chosen, {"held": len(chosen)}, [f"{chosen.people} held."], given.json)


@_on_applicants
def release(given: Given, reason: Reason) -> None:
    """End all holds on applicants.

    Example: fairchance release disputed.csv --reason 'case 12/31 is settled'
    """
    program = given.open()
    from fairchance.ledger.objections import to_release  # noqa: PLC0415 - an extra

    def objections(view: ProgramView, standing: Standing) -> Sequence[Objection]:
        return to_release(view.reader, standing.persons)

    with program.reading() as view:
        chosen = given.read(view, objections, "released", ("hold", (False, reason)))
    chosen.record(program.release, reason, request=given.request)
    message = f"{chosen.people} no longer held."
    _finish(chosen, {"released": len(chosen)}, [message], given.json)


@_on_applicants
def erase(
    given: Given,
    reason: Annotated[str | None, _REASON] = None,
    expired: Annotated[
        bool,
        typer.Option("--expired", help="All applicants past their retention period."),
    ] = False,
    early: Annotated[
        bool,
        typer.Option("--early", help="Also before that, for example if an applicant asks for it."),
    ] = False,
    compact: Annotated[
        bool,
        typer.Option(
            "--compact",
            help="Write the files of the ledger anew, without erased applicants. SQLite does so "
            "with every erasure; PostgreSQL locks the tables meanwhile.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Erase applicants for good; their decisions stay, and the program goes on without them.

    Ids, features, groups and reasons are deleted, and all stored states with them. Applicants
    under hold cannot be erased, and others only after their retention period. Other programs of
    the ledger with the same ids are named; erase them there separately. With --compact and no
    applicants, the command finishes what earlier erasures left in the files.

    Example: fairchance erase --expired --reason 'retention period is over'
    """
    if compact and not (expired or given.file or given.ids):
        from fairchance.ledger import SqlLedger  # noqa: PLC0415 - an extra

        with progress("writing the files of the ledger anew", given.json):
            SqlLedger(given.ledger).compact()
        _finish(_Chosen([]), {"compacted": True}, [_COMPACTED], given.json)
        return
    if reason is None:
        raise InputError("an erasure needs a reason; give it as --reason.")
    _check_erasure(given, expired=expired, yes=yes)
    program = given.open()
    from fairchance.ledger.objections import to_erasure  # noqa: PLC0415 - an extra
    from fairchance.ledger.retention import also_in, retention_months  # noqa: PLC0415

    def objections(view: ProgramView, standing: Standing) -> Sequence[Objection]:
        months = retention_months(view.about)
        now = view.reader.believed(program.ledger.clock())
        return to_erasure(view.reader, standing.persons, months=months, now=now, early=early)

    if expired:
        chosen = _expired(given, program, reason)
    else:
        with program.reading() as view:
            chosen = given.read(view, objections, "erased", ("erasure", reason))
    others = also_in(program.ledger, program.name, chosen.names)
    n, warned = chosen.people, []
    if chosen.recorded is not None:
        program.ledger.compact(lock=compact)  # in case that was not reached
    elif chosen.names:
        if not yes:
            _confirm(f"Erase {n} of the program {program.name!r} for good?", chosen)
        with progress(f"erasing {n}", given.json), printed_warnings(LedgerWarning) as warned:
            chosen.record(
                program.erase, reason, early=early, compact=compact, request=given.request
            )
    lines = [f"{n} erased; the decisions stay." if len(chosen) else f"{n} erased."]
    lines += _other_programs_message(others)
    if len(chosen) and given.ledger.startswith("postgres"):
        lines.append(_ON_SERVER if compact else f"{_NOT_COMPACTED} {_ON_SERVER}")
    result: dict[str, Any] = {"erased": len(chosen), "other_programs": others}
    _finish(chosen, result | ({"notes": warned} if warned else {}), lines, given.json)


def _check_erasure(given: Given, *, expired: bool, yes: bool) -> None:
    """Raise if options contradict each other, or nothing could be confirmed."""
    if not yes and (given.json or given.file == "-"):
        raise InputError(
            "nothing can be confirmed with --json or ids on standard input; add --yes."
        )
    if expired and (given.file is not None or given.ids):
        raise InputError("name applicants by --expired, by a file or by --id, and only once.")


def _expired(given: Given, program: Program, reason: str) -> _Chosen:
    """Return the applicants past their retention period; those of a recorded request are gone."""
    with program.reading() as view:
        recorded = given.recorded(view, ("erasure", reason))
    if recorded is None:
        ids = program.expired()
        return _Chosen([str(name) for name in ids.tolist()], ids)
    if {*recorded.done.values()} != {reason}:
        raise recorded.other_content()
    return _Chosen([], recorded=recorded)


def _confirm(question: str, chosen: _Chosen) -> None:
    try:
        confirmed = typer.confirm(question, err=chosen.refused_file == "-")
    except (typer.Abort, RuntimeError):  # no answer, or standard input is closed
        confirmed = False
    if not confirmed:
        raise InputError("nothing was erased without a confirmation; answer y, or add --yes.")


def _other_programs_message(others: dict[str, int]) -> list[str]:
    """Name other programs with the same ids."""
    if not others:
        return []
    names = ", ".join(f"{name!r} ({n:,})" for name, n in others.items())
    programs = counted(len(others), "other program has", "other programs have")
    return [f"{programs} the same ids: {names}; erase them there too (--program)."]


def _finish(chosen: _Chosen, result: dict[str, Any], lines: list[str], json: bool) -> None:
    """Print the result; exit with 2 if nothing was done because rows were refused."""
    if chosen.recorded is not None:
        result["repeats"] = repeated(chosen.recorded)
        lines = [repeated_message(result["repeats"]), *lines]
    if chosen.refusals is not None:
        result["refused"] = refused_counts(chosen.refusals, chosen.refused_file)
        lines = [*lines, *refused_message(result["refused"])]
    if json:
        print_json(result)
    else:
        print_lines(lines, to_stderr=chosen.refused_file == "-")
    if chosen.refusals and not chosen.names:
        raise typer.Exit(2)
