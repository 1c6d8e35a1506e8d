"""Programs whose rounds stay open: decided one by one, closed, imported, due by time or number."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from cli.lender_files import CERTIFIED, answer, apply, call, done, start
from fairchance.cli.files.export_tables import decision_tables
from fairchance.errors import (
    InputError,
    LearningWarning,
    LedgerError,
    OtherContentError,
    PausedError,
)
from fairchance.ledger.applicant import applicant_file, newest_decisions
from fairchance.ledger.health import check_health, find_check
from fairchance.ledger.program import Program
from fairchance.ledger.rounds import RoundRules
from fairchance.ledger.summary import read_details
from fairchance.ledger.verification.proofs import OpenRoundTrial
from fairchance.ledger.verification.walk import verify
from fairchance.methods.storage import load, save
from fairchance.pages.program import program_page, rounds_section
from fairchance.words.applicants import file_facts
from ledger.lived_programs import entries
from ledger_worlds import algorithm_1, certified, started

N = 60


# An import of an applicant who was accepted voids the round, and all tests begin again.
begins_again = pytest.mark.filterwarnings("ignore:Testing begins again")


def coins():
    return algorithm_1(exploration="coins")


def sent(batch, rows=slice(None)):
    return {"X": batch.people.X[rows], "sensitive_features": batch.people.group[rows]}


def ids_of(t):
    return np.arange(N) + 10_000 * (t + 1)


def in_pieces(program, batch, ids, rng, n_pieces=9):
    """Decide on a batch in pieces, shuffled; return whom it accepts, in order."""
    accepted = np.zeros(N, bool)
    for rows in np.array_split(rng.permutation(N), n_pieces):
        part = program.decide(**sent(batch, rows), ids=ids[rows])
        assert len(part.receipts) == len(part) == rows.size
        accepted[rows] = part.accepted
    return accepted


@pytest.fixture
def clock():
    class Clock:
        now = datetime(2031, 1, 1, tzinfo=UTC)

        def __call__(self):
            return self.now

    return Clock()


@pytest.mark.parametrize("make", [coins, certified])
def test_a_round_in_pieces_is_the_same_as_at_once(url, make, rng):
    """Outcomes that come while a round is open are learned when it is closed."""
    program, twin, batches = started(url, make(), n_batch=N)
    for t, batch in enumerate(batches[:4]):
        ids = ids_of(t)
        policy = program.open_round(N)
        assert policy.round == t + 1
        accepted = in_pieces(program if t % 2 else Program.open(url, load=False), batch, ids, rng)
        at_once = twin.decide(**sent(batch), ids=ids)
        np.testing.assert_array_equal(accepted, at_once.accepted)
        yes, outcome = ids[accepted], batch.outcome[accepted]
        half = yes.size // 2
        program.observe(yes[:half], outcome[:half])
        found = program.verify()
        assert (found.problem, found.open_round) == (None, OpenRoundTrial(t + 1, N))
        program.close_round(batch=f"month {t}")
        program.close_round(batch=f"month {t}")  # again, after a lost answer
        program.observe(yes[half:], outcome[half:])
        twin.observe(yes, outcome)
        assert repr(Program.open(url).classifier.rounds_) == repr(twin.rounds_)
    found = program.verify(relearn=True)
    assert (found.problem, found.n_decisions, found.n_learned_again) == (None, 4 * N, 4 * N)


@pytest.mark.parametrize("make", [coins, certified])
def test_the_same_application_gets_the_recorded_answer(url, make, rng):
    program, _, (batch, other, *_) = started(url, make(), n_batch=N)
    ids = ids_of(0)
    program.open_round(N)
    first = program.decide(**sent(batch, slice(20)), ids=ids[:20])
    mixed = program.decide(**sent(batch, slice(10, 30)), ids=ids[10:30])
    np.testing.assert_array_equal(mixed.accepted[:10], first.accepted[10:])
    assert mixed.receipts[:10] == first.receipts[10:]
    assert len({*first.receipts, *mixed.receipts}) == 30
    with pytest.raises(InputError, match="another content"):
        program.decide(**sent(other, slice(3)), ids=ids[:3])
    with pytest.raises(InputError, match="leave out batch"):
        program.decide(**sent(batch, slice(30, 40)), ids=ids[30:40], batch="b")
    with pytest.raises(InputError, match="ids"):
        program.decide(**sent(batch, slice(30, 40)))
    program.close_round()
    for decide in (program.decide, program.decide_in_round):  # after a lost answer
        again = decide(**sent(batch, slice(20)), ids=ids[:20])
        np.testing.assert_array_equal(again.accepted, first.accepted)
        with pytest.raises(InputError, match="another content"):
            decide(**sent(other, slice(3)), ids=ids[:3])
        with pytest.raises(InputError, match=r"decided on before|no round"):
            decide(**sent(batch, slice(20, 40)), ids=ids[20:40])
    program.open_round(N)
    again = program.decide(**sent(batch, slice(20)), ids=ids[:20])  # of the round before
    assert again.round == 1
    assert again.receipts == first.receipts
    with pytest.raises(InputError, match="apart"):
        program.decide(**sent(batch, slice(20, 40)), ids=ids[20:40])
    with pytest.raises(InputError, match="another content"):
        program.decide(**sent(batch, slice(1)), ids=np.arange(1))  # of the history


def test_rounds_that_know_different_things_are_read_together(url, tmp_path):
    """Only some give the lender's own decisions, and only open rounds say that none is barred."""
    program, _, batches = started(url, certified(), n_batch=N)
    lender = {"incumbent": batches[0].people.X[:, 0] > 0}
    first = program.decide(**sent(batches[0]), ids=ids_of(0), **lender)
    program.open_round(N)
    second = program.decide(**sent(batches[1]), ids=ids_of(1))
    no = [int(one.ids[~one.accepted][0]) for one in (first, second)]
    assert [*program.reasons(no)] == no
    with program.reading() as view:
        listed, _ = newest_decisions(view, datetime.min.replace(tzinfo=UTC))
        assert {one["round"] for one in listed} == {1, 2}
        names = [str(ids_of(t)[0]) for t in range(2)]
        known = view.reader.recorded(names).decisions
        assert known.incumbent.tolist() == [bool(lender["incumbent"][0]), None]
        assert known.barred.tolist() == [None, False]
    done("export", url, "--groups", "--features", "-o", str(tmp_path / "all.csv"))
    with pytest.raises(InputError, match="another content"):
        program.decide(**sent(batches[0]), ids=np.r_[ids_of(0)[: N // 2], ids_of(1)[N // 2 :]])


def test_rejected_applicants_get_their_reasons(url, rng):
    program, _, (batch, *_) = started(url, certified(), n_batch=N)
    program.open_round(N)
    decided = program.decide(**sent(batch), ids=ids_of(0))
    no = np.flatnonzero(~decided.accepted)
    told = program.reasons(decided.ids[no])
    assert [told[decided.ids[row].item()] for row in no] == [decided.reasons[row] for row in no]


@pytest.mark.parametrize("make", [coins, certified])
def test_an_open_round_is_compared_with_the_history(url, make, monkeypatch):
    """Its newest applicants are, and all of them when it is closed."""
    monkeypatch.setattr("fairchance.ledger.view._NEWEST", 2 * N)
    program, _, batches = started(url, make(), n_batch=N)

    def decide(batch, t, shift=0.0):
        X = batch.people.X + np.array([shift, 0, 0])
        program.decide(X, sensitive_features=batch.people.group, ids=ids_of(t))

    def found(program):
        checks = [one for one in check_health(program.summary()) if one.finding == "unlike_batch"]
        return [
            (one.facts["round"], {column.column for column in one.facts["unlike"]})
            for one in checks
        ]

    program.open_round(6 * N)
    decide(batches[0], 0)
    assert found(program) == []
    for t in (1, 2):
        decide(batches[t], t, shift=2.0)
    assert found(Program.open(url, load=False)) == found(program) == [(1, {0})]
    assert "newest applicants of round 1" in call("status", url).stdout
    for t in (3, 4):
        decide(batches[t], t)
    assert found(program) == []
    program.close_round()
    assert program.summary().open_round is None
    assert program.verify(relearn=True).problem is None


def test_names_of_other_rounds(url):
    """A request that is recorded opens and closes no other round, and says so."""
    program, _, (first, second, *_) = started(url, certified(), n_batch=N)
    program.decide(**sent(first), ids=ids_of(0), batch="at once")
    program.open_round(N, request="open")
    with pytest.raises(InputError, match="at once; take another"):
        program.close_round(batch="at once")
    with pytest.raises(OtherContentError, match="other content"):
        program.open_round(N + 1, request="open")
    assert program.open_round(N, request="open").round == 2
    program.decide(**sent(second), ids=ids_of(1))
    program.close_round(batch="close")
    for _ in range(2):
        with pytest.raises(InputError, match="round 2, which is closed"):
            program.open_round(N, request="open")
        program.open_round(N, request="next")
    shown = call("round", "close", "--request", "close", "--ledger", url).stdout.splitlines()
    assert [line[:9] for line in shown] == ["Round 2 i", "Round 3 i"]
    assert program.policy().round == 3


def test_what_changes_the_policy_closes_the_round(url):
    program, _, batches = started(url, certified(), n_batch=N)
    for t, (batch, end) in enumerate(
        zip(
            batches,
            (program.pause, program.resume, lambda: program.ramp(0.5), lambda: program.ramp(1.0)),
            strict=False,
        )
    ):
        lender = {"incumbent": batch.people.X[:, 0] > 0}
        program.open_round(N, incumbent=True)
        decided = program.decide(**sent(batch), ids=ids_of(t), **lender)
        assert decided.ramp == (1.0, 0.0, 1.0, 0.5)[t]
        end()
        with pytest.raises(LedgerError, match="no round"):
            program.close_round()
    program.pause()
    with pytest.raises(PausedError):
        program.open_round(N)
    assert program.verify(relearn=True).problem is None


def test_an_erasure_in_the_open_round_closes_it(url):
    """Applications that still come are no rounds of their own."""
    program, _, (one, two, three, *_) = started(url, certified(), n_batch=N)
    program.decide(**sent(one), ids=ids_of(0))
    program.open_round(N)
    program.decide(**sent(two), ids=ids_of(1))
    program.erase(ids_of(0)[:2], "asked", early=True)
    assert program.policy().round == 2
    program.erase(ids_of(1)[:2], "asked", early=True)
    with pytest.raises(InputError, match="no round"):
        program.policy()
    assert program.decide(**sent(three), ids=ids_of(2), batch="whole").round == 3
    program.open_round(N)
    program.decide(**sent(one), ids=ids_of(3))
    program.erase(ids_of(3)[:2], "asked", early=True)
    for one in (slice(1), slice(1, 2)):
        assert program.decide(**sent(three, one), ids=ids_of(4)[one]).round == 5
    opened = [one.says for one, _ in entries(program, "round")]
    assert [says["expected"] for says in opened] == [N, N, N]
    found = program.verify()
    assert (found.problem, found.n_not_repeated) == (None, 6)
    program.close_round()
    assert program.decide(**sent(two), ids=ids_of(5)).round == 6  # by itself
    assert program.summary().open_round is None


def test_a_restart_of_the_tests_closes_the_round(url):
    program, _, batches = started(url, certified(alpha=0.5, delta=0.3), n_batch=400)
    for batch in batches[:2]:
        decided = program.decide(**sent(batch))
        program.observe(decided.ids[decided.accepted], batch.outcome[decided.accepted])
    program.open_round(400)
    last = program.decide(**sent(batches[2]), ids=np.arange(400) + 10**6)
    assert len(last) == 400
    wrong = decided.accepted.nonzero()[0][:1]
    with pytest.warns(LearningWarning, match="again"):
        program.observe(decided.ids[wrong], 1 - batch.outcome[wrong])
    assert program.summary().open_round is None
    assert program.verify(relearn=True).problem is None


@pytest.mark.parametrize(
    "end",
    [
        lambda program, ids: program.override(ids, False, "fraud"),
        lambda program, ids: program.erase(ids, "asked", early=True),
    ],
    ids=["override", "erasure"],
)
def test_an_alarm_that_no_outcome_raises_closes_the_round(url, end):
    program, _, batches = started(url, certified(alpha=0.5, delta=0.3), n_batch=400)
    for t, batch in enumerate(batches[:3]):
        decided = program.decide(**sent(batch))
        outcome = batch.outcome if t < 2 else np.zeros_like(batch.outcome)
        known = np.flatnonzero(decided.accepted)[t == 2 :]
        program.observe(decided.ids[known], outcome[known], unlike_expected=True)
    assert program.open_round(400).certified
    program.decide(**sent(batches[3]), ids=np.arange(400) + 10**6)
    end(program, decided.ids[decided.accepted][:1])
    assert program.classifier.deployed_[0].restarts == 1
    assert program.summary().open_round is None
    assert program.verify(relearn=True).problem is None


@pytest.mark.parametrize("make", [coins, lambda: certified(alpha=0.5, delta=0.3)])
def test_a_correction_in_an_open_round_costs_nothing(url, make):
    """At the closing it is as if the newest outcomes had been the first."""
    program, twin, batches = started(url, make(), n_batch=400)
    for t, batch in enumerate(batches[:3]):
        ids = np.arange(400) + 10_000 * (t + 1)
        program.open_round(400)
        accepted = program.decide(**sent(batch), ids=ids).accepted
        yes, outcome = ids[accepted], batch.outcome[accepted]
        wrong = np.append(1 - outcome[:1], outcome[1:])
        program.observe(yes, wrong)
        program.observe(yes[:1], outcome[:1])
        program.close_round()
        twin.decide(**sent(batch), ids=ids)
        twin.observe(yes, outcome)
    assert repr(Program.open(url).classifier.rounds_) == repr(twin.rounds_)
    assert program.verify(relearn=True).problem is None


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({}, "every"),
        ({"every": "1 year"}, "1 year"),
        ({"every": 7}, "7"),
        ({"at_most": 0}, "0"),
        ({"at_most": True}, "True"),
        ({"weekly": 1}, "weekly"),
    ],
)
def test_rules_that_cannot_be(rules, message):
    with pytest.raises(InputError, match=message):
        RoundRules.read(rules)


def test_when_a_round_is_due():
    now = datetime(2031, 1, 31, tzinfo=UTC)
    assert RoundRules("1 month").due(now) == datetime(2031, 2, 28, tzinfo=UTC)
    assert RoundRules("2 weeks").due(now) == now + timedelta(days=14)
    assert RoundRules("1 day").due(now) == now + timedelta(days=1)
    assert RoundRules(at_most=5).due(now) is None


def test_rounds_by_time(url, clock):
    about = {"rounds": {"every": "1 week"}}
    program, _, batches = started(url, certified(), n_batch=N, about=about)
    program.ledger.clock = clock
    rounds = []
    for day in range(20):
        rows = slice(3 * day, 3 * day + 3)
        decided = program.decide(**sent(batches[0], rows), ids=ids_of(0)[rows])
        rounds.append(decided.round)
        clock.now += timedelta(days=1)
    assert rounds == [1] * 7 + [2] * 7 + [3] * 6
    assert [one.says["rows"]["n"] for one, _ in entries(program, "batch")] == [21, 21]
    assert program.policy().expires == "2031-01-22T00:00:00+00:00"
    assert program.verify().problem is None


def test_a_round_is_of_the_days_on_which_it_was_open(url, clock):
    program, _, batches = started(url, coins(), n_batch=N)
    program.ledger.clock = clock
    for t, batch in enumerate(batches[:2]):
        program.open_round()
        program.decide(**sent(batch), ids=ids_of(t))
        if t:
            with program.reading() as view:
                facts = dict(file_facts(applicant_file(view, ids_of(t)[0])))
            assert facts["Decision"].endswith("in round 2, which is open")
        clock.now += timedelta(days=31)
        program.close_round()
    summary = program.summary()
    assert [one.period for one in summary.money.periods] == ["2031-01", "2031-02"]
    assert [row.age for row in summary.rounds] == [31, 0]
    with program.reading() as view:
        (facts, later) = (dict(file_facts(applicant_file(view, ids_of(t)[0]))) for t in (0, 1))
        at = [one for part in decision_tables(view.reader) for one in part["at"].to_pylist()]
    assert facts["Decision"].endswith("in round 1, 1 January to 1 February 2031")
    assert later["Decision"].endswith("in round 2, 1 February to 4 March 2031")
    assert (facts["Kept until"], later["Kept until"]) == ("2033-03-01", "2033-04-04")
    assert {one[:10] for one in at} == {"2031-01-01", "2031-02-01"}
    shown = rounds_section(summary)
    assert "the last of 1 February to 4 March 2031: " in shown.brief


def test_rounds_by_number(url):
    about = {"rounds": {"at_most": 20}}
    program, _, (batch, *_) = started(url, certified(), n_batch=N, about=about)
    others = [program, Program.open(url, load=False)]
    for row in range(N):
        rows = slice(row, row + 1)
        others[row % 2].decide(**sent(batch, rows), ids=ids_of(0)[rows])
    program.close_round()
    sizes = [one.says["rows"]["n"] for one, _ in entries(program, "batch")]
    assert sum(sizes) == N
    assert max(sizes) <= 21  # another process may decide before it looks
    assert program.verify(relearn=True).problem is None


@begins_again
def test_decisions_made_elsewhere_are_imported(url, tmp_path, rng):
    program, _, (batch, later, *_) = started(url, certified(), n_batch=N)
    save(program.open_round(N), tmp_path / "round.policy")
    policy = load(tmp_path / "round.policy")
    ids, made = ids_of(0), {"at": "2031-03-20", "where": "branch 7"}
    program.decide(**sent(batch, slice(20)), ids=ids[:20])
    elsewhere = policy.decide(**sent(batch), ids=ids)
    wrong = elsewhere.accepted.copy()
    wrong[5] = ~wrong[5]
    with pytest.raises(InputError, match="1 of 60 decisions do not follow"):
        program.import_decisions(**sent(batch), accepted=wrong, round=1, ids=ids, **made)
    with pytest.raises(InputError, match=policy.key):
        program.import_decisions(
            **sent(batch), accepted=elsewhere.accepted, round=1, ids=ids, policy="7f", **made
        )
    made["policy"] = policy.key
    for _ in range(2):  # again, after a lost answer
        found = program.import_decisions(
            **sent(batch, slice(40)),
            accepted=elsewhere.accepted[:40],
            round=1,
            ids=ids[:40],
            **made,
        )
        np.testing.assert_array_equal(found.accepted, elsewhere.accepted[:40])
    assert [one.says["n"] for one, _ in entries(program, "import")] == [20]
    program.close_round()
    assert program.classifier.rounds_[0].n_people == 40
    # Too late: they stand, and are no evidence; nor is the round that lacks them.
    program.open_round(N)
    rest = np.flatnonzero(~elsewhere.accepted[40:])[:1] + 40
    accepted = np.flatnonzero(elsewhere.accepted[40:])[:1] + 40
    for rows in (rest, accepted):
        program.import_decisions(
            **sent(batch, rows), accepted=elsewhere.accepted[rows], round=1, ids=ids[rows], **made
        )
    voided = [one.says["void"] for one, _ in entries(program, "import")]
    assert voided == [False, True, True]
    program.observe(ids[accepted], batch.outcome[accepted])
    program.decide(**sent(later), ids=ids_of(1), batch="at once")
    found = verify(program.ledger, relearn=True)
    assert found.problem is None
    assert Program.open(url).classifier.rounds_[-1].round == 3
    with pytest.raises(InputError, match="no policy of round 9"):
        program.import_decisions(
            **sent(batch, rest), accepted=[False], round=9, ids=ids[rest], **made
        )


@begins_again
@pytest.mark.parametrize("make", [coins, certified])
def test_draws_imported_too_late_are_counted_with_their_chances(url, tmp_path, make):
    """So an outage is no alarm, and who imports only the accepted is found; no test waits."""
    n, lights = 400, []
    for place, only_accepted in ((url, False), (f"sqlite:///{tmp_path}/other.db", True)):
        program, _, (batch, *_) = started(place, make(), n_batch=n)
        ids, rows = np.arange(n) + 10_000, np.arange(40, n)
        made = program.open_round(n).decide(**sent(batch), ids=ids)
        program.decide(**sent(batch, slice(40)), ids=ids[:40])
        program.pause()
        awaited = program.summary().rounds[0]
        for some in np.split(rows[made.accepted[rows]] if only_accepted else rows, 2):
            given = {"ids": ids[some], "round": 1, "at": "2031-03-20", "where": "branch 7"}
            program.import_decisions(**sent(batch, some), accepted=made.accepted[some], **given)
        summary = program.summary()
        (row,) = summary.rounds
        assert row.expected == pytest.approx(program.decision_log().propensity.sum())
        assert (row.awaited, row.awaited_by_group) == (awaited.awaited, awaited.awaited_by_group)
        assert row.outcomes.pending == row.n_accepted > row.awaited
        lights.append(find_check(check_health(summary), "draws").light)
        assert program.verify(relearn=True).ok
    assert lights == ["green", "red"]


@begins_again
@pytest.mark.parametrize("make", [coins, certified])
def test_applicants_imported_too_late_are_erased(url, make):
    """The classifier never knew them."""
    program, _, (batch, later, *_) = started(url, make(), n_batch=N)
    ids = ids_of(0)
    made = program.open_round(N).decide(**sent(batch), ids=ids).accepted
    program.decide(**sent(batch, slice(20)), ids=ids[:20])
    program.close_round()
    rest = {
        "accepted": made[20:],
        "ids": ids[20:],
        "round": 1,
        "at": "2031-03-20",
        "where": "branch 7",
    }
    program.import_decisions(**sent(batch, slice(20, None)), **rest)
    assert program.erase(ids[[0, 20, 21]], "asked", early=True) == 3
    assert program.erase(ids[22:], "asked", early=True) == 38
    program.decide(**sent(later), ids=ids_of(1))
    assert program.verify(relearn=True).problem is None


def test_a_false_decision_in_an_open_round_is_found(tmp_path):
    url = f"sqlite:///{tmp_path}/ledger.db"
    program, _, (batch, *_) = started(url, certified(), n_batch=N)
    program.open_round(N)
    program.decide(**sent(batch), ids=ids_of(0))
    assert program.verify().ok
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection:
        connection.execute("UPDATE people SET accepted = 1 - accepted WHERE application = '10003'")
        connection.commit()
    assert "10003" in program.verify().problem
    with pytest.raises(LedgerError, match="does not follow"):
        program.close_round()


@begins_again
def test_a_file_is_compared_with_its_receipt(url):
    """Also if numbers of applicants are missing, as after several processes on PostgreSQL."""
    program, _, (batch, late, *_) = started(url, certified(), n_batch=N)
    ids, others = ids_of(0), ids_of(1)[:5]
    policy = program.open_round(N)
    programs = [program, Program.open(url, load=False)]
    for at, rows in enumerate(np.array_split(np.arange(N), 6)):
        programs[at % 2].decide(**sent(batch, rows), ids=ids[rows])

    def fits(names, **options):
        with program.reading() as view:
            files = [applicant_file(view, name, **options) for name in names]
        return [one.proof["fits"] for one in files]

    assert {*fits(ids)} == {None}  # no entry has their receipts yet
    program.close_round()
    made = policy.decide(**sent(late, slice(5)), ids=others).accepted
    given = {"ids": others, "round": 1, "at": "2031-03-20", "where": "branch 7"}
    program.import_decisions(**sent(late, slice(5)), accepted=made, **given)
    program.erase(ids[[7]], "asked", early=True)
    history = np.arange(3)
    assert {*fits([*np.delete(ids, 7), *others, *history])} == {True}
    with program.reading() as view:
        erased = 7 + int(view.standing(ids[[0]]).persons[0])
        assert applicant_file(view, person=erased).proof["fits"]
    changes = [
        ("people SET accepted = NOT accepted", ids[11], False),
        ("people SET score = score + 0.1", others[1], False),
        ("people SET accepted = NOT accepted", history[1], False),
        ("people SET person_key = 7", ids[12], None),
        ("group_values SET value = '[\"C\"]'", ids[13], None),
    ]
    for change, name, without_groups in changes:
        person = f"(SELECT person FROM people WHERE application = '{name}')"
        with program.ledger.engine.connect().execution_options(writes=True) as connection:
            connection.exec_driver_sql(f"UPDATE {change} WHERE person = {person}")
            connection.commit()
        assert fits([name]) == [False]
        assert fits([name], groups=False) == [without_groups]
    assert {*fits(ids[14:])} == {True}


def test_commands_in_an_open_round(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path}/lender.db"
    start(url, tmp_path, CERTIFIED)
    apply(30)
    ledger = ("--ledger", url)
    decide = ("decide", "applicants.csv", "-o", "decisions.csv", *ledger)
    assert done("round", "status", *ledger)["open"] is None
    opened = done("round", "open", "--expected", 30, "--policy", "round.policy", *ledger)
    assert opened["open"]["round"] == load("round.policy").round == 1
    first = done(*decide)
    assert (first["round"], first["batch"], first["people"]) == (1, None, 30)
    decided = answer()
    assert done(*decide)["accepted"] == first["accepted"]
    pd.testing.assert_frame_equal(answer(), decided)
    assert done("status", *ledger)["open_round"]["n_people"] == 30
    assert "Round 1 is open" in call("status", *ledger).stdout
    assert call("report", "-o", "report.html", *ledger).exit_code == 0
    assert call("export", "-o", "exported", *ledger).exit_code == 0
    told = done("verify", *ledger)
    assert told["open_round"] == {"round": 1, "n_decisions": 30}
    elsewhere = apply(20, 2000, "made.csv")
    policy = load("round.policy")
    table = pa.Table.from_pandas(elsewhere.drop(columns="outcome"))
    made = pa.Table.from_batches(policy.decide_batches(table.to_batches(), keep=True)).to_pandas()
    made.to_csv("made.csv", index=False)
    imported = ("import", "made.csv", "--at", "2031-03-20", "--where", "shop")
    for _ in range(2):
        result = done(*imported, *ledger)
        assert (result["rounds"], result["people"]) == ([1], 20)
        assert result["accepted"] == int(made["decided_accepted"].sum())
    assert done("round", "close", *ledger)["open"] is None
    assert done("status", *ledger)["rounds"][0]["n_people"] == 50
    assert call("verify", *ledger).exit_code == 0


def test_rounds_by_number_from_a_configuration(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path}/lender.db"
    start(url, tmp_path, f"{CERTIFIED}\n[rounds]\nevery = '1 month'\nat_most = 25\n")
    rounds = []
    for at in range(4):
        apply(20, 1000 + 20 * at)
        rounds.append(
            done("decide", "applicants.csv", "-o", "decisions.csv", "--ledger", url)["round"]
        )
    assert rounds == [1, 1, 2, 2]
    again = done("decide", "applicants.csv", "-o", "decisions.csv", "--ledger", url)
    assert again["round"] == 2
    assert call("verify", "--ledger", url).exit_code == 0


def test_a_report_while_a_round_is_open(url):
    program, _, (batch, other, *_) = started(url, certified(), n_batch=N)
    for decided in (False, True):
        if decided:
            program.decide(**sent(other), ids=ids_of(1))
        before = program.summary()
        program.open_round(N)
        if not decided:
            program.decide(**sent(batch, slice(30)), ids=ids_of(0)[:30])
        summary = program.summary()
        for name in ("outcomes", "groups", "n_history", "changes"):
            assert getattr(summary, name) == getattr(before, name)
        assert summary.open_round.n_people == 30 * (not decided)
        page = program_page(summary, read_details(program.ledger, summary), 180.0)
        assert "is open since" in page.about
        program.close_round()
    assert program.summary().rounds[-1].n_people == 0
