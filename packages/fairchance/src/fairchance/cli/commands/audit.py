"""``fairchance audit``: write the validation pack of a program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from fairchance.cli.options import (
    VERIFICATION_FAILED,
    Groups,
    Json,
    MaybeLedgerUrl,
    PendingOutcomes,
    Policies,
    ProgramName,
    ReadUrl,
    Trusted,
    errors,
    ledger_url,
    open_program,
    progress,
)
from fairchance.cli.output import print_json, print_lines
from fairchance.errors import InputError, UnverifiedError
from fairchance.words import intervals_assume

if TYPE_CHECKING:  # slow to import
    from fairchance.audit import DecisionLog
    from fairchance.ledger import Program
    from fairchance.ledger.view import ProgramView
    from fairchance.pages.audit import Audited

__all__ = ["audit"]

# Fixed before any decision, as intervals ask for.
_CUTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


def audit(
    place: ReadUrl = None,
    ledger: MaybeLedgerUrl = None,
    program: ProgramName = None,
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FOLDER", help="The folder to write; an older pack is replaced."
        ),
    ] = Path("audit"),
    purpose: Annotated[
        str, typer.Option(metavar="TEXT", help="What the program is for, for the model card.")
    ] = "",
    policy: Policies = None,
    pending: PendingOutcomes = "cut",
    groups: Groups = True,
    trusted: Trusted = None,
    json: Json = False,
) -> None:
    """Write the validation pack of a program: report, model card, tables, proof, checkpoint.

    The pack says how the decisions did and how other policies would have done, whether gaps between
    groups are real or selection, which applicants the record says nothing about, and whether scores
    are calibrated. The ledger is verified; if it does not fit, the pack says so and the exit code
    is 4. A record that contradicts itself gives no pack.

    Example: fairchance audit sqlite:///lender.db -o pack/ --purpose "Consumer loans"
    """
    with errors(json):
        from fairchance.cli.commands.evaluate import rules  # noqa: PLC0415

        url, asked = ledger_url(place, ledger), rules(policy)
        from fairchance.cli import pack  # noqa: PLC0415 - slow to import
        from fairchance.pages.audit import verdict  # noqa: PLC0415

        pack.check_folder(out)
        audited = _audited(url, program, asked, purpose, pending, groups, trusted, json)
        with progress("writing the pack", json):
            files = pack.files_of(audited)
            pack.write_folder(files, out)
        fits, said = audited.verification.ok, verdict(audited)
    if json:
        written = [out / name for name in pack.NAMES if name in files]
        found = {"verdict": audited.decided.verdict_code, "verified": fits}
        print_json(found | {"checkpoint": audited.checkpoint, "written": written, "message": said})
    else:
        assumed = intervals_assume(audited.summary.promise.shock)
        print_lines([said, assumed, f"Pack: {out.resolve()}", audited.verified[-1]])
    if not fits:
        raise typer.Exit(VERIFICATION_FAILED)


def _log_of(program: Program, view: ProgramView, *, groups: bool) -> DecisionLog:
    """Return the decisions; if they contradict each other, say what was changed."""
    try:
        return view.decision_log(groups=groups)
    except InputError as error:
        found = program.verify()
        if found.ok:
            raise
        said = f"{found.problem} The record contradicts itself, so there is no pack."
        raise UnverifiedError(said) from error


def _audited(
    url: str,
    program: str | None,
    asked: dict[str, Any],
    purpose: str,
    pending: str,
    groups: bool,
    trusted: list[str] | None,
    json: bool,
) -> Audited:
    """Ask the record everything that a pack shows."""
    from fairchance import audit as ask  # noqa: PLC0415 - slow to import
    from fairchance.audit.groups import with_rates  # noqa: PLC0415
    from fairchance.cli.commands.verify import in_words  # noqa: PLC0415
    from fairchance.cli.files.excel import MOST_ROWS  # noqa: PLC0415
    from fairchance.cli.files.export_tables import decision_tables  # noqa: PLC0415
    from fairchance.extras import arrow  # noqa: PLC0415
    from fairchance.ledger.replay import Allowed  # noqa: PLC0415
    from fairchance.ledger.summary import read_details  # noqa: PLC0415
    from fairchance.ledger.verification.trail import read_trail  # noqa: PLC0415
    from fairchance.pages.audit import DECIDED, Audited  # noqa: PLC0415

    how = cast(Any, pending)
    opened = open_program(url, program, None, trusted)
    with progress("reading decisions", json), opened.reading() as view:
        summary = view.summary(groups=groups)
        log = _log_of(opened, view, groups=groups)
        parts = decision_tables(view.reader, groups=groups)
        decisions = arrow().concat_tables(parts)
    with progress("making every decision again", json):
        verification = opened.verify(checkpoint=summary.head)
        details = read_details(opened.ledger, summary)
        with opened.reading() as view:
            trail = read_trail(view.reader, Allowed(trusted=tuple(trusted or ())), MOST_ROWS)
    promise = summary.promise
    cuts = {cut: ask.Rule("score", ">=", cut) for cut in _CUTS}
    named = {str(rule): rule for rule in cuts.values()}
    policies = {DECIDED: log.propensity, **named, **asked}
    with progress(f"judging {len(policies)} policies", json):
        judged = ask.evaluate(
            log.without_groups(),
            policies,
            utility=promise.utility,
            alpha=promise.alpha,
            pending=how,
        )
    with progress("comparing groups and scores", json):
        found = ask.groups(log, pending=how)
        judged[DECIDED] = with_rates(judged[DECIDED], found)
        complete = bool((log.round <= log.last_complete_round).any())
        return Audited(
            summary=summary,
            details=details,
            verification=verification,
            verified=in_words(verification),
            policies=judged,
            cuts={cut: judged[str(rule)] for cut, rule in cuts.items()},
            groups=found,
            unknown=ask.unknown(log, utility=promise.utility) if log.has_features else None,
            calibration=ask.calibration(log) if complete else (),
            drift=ask.drift(log),
            decisions=decisions,
            trail=trail,
            purpose=purpose,
        )
