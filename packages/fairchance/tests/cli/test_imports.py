"""Decisions of engines, imported in bulk: checked against the policy of their round."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.lender_files import CERTIFIED, call, causes, done, entries, people, refused, start
from fairchance.cli.commands import imports
from fairchance.errors import InputError
from fairchance.ledger import Program, verify
from fairchance.methods.storage import load

N, PIECE = 130, 40
MADE = ("--at", "2031-03-20", "--where", "cluster")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lender")
    start(f"sqlite:///{folder}/lender.db", folder, CERTIFIED)
    return folder


@pytest.fixture
def lender(made, tmp_path, monkeypatch):
    """Return a program with an open round, and the decisions of an engine in three files."""
    for file in made.glob("lender.db*"):
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    url = f"sqlite:///{tmp_path}/lender.db"
    monkeypatch.setenv("FAIRCHANCE_LEDGER", url)
    monkeypatch.setattr(imports, "PIECE", PIECE)
    done("round", "open", "--expected", N, "--policy", "round.policy")
    engine(people(N, 1000))
    return Program.open(url)


def engine(applicants, folder="decided"):
    """Write what an engine decides by the policy file."""
    Path(folder).mkdir()
    policy = load("round.policy")
    for at, rows in enumerate(np.array_split(np.arange(len(applicants)), 3)):
        table = pa.Table.from_pandas(applicants.iloc[rows].drop(columns="outcome"))
        decided = policy.decide_batches(table.to_batches(), keep=True)
        pq.write_table(pa.Table.from_batches(decided), f"{folder}/{at}.parquet")


def change(file, column, rows, value):
    table = pd.read_parquet(file)
    table.loc[table.index[rows], column] = value
    table.to_parquet(file, index=False)


def all_of(folder="decided"):
    return pd.concat(map(pd.read_parquet, sorted(Path(folder).iterdir())), ignore_index=True)


def test_what_an_engine_decided_is_recorded(lender, golden):
    decided = all_of()
    result = done("import", "decided/", *MADE)
    assert (result["people"], result["rounds"], result["refused"]["rows"]) == (N, [1], 0)
    assert result["accepted"] == decided["decided_accepted"].sum()
    done("round", "close")
    got = pd.read_csv(call("export", "-o", "all.csv") and "all.csv", dtype={"id": str})
    assert got["id"].tolist() == decided["id"].tolist()
    assert got["accepted"].tolist() == decided["decided_accepted"].tolist()
    np.testing.assert_allclose(got["propensity"], decided["decided_propensity"], 1e-9)
    assert lender.classifier.rounds_[0].n_people == N
    assert verify(lender.ledger, relearn=True).ok
    again = call("import", "decided/*.parquet", *MADE)
    golden("import", f"$ fairchance import 'decided/*.parquet' {' '.join(MADE)}\n{again.stdout}")
    assert verify(lender.ledger).ok


def test_decisions_that_do_not_follow_are_named(lender):
    decided = all_of()
    rows = np.flatnonzero(~decided["decided_accepted"][:30])[:2].tolist()
    change("decided/0.parquet", "decided_accepted", rows, True)
    change("decided/1.parquet", "decided_propensity", [3], 0.123)
    result = done("import", "decided/", *MADE)
    wrong = [*decided["id"].iloc[rows], decided["id"].iloc[44 + 3]]
    assert result["do_not_follow"] == {"n": 3, "first": wrong}
    assert causes(result["refused"]) == {"does_not_follow": 3}
    assert result["people"] == N - 3
    reasons = pd.read_csv("0.refused.csv")
    assert reasons["id"].tolist() == wrong[:2]
    assert reasons["reason"].str.contains("rejects").all()
    assert "propensity" in pd.read_csv("1.refused.csv")["reason"][0]
    assert lender.summary().open_round.n_people == N - 3
    assert verify(lender.ledger).ok


def test_decisions_of_other_policies_are_refused(lender, made):
    shutil.copytree("decided", "other")
    key = "0" * 32
    change("other/0.parquet", "decided_policy", slice(None), key)  # of another program, say
    change("other/1.parquet", "decided_round", slice(None), 7)
    result = done("import", "other/", *MADE)
    assert causes(result["refused"]) == {"other_policy": 44, "other_round": 43}
    assert result["people"] == N - 87
    said = pd.concat([pd.read_csv(f"{at}.refused.csv") for at in (0, 1)])
    assert said["reason"].iloc[0].startswith(f"the decision is by the policy '{key}'")
    assert said["reason"].iloc[-1] == "the program has no policy of round 7"
    table = pd.read_parquet("decided/0.parquet").drop(columns="decided_policy")
    table.to_parquet("bare.parquet", index=False)
    assert "'decided_policy'" in refused("import", "bare.parquet", *MADE)


def test_no_column_of_the_program_says_what_was_decided(tmp_path, monkeypatch):
    """Else the lender's own decisions would be taken for those of the policy."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAIRCHANCE_LEDGER", f"sqlite:///{tmp_path}/lender.db")
    config = CERTIFIED.replace("[outcomes]", 'incumbent = "decision"\n[outcomes]')
    start(f"sqlite:///{tmp_path}/lender.db", tmp_path, f"[program]\nramp = 0.5\n{config}")
    done("round", "open", "--policy", "round.policy")
    applicants = people(N, 1000).assign(decision=lambda rows: np.where(rows["income"] > 0, 1, 0))
    engine(applicants)
    decided, own = all_of(), applicants["decision"].to_numpy() == 1
    assert (decided["decided_accepted"] != own).any()
    words = np.where(decided["decided_accepted"], "accept", "reject")
    applicants.assign(decision=words).to_csv("made.csv", index=False)
    assert "'decided_accepted'" in refused("import", "made.csv", *MADE)
    assert done("import", "decided/", *MADE)["people"] == N
    with Program.open(f"sqlite:///{tmp_path}/lender.db").reading() as view:
        recorded = view.reader.recorded(decided["id"].tolist()).decisions
    assert recorded.accepted.tolist() == decided["decided_accepted"].tolist()
    assert recorded.incumbent.tolist() == own.tolist()
    with pytest.raises(InputError, match="'decided_accepted' already"):
        engine(decided.assign(outcome=0), "again")
    (tmp_path / "other").mkdir()
    url = f"sqlite:///{tmp_path}/other/lender.db"
    config = CERTIFIED.replace("[outcomes]", 'incumbent = "decided_accepted"\n[outcomes]')
    start(url, tmp_path / "other", config)
    message = refused("import", "decided/", *MADE, "--ledger", url)
    assert "has a column 'decided_accepted'" in message


def test_rows_that_do_not_say_who_decided_are_refused(lender):
    table = pd.concat(map(pd.read_parquet, sorted(Path("decided").iterdir())), ignore_index=True)
    table = table.astype({"decided_round": object, "decided_propensity": object})
    table.loc[[0, 1], "decided_policy"] = None
    table.loc[2, "decided_round"] = None
    table.loc[3, "decided_round"] = "first"
    table.loc[4, "decided_round"] = 1.5
    table.loc[5, "decided_propensity"] = "certain"
    table.loc[6, "decided_score"] = np.nan
    table.to_csv("made.csv", index=False)
    result = done("import", "made.csv", *MADE)
    assert result["people"] == N - 7
    said = pd.read_csv("made.refused.csv").set_index("id").loc[table["id"][:7]]
    assert said["reason"].iloc[0] == "'decided_policy' is empty, and must be the key of a policy"
    codes = ["no_decision"] * 3 + ["not_a_number", "other_round", "not_a_number", "no_decision"]
    assert said["reason_code"].tolist() == codes


def test_recorded_applicants_stay_as_they_are(lender):
    """Those of a command that was interrupted, and of another round or with other values."""
    applicants = people(N, 1000)
    applicants.iloc[:50].drop(columns="outcome").to_csv("some.csv", index=False)
    done("decide", "some.csv", "-o", "made.csv")
    change("decided/0.parquet", "income", [2], 0.5)
    result = done("import", "decided/", *MADE)
    assert (result["known_already"], result["people"]) == (49, N - 1)
    assert causes(result["refused"]) == {"other_content": 1}
    done("round", "close")
    done("round", "open", "--policy", "second.policy")
    assert len(entries(lender, "import")) == 4  # one for each piece with something new
    shutil.move("second.policy", "round.policy")
    engine(people(N, 1000), "second")
    result = done("import", "second/", *MADE)
    assert causes(result["refused"]) == {"decided_in_round": N}
    assert "the id was decided on in round 1;" in call("import", "second/", *MADE).stdout
    assert (result["people"], result["rounds"]) == (0, [])


def test_decisions_made_after_their_round_are_named(lender):
    """A machine that holds a policy file hears nothing of a pause."""
    assert done("import", "decided/0.parquet", *MADE)["after_close"]["n"] == 0
    done("pause")
    closed = entries(lender, "batch")[-1].at
    made = pd.concat(map(pd.read_parquet, ("decided/1.parquet", "decided/2.parquet")))
    explored = int((made["decided_accepted"] & ~made["decided_exploit"])[:43].sum())
    assert explored
    where = ("--where", "branch")
    before = done("import", "decided/0.parquet", "--at", "2020-01-01", *where)  # known already
    assert before["after_close"] == {"n": 0, "explored": 0, "rounds": [], "sure": True}
    status = done("status")
    assert "imports" not in {check["question"] for check in status["checks"]}
    found = done("import", "decided/1.parquet", "--at", closed[:10], *where)["after_close"]
    assert found == {"n": 43, "explored": explored, "rounds": [1], "sure": False}
    (check,) = [one for one in done("status")["checks"] if one["question"] == "imports"]
    assert (check["light"], check["facts"]) == ("amber", found)
    found = done("import", "decided/2.parquet", "--at", "2199-01-01T09:30", *where)["after_close"]
    assert (found["n"], found["sure"]) == (43, True)
    printed = call("status").stdout
    assert "86 decisions" in printed
    call("report", "-o", "report.html")
    assert "2199-01-01T09:30, branch" in Path("report.html").read_text()
    assert [one.says["after_close"] for one in entries(lender, "import")] == [
        *[False] * 2,
        *[None] * 2,
        *[True] * 2,
    ]


def test_when_decisions_were_made_must_be_a_time(lender):
    message = refused("import", "decided/", "--at", "noon", "--where", "cluster")
    assert "--at" in message
    assert "'noon'" in message
    assert not entries(lender, "import")


def test_what_is_imported_too_late_is_no_evidence(lender):
    done("import", "decided/0.parquet", *MADE)
    done("round", "close")
    result = done("import", "decided/", *MADE)
    assert result["people"] == N
    assert "Testing begins again" in result["notes"][0]
    assert len(result["notes"]) == 1  # once for the round
    before, void = np.split([entry.says["void"] for entry in entries(lender, "import")], [2])
    assert not before.any()
    assert void.all()
    assert lender.classifier.rounds_[0].n_people == 44
    assert verify(lender.ledger, relearn=True).ok
    got = pd.read_csv(call("export", "-o", "all.csv") and "all.csv", dtype={"id": str})
    assert len(got) == N


def test_the_rejected_too_are_missed_if_they_come_too_late(lender):
    """Evidence without them would lack what no policy covers."""
    late = pd.read_parquet("decided/0.parquet").query("not decided_accepted")
    assert len(late)
    late.to_parquet("late.parquet", index=False)
    done("import", "decided/1.parquet", *MADE)
    done("round", "close")
    assert "Testing begins again" in done("import", "late.parquet", *MADE)["notes"][0]
    assert entries(lender, "import")[-1].says["void"]
