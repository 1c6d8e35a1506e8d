"""A user's function that fails once leaves nothing behind: the batch can be sent again."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import secondlook as sl
from secondlook.errors import InputError

N_ROUNDS, N, N_PAST = 4, 120, 400


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


@pytest.mark.parametrize("call", range(1, 7))
@pytest.mark.parametrize(
    "make",
    [
        sl.PartialFeedbackClassifier,
        partial(sl.PartialFeedbackClassifier, split="cross", group_mode="audit"),
        partial(sl.PartialFeedbackClassifier, coverage=sl.SumOfG(threshold=0.9)),
        sl.ManyClassClassifier,
        partial(sl.CertifiedClassifier, floor=0.05, horizon=6),
        partial(sl.CertifiedClassifier, floor=0.05, horizon=6, certify="per_group"),
    ],
    ids=["half", "cross", "sum of g", "many classes", "certified", "certified per group"],
)
def test_a_batch_that_failed_is_decided_as_if_it_had_not(make, call):
    (said, failures, rounds), (other, _, same) = life(make, call), life(make, None)
    assert failures <= 1
    assert call > 1 or failures == 1
    assert all(np.array_equal(one, two) for one, two in zip(said, other, strict=True))
    assert [one.round for one in rounds] == [one.round for one in same]


def test_a_strategy_whose_numbers_are_next_to_nothing_is_refused():
    X = np.random.default_rng(0).normal(size=(300, 2))
    clf = sl.PartialFeedbackClassifier(strategy=lambda X, score, group: 1e-300 * score)
    clf.fit(X[:100], X[:100, 0] > 0, accepted=X[:100, 1] > 0)
    with pytest.raises(InputError, match="at least 1e-280 for a candidate"):
        clf.decide(X[100:])
