"""Group values are found by ranges of people on PostgreSQL, and written without a key there."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Replace the key by an index over pages."""
    if op.get_bind().dialect.name == "postgresql":
        op.drop_constraint("group_values_pkey", "group_values", type_="primary")
        op.create_index(
            "group_values_by_person",
            "group_values",
            ["program", "person"],
            postgresql_using="brin",
            postgresql_with={"pages_per_range": 32, "autosummarize": True},
        )
