"""``fairchance ramp``, ``pause``, ``resume`` and ``handover``: how much the program decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairchance.cli.options import (
    By,
    Json,
    LedgerUrl,
    ProgramName,
    RequestName,
    Trusted,
    check_name,
    errors,
    open_program,
)
from fairchance.cli.output import print_json, print_lines
from fairchance.words.rounds import ramp_words, sentence

if TYPE_CHECKING:  # an extra, and slow to import
    from fairchance.ledger.program import Program

__all__ = ["handover", "pause", "ramp", "resume"]


def ramp(
    value: Annotated[
        float, typer.Argument(metavar="SHARE", help="From 0 (the lender decides) to 1.")
    ],
    ledger: LedgerUrl,
    program: ProgramName = None,
    request: RequestName = None,
    trusted: Trusted = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Set the share of applicants on whom the program decides.

    The lender's own decision, the column that [columns] incumbent names, stands for the others. The
    share is drawn by id, so the applicants of 5 % are among those of 20 %. 0 is shadow mode.

    Example: fairchance ramp 0.05 --ledger sqlite:///lender.db
    """
    with errors(json):
        opened = _opened(ledger, program, by, trusted, request)
        _record(opened, lambda: opened.ramp(value, request=request), json)


def pause(
    ledger: LedgerUrl,
    program: ProgramName = None,
    request: RequestName = None,
    trusted: Trusted = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Let the lender's own decisions stand until the program is resumed.

    Until then, decide ends with exit code 5 if the program knows no such decisions.

    Example: fairchance pause --ledger sqlite:///lender.db
    """
    with errors(json):
        opened = _opened(ledger, program, by, trusted, request)
        _record(opened, lambda: opened.pause(request=request), json)


def resume(
    ledger: LedgerUrl,
    program: ProgramName = None,
    request: RequestName = None,
    trusted: Trusted = None,
    by: By = None,
    json: Json = False,
) -> None:
    """End a pause: the ramp counts again.

    Example: fairchance resume --ledger sqlite:///lender.db
    """
    with errors(json):
        opened = _opened(ledger, program, by, trusted, request)
        _record(opened, lambda: opened.resume(request=request), json)


def handover(
    ledger: LedgerUrl,
    program: ProgramName = None,
    request: RequestName = None,
    trusted: Trusted = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Let certified policies replace the lender's own decisions (handover = "by hand").

    Example: fairchance handover --ledger sqlite:///lender.db
    """
    with errors(json):
        opened = _opened(ledger, program, by, trusted, request)
        _record(opened, lambda: opened.hand_over(request=request), json, "Handed over. ")


def _opened(
    ledger: str, program: str | None, by: str | None, trusted: Any, request: str | None
) -> Program:
    check_name("request", request)
    return open_program(ledger, program, by, trusted)


def _record(program: Program, call: Callable[[], None], json: bool, done: str = "") -> None:
    """Record a change, and print what is in force now."""
    before = program.checkpoint().number
    call()
    with program.reading() as view:
        control, is_new = view.control, view.reader.head().number > before
    if json:
        print_json({"ramp": control.ramp, "paused": control.paused, "recorded": is_new})
        return
    who = sentence(ramp_words(control.ramp))
    if control.paused:
        who = "The program is paused, and the lender's own decisions stand."
    print_lines([f"{done}{who}", *([] if is_new else ["Nothing changed: it was recorded before."])])
