"""Outcomes are compared with the record, and learned as the record teaches them."""

from __future__ import annotations

import numpy as np
import pytest

from ledger_worlds import algorithm_1, certified, started
from secondlook.errors import InputError
from secondlook.ledger.base import STATES, Standing
from secondlook.ledger.outcomes import new_outcomes, unique_outcomes
from secondlook.ledger.program import Program
from secondlook.methods.storage import dumps


def one_by_one(now, standing, final):
    """Return the new outcomes, by a loop over applicants."""
    new = {"outcomes": [], "correction": []}
    for at, (name, before) in enumerate(zip(now, standing.states, strict=True)):
        if before is None:
            new["outcomes"].append(at)
        elif before != now[name]:
            if final and "indeterminate" in (before, now[name]):
                return name
            new["correction"].append(at)
    return {
        kind: sorted(rows, key=lambda at: standing.persons[at])
        for kind, rows in new.items()
        if rows
    }


def test_new_outcomes_are_those_that_the_record_lacks(rng):
    kinds = set()
    for turn in range(200):
        n = int(rng.integers(8))
        now = {str(at): STATES[code] for at, code in enumerate(rng.integers(3, size=n))}
        before = [[*STATES, None][code] for code in rng.integers(4, size=n)]
        all_, none = np.ones(n, bool), np.zeros(n, bool)
        standing = Standing(rng.permutation(n), np.ones(n, int), all_, none, before)
        final = bool(turn % 2)
        expected = one_by_one(now, standing, final)
        kinds.add(type(expected))
        if isinstance(expected, str):
            with pytest.raises(InputError, match=f"id '{expected}' has an outcome or was with"):
                new_outcomes(now, standing, final=final)
            continue
        new = dict(new_outcomes(now, standing, final=final))
        assert {kind: rows.tolist() for kind, rows in new.items()} == expected
    assert kinds == {dict, str}


def test_repeated_outcomes_must_agree():
    assert unique_outcomes(["b", "a", "b"], ["good", "bad", "good"]) == {"b": "good", "a": "bad"}
    assert list(unique_outcomes(["b", "a", "b"], ["good", "bad", "good"])) == ["b", "a"]
    with pytest.raises(InputError, match="contradict each other for id 'b'; give one per id"):
        unique_outcomes(["a", "b", "b", "a"], ["good", "good", "bad", "bad"])


@pytest.mark.parametrize("make", [algorithm_1, certified])
def test_learning_from_calls_equals_learning_from_the_record(url, make, rng):
    program, _, (one, two, *_) = started(url, make(), n_batch=150, n_rounds=2)
    found = program.decide(one.people.X, sensitive_features=one.people.group)
    yes, no = found.ids[found.accepted], found.ids[~found.accepted]
    program.override(yes[[8, 3, 5]], False, "fraud")
    program.override(no[[4, 1]], True, "has a guarantor")
    program.undo_override([yes[3], no[1]], "the wrong person")
    program.withdraw(yes[[11, 9]])
    rest = rng.permutation(np.append(yes[12:], [yes[3], no[4]]))  # two were overridden
    outcomes = rng.integers(2, size=rest.size)
    program.observe(rest[:-5], outcomes[:-5])
    program.observe(rest, 1 - outcomes)  # corrections, and five new outcomes
    assert dumps(program.classifier) == dumps(Program.open(url).classifier)
    later = two.people
    decided = program.decide(later.X, sensitive_features=later.group)
    assert decided.round == 2
    assert program.verify(relearn=True).problem is None
