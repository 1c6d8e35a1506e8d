"""The files of a validation pack: report, model card, tables, proof and readme."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fairchance.cli.commands.verify import as_data as verification_data
from fairchance.cli.evaluations import as_table, estimates_table, measured_range, measured_value
from fairchance.cli.files.csv_files import csv_bytes
from fairchance.cli.files.tables import umask
from fairchance.cli.options import writing
from fairchance.cli.output import plain_data
from fairchance.cli.pages.audit import (
    DECIDED,
    GROUP_MEASURES,
    LIMITS,
    Audited,
    audit_html,
    group_texts,
    rounds_used,
    verdict,
)
from fairchance.cli.pages.page import Table
from fairchance.cli.pages.program import certificate_section, settings_section
from fairchance.errors import InputError, visible
from fairchance.extras import arrow
from fairchance.words import counted, date, people

__all__ = ["NAMES", "check_folder", "escaped", "files_of", "write_folder"]

_TABLES = {
    "policies": "every estimate of every policy: measure, estimator, interval, bounds",
    "groups": "every measure of every group: as recorded, corrected, without assumptions",
    "gaps": "how far groups are apart, and whether that is real or selection",
    "unknown": "slices of applicants, with how many were accepted and what learning would cost",
    "calibration": "recorded scores against the share of good outcomes",
    "drift": "scores, acceptances and mistakes by round",
}
_OTHERS = {
    "README.md": "this list",
    "report.html": "the audit for readers: verdict, charts, tables, limits; it needs no network",
    "model_card.md": "purpose, data, settings, policies, performance, groups and limits",
    "verify.json": "the result of `fairchance verify` as data",
    "verify.txt": "the same in words, with the statement about groups",
    "checkpoint.txt": "the end of the chain that this audit read",
}
NAMES = (*_OTHERS, *(f"{name}.{ending}" for name in _TABLES for ending in ("csv", "json")))
_MARKDOWN = re.compile(r"[\\`*_\[\]|~#$!{}]|://|^[-+=]|^\d+[.)](?=\s|$)")


def escaped(text: str) -> str:
    r"""Return text that Markdown shows as it is, in one line.

    Examples
    --------
    >>> print(escaped("<b>*x*</b> | [a](b)"))
    &lt;b&gt;\*x\*&lt;/b&gt; \| \[a\](b)
    """
    plain = " ".join(visible(text).split())
    plain = plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # A backslash goes before punctuation only.
    return _MARKDOWN.sub(lambda found: re.sub(r"(\D)", r"\\\1", found[0]), plain)


def files_of(audited: Audited) -> dict[str, bytes]:
    """Return the content of each file of the pack."""
    texts = {
        "report.html": audit_html(audited),
        "model_card.md": "\n".join(_card(audited)),
        "verify.json": _as_json(verification_data(audited.verification)),
        "verify.txt": "\n".join(map(visible, audited.verified)),
        "checkpoint.txt": str(audited.summary.head),
    }
    files = {name: f"{text.rstrip()}\n".encode() for name, text in texts.items()}
    for name, table in _tables(audited).items():
        files[f"{name}.csv"] = csv_bytes(table)
        files[f"{name}.json"] = f"{_as_json(table.to_pylist())}\n".encode()
    listed = [name for name in NAMES if name in files or name == "README.md"]
    return files | {"README.md": "\n".join(_readme(audited, listed)).encode()}


def _as_json(value: Any) -> str:
    return json.dumps(plain_data(value), indent=1)


def _tables(audited: Audited) -> dict[str, Any]:
    """Return the tables of the pack that are not empty."""
    pa = arrow()
    tables = {"policies": estimates_table([*audited.policies.values()])}
    if audited.groups.findings:
        tables["groups"] = as_table(audited.groups.columns())
    if audited.unknown is not None:
        tables["unknown"] = as_table(audited.unknown.columns())
    rows = {
        "gaps": [*_gaps(audited)],
        "calibration": [*map(asdict, audited.calibration)],
        "drift": [*map(asdict, audited.drift)],
    }
    more = {name: pa.Table.from_pylist(plain_data(some)) for name, some in rows.items() if some}
    return tables | more


def _gaps(audited: Audited) -> Iterator[dict[str, Any]]:
    for one in audited.groups.findings:
        gap = asdict(one.corrected)
        kind = {name: gap.pop(name) for name in ("attribute", "measure")}
        found = {"answer": one.answer, "recorded": one.recorded}
        yield kind | found | gap | {"sentence": one.sentence}


# The model card


def _card(audited: Audited) -> Iterator[str]:
    """Yield the lines of the model card."""
    summary = audited.summary
    yield f"# Model card of program {escaped(summary.program)}"
    yield ""
    yield escaped(verdict(audited))
    yield from _heading("Purpose")
    purpose = audited.purpose.strip()
    yield escaped(purpose) if purpose else "Not stated; `fairchance audit --purpose` states it."
    yield from _heading("Data")
    yield from _bullets(
        [
            f"History: {people(summary.n_history)} before the first round.",
            f"Decisions: {people(summary.total('n_people'))} in "
            f"{counted(len(summary.rounds), 'round')}, {summary.total('n_accepted'):,} of them "
            f"accepted and {summary.total('n_explored'):,} of these explored.",
            f"Outcomes: {summary.outcomes.good:,} good, {summary.outcomes.bad:,} bad, "
            f"{summary.outcomes.pending:,} pending, {summary.outcomes.indeterminate:,} never to be "
            f"known.",
            f"{rounds_used(audited)} Read on {date(summary.at, time=True)}.",
        ]
    )
    yield from _heading("Settings")
    for part in settings_section(summary, audited.details).parts:
        yield from _table(part) if isinstance(part, Table) else ()
    yield from _heading("Policies in use")
    for row in summary.rounds[-1:]:
        promise = "with a certificate" if row.certified else "without a certificate"
        yield (
            f"Round {row.round}, {date(row.at)}, decided {promise} and accepted {row.n_accepted:,} "
            f"of {row.n_people:,} applicants. Every policy is stored on the ledger, and "
            f"`fairchance verify` makes its decisions again."
        )
    yield from _heading("Certificates")
    certified = certificate_section(summary)
    yield escaped(certified.brief) if certified.parts else "This method gives no certificates."
    for part in certified.parts:
        yield from _table(part) if isinstance(part, Table) else ()
    yield from _heading("Performance")
    yield from _performance(audited)
    yield from _heading("Groups")
    yield from _group_lines(audited)
    yield from _heading("Applicants that little is known about")
    found = audited.unknown
    yield escaped(found.verdict()) if found is not None else "The log has no features to tell."
    yield from _heading("What the record cannot say")
    stated = [text for one in audited.policies.values() for text in one.assumptions]
    yield from _bullets([*LIMITS, *dict.fromkeys([*stated, *audited.groups.assumptions])])
    yield from _heading("Proof")
    yield from _bullets(audited.verified)


def _heading(title: str) -> list[str]:
    return ["", f"## {title}", ""]


def _bullets(texts: Iterable[str]) -> Iterator[str]:
    return (f"- {escaped(text)}" for text in texts)


def _rows(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a table in Markdown."""
    yield f"| {' | '.join(map(escaped, titles))} |"
    yield f"|{'---|' * len(titles)}"
    for row in rows:
        yield f"| {' | '.join(map(escaped, row))} |"


def _table(part: Table) -> Iterator[str]:
    """Yield a table of a page."""
    cells = [
        [cell if isinstance(cell, str) else " ".join(cell) for cell in row] for row in part.rows
    ]
    yield from ["", *_rows(part.titles, cells), ""]


def _performance(audited: Audited) -> Iterator[str]:
    currency = audited.summary.currency
    rows = []
    for name, one in audited.policies.items():
        cells = [name]
        for measure in ("selection_rate", "false_discovery_rate", "profit"):
            row = one.of(measure)
            cells.append(f"{measured_value(row, currency)} ({measured_range(row, currency)})")
        rows.append(cells)
    yield (
        f"{DECIDED.capitalize()}: what the program itself did. Others: what they would have done, "
        f"estimated from the same decisions. In brackets: intervals that hold at all times, or "
        f"bounds."
    )
    yield ""
    yield from _rows(["Policy", "Accepted", "Bad among the accepted", "Profit per applicant"], rows)


def _group_lines(audited: Audited) -> Iterator[str]:
    found = audited.groups
    if not found.findings:
        yield "No protected attribute was compared."
        return
    rows = []
    for row in found.measured:
        if row.group:
            recorded, corrected, interval, bounds = group_texts(row)
            name = f"{GROUP_MEASURES[row.measure]}, {row.attribute} {row.group}"
            rows.append([name, recorded, f"{corrected} ({interval})", bounds])
    yield from _bullets(one.sentence for one in found.findings)
    yield ""
    yield from _rows(["Measure", "As recorded", "Corrected", "Without assumptions"], rows)


# The readme


def _readme(audited: Audited, names: Sequence[str]) -> Iterator[str]:
    """Yield the lines of the readme."""
    summary = audited.summary
    yield f"# Validation pack of program {escaped(summary.program)}"
    yield ""
    yield f"Written by `fairchance audit` on {date(summary.at, time=True)}. Begin with report.html."
    yield ""
    for name in names:
        stem, _, ending = name.partition(".")
        about = _OTHERS.get(name) or _TABLES[stem]
        same = " (the same as csv)" if stem in _TABLES and ending == "json" else ""
        yield f"- `{name}`: {about}{same}"
    yield ""
    yield "## How to check it"
    yield ""
    yield "On the ledger, or a copy of it:"
    yield ""
    yield (
        "- `fairchance verify --checkpoint checkpoint.txt` finds every change of the record since, "
        "and makes all decisions again."
    )
    yield (
        "- `fairchance audit -o again/` writes these files again; the tables are the same as long "
        "as nothing is added to the record."
    )
    yield "- `fairchance evaluate --policy 'score >= 0.85'` judges any other policy."
    yield (
        "- `fairchance export -o decisions.csv` writes every decision with its probability and "
        "outcome, to compute the estimates by hand."
    )
    yield ""
    yield "Missing numbers are empty in csv and null in JSON. Rates are shares, from 0 to 1."
    yield ""


# The folder


def check_folder(folder: Path) -> None:
    """Raise if writing a pack to a folder would replace anything but an older pack."""
    if folder.is_file():
        raise InputError(f"{str(folder)!r} is a file, and a pack is a folder; name another.")
    there = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    other = [name for name in there if name not in NAMES]
    if other:
        raise InputError(
            f"{str(folder)!r} has files that are not of a pack, such as {other[0]!r}, and a pack "
            f"replaces the whole folder; name another."
        )


def write_folder(files: Mapping[str, bytes], folder: Path) -> None:
    """Write files to a folder that appears whole or not at all; an older pack is replaced."""
    place = folder.absolute()
    with writing(folder):
        place.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=place.parent, prefix=f".{place.name}."))
        try:
            for name, content in files.items():
                (made / name).write_bytes(content)
            made.chmod(0o777 & ~umask())
            check_folder(folder)  # it may have changed meanwhile
            if place.is_dir():
                old = made.with_name(f"{made.name}.old")
                place.rename(old)
                made.rename(place)
                shutil.rmtree(old)
            else:
                made.rename(place)
        finally:
            shutil.rmtree(made, ignore_errors=True)
