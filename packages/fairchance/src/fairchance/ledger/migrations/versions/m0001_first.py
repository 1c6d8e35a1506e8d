"""The tables of 0.1.0; until its release this file is edited in place, then never again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_HASH = sa.LargeBinary(32)
_SALT = sa.LargeBinary(16)


def _key(*names: str) -> list[sa.Column[int]]:
    kinds = {"program": sa.Integer, "round": sa.Integer}
    return [
        sa.Column(
            name,
            kinds.get(name, sa.BigInteger),
            primary_key=True,
            autoincrement=False,
            nullable=False,
        )
        for name in names
    ]


def _reference(table: str, column: str, referred: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["program", column], [f"{table}.program", f"{table}.{referred}"])


def _entry_rows(name: str, *columns: sa.Column[object]) -> None:
    op.create_table(
        name,
        *_key("program", "entry", "person"),
        *columns,
        _reference("entries", "entry", "number"),
        _reference("people", "person", "person"),
        sqlite_with_rowid=False,
    )
    op.create_index(f"{name}_by_person", name, ["program", "person"])


def upgrade() -> None:
    """Make all tables."""
    op.create_table(
        "programs",
        sa.Column("program", sa.Integer, primary_key=True, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "entries",
        *_key("program", "number"),
        *(
            sa.Column(name, sa.Text, nullable=False)
            for name in ("kind", "key", "at", "by", "header")
        ),
        *(sa.Column(name, _HASH, nullable=False) for name in ("content", "previous", "hash")),
        sa.ForeignKeyConstraint(["program"], ["programs.program"]),
        sa.UniqueConstraint("program", "kind", "key"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "rounds",
        *_key("program", "round"),
        sa.Column("opened", sa.BigInteger, nullable=False),
        sa.Column("closed", sa.BigInteger),
        sa.Column("reserved", sa.BigInteger, nullable=False),
        _reference("entries", "opened", "number"),
        _reference("entries", "closed", "number"),
        sqlite_with_rowid=False,
    )
    bytewise = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.create_table(
        "people",
        *_key("program", "person"),
        sa.Column("application", bytewise),
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
    op.create_table(
        "group_values",
        *_key("program", "person"),
        sa.Column("value", sa.Text),
        sa.Column("salt", _SALT),
        _reference("people", "person", "person"),
        sqlite_with_rowid=False,
    )
    _entry_rows("outcomes", sa.Column("state", sa.Text, nullable=False))
    _entry_rows(
        "overrides",
        sa.Column("accepted", sa.Boolean, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
    )
    _entry_rows("erasures")
    op.create_table(
        "payloads",
        *_key("program", "entry"),
        sa.Column("content", sa.LargeBinary),
        sa.Column("digest", _HASH, nullable=False),
        _reference("entries", "entry", "number"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "row_digests",
        *_key("program", "entry"),
        *(
            sa.Column(name, sa.LargeBinary)
            for name in ("decisions", "outcomes", "overrides", "erasures")
        ),
        _reference("entries", "entry", "number"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "access_keys",
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
