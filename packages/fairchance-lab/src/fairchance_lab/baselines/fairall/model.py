"""The autoencoder and its objectives: what FairAll's networks are trained to say.

Features x and outcome u of a person of group s come from a latent vector z with prior N(0, I):
``p(x, u | z, s)`` is the decoder, ``q(z | x, u, s)`` the encoder, a Gaussian with independent
coordinates, and ``q(u | x, s)`` the classifier, which replaces unknown outcomes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, logsumexp
from jax.scipy.stats import norm

from fairchance_lab.baselines.fairall.columns import Layout

__all__ = [
    "FairAllRows",
    "LossParts",
    "Model",
    "Network",
    "Noise",
    "Sizes",
    "TrainingPlan",
    "apply",
    "classifier_loss",
    "classify",
    "decode",
    "encode",
    "gaussian_kl",
    "initial_model",
    "initialise",
    "labelled_elbo",
    "log_bernoulli",
    "log_features",
    "losses",
    "mean",
    "mixture_kl",
    "precision",
    "pretraining_loss",
    "unlabelled_elbo",
]

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
        Rows as ``Columns.read`` returns them.
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


Model = dict[str, Network]


class Sizes(NamedTuple):
    """Sizes of the networks: the latent vector, the group's columns, hidden layers."""

    latent: int = 2
    group: int = 1
    hidden: tuple[int, ...] = (64, 64)
    classifier: tuple[int, ...] = (32, 32, 32)
    policy: tuple[int, ...] = (32, 32, 32)


class TrainingPlan(NamedTuple):
    """What a compiled training step depends on besides its arrays.

    Attributes
    ----------
    layout
        Kinds of columns.
    latent
        Dimension of z.
    cost
        c: the break-even probability of a good outcome.
    kl_weight
        β, the weight of divergences from the prior.
    classifier_weight
        The weight of the classifier's loss.
    reconstruction_draws, kl_draws
        As in ``Schedule``.
    rate
        Adam's step length.
    """

    layout: Layout
    latent: int
    cost: float
    kl_weight: float
    classifier_weight: float
    reconstruction_draws: int
    kl_draws: int
    rate: float


class FairAllRows(NamedTuple):
    """People in a minibatch; padding has ``there`` = 0.

    Attributes
    ----------
    x, s
        Features as ``Columns.read`` gives them, and the group's columns.
    u
        Outcomes; those of people without one are 0 and are not looked at.
    weight
        1/π of people with an outcome.
    there
        1 for people, 0 for padding.
    """

    x: Any
    s: Any
    u: Any
    weight: Any
    there: Any


class Noise(NamedTuple):
    """Standard normal numbers of one step, shaped as the two bounds take them."""

    labelled: Any
    unlabelled: Any
    kl: Any


class LossParts(NamedTuple):
    """What a loss is the sum of, each a mean over people, and the mean divergence of z."""

    labelled: jax.Array
    classifier: jax.Array
    unlabelled: jax.Array
    kl: jax.Array


def initial_model(rng: np.random.Generator, layout: Layout, sizes: Sizes) -> Model:
    """Return encoder, decoder and classifier with random weights."""
    width = layout.width + sizes.group
    latent = sizes.latent + sizes.group
    return {
        "encoder": initialise(rng, [width + 1, *sizes.hidden, 2 * sizes.latent]),
        "decoder": initialise(rng, [latent, *sizes.hidden, layout.n_parameters + 1]),
        "classifier": initialise(rng, [width, *sizes.classifier, 1]),
    }


def _read(x: jax.Array, layout: Layout) -> jax.Array:
    """Return features as networks read them: counts on a log scale."""
    if layout.n_count == 0:
        return x
    real, count, rest = jnp.split(x, [layout.n_real, layout.n_real + layout.n_count], axis=-1)
    return jnp.concatenate([real, jnp.log1p(count), rest], axis=-1)


def encode(
    model: Model, x: jax.Array, u: jax.Array, s: jax.Array, layout: Layout
) -> tuple[jax.Array, jax.Array]:
    """Return location and scale of ``q(z | x, u, s)``."""
    rows = jnp.concatenate([_read(x, layout), u[..., None], s], axis=-1)
    loc, raw = jnp.split(apply(model["encoder"], rows), 2, axis=-1)
    return loc, jax.nn.softplus(raw)


def decode(model: Model, z: jax.Array, s: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the parameters of ``p(x | z, s)`` and the log-odds of a good outcome."""
    s = jnp.broadcast_to(s, (*z.shape[:-1], s.shape[-1]))
    out = apply(model["decoder"], jnp.concatenate([z, s], axis=-1))
    return out[..., :-1], out[..., -1]


def classify(model: Model, x: jax.Array, s: jax.Array, layout: Layout) -> jax.Array:
    """Return the log-odds of ``q(u = 1 | x, s)``."""
    out: jax.Array = apply(model["classifier"], jnp.concatenate([_read(x, layout), s], axis=-1))
    return out[..., 0]


def gaussian_kl(loc: jax.Array, scale: jax.Array) -> jax.Array:
    """Return KL(N(loc, scale²) ‖ N(0, I)), summed over coordinates.

    Examples
    --------
    >>> float(gaussian_kl(jnp.array([3.0, 0.0]), jnp.array([1.0, 1.0])))
    4.5
    """
    return jnp.sum((loc**2 + scale**2 - 1.0) / 2 - jnp.log(scale), axis=-1)


def mixture_kl(
    log_share: jax.Array, loc: jax.Array, scale: jax.Array, noise: jax.Array
) -> jax.Array:
    """Return KL(Σ_u share_u·N(loc_u, scale_u²) ‖ N(0, I)), estimated with given noise.

    Each component is drawn from in turn and counted with its share, which is exact in u and leaves
    chance to z alone; at each drawn vector the density is that of the whole mixture.

    Parameters
    ----------
    log_share
        Log-shares of the components, of shape (components, people).
    loc, scale
        Of shape (components, people, latent).
    noise
        Standard normal, of shape (draws, components, people, latent).
    """
    z = loc + scale * noise
    each = norm.logpdf(z[:, :, None], loc, scale).sum(axis=-1)  # (draws, from, under, people)
    log_q = logsumexp(log_share + each, axis=2)
    log_p = norm.logpdf(z).sum(axis=-1)
    return jnp.sum(jnp.exp(log_share) * jnp.mean(log_q - log_p, axis=0), axis=0)


def labelled_elbo(
    model: Model, rows: FairAllRows, noise: jax.Array, layout: Layout, kl_weight: float
) -> tuple[jax.Array, jax.Array]:
    """Return the bound on ``log p(x, u | s)`` of each person, and its divergence.

    ``noise`` is standard normal, of shape (draws, people, latent).
    """
    loc, scale = encode(model, rows.x, rows.u, rows.s, layout)
    parameters, logit = decode(model, loc + scale * noise, rows.s)
    fit = log_features(parameters, rows.x, layout) + log_bernoulli(logit, rows.u)
    kl = gaussian_kl(loc, scale)
    return fit.mean(axis=0) - kl_weight * kl, kl


def unlabelled_elbo(
    model: Model,
    rows: FairAllRows,
    noise: jax.Array,
    kl_noise: jax.Array,
    layout: Layout,
    kl_weight: float,
) -> tuple[jax.Array, jax.Array]:
    """Return the bound on ``log p(x | s)`` of each person, and its divergence.

    Both outcomes are gone through and weighted by the classifier, which this does not train. Each
    noise is standard normal, of shape (draws, 2, people, latent).
    """
    logit = jax.lax.stop_gradient(classify(model, rows.x, rows.s, layout))
    log_share = -jax.nn.softplus(jnp.stack([logit, -logit]))
    u = jnp.stack([jnp.zeros_like(logit), jnp.ones_like(logit)])
    x, s = (jnp.broadcast_to(one, (2, *one.shape)) for one in (rows.x, rows.s))
    loc, scale = encode(model, x, u, s, layout)
    parameters, _ = decode(model, loc + scale * noise, s)
    fit = jnp.mean(log_features(parameters, x, layout), axis=0)
    kl = mixture_kl(log_share, loc, scale, kl_noise)
    return jnp.sum(jnp.exp(log_share) * fit, axis=0) - kl_weight * kl, kl


def classifier_loss(logit: jax.Array, u: jax.Array, weight: jax.Array, cost: float) -> jax.Array:
    """Return the cost-weighted log-loss of each person, counted 1/π times.

    Its log-odds are 0 where P(u = 1) = c: a good outcome weighs 1 − c, a bad one c.
    """
    good, bad = (1.0 - cost) * u, cost * (1.0 - u)
    return weight * (good * jax.nn.softplus(-logit) + bad * jax.nn.softplus(logit))


def losses(
    model: Model, labelled: FairAllRows, unlabelled: FairAllRows, noise: Noise, plan: TrainingPlan
) -> tuple[jax.Array, LossParts]:
    """Return ``−E_L/n_L + a·C/n_L − E_U/n_U``, and its parts."""
    layout, beta = plan.layout, plan.kl_weight
    known, kl_known = labelled_elbo(model, labelled, noise.labelled, layout, beta)
    logit = classify(model, labelled.x, labelled.s, layout)
    errors = classifier_loss(logit, labelled.u, labelled.weight, plan.cost)
    unknown, kl_unknown = unlabelled_elbo(
        model, unlabelled, noise.unlabelled, noise.kl, layout, beta
    )
    parts = LossParts(
        mean(known, labelled.there),
        mean(errors, labelled.there),
        mean(unknown, unlabelled.there),
        mean(
            jnp.concatenate([kl_known, kl_unknown]),
            jnp.concatenate([labelled.there, unlabelled.there]),
        ),
    )
    total = -parts.labelled + plan.classifier_weight * parts.classifier - parts.unlabelled
    return total, parts


def pretraining_loss(
    model: Model, rows: FairAllRows, noise: jax.Array, plan: TrainingPlan
) -> tuple[jax.Array, jax.Array]:
    """Return minus the bound on ``log p(x | s)`` of an encoder without outcomes, and its KL.

    No outcome enters: the encoder's weights for it are multiplied by 0 and do not change, nor do
    the decoder's. ``noise`` is of shape (people, latent).
    """
    loc, scale = encode(model, rows.x, jnp.zeros_like(rows.there), rows.s, plan.layout)
    parameters, _ = decode(model, loc + scale * noise, rows.s)
    kl = gaussian_kl(loc, scale)
    bound = log_features(parameters, rows.x, plan.layout) - plan.kl_weight * kl
    return -mean(bound, rows.there), mean(kl, rows.there)


def mean(values: jax.Array, there: jax.Array) -> jax.Array:
    """Return the mean over people, 0 where there are none; padding may hold anything finite."""
    return jnp.sum(values * there) / jnp.maximum(jnp.sum(there), 1.0)
