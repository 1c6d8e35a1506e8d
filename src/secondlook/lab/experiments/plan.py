"""Simulate how long a certificate takes and what it costs, before any real decision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from secondlook.core.utility import Revenue
from secondlook.errors import InputError
from secondlook.lab.simulate.feedback import Delay, Feedback, Fixed
from secondlook.lab.simulate.histories import HistoryRule, SelectedOnOutcome
from secondlook.lab.simulate.run import run
from secondlook.lab.simulate.streams import Stream
from secondlook.lab.simulate.worlds import World
from secondlook.methods.certified.classifier import CertifiedClassifier
from secondlook.methods.estimator import check_rounds

__all__ = ["Plan", "UntilCertified", "plan", "run_until_certified"]


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
class UntilCertified:
    """Rounds, people and losses until the first certificate, over simulated runs.

    Each field of three is (5 %, median, 95 %) over the runs that reached a certificate.
    """

    whom: str
    share_certified: float
    rounds: tuple[float, float, float]
    accepted: tuple[float, float, float]
    explored: tuple[float, float, float]
    lost_on_bad: tuple[float, float, float]


def plan(
    wanted: Plan, *, jobs: int = -1, progress: Callable[[int, int], None] | None = None
) -> list[UntilCertified]:
    """Simulate the certified method, and return what a certificate takes, overall and per group.

    Parameters
    ----------
    wanted
        The planned program.
    jobs
        Simulations at a time; −1 means one per core.
    progress
        Called with (simulations done, simulations in total).
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
    return [
        _summarise(name, np.array([runs[mode, i][z] for i in range(wanted.repetitions)]))
        for mode in modes
        for z, name in enumerate(names[mode])
    ]


def _run_keyed(wanted: Plan, mode: str, number: int) -> tuple[tuple[str, int], NDArray[np.float64]]:
    return (mode, number), run_until_certified(wanted, mode, number)


def run_until_certified(wanted: Plan, mode: str, number: int) -> NDArray[np.float64]:
    """Simulate one run, and return what it took until the first certificate.

    Parameters
    ----------
    wanted
        The planned program.
    mode
        ``"overall"`` or ``"per_group"``, as ``CertifiedClassifier`` certifies.
    number
        Number of the run; the seed of its world is the plan's seed plus this number.

    Returns
    -------
    array
        A row for each certificate: rounds, people accepted, people explored and losses on bad
        applicants; NaN if the certificate never came.
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
            if reached.all():
                break
        taken[~reached] = np.nan
        return taken


def _round_totals(result: Any, group: str | None, loss: float) -> NDArray[np.float64]:
    people, decided = result.applicants.people, result.decided
    in_group = np.ones(len(people), bool) if group is None else people.group == group
    accepted = decided.accepted & in_group
    bad = accepted & (result.applicants.outcome == 0)
    return np.array([1, accepted.sum(), (accepted & ~decided.exploit).sum(), loss * bad.sum()])


def _summarise(name: str, taken: NDArray[np.float64]) -> UntilCertified:
    reached = np.isfinite(taken[:, 0])
    quantiles = [
        tuple(np.quantile(column[reached], [0.05, 0.5, 0.95]).tolist())
        if reached.any()
        else (np.nan, np.nan, np.nan)
        for column in taken.T
    ]
    return UntilCertified(name, float(reached.mean()), *quantiles)
