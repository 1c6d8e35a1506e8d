"""Fully connected networks with ReLU, as lists of (weights, bias)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

__all__ = ["Network", "apply", "initialise"]

Network = list[tuple[jax.Array, jax.Array]]

_BIAS = 0.01


def initialise(key: Any, sizes: Sequence[int]) -> Network:
    """Return Xavier-uniform weights, with biases slightly above 0.

    Examples
    --------
    >>> net = initialise(jax.random.key(0), [3, 8, 2])
    >>> [weights.shape for weights, _ in net]
    [(3, 8), (8, 2)]
    """
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        (_xavier(one, n_in, n_out), jnp.full(n_out, _BIAS))
        for one, n_in, n_out in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


def _xavier(key: Any, n_in: int, n_out: int) -> jax.Array:
    limit = (6.0 / (n_in + n_out)) ** 0.5
    return jax.random.uniform(key, (n_in, n_out), minval=-limit, maxval=limit)


def apply(network: Network, x: jax.Array) -> jax.Array:
    """Return what a network makes of rows; the last layer is linear."""
    for weights, bias in network[:-1]:
        x = jax.nn.relu(x @ weights + bias)
    weights, bias = network[-1]
    return x @ weights + bias
