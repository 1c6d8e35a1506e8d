from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from fairchance.core.decisions import Decisions
from fairchance.errors import InputError
from fairchance.simulate.feedback import ByOutcome, Feedback, Fixed, Geometric
from fairchance.simulate.run import decision_log, run
from small_worlds import lender_world


class Spy:
    """A method that keeps all its inputs."""

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


def test_methods_observe_outcomes_of_the_accepted_only():
    spy = Spy()
    for result in run(spy, lender_world(0, n_batch=30, n_rounds=3)):
        _, ids, outcomes = spy.observed[-1]
        accepted = spy.decided[-1].accepted
        assert np.array_equal(ids, spy.decided[-1].ids[accepted])
        assert np.array_equal(outcomes, result.applicants.outcome[accepted])
    assert len(spy.observed) == 3


class Snoop(Spy):
    """A method that follows every reference in its inputs, looking for outcomes."""

    def decide(self, X, *, sensitive_features=None, ids=None):
        decided = super().decide(X, sensitive_features=sensitive_features, ids=ids)
        self.arrays = _reachable([X, sensitive_features, ids, self.observed])
        return decided


def _reachable(start):
    """Return all arrays that can be reached through attributes, items and bases."""
    seen, todo, arrays = set(), list(start), []
    while todo:
        value = todo.pop()
        if id(value) in seen or value is None:
            continue
        seen.add(id(value))
        if isinstance(value, np.ndarray):
            arrays.append(value)
            todo.append(value.base)
        elif isinstance(value, list | tuple):
            todo.extend(value)
        elif isinstance(value, dict):
            todo.extend(value.values())
        elif hasattr(value, "__dict__"):
            todo.extend(vars(value).values())
    return arrays


def _contain(arrays, truth):
    """Return whether a column of an array contains all outcomes of a batch, in order."""
    n = truth.size
    for array in arrays:
        columns = array.reshape(array.shape[0], -1).T if array.ndim else []
        for column in columns:
            if column.shape[0] >= n and column.dtype.kind in "biuf":
                parts = (column[i : i + n] for i in range(column.shape[0] - n + 1))
                if any(np.array_equal(part, truth) for part in parts):
                    return True
    return False


def test_no_input_of_a_method_leads_to_the_outcomes_of_the_rejected():
    """No reachable array holds the outcomes of a whole batch."""
    snoop = Snoop()
    n = 90
    for result in run(snoop, lender_world(3, n_batch=n, n_rounds=4)):
        truth = result.applicants.outcome
        assert not _contain(snoop.arrays, truth)
        # Control: features that are a view of a table with outcomes do lead to them.
        table = np.column_stack([result.applicants.people.X, truth])
        assert _contain(_reachable([{"X": table[:, :-1]}]), truth)
        with pytest.raises(AttributeError):  # decisions hold no outcomes
            result.decided.outcome  # noqa: B018


def test_the_search_for_outcomes_finds_them_in_a_world_batch():
    """Control of the test above."""
    (batch, *_) = lender_world(3, n_batch=90, n_rounds=1).batches()
    arrays = _reachable([batch])
    assert any(array is batch.applicants.outcome for array in arrays)


def test_the_world_does_not_depend_on_the_method():
    class Refuser(Spy):
        def decide(self, X, **kwargs):
            decided = super().decide(X, **kwargs)
            decided.accepted[:] = False
            return decided

    feedback = Feedback(Geometric(2.0), missing=0.2, wrong=0.1)
    worlds = [
        [result.applicants.outcome for result in run(method, lender_world(5, feedback=feedback))]
        for method in (Spy(), Refuser())
    ]
    assert np.array_equal(*worlds)


def test_results_hold_the_upcoming_batch():
    results = list(run(Spy(), lender_world(2, n_rounds=3)))
    for now, then in pairwise(results):
        assert now.upcoming is not None
        assert np.array_equal(now.upcoming.people.X, then.applicants.people.X)
    assert results[-1].upcoming is None


def test_late_outcomes_arrive_on_time():
    spy = Spy()
    list(run(spy, lender_world(1, n_batch=30, n_rounds=5, feedback=Feedback(Fixed(2)))))
    assert [t for t, _, _ in spy.observed] == [3, 4, 5]
    for t, ids, _ in spy.observed:
        sent = spy.decided[t - 3]
        assert np.array_equal(ids, sent.ids[sent.accepted])


def test_good_and_bad_outcomes_with_different_delays():
    spy = Spy()
    world = lender_world(1, n_batch=60, n_rounds=4, feedback=Feedback(ByOutcome(good=0, bad=1)))
    list(run(spy, world))
    assert spy.observed[0][2].all()
    assert {t for t, _, outcomes in spy.observed if not outcomes.any()} == {2, 3, 4}


def test_missing_outcomes_never_arrive_and_wrong_outcomes_are_corrected():
    method = Corrigible()
    feedback = Feedback(missing=0.3, wrong=0.2, corrected_after=2)
    results = list(run(method, lender_world(1, n_batch=900, n_rounds=6, feedback=feedback)))
    reported = {i: y for _, ids, ys in method.observed for i, y in zip(ids, ys, strict=True)}
    truth = {
        i: y
        for result in results
        for i, y in zip(result.decided.ids, result.applicants.outcome, strict=True)
        if result.decided.accepted[list(result.decided.ids).index(i)]
    }
    wrong = {i for i, y in reported.items() if truth[i] != y}
    assert len(reported) / len(truth) == pytest.approx(0.7, abs=0.05)
    assert len(wrong) / len(reported) == pytest.approx(0.2, abs=0.05)
    fixed = {i: y for _, ids, ys in method.corrected for i, y in zip(ids, ys, strict=True)}
    assert set(fixed) <= wrong
    assert all(truth[i] == y for i, y in fixed.items())
    assert {t for t, _, _ in method.corrected} == {3, 4, 5, 6}


def test_corrections_need_a_method_with_correct():
    world = lender_world(1, n_rounds=4, feedback=Feedback(wrong=0.5, corrected_after=1))
    with pytest.raises(InputError, match=r"Spy.*correct"):
        list(run(Spy(), world))


class Turncoat(Spy):
    """Accepts everyone, and changes its decisions once outcomes have arrived."""

    def decide(self, X, **kwargs):
        decided = super().decide(X, **kwargs)
        decided.accepted[:] = True
        return decided

    def observe(self, ids, outcomes):
        self.decided[-1].accepted[outcomes == 0] = False


def test_decisions_cannot_be_changed_after_outcomes_arrived():
    for result in run(Turncoat(), lender_world(0, n_batch=50, n_rounds=2)):
        assert result.decided.accepted.all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda d: replace(d, accepted=d.accepted.astype(int)),
            "accepted",
        ),
        (
            lambda d: replace(d, accepted=np.arange(30)),
            "accepted",
        ),
        (lambda d: replace(d, accepted=d.accepted[:5]), r"\(30,\)"),
        (lambda d: replace(d, ids=np.zeros(30, int)), "30"),
    ],
)
def test_invalid_decisions_are_rejected(change, message):
    class Sloppy(Spy):
        def decide(self, X, **kwargs):
            return change(super().decide(X, **kwargs))

    with pytest.raises(InputError, match=message):
        list(run(Sloppy(), lender_world(0, n_batch=30, n_rounds=1)))


def test_inputs_of_methods_are_read_only():
    """Other methods and the counts use the same arrays."""
    world = lender_world(0, n_batch=30, n_rounds=1)
    past = world.history()
    (batch,) = world.batches()
    for array in (past.people.X, past.people.group, past.outcomes, past.accepted):
        assert not array.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        batch.applicants.people.X[0, 0] = 7.0


def test_the_outcomes_of_the_rejected_never_enter_a_log():
    results = list(run(Spy(), lender_world(0, n_batch=30, n_rounds=3)))
    log = decision_log(results)
    assert np.array_equal(log.known, log.accepted)
    assert not _contain(_reachable([log]), results[0].applicants.outcome)

    def other(result):
        outcome = result.applicants.outcome ^ ~result.decided.accepted  # of the rejected
        assert (outcome != result.applicants.outcome).any()
        return replace(result, applicants=replace(result.applicants, outcome=outcome))

    same = decision_log(map(other, results))
    for name, value in vars(log).items():
        if isinstance(value, np.ndarray):
            assert np.array_equal(value, getattr(same, name), equal_nan=value.dtype.kind == "f")


def test_a_simulation_without_rounds_has_no_log():
    with pytest.raises(InputError):
        decision_log([])
