"""The report of experiments: which method was best, and what the numbers are."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from secondlook import plot
from secondlook.cli.pages.page import Card, Code, Figure, Page, Part, Section, Table, render, write
from secondlook.errors import InputError
from secondlook.lab.experiments import findings, tables
from secondlook.lab.experiments.all_tables import all_tables
from secondlook.lab.experiments.certificates import certified_methods, records_of
from secondlook.lab.experiments.findings import thousands
from secondlook.lab.experiments.methods import REFERENCES
from secondlook.lab.experiments.paired_tests import FEW
from secondlook.lab.experiments.report_table import ReportTable, proportion
from secondlook.lab.experiments.results import Results
from secondlook.lab.experiments.verdict import (
    RULE,
    Standing,
    Verdict,
    find_verdict,
    money,
    rate,
)
from secondlook.words import counted, percent

__all__ = ["experiment_page", "section_ids", "write_report"]

_TITLES = {
    "german": "German credit, the paper's experiment",
    "adult-race": "Income in California by race, the paper's experiment",
    "adult-gender": "Income in California by gender, the paper's experiment",
}
_KEPT = {"green": "kept", "amber": "unclear", "red": "not kept"}
_OVER_ROUNDS = {
    "revenue": "What each method earned, round by round",
    "fdr": "Bad among the accepted, round by round, against α",
    "acceptance_rate": "Share of applicants accepted, round by round",
}
_EXPLORED = {
    "exploit_share": "Share of applicants known well enough, whom no one needs to explore",
    "explored_share": "Share of applicants explored",
}


# Pages show whole amounts and percentages; tables for papers show thousands and shares.
def _share(value: Any) -> str:
    return "–" if math.isnan(value) else f"{100 * value:.1f} %".replace("-", "−")


_FORMS: dict[Any, Any] = {thousands: money, proportion(2): _share, proportion(3): _share}
_PAPER = ("beside-the-paper", "claims-examined")


def write_report(
    results: Sequence[Results], path: Path | None, figures_dir: Path | None = None
) -> list[Path]:
    """Write one HTML file with a page for each of the results.

    Parameters
    ----------
    results
        Results, in the order of pages.
    path
        The file to write; None means that only figures are written.
    figures_dir
        Folder for figures as separate SVG and PNG files; None means no such files.

    Returns
    -------
    list of Path
        The files written, the report first.
    """
    if not results:
        raise InputError("a report needs the results of at least one experiment, got none.")
    pages = [experiment_page(name, one) for name, one in section_ids(results).items()]
    written = []
    if path is not None:
        versions = sorted({str(one.about.get("version", "?")) for one in results})
        made = f"Made by secondlook {', '.join(versions)} from recorded head counts."
        title = pages[0].title if len(pages) == 1 else "What the experiments show"
        write(render(f"{title} · secondlook", pages, made), path)
        written.append(path)
    if figures_dir is not None:
        figures_dir.mkdir(parents=True, exist_ok=True)
        for page in pages:
            for figure in _figures([page.figure, *page.sections]):
                written += plot.save(figure.chart, figures_dir / figure.id)
    return written


def _figures(parts: Sequence[Part | None]) -> Iterator[Figure]:
    for part in parts:
        if isinstance(part, Figure):
            yield part
        elif isinstance(part, Section):
            yield from _figures(part.parts)


def section_ids(results: Sequence[Results]) -> dict[str, Results]:
    """Give each of the results an id of its own."""
    sections: dict[str, Results] = {}
    for i, result in enumerate(results):
        name = str(result.about["experiment"]["name"])
        plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "results"
        sections[plain if plain not in sections else f"{plain}-{i + 1}"] = result
    return sections


def experiment_page(name: str, results: Results) -> Page:
    """Return the page of one experiment; ``name`` begins all its ids."""
    verdict, failures = find_verdict(results), findings.failures(results)
    head, comma, rest = str(results.about["experiment"]["name"]).partition(", ")
    title = _TITLES.get(head, head[:1].upper() + head[1:]) + comma + rest.replace("_", " ")
    lost = f"{counted(len(failures), 'method')} failed in some repetitions." if failures else ""
    named = (verdict.best, verdict.idle or verdict.runner_up, verdict.worst, verdict.yardstick)
    shown = list(dict.fromkeys(one.method for one in named if one is not None))
    drawn, sections, figure = _Drawn(name, results, shown), [], None
    if verdict.standings:
        caption = "What methods earned against their mistakes"
        figure = drawn("trade-off", plot.trade_off, caption, verdict.takeaway)
        sections = [
            Section("methods", "Methods", _kept(verdict), [RULE, _methods(results, verdict)]),
            _rounds(results, verdict, drawn),
            _groups(results, verdict, drawn),
            _certificate(results, verdict, drawn),
            _exploration(results, verdict, drawn),
            *_tables(results, drawn),
        ]
    sections.append(_settings(results))
    sections.append(Section("failures", "Failures", lost, [failures] if failures else []))
    return Page(
        name,
        title,
        findings.what_was_run(results),
        " ".join(text for text in (verdict.takeaway, verdict.loser, lost) if text),
        "red" if verdict.best is None else verdict.best.light,
        _cards(results, verdict),
        figure,
        [replace(section, id=f"{name}-{section.id}") for section in sections],
    )


class _Drawn:
    """Draws figures of results with the same few methods in colour."""

    def __init__(self, name: str, results: Results, shown: Sequence[str]) -> None:
        self.name, self.results, self.shown = name, results, shown

    def __call__(
        self, key: str, draw: Any, caption: str, spoken: str = "", *more: str, **options: Any
    ) -> Figure:
        options = options or {"highlight": self.shown or None}
        chart = draw(self.results, *more, **options)
        return Figure(f"{self.name}-{key}", chart, caption, spoken)


def _cards(results: Results, verdict: Verdict) -> list[Card]:
    best, sure = verdict.best, verdict.certified
    if best is None:
        return [Card("Mistakes", "above α", verdict.mistakes, "red")]
    earned, said, light = f"{money(best.earned.mean)} a round", verdict.earned, ""
    if best.share.mean > 1:
        said, light = f"{said} {_above_the_ceiling(results)}", "amber"
    elif best.share.mean > 0:
        earned = f"{rate(best.share.mean)} of the ceiling"
    cards = [
        Card("Earned", earned, said, light),
        Card("Mistakes", rate(best.mistakes.mean), verdict.mistakes, best.light),
    ]
    runs = None if sure is None else sure.certificate
    reached = runs is not None and runs.never_share < 1
    value = f"since round {runs.first_median:g}" if runs and reached else "not reached"
    light = "green" if reached else "amber" if runs else ""
    cards.append(Card("Certificate", value if runs else "none", verdict.certificate, light))
    if verdict.by_group:
        broken = [one.group for one in verdict.groups if one.light == "red"]
        kept = "α kept for all" if not broken else f"not kept for {', '.join(broken)}"
        cards.append(Card("Groups", kept, verdict.by_group, "red" if broken else "green"))
    n = verdict.repetitions
    cards.append(Card("Repetitions", f"{n}{', few' if n < FEW else ''}", verdict.precision))
    return cards


def _above_the_ceiling(results: Results) -> str:
    rows = results.about["data"]["rows"]
    if not rows or results.about["experiment"]["world"].get("n_parts"):
        return "So this reference is not an upper bound for all rules."
    return f"Rounds draw again and again from {rows:,} rows, and learners can memorise rows."


def _kept(verdict: Verdict) -> str:
    lights = Counter(one.light for one in verdict.standings if one.method not in REFERENCES)
    parts = [f"{_KEPT[light]} by {lights[light]}" for light in _KEPT if lights[light]]
    return f"α = {percent(verdict.alpha)} was {', '.join(parts)} of {sum(lights.values())} methods."


def _methods(results: Results, verdict: Verdict) -> Table:
    """Return what methods earned and their mistakes, the winner first, then by what they earned."""
    at, yardstick = results.main, verdict.yardstick
    accepted = tables.summary(results, "acceptance_rate").estimate.mean[at]
    order = sorted(verdict.standings, key=lambda one: one is not verdict.best)
    titles = ["Method", "Verdict", "Earned a round", "Mistakes", "95 % interval", "α", "Certified"]
    titles.insert(3, f"Share of “{yardstick.label}”" if yardstick else "Share")
    rows = [
        [
            one.label,
            _verdict(verdict, one),
            money(one.earned.mean),
            _share(one.share.mean),
            _share(one.mistakes.mean),
            f"{_share(one.mistakes.low)} to {_share(one.mistakes.high)}",
            _KEPT[one.light],
            _share(one.certificate.rounds_share) if one.certificate else "–",
            _share(accepted[results.methods.index(one.method)]),
        ]
        for one in order
    ]
    note = (
        f"Earned in the last {counted(verdict.late_rounds, 'round')}; mistakes in all rounds. "
        f"References know outcomes that nobody can observe. Certified: share of rounds; a dash: "
        f"the method gives no certificates."
    )
    return Table("What methods earned, and their mistakes", note, [*titles, "Accepted"], rows)


def _verdict(verdict: Verdict, one: Standing) -> str:
    if one is verdict.best or one is verdict.worst:
        return "best" if one is verdict.best else "worst"
    return "reference" if one.method in REFERENCES else ""


def _rounds(results: Results, verdict: Verdict, drawn: _Drawn) -> Section:
    best = verdict.best or verdict.standings[0]
    earned = tables.series(results, "revenue").mean[
        results.main, results.methods.index(best.method)
    ]
    brief = (
        f"{best.label} earned {money(earned[0])} in round 1 and {money(earned[-1])} in the last."
    )
    figures = [
        drawn(metric, plot.metric, caption, brief, metric)
        for metric, caption in _OVER_ROUNDS.items()
    ]
    advice = "Choose a method in the legend to see it alone, with its 95 % interval."
    return Section(
        "rounds",
        "Rounds",
        brief,
        [*findings.round_findings(results, best.method), advice, *figures],
    )


def _groups(results: Results, verdict: Verdict, drawn: _Drawn) -> Section:
    if len(results.groups) < 2 or verdict.best is None:
        return Section("groups", "Groups")
    caption = "Acceptance and mistakes by group, with 95 % intervals"
    said = findings.group_findings(results, verdict.best.method)
    figure = drawn("by-group", plot.groups, caption, verdict.by_group)
    return Section("groups", "Groups", verdict.by_group, [*said, figure])


def _certificate(results: Results, verdict: Verdict, drawn: _Drawn) -> Section:
    parts: list[Part] = []
    for one in verdict.standings:
        records = records_of(results, one.method, results.main)
        if one.method not in certified_methods(results):
            continue
        said: list[Part] = [verdict.certificate_of(one)]
        said += findings.certificate_findings(results, one.method)
        if records:
            caption = "The share of applicants with a certificate, and evidence for the next step"
            key = f"certificate-{one.method}"
            said.append(
                drawn(key, plot.certificate, f"{caption} (first repetition)", method=one.method)
            )
        if any(rounds[-1]["curve"] for rounds in records.values()):
            caption = "What would be earned with another α (first repetition)"
            said.append(drawn(f"curve-{one.method}", plot.curve, caption, method=one.method))
        parts.append(Section(f"{drawn.name}-of-{one.method}", one.label, "", said))
    return Section("certificate", "Certificate", verdict.certificate, parts)


def _exploration(results: Results, verdict: Verdict, drawn: _Drawn) -> Section:
    said: list[Part] = list(findings.exploration_findings(results))
    brief = "No one was explored."
    if results.count("n_explored").any():
        said += [
            drawn(metric, plot.metric, caption, "", metric) for metric, caption in _EXPLORED.items()
        ]
        best = verdict.best or verdict.standings[0]
        share, bad = (
            tables.summary(results, name).estimate.mean[
                results.main, results.methods.index(best.method)
            ]
            for name in ("explored_share", "pooled_explored_fdr")
        )
        brief = f"{best.label} explored {rate(share)} of applicants, of whom {rate(bad)} were bad."
        brief = brief if share > 0 else f"{best.label} explored no one."
    return Section("exploration", "Exploration", brief, said)


def _tables(results: Results, drawn: _Drawn) -> Iterator[Section]:
    """Yield the sections about the paper and about what was varied, and the other tables."""
    made = {table.name: table for table in all_tables(results)}
    said: list[Part] = list(findings.paper_findings(results))
    claims = Counter(row["verdict"] for row in getattr(made.get(_PAPER[1]), "rows", ()))
    if results.about["experiment"]["published"] is not None:
        examined = ", ".join(f"{n} {verdict}" for verdict, n in claims.items())
        reasons = [text for name in made for text in made[name].remarks if name.startswith("over")]
        said += [reasons] if reasons else []
        said += [_table(made.pop(key)) for key in _PAPER if key in made]
        brief = f"{counted(claims.total(), 'test')} of the paper's claims: {examined or 'none'}."
        yield Section("paper", "The paper", brief, said)
    if len(results.settings) > 1:
        found = findings.varied_findings(results)
        caption = f"Results for each value of {results.varied}"
        figure = drawn("settings", plot.by_setting, caption)
        own = [_table(made.pop(key)) for key in list(made) if "-by-" in key]
        yield Section("varied", "What was varied", found[0], [*found, figure, *own])
    rest = [_table(table) for table in made.values()]
    yield Section("tables", "All tables", f"{counted(len(rest), 'table')} of details.", rest)


def _table(table: ReportTable) -> Table:
    columns = [replace(column, form=_form(column.form)) for column in table.columns]
    shown = replace(table, columns=columns)
    rows: list[list[str | tuple[str, str]]] = [
        [cells[0][0], *cells[1:]]
        for cells in (shown.cells(row, labelled=True) for row in table.rows)
    ]
    note = f"{table.setting}. {table.note}".replace("thousands a round", "a round")
    prose = [i for i, column in enumerate(columns) if i and column.form is None]
    return Table(table.title, note, [column.title for column in columns], rows, prose)


def _form(form: Any) -> Any:
    if isinstance(form, Mapping):
        return {name: _FORMS.get(one, one) for name, one in form.items()}
    return _FORMS.get(form, form)


def _settings(results: Results) -> Section:
    data, seed = results.about["data"], results.about["experiment"]["seed"]
    rows = f"{data['rows']:,} applicants" if data["rows"] else "a synthetic population"
    brief = f"Data “{data['name']}”, {rows}; groups {findings.listed(results.groups)}."
    parts: list[Part] = [str(data["source"]), findings.settings(results)]
    parts += [
        f"The seed of the experiment is {seed}. Equal data have this fingerprint:",
        Code(str(data["fingerprint"])),
    ]
    return Section("settings", "Data and settings", brief, parts)
