"""Public tables: the same from a file and from OpenML, which a stand-in plays here."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.utils import Bunch

from fairchance.errors import InputError, UnavailableError
from fairchance_lab.datasets import CATALOGUE, load, openml

N = 4
ADULT = {
    "age": [24, 50, 38, 28],
    "workclass": ["State-gov", "?", "Private", "Private"],
    "race": ["White", "Other", "Black", "White"],
    "sex": ["Male", "Male", "Male", "Female"],
    "class": ["<=50K", ">50K", "<=50K", ">50K"],
}
TAIWAN = {
    "SEX": [1, 2, 2, 1],
    "AGE": [24, 25, 45, 46],
    "EDUCATION_1": [0, 1, 0, 0],
    "MARRIAGE_3": [1, 0, 0, 0],
    "default-payment-next-month": [1, 0, 0, 0],
}
ROWS = {"adult": ADULT, "taiwan": TAIWAN}
TABLES = {table.name: table for table in openml.PUBLIC}
GROUPS = {
    ("adult", "sex"): ["Male", "Male", "Male", "Female"],
    ("adult", "race"): ["White", "other", "Black", "White"],
    ("adult", "age"): ["under 25", "over 45", "25 to 45", "25 to 45"],
    ("taiwan", "sex"): ["male", "female", "female", "male"],
    ("taiwan", "age"): ["under 25", "25 to 45", "25 to 45", "over 45"],
}
GOOD = {
    "adult": [0, 1, 0, 1],
    "taiwan": [0, 1, 1, 1],
}


def columns_of(name):
    """Return all columns of a table; those that the test does not look at hold row numbers."""
    others = {feature: list(range(N)) for feature in TABLES[name].features}
    return others | ROWS[name]


@pytest.fixture
def put(tmp_path):
    """Return a function that writes columns as a parquet file and returns its folder."""

    def put(name, columns):
        pq.write_table(pa.table(columns), tmp_path / name)
        return tmp_path

    return put


@pytest.fixture
def served(monkeypatch, cache):
    """Let fetch_openml return columns as scikit-learn does without pandas; return the calls."""
    calls = []

    def serve(columns):
        def fetch(**options):
            calls.append(options)
            assert options["as_frame"] is False
            assert options["target_column"] is None
            assert options["data_home"] == cache
            categories, numbers = {}, []
            for name, values in columns.items():
                codes = {None: np.nan, "?": np.nan}
                if any(isinstance(value, str) for value in values):
                    categories[name] = sorted({value for value in values if value != "?"})
                    codes |= {value: code for code, value in enumerate(categories[name])}
                numbers.append([float(codes.get(value, value)) for value in values])
            names = list(columns)
            data = np.array(numbers).T
            return Bunch(data=data, feature_names=names, categories=categories, target=None)

        monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
        return calls

    return serve


@pytest.mark.parametrize("name", TABLES)
def test_a_file_and_openml_give_the_same_people(name, put, served):
    columns = columns_of(name)
    calls = served(columns)
    assert str(CATALOGUE[name].available()).startswith("would be downloaded from OpenML data set")
    fetched = load(name)
    assert [call["data_id"] for call in calls] == [TABLES[name].openml]
    folder = put(f"{name}.parquet", columns)
    assert CATALOGUE[name].available(folder).where == str(folder / f"{name}.parquet")
    read = load(name, data=folder)
    assert len(calls) == 1  # a file is taken without a download
    assert read.fingerprint == fetched.fingerprint
    assert read.features == TABLES[name].features
    assert read.name == name
    assert f"4 people, from {name}.parquet" in read.source
    assert f"4 people, from OpenML data set {TABLES[name].openml}" in fetched.source


@pytest.mark.parametrize(("name", "group"), GROUPS)
def test_groups_and_outcomes(name, group, served):
    served(columns_of(name))
    table = load(name, group=group)
    assert table.group.tolist() == GROUPS[name, group]
    assert table.outcome.tolist() == GOOD[name]
    assert table.group_feature in table.features
    assert set(CATALOGUE[name].groups) == {g for n, g in GROUPS if n == name}


def test_text_becomes_codes_and_missing_numbers_are_refused(served):
    served(columns_of("adult"))
    table = load("adult")
    assert table.X[:, table.features.index("workclass")].tolist() == [2, 0, 1, 1]  # '?' is first
    assert table.unscaled == ("workclass", "race", "sex")
    served(columns_of("adult") | {"age": [None, 30, 40, 50]})
    with pytest.raises(InputError, match=r"'age' of adult .* 1"):
        load("adult")


def test_taiwan_as_openml_has_it(served, put):
    """Numbered columns in UCI's order, and codes of education and marriage."""
    columns = columns_of("taiwan")
    order = [name for name in columns if not name.startswith(("EDUC", "MARR", "default"))]
    order[2:2] = ["EDUCATION", "MARRIAGE"]
    assert len(order) == 23
    codes = {"EDUCATION": [2, 1, 6, 0], "MARRIAGE": [3, 1, 2, 0]}
    raw = {f"x{i}": (columns | codes)[name] for i, name in enumerate(order, start=1)}
    served(raw | {"y": ["1", "0", "0", "0"]})
    dummies = {f"{c}_{k}": [int(v == k) for v in codes[c]] for c in codes for k in range(7)}
    known = columns | {name: v for name, v in dummies.items() if name in columns}
    prepared = load("taiwan", data=put("taiwan_credit.parquet", known | {"ID": [1, 2, 3, 4]}))
    table = load("taiwan")
    assert table.fingerprint == prepared.fingerprint
    assert table.outcome.tolist() == GOOD["taiwan"]


@pytest.mark.parametrize("name", TABLES)
def test_other_columns_are_refused(name, put):
    table = TABLES[name]
    columns = columns_of(name)
    first, outcome = table.features[0], table.outcomes[0][0]
    del columns[outcome]
    with pytest.raises(InputError, match=f"column '{outcome}'"):
        load(name, data=put(table.files[1], columns))
    columns = {n: values for n, values in columns_of(name).items() if n not in (first, outcome)}
    with pytest.raises(InputError, match=f"column '{first}', '{outcome}'"):
        load(name, data=put(table.files[1], columns))
    columns = columns_of(name) | {outcome: [0, 2, 1, 1]}
    with pytest.raises(InputError, match=f"outcome '{outcome}'"):
        load(name, data=put(table.files[1], columns))


def test_without_a_network(monkeypatch):
    def fetch(**_):
        raise OSError("Network is unreachable")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    with pytest.raises(UnavailableError, match=r"taiwan.* \(Network is unreachable\)"):
        load("taiwan")
    with pytest.raises(InputError, match="adult"):
        load("adult", download=False)
    with pytest.raises(InputError, match=r"group.* 'sex', 'age'.* 'race'"):
        load("taiwan", group="race")
