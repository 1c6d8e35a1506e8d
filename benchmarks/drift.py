"""The drift monitor: false alarms, and certified rounds above α after a change.

``python -m benchmarks drift [--part …] [--seeds …]`` has these parts. ``synthetic``: the odds of a
bad outcome rise by the factor 1.6 after round 20, or applicants come from another place, where
features and outcomes differ. ``data`` (needs ``FAIRCHANCE_DATA``): the same for California and
Taiwan, and applicants of Massachusetts followed by those of Indiana or Pennsylvania.
``stationary``: whole runs without a change, with a quick ranking.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import binom
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from benchmarks.certified import everybody
from fairchance import CertifiedClassifier, Revenue
from fairchance.errors import LearningWarning
from fairchance_lab.datasets.download import find

ALPHA, MONITOR = 0.15, 0.05
CHANGE, AFTER, PEOPLE, SEED = 20, 12, 600, 53_000
ODDS = 1.6
MASSACHUSETTS, INDIANA, PENNSYLVANIA = "25", "18", "42"
_COLUMNS = ["AGEP", "COW", "SCHL", "MAR", "OCCP", "WKHP", "RAC1P", "SEX"]


@dataclass(frozen=True, eq=False)
class Applicants:
    """Applicants before or after a change: those who come, and some to judge policies by."""

    X: pd.DataFrame
    good: NDArray[np.int_]
    judged: slice

    def rows(self, number: int) -> slice:
        """Return the applicants of the first, second, … batch."""
        return slice(number * PEOPLE, (number + 1) * PEOPLE)


Fixture = Callable[[np.random.Generator], tuple[Applicants, Applicants]]


def drawn(
    intercept: float, mean: float, slope: float, rng: np.random.Generator, n: int = 40_000
) -> Applicants:
    """Return applicants with x ~ N(mean, 1) and P(good) = expit(intercept + slope·x)."""
    X = rng.normal([mean, 0, 0], size=(n, 3))
    good = rng.random(n) < expit(intercept + X @ [slope, 0.5, 0.0])
    return Applicants(pd.DataFrame(X, columns=["x", "v", "w"]), good.astype(int), slice(22_000, n))


def synthetic(after: tuple[float, float, float], rng: np.random.Generator) -> Any:
    """Return applicants of a population before and after a change."""
    return drawn(1.0, 0.0, 2.0, rng), drawn(*after, rng)


@cache
def _flips(name: str) -> NDArray[np.float64]:
    """Return how likely a good applicant turns bad if the odds of bad rise by the factor."""
    people = everybody(name)
    model = HistGradientBoostingClassifier(random_state=0)
    good = cross_val_predict(model, people.X, people.good, cv=3, method="predict_proba")[:, 1]
    bad = 1 - good
    return np.asarray((ODDS * bad / (1 + (ODDS - 1) * bad) - bad) / good)


def worse_odds(name: str, rng: np.random.Generator) -> Any:
    """Return applicants of a data set, and others whose odds of bad are higher."""
    people = everybody(name)
    order = rng.permutation(len(people))
    good = people.good[order].astype(int)
    later = good * (rng.random(order.size) >= _flips(name)[order])
    X, half = people.X.iloc[order].reset_index(drop=True), PEOPLE * (CHANGE + 1)
    after = slice(half, half + PEOPLE * AFTER)  # who comes later has not come before
    before = Applicants(X, good, slice(after.stop, None))
    return before, Applicants(
        pd.concat([X[after], X[after.stop :]]),
        np.append(later[after], later[after.stop :]),
        slice(PEOPLE * AFTER, None),
    )


@cache
def _states() -> pd.DataFrame:
    persons = pd.read_parquet(find(None, ["acs_pa_ma_in_2024_persons.parquet"]))
    return persons[(persons.AGEP > 16) & (persons.PINCP > 100) & (persons.WKHP > 0)]


def other_state(first: str, then: str, rng: np.random.Generator) -> Any:
    """Return applicants of one state, and of another."""
    parts = []
    for wanted in (first, then):
        persons = _states()[_states()["STATE"] == wanted].sample(frac=1.0, random_state=rng)
        good = (persons.PINCP > 50_000).to_numpy().astype(int)
        X = persons[_COLUMNS].astype(float).reset_index(drop=True)
        parts.append(Applicants(X, good, slice(PEOPLE * (CHANGE + 1), None)))
    return tuple(parts)


FIXTURES: dict[str, dict[str, Fixture]] = {
    "synthetic": {
        "odds of bad × 1.6": partial(synthetic, (1.0 - np.log(ODDS), 0.0, 2.0)),
        "another place": partial(synthetic, (0.3, -0.3, 1.4)),
    },
    "data": {
        "Taiwan, odds of bad × 1.6": partial(worse_odds, "taiwan"),
        "California, odds of bad × 1.6": partial(worse_odds, "california"),
        "Massachusetts, then Indiana": partial(other_state, MASSACHUSETTS, INDIANA),
        "Massachusetts, then Pennsylvania": partial(other_state, MASSACHUSETTS, PENNSYLVANIA),
    },
}


@dataclass(frozen=True)
class Run:
    """Whether rounds were certified, the FDR of their policies, and restarts before each."""

    certified: NDArray[np.bool_]
    fdr: NDArray[np.float64]
    restarts: NDArray[np.int_]
    accepted: NDArray[np.int_]


def play(parts: tuple[Applicants, Applicants], seed: int, *, delay: int = 0, **options: Any) -> Run:
    """Run the certified method; applicants are the second part's after round 20."""
    before, after = parts
    rng, past = np.random.default_rng(seed), before.rows(0)
    good = before.good[past]
    method = CertifiedClassifier(
        ALPHA, utility=Revenue(200, 500), horizon=39, random_state=seed, **options
    )
    method.fit(before.X[past], good, accepted=rng.random(PEOPLE) < np.where(good == 1, 0.9, 0.1))
    rows, late = [], []
    for t in range(1, CHANGE + AFTER + 1):
        now, batch = (before, t) if t <= CHANGE else (after, t - CHANGE - 1)
        decided = method.decide(now.X[now.rows(batch)])
        late.append((decided.ids[decided.accepted], now.good[now.rows(batch)][decided.accepted]))
        fdr = float("nan")
        if decided.certified and now.judged.start < len(now.X):
            p = method.acceptance_probability(now.X[now.judged])
            fdr = float(p @ (1 - now.good[now.judged]) / p.sum())
        restarts = method.deployed_[0].restarts
        rows.append((decided.certified, fdr, restarts, int(decided.accepted.sum())))
        if len(late) > delay:
            method.observe(*late.pop(0))
    return Run(*(np.array(column) for column in zip(*rows, strict=True)))


def print_fixtures(part: str, n: int, first_seed: int, delay: int) -> None:
    """Print how many certified rounds break α after the change, run by run."""
    for name, fixture in FIXTURES[part].items():
        for monitor in (MONITOR, 0.0):
            broken, fdr, early, accepted = [], [], 0, []
            for seed in range(first_seed, first_seed + n):
                parts = fixture(np.random.default_rng(seed))
                run = play(parts, seed, delay=delay, monitor=monitor)
                late = slice(CHANGE + delay, None)  # from the first outcomes after the change on
                broken.append(int(np.sum(run.certified[late] & (run.fdr[late] > ALPHA))))
                fdr.append((np.nanmean(run.fdr[CHANGE - 3 : CHANGE]), run.fdr[CHANGE]))
                early += int(run.restarts[CHANGE] > 0)
                accepted.append(run.accepted[CHANGE - 3 : CHANGE].mean())
            was, now = np.nanmean(fdr, axis=0)
            print(
                f"{name}, monitor={monitor:g}, delay {delay}: FDR {was:.3f}, then {now:.3f}, "
                f"{np.mean(accepted):.0f} accepted a round; certified rounds above α after the "
                f"change: {broken}, alarms before it: {early} of {n} runs",
                flush=True,
            )


def print_stationary(n: int, first_seed: int) -> None:
    """Print how many runs without a change had an alarm."""
    alarms = 0
    for seed in range(first_seed, first_seed + n):
        people = drawn(1.0, 0.0, 2.0, np.random.default_rng(seed), n=22_000)
        later = Applicants(people.X[PEOPLE * (CHANGE + 1) :], people.good[12_600:], people.judged)
        run = play((people, later), seed, monitor=MONITOR, learner=LogisticRegression())
        alarms += int(run.restarts[-1] > 0)
    surprise = binom.sf(alarms - 1, n, MONITOR)
    print(
        f"no change: alarms in {alarms} of {n} runs of {CHANGE + AFTER} rounds (allowed "
        f"{MONITOR:.0%}; as many or more have probability {surprise:.3g} if it is kept)",
        flush=True,
    )


PARTS = {"synthetic": 5, "data": 5, "stationary": 200}


def main(arguments: list[str] | None = None) -> None:
    """Print the parts that are asked for, by default all of them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks drift", description=__doc__)
    parser.add_argument("--part", nargs="*", choices=PARTS, default=["synthetic", "stationary"])
    parser.add_argument("--seeds", type=int, help="runs of each kind")
    parser.add_argument("--first-seed", type=int, default=SEED)
    parser.add_argument("--delay", type=int, default=0, help="rounds until outcomes are known")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", LearningWarning)
    for part in options.part:
        n = options.seeds or PARTS[part]
        if part == "stationary":
            print_stationary(n, options.first_seed)
        else:
            print_fixtures(part, n, options.first_seed, options.delay)


if __name__ == "__main__":
    main()
