"""Reports as the commands write them, charts and objects of notebooks, in a browser."""

from __future__ import annotations

from dataclasses import replace

import pytest

from browser.checks import problems
from browser.worlds import applicants, hostile, in_javascript, plain, program, results
from cli.hostile_lender import run
from fairchance.cli.pages.page import Figure, Page, Section, render
from fairchance.cli.pages.program import write_program_report
from fairchance.ledger.summary import read_details, summarise
from fairchance_lab.experiments.results import write_results
from test_tutorial import quick_run

pytestmark = pytest.mark.xdist_group("browser")
LARGEST = 5 * 2**20  # bytes


def program_report(folder, spell):
    program(folder, spell)
    run("report", "--ledger", f"sqlite:///{folder}/lender.db", "-o", folder / "report.html")
    return folder / "report.html"


def experiment_report(folder, spell):
    write_results(results(spell), folder / "results.parquet")
    run("report", folder / "results.parquet", "-o", folder / "report.html")
    return folder / "report.html"


def audit_report(folder, spell):
    lender = program(folder, spell)
    words = ("--policy", f"{spell('income')} >= 0.5", "--purpose", spell("loans"))
    run("audit", lender.ledger.engine.url.render_as_string(), "-o", folder / "pack", *words)
    return folder / "pack" / "report.html"


@pytest.mark.parametrize("report", [experiment_report, program_report, audit_report])
def test_reports_with_hostile_names(browser, tmp_path, report):
    assert problems(browser, report(tmp_path, hostile)) == {}


@pytest.mark.long
@pytest.mark.parametrize("spell", [plain, in_javascript])
@pytest.mark.parametrize("report", [experiment_report, program_report, audit_report])
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


@pytest.mark.long
def test_a_report_of_54_methods(browser, tmp_path):
    write_results(results(n_variants=48), tmp_path / "results.parquet")
    run("report", tmp_path / "results.parquet", "-o", tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < LARGEST
    assert problems(browser, tmp_path / "report.html") == {}


NOTEBOOK = """<!doctype html><html lang="en" data-ready="yes"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>Objects</title>
<style>@media (prefers-color-scheme: dark) {{ body {{ background: #111; color: #eee }} }}</style>
</head><body><main><h1>Objects</h1>{}</main></body></html>"""


def test_objects_in_a_notebook(browser, tmp_path):
    lender = program(tmp_path, hostile)
    X, _, groups, ids = applicants(50, 9000, hostile)
    decisions = lender.decide(X, sensitive_features=groups, ids=ids)
    rounds = lender.classifier.rounds_
    objects = (decisions, rounds[-1], rounds, lender, results(hostile))
    page = tmp_path / "objects.html"
    html = NOTEBOOK.format("".join(shown._repr_html_() for shown in objects))
    page.write_text(html, encoding="utf-8")
    assert problems(browser, page).keys() <= {"print"}  # a notebook prints in its own way


def test_charts_of_the_tutorial(browser, tmp_path):
    _, charts = quick_run()
    figures = [Figure(name, chart, name) for name, chart in charts.items()]
    section = Section("charts", "Charts", parts=figures)
    page = Page("tutorial", "Tutorial", "Charts.", "All of them.", "", sections=[section])
    file = tmp_path / "charts.html"
    file.write_text(render("Tutorial", [page], ""), encoding="utf-8")
    assert problems(browser, file) == {}
