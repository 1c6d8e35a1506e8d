"""The cheapest mixture of decision rules whose groups differ by no more than a bound.

``min_Q max_{λ ≥ 0, |λ|₁ ≤ B} cost(Q) + Σ_k λ_k·(gap_k(Q) − bound)``. One player raises the price of
broken constraints by exponentiated gradient, the other answers with the rule that is cheapest at
these prices; their averages come together (the reductions approach). A linear program over the
rules found so far then takes the best mixture of these, and its prices ask for one rule more until
none helps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from secondlook.errors import InputError

__all__ = ["FairProblem", "Mixture", "fair_mixture"]

Floats = NDArray[np.float64]
Oracle = Callable[[Floats], tuple[Any, NDArray[np.bool_]]]


@dataclass(frozen=True)
class FairProblem:
    """What is to be cheap, and what is to be equal.

    Attributes
    ----------
    cost
        What accepting each row adds to the cost.
    signal
        A row a constraint, what accepting each row adds to its gap.
    bound
        Largest gap.
    most
        B, the highest price of a unit of gap.
    """

    cost: Floats
    signal: Floats
    bound: float
    most: float

    def worst(self, cost: Any, gaps: Floats) -> Any:
        """Return the Lagrangian at the prices that are worst for these costs and gaps."""
        over = np.maximum(gaps.max(axis=-1, initial=-np.inf) - self.bound, 0.0)
        return cost + self.most * over


@dataclass(frozen=True)
class Mixture:
    """Rules with their shares, and how far they are from the best.

    Attributes
    ----------
    rules, share
        Rules of positive share.
    cost, gaps
        Cost and gaps of the mixture on the rows it was made from.
    lower, upper
        Bounds on the value of the game, where the oracle's answers are the cheapest there are: the
        mixture's own worst Lagrangian is ``upper``. An oracle that may miss the cheapest rule, such
        as a fit, makes ``lower`` a bound among the rules it finds.
    trace
        ``upper − lower`` of the averages after each step of exponentiated gradient.
    prices
        The mean prices of these steps.
    """

    rules: tuple[Any, ...]
    share: Floats
    cost: float
    gaps: Floats
    lower: float
    upper: float
    trace: Floats
    prices: Floats


def fair_mixture(
    problem: FairProblem,
    oracle: Oracle,
    *,
    n_steps: int = 50,
    rate: float | None = None,
    n_more: int = 20,
    tol: float = 1e-6,
) -> Mixture:
    """Return a mixture near the saddle point.

    Parameters
    ----------
    problem
        Cost and constraints.
    oracle
        Takes what accepting each row costs at present prices; returns a rule that is cheap for
        that, and which rows it accepts.
    n_steps, rate
        Steps of exponentiated gradient, and their length; None means 2/B.
    n_more
        Largest number of rules that the linear program may ask for.
    tol
        How much cheaper a rule must be to be asked for.

    Examples
    --------
    Of two rules, one is cheap and favours a group; a fifth of it is allowed.

    >>> problem = FairProblem(np.array([-1.0, 0.0]), np.array([[1.0, 0.0]]), bound=0.2, most=50.0)
    >>> def oracle(price):
    ...     return "first" if price[0] < 0 else "nobody", price < 0
    >>> best = fair_mixture(problem, oracle)
    >>> dict(zip(best.rules, best.share.round(6).tolist(), strict=True))
    {'nobody': 0.8, 'first': 0.2}
    """
    found = _Found(problem, oracle)
    rate = 2 / problem.most if rate is None else rate
    lower, trace, prices = _exponentiated(problem, found, n_steps, rate)
    for _ in range(n_more):
        share, price, upper = found.best_mixture()
        known = len(found.rules)
        value = found.ask(price)
        lower = max(lower, value)
        if value >= upper - tol or len(found.rules) == known:
            break
    share, _, upper = found.best_mixture()
    kept = np.flatnonzero(share > 1e-9)
    share = share[kept] / share[kept].sum()
    cost, gaps = found.cost[kept], found.gaps[kept]
    return Mixture(
        tuple(found.rules[k] for k in kept),
        share,
        float(share @ cost),
        share @ gaps,
        min(lower, upper),
        upper,
        trace,
        prices,
    )


def _exponentiated(
    problem: FairProblem, found: _Found, n_steps: int, rate: float
) -> tuple[float, Floats, Floats]:
    """Return a lower bound, the gap of the averages after each step, and the mean prices.

    The mean of the answers' Lagrangians is below that of any rule at the mean prices, since each
    answer is the cheapest at its own.
    """
    tilt = np.zeros(problem.signal.shape[0])
    cost, gaps, values = np.empty(n_steps), np.empty((n_steps, tilt.size)), np.empty(n_steps)
    prices = np.zeros(tilt.size)
    for t in range(n_steps):
        top = tilt.max(initial=0.0)
        raised = np.exp(tilt - top)
        price = problem.most * raised / (np.exp(-top) + raised.sum())
        values[t] = found.ask(price)
        prices += price / n_steps
        cost[t], gaps[t] = found.last
        tilt += rate * (gaps[t] - problem.bound)
    so_far = np.arange(1, n_steps + 1)
    upper = problem.worst(np.cumsum(cost) / so_far, np.cumsum(gaps, axis=0) / so_far[:, None])
    trace = upper - np.cumsum(values) / so_far
    return float(values.mean()), trace, prices


class _Found:
    """The different rules found so far."""

    def __init__(self, problem: FairProblem, oracle: Oracle) -> None:
        self.problem = problem
        self.oracle = oracle
        self.rules: list[Any] = []
        self.cost: Floats = np.empty(0)
        self.gaps: Floats = np.empty((0, problem.signal.shape[0]))
        self.last: tuple[float, Floats] = (0.0, np.empty(0))
        self._known: set[bytes] = set()

    def ask(self, price: Floats) -> float:
        """Ask for a rule at some prices, and return its Lagrangian."""
        problem = self.problem
        rule, accepted = self.oracle(problem.cost + price @ problem.signal)
        cost, gaps = float(problem.cost @ accepted), problem.signal @ accepted
        self.last = cost, gaps
        name = np.packbits(accepted).tobytes()
        if name not in self._known:
            self._known.add(name)
            self.rules.append(rule)
            self.cost = np.append(self.cost, cost)
            self.gaps = np.vstack([self.gaps, gaps])
        return cost + float(price @ (gaps - problem.bound))

    def best_mixture(self) -> tuple[Floats, Floats, float]:
        """Return the best shares of the rules, the prices that go with them, and its Lagrangian."""
        problem, n = self.problem, len(self.rules)
        if problem.signal.shape[0] == 0:
            share = (np.arange(n) == np.argmin(self.cost)).astype(np.float64)
            return share, np.empty(0), float(self.cost.min())
        # One more variable: by how much the bound is broken, at the highest price.
        answer = linprog(
            np.append(self.cost, problem.most),
            A_ub=np.hstack([self.gaps.T, -np.ones((self.gaps.shape[1], 1))]),
            b_ub=np.full(self.gaps.shape[1], problem.bound),
            A_eq=np.append(np.ones(n), 0.0)[None],
            b_eq=[1.0],
            method="highs",
        )
        if answer.status != 0:
            raise InputError(
                f"the linear program over {n} rules was not solved ({answer.message}); check that "
                f"costs and weights are finite and of ordinary size."
            )
        return answer.x[:n], -answer.ineqlin.marginals, float(answer.fun)
