"""Opening a program reads its last state and not all that led to it."""

from __future__ import annotations

import sqlalchemy as sa

from ledger.lived_programs import entries, lived
from ledger_worlds import algorithm_1
from secondlook.ledger.program import Program


def work_of(url, doing):
    """Return how many hundreds of steps SQLite takes while something is done with a program."""
    program = Program.open(url)
    program._state = None
    program.ledger.engine.dispose()
    steps = [0]

    def count():
        steps[0] += 1

    @sa.event.listens_for(program.ledger.engine, "connect")
    def listen(connection, _record):
        connection.set_progress_handler(count, 100)

    doing(program)
    return steps[0]


def test_opening_does_not_read_what_is_in_the_last_state(tmp_path):
    opening, reading = [], []
    for n_rounds in (5, 20):
        url = f"sqlite:///{tmp_path}/{n_rounds}.db"
        lived(url, algorithm_1(), n_rounds=n_rounds, n_batch=200, told=0.1, snapshot_every=5)
        opening.append(work_of(url, lambda program: program.classifier))
        reading.append(work_of(url, entries))
    assert reading[1] > 2 * reading[0]  # what reading everything takes
    assert opening[1] - opening[0] < (reading[1] - reading[0]) / 20
    assert max(opening) < reading[0] / 10
