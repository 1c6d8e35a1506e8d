"""The state of a program as plain data, for JSON: one answer for the command and the service."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fairchance.audit.rates import Rate
from fairchance.ledger.health import check_health, worst_light
from fairchance.ledger.summary import GroupSummary, Outcomes, RoundSummary, Summary
from fairchance.words.checks import check_text, verdict
from fairchance.words.money import money_verdict

__all__ = ["status_data"]


def status_data(summary: Summary, late: float) -> dict[str, Any]:
    """Return a summary as plain data for JSON; sentences are under the key ``message``."""
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
