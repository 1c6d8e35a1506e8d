"""Worlds with known truth, in which any method can be tried."""
