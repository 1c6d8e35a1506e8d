"""Tests of differences within repetitions, corrected for their number, and how many are needed.

Two methods see the same people in a repetition, so a test looks at the difference of each
repetition. Only repetitions are independent; rounds are not.
"""

from __future__ import annotations

from math import ceil

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, stats

from fairchance_lab.experiments.tables import Values

__all__ = [
    "FEW",
    "LEVEL",
    "POWER",
    "detectable",
    "holm",
    "paired_p",
    "power",
    "repetitions_needed",
    "smallest_p",
]

LEVEL, POWER = 0.05, 0.8
FEW = 10  # with fewer repetitions the test is exact
_MOST_REPETITIONS = 10**6


def paired_p(differences: ArrayLike) -> float:
    """Return the two-sided p-value of the hypothesis that differences are 0 on average.

    Ten differences or more are tested by Student's t; fewer, or equal ones, by flipping their signs
    in all ways, which is exact if a difference is as likely as its opposite.

    Parameters
    ----------
    differences
        A difference per repetition; unknown ones (NaN) are left out.

    Examples
    --------
    >>> paired_p([1.0, 2.0, 3.0, 2.0]), round(paired_p([1.0, 2.0, 3.0, 2.0, 0.0] * 2), 4)
    (0.125, 0.0011)
    """
    d = np.asarray(differences, float)
    d = d[np.isfinite(d)]
    if d.size < 2:
        return float("nan")
    if not d.any():
        return 1.0
    if d.size < FEW:
        return _sign_flip_p(d)
    if np.ptp(d) == 0:
        return float(2.0 ** (1 - d.size))
    return float(stats.ttest_1samp(d, 0).pvalue)


def _sign_flip_p(d: Values) -> float:
    """Return the share of sign flips whose sum is at least as far from 0 as that of d."""
    flips = (np.arange(2**d.size)[:, None] >> np.arange(d.size)) & 1
    sums = np.abs((1 - 2 * flips) @ d)
    return float(np.mean(sums >= abs(d.sum()) - 1e-12 * np.abs(d).sum()))


def smallest_p(n: int) -> float:
    """Return the smallest p-value that sign flips of n differences can give."""
    return float(2.0 ** (1 - n))


def holm(p: ArrayLike) -> Values:
    """Return p-values corrected by Holm's step-down method; unknown ones (NaN) do not count.

    If all p-values of true hypotheses are valid, the probability that any of these has a corrected
    value of at most .05 is at most .05.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03, 0.005]).tolist()
    [0.03, 0.06, 0.06, 0.02]
    """
    p = np.asarray(p, float)
    corrected = np.full(p.shape, np.nan)
    known = np.flatnonzero(np.isfinite(p))
    order = known[np.argsort(p[known])]
    steps = p[order] * np.arange(order.size, 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return corrected


def power(n: int, effect: float, level: float = LEVEL) -> float:
    """Return the probability that a two-sided paired t test sees a normal difference.

    With n repetitions, t has the noncentral t distribution with n − 1 degrees of freedom and
    noncentrality effect · √n.

    Parameters
    ----------
    n
        Number of repetitions.
    effect
        The difference over its standard deviation from repetition to repetition.
    level
        Level of the test.
    """
    critical = stats.t.ppf(1 - level / 2, n - 1)
    shift = abs(effect) * np.sqrt(n)
    above = stats.nct.sf(critical, n - 1, shift)
    below = stats.nct.cdf(-critical, n - 1, shift)
    return float(above + np.nan_to_num(below))  # scipy gives NaN where it is practically 0


def repetitions_needed(difference: float, sd: float) -> float:
    """Return how many repetitions see a difference with probability .8 at the level .05.

    Parameters
    ----------
    difference
        The difference to see.
    sd
        Its standard deviation from repetition to repetition.

    Returns
    -------
    float
        NaN if the difference is 0 or unknown, infinite beyond a million.

    Examples
    --------
    >>> repetitions_needed(0.5, 1.0)
    34.0
    """
    if not np.isfinite([difference, sd]).all() or difference == 0:
        return float("nan")
    effect = abs(difference) / sd if sd else np.inf
    # Were the standard deviation known exactly, so many would do; t needs a few more.
    with_known_sd = ((stats.norm.ppf(1 - LEVEL / 2) + stats.norm.ppf(POWER)) / effect) ** 2
    if with_known_sd > _MOST_REPETITIONS:
        return float("inf")
    n = max(2, ceil(with_known_sd))
    while sd and power(n, effect) < POWER:
        n += 1
    return float(n)


def detectable(n: int, sd: float) -> float:
    """Return the smallest difference that n repetitions see with probability .8 at the level .05.

    Parameters
    ----------
    n
        Number of repetitions; NaN is returned for fewer than two.
    sd
        The difference's standard deviation from repetition to repetition.

    Examples
    --------
    >>> round(detectable(34, 1.0), 2), round(detectable(5, 1.0), 2)
    (0.5, 1.68)
    """
    if n < 2:
        return float("nan")
    return sd * float(optimize.brentq(lambda effect: power(n, effect) - POWER, 0, 30))
