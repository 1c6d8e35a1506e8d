"""``fairchance round``: open and close rounds, and see the one that is open."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairchance.cli.files.tables import check_apart, ledger_files
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
    progress,
)
from fairchance.cli.output import print_json, print_lines
from fairchance.errors import InputError, writing
from fairchance.words import counted
from fairchance.words.rounds import open_round_words

if TYPE_CHECKING:  # an extra, and slow to import
    from fairchance.ledger.program import Program

__all__ = ["round"]

_ACTIONS = ("open", "close", "status")


def round(
    action: Annotated[
        str, typer.Argument(metavar="open|close|status", help="What to do with the round.")
    ],
    ledger: LedgerUrl,
    program: ProgramName = None,
    expected: Annotated[
        int | None,
        typer.Option(min=0, help="About how many applicants will come; default as many as last."),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Write the policy of the open round, for other machines."
        ),
    ] = None,
    request: RequestName = None,
    trusted: Trusted = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Open or close a round, in which applicants are decided on one at a time.

    While a round is open, decide answers by its policy, for any number of processes at once. In a
    program with [rounds] this happens by itself. Closing a round makes its decisions evidence.

    Example: fairchance round open --expected 3000 --ledger sqlite:///lender.db
    """
    with errors(json):
        if action not in _ACTIONS:
            raise InputError(f"a round takes {', '.join(_ACTIONS)}, got {action!r}; choose one.")
        check_name("request", request)
        if policy is not None:
            check_apart("the policy", policy, "the ledger", ledger_files(ledger))
        opened = open_program(ledger, program, by, trusted)
        with progress("working on the round", json):
            if action == "open":
                opened.open_round(expected, incumbent=_gives_incumbent(opened), request=request)
            elif action == "close":
                opened.close_round(batch=request)
        if policy is not None:
            from fairchance.methods.storage import save  # noqa: PLC0415 - slow to import

            with writing(policy):
                save(opened.policy(), policy)
        summary = opened.summary(groups=False)
        found = summary.open_round
        result: dict[str, Any] = {
            "open": None if found is None else asdict(found),
            "policy": policy,
        }
    if json:
        print_json(result)
        return
    lines = ["No round is open." if found is None else open_round_words(found)]
    if action == "close":
        last = summary.rounds[-1]
        lines = [
            f"Round {last.round} is closed: {last.n_exploited + last.n_explored:,} of "
            f"{counted(last.n_people, 'applicant')} accepted.",
            # A repeated request closed its round before, and leaves the next one open.
            *([] if found is None else lines),
        ]
    print_lines([*lines, *([] if policy is None else [f"Policy: {policy}"])])


def _gives_incumbent(program: Program) -> bool:
    """Return whether the program's files have the lender's own decisions."""
    return bool(program.about.get("roles", {}).get("incumbent"))
