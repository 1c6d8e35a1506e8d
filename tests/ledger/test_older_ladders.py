"""Ladders on record from versions that kept two sums in them which nothing reads."""

from __future__ import annotations

import numpy as np
import pytest

import secondlook as sl
from ledger.lived_programs import lived
from secondlook.ledger.verifying import verify
from secondlook.methods.certified.ladder import Ladder


@pytest.mark.parametrize("name", ["_z", "tau"])
def test_an_older_ladder_is_proved_whatever_its_sums_say(tmp_path, monkeypatch, name):
    url = f"sqlite:///{tmp_path}/x.db"
    usual = Ladder.untested

    def older(self):
        made = usual(self)
        made._z_squared = np.ones(made.grid.size)
        vars(made)[name] = 2 * made.tau
        return made

    with monkeypatch.context() as patch:
        patch.setattr(Ladder, "untested", older)
        program = lived(url, sl.CertifiedClassifier(horizon=6, random_state=3))
    found = verify(program.ledger, relearn=True)
    assert found.ok == (name == "_z")  # what a policy rests on still has to fit
