"""``secondlook init``: histories in which the rejected have outcomes, or words are swapped."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from cli.test_init import URL, bare_machine, call, example_config, history, init, write
from secondlook.ledger import Program, SqlLedger, verify

__all__ = ["bare_machine"]

WITH_TAKEN = example_config().replace('# accepted = "accepted"', 'accepted = "taken"')


def with_taken(table, taken, words=("yes", "no")):
    return table.append_column("taken", pa.array(np.where(taken, *words)))


def filled(table, taken, word):
    """Return a history in which the rejected have an outcome too."""
    told = np.where(taken, np.array(table["outcome"].to_pylist(), object), word)
    return table.set_column(table.column_names.index("outcome"), "outcome", pa.array(told))


@pytest.mark.parametrize("word", ["default", "repaid", "charged-off", "withdrawn"])
def test_outcomes_of_the_rejected_are_not_read_and_the_people_stay(word):
    table, taken = history(300)
    plain = init(WITH_TAKEN, write(with_taken(table, taken), "plain.csv"), "--program", "plain")
    found = init(WITH_TAKEN, write(with_taken(filled(table, taken, word), taken)))
    assert found["outcomes_not_read"] == (~taken).sum() > 50
    assert plain["outcomes_not_read"] == found["refused"] == 0
    for key in ("people", "accepted", "good", "bad", "features"):
        assert found[key] == plain[key]
    assert found["people"] == 300
    applicants = history(120, seed=5)[0].select(["income", "debt", "age"])
    sex = history(120, seed=5)[0]["sex"]
    batches = [
        Program.open(URL, name).decide(
            applicants, sensitive_features=sex, ids=np.arange(1000, 1120).astype(str)
        )
        for name in ("plain", "main")
    ]
    assert np.array_equal(batches[0].propensity, batches[1].propensity)  # nothing leaked
    with SqlLedger(URL).reading("main") as reader:
        ids = table["id"].to_pylist()
        assert reader.standing(ids).accepted.tolist() == taken.tolist()
    assert verify(URL).ok


def test_a_line_says_how_many_outcomes_were_not_read():
    table, taken = history(200)
    with open("program.toml", "w") as file:
        file.write(WITH_TAKEN)
    path = write(with_taken(filled(table, taken, "default"), taken))
    said = call("--ledger", URL, "--config", "program.toml", path).stdout
    line = f"Not read: {(~taken).sum():,} outcomes of rejected applicants"
    assert line in said
    assert f"{(~taken).sum():,} rejected" in said
    path = write(with_taken(table, taken))
    said = call("--ledger", URL, "--config", "program.toml", "--program", "b", path).stdout
    assert "Not read" not in said


def test_y_and_n_say_who_was_accepted():
    table, taken = history(200)
    found = init(WITH_TAKEN, write(with_taken(table, taken, ("Y", "N"))))
    assert (found["accepted"], found["refused"]) == (taken.sum(), 0)


def test_outcomes_of_the_accepted_are_refused_as_before():
    table, taken = history(200)
    changed = filled(table, ~taken, "charged-off")  # of the accepted, and none of the rejected
    with open("program.toml", "w") as file:
        file.write(WITH_TAKEN)
    result = call("--ledger", URL, "--config", "program.toml", write(with_taken(changed, taken)))
    assert result.exit_code == 2
    assert "'charged-off' is none of the labels" in result.stderr


def of_outcomes(n_good, n_bad):
    """Return a history of so many accepted people and as many rejected."""
    n = n_good + n_bad
    table = history(2 * n)[0]
    outcome = np.array(["repaid"] * n_good + ["default"] * n_bad + [None] * n, object)
    return table.set_column(
        table.column_names.index("outcome"), "outcome", pa.array(outcome[np.arange(2 * n)])
    )


@pytest.mark.parametrize(
    ("n_good", "n_bad", "told"),
    # By tables of Clopper and Pearson: 62 of 100 begin at 0.517, 59 of 100 at 0.487.
    [(11, 89, True), (38, 62, True), (41, 59, False), (89, 11, False), (2, 3, False)],
)
def test_outcomes_that_are_mostly_bad_are_told(n_good, n_bad, told):
    found = init(example_config(), write(of_outcomes(n_good, n_bad)))
    line = (
        f"{n_bad} % of the outcomes are bad, against a bound of 15 %; check in [outcomes] that "
        "good = ['repaid', '1'] is right"
    )
    assert (line in found["notes"]) is told
    said = call("--ledger", URL, "--config", "program.toml", "history.csv", "--program", "b")
    assert (line in said.stdout) is told
    assert json.dumps(found["notes"]).count("outcomes are bad") == told
