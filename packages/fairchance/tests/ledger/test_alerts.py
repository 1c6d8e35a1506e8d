"""A receiver is told once of each light that changes, by a signed POST."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time

import pytest

from fairchance.errors import InputError, UnavailableError
from fairchance.ledger import Program, alerts, summarise, verify
from fairchance.ledger.alerts import Receiver, notify
from fairchance.ledger.health import Check
from ledger_worlds import algorithm_1, certified, started
from receiver import receiving

SECRET = b"a secret of the operators, 32 b."


@pytest.fixture
def received(monkeypatch):
    monkeypatch.setattr(alerts, "_PAUSES", (0.01, 0.01))
    with receiving() as got:
        yield got


@pytest.fixture
def lights(monkeypatch):
    """Return a dictionary of questions and lights that a program has."""
    now = {"data": "amber", "record": "green"}

    def checks(_):
        return [Check(*key.partition("|")[::2], light) for key, light in now.items()]

    def as_checks(summary):
        return [Check(one.question, "made_up", one.light, one.finding) for one in checks(summary)]

    monkeypatch.setattr("fairchance.ledger.health.QUESTIONS", (as_checks,))
    return now


@pytest.fixture
def program(place):
    return started(place, algorithm_1())[0]


def tell(program, received, **options):
    receiver = Receiver(received.url, SECRET)
    return notify(program.ledger, program.summary(), receiver, by="cron", **options)


def changes(alert):
    return {(one.question, one.group): (one.was, one.light) for one in alert.changes}


def n_alerts(program):
    with program.ledger.reading("main") as reader:
        return sum(1 for _ in reader.entries(kind="alert"))


def test_each_change_is_told_once(program, received, lights):
    first = tell(program, received)
    assert changes(first) == {("data", ""): ("green", "amber")}
    assert (first.was, first.light) == ("green", "amber")
    assert tell(program, received) is None
    lights |= {"data": "red", "mistakes|sex f": "amber"}
    second = tell(program, received)
    assert changes(second) == {
        ("data", ""): ("amber", "red"),
        ("mistakes", "sex f"): ("green", "amber"),
    }
    assert (second.was, second.light) == ("amber", "red")
    lights["data"] = "green"
    assert changes(tell(program, received)) == {("data", ""): ("red", "green")}
    lights["data"] = "red"
    assert changes(tell(program, received)) == {("data", ""): ("green", "red")}
    assert tell(program, received) is None
    assert len(received.taken) == n_alerts(program) == 4
    assert len({one["id"] for one in received.taken}) == 4
    assert received.taken[0]["changes"][0]["light"] == "amber"
    assert received.taken[0]["checkpoint"] == first.checkpoint


def test_a_green_program_tells_nobody(program, received, lights):
    lights["data"] = "green"
    assert tell(program, received) is None
    assert (received, n_alerts(program)) == ([], 0)


def test_an_alert_is_signed(program, received):
    tell(program, received)
    ((_, headers, body),) = received
    assert headers["content-type"] == "application/json"
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    made = base64.b64encode(hmac.new(SECRET, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{made}"
    assert abs(int(headers["webhook-timestamp"]) - time.time()) < 3600
    assert headers["webhook-id"] == received.taken[0]["id"]


def test_the_signature_is_that_of_the_standard():
    """The example of the libraries of Standard Webhooks."""
    secret = {"S": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
    known = {"alerts": {"url": "https://example.org", "secret_variable": "S"}}
    headers = Receiver.of(known, secret).headers(
        "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
    )
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize("answers", [[500], [503, 429]])
def test_an_attempt_that_fails_is_repeated_with_the_same_id(program, received, answers):
    received.answers[:] = answers
    assert tell(program, received) is not None
    assert [status for status, *_ in received] == [*answers, 200]
    assert len({headers["webhook-id"] for _, headers, _ in received}) == 1
    assert n_alerts(program) == 1


@pytest.mark.parametrize(("answers", "n"), [([500] * 3, 3), ([404], 1), ([302], 1)])
def test_what_nobody_took_is_told_next_time(program, received, answers, n):
    received.answers[:] = answers
    with pytest.raises(UnavailableError, match=f"HTTP {answers[-1]}"):
        tell(program, received)
    assert (len(received), n_alerts(program)) == (n, 0)
    assert tell(program, received) is not None
    assert len({headers["webhook-id"] for _, headers, _ in received}) == 1


def test_a_receiver_that_is_gone(program, received):
    with pytest.raises(UnavailableError, match=r"did not take an alert \(.*refused\)"):
        notify(
            program.ledger, program.summary(), Receiver("http://127.0.0.1:9/x", SECRET), by="cron"
        )


def test_two_that_tell_at_once_record_one_alert(program, received, lights, monkeypatch):
    send, twice = Receiver.send, []

    def slow(self, name, body):
        if not twice:
            twice.append(name)
            tell(program, received)
        send(self, name, body)

    monkeypatch.setattr(Receiver, "send", slow)
    assert changes(tell(program, received)) == {("data", ""): ("green", "amber")}
    assert n_alerts(program) == 1
    assert [one["id"] for one in received.taken] == twice * 2


@pytest.mark.parametrize("classifier", [algorithm_1, certified])
def test_a_program_with_alerts_goes_on_and_verifies(url, received, classifier):
    program, _, batches = started(url, classifier(), n_batch=60, n_rounds=2)
    for one in batches:
        program.decide(one.people.X, sensitive_features=one.people.group)
        tell(program, received)
    assert n_alerts(program) >= 1
    again = Program.open(url)
    again.snapshot()
    assert verify(url, relearn=True).problem is None
    assert summarise(program.ledger).rounds[-1].round == 2


@pytest.mark.parametrize(
    ("known", "variables", "expected"),
    [
        ({}, {}, None),
        ({}, {"FAIRCHANCE_ALERTS_SECRET": "x"}, None),
        ({"url": "https://a.b"}, {"FAIRCHANCE_ALERTS_URL": "https://c.d"}, "https://c.d"),
        ({}, {"FAIRCHANCE_ALERTS_URL": "https://c.d"}, "https://c.d"),
        ({"url": "https://a.b", "secret_variable": "MINE"}, {}, "https://a.b"),
    ],
)
def test_where_the_receiver_is_said(known, variables, expected):
    variables = {"MINE": base64.b64encode(SECRET).decode()} | variables
    if expected and "secret_variable" not in known:
        variables["FAIRCHANCE_ALERTS_SECRET"] = variables["MINE"]
    found = Receiver.of({"alerts": known} if known else {}, variables)
    assert found == (expected and Receiver(expected, SECRET))
    assert found is None or SECRET.decode() not in repr(found)


@pytest.mark.parametrize("url", ["example.org/x", "ftp://example.org", "https://"])
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(InputError, match="FAIRCHANCE_ALERTS_URL must be such as"):
        Receiver.of({}, {"FAIRCHANCE_ALERTS_URL": url})


@pytest.mark.parametrize("value", [None, "", "short", "no base64!" * 9])
def test_a_secret_that_is_missing_or_weak_is_refused(value):
    variables = {} if value is None else {"FAIRCHANCE_ALERTS_SECRET": value}
    with pytest.raises(InputError, match="FAIRCHANCE_ALERTS_SECRET"):
        Receiver.of({"alerts": {"url": "https://a.b"}}, variables)
