"""csv files: bytes to tables and back, with one sentence for anything wrong with the bytes.

Spreadsheets run cells that begin with ``= + - @``, a tab or a carriage return. In csv output such
a cell of text gets an apostrophe in front, and reading removes it again: of one or more
apostrophes before one of these characters, exactly one. So a file that is written and read again
holds the same text; numbers are never changed.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from typing import Any

from secondlook.errors import InputError

__all__ = ["NUMBER", "arrow", "csv_bytes", "first_line", "read_csv"]

NUMBER = r"^\s*[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|(?i:inf|infinity))\s*$"
_RISKY = r"^'*[=+\-@\t\r]"  # cells that get an apostrophe
_MARKED = r"^'('*[=+\-@\t\r])"


def arrow(module: str = "") -> Any:
    """Return pyarrow or one of its modules, imported when it is first needed."""
    from secondlook.lab.datasets.reading import pyarrow  # noqa: PLC0415 - an extra

    return pyarrow(module)


def first_line(error: Exception) -> str:
    """Return the first sentence of an error's message."""
    lines = str(error).splitlines() or [type(error).__name__]
    return lines[0].split(". ")[0].rstrip(".")


def read_csv(content: bytes, name: str, text: tuple[str, ...]) -> Any:
    """Return a table; ``text`` names columns that stay text, ``name`` is used in messages."""
    content = _checked(content, name)
    _check_separator(content, name)
    reading, pa = arrow("csv"), arrow()
    ragged: list[Any] = []

    def on_ragged(row: Any) -> str:
        ragged.append(row)
        return "error"

    # One block, so that types follow from the whole file and a field may have any length.
    options = reading.ReadOptions(block_size=len(content) + 1, use_threads=False)
    parse = reading.ParseOptions(newlines_in_values=True, invalid_row_handler=on_ragged)
    # NA, null and so on mean a missing number only in columns of numbers.
    kinds = dict.fromkeys((*text, *(f"'{column}" for column in text)), pa.string())
    convert = reading.ConvertOptions(column_types=kinds, strings_can_be_null=False)
    try:
        table = reading.read_csv(io.BytesIO(content), options, parse, convert)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise _unreadable(content, name, ragged, error) from error
    names = [re.sub(_MARKED, r"\1", column) for column in table.column_names]
    return _without_marks(table.rename_columns(names))


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
            f"0x{content[at : at + 1].hex()}; save it as csv in utf-8 (.parquet files need that "
            f"ending)."
        )
    return content if content.endswith((b"\n", b"\r")) else content + b"\n"


def _unreadable(content: bytes, name: str, ragged: list[Any], error: Exception) -> InputError:
    if ragged:
        got, wanted = ragged[0].actual_columns, ragged[0].expected_columns
        line = _first_line_without(wanted, content)
        return InputError(
            f"{name} has {wanted} column {'name' if wanted == 1 else 'names'} and in line {line} "
            f"values for {got}; a comma inside a value needs quotes around it, and a quote needs "
            f"another to close it, so correct that line."
        )
    return InputError(f"{name} cannot be read as csv ({first_line(error)}); write the file again.")


def _first_line_without(wanted: int, content: bytes) -> int:
    """Return the line on which the first row begins that has more or fewer values."""
    before = csv.field_size_limit(len(content) + 1)
    try:
        rows, line = csv.reader(io.StringIO(content.decode("utf-8"), newline="")), 1
        for row in rows:
            if row and len(row) != wanted:
                break
            line = rows.line_num + 1
    finally:
        csv.field_size_limit(before)
    return line


def _check_separator(content: bytes, name: str) -> None:
    header = re.split(rb"[\r\n]", content, maxsplit=1)[0]
    for mark, word in ((b";", "semicolons"), (b"\t", "tabs"), (b"|", "bars")):
        if mark in header and b"," not in header:
            raise InputError(
                f"{name} has {word} between its values and a csv file must have commas; save it "
                f"with commas, and numbers with decimal points."
            )


def _without_marks(table: Any) -> Any:
    """Remove the apostrophes that writing puts in front, and turn empty text into missing."""
    pa, compute = arrow(), arrow("compute")
    for at, column in enumerate(table.columns):
        if pa.types.is_string(column.type):
            plain = compute.replace_substring_regex(column, _MARKED, r"\1")
            text = compute.if_else(compute.equal(plain, ""), pa.scalar(None, pa.string()), plain)
            table = table.set_column(at, table.column_names[at], text)
    return table


def csv_bytes(table: Any, numbers: Iterable[str] = ()) -> bytes:
    """Return a table as csv in which a spreadsheet finds nothing to run.

    ``numbers`` names columns of text in which numbers such as -5 stay as they are.
    """
    pa, compute, plain = arrow(), arrow("compute"), set(numbers)
    for at, column in enumerate(table.columns):
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)  # noqa: PLW2901
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            risky = compute.match_substring_regex(column, _RISKY)
            if table.column_names[at] in plain:
                number = compute.match_substring_regex(column, NUMBER)
                risky = compute.and_not(risky, number)
            marked = compute.binary_join_element_wise(pa.scalar("'"), column, "")
            column = compute.if_else(risky, marked, column)  # noqa: PLW2901
        table = table.set_column(at, table.column_names[at], column)
    names = compute.replace_substring_regex(
        pa.array(table.column_names, pa.string()), f"({_RISKY})", r"'\1"
    ).to_pylist()
    sink = io.BytesIO()
    arrow("csv").write_csv(table.rename_columns(names), sink)
    return sink.getvalue()
