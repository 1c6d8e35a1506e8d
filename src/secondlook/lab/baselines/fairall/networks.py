"""Fully connected networks with ReLU, as lists of (weights, bias)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import jax
import numpy as np

__all__ = ["Network", "apply", "initialise"]

Network = list[tuple[Any, Any]]

_BIAS = 0.01


def initialise(rng: np.random.Generator, sizes: Sequence[int]) -> Network:
    """Return Xavier-uniform weights, with biases slightly above 0.

    Examples
    --------
    >>> network = initialise(np.random.default_rng(0), [3, 8, 2])
    >>> [weights.shape for weights, _ in network]
    [(3, 8), (8, 2)]
    """
    return [(_xavier(rng, n_in, n_out), np.full(n_out, _BIAS)) for n_in, n_out in pairwise(sizes)]


def _xavier(rng: np.random.Generator, n_in: int, n_out: int) -> Any:
    limit = (6.0 / (n_in + n_out)) ** 0.5
    return rng.uniform(-limit, limit, (n_in, n_out))


def apply(network: Network, x: Any) -> Any:
    """Return what a network makes of rows; the last layer is linear."""
    for weights, bias in network[:-1]:
        x = jax.nn.relu(x @ weights + bias)
    weights, bias = network[-1]
    return x @ weights + bias
