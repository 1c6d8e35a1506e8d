"""Training: minibatches, Adam, and a look at whether it diverged.

An epoch is one compiled call over a stack of minibatches. These are padded to few sizes, so that
rounds of different sizes share what was compiled. Everything is in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jax
import numpy as np
import optax
from numpy.typing import NDArray

from secondlook.baselines.fairall.columns import Floats
from secondlook.baselines.fairall.model import (
    Model,
    Plan,
    Rows,
    Sizes,
    initial_model,
    losses,
    pretraining_loss,
)
from secondlook.baselines.fairall.networks import Network, initialise
from secondlook.baselines.fairall.policy import acceptance, nodes, policy_loss
from secondlook.errors import InputError

__all__ = ["DivergedError", "Networks", "People", "minibatches"]

_LEAST_PADDED = 16
_BLOCK = 512  # people whose probabilities are computed in one call


class DivergedError(InputError):
    """Networks whose weights are no longer numbers; the message says when and what to do."""


@dataclass(frozen=True)
class People:
    """People to train on, as networks read them: with outcomes and 1/π, or with zeros for both."""

    x: Floats
    s: Floats
    u: Floats
    weight: Floats

    def __len__(self) -> int:
        return int(self.u.size)

    @staticmethod
    def without_outcomes(x: Floats, s: Floats) -> People:
        """Return people of whom no outcome is known."""
        return People(x, s, np.zeros(len(x)), np.zeros(len(x)))


def minibatches(people: People, parts: int, rng: np.random.Generator) -> Rows:
    """Cut people into minibatches at random, stacked and padded with zeros to one size.

    Examples
    --------
    >>> people = People.without_outcomes(np.arange(1.0, 6.0)[:, None], np.ones((5, 1)))
    >>> rows = minibatches(people, 3, np.random.default_rng(0))
    >>> rows.x.shape, rows.there.sum(axis=1).tolist()
    ((3, 16, 1), [2.0, 2.0, 1.0])
    """
    n = len(people)
    order = rng.permutation(n)
    size = -(-n // parts)
    padded = _LEAST_PADDED
    while padded < size:
        padded *= 2
    rank = np.arange(n)
    part, slot = rank % parts, rank // parts

    def stacked(column: Floats) -> Floats:
        stack = np.zeros((parts, padded, *column.shape[1:]))
        stack[part, slot] = column[order]
        return stack

    columns = (people.x, people.s, people.u, people.weight, np.ones(n))
    return Rows(*(stacked(column) for column in columns))


@dataclass(frozen=True)
class Networks:
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
        Mean divergence of z from its prior in the last epoch: near 0, z says nothing of anybody.
    """

    plan: Plan
    model: Model = field(repr=False)
    policy: Network = field(repr=False)
    state: Any = field(repr=False)
    policy_state: Any = field(repr=False)
    kl: float = float("nan")

    @staticmethod
    def initial(plan: Plan, sizes: Sizes, seed: int) -> Networks:
        """Return networks with random weights."""
        with jax.enable_x64(True):
            one, other = jax.random.split(jax.random.key(seed))
            model = initial_model(one, plan.layout, sizes)
            policy = initialise(other, [plan.latent, *sizes.policy, 1])
            return _fresh(Networks(plan, model, policy, None, None))

    def pretrained(
        self, people: People, epochs: int, batch_size: int, rng: np.random.Generator
    ) -> Networks:
        """Train encoder and decoder without anybody's outcome; optimisers then start afresh."""
        parts = max(1, -(-len(people) // batch_size))

        def one(now: Networks, key: Any) -> tuple[Networks, Any]:
            rows = minibatches(people, parts, rng)
            model, state, seen = _pretrain(now.model, now.state, rows, key, self.plan)
            return replace(now, model=model, state=state), seen

        trained = self._trained(one, epochs, rng, "pre-training")
        with jax.enable_x64(True):
            return _fresh(trained)

    def trained(
        self,
        labelled: People,
        unlabelled: People,
        epochs: int,
        parts: int,
        rng: np.random.Generator,
    ) -> Networks:
        """Train the autoencoder and the classifier, then the policy, as many epochs each."""

        def one(now: Networks, key: Any) -> tuple[Networks, Any]:
            known, unknown = (minibatches(who, parts, rng) for who in (labelled, unlabelled))
            model, state, seen = _train(now.model, now.state, known, unknown, key, self.plan)
            return replace(now, model=model, state=state), seen

        def imitate(now: Networks, key: Any) -> tuple[Networks, Any]:
            known, unknown = (minibatches(who, parts, rng) for who in (labelled, unlabelled))
            policy, state, seen = _imitate(
                now.policy, now.policy_state, now.model, known, unknown, key, self.plan
            )
            return replace(now, policy=policy, policy_state=state), seen

        learned = self._trained(one, epochs, rng, "training the autoencoder")
        return learned._trained(imitate, epochs, rng, "training the policy")

    def acceptance(self, x: Floats, s: Floats) -> Floats:
        """Return each person's probability of acceptance."""
        n = len(x)
        points = nodes(self.plan.latent)
        out = np.empty(-(-n // _BLOCK) * _BLOCK)
        with jax.enable_x64(True):
            for begin in range(0, n, _BLOCK):
                block = slice(begin, begin + _BLOCK)
                padding = ((0, max(0, begin + _BLOCK - n)), (0, 0))
                people = (np.pad(one[block], padding) for one in (x, s))
                out[block] = _acceptance(self.model, self.policy, *people, points, self.plan.layout)
        return out[:n]

    def _trained(
        self,
        step: Callable[[Networks, Any], tuple[Networks, Any]],
        epochs: int,
        rng: np.random.Generator,
        doing: str,
    ) -> Networks:
        """Return what epochs make of the networks, if that is finite."""
        now, kl = self, self.kl
        with jax.enable_x64(True):
            for key in jax.random.split(jax.random.key(int(rng.integers(2**31))), max(epochs, 1))[
                :epochs
            ]:
                now, (loss, kl) = step(now, key)
            leaves = jax.tree.leaves((now.model, now.policy))
            if not all(bool(np.isfinite(leaf).all()) for leaf in leaves):
                raise DivergedError(
                    f"FairAll diverged while {doing}: its weights are no longer finite after "
                    f"{epochs} epochs, last loss {float(loss):.3g}; scale the features, take a "
                    f"smaller learning_rate, or another seed."
                )
        return replace(now, kl=float(kl))


def _fresh(networks: Networks) -> Networks:
    adam = optax.adam(networks.plan.rate)
    return replace(
        networks, state=adam.init(networks.model), policy_state=adam.init(networks.policy)
    )


def _steps(
    loss: Callable[..., Any], weights: Any, state: Any, rows: Any, key: Any, plan: Plan
) -> tuple[Any, Any, Any]:
    """Take one step of Adam a minibatch; ``loss(weights, minibatch, key)`` is (value, KL)."""
    adam = optax.adam(plan.rate)

    def step(carry: Any, batch: Any) -> tuple[Any, Any]:
        weights, state, key = carry
        key, own = jax.random.split(key)
        (value, kl), slope = jax.value_and_grad(loss, has_aux=True)(weights, batch, own)
        change, state = adam.update(slope, state, weights)
        return (optax.apply_updates(weights, change), state, key), (value, kl)

    (weights, state, _), (values, kls) = jax.lax.scan(step, (weights, state, key), rows)
    return weights, state, (values[-1], kls.mean())


@partial(jax.jit, static_argnames="plan")
def _pretrain(model: Model, state: Any, rows: Rows, key: Any, plan: Plan) -> Any:
    return _steps(
        lambda weights, batch, own: pretraining_loss(weights, batch, own, plan),
        model,
        state,
        rows,
        key,
        plan,
    )


@partial(jax.jit, static_argnames="plan")
def _train(
    model: Model, state: Any, labelled: Rows, unlabelled: Rows, key: Any, plan: Plan
) -> Any:
    def loss(weights: Model, batch: tuple[Rows, Rows], own: Any) -> tuple[jax.Array, jax.Array]:
        total, parts = losses(weights, *batch, own, plan)
        return total, parts.kl

    return _steps(loss, model, state, (labelled, unlabelled), key, plan)


@partial(jax.jit, static_argnames="plan")
def _imitate(
    policy: Network,
    state: Any,
    model: Model,
    labelled: Rows,
    unlabelled: Rows,
    key: Any,
    plan: Plan,
) -> Any:
    def loss(weights: Network, batch: tuple[Rows, Rows], own: Any) -> tuple[jax.Array, jax.Array]:
        value = policy_loss(weights, model, *batch, own, plan)
        return value, value

    return _steps(loss, policy, state, (labelled, unlabelled), key, plan)


@partial(jax.jit, static_argnames="layout")
def _acceptance(
    model: Model,
    policy: Network,
    x: NDArray[np.float64],
    s: NDArray[np.float64],
    points: NDArray[np.float64],
    layout: Any,
) -> jax.Array:
    return acceptance(model, policy, x, s, points, layout)
