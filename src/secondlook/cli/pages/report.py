"""One HTML file that shows how a program stands: nothing to load or to run, and fit to print."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from html import escape
from importlib import resources
from pathlib import Path
from shlex import quote

from secondlook.cli.options import writing
from secondlook.cli.pages.certificate import certificate_findings, certificate_table
from secondlook.cli.pages.deciding import how_it_decides
from secondlook.cli.pages.figures import draw_all, quiet_svg
from secondlook.cli.pages.spans import Span, spans
from secondlook.cli.programs.attention import (
    CAUTION,
    amount,
    attention,
    days,
    interval,
    people,
    share,
)
from secondlook.lab.experiments.page_parts import cell, figure, heads, sentence_list, table
from secondlook.ledger.particulars import Particulars
from secondlook.ledger.retention import MONTHS
from secondlook.ledger.summary import (
    Change,
    GroupSummary,
    Outcomes,
    RoundSummary,
    Summary,
    exact_interval,
)

__all__ = ["page", "write_program_report"]

_TERMS = {
    "Accepted": "By the program's decision, whatever somebody made of it later. Each of them is "
    "good, bad, never known, pending or overridden; the table of outcomes has the overridden "
    "apart.",
    "FDR": "Share of bad among the accepted whose outcome is known, without people whose decision "
    "somebody replaced.",
    "95 %": f"Exact interval of that share (Clopper and Pearson). {CAUTION}",
    "Exploited, explored": "Accepted because enough is known of people like them; accepted by the "
    "draw, so that something becomes known.",
    "Certified": "The round deployed a rule which has, with the confidence stated, an FDR of at "
    "most α in the population that applies. Other rounds promise nothing.",
    "Never known": "Accepted people who were withdrawn: their outcome will not come.",
    "Overridden": "Accepted by the program, and once overridden by a person, even if that was "
    "taken back. Nothing is learned from them, and their outcomes count in no FDR but that of "
    "overrides.",
    "By hand": "Refused by the program and accepted by a person. They are not among the accepted, "
    "nor in any rate.",
    "By override, apart": "Who stands accepted now and was once overridden: by hand, or by a "
    "decision that was replaced and then restored.",
    "Worth": "What accepting people brought against rejecting them, by the program's utility, of "
    "outcomes known.",
    "Erased": "People whose data were erased: decisions and outcomes stay, names, features and "
    "groups do not.",
    "Checkpoint": "Where the chain of entries stood, as it is stored; this page did not verify it. "
    "Once it is kept elsewhere, secondlook verify tells whether anything before it was changed.",
}
_CAPTIONS = {
    "fdr": "FDR of each round against α",
    "decisions": "How many were accepted, and how many of them to learn something",
    "outcomes": "What became of the accepted of each round, without overridden ones",
    "worth": "What accepting has brought so far, by the round that decided",
    "certificate": "Shares that have a certificate, the share deployed in each round, and what "
    "the next step needs",
}


def write_program_report(found: Summary, more: Particulars, path: Path, late: float) -> None:
    """Write the page; the file appears whole or not at all.

    Parameters
    ----------
    found, more
        How the program stands, and what the counts leave open.
    path
        The file to write.
    late
        Days after which an outcome that is to come is late.
    """
    text = page(found, more, late)
    part = path.with_name(f".{path.name}.part")
    try:
        with writing(path):
            part.write_text(text, encoding="utf-8")
            part.replace(path)
    finally:
        with suppress(OSError):  # it may not be there, nor its folder
            part.unlink()


def page(found: Summary, more: Particulars, late: float) -> str:
    """Return the page."""
    css = resources.files("secondlook.lab.experiments").joinpath("report.css").read_text("utf-8")
    svgs = {key: quiet_svg(one, key) for key, one in draw_all(found).items()}
    sections = {
        "attention": ("What needs attention", _attention(found, late)),
        "mistakes": ("Outcomes and mistakes", _mistakes(found, svgs)),
        "rounds": ("Rounds", _rounds(found, svgs)),
        "groups": ("Groups", _groups(found, svgs)),
        "certificate": ("The certificate", _certificate(found, svgs)),
        "deciding": ("How it decides", how_it_decides(found, more)),
        "changes": ("What people changed", _changes(found, more)),
        "proof": ("Proof", _proof(found)),
        "terms": ("Terms", _terms()),
    }
    shown = {key: one for key, one in sections.items() if one[1]}
    links = "".join(f'<li><a href="#{key}">{title}</a></li>' for key, (title, _) in shown.items())
    body = "".join(
        f'<section id="{key}"><h2>{title}</h2>\n{content}</section>\n'
        for key, (title, content) in shown.items()
    )
    name = escape(found.program)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>secondlook: {name}</title>\n<style>\n{css}</style>\n</head>\n<body>\n"
        f"<header><h1>How the program “{name}” stands</h1><p>{escape(_said(found))}</p></header>\n"
        f'<nav aria-label="Contents"><ul>{links}</ul></nav>\n<main>\n{body}</main>\n'
        "</body>\n</html>\n"
    )


def _said(found: Summary) -> str:
    promise = found.promise
    bound = "" if promise.alpha is None else f", at most α = {promise.alpha:g} bad wanted"
    sure = "" if promise.delta is None else f" with confidence {1 - promise.delta:g}"
    return (
        f"{found.classifier}{bound}{sure}. Counted from the ledger at {found.at}: "
        f"{people(found.total('n_people'))} decided on in {_rounds_of(len(found.rounds))}, "
        f"{found.total('n_accepted'):,} accepted, {found.total('n_explored'):,} of them explored"
        f"{_by_people(found)}; a history of {found.n_history:,}."
    )


def _by_people(found: Summary) -> str:
    """Say how many of the accepted have an override, and who was accepted by hand, if anybody."""
    apart, by_hand = found.total("n_set_apart"), found.total("n_by_hand")
    words = f" and {apart:,} once overridden" if apart else ""
    return words + (f", beside {by_hand:,} accepted by hand" if by_hand else "")


def _rounds_of(n: int) -> str:
    return "1 round" if n == 1 else f"{n:,} rounds"


def _attention(found: Summary, late: float) -> str:
    sentences = attention(found, late) or ["Nothing needs attention."]
    return sentence_list("findings", sentences)


def _mistakes(found: Summary, svgs: dict[str, str]) -> str:
    if not found.rounds:
        return ""
    worth = found.promise.utility is not None
    titles = [*_OUTCOMES, "FDR", "95 %", "If the rest is good", "If bad"]
    rows = []
    for name, one in (
        ("All but overrides", found.outcomes),
        ("Exploited", found.exploited),
        ("Explored", found.explored),
        ("By override, apart", found.overridden),
    ):
        low, high = one.range
        cells = _outcome_cells(one) + cell(share(low)) + cell(share(high))
        rows.append((name, cells + (cell(amount(found.worth(one))) if worth else "")))
    titles += ["Worth"] if worth else []
    first = table("Outcomes so far", CAUTION, heads(titles), rows, "Accepted people")
    pictures = _figure("fdr", svgs, _spoken_fdr(found)) + _figure("outcomes", svgs)
    return first + pictures + _figure("worth", svgs)


_OUTCOMES = ("Accepted", "Good", "Bad", "Never known", "Pending")


def _outcome_cells(one: Outcomes) -> str:
    counts = (one.accepted, one.good, one.bad, one.indeterminate, one.pending)
    return "".join(cell(f"{n:,}") for n in counts) + cell(share(one.fdr)) + cell(interval(one))


def _spoken_fdr(found: Summary) -> str:
    last = found.rounds[-1]
    return (
        f"Over all rounds {share(found.outcomes.fdr)}, interval {interval(found.outcomes)}; in "
        f"the last round {share(last.outcomes.fdr)}"
    )


def _rounds(found: Summary, svgs: dict[str, str]) -> str:
    runs = spans(found.rounds)
    if not runs:
        return ""
    waiting = found.waiting()
    at_most = "" if math.isnan(found.budget) else f" of at most {found.budget:,.0f} by the budget"
    sentences = [
        f"{found.total('n_explored'):,} people were explored{at_most}.",
        f"{waiting.n:,} accepted people wait for an outcome: median {days(waiting.median)}, the "
        f"oldest {days(waiting.oldest)}.",
    ]
    columns = _round_columns(runs)
    cells = zip(*(texts for _, texts in columns), strict=True)
    rows = [(one.name, "".join(map(cell, mine))) for one, mine in zip(runs, cells, strict=True)]
    together = " Runs of rounds are shown together." if len(runs) < len(found.rounds) else ""
    titles = [title for title, _ in columns]
    cuts = "Thresholds: the scores from which people are accepted for sure, per group."
    note = f"{cuts if 'Thresholds' in titles else ''}{together}".strip()
    return (
        sentence_list("findings", sentences)
        + _figure("decisions", svgs)
        + table("Rounds", note, heads(titles), rows, "Round")
    )


def _round_columns(runs: Sequence[Span]) -> list[tuple[str, list[str]]]:
    """Return titles and texts of the columns, a text for each run; without those that say nothing.

    Exploited and explored are good, bad, never known, pending or overridden.
    """
    last = [one.rounds[-1] for one in runs]
    outcomes = [one.outcomes for one in runs]
    columns = [
        ("Batch", [escape(one.batch) for one in last]),
        ("Decided", [one.at[:10] for one in last]),
        ("Applied", _counted(runs, "n_people")),
        ("Exploited", _counted(runs, "n_exploited")),
        ("Explored", _counted(runs, "n_explored")),
        ("α exploited", [share(one.alpha_exploit) for one in last]),
        ("Thresholds", [_cuts(one) for one in last]),
        ("Promise", [one.promise for one in runs]),
        ("Good", [f"{one.good:,}" for one in outcomes]),
        ("Bad", [f"{one.bad:,}" for one in outcomes]),
        ("Never known", [f"{one.indeterminate:,}" for one in outcomes]),
        ("Pending", [f"{one.pending:,}" for one in outcomes]),
        ("Overridden", _counted(runs, "n_set_apart")),
        ("By hand", _counted(runs, "n_by_hand")),
        ("FDR", [share(one.fdr) for one in outcomes]),
        ("95 %", [interval(one) for one in outcomes]),
    ]
    nothing = {"α exploited": {"–"}, "Thresholds": {"–"}, "Overridden": {"0"}, "By hand": {"0"}}
    return [one for one in columns if set(one[1]) != nothing.get(one[0])]


def _counted(runs: Sequence[Span], name: str) -> list[str]:
    return [f"{one.total(name):,}" for one in runs]


def _cuts(one: RoundSummary) -> str:
    return ", ".join(share(cut) for cut in one.thresholds) or "–"


def _groups(found: Summary, svgs: dict[str, str]) -> str:
    parts = []
    attributes = list(dict.fromkeys(one.attribute for one in found.groups))
    for at, attribute in enumerate(attributes):
        groups = [one for one in found.groups if one.attribute == attribute]
        titles = ["Applied", "Accepted", "Rate", "95 %", "Of the highest", "Explored"]
        titles += [*_OUTCOMES[1:], "Overridden", "By hand", "FDR", "95 %"]
        named = [one for one in groups if one.group is not None]
        most = max((one.n_accepted / one.n_people for one in named), default=0.0)
        rows = [(_group_name(one), _group_cells(one, most)) for one in groups]
        note = (
            "Over all rounds. Of the highest: the rate as a share of the highest one. Rates differ "
            "for many reasons, and by chance in small groups."
        )
        parts.append(table(f"Groups by {attribute}", note, heads(titles), rows, "Group"))
        caption = f"Acceptance and FDR by {attribute}, with exact 95 % intervals"
        spoken = "; ".join(
            f"{_group_name(one)}: {share(one.n_accepted / one.n_people)} accepted, FDR "
            f"{share(one.outcomes.fdr)}"
            for one in groups
        )
        parts.append(figure(f"groups-{at}", svgs[f"groups-{at}"], f"{caption}. {spoken}", caption))
    return "".join(parts)


def _group_name(one: GroupSummary) -> str:
    return "(erased)" if one.group is None else one.group


def _group_cells(one: GroupSummary, highest: float) -> str:
    """Return a group's counts: the accepted are good, bad, never known, pending or overridden."""
    rate, outcomes = one.n_accepted / one.n_people, one.outcomes
    low, high = exact_interval(one.n_accepted, one.n_people)
    cells = [
        f"{one.n_people:,}",
        f"{one.n_accepted:,}",
        share(rate),
        f"{share(low)}–{share(high)}",
        "–" if one.group is None or not highest else share(rate / highest),
        f"{one.n_explored:,}",
        f"{outcomes.good:,}",
        f"{outcomes.bad:,}",
        f"{outcomes.indeterminate:,}",
        f"{outcomes.pending:,}",
        f"{one.n_set_apart:,}",
        f"{one.n_by_hand:,}",
        share(outcomes.fdr),
        interval(outcomes),
    ]
    return "".join(map(cell, cells))


def _certificate(found: Summary, svgs: dict[str, str]) -> str:
    sentences = certificate_findings(found)
    if not sentences:
        return ""
    picture = _figure("certificate", svgs, sentences[0])
    return sentence_list("findings", sentences) + picture + certificate_table(found)


def _changes(found: Summary, more: Particulars) -> str:
    by_people = [one for one in found.changes if one.kind != "certificate"]
    changes = sorted([*by_people, *more.withdrawals], key=lambda one: one.entry)
    if not changes:
        return "<p>Nobody corrected, withdrew, overrode, held or erased anything.</p>\n"
    sentences = [
        f"{_are(found.total('n_overridden'), 'decision', 'decisions')} overridden now; "
        f"{people(found.overridden.accepted)} with an override, taken back or not, "
        f"{'stands' if found.overridden.accepted == 1 else 'stand'} accepted. "
        f"{_are(found.n_erased, 'person', 'people')} erased, "
        f"{_are(found.n_held, 'person', 'people')} held."
    ]
    rows = [
        (
            f"{one.entry}",
            "".join(
                cell(escape(text))
                for text in (one.kind, f"{one.n:,}" if one.n else "–", one.at[:16], one.by)
            )
            + f'<td class="words">{escape(_why(one))}</td>',
        )
        for one in changes
    ]
    titles = ["What", "People", "When", "By", "It says"]
    note = "Entries by which people changed what had been told or decided, or what is kept."
    return sentence_list("findings", sentences) + table(
        "Changes", note, heads(titles), rows, "Entry"
    )


def _are(n: int, one: str, many: str) -> str:
    return f"1 {one} is" if n == 1 else f"{n:,} {many} are"


def _why(one: Change) -> str:
    """Return what an entry says of itself, the reason first and without what is for machines."""
    silent = ("rows", "persons", "held", "undo", "reason", "n_early", "retention_months")
    parts = [str(one.says["reason"])] if "reason" in one.says else []
    early = one.says.get("n_early", 0)
    if early:
        parts.append(
            f"{early:,} before {one.says.get('retention_months', MONTHS)} months were over"
        )
    parts += [f"{key}: {text}" for key, text in one.says.items() if key not in silent]
    return "; ".join(parts) or "–"


def _proof(found: Summary) -> str:
    return (
        f"<p>The chain has {found.head.number:,} entries. Checkpoint, not verified here:</p>\n"
        f"<p><code>{escape(str(found.head))}</code></p>\n"
        "<p>To check that nothing was changed, and that every decision follows from what was known "
        "then, run on the ledger</p>\n"
        f"<p><code>secondlook verify --program {escape(quote(found.program))} --checkpoint "
        f"{escape(quote(str(found.head)))}</code></p>\n"
    )


def _terms() -> str:
    terms = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in _TERMS.items())
    return f'<dl class="terms">{terms}</dl>'


def _figure(key: str, svgs: dict[str, str], spoken: str = "") -> str:
    if key not in svgs:
        return ""
    caption = _CAPTIONS[key]
    return figure(f"figure-{key}", svgs[key], f"{caption}. {spoken}".strip(), caption)
