"""The policy of a program reads tables as the command line reads files."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.lender_files import done
from fairchance import load
from fairchance.errors import InputError, VersionsError
from fairchance.people.features import FeatureColumns
from fairchance.people.intake import Reader
from fairchance.people.tables import InputTable
from mixed_tables import applicants

CONFIG = """
[columns]
id = "loan"
outcome = "outcome"
accepted = "past"
incumbent = "officer"
barred = "sanctioned"
persons = "customer"
groups = ["sex"]
features = ["job", "age", "owner", "since", "income", "amount"]
missing_values = ["?", "-9"]
[outcomes]
good = [1]
bad = [0]
[decisions]
accepted = ["funded"]
rejected = ["turned down"]
[classifier]
kind = "certified"
alpha = 0.4
utility = { good = 200, bad = -300 }
group_mode = "blind"
seed = 3
"""


def month(n, start):
    """Return applicants with every kind of column, as pandas has them."""
    rng = np.random.default_rng(start)
    frame, good, _ = applicants(rng, n)
    frame["sex"] = rng.choice(["f", "m", None], n, p=[0.45, 0.45, 0.1])
    frame["loan"] = [f"{start + at:07d}" for at in range(n)]
    frame["customer"] = start + np.arange(n) // 2
    frame["officer"] = np.where(rng.random(n) < 0.5, "funded", "Turned down ")
    frame["sanctioned"] = (rng.random(n) < 0.1) & (frame["officer"] != "funded")
    frame["amount"] = rng.integers(1, 9, n) / 4
    frame.loc[rng.random(n) < 0.1, "income"] = -9
    return frame.assign(outcome=good)


def as_engine(frame):
    """Return applicants as an Arrow table of types that engines have."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    kinds = {
        "job": pa.dictionary(pa.int32(), pa.string()),
        "since": pa.date32(),
        "income": pa.int16(),
        "amount": pa.decimal128(9, 2),
        "sex": pa.large_string(),
        "customer": pa.int64(),
        "loan": pa.string(),
        "officer": pa.string(),
    }
    for name, kind in kinds.items():
        at = table.column_names.index(name)
        column = table[name]
        if kind == pa.dictionary(pa.int32(), pa.string()):
            column = column.cast(pa.string()).dictionary_encode()
        table = table.set_column(at, name, column.cast(kind))
    return table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Start a program, open a round beside the lender, and write its policy."""
    folder = tmp_path_factory.mktemp("lender")
    ledger = ("--ledger", f"sqlite:///{folder}/lender.db")
    (folder / "program.toml").write_text(CONFIG)
    past = month(500, 0)
    past["past"] = past["officer"].str.strip() == "funded"
    past.drop(columns=["officer", "sanctioned"]).to_csv(folder / "history.csv", index=False)
    done("init", "--config", folder / "program.toml", folder / "history.csv", *ledger)
    done("ramp", "0.6", *ledger)
    done("round", "open", "--expected", 200, "--policy", folder / "round.policy", *ledger)
    return folder


@pytest.fixture
def lender(folder, monkeypatch):
    """Return the policy of the open round, in the folder of the program."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("FAIRCHANCE_LEDGER", "sqlite:///lender.db")
    return load("round.policy")


def test_a_policy_file_reads_tables_as_decide_reads_files(lender):
    people = month(200, 10_000).drop(columns="outcome")
    table = as_engine(people)
    batches = table.to_batches(70)
    decided = pa.Table.from_batches(lender.decide_batches(batches, reasons=True))
    at = table.column_names.index("since")
    other = table.set_column(at, "since", table["since"].cast(pa.date64()))
    other = pa.Table.from_batches(lender.decide_batches(other.to_batches(), reasons=True))
    assert other == decided.combine_chunks()
    again = pa.Table.from_batches(lender.decide_batches(batches, keep=True))
    assert again.select(table.column_names) == table
    pq.write_table(table, "month.parquet")
    assert done("decide", "month.parquet", "-o", "decisions.csv")["people"] == 200
    recorded = pd.read_csv("decisions.csv", dtype={"id": str})
    assert decided["loan"].to_pylist() == recorded["id"].tolist()
    accepted = recorded["decision"].to_numpy() == "accept"
    assert 0 < accepted.sum() < 200
    for one in (decided["accepted"], again["decided_accepted"]):
        np.testing.assert_array_equal(one, accepted)
    for name in ("propensity", "score"):
        np.testing.assert_allclose(decided[name], recorded[name], rtol=1e-12, atol=1e-12)
    reasons = pd.Series(decided["reasons"].to_pylist())
    assert reasons.isna().tolist() == accepted.tolist()
    assert reasons[~accepted].tolist() == recorded["reasons"][~accepted].tolist()
    # Numbers and dates may be text, as in a csv file that an engine reads without types.
    words = people.assign(since=people["since"].dt.strftime("%Y-%m-%d"))
    words = pa.Table.from_pandas(words.astype(str).where(words.notna(), None), preserve_index=False)
    again = pa.Table.from_batches(lender.decide_batches(words.to_batches()))
    np.testing.assert_array_equal(again["accepted"], accepted)
    np.testing.assert_allclose(again["propensity"], decided["propensity"], 1e-12, 1e-12)


WRONG = {
    "amount": ([None], "'amount' must hold numbers, as in the history, got nothing"),
    "income": (["1,5"], "'income' must hold numbers, got '1,5'"),
    "since": (["1/2/31"], "'since' must hold dates such as 2031-01-31, got '1/2/31'"),
    "officer": (["later"], "'officer' must hold 'funded' (accepted)"),
    "sanctioned": ([None], "'sanctioned' must hold 1 or 0"),
    "customer": ([" "], "'customer' must hold who applied"),
    "loan": ([""], "1 of 30 applicants have no id in the column 'loan'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_first_row_that_cannot_be_used_is_named(lender, name):
    (value,), sentence = WRONG[name]
    people = month(30, 10_000).drop(columns="outcome")
    texts = people.astype(str).where(people.notna(), None).astype(object)
    texts.loc[4, name] = value
    table = pa.Table.from_pandas(texts, preserve_index=False)
    with pytest.raises(InputError) as error:
        list(lender.decide_batches(table.to_batches()))
    assert sentence in str(error.value)
    if name != "loan":
        assert "'0010004' (1 of 30 rows)" in str(error.value)


def test_other_columns_expiry_and_versions_are_refused(lender):
    table = as_engine(month(30, 10_000).drop(columns="outcome"))
    with pytest.raises(InputError, match="no column 'income'"):
        list(lender.decide_batches(table.drop_columns("income").to_batches()))
    late = replace(lender, expires="2020-01-31T00:00:00+00:00")
    with pytest.raises(InputError, match="round 1 expired at 2020-01-31"):
        list(late.decide_batches(table.to_batches()))
    older = replace(lender, versions={**lender.versions, "fairchance": "0.0.9"})
    with pytest.raises(InputError, match=r"made with fairchance 0\.0\.9.*==0\.0\.9"):
        list(older.decide_batches(table.to_batches()))
    # Its trees are plain arrays, which any version of scikit-learn reads.
    other = replace(lender, versions={**lender.versions, "scikit-learn": "1.0"})
    assert sum(batch.num_rows for batch in other.decide_batches(table.to_batches())) == 30
    error = VersionsError("1.0", "2.0")
    assert str(type(error)(*error.__reduce__()[1])) == str(error)


@pytest.mark.parametrize("other", ["007", "1_000", "+7", "-0", "٩", str(2**63)])
def test_ids_that_are_numbers_are_written_in_one_way(other):
    table = InputTable("loan", features=FeatureColumns(("x",), (), "<f8"))
    reader = Reader(raw=False, allow_missing=False, group_as_feature=False)
    given = table.read(pa.table({"loan": ["7", "-12"], "x": [1.0, 2.0]}), reader)
    assert given["ids"].tolist() == [7, -12]
    with pytest.raises(InputError, match=re.escape(f"'loan' has '{other}'")):
        table.read(pa.table({"loan": ["7", other], "x": [1.0, 2.0]}), reader)
