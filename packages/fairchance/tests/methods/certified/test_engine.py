"""The engine: frozen ladders, stages of testing, drift, and estimates after drift."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from fairchance import CertifiedClassifier
from fairchance.core.noise import OutcomeNoise
from fairchance.errors import LearningWarning
from fairchance.ledger import Program, verify
from fairchance.methods.certified import pilot
from fairchance.methods.certified.ladder import LadderRows
from fairchance.methods.certified.pilot import Pilot, RungEstimates, Sample
from fairchance.methods.certified.rounds import ChosenPolicy
from fairchance.methods.certified.starts import edge_softness, walk_starts
from fairchance.people.likelihoods import ConstantLikelihood
from fairchance.people.store import PENDING, PeopleStore
from fairchance.simulate.populations import draw_applicants
from methods.certified.known_truth import (
    ALPHA,
    QUICK,
    Flat,
    Slope,
    play,
    rngs,
    start,
)
from methods.certified.ladders import RULES, make_ladder


def test_if_all_look_alike_a_rung_accepts_with_the_share_of_the_pilot():
    ranking = replace(make_ladder().ranking, likelihood=ConstantLikelihood(0.5))
    for share in (0.02, 0.1, 0.7):
        tau = edge_softness(ranking, 0, RULES, Pilot(ALPHA, share), share, 500, 0.3)
        assert np.exp(-(1 - share) / tau) == pytest.approx(share)


def test_an_edge_is_a_part_of_the_accepted_share_and_at_least_six_applicants():
    ranking, softness = make_ladder().ranking, RULES.softness(0)
    for share in (0.005, 0.05, 0.5):
        pilot = Pilot(ALPHA, share)
        accepted = min(max(ranking.knee(1.25 * ALPHA), share), 4 * share)
        expected = softness * accepted
        large = edge_softness(ranking, 0, RULES, pilot, share, 10**6, softness)
        assert large == pytest.approx(expected)
        small = edge_softness(ranking, 0, RULES, pilot, share, 100, softness)
        assert small == pytest.approx(max(expected, 0.05))
    # Later ladders: around what was deployed so far.
    for widest in (0.001, 0.2):
        later = RULES.softness(1) * min(max(ranking.knee(ALPHA), 0.5 * widest), 6 * widest)
        found = edge_softness(ranking, 1, RULES, pilot, widest, 10**6, RULES.softness(1))
        assert found == pytest.approx(later)


def estimates_of(ranks, outcome, p):
    """Return estimates from applicants at these ranks, all of them in the tests."""
    n = len(ranks)
    store = PeopleStore(columns={"p": p, "p_sum": p})
    applicants = np.ones(n, np.bool_)
    store.record(np.arange(n, dtype=np.uint64), applicants, 1, outcome=outcome)
    return RungEstimates(store.parts[0], np.arange(n), 1, n, 1.0, OutcomeNoise())


def test_a_first_ladder_starts_at_the_rung_of_the_pilot():
    ladder = make_ladder()
    empty = LadderRows(ladder, ladder.locate(np.empty((0, 1)), np.empty(0, np.intp)))
    starts = walk_starts(empty, Pilot(ALPHA, 0.1), None, ALPHA)
    (start, share), (half, rest) = starts
    assert start == np.argmin(abs(ladder.grid - 0.1))
    assert half == np.argmin(abs(ladder.grid - ladder.grid[start] / 2))
    assert share + rest == pytest.approx(1)


def test_walks_start_apart_and_share_the_whole_level():
    """The second starts half as far out, so that at the innermost rung there is only one."""
    ladder = make_ladder()
    empty = LadderRows(ladder, ladder.locate(np.empty((0, 1)), np.empty(0, np.intp)))
    for first, share in enumerate(ladder.grid):
        half = int(np.argmin(abs(ladder.grid - share / 2)))
        walks = walk_starts(empty, Pilot(ALPHA, float(share)), None, ALPHA)
        assert [rung for rung, _ in walks] == ([first, half] if first else [0])
        assert sum(part for _, part in walks) == pytest.approx(1)
        ladder.starts = walks
        levels = dict(walks)
        assert ladder.threshold(first) == pytest.approx(-np.log(ladder.level * levels[first]))
    assert walk_starts(empty, Pilot(ALPHA, ladder.grid[0]), None, ALPHA) == ((0, 1.0),)


@pytest.mark.parametrize("edge", [1.0, 0.3, 0.085, 0.0])
def test_a_later_ladder_starts_where_evidence_grew_fastest(edge):
    """Applicants are good up to a rank and bad beyond it; the share of the pilot is 0.1."""
    ladder = make_ladder(tau=0.002)
    X = np.random.default_rng(0).normal(size=(400, 1))
    at = ladder.locate(X, np.zeros(400, np.intp))
    outcome = (at.rank <= edge).astype(np.int8)
    z = ladder.policies(at) / 0.9 * (ALPHA - (outcome == 0))[:, None]
    total, squares = z.sum(axis=0), (z**2).sum(axis=0)
    lowest, pilot = (int(np.argmin(abs(ladder.grid - q))) for q in (0.07, 0.1))
    growth = [
        total[j] ** 2 / squares[j] if total[j] > 0 and j >= lowest else 0.0
        for j in range(ladder.grid.size)
    ]
    known = estimates_of(at.rank, outcome, 0.9)
    ladder_rows, pilot_now = LadderRows(ladder, at), Pilot(ALPHA, 0.1)
    start = walk_starts(ladder_rows, pilot_now, known, ALPHA)[0][0]
    if edge == 0:
        assert max(growth) == 0
        assert start == np.argmin(abs(ladder.grid - 0.05))
    elif edge == 1:  # the more the better, but a ladder starts no further out than a pilot goes
        assert ladder.grid[np.argmax(growth)] > 0.9
        assert start == np.argmin(abs(ladder.grid - 0.7))
    else:
        assert start == int(np.argmax(growth))
        assert start > pilot if edge > 0.1 else lowest <= start < pilot


@pytest.mark.parametrize("edge", [1.0, 0.22, 0.0])
@pytest.mark.parametrize("tau", [0.002, 0.1])
def test_a_pilot_moves_to_the_widest_safe_rung_in_reach(edge, tau):
    """One in ten is bad up to a rank, and all are beyond it; the share of the pilot is 0.2.

    Outwards it goes where weights are at most 4, or half as far again, and inwards by half.
    """
    ladder, n = make_ladder(tau=tau), 2000
    ladder.starts = ((0, 1.0),)
    at = ladder.locate(np.random.default_rng(0).normal(size=(n, 1)), np.zeros(n, np.intp))
    bad = (np.arange(n) % 10 == 0) | (at.rank > edge)
    known = estimates_of(at.rank, (~bad).astype(np.int8), 1.0)
    pi = np.exp(-np.maximum(0, at.rank[:, None] - ladder.grid) / tau)
    fdr = pi[bad].sum(axis=0) / pi.sum(axis=0)
    error = np.sqrt((pi**2 * (bad[:, None] - fdr) ** 2).sum(axis=0)) / pi.sum(axis=0)
    safe = (fdr + 0.7 * error <= ALPHA) & (fdr <= 0.9 * ALPHA)
    here, half, far = (
        int(np.argmin(abs(ladder.grid - q))) for q in (0.2, 0.1, max(0.3, 0.2 + tau * np.log(4)))
    )
    wider = [j for j in range(here + 1, far + 1) if safe[j]]
    kept = [j for j in range(half, here + 1) if fdr[j] <= 0.9 * ALPHA]
    expected = max(wider) if wider else max(kept, default=half)
    rung, share = Pilot(ALPHA, 0.2).rung(LadderRows(ladder, at), known)
    assert rung == expected
    assert {1.0: rung == far > here, 0.22: rung < far, 0.0: rung == half}[edge]
    assert share == pytest.approx(ladder.grid[rung] if wider or rung < here else 0.2)


def test_a_pilot_of_bad_applicants_shrinks_to_the_innermost_rung():
    ladder, n = make_ladder(tau=0.002), 500
    ladder.starts = ((0, 1.0),)
    at = ladder.locate(np.random.default_rng(0).normal(size=(n, 1)), np.zeros(n, np.intp))
    known, pilot = estimates_of(at.rank, np.zeros(n, np.int8), 1.0), Pilot(ALPHA, 0.1)
    rungs = []
    while not rungs or rungs[-1]:
        rung, pilot.share = pilot.rung(LadderRows(ladder, at), known)
        rungs.append(rung)
    assert 3 <= len(rungs) <= 6
    assert ladder.grid[rungs[0]] == pytest.approx(0.05, abs=0.003)


@pytest.mark.parametrize("seed", [1, 10])
def test_no_pilot_accepts_nearly_all_applicants(seed):
    """All applicants are alike, and evidence grows fastest if all are accepted."""
    rng, alike = np.random.default_rng(seed), Flat(fdr=0.1)
    classifier = start(alike, rng, horizon=20, learner=QUICK)
    policies = play(classifier, alike, rng, n=300, rounds=4, truth=False)
    shares = [policy.share for policy in policies if not policy.certified]
    assert 0.5 < max(shares) <= 0.7


MOSTLY_GOOD = Flat(fdr=0.05)


def decide_and_observe(method, rng, n_rounds, n_people):
    """Decide and observe some rounds, and return the last one's accepted with their outcomes."""
    for _ in range(n_rounds):
        batch = draw_applicants(MOSTLY_GOOD, n_people, rng)
        decided = method.decide(batch.people.X)
        ids, outcome = decided.ids[decided.accepted], batch.outcome[decided.accepted]
        method.observe(ids, outcome)
    return ids, outcome


@pytest.mark.parametrize(("horizon", "when"), [(40, (1, 2, 4, 8, 18)), (25, (1, 2, 3, 5, 12))])
def test_every_stage_freezes_at_the_same_shares_of_the_horizon(horizon, when, rng):
    """At once, and after .03, .08, .2 and .45 of the horizon."""
    classifier = start(MOSTLY_GOOD, rng, n_history=3000, horizon=horizon, learner=QUICK)
    (engine,) = classifier._engines
    for began in (1, when[-1] + 1):
        ids, outcome = decide_and_observe(classifier, rng, when[-1], n_people=1500)
        assert [ladder.frozen for ladder in engine.ladders] == [began - 1 + t for t in when]
        with pytest.warns(LearningWarning):
            classifier.correct(ids[:1], 1 - outcome[:1])


def test_a_stage_drops_no_certificate_of_its_own(tmp_path, rng):
    """A correction in a pilot drops nothing, and the first ladder after it is certified."""
    past = draw_applicants(MOSTLY_GOOD, 300, rng)
    program = Program.create(
        f"sqlite:///{tmp_path}/lender.db",
        CertifiedClassifier(alpha=0.4, delta=0.2, horizon=40, random_state=0),
        past.people.X,
        past.outcome,
        accepted=np.arange(300) % 2 == 0,
    )
    ids, outcome = decide_and_observe(program, rng, 1, n_people=300)
    with pytest.warns(LearningWarning, match="2"):
        program.observe(ids[:1], 1 - outcome[:1])
    decide_and_observe(program, rng, 2, n_people=300)
    (deployed,) = program.classifier.deployed_
    assert deployed.certified
    assert deployed.ladder.frozen == deployed.stage_began == 2
    with program.ledger.reading("main") as reader:
        says = [entry.says["what"] for entry in reader.entries(kind="certificate")]
    assert says == ["granted"]
    assert verify(program.ledger, relearn=True).problem is None


BEFORE, AFTER, DRIFT_BATCH = 15, 15, 400


BETTER, WORSE = Slope(intercept=1.5), Slope(intercept=0.5)


DRIFT_RUNS = 6


@pytest.fixture(scope="module", params=[0.05, 0.0], ids=["monitor", "no monitor"])
def runs(request):
    """Return whether there is a monitor, and for each run its restarts and later rounds."""
    answers = []
    for rng in rngs(31, DRIFT_RUNS):
        classifier = start(
            BETTER, rng, horizon=BEFORE + AFTER, monitor=request.param, learner=QUICK
        )
        play(classifier, BETTER, rng, n=DRIFT_BATCH, rounds=BEFORE)
        (engine,) = classifier._engines
        early = engine.stage.restarts
        after, fired = [], None
        for t in range(1, AFTER + 1):
            after += play(classifier, WORSE, rng, n=DRIFT_BATCH, rounds=1)
            if fired is None and engine.stage.restarts > early:
                fired = t
        answers.append((early, fired, after))
    return request.param > 0, answers


def test_the_monitor_ends_violations_soon(runs):
    watched, answers = runs
    violating = [
        np.mean([policy.certified and policy.fdr > ALPHA for policy in after])
        for _, _, after in answers
    ]
    delays = [fired for _, fired, _ in answers]
    assert all(after[0].certified and after[0].fdr > ALPHA for _, _, after in answers)
    if watched:
        assert sum(early for early, _, _ in answers) <= 1  # δ = 0.05 in each of six runs
        assert all(fired is not None and fired <= 8 for fired in delays)
        assert np.mean(violating) <= 0.3
    else:
        assert delays == [None] * DRIFT_RUNS
        assert np.mean(violating) >= 0.9


def test_after_an_alarm_old_outcomes_are_left_out():
    rng = np.random.default_rng(2)
    classifier = start(BETTER, rng, horizon=30, learner=None)
    play(classifier, BETTER, rng, n=DRIFT_BATCH, rounds=12, truth=False)
    (engine,) = classifier._engines
    while engine.stage.restarts == 0:
        play(classifier, WORSE, rng, n=DRIFT_BATCH, rounds=1, truth=False)
    t = classifier.rounds_[-1].round
    assert t <= 18
    assert engine.ladders == []
    assert engine.rows["round"][engine.learnable_rows()].min() == t - 4  # five rounds are kept
    policies = play(classifier, WORSE, rng, n=DRIFT_BATCH, rounds=1)
    assert not policies[0].certified
    assert classifier.rounds_[-1].status == "pilot"


def test_an_alarm_needs_the_evidence_of_its_share_of_delta(rng):
    """A fifth of the monitor's δ is for these bets: half of it for the first stage, and so on."""
    for monitor, restarts, share in ((0.05, 0, 0.005), (0.05, 2, 0.00125), (0.2, 1, 0.01)):
        classifier = start(BETTER, rng, monitor=monitor)
        play(classifier, BETTER, rng, n=50, rounds=1, truth=False)
        (engine,) = classifier._engines
        engine.stage.restarts = restarts
        for log_wealth, alarm in ((-np.log(share) - 1e-9, False), (-np.log(share) + 1e-9, True)):
            engine.stage.monitor = SimpleNamespace(log_wealth=lambda value=log_wealth: value)
            assert engine._has_drifted() == alarm


PEOPLE = Slope()


WIDE_BATCH, WIDE, NARROW = 1000, 0.5, 0.1


KEPT = 5


class ChosenRungs:
    """A run whose rungs are chosen by the test, round by round."""

    def __init__(self, rng, **options):
        self.rng, self.rounds = rng, []
        self.classifier = start(PEOPLE, rng, horizon=400, monitor=0, **options)
        (self.engine,) = self.classifier._engines
        self.engine.choose = self._choose

    @property
    def reach(self):
        return self.engine.stage.ladder_rows[-1]

    def _choose(self, *, beside, ramp):
        ladder, rung = self.reach.ladder, self.reach.ladder.nearest(self.share)
        self.rounds.append((ladder, rung))
        return ChosenPolicy(ladder, rung, False, float("nan"), self.share)

    def play(self, share, n_rounds):
        self.share = share
        play(self.classifier, PEOPLE, self.rng, n=WIDE_BATCH, rounds=n_rounds, truth=False)

    def estimate(self):
        """Return the engine's estimate of the wide rung's FDR, with its standard error."""
        return self.engine.estimates.mistakes(self.reach, self.reach.ladder.nearest(WIDE))

    def by_hand(self, kept, counted):
        """Return it from people of the last rounds, weighted by policies of as many or more."""
        rows, ladder = self.engine.rows, self.reach.ladder
        chosen = rows["round"] > len(self.rounds) - kept
        X, group = rows.X[chosen], rows["group"][chosen]
        past = self.rounds[len(self.rounds) - counted :]
        p = sum(other.policy(other.locate(X, group), rung) for other, rung in past)
        weight = ladder.policy(ladder.locate(X, group), ladder.nearest(WIDE)) / p
        return float(weight @ (rows["outcome"][chosen] != 1) / weight.sum())

    def truth(self):
        """Return it in the population, by quadrature."""
        applicants, ladder = PEOPLE.whole_population(), self.reach.ladder
        at = ladder.locate(applicants.X, np.zeros(len(applicants), np.intp))
        pi = ladder.policy(at, ladder.nearest(WIDE))
        return float(pi @ (1 - PEOPLE.probability_good(applicants)) / pi.sum())


def test_estimates_count_only_the_kept_rounds():
    """Ten wide rounds, five of them left out, and ten narrow ones: against the truth.

    The control counts all twenty in the weights, so that applicants who are accepted by wide
    rounds only, and are worse than others, count too little.
    """
    z = []
    for rng in rngs(41, 6):
        run = ChosenRungs(rng, learner=QUICK)
        run.play(WIDE, 10)
        run.engine.restart("drift")
        run.play(NARROW, 10)
        share, error = run.estimate()
        assert share == pytest.approx(run.by_hand(kept=15, counted=15), rel=1e-9)
        z.append((np.array([share, run.by_hand(kept=15, counted=20)]) - run.truth()) / error)
    ours, control = np.sum(z, axis=0) / np.sqrt(len(z))
    assert abs(ours) < 3.5
    assert control < -4.5


def test_the_widest_share_is_that_of_the_kept_rounds():
    run = ChosenRungs(np.random.default_rng(0))
    run.play(WIDE, 4)
    run.play(NARROW, 6)
    assert run.engine.estimates.widest == pytest.approx(WIDE, abs=0.02)
    run.engine.restart("drift")
    assert run.engine.estimates.widest == pytest.approx(NARROW, abs=0.02)
    assert run.engine.estimates.n_people == KEPT * WIDE_BATCH


@pytest.mark.parametrize("waiting", [2, 8])
def test_waiting_rounds_count_if_they_are_kept(waiting):
    """Some of the kept rounds, or all of them and some left out, are tested later."""
    run = ChosenRungs(np.random.default_rng(1), maturity=waiting)
    run.play(WIDE, 9)
    run.play(NARROW, 1)
    run.engine.restart("drift")
    assert run.engine.estimates.n_people == max(0, KEPT - waiting) * WIDE_BATCH
    run.play(NARROW, 10)
    settled = 10 - waiting
    assert run.engine.estimates.n_people == (KEPT + settled) * WIDE_BATCH
    rows, in_tests = run.engine.rows, run.engine.sample.row[run.engine.estimates.settled]
    assert rows["round"][in_tests].min() == 10 - KEPT + 1
    assert np.unique(rows["round"][in_tests]).size == KEPT + settled
    p = np.zeros(in_tests.size)
    X, group = rows.X[in_tests], rows["group"][in_tests]
    for ladder, rung in run.rounds[10 - KEPT : 10 + settled]:
        p += WIDE_BATCH * ladder.policy(ladder.locate(X, group), rung)
    assert run.engine.sample.p_sum == pytest.approx(p, rel=1e-9)
    assert len(run.engine.settled) < KEPT + settled  # rounds with one policy are one entry


# The sample and the counts


def test_a_sample_is_the_same_in_any_order_and_stands_for_all(monkeypatch, rng):
    monkeypatch.setattr(pilot, "SAMPLED", 400)
    bits = rng.integers(0, 2**63, 3000).astype(np.uint64)
    samples = []
    for order in (np.arange(3000), rng.permutation(3000)):
        sample = Sample()
        for part in np.split(order, 10):
            chosen = part[sample.chosen(bits[part])]
            sample.append(chosen, bits[chosen], np.ones(chosen.size))
            stays = sample.too_many()
            if stays is not None:
                sample.keep(stays)
            assert sample.row.size <= 500
        samples.append(set(sample.row.tolist()))
    few, many = sorted(samples, key=len)
    assert len(few) >= 400
    assert few <= many  # both are those with the smallest keys


def test_estimates_of_a_sample_are_those_of_all_within_their_error(monkeypatch):
    runs = []
    for most in (20_000, 500):
        monkeypatch.setattr(pilot, "SAMPLED", most)
        run = ChosenRungs(np.random.default_rng(5), learner=QUICK)
        run.play(WIDE, 25)
        runs.append(run)
    every, some = (run.engine.estimates for run in runs)
    assert every.each == 1.0
    assert some.each == every.settled.size / some.settled.size > 3
    assert some.settled.size <= 625
    for one in (every, some):
        assert one.rows["p_sum"].size == one.rows["round"].size
    rung = runs[0].reach.ladder.nearest(WIDE)
    (all_bad, _), (bad, error) = (run.estimate() for run in runs)
    assert abs(bad - all_bad) < 4 * error
    accepted = [
        one.totals(run.reach)[0][rung] for one, run in zip((every, some), runs, strict=True)
    ]
    assert accepted[1] == pytest.approx(accepted[0], rel=0.1)
    control = accepted[1] / some.each  # without the weight of a sampled row
    assert control < 0.5 * accepted[0]


def test_counts_of_rounds_are_those_of_the_rows(rng):
    classifier = start(PEOPLE, rng, horizon=30, learner=QUICK, patience=2)
    (engine,) = classifier._engines
    for t in range(1, 9):
        people = draw_applicants(PEOPLE, 200, rng).people
        batch = classifier.decide(people.X)
        ids = rng.permutation(batch.ids[batch.accepted])
        known = ids[2 if t % 2 else 5 :]  # in every other round some stay pending
        classifier.observe(known, rng.integers(0, 2, known.size))
        classifier.not_taken(ids[:2])
        if t == 6:
            classifier.forget(batch.ids[::3])
        rounds, outcome = engine.rows["round"], engine.rows["outcome"]
        for kind, some in enumerate((outcome > -9, outcome == PENDING, outcome >= 0)):
            assert np.array_equal(engine.tally[:, kind], np.bincount(rounds[some], minlength=t + 1))
        assert engine.n_known == np.sum(outcome >= 0)
        assert engine.n_known > engine.n_learnable == engine.learnable_rows().size > 0 or t == 1
