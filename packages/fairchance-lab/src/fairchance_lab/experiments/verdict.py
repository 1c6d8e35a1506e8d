"""The verdict on results: which method was best, what it earned, and whether it kept α."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairchance_lab.experiments import tables
from fairchance_lab.experiments.certificates import (
    CertifiedRuns,
    certified_methods,
    records_of,
    summarise_certificates,
)
from fairchance_lab.experiments.comparison import CEILING
from fairchance_lab.experiments.methods import REFERENCES, VARIANTS
from fairchance_lab.experiments.paired_tests import detectable
from fairchance_lab.experiments.results import Results
from fairchance_lab.experiments.tables import Estimate

__all__ = ["GroupStanding", "PastPolicy", "Standing", "Verdict", "best_variant", "find_past"]
__all__ += ["find_verdict"]

_ROUNDING = 1e-9


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
    """What a reader must know about results, at the main setting.

    Best is the method that earned most in the last quarter of the rounds, of those that know only
    what can be observed and whose mistakes are not measurably above α. Worst is the method with
    most mistakes of those measurably above α or, if there are none, that earned least.

    Attributes
    ----------
    alpha, late_rounds, repetitions
        The bound, the rounds in their last quarter, and the repetitions.
    standings
        All methods that have numbers; the one that earned most comes first.
    yardstick
        The ceiling or, if it did not run, the reference that earned most; None without references.
    best, worst
        By this rule; None if there is no such method.
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
    missing = [0.0 if r.status == "certified" else r.more_outcomes for r in last]
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


@dataclass(frozen=True)
class PastPolicy:
    """What the past accepted, in the history and in round 1 of a variant that follows it.

    Attributes
    ----------
    follower
        The variant.
    history, first
        The share of applicants that was accepted, and the share of bad among these.
    """

    follower: str
    history: tuple[float, Estimate]
    first: tuple[float, Estimate]


def find_past(results: Results) -> PastPolicy | None:
    """Return what the past accepted, at the main setting; None if that is not known."""
    at = results.main
    follower = best_variant(results, at)
    if follower is None or not results.count("n_past_accepted")[at].any():
        return None
    i = results.methods.index(follower)

    def accepted(*names: str) -> tuple[float, Estimate]:
        people, yes, good = (results.count(name)[at, i, :, 0].sum(axis=-1) for name in names)
        # Repetitions are independent, people within one are not.
        mistakes = tables.over_repetitions(tables.share(yes - good, yes), axis=0)
        return float(yes.sum() / people.sum()), mistakes

    return PastPolicy(
        follower,
        accepted("n_past", "n_past_accepted", "n_past_accepted_good"),
        accepted("n_people", "n_accepted", "n_accepted_good"),
    )


def best_variant(results: Results, at: int) -> str | None:
    """Return the variant of Algorithm 1 with the highest revenue, or None."""
    means = tables.summary(results, "revenue").estimate.mean[at]
    ran = [name for name in VARIANTS if name in results.methods]
    earned = {name: float(means[results.methods.index(name)]) for name in ran}
    known = {name: mean for name, mean in earned.items() if np.isfinite(mean)}
    return max(known, key=known.__getitem__, default=None)
