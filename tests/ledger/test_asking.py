"""What can be asked of a program: with the trust it was opened with, and in one line."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sqlalchemy as sa
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import secondlook as sl
from ledger_worlds import algorithm_1, started
from secondlook.errors import InputError, UntrustedError
from secondlook.ledger import summarise, verify
from secondlook.ledger.program import Program

TRUSTED = ["sklearn.compose._column_transformer.make_column_selector"]


def test_trust_given_once_holds_for_all_that_a_program_does(tmp_path):
    url = f"sqlite:///{tmp_path}/ledger.db"
    numbers = make_column_transformer((StandardScaler(), make_column_selector()))
    learner = make_pipeline(numbers, LogisticRegression())
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(500, 2)), columns=["a", "b"])
    good = (rng.random(500) < 1 / (1 + np.exp(-1 - 2 * X["a"]))).astype(int).to_numpy()
    clf = sl.PartialFeedbackClassifier(learner=learner, random_state=0)
    past = {"accepted": X["a"][:300] > -1, "trusted": TRUSTED}
    Program.create(url, clf, X[:300], good[:300], **past)
    for ask in (Program.open, verify):
        with pytest.raises(UntrustedError, match="make_column_selector"):
            ask(url)
    program = Program.open(url, trusted=TRUSTED)
    batch = program.decide(X[300:400])
    program.observe(batch.ids[batch.accepted], good[300:400][batch.accepted])
    Program.open(url, trusted=TRUSTED).decide(X[400:])
    program.snapshot()
    assert program.classifier.rounds_[-1].round == 2  # it has caught up with the other
    program.erase(batch.ids[:1], "asked for it", early=True)
    assert "make_column_selector" in summarise(program.ledger).promise.problem
    assert (program.summary().promise.problem, program.summary().promise.alpha) == ("", 0.15)
    assert program.verify(checkpoint=program.checkpoint()).ok


def test_how_people_stand_is_asked_by_the_ids_that_outcomes_are_told_by(tmp_path):
    program, _, (one, *_) = started(f"sqlite:///{tmp_path}/ledger.db", algorithm_1(), n_rounds=1)
    found = program.decide(one.people.X, sensitive_features=one.people.group)
    ids = found.ids[:3]
    for same in (
        ids,
        ids.tolist(),
        pd.Series(ids),
        ids.astype(str),
        ids.astype(str).astype(object),
    ):
        assert program.standing(same).accepted.tolist() == found.accepted[:3].tolist()
    assert program.standing(int(ids[0])).persons.size == 1
    assert program.standing([]).persons.size == 0
    assert program.standing(["0x1", "a million " * 100_000]).persons.tolist() == [-1, -1]
    # 7.0 would be looked up as '7.0', and nobody has that name.
    for wrong in (ids.astype(float), [None, 1], [True, False], np.array([ids[0], "x"], object)):
        with pytest.raises(InputError, match="ids must be integers"):
            program.standing(wrong)
    with pytest.raises(InputError, match="one id per row"):
        program.standing([ids, ids])


def test_integers_are_no_names_where_ids_are_text(tmp_path):
    rng = np.random.default_rng(0)
    X, names = rng.normal(size=(200, 2)), np.arange(200).astype(str)
    clf = sl.PartialFeedbackClassifier(random_state=0)
    y = (X[:, 0] > rng.normal(size=200)).astype(int)
    program = Program.create(f"sqlite:///{tmp_path}/ledger.db", clf, X, y, ids=names)
    assert program.standing(["7"]).persons.tolist() == [7]
    with pytest.raises(InputError, match="ids must be strings, as in the history, got integers"):
        program.standing([7])


def test_a_program_in_one_line(tmp_path):
    url = f"sqlite:///{tmp_path}/ledger.db"
    program, _, _ = started(url, algorithm_1(), n_batch=20, n_rounds=1, by="Ada")
    assert repr(program) == f"Program(name='main', ledger='{url}', by='Ada')"
    program.ledger.engine = sa.create_mock_engine("postgresql://me:secret@host/db", None)
    program.ledger.engine.url = sa.make_url("postgresql://me:secret@host/db")
    assert repr(program) == "Program(name='main', ledger='postgresql://me:***@host/db', by='Ada')"
