"""The policy in the latent space: ``π(z) = σ(f(z))``, which never sees the group.

It imitates the decoder, which does see it: whoever's z makes a good outcome at least as likely as c
is a target 1, everybody else a target 0, whether the outcome is known or not.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.polynomial.hermite_e import hermegauss

from secondlook.lab.baselines.fairall.columns import Floats, Layout
from secondlook.lab.baselines.fairall.model import (
    Model,
    Plan,
    Rows,
    classifier_loss,
    classify,
    decode,
    encode,
    mean,
)
from secondlook.lab.baselines.fairall.networks import Network, apply

__all__ = ["PolicyNoise", "acceptance", "nodes", "policy_loss"]


class PolicyNoise(NamedTuple):
    """Numbers of one step: standard normal ones per person and latent dimension, and uniform ones.

    The uniform ones draw outcomes of people who have none.
    """

    labelled: Any
    unlabelled: Any
    uniform: Any


_NODES = {1: 31, 2: 7, 3: 4, 4: 3}  # a latent dimension, by how many of these there are


@lru_cache
def nodes(latent: int) -> tuple[Floats, Floats]:
    """Return the points and weights of a Gauss-Hermite rule for N(0, I).

    Examples
    --------
    >>> points, weights = nodes(2)
    >>> points.shape, (weights @ points**4).round(9).tolist()
    ((49, 2), [3.0, 3.0])
    """
    point, weight = hermegauss(_NODES[latent])
    mesh = np.meshgrid(*[np.arange(point.size)] * latent, indexing="ij")
    grid = np.stack(mesh, axis=-1).reshape(-1, latent)
    return point[grid], (weight / weight.sum())[grid].prod(axis=1)


def acceptance(
    model: Model,
    policy: Network,
    x: jax.Array,
    s: jax.Array,
    rule: tuple[jax.Array, jax.Array],
    layout: Layout,
) -> jax.Array:
    """Return ``Σ_u q(u | x, s)·E[σ(f(z))]``, with z from ``q(z | x, u, s)`` averaged by a rule."""
    points, weights = rule
    good = jax.nn.sigmoid(classify(model, x, s, layout))
    chance = []
    for u in (jnp.zeros_like(good), jnp.ones_like(good)):
        loc, scale = encode(model, x, u, s, layout)
        z = loc + scale * points[:, None]
        chance.append(weights @ jax.nn.sigmoid(apply(policy, z)[..., 0]))
    return (1.0 - good) * chance[0] + good * chance[1]


def policy_loss(
    policy: Network, model: Model, labelled: Rows, unlabelled: Rows, noise: PolicyNoise, plan: Plan
) -> jax.Array:
    """Return the cost-weighted log-loss of the policy on what the decoder says, a mean over people.

    z comes from the encoder, with the outcome where it is known and one drawn from the classifier
    where it is not. Rows are not weighted by 1/π: targets are there for everybody.
    """
    good = jax.nn.sigmoid(classify(model, unlabelled.x, unlabelled.s, plan.layout))
    drawn = (noise.uniform < good).astype(good.dtype)
    rows = jax.tree.map(lambda *both: jnp.concatenate(both), labelled, unlabelled)
    u = jnp.concatenate([labelled.u, drawn])
    loc, scale = encode(model, rows.x, u, rows.s, plan.layout)
    z = loc + scale * jnp.concatenate([noise.labelled, noise.unlabelled])
    target = (jax.nn.sigmoid(decode(model, z, rows.s)[1]) >= plan.cost).astype(z.dtype)
    error = classifier_loss(apply(policy, z)[..., 0], target, jnp.ones_like(u), plan.cost)
    return mean(error, rows.there)
