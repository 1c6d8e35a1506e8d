"""Policies are stored once, before they decide, and hold nobody."""

from __future__ import annotations

import io
import zipfile

import numpy as np

import secondlook as sl
from ledger.lived_programs import entries, lived
from ledger_worlds import algorithm_1, certified, started
from secondlook.ledger.program import Program
from secondlook.methods.algorithm1.learning import Learned
from secondlook.methods.storage import loads


def test_a_stored_policy_gives_the_recorded_scores_and_thresholds(place):
    program = lived(place, algorithm_1())
    policies = {one.number: facts.payload for one, facts in entries(program, "policy")}
    checked = 0
    for batch, facts in entries(program, "batch")[1:]:
        f = loads(policies[batch.says["policy"]], holds=Learned)
        X = np.frombuffer(b"".join(facts.people.numbers)).reshape(len(facts.people), -1)
        by_hand = 1 / (1 + np.exp(-(X @ f.likelihood.coef + f.likelihood.intercept)))
        np.testing.assert_allclose(facts.decisions.score, by_hand, rtol=1e-12)
        assert set(facts.decisions.threshold) == set(f.thresholds)
        known = facts.decisions.exploit
        accepted = by_hand >= f.thresholds[0]
        assert np.array_equal(facts.decisions.accepted[known], accepted[known])
        checked += 1
    assert checked == 2


def test_a_policy_is_stored_once_and_before_the_batches_it_decides(place):
    steady = sl.PartialFeedbackClassifier(budget=sl.FdrBudget(0.15, exploit=0.1), random_state=3)
    program, _, batches = started(place, steady, n_batch=60)
    named = []
    for turn, one in enumerate(batches[:5]):
        decided = program.decide(one.people.X, sensitive_features=one.people.group)
        if turn in (0, 3):
            program.observe(decided.ids[decided.accepted], one.outcome[decided.accepted])
        program = Program.open(place) if turn == 1 else program
        batch, _ = entries(program, "batch")[-1]
        assert batch.says["policy"] < batch.number
        named.append(batch.says["policy"])
    assert named[1] == named[2] == named[3]
    assert len({*named}) == 3
    assert [one.says["what"] for one, _ in entries(program, "policy")] == [
        "start",
        "past",
        "learned",
        "learned",
    ]


def test_policies_do_not_grow_with_the_rounds(place):
    program = lived(place, algorithm_1(), n_rounds=6)
    sizes = [len(f.payload) for one, f in entries(program, "policy") if one.says["what"] != "past"]
    start, *learned = sizes
    assert len(learned) == 5
    assert max(learned) < min(learned) + 100
    with_people = [len(facts.payload) for _, facts in entries(program, "snapshot")]
    assert start < min(with_people) / 2


def arrays_in(payload):
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        names = [name for name in archive.namelist() if name.endswith(".npy")]
        return [np.load(io.BytesIO(archive.read(name))) for name in names]


def test_nobody_is_in_a_stored_policy(place):
    program = lived(place, certified(), n_rounds=3)
    people = [facts.people for _, facts in entries(program) if facts.people is not None]
    features = np.frombuffer(b"".join(row for some in people for row in some.numbers))
    assert features.size > 600

    def holds_people(payload):
        return any(np.isin(array, features).any() for array in arrays_in(payload))

    stored = [(one, facts) for one, facts in entries(program, "policy") if facts.payload]
    assert stored
    for one, facts in stored:
        # Nothing has a row per person and a column per feature.
        arrays = arrays_in(facts.payload)
        assert all(array.ndim < 2 or array.shape[0] < 60 for array in arrays), one.key
        assert not holds_people(facts.payload), one.key
    program.snapshot()
    *_, (_, state) = entries(program, "snapshot")
    assert holds_people(state.payload)  # as a state of the classifier does
