"""The dashboard: who may see it, that it says what reports say, and what a look costs."""

from __future__ import annotations

import json
import re
import time
from html import unescape
from threading import Event, Thread
from urllib.parse import quote

import pytest

from cli.lender_files import call
from fairchance.ledger import Program
from fairchance.ledger.keys import ROLES
from fairchance.ledger.summary import read_details
from fairchance.pages.page import render
from fairchance.pages.program import program_page
from fairchance.service import dashboard, views
from fairchance.words.checks import verdict
from service.serving import applications, served, started

pytestmark = pytest.mark.filterwarnings("ignore::fairchance.errors.LearningWarning")

VIEWS = (*views.VIEWS, "applicant")


@pytest.fixture(scope="module")
def lender(tmp_path_factory):
    """Return a client of a service with two closed rounds and an open one."""
    url = started(f"sqlite:///{tmp_path_factory.mktemp('served')}/x.db")
    program = Program.open(url, load=False)
    with served(url) as client:
        client.url, client.program = url, program
        for t in range(3):
            decided = client.decide(applications(100 * t, 80))
            if t < 2:
                program.close_round()
            outcomes = [
                {"id": one["id"], "outcome": ("good", "bad", "not_taken")[i % 7 % 3]}
                for i, one in enumerate(decided[:40])
                if one["decision"] == "accept" and t < 2
            ]
            if outcomes:
                client.post("/v1/outcomes", "observe", {"outcomes": outcomes}, f"file {t}")
        yield client


def text(html):
    """Return the text of a page, without its charts."""
    html = re.sub(r"<(script|style|sup).*?</\1>|</?span[^>]*>", "", html, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).replace("\u00a0", " ").split())


def test_the_document_needs_no_key_and_says_nothing(lender):
    for path in dashboard.OPEN_PATHS:
        status, content, headers = lender.ask("GET", path)
        assert status == 200
        policy = headers["Content-Security-Policy"]
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy
        assert "main" not in text(content.decode()) or path.startswith("/static")
        again, nothing, _ = lender.ask("GET", path, headers={"If-None-Match": headers["ETag"]})
        assert (again, nothing) == (304, b"")
    document = lender.ask("GET", "/")[1].decode()
    assert "<style" not in document
    assert set(re.findall(r'(?:src|href)="(/[^"]*)"', document)) == dashboard.OPEN_PATHS - {"/"}


@pytest.mark.parametrize("role", [None, *ROLES])
def test_views_are_for_auditors(lender, role):
    expected = 200 if role == "audit" else 401 if role is None else 403
    for name in VIEWS:
        status, content, _ = lender.ask("GET", f"/views/{name}", role)
        assert status == expected
        assert expected == 200 or content["code"] in ("no_key", "role")


def test_a_listed_proxy_signs_people_in_to_views_only(lender):
    signed_in = {"X-Forwarded-User": "ann"}
    assert lender.ask("GET", "/views/rounds", headers=signed_in)[0] == 401
    lender.doors.proxies = frozenset({"127.0.0.1"})
    try:
        assert lender.ask("GET", "/views/rounds", headers=signed_in)[0] == 200
        keys = []
        while "proxy:ann" not in keys:  # a request is logged after it is answered
            keys = [json.loads(line)["key"] for line in list(lender.log)]
        assert lender.ask("GET", "/views/rounds", headers={"X-Forwarded-User": ""})[0] == 401
        assert lender.ask("GET", "/v1/status", headers=signed_in)[0] == 401
        assert lender.ask("POST", "/v1/pause", headers=signed_in, body={})[0] == 401
    finally:
        lender.doors.proxies = frozenset()


def test_views_have_the_sections_of_the_report(lender):
    """The same words, tables and charts: there is no second set."""
    with lender.program.reading() as view:
        summary = view.summary()
        state = views.read_state(view)
    page = program_page(summary, read_details(lender.program.ledger, summary), 180.0)
    report = render("", [page], "")
    charts = set(re.findall(r'<script type="application/json">.*?</script>', report))
    said, seen = text(report), set()
    for name in views.VIEWS:
        html = lender.ask("GET", f"/views/{name}", "audit")[1].decode()
        seen |= set(re.findall(r'<script type="application/json">.*?</script>', html))
        if name == "overview":
            assert verdict(state.checks) in text(html)
            assert text(html).count("Ramp") == said.count("Ramp")
        for section in page.sections:
            if section.id in views.VIEWS[name][1]:
                assert section.brief in text(html)
    assert charts <= seen


def test_groups_are_shown_three_ways(lender):
    said = text(lender.ask("GET", "/views/groups", "audit")[1].decode())
    for way in ("As recorded", "Corrected", "Without assumptions"):
        assert way in said


def test_groups_have_a_view_before_the_first_round(tmp_path):
    with Program.open(started(f"sqlite:///{tmp_path}/x.db"), load=False).reading() as view:
        assert views.read_gaps(view).parts


def test_a_decision_can_be_followed(lender):
    html = lender.ask("GET", "/views/applicant", "audit")[1].decode()
    links = re.findall(r'href="#/applicant/([^"]*)"', html)
    assert len(links) == 20
    file = text(lender.ask("GET", f"/views/applicant?id={links[0]}", "audit")[1].decode())
    shown = call("show", links[0], "--ledger", lender.url).stdout.splitlines()
    assert shown[0] in file
    for line in shown[1:-1]:
        assert line.partition(": ")[2].replace("  ", " ") in file
    hostile = "<img src=x onerror=alert(1)>"
    content = lender.ask("GET", f"/views/applicant?id={quote(hostile)}", "audit")[1].decode()
    assert hostile not in content
    assert hostile in text(content)
    assert lender.ask("GET", "/views/nothing", "audit")[0] == 404


def test_views_that_wait_keep_nobody_else_waiting(lender, monkeypatch):
    ended, read = Event(), views.read_state
    monkeypatch.setattr(views, "read_state", lambda view: ended.wait(60) and read(view))
    monkeypatch.setattr(dashboard, "_REST", 0)
    lender.decide(applications(400))
    threads = [
        Thread(target=lender.ask, args=("GET", "/views/rounds", "audit"), daemon=True)
        for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    while sum(lender.service._n_waiting.values()) < 5:
        time.sleep(0.01)
    asked = Thread(target=lender.ask, args=("GET", "/readyz"), daemon=True)
    asked.start()
    asked.join(20)
    is_answered = not asked.is_alive()
    ended.set()
    for thread in threads:
        thread.join()
    assert is_answered


def test_what_was_read_is_shown_to_everybody_for_a_while(lender, monkeypatch):
    times = []
    read = views.read_state
    monkeypatch.setattr(views, "read_state", lambda view: times.append(1) or read(view))
    monkeypatch.setattr(dashboard, "_REST", 0)
    lender.decide(applications(500))
    for name in ("overview", "rounds", "overview", "events"):
        lender.ask("GET", f"/views/{name}", "audit")
    assert len(times) == 1  # nothing was recorded meanwhile
    lender.decide(applications(501))
    before = lender.ask("GET", "/views/overview", "audit")[1]
    assert len(times) == 2
    monkeypatch.setattr(dashboard, "_REST", 1e6)
    lender.decide(applications(502))
    assert lender.ask("GET", "/views/overview", "audit")[1] == before
    assert len(times) == 2  # so soon it is not read again, whatever is recorded
