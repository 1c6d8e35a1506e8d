"""Gradient ascent on what a randomised policy earns, from people it accepted itself.

The policy accepts with π_θ(x), a logistic function of θ·φ(x), or that below 1/2 and 1 from there on
(semi-logistic). Its worth is ``v = E[π_θ(x)·(y − c)]``. Whoever was accepted with probability π'
stands for 1/π' people, so the mean over accepted rows of ``(y − c)/π' · ∇π_θ`` is ∇v up to the
share of accepted people, which only rescales steps. Groups enter through a penalty on differences
of their mean benefits, ``λ/2 · Σ_{s<r} (b_s − b_r)²``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

__all__ = ["Ascent", "Benefit", "Rows", "acceptance", "climb", "penalty_gradient", "slopes"]

Floats = NDArray[np.float64]

_REFRESH = 8  # steps for which one gradient of a penalty over many people serves


@dataclass(frozen=True)
class Rows:
    """Accepted people with outcomes.

    Attributes
    ----------
    phi
        Features, with a column of ones.
    worth
        (y − c)/π'.
    benefit
        1/π' for demographic parity, y/π' for equal opportunity.
    group
        Codes of groups.
    """

    phi: Floats
    worth: Floats
    benefit: Floats
    group: NDArray[np.intp]

    def __len__(self) -> int:
        return int(self.worth.size)


@dataclass(frozen=True)
class Benefit:
    """People over whom groups' benefits are measured.

    Attributes
    ----------
    phi
        Their features, with a column of ones.
    share
        A row a group: ``b = share @ π_θ``.
    scale
        By how much a mean over accepted rows exceeds one over everybody: the mean of 1/π'.
    """

    phi: Floats
    share: Floats
    scale: float

    def penalty_gradient(self, theta: Floats, semi: bool) -> Floats:
        """Return the gradient of the penalty at λ = 1, on the scale of means over accepted rows."""
        margin = self.phi @ theta
        taken, slope = acceptance(margin, semi), slopes(margin, semi)
        return self.scale * penalty_gradient(taken, slope, self.share, self.phi)


@dataclass(frozen=True)
class Ascent:
    """How to climb.

    Attributes
    ----------
    semi
        Whether the policy is semi-logistic.
    rate, batch_size, n_steps
        Length of steps, rows of a minibatch, number of steps.
    expected
        Whether slopes are expectations over the policy's own coins, or a fresh draw of these.
    penalty
        λ.
    n_groups
        Number of groups.
    """

    semi: bool
    rate: float
    batch_size: int
    n_steps: int
    expected: bool
    penalty: float
    n_groups: int


def acceptance(margin: Floats, semi: bool) -> Floats:
    """Return π at margins θ·φ.

    Examples
    --------
    >>> acceptance(np.array([-1.0, 1.0]), semi=True).round(3).tolist()
    [0.269, 1.0]
    """
    p: Floats = expit(margin)
    return np.where(margin >= 0, 1.0, p) if semi else p


def slopes(margin: Floats, semi: bool, uniform: Floats | None = None) -> Floats:
    """Return the slope of π at margins: its expectation, or a draw by uniform numbers.

    A drawn slope is ``d·∇log π``: zero for those the draw rejects, right on average.

    Examples
    --------
    >>> slopes(np.zeros(1), semi=False).tolist()
    [0.25]
    >>> slopes(np.zeros(2), semi=False, uniform=np.array([0.3, 0.7])).tolist()
    [0.5, 0.0]
    """
    p: Floats = expit(margin)
    slope = 1.0 - p
    slope *= p if uniform is None else uniform < p
    if semi:
        slope *= margin < 0
    return slope


def penalty_gradient(taken: Floats, slope: Floats, share: Floats, phi: Floats) -> Floats:
    """Return the gradient of ``1/2 · Σ_{s<r} (b_s − b_r)²``, with ``b = share @ π``."""
    b = share @ taken
    contrast = b.size * b - b.sum()
    gradient: Floats = ((contrast @ share) * slope) @ phi
    return gradient


def _group_means(group: NDArray[np.intp], benefit: Floats, n_groups: int) -> Floats:
    """Return the shares that turn decisions into means over those groups that are there."""
    member = group == np.arange(n_groups)[:, None]
    size = member.sum(axis=1)
    there = size > 0
    share: Floats = member[there] * benefit / size[there, None]
    return share


def climb(
    theta: Floats, rows: Rows, ascent: Ascent, rng: np.random.Generator, benefit: Benefit | None
) -> Floats:
    """Return θ after minibatch steps of gradient ascent.

    Parameters
    ----------
    theta
        Where to start; not changed.
    rows
        Accepted people with outcomes.
    ascent
        How to climb.
    rng
        Orders of rows and draws.
    benefit
        People over whom benefits are measured; None measures them in each minibatch, as means over
        its accepted rows.
    """
    theta = theta.copy()
    size = min(ascent.batch_size, len(rows))
    whole = len(rows) // size * size
    left, gradient = ascent.n_steps, np.zeros_like(theta)
    while left > 0:
        order = rng.permutation(len(rows))[:whole].reshape(-1, size)[:left]
        uniforms = None if ascent.expected else rng.random(order.shape)
        phi, worth = rows.phi[order], rows.worth[order] * (ascent.rate / size)
        for i in range(order.shape[0]):
            uniform = None if uniforms is None else uniforms[i]
            margin = phi[i].dot(theta)
            slope = slopes(margin, ascent.semi, uniform)
            if ascent.penalty:
                if benefit is None:
                    gradient = _minibatch_penalty(rows, order[i], margin, slope, uniform, ascent)
                elif i % _REFRESH == 0:
                    gradient = benefit.penalty_gradient(theta, ascent.semi)
                theta -= (ascent.rate * ascent.penalty) * gradient
            slope *= worth[i]
            theta += slope.dot(phi[i])
        left -= order.shape[0]
    return theta


def _minibatch_penalty(
    rows: Rows,
    some: NDArray[np.intp],
    margin: Floats,
    slope: Floats,
    uniform: Floats | None,
    ascent: Ascent,
) -> Floats:
    """Return the published form's gradient: benefits are means over accepted rows."""
    taken = acceptance(margin, ascent.semi)
    taken = taken if uniform is None else (uniform < taken).astype(np.float64)
    share = _group_means(rows.group[some], rows.benefit[some], ascent.n_groups)
    return penalty_gradient(taken, slope, share, rows.phi[some])
