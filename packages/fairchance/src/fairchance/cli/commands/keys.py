"""``fairchance keys``: who may use a program over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fairchance.cli.options import Json, LedgerUrl, ProgramName, errors
from fairchance.cli.output import Console, print_json, print_lines, print_table
from fairchance.errors import InputError

__all__ = ["keys"]

_ACTIONS = ("add", "list", "revoke")


def keys(
    action: Annotated[str, typer.Argument(metavar="add|list|revoke", help="What to do.")],
    ledger: LedgerUrl,
    key: Annotated[
        str | None, typer.Argument(metavar="[KEY]", help="The id of the key to revoke.")
    ] = None,
    role: Annotated[
        str | None,
        typer.Option(
            "--role",
            metavar="ROLE",
            help="decide: decisions; edge: also the policy of the round, and decisions made by it; "
            "observe: outcomes; operate: status, files, overrides, holds, erasures, ramp and "
            "pause; audit: reads all, groups too.",
        ),
    ] = None,
    name: Annotated[str, typer.Option(help="What the key is for.")] = "",
    program: ProgramName = None,
    json: Json = False,
) -> None:
    """Make, list or revoke the keys with which a program is used over HTTP.

    A new key is printed once; the ledger keeps a hash of it. Its id is the author of what it
    records. A revoked key is refused within seconds.

    Example: fairchance keys add --role decide --name 'loan desk' --ledger sqlite:///lender.db
    """
    with errors(json):
        if action not in _ACTIONS:
            raise InputError(f"keys takes {', '.join(_ACTIONS)}, got {action!r}; choose one.")
        from fairchance.ledger import SqlLedger  # noqa: PLC0415 - an extra
        from fairchance.ledger.keys import add_key, keys_of, revoke_key  # noqa: PLC0415

        kept = SqlLedger(ledger)
        of = kept.named(program)
        if action == "add":
            with kept.writing(of) as writer:
                token = add_key(writer, role or "", name or role or "")
            made = {"key": token, "id": token.split("_")[1], "role": role, "name": name or role}
            print_json(made) if json else print_lines([token])
            return
        if action == "revoke":
            with kept.writing(of) as writer:
                revoke_key(writer, key or "")
            print_json({"revoked": key}) if json else print_lines([f"Key {key} is revoked."])
            return
        with kept.reading(of) as reader:
            listed = keys_of(reader)
    rows: list[dict[str, Any]] = [
        {
            "id": one.id,
            "role": one.role,
            "name": one.name,
            "made": one.made,
            "revoked": one.revoked,
        }
        for one in listed
    ]
    if json:
        print_json({"keys": rows})
    else:
        cells = [
            [
                row["id"],
                row["role"],
                row["name"],
                row["made"][:10],
                (row["revoked"] and row["revoked"][:10]) or "–",
            ]
            for row in rows
        ]
        print_table(Console(), "Keys", ("key", "role", "name", "made", "revoked"), cells)
