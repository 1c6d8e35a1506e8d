"""What recorded scores say: whether they are calibrated, and how they move from round to round."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairchance.audit.evaluate import Measured, evaluate
from fairchance.audit.log import DecisionLog
from fairchance.audit.rates import WHOLE, rate_of
from fairchance.errors import InputError

__all__ = ["CHANGED", "CalibrationBin", "RoundDrift", "calibration", "drift"]

Floats = NDArray[np.float64]
CHANGED = 0.25  # a stability index from which on scores are called changed
_EXPECTED = 0.5  # added to each count of a stability index, so that no share is 0
_PARTS = 10  # of the scores of a ranking's first round


@dataclass(frozen=True)
class CalibrationBin:
    """Applicants with scores in a range.

    Attributes
    ----------
    least, most
        The range of recorded scores.
    score
        Their mean.
    n_people, n_accepted, n_outcomes
        Number of applicants, of those accepted, and of known outcomes.
    recorded
        Share of good among known outcomes, as it is recorded; NaN if none is known.
    good
        Share of good among all of them, corrected by propensities; NaN if the log does not
        identify it.
    low, high
        An interval of it that is right at all times, and for all ranges together; NaN if there is
        none.
    """

    least: float
    most: float
    score: float
    n_people: int
    n_accepted: int
    n_outcomes: int
    recorded: float
    good: float
    low: float
    high: float


@dataclass(frozen=True)
class RoundDrift:
    """One round.

    Attributes
    ----------
    round
        Its number.
    n_people, n_accepted, n_outcomes
        Number of applicants, of those accepted, and of known outcomes.
    score
        Mean recorded score.
    accepted
        Share of applicants accepted.
    bad, bad_low, bad_high
        Share of bad among known outcomes, with its interval at all times; NaN, 0 and 1 if none is
        known.
    since
        The first round with the same ranking.
    stability
        Population stability index Σ(q − p)·log(q/p) of scores: q are shares of this round, p those
        of round ``since``, in tenths of that round. Below 0.1 is usually called stable, above 0.25
        changed. NaN if it is that round.
    """

    round: int
    n_people: int
    n_accepted: int
    n_outcomes: int
    score: float
    accepted: float
    bad: float
    bad_low: float
    bad_high: float
    since: int
    stability: float


def calibration(
    log: DecisionLog, *, bins: int = 10, confidence: float = 0.95
) -> tuple[CalibrationBin, ...]:
    """Compare recorded scores with the share of good outcomes, corrected by propensities.

    Rounds from the first one with pending outcomes on are left out. Among the accepted of a range
    of scores, those with a small probability count more, so the share is that of all applicants
    with such a score who would take the loan. The scores of the first round fix the ranges: if
    later rounds moved them, an interval would be about another range each time, and would not be
    right at all times.

    Parameters
    ----------
    log
        A log with scores.
    bins
        Number of ranges, of about equal numbers of applicants of the first round.
    confidence
        Probability that all intervals are right at all times.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(4000)
    >>> propensity = np.where(score > 0.6, 1.0, 0.2)
    >>> accepted = rng.random(4000) < propensity
    >>> outcome = np.where(accepted, rng.random(4000) < score, np.nan)
    >>> log = DecisionLog(accepted, propensity, outcome, score=score)
    >>> [(round(part.score, 2), round(part.good, 2)) for part in calibration(log, bins=4)]
    [(0.12, 0.1), (0.37, 0.35), (0.62, 0.59), (0.87, 0.86)]
    """
    scores = _scores(log)
    used = (log.round <= log.last_complete_round) & ~np.isnan(scores)
    if not used.any():
        raise InputError(
            "no round has all of its outcomes, so scores cannot be compared with them; wait for "
            "the outcomes of the first round."
        )
    first = scores[used & (log.round == log.round[used].min())]
    # Each range begins with a score of the first round, so that none is empty.
    begins = np.unique(np.quantile(first, np.arange(1, bins) / bins, method="higher"))
    begins = begins[begins > first.min()]
    part = np.searchsorted(begins, scores, side="right")
    inside = [used & (part == at) for at in range(begins.size + 1)]
    policies = {at: rows.astype(np.float64) for at, rows in enumerate(inside)}
    found = evaluate(_decisions_of(log), policies, confidence=confidence)
    return tuple(
        _bin(log, scores, rows, found[at].of("false_discovery_rate"))
        for at, rows in enumerate(inside)
    )


def _bin(
    log: DecisionLog, scores: Floats, rows: NDArray[np.bool_], bad: Measured
) -> CalibrationBin:
    known = log.outcome[rows & log.known]
    return CalibrationBin(
        float(scores[rows].min()),
        float(scores[rows].max()),
        float(scores[rows].mean()),
        int(rows.sum()),
        int(log.accepted[rows].sum()),
        int(known.size),
        float(known.mean()) if known.size else math.nan,
        1.0 - bad.value,
        1.0 - bad.high,
        1.0 - bad.low,
    )


def drift(log: DecisionLog) -> tuple[RoundDrift, ...]:
    """Return scores, acceptances and mistakes by round, and how stable scores are.

    Scores of different rankings cannot be compared: they differ although applicants do not.

    Parameters
    ----------
    log
        A log with scores.

    Examples
    --------
    >>> log = DecisionLog(
    ...     [True, True, True, False], [1, 1, 1, 0], [1, 0, 1, None], score=[0.9, 0.8, 0.9, 0.1],
    ...     round=[1, 1, 2, 2],
    ... )
    >>> [(row.round, row.accepted, row.bad) for row in drift(log)]
    [(1, 1.0, 0.5), (2, 0.5, 0.0)]
    """
    scores = _scores(log)
    firsts: dict[int, int] = {}  # the first round of each ranking
    rows = []
    for number in np.unique(log.round).tolist():
        here = log.round == number
        since = firsts.setdefault(0 if log.ranking is None else int(log.ranking[here][0]), number)
        known = log.outcome[here & log.known]
        mistakes = rate_of(int((known == 0).sum()), known.size, WHOLE)
        own = scores[here & ~np.isnan(scores)]
        rows.append(
            RoundDrift(
                number,
                int(here.sum()),
                int(log.accepted[here].sum()),
                int(known.size),
                float(own.mean()) if own.size else math.nan,
                float(log.accepted[here].mean()),
                *(mistakes.value, mistakes.low, mistakes.high),
                since,
                _stability(scores[(log.round == since) & ~np.isnan(scores)], own)
                if since < number
                else math.nan,
            )
        )
    return tuple(rows)


def _stability(first: Floats, later: Floats) -> float:
    """Return the population stability index of scores against those of a first round."""
    ends = np.unique(np.quantile(first, np.arange(1, _PARTS) / _PARTS)) if first.size else first
    before, now = _shares(first, ends), _shares(later, ends)
    return float(((now - before) * np.log(now / before)).sum())


def _shares(scores: Floats, ends: Floats) -> Floats:
    counts = np.bincount(np.searchsorted(ends, scores, side="right"), minlength=ends.size + 1)
    smoothed = counts + _EXPECTED
    return np.asarray(smoothed / smoothed.sum())


def _scores(log: DecisionLog) -> Floats:
    if log.score is None:
        raise InputError("the log has no scores; name the column that holds them.")
    return log.score


def _decisions_of(log: DecisionLog) -> DecisionLog:
    """Return a log without features, scores and groups, on which no model is fitted."""
    bare = log.without_groups()
    vars(bare).pop("table", None)
    bare.X = bare.score = None
    return bare
