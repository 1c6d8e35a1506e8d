"""The simulator runs through a ledger as it runs without."""

from __future__ import annotations

import numpy as np
import pytest

import secondlook as sl
from ledger_worlds import algorithm_1, certified, same
from secondlook.errors import InputError
from secondlook.lab.experiments.on_ledger import LedgerMethod
from secondlook.lab.simulate.feedback import Feedback, Geometric
from secondlook.lab.simulate.run import run
from secondlook.ledger.program import Program
from secondlook.ledger.verification.walk import verify
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
def test_the_simulator_decides_the_same_through_a_ledger(url, make):
    world = lender_world(3, n_batch=150, n_rounds=5, feedback=LATE)
    past, options = history(world)
    plain = make().fit(*past, **options)
    recorded = LedgerMethod.begin(url, make(), *past, **options)
    n_accepted = 0
    for one, two in zip(run(plain, world), run(recorded, world), strict=True):
        assert same(one.decided, two.decided)
        n_accepted += int(one.decided.accepted.sum())
        if one.upcoming is not None:
            X, group = one.upcoming.people.X, one.upcoming.people.group
            for ask in ("accepts", "acceptance_probability", "predict_proba"):
                said = [getattr(m, ask)(X, sensitive_features=group) for m in (plain, recorded)]
                assert np.array_equal(*said)
    assert n_accepted > 50
    assert repr(recorded.rounds_) == repr(plain.rounds_)
    assert repr(recorded.corrections_) == repr(plain.corrections_)
    assert len(plain.corrections_) > 0
    with recorded.program.ledger.reading("main") as reader:
        kinds = {entry.kind for entry in reader.entries()}
        assert [one.key for one in reader.entries(kind="batch")] == [
            f"round {t}" for t in range(1, 6)
        ]
    assert {"batch", "outcomes", "correction"} <= kinds
    found = verify(recorded.program.ledger)
    assert found.problem is None
    assert found.n_decisions == 5 * 150


def test_a_run_that_was_killed_is_begun_again_and_goes_on(url):
    world = lender_world(4, n_batch=100, n_rounds=5, feedback=LATE)
    past, options = history(world)
    plain = [one.decided for one in run(algorithm_1().fit(*past, **options), world)]
    killed = run(LedgerMethod.begin(url, algorithm_1(), *past, **options), world)
    for _ in range(3):
        next(killed)
    before = Program.open(url).checkpoint()
    again = LedgerMethod.begin(url, algorithm_1(), *past, **options, by="another")
    after_three = [one.decided for _, one in zip(range(3), run(again, world), strict=False)]
    assert again.program.checkpoint() == before
    assert all(map(same, after_three, plain[:3]))
    last = LedgerMethod.begin(url, algorithm_1(), *past, **options)
    whole = [one.decided for one in run(last, world)]
    assert len(whole) == 5
    assert all(map(same, whole, plain))
    assert last.program.checkpoint().number > before.number


def test_another_program_is_not_gone_on_with(tmp_path):
    url = f"sqlite:///{tmp_path}/ledger.db"
    world, other = lender_world(5, n_rounds=2), lender_world(6, n_rounds=2)
    past, options = history(world)
    LedgerMethod.begin(url, algorithm_1(), *past, **options)
    for classifier, (his, has), words in (
        (algorithm_1(strategy=sl.Uniform()), (past, options), "'main' with other settings"),
        (certified(), (past, options), "'main' with other settings"),
        (algorithm_1(), history(other), "'main' with another history"),
    ):
        with pytest.raises(InputError, match=words):
            LedgerMethod.begin(url, classifier, *his, **has)
    second = LedgerMethod.begin(url, certified(), *past, **options, name="certified")
    assert second.program.name == "certified"
    assert not hasattr(second, "no_such_thing")
