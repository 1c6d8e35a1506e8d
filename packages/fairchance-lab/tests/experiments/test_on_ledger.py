"""Methods decide through a ledger as they do without."""

from __future__ import annotations

import numpy as np
import pytest

import fairchance as fc
from fairchance.errors import InputError
from fairchance.ledger.program import Program
from fairchance.ledger.verification.walk import verify
from fairchance.simulate.feedback import Feedback, Geometric
from fairchance.simulate.run import run
from fairchance_lab.experiments.on_ledger import LedgerMethod
from ledger_worlds import algorithm_1, certified, same
from small_worlds import lender_world

LATE = Feedback(Geometric(0.5), missing=0.1, wrong=0.1, corrected_after=2)


def history(world):
    past = world.history()
    return (past.people.X, past.outcomes), {
        "accepted": past.accepted,
        "sensitive_features": past.people.group,
    }


@pytest.mark.filterwarnings("ignore:A corrected outcome had been tested")
@pytest.mark.parametrize("make", [algorithm_1, certified])
def test_decisions_are_the_same_through_a_ledger(url, make):
    world = lender_world(3, n_batch=150, n_rounds=5, feedback=LATE)
    past, options = history(world)
    plain = make().fit(*past, **options)
    recorded = LedgerMethod.begin(url, make(), *past, **options)
    n_accepted = 0
    for first, second in zip(run(plain, world), run(recorded, world), strict=True):
        assert same(first.decided, second.decided)
        n_accepted += int(first.decided.accepted.sum())
        if first.upcoming is not None:
            X, group = first.upcoming.people.X, first.upcoming.people.group
            for ask in ("accepts", "acceptance_probability", "predict_proba"):
                answers = [getattr(m, ask)(X, sensitive_features=group) for m in (plain, recorded)]
                assert np.array_equal(*answers)
    assert n_accepted > 50
    assert repr(recorded.rounds_) == repr(plain.rounds_)
    assert repr(recorded.corrections_) == repr(plain.corrections_)
    assert len(plain.corrections_) > 0
    with recorded.program.ledger.reading("main") as reader:
        kinds = {entry.kind for entry in reader.entries()}
        assert [entry.key for entry in reader.entries(kind="batch")] == [
            f"round {t}" for t in range(1, 6)
        ]
    assert {"batch", "outcomes", "correction"} <= kinds
    verification = verify(recorded.program.ledger)
    assert verification.problem is None
    assert verification.n_decisions == 5 * 150


def test_interrupted_run_continues(url):
    world = lender_world(4, n_batch=100, n_rounds=5, feedback=LATE)
    past, options = history(world)
    plain = [result.decided for result in run(algorithm_1().fit(*past, **options), world)]
    killed = run(LedgerMethod.begin(url, algorithm_1(), *past, **options), world)
    for _ in range(3):
        next(killed)
    before = Program.open(url).checkpoint()
    again = LedgerMethod.begin(url, algorithm_1(), *past, **options, by="another")
    after_three = [result.decided for _, result in zip(range(3), run(again, world), strict=False)]
    assert again.program.checkpoint() == before
    assert all(map(same, after_three, plain[:3]))
    last = LedgerMethod.begin(url, algorithm_1(), *past, **options)
    whole = [result.decided for result in run(last, world)]
    assert len(whole) == 5
    assert all(map(same, whole, plain))
    assert last.program.checkpoint().number > before.number


def test_another_program_is_not_continued(tmp_path):
    url = f"sqlite:///{tmp_path}/ledger.db"
    world, other = lender_world(5, n_rounds=2), lender_world(6, n_rounds=2)
    past, options = history(world)
    LedgerMethod.begin(url, algorithm_1(), *past, **options)
    for classifier, (rows, columns), message in (
        (algorithm_1(strategy=fc.Uniform()), (past, options), "'main' with other settings"),
        (certified(), (past, options), "'main' with other settings"),
        (algorithm_1(), history(other), "'main' with another history"),
    ):
        with pytest.raises(InputError, match=message):
            LedgerMethod.begin(url, classifier, *rows, **columns)
    second = LedgerMethod.begin(url, certified(), *past, **options, name="certified")
    assert second.program.name == "certified"
    assert not hasattr(second, "unknown_attribute")
