"""Every decision comes out again from what is stored, with and without learning."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import secondlook as sl
from ledger.lived_programs import entries, lived, proved
from ledger_worlds import algorithm_1, certified, started
from secondlook.ledger.program import Program
from secondlook.methods.algorithm1 import classifier as algorithm
from secondlook.methods.finite import FiniteClassifier

CLASSIFIERS = {
    "default": algorithm_1,
    "cross": lambda: algorithm_1(split="cross"),
    "per group": lambda: algorithm_1(thresholds="per_group", group_as_feature=True),
    "mean past score": lambda: algorithm_1(coverage=sl.MeanPastScore()),
    "sum of g": lambda: algorithm_1(coverage=sl.SumOfG(threshold=0.9)),
    "learned first": lambda: algorithm_1(first_round="learned", strategy=sl.EqualGroups()),
    "tree": lambda: algorithm_1(learner=DecisionTreeClassifier(max_depth=3, random_state=0)),
    "blind": lambda: algorithm_1(group_mode="blind", strategy=None),
    "certified": certified,
    "certified per group": lambda: certified(certify="per_group", floor=0.02),
    "certified within": lambda: certified(ranks="within_group"),
    "certified audit": lambda: certified(group_mode="audit"),
}


LONG = ("cross", "learned first", "certified within", "certified per group")


@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=[pytest.mark.long] if one in LONG else []) for one in CLASSIFIERS],
)
def test_decisions_come_out_again_without_learning(place, monkeypatch, name):
    program = lived(place, CLASSIFIERS[name](), known=0.7)

    def never(*_args, **_options):
        raise AssertionError("something was learned")

    with monkeypatch.context() as patched:
        patched.setattr(algorithm, "learn", never)
        patched.setattr(sl.CertifiedClassifier, "_learn", never)
        found = proved(program)
    assert (found.n_decisions, found.n_learned_again) == (180, None)
    again = proved(program, relearn=True)
    assert (again.n_decisions, again.n_learned_again) == (180, 180)


def test_rounds_of_single_people_come_out_again(place):
    """Rounds that explore nobody share a policy in the log, as far as nothing rests on it yet."""
    program, _, batches = started(place, algorithm_1(strategy=None), n_batch=40)
    for one in batches[:2]:
        for row in range(12):
            part = slice(row, row + 1)
            decided = program.decide(one.people.X[part], sensitive_features=one.people.group[part])
            if row % 5 == 0 and decided.accepted.any():
                program.observe(decided.ids, one.outcome[part])
    assert len(program.classifier.policies_) < 24  # some were merged
    assert proved(program, relearn=True).n_decisions == 24


def test_classifiers_that_store_no_policies_are_replayed(place):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(400, 2)).astype(float)
    good = (rng.random(400) < 0.3 + 0.2 * X[:, 0]).astype(int)
    program = Program.create(
        place, FiniteClassifier(random_state=0), X[:300], good[:300], accepted=X[:300, 0] > 0
    )
    program.decide(X[300:])
    found = proved(program)
    assert (found.n_decisions, found.n_learned_again) == (100, 100)
    assert entries(program, "policy") == []


def test_a_refit_on_the_same_machine_gives_the_same_bits(place):
    program = lived(place, algorithm_1(), known=0.7)
    found = [one.key for one, _ in entries(program, "policy")]
    again = lived(place.replace("ledger.db", "again.db"), algorithm_1(), known=0.7)
    assert [one.key for one, _ in entries(again, "policy")] == found  # keys are hashes of content
