"""``fairchance evaluate``: how other policies would have done on recorded decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from fairchance.cli.files.tables import check_apart, check_writable, ledger_files, write_table
from fairchance.cli.options import (
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
from fairchance.cli.output import Console, print_json
from fairchance.errors import InputError
from fairchance.words import counted

if TYPE_CHECKING:  # slow to import
    from fairchance.audit import DecisionLog
    from fairchance.core.utility import Utility

__all__ = ["evaluate", "rules"]


def evaluate(
    place: ReadUrl = None,
    ledger: MaybeLedgerUrl = None,
    program: ProgramName = None,
    policy: Policies = None,
    challenger: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A fitted scikit-learn classifier in a skops file; it gets the log's features.",
        ),
    ] = None,
    threshold: Annotated[
        float, typer.Option(help="The challenger accepts from this probability of good on.")
    ] = 0.5,
    trained_through: Annotated[
        int | None,
        typer.Option(
            metavar="ROUND",
            help="The last round that the challenger or its threshold has seen; 0 if none.",
        ),
    ] = None,
    log: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Decisions in a .csv, .parquet or .xlsx file, instead of a ledger.",
        ),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ROLE=NAME",
            help="With --log: the column that is accepted, propensity, outcome, round, score, "
            "group or feature, unless export wrote the file; may be repeated.",
        ),
    ] = None,
    pos_label: Annotated[
        str | None,
        typer.Option(
            metavar="VALUE",
            help="The good outcome in a file or of a challenger, unless it is 1.",
        ),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(help="A bound on mistakes to compare with; default the program's."),
    ] = None,
    gain: Annotated[
        float | None,
        typer.Option(help="Gain from a good accepted applicant; default as the program has it."),
    ] = None,
    loss: Annotated[
        float | None, typer.Option(help="Loss from a bad accepted applicant; the same.")
    ] = None,
    pending: PendingOutcomes = "cut",
    groups: Groups = True,
    trusted: Trusted = None,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="FILE", help="All estimates: a .csv or .parquet file."),
    ] = None,
    json: Json = False,
) -> None:
    """Estimate how other policies would have done, from recorded decisions and their outcomes.

    A policy is a column, a comparison and a number; score is the score recorded with each decision.
    Where the record says nothing about applicants that the policy would accept, the answer is "not
    identified", with bounds.

    Example: fairchance evaluate sqlite:///lender.db --policy 'score >= 0.85'
    """
    with errors(json):
        from fairchance.cli.files.logs import LogColumns, read_log  # noqa: PLC0415 - slow to import

        names = LogColumns.parse(column or ())
        _check_options(out, json, challenger, trained_through)
        policies, own = rules(policy, names.score), _utility(gain, loss)
        if log is None:
            if column:
                raise InputError("--column is about a file; name it with --log.")
            source = _of_ledger(place, ledger, program, groups, trusted, out, json)
        else:
            if place or ledger or program:
                raise InputError(
                    "--log reads a file, and [URL], --ledger and --program are about a ledger; "
                    "leave out one."
                )
            check_apart("the estimates", out or "-", "the log", [log])
            with progress("reading decisions", json):
                source = _Source(read_log(log, names, pos_label=pos_label))
        if challenger is not None and trained_through is not None:
            good = source.good if pos_label is None else (pos_label,)
            name = f"{challenger.name} ≥ {threshold:g}"
            policies[name] = _challenger(challenger, threshold, trained_through, trusted, good)
        if not policies:
            raise InputError("there is no policy to judge; give one with --policy or --challenger.")
        from fairchance.audit import evaluate as judge  # noqa: PLC0415 - slow to import
        from fairchance.cli import evaluations  # noqa: PLC0415

        utility = own or source.utility
        with progress(f"judging {counted(len(policies), 'policy', 'policies')}", json):
            found = judge(
                source.log,
                policies,
                utility=utility,
                alpha=source.alpha if alpha is None else alpha,
                pending=cast(Any, pending),
            )
        if out is not None:
            write_table(evaluations.estimates_table([*found.values()]), out)
    if json:
        judged = [evaluations.as_data(one) for one in found.values()]
        print_json({"policies": judged, "written": out})
    else:
        console = Console(stderr=out == "-")
        units = utility is None
        evaluations.print_evaluations(console, [*found.values()], source.currency, units=units)
        if out not in (None, "-"):
            console.print(f"Estimates: {out}", soft_wrap=True)


def _check_options(
    out: str | None, json: bool, challenger: Path | None, trained_through: int | None
) -> None:
    """Raise before anything is read if options do not fit together."""
    if out == "-" and json:
        raise InputError("--json and -o - both write to standard output; name a file with -o.")
    if out is not None:
        check_writable(out)
    if challenger is not None and trained_through is None:
        raise InputError(
            "a challenger is judged on rounds that it has not seen; name the last one that it or "
            "its threshold has seen with --trained-through, 0 if none."
        )


# What to judge


def rules(texts: Sequence[str] | None, score: str | None = None) -> dict[str, Any]:
    """Return the policies of the command line by their names; nothing in them is evaluated.

    ``score`` is the file's name for the recorded score.

    Examples
    --------
    >>> rules(["score >= 0.85"])
    {'score ≥ 0.85': Rule(column='score', comparison='>=', number=0.85)}
    """
    from fairchance.audit import Rule  # noqa: PLC0415 - slow to import

    parsed = map(Rule.parse, texts or ())
    return {str(r): replace(r, column="score") if r.column == score else r for r in parsed}


def _challenger(
    path: Path,
    threshold: float,
    trained_through: int,
    trusted: list[str] | None,
    good: Sequence[str],
) -> Any:
    from fairchance.audit import Challenger  # noqa: PLC0415 - slow to import
    from fairchance.cli.files.logs import read_model  # noqa: PLC0415

    model = read_model(path, trusted or ())
    labels = [label for label in getattr(model, "classes_", ()) if str(label) in good]
    return Challenger(
        model,
        threshold,
        trained_through=trained_through,
        pos_label=labels[0] if labels else None,
    )


@dataclass(frozen=True)
class _Source:
    """A log, with the program's bound, utility, currency and names of the good outcome."""

    log: DecisionLog
    alpha: float | None = None
    utility: Utility | None = None
    currency: str = ""
    good: Sequence[str] = ()


def _of_ledger(
    place: str | None,
    ledger: str | None,
    program: str | None,
    groups: bool,
    trusted: list[str] | None,
    out: str | None,
    json: bool,
) -> _Source:
    url = ledger_url(place, ledger)
    check_apart("the estimates", out or "-", "the ledger", ledger_files(url))
    from fairchance.cli.files.rows import roles_and_labels  # noqa: PLC0415 - slow to import
    from fairchance.ledger.summary import summarise  # noqa: PLC0415 - an extra

    with progress("reading decisions", json):
        opened = open_program(url, program, None, trusted)
        log = opened.decision_log(groups=groups)
        summary = summarise(
            opened.ledger, opened.name, groups=False, money=False, trusted=trusted or ()
        )
        good = roles_and_labels(opened)[1].good
    promise = summary.promise
    return _Source(log, promise.alpha, promise.utility, summary.currency, good)


def _utility(gain: float | None, loss: float | None) -> Utility | None:
    from fairchance.core.utility import Revenue  # noqa: PLC0415 - slow to import

    if gain is None and loss is None:
        return None
    if gain is None or loss is None:
        raise InputError("--gain and --loss go together; give both.")
    return Revenue(gain, loss)
