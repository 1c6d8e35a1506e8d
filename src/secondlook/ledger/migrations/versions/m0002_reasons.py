"""Threshold, fold and reasons beside each decision."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; decisions of before have none of them."""
    op.add_column("people", sa.Column("threshold", sa.Double))
    op.add_column("people", sa.Column("fold", sa.Integer))
    op.add_column("people", sa.Column("reasons", sa.LargeBinary))
