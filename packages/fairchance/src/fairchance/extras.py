"""Packages that are extras, imported when they are needed.

This module imports nothing slow, since commands need it before they know whether they will run.
"""

from __future__ import annotations

import importlib
from typing import Any

from fairchance.errors import InputError, to_install

__all__ = ["arrow"]


def arrow(module: str = "") -> Any:
    """Return pyarrow or one of its modules; raise if it is not installed.

    Examples
    --------
    >>> arrow("csv").__name__
    'pyarrow.csv'
    """
    try:
        return importlib.import_module(f"pyarrow.{module}" if module else "pyarrow")
    except ImportError as error:
        raise InputError(
            f"reading and storing tables needs pyarrow, which is not installed; "
            f"{to_install('data')} installs it."
        ) from error
