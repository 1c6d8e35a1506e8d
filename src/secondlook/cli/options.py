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

from secondlook.cli.output import as_json
from secondlook.errors import InputError, UnavailableError, to_install

if TYPE_CHECKING:
    from secondlook.lab.experiments.spec import Experiment
    from secondlook.ledger.config import Labels, Roles
    from secondlook.ledger.program import Program

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


def progress(words: str, quiet: bool) -> AbstractContextManager[Any]:
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


def not_installed_message(what: str, error: ModuleNotFoundError) -> str:
    """Say what is needed and how to install it.

    Examples
    --------
    >>> not_installed_message("report", ModuleNotFoundError(name="matplotlib.figure"))
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
        _report_error(str(error), code, json)
        raise typer.Exit(code) from error
    except ModuleNotFoundError as error:
        if _package(error) not in _EXTRAS:
            raise
        _report_error(not_installed_message("this command", error), 2, json)
        raise typer.Exit(2) from error
    except KeyboardInterrupt:
        print("secondlook: interrupted; the same command goes on from here.", file=sys.stderr)
        raise typer.Exit(130) from None


def _package(error: ModuleNotFoundError) -> str:
    return str(error.name).partition(".")[0]


def _report_error(sentence: str, code: int, json: bool) -> None:
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


_LEDGER = typer.Option(
    "--ledger",
    envvar="SECONDLOOK_LEDGER",
    metavar="URL",
    help="Where the record lives: sqlite:///lender.db or postgresql://host/database.",
)
LedgerUrl = Annotated[str, _LEDGER]
MaybeLedgerUrl = Annotated[str | None, _LEDGER]
ProgramName = Annotated[
    str, typer.Option("--program", metavar="NAME", help="Which of the ledger's programs.")
]
By = Annotated[
    str | None,
    typer.Option("--by", metavar="NAME", help="Who writes; default your login name."),
]
Refused = Annotated[
    str | None,
    typer.Option(
        "--refused",
        metavar="FILE",
        help="Where refused rows go, with the reason; default <input>.refused.csv in the current "
        "folder, and never over another file.",
    ),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Stop at the first row that is refused; record nothing.")
]
MostRefused = Annotated[
    float,
    typer.Option(
        "--most-refused",
        metavar="SHARE",
        help="Record nothing if more than this share of the rows is refused; 1: whatever it is.",
    ),
]
Trusted = Annotated[
    list[str] | None,
    typer.Option(
        "--trusted",
        metavar="TYPE",
        help="A type that stored models may contain; may be given several times.",
    ),
]
UnlikeHistory = Annotated[
    bool,
    typer.Option(
        "--unlike-history",
        help="Decide even if most people are beyond the numbers that the history had.",
    ),
]
OnRecord = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="URL",
        help="Run the first method once more through a ledger that is made here, and prove it.",
    ),
]
Late = Annotated[
    float, typer.Option(min=0, help="Days after which an outcome that is to come is late.")
]
Groups = Annotated[
    bool, typer.Option("--groups/--no-groups", help="Count groups too, if you may read them.")
]


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

    with progress("opening the program", json):
        return Program.open(ledger, program, by=by, trusted=trusted or ())


def roles_and_labels(program: Program) -> tuple[Roles, Labels]:
    """Return a program's columns and outcomes; the usual names for one that was made in Python."""
    from secondlook.ledger.config import Labels, Roles  # noqa: PLC0415 - an extra

    about, shape = program.about, program.shape
    groups = (shape.group_names or ("group",)) if shape.has_groups else ()
    roles = Roles.read(about) or Roles("id", "outcome", None, groups, shape.columns.names or ())
    good, bad = Labels.canonical(shape.good), Labels.canonical(shape.bad)
    return roles, Labels.read(about) or Labels((good,), (bad,))
