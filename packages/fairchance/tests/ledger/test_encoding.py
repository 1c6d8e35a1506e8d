"""Features as a ledger stores them."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fairchance.errors import InputError
from fairchance.people.columns import TableColumns
from fairchance.people.features import FeatureColumns
from fairchance.people.plain import plain_types


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
@pytest.mark.parametrize("kind", ["string", "object", "category"])
def test_missing_text_is_stored_as_missing(missing, kind):
    values = ["a", "b", missing] if kind == "object" else pd.array(["a", "b", missing], kind)
    X = pd.DataFrame({"t": pd.Series(values, dtype=kind), "x": [1.0, 2.0, 3.0]})
    columns = FeatureColumns.of(X)
    kept = columns.encode(X)
    assert kept.texts == ['["a"]', '["b"]', "[null]"]
    assert columns.decode(kept.numbers, kept.texts)["t"].to_pylist() == ["a", "b", None]


def test_text_mixed_with_numbers_is_refused():
    X = pd.DataFrame({"t": ["a", None, "b"]})
    strange = pd.DataFrame({"t": ["a", None, pd.NA, 7]}, dtype=object)
    with pytest.raises(InputError, match=r"'t' \(7\)"):
        FeatureColumns.of(X).encode(strange)


@pytest.mark.parametrize(
    "frame",
    [
        lambda table: table,
        lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
        pl.from_arrow,
        plain_types,
        lambda table: plain_types(pa.table({"x": table["x"].dictionary_encode()})),
    ],
)
def test_decimals_are_the_numbers_that_are_written(frame):
    amounts = [Decimal(cents) / 100 for cents in range(1000)] + [None]
    X = frame(pa.table({"x": pa.array(amounts, pa.decimal128(9, 2))}))
    kept = FeatureColumns.of(X).encode(X)
    expected = [float(str(amount)) for amount in amounts[:-1]] + [np.nan]
    np.testing.assert_array_equal(np.frombuffer(b"".join(kept.numbers)), expected)
    np.testing.assert_array_equal(TableColumns.of(X).codes(X)[:, 0], expected)


def test_the_same_values_have_the_same_bytes():
    times = pd.to_datetime("1990-01-01") + pd.to_timedelta(np.arange(2000) * 86_461, "s")
    frame = pd.DataFrame({"time": times, "x": np.r_[np.nan, np.arange(1999.0)]})
    tables = [frame, pl.from_pandas(frame), pa.Table.from_pandas(frame, preserve_index=False)]
    tables.append(frame.assign(x=frame["x"].mask(frame["x"].isna(), -np.nan)))
    columns = FeatureColumns.of(frame)
    first, *others = (columns.encode(table).numbers for table in tables)
    assert others == [first] * 3


DAYS = [date(1970, 1, 2), None, date(1969, 12, 30)]
TIMES = [datetime(1970, 1, 2, 18), None, datetime(1969, 12, 31, 12)]


@pytest.mark.parametrize(
    "frame",
    [
        lambda columns: pd.DataFrame(columns).assign(
            **{
                name: pd.to_datetime(pd.Series(values))
                for name, values in columns.items()
                if name != "x"
            }
        ),
        pl.DataFrame,
        pa.table,
    ],
)
def test_dates_are_stored_as_days(frame):
    X = frame({"day": DAYS, "x": [1.0, 2.0, 3.0], "time": TIMES})
    columns = FeatureColumns.of(X)
    assert (columns.texts, columns.dates) == ((), ("day", "time"))
    kept = columns.encode(X)
    table = columns.decode(kept.numbers, kept.texts)
    stored = np.frombuffer(b"".join(kept.numbers)).reshape(3, 3)
    expected = [[1.0, 1.0, 1.75], [np.nan, 2.0, np.nan], [-2.0, 3.0, -0.5]]
    np.testing.assert_array_equal(stored, expected)
    assert table["time"].to_pylist() == TIMES
    assert [day and day.date() for day in table["day"].to_pylist()] == DAYS
    with pytest.raises(InputError, match="'day' held dates in the history and does not now"):
        columns.encode(pd.DataFrame({"day": [1.0], "x": [1.0], "time": [1.0]}))
