"""Measure what pilots accept before the first certificate, and how well they predict its time.

docs/guarantees.md quotes these figures. Applicants have three features, and outcomes depend on two.
German credit is included if SECONDLOOK_DATA is set.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

import secondlook as sl
from secondlook.core.decisions import CertifiedRound
from secondlook.errors import LearningWarning
from secondlook.lab.experiments.methods import build
from secondlook.lab.experiments.paper import EXPERIMENTS
from secondlook.lab.experiments.repetition import seeds_of, setup_of
from secondlook.lab.experiments.world_spec import load_source
from secondlook.lab.simulate.run import run

RUNS, ROUNDS = 6, 30
# Log-odds of a good outcome of the average applicant.
EASE = {"hard": 0.8, "usual": 1.3, "easy": 2.2}


def lender(ease: float, n_batch: int, seed: int) -> list[CertifiedRound]:
    """Return the rounds of a lender up to the first certified round."""
    rng = np.random.default_rng(seed)

    def applicants(n: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        X = rng.normal(size=(n, 3))
        good = rng.random(n) < 1 / (1 + np.exp(-ease - 1.5 * X[:, 0] + 0.8 * X[:, 1]))
        return X, good.astype(np.int64)

    worth = sl.Revenue(gain=200, loss=500)
    classifier = sl.CertifiedClassifier(
        alpha=0.15, delta=0.1, utility=worth, horizon=ROUNDS, random_state=seed
    )
    X, y = applicants(2000)
    classifier.fit(X, y, accepted=X[:, 0] > 0)
    for _ in range(ROUNDS):
        X, y = applicants(n_batch)
        decided = classifier.decide(X)
        if decided.certified:
            break
        classifier.observe(decided.ids[decided.accepted], y[decided.accepted])
    return list(classifier.rounds_)


def german(seed: int) -> list[CertifiedRound]:
    """Return the rounds on German credit up to the first certified round."""
    experiment = EXPERIMENTS["german"]
    source = load_source(experiment.world)
    of_world, of_method = seeds_of(experiment, seed)
    world = experiment.world.build(source, of_world)
    method = build("certified", world, setup_of(world, experiment.goal, source, of_method))
    for _ in run(method, world):
        pass
    rounds = list(method.rounds_)
    first = next(
        (at for at, record in enumerate(rounds) if record.status == "certified"), len(rounds)
    )
    return rounds[: first + 1]


def print_accepted(name: str, play: Callable[[int], list[CertifiedRound]]) -> None:
    """Print the shares that pilots and the first certified round accept."""
    runs = [play(seed) for seed in range(RUNS)]
    pilots = [[_share(record) for record in rounds if record.status == "pilot"] for rounds in runs]
    certified = [_share(rounds[-1]) for rounds in runs if rounds[-1].status == "certified"]
    numbers = sorted(map(len, pilots))
    first, last = ([shares[at] for shares in pilots] for at in (0, -1))
    every = [share for shares in pilots for share in shares]
    print(
        f"{name}: {numbers[0]} to {numbers[-1]} pilots; round 1 {_span(first)}, all "
        f"{_span(every)}, the last {_span(last)}, first certified {_span(certified)}",
        flush=True,
    )


def _share(record: CertifiedRound) -> float:
    return record.n_accepted / record.n_people


def _span(shares: list[float]) -> str:
    if not shares:
        return "none"
    return f"{min(shares):.0%} to {max(shares):.0%} (median {np.median(shares):.0%})"


def print_predictions() -> None:
    """Compare ``more_outcomes`` with the outcomes that the first certificate needed."""
    ratios = np.array(list(_ratios()))
    known = ratios[np.isfinite(ratios)]
    print(
        f"more_outcomes in {ratios.size} pilot rounds with outcomes: known in "
        f"{known.size / ratios.size:.0%}, within a factor of two of the outcomes needed in "
        f"{np.mean(np.abs(np.log2(known)) <= 1):.0%}, 10 % are below {np.quantile(known, 0.1):.2f} "
        f"of them"
    )


def _ratios() -> Iterator[float]:
    """Yield predicted over needed outcomes; the need is known only up to a round's outcomes."""
    for ease in EASE.values():
        for n_batch in (150, 370):
            for seed in range(10):
                *pilots, last = lender(ease, n_batch, seed)
                if last.status != "certified":
                    continue
                for pilot in pilots:
                    least = pilots[-1].n_outcomes - pilot.n_outcomes
                    most = last.n_outcomes - pilot.n_outcomes
                    if pilot.n_outcomes:
                        yield pilot.more_outcomes / np.clip(
                            pilot.more_outcomes, max(least, 1), most
                        )


def main() -> None:
    """Print shares of pilots, then the quality of their predictions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LearningWarning)
        for n_batch in (150, 500, 2000):
            print_accepted(f"lender, {n_batch} a round", lambda s, n=n_batch: lender(1.3, n, s))
        if os.environ.get("SECONDLOOK_DATA"):
            print_accepted("German credit", german)
        print_predictions()


if __name__ == "__main__":
    main()
