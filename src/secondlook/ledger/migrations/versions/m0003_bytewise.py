"""Ids of applications compare byte by byte on PostgreSQL, as on SQLite, and are found sooner."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Change how the column is sorted, which builds its index again."""
    if op.get_bind().dialect.name == "postgresql":
        op.alter_column("people", "application", type_=sa.Text(collation="C"))
