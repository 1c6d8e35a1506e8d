"""Benchmarks: the speed table, and the studies that the documentation quotes."""
