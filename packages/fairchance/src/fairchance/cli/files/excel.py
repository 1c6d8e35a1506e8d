"""Excel files (``.xlsx``), read as csv, so that both mean the same.

The only visible sheet with cells is read, its first row as column names. Formulas have the values
that Excel stored; whole numbers have no decimals, so that the id 17 is ``17``; dates are written as
2031-01-31.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time
from typing import Any

from fairchance.cli.files.csv_files import first_line, marked
from fairchance.core.sizes import check_unpacked, unzipped, zipped
from fairchance.errors import InputError, visible

__all__ = ["MOST_ROWS", "xlsx_as_csv", "xlsx_bytes"]

MOST_ROWS = 2**20  # in Excel
_EXACT = 2**53  # whole numbers below are exact
# A formula without a stored value; Excel stores empty text as t="str".
_UNCALCULATED = re.compile(
    rb'<c\b(?![^>]*\bt="str")[^>]*>\s*<f\b[^>]*?(?:/>|>[^<]*</f>)\s*(?:<v\s*/>|<v>\s*</v>)?\s*</c>'
)


def xlsx_as_csv(content: bytes, name: str) -> bytes:
    """Return the table of an Excel file as csv; messages call the file ``name``."""
    import openpyxl  # noqa: PLC0415 - an extra

    try:
        files = unzipped(content, name)
        if any(_UNCALCULATED.search(part) for part in files.values()):
            raise InputError(
                f"{name} has formulas without values; open and save it in a spreadsheet program."
            )
        with warnings.catch_warnings(action="ignore"):  # about formats and styles
            book = openpyxl.load_workbook(
                io.BytesIO(zipped(files)), read_only=True, data_only=True, keep_links=False
            )
            return _only_sheet(book, name, len(content))
    except InputError:
        raise
    except Exception as error:  # openpyxl raises all kinds on damaged files
        why = "it is no zip archive" if isinstance(error, zipfile.BadZipFile) else first_line(error)
        raise InputError(
            f"{name} cannot be read as an Excel file ({why}); save it again as .xlsx without a "
            f"password, or as csv."
        ) from error


def xlsx_bytes(table: Any) -> bytes:
    """Return an arrow table as an Excel file in which nothing is a formula, as in csv output."""
    import openpyxl  # noqa: PLC0415 - an extra

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    sheet.append([marked(visible(name)) for name in table.column_names])
    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        sheet.append([marked(visible(v)) if isinstance(v, str) else v for v in row])
    sink = io.BytesIO()
    book.save(sink)
    return sink.getvalue()


def _only_sheet(book: Any, name: str, packed: int) -> bytes:
    texts = {}
    for sheet in book.worksheets:
        if sheet.sheet_state == "visible":
            text = _as_csv(sheet, name, packed)
            if text:
                texts[sheet.title] = text
        if len(texts) > 1:
            raise InputError(
                f"{name} has more than one sheet with cells, {' and '.join(map(repr, texts))}; "
                f"save the one with the table as a file of its own."
            )
    return "".join(texts.values()).encode()


def _as_csv(sheet: Any, name: str, packed: int) -> str:
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n")
    width = 0
    for number, cells in _rows(sheet, name):
        width = width or len(cells)  # the first row has the column names
        if len(cells) > width:
            raise InputError(
                f"{name} has a value in row {number}, column {len(cells)}, and {width} column "
                f"names; name that column in the first row, or empty it."
            )
        write.writerow([*cells, *[""] * (width - len(cells))])
        check_unpacked(text.tell(), packed, name)
    return text.getvalue()


def _rows(sheet: Any, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield rows that are not empty with their numbers, without empty cells at the end."""
    for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
        if number > MOST_ROWS:
            raise InputError(f"{name} has more than {MOST_ROWS:,} rows; write it as csv.")
        cells = [_text(value) for value in row]
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            yield number, cells


def _text(value: object) -> str:
    """Return a cell as csv has it.

    Examples
    --------
    >>> [_text(value) for value in (17.0, 0.1, True, None, "=A1", datetime(2031, 1, 31))]
    ['17', '0.1', 'true', '', "'=A1", '2031-01-31']
    """
    match value:
        case None:
            text = ""
        case bool():
            text = str(value).lower()
        case float() if value.is_integer() and abs(value) < _EXACT:
            text = str(int(value))
        case datetime() if value.time() != time():
            text = value.isoformat(" ")
        case date():
            text = value.isoformat()[: len("2031-01-31")]
        case str():
            text = marked(value)
        case _:
            text = str(value)
    return text
