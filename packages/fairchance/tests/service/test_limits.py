"""Hostile requests, wrong keys and limits: refused with a code, and nothing is recorded."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Annotated

import numpy as np
import psutil
import pytest
from pydantic import TypeAdapter, ValidationError

from fairchance.errors import InputError
from fairchance.ledger import SqlLedger, verify
from fairchance.ledger.keys import add_key, keys_of, revoke_key, split_token
from fairchance.service import bodies, doors, threads
from fairchance.service.doors import KeyRing
from fairchance.service.strict import MOST_ERRORS, Many
from service.serving import applications, served, started

pytestmark = pytest.mark.filterwarnings("ignore::fairchance.errors.LearningWarning")


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    url = f"sqlite:///{tmp_path_factory.mktemp('limits')}/x.db"
    with served(started(url), body=50_000, rows=20) as client:
        yield client
    assert verify(url).n_decisions == len(client.recorded)


@pytest.fixture(autouse=True)
def _nothing_else_is_recorded(client):
    """Keep which applications tests of this module decide on purpose."""
    if not hasattr(client, "recorded"):
        client.recorded = set()


def raw(port, content, wait=2.0):
    """Send bytes, and return what comes back until the connection is closed, or for a time."""
    with closing(socket.create_connection(("127.0.0.1", port))) as there:
        there.settimeout(wait)
        answer = b""
        try:
            there.sendall(content)
            while part := there.recv(65536):
                answer += part
        except OSError:
            pass
        return answer


def is_alive(client):
    return client.ask("GET", "/livez")[0] == 200


WRONG_KEYS = [
    "",
    "Bearer",
    "Bearer ",
    "Basic YTpi",
    "Bearer fc_",
    "Bearer fc_000000000000_" + "x" * 43,
    "Bearer " + "x" * 5000,
    "Bearer fc_\xff\xfe",
    "Bearer '; DROP TABLE access_keys; --",
]


@pytest.mark.parametrize("sent", WRONG_KEYS)
def test_a_wrong_key_is_refused(client, sent):
    status, problem, headers = client.ask("GET", "/v1/status", headers={"Authorization": sent})
    assert (status, problem["code"], headers["www-authenticate"]) == (401, "no_key", "Bearer")


def test_a_key_with_another_secret_is_refused(client):
    known = client.keys["audit"]
    other = known[:-1] + ("a" if known[-1] != "a" else "b")
    assert client.ask("GET", "/v1/status", key=other)[0] == 401
    assert client.ask("GET", "/v1/status", key=known)[0] == 200


BODIES = [
    (b"", 422),
    (b"null", 422),
    (b"[]", 422),
    (b"{", 400),
    (b'{"applications": []}', 422),
    (b'{"applications": [{}]}', 422),
    (b"\xff\xfe", 400),
    (b'{"applications": ' + b"[" * 20_000 + b"]" * 20_000 + b"}", None),
    (b'{"applications": [{"id": "a", "features": {"income": 1e999, "debt": 1}}]}', 422),
    (b'{"applications": [{"id": "a", "features": {"income": NaN, "debt": 1}}]}', 422),
    (b'{"applications": [{"id": "\\ud800"}]}', 422),
    (b'{"applications": [{"id": ' + b"9" * 5000 + b"}]}", None),
]


@pytest.mark.parametrize(("body", "expected"), BODIES)
def test_bodies_that_cannot_be_used(client, body, expected):
    status, problem, _ = client.ask("POST", "/v1/decisions", "decide", body)
    assert status in ([expected] if expected else [400, 422])
    assert problem["status"] == status


@pytest.mark.parametrize(
    "change", [{"income": float("nan")}, {"income": -1e308}, {"debt": 10**400}]
)
def test_numbers_at_the_edge(client, change):
    (one,) = applications(900)
    one["features"] |= change
    status, problem, _ = client.ask(
        "POST", "/v1/decisions", "decide", json.dumps({"applications": [one]}).encode()
    )
    if status == 200:
        client.recorded.add(one["id"])
    else:
        assert status in (400, 422)
        assert problem["code"] in ("infinite", "not_a_number", "not_json", "input")


@pytest.mark.parametrize(
    "name", ["#5", " ", "a" * 201, "é", "'; DROP TABLE entries; --", "a\tb", "null"]
)
def test_names_of_requests(client, name):
    body = {"outcomes": [{"id": "nobody", "outcome": "good"}]}
    status, _, _ = client.ask(
        "POST", "/v1/outcomes", "observe", body, {"Idempotency-Key": name.encode("latin-1")}
    )
    assert status == 422


@pytest.mark.parametrize(
    "path",
    ["%00", "%ff%fe", "a%2F..%2F..", "%F0%9F%92%A9", "a" * 5000, "'%20OR%201=1", "%ED%A0%80"],
)
def test_ids_in_paths(client, path):
    status, problem, _ = client.ask("GET", f"/v1/decisions/{path}", "audit")
    assert status == 404, problem


def test_an_id_has_a_file_whatever_is_in_it(client):
    (one,) = applications(901, id="loan/desk 7")
    client.decide([one])
    client.recorded.add(one["id"])
    assert client.get("/v1/decisions/loan%2Fdesk%207", "audit")["id"] == one["id"]
    for path in ("/v1/decisions/loan%2Fdesk%207%00", "/v1/decisions/loan%2Fdesk"):
        assert client.get(path, "audit", code=404)["code"] == "unknown_id"


RAW = [
    b"GET / HTTP/1.1\r\n" + b"A: " + b"b" * 200_000 + b"\r\n\r\n",
    b"POST /v1/decisions HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET /v1/status HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \x00\x01\r\n\r\n",
    b"\r\n" * 1000,
    b"GET /livez HTTP/9.9\r\n\r\n",
]


@pytest.mark.parametrize("content", RAW)
def test_what_is_no_request(client, content):
    assert b" 500 " not in raw(client.port, content, wait=0.5)
    assert is_alive(client)


def test_a_body_that_is_too_large(client):
    body = b'{"applications": "' + b"a" * 60_000 + b'"}'
    status, problem, _ = client.ask("POST", "/v1/decisions", "decide", body)
    assert (status, problem["code"]) == (413, "too_large")
    chunk = b"ffff\r\n" + b"a" * 0xFFFF + b"\r\n"
    assert b" 413 " in raw(client.port, head(client, "Transfer-Encoding: chunked") + chunk)


def test_too_many_rows(client):
    problem = client.decide(applications(0, 21), code=422)
    assert [one["pointer"] for one in problem["errors"]] == ["/applications"]
    many = [None] * 2001
    for path, role, body in (
        ("/v1/decisions", "decide", {"applications": many}),
        ("/v1/outcomes", "observe", {"outcomes": many}),
        ("/v1/overrides", "operate", {"ids": many, "accepted": None, "reason": "x"}),
        ("/v1/holds", "operate", {"ids": many, "reason": "x"}),
        ("/v1/erasures", "operate", {"ids": many, "reason": "x"}),
    ):
        problem = client.post(path, role, body, "many", code=422)
        assert [one["pointer"] for one in problem["errors"]] == ["/" + next(iter(body))]


def mistakes(kind, value):
    """Return the mistakes that are found in a value."""
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(kind).validate_python(value)
    return caught.value.errors(include_url=False, include_input=False)


def test_mistakes_are_looked_for_only_as_far_as_they_are_listed(client):
    form = client.service.form
    others = {f"x{at}": None for at in range(5000)}
    for kind in (form.Application, bodies.OutcomeList, bodies.Ramp):
        assert len(mistakes(kind, others)) <= MOST_ERRORS + len(kind.model_fields)
    one = applications(0)[0] | {"features": {"income": 0.0, **others, "debt": 0.0}}
    found = mistakes(form.Application, one)
    assert len(found) == MOST_ERRORS
    assert {error["type"] for error in found} == {"extra_forbidden"}
    rows = Annotated[list[form.Application], Many(2000)]
    assert len(mistakes(rows, [{}] * 2000)) < 3 * MOST_ERRORS


def test_mistakes_are_the_same_in_a_long_list(client):
    Application = client.service.form.Application
    rows = applications(0, 40)
    changes = [
        lambda one: one["features"].update(debt="many"),
        lambda one: one["features"].update(debt=float("inf")),
        lambda one: one["groups"].update(sex="a" * 201),
        lambda one: one["groups"].clear(),
        lambda one: one.update(id="a\0"),
        lambda one: one.update(colour="red"),
        lambda one: one.pop("incumbent"),
    ]
    for at, change in enumerate(changes):
        change(rows[5 * at])
    found = mistakes(Annotated[list[Application], Many(2000)], rows)
    assert len(found) < MOST_ERRORS
    assert found == mistakes(list[Application], rows)


def test_a_connection_that_ends_in_the_middle(client):
    with closing(socket.create_connection(("127.0.0.1", client.port))) as there:
        there.sendall(head(client, "Content-Length: 1000") + b"{")
    assert is_alive(client)


def head(client, *more):
    lines = ["POST /v1/decisions HTTP/1.1", "Host: x", "Content-Type: application/json"]
    lines += [f"Authorization: Bearer {client.keys['decide']}", *more]
    return "\r\n".join([*lines, "", ""]).encode()


def test_who_has_no_key_does_not_learn_where_the_record_is(place):
    with served(started(place)) as client:
        file = Path(place.removeprefix("sqlite:///"))
        file.rename(file.with_suffix(".away"))
        status, problem, _ = client.ask("GET", "/readyz")
        assert (status, problem["code"]) == (503, "ledger")
        assert problem["detail"] == "the record cannot be read now."


def test_a_request_that_takes_too_long_is_refused(place):
    with served(started(place), seconds=0.5) as client:
        answer = raw(client.port, head(client, "Content-Length: 9") + b"{", wait=10)
        assert b" 503 " in answer
        assert b'"late"' in answer
        rows = applications(0)
        with client.service.program.ledger.writing("main"):  # so that nobody else can write
            assert client.decide(rows, code=503)["code"] == "late"
            (status, _, headers) = client.ask(
                "POST", "/v1/decisions", "decide", {"applications": rows}
            )
            assert (status, headers["retry-after"]) == (503, "1")
        while client.ask("POST", "/v1/decisions", "decide", {"applications": rows})[0] == 503:
            continue  # which a client does
        assert client.get("/v1/decisions", "audit")["decisions"][0]["id"] == rows[0]["id"]


@pytest.mark.parametrize(
    ("path", "role", "body"),
    [
        ("/v1/decisions", "decide", {"applications": applications(0)}),
        ("/v1/pause", "operate", None),
    ],
)
def test_a_process_that_is_stuck_is_not_ready(place, path, role, body):
    with served(started(place), seconds=0.3) as client:
        assert client.ask("GET", "/readyz")[0] == 200
        with client.service.program.ledger.writing("main"):  # so that nobody else can write
            assert client.ask("POST", path, role, body)[0] == 503
            problem = until(client, 503)
            assert problem["code"] == "stuck"
            assert client.ask("GET", "/livez")[0] == 200
        until(client, 200)


def until(client, status):
    """Return the answer of /readyz once it has a status."""
    for _ in range(1200):
        found, data, _ = client.ask("GET", "/readyz")
        if found == status:
            return data
        time.sleep(0.05)
    pytest.fail(f"/readyz was not {status} in a minute")


def test_a_key_that_asks_too_often(place):
    with served(started(place), rate=5.0) as client:
        found = [client.ask("GET", "/v1/policy", "operate")[0] for _ in range(20)]
        assert set(found) == {403, 429}
        assert client.ask("GET", "/v1/policy", "audit")[0] == 403  # another key


def test_a_service_that_is_busy_says_so(place):
    with served(started(place), waiting=10) as client:
        client.decide(applications(100))
        answers = []

        def ask(first):
            answers.append(client.ask("POST", "/v1/decisions", "decide", body(first)))

        def body(first):
            return {"applications": applications(first, 8)}

        with client.service.program.ledger.writing("main"):
            threads = [threading.Thread(target=ask, args=(at,)) for at in range(0, 64, 8)]
            for thread in threads:
                thread.start()
            until = time.monotonic() + 20
            while not answers and time.monotonic() < until:
                time.sleep(0.01)
        for thread in threads:
            thread.join()
        found = {status for status, *_ in answers}
        assert found == {200, 503}
        refused = next(one for one in answers if one[0] == 503)
        assert (refused[1]["code"], refused[2]["retry-after"]) == ("busy", "1")
        for at in range(0, 64, 8):
            client.decide(applications(at, 8))


# Keys


def test_only_a_hash_of_a_key_is_kept(place):
    started(place)
    ledger = SqlLedger(place)
    with ledger.writing("main") as writer:
        token = add_key(writer, "decide", "desk")
    name, secret = split_token(token)
    with ledger.reading("main") as reader:
        (key,) = keys_of(reader)
    assert (key.id, key.role, key.name, key.revoked) == (name, "decide", "desk", None)
    assert key.fits(secret)
    assert not key.fits(secret[:-1])
    content = b"".join(path.read_bytes() for path in _files(place))
    assert secret.encode() not in content
    with ledger.writing("main") as writer:
        revoke_key(writer, name)
        with pytest.raises(InputError, match="no valid key"):
            revoke_key(writer, name)
        with pytest.raises(InputError, match="a role is one of"):
            add_key(writer, "admin", "x")
    with ledger.reading("main") as reader:
        ring = KeyRing(lambda: keys_of(reader))
    assert ring.find(token) is None


def test_keys_are_read_again_after_any_error(place, monkeypatch):
    monkeypatch.setattr(threads, "_KEYS_EVERY", 0.01)
    said = []
    monkeypatch.setattr(threads, "log", lambda **line: said.append(line))
    with served(started(place)) as client:
        ring = client.service.keys
        read, failed = ring._read, []

        def fail():
            failed.append(1)
            raise OSError(client.keys["decide"])

        ring._read = fail
        with SqlLedger(place).writing("main") as writer:
            revoke_key(writer, client.keys["decide"].split("_")[1])
        until_true(lambda: len(failed) > 3)
        assert len(said) == 1  # not each time
        assert client.keys["decide"] not in str(said)
        assert client.ask("GET", "/v1/policy", "decide")[0] == 403
        ring._read = read
        until_true(lambda: client.ask("GET", "/v1/policy", "decide")[0] == 401)


def until_true(happened):
    """Wait until something has happened; what never does fails the test."""
    for _ in range(1200):
        if happened():
            return
        time.sleep(0.05)
    pytest.fail("it did not happen in a minute")


def test_keys_that_cannot_be_read_for_long_are_refused(place, monkeypatch):
    with served(started(place)) as client:
        monkeypatch.setattr(client.service.keys, "_read", dict.fromkeys)  # which raises
        monkeypatch.setattr(doors, "_OLDEST", 0.0)
        for path, role in (("/v1/status", "audit"), ("/readyz", None)):
            status, problem, headers = client.ask("GET", path, role)
            assert (status, problem["code"], headers["retry-after"]) == (503, "old_keys", "1")
        assert client.ask("GET", "/livez")[0] == 200
        monkeypatch.undo()
        assert client.ask("GET", "/v1/status", "audit")[0] == 200


def _files(place):
    path = Path(place.removeprefix("sqlite:///"))
    return [one for one in path.parent.iterdir() if one.name.startswith(path.name)]


@pytest.mark.long
def test_wrong_keys_leave_memory_flat_and_cost_less_than_right_ones(place):
    """100,000 requests with keys that nobody has; every one is another."""
    with served(started(place)) as client:
        doors = client.doors
        doors.log = lambda line: None
        rng = np.random.default_rng(0)

        async def ask(key):
            head = [(b"authorization", b"Bearer " + key.encode())]
            scope = {"type": "http", "method": "GET", "path": "/v1/policy", "headers": head}
            scope |= {"query_string": b"", "root_path": "", "scheme": "http", "server": None}
            scope |= {"client": None, "http_version": "1.1", "raw_path": b"/v1/policy"}
            sent = []

            async def receive():
                return {"type": "http.request", "body": b"", "more_body": False}

            async def send(message):
                sent.append(message)

            await doors(scope, receive, send)
            return sent[0]["status"]

        def times(keys, status):
            async def all_of_them():
                for key in keys:
                    assert await ask(key) == status

            begun = time.process_time()
            asyncio.run(all_of_them())
            return time.process_time() - begun

        wrong = (f"fc_{rng.bytes(6).hex()}_{'x' * 43}" for _ in range(20_000))
        times(wrong, 401)
        before = psutil.Process().memory_info().rss
        spent = times((f"fc_{rng.bytes(6).hex()}_{'x' * 43}" for _ in range(100_000)), 401)
        assert psutil.Process().memory_info().rss - before < 2_000_000
        right = times([client.keys["operate"]] * 20_000, 403)
        assert spent / 100_000 < right / 20_000
