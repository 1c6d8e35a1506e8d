"""Columns whose role a lender has to name, groups that are not stated, and words for decisions."""

from __future__ import annotations

import tomllib

import numpy as np
import pandas as pd
import pytest

from cli.lender_files import PROGRAM, answer, call, causes, done, people, refused
from fairchance.ledger import Program, verify
from fairchance.people.columns import role_by_looks

INIT = ("init", "--config", "program.toml", "history.csv")


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAIRCHANCE_LEDGER", "sqlite:///lender.db")


@pytest.fixture
def folder(tmp_path):
    return tmp_path


def past(n=400):
    """Return a history with columns that must not become features silently."""
    at = np.arange(n)
    return people(n).assign(
        maritalStatus=np.where(at % 3 == 0, "single", "other"),
        q7=np.where(at % 4 == 0, "Black", "White"),
        asked=[f"2030-{1 + i % 12:02d}-15" for i in at],
    )


def write(folder, columns="", *, frame=None, rest=""):
    (past() if frame is None else frame).to_csv("history.csv", index=False)
    config = PROGRAM.replace("[columns]", f"[columns]\n{columns}")
    folder.joinpath("program.toml").write_text(config + rest)


def proposed(*, as_features=False):
    """Return what init proposes for [columns], read as TOML."""
    lines = call(*INIT).stdout.splitlines()
    (start,) = (at for at, line in enumerate(lines) if line.startswith("For example, in [columns]"))
    end = [at for at, line in enumerate(lines) if line.startswith("Or, to use 'asked'")]
    some = lines[end[0] + 1 :] if as_features else lines[start + 1 : end[0] if end else None]
    return tomllib.loads("\n".join(some))


def test_columns_that_a_list_of_features_leaves_out_are_named(folder):
    write(folder)
    features = proposed(as_features=True)
    assert features["features"] == ["income", "debt", "asked"]
    write(folder, 'features = ["asked"]')
    names = ("income", "debt", "maritalStatus", "q7")
    assert done(*INIT)["left_out"] == dict.fromkeys(names, "unlisted")


@pytest.mark.parametrize(
    ("role", "columns"),
    [
        (
            "protected",
            "race sex gender_code ethnicity Religion maritalStatus MARITAL_STATUS age applicantAge "
            "nationality has-disability date_of_birth DOB",
        ),
        ("applied", "applied applied_on application_date appliedAt TIMESTAMP created_at"),
        ("", "income mortgage average_balance page usage amount_applied update_count sexton"),
    ],
)
def test_roles_by_the_words_of_a_name(role, columns):
    assert {role_by_looks(name, "number") for name in columns.split()} == {role}


@pytest.mark.parametrize(
    ("role", "values"),
    [
        ("protected", ["male", "Female", "n/a"]),
        ("protected", ["M", "F"]),
        ("protected", ["African-American", "Caucasian", "Other"]),
        ("", ["black", "white", "red", "blue", "silver"]),  # of cars
        ("", ["single", "joint"]),
        ("", ["A", "B", "F"]),
        ("", [f"m {at}" for at in range(60)]),
        ("", []),
    ],
)
def test_roles_by_values(role, values):
    assert role_by_looks("x", "text", values) == role


def test_init_starts_nothing_until_roles_are_named(folder):
    write(folder)
    assert "('maritalStatus', 'q7') and the time of the application ('asked')" in refused(*INIT)
    assert proposed() == {"groups": ["sex", "maritalStatus", "q7"], "applied": "asked"}
    assert done(*INIT, code=2)["error"]["code"] == "input"
    assert not folder.joinpath("lender.db").exists()
    shown = done(*INIT, "--check", code=2)
    open_roles = {"maritalStatus": "protected", "q7": "protected", "asked": "applied"}
    assert shown["left_out"] == open_roles
    assert "open_roles" in [note["code"] for note in shown["notes"]]
    checked = call(*INIT, "--check")
    assert checked.exit_code == 2
    assert "'q7' looks" in checked.stdout
    assert "without --check nothing would be" in checked.stdout


@pytest.mark.parametrize(
    "form", ["%d/%m/%Y", "%m-%d-%y", "%d.%m.%Y", "%Y/%m/%d", "%d-%b-%Y", "%Y%m%d", "%d/%m/%Y %H:%M"]
)
def test_dates_in_other_forms_are_no_features(folder, form):
    days = pd.date_range("2030-01-01", periods=60).strftime(form)
    frame = people(400).assign(booking=[days[at % 60] for at in range(400)])
    write(folder, frame=frame)
    assert "'booking'" in refused(*INIT)
    assert proposed() == {"groups": ["sex"], "applied": "booking"}
    assert done(*INIT, "--check", code=2)["left_out"] == {"booking": "applied"}
    write(folder, 'applied = "booking"', frame=frame)
    assert done(*INIT)["people"] == 400


def test_numbers_of_customers_who_apply_again_are_no_features(folder):
    numbers = 400_000 + np.arange(400) * 7 % 1900  # two of three differ
    numbers[::3] = numbers[1::3].repeat(2)[: numbers[::3].size]
    frame = people(400).assign(customer_no=numbers, kundennr=numbers, loans_no=numbers % 5)
    write(folder, frame=frame.assign(ref=[f"C{one}" for one in numbers]))
    left_out = dict.fromkeys(("customer_no", "kundennr", "ref"), "identifier")
    assert done(*INIT)["left_out"] == left_out


def test_numbers_with_separators_are_not_proposed_as_text(folder):
    debts = [f"{1000 + at},5" for at in range(400)]
    frame = people(400).assign(debts=debts, shop_no=[f"S{at % 300}" for at in range(400)])
    frame.loc[:9, "shop_no"] = "S1"
    write(folder, frame=frame)
    message = refused(*INIT)
    assert "1234.5" in message
    assert "text" not in message
    write(folder, 'text = ["debts"]', frame=frame)  # all differ, so it would be left out
    assert "[columns] text has 'debts'" in refused(*INIT)
    write(folder, 'text = ["shop_no"]\nignore = ["debts"]', frame=frame)  # called an identifier
    assert done(*INIT)["left_out"] == {}


def test_a_group_for_each_year_of_age_is_not_proposed(folder):
    born = [*pd.date_range("1960-01-01", periods=80).strftime("%d/%m/%Y")] * 5
    frame = past().assign(age=20 + np.arange(400) % 50, date_of_birth=born)
    write(folder, 'ignore = ["debt"]', frame=frame)
    assert "'age', 'date_of_birth'" in refused(*INIT)
    groups, ignore = ["sex", "maritalStatus", "q7"], ["debt", "age", "date_of_birth"]
    assert proposed() == {"groups": groups, "ignore": ignore, "applied": "asked"}


def test_a_group_for_each_year_of_age_is_refused(folder, monkeypatch):
    frame = people(400).assign(age=[*map(str, 20 + np.arange(399) % 50), "not stated"])
    write(folder, frame=frame)
    place = folder.joinpath("program.toml")
    named = PROGRAM.replace('["sex"]', '["sex", "age"]')
    place.write_text(named)
    message = refused(*INIT)
    assert "'age', which has 51 different values" in message
    assert "bands" in message
    write(folder, frame=frame)
    monkeypatch.setattr("fairchance.cli.commands.init.is_interactive", lambda: True)
    result = call(*INIT, stdin="group\nignore\n")
    assert "What is it, ignore or feature?" in result.stdout
    frame.assign(age=np.arange(400) % 2).to_csv("history.csv", index=False)  # a code of few values
    place.write_text(named)
    assert done(*INIT, "--program", "two")["people"] == 400


@pytest.mark.parametrize("mode", ["blind", "audit"])
def test_words_for_a_group_that_is_not_stated_are_one_group(folder, mode):
    frame = people(400)
    words = ["Not stated", "prefer not to say", " Undisclosed", None]
    frame.loc[:3, "sex"] = words
    write(folder, frame=frame)
    place = folder.joinpath("program.toml")
    place.write_text(PROGRAM.replace("seed =", f'group_mode = "{mode}"\nseed ='))
    assert done(*INIT, "--check")["people_of_group"]["sex"]["not stated"] == 4
    done(*INIT)
    batch = people(40, 1000).drop(columns="outcome")
    batch.loc[:3, "sex"] = words[::-1]
    batch.to_csv("applicants.csv", index=False)
    assert done("decide", "applicants.csv", "-o", "decisions.csv")["new_groups"] == []
    done("export", "--groups", "-o", "all.csv")
    assert (pd.read_csv("all.csv")["group.sex"] == "not stated").sum() == 4


def test_a_single_applicant_without_a_group_is_not_called_none(folder):
    frame = people(400)
    frame.loc[7, "sex"] = None
    write(folder, frame=frame)
    place = folder.joinpath("program.toml")
    place.write_text(PROGRAM.replace("seed =", 'group_mode = "blind"\nseed ='))
    (cause,) = done(*INIT)["causes"]
    assert cause["mistakes"] == [{"code": "lone_group", "value": "not stated"}]


def test_columns_that_are_named_are_answered(folder):
    write(folder, 'ignore = ["maritalStatus"]\napplied = "asked"\nfeatures = ["income", "q7"]')
    assert [one["column"] for one in done(*INIT)["features"]] == ["income", "q7"]
    program = Program.open("sqlite:///lender.db")
    assert program.about["roles"]["applied"] == "asked"
    batch = people(60, 1000).drop(columns="outcome").assign(q7="White")  # neither is needed
    batch.to_csv("applicants.csv", index=False)
    assert done("decide", "applicants.csv", "-o", "decisions.csv")["people"] == 60
    assert not answer()["reasons"].str.contains("asked|marital").any()


def test_named_columns_must_be_there(folder):
    for columns, named in (
        ('ignore = ["marital"]', "'marital'"),
        ('applied = "aksed"', "'aksed'"),
    ):
        write(folder, columns)
        assert named in refused(*INIT)
    assert not folder.joinpath("lender.db").exists()


def test_init_asks_at_a_terminal(folder, monkeypatch):
    monkeypatch.setattr("fairchance.cli.commands.init.is_interactive", lambda: True)
    write(folder)
    result = call(*INIT, stdin="ignore\nperhaps\nfeature\napplied\n")
    assert result.exit_code == 0, (result.stdout, result.stderr)
    roles = Program.open("sqlite:///lender.db").about["roles"]
    assert (roles["features"], roles["applied"]) == (["income", "debt", "q7"], "asked")
    assert 'features = ["income", "debt", "q7"]' in result.stdout
    result = call(*INIT, "--program", "two", stdin="group\nignore\n")  # and no third answer
    assert result.exit_code == 2
    assert Program.open("sqlite:///lender.db").name == "main"  # the only one
    assert call(*INIT, "--program", "two", stdin="group\nignore\nignore\n").exit_code == 0
    roles = Program.open("sqlite:///lender.db", name="two").about["roles"]
    assert roles["groups"] == ["sex", "maritalStatus"]


@pytest.mark.parametrize("mode", ["aware", "blind", "audit"])
def test_applicants_without_a_group_are_decided_unless_groups_decide(folder, mode):
    frame = people(400)
    frame.loc[::9, "sex"] = None
    n = frame["sex"].isna().sum()
    write(folder, frame=frame)
    place = folder.joinpath("program.toml")
    place.write_text(PROGRAM.replace("seed =", f'group_mode = "{mode}"\nseed ='))
    assert ("'blind' or 'audit'" in call(*INIT, "--check").stdout) is (mode == "aware")
    result = done(*INIT)
    assert result["people"] == (400 - n if mode == "aware" else 400)
    batch = people(90, 1000).drop(columns="outcome")
    batch.loc[::9, "sex"] = None
    batch.to_csv("applicants.csv", index=False)
    result = done("decide", "applicants.csv", "-o", "decisions.csv")
    assert causes(result["refused"]) == ({"no_group": 10} if mode == "aware" else {})
    assert result["people"] == (80 if mode == "aware" else 90)
    done("export", "--groups", "-o", "all.csv")
    groups = pd.read_csv("all.csv")["group.sex"].value_counts().to_dict()
    assert groups.get("not stated", 0) == (0 if mode == "aware" else 10)
    assert verify("sqlite:///lender.db", relearn=True).ok


def test_words_for_decisions(folder):
    frame = people(400)
    frame["status"] = np.where(frame["income"] > -0.3, "APPROVED", "Declined")
    frame.loc[0, "status"], frame.loc[1, "status"] = "Funded", "lost"
    frame.loc[[0, 1], "outcome"] = "repaid"
    columns = 'accepted = "status"\nincumbent = "d"\nbarred = "minor"'
    write(folder, columns, frame=frame, rest='[decisions]\naccepted = "funded"\nrejected = ["D"]')
    result = done(*INIT)
    assert causes({"causes": result["causes"]}) == {"not_a_decision": 1}
    accepted = frame["status"].isin(["APPROVED", "Funded"])
    assert result["accepted"] == accepted.sum()
    batch = people(60, 1000).drop(columns="outcome").assign(d="d", minor="no")
    batch.loc[:9, "d"] = "FUNDED"
    batch.loc[59, "minor"] = "funded"  # no word for a truth value
    batch.to_csv("applicants.csv", index=False)
    result = done("decide", "applicants.csv", "-o", "decisions.csv")
    assert (result["incumbent"], causes(result["refused"])) == (10, {"not_a_decision": 1})


def test_a_column_that_moves_with_time_is_named_in_the_second_batch(folder):
    write(folder, frame=people(400).assign(month=np.arange(400) % 24 + 1))
    done(*INIT)
    for start, month in ((1000, 40), (2000, 41)):
        batch = people(60, start).drop(columns="outcome").assign(month=month)
        batch.to_csv(f"{month}.csv", index=False)
    message = refused("decide", "40.csv", "-o", "decisions.csv")
    assert "'month'" in message
    first = done("decide", "40.csv", "-o", "decisions.csv", "--unlike-history")["unlike"]
    assert [("moves" in one, one["column"]) for one in first] == [(False, "month")]
    result = call("decide", "41.csv", "-o", "decisions.csv").stdout
    assert "applied" in result
    assert "ignore of [columns]" in result
