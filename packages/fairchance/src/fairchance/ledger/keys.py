"""Keys to a program over HTTP: who may do what.

A key has a visible part, which is its id and the author of the entries it makes, and a secret of
256 random bits. The ledger keeps a hash of the secret, which needs no salt and no slow function,
because nobody can try so many secrets. Keys are in the ledger's database, so that all workers and
machines know them and a revocation reaches all of them, and they are no part of the chain.
"""

from __future__ import annotations

import hmac
import re
import secrets
from dataclasses import dataclass
from hashlib import sha256

from fairchance.errors import InputError
from fairchance.ledger.base import check_name
from fairchance.ledger.sql import LedgerReader, Writer

__all__ = ["ROLES", "Key", "add_key", "keys_of", "revoke_key", "split_token"]

# decide: decisions. edge: also the policy of the round, and decisions that were made by it.
# observe: outcomes. operate: status, files of applicants, and what staff change. audit: reads all,
# groups too, and writes nothing.
ROLES = ("decide", "edge", "observe", "operate", "audit")

_TOKEN = re.compile(r"fc_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")


@dataclass(frozen=True)
class Key:
    """A key without its secret.

    Attributes
    ----------
    id
        The visible part; the author of the entries that the key makes.
    role, name
        What it may do, and what it is for.
    secret
        The hash of the secret.
    made, revoked
        When it was made and revoked (ISO 8601, UTC); None while it is valid.
    """

    id: str
    role: str
    name: str
    secret: bytes
    made: str
    revoked: str | None = None

    def fits(self, secret: str) -> bool:
        """Return whether a secret is the key's, in a time that does not depend on it."""
        return hmac.compare_digest(sha256(secret.encode()).digest(), self.secret)


def add_key(writer: Writer, role: str, name: str) -> str:
    """Make a key and return its text, which nobody can read later."""
    if role not in ROLES:
        raise InputError(f"a role is one of {', '.join(ROLES)}, got {role!r}.", option="role")
    check_name("a key's name", name, 100)
    key, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    writer.add_access_key(key, role, name, sha256(secret.encode()).digest())
    return f"fc_{key}_{secret}"


def keys_of(reader: LedgerReader) -> list[Key]:
    """Return all keys of a program, the oldest first."""
    return [Key(*row) for row in reader.access_keys()]


def revoke_key(writer: Writer, key: str) -> None:
    """Revoke a key, named by its id."""
    if not writer.revoke_access_key(key):
        raise InputError(f"the program has no valid key {key!r}; list the keys.")


def split_token(token: str) -> tuple[str, str] | None:
    """Return the id and the secret of a key's text; None if it is none.

    Examples
    --------
    >>> split_token("fc_0123456789ab_" + "x" * 43)[0]
    '0123456789ab'
    >>> split_token("fc_0123456789ab_short") is None
    True
    """
    found = _TOKEN.fullmatch(token)
    return None if found is None else (found[1], found[2])
