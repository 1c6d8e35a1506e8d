"""Files, configurations and stored models never run as code or SQL."""

from __future__ import annotations

import ast
import csv
import io
import json
import os
import pickle
import re
import unicodedata
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import skops.io
import sqlalchemy as sa
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

import fairchance as fc
import fairchance.cli.output
from cli.lender_files import (
    PROGRAM,
    call,
    causes,
    done,
    people,
    refused,
    start,
)
from fairchance.errors import InputError
from fairchance.ledger import Program, SqlLedger, schema, verify
from fairchance.methods.storage import FORMAT, dumps

COLUMNS = [
    "x; DROP TABLE people;--",
    '"; DELETE FROM entries; --',
    "it's `quoted` %s %(x)s :x ? {x}",
    "ünï\u202ecode \U0001f600",
    "__class__",
    "=1+1",
    "l" * 3000,
]
VALUES = [
    "'; DROP TABLE people; --",
    "x'); DELETE FROM entries; --",
    "=cmd|' /C calc'!A0",
    "@SUM(A1)",
    "'=1+1",
    "%s %(x)s :x ? {x} \\",
    "ünï\u202ecode \U0001f600",
    "__import__('os').system('true')",
    "null",
    'a "quoted", id\nin two lines',
]
TABLES = set(schema.people.metadata.tables) | {"alembic_version"}


def tables(url):
    return set(sa.inspect(SqlLedger(url).engine).get_table_names())


def written(path, frame):
    """Write a file with every cell in quotes, as an attacker may."""
    frame.to_csv(path, index=False, quoting=csv.QUOTE_ALL)
    return path


def with_hostile_columns(n, begin):
    frame = people(n, begin)
    rng = np.random.default_rng(begin)
    for at, name in enumerate(COLUMNS[2:]):
        frame[name] = rng.normal(size=n) + at
    return frame.rename(columns={"id": COLUMNS[0], "sex": COLUMNS[1]})


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """Work in an empty folder: refused rows are written to the current folder."""
    monkeypatch.chdir(tmp_path)


def test_hostile_column_names_are_only_names(url, tmp_path):
    past = with_hostile_columns(300, 0)
    past.loc[past["income"] < -0.3, "outcome"] = ""
    written(tmp_path / "history.csv", past)
    config = PROGRAM.replace('id = "id"', f"id = {json.dumps(COLUMNS[0])}")
    config = config.replace('["sex"]', json.dumps([COLUMNS[1]]))
    (tmp_path / "program.toml").write_text(config)
    result = done(
        "init", "--ledger", url, "--config", tmp_path / "program.toml", tmp_path / "history.csv"
    )
    names = {found["column"] for found in result["features"]}
    assert names == {"income", "debt", *COLUMNS[2:]}
    new = with_hostile_columns(60, 1000)
    out = tmp_path / "decisions.csv"
    batch = COLUMNS[0]
    file = written(tmp_path / "applicants.csv", new)
    done("decide", file, "-o", out, "--ledger", url, "--batch", batch, "--by", COLUMNS[1])
    yes = pd.read_csv(out)["decision"] == "accept"
    file = written(tmp_path / "outcomes.csv", new.loc[yes, [COLUMNS[0], "outcome"]])
    assert done("observe", file, "--ledger", url)["refused"]["rows"] == 0
    assert tables(url) == TABLES
    verification = verify(SqlLedger(url))
    assert (verification.problem, verification.n_decisions) == (None, 60)
    with SqlLedger(url).reading("main") as reader:
        assert reader.entry("batch", batch).by == COLUMNS[1]


def test_hostile_values_stay_data_in_input_and_output(url, tmp_path):
    start(url, tmp_path)
    new = people(len(VALUES), 1000)
    new["id"] = VALUES
    file, out = written(tmp_path / "applicants.csv", new), tmp_path / "decisions.parquet"
    report = done("decide", file, "-o", out, "--ledger", url, "--refused", tmp_path / "no.csv")
    # "=1+1" is written, and so read, as "'=1+1"; rows with invisible characters in the id
    # are refused
    expected = ["=1+1" if value == "'=1+1" else value for value in VALUES if value.isprintable()]
    assert (report["people"], report["refused"]["rows"]) == (len(expected), 2) == (8, 2)
    assert pq.read_table(out)["id"].to_pylist() == expected
    out = tmp_path / "decisions.csv"
    done("decide", file, "-o", out, "--ledger", url)
    with out.open(encoding="utf-8", newline="") as text:
        rows = list(csv.reader(text))
    assert len(rows) == 1 + len(expected)
    assert not any(cell[:1] in ("=", "+", "-", "@", "\t", "\r") for row in rows for cell in row[:1])
    decisions = pq.read_table(tmp_path / "decisions.parquet").to_pandas()
    outcomes = pd.DataFrame({"id": [row[0] for row in rows[1:]], "outcome": VALUES[0]})
    outcomes.loc[decisions["decision"] == "accept", "outcome"] = "repaid"
    result = done("observe", written(tmp_path / "outcomes.csv", outcomes), "--ledger", url)
    assert result["recorded"]["good"] == (decisions["decision"] == "accept").sum() > 0
    assert result["refused"]["rows"] == (decisions["decision"] == "reject").sum()
    standing = Program.open(url).standing(np.array(expected, object))
    assert (standing.persons >= 0).all()
    assert tables(url) == TABLES
    assert verify(SqlLedger(url)).problem is None


TERMINAL = "\x1b]0;owned\x07\x9b2J\r\nEverything fits.\x85\u2028\u202e\u2066\u200b\U000e0041"


def hidden(text):
    """Return the characters of a text that a terminal would obey or hide."""
    return {
        c for c in text if not (c.isprintable() or c == "\n" or unicodedata.category(c) == "Zs")
    }


def shown(words, texts):
    """Run a command; check that its output has no such character, and shows some texts escaped."""
    result = call(*words)
    output = result.stdout + result.stderr
    assert output.strip()
    assert not hidden(output), words
    assert "\nEverything fits.\\x85" not in output
    for text in texts:
        assert text in output, (words, output)
    return result


def test_a_foreign_ledger_gives_the_terminal_no_orders(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "600")
    monkeypatch.setattr("fairchance.ledger.answers.check_spelling", lambda _: None)  # as others may
    url, escaped = f"sqlite:///{tmp_path}/x.db", repr(TERMINAL)[1:-1]
    group, column = f"sex{TERMINAL}", f"income{TERMINAL}"
    past, new = (
        frame.assign(sex=frame["sex"] + TERMINAL).rename(columns={"income": column, "sex": group})
        for frame in (people(200), people(60, 1000))
    )
    program = Program.create(
        url,
        fc.PartialFeedbackClassifier(
            learner=LogisticRegression(), pos_label="repaid", random_state=0
        ),
        past[[column, "debt"]],
        past["outcome"],
        sensitive_features=past[[group]],
        ids=past["id"],
        by=f"me{TERMINAL}",
    )
    ids = [f"{name}{TERMINAL}" for name in new["id"]]
    decided = program.decide(
        new[[column, "debt"]], sensitive_features=new[[group]], ids=ids, batch=f"may{TERMINAL}"
    )
    program.override(decided.ids[:1], not decided.accepted[0], f"asked{TERMINAL}")
    program.hold(decided.ids[1:2], f"court{TERMINAL}")
    at = ["--ledger", url]
    shown(["status", *at], [f"may{escaped}", f"f{escaped}", f"sex{escaped}"])
    shown(["verify", *at], [])
    shown(["export", *at, "-o", "d.csv"], [])
    shown(["export", *at, "--checkpoint"], [])
    data = json.loads(shown(["status", *at, "--json"], []).stdout)
    assert data["rounds"][0]["batch"] == f"may{TERMINAL}"
    shown(["report", *at, "-o", "r.html"], [])
    page = Path("r.html").read_text(encoding="utf-8")
    assert not hidden(re.sub(r"<script>.*</script>", "", page, flags=re.DOTALL))  # the library
    assert r"may\x1b]0;owned\x07\x9b2J\r" in page
    written(tmp_path / "a.csv", new.assign(id=ids, x=1).drop(columns="debt"))
    assert shown(["decide", "a.csv", "-o", "e.csv", *at], ["'debt'"]).exit_code == 2
    written(tmp_path / "a.csv", pd.DataFrame({"id": ["a"], "outcome": [TERMINAL]}))
    shown(["observe", "a.csv", *at], [])
    shown(["override", "--id", TERMINAL, "--accept", "--reason", "x", *at], [])
    shown(["status", *at, "--program", f"other{TERMINAL}"], [])
    with (
        SqlLedger(url).engine.connect().execution_options(writes=True) as connection,
        connection.begin(),
    ):
        connection.execute(
            sa.update(schema.people).where(schema.people.c.person == 205).values(score=0.123)
        )
    assert shown(["verify", *at], []).exit_code == 4


def test_a_foreign_log_gives_the_terminal_no_orders(monkeypatch):
    monkeypatch.setenv("COLUMNS", "600")
    rng, escaped = np.random.default_rng(0), repr(TERMINAL)[1:-1]
    column, group = f"income{TERMINAL}", f"sex{TERMINAL}"
    accepted = rng.random(400) < 0.5
    table = pa.table(
        {
            column: rng.normal(size=400),
            group: rng.choice([f"f{TERMINAL}", "m"], 400),
            "accepted": accepted,
            "propensity": np.full(400, 0.5),
            "outcome": pa.array(rng.integers(0, 2, 400), mask=~accepted),
        }
    )
    pq.write_table(table, "log.parquet")
    words = [
        "evaluate",
        "--log",
        "log.parquet",
        "--column",
        f"group={group}",
        "--policy",
        f"{column} >= 0",
    ]
    shown(words, [f"income{escaped} ≥ 0", f"sex{escaped}", f"f{escaped}"])
    data = json.loads(shown([*words, "--json"], []).stdout)
    assert data["policies"][0]["policy"] == f"{column} ≥ 0"
    assert shown([*words[:-1], f"x{TERMINAL} >= 0"], [f"x{escaped}"]).exit_code == 2


def test_a_hostile_history_gives_the_terminal_no_orders(tmp_path):
    for name, value in (("debt", f"debt{TERMINAL}"), ("sex", f"sex{TERMINAL}")):
        past = people(300)
        past.loc[past["income"] < -0.3, "outcome"] = ""
        past["town"] = np.where(np.arange(300) % 2, "a", f"b{TERMINAL}")
        past.loc[5, "outcome"] = TERMINAL
        written(tmp_path / "h.csv", past.rename(columns={name: value}))
        Path("p.toml").write_text(PROGRAM)
        url = f"sqlite:///{tmp_path}/{name}.db"
        shown(["init", "--ledger", url, "--config", "p.toml", "h.csv"], [])


def test_all_output_goes_through_one_place():
    """``print`` and rich's own console would not escape names."""
    sources = Path(fairchance.cli.output.__file__).parent.rglob("*.py")
    for source in sources:
        if source.name == "output.py":
            continue
        for node in ast.walk(ast.parse(source.read_text("utf-8"))):
            assert not (isinstance(node, ast.Call) and ast.unparse(node.func) == "print"), source
            assert ast.unparse(node) != "from rich.console import Console", source


def test_rows_with_a_million_characters_or_nul_are_refused(url, tmp_path):
    start(url, tmp_path)
    new = people(40, 1000).drop(columns="outcome")
    new.loc[3, "id"] = "x" * 1_000_000
    new["sex"] = new["sex"].astype(object)
    new.loc[4, "sex"] = "f" * 1_000_000
    new["income"] = new["income"].astype(object)
    new.loc[5, "income"] = "1" * 1_000_000
    file, out = tmp_path / "applicants.csv", tmp_path / "decisions.csv"
    new.to_csv(file, index=False)
    report = done("decide", file, "-o", out, "--ledger", url)
    assert (report["people"], report["refused"]["rows"]) == (37, 3)
    assert all(len(str(cause)) < 300 for cause in report["refused"]["causes"])
    outcomes = pd.DataFrame({"id": ["a\0b", "y" * 1_000_000, "z"], "outcome": "repaid"})
    pq.write_table(pa.Table.from_pandas(outcomes), tmp_path / "outcomes.parquet")
    refusals = ["--refused", tmp_path / "no.parquet"]
    result = done("observe", tmp_path / "outcomes.parquet", "--ledger", url, *refusals, code=2)
    assert causes(result["refused"]) == {"no_id": 1, "unknown": 2}
    new = people(3, 2000)
    new.loc[1, "id"] = "a\0b"
    pq.write_table(pa.Table.from_pandas(new), tmp_path / "applicants.parquet")
    report = done("decide", tmp_path / "applicants.parquet", "-o", out, "--ledger", url, *refusals)
    assert causes(report["refused"]) == {"nul": 1}
    assert verify(SqlLedger(url)).problem is None


def test_nul_in_a_csv_file_is_refused_and_records_nothing(tmp_path):
    url = f"sqlite:///{tmp_path}/x.db"
    start(url, tmp_path)
    head = Program.open(url).checkpoint()
    (tmp_path / "a.csv").write_bytes(b"id,income,debt,sex\nx\0y,1,2,f\n")
    sentence = refused("decide", tmp_path / "a.csv", "-o", tmp_path / "d.csv", "--ledger", url)
    assert "a.csv is not a csv file in utf-8: line 2" in sentence
    assert Program.open(url).checkpoint() == head


class Runs:
    """Creates a file if it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (Path(self.mark),)


class Marks(ClassifierMixin, BaseEstimator):
    """A learner of an untrusted type that creates a file when it is loaded."""

    def __setstate__(self, state):
        Path(os.environ["MARK"]).touch()
        super().__setstate__(state)

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)


def archive(files):
    room = io.BytesIO()
    with zipfile.ZipFile(room, "w") as content:
        for name, value in files.items():
            content.writestr(name, value)
    return room.getvalue()


def stored(root, objects, files):
    """Return a payload in the format of a ledger's stored classifiers."""
    manifest = {"format": FORMAT, "fairchance": "1", "root": root, "objects": objects}
    return archive({"manifest.json": json.dumps(manifest), **files})


def skops_file(node):
    """Return a skops file with a single node written by hand."""
    with zipfile.ZipFile(io.BytesIO(skops.io.dumps([1]))) as made:
        schema_of = json.loads(made.read("schema.json"))
    head = {name: schema_of[name] for name in ("protocol", "_skops_version")}
    return archive({"schema.json": json.dumps(node | head)})


def pickled_array(mark):
    room = io.BytesIO()
    np.save(room, np.array([Runs(mark)], object), allow_pickle=True)
    return room.getvalue()


SYSTEM = {
    "__class__": "system",
    "__module__": "os",
    "__loader__": "FunctionNode",
    "__id__": 1,
    "content": {"module_path": "os", "function": "system"},
}
PAYLOADS = {
    "pickle": lambda mark: pickle.dumps(Runs(mark)),
    "pickled array": lambda mark: stored({"array": "0.npy"}, [], {"0.npy": pickled_array(mark)}),
    "pickle for array": lambda mark: stored(
        {"array": "0.npy"}, [], {"0.npy": pickle.dumps(Runs(mark))}
    ),
    "pickle for skops": lambda mark: stored(
        {"ref": 0}, [{"skops": "0.skops"}], {"0.skops": pickle.dumps(Runs(mark))}
    ),
    "forbidden function": lambda mark: stored(
        {"ref": 0}, [{"skops": "0.skops"}], {"0.skops": skops_file(SYSTEM)}
    ),
    "forbidden type": lambda mark: stored(
        {"ref": 0}, [{"skops": "0.skops"}], {"0.skops": skops.io.dumps(Marks())}
    ),
    "type by name": lambda mark: stored({"ref": 0}, [{"type": "Runs", "fields": {}}], {}),
}


@pytest.fixture
def mark(tmp_path, monkeypatch):
    """Return the path of a file that must not be created."""
    monkeypatch.setenv("MARK", str(tmp_path / "code has run"))
    return str(tmp_path / "code has run")


def test_payloads_would_run_if_trusted(mark):
    pickle.loads(PAYLOADS["pickle"](mark))
    assert Path(mark).exists()
    Path(mark).unlink()
    np.load(io.BytesIO(pickled_array(mark)), allow_pickle=True)
    assert Path(mark).exists()
    Path(mark).unlink()
    content = skops.io.dumps(Marks())
    skops.io.loads(content, trusted=skops.io.get_untrusted_types(data=content))
    assert Path(mark).exists()


def swap(url, payload):
    """Replace everything that a ledger has stored by a payload."""
    engine = SqlLedger(url).engine
    with engine.connect().execution_options(writes=True) as connection, connection.begin():
        connection.execute(sa.update(schema.payloads).values(content=payload))


def test_replaced_stored_model_runs_nothing(url, tmp_path, mark):
    start(url, tmp_path, n=120)
    people(10, 1000).to_csv(tmp_path / "a.csv", index=False)
    people(10, 0).to_csv(tmp_path / "outcomes.csv", index=False)
    for kind, payload in PAYLOADS.items():
        swap(url, payload(mark))
        for words in (
            ["decide", tmp_path / "a.csv", "-o", tmp_path / "d.csv"],
            ["observe", tmp_path / "outcomes.csv"],
        ):
            assert call(*words, "--ledger", url).exit_code != 0, kind
        result = call("verify", "--ledger", url)
        assert result.exit_code == 4, kind
        assert "was changed" in result.stdout
        assert not Path(mark).exists(), kind
        assert not (tmp_path / "d.csv").exists()
    with SqlLedger(url).reading("main") as reader:
        assert not list(reader.entries(kind="batch"))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return the URL of a program for tests that replace its stored models."""
    folder = tmp_path_factory.mktemp("lender")
    start(f"sqlite:///{folder}/x.db", folder, n=120)
    return f"sqlite:///{folder}/x.db"


@pytest.mark.parametrize("kind", PAYLOADS)
def test_replaced_stored_model_is_refused(made, tmp_path, mark, kind):
    swap(made, PAYLOADS[kind](mark))
    people(10, 1000).to_csv(tmp_path / "a.csv", index=False)
    sentence = refused("decide", tmp_path / "a.csv", "-o", tmp_path / "d.csv", "--ledger", made)
    named = ("classifier stored in entry", "a stored estimator", "the file contains the type")
    assert any(value in sentence for value in named)


def test_model_of_an_untrusted_type_is_refused_even_if_the_chain_is_intact(url, tmp_path, mark):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 2)), columns=["income", "debt"])
    clf = fc.PartialFeedbackClassifier(learner=Marks(), random_state=0)
    trusted = skops.io.get_untrusted_types(data=skops.io.dumps(Marks()))
    Program.create(url, clf, X, (X["income"] > 0).astype(int), trusted=trusted)
    assert Path(mark).exists()  # it was trusted here
    Path(mark).unlink()
    people(10, 1000).to_csv(tmp_path / "a.csv", index=False)
    words = "Marks"
    assert words in refused("decide", tmp_path / "a.csv", "-o", tmp_path / "d.csv", "--ledger", url)
    result = call("verify", "--ledger", url)
    assert result.exit_code != 0
    assert words in result.stdout + result.stderr
    assert not Path(mark).exists()


def test_learner_that_is_not_plain_data_is_not_stored():
    with pytest.raises(InputError, match="cannot be saved"):
        dumps(fc.PartialFeedbackClassifier(strategy=lambda *_: 1, random_state=0))


@pytest.mark.parametrize(
    "change",
    [
        ("alpha = 0.2", "alpha = \"__import__('pathlib').Path(MARK).touch()\""),
        ('"partial-feedback"', '"!!python/object/apply:os.system [touch MARK]"'),
        ("seed = 3", 'learner = "os.system"'),
        ("seed = 3", 'strategy = "fairchance.notebook:anything"'),
        ("seed = 3", 'seed = !!python/object/apply:os.system ["touch MARK"]'),
        ("seed = 3", '__class__ = "os.system"'),
        ("[columns]", '["__builtins__"]\nx = 1\n[columns]'),
    ],
)
def test_configuration_is_only_data(tmp_path, mark, change):
    old, new = change
    assert old in PROGRAM
    (tmp_path / "program.toml").write_text(PROGRAM.replace(old, new.replace("MARK", repr(mark))))
    people(50).to_csv(tmp_path / "history.csv", index=False)
    sentence = refused(
        "init",
        "--ledger",
        f"sqlite:///{tmp_path}/x.db",
        "--config",
        tmp_path / "program.toml",
        tmp_path / "history.csv",
    )
    assert "program.toml" in sentence
    assert not Path(mark).exists()
    assert not (tmp_path / "x.db").exists()


def test_python_tags_in_a_configuration_stay_text(tmp_path, mark):
    tag = f'!!python/object/apply:os.system [\\"touch {mark}\\"]'
    config = PROGRAM.replace('good = ["repaid", 1]', f'good = ["repaid", "{tag}"]')
    url = f"sqlite:///{tmp_path}/x.db"
    start(url, tmp_path, config, n=120)
    assert Program.open(url).about["outcomes"]["good"][1].startswith("!!python/object")
    assert not Path(mark).exists()
