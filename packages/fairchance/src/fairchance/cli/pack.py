"""The files of a validation pack: report, model card, tables, proof and readme."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fairchance.cli.commands.verify import as_data as verification_data
from fairchance.cli.evaluations import as_table, estimates_table
from fairchance.cli.files.csv_files import csv_bytes
from fairchance.cli.files.excel import MOST_ROWS, xlsx_bytes
from fairchance.cli.files.tables import umask
from fairchance.errors import InputError, visible, writing
from fairchance.extras import arrow
from fairchance.ledger.config import GOVERNANCE
from fairchance.pages.audit import LIMITS, Audited, audit_html, rounds_used, stated, verdict
from fairchance.pages.page import PageTable
from fairchance.pages.program import certificate_section, settings_section
from fairchance.words import counted, date, people, plain_data
from fairchance.words.audits import MEASURES, finding, group_cells, measured_range, measured_value
from fairchance.words.rounds import surely

__all__ = ["NAMES", "check_folder", "files_of", "write_folder"]

_TABLES = {
    "policies.csv": "every estimate of every policy: measure, estimator, interval, bounds",
    "groups.csv": "every measure of every group: as recorded, corrected, without assumptions",
    "gaps.csv": "how far groups are apart, and whether that is real or selection",
    "unknown.csv": "slices of applicants, with outcomes and what learning would cost",
    "calibration.csv": "recorded scores against the share of good outcomes",
    "drift.csv": "scores, acceptances and mistakes by round",
    "decisions.csv": "every decision with its outcome; explored: region explore and accepted; "
    "drawn: in a draw of fixed size (Algorithm 1), not by a coin of one's own",
    "certificates.csv": "each certificate, with the rungs it rests on and the evidence it needs",
    "bets.csv": "the tests behind certificates: what was bet on each rung in each round",
    "chances.csv": "the tests behind certificates: who was accepted, with which chances",
}
_OTHERS = {
    "README.txt": "this list",
    "report.html": "the audit for readers: verdict, charts, tables, limits; it needs no network",
    "model_card.txt": "purpose, data, settings, performance, groups and limits",
    "verify.json": "the result of fairchance verify as data",
    "verify.txt": "the same in words, with the statement about groups",
    "checkpoint.txt": "the end of the chain that this audit read",
    "decisions.xlsx": "decisions.csv for spreadsheets",
}
NAMES = (*_OTHERS, *_TABLES)


def files_of(audited: Audited) -> dict[str, bytes]:
    """Return the content of each file of the pack."""
    texts = {
        "report.html": audit_html(audited),
        "model_card.txt": _text(_card(audited)),
        "verify.json": json.dumps(plain_data(verification_data(audited.verification)), indent=1),
        "verify.txt": _text(audited.verified),
    }
    if audited.checkpoint is not None:
        texts["checkpoint.txt"] = audited.checkpoint
    files = {name: f"{text.rstrip()}\n".encode() for name, text in texts.items()}
    files |= {name: csv_bytes(table) for name, table in _tables(audited).items()}
    if audited.decisions.num_rows < MOST_ROWS:
        files["decisions.xlsx"] = xlsx_bytes(audited.decisions)
    return files | {"README.txt": _text(_readme(audited, {"README.txt", *files})).encode()}


def _text(lines: Iterable[str]) -> str:
    """Return lines of which none can forge another, whatever names are in them."""
    return "".join(f"{visible(line)}\n" for line in lines)


def _tables(audited: Audited) -> dict[str, Any]:
    """Return the tables of the pack that are not empty."""
    pa = arrow()
    tables = {"policies.csv": estimates_table([*audited.policies.values()])}
    tables["decisions.csv"] = audited.decisions
    trail = audited.trail
    parts = {"certificates": trail.certificates, "bets": trail.bets, "chances": trail.chances}
    tables |= {f"{name}.csv": table for name, table in parts.items() if table is not None}
    if audited.groups.findings:
        tables["groups.csv"] = as_table(audited.groups.columns())
    if audited.unknown is not None:
        tables["unknown.csv"] = as_table(audited.unknown.columns())
    rows = {
        "gaps.csv": [*_gaps(audited)],
        "calibration.csv": [*map(asdict, audited.calibration)],
        "drift.csv": [*map(asdict, audited.drift)],
    }
    more = {name: pa.Table.from_pylist(plain_data(some)) for name, some in rows.items() if some}
    return tables | more


def _gaps(audited: Audited) -> Iterator[dict[str, Any]]:
    for one in audited.groups.findings:
        gap = asdict(one.corrected)
        kind = {name: gap.pop(name) for name in ("attribute", "measure")}
        yield kind | {"answer": one.answer, "reason": one.reason, "recorded": one.recorded} | gap


# The model card


def _card(audited: Audited) -> Iterator[str]:
    """Yield the lines of the model card."""
    summary, currency = audited.summary, audited.summary.currency
    yield f"Model card of program {summary.program}"
    yield ""
    yield verdict(audited)
    yield from _section("Purpose", [audited.purpose.strip() or "Not stated."])
    stated_by = {name: summary.about.get(name, "not stated") for name in GOVERNANCE}
    lines = [f"{name.replace('_', ' ').capitalize()}: {who}" for name, who in stated_by.items()]
    yield from _section("Responsibility", lines)
    outcomes = summary.outcomes
    yield from _section(
        "Data",
        [
            f"History: {people(summary.n_history)} before the first round.",
            f"Decisions: {people(summary.total('n_people'))} in "
            f"{counted(len(summary.rounds), 'round')}, {summary.total('n_accepted'):,} of them "
            f"accepted: {summary.total('n_exploited'):,} {surely(summary.records)}, "
            f"{summary.total('n_explored'):,} explored.",
            f"Outcomes: {outcomes.good:,} good, {outcomes.bad:,} bad, {outcomes.pending:,} "
            f"pending, {outcomes.withdrawn:,} withdrawn, {outcomes.not_taken:,} not taken.",
            f"{rounds_used(audited)} Read on {date(summary.at, time=True)}.",
        ],
    )
    yield from _section("Settings", _rows(settings_section(summary, audited.details).parts))
    certified = certificate_section(summary)
    said = [part for part in certified.parts if isinstance(part, str)]
    lines = [certified.brief, *said, *_rows(certified.parts)] if certified.parts else ["None."]
    yield from _section("Certificates", lines)
    yield from _section(
        "Performance, with intervals at all times or bounds",
        [
            f"{name}, {MEASURES[row.measure]}: {measured_value(row, currency)} "
            f"({measured_range(row, currency)})"
            for name, one in audited.policies.items()
            for row in one.measured
        ],
    )
    yield from _section("Groups", _group_lines(audited) or ["No protected attribute was compared."])
    found = audited.unknown
    lines = ["The log has no features to tell." if found is None else found.verdict()]
    yield from _section("Applicants that little is known about", lines)
    yield from _section("What the record cannot say", [*LIMITS, *stated(audited)])
    yield from _section("Proof", audited.verified)


def _section(title: str, lines: Iterable[str]) -> list[str]:
    return ["", title, "-" * len(title), *(f"- {line}" for line in lines)]


def _rows(parts: Iterable[Any]) -> list[str]:
    """Return the rows of a page's tables."""
    return [
        ", ".join(cell if isinstance(cell, str) else " ".join(cell) for cell in row)
        for part in parts
        if isinstance(part, PageTable)
        for row in ([] if len(part.titles) == 2 else [part.titles], *part.rows)
        if row
    ]


def _group_lines(audited: Audited) -> list[str]:
    lines = [finding(one) for one in audited.groups.findings]
    for row in audited.groups.measured:
        if row.group:
            recorded, corrected, interval, bounds = group_cells(row)
            name = f"{MEASURES[row.measure]}, {row.attribute} {row.group}"
            lines.append(
                f"{name}: {corrected} ({interval}); as recorded {recorded}; without assumptions "
                f"{bounds}"
            )
    return lines


def _readme(audited: Audited, names: Collection[str]) -> Iterator[str]:
    """Yield the lines of the readme."""
    summary, about = audited.summary, _OTHERS | _TABLES
    yield f"Validation pack of program {summary.program}"
    yield ""
    yield f"Written by fairchance audit on {date(summary.at, time=True)}. Begin with report.html."
    yield ""
    yield from (f"{name}: {about[name]}" for name in NAMES if name in names)
    yield ""
    yield "To check it, on the ledger or a copy of it, such as sqlite:///copy.db for LEDGER:"
    yield "fairchance verify LEDGER" + " --checkpoint checkpoint.txt" * ("checkpoint.txt" in names)
    yield "fairchance audit LEDGER -o again/"
    yield "fairchance evaluate LEDGER --policy 'score >= 0.85'"
    yield "fairchance export LEDGER -o decisions.csv"
    yield ""
    yield "Missing numbers are empty. Rates are shares, from 0 to 1."
    if "chances.csv" in names:
        yield from _RECOMPUTED
    elif "bets.csv" in names:
        yield ""
        yield "Chances of so many applicants fit in no spreadsheet, so chances.csv is left out."
        yield "fairchance verify LEDGER --relearn repeats every test."


_RECOMPUTED = """
A certificate, recomputed with plain sums. It rests on every rung from walk_from to rung in
certificates.csv. For each of these:
1. Take the rows of its ladder in chances.csv, up to through_round, and in bets.csv those of the
   ladder and rung. In a round without such a row nothing was bet; leave it out.
2. For each applicant, with the chance in the column of the rung:
   z4 = accepted * min(chance / logged_chance, 4) * (alpha - bad)
        - (1 - alpha) * max(chance - 4 * logged_chance, 0)
   and z8 with 8 for 4. If there is a column person, sum z over the rows of a person in a round.
3. Of each column bet4_... of the round, ln(1 + bet * z4), and of bet8_... with z8. Sum these over
   the applicants of all rounds so far, and others4_... or others8_... over these rounds: the logs
   of wealth. Others are the rejected of a round, as a sum, less what it may cost that its outcomes
   share a shock.
4. The evidence is ln of the mean of the exp of these logs; the largest over rounds counts, and has
   to be at least -ln(delta_part). In bets.csv, evidence is the one after the round.
A bet rests on the policies alone, which were frozen before the round. No outcome can ruin it:
   (1 - alpha) * bet * (min(chance / logged_chance, 4) + max(chance - 4 * logged_chance, 0))
is at most 0.95 in every row of the round, and the same with 8. fairchance verify LEDGER --relearn
recomputes bets and others from the record. If there is a column not_recomputed, it says why a
certificate is not among the rows.
""".rstrip().split("\n")


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
