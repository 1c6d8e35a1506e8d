"""The report of experiments: which method was best, and what the numbers are."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from fairchance.errors import InputError
from fairchance.pages.page import (
    Card,
    Figure,
    Page,
    PageTable,
    Part,
    Section,
    render,
    unchecked,
    write,
)
from fairchance.plot import save
from fairchance.simulate.streams import repeated_rows_remarks
from fairchance.words import LIGHTS, counted, percent
from fairchance_lab import plot
from fairchance_lab.experiments import tables, words
from fairchance_lab.experiments.all_tables import all_tables
from fairchance_lab.experiments.certificates import records_of
from fairchance_lab.experiments.comparison import CEILING
from fairchance_lab.experiments.methods import ASSUMPTIONS, REFERENCES
from fairchance_lab.experiments.paired_tests import FEW
from fairchance_lab.experiments.report_table import ReportTable, proportion, thousands
from fairchance_lab.experiments.results import Results
from fairchance_lab.experiments.spec import written
from fairchance_lab.experiments.verdict import Verdict, find_past, find_verdict
from fairchance_lab.experiments.words import listed, money, rate, with_interval
from fairchance_lab.paper.published import ALPHA, paper_data
from fairchance_lab.paper.released import SWITCHES, count_deviations

__all__ = ["experiment_page", "section_ids", "write_report"]

_TITLES = {
    "german": "German credit, the paper's experiment",
    "adult-race": "Income in California by race, the paper's experiment",
    "adult-gender": "Income in California by gender, the paper's experiment",
}
_RULE = (
    "Best is the method that earned most in the last quarter of the rounds, of those that know "
    "only what can be observed and whose mistakes are not measurably above α. Worst is the method "
    "with most mistakes of those measurably above α or, if there are none, that earned least."
)
_SETTINGS = ("world", "goal", "classifier", "variants", "vary", "switches", "seed")
_MOST_GROUPS = 4  # with a figure each
_KEPT = {"green": "kept", "amber": "unclear", "red": "not kept"}
_IN_GROUPS = {"green": "all below α", "amber": "unclear"}
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
        verdict, failures = self.verdict, list(words.failures(self.results))
        name, varied = str(self.results.about["experiment"]["name"]), self.results.varied
        title = _TITLES.get(name, name[:1].upper() + name[1:])
        title += f", {varied} varied" if varied else ""
        takeaway = words.takeaway(verdict)
        lost = f"{counted(len(failures), 'method')} failed in some repetitions." if failures else ""
        sections, figure = [], None
        if verdict.standings:
            caption = "What methods earned in the last quarter of the rounds, and their mistakes"
            figure = self.drawn("trade-off", plot.trade_off, caption, takeaway)
            sections = [self.methods(), self.rounds(), self.groups(), self.certificate()]
            sections += [self.exploration(), *self.tables()]
        sections += [
            self.settings(),
            Section("failures", "Failures", lost, [failures][: len(lost)]),
        ]
        return Page(
            self.name,
            title,
            self.run(),
            " ".join(
                filter(None, (takeaway, words.in_groups(verdict), words.loser(verdict), lost))
            ),
            "red" if verdict.best is None else verdict.best.light,
            self.cards(),
            figure,
            [replace(section, id=f"{self.name}-{section.id}") for section in sections],
        )

    def run(self) -> str:
        """Describe the run: methods, rounds, applicants, repetitions and bounds."""
        results = self.results
        _, n_methods, repetitions, rounds, _ = results.shape
        people = results.count("n_people").max(axis=(0, 1)).sum(axis=-1)  # 0 if a method failed
        low, high = int(people.min()), int(people.max())
        size = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        bound = f"α = {percent(self.verdict.alpha)}"
        if results.varied:
            bound = f"{results.varied} = {listed([written(value) for value in results.values])}"
        world = results.about["experiment"].get("description", "")
        return (
            f"{world} {counted(n_methods, 'method')} decided {counted(rounds, 'round')} of {size} "
            f"applicants each, in {counted(repetitions, 'repetition')}, with {bound}."
        ).lstrip()

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
            return [Card("Mistakes", "above α", words.mistakes(verdict), "red")]
        earned, said, light = f"{money(best.earned.mean)} a round", words.earned(verdict), ""
        if best.share.mean > 1:
            said, light = f"{said} {words.beyond(self.results, verdict)}", "amber"
        elif best.share.mean > 0 and verdict.yardstick is not None:
            earned = f"{rate(best.share.mean)} of {self.yardstick()}"
        cards = [
            Card("Earned", earned, said, light),
            Card("Mistakes", rate(best.mistakes.mean), words.mistakes(verdict), best.light),
        ]
        runs, value, light = best.certificate, "none", ""
        if runs is not None:
            value, light = "not reached", "amber"
            if runs.never_share < 1:
                value, light = f"since round {runs.first_median:g}", "green"
        cards.append(Card("Certificate", value, words.certificate(verdict), light))
        if len(verdict.groups) > 1:
            broken = [one.group for one in verdict.groups if one.light == "red"]
            light = min((one.light for one in verdict.groups), key=LIGHTS.index)
            kept = f"{', '.join(broken)} above α" if broken else _IN_GROUPS[light]
            cards.insert(2, Card("Groups", kept, words.by_group(verdict), light))
        n = verdict.repetitions
        few = ", few" if n < FEW else ""
        cards.append(Card("Repetitions", f"{n}{few}", words.precision(verdict)))
        return cards

    def yardstick(self) -> str:
        one = self.verdict.yardstick
        return "the ceiling" if one is not None and one.method == CEILING else "the reference"

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
            titles[3] = f"Share of {self.yardstick()}"
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
        table = PageTable("What methods earned, and their mistakes", note, titles, rows)
        return Section("methods", "Methods", brief, [_RULE, table])

    def rounds(self) -> Section:
        best = self.verdict.best or self.verdict.standings[0]
        at, i = self.results.main, self.results.methods.index(best.method)
        earned = tables.series(self.results, "revenue").mean[at, i]
        ends = [money(value) for value in (earned[0], earned[-1])]
        brief = f"“{best.label}” earned {ends[0]} in round 1 and {ends[1]} in the last."
        said = list(self.past())
        said.append("Choose a method in the legend to see it alone, with its 95 % interval.")
        figures = [
            self.drawn(metric, plot.metric, caption, brief, metric)
            for metric, caption in _OVER_ROUNDS.items()
        ]
        return Section("rounds", "Rounds", brief, [*said, *figures])

    def past(self) -> Iterator[str]:
        """Say whether the past kept α, as the theory assumes: by the history, and by round 1."""
        past = find_past(self.results)
        if past is not None:
            before, then = (
                f"{rate(share)}, of whom {with_interval(mistakes)} were bad"
                for share, mistakes in (past.history, past.first)
            )
            yield (
                f"In the history, the past accepted {before}. Round 1 of "
                f"“{self.results.label(past.follower)}” follows the past and accepted {then}."
            )

    def groups(self) -> Section:
        brief = words.by_group(self.verdict)
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
            brief, method = words.certificate_of(self.verdict, one), one.method
            said: list[Part] = [brief]
            records = records_of(self.results, method, self.results.main)
            if records:
                caption = "Share of applicants with a certificate, and evidence for the next step"
                key, draw = f"certificate-{method}", plot.certificate
                said.append(self.drawn(key, draw, f"{caption} (first run)", brief, method=method))
            if any(rounds[-1].curve for rounds in records.values()):
                caption = "What the last certified round would earn with another α (first run)"
                said.append(self.drawn(f"curve-{method}", plot.curve, caption, "", method=method))
            parts.append(Section(f"{self.name}-of-{method}", one.label, "", said))
        return Section("certificate", "Certificate", words.certificate(self.verdict), parts)

    def exploration(self) -> Section:
        best = self.verdict.best or self.verdict.standings[0]
        said: list[Part] = [*filter(None, [words.exploration(self.verdict)])]
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
        made: dict[str, list[PageTable]] = {"paper": [], "varied": [], "tables": []}
        verdicts: Counter[str] = Counter()
        reasons: list[str] = []
        for table in all_tables(self.results):
            made[table.section].append(_table(table))
            verdicts.update(row["verdict"] for row in table.rows if "verdict" in row)
            reasons += [text for text in table.remarks if "why_different" in table.rows[0]]
        if self.results.about["experiment"]["published"] is not None:
            found = ", ".join(f"{n} {word}" for word, n in verdicts.items()) or "none"
            brief = f"{counted(verdicts.total(), 'test')} of the paper's claims: {found}."
            said: list[Part] = [*self.paper(), *[reasons][: len(reasons)]]
            yield Section("paper", "The paper", brief, [*said, *made["paper"]])
        varied = self.results.varied
        if varied is not None:
            brief = f"{len(self.results.settings)} values of {varied}."
            caption = f"Results for each value of {varied}"
            figure = self.drawn("settings", plot.by_setting, caption, brief)
            yield Section("varied", "What was varied", brief, [figure, *made["varied"]])
        brief = f"{counted(len(made['tables']), 'table')} of details."
        yield Section("tables", "All tables", brief, made["tables"])

    def paper(self) -> Iterator[str]:
        """Say what is to be known before comparing with the paper."""
        experiment, data = self.results.about["experiment"], self.results.about["data"]["name"]
        theirs, on = paper_data(experiment["published"]), experiment["switches"]
        if data != theirs:
            yield f"The paper used “{theirs}”, not “{data}”: compare directions, not values."
        if ALPHA not in self.results.alphas:
            yield f"The paper's table is for α = {percent(ALPHA)}, which was not run."
        if not on:
            yield "No deviation of the paper's released code was switched on."
            return
        known = "; ".join(f"{name} ({SWITCHES.get(name, 'unknown')})" for name in on)
        yield f"As in the paper's released code: {known}."
        yield count_deviations()
        if "A9" in on:
            yield (
                "All repetitions share one resample of the data (A9), so intervals are too narrow, "
                "and the paper's claims are not examined."
            )

    def settings(self) -> Section:
        about = self.results.about
        data, experiment = about["data"], about["experiment"]
        rows = f"{data['rows']:,} applicants" if data["rows"] else "a synthetic population"
        brief = f"Data “{data['name']}”, {rows}; groups {listed(self.results.groups)}."
        given = {name: experiment.get(name) for name in _SETTINGS}
        given = {name: value for name, value in given.items() if value not in (None, {}, [])}
        given |= {"fingerprint of the data": data["fingerprint"]}
        given |= {f"not changed by {self.results.varied}": once for once in [about["once"]] if once}
        lines = [
            f"{key}: {json.dumps(part, ensure_ascii=False, sort_keys=True)}"
            for key, part in given.items()
        ]
        people = self.results.count("n_people") + self.results.count("n_past")
        drawn = int(people.sum(axis=(3, 4)).max())
        drawn_again = data["rows"] and not experiment["world"].get("n_parts")
        said = [str(data["source"])]
        said += repeated_rows_remarks(data["rows"], drawn) if drawn_again else []
        said += self.assumptions()
        return Section("settings", "Data and settings", brief, [*said, lines])

    def assumptions(self) -> Iterator[str]:
        """Yield the special assumptions of the methods that were run."""
        methods: dict[str, list[str]] = {}
        for method in self.results.methods:
            if method in ASSUMPTIONS:
                label = f"“{self.results.label(method)}”"
                methods.setdefault(ASSUMPTIONS[method], []).append(label)
        for text, labels in methods.items():
            yield f"{listed(labels)}: {text}"


def _table(table: ReportTable) -> PageTable:
    columns = [replace(column, form=_form(column.form)) for column in table.columns]
    shown = replace(table, columns=columns)
    rows: list[list[str | tuple[str, str]]] = [
        [name, *values]
        for (name, _), *values in (shown.cells(row, labelled=True) for row in table.rows)
    ]
    note = f"{table.setting}. {table.note}"
    prose = [i for i, column in enumerate(columns) if i and column.form is None]
    return PageTable(table.title, note, [column.title for column in columns], rows, prose)


def _form(form: Any) -> Any:
    if isinstance(form, Mapping):
        return {name: _FORMS.get(one, one) for name, one in form.items()}
    return _FORMS.get(form, form)
