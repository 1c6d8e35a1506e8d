"""Checks of input files: ranges, unknown values, ids and names of columns."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fairchance as fc
from cli.lender_files import (
    PROGRAM,
    answer,
    call,
    causes,
    done,
    entries,
    people,
    refused,
    start,
)
from fairchance import PartialFeedbackClassifier
from fairchance.cli.files.export_tables import EXPORTED
from fairchance.cli.input_checks import DECISION_COLUMNS, unseen_values_message
from fairchance.errors import InputError, LedgerError
from fairchance.ledger import Program, SqlLedger, verify
from fairchance.ledger.config import read_config


def earners(n, start=0):
    """Return applicants with incomes of 339 to 10,636 and their outcomes."""
    rng = np.random.default_rng([7, start])
    income = np.round(np.clip(np.exp(rng.normal(7.8, 0.5, n)), 339, 10_636))
    good = rng.random(n) < 1 / (1 + np.exp(2 - income / 1000))
    return pd.DataFrame(
        {
            "id": [f"a{start + at:05d}" for at in range(n)],
            "income": income,
            "years": rng.integers(18, 70, n),
            "sex": rng.choice(["f", "m"], n),
            "region": rng.choice(["north", "south"], n),
            "outcome": np.where(good, "repaid", "default"),
        }
    )


def began(folder, monkeypatch, n=300):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("FAIRCHANCE_LEDGER", url := f"sqlite:///{folder}/lender.db")
    past = earners(n)
    past.loc[[0, 1], "income"] = [339, 10_636]
    past.loc[past["income"] < 1200, "outcome"] = ""
    past.to_csv("history.csv", index=False)
    (folder / "program.toml").write_text(PROGRAM)
    done("init", "--config", "program.toml", "history.csv")
    return url


@pytest.fixture
def income_lender(tmp_path, monkeypatch):
    return Program.open(began(tmp_path, monkeypatch))


def send(n=60, start=1000, **changed):
    """Write a file of applicants after changing some of its columns."""
    new = earners(n, start).drop(columns="outcome")
    for name, change in changed.items():
        new[name] = change(new[name])
    new.to_csv("applicants.csv", index=False)
    return new


def in_cents(income):
    return 100 * income


def with_points(income):
    """Return numbers with a thousands separator that is read as a decimal point: 1.201 for 1201."""
    return income.where(income < 1000, income / 1000)


def without_age(years):
    """Return ages that are missing for all applicants, as in a file with an empty column."""
    return years.astype(float) * np.nan


def test_usual_batch_gives_no_warning(income_lender):
    send()
    result = call("decide", "applicants.csv", "-o", "decisions.csv")
    assert result.exit_code == 0
    assert "history" not in result.stdout
    send(start=2000)
    assert done("decide", "applicants.csv", "-o", "decisions.csv")["unlike"] == []


def test_incomes_in_cents_stop_a_batch_unless_confirmed(income_lender, tmp_path):
    send(income=in_cents)
    message = refused("decide", "applicants.csv", "-o", "decisions.csv")
    assert "60 of 60" in message
    assert "'income'" in message
    assert "--unlike-history" in message
    assert entries(income_lender, "batch") == []
    assert not (tmp_path / "decisions.csv").exists()
    words = ("decide", "applicants.csv", "-o", "decisions.csv", "--batch", "may")
    assert "60 of 60" in call(*words, "--unlike-history").stdout
    assert len(entries(income_lender, "batch")) == 1
    again = done(*words)  # from the record, which needs no leave
    assert again["recorded_before"] is not None
    (row,) = again["unlike"]
    assert row == {
        "column": "income",
        "code": "outside",
        "n": 60,
        "of": 60,
        "usual": 0.0,
        "since": "history",
        "stops": True,
        "low": 300.0,
        "high": 15_000.0,
    }


def test_confirmation_is_recorded_and_later_batches_like_it_are_only_reported(income_lender):
    words = ("decide", "applicants.csv", "-o", "decisions.csv", "--batch")
    send()
    assert done(*words, "april", "--unlike-history")["unlike"] == []  # nothing was unlike
    assert "unlike" not in entries(income_lender, "batch")[0].says
    send(start=2000, income=in_cents, years=lambda years: 12 * years.where(years < 25, years + 60))
    output = call(*words, "may", "--unlike-history", "--by", "credit desk").stdout
    assert "Decided anyway (--unlike-history)" in output
    _, entry = entries(income_lender, "batch")
    kept = entry.says["unlike"]
    assert entry.by == "credit desk"
    assert [(row["column"], row["stops"]) for row in kept] == [("income", True), ("years", True)]
    assert done(*words, "may")["unlike"] == kept  # from the ledger
    assert "Decided anyway (--unlike-history)" in call(*words, "may").stdout

    send(start=3000, income=in_cents)
    (row,) = done(*words, "june")["unlike"]
    assert (row["column"], row["stops"]) == ("income", False)
    result = done("status")
    assert [len(row["unlike"]) for row in result["rounds"]] == [0, 2, 1]
    may, june = (one for one in result["checks"] if one["question"] == "data")
    assert (may["light"], june["light"]) == ("amber", "amber")
    assert (may["facts"]["batch"], may["facts"]["entry"]) == ("may", entry.number)
    assert [row["n"] for row in may["facts"]["unlike"]] == [60, 60]
    assert [row["stops"] for row in june["facts"]["unlike"]] == [False]
    assert verify(income_lender.ledger, relearn=True).ok
    Program.open(f"sqlite:///{Path.cwd()}/lender.db").classifier  # noqa: B018 - replays the batches


def test_recorded_confirmation_cannot_be_removed(income_lender, tmp_path):
    send(income=in_cents)
    done("decide", "applicants.csv", "-o", "decisions.csv", "--unlike-history")
    with sqlite3.connect(tmp_path / "lender.db") as db:
        at, header = db.execute(
            "SELECT number, header FROM entries WHERE kind = 'batch'"
        ).fetchone()
        says = json.loads(header)
        assert says.pop("unlike")
        db.execute("UPDATE entries SET header = ? WHERE number = ?", (json.dumps(says), at))
    assert f"entry {at} (batch" in verify(income_lender.ledger).problem


def test_thousands_separators_read_as_decimals_stop_a_batch(income_lender):
    sent = send(income=with_points)["income"]
    n = int((sent < 300).sum())
    assert 30 < n < 60
    message = refused("decide", "applicants.csv", "-o", "decisions.csv")
    assert f"{n} of 60" in message
    assert entries(income_lender, "batch") == []


def test_two_wrong_columns_are_both_named_in_text_and_json(income_lender):
    send(income=in_cents, years=lambda years: 12 * years.where(years < 25, years + 60))
    result = str(done("decide", "applicants.csv", "-o", "decisions.csv", code=2))
    assert "in 'income'" in result
    assert "in 'years'" in result


def test_some_applicants_out_of_range_are_recorded_reported_and_decided(income_lender):
    send(income=lambda income: income.where(income.index >= 9, 100 * income))
    words = ("decide", "applicants.csv", "-o", "decisions.csv", "--batch", "may")
    (row,) = done(*words)["unlike"]
    assert (row["n"], row["of"], row["stops"]) == (9, 60, False)
    assert entries(income_lender, "batch")[0].says["unlike"] == [row]
    assert "9 of 60" in call(*words).stdout


@pytest.mark.parametrize("checks", ["", "[checks]\nstop = 1\nwarn = 1\n"])
def test_a_column_that_went_blank_stops_a_batch_unless_checks_are_off(
    tmp_path, monkeypatch, checks
):
    """700 applicants without an years, which an eighth of the history lacked, were decided."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAIRCHANCE_LEDGER", url := f"sqlite:///{tmp_path}/lender.db")
    past = earners(1000)
    past.loc[::8, "years"] = np.nan
    past.loc[past["income"] < 1200, "outcome"] = ""
    past.to_csv("history.csv", index=False)
    Path("program.toml").write_text(PROGRAM + checks)
    done("init", "--config", "program.toml", "history.csv")
    send(700, years=without_age)
    words = ("decide", "applicants.csv", "-o", "decisions.csv")
    program = Program.open(url)
    if not checks:
        message = refused(*words)
        assert "700 of 700" in message
        assert "12.5 %" in message
        assert entries(program, "batch") == []
        return
    assert done(*words)["unlike"] == []
    with program.reading() as view:
        assert view.settings.says["settings"]["checks"] == "Checks(stop=1, warn=1)"


def test_levels_in_a_configuration_are_checked(tmp_path):
    path = tmp_path / "program.toml"
    path.write_text(PROGRAM + "[checks]\nstop = 0.2\nwarn = 0.5\n")
    with pytest.raises(InputError, match=r"0\.5.*0\.2"):
        read_config(path)


@pytest.fixture
def text_lender(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path}/lender.db"
    monkeypatch.setenv("FAIRCHANCE_LEDGER", url)
    (tmp_path / "program.toml").write_text(PROGRAM)
    past = people(300)
    past.loc[past["income"] < -0.5, "outcome"] = ""
    past["region"] = np.where(past.index % 3 == 0, "north", "south")
    past.to_csv("history.csv", index=False)
    done("init", "--config", "program.toml", "history.csv")


def applicants(start_at, regions):
    new = people(len(regions), start_at).drop(columns="outcome").assign(region=regions)
    new.to_csv("applicants.csv", index=False)
    return new


def test_unseen_values_are_reported(text_lender):
    regions = ["north"] * 10 + ["moon"] * 12 + ["'Mars"] + ["south"] * 30
    applicants(1000, regions)
    output = call("decide", "applicants.csv", "-o", "decisions.csv", "--batch", "may").stdout
    assert "Never seen in 'region': 'moon' (12 people), \"'Mars\" (1 person); " in output
    report = done("decide", "applicants.csv", "-o", "decisions.csv", "--batch", "may")
    assert report["unseen"] == [
        {"column": "region", "value": "moon", "people": 12},
        {"column": "region", "value": "'Mars", "people": 1},
    ]
    assert (report["people"], report["refused"]["rows"]) == (53, 0)


def test_unseen_values_of_columns_with_rare_values(text_lender):
    """The classifier keeps frequent values only, so others may have been in the history."""
    past = pd.read_csv("history.csv")
    past.loc[3, "region"] = "isle"
    past.to_csv("history.csv", index=False)
    done("init", "--config", "program.toml", "history.csv", "--program", "rare")
    applicants(1000, ["moon"] * 3 + ["isle"])
    words = ("decide", "applicants.csv", "-o", "decisions.csv")
    assert done(*words, "--program", "rare")["unseen"] == []
    assert len(done(*words, "--program", "main", "--unlike-history")["unseen"]) == 2


def test_codes_that_lost_their_zeros_are_refused(text_lender):
    past = pd.read_csv("history.csv", dtype=str)
    past["region"] = past["region"].map({"north": "01067", "south": "20095"})
    past.to_csv("history.csv", index=False)
    words = ("--program", "codes")
    done("init", "--config", "program.toml", "history.csv", *words)
    new = people(40, 1000).drop(columns="outcome").assign(region=[1067] * 8 + [20095] * 32)
    new.to_parquet("applicants.parquet", index=False)
    result = done("decide", "applicants.parquet", "-o", "decisions.csv", *words)
    assert causes(result["refused"]) == {"lost_zeros": 8}
    assert result["people"] == 32
    reason = pd.read_csv("applicants.refused.csv")["reason"][0]
    assert reason.startswith("'region' is '1067', a code that the history has with zeros in front")


def test_a_file_of_unseen_texts_is_not_decided(text_lender):
    """97 % unseen texts were decided with one line in the summary."""
    applicants(1000, ["moon", "Mars"] * 34 + ["north"] * 2)
    message = refused("decide", "applicants.csv", "-o", "decisions.csv")
    assert "68 of 70" in message
    assert "'region'" in message


def test_columns_of_numbers_give_no_warning_about_unseen_values(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAIRCHANCE_LEDGER", url := f"sqlite:///{tmp_path}/lender.db")
    start(url, tmp_path, n=200)
    people(20, 1000).drop(columns="outcome").to_csv("applicants.csv", index=False)
    assert done("decide", "applicants.csv", "-o", "decisions.csv")["unseen"] == []


def test_unseen_values_are_named_and_counted_by_column():
    row = {"column": "job", "people": 3}
    result = [row | {"value": f"v{at}"} for at in range(5)]
    assert unseen_values_message([*result, row | {"column": "x", "value": "w" * 60}]) == [
        "Never seen in 'job': 'v0' (3 people), 'v1' (3 people), 'v2' (3 people) and 2 more (6 "
        "people); the score treats all new values alike.",
        f"Never seen in 'x': '{'w' * 40}…' (3 people); the score treats all new values alike.",
    ]
    assert unseen_values_message([]) == unseen_values_message(None) == []


LARGEST = 2**63 - 1


@pytest.fixture
def two(lender, monkeypatch):
    """Return a program with two applicants, with the ids "1" and " 1"."""
    frame = people(40, 1000).drop(columns="outcome")
    frame.loc[0, "id"], frame.loc[1, "id"] = "1", " 1"
    with monkeypatch.context() as patch:
        patch.setattr("fairchance.ledger.answers.check_spelling", lambda *_: None)
        X, sex = frame[["income", "debt"]], frame[["sex"]]
        lender.decide(X, sensitive_features=sex, ids=frame["id"].tolist(), batch="old")
    frame.to_csv("applicants.csv", index=False)
    return lender


def is_known(program, *names):
    return (program.standing(list(names)).persons >= 0).tolist()


def erase(*words):
    return ("erase", *words, "--early", "--yes", "--reason", "asked for")


def test_erase_does_not_confuse_ids_that_differ_in_white_space(two):
    assert done(*erase("--id", " 1"))["erased"] == 1
    assert is_known(two, "1", " 1") == [True, False]
    # Erasing again does not reach the applicant with the similar id.
    assert "' 1'" in refused(*erase("--id", " 1"))
    Path("them.csv").write_text("id\n 1\n")
    assert done(*erase("them.csv"), code=2)["erased"] == 0
    assert is_known(two, "1") == [True]
    assert done(*erase("--id", "1"))["erased"] == 1
    assert is_known(two, "1") == [False]


def test_file_names_both_ids(two):
    Path("them.csv").write_text("id\n 1\n")
    assert done("hold", "them.csv", "--reason", "a dispute")["held"] == 1
    assert "under hold" in refused(*erase("--id", " 1"))
    assert done(*erase("--id", "1"))["erased"] == 1
    assert is_known(two, "1", " 1") == [False, True]


def test_white_space_around_an_unambiguous_id_is_ignored(two):
    Path("them.csv").write_text("id\na01004 \n\ta01005\n")
    assert done("hold", "them.csv", "--reason", "a dispute")["held"] == 2
    assert done("hold", "--id", " a01006", "--reason", "a dispute")["held"] == 1
    assert done(*erase("--id", " a01007 "))["erased"] == 1
    assert is_known(two, "a01007") == [False]


def test_outcomes_go_to_the_exact_id(two):
    standing = two.standing(["1", " 1"])
    for name, is_accepted in zip(["1", " 1"], standing.accepted, strict=True):
        if not is_accepted:
            two.override([name], True, "so that there is an outcome")
    Path("outcomes.csv").write_text("id,outcome\n 1,default\n")
    assert done("observe", "outcomes.csv")["recorded"]["bad"] == 1
    assert two.standing(["1", " 1"]).states == [None, "bad"]
    Path("outcomes.csv").write_text("id,outcome\n 1,default\n1,repaid\n")
    result = done("observe", "outcomes.csv")
    assert (result["recorded"]["good"], result["known_already"]) == (1, 1)
    assert two.standing(["1", " 1"]).states == ["good", "bad"]


def test_batch_with_both_ids_is_answered_from_the_ledger(two):
    head = two.checkpoint()
    result = done("decide", "applicants.csv", "-o", "decisions.csv")
    assert (result["batch"], result["people"], result["refused"]["rows"]) == ("old", 40, 0)
    assert answer()["id"].tolist()[:2] == ["1", " 1"]
    assert two.checkpoint() == head


ODD = ["a\u200bb", "Zoe\u0308"]


def test_ambiguous_ids_are_refused_by_row(lender):
    frame = people(40, 1000).drop(columns="outcome")
    frame.loc[[3, 5], "id"] = ODD
    frame.to_csv("applicants.csv", index=False)
    result = done("decide", "applicants.csv", "-o", "decisions.csv")
    assert (result["people"], result["refused"]["rows"]) == (38, 2)
    refusals = pd.read_csv("applicants.refused.csv", dtype=str)
    assert dict(zip(refusals["id"], refusals["reason_code"], strict=True)) == dict.fromkeys(
        ODD, "ambiguous_id"
    )
    assert [ascii(one) in why for one, why in zip(ODD, refusals["reason"], strict=True)] == [
        True,
        True,
    ]
    again = done("decide", "applicants.csv", "-o", "decisions.csv")
    assert (again["recorded_before"] is not None, again["people"]) == (True, 38)


def test_history_leaves_out_ambiguous_ids(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    past = people(60)
    past.loc[[3, 5], "id"] = ODD
    past.to_csv("history.csv", index=False)
    Path("program.toml").write_text(PROGRAM)
    words = ("init", "--config", "program.toml", "history.csv", "--ledger", "sqlite:///new.db")
    result = done(*words)
    assert (result["people"], result["refused"]) == (58, 2)


@pytest.mark.parametrize("odd", ODD)
def test_recorded_ambiguous_ids_are_answered_from_the_ledger(lender, monkeypatch, odd):
    frame = people(20, 1000).drop(columns="outcome")
    frame.loc[0, "id"] = odd
    frame.to_csv("applicants.csv", index=False)
    with monkeypatch.context() as patch:
        patch.setattr("fairchance.ledger.answers.check_spelling", lambda *_: None)
        X, sex = frame[["income", "debt"]], frame[["sex"]]
        lender.decide(X, sensitive_features=sex, ids=frame["id"].tolist(), batch="old")
    result = done("decide", "applicants.csv", "-o", "decisions.csv")
    assert (result["batch"], result["people"], result["refused"]["rows"]) == ("old", 20, 0)


@pytest.fixture
def numbered(tmp_path, monkeypatch):
    """Return a program with integer ids."""
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path}/numbered.db"
    monkeypatch.setenv("FAIRCHANCE_LEDGER", url)
    past = people(200)
    good = (past["outcome"] == "repaid").astype(int)
    return Program.create(
        url,
        PartialFeedbackClassifier(random_state=0),
        past[["income", "debt"]],
        good,
        accepted=past["income"] > 0,
        ids=np.arange(200) + 1000,
    )


def decide_on(ids, name="applicants.csv"):
    frame = people(len(ids), 5000).drop(columns=["outcome", "sex"]).assign(id=ids)
    frame.to_csv(name, index=False)
    return done("decide", name, "-o", "decisions.csv", "--most-refused", 1)


def test_all_valid_integer_ids_are_decided(numbered):
    ends = [str(LARGEST), str(-LARGEST - 1), str(10**18), "0", "-7"]
    result = decide_on(ends)
    assert (result["people"], result["refused"]["rows"]) == (5, 0)
    assert answer()["id"].tolist() == ends
    assert (numbered.standing(ends).persons >= 0).all()
    assert verify(numbered.ledger).ok


def test_invalid_integer_ids_are_refused_with_reasons(numbered):
    result = decide_on(["5", str(LARGEST + 1), str(-LARGEST - 2), "9" * 40, "007", "1e3", "-0"])
    assert result["people"] == 1
    assert causes(result["refused"]) == {"not_whole": 6}


def test_digits_of_other_scripts_do_not_match_recorded_ids(numbered):
    decide_on(["12"], "first.csv")
    result = decide_on(["1２", "13"])
    assert result["people"] == 1
    refusals = pd.read_csv("applicants.refused.csv", dtype=str)
    assert refusals["id"].tolist() == ["1２"]
    assert refusals["reason_code"].tolist() == ["not_whole"]
    assert call("decide", "applicants.csv", "-o", "again.csv").exit_code == 0


TAKEN = {"income": "region", "debt": "score", "sex": "certified"}


@pytest.fixture
def url(tmp_path, monkeypatch):
    """Return the URL of a ledger in the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    place = f"sqlite:///{tmp_path}/names.db"
    monkeypatch.setenv("FAIRCHANCE_LEDGER", place)
    return place


def files(config, **called):
    """Write a history, applicants and a configuration, with other names for some columns."""
    past, now = people(200).rename(columns=called), people(40, 1000).rename(columns=called)
    outcome = called.get("outcome", "outcome")
    past.loc[past.iloc[:, 1] < -0.3, outcome] = ""
    past.to_csv("history.csv", index=False)
    now.drop(columns=outcome).to_csv("applicants.csv", index=False)
    with open("program.toml", "w") as file:
        file.write(config)
    return now


def test_features_and_groups_may_be_named_like_columns_of_decisions(url):
    now = files(PROGRAM.replace('groups = ["sex"]', 'groups = ["certified"]'), **TAKEN)
    done("init", "--config", "program.toml", "history.csv")
    output = call("decide", "applicants.csv", "-o", "decisions.csv").stdout
    assert ("In the decisions, 'region', 'score', 'certified' describe the decision") in output
    again = done("decide", "applicants.csv", "-o", "decisions.csv")
    assert again["namesakes"] == ["region", "score", "certified"]
    written = answer()
    assert tuple(written.columns) == DECISION_COLUMNS
    assert set(written["region"]) <= {"exploit", "explore"}
    assert written["score"].between(0, 1).all()

    done("export", "--features", "--groups", "-o", "all.csv")
    result = pd.read_csv("all.csv").set_index("id").loc[now["id"]].reset_index()
    assert tuple(result.columns) == (
        *EXPORTED,
        *("feature.region", "feature.score", "group.certified"),
    )
    np.testing.assert_allclose(result["feature.region"], now["region"])
    np.testing.assert_allclose(result["feature.score"], now["score"])
    assert result["group.certified"].tolist() == now["certified"].tolist()
    assert set(result["region"]) <= {"exploit", "explore"}


def test_other_column_names_give_no_warning(url):
    files(PROGRAM.replace('"id"', '"application"'), id="application", debt="accepted_before")
    done("init", "--config", "program.toml", "history.csv")
    assert done("decide", "applicants.csv", "-o", "decisions.csv")["namesakes"] == []
    assert "your column" not in call("decide", "applicants.csv", "-o", "decisions.csv").stdout
    assert tuple(answer().columns) == DECISION_COLUMNS


@pytest.mark.parametrize(
    ("role", "name"),
    [("id", "region"), ("id", "round"), ("id", "policy"), ("outcome", "score"), ("id", "outcome")],
)
def test_ids_and_outcomes_may_not_be_named_like_written_columns(url, role, name):
    """``fairchance hold decisions.csv`` would confuse the applicant 1 with round 1."""
    config = PROGRAM.replace(f'"{role}"', f'"{name}"')
    if name == "outcome":
        config = config.replace('outcome = "outcome"', 'outcome = "paid"')
    files(config, **{role: name} | ({"outcome": "paid"} if name == "outcome" else {}))
    assert refused("init", "--config", "program.toml", "history.csv") == (
        f"[columns] {role} must not be the name of another column of the files that decide and "
        f"export write, got {name!r}; rename it in your files and there, for example to {role!r}."
    )
    assert "main" not in _programs(url)


def _programs(url):
    try:
        return SqlLedger(url).programs()
    except LedgerError:
        return []


@pytest.mark.parametrize("of", ["features", "groups"])
def test_program_from_python_with_a_feature_or_group_called_id(url, of):
    past = people(200)
    X, groups = past[["income", "debt"]], past["sex"].rename("sex")
    if of == "features":
        X = X.rename(columns={"debt": "id"})
    else:
        groups = groups.rename("id")
    program = Program.create(
        url,
        fc.PartialFeedbackClassifier(random_state=0),
        X,
        (past["outcome"] == "repaid").astype(int),
        accepted=past["income"] > -0.3,
        sensitive_features=groups,
        ids=past["id"].to_numpy(),
    )
    before = program.checkpoint()
    people(20, 1000).to_csv("applicants.csv", index=False)
    message = refused("decide", "applicants.csv", "-o", "decisions.csv")
    assert "'main'" in message
    assert "'id'" in message
    assert program.checkpoint() == before


def test_refused_rows_sent_repeatedly_have_no_duplicate_columns(url):
    files(PROGRAM)
    done("init", "--config", "program.toml", "history.csv")
    sent = people(4, 2000).drop(columns="outcome")
    sent["sex"] = "x"
    sent.to_csv("a.csv", index=False)
    for name, then in (("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")):
        refused("decide", f"{name}.csv", "-o", "decisions.csv", "--refused", f"{then}.csv")
    table = pd.read_csv("e.csv")
    assert list(table.columns) == [
        *("id", "income", "debt", "sex"),
        *("reason_code", "reason", "reason_code_refused", "reason_refused"),
        *("reason_code_refused_2", "reason_refused_2"),
        *("reason_code_refused_3", "reason_refused_3"),
    ]
    assert (table["reason_code_refused_3"] == "unknown_group").all()
