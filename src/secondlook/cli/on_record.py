"""Experiments with ``--ledger``: the first method once more, through a ledger, and its proof."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from secondlook.cli.options import DOES_NOT_FIT, status

if TYPE_CHECKING:  # slow to import, and the options are needed at once
    from secondlook.lab.experiments.results import Results
    from secondlook.lab.experiments.spec import Experiment

__all__ = ["OnRecord", "check_on_record", "in_one_line", "proved"]

OnRecord = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="URL",
        help="Run the first method once more through a ledger that is made here, and prove it.",
    ),
]


def check_on_record(experiment: Experiment, url: str) -> None:
    """Raise if the first method cannot be recorded there, before anything runs."""
    from secondlook.lab.experiments.on_record import check_recordable  # noqa: PLC0415 - an extra
    from secondlook.ledger.engines import connect  # noqa: PLC0415

    check_recordable(experiment)
    connect(url, make=True).dispose()  # makes nothing yet


def proved(
    experiment: Experiment, source: Any, results: Results, url: str, json: bool
) -> dict[str, Any]:
    """Run an experiment's first method on the record; return what the proof found."""
    from secondlook.lab.experiments.on_record import run_on_record  # noqa: PLC0415 - an extra

    with status("once more, through a ledger", json):
        found = run_on_record(experiment, source, results, url)
    if found.problem is not None:
        print(f"secondlook: {found.problem}", file=sys.stderr)
        raise typer.Exit(DOES_NOT_FIT)
    return {
        "url": url,
        "program": experiment.methods[0],
        "entries": found.n_entries,
        "decisions": found.n_decisions,
        "checkpoint": str(found.head),
    }


def in_one_line(proof: dict[str, Any]) -> str:
    """Say what was proved.

    Examples
    --------
    >>> in_one_line({"program": "plain", "entries": 3, "decisions": 50, "checkpoint": "3:ab:plain"})
    'On the record (plain): 3 entries fit, 50 decisions made again; checkpoint 3:ab:plain'
    """
    return (
        f"On the record ({proof['program']}): {proof['entries']} entries fit, "
        f"{proof['decisions']} decisions made again; checkpoint {proof['checkpoint']}"
    )
