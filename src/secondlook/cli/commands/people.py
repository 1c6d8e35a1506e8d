"""People on the record: ``secondlook override``, ``withdraw``, ``hold``, ``release``, ``erase``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from secondlook.cli.files.refusals import Refusals, reason_counts, refused_path, refused_words
from secondlook.cli.files.rows import check_there, trimmed
from secondlook.cli.files.tables import called, check_output, read_listed
from secondlook.cli.input_checks import as_recorded
from secondlook.cli.options import (
    By,
    Json,
    LedgerUrl,
    ProgramName,
    Refused,
    Strict,
    Trusted,
    errors,
    noted,
    opened,
    progress,
    roles_and_labels,
)
from secondlook.cli.output import as_json, people, say
from secondlook.errors import InputError, LedgerWarning

if TYPE_CHECKING:
    from secondlook.ledger.base import Reader, Standing
    from secondlook.ledger.program import Program

# Who cannot, why, in words that follow on "ids that", and what to do.
Wrongs = Sequence[tuple[NDArray[np.bool_], str, str]]
_REMOVE = "remove them"  # what is done with them in any case
File = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE", help="Ids: .csv or .parquet, or - for csv on standard input; or use --id."
    ),
]
Ids = Annotated[
    list[str] | None,
    typer.Option("--id", metavar="ID", help="An application; may be given several times."),
]
Reason = Annotated[
    str, typer.Option(help="Why, in words. It stays on the record, so name nobody in it.")
]


def override(
    ledger: LedgerUrl,
    reason: Reason,
    accept: Annotated[
        bool | None, typer.Option("--accept/--reject", help="What was decided instead.")
    ] = None,
    undo: Annotated[
        bool, typer.Option("--undo", help="Take an override back: as the program decided.")
    ] = False,
    file: File = None,
    ids: Ids = None,
    program: ProgramName = "main",
    refused: Refused = None,
    strict: Strict = False,
    trusted: Trusted = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Record that somebody decided otherwise than the program did, or that this is taken back.

    Outcomes follow the override. Nothing is learned from overridden people, and a certificate
    counts whoever was accepted and then turned away as bad; taking it back does not change that.

    Example: secondlook override --id a17 --accept --reason 'has a guarantor'
    """
    with errors(json):
        if undo == (accept is not None):
            raise InputError(
                f"override takes one of --accept, --reject and --undo, got "
                f"{'two' if undo else 'none'}; give one."
            )
        mine = opened(ledger, program, by, trusted, json)
        if accept is None:
            named = _named(mine, file, ids, refused, json, strict, _not_overridden, "undone")
            if named.ids:
                mine.undo_override(mine.shape.ids(named.ids), reason)
            stand = "stands" if len(named.ids) == 1 else "stand"
            words = f"{people(len(named.ids))} {stand} again as the program decided."
            _tell(named, "undone", words, json)
            return

        to = accept

        def wrong(reader: Reader, standing: Standing) -> Wrongs:
            from secondlook.ledger.objections import to_override  # noqa: PLC0415 - an extra

            return to_override(reader, standing, to)

        named = _named(mine, file, ids, refused, json, strict, wrong, "overridden")
        if named.ids:
            mine.override(mine.shape.ids(named.ids), to, reason)
        words = f"{'accepted' if to else 'rejected'} by hand"
        _tell(named, "overridden", f"{people(len(named.ids))} {words}.", json)


def withdraw(
    ledger: LedgerUrl,
    file: File = None,
    ids: Ids = None,
    program: ProgramName = "main",
    refused: Refused = None,
    strict: Strict = False,
    trusted: Trusted = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Record of accepted people that their outcome will never be known.

    Nothing is learned from them; in the tests of a certificate they count as bad. Where there are
    no certificates, an outcome that is on record can be withdrawn too.

    Example: secondlook withdraw not-taken-up.csv --ledger sqlite:///lender.db
    """
    with errors(json):
        mine = opened(ledger, program, by, trusted, json)
        from secondlook.ledger.objections import to_outcome  # noqa: PLC0415 - an extra
        from secondlook.ledger.outcomes import outcomes_are_final  # noqa: PLC0415

        for_good = outcomes_are_final(mine.classifier)

        def wrong(_reader: Reader, standing: Standing) -> Wrongs:
            known = np.array([one in ("good", "bad") for one in standing.states], np.bool_)
            why = "have an outcome, on which certificates may rest,"
            return [*to_outcome(standing), (known & for_good, why, _REMOVE)]

        named = _named(mine, file, ids, refused, json, strict, wrong, "withdrawn")
        whom = mine.shape.ids(named.ids)
        before = mine.standing(whom).states.count("indeterminate")
        if named.ids:
            mine.withdraw(whom)
        n, already = len(named.ids) - before, f", and {before:,} before" if before else ""
        words = f"{people(n)} withdrawn{already}: no outcome will be known."
        counts = {"withdrawn": n, "withdrawn_before": before}
        _tell(named, "withdrawn", words, json, more=counts)


def hold(
    ledger: LedgerUrl,
    reason: Reason,
    file: File = None,
    ids: Ids = None,
    program: ProgramName = "main",
    refused: Refused = None,
    strict: Strict = False,
    trusted: Trusted = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Keep people from being erased, whatever their age, until they are released.

    Example: secondlook hold disputed.csv --reason 'case 12/31'
    """
    with errors(json):
        mine = opened(ledger, program, by, trusted, json)
        named = _named(mine, file, ids, refused, json, strict, _held(is_held=True), "held")
        mine.hold(mine.shape.ids(named.ids), reason)
        _tell(named, "held", f"{people(len(named.ids))} held.", json)


def release(
    ledger: LedgerUrl,
    reason: Reason,
    file: File = None,
    ids: Ids = None,
    program: ProgramName = "main",
    refused: Refused = None,
    strict: Strict = False,
    trusted: Trusted = None,
    by: By = None,
    json: Json = False,
) -> None:
    """End every hold on people.

    Example: secondlook release disputed.csv --reason 'case 12/31 is settled'
    """
    with errors(json):
        mine = opened(ledger, program, by, trusted, json)
        named = _named(mine, file, ids, refused, json, strict, _held(is_held=False), "released")
        mine.release(mine.shape.ids(named.ids), reason)
        _tell(named, "released", f"{people(len(named.ids))} no longer held.", json)


def erase(
    ledger: LedgerUrl,
    reason: Reason,
    file: File = None,
    ids: Ids = None,
    expired: Annotated[
        bool, typer.Option("--expired", help="Everybody whose retention period is over.")
    ] = False,
    early: Annotated[
        bool, typer.Option("--early", help="Also before that, as when somebody asks for it.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    program: ProgramName = "main",
    refused: Refused = None,
    strict: Strict = False,
    trusted: Trusted = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Erase people for good; decisions on them stay, and the program goes on without them.

    Names, features, groups and reasons leave the record, and all stored states with them. People
    under hold cannot be erased, and others not before their retention period is over. Other
    programs of the ledger that hold the same ids are named, and erased by themselves.

    Example: secondlook erase --expired --reason 'retention period is over'
    """
    with errors(json):
        if not yes and (json or file == "-"):
            raise InputError(
                "with --json, or with ids on standard input, nobody can be asked; add --yes."
            )
        mine = opened(ledger, program, by, trusted, json)
        if expired:
            if file is not None or ids:
                raise InputError(
                    "people are named by --expired, by a file or by --id, got two of these; give "
                    "one."
                )
            named = _Named([str(one) for one in mine.expired().tolist()])
        else:
            named = _named(
                mine, file, ids, refused, json, strict, _not_erasable(mine, early), "erased"
            )
        from secondlook.ledger.retention import also_in  # noqa: PLC0415 - an extra

        notes: list[str] = []
        others = also_in(mine.ledger, program, named.ids)
        if named.ids and not yes:
            question = f"Erase {people(len(named.ids))} of the program {program!r} for good?"
            _ask(question, beside_table=named.no == "-")
        if named.ids:
            with progress(f"erasing {people(len(named.ids))}", json), noted(LedgerWarning) as notes:
                mine.erase(mine.shape.ids(named.ids), reason, early=early)
        stays = "; the decisions stay" if named.ids else ""
        lines = [f"{people(len(named.ids))} erased{stays}.", *_elsewhere(others)]
        if named.ids and ledger.startswith("postgresql"):
            lines.append("PostgreSQL drops them from its files when it is vacuumed: run VACUUM.")
        _tell(named, "erased", "\n".join(lines), json, notes, {"other_programs": others})


@dataclass(frozen=True)
class _Named:
    """Whom a command is about, and which rows of its file are not."""

    ids: list[str]
    refusals: Refusals | None = None
    no: str = ""


def _named(
    program: Program,
    file: str | None,
    ids: list[str] | None,
    refused: str | None,
    json: bool,
    strict: bool,
    wrong: Callable[[Reader, Standing], Wrongs],
    done: str,
) -> _Named:
    """Return whom a command is about, without those whom it cannot be about."""
    if (file is None) == (not ids):
        raise InputError(
            f"people are named by a file or by --id, got {'both' if ids else 'neither'}; give one "
            f"of these."
        )
    erasing = done == "erased"
    if file is None:
        meant = as_recorded(program, ids or [], erasing=erasing)
        return _Named(_all_of(program, list(dict.fromkeys(map(str, meant))), wrong, done))
    no = refused_path(refused, file, "--json" if json else None)
    check_output(no)
    source = called(file)
    sent, column = read_listed(file, roles_and_labels(program)[0].id)
    table = sent.table
    check_there(table, (column,), source)
    given, plain = table[column].to_pylist(), trimmed(table, column)[column].to_pylist()
    listed = [one or "" for one in as_recorded(program, given, plain, erasing=erasing)]
    refusals = Refusals(table, list(listed), sent.as_written, (column,))
    empty = np.array([not one or "\0" in one for one in listed], np.bool_)
    refusals.add(np.flatnonzero(empty), f"{column!r} is empty or holds NUL, so names nobody")
    rows = np.flatnonzero(~empty)
    names, place = np.unique(np.array(listed, np.object_)[rows], return_inverse=True)
    usable = np.ones(names.size, np.bool_)
    for who, why, do in _wrongs(program, names.tolist(), wrong):
        then = "" if do == _REMOVE else f"; {do}"  # the row is left out as it is
        refusals.add(rows[(who & usable)[place]], f"ids that {_whole(why)} cannot be {done}{then}")
        usable &= ~who
    if strict:
        refusals.stop(source)
    return _Named(names[usable].tolist(), refusals, refusals.write(no))


def _all_of(
    program: Program,
    names: list[str],
    wrong: Callable[[Reader, Standing], Wrongs],
    done: str,
) -> list[str]:
    """Return names as they are, or raise if something is wrong with one of them."""
    for who, why, do in _wrongs(program, names, wrong):
        if who.any():
            raise InputError(
                f"ids that {_whole(why)} cannot be {done}, got {names[int(np.argmax(who))]!r}; "
                f"nothing was recorded, {'leave it out' if do == _REMOVE else do}."
            )
    return names


def _whole(why: str) -> str:
    """Return a clause that a sentence can go on after.

    Examples
    --------
    >>> _whole("are under hold"), _whole("are not known, since they are erased")
    ('are under hold', 'are not known, since they are erased,')
    """
    return f"{why}," if "," in why and not why.endswith(",") else why


def _wrongs(
    program: Program, names: list[str], wrong: Callable[[Reader, Standing], Wrongs]
) -> Wrongs:
    with program.ledger.reading(program.name) as reader:
        return wrong(reader, reader.standing(names))


def _not_overridden(reader: Reader, standing: Standing) -> Wrongs:
    from secondlook.ledger.objections import to_undo  # noqa: PLC0415 - an extra

    return to_undo(reader, standing)


def _held(*, is_held: bool) -> Callable[[Reader, Standing], Wrongs]:
    def wrong(reader: Reader, standing: Standing) -> Wrongs:
        from secondlook.ledger.objections import to_hold, to_release  # noqa: PLC0415 - an extra

        return to_hold(standing.persons) if is_held else to_release(reader, standing.persons)

    return wrong


def _not_erasable(program: Program, early: bool) -> Callable[[Reader, Standing], Wrongs]:
    from secondlook.ledger.objections import to_erasure  # noqa: PLC0415 - an extra
    from secondlook.ledger.retention import retention_months  # noqa: PLC0415

    months, now = retention_months(program.about), program.ledger.clock()

    def wrong(reader: Reader, standing: Standing) -> Wrongs:
        return to_erasure(reader, standing.persons, months=months, now=now, early=early)

    return wrong


def _ask(question: str, *, beside_table: bool) -> None:
    try:
        agreed = typer.confirm(question, err=beside_table)
    except (typer.Abort, RuntimeError):  # nobody answers, or standard input is closed
        agreed = False
    if not agreed:
        raise InputError("nobody was erased, since nobody agreed; answer y, or add --yes.")


def _elsewhere(others: dict[str, int]) -> list[str]:
    """Say which other programs hold the same ids, if any does."""
    if not others:
        return []
    n = len(others)
    who = "1 other program holds" if n == 1 else f"{n:,} other programs hold"
    names = ", ".join(f"{name!r} ({count:,})" for name, count in others.items())
    return [
        f"{who} the same ids in this ledger, and kept them: {names}; each program is erased by "
        f"itself (--program)."
    ]


def _tell(
    named: _Named,
    done: str,
    words: str,
    json: bool,
    notes: Sequence[str] = (),
    more: dict[str, Any] | None = None,
) -> None:
    """Say what was done; exit with 2 if that is nothing because rows were refused."""
    told: dict[str, Any] = {done: len(named.ids)} | (more or {})
    told |= {"notes": list(notes)} if notes else {}
    lines = words.splitlines()
    if named.refusals is not None:
        told["refused"] = reason_counts(named.refusals, named.no)
        lines += refused_words(told["refused"])
    if json:
        as_json(told)
    else:
        say(lines, beside_table=named.no == "-")
    if named.refusals and not named.ids:
        raise typer.Exit(2)
