"""Where a ledger lives, as users write it and as messages show it: without the password."""

from __future__ import annotations

import re
from typing import Any

import sqlalchemy as sa

from secondlook.errors import LedgerError

__all__ = ["read_url", "shown_url"]

_SPELLINGS = {"postgres": "postgresql"}  # what servers call it, and what SQLAlchemy does
_HIDDEN = "***"
_SECRETS = ("password", "sslpassword")  # that may stand behind a question mark
_BEFORE_AT = re.compile(r"((?:^|(?<!/)//)[^:/]*:)(?!//).*@", re.DOTALL)
_BEHIND_MARK = re.compile(rf"((?:{'|'.join(_SECRETS)})\s*=\s*)('[^']*'|[^&]*)", re.IGNORECASE)


def read_url(url: str) -> sa.URL:
    """Return the place of a ledger.

    Raises
    ------
    LedgerError
        If ledgers live at no such place.
    """
    try:
        place = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):  # a port must be a number
        place = None
    if place is not None:
        backend = place.get_backend_name()
        place = place.set(drivername=_SPELLINGS.get(backend, backend))
    if place is None or place.drivername not in ("sqlite", "postgresql"):
        raise LedgerError(
            f"a ledger lives at sqlite:///file or postgresql://host/database, got "
            f"{shown_url(url)!r}; pass one of these."
        )
    return place


def shown_url(url: Any) -> str:
    """Return a place with its passwords hidden, whatever it looks like.

    Examples
    --------
    >>> shown_url("mysql://ann:secret@host/db?sslpassword=other")
    'mysql://ann:***@host/db?sslpassword=***'
    """
    text = url.render_as_string(hide_password=True) if isinstance(url, sa.URL) else str(url)
    return _BEHIND_MARK.sub(rf"\1{_HIDDEN}", _BEFORE_AT.sub(rf"\1{_HIDDEN}@", text))
