"""Tables in and out: csv and parquet files, standard input and output, and Excel files in.

A csv file is utf-8 with one line of column names. Columns that a caller names as text stay text, so
that the id ``007`` does not become the number 7; an empty cell is missing.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from fairchance.cli.files.csv_files import csv_bytes, first_line, read_csv, with_commas
from fairchance.cli.files.excel import xlsx_as_csv
from fairchance.cli.output import binary_output, drop_output, read_input
from fairchance.core.sizes import MOST_COLUMNS, MOST_CSV, check_unpacked
from fairchance.errors import InputError, LedgerError
from fairchance.extras import arrow
from fairchance.people.plain import as_text, plain_types

__all__ = [
    "READ",
    "SentTable",
    "check_apart",
    "check_output",
    "check_page",
    "check_writable",
    "count_rows",
    "file_name",
    "is_same_file",
    "ledger_files",
    "parquet_file",
    "read_listed",
    "read_pieces",
    "read_sent",
    "read_table",
    "write_new_table",
    "write_table",
    "write_whole",
]

_WRITTEN = (".csv", ".parquet")
_PAGES = (".html", ".htm")
READ = (*_WRITTEN, ".xlsx")
_SQLITE_FILES = ("-wal", "-shm", "-journal")  # endings of files that SQLite puts beside a database
_ID = "id"  # the id column of files of decisions
_PRIVATE = 0o600  # refused rows hold what the ledger holds, which has the same mode


class SentTable(NamedTuple):
    """A table that was read from a file.

    Attributes
    ----------
    table
        The table, as ``read_table`` returns it.
    as_written
        Returns the same rows with each csv cell as text, so that 1.50 does not become 1.5; used
        for rows that are handed back.
    """

    table: Any
    as_written: Callable[[], Any]


# Reading


def read_table(path: str, text: Iterable[str] = ()) -> Any:
    r"""Read a pyarrow table.

    The path ends in ``.csv``, ``.parquet`` or ``.xlsx``, or is ``-`` for csv on standard input.
    Columns named in ``text`` are read as text whatever they look like.

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
    return read_sent(path, text).table


def read_sent(path: str, text: Iterable[str] = ()) -> SentTable:
    r"""Read a table as ``read_table`` does, and keep how it was written.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = str(Path(folder, "people.csv"))
    ...     _ = Path(path).write_text("id,debt,since\n007,1.50,NA\n")
    ...     sent = read_sent(path, text=["id"])
    >>> sent.table.to_pydict()
    {'id': ['007'], 'debt': [1.5], 'since': [None]}
    >>> sent.as_written().to_pydict()
    {'id': ['007'], 'debt': ['1.50'], 'since': ['NA']}
    """
    text = tuple(text)
    sent = _loaded(path, text)
    return SentTable(_checked(sent.table, file_name(path), text), sent.as_written)


def read_listed(
    path: str, id_column: str, text: Iterable[str] = (), *, may_be_empty: bool = False
) -> tuple[SentTable, str]:
    r"""Read a table of applicants on the record; return it with the name of its id column.

    That is ``id_column``, the program's own, or else ``id``, as in files of decisions. A table
    without rows is refused unless it ``may_be_empty``.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = str(Path(folder, "joined.csv"))
    ...     _ = Path(path).write_text("id,outcome\n007,1\n")
    ...     sent, column = read_listed(path, "loan_id", text=["outcome"])
    >>> column, sent.table.to_pydict()
    ('id', {'id': ['007'], 'outcome': ['1']})
    """
    text = tuple(text)
    sent = _loaded(path, (id_column, _ID, *text))
    names = sent.table.column_names
    is_joined = id_column not in names and _ID in names and _ID not in text
    column = _ID if is_joined else id_column
    table = _checked(sent.table, file_name(path), (column, *text), may_be_empty=may_be_empty)
    return SentTable(table, sent.as_written), column


def read_pieces(path: str, size: int, text: Iterable[str] = ()) -> Iterator[SentTable]:
    """Read a table as ``read_sent`` does, so many rows at a time.

    Of a parquet file no more than that is in memory; other files are read whole and cut.
    """
    text, name = tuple(text), file_name(path)
    if path != "-" and _suffix(path, "convert it to one of these", READ) == ".parquet":
        for whole in _parquet_pieces(path, name, size):
            table = _checked(whole, name, text)
            yield SentTable(table, lambda table=table: table)  # type: ignore[misc]
        return
    sent = read_sent(path, text)
    as_written = cache(sent.as_written)  # once for all pieces
    for first in range(0, sent.table.num_rows, size):
        some = sent.table.slice(first, size)
        yield SentTable(some, lambda first=first: as_written().slice(first, size))  # type: ignore[misc]


def count_rows(path: str) -> int:
    """Return how many rows a table has; of a csv file how many lines, 0 of standard input."""
    if path == "-":
        return 0
    suffix = _suffix(path, "convert it to one of these", READ)
    if suffix == ".parquet":
        return int(parquet_file(path).metadata.num_rows)
    if suffix == ".csv":
        content: bytes = _opened(path, Path(path).read_bytes)
        return max(0, content.count(b"\n") - 1)
    return int(read_sent(path).table.num_rows)


def parquet_file(path: str, **options: Any) -> Any:
    """Open a parquet file, to be read in pieces."""
    try:
        return _opened(path, lambda: arrow("parquet").ParquetFile(path, **options))
    except arrow().ArrowException as error:
        raise _no_parquet(file_name(path), error) from error


def _loaded(path: str, text: tuple[str, ...]) -> SentTable:
    """Read a table without checking its columns."""
    name = file_name(path)
    suffix = "" if path == "-" else _suffix(path, "convert it to one of these", READ)
    if suffix == ".parquet":
        whole = _read_parquet(path, name)
        return SentTable(whole, lambda: whole)
    content = _content(path, name)
    content = xlsx_as_csv(content, name) if suffix == ".xlsx" else with_commas(content, name, text)
    _check_content(content, name)
    table = read_csv(content, name, text)
    return SentTable(table, lambda: read_csv(content, name, tuple(table.column_names)))


def file_name(path: str) -> str:
    """Return the name of a file for messages.

    Examples
    --------
    >>> file_name("2031/applicants.csv"), file_name("-")
    ('applicants.csv', 'standard input')
    """
    return "standard input" if path == "-" else Path(path).name


def _checked(table: Any, name: str, text: Iterable[str], *, may_be_empty: bool = False) -> Any:
    """Return a table with its text columns as text; raise if its columns cannot be used."""
    table = _without_row_numbers(table)
    names = table.column_names
    if len(names) > MOST_COLUMNS:
        raise InputError(
            f"{name} has {len(names):,} columns, and the most is {MOST_COLUMNS:,}; leave some out."
        )
    repeated = [column for column, n in Counter(names).items() if n > 1]
    if repeated:
        raise InputError(
            f"{name} has more than one column called {', '.join(map(repr, repeated))}; rename all "
            f"but one."
        )
    nameless = [str(at) for at, column in enumerate(names, 1) if not column.strip()]
    if nameless:
        raise InputError(
            f"{name} has a column without a name, number {', '.join(nameless)}; name or remove it."
        )
    if table.num_rows == 0 and not may_be_empty:
        raise InputError(
            f"{name} has no rows, only the columns {', '.join(map(repr, names))}; add rows."
        )
    return as_text(table, [column for column in text if column in names], name)


def _content(path: str, name: str) -> bytes:
    content: bytes = read_input() if path == "-" else _opened(path, Path(path).read_bytes)
    if len(content) > MOST_CSV:
        raise InputError(
            f"{name} has {len(content):,} bytes, and csv is read up to {MOST_CSV:,}; split it, or "
            f"use parquet."
        )
    return content


def _check_content(content: bytes, name: str) -> None:
    if not content.strip(b"\xef\xbb\xbf\r\n\t "):
        raise InputError(f"{name} is empty; it needs a line of column names, and rows.")


def _opened(path: str, read: Any) -> Any:
    try:
        return read()
    except FileNotFoundError:
        raise InputError(f"there is no file {path!r}; check the path.") from None
    except IsADirectoryError:
        raise InputError(f"{path!r} is a folder; name a file in it.") from None
    except OSError as error:
        raise InputError(
            f"{path!r} cannot be read ({error.strerror or first_line(error)}); check it."
        ) from error


def _read_parquet(path: str, name: str) -> Any:
    try:
        table = _opened(path, lambda: _parquet_table(Path(path).read_bytes(), name))
    except arrow().ArrowException as error:
        raise _no_parquet(name, error) from error
    return _without_index(table)


def _no_parquet(name: str, error: Exception) -> InputError:
    return InputError(f"{name} cannot be read as parquet ({first_line(error)}); write it again.")


def _without_index(table: Any) -> Any:
    """Return a table of plain columns, without the row numbers that pandas stores as a column."""
    index = [column for column in table.column_names if column.startswith("__index_level_")]
    return plain_types(table.drop_columns(index).replace_schema_metadata(None))


def _parquet_pieces(path: str, name: str, n_rows: int) -> Iterator[Any]:
    texts = _text_columns(parquet_file(path).schema_arrow)
    packed = Path(path).stat().st_size
    try:
        for batch in parquet_file(path, read_dictionary=texts).iter_batches(batch_size=n_rows):
            check_unpacked(8 * batch.num_rows * batch.num_columns + _text_size(batch), packed, name)
            yield _without_index(arrow().Table.from_batches([batch]))
    except arrow().ArrowException as error:
        raise _no_parquet(name, error) from error


def _text_columns(schema: Any) -> list[str]:
    pa = arrow()
    return [each.name for each in schema if each.type in (pa.string(), pa.large_string())]


def _text_size(batch: Any) -> int:
    """Return how long the texts are that a record batch holds as codes."""
    pa, compute, size = arrow(), arrow("compute"), 0
    for column in batch.columns:
        kind = column.type
        if pa.types.is_dictionary(kind) and pa.types.is_string(kind.value_type):
            lengths = compute.binary_length(column.dictionary)
            size += compute.sum(lengths.take(column.indices)).as_py() or 0
    return size


def _parquet_table(content: bytes, name: str) -> Any:
    """Return the table of a parquet file; raise if it has too many values or too much text.

    Equal values take no room in the file, so text is read as codes and counted before it is made.
    """
    pa, parquet = arrow(), arrow("parquet")
    file = parquet.ParquetFile(io.BytesIO(content))
    about, fields = file.metadata, file.schema_arrow
    groups = [about.row_group(at) for at in range(about.num_row_groups)]
    n = sum(group.column(at).num_values for group in groups for at in range(group.num_columns))
    size = 8 * n
    check_unpacked(size, len(content), name)
    file = parquet.ParquetFile(io.BytesIO(content), read_dictionary=_text_columns(fields))
    batches = []
    for batch in file.iter_batches(batch_size=max(1, 2**20 // max(1, about.num_columns))):
        size += _text_size(batch)
        check_unpacked(size, len(content), name)
        batches.append(batch)
    return pa.Table.from_batches(batches) if batches else fields.empty_table()


def _without_row_numbers(table: Any) -> Any:
    """Return a table without a first column of row numbers, which pandas writes without a name."""
    if not table.num_columns or table.column_names[0]:
        return table
    numbers = arrow().array(range(table.num_rows), arrow().int64())
    same = table.column(0).type == numbers.type and table.column(0).combine_chunks().equals(numbers)
    return table.remove_column(0) if same else table


# Writing


def write_table(table: Any, path: str, numbers: Iterable[str] = ()) -> None:
    """Write a pyarrow table; a file appears whole or not at all.

    In csv, text that a spreadsheet would run gets an apostrophe in front, but not numbers in the
    columns ``numbers``.
    """
    check_output(path)
    with _as_input_error(path):
        if path == "-":
            output = binary_output()
            output.write(csv_bytes(table, numbers))
            output.flush()
        else:
            write_whole(_as_bytes(table, path, numbers), Path(path))


def replace_table(table: Any, path: str) -> str | None:
    """Write a table like ``write_table``; return where a file with other content is kept.

    Such a file gets a number: the older ``decisions.csv`` becomes ``decisions.2.csv``.
    """
    place, kept = Path(path).resolve(), None
    if path == "-" or not place.is_file() or not place.stat().st_size:
        write_table(table, path)
        return None
    content = _as_bytes(table, path, ())
    with _as_input_error(path):
        if place.read_bytes() != content:
            kept = next(other for other in _numbered(place) if not os.path.lexists(other))
            place.rename(kept)
        write_whole(content, place)
    return None if kept is None else str(Path(path).with_name(kept.name))


def write_new_table(
    table: Any, path: str, *, numbers: Iterable[str] = (), taken: Iterable[str] = ()
) -> str:
    """Write a table like ``write_table`` without replacing a file; return the path.

    If another file has the name, the new one gets a number: ``may.refused.csv`` becomes
    ``may.2.refused.csv``. A file that has the same content already is kept. Only the owner can read
    a new file.

    ``taken`` are files that do not exist yet and that another table will be written to.
    """
    if path == "-":
        write_table(table, path, numbers)
        return path
    check_output(path)
    used = {Path(name).absolute() for name in taken}
    content = _as_bytes(table, path, numbers)
    with _as_input_error(path):
        for place in _numbered(Path(path)):
            if place.absolute() in used:
                continue
            try:
                place.touch(_PRIVATE, exist_ok=False)  # reserves the name against other processes
            except FileExistsError:
                if place.is_file() and place.read_bytes() == content:
                    return str(place)
                continue
            try:
                write_whole(content, place, _PRIVATE)
            except BaseException:
                place.unlink(missing_ok=True)
                raise
            return str(place)
    raise AssertionError("numbers do not end")


def _numbered(path: Path) -> Iterator[Path]:
    """Yield the path, then the same path with a number from 2 on."""
    yield path
    base, dot, ending = path.name.partition(".refused.")
    if not dot:
        base, dot, ending = path.stem, "", path.suffix
    for number in count(2):
        yield path.with_name(f"{base}.{number}{dot}{ending}")


@contextmanager
def _as_input_error(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, arrow().ArrowException) as error:
        why = getattr(error, "strerror", None) or first_line(error)
        place = repr(path)
        if path == "-":
            place = "standard output"
            drop_output()
        raise InputError(f"{place} cannot be written ({why}); choose another place.") from error


def _as_bytes(table: Any, path: str, numbers: Iterable[str]) -> bytes:
    if Path(path).suffix.lower() != ".parquet":
        return csv_bytes(table, numbers)
    sink = io.BytesIO()
    arrow("parquet").write_table(table, sink)
    return sink.getvalue()


def write_whole(content: bytes, place: Path, mode: int = 0o666) -> None:
    """Write a temporary file and rename it, so that an existing file stays until then."""
    handle, temporary = tempfile.mkstemp(dir=place.absolute().parent, prefix=f".{place.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, mode & ~umask())
        os.replace(temporary, place)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def umask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now


# Paths


def _suffix(path: str, advice: str, allowed: tuple[str, ...] = _WRITTEN) -> str:
    """Return the ending of a table's file; raise, with advice, if it is not allowed."""
    suffix = Path(path).suffix.lower()
    if suffix not in allowed:
        raise InputError(
            f"a table is a file that ends in {' or '.join(allowed)}, or - for csv on standard "
            f"input and output, got {path!r}; {advice}."
        )
    return suffix


def check_output(path: str) -> None:
    """Raise unless a path names a table in an existing folder."""
    if path == "-":
        return
    _suffix(path, "name such a file", _WRITTEN)
    place = Path(path)
    if place.is_dir():
        raise InputError(f"{path!r} is a folder, and a table is written to a file; name one in it.")
    if not place.absolute().parent.is_dir():
        raise InputError(f"{path!r} is in a folder that does not exist; make it or name another.")


def check_writable(path: str) -> None:
    """Check a path like ``check_output``, and try to write a temporary file beside it."""
    check_output(path)
    if path == "-":
        return
    place = Path(path).absolute()
    try:
        handle, made = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
        os.close(handle)
        Path(made).unlink()
    except OSError as error:
        raise InputError(
            f"{path!r} cannot be written ({error.strerror}); choose another place."
        ) from error


def is_same_file(path: str | Path, other: str | Path) -> bool:
    """Say whether two paths lead to one file, also by links or in another spelling.

    Examples
    --------
    >>> is_same_file("2031/../lender.db", "lender.db"), is_same_file("lender.db", "other.db")
    (True, False)
    """
    try:
        return os.path.samefile(path, other)
    except OSError:  # one of them does not exist
        return os.path.realpath(path) == os.path.realpath(other)


def ledger_files(url: str | None) -> list[Path]:
    """Return the files that a ledger on SQLite has or may get; none for other ledgers.

    An unreadable URL has none: the command that opens it reports it.

    Examples
    --------
    >>> [file.name for file in ledger_files("sqlite:///lender.db")]
    ['lender.db', 'lender.db-wal', 'lender.db-shm', 'lender.db-journal']
    """
    if not url:
        return []
    from fairchance.ledger.database import read_url  # noqa: PLC0415 - an extra, and slow to import

    try:
        place = read_url(url)
    except LedgerError:
        return []
    if place.drivername != "sqlite" or not place.database:
        return []
    real = Path(os.path.realpath(place.database))  # SQLite puts its other files beside this one
    return [real, *(real.with_name(f"{real.name}{ending}") for ending in _SQLITE_FILES)]


def check_apart(
    what: str, path: str | Path, other: str, taken: Iterable[str | Path], choose: str = "file"
) -> None:
    """Raise if writing to a path would replace one of some files."""
    for file in taken:
        if "-" not in (str(path), str(file)) and is_same_file(path, file):
            raise InputError(
                f"{what} would replace {other} in {str(path)!r}; choose another {choose}."
            )


def check_page(out: Path) -> None:
    """Raise unless a file is named like a page, so that no other file is replaced."""
    if out.is_dir():
        raise InputError(f"--out must name a file, such as {out / 'report.html'}, got a folder.")
    if out.suffix.lower() not in _PAGES:
        raise InputError(
            f"--out must name a file that ends in {' or '.join(_PAGES)}, got {str(out)!r}."
        )
