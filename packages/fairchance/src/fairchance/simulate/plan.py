"""Simulate how long a certificate takes, what it costs and what it earns, before any decision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from fairchance.core.decisions import CurvePoint
from fairchance.core.utility import Revenue
from fairchance.errors import InputError
from fairchance.methods.certified.classifier import CertifiedClassifier
from fairchance.methods.estimator import check_rounds
from fairchance.simulate.feedback import Delay, Feedback, Fixed
from fairchance.simulate.histories import HistoryRule, SelectedOnOutcome
from fairchance.simulate.run import run
from fairchance.simulate.streams import Stream
from fairchance.simulate.worlds import World

__all__ = ["Plan", "PlannedBound", "UntilCertified", "plan", "simulate_plan"]


@dataclass(frozen=True)
class Plan:
    """A planned certified program.

    Attributes
    ----------
    stream
        The applicants to come, from a population or a data set.
    alpha, delta
        The bound on mistakes, and the probability that it is broken.
    gain, loss
        Gain of accepting a good applicant, and loss of accepting a bad one.
    past
        Rule by which the past decided.
    group_as_feature
        Whether the group is appended to the features.
    repetitions, seed
        Number of simulated runs, and their seed.
    delay
        Rounds until outcomes arrive; 0 means after the round itself, before the next.
    maturity, patience
        As ``CertifiedClassifier`` takes them.
    """

    stream: Stream
    alpha: float = 0.15
    delta: float = 0.1
    gain: float = 200.0
    loss: float = 500.0
    past: HistoryRule = SelectedOnOutcome()  # noqa: RUF009 (it is frozen)
    group_as_feature: bool = False
    repetitions: int = 20
    seed: int = 0
    delay: Delay = Fixed()  # noqa: RUF009 (it is frozen)
    maturity: int = 0
    patience: int | None = None


@dataclass(frozen=True)
class PlannedBound:
    """What the rule would earn at a bound at the end of the plan, over simulated runs.

    Attributes
    ----------
    bound
        The bound: α or another.
    share_certified
        Share of runs in which a policy was certified at this bound; each bound by itself.
    share, earned, estimated_fdr
        Mean over the runs of the points of the curve (``CurvePoint``).
    """

    bound: float
    share_certified: float
    share: float
    earned: float
    estimated_fdr: float


@dataclass(frozen=True)
class UntilCertified:
    """Rounds, people and losses until the first certificate, over simulated runs.

    Each field of three is (5 %, median, 95 %) over the runs that reached a certificate. ``curve``
    is about the end of the runs; it is empty for single groups.
    """

    whom: str
    share_certified: float
    rounds: tuple[float, float, float]
    accepted: tuple[float, float, float]
    explored: tuple[float, float, float]
    lost_on_bad: tuple[float, float, float]
    curve: tuple[PlannedBound, ...] = field(default=(), kw_only=True)


def plan(
    wanted: Plan, *, jobs: int = -1, progress: Callable[[int, int], None] | None = None
) -> list[UntilCertified]:
    """Simulate the certified method, and return what a certificate takes, overall and per group.

    ``progress`` is called with the number of simulations done and in total.
    """
    if wanted.repetitions < 2:
        raise InputError(f"repetitions must be 2 or more, got {wanted.repetitions}.")
    check_rounds("maturity", wanted.maturity, least=0)
    check_rounds("patience", wanted.patience, least=1)
    modes = ["overall"] + ["per_group"] * (len(wanted.stream.groups) > 1)
    tasks = [(mode, number) for mode in modes for number in range(wanted.repetitions)]
    runs: dict[tuple[str, int], Any] = {}
    pool = Parallel(n_jobs=jobs, return_as="generator_unordered")
    for key, result in pool(delayed(_run_keyed)(wanted, *task) for task in tasks):
        runs[key] = result
        if progress is not None:
            progress(len(runs), len(tasks))
    names = {"overall": ["everybody"], "per_group": list(wanted.stream.groups)}
    curve = _mean_curve([runs["overall", i][1] for i in range(wanted.repetitions)])
    return [
        _summarise(
            name,
            np.array([runs[mode, i][0][z] for i in range(wanted.repetitions)]),
            curve if mode == "overall" else (),
        )
        for mode in modes
        for z, name in enumerate(names[mode])
    ]


Simulated = tuple[NDArray[np.float64], tuple[CurvePoint, ...]]


def _run_keyed(wanted: Plan, mode: str, number: int) -> tuple[tuple[str, int], Simulated]:
    return (mode, number), simulate_plan(wanted, mode, number, whole=mode == "overall")


def simulate_plan(wanted: Plan, mode: str, number: int, *, whole: bool = False) -> Simulated:
    """Simulate one run; return what it took until the first certificate, and its last curve.

    ``whole`` goes on to the last round; otherwise the run ends with the certificate. A certificate
    took rounds, people accepted, people explored and losses on bad applicants; NaN if it never
    came.
    """
    with threadpool_limits(1):
        feedback = Feedback(delay=wanted.delay)
        world = World(wanted.stream, wanted.past, feedback=feedback, seed=wanted.seed + number)
        past = world.history()
        method = CertifiedClassifier(
            wanted.alpha,
            wanted.delta,
            Revenue(gain=wanted.gain, loss=wanted.loss),
            horizon=world.n_rounds,
            certify=mode,  # type: ignore[arg-type]
            maturity=wanted.maturity,
            patience=wanted.patience,
            group_as_feature=wanted.group_as_feature,
            random_state=number,
        ).fit(
            past.people.X,
            past.outcomes,
            accepted=past.accepted,
            sensitive_features=past.people.group,
        )
        names = [None] if mode == "overall" else list(world.stream.groups)
        taken = np.zeros((len(names), 4))
        reached = np.zeros(len(names), np.bool_)
        for result in run(method, world):
            for z, record in enumerate(method.rounds_[-len(names) :]):
                reached[z] |= record.status == "certified"
                if not reached[z]:
                    taken[z] += _round_totals(result, names[z], wanted.loss)
            if reached.all() and not whole:
                break
        taken[~reached] = np.nan
        return taken, method.rounds_[-1].curve


def _round_totals(result: Any, group: str | None, loss: float) -> NDArray[np.float64]:
    people, decided = result.applicants.people, result.decided
    in_group = np.ones(len(people), bool) if group is None else people.group == group
    accepted = decided.accepted & in_group
    bad = accepted & (result.applicants.outcome == 0)
    return np.array([1, accepted.sum(), (accepted & ~decided.exploit).sum(), loss * bad.sum()])


def _mean_curve(curves: list[tuple[CurvePoint, ...]]) -> tuple[PlannedBound, ...]:
    """Return the mean of the curves that runs ended with; none if too few outcomes were known."""
    known = [curve for curve in curves if curve]
    return tuple(
        PlannedBound(
            points[0].bound,
            float(np.mean([point.certified for point in points])),
            float(np.mean([point.share for point in points])),
            float(np.mean([point.earned for point in points])),
            float(np.mean([point.estimated_fdr for point in points if point.share] or [np.nan])),
        )
        for points in zip(*known, strict=True)
    )


def _summarise(
    name: str, taken: NDArray[np.float64], curve: tuple[PlannedBound, ...]
) -> UntilCertified:
    reached = np.isfinite(taken[:, 0])
    quantiles = [
        tuple(np.quantile(column[reached], [0.05, 0.5, 0.95]).tolist())
        if reached.any()
        else (np.nan, np.nan, np.nan)
        for column in taken.T
    ]
    return UntilCertified(name, float(reached.mean()), *quantiles, curve=curve)
