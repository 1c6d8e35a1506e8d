"""Contracts as test classes, for our own tests and for authors of extensions."""

from fairchance.testing.ledger import LedgerContract

__all__ = ["LedgerContract"]
