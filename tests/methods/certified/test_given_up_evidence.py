"""A correction of what was tested gives evidence up, and that is told."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from methods.certified.test_late_outcomes import Desk, certified_desk
from secondlook import CertifiedClassifier, PartialFeedbackClassifier
from secondlook.errors import InputError, LearningWarning
from secondlook.lab.baselines.greedy import Greedy
from secondlook.ledger import Program, verify


def corrected(desk, t, n=1, first=0):
    """Correct outcomes of a round, and return what was said."""
    ids, outcome = (one[first:] for one in desk.accepted[t - 1])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        desk.classifier.correct(ids[:n], 1 - outcome[:n])
    return [(one.category, str(one.message), one.filename) for one in said]


def test_what_a_correction_costs_a_pilot_is_said_where_it_is_called():
    desk = Desk()
    desk.rounds(2)
    assert desk.classifier.rounds_[-1].status == "pilot"
    n = sum(ids.size for ids, _ in desk.accepted)
    ((kind, words, file),) = corrected(desk, 1, n=3)
    assert kind is LearningWarning
    assert f"the evidence of {n:,} outcomes is given up" in words
    assert "testing begins again with round 3;" in words
    assert file == __file__
    assert corrected(desk, 2) == []  # nothing is left to give up


def test_a_correction_of_what_was_not_tested_costs_nothing_and_says_nothing():
    desk = Desk(maturity=2)
    desk.rounds(1)
    assert corrected(desk, 1) == []
    desk.rounds(2)
    ((_, words, _),) = corrected(desk, 1, first=1)
    n = desk.accepted[0][0].size  # the only round that is old enough
    assert f"the evidence of {n:,} outcomes is given up" in words


def test_groups_are_named_whose_evidence_is_given_up():
    rng = np.random.default_rng(0)
    X, group = rng.normal(size=(600, 2)), np.resize(["a", "b"], 600)
    clf = CertifiedClassifier(certify="per_group", random_state=0)
    clf.fit(X, (X[:, 0] > 0).astype(int), accepted=X[:, 1] > -1, sensitive_features=group)
    batch = clf.decide(X, sensitive_features=group, ids=1000 + np.arange(600))
    clf.observe(batch.ids[batch.accepted], np.ones(batch.accepted.sum(), int))
    theirs = batch.accepted & (group == "b")
    words = rf"the evidence of {theirs.sum()} outcomes \(group b\) is given up"
    with pytest.warns(LearningWarning, match=words):
        clf.correct(batch.ids[theirs][:1], [0])
    clf.decide(X, sensitive_features=group, ids=2000 + np.arange(600))
    ours, other = (one.message for one in clf.rounds_[-2:])
    assert "began again" not in ours
    assert other.startswith("Testing began again with round 2 after a correction")


def test_rounds_after_it_say_what_has_been_tested_since():
    desk = Desk()
    desk.rounds(2)
    before = desk.classifier.rounds_[-1]
    assert "Testing began again" not in before.message
    assert (before.tests_began, before.restart_reason) == (1, "")
    assert before.n_tested == before.next_n_tested == desk.accepted[0][0].size
    corrected(desk, 1)
    said = "Testing began again with round 3 after a correction of an outcome that had been tested"
    desk.decide()
    record = desk.classifier.rounds_[-1]
    assert (record.tests_began, record.restart_reason) == (3, "correction")
    assert (record.n_tested, record.next_n_tested) == (0, 0)
    assert desk.classifier.rounds_[-1].message.startswith(
        f"{said}, and no outcome is in the tests since. No acceptance rule"
    )
    assert "; no outcome is in its tests yet," in desk.classifier.rounds_[-1].message
    desk.tell(3)
    desk.decide()
    n = desk.accepted[2][0].size
    assert (desk.classifier.rounds_[-1].n_tested, record.tests_began) == (n, 3)
    begin = f"{said}, and {n} outcomes are in the tests since. "
    assert desk.classifier.rounds_[-1].message.startswith(begin)


def test_drift_is_not_called_a_correction():
    desk = certified_desk()
    while len(desk.accepted) < 6 or desk.engine.stage.restarts == 0:
        desk.decide()
        ids, outcome = desk.accepted[-1]
        drifting = len(desk.accepted) >= 6
        desk.classifier.observe(ids, np.zeros_like(outcome) if drifting else outcome)
        assert len(desk.accepted) < 40
    desk.decide()
    words = f"again with round {desk.engine.stage.began} after outcomes that spoke against what"
    assert words in desk.classifier.rounds_[-1].message
    assert desk.classifier.rounds_[-1].restart_reason == "drift"
    assert desk.classifier.rounds_[-1].tests_began == desk.engine.stage.began


def test_a_program_says_it_once_and_its_record_is_read_in_silence(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y, url = (X[:, 0] > 0).astype(int), f"sqlite:///{tmp_path}/lender.db"
    made = Program.create(url, CertifiedClassifier(random_state=0), X, y, accepted=X[:, 1] > -1)
    for _ in range(2):
        batch = made.decide(rng.normal(size=(400, 2)))
        taken = batch.ids[batch.accepted]
        made.observe(taken, np.ones(taken.size, int))
    n = made.classifier.deployed_[0].n_tested
    with pytest.warns(LearningWarning, match=f"the evidence of {n} outcomes") as said:
        made.observe(taken[:2], [0, 0])
    assert len(said) == 1
    made.observe(taken[:2], [0, 0])  # warnings are errors here
    made.decide(rng.normal(size=(50, 2)))
    assert Program.open(url).classifier.deployed_[0].restarts == 1
    assert verify(made.ledger, relearn=True).ok


WORDS = pd.DataFrame({"income": np.arange(40.0), "job": ["clerk", "smith"] * 20})


@pytest.mark.parametrize("learner", [None, make_pipeline(OneHotEncoder(), LogisticRegression())])
def test_text_is_refused_with_something_that_can_be_done(learner):
    y = np.arange(40) % 3 > 0
    with pytest.raises(InputError) as refused:
        CertifiedClassifier(learner=learner).fit(WORDS, y)
    assert str(refused.value) == (
        "X has columns that are not numbers: 'job'; this classifier takes numbers only, whatever "
        "its learner, so encode them before, or use PartialFeedbackClassifier with a learner that "
        "is a Pipeline with an encoder as its first step."
    )
    with pytest.raises(InputError, match="'job'; this method takes numbers only, so encode them"):
        Greedy().fit(WORDS, y)


@pytest.mark.filterwarnings("ignore::secondlook.errors.LearningWarning")
def test_what_the_sentence_advises_works():
    y = (np.arange(40) % 3 > 0).astype(int)
    learner = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    PartialFeedbackClassifier(learner=learner).fit(WORDS, y)
    CertifiedClassifier().fit(pd.get_dummies(WORDS), y)
