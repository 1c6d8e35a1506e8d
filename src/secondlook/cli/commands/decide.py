"""Real batches from the command line: ``secondlook decide`` and ``secondlook observe``."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from secondlook.cli.files.csv_files import arrow
from secondlook.cli.files.refusals import (
    Refusals,
    check_share,
    commonest,
    reason_counts,
    refused_path,
    refused_words,
    too_many,
)
from secondlook.cli.files.rows import group_levels, people, split_rows, text_columns
from secondlook.cli.files.tables import (
    called,
    check_apart,
    check_writable,
    ledger_files,
    read_sent,
    write_table,
)
from secondlook.cli.input_checks import (
    ANSWERED,
    as_recorded,
    beyond_history,
    beyond_words,
    check_like_history,
    insisted_on,
    insisted_words,
    mistakable_ids,
    namesakes,
    namesakes_words,
    unseen_values,
    unseen_words,
)
from secondlook.cli.messages import (
    NO_SUMMARY,
    SHOW_AGAIN,
    alpha_and_delta,
    in_order,
    on_record,
    percent,
    so_far,
    so_far_words,
    waits,
)
from secondlook.cli.options import (
    By,
    Json,
    LedgerUrl,
    MostRefused,
    ProgramName,
    Strict,
    Trusted,
    UnlikeHistory,
    errors,
    opened,
    progress,
    roles_and_labels,
)
from secondlook.cli.output import as_json, say
from secondlook.errors import InputError, LearningWarning, LedgerError

if TYPE_CHECKING:
    from secondlook.core.decisions import Decisions
    from secondlook.core.groups import Attributes
    from secondlook.ledger.base import Entry, Reader, Standing
    from secondlook.ledger.config import Roles
    from secondlook.ledger.encoding import Shape
    from secondlook.ledger.program import Program
    from secondlook.ledger.summary import NextTested, Summary

_WRITE_AGAIN = (
    "the same command, with another -o if need be, writes them from the record, and so does "
    "secondlook export"
)


def decide(
    applicants: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="Who applies: .csv or .parquet, or - for csv on standard input."
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Where decisions go: .csv or .parquet, or - for csv on standard output.",
        ),
    ],
    ledger: LedgerUrl,
    program: ProgramName = "main",
    batch: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A name for the batch; default one at random."),
    ] = None,
    refused: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Where refused rows go, with the reason; default <input>.refused.csv beside the "
            "decisions, and never over another file.",
        ),
    ] = None,
    most_refused: MostRefused = 0.5,
    unlike_history: UnlikeHistory = False,
    strict: Strict = False,
    trusted: Trusted = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Decide on everybody in a file, record that, and write the decisions.

    Rows that cannot be used go to a file with the reasons, and the rest goes on, unless more than
    half are such rows: then nothing is recorded. People decided on before do not count there. Nor
    is anything recorded if most numbers of a column are beyond those of the history. The same
    command given again, after a crash for example, answers from the record and decides nothing
    anew.

    Example: secondlook decide applicants.csv -o decisions.csv --ledger sqlite:///lender.db
    """
    with errors(json):
        check_share(most_refused)
        no = _check_places(applicants, out, refused, ledger, json)
        mine = opened(ledger, program, by, trusted, json)
        with progress("reading who applies", json):
            sent = read_applicants(mine, applicants, batch, called(applicants))
        if strict:
            sent.refusals.stop(called(applicants))
        _check_usable(sent, most_refused, called(applicants), no, out)
        beyond = beyond_history(getattr(mine.classifier, "feature_ranges_", None), sent.X)
        if sent.recorded is None and not unlike_history:
            check_like_history(beyond, called(applicants))
        with progress(f"deciding on {sent.ids.size:,} people", json), warnings.catch_warnings():
            warnings.simplefilter("ignore", LearningWarning)  # the round's record says it too
            decided = _decided(mine, sent, called(applicants), insisted_on(beyond))
        missing = (
            f"the decisions are recorded as batch {sent.name!r} and only their file is missing"
        )
        with progress("writing the decisions", json), on_record(missing, _WRITE_AGAIN):
            no = sent.refusals.write(no, out)
            entry, reasons = _recorded(mine, sent.name)
            write_table(answer(decided, reasons).take(sent.places), out)
        with on_record(NO_SUMMARY, SHOW_AGAIN):
            stands = mine.summary()
            told = _what_was_decided(mine, decided, entry, sent.recorded, stands) | {
                "overridden_since": _overridden_since(mine, sent),
                "unseen": unseen_values(mine, sent.X, sent.groups, decided.round),
                "beyond_history": beyond,
                "unlike_history": entry.says.get("about", {}).get("unlike_history", []),
                "namesakes": namesakes(mine, roles_and_labels(mine)[0].groups),
                "so_far": so_far(stands),
                "refused": reason_counts(sent.refusals, no),
                "out": out,
            }
    if json:
        as_json(told)
    else:
        lines = [
            *decided_words(told),
            *overridden_words(told["overridden_since"]),
            *namesakes_words(told["namesakes"]),
            *unseen_words(told["unseen"]),
            *beyond_words(told["beyond_history"]),
            *insisted_words(told["unlike_history"], certified=told["certified"]),
            so_far_words(told["so_far"]),
            *refused_words(told["refused"]),
        ]
        say(lines, beside_table="-" in (out, no))


def _check_places(source: str, out: str, refused: str | None, ledger: str, json: bool) -> str:
    """Check that all can be written before anything is decided; return where refused rows go."""
    check_writable(out)
    if json and out == "-":
        raise InputError("--json and -o - both write to standard output; name a file with -o.")
    no = refused_path(refused, source, "--json" if json else "-o -" if out == "-" else None)
    if refused is None and out != "-":
        no = str(Path(out).with_name(no))
    for what, path, other, taken in (
        ("the decisions", out, "the input", [source]),
        ("refused rows", no, "the input", [source]),
        ("refused rows", no, "the decisions", [out]),
        ("the decisions", out, "the ledger", ledger_files(ledger)),
    ):
        check_apart(what, path, other, taken)
    return no


def _decided(program: Program, sent: Applicants, source: str, about: dict[str, Any]) -> Decisions:
    """Decide a batch; say so if others decided on its people since they were looked up."""
    try:
        return program.decide(
            sent.X, sensitive_features=sent.groups, ids=sent.ids, batch=sent.name, about=about
        )
    except LedgerError:
        raise
    except InputError as error:
        if sent.recorded is None and (program.standing(sent.ids).persons >= 0).any():
            raise InputError(
                f"people of {source} were decided on by another process just now, and nothing was "
                f"decided here; give the same command again, which answers from the record."
            ) from error
        raise


def _check_usable(sent: Applicants, most: float, source: str, no: str, out: str) -> None:
    """Raise if nobody can be decided on, or too many rows are refused; these are written then."""
    if sent.recorded is not None:
        if not sent.ids.size:
            raise InputError(
                f"the batch {sent.name!r} was recorded with other people than those of {source}; "
                f"nothing was decided, send what was sent then or take another name."
            )
        return
    many = too_many(sent.refusals, most, source, apart=sent.n_before)
    if sent.ids.size and many is None:
        return
    no = sent.refusals.write(no, out)
    if not sent.ids.size:
        again = ""
        if all(one.reason.startswith(f"{BEFORE}(round") for one in sent.refusals.causes()):
            again = (
                ", secondlook export has the decisions, and a whole batch that is sent without "
                "--batch is answered from the record"
            )
        raise InputError(
            f"none of the {len(sent.refusals)} rows of {source} can be used, "
            f"{commonest(sent.refusals)}, so nothing was decided; {no} has them with the reasons"
            f"{again}."
        )
    raise InputError(
        f"{many}, {commonest(sent.refusals, apart=BEFORE)}; nothing was decided or recorded, mend "
        f"the file and send it again, {no} has the rows with the reasons."
    )


def _recorded(program: Program, batch: str) -> tuple[Entry, list[str | None]]:
    """Return a batch's entry, and what spoke against each person in words."""
    from secondlook.people.reasons import decode, in_words  # noqa: PLC0415 - with the ledger

    with program.ledger.reading(program.name) as reader:
        entry = reader.entry("batch", batch)
        assert entry is not None
        found = reader.facts(entry).people
    assert found is not None
    reference = program.shape.reference
    names = () if reference is None else reference.names
    stored = [None] * len(found) if found.reasons is None else found.reasons
    return entry, [None if one is None else in_words(decode(one, names)) for one in stored]


def _what_was_decided(
    program: Program, decided: Decisions, entry: Entry, before: Entry | None, stands: Summary
) -> dict[str, Any]:
    alpha, delta = alpha_and_delta(program.classifier)
    accepted, explored = int(decided.accepted.sum()), int(decided.explored.sum())
    return {
        "batch": entry.key,
        "round": decided.round,
        "recorded_before": None if before is None else {"at": before.at, "by": before.by},
        "people": len(decided),
        "accepted": accepted,
        "exploited": accepted - explored,
        "explored": explored,
        "rejected": len(decided) - accepted,
        "certified": bool(decided.certified),
        "promise": promise(entry.says["rounds"], alpha, delta, stands),
    }


def _overridden_since(program: Program, sent: Applicants) -> dict[str, int]:
    """Return for how many people of a batch that was recorded before an override holds by now."""
    from secondlook.ledger.objections import overrides_in_force  # noqa: PLC0415 - with the ledger

    if sent.recorded is None:
        return {"accepted": 0, "rejected": 0}
    with program.ledger.reading(program.name) as reader:
        standing = reader.standing(list(map(str, sent.ids.tolist())))
        by_hand = overrides_in_force(reader, standing)
    accepted = int((by_hand & standing.accepted).sum())
    return {"accepted": accepted, "rejected": int(by_hand.sum()) - accepted}


BEFORE = "the id was decided on before "  # nothing else is wrong with such a row
_WHOLE = re.compile(r"0|-?[1-9][0-9]*")  # spelled as a whole number is written back
_LEAST, _MOST = -(2**63), 2**63 - 1  # that an id can be


@dataclass(frozen=True)
class Applicants:
    """A batch as a program takes it.

    Attributes
    ----------
    X, groups, ids
        Features, group values and names of the applications, in the order of the record if the
        batch is recorded.
    places
        Where among these the usable rows of the file are, in the file's order.
    name
        What the batch is called in the record.
    recorded
        Its entry, if it was recorded before.
    refusals
        The rows of the file that are left out.
    n_before
        How many of these are of people who were decided on before, and in nothing else wrong.
    """

    X: Any
    groups: Any
    ids: NDArray[Any]
    places: NDArray[np.int64]
    name: str
    recorded: Entry | None
    refusals: Refusals
    n_before: int


def read_applicants(program: Program, path: str, batch: str | None, source: str) -> Applicants:
    """Read a file of applicants.

    Somebody who was decided on before is left out, unless it was in this very batch: so a file
    that is sent again gives the same batch as the first time, whatever the order of its rows.
    Whoever is not known is left out too if others in the file are of a batch that has erased
    people: it may be one of these, who would be decided on twice.

    Parameters
    ----------
    program
        Who will decide.
    path
        The file, as for ``read_table``.
    batch
        A name for the batch; None takes one at random, or that of the batch which people are of.
    source
        What messages call the file.
    """
    shape, classifier = program.shape, program.classifier
    roles, _ = roles_and_labels(program)
    if batch is not None and not batch.strip():
        raise InputError(
            "a batch's name must have letters, got an empty one; give a name or leave out --batch."
        )
    if shape.columns.names is None:
        raise InputError(
            f"the history of program {program.name!r} had no names for its columns, so those of a "
            f"file cannot be told apart; decide from Python, or start a program from a table."
        )
    if roles.id in {*shape.columns.names, *roles.groups}:
        raise InputError(
            f"the program {program.name!r} knows people by a column {roles.id!r}, which in a file "
            f"is the name of the application; decide from Python, or start a program in which it "
            f"is called otherwise."
        )
    from sklearn.utils import get_tags  # noqa: PLC0415 - slow to import

    from secondlook.ledger.encoding import known_groups  # noqa: PLC0415 - an extra

    known = known_groups(classifier)
    file = read_sent(path, text=text_columns(roles, shape.columns))
    table, refusals = split_rows(
        file.table,
        roles,
        shape.columns,
        groups=known,
        missing=program.about.get("missing", get_tags(classifier).input_tags.allow_nan),
        source=source,
        as_written=file.as_written,
        names_of=lambda given, plain: as_recorded(program, given, plain),
    )
    if shape.id_kind == "i":
        table = _with_whole_ids(table, roles.id, refusals)
    odd = mistakable_ids(table[roles.id].to_pylist(), roles.id, refusals, program)
    table = table.filter(arrow().array(~odd))
    with program.ledger.reading(program.name) as reader:
        standing = reader.standing(table[roles.id].to_pylist())
        named = None if batch is None else reader.entry("batch", batch)
        unsure, reason = _maybe_erased(reader, standing.persons, named)
        known_rows = standing.persons[~unsure]
        recorded = named if batch is not None else _batch_of(reader, known_rows)
    name = batch or (token_hex(6) if recorded is None else recorded.key)
    before, words = _decided_elsewhere(standing, recorded)
    rows, unsure = np.flatnonzero(refusals.usable), unsure & ~before
    refusals.add(rows[unsure], reason)
    refusals.add_each(
        rows[before],
        BEFORE,
        words,
        "; somebody who applies again needs a new one",
    )
    left_out = unsure | before
    table = table.filter(arrow().array(~left_out))
    places = _places(standing.persons[~left_out], recorded)
    sent = table.take(np.argsort(places))
    n_before = int(before.sum())
    X, groups, ids = _as_sent(sent, roles, shape, known)
    return Applicants(X, groups, ids, places, name, recorded, refusals, n_before)


def _with_whole_ids(table: Any, column: str, refusals: Refusals) -> Any:
    """Return the rows whose ids are whole numbers that a program can keep; refuse the others."""
    listed, rows = table[column].to_pylist(), np.flatnonzero(refusals.usable)
    whole = np.array([_WHOLE.fullmatch(one) is not None for one in listed], np.bool_)
    fits = np.array(
        [there and _LEAST <= int(one) <= _MOST for there, one in zip(whole, listed, strict=True)],
        np.bool_,
    )
    refusals.add(rows[~whole], f"{column!r} must be a whole number, as in the history")
    reason = f"{column!r} must be a whole number from {_LEAST} to {_MOST}, as in the history"
    refusals.add(rows[whole & ~fits], reason)
    return table.filter(arrow().array(fits))


def _as_sent(
    table: Any, roles: Roles, shape: Shape, known: Attributes | None
) -> tuple[Any, Any, NDArray[Any]]:
    """Return features, group values and ids, of the kinds that the history had."""
    X, groups, names = people(table, roles, shape.columns)
    if groups is not None and known is not None:
        columns = [
            values[group_levels(groups[name], values)]
            for name, values in zip(roles.groups, known.values, strict=True)
        ]
        groups = arrow().table(dict(zip(roles.groups, columns, strict=True)))
        if shape.group_names is None:
            groups = columns[0]
    return X, groups, shape.ids(names.tolist())


def _maybe_erased(
    reader: Reader, persons: NDArray[np.int64], named: Entry | None
) -> tuple[NDArray[np.bool_], str]:
    """Say who is not known and may be an erased person of a batch that others are of, and why.

    The history counts as a batch here. The batch that was named is left to the program, which
    compares what was sent with it.
    """
    nobody = np.zeros(persons.size, np.bool_)
    unknown, known = persons < 0, np.sort(persons[persons >= 0])
    if not unknown.any() or not known.size:
        return nobody, ""
    found = [reader.facts(entry).erased for entry in reader.entries(kind="erasure")]
    gone = np.sort(np.concatenate([one for one in found if one is not None] or [known[:0]]))
    batches = (entry for kind in ("history", "batch") for entry in reader.entries(kind=kind))
    for entry in batches if gone.size else ():
        rows = entry.says["rows"]
        ends = rows["first"], rows["first"] + rows["n"]
        here, lost = (np.diff(np.searchsorted(one, ends)).item() for one in (known, gone))
        if here and lost and (named is None or named.number != entry.number):
            what = "the history" if entry.kind == "history" else f"batch {entry.key!r}"
            return unknown, (
                f"{what} has erased people, and this may be one of them; send new applicants in a "
                f"file of their own"
            )
    return nobody, ""


def _batch_of(reader: Reader, persons: NDArray[np.int64]) -> Entry | None:
    """Return the newest batch that people are of, if all are known and all of that batch are there.

    No name made from the content would do as well: it would outlive the people when they are
    erased, and whoever guesses their data could tell that they were right.
    """
    if not persons.size or persons.min() < 0:
        return None
    for entry in reader.newest_first("batch"):
        rows = entry.says["rows"]
        if rows["first"] <= persons.max():
            return entry if int((persons >= rows["first"]).sum()) == rows["n"] else None
    return None


def _decided_elsewhere(
    standing: Standing, recorded: Entry | None
) -> tuple[NDArray[np.bool_], list[str]]:
    """Say who was decided on before, and not in this batch, and when in words."""
    known = standing.persons >= 0
    if recorded is not None:
        rows = recorded.says["rows"]
        end = rows["first"] + rows["n"]
        known &= (standing.persons < rows["first"]) | (standing.persons >= end)
    return known, [
        f"(round {t})" if t else "(in the history)" for t in standing.round[known].tolist()
    ]


def _places(persons: NDArray[np.int64], recorded: Entry | None) -> NDArray[np.int64]:
    """Return where in a recorded batch people are; as they come if they are not all of it."""
    if recorded is not None:
        rows = recorded.says["rows"]
        places: NDArray[np.int64] = persons - rows["first"]
        if np.array_equal(np.sort(places), np.arange(rows["n"])):
            return places
    return np.arange(persons.size)


def answer(decided: Decisions, reasons: list[str | None]) -> Any:
    """Return decisions as they are handed out."""
    pa, n = arrow(), len(decided)
    threshold = np.full(n, np.nan) if decided.threshold is None else decided.threshold
    columns = (
        decided.ids,
        np.where(decided.accepted, "accept", "reject"),
        decided.region,
        decided.score,
        threshold,
        decided.propensity,
        np.full(n, decided.round),
        np.full(n, decided.certified),
    )
    arrays = [pa.array(one, from_pandas=True) for one in columns]
    return pa.table([*arrays, pa.array(reasons, pa.string())], names=list(ANSWERED))


# What a round's message says if outcomes did not help.
_DO_NOT_SPEAK = "outcomes so far do not speak for it"


def promise(
    rounds: Sequence[dict[str, Any]],
    alpha: float | None,
    delta: float | None,
    found: Summary | None = None,
) -> str:
    """Return in words what a round promises, from its record.

    Parameters
    ----------
    rounds
        What the classifier noted, one for each certificate.
    alpha, delta
        What is to be promised.
    found
        How the program stands, which tells what the tests of a pilot wait for.

    Examples
    --------
    >>> pilot = {"status": "pilot", "group": None, "more_outcomes": 120.4, "message": ""}
    >>> promise([pilot], 0.15, 0.1)
    'Pilot: no promise yet; about 121 more outcomes are needed for one.'
    >>> promise([pilot | {"more_outcomes": float("inf")}], 0.15, 0.1)
    'Pilot: no promise yet, and too few outcomes to say how many a promise needs.'
    >>> again = "Testing began again with round 7, and 9 outcomes are in the tests since. No rule …"
    >>> promise([pilot | {"message": again, "tests_began": 7}], 0.15, 0.1)
    'Pilot: no promise until there is new evidence. Testing began again with round 7, and 9 outcomes
    are in the tests since; about 121 more outcomes are needed for a promise.'
    >>> promise([{"status": "certified", "group": "B", "share": 0.4, "message": ""}], 0.15, 0.1)
    'Certified for B: with confidence 90 %, at most 15 % bad under the rule of this round.'
    """
    words = [
        _certificate(one, alpha, delta, found) if "status" in one else _estimate(one, alpha)
        for one in rounds
    ]
    return " ".join(dict.fromkeys(words))


def _certificate(
    one: dict[str, Any], alpha: float | None, delta: float | None, found: Summary | None
) -> str:
    whom = "" if one["group"] is None else f" for {one['group']}"
    if one["status"] == "certified":
        sure = f"with confidence {percent(1 - (delta or 0))}, at most {percent(alpha or 0)} bad"
        words = f"Certified{whom}: {sure} under the rule of this round. {one['message']}"
        return words.strip()
    barred = ""
    if one.get("n_unreachable"):
        barred = f" {one['n_unreachable']:,} people cannot be explored for the limits set."
    next_in = None if found is None else found.next_tested(one["group"])
    if one.get("tests_began", 1) == 1:
        words = f"no promise yet{_more_outcomes(one, 'one', ', and too few outcomes', next_in)}"
    else:
        needed = _more_outcomes(one, "a promise", "; that is too few", next_in)
        words = (
            f"no promise until there is new evidence. {one['message'].partition('.')[0]}{needed}"
        )
    return f"Pilot{whom}: {words}.{barred}"


def _more_outcomes(one: dict[str, Any], goal: str, few: str, next_in: NextTested | None) -> str:
    """Say how many more outcomes a promise needs, or why nobody can say, as the end of a clause.

    What is known and not in the tests is told with what they wait for.
    """
    more = float(one["more_outcomes"])
    waiting = "" if next_in is None else f"; {waits(next_in)}{in_order(next_in)}"
    known = waiting if next_in is not None and next_in.n_known else ""
    if math.isfinite(more):
        return f"; about {math.ceil(more):,} more outcomes are needed for {goal}{known}"
    if _DO_NOT_SPEAK in one["message"]:
        why = f"; outcomes so far do not speak for {goal}, so nobody can say how many it needs"
        return f"{why}{known}"
    return waiting or f"{few} to say how many a promise needs"


def _estimate(one: dict[str, Any], alpha: float | None) -> str:
    bound = "" if alpha is None else f" of {percent(alpha)}"
    estimated = float(one["estimated_fdr"])
    if not math.isfinite(estimated):
        held = f"No certificate, and no estimate yet to compare with the bound{bound}."
    else:
        rests = "" if one["calibrated"] else ", and it rests on the history"
        held = (
            f"No certificate: about {percent(estimated)} bad are expected among the accepted, "
            f"against a bound{bound}; an estimate from {one['n_outcomes']:,} outcomes{rests}."
        )
    return f"{held} {one['note']}".strip()


def decided_words(told: dict[str, Any]) -> list[str]:
    """Return a batch's decisions in words."""
    lines = [
        f"Round {told['round']}: {told['accepted']:,} of {told['people']:,} people accepted, "
        f"{told['exploited']:,} in the exploit region and {told['explored']:,} explored."
    ]
    before = told["recorded_before"]
    if before is not None:
        when = before["at"][:19].replace("T", " ")
        lines.insert(
            0,
            f"Recorded before as batch {told['batch']} (by {before['by']} at {when} UTC), answered "
            f"from the record.",
        )
    else:
        lines.append(f"Recorded as batch {told['batch']}.")
    lines.append(told["promise"])
    if told["out"] != "-":
        lines.append(f"Decisions: {told['out']}")
    return lines


def overridden_words(since: dict[str, int]) -> list[str]:
    """Say of a batch that is answered from the record whom people decided on otherwise since.

    Examples
    --------
    >>> print(*overridden_words({"accepted": 0, "rejected": 1}))
    1 of these decisions was overridden by hand since (0 accepted, 1 rejected), and the answer has
    it as it was recorded; secondlook export has what holds now.
    """
    n = sum(since.values())
    if not n:
        return []
    were, them = ("was", "it as it was") if n == 1 else ("were", "them as they were")
    return [
        f"{n:,} of these decisions {were} overridden by hand since ({since['accepted']:,} accepted,"
        f" {since['rejected']:,} rejected), and the answer has {them} recorded; secondlook export "
        f"has what holds now."
    ]
