"""Real batches from the command line: ``secondlook decide`` and ``secondlook observe``."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from secondlook.cli.files.places import check_apart, check_output, check_writable, ledger_files
from secondlook.cli.files.refusals import check_share, refused_path, too_many
from secondlook.cli.files.tables import called, write_table
from secondlook.cli.json_output import as_json
from secondlook.cli.options import Json, errors, status
from secondlook.cli.programs.applicants import BEFORE, Applicants, read_applicants, roles_and_labels
from secondlook.cli.programs.batch_words import (
    alpha_and_delta,
    commonest,
    decided_words,
    overridden_words,
    promise,
    reason_counts,
    refused_words,
    say,
    so_far_words,
    told_words,
)
from secondlook.cli.programs.beyond import (
    beyond_history,
    beyond_words,
    check_like_history,
    insisted_on,
    insisted_words,
)
from secondlook.cli.programs.decision_columns import answer, namesakes, namesakes_words
from secondlook.cli.programs.opening import opened
from secondlook.cli.programs.options import (
    By,
    LedgerUrl,
    MostRefused,
    ProgramName,
    Refused,
    Strict,
    Trusted,
    UnlikeHistory,
)
from secondlook.cli.programs.told_outcomes import Told, read_outcomes
from secondlook.cli.programs.unseen import unseen_values, unseen_words
from secondlook.errors import InputError, LearningWarning, LedgerError

if TYPE_CHECKING:
    from secondlook.core.decisions import Decisions
    from secondlook.ledger.base import Entry
    from secondlook.ledger.program import Program
    from secondlook.ledger.summary import Summary

__all__ = ["decide", "observe"]

_WRITE_AGAIN = (
    "the same command, with another -o if need be, writes them from the record, and so does "
    "secondlook export"
)
_NO_SUMMARY = "everything is recorded and only this summary is missing"
_SHOW_AGAIN = "the same command again shows it"


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
    """
    with errors(json):
        check_share(most_refused)
        no = _places(applicants, out, refused, ledger, json)
        mine = opened(ledger, program, by, trusted, json)
        with status("reading who applies", json):
            sent = read_applicants(mine, applicants, batch, called(applicants))
        if strict:
            sent.refusals.stop(called(applicants))
        _check_usable(sent, most_refused, called(applicants), no, out)
        beyond = beyond_history(getattr(mine.classifier, "feature_ranges_", None), sent.X)
        if sent.recorded is None and not unlike_history:
            check_like_history(beyond, called(applicants))
        with status(f"deciding on {sent.ids.size:,} people", json), warnings.catch_warnings():
            warnings.simplefilter("ignore", LearningWarning)  # the round's record says it too
            decided = _decided(mine, sent, called(applicants), insisted_on(beyond))
        missing = (
            f"the decisions are recorded as batch {sent.name!r} and only their file is missing"
        )
        with status("writing the decisions", json), _on_record(missing, _WRITE_AGAIN):
            no = sent.refusals.write(no, out)
            entry, reasons = _recorded(mine, sent.name)
            write_table(answer(decided, reasons).take(sent.places), out)
        with _on_record(_NO_SUMMARY, _SHOW_AGAIN):
            stands = mine.summary()
            told = _what_was_decided(mine, decided, entry, sent.recorded, stands) | {
                "overridden_since": _overridden_since(mine, sent),
                "unseen": unseen_values(mine, sent.X, sent.groups, decided.round),
                "beyond_history": beyond,
                "unlike_history": entry.says.get("about", {}).get("unlike_history", []),
                "namesakes": namesakes(mine, roles_and_labels(mine)[0].groups),
                "so_far": _so_far(stands),
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


def observe(
    outcomes: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Ids and outcomes: .csv or .parquet, or - for csv on standard input.",
        ),
    ],
    ledger: LedgerUrl,
    program: ProgramName = "main",
    refused: Refused = None,
    strict: Strict = False,
    corrections: Annotated[
        bool,
        typer.Option(
            "--corrections/--no-corrections",
            help="Whether outcomes that contradict the record are corrections, or refused.",
        ),
    ] = True,
    trusted: Trusted = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Record outcomes of accepted people: any time later, in any order and in parts.

    An empty outcome records nothing: who waits for one goes on waiting. What is told again changes
    nothing, and what contradicts the record is kept as a correction; a correction of an outcome
    that was tested drops all certificates, and testing begins again. Rows that cannot be used go to
    a file with the reasons.
    """
    with errors(json):
        no = refused_path(refused, outcomes, "--json" if json else None)
        check_output(no)
        mine = opened(ledger, program, by, trusted, json)
        with status("reading outcomes", json):
            roles, labels = roles_and_labels(mine)
            told = read_outcomes(
                mine, roles, labels, outcomes, called(outcomes), corrections=corrections
            )
            before = mine.checkpoint().number
        if strict:
            told.refusals.stop(called(outcomes))
        no = told.refusals.write(no)
        with status(f"recording {told.news.sum():,} outcomes", json):
            began_again = _tell(mine, told)
        with _on_record(_NO_SUMMARY, _SHOW_AGAIN):
            summary = told.counts() | {
                "certificates_dropped": _dropped_since(mine, before),
                "testing_began_again": began_again,
                "so_far": _so_far(mine.summary()),
                "refused": reason_counts(told.refusals, no),
            }
    if json:
        as_json(summary)
    else:
        lines = [*told_words(summary), so_far_words(summary["so_far"])]
        say([*lines, *refused_words(summary["refused"])], beside_table=no == "-")
    if len(told.refusals) and not told.ids.size and not any(told.empty.values()):
        raise typer.Exit(2)


def _tell(program: Program, told: Told) -> list[dict[str, Any]]:
    """Record what a file says that is new; return where testing began again, after what."""
    never, first = told.states == "indeterminate", told.before == ""
    # Apart, so that it is known what each of them did to the tests.
    parts = {
        "outcomes": told.news & ~never & first,
        "correction": told.news & ~never & ~first,
        "withdrawal": told.news & never,
    }
    parts = {after: which for after, which in parts.items() if which.any()}
    again = program.tell((told.ids[one], told.states[one]) for one in parts.values())
    return [
        asdict(one) | {"after": after}
        for after, found in zip(parts, again, strict=True)
        for one in found
    ]


def _places(source: str, out: str, refused: str | None, ledger: str, json: bool) -> str:
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


@contextmanager
def _on_record(missing: str, then: str) -> Iterator[None]:
    """Say of what goes wrong from here on that nothing is lost."""
    try:
        yield
    except (InputError, OSError) as error:
        raise InputError(f"{missing} ({str(error).partition(';')[0]}); {then}.") from error


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
    from secondlook.ledger.overriding import in_force  # noqa: PLC0415 - with the ledger

    if sent.recorded is None:
        return {"accepted": 0, "rejected": 0}
    with program.ledger.reading(program.name) as reader:
        standing = reader.standing(list(map(str, sent.ids.tolist())))
        by_hand = in_force(reader, standing)
    accepted = int((by_hand & standing.accepted).sum())
    return {"accepted": accepted, "rejected": int(by_hand.sum()) - accepted}


def _dropped_since(program: Program, number: int) -> int:
    """Return how many certificates were dropped after an entry."""
    with program.ledger.reading(program.name) as reader:
        later = [one.says for one in reader.entries(number, kind="certificate")]
    return sum(one["what"] == "dropped" for one in later)


def _so_far(found: Summary) -> dict[str, Any]:
    """Return how many mistakes are known of among the accepted of all rounds, but for overrides."""
    told = found.outcomes
    return {
        "alpha": found.promise.alpha,
        "bad": told.bad,
        "known": told.known,
        "pending": told.pending,
        "fdr": told.fdr,
        "interval": told.interval,
        "by_override": {"accepted": found.overridden.accepted, "known": found.overridden.known},
    }
