"""Overrides can be taken back, and taking back changes nothing that was learned or certified."""

from __future__ import annotations

import numpy as np
import pytest

from ledger_worlds import algorithm_1, certified, same, started
from secondlook.errors import InputError, UnknownIdError
from secondlook.ledger.program import Program


@pytest.fixture(params=[algorithm_1, certified])
def decided(request, tmp_path):
    """Return a program and its twin after a round, whom they accepted or not, and what follows."""
    url = f"sqlite:///{tmp_path}/ledger.db"
    program, twin, (one, two, *_) = started(url, request.param(), n_batch=120, n_rounds=2)
    found = program.decide(one.people.X, sensitive_features=one.people.group, batch="one")
    twin.decide(one.people.X, sensitive_features=one.people.group)
    yes, no = found.ids[found.accepted], found.ids[~found.accepted]
    return url, program, twin, yes, no, one.outcome[found.accepted], two.people


def test_people_stand_again_as_decided_and_stay_out_of_what_is_learned(decided):
    url, program, twin, yes, no, outcomes, later = decided
    program.override(yes[:2], False, "fraud was found")
    program.override(no[:2], True, "has a guarantor")
    program.undo_override([yes[0], no[0]], "the wrong person")
    standing = program.standing([*yes[:2], *no[:2]])
    assert standing.accepted.tolist() == [True, False, False, True]
    assert standing.overridden.all()
    with pytest.raises(UnknownIdError, match="1 of 1 ids are not accepted"):
        program.observe(no[:1], [1])
    program.observe([yes[0], no[1]], [1 - outcomes[0], 1])
    program.observe(yes[2:], outcomes[2:])
    twin.observe(yes[2:], outcomes[2:])
    twin.withdraw(yes[:2])  # for good, whatever came of the first
    again = Program.open(url).decide(later.X, sensitive_features=later.group)
    assert same(again, twin.decide(later.X, sensitive_features=later.group))
    assert program.verify(relearn=True).problem is None
    found = program.summary()
    assert [(one.kind, one.n) for one in found.changes if one.kind in ("override", "undo")] == [
        ("override", 2),
        ("override", 2),
        ("undo", 2),
    ]
    assert (found.overridden.accepted, found.overridden.known) == (2, 2)
    assert found.total("n_overridden") == 2  # the other two were taken back
    assert sum(one.n_overridden for one in found.groups) == 2
    told = [one.says["reason"] for one in found.changes if one.kind in ("override", "undo")]
    assert told == ["fraud was found", "has a guarantor", "the wrong person"]
    assert found.rounds[0].outcomes.known == yes.size - 2


@pytest.mark.parametrize("decided", [certified], indirect=True)
def test_an_override_may_follow_on_an_end_and_the_newest_is_shown(decided):
    _, program, _, yes, no, _, _ = decided
    for reason in ("fraud was found", "once more"):
        program.override(yes[:1], False, reason)
        program.undo_override(yes[:1], f"not {reason}")
    program.override(no[:1], True, "has a guarantor")
    with program.ledger.reading("main") as reader:
        first = int(reader.standing([str(yes[0])]).persons[0])
        other = int(reader.standing([str(no[0])]).persons[0])
        ((accepted, why, entry),) = reader.listed(first, first + 1).overrides
        assert (accepted, why) == (True, "not once more")
        assert entry == [one.number for one in reader.entries(kind="override")][-2]
        assert reader.listed(other, other + 1).overrides[0][:2] == (True, "has a guarantor")
    assert program.verify(relearn=True).ok


@pytest.mark.parametrize("decided", [algorithm_1], indirect=True)
def test_whose_override_cannot_be_taken_back(decided):
    _, program, _, yes, no, _, _ = decided
    program.override(no[:2], True, "has a guarantor")
    program.override(yes[:1], False, "fraud was found")
    program.undo_override(no[:1], "has none")
    program.observe(no[1:2], [1])
    before = program.checkpoint()
    for ids, words in (
        (no[:1], f"1 of 1 ids are not overridden, first '{no[0]}'; nothing was undone"),
        ([yes[0], yes[1]], f"1 of 2 ids are not overridden, first '{yes[1]}'"),
        (no[1:2], "have an outcome already"),
        ([10**9], "1 of 1 ids are unknown or erased, .*; nothing was undone"),
        ([0], "belong to the history"),
    ):
        with pytest.raises(InputError, match=words):
            program.undo_override(ids, "why not")
    with pytest.raises(InputError, match="the end of an override needs a reason"):
        program.undo_override(yes[:1], "")
    with pytest.raises(InputError, match=r"were overridden before.*undo that override first"):
        program.override(yes[:1], True, "why not")
    program.undo_override(np.empty(0, np.int64), "nobody")
    assert program.checkpoint() == before
