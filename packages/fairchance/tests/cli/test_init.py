"""``fairchance init``: start a program from a configuration and a history."""

from __future__ import annotations

import json
import re
import tomllib
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from threadpoolctl import threadpool_limits
from typer.testing import CliRunner

from cli.lender_files import (
    CERTIFIED,
    PROGRAM,
    causes,
    done,
    people,
)
from fairchance.cli.app import app
from fairchance.cli.files.tables import read_table
from fairchance.errors import LedgerError
from fairchance.ledger import Program, SqlLedger, verify
from fairchance.ledger.config import example_config as shipped_example
from fairchance.ledger.config import read_config
from fairchance.methods.options import CLASSIFIERS, LIMITS
from golden import transcript
from sentences import one_sentence

URL = "sqlite:///lender.db"


def example_config():
    """Return the example for a history in which all applicants with an outcome were accepted."""
    return shipped_example().replace('\naccepted = "', '\n# accepted = "')


PARTIAL = (
    example_config()
    .replace('kind = "certified"', 'kind = "partial-feedback"')
    .replace("\npatience = ", "\n# patience = ")
)


@pytest.fixture(autouse=True)
def bare_machine(tmp_path, monkeypatch):
    """Use an empty folder, no ledger in the environment, and a single thread."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FAIRCHANCE_LEDGER", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr("secrets.randbelow", lambda _: 7)  # the same seed every time
    with threadpool_limits(1):
        yield


def applicants(n, seed=0, *, region=False, first=0):
    """Return applicants of a lender and their outcomes."""
    rng = np.random.default_rng(seed)
    income, debt = rng.lognormal(10, 0.5, n).round(2), rng.uniform(0, 20_000, n).round()
    years = rng.integers(18, 80, n)
    where = rng.choice(["north", "south", "east"], n)
    logit = 2 * (np.log(income) - 10) - debt / 8000 + 1.2 + (where == "north")
    good = rng.random(n) < 1 / (1 + np.exp(-logit))
    columns = {
        "id": [f"{i:05d}" for i in range(first, first + n)],
        "income": income,
        "debt": debt,
        "years": years,
        "sex": np.where(rng.random(n) < 0.4, "f", "m"),
    }
    if region:
        columns["region"] = where
    return pa.table(columns), good, logit


def history(n=300, *, region=False, seed=0):
    table, good, logit = applicants(n, seed, region=region)
    taken = np.random.default_rng(seed + 1).random(n) < 1 / (1 + np.exp(-2 * logit))
    outcome = np.where(good, "repaid", "default").astype(object)
    outcome[~taken] = None
    return table.append_column("outcome", pa.array(outcome)), taken


def write(table, path="history.csv"):
    pacsv.write_csv(table, path)
    return path


def call(*words, **options):
    return CliRunner().invoke(app, ["init", *map(str, words)], **options)


def init(config, path="history.csv", *words, code=0):
    """Run the command with a configuration, and return its JSON."""
    with open("program.toml", "w") as file:
        file.write(config)
    result = call("--ledger", URL, "--config", "program.toml", path, *words, "--json")
    assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
    return json.loads(result.stdout)


def refused(words, *arguments, **options):
    result = call(*arguments, **options)
    assert result.exit_code == 2, (result.stdout, result.exception)
    assert result.stdout == ""
    output = result.stderr.removeprefix("fairchance: ").strip()
    assert words in output
    assert one_sentence(output)


# The example


def test_example_is_printed_or_written_and_never_overwritten(tmp_path):
    assert call("--example").stdout == shipped_example()
    result = call("--example", "-o", "mine.toml")
    assert (result.exit_code, "mine.toml" in result.stdout) == (0, True)
    path = tmp_path / "mine.toml"
    assert path.read_text() == shipped_example()
    path.write_text("mine")
    refused("mine.toml", "--example", "-o", "mine.toml")
    assert path.read_text() == "mine"
    refused("no/mine.toml", "--example", "-o", "no/mine.toml")
    refused("--example", "--example", "history.csv")
    assert json.loads(call("--example", "-o", "a.toml", "--json").stdout) == {"written": "a.toml"}


def test_example_takes_any_columns():
    table, taken = history(region=True)
    table = table.append_column("accepted", pa.array(np.where(taken, "yes", "no")))
    table = table.append_column("owner", pa.array(np.arange(300) % 3 == 0))
    since = [date(2010, 1, 1) + timedelta(days=at % 90) for at in range(300)]
    table = table.append_column("since", pa.array(since))
    table = table.append_column("name", pa.array([f"Ada {at}" for at in range(300)]))
    table = table.append_column("row", pa.array(range(300)))
    named = shipped_example().replace('# applied = "applied"', 'applied = "since"')
    result = init(named, write(table))
    assert result["accepted"] == taken.sum()
    assert [(found["column"], found["kind"]) for found in result["features"]] == [
        ("income", "number"),
        ("debt", "number"),
        ("years", "number"),
        ("region", "text"),
        ("owner", "true/false"),
    ]
    assert result["left_out"] == {"name": "identifier", "row": "identifier"}


@pytest.mark.parametrize("config", [CERTIFIED, PROGRAM], ids=["certified", "partial-feedback"])
def test_columns_of_all_kinds_are_decided_exported_and_verified(config):
    def with_kinds(n, start):
        at = np.arange(n)
        return people(n, start).assign(
            since=[str(date(2010, 1, 1) + timedelta(days=int(i) % 90)) for i in at],
            owner=np.where(at % 3 == 0, "true", "false"),
            region=np.where(at % 5 < 2, "north", "south"),
            postcode=[f"{i % 7:05d}" for i in at],
        )

    with_kinds(300, 0).to_csv("history.csv", index=False)
    used = ["income", "debt", "since", "owner", "region", "postcode"]
    init(config.replace("[columns]", f"[columns]\nfeatures = {used}"))
    new = with_kinds(60, 1000).drop(columns="outcome")
    new.loc[3, "since"], new.loc[4, "owner"] = "next week", "perhaps"
    new.to_csv("applicants.csv", index=False)
    result = done("decide", "applicants.csv", "-o", "decisions.csv", "--ledger", URL)
    assert causes(result["refused"]) == {"not_a_date": 1, "not_a_number": 1}
    done("export", "--features", "-o", "decided.csv", "--ledger", URL)
    decided = pd.read_csv("decided.csv", dtype={"feature.postcode": str})
    assert decided["feature.postcode"].tolist() == new.drop(index=[3, 4])["postcode"].tolist()
    sent = new.drop(index=[3, 4])
    assert (pd.to_datetime(decided["feature.since"]) == pd.to_datetime(sent["since"]).array).all()
    assert decided["feature.owner"].tolist() == (sent["owner"] == "true").tolist()
    assert decided["feature.region"].tolist() == sent["region"].tolist()
    assert Program.open(URL).verify(relearn=True).ok


def test_history_without_the_column_of_past_decisions():
    result = init(shipped_example(), write(history(100)[0]), code=2)
    assert "'accepted'" in result["error"]["message"]


def test_program_of_the_example():
    table, taken = history()
    result = init(example_config(), write(table))
    assert result.pop("checkpoint") == str(Program.open(URL).checkpoint())
    n_good = table["outcome"].to_pylist().count("repaid")
    assert result == {
        "program": "main",
        "people": 300,
        "accepted": int(taken.sum()),
        "good": n_good,
        "bad": int(taken.sum()) - n_good,
        "not_taken": 0,
        "accepted_without_outcome": 0,
        "outcomes_not_read": 0,
        "refused": 0,
        "refused_rows": None,
        "causes": [],
        "features": [
            {"column": name, "kind": "number", "values": ends(table[name]), "missing": 0}
            for name in ("income", "debt", "years")
        ],
        "left_out": {},
        "groups": ["sex"],
        "notes": [],
    }
    program = Program.open(URL)
    assert program.about == read_config("program.toml").about(("income", "debt", "years"))
    assert program.classifier.groups_.tolist() == ["f", "m"]
    with program.ledger.reading("main") as reader:
        standing = reader.standing(table["id"].to_pylist())
    assert standing.accepted.tolist() == taken.tolist()
    states = {"repaid": "good", "default": "bad", None: None}
    assert standing.states == [states[value] for value in table["outcome"].to_pylist()]


def ends(column):
    low, high = pc.min_max(column).as_py().values()
    return f"{low:,.6g} to {high:,.6g}"


def features(result):
    return [found["column"] for found in result["features"]]


def alternatives():
    """Return every option of the example: its key and its line."""
    pairs = re.findall(r"^# ((\w+) = .*)$", example_config(), flags=re.MULTILINE)
    return [pytest.param(key, line, id=line.split("  #")[0]) for line, key in pairs]


# How the line begins that an option needs beside its own.
GOES_WITH = {
    "strategy_beta": 'strategy = "group',
    "strategy_floor": 'strategy = "group',
    "fairness_difference": "fairness =",
    "fairness_ratio": "fairness =",
    "exposure": "amount =",
    "amount": "exposure =",
    "ramp": "incumbent =",
    "not_taken": "not_taken_within =",
    "not_taken_within": "not_taken =",
}
ONLY_PARTIAL = {*CLASSIFIERS["partial-feedback"]} - {*CLASSIFIERS["certified"]}
ONLY_PARTIAL |= {"kind", "exposure", "amount"}


def chosen(config, key, line):
    """Uncomment a line of the example, and remove the settings that contradict it."""
    config = re.sub(rf"^({key} = )", r"# \1", config, flags=re.MULTILINE)
    homes = {"stop": "checks", "warn": "checks", "income": "reasons"}
    homes |= {"every": "rounds", "at_most": "rounds"}
    homes |= {"url": "alerts", "secret_variable": "alerts"}
    table = "limits" if key in LIMITS else homes.get(key)
    config = config.replace(f"# [{table}]", f"[{table}]")
    assert config.count(f"# {line}") == 1
    return config.replace(f"# {line}", line)


@pytest.mark.parametrize(("key", "line"), alternatives())
def test_program_of_every_option_in_the_example(key, line):
    config = PARTIAL if key in ONLY_PARTIAL else example_config()
    if key != "kind":
        config = chosen(config, key, line)
        if key in GOES_WITH:
            other = re.search(rf"^# ({GOES_WITH[key]}.*)$", config, flags=re.MULTILINE)[1]
            config = chosen(config, other.split(" =")[0], other)
    tables = tomllib.loads(config)
    assert any(key in table for table in tables.values())
    table, taken = history(120, region=key == "text", seed=3)
    if line.startswith('accepted = "'):
        table = table.append_column("accepted", pa.array(np.where(taken, "yes", "no")))
    if key in ("applied", "ignore", "persons"):
        name = {"ignore": "race", "persons": "customer"}.get(key, key)
        table = table.append_column(name, pa.array(np.arange(120) % 7))
    result = init(config, write(table))
    assert (result["people"], result["accepted"]) == (120, int(taken.sum()))
    kind = tables["classifier"]["kind"]
    assert (kind == "partial-feedback") == (key in ONLY_PARTIAL)


# Text, gaps and verification


@pytest.mark.filterwarnings("ignore::fairchance.errors.LearningWarning")  # with so few people
@pytest.mark.parametrize(
    "learner", ["logistic", pytest.param("gradient-boosting", marks=pytest.mark.long)]
)
def test_text_columns_are_used_stored_and_verified(learner):
    """The pipeline is stored without untrusted types, and decides an unseen value too."""
    config = PARTIAL.replace('# learner = "gradient-boosting"', f'learner = "{learner}"')
    result = init(config, write(history(400, region=True)[0]))
    assert {found["column"]: found["kind"] for found in result["features"]}["region"] == "text"
    for t in range(3):
        table, good, _ = applicants(150, 10 + t, region=True, first=1000 * (t + 1))
        names = [*table["region"].to_pylist()[:-1], "west"]
        X = table.select(["income", "debt", "years"]).append_column("region", pa.array(names))
        program = Program.open(URL)
        decided = program.decide(
            X, sensitive_features=table.select(["sex"]), ids=np.array(table["id"].to_pylist())
        )
        assert t > 0 or 0 < decided.accepted.sum() < 150
        program.observe(decided.ids[decided.accepted], good[decided.accepted].astype(int))
    verification = verify(SqlLedger(URL), "main")
    assert (verification.ok, verification.n_decisions) == (True, 450)
    learned = program.classifier.predict_proba(X)[:, 1]
    moved = X.set_column(3, "region", pa.array(["north"] * 150))
    assert np.ptp(learned - program.classifier.predict_proba(moved)[:, 1]) > 0.01


def with_config(config, line):
    """Add a line to the columns of a configuration."""
    return config.replace("[columns]", f"[columns]\n{line}  #")


GAPS = ("years", "region")


@pytest.mark.parametrize(
    ("line", "n_refused", "may_be_missing"),
    [
        ("", 0, list(GAPS)),
        ('missing = "anywhere"', 0, ["income", "debt", "years", "region"]),
        ('missing = "refuse"', 40, []),
    ],
)
def test_gaps_in_the_history(line, n_refused, may_be_missing):
    table, _ = history(200, region=True)
    years = [None if i % 10 == 0 else value for i, value in enumerate(table["years"].to_pylist())]
    region = [None if i % 10 == 1 else value for i, value in enumerate(table["region"].to_pylist())]
    table = table.set_column(3, "years", pa.array(years)).set_column(5, "region", pa.array(region))
    report = init(with_config(PARTIAL, line), write(table))
    assert (report["people"], report["refused"]) == (200 - n_refused, n_refused)
    missing = {found["column"]: found["missing"] for found in report["features"]}
    assert missing == {"income": 0, "debt": 0, "years": 20, "region": 20}
    program = Program.open(URL)
    assert program.about["missing"] == may_be_missing
    if n_refused:
        assert report["causes"] == [
            {"rows": 20, "mistakes": [{"code": "missing_refused", "column": name}]} for name in GAPS
        ]
        refusals = read_table("history.refused.csv", text=["id"])
        assert refusals["id"].to_pylist() == [f"{i:05d}" for i in range(200) if i % 10 < 2]
    # One applicant without each of the features.
    new = applicants(4, 7, region=True, first=900)[0].to_pandas()
    for at, name in enumerate(("income", "debt", *GAPS)):
        new[name] = new[name].astype(object)
        new.loc[at, name] = None
    new.to_csv("applicants.csv", index=False)
    words = ("decide", "applicants.csv", "-o", "decisions.csv", "--ledger", URL)
    result = done(*words, "--most-refused", "1", code=0 if may_be_missing else 2)
    refusals = [] if len(may_be_missing) == 4 else pd.read_csv("applicants.refused.csv")["reason"]
    names = [name for name in ("income", "debt", *GAPS) if name not in may_be_missing]
    assert [f"'{name}'" in reason for name, reason in zip(names, refusals, strict=True)] == [
        True
    ] * len(names)
    assert ("error" in result) == (not may_be_missing)


def test_named_values_are_missing():
    """A number and a word in columns of numbers and text, in the history and in a batch."""
    table, _ = history(200, region=True)
    years = [
        "?" if i % 10 == 0 else str(value) for i, value in enumerate(table["years"].to_pylist())
    ]
    debt = [-9 if i % 10 == 1 else value for i, value in enumerate(table["debt"].to_pylist())]
    region = ["?" if i % 10 == 2 else value for i, value in enumerate(table["region"].to_pylist())]
    for name, values in (("years", years), ("debt", debt), ("region", region)):
        place = table.column_names.index(name)
        table = table.set_column(place, name, pa.array(values))
    result = init(with_config(PARTIAL, 'missing_values = ["?", -9]'), write(table))
    assert result["refused"] == 0
    found = {found.pop("column"): found for found in result["features"]}
    assert {name: one["missing"] for name, one in found.items()} == {
        "income": 0,
        **dict.fromkeys(("debt", "years", "region"), 20),
    }
    assert found["years"]["kind"] == "number"
    assert found["region"]["values"].startswith("3: ")
    new = applicants(3, 7, region=True, first=900)[0].to_pandas().astype({"years": object})
    new.loc[0, "years"], new.loc[1, "debt"], new.loc[2, "region"] = "?", -9, " ?"
    new.to_csv("applicants.csv", index=False)
    words = ("decide", "applicants.csv", "-o", "decisions.csv", "--ledger", URL)
    assert done(*words)["people"] == 3
    done("export", "--features", "-o", "decided.csv", "--ledger", URL)
    decided = pd.read_csv("decided.csv")[["feature.years", "feature.debt", "feature.region"]]
    assert (decided.isna().to_numpy() == np.eye(3, dtype=bool)).all()


def test_what_init_prints(golden):
    """Words in a column of numbers, mostly bad outcomes, no patience and no maturity."""
    table = of_outcomes(20, 80)
    years = [
        "?" if i % 10 == 0 else str(value) for i, value in enumerate(table["years"].to_pylist())
    ]
    write(table.set_column(3, "years", pa.array(years)))
    config = re.sub(r"^(patience|maturity) = .*$", "", example_config(), flags=re.MULTILINE)
    notes = init(config, "history.csv", "--check")["notes"]
    codes = ["mostly_bad", "missing_value", "no_patience", "final_at_once", "past_read"]
    assert [note["code"] for note in notes] == codes
    start = f"init --ledger {URL} --config program.toml history.csv"
    golden("init", transcript("init --example -o mine.toml", f"{start} --check", start, start))


def test_a_column_that_was_recorded_after_the_decision_is_named():
    table = of_outcomes(300, 100)
    outcome = np.array(table["outcome"].to_pylist())
    bad, at = outcome == "default", np.arange(outcome.size)
    closed = np.where(at % 3, "closed", "repaid early")
    late = {"past_due": bad * (30 + at % 50), "stage": np.where(bad, "collection", closed)}
    late |= {"half": np.where(at % 2, bad * 90, 0), "gap": np.where(bad, None, at + 1.0)}
    for name, values in late.items():
        table = table.append_column(name, pa.array(values.tolist()))
    notes = init(example_config(), write(table), "--check")["notes"]
    said = [note["message"].split("'")[1] for note in notes if note["code"] == "tells_outcome"]
    assert said == ["past_due", "stage", "gap"]


# Other histories


def test_named_column_of_past_decisions():
    table, taken = history(100)
    table = table.append_column("flag", pa.array(taken.astype(int)))
    config = example_config().replace('# features = ["income", "debt"]', 'features = ["flag"]')
    assert features(init(config, write(table))) == ["flag"]


def test_printed_summary():
    table, taken = history()
    write(table.append_column("accepted", pa.array(taken)))
    call("--example", "-o", "program.toml")
    result = call("--ledger", URL, "--config", "program.toml", "history.csv", "--by", "Ada")
    assert result.exit_code == 0, result.stderr
    wide = max(len(ends(table[name])) for name in ("income", "debt", "years"))
    assert result.stdout.splitlines()[2:7] == [
        f"Feature  Kind    {'Values':{wide}}  Missing",
        *(
            f"{name:7}  number  {ends(table[name]):{wide}}        –"
            for name in ("income", "debt", "years")
        ),
        "Groups: sex",
    ]
    assert str(Program.open(URL).checkpoint()) in result.stdout
    with SqlLedger(URL).reading("main") as reader:
        assert {entry.by for entry in reader.entries()} == {"Ada"}


CHECKED = PARTIAL.replace('good = ["repaid", 1]', 'good = ["repaid", "closed"]')


def test_check_says_what_would_be_recorded_and_records_nothing(tmp_path):
    table = history(300, region=True)[0]
    sex = table["sex"].to_pylist()
    table = table.set_column(3, "years", pa.array([None, *table["years"].to_pylist()[1:]]))
    table = table.append_column("phone", pa.nulls(300, pa.string()))
    write(table.set_column(4, "sex", pa.array([None, *sex[1:]])))
    (tmp_path / "program.toml").write_text(CHECKED)
    before = sorted(tmp_path.iterdir())
    checked = init(CHECKED, "history.csv", "--check")
    assert sorted(tmp_path.iterdir()) == before
    recorded = init(CHECKED)
    differ = {"checkpoint", "refused_rows"}
    for key in recorded.keys() - differ:
        assert checked[key] == recorded[key], key
    assert (checked["checkpoint"], checked["refused_rows"]) == (None, None)
    assert checked["refused"] == 1
    good, bad = recorded["good"], recorded["bad"]
    assert checked["outcomes"] == {
        "good": {"repaid": good, "closed": 0},
        "bad": {"default": bad, "0": 0},
        "withdrawn": {"withdrawn": 0},
        "not_taken": {},
    }
    assert checked["people_of_group"] == {
        "sex": {value: sex[1:].count(value) for value in ("f", "m")}
    }
    assert checked["needed"] == ["id", "sex", "income", "debt", "years", "region"]
    assert checked["settings"]["kind"] == "partial-feedback"
    assert init(CHECKED, "history.csv", "--check") == checked  # the ledger has that program now


def test_check_raises_what_init_raises(tmp_path):
    write(history(100)[0])
    for config in (PARTIAL.replace('"repaid"', '"paid"'), PARTIAL.replace('"outcome"', '"paid"')):
        checked, tried = (init(config, "history.csv", *more, code=2) for more in (["--check"], []))
        names = {path.name for path in tmp_path.iterdir()}
        assert checked["error"]["code"] == tried["error"]["code"]
        assert "lender.db" not in names


@pytest.mark.parametrize(
    ("line", "asked"), [("", True), ("maturity = 0", False), ("maturity = 4", False)]
)
def test_init_asks_for_a_maturity(line, asked):
    config = re.sub(r"^maturity = .*$", line, example_config(), flags=re.MULTILINE)
    notes = init(config, write(history(100)[0]), "--check")["notes"]
    assert [note["code"] for note in notes] == [*["final_at_once"] * asked, "past_read"]


@pytest.mark.parametrize(
    ("line", "asked"), [("", True), ("patience = 3", False), ('patience = "never"', False)]
)
def test_init_asks_for_a_patience(line, asked):
    config = example_config().replace('\nkind = "cert', '\nlearner = "logistic"\nkind = "cert')
    config = re.sub(r"^patience = .*$", line, config, flags=re.MULTILINE)
    result = init(config, write(history(100)[0]))
    assert [note["code"] for note in result["notes"]] == ["no_patience"] * asked
    assert Program.open(URL).classifier.patience == (3 if "3" in line else None)


def test_excel_and_semicolons_start_the_same_program():
    table = history(120)[0]
    frame = table.to_pandas()
    first = init(PARTIAL, write(table))
    frame.to_csv("history.csv", index=False, sep=";", decimal=",")
    second = init(PARTIAL, "history.csv", "--program", "b")
    frame.to_excel("history.xlsx", index=False)
    third = init(PARTIAL, "history.xlsx", "--program", "c")
    for key in ("people", "accepted", "good", "features", "left_out"):
        assert first[key] == second[key] == third[key]
    batch = applicants(30, 5)[0].to_pandas()
    batch["id"] = "n" + batch["id"]
    batch.to_excel("batch.xlsx", index=False)
    batch.to_csv("batch.csv", index=False)
    answers = []
    for name, file in (("main", "batch.csv"), ("c", "batch.xlsx")):
        words = ["decide", file, "-o", f"{name}.csv", "--ledger", URL, "--program", name]
        done = CliRunner().invoke(app, [*words, "--unlike-history"])
        assert done.exit_code == 0, done.stderr
        answers.append(pd.read_csv(f"{name}.csv")["score"])
    assert np.allclose(*answers)


def test_ledger_from_the_environment_and_history_from_standard_input(monkeypatch):
    table, taken = history(120)
    write(table.append_column("accepted", pa.array(taken)))
    call("--example", "-o", "program.toml")
    monkeypatch.setenv("FAIRCHANCE_LEDGER", "sqlite:///other.db")
    with open("history.csv", "rb") as file:
        result = call("--config", "program.toml", "-", input=file.read())
    assert result.exit_code == 0, result.stderr
    assert SqlLedger("sqlite:///other.db").programs() == ["main"]


def test_parquet_file_written_by_pandas():
    """Pandas stores 1 and 0 with gaps as floating point, and adds an index."""
    table, taken = history(200)
    states = {"repaid": 1.0, "default": 0.0, None: float("nan")}
    outcome = [states[value] for value in table["outcome"].to_pylist()]
    table = table.drop_columns(["outcome", "id"])
    table = table.append_column("outcome", pa.array(outcome))
    table = table.append_column("id", pa.array(range(200))).append_column(
        "__index_level_0__", pa.array(range(200))
    )
    pq.write_table(table, "history.parquet")
    result = init(example_config(), "history.parquet")
    assert (result["accepted"], result["good"]) == (int(taken.sum()), outcome.count(1.0))
    assert features(result) == ["income", "debt", "years"]
    with SqlLedger(URL).reading("main") as reader:
        assert reader.standing(["0", "199"]).persons.tolist() == [0, 199]


def test_history_without_accepted_applicants():
    table, _ = history(100)
    table = table.set_column(5, "outcome", pa.array([None] * 100, pa.string()))
    result = init(example_config(), write(table))
    assert (result["people"], result["accepted"]) == (100, 0)
    assert result["notes"][0]["code"] == "learning"
    assert features(result) == ["income", "debt", "years"]


@pytest.mark.parametrize(
    ("outcome", "rejected", "note"),
    [
        ("repaid", True, "good; the first ranking compares them with the rejected."),
        ("repaid", False, "good, so no ranking can be learned from them; the pilot accepts at"),
        ("default", True, "bad, so no ranking can be learned from them; the pilot accepts at"),
    ],
)
def test_history_with_one_kind_of_outcome(outcome, rejected, note):
    table, taken = history(200)
    outcomes = np.where(taken | (not rejected), outcome, None).astype(object)
    path = write(table.set_column(5, "outcome", pa.array(outcomes)))
    result = init(example_config(), path)
    assert result["notes"][0]["code"] == "learning"
    assert (result["good"] > 0) == (outcome == "repaid")
    applicants(100, 7, first=900)[0].to_pandas().to_csv("applicants.csv", index=False)
    words = ("decide", "applicants.csv", "-o", "decisions.csv", "--ledger", URL)
    assert done(*words)["accepted"] > 0
    accepted = pd.read_csv("decisions.csv", dtype=str).query("decision == 'accept'")[["id"]]
    accepted.assign(outcome="repaid").to_csv("outcomes.csv", index=False)
    done("observe", "outcomes.csv", "--ledger", URL)
    assert Program.open(URL).verify(relearn=True).ok
    config = PARTIAL
    error = init(config, path, "--program", "other", code=2)["error"]
    assert "'certified'" in error["message"]


def test_single_member_of_a_group_is_refused():
    table, _ = history(200)
    sex = ["x", *table["sex"].to_pylist()[1:]]
    result = init(example_config(), write(table.set_column(4, "sex", pa.array(sex))))
    assert (result["people"], causes(result)) == (199, {"lone_group": 1})


@pytest.mark.parametrize(
    ("word", "said"),
    [
        (None, "1 row: accepted without an outcome"),
        ("charged off", "1 row: an outcome that is no word of [outcomes]"),
        ("withdrawn", ""),
    ],
)
def test_a_history_that_is_evidence_loses_nobody_because_of_the_outcome(word, said):
    """Without the bad loans whose word is unknown, a certificate would be false."""
    past = people(400)
    past["taken"] = np.where(past["income"] > 0, "yes", "no")
    past.loc[past["taken"] == "no", "outcome"] = None
    row = past.index[past["outcome"] == "default"][0]
    n_bad = int((past["outcome"] == "default").sum())
    past.loc[row, "outcome"] = word
    past.to_csv("past.csv", index=False)
    config = CERTIFIED.replace('id = "id"', 'id = "id"\naccepted = "taken"')
    config = config.replace('withdrawn = "fraud"', 'withdrawn = "withdrawn"')
    Path("rounds.toml").write_text(config)
    Path("program.toml").write_text(f'[program]\nevidence = "history"\n{config}')
    words = ("init", "past.csv", "--ledger", URL, "--config")
    if said:
        error = done(*words, "program.toml", code=2)["error"]
        assert said in error["message"]
        assert done(*words, "rounds.toml")["refused"] == 1
    else:
        assert done(*words, "program.toml")["bad"] == n_bad


def test_rows_with_contradictory_past_are_refused():
    table, taken = history(200)
    outcome = table["outcome"].to_pylist()
    past = np.where(taken, "yes", "no").astype(object)
    accepted, rejected = np.flatnonzero(taken)[:4], np.flatnonzero(~taken)[:3]
    outcome[accepted[0]], outcome[accepted[1]], outcome[accepted[2]] = None, "withdrawn", "repayed"
    outcome[rejected[0]], past[rejected[1]], past[rejected[2]] = "repaid", "maybe", None
    table = table.set_column(5, "outcome", pa.array(outcome))
    table = table.append_column("taken", pa.array(past))
    config = example_config().replace('# accepted = "accepted"', 'accepted = "taken"')
    report = init(config, write(table), "--refused", "no.csv")
    assert (report["people"], report["refused"], report["refused_rows"]) == (195, 5, "no.csv")
    assert (report["outcomes_not_read"], report["accepted_without_outcome"]) == (1, 1)
    printed = call("--check", "--config", "program.toml", "history.csv").stdout
    assert "Left out: 1 accepted without a known outcome; leave out the rejected" in printed
    assert "got 'maybe'; name further words for decisions in [decisions]" in printed
    assert report["accepted"] == taken.sum() - 3
    refusals = read_table("no.csv", text=["id"])
    expected = {
        accepted[0]: "pending",
        accepted[1]: "withdrawn",
        accepted[2]: "not_a_label",
        rejected[1]: "not_a_decision",
        rejected[2]: "no_decision",
    }
    ids, codes = (refusals[name].to_pylist() for name in ("id", "reason_code"))
    assert dict(zip(ids, codes, strict=True)) == {
        f"{row:05d}": code for row, code in expected.items()
    }
    with SqlLedger(URL).reading("main") as reader:
        at = [row for row in range(200) if row not in expected]
        standing = reader.standing([f"{row:05d}" for row in at])
    assert standing.accepted.tolist() == taken[at].tolist()


def test_strict_stops_at_the_first_refused_row(tmp_path):
    table, _ = history(100)
    table = table.set_column(3, "years", pa.array([None, *table["years"].to_pylist()[1:]]))
    config = with_config(example_config(), 'missing = "refuse"')
    result = init(config, write(table), "--strict", code=2)
    assert "row 1 (id '00000')" in result["error"]["message"]
    assert "1 of 100" in result["error"]["message"]
    assert {value.name for value in tmp_path.iterdir()} == {"history.csv", "program.toml"}


# Errors


def test_second_init_changes_nothing():
    table, _ = history(120)
    result = init(example_config(), write(table))
    refused("'main'", "--ledger", URL, "--config", "program.toml", "history.csv")
    assert str(Program.open(URL).checkpoint()) == result["checkpoint"]
    assert init(example_config(), "history.csv", "--program", "b")["program"] == "b"
    assert SqlLedger(URL).programs() == ["b", "main"]


@pytest.mark.parametrize(
    ("change", "value"),
    [
        (lambda t: t.rename_columns(["ID", *t.column_names[1:]]), "'ID'"),
        (lambda t: t.drop_columns(["outcome"]), "'outcome'"),
        (lambda t: t.drop_columns(["sex"]), "'sex'"),
        (lambda t: t.select(["id", "sex", "outcome"]), "'sex'"),
        (lambda t: t.set_column(1, "income", pa.array(["1.234,5"] * 100)), "'income'"),
        (lambda t: t.append_column("taken", t["outcome"].is_valid()), "'taken'"),
        (
            lambda t: t.append_column(
                "late", pa.array([int(value == "default") for value in t["outcome"].to_pylist()])
            ),
            "'late'",
        ),
        (lambda t: t.set_column(0, "id", pa.array(["one"] * 100)), "'id'"),
        (
            lambda t: t.set_column(
                5, "outcome", pc.replace_substring(t["outcome"], "default", "Defaulted")
            ),
            "'Defaulted'",
        ),
    ],
)
def test_unusable_histories_are_refused(change, value):
    error = init(example_config(), write(change(history(100)[0])), code=2)["error"]
    assert value in one_sentence(error["message"])
    with pytest.raises(LedgerError):  # there is none
        SqlLedger(URL).programs()


def test_missing_arguments_are_named():
    for given in (["history.csv"], ["--ledger", URL], ["--config", "program.toml", "history.csv"]):
        refused("--ledger", *given)
    refused("'no.toml'", "--ledger", URL, "--config", "no.toml", "history.csv")
    call("--example", "-o", "program.toml")
    ready = ("--config", "program.toml")
    refused("'no.csv'", "--ledger", URL, *ready, "no.csv")
    table, taken = history(100)
    write(table.append_column("accepted", pa.array(taken)))
    refused("'lender.db'", "--ledger", "lender.db", *ready, "history.csv")
    same = ("--refused", "history.csv")
    refused("history.csv", "--ledger", URL, *ready, "history.csv", *same)


@pytest.mark.parametrize(
    "name", ["=cmd|' /C calc'!A0", "'; DROP TABLE people; --", "{0.__class__}", "%s", "\u202ex"]
)
def test_hostile_program_names_are_only_names(name):
    table, _ = history(100)
    table = table.rename_columns(["id", name, *table.column_names[2:]])
    ids = [f"{name if name.isprintable() else 'x'}{i}" for i in range(100)]
    result = init(example_config(), write(table.set_column(0, "id", pa.array(ids))))
    assert features(result)[0] == name
    with SqlLedger(URL).reading("main") as reader:
        assert reader.standing(ids).persons.tolist() == list(range(100))


# Where verify finds the ledger


def test_verify_takes_the_ledger_from_an_option_or_the_environment(monkeypatch, tmp_path):
    init(example_config(), write(history(100)[0]))

    def run(*words):
        return CliRunner().invoke(app, ["verify", *words])

    assert run("--ledger", URL).exit_code == 0
    assert run().exit_code == 2
    assert run("sqlite:///a.db", "--ledger", URL).exit_code == 2
    monkeypatch.setenv("FAIRCHANCE_LEDGER", URL)
    assert run().exit_code == 0
    assert str(tmp_path / "a.db") in run("sqlite:///a.db").stderr


WITH_TAKEN = example_config().replace('# accepted = "accepted"', 'accepted = "taken"')


def with_taken(table, taken, words=("yes", "no")):
    return table.append_column("taken", pa.array(np.where(taken, *words)))


def filled(table, taken, word):
    """Return a history in which rejected applicants have an outcome too."""
    outcome = np.where(taken, np.array(table["outcome"].to_pylist(), object), word)
    return table.set_column(table.column_names.index("outcome"), "outcome", pa.array(outcome))


@pytest.mark.parametrize("word", ["default", "repaid", "charged-off", "withdrawn"])
def test_outcomes_of_rejected_applicants_are_not_read(word):
    table, taken = history(300)
    plain = init(WITH_TAKEN, write(with_taken(table, taken), "plain.csv"), "--program", "plain")
    result = init(WITH_TAKEN, write(with_taken(filled(table, taken, word), taken)))
    assert result["outcomes_not_read"] == (~taken).sum() > 50
    assert plain["outcomes_not_read"] == result["refused"] == 0
    for key in ("people", "accepted", "good", "bad", "features"):
        assert result[key] == plain[key]
    assert result["people"] == 300
    applicants = history(120, seed=5)[0].select(["income", "debt", "years"])
    sex = history(120, seed=5)[0]["sex"]
    batches = [
        Program.open(URL, name).decide(
            applicants, sensitive_features=sex, ids=np.arange(1000, 1120).astype(str)
        )
        for name in ("plain", "main")
    ]
    assert np.array_equal(batches[0].propensity, batches[1].propensity)  # nothing leaked
    with SqlLedger(URL).reading("main") as reader:
        ids = table["id"].to_pylist()
        assert reader.standing(ids).accepted.tolist() == taken.tolist()
    assert verify(URL, "main").ok


def test_number_of_unread_outcomes_is_printed():
    table, taken = history(200)
    with open("program.toml", "w") as file:
        file.write(WITH_TAKEN)
    path = write(with_taken(filled(table, taken, "default"), taken))
    output = call("--ledger", URL, "--config", "program.toml", path).stdout
    line = f"Not read: {(~taken).sum():,} outcomes of rejected applicants"
    assert line in output
    assert f"{(~taken).sum():,} rejected" in output
    path = write(with_taken(table, taken))
    output = call("--ledger", URL, "--config", "program.toml", "--program", "b", path).stdout
    assert "Not read" not in output


def test_y_and_n_are_past_decisions():
    table, taken = history(200)
    result = init(WITH_TAKEN, write(with_taken(table, taken, ("Y", "N"))))
    assert (result["accepted"], result["refused"]) == (taken.sum(), 0)


def test_unknown_outcomes_of_accepted_applicants_are_refused():
    table, taken = history(200)
    changed = filled(table, ~taken, "charged-off")  # of the accepted, and none of the rejected
    with open("program.toml", "w") as file:
        file.write(WITH_TAKEN)
    result = call("--ledger", URL, "--config", "program.toml", write(with_taken(changed, taken)))
    assert result.exit_code == 2
    assert "'charged-off'" in result.stderr


def of_outcomes(n_good, n_bad):
    """Return a history with as many rejected as accepted applicants."""
    n = n_good + n_bad
    table = history(2 * n)[0]
    outcome = np.array(["repaid"] * n_good + ["default"] * n_bad + [None] * n, object)
    return table.set_column(
        table.column_names.index("outcome"), "outcome", pa.array(outcome[np.arange(2 * n)])
    )


@pytest.mark.parametrize(
    ("n_good", "n_bad", "reported"),
    # By tables of Clopper and Pearson: 62 of 100 begin at 0.517, 59 of 100 at 0.487.
    [(11, 89, True), (38, 62, True), (41, 59, False), (89, 11, False), (2, 3, False)],
)
def test_mostly_bad_outcomes_are_reported(n_good, n_bad, reported):
    result = init(example_config(), write(of_outcomes(n_good, n_bad)))
    assert [note["code"] for note in result["notes"]] == ["mostly_bad"] * reported


def with_gaps(n, start, seed=0):
    """Return applicants with missing debts, which are bad, and with missing regions."""
    applicants, rng = people(n, start, seed), np.random.default_rng([seed, start, 1])
    applicants["region"] = rng.choice(["north", "south"], n)
    applicants.loc[rng.random(n) < 0.1, "region"] = None
    bad = (applicants["outcome"] == "default") & (rng.random(n) < 0.7)
    applicants.loc[bad, "debt"] = np.nan
    return applicants


@pytest.mark.parametrize(
    "kind", [pytest.param("partial-feedback", marks=pytest.mark.long), "certified"]
)
def test_program_with_gaps_decides_verifies_and_learns(tmp_path, kind):
    url = f"sqlite:///{tmp_path}/lender.db"
    (tmp_path / "program.toml").write_text(PROGRAM if kind == "partial-feedback" else CERTIFIED)
    past = with_gaps(300, 0)
    past.loc[past["income"] < -0.3, "outcome"] = ""
    past.to_csv("history.csv", index=False)
    result = done("init", "--ledger", url, "--config", "program.toml", "history.csv")
    assert (result["people"], result["refused"]) == (300, 0)
    for t in (1, 2):
        new = with_gaps(80, 1000 * t).set_index("id", drop=False)
        new.drop(columns="outcome").to_csv("applicants.csv", index=False)
        result = done("decide", "applicants.csv", "-o", "decisions.csv", "--ledger", url)
        assert (result["people"], result["refused"]["rows"]) == (80, 0)
        decided = pd.read_csv("decisions.csv", index_col="id")
        yes = decided.index[decided["decision"] == "accept"]
        new.loc[yes, ["id", "outcome"]].to_csv("outcomes.csv", index=False)
        done("observe", "outcomes.csv", "--ledger", url)
    program = Program.open(url)
    verification = program.verify(relearn=True)
    assert (verification.ok, verification.n_decisions, verification.n_learned_again) == (
        True,
        160,
        160,
    )
    assert verify(program.ledger).ok
    gone = new["debt"].isna()
    result = decided["reasons"].fillna("")
    assert result[gone].str.contains("missing debt").any()
    assert not result[~gone].str.contains("missing debt").any()
    assert decided["score"][gone].mean() < decided["score"][~gone].mean() - 0.02
