"""The order of many numbers against numpy's stable sort of positions."""

from __future__ import annotations

import numpy as np
import pytest

from secondlook.core.ordering import order_of


def numbers(kind: str, n: int) -> np.ndarray:
    rng = np.random.default_rng([n, 8])
    if kind == "hashes":
        return rng.integers(0, 2**64, n, dtype=np.uint64)
    if kind == "consecutive":
        return (rng.permutation(n) + 10**9).astype(np.uint64)
    if kind == "around zero":  # as negative integers are seen
        return (rng.permutation(n) - n // 2).view(np.uint64)
    if kind == "the largest":
        return np.uint64(2**64 - 1) - rng.permutation(n).astype(np.uint64)
    if kind == "equal":
        return rng.integers(0, 10, n).astype(np.uint64) << np.uint64(60)
    # Apart by their low bits only, where positions would be written.
    return (rng.permutation(n).astype(np.uint64) % np.uint64(50)) + np.where(
        rng.random(n) < 0.5, np.uint64(0), np.uint64(2**63)
    )


@pytest.mark.parametrize("n", [0, 1, 2, 999, 1000, 1001, 4096, 4097, 50_000])
@pytest.mark.parametrize(
    "kind", ["hashes", "consecutive", "around zero", "the largest", "equal", "low bits"]
)
def test_as_numpy_orders_positions(kind, n):
    bits = numbers(kind, n)
    before = bits.copy()
    np.testing.assert_array_equal(order_of(bits), np.argsort(bits, kind="stable"))
    np.testing.assert_array_equal(bits, before)
