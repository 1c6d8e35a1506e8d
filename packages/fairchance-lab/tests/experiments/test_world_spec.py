"""Sources of a world: populations, data sets, files."""

from __future__ import annotations

import pytest

from experiments.loan_files import write_loans
from fairchance.errors import InputError, UnavailableError
from fairchance.simulate.people import Table
from fairchance.simulate.populations import Lender
from fairchance_lab.datasets import load
from fairchance_lab.experiments.world_spec import WorldSpec, load_source
from sentences import one_sentence


def test_populations_and_data_sets_by_name():
    assert load_source(WorldSpec("lender")) == Lender()
    assert load_source(WorldSpec("lender", population={"curvature": 1.0})) == Lender(curvature=1.0)
    german = load_source(WorldSpec("german", "sex"))
    assert isinstance(german, Table)
    assert german.fingerprint == load("german").fingerprint


def test_file_with_its_columns(tmp_path):
    write_loans(tmp_path / "loans.csv")
    columns = {
        "outcome": "paid",
        "good": "no",
        "group": "town",
        "features": ["debt"],
        "name": "loans",
    }
    table = load_source(WorldSpec(str(tmp_path / "loans.csv"), columns=columns))
    rows = [line.split(",") for line in (tmp_path / "loans.csv").read_text().split()[1:]]
    assert table.name == "loans"
    assert table.X[:, 0].tolist() == [float(row[1]) for row in rows]
    assert table.group.tolist() == [row[2] for row in rows]
    assert table.outcome.tolist() == [int(row[3] == "no") for row in rows]


OWN = {"outcome": "paid", "group": "town", "good": "yes"}


@pytest.mark.parametrize(
    ("file", "columns", "message"),
    [
        ({}, {}, "outcome.* group"),
        ({}, {"outcome": "paid"}, "group column"),
        ({}, {"group": "town"}, "outcome column"),
        ({}, OWN | {"colour": "red"}, "columns.* 'colour'.* outcome, group"),
        ({}, OWN | {"group": "city"}, "'city'.* 'income', 'debt'"),
        ({}, OWN | {"features": ["age"]}, "'age'"),
        ({}, OWN | {"good": "maybe"}, "'maybe'"),
        ({}, {"outcome": "paid", "group": "town"}, "good=None"),
        ({"outcomes": ("no", "yes", "late")}, OWN, "'late', 'yes', 'no'"),
        ({"outcomes": ("yes",)}, OWN, "'yes'"),
        ({"group": ("X", "")}, OWN, "'town'"),
    ],
)
def test_invalid_files_are_rejected(tmp_path, file, columns, message):
    write_loans(tmp_path / "loans.csv", **file)
    with pytest.raises(InputError, match=message) as error:
        load_source(WorldSpec(str(tmp_path / "loans.csv"), columns=columns))
    one_sentence(error)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (WorldSpec("germna"), "'germna'"),
        (WorldSpec("german", "race"), "'sex'.* 'race'"),
        (WorldSpec("german", population={"share_b": 0.1}), "population.* lender"),
        (WorldSpec("lender", population={"share_c": 0.1}), "'share_c'"),
        (WorldSpec("acs:XX:2018"), "'XX'"),
        (WorldSpec("nowhere.csv", columns=OWN), "'nowhere.csv'"),
    ],
)
def test_invalid_names_are_rejected(spec, message):
    with pytest.raises(InputError, match=message) as error:
        load_source(spec)
    assert not isinstance(error.value, UnavailableError)
    one_sentence(error)


def test_data_folder_is_searched(tmp_path, monkeypatch):
    monkeypatch.delenv("FAIRCHANCE_DATA", raising=False)
    monkeypatch.setenv("FAIRCHANCE_CACHE", str(tmp_path / "cache"))
    with pytest.raises(InputError, match=r"acs_ca_2018_adults_40pct\.parquet"):
        load_source(WorldSpec("acs-ca-2018-sample", "race"), data=tmp_path)
    with pytest.raises(InputError, match="/no"):
        load_source(WorldSpec("acs-ca-2018-sample", "race"), data=tmp_path / "no")
