"""The past's own policy is kept in a ledger as data, or refused."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import secondlook as sl
from ledger.lived_programs import proved
from ledger_worlds import algorithm_1, certified
from secondlook.errors import InputError
from secondlook.ledger.program import Program


def test_a_past_policy_is_kept_as_data(place):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 2))
    good = (rng.random(900) < 1 / (1 + np.exp(-1 - 2 * X[:, 0]))).astype(int)
    accepted = X[:, 1] > 0
    past = LogisticRegression().fit(X[:600], accepted[:600])
    program = Program.create(
        place,
        algorithm_1(strategy=None),
        X[:600],
        good[:600],
        accepted=accepted[:600],
        past_policy=past,
    )
    decided = program.decide(X[600:750])
    np.testing.assert_allclose(decided.score, past.predict_proba(X[600:750])[:, 1], rtol=1e-9)
    program.observe(decided.ids[decided.accepted], good[600:750][decided.accepted])
    again = Program.open(place)
    again.decide(X[750:])
    assert proved(again, relearn=True).n_decisions == 300
    kept = sl.PartialFeedbackClassifier(
        random_state=3, utility=sl.Revenue(gain=200, loss=300), budget=sl.FdrBudget(alpha=0.15)
    ).fit(X[:600], good[:600], accepted=accepted[:600], past_policy=past)
    assert np.array_equal(kept.decide(X[600:750]).accepted, decided.accepted)


def test_past_policies_that_cannot_be_kept(place):
    X = np.random.default_rng(0).normal(size=(100, 2))
    good = (X[:, 0] > 0).astype(int)
    with pytest.raises(InputError, match=r"must be a fitted scikit-learn classifier in a ledger"):
        Program.create(place, algorithm_1(), X, good, past_policy=lambda X: X[:, 0] > 0)
    with pytest.raises(InputError, match="CertifiedClassifier follows no past policy"):
        Program.create(place, certified(), X, good, past_policy=LogisticRegression())
