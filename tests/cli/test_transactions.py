"""How often decide and observe touch the ledger, and how many modules a decision crosses."""

from __future__ import annotations

import sys

import pytest
import sqlalchemy as sa

from cli.lender_files import answer, apply, call, done


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
    """Return the modules of secondlook whose functions a command calls."""
    modules = set()

    def note(frame, event, _argument):
        name = frame.f_globals.get("__name__", "")
        if event == "call" and name.startswith("secondlook") and frame.f_code.co_name != "<module>":
            modules.add(name)

    sys.setprofile(note)
    try:
        result = call(*words)
    finally:
        sys.setprofile(None)
    assert result.exit_code == 0, result.stderr
    return modules


def test_decide_and_observe_take_three_transactions(lender, transactions):
    outcome = apply(100).set_index("id")["outcome"]
    for _ in range(2):  # the second time from the record
        transactions.clear()
        done("decide", "applicants.csv", "-o", "decisions.csv", "--batch", "may")
        assert 0 < len(transactions) <= 3
    accepted = answer()["id"][answer()["decision"] == "accept"]
    outcome[accepted].to_csv("outcomes.csv")
    transactions.clear()
    done("observe", "outcomes.csv")
    assert 0 < len(transactions) <= 3


def test_a_decision_crosses_few_modules(lender):
    apply(100)
    done("decide", "applicants.csv", "-o", "decisions.csv", "--batch", "may")
    apply(100, 3000)
    crossed = modules_crossed("decide", "applicants.csv", "-o", "decisions.csv", "--batch", "june")
    assert len(crossed) <= 60
