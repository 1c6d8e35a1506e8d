"""What the service answers: decisions, outcomes, files, listings, and refusals."""

from __future__ import annotations

import itertools
import json
import logging
import re
import sqlite3
import threading
from contextlib import closing
from unittest.mock import Mock

import pytest

import ledger_worlds
from cli.lender_files import done, refused
from fairchance.errors import InputError
from fairchance.ledger import Program, verify
from fairchance.ledger.keys import ROLES
from fairchance.methods.policy import Policy
from fairchance.methods.storage import loads
from fairchance.service.threads import Service
from service.serving import INCUMBENT, applications, make_program, served, started

pytestmark = pytest.mark.filterwarnings("ignore::fairchance.errors.LearningWarning")


@pytest.fixture
def client(url):
    with served(started(url)) as client:
        yield client
    assert verify(url).problem is None


@pytest.fixture
def file_client(place):
    with served(started(place)) as client:
        yield client


@pytest.fixture
def worded_client(place):
    """Return a client of a program with a text, which may be missing, and a date."""
    features = 'groups = ["sex"]\nfeatures = ["income", "debt", "area", "born"]'
    config = INCUMBENT.replace('groups = ["sex"]', features) + 'group_mode = "blind"\n'
    areas, days = ["north", "south", ""], ["2001-01-31", "1970-05-06"]
    make_program(place, config, area=areas * 200, born=days * 300)
    with served(place) as client:
        yield client


def worded(first, **changed):
    """Return an application with a text and a date."""
    (one,) = applications(first)
    one["features"] |= {"area": "north", "born": "2001-01-31"} | changed
    return one


def test_decisions_are_recorded_and_repeated(client):
    rows = applications(0, 30)
    decided = client.decide(rows)
    assert [one["id"] for one in decided] == [row["id"] for row in rows]
    assert {one["round"] for one in decided} == {1}
    assert client.decide(rows) == decided
    assert client.decide(rows[3:5]) == decided[3:5]
    assert client.decide([*rows[:2], *applications(30)])[:2] == decided[:2]
    rejected = [one for one in decided if one["decision"] == "reject" and one["incumbent"]]
    for one in rejected:
        assert all(reason["column"] in ("income", "debt") for reason in one["reasons"])
    other = applications(0)
    other[0]["features"]["debt"] += 1
    problem = client.decide(other, code=422)
    assert (problem["code"], problem["status"]) == ("other_content", 422)
    problem = client.decide([{**rows[0], "incumbent": not rows[0]["incumbent"]}], code=422)
    assert problem["code"] == "other_content"


def test_decisions_are_those_of_the_program(client, url):
    rows = applications(0, 40)
    decided = client.decide(rows)
    with Program.open(url, load=False).reading() as view:
        ids = [row["id"] for row in rows]
        recorded = view.reader.recorded(ids)
        assert {one["id"]: one["receipt"] for one in decided} == {
            name: receipt.hex()
            for name, receipt in zip(recorded.people.applications, recorded.receipts, strict=True)
        }


def test_one_wrong_application_keeps_all_of_its_request_out_and_no_other(client):
    rows = applications(0, 5)
    wrong = [*rows[:2], {**rows[2], "barred": True, "incumbent": True}]
    answers = {}

    def ask(name, body, code):
        answers[name] = client.decide(body, code=code)

    requests = [("wrong", wrong, 422), *((at, applications(at), 200) for at in range(10, 30))]
    threads = [threading.Thread(target=ask, args=request) for request in requests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 21
    assert client.get(f"/v1/decisions/{rows[0]['id']}", "audit", code=404)["code"] == "unknown_id"


def test_a_date_that_no_calendar_has_in_utc_is_refused(worded_client):
    for at, day in enumerate(("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00")):
        problem = worded_client.decide([worded(at, born=day)], code=422)
        assert problem["errors"][0]["pointer"] == "/applications/0/features/born"
    rows = [worded(at) for at in range(10, 30)]  # of which the last is read apart from the first
    rows[-1]["features"]["born"] = 20010131
    problem = worded_client.decide(rows, code=422)
    assert [one["pointer"] for one in problem["errors"]] == ["/applications/19/features/born"]
    one = worded(5, born="2001-01-31T02:00:00+02:00")
    assert worded_client.decide([one]) == worded_client.decide([worded(5)])


def test_an_empty_text_is_a_missing_value(worded_client):
    hidden = {"groups": {"sex": None}}
    (decided,) = worded_client.decide([worded(0, area=None) | hidden])
    assert worded_client.decide([worded(0, area="") | {"groups": {"sex": ""}}]) == [decided]


def test_a_bug_with_one_application_keeps_no_other_out(file_client, monkeypatch):
    decider, wrong = file_client.service.decider, applications(0)[0]["id"]
    decide = decider._decide

    def decide_or_fail(rows):
        if wrong in [one.id for one in rows]:
            raise OverflowError
        return decide(rows)

    monkeypatch.setattr(decider, "_decide", decide_or_fail)
    asked = [
        Mock(applications=[file_client.service.form.Application(**applications(at)[0])])
        for at in range(3)
    ]
    failed, *others = decider._answers(asked)
    assert isinstance(failed, OverflowError)
    assert [type(one) for one in others] == [list, list]


def test_a_client_that_repeats_itself_costs_others_little(file_client, monkeypatch):
    """The others are decided together, and who is refused, or on record, apart from them."""
    decider, calls = file_client.service.decider, []
    decide = decider._decide

    def counted(rows):
        calls.append(len(rows))
        return decide(rows)

    def asked(rows):
        return [Mock(applications=[form.Application(**row)]) for row in rows]

    def answers(together):
        calls.clear()
        found = {}
        for some in decider._known_apart(together):
            found |= dict(zip(some, decider._answers(some), strict=True))
        return [found[one] for one in together]

    monkeypatch.setattr(decider, "_decide", counted)
    form, n = file_client.service.form, 64
    (known,) = applications(0)
    file_client.decide([known])
    other = {**known, "incumbent": not known["incumbent"]}
    wrong = {**applications(1)[0], "groups": {"sex": "x"}}
    for first in (100, 200):
        rows = asked([*applications(first, n), known, other, wrong])
        *good, repeated, refused, unusable = answers(rows)
        assert [one[0]["id"] for one in good] == [row.applications[0].id for row in rows[:n]]
        assert repeated[0]["id"] == known["id"]
        assert refused.code == "other_content"
        assert unusable.code == "input"
        if first > 100:
            assert calls[0] == n  # by one call
    assert len(calls) <= 1 + 5
    rows = asked([*applications(300, n), {**wrong, "id": "never seen"}])
    assert answers(rows)[-1].code == "input"
    assert len(calls) <= 1 + 2 * n.bit_length()  # halves of halves


def test_applications_that_come_twice_at_once_are_decided_once(file_client):
    decider, form = file_client.service.decider, file_client.service.form
    rows = applications(0, 3) * 2
    together = [Mock(applications=[form.Application(**row)]) for row in rows]
    new, again = decider._known_apart(together)
    assert (new, again) == (together[:3], together[3:])
    assert decider._answers(new) == decider._answers(again)


@pytest.mark.parametrize(
    ("change", "pointer", "code"),
    [
        (lambda one: one["features"].update(debt="many"), "features/debt", "not_a_number"),
        (lambda one: one["features"].update(debt=None), "features/debt", "not_a_number"),
        (lambda one: one["features"].pop("debt"), "features/debt", "missing"),
        (lambda one: one["features"].update(depth=1), "features/depth", "unknown_column"),
        (lambda one: one["groups"].pop("sex"), "groups/sex", "missing"),
        (lambda one: one.pop("incumbent"), "incumbent", "missing"),
        (lambda one: one.update(incumbent="yes"), "incumbent", "not_a_decision"),
        (lambda one: one["groups"].update(sex=""), "groups/sex", "missing"),
        (lambda one: one.update(id=""), "id", "missing"),
        (lambda one: one.update(id="a\0"), "id", "nul"),
        (lambda one: one.update(id="a" * 201), "id", "too_long"),
        (lambda one: one.update(id=7), "id", "not_text"),
        (lambda one: one.update(colour="red"), "colour", "unknown_column"),
    ],
)
def test_what_is_wrong_with_an_application_is_named(file_client, change, pointer, code):
    (one,) = applications(0)
    change(one)
    problem = file_client.decide([*applications(1), one], code=422)
    found = {error["pointer"]: error["code"] for error in problem["errors"]}
    assert code in {
        value for place, value in found.items() if place.startswith(f"/applications/1/{pointer}")
    }


def test_what_the_library_refuses_has_its_code_and_sentence(file_client):
    problem = file_client.decide([{**applications(0)[0], "groups": {"sex": "x"}}], code=422)
    assert problem["code"] == "input"
    assert "'x'" in problem["detail"]
    problem = file_client.decide([{**applications(0)[0], "id": " a "}], code=422)
    assert "NFC" in problem["detail"]


def test_outcomes_under_a_name(client):
    decided = client.decide(applications(0, 60))
    accepted = [one["id"] for one in decided if one["decision"] == "accept"]
    rejected = [one["id"] for one in decided if one["decision"] == "reject"]
    words = itertools.cycle(["good", "bad", "withdrawn", "not_taken", "good"])
    sent = [{"id": name, "outcome": next(words)} for name in accepted[:10]]
    first = client.post("/v1/outcomes", "observe", {"outcomes": sent}, "march")
    assert first["entries"][0]["n"] == 10
    assert first["entries"][0]["kind"] == "outcomes"
    assert client.post("/v1/outcomes", "observe", {"outcomes": sent}, "march") == first
    other = [{**sent[0], "outcome": "bad"}]
    problem = client.post("/v1/outcomes", "observe", {"outcomes": other}, "march", code=422)
    assert problem["code"] == "other_content"
    problem = client.post("/v1/outcomes", "observe", {"outcomes": sent}, code=400)
    assert problem["code"] == "no_idempotency_key"
    wrong = [{"id": rejected[0], "outcome": "good"}]
    client.post("/v1/outcomes", "observe", {"outcomes": wrong}, "april", code=422)
    client.post("/v1/outcomes", "observe", {"outcomes": [{"id": "x", "outcome": "good"}]}, "x", 422)
    corrected = client.post("/v1/outcomes", "observe", {"outcomes": other}, "may")
    assert [(one["kind"], one["n"]) for one in corrected["entries"]] == [("correction", 1)]
    file = client.get(f"/v1/decisions/{accepted[0]}", "operate")
    assert [one["outcome"] for one in file["outcomes"]] == ["good", "bad"]
    assert {one["by"] for one in file["outcomes"]} == {client.keys["observe"].split("_")[1]}


def test_the_same_request_in_flight_is_refused(file_client):
    decided = file_client.decide(applications(0, 20))
    sent = {
        "outcomes": [
            {"id": one["id"], "outcome": "good"} for one in decided if one["decision"] == "accept"
        ]
    }
    with file_client.service.once_at_a_time("outcomes", "n"):
        assert file_client.post("/v1/outcomes", "observe", sent, "n", 409)["code"] == "in_flight"
    file_client.post("/v1/outcomes", "observe", sent, "n")


def test_overrides_holds_and_erasures(client):
    decided = client.decide(applications(0, 40))
    no = next(one["id"] for one in decided if one["decision"] == "reject")
    yes = next(one["id"] for one in decided if one["decision"] == "accept")
    body = {"ids": [no], "accepted": True, "reason": "has a guarantor"}
    first = client.post("/v1/overrides", "operate", body, "o1")
    assert client.post("/v1/overrides", "operate", body, "o1") == first
    client.post("/v1/overrides", "operate", {**body, "accepted": None}, "o2")
    client.post("/v1/holds", "operate", {"ids": [yes], "reason": "case 1"}, "h1")
    erasure = {"ids": [yes], "reason": "asked", "early": True}
    assert "hold" in client.post("/v1/erasures", "operate", erasure, "e1", code=422)["detail"]
    release = {"ids": [yes], "reason": "closed", "held": False}
    client.post("/v1/holds", "operate", release, "h2")
    file = client.get(f"/v1/decisions/{no}", "operate")
    assert [one["accepted"] for one in file["overrides"]] == [True, False]
    file = client.get(f"/v1/decisions/{yes}", "operate")
    assert [one["held"] for one in file["holds"]] == [True, False]
    problem = client.post("/v1/erasures", "operate", {**erasure, "early": False}, "e1", code=422)
    assert problem["option"] == "early"
    gone = client.post("/v1/erasures", "operate", erasure, "e1")
    assert [one["n"] for one in gone["entries"]] == [1]
    assert client.post("/v1/erasures", "operate", erasure, "e1") == gone
    client.get(f"/v1/decisions/{yes}", "operate", code=404)


def test_an_erasure_says_if_files_may_still_hold_the_applicants(client, url):
    rows = applications(0, 2)
    client.decide(rows)
    erasure = {"ids": [row["id"] for row in rows], "reason": "asked", "early": True}
    is_file = url.startswith("sqlite:///")
    with closing(sqlite3.connect(url.removeprefix("sqlite:///") if is_file else "")) as reader:
        if is_file:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM people").fetchone()
        gone = client.post("/v1/erasures", "operate", erasure, "e1")
    assert [one["code"] for one in gone["warnings"]] == ["not_compacted"]
    assert "erased" in gone["warnings"][0]["detail"]
    again = client.post("/v1/erasures", "operate", erasure, "e1")
    assert again["entries"] == gone["entries"]
    assert ("warnings" in again) == (not is_file)  # nobody reads the file now


def test_metrics_say_which_outcomes_are_of_applicants_accepted_by_hand(file_client):
    decided = file_client.decide(applications(0, 40))
    no = next(one["id"] for one in decided if one["decision"] == "reject")
    override = {"ids": [no], "accepted": True, "reason": "has a guarantor"}
    file_client.post("/v1/overrides", "operate", override, "o1")
    file_client.post("/v1/ramp", "operate", {"ramp": 1.0})  # which closes the round
    text = file_client.get("/metrics", "operate").decode()
    found = {
        name: float(re.search(rf"^fairchance_{name}{{.*{label}.*}} (.*)$", text, re.M)[1])
        for name, label in (("outcomes", "pending"), ("pending", "Inf"))
    }
    assert found["pending"] == found["outcomes"] + 1
    says = dict(re.findall(r"^# HELP fairchance_(\w+) (.*)$", text, re.M))
    assert "without applicants accepted by hand" in says["outcomes"]
    assert "also of applicants accepted by hand" in says["pending"]


def test_the_ramp_and_a_pause(client):
    client.decide(applications(0, 10))
    assert client.post("/v1/ramp", "operate", {"ramp": 0.2}) == {"ramp": 0.2, "paused": False}
    assert client.decide(applications(10, 5))[0]["ramp"] == 0.2
    assert client.post("/v1/pause", "operate", name="stop")["paused"]
    assert client.post("/v1/pause", "operate", name="stop")["paused"]
    paused = client.decide(applications(15, 10))
    assert {(one["status"], one["decision"] == "accept") for one in paused} <= {
        ("shadow", True),
        ("shadow", False),
    }
    assert all((one["decision"] == "accept") == one["incumbent"] for one in paused)
    assert client.post("/v1/resume", "operate") == {"ramp": 0.2, "paused": False}
    assert client.decide(applications(25))[0]["round"] == 4
    rounds = client.get("/v1/rounds", "operate")
    assert [one["round"] for one in rounds["rounds"]] == [1, 2, 3]
    assert rounds["open"]["round"] == 4


def test_a_pause_ends_no_service_whose_rounds_are_opened_by_hand(place):
    Program.open(started(place, at_most=None)).open_round(100, incumbent=True)
    with served(place) as client:
        assert client.decide(applications(0))[0]["round"] == 1
        client.post("/v1/pause", "operate", name="stop")
        paused = client.decide(applications(1))[0]
        assert (paused["round"], paused["status"]) == (2, "shadow")
        client.post("/v1/resume", "operate")
        assert client.decide(applications(2))[0]["round"] == 3
        Program.open(place).close_round()
        assert client.decide(applications(3), code=409)["code"] == "no_round"


def test_decisions_by_the_policy_are_imported(client):
    rows = applications(0, 10)
    client.decide(rows[:2])
    policy = loads(client.get("/v1/policy", "edge"), holds=Policy)
    X, given = client.service.form.arrays([client.service.form.Application(**row) for row in rows])
    made = policy.decide(X.X, **given).accepted.tolist()
    body = {"round": policy.round, "at": "2031-03-01", "where": "branch 7"}
    body["applications"] = [{**row, "accepted": yes} for row, yes in zip(rows, made, strict=True)]
    answer = client.post("/v1/decisions:import", "edge", body)
    decided = answer["decisions"]
    assert [one["decision"] == "accept" for one in decided] == made
    assert answer["after_close"] is False
    assert client.decide(rows) == decided
    more = applications(10)
    X, given = client.service.form.arrays([client.service.form.Application(**more[0])])
    wrong = not policy.decide(X.X, **given).accepted[0]
    body["applications"] = [{**more[0], "accepted": bool(wrong)}]
    assert "follow" in client.post("/v1/decisions:import", "edge", body, code=422)["detail"]
    client.post("/v1/pause", "operate")
    body |= {"at": "2199-01-01", "applications": [{**more[0], "accepted": not wrong}]}
    assert client.post("/v1/decisions:import", "edge", body)["after_close"] is True
    body["at"] = "noon"
    assert client.post("/v1/decisions:import", "edge", body, code=422)["option"] == "at"


def test_pages_of_decisions(client):
    decided = client.decide(applications(0, 25))
    names, cursor = [], ""
    while True:
        page = client.get(f"/v1/decisions?limit=10{cursor}", "audit")
        names += [one["id"] for one in page["decisions"]]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    assert sorted(names) == sorted(one["id"] for one in decided)
    client.post("/v1/ramp", "operate", {"ramp": 1.0})  # which closes the round
    assert client.get("/v1/decisions?since=2100-01-01", "audit")["decisions"] == []
    assert len(client.get("/v1/decisions", "audit")["decisions"]) == 25


def test_status_and_metrics(client, url):
    decided = client.decide(applications(0, 30))
    accepted = sum(one["decision"] == "accept" for one in decided)
    status = client.get("/v1/status", "operate")
    assert status["open_round"]["n_people"] == 30
    assert status["groups"] == []
    assert client.get("/v1/status", "audit")["program"] == "main"
    text = client.get("/metrics", "operate").decode()
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    named = '{program="main"}'
    assert float(values[f"fairchance_decisions{named}"]) == 30
    assert float(values[f"fairchance_accepted{named}"]) == accepted
    expected = sum(one["propensity"] for one in decided)
    assert float(values[f"fairchance_accepted_expected{named}"]) == pytest.approx(expected)
    assert float(values[f"fairchance_ramp{named}"]) == 1
    assert 'fairchance_light{program="main",question="record"}' in values or any(
        "fairchance_light" in name for name in values
    )


ALLOWED = {
    ("POST", "/v1/decisions"): {"decide", "edge"},
    ("POST", "/v1/decisions:import"): {"edge"},
    ("POST", "/v1/outcomes"): {"observe"},
    ("POST", "/v1/overrides"): {"operate"},
    ("POST", "/v1/holds"): {"operate"},
    ("POST", "/v1/erasures"): {"operate"},
    ("POST", "/v1/ramp"): {"operate"},
    ("POST", "/v1/pause"): {"operate"},
    ("POST", "/v1/resume"): {"operate"},
    ("GET", "/v1/decisions"): {"operate", "audit"},
    ("GET", "/v1/decisions/{id}"): {"operate", "audit"},
    ("GET", "/v1/status"): {"operate", "audit"},
    ("GET", "/v1/rounds"): {"operate", "audit"},
    ("GET", "/v1/policy"): {"edge"},
    ("GET", "/metrics"): {"operate", "audit"},
}


def test_every_role_is_refused_what_it_may_not_do(file_client):
    described = file_client.get("/openapi.json", "audit")["paths"]
    paths = {(method.upper(), path) for path, methods in described.items() for method in methods}
    assert paths == set(ALLOWED)
    before = file_client.service.program.checkpoint()
    for (method, path), roles in ALLOWED.items():
        for role in (*ROLES, None):
            status, problem, _ = file_client.ask(method, path.replace("{id}", "a"), role)
            if role not in roles:
                assert status == (401 if role is None else 403), (path, role, problem)
            else:
                assert status not in (401, 403, 500), (path, role, problem)
    assert file_client.service.program.checkpoint().number <= before.number + 2  # pause, resume


def test_only_audit_sees_groups(file_client):
    (row,) = applications(0)
    file_client.decide([row])
    path = f"/v1/decisions/{row['id']}"
    assert file_client.get(path, "audit")["groups"] == row["groups"]
    assert file_client.get(path, "operate")["groups"] is None
    file_client.post("/v1/ramp", "operate", {"ramp": 1.0})
    # The receipt covers the groups, too.
    assert file_client.get(path, "audit")["proof"]["fits"] is True
    assert file_client.get(path, "operate")["proof"]["fits"] is None
    assert file_client.get("/v1/status", "audit")["groups"]
    assert not file_client.get("/v1/status", "operate")["groups"]


@pytest.mark.parametrize("option", ['ranks = "within-group"', 'certify = "per-group"'])
def test_what_depends_on_groups_does_not_tell_them(place, option):
    config = INCUMBENT.replace("horizon = 6", f"horizon = 6\n{option}")
    rows = applications(0, 300)
    with served(started(place, config)) as client:
        client.decide(rows)
        client.post("/v1/ramp", "operate", {"ramp": 1.0})
        client.decide(applications(300, 300))  # the rank of an applicant is known by now
        client.post("/v1/ramp", "operate", {"ramp": 0.9})
        for path in ("/v1/status", "/v1/rounds", "/metrics"):
            told = {role: str(client.get(path, role)) for role in ("operate", "audit")}
            assert not re.search(r"\b[fm]\b", told["operate"])
            if "certify" in option:
                assert re.search(r"\bf\b", told["audit"])
                assert "group 1" in told["operate"]
        path = f"/v1/decisions/{rows[0]['id']}"
        assert client.get(path, "operate")["decision"]["threshold"] is None
        assert client.get(path, "audit")["decision"]["threshold"] is not None


def test_nobody_gets_the_seed(file_client):
    file_client.decide(applications(0))
    policy = loads(file_client.get("/v1/policy", "edge"), holds=Policy)
    assert "seed" not in {*vars(policy)} | {*vars(policy.reader)}
    seed = Program.open(str(file_client.service.program.ledger.engine.url)).classifier.random_state
    assert seed == 3
    assert policy.round_key != seed


def test_a_revoked_key_is_refused(file_client, place):
    key = file_client.keys["decide"].split("_")[1]
    done("keys", "revoke", key, "--ledger", place)
    file_client.service.keys.refresh()
    assert file_client.decide(applications(0), code=401)["code"] == "no_key"


def test_the_log_names_nobody(file_client):
    (row,) = applications(0)
    trace = f"00-{'a' * 32}-{'b' * 16}-01"
    body = {"applications": [row]}
    status, _, headers = file_client.ask(
        "POST", "/v1/decisions", "decide", body, {"traceparent": trace}
    )
    assert status == 200
    assert headers["traceparent"] == trace
    file_client.get(f"/v1/decisions/{row['id']}", "audit")
    file_client.ask("GET", "/livez")  # a request is logged after it is answered
    first, second, *_ = map(json.loads, file_client.log)
    assert first["id"] == headers["x-request-id"]
    assert (first["traceparent"], first["policy"], first["status"]) == (trace, 1, 200)
    assert {*first["ms"]} >= {"wait", "decide", "total"}
    assert second["route"] == "/v1/decisions/{id}"
    assert row["id"] not in "".join(file_client.log)


def test_a_bug_is_logged_without_its_message(file_client, monkeypatch, caplog):
    caplog.set_level("ERROR", "uvicorn.error")
    monkeypatch.setattr(logging.getLogger("uvicorn.error"), "handlers", [caplog.handler])
    monkeypatch.setattr(file_client.service.program, "decide_in_round", {}.__getitem__)
    assert file_client.decide(applications(0), code=500)["code"] == "bug"
    assert file_client.ask("GET", "/livez")[0] == 200  # all about the bug is said by now
    assert "TypeError" in json.loads(file_client.log[0])["bug"]
    assert not caplog.records


def test_a_program_without_rounds_is_not_served_unless_one_is_open(place):
    program, _, _ = ledger_worlds.started(place, ledger_worlds.certified())
    with pytest.raises(InputError, match="no \\[rounds\\] and no round is open"):
        Service(program)
    assert refused("serve", "--ledger", place).startswith("program 'main' has no [rounds]")
    program.open_round(100)
    with served(place) as client:
        row = {"id": 7000, "features": {f"x{at}": 0.5 for at in range(3)}, "groups": {"group": "A"}}
        (decided,) = client.decide([row])
        assert (decided["id"], decided["round"]) == (7000, 1)
        file = client.get("/v1/decisions/7000", "audit")
        assert (file["features"], file["groups"]) == (row["features"], row["groups"])
        client.post("/v1/pause", "operate")
        assert client.decide([{**row, "id": 8000}], code=409)["code"] == "paused"
