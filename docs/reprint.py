"""Rerun commands of a page and put the tables they print into it.

A line of the page such as

    `secondlook reproduce german` (table `all-methods`, 50 repetitions)

names a command and one of its tables; the table below the line is replaced. Run ``python
docs/reprint.py docs/experiments.md`` for all of them, or add text that a line must contain. The
results are kept in the folder ``results``, so that a second run only prints.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

from secondlook.lab.experiments.all_tables import all_tables
from secondlook.lab.experiments.results import read_results

LINE = re.compile(r"^`secondlook ([^`]+)` \(table `([^`]+)`")


def run(command: str) -> Path:
    """Run a command and return the folder of its results."""
    folder = Path("results") / re.sub(r"[^a-z0-9]+", "-", command.lower()).strip("-")
    call = [sys.executable, "-m", "secondlook", *shlex.split(command), "--out", str(folder)]
    subprocess.run(call, check=True)
    return folder


def reprint(page: Path, wanted: str) -> None:
    """Replace the tables of a page below lines that contain a text."""
    lines, at = page.read_text(encoding="utf-8").split("\n"), 0
    while at < len(lines):
        found = LINE.match(lines[at])
        if found and wanted in lines[at]:
            first = next(i for i in range(at, len(lines)) if lines[i].startswith("|"))
            end = next(i for i in range(first, len(lines)) if not lines[i].startswith("|"))
            results = read_results(run(found[1]))
            tables = {table.name: table for table in all_tables(results)}
            if found[2] not in tables:
                sys.exit(f"{found[1]} has no table {found[2]}; it has {', '.join(tables)}.")
            lines[first:end] = tables[found[2]].markdown().split("\n")
            page.write_text("\n".join(lines), encoding="utf-8")
        at += 1


if __name__ == "__main__":
    reprint(Path(sys.argv[1]), " ".join(sys.argv[2:]))
