"""What secondlook raises and warns with. Imports nothing of ours."""


class InputError(ValueError):
    """Something handed in cannot be used; the message says what, what is allowed and what to do."""


class UnknownIdError(InputError):
    """An id that was never decided on, or whose person was rejected, cannot have an outcome."""


class UnavailableError(InputError):
    """Data could not be fetched; the message says from where and how to get them by hand."""


class UntrustedError(InputError):
    """A stored estimator is made of types that nobody has said they trust."""


class LedgerError(InputError):
    """A ledger cannot be read or written, or does not hold what it should."""


class LedgerWarning(UserWarning):
    """A ledger did what was asked, and something beside it is left to be done."""


class LearningWarning(UserWarning):
    """Learning went on in a weaker way than asked for; the round's record says how."""


def to_install(extra: str) -> str:
    """Return the commands that install an extra: by the package's name, and in a checkout.

    Examples
    --------
    >>> print(to_install("deep"))
    `pip install 'secondlook[deep]'` (in a checkout: `pip install '.[deep]'`)
    """
    return f"`pip install 'secondlook[{extra}]'` (in a checkout: `pip install '.[{extra}]'`)"
