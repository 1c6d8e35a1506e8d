"""The verdict on results: which method was best, what it earned, and whether it kept α."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairchance.words import amount, counted, percent
from fairchance_lab.experiments import tables
from fairchance_lab.experiments.certificates import (
    CertifiedRuns,
    certified_methods,
    records_of,
    summarise_certificates,
)
from fairchance_lab.experiments.comparison import CEILING
from fairchance_lab.experiments.methods import REFERENCES
from fairchance_lab.experiments.paired_tests import FEW, detectable
from fairchance_lab.experiments.results import Results
from fairchance_lab.experiments.tables import Estimate

__all__ = [
    "RULE",
    "GroupStanding",
    "Standing",
    "Verdict",
    "find_verdict",
    "money",
    "rate",
    "with_interval",
]

RULE = (
    "Best is the method that earned most in the last quarter of the rounds, of those that know "
    "only what can be observed and whose mistakes are not measurably above α. Worst is the method "
    "with most mistakes of those measurably above α or, if there are none, that earned least."
)
_ROUNDING = 1e-9


def rate(value: Any) -> str:
    """Write a share as a percentage with one decimal.

    Examples
    --------
    >>> rate(0.14159), rate(0.15)
    ('14.2 %', '15 %')
    """
    return percent(round(float(value), 3))


def money(thousands: Any) -> str:
    """Write thousands as a sum of money with three digits that count.

    Examples
    --------
    >>> money(87.4567), money(-0.0123)
    ('87,500', '−12.3')
    """
    return amount(float(f"{1000 * float(thousands):.3g}"))


def with_interval(estimate: Estimate, write: Callable[[Any], str] = rate) -> str:
    """Write an estimate with its 95 % interval, if it has one."""
    ends = f" (95 % interval {write(estimate.low)} to {write(estimate.high)})"
    return f"{write(estimate.mean)}{ends if np.isfinite(estimate.half_width) else ''}"


@dataclass(frozen=True)
class GroupStanding:
    """What the best method did for a group: mistakes and acceptance, pooled over all rounds."""

    group: str
    mistakes: Estimate
    accepted: Estimate
    light: str


@dataclass(frozen=True)
class Standing:
    """What a method earned, and its mistakes.

    Attributes
    ----------
    method, label
        Its name, and its name for readers.
    earned, share
        Revenue in the last quarter of the rounds: in thousands a round, and as a share of the
        yardstick's (NaN without a yardstick).
    mistakes
        FDR pooled over all rounds; NaN if no one was accepted.
    light
        ``"red"`` if the interval of mistakes is wholly above α, ``"green"`` if it is wholly below;
        ``"amber"`` if it contains α, or repetitions are too few.
    explored
        Whether anyone was explored.
    certificate, missing
        How soon and how long it was certified (None if it gives no certificates), and about how
        many more outcomes the first repetition needed in its last round (0: it was certified).
    """

    method: str
    label: str
    earned: Estimate
    share: Estimate
    mistakes: Estimate
    light: str
    explored: bool
    certificate: CertifiedRuns | None
    missing: float


@dataclass(frozen=True)
class Verdict:
    """What a reader must know about results, at the main setting, as numbers and as sentences.

    Attributes
    ----------
    alpha, late_rounds, repetitions
        The bound, the rounds in their last quarter, and the repetitions.
    standings
        All methods that have numbers; the one that earned most comes first.
    yardstick
        The ceiling or, if it did not run, the reference that earned most; None without references.
    best, worst
        By ``RULE``; None if there is no such method.
    runner_up, lead
        The second best, and what the best earned more, in thousands a round.
    idle, gain
        The best of the methods that explored no one, and what the best earned more; None if the
        best is one of them.
    exploring
        What Algorithm 1 earned more with exploration than without; None unless both ran.
    certified
        The best or, if it gives no certificates, the method that earned most of those that do.
    groups
        What the best did for each group.
    detectable
        The smallest lead, in thousands a round, that would be seen with probability .8.
    """

    alpha: float
    late_rounds: int
    repetitions: int
    standings: tuple[Standing, ...]
    yardstick: Standing | None
    best: Standing | None
    worst: Standing | None
    runner_up: Standing | None
    lead: Estimate | None
    idle: Standing | None
    gain: Estimate | None
    exploring: Estimate | None
    certified: Standing | None
    groups: tuple[GroupStanding, ...]
    detectable: float

    @property
    def takeaway(self) -> str:
        """One sentence to remember."""
        best, bound = self.best, f"α = {percent(self.alpha)}"
        if best is None:
            return self.mistakes
        kept = f"kept {bound}"
        if best.light != "green":
            above = best.mistakes.mean > self.alpha
            kept = f"may be above {bound}" if above else f"seems to keep {bound}"
        if best.certificate is not None and best.certificate.never_share < 1:
            kept += ", with a certificate,"
        if self.idle is None or self.gain is None:
            alone = "" if best.explored else ", without exploration"
            return f"Best: “{best.label}” {kept} and earned most{alone}."
        sure = "" if self.gain.side() == "above" else ", though not measurably"
        return (
            f"Best: “{best.label}” {kept} and earned {money(self.gain.mean)} a round more than "
            f"“{self.idle.label}”, the best without exploration{sure}."
        )

    @property
    def exploration(self) -> str:
        """What exploring itself changed; empty if that is not known."""
        if self.exploring is None:
            return ""
        found = {
            "above": "Exploring pays here",
            "around": "Exploring pays nothing measurable here",
            "below": "Exploring does not pay here",
        }.get(self.exploring.side(), "Repetitions are too few to tell whether exploring pays")
        added = with_interval(self.exploring, money)
        return f"{found}: it adds {added} a round to what Algorithm 1 earns."

    @property
    def earned(self) -> str:
        """What the best method earned."""
        if self.best is None:
            return "No method qualifies as the best."
        late = f"a round in the last {counted(self.late_rounds, 'round')}"
        if self.yardstick is None or np.isnan(self.best.share.mean):
            return f"{with_interval(self.best.earned, money)} {late}."
        share = with_interval(self.best.share)
        return f"{money(self.best.earned.mean)} {late}, {share} of “{self.yardstick.label}”."

    @property
    def mistakes(self) -> str:
        """How the mistakes of the best method compare with α."""
        bound = f"α = {percent(self.alpha)}"
        if self.best is None:
            if all(one.light == "red" for one in self.standings if one.method not in REFERENCES):
                return f"No method kept {bound}."
            return f"No method seems to keep {bound}, and repetitions are too few to be sure."
        known = self.best.mistakes
        if np.isnan(known.mean):
            return "No one was accepted, so there were no mistakes."
        side = {
            "above": f"above {bound}",
            "around": f"so close to {bound} that either side is possible",
            "below": f"below {bound}",
        }.get(known.side(self.alpha), f"repetitions are too few to tell it from {bound}")
        return f"{with_interval(known)} of the accepted were bad: {side}."

    @property
    def loser(self) -> str:
        """Why the worst method is the worst; empty without one."""
        if self.worst is None:
            return ""
        if self.worst.light == "red":
            bad, earned = rate(self.worst.mistakes.mean), self.worst.earned.mean
            more = self.best is not None and earned > self.best.earned.mean
            broke = f"earned more, {money(earned)} a round, by breaking α" if more else "broke α"
            return f"Worst: “{self.worst.label}” {broke}, as {bad} of the accepted were bad."
        share, other = self.worst.share.mean, self.yardstick
        part = "" if other is None or np.isnan(share) else f", {rate(share)} of “{other.label}”"
        least = f"earned least, {money(self.worst.earned.mean)} a round"
        return f"Worst: “{self.worst.label}” {least}{part}."

    @property
    def certificate(self) -> str:
        """Since when there were certificates, or what is missing."""
        if self.certified is None:
            return "No method here gives certificates."
        best, said = self.best, self.certificate_of(self.certified)
        if best is None or best is self.certified:
            return said
        return f"“{best.label}” gives no certificates. {said}"

    def certificate_of(self, one: Standing) -> str:
        """Say since when a method had certificates, or what is missing."""
        name, runs = "It" if one is self.best else f"“{one.label}”", one.certificate
        if runs is None:
            return f"{name} gives no certificates."
        reached = round((1 - runs.never_share) * runs.runs)
        if reached:
            some = "" if reached == runs.runs else f" in {reached} of {runs.runs} runs"
            return (
                f"{name} was first certified in round {runs.first_median:g} (median){some}, and "
                f"in {rate(runs.rounds_share)} of all rounds."
            )
        more = "how many more outcomes are needed is unknown"
        if one.missing > 0:
            more = f"about {one.missing:,.0f} more outcomes are needed"
        return f"{name} reached no certificate in {counted(runs.runs, 'run')}; {more}."

    @property
    def in_groups(self) -> str:
        """Whether the best method kept the bound in each group; empty for one group."""
        if len(self.groups) < 2:
            return ""
        broken = [one for one in self.groups if one.light == "red"]
        named = ", ".join(f"{one.group} ({rate(one.mistakes.mean)} bad)" for one in broken)
        return f"It broke α for {named}." if broken else "No group is measurably above α."

    @property
    def by_group(self) -> str:
        """What was bad and what was accepted in the groups at both ends; empty for one group."""
        if len(self.groups) < 2:
            return ""

        def ends(name: str) -> str:
            means = [(float(getattr(one, name).mean), one.group) for one in self.groups]
            known = sorted(pair for pair in means if np.isfinite(pair[0]))
            pairs = dict.fromkeys([*known[-1:], *known[:1]])
            return " and ".join(f"{rate(v)} of {group}" for v, group in pairs) or "unknown"

        broken = any(one.light == "red" for one in self.groups)
        why = " α bounds the mistakes of all groups together." if broken else ""
        return f"Bad among the accepted: {ends('mistakes')}. Accepted: {ends('accepted')}.{why}"

    @property
    def precision(self) -> str:
        """What so many repetitions can show."""
        text = counted(self.repetitions, "repetition")
        if self.lead is None or self.runner_up is None or np.isnan(self.detectable):
            return f"{text}: no difference between methods can be tested."
        few = " are few" if self.repetitions < FEW else ""
        return (
            f"{text}{few}: a lead of {money(self.detectable)} a round would be noticed in 8 of 10 "
            f"such runs; the lead over the second best, “{self.runner_up.label}”, is "
            f"{with_interval(self.lead, money)}."
        )


def find_verdict(results: Results) -> Verdict:
    """Return the verdict on results, at the main setting."""
    at, alpha = results.main, results.alphas[results.main]
    earned = tables.per_repetition(results, "late_revenue")[at]
    late = dict(zip(results.methods, earned, strict=True))
    means = {name: float(tables.mean_known(values, axis=0)) for name, values in late.items()}
    ranked = sorted((n for n in means if np.isfinite(means[n])), key=lambda n: -means[n])
    known = [name for name in ranked if name in REFERENCES]
    yardstick = CEILING if CEILING in known else next(iter(known), "")
    possible = late.get(yardstick, np.full(results.shape[2], np.nan))
    fdr = tables.summary(results, "pooled_fdr").estimate[at]
    standings = {
        name: _standing(results, name, late[name], possible, fdr[results.methods.index(name)])
        for name in ranked
    }
    others = [one for name, one in standings.items() if name not in REFERENCES]
    # Few repetitions cannot show that mistakes are above α, so the estimate itself must not be.
    allowed = [
        one
        for one in others
        if not one.mistakes.mean > alpha + _ROUNDING or one.mistakes.side(alpha) == "around"
    ]
    best, second = [*allowed, None, None][:2]
    idle = next((one for one in allowed if not one.explored), None)
    idle = None if idle is best else idle
    lead, gain, exploring = (
        tables.over_repetitions(late[a] - late[b], axis=0) if a in ranked and b in ranked else None
        for a, b in (
            (best and best.method, second and second.method),
            (best and best.method, idle and idle.method),
            ("plain", "no-exploration"),
        )
    )
    broken = sorted(
        (one for one in others if one.light == "red"), key=lambda one: -float(one.mistakes.mean)
    )
    worst = next(iter([*broken, *others[:0:-1]]), None)
    return Verdict(
        alpha=alpha,
        late_rounds=tables.late_rounds(results),
        repetitions=results.shape[2],
        standings=tuple(standings.values()),
        yardstick=standings.get(yardstick),
        best=best,
        worst=None if worst is best else worst,
        runner_up=second,
        lead=lead,
        idle=idle,
        gain=gain,
        exploring=exploring,
        certified=next((one for one in (*allowed[:1], *others) if one.certificate), None),
        groups=() if best is None else _groups(results, best.method),
        detectable=float("nan") if lead is None else _detectable(lead),
    )


def _standing(
    results: Results,
    method: str,
    late: tables.Values,
    possible: tables.Values,
    mistakes: Estimate,
) -> Standing:
    at, i = results.main, results.methods.index(method)
    gives = method in certified_methods(results)
    last = [records[-1] for records in records_of(results, method, at).values()]
    missing = [0.0 if r["status"] == "certified" else r["more_outcomes"] or np.nan for r in last]
    return Standing(
        method,
        results.label(method),
        earned=tables.over_repetitions(late, axis=0),
        share=tables.ratio_of_means(late, possible),
        mistakes=mistakes,
        light=_light(mistakes, results.alphas[at]),
        explored=bool(results.count("n_explored")[at, i].any()),
        certificate=summarise_certificates(results, method, at) if gives else None,
        missing=float(np.max(missing, initial=0.0)) if last else float("nan"),
    )


def _light(mistakes: Estimate, alpha: float) -> str:
    side = mistakes.side(alpha)
    if np.isnan(mistakes.mean):
        return "green"  # no one was accepted
    return {"above": "red", "below": "green"}.get(side, "amber")


def _groups(results: Results, method: str) -> tuple[GroupStanding, ...]:
    at, i = results.main, results.methods.index(method)
    mistakes, accepted = (
        tables.summary(results, f"pooled_{name}").estimate[at, i]
        for name in ("false_discovery_rate", "selection_rate")
    )
    return tuple(
        GroupStanding(group, mistakes[g], accepted[g], _light(mistakes[g], results.alphas[at]))
        for g, group in enumerate(results.groups)
    )


def _detectable(lead: Estimate) -> float:
    n = int(lead.repetitions)
    return detectable(n, float(lead.standard_error) * n**0.5)
