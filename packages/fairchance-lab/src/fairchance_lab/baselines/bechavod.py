"""Bechavod et al. 2019: accept all applicants for a while, then use the best fair mixture of rules.

"Equal Opportunity in Online Classification with Partial Feedback": the method learns from a first
sample of applicants, who are all accepted. After that, it decides by a mixture of rules with nearly
equal false (or true) positive rates in all groups.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from fairchance.core.sampling import coin_flips
from fairchance.errors import InputError
from fairchance.learners.logistic import ConstrainedLogistic
from fairchance.people.intake import Batch, History
from fairchance_lab.baselines.base import PAPER, Baseline, Decided, Floats, Labelled, Sources

__all__ = [
    "BechavodMixture",
    "CostSensitive",
    "FairProblem",
    "Fit",
    "Mixture",
    "fair_mixture",
]

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
    ...     return "first" if price[0] < 0 else "none", price < 0
    >>> best = fair_mixture(problem, oracle)
    >>> dict(zip(best.rules, best.share.round(6).tolist(), strict=True))
    {'none': 0.8, 'first': 0.2}
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


_DRAW = 6  # purpose of the randomness that says who is explored in a batch that is cut
_RIDGE = 1e-3


@dataclass(frozen=True)
class Fit:
    """What one mixture rests on.

    Attributes
    ----------
    round
        The last round decided before it.
    n_rows, n_rules
        Accepted people with outcomes, and rules in the mixture.
    cost
        Mean cost on these rows, in units of the larger of gain and loss.
    gap, slack, bound
        The largest difference of groups' rates; how far that of a mixture not chosen by these rows
        may be from the true one with probability 1 − δ, NaN if a group has no such rows;
        the bound it was held to.
    smallest_cell
        Rows that estimate the rate of the least known group.
    saddle_gap
        How far the mixture may be from the best of the rules that the learner can find.
    """

    round: int
    n_rows: int
    n_rules: int
    cost: float
    gap: float
    slack: float
    bound: float
    smallest_cell: int
    saddle_gap: float


@dataclass(frozen=True)
class _Policy:
    """The policy of a round: a share of all applicants, then the mixture."""

    n_people: int
    explored: float
    rules: Floats  # coefficients and intercept, a row each
    share: Floats

    def probability(self, X: Floats) -> Floats:
        accepted = X @ self.rules[:, :-1].T + self.rules[:, -1] > 0
        otherwise = (1 - self.explored) * (accepted @ self.share)
        return np.asarray(np.clip(self.explored + otherwise, 0.0, 1.0))


class CostSensitive:
    """A learner of linear rules that are cheap: weighted logistic regression, then the best cut.

    A row with a negative cost should be accepted, and matters as much as its cost is large.

    Examples
    --------
    >>> learner = CostSensitive(np.array([[0.0], [1.0], [2.0], [3.0]]))
    >>> rule, accepted = learner(np.array([1.0, 2.0, -1.0, -2.0]))
    >>> accepted.tolist()
    [False, False, True, True]
    """

    def __init__(self, X: Floats) -> None:
        self.X = X
        self._model = ConstrainedLogistic(l2=_RIDGE, warm_start=True)

    def __call__(self, cost: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Return coefficients with the intercept last, and which rows are accepted."""
        direction = self._direction(cost)
        score = self.X @ direction
        order = np.argsort(-score, kind="stable")
        ranked = score[order]
        ends = np.append(np.flatnonzero(np.diff(ranked)), ranked.size - 1)
        totals = np.append(0.0, np.cumsum(cost[order])[ends])
        best = int(np.argmin(totals))
        if best in (0, ends.size):  # accepts none, or all
            constant = np.append(np.zeros(direction.size), -1.0 if best == 0 else 1.0)
            return constant, np.full(cost.size, best > 0)
        cut = (ranked[ends[best - 1]] + ranked[ends[best - 1] + 1]) / 2
        rule = np.append(direction, -cut)
        return rule, np.asarray(self.X @ rule[:-1] + rule[-1] > 0)

    def _direction(self, cost: Floats) -> Floats:
        weight = np.abs(cost)
        wanted = (cost < 0).astype(np.int8)
        if wanted[weight > 0].min(initial=1) == wanted[weight > 0].max(initial=0):
            return np.zeros(self.X.shape[1])
        self._model.fit(self.X, wanted, weight * (cost.size / weight.sum()))
        return np.asarray(self._model.coef_[0], dtype=np.float64)


@dataclass(eq=False, repr=False)
class BechavodMixture(Baseline):
    """Accept the first T_0 people, then decide by a fair mixture learned from them.

    ``T_0 = min(N, ⌈κ·√N·log(2/δ)⌉)`` of the N people who will come. In a batch that is cut, those
    who complete T_0 are drawn at random and the others are decided by a rule learned from the
    history alone. The mixture minimises the mean of ``loss·1{bad} − gain·1{good}`` over the
    accepted, with rates of any two groups at most γ and a slack apart; each person gets one of its
    rules at random. People accepted in a cut batch count by one over the mean probability that the
    rounds learned from had of accepting them. The FDR is not controlled.

    Parameters
    ----------
    loss, gain
        What a bad accepted person costs and a good one brings.
    n_rounds
        Rounds to come; with the size of the first batch that gives N.
    explore_batches
        Explore so many batches of the first one's size instead.
    kappa, delta
        κ and δ.
    equal
        The rates compared: ``"false_positive"`` or ``"true_positive"``.
    gamma
        γ.
    slack
        Added to γ; None means 2·√(log(8/δ)/m), with m the rows that estimate the rate of
        the least known group. With small samples this constrains nothing; 0 holds the estimate
        to γ.
    eps, n_steps
        1/B, and steps of exponentiated gradient.

    Attributes
    ----------
    fits_
        A :class:`Fit` for each mixture learned.
    explore_people_
        T_0, known from the first batch on.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> def people(n):
    ...     X = rng.normal(size=(n, 2))
    ...     return X, (rng.random(n) < 1 / (1 + np.exp(-1 - 2 * X[:, 0]))).astype(int)
    >>> X, good = people(500)
    >>> method = BechavodMixture.setting("aligned", n_rounds=10, random_state=0)
    >>> method = method.fit(X, good, accepted=X[:, 1] > 0)
    >>> for _ in range(3):
    ...     X, good = people(500)
    ...     batch = method.decide(X)
    ...     method = method.observe(batch.ids[batch.accepted], good[batch.accepted])
    >>> method.explore_people_, method.fits_[-1].n_rules, bool(batch.accepted.mean() < 0.8)
    (261, 1, True)
    """

    _: KW_ONLY
    loss: float = 500.0
    gain: float = 200.0
    n_rounds: int | None = None
    explore_batches: int | None = None
    kappa: float = 1.0
    delta: float = 0.05
    equal: Literal["false_positive", "true_positive"] = "false_positive"
    gamma: float = 0.05
    slack: float | None = None
    eps: float = 0.02
    n_steps: int = 50

    settings: ClassVar[dict[str, dict[str, Any]]] = {
        "published": {"loss": 1.0, "gain": 1.0},
        "aligned": {"loss": 500.0, "gain": 200.0},
    }
    sources: ClassVar[Sources] = {"published": {PAPER: ("loss", "gain", "equal")}}

    def _start(self, history: History) -> None:
        self._check()
        X = np.asarray(history.X, dtype=np.float64)
        spread = X.std(axis=0)
        self._centre, self._spread = X.mean(axis=0), np.where(spread > 0, spread, 1.0)
        self.fits_: list[Fit] = []
        self.explore_people_: int | None = None
        self._explored = 0
        self._log: list[_Policy] = []
        self._learned_from = b""
        self._rules, self._share = self._from_history(), np.ones(1)

    def _from_history(self) -> Floats:
        past = self._labelled()
        rule, _ = CostSensitive(self._scaled(past.X))(self._costs(past) / len(past))
        return rule[None]

    def _scaled(self, X: Any) -> Floats:
        return np.asarray((np.asarray(X, dtype=np.float64) - self._centre) / self._spread)

    def _costs(self, rows: Labelled) -> Floats:
        unit = max(self.loss, self.gain)
        return np.where(rows.outcome == 1, -self.gain / unit, self.loss / unit)

    def _decide(self, batch: Batch) -> Decided:
        n = len(batch)
        if self.explore_people_ is None:
            self.explore_people_ = self._people_to_explore(n)
        left = max(0, self.explore_people_ - self._explored)
        k = min(left, n)
        policy = _Policy(n, k / n, self._rules, self._share)
        first = np.zeros(n, dtype=np.bool_)
        first[np.argsort(self._bits(batch, _DRAW))[:k]] = True
        X = self._scaled(batch.X)
        otherwise = _Policy(n, 0.0, policy.rules, policy.share).probability(X)
        accepted = first | coin_flips(otherwise, self._bits(batch))
        self._log.append(policy)
        self._explored += k
        p = policy.probability(X)
        return Decided(accepted, p, p)

    def _people_to_explore(self, n: int) -> int:
        if self.explore_batches is not None:
            return self.explore_batches * n
        arrivals = n * int(self.n_rounds or 0)
        return min(arrivals, int(np.ceil(self.kappa * np.sqrt(arrivals) * np.log(2 / self.delta))))

    def _probabilities(self, people: Batch) -> Floats:
        if not self._log:
            return np.ones(len(people))
        return self._log[-1].probability(self._scaled(people.X))

    def _learn(self) -> None:
        if self.explore_people_ is None or self._explored < self.explore_people_:
            return
        rounds = [t for t, one in enumerate(self._log, start=1) if one.explored > 0]
        own = self._labelled().own()
        own = own.of(np.isin(own.round, rounds))
        evidence = own.outcome.tobytes()
        if np.unique(own.outcome).size < 2 or evidence == self._learned_from:
            return
        self._learned_from = evidence
        X = self._scaled(own.X)
        problem, slack, smallest = self._problem(own, self._weights(X, rounds))
        best = fair_mixture(problem, CostSensitive(X), n_steps=self.n_steps)
        self._rules, self._share = np.array(best.rules), best.share
        gap = float(best.gaps.max(initial=0.0))
        self.fits_.append(
            Fit(
                self._round,
                len(own),
                best.share.size,
                best.cost,
                gap,
                slack,
                problem.bound,
                smallest,
                best.upper - best.lower,
            )
        )

    def _weights(self, X: Floats, rounds: list[int]) -> Floats:
        """Return one over the mean probability that these rounds had of accepting each."""
        policies = [self._log[t - 1] for t in rounds]
        n = np.array([one.n_people for one in policies])
        p = np.array([one.probability(X) for one in policies])
        return np.asarray(n.sum() / (n @ p))

    def _problem(self, own: Labelled, weight: Floats) -> tuple[FairProblem, float, int]:
        """Return what to minimise, the slack of the bound, and how many tell the rarest rate."""
        counted = own.outcome == (1 if self.equal == "true_positive" else 0)
        member = (own.group == np.arange(self._n_groups)[:, None]) & counted
        sizes = member.sum(axis=1)
        there = np.flatnonzero(sizes > 0)
        rates = member[there] * weight / (member[there] @ weight)[:, None]
        a, b = np.nonzero(~np.eye(there.size, dtype=np.bool_))
        smallest = int(sizes.min())
        slack = 2 * float(np.sqrt(np.log(8 / self.delta) / smallest)) if smallest else np.nan
        usual = slack if smallest else 1.0
        problem = FairProblem(
            cost=self._costs(own) * weight / weight.sum(),
            signal=rates[a] - rates[b],
            bound=self.gamma + (usual if self.slack is None else self.slack),
            most=1 / self.eps,
        )
        return problem, slack, smallest

    def _check(self) -> None:
        if self.n_rounds is None and self.explore_batches is None:
            raise InputError(
                "how long to explore follows from how many people will come; pass n_rounds, or "
                "explore_batches."
            )
        if self.equal not in ("false_positive", "true_positive"):
            raise InputError(
                f"equal must be 'false_positive' or 'true_positive', got {self.equal!r}."
            )
        for name, allowed, valid in (
            ("loss", "positive", 0 < self.loss < np.inf),
            ("gain", "positive", 0 < self.gain < np.inf),
            ("n_rounds", "1 or more, or None", self.n_rounds is None or self.n_rounds >= 1),
            (
                "explore_batches",
                "1 or more, or None",
                self.explore_batches is None or self.explore_batches >= 1,
            ),
            ("kappa", "positive", 0 < self.kappa < np.inf),
            ("delta", "in (0, 1)", 0 < self.delta < 1),
            ("gamma", "in [0, 1]", 0 <= self.gamma <= 1),
            ("slack", "0 or more, or None", self.slack is None or 0 <= self.slack < np.inf),
            ("eps", "in (0, 1]", 0 < self.eps <= 1),
            ("n_steps", "1 or more", self.n_steps >= 1),
        ):
            if not valid:
                raise InputError(f"{name} must be {allowed}, got {getattr(self, name)!r}.")
