"""Tables in and out: csv and parquet files, standard input and output, and rows that are refused.

A csv file is utf-8 with commas and one line of column names; whatever else it may be is told in
one sentence with the line (``csv_files``). Columns that a caller calls text stay text, so that the
id ``007`` is not the number 7; an empty cell is missing.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from secondlook.cli.csv_files import arrow, csv_bytes, first_line, read_csv
from secondlook.errors import InputError

__all__ = [
    "Refusal",
    "Refusals",
    "as_text",
    "check_output",
    "read_table",
    "refused_path",
    "write_table",
]

_SUFFIXES = (".csv", ".parquet")
_LARGEST = 2**31 - 2  # bytes of a csv file that are read at once


def read_table(path: str, text: Iterable[str] = ()) -> Any:
    r"""Read a pyarrow table.

    Parameters
    ----------
    path
        A file that ends in ``.csv`` or ``.parquet``, or ``-`` for csv on standard input.
    text
        Columns to read as text whatever they look like; those that are not there are passed over.

    Raises
    ------
    InputError
        If there is no table to be read, naming the file and, where there is one, the line.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = str(Path(folder, "people.csv"))
    ...     _ = Path(path).write_text("id,age\n007,31\n'=2+3,\n")
    ...     table = read_table(path, text=["id"])
    >>> table.to_pydict()
    {'id': ['007', '=2+3'], 'age': [31, None]}
    """
    name = _name(path)
    if path != "-" and _suffix(path) == ".parquet":
        table = _read_parquet(path, name)
    else:
        table = read_csv(_content(path, name), name, tuple(text))
    twice = [one for one in dict.fromkeys(table.column_names) if table.column_names.count(one) > 1]
    if twice:
        raise InputError(
            f"{name} has more than one column called {', '.join(map(repr, twice))}; rename all "
            f"but one."
        )
    nameless = [str(at) for at, one in enumerate(table.column_names, 1) if not one.strip()]
    if nameless:
        raise InputError(
            f"{name} has a column without a name, number {', '.join(nameless)}; name it or take "
            f"it out."
        )
    if table.num_rows == 0:
        raise InputError(
            f"{name} has the columns {', '.join(map(repr, table.column_names))} and no rows; give "
            f"a file with people."
        )
    return as_text(table, [one for one in text if one in table.column_names], name)


def as_text(table: Any, names: Iterable[str], source: str) -> Any:
    """Return a table with some columns as text: of text, whole numbers or truth values.

    Examples
    --------
    >>> import pyarrow as pa
    >>> as_text(pa.table({"id": [7.0, None]}), ["id"], "people.parquet")["id"].to_pylist()
    ['7', None]
    """
    pa, compute = arrow(), arrow("compute")
    for name in names:
        column = table[name]
        kind = column.type
        if pa.types.is_string(kind):
            continue
        if pa.types.is_floating(kind):  # what pandas makes of whole numbers with gaps
            column = compute.if_else(compute.is_nan(column), pa.scalar(None, kind), column)
            exact = compute.less(compute.abs(column), 2.0**53)
            whole = compute.and_(exact, compute.equal(compute.floor(column), column))
            fits = compute.all(whole, min_count=0).as_py()
            column = column.cast(pa.int64()) if fits else column
            kind = column.type
        if not (pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind)):
            raise InputError(
                f"the column {name!r} of {source} must hold text or whole numbers, got {kind}; "
                f"convert it, because a rounded value is another one."
            )
        at = table.column_names.index(name)
        table = table.set_column(at, name, column.cast(pa.string()))
    return table


def check_output(path: str) -> None:
    """Raise unless a table could be written there; call it before doing what cannot be undone."""
    if path == "-":
        return
    _suffix(path)
    place = Path(path)
    if place.is_dir() or not place.absolute().parent.is_dir():
        raise InputError(
            f"a table is written to a file in a folder that exists, got {path!r}; make the folder "
            f"or choose another."
        )


def write_table(table: Any, path: str) -> None:
    """Write a pyarrow table; a file appears whole or not at all.

    Parameters
    ----------
    table
        The table. In csv, text that a spreadsheet would run gets an apostrophe in front.
    path
        A file that ends in ``.csv`` or ``.parquet``, or ``-`` for csv on standard output.
    """
    check_output(path)
    try:
        if path == "-":
            sys.stdout.flush()
            sys.stdout.buffer.write(csv_bytes(table))
            sys.stdout.buffer.flush()
        else:
            _write_whole(table, Path(path))
    except (OSError, arrow().ArrowException) as error:
        why = getattr(error, "strerror", None) or first_line(error)
        place = "standard output" if path == "-" else repr(path)
        raise InputError(f"{place} cannot be written ({why}); choose another place.") from error


def _write_whole(table: Any, place: Path) -> None:
    """Write beside the place and move there, so that whatever was there stays until then."""
    handle, kept = tempfile.mkstemp(dir=place.absolute().parent, prefix=f".{place.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            if _suffix(str(place)) == ".parquet":
                arrow("parquet").write_table(table, file)
            else:
                file.write(csv_bytes(table))
        os.chmod(kept, 0o666 & ~_umask())
        os.replace(kept, place)
    except BaseException:
        Path(kept).unlink(missing_ok=True)
        raise


class Refusal(NamedTuple):
    """A row that cannot be used: its number from 1, its id as far as there is one, and why."""

    row: int
    id: str | None
    reason: str


class Refusals:
    """Rows of a table that cannot be used, with the reasons.

    Parameters
    ----------
    table
        The table as it was read.
    ids
        Everybody's id, None where there is none.

    Examples
    --------
    >>> import pyarrow as pa
    >>> refused = Refusals(pa.table({"id": ["a", "b"], "age": [31, None]}), ["a", "b"])
    >>> refused.add([1], "age is missing")
    >>> list(refused), refused.usable.tolist()
    ([Refusal(row=2, id='b', reason='age is missing')], [True, False])
    >>> refused.to_table().to_pydict()
    {'id': ['b'], 'age': [None], 'reason': ['age is missing']}
    """

    def __init__(self, table: Any, ids: list[str | None]) -> None:
        self.table = table
        self._ids = ids
        self._reasons: dict[int, list[str]] = {}

    def __len__(self) -> int:
        return len(self._reasons)

    def __iter__(self) -> Iterator[Refusal]:
        for row in sorted(self._reasons):
            yield Refusal(row + 1, self._ids[row], "; ".join(self._reasons[row]))

    def add(self, rows: Iterable[int], reason: str | Iterable[str]) -> None:
        """Refuse rows, counted from 0, for one reason or each for its own."""
        listed = [int(row) for row in rows]
        reasons = [reason] * len(listed) if isinstance(reason, str) else list(reason)
        for row, why in zip(listed, reasons, strict=True):
            self._reasons.setdefault(row, []).append(why)

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Whether each row is still to be used."""
        found = np.ones(self.table.num_rows, np.bool_)
        found[list(self._reasons)] = False
        return found

    def stop(self, name: str) -> None:
        """Raise an error for the first refused row, if there is one."""
        for one in self:
            raise InputError(
                f"{name}, row {one.row} (id {one.id!r}): {one.reason}; {len(self)} of "
                f"{self.table.num_rows} rows cannot be used, so mend or remove them, or leave out "
                f"--strict to go on without them."
            )

    def to_table(self) -> Any:
        """Return the refused rows as they were read, with a column for the reason."""
        rows = self.table.take(arrow().array(sorted(self._reasons), arrow().int64()))
        title = "reason" if "reason" not in self.table.column_names else "reason_refused"
        reasons = arrow().array([one.reason for one in self], arrow().string())
        return rows.append_column(title, reasons)

    def write(self, path: str) -> None:
        """Write the refused rows to a file; nothing if there are none."""
        if len(self):
            write_table(self.to_table(), path)


def refused_path(given: str | None, source: str, taken_by: str | None = None) -> str:
    """Return where refused rows go: the file given, or one named after the input.

    Parameters
    ----------
    given
        What was asked for.
    source
        The input.
    taken_by
        The option that writes to standard output already, if there is one.

    Examples
    --------
    >>> refused_path(None, "2031/applicants.csv"), refused_path("no.csv", "-")
    ('applicants.refused.csv', 'no.csv')
    """
    if given is None:
        return f"{'input' if source == '-' else Path(source).stem}.refused.csv"
    if given == "-" and taken_by is not None:
        raise InputError(
            f"{taken_by} and --refused - both write to standard output; name a file with --refused."
        )
    if given != "-" and source != "-" and Path(given).absolute() == Path(source).absolute():
        raise InputError(
            f"refused rows would take the place of the input {source!r}; choose another."
        )
    check_output(given)
    return given


def _name(path: str) -> str:
    return "standard input" if path == "-" else Path(path).name


def _suffix(path: str) -> str:
    found = Path(path).suffix.lower()
    if found not in _SUFFIXES:
        raise InputError(
            f"a table is a file that ends in {' or '.join(_SUFFIXES)}, or - for csv on standard "
            f"input and output, got {path!r}; convert it to one of these."
        )
    return found


def _content(path: str, name: str) -> bytes:
    if path == "-":
        content = sys.stdin.buffer.read()
    else:
        _suffix(path)
        content = _opened(path, lambda: Path(path).read_bytes())
    if not content.strip(b"\xef\xbb\xbf\r\n\t "):
        raise InputError(f"{name} is empty; it needs a line of column names, and rows.")
    if len(content) > _LARGEST:
        raise InputError(
            f"{name} has {len(content):,} bytes, and csv is read up to {_LARGEST:,}; split it, or "
            f"use parquet."
        )
    return content


def _opened(path: str, read: Any) -> Any:
    try:
        return read()
    except FileNotFoundError:
        raise InputError(f"there is no file {path!r}; check the path.") from None
    except IsADirectoryError:
        raise InputError(f"{path!r} is a folder; name a file in it.") from None
    except OSError as error:
        raise InputError(
            f"{path!r} cannot be read ({error.strerror or first_line(error)}); check its rights, "
            f"or write it again."
        ) from error


def _read_parquet(path: str, name: str) -> Any:
    def read() -> Any:
        with open(path, "rb") as file:
            return arrow("parquet").read_table(io.BytesIO(file.read()))

    try:
        table = _opened(path, read)
    except arrow().ArrowException as error:
        raise InputError(
            f"{name} cannot be read as parquet ({first_line(error)}); it may be damaged, so write "
            f"it again."
        ) from error
    # pandas keeps the numbers of its rows in such a column, and nobody means it as a feature.
    index = [one for one in table.column_names if one.startswith("__index_level_")]
    return _plain(table.drop_columns(index).replace_schema_metadata(None))


def _plain(table: Any) -> Any:
    """Return text as text where parquet kept it as categories, and decimals as numbers."""
    pa = arrow()
    for at, column in enumerate(table.columns):
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if pa.types.is_decimal(kind):
            kind = pa.float64()
        elif pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            kind = pa.string()
        if kind != column.type:
            table = table.set_column(at, table.column_names[at], column.cast(kind))
    return table


def _umask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now
