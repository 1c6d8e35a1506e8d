"""What commands have in common: options, folders, and how they say what went wrong."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from secondlook.cli.json_output import as_json
from secondlook.errors import InputError, UnavailableError
from secondlook.experiments.released.switches import SWITCHES

if TYPE_CHECKING:  # slow to import, and every command imports this module
    from secondlook.experiments.results import Results
    from secondlook.experiments.spec import Experiment

__all__ = [
    "Backend",
    "Data",
    "Fresh",
    "Jobs",
    "Json",
    "Methods",
    "Out",
    "Repetitions",
    "Scheduler",
    "Seed",
    "changed",
    "errors",
    "exit_if_nothing",
    "names",
    "noted",
    "slug",
    "status",
]

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of words.")]
Jobs = Annotated[int, typer.Option(help="Repetitions at a time; -1 is one per core.")]
Backend = Annotated[
    str | None,
    typer.Option(help="A joblib backend: loky (default), dask, ray, or one you registered."),
]
Scheduler = Annotated[
    str | None,
    typer.Option(help="Address of a Dask scheduler; without it, dask starts workers here."),
]
Data = Annotated[
    Path | None, typer.Option(help="Folder with data files, before SECONDLOOK_DATA and the cache.")
]
Out = Annotated[
    Path | None, typer.Option(help="Folder for results and report; default results/<name>.")
]
Repetitions = Annotated[
    int | None,
    typer.Option(help="How often, each with another seed; default what the experiment says (50)."),
]
Methods = Annotated[
    str | None,
    typer.Option(
        help="Names with commas between, all, or not-deep (see: secondlook methods), or "
        "module:function for your own; default what the experiment or the file says."
    ),
]
Fresh = Annotated[
    bool,
    typer.Option("--fresh", help="Begin again, and move results that are there aside."),
]
Seed = Annotated[int | None, typer.Option(help="Seed of the whole experiment.")]


def status(words: str, quiet: bool) -> AbstractContextManager[Any]:
    """Say on standard error what is going on, while it is."""
    return nullcontext() if quiet else Console(stderr=True).status(words)


def changed(experiment: Experiment, repetitions: int | None, seed: int | None) -> Experiment:
    """Return an experiment with what the command line asks for."""
    asked: dict[str, Any] = {"repetitions": repetitions, "seed": seed}
    return replace(experiment, **{name: one for name, one in asked.items() if one is not None})


def slug(experiment: Experiment) -> str:
    """Return a folder name that tells experiments apart which differ in more than repetitions."""
    words = [experiment.name]
    if experiment.switches:
        off = [name for name in SWITCHES if name not in experiment.switches]
        few = len(experiment.switches) <= len(off)
        words.append("with " + " ".join(experiment.switches) if few else "as released")
        words += ["without " + " ".join(off)] if off and not few else []
    words.append(experiment.fingerprint[:6])
    return re.sub(r"[^A-Za-z0-9]+", "-", " ".join(words)).strip("-").lower()


def names(text: str) -> tuple[str, ...]:
    """Return the names in a list with commas.

    Examples
    --------
    >>> names("plain, fair-clf,")
    ('plain', 'fair-clf')
    """
    return tuple(name.strip() for name in text.split(",") if name.strip())


def exit_if_nothing(results: Results) -> None:
    """End with an exit code and a sentence if no method has any numbers, once all is printed."""
    from secondlook.experiments.cautions import nothing_found  # noqa: PLC0415 - slow to import

    words = nothing_found(results)
    if words:
        print(f"secondlook: {words}", file=sys.stderr)
        raise typer.Exit(2)


@contextmanager
def errors(json: bool) -> Iterator[None]:
    """Turn what goes wrong into one sentence on standard error and an exit code."""
    try:
        yield
    except InputError as error:
        code = 3 if isinstance(error, UnavailableError) else 2
        if json:
            as_json({"error": str(error), "code": code})
        print(f"secondlook: {error}", file=sys.stderr)
        raise typer.Exit(code) from error
    except KeyboardInterrupt:
        print("secondlook: interrupted; the same command goes on from here.", file=sys.stderr)
        raise typer.Exit(130) from None


@contextmanager
def noted(*kinds: type[Warning]) -> Iterator[list[str]]:
    """Turn warnings of some kinds into sentences on standard error, and into a list of these."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        yield notes
    for one in said:
        if issubclass(one.category, kinds):
            notes.append(str(one.message))
            print(f"secondlook: {one.message}", file=sys.stderr)
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
