"""A program decides as its classifier would, on the record, whoever has it open."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import secondlook as sl
from ledger_worlds import algorithm_1, certified, same, started
from secondlook.errors import InputError, LedgerError, UnknownIdError
from secondlook.ledger.program import Program
from secondlook.ledger.verification.walk import verify

SELECTOR = "sklearn.compose._column_transformer.make_column_selector"


@pytest.mark.parametrize("make", [algorithm_1, certified])
def test_a_program_goes_on_in_another_process_as_its_classifier_would(url, make):
    program, twin, batches = started(url, make(), snapshot_every=3)
    waiting = []
    for t, one in enumerate(batches):
        program = Program.open(url, snapshot_every=3)
        group = one.people.group
        decided = program.decide(one.people.X, sensitive_features=group, batch=f"b{t}")
        assert same(decided, twin.decide(one.people.X, sensitive_features=group))
        waiting.append((decided.ids[decided.accepted], one.outcome[decided.accepted]))
        if t % 2:  # outcomes come late, in parts, in another order
            for ids, outcomes in reversed(waiting):
                half = ids.size // 2
                program.observe(ids[half:], outcomes[half:])
                program.observe(ids[:half], outcomes[:half])
                twin.observe(ids, outcomes)
            waiting.clear()
    assert repr(Program.open(url).classifier.rounds_) == repr(twin.rounds_)


def test_the_same_batch_again_is_answered_from_the_record(url):
    program, _, (first, second, *_) = started(url, algorithm_1())
    X, group = first.people.X, first.people.group
    decided = program.decide(X, sensitive_features=group, batch="b")
    before = program.checkpoint()
    assert same(decided, program.decide(X, sensitive_features=group, batch="b"))
    ids = decided.ids
    assert same(decided, Program.open(url).decide(X, sensitive_features=group, ids=ids, batch="b"))
    other = X.copy()
    other[7, 0] += 1e-9
    flipped = group.copy()
    flipped[3] = next(one for one in np.unique(group) if one != group[3])
    for changed, words in (
        ({"X": other}, "first in row 7"),
        ({"sensitive_features": flipped}, "first in row 3"),
        (
            {"X": X[:-1], "sensitive_features": group[:-1]},
            f"{len(X)} applicants instead of",
        ),
        ({"ids": ids + 1}, "first in row 0"),
        ({"X": second.people.X, "sensitive_features": second.people.group}, "first in row 0"),
    ):
        sent = {"X": X, "sensitive_features": group} | changed
        with pytest.raises(InputError, match=f"'b' with other content, {words}"):
            program.decide(sent.pop("X"), batch="b", **sent)
    assert program.checkpoint() == before


def test_outcomes_are_idempotent_and_contradictions_are_corrections(url):
    program, twin, (one, two, *_) = started(url, algorithm_1())
    decided = program.decide(one.people.X, sensitive_features=one.people.group)
    twin.decide(one.people.X, sensitive_features=one.people.group)
    ids, outcomes = decided.ids[decided.accepted], one.outcome[decided.accepted]
    program.observe(ids, outcomes)
    before = program.checkpoint()
    program.observe(ids[::-1], outcomes[::-1])
    program.observe(np.concatenate([ids[:2], ids[:2]]), np.concatenate([outcomes[:2]] * 2))
    assert program.checkpoint() == before
    program.observe(ids[:3], 1 - outcomes[:3])
    with program.ledger.reading("main") as reader:
        (correction,) = reader.entries(kind="correction")
        states = ["bad" if was else "good" for was in outcomes[:3]]
        assert list(reader.facts(correction).outcomes.states) == states
        assert correction.by
        assert correction.at.endswith("+00:00")
    twin.observe(ids, outcomes).correct(ids[:3], 1 - outcomes[:3])
    group = two.people.group
    assert same(
        Program.open(url).decide(two.people.X, sensitive_features=group),
        twin.decide(two.people.X, sensitive_features=group),
    )


def test_outcomes_that_cannot_be_are_refused_and_nothing_is_recorded(url):
    program, _, (one, *_) = started(url, algorithm_1())
    decided = program.decide(one.people.X, sensitive_features=one.people.group)
    yes, no = decided.ids[decided.accepted][:2], decided.ids[~decided.accepted][:1]
    before = program.checkpoint()
    for ids, outcomes, error, words in (
        ([yes[0], no[0]], [1, 1], UnknownIdError, f"1 of 2 ids are not accepted.* first '{no[0]}'"),
        ([10**9], [1], UnknownIdError, "1 of 1 ids are unknown or erased, first '1000000000'"),
        ([yes[0], yes[0]], [0, 1], InputError, f"contradict each other for id '{yes[0]}'"),
        ([yes[0]], [7], InputError, r"outcomes must be 0\.0 or 1\.0, as in the history, got 7;"),
        (["x"], [1], InputError, "ids must be integers, as in the history, got strings;"),
    ):
        with pytest.raises(error, match=words):
            program.observe(ids, outcomes)
    assert program.checkpoint() == before
    program.observe(yes, [1, 1])


@pytest.mark.parametrize("make", [algorithm_1, certified])
def test_whoever_is_withdrawn_has_no_outcome(url, make):
    program, twin, (one, two, *_) = started(url, make())
    decided = program.decide(one.people.X, sensitive_features=one.people.group)
    twin.decide(one.people.X, sensitive_features=one.people.group)
    yes, outcomes = decided.ids[decided.accepted], one.outcome[decided.accepted]
    program.withdraw(yes[:2])
    program.observe(yes[2:], outcomes[2:])
    before = program.checkpoint()
    program.withdraw(yes[:2])
    if make is certified:
        words = "has an outcome or was withdrawn"
        with pytest.raises(InputError, match=f"id '{yes[0]}' {words}"):
            program.observe(yes[:1], outcomes[:1])
        with pytest.raises(InputError, match=f"id '{yes[2]}' {words}"):
            program.withdraw(yes[2:3])
    assert program.checkpoint() == before
    twin.withdraw(yes[:2])
    twin.observe(yes[2:], outcomes[2:])
    again = Program.open(url).decide(two.people.X, sensitive_features=two.people.group)
    assert same(again, twin.decide(two.people.X, sensitive_features=two.people.group))


def test_without_certificates_a_withdrawal_can_be_taken_back_and_an_outcome_too(url):
    program, twin, (one, two, *_) = started(url, algorithm_1())
    decided = program.decide(one.people.X, sensitive_features=one.people.group)
    twin.decide(one.people.X, sensitive_features=one.people.group)
    yes, outcomes = decided.ids[decided.accepted], one.outcome[decided.accepted]
    program.withdraw(yes[:2])
    program.observe(yes[2:], outcomes[2:])
    program.observe(yes[:1], outcomes[:1])  # it came after all
    program.withdraw(yes[5:40])  # they were somebody else's
    with program.ledger.reading("main") as reader:
        states = [
            list(reader.facts(entry).outcomes.states) for entry in reader.entries(kind="correction")
        ]
        assert states == [["good" if outcomes[0] else "bad"], ["indeterminate"] * 35]
        assert reader.standing([str(yes[1]), str(yes[5])]).states == ["indeterminate"] * 2
    told = np.setdiff1d(np.arange(yes.size), [1, *range(5, 40)])
    twin.observe(yes[told], outcomes[told])
    X, group = two.people.X, two.people.group
    ours = Program.open(url).decide(X, sensitive_features=group)
    assert ours.accepted.tolist() == twin.decide(X, sensitive_features=group).accepted.tolist()
    assert verify(program.ledger, relearn=True).problem is None


@pytest.mark.parametrize("make", [algorithm_1, certified])
def test_an_override_is_a_fact_and_teaches_nothing(url, make):
    program, twin, (one, two, *_) = started(url, make())
    group = one.people.group
    decided = program.decide(one.people.X, sensitive_features=group)
    twin.decide(one.people.X, sensitive_features=group)
    yes, no = decided.ids[decided.accepted], decided.ids[~decided.accepted]
    program.override(yes[:2], False, "fraud was found")
    program.override(no[:2], True, "has a guarantor")
    outcomes = one.outcome[decided.accepted]
    with pytest.raises(UnknownIdError, match=r"2 of .* ids are not accepted"):
        program.observe(yes, outcomes)
    for ids, to, words in (
        (yes[:1], True, "were overridden before"),
        (yes[2:3], True, "are already accepted"),
        (no[2:3], False, "are already rejected"),
        ([10**9], True, "are unknown or erased"),
        ([0], True, "belong to the history"),
    ):
        with pytest.raises(InputError, match=words):
            program.override(ids, to, "why not")
    with pytest.raises(InputError, match="an override needs a reason"):
        program.override(yes[2:3], False, " ")
    program.observe(no[:2], [0, 0])
    program.observe(yes[2:], outcomes[2:])
    twin.observe(yes[2:], outcomes[2:])
    twin.withdraw(yes[:2])
    again = Program.open(url).decide(two.people.X, sensitive_features=two.people.group)
    assert same(again, twin.decide(two.people.X, sensitive_features=two.people.group))


def test_a_call_that_fails_changes_nothing_in_memory_either(url, monkeypatch):
    program, twin, (one, *_) = started(url, algorithm_1())
    group = one.people.group

    def fail(*args, **options):
        raise RuntimeError("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr("secondlook.ledger.sql.SqlWriter._insert", fail)
        with pytest.raises(RuntimeError, match="the disk is gone"):
            program.decide(one.people.X, sensitive_features=group, batch="b")
    assert same(
        program.decide(one.people.X, sensitive_features=group, batch="b"),
        twin.decide(one.people.X, sensitive_features=group),
    )


def test_opening_replays_only_what_came_after_the_last_snapshot(url, monkeypatch):
    program, _, batches = started(url, algorithm_1(), snapshot_every=2)
    for one in batches[:5]:
        program.decide(one.people.X, sensitive_features=one.people.group)
    replayed = []
    decide = sl.PartialFeedbackClassifier.decide
    monkeypatch.setattr(
        sl.PartialFeedbackClassifier,
        "decide",
        lambda self, *args, **options: replayed.append(1) or decide(self, *args, **options),
    )
    assert len(Program.open(url).classifier.rounds_) == 5
    assert len(replayed) == 1
    program.snapshot()
    replayed.clear()
    assert len(Program.open(url).classifier.rounds_) == 5
    assert replayed == []


def test_raw_columns_string_ids_and_words_for_outcomes(url):
    rng = np.random.default_rng(4)

    def table(n, start):
        trade = rng.choice(["smith", "baker", None], n)
        age = np.where(rng.random(n) < 0.1, np.nan, rng.integers(20, 70, n))
        frame = pd.DataFrame({"trade": trade, "age": age, "owner": rng.random(n) < 0.5})
        good = rng.random(n) < np.where(trade == "baker", 0.95, 0.7)
        group = pd.DataFrame(
            {"sex": rng.choice(["f", "m"], n), "old": np.where(age > 45, "yes", "no")}
        )
        outcome = np.where(good, "repaid", "lost")
        return frame, outcome, group, [f"a{start + i}" for i in range(n)]

    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
        ("drop", make_column_selector(dtype_include="number")),
    )
    classifier = algorithm_1(
        learner=make_pipeline(encoder, LogisticRegression()), pos_label="repaid"
    )
    X, y, group, ids = table(400, 0)
    program = Program.create(
        url, classifier, X, y, sensitive_features=group, ids=ids, trusted=[SELECTOR]
    )
    for start in (400, 600):
        X, y, group, ids = table(200, start)
        decided = program.decide(X, sensitive_features=group, ids=ids, batch=f"{start}")
        assert isinstance(decided.to_frame(), pd.DataFrame)
        program = Program.open(url, trusted=[SELECTOR])
        again = program.decide(X, sensitive_features=group, ids=ids, batch=f"{start}")
        assert same(decided, again)
        program.observe(decided.ids[decided.accepted], y[decided.accepted])
    replayed = Program.open(url, trusted=[SELECTOR]).classifier
    assert [one.round for one in replayed.rounds_] == [1, 2]
    assert replayed.n_outcomes_ > 400


def test_programs_that_cannot_be(tmp_path):
    url = f"sqlite:///{tmp_path}/x.db"
    X, y = np.random.default_rng(0).normal(size=(50, 2)), np.arange(50) % 2
    with pytest.raises(InputError, match="random_state must be a whole number in a ledger"):
        Program.create(url, sl.PartialFeedbackClassifier(), X, y)
    with pytest.raises(LedgerError, match="there is no ledger at"):
        Program.open(f"sqlite:///{tmp_path}/y.db")
    Program.create(url, sl.PartialFeedbackClassifier(random_state=0), X, y)
    with pytest.raises(LedgerError, match=r"no program called 'loans' .* which has 'main'"):
        Program.open(url, "loans")
    with pytest.raises(InputError, match="a program called 'main' in this ledger already"):
        Program.create(url, sl.PartialFeedbackClassifier(random_state=0), X, y)
    for name in (" lend", "lend ", "\tlend", "lend\N{NO-BREAK SPACE}"):
        with pytest.raises(InputError, match="name must not begin or end with white space, which"):
            Program.create(url, sl.PartialFeedbackClassifier(random_state=0), X, y, name=name)
    with_colons = Program.create(
        url, sl.PartialFeedbackClassifier(random_state=0), X, y, name="a: b"
    )
    assert with_colons.verify(checkpoint=f" {with_colons.checkpoint()}\n").ok
    for wrong in ("mysql://x/y", "nonsense", "sqlite://"):
        with pytest.raises(LedgerError, match="a ledger"):
            Program.open(wrong)


def test_groups_of_a_batch_are_the_history_s_by_name_and_in_kind(url):
    rng = np.random.default_rng(0)

    def some(n):
        X = rng.normal(size=(n, 2))
        race, sex = rng.integers(0, 2, n), (rng.random(n) < 0.2).astype(int)
        return X, pd.DataFrame({"race": race, "sex": sex})

    X, groups = some(300)
    clf = sl.PartialFeedbackClassifier(random_state=0)
    program = Program.create(url, clf, X, X[:, 1] > -1, accepted=X[:, 0] > 0, **of(groups))
    X, groups = some(50)
    for wrong in (groups[["sex", "race"]], groups.rename(columns={"race": "religion"})):
        with pytest.raises(InputError, match="in the same order: 'race', 'sex', got"):
            program.decide(X, **of(wrong))
    decided = program.decide(X, batch="b", **of(groups.astype(float)))
    again = program.decide(X, batch="b", **of(groups.astype(bool)))
    assert np.array_equal(decided.accepted, again.accepted)
    with program.ledger.reading("main") as reader:
        stored = reader.facts(reader.entry("batch", "b")).people.groups
    assert list(stored) == [f"[{a},{b}]" for a, b in groups.to_numpy()]
    assert verify(program.ledger, relearn=True).ok


def of(groups):
    return {"sensitive_features": groups}


@pytest.mark.parametrize("kind", [pd.Series, lambda one: pd.DataFrame({"g": one}), list])
def test_certificates_of_each_group_whatever_groups_come_in(tmp_path, kind):
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(400, 2)), rng.choice(["A", "B"], 400)
    clf = sl.CertifiedClassifier(certify="per_group", random_state=0)
    past, url = slice(0, 300), f"sqlite:///{tmp_path}/x.db"
    kept = {"accepted": X[past, 0] > 0, **of(kind(groups[past]))}
    program = Program.create(url, clf, X[past], X[past, 1] > -1, **kept)
    program.decide(X[300:], **of(kind(groups[300:])))
    assert [one.group for one in program.classifier.rounds_] == ["A", "B"]
    assert verify(program.ledger).ok


@pytest.mark.parametrize("accepted", [[False, False], "reject", np.array([True]), 1, None])
def test_an_override_is_yes_or_no(tmp_path, accepted):
    program, _, (one, *_) = started(f"sqlite:///{tmp_path}/x.db", algorithm_1(), n_batch=20)
    decided = program.decide(one.people.X, **of(one.people.group))
    with pytest.raises(InputError, match="accepted must be True or False"):
        program.override(decided.ids[:1], accepted, "because")


def test_names_that_batches_cannot_have(tmp_path):
    program, _, (one, two, *_) = started(f"sqlite:///{tmp_path}/x.db", algorithm_1(), n_batch=20)
    unnamed = program.decide(one.people.X, **of(one.people.group))
    with program.ledger.reading("main") as reader:
        (key,) = [entry.key for entry in reader.entries(kind="batch")]
    again = program.decide(one.people.X, batch=key, **of(one.people.group))
    assert np.array_equal(unnamed.accepted, again.accepted)
    for name in (202501, " ", "", "#99"):
        with pytest.raises(InputError, match="a batch's name must"):
            program.decide(two.people.X, batch=name, **of(two.people.group))
    with pytest.raises(InputError, match="the batch is empty"):
        program.decide(two.people.X[:0], **of(pd.Series(two.people.group[:0], name="g")))


def test_whatever_else_is_kept_with_a_batch_stays_as_it_was_first_told(url):
    program, _, (first, second, *_) = started(url, algorithm_1())
    X, group = first.people.X, first.people.group
    kept = {"tickets": [12, 17], "reviewed": True}
    for about in (kept, {"tickets": []}, None):
        program.decide(X, sensitive_features=group, batch="b", about=about)
    program.decide(second.people.X, sensitive_features=second.people.group)
    with program.ledger.reading("main") as reader:
        says = [one.says for one in reader.entries(kind="batch")]
    assert [one.get("about") for one in says] == [kept, None]
    assert [one.about for one in program.summary().rounds] == [kept, {}]
    assert verify(url, relearn=True).ok


@pytest.mark.parametrize("about", ["reviewed", [1], {"at": {1, 2}}])
def test_what_cannot_be_kept_is_refused_before_anything_is_decided(tmp_path, about):
    program, _, (first, *_) = started(f"sqlite:///{tmp_path}/lender.db", algorithm_1())
    before = program.checkpoint()
    with pytest.raises(InputError, match="about must be a dictionary of text, numbers"):
        program.decide(first.people.X, sensitive_features=first.people.group, about=about)
    with pytest.raises(InputError, match="about must be"):
        Program.create(
            f"sqlite:///{tmp_path}/other.db", algorithm_1(), np.eye(4), [1, 0, 1, 0], about=about
        )
    assert program.checkpoint() == before
    assert not (tmp_path / "other.db").exists()
