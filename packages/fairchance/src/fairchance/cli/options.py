"""Options that several commands take, how errors become exit codes, and opening a program."""

from __future__ import annotations

import os
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairchance.cli.output import Console, print_error, print_json, print_lines
from fairchance.errors import InputError, UnavailableError, to_install

if TYPE_CHECKING:  # slow to import, and every command imports this module
    from fairchance.ledger.program import Program
    from fairchance_lab.experiments.spec import Experiment

__all__ = [
    "PAPER_LETTERS",
    "VERIFICATION_FAILED",
    "Against",
    "Backend",
    "By",
    "Csv",
    "Data",
    "DataSet",
    "Exact",
    "Fresh",
    "Groups",
    "Jobs",
    "Json",
    "Late",
    "Latex",
    "LedgerUrl",
    "Markdown",
    "MaybeLedgerUrl",
    "Methods",
    "MostRefused",
    "Out",
    "Paired",
    "PaperText",
    "PendingOutcomes",
    "Policies",
    "ProgramName",
    "ReadUrl",
    "Refused",
    "Repetitions",
    "RunOptions",
    "Scheduler",
    "See",
    "Seed",
    "Set",
    "Strict",
    "Trusted",
    "UnlikeHistory",
    "Vary",
    "check_jobs",
    "check_name",
    "errors",
    "ledger_url",
    "method_names",
    "names",
    "not_installed_message",
    "open_program",
    "output_format",
    "printed_warnings",
    "progress",
    "with_options",
    "writing",
]

VERIFICATION_FAILED = 4  # exit codes
UNEXPECTED = 70
_LEDGER = "FAIRCHANCE_LEDGER"

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]

Markdown = Annotated[bool, typer.Option("--markdown", help="Print the table in Markdown.")]
Latex = Annotated[
    bool, typer.Option("--latex", help="Print the table in LaTeX, for the package booktabs.")
]
Csv = Annotated[
    bool, typer.Option("--csv", help="Print the table as csv, with all numbers in full.")
]

# Options of experiments

Jobs = Annotated[int, typer.Option(help="Repetitions to run at a time; -1 is one per core.")]
Backend = Annotated[
    str | None,
    typer.Option(help="A joblib backend: loky (default), dask, ray, or one you registered."),
]
Scheduler = Annotated[
    str | None,
    typer.Option(help="Address of a Dask scheduler; without it, dask starts workers here."),
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
        help="Names separated by commas, sets of them such as all or baselines (see: fairchance "
        "methods), or module:function for your own; default: as the experiment or the file says."
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
        help="An option of Algorithm 1's methods, such as weight_cap=10 or coverage=sum-of-g: any "
        "key of a program's [classifier] table; may be repeated.",
    ),
]
PaperText = Annotated[
    bool,
    typer.Option(
        "--paper-text",
        help="Algorithm 1 with the paper's own choices where our defaults differ; --set comes "
        "first.",
    ),
]
Against = Annotated[
    str | None,
    typer.Option(
        metavar="METHOD",
        help="Test each other method against this one, paired over repetitions and Holm-corrected; "
        "--markdown, --latex and --csv then print that table.",
    ),
]
Exact = Annotated[
    bool,
    typer.Option(
        "--exact", help="With --against: sign flips instead of t (default below 10 repetitions)."
    ),
]
See = Annotated[
    float | None,
    typer.Option(
        metavar="THOUSAND",
        help="With --against: repetitions needed to see such a difference of revenue a round; "
        "default the difference found.",
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

# Options of programs on a ledger

LedgerUrl = Annotated[
    str,
    typer.Option(
        "--ledger",
        envvar=_LEDGER,
        metavar="URL",
        help="The ledger: sqlite:///lender.db or postgresql://host/database.",
    ),
]
# Commands that only read take the ledger as an argument too; ``ledger_url`` chooses.
ReadUrl = Annotated[
    str | None, typer.Argument(metavar="[URL]", help="The ledger, instead of --ledger.")
]
MaybeLedgerUrl = Annotated[
    str | None,
    typer.Option(
        "--ledger", metavar="URL", help=f"The ledger; default the environment's {_LEDGER}."
    ),
]
ProgramName = Annotated[
    str | None,
    typer.Option(
        "--program", metavar="NAME", help="A program of the ledger; default the only one."
    ),
]
By = Annotated[
    str | None,
    typer.Option("--by", metavar="NAME", help="Author of the entry; default your login name."),
]
RequestName = Annotated[
    str | None,
    typer.Option(
        "--request",
        metavar="NAME",
        help="A name for this command: if it is recorded under the name already, nothing changes. "
        "It is never erased, so it must not name applicants.",
    ),
]
Refused = Annotated[
    str | None,
    typer.Option(
        "--refused",
        metavar="FILE",
        help="File for refused rows, with reasons; default <input>.refused.csv in the current "
        "folder. Existing files are kept.",
    ),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Stop at the first refused row, and record nothing.")
]
MostRefused = Annotated[
    float,
    typer.Option(
        "--most-refused",
        metavar="SHARE",
        help="Record nothing if more than this share of the rows is refused; 1 allows any share.",
    ),
]
Trusted = Annotated[
    list[str] | None,
    typer.Option(
        "--trusted",
        metavar="TYPE",
        help="A type that stored models may contain; may be repeated.",
    ),
]
UnlikeHistory = Annotated[
    bool,
    typer.Option(
        "--unlike-history",
        help="Decide even if columns are very unlike the history, and record that.",
    ),
]
Policies = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        metavar="RULE",
        help="A policy: a column, a comparison (>=, <=, >, < or ==) and a number, such as 'score "
        ">= 0.85'; may be repeated.",
    ),
]
PendingOutcomes = Annotated[
    str,
    typer.Option(
        "--pending",
        metavar="cut|worst",
        help="Leave out rounds from the first with pending outcomes on, or count each pending "
        "outcome as the worst for each bound.",
    ),
]
Late = Annotated[float, typer.Option(min=0, help="Days after which a pending outcome is late.")]
Groups = Annotated[
    bool,
    typer.Option("--groups/--no-groups", help="Count groups too, if you are allowed to read them."),
]

# What messages about a log ask for in Python, and the options that are it in a shell.
LOG_OPTIONS = {
    "pending='worst'": "--pending worst",
    "with pos_label": "with --pos-label",
    "with features": "with --feature",
}
_TRACEBACK = "FAIRCHANCE_TRACEBACK"  # a variable: print where an unexpected error arose
# Packages that may be missing, and the extra that installs them.
_EXTRAS = {
    "altair": "experiments",
    "jinja2": "experiments",
    "vl_convert": "experiments",
    "pyarrow": "experiments",
    "alembic": "ledger",
    "psycopg": "postgres",
    "pandas": "production",
    "openpyxl": "excel",
}


@dataclass(frozen=True)
class RunOptions:
    """How to run an experiment, and where its results go."""

    data: Path | None
    jobs: int
    backend: str | None
    scheduler: str | None
    out: Path | None
    fresh: bool


def progress(message: str, quiet: bool) -> AbstractContextManager[Any]:
    """Show a message on standard error while the block runs."""
    return nullcontext() if quiet else Console(stderr=True).status(message)


@dataclass(frozen=True)
class Paired:
    """How to test methods against one of them."""

    against: str | None = None
    exact: bool = False
    see: float | None = None

    def check(self, methods: tuple[str, ...]) -> None:
        """Raise unless the method is among those that run, and the difference can be seen."""
        if self.against is None and (self.exact or self.see is not None):
            option = "--exact" if self.exact else "--see"
            raise InputError(f"{option} goes with --against METHOD; add it.")
        if self.against is not None and self.against not in methods:
            raise InputError(
                f"--against must name one of the methods {', '.join(methods)}, got "
                f"{self.against!r}; add it to --methods or name another."
            )
        if self.see is not None and not 0 < self.see < float("inf"):
            raise InputError(f"--see must be a positive number of thousands, got {self.see:g}.")


def output_format(**asked: bool) -> str:
    """Return the one format that is requested, or text; raise if there are several.

    Examples
    --------
    >>> output_format(json=False, csv=True)
    'csv'
    """
    chosen = [name for name, wanted in asked.items() if wanted]
    if len(chosen) > 1:
        raise InputError(
            f"a command prints one format, got {' and '.join(f'--{name}' for name in chosen)}; "
            f"choose one."
        )
    return chosen[0] if chosen else "text"


def with_options(experiment: Experiment, repetitions: int | None, seed: int | None) -> Experiment:
    """Return an experiment with the repetitions and the seed of the command line, if given."""
    given: dict[str, Any] = {"repetitions": repetitions, "seed": seed}
    return replace(
        experiment, **{name: value for name, value in given.items() if value is not None}
    )


def names(text: str) -> tuple[str, ...]:
    """Return the names in a list with commas.

    Examples
    --------
    >>> names("plain, fair-clf,")
    ('plain', 'fair-clf')
    """
    return tuple(name.strip() for name in text.split(",") if name.strip())


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


def check_jobs(jobs: int) -> None:
    """Raise if the number of jobs is neither positive nor -1."""
    if jobs == 0 or jobs < -1:
        raise InputError(f"jobs must be 1 or more, or -1 for one per core, got {jobs}.")


def check_name(option: str, name: str | None) -> None:
    """Raise if an option that takes a name got an empty one."""
    if name is not None and not name.strip():
        raise InputError(f"{option} takes a name, got an empty one; give a name or leave it out.")


@contextmanager
def writing(place: str | Path) -> Iterator[None]:
    """Turn an ``OSError`` into an ``InputError`` that names the place."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{place} cannot be written ({error.strerror or error}); choose another place."
        ) from error


def not_installed_message(command: str, error: ModuleNotFoundError) -> str:
    """Say which package a command needs and how to install it.

    Examples
    --------
    >>> not_installed_message("report", ModuleNotFoundError(name="altair.vegalite"))
    "report needs altair, which is not installed; `pip install 'fairchance[experiments]'` \
(in a checkout: `pip install '.[experiments]'`) installs it."
    """
    package = _package(error)
    extra = _EXTRAS.get(package, "experiments")
    return f"{command} needs {package}, which is not installed; {to_install(extra)} installs it."


@contextmanager
def errors(json: bool, options: Mapping[str, str] | None = None) -> Iterator[None]:
    """Print an error as one sentence on standard error, and exit with its code.

    Parameters
    ----------
    json
        Whether to print it as JSON too.
    options
        Words of the library's messages that are options of this command.
    """
    try:
        yield
    except (typer.Exit, typer.Abort, BrokenPipeError):
        raise  # the command's own end, or a reader that is gone
    except KeyboardInterrupt:
        print_error("interrupted; the same command continues from here.")
        raise SystemExit(130) from None
    except Exception as error:
        code, message = _code_and_message(error)
        for words, option in (options or {}).items():
            message = message.replace(words, option)
        if json:
            print_json({"error": message, "code": code})
        print_error(message)
        raise SystemExit(code) from error


def _code_and_message(error: Exception) -> tuple[int, str]:
    """Return the exit code of an error, and its sentence."""
    if isinstance(error, InputError):
        return 3 if isinstance(error, UnavailableError) else 2, str(error)
    if isinstance(error, ModuleNotFoundError) and _package(error) in _EXTRAS:
        return 2, not_installed_message("this command", error)
    if os.environ.get(_TRACEBACK):
        print_lines(traceback.format_exc().splitlines(), to_stderr=True)
    what = " ".join(f"{type(error).__name__}: {error}".split())
    if isinstance(error, MemoryError):
        return UNEXPECTED, (
            "the memory is used up, and nothing half-done is recorded; send fewer rows or columns, "
            "or use a machine with more memory."
        )
    if isinstance(error, OSError):
        return UNEXPECTED, (
            f"the system refused something ({what}), and nothing half-done is recorded; free "
            f"space or correct permissions, then run the command again."
        )
    return UNEXPECTED, (
        f"this is a bug of fairchance ({what}), and nothing half-done is recorded; please report "
        f"it with what the command prints with {_TRACEBACK}=1."
    )


def _package(error: ModuleNotFoundError) -> str:
    return str(error.name).partition(".")[0]


@contextmanager
def printed_warnings(*kinds: type[Warning]) -> Iterator[list[str]]:
    """Print warnings of some kinds on standard error, and collect their messages."""
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield messages
    for warning in caught:
        if issubclass(warning.category, kinds):
            messages.append(str(warning.message))
            print_error(str(warning.message))
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )


def ledger_url(place: str | None, ledger: str | None) -> str:
    """Return the ledger that an argument, ``--ledger`` or the environment names.

    Examples
    --------
    >>> ledger_url("sqlite:///lender.db", None)
    'sqlite:///lender.db'
    """
    if place is not None and ledger is not None and place != ledger:
        raise InputError(
            "a command reads one ledger, got one as an argument and another as --ledger; leave "
            "out one."
        )
    url = place or ledger or os.environ.get(_LEDGER)
    if not url:
        raise InputError(
            f"the command needs a ledger, got none; name it, as in sqlite:///lender.db, or set "
            f"{_LEDGER}."
        )
    return url


def open_program(
    ledger: str, program: str | None, by: str | None, trusted: list[str] | None
) -> Program:
    """Return a program on a ledger; its state is read by the first call that needs it."""
    check_name("--by", by)
    from fairchance.ledger.program import Program  # noqa: PLC0415 - an extra

    return Program.open(ledger, program, by=by, trusted=trusted or (), load=False)
