"""A program decides as its classifier would, and records decisions, outcomes and overrides."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import sqlalchemy as sa
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import fairchance as fc
from fairchance.errors import InputError, LedgerError, UnknownIdError, UntrustedError
from fairchance.ledger import summarise
from fairchance.ledger.program import Program
from fairchance.ledger.verification.walk import verify
from fairchance.simulate.feedback import Feedback, Geometric
from fairchance.simulate.run import run
from ledger_worlds import algorithm_1, certified, same, started
from small_worlds import lender_world

PER_ROW = ("ids", "accepted", "exploit", "score", "propensity", "threshold")
SELECTOR = "sklearn.compose._column_transformer.make_column_selector"


@pytest.mark.parametrize("make", [algorithm_1, certified])
def test_a_program_decides_as_its_classifier_in_any_process(url, make):
    program, twin, batches = started(url, make())
    waiting = []
    for t, one in enumerate(batches):
        program = Program.open(url)
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


class Recorded:
    """A program as a method of the simulator."""

    def __init__(self, program):
        self.program, self.n_batches = program, 0

    def decide(self, X, **options):
        self.n_batches += 1
        name = f"round {self.n_batches}"
        return self.program.decide(X, batch=name, unlike_history=True, **options)

    def observe(self, ids, outcomes):
        self.program.observe(ids, outcomes, unlike_expected=True)

    correct = observe  # in a ledger, the latest outcome counts


@pytest.mark.filterwarnings("ignore::fairchance.errors.LearningWarning")
@pytest.mark.parametrize("make", [algorithm_1, certified])
def test_a_program_decides_as_its_classifier_in_a_simulation(url, make):
    """Outcomes are late, missing, wrong and corrected."""
    late = Feedback(Geometric(0.5), missing=0.1, wrong=0.1, corrected_after=2)
    world = lender_world(3, n_batch=150, n_rounds=5, feedback=late)
    past = world.history()
    history = {"accepted": past.accepted, "sensitive_features": past.people.group}
    twin = make().fit(past.people.X, past.outcomes, **history)
    program = Program.create(url, make(), past.people.X, past.outcomes, **history)
    for first, second in zip(run(twin, world), run(Recorded(program), world), strict=True):
        assert same(first.decided, second.decided)
    assert repr(program.classifier.rounds_) == repr(twin.rounds_)
    assert len(twin.corrections_) > 0
    assert repr(program.classifier.corrections_) == repr(twin.corrections_)
    verification = verify(program.ledger)
    assert (verification.problem, verification.n_decisions) == (None, 5 * 150)


def test_a_recorded_batch_is_answered_from_the_record(url):
    program, _, (first, second, *_) = started(url, algorithm_1())
    X, group = first.people.X, first.people.group
    decided = program.decide(X, sensitive_features=group, batch="b")
    before = program.checkpoint()
    assert same(decided, program.decide(X, sensitive_features=group, batch="b"))
    ids = decided.ids
    assert same(decided, Program.open(url).decide(X, sensitive_features=group, ids=ids, batch="b"))
    order = np.random.default_rng(0).permutation(len(ids))
    again = program.decide(X[order], sensitive_features=group[order], ids=ids[order], batch="b")
    assert same(replace(decided, **{key: getattr(decided, key)[order] for key in PER_ROW}), again)
    assert [*again.reasons] == [decided.reasons[row] for row in order]
    other = X.copy()
    other[7, 0] += 1e-9
    flipped = group.copy()
    flipped[3] = next(one for one in np.unique(group) if one != group[3])
    for changed in (
        {"X": other},
        {"sensitive_features": flipped},
        {"X": X[:-1], "sensitive_features": group[:-1]},
        {"ids": ids + 1},
        {"ids": ids[::-1]},
        {"X": X[[0, *range(len(ids) - 1)]], "ids": ids[[0, *range(len(ids) - 1)]]},
        {"X": X[order], "sensitive_features": group[order]},
        {"X": second.people.X, "sensitive_features": second.people.group},
    ):
        sent = {"X": X, "sensitive_features": group} | changed
        with pytest.raises(InputError, match="'b'"):
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


def test_impossible_outcomes_are_refused_and_nothing_is_recorded(url):
    program, _, (one, *_) = started(url, algorithm_1())
    decided = program.decide(one.people.X, sensitive_features=one.people.group)
    yes, no = decided.ids[decided.accepted][:2], decided.ids[~decided.accepted][:1]
    before = program.checkpoint()
    for ids, outcomes, error, words in (
        ([yes[0], no[0]], [1, 1], UnknownIdError, f"1 of 2 ids .*'{no[0]}'"),
        ([10**9], [1], UnknownIdError, "1 of 1 ids .*'1000000000'"),
        ([yes[0], yes[0]], [0, 1], InputError, f"id '{yes[0]}'"),
        ([yes[0]], [7], InputError, "outcomes.*7"),
        (["x"], [1], InputError, "ids"),
    ):
        with pytest.raises(error, match=words):
            program.observe(ids, outcomes)
    assert program.checkpoint() == before
    program.observe(yes, [1, 1])


@pytest.mark.parametrize("make", [algorithm_1, certified])
def test_withdrawn_applicants_have_no_outcome(url, make):
    program, twin, (one, two, *_) = started(url, make())
    decided = program.decide(one.people.X, sensitive_features=one.people.group)
    twin.decide(one.people.X, sensitive_features=one.people.group)
    yes, outcomes = decided.ids[decided.accepted], one.outcome[decided.accepted]
    program.withdraw(yes[:2])
    program.observe(yes[2:], outcomes[2:])
    before = program.checkpoint()
    program.withdraw(yes[:2])
    if make is certified:
        with pytest.raises(InputError, match=f"id '{yes[0]}'"):
            program.observe(yes[:1], outcomes[:1])
        with pytest.raises(InputError, match=f"id '{yes[2]}'"):
            program.withdraw(yes[2:3])
    assert program.checkpoint() == before
    twin.withdraw(yes[:2])
    twin.observe(yes[2:], outcomes[2:])
    again = Program.open(url).decide(two.people.X, sensitive_features=two.people.group)
    assert same(again, twin.decide(two.people.X, sensitive_features=two.people.group))


def test_without_certificates_withdrawals_and_outcomes_can_be_undone(url):
    program, twin, (one, two, *_) = started(url, algorithm_1())
    decided = program.decide(one.people.X, sensitive_features=one.people.group)
    twin.decide(one.people.X, sensitive_features=one.people.group)
    yes, outcomes = decided.ids[decided.accepted], one.outcome[decided.accepted]
    program.withdraw(yes[:2])
    program.observe(yes[2:], outcomes[2:])
    program.observe(yes[:1], outcomes[:1])  # it arrived after all
    program.withdraw(yes[5:40])  # they belonged to other applicants
    with program.ledger.reading("main") as reader:
        states = [
            list(reader.facts(entry).outcomes.states) for entry in reader.entries(kind="correction")
        ]
        assert states == [["good" if outcomes[0] else "bad"], ["withdrawn"] * 35]
        assert reader.standing([str(yes[1]), str(yes[5])]).states == ["withdrawn"] * 2
    known = np.setdiff1d(np.arange(yes.size), [1, *range(5, 40)])
    twin.observe(yes[known], outcomes[known])
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
    with pytest.raises(UnknownIdError, match=rf"2 of {yes.size} ids .*'{yes[0]}'"):
        program.observe(yes, outcomes)
    for refused, to in (
        (yes[0], True),  # overridden before
        (yes[2], True),  # accepted anyway
        (no[2], False),
        (10**9, True),  # unknown
        (0, True),  # of the history
    ):
        with pytest.raises(InputError, match=f"1 of 1 ids .*'{refused}'"):
            program.override([refused], to, "why not")
    with pytest.raises(InputError, match="reason"):
        program.override(yes[2:3], False, " ")
    program.observe(no[:2], [0, 0])
    program.observe(yes[2:], outcomes[2:])
    twin.observe(yes[2:], outcomes[2:])
    twin.withdraw(yes[:2])
    again = Program.open(url).decide(two.people.X, sensitive_features=two.people.group)
    assert same(again, twin.decide(two.people.X, sensitive_features=two.people.group))


def test_text_columns_text_ids_and_text_outcomes(url):
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


def test_programs_that_cannot_be_created_or_opened(tmp_path):
    url = f"sqlite:///{tmp_path}/x.db"
    X, y = np.random.default_rng(0).normal(size=(50, 2)), np.arange(50) % 2
    with pytest.raises(InputError, match="random_state"):
        Program.create(url, fc.PartialFeedbackClassifier(random_state="dice"), X, y)
    with pytest.raises(LedgerError, match=r"y\.db"):
        Program.open(f"sqlite:///{tmp_path}/y.db")
    Program.create(url, fc.PartialFeedbackClassifier(random_state=0), X, y)
    with pytest.raises(LedgerError, match=r"'loans' .*'main'"):
        Program.open(url, "loans")
    with pytest.raises(InputError, match="'main'"):
        Program.create(url, fc.PartialFeedbackClassifier(random_state=0), X, y)
    for name in (" lend", "lend ", "\tlend", "lend\N{NO-BREAK SPACE}"):
        with pytest.raises(InputError, match=re.escape(repr(name))):
            Program.create(url, fc.PartialFeedbackClassifier(random_state=0), X, y, name=name)
    with_colons = Program.create(
        url, fc.PartialFeedbackClassifier(random_state=0), X, y, name="a: b"
    )
    assert with_colons.verify(checkpoint=f" {with_colons.checkpoint()}\n").ok
    for wrong in ("mysql://x/y", "nonsense", "sqlite://"):
        with pytest.raises(LedgerError, match="a ledger"):
            Program.open(wrong)


def test_groups_of_a_batch_must_be_those_of_the_history(url):
    rng = np.random.default_rng(0)

    def some(n):
        X = rng.normal(size=(n, 2))
        race, sex = rng.integers(0, 2, n), (rng.random(n) < 0.2).astype(int)
        return X, pd.DataFrame({"race": race, "sex": sex})

    X, groups = some(300)
    clf = fc.PartialFeedbackClassifier(random_state=0)
    program = Program.create(url, clf, X, X[:, 1] > -1, accepted=X[:, 0] > 0, **of(groups))
    X, groups = some(50)
    for wrong in (groups[["sex", "race"]], groups.rename(columns={"race": "religion"})):
        with pytest.raises(InputError, match="'race', 'sex'"):
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
def test_certificates_per_group_for_any_kind_of_column(tmp_path, kind):
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(400, 2)), rng.choice(["A", "B"], 400)
    clf = fc.CertifiedClassifier(certify="per_group", random_state=0)
    past, url = slice(0, 300), f"sqlite:///{tmp_path}/x.db"
    kept = {"accepted": X[past, 0] > 0, **of(kind(groups[past]))}
    program = Program.create(url, clf, X[past], X[past, 1] > -1, **kept)
    program.decide(X[300:], **of(kind(groups[300:])))
    assert [one.group for one in program.classifier.rounds_] == ["A", "B"]
    assert verify(program.ledger).ok


@pytest.mark.parametrize("accepted", [[False, False], "reject", np.array([True]), 1, None])
def test_an_override_is_true_or_false(tmp_path, accepted):
    program, _, (one, *_) = started(f"sqlite:///{tmp_path}/x.db", algorithm_1(), n_batch=20)
    decided = program.decide(one.people.X, **of(one.people.group))
    with pytest.raises(InputError, match="accepted"):
        program.override(decided.ids[:1], accepted, "because")


def test_names_of_batches(tmp_path):
    program, _, (one, two, *_) = started(f"sqlite:///{tmp_path}/x.db", algorithm_1(), n_batch=20)
    unnamed = program.decide(one.people.X, **of(one.people.group))
    with program.ledger.reading("main") as reader:
        (key,) = [entry.key for entry in reader.entries(kind="batch")]
    again = program.decide(one.people.X, batch=key, **of(one.people.group))
    assert np.array_equal(unnamed.accepted, again.accepted)
    for name in (202501, " ", "", "#99"):
        with pytest.raises(InputError, match=re.escape(repr(name))):
            program.decide(two.people.X, batch=name, **of(two.people.group))
    with pytest.raises(InputError, match="empty"):
        program.decide(two.people.X[:0], **of(pd.Series(two.people.group[:0], name="g")))


def test_about_of_a_batch_is_stored_once(url):
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
def test_about_that_is_not_json_is_refused_first(tmp_path, about):
    program, _, (first, *_) = started(f"sqlite:///{tmp_path}/lender.db", algorithm_1())
    before = program.checkpoint()
    with pytest.raises(InputError, match="about"):
        program.decide(first.people.X, sensitive_features=first.people.group, about=about)
    with pytest.raises(InputError, match="about"):
        Program.create(
            f"sqlite:///{tmp_path}/other.db", algorithm_1(), np.eye(4), [1, 0, 1, 0], about=about
        )
    assert program.checkpoint() == before
    assert not (tmp_path / "other.db").exists()


def test_trusted_types_apply_to_every_method(tmp_path):
    url = f"sqlite:///{tmp_path}/ledger.db"
    numbers = make_column_transformer((StandardScaler(), make_column_selector()))
    learner = make_pipeline(numbers, LogisticRegression())
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(500, 2)), columns=["a", "b"])
    good = (rng.random(500) < 1 / (1 + np.exp(-1 - 2 * X["a"]))).astype(int).to_numpy()
    clf = fc.PartialFeedbackClassifier(learner=learner, random_state=0)
    past = {"accepted": X["a"][:300] > -1, "trusted": [SELECTOR]}
    Program.create(url, clf, X[:300], good[:300], **past)
    for ask in (Program.open, verify):
        with pytest.raises(UntrustedError, match="make_column_selector"):
            ask(url)
    program = Program.open(url, trusted=[SELECTOR])
    batch = program.decide(X[300:400])
    program.observe(batch.ids[batch.accepted], good[300:400][batch.accepted])
    Program.open(url, trusted=[SELECTOR]).decide(X[400:])
    program.snapshot()
    assert program.classifier.rounds_[-1].round == 2  # it has caught up with the other object
    program.erase(batch.ids[:1], "asked for it", early=True)
    assert "make_column_selector" in summarise(program.ledger).promise.problem
    assert (program.summary().promise.problem, program.summary().promise.alpha) == ("", 0.15)
    assert program.verify(checkpoint=program.checkpoint()).ok


def test_standing_accepts_the_ids_that_observe_accepts(tmp_path):
    program, _, (one, *_) = started(f"sqlite:///{tmp_path}/ledger.db", algorithm_1(), n_rounds=1)
    found = program.decide(one.people.X, sensitive_features=one.people.group)
    ids = found.ids[:3]
    for given in (
        ids,
        ids.tolist(),
        pd.Series(ids),
        ids.astype(str),
        ids.astype(str).astype(object),
    ):
        assert program.standing(given).accepted.tolist() == found.accepted[:3].tolist()
    assert program.standing(int(ids[0])).persons.size == 1
    assert program.standing([]).persons.size == 0
    assert program.standing(["0x1", "a million " * 100_000]).persons.tolist() == [-1, -1]
    # 7.0 would be looked up as '7.0', which is no id.
    for wrong in (ids.astype(float), [None, 1], [True, False], np.array([ids[0], "x"], object)):
        with pytest.raises(InputError, match="ids"):
            program.standing(wrong)
    with pytest.raises(InputError, match="id"):
        program.standing([ids, ids])


def test_integers_are_refused_if_ids_are_text(tmp_path):
    rng = np.random.default_rng(0)
    X, names = rng.normal(size=(200, 2)), np.arange(200).astype(str)
    clf = fc.PartialFeedbackClassifier(random_state=0)
    y = (X[:, 0] > rng.normal(size=200)).astype(int)
    program = Program.create(f"sqlite:///{tmp_path}/ledger.db", clf, X, y, ids=names)
    assert program.standing(["7"]).persons.tolist() == [7]
    with pytest.raises(InputError, match="ids"):
        program.standing([7])


def test_repr_hides_the_password(tmp_path):
    url = f"sqlite:///{tmp_path}/ledger.db"
    program, _, _ = started(url, algorithm_1(), n_batch=20, n_rounds=1, by="Ada")
    assert repr(program) == f"Program(name='main', ledger='{url}', by='Ada')"
    program.ledger.engine = sa.create_mock_engine("postgresql://me:secret@host/db", None)
    program.ledger.engine.url = sa.make_url("postgresql://me:secret@host/db")
    assert repr(program) == "Program(name='main', ledger='postgresql://me:***@host/db', by='Ada')"


def test_parts_of_outcomes_are_recorded_together_or_not_at_all(url):
    program, _, (one, *_) = started(url, algorithm_1())
    decided = program.decide(one.people.X, sensitive_features=one.people.group)
    accepted = decided.ids[decided.accepted].astype(str)
    before = program.checkpoint()
    for second, error, message in (
        ((accepted[3:5], ["good"]), InputError, "1 .* 2 ids"),
        ((accepted[3:4], ["fine"]), InputError, "'fine'"),
        ((["x"], ["good"]), UnknownIdError, "'x'"),
    ):
        with pytest.raises(error, match=message):
            program.observe_parts([(accepted[:2], ["good", "bad"]), second])
    assert program.checkpoint() == before
    parts = [(accepted[:2], ["good", "bad"]), (accepted[2:3], ["withdrawn"])]
    assert program.observe_parts(parts) == [(), ()]
    assert program.standing(accepted[:4]).states == ["good", "bad", "withdrawn", None]


def test_a_request_that_changed_nothing_can_be_repeated_after_a_correction(url):
    program, _, (one, *_) = started(url, algorithm_1())
    decided = program.decide(one.people.X, sensitive_features=one.people.group)
    first, second = decided.ids[decided.accepted].astype(str)[:2]
    for request, state in (("n1", "good"), ("n2", "good"), ("n3", "bad")):
        program.observe_parts([([first], [state])], request=request)
    after = program.checkpoint()
    for request, state in (("n1", "good"), ("n2", "good"), ("n3", "bad")):
        assert program.observe_parts([([first], [state])], request=request) == []
    for ids, state in (([first], "withdrawn"), ([first, second], "good")):
        with pytest.raises(InputError, match="'n2'"):
            program.observe_parts([(ids, [state] * len(ids))], request="n2")
    assert program.checkpoint() == after


def test_a_request_is_compared_without_the_names_of_the_erased(url):
    program, _, (one, two, *_) = started(url, algorithm_1(learner=LogisticRegression()))
    people = one.people
    program.decide(people.X[:20], **of(people.group[:20]), ids=np.arange(5000, 5020))
    program.hold([5000, 5001], "a case", request="case")
    program.release([5000], "settled")
    assert program.erase([5000, 5002], "asked", early=True, request="r") == 2
    after = program.checkpoint()
    program.hold([5000, 5001], "a case", request="case")
    assert program.erase([5002, 5000], "asked", early=True, request="r") == 2
    assert program.erase([], "asked", request="r") == 0
    assert program.erase([7001, 7002], "asked", request="r") == 2  # cannot be told from the erased
    for ids, reason in (([5000], "asked"), ([5000, 5003], "asked"), ([5000, 5002], "another")):
        with pytest.raises(InputError, match=r"'r' .*\(entry \d+, erasure\)"):
            program.erase(ids, reason, early=True, request="r")
    for ids in ([5001], [5001, 5003], [5000, 5001, 5003]):
        with pytest.raises(InputError, match=r"'case' .*\(entry \d+, hold\)"):
            program.hold(ids, "a case", request="case")
    assert program.checkpoint() == after
    # An id that is used again is of another applicant.
    program.decide(two.people.X[:2], **of(two.people.group[:2]), ids=[5000, 5002])
    assert program.erase([5000, 5002], "asked", early=True, request="r") == 2
    assert (program.standing([5000, 5002]).persons >= 0).all()
    assert program.verify().ok


@pytest.mark.parametrize("name", ["", " ", 7, "#3", "a\0b"])
def test_unusable_names_of_requests(url, name):
    program, _, _ = started(url, algorithm_1(learner=LogisticRegression()), n_rounds=1)
    before = program.checkpoint()
    for call in (program.hold, program.erase):
        with pytest.raises(InputError):
            call([5], "why", request=name)
    assert program.checkpoint() == before


def test_decisions_carry_the_recorded_reasons(url):
    program, _, (one, *_) = started(url, algorithm_1())
    for _ in range(2):  # decided, and answered from the record
        decided = program.decide(one.people.X, **of(one.people.group), batch="b")
        assert [reasons is None for reasons in decided.reasons] == decided.accepted.tolist()
        rejected = decided.ids[~decided.accepted]
        by_id = dict(zip(decided.ids.tolist(), decided.reasons, strict=True))
        assert program.reasons(rejected) == {name: by_id[name] for name in rejected.tolist()}


def test_a_batch_of_another_width_is_refused(tmp_path):
    program, _, (one, *_) = started(f"sqlite:///{tmp_path}/x.db", algorithm_1(), n_batch=20)
    with pytest.raises(InputError, match=f"X .* {one.people.X.shape[1]} "):
        program.decide(one.people.X[:, :1], **of(one.people.group))


@pytest.fixture(params=[algorithm_1, certified])
def decided(request, tmp_path):
    """Return a program and its twin after a round, the decided ids, and the next batch."""
    url = f"sqlite:///{tmp_path}/ledger.db"
    program, twin, (one, two, *_) = started(url, request.param(), n_batch=120, n_rounds=2)
    found = program.decide(one.people.X, sensitive_features=one.people.group, batch="one")
    twin.decide(one.people.X, sensitive_features=one.people.group)
    yes, no = found.ids[found.accepted], found.ids[~found.accepted]
    return url, program, twin, yes, no, one.outcome[found.accepted], two.people


def test_an_undone_override_restores_the_decision_and_teaches_nothing(decided):
    url, program, twin, yes, no, outcomes, later = decided
    program.override(yes[:2], False, "fraud was found")
    program.override(no[:2], True, "has a guarantor")
    program.undo_override([yes[0], no[0]], "the wrong person")
    standing = program.standing([*yes[:2], *no[:2]])
    assert standing.accepted.tolist() == [True, False, False, True]
    assert standing.overridden.all()
    with pytest.raises(UnknownIdError, match=f"1 of 1 ids .*'{no[0]}'"):
        program.observe(no[:1], [1])
    program.observe([yes[0], no[1]], [1 - outcomes[0], 1])
    program.observe(yes[2:], outcomes[2:])
    twin.observe(yes[2:], outcomes[2:])
    twin.withdraw(yes[:2])  # for good, whatever the outcome of the first
    again = Program.open(url).decide(later.X, sensitive_features=later.group)
    assert same(again, twin.decide(later.X, sensitive_features=later.group))
    assert program.verify(relearn=True).problem is None
    found = program.summary()
    assert [(one.kind, one.n) for one in found.changes if one.kind in ("override", "undo")] == [
        ("override", 2),
        ("override", 2),
        ("undo", 2),
    ]
    assert (found.overridden.accepted, found.overridden.known) == (1, 1)
    assert found.total("n_overridden") == 2  # the other two were undone
    assert sum(one.n_overridden for one in found.groups) == 2
    reasons = [one.says["reason"] for one in found.changes if one.kind in ("override", "undo")]
    assert reasons == ["fraud was found", "has a guarantor", "the wrong person"]
    assert found.rounds[0].outcomes.known == yes.size - 1


@pytest.mark.parametrize("decided", [certified], indirect=True)
def test_an_override_after_an_undo_and_the_newest_is_listed(decided):
    _, program, _, yes, no, _, _ = decided
    for reason in ("fraud was found", "once more"):
        program.override(yes[:1], False, reason)
        program.undo_override(yes[:1], f"not {reason}")
    program.override(no[:1], True, "has a guarantor")
    with program.ledger.reading("main") as reader:
        first = int(reader.standing([str(yes[0])]).persons[0])
        other = int(reader.standing([str(no[0])]).persons[0])
        ((accepted, why, entry),) = reader.listed(first, first + 1).overrides
        assert (accepted, why) == (True, "not once more")
        assert entry == [one.number for one in reader.entries(kind="override")][-2]
        assert reader.listed(other, other + 1).overrides[0][:2] == (True, "has a guarantor")
    assert program.verify(relearn=True).ok


@pytest.mark.parametrize("decided", [algorithm_1], indirect=True)
def test_overrides_that_cannot_be_undone(decided):
    _, program, _, yes, no, _, _ = decided
    program.override(no[:2], True, "has a guarantor")
    program.override(yes[:1], False, "fraud was found")
    program.undo_override(no[:1], "has none")
    program.observe(no[1:2], [1])
    before = program.checkpoint()
    for ids in (
        [no[0]],  # undone already
        [yes[0], yes[1]],  # the second was never overridden
        [no[1]],  # has an outcome
        [10**9],  # unknown
        [0],  # of the history
    ):
        with pytest.raises(InputError, match=f"1 of {len(ids)} ids .*'{ids[-1]}'"):
            program.undo_override(ids, "why not")
    with pytest.raises(InputError, match="reason"):
        program.undo_override(yes[:1], "")
    with pytest.raises(InputError, match=f"1 of 1 ids .*'{yes[0]}'"):
        program.override(yes[:1], True, "why not")
    program.undo_override(np.empty(0, np.int64), "no applicants")
    assert program.checkpoint() == before
