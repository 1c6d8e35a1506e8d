"""World files: bounds that cannot be, and rows that are drawn again and again."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from lab.experiments.test_spec import one_sentence
from secondlook.cli.app import app
from secondlook.errors import InputError
from secondlook.lab.experiments.spec import Goal
from secondlook.lab.experiments.world_file import read_world_file
from secondlook.lab.experiments.world_spec import WorldSpec, drawn_again, load_source
from secondlook.lab.simulate.populations import Lender

WORLD = """
methods = ["no-exploration"]
repetitions = 2
{top}
[goal]
{goal}
[world]
data = "loans.csv"
n_batch = {n_batch}
n_rounds = 3
columns = {{outcome = "paid", group = "sex"}}
"""


@pytest.fixture
def world(tmp_path, monkeypatch):
    """Return a function that writes a world of 500 people."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    rng = np.random.default_rng(0)
    income = rng.normal(size=500)
    paid = (rng.random(500) < 1 / (1 + np.exp(-1 - income))).astype(int)
    sex = rng.choice(["f", "m"], 500)
    pd.DataFrame({"income": income, "sex": sex, "paid": paid}).to_csv("loans.csv", index=False)

    def write(top="", goal="", n_batch=40):
        path = tmp_path / "world.toml"
        path.write_text(WORLD.format(top=top, goal=goal, n_batch=n_batch))
        return path

    return write


@pytest.mark.parametrize("alpha", ["15", "0", "1", "0.0", "-0.1", "nan", "inf"])
def test_a_bound_that_is_no_share_is_refused_when_the_file_is_read(world, alpha, tmp_path):
    for options in ({"goal": f"alpha = {alpha}"}, {"top": f"alphas = [0.1, {alpha}]"}):
        with pytest.raises(InputError, match=r"alphas? (is|must) .*\(0, 1\), got ") as error:
            read_world_file(world(**options))
        assert one_sentence(str(error.value))
    found = CliRunner().invoke(app, ["simulate", str(world(goal=f"alpha = {alpha}"))])
    assert (found.exit_code, found.stdout) == (2, "")
    assert "write 15 % as 0.15" in found.stderr
    assert not (tmp_path / "results").exists()  # nothing ran


def test_shares_are_taken():
    assert [Goal(alpha=one).alpha for one in (0.001, 0.15, 0.999)] == [0.001, 0.15, 0.999]


@pytest.mark.parametrize(("n_batch", "told"), [(40, True), (12, False), (13, True)])
def test_simulate_says_that_rows_come_again(world, n_batch, told, monkeypatch):
    monkeypatch.setattr("secondlook.cli.runs.write_report", lambda *_: None)  # slow pictures
    path = world(n_batch=n_batch)  # 4 draws: the history and three rounds
    experiment = read_world_file(path)
    source = load_source(experiment.world)
    rng = np.random.default_rng(0)
    drawn = np.concatenate(
        [one.people.X[:, 0] for one in experiment.world.stream(source).applicants(rng)]
    )
    assert experiment.world.people_drawn(source) == drawn.size == 4 * n_batch
    found = drawn_again(len(source), drawn.size)
    assert bool(found) is told
    if n_batch == 40:
        assert np.unique(drawn).size < drawn.size  # the same row, more than once
        words = ["simulate", str(path), "--jobs", "1"]
        said = CliRunner().invoke(app, words).stdout
        line = "draws 160 people with replacement from 500 rows"
        assert line in said
        found = json.loads(CliRunner().invoke(app, [*words, "--json", "--out", "b"]).stdout)
        assert found["people_drawn"] == 160


def test_people_who_are_new_or_come_once_are_not_drawn_again(world):
    assert WorldSpec("lender", n_batch=900, n_rounds=50).people_drawn(Lender()) == 0
    source = load_source(read_world_file(world()).world)
    cut = WorldSpec("loans.csv", n_parts=10)
    assert cut.people_drawn(source) == 0
    assert drawn_again(len(source), 0) == []
    parts = list(cut.stream(source).applicants(np.random.default_rng(0)))
    rows = np.concatenate([one.people.X[:, 0] for one in parts])
    assert np.unique(rows).size == rows.size == len(source)
