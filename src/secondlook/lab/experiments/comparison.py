"""Methods side by side: what they earn of what could be earned, and whether the bound holds.

Everything is judged on the whole population: the policy of a round has a false discovery rate, a
utility and true positive rates there, without the noise of the batch it met.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from secondlook.errors import InputError
from secondlook.lab.experiments import tables
from secondlook.lab.experiments.methods import expanded
from secondlook.lab.experiments.results import Results
from secondlook.lab.experiments.spec import Experiment
from secondlook.lab.experiments.tables import Values, share

__all__ = [
    "COMPARED",
    "OPTIMUM",
    "USUAL",
    "Breaks",
    "Compared",
    "Earned",
    "compared",
    "comparison",
    "population_fdr",
    "population_true_positive_rate",
    "population_utility",
    "unjudged",
]

OPTIMUM = "opt-hindsight"
COMPARED = (
    "plain-unweighted",
    "plain",
    "certified",
    "certified-within-group",
    "plug-in",
    "fair-clf",
    OPTIMUM,
)
USUAL = "usual"  # stands for these
_EARLY = 5  # rounds
_ROUNDING = 1e-9


def comparison(experiment: Experiment, methods: Iterable[str] = (USUAL,)) -> Experiment:
    """Return an experiment that compares methods, judged on the whole population.

    Parameters
    ----------
    experiment
        World, goal, seed and repetitions.
    methods
        Names, or names of several at once, ``"usual"`` for those of ``COMPARED``. The offline
        optimum joins them if it is not there, since shares are of what it earns.
    """
    given = [one for name in methods for one in (COMPARED if name == USUAL else [name])]
    names = tuple(dict.fromkeys([*expanded(given), OPTIMUM]))
    return replace(
        experiment, name=f"{experiment.name}, compared", methods=names, alphas=(), judged=True
    )


def population_fdr(results: Results) -> Values:
    """Return the FDR of every round's policy, axes (alpha, method, repetition, round).

    NaN where nobody is accepted, or where a method cannot say whom it accepts.
    """
    accepted, good = (results.share(f"p_{name}").sum(-1) for name in ("accepted", "accepted_good"))
    return share(accepted - good, accepted)


def population_utility(results: Results) -> Values:
    """Return the expected revenue per person of every round's policy, axes as for the FDR."""
    accepted, good = (results.share(f"p_{name}").sum(-1) for name in ("accepted", "accepted_good"))
    goal = results.about["experiment"]["goal"]
    return np.asarray(goal["gain"] * good - goal["loss"] * (accepted - good))


def population_true_positive_rate(results: Results) -> Values:
    """Return the chance of good people to be accepted, axes (…, round, group)."""
    return share(results.share("p_accepted_good"), results.share("p_good"))


@dataclass(frozen=True)
class Earned:
    """Utility as a share of the optimum's: the ratio of means over runs, and its standard error."""

    share: float
    standard_error: float


@dataclass(frozen=True)
class Breaks:
    """How often policies break α in the population, among rounds of one kind.

    Attributes
    ----------
    rounds
        How many such rounds there are, over all runs.
    broken
        How many of them break α.
    runs
        How many runs have such a round.
    broken_runs
        How many runs have one that breaks α.
    """

    rounds: int
    broken: int
    runs: int
    broken_runs: int

    @property
    def share_of_rounds(self) -> float:
        """Share of the rounds that break α; NaN without any."""
        return self.broken / self.rounds if self.rounds else float("nan")


@dataclass(frozen=True)
class Compared:
    """One method of a comparison.

    Attributes
    ----------
    method, label
        Its name, and its name for people.
    earned
        Share of the optimum's utility: ``early`` (the first 5 rounds), ``middle``, ``late`` (the
        last quarter of the rounds) and ``whole``.
    certified, uncertified
        How often α is broken in rounds with and without a certificate.
    true_positive_rates
        By group, in the late rounds.
    explored
        Share of the accepted who were explored, or accepted by a soft edge.
    """

    method: str
    label: str
    earned: dict[str, Earned]
    certified: Breaks
    uncertified: Breaks
    true_positive_rates: dict[str, float]
    explored: float


def compared(results: Results, at: int | None = None) -> list[Compared]:
    """Return every method of judged results beside the offline optimum of the same runs.

    Parameters
    ----------
    results
        Results of an experiment with ``judged``.
    at
        Place of the α among those tried; None means the experiment's own.
    """
    at = tables.main_alpha(results) if at is None else at
    utility, fdr = population_utility(results)[at], population_fdr(results)[at]
    rates = population_true_positive_rate(results)[at]
    certified = results.count("n_certified")[at].any(axis=-1)
    ran = results.count("n_people")[at].any(axis=-1)  # not so where a method failed
    broken = np.nan_to_num(fdr, nan=-1.0) > results.alphas[at] + _ROUNDING
    accepted, explored = (
        results.count(f"n_{name}")[at].sum(axis=(1, 2, 3)) for name in ("accepted", "explored")
    )
    periods = _periods(results)
    optimum = _optimum(results, utility)
    found = []
    for i, method in enumerate(results.methods):
        late_rates = tables.mean_known(rates[i][:, periods["late"]], axis=(0, 1))
        found.append(
            Compared(
                method,
                str(results.about["labels"].get(method, method)),
                {name: _earned(utility[i], optimum, rounds) for name, rounds in periods.items()},
                _breaks(broken[i], certified[i]),
                _breaks(broken[i], ran[i] & ~certified[i]),
                dict(zip(results.groups, late_rates.tolist(), strict=True)),
                float(share(explored[i], accepted[i])),
            )
        )
    return found


def unjudged(results: Results, at: int | None = None) -> list[str]:
    """Return the methods that ran and could not say whom they accept in the population.

    Parameters
    ----------
    results
        Results of an experiment with ``judged``.
    at
        Place of the α among those tried; None means the experiment's own.
    """
    at = tables.main_alpha(results) if at is None else at
    unknown = ~np.isfinite(results.share("p_accepted")[at])
    ran = results.count("n_people")[at] > 0
    return [
        method
        for i, method in enumerate(results.methods)
        if ran[i].any() and unknown[i][ran[i]].all()
    ]


def _optimum(results: Results, utility: Values) -> Values:
    if OPTIMUM not in results.methods:
        raise InputError(
            f"shares are of what {OPTIMUM} earns, and it is not among the methods "
            f"{', '.join(results.methods)}; add it."
        )
    return np.asarray(utility[results.methods.index(OPTIMUM)])


def _periods(results: Results) -> dict[str, slice]:
    n_rounds, late = results.shape[3], tables.late_rounds(results)
    return {
        "early": slice(0, _EARLY),
        "middle": slice(_EARLY, max(_EARLY, n_rounds - late)),
        "late": slice(n_rounds - late, None),
        "whole": slice(None),
    }


def _earned(mine: Values, optimum: Values, rounds: slice) -> Earned:
    """Return a ratio of means over runs, with the error of a ratio estimate."""
    a, b = (tables.mean_known(one[:, rounds], axis=1) for one in (mine, optimum))
    b = np.where(np.isfinite(a), b, np.nan)  # the same runs, where mine failed in some
    whole = float(tables.mean_known(b, axis=0))
    whole = whole if whole > 0 else float("nan")  # nothing could be earned
    ratio = float(tables.mean_known(a, axis=0)) / whole
    error = tables.over_repetitions((a - ratio * b) / whole, axis=0).standard_error
    return Earned(ratio, float(error))


def _breaks(broken: NDArray[np.bool_], kind: NDArray[np.bool_]) -> Breaks:
    return Breaks(
        rounds=int(kind.sum()),
        broken=int((broken & kind).sum()),
        runs=int(kind.any(axis=1).sum()),
        broken_runs=int((broken & kind).any(axis=1).sum()),
    )
