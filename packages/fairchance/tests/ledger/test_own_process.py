"""A program beside the lender's own process: d, the ramp, pauses, and loans that are not taken."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from fairchance.errors import InputError, PausedError
from fairchance.ledger import Program
from fairchance.ledger.control import Control
from fairchance.ledger.outcomes import TakeUpWindow
from fairchance.ledger.verification.walk import verify
from ledger.lived_programs import entries, lying, proved
from ledger_worlds import algorithm_1, certified, same, started

WINDOW = {"not_taken_within": "1 round"}


class Lender:
    """A program, and its lender's own decisions on each batch."""

    def __init__(self, url, about=None, classifier=algorithm_1):
        self.program, _, self.batches = started(url, classifier(), n_batch=60, about=about or {})
        self.rng = np.random.default_rng(5)

    def batch(self, at):
        """Return the options of a batch: features, groups, ids, d, and who is barred."""
        one, rng = self.batches[at], np.random.default_rng([5, at])
        X, n = one.people.X, len(one.people.X)
        d = rng.random(n) < 0.5
        return {
            "X": X,
            "sensitive_features": one.people.group,
            "ids": np.arange(n) + 10_000 * (at + 1),
            "incumbent": d,
            "barred": ~d & (rng.random(n) < 0.2),
        }

    def decide(self, at, **options):
        return self.program.decide(**(self.batch(at) | options))


@pytest.fixture
def lender(place):
    return Lender(place, WINDOW)


@pytest.fixture(params=[algorithm_1, certified], ids=["plain", "certified"])
def any_lender(place, request):
    return Lender(place, WINDOW, request.param)


def unchanged(program, error, call, *arguments, **options):
    """Check that a call is refused in one sentence, and that nothing is recorded."""
    before = program.checkpoint()
    with pytest.raises(error) as caught:
        call(*arguments, **options)
    assert program.checkpoint() == before
    assert str(caught.value).endswith(".")
    return str(caught.value)


def test_a_batch_keeps_what_the_lender_gave(any_lender, place):
    lender = any_lender
    lender.program.ramp(0.3)
    decided = lender.decide(0, batch="one")
    sent = lender.batch(0)
    (batch, facts) = entries(lender.program, "batch")[0]
    assert (batch.says["ramp"], decided.ramp) == (0.3, 0.3)
    for name in ("incumbent", "barred"):
        assert np.array_equal(getattr(facts.decisions, name), sent[name])
        assert np.array_equal(getattr(decided, name), sent[name])
    assert not (decided.accepted & sent["barred"]).any()
    assert (decided.propensity[sent["incumbent"]] >= 0.7).all()
    lender.decide(1)
    again = Program.open(place)
    answer = again.decide(**lender.batch(0), batch="one")
    assert same(answer, decided)
    assert np.array_equal(answer.incumbent, decided.incumbent)
    assert (answer.ramp, answer.status) == (decided.ramp, decided.status)
    proved(again, relearn=True)


def test_the_ramp_is_kept_over_pauses(lender):
    program = lender.program
    program.ramp(0.5)
    program.pause()
    shadow = lender.decide(0)
    assert np.array_equal(shadow.accepted, lender.batch(0)["incumbent"])
    program.ramp(0.25)
    assert lender.decide(1).ramp == 0.0
    program.resume()
    assert lender.decide(2).ramp == 0.25
    summary = program.summary()
    assert [row.ramp for row in summary.rounds] == [0.0, 0.0, 0.25]
    assert [row.status for row in summary.rounds] == ["shadow", "shadow", ""]
    assert summary.total("n_barred") == sum(lender.batch(at)["barred"].sum() for at in range(3))
    kinds = [change.kind for change in summary.changes]
    assert kinds == ["ramp", "pause", "ramp", "resume"]
    assert {change.by for change in summary.changes} == {program.by}
    proved(program)


def test_the_first_ramp_is_a_setting(place):
    lender = Lender(place, {"ramp": 0.0})
    assert lender.decide(0).status == "shadow"
    unchanged(lender.program, InputError, lender.decide, 1, incumbent=None)


@pytest.mark.parametrize("ramp", [1.2, -0.1, float("nan"), "0.5", True])
def test_a_ramp_is_a_share(lender, ramp):
    unchanged(lender.program, InputError, lender.program.ramp, ramp)
    with pytest.raises(InputError):
        Control.of({"ramp": ramp}, ())


def test_a_ramp_needs_the_column_of_the_lender(place):
    roles = {"id": "id", "outcome": "outcome", "accepted": None, "groups": [], "features": []}
    lender = Lender(place, {"roles": roles | {"incumbent": None, "barred": None}})
    assert "0.5" in unchanged(lender.program, InputError, lender.program.ramp, 0.5)
    lender.program.ramp(1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"incumbent": np.r_[np.nan, np.ones(59)]},
        {"incumbent": np.r_[2, np.ones(59)]},
        {"incumbent": ["APPROVED"] * 60},
        {"incumbent": np.ones(60, bool), "barred": np.ones(60, bool)},
        {"barred": np.full(60, None)},
    ],
)
def test_bad_input_of_the_lender_is_refused(lender, wrong):
    unchanged(lender.program, InputError, lender.decide, 0, **wrong)


def test_a_ramp_needs_the_decisions_of_the_lender(lender):
    lender.program.ramp(0.5)
    unchanged(lender.program, InputError, lender.decide, 0, incumbent=None)


def test_a_paused_program_needs_the_decisions_of_the_lender(lender):
    lender.program.pause()
    unchanged(lender.program, PausedError, lender.decide, 0, incumbent=None)
    assert lender.decide(0).status == "shadow"


def test_a_second_query_with_another_decision_is_refused(lender):
    """The lender must decide before our answer can be known."""
    first, sent = lender.decide(0, batch="one"), lender.batch(0)
    assert same(lender.decide(0, batch="one"), first)
    other = sent["incumbent"].copy()
    other[np.argmax(~sent["barred"])] ^= True
    for wrong in (
        {"incumbent": other},
        {"incumbent": None},
        {"barred": ~sent["incumbent"]},
        {"barred": None},
    ):
        unchanged(lender.program, InputError, lender.decide, 0, batch="one", **wrong)
    unchanged(lender.program, InputError, lender.decide, 0, incumbent=other)


def test_controls_may_be_repeated_under_a_name(lender):
    program = lender.program
    program.ramp(0.3, request="start")
    program.pause(request="stop")
    before = program.checkpoint()
    program.ramp(0.3, request="start")
    program.pause(request="stop")
    assert program.checkpoint() == before
    unchanged(program, InputError, program.ramp, 0.4, request="start")
    unchanged(program, InputError, program.resume, request="stop")
    unchanged(program, InputError, program.resume, request="")


def test_only_certified_policies_take_over(lender):
    unchanged(lender.program, InputError, lender.program.hand_over)


def test_a_hand_over_is_on_the_record(place):
    lender = Lender(place, classifier=lambda: certified(handover="by hand"))
    lender.decide(0)
    lender.program.hand_over(request="board")
    before = lender.program.checkpoint()
    lender.program.hand_over(request="board")
    assert lender.program.checkpoint() == before
    lender.decide(1)
    again = Program.open(place)
    assert all(engine.handed_over for engine in again.classifier._engines)
    assert [change.kind for change in again.summary().changes] == ["handover"]
    proved(again, relearn=True)


def test_loans_that_are_not_taken_are_no_mistakes(any_lender, place):
    lender = any_lender
    decided = lender.decide(0)
    yes = decided.ids[decided.accepted]
    good = np.arange(yes.size) % 5 > 0
    lender.program.not_taken(yes[:4], request="first")
    lender.program.not_taken(yes[:4], request="first")
    lender.program.not_taken(yes[2:6])
    lender.program.observe(yes[6:], good[6:].astype(int), unlike_expected=True)
    summary = lender.program.summary()
    outcomes = summary.outcomes
    assert (outcomes.not_taken, outcomes.taken) == (6, yes.size - 6)
    assert outcomes.fdr == outcomes.range[0] == (~good[6:]).mean()
    assert outcomes.mistakes().missing == 0
    regions = summary.exploited.not_taken + summary.explored.not_taken
    assert regions == summary.rounds[0].outcomes.not_taken == 6
    assert sum(group.outcomes.not_taken for group in summary.groups) == 6
    assert summary.so_far()["not_taken"] == 6
    assert lender.program.standing(yes[:7]).states[:6] == ["not_taken"] * 6
    log = lender.program.decision_log()
    assert log.not_taken.sum() == 6
    assert np.array_equal(log.incumbent, lender.batch(0)["incumbent"])
    lender.decide(1)
    assert proved(Program.open(place), relearn=True).n_learned_again == 120


def test_a_taken_loan_stays_taken(lender):
    """Otherwise bad loans could be called not taken once they are known to be bad."""
    program, decided = lender.program, lender.decide(0)
    yes = decided.ids[decided.accepted]
    program.observe(yes[:1], [0], unlike_expected=True)
    program.withdraw(yes[1:2])
    for one in (yes[:1], yes[1:2], yes[:4]):
        unchanged(program, InputError, program.not_taken, one)
    no = decided.ids[~decided.accepted]
    unchanged(program, InputError, program.not_taken, no[:1])
    unchanged(program, InputError, program.not_taken, [7_000_000])


def test_an_outcome_corrects_a_loan_that_was_not_taken(any_lender, place):
    lender = any_lender
    decided = lender.decide(0)
    yes = decided.ids[decided.accepted]
    lender.program.not_taken(yes[:2])
    lender.program.observe(yes[:1], [0], unlike_expected=True)
    assert lender.program.standing(yes[:2]).states == ["bad", "not_taken"]
    assert [change.n for change in lender.program.summary().changes] == [1]
    lender.decide(1)
    proved(Program.open(place), relearn=True)


def test_the_window_counts_rounds(lender):
    program = lender.program
    first, second = lender.decide(0), lender.decide(1)
    program.not_taken(first.ids[first.accepted][:1])
    lender.decide(2)
    late, soon = first.ids[first.accepted], second.ids[second.accepted]
    assert "withdraw" in unchanged(program, InputError, program.not_taken, late)
    unchanged(program, InputError, program.not_taken, [late[1], soon[0]])
    program.not_taken(late[:1])  # as it is recorded
    program.not_taken(soon[:1])
    proved(program)


def test_the_window_counts_days(place):
    lender = Lender(place, {"not_taken_within": "30 days"})
    program, now = lender.program, datetime.now(UTC)
    decided = lender.decide(0)
    yes = decided.ids[decided.accepted]
    program.ledger.clock = lambda: now + timedelta(days=29)
    program.not_taken(yes[:1])
    program.ledger.clock = lambda: now + timedelta(days=31)
    unchanged(program, InputError, program.not_taken, yes[1:2])
    program.withdraw(yes[1:2])


def test_a_window_is_fixed_from_the_start(place):
    lender = Lender(place)
    decided = lender.decide(0)
    yes = decided.ids[decided.accepted]
    said = unchanged(lender.program, InputError, lender.program.not_taken, yes[:1])
    assert "not_taken_within" in said
    for wrong in ("soon", "2", "2 weeks", 2, "-1 days"):
        with pytest.raises(InputError, match="not_taken_within"):
            TakeUpWindow.read(wrong)


def test_a_history_may_have_loans_that_were_not_taken(place):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    good, accepted = (X[:, 0] + rng.normal(size=300) > -0.5).astype(int), X[:, 0] > -1
    not_taken = accepted & (rng.random(300) < 0.2)
    program = Program.create(
        place, algorithm_1(strategy=None), X, good, accepted=accepted, not_taken=not_taken
    )
    assert program.summary().history.not_taken == not_taken.sum()
    program.decide(rng.normal(size=(50, 2)))
    proved(Program.open(place), relearn=True)


def test_a_batch_with_another_ramp_is_found(lender, monkeypatch):
    lender.program.ramp(0.5)
    with monkeypatch.context() as patch:
        lying(patch, "batch", lambda header, facts: (header | {"ramp": 0.4}, facts))
        lender.decide(0)
    assert "ramp" in verify(lender.program.ledger).problem


def test_another_decision_of_the_lender_is_found(lender, monkeypatch):
    """Acceptance is proved with d, barred and the ramp, not only hashed."""

    def lie(header, facts):
        other = ~facts.decisions.incumbent & ~facts.decisions.barred
        object.__setattr__(facts.decisions, "incumbent", other)
        return header, facts

    lender.program.ramp(0.5)
    with monkeypatch.context() as patch:
        lying(patch, "batch", lie)
        lender.decide(0)
    assert verify(lender.program.ledger).problem is not None


def test_a_loan_recorded_as_not_taken_too_late_is_found(lender, monkeypatch):
    first = lender.decide(0)
    lender.decide(1)
    lender.decide(2)
    monkeypatch.setattr("fairchance.ledger.program.to_not_taken", lambda *_: [])
    lender.program.not_taken(first.ids[first.accepted][:1])
    assert "too late" in verify(lender.program.ledger).problem
