"""People of cells, and the past's policy on them, in every form they may come in."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from methods.finite.small_domain import DOMAIN, PAST, REVENUE, draw, run
from secondlook.errors import InputError
from secondlook.methods.finite import FiniteClassifier


def test_frames_words_and_names_of_applications(rng):
    n = 400
    job = rng.choice(["baker", "cook"], n)
    repaid = np.where(rng.random(n) < np.where(job == "cook", 0.97, 0.6), "repaid", "lost")
    for frame in (pd.DataFrame, pl.DataFrame):
        classifier = FiniteClassifier(REVENUE, pos_label="repaid", random_state=0)
        names = np.array([f"p{i}" for i in range(2 * n)])
        X = frame({"job": job, "home": rng.integers(3, size=n)})
        classifier.fit(X, repaid, accepted=job == "cook", ids=names[:n])
        batch = classifier.decide(X, ids=names[n:])
        classifier.observe(batch.ids[batch.accepted], repaid[batch.accepted])
        assert isinstance(batch.to_frame(), frame)
        assert classifier.predict_proba(X).shape == (n, 2)
        assert set(classifier.predict(X)) <= {"repaid", "lost"}
        assert classifier.n_outcomes_ == (job == "cook").sum() + batch.accepted.sum()
        with pytest.raises(InputError, match="ids must be given"):
            classifier.decide(X)


def test_cells_may_come_as_numbers(rng):
    cell = rng.integers(5, size=1000)
    good = (rng.random(1000) < 0.95).astype(int)
    classifier = FiniteClassifier(REVENUE, random_state=0).fit(cell, good, accepted=cell < 3)
    batch = classifier.decide(cell)
    assert np.array_equal(batch.exploit, cell < 3)
    assert classifier.groups_ is None


def test_an_empty_batch_is_no_round():
    classifier = run(np.random.default_rng(0), n_rounds=2)
    w = classifier.coverage_
    batch = classifier.decide(np.zeros((0, 2), int), sensitive_features=[])
    assert len(batch) == 0
    assert len(classifier.rounds_) == 2
    assert np.array_equal(classifier.coverage_, w)


def test_without_a_history_the_past_policy_starts(rng):
    classifier = FiniteClassifier(REVENUE, random_state=0)
    classifier.fit(None, None, domain=(DOMAIN.X, DOMAIN.group), past_policy=PAST)
    people, good = draw(rng, 300)
    batch = classifier.decide(people.X, sensitive_features=people.group)
    assert np.array_equal(batch.exploit, PAST[DOMAIN.cell_of(people)] > 0)
    assert batch.explored.any()
    assert classifier.observe(batch.ids[batch.accepted], good[batch.accepted]).n_outcomes_ > 0


def test_a_past_policy_can_be_a_function(rng):
    people, good = draw(rng, 300)
    classifier = FiniteClassifier(REVENUE, random_state=0)
    classifier.fit(
        people.X,
        good,
        accepted=people.X[:, 0] == 0,
        sensitive_features=people.group,
        past_policy=lambda X, group: (X[:, 0] == 0) & (group == "a"),
    )
    batch = classifier.decide([[0, 5], [1, 5], [0, 5]], sensitive_features=["a", "a", "b"])
    assert batch.exploit.tolist() == [True, False, False]
