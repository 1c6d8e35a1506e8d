"""Group values share a person's digest; PostgreSQL finds people by pages instead of keys."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Let digests of group values be missing, and replace PostgreSQL's keys of people."""
    if op.get_bind().dialect.name == "sqlite":
        made = {"sqlite_with_rowid": False}
        with op.batch_alter_table("group_values", table_kwargs=made) as batch:
            batch.alter_column("digest", nullable=True)
        return
    op.alter_column("group_values", "digest", nullable=True)
    for table in ("outcomes", "overrides", "erasures"):
        op.drop_constraint(f"{table}_program_person_fkey", table, type_="foreignkey")
    for table in ("people", "group_values"):
        op.drop_constraint(f"{table}_pkey", table, type_="primary")
        op.create_index(
            f"{table}_by_person",
            table,
            ["program", "person"],
            postgresql_using="brin",
            postgresql_with={"pages_per_range": 32, "autosummarize": True},
        )
