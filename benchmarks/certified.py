"""What a certificate costs, and whether it is kept: deployed policies judged on whole populations.

``SECONDLOOK_DATA=… python -m benchmarks certified`` judges each round's policy by its false
discovery rate and revenue over all people of the data set, not over the batch it met. With no data
set at hand it runs on German credit and on populations with known truth.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

import numpy as np

from secondlook import CertifiedClassifier, Revenue
from secondlook.datasets import load
from secondlook.experiments.paper import paper_experiment
from secondlook.simulate.histories import SelectedOnOutcome
from secondlook.simulate.populations import Lender, constrained_optimum
from secondlook.simulate.run import run
from secondlook.simulate.streams import Drawn
from secondlook.simulate.worlds import World

ALPHA = 0.15
FIRST_SEED = 3000  # not used while the method was made


@dataclass(frozen=True)
class Slanted(Lender):
    """Applicants most, or few, of whom are good."""

    shift: float = 0.0

    def probability_good(self, people):
        """Return P(repays | x), with all log-odds shifted."""
        p = super().probability_good(people)
        return 1 / (1 + (1 - p) / p * np.exp(-self.shift))


def judged(world, utility, optimum, **options):
    """Run once; return shares of the optimum, violations and when the first certificate came."""
    stream = [world.full_history(), *(one.applicants for one in world.batches())]
    X = np.concatenate([one.people.X for one in stream])
    group = np.concatenate([one.people.group for one in stream])
    truth = np.concatenate([one.probability_good for one in stream])
    if np.isnan(truth).any():
        truth = np.concatenate([one.outcome for one in stream]).astype(float)
    worth_of = utility.expected(1.0, truth) - utility.expected(0.0, truth)
    past = world.history()
    start = time.process_time()
    method = CertifiedClassifier(
        ALPHA, utility=utility, horizon=world.n_rounds, random_state=0, **options
    ).fit(
        past.people.X,
        past.outcomes,
        accepted=past.accepted,
        sensitive_features=past.people.group,
    )
    worth, fdr, certified, spent = [], [], [], time.process_time() - start
    rounds = run(method, world)
    while True:
        start = time.process_time()
        result = next(rounds, None)
        spent += time.process_time() - start
        if result is None:
            break
        p = method.acceptance_probability(X, sensitive_features=group)
        fdr.append(p @ (1 - truth) / p.sum())
        worth.append(p @ worth_of / X.shape[0])
        certified.append(result.decided.certified)
    worth, fdr, certified = np.array(worth) / optimum, np.array(fdr), np.array(certified)
    late = -len(worth) // 4
    broken = fdr > ALPHA
    return {
        "early": worth[:5].mean(),
        "late": worth[late:].mean(),
        "whole": worth.mean(),
        "late, certified rounds": worth[late:][certified[late:]].mean()
        if certified[late:].any()
        else np.nan,
        "certified rounds that break α": (broken & certified).sum() / max(1, certified.sum()),
        "pilot rounds that break α": (broken & ~certified).sum() / max(1, (~certified).sum()),
        "runs with a broken certificate": float((broken & certified).any()),
        "first certificate": np.argmax(certified) + 1 if certified.any() else np.nan,
        "never certified": float(not certified.any()),
        "CPU seconds": spent,
    }


def show(name, n_seeds, make, utility, optimum, **options):
    found = [
        judged(make(FIRST_SEED + seed), utility, optimum, **options) for seed in range(n_seeds)
    ]
    print(f"\n{name}, {n_seeds} runs")
    for key in found[0]:
        values = np.array([one[key] for one in found])
        total = f" ({int(values.sum())} of {n_seeds})" if "runs" in key or "never" in key else ""
        print(f"  {key:32s} {np.nanmean(values):.3f}{total}", flush=True)


def main() -> None:
    revenue = Revenue(gain=200, loss=500)
    german, table = paper_experiment("german"), load("german")
    show("German credit", 40, lambda s: german.world.build(table, s), revenue, 9.50e3 / 500)
    for name, shift in (("most are good", 1.4), ("few are good", -2.35)):
        population = Slanted(shift=shift)
        best = constrained_optimum(population, revenue, ALPHA, rng=np.random.default_rng(0))
        share = f"the optimum accepts {best.selection_rate:.0%}"
        stream = Drawn(population, 780, 39)
        show(
            f"A population where {name} ({share})",
            8,
            lambda s, stream=stream: World(stream, SelectedOnOutcome(), seed=s),
            revenue,
            best.utility,
        )
    if "SECONDLOOK_DATA" not in os.environ:
        return
    for data, optimum, n_seeds in (
        ("acs-ca-2018-sample", 27.91e3 / 1294, 40),
        ("acs-pa-ma-in-2024", 93.17e3 / 6003.6, 10),
    ):
        experiment, people = paper_experiment("adult-race", data), load(data, group="race")

        def make(seed, experiment=experiment, people=people):
            return experiment.world.build(people, seed)

        show(data, n_seeds, make, revenue, optimum)


if __name__ == "__main__":
    main()
