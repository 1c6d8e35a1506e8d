"""Lies about policies, states and rounds are found though their hashes are true."""

from __future__ import annotations

from dataclasses import replace

import pytest

import secondlook as sl
from ledger.lived_programs import entries, lived, lying, proved
from ledger_worlds import algorithm_1, certified, started
from secondlook.ledger.base import Facts
from secondlook.ledger.verification.walk import verify
from secondlook.methods.algorithm1.learning import Learned
from secondlook.methods.storage import dumps, loads


def stricter(f):
    return replace(f, thresholds=f.thresholds + 0.05)


def test_a_policy_that_did_not_decide_is_found(place, monkeypatch):
    def lie(header, facts):
        if header["what"] != "learned":
            return header, facts
        return header, Facts(payload=dumps(stricter(loads(facts.payload, holds=Learned))))

    lying(monkeypatch, "policy", lie)
    found = verify(lived(place, algorithm_1()).ledger)
    assert "differs from the record" in found.problem


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
    assert "differs from the record" in found.problem


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
    assert "Learned.note differs from the record" in found.problem


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
    assert "PartialFeedbackClassifier._carried differs from the record" in found.problem


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
    words = "the logged draw" if what == "left" else f"{what} of its round"
    assert f"{words} differs from the record" in verify(program.ledger).problem


@pytest.mark.parametrize("what", ["n_accepted", "share"])
def test_what_a_certified_batch_says_of_its_round_is_proved(place, monkeypatch, what):
    def lie(header, facts):
        header["rounds"][0][what] += 1
        return header, facts

    lying(monkeypatch, "batch", lie)
    found = verify(lived(place, certified(), n_rounds=1).ledger)
    assert f"{what} of its round differs from the record" in found.problem


@pytest.mark.parametrize("number", [99, 1])
def test_a_batch_that_names_no_policy_is_found(place, monkeypatch, number):
    lying(monkeypatch, "batch", lambda header, facts: (header | {"policy": number}, facts))
    found = verify(lived(place, algorithm_1(), n_rounds=1).ledger)
    assert f"entry {number} holds no policy" in found.problem
