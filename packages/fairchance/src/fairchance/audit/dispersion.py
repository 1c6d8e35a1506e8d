"""Whether the share of bad varies over rounds more than independent applicants explain.

A change of the policy changes the share of bad, so only rounds of the same policy are compared: on
one population, each of their outcomes is bad with the same probability, whatever the model thinks
of it. Let a round have k bad of n outcomes, x = k/n, and let its applicants share a shock with
standard deviation σ. Then Var(x) is about v = p·(1 − p)/n + σ², with p the share of bad under the
policy, and with weights 1/v

    Q(σ) = Σ (x − x̄)²/v,   x̄ the weighted mean over the rounds of a policy,

is about χ² with (rounds − policies) degrees of freedom; Q(0) is Pearson's statistic. Q falls as σ
grows, so that the test, inverted, gives an interval for σ, and Q(σ) = degrees of freedom an
estimate (Paule and Mandel 1982). A drift of the population makes Q large, too.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.stats import chi2

__all__ = ["LEVEL", "Dispersion", "dispersion"]

LEVEL = 0.01  # of the test, at one look
_EXPECTED = 5.0  # bad and good outcomes of a round from which on Q is about χ²
_LARGEST = 1.0


@dataclass(frozen=True)
class Dispersion:
    """How much the share of bad varies over rounds of one policy.

    Attributes
    ----------
    n_rounds, n_policies
        The rounds that were compared, and their policies.
    p
        Probability that rounds vary as much if σ is the stated one.
    shock, low, high
        The σ that covers what was seen, and its interval of 95 %, at one look.
    """

    n_rounds: int
    n_policies: int
    p: float
    shock: float
    low: float
    high: float


def dispersion(
    bad: Sequence[int], known: Sequence[int], policies: Sequence[Hashable], shock: float = 0.0
) -> Dispersion | None:
    """Compare rounds of the same policy; None if no policy has two rounds with enough outcomes.

    ``shock`` is the stated σ.

    Examples
    --------
    >>> alike = dispersion([52, 47, 50, 49], [500] * 4, ["a"] * 4)
    >>> apart = dispersion([20, 90, 35, 70], [500] * 4, ["a"] * 4)
    >>> alike.shock, alike.p > 0.5, round(apart.shock, 3), apart.p < LEVEL
    (0.0, True, 0.062, True)
    """
    names = {name: at for at, name in enumerate(dict.fromkeys(policies))}
    run = np.array([names[name] for name in policies], np.intp)
    k, n = np.asarray(bad, np.float64), np.asarray(known, np.float64)
    some = np.flatnonzero(n > 0)
    share, of = np.zeros(len(names)), np.bincount(run, n, len(names))
    np.divide(np.bincount(run, k, len(names)), of, out=share, where=of > 0)
    p = share[run]
    enough = n * np.minimum(p, 1 - p) >= _EXPECTED
    rounds = np.bincount(run[enough], minlength=len(names))
    at = some[(enough & (rounds[run] > 1))[some]]
    if not at.size:
        return None
    _, run = np.unique(run[at], return_inverse=True)
    n_policies, x, noise = int(run.max()) + 1, k[at] / n[at], (p * (1 - p))[at] / n[at]
    df = at.size - n_policies

    def q(sigma: float) -> float:
        weight = 1 / (noise + sigma**2)
        mean = np.bincount(run, weight * x) / np.bincount(run, weight)
        return float((weight * (x - mean[run]) ** 2).sum())

    def sigma_of(value: float) -> float:
        if q(0.0) <= value or q(_LARGEST) >= value:
            return 0.0 if q(0.0) <= value else _LARGEST
        return float(brentq(lambda sigma: q(sigma) - value, 0.0, _LARGEST))

    low, high = (sigma_of(float(chi2.ppf(end, df))) for end in (0.975, 0.025))
    return Dispersion(at.size, n_policies, float(chi2.sf(q(shock), df)), sigma_of(df), low, high)
