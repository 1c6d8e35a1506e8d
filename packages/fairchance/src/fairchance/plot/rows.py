"""Classifiers, programs and their summaries as plain rows, which charts draw."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from fairchance.audit.rates import WHOLE, group_errors, rate_of
from fairchance.core.decisions import CertifiedRound
from fairchance.core.utility import Accuracy, Utility
from fairchance.errors import InputError
from fairchance.people.store import NEVER, NOT_TAKEN, PENDING
from fairchance.words.rounds import surely

__all__ = ["BY_STATUS", "INCUMBENT", "SHADOW"]
__all__ += ["CERTIFIED", "COMPLETE", "INCOMPLETE", "MOST", "PILOT", "Row", "RunRows", "freezes"]
__all__ += ["STATES", "WITHDRAWN", "rate", "read_run", "restarts", "rounded", "spans"]

Row = dict[str, Any]
MOST = 60  # rounds shown one by one; more are shown in spans
# What became of accepted applicants, with the codes of classifiers.
STATES = {"good": 1, "bad": 0, "not_taken": NOT_TAKEN, "withdrawn": NEVER, "pending": PENDING}
# The names of rounds: what is promised or, without certificates, which outcomes are known.
CERTIFIED, PILOT, WITHDRAWN = "certified", "no promise yet", "certificate withdrawn"
SHADOW, INCUMBENT = "shadow", "today's policy"
BY_STATUS = {"certified": CERTIFIED, "shadow": SHADOW, "incumbent": INCUMBENT}  # others are PILOT
COMPLETE, INCOMPLETE = "all outcomes known", "outcomes still to come"


@dataclass(frozen=True)
class RunRows:
    """One run: counts of each round and group, and the records of certificates by group.

    ``surely`` is how applicants outside the explore region were accepted.
    """

    rounds: list[Row]
    groups: list[Row]
    records: dict[str | None, list[CertifiedRound]]
    alpha: float | None
    utility: Utility | None
    surely: str
    currency: str = ""

    @property
    def spans(self) -> list[Row]:
        """Counts summed over spans of rounds, with mistakes, status and places on the axis."""
        rows = []
        for span in spans(len(self.rounds)):
            part = self.rounds[span]
            first, last = part[0]["round"], part[-1]["round"]
            names = ("people", "accepted", "explored", *STATES)
            row = {name: sum(one[name] for one in part) for name in names}
            row |= rate(row["bad"], row["good"] + row["bad"]) | {"n": len(part)}
            row |= {"round": (first + last) / 2, "from": first - 0.42, "to": last + 0.42}
            row["rounds"] = f"{first}" if first == last else f"{first} to {last}"
            kinds = {one["name"] for one in part}
            row["name"] = kinds.pop() if len(kinds) == 1 else PILOT
            if any(one.get("dropped") for one in part):
                row["name"] = WITHDRAWN
            rows.append(row | {"covered": part[-1]["covered"]})
        return rows


def read_run(x: Any) -> RunRows:
    """Return the rows of a fitted classifier, a ledger's ``Program`` or its ``Summary``."""
    if hasattr(x, "ledger") and hasattr(x, "summary"):
        x = x.summary()
    run = _of_summary(x) if hasattr(x, "promise") else _of_classifier(x)
    if not run.rounds:
        raise InputError("there are no rounds to draw yet; decide a batch first.")
    return run


def _of_classifier(clf: Any) -> RunRows:
    if not hasattr(clf, "_head_counts") or hasattr(clf, "decisions"):
        raise InputError(
            f"a chart needs a program, its summary or a fitted classifier with two outcomes, got "
            f"{type(clf).__name__}; fairchance_lab.plot draws results of experiments."
        )
    parts = [(rows["round"], rows["outcome"], rows["group"]) for rows in clf._people.parts]
    number, outcome, group = (np.concatenate(column) for column in zip(*parts, strict=True))

    def counted(here: Any) -> Row:
        return {name: int((outcome[here] == code).sum()) for name, code in STATES.items()}

    records: dict[int, list[Any]] = {}
    for record in clf.rounds_:
        records.setdefault(record.round, []).append(record)
    heads = clf._head_counts.view()
    rounds = [
        {"round": t, "people": n, "accepted": accepted, "explored": explored}
        | counted(number == t)
        | _promised(records[t])
        for t, (n, accepted, explored) in enumerate(heads.sum(axis=2).tolist(), start=1)
    ]
    groups, known = [], clf._intake.sensitive
    if known is not None:
        each = [(", ".join(known.titles), known.labels, np.arange(known.n_groups))]
        if clf.attributes == "side_by_side":
            each = list(zip(known.titles, known.values, known.level_of, strict=True))
        told = clf.group_mode != "audit"  # there, outcomes are kept without groups
        for attribute, values, level_of in each:
            by_level = [heads[:, :, level_of == level].sum(axis=2) for level in range(len(values))]
            names = list(map(str, values.tolist()))
            begun = [int((np.cumsum(counts[:, 0]) == 0).sum()) for counts in by_level]
            errors = group_errors(dict(zip(names, begun, strict=True)), len(known.titles))
            for level, (value, counts) in enumerate(zip(names, by_level, strict=True)):
                n, accepted, _ = counts.sum(axis=0).tolist()
                row = {"attribute": attribute, "group": value, "people": n, "error": errors[value]}
                mine = counted((number > 0) & (level_of[group] == level) & told)
                groups.append(row | {"accepted": accepted} | mine)
    by_group = _by_group(records.values())
    utility = clf.utility or Accuracy()
    return RunRows(rounds, groups, by_group, clf.bound_, utility, surely(clf.rounds_))


def _of_summary(summary: Any) -> RunRows:
    def counted(one: Any) -> Row:
        seen, row = one.outcomes, {"people": one.n_people, "accepted": one.n_accepted}
        return row | {"explored": one.n_explored} | {name: getattr(seen, name) for name in STATES}

    rounds = [
        counted(one) | {"round": one.round, "dropped": bool(one.withdrawn)} | _promised(one.records)
        for one in summary.rounds
    ]
    groups = [
        counted(one)
        | {"attribute": one.attribute, "group": one.group, "error": one.error}
        | {"unplaced": one.unplaced}
        for one in summary.groups
        if one.group is not None
    ]
    by_group = _by_group(one.records for one in summary.rounds)
    alpha, utility, how = summary.promise.alpha, summary.promise.utility, surely(summary.records)
    return RunRows(rounds, groups, by_group, alpha, utility, how, summary.currency)


def _promised(records: Sequence[Any]) -> Row:
    """Return what a round promises, and the share that is known well enough.

    That is the share in the exploit region or, with certificates, the largest certified share.
    """
    names = {
        BY_STATUS.get(one.status, PILOT) if isinstance(one, CertifiedRound) else COMPLETE
        for one in records
    }
    n = sum(one.n_people for one in records)
    known = sum(
        one.n_people * (rounded(one.certified_to) or 0.0)
        if isinstance(one, CertifiedRound)
        else one.n_exploit_region
        for one in records
    )
    name = names.pop() if len(names) == 1 else PILOT
    return {"name": name, "covered": known / n if n else None}


def _by_group(rounds: Iterable[Iterable[Any]]) -> dict[str | None, list[CertifiedRound]]:
    """Return the records of certificates by the name of their group, None for all applicants."""
    found: dict[str | None, list[CertifiedRound]] = {}
    for record in (record for records in rounds for record in records):
        if isinstance(record, CertifiedRound):
            group = record.group
            name = ", ".join(map(str, group)) if isinstance(group, list | tuple) else group
            found.setdefault(None if name is None else str(name), []).append(record)
    return found


def spans(n: int, most: int = MOST) -> list[slice]:
    """Return a slice for each of n rounds or, if there are more than ``most``, equal spans.

    Examples
    --------
    >>> len(spans(60)), len(spans(500)), spans(500)[0]
    (60, 56, slice(0, 9, None))
    """
    size = math.ceil(n / most) or 1
    return [slice(at, min(at + size, n)) for at in range(0, n, size)]


def rate(k: int, n: int, error: float = WHOLE, erased: tuple[int, int] = (0, 0)) -> Row:
    """Return the share k of n with its interval at all times, None without any."""
    found = rate_of(k, n, error, erased=erased)
    ends = {"value": found.value, "low": found.low, "high": found.high}
    return (ends if n else dict.fromkeys(ends)) | {"k": k, "of": n}


def rounded(value: Any) -> Any:
    """Return a number with five significant digits, None if unknown; other values as they are."""
    if isinstance(value, list):
        return [rounded(one) for one in value]
    if isinstance(value, float):
        return float(f"{value:.5g}") if math.isfinite(value) else None
    return value


def freezes(records: Sequence[CertifiedRound]) -> list[int]:
    """Return the rounds before which a ranking was frozen, which spends a part of δ."""
    spent = [0.0, *(record.delta_spent for record in records)]
    return [
        record.round
        for record, before in zip(records, spent, strict=False)
        if record.delta_spent > before
    ]


def restarts(records: Sequence[CertifiedRound]) -> list[int]:
    """Return the rounds before which all certificates were dropped and tests started again."""
    pairs = pairwise(records)
    return [now.round for before, now in pairs if now.tests_began > before.tests_began]
