"""PostgreSQL compares names first, and looks up no entry for each outcome."""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Turn the key of names around, and drop keys to entries; SQLite gains by neither."""
    if op.get_bind().dialect.name == "sqlite":
        return
    op.drop_constraint("people_program_application_key", "people", type_="unique")
    op.create_unique_constraint(None, "people", ["application", "program"])
    for table in ("outcomes", "overrides", "erasures"):
        op.drop_constraint(f"{table}_program_entry_fkey", table, type_="foreignkey")
