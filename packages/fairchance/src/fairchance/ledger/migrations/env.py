"""Run migrations on the connection that ``database.upgrade`` hands in."""

from __future__ import annotations

from alembic import context

from fairchance.ledger.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
)
context.run_migrations()
