"""csv: bytes to tables and back, with one sentence for whatever is wrong with the bytes.

Spreadsheets run cells that begin with ``= + - @``, a tab or a carriage return. In csv output such
a cell of text gets an apostrophe in front, and reading takes it off again: of one or more
apostrophes before one of these characters, exactly one. What is written is therefore read back as
it was; numbers are never touched.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from typing import Any

from secondlook.errors import InputError

NUMBER = r"^\s*[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|(?i:inf|infinity))\s*$"
_MARKED = r"^'*[=+\-@\t\r]"  # what gets an apostrophe
_UNMARK = r"^'('*[=+\-@\t\r])"
# What files begin with that are often called csv and are none, what they are, and what to do.
_OTHER_FILES = {
    b"PK\x03\x04": ("a zip archive, as spreadsheets are", "save it as csv from there"),
    b"PAR1": ("parquet", "give it a name that ends in .parquet"),
    b"\x1f\x8b": ("compressed with gzip", "unpack it"),
}
_LOOKED_AT = 200  # bytes by which utf-16 without a mark is known


def arrow(module: str = "") -> Any:
    """Return pyarrow or a module of it; it is imported when it is first needed."""
    from secondlook.lab.datasets.reading import pyarrow  # noqa: PLC0415 - an extra

    return pyarrow(module)


def first_line(error: Exception) -> str:
    """Return the first sentence of what an error says."""
    lines = str(error).splitlines() or [type(error).__name__]
    return lines[0].split(". ")[0].rstrip(".")


def read_csv(content: bytes, name: str, text: tuple[str, ...]) -> Any:
    """Return a table; ``text`` names columns that stay text, ``name`` is what messages call it."""
    content = _checked(content, name)
    _check_separator(content, name)
    reading, pa = arrow("csv"), arrow()
    ragged: list[Any] = []

    def on_ragged(row: Any) -> str:
        ragged.append(row)
        return "error"

    # One block: types follow from the whole file, and a field may be as long as it likes.
    options = reading.ReadOptions(block_size=len(content) + 1, use_threads=False)
    parse = reading.ParseOptions(newlines_in_values=True, invalid_row_handler=on_ragged)
    # Only csv's own words for a number that is not there make one missing; text is taken as it is.
    kinds = dict.fromkeys((*text, *(f"'{one}" for one in text)), pa.string())
    convert = reading.ConvertOptions(column_types=kinds, strings_can_be_null=False)
    try:
        table = reading.read_csv(io.BytesIO(content), options, parse, convert)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise _unreadable(content, name, ragged, error) from error
    names = [re.sub(_UNMARK, r"\1", one) for one in table.column_names]
    return _unmarked(table.rename_columns(names))


def _checked(content: bytes, name: str) -> bytes:
    """Return csv without the mark of utf-8; raise if its bytes are not text."""
    for begin, (what, do) in _OTHER_FILES.items():
        if content.startswith(begin):
            raise InputError(f"{name} is {what}, and not csv; {do}.")
    if content.startswith((b"\xff\xfe", b"\xfe\xff")) or _has_two_bytes_a_letter(content):
        raise InputError(f"{name} is utf-16, and a csv must be utf-8; save it as utf-8.")
    content = content.removeprefix(b"\xef\xbb\xbf")
    at = content.find(b"\0")
    if at >= 0:
        raise InputError(
            f"{name} has a NUL character in line {_line(content, at)}, so it is not a text file or "
            f"it is damaged; write it again."
        )
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = content[error.start : error.start + 1]
        raise InputError(
            f"{name} is not utf-8: line {_line(content, error.start)} holds the byte 0x{byte.hex()}"
            f" ({byte.decode('latin-1')!r} in latin-1); save it as utf-8."
        ) from error
    return content if content.endswith((b"\n", b"\r")) else content + b"\n"


def _has_two_bytes_a_letter(content: bytes) -> bool:
    """Say whether every other byte of the beginning is NUL, as in utf-16 of western letters."""
    begin = content[: min(_LOOKED_AT, len(content) // 2 * 2)]
    halves = {begin[::2].count(0), begin[1::2].count(0)}
    return len(begin) > 0 and halves == {0, len(begin) // 2}


def _unreadable(content: bytes, name: str, ragged: list[Any], error: Exception) -> InputError:
    if ragged:
        got, wanted = ragged[0].actual_columns, ragged[0].expected_columns
        line = _line_of_length_other_than(wanted, content)
        return InputError(
            f"{name} has {wanted} column {'name' if wanted == 1 else 'names'} and in line {line} "
            f"values for {got}; a comma inside a value needs quotes around it, and a quote needs "
            f"another to close it, so mend that line."
        )
    return InputError(f"{name} cannot be read as csv ({first_line(error)}); write the file again.")


def _line_of_length_other_than(wanted: int, content: bytes) -> int:
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


def _line(content: bytes, at: int) -> int:
    ends = content.count(b"\n", 0, at)
    return 1 + (ends or content.count(b"\r", 0, at))


def _check_separator(content: bytes, name: str) -> None:
    header = re.split(rb"[\r\n]", content, maxsplit=1)[0]
    for mark, word in ((b";", "semicolons"), (b"\t", "tabs"), (b"|", "bars")):
        if mark in header and b"," not in header:
            raise InputError(
                f"{name} has {word} between its values and a csv must have commas; save it with "
                f"commas, and numbers with decimal points."
            )


def _unmarked(table: Any) -> Any:
    """Take off the apostrophes that writing puts in front, and make empty text missing."""
    pa, compute = arrow(), arrow("compute")
    for at, column in enumerate(table.columns):
        if pa.types.is_string(column.type):
            plain = compute.replace_substring_regex(column, _UNMARK, r"\1")
            words = compute.if_else(compute.equal(plain, ""), pa.scalar(None, pa.string()), plain)
            table = table.set_column(at, table.column_names[at], words)
    return table


def csv_bytes(table: Any, numbers: Iterable[str] = ()) -> bytes:
    """Return a table as csv in which a spreadsheet finds nothing to run.

    ``numbers`` names columns of text in which what is a number stays as it is, such as -5.
    """
    pa, compute, plain = arrow(), arrow("compute"), set(numbers)
    for at, column in enumerate(table.columns):
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)  # noqa: PLW2901
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            risky = compute.match_substring_regex(column, _MARKED)
            if table.column_names[at] in plain:
                number = compute.match_substring_regex(column, NUMBER)
                risky = compute.and_not(risky, number)
            marked = compute.binary_join_element_wise(pa.scalar("'"), column, "")
            column = compute.if_else(risky, marked, column)  # noqa: PLW2901
        table = table.set_column(at, table.column_names[at], column)
    names = compute.replace_substring_regex(
        pa.array(table.column_names, pa.string()), f"({_MARKED})", r"'\1"
    ).to_pylist()
    sink = io.BytesIO()
    arrow("csv").write_csv(table.rename_columns(names), sink)
    return sink.getvalue()
