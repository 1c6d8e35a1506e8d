"""Rates with intervals that hold at all times, and the only place that says what they mean.

A record may be read at any time, so its intervals must hold at all times at once. Let S of n
outcomes be bad, and p_i the probability that the i-th was bad given what came before. For any λ,

    exp(λS) / Π (1 + p_i·(e^λ − 1))

is a martingale that starts at 1 as outcomes arrive, and so is its mean over several λ. The
geometric mean of the factors is at most the arithmetic one, so

    exp(λS) / (1 + p·(e^λ − 1))^n,   p the mean of the p_i,

is never larger. By Ville's inequality its mean over λ ever reaches 1/error with a probability of at
most ``error``, and the interval (``anytime_interval``) is made of the p for which it has not.
Policies may change, and so may the p_i; the interval is about their mean so far.

**Together.** A question is asked of all applicants and of groups, and groups appear as time goes
by. All applicants have half of the question's error (``WHOLE``), and attributes have equal parts of
the other half; if there are several, so has the combination of all. The groups of an attribute
share its part by the order in which they appeared (``group_errors``): the j-th has 6/(π²j²) of it,
so that the share of a group never changes, and all sum to at most 1.

**Stretches of rounds.** The rate of all rounds hides that the last ones are worse. So each round
begins a stretch that ends with the last (``last_above``); the j-th has 6/(π²j²) of the error of all
stretches. Within a stretch, Ville's inequality holds for whatever end.

**Cases that are not known yet** can change a rate. ``Rate.least`` and ``Rate.most`` are the ends of
the interval if all of them turn out one way, and if all turn out the other; ``judge`` says that a
bound is kept, or broken, only if these ends agree.

**Erased applicants** may be of any group, and who is erased may depend on the outcome. The wealth
above grows with each case that happened and shrinks with each one that did not, so each end counts
those erased cases that move it outwards.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import brentq

__all__ = ["ENOUGH", "ERROR", "WHOLE", "Comparison", "Rate", "anytime_interval", "compare_rates"]
__all__ += ["Judgement", "group_error", "group_errors", "judge", "judge_ends", "last_above"]
__all__ += ["rate_of"]

Judgement = Literal["unknown", "broken", "kept", "open"]

ERROR = 0.05  # of all intervals of one question, at all times together
WHOLE = ERROR / 2  # of the interval of all applicants; groups have the rest
FOUR_FIFTHS = 0.8  # of the highest rate: less is a common sign of disparate impact
ENOUGH = 20  # cases before an estimate alone says something
_SHIFTS = np.geomspace(0.05, 3.0, 24)  # λ, small ones for many outcomes
_LEAST_SHARE = 0.02  # of all applicants, for a group that others are compared with


def group_error(error: float, order: int, n_attributes: int = 1) -> float:
    """Return the error of a group's interval.

    ``order`` is the group's place, from 0, in the order in which groups of its attribute appeared;
    ``n_attributes`` does not count the combination of several.

    Examples
    --------
    >>> sum(group_error(0.05, order) for order in range(100_000)) < 0.05 / 2
    True
    """
    n_parts = n_attributes + (n_attributes > 1)
    return error / 2 / n_parts * _part(order)


def _part(order: int) -> float:
    """Return the part of an error that the one in this place, from 0, of an endless list has."""
    return 6 / (math.pi * (order + 1)) ** 2


def group_errors(
    first: Mapping[str, int], n_attributes: int = 1, error: float = ERROR
) -> dict[str, float]:
    """Return the errors of the groups of an attribute.

    ``first`` is the round in which each group appeared; of groups of the same round, names decide.

    Examples
    --------
    >>> errors = group_errors({"a": 2, "b": 1, "c": 1})
    >>> sorted(errors, key=errors.get, reverse=True)
    ['b', 'c', 'a']
    """
    ordered = sorted(first, key=lambda name: (first[name], name))
    return {name: group_error(error, at, n_attributes) for at, name in enumerate(ordered)}


def anytime_interval(count: int, n: int, error: float) -> tuple[float, float]:
    """Return an interval of a rate that is right at all times at once.

    It is ever wrong with probability at most ``error``, however often it is looked at.

    Examples
    --------
    >>> [round(end, 3) for end in anytime_interval(60, 400, 0.05)]
    [0.098, 0.214]
    """
    return _lower_end(count, n, error / 2), 1.0 - _lower_end(n - count, n, error / 2)


def _lower_end(count: int, n: int, error: float) -> float:
    if _excess(count, n, 0.0, error) <= 0:
        return 0.0
    return float(brentq(lambda rate: _excess(count, n, rate, error), 0.0, count / n))


def _excess(count: int, n: int, rate: float, error: float) -> float:
    """Return the log wealth of the bets against a rate, less what excludes it."""
    log_wealth = np.logaddexp.reduce(_SHIFTS * count - n * np.log1p(rate * np.expm1(_SHIFTS)))
    return float(log_wealth - math.log(_SHIFTS.size / error))


@dataclass(frozen=True)
class Rate:
    """A rate of known cases, with its interval.

    Attributes
    ----------
    count, n, missing
        How often it happened, in how many known cases, and how many are not known yet.
    value, low, high
        The rate of known cases, and its interval at all times; NaN, 0 and 1 if none is known.
    least, most
        Ends of the interval of all cases, if no missing case counts, and if each does.
    """

    count: int
    n: int
    missing: int
    value: float
    low: float
    high: float
    least: float
    most: float

    @property
    def early(self) -> bool:
        """Whether fewer than half of the cases are known, which may be those that come first."""
        return self.n < self.missing


def rate_of(
    count: int,
    n: int,
    error: float = ERROR,
    *,
    missing: int = 0,
    erased: tuple[int, int] = (0, 0),
) -> Rate:
    """Return a rate; each interval is ever wrong with probability ``error``.

    ``erased`` are cases that may belong to it: how often it happened in them, and how often not.

    Examples
    --------
    >>> rate = rate_of(5, 100, missing=50)
    >>> [round(end, 3) for end in (rate.low, rate.high, rate.least, rate.most)]
    [0.007, 0.15, 0.005, 0.498]
    """
    if not n + missing:
        return Rate(0, 0, 0, math.nan, 0.0, 1.0, 0.0, 1.0)
    (low, high), (least, most) = (
        (
            _lower_end(count, all_cases + erased[1], error / 2),
            1.0 - _lower_end(n - count, all_cases + erased[0], error / 2),
        )
        for all_cases in (n, n + missing)
    )
    if not n:
        return Rate(0, 0, missing, math.nan, 0.0, 1.0, least, most)
    return Rate(count, n, missing, count / n, low, high, least, most)


def judge(rate: Rate, bound: float) -> Judgement:
    """Say whether a rate is at most a bound, whatever the missing cases turn out to be.

    Examples
    --------
    >>> judge(rate_of(5, 400), 0.15), judge(rate_of(5, 400, missing=80), 0.15)
    ('kept', 'open')
    """
    return judge_ends(rate.least, rate.most, bound) if rate.n else "unknown"


def judge_ends(low: float, high: float, bound: float) -> Judgement:
    """Say whether all of an interval is at most a bound, or above it."""
    if low > bound:
        return "broken"
    return "kept" if high <= bound else "open"


def light_of(rate: Rate, bound: float) -> Literal["red", "amber", "green"]:
    """Return the light of a rate that should be at most a bound.

    Red if it is broken, amber if it looks broken, or if no outcome is known though some should be,
    and green otherwise. While most cases are missing nothing looks broken, since bad outcomes come
    before good ones.

    Examples
    --------
    >>> light_of(rate_of(60, 100), 0.15), light_of(rate_of(23, 100, missing=90), 0.15)
    ('red', 'amber')
    >>> light_of(rate_of(2, 5), 0.15), light_of(rate_of(6, 6, missing=450), 0.15)
    ('green', 'green')
    >>> light_of(rate_of(0, 0, missing=50), 0.15)
    'amber'
    """
    judged = judge(rate, bound)
    if judged == "broken":
        return "red"
    looks_broken = rate.low > bound or (rate.value > bound and rate.n >= ENOUGH)
    looks_broken &= not rate.early
    unknown = judged == "unknown" and rate.missing >= ENOUGH
    return "amber" if looks_broken or unknown else "green"


def last_above(rounds: Sequence[tuple[int, int, int]], bound: float) -> tuple[range, Rate] | None:
    """Return the stretch of the last rounds that is most clearly above a bound, with its rate.

    A stretch counts if its interval by itself, as tables have it of a round, is above the bound.
    The rate that is returned has an interval that is right for all stretches together.

    Parameters
    ----------
    rounds
        Of each round how often it happened, in how many known cases, and how many are missing. The
        last rounds are left out while fewer than half of their cases are known, of which bad ones
        may come early.
    bound
        The bound.

    Examples
    --------
    >>> steady, worse, early = [(20, 200, 0)] * 8, [(60, 200, 0), (70, 200, 40)], [(4, 4, 196)]
    >>> last_above([*steady, *early], 0.2)
    >>> stretch, rate = last_above([*steady, *worse, *early], 0.2)
    >>> stretch, rate.n, round(rate.low, 3)
    (range(8, 10), 400, 0.224)
    """
    end = len(rounds)
    while end and rounds[end - 1][1] < rounds[end - 1][2]:
        end -= 1
    found, clearest = None, 0.0
    sums = np.cumsum(np.reshape(rounds[:end], (-1, 3))[::-1], axis=0)[::-1]
    for at, (count, n, missing) in enumerate(sums.tolist()):
        if (excess := _excess(count, n, bound, WHOLE / 2)) > clearest:
            found, clearest = (at, count, n, missing), excess
    if found is None:
        return None
    at, count, n, missing = found
    return range(at, end), rate_of(count, n, ERROR * _part(at), missing=missing)


@dataclass(frozen=True)
class Comparison:
    """The rate of a group over the highest rate of a large group, the reference.

    Attributes
    ----------
    at, reference
        Places of the group and of the reference.
    ratio, low, high
        The ratio, and an interval for the ratio to the highest of all true rates.
    n
        Cases of the group.
    """

    at: int
    reference: int
    ratio: float
    low: float
    high: float
    n: int

    @property
    def unequal(self) -> bool:
        """Whether the interval excludes equality; only then are the groups treated unequally."""
        return self.high < 1.0

    @property
    def light(self) -> str:
        """Red if the whole interval is below four fifths, amber if the ratio is, else green."""
        if self.high < FOUR_FIFTHS:
            return "red"
        return "amber" if self.ratio < FOUR_FIFTHS and self.n >= ENOUGH else "green"


def compare_rates(rates: Sequence[Rate]) -> list[Comparison]:
    """Compare the rates of groups with the highest among groups that are large enough.

    Examples
    --------
    >>> [found] = compare_rates([rate_of(300, 500), rate_of(200, 500)])
    >>> found.at, round(found.ratio, 2), found.unequal
    (1, 0.67, True)
    """
    enough = max(ENOUGH, _LEAST_SHARE * sum(rate.n for rate in rates))
    large = [at for at, rate in enumerate(rates) if rate.n >= enough]
    top = max(large, key=lambda at: rates[at].value, default=None)
    if top is None or not rates[top].value:
        return []
    most_low, most_high = max(rates[at].low for at in large), max(rates[at].high for at in large)
    return [
        Comparison(
            at,
            top,
            rate.value / rates[top].value,
            rate.low / most_high,
            rate.high / most_low if most_low else math.inf,
            rate.n,
        )
        for at, rate in enumerate(rates)
        if at != top and rate.n
    ]
