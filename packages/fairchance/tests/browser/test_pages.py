"""Reports as the commands write them, and objects of notebooks, in a browser."""

from __future__ import annotations

from dataclasses import replace

import pytest

from browser.checks import LARGEST, problems
from browser.notebook import write_notebook
from browser.worlds import applicants, hostile, in_javascript, plain, program
from cli.hostile_lender import run
from fairchance.ledger.summary import read_details, summarise
from fairchance.pages.program import write_program_report

pytestmark = pytest.mark.xdist_group("browser")


def program_report(folder, spell):
    program(folder, spell)
    run("report", "--ledger", f"sqlite:///{folder}/lender.db", "-o", folder / "report.html")
    return folder / "report.html"


def audit_report(folder, spell):
    lender = program(folder, spell)
    words = ("--policy", f"{spell('income')} >= 0.5", "--purpose", spell("loans"))
    run("audit", lender.ledger.engine.url.render_as_string(), "-o", folder / "pack", *words)
    return folder / "pack" / "report.html"


@pytest.mark.parametrize("report", [program_report, audit_report])
def test_reports_with_hostile_names(browser, tmp_path, report):
    assert problems(browser, report(tmp_path, hostile)) == {}


def test_tables_of_a_program_fit_a_desktop(browser, tmp_path):
    wide = "es => es.filter(e => e.scrollWidth > e.clientWidth).map(e => e.ariaLabel)"
    with browser.new_page(viewport={"width": 1280, "height": 900}) as page:
        page.goto(program_report(tmp_path, plain).as_uri())
        page.locator("details").evaluate_all("es => es.forEach(e => (e.open = true))")
        assert page.locator(".scroll").evaluate_all(wide) == []


@pytest.mark.long
@pytest.mark.parametrize("spell", [plain, in_javascript])
@pytest.mark.parametrize("report", [program_report, audit_report])
def test_reports_with_other_names(browser, tmp_path, report, spell):
    assert problems(browser, report(tmp_path, spell)) == {}


@pytest.mark.long
def test_a_report_of_500_rounds(browser, tmp_path):
    lender = program(tmp_path)
    found = summarise(lender.ledger)
    rounds = [found.rounds[t % len(found.rounds)] for t in range(500)]
    found = replace(found, rounds=[replace(row, round=t + 1) for t, row in enumerate(rounds)])
    file = tmp_path / "report.html"
    write_program_report(found, read_details(lender.ledger, found), file, late=180)
    assert file.stat().st_size < LARGEST
    assert problems(browser, file) == {}


def test_objects_in_a_notebook(browser, tmp_path):
    lender = program(tmp_path, hostile)
    X, _, groups, ids = applicants(50, 9000, hostile)
    decisions = lender.decide(X, sensitive_features=groups, ids=ids)
    rounds = lender.classifier.rounds_
    page = write_notebook([decisions, rounds[-1], rounds, lender], tmp_path)
    assert problems(browser, page).keys() <= {"print"}  # a notebook prints in its own way
