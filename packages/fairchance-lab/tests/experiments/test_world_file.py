"""Experiments in TOML files: fields, defaults and error messages."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from experiments.loan_files import write_loans
from fairchance.cli.app import app
from fairchance.errors import InputError
from fairchance.methods.options import CLASSIFIERS, PARTIAL, RESEARCH
from fairchance.simulate.people import Table
from fairchance.simulate.populations import Lender
from fairchance.simulate.streams import repeated_rows_remarks
from fairchance_lab.commands.options import PAPER_LETTERS
from fairchance_lab.datasets import CATALOGUE
from fairchance_lab.experiments.methods import check_options
from fairchance_lab.experiments.repetition import run_repetition
from fairchance_lab.experiments.runner import Run, run_experiment
from fairchance_lab.experiments.spec import Experiment, Goal
from fairchance_lab.experiments.world_file import read_world_file
from fairchance_lab.experiments.world_spec import POPULATIONS, WorldSpec, load_source
from fairchance_lab.runs import with_set
from hostile_toml import NESTED
from sentences import one_sentence

WORLDS = Path(__file__).parents[4] / "examples" / "worlds"
METHODS = 'methods = ["plain"]\nrepetitions = 2\n'
LENDER = '[world]\ndata = "lender"\nn_batch = 80\nn_rounds = 3\n'
FULL = """
methods = ["plain", "capped", "fair-clf"]
repetitions = 3
seed = 4
vary = { weight_cap = [3, "none"] }
switches = ["C2", "A1"]
segments = "past"
focus = "shut out"

[goal]
gain = 100.0
loss = 300.0

[classifier]
coverage_threshold = 0.4
weight_cap = "none"

[variants.capped]
method = "plain"
weight_cap = 5

[world]
data = "lender"
n_batch = 90
n_rounds = 4
n_history = 120
scaling = "none"
past = [{rule = "cutoff", feature = "income", share = 0.6}, {rule = "random", rate = 0.9}]
population = {share_b = 0.2}
feedback = {delay = {kind = "by-outcome", good = 2, bad = 1}, wrong = 0.1, corrected_after = 1}
drift = {shift = [-0.5, 0.0, 0.0], log_odds = -0.1}
"""


@pytest.fixture
def read(tmp_path):
    def read(text, name="world.toml"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return read_world_file(path)

    return read


def run_alone(experiment):
    return run_repetition(experiment, load_source(experiment.world), 0).columns


def test_all_fields_of_a_file(read):
    world = WorldSpec(
        "lender",
        n_batch=90,
        n_rounds=4,
        n_history=120,
        scaling="none",
        past=(
            {"rule": "cutoff", "feature": "income", "share": 0.6},
            {"rule": "random", "rate": 0.9},
        ),
        population={"share_b": 0.2},
        feedback={
            "delay": {"kind": "by-outcome", "good": 2, "bad": 1},
            "wrong": 0.1,
            "corrected_after": 1,
        },
        drift={"shift": [-0.5, 0.0, 0.0], "log_odds": -0.1},
    )
    assert read(FULL) == Experiment(
        "world",
        world,
        ("plain", "capped", "fair-clf"),
        goal=Goal(gain=100.0, loss=300.0),
        classifier={"coverage_threshold": 0.4, "weight_cap": "none"},
        variants={"capped": {"method": "plain", "weight_cap": 5}},
        vary={"weight_cap": (3, "none")},
        repetitions=3,
        seed=4,
        switches=("A1", "C2"),
        segments="past",
        focus="shut out",
    )


def test_past_drift_and_feedback_of_a_file(read):
    spec = read(FULL).world
    source = load_source(spec)
    assert source == Lender(share_b=0.2)
    world = spec.build(source, 1)
    past = world.history()
    income = past.people.X[:, 0]
    assert len(past.people) == 120
    cut = np.sort(income)[::-1][round(120 * 0.6) - 1]
    assert income[past.accepted].min() >= cut
    assert 0.7 < past.accepted[income >= cut].mean() < 1
    batches = list(world.batches())
    assert [len(batch.applicants) for batch in batches] == [90] * 4
    means = [batch.applicants.people.X[:, 0].mean() for batch in batches]
    assert np.all(np.diff(means) < 0)
    assert means[-1] < -1.5
    for batch in batches:
        good = batch.applicants.outcome == 1
        assert np.array_equal(batch.sealed.arrives, np.where(good, 2, 1))
        wrong = batch.sealed.reported != batch.sealed.truth
        assert 0 < wrong.sum() < 30
        assert np.array_equal(batch.sealed.corrected[wrong], batch.sealed.arrives[wrong] + 1)


def test_late_outcomes_change_decisions(read):
    past = 'past = [{rule = "policy"}]\n'
    at_once = run_alone(read(METHODS + LENDER + past))
    late = run_alone(read(METHODS + LENDER + past + "feedback = {delay = {after = 9}}\n"))
    assert np.array_equal(at_once["n_good"], late["n_good"])
    first = at_once["round"] == 1
    assert np.array_equal(at_once["n_accepted"][first], late["n_accepted"][first])
    assert not np.array_equal(at_once["n_accepted"], late["n_accepted"])


@pytest.mark.parametrize(
    ("rule", "check"),
    [
        ('{rule = "everybody"}', lambda past, good: past.accepted.all()),
        (
            '{rule = "outcome", good = 1.0, bad = 0.0}',
            lambda past, good: np.array_equal(past.accepted, good),
        ),
        (
            '{rule = "group", group = "B", rate = 0.0}',
            lambda past, good: np.array_equal(past.accepted, past.people.group == "A"),
        ),
        (
            '{rule = "everybody"}, {rule = "group", group = "A", rate = 0.0}',
            lambda past, good: np.array_equal(past.accepted, past.people.group == "B"),
        ),
        (
            '{rule = "composition", good = 1.0, size = 1.0}',
            lambda past, good: np.array_equal(past.accepted, good),
        ),
    ],
)
def test_past_rules(read, rule, check):
    world = read(METHODS + LENDER + f"past = [{rule}]\n").world.build(Lender(), 3)
    assert check(world.history(), world.full_history().outcome == 1)


def test_data_file_is_relative_to_the_world_file(read, tmp_path, monkeypatch):
    write_loans(tmp_path / "loans.csv")
    os.makedirs(tmp_path / "elsewhere")
    monkeypatch.chdir(tmp_path / "elsewhere")
    columns = 'columns = {outcome = "paid", group = "town", good = "yes"}\n'
    text = METHODS + LENDER.replace("lender", "loans.csv") + columns
    experiment = read(text)
    source = load_source(experiment.world)
    assert isinstance(source, Table)
    assert source.features == ("income", "debt")
    results = run_experiment(experiment, source, Run(jobs=1))
    assert results.groups == ("X", "Y")
    assert results.count("n_people").sum(axis=-1).ravel().tolist() == [80] * 6
    assert "loans.csv" in results.about["data"]["source"]


def test_name_of_an_experiment(read):
    assert read(METHODS + LENDER, "overlooked.toml").name == "overlooked"
    assert read('name = "Bank"\n' + METHODS + LENDER).name == "Bank"


GERMAN = LENDER.replace("lender", "german")
WRONG = {  # content, and the names or values that the message must have
    "[world": "TOML",
    METHODS: "world",
    LENDER: "methods",
    METHODS + "[world]\nn_batch = 3\n": "data",
    METHODS + LENDER + "n_bacth = 3\n": "'n_bacth'.*n_batch",
    METHODS + "[goal]\nalhpa = 0.1\n" + LENDER: "'alhpa'.*alpha",
    "sede = 1\n" + METHODS + LENDER: "'sede'.*seed",
    "methods = []\n" + LENDER: "method",
    'methods = ["plain", "plain"]\n' + LENDER: "'plain'",
    'switches = ["Z9"]\n' + METHODS + LENDER: "Z9",
    'segments = "town"\n' + METHODS + LENDER: "'town'",
    'methods = ["plain"]\nrepetitions = 1.5\n' + LENDER: "repetitions.* 1.5",
    "seed = -1\n" + METHODS + LENDER: "seed.* -1",
    "vary = { slack = 0.1 }\n" + METHODS + LENDER: "slack.* 0.1",
    METHODS + '[classifier]\ncoverage_threshold = "x"\n' + LENDER: "coverage_threshold.*'x'",
    METHODS + "[classifier]\nseed = 3\n" + LENDER: "'seed'",
    METHODS + '[variants.mine]\nmethod = "plain"\n' + LENDER: "mine",
    METHODS + LENDER + 'past = ["random"]\n': "past",
    METHODS + LENDER + 'past = [{rule = "chance"}]\n': "'chance'",
    METHODS + LENDER + "past = []\n": "past",
    METHODS + LENDER + 'past = [{rule = "random", share = 0.4}]\n': "random.*'share'",
    METHODS + LENDER + 'past = [{rule = "random", rate = 1.4}]\n': "rate.* 1.4",
    METHODS + LENDER + 'past = [{rule = "cutoff", feature = "age"}]\n': "'age'.*income",
    METHODS + LENDER + 'past = [{rule = "group", group = "C"}]\n': "'C'.*A, B",
    METHODS + LENDER + "feedback = {delay = 2}\n": "delay.* 2",
    METHODS + LENDER + 'feedback = {delay = {kind = "slow"}}\n': "'slow'",
    METHODS + LENDER + 'feedback = {delay = {kind = "fixed", after = -1}}\n': "-1",
    METHODS + LENDER + "feedback = {lost = 0.1}\n": "feedback.*'lost'",
    METHODS + LENDER + "drift = {tilt = 0.1}\n": "drift.*'tilt'",
    METHODS + LENDER + "drift = {shift = 1}\n": "shift.* 1",
    METHODS + LENDER + 'scaling = "batch"\n': "'batch'",
    METHODS + LENDER + "population = {size = 3}\n": "lender.*'size'",
    METHODS + LENDER + "n_history = 0\n": "n_history.* 0",
    METHODS + GERMAN + 'past = [{rule = "policy"}]\n': "lender",
    METHODS + GERMAN + 'drift = {feature = "height", tilt = 0.1}\n': "'height'",
    METHODS + GERMAN + "n_parts = 1001\n": "n_batch",
    METHODS + GERMAN + 'group = "race"\n': "german.*'race'",
}


@pytest.mark.parametrize(("text", "message"), WRONG.items())
def test_invalid_files_are_rejected(read, text, message):
    with pytest.raises(InputError, match=message) as error:
        run_alone(read(text))
    one_sentence(error)


def test_files_that_are_none(tmp_path):
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "no.toml", tmp_path / "bytes.toml", tmp_path):
        with pytest.raises(InputError, match=path.name):
            read_world_file(path)


def test_counting_by_cutoff_needs_a_cutoff(read):
    with pytest.raises(InputError, match="cut-off"):
        run_alone(read('segments = "past"\n' + METHODS + LENDER))


def test_data_sets_can_drift(read):
    spec = read(METHODS + GERMAN + 'drift = {feature = "age", tilt = 0.2, spoil = 0.2}\n').world
    world = spec.build(load_source(spec), 0)
    applicants = [world.full_history(), *(batch.applicants for batch in world.batches())]
    ages = [a.people.X[:, world.stream.features.index("age")].mean() for a in applicants]
    good = [a.outcome.mean() for a in applicants]
    assert ages[-1] > ages[0] + 0.3
    assert good[-1] < good[0] - 0.15


def test_documentation_of_world_files(tmp_path):
    """docs/worlds.md shows every field, and each of its blocks can be run."""
    text = (Path(__file__).parents[4] / "docs" / "worlds.md").read_text(encoding="utf-8")
    blocks = [block.split("```")[0] for block in text.split("```toml")[1:]]
    assert len(blocks) == 2
    for block in blocks:
        (tmp_path / "world.toml").write_text(block, encoding="utf-8")
        experiment = read_world_file(tmp_path / "world.toml")
        check_options(experiment)
    fields = [
        field.name for kind in (Experiment, Goal, WorldSpec) for field in dataclasses.fields(kind)
    ]
    assert [name for name in fields if name not in text and name != "published"] == []


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
def test_invalid_bounds_are_rejected_when_the_file_is_read(world, alpha, tmp_path):
    for options in ({"goal": f"alpha = {alpha}"}, {"top": f"vary.alpha = [0.1, {alpha}]"}):
        with pytest.raises(InputError, match="alpha"):
            read_world_file(world(**options))
    result = CliRunner().invoke(app, ["simulate", str(world(goal=f"alpha = {alpha}"))])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "alpha" in result.stderr
    assert not (tmp_path / "results").exists()  # nothing ran


def test_valid_bounds():
    assert [Goal(alpha=alpha).alpha for alpha in (0.001, 0.15, 0.999)] == [0.001, 0.15, 0.999]


@pytest.mark.parametrize(("n_batch", "repeats"), [(40, True), (12, False), (13, True)])
def test_simulate_remarks_on_repeated_rows(world, n_batch, repeats, monkeypatch):
    monkeypatch.setattr("fairchance_lab.runs.write_report", lambda *_: None)  # slow figures
    path = world(n_batch=n_batch)  # 4 draws: the history and three rounds
    experiment = read_world_file(path)
    source = load_source(experiment.world)
    rng = np.random.default_rng(0)
    drawn = np.concatenate(
        [
            applicants.people.X[:, 0]
            for applicants in experiment.world.stream(source).applicants(rng)
        ]
    )
    assert experiment.world.people_drawn(source) == drawn.size == 4 * n_batch
    remarks = repeated_rows_remarks(len(source), drawn.size)
    assert bool(remarks) is repeats
    if n_batch == 40:
        assert np.unique(drawn).size < drawn.size  # rows repeat
        command = ["simulate", str(path), "--jobs", "1"]
        output = CliRunner().invoke(app, command).stdout
        line = "draws 160 people with replacement from 500 rows"
        assert line in output
        remarks = json.loads(CliRunner().invoke(app, [*command, "--json", "--out", "b"]).stdout)
        assert remarks["people_drawn"] == 160


def test_no_repeated_rows_without_resampling(world):
    assert WorldSpec("lender", n_batch=900, n_rounds=50).people_drawn(Lender()) == 0
    source = load_source(read_world_file(world()).world)
    cut = WorldSpec("loans.csv", n_parts=10)
    assert cut.people_drawn(source) == 0
    assert repeated_rows_remarks(len(source), 0) == []
    parts = list(cut.stream(source).applicants(np.random.default_rng(0)))
    rows = np.concatenate([part.people.X[:, 0] for part in parts])
    assert np.unique(rows).size == rows.size == len(source)


def test_a_data_set_states_the_goal_unless_the_file_does(read, monkeypatch):
    entry = dataclasses.replace(CATALOGUE["taiwan"], alpha=0.3, gain=1.0, loss=1.0)
    monkeypatch.setattr("fairchance_lab.experiments.spec.CATALOGUE", {"taiwan": entry})
    world = '[world]\ndata = "taiwan"\nn_parts = 20\n'
    assert read(METHODS + world).goal == Goal(alpha=0.3, gain=1.0, loss=1.0)
    given = read(METHODS + "[goal]\nalpha = 0.2\nloss = 3\n" + world).goal
    assert given == Goal(alpha=0.2, gain=1.0, loss=3)
    assert read(METHODS + LENDER).goal == Goal()


@pytest.mark.parametrize("path", sorted(WORLDS.glob("*.toml")), ids=lambda path: path.stem)
def test_the_worlds_of_the_examples_can_be_read(path):
    experiment = read_world_file(path)
    assert experiment.world.data in {*CATALOGUE, *POPULATIONS}
    assert path.name in path.read_text()  # the command that runs it


def test_options_on_the_command_line(world, monkeypatch):
    monkeypatch.setattr("fairchance_lab.runs.write_report", lambda *_: None)  # slow figures

    def run(*options):
        command = ["simulate", str(world()), "--jobs", "1", "--repetitions", "1", "--json"]
        result = CliRunner().invoke(app, [*command, "--methods", "plain", *options])
        return result, json.loads(result.stdout)

    rows = {}
    for value in ("1", "none"):
        _, found = run("--set", f"weight_cap={value}", "--set", "alpha=0.2", "--paper-text")
        assert "error" not in found, found
        rows[value] = found["summary"]
        about = found["about"]["experiment"]
        assert about["classifier"]["paper_text"] is True
        assert (about["goal"]["alpha"], found["summary"][0]["alpha"]) == (0.2, 0.2)
    _, found = run("--vary", "weight_cap=1,none", "--set", "alpha=0.2", "--paper-text")
    assert [row["setting"] for row in found["summary"]] == ["weight_cap = 1", "weight_cap = none"]
    assert "weight-cap-varied" in found["folder"]
    for row, alone in zip(found["summary"], rows.values(), strict=True):
        assert {**row, "setting": ""} == {**alone[0], "setting": ""}
    for option, value, words in (
        ("--set", "weight_cap", "'weight_cap'"),
        ("--set", "wieght_cap=3", "'wieght_cap'.*weight_cap"),
        ("--set", "loss=many", "loss.*'many'"),
        ("--vary", "weight_cap=", "'weight_cap='"),
        ("--vary", "alpha=.1,.1", "alpha"),
        ("--vary", "nonsense=1", "'nonsense'"),
        ("--vary slack=0,.01 --vary", "alpha=.1,.2", "slack, alpha"),
    ):
        result, found = run(*option.split(), value)
        assert result.exit_code == 2
        assert re.search(words, one_sentence(found["error"]["message"]))


def test_letters_of_the_paper_on_the_command_line():
    """They are names of options that change what Algorithm 1's methods do."""
    start = Experiment("x", WorldSpec("lender"), ("plain",))
    given = ["tau=0.4", "λ=0.1", "epsilon=0.01", "α=0.2"]
    changed = with_set(start, given, False, ["beta=0,0.5"])
    check_options(changed)
    assert changed.classifier == {
        "coverage_threshold": 0.4,
        "min_selection_rate": 0.1,
        "slack": 0.01,
    }
    assert changed.goal.alpha == 0.2
    assert changed.vary == {"strategy_beta": (0, 0.5)}
    assert set(PAPER_LETTERS.values()) <= {*CLASSIFIERS[PARTIAL], *RESEARCH}


@pytest.mark.parametrize("text", NESTED)
def test_nested_values_are_refused(tmp_path, text):
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(InputError, match=" 20 "):
        read_world_file(tmp_path / "p.toml")
