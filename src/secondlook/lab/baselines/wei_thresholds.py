"""From which estimate on it pays to accept: the optimal rule for one kind of people.

A person accepted is worth y − c, with y = 1 for a good outcome, and shows the outcome; a person
rejected is worth 0 and shows nothing. With μ the estimated share of good and ν the number of
outcomes it rests on (pseudo-counts of a Beta), the value of going on is

    V(μ, ν) = max(0, μ − c + γ·(μ·V((νμ+1)/(ν+1), ν+1) + (1−μ)·V(νμ/(ν+1), ν+1))),

V(μ, ∞) = max(μ−c, 0)/(1−γ), and people are accepted while μ > c_ν, where c_ν rises to c. Solved
backwards on a lattice of sums σ = νμ that both transitions stay on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import PchipInterpolator

from secondlook.errors import InputError

__all__ = ["acceptance_threshold", "effective_discount"]

Floats = NDArray[np.float64]

_POINTS = 2048  # of the lattice, at least half as many
_FEW, _MANY = 1000, 4000  # outcomes after which learning has nothing more to gain
_FINE = 16  # below so many outcomes the curve bends, and is solved in between whole numbers
_PER_DECADE = 6  # solved discounts, where many are needed


def acceptance_threshold(n_outcomes: ArrayLike, cost: float, discount: ArrayLike) -> Floats:
    """Return c_ν: whoever has an estimate above it is accepted.

    Parameters
    ----------
    n_outcomes
        ν ≥ 0, not necessarily whole.
    cost
        c in (0, 1), what accepting somebody costs.
    discount
        γ in (0, 1); one number is solved exactly, with several the curves between are interpolated
        in log(1−γ).

    Examples
    --------
    >>> acceptance_threshold([1, 10, 100], cost=0.5, discount=0.9).round(3).tolist()
    [0.21, 0.433, 0.492]
    """
    nu, gamma = np.asarray(n_outcomes, np.float64), np.asarray(discount, np.float64)
    if not 0 < cost < 1:
        raise InputError(f"cost must be in (0, 1), got {cost!r}; it is the break-even share.")
    if not np.all((gamma > 0) & (gamma < 1)):
        raise InputError(f"discount must be in (0, 1), got {discount!r}.")
    if gamma.ndim == 0:
        return _on_curve(nu, cost, float(gamma))
    nu, gamma = np.broadcast_arrays(nu, gamma)
    place = -np.log10(1 - gamma) * _PER_DECADE
    answer = np.zeros(nu.shape)
    for knot in range(int(place.min()), int(place.max()) + 2):
        share = np.maximum(0.0, 1 - np.abs(place - knot))
        if share.any():
            answer += share * _on_curve(nu, cost, -np.expm1(-np.log(10) * knot / _PER_DECADE))
    return answer


def effective_discount(discount: float, share: ArrayLike) -> Floats:
    """Return the discount between two people of a cell: γ·p / (1 − γ + γ·p).

    It is the mean of γ to the power of the waiting time, where each person is of the cell with
    probability p.

    Examples
    --------
    >>> effective_discount(0.9, [1.0, 0.1]).round(3).tolist()
    [0.9, 0.474]
    """
    p = np.asarray(share, np.float64)
    return np.asarray(discount * p / (1 - discount + discount * p))


def _on_curve(nu: Floats, cost: float, discount: float) -> Floats:
    """Read one curve, which is exact at its knots and rises in between."""
    whole = bool(np.all((nu == np.floor(nu)) | (nu >= _FINE)))
    return np.asarray(_curve(cost, discount, whole)(1 / (1 + nu)))


@lru_cache(maxsize=512)
def _curve(cost: float, discount: float, whole: bool) -> Callable[[Floats], Floats]:
    """Return c_ν as a function of 1/(1+ν), from no outcome to endlessly many.

    ``whole`` leaves out the knots between whole numbers.
    """
    if discount <= 0:  # nothing to come: only what a person is worth now
        return lambda place: np.full_like(place, cost)
    last = _FEW if discount <= 1 - 1 / _FEW else _MANY
    parts = [_solved(cost, discount, 0.0, last)]
    for offset in () if whole else (0.25, 0.5, 0.75):
        nu, level = _solved(cost, discount, offset, last)
        parts.append((nu[nu < _FINE], level[nu < _FINE]))
    place = np.concatenate([[1.0, 0.0], *(1 / (1 + nu) for nu, _ in parts)])
    level = np.concatenate([[_untried(cost, discount), cost], *(level for _, level in parts)])
    order = np.argsort(place)
    curve: Callable[[Floats], Floats] = PchipInterpolator(place[order], level[order])
    return curve


def _untried(cost: float, discount: float) -> float:
    """Return c_0: a single outcome tells all, so that μ·(1 + γ(1−c)/(1−γ)) = c at break-even."""
    return cost * (1 - discount) / (1 - discount * cost)


def _solved(cost: float, discount: float, offset: float, last: int) -> tuple[Floats, Floats]:
    """Return ν = offset, offset + 1, … and c_ν of each, by backward induction from ``last``."""
    numbers: Floats = offset + np.arange(0 if offset else 1, last, dtype=np.float64)
    level = np.empty(numbers.size)
    fine = _fineness(offset + last)
    value = _means(offset + last, fine)
    value = np.maximum(value - cost, 0) / (1 - discount)
    for k in range(numbers.size - 1, -1, -1):
        nu = float(numbers[k])
        while fine < _fineness(nu):
            value = _finer(value, int(2 * fine * (nu + 1)) + 1)
            fine *= 2
        mean = _means(nu, fine)
        n = mean.size
        going_on = mean - cost + discount * (mean * value[fine : fine + n] + (1 - mean) * value[:n])
        j = int(np.argmax(going_on > 0))
        low, high = going_on[j - 1], going_on[j]
        level[k] = mean[j] - (mean[j] - mean[j - 1]) * high / (high - low)
        value = np.maximum(going_on, 0)
    return numbers, level


def _fineness(nu: float) -> int:
    """Return how many lattice points there are to one outcome: a power of two."""
    return int(2 ** max(0, np.floor(np.log2(_POINTS / nu))))


def _means(nu: float, fine: int) -> Floats:
    return np.arange(int(fine * nu) + 1) / (fine * nu)


def _finer(value: Floats, n: int) -> Floats:
    """Put a point between every two; one may be left over at the top, and goes on straight."""
    finer = np.interp(np.arange(n) / 2, np.arange(value.size), value)
    finer[2 * value.size - 1 :] = 1.5 * value[-1] - 0.5 * value[-2]
    return finer
