"""What a log says about groups: as recorded, corrected for selection, and without assumptions.

Outcomes are known of accepted applicants only. If a policy accepts the safest of one group and
nearly all of another, the accepted of both differ although the groups may not. With A for an
accepted applicant, p for the logged probability, and T for an applicant who takes the loan if
accepted:

====================  =======================  ==============================================
measure               recorded                 corrected
====================  =======================  ==============================================
selection_rate        ΣA / n                   the same: each decision stands for itself
false_discovery_rate  ΣAT·bad / ΣAT            the same
bad_rate              ΣAT·bad / ΣAT            Σ(A/p)T·bad / Σ(A/p)T
true_positive_rate    none                     ΣAT·good / Σ(A/p)T·good
calibration           of loans: mean score −   of all: mean score − (1 − corrected bad_rate), or
                      share of good            Σ(A/p)T·(score − good) / Σ(A/p)T
====================  =======================  ==============================================

``bad_rate`` is the share of bad outcomes if all were accepted; the record shows the share
among the accepted in its place. Bounds without assumptions let the outcomes that are not known all
be good, or all bad.

**Take-up.** An applicant who would not take the loan has no outcome. So all measures but
selection_rate are about applicants who would take it: mistakes among loans, bad among all who would
take one, accepted among the good who would take one. "Good" below means T·good. Rejected applicants
may be any of the three. If some loans were not taken, the mean score of those who would take one is
not known either, and calibration is bounded as the false discovery rate of π ≡ 1 is, with
(score + bad)/2, which is in [0, 1], in place of bad.

**Intervals** of selection_rate and false_discovery_rate are those of ``rates``, as in every other
report on the same decisions: all rounds count, and pending outcomes are missing ones. Those of the
others are made as in ``bounds``: for each end, U and V with b·E[U] ≤ E[V] whenever θ ≥ b.

- bad_rate: the false discovery rate of the policy π ≡ 1, which is the same in every round.
- true_positive_rate θ = E[p·good] / E[good], with w = min(1/p, W) ≥ 1 and rem = 1 − w·p:

  - above: U = A·w·good, V = A·good. E[U] = E[w·p·good] ≤ E[good], so
    E[V] = θ·E[good] ≥ b·E[U]. V − b·U ≤ 1 − b, as w ≥ 1.
  - below, as a bound of 1 − θ from above: U = A·w·good + rem, V = U − A·good.
    E[U] = E[good + rem·(1 − good)] ≥ E[good], so E[V] − b·E[U] = (1 − b)·E[U] − θ·E[good] ≥
    (1 − θ − b)·E[good] ≥ 0. If A·good = 1, V − b·U = (1 − b)·(w + rem) − 1 ≤ (1 − b)·(W + 1) − 1
    ≤ (1 − b)·W; else it is (1 − b)·rem.
  - An outcome that is not known counts as what gives the smaller b·U − V. As a function of b that
    is concave, so it lies above its chord from b = 0 to 1, which is −(1 − b) above and
    −(1 − b)·(w + rem − 1) below: U = V = 1 and U = V = w + rem − 1.
  - An erased applicant, who may or may not be of the group, counts in the same way if the outcome
    was good, and with U = V = rem below if not; 0 lies above these chords as well.
  - A candidate of a draw of fixed size counts, where bets are per applicant, with U = V = p above
    and U = V = 1 − p below: no coin is involved, and (p − b)·good ≤ p·(1 − b),
    (1 − p − b)·good ≤ (1 − p)·(1 − b).

The policy of the log may be another in every round, so that θ is the mean over the decisions, but
for bad_rate. The interval of calibration is that of bad_rate, moved by the mean score.

All applicants have half of the error of a measure, and groups share the rest by the order in which
they appeared (``rates.group_error``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairchance.audit.bounds import CAPS, Bets, cover, fdr_bounds, round_starts, upper_bound
from fairchance.audit.estimates import DEFAULT
from fairchance.audit.evaluate import (
    NEGLIGIBLE,
    SMALL,
    Estimate,
    Evaluation,
    Gap,
    Measured,
    Pending,
    check_log,
    error_of_groups,
    find_measured,
    gap_between,
    hardly_covered,
    notes_on,
    usable_rows,
)
from fairchance.audit.log import DecisionLog, GroupColumn
from fairchance.audit.policies import PolicyChances
from fairchance.audit.rates import Rate, compare_rates, rate_of
from fairchance.frames import to_frame
from fairchance.notebook import Displayed
from fairchance.words import LIGHTS
from fairchance.words import audits as words

__all__ = ["GroupAudit", "GroupFinding", "GroupMeasure", "TakeUp", "groups", "take_up"]
__all__ += ["tpr_bounds", "with_rates"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Rows = NDArray[np.intp]
Ends = tuple[float, float]

_RATES = ("selection_rate", "false_discovery_rate")
_OF_ALL = ("bad_rate", "true_positive_rate", "calibration")  # they need outcomes of rejected ones
_CHANCE = 3.0  # standard errors up to which a recorded gap may be chance
_NONE = (math.nan, math.nan)


@dataclass(frozen=True)
class GroupMeasure:
    """One measure of all applicants or of a group, three ways.

    Attributes
    ----------
    measure
        ``"selection_rate"``, ``"false_discovery_rate"`` (bad among loans taken), ``"bad_rate"``
        (bad among all who applied and would take the loan), ``"true_positive_rate"`` (accepted
        among the good who would) or ``"calibration"`` (mean score minus share of good of those who
        would).
    attribute, group
        The protected attribute and its value; empty for all applicants.
    recorded
        Among the accepted, as the usual report has it; NaN if the record cannot show it.
    corrected
        Corrected by the logged probabilities; NaN if they do not identify it.
    low, high
        An interval for the corrected value that is right at all times at once; NaN if there is
        none.
    least, most
        Bounds without assumptions: all outcomes that are not known are good, or all are bad.
    n_people, n_outcomes
        Number of applicants, and of known outcomes.
    reason
        Why a value or the interval is missing: ``"too_few_outcomes"``, ``"not_identified"``,
        ``"contradiction"`` (no value fits all rounds) or empty.
    rate
        The first two measures as a rate, with its missing outcomes; None for the others.
    """

    measure: str
    attribute: str
    group: str
    recorded: float
    corrected: float
    low: float
    high: float
    least: float
    most: float
    n_people: int
    n_outcomes: int
    reason: str = ""
    rate: Rate | None = field(default=None, repr=False)


@dataclass(frozen=True)
class GroupFinding:
    """Whether a gap between groups is real or selection.

    Attributes
    ----------
    attribute, measure
        The attribute and the measure.
    recorded
        Largest minus smallest recorded value, of the groups that have a corrected one.
    corrected
        The gap of the corrected values.
    reason
        ``"apart"`` if the intervals of two groups do not overlap, whatever missing outcomes turn
        out to be; ``"shrinks"`` if they do, the recorded gap is more than chance (three standard
        errors, at one look) and correction makes it smaller; else ``"overlap"``, or
        ``"not_identified"`` or ``"no_interval"`` for two groups.
    higher, lower
        The two groups, if the gap is real.
    light
        That of ``Comparison`` for acceptance; else amber if the gap is real, and green if not.
    """

    attribute: str
    measure: str
    recorded: float
    corrected: Gap
    reason: str
    higher: GroupMeasure | None = None
    lower: GroupMeasure | None = None
    light: str = "green"

    @property
    def answer(self) -> Literal["real", "selection", "open"]:
        """Whether the gap is real, or selection explains at least part of it, or neither."""
        if self.reason == "apart":
            return "real"
        return "selection" if self.reason == "shrinks" else "open"

    def __str__(self) -> str:
        return words.finding(self)


@dataclass(frozen=True)
class GroupAudit(Displayed):
    """What a log says about groups.

    Attributes
    ----------
    measured
        A ``GroupMeasure`` for each measure: of all applicants, then of each group.
    findings
        A ``GroupFinding`` for each attribute and measure.
    confidence
        Probability that the intervals of one measure, of all applicants and all groups together,
        are right at all times.
    assumptions
        What must hold for the intervals, as codes (``words.audits.assumption``).
    backend
        The kind of frame that the log came in.
    shock
        σ of the log.
    """

    measured: tuple[GroupMeasure, ...]
    findings: tuple[GroupFinding, ...]
    confidence: float
    assumptions: tuple[str, ...]
    backend: str
    shock: float = 0.0

    def of(self, measure: str, group: str = "", attribute: str = "") -> GroupMeasure:
        """Return one measure, of all applicants or of a group.

        Parameters
        ----------
        measure
            Its name.
        group, attribute
            The group, and its attribute if several have a value of that name.
        """
        found: GroupMeasure = find_measured(self.measured, measure, group, attribute)
        return found

    def verdict(self) -> str:
        """Return what the log says about bad outcomes, of all applicants and between groups."""
        return words.groups_verdict(self)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return all values as columns: a row per measure and group."""
        names = [each.name for each in fields(GroupMeasure) if each.name != "rate"]
        return {name: np.array([getattr(row, name) for row in self.measured]) for name in names}

    def to_frame(self, backend: str | None = None) -> Any:
        """Return all values as a frame of the log's kind, or of a named kind."""
        return to_frame(self.columns(), self.backend if backend is None else backend)


def groups(log: DecisionLog, *, confidence: float = 0.95, pending: Pending = "cut") -> GroupAudit:
    """Compare groups three ways: as recorded, corrected for selection, and without assumptions.

    Parameters
    ----------
    log
        The decisions, with the probability of each acceptance.
    confidence
        Probability that the intervals of one measure, of all groups of an attribute together, are
        right at all times.
    pending
        What happens to outcomes that are not known yet: ``"cut"`` uses rounds before the first one
        that still waits for outcomes; ``"worst"`` uses all rounds for intervals and bounds, and
        counts each such outcome as the worst for each of them.

    Examples
    --------
    Both groups are alike, but the policy accepts only the safest of group b:

    >>> rng = np.random.default_rng(0)
    >>> group, safe = rng.choice(["a", "b"], 8000), rng.random(8000)
    >>> propensity = np.where((group == "a") | (safe > 0.6), 0.9, 0.15)
    >>> accepted = rng.random(8000) < propensity
    >>> outcome = np.where(accepted, rng.random(8000) < 0.5 + 0.5 * safe, np.nan)
    >>> audit = groups(DecisionLog(accepted, propensity, outcome, sensitive_features=group))
    >>> for name in "ab":
    ...     row = audit.of("bad_rate", name)
    ...     print(name, round(row.recorded, 2), round(row.corrected, 2))
    a 0.25 0.25
    b 0.15 0.24
    >>> [finding.answer for finding in audit.findings if finding.measure == "bad_rate"]
    ['selection']
    """
    check_log(log, confidence, pending)
    complete, bounded = usable_rows(log, PolicyChances("the log", log.propensity), pending)
    calibrated = log.score is not None and _are_likelihoods(log.score)
    names = [name for name in _OF_ALL if calibrated or name != "calibration"]
    error = 1 - confidence

    def measure(error: float, *of: Any) -> list[GroupMeasure]:
        rates = _rates(log, error, *of)
        return [*rates, *_measure(log, names, complete, bounded, error, *of)]

    measured = measure(error / 2)
    findings: list[GroupFinding] = []
    for column in log.groups:
        of_groups = [
            row
            for code, part in error_of_groups(log, column, error).items()
            for row in measure(part, column.codes == code, column.attribute, column.names[code])
        ]
        measured += of_groups
        for name in (*_RATES, *names):
            found = _finding([row for row in of_groups if row.measure == name])
            findings += [] if found is None else [found]
    return GroupAudit(
        tuple(measured),
        tuple(findings),
        confidence,
        tuple(_assumptions(log, pending, calibrated)),
        log.backend,
        log.shock,
    )


@dataclass(frozen=True)
class TakeUp:
    """How many of some accepted applicants took the loan.

    Attributes
    ----------
    attribute, group
        ``"region"`` with ``"exploit"`` or ``"explore"``, a protected attribute with its value, or
        ``"round"`` with its number; empty for all.
    rate
        Loans taken of accepted applicants, with the interval at all times. Withdrawn outcomes are
        missing cases.
    """

    attribute: str
    group: str
    rate: Rate


def take_up(log: DecisionLog, *, confidence: float = 0.95) -> tuple[TakeUp, ...]:
    """Return who takes the loan: of all, by region, by group and by round.

    If explored applicants take loans less often than others, those who do are not a random part of
    them (adverse selection), and mistakes are about those who do. A pending loan counts as taken,
    so leave out rounds in which ``not_taken`` may still be recorded. Applicants whom an override
    rejected do not count.

    Parameters
    ----------
    log
        The decisions.
    confidence
        Probability that all intervals are right at all times.

    Examples
    --------
    >>> log = DecisionLog([True] * 4, [1, 1, 0.5, 0.5], ["good", "bad", "good", "not_taken"])
    >>> [(row.group, row.rate.value) for row in take_up(log)]
    [('', 0.75), ('exploit', 1.0), ('explore', 0.5), ('1', 0.75)]
    """
    log = log.select(log.accepted & ~log.overridden)
    numbers, code = np.unique(log.round, return_inverse=True)
    region = GroupColumn("region", ("exploit", "explore"), (~log.exploit).astype(np.intp))
    by_round = GroupColumn("round", tuple(map(str, numbers.tolist())), code)
    log.groups = (region, *log.groups, by_round)
    took, error = log.taken & ~log.withdrawn, 1 - confidence

    def rate(inside: Bools, unsure: Bools, error: float) -> Rate:
        count, left = _counts(took & inside, log.not_taken & inside)
        may = int((log.withdrawn & (inside | unsure)).sum())
        erased = _counts(took & unsure, log.not_taken & unsure)
        return rate_of(count, count + left, error, missing=may, erased=erased)

    everyone = np.ones(len(log), np.bool_)
    return (
        TakeUp("", "", rate(everyone, ~everyone, error / 2)),
        *(
            TakeUp(by.attribute, by.names[at], rate(by.codes == at, by.codes < 0, part))
            for by in log.groups
            for at, part in error_of_groups(log, by, error).items()
        ),
    )


def with_rates(decided: Evaluation, audit: GroupAudit) -> Evaluation:
    """Return the evaluation of all logged decisions themselves, with the rates that others report.

    ``evaluate`` weighs outcomes and leaves out rounds with pending ones, as it must for a policy
    that did not decide. For the one that did, the rates of ``rates`` are at hand.
    """
    rows = {row.measure: row for row in decided.measured}
    for row in audit.measured[: len(_RATES)]:
        assert row.rate is not None
        rate, estimates = row.rate, {DEFAULT: Estimate(row.rate.value, math.nan)}
        ends = rate.low, rate.high, rate.least, rate.most
        numbers = row.n_people, row.n_outcomes
        rows[row.measure] = Measured(row.measure, "", "", rate.value, *ends, estimates, *numbers)
    return replace(decided, measured=tuple(rows.values()))


def _are_likelihoods(score: Floats) -> bool:
    known = score[~np.isnan(score)]
    return bool(known.size and known.min() >= 0 and known.max() <= 1)


def _assumptions(log: DecisionLog, pending: str, calibrated: bool) -> Iterator[str]:
    """Yield what must hold for the intervals."""
    yield "these_applicants"
    yield "as_decided"
    if log.estimated:
        yield "estimated"
        return
    yield "group_populations"
    yield "independent"
    yield from notes_on(log, pending)
    if log.groups and log.erased.any():
        yield "erased_worst"
    if calibrated and not log.not_taken.any():
        yield "mean_score"


def _rates(
    log: DecisionLog,
    error: float,
    inside: Bools | None = None,
    attribute: str = "",
    group: str = "",
) -> Iterator[GroupMeasure]:
    """Yield the measures of the decisions themselves, from all rounds."""
    rows = np.flatnonzero(np.ones(len(log), np.bool_) if inside is None else inside)
    unsure = np.flatnonzero(log.erased) if inside is not None else rows[:0]
    n_accepted, n_outcomes = int(log.accepted[rows].sum()), int(log.known[rows].sum())
    n_bad = int((log.outcome[rows] == 0).sum())
    ranges = _ranges(log, rows, unsure)
    gone, became = log.accepted[unsure], log.outcome[unsure]
    open_ = log.taken & ~log.known & ~log.overridden
    missing = int(open_[rows].sum() + open_[unsure].sum())
    for name, rate in zip(
        _RATES,
        (
            rate_of(n_accepted, rows.size, error, erased=_counts(gone, ~gone)),
            rate_of(
                n_bad, n_outcomes, error, missing=missing, erased=_counts(became == 0, became == 1)
            ),
        ),
        strict=True,
    ):
        yield GroupMeasure(
            *(name, attribute, group, rate.value, rate.value, rate.low, rate.high),
            *ranges[name],
            int(rows.size),
            n_outcomes,
            "" if rate.n else "too_few_outcomes",
            rate,
        )


def _counts(happened: Bools, did_not: Bools) -> tuple[int, int]:
    return int(happened.sum()), int(did_not.sum())


def _measure(
    log: DecisionLog,
    names: Sequence[str],
    complete: Bools,
    bounded: Bools,
    error: float,
    inside: Bools | None = None,
    attribute: str = "",
    group: str = "",
) -> Iterator[GroupMeasure]:
    """Yield the measures that need outcomes of rejected applicants, of all or of a group."""
    here = np.ones(len(log), np.bool_) if inside is None else inside
    rows, wider = np.flatnonzero(complete & here), np.flatnonzero(bounded & here)
    # Erased applicants may be of any group.
    unsure = np.flatnonzero(bounded & log.erased) if inside is not None else rows[:0]
    n_outcomes = int(log.known[rows].sum())
    # Bounds that assume nothing need no outcome.
    few_people = inside is not None and wider.size < SMALL
    few_outcomes = few_people or (inside is not None and n_outcomes < SMALL)
    values = _values(log, rows)
    intervals = {} if few_people else _intervals(log, wider, unsure, error)
    ranges = {} if few_people else _ranges(log, wider, unsure)
    everyone = np.ones(rows.size)
    uncovered = hardly_covered(everyone, log.propensity[rows], estimated=log.estimated)
    for name in names:
        (recorded, corrected), reason = values[name], ""
        if few_outcomes:
            recorded, corrected, reason = math.nan, math.nan, "too_few_outcomes"
        elif uncovered > NEGLIGIBLE:
            corrected, reason = math.nan, "not_identified"
        interval = intervals.get(name, _NONE)
        if interval[0] > interval[1]:
            interval, reason = _NONE, "contradiction"
        yield GroupMeasure(
            *(name, attribute, group, recorded, corrected),
            *interval,
            *ranges.get(name, _NONE),
            int(rows.size),
            n_outcomes,
            reason,
        )


def _values(log: DecisionLog, rows: Rows) -> dict[str, Ends]:
    """Return each measure as recorded, of known outcomes, and corrected.

    In corrected ones, outcomes that will never be known count as bad.
    """
    a, p = log.taken[rows], log.propensity[rows]
    good = np.nan_to_num(log.outcome[rows])
    weight = np.zeros(rows.size)
    np.divide(1.0, p, out=weight, where=a)
    known = log.known[rows]
    recorded = _ratio(known @ (1 - good), known.sum())
    values = {
        "bad_rate": (recorded, _ratio(weight @ (1 - good), weight.sum())),
        "true_positive_rate": (math.nan, _ratio(a @ good, weight @ good)),
    }
    if log.score is not None:
        score, scored = log.score[rows], ~np.isnan(log.score[rows])
        both, weight = known & scored, weight * scored
        mean = _ratio(score[scored].sum(), scored.sum())
        if log.not_taken.any():
            mean = _ratio(weight @ np.nan_to_num(score), weight.sum())
        values["calibration"] = (
            _ratio((score - good)[both].sum(), both.sum()),
            mean - _ratio(weight @ good, weight.sum()),
        )
    return values


def _ranges(log: DecisionLog, rows: Rows, unsure: Rows) -> dict[str, Ends]:
    """Return each measure if all outcomes that are not known are good, and if all are bad.

    ``unsure`` are applicants who may belong to the group; they count if that widens the range.
    """
    n, a = rows.size, int(log.accepted[rows].sum())
    good = int(np.nansum(log.outcome[rows]))
    known = int(log.known[rows].sum())
    bad, rejected = known - good, n - a
    loans = int(log.taken[rows].sum())
    taken, became = log.accepted[unsure], log.outcome[unsure]
    # Who of the unsure may be good, and who may be bad: of all, and of the accepted.
    may_be_good, may_be_bad = ((became != state) & ~log.not_taken[unsure] for state in (0, 1))
    g, b, left = int(may_be_good.sum()), int(may_be_bad.sum()), int((~taken).sum())
    ga, ba = int((may_be_good & taken).sum()), int((may_be_bad & taken).sum())
    # If all are accepted, so are all the good.
    accepted_good: Ends = (1.0, 1.0) if loans else _NONE
    if rejected + left:
        accepted_good = (good / (good + rejected + left), 1.0 if loans > bad or ga else 0.0)
    n_all = loans + rejected
    ranges = {
        "selection_rate": (_ratio(a, n + left), _ratio(a + taken.sum(), n + taken.sum())),
        "false_discovery_rate": (
            _ratio(bad, loans + ga),
            _ratio(bad + loans - known + ba, loans + ba),
        ),
        "bad_rate": (_ratio(bad, n_all + g), _ratio(bad + n_all - known + b, n_all + b)),
        "true_positive_rate": accepted_good,
    }
    if log.score is not None:
        scored, maybe = (
            some[~np.isnan(log.score[some]) & ~log.not_taken[some]] for some in (rows, unsure)
        )
        sure = log.known[scored] | ~log.not_taken.any()  # the others may take no loan
        may = np.append(log.score[scored[~sure]], log.score[maybe])
        least, most = _mean_ends(log.score[scored[sure]], may)
        good, known = int(np.nansum(log.outcome[scored])), int(log.known[scored].sum())
        g, b = (int((log.outcome[maybe] != state).sum()) for state in (0, 1))
        ranges["calibration"] = (
            least - _ratio(good + scored.size - known + g, scored.size + g),
            most - _ratio(good, scored.size + b),
        )
    return ranges


def _mean_ends(scores: Floats, maybe: Floats) -> Ends:
    """Return the smallest and the largest mean of scores and some of those that may belong to them.

    Examples
    --------
    >>> [round(end, 3) for end in _mean_ends(np.array([0.5, 0.7]), np.array([0.0, 0.9, 0.6]))]
    [0.4, 0.7]
    """
    if not scores.size:
        return _NONE
    ends = []
    for order in (np.sort(maybe), -np.sort(-maybe)):  # the smallest first, the largest first
        means = (scores.sum() + np.append(0.0, np.cumsum(order))) / (
            scores.size + np.arange(order.size + 1)
        )
        ends.append(means)
    return float(ends[0].min()), float(ends[1].max())


def _ratio(part: Any, whole: Any) -> float:
    return float(part / whole) if whole else math.nan


def _intervals(log: DecisionLog, rows: Rows, unsure: Rows, error: float) -> dict[str, Ends]:
    """Return an interval of each measure; none if probabilities are estimated.

    ``unsure`` are erased applicants, who may belong to the group and count as the worst case.
    """
    if log.estimated:
        return {}
    maybe = np.zeros(len(log), np.bool_)
    maybe[unsure] = True
    rows = np.append(rows, unsure)
    rows = rows[np.argsort(log.round[rows], kind="stable")]
    rounds = round_starts(log.round[rows])
    good = np.where(log.not_taken[rows], 0.0, log.outcome[rows])
    decided = log.accepted[rows], log.propensity[rows], good, log.drawn[rows]
    found = {
        "bad_rate": _bad_rate_bounds(log, rows, maybe, error),
        "true_positive_rate": tpr_bounds(
            *decided,
            rounds,
            error,
            changes=rounds.size > 2,
            unsure=maybe[rows],
            shock=log.shock,
        ),
    }
    if log.score is not None:
        scored = rows[~np.isnan(log.score[rows])]
        if scored.size and log.not_taken.any() and _are_likelihoods(log.score):
            low, high = _bad_rate_bounds(log, scored, maybe, error, log.score[scored])
            found["calibration"] = 2 * low - 1, 2 * high - 1
        elif scored.size:
            every = scored.size == rows.size
            low, high = found["bad_rate"] if every else _bad_rate_bounds(log, scored, maybe, error)
            own, others = (log.score[scored[maybe[scored] == is_]] for is_ in (False, True))
            least, most = _mean_ends(own, others)
            found["calibration"] = least - 1 + low, most - 1 + high
    return found


def _bad_rate_bounds(
    log: DecisionLog, rows: Rows, maybe: Bools, error: float, score: Floats | None = None
) -> Ends:
    """Return bounds of the share of bad if all were accepted; rows are in order of rounds.

    With scores, of the mean of (score + bad)/2.
    """
    a, p, drawn = log.taken[rows], log.propensity[rows], log.drawn[rows]
    covered, good = cover(np.ones(rows.size), p, a, drawn), log.outcome[rows]
    # Outcomes that are not known are all bad, or all good.
    worst, best = 1 - np.nan_to_num(good, nan=0.0), 1 - np.nan_to_num(good, nan=1.0)
    if score is not None:
        worst, best = (worst + score) / 2, (best + score) / 2
    rounds, unsure = round_starts(log.round[rows]), maybe[rows] if maybe[rows].any() else None
    return fdr_bounds(covered, worst, best, rounds, error, False, unsure, log.shock)


def tpr_bounds(
    accepted: Bools,
    p: Floats,
    good: Floats,
    drawn: Bools,
    rounds: Rows,
    error: float,
    *,
    changes: bool,
    unsure: Bools | None = None,
    shock: float = 0.0,
) -> Ends:
    """Return bounds of the share of good applicants that the logged policy accepts; see the module.

    ``good`` is NaN if the outcome is not known, ``drawn`` are the candidates of a draw of fixed
    size, and ``changes`` is whether the policy may differ between rounds.
    ``unsure`` are applicants who may or may not be among these.
    """
    hit = np.where(accepted, np.nan_to_num(good), 0.0)  # A·good
    unknown = accepted & np.isnan(good)
    if unsure is not None:
        unknown |= unsure & (hit > 0)
        hit = np.where(unsure, 0.0, hit)
    above: list[Bets] = []
    below: list[Bets] = []
    for cap in CAPS:
        covered = np.minimum(1.0, cap * p)  # w·p
        w, rem = np.ones_like(p), 1.0 - covered
        np.divide(covered, p, out=w, where=accepted)
        against = np.where(unknown, w + rem - 1, hit * w + rem)
        for bets, u, v, settled, most in (
            (above, hit * w + unknown, hit + unknown, p, 1.0),
            (below, against, against - hit, 1 - p, cap),
        ):
            if drawn.any():
                worst = (most, most)
                made = Bets.of(u, v, rounds, worst, per_round=True, changes=changes, shock=shock)
                bets.append(made)
            u_each, v_each = np.where(drawn, settled, u), np.where(drawn, settled, v)
            bets.append(Bets.of(u_each, v_each, rounds, (most, most), shock=shock))
    return (
        1.0 - upper_bound(below, error / 2, changes=changes),
        upper_bound(above, error / 2, changes=changes),
    )


def _finding(rows: Sequence[GroupMeasure]) -> GroupFinding | None:
    """Return whether the gap in one measure of an attribute's groups is real or selection."""
    attribute, measure = rows[0].attribute, rows[0].measure
    ends = [_ends(row) for row in rows]
    values = [row.corrected for row in rows]
    gap = gap_between(attribute, measure, values, ends, ratios=measure != "calibration")
    if gap is None:
        return None
    apart = gap.difference_low > 0
    light = "amber" if apart else "green"
    if measure == "selection_rate":
        compared = compare_rates([row.rate for row in rows if row.rate is not None])
        apart = any(each.unequal for each in compared)
        light = min((each.light for each in compared), key=LIGHTS.index, default="green")
        lowest = min(compared, key=lambda each: each.ratio, default=None)
        if lowest is not None:  # as other reports have it
            low, high = lowest.low, lowest.high
            gap = replace(gap, ratio=lowest.ratio, ratio_low=low, ratio_high=high)
    recorded, noise = _recorded_gap([row for row in rows if not math.isnan(row.corrected)])
    if apart:
        bounded = [row for row in rows if not math.isnan(row.low)]
        higher = max(bounded, key=lambda row: _ends(row)[0])
        lower = min(bounded, key=lambda row: _ends(row)[1])
        return GroupFinding(attribute, measure, recorded, gap, "apart", higher, lower, light)
    reason = "overlap"
    if math.isnan(gap.difference):
        reason = "not_identified"
    elif math.isnan(gap.difference_low):
        reason = "no_interval"
    elif measure in _OF_ALL and recorded > max(noise, gap.difference):
        reason = "shrinks"
    return GroupFinding(attribute, measure, recorded, gap, reason, light=light)


def _ends(row: GroupMeasure) -> Ends:
    """Return the interval of a measure, whatever missing outcomes turn out to be."""
    return (row.low, row.high) if row.rate is None else (row.rate.least, row.rate.most)


def _recorded_gap(rows: Sequence[GroupMeasure]) -> Ends:
    """Return the gap between recorded values, and the largest one that may be chance."""
    if len(rows) < 2 or any(math.isnan(row.recorded) for row in rows):
        return _NONE
    largest, smallest = (end(rows, key=lambda row: row.recorded) for end in (max, min))
    # A share of n outcomes has a standard error of 1/(2√n) at most.
    n = [max(1, row.n_outcomes) for row in (largest, smallest)]
    noise = _CHANCE / 2 * math.sqrt(1 / n[0] + 1 / n[1])
    return largest.recorded - smallest.recorded, noise
