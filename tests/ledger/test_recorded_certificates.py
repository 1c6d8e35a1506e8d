"""Certificates are on record with their evidence, and so is what becomes of them."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict

import numpy as np
import pytest

import secondlook as sl
from ledger.lived_programs import entries, lived, proved
from secondlook.errors import LearningWarning
from secondlook.ledger.base import Facts, to_json
from secondlook.ledger.database import erase_log
from secondlook.ledger.program import Program
from secondlook.ledger.sql import SqlWriter
from secondlook.ledger.verification.walk import verify
from secondlook.methods.certified.ladder import Ladder
from secondlook.methods.storage import loads


def certified_life(url, **options):
    classifier = sl.CertifiedClassifier(
        alpha=0.4, delta=0.2, horizon=6, random_state=3, maturity=0, **options
    )
    return lived(url, classifier, n_rounds=8, n_batch=400)


@pytest.fixture(scope="module")
def reached(tmp_path_factory):
    """Return a program whose rounds have certificates."""
    program = certified_life(f"sqlite:///{tmp_path_factory.mktemp('reached')}/ledger.db")
    erase_log(program.ledger.engine)
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
        assert ladder.n_tested == 0  # as frozen, before any evidence


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
    with pytest.warns(LearningWarning, match="testing begins again with round 9"):
        program.observe(yes[:1], [0 if told[first] == "good" else 1])
    assert program.classifier._engines[0].stage.restarts == 1
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
        with pytest.warns(LearningWarning, match="is given up"):
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
        for one in ("program",):
            name = f"secondlook.ledger.{one}.record_certificates"
            patched.setattr(name, lambda *_a, **_o: None)
        program = certified_life(place)
    assert verify(program.ledger).ok
    found = verify(program.ledger, relearn=True)
    assert "was reached and is not recorded" in found.problem
