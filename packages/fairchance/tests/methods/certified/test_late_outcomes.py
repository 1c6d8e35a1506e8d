"""Late, missing and corrected outcomes: rounds enter the tests in their order."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest

from fairchance import CertifiedClassifier
from fairchance.core.noise import OutcomeNoise
from fairchance.core.strategies import Uniform
from fairchance.core.utility import Accuracy
from fairchance.errors import InputError, LearningWarning
from fairchance.ledger import Program, verify
from fairchance.methods.certified.rules import Rules
from fairchance.methods.storage import dumps
from fairchance.simulate.feedback import ByOutcome, Feedback
from fairchance.simulate.histories import SelectedOnOutcome
from fairchance.simulate.populations import draw_applicants
from fairchance.simulate.run import run
from fairchance.simulate.streams import Drawn
from fairchance.simulate.worlds import World
from methods.certified.controls import Overtaking, with_engine
from methods.certified.desk import Desk, N, certified_desk
from methods.certified.known_truth import DELTA, QUICK, Flat, Slope, too_many


def test_wealth_moves_only_when_the_oldest_round_is_complete():
    desk, in_order = Desk(), Desk()
    for each in (desk, in_order):
        each.decide()
        each.decide()
    still = desk.wealth
    desk.tell(2)
    assert np.array_equal(desk.wealth, still)
    desk.tell(1, which=[1])
    assert np.array_equal(desk.wealth, still)
    assert len(desk.engine.waiting) == 2
    desk.tell(1, which=[0])
    assert not desk.engine.waiting
    in_order.tell(1)
    assert not np.array_equal(in_order.wealth, still)
    in_order.tell(2)
    assert desk.wealth == pytest.approx(in_order.wealth, abs=1e-12)


def ever_certified(method, seed):
    stream = Drawn(Flat(), n_batch=600, n_rounds=15, n_history=600)
    late = Feedback(ByOutcome(good=0, bad=5))
    world = World(stream, SelectedOnOutcome(), feedback=late, seed=seed)
    past = world.history()
    classifier = method(horizon=39, random_state=seed).fit(
        past.people.X,
        past.outcomes,
        accepted=past.accepted,
        sensitive_features=past.people.group,
    )
    return any(result.decided.certified for result in run(classifier, world))


@pytest.mark.filterwarnings("ignore:The history ranks")  # known outcomes are mostly good here
def test_overtaking_certifies_null_runs():
    """Good outcomes at once, bad ones late, FDR above the bound: in order at most δ of the runs."""
    runs = 12
    in_order = sum(ever_certified(CertifiedClassifier, seed) for seed in range(runs))
    overtaking = sum(ever_certified(with_engine(Overtaking), seed) for seed in range(runs))
    assert not too_many(in_order, runs, DELTA)
    assert too_many(overtaking, runs, DELTA)
    assert overtaking >= 9


def test_pending_outcomes_count_as_bad_after_patience():
    desk, in_full = Desk(patience=1), Desk()
    for each in (desk, in_full):
        each.decide()
    ids, outcome = desk.accepted[0]
    kept_back = np.arange(ids.size) % 4 == 0
    desk.classifier.observe(ids[~kept_back], outcome[~kept_back])
    assert not desk.wealth.any()  # nothing is tested before patience ends
    desk.decide()
    assert [waiting.number for waiting in desk.engine.waiting] == [2]
    in_full.classifier.observe(ids, np.where(kept_back, 0, outcome))
    assert desk.wealth == pytest.approx(in_full.wealth, abs=1e-12)
    # What comes later is learned from, and changes no test.
    before = desk.wealth
    desk.classifier.observe(ids[kept_back], outcome[kept_back])
    assert np.array_equal(desk.wealth, before)
    assert desk.engine.stage.restarts == 0


def test_correcting_a_used_outcome_restarts():
    desk = certified_desk()
    levels = [ladder.level for ladder in desk.engine.ladders]
    ids, outcome = desk.accepted[0]
    desk.classifier.correct(ids[:1], outcome[:1])  # what is recorded already changes nothing
    assert desk.engine.stage.restarts == 0
    with pytest.warns(LearningWarning):
        desk.classifier.correct(ids[:1], 1 - outcome[:1])
    assert desk.engine.stage.restarts == 1
    assert not any(ladder.certified().any() for ladder in desk.engine.ladders)
    decided = desk.decide()
    assert not decided.certified
    assert desk.classifier.rounds_[-1].status == "pilot"
    assert desk.engine.ladders[0].level < levels[0]
    assert desk.engine.ladders[0].frozen == decided.round
    desk.tell(decided.round)
    while not desk.rounds(1).certified:  # and it can be certified again
        assert len(desk.accepted) < 40
    assert desk.engine.delta_spent <= DELTA


def test_rounds_that_wait_through_a_restart_are_not_tested():
    desk = certified_desk()
    desk.decide()
    ids, outcome = desk.accepted[0]
    with pytest.warns(LearningWarning):
        desk.classifier.correct(ids[:1], 1 - outcome[:1])
    desk.decide()
    desk.tell(len(desk.accepted) - 1)
    assert not desk.wealth.any()  # decided before the new ladders were frozen
    desk.tell(len(desk.accepted))
    assert desk.wealth.any()


def test_rounds_that_wait_through_a_restart_do_not_enter_the_monitor():
    desk = certified_desk()
    assert desk.decide().certified
    ids, outcome = desk.accepted[0]
    with pytest.warns(LearningWarning):
        desk.classifier.correct(ids[:1], 1 - outcome[:1])
    ids, outcome = desk.accepted[-1]
    desk.classifier.observe(ids, np.zeros_like(outcome))  # all bad
    assert not desk.engine.waiting
    assert desk.engine.stage.monitor is None
    assert desk.engine.stage.restarts == 1


@pytest.mark.parametrize("options", [{}, {"patience": 2}, {"maturity": 1}])
@pytest.mark.parametrize("forget_again", [False, True])
def test_a_round_with_a_forgotten_applicant_survives_a_restart(options, forget_again):
    """Its ladders are gone, so nothing is bet on it; it still counts in the estimates."""
    desk = Desk(**options)
    desk.rounds(4)
    desk.decide()
    waiting = len(desk.accepted)
    ids, outcome = desk.accepted[-1]
    desk.classifier.forget(ids[:1])
    first_ids, first_outcome = desk.accepted[0]
    with pytest.warns(LearningWarning):
        desk.classifier.correct(first_ids[:1], 1 - first_outcome[:1])
    if forget_again:
        desk.classifier.forget(ids[1:2])
    desk.classifier.observe(ids[2:], outcome[2:])
    if not forget_again:
        desk.classifier.observe(ids[1:2], outcome[1:2])
    desk.rounds(3)
    assert not any(round.number == waiting for round in desk.engine.waiting)
    assert desk.engine.settled_round >= waiting
    assert all(ladder.frozen > waiting for ladder in desk.engine.ladders)
    assert desk.wealth.any()  # of rounds decided since


def test_correcting_an_unused_outcome_does_not_restart():
    desk = certified_desk()
    desk.decide()
    t = len(desk.accepted)
    ids, outcome = desk.accepted[-1]
    desk.classifier.observe(ids[:2], 1 - outcome[:2])
    desk.classifier.correct(ids[:2], outcome[:2])
    assert desk.engine.stage.restarts == 0
    desk.tell(t)
    assert not desk.engine.waiting
    assert desk.decide().certified


def test_only_recorded_outcomes_can_be_corrected():
    desk = Desk()
    desk.decide()
    ids, outcome = desk.accepted[0]
    with pytest.raises(InputError):
        desk.classifier.correct(ids[:1], outcome[:1])
    desk.tell(1)
    with pytest.raises(InputError):
        desk.classifier.observe(ids[:1], 1 - outcome[:1])


def test_levels_of_any_number_of_restarts_stay_within_delta():
    """With horizon 1 a ladder is frozen whenever there are new outcomes; all levels are spent."""
    desk = Desk(horizon=1, learner=QUICK)
    desk.rounds(30)
    spent = [desk.engine.delta_spent]
    for _ in range(30):
        desk.engine.restart("correction")
        for _ in range(12):
            desk.decide(200)
            desk.tell(len(desk.accepted))
        assert len(desk.engine.ladders) == 5
        spent.append(desk.engine.delta_spent)
    steps = np.diff([0.0, *spent])
    assert steps[0] == pytest.approx(0.8 * DELTA)
    assert steps[1:] == pytest.approx(0.2 * DELTA / 2.0 ** np.arange(1, 31))
    assert spent[-1] <= DELTA


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("horizon", [None, 1, 39, 1000])
def test_levels_of_a_stage_sum_to_at_most_one(horizon, beside):
    rules = Rules(0.15, DELTA, Accuracy(), horizon, False, 0.0, Uniform(), OutcomeNoise())
    levels = rules.levels(beside)
    assert len(levels) == len(rules.freezes)
    assert 0.99 <= sum(levels) <= 1 + 1e-12
    assert all(level > 0 for level in levels)
    assert list(rules.freezes) == sorted(rules.freezes)


@pytest.mark.parametrize("lag", [0, 6, 12])
@pytest.mark.parametrize("together", [False, True])
def test_no_two_rankings_learn_nearly_the_same(lag, together):
    """Outcomes arrive after some rounds: round by round, or those of a year at once."""
    desk, known = Desk(horizon=40, learner=QUICK), {}
    for t in range(1, 41):
        known[t] = desk.engine.n_learnable
        desk.decide()
        if not together:
            arrived = [t - lag] if t > lag else []
        else:
            arrived = range(t - lag, t + 1) if t % (lag + 1) == 0 else []
        for past in arrived:
            desk.tell(past)
    frozen = [ladder.frozen for ladder in desk.engine.ladders]
    learned = [known[t] for t in frozen]
    assert len(frozen) >= 4
    assert all(b >= max(1.5 * a, a + 50) for a, b in pairwise(learned))
    assert all(b - a >= 2 for a, b in pairwise(frozen[1:]))


@pytest.mark.parametrize("patience", [None, 8])
def test_late_outcomes_only_delay_the_certificate(patience):
    desk = Desk(patience=patience, horizon=25)
    first = None
    for t in range(1, 26):
        if desk.decide().certified and first is None:
            first = t
        desk.tell(t, which=[1])
        if t > 5:
            desk.tell(t - 5, which=[0])
    assert first is not None
    assert first > 6  # nothing is tested before round 1 is complete
    assert len(desk.engine.waiting) == 5


def test_outcomes_that_never_come_block_the_tests_unless_patience_ends():
    certified = {}
    for patience in (None, 2):
        desk = Desk(patience=patience, horizon=25)
        for t in range(1, 21):
            with warnings.catch_warnings():
                if patience is None:
                    warnings.simplefilter("ignore", LearningWarning)
                last = desk.decide().certified
            ids, outcome = desk.accepted[t - 1]
            some = ids % 40 != 0  # one in forty stays silent
            desk.classifier.observe(ids[some], outcome[some])
        certified[patience] = last
        assert desk.engine.stage.restarts == 0
    assert certified == {None: False, 2: True}


def test_tests_that_are_held_up_name_the_round_and_the_applicants():
    """Decide warns, the record says so without names, and withdrawing lets rounds enter."""
    rng = np.random.default_rng(0)
    past, names = draw_applicants(Slope(), 200, rng), [f"past {i}" for i in range(200)]
    classifier = CertifiedClassifier(learner=QUICK, horizon=39, random_state=0)
    classifier.fit(past.people.X, past.outcome, ids=names)
    silent = {}  # two applicants of each of the first rounds
    for t in range(1, 9):
        batch = draw_applicants(Slope(), N, rng)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            decided = classifier.decide(batch.people.X, ids=[f"{t}-{i}" for i in range(N)])
        blocked = [str(warning.message) for warning in caught]
        assert {warning.filename for warning in caught} <= {__file__}
        ids, outcome = decided.ids[decided.accepted], batch.outcome[decided.accepted]
        silent[t], n_late = ids[:2].tolist(), 2 if t < 3 else 0
        classifier.observe(ids[n_late:], outcome[n_late:])
        assert len(blocked) == (t > 6)
        record = classifier.rounds_[-1]
        assert (record.awaited_round, record.n_awaited) == ((1, 2) if t > 1 else (0, 0))
        assert not any(name in repr(record) for name in silent[1])
        assert [(one.group, one.round, [*one.ids]) for one in classifier.awaited_] == [
            (None, 1, silent[1])
        ]
    (message,) = blocked
    assert all(part in message for part in (repr(silent[1][0]), "ound 1 ", "patience"))
    classifier.forget(silent[1][:1])
    assert silent[1][0].encode() not in dumps(classifier)
    classifier.withdraw(silent[1][1:])
    assert [one.round for one in classifier.awaited_] == [2]
    decided = classifier.decide(batch.people.X, ids=[f"9-{i}" for i in range(N)])  # no warning
    classifier.withdraw(silent[2])
    assert [one.round for one in classifier.awaited_] == [9]
    classifier.withdraw(decided.ids[decided.accepted])
    assert classifier.awaited_ == ()


def corrected(desk, t, n=1, first=0):
    """Correct outcomes of a round, and return the warnings."""
    ids, outcome = (part[first:] for part in desk.accepted[t - 1])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        desk.classifier.correct(ids[:n], 1 - outcome[:n])
    return [(warning.category, str(warning.message), warning.filename) for warning in caught]


def test_a_correction_during_a_pilot_warns_at_the_call():
    desk = Desk()
    desk.rounds(2)
    assert desk.classifier.rounds_[-1].status == "pilot"
    n = sum(ids.size for ids, _ in desk.accepted)
    ((kind, message, file),) = corrected(desk, 1, n=3)
    assert kind is LearningWarning
    assert f" {n:,} " in message
    assert "round 3" in message
    assert file == __file__
    assert corrected(desk, 2) == []  # nothing is left to give up


def test_a_correction_of_an_untested_outcome_costs_nothing():
    desk = Desk(maturity=2)
    desk.rounds(1)
    assert corrected(desk, 1) == []
    desk.rounds(2)
    ((_, message, _),) = corrected(desk, 1, first=1)
    n = desk.accepted[0][0].size  # the only round that is old enough
    assert f" {n:,} " in message


def test_the_warning_names_the_group_that_loses_evidence():
    rng = np.random.default_rng(0)
    X, group = rng.normal(size=(600, 2)), np.resize(["a", "b"], 600)
    clf = CertifiedClassifier(certify="per_group", random_state=0)
    clf.fit(X, (X[:, 0] > 0).astype(int), accepted=X[:, 1] > -1, sensitive_features=group)
    batch = clf.decide(X, sensitive_features=group, ids=1000 + np.arange(600))
    clf.observe(batch.ids[batch.accepted], np.ones(batch.accepted.sum(), int))
    theirs = batch.accepted & (group == "b")
    message = rf"{theirs.sum()} .*\bb\b"
    with pytest.warns(LearningWarning, match=message):
        clf.correct(batch.ids[theirs][:1], [0])
    clf.decide(X, sensitive_features=group, ids=2000 + np.arange(600))
    assert [record.tests_began for record in clf.rounds_[-2:]] == [1, 2]


def test_records_after_a_correction_count_what_was_tested_since():
    desk = Desk()
    desk.rounds(2)
    before = desk.classifier.rounds_[-1]
    assert (before.tests_began, before.restart_reason) == (1, "")
    assert before.n_tested == before.next_n_tested == desk.accepted[0][0].size
    corrected(desk, 1)
    desk.decide()
    record = desk.classifier.rounds_[-1]
    assert (record.tests_began, record.restart_reason) == (3, "correction")
    assert (record.n_tested, record.next_n_tested) == (0, 0)
    desk.tell(3)
    desk.decide()
    n = desk.accepted[2][0].size
    record = desk.classifier.rounds_[-1]
    assert (record.n_tested, record.tests_began) == (n, 3)


def test_a_record_tells_drift_from_a_correction():
    desk = certified_desk()
    while len(desk.accepted) < 6 or desk.engine.stage.restarts == 0:
        desk.decide()
        ids, outcome = desk.accepted[-1]
        drifting = len(desk.accepted) >= 6
        desk.classifier.observe(ids, np.zeros_like(outcome) if drifting else outcome)
        assert len(desk.accepted) < 40
    desk.decide()
    assert desk.classifier.rounds_[-1].restart_reason == "drift"
    assert desk.classifier.rounds_[-1].tests_began == desk.engine.stage.began


def test_a_program_warns_once_and_not_again_when_it_is_opened(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y, url = (X[:, 0] > 0).astype(int), f"sqlite:///{tmp_path}/lender.db"
    made = Program.create(url, CertifiedClassifier(random_state=0), X, y, accepted=X[:, 1] > -1)
    for _ in range(2):
        batch = made.decide(rng.normal(size=(400, 2)))
        taken = batch.ids[batch.accepted]
        made.observe(taken, np.ones(taken.size, int))
    n = made.classifier.deployed_[0].n_tested
    with pytest.warns(LearningWarning, match=f"{n}") as caught:
        made.observe(taken[:2], [0, 0])
    assert len(caught) == 1
    made.observe(taken[:2], [0, 0])  # warnings are errors here
    made.decide(rng.normal(size=(50, 2)))
    assert Program.open(url).classifier.deployed_[0].restarts == 1
    assert verify(made.ledger, relearn=True).ok
