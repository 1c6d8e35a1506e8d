"""Cells: placing applicants from any kind of table; η_w and σ against their definitions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairchance.errors import InputError
from fairchance_lab.finite import CellCounts, cells, eta, sigma
from fairchance_lab.finite.cells import CellColumn, CellTable, columns_of

NAMES = ("age", "job")
GROUPS = np.array(["a", "b"])


def applicants(rng, n):
    features = {
        "age": rng.integers(20, 25, n),
        "job": rng.choice(["baker", "cook", "smith"], n),
    }
    return features, rng.integers(2, size=n)


def place(features, group, table=None):
    table = CellTable.empty(NAMES, GROUPS) if table is None else table
    return table.place(list(features.values()), group)


def rows_of(features, group):
    columns = [*(column.tolist() for column in features.values()), GROUPS[group].tolist()]
    return list(zip(*columns, strict=True))


def contents(table, cell):
    """Return features and group of each applicant as the table of cells has them."""
    return [
        (*x, z)
        for x, z in zip(table.X[cell].tolist(), table.groups[table.group[cell]], strict=True)
    ]


def test_cell_is_a_row_of_features_in_a_group(rng):
    features, group = applicants(rng, 300)
    placed = place(features, group)
    rows = rows_of(features, group)
    assert contents(placed.table, placed.cell) == rows
    assert len(placed.table) == len(set(rows))
    assert placed.heads.tolist() == np.bincount(placed.cell).tolist()


def test_cells_keep_their_numbers_when_new_cells_come(rng):
    first = place(*applicants(rng, 20))
    features, group = applicants(rng, 400)
    features["age"] = rng.integers(18, 30, 400)
    second = place(features, group, first.table)
    n = len(first.table)
    assert len(second.table) > n
    assert contents(second.table, second.cell) == rows_of(features, group)
    assert contents(second.table, np.arange(n)) == contents(first.table, np.arange(n))
    assert len(first.table) == n  # placing a batch does not change the table


def test_order_of_rows_does_not_matter(rng):
    features, group = applicants(rng, 200)
    order = rng.permutation(200)
    placed = place(features, group)
    shuffled = {name: column[order] for name, column in features.items()}
    other = place(shuffled, group[order])
    assert np.array_equal(other.cell, placed.cell[order])
    assert np.array_equal(other.table.codes, placed.table.codes)


def test_keys_of_many_combinations_are_compacted(rng, monkeypatch):
    first, second = applicants(rng, 30), applicants(rng, 300)
    expected = place(*second, place(*first).table)
    monkeypatch.setattr(cells, "_MAX_KEY", 20)
    compacted = place(*second, place(*first).table)
    assert np.array_equal(compacted.cell, expected.cell)
    assert np.array_equal(compacted.table.codes, expected.table.codes)


def test_selected_cells_lose_values_that_no_cell_has(rng):
    placed = place(*applicants(rng, 300))
    kept = placed.table.X[:, 1] != "cook"
    selected = placed.table.select(kept)
    assert contents(selected, np.arange(len(selected))) == contents(
        placed.table, np.flatnonzero(kept)
    )
    assert "cook" not in selected.columns[1].values


def test_every_kind_of_frame_gives_the_same_cells(rng):
    features, group = applicants(rng, 100)
    features["age"] = rng.choice([0.5, 1.0, 2.5], 100)
    placed = place(features, group)
    frames = [
        pd.DataFrame(features),
        pd.DataFrame(features).astype({"job": "category"}),
        pl.DataFrame(features),
        pl.DataFrame(features).cast({"job": pl.Categorical}),
        pa.table(features),
    ]
    for frame in frames:
        columns, names, _ = columns_of(frame, None)
        other = CellTable.empty(NAMES, GROUPS).place(columns, group)
        assert names == NAMES
        assert np.array_equal(other.cell, placed.cell)
        assert contents(other.table, other.cell) == contents(placed.table, placed.cell)


@pytest.mark.parametrize(
    "values",
    [
        [3, 1, 3, -7],
        [True, False, True, True],
        [10**12, 5, -(10**15), 5],
        [0.25, 1.0, 0.25, -3.0],
        [1e300, 2.0, 1e300, -1e300],
        ["x", "yy", "x", "zzz"],
    ],
)
def test_columns_of_numbers_and_strings(values):
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


def test_integers_equal_floats():
    _, known = CellColumn(np.empty(0)).encode(np.array([1, 2]), "x")
    codes, extended = known.encode(np.array([2.0, 1.0, 1.5]), "x")
    assert codes.tolist() == [1, 0, 2]
    assert extended.values.tolist() == [1, 2, 1.5]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (np.array([1.0, np.nan]), "column x .* 1 rows"),
        (np.array([1.0, np.inf]), "column x .* 1 rows"),
        (np.array([None, "a"], dtype=object), "column x .* 1 rows"),
        (pl.Series([1, None]), "column x .* 1 rows"),
        (pl.Series(["a", None]), "column x .* 1 rows"),
        (np.array([1j]), "Complex data not supported"),
        (pl.Series([[1], [2]]), "column x"),
    ],
)
def test_missing_values_and_other_types_are_refused(column, message):
    column = columns_of(column.to_frame("x"), None)[0][0] if hasattr(column, "to_frame") else column
    with pytest.raises(InputError, match=message):
        CellColumn(np.empty(0)).encode(column, "x")


def test_numbers_cannot_become_strings():
    with pytest.raises(InputError, match="column x"):
        CellColumn(np.array([1, 2])).encode(np.array(["1"]), "x")


def test_other_columns_are_refused(rng):
    placed = place(*applicants(rng, 5))
    with pytest.raises(InputError, match=r" 1 .* 2 "):
        placed.table.place([np.zeros(2)], np.zeros(2, int))
    with pytest.raises(InputError, match="'job'"):
        columns_of(pd.DataFrame({"age": [1]}), ("age", "job"))
    with pytest.raises(InputError, match=r"\(2, 2, 2\)"):
        columns_of(np.zeros((2, 2, 2)), None)


# η_w and σ.

N_CELLS = 4

# An applicant: the cell, and the outcome or None if it was not observed.
applicant = st.tuples(st.integers(0, N_CELLS - 1), st.sampled_from((None, 0, 1)))


def counts_of(people):
    def heads(cells):
        return np.bincount(np.array(cells, dtype=int), minlength=N_CELLS)

    return CellCounts(
        heads([cell for cell, _ in people]),
        heads([cell for cell, outcome in people if outcome == 1]),
        heads([cell for cell, outcome in people if outcome == 0]),
    )


def eta_by_definition(people, exploit, y):
    """Three factors, cell by cell, in fractions, divided by the sum over cells and outcomes."""

    def product(cell, outcome):
        observed = [o for c, o in people if c == cell and o is not None]
        if not exploit[cell] or not observed:
            return Fraction(0)
        applied = Fraction(sum(c == cell for c, _ in people), len(people))
        return applied * Fraction(observed.count(outcome), len(observed))

    total = sum(product(cell, outcome) for cell in range(N_CELLS) for outcome in (0, 1))
    return [float(product(cell, y) / total) if total else 0.0 for cell in range(N_CELLS)]


@given(
    people=st.lists(applicant, min_size=1, max_size=40),
    exploit=st.lists(st.booleans(), min_size=N_CELLS, max_size=N_CELLS),
)
@settings(max_examples=200)
def test_eta_is_its_definition(people, exploit):
    good, bad = eta(counts_of(people), np.array(exploit))
    assert good == pytest.approx(eta_by_definition(people, exploit, 1))
    assert bad == pytest.approx(eta_by_definition(people, exploit, 0))


@given(people=st.lists(applicant, min_size=1, max_size=40))
@settings(max_examples=50)
def test_without_weights_outcomes_are_counted(people):
    good, bad = eta(counts_of(people), np.ones(N_CELLS, bool), "none")
    observed = [pair for pair in people if pair[1] is not None]
    for cell in range(N_CELLS):
        assert good[cell] == pytest.approx(observed.count((cell, 1)) / max(len(observed), 1))
        assert bad[cell] == pytest.approx(observed.count((cell, 0)) / max(len(observed), 1))


def test_eta_corrects_for_unequal_observation():
    """A cell is observed eight times as often; η_w is right, the unweighted counts are not."""
    rng = np.random.default_rng(0)
    cell = rng.integers(2, size=200_000)
    good = rng.random(cell.size) < np.array([0.9, 0.3])[cell]
    observed = rng.random(cell.size) < np.array([0.8, 0.1])[cell]
    counts = CellCounts(
        np.bincount(cell), np.bincount(cell[observed & good]), np.bincount(cell[observed & ~good])
    )
    truth = np.array([0.45, 0.15])
    weighted, raw = (eta(counts, np.ones(2, bool), how)[0] for how in ("applicants", "none"))
    assert np.abs(weighted - truth).max() < 0.01
    assert np.abs(raw - truth).max() > 0.1


def test_good_share_of_cells_without_outcomes_is_pooled():
    counts = counts_of([(0, 1), (3, 0), (3, None)])
    assert counts.outcomes.tolist() == [1, 0, 0, 1]
    assert counts.good_share().tolist() == [1.0, 0.5, 0.5, 0.0]


def test_sigma_is_the_smallest_share():
    g, group = np.array([2.0, 1.0, 5.0, 2.0]), np.array(["a", "b", "a", "a"])
    assert sigma(g) == 0.1
    assert sigma(g, group, of="a") == 0.2
    with pytest.raises(InputError, match="'c'"):
        sigma(g, group, of="c")
    with pytest.raises(InputError):
        sigma([0.0, 0.0])
