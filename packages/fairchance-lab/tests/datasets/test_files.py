import datetime
import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fairchance.errors import InputError
from fairchance_lab.datasets import read_table

ROWS = {
    "income": [20.0, 40.0, 30.0, 25.0],
    "job": ["clerk", "smith", "clerk", "baker"],
    "owns": [True, False, True, True],
    "town": ["X", "Y", "X", "Y"],
    "paid": [0, 1, 1, 0],
}
ROLES = {"outcome": "paid", "group": "town"}


@pytest.fixture
def write(tmp_path):
    """Return a function that writes rows, some columns changed, as csv or parquet."""

    def write(name="loans.parquet", **changed):
        path = tmp_path / name
        columns = ROWS | changed
        if name.endswith(".parquet"):
            pq.write_table(pa.table(columns), path)
            return path
        cells = [["" if value is None else str(value) for value in row] for row in columns.values()]
        lines = [",".join(columns), *(",".join(row) for row in zip(*cells, strict=True))]
        text = ("\n".join(lines) + "\n").encode()
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
        return path

    return write


def check_rejected(message, path, **options):
    with pytest.raises(InputError, match=message):
        read_table(path, **(ROLES | {"features": ["income"]} | options))


@pytest.mark.parametrize("name", ["loans.parquet", "loans.csv", "loans.csv.gz", "LOANS.CSV"])
def test_reads(name, write):
    table = read_table(write(name), features=["income", "owns"], **ROLES)
    assert table.features == ("income", "owns")
    assert table.X.tolist() == [[20, 1], [40, 0], [30, 1], [25, 1]]
    assert table.group.tolist() == ROWS["town"]
    assert table.outcome.tolist() == ROWS["paid"]
    assert table.outcome.dtype == np.int8
    assert table.name == name.split(".")[0]
    assert table.source == (
        f"4 rows of the file {name}; good is paid = 1, groups are the values of town."
    )


def test_default_features_with_one_hot_text(write):
    table = read_table(write(), name="loans_2024", **ROLES)
    assert table.features == ("income", "job=baker", "job=clerk", "job=smith", "owns")
    assert table.X[:, 1:4].tolist() == [[0, 1, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]]
    assert table.name == "loans_2024"


def test_dictionary_columns_in_chunks(write, tmp_path):
    first = pa.table(ROWS | {"job": pa.array(ROWS["job"]).dictionary_encode()})
    second = pa.table(ROWS | {"job": pa.array(["a", "b", "a", "b"]).dictionary_encode()})
    pq.write_table(pa.concat_tables([first, second]).unify_dictionaries(), tmp_path / "two.parquet")
    table = read_table(tmp_path / "two.parquet", outcome="paid", group="job", features=["income"])
    assert table.group.tolist() == [*ROWS["job"], "a", "b", "a", "b"]
    table = read_table(tmp_path / "two.parquet", features=["job"], **ROLES)
    assert table.X.sum(axis=0).tolist() == [2, 2, 1, 2, 1]


def test_the_group_may_be_a_feature(write):
    table = read_table(write(town=[1, 2, 1, 2]), features=["town", "income"], **ROLES)
    assert table.X[:, 0].tolist() == [1, 2, 1, 2]
    assert table.group.tolist() == ["1", "2", "1", "2"]


@pytest.mark.parametrize(
    ("paid", "good"),
    [
        (["no", "yes", "yes", "no"], "yes"),
        ([2, 1, 1, 2], 1),
        ([2, 1, 1, 2], "1"),
        ([2.0, 1.0, 1.0, 2.0], 1),
        ([False, True, True, False], None),
        ([0.0, 1.0, 1.0, 0.0], None),
        ([1, 0, 0, 1], 0),
    ],
)
def test_outcomes(paid, good, write):
    table = read_table(write(paid=paid), features=["income"], good=good, **ROLES)
    assert table.outcome.tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize("name", ["loans.parquet", "loans.csv"])
def test_missing_features(name, write):
    path = write(name, income=[20, None, 30, None], job=["clerk", None, "clerk", "baker"])
    one_hot = {"features": ["income", "job"]}
    check_rejected(r"'income' .*2 rows", path, **one_hot)
    table = read_table(path, missing=-1.0, **one_hot, **ROLES)
    assert table.X.tolist() == [[20, 0, 1], [-1, 0, 0], [30, 0, 1], [-1, 1, 0]]


def test_missing_nan_and_missing_column(write):
    path = write(income=[1.0, np.nan, 2.0, 3.0], job=pa.nulls(4))
    check_rejected(r"'job' .*4 rows", path, features=["job"])
    table = read_table(path, features=["income", "job"], missing=0.0, **ROLES)
    assert table.X.tolist() == [[1, 0], [0, 0], [2, 0], [3, 0]]
    check_rejected("'income'", path, missing=np.nan)


def test_dates_and_infinity_are_rejected(write):
    path = write(income=[datetime.date(2024, 1, 1)] * 4)
    check_rejected(r"'income' .*date32", path)
    check_rejected(
        "'income'",
        write(income=[1.0, np.inf, 2.0, 3.0]),
    )


def test_too_many_text_values(tmp_path):
    n = 201
    columns = {"job": [f"job{i}" for i in range(n)], "town": ["X"] * n, "paid": [0] * 200 + [1]}
    pq.write_table(pa.table(columns), tmp_path / "many.parquet")
    check_rejected(
        "'job' .*201",
        tmp_path / "many.parquet",
        features=["job"],
    )


def test_missing_file(tmp_path):
    check_rejected(r"none\.csv", tmp_path / "none.csv")


def test_unknown_file_type(tmp_path):
    (tmp_path / "table.xlsx").touch()
    (tmp_path / "folder.csv").mkdir()
    message = r"'.csv', '.csv.gz', '.parquet', got "
    check_rejected(message + "'table.xlsx'", tmp_path / "table.xlsx")
    check_rejected(message + "'folder.csv'", tmp_path / "folder.csv")


def test_missing_columns(write):
    present = "'income', 'job', 'owns', 'town', 'paid'"
    check_rejected(
        rf"loans\.csv .*'wage', 'age'.*{present}",
        write("loans.csv"),
        outcome="wage",
        features=["age", "income"],
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": []}, r"features .*\[\]"),
        ({"features": "income"}, "features .*'income'"),
        ({"features": ["income"] * 2}, "features .*'income', 'income'"),
        ({"features": ["paid"]}, "'paid'"),
        ({"group": "paid"}, "'paid'"),
        ({"good": "yes"}, "'paid' .*'yes'"),
    ],
)
def test_wrong_columns_and_options(options, message, write):
    check_rejected(message, write(), **options)


@pytest.mark.parametrize(
    ("paid", "message"),
    [
        ([1, 1, 1, 1], "'paid' .* 1 "),
        ([1, 2, 3, 1], "'paid' .* 1, 2, 3 "),
        ([1, 0, None, 1], "'paid' .* 1 rows"),
        ([1, 2, 2, 1], "'paid' .* 1, 2 .*None"),
    ],
)
def test_wrong_outcomes(paid, message, write):
    check_rejected(message, write(paid=paid))


@pytest.mark.parametrize("name", ["loans.parquet", "loans.csv"])
def test_missing_groups(name, write):
    check_rejected(
        "'town' .* 2 rows",
        write(name, town=["X", None, None, "Y"]),
    )


def test_empty_group(write):
    check_rejected(
        "'town'",
        write(town=["X", "", " ", "Y"]),
    )


def test_empty_files(tmp_path, write):
    (tmp_path / "empty.csv").touch()
    check_rejected(r"empty\.csv", tmp_path / "empty.csv")
    (tmp_path / "blank.csv").write_text("\n\n")
    check_rejected(r"blank\.csv", tmp_path / "blank.csv")
    (tmp_path / "names.csv").write_text("income,town,paid\n")
    check_rejected(r"names\.csv", tmp_path / "names.csv")


def test_repeated_column_names(tmp_path):
    (tmp_path / "twice.csv").write_text("income,income,town,paid\n1,2,X,0\n")
    message = ".*'income'"
    check_rejected(f"^twice.csv{message}", tmp_path / "twice.csv")
    table = pa.Table.from_arrays([pa.array([1])] * 2, names=["income", "income"])
    pq.write_table(table, tmp_path / "twice.parquet")
    check_rejected(f"^twice.parquet{message}", tmp_path / "twice.parquet")


def test_damaged_files(tmp_path, write):
    path = write()
    whole = path.read_bytes()
    for content in (b"", b"PAR1 and nonsense", whole[:-30], whole[:4] + b"\xff" * 60 + whole[64:]):
        path.write_bytes(content)
        check_rejected(r"loans\.parquet", path)
    (tmp_path / "uneven.csv").write_text("income,town,paid\n1,X,0\n1,2,3,4\n")
    check_rejected(r"uneven\.csv", tmp_path / "uneven.csv")
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"income,town,paid\n1,X,0\n")[:-12])
    check_rejected(r"cut\.csv\.gz", tmp_path / "cut.csv.gz")
