"""The service tells a receiver of changed lights."""

from __future__ import annotations

import json
import time

import pytest

from fairchance.errors import InputError
from fairchance.ledger import Program
from fairchance.service import alarms
from fairchance.service.alarms import watching
from fairchance.service.log import log
from ledger_worlds import algorithm_1, started
from receiver import receiving


@pytest.fixture
def program(place, monkeypatch):
    monkeypatch.setattr(alarms, "_EVERY", 0.05)
    monkeypatch.setattr("fairchance.ledger.alerts._PAUSES", ())
    monkeypatch.setenv("FAIRCHANCE_ALERTS_SECRET", "eDl" * 12)
    return started(place, algorithm_1())


def until(true):
    """Wait until something is true; a service that never does it fails the test."""
    for _ in range(1200):
        if true():
            return
        time.sleep(0.05)
    pytest.fail("it did not happen in a minute")


def test_a_change_is_told_while_the_service_runs(program, monkeypatch, capfd):
    program, _, batches = program
    with receiving() as received:
        received.answers[:] = [500]
        monkeypatch.setenv("FAIRCHANCE_ALERTS_URL", received.url)
        with watching(Program.open(str(program.ledger.engine.url), load=False)):
            until(lambda: len(received.taken) == 1)
            program.decide(batches[0].people.X, sensitive_features=batches[0].people.group)
            program.pause()
            until(lambda: len(received.taken) >= 2)
            time.sleep(0.2)
    told = [
        (one["question"], one["group"], one["light"])
        for body in received.taken
        for one in body["changes"]
    ]
    assert {("certificate", "", "amber"), ("process", "", "amber")} <= {*told}
    assert len(told) == len({*told})
    log.flush(60)
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert lines[0]["code"] == "unavailable"
    assert {line["alert"] for line in lines[1:]} == {body["id"] for body in received.taken}


def test_any_error_is_a_line_and_the_service_looks_again(program, monkeypatch, capfd):
    program, _, _ = program
    notify, failed = alarms.notify, []

    def fail_first(*args, **options):
        if len(failed) < 2:
            failed.append(1)
            raise RuntimeError("the name of an applicant")
        return notify(*args, **options)

    monkeypatch.setattr(alarms, "notify", fail_first)
    with receiving() as received:
        monkeypatch.setenv("FAIRCHANCE_ALERTS_URL", received.url)
        with watching(Program.open(str(program.ledger.engine.url), load=False)):
            until(lambda: len(received.taken) == 1)
    log.flush(60)
    said = capfd.readouterr().err
    assert [json.loads(line).get("code") for line in said.splitlines()[:2]] == ["bug", "bug"]
    assert "applicant" not in said


def test_without_a_receiver_nobody_watches(program, monkeypatch):
    monkeypatch.setattr(alarms, "_watch", None)
    with watching(program[0]):
        pass


def test_a_service_without_the_secret_does_not_start(program, monkeypatch):
    monkeypatch.setenv("FAIRCHANCE_ALERTS_URL", "https://example.org")
    monkeypatch.delenv("FAIRCHANCE_ALERTS_SECRET")
    with pytest.raises(InputError, match="FAIRCHANCE_ALERTS_SECRET"), watching(program[0]):
        pass
