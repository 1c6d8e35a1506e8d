"""The paper's claims about its figures, each as a test over repetitions.

A statistic gives one number per repetition, compared within the same people where two methods or
bounds are compared; it is positive if the claim is right. Only repetitions are independent, so the
two-sided test over them is that of other differences (``paired_tests``). Verdicts are at 5 % for
all rows of a claim together (Holm 1979).

Round 1 follows f_0 and teaches nothing about learning, so statistics begin with round 2. The
schedule of α_exploit alone raises true positive rates: growth is therefore also compared with that
of ``no-exploration``, which has the same schedule.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from fairchance_lab.experiments import tables
from fairchance_lab.experiments.methods import ABLATIONS, VARIANTS
from fairchance_lab.experiments.paired_tests import FEW, LEVEL, holm, paired_p, smallest_p
from fairchance_lab.experiments.report_table import proportion, thousands
from fairchance_lab.experiments.results import Results
from fairchance_lab.experiments.tables import Values, share

__all__ = ["NOTE", "Examined", "examine", "short"]

NOTE = (
    "Effect: mean over repetitions of one number per repetition, positive if the claim is right "
    "(a rate, people, or revenue in thousands), with a 95 % interval unless it was chosen as the "
    "worst of several. Verdicts are at 5 % for the rows of a claim together (Student's t, or sign "
    f"flips with fewer than {FEW} repetitions; Holm). Methods without exploration are controls: "
    "what grows there too is not due to exploration."
)
_THREE = proportion(3)
# Fair variants and what they are compared with: plain, and the same cuts without parity.
_FAIR = (
    ("exploit-fair", "plain"),
    ("exploit-fair", "per-group-cuts"),
    ("explore-fair", "plain"),
    ("both-fair", "plain"),
    ("both-fair", "per-group-cuts"),
)
# The variant that has the smallest difference between groups, for each rate.
_CLOSEST = (("selection", "exploit-fair"), ("true_positive", "both-fair"))
# The methods that the paper compares with, as it ran them.
_OTHERS = ("fair-clf", "kilbertus-icml", "yang-published", "fairall-published")
_STAGNATE = _OTHERS[:2]


@dataclass(frozen=True)
class Examined:
    """A claim with its effect, which is positive if the claim is right.

    Attributes
    ----------
    claim
        What the paper says.
    measured
        What was compared.
    effect, effect_low, effect_high
        Mean over repetitions with its 95 % interval; NaN if it was chosen as the worst of several.
    p
        Two-sided p-value of no effect.
    repetitions
        Number of repetitions it rests on.
    adjusted
        The p-value, corrected for all rows of the claim; NaN with too few repetitions to see it.
    """

    claim: str
    measured: str
    effect: float
    effect_low: float
    effect_high: float
    p: float
    repetitions: int
    adjusted: float = float("nan")

    @property
    def verdict(self) -> str:
        """``"holds"``, ``"opposite"``, ``"not seen"`` or ``"too few repetitions"``."""
        if not np.isfinite(self.adjusted):
            return "too few repetitions"
        if self.adjusted > LEVEL:
            return "not seen"
        return "holds" if self.effect > 0 else "opposite"


def short(value: float) -> str:
    """Write an effect with three decimals, or one from 1 on.

    Examples
    --------
    >>> short(-0.0123), short(142.94)
    ('−.012', '142.9')
    """
    return _THREE(value) if abs(value) < 1 else thousands(value)


def examine(results: Results) -> list[Examined]:
    """Examine the claims that the methods and bounds of a run allow.

    The disadvantaged group is the one that the experiment names, or the least served one. With
    switch A9 repetitions are not independent, so nothing can be tested.
    """
    if "A9" in results.about["experiment"]["switches"]:
        return []
    at, group = results.main, tables.focus(results)
    rows = [
        *_growth(results, at, group),
        *_early_and_late(results, at, group),
        *_collection(results, at, group),
        *_closest(results, at),
        *_revenue(results, at),
        *_mistakes(results, at),
        *_variance(results),
    ]
    families: dict[str, list[Examined]] = {}
    for row in rows:
        families.setdefault(row.claim, []).append(row)
    return [
        replace(row, adjusted=float(p) if _can_be_seen(row, len(family)) else float("nan"))
        for family in families.values()
        for row, p in zip(family, holm([row.p for row in family]), strict=True)
    ]


def _can_be_seen(row: Examined, n_rows: int) -> bool:
    """Return whether any effect would be significant beside so many rows."""
    return row.repetitions >= FEW or n_rows * smallest_p(row.repetitions) <= LEVEL


def _tested(claim: str, measured: str, values: Values) -> Examined:
    """Test whether values of repetitions have the mean 0."""
    values = values[np.isfinite(values)]
    mean = tables.over_repetitions(values, axis=0)
    effect, low, high = (float(value) for value in (mean.mean, mean.low, mean.high))
    return Examined(claim, measured, effect, low, high, paired_p(values), values.size)


def _count(results: Results, name: str, method: str, at: int) -> Values:
    """Return a count with axes (repetition, round, group), NaN where the method failed."""
    m = results.methods.index(method)
    ran = results.count("n_people")[at, m].sum(axis=(1, 2), keepdims=True) > 0
    return np.where(ran, results.count(name)[at, m].astype(float), np.nan)


def _by_method(results: Results, metric: str, at: int) -> dict[str, Values]:
    return dict(zip(results.methods, tables.per_repetition(results, metric)[at], strict=True))


def _two_rates(results: Results, method: str, at: int, group: str) -> tuple[Values, Values]:
    """Return the TPR of a group in the first quarter of rounds from round 2 on, and the last."""
    g, n = results.groups.index(group), tables.late_rounds(results)
    accepted, good = (
        _count(results, name, method, at)[..., g] for name in ("n_accepted_good", "n_good")
    )
    early, late = (
        np.asarray(share(accepted[rounds].sum(1), good[rounds].sum(1)))
        for rounds in (np.s_[:, 1 : n + 1], np.s_[:, -n:])
    )
    return early, late


def _has_quarters(results: Results) -> bool:
    return results.shape[3] >= 2 * tables.late_rounds(results) + 1


def _growth(results: Results, at: int, group: str) -> Iterator[Examined]:
    """TPR of the group: its last quarter of rounds minus the first quarter from round 2 on."""
    n = tables.late_rounds(results)
    if not _has_quarters(results):
        return

    def grown(method: str) -> Values:
        early, late = _two_rates(results, method, at, group)
        return late - early

    for method in (*VARIANTS, *ABLATIONS):
        if method in results.methods:
            without = " without exploration" * (method in ABLATIONS)
            claim = f"TPR of {group} grows{without} from rounds 2 to {n + 1} to the last {n}"
            yield _tested(claim, method, grown(method))
    for method in ("plain", "explore-fair"):
        if {method, "no-exploration"} <= set(results.methods):
            yield _tested(
                f"TPR of {group} grows because of exploration",
                f"{method} against no-exploration",
                grown(method) - grown("no-exploration"),
            )
    for other in _STAGNATE:
        if {"plain", other} <= set(results.methods):
            claim = f"TPR of {group} stagnates with other methods"
            yield _tested(claim, f"growth, plain against {other}", grown("plain") - grown(other))


def _early_and_late(results: Results, at: int, group: str) -> Iterator[Examined]:
    """TPR of the group under fair exploitation, against that of plain."""
    for fair in ("exploit-fair", "both-fair"):
        if {fair, "plain"} <= set(results.methods) and _has_quarters(results):
            (early, late), (plain_early, plain_late) = (
                _two_rates(results, method, at, group) for method in (fair, "plain")
            )
            claim = f"fairness raises the TPR of {group} early, and is overtaken late"
            yield _tested(claim, f"early, {fair} against plain", early - plain_early)
            yield _tested(claim, f"late, plain against {fair}", plain_late - late)


def _closest(results: Results, at: int) -> Iterator[Examined]:
    """Differences between groups, as means over rounds: of other variants, minus the smallest."""
    for rate, least in _CLOSEST:
        others = [name for name in VARIANTS if name != least and name in results.methods]
        if least not in results.methods:
            continue
        gaps = _by_method(results, f"{rate}_rate_difference", at)
        for other in others:
            claim = f"{least} has the smallest difference of {rate.replace('_', ' ')} rates"
            yield _tested(claim, f"{other} against {least}", gaps[other] - gaps[least])


def _collection(results: Results, at: int, group: str) -> Iterator[Examined]:
    """People of the group whose outcomes are known by half of the rounds."""
    g, half = results.groups.index(group), results.shape[3] // 2
    pairs = [("accepted", *pair) for pair in _FAIR]
    pairs += [("explored", fair, "plain") for fair in ("explore-fair", "both-fair")]
    for name, fair, other in pairs:
        if {fair, other} <= set(results.methods):
            more, fewer = (
                _count(results, f"n_{name}", method, at)[:, 1:half, g].sum(1)
                for method in (fair, other)
            )
            yield _tested(
                f"fairness collects more outcomes of {group} in rounds 2 to {half}",
                f"{name}, {fair} against {other}",
                np.asarray(more - fewer),
            )


def _revenue(results: Results, at: int) -> Iterator[Examined]:
    values = _by_method(results, "revenue", at)
    for fair, other in _FAIR:
        if {fair, other} <= set(values):
            against = f"{fair} against {other}"
            yield _tested("fairness raises revenue", against, values[fair] - values[other])
    for variant in (name for name in VARIANTS if name in values):
        if "opt-offline" in values:
            below = values["opt-offline"] - values[variant]
            yield _tested("revenue is below that of OPT-OFFLINE", variant, below)
        for other in (name for name in _OTHERS if name in values):
            against = f"{variant} against {other}"
            more = values[variant] - values[other]
            yield _tested("revenue is above that of other methods", against, more)


def _mistakes(results: Results, at: int) -> Iterator[Examined]:
    """α minus the FDR: of round 1, of all later rounds together, and of the worst of these."""
    for method in VARIANTS:
        if method in results.methods:
            accepted, good = (
                _count(results, name, method, at).sum(-1)
                for name in ("n_accepted", "n_accepted_good")
            )
            bad, alpha = accepted - good, results.alphas[at]
            first, *later = (alpha - share(bad, accepted)).T
            yield _tested("FDR is below α in round 1", method, first)
            below = alpha - share(bad[:, 1:].sum(1), accepted[:, 1:].sum(1))
            yield _tested("FDR is below α after round 1", method, below)
            claim = "FDR is below α in every round after the first"
            yield _worst(
                [
                    _tested(claim, f"{method}, worst of {len(later)} rounds: round {t}", values)
                    for t, values in enumerate(later, 2)
                ]
            )


def _worst(rounds: list[Examined]) -> Examined:
    """Return the round that speaks most against the claim, tested for all rounds together.

    If all rounds speak for it, the claim is as sure as the least sure of them. A round that speaks
    against it was chosen among all, so its p-value is multiplied by their number. Its interval
    would be that of a round not chosen, so it has none.
    """
    rounds = [replace(row, effect_low=np.nan, effect_high=np.nan) for row in rounds]
    known = [row for row in rounds if row.repetitions > 1] or rounds
    against = [row for row in known if row.effect < 0]
    if against and np.isfinite(against[0].p):
        worst = min(against, key=lambda row: row.p)
        return replace(worst, p=min(1.0, worst.p * len(known)))
    return max(known, key=lambda row: row.p)


def _variance(results: Results) -> Iterator[Examined]:
    """Revenue at the largest α against the smallest, by the variant that differs in nothing else.

    Over rounds, the standard deviation is from differences of successive rounds, which a rising
    revenue does not inflate. More people accepted vary more in sum; the row per accepted person
    divides by the square root of their number. Over repetitions, it is the distance from their
    median (Brown and Forsythe 1974), which a few outliers do not decide.
    """
    low, high = int(np.argmin(results.alphas)), int(np.argmax(results.alphas))
    method = next((name for name in VARIANTS if name in results.methods), None)
    if low == high or method is None or results.shape[3] < 3:
        return
    m = results.methods.index(method)
    revenue = tables.per_round(results, "revenue")[:, m, :, 1:]
    spread = np.sqrt((np.diff(revenue, axis=-1) ** 2).mean(-1) / 2)
    accepted = results.count("n_accepted")[:, m, :, 1:].sum(-1).mean(-1)
    each = share(spread, np.sqrt(accepted))
    claim = f"revenue varies more at α = {results.alphas[high]:g} than at {results.alphas[low]:g}"
    over_rounds = f"{method}, sd from round to round"
    yield _tested(claim, over_rounds, spread[high] - spread[low])
    over_rounds += ", divided by √accepted"
    yield _tested(claim, over_rounds, each[high] - each[low])
    means = tables.per_repetition(results, "revenue")[:, m]
    apart = np.abs(means - np.nanmedian(means, axis=1, keepdims=True))
    over_runs = f"{method}, distance of repetitions from their median"
    yield _tested(claim, over_runs, apart[high] - apart[low])
