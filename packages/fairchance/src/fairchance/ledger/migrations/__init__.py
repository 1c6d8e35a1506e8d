"""Migrations of a ledger's tables, in Alembic's layout."""
