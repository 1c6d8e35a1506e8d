"""``fairchance status``: the state of a program."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairchance.cli.options import (
    Groups,
    Json,
    Late,
    MaybeLedgerUrl,
    ProgramName,
    ReadUrl,
    Trusted,
    errors,
    ledger_url,
    progress,
)
from fairchance.cli.output import Console, print_json, print_table
from fairchance.words import (
    amount,
    counted,
    date,
    days,
    intervals_assume,
    people,
    percent,
    share,
)
from fairchance.words.checks import CAUTION, check_text, verdict
from fairchance.words.money import MONEY_TITLES, money_note, money_rows, money_verdict
from fairchance.words.rounds import (
    certificates_assume,
    open_round_words,
    ramp_words,
    sentence,
    status_word,
    surely,
    take_up_rows,
)

if TYPE_CHECKING:  # an extra, and slow to import
    from fairchance.audit.rates import Rate
    from fairchance.ledger.summary import GroupSummary, Outcomes, RoundSummary, Summary

__all__ = ["status"]

_STYLES = {"red": "red", "amber": "yellow", "green": "green"}  # the word is always printed, too


def status(
    place: ReadUrl = None,
    ledger: MaybeLedgerUrl = None,
    program: ProgramName = None,
    late: Late = 180.0,
    groups: Groups = True,
    rounds: Annotated[
        int, typer.Option(min=1, help="How many of the last rounds to print; JSON has all.")
    ] = 12,
    trusted: Trusted = None,
    json: Json = False,
) -> None:
    """Print the state of a program: a verdict, what needs attention, rounds, outcomes, groups.

    A light is red if chance cannot explain that a bound is broken, amber if an estimate is on the
    wrong side of its bound or if something else needs attention, and green otherwise. All intervals
    hold at all times, so the command may be given as often as you like. The exit code is 0 for
    every light; JSON has all checks.

    Example: fairchance status sqlite:///lender.db --late 180
    """
    with errors(json):
        from fairchance.ledger import SqlLedger  # noqa: PLC0415 - an extra
        from fairchance.ledger.summary import summarise  # noqa: PLC0415

        with progress("counting", json):
            kept = SqlLedger(ledger_url(place, ledger))
            summary = summarise(kept, program, groups=groups, trusted=trusted or ())
        if json:
            print_json(as_data(summary, late))
        else:
            print_status(Console(), summary, late, rounds)


def as_data(summary: Summary, late: float) -> dict[str, Any]:
    """Return a summary as plain data for JSON; sentences are under the key ``message``."""
    from fairchance.ledger.health import check_health, worst_light  # noqa: PLC0415 - an extra

    checks = check_health(summary, late)
    return {
        "program": summary.program,
        "classifier": summary.classifier,
        "at": summary.at,
        "checkpoint": str(summary.head),
        "alpha": summary.promise.alpha,
        "delta": summary.promise.delta,
        "shock": summary.promise.shock,
        "ramp": summary.control.ramp,
        "paused": summary.control.paused,
        "light": worst_light(checks),
        "message": verdict(checks),
        "checks": [asdict(check) | {"message": check_text(check)} for check in checks],
        "people": {
            "history": summary.n_history,
            "decided": summary.total("n_people"),
            "accepted": summary.total("n_accepted"),
            "exploited": summary.total("n_exploited"),
            "explored": summary.total("n_explored"),
            "explored_at_most": summary.budget,
            "barred": summary.total("n_barred"),
            "overridden": summary.total("n_overridden"),
            "accepted_and_overridden": summary.total("n_set_apart"),
            "accepted_by_hand": summary.total("n_by_hand"),
            "erased": summary.n_erased,
            "held": summary.n_held,
            "expired": summary.n_expired,
        },
        "outcomes": {
            "all": _outcomes(summary.outcomes),
            "exploited": _outcomes(summary.exploited),
            "explored": _outcomes(summary.explored),
            "by_override": _outcomes(summary.overridden),
        },
        "worth": summary.worth(summary.outcomes),
        "currency": summary.currency,
        "money": _money(summary),
        "waiting": asdict(summary.waiting()),
        "late": {"after_days": late, **asdict(summary.waiting(late))},
        "certified_rounds": [row.round for row in summary.rounds if row.stands],
        "withdrawn_rounds": [row.round for row in summary.rounds if row.withdrawn],
        "open_round": None if summary.open_round is None else asdict(summary.open_round),
        "enters_next": _enters_next(summary),
        "rounds": [_round(row) for row in summary.rounds],
        "groups": [_group(group) for group in summary.groups],
        "changes": [asdict(change) for change in summary.changes],
    }


def _money(summary: Summary) -> dict[str, Any] | None:
    """Return what was earned against today's policy, with a sentence."""
    money = summary.money
    if money is None:
        return None
    return asdict(money) | {"message": money_verdict(money, summary.currency)}


def _enters_next(summary: Summary) -> list[dict[str, Any]]:
    """Return for each certificate the round that enters its tests next, and what it waits for."""
    records = summary.rounds[-1].certificates if summary.rounds else ()
    found = [summary.next_tested(record.group) for record in records]
    return [asdict(next_in) for next_in in found if next_in is not None]


def _outcomes(outcomes: Outcomes, rate: Rate | None = None) -> dict[str, Any]:
    rate = rate or outcomes.mistakes()
    more = {"fdr": rate.value, "interval": (rate.low, rate.high), "range": outcomes.range}
    return asdict(outcomes) | {"taken": outcomes.taken} | more


def _round(row: RoundSummary) -> dict[str, Any]:
    return asdict(row) | {
        "n_incumbent": row.n_incumbent,
        "n_barred": row.n_barred,
        "n_accepted": row.n_accepted,
        "n_set_apart": row.n_set_apart,
        "n_by_hand": row.n_by_hand,
        "alpha_exploit": row.alpha_exploit,
        "thresholds": row.thresholds,
        "outcomes": _outcomes(row.outcomes),
        "overridden": _outcomes(row.overridden),
    }


def _group(group: GroupSummary) -> dict[str, Any]:
    more: dict[str, Any] = {"n_set_apart": group.n_set_apart, "erased": group.group is None}
    if group.group is not None:
        more |= {"outcomes": _outcomes(group.outcomes, group.mistakes)}
        more |= {"acceptance": asdict(group.acceptance)}
    return asdict(group) | more


def print_status(console: Console, summary: Summary, late: float, most: int) -> None:
    """Print a summary with at most so many of the last rounds."""
    from fairchance.ledger.health import check_health, worst_light  # noqa: PLC0415 - an extra

    checks = check_health(summary, late)
    _print(console, verdict(checks), style=f"bold {_STYLES[worst_light(checks)]}")
    alpha = "" if summary.promise.alpha is None else f", α = {summary.promise.alpha:g}"
    _print(
        console,
        f"Program {summary.program!r} ({summary.classifier}{alpha}), {date(summary.at, time=True)}",
    )
    for check in checks:
        if check.light != "green":
            line = f"• {check.light.upper()}: {check_text(check)}"
            _print(console, line, style=_STYLES[check.light])
    if summary.open_round is not None:
        _print(console, open_round_words(summary.open_round))
    if summary.control.ramp < 1:
        _print(console, sentence(ramp_words(summary.control.ramp)))
    if not summary.rounds:
        return
    _print_money(console, summary, most)
    _print_outcomes(console, summary)
    _print(
        console,
        f"withdrawn: the outcome will never be known; overrides: accepted by a person against the "
        f"program, and in no other line. All intervals hold at all times. "
        f"{intervals_assume(summary.promise.shock)} {CAUTION}",
        style="dim",
    )
    if summary.ladders():
        _print(console, certificates_assume(summary), style="dim")
    _print_rounds(console, summary.rounds[-most:])
    hidden = len(summary.rounds) - most
    if hidden > 0:
        _print(console, f"Earlier rounds not shown: {hidden:,} (--rounds).", style="dim")
    for attribute in dict.fromkeys(group.attribute for group in summary.groups):
        _print_groups(console, attribute, [g for g in summary.groups if g.attribute == attribute])
    take_up = take_up_rows(summary, most)
    if take_up:
        titles = ("", "accepted", "taken", "not taken", "take-up")
        print_table(console, "Take-up so far (pending counts as taken)", titles, take_up)
    _print(console, _totals(summary))
    _print(console, f"Checkpoint: {summary.head}")
    _print(console, "The ledger was not verified: fairchance verify does that.", style="dim")


def _print(console: Console, text: str, style: str | None = None) -> None:
    console.print(text, style=style, soft_wrap=True)


def _mistakes(rate: Rate) -> list[str]:
    """Return the cells of a share of mistakes, and of its interval."""
    return [share(rate.value), f"{share(rate.low)}–{share(rate.high)}" if rate.n else "–"]


def _print_money(console: Console, summary: Summary, most: int) -> None:
    """Print what was earned against today's policy, and at most so many of the last periods."""
    money = summary.money
    if money is None:
        return
    _print(console, money_verdict(money, summary.currency))
    if not math.isnan(money.whole.added):
        titles = (money.axis, *MONEY_TITLES)
        rows = money_rows(money, summary.currency)[-most - 1 :]
        print_table(console, f"Earned, by {money.axis}", titles, rows)
        _print(console, money_note(money), style="dim")


def _print_outcomes(console: Console, summary: Summary) -> None:
    has_worth = summary.promise.utility is not None
    titles = ["", "accepted", "good", "bad", "withdrawn", "pending", "FDR", "interval"]
    rows = []
    for name, outcomes in (
        ("all", summary.outcomes),
        (surely(summary), summary.exploited),
        ("explored", summary.explored),
        ("overrides", summary.overridden),
    ):
        counts = (
            outcomes.accepted,
            outcomes.good,
            outcomes.bad,
            outcomes.withdrawn,
            outcomes.pending,
        )
        worth = [amount(summary.worth(outcomes), summary.currency)] if has_worth else []
        rows.append([name, *(f"{n:,}" for n in counts), *_mistakes(outcomes.mistakes()), *worth])
    print_table(console, "Outcomes so far", titles + ["worth"] * has_worth, rows)


def _print_rounds(console: Console, rounds: Sequence[RoundSummary]) -> None:
    titles = ("round", "applied", "accepted", "explored", "status", "pending", "FDR", "interval")
    rows = [
        [
            f"{row.round} {row.batch}",
            f"{row.n_people:,}",
            f"{row.n_accepted:,}",
            f"{row.n_explored:,}",
            status_word(row),
            f"{row.outcomes.pending:,}",
            *_mistakes(row.outcomes.mistakes()),
        ]
        for row in rounds
    ]
    print_table(console, "Rounds", titles, rows)


def _print_groups(console: Console, attribute: str, groups: Sequence[GroupSummary]) -> None:
    titles = ("group", "applied", "accepted", "rate", "explored", "pending", "FDR", "interval")
    rows = [
        [
            "(erased)" if group.group is None else group.group,
            f"{group.n_people:,}",
            f"{group.n_accepted:,}",
            share(group.n_accepted / group.n_people),
            f"{group.n_explored:,}",
            f"{group.outcomes.pending:,}",
            *(["–", "–"] if group.group is None else _mistakes(group.mistakes)),
        ]
        for group in groups
    ]
    print_table(console, f"Groups by {attribute}", titles, rows)


def _totals(summary: Summary) -> str:
    """Return exploration, waiting and manual changes in one line."""
    waiting = summary.waiting()
    corrected = sum(change.n for change in summary.changes if change.kind == "correction")
    budget = summary.budget
    at_most = "" if math.isnan(budget) else f" (the budget allows {budget:,.0f})"
    age = f", median {days(waiting.median)}, oldest {days(waiting.oldest)}" if waiting.n else ""
    least = summary.rounds[-1].least_chance
    chance = "" if math.isnan(least) else f", chances in the last round from {percent(least)} on"
    parts = [
        f"{summary.total('n_explored'):,} explored{at_most}{chance}",
        f"{waiting.n:,} waiting for an outcome{age}",
        *([f"{barred:,} barred"] if (barred := summary.total("n_barred")) else []),
        f"{summary.total('n_overridden'):,} overridden",
        f"{counted(corrected, 'outcome')} corrected",
        f"{people(summary.n_held)} held, {summary.n_erased:,} erased",
    ]
    return "; ".join(parts) + "."
