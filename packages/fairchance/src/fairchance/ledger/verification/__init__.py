"""Check a ledger: its hashes, and every decision made again (``walk.verify``)."""
