"""The HTML report of a program: one file without scripts or links, fit to print.

This module gathers sentences, tables and figures; the template lays them out and escapes text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape
from importlib import resources
from pathlib import Path
from shlex import quote
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from secondlook.cli.messages import CAUTION, restarts
from secondlook.cli.options import writing
from secondlook.cli.output import interval
from secondlook.cli.pages.figures import draw_all, quiet_svg
from secondlook.core.metrics import exact_interval
from secondlook.errors import visible
from secondlook.lab.experiments.certificates import freezes
from secondlook.ledger.health import Check, check_health, verdict
from secondlook.ledger.retention import MONTHS, retention_months
from secondlook.ledger.summary import (
    Change,
    Details,
    GroupSummary,
    Outcomes,
    Rejections,
    Span,
    Summary,
    spans,
)
from secondlook.words import amount, counted, days, people, share, times

__all__ = ["page", "write_program_report"]

_TERMS = {
    "Accepted": "By the program's decision, whether or not a person overrode it later. Each of "
    "them is good, bad, never known, pending or overridden; the table of outcomes counts the "
    "overridden separately.",
    "FDR": "Share of bad among the known outcomes, without overridden decisions.",
    "95 %": f"Exact interval of that share (Clopper and Pearson). {CAUTION}",
    "Exploited, explored": "Accepted because enough is known about similar applicants; accepted by "
    "the draw, in order to learn.",
    "Certified": "The round deployed a rule which has, with the confidence stated, an FDR of at "
    "most α in the population that applies. Other rounds promise nothing.",
    "Never known": "Accepted applicants who were withdrawn: their outcome will not be known.",
    "Overridden": "Accepted by the program and once overridden by a person, even if that was "
    "undone. The program learns nothing from them, and their outcomes count only in the FDR of "
    "overrides.",
    "By hand": "Rejected by the program and accepted by a person. They are not among the accepted, "
    "nor in any rate.",
    "By override, apart": "Applicants who are accepted now and were once overridden.",
    "Worth": "What accepting applicants brought compared with rejecting them, by the program's "
    "utility, for known outcomes.",
    "Erased": "Applicants with erased data: decisions and outcomes stay, ids, features and "
    "groups do not.",
    "Checkpoint": "The end of the chain of entries, as it is stored; this page did not verify it. "
    "If it is stored elsewhere, secondlook verify detects any change before it.",
}
_CAPTIONS = {
    "fdr": "FDR of each round against α",
    "decisions": "How many were accepted, and how many of them were explored",
    "outcomes": "Outcomes of the accepted applicants of each round, without overridden ones",
    "worth": "What accepting has brought so far, by the round that decided",
    "certificate": "Shares that have a certificate, the share deployed in each round, and what "
    "the next step needs",
}
_OUTCOME_TITLES = ("Accepted", "Good", "Bad", "Never known", "Pending")
_METHODS = {
    "CertifiedClassifier": "rounds carry a promise once outcomes of earlier rounds have shown that "
    "the rule keeps the bound, and are pilots until then",
    "PartialFeedbackClassifier": "rounds keep an estimate of the mistakes under the bound, and "
    "promise nothing",
}
_GROUP_MODES = {
    "aware": "a decision may depend on the applicant's group",
    "blind": "an applicant's group does not change the decision; groups of applicants with known "
    "outcomes may shape what is learned",
    "audit": "groups change no decision; they are only counted",
}
_SHOWN_SETTINGS = ("alpha", "delta", "learner", "group_mode", "maturity", "patience", "utility")
_SECRET_SETTINGS = ("random_state",)  # it determines who will be drawn
_MOST_REASONS = 10


@dataclass(frozen=True)
class _PageTable:
    """A table; a row is a name and its cells. The last column holds text if it is ``prose``."""

    title: str
    note: str
    corner: str
    titles: Sequence[str]
    rows: Sequence[tuple[str, Sequence[str]]]
    prose: bool = False


@dataclass(frozen=True)
class _PageFigure:
    """A figure, with its caption."""

    id: str
    svg: Markup
    caption: str


@dataclass(frozen=True)
class _Section:
    """A section; it is left out if it has neither sentences nor parts."""

    id: str
    title: str
    sentences: Sequence[str] = ()
    parts: Sequence[_PageTable | _PageFigure] = field(default=())


def write_program_report(summary: Summary, details: Details, path: Path, late: float) -> None:
    """Write the report; the file appears whole or not at all.

    Parameters
    ----------
    summary, details
        The program.
    path
        The file to write.
    late
        Days after which a pending outcome is late.
    """
    text = page(summary, details, late)
    part = path.with_name(f".{path.name}.part")
    try:
        with writing(path):
            part.write_text(text, encoding="utf-8")
            part.replace(path)
    finally:
        with suppress(OSError):  # neither the file nor its folder may exist
            part.unlink()


def page(summary: Summary, details: Details, late: float) -> str:
    """Return the report as HTML."""
    css = resources.files("secondlook.lab.experiments").joinpath("report.css").read_text("utf-8")
    svgs = {key: quiet_svg(drawn, key) for key, drawn in draw_all(summary).items()}
    checks = check_health(summary, late)
    sections = [
        _Section("attention", "What was checked", parts=_checks(checks)),
        _Section("mistakes", "Outcomes and mistakes", parts=_outcomes(summary, svgs)),
        _rounds(summary, svgs),
        _Section("groups", "Groups", parts=_groups(summary, svgs)),
        _certificate(summary, svgs),
        _Section("deciding", "How it decides", parts=_how_it_decides(summary, details)),
        _changes(summary, details),
    ]
    environment = Environment(
        loader=PackageLoader("secondlook.cli.pages", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["quote"] = quote
    html = environment.get_template("program.html.jinja").render(
        summary=summary,
        overview=_overview(summary),
        verdict=verdict(checks),
        light=checks[0].light if checks else "green",
        sections=[section for section in sections if section.sentences or section.parts],
        terms=_TERMS,
        css=Markup(css),
    )
    return "\n".join(map(visible, html.lstrip().split("\n")))


def _overview(summary: Summary) -> str:
    promise = summary.promise
    bound = "" if promise.alpha is None else f", at most α = {promise.alpha:g} bad"
    sure = "" if promise.delta is None else f" with confidence {1 - promise.delta:g}"
    overridden, by_hand = summary.total("n_set_apart"), summary.total("n_by_hand")
    more = f" and {overridden:,} once overridden" if overridden else ""
    more += f", besides {by_hand:,} accepted by hand" if by_hand else ""
    return (
        f"{summary.classifier}{bound}{sure}. Counted from the ledger at {summary.at}: "
        f"{people(summary.total('n_people'))} decided on in "
        f"{counted(len(summary.rounds), 'round')}, {summary.total('n_accepted'):,} accepted, "
        f"{summary.total('n_explored'):,} of them explored{more}; a history of "
        f"{summary.n_history:,}."
    )


def _checks(checks: Sequence[Check]) -> list[_PageTable]:
    """Return all checks as a table, the worst first."""
    note = (
        "Red: the whole interval is on the wrong side of the bound. Amber: the estimate is, or "
        "there is another reason to look. These intervals are right at all times together with a "
        "probability of 95 %, so they are wider than those of a single look below."
    )
    rows = [
        (
            check.light.upper(),
            [check.question, check.group or "all", f"{check.finding} {check.meaning}".strip()],
        )
        for check in checks
    ]
    return [_PageTable("Checks", note, "Light", ["Question", "Of", "Answer"], rows, prose=True)]


# Outcomes, rounds, groups


def _outcomes(summary: Summary, svgs: dict[str, str]) -> list[_PageTable | _PageFigure]:
    if not summary.rounds:
        return []
    has_worth = summary.promise.utility is not None
    rows = []
    for name, outcomes in (
        ("All but overrides", summary.outcomes),
        ("Exploited", summary.exploited),
        ("Explored", summary.explored),
        ("By override, apart", summary.overridden),
    ):
        worth = [amount(summary.worth(outcomes))] if has_worth else []
        rows.append((name, [*_outcome_cells(outcomes), *map(share, outcomes.range), *worth]))
    titles = [*_OUTCOME_TITLES, "FDR", "95 %", "If the rest is good", "If bad"]
    titles += ["Worth"] * has_worth
    last = summary.rounds[-1].outcomes
    spoken = (
        f"Over all rounds {share(summary.outcomes.fdr)}, interval {interval(summary.outcomes)}; "
        f"in the last round {share(last.fdr)}"
    )
    return [
        _PageTable("Outcomes so far", CAUTION, "Accepted applicants", titles, rows),
        *_figures("fdr", svgs, spoken),
        *_figures("outcomes", svgs),
        *_figures("worth", svgs),
    ]


def _outcome_cells(outcomes: Outcomes) -> list[str]:
    counts = (
        outcomes.accepted,
        outcomes.good,
        outcomes.bad,
        outcomes.indeterminate,
        outcomes.pending,
    )
    return [*(f"{n:,}" for n in counts), share(outcomes.fdr), interval(outcomes)]


def _rounds(summary: Summary, svgs: dict[str, str]) -> _Section:
    runs = spans(summary.rounds)
    if not runs:
        return _Section("rounds", "Rounds")
    waiting, budget = summary.waiting(), summary.budget
    at_most = "" if math.isnan(budget) else f" of at most {budget:,.0f} by the budget"
    sentences = [
        f"{counted(summary.total('n_explored'), 'applicant was', 'applicants were')} "
        f"explored{at_most}.",
        f"{counted(waiting.n, 'accepted applicant waits', 'accepted applicants wait')} for an "
        f"outcome: median {days(waiting.median)}, "
        f"the oldest {days(waiting.oldest)}.",
    ]
    columns = _round_columns(runs)
    titles = [title for title, _ in columns]
    cells = zip(*(texts for _, texts in columns), strict=True)
    rows = [(run.name, list(texts)) for run, texts in zip(runs, cells, strict=True)]
    notes = []
    if "Thresholds" in titles:
        notes.append("Thresholds: the scores from which applicants are accepted for sure.")
    if len(runs) < len(summary.rounds):
        notes.append("Runs of rounds are shown together.")
    table = _PageTable("Rounds", " ".join(notes), "Round", titles, rows)
    return _Section("rounds", "Rounds", sentences, [*_figures("decisions", svgs), table])


def _round_columns(runs: Sequence[Span]) -> list[tuple[str, list[str]]]:
    """Return titles and texts of the columns that say something, one text for each run.

    Exploited and explored applicants are good, bad, never known, pending or overridden.
    """
    last = [run.rounds[-1] for run in runs]
    outcomes = [run.outcomes for run in runs]
    thresholds = [", ".join(map(share, row.thresholds)) or "–" for row in last]

    def totals(name: str) -> list[str]:
        return [f"{run.total(name):,}" for run in runs]

    columns = [
        ("Batch", [row.batch for row in last]),
        ("Decided", [row.at[:10] for row in last]),
        ("Applied", totals("n_people")),
        ("Exploited", totals("n_exploited")),
        ("Explored", totals("n_explored")),
        ("α exploited", [share(row.alpha_exploit) for row in last]),
        ("Thresholds", thresholds),
        ("Promise", [run.promise for run in runs]),
        ("Good", [f"{counts.good:,}" for counts in outcomes]),
        ("Bad", [f"{counts.bad:,}" for counts in outcomes]),
        ("Never known", [f"{counts.indeterminate:,}" for counts in outcomes]),
        ("Pending", [f"{counts.pending:,}" for counts in outcomes]),
        ("Overridden", totals("n_set_apart")),
        ("By hand", totals("n_by_hand")),
        ("FDR", [share(counts.fdr) for counts in outcomes]),
        ("95 %", [interval(counts) for counts in outcomes]),
    ]
    empty = {"α exploited": {"–"}, "Thresholds": {"–"}, "Overridden": {"0"}, "By hand": {"0"}}
    return [column for column in columns if set(column[1]) != empty.get(column[0])]


def _groups(summary: Summary, svgs: dict[str, str]) -> list[_PageTable | _PageFigure]:
    parts: list[_PageTable | _PageFigure] = []
    titles = ["Applied", "Accepted", "Rate", "95 %", "Of the highest", "Explored"]
    titles += [*_OUTCOME_TITLES[1:], "Overridden", "By hand", "FDR", "95 %"]
    note = (
        "Over all rounds. Of the highest: the rate as a share of the highest one. Rates differ "
        "for many reasons, and by chance in small groups."
    )
    for at, attribute in enumerate(dict.fromkeys(group.attribute for group in summary.groups)):
        groups = [group for group in summary.groups if group.attribute == attribute]
        named = [group for group in groups if group.group is not None]
        most = max((group.n_accepted / group.n_people for group in named), default=0.0)
        rows = [(_group_name(group), _group_cells(group, most)) for group in groups]
        parts.append(_PageTable(f"Groups by {attribute}", note, "Group", titles, rows))
        caption = f"Acceptance and FDR by {attribute}, with exact 95 % intervals"
        spoken = "; ".join(
            f"{_group_name(group)}: {share(group.n_accepted / group.n_people)} accepted, FDR "
            f"{share(group.outcomes.fdr)}"
            for group in groups
        )
        key = f"groups-{at}"
        parts.append(_PageFigure(key, _inline_svg(svgs[key], key, f"{caption}. {spoken}"), caption))
    return parts


def _group_name(group: GroupSummary) -> str:
    return "(erased)" if group.group is None else group.group


def _group_cells(group: GroupSummary, highest: float) -> list[str]:
    """Return a group's counts: the accepted are good, bad, never known, pending or overridden."""
    rate, outcomes = group.n_accepted / group.n_people, group.outcomes
    low, high = exact_interval(group.n_accepted, group.n_people)
    return [
        f"{group.n_people:,}",
        f"{group.n_accepted:,}",
        share(rate),
        f"{share(low)}–{share(high)}",
        "–" if group.group is None or not highest else share(rate / highest),
        f"{group.n_explored:,}",
        f"{outcomes.good:,}",
        f"{outcomes.bad:,}",
        f"{outcomes.indeterminate:,}",
        f"{outcomes.pending:,}",
        f"{group.n_set_apart:,}",
        f"{group.n_by_hand:,}",
        share(outcomes.fdr),
        interval(outcomes),
    ]


# The certificate


def _certificate(summary: Summary, svgs: dict[str, str]) -> _Section:
    """Return the history of the certificates; empty for a program that tests for none."""
    sentences: list[str] = []
    for group, records in summary.ladders().items():
        sentences += _certificate_sentences(summary, group, records)
    if not sentences:
        return _Section("certificate", "The certificate")
    figures: list[_PageTable | _PageFigure] = [*_figures("certificate", svgs, sentences[0])]
    parts = [*figures, *_certificate_table(summary), *_curve_table(summary)]
    return _Section("certificate", "The certificate", sentences, parts)


def _certificate_sentences(
    summary: Summary, group: Any, records: Sequence[dict[str, Any]]
) -> Iterator[str]:
    name = "" if group is None else f" for group {group}"
    certified = [record["round"] for record in records if record["status"] == "certified"]
    first = f"first in round {certified[0]}" if certified else "so there is no promise yet"
    rankings = counted(len(freezes(list(records))), "ranking was", "rankings were")
    dropped = [change.says for change in summary.changes if change.says.get("what") == "dropped"]
    n_dropped = sum(group is None or says.get("group") == group for says in dropped)
    begun = restarts(summary, records[0]["group"])
    when = " and ".join(f"with round {number} after {reason}" for number, reason in begun)
    again = f"{times(len(begun))}, {when}" if begun else "0 times"
    yield (
        f"{len(certified)} of {counted(len(records), 'round is', 'rounds are')} certified{name}, "
        f"{first}; {rankings} frozen, certificates were dropped {times(n_dropped)}, and testing "
        f"began again {again}."
    )
    if records[-1]["message"]:
        yield f"Message of the last round{name}: “{records[-1]['message']}”"


def _certificate_table(summary: Summary) -> list[_PageTable]:
    """Return the certificates that were given and dropped, one for each entry."""
    entries = [change for change in summary.changes if change.kind == "certificate"]
    if not entries:
        return []
    rows = [
        (
            f"{change.entry}",
            [
                change.at[:16],
                str(change.says["round"]),
                _certificate_group(change),
                _certificate_event(change),
            ],
        )
        for change in entries
    ]
    note = (
        "A certificate is about a rule: the best share of a frozen ranking, with a soft edge. "
        "Evidence is the log wealth of a bet that the rule keeps the bound."
    )
    titles = ["When", "Round", "Group", "Event"]
    return [_PageTable("Certificates", note, "Entry", titles, rows, prose=True)]


def _curve_table(summary: Summary) -> list[_PageTable]:
    """Return what the rule would earn at other bounds, as the last round recorded it."""
    rows = []
    for group, records in summary.ladders().items():
        name = "" if group is None else f"{group}: "
        for point in records[-1].get("curve", ()):
            cells = [
                f"{point['share']:.1%}",
                amount(point["earned"]),
                share(point["estimated_fdr"]),
                "yes" if point["certified"] else "no",
            ]
            rows.append((f"{name}{point['bound']:.3g}", cells))
    if not rows:
        return []
    note = (
        "What the best allowed rule would earn per applicant at each bound, estimated from tested "
        "outcomes. Certified: its FDR is at most this bound with confidence 1 − δ, each bound by "
        "itself. Decisions follow α only."
    )
    titles = ["Best share", "Earned per applicant", "Estimated FDR", "Certified"]
    return [_PageTable("Earned at other bounds", note, "Bound", titles, rows)]


def _certificate_event(change: Change) -> str:
    says = change.says
    if says["what"] == "dropped":
        were = counted(len(says.get("certificates", ())), "certificate was", "certificates were")
        reasons = {"correction": "a correction", "outcomes": "outcomes that contradicted it"}
        reason = str(says["why"])
        return f"{were} dropped after {reasons.get(reason, f'an {reason}')}"
    return (
        f"The best {says['share']:.1%} are certified at α = {says['alpha']:g} and δ = "
        f"{says['delta']:g}: evidence {says['log_wealth']:.2f}, needed {says['threshold']:.2f}"
    )


def _certificate_group(change: Change) -> str:
    group = change.says.get("group")
    if group is None:
        return "all"
    return ", ".join(map(str, group)) if isinstance(group, list) else str(group)


# How it decides


def _how_it_decides(summary: Summary, details: Details) -> list[_PageTable | _PageFigure]:
    """Return the recorded settings and the reasons for rejections, as tables."""
    rows = [(name, [" ".join(text.split())]) for name, text in _settings(summary, details)]
    note = "As recorded in the first entry of the chain; it never changes."
    settings = _PageTable("Settings", note, "Setting", ["On the record"], rows, prose=True)
    return [settings, *_reasons(details.rejections)]


def _settings(summary: Summary, details: Details) -> Iterator[tuple[str, str]]:
    says, about = details.says, summary.about
    settings = says.get("settings", {})
    version = says.get("secondlook", "of an unknown version")
    yield "Started", f"{details.at[:16]} UTC by {details.by}, with secondlook {version}"
    method = _METHODS.get(summary.classifier)
    yield "Method", summary.classifier + (f": {method}" if method else "")
    learner = settings.get("learner", "unknown")
    own = {"CertifiedClassifier": "a scorecard mixed with boosted trees"}
    if learner == "None":
        learner = f"the method's own: {own.get(summary.classifier, 'a logistic model')}"
    yield "Learner", learner
    yield "Features", _features(says)
    yield "Protected attributes", _group_setting(says)
    yield from _outcome_labels(says, about)
    bound = summary.promise.alpha
    yield "α, the bound on the share of bad", "none" if bound is None else f"{bound:g}"
    if summary.promise.delta is not None:
        promised = f"{summary.promise.delta:g}, for all certified rounds together"
        yield "δ, the chance that a certified round breaks it", promised
    if "maturity" in settings:
        yield "Maturity", _round_setting(settings["maturity"], "rounds until outcomes count")
    if "patience" in settings:
        late = "rounds after which a missing outcome counts as bad in the tests"
        yield (
            "Patience",
            _round_setting(settings["patience"], late, "the tests wait for every outcome"),
        )
    worth = settings.get("utility", "unknown")
    yield "Worth of decisions", "the method's own" if worth == "None" else worth
    yield "Missing values", _missing_values(about)
    yield "Data of people are kept", f"{retention_months(about)} months, or longer under a hold"
    hidden = (*_SHOWN_SETTINGS, *_SECRET_SETTINGS)
    others = [f"{key} = {text}" for key, text in settings.items() if key not in hidden]
    if others:
        yield "Other settings", ", ".join(others)


def _features(says: dict[str, Any]) -> str:
    columns = says.get("columns") or {}
    names = columns.get("names")
    kinds = {name: kind for kind in ("text", "date") for name in columns.get(f"{kind}s", ())}
    if names is None:
        n = len((says.get("reference") or {}).get("names", ()))
        return f"{n} columns without names" if n else "columns without names"
    return ", ".join(f"{name} ({kinds[name]})" if name in kinds else str(name) for name in names)


def _group_setting(says: dict[str, Any]) -> str:
    if not says.get("has_groups", False):
        return "the program knows none"
    names = ", ".join(map(str, says.get("group_names") or ["one without a name"]))
    mode = str(says.get("group_mode", ""))
    meaning = _GROUP_MODES.get(mode)
    return f"{names}; mode {mode}" + (f": {meaning}" if meaning else "")


def _outcome_labels(says: dict[str, Any], about: dict[str, Any]) -> Iterator[tuple[str, str]]:
    labels = about.get("outcomes") or {
        "good": [says.get("good", "unknown")],
        "bad": [says.get("bad", "unknown")],
    }
    for state in ("good", "bad"):
        yield f"A {state} outcome", ", ".join(map(repr, labels.get(state, ())))
    never = ", ".join(map(repr, labels.get("indeterminate", ())))
    yield "Never to be known", never or "no label; applicants are withdrawn individually"


def _round_setting(value: str, meaning: str, none: str = "none") -> str:
    return none if value == "None" else f"{value} {meaning}"


def _missing_values(about: dict[str, Any]) -> str:
    allowed = about.get("missing")
    if allowed is None:
        return "handled by the learner"
    words = ", ".join(map(repr, about.get("missing_values", ())))
    return (
        f"allowed in {', '.join(allowed)}" if allowed else "rows with missing features are refused"
    ) + (f"; {words} means missing" if words else "")


def _reasons(rejections: Rejections) -> list[_PageTable]:
    if not rejections.n:
        return []
    rows = [
        (reason.name, [f"{reason.n:,}", share(reason.n / rejections.n), f"{reason.n_first:,}"])
        for reason in rejections.reasons[:_MOST_REASONS]
    ]
    hidden = len(rejections.reasons) - len(rows)
    more = f" Columns not shown: {hidden:,}." if hidden else ""
    note = (
        f"For {people(rejections.n)} rejected by the program and not erased: columns "
        f"that lowered the score, at most four for each; {rejections.n_without:,} have none.{more}"
    )
    titles = ["People", "Share", "As the first reason"]
    return [_PageTable("Reasons of rejections", note, "Column", titles, rows)]


# Changes by people


def _changes(summary: Summary, details: Details) -> _Section:
    by_people = [change for change in summary.changes if change.kind != "certificate"]
    changes = sorted([*by_people, *details.withdrawals], key=lambda change: change.entry)
    if not changes:
        sentence = "Nothing was corrected, withdrawn, overridden, held or erased."
        return _Section("changes", "What people changed", [sentence])
    overridden = summary.overridden.accepted
    sentence = (
        f"{counted(summary.total('n_overridden'), 'decision is', 'decisions are')} overridden now; "
        f"{counted(overridden, 'person', 'people')} with an override, undone or not, "
        f"{'is' if overridden == 1 else 'are'} accepted. "
        f"{counted(summary.n_erased, 'person is', 'people are')} erased, "
        f"{counted(summary.n_held, 'person is', 'people are')} held."
    )
    rows = [
        (
            f"{change.entry}",
            [
                change.kind,
                f"{change.n:,}" if change.n else "–",
                change.at[:16],
                change.by,
                _change_text(change),
            ],
        )
        for change in changes
    ]
    table = _PageTable(
        "Changes",
        "Entries by which people changed outcomes, decisions or stored data.",
        "Entry",
        ["What", "People", "When", "By", "Content"],
        rows,
        prose=True,
    )
    return _Section("changes", "What people changed", [sentence], [table])


def _change_text(change: Change) -> str:
    """Return the content of an entry, the reason first."""
    internal = ("rows", "persons", "held", "undo", "reason", "n_early", "retention_months")
    parts = [str(change.says["reason"])] if "reason" in change.says else []
    early = change.says.get("n_early", 0)
    if early:
        months = change.says.get("retention_months", MONTHS)
        parts.append(f"{early:,} before {months} months were over")
    parts += [f"{key}: {text}" for key, text in change.says.items() if key not in internal]
    return "; ".join(parts) or "–"


# Figures


def _figures(key: str, svgs: dict[str, str], spoken: str = "") -> list[_PageFigure]:
    """Return the figure of that name, if it was drawn."""
    if key not in svgs:
        return []
    caption, name = _CAPTIONS[key], f"figure-{key}"
    svg = _inline_svg(svgs[key], name, f"{caption}. {spoken}".strip())
    return [_PageFigure(name, svg, caption)]


def _inline_svg(svg: str, name: str, spoken: str) -> Markup:
    """Return an SVG file as part of a page, with unique ids and a text for screen readers."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{name}--', svg)
    svg = re.sub(r'(href="|url\()#', rf"\g<1>#{name}--", svg)
    return Markup(svg.replace("<svg", f'<svg role="img" aria-label="{escape(spoken)}"', 1))
