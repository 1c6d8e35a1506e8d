"""The round that a summary says is tested next is the one that the engine tests next."""

from __future__ import annotations

import numpy as np
import pytest

from fairchance.errors import LearningWarning
from fairchance.ledger.summary import NextTested, summarise
from fairchance.people.store import PENDING
from ledger_worlds import algorithm_1, certified, started


class Desk:
    """A certified program; the test decides when outcomes arrive."""

    def __init__(self, folder, n_rounds=5, **options):
        url = f"sqlite:///{folder}/ledger.db"
        self.program, _, self.batches = started(
            url, certified(**options), n_batch=120, n_rounds=n_rounds
        )
        self.accepted = []

    def decide(self):
        batch = self.batches.pop(0)
        decided = self.program.decide(batch.people.X, sensitive_features=batch.people.group)
        self.accepted.append((decided.ids[decided.accepted], batch.outcome[decided.accepted]))
        return self.accepted[-1]

    def observe(self, t, which=slice(None)):
        ids, outcome = self.accepted[t - 1]
        self.program.observe(ids[which], outcome[which])

    def engine(self, z=0):
        return self.program.classifier._engines[z]

    def next_tested(self, group=None):
        return summarise(self.program.ledger).next_tested(group)

    def agrees(self, z=0, group=None):
        """Compare with the rounds that the engine keeps waiting, and return the next."""
        waiting, following = self.engine(z).waiting, self.next_tested(group)
        if not waiting:
            assert following is None
            return None
        pending = int(np.sum(self.engine(z)._outcomes(waiting[0]) == PENDING))
        assert (following.round, following.awaited) == (waiting[0].number, pending)
        assert following.awaited_before == 0
        assert following.oldest == following.round
        awaited = self.program.classifier.awaited_
        ids = [name for one in awaited if one.group == group for name in one.ids]
        assert len(ids) == pending
        assert following.ids == tuple(map(str, ids))[:20]
        return following


def test_a_program_without_tests_has_no_next_round(tmp_path):
    program, _, (one, *_) = started(f"sqlite:///{tmp_path}/x.db", algorithm_1(maturity=2))
    program.decide(one.people.X, sensitive_features=one.people.group)
    assert summarise(program.ledger).next_tested() is None
    desk = Desk(tmp_path)
    assert desk.next_tested() is None


@pytest.mark.parametrize(
    "options",
    [
        {"maturity": 1, "patience": 3},
        pytest.param({}, marks=pytest.mark.long),
        pytest.param({"maturity": 2}, marks=pytest.mark.long),
        pytest.param({"patience": 2}, marks=pytest.mark.long),
        pytest.param({"maturity": 3}, marks=pytest.mark.long),
    ],
)
def test_rounds_wait_as_in_the_engine(tmp_path, options):
    """Outcomes arrive in parts; applicants are overridden, withdrawn and erased in between."""
    desk = Desk(tmp_path, **options)
    program = desk.program
    desk.decide()
    assert desk.agrees().awaited == len(desk.accepted[0][0])
    desk.observe(1, slice(4, None))
    assert desk.agrees().awaited == 4
    desk.decide()
    desk.observe(2)
    assert desk.agrees() is not None
    ids = desk.accepted[0][0]
    program.override(ids[:1], False, "forged papers")
    desk.agrees()
    program.undo_override(ids[:1], "it was another applicant")
    desk.agrees()
    program.withdraw(ids[1:2])
    desk.agrees()
    program.erase(ids[2:3], "asked for it", early=True)
    desk.agrees()
    refused = np.setdiff1d(np.arange(ids.min(), ids.max()), ids)[:1]
    program.override(refused, True, "has a guarantor")
    desk.agrees()
    while desk.batches:
        desk.decide()
        desk.agrees()
        desk.observe(len(desk.accepted), slice(2, None))
        following = desk.agrees()
        assert following.matures in (0, following.round + options.get("maturity", 0))
    if program.standing(ids[3:4]).states == [None]:
        desk.observe(1, slice(3, 4))
    for t in range(3, len(desk.accepted) + 1):
        desk.observe(t, slice(0, 2))
        desk.agrees()


@pytest.mark.parametrize(
    ("maturity", "patience"), [(1, 2), pytest.param(3, 3, marks=pytest.mark.long)]
)
def test_a_round_enters_when_at_latest_says_so(tmp_path, maturity, patience):
    desk = Desk(tmp_path, maturity=maturity, patience=patience)
    desk.decide()
    latest = desk.next_tested().at_latest
    while desk.engine().waiting[0].number == 1:
        assert len(desk.accepted) < latest
        desk.decide()
    assert len(desk.accepted) == latest == 1 + patience


def test_complete_rounds_enter_once_mature(tmp_path):
    desk = Desk(tmp_path, maturity=2)
    desk.decide()
    desk.observe(1)
    following = desk.next_tested()
    assert (following.awaited, following.at_latest, following.n_known) == (
        0,
        None,
        len(desk.accepted[0][0]),
    )
    while desk.engine().waiting[0].number == 1:
        assert len(desk.accepted) < following.matures
        desk.decide()
    assert len(desk.accepted) == following.matures


def test_after_a_correction_later_rounds_wait_for_those_before(tmp_path):
    desk = Desk(tmp_path)
    ids, outcome = desk.decide()
    desk.observe(1)
    second, _ = desk.decide()
    with pytest.warns(LearningWarning, match="round 3"):
        desk.program.observe(ids[:1], 1 - outcome[:1])
    assert desk.engine().stage.restarts == 1
    assert [one.number for one in desk.engine().waiting] == [2]
    assert desk.next_tested() is None  # round 2 will never count, and round 3 is not there
    third, _ = desk.decide()
    began = desk.engine().stage.began
    assert began == 3
    ids = tuple(map(str, second[:20]))
    assert desk.next_tested() == NextTested(3, len(third), len(second), 0, None, 0, 2, ids)
    desk.observe(3)
    assert desk.next_tested() == NextTested(3, 0, len(second), 0, None, len(third), 2, ids)
    assert [one.number for one in desk.engine().waiting] == [2, 3]
    desk.observe(2)
    assert desk.next_tested() is None
    assert not desk.engine().waiting


def test_each_group_with_a_certificate_waits_for_its_own_outcomes(tmp_path):
    desk = Desk(tmp_path, certify="per_group")
    groups = [str(one) for one in desk.program.classifier.groups_]
    desk.decide()
    desk.decide()
    awaited = summarise(desk.program.ledger).rounds[0].awaited
    counted = [desk.agrees(z, group).awaited for z, group in enumerate(groups)]
    assert sum(counted) == awaited
    assert min(counted) > 0
    ids, outcome = desk.accepted[0]
    n_first = desk.engine(0).waiting[0].rows.size
    rows = [int(one) for one in ids]
    with desk.program.ledger.reading("main") as reader:
        kept = reader.facts(next(reader.entries(kind="batch"))).people
    first = f'["{groups[0]}"]'
    of_first = np.array([kept.groups[kept.applications.index(str(one))] == first for one in rows])
    assert of_first.sum() == n_first
    desk.program.observe(ids[of_first], outcome[of_first])
    assert desk.agrees(0, groups[0]).round == 2
    assert desk.agrees(1, groups[1]).round == 1
    without = summarise(desk.program.ledger, groups=False)
    assert without.next_tested(groups[0]) is None
