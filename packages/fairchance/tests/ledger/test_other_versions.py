"""A ledger goes on under other versions of the packages, lowest and newest, in both directions."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ledger.a_life import N_BATCH

ROOT = Path(__file__).parents[4]
A_LIFE = Path(__file__).with_name("a_life.py")


@pytest.fixture(scope="module")
def floors():
    """The Python of an environment with the lowest versions, which takes a minute to make."""
    if not (ROOT / "Makefile").exists():
        pytest.skip("the lowest versions are listed in a checkout only")
    subprocess.run(["make", ".venv-floors/dev"], cwd=ROOT, check=True)
    return str(ROOT / ".venv-floors/bin/python")


def lived(python, path, name, first, last):
    """Live rounds in another process, and check that all decisions so far are proved."""
    command = [python, "-W", "ignore", str(A_LIFE), f"sqlite:///{path}", name]
    seen = json.loads(subprocess.check_output([*command, str(first), str(last)]))
    assert seen["problems"] == [None, None]
    assert seen["proved"] == [last * N_BATCH, 0]
    return seen


@pytest.mark.long
@pytest.mark.parametrize("name", ["plain", "certified"])
@pytest.mark.parametrize("lowest_first", [True, False])
def test_a_ledger_goes_on_under_other_versions(floors, tmp_path, name, lowest_first):
    one, other = (floors, sys.executable) if lowest_first else (sys.executable, floors)
    path, copied = tmp_path / "lender.db", tmp_path / "copied.db"
    first = lived(one, path, name, 1, 7)
    shutil.copy(path, copied)
    here, there = lived(one, path, name, 8, 8), lived(other, copied, name, 8, 8)
    versions = [seen["versions"]["scikit-learn"] for seen in (first, here, there)]
    assert versions[0] == versions[1] != versions[2]
    assert first["skipped"] == here["skipped"] == {}
    assert there["skipped"].keys() == {versions[0]}  # what others learned is not learned again
    if name == "certified":  # which learns nothing in round 8
        for part in ("accepted", "propensity"):
            ours, theirs = (np.array(seen["decided"][0][part]) for seen in (here, there))
            assert np.allclose(ours, theirs, rtol=0, atol=1e-12)
    lived(other, path, name, 9, 10)
    lived(one, path, name, 11, 12)
