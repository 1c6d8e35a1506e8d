import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secondlook.errors import InputError
from secondlook.lab.datasets import load

ADULT = {
    "age": [39, 50, 38, 28],
    "workclass": ["State-gov", "?", "Private", "Private"],
    "education": ["Bachelors", "Bachelors", "HS-grad", "11th"],
    "education-num": [13, 13, 9, 7],
    "sex": ["Male", "Male", "Male", "Female"],
    "Probability": ["<=50K", ">50K", "<=50K", ">50K"],
}
TAIWAN = {
    "ID": [1, 2, 3],
    "LIMIT_BAL": [20_000.0, 120_000.0, 90_000.0],
    "SEX": [1, 2, 2],
    "EDUCATION_1": [0, 1, 0],
    "default-payment-next-month": [1, 0, 0],
}


@pytest.fixture
def put(tmp_path):
    """Return a function that writes columns as a parquet file and returns its folder."""

    def put(name, columns):
        pq.write_table(pa.table(columns), tmp_path / name)
        return tmp_path

    return put


def test_adult(put):
    table = load("adult", data=put("uci_adult.parquet", ADULT))
    assert table.features == ("age", "workclass", "education", "education-num", "sex")
    assert table.unscaled == ("workclass", "education", "sex")
    assert table.group_feature == "sex"
    assert table.X[:, 1].tolist() == [2, 0, 1, 1]  # '?' comes first
    assert table.X[:, 4].tolist() == [1, 1, 1, 0]
    assert table.group.tolist() == ADULT["sex"]
    assert table.outcome.tolist() == [0, 1, 0, 1]
    assert table.name == "adult"
    assert table.source.startswith("Adult, ")
    assert "4 persons" in table.source


@pytest.mark.parametrize("men", [0, 1])
def test_taiwan(put, men):
    columns = TAIWAN | {"SEX": [men, men + 1, men + 1]}
    table = load("taiwan", data=put("taiwan_credit.parquet", columns))
    assert table.features == ("LIMIT_BAL", "SEX", "EDUCATION_1")  # an ID is no feature
    assert table.unscaled == ("SEX",)
    assert table.group_feature == "SEX"
    assert table.group.tolist() == ["male", "female", "female"]
    assert table.outcome.tolist() == [0, 1, 1]
    assert "3 clients" in table.source


def test_other_files_are_refused(put):
    with pytest.raises(InputError, match=r"adult needs the file uci_adult\.parquet"):
        load("adult")
    with pytest.raises(InputError, match="no column 'Probability', 'sex'"):
        load("adult", data=put("uci_adult.parquet", {"age": [1]}))
    with pytest.raises(InputError, match="group of taiwan must be one of 'sex', got 'race'"):
        load("taiwan", group="race")
