"""Simulate ways of starting, how long a certificate takes and what it earns, in advance."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from fairchance.core.decisions import CurvePoint
from fairchance.core.utility import Revenue
from fairchance.errors import InputError, LearningWarning
from fairchance.methods.certified.classifier import CertifiedClassifier
from fairchance.methods.estimator import check_rounds
from fairchance.simulate.feedback import Delay, Feedback, Fixed
from fairchance.simulate.histories import ByPolicy, HistoryRule, SelectedOnOutcome
from fairchance.simulate.people import People
from fairchance.simulate.populations import Population, draw_applicants
from fairchance.simulate.run import run
from fairchance.simulate.streams import Stream
from fairchance.simulate.worlds import World

__all__ = ["YEAR", "Plan", "PlannedBound", "PlannedStart", "UntilCertified"]
__all__ += ["as_recorded", "plan", "recommended", "simulate_plan", "simulate_starts"]

YEAR = 12  # rounds, a month each
_FIRST_RAMP = 0.05  # of a careful start, for a year
_SIMULATED = 3  # runs of each way of starting: they share their applicants, so few tell them apart
_LEARNED_FROM = 5_000  # applicants of a population whose outcomes the score of today's policy knew
_WAYS: dict[str, tuple[float | None, str]] = {  # the ramp of the first year, and what is evidence
    "pilot": (None, "rounds"),
    "pilot-history": (None, "history"),
    "incumbent": (1.0, "rounds"),
    "history": (1.0, "history"),
    "ramp": (_FIRST_RAMP, "rounds"),
}


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
    is about the end of the runs; it is empty for single groups. ``rejected`` as in
    ``PlannedStart``.
    """

    whom: str
    share_certified: float
    rounds: tuple[float, float, float]
    accepted: tuple[float, float, float]
    explored: tuple[float, float, float]
    lost_on_bad: tuple[float, float, float]
    curve: tuple[PlannedBound, ...] = field(default=(), kw_only=True)
    rejected: str = field(default="", kw_only=True)


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
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", LearningWarning)  # as all the rejected may be bad
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
            _mean_known([point.earned for point in points]),
            _mean_known([point.estimated_fdr for point in points]),
        )
        for points in zip(*known, strict=True)
    )


def _mean_known(values: list[float]) -> float:
    return float(np.mean([value for value in values if not np.isnan(value)] or [np.nan]))


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


@dataclass(frozen=True)
class PlannedStart:
    """What a way of starting earns in its first two years, over simulated runs.

    Attributes
    ----------
    way
        ``"pilot"``: the program decides alone, and starts with pilots; ``"pilot-history"``: the
        same, with the history as evidence; ``"incumbent"``: beside today's policy, which stays
        until another one is certified; ``"history"``: the same, with the history as evidence;
        ``"ramp"``: beside today's policy, deciding on 5 % of applicants in the first 12 rounds.
    n_rounds
        Rounds of a run, a month each.
    share_certified, first
        Share of runs with a certificate, and the median of their first certified rounds.
    earned, today
        What the program and today's policy earn in each year, means over runs.
    least, most
        What the program earns beyond today's policy in all rounds, in the worst and the best run.
    rejected
        How the rejected applicants of a history are taken (``PastPopulation``): ``"alike"`` or
        ``"bad"``; empty without a history.
    """

    way: str
    n_rounds: int
    share_certified: float
    first: float
    earned: tuple[float, ...]
    today: tuple[float, ...]
    least: float
    most: float
    rejected: str = ""

    @property
    def added(self) -> float:
        """What it earns beyond today's policy, mean over runs."""
        return sum(self.earned) - sum(self.today)


def simulate_starts(
    wanted: Plan,
    n_history: int,
    share: float | None = None,
    *,
    jobs: int = -1,
    progress: Callable[[int, int], None] | None = None,
) -> list[PlannedStart]:
    """Simulate each way of starting over at most two years.

    The history has a size of its own. Today's policy is a score cut that accepts a share of all
    applicants; without a share, applicants come with its decisions. A history without rejected
    applicants cannot be evidence.
    """
    rounds = min(2 * YEAR, wanted.stream.n_rounds)
    stream: Any = wanted.stream
    wanted = replace(wanted, stream=replace(stream, n_rounds=rounds, n_history=n_history))
    today = as_recorded if share is None else _score_cut(stream.source, share, wanted.seed)
    rejects = not stream.source.accepted.all() if share is None else share < 1
    ways = [way for way, (_, evidence) in _WAYS.items() if rejects or evidence == "rounds"]
    tasks = [(way, n) for way in ways for n in range(min(_SIMULATED, wanted.repetitions))]
    runs: dict[str, list[NDArray[np.float64]]] = {way: [] for way in ways}
    pool = Parallel(n_jobs=jobs, return_as="generator")
    found = pool(delayed(_simulate_start)(wanted, today, *task) for task in tasks)
    for done, ((way, _), result) in enumerate(zip(tasks, found, strict=True), start=1):
        runs[way].append(result)
        if progress is not None:
            progress(done, len(tasks))
    return [_start(way, np.array(results)) for way, results in runs.items()]


def recommended(starts: list[PlannedStart]) -> list[PlannedStart]:
    """Return the way of starting whose worse case is best; alone only if it loses in no case.

    The cases are how the rejected applicants of a history are taken; the way is returned in each.
    """

    def worse(cases: list[PlannedStart]) -> float:
        return min(one.added for one in cases)

    ways = {start.way: [one for one in starts if one.way == start.way] for start in starts}
    safe = [cases for way, cases in ways.items() if _WAYS[way][0] or worse(cases) >= 0]
    return max(safe, key=worse)


def as_recorded(people: People) -> NDArray[np.float64]:
    """Return the decisions that people come with."""
    return np.asarray(people.today, np.float64)


def _score_cut(
    population: Population, share: float, seed: int
) -> Callable[[People], NDArray[np.float64]]:
    """Return a policy that accepts a share of applicants, the best by a logistic score."""
    drawn = draw_applicants(population, _LEARNED_FROM, np.random.default_rng(seed))
    X, outcome = drawn.people.X, drawn.outcome
    score = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)).fit(X, outcome)
    cut = np.quantile(score.decision_function(X), 1 - share)

    def policy(people: People) -> NDArray[np.float64]:
        return np.asarray(score.decision_function(people.X) >= cut, np.float64)

    return policy


def _simulate_start(
    wanted: Plan, today: Callable[[People], NDArray[np.float64]], way: str, number: int
) -> NDArray[np.float64]:
    """Return for each round what was earned, what today's policy earns, and if it is certified."""
    first_ramp, evidence = _WAYS[way]

    def given(t: int, people: People) -> dict[str, Any]:
        if first_ramp is None:
            return {}
        return {"incumbent": today(people) == 1, "ramp": first_ramp if t <= YEAR else 1.0}

    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", LearningWarning)  # a past may have rejected nobody
        world = World(
            wanted.stream,
            ByPolicy(today),
            feedback=Feedback(delay=wanted.delay),
            scaling="none",
            seed=wanted.seed + number,
        )
        past = world.history()
        method = CertifiedClassifier(
            wanted.alpha,
            wanted.delta,
            Revenue(gain=wanted.gain, loss=wanted.loss),
            horizon=world.n_rounds,
            maturity=wanted.maturity,
            patience=wanted.patience,
            group_as_feature=wanted.group_as_feature,
            evidence=evidence,  # type: ignore[arg-type]
            random_state=number,
        ).fit(
            past.people.X,
            past.outcomes,
            accepted=past.accepted,
            sensitive_features=past.people.group,
        )
        rows = []
        for result in run(method, world, given):
            worth = np.where(result.applicants.outcome == 1, wanted.gain, -wanted.loss)
            ours, theirs = result.decided.accepted, today(result.applicants.people)
            rows.append((worth @ ours, worth @ theirs, method.rounds_[-1].status == "certified"))
        return np.array(rows, np.float64)


def _start(way: str, runs: NDArray[np.float64]) -> PlannedStart:
    """Return the sums of runs, which have a row for each round."""
    years = range(0, runs.shape[1], YEAR)
    earned, today = (
        tuple(float(runs[:, at : at + YEAR, column].sum(axis=1).mean()) for at in years)
        for column in (0, 1)
    )
    certified = runs[:, :, 2] == 1
    reached = certified.any(axis=1)
    first = float(np.median(certified.argmax(axis=1)[reached] + 1)) if reached.any() else np.nan
    added = (runs[:, :, 0] - runs[:, :, 1]).sum(axis=1)
    ends = float(added.min()), float(added.max())
    n_rounds = runs.shape[1]
    return PlannedStart(way, n_rounds, float(reached.mean()), first, earned, today, *ends)
