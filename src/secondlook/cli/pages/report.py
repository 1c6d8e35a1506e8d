"""One HTML file that shows how a program stands: nothing to load or to run, and fit to print."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from html import escape
from importlib import resources
from pathlib import Path
from shlex import quote
from typing import Any

from secondlook.cli.options import writing
from secondlook.cli.pages.figures import draw_all, ladder_records, quiet_svg
from secondlook.cli.pages.spans import spans
from secondlook.cli.programs.attention import (
    CAUTION,
    amount,
    attention,
    began_again,
    days,
    interval,
    share,
    times,
)
from secondlook.experiments.certificates import freezes
from secondlook.experiments.page_parts import cell, figure, heads, sentence_list, table
from secondlook.ledger.summary import Change, GroupSummary, Outcomes, Summary, exact_interval

__all__ = ["page", "write_program_report"]

_TERMS = {
    "FDR": "Share of bad among the accepted whose outcome is known, without people whose decision "
    "somebody replaced.",
    "95 %": f"Exact interval of that share (Clopper and Pearson). {CAUTION}",
    "Exploited, explored": "Accepted because enough is known of people like them; accepted by the "
    "draw, so that something becomes known.",
    "Certified": "The round deployed a rule which has, with the confidence stated, an FDR of at "
    "most α in the population that applies. Other rounds promise nothing.",
    "Never known": "Accepted people who were withdrawn: their outcome will not come.",
    "By override": "Accepted, and once overridden by a person. Nothing is learned from them, and "
    "they are in no other number here.",
    "Worth": "What accepting people brought against rejecting them, by the program's utility, of "
    "outcomes known.",
    "Erased": "People whose data were erased: decisions and outcomes stay, names, features and "
    "groups do not.",
    "Checkpoint": "Where the chain of entries stood. Whoever changes anything before it cannot "
    "have the same one again.",
}
_CAPTIONS = {
    "fdr": "FDR of each round against α",
    "decisions": "How many were accepted, and how many of them to learn something",
    "outcomes": "What became of the accepted of each round, without overridden ones",
    "worth": "What accepting has brought so far, by the round that decided",
    "certificate": "Shares that have a certificate, the share deployed in each round, and what "
    "the next step needs",
}


def write_program_report(found: Summary, path: Path, late: float) -> None:
    """Write the page; the file appears whole or not at all.

    Parameters
    ----------
    found
        How the program stands.
    path
        The file to write.
    late
        Days after which an outcome that is to come is late.
    """
    text = page(found, late)
    part = path.with_name(f".{path.name}.part")
    try:
        with writing(path):
            part.write_text(text, encoding="utf-8")
            part.replace(path)
    finally:
        with suppress(OSError):  # it may not be there, nor its folder
            part.unlink()


def page(found: Summary, late: float) -> str:
    """Return the page."""
    css = resources.files("secondlook.experiments").joinpath("report.css").read_text("utf-8")
    svgs = {key: quiet_svg(one, key) for key, one in draw_all(found).items()}
    sections = {
        "attention": ("What needs attention", _attention(found, late)),
        "mistakes": ("Outcomes and mistakes", _mistakes(found, svgs)),
        "rounds": ("Rounds", _rounds(found, svgs)),
        "groups": ("Groups", _groups(found, svgs)),
        "certificate": ("The certificate", _certificate(found, svgs)),
        "changes": ("What people changed", _changes(found.changes, found)),
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
        f"{found.total('n_people'):,} people decided on in {len(found.rounds):,} rounds, "
        f"{found.total('n_accepted'):,} accepted, {found.total('n_explored'):,} of them explored; "
        f"a history of {found.n_history:,}."
    )


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
        ("All", found.outcomes),
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
    titles = ["Batch", "Decided", "Applied", "Exploited", "Explored", "α exploited", "Thresholds"]
    titles += ["Promise", *_OUTCOMES[1:], "FDR", "95 %"]
    rows = []
    for one in runs:
        last = one.rounds[-1]
        cells = [
            escape(last.batch),
            last.at[:10],
            *(f"{one.total(name):,}" for name in ("n_people", "n_exploited", "n_explored")),
            share(one.alpha_exploit),
            ", ".join(share(cut) for cut in last.thresholds) or "–",
            one.promise,
        ]
        outcomes = _outcome_cells(one.outcomes).removeprefix(cell(f"{one.outcomes.accepted:,}"))
        rows.append((one.name, "".join(map(cell, cells)) + outcomes))
    together = " Runs of rounds are shown together." if len(runs) < len(found.rounds) else ""
    note = f"Thresholds: the scores from which people are accepted for sure, per group.{together}"
    return (
        sentence_list("findings", sentences)
        + _figure("decisions", svgs)
        + table("Rounds", note, heads(titles), rows, "Round")
    )


def _groups(found: Summary, svgs: dict[str, str]) -> str:
    parts = []
    attributes = list(dict.fromkeys(one.attribute for one in found.groups))
    for at, attribute in enumerate(attributes):
        groups = [one for one in found.groups if one.attribute == attribute]
        titles = ["Applied", "Accepted", "Rate", "95 %", "Explored", "Overridden"]
        titles += [*_OUTCOMES[1:], "FDR", "95 %"]
        rows = [(_group_name(one), _group_cells(one)) for one in groups]
        note = "Over all rounds. Rates differ for many reasons, and by chance in small groups."
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


def _group_cells(one: GroupSummary) -> str:
    low, high = exact_interval(one.n_accepted, one.n_people)
    cells = [
        f"{one.n_people:,}",
        f"{one.n_accepted:,}",
        share(one.n_accepted / one.n_people),
        f"{share(low)}–{share(high)}",
        f"{one.n_explored:,}",
        f"{one.n_overridden:,}",
    ]
    outcomes = _outcome_cells(one.outcomes).removeprefix(cell(f"{one.outcomes.accepted:,}"))
    return "".join(map(cell, cells)) + outcomes


def _certificate(found: Summary, svgs: dict[str, str]) -> str:
    records = ladder_records(found)
    if not records:
        return ""
    sentences = []
    for group, rounds in records.items():
        whom = "" if group is None else f" for group {group}"
        certified = [one["round"] for one in rounds if one["status"] == "certified"]
        first = f"first in round {certified[0]}" if certified else "so there is no promise yet"
        sentences.append(
            f"{len(certified)} of {len(rounds)} rounds are certified{whom}, {first}; "
            f"{len(freezes(rounds))} rankings were frozen, certificates were dropped "
            f"{times(_n_dropped(found, group))}, and testing began again {_again(rounds, found)}."
        )
        if rounds[-1]["message"]:
            sentences.append(f"The last round{whom} said: “{rounds[-1]['message']}”")
    return sentence_list("findings", sentences) + _figure("certificate", svgs, sentences[0])


def _again(rounds: Sequence[dict[str, Any]], found: Summary) -> str:
    """Return when testing began again in one certificate's rounds, and after what."""
    again = began_again(found, rounds[0]["group"])
    if not again:
        return "0 times"
    when = [f"with round {t} after {why}" for t, why in again]
    return f"{times(len(again))}, {', '.join(when[:-1])}{' and ' if when[1:] else ''}{when[-1]}"


def _n_dropped(found: Summary, group: Any) -> int:
    dropped = [one.says for one in found.changes if one.says.get("what") == "dropped"]
    return sum(group is None or one.get("group") == group for one in dropped)


def _changes(changes: Sequence[Change], found: Summary) -> str:
    if not changes:
        return "<p>Nobody corrected, overrode, held or erased anything.</p>\n"
    sentences = [
        f"{_are(found.total('n_overridden'), 'decision', 'decisions')} overridden; "
        f"{found.overridden.accepted:,} of the accepted have an override, or had one. "
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
    note = "Entries of the chain that were not batches or outcomes."
    return sentence_list("findings", sentences) + table(
        "Changes", note, heads(titles), rows, "Entry"
    )


def _are(n: int, one: str, many: str) -> str:
    return f"1 {one} is" if n == 1 else f"{n:,} {many} are"


def _why(one: Change) -> str:
    """Return what an entry says of itself, without what it is for machines."""
    silent = ("rows", "persons", "held", "undo")
    return "; ".join(f"{key}: {text}" for key, text in one.says.items() if key not in silent)


def _proof(found: Summary) -> str:
    return (
        f"<p>The chain has {found.head.number:,} entries. Checkpoint:</p>\n"
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
