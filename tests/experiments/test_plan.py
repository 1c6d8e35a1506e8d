"""How long until a certificate: against the method's own record, and by what must hold."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from secondlook.cli.app import app
from secondlook.errors import InputError
from secondlook.experiments.plan import Plan, plan
from secondlook.simulate.populations import Binormal
from secondlook.simulate.streams import Drawn

EASY = Drawn(Binormal(good=0.85, auc=0.9), 400, 12)


def test_easier_people_are_certified_sooner_and_cheaper():
    easy, hard = (
        plan(Plan(Drawn(Binormal(good=good, auc=auc), 400, 12), repetitions=4), jobs=1)[0]
        for good, auc in ((0.85, 0.9), (0.7, 0.75))
    )
    assert easy.share_certified == 1
    assert easy.rounds[1] < hard.rounds[1] or hard.share_certified < 1
    assert easy.lost_on_bad[1] < hard.lost_on_bad[1] or hard.share_certified < 1
    for figures in (easy.rounds, easy.accepted, easy.explored, easy.lost_on_bad):
        assert figures[0] <= figures[1] <= figures[2]
    assert easy.explored[1] <= easy.accepted[1]
    assert easy.lost_on_bad[1] % 500 == 0 or easy.lost_on_bad[1] % 250 == 0


def test_each_group_has_its_own_certificate_and_takes_longer():
    shares = (("A", 0.7), ("B", 0.3))
    stream = Drawn(Binormal(good=0.85, auc=0.9, shares=shares), 400, 12)
    found = {one.whom: one for one in plan(Plan(stream, repetitions=4), jobs=1)}
    assert list(found) == ["everybody", "A", "B"]
    assert found["B"].rounds[1] >= found["everybody"].rounds[1] or np.isnan(found["B"].rounds[1])


def test_the_same_seed_plans_the_same_whatever_the_cores():
    one, other = (plan(Plan(EASY, repetitions=3), jobs=jobs) for jobs in (1, 2))
    assert one == other


def test_progress_and_refusals():
    seen = []
    plan(Plan(EASY, repetitions=2), jobs=1, progress=lambda *done: seen.append(done))
    assert seen == [(1, 2), (2, 2)]
    with pytest.raises(InputError, match="repetitions must be 2 or more, got 1"):
        plan(Plan(EASY, repetitions=1))


def test_the_command(tmp_path):
    easy = ["plan", "--good", "0.85", "--auc", "0.9", "--people", "300", "--rounds", "8"]
    few = ["--repetitions", "2", "--jobs", "1", "--json"]
    done = CliRunner().invoke(app, [*easy, *few])
    assert done.exit_code == 0, done.output
    (everybody,) = json.loads(done.stdout)["certificate"]
    assert everybody["whom"] == "everybody"
    for wrong, words in (
        (["--groups", "A:1"], "groups must look like"),
        (["--auc", "0.3"], "auc must be in"),
        (["--history", str(tmp_path / "x.csv")], "--outcome and --group"),
    ):
        refused = CliRunner().invoke(app, ["plan", *wrong, *few])
        assert refused.exit_code == 2
        assert words in json.loads(refused.stdout)["error"]
