"""``fairchance export``: write decisions, outcomes, the chain or the checkpoint to files."""

from __future__ import annotations

import json as jsons
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from fairchance.cli.files.tables import check_apart, ledger_files
from fairchance.cli.options import (
    Json,
    MaybeLedgerUrl,
    ProgramName,
    ReadUrl,
    errors,
    ledger_url,
)
from fairchance.cli.output import binary_output, print_json, print_lines
from fairchance.errors import InputError, writing

_FILES = {  # in a folder
    "decisions": "decisions.parquet",
    "outcomes": "outcomes.parquet",
    "entries": "entries.jsonl",
    "checkpoint": "checkpoint.txt",
}


def export(
    place: ReadUrl = None,
    ledger: MaybeLedgerUrl = None,
    program: ProgramName = None,
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            help="A .csv or .parquet file, a folder for everything, or - for standard output.",
        ),
    ] = "-",
    features: Annotated[
        bool, typer.Option("--features", help="Add the features of applicants.")
    ] = False,
    groups: Annotated[
        bool,
        typer.Option(
            "--groups", help="Add group values, which are stored separately to protect them."
        ),
    ] = False,
    outcomes: Annotated[
        bool,
        typer.Option("--outcomes", help="Only outcomes as they were recorded, with corrections."),
    ] = False,
    entries: Annotated[
        bool, typer.Option("--entries", help="Only the chain, as JSON lines.")
    ] = False,
    checkpoint: Annotated[
        bool, typer.Option("--checkpoint", help="Only print the checkpoint.")
    ] = False,
    json: Json = False,
) -> None:
    """Write decisions with their outcomes; or all recorded outcomes, the chain, the checkpoint.

    A decision has its newest override, with reason, author and time. Each recorded outcome has a
    row, with its author, its time and the outcome that a correction replaced. Erased applicants
    appear without an id, marked as erased.

    Example: fairchance export sqlite:///lender.db --out decisions.parquet
    """
    with errors(json):
        alone = {"outcomes": outcomes, "entries": entries, "checkpoint": checkpoint}
        wanted = _Wanted(out, features, groups, [name for name in alone if alone[name]], json)
        wanted.check()
        url = ledger_url(place, ledger)
        for path in wanted.paths:
            check_apart("what is exported", path, "the ledger", ledger_files(url))
        from fairchance.ledger import SqlLedger  # noqa: PLC0415 - an extra

        kept = SqlLedger(url)
        with kept.reading(kept.named(program)) as reader:
            written = _write(reader, wanted)
            head = reader.head()
        if json:
            print_json({"checkpoint": str(head), "written": written})
        elif checkpoint:
            print_lines([str(head)])
        elif out != "-":
            for path, n in written.items():
                what = wanted.paths[path]
                print_lines([f"{n:,} {what}: {path}"])
            print_lines([f"Checkpoint: {head}"])


@dataclass(frozen=True)
class _Wanted:
    """The options of the command line."""

    out: str
    features: bool
    groups: bool
    alone: list[str]  # outcomes, entries or checkpoint, if only that is wanted
    json: bool

    @property
    def folder(self) -> bool:
        return self.out != "-" and (Path(self.out).is_dir() or not Path(self.out).suffix)

    @property
    def paths(self) -> dict[str, str]:
        """The files to write, with their content."""
        if self.alone == ["checkpoint"]:
            return {}
        what = self.alone[0] if self.alone else "decisions"
        if not self.folder:
            return {self.out: what}
        wanted = [what, "checkpoint"] if self.alone else [*_FILES]
        return {str(Path(self.out) / _FILES[what]): what for what in wanted}

    def check(self) -> None:
        """Raise if options contradict each other."""
        if "checkpoint" in self.alone and (len(self.alone) > 1 or self.out != "-"):
            raise InputError("{option} takes no other option.", option="checkpoint")
        if len(self.alone) > 1:
            raise InputError("--outcomes and --entries need a folder as {option}.", option="out")
        if self.json and self.out == "-" and not self.alone == ["checkpoint"]:
            raise InputError("--json needs a file as {option}.", option="out")
        suffix = Path(self.out).suffix
        allowed = [".jsonl"] if self.alone == ["entries"] else [".csv", ".parquet"]
        fits = self.out == "-" or self.folder or suffix in allowed
        if not self.out or not fits:
            raise InputError(
                f"{{option}} must be a folder or a file that ends in {' or '.join(allowed)}, got "
                f"{self.out!r}.",
                option="out",
            )


def _write(reader: Any, wanted: _Wanted) -> dict[str, int]:
    """Write the files; return the number of lines or rows of each."""
    if wanted.folder:
        with writing(wanted.out):
            Path(wanted.out).mkdir(parents=True, exist_ok=True)
    written = {}
    for path, what in wanted.paths.items():
        if what == "checkpoint":
            with _opened(path) as file:
                file.write(f"{reader.head()}\n".encode())
        else:
            written[path] = _WRITE[what](reader, wanted, path)
    return written


def _write_entries(reader: Any, _wanted: _Wanted, path: str) -> int:
    n = 0
    with _opened(path) as file:
        for n, entry in enumerate(reader.entries(), 1):  # noqa: B007 - the last is the number
            line = {
                "number": entry.number,
                "kind": entry.kind,
                "key": entry.key,
                "at": entry.at,
                "by": entry.by,
                "header": entry.says,
                "content": entry.content.hex(),
                "previous": entry.previous.hex(),
                "hash": entry.hash.hex(),
            }
            file.write(jsons.dumps(line, ensure_ascii=False).encode() + b"\n")
    return n


def _write_decisions(reader: Any, wanted: _Wanted, path: str) -> int:
    from fairchance.cli.files.export_tables import decision_tables  # noqa: PLC0415 - needs the ledger

    return _write_tables(
        decision_tables(reader, features=wanted.features, groups=wanted.groups), path
    )


def _write_outcomes(reader: Any, _wanted: _Wanted, path: str) -> int:
    from fairchance.cli.files.export_tables import outcome_tables  # noqa: PLC0415 - the same

    return _write_tables(outcome_tables(reader), path)


_WRITE = {"decisions": _write_decisions, "outcomes": _write_outcomes, "entries": _write_entries}


def _write_tables(tables: Iterator[Any], path: str) -> int:
    write = _write_parquet if path.endswith(".parquet") else _write_csv
    with _opened(path) as file:
        return write(tables, file)


def _write_csv(tables: Iterator[Any], file: Any) -> int:
    from fairchance.cli.files.csv_files import csv_bytes  # noqa: PLC0415

    titles, n = csv_bytes(next(tables)), 0
    file.write(titles)
    for table in tables:
        file.write(csv_bytes(table)[len(titles) :])
        n += table.num_rows
    return n


def _write_parquet(tables: Iterator[Any], file: Any) -> int:
    from fairchance.extras import arrow  # noqa: PLC0415

    empty, n = next(tables), 0
    with arrow("parquet").ParquetWriter(file, empty.schema) as writer:
        for table in tables:
            writer.write_table(table)
            n += table.num_rows
    return n


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    """Open a file that appears whole or not at all, or standard output."""
    if path == "-":
        output = binary_output()
        yield output
        output.flush()
        return
    place = Path(path)
    part = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        with writing(path):
            with part.open("wb") as file:
                yield file
            part.replace(place)
    finally:
        with suppress(OSError):  # neither the file nor its folder may exist
            part.unlink()
