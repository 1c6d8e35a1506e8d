"""Files that an earlier commit of this version wrote can be read, verified and continued."""

from __future__ import annotations

import json
import lzma

import numpy as np
import pytest

import fairchance as fc
from fairchance.ledger import Program, verify
from kept.write import ANSWERS, HERE, LEDGER, N_BATCH, applicants
from versions import SCIKIT_LEARN_1_9


@pytest.mark.parametrize("name", ["plain", "certified"])
def test_the_kept_ledger_verifies_and_continues(tmp_path, name):
    path = tmp_path / "kept.db"
    path.write_bytes(lzma.decompress(LEDGER.read_bytes()))
    url = f"sqlite:///{path}"
    before = verify(url, name, relearn=name == "plain" or SCIKIT_LEARN_1_9)
    assert before.problem is None
    assert before.n_decisions + before.n_not_repeated == 2 * N_BATCH
    X, group, _ = applicants(3)
    program = Program.open(url, name)
    assert program.decide(X, sensitive_features=group).round == 3
    assert verify(url, name).problem is None


@pytest.mark.parametrize("name", ["plain", "certified", "policy"])
def test_kept_files_decide_as_they_did(name):
    kept = json.loads(ANSWERS.read_text())[name]
    X, group, _ = applicants(3)
    given = {"sensitive_features": group, "ids": np.array(kept["ids"])}
    decided = fc.load(HERE / f"{name}.zip").decide(X, **given)
    assert decided.accepted.tolist() == kept["accepted"]
    assert 0 < sum(kept["accepted"]) < N_BATCH
    np.testing.assert_allclose(decided.propensity, kept["propensity"], rtol=0, atol=1e-12)
