"""Open the program that a command is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secondlook.cli.options import check_named, status

if TYPE_CHECKING:
    from secondlook.ledger.program import Program

__all__ = ["opened"]


def opened(
    ledger: str,
    program: str,
    by: str | None,
    trusted: list[str] | None,
    json: bool,
) -> Program:
    """Return a program on a ledger, ready to decide and to write."""
    check_named("--by", by)
    from secondlook.ledger.program import Program  # noqa: PLC0415 - an extra

    with status("opening the program", json):
        return Program.open(ledger, program, by=by, trusted=trusted or ())
