"""Programs that have decided some rounds, their entries, and ways to tamper with them."""

from __future__ import annotations

import numpy as np

from fairchance.ledger.base import Facts
from fairchance.ledger.sql import Writer
from fairchance.ledger.verification.walk import verify
from ledger_worlds import started


def entries(program, kind=None):
    with program.ledger.reading(program.name) as reader:
        return [(one, reader.facts(one)) for one in reader.entries(kind=kind)]


def lived(url, classifier, n_rounds=3, n_batch=60, known=1.0, **options):
    """Return a program after some rounds, with a share of the outcomes of each."""
    program, _, batches = started(url, classifier, n_batch=n_batch, n_rounds=n_rounds, **options)
    rng = np.random.default_rng(1)
    for one in batches:
        decided = program.decide(one.people.X, sensitive_features=one.people.group)
        rows = decided.accepted & (rng.random(len(decided)) < known)
        if rows.any():
            program.observe(decided.ids[rows], one.outcome[rows])
    return program


def proved(program, **options):
    found = verify(program.ledger, **options)
    assert found.problem is None, found.problem
    return found


def lying(monkeypatch, kind, lie):
    append = Writer.append

    def other(self, this, header, facts, **options):
        if this == kind:
            header, facts = lie(dict(header), facts)
        return append(self, this, header, facts, **options)

    monkeypatch.setattr(Writer, "append", other)


def erase(program, ids):
    with program.ledger.writing("main") as writer:
        persons = writer.standing([str(one) for one in ids]).persons
        writer.append("erasure", {"why": "asked"}, Facts(erased=persons), by="t")
