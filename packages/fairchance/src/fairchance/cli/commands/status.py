"""``fairchance status``: the state of a program."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairchance.cli.options import (
    LIGHT_CODES,
    Groups,
    Json,
    Late,
    MaybeLedgerUrl,
    ProgramName,
    ReadUrl,
    Trusted,
    errors,
    ledger_url,
    open_program,
    progress,
)
from fairchance.cli.output import Console, print_error, print_json, print_lines, print_table
from fairchance.errors import InputError, UnavailableError
from fairchance.words import (
    LIGHTS,
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
    from fairchance.ledger import SqlLedger
    from fairchance.ledger.alerts import Receiver
    from fairchance.ledger.summary import GroupSummary, RoundSummary, Summary

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
    fail_on: Annotated[
        str | None,
        typer.Option(
            "--fail-on",
            metavar="red|amber",
            help="End with exit code 6 if the light is red; with amber, also with 7 if it is that.",
        ),
    ] = None,
    notify: Annotated[
        bool,
        typer.Option(
            "--notify",
            help="Tell the receiver that [alerts] names which lights changed since the last alert.",
        ),
    ] = False,
    trusted: Trusted = None,
    json: Json = False,
) -> None:
    """Print the state of a program: a verdict, what needs attention, rounds, outcomes, groups.

    A light is red if chance cannot explain that a bound is broken, amber if an estimate is on the
    wrong side of its bound or if something else needs attention, and green otherwise. All intervals
    hold at all times, so the command may be given as often as you like. The exit code is 0 for
    every light unless --fail-on is given; JSON has all checks. With --notify, the receiver is told
    once of each change of a light, so give the command often and with the same --late.

    Example: fairchance status sqlite:///lender.db --late 180
    """
    with errors(json):
        if fail_on not in (None, *LIGHTS[:-1]):
            raise InputError(f"{{option}} must be red or amber, got {fail_on!r}.", option="fail_on")
        if notify and not groups:
            raise InputError("{option} needs groups, which have lights too.", option="notify")
        opened = open_program(ledger_url(place, ledger), program, None, trusted)
        from fairchance.ledger.health import check_health, worst_light  # noqa: PLC0415 - an extra
        from fairchance.ledger.status_data import status_data  # noqa: PLC0415

        with progress("counting", json):
            summary = opened.summary(groups=groups)
        receiver = _receiver(summary) if notify else None
        if not json:  # before the receiver is told, who may not answer
            print_status(Console(), summary, late, rounds)
        light = worst_light(check_health(summary, late))
        fails = fail_on is not None and LIGHTS.index(light) <= LIGHTS.index(fail_on)
        told = {}
        if receiver is not None:
            try:
                told = {"alert": _alert(opened.ledger, summary, receiver, late)}
            except UnavailableError as error:
                if not fails:
                    raise
                print_error(str(error))  # the light matters more than who was told of it
        if json:
            print_json(status_data(summary, late) | told)
        else:
            print_lines([_alert_words(alert) for alert in told.values()])
        if fails:
            raise typer.Exit(LIGHT_CODES[light])


def _receiver(summary: Summary) -> Receiver:
    """Return the receiver of alerts."""
    from fairchance.ledger.alerts import Receiver  # noqa: PLC0415 - an extra

    receiver = Receiver.of(summary.about)
    if receiver is None:
        raise InputError(
            "the program has no [alerts] url; set FAIRCHANCE_ALERTS_URL, or leave out {option}.",
            option="notify",
        )
    return receiver


def _alert(
    ledger: SqlLedger, summary: Summary, receiver: Receiver, late: float
) -> dict[str, Any] | None:
    """Tell the receiver of alerts what changed; return it, None if nothing did."""
    from fairchance.ledger.alerts import notify  # noqa: PLC0415 - an extra

    alert = notify(ledger, summary, receiver, late=late)
    return None if alert is None else asdict(alert)


def _alert_words(alert: dict[str, Any] | None) -> str:
    """Say what a receiver was told."""
    if alert is None:
        return "No light has changed since the last alert."
    changes = [
        f"{' '.join(filter(None, (one['question'], one['group'])))} {one['light']}"
        for one in alert["changes"]
    ]
    return f"Alert sent: {', '.join(changes)}."


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
    if summary.control.in_force < 1:
        _print(console, sentence(ramp_words(summary.control.in_force)))
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
        (surely(summary.records), summary.exploited),
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
    print_table(console, f"By {attribute}", titles, rows)


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
