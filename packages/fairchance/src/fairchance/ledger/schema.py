"""The tables of a ledger. A change here needs the same change in the migration."""

from __future__ import annotations

import sqlalchemy as sa

__all__ = [
    "NEWEST",
    "PERSONAL",
    "access_keys",
    "entries",
    "erasures",
    "group_values",
    "metadata",
    "outcomes",
    "overrides",
    "payloads",
    "people",
    "programs",
    "rounds",
    "row_digests",
]

NEWEST = "0001"  # the migration that makes the tables below

metadata = sa.MetaData()

_HASH = sa.LargeBinary(32)
_SALT = sa.LargeBinary(16)
_ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")  # compared bytewise everywhere


def _key(*names: str) -> list[sa.Column[int]]:
    kinds = {"program": sa.Integer, "round": sa.Integer}
    return [
        sa.Column(name, kinds.get(name, sa.BigInteger), primary_key=True, autoincrement=False)
        for name in names
    ]


def _reference(table: str, column: str, referred: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["program", column], [f"{table}.program", f"{table}.{referred}"])


def _entry_rows(name: str, *columns: sa.Column[object]) -> sa.Table:
    """Return a table of rows that belong to an entry and an applicant."""
    return sa.Table(
        name,
        metadata,
        *_key("program", "entry", "person"),
        *columns,
        _reference("entries", "entry", "number"),
        _reference("people", "person", "person"),
        sa.Index(f"{name}_by_person", "program", "person"),
        sqlite_with_rowid=False,
    )


programs = sa.Table(
    "programs",
    metadata,
    sa.Column("program", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
)

# One row per fact, or per batch of facts that were recorded together: the chain.
entries = sa.Table(
    "entries",
    metadata,
    *_key("program", "number"),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("by", sa.Text, nullable=False),
    sa.Column("header", sa.Text, nullable=False),
    sa.Column("content", _HASH, nullable=False),
    sa.Column("previous", _HASH, nullable=False),
    sa.Column("hash", _HASH, nullable=False),
    sa.ForeignKeyConstraint(["program"], ["programs.program"]),
    sa.UniqueConstraint("program", "kind", "key"),
    sqlite_with_rowid=False,
)

# Rounds that were opened before anybody was decided on; ``closed`` is None while one is open.
# Processes take numbers of applicants from ``reserved`` on, on PostgreSQL.
rounds = sa.Table(
    "rounds",
    metadata,
    *_key("program", "round"),
    sa.Column("opened", sa.BigInteger, nullable=False),
    sa.Column("closed", sa.BigInteger),
    sa.Column("reserved", sa.BigInteger, nullable=False),
    _reference("entries", "opened", "number"),
    _reference("entries", "closed", "number"),
    sqlite_with_rowid=False,
)

# Applicants, and the decisions on them. An erasure leaves the decision and the personal digest.
people = sa.Table(
    "people",
    metadata,
    *_key("program", "person"),
    sa.Column("application", _ID),
    sa.Column("numbers", sa.LargeBinary),
    sa.Column("texts", sa.Text),
    sa.Column("reasons", sa.LargeBinary),
    sa.Column("person_key", sa.BigInteger),
    sa.Column("salt", _SALT),
    sa.Column("personal", _HASH, nullable=False),
    sa.Column("round", sa.Integer, nullable=False),
    sa.Column("accepted", sa.Boolean, nullable=False),
    sa.Column("exploit", sa.Boolean, nullable=False),
    sa.Column("score", sa.Double),
    sa.Column("propensity", sa.Double),
    sa.Column("threshold", sa.Double),
    sa.Column("incumbent", sa.Boolean),
    sa.Column("barred", sa.Boolean),
    sa.ForeignKeyConstraint(["program"], ["programs.program"]),
    sa.UniqueConstraint("program", "application"),
    sqlite_with_rowid=False,
)

# A table of its own, so that a database role may be allowed to read applicants without groups.
group_values = sa.Table(
    "group_values",
    metadata,
    *_key("program", "person"),
    sa.Column("value", sa.Text),
    sa.Column("salt", _SALT),
    _reference("people", "person", "person"),
    sqlite_with_rowid=False,
)

outcomes = _entry_rows("outcomes", sa.Column("state", sa.Text, nullable=False))

overrides = _entry_rows(
    "overrides",
    sa.Column("accepted", sa.Boolean, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
)

erasures = _entry_rows("erasures")

# Settings, policies and states as data (``fairchance.methods.storage``), never as code.
payloads = sa.Table(
    "payloads",
    metadata,
    *_key("program", "entry"),
    sa.Column("content", sa.LargeBinary),
    sa.Column("digest", _HASH, nullable=False),
    _reference("entries", "entry", "number"),
    sqlite_with_rowid=False,
)

# The digests of an entry's rows, 32 bytes each, in the order of applicants. They are kept apart
# from the rows, so that ``verify`` can name a row that was added or removed.
row_digests = sa.Table(
    "row_digests",
    metadata,
    *_key("program", "entry"),
    *(
        sa.Column(name, sa.LargeBinary)
        for name in ("decisions", "outcomes", "overrides", "erasures")
    ),
    _reference("entries", "entry", "number"),
    sqlite_with_rowid=False,
)

# Who may use a program over HTTP (``ledger.keys``). They are no part of the chain: they decide
# nothing, and an entry names the key that made it. ``secret`` is a hash.
access_keys = sa.Table(
    "access_keys",
    metadata,
    sa.Column("program", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("secret", _HASH, nullable=False),
    sa.Column("made", sa.Text, nullable=False),
    sa.Column("revoked", sa.Text),
    sa.ForeignKeyConstraint(["program"], ["programs.program"]),
    sqlite_with_rowid=False,
)

# The columns that an erasure empties; it also empties the stored states in ``payloads``.
PERSONAL = {
    people: ("application", "numbers", "texts", "reasons", "person_key", "salt"),
    group_values: ("value", "salt"),
    payloads: ("content",),
}
