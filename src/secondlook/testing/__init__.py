"""Contracts as test classes, for our own tests and for authors of extensions."""

from secondlook.testing.ledger import LedgerContract

__all__ = ["LedgerContract"]
