"""A ledger that an earlier commit of this version wrote can be read, verified and continued."""

from __future__ import annotations

import lzma

import pytest

from fairchance.ledger import Program, verify
from ledger.kept_ledger import KEPT, N_BATCH, applicants
from versions import SCIKIT_LEARN_1_9


@pytest.mark.parametrize("name", ["plain", "certified"])
def test_the_kept_ledger_verifies_and_continues(tmp_path, name):
    path = tmp_path / "kept.db"
    path.write_bytes(lzma.decompress(KEPT.read_bytes()))
    url = f"sqlite:///{path}"
    before = verify(url, name, relearn=name == "plain" or SCIKIT_LEARN_1_9)
    assert before.problem is None
    assert before.n_decisions + before.n_not_repeated == 2 * N_BATCH
    X, group, _ = applicants(3)
    program = Program.open(url, name)
    assert program.decide(X, sensitive_features=group).round == 3
    assert verify(url, name).problem is None
