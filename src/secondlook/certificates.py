"""Which policy may be deployed with a promise, and which one to try while there is none.

The engine of ``CertifiedClassifier``: it freezes rankings, tests their ladders on later rounds in
the order of these, and chooses the policy of the next round. It sees features, logged probabilities
and outcomes of the accepted, never a person's name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.errors import InputError
from secondlook.evidence import RATIO_CAP, DriftMonitor
from secondlook.ladders import Ladder, Reach, Seen
from secondlook.likelihoods import Likelihood
from secondlook.memory import check_recorded
from secondlook.own_rows import OwnRows
from secondlook.rankings import Groups, Ranking
from secondlook.utility import Utility

__all__ = ["Choice", "Engine", "Rules", "Waiting"]

Floats = NDArray[np.float64]

_FIRST_STAGE = 0.8  # of δ; restarts share the rest
_LEVELS = (0.05, 0.30, 0.35, 0.30)  # of a stage's δ, ladder by ladder
_FREEZES = ((0.0, 0), (0.1, 100), (0.2, 200), (0.4, 400))  # share of the horizon, own outcomes
_SOFTNESS = (0.3, 0.3, 0.22, 0.1)  # of the share that a ladder's model thinks it can accept
_SOFTEST = 0.05  # edge in small batches, in which six people are many
_WALKS = 0.8  # of a ladder's level for the walk from its start, the rest from half of it
_GROWTH_ROUNDS = 12  # rounds on whose evidence a start is chosen
_BRAKE = 0.9  # of α: what a pilot's estimated FDR may be
_ENOUGH = 30  # outcomes before a pilot's estimate means anything
_USUAL_HORIZON = 40  # rounds, where none is known
_DOUBLINGS = 20  # further rankings then, each after twice as many rounds as the one before
_KEPT_ROUNDS = 5  # before a drift was noticed, whose outcomes still count after it


@dataclass(frozen=True)
class Rules:
    """What is promised, and to whom it pays.

    Attributes
    ----------
    alpha, delta
        α and δ.
    utility
        What decisions are worth; it chooses among certified policies.
    horizon
        Rounds expected; None means not known.
    within
        Whether people are ranked among their own group only.
    floor
        Least probability of acceptance.
    patience
        Rounds after which outcomes that have not come count as bad; None means never.
    monitor
        δ of the drift monitor; 0 means none.
    """

    alpha: float
    delta: float
    utility: Utility
    horizon: int | None
    within: bool
    floor: float
    patience: int | None = None
    monitor: float = 0.05

    @property
    def freezes(self) -> tuple[tuple[float, int], ...]:
        """Rounds of a stage before which rankings are frozen, and own outcomes needed for it."""
        horizon = _USUAL_HORIZON if self.horizon is None else self.horizon
        planned = tuple((max(1.0, share * horizon), n) for share, n in _FREEZES)
        if self.horizon is not None:
            return planned
        return planned + tuple((horizon * 2.0**i, 800 * 2**i) for i in range(_DOUBLINGS))

    @property
    def levels(self) -> tuple[float, ...]:
        """Parts of a stage's δ, ladder by ladder; they sum to at most one."""
        if self.horizon is not None:
            return _LEVELS
        half = tuple(level / 2 for level in _LEVELS)
        return half + tuple(0.25 / 2**i for i in range(_DOUBLINGS))


@dataclass(frozen=True)
class Choice:
    """The policy of a round."""

    ladder: Ladder
    rung: int
    certified: bool
    estimated_fdr: float


@dataclass(eq=False)
class Waiting:
    """A round whose outcomes are not all in, with what was fixed before it."""

    number: int
    X: Any
    group: Groups
    p: Floats
    accepted: NDArray[np.bool_]
    places: NDArray[np.int64]
    deployed: Ladder
    rung: int
    certified: bool
    use: list[tuple[Ladder, NDArray[np.bool_]]]


@dataclass(eq=False)
class Engine:
    """Ladders, their tests, and the choice of policies.

    Attributes
    ----------
    rules
        What is promised.
    rows
        Our own accepted people.
    n_groups
        How many groups there are.
    """

    rules: Rules
    rows: OwnRows
    n_groups: int
    ladders: list[Ladder] = field(default_factory=list)
    waiting: list[Waiting] = field(default_factory=list)
    restarts: int = 0
    stage_began: int = 1
    delta_spent: float = 0.0
    _reach: list[Reach] = field(default_factory=list)
    _deployed: list[tuple[Ladder, int, int]] = field(default_factory=list)
    _pilot: float = 0.0
    _widest: float = 0.0
    _rounds: int = 0
    _batch: int = 0
    _recent: tuple[Any, Groups] | None = None
    _monitor: DriftMonitor | None = None

    # Freezing.

    def freeze_if_due(
        self,
        t: int,
        reference: tuple[Any, Groups],
        n_batch: int,
        rank_people: Callable[[], Likelihood],
    ) -> None:
        """Freeze rankings whose time has come, before round ``t``.

        Parameters
        ----------
        t
            The round to come.
        reference
            Features and groups of people to rank others among.
        n_batch
            People in the batch to come; only its number is used.
        rank_people
            Returns a model learned from everything known now.
        """
        self._batch = max(self._batch, n_batch)
        while self._due(t):
            self._freeze(t, reference, rank_people())

    def _due(self, t: int) -> bool:
        k, freezes = len(self.ladders), self.rules.freezes
        if k >= len(freezes):
            return False
        first, outcomes = freezes[k]
        return t - self.stage_began + 1 >= first and self.rows.known().size >= outcomes

    def _freeze(self, t: int, reference: tuple[Any, Groups], likelihood: Likelihood) -> None:
        rules, n, k = self.rules, self._batch, len(self.ladders)
        ranking = Ranking.freeze(likelihood, *reference, self.n_groups, within=rules.within)
        if not self._pilot:
            low, high = max(0.02, 60 / n), min(0.10, 150 / n)
            self._pilot = float(np.clip(ranking.knee(1.5 * rules.alpha), low, max(low, high)))
            self._pilot = min(self._pilot, 0.10)
            self._widest = self._pilot
        if k == 0:
            reach = np.clip(ranking.knee(1.25 * rules.alpha), self._pilot, 4 * self._pilot)
        else:
            reach = np.clip(ranking.knee(rules.alpha), 0.5 * self._widest, 6 * self._widest)
        stage = _FIRST_STAGE if self.restarts == 0 else (1 - _FIRST_STAGE) / 2**self.restarts
        level = rules.delta * stage * rules.levels[k]
        self.delta_spent += level
        ladder = Ladder(
            ranking,
            max(_SOFTNESS[min(k, len(_SOFTNESS) - 1)] * float(reach), min(6 / n, _SOFTEST)),
            rules.floor,
            level,
            ((0, 1.0),),
            t,
            rules.alpha,
        )
        known = Reach(ladder, ranking.rank(self.rows.X, self.rows["group"]))
        ladder.starts = self._starts(ladder, known, first=k == 0)
        self.ladders.append(ladder)
        self._reach.append(known)

    def _starts(
        self, ladder: Ladder, reach: Reach, *, first: bool
    ) -> tuple[tuple[int, float], ...]:
        start = self._rung(ladder, self._pilot)
        if not first:
            growth = self._growth(ladder, reach)
            lowest = self._rung(ladder, 0.7 * self._pilot)
            if np.any(growth[lowest:] > 0):
                start = lowest + int(np.argmax(growth[lowest:]))
            else:
                start = self._rung(ladder, self._pilot / 2)
        half = self._rung(ladder, float(ladder.grid[start]) / 2)
        return ((start, _WALKS), (half, 1 - _WALKS)) if half < start else ((start, 1.0),)

    def _growth(self, ladder: Ladder, reach: Reach) -> Floats:
        """Return (ΣZ)²/ΣZ² of every rung on our last rounds, where ΣZ is positive."""
        known = self.rows.known()
        recent = known[self.rows["round"][known] > self._rounds - _GROWTH_ROUNDS]
        if recent.size == 0:
            return np.zeros(ladder.grid.size)
        ratio = np.minimum(
            ladder.policies(reach.rank[recent]) / self.rows["p"][recent, None], RATIO_CAP
        )
        z = ratio * (ladder.alpha - (self.rows["outcome"][recent, None] == 0))
        total, squares = z.sum(axis=0), (z**2).sum(axis=0)
        return np.where(total > 0, total**2 / np.maximum(squares, 1e-12), 0.0)

    @staticmethod
    def _rung(ladder: Ladder, q: float) -> int:
        return int(np.argmin(np.abs(ladder.grid - q)))

    # Choosing.

    def choose(self) -> Choice:
        """Return the policy of the next round: the best certified one, or the pilot."""
        best: tuple[float, int, int] | None = None
        for k, ladder in enumerate(self.ladders):
            certified = ladder.certified()
            if not certified.any():
                continue
            worth = np.where(certified, self._worth(k), -np.inf)
            rung = int(np.argmax(worth))
            if best is None or worth[rung] > best[0]:
                best = float(worth[rung]), k, rung
        if best is not None:
            _, k, rung = best
            return Choice(self.ladders[k], rung, True, self._mistakes(k, rung)[0])
        k = len(self.ladders) - 1
        rung = self._pilot_rung(k)
        return Choice(self.ladders[k], rung, False, self._mistakes(k, rung)[0])

    def _weights(self, rows: NDArray[np.intp]) -> Floats:
        """Return one over the mean probability with which rounds so far accepted such people."""
        return np.asarray(self._rounds / self.rows["p_sum"][rows])

    def _worth(self, k: int) -> Floats:
        """Return the estimated utility of every rung of a ladder, up to a factor."""
        rows = self.rows.known()
        outcome = self.rows["outcome"][rows].astype(np.float64)
        utility = self.rules.utility
        gain = utility.expected(1.0, outcome) - utility.expected(0.0, outcome)
        return self._reach[k].sums(gain * self._weights(rows), rows)

    def _mistakes(self, k: int, rung: int, since: int = 0) -> tuple[float, float]:
        """Return the weighted estimate of a rung's FDR, and its standard error."""
        rows = self.rows.known()
        rows = rows[self.rows["round"][rows] >= since]
        if rows.size == 0:
            return float("nan"), float("inf")
        ladder = self.ladders[k]
        pi = ladder.policy(self._reach[k].rank[rows], rung) * self._weights(rows)
        bad = self.rows["outcome"][rows] == 0
        total = pi.sum()
        if total <= 0:
            return float("nan"), float("inf")
        share = float(pi @ bad / total)
        return share, float(np.sqrt((pi**2) @ (bad - share) ** 2) / total)

    def _pilot_estimate(self, k: int, rung: int) -> tuple[float, float]:
        share, error = self._mistakes(k, rung)
        since = self.ladders[k].frozen
        known = self.rows.known()
        new = int(np.sum(self.rows["round"][known] >= since))
        if new < _ENOUGH:
            return share, error
        fresh, _ = self._mistakes(k, rung, since)
        weight = new / (new + 100)
        return weight * fresh + (1 - weight) * share, error

    def _pilot_rung(self, k: int) -> int:
        """Move the pilot outwards if it looks safe, inwards if it does not, and return its rung."""
        ladder, alpha = self.ladders[k], self.rules.alpha
        enough = self.rows.known().size >= _ENOUGH
        if enough:
            share, error = self._pilot_estimate(k, self._rung(ladder, self._pilot))
            if share + 0.7 * error <= alpha and share <= _BRAKE * alpha:
                self._pilot = min(0.7, 1.5 * self._pilot)
        rung = max(ladder.starts[0][0], self._rung(ladder, self._pilot))
        while enough and rung > 0 and self._pilot_estimate(k, rung)[0] > _BRAKE * alpha:
            rung -= 1
        if enough:
            self._pilot = min(self._pilot, float(ladder.grid[rung]))
        return rung

    # What a round leaves behind.

    def log(
        self,
        t: int,
        choice: Choice,
        X: Any,
        group: Groups,
        p: Floats,
        accepted: NDArray[np.bool_],
    ) -> NDArray[np.int64]:
        """Write a round down and return the places of its accepted people."""
        use = [(ladder, self._use(ladder, choice)) for ladder in self.ladders]
        for ladder, reach in zip(self.ladders, self._reach, strict=True):
            if ladder is choice.ladder:
                self.rows["p_sum"][:] += ladder.policy(reach.rank, choice.rung)
        self._count(choice)
        taken = np.flatnonzero(accepted)
        places = self.rows.append(
            X[taken], group[taken], t, p[taken], self._p_sum(X[taken], group[taken])
        )
        for ladder, reach in zip(self.ladders, self._reach, strict=True):
            reach.extend(ladder.ranking.rank(X[taken], group[taken]))
        self.waiting.append(
            Waiting(
                t,
                X,
                group,
                p,
                accepted,
                places,
                choice.ladder,
                choice.rung,
                choice.certified,
                use,
            )
        )
        self._rounds += 1
        self._widest = max(self._widest, float(choice.ladder.grid[choice.rung]))
        self._recent = (X, group)
        return places

    def _count(self, choice: Choice) -> None:
        for i, (ladder, rung, count) in enumerate(self._deployed):
            if ladder is choice.ladder and rung == choice.rung:
                self._deployed[i] = (ladder, rung, count + 1)
                return
        self._deployed.append((choice.ladder, choice.rung, 1))

    def _p_sum(self, X: Any, group: Groups) -> Floats:
        """Return Σ over rounds so far, this one included, of the probability of acceptance."""
        total = np.zeros(X.shape[0])
        ranks: dict[int, Floats] = {}
        for ladder, rung, count in self._deployed:
            if id(ladder) not in ranks:
                ranks[id(ladder)] = ladder.ranking.rank(X, group)
            total += count * ladder.policy(ranks[id(ladder)], rung)
        return total

    def _use(self, ladder: Ladder, choice: Choice) -> NDArray[np.bool_]:
        """Say on which rungs to bet in the round to come, from people of rounds before it."""
        if self._recent is None:
            return (
                np.ones(ladder.grid.size, np.bool_)
                if ladder is choice.ladder
                else np.zeros(ladder.grid.size, np.bool_)
            )
        p = choice.ladder.policy(choice.ladder.ranking.rank(*self._recent), choice.rung)
        return ladder.worth_betting(ladder.ranking.rank(*self._recent), p)

    def check_outcomes(
        self,
        names: NDArray[Any],
        places: NDArray[np.int64],
        outcome: NDArray[np.int8],
        *,
        correcting: bool,
    ) -> None:
        """Raise if outcomes cannot be taken in as they are."""
        order = np.argsort(places, kind="stable")
        same = places[order][1:] == places[order][:-1]
        again = same & (outcome[order][1:] != outcome[order][:-1])
        if again.any():
            name = names[order[np.flatnonzero(again)[0]]].item()
            raise InputError(f"outcomes contradict each other for id {name!r}; give one per id.")
        check_recorded(names, self.rows["outcome"][places], outcome, correcting)

    def take_in(
        self, places: NDArray[np.int64], outcome: NDArray[np.int8], *, correcting: bool
    ) -> None:
        """Fill in outcomes, or correct them, and test what is complete."""
        changed = self.rows["outcome"][places] != outcome
        used = self._tested(self.rows["round"][places])
        self.rows["outcome"][places] = outcome
        if correcting and np.any(changed & used):
            self.restart(forget=False)
        self.catch_up()

    def _tested(self, rounds: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Say which rounds a ladder of now was tested on."""
        if not self.ladders:
            return np.zeros(rounds.shape, np.bool_)
        since = min(ladder.frozen for ladder in self.ladders)
        waiting = np.isin(rounds, [one.number for one in self.waiting])
        return np.asarray((rounds >= since) & ~waiting)

    def catch_up(self) -> None:
        """Test what is complete, and begin again if that speaks against the certificates."""
        self.test_complete_rounds()
        if self.drifted():
            self.restart(forget=True)

    def report(self, choice: Choice, n_people: int, n_accepted: int) -> dict[str, Any]:
        """Return what there is to say about a round, by the names of ``CertifiedRound``."""
        ladder, rung = choice.ladder, choice.rung
        certified = ladder.certified()
        beyond = np.flatnonzero(~certified[ladder.starts[0][0] :]) + ladder.starts[0][0]
        following = int(beyond[0]) if beyond.size else rung
        n_outcomes = self.rows.known().size
        more = ladder.more_outcomes(following)
        return {
            "status": "certified" if choice.certified else "pilot",
            "n_people": n_people,
            "n_accepted": n_accepted,
            "ladder": self.ladders.index(ladder),
            "share": float(ladder.grid[rung]),
            "log_wealth": float(ladder.wealth.best[rung]),
            "threshold": ladder.threshold(rung),
            "next_share": float(ladder.grid[following]),
            "next_log_wealth": float(ladder.wealth.best[following]),
            "next_threshold": ladder.threshold(following),
            "more_outcomes": more,
            "delta_spent": self.delta_spent,
            "n_outcomes": n_outcomes,
            "estimated_fdr": choice.estimated_fdr,
            "message": "" if choice.certified else self._pilot_words(ladder, rung, following, more),
        }

    def _pilot_words(self, ladder: Ladder, rung: int, following: int, more: float) -> str:
        needed = "nobody can say yet how many"
        if np.isfinite(more):
            needed = f"about {more:.0f}"
        return (
            f"No acceptance rule has been shown to keep bad acceptances at or below "
            f"{self.rules.alpha:g} with confidence {1 - self.rules.delta:g}. The rule in use is a "
            f"pilot: it takes the best {ladder.grid[rung]:.1%} and a soft edge, and carries no "
            f"promise. Log wealth {ladder.wealth.best[following]:.2f} of "
            f"{ladder.threshold(following):.2f} needed; {needed} more outcomes are needed if the "
            f"share of bad is what it looks like. You can go on, accept nobody, raise alpha or "
            f"raise delta."
        )

    def test_complete_rounds(self) -> int:
        """Take rounds into the tests in their order, as far as all their outcomes are in."""
        tested = 0
        while self.waiting and self._complete(self.waiting[0]):
            self._test(self.waiting.pop(0))
            tested += 1
        return tested

    def _complete(self, one: Waiting) -> bool:
        if np.all(self.rows["outcome"][one.places] >= 0):
            return True
        patience = self.rules.patience
        return patience is not None and self._rounds - one.number >= patience

    def restart(self, *, forget: bool) -> None:
        """Drop all certificates and begin again with what δ is left.

        ``forget`` leaves outcomes of old rounds out of everything learned from now on.
        """
        self.restarts += 1
        self.stage_began = self._rounds + 1
        if forget:
            self.rows.first_round = max(0, self._rounds - _KEPT_ROUNDS + 1)
        self.ladders, self._reach = [], []
        self._pilot = self._widest = 0.0
        self._monitor = None
        for one in self.waiting:
            one.use = []

    def drifted(self) -> bool:
        """Say whether the outcomes of certified rounds speak against their certificates."""
        limit = self.rules.monitor / 2 ** (self.restarts + 1)  # all stages together: monitor
        return (
            self._monitor is not None and limit > 0 and self._monitor.log_wealth() >= -np.log(limit)
        )

    def _test(self, one: Waiting) -> None:
        if one.certified and one.use:
            self._monitor = self._monitor or DriftMonitor(self.rules.alpha)
            self._monitor.add(self.rows["outcome"][one.places] != 1)
        bad = np.zeros(one.accepted.size, np.bool_)
        bad[one.accepted] = self.rows["outcome"][one.places] != 1
        seen = Seen(one.X, one.group, one.p, one.accepted, bad)
        for ladder, use in one.use:
            ladder.test(seen, one.rung if ladder is one.deployed else None, use)
