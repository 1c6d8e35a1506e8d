"""``fairchance decide``: decisions, reasons, promises, retries and interruptions."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

import fairchance as fc
from cli.lender_files import (
    CERTIFIED,
    PROGRAM,
    answer,
    apply,
    call,
    causes,
    done,
    entries,
    people,
    refused,
    start,
    tell,
)
from fairchance.audit.rates import WHOLE, anytime_interval
from fairchance.cli.files.refusals import refused_message
from fairchance.errors import LedgerError
from fairchance.ledger import Program, verify
from fairchance.people.reasons import in_words
from golden import transcript

COLUMNS = [
    "id",
    "decision",
    "region",
    "score",
    "threshold",
    "propensity",
    "round",
    "certified",
    "reasons",
]


def test_decisions_equal_those_of_the_classifier(lender):
    twin = fc.PartialFeedbackClassifier(
        utility=fc.Revenue(gain=200, loss=300), budget=fc.FdrBudget(alpha=0.2), random_state=3
    )
    past = people(400)
    features = ["income", "debt"]
    twin.fit(
        past[features],
        (past["outcome"] == "repaid").astype(int),
        accepted=past["income"] >= -0.3,
        sensitive_features=past[["sex"]],
        ids=past["id"],
    )
    outcomes = []
    for start_at in (1000, 2000, 3000):
        new = apply(start=start_at)
        result = done("decide", "applicants.csv", "-o", "decisions.csv")
        expected = twin.decide(new[features], sensitive_features=new[["sex"]], ids=new["id"])
        got = answer()
        assert list(got.columns) == COLUMNS
        assert got["id"].tolist() == new["id"].tolist()
        assert (got["decision"] == "accept").tolist() == expected.accepted.tolist()
        assert got["region"].tolist() == expected.region.tolist()
        np.testing.assert_allclose(got["propensity"], expected.propensity)
        np.testing.assert_allclose(got["score"], expected.score, rtol=1e-6)
        yes = expected.accepted
        assert result["accepted"] == yes.sum() > 0
        assert result["rejected"] == (~yes).sum() > 0
        assert result["explored"] == expected.explored.sum()
        assert result["exploited"] == yes.sum() - expected.explored.sum()
        assert result["round"] == expected.round == got["round"].unique()
        tell(list(zip(new["id"], new["outcome"], strict=True)))
        result = done("observe", "outcomes.csv")
        assert result["recorded"]["good"] == (new["outcome"][yes] == "repaid").sum()
        assert result["recorded"]["bad"] == (new["outcome"][yes] == "default").sum()
        assert result["refused"]["rows"] == (~yes).sum()
        twin.observe(new["id"][yes], (new["outcome"][yes] == "repaid").astype(int))
        outcomes += new["outcome"][yes].tolist()
        n, bad = len(outcomes), outcomes.count("default")
        share = anytime_interval(bad, n, WHOLE)
        so_far = result["so_far"]
        assert (so_far["bad"], so_far["known"], so_far["pending"]) == (bad, n, 0)
        assert so_far["interval"] == pytest.approx(share)
    assert verify(lender.ledger).ok


def test_rejections_have_reasons_and_draws_stay_hidden(lender):
    apply(300)
    result = call("decide", "applicants.csv", "-o", "decisions.csv")
    got = answer()
    rejected = got["decision"] == "reject"
    assert (got["reasons"][~rejected] == "").all()
    recorded = lender.reasons(got["id"][rejected].tolist())
    assert got["reasons"][rejected].tolist() == [
        in_words(recorded[value]) for value in got["id"][rejected]
    ]
    assert got["reasons"][rejected].str.contains("income|debt|no single feature").all()
    handed_out = (result.stdout + result.stderr + Path("decisions.csv").read_text()).lower()
    for word in ("drawn", "draw", "lottery", "luck", "random", "chance"):
        assert word not in handed_out


def test_repeated_batch_is_answered_from_the_ledger(lender, tmp_path):
    new = apply()
    first = done("decide", "applicants.csv", "-o", "decisions.csv", "--by", "anna")
    assert first["recorded_before"] is None
    head, kept = lender.checkpoint(), (tmp_path / "decisions.csv").read_bytes()
    # The same applicants in other files: reordered or additional columns, parquet, standard input.
    other = new[["debt", "sex", "outcome", "id", "income"]].assign(remark="=1+1")
    pq.write_table(pa.Table.from_pandas(other), "other.parquet")
    text = (tmp_path / "applicants.csv").read_text()
    for words, stdin in (
        (["applicants.csv"], None),
        (["other.parquet"], None),
        (["-"], text),
    ):
        result = done("decide", *words, "-o", "again.csv", stdin=stdin)
        assert result["batch"] == first["batch"]
        assert result["recorded_before"]["by"] == "anna"
        assert (tmp_path / "again.csv").read_bytes() == kept
    assert lender.checkpoint() == head


def test_each_batch_has_its_own_name(lender):
    new = apply()
    name = done("decide", "applicants.csv", "-o", "decisions.csv")["batch"]
    new.loc[7, "income"] += 1e-9
    new["id"] = [f"b{at}" for at in range(len(new))]
    new.to_csv("applicants.csv", index=False)
    names = {name, done("decide", "applicants.csv", "-o", "decisions.csv")["batch"]}
    new["id"] = [f"c{at}" for at in range(len(new))]
    new.to_csv("applicants.csv", index=False)
    names.add(done("decide", "applicants.csv", "-o", "decisions.csv")["batch"])
    assert len(names) == 3


def test_unnamed_batch_is_identified_by_its_applicants(lender, tmp_path):
    first = apply(60)
    name = done("decide", "applicants.csv", "-o", "decisions.csv")["batch"]
    both = pd.concat([first.iloc[:10], people(40, 5000).drop(columns="outcome")])
    both.to_csv("applicants.csv", index=False)
    result = done("decide", "applicants.csv", "-o", "decisions.csv")
    assert (result["people"], result["refused"]["rows"], result["recorded_before"]) == (
        40,
        10,
        None,
    )
    kept = (tmp_path / "decisions.csv").read_bytes()
    again = done("decide", "applicants.csv", "-o", "again.csv")
    assert again["batch"] == result["batch"] != name
    assert (again["people"], again["refused"]["rows"]) == (40, 10)
    assert (tmp_path / "again.csv").read_bytes() == kept
    first.iloc[:10].to_csv("applicants.csv", index=False)  # a part of a batch is not that batch
    sentence = refused("decide", "applicants.csv", "-o", "decisions.csv")
    assert "10" in sentence
    first.assign(income=first["income"] + 1).to_csv("applicants.csv", index=False)
    assert repr(name) in refused("decide", "applicants.csv", "-o", "decisions.csv")


@pytest.mark.parametrize("change", ["feature", "group", "less", "more", "others"])
def test_same_batch_name_with_other_content_is_refused(lender, tmp_path, change):
    new = apply()
    done("decide", "applicants.csv", "-o", "decisions.csv", "--batch", "may")
    head, kept = lender.checkpoint(), (tmp_path / "decisions.csv").read_bytes()
    if change == "feature":
        new.loc[5, "debt"] += 1
    elif change == "group":
        new.loc[5, "sex"] = "m" if new.loc[5, "sex"] == "f" else "f"
    elif change == "less":
        new = new.iloc[:-1]
    elif change == "more":
        new = pd.concat([new, people(1, 5000)])
    else:
        new = people(400).iloc[:50]  # the history's
    new.to_csv("applicants.csv", index=False)
    sentence = refused("decide", "applicants.csv", "-o", "decisions.csv", "--batch", "may")
    assert "'may'" in sentence
    assert lender.checkpoint() == head
    assert (tmp_path / "decisions.csv").read_bytes() == kept


def test_pipe_gets_only_the_table(lender, tmp_path):
    new = apply(30)
    result = call("decide", "-", "-o", "-", stdin=(tmp_path / "applicants.csv").read_text())
    assert result.exit_code == 0
    (tmp_path / "piped.csv").write_text(result.stdout)
    assert answer("piped.csv")["id"].tolist() == new["id"].tolist()
    assert result.stderr


def test_parquet_output_keeps_column_types(lender):
    apply(30)
    done("decide", "applicants.csv", "-o", "decisions.parquet")
    table = pq.read_table("decisions.parquet")
    assert table.column_names == COLUMNS
    kinds = [str(column.type) for column in table.columns]
    assert kinds == ["string"] * 3 + ["double"] * 3 + ["int64", "bool", "string"]


def test_certified_program_prints_the_promise_of_a_round(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path}/lender.db"
    start(url, tmp_path, CERTIFIED, n=200)
    apply()
    result = done("decide", "applicants.csv", "-o", "decisions.csv", "--ledger", url)
    assert result["certified"] is False
    assert [record["status"] for record in result["rounds"]] == ["pilot"]


def test_common_reasons_are_named_and_others_counted():
    found = [
        {"rows": 6 - at, "mistakes": [{"code": "infinite", "column": f"r{at}"}]} for at in range(6)
    ]
    first, *lines, last = refused_message({"rows": 21, "file": "no.csv", "causes": found})
    assert {"21", "no.csv:"} <= {*first.split()}
    assert [line.split()[:3] for line in lines] == [
        [f"{6 - at}", "×", f"'r{at}'"] for at in range(5)
    ]
    assert last.split()[0] == "1"
    assert refused_message({"rows": 0, "file": None, "causes": []}) == []


def test_program_made_in_python_reads_files_by_its_column_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path}/x.db"
    past = people(300)
    past["sex"] = (past["sex"] == "f").astype(int)
    good = past["outcome"] == "repaid"
    clf = fc.PartialFeedbackClassifier(budget=fc.FdrBudget(alpha=0.3), random_state=0)
    features = ["income", "debt"]
    Program.create(url, clf, past[features], good, sensitive_features=past["sex"].to_numpy())
    new = people(50, 1000)
    new["sex"] = (new["sex"] == "f").astype(int)
    new = new.rename(columns={"sex": "group"}).assign(id=np.arange(50) + 1000).astype({"id": str})
    new.loc[3, "id"] = "007"
    new.loc[4, "id"] = "x"
    new.to_csv("applicants.csv", index=False)
    result = done("decide", "applicants.csv", "-o", "decisions.csv", "--ledger", url)
    assert causes(result["refused"]) == {"not_whole": 2}
    got = pd.read_csv("decisions.csv")
    assert got["id"].tolist() == [1000, 1001, 1002, *range(1005, 1050)]
    yes = got["id"][got["decision"] == "accept"].tolist()
    tell([(yes[0], "True"), (yes[1], "false"), (yes[2], "repaid"), ("007", "true")])
    result = done("observe", "outcomes.csv", "--ledger", url)
    assert (result["recorded"]["good"], result["recorded"]["bad"]) == (1, 1)
    assert result["refused"]["rows"] == 2
    assert verify(Program.open(url).ledger).ok


def test_program_without_column_names_cannot_read_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path}/x.db"
    X = np.random.default_rng(0).normal(size=(100, 2))
    clf = fc.PartialFeedbackClassifier(random_state=0)
    Program.create(url, clf, X, (X[:, 0] > 0).astype(int))
    apply()
    sentence = refused("decide", "applicants.csv", "-o", "decisions.csv", "--ledger", url)
    assert "'main'" in sentence


def with_text(url, folder, learner, gap):
    """Decide applicants with a missing number and with an unseen text value."""
    (folder / "program.toml").write_text(PROGRAM + f'learner = "{learner}"\n')
    past = people(200)
    past.loc[7, "debt"] = np.nan if gap else 0.5
    past["region"] = np.where(past.index % 3 == 0, "north", "south")
    past.to_csv(folder / "history.csv", index=False)
    done("init", "--ledger", url, "--config", folder / "program.toml", folder / "history.csv")
    new = people(40, 1000).assign(region=lambda f: np.where(f.index % 3 == 0, "north", "south"))
    new.loc[2, "debt"] = np.nan
    new.loc[3, "region"] = "an unseen place"
    new.to_csv(folder / "applicants.csv", index=False)
    file, out = folder / "applicants.csv", folder / "decisions.csv"
    result = done("decide", file, "-o", out, "--ledger", url)
    kept = out.read_bytes()
    again = done("decide", file, "-o", out, "--ledger", url)
    assert again["recorded_before"] is not None
    assert out.read_bytes() == kept
    return result


def test_text_columns(tmp_path):
    result = with_text(f"sqlite:///{tmp_path}/x.db", tmp_path, "logistic", gap=False)
    assert (result["people"], causes(result["refused"])) == (39, {"missing": 1})


@pytest.mark.parametrize(
    "learner", ["logistic", pytest.param("gradient-boosting", marks=pytest.mark.long)]
)
def test_missing_numbers_if_the_history_has_some(tmp_path, learner):
    result = with_text(f"sqlite:///{tmp_path}/x.db", tmp_path, learner, gap=True)
    assert (result["people"], result["refused"]["rows"]) == (40, 0)


def test_errors_are_printed_as_a_single_json_object(lender):
    result = call("decide", "none.csv", "-o", "decisions.csv", "--json")
    assert (result.exit_code, "error" in json.loads(result.stdout)) == (2, True)


def spoiled():
    """Write a file with seven unusable rows; return the others."""
    new = people(60, 1000).drop(columns="outcome").astype({"income": object})
    new.loc[3, "income"] = "1.234,50"
    new.loc[4, "income"] = ""
    new.loc[5, "sex"] = "x"
    new.loc[6, "id"] = ""
    new.loc[[7, 8], "id"] = "twice"
    new.loc[9, "id"] = "a00000"  # of the history
    new.to_csv("applicants.csv", index=False)
    return new.drop(index=range(3, 10))


@pytest.mark.parametrize("mode", ["blind", "audit"])
def test_a_group_that_the_history_lacks_is_decided_if_groups_may_not_decide(tmp_path, mode):
    url = f"sqlite:///{tmp_path}/lender.db"
    start(url, tmp_path, PROGRAM.replace("seed", f'group_mode = "{mode}"\nseed'))
    file = tmp_path / "applicants.csv"
    new = people(40, 1000).drop(columns="outcome")
    new.loc[5:9, "sex"] = "x"
    new.loc[3, "sex"] = ""
    new.to_csv(file, index=False)
    to = ("--ledger", url)
    result = done("decide", *to, file, "-o", tmp_path / "decisions.csv")
    assert (result["people"], result["refused"]["rows"]) == (40, 0)
    assert [(row["value"], row["people"]) for row in result["new_groups"]] == [
        ("x", 5),
        ("not stated", 1),
    ]
    (found,) = [row for row in done("status", *to)["groups"] if row["group"] == "x"]
    assert found["n_people"] == 5
    assert done("verify", *to)["message"] is None
    new.assign(id=lambda f: "b" + f["id"], sex=new["id"]).to_csv(file, index=False)
    message = refused("decide", *to, file, "-o", tmp_path / "names.csv")
    assert "40 of 40" in message
    assert len(done("status", *to)["groups"]) == 4


def test_unusable_rows_are_refused_and_the_rest_is_decided(lender, tmp_path):
    usable = spoiled()
    (tmp_path / "out").mkdir()
    result = done("decide", "applicants.csv", "-o", "out/decisions.csv")
    assert answer("out/decisions.csv")["id"].tolist() == usable["id"].tolist()
    assert result["people"] == len(usable)
    assert result["refused"]["rows"] == 7
    assert result["refused"]["file"] == "out/applicants.refused.csv"
    assert sum(causes(result["refused"]).values()) == 7
    refusals = pd.read_csv("out/applicants.refused.csv", dtype=str, keep_default_na=False)
    assert refusals["income"][0] == "1.234,50"
    assert refusals["reason_code"].tolist() == [
        *("formatted", "missing", "unknown_group", "no_id", "twice", "twice"),
        "decided_in_history",
    ]
    kept, head = (tmp_path / "out/decisions.csv").read_bytes(), lender.checkpoint()
    again = done("decide", "applicants.csv", "-o", "out/decisions.csv")
    assert again["recorded_before"] is not None
    assert again["refused"] == result["refused"]
    assert (tmp_path / "out/decisions.csv").read_bytes() == kept
    assert lender.checkpoint() == head


def test_applicants_of_another_batch_are_refused(lender):
    apply(50)
    done("decide", "applicants.csv", "-o", "first.csv")
    apply(80)  # the same 50 and 30 more, who would be drawn anew
    result = done("decide", "applicants.csv", "-o", "second.csv")
    assert (result["people"], result["refused"]["rows"], result["round"]) == (30, 50, 2)
    assert causes(result["refused"]) == {"decided_in_round": 50}
    assert done("decide", "applicants.csv", "-o", "third.csv")["recorded_before"] is not None
    assert Path("second.csv").read_bytes() == Path("third.csv").read_bytes()


def test_strict_stops_before_deciding(lender, tmp_path):
    spoiled()
    head = lender.checkpoint()
    sentence = refused("decide", "applicants.csv", "-o", "decisions.csv", "--strict")
    assert "row 4 (id 'a01003'): 'income'" in sentence
    assert "7 of 60" in sentence
    assert lender.checkpoint() == head
    assert not list(tmp_path.glob("*decisions*"))
    assert not list(tmp_path.glob("*refused*"))


def test_file_without_usable_rows(lender, tmp_path):
    people(400).to_csv("applicants.csv", index=False)
    head = lender.checkpoint()
    sentence = refused("decide", "applicants.csv", "-o", "decisions.csv")
    assert "400" in sentence
    assert len(pd.read_csv("applicants.refused.csv")) == 400
    assert lender.checkpoint() == head
    assert not (tmp_path / "decisions.csv").exists()


def test_batch_sent_again_under_another_name(lender):
    apply(30)
    done("decide", "applicants.csv", "-o", "decisions.csv", "--batch", "may")
    first, head = Path("decisions.csv").read_bytes(), lender.checkpoint()
    sentence = refused("decide", "applicants.csv", "-o", "decisions.csv", "--batch", "june")
    assert "--batch" in sentence
    Path("decisions.csv").unlink()
    done("decide", "applicants.csv", "-o", "decisions.csv")  # as it says
    assert (Path("decisions.csv").read_bytes(), lender.checkpoint()) == (first, head)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["-o", "nowhere/decisions.csv"],
            "nowhere",
        ),
        (["-o", "./"], "whole batches"),
        (["-o", "decisions.xlsx"], ".csv"),
        (["-o", f"{'x' * 250}.csv"], "(File name too long)"),
        (["-o", "d.csv", "--refused", f"{'x' * 250}.csv"], "(File name too long)"),
        (["-o", "./applicants.csv"], "applicants.csv"),
        (["-o", "d.csv", "--refused", "d.csv"], "d.csv"),
        (["-o", "d.csv", "--refused", "applicants.csv"], "applicants.csv"),
        (["-o", "d.csv", "--refused", "x/y.csv"], "x/y.csv"),
        (["-o", "d.csv", "--batch", " "], "--batch"),
        (["-o", "-", "--json"], "--json"),
        (["-o", "d.csv", "--program", "loans"], "'loans'"),
        (["-o", "d.csv", "--ledger", "sqlite:///no.db"], "no.db"),
    ],
)
def test_invalid_options_are_refused_before_deciding(lender, tmp_path, options, words):
    apply()
    head, files = lender.checkpoint(), sorted(tmp_path.iterdir())
    text = (tmp_path / "applicants.csv").read_text()
    assert words in refused("decide", "applicants.csv", *options)
    assert lender.checkpoint() == head
    assert sorted(tmp_path.iterdir()) == files
    assert (tmp_path / "applicants.csv").read_text() == text


@pytest.mark.parametrize("column", ["id", "income", "sex"])
def test_missing_column_is_refused(lender, column):
    apply()
    people(20, 1000).drop(columns=column).to_csv("applicants.csv", index=False)
    head = lender.checkpoint()
    sentence = refused("decide", "applicants.csv", "-o", "decisions.csv")
    assert repr(column) in sentence
    assert lender.checkpoint() == head


FORK = multiprocessing.get_context("fork")


def test_full_disk_after_decisions_are_recorded(lender, tmp_path, monkeypatch):
    apply()

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", full)
        sentence = refused("decide", "applicants.csv", "-o", "decisions.csv", "--batch", "may")
    assert "'may'" in sentence
    assert "No space left on device" in sentence
    assert not (tmp_path / "decisions.csv").exists()
    (entry,) = entries(lender, "batch")
    result = done("decide", "applicants.csv", "-o", "decisions.csv", "--batch", "may")
    assert result["recorded_before"]["at"] == entry.at
    assert len(answer()) == 100


def test_ledger_lost_after_decisions_are_recorded(lender, tmp_path, monkeypatch):
    apply()
    words = ["decide", "applicants.csv", "-o", "decisions.csv", "--batch", "may"]

    def lost(*_, **__):
        raise LedgerError("the ledger could not be used (gone); nothing was recorded, call again.")

    with monkeypatch.context() as patch:
        patch.setattr("fairchance.cli.commands.decide.decision_table", lost)
        sentence = refused(*words)
    assert "'may'" in sentence
    assert "gone" not in sentence  # the ledger's own error says that nothing was recorded
    assert len(entries(lender, "batch")) == 1
    assert not (tmp_path / "decisions.csv").exists()
    with monkeypatch.context() as patch:
        patch.setattr("fairchance.cli.commands.decide._result", lost)
        sentence = refused(*words)
    assert "'may'" in sentence
    assert len(answer()) == 100
    assert done(*words)["recorded_before"] is not None


def decide_and_die(moment, *words):
    """Run the command in a process that is killed when it calls a function of ``os``."""

    def die(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    def run():
        setattr(os, moment, die)
        call("decide", *words)

    child = FORK.Process(target=run)
    child.start()
    child.join()
    return child.exitcode


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*fork:RuntimeWarning")
def test_retry_after_a_kill_gives_the_same_decisions(url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    start(url, tmp_path)
    new = apply()
    words = ["applicants.csv", "-o", "decisions.csv", "--ledger", url]
    assert decide_and_die("replace", *words) == -signal.SIGKILL
    assert not (tmp_path / "decisions.csv").exists()
    program = Program.open(url)
    (entry,) = entries(program, "batch")
    with program.ledger.reading("main") as reader:
        recorded = reader.facts(entry).decisions
    head = program.checkpoint()
    result = done("decide", *words)
    assert result["recorded_before"] == {"at": entry.at, "by": entry.by}
    assert program.checkpoint() == head
    got = answer()
    assert got["id"].tolist() == new["id"].tolist()
    assert (got["decision"] == "accept").tolist() == recorded.accepted.tolist()
    assert got["propensity"].tolist() == pytest.approx(recorded.propensity, rel=1e-12)
    assert verify(program.ledger).ok


@pytest.fixture
def decided(lender):
    apply()
    result = done("decide", "applicants.csv", "-o", "decisions.csv")
    assert result["overridden_since"] == {"accepted": 0, "rejected": 0}
    got = answer().set_index("id")["decision"]
    return lender, got[got == "accept"].index.tolist(), got[got == "reject"].index.tolist()


def again():
    """Run the same command again, check that its file is the same, and return the JSON."""
    before = Path("decisions.csv").read_bytes()
    result = done("decide", "applicants.csv", "-o", "decisions.csv")
    assert Path("decisions.csv").read_bytes() == before
    return result["overridden_since"]


def test_later_overrides_are_reported_and_the_file_stays_the_same(decided):
    program, accepted, rejected = decided
    assert again() == {"accepted": 0, "rejected": 0}
    program.override(accepted[:2], False, "has left the country")
    program.override(rejected[:1], True, "has a guarantor")
    assert again() == {"accepted": 1, "rejected": 2}
    done("export", "-o", "now.csv")
    now = pd.read_csv("now.csv", dtype=str).set_index("id")["override"]
    assert now[accepted[:2]].tolist() == ["rejected", "rejected"]
    assert now[rejected[:1]].tolist() == ["accepted"]


def test_undone_overrides_are_not_counted(decided):
    program, yes, _ = decided
    program.override(yes[:2], False, "has left the country")
    program.undo_override(yes[:1], "came back")
    assert again() == {"accepted": 0, "rejected": 1}


def test_only_overrides_of_the_batch_count(decided):
    program, yes, _ = decided
    program.override(yes[:2], False, "has left the country")
    apply(30, 5000, "others.csv")
    assert done("decide", "others.csv", "-o", "o.csv")["overridden_since"]["rejected"] == 0
    assert done("decide", "others.csv", "-o", "o.csv")["overridden_since"]["rejected"] == 0


@pytest.fixture
def transactions(lender):
    """Return a list that gets an item for each transaction on any engine."""
    begun = []

    def note(connection):
        begun.append(connection)

    sa.event.listen(sa.Engine, "begin", note)
    yield begun
    sa.event.remove(sa.Engine, "begin", note)


def modules_crossed(*words):
    """Return the modules of fairchance that a command calls functions of."""
    modules = set()

    def note(frame, event, _argument):
        name = frame.f_globals.get("__name__", "")
        if event == "call" and name.startswith("fairchance") and frame.f_code.co_name != "<module>":
            modules.add(name)

    sys.setprofile(note)
    try:
        result = call(*words)
    finally:
        sys.setprofile(None)
    assert result.exit_code == 0, result.stderr
    return modules


def test_decide_and_observe_take_four_transactions(lender, transactions):
    outcome = apply(100).set_index("id")["outcome"]
    for _ in range(2):  # the second time from the record
        transactions.clear()
        done("decide", "applicants.csv", "-o", "decisions.csv", "--batch", "may")
        assert 0 < len(transactions) <= 4
    accepted = answer()["id"][answer()["decision"] == "accept"]
    outcome[accepted].to_csv("outcomes.csv")
    transactions.clear()
    done("observe", "outcomes.csv")
    assert 0 < len(transactions) <= 4


def test_a_decision_crosses_few_modules(lender):
    apply(100)
    done("decide", "applicants.csv", "-o", "decisions.csv", "--batch", "may")
    apply(100, 3000)
    crossed = modules_crossed("decide", "applicants.csv", "-o", "decisions.csv", "--batch", "june")
    assert len(crossed) <= 65


def test_an_older_file_is_kept(lender):
    apply(30)
    assert done("decide", "applicants.csv", "-o", "decisions.csv")["kept"] is None
    first = Path("decisions.csv").read_bytes()
    assert done("decide", "applicants.csv", "-o", "decisions.csv")["kept"] is None
    apply(30, 2000)
    assert done("decide", "applicants.csv", "-o", "decisions.csv")["kept"] == "decisions.2.csv"
    assert Path("decisions.2.csv").read_bytes() == first
    assert answer()["id"].tolist() == people(30, 2000)["id"].tolist()


def test_what_decide_prints(lender, golden):
    """New texts and groups, refused rows, an older file, an override, and errors."""
    spoiled()
    command = "decide applicants.csv -o decisions.csv --by anna --batch may"
    first = transcript(command)
    got = answer().set_index("id")["decision"]
    lender.override(got[got == "accept"].index.tolist()[:1], False, "has left the country")
    apply(30, 2000, "june.csv")
    new = people(40, 3000).drop(columns="outcome")
    new.assign(income=np.nan).to_csv("july.csv", index=False)
    new.assign(income=new["income"] * 1000).to_csv("august.csv", index=False)
    golden(
        "decide",
        first
        + transcript(
            command,
            "decide june.csv -o decisions.csv --batch june --by anna",
            "decide june.csv -o decisions.csv --batch may",
            "decide july.csv -o decisions.csv",
            "decide august.csv -o decisions.csv",
            "decide august.csv -o d.csv --batch august --unlike-history",
            "decide applicants.csv -o no/decisions.csv",
        ),
    )
