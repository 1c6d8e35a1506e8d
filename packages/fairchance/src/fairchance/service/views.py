"""The views of the dashboard: sections of the reports, and the files of applicants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from urllib.parse import quote

from fairchance import audit
from fairchance.errors import UnknownIdError
from fairchance.ledger.applicant import applicant_file, newest_decisions
from fairchance.ledger.decision_log import decision_log_of
from fairchance.ledger.health import Check, check_health
from fairchance.ledger.keys import keys_of
from fairchance.ledger.summary import Details, Summary, read_details
from fairchance.ledger.view import ProgramView
from fairchance.pages.audit import groups_section
from fairchance.pages.page import Link, Page, PageTable, Section, render_article, unchecked
from fairchance.pages.program import (
    events_section,
    first_screen,
    program_sections,
    rounds_section,
)
from fairchance.words import percent
from fairchance.words.applicants import file_facts, file_title, how_decided

__all__ = ["VIEWS", "Moment", "applicant_html", "read_gaps", "read_state", "view_html"]

# The title of each view, and the addresses of its sections in the report.
VIEWS = {
    "overview": ("Overview", ("attention",)),
    "months": ("Months and certificate", ("money", "certificate")),
    "groups": ("Groups", ("groups",)),
    "draws": ("Draws and take-up", ("draws", "exploration")),
    "data": ("Data checks", ("data",)),
    "rounds": ("Rounds", ("rounds", "pending")),
    "events": ("Events", ("events", "settings", "proof")),
}
_LATE = 180.0  # days, as ``fairchance status`` has it
_NEWEST, _LISTED = 20, timedelta(days=365)  # decisions that are listed, of rounds so far back
_LATEST = 8  # events of the overview
_NOTHING = Section("nothing", "Nothing yet", "", ["There is nothing to show yet."])


@dataclass(frozen=True)
class Moment:
    """A program at one moment."""

    summary: Summary
    details: Details
    checks: list[Check]


def read_state(view: ProgramView) -> Moment:
    """Return what views are made of."""
    summary = view.summary()
    details = read_details(view.program.ledger, summary, reasons=False)
    names = {key.id: f"{key.name} (key {key.id})" for key in keys_of(view.reader)}
    changes, outcomes = (
        tuple(replace(one, by=names.get(one.by, one.by)) for one in some)
        for some in (summary.changes, details.outcomes)
    )
    rounds = tuple(replace(row, by=names.get(row.by, row.by)) for row in summary.rounds)
    summary = replace(summary, changes=changes, rounds=rounds)
    details = replace(details, outcomes=outcomes)
    return Moment(summary, details, check_health(summary, _LATE))


def read_gaps(view: ProgramView) -> Section:
    """Return what is true of groups, corrected for selection."""
    if not any(batch.people_range for batch in view.reader.entries(kind="batch")):
        return _NOTHING
    log = decision_log_of(view.reader, view.settings, features=False)
    if not log.known.any() or not log.groups:
        return _NOTHING
    complete = bool((log.round <= log.last_complete_round).any())
    section = groups_section(audit.groups(log, pending="cut" if complete else "worst"))
    title = "Corrected for selection, and without assumptions"
    return replace(section, id="corrected", title=title)


@unchecked
def view_html(state: Moment, name: str, more: Sequence[Section] = ()) -> str:
    """Return a view, with further sections."""
    title, wanted = VIEWS[name]
    known = program_sections(state.summary, state.details, state.checks, _LATE)
    sections = [*(known[one]() for one in wanted if one in known), *more]
    sections = [one for one in sections if one.parts] or [_NOTHING]
    page = first_screen(state.summary, state.checks, _LATE)
    if name == "overview":
        sections += _latest(state)
    else:
        page = Page("view", f"{page.title}: {title}", page.about, "", "")
    return render_article(replace(page, sections=[replace(one, open=True) for one in sections]))


def _latest(state: Moment) -> list[Section]:
    """Return what an overview shows of rounds and events."""
    summary = state.summary
    rounds = [rounds_section(summary, brief_only=True)] if summary.rounds else []
    latest = events_section(summary, state.details, _LATEST)
    sections = program_sections(summary, state.details, state.checks, _LATE)
    pending = [sections["pending"]()] if summary.rounds else []
    return [one for one in (*rounds, latest, *pending) if one.parts]


def applicant_html(view: ProgramView, application: str) -> str:
    """Return the file of an application; the newest decisions if none is named."""
    name = view.program.name
    if not application:
        page = Page("newest", f"Program {name}: decisions", "", "", "", sections=[_newest(view)])
        return render_article(page)
    try:
        file = applicant_file(view, application)
    except UnknownIdError as error:
        return render_article(Page("file", f"Application {application}", str(error), "", ""))
    table = PageTable("On record", "", ["What", "Content"], [*file_facts(file)], prose=[1])
    section = Section("record", "File", f"{len(table.rows)} facts", [table], open=True)
    return render_article(Page("file", file_title(file, name), "", "", "", sections=[section]))


def _newest(view: ProgramView) -> Section:
    since = view.program.ledger.clock() - _LISTED
    rows = [*_decision_rows(newest_decisions(view, since, most=_NEWEST)[0])]
    titles = ["Application", "Decision", "How", "Chance", "In force", "Outcome", "Round"]
    table = PageTable("Decisions", "The newest first; each leads to its file.", titles, rows)
    return Section("decisions", "Newest decisions", f"{len(rows)}", [table], open=True)


def _decision_rows(decisions: Sequence[dict[str, Any]]) -> Iterator[list[str | Link]]:
    for one in decisions:
        yield [
            Link(str(one["id"]), f"#/applicant/{quote(str(one['id']), safe='')}"),
            one["decision"],
            how_decided(one),
            percent(one["propensity"]),
            "accepted" if one["accepted"] else "rejected",
            one["outcome"] or "–",
            f"{one['round']}",
        ]
