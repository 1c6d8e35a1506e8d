"""How the columns of a table become numbers: learned from the history, and then fixed.

Every column of a table has a kind. Numbers and truth values (``flag``) stay what they are. Dates
and times become days since the history's median date, durations days. Text and categories become
**codes**: 0, 1, … for the values that at least five applicants of the history had, in the order of
the alphabet, and one further code for all others, so that no code belongs to a single applicant. A
missing value is NaN in every kind. A column that is empty, or whose values nearly all differ, as
names and identifiers do, is left out.

Learners that need numbers get an **expansion** of these codes: a column of 0 and 1 for each
category, the median of the history for a missing number, and a column that marks what is missing if
something was missing in the history. A table of numbers without missing values is its own
expansion.
"""

from __future__ import annotations

import datetime as dt
import decimal
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import OrdinalEncoder

from fairchance.core.saved import saved
from fairchance.errors import InputError
from fairchance.frames import CONVERT, floats, is_frame, is_missing, plain, two_kinds
from fairchance.people.cells import FORMATTED
from fairchance.people.plain import NUMBER
from fairchance.words.columns import left_out_words

__all__ = [
    "SEVERAL",
    "Expansion",
    "TableColumn",
    "TableColumns",
    "as_missing_values",
    "days",
    "looks_like_identifier",
    "role_by_looks",
    "without_words",
]

Floats = NDArray[np.floating]

SEVERAL = 5  # applicants with a value, from which on it belongs to none of them
_ENOUGH = 20  # applicants before a column is judged by its distinct values
_FILLED = 1.1  # numbers that count applicants leave few gaps
_DAY = np.timedelta64(1, "D") / np.timedelta64(1, "us")  # in microseconds
# What a column is by the words of its name, such as sex_code, maritalStatus or date_of_birth: one
# that the law may protect, or the time of the application.
_PROTECTED_NAMES = re.compile(
    r"age|birth|birth(date|day|year)|citizen(ship)?|disab(ility|led)|dob|ethnic(ity)?|foreign|gender"
    r"|marital|marriage|married|nationality|native|origin|pregnan(cy|t)|rac(e|ial)|religio(n|us)|sex"
    r"|veteran"
)
_TIME_NAMES = re.compile(r"date|datetime|timestamp")
_TIME_WHOLE_NAMES = re.compile(
    r"(applied|created|submitted)( at| on)?|application (month|time|year)"
)
# Words of values, by attribute: two values of a column must have one, and half of all.
_PROTECTED_VALUES = (
    re.compile(r"f|female|m|male|man|men|woman|women"),
    re.compile(r"african|asian|black|caucasian|hispanic|latin[ao]|white"),
    re.compile(r"divorced|married|separated|single|unmarried|widow(ed)?"),
    re.compile(r"atheist|buddhist|catholic|christian|hindu|jewish|muslim|protestant|sikh"),
)
_MOST_VALUES = 50  # a text with more is no protected attribute that values could tell
_WORDS = {
    "number": "numbers",
    "flag": "truth values",
    "date": "dates",
    "category": "text",
}
_SAME = {"number": ("number", "flag"), "flag": ("flag", "number")}  # kinds a batch may have
# The types of a column of Python objects, by kind; the first that fits all values.
_TYPES: tuple[tuple[str, Any], ...] = (
    ("category", str),
    ("flag", bool),
    ("number", (int, float, decimal.Decimal, np.number)),
    ("date", dt.date),  # which includes times
    ("number", dt.timedelta),
)


@saved
@dataclass(frozen=True)
class TableColumn:
    """A column of the history.

    Attributes
    ----------
    name
        Its name; its position if columns have none.
    kind
        ``"number"``, ``"flag"``, ``"date"``, ``"category"`` or ``"left out"``.
    why
        Why it is left out, ``"empty"`` or ``"identifier"``; empty otherwise.
    categories
        The values with a code of their own, sorted.
    others
        Whether the history had other values.
    median
        Median of its numbers, flags or dates.
    missing
        Share of the history's applicants without a value.
    origin
        Day since 1970 that dates are counted from, near their middle: large numbers that differ
        little are hard for many learners.
    """

    name: str | int
    kind: str
    why: str = ""
    categories: tuple[str, ...] = ()
    others: bool = False
    median: float | None = None
    missing: float = 0.0
    origin: float = 0.0

    @property
    def shortened(self) -> frozenset[str]:
        """Codes of the history without their leading zeros, as numbers are, if it has none such.

        Examples
        --------
        >>> TableColumn("zip", "category", categories=("01067", "20095", "x")).shortened
        frozenset({'1067'})
        """
        codes = {code for code in self.categories if code.isdecimal() and code[0] == "0"}
        return frozenset(code.lstrip("0") or "0" for code in codes) - {*self.categories}

    @property
    def written_numbers(self) -> tuple[str, ...]:
        """Values such as 4,500 or € 20, if most values of the column are numbers in writing.

        Examples
        --------
        >>> TableColumn("income", "category", categories=("4,500", "900", "5,250")).written_numbers
        ('4,500', '5,250')
        >>> TableColumn("zip", "category", categories=("01067", "20095")).written_numbers
        ()
        """
        numbers = [value for value in self.categories if re.match(FORMATTED, value)]
        written = tuple(value for value in numbers if not re.match(NUMBER, value))
        return written if 2 * len(numbers) > len(self.categories) else ()


@saved
@dataclass(frozen=True)
class Expansion:
    """Codes as numbers for a learner; see the module. Further columns of X stay as they are.

    Attributes
    ----------
    widths
        For each column, how many columns of 0 and 1 its codes become; 0 for numbers.
    fill
        What a missing number becomes; None if it stays missing.
    marked
        Whether a column that marks missing values follows.

    Examples
    --------
    >>> expansion = Expansion(widths=(2, 0), fill=(None, 5.0), marked=(False, True))
    >>> expansion.numbers(np.array([[0.0, 7.0], [1.0, np.nan], [2.0, 3.0]]))
    array([[1., 0., 7., 0.],
           [0., 1., 5., 1.],
           [0., 0., 3., 0.]])
    """

    widths: tuple[int, ...]
    fill: tuple[float | None, ...]
    marked: tuple[bool, ...]

    @property
    def owners(self) -> NDArray[np.intp]:
        """The column of the codes that each column of the numbers belongs to."""
        sizes = [(width or 1) + mark for width, mark in zip(self.widths, self.marked, strict=True)]
        return np.repeat(np.arange(len(sizes)), sizes)

    def numbers(self, X: Floats) -> Floats:
        """Return codes as numbers, without a copy if they are numbers already."""
        if not any(self.widths) and not any(self.marked):
            return self._filled(X)
        n, n_own = X.shape[0], len(self.widths)
        owners = self.owners
        numbers = np.zeros((n, owners.size + X.shape[1] - n_own), X.dtype)
        numbers[:, owners.size :] = X[:, n_own:]
        for at, (width, fill) in enumerate(zip(self.widths, self.fill, strict=True)):
            values, start = X[:, at], int(np.searchsorted(owners, at))
            missing = np.isnan(values)
            if width:
                rows = np.flatnonzero(values < width)  # NaN is not
                numbers[rows, start + values[rows].astype(np.intp)] = 1
            else:
                numbers[:, start] = values if fill is None else np.where(missing, fill, values)
            if self.marked[at]:
                numbers[:, start + (width or 1)] = missing
        return numbers

    def _filled(self, X: Floats) -> Floats:
        """Return numbers with medians for missing ones."""
        with np.errstate(invalid="ignore", over="ignore"):
            values = X.ravel()
            if not np.isnan(values @ values):  # one quick pass, no mask, in the usual case
                return X
        fill = np.full(X.shape[1], np.nan, X.dtype)
        fill[: len(self.fill)] = [np.nan if value is None else value for value in self.fill]
        return np.where(np.isnan(X), fill, X)


@saved
@dataclass(frozen=True)
class TableColumns:
    """The columns of the history, and how they are read from now on.

    Attributes
    ----------
    columns
        One for each column of the table.
    named
        Whether columns have names.
    missing_values
        Texts and numbers that mean that a value is missing.

    Examples
    --------
    >>> import pandas as pd
    >>> jobs = ["clerk", "nurse", "clerk", "?", "pilot"] * 5
    >>> table = pd.DataFrame({"job": jobs, "age": range(25), "name": [f"p{i}" for i in range(25)]})
    >>> columns = TableColumns.of(table, missing_values=("?",))
    >>> [(column.name, column.kind) for column in columns.columns]
    [('job', 'category'), ('age', 'number'), ('name', 'left out')]
    >>> columns.codes(table[:5])
    array([[ 0.,  0.],
           [ 1.,  1.],
           [ 0.,  2.],
           [nan,  3.],
           [ 2.,  4.]])
    """

    columns: tuple[TableColumn, ...]
    named: bool
    missing_values: tuple[Any, ...] = ()

    @staticmethod
    def of(
        X: Any,
        missing_values: tuple[Any, ...] = (),
        own_code: Iterable[tuple[str | int, Any]] = (),
    ) -> TableColumns:
        """Learn the columns of a history.

        ``own_code`` are columns with a value that gets a code of its own, however few applicants
        have it.
        """
        if isinstance(X, np.ndarray):
            found = [_of_numbers(at, "number", X[:, at]) for at in range(X.shape[1])]
            return TableColumns(_kept(found), False, missing_values)
        frame = nw.from_native(X, eager_only=True)
        named = all(isinstance(name, str) for name in frame.columns)
        found = []
        for at, series in enumerate(frame.iter_columns()):
            name = series.name if named else at
            kind, values, levels = _read(series, name, missing_values)
            if kind == "category":
                asked = {str(value) for column, value in own_code if column in (name, at)}
                found.append(_of_text(name, values, levels, asked))
            else:
                found.append(_of_numbers(name, kind, values))
        return TableColumns(_kept(found), named, missing_values)

    @property
    def kept(self) -> tuple[int, ...]:
        """Positions in the table of the columns that are not left out."""
        kinds = (column.kind for column in self.columns)
        return tuple(at for at, kind in enumerate(kinds) if kind != "left out")

    @property
    def categorical(self) -> tuple[int, ...]:
        """Positions among the kept columns of those that hold codes of categories."""
        kinds = [self.columns[at].kind for at in self.kept]
        return tuple(at for at, kind in enumerate(kinds) if kind == "category")

    @property
    def are_numbers(self) -> bool:
        """Whether the table is read as it is, without dates, text and columns left out."""
        return all(column.kind in ("number", "flag") for column in self.columns)

    def codes(self, X: Any) -> Floats:
        """Return a table as one matrix: numbers, days and codes, NaN for missing values.

        In single precision if all columns are.
        """
        kept = self.kept
        if isinstance(X, np.ndarray):
            return self._codes_of_array(X, kept)
        frame = nw.from_native(X, eager_only=True)
        all_series = list(frame.iter_columns())
        series = [all_series[at] for at in kept]
        single = all(one.dtype == nw.Float32 for one in series)
        matrix = np.empty((len(frame), len(kept)), np.float32 if single else np.float64)
        for position, (at, one) in enumerate(zip(kept, series, strict=True)):
            column = self.columns[at]
            kind, values, levels = _read(one, column.name, self.missing_values)
            matrix[:, position] = _as_in_history(column, kind, values, levels)
        return matrix

    def _codes_of_array(self, X: Floats, kept: tuple[int, ...]) -> Floats:
        others = [column for column in self.columns if column.kind in ("date", "category")]
        if others:
            raise InputError(
                f"X must be a dataframe with the column {others[0].name!r}, as in the history, "
                f"got an array."
            )
        if len(kept) < X.shape[1]:
            X = X[:, kept]
        words = _numbers_among(self.missing_values)
        return np.where(np.isin(X, words), X.dtype.type(np.nan), X) if words else X

    def expansion(self, *, allow_missing: bool) -> Expansion | None:
        """Return how codes become numbers for a learner; None if they always are."""
        columns = [self.columns[at] for at in self.kept]
        if allow_missing and not self.categorical:
            return None
        texts = [column.kind == "category" for column in columns]
        fills = [not text and not allow_missing for text in texts]
        return Expansion(
            tuple(len(column.categories) + column.others for column in columns),
            tuple(
                column.median if fill else None for column, fill in zip(columns, fills, strict=True)
            ),
            tuple(
                column.missing > 0 and (text or fill)
                for column, text, fill in zip(columns, texts, fills, strict=True)
            ),
        )

    def name_value(self, position: int, value: float) -> tuple[str, str | float | None]:
        """Return the name of a kept column, and what a code of it means; None if it is missing."""
        column = self.columns[self.kept[position]]
        name = column.name if isinstance(column.name, str) else f"x{column.name}"
        if np.isnan(value):
            return name, None
        if column.kind == "category":
            return name, (*column.categories, "another value")[int(value)]
        return name, float(value + column.origin)

    def find(self, column: str | int, *, ordered: bool = False) -> int:
        """Return the position of a column among those that are kept.

        ``ordered`` refuses text, whose codes have no order.
        """
        at = self._place(column)
        known = self.columns[at]
        if known.kind == "left out":
            raise InputError(
                f"the column {known.name!r} cannot limit exploration, since it "
                f"{left_out_words(known.why)}; name another."
            )
        if ordered and known.kind == "category":
            raise InputError(
                f"the column {known.name!r} holds text, which has no order and no sum; use OneOf."
            )
        return self.kept.index(at)

    def _place(self, column: str | int) -> int:
        """Return the position of a column in the table."""
        names = [known.name for known in self.columns]
        if isinstance(column, str):
            if not self.named:
                raise InputError(
                    f"the column {column!r} has no name in the array that fit got; give its "
                    f"position."
                )
            if column not in names:
                raise InputError(
                    f"there is no column {column!r}; name one of {', '.join(map(repr, names))}."
                )
            return names.index(column)
        if not 0 <= column < len(names):
            raise InputError(
                f"a column's position must be from 0 to {len(names) - 1}, got {column}."
            )
        return column

    def code(self, column: str | int, value: Any) -> float:
        """Return a value of a column as ``codes`` returns it."""
        known = self.columns[self._place(column)]
        if known.kind == "category":
            if str(value) not in known.categories:
                raise InputError(
                    f"the column {known.name!r} has no code for {value!r}, which fewer than "
                    f"{SEVERAL} applicants of the history had; fit again with the limit."
                )
            return float(known.categories.index(str(value)))
        if known.kind == "date":
            return _day_of(value, known.name) - known.origin
        try:
            return float(value)
        except (TypeError, ValueError):
            raise InputError(
                f"the column {known.name!r} holds {_WORDS[known.kind]}, got {value!r}; compare it "
                f"with a number."
            ) from None


def as_missing_values(missing_values: Any) -> tuple[Any, ...]:
    """Return the option ``missing_values`` as a tuple: a text or a number, or several.

    Examples
    --------
    >>> as_missing_values("?"), as_missing_values([-1, "unknown"]), as_missing_values(None)
    (('?',), (-1, 'unknown'), ())
    """
    if missing_values is None:
        return ()
    several = isinstance(missing_values, list | tuple | set | frozenset | np.ndarray)
    values = tuple(map(plain, missing_values if several else [missing_values]))
    for value in values:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise InputError(
                f"missing_values must be a text or a number, or a list of them, got {value!r}."
            )
    return values


def without_words(X: Any, words: tuple[Any, ...]) -> Any:
    """Return a table without the texts and numbers that mean that a value is missing."""
    if not words:
        return X
    numbers = _numbers_among(words)
    texts = [word for word in words if isinstance(word, str)]
    if not is_frame(X):
        array = np.asarray(X, np.float64)
        return np.where(np.isin(array, numbers), np.nan, array)
    frame = nw.from_native(X, eager_only=True)
    meant = {
        series.name: numbers if series.dtype.is_numeric() else texts
        for series in frame.iter_columns()
        if not series.dtype.is_temporal() and series.dtype != nw.Boolean
    }
    return nw.to_native(
        frame.with_columns(
            nw.when(~nw.col(name).is_in(values)).then(nw.col(name)).alias(name)
            for name, values in meant.items()
            if values
        )
    )


def looks_like_identifier(values: Any) -> bool:
    """Return whether a column names applicants: texts that all differ, or counted numbers.

    At least 20 values are needed to tell. Whole numbers look like identifiers if all differ and
    they fill most of the range between the least and the largest.

    Examples
    --------
    >>> looks_like_identifier(range(1000, 1100))
    True
    >>> looks_like_identifier([f"customer {number}" for number in range(50)])
    True
    >>> looks_like_identifier([18, 35, 35, 70] * 10)
    False
    """
    column = np.array(list(values), object)
    present = column[~is_missing(column)].tolist()
    if len(present) < _ENOUGH or len(set(present)) < len(present):
        return False
    if all(isinstance(value, str) for value in present):
        return True
    try:
        numbers = np.array(present, np.float64)
    except (TypeError, ValueError):
        return False
    whole = bool(np.all(numbers == np.floor(numbers)))
    return whole and float(np.ptp(numbers)) + 1 <= _FILLED * numbers.size


def role_by_looks(name: str, kind: str, values: Iterable[Any] = ()) -> str:
    """Return what a column looks like: ``"protected"``, ``"applied"`` (when), or empty.

    ``values`` are the different values of a text. Names count by their words, in any spelling.

    Examples
    --------
    >>> [role_by_looks(name, "number") for name in ("applicantAge", "SEX_CODE", "mortgage")]
    ['protected', 'protected', '']
    >>> role_by_looks("x3", "text", ["White", "Black or African American", "Other"])
    'protected'
    >>> role_by_looks("since", "date"), role_by_looks("application_date", "text")
    ('applied', 'applied')
    """
    words = _words_of(name)
    if any(map(_PROTECTED_NAMES.fullmatch, words)) or _are_protected(values):
        return "protected"
    is_time = any(map(_TIME_NAMES.fullmatch, words)) or _TIME_WHOLE_NAMES.fullmatch(" ".join(words))
    return "applied" if kind == "date" or is_time else ""


def _words_of(text: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", text)]


def _are_protected(values: Iterable[Any]) -> bool:
    of_value = [_words_of(str(value)) for value in values]
    if len(of_value) > _MOST_VALUES:
        return False
    return any(
        sum(any(map(known.fullmatch, words)) for words in of_value) >= max(2, len(of_value) / 2)
        for known in _PROTECTED_VALUES
    )


def _kept(columns: list[TableColumn]) -> tuple[TableColumn, ...]:
    if all(column.kind == "left out" for column in columns):
        why = "; ".join(f"{column.name!r} {left_out_words(column.why)}" for column in columns)
        raise InputError(f"X has no column to decide by: {why or 'it has none'}; add some.")
    return tuple(columns)


def _of_numbers(name: str | int, kind: str, values: Floats) -> TableColumn:
    gaps = np.isnan(values)
    present, missing = values[~gaps], float(gaps.sum() / max(1, gaps.size))
    if not present.size:
        return TableColumn(name, "left out", "empty", missing=missing)
    median = float(np.median(present))
    origin = float(np.floor(median)) if kind == "date" else 0.0
    return TableColumn(name, kind, median=median - origin, missing=missing, origin=origin)


def _of_text(name: str | int, index: Floats, levels: list[str], asked: set[str]) -> TableColumn:
    known = ~np.isnan(index)
    missing = float(np.isnan(index).mean())
    counts = np.bincount(index[known].astype(np.intp), minlength=len(levels)).tolist()
    often = {level for level, count in zip(levels, counts, strict=True) if count >= SEVERAL}
    if not often | asked:
        why = "identifier" if levels else "empty"
        return TableColumn(name, "left out", why, missing=missing)
    others = bool(set(levels) - often - asked)
    categories = tuple(sorted(often | asked))
    return TableColumn(name, "category", "", categories, others, missing=missing)


def _as_in_history(column: TableColumn, kind: str, values: Floats, levels: list[str]) -> Floats:
    """Return the values of a batch's column by the codes of the history."""
    if np.isnan(values).all():
        return values
    if kind == "category":
        of_level = _codes(levels, column.categories) if column.kind == kind else None
        if column.kind == "number":
            of_level = _parsed(levels)
        if of_level is not None:
            return _at(of_level, values)
    elif kind in _SAME.get(column.kind, (column.kind,)):
        return values if kind != "date" else values - column.origin
    present = values[~np.isnan(values)]
    first = levels[0] if kind == "category" else plain(present[0])
    if kind == "date":
        first = str(np.floor(present).astype("i8").astype("M8[D]")[0])
    raise InputError(
        f"the column {column.name!r} held {_WORDS[column.kind]} in the history and holds "
        f"{_WORDS[kind]} now, such as {first!r}; convert it."
    )


def _codes(levels: list[str], categories: tuple[str, ...]) -> Floats:
    """Return the code of each text; all that are no category share the last one."""
    known = np.array(categories, object)[:, None]
    encoder = OrdinalEncoder(
        categories=[known[:, 0]], handle_unknown="use_encoded_value", unknown_value=len(categories)
    )
    codes: Floats = encoder.fit(known).transform(np.array(levels, object)[:, None])[:, 0]
    return codes


def _at(of_level: Floats, index: Floats) -> Floats:
    """Return the number of each applicant's level, NaN for missing ones."""
    known = ~np.isnan(index)
    values = np.full(index.shape, np.nan)
    values[known] = of_level[index[known].astype(np.intp)]
    return values


def _parsed(levels: list[str]) -> Floats | None:
    """Return texts as numbers; None if one of them is not a number."""
    try:
        numbers = np.array([float(level) for level in levels])
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() else None


def _numbers_among(words: Iterable[Any]) -> list[float]:
    return [word for word in words if not isinstance(word, str)]


def _read(series: Any, name: str | int, words: tuple[Any, ...]) -> tuple[str, Floats, list[str]]:
    """Return the kind of a column and its values: numbers, days, or positions among its texts."""
    dtype = series.dtype
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        return _read_text(series, words)
    if dtype.is_numeric() or dtype == nw.Boolean:
        values: Floats = floats(series)
        kind = "flag" if dtype == nw.Boolean else "number"
    elif dtype in (nw.Date, nw.Datetime, nw.Duration):
        values = days(series.to_numpy())
        kind = "number" if dtype == nw.Duration else "date"
    elif dtype in (nw.Object, nw.Unknown):
        return _read_objects(series, name, words)
    else:
        raise InputError(
            f"the column {name!r} holds {dtype}; convert it to numbers, text, truth values or "
            f"dates, or leave it out."
        )
    numbers = _numbers_among(words)
    if numbers and kind == "number":
        values = np.where(np.isin(values, numbers), np.nan, values)
    return kind, values, []


def _read_text(series: Any, words: tuple[Any, ...]) -> tuple[str, Floats, list[str]]:
    found = series.drop_nulls().unique().to_list()
    values = [value for value in found if not _is_word(value, words)]
    levels = sorted({str(value) for value in values})
    if not levels:
        return "category", np.full(len(series), np.nan), []
    place = {level: float(at) for at, level in enumerate(levels)}
    places = [place[str(value)] for value in values]
    placed = series.replace_strict(values, places, default=None, return_dtype=nw.Float64)
    index = placed.to_numpy().astype(np.float64, copy=False)
    # A column of numbers may be text only because of the word for missing ones.
    numbers = _parsed(levels) if len(values) < len(found) else None
    return ("category", index, levels) if numbers is None else ("number", _at(numbers, index), [])


def _read_objects(
    series: Any, name: str | int, words: tuple[Any, ...]
) -> tuple[str, Floats, list[str]]:
    """Read a column without a type of its own, by the types of its values."""
    column = np.array([None, *series.to_list()], object)[1:]  # an array of objects, even of lists
    known = np.flatnonzero(~is_missing(column))
    known = known[[not _is_word(value, words) for value in column[known]]]
    present = column[known].tolist()
    kinds = (kind for kind, type_ in _TYPES if all(isinstance(value, type_) for value in present))
    kind = next(kinds, None)
    if kind is None:
        both = two_kinds(present)
        if both:
            raise InputError(f"the column {name!r} holds {both}; {CONVERT}.")
        others = [value for value in present if type(value) is not type(present[0])]
        raise InputError(
            f"the column {name!r} holds {' and '.join(map(repr, present[:1] + others[:1]))}; "
            f"convert it to numbers, text, truth values or dates, or leave it out."
        )
    values, levels = np.full(column.shape, np.nan), []
    if kind == "category":
        levels = sorted(set(present))
        place = {level: float(at) for at, level in enumerate(levels)}
        values[known] = [place[level] for level in present]
    elif kind == "date" or isinstance(present[0], dt.timedelta):
        values[known] = days(column[known])
    else:
        values[known] = np.array(present, np.float64)
    return kind, values, levels


def _is_word(value: Any, words: tuple[Any, ...]) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool) and value in words


def days(values: NDArray[Any]) -> Floats:
    """Return dates and times as days since 1970, durations as days, NaN for missing ones."""
    if values.dtype.kind == "O":
        known = ~is_missing(values)
        present = values[known].tolist()
        unit = "m8[us]" if present and isinstance(present[0], dt.timedelta) else "M8[us]"
        units: NDArray[Any] = np.full(values.shape, "NaT", unit)
        units[known] = np.array(present, unit)
    else:
        units = values.astype("M8[us]" if values.dtype.kind == "M" else "m8[us]")
    return np.where(np.isnat(units), np.nan, units.astype(np.int64) / _DAY)


def _day_of(value: Any, name: str | int) -> float:
    try:
        return float(days(np.array([value], "M8[us]"))[0])
    except (TypeError, ValueError):
        raise InputError(
            f"the column {name!r} holds dates, got {value!r}; compare it with a date such as "
            f"'2024-12-31'."
        ) from None
