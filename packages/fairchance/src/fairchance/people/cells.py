"""What the cells of a table of applicants say: numbers, dates, truth values and groups.

Files and the tables of engines are read alike. Columns are Arrow columns of plain types
(``plain.py``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.errors import InputError
from fairchance.extras import arrow
from fairchance.people.plain import NUMBER
from fairchance.words import shortened

__all__ = [
    "DATE",
    "FORMATTED",
    "TRUTH_VALUES",
    "as_dates",
    "as_numbers",
    "decision_words",
    "group_levels",
    "group_values",
    "missing_words",
    "recoded",
    "rows_where",
    "stated",
    "trimmed",
    "truth_values",
    "without_missing",
]

FORMATTED = r"^\s*[+-]?[$€£]?\s?\d[\d.,'  ]*\s?[$€£%]?\s*$"
DATE = r"^\s*\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?\s*$"
_TRUE = ("1", "true", "yes", "y", "accept", "accepted", "approve", "approved")
_FALSE = ("0", "false", "no", "n", "reject", "rejected", "decline", "declined")
_UNSAID = ["undisclosed", "not disclosed", "not provided", "not specified", "declined to state"]
_UNSAID += ["prefer not to say", "prefer not to answer", "prefer not to disclose"]
TRUTH_VALUES = ", ".join(f"{yes} or {no}" for yes, no in zip(_TRUE, _FALSE, strict=True))


def without_missing(column: Any, words: Collection[str]) -> Any:
    """Return a column in which some values are missing: text without white space, or numbers.

    Examples
    --------
    >>> import pyarrow as pa
    >>> without_missing(pa.chunked_array([["a", " ? "]]), ["?"]).to_pylist()
    ['a', None]
    >>> without_missing(pa.chunked_array([[20, -999]]), ["?", "-999"]).to_pylist()
    [20, None]
    """
    pa, compute = arrow(), arrow("compute")
    if not words:
        return column
    if pa.types.is_string(column.type):
        gone = compute.is_in(compute.utf8_trim_whitespace(column), pa.array(list(words)))
    elif pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        numbers = [float(word) for word in words if re.match(NUMBER, word)]
        gone = compute.is_in(column.cast(pa.float64(), safe=False), pa.array(numbers, pa.float64()))
    else:
        return column
    return compute.if_else(gone, pa.scalar(None, column.type), column)


def missing_words() -> list[str]:
    """Return the words for a missing value in columns of numbers in csv files: NA, null, …."""
    words: list[str] = arrow("csv").ConvertOptions().null_values
    return words


def as_numbers(column: Any) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return a column as numbers, NaN if missing, and the rows that hold something else."""
    pa, compute = arrow(), arrow("compute")
    kind, strange = column.type, np.empty(0, np.int64)
    if pa.types.is_string(kind):
        words = compute.utf8_trim_whitespace(without_missing(column, missing_words()))
        lower = compute.utf8_lower(words)
        for word, number in (("true", "1"), ("false", "0")):
            words = compute.if_else(compute.equal(lower, word), number, words)
        plain = compute.fill_null(compute.match_substring_regex(words, NUMBER), True)
        strange = rows_where(compute.invert(plain))
        known = compute.if_else(plain, words, pa.scalar(None, pa.string()))
        column = compute.utf8_ltrim(known, "+").cast(pa.float64())
    elif pa.types.is_boolean(kind):
        column = column.cast(pa.int8()).cast(pa.float64())
    elif pa.types.is_floating(kind) or pa.types.is_integer(kind):
        column = column.cast(pa.float64(), safe=False)
    else:
        strange = rows_where(column.is_valid())
        column = pa.chunked_array([pa.nulls(len(column), pa.float64())])
    values: NDArray[np.float64] = column.to_numpy(zero_copy_only=False)
    return values, strange


def as_dates(column: Any) -> tuple[Any, NDArray[np.int64]]:
    """Return a column as dates, and the rows that hold something else.

    Examples
    --------
    >>> import pyarrow as pa
    >>> dates, strange = as_dates(pa.chunked_array([["1970-01-02", "soon", "1970-02-30", None]]))
    >>> dates.cast(pa.date32()).to_pylist(), strange.tolist()
    ([datetime.date(1970, 1, 2), None, None, None], [1, 2])
    """
    pa = arrow()
    kind, missing = column.type, np.empty(0, np.int64)
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return column, missing
    empty = pa.chunked_array([pa.nulls(len(column), pa.timestamp("ms"))])
    if not pa.types.is_string(kind):
        return empty, rows_where(column.is_valid())
    coded = without_missing(column, missing_words()).combine_chunks().dictionary_encode()
    dates = [_date(text) for text in coded.dictionary.to_pylist()]
    read = pa.array(dates, pa.timestamp("ms")).take(coded.indices)
    strange = arrow("compute").and_(coded.is_valid(), read.is_null())
    return pa.chunked_array([read]), rows_where(strange)


def _date(text: str) -> datetime | None:
    if not re.match(DATE, text):
        return None
    try:
        read = datetime.fromisoformat(text.strip())
    except ValueError:  # the 30th of February
        return None
    return read if read.tzinfo is None else read.astimezone(UTC).replace(tzinfo=None)


def trimmed(table: Any, name: str) -> Any:
    r"""Return a table without white space around the text of a column, such as ids.

    Examples
    --------
    >>> import pyarrow as pa
    >>> trimmed(pa.table({"id": [" a1", "a2\t", None]}), "id")["id"].to_pylist()
    ['a1', 'a2', None]
    """
    text = arrow("compute").utf8_trim_whitespace(table[name])
    return table.set_column(table.column_names.index(name), name, text)


def stated(column: Any) -> Any:
    """Return a column of groups in which one word says that an applicant states none.

    Examples
    --------
    >>> import pyarrow as pa
    >>> stated(pa.chunked_array([["f", None, "Prefer not to say", "Not Stated"]])).to_pylist()
    ['f', 'not stated', 'not stated', 'not stated']
    """
    from fairchance.core.groups import NOT_STATED  # noqa: PLC0415 - slow to import

    pa, compute = arrow(), arrow("compute")
    word = compute.utf8_lower(compute.utf8_trim_whitespace(column))
    unsaid = compute.is_in(word, pa.array([NOT_STATED, *_UNSAID]))
    return compute.if_else(unsaid, NOT_STATED, column).fill_null(NOT_STATED)


def group_values(column: Any, values: NDArray[Any]) -> NDArray[Any]:
    """Return a column of text as values of a group, in their type; new ones may be among them.

    Examples
    --------
    >>> import pyarrow as pa
    >>> group_values(pa.chunked_array([["1", "3", "2.0"]]), np.array([1, 2])).tolist()
    [1, 3, 2]
    """
    level = group_levels(column, values)
    found = values[level].astype(object)
    kind = type(values.tolist()[0])
    for row in np.flatnonzero(level < 0).tolist():
        text = column[row].as_py()
        if kind is not str and not _is_like(text, kind):
            raise InputError(
                f"the group {shortened(text)} is not like those of the history, such as "
                f"{values.tolist()[0]!r}; map it to one that is."
            )
        found[row] = text if kind is str else kind(float(text))
    return found


def _is_like(text: str, kind: type) -> bool:
    try:
        return bool(kind(float(text)) == float(text))
    except (ValueError, OverflowError):
        return False


def group_levels(column: Any, values: NDArray[Any]) -> NDArray[np.int64]:
    """Return the index of each text of a column among the values of a group, −1 if it has none.

    Examples
    --------
    >>> import pyarrow as pa
    >>> group_levels(pa.chunked_array([["True", "false", "no"]]), np.array([False, True])).tolist()
    [1, 0, -1]
    """
    place_of: dict[str, int] = {}
    for place, value in enumerate(values.tolist()):
        place_of[str(value)] = place
        if isinstance(value, bool):  # other programs write true and TRUE
            place_of |= {str(value).lower(): place, str(value).upper(): place}
        elif isinstance(value, int | float) and float(value).is_integer():
            place_of |= {str(int(value)): place, str(float(value)): place}
    compute, words = arrow("compute"), arrow().array(list(place_of))
    at = compute.fill_null(compute.index_in(column, words), len(place_of))
    places = np.array([*place_of.values(), -1], np.int64)
    levels: NDArray[np.int64] = places[at.to_numpy(zero_copy_only=False)]
    return levels


def truth_values(
    column: Any, decisions: Mapping[str, Iterable[str]] | None = None
) -> NDArray[np.str_]:
    """Return "yes" or "no" for each of ``TRUTH_VALUES``, "" if it is empty, else "?".

    ``decisions`` are further words for ``"accepted"`` (yes) and ``"rejected"`` (no).

    Examples
    --------
    >>> import pyarrow as pa
    >>> truth_values(pa.chunked_array([["Y", "n", "TRUE", "0.0", None, "t"]])).tolist()
    ['yes', 'no', 'yes', 'no', '', '?']
    >>> column = pa.chunked_array([["Funded", "n/a", "approved"]])
    >>> truth_values(column, {"accepted": ["funded"], "rejected": ["N/A"]}).tolist()
    ['yes', 'no', 'yes']
    """
    meaning = dict.fromkeys(_TRUE, "yes") | dict.fromkeys(_FALSE, "no")
    for decision, truth in (("accepted", "yes"), ("rejected", "no")):
        meaning |= {_plain(word): truth for word in (decisions or {}).get(decision, ())}
    return recoded(column, lambda value: meaning.get(_plain(value), "?"))


def decision_words(decisions: Mapping[str, Iterable[str]]) -> str:
    """Return the words for decisions as part of a sentence."""
    own = (f"{word!r} ({decision})" for decision, words in decisions.items() for word in words)
    return ", ".join((*own, TRUTH_VALUES))


def _plain(word: str) -> str:
    return word.strip().lower().removesuffix(".0")


def recoded(column: Any, read: Any) -> NDArray[np.str_]:
    """Return ``read`` of each value of a text column, called once for each distinct value."""
    coded = column.combine_chunks().dictionary_encode()
    words = np.array([*map(read, coded.dictionary.to_pylist()), ""], np.str_)
    places = arrow("compute").fill_null(coded.indices, len(words) - 1)
    recoded: NDArray[np.str_] = words[places.to_numpy(zero_copy_only=False)]
    return recoded


def rows_where(mask: Any) -> NDArray[np.int64]:
    """Return the rows in which an Arrow column is true."""
    return np.flatnonzero(mask.to_numpy(zero_copy_only=False))
