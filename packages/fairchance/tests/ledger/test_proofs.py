"""Decisions, policies and states are repeated, and false ones are found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import fairchance as fc
from fairchance.core.decisions import Note
from fairchance.core.versions import versions
from fairchance.ledger.base import Facts
from fairchance.ledger.program import Program
from fairchance.ledger.verification.proofs import OtherVersions
from fairchance.ledger.verification.walk import verify
from fairchance.methods.algorithm1 import classifier as algorithm
from fairchance.methods.policy import Policy
from fairchance.methods.storage import dumps, loads
from ledger.lived_programs import entries, erase, lived, lying, proved
from ledger_worlds import algorithm_1, certified, same, started

CLASSIFIERS = {
    "default": algorithm_1,
    "cross": lambda: algorithm_1(split="cross"),
    "per group": lambda: algorithm_1(thresholds="per_group", group_as_feature=True),
    "mean past score": lambda: algorithm_1(coverage=fc.MeanPastScore()),
    "sum of g": lambda: algorithm_1(coverage=fc.SumOfG(threshold=0.9)),
    "learned first": lambda: algorithm_1(first_round="learned", strategy=fc.EqualGroups()),
    "drawn first": lambda: algorithm_1(first_round="drawn"),
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
    [pytest.param(name, marks=[pytest.mark.long] if name in LONG else []) for name in CLASSIFIERS],
)
def test_decisions_are_repeated_without_learning(place, monkeypatch, name):
    program = lived(place, CLASSIFIERS[name](), known=0.7)

    def never(*_args, **_options):
        raise AssertionError("a policy was learned")

    with monkeypatch.context() as patched:
        patched.setattr(algorithm, "learn", never)
        patched.setattr(fc.CertifiedClassifier, "_learn", never)
        found = proved(program)
    assert (found.n_decisions, found.n_learned_again) == (180, None)
    again = proved(program, relearn=True)
    assert (again.n_decisions, again.n_learned_again) == (180, 180)


def test_rounds_of_single_applicants_are_repeated(place):
    """Rounds without exploration share a policy in the log until a later round depends on it."""
    program, _, batches = started(place, algorithm_1(strategy=None), n_batch=40)
    for one in batches[:2]:
        for row in range(12):
            part = slice(row, row + 1)
            decided = program.decide(one.people.X[part], sensitive_features=one.people.group[part])
            if row % 5 == 0 and decided.accepted.any():
                program.observe(decided.ids, one.outcome[part])
    assert len(program.classifier.policies_) < 24  # some were merged
    assert proved(program, relearn=True).n_decisions == 24


def test_a_refit_on_the_same_machine_gives_the_same_bits(place):
    program = lived(place, algorithm_1(), known=0.7)
    found = [one.key for one, _ in entries(program, "policy")]
    again = lived(place.replace("ledger.db", "again.db"), algorithm_1(), known=0.7)
    assert [one.key for one, _ in entries(again, "policy")] == found  # keys are hashes of content


def stricter(f):
    return replace(f, thresholds=f.thresholds + 0.05)


def with_other_f(change):
    """Return a lie about the policy of a batch that stores all of it: another f_t."""

    def lie(header, facts):
        if header["policy"]["base"] is not None:
            return header, facts
        policy = loads(facts.payload, holds=Policy)
        payload = dumps(replace(policy, f=change(policy.f)))
        return header, replace(facts, payload=payload)

    return lie


def test_a_policy_that_did_not_decide_is_detected(place, monkeypatch):
    lying(monkeypatch, "batch", with_other_f(stricter))
    found = verify(lived(place, algorithm_1()).ledger)
    assert "differs from the record" in found.problem


def test_a_policy_that_was_not_learned_is_detected_by_relearning(place, monkeypatch):
    learned = fc.PartialFeedbackClassifier._classifier_of_round

    def other(self, t):
        return stricter(learned(self, t)) if t == 3 else learned(self, t)

    with monkeypatch.context() as patched:
        patched.setattr(fc.PartialFeedbackClassifier, "_classifier_of_round", other)
        program = lived(place, algorithm_1())
    assert verify(program.ledger).ok
    found = verify(program.ledger, relearn=True)
    batch, _ = entries(program, "batch")[2]
    assert f"entry {batch.number} (batch" in found.problem
    assert "differs from the record" in found.problem


def test_a_changed_note_of_a_policy_is_detected_by_relearning(place, monkeypatch):
    """The decisions are as recorded, but the policy is not the learned one."""

    with monkeypatch.context() as patched:
        lying(patched, "batch", with_other_f(lambda f: replace(f, notes=(Note("well"),))))
        program = lived(place, algorithm_1(), n_rounds=1)
    assert verify(program.ledger).ok
    found = verify(program.ledger, relearn=True)
    ((batch, _),) = entries(program, "batch")
    assert found.problem.startswith(f"entry {batch.number} (batch")
    assert "Learned.notes" in found.problem


def test_a_false_state_is_detected_by_relearning(place, monkeypatch):
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
    assert "PartialFeedbackClassifier._carried differs from the record" in found.problem


@pytest.mark.parametrize("what", ["carried", "n_explored", "thresholds"])
def test_a_false_record_of_a_round_is_detected(place, monkeypatch, what):
    def lie(header, facts):
        if header["round"] != 2:
            return header, facts
        part = header["rounds"][0]
        value = part[what]
        part[what] = [2 * one + 1 for one in value] if what == "thresholds" else value + 1
        return header, facts

    lying(monkeypatch, "batch", lie)
    program, _, batches = started(place, algorithm_1(), n_batch=60)
    for one in batches[:2]:
        program.decide(one.people.X, sensitive_features=one.people.group)
    found = verify(program.ledger, relearn=what == "carried")
    assert f"{what} of its round differs from the record" in found.problem


@pytest.mark.parametrize("what", ["n_accepted", "share"])
def test_a_false_record_of_a_certified_round_is_detected(place, monkeypatch, what):
    def lie(header, facts):
        header["rounds"][0][what] += 1
        return header, facts

    lying(monkeypatch, "batch", lie)
    found = verify(lived(place, certified(), n_rounds=1).ledger)
    assert f"{what} of its round differs from the record" in found.problem


@pytest.mark.parametrize("number", [99, 2])
def test_a_batch_without_a_policy_is_detected(place, monkeypatch, number):
    other = {"policy": {"base": number}}
    lying(monkeypatch, "batch", lambda header, facts: (header | other, facts))
    found = verify(lived(place, algorithm_1(), n_rounds=1).ledger)
    assert "the policy of entry 4 is missing" in found.problem


@pytest.mark.parametrize("make", [algorithm_1, certified])
def test_decisions_on_others_are_repeated_after_an_erasure(place, make):
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


def test_dropped_states_cost_no_proof(place):
    """The program continues, everything is learned again, and no other state may be missing."""
    classifier = algorithm_1(learner=LogisticRegression())
    program, twin, batches = started(place, classifier, n_batch=40, n_rounds=10)

    def decide(some):
        for one in some:
            opened = Program.open(place)
            decided = opened.decide(one.people.X, sensitive_features=one.people.group)
            opened.snapshot()
            again = twin.decide(one.people.X, sensitive_features=one.people.group)
            assert same(decided, again)
        return decided

    def stored():
        return [facts.payload is not None for _, facts in entries(program, "snapshot")]

    last = decide(batches[:5])
    before = stored()
    assert before == [False] * (len(before) - 2) + [True] * 2
    assert proved(program, relearn=True).n_learned_again == 200
    program.erase(last.ids[:1], "asked", early=True)
    twin.forget(last.ids[:1])
    decide(batches[5:])
    after = stored()[len(before) :]
    assert stored()[: len(before)] == [False] * len(before)
    assert after == [True] + [False] * (len(after) - 3) + [True] * 2
    assert proved(program, relearn=True).n_learned_again == 360
    first = entries(program, "snapshot")[len(before)][0].number
    with program.ledger.engine.connect().execution_options(writes=True) as connection:
        gone = f"UPDATE payloads SET content = NULL WHERE entry = {first}"
        connection.exec_driver_sql(gone)
        connection.commit()
    assert f"entry {first} (snapshot" in verify(program.ledger).problem


def test_a_batch_of_erased_applicants_only(place):
    program = lived(place, algorithm_1())
    _, (_, facts), *_ = entries(program, "batch")
    erase(program, facts.people.applications)
    found = proved(program)
    assert (found.n_decisions, found.n_not_repeated) == (120, 60)


@pytest.mark.parametrize("column", ["score", "exploit", "threshold"])
def test_a_false_decision_is_detected_after_an_erasure(place, monkeypatch, column):
    def lie(header, facts):
        values = getattr(facts.decisions, column).copy()
        values[20] = ~values[20] if values.dtype == bool else values[20] + 1e-6
        return header, replace(facts, decisions=replace(facts.decisions, **{column: values}))

    with monkeypatch.context() as patched:
        lying(patched, "batch", lie)
        program = lived(place, algorithm_1(), n_rounds=1)
    ((_, facts),) = entries(program, "batch")
    erase(program, facts.people.applications[30:32])
    what = "region" if column == "exploit" else column
    name = facts.people.applications[20]
    found = verify(program.ledger)
    assert f"the {what} of application '{name}' differs from the record" in found.problem


def test_placeholders_take_names_that_are_not_in_use(place):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    names = np.array([f"erased {at}" for at in range(300)])
    program = Program.create(
        place, algorithm_1(strategy=None), X[:200], X[:200, 0] > 0, ids=names[:200]
    )
    program.decide(X[200:], ids=names[200:])
    erase(program, names[210:212])
    assert proved(program).n_not_repeated >= 2


@pytest.mark.parametrize("make", [algorithm_1, certified])
def test_what_other_versions_learned_is_not_learned_again(place, make, monkeypatch):
    other = versions() | {"scikit-learn": "0.1"}
    program, _, batches = started(place, make(), n_batch=40, n_rounds=6)

    def decide(batch):
        decided = program.decide(batch.people.X, sensitive_features=batch.people.group)
        program.observe(decided.ids[decided.accepted], batch.outcome[decided.accepted])

    decide(batches[0])
    with monkeypatch.context() as patch:
        patch.setattr("fairchance.ledger.program.versions", lambda: other)
        decide(batches[1])
        decide(batches[2])
        program.snapshot()
    found = proved(program, relearn=True)
    assert (found.n_decisions, found.n_learned_again) == (120, 40)
    assert found.skipped == (OtherVersions(other, 80),)
    assert proved(program).skipped == ()
    program.snapshot()
    for batch in batches[3:]:  # from the first state of these versions on, it is learned again
        decide(batch)
        program.snapshot()
    found = proved(program, relearn=True)
    assert found.n_decisions == 240
    assert found.n_learned_again == 40 + 120
