"""Read columns of csv and parquet files with pyarrow, which is an extra."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

from fairchance.errors import InputError
from fairchance.extras import arrow
from fairchance.simulate.people import Floats
from fairchance.words import listed

__all__ = [
    "as_floats",
    "check_choice",
    "read_columns",
    "read_names",
    "read_numbers",
]

SUFFIXES = (".csv", ".csv.gz", ".parquet")


def check_choice(option: str, value: object, allowed: Iterable[object]) -> None:
    """Raise if a value is not an allowed one.

    Examples
    --------
    >>> check_choice("group", "age", ["race", "gender"])
    Traceback (most recent call last):
        ...
    fairchance.errors.InputError: group must be one of 'race', 'gender', got 'age'.
    """
    allowed = list(allowed)
    if value not in allowed:
        raise InputError(f"{option} must be one of {listed(allowed)}, got {value!r}.")


def read_names(path: Path) -> list[str]:
    """Return the names of a file's columns; raise if the file cannot be read as a table."""
    if not path.exists():
        raise InputError(f"there is no file {os.fspath(path)!r}; check the path.")
    if not path.is_file() or not path.name.lower().endswith(SUFFIXES):
        raise InputError(
            f"a table must be a file that ends in {listed(SUFFIXES)}, got {path.name!r}; "
            f"convert it to such a file."
        )
    try:
        if _is_parquet(path):
            names = arrow("parquet").read_schema(path).names
        elif path.stat().st_size == 0:
            raise InputError(f"{path.name} is empty; it needs a line of column names and rows.")
        else:
            names = _csv(path).schema.names
    except (OSError, arrow().ArrowException) as error:
        raise _unreadable(path, error) from error
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(
            f"{path.name} has more than one column named {listed(repeated)}; rename all but one."
        )
    return list(names)


def read_columns(path: Path, columns: list[str]) -> Any:
    """Return some columns of a file as a pyarrow table, with the types that pyarrow infers."""
    try:
        if _is_parquet(path):
            return arrow("parquet").read_table(path, columns=columns)
        return _csv(path, columns, whole=True)
    except (OSError, arrow().ArrowException) as error:
        raise _unreadable(path, error) from error


def read_numbers(file: IO[bytes], columns: list[str]) -> dict[str, Floats]:
    """Return some numeric columns of an open csv file; missing values are NaN."""
    csv = arrow("csv")
    convert = csv.ConvertOptions(
        include_columns=columns, column_types=dict.fromkeys(columns, arrow().float64())
    )
    # Larger blocks than pyarrow's: survey files have hundreds of columns that are skipped.
    table = csv.read_csv(
        file, read_options=csv.ReadOptions(block_size=1 << 23), convert_options=convert
    )
    return {name: as_floats(table[name]) for name in columns}


def as_floats(column: Any) -> Floats:
    """Return a pyarrow column as floats; missing values are NaN."""
    values: Floats = column.cast(arrow().float64()).to_numpy()
    return values


def _csv(path: Path, columns: list[str] | None = None, *, whole: bool = False) -> Any:
    csv = arrow("csv")
    # Empty cells are missing in text columns too; quoted text is never missing, not even "NA".
    convert = csv.ConvertOptions(
        include_columns=columns, strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    return (csv.read_csv if whole else csv.open_csv)(os.fspath(path), convert_options=convert)


def _is_parquet(path: Path) -> bool:
    return path.name.lower().endswith(".parquet")


def _unreadable(path: Path, error: Exception) -> InputError:
    reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
    return InputError(
        f"{path.name} cannot be read as {'parquet' if _is_parquet(path) else 'csv'} ({reason}); "
        f"it may be damaged: write or download it again."
    )
