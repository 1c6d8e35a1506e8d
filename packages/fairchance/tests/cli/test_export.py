"""``fairchance export``: decisions, outcomes, entries and checkpoints."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

import fairchance as fc
from cli.hostile_lender import EXPORTED, refused, run
from cli.lender_files import apply, done
from fairchance.ledger import Program
from fairchance.ledger.base import Facts
from fairchance.ledger.chain import NOTHING
from golden import transcript


def expected(hostile_lender):
    """Return the expected decisions by id."""
    _, _, batches, gone = hostile_lender
    rows = []
    for t, (decided, _, X, group) in enumerate(batches):
        frame = pd.DataFrame(decided.columns()).assign(batch=f"<b>{t}</b>")
        frame["x"], frame["word"] = X["score"].to_numpy(), X["id"].to_numpy()
        frame["group"] = group.iloc[:, 0].to_numpy()
        rows.append(frame)
    frame = pd.concat(rows, ignore_index=True)
    frame["gone"] = frame["id"].isin(gone)
    first, good = batches[0][0], batches[0][1]
    accepted, rejected = first.ids[first.accepted], first.ids[~first.accepted]
    states = np.where(good[first.accepted][3:] == "repaid", "good", "bad")
    outcome = dict(zip(accepted[3:], states, strict=True))
    frame["outcome"] = frame["id"].map(outcome | {accepted[0]: "withdrawn"})
    frame["override"] = frame["id"].map({accepted[1]: "rejected", rejected[0]: "accepted"})
    return frame


def test_export_of_decisions_with_outcomes_and_overrides(hostile_lender, tmp_path):
    url, program, _, _ = hostile_lender
    result = run("export", "--ledger", url, "-o", tmp_path / "d.parquet")
    assert f"240 decisions: {tmp_path}/d.parquet" in result.stdout.replace("\n", "")
    frame, wanted = pq.read_table(tmp_path / "d.parquet").to_pandas(), expected(hostile_lender)
    assert frame.columns.tolist() == EXPORTED
    assert frame["erased"].tolist() == wanted["gone"].tolist()
    assert frame["id"].isna().tolist() == wanted["gone"].tolist()
    there = ~wanted["gone"]
    assert frame["id"][there].tolist() == wanted["id"][there].tolist()
    for name in ("accepted", "region", "round", "batch"):
        assert frame[name].tolist() == wanted[name].tolist()
    for name in ("score", "propensity", "threshold"):
        np.testing.assert_array_equal(frame[name], wanted[name])
    for name in ("outcome", "override"):
        assert frame[name].fillna("-").tolist() == wanted[name].fillna("-").tolist()
    assert set(frame["override_reason"].dropna()) == {"<img src=x>", "=HYPERLINK(1)"}
    with program.ledger.reading("main") as reader:
        overrides = {(entry.by, entry.at) for entry in reader.entries(kind="override")}
    exported = frame[["override_by", "override_at"]][frame["override"].notna()]
    assert {*exported.itertuples(index=False, name=None)} == overrides
    assert frame["override_by"].notna().sum() == frame["override"].notna().sum()
    assert (frame["outcome_at"].notna() == frame["outcome"].notna()).all()
    assert set(frame["mode"]) == {"aware"}
    with program.ledger.reading("main") as reader:
        batches = {entry.key: entry for entry in reader.entries(kind="batch")}
    for key, own in frame.groupby("batch"):
        assert set(own["at"]) == {batches[key].at}
        assert set(own["policy"]) == {batches[key].number}
    refusals = frame[~frame["accepted"] & ~frame["erased"]]
    assert refusals["reasons"].notna().all()
    assert frame[frame["accepted"]]["reasons"].isna().all()
    name = refusals["id"].iloc[0]
    from fairchance.people.reasons import in_words  # noqa: PLC0415

    assert refusals["reasons"].iloc[0] == in_words(program.reasons([name])[name])


def test_features_and_groups_only_on_request(hostile_lender, tmp_path):
    url, *_ = hostile_lender
    wanted = expected(hostile_lender)
    for options, more in (
        (["--features"], ["feature.score", "feature.id"]),
        (["--groups"], ["group.=<i>where"]),
        (["--features", "--groups"], ["feature.score", "feature.id", "group.=<i>where"]),
    ):
        run("export", "--ledger", url, "-o", tmp_path / "d.parquet", *options)
        frame = pq.read_table(tmp_path / "d.parquet").to_pandas()
        assert frame.columns.tolist() == EXPORTED + more
        there = ~frame["erased"]
        for name, ours in (
            ("feature.score", "x"),
            ("feature.id", "word"),
            ("group.=<i>where", "group"),
        ):
            if name in frame:
                assert frame[name][there].tolist() == wanted[ours][there].tolist()
                assert frame[name][~there].isna().all()


def test_parts_and_csv_give_the_same_rows(hostile_lender, tmp_path, monkeypatch):
    url, *_ = hostile_lender
    run("export", "--ledger", url, "-o", tmp_path / "d.parquet", "--features", "--groups")
    whole = pq.read_table(tmp_path / "d.parquet")
    monkeypatch.setattr("fairchance.cli.files.export_tables._ROWS", 7)
    run("export", "--ledger", url, "-o", tmp_path / "parts.parquet", "--features", "--groups")
    assert pq.read_table(tmp_path / "parts.parquet").equals(whole)
    result = run("export", "--ledger", url, "--features", "--groups")
    run("export", "--ledger", url, "-o", tmp_path / "d.csv", "--features", "--groups")
    assert (tmp_path / "d.csv").read_bytes() == result.stdout_bytes
    assert result.stdout.count('"id","erased"') == 1
    from fairchance.cli.files.tables import read_table  # noqa: PLC0415

    texts = [value.name for value in whole.schema if value.type == "string"]
    again = read_table(str(tmp_path / "d.csv"), text=texts).to_pandas()
    pd.testing.assert_frame_equal(again, whole.to_pandas(), check_dtype=False)
    # no cell is a formula for a spreadsheet
    risky = re.findall(r'(?:^|,)"([=+\-@][^"]*)"', result.stdout, re.MULTILINE)
    assert risky == []
    assert '"\'=a300"' in result.stdout


def test_the_chain_and_the_checkpoint(hostile_lender, tmp_path):
    url, program, *_ = hostile_lender
    head = program.checkpoint()
    assert run("export", "--ledger", url, "--checkpoint").stdout == f"{head}\n"
    printed = json.loads(run("export", "--ledger", url, "--checkpoint", "--json").stdout)
    assert printed == {"checkpoint": str(head), "written": {}}
    lines = [
        json.loads(part)
        for part in run("export", "--ledger", url, "--entries").stdout.split("\n")[:-1]
    ]
    assert [line["number"] for line in lines] == list(range(1, head.number + 1))
    assert lines[0]["previous"] == NOTHING.hex()
    assert [line["previous"] for line in lines[1:]] == [line["hash"] for line in lines[:-1]]
    assert lines[-1]["hash"] == head.hash.hex()
    assert lines[-1]["header"]["reason"] == "<em>asked</em>"
    data = json.loads(run("export", "--ledger", url, "-o", tmp_path / "all", "--json").stdout)
    assert data["written"] == {
        str(tmp_path / "all" / "decisions.parquet"): 240,
        str(tmp_path / "all" / "outcomes.parquet"): len(recorded_outcomes(program)),
        str(tmp_path / "all" / "entries.jsonl"): head.number,
    }
    names = {value.name for value in (tmp_path / "all").iterdir()}
    assert names == {"decisions.parquet", "outcomes.parquet", "entries.jsonl", "checkpoint.txt"}
    assert (tmp_path / "all" / "checkpoint.txt").read_text() == f"{head}\n"


def recorded_outcomes(program):
    """Return the recorded outcomes, entry by entry."""
    result = []
    with program.ledger.reading("main") as reader:
        for entry in reader.entries():
            outcomes = reader.facts(entry).outcomes
            if entry.kind != "history" and outcomes is not None:
                names = reader.names(outcomes.persons)
                each = zip(names, outcomes.states, strict=True)
                result += [(*pair, entry.at, entry.by, entry.number) for pair in each]
    return result


def test_export_of_outcomes_with_the_values_they_replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path}/x.db"
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    good = X[:, 0] + rng.normal(size=200) > 0
    ids = [f"p{at}" for at in range(200)]
    clf = fc.PartialFeedbackClassifier(random_state=0)
    program = Program.create(url, clf, X[:100], good[:100], ids=ids[:100], by="init")
    decided = program.decide(X[100:], ids=ids[100:])
    first, second, third = decided.ids[decided.accepted][:3].tolist()
    program.by = "first"
    program.observe([first, second], [True, False])
    program.withdraw([third])
    program.by = "second"
    program.observe([second, "p0"], [True, not good[0]])
    program.observe([second], [False])
    run("export", "--ledger", url, "--outcomes", "-o", "observed.csv")
    table = pd.read_csv("observed.csv", keep_default_na=False)
    words = {True: "good", False: "bad"}
    assert table[["id", "outcome", "before", "by"]].values.tolist() == [
        [first, "good", "", "first"],
        [second, "bad", "", "first"],
        [third, "withdrawn", "", "first"],
        ["p0", words[not good[0]], words[bool(good[0])], "second"],
        [second, "good", "bad", "second"],
        [second, "bad", "good", "second"],
    ]
    columns = ["id", "outcome", "at", "by", "entry"]
    assert list(table[columns].itertuples(index=False, name=None)) == recorded_outcomes(program)
    program.erase([second], "asked", early=True)
    run("export", "--ledger", url, "--outcomes", "-o", "observed.parquet")
    later = pq.read_table("observed.parquet").to_pandas()
    assert (
        later["id"].isna().tolist() == later["erased"].tolist() == (table["id"] == second).tolist()
    )
    refused("--entries", "export", "--ledger", url, "--outcomes", "--entries")


def test_arrays_without_names_and_integer_ids(tmp_path):
    url = f"sqlite:///{tmp_path}/x.db"
    X = np.random.default_rng(0).normal(size=(90, 2)).astype(np.float32)
    groups = np.where(X[:, 1] > 0, "a", "b")
    program = Program.create(
        url,
        fc.PartialFeedbackClassifier(random_state=0),
        X[:60],
        X[:60, 0] > 0,
        sensitive_features=groups[:60],
    )
    decided = program.decide(X[60:], sensitive_features=groups[60:])
    with program.ledger.writing("main") as writer:
        writer.append("erasure", {}, Facts(erased=np.arange(61)), by="me")
    run("export", "--ledger", url, "-o", tmp_path / "d.parquet", "--features", "--groups")
    table = pq.read_table(tmp_path / "d.parquet")
    assert table["id"].to_pylist() == [None, *decided.ids[1:].tolist()]
    assert table["group.group"].to_pylist() == [None, *groups[61:]]
    np.testing.assert_array_equal(table["feature.x1"].to_pylist()[1:], X[61:, 1])
    assert table["feature.x1"][0].as_py() is None
    with program.ledger.writing("main") as writer:
        writer.append("erasure", {}, Facts(erased=np.arange(61, 90)), by="me")
    run("export", "--ledger", url, "-o", tmp_path / "d.parquet", "--features", "--groups")
    table = pq.read_table(tmp_path / "d.parquet")
    assert table["erased"].to_pylist() == [True] * 30
    assert table["accepted"].to_pylist() == decided.accepted.tolist()


def test_failed_export_leaves_the_file_unchanged(hostile_lender, tmp_path, monkeypatch):
    url, *_ = hostile_lender
    kept = tmp_path / "d.csv"
    kept.write_text("kept")
    calls = []

    def fail(table):
        calls.append(table)
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        return b"half"

    monkeypatch.setattr("fairchance.cli.files.csv_files.csv_bytes", fail)
    refused("d.csv .*No space left on device", "export", "--ledger", url, "-o", kept)
    assert kept.read_text() == "kept"
    assert list(tmp_path.iterdir()) == [kept]


def test_what_export_prints(lender, golden):
    apply(30)
    done("decide", "applicants.csv", "-o", "decisions.csv", "--batch", "may")
    golden(
        "export",
        transcript(
            "export -o all",
            "export -o d.csv",
            "export --checkpoint",
            "export --checkpoint -o d.csv",
            "export --outcomes --entries -o d.csv",
            "export --json",
            "export -o d.txt",
        ),
    )
