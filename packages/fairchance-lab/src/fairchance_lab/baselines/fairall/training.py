"""Training: minibatches, Adam, and a look at whether it diverged.

An epoch is one compiled call over a stack of minibatches. These are padded to few sizes, so that
rounds of different sizes share what was compiled. Everything is in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from numpy.polynomial.hermite_e import hermegauss

from fairchance.errors import InputError
from fairchance_lab.baselines.fairall.columns import Floats, Layout
from fairchance_lab.baselines.fairall.model import (
    FairAllRows,
    Model,
    Network,
    Noise,
    Sizes,
    TrainingPlan,
    apply,
    classifier_loss,
    classify,
    decode,
    encode,
    initial_model,
    initialise,
    losses,
    mean,
    pretraining_loss,
)

__all__ = [
    "DivergedError",
    "FairAllNetworks",
    "FairAllPeople",
    "PolicyNoise",
    "acceptance",
    "minibatches",
    "nodes",
    "padded_width",
    "policy_loss",
]


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
    policy: Network,
    model: Model,
    labelled: FairAllRows,
    unlabelled: FairAllRows,
    noise: PolicyNoise,
    plan: TrainingPlan,
) -> jax.Array:
    """Return the cost-weighted log-loss of the policy on what the decoder says, a mean over people.

    z comes from the encoder, with the outcome where it is known and one drawn from the classifier
    where it is not. Rows are not weighted by 1/π: all applicants have targets.
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


_LEAST_PADDED = 128
_BLOCK = 512  # applicants scored in one call


class DivergedError(InputError):
    """Training diverged: weights are no longer numbers."""


@dataclass(frozen=True)
class FairAllPeople:
    """People to train on as networks read them: with outcomes and 1/π, or zeros for both."""

    x: Floats
    s: Floats
    u: Floats
    weight: Floats

    def __len__(self) -> int:
        return int(self.u.size)

    @staticmethod
    def without_outcomes(x: Floats, s: Floats) -> FairAllPeople:
        """Return applicants without known outcomes."""
        return FairAllPeople(x, s, np.zeros(len(x)), np.zeros(len(x)))


def minibatches(
    people: FairAllPeople, parts: int, width: int, rng: np.random.Generator
) -> FairAllRows:
    """Cut people into minibatches at random, stacked and padded with zeros to one width.

    Examples
    --------
    >>> people = FairAllPeople.without_outcomes(np.arange(1.0, 6.0)[:, None], np.ones((5, 1)))
    >>> rows = minibatches(people, 3, 4, np.random.default_rng(0))
    >>> rows.x.shape, rows.there.sum(axis=1).tolist()
    ((3, 4, 1), [2.0, 2.0, 1.0])
    """
    n = len(people)
    order = rng.permutation(n)
    slot, part = np.divmod(np.arange(n), parts)

    def stacked(column: Floats) -> Floats:
        stack = np.zeros((parts, width, *column.shape[1:]))
        stack[part, slot] = column[order]
        return stack

    columns = (people.x, people.s, people.u, people.weight, np.ones(n))
    return FairAllRows(*(stacked(column) for column in columns))


def padded_width(n: int, parts: int) -> int:
    """Return a width for minibatches, one of few, so that little has to be compiled again.

    Examples
    --------
    >>> padded_width(10, 3), padded_width(500, 3)
    (128, 256)
    """
    width = _LEAST_PADDED
    while width * parts < n:
        width *= 2
    return width


@dataclass(frozen=True)
class FairAllNetworks:
    """All networks with the state of their optimisers; training returns new ones.

    Attributes
    ----------
    plan
        What training is like.
    model, policy
        Weights.
    state, policy_state
        Of Adam.
    kl
        Mean divergence of z from its prior in the last epoch: near 0, z carries no information.
    """

    plan: TrainingPlan
    model: Model = field(repr=False)
    policy: Network = field(repr=False)
    state: Any = field(repr=False)
    policy_state: Any = field(repr=False)
    kl: float = float("nan")

    @staticmethod
    def initial(plan: TrainingPlan, sizes: Sizes, rng: np.random.Generator) -> FairAllNetworks:
        """Return networks with random weights."""
        model = initial_model(rng, plan.layout, sizes)
        policy = initialise(rng, [plan.latent, *sizes.policy, 1])
        return _fresh(FairAllNetworks(plan, model, policy, None, None))

    def pretrained(
        self, people: FairAllPeople, epochs: int, batch_size: int, rng: np.random.Generator
    ) -> FairAllNetworks:
        """Train encoder and decoder without outcomes; optimisers then start afresh."""
        parts = max(1, -(-len(people) // batch_size))
        width = padded_width(len(people), parts)

        def step(now: FairAllNetworks) -> tuple[FairAllNetworks, Any]:
            rows = minibatches(people, parts, width, rng)
            noise = rng.standard_normal((parts, width, self.plan.latent))
            model, state, kl = _pretrain(now.model, now.state, (rows, noise), self.plan)
            return replace(now, model=model, state=state), kl

        return _fresh(self._after(step, epochs, "pre-training"))

    def trained(
        self,
        labelled: FairAllPeople,
        unlabelled: FairAllPeople,
        epochs: int,
        parts: int,
        rng: np.random.Generator,
    ) -> FairAllNetworks:
        """Train the autoencoder and the classifier, then the policy, as many epochs each."""
        plan, d = self.plan, self.plan.latent
        width = padded_width(max(len(labelled), len(unlabelled)), parts)

        def cut() -> list[FairAllRows]:
            return [minibatches(who, parts, width, rng) for who in (labelled, unlabelled)]

        def learn(now: FairAllNetworks) -> tuple[FairAllNetworks, Any]:
            noise = Noise(
                rng.standard_normal((parts, 1, width, d)),
                rng.standard_normal((parts, plan.reconstruction_draws, 2, width, d)),
                rng.standard_normal((parts, plan.kl_draws, 2, width, d)),
            )
            model, state, kl = _train(now.model, now.state, (*cut(), noise), plan)
            return replace(now, model=model, state=state), kl

        def imitate(now: FairAllNetworks) -> tuple[FairAllNetworks, Any]:
            noise = PolicyNoise(
                rng.standard_normal((parts, width, d)),
                rng.standard_normal((parts, width, d)),
                rng.random((parts, width)),
            )
            policy, state, _ = _imitate(
                now.policy, now.policy_state, (*cut(), noise), now.model, plan
            )
            return replace(now, policy=policy, policy_state=state), now.kl

        learned = self._after(learn, epochs, "training the autoencoder")
        return learned._after(imitate, epochs, "training the policy")

    def acceptance(self, x: Floats, s: Floats) -> Floats:
        """Return each person's probability of acceptance."""
        n = len(x)
        rule = nodes(self.plan.latent)
        out = np.empty(-(-n // _BLOCK) * _BLOCK)
        with jax.enable_x64(True):
            for begin in range(0, n, _BLOCK):
                block = slice(begin, begin + _BLOCK)
                padding = ((0, max(0, begin + _BLOCK - n)), (0, 0))
                people = (np.pad(one[block], padding) for one in (x, s))
                out[block] = _acceptance(self.model, self.policy, *people, rule, self.plan.layout)
        return out[:n]

    def _after(
        self,
        step: Callable[[FairAllNetworks], tuple[FairAllNetworks, Any]],
        epochs: int,
        doing: str,
    ) -> FairAllNetworks:
        """Return what epochs make of the networks, if that is finite."""
        now, kl = self, self.kl
        with jax.enable_x64(True):
            for _ in range(epochs):
                now, kl = step(now)
        model, policy, state, policy_state = jax.device_get(
            (now.model, now.policy, now.state, now.policy_state)
        )
        leaves = jax.tree.leaves((model, policy))
        if not all(np.isfinite(leaf).all() for leaf in leaves):
            raise DivergedError(
                f"FairAll diverged while {doing}: its weights are no longer finite after {epochs} "
                f"epochs; scale the features, take a smaller learning_rate, or another seed."
            )
        return FairAllNetworks(self.plan, model, policy, state, policy_state, float(kl))


def _fresh(networks: FairAllNetworks) -> FairAllNetworks:
    adam = optax.adam(networks.plan.rate)
    with jax.enable_x64(True):
        state, policy_state = (
            adam.init(ravel_pytree(weights)[0]) for weights in (networks.model, networks.policy)
        )
    return replace(networks, state=state, policy_state=policy_state)


def _steps(
    loss: Callable[[Any, Any], tuple[Any, Any]], weights: Any, state: Any, batches: Any, rate: float
) -> tuple[Any, Any, Any]:
    """Take one step of Adam a minibatch; ``loss(weights, minibatch)`` is a value and a KL."""
    adam = optax.adam(rate)
    # One long vector: a fraction of the time to compile that Adam on every array takes.
    flat, shaped = ravel_pytree(weights)

    def step(carry: Any, batch: Any) -> tuple[Any, Any]:
        flat, state = carry
        slope, kl = jax.grad(lambda one: loss(shaped(one), batch), has_aux=True)(flat)
        change, state = adam.update(slope, state)
        return (optax.apply_updates(flat, change), state), kl

    (flat, state), kls = jax.lax.scan(step, (flat, state), batches)
    return shaped(flat), state, kls.mean()


@partial(jax.jit, static_argnames="plan")
def _pretrain(model: Model, state: Any, batches: Any, plan: TrainingPlan) -> Any:
    def loss(weights: Model, one: tuple[FairAllRows, Any]) -> tuple[Any, Any]:
        rows, noise = one
        return pretraining_loss(weights, rows, noise, plan)

    return _steps(loss, model, state, batches, plan.rate)


@partial(jax.jit, static_argnames="plan")
def _train(model: Model, state: Any, batches: Any, plan: TrainingPlan) -> Any:
    def loss(weights: Model, one: tuple[FairAllRows, FairAllRows, Noise]) -> tuple[Any, Any]:
        total, parts = losses(weights, *one, plan)
        return total, parts.kl

    return _steps(loss, model, state, batches, plan.rate)


@partial(jax.jit, static_argnames="plan")
def _imitate(policy: Network, state: Any, batches: Any, model: Model, plan: TrainingPlan) -> Any:
    def loss(
        weights: Network, one: tuple[FairAllRows, FairAllRows, PolicyNoise]
    ) -> tuple[Any, Any]:
        value = policy_loss(weights, model, *one, plan)
        return value, value

    return _steps(loss, policy, state, batches, plan.rate)


_acceptance = jax.jit(acceptance, static_argnames="layout")
