"""``fairchance import``: record decisions that were made from a policy file during an outage."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fairchance.cli.commands.decide import read_applicants
from fairchance.cli.files.refusals import refused_counts, refused_message, refused_path
from fairchance.cli.files.tables import file_name
from fairchance.cli.options import (
    By,
    Json,
    LedgerUrl,
    ProgramName,
    Refused,
    Strict,
    Trusted,
    errors,
    open_program,
    progress,
)
from fairchance.cli.output import print_json, print_lines
from fairchance.words import counted

__all__ = ["import_"]


def import_(
    decisions: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Applicants as for decide, with a column decision (accept or reject).",
        ),
    ],
    policy: Annotated[str, typer.Option(metavar="FILE", help="The policy file that decided.")],
    at: Annotated[str, typer.Option(metavar="TIME", help="When the decisions were made.")],
    where: Annotated[str, typer.Option(metavar="PLACE", help="Where they were made.")],
    ledger: LedgerUrl,
    program: ProgramName = None,
    refused: Refused = None,
    strict: Strict = False,
    trusted: Trusted = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Record decisions that were made from a policy file while the ledger was out of reach.

    Each decision must follow from the policy of its round. If the round is closed by now, the
    decisions stand and are no evidence; if one of them accepted an applicant, the whole round is no
    evidence any more. Rows that are recorded already are left as they are.

    Example: fairchance import made.csv --policy round.policy --at 2031-03-20 --where branch
    """
    with errors(json):
        from fairchance.methods.storage import load  # noqa: PLC0415 - slow to import

        source, made_by = file_name(decisions), load(policy, trusted=trusted or ())
        refused_file = refused_path(refused, decisions, "--json" if json else None)
        opened = open_program(ledger, program, by, trusted)
        with progress("reading decisions", json), opened.reading() as view:
            sent = read_applicants(
                view, decisions, None, source, in_round=made_by.round, decision="decision"
            )
        if strict:
            sent.refusals.stop(source)
        with progress("recording decisions", json):
            recorded = opened.import_decisions(
                sent.X,
                sent.decision,
                round=made_by.round,
                ids=sent.ids,
                at=at,
                where=where,
                sensitive_features=sent.groups,
                **sent.by_lender,
            )
        refused_file = sent.refusals.write(refused_file)
        result: dict[str, Any] = {
            "round": recorded.round,
            "people": len(recorded),
            "accepted": int(recorded.accepted.sum()),
            "refused": refused_counts(sent.refusals, refused_file),
        }
    if json:
        print_json(result)
        return
    line = (
        f"Round {result['round']}: {counted(len(recorded), 'decision')} imported, "
        f"{result['accepted']:,} accepted."
    )
    print_lines([line, *refused_message(result["refused"])], to_stderr=refused_file == "-")
