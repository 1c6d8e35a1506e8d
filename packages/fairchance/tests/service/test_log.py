"""The log keeps nothing waiting, whatever becomes of standard error."""

from __future__ import annotations

import json
import logging
import os
import sys
from threading import Thread

import pytest

from fairchance.errors import LedgerError
from fairchance.service.log import Lines, Log, log
from service.serving import applications, served, started

SECRET = "2031-01-0001"  # what no line may have


def error_of(error):
    """Return an error as it is caught."""
    try:
        raise error
    except type(error) as caught:
        return caught


def test_a_reader_that_stands_still_keeps_nobody_waiting(monkeypatch):
    reading, writing = os.pipe()
    with open(reading, encoding="utf-8") as reader:
        with open(writing, "w", encoding="utf-8") as stream:
            monkeypatch.setattr(sys, "stderr", stream)
            ours, n = Log(most=50), 1000
            for at in range(n):
                ours.write(json.dumps({"at": at, "long": "x" * 1000}))
            found = []
            thread = Thread(target=lambda: found.extend(map(json.loads, reader)))
            thread.start()
            ours.flush(60)
            ours.write(json.dumps({"at": n}))  # before which it says what was dropped
            ours.flush(60)
            monkeypatch.undo()
        thread.join()
    kept = [line["at"] for line in found if "dropped" not in line]
    assert kept == sorted(kept)
    assert len(kept) < 500
    assert len(kept) + sum(line.get("dropped", 0) for line in found) == n + 1


def test_a_full_disk_is_told_of_later(monkeypatch, tmp_path):
    ours = Log()
    with open("/dev/full", "w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stderr", full)
        for at in range(3):
            ours(number=at)
        ours.flush(60)
    ours(number=3)  # to a stream that is closed
    ours.flush(60)
    with open(tmp_path / "log", "w", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        ours(number=4)
        ours.flush(60)
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [(line.get("dropped"), line.get("number")) for line in lines] == [(4, None), (None, 4)]
    monkeypatch.setattr(sys, "stderr", None)
    ours(number=5)
    ours.flush(60)


def test_requests_are_answered_without_a_log(place, monkeypatch):
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w", encoding="utf-8") as stream, served(started(place)) as client:
        client.doors.log = Log().write
        monkeypatch.setattr(sys, "stderr", stream)
        rows = applications(0, 3)
        assert [one["id"] for one in client.decide(rows)] == [row["id"] for row in rows]
        monkeypatch.undo()


@pytest.mark.parametrize(
    ("error", "code"), [(OSError(SECRET), "bug"), (LedgerError("away"), "ledger")]
)
def test_what_other_packages_log_is_a_line_without_messages_of_errors(capfd, error, code):
    record = logging.LogRecord("uvicorn.error", logging.ERROR, "", 1, "it %s", ("failed\n",), None)
    Lines().emit(record)
    record.exc_info = (type(error), error_of(error), error.__traceback__)
    Lines().emit(record)
    Lines().emit(logging.LogRecord("x", logging.ERROR, "", 1, "%d", ("none",), None))
    log.flush(60)
    first, second = capfd.readouterr().err.splitlines()
    assert json.loads(first).items() >= {"message": "it failed", "logger": "uvicorn.error"}.items()
    assert json.loads(second)["code"] == code
    assert SECRET not in second
