"""See how a program stands: ``secondlook status`` and, of a ledger, ``secondlook report``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console

from secondlook.cli.messages import CAUTION, attention, began_again
from secondlook.cli.options import (
    Groups,
    Json,
    Late,
    LedgerUrl,
    ProgramName,
    Trusted,
    errors,
    progress,
)
from secondlook.cli.output import (
    amount,
    as_json,
    days,
    interval,
    people,
    print_fitted,
    share,
    times,
)


def status(
    ledger: LedgerUrl,
    program: ProgramName = "main",
    late: Late = 180.0,
    groups: Groups = True,
    rounds: Annotated[
        int, typer.Option(min=1, help="How many of the last rounds to print; JSON has all.")
    ] = 12,
    trusted: Trusted = None,
    json: Json = False,
) -> None:
    """Say how a program stands: what needs attention, rounds, outcomes, mistakes, groups.

    Example: secondlook status --ledger sqlite:///lender.db --late 180
    """
    with errors(json):
        from secondlook.ledger import SqlLedger  # noqa: PLC0415 - an extra
        from secondlook.ledger.summary import summarise  # noqa: PLC0415

        with progress("counting", json):
            found = summarise(SqlLedger(ledger), program, groups=groups, trusted=trusted or ())
        if json:
            as_json(told(found, late))
        else:
            _print(Console(), found, late, rounds)


def told(found: Any, late: float) -> dict[str, Any]:
    """Return a summary as plain data."""
    return {
        "program": found.program,
        "classifier": found.classifier,
        "at": found.at,
        "checkpoint": str(found.head),
        "alpha": found.promise.alpha,
        "delta": found.promise.delta,
        "attention": attention(found, late),
        "caution": CAUTION,
        "people": {
            "history": found.n_history,
            "decided": found.total("n_people"),
            "accepted": found.total("n_accepted"),
            "exploited": found.total("n_exploited"),
            "explored": found.total("n_explored"),
            "explored_at_most": found.budget,
            "overridden": found.total("n_overridden"),
            "accepted_and_overridden": found.total("n_set_apart"),
            "accepted_by_hand": found.total("n_by_hand"),
            "erased": found.n_erased,
            "held": found.n_held,
            "expired": found.n_expired,
        },
        "outcomes": {
            "all": _outcomes(found.outcomes),
            "exploited": _outcomes(found.exploited),
            "explored": _outcomes(found.explored),
            "by_override": _outcomes(found.overridden),
        },
        "worth": found.worth(found.outcomes),
        "waiting": asdict(found.waiting()),
        "late": {"after_days": late, **asdict(found.waiting(late))},
        "certified_rounds": [one.round for one in found.rounds if one.certified],
        "enters_next": _enters_next(found),
        "rounds": [_round(one) for one in found.rounds],
        "groups": [
            asdict(one)
            | {
                "outcomes": _outcomes(one.outcomes),
                "n_set_apart": one.n_set_apart,
                "erased": one.group is None,
            }
            for one in found.groups
        ],
        "changes": [asdict(one) for one in found.changes],
    }


def _enters_next(found: Any) -> list[dict[str, Any]]:
    """Return which round enters the tests of each certificate next, and what it waits for."""
    groups = [one.get("group") for one in found.rounds[-1].records] if found.rounds else []
    every = [(group, found.next_tested(group)) for group in groups]
    return [{"group": group, **asdict(one)} for group, one in every if one is not None]


def _outcomes(one: Any) -> dict[str, Any]:
    return asdict(one) | {"fdr": one.fdr, "interval": one.interval, "range": one.range}


def _round(one: Any) -> dict[str, Any]:
    return asdict(one) | {
        "n_accepted": one.n_accepted,
        "n_set_apart": one.n_set_apart,
        "alpha_exploit": one.alpha_exploit,
        "thresholds": one.thresholds,
        "outcomes": _outcomes(one.outcomes),
        "overridden": _outcomes(one.overridden),
    }


def _print(console: Console, found: Any, late: float, most: int) -> None:
    alpha = "" if found.promise.alpha is None else f", α = {found.promise.alpha:g}"
    _say(console, f"Program {found.program!r} ({found.classifier}{alpha}), {found.at}")
    for sentence in attention(found, late) or ["Nothing needs attention."]:
        _say(console, f"• {sentence}", style="bold")
    if not found.rounds:
        return
    _mistakes(console, found)
    low, high = found.outcomes.range
    _say(
        console,
        f"never: the outcome will not be known; overrides: who stands accepted and was once "
        f"overridden by a person, in no other line of this table; tables below count decisions as "
        f"the program made them. {CAUTION} If everybody without an outcome were good "
        f"the FDR would be {share(low)}, and {share(high)} if bad.",
        style="dim",
    )
    _rounds(console, found.rounds[-most:])
    left_out = len(found.rounds) - most
    if left_out > 0:
        _say(console, f"Earlier rounds not shown: {left_out:,} (--rounds).", style="dim")
    for attribute in dict.fromkeys(one.attribute for one in found.groups):
        _groups(console, attribute, [g for g in found.groups if g.attribute == attribute])
    _say(console, _summed_up(found))
    _say(console, f"Checkpoint: {found.head}")
    _say(console, "Not verified here: secondlook verify does that.", style="dim")


def _say(console: Console, words: str, style: str | None = None) -> None:
    console.print(words, style=style, highlight=False, markup=False, soft_wrap=True)


def _mistakes(console: Console, found: Any) -> None:
    worth = found.promise.utility is not None
    titles = ["", "accepted", "good", "bad", "never", "pending", "FDR", "95 %"]
    rows = []
    for name, one in (
        ("all", found.outcomes),
        ("exploited", found.exploited),
        ("explored", found.explored),
        ("overrides", found.overridden),
    ):
        counts = (one.accepted, one.good, one.bad, one.indeterminate, one.pending)
        cells = [f"{n:,}" for n in counts] + [share(one.fdr), interval(one)]
        rows.append([name, *cells, *([amount(found.worth(one))] if worth else [])])
    more = ["worth"] if worth else []
    print_fitted(console, "Outcomes so far", titles + more, rows, more)


def _rounds(console: Console, rounds: Sequence[Any]) -> None:
    titles = ("round", "applied", "accepted", "explored", "cert.", "pending", "days", "FDR", "95 %")
    rows = [
        [
            f"{one.round} {one.batch}",
            f"{one.n_people:,}",
            f"{one.n_accepted:,}",
            f"{one.n_explored:,}",
            "yes" if one.certified else "no",
            f"{one.outcomes.pending:,}",
            f"{one.age:,.0f}",
            share(one.outcomes.fdr),
            interval(one.outcomes),
        ]
        for one in rounds
    ]
    print_fitted(console, "Rounds", titles, rows, ("days", "explored", "applied", "95 %"))


def _groups(console: Console, attribute: str, groups: Sequence[Any]) -> None:
    titles = ("group", "applied", "accepted", "rate", "explored", "pending", "FDR", "95 %")
    rows = [
        [
            "(erased)" if one.group is None else one.group,
            f"{one.n_people:,}",
            f"{one.n_accepted:,}",
            share(one.n_accepted / one.n_people),
            f"{one.n_explored:,}",
            f"{one.outcomes.pending:,}",
            share(one.outcomes.fdr),
            interval(one.outcomes),
        ]
        for one in groups
    ]
    spare = ("pending", "explored", "95 %", "applied")
    print_fitted(console, f"Groups by {attribute}", titles, rows, spare)


def _summed_up(found: Any) -> str:
    """Say in one line what is left: exploring, waiting, certificates, what people changed."""
    waiting = found.waiting()
    corrected = sum(one.n for one in found.changes if one.kind == "correction")
    at_most = "" if math.isnan(found.budget) else f" (the budget allows {found.budget:,.0f})"
    since = f", median {days(waiting.median)}, oldest {days(waiting.oldest)}" if waiting.n else ""
    certified = [one.round for one in found.rounds if one.certified]
    promised = ""
    if certified:
        rounds = "1 round" if len(certified) == 1 else f"{len(certified)} rounds"
        promised = f"{rounds} certified, first {certified[0]}"
    again = began_again(found)
    if again:
        often = f"testing began again {times(len(again))}, last with round {again[-1][0]}"
        promised = f"{promised or 'no round certified'}; {often} after {again[-1][1]}"
    parts = [
        f"{found.total('n_explored'):,} explored{at_most}",
        f"{waiting.n:,} waiting for an outcome{since}",
        promised or "no round certified",
        f"{found.total('n_overridden'):,} overridden",
        "1 outcome corrected" if corrected == 1 else f"{corrected:,} outcomes corrected",
        f"{people(found.n_held)} held, {found.n_erased:,} erased",
    ]
    return "; ".join(parts) + "."
