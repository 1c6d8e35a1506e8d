"""Summaries of a program: rounds, outcomes, mistakes, groups and changes.

``summarise`` counts applicants in the database, so it is quick for millions of them.
``read_details`` adds what only a report shows, and reads reasons and outcomes in parts.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import compress
from typing import Any

import numpy as np

from fairchance.audit.draws import Tally, explored_among_lost
from fairchance.audit.rates import WHOLE, Rate, group_errors, rate_of
from fairchance.core.budget import FdrBudget
from fairchance.core.decisions import CertifiedRound, Chances, Round
from fairchance.core.groups import NOT_STATED
from fairchance.core.utility import Utility
from fairchance.errors import InputError
from fairchance.ledger.base import STATES, Bools, Entry, HeadCounts, Ints
from fairchance.ledger.chain import Checkpoint
from fairchance.ledger.control import Control
from fairchance.ledger.money import Money, money_of
from fairchance.ledger.records import AnyRound, group_name, read_rounds
from fairchance.ledger.retention import Deadlines, held, retention_months
from fairchance.ledger.sql import LedgerReader, SqlLedger
from fairchance.methods.storage import loads
from fairchance.notebook import Displayed
from fairchance.people.reasons import ITEM, decode

__all__ = [
    "Details",
    "GroupSummary",
    "NextTested",
    "Outcomes",
    "PendingAges",
    "Promise",
    "RecordedChange",
]
__all__ += [
    "NAMED",
    "OpenRoundSummary",
    "ReasonCount",
    "Rejections",
    "RoundSummary",
    "Summary",
    "Unplaced",
]
__all__ += ["count_reasons", "far_fewer", "read_details", "summarise", "summary_of"]

_CHANGES = ("correction", "override", "hold", "erasure", "certificate", "control", "move", "import")
_FEW = 0.1  # of the expected number: nearly none
_EXPECTED = 5  # if so many are expected, seeing none has a probability below 1 %
_PART = 20_000  # applicants read at a time
_RECENT = 3  # rounds
NAMED = 20  # applicants whose missing outcomes are named


def far_fewer(count: int, n: int, usual: float) -> bool:
    """Return whether a count is under a tenth of what a usual share of n lets expect.

    False if fewer than five are expected: then it may be chance.

    Examples
    --------
    >>> far_fewer(4, 100, 0.5), far_fewer(5, 100, 0.5), far_fewer(0, 9, 0.5)
    (True, False, False)
    """
    expected = usual * n
    return expected >= _EXPECTED and count < _FEW * expected


@dataclass(frozen=True)
class Outcomes:
    """Outcomes of accepted applicants.

    Mistakes are counted among loans taken: who did not take the loan is neither good nor bad.

    Examples
    --------
    >>> outcomes = Outcomes(good=35, bad=5, withdrawn=2, pending=8, not_taken=10)
    >>> outcomes.accepted, outcomes.taken, outcomes.fdr, outcomes.range
    (60, 50, 0.125, (0.1, 0.3))
    """

    good: int
    bad: int
    withdrawn: int
    pending: int
    not_taken: int = 0

    @staticmethod
    def sum(parts: Iterable[Outcomes]) -> Outcomes:
        """Return the outcomes of several parts together."""
        rows = [tuple(vars(one).values()) for one in parts]
        return Outcomes(*(sum(column) for column in zip((0,) * 5, *rows, strict=True)))

    @property
    def accepted(self) -> int:
        """Number of applicants."""
        return self.taken + self.not_taken

    @property
    def taken(self) -> int:
        """Number of applicants of whom it is not recorded that they did not take the loan."""
        return self.known + self.withdrawn + self.pending

    @property
    def known(self) -> int:
        """Number of known outcomes."""
        return self.good + self.bad

    @property
    def fdr(self) -> float:
        """Share of bad among known outcomes; NaN if there are none."""
        return self.bad / self.known if self.known else math.nan

    def mistakes(self, error: float = WHOLE, erased: Outcomes | None = None) -> Rate:
        """Return that share with its interval at all times, as if late outcomes were like others.

        Outcomes that are pending or will never be known are missing cases.
        """
        missing = self.taken - self.known
        if erased is None:
            return rate_of(self.bad, self.known, error, missing=missing)
        missing, gone = missing + erased.taken - erased.known, (erased.bad, erased.good)
        return rate_of(self.bad, self.known, error, missing=missing, erased=gone)

    @property
    def range(self) -> tuple[float, float]:
        """Share of bad if all applicants without an outcome were good, and if all were bad."""
        if not self.taken:
            return 0.0, 1.0
        return self.bad / self.taken, (self.taken - self.good) / self.taken


@dataclass(frozen=True)
class PendingAges:
    """Number of applicants without an outcome, and for how many days; NaN if there are none."""

    n: int
    oldest: float
    median: float


@dataclass(frozen=True)
class NextTested:
    """The round of a certified program that enters the tests next.

    Rounds enter in order. A round is ready once ``maturity`` later rounds are decided and all its
    outcomes are known, or once ``patience`` later rounds are decided: then the missing outcomes
    count as bad.

    Attributes
    ----------
    round
        Number of the round.
    awaited, awaited_before
        Missing outcomes of this round, and of earlier rounds, which must enter first.
    matures
        The round after whose decision it can enter; 0 if it could now.
    at_latest
        The round with whose decision it enters in any case; None without ``patience``.
    n_known
        Known outcomes of this and later rounds that are not in the tests yet.
    oldest, ids
        The first round that is not in the tests, which is this one or must enter before it, and
        the ids of its missing outcomes, at most twenty.
    group
        The group of the certificate, as its record names it; None for all applicants.
    """

    round: int
    awaited: int
    awaited_before: int
    matures: int
    at_latest: int | None
    n_known: int
    oldest: int = 0
    ids: tuple[str, ...] = ()
    group: Any = None

    @property
    def all_named(self) -> bool:
        """Whether ``ids`` are all that the oldest round waits for."""
        return 0 < len(self.ids) < NAMED


@dataclass(frozen=True)
class RoundSummary:
    """One round.

    Attributes
    ----------
    round, entry, opened, batch, began, at, age
        Number, entry, the entry with which its policy was fixed (the same if it was not opened
        before), name of the batch, the times of both entries, and days since it was closed.
    by
        Author of the entry.
    certified, group_mode
        Whether the round is certified, and what groups could change.
    n_people, n_exploited, n_explored
        Number of applicants, and how many the program accepted in each region.
    n_overridden
        Decisions that differ from the program's because of an override in force.
    outcomes, explored
        Of accepted applicants, without those whom an override rejected; and of the explored ones
        of them.
    overridden
        Of rejected applicants whom an override accepted.
    expected, variance
        Of the number of accepted applicants, by their recorded chances.
    budget
        How many Algorithm 1 could explore; NaN for methods without this rule.
    ramp
        The ramp with which it was decided, 0 in shadow mode and in a pause.
    status
        ``"shadow"``, ``"incumbent"``, ``"pilot"`` or ``"certified"``, as in ``Decisions``.
    records
        The classifier's records of the round.
    about
        Data that were stored with the batch.
    unlike
        Columns in which the batch is unlike the history or the last round, as ``Unlike.as_dict``.
    least_chance, n_hardly
        The smallest chance of an applicant who could be explored, NaN if there is none, and how
        many of them had a chance below ``decisions.TINY``.
    awaited, awaited_by_group
        Number of outcomes that the tests of a certificate wait for, in all and, if groups are
        counted, by group; not of overridden or erased applicants.
    n_identical
        Applicants with the same features as another before them in the batch, if persons are not
        known.
    held_up
        Certificates whose tests were held up when the round was decided, so that ``decide`` warned:
        the group, as records name it, and the round whose outcomes were missing.
    withdrawn
        Certificates of the round that rest on an outcome that was corrected later, so that nothing
        is promised: the names of their groups, None for the one of all applicants.
    """

    round: int
    entry: int
    opened: int
    batch: str
    began: str
    at: str
    age: float
    certified: bool
    group_mode: str
    n_people: int
    n_exploited: int
    n_explored: int
    n_overridden: int
    outcomes: Outcomes
    explored: Outcomes
    overridden: Outcomes
    expected: float
    variance: float
    budget: float
    ramp: float
    status: str
    records: tuple[AnyRound, ...]
    about: dict[str, Any]
    unlike: tuple[dict[str, Any], ...]
    least_chance: float
    n_hardly: int
    awaited: int
    awaited_by_group: dict[str, int]
    held_up: tuple[dict[str, Any], ...]
    n_identical: int
    by: str
    withdrawn: tuple[str | None, ...] = ()

    @property
    def stands(self) -> bool:
        """Whether the round is certified, and no certificate of it was withdrawn."""
        return self.certified and not self.withdrawn

    @property
    def n_accepted(self) -> int:
        """How many the program accepted."""
        return self.n_exploited + self.n_explored

    @property
    def n_set_apart(self) -> int:
        """How many of these an override rejected."""
        return self.n_accepted - self.outcomes.accepted

    @property
    def without_loan(self) -> tuple[int, int]:
        """How many of the explored, and of the other accepted, got no loan.

        They did not take it, were withdrawn, or were rejected by hand.
        """
        kept = [one.known + one.pending for one in (self.explored, self.outcomes)]
        return self.n_explored - kept[0], self.n_exploited - (kept[1] - kept[0])

    @property
    def n_by_hand(self) -> int:
        """Applicants whom the program rejected and an override accepted."""
        return self.overridden.accepted

    @property
    def alpha_exploit(self) -> float:
        """The share of mistakes allowed in the exploit region; NaN if α is not divided."""
        return next((one.alpha_exploit for one in self.records if isinstance(one, Round)), math.nan)

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The score from which applicants are accepted, per group; empty if there is none."""
        return next((one.thresholds for one in self.records if isinstance(one, Round)), ())

    @property
    def n_incumbent(self) -> int | None:
        """How many of those decided in time the lender accepted; None if that was not given."""
        known = [one.n_incumbent for one in self.records if one.n_incumbent is not None]
        return sum(known) if known else None

    @property
    def n_barred(self) -> int:
        """How many of those decided in time must not be accepted."""
        return sum(one.n_barred for one in self.records)

    @property
    def certificates(self) -> tuple[CertifiedRound, ...]:
        """The records of a certified program, one for each certificate; else empty."""
        return tuple(one for one in self.records if isinstance(one, CertifiedRound))


@dataclass(frozen=True)
class OpenRoundSummary:
    """The round that is open; nothing else in a summary counts its applicants.

    Attributes
    ----------
    round, entry, at, expires
        Number, the entry that opened it, when, and when it is due; None if no time is set.
    ramp, status, certified
        As in ``RoundSummary``.
    n_people, n_accepted, n_explored
        The number of applicants so far, and how many of them the program accepted and explored.
    unlike
        In what the newest of them are unlike the history or the last round, as ``Unlike.as_dict``.
    """

    round: int
    entry: int
    at: str
    expires: str | None
    ramp: float
    status: str
    certified: bool
    n_people: int
    n_accepted: int
    n_explored: int
    unlike: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class Unplaced:
    """Erased applicants, who may be of any group: they widen the intervals of each."""

    n_people: int = 0
    n_accepted: int = 0
    n_explored: int = 0
    n_explorable: int = 0
    outcomes: Outcomes = Outcomes(0, 0, 0, 0)


@dataclass(frozen=True)
class GroupSummary:
    """One group over all rounds, counted as in ``RoundSummary``; None for erased applicants.

    ``n_explorable`` applicants were in the explore region, and ``pending`` outcomes are counted by
    round. ``error`` is the group's part of a question's error, which depends on the round in which
    it appeared; NaN for erased applicants, whose rates have no interval.
    """

    attribute: str
    group: str | None
    n_people: int
    n_accepted: int
    n_explored: int
    n_overridden: int
    outcomes: Outcomes
    n_by_hand: int
    n_explorable: int
    pending: dict[int, int]
    error: float
    unplaced: Unplaced = Unplaced()

    @property
    def name(self) -> str:
        """The attribute and its value."""
        return f"{self.attribute} {self.group}"

    @property
    def is_stated(self) -> bool:
        """Whether its members stated all attributes, so that it can be compared with others."""
        return self.group is not None and NOT_STATED not in self.group.split(", ")

    @property
    def mistakes(self) -> Rate:
        """The share of bad among known outcomes."""
        return self.outcomes.mistakes(self.error, self.unplaced.outcomes)

    @property
    def acceptance(self) -> Rate:
        """The share of applicants whom the program accepted."""
        others = self.unplaced
        gone = others.n_accepted, others.n_people - others.n_accepted
        return rate_of(self.n_accepted, self.n_people, self.error, erased=gone)

    @property
    def exploration(self) -> Rate:
        """The share of the explore region that was explored."""
        others = self.unplaced
        gone = others.n_explored, others.n_explorable - others.n_explored
        return rate_of(self.n_explored, self.n_explorable, self.error, erased=gone)

    @property
    def n_set_apart(self) -> int:
        """How many of the accepted an override rejected."""
        return self.n_accepted - self.outcomes.accepted


@dataclass(frozen=True)
class RecordedChange:
    """An intervention: its kind, entry, time and author, how many applicants, and its header."""

    kind: str
    entry: int
    at: str
    by: str
    n: int
    says: dict[str, Any]


@dataclass(frozen=True)
class Promise:
    """The program's settings; None for those that its classifier lacks, and 0 for ``shock``.

    ``settings`` are all of them by name. ``problem`` is why the stored settings could not be read,
    and empty otherwise.
    """

    alpha: float | None = None
    delta: float | None = None
    budget: FdrBudget | None = None
    utility: Utility | None = None
    maturity: int | None = None
    patience: int | None = None
    shock: float = 0.0
    settings: dict[str, Any] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True)
class Summary(Displayed):
    """The summary of a program.

    Attributes
    ----------
    program, classifier, about, at, head
        Name, kind of classifier, data stored with it, time of the summary, and end of the chain.
    promise
        The settings.
    n_history, history
        Applicants of the history, and outcomes of those accepted then.
    rounds, groups, changes
        Each round, group and change.
    outcomes, exploited, explored
        Over all rounds, as in ``RoundSummary``: of all accepted, and of each region.
    overridden
        Of rejected applicants whom an override accepted.
    n_erased, n_held, n_expired
        Applicants who are erased, under hold, and past their retention period.
    unlike_outcomes
        By entry, how outcomes since the last rounds are unlike expected (``UnlikeExpected``).
    outcomes_since
        Whether outcomes were recorded after the last round was decided.
    awaited_ids
        The ids of ``NextTested`` for each certificate, by the name of its group.
    control
        The ramp in force, and whether the program is paused.
    money
        What it earned against today's policy; None without a utility, or if it was not asked for.
    lost
        How many of the accepted who got no loan were explored, and how many chance lets expect.
    open_round
        The round that is open; None if none is.
    """

    program: str
    classifier: str
    about: dict[str, Any]
    at: str
    head: Checkpoint
    promise: Promise
    n_history: int
    history: Outcomes
    rounds: tuple[RoundSummary, ...]
    groups: tuple[GroupSummary, ...]
    changes: tuple[RecordedChange, ...]
    outcomes: Outcomes
    exploited: Outcomes
    explored: Outcomes
    overridden: Outcomes
    n_erased: int
    n_held: int
    n_expired: int
    outcomes_since: bool
    awaited_ids: dict[str | None, tuple[str, ...]]
    unlike_outcomes: dict[int, dict[str, Any]]
    control: Control
    money: Money | None
    lost: Tally
    open_round: OpenRoundSummary | None = None

    def total(self, name: str) -> int:
        """Return the sum of a count over all rounds, such as ``"n_explored"``."""
        return sum(getattr(summary, name) for summary in self.rounds)

    @property
    def records(self) -> list[AnyRound]:
        """The classifier's records of all rounds."""
        return [record for row in self.rounds for record in row.records]

    @property
    def in_shadow(self) -> bool:
        """Whether the lender's own process decided on all applicants so far."""
        return bool(self.rounds) and not any(row.ramp for row in self.rounds)

    @property
    def moved(self) -> RecordedChange | None:
        """The move to another ledger, after which nothing is recorded here; None if it is here."""
        left = (one for one in self.changes if one.kind == "left")
        return next((one for one in left if one.entry == self.head.number), None)

    @property
    def accepts_everybody(self) -> bool:
        """Whether all applicants were accepted, though the history lets expect rejections."""
        usual = 1 - self.history.accepted / self.n_history if self.n_history else 0.0
        n, accepted = self.total("n_people"), self.total("n_accepted")
        return n == accepted and far_fewer(0, n, usual)

    @property
    def budget(self) -> float:
        """How many could be explored so far; NaN for methods without this rule."""
        return math.fsum(summary.budget for summary in self.rounds) if self.rounds else math.nan

    @property
    def currency(self) -> str:
        """The currency of ``worth``; empty if the configuration names none."""
        return str(self.about.get("currency", ""))

    def so_far(self) -> dict[str, Any]:
        """Return the known mistakes among accepted applicants of all rounds, for JSON."""
        rate, by_hand = self.outcomes.mistakes(), self.overridden
        alpha = self.promise.alpha
        return {
            "alpha": alpha,
            "bad": rate.count,
            "known": rate.n,
            "pending": self.outcomes.pending,
            "withdrawn": self.outcomes.withdrawn,
            "not_taken": self.outcomes.not_taken,
            "fdr": rate.value,
            "interval": (rate.low, rate.high),
            "early": alpha is not None and rate.early and rate.value > alpha,
            "shadow": self.in_shadow,
            "shock": self.promise.shock,
            "by_override": {"accepted": by_hand.accepted, "known": by_hand.known},
        }

    def ladders(self) -> dict[str | None, list[CertifiedRound]]:
        """Return the records of a certified program by group, in the order of rounds.

        The group is None if all applicants have one certificate together.
        """
        records: dict[str | None, list[CertifiedRound]] = {}
        for row in self.rounds:
            for record in row.certificates:
                name = None if record.group is None else group_name(record.group)
                records.setdefault(name, []).append(record)
        return records

    def waiting(self, longer_than: float = 0.0) -> PendingAges:
        """Return how long accepted applicants have no outcome, from a number of days on."""
        waits = [
            (summary.age, summary.outcomes.pending + summary.overridden.pending)
            for summary in self.rounds
            if summary.age >= longer_than
        ]
        days = np.repeat([age for age, _ in waits], [n for _, n in waits])
        if not days.size:
            return PendingAges(0, math.nan, math.nan)
        return PendingAges(days.size, float(days.max()), float(np.median(days)))

    def worth(self, outcomes: Outcomes) -> float:
        """Return what accepting applicants with known outcomes earned, compared with rejecting.

        By the program's utility; NaN if it has none.
        """
        utility = self.promise.utility
        if utility is None:
            return math.nan
        return outcomes.good * utility.gain_good + outcomes.bad * utility.gain_bad

    def next_tested(self, group: Any = None) -> NextTested | None:
        """Return the round that enters the tests of a certificate next.

        None if all rounds are tested, if the program has no tests, or if testing may begin again:
        after a correction, only the record of the next round shows whether it did.

        Parameters
        ----------
        group
            A group with a certificate of its own, as its record names it; None for all applicants.
        """
        maturity, patience = self.promise.maturity, self.promise.patience
        if self.promise.delta is None or maturity is None or not self.rounds:
            return None
        name = None if group is None else group_name(group)
        if name is not None and not any(summary.awaited_by_group for summary in self.rounds):
            return None  # groups were not counted
        if self._may_begin_again(group):
            return None
        awaited = [
            summary.awaited if name is None else summary.awaited_by_group.get(name, 0)
            for summary in self.rounds
        ]
        n = len(self.rounds)
        waiting = [
            t
            for t, missing in enumerate(awaited, start=1)
            if n - t < maturity or (missing and (patience is None or n - t < patience))
        ]
        # No round enters before one that waits.
        first = max(self._tests_began(group), waiting[0]) if waiting else n + 1
        if first > n:
            return None
        matures = first + maturity
        return NextTested(
            first,
            awaited[first - 1],
            sum(awaited[t - 1] for t in waiting if t < first),
            matures if matures > n else 0,
            None if patience is None else first + max(maturity, patience),
            sum(later.outcomes.known for later in self.rounds[first - 1 :]) if name is None else 0,
            min(first, waiting[0]),
            self.awaited_ids.get(name, ()),
            group,
        )

    def _may_begin_again(self, group: Any) -> bool:
        """Return whether a change since the last round may have made testing begin again."""
        since = [change for change in self.changes if change.entry > self.rounds[-1].entry]
        return any(
            change.kind == "correction"
            or (change.says.get("what") == "dropped" and change.says.get("group") == group)
            for change in since
        )

    def _tests_began(self, group: Any) -> int:
        """Return the first round that counts in the current tests."""
        records = self.rounds[-1].certificates
        return max((one.tests_began for one in records if one.group == group), default=1)


def summarise(
    ledger: SqlLedger,
    program: str | None = None,
    *,
    groups: bool = True,
    money: bool = True,
    types: Iterable[type] = (),
    trusted: Iterable[str] = (),
) -> Summary:
    """Summarise a program.

    Parameters
    ----------
    ledger, program
        The ledger, and the name of the program; None means the only one.
    groups
        Whether to count groups; if not, group values are not read and need not be readable.
    money
        Whether to compare with the lender's own decisions, which reads every decision.
    types, trusted
        What the stored classifier may be made of, as for ``load``. If it is made of anything else,
        its settings are left out, and ``promise.problem`` says so.

    Examples
    --------
    >>> import tempfile
    >>> from fairchance import PartialFeedbackClassifier
    >>> from fairchance.ledger.program import Program
    >>> folder = tempfile.TemporaryDirectory()
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> program = Program.create(
    ...     f"sqlite:///{folder.name}/lender.db",
    ...     PartialFeedbackClassifier(random_state=0),
    ...     X[:200],
    ...     X[:200, 0] > 0,
    ... )
    >>> batch = program.decide(X[200:])
    >>> summary = summarise(program.ledger)
    >>> summary.total("n_people"), summary.outcomes.pending == int(batch.accepted.sum())
    (100, True)
    >>> folder.cleanup()
    """
    now, program = ledger.clock(), ledger.named(program)
    with ledger.reading(program) as reader:
        options: Any = {"groups": groups, "money": money, "types": types, "trusted": trusted}
        return summary_of(reader, program, now=now, **options)


def summary_of(
    reader: LedgerReader,
    program: str,
    *,
    now: datetime,
    groups: bool = True,
    money: bool = True,
    types: Iterable[type] = (),
    trusted: Iterable[str] = (),
) -> Summary:
    """Summarise a program that is being read; ``now`` is the current time, in UTC."""
    settings = next(reader.entries(kind="program"))
    counts, open_round = _Counts(reader.head_counts(groups=groups)), None
    lost = explored_among_lost(reader.losses(), counts.accepted_by_round())
    opened = reader.open_round()
    if opened is not None:
        open_round = _open_round(opened, counts.of_round(opened.says["round"]))
        counts = counts.before_round(opened.says["round"])
    promise = _promise(reader, settings, types, trusted)
    decided = counts.round > 0
    about = settings.says.get("about", {})
    erased, on_hold = _erased(reader), held(reader)
    over = Deadlines.of(reader, retention_months(about)).over(reader, reader.believed(now))
    erased_pending = partial(_erased_pending, reader, erased)
    began = {entry.number: entry.at for entry in reader.entries(kind="round")}
    late: dict[int, list[Entry]] = {}
    for entry in reader.entries(kind="import"):
        if "chance" in entry.says:
            late.setdefault(entry.says["round"], []).append(entry)
    rounds = [
        _round(entry, counts.of_round(entry.says["round"]), promise, now, began, erased_pending)
        for entry in reader.entries(kind="batch")
    ]
    summary = Summary(
        program=program,
        classifier=settings.says.get("classifier", ""),
        about=about,
        at=now.isoformat(timespec="seconds"),
        head=reader.head(),
        promise=promise,
        n_history=counts.sum(~decided),
        history=counts.outcomes(~decided & counts.accepted),
        rounds=tuple(
            _with_late(row, late[row.round], reader, erased_pending) if row.round in late else row
            for row in rounds
        ),
        groups=tuple(_groups(counts, settings.says.get("group_names"))),
        changes=tuple(_changes(reader)),
        outcomes=counts.outcomes(decided & counts.standing),
        exploited=counts.outcomes(decided & counts.standing & counts.exploit),
        explored=counts.outcomes(decided & counts.standing & ~counts.exploit),
        overridden=counts.outcomes(decided & counts.by_hand),
        n_erased=erased.size,
        n_held=on_hold.size,
        n_expired=np.setdiff1d(over, np.union1d(on_hold, erased)).size,
        outcomes_since=False,
        awaited_ids={},
        unlike_outcomes={},
        control=Control.of(about, reader.entries(kind="control")),
        money=None,
        lost=lost,
        open_round=open_round,
    )
    summary = summary if groups else _without_names(summary)
    past = summary.n_history, summary.history
    since = summary.rounds[-_RECENT:][0].entry if summary.rounds else 0
    recent = {
        entry.number: entry.says
        for kind in ("outcomes", "correction")
        for entry in reader.entries(since, kind=kind)
    }
    last = summary.rounds[-1].entry if summary.rounds else 0
    withdrawn = _withdrawn(reader, summary)
    return replace(
        summary,
        rounds=tuple(
            replace(row, withdrawn=tuple(withdrawn.get(row.round, ()))) for row in summary.rounds
        ),
        outcomes_since=max(recent, default=0) > last,
        awaited_ids=_awaited_ids(reader, summary),
        unlike_outcomes={
            number: says["unlike_expected"]
            for number, says in recent.items()
            if "unlike_expected" in says
        },
        money=money_of(reader, settings, summary.rounds, promise.utility, *past) if money else None,
    )


def _without_names(summary: Summary) -> Summary:
    """Return a summary in which certificates of groups have numbers instead of their names."""
    numbers: dict[str, str] = {}

    def number(group: Any) -> str | None:
        if group is None:
            return None
        return numbers.setdefault(group_name(group), f"group {len(numbers) + 1}")

    def unnamed(says: Mapping[str, Any]) -> dict[str, Any]:
        return {key: number(value) if key == "group" else value for key, value in says.items()}

    rounds = [
        replace(
            row,
            records=tuple(
                replace(one, group=number(one.group)) if isinstance(one, CertifiedRound) else one
                for one in row.records
            ),
            held_up=tuple(map(unnamed, row.held_up)),
        )
        for row in summary.rounds
    ]
    changes = [replace(change, says=unnamed(change.says)) for change in summary.changes]
    return replace(summary, rounds=tuple(rounds), changes=tuple(changes))


def _withdrawn(reader: LedgerReader, summary: Summary) -> dict[int, list[str | None]]:
    """Return, by round, the groups whose certificates rest on outcomes that were corrected later.

    A correction of a tested outcome drops the certificates of its tests. Rounds that they certified
    may rest on the outcome if they were decided after it was recorded and its round was mature.
    When its round entered the tests is not on the record, so a few more rounds may count.
    """
    maturity = summary.promise.maturity or 0
    found: dict[int, list[str | None]] = {}
    for change in summary.changes:
        if change.says.get("what") != "dropped" or change.says["why"] != "correction":
            continue
        earlier = [one for one in summary.changes if one.entry < change.entry]
        corrected = max((one.entry for one in earlier if one.kind == "correction"), default=0)
        group = change.says.get("group")
        decided = [
            (row, record)
            for row in summary.rounds
            for record in row.certificates
            if row.entry < corrected and record.group == group
        ]
        if not decided:  # not of this version
            continue
        began = decided[-1][1].tests_began
        known = [one for one in _first_known(reader, corrected) if one[0] >= began]
        for row, record in decided:
            if (
                record.status == "certified"
                and record.tests_began == began
                and any(t + maturity < row.round and entry < row.entry for t, entry in known)
            ):
                name = None if group is None else group_name(group)
                found.setdefault(row.round, []).append(name)
    return found


def _first_known(reader: LedgerReader, correction: int) -> list[tuple[int, int]]:
    """Return the rounds of corrected outcomes, with the entries that first recorded them."""
    persons = _persons(reader, next(reader.entries(correction - 1, kind="correction")))
    found: dict[tuple[int, int], None] = {}
    batches = [entry.says for entry in reader.entries(kind="batch")]
    firsts = [says["rows"]["first"] for says in batches]
    for entry in reader.entries(kind="outcomes"):
        if entry.number < correction and persons.size:
            known = np.isin(persons, _persons(reader, entry))
            places = np.searchsorted(firsts, persons[known], side="right") - 1
            rounds = [batches[at]["round"] for at in places.tolist() if at >= 0]
            found |= dict.fromkeys((number, entry.number) for number in rounds)
            persons = persons[~known]
    return [*found]


def _persons(reader: LedgerReader, entry: Entry) -> Ints:
    outcomes = reader.facts(entry).outcomes
    return np.empty(0, np.int64) if outcomes is None else outcomes.persons


def _awaited_ids(reader: LedgerReader, summary: Summary) -> dict[str | None, tuple[str, ...]]:
    """Return for each certificate the first ids whose missing outcomes its tests wait for."""
    awaited: dict[str | None, tuple[str, ...]] = {}
    for record in summary.rounds[-1].certificates if summary.rounds else ():
        group = record.group
        next_in = summary.next_tested(group)
        if next_in is not None and next_in.awaited + next_in.awaited_before:
            entry = reader.entry("batch", summary.rounds[next_in.oldest - 1].batch)
            assert entry is not None
            name = None if group is None else group_name(group)
            ids = [
                application
                for application, value in reader.awaited(entry, groups=name is not None)
                if name is None or group_name(json.loads(value)) == name
            ]
            awaited[name] = tuple(ids[:NAMED])
    return awaited


class _Counts:
    """Head counts, sorted by round, that can be summed over any rows."""

    def __init__(self, counts: HeadCounts) -> None:
        self._all = counts
        self.round, self.accepted, self.exploit = counts.round, counts.accepted, counts.exploit
        self.override, self.groups = counts.override, counts.groups
        self._state, self._n = counts.state, counts.n
        # The end of an override repeats the program's decision, so it replaces nothing.
        self.replaced = (counts.override >= 0) & (counts.override != counts.accepted)
        self.standing = counts.accepted & ~self.replaced
        self.by_hand = ~counts.accepted & self.replaced
        # Tests leave out everybody who was ever overridden.
        self.tested = counts.accepted & (counts.override < 0)

    def of_round(self, number: int) -> _Counts:
        """Return the counts of one round."""
        first, end = np.searchsorted(self.round, [number, number + 1])
        return _Counts(HeadCounts(*(column[first:end] for column in vars(self._all).values())))

    def before_round(self, number: int) -> _Counts:
        """Return the counts of the rounds before one."""
        end = np.searchsorted(self.round, number)
        return _Counts(HeadCounts(*(column[:end] for column in vars(self._all).values())))

    def sum(self, which: Bools) -> int:
        """Return the number of applicants in some rows."""
        return int(self._n[which].sum())

    def outcomes(self, which: Bools) -> Outcomes:
        """Return their outcomes."""
        counts = {state: self.sum(which & (self._state == at)) for at, state in enumerate(STATES)}
        return Outcomes(pending=self.sum(which & (self._state < 0)), **counts)

    def pending_by_round(self, which: Bools) -> dict[int, int]:
        """Return how many of their outcomes are pending in each round that has such."""
        waits = which & (self._state < 0)
        pending: dict[int, int] = {}
        for number, n in zip(self.round[waits].tolist(), self._n[waits].tolist(), strict=True):
            pending[number] = pending.get(number, 0) + n
        return pending

    def accepted_by_round(self) -> dict[int, tuple[int, int]]:
        """Return how many of the accepted of each round were explored, and how many others."""
        found: dict[int, tuple[int, int]] = {}
        rows = (self.round, self.accepted & ~self.exploit, self.accepted & self.exploit, self._n)
        for round, explored, others, n in zip(*(row.tolist() for row in rows), strict=True):
            before = found.get(round, (0, 0))
            found[round] = before[0] + n * explored, before[1] + n * others
        return found

    def awaited_by_group(self) -> dict[str, int]:
        """Return how many outcomes tests wait for by group, not of overridden or erased applicants.

        If there are several attributes, a group is a combination of their values.
        """
        waits = self.tested & (self._state < 0)
        pending: dict[str, int] = {}
        for group, n in zip(compress(self.groups, waits), self._n[waits].tolist(), strict=True):
            if group is not None:
                name = group_name(json.loads(group))
                pending[name] = pending.get(name, 0) + n
        return pending


def _promise(
    reader: LedgerReader, settings: Entry, types: Iterable[type], trusted: Iterable[str]
) -> Promise:
    payload = reader.facts(settings).payload
    if payload is None:
        return Promise(problem="the ledger has no stored settings; verify it.")
    try:
        classifier = loads(payload, types=types, trusted=trusted, name="the stored classifier")
    except InputError as error:
        return Promise(problem=str(error))
    budget = None
    if hasattr(classifier, "budget"):
        budget = FdrBudget() if classifier.budget is None else classifier.budget
    utility = getattr(classifier, "utility", None)
    return Promise(
        alpha=classifier.bound_,
        delta=getattr(classifier, "delta", None),
        budget=budget if hasattr(budget, "explore_share") else None,
        utility=utility if isinstance(utility, Utility) else None,
        maturity=getattr(classifier, "maturity", None),
        patience=getattr(classifier, "patience", None),
        shock=getattr(classifier, "shock", 0.0),
        settings=classifier.get_params(deep=False),
    )


def _round(
    entry: Entry,
    counts: _Counts,
    promise: Promise,
    now: datetime,
    began: Mapping[int, str],
    erased_pending: Callable[[Entry], int],
) -> RoundSummary:
    says = entry.says
    opened = says.get("opened", entry.number)
    tested = promise.delta is not None
    awaited, chance = counts.outcomes(counts.tested).pending, _chances(says)
    age = (now - entry.when).total_seconds() / 86400
    exploited = counts.sum(counts.accepted & counts.exploit)
    budget = math.nan
    if promise.budget is not None:
        budget = says["ramp"] * promise.budget.explore_share(says["round"]) * exploited
    return RoundSummary(
        round=says["round"],
        entry=entry.number,
        opened=opened,
        batch=entry.key,
        began=began.get(opened, entry.at),
        at=entry.at,
        age=max(0.0, age),  # another machine's clock may be ahead
        certified=bool(says["certified"]),
        group_mode=says["group_mode"],
        n_people=counts.sum(counts.round > 0),
        n_exploited=exploited,
        n_explored=counts.sum(counts.accepted & ~counts.exploit),
        n_overridden=counts.sum(counts.replaced),
        outcomes=counts.outcomes(counts.standing),
        explored=counts.outcomes(counts.standing & ~counts.exploit),
        overridden=counts.outcomes(counts.by_hand),
        expected=chance.sum,
        variance=chance.variance,
        budget=budget,
        ramp=float(says["ramp"]),
        status=says["status"],
        records=read_rounds(entry),
        about=says.get("about", {}),
        unlike=tuple(says.get("unlike", ())),
        least_chance=chance.least,
        n_hardly=chance.n_hardly,
        awaited=awaited - (erased_pending(entry) if tested and awaited else 0),
        awaited_by_group=counts.awaited_by_group() if tested else {},
        held_up=tuple(says.get("held_up", ())),
        n_identical=says.get("identical", 0),
        by=entry.by,
    )


def _chances(says: Mapping[str, Any]) -> Chances:
    """Return the chances of the applicants of an entry; JSON has text for NaN."""
    stated = says["chance"]
    least, n, *sums = (stated[name] for name in ("least", "n_hardly", "sum", "variance"))
    return Chances(float(least), int(n), *map(float, sums))


def _with_late(
    row: RoundSummary,
    entries: Sequence[Entry],
    reader: LedgerReader,
    erased_pending: Callable[[Entry], int],
) -> RoundSummary:
    """Return a round with the chances of those imported after it, for whom no test waits.

    All other counts of the round have them already.
    """
    chance = Chances(row.least_chance, row.n_hardly, row.expected, row.variance)
    awaited, by_group = row.awaited, Counter(row.awaited_by_group)
    for entry in entries:
        chance += _chances(entry.says)
        if row.awaited:
            waits = reader.awaited(entry, groups=bool(row.awaited_by_group))
            awaited -= len(waits) + erased_pending(entry)
            by_group.subtract(group_name(json.loads(value)) for _, value in waits if value)
    return replace(
        row,
        expected=chance.sum,
        variance=chance.variance,
        least_chance=chance.least,
        n_hardly=chance.n_hardly,
        awaited=awaited,
        awaited_by_group={name: n for name, n in by_group.items() if n},
    )


def _open_round(opened: Entry, counts: _Counts) -> OpenRoundSummary:
    says = opened.says
    return OpenRoundSummary(
        round=says["round"],
        entry=opened.number,
        at=opened.at,
        expires=says["expires"],
        ramp=float(says["ramp"]),
        status=says["status"],
        certified=says["certified"],
        n_people=counts.sum(counts.round > 0),
        n_accepted=counts.sum(counts.accepted),
        n_explored=counts.sum(counts.accepted & ~counts.exploit),
    )


def _erased_pending(reader: LedgerReader, erased: Ints, entry: Entry) -> int:
    """Return how many accepted applicants of a round were erased before their outcome came."""
    rows = entry.says["rows"]
    erased = erased[(erased >= rows["first"]) & (erased < rows["end"])]
    if not erased.size:
        return 0
    listed = reader.listed(int(erased.min()), int(erased.max()) + 1)
    pending = [
        override is None and outcome is None
        for override, outcome in zip(listed.overrides, listed.outcomes, strict=True)
    ]
    persons = listed.people.persons
    assert persons is not None
    gone = np.isin(persons, erased)
    return int((listed.decisions.accepted & np.array(pending) & gone).sum())


def _groups(counts: _Counts, names: list[str] | None) -> Iterator[GroupSummary]:
    """Yield each group of each protected attribute, and combinations if there are several."""
    rows = [None if group is None else json.loads(group) for group in counts.groups]
    known = [row for row in rows if row is not None]
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
    for attribute, label in labels:
        members = np.array(label, object)
        first: dict[str, int] = {}  # counts are in order of rounds
        for group, number in zip(label, counts.round.tolist(), strict=True):
            if group is not None and number:
                first.setdefault(group, number)
        errors = group_errors(first, width)
        erased = (counts.round > 0) & (members == None)  # noqa: E711 - of each element
        unplaced = Unplaced(
            counts.sum(erased),
            counts.sum(erased & counts.accepted),
            counts.sum(erased & counts.accepted & ~counts.exploit),
            counts.sum(erased & ~counts.exploit),
            counts.outcomes(erased & counts.standing),
        )
        for group in [*sorted({value for value in label if value is not None}), None]:
            inside = (counts.round > 0) & (members == group)
            if inside.any():
                yield GroupSummary(
                    attribute=attribute,
                    group=group,
                    n_people=counts.sum(inside),
                    n_accepted=counts.sum(inside & counts.accepted),
                    n_explored=counts.sum(inside & counts.accepted & ~counts.exploit),
                    n_overridden=counts.sum(inside & counts.replaced),
                    outcomes=counts.outcomes(inside & counts.standing),
                    n_by_hand=counts.sum(inside & counts.by_hand),
                    n_explorable=counts.sum(inside & ~counts.exploit),
                    pending=counts.pending_by_round(inside & counts.standing),
                    error=math.nan if group is None else errors[group],
                    unplaced=Unplaced() if group is None else unplaced,
                )


def _erased(reader: LedgerReader) -> Ints:
    erased = [reader.facts(entry).erased for entry in reader.entries(kind="erasure")]
    return np.concatenate([np.empty(0, np.int64), *(rows for rows in erased if rows is not None)])


def _changes(reader: LedgerReader) -> Iterator[RecordedChange]:
    """Yield corrections, overrides, holds, erasures, certificates, and so on, in order.

    Imports are among them if they came after their round.
    """
    changes = [
        RecordedChange(
            _change_kind(kind, entry),
            entry.number,
            entry.at,
            entry.by,
            sizes.get(entry.number, entry.says.get("n", len(entry.says.get("persons", ())))),
            entry.says | (_override_says(reader, entry) if kind == "override" else {}),
        )
        for kind in _CHANGES
        for sizes in [reader.sizes(kind)]
        for entry in reader.entries(kind=kind)
        if kind != "import" or "chance" in entry.says
    ]
    yield from sorted(changes, key=lambda change: change.entry)


def _change_kind(kind: str, entry: Entry) -> str:
    """Return the kind of a change; holds and overrides also end, and some entries say what."""
    if kind in ("control", "move"):
        return str(entry.says["what"])
    if kind == "hold" and not entry.says["held"]:
        return "release"
    return "undo" if kind == "override" and entry.says.get("undo", False) else kind


def _override_says(reader: LedgerReader, entry: Entry) -> dict[str, str]:
    """Return the decision and reasons of an override, which are stored with the applicants."""
    rows = reader.facts(entry).overrides
    if rows is None:
        return {}
    decisions = (("accepted", rows.accepted), ("rejected", ~rows.accepted))
    reasons = [reason for reason in rows.reasons if reason]
    return {"stands": " or ".join(name for name, some in decisions if some.any())} | (
        {"reason": "; ".join(dict.fromkeys(reasons))} if reasons else {}
    )


@dataclass(frozen=True)
class ReasonCount:
    """In how many rejections a column was a reason, and in how many the first."""

    name: str
    n: int
    n_first: int


@dataclass(frozen=True)
class Rejections:
    """Reasons of rejections: how many have them, how many name no column, and counts by column.

    The most frequent column comes first. Erased applicants have no reasons any more.
    """

    n: int = 0
    n_without: int = 0
    reasons: tuple[ReasonCount, ...] = ()


@dataclass(frozen=True)
class Details:
    """What a report shows in addition to a summary.

    Attributes
    ----------
    says, at, by
        Header of the first entry, and when and by whom the program was started.
    rejections
        Reasons of rejections.
    outcomes
        Entries with outcomes, and with those of them that will never be known.
    """

    says: dict[str, Any]
    at: str
    by: str
    rejections: Rejections
    outcomes: tuple[RecordedChange, ...]


def read_details(ledger: SqlLedger, summary: Summary, *, reasons: bool = True) -> Details:
    """Return the details of a program, up to the entry at which it was summarised.

    ``reasons`` says whether to read those of all rejections.
    """
    with ledger.reading(summary.program) as reader:
        first = next(reader.entries(kind="program"))
        names = (first.says.get("reference") or {}).get("names", ())
        batches = _until(reader, "batch", summary.head.number) if reasons else ()
        return Details(
            first.says,
            first.at,
            first.by,
            count_reasons(_reasons(reader, batches), names),
            tuple(_outcome_entries(reader, summary)),
        )


def _until(reader: LedgerReader, kind: str, number: int) -> Iterator[Entry]:
    return (entry for entry in reader.entries(kind=kind) if entry.number <= number)


def _reasons(reader: LedgerReader, batches: Iterable[Entry]) -> Iterator[list[bytes]]:
    """Yield the stored reasons of rejected applicants, in parts."""
    for entry in batches:
        for people, _ in reader.parts(entry, _PART):
            yield [reasons for reasons in people.reasons or () if reasons is not None]


def count_reasons(parts: Iterable[list[bytes]], names: list[str]) -> Rejections:
    """Count stored reasons by column.

    Examples
    --------
    >>> from fairchance.people.reasons import encode
    >>> stored = encode(np.array([[0.5, -2.0, -3.0], [0.1, -1.0, 0.0], [0.0, 0.0, 0.0]]))
    >>> count_reasons([stored.tolist()], ["age", "income", "debt"])
    Rejections(n=3, n_without=1, reasons=(ReasonCount(name='income', n=2, n_first=1),
    ReasonCount(name='debt', n=1, n_first=1)))
    """
    n = n_without = 0
    counts = np.zeros((2, 1 << 16), np.int64)
    for part in parts:
        length = np.fromiter(map(len, part), np.int64, len(part))
        for odd in np.flatnonzero(length % ITEM.itemsize)[:1]:
            decode(part[odd], names)  # raises
        length //= ITEM.itemsize
        columns = np.frombuffer(b"".join(part), ITEM)["column"]
        firsts = columns[(np.cumsum(length) - length)[length > 0]]
        n, n_without = n + len(part), n_without + int((length == 0).sum())
        for at, some in enumerate((columns, firsts)):
            counts[at] += np.bincount(some, minlength=counts.shape[1])
    reasons = []
    for code in np.flatnonzero(counts[0]).tolist():
        ((name, _),) = decode(code.to_bytes(2, "little") + bytes(4), names)
        reasons.append(ReasonCount(name, *counts[:, code].tolist()))
    reasons.sort(key=lambda reason: (-reason.n, -reason.n_first, reason.name))
    return Rejections(n, n_without, tuple(reasons))


def _outcome_entries(reader: LedgerReader, summary: Summary) -> Iterator[RecordedChange]:
    """Yield the entries with outcomes; those that will never be known are a withdrawal."""
    has_withdrawn = summary.outcomes.withdrawn + summary.overridden.withdrawn > 0
    sizes = reader.sizes("outcomes")
    for entry in _until(reader, "outcomes", summary.head.number):
        made, n, withdrawn = (entry.number, entry.at, entry.by), sizes.get(entry.number, 0), 0
        if has_withdrawn and (outcomes := reader.facts(entry).outcomes) is not None:
            withdrawn = list(outcomes.states).count("withdrawn")
        if withdrawn:
            yield RecordedChange("withdrawal", *made, withdrawn, {})
        if n > withdrawn or "unlike_expected" in entry.says:
            yield RecordedChange("outcomes", *made, n - withdrawn, entry.says)
