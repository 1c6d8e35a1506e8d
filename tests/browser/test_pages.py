"""Objects as notebooks show them, in a browser."""

from __future__ import annotations

import pytest

from browser.checks import problems
from browser.worlds import applicants, hostile, program, results

pytestmark = pytest.mark.xdist_group("browser")


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
