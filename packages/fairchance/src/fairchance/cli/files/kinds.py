"""What the columns of a file hold: numbers, truth values, dates or text.

A column of numbers may be written as text with a few words in it; the rows with words are refused
later. Truth values are true and false, dates have the form 2031-01-31, with or without a time, and
everything else is text. In csv, so are whole numbers of which one has leading zeros.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairchance.errors import InputError
from fairchance.extras import arrow
from fairchance.people.cells import (
    DATE,
    FORMATTED,
    as_dates,
    as_numbers,
    missing_words,
    without_missing,
)
from fairchance.people.plain import NUMBER
from fairchance.words import percent, shortened
from fairchance.words.columns import left_out_words

if TYPE_CHECKING:
    from fairchance.people.features import FeatureColumns

__all__ = ["FoundColumn", "find_columns", "is_measure", "with_codes_as_text"]

# Dates that are not read, as 31/08/2031, 8-31-31, 31.8.2031, 2031/08/31 or 31-Aug-2031.
_OTHER_DATE = (
    r"^\s*(\d{1,2}([./-])\d{1,2}[./-](\d{4}|\d\d)|\d{4}[./]\d{1,2}[./]\d{1,2}"
    r"|\d{1,2}[ -][A-Za-z]{3,9}[ -](\d{4}|\d\d))([T ]\d\d?:\d\d.*)?\s*$"
)
_DAY_NUMBER = r"^(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(\.0)?$"  # 20310831
_CODE = r"^\s*0\d+\s*$"  # a postcode
_TRUTH = r"(?i)^\s*(true|false)\s*$"
_SHOWN_VALUES = 3  # of a column of text
_ID_NAME = re.compile(r"(^|[^a-z])(id|uuid|key|no|num|number|ref|reference)$|nr$", re.IGNORECASE)
_ENOUGH = 20  # applicants, so that all differ hardly by chance
_MOST_GROUPS = 20  # different numbers, each a group


@dataclass(frozen=True)
class FoundColumn:
    """A column of a history, as ``init`` describes it.

    Attributes
    ----------
    name, kind
        Its name, and what it holds: number, true/false, date or text; empty if it is left out.
    values
        Its range, or its most frequent values.
    missing
        How many applicants have no value.
    left_out
        Why decisions do not use it: ``"empty"``, ``"identifier"``, ``"unreadable"``, ``"unlisted"``
        if the user listed others, or as long as the user has not named its role, ``"protected"``
        or ``"applied"``; empty if they do.
    word
        A word that may mean that the value is missing.
    repeats
        Whether applicants share values of a column that is left out.
    """

    name: str
    kind: str
    values: str
    missing: int
    left_out: str = ""
    word: str = ""
    repeats: bool = False

    @property
    def is_open(self) -> bool:
        """Whether the user has to say what it is."""
        return self.left_out in ("protected", "applied")


def find_columns(
    table: Any,
    features: Iterable[str],
    *,
    chosen: Collection[str] = (),
    texts: Collection[str] = (),
    missing: Collection[str] = (),
    source: str = "the table",
) -> tuple[FeatureColumns, list[FoundColumn]]:
    """Return the columns of a history that decisions use, and a description of all.

    A column is left out if it is empty, if its values have no kind of ours, or if it looks like an
    identifier: text of which no classifier keeps a value, since too few applicants share it, or
    different whole numbers that are nearly consecutive. In a column with a name such as loan_id or
    customer_no, it is enough that most values differ. So is one that looks protected, or like the
    time of the application, by its name or because it holds dates in any form, unless it is chosen.
    A column of text holds numbers if at least half of its values are numbers; the rows with words
    are refused later. Numbers with separators raise an error, because refusing those rows would
    keep only the numbers below 1000.

    Parameters
    ----------
    table
        The history.
    features
        The columns that decisions may use.
    chosen
        Columns named by the user: numbers among them are used even if they look like identifiers,
        and a column that cannot be used is an error.
    texts
        Columns that are text whatever they look like; one of which nothing can be learned is an
        error.
    missing
        Values that mean that there is none.
    source
        Name of the table in messages.
    """
    from fairchance.people.features import FeatureColumns  # noqa: PLC0415 - slow to import

    found = []
    for name in features:
        values = without_missing(table[name], missing)
        is_time = name not in chosen and _are_written_dates(values, "text")
        column = _found(values, name, name in texts or is_time, source)
        if not column.left_out and name not in chosen:
            column = replace(column, left_out=_open_role(values, column))
        elif column.left_out and name in (*chosen, *texts):
            if column.kind == "number" or (name in texts and not _why_left_out(values, "", "text")):
                column = replace(column, left_out="")
            elif name in texts:
                raise InputError(
                    f"[columns] text has {name!r}, and too few applicants of {source} share a "
                    f"value of it to learn from; write numbers as 1234.5 and remove it there, or "
                    f"name it in ignore."
                )
            elif not column.kind:
                raise InputError(
                    f"the feature {name!r} of {source} {left_out_words(column.left_out)}; leave it "
                    f"out of the features."
                )
        found.append(column)
    used = [column for column in found if not column.left_out]
    if not used:
        why = ", ".join(f"{one.name!r} {left_out_words(one.left_out)}" for one in found)
        raise InputError(f"no column of {source} can be used as a feature: {why}; add a column.")
    names, words, dates = (
        tuple(column.name for column in used if kind in (None, column.kind))
        for kind in (None, "text", "date")
    )
    return FeatureColumns(names, words, "<f8", dates), found


def _found(column: Any, name: str, is_text: bool, source: str) -> FoundColumn:
    pa = arrow()
    kind = column.type
    if pa.types.is_null(kind) or column.null_count == len(column):
        return FoundColumn(name, "", "", len(column), "empty")
    if pa.types.is_boolean(kind):
        found = "true/false"
    elif pa.types.is_floating(kind) or pa.types.is_integer(kind):
        found = "number"
    elif pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        found = "date"
    elif pa.types.is_string(kind):
        found = "text" if is_text else _kind_of_text(column, name, source)
    else:
        return FoundColumn(name, "", "", column.null_count, "unreadable")
    n_missing, values = _described(column, found)
    left_out, word = _why_left_out(column, name, found), _word_for_missing(column, found)
    there = column.drop_null()
    repeats = bool(left_out) and len(there.unique()) < len(there)
    return FoundColumn(name, found, values, n_missing, left_out, word, repeats)


def _open_role(values: Any, column: FoundColumn) -> str:
    from fairchance.people.columns import role_by_looks  # noqa: PLC0415 - slow

    distinct = values.drop_null().unique()
    if _are_written_dates(distinct, column.kind):
        return "protected" if role_by_looks(column.name, "date") == "protected" else "applied"
    return role_by_looks(
        column.name, column.kind, distinct.to_pylist() if column.kind == "text" else ()
    )


def _are_written_dates(distinct: Any, kind: str) -> bool:
    """Return whether the values of a column of text or numbers are dates in another form."""
    pa, compute = arrow(), arrow("compute")
    if kind == "number" and len(distinct) >= _ENOUGH:
        if pa.types.is_floating(distinct.type):
            distinct = compute.round(distinct).cast(pa.int64(), safe=False)
        words, pattern = distinct.cast(pa.string()), _DAY_NUMBER
    elif kind == "text" and pa.types.is_string(distinct.type):
        words, pattern = without_missing(distinct, missing_words()).drop_null(), _OTHER_DATE
    else:
        return False
    return len(words) > 0 and compute.all(compute.match_substring_regex(words, pattern)).as_py()


def is_measure(column: Any) -> bool:
    """Return whether a column has so many numbers or dates that none can be a group.

    Examples
    --------
    >>> import pyarrow as pa
    >>> ages = pa.chunked_array([[str(age) for age in range(18, 75)]])
    >>> is_measure(ages), is_measure(pa.chunked_array([["1", "2", "not stated"]]))
    (True, False)
    """
    pa, compute = arrow(), arrow("compute")
    distinct = column.drop_null().unique()
    if not pa.types.is_string(distinct.type):
        return len(distinct) > _MOST_GROUPS
    found = compute.match_substring_regex(distinct, f"{NUMBER}|{DATE}|{_OTHER_DATE}")
    return (compute.sum(found).as_py() or 0) > _MOST_GROUPS


def _kind_of_text(column: Any, name: str, source: str) -> str:
    compute = arrow("compute")
    words = without_missing(column, missing_words()).drop_null()
    if not len(words):
        return "text"
    if compute.any(compute.match_substring_regex(words, _CODE)).as_py():
        return "text"
    for kind, pattern in (("true/false", _TRUTH), ("date", DATE)):
        if compute.all(compute.match_substring_regex(words, pattern)).as_py():
            return kind
    plain = compute.match_substring_regex(words, NUMBER)
    formatted = words.filter(
        compute.and_not(compute.match_substring_regex(words, FORMATTED), plain)
    )
    n_plain = compute.sum(plain).as_py() or 0
    if 2 * (n_plain + len(formatted)) < len(words):
        return "text"
    if len(formatted):
        raise InputError(
            f"the feature {name!r} of {source} holds numbers with separators or units, such as "
            f"{shortened(formatted[0].as_py())}; write numbers as 1234.5 and dates as 2031-01-31."
        )
    return "number"


def _described(column: Any, kind: str) -> tuple[int, str]:
    """Return how many values are missing, and a few words about the others."""
    compute = arrow("compute")
    if kind == "text":
        counts = compute.value_counts(column.drop_null()).to_pylist()
        counts.sort(key=lambda row: (-row["counts"], row["values"]))
        shown = [row["values"] for row in counts[:_SHOWN_VALUES]]
        listed = ", ".join(value if len(value) <= 20 else f"{value[:20]}…" for value in shown)
        more = ", …" if len(counts) > _SHOWN_VALUES else ""
        return column.null_count, f"{len(counts):,}: {listed}{more}"
    if kind == "date":
        dates, strange = as_dates(column)
        ends = compute.min_max(dates.cast(arrow().timestamp("s"), safe=False)).as_py()
        if ends["min"] is None:
            return dates.null_count - strange.size, ""
        return dates.null_count - strange.size, f"{ends['min'].date()} to {ends['max'].date()}"
    values, strange = as_numbers(column)
    n_missing, there = int(np.isnan(values).sum()) - strange.size, values[np.isfinite(values)]
    if not there.size:
        return n_missing, ""
    low, high = f"{there.min():,.6g}", f"{there.max():,.6g}"
    text = f"true: {percent(there.mean())}" if kind == "true/false" else f"{low} to {high}"
    return n_missing, text


def _word_for_missing(column: Any, kind: str) -> str:
    """Return a word that may mean missing: a frequent one among numbers, ? or NA among text."""
    if not arrow().types.is_string(column.type):
        return ""
    words = Counter(column.to_pylist())
    if kind == "text":
        return next((word for word in ("?", *missing_words()) if word in words), "")
    strange = column.take(arrow().array(as_numbers(column)[1])).unique().to_pylist()
    often = [word for word in strange if kind == "number" and words[word] > 1]
    return max(often, key=lambda word: words[word], default="")


def _why_left_out(column: Any, name: str, kind: str) -> str:
    """Return why a column cannot be meant as a feature: it looks like an identifier."""
    from fairchance.people.columns import SEVERAL, looks_like_identifier  # noqa: PLC0415 - slow

    compute = arrow("compute")
    n, n_distinct = len(column) - column.null_count, compute.count_distinct(column).as_py()
    # A customer who applies again has the same number again.
    named = n >= _ENOUGH and 2 * n_distinct > n and _ID_NAME.search(name)
    if kind == "text":
        counts = compute.value_counts(column.drop_null()).field("counts")
        return "identifier" if named or compute.max(counts).as_py() < SEVERAL else ""
    if kind != "number":
        return ""
    values = as_numbers(column)[0]
    there = values[np.isfinite(values)]
    whole = bool(np.all(there == np.floor(there)))
    if (named and whole) or (n_distinct == n and looks_like_identifier(there)):
        return "identifier"
    return ""


def with_codes_as_text(table: Any, as_written: Callable[[], Any]) -> Any:
    """Return a table in which whole numbers with leading zeros, such as postcodes, are text.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table, written = pa.table({"zip": [807, 12]}), pa.table({"zip": ["00807", "12"]})
    >>> with_codes_as_text(table, lambda: written)["zip"].to_pylist()
    ['00807', '12']
    """
    pa, compute = arrow(), arrow("compute")
    whole = [name for name in table.column_names if pa.types.is_integer(table[name].type)]
    written = as_written() if whole else table
    for name in whole:
        column = written[name]
        if not pa.types.is_string(column.type):  # parquet has types of its own
            continue
        if compute.any(compute.match_substring_regex(column, _CODE)).as_py():
            table = table.set_column(table.column_names.index(name), name, column)
    return table
