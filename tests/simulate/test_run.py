import numpy as np
import pytest

from secondlook.decisions import Decisions
from secondlook.simulate.populations import Lender
from secondlook.simulate.run import World, run


class Spy:
    """A method that keeps everything it is handed."""

    def __init__(self):
        self.seen, self.decided = [], []

    def decide(self, X, *, sensitive_features=None, ids=None):
        n, t = len(X), len(self.decided) + 1
        accepted = np.arange(n) % 3 == 0
        self.seen.append((X, sensitive_features))
        self.decided.append(
            Decisions(
                np.arange(n) + n * t, accepted, accepted, accepted * 1.0, accepted * 1.0, round=t
            )
        )
        return self.decided[-1]

    def observe(self, ids, outcomes):
        self.observed = ids, outcomes


def test_a_method_is_told_outcomes_of_the_accepted_and_nothing_else():
    spy, rounds = Spy(), []
    for result in run(spy, World(Lender(), 0), n_rounds=3, n_batch=30, progress=rounds.append):
        ids, outcomes = spy.observed
        accepted = spy.decided[-1].accepted
        assert np.array_equal(ids, spy.decided[-1].ids[accepted])
        assert np.array_equal(outcomes, result.outcomes[accepted])
    assert rounds == [1, 2, 3]


def test_the_world_does_not_depend_on_the_method():
    class Refuser(Spy):
        def decide(self, X, **kwargs):
            decided = super().decide(X, **kwargs)
            decided.accepted[:] = False
            return decided

    worlds = [
        [one.outcomes for one in run(method, World(Lender(), 5), n_rounds=3, n_batch=20)]
        for method in (Spy(), Refuser())
    ]
    assert np.array_equal(*worlds)


def test_history_hides_outcomes_of_the_rejected():
    _, accepted, outcomes = World(Lender(), 1).history(500)
    assert np.array_equal(np.isnan(outcomes), ~accepted)
    assert 0.2 < accepted.mean() < 0.6


@pytest.mark.parametrize("seed", [0, 1])
def test_the_same_seed_is_the_same_world(seed):
    one, other = (World(Lender(), seed).history(50) for _ in range(2))
    assert np.array_equal(one[0].X, other[0].X)
    assert np.array_equal(one[1], other[1])
