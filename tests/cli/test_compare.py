"""``secondlook compare``: one run, told as words, Markdown and JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cli.test_commands import as_json, call, refused
from secondlook.experiments.comparison import COMPARED, compared
from secondlook.experiments.results import read_results

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
    monkeypatch.delenv("SECONDLOOK_DATA", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")
    (tmp_path / "mine.toml").write_text(WORLD)


def test_a_world_is_compared_in_three_forms(tmp_path):
    command = ("compare", "mine.toml", "--repetitions", 2, "--jobs", 1, "--out", "out")
    found = as_json(*command)
    results = read_results(Path("out"))
    assert results.methods == COMPARED
    assert results.about == found["about"]
    want = compared(results)
    assert [row["method"] for row in found["comparison"]] == list(COMPARED)
    for row, one in zip(found["comparison"], want, strict=True):
        assert row["earned"]["late"]["share"] == one.earned["late"].share
        assert row["certified"]["broken"] == one.certified.broken
        assert row["true_positive_rates"] == one.true_positive_rates
    assert found["certificates"] == json.loads(json.dumps(results.certificates))
    assert {one["method"] for one in found["certificates"]} == {
        "certified",
        "certified-within-group",
    }

    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "parts").iterdir()}
    table = call(*command, "--markdown").stdout.strip().splitlines()
    assert len(table) == 2 + len(COMPARED)
    assert len({line.count("|") for line in table}) == 1
    heads = [head.strip() for head in table[0].strip("|").split("|")]
    assert heads == [
        *("method", "early", "middle", "late", "whole", "cert > α", "pilot > α"),
        *("TPR A", "TPR B", "explored"),
    ]
    last = [cell.strip() for cell in table[-1].strip("|").split("|")]
    assert last[:5] == ["opt-hindsight", *["1.00 ± .00"] * 4]
    late = re.match(r"−?\d?\.\d\d", table[3].split("|")[4].strip())[0]
    assert float(late.replace("−", "-")) == pytest.approx(want[1].earned["late"].share, abs=0.006)

    words = call(*command).stdout
    assert all(name in words for name in COMPARED)
    assert str(tmp_path / "out") in words
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_certificates_are_in_the_json_of_a_simulation(tmp_path, monkeypatch):
    monkeypatch.setattr("secondlook.cli.experiments.write_report", lambda *_: None)
    Path("mine.toml").write_text(WORLD.replace('"plain"', '"certified", "plain"'))
    found = as_json("simulate", "mine.toml", "--repetitions", 1, "--jobs", 1)
    assert [one["round"] for one in found["certificates"]] == list(range(1, 9))


def test_what_cannot_be_compared_is_refused_in_one_sentence():
    refused("no experiment 'germany'; known are german", "compare", "germany")
    refused("there is no file no.toml", "compare", "no.toml")
    refused("names its own data; leave it out", "compare", "mine.toml", "--data-set", "fico")
    Path("mine.toml").write_text(WORLD + "drift = {log_odds = -0.1}\n")
    refused("this world drifts.*leave drift out", "compare", "mine.toml", "--jobs", 1)
    Path("mine.toml").write_text("judged = 3\n" + WORLD)
    refused("judged must be true or false, got 3", "compare", "mine.toml")
