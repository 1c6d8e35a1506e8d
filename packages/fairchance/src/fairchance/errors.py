"""Exceptions and warnings of fairchance, and text that is safe to show."""

import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar


class InputError(ValueError):
    """Input cannot be used; the message says why, what is allowed and what to do.

    Parameters
    ----------
    message
        The sentence; ``{option}`` in it stands for the option.
    option
        The parameter that is wrong, or that lets the input pass; empty if there is none. The
        library writes its name, and the command line its flag.

    Attributes
    ----------
    code
        A word for the kind of error, which the command line's JSON has.

    Examples
    --------
    >>> error = InputError("3 columns are unlike; set {option} if that is meant.", option="anyway")
    >>> print(error)
    3 columns are unlike; set `anyway` if that is meant.
    >>> print(error.worded("--anyway"))
    3 columns are unlike; set --anyway if that is meant.
    """

    code: ClassVar[str] = "input"

    def __init__(self, message: str = "", *, option: str = "") -> None:
        super().__init__(message)
        self.option = option

    def __str__(self) -> str:
        return self.worded(f"`{self.option}`")

    def worded(self, option: str) -> str:
        """Return the message with another name of its option."""
        return str(self.args[0]).replace("{option}", option) if self.args else ""


class UnknownIdError(InputError):
    """An id was never decided on, or belongs to a rejected applicant."""

    code = "unknown_id"


class UndecidedError(InputError, AttributeError):
    """A policy was asked for before the first round; like an attribute that is not there yet."""


class OtherContentError(InputError):
    """An application, batch or request is on record with another content."""

    code = "other_content"


class UnavailableError(InputError):
    """Data could not be downloaded; the message says from where and how to do it by hand."""

    code = "unavailable"


class UntrustedError(InputError):
    """A stored estimator contains types that are not trusted."""

    code = "untrusted"


class VersionsError(InputError):
    """A stored estimator was made by another version of scikit-learn than the one that runs.

    Attributes
    ----------
    stored, running
        The two versions.
    """

    code = "versions"

    def __init__(self, stored: str, running: str) -> None:
        super().__init__(
            f"a stored estimator was made by scikit-learn {stored}, which it needs, and "
            f"scikit-learn {running} is installed; install scikit-learn=={stored} to go on, or "
            f"start again with a learner of fairchance, which any version reads."
        )
        self.stored, self.running = stored, running

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how it is copied, from a worker of a cluster for example."""
        return type(self), (self.stored, self.running)


class LedgerError(InputError):
    """A ledger cannot be read or written, or its content is wrong."""

    code = "ledger"


class UnverifiedError(LedgerError):
    """A ledger was changed, and so much that nothing can be read from it."""

    code = "unverified"


class RoundClosedError(LedgerError):
    """A decision cannot be recorded, since its round was closed; decide in the next one."""

    code = "round_closed"


class NoRoundError(InputError):
    """Applicants cannot be decided on one at a time, since no round is open."""

    code = "no_round"


class KnownApplicationError(LedgerError):
    """An application is recorded already; the record has the answer."""

    code = "known_application"


class PausedError(InputError):
    """A program is paused, and the lender's own decisions are not given to decide instead."""

    code = "paused"


class LedgerWarning(UserWarning):
    """A ledger command succeeded, and something is left for the user to do."""


class LearningWarning(UserWarning):
    """Learning could not follow all options; the round's record says how."""


def to_install(extra: str, package: str = "fairchance") -> str:
    """Return the commands that install an extra: by the package's name, and in a checkout.

    Examples
    --------
    >>> print(to_install("data"))
    `pip install 'fairchance[data]'` (in a checkout: `pip install 'packages/fairchance[data]'`)
    """
    return (
        f"`pip install '{package}[{extra}]'` (in a checkout: "
        f"`pip install 'packages/{package}[{extra}]'`)"
    )


def to_install_lab() -> str:
    """Return the commands that install the lab, which has the version of this package."""
    return (
        "`pip install fairchance-lab` (in a checkout: `pip install -e packages/fairchance "
        "-e packages/fairchance-lab`)"
    )


def visible(text: str) -> str:
    r"""Return one line of text with escapes for all that a terminal obeys or hides.

    These are control characters, line ends, marks of direction and other characters without a
    shape. A name in a foreign file or ledger may hold them.

    Examples
    --------
    >>> print(visible("\x1b[31mred\n and \u202eback"))
    \x1b[31mred\n and \u202eback
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or unicodedata.category(c) == "Zs" else repr(c)[1:-1] for c in text
    )


@contextmanager
def writing(place: str | Path) -> Iterator[None]:
    """Turn an ``OSError`` into an ``InputError`` that names the place."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{place} cannot be written ({error.strerror or error}); choose another place."
        ) from error
