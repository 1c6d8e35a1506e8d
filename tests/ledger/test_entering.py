"""What the record says of rounds that enter the tests is what the engine does with them."""

from __future__ import annotations

import numpy as np
import pytest

from ledger_worlds import algorithm_1, certified, started
from secondlook.errors import LearningWarning
from secondlook.ledger.entering import Entering, entering
from secondlook.ledger.summing_up import summarise
from secondlook.people.store import PENDING


class Desk:
    """A certified program whose outcomes come when a test says so."""

    def __init__(self, folder, n_rounds=5, **options):
        url = f"sqlite:///{folder}/ledger.db"
        self.program, _, self.batches = started(
            url, certified(**options), n_batch=120, n_rounds=n_rounds
        )
        self.told = []

    def decide(self):
        one = self.batches.pop(0)
        decided = self.program.decide(one.people.X, sensitive_features=one.people.group)
        self.told.append((decided.ids[decided.accepted], one.outcome[decided.accepted]))
        return self.told[-1]

    def observe(self, t, which=slice(None)):
        ids, outcome = self.told[t - 1]
        self.program.observe(ids[which], outcome[which])

    def engine(self, z=0):
        return self.program.classifier._engines[z]

    def found(self, group=None):
        return entering(summarise(self.program.ledger), group)

    def agrees(self, z=0, group=None):
        """Compare with the rounds that the engine keeps waiting; return what was found."""
        waiting, found = self.engine(z).waiting, self.found(group)
        if not waiting:
            assert found is None
            return None
        pending = int(np.sum(self.engine(z)._outcomes(waiting[0]) == PENDING))
        assert (found.round, found.awaited) == (waiting[0].number, pending)
        assert found.awaited_before == 0
        return found


def test_a_program_without_tests_has_nothing_that_enters(tmp_path):
    program, _, (one, *_) = started(f"sqlite:///{tmp_path}/x.db", algorithm_1(maturity=2))
    program.decide(one.people.X, sensitive_features=one.people.group)
    assert entering(summarise(program.ledger)) is None
    desk = Desk(tmp_path)
    assert desk.found() is None


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
def test_rounds_wait_as_the_engine_has_them_wait(tmp_path, options):
    """Outcomes in parts and out of order, people overridden, withdrawn and erased in between."""
    desk = Desk(tmp_path, **options)
    program = desk.program
    desk.decide()
    assert desk.agrees().awaited == len(desk.told[0][0])
    desk.observe(1, slice(4, None))
    assert desk.agrees().awaited == 4
    desk.decide()
    desk.observe(2)
    assert desk.agrees() is not None
    ids = desk.told[0][0]
    program.override(ids[:1], False, "forged papers")
    desk.agrees()
    program.undo_override(ids[:1], "it was somebody else")
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
        desk.observe(len(desk.told), slice(2, None))
        found = desk.agrees()
        assert found.matures in (0, found.round + options.get("maturity", 0))
    if program.standing(ids[3:4]).states == [None]:
        desk.observe(1, slice(3, 4))
    for t in range(3, len(desk.told) + 1):
        desk.observe(t, slice(0, 2))
        desk.agrees()


@pytest.mark.parametrize(
    ("maturity", "patience"), [(1, 2), pytest.param(3, 3, marks=pytest.mark.long)]
)
def test_it_enters_at_the_latest_when_it_says_so(tmp_path, maturity, patience):
    desk = Desk(tmp_path, maturity=maturity, patience=patience)
    desk.decide()
    latest = desk.found().at_latest
    while desk.engine().waiting[0].number == 1:
        assert len(desk.told) < latest
        desk.decide()
    assert len(desk.told) == latest == 1 + patience


def test_complete_rounds_enter_when_they_are_mature(tmp_path):
    desk = Desk(tmp_path, maturity=2)
    desk.decide()
    desk.observe(1)
    found = desk.found()
    assert (found.awaited, found.at_latest, found.n_known) == (0, None, len(desk.told[0][0]))
    while desk.engine().waiting[0].number == 1:
        assert len(desk.told) < found.matures
        desk.decide()
    assert len(desk.told) == found.matures


def test_after_a_correction_only_later_rounds_count_and_wait_for_those_before(tmp_path):
    desk = Desk(tmp_path)
    ids, outcome = desk.decide()
    desk.observe(1)
    second, _ = desk.decide()
    with pytest.warns(LearningWarning, match="testing begins again with round 3"):
        desk.program.observe(ids[:1], 1 - outcome[:1])
    assert desk.engine().restarts == 1
    assert [one.number for one in desk.engine().waiting] == [2]
    assert desk.found() is None  # round 2 will never count, and round 3 is not there
    third, _ = desk.decide()
    began = desk.engine().stage_began
    assert began == 3
    assert desk.found() == Entering(3, len(third), len(second), 0, None, 0)
    desk.observe(3)
    assert desk.found() == Entering(3, 0, len(second), 0, None, len(third))
    assert [one.number for one in desk.engine().waiting] == [2, 3]
    desk.observe(2)
    assert desk.found() is None
    assert not desk.engine().waiting


def test_each_group_with_a_certificate_waits_for_its_own(tmp_path):
    desk = Desk(tmp_path, certify="per_group")
    groups = [str(one) for one in desk.program.classifier.groups_]
    desk.decide()
    desk.decide()
    everybody = summarise(desk.program.ledger).rounds[0].awaited
    counted = [desk.agrees(z, group).awaited for z, group in enumerate(groups)]
    assert sum(counted) == everybody
    assert min(counted) > 0
    ids, outcome = desk.told[0]
    mine = desk.engine(0).waiting[0].places.size
    rows = [int(one) for one in ids]
    with desk.program.ledger.reading("main") as reader:
        kept = reader.facts(next(reader.entries(kind="batch"))).people
    first = f'["{groups[0]}"]'
    of_first = np.array([kept.groups[kept.applications.index(str(one))] == first for one in rows])
    assert of_first.sum() == mine
    desk.program.observe(ids[of_first], outcome[of_first])
    assert desk.agrees(0, groups[0]).round == 2
    assert desk.agrees(1, groups[1]).round == 1
    without = summarise(desk.program.ledger, groups=False)
    assert entering(without, groups[0]) is None
