"""csv files: bytes to tables and back, with one sentence for anything wrong with the bytes.

A file may have semicolons, tabs or bars between its values, if its first line has no comma. Then
numbers may have decimal commas, if that is certain: ``1,5`` is, ``1,500`` alone may be 1500.

Spreadsheets run cells that begin with ``= + - @`` (or a full-width form), a tab or a carriage
return, and some begin a new cell at a semicolon or a line end inside quotes. In csv output such
text gets an apostrophe in front of the sign, and reading removes it again: of one or more
apostrophes there, exactly one. So a file that is written and read again holds the same text;
numbers are never changed.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from fairchance.core.sizes import MOST_HEADER
from fairchance.errors import InputError
from fairchance.extras import arrow
from fairchance.people.plain import NUMBER

__all__ = ["csv_bytes", "first_line", "marked", "read_csv", "with_commas"]

_SIGNS = "[=+\\-@\t\r\uff0b\uff0d\uff1d\uff20]"
_RISKY = rf"(^|[;\r\n])('*{_SIGNS})"  # where an apostrophe is put in between
_MARKED = rf"(^|[;\r\n])'('*{_SIGNS})"
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


def first_line(error: Exception) -> str:
    """Return the first sentence of an error's message."""
    lines = str(error).splitlines() or [type(error).__name__]
    return lines[0].split(". ")[0].rstrip(".")


def read_csv(content: bytes, name: str, text: tuple[str, ...]) -> Any:
    """Return the table of bytes that ``with_commas`` returned.

    ``text`` names columns that stay text, and ``name`` is used in messages.
    """
    table = _parsed(content, name, (*text, *(f"'{column}" for column in text)))
    names = [re.sub(_MARKED, r"\1\2", column) for column in table.column_names]
    return _without_marks(table.rename_columns(names))


def _parsed(content: bytes, name: str, text: Iterable[str], separator: str = ",") -> Any:
    reading, pa = arrow("csv"), arrow()
    ragged: list[Any] = []

    def on_ragged(row: Any) -> str:
        ragged.append(row)
        return "error"

    # One block, so that types follow from the whole file and a field may have any length.
    options = reading.ReadOptions(block_size=len(content) + 1, use_threads=False)
    parse = reading.ParseOptions(
        delimiter=separator, newlines_in_values=True, invalid_row_handler=on_ragged
    )
    # NA, null and so on mean a missing number only in columns of numbers.
    kinds = dict.fromkeys(text, pa.string())
    convert = reading.ConvertOptions(column_types=kinds, strings_can_be_null=False)
    try:
        return reading.read_csv(io.BytesIO(content), options, parse, convert)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise _unreadable(content, name, ragged, error, separator) from error


def with_commas(content: bytes, name: str, text: Collection[str] = ()) -> bytes:
    """Return csv with commas between values and points in numbers; raise if it is not csv.

    Columns of ``text`` hold no numbers.
    """
    content = _checked(content, name)
    header = re.split(rb"[\r\n]", content[: MOST_HEADER + 1], maxsplit=1)[0]
    if len(header) > MOST_HEADER:
        raise InputError(
            f"{name} has a first line of more than {MOST_HEADER:,} bytes; it must hold the column "
            f"names."
        )
    bare = re.sub('"[^"]*"', "", header.decode("utf-8"))
    found = [] if "," in bare else [mark for mark in _SEPARATORS if mark in bare]
    if len(found) > 1:
        raise InputError(
            f"{name} has no commas between its column names, and both "
            f"{' and '.join(_SEPARATORS[mark] for mark in found)}; write it with commas."
        )
    if not found:
        return content
    names = next(csv.reader([header.decode("utf-8")], delimiter=found[0]))
    table = _parsed(content, name, names, found[0])
    columns = dict(zip(range(table.num_columns), table.columns, strict=True))
    chosen = {at: column for at, column in columns.items() if table.column_names[at] not in text}
    columns |= _with_points(chosen, table.column_names, name)
    return _written([*columns.values()], table.column_names)


def _with_points(columns: dict[int, Any], names: list[str], source: str) -> dict[int, Any]:
    """Return the columns of numbers with decimal commas, with points instead.

    A mark is a decimal one if it cannot stand before thousands in some number of the file. Raise
    if no number tells, or if the file has both marks.
    """
    compute = arrow("compute")
    found: dict[str, list[int]] = {",": [], ".": []}
    sure: set[str] = set()
    shown: dict[str, str] = {}
    for at, column in columns.items():
        words = compute.utf8_trim_whitespace(column)
        n_words = compute.sum(compute.not_equal(words, "")).as_py() or 0
        words = words.filter(compute.match_substring_regex(words, r"\d"))
        if 2 * len(words) < n_words:
            continue  # it is text
        for mark, places in found.items():
            number = rf"^[+-]?(\d+[{mark}]?\d*|[{mark}]\d+)([eE][+-]?\d+)?$"
            with_mark = words.filter(compute.match_substring(words, mark))
            if not (
                len(with_mark) and compute.all(compute.match_substring_regex(words, number)).as_py()
            ):
                continue
            places.append(at)
            shown.setdefault(mark, f"{with_mark[0].as_py()!r} in {names[at]!r}")
            thousands = compute.match_substring_regex(
                with_mark, rf"^[+-]?[1-9]\d?\d?[{mark}]\d{{3}}$"
            )
            sure |= set() if compute.all(thousands).as_py() else {mark}
    used = [mark for mark, places in found.items() if places]
    if len(used) > 1 or set(used) - sure:
        raise InputError(
            f"{source} has {' and '.join(shown[mark] for mark in used)}; write all numbers as "
            f"1234.5, and commas between values."
        )
    return {at: compute.replace_substring(columns[at], ",", ".") for at in found[","]}


def _checked(content: bytes, name: str) -> bytes:
    """Return csv without the byte order mark; raise if the bytes are not utf-8 text."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        content.decode("utf-8")
        at = content.find(b"\0")  # spreadsheets, parquet, archives and utf-16 hold NUL
    except UnicodeDecodeError as error:
        at = error.start
    if at >= 0:
        line = 1 + (content.count(b"\n", 0, at) or content.count(b"\r", 0, at))
        raise InputError(
            f"{name} is not a csv file in utf-8: line {line} holds the byte "
            f"0x{content[at : at + 1].hex()}; save it as csv in utf-8."
        )
    return content if content.endswith((b"\n", b"\r")) else content + b"\n"


def _unreadable(
    content: bytes, name: str, ragged: list[Any], error: Exception, separator: str
) -> InputError:
    if ragged:
        got, wanted = ragged[0].actual_columns, ragged[0].expected_columns
        line = _first_line_without(wanted, content, separator)
        return InputError(
            f"{name} has {wanted} column {'name' if wanted == 1 else 'names'} and in line {line} "
            f"values for {got}; a {separator!r} inside a value needs quotes around it, in pairs."
        )
    return InputError(f"{name} cannot be read as csv ({first_line(error)}); write the file again.")


def _first_line_without(wanted: int, content: bytes, separator: str) -> int:
    """Return the line on which the first row begins that has more or fewer values."""
    before = csv.field_size_limit(len(content) + 1)
    try:
        text = io.StringIO(content.decode("utf-8"), newline="")
        rows, line = csv.reader(text, delimiter=separator), 1
        for row in rows:
            if row and len(row) != wanted:
                break
            line = rows.line_num + 1
    finally:
        csv.field_size_limit(before)
    return line


def _without_marks(table: Any) -> Any:
    """Remove the apostrophes that writing puts in front, and turn empty text into missing."""
    pa, compute = arrow(), arrow("compute")
    columns = table.columns
    for at, column in enumerate(columns):
        if pa.types.is_string(column.type):
            plain = compute.replace_substring_regex(column, _MARKED, r"\1\2")
            columns[at] = compute.if_else(
                compute.equal(plain, ""), pa.scalar(None, pa.string()), plain
            )
    return pa.Table.from_arrays(columns, table.column_names)


def marked(text: str) -> str:
    """Return a cell of text with an apostrophe wherever a spreadsheet would begin a formula.

    Examples
    --------
    >>> marked("=2+3"), marked("a;=2+3"), marked("-5")
    ("'=2+3", "a;'=2+3", '-5')
    """
    return text if re.match(NUMBER, text) else re.sub(_RISKY, r"\1'\2", text)


def csv_bytes(table: Any, numbers: Iterable[str] = ()) -> bytes:
    """Return a table as csv in which a spreadsheet finds nothing to run.

    ``numbers`` names columns of text in which numbers such as -5 stay as they are.
    """
    pa, compute, plain = arrow(), arrow("compute"), set(numbers)
    names, columns = table.column_names, table.columns
    for at, column in enumerate(columns):
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)  # noqa: PLW2901
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            safe = compute.replace_substring_regex(column, _RISKY, r"\1'\2")
            if names[at] in plain:
                number = compute.match_substring_regex(column, NUMBER)
                safe = compute.if_else(number, column, safe)
            column = safe  # noqa: PLW2901
        columns[at] = column
    names = compute.replace_substring_regex(
        pa.array(names, pa.string()), _RISKY, r"\1'\2"
    ).to_pylist()
    return _written(columns, names)


def _written(columns: Sequence[Any], names: Sequence[str]) -> bytes:
    """Return columns as csv."""
    sink = io.BytesIO()
    # In one piece: for an empty one, pyarrow before 24 writes the lines before it again.
    table = arrow().Table.from_arrays(columns, names).combine_chunks()
    arrow("csv").write_csv(table, sink)
    return sink.getvalue()
