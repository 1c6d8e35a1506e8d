"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def _key(*names: str) -> list[sa.Column[int]]:
    kinds = {"program": sa.Integer}
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


def _of(other: str, *columns: str) -> sa.ForeignKeyConstraint:
    mine = ["program", {"number": "entry"}.get(columns[-1], columns[-1])]
    return sa.ForeignKeyConstraint(mine, [f"{other}.program", f"{other}.{columns[-1]}"])


def _entry_rows(name: str, *columns: sa.Column[object]) -> None:
    op.create_table(
        name,
        *_key("program", "entry", "person"),
        *columns,
        _of("entries", "number"),
        _of("people", "person"),
        sqlite_with_rowid=False,
    )
    op.create_index(f"{name}_by_person", name, ["program", "person"])


def upgrade() -> None:
    """Make all tables."""
    program = sa.ForeignKeyConstraint(["program"], ["programs.program"])
    op.create_table(
        "programs",
        sa.Column("program", sa.Integer, primary_key=True, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "entries",
        *_key("program", "number"),
        *(sa.Column(one, sa.Text, nullable=False) for one in ("kind", "key", "at", "by", "header")),
        *(
            sa.Column(one, sa.LargeBinary(32), nullable=False)
            for one in ("content", "previous", "hash")
        ),
        program,
        sa.UniqueConstraint("program", "kind", "key"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "people",
        *_key("program", "person"),
        sa.Column("application", sa.Text),
        sa.Column("numbers", sa.LargeBinary),
        sa.Column("texts", sa.Text),
        sa.Column("salt", sa.LargeBinary(16)),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("round", sa.Integer, nullable=False),
        sa.Column("accepted", sa.Boolean, nullable=False),
        sa.Column("exploit", sa.Boolean, nullable=False),
        sa.Column("score", sa.Double),
        sa.Column("propensity", sa.Double),
        sa.UniqueConstraint("program", "application"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "group_values",
        *_key("program", "person"),
        sa.Column("value", sa.Text),
        sa.Column("salt", sa.LargeBinary(16)),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
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
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        _of("entries", "number"),
        sqlite_with_rowid=False,
    )
