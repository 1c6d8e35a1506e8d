"""What commands have in common: options, folders, and how they say what went wrong."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from secondlook.cli.json_output import as_json
from secondlook.errors import InputError, UnavailableError, to_install

if TYPE_CHECKING:  # slow to import, and every command imports this module
    from secondlook.lab.experiments.spec import Experiment

__all__ = [
    "DOES_NOT_FIT",
    "Backend",
    "Data",
    "DataSet",
    "Fresh",
    "HowToRun",
    "Jobs",
    "Json",
    "Methods",
    "Out",
    "Repetitions",
    "Scheduler",
    "Seed",
    "changed",
    "check_jobs",
    "check_named",
    "errors",
    "method_names",
    "names",
    "not_installed",
    "noted",
    "status",
    "writing",
]

DOES_NOT_FIT = 4  # the exit code if a ledger does not

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
DataSet = Annotated[
    str | None, typer.Option(help="Another ACS data set for the adult experiments.")
]
Out = Annotated[
    Path | None,
    typer.Option(
        help="Folder for results and report; default results/<name>-<hash of its settings>, which "
        "is named at the end."
    ),
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

# What may be missing, and the extra that installs it.
_EXTRAS = {
    "matplotlib": "experiments",
    "pyarrow": "experiments",
    "alembic": "ledger",
    "psycopg": "postgres",
    "pandas": "production",
}


@dataclass(frozen=True)
class HowToRun:
    """What the command line says of how to run an experiment, and where its results go."""

    data: Path | None
    jobs: int
    backend: str | None
    scheduler: str | None
    out: Path | None
    fresh: bool


def status(words: str, quiet: bool) -> AbstractContextManager[Any]:
    """Say on standard error what is going on, while it is."""
    return nullcontext() if quiet else Console(stderr=True).status(words)


def changed(experiment: Experiment, repetitions: int | None, seed: int | None) -> Experiment:
    """Return an experiment with what the command line asks for."""
    asked: dict[str, Any] = {"repetitions": repetitions, "seed": seed}
    return replace(experiment, **{name: one for name, one in asked.items() if one is not None})


def names(text: str) -> tuple[str, ...]:
    """Return the names in a list with commas.

    Examples
    --------
    >>> names("plain, fair-clf,")
    ('plain', 'fair-clf')
    """
    return tuple(name.strip() for name in text.split(",") if name.strip())


def method_names(text: str) -> tuple[str, ...]:
    """Return the names of methods in a list with commas, of which there must be one."""
    found = names(text)
    if not found:
        raise InputError(
            f"--methods must name at least one method, got {text!r}; secondlook methods lists them."
        )
    return found


def check_jobs(jobs: int) -> None:
    """Raise unless so many repetitions can run at a time."""
    if jobs == 0 or jobs < -1:
        raise InputError(f"jobs must be 1 or more, or -1 for one per core, got {jobs}.")


def check_named(option: str, name: str | None) -> None:
    """Raise if an option that takes a name was given an empty one."""
    if name is not None and not name.strip():
        raise InputError(f"{option} takes a name, got an empty one; give a name or leave it out.")


@contextmanager
def writing(place: str | Path) -> Iterator[None]:
    """Say in one sentence that a place cannot be written, if that is so."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{place} cannot be written ({error.strerror or error}); choose another place."
        ) from error


def not_installed(what: str, error: ModuleNotFoundError) -> str:
    """Say what is needed and how to install it.

    Examples
    --------
    >>> not_installed("report", ModuleNotFoundError(name="matplotlib.figure"))
    "report needs matplotlib, which is not installed; `pip install 'secondlook[experiments]'` \
(in a checkout: `pip install '.[experiments]'`) installs it."
    """
    package = _package(error)
    extra = _EXTRAS.get(package, "experiments")
    return f"{what} needs {package}, which is not installed; {to_install(extra)} installs it."


@contextmanager
def errors(json: bool) -> Iterator[None]:
    """Turn what goes wrong into one sentence on standard error and an exit code."""
    try:
        yield
    except InputError as error:
        code = 3 if isinstance(error, UnavailableError) else 2
        _tell(str(error), code, json)
        raise typer.Exit(code) from error
    except ModuleNotFoundError as error:
        if _package(error) not in _EXTRAS:
            raise
        _tell(not_installed("this command", error), 2, json)
        raise typer.Exit(2) from error
    except KeyboardInterrupt:
        print("secondlook: interrupted; the same command goes on from here.", file=sys.stderr)
        raise typer.Exit(130) from None


def _package(error: ModuleNotFoundError) -> str:
    return str(error.name).partition(".")[0]


def _tell(sentence: str, code: int, json: bool) -> None:
    if json:
        as_json({"error": sentence, "code": code})
    print(f"secondlook: {sentence}", file=sys.stderr)


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
