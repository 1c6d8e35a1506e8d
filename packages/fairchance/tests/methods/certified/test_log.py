"""Records of rounds, recomputed from the log by the formulas written out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fairchance.methods.certified.engine import Engine
from fairchance.methods.certified.evidence import BETS, RATIO_CAPS
from methods.certified.controls import with_engine
from methods.certified.known_truth import ALPHA, DELTA, Cliff, Flat, Slope, play, playing, start


class Logged(Engine):
    """Keeps the applicants of each round, and each tested round with its outcomes."""

    def prepare(self, opened, X, group, at, decided, *more):
        if decided.round == 1:
            self.applicants, self.decided, self.tested = {}, {}, []
        self.applicants[decided.round], self.decided[decided.round] = (X, group), decided
        return super().prepare(opened, X, group, at, decided, *more)

    def _test(self, waiting):
        self.tested.append((waiting, self.rows["outcome"][waiting.rows].copy()))
        super()._test(waiting)


def z_of(pi, p, accepted, outcome, cap):
    """Return Z of every person, in order; outcomes are those of the accepted."""
    answers = iter(outcome)
    z = []
    for policy, chance, taken in zip(pi, p, accepted, strict=True):
        w = min(policy / chance, cap) if chance > 0 else cap
        rem = policy - w * chance
        gain = w * (ALPHA - (next(answers) == 0)) if taken else 0.0
        z.append(gain - rem * (1 - ALPHA))
    return z


def replayed(ladder, rung, engine, until=math.inf):
    """Return the wealth of a rung after each round tested before one, by the formulas."""
    gamblers, wealth = {(cap, bet): 0.0 for cap in RATIO_CAPS for bet in BETS}, {}
    q = ladder.grid[rung]
    for waiting, outcome in engine.tested:
        if waiting.number >= until:
            break
        bets = [bet for bet in waiting.bets if bet.ladder is ladder]
        rank = ladder.locate(*engine.applicants[waiting.number]).rank
        floor = float(ladder.floor.scale[0])
        tail = [math.exp(-max(0.0, r - q) / ladder.tau) for r in rank]
        pi = [floor + (1 - floor) * x for x in tail]
        for i, cap in enumerate(RATIO_CAPS):
            if not (bets and bets[0].use[0, i, rung]):
                continue
            bound = cap + 1
            if ladder is waiting.policy.ladder:
                ratio = math.exp(max(0.0, q - ladder.grid[waiting.policy.rung]) / ladder.tau)
                bound = ratio if ratio <= cap else bound
            decided = engine.decided[waiting.number]
            z = z_of(pi, decided.propensity, decided.accepted, outcome, cap)
            for bet in BETS:
                share = min(bet / (1 - ALPHA), 0.95 / ((1 - ALPHA) * bound))
                gamblers[cap, bet] += sum(math.log1p(share * value) for value in z)
        wealth[waiting.number] = math.log(sum(map(math.exp, gamblers.values())) / len(gamblers))
    return wealth


@pytest.fixture(scope="module", params=[0.0, 0.02], ids=["no floor", "floor"])
def logged(request):
    rng = np.random.default_rng(4)
    classifier = start(Slope(), rng, method=with_engine(Logged), horizon=15, floor=request.param)
    play(classifier, Slope(), rng, n=200, rounds=15, truth=False)
    return classifier


def test_wealth_can_be_recomputed_from_the_log(logged):
    engine = logged._engines[0]
    assert len(engine.tested) == 15
    for ladder in engine.ladders:
        for rung in (0, 15, 30, 45, 60, 79):
            wealth = replayed(ladder, rung, engine)
            assert ladder.wealth.mixed()[rung] == pytest.approx(wealth[15], abs=1e-9)
            assert ladder.wealth.best[rung] == pytest.approx(max(0, *wealth.values()), abs=1e-9)


def test_walks_of_a_ladder_share_its_level(logged):
    ladders = logged._engines[0].ladders
    assert any(len(ladder.starts) > 1 for ladder in ladders)
    for ladder in ladders:
        starts, shares = zip(*ladder.starts, strict=True)
        assert sum(shares) == pytest.approx(1)
        assert len(set(starts)) == len(starts)


def test_records_agree_with_the_log(logged):
    engine = logged._engines[0]
    for report, (waiting, _) in zip(logged.rounds_, engine.tested, strict=True):
        ladder = engine.ladders[report.ladder]
        assert ladder is waiting.policy.ladder
        assert report.share == ladder.grid[waiting.policy.rung]
        earlier = [pair for pair in engine.tested if pair[0].number < report.round]
        before = replayed(ladder, waiting.policy.rung, engine, until=report.round)
        best = max([0.0, *before.values()])
        assert report.log_wealth == pytest.approx(best, abs=1e-9)
        assert report.threshold == ladder.threshold(waiting.policy.rung)
        assert report.n_accepted == waiting.accepted.sum()
        assert report.n_outcomes == sum(pair[0].accepted.sum() for pair in earlier)
        assert (report.status == "certified") == waiting.policy.certified
        if waiting.policy.certified:
            assert ladder.certified()[waiting.policy.rung]
            assert report.log_wealth >= report.threshold  # the easier of the two walks
    spent = [report.delta_spent for report in logged.rounds_]
    assert spent == sorted(spent)
    assert spent[-1] == pytest.approx(sum(ladder.level for ladder in engine.ladders))
    assert spent[-1] <= DELTA


def test_a_pilot_reports_the_nearest_ladder_and_not_the_newest():
    rng = np.random.default_rng(2)
    classifier = start(Slope(), rng, horizon=30)
    (engine,) = classifier._engines
    on_an_older_one = 0
    for _ in playing(classifier, Slope(), rng, n=150, rounds=12, truth=False):
        report = classifier.rounds_[-1]
        if report.status == "certified":
            break
        if report.round > 2:
            assert math.isfinite(report.more_outcomes), report.round
            on_an_older_one += (
                report.next_share
                not in engine.ladders[report.ladder].grid[
                    [first for first, _ in engine.ladders[report.ladder].starts]
                ]
            )
            assert report.next_log_wealth < report.next_threshold
    assert report.status == "certified"
    assert on_an_older_one
    assert classifier.rounds_[0].next_n_tested == 0
    assert math.isnan(classifier.rounds_[0].more_outcomes)


def test_pilots_begin_with_a_tenth_and_may_end_wider_than_the_certificate():
    grown, wider = 0, 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        classifier = start(Slope(), rng, horizon=30)
        for policy in playing(classifier, Slope(), rng, n=150, rounds=15, truth=False):
            if policy.certified:
                break
        *pilots, last = classifier.rounds_
        assert pilots[0].share <= 0.101
        grown += max(pilot.share for pilot in pilots) > 1.4 * pilots[0].share
        wider += last.status == "certified" and pilots[-1].n_accepted > last.n_accepted
    assert grown >= 3
    assert wider >= 1


def check_statuses(classifier, policies):
    for report, policy in zip(classifier.rounds_, policies, strict=True):
        assert report.status == ("certified" if policy.certified else "pilot")
        assert (report.alpha, report.delta) == (0.15, 0.1)
        usual = {"none_in_sight", "past_read", "population_changed"}
        assert {note.code for note in report.notes} <= usual


@pytest.mark.parametrize("population", [Flat(), Cliff(), Slope()])
def test_rounds_say_whether_they_are_certified(population):
    rng = np.random.default_rng(9)
    classifier = start(population, rng, learner=None)
    policies = play(classifier, population, rng, n=300, rounds=12, truth=False)
    check_statuses(classifier, policies)
    statuses = {report.status for report in classifier.rounds_}
    assert statuses == ({"pilot"} if population == Flat() else {"pilot", "certified"})


def test_weights_are_one_over_the_mean_propensity_of_all_rounds(logged):
    """Also of rounds that a person did not apply in: the balance heuristic, for choosing only."""
    engine = logged._engines[0]
    X, group = engine.rows.X, engine.rows["group"]
    total = sum(
        waiting.policy.ladder.policy(waiting.policy.ladder.locate(X, group), waiting.policy.rung)
        for waiting, _ in engine.tested
    )
    applicants = np.arange(len(engine.rows))
    assert engine.estimates.weights(applicants) == pytest.approx(15 / total)
