"""A column that says who applied, in a configuration and in files."""

from __future__ import annotations

import numpy as np
import pytest

from cli.lender_files import CERTIFIED, answer, call, done, people, refused
from cli.pack_sums import recomputed
from fairchance.ledger import Program

BY_PERSON = CERTIFIED.replace("[columns]", '[columns]\npersons = "customer"')


@pytest.fixture(autouse=True)
def lender(tmp_path, monkeypatch):
    """Start a program; every customer has two applications in the history."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAIRCHANCE_LEDGER", "sqlite:///lender.db")
    (tmp_path / "program.toml").write_text(BY_PERSON)
    people(400).assign(customer=np.arange(400) // 2).to_csv("history.csv", index=False)
    done("init", "--config", "program.toml", "history.csv")


def test_persons_of_a_file_are_on_record_and_no_feature():
    month = people(60, start=1000).assign(customer=np.arange(60) // 12)
    month.to_csv("month.csv", index=False)
    done("decide", "month.csv", "-o", "decisions.csv")
    program = Program.open("sqlite:///lender.db")
    assert "customer" not in program.shape.columns.names
    with program.reading() as view:
        (entry,) = view.reader.entries(kind="batch")
        keys = view.reader.facts(entry).people.person_keys
    assert [len({*keys[at : at + 12]}) for at in range(0, 60, 12)] == [1] * 5
    assert len({*keys}) == 5
    first = answer()
    done("decide", "month.csv", "-o", "decisions.csv")
    assert answer().equals(first)
    done("verify")


def test_certificates_count_the_applications_of_a_person_together(tmp_path):
    for round in range(6):
        came = people(600, start=1000 * (round + 1)).assign(customer=np.arange(600) // 2)
        came.to_csv("month.csv", index=False)
        done("decide", "month.csv", "-o", "decisions.csv", "--batch", f"month {round}")
        yes = answer().query("decision == 'accept'")["id"]
        came[came["id"].isin(yes)][["id", "outcome"]].to_csv("outcomes.csv", index=False)
        done("observe", "outcomes.csv", "--unlike-expected")
    done("audit", "-o", "pack")
    granted, why_not = recomputed(tmp_path / "pack", "sqlite:///lender.db")
    assert granted
    assert not why_not


def test_a_row_without_a_person_is_refused(tmp_path):
    month = people(60, start=1000).assign(customer=[None, *range(59)])
    month.to_csv("month.csv", index=False)
    done("decide", "month.csv", "-o", "decisions.csv")
    assert len(answer()) == 59
    (left_out,) = tmp_path.glob("*refused*")
    assert "'customer' is empty" in left_out.read_text()


def test_a_file_without_the_column_is_refused():
    people(60, start=1000).to_csv("month.csv", index=False)
    assert "customer" in refused("decide", "month.csv", "-o", "decisions.csv")


def test_a_column_of_persons_is_proposed_and_shown(tmp_path):
    numbers = [f"C{at // 2 if at < 200 else at}" for at in range(400)]
    people(400).assign(customer=numbers, customer_no=numbers).to_csv("history.csv", index=False)
    check = ("init", "--config", "program.toml", "history.csv", "--check", "--program", "other")
    ask = "'customer_no' looks like an identifier or free text; name it in persons if it says who"
    shown = call(*check).stdout
    assert "Roles: id = 'id', outcome = 'outcome', persons = 'customer'\n" in shown
    assert ask not in shown
    (tmp_path / "program.toml").write_text(CERTIFIED)
    assert ask in call(*check).stdout


def test_persons_need_certificates(tmp_path):
    other = BY_PERSON.replace('"certified"\nhorizon = 6', '"partial-feedback"')
    (tmp_path / "other.toml").write_text(other)
    words = refused("init", "--config", "other.toml", "--program", "other", "history.csv")
    assert "persons needs kind" in words
