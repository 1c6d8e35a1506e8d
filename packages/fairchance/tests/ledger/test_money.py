"""What a program earned against today's policy equals a sum over its applicants."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import fairchance as fc
from charts import rows_of
from fairchance import plot
from fairchance.audit import added_profit
from fairchance.errors import InputError
from fairchance.ledger.money import money_of, periods_of
from fairchance.words.rounds import surely
from ledger_worlds import algorithm_1, started

GAIN = {1: 200, 0: -300, None: -300}  # an outcome that will never be known counts as bad


@pytest.fixture(scope="module", params=["algorithm_1", "certified"])
def beside(request, tmp_path_factory):
    """Return a program beside a lender's process, and rows of its complete rounds by month."""
    classifier = algorithm_1()
    if request.param == "certified":
        classifier = fc.CertifiedClassifier(utility=fc.Revenue(200, 300), random_state=3)
    url = f"sqlite:///{tmp_path_factory.mktemp('money')}/x.db"
    about = {"ramp": 0.6, "not_taken_within": "2 rounds"}
    program, _, batches = started(url, classifier, n_rounds=4, about=about)
    rows = {}
    for t, batch in enumerate(batches):
        d = batch.people.X[:, 0] > 0
        options = {"sensitive_features": batch.people.group, "incumbent": d}
        month = f"2031-{1 + t // 2:02}"  # two rounds in January
        one = program.decide(batch.people.X, batch=f"{month}-{1 + t:02}", **options)
        yes = np.flatnonzero(one.accepted)
        gone, left, seen = yes[:2], yes[2:5], yes[5:] if t < 2 else yes[5:-3]
        program.withdraw(one.ids[gone])
        program.not_taken(one.ids[left])
        program.observe(one.ids[seen], batch.outcome[seen], unlike_expected=True)
        value = dict.fromkeys(gone.tolist()) | dict(
            zip(seen.tolist(), batch.outcome[seen], strict=True)
        )
        loans = [(GAIN[value[at]], d[at] / one.propensity[at]) for at in value]
        rows.setdefault(month, []).extend(loans if t < 2 else [])
    return program, rows


def sums(loans):
    """Return what the program earned, and what the lender's own decisions would have."""
    return sum(value for value, _ in loans), sum(value * weight for value, weight in loans)


def test_the_difference_is_a_sum_over_loans(beside):
    program, rows = beside
    money = program.summary().money
    assert (money.against, money.axis, money.reason) == ("incumbent", "month", "")
    assert [one.period for one in money.periods] == [*rows]
    january, february = money.periods
    for one in (january, money.whole):
        ours, theirs = sums(rows["2031-01"])
        assert (one.program, one.n_loans, one.n_people) == (ours, len(rows["2031-01"]), 400)
        assert one.today == pytest.approx(theirs)
        assert one.added == pytest.approx(ours - theirs)
        assert one.low < one.added < one.high
    assert (february.n_loans, february.n_pending, money.whole.n_pending) == (0, 6, 6)
    assert math.isnan(february.added)
    log = program.decision_log()
    found = added_profit(log, utility=fc.Revenue(200, 300))
    numbers = (money.whole.added, money.whole.low, money.whole.high)
    assert numbers == pytest.approx([400 * one for one in (found.value, found.low, found.high)])


def test_before_all_outcomes_of_a_round_are_known_there_is_an_interval(beside):
    program, _ = beside
    log, summary = program.decision_log(), program.summary()
    with program.reading() as view:
        late = [row for row in summary.rounds if row.round > 2]
        past = (fc.Revenue(200, 300), summary.n_history, summary.history)
        money = money_of(view.reader, view.settings, late, *past)
    found = added_profit(log.select(log.round > 2), utility=past[0], pending="worst")
    assert (money.reason, money.whole.n_pending) == ("no_complete_round", 6)
    assert (money.whole.low, money.whole.high) == pytest.approx((400 * found.low, 400 * found.high))


def test_the_chart_has_months_and_pending(beside):
    program, rows = beside
    money, chart = program.summary().money, plot.money(program)
    points = {row["period"]: row for row in rows_of(chart, "today")}
    assert [*points] == [*rows]
    for one in money.periods:
        value = points[one.period]["value"]
        assert value == (None if math.isnan(one.added) else pytest.approx(one.added, rel=1e-4))
    waiting = [row["n"] for row in rows_of(chart, "n") if row["name"] == "still to come"]
    assert waiting == [0, 6]
    with pytest.raises(InputError):
        plot.money(replace(program.summary(), money=None))


@pytest.mark.parametrize("ramps", [(0.0, 0.0), (0.0, 0.6)])
def test_in_shadow_the_difference_is_zero_for_certain(tmp_path, ramps):
    """Rounds in shadow widen no interval, and pending outcomes do not matter there."""
    url = f"sqlite:///{tmp_path}/x.db"
    program, _, batches = started(url, algorithm_1(), n_rounds=2, about={"ramp": 0.0})
    for ramp, batch in zip(ramps, batches, strict=True):
        if ramp:
            program.ramp(ramp)
        options = {"sensitive_features": batch.people.group, "incumbent": batch.people.X[:, 0] > 0}
        one = program.decide(batch.people.X, **options)
        if not ramp:
            whole = program.summary().money.whole
            assert whole.added == 0
            assert math.isnan(whole.low)
        yes = one.accepted
        program.observe(one.ids[yes], batch.outcome[yes], unlike_expected=True)
    summary = program.summary()
    money, (first, second) = summary.money, summary.money.periods
    assert (first.added, first.today) == (0, first.program)
    assert math.isnan(first.low)
    how = "by score or lender" if any(ramps) else "by the lender"
    assert surely(summary.records) == how
    for end in ("added", "low", "high"):
        np.testing.assert_equal(getattr(money.whole, end), getattr(second, end))


@pytest.mark.parametrize("n_before", [0, 1])
def test_a_round_without_applicants_adds_nothing(tmp_path, n_before):
    url = f"sqlite:///{tmp_path}/x.db"
    classifier = fc.CertifiedClassifier(utility=fc.Revenue(200, 300), random_state=3)
    program, _, batches = started(url, classifier, n_rounds=1, about={"ramp": 0.6})
    for batch in batches[:n_before]:
        options = {"sensitive_features": batch.people.group, "incumbent": batch.people.X[:, 0] > 0}
        one = program.decide(batch.people.X, **options)
        yes = one.accepted
        program.observe(one.ids[yes], batch.outcome[yes], unlike_expected=True)
    before = program.summary().money
    program.open_round(incumbent=True)
    program.close_round()
    assert program.summary().money == before


def test_without_decisions_of_the_lender_the_history_is_compared_with(tmp_path):
    program, _, batches = started(f"sqlite:///{tmp_path}/x.db", algorithm_1(), n_rounds=2)
    assert program.summary().money is None
    for batch in batches:
        options = {"sensitive_features": batch.people.group}
        one = program.decide(batch.people.X, **options)
        assert program.summary().money.reason in ("no_complete_round", "")
        program.observe(one.ids[one.accepted], batch.outcome[one.accepted])
    summary = program.summary()
    money, past = summary.money, summary.history
    per_person = (200 * past.good - 300 * past.bad) / summary.n_history
    assert (money.against, money.axis) == ("history", "round")
    assert [one.period for one in money.periods] == ["1", "2"]
    assert money.whole.today == pytest.approx(per_person * 400)
    assert money.whole.program == summary.worth(summary.outcomes)
    assert money.whole.added == pytest.approx(money.whole.program - per_person * 400)
    assert math.isnan(money.whole.low)


def test_a_history_without_rejections_says_nothing_per_applicant(tmp_path, rng):
    X = rng.normal(size=(200, 2))
    program = fc.ledger.Program.create(
        f"sqlite:///{tmp_path}/x.db", algorithm_1(strategy=None), X, X[:, 0] > 0
    )
    one = program.decide(X)
    good = X[one.accepted, 0] > 0
    program.observe(one.ids[one.accepted], good)
    money = program.summary().money
    assert (money.against, money.reason) == ("nothing", "no_rejections")
    assert math.isnan(money.whole.added)
    assert money.whole.program == 200 * good.sum() - 300 * (~good).sum()


@pytest.mark.parametrize(
    ("batches", "times", "expected"),
    [
        (["2031-01", "2031-02-03"], ["2040-01", "2040-01"], ["2031-01", "2031-02"]),
        (["first", "2031-02"], ["2040-01", "2040-02"], ["2040-01", "2040-02"]),
        (["first", "2031-13"], ["2040-01", "2040-01"], ["1", "2"]),
        (["2031-011", "b"], ["2040-01", "2040-01"], ["1", "2"]),
    ],
)
def test_months_are_of_names_or_of_times(batches, times, expected):
    rounds = [
        SimpleNamespace(batch=batch, began=f"{at}-05T00:00:00+00:00", round=t)
        for t, (batch, at) in enumerate(zip(batches, times, strict=True), start=1)
    ]
    axis, found = periods_of(rounds)
    assert found == expected
    assert axis == ("round" if expected == ["1", "2"] else "month")
