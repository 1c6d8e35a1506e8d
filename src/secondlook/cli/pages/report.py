"""One HTML file that shows how a program stands: nothing to load or to run, and fit to print."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from html import escape
from importlib import resources
from pathlib import Path
from shlex import quote
from typing import Any

from secondlook.cli.messages import CAUTION, attention, restarts
from secondlook.cli.options import writing
from secondlook.cli.output import amount, days, interval, people, share, times
from secondlook.cli.pages.figures import Span, draw_all, ladder_records, quiet_svg, spans
from secondlook.cli.pages.html_parts import cell, figure, heads, sentence_list, table
from secondlook.lab.experiments.certificates import freezes
from secondlook.ledger.retention import MONTHS, retention_months
from secondlook.ledger.summary import (
    Change,
    Details,
    GroupSummary,
    Outcomes,
    Rejections,
    RoundSummary,
    Summary,
    exact_interval,
)

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


def write_program_report(found: Summary, more: Details, path: Path, late: float) -> None:
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


def page(found: Summary, more: Details, late: float) -> str:
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


def _changes(found: Summary, more: Details) -> str:
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


def certificate_findings(found: Summary) -> list[str]:
    """Return how the certificates of a program stand, in sentences; none if it tests for none."""
    sentences = []
    for group, rounds in ladder_records(found).items():
        whom = "" if group is None else f" for group {group}"
        certified = [one["round"] for one in rounds if one["status"] == "certified"]
        first = f"first in round {certified[0]}" if certified else "so there is no promise yet"
        frozen = len(freezes(rounds))
        rankings = "1 ranking was" if frozen == 1 else f"{frozen:,} rankings were"
        sentences.append(
            f"{len(certified)} of {_rounds_certified(len(rounds))} certified{whom}, {first}; "
            f"{rankings} frozen, certificates were dropped {times(_n_dropped(found, group))}, and "
            f"testing began again {_again(rounds, found)}."
        )
        said = rounds[-1]["message"]
        if said:
            sentences.append(f"The last round{whom} said: “{said}”")
    return sentences


def certificate_table(found: Summary) -> str:
    """Return the certificates that came and went, one an entry; nothing if there were none."""
    entries = [one for one in found.changes if one.kind == "certificate"]
    if not entries:
        return ""
    rows = [
        (
            f"{one.entry}",
            "".join(
                cell(escape(text))
                for text in (one.at[:16], str(one.says["round"]), _certificate_group(one))
            )
            + f'<td class="words">{escape(_certificate_event(one))}</td>',
        )
        for one in entries
    ]
    note = (
        "A certificate is of a rule: the best share of a frozen ranking, with a soft edge. "
        "Evidence is the log wealth of somebody who bets that the rule keeps the bound."
    )
    return table("Certificates", note, heads(["When", "Round", "Whom", "What"]), rows, "Entry")


def _certificate_event(one: Change) -> str:
    """Return in words what an entry says of a certificate."""
    says = one.says
    if says["what"] == "dropped":
        n = len(says.get("certificates", ()))
        lost = "1 certificate was" if n == 1 else f"{n:,} certificates were"
        return f"{lost} dropped after {_after(str(says['why']))}"
    return (
        f"The best {says['share']:.1%} are certified at α = {says['alpha']:g} and δ = "
        f"{says['delta']:g}: evidence {says['log_wealth']:.2f}, needed {says['threshold']:.2f}"
    )


def _after(why: str) -> str:
    known = {"correction": "a correction", "outcomes": "outcomes that spoke against it"}
    return known.get(why, f"an {why}" if why in ("erasure", "override") else why)


def _certificate_group(one: Change) -> str:
    group = one.says.get("group")
    if group is None:
        return "everybody"
    return ", ".join(map(str, group)) if isinstance(group, list) else str(group)


def _rounds_certified(n: int) -> str:
    return "1 round is" if n == 1 else f"{n:,} rounds are"


def _again(rounds: Sequence[dict[str, Any]], found: Summary) -> str:
    """Return when testing began again in one certificate's rounds, and after what."""
    again = restarts(found, rounds[0]["group"])
    if not again:
        return "0 times"
    when = [f"with round {t} after {why}" for t, why in again]
    return f"{times(len(again))}, {', '.join(when[:-1])}{' and ' if when[1:] else ''}{when[-1]}"


def _n_dropped(found: Summary, group: Any) -> int:
    dropped = [one.says for one in found.changes if one.says.get("what") == "dropped"]
    return sum(group is None or one.get("group") == group for one in dropped)


_METHODS = {
    "CertifiedClassifier": "rounds carry a promise once outcomes of earlier ones have shown that "
    "the rule keeps the bound, and are pilots until then",
    "PartialFeedbackClassifier": "rounds hold an estimate of the mistakes under the bound, and "
    "promise nothing",
}
_MODES = {
    "aware": "a decision may depend on the group of the person decided on",
    "blind": "the group of a person changes no decision on that person; groups of people whose "
    "outcome is known may shape what is learned",
    "audit": "no group changes any decision; groups are read to be counted",
}
_SHOWN = ("alpha", "delta", "learner", "group_mode", "maturity", "patience", "utility")
_SECRET = ("random_state",)  # whoever knows it knows who will be drawn
_MOST = 10  # columns named


def how_it_decides(found: Summary, more: Details) -> str:
    """Return what the record says of how decisions are made, as tables."""
    rows = [
        (name, f'<td class="words">{escape(" ".join(text.split()))}</td>')
        for name, text in _settings(found, more)
    ]
    note = "As the first entry of the chain has it; it never changes."
    return table("Settings", note, heads(["On the record"]), rows, "What") + _refusals(
        more.rejections
    )


def _settings(found: Summary, more: Details) -> Iterator[tuple[str, str]]:
    says, about = more.says, found.about
    settings = says.get("settings", {})
    version = says.get("secondlook", "of an unknown version")
    yield "Started", f"{more.at[:16]} UTC by {more.by}, with secondlook {version}"
    method = _METHODS.get(found.classifier)
    yield "Method", found.classifier + (f": {method}" if method else "")
    yield "Learner", _learner(settings.get("learner", "not told"))
    yield "Decides by", _features(says)
    yield "Protected attributes", _group_setting(says)
    yield from _outcome_labels(says, about)
    bound = found.promise.alpha
    yield "α, the bound on the share of bad", "none" if bound is None else f"{bound:g}"
    if found.promise.delta is not None:
        promised = f"{found.promise.delta:g}, for all certified rounds together"
        yield "δ, the chance that a certified round breaks it", promised
    if "maturity" in settings:
        yield "Maturity", _rounds_setting(settings["maturity"], "rounds until outcomes count")
    if "patience" in settings:
        late = "rounds after which an outcome that has not come counts as bad in the tests"
        yield (
            "Patience",
            _rounds_setting(settings["patience"], late, "the tests wait for every outcome"),
        )
    worth = settings.get("utility", "not told")
    yield "Worth of decisions", "the method's own" if worth == "None" else worth
    yield "Missing values", _missing(about)
    yield "Data of people are kept", f"{retention_months(about)} months, or longer under a hold"
    others = [f"{key} = {text}" for key, text in settings.items() if key not in (*_SHOWN, *_SECRET)]
    if others:
        yield "Other settings", ", ".join(others)


def _learner(said: str) -> str:
    return "the method's own logistic model" if said == "None" else said


def _features(says: dict[str, Any]) -> str:
    columns = says.get("columns") or {}
    names, texts = columns.get("names"), columns.get("texts", ())
    if names is None:
        n = len((says.get("reference") or {}).get("names", ()))
        return f"{n} columns without names" if n else "columns without names"
    return ", ".join(f"{one} (text)" if one in texts else str(one) for one in names)


def _group_setting(says: dict[str, Any]) -> str:
    if not says.get("has_groups", False):
        return "none are known to the program"
    names = ", ".join(map(str, says.get("group_names") or ["one without a name"]))
    mode = str(says.get("group_mode", ""))
    meaning = _MODES.get(mode)
    return f"{names}; mode {mode}" + (f": {meaning}" if meaning else "")


def _outcome_labels(says: dict[str, Any], about: dict[str, Any]) -> Iterator[tuple[str, str]]:
    words = about.get("outcomes") or {
        "good": [says.get("good", "not told")],
        "bad": [says.get("bad", "not told")],
    }
    for state in ("good", "bad"):
        yield f"A {state} outcome", ", ".join(repr(one) for one in words.get(state, ()))
    never = ", ".join(repr(one) for one in words.get("indeterminate", ()))
    yield "Never to be known", never or "no word of a file; people are withdrawn one by one"


def _rounds_setting(said: str, words: str, none: str = "none") -> str:
    return none if said == "None" else f"{said} {words}"


def _missing(about: dict[str, Any]) -> str:
    if "missing" not in about:
        return "as the learner takes them"
    if about["missing"]:
        return "rows with missing features are used; the learner says what is read in their place"
    return "rows with missing features are refused"


def _refusals(found: Rejections) -> str:
    if not found.n:
        return ""
    rows = [
        (one.name, cell(f"{one.n:,}") + cell(share(one.n / found.n)) + cell(f"{one.n_first:,}"))
        for one in found.reasons[:_MOST]
    ]
    left_out = len(found.reasons) - len(rows)
    more = f" Columns not shown: {left_out:,}." if left_out else ""
    note = (
        f"Of {people(found.n)} whom the program refused and who are not erased: columns that "
        f"lowered the score, at most four a person; {found.n_without:,} have none that did.{more}"
    )
    titles = ["People", "Share", "As the first reason"]
    return table("Reasons of refusals", note, heads(titles), rows, "Column")
