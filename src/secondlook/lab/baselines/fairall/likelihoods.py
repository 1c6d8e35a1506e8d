"""Log-densities of features and outcomes given what a decoder says of them.

A real column is Gaussian in its natural parameters h = m/s² and τ = 1/s²:
``log p = h·x − τ·x²/2 − h²/(2τ) + log(τ)/2 − log(2π)/2``. Columns of few values would let τ, and
with it the density, grow without end, so s stays above a tenth of the column's spread.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln

from secondlook.lab.baselines.fairall.columns import Layout

__all__ = ["log_bernoulli", "log_features", "precision"]

_LEAST_PRECISION = 1e-2
_MOST_PRECISION = 1e2


def precision(raw: jax.Array) -> jax.Array:
    """Return τ: about softplus(raw), and never beyond its bounds.

    Examples
    --------
    >>> bool(1e-2 < precision(jnp.array(-5.0)) < precision(jnp.array(500.0)) < 1e2)
    True
    """
    free, room = jax.nn.softplus(raw), _MOST_PRECISION - _LEAST_PRECISION
    return _LEAST_PRECISION + free * room / (free + room)


def log_bernoulli(logit: jax.Array, value: jax.Array) -> jax.Array:
    """Return ``log p(value)`` where the log-odds of 1 are given."""
    return -value * jax.nn.softplus(-logit) - (1.0 - value) * jax.nn.softplus(logit)


def log_features(parameters: jax.Array, x: jax.Array, layout: Layout) -> jax.Array:
    """Return ``log p(x)`` of each row, summed over its columns.

    Parameters
    ----------
    parameters
        For each row, h of all real columns, then one number per column read: the raw τ, the log of
        a Poisson rate, log-odds, or log-weights of levels.
    x
        Rows as ``Columns.read`` gives them.
    layout
        Their kinds.
    """
    h, other = parameters[..., : layout.n_real], parameters[..., layout.n_real :]
    ends = [layout.n_real, layout.n_real + layout.n_count]
    ends += [ends[-1] + layout.n_binary]
    (raw, rate, logit, weights), (real, count, binary, levels) = (
        jnp.split(one, ends, axis=-1) for one in (other, x)
    )
    tau = precision(raw)
    total = jnp.sum(
        h * real - tau * real**2 / 2 - h**2 / (2 * tau) + jnp.log(tau / (2 * math.pi)) / 2, axis=-1
    )
    total += jnp.sum(count * rate - jnp.exp(rate) - gammaln(count + 1.0), axis=-1)
    total += jnp.sum(log_bernoulli(logit, binary), axis=-1)
    begin = 0
    for size in layout.levels:
        own = slice(begin, begin + size)
        total += jnp.sum(jax.nn.log_softmax(weights[..., own]) * levels[..., own], axis=-1)
        begin += size
    return total
