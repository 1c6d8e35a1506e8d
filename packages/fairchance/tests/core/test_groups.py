"""Several protected attributes: how columns are read as groups, and what is counted for each."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairchance.core.groups import Attributes
from fairchance.core.metrics import by_group
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


# Metrics.


@given(
    people=st.lists(
        st.tuples(
            st.sampled_from("ab"),
            st.sampled_from("xyz"),
            st.booleans(),
            st.sampled_from([0.0, 1.0, math.nan]),
        ),
        min_size=1,
        max_size=20,
    ),
    attributes=st.sampled_from(["crossed", "side_by_side"]),
)
def test_tables_by_group_against_brute_force(people, attributes):
    frame = pd.DataFrame({"one": [p[0] for p in people], "two": [p[1] for p in people]})
    accepted, outcome = [p[2] for p in people], [p[3] for p in people]
    rows = by_group(accepted, frame, outcome, attributes=attributes)
    if attributes == "crossed":
        keys = [("one, two", f"{a}, {b}", (a, b)) for a, b in sorted({p[:2] for p in people})]
        members = [[p for p in people if p[:2] == both] for _, _, both in keys]
    else:
        keys = [("one", a) for a in sorted({p[0] for p in people})]
        keys += [("two", b) for b in sorted({p[1] for p in people})]
        members = [[p for p in people if p[title == "two"] == value] for title, value in keys]
    assert [(row.attribute, row.group) for row in rows] == [key[:2] for key in keys]
    for row, mine in zip(rows, members, strict=True):
        taken = [p for p in mine if p[2]]
        known = [p for p in taken if not math.isnan(p[3])]
        good = [p for p in mine if p[3] == 1]
        unknown = any(math.isnan(p[3]) for p in mine)
        assert (row.n_people, row.n_accepted) == (len(mine), len(taken))
        assert row.selection_rate == pytest.approx(len(taken) / len(mine))
        for rate, these in (
            (row.true_positive_rate, good),
            (row.false_positive_rate, [p for p in mine if p[3] == 0]),
        ):
            found = sum(p[2] for p in these) / len(these) if these and not unknown else math.nan
            assert rate == pytest.approx(found, nan_ok=True)
        left = [p[3] for p in mine if not p[2]]  # a sum with NaN is NaN
        assert row.false_omission_rate == pytest.approx(
            sum(left) / len(left) if left else math.nan, nan_ok=True
        )
        bad = sum(p[3] == 0 for p in known) / len(known) if known else math.nan
        assert row.false_discovery_rate == pytest.approx(bad, nan_ok=True)


def test_rates_of_several_columns():
    accepted = [1, 1, 0, 0, 0, 1, 1, 1]
    rows = by_group(accepted, table("polars", COLUMNS))
    assert {row.group: row.selection_rate for row in rows} == {
        "f, 20": 0.5,
        "f, 40": 0.5,
        "m, 20": 0.5,
        "m, 40": 1.0,
    }
    with pytest.raises(InputError, match=r"attributes.*'x'"):
        by_group(accepted, SEX, attributes="x")
    with pytest.raises(InputError, match=r"outcomes.*got 2"):
        by_group(accepted, SEX, [2] * 8)
    assert math.isnan(by_group(accepted, SEX)[0].false_discovery_rate)
