from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from secondlook.core.decisions import Decisions
from secondlook.errors import InputError
from secondlook.lab.simulate.feedback import ByOutcome, Feedback, Fixed, Geometric
from secondlook.lab.simulate.run import run
from small_worlds import lender_world


class Spy:
    """A method that keeps everything it is handed."""

    def __init__(self):
        self.seen, self.decided, self.observed = [], [], []

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
        self.observed.append((len(self.decided), ids, outcomes))


class Corrigible(Spy):
    def __init__(self):
        super().__init__()
        self.corrected = []

    def correct(self, ids, outcomes):
        self.corrected.append((len(self.decided), ids, outcomes))


def test_a_method_is_told_outcomes_of_the_accepted_and_nothing_else():
    spy = Spy()
    for result in run(spy, lender_world(0, n_batch=30, n_rounds=3)):
        _, ids, outcomes = spy.observed[-1]
        accepted = spy.decided[-1].accepted
        assert np.array_equal(ids, spy.decided[-1].ids[accepted])
        assert np.array_equal(outcomes, result.applicants.outcome[accepted])
    assert len(spy.observed) == 3


class Snoop(Spy):
    """A method that follows every reference it was handed to the end, looking for outcomes."""

    def decide(self, X, *, sensitive_features=None, ids=None):
        decided = super().decide(X, sensitive_features=sensitive_features, ids=ids)
        self.loot = _reachable([X, sensitive_features, ids, self.observed])
        return decided


def _reachable(start):
    """Return all arrays that can be reached from some objects by attributes, items and bases."""
    seen, todo, arrays = set(), list(start), []
    while todo:
        one = todo.pop()
        if id(one) in seen or one is None:
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            arrays.append(one)
            todo.append(one.base)
        elif isinstance(one, list | tuple):
            todo.extend(one)
        elif isinstance(one, dict):
            todo.extend(one.values())
        elif hasattr(one, "__dict__"):
            todo.extend(vars(one).values())
    return arrays


def _holds(arrays, truth):
    """Say whether a column of an array has all of a batch's outcomes, one after the other."""
    n = truth.size
    for array in arrays:
        columns = array.reshape(array.shape[0], -1).T if array.ndim else []
        for column in columns:
            if column.shape[0] >= n and column.dtype.kind in "biuf":
                parts = (column[i : i + n] for i in range(column.shape[0] - n + 1))
                if any(np.array_equal(part, truth) for part in parts):
                    return True
    return False


def test_a_method_that_looks_for_outcomes_of_the_rejected_finds_none():
    """Nothing handed to a method leads to an array that holds a whole batch's outcomes."""
    snoop = Snoop()
    n = 90
    for result in run(snoop, lender_world(3, n_batch=n, n_rounds=4)):
        truth = result.applicants.outcome
        assert not _holds(snoop.loot, truth)
        # A control: features that were cut from a table with outcomes lead to them.
        table = np.column_stack([result.applicants.people.X, truth])
        assert _holds(_reachable([{"X": table[:, :-1]}]), truth)
        with pytest.raises(AttributeError):  # and a batch does not know where it came from
            result.decided.outcome  # noqa: B018


def test_the_search_for_outcomes_finds_them_where_they_are():
    """The control: handed the world's own record, the search does find the outcomes."""
    (batch, *_) = lender_world(3, n_batch=90, n_rounds=1).batches()
    found = _reachable([batch])
    assert any(array is batch.applicants.outcome for array in found)


def test_the_world_does_not_depend_on_the_method():
    class Refuser(Spy):
        def decide(self, X, **kwargs):
            decided = super().decide(X, **kwargs)
            decided.accepted[:] = False
            return decided

    feedback = Feedback(Geometric(2.0), missing=0.2, wrong=0.1)
    worlds = [
        [one.applicants.outcome for one in run(method, lender_world(5, feedback=feedback))]
        for method in (Spy(), Refuser())
    ]
    assert np.array_equal(*worlds)


def test_f_t_can_be_tried_on_the_next_batch_before_that_is_decided():
    results = list(run(Spy(), lender_world(2, n_rounds=3)))
    for now, then in pairwise(results):
        assert now.upcoming is not None
        assert np.array_equal(now.upcoming.people.X, then.applicants.people.X)
    assert results[-1].upcoming is None


def test_late_outcomes_come_when_they_are_due():
    spy = Spy()
    list(run(spy, lender_world(1, n_batch=30, n_rounds=5, feedback=Feedback(Fixed(2)))))
    assert [t for t, _, _ in spy.observed] == [3, 4, 5]
    for t, ids, _ in spy.observed:
        sent = spy.decided[t - 3]
        assert np.array_equal(ids, sent.ids[sent.accepted])


def test_the_good_and_the_bad_come_apart():
    spy = Spy()
    world = lender_world(1, n_batch=60, n_rounds=4, feedback=Feedback(ByOutcome(good=0, bad=1)))
    list(run(spy, world))
    assert spy.observed[0][2].all()
    assert {t for t, _, outcomes in spy.observed if not outcomes.any()} == {2, 3, 4}


def test_missing_outcomes_never_come_and_wrong_ones_are_corrected():
    method = Corrigible()
    feedback = Feedback(missing=0.3, wrong=0.2, corrected_after=2)
    results = list(run(method, lender_world(1, n_batch=900, n_rounds=6, feedback=feedback)))
    reported = {i: y for _, ids, ys in method.observed for i, y in zip(ids, ys, strict=True)}
    truth = {
        i: y
        for one in results
        for i, y in zip(one.decided.ids, one.applicants.outcome, strict=True)
        if one.decided.accepted[list(one.decided.ids).index(i)]
    }
    wrong = {i for i, y in reported.items() if truth[i] != y}
    assert len(reported) / len(truth) == pytest.approx(0.7, abs=0.05)
    assert len(wrong) / len(reported) == pytest.approx(0.2, abs=0.05)
    fixed = {i: y for _, ids, ys in method.corrected for i, y in zip(ids, ys, strict=True)}
    assert set(fixed) <= wrong
    assert all(truth[i] == y for i, y in fixed.items())
    assert {t for t, _, _ in method.corrected} == {3, 4, 5, 6}


def test_a_method_that_cannot_be_corrected_says_so():
    world = lender_world(1, n_rounds=4, feedback=Feedback(wrong=0.5, corrected_after=1))
    with pytest.raises(InputError, match="Spy has no correct"):
        list(run(Spy(), world))


class Turncoat(Spy):
    """Accepts everybody, and takes it back once outcomes have come."""

    def decide(self, X, **kwargs):
        decided = super().decide(X, **kwargs)
        decided.accepted[:] = True
        return decided

    def observe(self, ids, outcomes):
        self.decided[-1].accepted[outcomes == 0] = False


def test_decisions_cannot_be_taken_back_after_outcomes_were_seen():
    for result in run(Turncoat(), lender_world(0, n_batch=50, n_rounds=2)):
        assert result.decided.accepted.all()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda d: replace(d, accepted=d.accepted.astype(int)), "one True or False per person"),
        (lambda d: replace(d, accepted=np.arange(30)), "one True or False per person"),
        (lambda d: replace(d, accepted=d.accepted[:5]), r"an array of shape \(30,\)"),
        (lambda d: replace(d, ids=np.zeros(30, int)), "30 different ids"),
    ],
)
def test_decisions_that_are_not_whole_are_refused(spoil, words):
    class Sloppy(Spy):
        def decide(self, X, **kwargs):
            return spoil(super().decide(X, **kwargs))

    with pytest.raises(InputError, match=words):
        list(run(Sloppy(), lender_world(0, n_batch=30, n_rounds=1)))


def test_what_a_method_is_handed_cannot_be_changed():
    """Another method, and the bookkeeping, look at the same people."""
    world = lender_world(0, n_batch=30, n_rounds=1)
    past = world.history()
    (batch,) = world.batches()
    for array in (past.people.X, past.people.group, past.outcomes, past.accepted):
        assert not array.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        batch.applicants.people.X[0, 0] = 7.0
