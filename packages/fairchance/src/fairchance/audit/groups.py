"""What a log says about groups: as recorded, corrected for selection, and without assumptions.

Outcomes are known of accepted applicants only. If a policy accepts the safest of one group and
nearly all of another, the accepted of both differ although the groups may not. With A for an
accepted applicant and p for the logged probability:

====================  =======================  ==============================================
measure               recorded                 corrected
====================  =======================  ==============================================
selection_rate        ΣA / n                   Σp / n
false_discovery_rate  ΣA·bad / ΣA              the same: each acceptance stands for itself
bad_rate              ΣA·bad / ΣA              Σ(A/p)·bad / Σ(A/p)
true_positive_rate    none                     ΣA·good / Σ(A/p)·good
calibration           of the accepted: mean    of all: mean score − (1 − corrected bad_rate)
                      score − share of good
====================  =======================  ==============================================

``bad_rate`` is the share of bad outcomes if all were accepted; the record shows the share
among the accepted in its place. Bounds without assumptions let the outcomes that are not known all
be good, or all bad.

**Intervals** are those of ``bounds``: for each end, U and V with b·E[U] ≤ E[V] whenever θ ≥ b.

- bad_rate: the false discovery rate of the policy π ≡ 1, which is the same in every round.
- false_discovery_rate: π = p, so w = 1, U = A and V = A·bad.
- selection_rate: U = 1 and V = p, which has the mean of A and involves no coin.
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
  - A candidate of a draw of fixed size counts, where bets are per applicant, with U = V = p above
    and U = V = 1 − p below: no coin is involved, and (p − b)·good ≤ p·(1 − b),
    (1 − p − b)·good ≤ (1 − p)·(1 − b).

The policy of the log may be another in every round, so that θ is the mean over the decisions, but
for bad_rate. The interval of calibration is that of bad_rate, moved by the mean score.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairchance.audit.bounds import (
    CAPS,
    Bets,
    Covered,
    cover,
    fdr_bounds,
    mean_bounds,
    round_starts,
    upper_bound,
)
from fairchance.audit.evaluate import (
    CONTRADICTION,
    ESTIMATED,
    NEGLIGIBLE,
    SMALL,
    Gap,
    Pending,
    check_log,
    find_measured,
    gap_between,
    hardly_covered,
    notes_on,
    shown_range,
    usable_rows,
)
from fairchance.audit.log import DecisionLog
from fairchance.audit.policies import Chances
from fairchance.frames import to_frame
from fairchance.notebook import in_words
from fairchance.words import counted, percent, percents

__all__ = ["GroupAudit", "GroupFinding", "GroupMeasure", "groups", "tpr_bounds"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Rows = NDArray[np.intp]
Ends = tuple[float, float]

_IN_WORDS = {
    "selection_rate": "share of applicants who are accepted",
    "false_discovery_rate": "share of bad among the accepted",
    "bad_rate": "share of bad among all applicants",
    "true_positive_rate": "share of the good who are accepted",
    "calibration": "mean score minus share of good",
}
_OF_ALL = ("bad_rate", "true_positive_rate", "calibration")  # they need outcomes of rejected ones
_CHANCE = 3.0  # standard errors up to which a recorded gap may be chance
_NONE = (math.nan, math.nan)


@dataclass(frozen=True)
class GroupMeasure:
    """One measure of all applicants or of a group, three ways.

    Attributes
    ----------
    measure
        ``"selection_rate"``, ``"false_discovery_rate"`` (bad among the accepted), ``"bad_rate"``
        (bad among all who applied), ``"true_positive_rate"`` (accepted among the good) or
        ``"calibration"`` (mean score minus share of good).
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
    note
        Why a value or the interval is missing; empty otherwise.
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
    note: str = ""

    def texts(self) -> list[str]:
        """Write the value as recorded, corrected or why it is not, its interval, and its bounds."""
        ranges = shown_range("", self.low, self.high), shown_range("", self.least, self.most)
        texts = [percent(self.recorded), percent(self.corrected), *ranges]
        if self.measure == "calibration":  # a difference of shares, so not in percent of anything
            texts = [text.replace(" % to ", " to ").replace("%", "points") for text in texts]
        if math.isnan(self.corrected) and self.note:
            texts[1] = self.note
        return texts


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
    answer
        ``"real"`` if the corrected intervals of two groups do not overlap; ``"selection"`` if they
        do, the recorded gap is more than chance (three standard errors, at one look) and correction
        makes it smaller; ``"open"`` otherwise.
    sentence
        The answer in words.
    """

    attribute: str
    measure: str
    recorded: float
    corrected: Gap
    answer: Literal["real", "selection", "open"]
    sentence: str


@dataclass(frozen=True)
class GroupAudit:
    """What a log says about groups.

    Attributes
    ----------
    measured
        A ``GroupMeasure`` for each measure: of all applicants, then of each group.
    findings
        A ``GroupFinding`` for each attribute and measure.
    confidence
        Probability that the intervals of one measure, of all groups of an attribute together, are
        right at all times.
    assumptions
        What must hold for the intervals, in sentences.
    backend
        The kind of frame that the log came in.
    """

    measured: tuple[GroupMeasure, ...]
    findings: tuple[GroupFinding, ...]
    confidence: float
    assumptions: tuple[str, ...]
    backend: str

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
        row = self.of("bad_rate")
        if math.isnan(row.corrected):
            corrected = (
                f"among all applicants it is not identified: between {percent(row.least)} and "
                f"{percent(row.most)}"
            )
        else:
            interval = "" if math.isnan(row.low) else f" ({percents((row.low, row.high))})"
            corrected = f"among all applicants an estimated {percent(row.corrected)}{interval}"
        recorded = f"Of the accepted, {percent(row.recorded)} are bad"
        if math.isnan(row.recorded):
            recorded = "No round has all of its outcomes"
        lead = f"{recorded}; {corrected}."
        sentences = [each.sentence for each in self.findings if each.measure == "bad_rate"]
        return " ".join([lead, *sentences])

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return all values as columns: a row per measure and group."""
        names = [field.name for field in fields(GroupMeasure)]
        return {name: np.array([getattr(row, name) for row in self.measured]) for name in names}

    def to_frame(self, backend: str | None = None) -> Any:
        """Return all values as a frame of the log's kind, or of a named kind."""
        return to_frame(self.columns(), self.backend if backend is None else backend)

    def _repr_html_(self) -> str:
        titles = ["", "recorded", "corrected", "interval at all times", "without assumptions"]
        rows = [
            [
                row.measure.replace("_", " ") + (f", {row.group}" if row.group else ""),
                *row.texts(),
            ]
            for row in self.measured
        ]
        sentences = [each.sentence for each in self.findings if each.measure != "bad_rate"]
        return in_words(self.verdict(), *sentences, *self.assumptions, titles=titles, rows=rows)


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
    complete, bounded = usable_rows(log, Chances("the log", log.propensity), pending)
    calibrated = log.score is not None and _are_likelihoods(log.score)
    names = [name for name in _IN_WORDS if calibrated or name != "calibration"]
    error = 1 - confidence
    measured = list(_measure(log, names, complete, bounded, error))
    findings: list[GroupFinding] = []
    for column in log.groups:
        of_groups = [
            row
            for code, name in enumerate(column.names)
            for row in _measure(
                log,
                names,
                complete,
                bounded,
                error / len(column.names),
                (column.attribute, name, column.codes == code),
            )
        ]
        measured += of_groups
        for name in names:
            finding = _finding([row for row in of_groups if row.measure == name])
            findings += [] if finding is None else [finding]
    return GroupAudit(
        tuple(measured),
        tuple(findings),
        confidence,
        tuple(_assumptions(log, confidence, pending, calibrated)),
        log.backend,
    )


def _are_likelihoods(score: Floats) -> bool:
    known = score[~np.isnan(score)]
    return bool(known.size and known.min() >= 0 and known.max() <= 1)


def _assumptions(
    log: DecisionLog, confidence: float, pending: str, calibrated: bool
) -> Iterator[str]:
    """Yield what must hold for the intervals."""
    yield "Values without assumptions are about these applicants, and not about later ones."
    if log.estimated:
        yield ESTIMATED
        return
    yield (
        f"Intervals of one measure are right for all groups of an attribute together, at all "
        f"times, with a probability of {percent(confidence)}, if applicants of a group come from "
        f"one population in all rounds, and acceptances followed the logged probabilities."
    )
    if np.unique(log.round).size > 1:
        yield (
            "The logged policy may differ between rounds; what it accepts is a mean over the "
            "decisions of all rounds."
        )
    yield from notes_on(log, pending)
    if calibrated:
        yield "The interval of calibration takes the mean score of these applicants as it is."


def _measure(
    log: DecisionLog,
    names: Sequence[str],
    complete: Bools,
    bounded: Bools,
    error: float,
    of: tuple[str, str, Bools] | None = None,
) -> Iterator[GroupMeasure]:
    """Yield all measures, of all applicants or of a group."""
    attribute, group, inside = of or ("", "", np.ones(len(log), np.bool_))
    rows, wider = np.flatnonzero(complete & inside), np.flatnonzero(bounded & inside)
    n_outcomes = int(log.known[rows].sum())
    # A share of applicants needs no outcome, nor do bounds that assume nothing.
    few_people = of is not None and wider.size < SMALL
    few_outcomes = of is not None and n_outcomes < SMALL
    values = _values(log, rows)
    intervals = {} if few_people else _intervals(log, wider, error)
    ranges = {} if few_people else _ranges(log, wider)
    everyone = np.ones(rows.size)
    uncovered = hardly_covered(everyone, log.propensity[rows], estimated=log.estimated)
    for name in names:
        (recorded, corrected), note = values[name], ""
        if few_people or (few_outcomes and name != "selection_rate"):
            recorded = corrected = math.nan
            note = f"Too small: {counted(n_outcomes, 'outcome')}, and {SMALL} are needed."
        elif name in _OF_ALL and uncovered > NEGLIGIBLE:
            corrected = math.nan
            note = f"Not identified: hardly any chance of acceptance for {percent(uncovered)}."
        elif name == "true_positive_rate":
            note = "Not recorded: outcomes of rejected applicants are not known."
        interval = intervals.get(name, _NONE)
        if interval[0] > interval[1]:
            interval, note = _NONE, CONTRADICTION
        yield GroupMeasure(
            name,
            attribute,
            group,
            recorded,
            corrected,
            *interval,
            *ranges.get(name, _NONE),
            int(rows.size),
            n_outcomes,
            note,
        )


def _values(log: DecisionLog, rows: Rows) -> dict[str, Ends]:
    """Return each measure as recorded, of known outcomes, and corrected.

    In corrected ones, outcomes that will never be known count as bad.
    """
    a, p = log.accepted[rows], log.propensity[rows]
    good = np.nan_to_num(log.outcome[rows])
    weight = np.zeros(rows.size)
    np.divide(1.0, p, out=weight, where=a)
    known = log.known[rows]
    recorded = _ratio(known @ (1 - good), known.sum())
    of_accepted = _ratio(a @ (1 - good), a.sum())
    values = {
        "selection_rate": (_ratio(a.sum(), rows.size), _ratio(p.sum(), rows.size)),
        "false_discovery_rate": (recorded, of_accepted),
        "bad_rate": (recorded, _ratio(weight @ (1 - good), weight.sum())),
        "true_positive_rate": (math.nan, _ratio(a @ good, weight @ good)),
    }
    if log.score is not None:
        score, scored = log.score[rows], ~np.isnan(log.score[rows])
        both, weight = known & scored, weight * scored
        values["calibration"] = (
            _ratio((score - good)[both].sum(), both.sum()),
            _ratio(score[scored].sum(), scored.sum()) - _ratio(weight @ good, weight.sum()),
        )
    return values


def _ranges(log: DecisionLog, rows: Rows) -> dict[str, Ends]:
    """Return each measure if all outcomes that are not known are good, and if all are bad."""
    n, a = rows.size, int(log.accepted[rows].sum())
    good = int(np.nansum(log.outcome[rows]))
    known = int(log.known[rows].sum())
    bad, rejected = known - good, n - a
    accepted_good: Ends = (1.0, 1.0) if a else _NONE  # if all are accepted, so are all the good
    if rejected:
        accepted_good = (good / (good + rejected), 1.0 if a > bad else 0.0)
    ranges = {
        "selection_rate": (_ratio(a, n), _ratio(a, n)),
        "false_discovery_rate": (_ratio(bad, a), _ratio(bad + a - known, a)),
        "bad_rate": (_ratio(bad, n), _ratio(bad + n - known, n)),
        "true_positive_rate": accepted_good,
    }
    if log.score is not None:
        scored = rows[~np.isnan(log.score[rows])]
        mean = _ratio(log.score[scored].sum(), scored.size)
        good, known = int(np.nansum(log.outcome[scored])), int(log.known[scored].sum())
        most = good + scored.size - known
        ranges["calibration"] = (mean - _ratio(most, scored.size), mean - _ratio(good, scored.size))
    return ranges


def _ratio(part: Any, whole: Any) -> float:
    return float(part / whole) if whole else math.nan


def _intervals(log: DecisionLog, rows: Rows, error: float) -> dict[str, Ends]:
    """Return an interval of each measure; none if probabilities are estimated."""
    if log.estimated:
        return {}
    rows = rows[np.argsort(log.round[rows], kind="stable")]
    a, p, drawn = log.accepted[rows], log.propensity[rows], log.drawn[rows]
    rounds = round_starts(log.round[rows])
    changes = rounds.size > 2
    good = log.outcome[rows]
    found = {
        "selection_rate": mean_bounds(p, rounds, error, changes),
        "bad_rate": _bad_rate_bounds(log, rows, error),
        "true_positive_rate": tpr_bounds(a, p, good, drawn, rounds, error, changes=changes),
    }
    if p.any():
        found["false_discovery_rate"] = fdr_bounds(
            _covered_by_itself(a, p, drawn), *_bad(good), rounds, error, changes
        )
    if log.score is not None:
        scored = rows[~np.isnan(log.score[rows])]
        if scored.size:
            every = scored.size == rows.size
            low, high = found["bad_rate"] if every else _bad_rate_bounds(log, scored, error)
            mean = float(log.score[scored].mean())
            found["calibration"] = mean - 1 + low, mean - 1 + high
    return found


def _bad(good: Floats) -> tuple[Floats, Floats]:
    """Return who is bad if all outcomes that are not known are, and if none of them is."""
    return 1 - np.nan_to_num(good, nan=0.0), 1 - np.nan_to_num(good, nan=1.0)


def _bad_rate_bounds(log: DecisionLog, rows: Rows, error: float) -> Ends:
    """Return bounds of the share of bad if all were accepted; rows are in order of rounds."""
    a, p, drawn = log.accepted[rows], log.propensity[rows], log.drawn[rows]
    covered = cover(np.ones(rows.size), p, a, drawn)
    rounds = round_starts(log.round[rows])
    return fdr_bounds(covered, *_bad(log.outcome[rows]), rounds, error, changes=False)


def _covered_by_itself(accepted: Bools, p: Floats, drawn: Bools) -> list[Covered]:
    """Return what a log covers of its own policy: everything, with w = 1, so that A·w + rem ≤ 1."""
    a, cap = accepted.astype(np.float64), 0.0
    if not drawn.any():
        return [Covered(a, np.zeros_like(a), cap)]
    by_person = Covered(np.where(drawn, 0.0, a), np.where(drawn, p, 0.0), cap)
    return [Covered(a, np.zeros_like(a), cap, per_round=True), by_person]


def tpr_bounds(
    accepted: Bools,
    p: Floats,
    good: Floats,
    drawn: Bools,
    rounds: Rows,
    error: float,
    *,
    changes: bool,
) -> Ends:
    """Return bounds of the share of good applicants that the logged policy accepts; see the module.

    Parameters
    ----------
    accepted, p
        Who was accepted, and with which probability.
    good
        1 for a good outcome, 0 for a bad one, NaN if it is not known.
    drawn
        Who was a candidate of a draw of fixed size.
    rounds
        The position of each round's first applicant, and the end.
    error
        The probability that one of the bounds is ever wrong.
    changes
        Whether the policy may differ between rounds.
    """
    hit = np.where(accepted, np.nan_to_num(good), 0.0)  # A·good
    unknown = accepted & np.isnan(good)
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
                bets.append(Bets.of(u, v, rounds, worst, per_round=True, changes=changes))
            u_each, v_each = np.where(drawn, settled, u), np.where(drawn, settled, v)
            bets.append(Bets.of(u_each, v_each, rounds, (most, most)))
    return (
        1.0 - upper_bound(below, error / 2, changes=changes),
        upper_bound(above, error / 2, changes=changes),
    )


def _finding(rows: Sequence[GroupMeasure]) -> GroupFinding | None:
    """Return whether the gap in one measure of an attribute's groups is real or selection."""
    attribute, measure = rows[0].attribute, rows[0].measure
    gap = gap_between(
        attribute,
        measure,
        [row.corrected for row in rows],
        [(row.low, row.high) for row in rows],
        ratios=measure != "calibration",
    )
    if gap is None:
        return None
    recorded, noise = _recorded_gap([row for row in rows if not math.isnan(row.corrected)])
    answer: Literal["real", "selection", "open"] = "open"
    if gap.difference_low > 0:
        answer = "real"
        bounded = [row for row in rows if not math.isnan(row.low)]
        larger, smaller = max(bounded, key=lambda r: r.low), min(bounded, key=lambda r: r.high)
        said = (
            f"the gap is real, if the assumptions hold: {larger.texts()[2]} for {larger.group}, "
            f"but {smaller.texts()[2]} for {smaller.group}"
        )
    elif math.isnan(gap.difference):
        said = "open, as the log does not identify it for two groups"
    elif math.isnan(gap.difference_low):
        said = f"open: a gap of {_points(gap.difference)} without intervals"
    elif measure in _OF_ALL and recorded > max(noise, gap.difference):
        answer = "selection"
        said = (
            f"corrected for selection, the recorded gap of {_points(recorded)} shrinks to "
            f"{_points(gap.difference)}, and the intervals overlap; so selection explains at least "
            f"part of it, and the log does not show that the rest is real"
        )
    else:
        same = math.isnan(recorded) or recorded == gap.difference
        beside = "" if same else f" ({_points(recorded)} as recorded)"
        said = (
            f"open: a gap of {_points(gap.difference)}{beside}, and the intervals overlap, so the "
            f"log does not show that it is real"
        )
    sentence = f"{attribute}, {_IN_WORDS[measure]}: {said}."
    return GroupFinding(attribute, measure, recorded, gap, answer, sentence)


def _recorded_gap(rows: Sequence[GroupMeasure]) -> Ends:
    """Return the gap between recorded values, and the largest one that may be chance."""
    if len(rows) < 2 or any(math.isnan(row.recorded) for row in rows):
        return _NONE
    largest, smallest = (end(rows, key=lambda row: row.recorded) for end in (max, min))
    # A share of n outcomes has a standard error of 1/(2√n) at most.
    noise = _CHANCE / 2 * math.sqrt(1 / largest.n_outcomes + 1 / smallest.n_outcomes)
    return largest.recorded - smallest.recorded, noise


def _points(difference: float) -> str:
    """Write a difference of shares."""
    return percent(difference).replace("%", "points")
