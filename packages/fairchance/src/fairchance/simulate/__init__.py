"""Simulated worlds with known truth, in which methods are tested."""
