"""Reports of experiments as the command writes them, and results in notebooks, in a browser."""

from __future__ import annotations

import pytest

from browser.checks import LARGEST, problems
from browser.notebook import write_notebook
from browser.trials import results
from browser.worlds import hostile, in_javascript, plain
from cli.hostile_lender import run
from fairchance_lab.experiments.results import write_results

pytestmark = pytest.mark.xdist_group("browser")


def report(folder, results):
    write_results(results, folder / "results.parquet")
    run("results", folder / "results.parquet", "-o", folder / "report.html")
    return folder / "report.html"


def test_a_report_with_hostile_names(browser, tmp_path):
    assert problems(browser, report(tmp_path, results(hostile))) == {}


@pytest.mark.long
@pytest.mark.parametrize("spell", [plain, in_javascript])
def test_a_report_with_other_names(browser, tmp_path, spell):
    assert problems(browser, report(tmp_path, results(spell))) == {}


@pytest.mark.long
def test_a_report_of_54_methods(browser, tmp_path):
    file = report(tmp_path, results(n_variants=48))
    assert file.stat().st_size < LARGEST
    assert problems(browser, file) == {}


def test_results_in_a_notebook(browser, tmp_path):
    page = write_notebook([results(hostile)], tmp_path)
    assert problems(browser, page).keys() <= {"print"}  # a notebook prints in its own way
