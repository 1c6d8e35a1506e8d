"""Tables in and out: csv and parquet files, standard input and output.

A csv file is utf-8 with commas and one line of column names; whatever else it may be is told in
one sentence with the line (``csv_files``). Columns that a caller calls text stay text, so that the
id ``007`` is not the number 7; an empty cell is missing.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from secondlook.cli.files.csv_files import arrow, csv_bytes, first_line, read_csv
from secondlook.cli.output import binary_output, drop_output, read_input
from secondlook.errors import InputError, LedgerError

_ID = "id"  # what files of decisions call it, whatever it is called elsewhere
_LARGEST = 2**31 - 2  # bytes of a csv file that are read at once


class Sent(NamedTuple):
    """A table that was handed in.

    Attributes
    ----------
    table
        The table, as ``read_table`` returns it.
    as_written
        Gives the same rows with every cell of a csv as the text that it is, so that 1.50 does not
        become 1.5; called for rows that are handed back.
    """

    table: Any
    as_written: Callable[[], Any]


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
    return read_sent(path, text).table


def read_sent(path: str, text: Iterable[str] = ()) -> Sent:
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
    return Sent(_checked(sent.table, called(path), text), sent.as_written)


def read_listed(
    path: str, id_column: str, text: Iterable[str] = (), *, may_be_empty: bool = False
) -> tuple[Sent, str]:
    r"""Read a table of people on the record, and return which of its columns names them, as text.

    That is ``id_column``, a program's own, or, if it is not there, ``id``, as decisions have it. A
    table without rows is refused unless it ``may_be_empty``.

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
    there = sent.table.column_names
    is_joined = id_column not in there and _ID in there and _ID not in text
    column = _ID if is_joined else id_column
    columns = column, *text
    checked = _checked(sent.table, called(path), columns, may_be_empty=may_be_empty)
    return Sent(checked, sent.as_written), column


def _loaded(path: str, text: tuple[str, ...]) -> Sent:
    """Read a table whose columns nobody has looked at yet."""
    name = called(path)
    if path != "-" and suffix_of(path) == ".parquet":
        whole = _read_parquet(path, name)
        return Sent(whole, lambda: whole)
    content = _content(path, name)
    table = read_csv(content, name, text)
    return Sent(table, lambda: read_csv(content, name, tuple(table.column_names)))


def called(path: str) -> str:
    """Return what messages call a file.

    Examples
    --------
    >>> called("2031/applicants.csv"), called("-")
    ('applicants.csv', 'standard input')
    """
    return "standard input" if path == "-" else Path(path).name


def _checked(table: Any, name: str, text: Iterable[str], *, may_be_empty: bool = False) -> Any:
    """Return a table with its columns of text, or say what is wrong with its columns."""
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
    if table.num_rows == 0 and not may_be_empty:
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


def write_table(table: Any, path: str, numbers: Iterable[str] = ()) -> None:
    """Write a pyarrow table; a file appears whole or not at all.

    Parameters
    ----------
    table
        The table. In csv, text that a spreadsheet would run gets an apostrophe in front.
    path
        A file that ends in ``.csv`` or ``.parquet``, or ``-`` for csv on standard output.
    numbers
        Columns of text whose numbers are meant as such, and get no apostrophe.
    """
    check_output(path)
    with _told_plainly(path):
        if path == "-":
            output = binary_output()
            output.write(csv_bytes(table, numbers))
            output.flush()
        else:
            _write_whole(_as_bytes(table, path, numbers), Path(path))


def write_new_table(
    table: Any, path: str, *, numbers: Iterable[str] = (), taken: Iterable[str] = ()
) -> str:
    """Write a table like ``write_table`` and never over another file; return where it is.

    If the place is taken by something else, a number goes in front of what the name ends with:
    ``may.refused.csv`` becomes ``may.2.refused.csv``. A file that holds the same already is left
    as it is.

    Parameters
    ----------
    table, path, numbers
        As for ``write_table``.
    taken
        Files that are not there yet and that another table is going to be written to.
    """
    if path == "-":
        write_table(table, path, numbers)
        return path
    check_output(path)
    used = {Path(one).absolute() for one in taken}
    content = _as_bytes(table, path, numbers)
    with _told_plainly(path):
        for place in _places(Path(path)):
            if place.absolute() in used:
                continue
            try:
                place.touch(exist_ok=False)  # ours from here on, whoever else looks for a name
            except FileExistsError:
                if place.is_file() and place.read_bytes() == content:
                    return str(place)
                continue
            try:
                _write_whole(content, place)
            except BaseException:
                place.unlink(missing_ok=True)
                raise
            return str(place)
    raise AssertionError("there are as many names as numbers")


def _places(path: Path) -> Iterator[Path]:
    """Yield a file's name, and names like it with a number from 2 on."""
    yield path
    base, dot, ending = path.name.partition(".refused.")
    if not dot:
        base, dot, ending = path.stem, "", path.suffix
    for number in count(2):
        yield path.with_name(f"{base}.{number}{dot}{ending}")


@contextmanager
def _told_plainly(path: str) -> Iterator[None]:
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
    if suffix_of(path) != ".parquet":
        return csv_bytes(table, numbers)
    sink = io.BytesIO()
    arrow("parquet").write_table(table, sink)
    return sink.getvalue()


def _write_whole(content: bytes, place: Path) -> None:
    """Write beside the place and move there, so that whatever was there stays until then."""
    handle, kept = tempfile.mkstemp(dir=place.absolute().parent, prefix=f".{place.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(kept, 0o666 & ~_umask())
        os.replace(kept, place)
    except BaseException:
        Path(kept).unlink(missing_ok=True)
        raise


def _content(path: str, name: str) -> bytes:
    if path == "-":
        content = read_input()
    else:
        suffix_of(path)
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


_SUFFIXES = (".csv", ".parquet")
_BESIDE = ("-wal", "-shm", "-journal")  # behind a ledger's name: files of SQLite's


def suffix_of(path: str, then: str = "convert it to one of these") -> str:
    """Return what a table's file ends in; raise, with what to do then, if that is no table.

    Examples
    --------
    >>> suffix_of("2031/Applicants.CSV")
    '.csv'
    """
    found = Path(path).suffix.lower()
    if found not in _SUFFIXES:
        raise InputError(
            f"a table is a file that ends in {' or '.join(_SUFFIXES)}, or - for csv on standard "
            f"input and output, got {path!r}; {then}."
        )
    return found


def check_output(path: str) -> None:
    """Raise unless a table could be written there by its name: to a file, in a folder there is."""
    if path == "-":
        return
    suffix_of(path, "name such a file")
    place = Path(path)
    if place.is_dir():
        raise InputError(f"{path!r} is a folder, and a table is written to a file; name one in it.")
    if not place.absolute().parent.is_dir():
        raise InputError(
            f"a table is written to a file in a folder that exists, got {path!r}; make the folder "
            f"or choose another."
        )


def check_writable(path: str) -> None:
    """Do as ``check_output`` and try it, before doing what cannot be undone; nothing is left.

    Tables appear beside their place first, so that is what is tried: a file that is there already
    stays as it is.
    """
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


def are_one(one: str | Path, other: str | Path) -> bool:
    """Say whether two names lead to one file, by links or in another spelling too.

    Examples
    --------
    >>> are_one("2031/../lender.db", "lender.db"), are_one("lender.db", "other.db")
    (True, False)
    """
    try:
        return os.path.samefile(one, other)
    except OSError:  # one of them is not there
        return os.path.realpath(one) == os.path.realpath(other)


def ledger_files(url: str | None) -> list[Path]:
    """Return the files that a ledger on SQLite has or may get; none for any other.

    A place where no ledger can live has none: whoever opens it says so.

    Examples
    --------
    >>> [one.name for one in ledger_files("sqlite:///lender.db")]
    ['lender.db', 'lender.db-wal', 'lender.db-shm', 'lender.db-journal']
    """
    if not url:
        return []
    from secondlook.ledger.database import read_url  # noqa: PLC0415 - an extra, and slow to import

    try:
        place = read_url(url)
    except LedgerError:
        return []
    if place.drivername != "sqlite" or not place.database:
        return []
    real = Path(os.path.realpath(place.database))  # beside which SQLite puts the others
    return [real, *(real.with_name(f"{real.name}{one}") for one in _BESIDE)]


def check_apart(
    what: str, path: str | Path, other: str, taken: Iterable[str | Path], then: str = "file"
) -> None:
    """Raise if writing to a path would replace one of some files.

    Parameters
    ----------
    what, path
        What is to be written, in words, and where.
    other, taken
        What these files are, in words, and where; ``-`` is none.
    then
        What to choose another of.
    """
    for one in taken:
        if "-" not in (str(path), str(one)) and are_one(path, one):
            raise InputError(
                f"{what} would take the place of {other} in {str(path)!r}; choose another {then}."
            )
