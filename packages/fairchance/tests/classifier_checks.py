"""Checks that every classifier must pass, whichever package it is in."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import polars as pl
import pytest

from fairchance.errors import InputError, LearningWarning
from fairchance.ledger import Program
from fairchance.methods.storage import dumps, loads
from sentences import one_full_stop

# Pairs of outcomes, the good one first.
UNCLEAR = [("paid", "unpaid"), (1, 2), (0, 2), ("0", "1")]
OBVIOUS = [(1, 0), (True, False), (1, -1), (1.0, 0.0)]


def paying(labels):
    """Return applicants in three cells, of whom 1, 19 and 19 in 20 have the first of the labels."""
    X = np.repeat([[0.0], [1.0], [2.0]], 100, axis=0)
    second = np.arange(300) % 20 < np.where(X[:, 0] == 0, 19, 1)
    return X, np.array(labels)[second.astype(int)]


def check_unclear_outcomes_must_be_named(classifier, labels, folder, named):
    """Without an option that names the good outcome models are fitted, and nothing is decided."""
    X, y = paying(labels)
    accepted = X[:, 0] >= 0
    plain = copy.deepcopy(classifier).fit(X, y)
    if hasattr(plain, "predict"):
        assert plain.predict([[0.0], [2.0]]).tolist() == [labels[1], labels[0]]
        likely = plain.predict_proba([[2.0]])[0, plain.classes_.tolist().index(labels[0])]
        assert likely > 0.5
    (option,) = named
    message = rf"(?=.*{labels[0]!r}.*{labels[1]!r})(?=.*{option}\b)"
    for refused in (
        lambda: plain.decide(X),
        lambda: copy.deepcopy(classifier).fit(X, y, accepted=accepted),
        lambda: Program.create(f"sqlite:///{folder}/x.db", classifier, X, y),
    ):
        with pytest.raises(InputError, match=message) as error:
            refused()
        one_full_stop(error)
    decided = copy.deepcopy(classifier).set_params(**named).fit(X, y, accepted=accepted).decide(X)
    assert decided.accepted.any()
    assert decided.score[X[:, 0] == 2].min() > decided.score[X[:, 0] == 0].max()


def check_obvious_outcomes_need_no_name(classifier, labels):
    X, y = paying(labels)
    decided = copy.deepcopy(classifier).fit(X, y, accepted=X[:, 0] >= 0).decide(X)
    assert decided.score[X[:, 0] == 2].min() > decided.score[X[:, 0] == 0].max()


def check_wrong_groups_stop_a_batch(classifier):
    """Upper case for all 700 applicants was decided without a word."""
    rng = np.random.default_rng(4)
    X, good = rng.integers(3, size=(400, 1)).astype(float), rng.random(400) < 0.97
    sex, age = np.where(np.arange(400) % 2, "f", "m"), np.where(np.arange(400) % 3, "old", "young")
    classifier.fit(X, good, sensitive_features=pd.DataFrame({"sex": sex, "age": age}))

    def decide(sex, **options):
        groups = pd.DataFrame({"sex": sex, "age": age})
        return classifier.decide(X, sensitive_features=groups, **options)

    for wrong in (np.char.upper(sex), [f"name {at}" for at in range(400)]):
        with pytest.raises(InputError, match=r"400 of 400.*'sex'") as error:
            decide(wrong)
        assert error.value.option == "unlike_history"
    assert classifier.rounds_ == ()
    assert decide(np.where(np.arange(400) % 25, sex, "d")).unlike == ()  # 4 %
    with pytest.warns(LearningWarning, match=r"40 of 400.*'sex'"):
        (some,) = decide(np.where(np.arange(400) % 10, sex, "d")).unlike
    (row,) = decide(np.char.upper(sex), unlike_history=True).unlike
    assert [(one.code, one.n, one.usual, one.stops) for one in (some, row)] == [
        ("group", 40, 0.0, False),
        ("group", 400, 0.0, True),
    ]
    with pytest.warns(LearningWarning, match="400 of 400"):  # like the last round
        decide(np.char.upper(sex))


def workers(n, seed=0, kind=pd.DataFrame):
    rng = np.random.default_rng([5, seed])
    job, age = rng.choice(["clerk", "nurse", "pilot"], n), rng.integers(20, 60, n) // 10 * 10
    return kind({"job": job, "age": age.astype(float)}), (rng.random(n) < 0.97).astype(int)


def check_a_batch_unlike_the_history_stops_and_changes_nothing(clf, kind):
    """``kind`` is the data frame in which the applicants come."""
    X, good = workers(600, kind=kind)
    clf.fit(X, good)
    other = workers(300, 1)[0].assign(job=lambda f: "N" + f["job"])
    batch = other if kind is pd.DataFrame else pl.from_pandas(other)
    with pytest.raises(InputError, match=r"300 of 300.*'job'") as error:
        clf.decide(batch)
    assert error.value.option == "unlike_history"
    assert (clf.rounds_, clf._intake.likeness.windows[0].last) == ((), None)
    decided = clf.decide(batch, unlike_history=True)
    (one,) = decided.unlike
    assert (one.column, one.code, one.n, one.stops) == ("job", "unseen", 300, True)
    again = loads(dumps(clf))
    with pytest.warns(LearningWarning, match="300 of 300"):
        decided = again.decide(batch, ids=np.arange(5000, 5300))
    assert [one.stops for one in decided.unlike] == [False]  # like the last round
    assert again.decide(workers(300, 2, kind)[0], ids=np.arange(6000, 6300)).unlike == ()


def check_numbers_without_names_are_compared_by_position(clf):
    rng = np.random.default_rng(0)
    X = np.round(rng.uniform(1, 2, size=(300, 2)))  # few values, as cells need them
    clf.fit(X, (rng.random(300) < 0.97).astype(int))
    (one,) = clf.decide(X + np.array([0, 9]), unlike_history=True).unlike
    assert (one.column, one.code) == (1, "outside")


N_ROUNDS, N, N_PAST = 4, 120, 400
CALLS = range(1, 7)  # of a strategy in the third round


class FailsOnce:
    """A strategy that raises when it is asked for the so-many-th time in the third round."""

    def __init__(self, call: int | None) -> None:
        self.left: int | None = None
        self.call = call

    def __call__(self, X, score, group):
        if self.left is not None:
            self.left -= 1
            if self.left == 0:
                self.left = None
                raise RuntimeError("for once")
        group[group < 0] = 0  # as a user may do
        return 0.05 + score


def life(make, call):
    """Return what a run decided, and how many times a batch had to be sent again."""
    rng = np.random.default_rng(0)
    n = N_PAST + N_ROUNDS * N
    X, strategy = rng.normal(size=(n, 2)), FailsOnce(call)
    group = np.where(rng.random(n) < 0.4, "a", "b")
    y = (0.5 + 2 * X[:, 0] + rng.normal(size=n) > 0).astype(int)
    past = slice(0, N_PAST)
    clf = make(strategy=strategy, random_state=0)
    clf.fit(X[past], y[past], accepted=X[past, 0] > -0.3, sensitive_features=group[past])
    said, failures = [], 0
    for t in range(N_ROUNDS):
        now = slice(N_PAST + t * N, N_PAST + (t + 1) * N)
        ids = np.arange(n)[now]
        strategy.left = call if t == 2 else None
        try:
            decided = clf.decide(X[now], sensitive_features=group[now], ids=ids)
        except RuntimeError:
            failures += 1
            decided = clf.decide(X[now], sensitive_features=group[now], ids=ids)
        strategy.left = None
        taken = decided.accepted
        clf.observe(ids[taken], y[now][taken])
        said += [decided.accepted, decided.score, decided.propensity]
    return said, failures, clf.rounds_


def check_a_failed_batch_is_decided_as_if_it_had_not_failed(make, call):
    (said, failures, rounds), (other, _, same) = life(make, call), life(make, None)
    assert failures <= 1
    assert call > 1 or failures == 1
    assert all(np.array_equal(one, two) for one, two in zip(said, other, strict=True))
    assert [one.round for one in rounds] == [one.round for one in same]
