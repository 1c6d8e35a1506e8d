"""Ledgers written before certificates had a second edition: they go on by the rules of the first.

In the certified one a walk of round 8 starts at 98 % of people, after round 9 it begins again for
drift, and in round 10 a pilot accepts 83 % for sure; its last snapshot is of round 6.
"""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np
import pytest

import secondlook as sl
from ledger_worlds import started
from secondlook.ledger.base import Entry
from secondlook.ledger.program import Program
from secondlook.ledger.verifying import verify


def unpacked(name, folder):
    packed = Path(__file__).with_name(f"{name}_of_before.db.xz").read_bytes()
    path = folder / f"{name}.db"
    path.write_bytes(lzma.decompress(packed))
    return f"sqlite:///{path}", "alarmed" if name == "certified" else "main"


def go_on(program, n_rounds, people):
    rng = np.random.default_rng(7)
    for _ in range(n_rounds):
        batch = program.decide(people(rng))
        taken = batch.ids[batch.accepted]
        program.observe(taken, (rng.random(taken.size) < 0.95).astype(int))


def certified_people(rng):
    return rng.normal(size=(40, 1))


def finite_people(rng):
    return rng.integers(0, 4, size=(40, 2))


@pytest.mark.parametrize(
    ("name", "people", "n_before"),
    [("certified", certified_people, 400), ("finite", finite_people, 90)],
)
def test_a_ledger_of_before_proves_itself_and_goes_on(tmp_path, name, people, n_before):
    url, program = unpacked(name, tmp_path)
    for relearn in (False, True):
        found = verify(url, program, relearn=relearn)
        assert (found.problem, found.n_decisions) == (None, n_before)
    go_on(Program.open(url, program, snapshot_every=2), 5, people)
    for relearn in (False, True):
        found = verify(url, program, relearn=relearn)
        assert (found.problem, found.n_decisions) == (None, n_before + 200)
    go_on(Program.open(url, program), 1, people)


def test_the_rules_of_before_stay(tmp_path):
    """From a snapshot of before, and through snapshots of now."""
    url, name = unpacked("certified", tmp_path)
    for n_rounds in (10, 13):
        program = Program.open(url, name, snapshot_every=1)
        (engine,) = program.classifier._engines
        assert engine.rules.edition == 1
        assert engine.rows.first_round == 5
        assert engine._people == 40 * n_rounds  # forgotten ones too
        assert engine._newest == ()
        assert max(one.grid[one.starts[0][0]] for one in engine.ladders) > 0.8
        go_on(program, 3, certified_people)


def test_the_record_says_which_rules_hold(tmp_path, monkeypatch):
    """The control: had it said that it began by the rules of now, it would not come out."""
    url, name = unpacked("certified", tmp_path)
    says = Entry.says.fget
    monkeypatch.setattr(Entry, "says", property(lambda self: says(self) | {"edition": 2}))
    assert "comes out otherwise" in verify(url, name, relearn=True).problem


def test_a_program_of_now_goes_by_the_rules_of_now(tmp_path):
    url = f"sqlite:///{tmp_path}/x.db"
    started(url, sl.CertifiedClassifier(certify="per_group", random_state=0))
    again = Program.open(url).classifier
    assert [one.rules.edition for one in again._engines] == [2, 2]
    assert "_edition" not in vars(again)
