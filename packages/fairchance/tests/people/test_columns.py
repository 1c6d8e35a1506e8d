"""Columns of any kind become the same codes whatever frame they come in, and codes numbers."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from fairchance.errors import InputError
from fairchance.methods.storage import dumps, loads
from fairchance.people.columns import (
    Expansion,
    TableColumns,
    as_missing_values,
    looks_like_identifier,
    without_words,
)
from mixed_tables import KINDS, applicants

TYPED = {
    "job": st.sampled_from(["clerk", "nurse", "pilot", "?", "", "Ä"]) | st.none(),
    "flag": st.booleans() | st.none(),
    "day": st.dates(date(1950, 1, 1), date(2030, 1, 1)) | st.none(),
    "time": st.datetimes(datetime(1950, 1, 1), datetime(2030, 1, 1)) | st.none(),
    "length": st.timedeltas(timedelta(0), timedelta(days=900)) | st.none(),
    "number": st.floats(-1e6, 1e6) | st.none(),
    "whole": st.integers(-(2**40), 2**40),
}
ARROW = {
    "job": pa.string(),
    "flag": pa.bool_(),
    "day": pa.date32(),
    "time": pa.timestamp("us"),
    "length": pa.duration("us"),
    "number": pa.float64(),
    "whole": pa.int64(),
}


@st.composite
def tables(draw, least=6, most=40):
    n = draw(st.integers(least, most))
    return {name: draw(st.lists(one, min_size=n, max_size=n)) for name, one in TYPED.items()}


def every_kind(columns):
    """Return the same table in all kinds of frames, and of columns."""
    arrow = pa.table({name: pa.array(values, ARROW[name]) for name, values in columns.items()})
    coded = arrow["job"].combine_chunks().dictionary_encode()
    polars = pl.from_arrow(arrow)
    objects = {name: pd.Series(values, dtype=object) for name, values in columns.items()}
    return [
        arrow,
        arrow.set_column(0, "job", coded),
        polars,
        polars.with_columns(pl.col("job").cast(pl.Categorical)),
        polars.with_columns(pl.col("job").cast(pl.Enum(["nurse", "clerk", "pilot", "?", "", "Ä"]))),
        arrow.to_pandas(),
        arrow.to_pandas().assign(job=pd.Categorical(columns["job"])),
        arrow.to_pandas(types_mapper=pd.ArrowDtype),
        pd.DataFrame(objects),
    ]


@given(tables(), st.sampled_from([(), ("?",), ("?", 3.0)]))
@settings(max_examples=30)
def test_the_same_table_gives_the_same_matrix_whatever_its_kind(columns, words):
    first, *others = every_kind(columns)
    if all(value is None for values in columns.values() for value in values):
        return
    learned = TableColumns.of(first, words)
    codes = learned.codes(first)
    for frame in others:
        assert TableColumns.of(frame, words) == learned
        np.testing.assert_array_equal(learned.codes(frame), codes)


@given(tables(), st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_the_order_of_rows_does_not_matter(columns, random):
    frame = every_kind(columns)[0]
    order = list(range(len(frame)))
    random.shuffle(order)
    learned, mixed = TableColumns.of(frame), TableColumns.of(frame.take(order))
    assert learned == mixed
    np.testing.assert_array_equal(mixed.codes(frame.take(order)), learned.codes(frame)[order])


texts = st.lists(st.sampled_from([*"abcdefgh"]), min_size=20, max_size=60)


@given(texts, st.lists(st.sampled_from([*"abcdefghxyz"]), min_size=1, max_size=20))
def test_codes_and_their_expansion_are_those_of_scikit_learn(history, batch):
    often = sorted(text for text in set(history) if history.count(text) >= 5)
    assume(often)
    learned = TableColumns.of(pd.DataFrame({"t": history}))
    (column,) = learned.columns
    new = pd.DataFrame({"t": batch})
    assert column.categories == tuple(often)
    ordinal = OrdinalEncoder(
        categories=[often], handle_unknown="use_encoded_value", unknown_value=len(often)
    )
    codes = learned.codes(new)
    known = pd.DataFrame({"t": often})
    np.testing.assert_array_equal(codes, ordinal.fit(known).transform(new))
    one_hot = OneHotEncoder(
        min_frequency=5, handle_unknown="infrequent_if_exist", sparse_output=False
    )
    expected = one_hot.fit(pd.DataFrame({"t": history})).transform(new)
    expansion = learned.expansion(allow_missing=False)
    np.testing.assert_array_equal(expansion.numbers(codes), expected)


numbers = st.lists(
    st.tuples(st.floats(-99, 99) | st.just(np.nan), st.floats(-9, 9)), min_size=5, max_size=30
)


@given(numbers, numbers)
def test_missing_numbers_become_medians_as_in_scikit_learn(history, batch):
    past, new = np.array([[1.0, 1.0], *history]), np.array(batch)
    learned = TableColumns.of(past)
    imputer = SimpleImputer(strategy="median", add_indicator=True).fit(past)
    expected = imputer.transform(new)
    if expected.shape[1] == 3:  # our indicators follow their own column
        expected = expected[:, [0, 2, 1]]
    found = learned.expansion(allow_missing=False).numbers(learned.codes(new))
    np.testing.assert_array_equal(found, expected)
    assert learned.expansion(allow_missing=True) is None


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_table_of_numbers_is_its_own_expansion(rng, dtype):
    X = rng.normal(size=(50, 3)).astype(dtype)
    for table in (X, pd.DataFrame(X), pl.DataFrame(X), pd.DataFrame(X, columns=[*"abc"])):
        learned = TableColumns.of(table)
        codes = learned.codes(table)
        assert learned.are_numbers
        assert codes.dtype == dtype
        assert codes.tobytes() == X.tobytes()
        assert learned.expansion(allow_missing=False).numbers(codes) is codes
    assert learned.codes(X) is X
    gaps = X.copy()
    gaps[3, 1] = np.nan
    filled = learned.expansion(allow_missing=False).numbers(gaps)
    assert filled.dtype == dtype
    assert filled[3, 1] == dtype(np.median(X[:, 1].astype(np.float64)))
    with_groups = np.hstack([gaps, gaps[:, :2]])
    assert np.isnan(learned.expansion(allow_missing=False).numbers(with_groups)[3, 4])


def test_further_columns_pass_an_expansion_unchanged():
    expansion = Expansion((2, 0), (None, 1.0), (True, False))
    found = expansion.numbers(np.array([[np.nan, np.nan, 7.0], [1.0, 2.0, 8.0]]))
    assert found.tolist() == [[0, 0, 1, 1, 7], [0, 1, 0, 2, 8]]
    assert expansion.owners.tolist() == [0, 0, 0, 1]


def test_columns_survive_being_saved(rng):
    frame, *_ = applicants(rng, 200)
    learned = TableColumns.of(frame, ("?",))
    again = loads(dumps(learned), holds=TableColumns)
    assert again == learned
    expansion = learned.expansion(allow_missing=False)
    assert loads(dumps(expansion), holds=Expansion) == expansion
    np.testing.assert_array_equal(again.codes(frame), learned.codes(frame))


@pytest.mark.parametrize("kind", KINDS)
def test_the_kinds_of_columns(rng, kind):
    frame, *_ = applicants(rng, 400, kind)
    learned = TableColumns.of(frame, ("?",))
    assert [column.kind for column in learned.columns] == [
        "category",
        "number",
        "flag",
        "date",
        "number",
        "left out",
    ]
    assert learned.columns[0].categories == ("clerk", "nurse", "pilot")
    assert learned.columns[0].others
    assert (learned.kept, learned.categorical) == ((0, 1, 2, 3, 4), (0,))
    assert learned.columns[5].why == "identifier"
    unnamed = TableColumns.of(frame).columns[0]
    assert unnamed.categories == ("?", "clerk", "nurse", "pilot")
    assert unnamed.missing == 0


def test_a_word_is_missing_only_if_it_is_named():
    numbers = ["3", "?", "4.5", "?", "1e3", "7", "8"]
    frame = pd.DataFrame({"n": numbers, "m": [1, -1, 3, 4, -1, 6, 7], "z": ["a"] * 5 + ["?", "b"]})
    named = TableColumns.of(frame, ("?", -1))
    assert [column.kind for column in named.columns] == ["number", "number", "category"]
    codes = named.codes(frame)
    np.testing.assert_array_equal(codes[:, 0], [3, np.nan, 4.5, np.nan, 1000, 7, 8])
    np.testing.assert_array_equal(codes[:, 1], [1, np.nan, 3, 4, np.nan, 6, 7])
    np.testing.assert_array_equal(codes[:, 2], [0] * 5 + [np.nan, 1])
    later = pd.DataFrame({"n": [1.5], "m": [True], "z": [None]})  # as numbers, without the word
    np.testing.assert_array_equal(named.codes(later), [[1.5, 1, np.nan]])
    assert TableColumns.of(frame).columns[0].kind == "left out"  # text, all rare
    array = np.array([[1.0, -1.0], [2.0, 0.0]])
    assert np.isnan(TableColumns.of(array, (-1,)).codes(array)[0, 1])
    cleaned = without_words(frame, ("?", -1))
    assert cleaned.isna().to_numpy().sum() == 5
    assert without_words(frame, ()) is frame


@pytest.mark.parametrize("wrong", [True, [None], {"a": 1}, [date(2020, 1, 1)]])
def test_words_are_text_or_numbers(wrong):
    with pytest.raises(InputError, match="missing_values"):
        as_missing_values(wrong)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([Decimal("1.5"), None, 2], [1.5, np.nan, 2]),
        ([True, None, False], [1, np.nan, 0]),
        ([date(1970, 1, 3), None, datetime(1970, 1, 2, 12)], [2, np.nan, 1.5]),
        ([timedelta(hours=12), None, timedelta(2)], [0.5, np.nan, 2]),
    ],
)
def test_python_objects_are_read_by_their_types(values, expected):
    frame = pd.DataFrame({"x": pd.Series(values, dtype=object)})
    learned = TableColumns.of(frame)
    codes = learned.codes(frame)[:, 0] + learned.columns[0].origin
    np.testing.assert_array_equal(codes, expected)


def test_categories_that_are_numbers_have_the_same_names_with_and_without_gaps():
    learned = TableColumns.of(pd.DataFrame({"c": pd.Categorical([1, 2] * 5)}))
    assert learned.columns[0].categories == ("1", "2")
    gaps = pd.DataFrame({"c": pd.Categorical([2, None, 1])})
    np.testing.assert_array_equal(learned.codes(gaps)[:, 0], [1, np.nan, 0])


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pl.DataFrame({"x": [[1], [2]]}), r"'x'.*List\(Int64\)"),
        (pl.DataFrame({"x": [{"a": 1}]}), r"'x'.*Struct"),
        (pd.DataFrame({"x": [{"a": 1}, None]}), r"'x'.*\{'a': 1\}"),
        (pd.DataFrame({"x": ["a", 1]}), r"'x'.*1.*'a'"),
        (pd.DataFrame({"x": [None, None]}), "'x'"),
        (pd.DataFrame(index=range(3)), "X"),
    ],
)
def test_tables_that_cannot_be_read(frame, message):
    with pytest.raises(InputError, match=message):
        TableColumns.of(frame)


@pytest.mark.parametrize(
    ("history", "batch", "message"),
    [
        ([1.0, 2.0], ["a", "b"], "'x'.*numbers.*text.*'a'"),
        (["a"] * 5, [1, 2], "'x'.*text.*numbers"),
        (["a"] * 5, [True, False], "'x'.*text.*truth values"),
        ([date(2020, 1, 1)] * 2, ["2020-01-01"], "'x'.*dates.*text"),
        ([1.0], [date(2020, 1, 1)], "'x'.*numbers.*dates.*'2020-01-01'"),
    ],
)
def test_a_column_keeps_its_kind(history, batch, message):
    learned = TableColumns.of(pd.DataFrame({"x": history}))
    with pytest.raises(InputError, match=message):
        learned.codes(pd.DataFrame({"x": batch}))
    empty = pl.DataFrame({"x": [None, None]})  # has no kind
    assert np.isnan(learned.codes(empty)).all()


def test_an_array_instead_of_a_table_with_text(rng):
    frame, *_ = applicants(rng, 100)
    with pytest.raises(InputError, match=r"X.*'job'"):
        TableColumns.of(frame).codes(np.zeros((2, 6)))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([f"p{i}" for i in range(20)], True),
        ([f"p{i}" for i in range(19)], False),
        ([f"p{i}" for i in range(20)] + ["p1"], False),
        ([f"p{i}" for i in range(20)] + [None, None], True),
        (range(100, 200), True),
        (np.arange(100.0) * 3, False),
        (np.arange(100) / 2, False),
        (np.random.default_rng(0).permutation(40) + 2**40, True),
        ([True, False] * 20, False),
    ],
)
def test_what_looks_like_an_identifier(values, expected):
    assert looks_like_identifier(values) is expected


def test_values_for_limits(rng):
    frame, *_ = applicants(rng, 300)
    learned = TableColumns.of(frame, ("?",), own_code=[("job", "astronaut")])
    assert learned.columns[0].categories == ("astronaut", "clerk", "nurse", "pilot")
    assert learned.code("job", "nurse") == 2
    median = frame["since"].median().floor("D")
    assert learned.code("since", median) == 0
    assert learned.code("since", str(median.date())) == learned.code(3, median.date()) == 0
    assert (learned.code("owner", True), learned.code("age", 3)) == (1.0, 3.0)
    assert (learned.find("income"), learned.find(4)) == (4, 4)
    for call, message in (
        (lambda: learned.code("job", "baker"), "'job'.*'baker'"),
        (lambda: learned.code("since", "soon"), "'since'.*'soon'"),
        (lambda: learned.code("age", "old"), "'age'.*'old'"),
        (lambda: learned.find("name"), "'name'"),
        (
            lambda: learned.find("sex"),
            "'sex'.*'job', 'ag",
        ),
        (lambda: learned.find(6), "0 to 5, got 6"),
        (lambda: learned.find("job", ordered=True), "'job'.*OneOf"),
        (lambda: TableColumns.of(np.eye(3)).find("a"), "'a'"),
    ):
        with pytest.raises(InputError, match=message):
            call()
