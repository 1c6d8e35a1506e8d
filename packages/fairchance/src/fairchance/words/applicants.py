"""Sentences about applicants on record: their files, and what cannot be done to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fairchance.words import date, date_span, percent

if TYPE_CHECKING:
    from fairchance.ledger.applicant import ApplicantFile

__all__ = ["file_facts", "file_title", "how_decided", "objection_advice", "objection_words"]

_OBJECTIONS = {
    "unknown": "are unknown or erased",
    "not_accepted": "are not accepted",
    "in_history": "belong to the history",
    "overridden": "were overridden before",
    "not_overridden": "are not overridden",
    "has_outcome": "have an outcome already",
    "taken": "have an outcome, so the loan was taken",
    "take_up_over": "were decided on too long ago to count as not having taken the loan",
    "final_outcome": "have an outcome that is final",
    "accepted": "are already accepted",
    "rejected": "are already rejected",
    "held": "are under hold",
    "not_held": "are not under hold",
    "retained": "must be kept until {until} at the latest",
}
_ADVICE = {
    "overridden": "undo that override first ({option}), or remove them",
    "take_up_over": "withdraw them, and they count as bad, or remove them",
    "held": "release them first, or remove them",
    "retained": "erase them early ({option}) and say why in the reason, or remove them",
}


def objection_words(code: str, until: str = "") -> str:
    """Say why something cannot be done, after the word "ids".

    Examples
    --------
    >>> objection_words("held"), objection_words("retained", "2033-02-15")
    ('are under hold', 'must be kept until 2033-02-15 at the latest')
    """
    return _OBJECTIONS[code].format(until=until)


def objection_advice(code: str) -> str:
    """Say what to do about an objection; ``{option}`` stands for its option.

    Examples
    --------
    >>> objection_advice("unknown"), objection_advice("held")
    ('remove them', 'release them first, or remove them')
    """
    return _ADVICE.get(code, "remove them")


def file_title(file: ApplicantFile, program: str) -> str:
    """Return whose file it is."""
    who = "An erased application" if file.id is None else f"Application {file.id!r}"
    return f"{who} of program {program!r}"


def file_facts(file: ApplicantFile) -> Iterator[tuple[str, str]]:
    """Yield what is on record about an applicant: facts with their names."""
    if file.proof["fits"] is False:
        yield "Warning", "what is recorded does not fit its receipt: run fairchance verify"
    yield "Number in the ledger", f"{file.person}"
    if file.erased is not None:
        yield "Erased", _change(file.erased, file.erased["reason"])
    yield from _decision_facts(file.decision, _when(file.round))
    yield from _change_facts(file)
    for title, values in (("Features", file.features), ("Groups", file.groups)):
        if values is not None:
            yield title, ", ".join(f"{name} {_value(one)}" for name, one in values.items())
    if file.kept_until is not None and file.erased is None:
        yield "Kept until", file.kept_until
    yield "Proof", _proof(file)


def _when(round: Mapping[str, Any]) -> str:
    """Say when a decision was made, as far as the record tells: during its round."""
    if round["imported"] is not None:
        return date(round["imported"])
    if round["closed"] is None:
        return "which is open"
    return date_span(round["opened"] or round["closed"], round["closed"])


def _decision_facts(decided: Mapping[str, Any], when: str) -> Iterator[tuple[str, str]]:
    if not decided["round"]:
        yield "Decision", f"{decided['decision']}, by the past, in the history"
        return
    how = how_decided(decided)
    yield "Decision", f"{decided['decision']}, {how}, in round {decided['round']}, {when}"
    yield "Chance of acceptance", percent(decided["propensity"])
    if decided["score"] is not None:
        cut = "" if decided["threshold"] is None else f", needed {decided['threshold']:.4g}"
        where = " where the program decides" if cut and decided["ramp"] < 1 else ""
        yield "Score", f"{decided['score']:.4g}{cut}{where}"
    if decided["incumbent"] is not None:
        yield "Today's process", "accept" if decided["incumbent"] else "reject"
    for why in decided["reasons"] or ():
        yield "Reason", f"{why['column']} ({why['contribution']:+.3g})"
    if decided["letter"] is not None:
        yield "Letter", decided["letter"]


def _change_facts(file: ApplicantFile) -> Iterator[tuple[str, str]]:
    """Yield what happened after the decision, the oldest of a kind first."""
    for one in file.overrides:
        now = "accepted" if one["accepted"] else "rejected"
        yield "Override", _change(one, ", ".join(filter(None, (now, one["reason"]))))
    if file.overrides:
        yield "In force", "accepted" if file.accepted else "rejected"
    for one in file.outcomes:
        yield "Outcome", _change(one, str(one["outcome"]).replace("_", " "))
    for one in file.holds:
        yield "Held" if one["held"] else "Released", _change(one, one["reason"])


def how_decided(decided: Mapping[str, Any]) -> str:
    """Say how a decision came about; a list of decisions does not have all of it.

    Examples
    --------
    >>> how_decided({"decision": "reject", "region": "explore"})
    'not explored'
    """
    if decided.get("status") == "shadow":
        return "by today's process"
    if decided["region"] == "explore":
        return "explored" if decided["decision"] == "accept" else "not explored"
    return "barred" if decided.get("barred") else "by score or lender"


def _change(one: Mapping[str, Any], what: str) -> str:
    return f"{what} ({date(one['at'], time=True)}, by {one['by']!r}, entry {one['entry']})"


def _value(value: Any) -> str:
    return "missing" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _proof(file: ApplicantFile) -> str:
    covered = "no entry yet, since its round is open"
    if file.proof["entry"] is not None:
        covered = f"entry {file.proof['entry']}, hash {file.proof['hash']}"
    receipt, policy = file.decision.get("receipt"), file.proof["policy_entry"]
    parts = [f"receipt {receipt}"] if receipt else []
    parts += [f"in {covered}"] if receipt else [covered]
    parts += [f"policy in entry {policy}"] if policy is not None else []
    return ", ".join(parts)
