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
    table = read_table(write(name), features=["income", "owns"], unscaled=["owns"], **ROLES)
    assert table.features == ("income", "owns")
    assert table.X.tolist() == [[20, 1], [40, 0], [30, 1], [25, 1]]
    assert table.group.tolist() == ROWS["town"]
    assert table.outcome.tolist() == ROWS["paid"]
    assert table.outcome.dtype == np.int8
    assert table.unscaled == ("owns",)
    assert table.name == name.split(".")[0]
    assert table.source == (
        f"4 rows of the file {name}; good is paid = 1, groups are the values of town."
    )


def test_default_features_with_one_hot_text(write):
    table = read_table(
        write(), categorical="one-hot", unscaled=["job", "owns"], name="loans_2024", **ROLES
    )
    assert table.features == ("income", "job=baker", "job=clerk", "job=smith", "owns")
    assert table.X[:, 1:4].tolist() == [[0, 1, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]]
    assert table.unscaled == ("job=baker", "job=clerk", "job=smith", "owns")
    assert table.name == "loans_2024"


def test_text_as_codes(write):
    path = write(job=["clerk", "?", None, "baker"])
    table = read_table(path, categorical="codes", missing=-1.0, unscaled=["owns"], **ROLES)
    assert table.features == ("income", "job", "owns")
    assert table.X[:, 1].tolist() == [2, 0, -1, 1]
    assert table.unscaled == ("job", "owns")
    many = [f"j{i:03}" for i in range(201)]
    path = write(**{name: (values * 51)[:201] for name, values in ROWS.items()} | {"job": many})
    assert read_table(path, features=["job"], categorical="codes", **ROLES).X[-1] == 200


def test_dictionary_columns_in_chunks(write, tmp_path):
    first = pa.table(ROWS | {"job": pa.array(ROWS["job"]).dictionary_encode()})
    second = pa.table(ROWS | {"job": pa.array(["a", "b", "a", "b"]).dictionary_encode()})
    pq.write_table(pa.concat_tables([first, second]).unify_dictionaries(), tmp_path / "two.parquet")
    table = read_table(tmp_path / "two.parquet", outcome="paid", group="job", features=["income"])
    assert table.group.tolist() == [*ROWS["job"], "a", "b", "a", "b"]
    table = read_table(tmp_path / "two.parquet", features=["job"], categorical="one-hot", **ROLES)
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
    one_hot = {"features": ["income", "job"], "categorical": "one-hot"}
    check_rejected(
        r"missing in the features 'income' \(2 rows\), 'job' \(1 rows\)", path, **one_hot
    )
    table = read_table(path, missing=-1.0, **one_hot, **ROLES)
    assert table.X.tolist() == [[20, 0, 1], [-1, 0, 0], [30, 0, 1], [-1, 1, 0]]


def test_missing_nan_and_missing_column(write):
    path = write(income=[1.0, np.nan, 2.0, 3.0], job=pa.nulls(4))
    check_rejected(r"'income' \(1 rows\), 'job' \(4 rows\)", path, features=["income", "job"])
    table = read_table(path, features=["income", "job"], missing=0.0, **ROLES)
    assert table.X.tolist() == [[1, 0], [0, 0], [2, 0], [3, 0]]
    check_rejected("^missing must be a finite number, got nan", path, missing=np.nan)


def test_text_features_are_rejected(write):
    check_rejected(
        r"features must be numbers, and 'job' hold text.*categorical='one-hot'",
        write(),
        features=None,
    )
    check_rejected(
        "^categorical must be one of None, 'one-hot', 'codes', got 'x'", write(), categorical="x"
    )


def test_dates_and_infinity_are_rejected(write):
    path = write(income=[datetime.date(2024, 1, 1)] * 4)
    check_rejected(r"^the feature 'income' holds date32\[day\], and features must be", path)
    check_rejected(
        r"the feature 'income' must be finite, got infinity in 1 rows",
        write(income=[1.0, np.inf, 2.0, 3.0]),
    )


def test_too_many_text_values(tmp_path):
    n = 201
    columns = {"job": [f"job{i}" for i in range(n)], "town": ["X"] * n, "paid": [0] * 200 + [1]}
    pq.write_table(pa.table(columns), tmp_path / "many.parquet")
    check_rejected(
        "the feature 'job' has 201 different values, and at most 200",
        tmp_path / "many.parquet",
        features=["job"],
        categorical="one-hot",
    )


def test_missing_file(tmp_path):
    check_rejected(r"^there is no file '.*none.csv'; check the path\.$", tmp_path / "none.csv")


def test_unknown_file_type(tmp_path):
    (tmp_path / "table.xlsx").touch()
    (tmp_path / "folder.csv").mkdir()
    message = r"'.csv', '.csv.gz', '.parquet', got "
    check_rejected(message + "'table.xlsx'", tmp_path / "table.xlsx")
    check_rejected(message + "'folder.csv'", tmp_path / "folder.csv")


def test_missing_columns(write):
    present = "'income', 'job', 'owns', 'town', 'paid'"
    check_rejected(
        rf"^loans.csv has no column 'wage', 'age'; its columns are {present}\.$",
        write("loans.csv"),
        outcome="wage",
        features=["age", "income"],
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": []}, r"^features must be a list of at least one column, got \[\]"),
        ({"features": "income"}, "^features must be a list of at least one column, got 'income'"),
        ({"features": ["income"] * 2}, "^features must name each column once, got 'income', 'inc"),
        ({"features": ["paid"]}, "^the outcome 'paid' cannot be the group or a feature"),
        ({"group": "paid"}, "^the outcome 'paid' cannot be the group or a feature"),
        ({"unscaled": ["town"]}, r"^unscaled must be a list of features, out of 'income', got"),
        ({"unscaled": "income"}, "^unscaled must be a list of features"),
        ({"good": "yes"}, r"^good must be one of the values 0, 1 of the outcome 'paid', got 'yes'"),
    ],
)
def test_wrong_columns_and_options(options, message, write):
    check_rejected(message, write(), **options)


@pytest.mark.parametrize(
    ("paid", "message"),
    [
        ([1, 1, 1, 1], "^the outcome 'paid' must have exactly two values, got 1: 1"),
        ([1, 2, 3, 1], "^the outcome 'paid' must have exactly two values, got 3: 1, 2, 3"),
        ([1, 0, None, 1], "^the outcome 'paid' must not be missing, got 1 rows"),
        ([1, 2, 2, 1], "^the outcome 'paid' has the values 1, 2; name the good one"),
    ],
)
def test_wrong_outcomes(paid, message, write):
    check_rejected(message, write(paid=paid))


@pytest.mark.parametrize("name", ["loans.parquet", "loans.csv"])
def test_missing_groups(name, write):
    check_rejected(
        "^the group 'town' must not be missing, got 2 rows",
        write(name, town=["X", None, None, "Y"]),
    )


def test_empty_group(write):
    check_rejected(
        "^the group 'town' must not be empty, got 2 rows",
        write(town=["X", "", " ", "Y"]),
    )


def test_empty_files(tmp_path, write):
    (tmp_path / "empty.csv").touch()
    check_rejected("^empty.csv is empty", tmp_path / "empty.csv")
    (tmp_path / "blank.csv").write_text("\n\n")
    check_rejected(r"^blank.csv cannot be read as csv \(", tmp_path / "blank.csv")
    (tmp_path / "names.csv").write_text("income,town,paid\n")
    check_rejected("^names.csv has column names but no rows", tmp_path / "names.csv")


def test_repeated_column_names(tmp_path):
    (tmp_path / "twice.csv").write_text("income,income,town,paid\n1,2,X,0\n")
    message = ".* has more than one column named 'income'"
    check_rejected(f"^twice.csv{message}", tmp_path / "twice.csv")
    table = pa.Table.from_arrays([pa.array([1])] * 2, names=["income", "income"])
    pq.write_table(table, tmp_path / "twice.parquet")
    check_rejected(f"^twice.parquet{message}", tmp_path / "twice.parquet")


def test_damaged_files(tmp_path, write):
    path = write()
    whole = path.read_bytes()
    for content in (b"", b"PAR1 and nonsense", whole[:-30], whole[:4] + b"\xff" * 60 + whole[64:]):
        path.write_bytes(content)
        check_rejected(r"^loans.parquet cannot be read as parquet \(", path)
    (tmp_path / "uneven.csv").write_text("income,town,paid\n1,X,0\n1,2,3,4\n")
    check_rejected(r"^uneven.csv cannot be read as csv \(", tmp_path / "uneven.csv")
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"income,town,paid\n1,X,0\n")[:-12])
    check_rejected(r"^cut.csv.gz cannot be read as csv \(", tmp_path / "cut.csv.gz")
