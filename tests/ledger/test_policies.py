"""Policies and certificates are facts: stored once, enough to decide again, compared on request."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from dataclasses import asdict, replace

import numpy as np
import pytest
import sqlalchemy as sa
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import secondlook as sl
from ledger_worlds import algorithm_1, certified, started
from secondlook import classifier as algorithm
from secondlook.errors import InputError
from secondlook.finite import FiniteClassifier
from secondlook.ladders import Ladder
from secondlook.learning import Learned
from secondlook.ledger.base import Facts, to_json
from secondlook.ledger.comparing import first_other_content, first_other_value
from secondlook.ledger.engines import scrub
from secondlook.ledger.program import Program
from secondlook.ledger.sql import SqlWriter
from secondlook.ledger.verifying import verify
from secondlook.likelihoods import LinearLikelihood
from secondlook.storage import dumps, loads


@pytest.fixture
def place(tmp_path):
    return f"sqlite:///{tmp_path}/ledger.db"


def entries(program, kind=None):
    with program.ledger.reading(program.name) as reader:
        return [(one, reader.facts(one)) for one in reader.entries(kind=kind)]


def lived(url, classifier, n_rounds=3, n_batch=60, told=1.0, **options):
    """Return a program after some rounds, of which a share of outcomes came in each."""
    program, _, batches = started(url, classifier, n_batch=n_batch, n_rounds=n_rounds, **options)
    rng = np.random.default_rng(1)
    for one in batches:
        decided = program.decide(one.people.X, sensitive_features=one.people.group)
        known = decided.accepted & (rng.random(len(decided)) < told)
        if known.any():
            program.observe(decided.ids[known], one.outcome[known])
    return program


def proved(program, **options):
    found = verify(program.ledger, **options)
    assert found.problem is None
    return found


# What is stored.


def test_a_stored_policy_gives_the_recorded_scores_and_thresholds(place):
    program = lived(place, algorithm_1())
    policies = {one.number: facts.payload for one, facts in entries(program, "policy")}
    checked = 0
    for batch, facts in entries(program, "batch")[1:]:
        f = loads(policies[batch.says["policy"]], holds=Learned)
        X = np.frombuffer(b"".join(facts.people.numbers)).reshape(len(facts.people), -1)
        by_hand = 1 / (1 + np.exp(-(X @ f.likelihood.coef + f.likelihood.intercept)))
        np.testing.assert_allclose(facts.decisions.score, by_hand, rtol=1e-12)
        assert set(facts.decisions.threshold) == set(f.thresholds)
        known = facts.decisions.exploit
        accepted = by_hand >= f.thresholds[0]
        assert np.array_equal(facts.decisions.accepted[known], accepted[known])
        checked += 1
    assert checked == 2


def test_a_policy_is_stored_once_and_before_the_batches_it_decides(place):
    steady = sl.PartialFeedbackClassifier(budget=sl.FdrBudget(0.15, exploit=0.1), random_state=3)
    program, _, batches = started(place, steady, n_batch=60)
    named = []
    for turn, one in enumerate(batches[:5]):
        decided = program.decide(one.people.X, sensitive_features=one.people.group)
        if turn in (0, 3):
            program.observe(decided.ids[decided.accepted], one.outcome[decided.accepted])
        program = Program.open(place) if turn == 1 else program
        batch, _ = entries(program, "batch")[-1]
        assert batch.says["policy"] < batch.number
        named.append(batch.says["policy"])
    assert named[1] == named[2] == named[3]
    assert len({*named}) == 3
    assert [one.says["what"] for one, _ in entries(program, "policy")] == [
        "start",
        "past",
        "learned",
        "learned",
    ]


def test_policies_do_not_grow_with_the_rounds(place):
    program = lived(place, algorithm_1(), n_rounds=6)
    sizes = [len(f.payload) for one, f in entries(program, "policy") if one.says["what"] != "past"]
    start, *learned = sizes
    assert len(learned) == 5
    assert max(learned) < min(learned) + 100
    with_people = [len(facts.payload) for _, facts in entries(program, "snapshot")]
    assert start < min(with_people) / 2


def test_nobody_is_in_a_stored_policy(place):
    program = lived(place, certified(), n_rounds=3)
    for one, facts in entries(program, "policy"):
        if facts.payload is None:
            continue
        with zipfile.ZipFile(io.BytesIO(facts.payload)) as archive:
            arrays = [
                np.load(io.BytesIO(archive.read(name)))
                for name in archive.namelist()
                if name.endswith(".npy")
            ]
        # Nothing has a row per person and a column per feature.
        assert all(array.ndim < 2 or array.shape[0] < 60 for array in arrays), one.key


# Deciding again.

CLASSIFIERS = {
    "default": algorithm_1,
    "cross": lambda: algorithm_1(split="cross"),
    "per group": lambda: algorithm_1(thresholds="per_group", group_as_feature=True),
    "mean past score": lambda: algorithm_1(coverage=sl.MeanPastScore()),
    "sum of g": lambda: algorithm_1(coverage=sl.SumOfG(threshold=0.9)),
    "learned first": lambda: algorithm_1(first_round="learned", strategy=sl.EqualGroups()),
    "tree": lambda: algorithm_1(learner=DecisionTreeClassifier(max_depth=3, random_state=0)),
    "blind": lambda: algorithm_1(group_mode="blind", strategy=None),
    "certified": certified,
    "certified per group": lambda: certified(certify="per_group", floor=0.02),
    "certified within": lambda: certified(ranks="within_group"),
    "certified audit": lambda: certified(group_mode="audit"),
}


LONG = ("cross", "learned first", "certified within", "certified per group")


@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=[pytest.mark.long] if one in LONG else []) for one in CLASSIFIERS],
)
def test_decisions_come_out_again_without_learning(place, monkeypatch, name):
    program = lived(place, CLASSIFIERS[name](), told=0.7)

    def never(*_args, **_options):
        raise AssertionError("something was learned")

    with monkeypatch.context() as patched:
        patched.setattr(algorithm, "learn", never)
        patched.setattr(sl.CertifiedClassifier, "_rank_people", never)
        found = proved(program)
    assert (found.n_decisions, found.n_learned_again) == (180, None)
    again = proved(program, relearn=True)
    assert (again.n_decisions, again.n_learned_again) == (180, 180)


def test_rounds_of_single_people_come_out_again(place):
    """Rounds that explore nobody share a policy in the log, as far as nothing rests on it yet."""
    program, _, batches = started(place, algorithm_1(strategy=None), n_batch=40)
    for one in batches[:2]:
        for row in range(12):
            part = slice(row, row + 1)
            decided = program.decide(one.people.X[part], sensitive_features=one.people.group[part])
            if row % 5 == 0 and decided.accepted.any():
                program.observe(decided.ids, one.outcome[part])
    assert len(program.classifier.policies_) < 24  # some were merged
    assert proved(program, relearn=True).n_decisions == 24


def test_classifiers_that_store_no_policies_are_replayed(place):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(400, 2)).astype(float)
    good = (rng.random(400) < 0.3 + 0.2 * X[:, 0]).astype(int)
    program = Program.create(
        place, FiniteClassifier(random_state=0), X[:300], good[:300], accepted=X[:300, 0] > 0
    )
    program.decide(X[300:])
    found = proved(program)
    assert (found.n_decisions, found.n_learned_again) == (100, 100)
    assert entries(program, "policy") == []


def test_a_refit_on_the_same_machine_gives_the_same_bits(place):
    program = lived(place, algorithm_1(), told=0.7)
    found = [one.key for one, _ in entries(program, "policy")]
    again = lived(place.replace("ledger.db", "again.db"), algorithm_1(), told=0.7)
    assert [one.key for one, _ in entries(again, "policy")] == found  # keys are hashes of content


# Lies with true hashes.


def lying(monkeypatch, kind, lie):
    append = SqlWriter.append

    def other(self, this, header, facts, **options):
        if this == kind:
            header, facts = lie(dict(header), facts)
        return append(self, this, header, facts, **options)

    monkeypatch.setattr(SqlWriter, "append", other)


def stricter(f):
    return replace(f, thresholds=f.thresholds + 0.05)


def test_a_policy_that_did_not_decide_is_found(place, monkeypatch):
    def lie(header, facts):
        if header["what"] != "learned":
            return header, facts
        return header, Facts(payload=dumps(stricter(loads(facts.payload, holds=Learned))))

    lying(monkeypatch, "policy", lie)
    found = verify(lived(place, algorithm_1()).ledger)
    assert "comes out otherwise than recorded" in found.problem


def test_a_policy_that_was_not_learned_is_found_by_learning(place, monkeypatch):
    learned = sl.PartialFeedbackClassifier._classifier_of_round

    def other(self, t):
        return stricter(learned(self, t)) if t == 3 else learned(self, t)

    with monkeypatch.context() as patched:
        patched.setattr(sl.PartialFeedbackClassifier, "_classifier_of_round", other)
        program = lived(place, algorithm_1())
    assert verify(program.ledger).ok
    found = verify(program.ledger, relearn=True)
    batch, _ = entries(program, "batch")[2]
    assert f"entry {batch.number} (batch" in found.problem
    assert "comes out otherwise than recorded" in found.problem


def test_a_policy_with_other_words_than_learned_is_found_by_learning(place, monkeypatch):
    """What decided is as recorded, and still it is not what was learned."""

    def lie(header, facts):
        if header["what"] != "learned":
            return header, facts
        f = loads(facts.payload, holds=Learned)
        return header, Facts(payload=dumps(replace(f, note="All is well.")))

    lying(monkeypatch, "policy", lie)
    program = lived(place, algorithm_1())
    assert verify(program.ledger).ok
    found = verify(program.ledger, relearn=True)
    policy = next(one for one, _ in entries(program, "policy") if one.says["what"] == "learned")
    assert found.problem.startswith(f"entry {policy.number} (policy")
    assert "Learned.note comes out otherwise than stored" in found.problem


def test_a_state_that_is_not_the_one_reached_is_found_by_learning(place, monkeypatch):
    program = lived(place, algorithm_1())

    def lie(header, facts):
        classifier = loads(facts.payload)
        classifier._carried += 1.0
        return header, Facts(payload=dumps(classifier))

    proved(program, relearn=True)
    lying(monkeypatch, "snapshot", lie)
    program.snapshot()
    assert verify(program.ledger).ok
    found = verify(program.ledger, relearn=True)
    assert "(snapshot" in found.problem
    assert "PartialFeedbackClassifier._carried comes out otherwise" in found.problem


@pytest.mark.parametrize("what", ["left", "carried", "n_explored", "thresholds"])
def test_what_a_batch_says_of_its_round_is_proved(place, monkeypatch, what):
    def lie(header, facts):
        if header["round"] != 2:
            return header, facts
        part = header["logged"] if what == "left" else header["rounds"][0]
        value = part[what]
        part[what] = [2 * one + 1 for one in value] if what in ("left", "thresholds") else value + 1
        return header, facts

    lying(monkeypatch, "batch", lie)
    program, _, batches = started(place, algorithm_1(), n_batch=60)
    for one in batches[:2]:
        program.decide(one.people.X, sensitive_features=one.people.group)
    words = "what its draw left for others" if what == "left" else f"{what} of its round"
    assert f"{words} comes out otherwise than recorded" in verify(program.ledger).problem


@pytest.mark.parametrize("what", ["n_accepted", "share"])
def test_what_a_certified_batch_says_of_its_round_is_proved(place, monkeypatch, what):
    def lie(header, facts):
        header["rounds"][0][what] += 1
        return header, facts

    lying(monkeypatch, "batch", lie)
    found = verify(lived(place, certified(), n_rounds=1).ledger)
    assert f"{what} of its round comes out otherwise than recorded" in found.problem


@pytest.mark.parametrize("number", [99, 1])
def test_a_batch_that_names_no_policy_is_found(place, monkeypatch, number):
    lying(monkeypatch, "batch", lambda header, facts: (header | {"policy": number}, facts))
    found = verify(lived(place, algorithm_1(), n_rounds=1).ledger)
    assert f"entry {number} holds no policy that could decide" in found.problem


# Erased people.


def erase(program, ids):
    with program.ledger.writing("main") as writer:
        persons = writer.standing([str(one) for one in ids]).persons
        writer.append("erasure", {"why": "asked"}, Facts(erased=persons), by="t")


@pytest.mark.parametrize("make", [algorithm_1, certified])
def test_others_are_proved_beside_the_erased(place, make):
    program = lived(place, make())
    (_, before), *_ = entries(program, "batch")[1:]
    names = before.people.applications
    erase(program, [5, *names[10:13]])
    found = proved(program)
    assert found.n_decisions + found.n_not_repeated == 180
    if make is certified:  # coins are independent
        assert found.n_not_repeated == 3
    else:
        explore = ~before.decisions.exploit
        explore[10:13] = True
        assert found.n_not_repeated == explore.sum()


def test_a_batch_of_erased_people_only(place):
    program = lived(place, algorithm_1())
    _, (_, facts), *_ = entries(program, "batch")
    erase(program, facts.people.applications)
    found = proved(program)
    assert (found.n_decisions, found.n_not_repeated) == (120, 60)


@pytest.mark.parametrize("column", ["score", "exploit", "threshold", "fold"])
def test_a_lie_beside_the_erased_is_found(place, monkeypatch, column):
    def lie(header, facts):
        values = getattr(facts.decisions, column).copy()
        values[20] = ~values[20] if values.dtype == bool else values[20] + 1e-6
        values[20] += column == "fold"
        return header, replace(facts, decisions=replace(facts.decisions, **{column: values}))

    with monkeypatch.context() as patched:
        lying(patched, "batch", lie)
        program = lived(place, algorithm_1(), n_rounds=1)
    ((_, facts),) = entries(program, "batch")
    erase(program, facts.people.applications[30:32])
    what = "region" if column == "exploit" else column
    name = facts.people.applications[20]
    found = verify(program.ledger)
    assert f"the {what} of application '{name}' comes out otherwise" in found.problem


def test_an_erased_person_named_by_words(place):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    names = np.array([f"erased {at}" for at in range(300)])
    program = Program.create(
        place, algorithm_1(strategy=None), X[:200], X[:200, 0] > 0, ids=names[:200]
    )
    program.decide(X[200:], ids=names[200:])
    erase(program, names[210:212])
    assert proved(program).n_not_repeated >= 2


# Certificates.


def certified_life(url, **options):
    classifier = sl.CertifiedClassifier(
        alpha=0.4, delta=0.2, horizon=6, random_state=3, maturity=0, **options
    )
    return lived(url, classifier, n_rounds=8, n_batch=400)


@pytest.fixture(scope="module")
def reached(tmp_path_factory):
    """Return a program whose rounds have certificates."""
    program = certified_life(f"sqlite:///{tmp_path_factory.mktemp('reached')}/ledger.db")
    scrub(program.ledger.engine)
    return program


@pytest.fixture
def copied(reached, tmp_path):
    """Return a copy of it that may be changed."""
    shutil.copy(reached.ledger.engine.url.database, tmp_path / "ledger.db")
    return Program.open(f"sqlite:///{tmp_path}/ledger.db")


def test_certificates_are_recorded_with_their_evidence(reached):
    found = entries(reached, "certificate")
    rounds = {}
    for record in reached.classifier.rounds_:
        if record.status == "certified":
            rounds.setdefault((record.ladder, record.share), record)
    assert len(found) == len(rounds) > 0
    for (one, _), record in zip(found, rounds.values(), strict=True):
        plain = json.loads(to_json(asdict(record)))
        says = one.says
        assert {name: says[name] for name in ("share", "log_wealth", "round", "group")} == {
            name: plain[name] for name in ("share", "log_wealth", "round", "group")
        }
        assert says["log_wealth"] >= says["threshold"]
        assert (says["alpha"], says["delta"], says["what"]) == (0.4, 0.2, "granted")
    found = proved(reached, relearn=True)
    assert found.n_learned_again == found.n_decisions > 0


def test_ladders_are_stored_once(reached):
    ladders = [one for one, _ in entries(reached, "policy") if one.says["what"] == "ladder"]
    deployed = {
        (record.ladder, record.round): record.ladder for record in reached.classifier.rounds_
    }
    assert len(ladders) == len({*deployed.values()})
    for one in ladders:
        with reached.ledger.reading("main") as reader:
            ladder = loads(reader.facts(one).payload, holds=Ladder)
        assert ladder.n_used == 0  # as frozen, before any evidence


def test_a_dropped_certificate_is_recorded(copied):
    program = copied
    granted = [one.key for one, _ in entries(program, "certificate")]
    assert granted
    batch, facts = entries(program, "batch")[-3]
    yes = np.array(facts.people.applications, np.int64)[facts.decisions.accepted]
    told = {
        person: state
        for _, one in entries(program, "outcomes")
        for person, state in zip(one.outcomes.persons, one.outcomes.states, strict=True)
    }
    first = batch.says["rows"]["first"] + int(np.flatnonzero(facts.decisions.accepted)[0])
    program.observe(yes[:1], [0 if told[first] == "good" else 1])
    assert program.classifier._engines[0].restarts == 1
    dropped, _ = entries(program, "certificate")[-1]
    assert dropped.says["what"] == "dropped"
    assert dropped.says["certificates"] == granted
    assert (dropped.says["round"], dropped.says["why"]) == (8, "correction")
    proved(program, relearn=True)


@pytest.mark.parametrize("told", ["nothing", "too few", "too late"])
def test_a_certificate_that_had_to_be_dropped_is_found_by_learning(copied, monkeypatch, told):
    program, append, late = copied, SqlWriter.append, []

    def other(self, kind, header, facts, **options):
        if kind == "certificate" and header["what"] == "dropped":
            late.append((header, options))
            if told != "too few":
                return None
            header = header | {"certificates": header["certificates"][1:]}
        return append(self, kind, header, facts, **options)

    batch, facts = entries(program, "batch")[-3]
    row = int(np.flatnonzero(facts.decisions.accepted)[0])
    name, person = int(facts.people.applications[row]), batch.says["rows"]["first"] + row
    states = {
        person: state
        for _, one in entries(program, "outcomes")
        for person, state in zip(one.outcomes.persons, one.outcomes.states, strict=True)
    }
    with monkeypatch.context() as patched:
        patched.setattr(SqlWriter, "append", other)
        program.observe([name], [0 if states[person] == "good" else 1])
    assert len(late) == 1
    if told == "too late":
        X, group = np.zeros((1, program.classifier.n_features_in_)), ["A"]
        with monkeypatch.context() as patched:
            patched.setattr("secondlook.ledger.program.record_certificates", lambda *_a, **_o: None)
            program.decide(X, sensitive_features=group, ids=[10_000_000])
        (header, options), *_ = late
        with program.ledger.writing("main") as writer:
            writer.append("certificate", header, Facts(), **options)
    assert verify(program.ledger).ok
    problem = verify(program.ledger, relearn=True).problem
    if told == "too few":
        assert problem.endswith(f"what had to be dropped is {late[0][0]['certificates']}.")
    else:
        assert "had to be dropped, and that is not recorded" in problem


def test_a_certificate_that_was_not_to_be_dropped_is_found_by_learning(copied):
    granted = [one.key for one, _ in entries(copied, "certificate")]
    header = {"what": "dropped", "certificates": granted, "group": None, "round": 8, "why": "none"}
    with copied.ledger.writing("main") as writer:
        writer.append("certificate", header, Facts(), by="t", key="dropped 0.1")
    problem = verify(copied.ledger, relearn=True).problem
    assert problem.endswith("(certificate 'dropped 0.1'): what had to be dropped is [].")


def test_a_false_certificate_is_found(copied):
    """One whose evidence is not the last round's, and one that repeats it and is not there."""
    *_, (last, _) = entries(copied, "batch")
    record = last.says["rounds"][0]
    forged = entries(copied, "certificate")[0][0].says
    forged |= {name: record[name] for name in ("share", "threshold", "round")}
    with copied.ledger.writing("main") as writer:
        header = forged | {"log_wealth": record["log_wealth"]}
        writer.append("certificate", header, Facts(), by="t", key="new")
    assert verify(copied.ledger).ok
    found = verify(copied.ledger, relearn=True)
    assert "(certificate 'new'): the round does not rest on it" in found.problem
    with copied.ledger.writing("main") as writer:
        header = forged | {"log_wealth": record["log_wealth"] + 1}
        writer.append("certificate", header, Facts(), by="t", key="newer")
    found = verify(copied.ledger)
    assert "(certificate 'newer'): its log_wealth is not that of the round" in found.problem


def test_a_missing_certificate_is_found_by_learning(place, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr("secondlook.ledger.program.record_certificates", lambda *_a, **_o: None)
        program = certified_life(place)
    assert verify(program.ledger).ok
    found = verify(program.ledger, relearn=True)
    assert "was reached and is not recorded" in found.problem


# The past's own policy.


def test_a_past_policy_is_kept_as_data(place):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 2))
    good = (rng.random(900) < 1 / (1 + np.exp(-1 - 2 * X[:, 0]))).astype(int)
    accepted = X[:, 1] > 0
    past = LogisticRegression().fit(X[:600], accepted[:600])
    program = Program.create(
        place,
        algorithm_1(strategy=None),
        X[:600],
        good[:600],
        accepted=accepted[:600],
        past_policy=past,
    )
    decided = program.decide(X[600:750])
    np.testing.assert_allclose(decided.score, past.predict_proba(X[600:750])[:, 1], rtol=1e-9)
    program.observe(decided.ids[decided.accepted], good[600:750][decided.accepted])
    again = Program.open(place)
    again.decide(X[750:])
    assert proved(again, relearn=True).n_decisions == 300
    kept = sl.PartialFeedbackClassifier(
        random_state=3, utility=sl.Revenue(gain=200, loss=300), budget=sl.FdrBudget(alpha=0.15)
    ).fit(X[:600], good[:600], accepted=accepted[:600], past_policy=past)
    assert np.array_equal(kept.decide(X[600:750]).accepted, decided.accepted)


def test_past_policies_that_cannot_be_kept(place):
    X = np.random.default_rng(0).normal(size=(100, 2))
    good = (X[:, 0] > 0).astype(int)
    with pytest.raises(InputError, match=r"must be a fitted scikit-learn classifier in a ledger"):
        Program.create(place, algorithm_1(), X, good, past_policy=lambda X: X[:, 0] > 0)
    with pytest.raises(InputError, match="CertifiedClassifier follows no past policy"):
        Program.create(place, certified(), X, good, past_policy=LogisticRegression())


# Opening.


def work_of(url, doing):
    """Return how many hundreds of steps SQLite takes while something is done with a program."""
    program = Program.open(url)
    program._state = None
    program.ledger.engine.dispose()
    steps = [0]

    def count():
        steps[0] += 1

    @sa.event.listens_for(program.ledger.engine, "connect")
    def listen(connection, _record):
        connection.set_progress_handler(count, 100)

    doing(program)
    return steps[0]


def test_opening_does_not_read_what_is_in_the_last_state(tmp_path):
    opening, reading = [], []
    for n_rounds in (5, 20):
        url = f"sqlite:///{tmp_path}/{n_rounds}.db"
        lived(url, algorithm_1(), n_rounds=n_rounds, n_batch=200, told=0.1, snapshot_every=5)
        opening.append(work_of(url, lambda program: program.classifier))
        reading.append(work_of(url, entries))
    assert reading[1] > 2 * reading[0]  # what reading everything takes
    assert opening[1] - opening[0] < (reading[1] - reading[0]) / 20
    assert max(opening) < reading[0] / 10


# Comparing.


def test_contents_are_compared_part_by_part():
    one = LinearLikelihood(np.array([1.0, np.nan]), 0.5)
    assert first_other_content(dumps(one), dumps(one), 0.0) is None
    other = dumps(LinearLikelihood(np.array([1.0 + 1e-7, np.nan]), 0.5))
    assert first_other_content(dumps(one), other, 1e-6) is None
    assert first_other_content(dumps(one), other, 1e-9) == "LinearLikelihood.coef"
    longer = dumps(LinearLikelihood(np.ones(3), 0.5))
    assert first_other_content(dumps(one), longer, 1.0) == "LinearLikelihood.coef"
    assert first_other_content(dumps(one), dumps(sl.Uniform()), 1.0) is not None


def test_what_a_round_only_says_may_come_out_otherwise(rng):
    X = rng.normal(size=(300, 2))
    classifier = sl.CertifiedClassifier(random_state=0)
    classifier.fit(X, X[:, 0] > 0, accepted=X[:, 1] > -1)
    classifier.decide(X)
    (before,) = classifier.rounds_
    said = dumps(replace(before, message="in other words", more_outcomes=7.0))
    assert first_other_content(dumps(before), said, 0.0) is None
    done = dumps(replace(before, share=before.share + 0.1))
    assert first_other_content(dumps(before), done, 1e-6) == "CertifiedRound.share"


def test_records_are_compared_value_by_value():
    assert first_other_value({"a": "nan", "b": [1, 2.0]}, {"a": "nan", "b": [1, 2.0]}) is None
    assert first_other_value({"a": 1}, {}) == "a"
    assert first_other_value({}, {"b": None}) == "b"
    assert first_other_value({"a": True}, {"a": 1.5}) == "a"
    assert first_other_value({"a": [1]}, {"a": [1, 2]}) == "a"
    assert first_other_value({"a": 1}, {"a": 2}, leave_out=("a",)) is None
