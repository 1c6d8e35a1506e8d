"""Files made of decisions, whose id column is ``id``, where a program calls it otherwise."""

from __future__ import annotations

import pandas as pd
import pytest

from cli.lender_files import PROGRAM, done, people, refused

CONFIG = PROGRAM.replace('id = "id"', 'id = "loan"', 1)


@pytest.fixture
def decided(tmp_path, monkeypatch):
    """Return the decisions on a batch of a program that calls the id ``loan``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SECONDLOOK_LEDGER", f"sqlite:///{tmp_path}/lender.db")
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
def test_every_command_on_people_takes_the_ids_of_decisions(decided, ending):
    yes, no = (decided[decided["decision"] == one] for one in ("accept", "reject"))
    assert {"id"} == {"id", "loan"} & set(decided.columns)

    def written(name, rows):
        path = f"{name}.{ending}"
        rows.to_csv(path, index=False) if ending == "csv" else rows.to_parquet(path, index=False)
        return path

    told = done("observe", written("told", yes[:9].assign(outcome="repaid")))
    assert (told["recorded"]["good"], told["refused"]["rows"]) == (9, 0)
    assert "id" not in told["ignored_columns"]
    assert "decision" in told["ignored_columns"]
    reason = ("--reason", "x")
    assert done("override", written("no", no[:4]), "--accept", *reason)["overridden"] == 4
    assert done("withdraw", written("gone", yes[9:11]))["withdrawn"] == 2
    assert done("hold", written("held", no[5:8]), *reason)["held"] == 3
    assert done("release", written("held", no[5:8]), *reason)["released"] == 3
    erased = done("erase", written("old", no[10:12]), "--early", "--yes", *reason)
    assert erased["erased"] == 2


def test_the_programs_own_column_goes_first(decided):
    yes = decided[decided["decision"] == "accept"]
    both = pd.DataFrame({"id": [0.5, 1.5], "loan": yes["id"][:2], "outcome": "repaid"})
    both.to_parquet("both.parquet", index=False)
    told = done("observe", "both.parquet")
    assert told["recorded"]["good"] == 2
    assert told["ignored_columns"] == ["id"]
    both.to_csv("both.csv", index=False)
    assert done("hold", "both.csv", "--reason", "x")["held"] == 2


def test_refused_rows_keep_the_column_they_came_with(decided):
    pd.DataFrame({"id": ["nobody"], "outcome": ["repaid"]}).to_csv("told.csv", index=False)
    done("observe", "told.csv", code=2)
    found = pd.read_csv("told.refused.csv")
    assert found.columns.tolist() == ["id", "outcome", "reason"]
    assert found["id"].tolist() == ["nobody"]
    assert "never decided on" in found["reason"][0]


def test_neither_column_is_an_error_that_names_the_programs_own(decided):
    pd.DataFrame({"number": ["a00400"]}).to_csv("ids.csv", index=False)
    assert refused("hold", "ids.csv", "--reason", "x").startswith(
        "ids.csv has no column 'loan'; it has 'number'"
    )
