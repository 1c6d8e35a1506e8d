"""One applicant's file: all that a program has on record about an application."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np

from fairchance.core.decisions import Decisions
from fairchance.errors import UnknownIdError
from fairchance.ledger.answers import answer
from fairchance.ledger.base import Entry, RecordedRows
from fairchance.ledger.retention import Deadlines, retention_months
from fairchance.ledger.verification.hashes import fits_receipt
from fairchance.ledger.view import ProgramView
from fairchance.people.reasons import letters

__all__ = ["ApplicantFile", "applicant_file", "decision_data", "newest_decisions", "reasons_data"]

# The settings of classifiers by which each group has a threshold of its own.
_CUTS_BY_GROUP = (
    ("thresholds", "per_group"),
    ("ranks", "within_group"),
    ("certify", "per_group"),
    ("hypothesis", "threshold_per_group"),
)


@dataclass(frozen=True)
class ApplicantFile:
    """What is on record about one application.

    Of an erased applicant the decision, changes and proof are left, and no id, features, groups and
    reasons.

    Attributes
    ----------
    id, person
        The id of the application, and the number of the applicant in the ledger.
    erased
        When and why the applicant was erased, None otherwise.
    features, groups
        What the applicant sent; None for groups that were not asked for or not given.
    decision
        What the program decided, as ``decision_data``; of an applicant of the history only whether
        the past accepted.
    accepted
        What is in force: the decision, or its newest override.
    round
        The round, when it was opened and closed (None while it is open), what its policy promised,
        and the entry that holds the policy.
    overrides, outcomes, holds
        Changes, the oldest first, each with its entry, time and author.
    kept_until
        The day until which the applicant is kept; None while the round is open.
    proof
        The entry that covers the decision by its receipt, with its hash (None while the round is
        open), the entry of its policy, and whether what is recorded fits the receipt: None while
        the round is open, or if group values, which the receipt covers, may not be read.
    """

    id: Any
    person: int
    erased: Mapping[str, Any] | None
    features: Mapping[str, Any] | None
    groups: Mapping[str, Any] | None
    decision: Mapping[str, Any]
    accepted: bool
    round: Mapping[str, Any]
    overrides: Sequence[Mapping[str, Any]]
    outcomes: Sequence[Mapping[str, Any]]
    holds: Sequence[Mapping[str, Any]]
    kept_until: str | None
    proof: Mapping[str, Any]


def applicant_file(
    view: ProgramView, application: Any = None, *, person: int | None = None, groups: bool = True
) -> ApplicantFile:
    """Return all that is on record about an application.

    Parameters
    ----------
    view
        The program at one moment.
    application
        The id; text is accepted whatever kind the program's ids have.
    person
        The number of the applicant instead, by which one who was erased is found.
    groups
        Whether to tell groups, and thresholds that would tell them.

    Raises
    ------
    UnknownIdError
        If there is no such applicant.
    """
    reader, shape = view.reader, view.shape
    if person is None:
        # A text stays as it is: numpy drops NUL at its end.
        is_text = isinstance(application, str)
        name = application if is_text else shape.read_names([application])[0]
        person = reader.person_of(name)
        if person is None:
            raise UnknownIdError(f"the id {name!r} is unknown or erased; check it.")
    recorded = reader.recorded_person(person, groups=groups)
    if not len(recorded.people):
        raise UnknownIdError(f"there is no applicant of number {person}; check it.")
    erasure = reader.erasure_of(person)
    covering, opening = _entries_of(view, person, int(recorded.rounds[0]))
    features, values = None, None
    if erasure is None:
        features, values, _ = shape.people(recorded.people)
    decided = _decided(view, recorded, covering or opening)
    settings = view.settings.says["settings"]
    if not groups and any(settings.get(name) == f"'{value}'" for name, value in _CUTS_BY_GROUP):
        decided = {**decided, "threshold": None}
    overrides = [
        {"accepted": bool(to), "reason": reason} | _made(reader.numbered(entry))
        for entry, to, reason in reader.overrides_of(person)
    ]
    outcomes = [
        {"outcome": state} | _made(reader.numbered(entry))
        for entry, state in reader.outcomes_of(person)
    ]
    until = None
    if covering is not None:
        deadlines = Deadlines.of(reader, retention_months(view.about))
        until = str(deadlines.of_people(np.array([person]))[0].astype("M8[D]"))
    may_compare = None if shape.has_groups and not groups else shape.has_groups
    return ApplicantFile(
        id=decided.get("id"),
        person=person,
        erased=None if erasure is None else {"reason": erasure.says["reason"]} | _made(erasure),
        features=None if features is None else _row(features),
        groups=_row(values, "group") if values is not None else None,
        decision=decided,
        accepted=bool(overrides[-1]["accepted"] if overrides else recorded.decisions.accepted[0]),
        round=_round_data(int(recorded.rounds[0]), covering, opening),
        overrides=overrides,
        outcomes=outcomes,
        holds=_holds(view, person),
        kept_until=until,
        proof={
            "entry": None if covering is None else covering.number,
            "hash": None if covering is None else covering.hash.hex(),
            "policy_entry": None if opening is None else opening.number,
            "fits": fits_receipt(
                reader, covering, person, recorded.receipts[0], groups=may_compare
            ),
        },
    )


def newest_decisions(
    view: ProgramView, since: datetime, *, before: int | None = None, most: int = 100
) -> tuple[list[dict[str, Any]], int | None]:
    """Return the newest decisions on record, and the number to go on before.

    Parameters
    ----------
    view
        The program at one moment.
    since
        Leave out rounds that were closed before this time.
    before
        Go on before the applicant of this number.
    most
        How many to return.

    Returns
    -------
    list of dict, int or None
        The decisions, the newest first, and ``before`` of the next call; None if there are no more.
    """
    reader = view.reader
    least = 0
    for kind in ("history", "batch", "import"):
        for entry in reader.newest_first(kind):
            if kind == "history" or entry.when < since:
                least = max(least, entry.people_range.stop)
                break
    recorded, standing = reader.newest_people(least, before, most)
    people, decided = recorded.people, recorded.decisions
    assert people.persons is not None
    listed = [
        {
            "id": one,
            "round": int(recorded.rounds[at]),
            "decision": "accept" if decided.accepted[at] else "reject",
            "region": "exploit" if decided.exploit[at] else "explore",
            "propensity": _numbers(decided.propensity[at : at + 1])[0],
            "overridden": bool(standing.overridden[at]),
            "accepted": bool(standing.accepted[at]),
            "outcome": standing.states[at],
            "receipt": recorded.receipts[at].hex(),
        }
        for at, one in enumerate(view.shape.ids(people.applications).tolist())
    ]
    is_last = len(listed) < most
    return listed[::-1], None if is_last else int(people.persons.min())


def decision_data(
    decided: Decisions, sentences: Mapping[str, Mapping[str, str]]
) -> list[dict[str, Any]]:
    """Return decisions as plain data, with the lender's own words for reasons.

    Parameters
    ----------
    decided
        Recorded decisions.
    sentences
        The lender's sentence and code for each column, as ``about["reasons"]`` has them.
    """
    n = len(decided)
    none: Sequence[Any] = [None] * n
    reasons = none if decided.reasons is None else list(decided.reasons)
    by_lender = {"incumbent": decided.incumbent, "barred": decided.barred}
    letter = letters(reasons, sentences, ramp=decided.ramp, **by_lender)
    columns: dict[str, Sequence[Any]] = {
        "id": decided.ids.tolist(),
        "decision": ["accept" if accepted else "reject" for accepted in decided.accepted.tolist()],
        "region": decided.region.tolist(),
        "propensity": _numbers(decided.propensity),
        "score": _numbers(decided.score),
        "threshold": none if decided.threshold is None else _numbers(decided.threshold),
        "round": [decided.round] * n,
        "ramp": [decided.ramp] * n,
        "status": [decided.status] * n,
        "certified": [bool(decided.certified)] * n,
        **{name: none if one is None else one.tolist() for name, one in by_lender.items()},
        "reasons": [None if why is None else reasons_data(why, sentences) for why in reasons],
        "letter": letter,
        "receipt": none if decided.receipts is None else [one.hex() for one in decided.receipts],
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def reasons_data(
    reasons: Sequence[tuple[str, float]], sentences: Mapping[str, Mapping[str, str]]
) -> list[dict[str, Any]]:
    """Return reasons as plain data, with the lender's code and sentence if there are any.

    Examples
    --------
    >>> reasons_data([("debt", -1.5)], {"debt": {"code": "R2", "text": "Your debts are high."}})
    [{'column': 'debt', 'contribution': -1.5, 'code': 'R2', 'text': 'Your debts are high.'}]
    """
    nothing = {"code": None, "text": None}
    return [
        {"column": name, "contribution": value} | dict(sentences.get(name, nothing))
        for name, value in reasons
    ]


def _numbers(values: Any) -> list[float | None]:
    return [None if value != value else value for value in values.astype(float).tolist()]


def _decided(view: ProgramView, recorded: RecordedRows, entry: Entry | None) -> Mapping[str, Any]:
    """Return the decision on one applicant; in the history, only what the past decided."""
    people, name = recorded.people, recorded.people.applications[0]
    shown = None if name is None else view.shape.ids([name])[0].item()
    if entry is None or entry.kind == "history":
        accepted = bool(recorded.decisions.accepted[0])
        return {"id": shown, "decision": "accept" if accepted else "reject", "round": 0}
    if name is None:
        people = replace(people, applications=["0"])  # any id of the program's kind
    decided = answer(entry.says, view.shape, people, recorded.decisions, [0])
    decided = replace(decided, receipts=tuple(recorded.receipts))
    return decision_data(decided, view.about.get("reasons", {}))[0] | {"id": shown}


def _entries_of(view: ProgramView, person: int, round: int) -> tuple[Entry | None, Entry | None]:
    """Return the entry that covers an applicant, if any, and the one with the policy."""
    reader, covering = view.reader, None
    for kind in ("batch", "import", "history"):
        for entry in reader.newest_first(kind):
            if person in entry.people_range:
                covering = entry
            if covering is not None or entry.people_range.stop <= person:
                break
        if covering is not None:
            break
    for kind in ("round", "batch"):
        for entry in reader.newest_first(kind):
            if entry.says["round"] == round and "policy" in entry.says:
                return covering, entry
            if entry.says["round"] < round:
                break
    return covering, None


def _round_data(round: int, covering: Entry | None, opening: Entry | None) -> dict[str, Any]:
    is_round = opening is not None and opening.kind == "round"
    closed = covering if covering is not None and covering.kind == "batch" else None
    return {
        "round": round,
        "opened": opening.at if opening is not None and is_round else None,
        "closed": None if closed is None else closed.at,
        "imported": covering.says.get("made_at")
        if covering is not None and covering.kind == "import"
        else None,
    }


def _holds(view: ProgramView, person: int) -> list[dict[str, Any]]:
    entries = [e for e in view.reader.entries(kind="hold") if person in e.says["persons"]]
    return [{"held": e.says["held"], "reason": e.says["reason"]} | _made(e) for e in entries]


def _made(entry: Entry) -> dict[str, Any]:
    return {"at": entry.at, "by": entry.by, "entry": entry.number, "kind": entry.kind}


def _row(table: Any, alone: str = "x0") -> dict[str, Any]:
    """Return the only row of a table by the names of its columns, None for what is missing.

    ``alone`` is the name of a single column without one.
    """
    if hasattr(table, "to_pylist"):
        row: dict[str, Any] = table.to_pylist()[0]
    else:
        values = table[0].tolist()
        listed = values if isinstance(values, list) else [values]
        row = {f"x{at}": value for at, value in enumerate(listed)}
        row = {alone: listed[0]} if len(listed) == 1 else row
    return {name: _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: None if it is missing, a time as text."""
    if value is None or value != value:
        return None
    return value.isoformat() if hasattr(value, "isoformat") else value
