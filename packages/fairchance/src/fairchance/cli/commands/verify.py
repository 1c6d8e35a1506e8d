"""``fairchance verify``: check a ledger and make its decisions again."""

from __future__ import annotations

import codecs
import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairchance.cli.files.csv_files import first_line
from fairchance.cli.options import (
    VERIFICATION_FAILED,
    Json,
    MaybeLedgerUrl,
    ProgramName,
    ReadUrl,
    Trusted,
    errors,
    ledger_url,
    progress,
)
from fairchance.cli.output import print_json, print_lines
from fairchance.errors import InputError
from fairchance.words import counted, moved

if TYPE_CHECKING:
    from fairchance.ledger.verification.proofs import GroupTrial, OtherVersions
    from fairchance.ledger.verification.walk import Verification

__all__ = ["as_data", "in_words", "verify"]

_NO_CHECKPOINT = "No new checkpoint is given, since not everything fits."
_CHECKPOINT = re.compile(r"\s*\d+(:|$)")  # the beginning of a checkpoint; file names differ


def verify(
    place: ReadUrl = None,
    ledger: MaybeLedgerUrl = None,
    program: ProgramName = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT|FILE",
            help="A checkpoint that was printed earlier, or a file that holds it.",
        ),
    ] = None,
    relearn: Annotated[
        bool,
        typer.Option(
            "--relearn", help="Also learn every policy again from the outcomes known then; slow."
        ),
    ] = False,
    trusted: Trusted = None,
    json: Json = False,
) -> None:
    """Check a ledger's chain and make every decision again; exit code 4 if something differs.

    Decisions are made again from the stored policies, the applications and the keyed randomness.
    The command prints a checkpoint: store it elsewhere, and pass it next time.

    Example: fairchance verify sqlite:///lender.db
    """
    with errors(json):
        url = ledger_url(place, ledger)
        from fairchance.ledger import SqlLedger  # noqa: PLC0415 - an extra
        from fairchance.ledger import verify as prove  # noqa: PLC0415

        kept = None if checkpoint is None else _text_of(checkpoint)
        with progress("making every decision again", json):
            result = prove(url, program, checkpoint=kept, trusted=trusted or (), relearn=relearn)
        checked = result.head.program
        others = (
            [name for name in SqlLedger(url).programs() if name != checked] if result.ok else []
        )
    if json:
        print_json(as_data(result) | {"other_programs": others})
    else:
        lines = in_words(result)
        if others:
            listed = ", ".join(map(repr, others))
            text = f"Only the program {checked!r} was checked; the ledger has {listed}"
            lines.insert(-1, text)
        print_lines(lines)
    if not result.ok:
        raise typer.Exit(VERIFICATION_FAILED)


def as_data(result: Verification) -> dict[str, Any]:
    """Return a verification as plain data for JSON."""
    return {
        "ok": result.ok,
        "message": result.problem,
        "checkpoint": str(result.head) if result.ok else None,
        "entries": result.n_entries,
        "decisions": result.n_decisions,
        "not_repeated": result.n_not_repeated,
        "learned_again": result.n_learned_again,
        "not_learned_from": result.not_learned_from,
        "skipped": [asdict(one) for one in result.skipped],
        "groups": asdict(result.groups),
        "open_round": None if result.open_round is None else asdict(result.open_round),
        "not_checked": result.not_checked,
        "moved": None
        if result.moved is None
        else {"to": result.moved.moved_to, "at": result.moved.at, "by": result.moved.by},
    }


def in_words(result: Verification) -> list[str]:
    """Return a verification as lines, the checkpoint last."""
    lines = [result.problem or "Everything fits."]
    if result.moved is not None and result.moved.moved_to is not None:
        gone = moved(result.moved.moved_to, result.moved.at, result.moved.by)
        lines.append(f"The program {gone}")
    erased = ""
    if result.n_not_repeated:
        erased = f", {result.n_not_repeated:,} not (erased, or drawn with erased ones)"
    learned = result.n_learned_again
    policies = "" if learned is None else f"; {learned:,} by policies learned again"
    if result.not_learned_from is not None:
        policies += f" (people of {result.not_learned_from} were erased)"
    again = f"{counted(result.n_decisions, 'decision')} made again{erased}{policies}"
    up_to = "" if result.ok else "Up to there "
    lines.append(f"{up_to}{counted(result.n_entries, 'entry', 'entries')} checked, {again}")
    lines += map(_skipped_message, result.skipped)
    if result.open_round is not None:
        lines.append(
            f"Round {result.open_round.round} is open: its "
            f"{counted(result.open_round.n_decisions, 'decision')} follow from its policy; that "
            f"none is missing can be proved once it is closed"
        )
    if result.ok:
        lines.append(_groups_message(result.groups))
        if result.not_checked is not None:
            lines.append(f"Not checked: {result.not_checked}")
    return [*lines, f"Checkpoint: {result.head}" if result.ok else _NO_CHECKPOINT]


def _skipped_message(skipped: OtherVersions) -> str:
    """Say what was not learned again, and which other versions learned it.

    Examples
    --------
    >>> from fairchance.ledger.verification.proofs import OtherVersions
    >>> _skipped_message(OtherVersions({"numpy": "1.0"}, 1200))
    'Not learned again: 1,200 decisions, made with other versions (numpy 1.0)'
    """
    from fairchance.core.versions import versions  # noqa: PLC0415 - slow to import

    now = versions()
    others = [f"{name} {was}" for name, was in skipped.versions.items() if now.get(name) != was]
    made = counted(skipped.n_decisions, "decision")
    return f"Not learned again: {made}, made with other versions ({', '.join(others)})"


def _groups_message(groups: GroupTrial) -> str:
    """Say whether groups decided, and how that was tried.

    Examples
    --------
    >>> from fairchance.ledger.verification.proofs import GroupTrial
    >>> print(_groups_message(GroupTrial("blind", 240, 3)))
    Groups (blind) did not decide: 240 decisions of 3 rounds made twice more, with other \
groups
    >>> print(_groups_message(GroupTrial("aware", uses=("thresholds='per_group'",))))
    Groups (aware) may decide, through thresholds='per_group'
    """
    if groups.mode is None:
        return "The program has no groups"
    if groups.mode == "aware":
        how = f"through {' and '.join(groups.uses)}" if groups.uses else "but no setting uses them"
        return f"Groups (aware) may decide, {how}"
    if not groups.n_decisions:
        return f"Groups ({groups.mode}) may not decide, and none was tried"
    return (
        f"Groups ({groups.mode}) did not decide: {counted(groups.n_decisions, 'decision')} of "
        f"{counted(groups.n_rounds, 'round')} made twice more, with other groups"
    )


def _text_of(checkpoint: str) -> str:
    """Return a checkpoint, or the content of a file given as ``@file`` or by its name."""
    file = Path(checkpoint.removeprefix("@"))
    if not checkpoint.startswith("@") and _CHECKPOINT.match(checkpoint) and not file.is_file():
        return checkpoint
    try:
        content = file.read_bytes()
        # PowerShell redirects into utf-16, and editors put a mark in front of utf-8.
        wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        return content.decode("utf-16" if wide else "utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or first_line(error)
        raise InputError(
            f"the checkpoint {str(file)!r} cannot be read ({why}); name its file.",
            option="checkpoint",
        ) from error
