"""The report of experiments: which method was best, and what the numbers are."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from fairchance.cli.pages.page import (
    Card,
    Code,
    Figure,
    Page,
    Part,
    Section,
    Table,
    render,
    unchecked,
    write,
)
from fairchance.errors import InputError
from fairchance.plot import save
from fairchance.words import LIGHTS, counted, percent
from fairchance_lab import plot
from fairchance_lab.experiments import findings, tables
from fairchance_lab.experiments.all_tables import all_tables
from fairchance_lab.experiments.certificates import records_of
from fairchance_lab.experiments.comparison import CEILING
from fairchance_lab.experiments.findings import thousands
from fairchance_lab.experiments.methods import REFERENCES
from fairchance_lab.experiments.paired_tests import FEW
from fairchance_lab.experiments.report_table import ReportTable, proportion
from fairchance_lab.experiments.results import Results
from fairchance_lab.experiments.verdict import RULE, Verdict, find_verdict, money, rate

__all__ = ["experiment_page", "section_ids", "write_report"]

_TITLES = {
    "german": "German credit, the paper's experiment",
    "adult-race": "Income in California by race, the paper's experiment",
    "adult-gender": "Income in California by gender, the paper's experiment",
}
_MOST_GROUPS = 4  # with a figure each
_KEPT = {"green": "kept", "amber": "unclear", "red": "not kept"}
_IN_GROUPS = {"green": "all below α", "amber": "close to α"}
_BY = {"green": "kept by", "amber": "unclear for", "red": "not kept by"}
_OVER_ROUNDS = {
    "revenue": "What each method earned, round by round",
    "fdr": "Bad among the accepted, round by round, against α",
    "acceptance_rate": "Share of applicants accepted, round by round",
}
_EXPLORED = {
    "exploit_share": "Share of applicants known well enough, so that they need not be explored",
    "explored_share": "Share of applicants explored",
}


def _share(value: Any) -> str:
    return "–" if math.isnan(value) else f"{100 * value:.1f} %".replace("-", "−")


# Pages show whole amounts and percentages; tables for papers show thousands and shares.
_FORMS: dict[Any, Any] = {thousands: money, proportion(2): _share, proportion(3): _share}


@unchecked
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
        made = f"Made by fairchance {', '.join(versions)} from recorded head counts."
        title = pages[0].title if len(pages) == 1 else "What the experiments show"
        write(render(f"{title} · fairchance", pages, made), path)
        written.append(path)
    if figures_dir is not None:
        figures_dir.mkdir(parents=True, exist_ok=True)
        for page in pages:
            for figure in _figures([page.figure, *page.sections]):
                written += save(figure.chart, figures_dir / figure.id)
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
    return _Experiment(name, results, find_verdict(results)).page()


@dataclass(frozen=True)
class _Experiment:
    """Builds the page of results."""

    name: str
    results: Results
    verdict: Verdict

    def page(self) -> Page:
        verdict, failures = self.verdict, findings.failures(self.results)
        head, comma, rest = str(self.results.about["experiment"]["name"]).partition(", ")
        title = _TITLES.get(head, head[:1].upper() + head[1:]) + comma
        title += rest.replace("_", " ").replace("alpha", "α")
        lost = f"{counted(len(failures), 'method')} failed in some repetitions." if failures else ""
        sections, figure = [], None
        if verdict.standings:
            caption = "What methods earned in the last quarter of the rounds, and their mistakes"
            figure = self.drawn("trade-off", plot.trade_off, caption, verdict.takeaway)
            sections = [self.methods(), self.rounds(), self.groups(), self.certificate()]
            sections += [self.exploration(), *self.tables()]
        sections += [
            self.settings(),
            Section("failures", "Failures", lost, [failures][: len(lost)]),
        ]
        return Page(
            self.name,
            title,
            findings.what_was_run(self.results),
            " ".join(filter(None, (verdict.takeaway, verdict.in_groups, verdict.loser, lost))),
            "red" if verdict.best is None else verdict.best.light,
            self.cards(),
            figure,
            [replace(section, id=f"{self.name}-{section.id}") for section in sections],
        )

    def drawn(
        self, key: str, draw: Any, caption: str, spoken: str, *what: str, **options: Any
    ) -> Figure:
        """Draw a figure, with the methods in colour that the verdict is about."""
        v = self.verdict
        named = (v.best, v.idle or v.runner_up, v.worst, v.yardstick)
        shown = list(dict.fromkeys(one.method for one in named if one is not None))
        chart = draw(self.results, *what, **(options or {"highlight": shown}))
        return Figure(f"{self.name}-{key}", chart, caption, spoken)

    def mean(self, metric: str, method: str) -> float:
        means = tables.summary(self.results, metric).estimate.mean
        return float(means[self.results.main, self.results.methods.index(method)])

    def cards(self) -> list[Card]:
        verdict = self.verdict
        best = verdict.best
        if best is None:
            return [Card("Mistakes", "above α", verdict.mistakes, "red")]
        earned, said, light = f"{money(best.earned.mean)} a round", verdict.earned, ""
        if best.share.mean > 1:
            rows = self.results.about["data"]["rows"]
            why = f"Draws from {rows:,} rows repeat them, and methods can memorise them."
            said, light = (
                f"{said} {why if rows else 'It is no upper bound for all rules.'}",
                "amber",
            )
        elif best.share.mean > 0 and verdict.yardstick is not None:
            of = "the ceiling" if verdict.yardstick.method == CEILING else "the reference"
            earned = f"{rate(best.share.mean)} of {of}"
        cards = [
            Card("Earned", earned, said, light),
            Card("Mistakes", rate(best.mistakes.mean), verdict.mistakes, best.light),
        ]
        runs, value, light = best.certificate, "none", ""
        if runs is not None:
            value, light = "not reached", "amber"
            if runs.never_share < 1:
                value, light = f"since round {runs.first_median:g}", "green"
        cards.append(Card("Certificate", value, verdict.certificate, light))
        if verdict.by_group:
            broken = [one.group for one in verdict.groups if one.light == "red"]
            light = min((one.light for one in verdict.groups), key=LIGHTS.index)
            kept = f"{', '.join(broken)} above α" if broken else _IN_GROUPS[light]
            cards.insert(2, Card("Groups", kept, verdict.by_group, light))
        n = verdict.repetitions
        cards.append(Card("Repetitions", f"{n}{', few' if n < FEW else ''}", verdict.precision))
        return cards

    def methods(self) -> Section:
        """Show all methods, the winner first, then by what they earned."""
        verdict = self.verdict
        lights = Counter(one.light for one in verdict.standings if one.method not in REFERENCES)
        kept = ", ".join(f"{_BY[light]} {lights[light]}" for light in _BY if lights[light])
        brief = f"α = {percent(verdict.alpha)}: {kept} of {lights.total()} methods."
        notes = dict.fromkeys(REFERENCES, "reference")
        notes |= {one.method: "worst" for one in [verdict.worst] if one}
        notes |= {one.method: "best" for one in [verdict.best] if one}
        titles = ["Method", "Verdict", "Earned a round", "Share", "Mistakes", "α"]
        if verdict.yardstick is not None:
            titles[3] = f"Share of “{verdict.yardstick.label.partition(': ')[0]}”"
        rows: list[list[str | tuple[str, str]]] = [
            [
                one.label,
                notes.get(one.method, ""),
                money(one.earned.mean),
                _share(one.share.mean),
                (
                    _share(one.mistakes.mean),
                    f"{_share(one.mistakes.low)} to {_share(one.mistakes.high)}",
                ),
                _KEPT[one.light],
                _share(one.certificate.rounds_share) if one.certificate else "–",
                _share(self.mean("acceptance_rate", one.method)),
            ]
            for one in sorted(verdict.standings, key=lambda one: one is not verdict.best)
        ]
        note = (
            f"Earned in the last {counted(verdict.late_rounds, 'round')}; mistakes in all rounds, "
            f"with 95 % intervals. "
            f"References know outcomes that cannot be observed. Certified: share of rounds; a "
            f"dash: the method gives no certificates."
        )
        titles += ["Certified", "Accepted"]
        table = Table("What methods earned, and their mistakes", note, titles, rows)
        return Section("methods", "Methods", brief, [RULE, table])

    def rounds(self) -> Section:
        best = self.verdict.best or self.verdict.standings[0]
        at, i = self.results.main, self.results.methods.index(best.method)
        earned = tables.series(self.results, "revenue").mean[at, i]
        ends = [money(value) for value in (earned[0], earned[-1])]
        brief = f"“{best.label}” earned {ends[0]} in round 1 and {ends[1]} in the last."
        said = findings.past_findings(self.results)
        said.append("Choose a method in the legend to see it alone, with its 95 % interval.")
        figures = [
            self.drawn(metric, plot.metric, caption, brief, metric)
            for metric, caption in _OVER_ROUNDS.items()
        ]
        return Section("rounds", "Rounds", brief, [*said, *figures])

    def groups(self) -> Section:
        brief = self.verdict.by_group
        if self.verdict.best is None or not brief:
            return Section("groups", "Groups")
        caption = "Acceptance and mistakes by group, with 95 % intervals"
        figures = [self.drawn("by-group", plot.groups, caption, brief)]
        for i, group in enumerate(self.results.groups[:_MOST_GROUPS]):
            caption = f"{group}: share of the good applicants who were accepted, round by round"
            draw = partial(plot.metric, group=group)
            figures.append(self.drawn(f"good-{i}", draw, caption, brief, "true_positive_rate"))
        return Section("groups", "Groups", brief, figures)

    def certificate(self) -> Section:
        parts: list[Part] = []
        for one in self.verdict.standings:
            if one.certificate is None:
                continue
            brief, method = self.verdict.certificate_of(one), one.method
            said: list[Part] = [brief, *findings.certificate_findings(self.results, method)]
            records = records_of(self.results, method, self.results.main)
            if records:
                caption = "Share of applicants with a certificate, and evidence for the next step"
                key, draw = f"certificate-{method}", plot.certificate
                said.append(self.drawn(key, draw, f"{caption} (first run)", brief, method=method))
            if any(rounds[-1]["curve"] for rounds in records.values()):
                caption = "What the last certified round would earn with another α (first run)"
                said.append(self.drawn(f"curve-{method}", plot.curve, caption, "", method=method))
            parts.append(Section(f"{self.name}-of-{method}", one.label, "", said))
        return Section("certificate", "Certificate", self.verdict.certificate, parts)

    def exploration(self) -> Section:
        best = self.verdict.best or self.verdict.standings[0]
        said: list[Part] = [*filter(None, [self.verdict.exploration])]
        said += findings.exploration_findings(self.results)
        brief = f"“{best.label}” explored no one."
        if best.explored:
            share, bad = (
                rate(self.mean(name, best.method))
                for name in ("explored_share", "pooled_explored_fdr")
            )
            brief = f"“{best.label}” explored {share} of applicants, of whom {bad} were bad."
        if self.results.count("n_explored").any():
            said += [
                self.drawn(metric, plot.metric, caption, brief, metric)
                for metric, caption in _EXPLORED.items()
            ]
        return Section("exploration", "Exploration", brief, said)

    def tables(self) -> Iterator[Section]:
        """Yield the sections about the paper and about what was varied, and the other tables."""
        made = {table.name: table for table in all_tables(self.results)}
        said: list[Part] = list(findings.paper_findings(self.results))
        if self.results.about["experiment"]["published"] is not None:
            reasons = [text for key in made for text in made[key].remarks if key[:4] == "over"]
            said += [reasons] if reasons else []
            claims = made.get("claims-examined")
            verdicts = Counter(row["verdict"] for row in claims.rows) if claims else Counter()
            found = ", ".join(f"{n} {word}" for word, n in verdicts.items()) or "none"
            brief = f"{counted(verdicts.total(), 'test')} of the paper's claims: {found}."
            own = ("beside-the-paper", "claims-examined")
            said += [_table(made.pop(key)) for key in own if key in made]
            yield Section("paper", "The paper", brief, said)
        if len(self.results.settings) > 1:
            varied = self.results.varied
            brief = f"{len(self.results.settings)} values of {varied}."
            caption = f"Results for each value of {varied}"
            figure = self.drawn("settings", plot.by_setting, caption, brief)
            beside = [_table(made.pop(key)) for key in list(made) if "-by-" in key]
            caveat = f"The best of several values of {varied} looks a little better than it is."
            parts: list[Part] = [figure, *beside] if varied == "α" else [caveat, figure, *beside]
            yield Section("varied", "What was varied", brief, parts)
        rest = [_table(table) for table in made.values()]
        yield Section("tables", "All tables", f"{counted(len(rest), 'table')} of details.", rest)

    def settings(self) -> Section:
        data, seed = self.results.about["data"], self.results.about["experiment"]["seed"]
        rows = f"{data['rows']:,} applicants" if data["rows"] else "a synthetic population"
        brief = f"Data “{data['name']}”, {rows}; groups {findings.listed(self.results.groups)}."
        parts: list[Part] = [str(data["source"]), findings.settings(self.results)]
        parts.append(f"The seed of the experiment is {seed}. Equal data have this fingerprint:")
        return Section("settings", "Data and settings", brief, [*parts, Code(data["fingerprint"])])


def _table(table: ReportTable) -> Table:
    columns = [replace(column, form=_form(column.form)) for column in table.columns]
    shown = replace(table, columns=columns)
    rows: list[list[str | tuple[str, str]]] = [
        [name, *values]
        for (name, _), *values in (shown.cells(row, labelled=True) for row in table.rows)
    ]
    note = f"{table.setting}. {table.note}".replace("thousands a round", "a round")
    prose = [i for i, column in enumerate(columns) if i and column.form is None]
    return Table(table.title, note, [column.title for column in columns], rows, prose)


def _form(form: Any) -> Any:
    if isinstance(form, Mapping):
        return {name: _FORMS.get(one, one) for name, one in form.items()}
    return _FORMS.get(form, form)
