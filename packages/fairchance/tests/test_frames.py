"""The same table in, the same array out, whatever kind of frame it came in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fairchance.core.decisions import Decisions
from fairchance.errors import InputError
from fairchance.frames import (
    as_array,
    column,
    concat,
    is_frame,
    n_rows,
    read_features,
    take,
    to_frame,
    with_columns,
    without_mask,
)

KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
SERIES = {"pandas": pd.Series, "polars": pl.Series, "pyarrow": lambda x: pa.chunked_array([x])}

TABLE: dict[str, Any] = {
    "age": np.array([30, 40, 50]),
    "income": np.array([1.5, -2.5, 0.0]),
    "owner": np.array([True, False, True]),
}
ARRAY = np.array([[30, 1.5, 1], [40, -2.5, 0], [50, 0, 1]])


@pytest.fixture(params=KINDS)
def kind(request) -> str:
    return request.param


def make(kind: str, columns: dict[str, Any]) -> Any:
    return KINDS[kind](columns)


def plain(frame: Any) -> dict[str, list[Any]]:
    """Return any frame's columns as lists."""
    if isinstance(frame, pd.DataFrame):
        return frame.to_dict("list")
    return frame.to_pydict() if isinstance(frame, pa.Table) else frame.to_dict(as_series=False)


def test_frames_become_arrays(kind):
    features = read_features(make(kind, TABLE), raw=False)
    assert isinstance(features.X, np.ndarray)
    assert features.X.dtype == np.float64
    assert np.array_equal(features.X, ARRAY)
    assert features.names == ("age", "income", "owner")
    assert features.backend == kind


def test_single_precision_is_kept_only_if_all_columns_have_it(kind):
    single = {name: values.astype(np.float32) for name, values in TABLE.items()}
    features = read_features(make(kind, single), raw=False)
    assert features.X.dtype == np.float32
    assert np.array_equal(features.X, ARRAY)
    mixed = single | {"age": TABLE["age"]}
    assert read_features(make(kind, mixed), raw=False).X.dtype == np.float64


def test_missing_numbers_become_nan(kind):
    columns = {"n": [1, None, 3], "x": [0.5, 1.5, None]}
    array = read_features(make(kind, columns), raw=False).X
    assert np.array_equal(array, [[1, 0.5], [np.nan, 1.5], [3, np.nan]], equal_nan=True)


@pytest.mark.parametrize("X", [ARRAY, ARRAY.astype(np.float32), ARRAY.tolist()])
def test_arrays_are_passed_on(X):
    features = read_features(X, raw=False)
    assert features.X is X
    assert (features.names, features.backend) == (None, "numpy")


def test_raw_frames_stay_frames(kind):
    frame = make(kind, TABLE | {"city": ["a", "b", "a"]})
    features = read_features(frame, raw=True)
    assert features.names == ("age", "income", "owner", "city")
    assert features.backend == kind
    if kind == "pyarrow":  # which scikit-learn cannot read
        assert isinstance(features.X, pd.DataFrame)
    else:
        assert features.X is frame
    assert list(plain(features.X)["city"]) == ["a", "b", "a"]


def test_text_is_refused_by_name(kind):
    frame = make(kind, TABLE | {"city": ["a", "b", "a"], "job": ["x", "y", "z"]})
    with pytest.raises(InputError, match=r"X.*'city'.*'job'"):
        read_features(frame, raw=False)


@pytest.mark.parametrize(
    "values",
    [
        pd.Categorical(["a", "b"]),
        pd.to_datetime(["2024-01-01", "2024-01-02"]),
        np.array([1, "x"], object),
    ],
)
def test_other_columns_that_are_no_numbers(values):
    with pytest.raises(InputError, match=r"'strange'"):
        read_features(pd.DataFrame({"strange": values}), raw=False)


def test_names_that_are_no_text_are_no_names():
    features = read_features(pd.DataFrame(ARRAY), raw=False)
    assert features.names is None
    assert np.array_equal(features.X, ARRAY)


def test_what_is_a_frame(kind):
    assert is_frame(make(kind, TABLE))
    assert not is_frame(ARRAY)
    assert not is_frame(ARRAY.tolist())
    assert not is_frame(pl.LazyFrame(TABLE))
    assert not is_frame(pd.Series([1]))


@pytest.mark.parametrize("values", [[3, 1, 2], [0.5, 1.5, 2.5], [True, False, True], list("abc")])
def test_columns_of_any_kind(kind, values):
    for given in (SERIES[kind](values), make(kind, {"z": values}), values, np.array(values)):
        array = column(given, 3, "z")
        assert array.shape == (3,)
        assert array.tolist() == values
    assert as_array(SERIES[kind](values)).tolist() == values
    assert column(np.array(values)[:, None], 3, "z").tolist() == values


@pytest.mark.parametrize("wrong", [[1, 2], ARRAY, 5, [[1, 2, 3]]])
def test_a_column_has_one_value_a_row(wrong):
    with pytest.raises(InputError, match=r"group.*3"):
        column(wrong, 3, "group")


def test_a_frame_of_two_columns_is_no_column(kind):
    with pytest.raises(InputError, match=r"3.*\(3, 2\)"):
        column(make(kind, {"a": [1, 2, 3], "b": [1, 2, 3]}), 3, "group")


def test_there_and_back(kind):
    frame = to_frame(TABLE, kind)
    assert isinstance(frame, type(make(kind, TABLE)))
    assert plain(frame) == {name: values.tolist() for name, values in TABLE.items()}
    features = read_features(frame, raw=False)
    assert np.array_equal(features.X, ARRAY)
    assert features.backend == kind


def test_there_and_back_for_arrays():
    table = to_frame(TABLE | {"name": np.array(["a", "bc", ""])}, "numpy")
    assert table.dtype.names == ("age", "income", "owner", "name")
    assert table["owner"].dtype == bool
    assert table["name"].tolist() == ["a", "bc", ""]
    assert table[1].tolist() == (40, -2.5, False, "bc")


@pytest.mark.parametrize("ids", [np.array([7, 8]), np.array(["a", "bc"])])
def test_decisions_as_a_frame_of_the_callers_kind(kind, ids):
    decided = Decisions(
        ids,
        accepted=np.array([True, True]),
        exploit=np.array([True, False]),
        score=np.array([0.9, 0.2]),
        propensity=np.array([1.0, 0.25]),
        round=3,
        backend=kind,
    )
    expected = {
        "id": ids.tolist(),
        "accepted": [True, True],
        "region": ["exploit", "explore"],
        "score": [0.9, 0.2],
        "propensity": [1.0, 0.25],
        "round": [3, 3],
    }
    assert isinstance(decided.to_frame(), type(make(kind, TABLE)))
    assert plain(decided.to_frame()) == plain(decided.to_frame("polars")) == expected
    assert decided.to_frame("numpy")["region"].tolist() == expected["region"]
    assert decided.explored.tolist() == [False, True]
    assert len(decided) == 2


def test_rows_are_taken_and_joined(kind):
    for X in (make(kind, TABLE), ARRAY):
        parts = [take(X, np.array([2, 0])), take(X, slice(1, 2)), take(X, np.array([], int))]
        assert [n_rows(part) for part in parts] == [2, 1, 0]
        joined = concat(parts)
        assert type(joined) is type(X)
        assert np.array_equal(read_features(joined, raw=False).X, ARRAY[[2, 0, 1]])


def test_columns_are_found_by_name_and_others_ignored(kind):
    frame = make(kind, {"x": [5.0], "b": [2.0], "a": [1.0]})
    found = with_columns(frame, ("a", "b"))
    assert type(found) is type(frame)
    assert read_features(found, raw=False).X.tolist() == [[1.0, 2.0]]
    assert with_columns(frame, None) is frame
    assert with_columns(ARRAY, ("a", "b")) is ARRAY
    with pytest.raises(InputError, match=r"X.*'c'.*'a'.*'c'"):
        with_columns(frame, ("a", "c"))


def test_missing_truth_values_become_nan():
    frame = pd.DataFrame({"a": pd.array([True, None], dtype="boolean")})
    features = read_features(frame, raw=False)
    assert np.isnan(features.X[1, 0])
    assert features.X[0, 0] == 1


def test_columns_of_the_same_name():
    frame = pd.DataFrame(np.zeros((2, 2)), columns=["a", "a"])
    with pytest.raises(InputError, match="X"):
        read_features(frame, raw=False)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8, np.bool_, object])
def test_masked_features_are_missing(dtype):
    values, mask = np.array([[1, 0], [0, 1]], dtype), [[False, True], [False, False]]
    masked = np.ma.array(values, mask=mask)
    found = read_features(masked, raw=False).X
    expected = [[1, np.nan], [0, 1]]
    assert type(found) is np.ndarray
    assert np.array_equal(found.astype(np.float64), expected, equal_nan=True)
    assert found.dtype == (dtype if dtype in (np.float32, object) else np.float64)
    assert np.array_equal(masked.data, values)  # what was handed in stays as it was
    whole = without_mask(np.ma.array(values))
    assert type(whole) is np.ndarray
    assert np.array_equal(whole, values)


@pytest.mark.parametrize("values", [[1, 2], [1.5, 2.5], ["a", "b"], [True, False]])
def test_masked_values_of_a_column_are_none(values):
    assert as_array(np.ma.array(values, mask=[False, True])).tolist() == [values[0], None]
    assert as_array(np.ma.array(values)).tolist() == values
