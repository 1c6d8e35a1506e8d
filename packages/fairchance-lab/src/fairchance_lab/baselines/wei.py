"""Wei 2021: when to stop accepting applicants of a kind, given the outcomes known so far.

Both methods accept an applicant whose estimated share of good μ exceeds c_ν. This threshold is
below the cost c if few outcomes are known, and rises to c as ν grows. ``WeiFinite`` counts outcomes
in cells, for which the rule is optimal. ``WeiBootstrap`` uses a model's likelihood for μ, and for ν
the number of outcomes that would leave as much uncertainty as the bootstrap models show.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import PchipInterpolator
from sklearn.cluster import KMeans

from fairchance.errors import InputError
from fairchance.people.intake import Batch, History
from fairchance.people.store import GrowingArray
from fairchance_lab.baselines.base import Baseline, Decided, Floats
from fairchance_lab.baselines.greedy import ALIGNED, check_share
from fairchance_lab.baselines.logistic import fit_logistics, linear_scores

__all__ = [
    "WeiBootstrap",
    "WeiFinite",
    "acceptance_threshold",
    "effective_discount",
]


_POINTS = 2048  # of the lattice, at least half as many
_FEW, _MANY = 1000, 4000  # outcomes after which learning has nothing more to gain
_FINE = 16  # below so many outcomes the curve bends, and is solved in between whole numbers
_PER_DECADE = 6  # solved discounts, where many are needed


def acceptance_threshold(n_outcomes: ArrayLike, cost: float, discount: ArrayLike) -> Floats:
    """Return c_ν, the estimate above which an applicant is accepted.

    Parameters
    ----------
    n_outcomes
        ν ≥ 0, not necessarily whole.
    cost
        c in (0, 1), the cost of accepting an applicant.
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


_TOL = 1e-5  # of fits, in mean gradient: far below what bootstrap models differ by
_LEAST = 1e-3  # outcomes that an estimate counts as, even where models disagree wildly


class _Discounted(Baseline):
    """Base of both methods: the cost, and the discount of future applicants."""

    settings: ClassVar[dict[str, dict[str, Any]]] = {
        "published": {"cost": 0.5},
        "aligned": {"cost": ALIGNED},
    }

    cost: float
    discount: float | None
    horizon: int

    def _start_discount(self, n_history: int) -> None:
        check_share("cost", self.cost)
        if self.discount is not None:
            check_share("discount", self.discount)
        _check_whole("horizon", self.horizon, 1)
        to_come = max(2, self.horizon * n_history)
        self._discount = 1 - 1 / to_come if self.discount is None else float(self.discount)


@dataclass(eq=False, repr=False)
class WeiFinite(_Discounted):
    """Accept the applicants of a cell until their outcomes say to stop, for good.

    A cell's outcomes so far and a Beta prior give (μ, ν), and the cell is open while μ > c_ν at the
    discount γp/(1 − γ + γp), with p its share of all applicants so far. Outcomes arrive after
    a round, so a round decides alike on all applicants of a cell.

    Parameters
    ----------
    cost
        c in (0, 1), the share of good at which accepting breaks even.
    discount
        γ in (0, 1); None means 1 − 1/N with N = ``horizon`` times the size of the history, the
        number of people to come if rounds are as large.
    horizon
        Rounds to come.
    n_cells
        Number of cells, which are clusters of features.
    prior_count
        Outcomes that the prior counts as. Its mean is the cell's share of good in the history with
        one good and one bad person added.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> repaid = (rng.random(400) < 1 / (1 + np.exp(-1 - 2 * X[:, 0]))).astype(int)
    >>> method = WeiFinite(5 / 7, n_cells=10, random_state=0)
    >>> method = method.fit(X, repaid, accepted=X[:, 0] > -0.5)
    >>> for _ in range(3):
    ...     X = rng.normal(size=(400, 2))
    ...     batch = method.decide(X)
    ...     repaid = (rng.random(400) < 1 / (1 + np.exp(-1 - 2 * X[:, 0]))).astype(int)
    ...     method = method.observe(batch.ids[batch.accepted], repaid[batch.accepted])
    >>> method.accepts([[-2.0, 0.0], [2.0, 0.0]]).tolist()
    [False, True]
    """

    cost: float = 0.5
    _: KW_ONLY
    discount: float | None = None
    horizon: int = 39
    n_cells: int = 50
    prior_count: float = 2.0

    assumption: ClassVar[str] = "All applicants of a cell are good with the same probability."

    def _start(self, history: History) -> None:
        self._check_parameters()
        self._start_discount(len(history))
        self._draw_cells(history)
        cell = self._cells_of(history.X)
        taken = cell[history.accepted]
        seen = np.bincount(taken, minlength=self._n_cells)
        good = np.bincount(taken, history.outcome, self._n_cells)
        self._prior = self.prior_count * (good + 1) / (seen + 2)
        self._arrived = np.bincount(cell, minlength=self._n_cells)
        self._learn()

    def _learn(self) -> None:
        rows = self._labelled().own()
        cell = self._cells_of(rows.X)
        seen = np.bincount(cell, minlength=self._n_cells)
        self._count = np.asarray(self.prior_count + seen, dtype=np.float64)
        self._mean = (self._prior + np.bincount(cell, rows.outcome, self._n_cells)) / self._count
        share = np.maximum(self._arrived, 0.5) / max(1, self._arrived.sum())
        self._discounts = effective_discount(self._discount, share)
        self._open = self._mean > acceptance_threshold(self._count, self.cost, self._discounts)

    def _decide(self, batch: Batch) -> Decided:
        cell = self._cells_of(batch.X)
        self._arrived = self._arrived + np.bincount(cell, minlength=self._n_cells)
        accepted = self._open[cell]
        return Decided(accepted, accepted.astype(np.float64), self._mean[cell])

    def _probabilities(self, people: Batch) -> Floats:
        return self._open[self._cells_of(people.X)].astype(np.float64)

    def _scores(self, people: Batch) -> Floats:
        return self._mean[self._cells_of(people.X)]

    def _draw_cells(self, history: History) -> None:
        clusters = KMeans(
            min(self.n_cells, len(np.unique(history.X, axis=0))),
            n_init=1,
            random_state=self._seed % 2**32,
        )
        self._centres: Floats = clusters.fit(history.X).cluster_centers_.astype(np.float64)
        self._n_cells = len(self._centres)

    def _cells_of(self, X: Floats) -> NDArray[np.intp]:
        distance = (self._centres**2).sum(axis=1) - 2 * X @ self._centres.T
        return np.asarray(distance.argmin(axis=1))

    def _check_parameters(self) -> None:
        _check_whole("n_cells", self.n_cells, 1)
        if not self.prior_count > 0:
            raise InputError(f"prior_count must be above 0, got {self.prior_count!r}.")


@dataclass(eq=False, repr=False)
class WeiBootstrap(_Discounted):
    """Accept while the likelihood exceeds what its own doubt asks for.

    Each round fits a logistic model μ to all accepted applicants, and B more with weights from
    Poisson(1). Their variance at a person counts as ν = μ(1−μ)/Var − 1 outcomes, and the person is
    accepted if μ > c_ν. Given the fits nothing is random, so propensities are 0 or 1. Rows are not
    weighted for how they were selected.

    Parameters
    ----------
    cost
        c in (0, 1), the share of good at which accepting breaks even.
    discount
        γ in (0, 1); None means 1 − 1/N with N = ``horizon`` times the size of the history, the
        number of people to come if rounds are as large.
    horizon
        Rounds to come.
    n_models
        B, at least 2.
    l2
        Strength of the penalty on coefficients, at least 0.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> repaid = (rng.random(400) < 1 / (1 + np.exp(-1 - 2 * X[:, 0]))).astype(int)
    >>> method = WeiBootstrap(5 / 7, discount=0.99, random_state=0)
    >>> method = method.fit(X, repaid, accepted=X[:, 0] > -0.5)
    >>> batch = method.decide(rng.normal(size=(400, 2)))
    >>> below = batch.accepted & (batch.score < 5 / 7)
    >>> int(batch.accepted.sum()), int(below.sum())
    (233, 19)
    """

    cost: float = 0.5
    _: KW_ONLY
    discount: float | None = None
    horizon: int = 39
    n_models: int = 20
    l2: float = 1.0

    assumption: ClassVar[str] = "The logistic model is right, also for kinds never accepted."

    def _start(self, history: History) -> None:
        _check_whole("n_models", self.n_models, 2)
        if not self.l2 >= 0:
            raise InputError(f"l2 must be at least 0, got {self.l2!r}.")
        self._start_discount(len(history))
        self._models = np.zeros((history.X.shape[1] + 1, self.n_models + 1))
        self._weights = GrowingArray(np.empty((0, self.n_models + 1)))
        self._learn()

    def _learn(self) -> None:
        rows = self._labelled()
        self._draw_weights(len(rows))
        weight = self._weights.view()[: len(rows)].copy()
        # A model whose draw has no good or no bad row uses all rows instead.
        for good in (0, 1):
            weight[:, weight[rows.outcome == good].sum(axis=0) == 0] = 1.0
        self._models = fit_logistics(
            rows.X, rows.outcome, weight, l2=self.l2, start=self._models, tol=_TOL
        )

    def _draw_weights(self, n: int) -> None:
        """Draw weights for new rows only, so that models change as little as their rows do."""
        missing = n - len(self._weights.view())
        if missing > 0:
            drawn = self._rng().poisson(1.0, (missing, self.n_models)).astype(np.float64)
            self._weights.append(np.column_stack([np.ones(missing), drawn]))

    def _probabilities(self, people: Batch) -> Floats:
        mean, count = self._doubt(people.X)
        level = acceptance_threshold(count, self.cost, self._discount)
        return (mean > level).astype(np.float64)

    def _scores(self, people: Batch) -> Floats:
        return linear_scores(people.X, self._models[:, 0])

    def _doubt(self, X: Floats) -> tuple[Floats, Floats]:
        """Return μ of each person, and how many outcomes it counts as."""
        scores = linear_scores(X, self._models)
        mean = scores[:, 0]
        variance = np.maximum(scores[:, 1:].var(axis=1, ddof=1), np.finfo(np.float64).tiny)
        return mean, np.maximum(mean * (1 - mean) / variance - 1, _LEAST)


def _check_whole(name: str, value: Any, least: int) -> None:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < least:
        raise InputError(f"{name} must be a whole number of {least} or more, got {value!r}.")
