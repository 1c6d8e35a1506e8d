"""Sum up a program: everything is counted in the database, and nobody is read one by one."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from itertools import compress
from typing import Any

import numpy as np

from secondlook.core.budget import FdrBudget
from secondlook.core.utility import Utility
from secondlook.errors import InputError
from secondlook.ledger.base import STATES, Bools, Entry, HeadCounts, Ints, Ledger, Reader
from secondlook.ledger.retention import Deadlines, held, retention_months
from secondlook.ledger.summary import (
    Change,
    GroupSummary,
    Outcomes,
    Promise,
    RoundSummary,
    Summary,
)
from secondlook.methods.storage import loads

__all__ = ["summarise", "summary_of"]

_CHANGES = ("correction", "override", "hold", "erasure", "certificate")


def summarise(
    ledger: Ledger,
    program: str = "main",
    *,
    groups: bool = True,
    types: Iterable[type] = (),
    trusted: Iterable[str] = (),
) -> Summary:
    """Sum up how a program stands.

    Parameters
    ----------
    ledger, program
        What to sum up.
    groups
        Whether to count groups too; without, their values are not read, and need not be readable.
    types, trusted
        What the stored classifier may be made of, as for ``load``. Where that does not suffice,
        what its settings say is left out, and ``promise.problem`` says so.

    Examples
    --------
    >>> import tempfile
    >>> from secondlook import PartialFeedbackClassifier
    >>> from secondlook.ledger.program import Program
    >>> folder = tempfile.TemporaryDirectory()
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> program = Program.create(
    ...     f"sqlite:///{folder.name}/lender.db",
    ...     PartialFeedbackClassifier(random_state=0),
    ...     X[:200],
    ...     X[:200, 0] > 0,
    ... )
    >>> batch = program.decide(X[200:])
    >>> found = summarise(program.ledger)
    >>> found.total("n_people"), found.outcomes.pending == int(batch.accepted.sum())
    (100, True)
    >>> folder.cleanup()
    """
    now = ledger.clock()
    with ledger.reading(program) as reader:
        return summary_of(reader, program, now=now, groups=groups, types=types, trusted=trusted)


def summary_of(
    reader: Reader,
    program: str,
    *,
    now: datetime,
    groups: bool = True,
    types: Iterable[type] = (),
    trusted: Iterable[str] = (),
) -> Summary:
    """Return the summary of a program that is being read; ``now`` is when, in UTC."""
    settings = next(reader.entries(kind="program"))
    counts = _Counts(reader.head_counts(groups=groups))
    promise = _promise(reader, settings, types, trusted)
    ours = counts.round > 0
    about = settings.says.get("about", {})
    erased = _erased(reader)
    kept = held(reader)
    over = Deadlines.of(reader, retention_months(about)).over(now)
    gone = partial(_erased_pending, reader, erased)
    return Summary(
        program=program,
        classifier=settings.says.get("classifier", ""),
        about=about,
        at=now.isoformat(timespec="seconds"),
        head=reader.head(),
        promise=promise,
        n_history=counts.sum(~ours),
        history=counts.outcomes(~ours & counts.accepted),
        rounds=tuple(
            _round(entry, counts.of_round(entry.says["round"]), promise, now, gone)
            for entry in reader.entries(kind="batch")
        ),
        groups=tuple(_groups(counts, settings.says.get("group_names"))),
        changes=tuple(_changes(reader)),
        outcomes=counts.outcomes(ours & counts.undisputed),
        exploited=counts.outcomes(ours & counts.undisputed & counts.exploit),
        explored=counts.outcomes(ours & counts.undisputed & ~counts.exploit),
        overridden=counts.outcomes(ours & (counts.override == 1)),
        n_erased=erased.size,
        n_held=kept.size,
        n_expired=np.setdiff1d(over, np.union1d(kept, erased)).size,
    )


class _Counts:
    """Head counts, sorted by round, that can be summed over kinds of people."""

    def __init__(self, found: HeadCounts) -> None:
        self._all = found
        self.round, self.accepted, self.exploit = found.round, found.accepted, found.exploit
        self.override, self.groups = found.override, found.groups
        self._state, self._n = found.state, found.n
        self.undisputed = found.accepted & (found.override < 0)
        # Whoever takes an override back tells once more what the program had decided.
        self.replaced = (found.override >= 0) & (found.override != found.accepted)

    def of_round(self, number: int) -> _Counts:
        """Return the counts of one round."""
        first, end = np.searchsorted(self.round, [number, number + 1])
        return _Counts(HeadCounts(*(one[first:end] for one in vars(self._all).values())))

    def sum(self, which: Bools) -> int:
        """Return how many people there are of the kinds named."""
        return int(self._n[which].sum())

    def outcomes(self, which: Bools) -> Outcomes:
        """Return what became of them."""
        good, bad, never = (self.sum(which & (self._state == at)) for at in range(len(STATES)))
        return Outcomes(good, bad, never, self.sum(which & (self._state < 0)))

    def by_hand(self, which: Bools) -> int:
        """Return whom of them the decision refused, and an override accepted."""
        return self.sum(which & ~self.accepted & (self.override == 1))

    def pending_by_group(self) -> dict[str, int]:
        """Return whose outcome is to come, overrides left out, by group; erased people have none.

        Where there are several attributes, a group is one of their combinations.
        """
        waits = self.undisputed & (self._state < 0)
        found: dict[str, int] = {}
        for group, n in zip(compress(self.groups, waits), self._n[waits].tolist(), strict=True):
            if group is not None:
                name = ", ".join(map(str, json.loads(group)))
                found[name] = found.get(name, 0) + n
        return found


def _promise(
    reader: Reader, settings: Entry, types: Iterable[type], trusted: Iterable[str]
) -> Promise:
    payload = reader.facts(settings).payload
    if payload is None:
        return Promise(problem="the ledger has no stored settings; verify it.")
    try:
        found = loads(payload, types=types, trusted=trusted, name="the stored classifier")
    except InputError as error:
        return Promise(problem=str(error))
    budget = None
    if hasattr(found, "budget"):
        budget = FdrBudget() if found.budget is None else found.budget
    return Promise(
        alpha=getattr(found, "alpha", None) if budget is None else getattr(budget, "alpha", None),
        delta=getattr(found, "delta", None),
        budget=budget if hasattr(budget, "explore_share") else None,
        utility=found.utility if isinstance(getattr(found, "utility", None), Utility) else None,
        maturity=getattr(found, "maturity", None),
        patience=getattr(found, "patience", None),
    )


def _round(
    entry: Entry, mine: _Counts, promise: Promise, now: datetime, gone: Callable[[Entry], int]
) -> RoundSummary:
    says = entry.says
    outcomes = mine.outcomes(mine.undisputed)
    tested = promise.delta is not None
    age = (now - entry.when).total_seconds() / 86400
    exploited = mine.sum(mine.accepted & mine.exploit)
    budget = math.nan
    if promise.budget is not None:
        budget = promise.budget.explore_share(says["round"]) * exploited
    return RoundSummary(
        round=says["round"],
        entry=entry.number,
        batch=entry.key,
        at=entry.at,
        age=max(0.0, age),  # another machine's clock may be ahead
        certified=bool(says["certified"]),
        group_mode=says["group_mode"],
        n_people=mine.sum(mine.round > 0),
        n_exploited=exploited,
        n_explored=mine.sum(mine.accepted & ~mine.exploit),
        n_overridden=mine.sum(mine.replaced),
        outcomes=outcomes,
        overridden=mine.outcomes(mine.override == 1),
        budget=budget,
        records=tuple(_numbers(one) for one in says["rounds"]),
        about=says.get("about", {}),
        n_by_hand=mine.by_hand(mine.round > 0),
        awaited=outcomes.pending - (gone(entry) if tested and outcomes.pending else 0),
        awaited_by_group=mine.pending_by_group() if tested else {},
    )


def _erased_pending(reader: Reader, erased: Ints, entry: Entry) -> int:
    """Return how many of a round's accepted were erased before their outcome came."""
    rows = entry.says["rows"]
    mine = erased[(erased >= rows["first"]) & (erased < rows["first"] + rows["n"])]
    if not mine.size:
        return 0
    first = int(mine.min())
    found = reader.listed(first, int(mine.max()) + 1)
    nothing = [
        changed is None and told is None
        for changed, told in zip(found.overrides, found.outcomes, strict=True)
    ]
    at = mine - first
    return int((found.decisions.accepted & np.array(nothing))[at].sum())


def _numbers(value: Any) -> Any:
    """Return a header's data with the numbers that JSON lacks."""
    if isinstance(value, dict):
        return {key: _numbers(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_numbers(one) for one in value]
    return float(value) if value in ("nan", "inf", "-inf") else value


def _groups(counts: _Counts, names: list[str] | None) -> Iterator[GroupSummary]:
    """Yield each group of each protected attribute, and of all together if there are several."""
    rows = [None if one is None else json.loads(one) for one in counts.groups]
    known = [one for one in rows if one is not None]
    if not known:
        return
    width = len(known[0])
    names = names or ["group"] if width == 1 else names or [f"group {i + 1}" for i in range(width)]
    labels = [
        (name, [None if row is None else str(row[at]) for row in rows])
        for at, name in enumerate(names)
    ]
    if width > 1:
        crossed = [None if row is None else ", ".join(map(str, row)) for row in rows]
        labels.append((" × ".join(names), crossed))
    ours = counts.round > 0
    for attribute, label in labels:
        members = np.array(label, object)
        for group in [*sorted({one for one in label if one is not None}), None]:
            mine = ours & (members == group)
            if mine.any():
                yield _group(counts, attribute, group, mine)


def _group(counts: _Counts, attribute: str, group: str | None, mine: Bools) -> GroupSummary:
    return GroupSummary(
        attribute=attribute,
        group=group,
        n_people=counts.sum(mine),
        n_accepted=counts.sum(mine & counts.accepted),
        n_explored=counts.sum(mine & counts.accepted & ~counts.exploit),
        n_overridden=counts.sum(mine & counts.replaced),
        outcomes=counts.outcomes(mine & counts.undisputed),
        n_by_hand=counts.by_hand(mine),
    )


def _erased(reader: Reader) -> Ints:
    found = [reader.facts(entry).erased for entry in reader.entries(kind="erasure")]
    return np.concatenate([np.empty(0, np.int64), *(one for one in found if one is not None)])


def _called(kind: str, entry: Entry) -> str:
    """Return what kind of change an entry is; holds and overrides also end."""
    if kind == "hold" and not entry.says["held"]:
        return "release"
    return "undo" if kind == "override" and entry.says.get("undo", False) else kind


def _reason(reader: Reader, entry: Entry) -> dict[str, str]:
    """Return how people stand by an override and why, which is kept with them."""
    rows = reader.facts(entry).overrides
    if rows is None:
        return {}
    stands = [
        words
        for words, some in (("accepted", rows.accepted), ("rejected", ~rows.accepted))
        if some.any()
    ]
    told = [one for one in rows.reasons if one]
    return {"stands": " or ".join(stands)} | (
        {"reason": "; ".join(dict.fromkeys(told))} if told else {}
    )


def _changes(reader: Reader) -> Iterator[Change]:
    """Yield corrections, overrides, holds, erasures and certificates in their order."""
    found = [
        Change(
            _called(kind, one),
            one.number,
            one.at,
            one.by,
            sizes.get(one.number, len(one.says.get("persons", ()))),
            one.says | (_reason(reader, one) if kind == "override" else {}),
        )
        for kind in _CHANGES
        for sizes in [reader.sizes(kind)]
        for one in reader.entries(kind=kind)
    ]
    yield from sorted(found, key=lambda one: one.entry)
