"""What a report says of certificates: how many rounds have one, which came, and which were lost."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from secondlook.cli.pages.figures import ladder_records
from secondlook.cli.programs.attention import began_again, times
from secondlook.cli.programs.waiting_words import without_advice
from secondlook.lab.experiments.certificates import freezes
from secondlook.lab.experiments.page_parts import cell, heads, table
from secondlook.ledger.summary import Change, Summary

__all__ = ["certificate_findings", "certificate_table"]


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
            f"{len(certified)} of {_rounds(len(rounds))} certified{whom}, {first}; {rankings} "
            f"frozen, certificates were dropped {times(_n_dropped(found, group))}, and testing "
            f"began again {_again(rounds, found)}."
        )
        said = without_advice(rounds[-1]["message"])
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
                cell(escape(text)) for text in (one.at[:16], str(one.says["round"]), _whom(one))
            )
            + f'<td class="words">{escape(_what(one))}</td>',
        )
        for one in entries
    ]
    note = (
        "A certificate is of a rule: the best share of a frozen ranking, with a soft edge. "
        "Evidence is the log wealth of somebody who bets that the rule keeps the bound."
    )
    return table("Certificates", note, heads(["When", "Round", "Whom", "What"]), rows, "Entry")


def _what(one: Change) -> str:
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


def _whom(one: Change) -> str:
    group = one.says.get("group")
    if group is None:
        return "everybody"
    return ", ".join(map(str, group)) if isinstance(group, list) else str(group)


def _rounds(n: int) -> str:
    return "1 round is" if n == 1 else f"{n:,} rounds are"


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
