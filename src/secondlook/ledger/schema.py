"""The tables of a ledger. A change here needs a migration beside the others."""

from __future__ import annotations

import sqlalchemy as sa

__all__ = [
    "NEWEST",
    "entries",
    "erasures",
    "group_values",
    "metadata",
    "outcomes",
    "overrides",
    "payloads",
    "people",
    "programs",
]

NEWEST = "0005"  # the migration that makes the tables below

metadata = sa.MetaData()

_HASH = sa.LargeBinary(32)
_ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")  # bytewise, as on SQLite


def _by_person(table: str) -> tuple[sa.PrimaryKeyConstraint, sa.Index]:
    """Return what finds people by their numbers: a key on SQLite, an index of pages on PostgreSQL.

    People come in the order of their numbers, so that PostgreSQL finds a batch by what its pages
    begin and end with. A key there takes longer than the rows themselves, and guards nothing: the
    entries say which people there are, and ``verify`` finds one too many.
    """
    key = sa.PrimaryKeyConstraint("program", "person").ddl_if(dialect="sqlite")
    pages = sa.Index(
        f"{table}_by_person",
        "program",
        "person",
        postgresql_using="brin",
        postgresql_with={"pages_per_range": 32, "autosummarize": True},
    )
    return key, pages.ddl_if(dialect="postgresql")


def _one_of_each_name() -> tuple[sa.UniqueConstraint, sa.UniqueConstraint]:
    """Return what keeps a program from having two applications of one name.

    Names differ where programs do not: PostgreSQL, which compares column by column, is told them
    first.
    """
    return (
        sa.UniqueConstraint("program", "application").ddl_if(dialect="sqlite"),
        sa.UniqueConstraint("application", "program").ddl_if(dialect="postgresql"),
    )


def _known(table: str, *pairs: tuple[str, str]) -> sa.ForeignKeyConstraint:
    """Return a key to another table; PostgreSQL would look it up for each of a million rows."""
    own, other = zip(*pairs, strict=True)
    whose = [f"{table}.{name}" for name in other]
    return sa.ForeignKeyConstraint(own, whose).ddl_if(dialect="sqlite")


def _entry_rows(name: str, *columns: sa.Column[object]) -> sa.Table:
    """Return a table of rows that belong to an entry and a decided person."""
    return sa.Table(
        name,
        metadata,
        sa.Column("program", sa.Integer, primary_key=True),
        sa.Column("entry", sa.BigInteger, primary_key=True),
        sa.Column("person", sa.BigInteger, primary_key=True),
        *columns,
        _known("entries", ("program", "program"), ("entry", "number")),
        _known("people", ("program", "program"), ("person", "person")),
        sa.Index(f"{name}_by_person", "program", "person"),
        sqlite_with_rowid=False,
    )


programs = sa.Table(
    "programs",
    metadata,
    sa.Column("program", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
)

# One line per fact, or per batch of facts told together: the chain.
entries = sa.Table(
    "entries",
    metadata,
    sa.Column("program", sa.ForeignKey("programs.program"), primary_key=True),
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("by", sa.Text, nullable=False),
    sa.Column("header", sa.Text, nullable=False),
    sa.Column("content", _HASH, nullable=False),
    sa.Column("previous", _HASH, nullable=False),
    sa.Column("hash", _HASH, nullable=False),
    sa.UniqueConstraint("program", "kind", "key"),
    sqlite_with_rowid=False,
)

# People as they applied, and what was decided. After an erasure the decision and the digest are
# left. No foreign key: PostgreSQL would look up the program for each of a million rows, and the
# entries, which have one, say whose people these are.
people = sa.Table(
    "people",
    metadata,
    sa.Column("program", sa.Integer, nullable=False),
    sa.Column("person", sa.BigInteger, nullable=False),
    sa.Column("application", _ID),
    sa.Column("numbers", sa.LargeBinary),
    sa.Column("texts", sa.Text),
    sa.Column("salt", sa.LargeBinary(16)),
    sa.Column("digest", _HASH, nullable=False),
    sa.Column("round", sa.Integer, nullable=False),
    sa.Column("accepted", sa.Boolean, nullable=False),
    sa.Column("exploit", sa.Boolean, nullable=False),
    sa.Column("score", sa.Double),
    sa.Column("propensity", sa.Double),
    sa.Column("threshold", sa.Double),
    sa.Column("fold", sa.Integer),
    sa.Column("reasons", sa.LargeBinary),
    *_one_of_each_name(),
    *_by_person("people"),
    sqlite_with_rowid=False,
)

# Apart from the people, so that whoever decides need not be allowed to read it. No foreign key, for
# the same reason.
group_values = sa.Table(
    "group_values",
    metadata,
    sa.Column("program", sa.Integer, nullable=False),
    sa.Column("person", sa.BigInteger, nullable=False),
    sa.Column("value", sa.Text),
    sa.Column("salt", sa.LargeBinary(16)),
    sa.Column("digest", _HASH),  # of its own before version 0004, then in the person's
    *_by_person("group_values"),
    sqlite_with_rowid=False,
)

outcomes = _entry_rows("outcomes", sa.Column("state", sa.Text, nullable=False))

overrides = _entry_rows(
    "overrides",
    sa.Column("accepted", sa.Boolean, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
)

erasures = _entry_rows("erasures")

# Settings, policies and states as data (``secondlook.methods.storage``), never as code.
payloads = sa.Table(
    "payloads",
    metadata,
    sa.Column("program", sa.Integer, primary_key=True),
    sa.Column("entry", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("content", sa.LargeBinary),
    sa.Column("digest", _HASH, nullable=False),
    sa.ForeignKeyConstraint(["program", "entry"], ["entries.program", "entries.number"]),
    sqlite_with_rowid=False,
)
