"""The tutorial notebook: what it stores, and that its cells run."""

import ast
import json
import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import altair as alt
import pytest

from browser.checks import problems
from fairchance.pages.page import Figure, Page, Section, render
from fairchance_lab.experiments.verdict import find_verdict

PATH = Path(__file__).parents[1] / "docs" / "tutorial.ipynb"
CELLS = json.loads(PATH.read_text())["cells"]
CODE = [cell for cell in CELLS if cell["cell_type"] == "code"]
PROSE = " ".join("".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "markdown")
PROSE = " ".join(PROSE.split())
# A quick run: fewer rounds, applicants and repetitions.
SHORTER = {
    "N_ROUNDS = 20": "N_ROUNDS = 3",
    "applicants(20_000)": "applicants(2000)",
    "applicants(1500)": "applicants(400)",
    '"n_rounds": 12': '"n_rounds": 2',
    '"n_batch": 1000': '"n_batch": 200',
    '"repetitions": 5': '"repetitions": 2',
}


def stored(cell, kind):
    """Return what a cell printed or showed, as text."""
    if kind == "printed":
        return "".join("".join(out["text"]) for out in cell["outputs"] if "text" in out)
    return "".join("".join(out.get("data", {}).get(kind, "")) for out in cell["outputs"])


def execute(source, names):
    """Run a cell; return what it printed and the value of its last line."""
    *lines, last = ast.parse(source).body
    printed, value = StringIO(), None
    with redirect_stdout(printed):
        if not isinstance(last, ast.Expr):
            lines, last = [*lines, last], None
        exec(compile(ast.Module(lines, []), PATH.name, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), PATH.name, "eval"), names)
    return printed.getvalue(), value


def test_every_cell_was_run_in_order_and_shows_its_chart():
    assert [cell["execution_count"] for cell in CODE] == list(range(1, len(CODE) + 1))
    assert PATH.stat().st_size < 1_000_000
    for cell in CODE:
        assert not any(out["output_type"] == "error" for out in cell["outputs"])
        assert bool(stored(cell, "image/png")) == ("_chart" in "".join(cell["source"]))


def test_the_text_states_the_numbers_that_the_cells_print():
    printed = " ".join(stored(cell, "printed") for cell in CODE)
    expected, real = re.search(r"expected: (\d+)%, real: (\d+)%", printed).groups()
    assert f"expects {expected} % bad loans, and {real} % are bad" in PROSE
    shown = " ".join(stored(cell, "text/plain") for cell in CODE)
    country, town = (re.search(rf"{name} +(0\.\d+)", shown)[1] for name in ("country", "town"))
    assert f"accepted {float(country):.0%} of the applicants from the country" in (
        PROSE.replace(" %", "%")
    )
    assert f"and {float(town):.0%} of those from town" in PROSE.replace(" %", "%")
    status = re.findall(r"round=\d+, group=None, status='(\w+)'", shown)[:20]
    assert status == ["pilot"] * 2 + ["certified"] * 18
    assert "first 2 rounds are pilots" in PROSE
    mistakes, allowed = re.search(r"policy: ([\d.]+)%, allowed: (\d+)%", printed).groups()
    assert float(mistakes) <= float(allowed)


def test_links_lead_to_files():
    links = re.findall(r"\]\(([^)]+)\)", PROSE)
    assert links
    assert all((PATH.parent / link).is_file() for link in links)


def quick_run():
    """Run the cells with few applicants; return their names, and the charts by name."""
    names, sources = {}, ["".join(cell["source"]) for cell in CODE]
    for long, short in SHORTER.items():
        assert any(long in source for source in sources)
        sources = [source.replace(long, short) for source in sources]
    with alt.renderers.enable(alt.renderers.active):  # the first cell changes it
        for source in sources:
            execute(source, names)
    return names, {name: value for name, value in names.items() if name.endswith("_chart")}


def test_the_cells_run():
    names, charts = quick_run()
    assert len(charts) == 6
    for chart in charts.values():
        assert chart.to_dict()["$schema"]
    assert names["mistakes"] < 1 - names["repays_new"].mean()  # that of accepting everybody


@pytest.mark.long
def test_the_cells_give_what_the_file_stores():
    names = {}
    with alt.renderers.enable(alt.renderers.active):  # the first cell changes it
        for cell in CODE:
            printed, value = execute("".join(cell["source"]), names)
            assert printed == stored(cell, "printed")
            if hasattr(value, "_repr_html_") and not isinstance(value, alt.TopLevelMixin):
                assert value._repr_html_() == stored(cell, "text/html")
    earned = {
        one.method: float(one.earned.mean) for one in find_verdict(names["results"]).standings
    }
    assert earned["certified"] > earned["explore-fair"] > 1.3 * earned["no-exploration"]


@pytest.mark.xdist_group("browser")
def test_the_charts_in_a_browser(browser, tmp_path):
    _, charts = quick_run()
    figures = [Figure(name, chart, name) for name, chart in charts.items()]
    section = Section("charts", "Charts", parts=figures)
    page = Page("tutorial", "Tutorial", "Charts.", "All of them.", "", sections=[section])
    file = tmp_path / "charts.html"
    file.write_text(render("Tutorial", [page], ""), encoding="utf-8")
    assert problems(browser, file) == {}
