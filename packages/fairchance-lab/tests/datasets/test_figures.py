"""Compare loaders with known figures of the real files; needs FAIRCHANCE_DATA."""

import os

import numpy as np
import pytest

from fairchance_lab.datasets import load

DATA = os.environ.get("FAIRCHANCE_DATA")

pytestmark = pytest.mark.skipif(not DATA, reason="FAIRCHANCE_DATA is not set")


def share(table, group):
    return (table.group == group).mean()


def good(table, group):
    return table.outcome[table.group == group].mean()


def test_california_2018():
    table = load("acs-ca-2018-sample", data=DATA)
    assert len(table) == 51_761
    assert share(table, "White") == pytest.approx(0.934, abs=5e-4)
    assert table.outcome.mean() == pytest.approx(0.439, abs=5e-4)
    assert good(table, "White") == pytest.approx(0.446, abs=5e-4)
    assert good(table, "Black") == pytest.approx(0.344, abs=6e-4)
    assert "POBP" in table.features


def test_three_states_2024():
    table = load("acs-pa-ma-in-2024", data=DATA)
    assert len(table) == 240_142
    assert share(table, "White") == pytest.approx(0.937, abs=5e-4)
    assert table.outcome.mean() == pytest.approx(0.324, abs=5e-4)
    assert "without POBP" in table.source


def test_credit_scores():
    domain = load("fico", data=DATA)
    assert domain.mass.size == 198 * 4
    lowest = (domain.X[:, 0] == 0) & (domain.group == "white")
    assert 1 - domain.good[lowest] == pytest.approx(0.985, abs=5e-4)
    total = 133_165 + 18_274 + 14_702 + 7_906
    assert domain.mass[domain.group == "white"].sum() == pytest.approx(133_165 / total)
    assert np.all(domain.mass >= 0)


def test_adult():
    table = load("adult", data=DATA)
    assert len(table) == 32_561
    assert table.outcome.mean() == pytest.approx(0.241, abs=5e-4)
    assert share(table, "Male") == pytest.approx(0.669, abs=5e-4)
    assert (load("adult", group="race", data=DATA).group == "Black").sum() == 3_124  # UCI's count


def test_taiwan():
    table = load("taiwan", data=DATA)
    assert len(table) == 30_000
    assert 1 - table.outcome.mean() == pytest.approx(0.221, abs=5e-4)
    assert (table.group == "female").sum() == 18_112  # UCI's count
