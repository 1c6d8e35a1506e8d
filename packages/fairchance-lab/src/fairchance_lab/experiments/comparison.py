"""Compare methods on the whole population: revenue relative to the ceiling, and broken bounds.

The policy of a round has a false discovery rate, a utility and true positive rates in the
population, without the noise of a batch. A certificate promises the population's rate. The
population of a data set is all its people with their outcomes; of a finite domain, its cells; of
any other population, a large draw that is the same in every repetition, with the true P(good).
Methods return probabilities of acceptance for features and groups, and never see an outcome.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.errors import InputError
from fairchance.simulate.people import Floats, People, WholePopulation
from fairchance_lab.experiments import tables
from fairchance_lab.experiments.methods import expand_names
from fairchance_lab.experiments.results import Results
from fairchance_lab.experiments.spec import Experiment
from fairchance_lab.experiments.tables import Values, share

__all__ = [
    "CEILING",
    "CEILING_MEANS",
    "COMPARED",
    "LOGISTIC",
    "USUAL",
    "Breaks",
    "Compared",
    "Earned",
    "ceiling_shares",
    "compared",
    "comparison",
    "find_unjudged",
    "judge",
    "population_fdr",
    "population_true_positive_rate",
    "population_utility",
]

CEILING, LOGISTIC = "ceiling", "logistic-all-labels"
CEILING_MEANS = (
    "The ceiling is gradient boosting with all labels, cross-fitted, at the threshold that "
    "earns most within α; where the truth is known, it is the exact optimum."
)
COMPARED = (
    "plain-unweighted",
    "plain",
    "certified",
    "certified-within-group",
    "plug-in",
    "fair-clf",
    LOGISTIC,
    "best-linear",
    CEILING,
)
USUAL = "usual"  # the name of these methods
_EARLY = 5  # rounds
_ROUNDING = 1e-9


def comparison(experiment: Experiment, methods: Iterable[str] = (USUAL,)) -> Experiment:
    """Return an experiment that compares methods, judged on the whole population.

    Parameters
    ----------
    experiment
        World, goal, seed and repetitions.
    methods
        Names of methods or sets; ``"usual"`` means ``COMPARED``. Logistic with all labels and the
        ceiling are added if absent, since revenue is reported as a share of the ceiling's.
    """
    single = [member for name in methods for member in (COMPARED if name == USUAL else [name])]
    names = tuple(dict.fromkeys([*expand_names(single), LOGISTIC, CEILING]))
    return replace(experiment, methods=names, vary={}, judged=True)


def population_fdr(results: Results) -> Values:
    """Return the FDR of every round's policy, axes (setting, method, repetition, round).

    NaN if no one is accepted or the method has no probabilities of acceptance.
    """
    accepted, good = (results.share(f"p_{name}").sum(-1) for name in ("accepted", "accepted_good"))
    return share(accepted - good, accepted)


def population_utility(results: Results) -> Values:
    """Return the expected revenue per person of every round's policy, axes as for the FDR."""
    accepted, good = (results.share(f"p_{name}").sum(-1) for name in ("accepted", "accepted_good"))
    goal = results.about["experiment"]["goal"]
    return np.asarray(goal["gain"] * good - goal["loss"] * (accepted - good))


def population_true_positive_rate(results: Results) -> Values:
    """Return the probability that good people are accepted, axes (…, round, group)."""
    return share(results.share("p_accepted_good"), results.share("p_good"))


@dataclass(frozen=True)
class Earned:
    """Utility as a share of the ceiling's: a ratio of means over runs, with its standard error."""

    share: float
    standard_error: float


@dataclass(frozen=True)
class Breaks:
    """How often policies break α in the population, among rounds of one kind.

    Attributes
    ----------
    rounds
        Number of such rounds, over all runs.
    broken
        Number of these rounds that break α.
    runs
        Number of runs with such a round.
    broken_runs
        Number of runs with such a round that breaks α.
    """

    rounds: int
    broken: int
    runs: int
    broken_runs: int

    @property
    def share_of_rounds(self) -> float:
        """Share of the rounds that break α; NaN without rounds."""
        return self.broken / self.rounds if self.rounds else float("nan")


@dataclass(frozen=True)
class Compared:
    """A method of a comparison.

    Attributes
    ----------
    method, label
        Its name, and its name for readers.
    earned
        Share of the ceiling's utility: ``early`` (the first 5 rounds), ``middle``, ``late`` (the
        last quarter of the rounds) and ``whole``.
    certified, uncertified
        How often α is broken in rounds with and without a certificate.
    true_positive_rates
        By group, in the late rounds.
    explored
        Share of the accepted who were explored or accepted by a soft edge.
    """

    method: str
    label: str
    earned: dict[str, Earned]
    certified: Breaks
    uncertified: Breaks
    true_positive_rates: dict[str, float]
    explored: float


def compared(results: Results, at: int | None = None) -> list[Compared]:
    """Compare every method of judged results with the ceiling of the same runs.

    Parameters
    ----------
    results
        Results of an experiment with ``judged``.
    at
        Index of the setting; None means the main one.
    """
    at = results.main if at is None else at
    utility, fdr = population_utility(results)[at], population_fdr(results)[at]
    rates = population_true_positive_rate(results)[at]
    certified = results.count("n_certified")[at].any(axis=-1)
    ran = results.count("n_people")[at].any(axis=-1)  # false if a method failed
    broken = np.nan_to_num(fdr, nan=-1.0) > results.alphas[at] + _ROUNDING
    accepted, explored = (
        results.count(f"n_{name}")[at].sum(axis=(1, 2, 3)) for name in ("accepted", "explored")
    )
    periods = _periods(results)
    ceiling = _ceiling(results, utility)
    rows = []
    for i, method in enumerate(results.methods):
        late_rates = tables.mean_known(rates[i][:, periods["late"]], axis=(0, 1))
        rows.append(
            Compared(
                method,
                str(results.about["labels"].get(method, method)),
                {name: _earned(utility[i], ceiling, rounds) for name, rounds in periods.items()},
                _breaks(broken[i], certified[i]),
                _breaks(broken[i], ran[i] & ~certified[i]),
                dict(zip(results.groups, late_rates.tolist(), strict=True)),
                float(share(explored[i], accepted[i])),
            )
        )
    return rows


def ceiling_shares(results: Results, at: int) -> Values:
    """Return the share of the ceiling that each run earned, axes (method, repetition).

    The mean of a method's runs is its ``Earned.share`` of the whole run.

    Parameters
    ----------
    results
        Results of an experiment with ``judged``.
    at
        Index of the α among those tried.
    """
    earned = tables.mean_known(population_utility(results)[at], axis=2)
    best = float(tables.mean_known(_ceiling(results, earned), axis=0))
    return earned / (best if best > 0 else np.nan)


def find_unjudged(results: Results, at: int | None = None) -> list[str]:
    """Return the methods that ran but have no probabilities of acceptance.

    Parameters
    ----------
    results
        Results of an experiment with ``judged``.
    at
        Index of the setting; None means the main one.
    """
    at = results.main if at is None else at
    unknown = ~np.isfinite(results.share("p_accepted")[at])
    ran = results.count("n_people")[at] > 0
    return [
        method
        for i, method in enumerate(results.methods)
        if ran[i].any() and unknown[i][ran[i]].all()
    ]


def _ceiling(results: Results, utility: Values) -> Values:
    if CEILING not in results.methods:
        raise InputError(
            f"revenue is reported as a share of the {CEILING}, which is not among the methods "
            f"{', '.join(results.methods)}; add it."
        )
    return np.asarray(utility[results.methods.index(CEILING)])


def _periods(results: Results) -> dict[str, slice]:
    n_rounds, late = results.shape[3], tables.late_rounds(results)
    return {
        "early": slice(0, _EARLY),
        "middle": slice(_EARLY, max(_EARLY, n_rounds - late)),
        "late": slice(n_rounds - late, None),
        "whole": slice(None),
    }


def _earned(utility: Values, ceiling: Values, rounds: slice) -> Earned:
    """Return a ratio of means over runs, with the standard error of a ratio estimate."""
    a, b = (tables.mean_known(values[:, rounds], axis=1) for values in (utility, ceiling))
    ratio = tables.ratio_of_means(a, b)
    return Earned(float(ratio.mean), float(ratio.standard_error))


def _breaks(broken: NDArray[np.bool_], kind: NDArray[np.bool_]) -> Breaks:
    return Breaks(
        rounds=int(kind.sum()),
        broken=int((broken & kind).sum()),
        runs=int(kind.any(axis=1).sum()),
        broken_runs=int((broken & kind).any(axis=1).sum()),
    )


def judge(
    method: Any, population: WholePopulation, segment: NDArray[np.intp], n_segments: int
) -> NDArray[np.float64]:
    """Return shares of the population under the policy of the last round, one row per segment.

    Columns are ``results.SHARES``. Accepted shares are expectations under the policy, exploration
    included, and NaN for a method without ``acceptance_probability``.

    Parameters
    ----------
    method
        A method that has decided a round.
    population
        The population.
    segment
        Code of each person's segment.
    n_segments
        Number of segments.
    """
    mass, good = population.mass, population.mass * population.good
    p = _acceptance(method, population.people)
    columns = (mass, good, mass * p, good * p)
    return np.column_stack([np.bincount(segment, column, n_segments) for column in columns])


def _acceptance(method: Any, people: People) -> Floats:
    acceptance_probability = getattr(method, "acceptance_probability", None)
    if acceptance_probability is None:
        return np.full(len(people), np.nan)
    p = acceptance_probability(people.X, sensitive_features=people.group)
    p = np.asarray(p, dtype=np.float64)
    if p.shape != (len(people),) or not np.all((p >= -_ROUNDING) & (p <= 1 + _ROUNDING)):
        raise InputError(
            f"acceptance_probability must return one number in [0, 1] per person, shape "
            f"({len(people)},), got shape {p.shape} from {type(method).__name__}; correct it, or "
            f"remove it from the method."
        )
    return p.clip(0.0, 1.0)
