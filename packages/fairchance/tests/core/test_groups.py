"""Several protected attributes: how columns are read as groups."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairchance.core.groups import Attributes
from fairchance.errors import InputError

SEX = np.array(["f", "m", "f", "m", "f", "m", "m", "f"])
AGE = np.array([40, 40, 20, 20, 40, 40, 20, 20])
COLUMNS = {"sex": SEX, "age": AGE}


def table(kind, columns):
    if kind == "objects":
        return np.array(list(zip(*columns.values(), strict=True)), dtype=object)
    if kind == "rows":
        return [list(map(str, row)) for row in zip(*columns.values(), strict=True)]
    makers = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
    return makers[kind](columns)


KINDS = ["pandas", "polars", "pyarrow", "objects", "rows"]


# Reading.


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_gives_the_same_groups(kind):
    attributes, codes = Attributes.of(table(kind, COLUMNS), 8)
    assert attributes.labels.tolist() == ["f, 20", "f, 40", "m, 20", "m, 40"]
    assert attributes.labels[codes].tolist() == [f"{s}, {a}" for s, a in zip(SEX, AGE, strict=True)]
    assert attributes.partitions == ((0, 0, 1, 1), (0, 1, 0, 1))
    backwards = {name: values[::-1] for name, values in COLUMNS.items()}
    assert attributes.read(table(kind, backwards), 8)[1].tolist() == codes[::-1].tolist()
    named = kind in ("pandas", "polars", "pyarrow")
    assert attributes.titles == (("sex", "age") if named else ("attribute 0", "attribute 1"))


people_of_three = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from([1, 2]), st.sampled_from("xyz")),
    min_size=1,
    max_size=25,
)


@given(past=people_of_three, new=people_of_three)
def test_codes_against_a_dictionary(past, new):
    attributes, codes = Attributes.of(np.array(past, dtype=object), len(past))
    order = sorted(set(past))
    assert codes.tolist() == [order.index(one) for one in past]
    for position, (values, level_of) in enumerate(
        zip(attributes.values, attributes.level_of, strict=True)
    ):
        assert [values[level] for level in level_of] == [one[position] for one in order]
    strange = [one for one in new if one not in order]
    if strange:
        label = ", ".join(map(str, strange[0]))
        with pytest.raises(InputError, match=f"'{label}'"):
            attributes.read(np.array(new, dtype=object), len(new))
    more, read = attributes.read(np.array(new, dtype=object), len(new), extend=True)
    columns = zip(more.values, more.level_of, strict=True)
    named = list(zip(*(values[level] for values, level in columns), strict=True))
    assert [named[code] for code in read] == new
    assert named[: len(order)] == order
    assert sorted(named) == sorted({*past, *new})


def test_one_column_keeps_its_values():
    for values in (SEX, list(SEX), SEX[:, None], pd.Series(SEX), pd.DataFrame({"sex": SEX})):
        attributes, codes = Attributes.of(values, 8)
        assert attributes.labels.tolist() == ["f", "m"]
        assert codes.tolist() == (SEX == "m").astype(int).tolist()
    assert Attributes.of(AGE, 8)[0].labels.tolist() == [20, 40]  # numbers stay numbers
    assert Attributes.of(pd.Series(SEX, name="sex"), 8)[0].titles == ("sex",)


def test_labels_tell_groups_apart_whatever_the_values_hold():
    rows = [["a", "b, c"], ["a, b", "c"]]
    attributes, _ = Attributes.of(rows, 2)
    assert attributes.labels.tolist() == ["'a', 'b, c'", "'a, b', 'c'"]


@pytest.mark.parametrize(
    ("given_later", "words"),
    [
        (table("pandas", {"age": AGE, "sex": SEX}), "'sex', 'age', got 'age', "),
        (SEX, "'sex', 'age', got 1 column"),
        (np.column_stack([SEX, AGE, AGE]), "got 3 columns"),
        (np.column_stack([SEX, AGE])[:5], r"got shape \(5, 2\)"),
        (pd.DataFrame([SEX, SEX]).T.set_axis(["sex", "sex"], axis=1), "sensitive_features"),
    ],
)
def test_other_columns_are_refused(given_later, words):
    attributes, _ = Attributes.of(table("pandas", COLUMNS), 8)
    with pytest.raises(InputError, match=words):
        attributes.read(given_later, 8)


def test_values_that_cannot_be_groups_are_refused():
    with pytest.raises(InputError, match="sensitive_features"):
        Attributes.of(pl.DataFrame({"sex": ["f", None], "age": [1, 2]}), 2)
    with pytest.raises(InputError, match="sensitive_features"):
        Attributes.of(np.array([["f", 1], ["m", "old"]], dtype=object), 2)
    many = Attributes.of(np.arange(20), 20)[0]
    assert many.listed().endswith("10, 11 and 8 more")
