"""Options that several research commands take."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairchance.cli.options import names
from fairchance.errors import InputError

if TYPE_CHECKING:  # slow to import
    from fairchance_lab.experiments.spec import Experiment

__all__ = [
    "PAPER_LETTERS",
    "Against",
    "Data",
    "DataSet",
    "Fresh",
    "Methods",
    "Out",
    "PaperText",
    "Repetitions",
    "RunOptions",
    "Seed",
    "Set",
    "Vary",
    "check_against",
    "method_names",
    "with_options",
]

Data = Annotated[
    Path | None,
    typer.Option(help="Folder with data files, searched before FAIRCHANCE_DATA and the cache."),
]
DataSet = Annotated[str | None, typer.Option(help="Another data set for the adult experiments.")]
Out = Annotated[
    Path | None,
    typer.Option(
        help="Folder for results and report; default results/<name>-<hash of the settings>."
    ),
]
Repetitions = Annotated[
    int | None,
    typer.Option(help="Repetitions, each with its own seed; default: as the experiment says (50)."),
]
Methods = Annotated[
    str | None,
    typer.Option(
        help="Names with commas between, or sets of them (see: fairchance methods), or "
        "module:function for your own; default: as the experiment or the file says."
    ),
]
# The paper's letters, which --set and --vary take for names of options.
PAPER_LETTERS = {
    "tau": "coverage_threshold",
    "beta": "strategy_beta",
    "lambda": "min_selection_rate",
    "epsilon": "slack",
}
_LETTERS = ", ".join(f"{letter} for {name}" for letter, name in PAPER_LETTERS.items())
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="An option of Algorithm 1's methods, such as weight_cap=10 (documentation: World "
        "files); may be repeated.",
    ),
]
PaperText = Annotated[
    bool,
    typer.Option(
        "--paper-text",
        help="Algorithm 1 with the paper's own choices where our defaults differ.",
    ),
]
Against = Annotated[
    str | None,
    typer.Option(
        metavar="METHOD",
        help="Test each other method against this one, paired over repetitions and Holm-corrected.",
    ),
]
Vary = Annotated[
    list[str] | None,
    typer.Option(
        "--vary",
        metavar="NAME=A,B,C",
        help="Run with each value of one option, such as weight_cap=1,3,10,none, or of alpha. Here "
        f"and in --set, the paper's letters are names too: {_LETTERS}.",
    ),
]
Fresh = Annotated[
    bool,
    typer.Option("--fresh", help="Start again, and move existing results aside."),
]
Seed = Annotated[int | None, typer.Option(help="Seed of the whole experiment.")]


@dataclass(frozen=True)
class RunOptions:
    """How to run an experiment, and where its results go."""

    data: Path | None
    jobs: int
    out: Path | None
    fresh: bool


def check_against(method: str | None, methods: tuple[str, ...]) -> None:
    """Raise unless the method that others are tested against is among those that run."""
    if method is not None and method not in methods:
        raise InputError(
            f"--against must name one of the methods {', '.join(methods)}, got {method!r}."
        )


def with_options(experiment: Experiment, repetitions: int | None, seed: int | None) -> Experiment:
    """Return an experiment with the repetitions and the seed of the command line, if given."""
    given: dict[str, Any] = {"repetitions": repetitions, "seed": seed}
    return replace(
        experiment, **{name: value for name, value in given.items() if value is not None}
    )


def method_names(text: str | None) -> tuple[str, ...] | None:
    """Return the names of methods in a list with commas; raise if there are none."""
    if text is None:
        return None
    listed = names(text)
    if not listed:
        raise InputError(
            f"--methods must name at least one method, got {text!r}; fairchance methods lists them."
        )
    return listed
