"""Options that several commands take, how errors become exit codes, and opening a program."""

from __future__ import annotations

import os
import traceback
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairchance.cli.output import Console, print_error, print_json, print_lines
from fairchance.errors import InputError, LedgerError, to_install

if TYPE_CHECKING:  # slow to import, and every command imports this module
    from fairchance.ledger.objections import Request
    from fairchance.ledger.program import Program

__all__ = [
    "EXIT_CODES",
    "LIGHT_CODES",
    "VERIFICATION_FAILED",
    "By",
    "Groups",
    "Jobs",
    "Json",
    "Late",
    "LedgerUrl",
    "MaybeLedgerUrl",
    "MostRefused",
    "PendingOutcomes",
    "Policies",
    "ProgramName",
    "ReadUrl",
    "Refused",
    "Strict",
    "Trusted",
    "UnlikeHistory",
    "check_jobs",
    "check_name",
    "errors",
    "ledger_url",
    "names",
    "not_installed_message",
    "open_program",
    "printed_warnings",
    "progress",
    "recorded_already",
    "repeated",
    "repeated_message",
]

# All exit codes of the command line; docs/operate.md says what to do after each.
EXIT_CODES = {
    0: "done",
    1: "the reader of the output was gone",
    2: "wrong input, or a ledger that cannot be used",
    3: "data could not be downloaded, or an alert not be sent",
    4: "a record was changed or damaged",
    5: "the program is paused",
    6: "status --fail-on found a red light",
    7: "status --fail-on found an amber light",
    70: "an unexpected error",
    130: "interrupted",
}
VERIFICATION_FAILED, UNEXPECTED = 4, 70
LIGHT_CODES = {"red": 6, "amber": 7}
# Exit codes of errors, by their code.
_OTHERS = {"not_installed": 2, "unavailable": 3, "unverified": VERIFICATION_FAILED, "paused": 5}
_LEDGER = "FAIRCHANCE_LEDGER"

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Jobs = Annotated[int, typer.Option(help="Repetitions to run at a time; -1 is one per core.")]

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

_TRACEBACK = "FAIRCHANCE_TRACEBACK"  # a variable: print where an unexpected error arose
# Packages of extras, by the names under which they are imported.
_PACKAGES = {
    "alembic",
    "altair",
    "fastapi",
    "jinja2",
    "openpyxl",
    "pandas",
    "psycopg",
    "pyarrow",
    "skops",
    "sqlalchemy",
    "uvicorn",
    "vl_convert",
}


def progress(message: str, quiet: bool) -> AbstractContextManager[Any]:
    """Show a message on standard error while the block runs."""
    return nullcontext() if quiet else Console(stderr=True).status(message)


def names(text: str) -> tuple[str, ...]:
    """Return the names in a list with commas.

    Examples
    --------
    >>> names("plain, fair-clf,")
    ('plain', 'fair-clf')
    """
    return tuple(name.strip() for name in text.split(",") if name.strip())


def check_jobs(jobs: int) -> None:
    """Raise if the number of jobs is neither positive nor -1."""
    if jobs == 0 or jobs < -1:
        raise InputError(
            f"{{option}} must be 1 or more, or -1 for one per core, got {jobs}.", option="jobs"
        )


def check_name(option: str, name: str | None) -> None:
    """Raise if an option that takes a name got an empty one."""
    if name is not None and not name.strip():
        raise InputError(f"{{option}} must be a name, got {name!r}.", option=option)


def not_installed_message(command: str, error: ModuleNotFoundError) -> str:
    """Say which package a command needs, and how to install all that commands need.

    Examples
    --------
    >>> print(not_installed_message("report", ModuleNotFoundError(name="altair.vegalite")))
    report needs altair, which is not installed; `pip install 'fairchance[production]'` (in a
    checkout: `pip install 'packages/fairchance[production]'`) installs it.
    """
    package = _package(error)
    extra = {"psycopg": "postgres", "fastapi": "service", "uvicorn": "service"}.get(
        package, "production"
    )
    return f"{command} needs {package}, which is not installed; {to_install(extra)} installs it."


@contextmanager
def errors(json: bool) -> Iterator[None]:
    """Print an error as one sentence on standard error, and exit with its code.

    As JSON it is printed, too: a word for its kind, the option and the message.
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
        if json:
            option = _flag(error) if isinstance(error, InputError) else ""
            print_json({"error": {"code": code, "option": option or None, "message": message}})
        print_error(message)
        usual = 2 if isinstance(error, InputError) else UNEXPECTED
        raise SystemExit(_OTHERS.get(code, usual)) from error


def _flag(error: InputError) -> str:
    return f"--{error.option.replace('_', '-')}" if error.option else ""


def _code_and_message(error: Exception) -> tuple[str, str]:
    """Return a word for the kind of an error, and its sentence."""
    # The library's message names the extra that a function needs; a command needs more.
    missing = error.__cause__ if isinstance(error, InputError) else error
    if isinstance(missing, ModuleNotFoundError) and _package(missing) in _PACKAGES:
        return "not_installed", not_installed_message("this command", missing)
    if isinstance(error, InputError):
        return error.code, error.worded(_flag(error))
    if os.environ.get(_TRACEBACK):
        print_lines(traceback.format_exc().splitlines(), to_stderr=True)
    what = " ".join(f"{type(error).__name__}: {error}".split())
    if isinstance(error, MemoryError):
        return "memory", "the memory is used up, and nothing half-done is kept; send fewer rows."
    if isinstance(error, OSError):
        return "system", f"the system refused this ({what}), and nothing half-done is kept."
    return "bug", (
        f"this is a bug of fairchance ({what}), and nothing half-done is kept; report it with the "
        f"output under {_TRACEBACK}=1."
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


@contextmanager
def recorded_already(missing: str, advice: str) -> Iterator[None]:
    """Explain in any error raised here that the record is complete and only output is missing."""
    try:
        yield
    except (InputError, OSError) as error:
        # A ledger that failed says that nothing was recorded, which is true of its own call only.
        why = "the ledger failed" if isinstance(error, LedgerError) else str(error).rstrip(".")
        raise InputError(f"{missing} ({why}); {advice}.") from error


def repeated(request: Request) -> dict[str, Any]:
    """Return where and when the request that a command repeats was recorded, and its author."""
    entry = request.entry
    return {"request": request.name, "entry": entry.number, "at": entry.at, "by": entry.by}


def repeated_message(request: dict[str, Any]) -> str:
    """Return ``repeated`` as a sentence.

    Examples
    --------
    >>> at = "2031-03-20T09:00:00+00:00"
    >>> repeated_message({"request": "r7", "entry": 17, "at": at, "by": "credit desk"})
    "Nothing changed: request 'r7' was recorded on 2031-03-20 by 'credit desk' (entry 17)."
    """
    return (
        f"Nothing changed: request {request['request']!r} was recorded on {request['at'][:10]} by "
        f"{request['by']!r} (entry {request['entry']})."
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
            "the ledger is an argument or {option}, got both; leave out one.", option="ledger"
        )
    url = place or ledger or os.environ.get(_LEDGER)
    if not url:
        raise InputError(
            f"the command needs a ledger; name one, as in sqlite:///lender.db, or set {_LEDGER}.",
            option="ledger",
        )
    return url


def open_program(
    ledger: str, program: str | None, by: str | None, trusted: list[str] | None
) -> Program:
    """Return a program on a ledger; its state is read by the first call that needs it."""
    check_name("by", by)
    from fairchance.ledger.program import Program  # noqa: PLC0415 - an extra

    return Program.open(ledger, program, by=by, trusted=trusted or (), load=False)
