"""Columns of one's own that are called like those of decisions, exports and refused rows."""

import numpy as np
import pandas as pd
import pytest

import secondlook as sl
from cli.lender_files import PROGRAM, answer, call, done, people, refused
from secondlook.cli.files.export_tables import EXPORTED
from secondlook.cli.input_checks import DECISION_COLUMNS
from secondlook.errors import LedgerError
from secondlook.ledger import Program, SqlLedger

TAKEN = {"income": "region", "debt": "score", "sex": "certified"}


@pytest.fixture
def url(tmp_path, monkeypatch):
    """Return where the record will live, in the folder where we are."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    place = f"sqlite:///{tmp_path}/names.db"
    monkeypatch.setenv("SECONDLOOK_LEDGER", place)
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


def test_features_and_groups_called_like_columns_of_the_decisions_are_told_apart(url):
    now = files(PROGRAM.replace('groups = ["sex"]', 'groups = ["certified"]'), **TAKEN)
    done("init", "--config", "program.toml", "history.csv")
    said = call("decide", "applicants.csv", "-o", "decisions.csv").stdout
    assert ("In the decisions, 'region', 'score', 'certified' describe the decision") in said
    again = done("decide", "applicants.csv", "-o", "decisions.csv")
    assert again["namesakes"] == ["region", "score", "certified"]
    written = answer()
    assert tuple(written.columns) == DECISION_COLUMNS
    assert set(written["region"]) <= {"exploit", "explore"}
    assert written["score"].between(0, 1).all()

    done("export", "--features", "--groups", "-o", "all.csv")
    found = pd.read_csv("all.csv").set_index("id").loc[now["id"]].reset_index()
    assert tuple(found.columns) == (
        *EXPORTED,
        *("feature.region", "feature.score", "group.certified"),
    )
    np.testing.assert_allclose(found["feature.region"], now["region"])
    np.testing.assert_allclose(found["feature.score"], now["score"])
    assert found["group.certified"].tolist() == now["certified"].tolist()
    assert set(found["region"]) <= {"exploit", "explore"}


def test_nothing_is_said_of_names_that_are_no_columns_of_the_decisions(url):
    files(PROGRAM.replace('"id"', '"application"'), id="application", debt="accepted_before")
    done("init", "--config", "program.toml", "history.csv")
    assert done("decide", "applicants.csv", "-o", "decisions.csv")["namesakes"] == []
    assert "your column" not in call("decide", "applicants.csv", "-o", "decisions.csv").stdout
    assert tuple(answer().columns) == DECISION_COLUMNS


@pytest.mark.parametrize(
    ("role", "name"),
    [("id", "region"), ("id", "round"), ("id", "policy"), ("outcome", "score"), ("id", "outcome")],
)
def test_ids_and_outcomes_are_not_called_like_another_column_of_what_is_written(url, role, name):
    """``secondlook hold decisions.csv`` would take a person called 1 for round 1."""
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
def test_a_program_from_python_that_knows_people_by_a_column_of_that_name(url, of):
    past = people(200)
    X, groups = past[["income", "debt"]], past["sex"].rename("sex")
    if of == "features":
        X = X.rename(columns={"debt": "id"})
    else:
        groups = groups.rename("id")
    program = Program.create(
        url,
        sl.PartialFeedbackClassifier(random_state=0),
        X,
        (past["outcome"] == "repaid").astype(int),
        accepted=past["income"] > -0.3,
        sensitive_features=groups,
        ids=past["id"].to_numpy(),
    )
    before = program.checkpoint()
    people(20, 1000).to_csv("applicants.csv", index=False)
    assert refused("decide", "applicants.csv", "-o", "decisions.csv") == (
        "program 'main' has a feature or group 'id', which in a file is the column of ids; decide "
        "from Python, or start a program in which it has another name."
    )
    assert program.checkpoint() == before


def test_refused_rows_that_are_sent_again_and_again_have_one_column_a_name(url):
    files(PROGRAM)
    done("init", "--config", "program.toml", "history.csv")
    sent = people(4, 2000).drop(columns="outcome")
    sent["sex"] = "x"
    sent.to_csv("a.csv", index=False)
    for name, then in (("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")):
        refused("decide", f"{name}.csv", "-o", "decisions.csv", "--refused", f"{then}.csv")
    found = pd.read_csv("e.csv")
    assert list(found.columns) == [
        *("id", "income", "debt", "sex"),
        *("reason", "reason_refused", "reason_refused_2", "reason_refused_3"),
    ]
    assert found["reason_refused_3"].str.startswith("the group 'x' was not in the history").all()
