"""``fairchance compare``: text and JSON of the same run."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from cli.calls import refused_with
from cli.lender_files import call, done
from fairchance_lab.experiments.all_tables import against
from fairchance_lab.experiments.comparison import COMPARED, compared
from fairchance_lab.experiments.results import read_results
from fairchance_lab.experiments.verdict import find_verdict
from fairchance_lab.experiments.words import money, rate, takeaway

WORLD = """
methods = ["plain"]
repetitions = 3
[goal]
loss = 250
[world]
data = "lender"
n_batch = 120
n_rounds = 8
past = [{rule = "policy"}]
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FAIRCHANCE_DATA", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")
    (tmp_path / "mine.toml").write_text(WORLD)


def test_comparison_as_text_and_json(tmp_path, monkeypatch):
    command = ("compare", "mine.toml", "--repetitions", 2, "--jobs", 1, "--out", "out")
    command += ("--methods", "usual")
    result = done(*command)
    results = read_results(Path("out"))
    assert results.methods == COMPARED
    assert results.about == result["about"]
    want = compared(results)
    assert [row["method"] for row in result["comparison"]] == list(COMPARED)
    for row, value in zip(result["comparison"], want, strict=True):
        assert row["late"] == value.earned["late"].share
        assert row["certified_above_alpha_runs"] == value.certified.broken_runs
        assert row["true_positive_rate_A"] == value.true_positive_rates["A"]
    assert result["certificates"] == json.loads(json.dumps(results.certificates))
    assert {certificate["method"] for certificate in result["certificates"]} == {
        "certified",
        "certified-within-group",
    }

    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "parts").iterdir()}
    monkeypatch.setenv("COLUMNS", "80")
    shown = call(*command).stdout
    assert str(tmp_path / "out") in shown.replace("\n", "")
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert " ".join(shown.split()).endswith(
        "As a page with figures: fairchance results out -o out/report.html"
    )
    assert "rows repeat" not in shown  # these people are new
    verdict = find_verdict(results)
    assert takeaway(verdict) in " ".join(shown.split())
    shown = shown.splitlines()[:-2]  # the last two name a folder
    assert len(shown) <= 25
    assert max(map(len, shown)) <= 80
    assert "1 other method" in shown[-1]
    lines = {
        one.label: line
        for one in verdict.standings
        for line in shown
        if re.match(rf" {re.escape(one.label)}( \((best|worst)\))?  ", line)
    }
    assert len(lines) == 8
    assert "(best)" in lines[verdict.best.label]
    assert "(worst)" in lines[verdict.worst.label]
    for one in verdict.standings:
        if one.label in lines:
            assert money(one.earned.mean) in lines[one.label]
            assert rate(one.mistakes.mean) in lines[one.label]


def test_methods_are_tested_against_one_of_them(tmp_path):
    """A reference alone is quick; the tests themselves are tested with the tables."""
    command = ("compare", "mine.toml", "--methods", "ceiling", "--repetitions", 2, "--jobs", 1)
    command += ("--out", "out", "--against", "ceiling")
    rows = json.loads(json.dumps(done(*command)["against"]))
    found = against(read_results(Path("out")), "ceiling", 0).rows
    assert [row["p_holm"] for row in rows] == [row["p_holm"] for row in found]
    assert {row["test"] for row in rows} == {"sign-flip"}
    assert "Differences from ceiling." in call(*command).stdout
    refused_with("--against.*'plain'", *command[:-1], "plain")


OWN = """
import numpy as np
from fairchance import Decisions
def everybody(setup):
    return Everybody(setup)
class Everybody:
    round = 0
    def __init__(self, setup):
        self.seed = setup.seed
    def decide(self, X, *, sensitive_features=None, ids=None):
        self.round += 1
        yes = np.ones(len(X), bool)
        names = np.arange(len(X)) + 1000 * self.round
        return Decisions(names, yes, yes, np.ones(len(X)), np.ones(len(X)), self.round)
    def observe(self, ids, outcomes):
        if self.seed < 0:
            len(3)
"""


def own_module(monkeypatch, name, text=OWN):
    """Write a module with an own method that no other test has imported."""
    Path(f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(Path.cwd()))
    monkeypatch.delitem(sys.modules, name, raising=False)


def test_methods_of_the_file_and_own_methods_are_compared(tmp_path, monkeypatch):
    own_module(monkeypatch, "mine_compared")
    Path("mine.toml").write_text(
        WORLD.replace('"plain"', '"mine_compared:everybody", "greedy-aligned"')
    )
    command = ("compare", "mine.toml", "--repetitions", 1, "--jobs", 1)
    result = call(*command, "--out", "a")
    assert result.exit_code == 0, result.exception
    assert read_results(Path("a")).methods == (
        *("mine_compared:everybody", "greedy-aligned", "logistic-all-labels", "ceiling"),
    )
    words = " ".join(result.stdout.split())
    assert "mine_compared:everybody has no acceptance_probability(X, sensitive_features=" in words
    text = OWN + "    def acceptance_probability(self, X, sensitive_features=None):\n"
    own_module(monkeypatch, "mine_judged", text + "        return np.ones(len(X))\n")
    asked = (*command, "--methods", "mine_judged:everybody", "--out", "b")
    actual = {row["method"]: row for row in done(*asked)["comparison"]}
    assert list(actual) == ["mine_judged:everybody", "logistic-all-labels", "ceiling"]
    row = actual["mine_judged:everybody"]
    assert [row[f"true_positive_rate_{group}"] for group in "AB"] == pytest.approx([1.0, 1.0])
    assert "acceptance_probability" not in call(*asked).stdout
    refused_with("'plane'.* plain", *command, "--methods", "plane")


def test_method_that_always_fails_has_no_numbers_and_exits_with_an_error(monkeypatch):
    broken = OWN.replace("self.seed < 0", "self.round == 2").replace("len(3)", "np.dot(3)")
    own_module(monkeypatch, "mine_broken", broken)
    at = 1 + next(i for i, line in enumerate(broken.splitlines()) if "dot" in line)
    Path("mine.toml").write_text(WORLD.replace('"plain"', '"mine_broken:everybody"'))
    command = ("--repetitions", 2, "--jobs", 1, "--out", "out")
    result = call("compare", "mine.toml", *command)
    assert result.exit_code == 2
    words = " ".join(result.stdout.split())
    assert re.search(rf"\(at \S*mine_broken\.py, line {at}\)", words), words
    assert "--fresh" in result.stderr
    report = done("compare", "mine.toml", *command, code=2)
    assert len(report["failures"]) == 2

    own_module(monkeypatch, "mine_broken", OWN)
    refused_with(r"\(different code\).* --fresh", "compare", "mine.toml", *command)
    assert done("compare", "mine.toml", *command, "--fresh")["failures"] == []
    assert len(read_results(Path("out/before-1")).failures) == 2


def test_simulation_reports_the_failing_line_of_an_own_method(monkeypatch):
    monkeypatch.setattr("fairchance_lab.runs.write_report", lambda *_: None)
    deep = OWN.replace("yes = np.ones(len(X), bool)", "yes = np.linalg.inv(X)")
    own_module(monkeypatch, "mine_deep", deep)
    at = 1 + next(i for i, line in enumerate(deep.splitlines()) if "inv" in line)
    asked = ("simulate", "mine.toml", "--jobs", 1, "--repetitions", 1, "--out", "out", "--methods")
    result = call(*asked, "greedy-aligned,mine_deep:everybody")
    assert result.exit_code == 0, result.stderr
    words = " ".join(result.stdout.split())
    assert f"mine_deep.py, line {at})" in words
    assert "LinAlgError" in words
    assert call(*asked, "opt-offline,mine_deep:everybody", "--fresh").exit_code == 2


def test_simulation_json_contains_certificates(tmp_path, monkeypatch):
    monkeypatch.setattr("fairchance_lab.runs.write_report", lambda *_: None)
    Path("mine.toml").write_text(WORLD.replace('"plain"', '"certified", "plain"'))
    result = done("simulate", "mine.toml", "--repetitions", 1, "--jobs", 1)
    assert [certificate["round"] for certificate in result["certificates"]] == list(range(1, 9))


def test_invalid_comparisons_are_refused():
    refused_with("'germany'.* german", "compare", "germany")
    refused_with("no.toml", "compare", "no.toml")
    refused_with("data", "compare", "mine.toml", "--data-set", "fico")
    Path("mine.toml").write_text(WORLD + "drift = {log_odds = -0.1}\n")
    refused_with("drift", "compare", "mine.toml", "--jobs", 1)
    Path("mine.toml").write_text("judged = 3\n" + WORLD)
    refused_with("judged.* 3", "compare", "mine.toml")


def test_repeated_rows_are_reported(monkeypatch):
    Path("mine.toml").write_text(
        WORLD.replace('"plain"', '"greedy-aligned"')
        .replace("lender", "german")
        .replace("policy", "everybody")
        .replace("n_rounds = 8", "n_rounds = 3")
    )
    command = ("compare", "mine.toml", "--repetitions", 1, "--jobs", 1, "--out", "a b")
    line = (
        "A repetition draws 480 people with replacement from 1,000 rows, so rows repeat, and a "
        "learner that memorises rows looks better than it would among new people (documentation: "
        "World files)."
    )
    output = call(*command).stdout
    assert line in output
    (hint,) = re.findall(r"As a page with figures: fairchance (.*)", output)
    written = []
    monkeypatch.setattr("fairchance_lab.page.write_report", lambda *given: written.append(given))
    assert call(*shlex.split(hint)).exit_code == 0
    (((results,), page, _),) = written
    assert results.methods == ("greedy-aligned", "logistic-all-labels", "ceiling")
    assert page == Path("a b/report.html")
    assert done(*command)["people_drawn"] == 480


GUIDE = Path(__file__).parents[4] / "docs" / "worlds.md"


def test_method_of_the_guide_runs_and_reads_past_groups(monkeypatch):
    (block,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    own_module(monkeypatch, "mine_of_the_guide", block)
    asked = ("--methods", "mine_of_the_guide:patient", "--repetitions", 1, "--jobs", 1)
    result = done("compare", "mine.toml", *asked)
    own, *_ = result["comparison"]
    assert {"true_positive_rate_A", "true_positive_rate_B"} <= set(own)
    assert own["whole"] is not None
    assert result["failures"] == []
