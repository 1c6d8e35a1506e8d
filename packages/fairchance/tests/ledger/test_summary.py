"""A summary equals counting every applicant by hand, whatever has changed since."""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, binomtest
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import fairchance as fc
from fairchance.audit.rates import group_errors
from fairchance.core.metrics import exact_interval
from fairchance.errors import InputError, LedgerError
from fairchance.ledger.base import Facts, OverrideRows
from fairchance.ledger.program import Program
from fairchance.ledger.summary import (
    Outcomes,
    ReasonCount,
    Rejections,
    count_reasons,
    far_fewer,
    summarise,
)
from fairchance.people.reasons import decode, encode
from ledger_worlds import algorithm_1, certified, started
from small_worlds import lender_world

SELECTOR = "sklearn.compose._column_transformer.make_column_selector"
START = datetime(2031, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.99])
@pytest.mark.parametrize("n", [1, 2, 7, 40, 1000])
def test_the_interval_is_that_of_clopper_and_pearson(n, confidence):
    for bad in sorted({0, 1, n // 7, n // 2, n - 1, n}):
        found = binomtest(bad, n).proportion_ci(confidence, method="exact")
        assert exact_interval(bad, n, confidence) == pytest.approx((found.low, found.high))


def test_without_known_outcomes():
    nothing = Outcomes(0, 0, 0, 0)
    assert math.isnan(nothing.fdr)
    assert (nothing.mistakes().low, nothing.mistakes().high) == nothing.range == (0.0, 1.0)
    assert Outcomes(0, 0, 1, 3).range == (0.0, 1.0)


@pytest.mark.parametrize("usual", [0.005, 0.02, 0.1, 0.5, 0.9, 0.99, 1.0])
def test_far_fewer_than_usual_is_hardly_ever_chance(usual):
    """Whatever is flagged has a probability under 1 %, and what is usual is not flagged."""
    n_flagged = 0
    for n in (1, 4, 5, 9, 10, 60, 100, 555, 1000, 20_000):
        flagged = [one for one in range(min(n, 3000) + 1) if far_fewer(one, n, usual)]
        n_flagged += bool(flagged)
        assert flagged == [*range(len(flagged))]
        assert binom.cdf(len(flagged) - 1, n, usual) < 0.01
        assert not far_fewer(math.ceil(0.1 * usual * n), n, usual)
        assert bool(flagged) == (usual * n >= 5)
    assert n_flagged


@pytest.mark.parametrize(
    ("history", "rounds", "accepts_everybody"),
    [
        ((100, 60), [(12, 12)], False),  # 4.8 rejected were to be expected
        ((100, 60), [(13, 13)], True),
        ((100, 60), [(7, 7), (6, 6)], True),
        ((100, 60), [(7, 7), (60, 59)], False),
        ((100, 60), [], False),
        ((100, 100), [(5000, 5000)], False),  # it tells nothing of the rejected
        ((100, 0), [(5, 5)], True),
        ((0, 0), [(5000, 5000)], False),
    ],
)
def test_accepts_everybody(tmp_path, history, rounds, accepts_everybody):
    program, _, (one, *_) = started(f"sqlite:///{tmp_path}/ledger.db", algorithm_1(), n_rounds=1)
    program.decide(one.people.X, sensitive_features=one.people.group)
    found = program.summary()
    assert not found.accepts_everybody
    n, accepted = history
    (last,) = found.rounds
    made = tuple(replace(last, n_people=m, n_exploited=yes, n_explored=0) for m, yes in rounds)
    past = Outcomes(good=accepted, bad=0, withdrawn=0, pending=0)
    other = replace(found, n_history=n, history=past, rounds=made)
    assert other.accepts_everybody == accepts_everybody


@dataclass(frozen=True)
class Person:
    """One person as a test remembers them."""

    id: int
    round: int
    accepted: bool
    exploit: bool
    sex: str
    age: str
    override: bool | None = None
    state: str | None = None
    erased: bool = False

    @property
    def standing(self):
        return self.accepted and not self.replaced

    @property
    def by_hand(self):
        return self.replaced and not self.accepted

    @property
    def replaced(self):
        """An override that repeats the decision has taken another one back."""
        return self.override is not None and self.override != self.accepted


class Book:
    """A program, and everything that was done to it kept in a list besides."""

    def __init__(self, url, classifier, n_rounds=4):
        rng = np.random.default_rng(5)
        world = lender_world(0, n_batch=150, n_rounds=n_rounds)
        past = world.history()

        def groups(people):
            old = np.where(rng.random(len(people.group)) < 0.4, "40+", "under 40")
            return pd.DataFrame({"sex": people.group, "age": old})

        with patch("fairchance.ledger.sql._now", lambda: START - timedelta(days=30)):
            self.program = Program.create(
                url,
                classifier,
                past.people.X,
                past.outcomes,
                accepted=past.accepted,
                sensitive_features=groups(past.people),
                by="tester",
            )
        self.past, self.people, self.true, self.now = past, {}, {}, START
        self.program.ledger.clock = lambda: self.now
        for one in world.batches():
            self._decide(one.applicants, groups(one.applicants.people))

    def _decide(self, one, groups):
        decided = self.program.decide(one.people.X, sensitive_features=groups)
        rows = zip(
            decided.ids.tolist(),
            decided.accepted.tolist(),
            decided.exploit.tolist(),
            groups["sex"],
            groups["age"],
            strict=True,
        )
        for name, accepted, exploit, sex, age in rows:
            self.people[name] = Person(name, decided.round, accepted, exploit, str(sex), age)
        self.true |= dict(zip(decided.ids.tolist(), one.outcome.tolist(), strict=True))
        self.now += timedelta(days=30)

    def some(self, which, n):
        return [one.id for one in self.people.values() if which(one)][:n]

    def change(self, ids, **changes):
        for name in ids:
            self.people[name] = replace(self.people[name], **changes)

    def observe(self, ids, outcomes=None):
        outcomes = [self.true[name] for name in ids] if outcomes is None else outcomes
        self.program.observe(ids, outcomes)
        for name, outcome in zip(ids, outcomes, strict=True):
            self.change([name], state="good" if outcome else "bad")

    def append(self, kind, facts, header=None):
        with self.program.ledger.writing("main") as writer:
            writer.append(kind, header or {}, facts, by="tester")

    def persons(self, ids):
        with self.program.ledger.reading("main") as reader:
            return reader.standing([str(one) for one in ids]).persons


def disturbed(url):
    """Return a book in which everything was done that can be done to a program."""
    book = Book(url, algorithm_1())
    first = book.some(lambda one: one.accepted and one.round == 1, 99)
    book.observe(first[4:])
    book.observe(book.some(lambda one: one.accepted and one.round == 3, 15))
    out = book.some(lambda one: one.accepted and one.round == 2 and one.state is None, 3)
    book.program.override(out, False, "fraud was found")
    book.change(out, override=False)
    taken = book.some(lambda one: not one.accepted and one.round == 2, 4)
    book.program.override(taken, True, "has a guarantor")
    book.change(taken, override=True)
    book.observe(taken[:2], [0, 1])
    for _ in range(3):  # there and back again
        wrong = first[5:9]
        book.observe(wrong, [int(book.people[one].state == "bad") for one in wrong])
    book.program.withdraw(first[:2])
    book.change(first[:2], state="withdrawn")
    book.program.override(first[2:4], False, "withdrew")
    book.change(first[2:4], override=False)
    book.append(
        "override", Facts(overrides=OverrideRows(book.persons(first[2:3]), np.array([True]), ["?"]))
    )
    book.change(first[2:3], override=True)
    gone = [first[3], first[6], taken[0], *book.some(lambda one: not one.accepted, 2)]
    book.append("erasure", Facts(erased=book.persons(gone)), {"reason": "asked for it"})
    book.change(gone, erased=True)
    free = book.some(lambda one: not one.erased, 3)
    book.program.hold(free, "a lawsuit")
    book.program.release(free[:1], "it was another applicant")
    return book


def tallied(people):
    states = [one.state for one in people]
    known = [states.count(state) for state in ("good", "bad", "withdrawn")]
    return Outcomes(*known, states.count(None))


def test_a_summary_equals_counting_by_hand(url):
    book = disturbed(url)
    found, people = summarise(book.program.ledger), list(book.people.values())
    standing = [one for one in people if one.standing]
    assert found.outcomes == tallied(standing)
    assert found.exploited == tallied([one for one in standing if one.exploit])
    assert found.explored == tallied([one for one in standing if not one.exploit])
    assert found.overridden == tallied([one for one in people if one.by_hand])
    assert found.n_erased == sum(one.erased for one in people) == 5
    assert found.n_held == 2
    past = book.past
    assert found.n_history == len(past.accepted)
    good = int(past.outcomes[past.accepted].sum())
    assert found.history == Outcomes(good, int(past.accepted.sum()) - good, 0, 0)
    for one in found.rounds:
        members = [person for person in people if person.round == one.round]
        exploited = [person for person in members if person.accepted and person.exploit]
        assert one.n_people == len(members)
        assert one.n_exploited == len(exploited)
        assert one.n_accepted == sum(person.accepted for person in members)
        assert one.n_overridden == sum(person.replaced for person in members)
        assert one.outcomes == tallied([person for person in members if person.standing])
        by_hand = [person for person in members if person.by_hand]
        assert one.overridden == tallied(by_hand)
        assert one.n_by_hand == len(by_hand)
        assert one.n_set_apart == sum(p.accepted and p.replaced for p in members)
    assert [one.round for one in found.rounds] == [1, 2, 3, 4]
    assert found.total("n_explored") == sum(one.accepted and not one.exploit for one in people) > 0


def test_groups_of_each_attribute_and_of_their_combinations(url):
    book = disturbed(url)
    found, people = summarise(book.program.ledger), list(book.people.values())
    labels = {
        "sex": lambda one: one.sex,
        "age": lambda one: one.age,
        "sex × age": lambda one: f"{one.sex}, {one.age}",
    }
    expected = []
    for attribute, label in labels.items():
        groups = sorted({label(one) for one in people if not one.erased})
        for group in [*groups, None]:
            members = [one for one in people if (None if one.erased else label(one)) == group]
            explored = [one for one in members if one.accepted and not one.exploit]
            expected.append(
                (
                    attribute,
                    group,
                    len(members),
                    sum(one.accepted for one in members),
                    len(explored),
                    sum(one.replaced for one in members),
                    tallied([one for one in members if one.standing]),
                    sum(one.by_hand for one in members),
                    sum(not one.exploit for one in members),
                    Counter(one.round for one in members if one.standing and not one.state),
                )
            )
        at = [one for one in found.groups if one.attribute == attribute]
        first = {
            group: min(one.round for one in people if not one.erased and label(one) == group)
            for group in groups
        }
        assert {one.group: one.error for one in at[:-1]} == group_errors(first, 2)
        assert math.isnan(at[-1].error)
    assert [tuple(vars(one).values())[:-2] for one in found.groups] == expected
    for one in found.groups:
        (gone,) = (each for each in found.groups if each.name == f"{one.attribute} None")
        others = (0, 0, Outcomes(0, 0, 0, 0))
        if one.group is not None:
            others = gone.n_people, gone.n_accepted, gone.outcomes
        assert (one.unplaced.n_people, one.unplaced.n_accepted, one.unplaced.outcomes) == others
    assert len(expected) == 3 + 3 + 5


def test_changes_have_number_time_and_author(url):
    book = disturbed(url)
    found = summarise(book.program.ledger)
    assert [(one.kind, one.n) for one in found.changes] == [
        ("override", 3),
        ("override", 4),
        *[("correction", 4)] * 3,
        ("override", 2),
        ("override", 1),
        ("erasure", 5),
        ("hold", 3),
        ("release", 1),
    ]
    assert {one.by for one in found.changes} == {"tester"}
    assert found.changes[-3].says["reason"] == "asked for it"
    assert found.changes[0].at == "2031-05-01T00:00:00.000000+00:00"
    assert found.head == book.program.checkpoint()


def test_pending_outcomes_and_their_age(url):
    book = disturbed(url)
    found = summarise(book.program.ledger)
    book.now += timedelta(hours=12)
    later = summarise(book.program.ledger)
    for summary, more in ((found, 0.0), (later, 0.5)):
        for least in (0.0, 45.0, 90.0, 1000.0):
            days = [
                30 * (5 - one.round) + more
                for one in book.people.values()
                if one.state is None and (one.standing or one.by_hand)
            ]
            days = [one for one in days if one >= least]
            waiting = summary.waiting(least)
            assert waiting.n == len(days)
            if days:
                assert waiting.oldest == pytest.approx(max(days))
                assert waiting.median == pytest.approx(np.median(days))
            else:
                assert math.isnan(waiting.oldest)
                assert math.isnan(waiting.median)
    assert 0 < found.waiting(90.0).n < found.waiting(45.0).n < found.waiting().n


def test_budget_worth_and_records_of_rounds(url):
    book = Book(url, algorithm_1(), n_rounds=3)
    book.observe(book.some(lambda one: one.accepted and one.round == 1, 40))
    found = summarise(book.program.ledger)
    assert found.promise.alpha == 0.15
    assert found.promise.delta is None
    rounds = book.program.classifier.rounds_
    allowed = [(0.15 - one.alpha_exploit - 0.001) / 0.85 * one.n_exploited for one in rounds]
    assert found.budget == pytest.approx(sum(allowed))
    assert found.total("n_explored") <= found.budget
    assert [one.alpha_exploit for one in found.rounds] == [one.alpha_exploit for one in rounds]
    # JSON has no NaN, and keeps it as text
    for one, noted in zip(found.rounds, rounds, strict=True):
        assert one.thresholds == pytest.approx(noted.thresholds, nan_ok=True)
        assert repr(one.records) == repr((noted,))
    good = [one.state == "good" for one in book.people.values() if one.state is not None]
    assert found.worth(found.outcomes) == sum(200 if each else -300 for each in good) != 0


def test_a_certified_program(tmp_path):
    url = f"sqlite:///{tmp_path}/ledger.db"
    program, twin, (one, *_) = started(url, certified(delta=0.2), n_rounds=1)
    decided = program.decide(one.people.X, sensitive_features=one.people.group)
    twin.decide(one.people.X, sensitive_features=one.people.group)
    found = summarise(program.ledger)
    assert (found.promise.alpha, found.promise.delta) == (twin.alpha, 0.2)
    assert math.isnan(found.budget)
    assert math.isnan(found.worth(found.outcomes))
    (only,) = found.rounds
    assert only.certified == decided.certified
    assert repr(only.records) == repr(tuple(twin.rounds_))
    assert math.isnan(only.alpha_exploit)
    assert only.thresholds == ()
    assert [one.attribute for one in found.groups] == ["group", "group"]


def test_listed_applicants_have_their_overrides_and_outcomes(url):
    book = disturbed(url)
    people = list(book.people.values())
    with book.program.ledger.reading("main") as reader:
        entries = {one.number: one for one in reader.entries()}
        for entry in reader.entries(kind="batch"):
            first, n = (entry.says["rows"][name] for name in ("first", "n"))
            members = [one for one in people if one.round == entry.says["round"]]
            for start, end in ((0, n), (0, 1), (11, 40), (n - 1, n)):
                rows = reader.listed(first + start, first + end, groups=True)
                some = members[start:end]
                names = [None if one.erased else str(one.id) for one in some]
                assert list(rows.people.applications) == names
                groups = [None if one.erased else f'["{one.sex}","{one.age}"]' for one in some]
                assert list(rows.people.groups) == groups
                assert rows.decisions.accepted.tolist() == [one.accepted for one in some]
                overrides = [None if one is None else one[0] for one in rows.overrides]
                assert overrides == [one.override for one in some]
                states = [None if one is None else one[0] for one in rows.outcomes]
                assert states == [one.state for one in some]
                kinds = [entries[one[1]].kind for one in rows.outcomes if one is not None]
                assert set(kinds) <= {"outcomes", "correction"}
            assert reader.listed(first, first + n).people.groups is None
        corrected = book.some(lambda one: one.accepted and one.round == 1, 99)[5]
        (at,) = book.persons([corrected])
        (outcome,) = reader.listed(int(at), int(at) + 1).outcomes
        assert entries[outcome[1]].kind == "correction"


def test_expired_applicants(tmp_path):
    book = disturbed(f"sqlite:///{tmp_path}/ledger.db")
    assert summarise(book.program.ledger).n_expired == 0
    book.now = datetime(2033, 2, 5, tzinfo=UTC)  # 25 months after the first batch, and 4 days
    first = [one for one in book.people.values() if one.round == 1]
    found = summarise(book.program.ledger)
    erased = sum(one.erased for one in first)
    assert found.n_expired == found.n_history + len(first) - erased - found.n_held
    assert erased > 0


def test_groups_need_not_be_readable(tmp_path):
    book = disturbed(f"sqlite:///{tmp_path}/ledger.db")
    found = summarise(book.program.ledger)
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection:
        connection.execute("ALTER TABLE group_values RENAME TO out_of_reach")
    without = summarise(book.program.ledger, groups=False)
    assert repr(without) == repr(replace(found, groups=()))  # NaN is not like itself
    with pytest.raises(LedgerError, match="group_values"):
        summarise(book.program.ledger)


def test_programs_of_one_ledger_are_counted_separately(url):
    book = Book(url, algorithm_1(), n_rounds=1)
    X = np.random.default_rng(0).normal(size=(60, 2))
    clf = fc.PartialFeedbackClassifier(random_state=0)
    other = Program.create(url, clf, X[:40], X[:40, 0] > 0, name="other")
    other.decide(X[40:])
    found = summarise(other.ledger, "other")
    assert (found.n_history, found.total("n_people"), found.groups) == (40, 20, ())
    assert summarise(book.program.ledger, "main").total("n_people") == 150


def test_unreadable_settings_are_a_problem_of_the_promise(tmp_path):
    X = pd.DataFrame({"trade": ["smith", "baker"] * 30})
    encoder = make_column_transformer(
        (OneHotEncoder(), make_column_selector(dtype_exclude="number"))
    )
    clf = algorithm_1(learner=make_pipeline(encoder, LogisticRegression()), strategy=fc.Uniform())
    good, trusted = (
        np.arange(60) % 3 > 0,
        ["sklearn.compose._column_transformer.make_column_selector"],
    )
    url = f"sqlite:///{tmp_path}/ledger.db"
    program = Program.create(url, clf, X, good, trusted=trusted)
    found = summarise(program.ledger)
    assert "make_column_selector" in found.promise.problem
    assert found.promise.alpha is None
    again = summarise(program.ledger, trusted=trusted)
    assert (again.promise.alpha, again.promise.problem) == (0.15, "")
    assert again.n_history == found.n_history == 60


def test_an_unreadable_time_is_a_ledger_error(tmp_path):
    program, _, (one, *_) = started(f"sqlite:///{tmp_path}/x.db", algorithm_1(), n_batch=20)
    program.decide(one.people.X, sensitive_features=one.people.group)
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        connection.execute("UPDATE entries SET at = 'yesterday' WHERE kind IN ('history', 'batch')")
        connection.commit()
    for ask in (lambda: summarise(program.ledger), program.expired):
        with pytest.raises(LedgerError, match=r"entry \d+ cannot be read \(.*yesterday"):
            ask()


COLUMNS = ["age", "income", "debt", "years", "region", "rent"]


def test_reasons_are_counted_as_by_reading_each():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(400, len(COLUMNS))) + np.linspace(-1.0, 2.5, len(COLUMNS))
    stored = encode(np.where(rng.random((400, 1)) < 0.1, np.abs(values), values)).tolist()
    lists = [[name for name, _ in decode(reasons, COLUMNS)] for reasons in stored]
    everything = Counter(name for one in lists for name in one)
    first = Counter(one[0] for one in lists if one)
    whole = count_reasons([stored], COLUMNS)
    assert (whole.n, whole.n_without) == (400, lists.count([]))
    assert whole.n_without > 0
    assert {one.name: (one.n, one.n_first) for one in whole.reasons} == {
        name: (n, first[name]) for name, n in everything.items()
    }
    assert [one.n for one in whole.reasons] == sorted(everything.values(), reverse=True)
    assert count_reasons([stored[:7], [], stored[7:]], COLUMNS) == whole


def test_counting_no_reasons():
    assert count_reasons([], []) == count_reasons([[]], COLUMNS) == Rejections()
    assert count_reasons([[b"", b""]], COLUMNS) == Rejections(2, 2)
    (one,) = count_reasons([encode(np.array([[-1.0]])).tolist()], ["age"]).reasons
    assert one == ReasonCount("age", 1, 1)


@pytest.mark.parametrize("stored", [b"abc", encode(np.array([[0.0, -1.0]]))[0]])
def test_damaged_reasons_raise(stored):
    with pytest.raises(InputError, match="are not reasons about 1 columns"):
        count_reasons([[b"", stored]], ["age"])
