"""Cells: the same people are in the same cell, whatever table they come in."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from secondlook.errors import InputError
from secondlook.methods.finite import encoding
from secondlook.methods.finite.encoding import CellColumn, CellTable, columns_of

NAMES = ("age", "job", "group")


def people(rng, n):
    return {
        "age": rng.integers(20, 25, n),
        "job": rng.choice(["baker", "cook", "smith"], n),
        "group": rng.choice(["a", "b"], n),
    }


def place(table, columns):
    return table.place(list(columns.values()))


def contents(table, cell):
    """What a person's cell says about them."""
    return [
        tuple(column.values[code].item() for column, code in zip(table.columns, row, strict=True))
        for row in table.codes[cell]
    ]


def test_a_cell_is_a_row_in_a_group(rng):
    batch = people(rng, 300)
    placed = place(CellTable.empty(NAMES), batch)
    rows = list(zip(*(one.tolist() for one in batch.values()), strict=True))
    assert contents(placed.table, placed.cell) == rows
    assert len(placed.table) == len(set(rows))
    assert placed.heads.tolist() == np.bincount(placed.cell).tolist()


def test_numbers_stay_and_new_cells_go_behind(rng):
    first = place(CellTable.empty(NAMES), people(rng, 20))
    batch = people(rng, 400) | {"age": rng.integers(18, 30, 400)}
    second = place(first.table, batch)
    n = len(first.table)
    assert len(second.table) > n
    rows = list(zip(*(one.tolist() for one in batch.values()), strict=True))
    assert contents(second.table, second.cell) == rows
    everything = np.arange(n)
    assert contents(second.table, everything) == contents(first.table, everything)
    assert len(first.table) == n  # reading a batch changes nothing


def test_the_order_of_rows_does_not_matter(rng):
    batch, order = people(rng, 200), rng.permutation(200)
    placed = place(CellTable.empty(NAMES), batch)
    mixed = place(CellTable.empty(NAMES), {name: one[order] for name, one in batch.items()})
    assert np.array_equal(mixed.cell, placed.cell[order])
    assert np.array_equal(mixed.table.codes, placed.table.codes)


@pytest.mark.parametrize("most", [2**62, 20])
def test_sorting_finds_the_same_cells_as_a_table(rng, monkeypatch, most):
    first, second = people(rng, 30), people(rng, 300)
    by_table = place(place(CellTable.empty(NAMES), first).table, second)
    monkeypatch.setattr(encoding, "_DENSE", 0)
    monkeypatch.setattr(encoding, "_MOST", most)  # 20: keys are compacted on the way
    by_sorting = place(place(CellTable.empty(NAMES), first).table, second)
    assert np.array_equal(by_sorting.cell, by_table.cell)
    assert np.array_equal(by_sorting.heads, by_table.heads)
    assert np.array_equal(by_sorting.table.codes, by_table.table.codes)


def test_every_kind_of_frame_gives_the_same_cells(rng):
    batch = people(rng, 100) | {"age": rng.choice([0.5, 1.0, 2.5], 100)}
    placed = place(CellTable.empty(NAMES), batch)
    frames = [
        pd.DataFrame(batch),
        pd.DataFrame(batch).astype({"job": "category"}),
        pl.DataFrame(batch),
        pl.DataFrame(batch).cast({"job": pl.Categorical}),
        pa.table(batch),
    ]
    for frame in frames:
        columns, names, _ = columns_of(frame, None)
        again = CellTable.empty(NAMES).place(columns)
        assert names == NAMES
        assert np.array_equal(again.cell, placed.cell)
        assert contents(again.table, again.cell) == contents(placed.table, placed.cell)


@pytest.mark.parametrize(
    "values",
    [
        [3, 1, 3, -7],
        [True, False, True, True],
        [10**12, 5, -(10**15), 5],
        [0.25, 1.0, 0.25, -3.0],
        [1e300, 2.0, 1e300, -1e300],
        ["x", "yy", "x", "zzz"],
        [f"word {i}" for i in (3, 1, 2, 9, 8, 7, 6, 5, 4, 3, 1)],
    ],
)
def test_columns_of_every_kind(values):
    for column in (np.array(values), np.array(values, dtype=object), pl.Series(values).to_numpy()):
        codes, known = CellColumn(np.empty(0)).encode(column, "x")
        assert known.values[codes].tolist() == values
        again, same = known.encode(np.array(values[::-1]), "x")
        assert np.array_equal(again, codes[::-1])
        assert same.values.size == known.values.size


@pytest.mark.parametrize("kind", [np.uint64, np.int8, np.float32, np.uint8])
def test_numbers_of_every_width(kind):
    codes, known = CellColumn(np.empty(0)).encode(np.array([3, 0, 100], dtype=kind), "x")
    assert known.values[codes].tolist() == [3, 0, 100]


def test_whole_numbers_are_the_same_as_floats():
    _, known = CellColumn(np.empty(0)).encode(np.array([1, 2]), "x")
    codes, grown = known.encode(np.array([2.0, 1.0, 1.5]), "x")
    assert codes.tolist() == [1, 0, 2]
    assert grown.values.tolist() == [1, 2, 1.5]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (np.array([1.0, np.nan]), "column x has no value .* in 1 rows"),
        (np.array([1.0, np.inf]), "column x has no value"),
        (np.array([None, "a"], dtype=object), "column x has no value"),
        (pl.Series([1, None]), "column x has no value"),
        (pl.Series(["a", None]), "column x has no value"),
        (np.array([1j]), "Complex data not supported"),
        (np.array([2**64 - 1], dtype=np.uint64), "below 2\\*\\*63"),
        (pl.Series([[1], [2]]), "numbers, words or truth values"),
    ],
)
def test_what_is_no_cell_is_refused(column, message):
    column = columns_of(column.to_frame("x"), None)[0][0] if hasattr(column, "to_frame") else column
    with pytest.raises(InputError, match=message):
        CellColumn(np.empty(0)).encode(column, "x")


def test_words_do_not_become_numbers():
    with pytest.raises(InputError, match="column x holds words, and held numbers before"):
        CellColumn(np.array([1, 2])).encode(np.array(["1"]), "x")


def test_other_columns_are_refused(rng):
    placed = place(CellTable.empty(NAMES), people(rng, 5))
    with pytest.raises(InputError, match=r"X has 1 features, but .* is expecting 2 features"):
        placed.table.place([np.zeros(2), np.zeros(2)])
    with pytest.raises(InputError, match="is missing the columns 'job'"):
        columns_of(pd.DataFrame({"age": [1]}), ("age", "job"))
    with pytest.raises(InputError, match="got shape"):
        columns_of(np.zeros((2, 2, 2)), None)
