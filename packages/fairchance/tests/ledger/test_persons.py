"""Several applications of a person on the record: decided, repeated, proved and erased."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from fairchance import CertifiedClassifier, PartialFeedbackClassifier
from fairchance.errors import InputError
from fairchance.ledger import Program
from fairchance.ledger.health import check_health
from fairchance.words.rounds import certificates_assume
from methods.certified.known_truth import QUICK

N, MOST = 60, 2
IDS = np.arange(1000, 1000 + N)
WHO = np.array([f"customer {k}" for k in np.arange(N) // 6])


@pytest.fixture
def lender(tmp_path, rng):
    """Return a program with a round, in which ten persons have six applications each."""
    X = rng.normal(size=(400, 2))
    persons = [f"customer {k}" for k in rng.integers(0, 150, 400)]
    url = f"sqlite:///{tmp_path}/lender.db"
    clf = CertifiedClassifier(random_state=0, per_person=MOST, learner=QUICK)
    good = (rng.random(400) < 0.8).astype(int)
    program = Program.create(url, clf, X, good, accepted=X[:, 0] > 0, persons=persons)
    batch = rng.normal(size=(N, 2))
    decided = program.decide(batch, ids=IDS, persons=WHO, batch="one", unlike_history=True)
    program.observe(decided.ids[decided.accepted], np.ones(decided.accepted.sum(), int))
    return program, url, batch, decided


def test_a_batch_with_persons_is_answered_again_in_any_order(lender, rng):
    _, url, batch, decided = lender
    order, program = rng.permutation(N), Program.open(url)
    again = program.decide(batch[order], ids=IDS[order], persons=WHO[order], batch="one")
    np.testing.assert_array_equal(again.accepted, decided.accepted[order])
    for persons in (None, np.arange(N)):
        with pytest.raises(InputError, match="recorded with another persons"):
            program.decide(batch, ids=IDS, persons=persons, batch="one")


def test_decisions_with_persons_are_proved(lender):
    program = lender[0]
    for verified in (program.verify(), program.verify(relearn=True)):
        assert (verified.n_decisions, verified.n_not_repeated) == (N, 0)


def test_certificates_assume_that_persons_are_independent(lender, rng):
    """Until a round comes without them: evidence of that round assumes that applicants are."""
    program = lender[0]
    assert "that persons, not the applications" in certificates_assume(program.summary())
    for at, persons in enumerate((None, WHO), start=1):
        X, ids = rng.normal(size=(N, 2)), IDS + at * N
        program.decide(X, ids=ids, persons=persons, unlike_history=True)
        assert "that they are independent" in certificates_assume(program.summary())


def test_names_of_persons_are_not_stored(lender, tmp_path):
    content = (tmp_path / "lender.db").read_bytes()
    with closing(sqlite3.connect(tmp_path / "lender.db")) as connection:
        stored = connection.execute("select person_key from people where round = 1").fetchall()
    keys = [row for (row,) in stored]
    assert [keys.index(key) for key in keys] == [6 * (k // 6) for k in range(N)]
    assert b"customer" not in content


def test_a_change_of_persons_is_found(lender, tmp_path):
    program = lender[0]
    with closing(sqlite3.connect(tmp_path / "lender.db")) as connection:
        connection.execute("update people set person_key = 0 where round = 1")
        connection.commit()
    assert not program.verify().ok


def test_the_other_applications_of_an_erased_one_are_repeated(lender):
    """The coin is the person's, so it needs no other application."""
    program = lender[0]
    program.erase(IDS[:1], "asked", early=True)
    verified = program.verify()
    assert (verified.problem, verified.n_decisions, verified.n_not_repeated) == (None, N - 1, 1)


def test_the_halves_of_a_history_are_replayed_by_person(tmp_path, rng):
    X, persons = rng.normal(size=(3000, 2)), np.arange(3000) // 3
    clf = CertifiedClassifier(random_state=0, learner=QUICK, evidence="history")
    url = f"sqlite:///{tmp_path}/lender.db"
    good = (rng.random(3000) < 0.97).astype(int)
    program = Program.create(url, clf, X, good, accepted=X[:, 0] > -2, persons=persons)
    decided = program.decide(rng.normal(size=(200, 2)), ids=np.arange(3000, 3200))
    assert decided.certified
    assert program.verify(relearn=True).n_decisions == 200


def test_a_classifier_without_certificates_takes_no_persons(tmp_path, rng):
    X = rng.normal(size=(100, 2))
    clf = PartialFeedbackClassifier(random_state=0)
    with pytest.raises(InputError, match="takes no persons"):
        Program.create(
            f"sqlite:///{tmp_path}/lender.db", clf, X, np.arange(100) % 2, persons=np.arange(100)
        )


@pytest.mark.parametrize("told", [False, True])
def test_identical_rows_are_counted_until_persons_are_known(lender, told, rng):
    """They change no bet: the count is on record and turns a light amber."""
    program, X = lender[0], np.repeat(rng.normal(size=(20, 2)), 3, axis=0)
    persons = np.arange(N) // 3 if told else None
    program.decide(X, ids=IDS + N, persons=persons, unlike_history=True)
    summary = program.summary()
    found = [one for one in check_health(summary) if one.finding == "identical_rows"]
    assert [row.n_identical for row in summary.rounds] == [0, 0 if told else 40]
    assert [(one.light, dict(one.facts)) for one in found] == (
        [] if told else [("amber", {"n": 40, "of": 2 * N})]
    )
