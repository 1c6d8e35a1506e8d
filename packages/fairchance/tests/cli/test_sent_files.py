"""Files as users send them: again, reordered, with spaces, or joined with decisions."""

from __future__ import annotations

import csv
import io
import json
import shutil

import numpy as np
import pandas as pd
import pytest

import fairchance as fc
from cli.lender_files import PROGRAM, call, done, people, refused, start
from fairchance.cli.commands import decide as batches
from fairchance.ledger import Program, verify

DECIDE = ("decide", "applicants.csv", "-o", "decisions.csv")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a folder with a program and one batch, called may."""
    folder = tmp_path_factory.mktemp("lender")
    url = f"sqlite:///{folder}/lender.db"
    start(url, folder)
    sent(people(60, 1000), folder / "applicants.csv")
    out = ("-o", folder / "decisions.csv", "--ledger", url)
    done("decide", folder / "applicants.csv", *out, "--batch", "may")
    return folder


@pytest.fixture
def lender(made, tmp_path, monkeypatch):
    """Return a copy of the program, and the accepted and rejected ids."""
    for file in (*made.glob("lender.db*"), made / "applicants.csv", made / "decisions.csv"):
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    url = f"sqlite:///{tmp_path}/lender.db"
    monkeypatch.setenv("FAIRCHANCE_LEDGER", url)
    got = pd.read_csv("decisions.csv")
    accepted, rejected = (
        got["id"][got["decision"] == value].tolist() for value in ("accept", "reject")
    )
    return Program.open(url), accepted, rejected


def sent(frame, path="applicants.csv"):
    frame.drop(columns="outcome", errors="ignore").to_csv(path, index=False)
    return frame


def erase(*ids):
    words = [word for value in ids for word in ("--id", value)]
    done("erase", *words, "--early", "--reason", "asked for it", "--yes")


def reasons(name="applicants.refused.csv"):
    table = pd.read_csv(name, dtype=str, keep_default_na=False)
    return dict(zip(table["id"], table["reason_code"], strict=True))


# Sent again after an erasure.


@pytest.mark.parametrize("name", [(), ("--batch", "june")], ids=["unnamed", "another name"])
def test_erased_applicants_are_not_decided_again(lender, name):
    program, accepted, rejected = lender
    erase(accepted[0], rejected[0])
    head = program.checkpoint()
    assert "none of the 60 rows of applicants.csv can be used" in refused(*DECIDE, *name)
    result = reasons()
    assert {result[accepted[0]], result[rejected[0]]} == {"maybe_erased"}
    others = {reason for value, reason in result.items() if value not in (accepted[0], rejected[0])}
    assert others == {"decided_in_round"}
    assert program.checkpoint() == head


def test_batch_with_erased_applicants_is_not_answered(lender):
    program, yes, _ = lender
    erase(yes[0])
    head = program.checkpoint()
    words = "'may'"
    assert words in refused(*DECIDE, "--batch", "may")
    assert program.checkpoint() == head


def test_new_applicants_in_a_file_with_erased_applicants_are_refused(lender):
    program, yes, _ = lender
    first, new = people(60, 1000), people(20, 3000)
    sent(pd.concat([first, new]))
    assert done(*DECIDE)["people"] == 20  # without erasures, ids are unambiguous
    later = people(10, 4000)
    erase(yes[0])
    head = program.checkpoint()
    sent(pd.concat([first, later]))
    refused(*DECIDE)
    result = reasons("applicants.2.refused.csv")
    waiting = [value for value, reason in result.items() if reason == "maybe_erased"]
    assert sorted(waiting) == sorted([yes[0], *later["id"]])
    assert program.checkpoint() == head
    sent(later)
    assert done(*DECIDE)["people"] == 10
    # Decisions made in between are answered, although the file has the erased applicant too.
    sent(pd.concat([first, new]))
    again = done(*DECIDE)
    assert (again["people"], again["refused"]["rows"]) == (20, 60)
    assert again["recorded_before"] is not None
    assert verify(program.ledger).ok


def test_applicants_of_other_batches_do_not_affect_unknown_ids(lender):
    _, yes, _ = lender
    sent(people(20, 3000))
    done(*DECIDE)
    erase(yes[0])
    sent(pd.concat([people(5), people(20, 3000), people(7, 4000)]))
    result = done(*DECIDE)
    assert (result["people"], result["refused"]["rows"]) == (7, 25)
    assert not [reason for reason in reasons().values() if reason == "maybe_erased"]


def test_erased_applicants_of_the_history_are_not_decided_as_new(lender):
    program, _, _ = lender
    erase("a00003")
    head = program.checkpoint()
    sent(people(400))
    refused(*DECIDE)
    assert [reason for reason, why in reasons().items() if why == "maybe_erased"] == ["a00003"]
    assert program.checkpoint() == head


# Sent again in another order.


@pytest.mark.parametrize("name", [(), ("--batch", "may")], ids=["unnamed", "named"])
def test_reordered_rows_give_the_same_decisions(lender, name):
    program, _, _ = lender
    head, before = program.checkpoint(), pd.read_csv("decisions.csv", index_col="id")
    for order in (slice(None, None, -1), np.random.default_rng(0).permutation(60)):
        mixed = sent(people(60, 1000).iloc[order])
        result = done("decide", "applicants.csv", "-o", "again.csv", *name)
        assert result["recorded_before"] is not None
        again = pd.read_csv("again.csv", index_col="id")
        assert again.index.tolist() == mixed["id"].tolist()
        pd.testing.assert_frame_equal(again.loc[before.index], before)
    assert before["decision"].nunique() == 2
    assert program.checkpoint() == head


def test_reordered_rows_with_other_content_are_refused(lender):
    program, _, _ = lender
    head = program.checkpoint()
    mixed = people(60, 1000).iloc[::-1].reset_index(drop=True)
    mixed.loc[9, "income"] += 1
    sent(mixed)
    for name in ((), ("--batch", "may")):
        assert "'may'" in refused(*DECIDE, *name)
    assert program.checkpoint() == head


# Sent by two processes at the same time.


@pytest.mark.parametrize("same", [True, False], ids=["the same people", "some of them"])
def test_two_concurrent_unnamed_batches(lender, monkeypatch, same):
    program, _, _ = lender
    new = sent(people(30, 3000))
    sent(new if same else new.iloc[:10], "theirs.csv")
    read, others = batches.read_applicants, []

    def read_and_be_late(*words, **options):
        result = read(*words, **options)
        if not others:
            others.append(None)
            others.append(done("decide", "theirs.csv", "-o", "theirs-decided.csv"))
        return result

    monkeypatch.setattr(batches, "read_applicants", read_and_be_late)
    assert "applicants.csv" in refused(*DECIDE)
    assert program.classifier.rounds_[-1].round == others[1]["round"] == 2
    again = done(*DECIDE)
    if same:
        assert again["batch"] == others[1]["batch"]
    else:
        assert (again["people"], again["refused"]["rows"], again["round"]) == (20, 10, 3)


# Ids with white space around them.


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_white_space_around_an_id_is_ignored(lender, kind):
    program, accepted, rejected = lender
    head = program.checkpoint()
    before = pd.read_csv("decisions.csv", index_col="id")
    spaced = people(60, 1000).drop(columns="outcome")
    spaced["id"] = [
        f" {value}" if at % 2 else f"{value}\t " for at, value in enumerate(spaced["id"])
    ]
    written(spaced, f"spaced.{kind}")
    assert done("decide", f"spaced.{kind}", "-o", "again.csv")["recorded_before"] is not None
    pd.testing.assert_frame_equal(pd.read_csv("again.csv", index_col="id"), before)
    assert program.checkpoint() == head

    result = pd.DataFrame(
        {"id": [f" {accepted[0]}", accepted[0], f"{accepted[1]} "], "outcome": "repaid"}
    )
    written(result, f"observed.{kind}")
    assert done("observe", f"observed.{kind}")["recorded"]["good"] == 2
    assert program.standing(accepted[:2]).states == ["good", "good"]

    written(pd.DataFrame({"id": [f"{rejected[0]} "], "why": "x"}), f"listed.{kind}")
    done("override", f"listed.{kind}", "--accept", "--reason", "a guarantor")
    done(
        "override",
        "--id",
        f" {rejected[1]}",
        "--id",
        rejected[1],
        "--accept",
        "--reason",
        "a guarantor",
    )
    assert program.standing(rejected[:2]).overridden.all()


def written(frame, path):
    if path.endswith(".csv"):
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, index=False)


def test_ids_equal_except_for_white_space_are_refused_unchanged(lender):
    new = people(4, 3000)
    new["id"] = ["b1", " b1", "b2", "  "]
    sent(new)
    result = done(*DECIDE, "--most-refused", 1)
    assert (result["people"], result["refused"]["rows"]) == (1, 3)
    with open("applicants.refused.csv", newline="") as file:
        assert [row["id"] for row in csv.DictReader(file)] == ["b1", " b1", "  "]


# Refused rows on standard output, and files with only refused rows.

OVERRIDE = ("override", "listed.csv", "--accept", "--reason", "x")
COMMANDS = {
    "decide": ("decide", "applicants.csv", "-o", "other.csv"),
    "observe": ("observe", "observed.csv"),
    "override": OVERRIDE,
    "withdraw": ("withdraw", "listed.csv"),
    "hold": ("hold", "listed.csv", "--reason", "x"),
    "release": ("release", "listed.csv", "--reason", "x"),
    "erase": ("erase", "listed.csv", "--reason", "x", "--early", "--yes"),
}


def unusable(*good):
    """Write files for all commands in which only the given ids can be used."""
    sent(people(8, 1000 if not good else 996))
    pd.DataFrame({"id": [*good, "unknown"], "why": "x"}).to_csv("listed.csv", index=False)
    pd.DataFrame({"id": [*good, "unknown"], "outcome": "repaid"}).to_csv(
        "observed.csv", index=False
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_refused_rows_cannot_share_standard_output(lender, command):
    program, yes, _ = lender
    unusable(yes[0])
    head = program.checkpoint()
    result = call(*COMMANDS[command], "--refused", "-", "--json")
    words = "--json and --refused - both write to standard output; name a file with --refused."
    assert (result.exit_code, json.loads(result.stdout)["error"]["message"]) == (2, words)
    if command == "decide":
        both = refused("decide", "applicants.csv", "-o", "-", "--refused", "-")
        assert both == words.replace("--json", "-o -")
    assert program.checkpoint() == head
    result = call(*COMMANDS[command], "--refused", "-")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert rows
    assert all(row["id"] and row["reason"] for row in rows)
    assert "refused, with the reasons in standard output:" in result.stderr


def test_refused_rows_of_a_history_on_standard_output(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path}/first.db"
    start(url, tmp_path, n=200)
    past = people(200)
    past.loc[3, "outcome"] = "perhaps"
    past.to_csv("history.csv", index=False)
    words = ("init", "--ledger", url, "--program", "second", "--config", "program.toml")
    result = call(*words, "history.csv", "--refused", "-", "--json")
    assert "--json and --refused - both write" in json.loads(result.stdout)["error"]["message"]
    result = call(*words, "history.csv", "--refused", "-")
    assert result.exit_code == 0, result.stderr
    (row,) = csv.DictReader(io.StringIO(result.stdout))
    assert row["id"] == "a00003"
    assert "1 row refused, with the reasons in standard output" in result.stderr


@pytest.mark.parametrize("command", [value for value in COMMANDS if value != "decide"])
@pytest.mark.parametrize("print_json", [True, False])
def test_file_without_usable_rows_has_its_own_exit_code(lender, command, print_json):
    program, _, _ = lender
    unusable()
    head = program.checkpoint()
    result = call(*COMMANDS[command], *(["--json"] if print_json else []))
    assert result.exit_code == 2
    if print_json:
        assert json.loads(result.stdout)["refused"]["rows"] == 1
    else:
        assert "1 row refused, with the reasons in " in result.stdout
    assert "fairchance:" not in result.stderr
    assert program.checkpoint() == head


def test_known_or_pending_rows_are_no_failure(lender):
    _, yes, _ = lender
    rows = [(yes[0], "repaid"), ("unknown", "repaid")]
    for result, n_refused in ((rows, 1), (rows, 1), ([(yes[1], ""), rows[1]], 1), (rows[:1], 0)):
        pd.DataFrame(result, columns=["id", "outcome"]).to_csv("observed.csv", index=False)
        assert done("observe", "observed.csv")["refused"]["rows"] == n_refused


# Groups that are not text.


@pytest.mark.parametrize("named", [True, False], ids=["a table", "an array"])
@pytest.mark.parametrize("kind", [np.bool_, np.float64, np.int64])
def test_groups_of_a_program_made_in_python(tmp_path, monkeypatch, kind, named):
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path}/x.db"
    past, new = people(200), people(40, 1000)
    for frame in (past, new):
        frame["group"] = (frame["sex"] == "f").astype(kind)
    features = ["income", "debt"]
    groups = past[["group"]] if named else past["group"].to_numpy()
    clf = fc.PartialFeedbackClassifier(random_state=0)
    good = (past["outcome"] == "repaid").astype(int)
    Program.create(url, clf, past[features], good, sensitive_features=groups, ids=past["id"])
    for kept in ("csv", "parquet"):
        written(new.drop(columns=["sex", "outcome"]), f"applicants.{kept}")
        result = done("decide", f"applicants.{kept}", "-o", f"{kept}.csv", "--ledger", url)
        assert (result["people"], result["refused"]["rows"], result["round"]) == (40, 0, 1)
    program = Program.open(url)
    own = new[["group"]] if named else new["group"].to_numpy()
    with program.ledger.reading("main") as reader:
        (entry,) = reader.entries(kind="batch")
    again = program.decide(new[features], sensitive_features=own, ids=new["id"], batch=entry.key)
    assert again.ids.tolist() == new["id"].tolist()
    assert verify(program.ledger).ok


CONFIG = PROGRAM.replace('id = "id"', 'id = "loan"', 1)


@pytest.fixture
def decided(tmp_path, monkeypatch):
    """Return the decisions of a program with the id column ``loan``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAIRCHANCE_LEDGER", f"sqlite:///{tmp_path}/lender.db")
    past = people(400).rename(columns={"id": "loan"})
    past.loc[past["income"] < -0.3, "outcome"] = ""
    past.to_csv("history.csv", index=False)
    (tmp_path / "program.toml").write_text(CONFIG)
    done("init", "--config", "program.toml", "history.csv")
    applicants = people(80, 400).rename(columns={"id": "loan"}).drop(columns="outcome")
    applicants.to_csv("applicants.csv", index=False)
    done("decide", "applicants.csv", "-o", "decisions.csv")
    return pd.read_csv("decisions.csv")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_commands_accept_the_id_column_of_decisions(decided, ending):
    accepted, rejected = (decided[decided["decision"] == value] for value in ("accept", "reject"))
    assert {"id"} == {"id", "loan"} & set(decided.columns)

    def written(name, rows):
        path = f"{name}.{ending}"
        rows.to_csv(path, index=False) if ending == "csv" else rows.to_parquet(path, index=False)
        return path

    result = done("observe", written("observed", accepted[:9].assign(outcome="repaid")))
    assert (result["recorded"]["good"], result["refused"]["rows"]) == (9, 0)
    assert "id" not in result["ignored_columns"]
    assert "decision" in result["ignored_columns"]
    reason = ("--reason", "x")
    assert done("override", written("no", rejected[:4]), "--accept", *reason)["overridden"] == 4
    assert done("withdraw", written("gone", accepted[9:11]))["withdrawn"] == 2
    assert done("hold", written("held", rejected[5:8]), *reason)["held"] == 3
    assert done("release", written("held", rejected[5:8]), *reason)["released"] == 3
    erased = done("erase", written("old", rejected[10:12]), "--early", "--yes", *reason)
    assert erased["erased"] == 2


def test_id_column_of_the_program_takes_precedence(decided):
    yes = decided[decided["decision"] == "accept"]
    both = pd.DataFrame({"id": [0.5, 1.5], "loan": yes["id"][:2], "outcome": "repaid"})
    both.to_parquet("both.parquet", index=False)
    result = done("observe", "both.parquet")
    assert result["recorded"]["good"] == 2
    assert result["ignored_columns"] == ["id"]
    both.to_csv("both.csv", index=False)
    assert done("hold", "both.csv", "--reason", "x")["held"] == 2


def test_refused_rows_keep_their_id_column(decided):
    pd.DataFrame({"id": ["unknown"], "outcome": ["repaid"]}).to_csv("observed.csv", index=False)
    done("observe", "observed.csv", code=2)
    table = pd.read_csv("observed.refused.csv")
    assert table.columns.tolist() == ["id", "outcome", "reason_code", "reason"]
    assert table["id"].tolist() == ["unknown"]
    assert table["reason_code"][0] == "unknown"


def test_missing_id_column_error_names_the_column_of_the_program(decided):
    pd.DataFrame({"number": ["a00400"]}).to_csv("ids.csv", index=False)
    assert refused("hold", "ids.csv", "--reason", "x").startswith(
        "ids.csv has no column 'loan'; it has 'number'"
    )
