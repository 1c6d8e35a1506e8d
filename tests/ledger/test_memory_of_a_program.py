"""What a program has in memory is what its ledger has, whatever is done to either of them."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from ledger_worlds import algorithm_1, certified, same, started
from secondlook.errors import LearningWarning
from secondlook.ledger.program import Program
from secondlook.ledger.verification.walk import verify


@pytest.fixture
def place(tmp_path):
    return tmp_path / "ledger.db"


def decide(program, batch, **options):
    return program.decide(batch.people.X, sensitive_features=batch.people.group, **options)


def tell(program, batch, decided):
    program.observe(decided.ids[decided.accepted], batch.outcome[decided.accepted])


def put_back(program, place: Path, content: bytes) -> None:
    """Put a copy in the place of a ledger, as somebody does who restores a backup."""
    program.ledger.close()
    for end in ("-wal", "-shm"):
        Path(f"{place}{end}").unlink(missing_ok=True)
    place.write_bytes(content)


def copy_of(program, place: Path) -> bytes:
    program.ledger.close()
    return place.read_bytes()


@pytest.mark.parametrize("n_since", [0, 1, 2])
@pytest.mark.parametrize("make", [algorithm_1, certified])
def test_a_copy_put_back_under_an_open_program(place, make, n_since):
    url = f"sqlite:///{place}"
    program, twin, (one, two, three, *others) = started(url, make())
    first = decide(program, one)
    assert same(first, twin.decide(one.people.X, sensitive_features=one.people.group))
    older = copy_of(program, place)
    tell(program, one, first)
    decide(program, two)
    put_back(program, place, older)
    for batch in others[:n_since]:  # so that the chain is as long, or longer, and another
        assert same(
            decide(Program.open(url), batch),
            twin.decide(batch.people.X, sensitive_features=batch.people.group),
        )
    found = decide(program, three)
    assert found.round == n_since + 2
    assert same(found, twin.decide(three.people.X, sensitive_features=three.people.group))
    tell(program, one, first)
    assert verify(url).ok
    assert verify(url, relearn=True).ok


@pytest.mark.parametrize("make", [algorithm_1, certified])
def test_what_is_done_to_the_classifier_that_is_shown_changes_nothing(url, make):
    program, twin, (one, two, three, *_) = started(url, make())
    for batch in (one, two):
        shown = program.classifier
        decided = shown.decide(three.people.X, sensitive_features=three.people.group)
        shown.observe(decided.ids[decided.accepted], three.outcome[decided.accepted])
        ours = decide(program, batch)
        assert same(ours, twin.decide(batch.people.X, sensitive_features=batch.people.group))
        tell(program, batch, ours)
        tell(twin, batch, ours)
    assert len(program.classifier.rounds_) == 2
    assert verify(url).ok


def test_threads_that_share_a_program_take_turns(place):
    program, _, batches = started(f"sqlite:///{place}", algorithm_1(), n_batch=50)

    def work(at):
        shown = program.classifier
        decided = decide(program, batches[at], ids=np.arange(50) + 10**6 * (at + 1))
        shown.decide(batches[at].people.X, sensitive_features=batches[at].people.group)
        tell(program, batches[at], decided)
        return decided.round

    with ThreadPoolExecutor(3) as threads:
        rounds = sorted(threads.map(work, range(6)))
    assert rounds == [1, 2, 3, 4, 5, 6]
    assert verify(program.ledger, relearn=True).ok


def test_where_warnings_are_errors_a_call_that_raises_has_recorded_nothing(place):
    url = f"sqlite:///{place}"
    program, _, batches = started(url, certified(alpha=0.5, delta=0.3), n_batch=400)
    for batch in batches[:2]:
        decided = decide(program, batch)
        tell(program, batch, decided)
    decide(program, batches[2])
    wrong = decided.ids[decided.accepted][:1]
    outcome = 1 - batch.outcome[decided.accepted][:1]
    before = program.checkpoint()
    with warnings.catch_warnings():
        warnings.simplefilter("error", LearningWarning)
        with pytest.raises(LearningWarning, match="begins again"):
            program.observe(wrong, outcome)
    assert program.checkpoint() == before
    with pytest.warns(LearningWarning, match="begins again"):
        program.observe(wrong, outcome)
    assert program.checkpoint().number > before.number
    assert verify(url, relearn=True).ok
