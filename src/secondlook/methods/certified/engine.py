"""Which policy may be deployed with a promise, and which one to try while there is none.

The engine of ``CertifiedClassifier``: it freezes rankings, tests their ladders on later rounds in
the order of these, and chooses the policy of the next round. It sees features, logged probabilities
and outcomes of the accepted, never a person's name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from secondlook.errors import InputError
from secondlook.methods.certified.evidence import DriftMonitor
from secondlook.methods.certified.floors import Floor
from secondlook.methods.certified.freezing import edge_softness, walk_starts
from secondlook.methods.certified.ladder import Ladder, Reach, Seen, Standing
from secondlook.methods.certified.own_rows import OwnRows
from secondlook.methods.certified.pilot import Pilot
from secondlook.methods.certified.ranking import Groups, Ranking
from secondlook.methods.certified.rules import Rules
from secondlook.methods.certified.rung_estimates import RungEstimates
from secondlook.people.likelihoods import ConstantLikelihood, Likelihood
from secondlook.people.store import NEVER, PENDING, check_recorded

__all__ = ["Choice", "Engine", "Waiting"]

Floats = NDArray[np.float64]

_KEPT_ROUNDS = 5  # before a drift was noticed, whose outcomes still count after it


@dataclass(frozen=True)
class Choice:
    """The policy of a round."""

    ladder: Ladder
    rung: int
    certified: bool
    estimated_fdr: float
    pilot_share: float | None = None  # how far the pilot reaches if this is deployed


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
    at: list[Standing] | None = None  # where people stand on those ladders, once X is gone

    def keep_standings(self) -> None:
        """Keep where people stand, which is all that tests ask for, and nothing else of them."""
        if self.at is None:
            self.at = [ladder.standing(self.X, self.group) for ladder, _ in self.use]
            self.X, self.group = self.X[:0].copy(), self.group[:0].copy()


@dataclass(frozen=True, eq=False)
class Entry:
    """A round that is about to be written down.

    Attributes
    ----------
    waiting
        The round, without places of the accepted.
    choice
        What decided it.
    bits
        People's names.
    p_sum, standings
        Of the accepted: Σ n_i·p_i of the rounds before, and where they stand on each ladder.
    """

    waiting: Waiting
    choice: Choice
    bits: NDArray[np.uint64]
    p_sum: Floats
    standings: list[Standing]


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
    restart_reason: str = ""
    stage_began: int = 1
    delta_spent: float = 0.0
    _reach: list[Reach] = field(default_factory=list)
    _deployed: list[tuple[Ladder, int, int]] = field(default_factory=list)
    _pilot: Pilot | None = None
    _widest: float = 0.0
    _rounds: int = 0
    _people: int = 0
    _widest_settled: float = 0.0
    _newest: tuple[tuple[int, Ladder, int, int], ...] = ()  # round, policy, people; settled ones
    _batch: int = 0
    _recent: tuple[Any, Groups] | None = None
    _recent_bits: NDArray[np.uint64] | None = None
    _monitor: DriftMonitor | None = None

    # Freezing.

    def freeze_if_due(
        self,
        t: int,
        reference: tuple[Any, Groups],
        n_batch: int,
        rank_people: Callable[[], Likelihood | None],
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
            Returns a model learned from everything known now; None if that is nothing, so that the
            pilot has to start with everybody alike.
        """
        self._batch = max(self._batch, n_batch)
        while self._due(t):
            likelihood = rank_people()
            if likelihood is None:
                if self.ladders:
                    return
                likelihood = ConstantLikelihood(0.5)
            self._freeze(t, reference, likelihood)

    def _due(self, t: int) -> bool:
        k, freezes = len(self.ladders), self.rules.freezes
        if k >= len(freezes):
            return False
        first, outcomes = freezes[k]
        return t - self.stage_began + 1 >= first and self.rows.known().size >= outcomes

    def _freeze(self, t: int, reference: tuple[Any, Groups], likelihood: Likelihood) -> None:
        rules, k = self.rules, len(self.ladders)
        X, group = reference
        score = np.asarray(likelihood.score(X, group), np.float64)
        ranking = Ranking.freeze(likelihood, score, group, self.n_groups, within=rules.within)
        floor = Floor.freeze(rules.strategy, rules.floor, X, score, group, self.n_groups)
        if self._pilot is None:
            self._pilot = Pilot.start(ranking, rules.alpha, self._batch)
            self._widest = self._pilot.share
        level = rules.level(k, self.restarts)
        self.delta_spent += level
        tau = edge_softness(ranking, k, rules, self._pilot, self._widest, self._batch)
        ladder = Ladder(
            ranking, tau, floor, level, ((0, 1.0),), t, rules.alpha, rules.noise.most_bad
        )
        reach = Reach(ladder, ladder.standing(self.rows.X, self.rows["group"]))
        ladder.starts = walk_starts(reach, self._pilot, self._estimates if k else None)
        self.ladders.append(ladder)
        self._reach.append(reach)

    @property
    def _estimates(self) -> RungEstimates:
        return RungEstimates(self.rows, self._people, self.rules.noise, self._widest_settled)

    # Choosing.

    def choose(self) -> Choice:
        """Return the policy of the next round: the best certified one, or the pilot."""
        estimates = self._estimates
        best: tuple[float, Reach, int] | None = None
        for reach in self._reach:
            certified = reach.ladder.certified()
            if not certified.any():
                continue
            worth = np.where(certified, estimates.worth(reach, self.rules.utility), -np.inf)
            rung = int(np.argmax(worth))
            if best is None or worth[rung] > best[0]:
                best = float(worth[rung]), reach, rung
        if best is not None:
            _, reach, rung = best
            return Choice(reach.ladder, rung, True, estimates.mistakes(reach, rung)[0])
        return self._try(self._reach[-1])

    def _try(self, reach: Reach) -> Choice:
        """Return the pilot on a ladder."""
        if self._pilot is None:
            raise AssertionError("a pilot is chosen when the first ladder is frozen")
        rung, share = self._pilot.rung(reach, self._estimates)
        return Choice(reach.ladder, rung, False, self._estimates.mistakes(reach, rung)[0], share)

    # What a round leaves behind.

    def entry(
        self,
        t: int,
        choice: Choice,
        X: Any,
        group: Groups,
        p: Floats,
        accepted: NDArray[np.bool_],
        bits: NDArray[np.uint64],
    ) -> Entry:
        """Return what is to be written down of a round; nothing is yet.

        ``bits`` stand for people's names, and serve to forget them.
        """
        use = [(ladder, self._use(ladder, choice)) for ladder in self.ladders]
        taken = np.flatnonzero(accepted)
        own = X[taken], group[taken]
        deployed = choice.ladder, choice.rung, choice.certified
        return Entry(
            Waiting(t, X, group, p, accepted, np.empty(0, np.int64), *deployed, use),
            choice,
            bits,
            self._p_sum(*own),
            [ladder.standing(*own) for ladder in self.ladders],
        )

    def log(self, entry: Entry) -> NDArray[np.int64]:
        """Write a round down and return the places of its accepted people."""
        one, choice = entry.waiting, entry.choice
        taken = np.flatnonzero(one.accepted)
        one.places = self.rows.append(
            one.X[taken], one.group[taken], one.number, one.p[taken], entry.p_sum
        )
        for reach, standing in zip(self._reach, entry.standings, strict=True):
            reach.extend(standing)
        self.waiting.append(one)
        self._rounds += 1
        if self._pilot is not None and choice.pilot_share is not None:
            self._pilot.share = choice.pilot_share
        self._widest = max(self._widest, float(choice.ladder.grid[choice.rung]))
        self._recent, self._recent_bits = (one.X, one.group), entry.bits
        return one.places

    def forget(self, places: NDArray[np.int64], bits: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Take people out for good, and return everybody's new place, −1 for those.

        Evidence of rounds that are in the tests stays. In rounds that are not, whoever was accepted
        and is gone counts as bad, as somebody who was withdrawn does.
        """
        for one in self.waiting:
            one.keep_standings()
        moved = self.rows.remove(places)
        for reach in self._reach:
            reach.keep(moved >= 0)
        for one in self.waiting:
            here = one.places >= 0
            one.places[here] = moved[one.places[here]]
        if self._recent is not None and self._recent_bits is not None:
            stays = ~np.isin(self._recent_bits, bits)
            X, group = self._recent
            self._recent = (X[stays], group[stays]) if stays.any() else None
            self._recent_bits = self._recent_bits[stays]
        return moved

    def _outcomes(self, one: Waiting) -> NDArray[np.int8]:
        """Return the outcomes of a round's accepted people; those forgotten will never have one."""
        outcome = np.full(one.places.size, NEVER, np.int8)
        here = one.places >= 0
        outcome[here] = self.rows["outcome"][one.places[here]]
        return outcome

    def _settle(self, one: Waiting) -> None:
        """Let a round count in estimates: its people, and its policy in everybody's weight."""
        ladder, n_people = one.deployed, one.p.size
        weights = n_people * self._policy_for_rows(ladder, one.rung)
        if one.number < self.rows.first_round:  # forgotten before all its outcomes were in
            self.rows.settled_round = one.number
            return
        newest = (*self._newest, (one.number, ladder, one.rung, n_people))
        self._newest = newest[-_KEPT_ROUNDS:]
        self.rows["p_sum"][:] += weights
        self.rows.settled_round = one.number
        self._count(ladder, one.rung, n_people)

    def _policy_for_rows(self, ladder: Ladder, rung: int) -> Floats:
        """Return the probability with which a policy, of now or before, accepts each of our own."""
        at = next(
            (reach.at for reach in self._reach if reach.ladder is ladder),
            None,  # dropped by a restart
        ) or ladder.standing(self.rows.X, self.rows["group"])
        return ladder.policy(at, rung)

    def _count(self, ladder: Ladder, rung: int, n_people: int) -> None:
        self._people += n_people
        self._widest_settled = max(self._widest_settled, float(ladder.grid[rung]))
        for i, (other, its_rung, count) in enumerate(self._deployed):
            if other is ladder and its_rung == rung:
                self._deployed[i] = (ladder, rung, count + n_people)
                return
        self._deployed.append((ladder, rung, n_people))

    def _forget_old_rounds(self) -> None:
        """Leave old rounds out of estimates: their people, and their policies in the weights.

        A person of a round that is kept would otherwise count too little where forgotten rounds
        accepted more people like that than the kept ones did.
        """
        first = max(0, self._rounds - _KEPT_ROUNDS + 1)
        kept = [one for one in self._newest if one[0] >= first]
        p_sum = np.zeros(len(self.rows))
        for _, ladder, rung, n_people in kept:
            p_sum += n_people * self._policy_for_rows(ladder, rung)
        self.rows["p_sum"][:] = p_sum
        self._deployed, self._people, self._widest_settled = [], 0, 0.0
        for _, ladder, rung, n_people in kept:
            self._count(ladder, rung, n_people)
        self.rows.first_round = first

    def _p_sum(self, X: Any, group: Groups) -> Floats:
        """Return Σ over settled rounds of people times the probability of acceptance."""
        total = np.zeros(X.shape[0])
        standing: dict[int, Standing] = {}
        for ladder, rung, count in self._deployed:
            if id(ladder) not in standing:
                standing[id(ladder)] = ladder.standing(X, group)
            total += count * ladder.policy(standing[id(ladder)], rung)
        return total

    def _use(self, ladder: Ladder, choice: Choice) -> NDArray[np.bool_]:
        """Say on which rungs to bet in the round to come, from people of rounds before it."""
        if self._recent is None:
            return (
                np.ones(ladder.grid.size, np.bool_)
                if ladder is choice.ladder
                else np.zeros(ladder.grid.size, np.bool_)
            )
        p = choice.ladder.policy(choice.ladder.standing(*self._recent), choice.rung)
        return ladder.worth_betting(ladder.standing(*self._recent), p)

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
            self.restart("correction")
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
            self.restart("drift")

    def test_complete_rounds(self) -> int:
        """Take rounds into the tests in their order, as far as all their outcomes are in."""
        tested = 0
        while self.waiting and self._complete(self.waiting[0]):
            self._test(self.waiting[0])
            self.waiting.pop(0)
            tested += 1
        return tested

    def _complete(self, one: Waiting) -> bool:
        if self._rounds - one.number < self.rules.maturity:
            return False
        if np.all(self._outcomes(one) != PENDING):
            return True
        patience = self.rules.patience
        return patience is not None and self._rounds - one.number >= patience

    def restart(self, reason: Literal["correction", "drift"]) -> None:
        """Drop all certificates and begin again with what δ is left.

        After drift, old rounds are left out of everything learned and estimated from now on.
        """
        if reason == "drift":
            self._forget_old_rounds()
        self.restarts += 1
        self.restart_reason = reason
        self.stage_began = self._rounds + 1
        self.ladders, self._reach = [], []
        self._pilot, self._widest = None, 0.0
        self._monitor = None
        for one in self.waiting:  # its ladders are gone, so nothing is bet on it
            one.use, one.at = [], None

    def drifted(self) -> bool:
        """Say whether the outcomes of certified rounds speak against their certificates."""
        limit = self.rules.monitor_limit(self.restarts)
        return (
            self._monitor is not None and limit > 0 and self._monitor.log_wealth() >= -np.log(limit)
        )

    def _test(self, one: Waiting) -> None:
        at = one.at  # strategies are asked before anything is written down, as one may fail
        if at is None:
            at = [ladder.standing(one.X, one.group) for ladder, _ in one.use]
        self._settle(one)
        outcome = self._outcomes(one)
        if one.certified and one.use:
            allowed = self.rules.noise.recorded_fdr(self.rules.alpha)
            self._monitor = self._monitor or DriftMonitor(allowed)
            self._monitor.add(outcome != 1)
        bad = np.zeros(one.accepted.size)
        bad[one.accepted] = self.rules.noise.badness(outcome != 1)
        for (ladder, use), standing in zip(one.use, at, strict=True):
            seen = Seen(one.X, one.group, one.p, one.accepted, bad, standing)
            ladder.test(seen, one.rung if ladder is one.deployed else None, use)
