"""Compare groups under a certificate after biased histories, by ranks and by exploration floor.

``SECONDLOOK_DATA=… python -m benchmarks groups`` runs the certified method on the California sample
after three histories, and evaluates its late policies on the whole sample: their earnings, their
reach, and their mistakes in the smaller group, which a certificate for the population does not
cover.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from secondlook import CertifiedClassifier, GroupShare, ScoreWeighted, Uniform
from secondlook.lab.datasets import load
from secondlook.lab.experiments.methods import Setup, build
from secondlook.lab.experiments.paper import paper_experiment
from secondlook.lab.experiments.world_spec import WorldSpec
from secondlook.lab.simulate.run import run

SEED, RUNS = 4000, 8  # seeds not used during development
DATA, GROUP, SCHOOLING = "acs-ca-2018-sample", "Black", "SCHL"
OUTCOME = {"rule": "outcome", "good": 0.9, "bad": 0.1}
PASTS = {
    "excluded one group": ({"rule": "group", "group": GROUP, "rate": 0.01, "others": 0.6},),
    "accepted the better schooled half": (
        OUTCOME,
        {"rule": "cutoff", "feature": SCHOOLING, "share": 0.5},
    ),
    "selected on the outcome": (OUTCOME,),
}
FLOORS = {
    "none": {},
    ".003 uniform": {"floor": 0.003, "strategy": Uniform()},
    ".003 by score": {"floor": 0.003, "strategy": ScoreWeighted()},
    ".003 by score, group shares": {"floor": 0.003, "strategy": GroupShare()},
}
VARIANTS = [
    (ranks, floor)
    for ranks in ("overall", "within_group")
    for floor in FLOORS
    if ranks == "overall" or floor in ("none", ".003 uniform")
]


def late_policies(method, world, population, alpha):
    """Return mean acceptance probabilities in the last quarter, and the rounds that break α."""
    bad, total, broken, n_certified = 1 - population.good, 0.0, 0, 0
    late = world.n_rounds - world.n_rounds // 4
    for t, result in enumerate(run(method, world), 1):
        p = method.acceptance_probability(
            population.people.X, sensitive_features=population.people.group
        )
        n_certified += result.decided.certified
        broken += bool(result.decided.certified and p @ bad > alpha * p.sum())
        total += p * (t > late)
    return total / (world.n_rounds // 4), broken, n_certified


def main() -> None:
    """Print a table for each history."""
    source, experiment = load(DATA, group="race"), paper_experiment("adult-race", DATA)
    goal = experiment.goal
    schooling = source.X[:, source.features.index(SCHOOLING)]
    less_schooled = schooling < np.median(schooling)
    in_group = source.group == GROUP
    print(f"{RUNS} runs each; in brackets: certified rounds that break α\n")
    for past, rules in PASTS.items():
        spec: WorldSpec = replace(experiment.world, past=rules)
        print(f"The past {past}")
        print(
            f"  {'ranks':14s}{'floor':30s}{'late share':>12s}{'TPR ' + GROUP:>12s}{'others':>8s}"
            f"{'less schooled':>15s}{'FDR ' + GROUP:>11s}"
        )
        results = {variant: [] for variant in VARIANTS}
        breaks = dict.fromkeys(VARIANTS, (0, 0))
        for seed in range(SEED, SEED + RUNS):
            world = spec.build(source, seed)
            population = world.population()
            good = population.good
            gain = goal.utility.expected(1.0, good) - goal.utility.expected(0.0, good)
            history = world.history()
            setup = Setup(history, goal, False, seed, n_rounds=world.n_rounds)
            ceiling = build("ceiling", world, setup).acceptance_probability(
                population.people.X, sensitive_features=population.people.group
            )
            for ranks, floor in VARIANTS:
                method = CertifiedClassifier(
                    goal.alpha,
                    utility=goal.utility,
                    horizon=world.n_rounds,
                    ranks=ranks,
                    random_state=seed,
                    **FLOORS[floor],
                )
                method.fit(
                    history.people.X,
                    history.outcomes,
                    accepted=history.accepted,
                    sensitive_features=history.people.group,
                )
                p, broken, certified = late_policies(method, world, population, goal.alpha)
                sums = breaks[ranks, floor]
                breaks[ranks, floor] = sums[0] + broken, sums[1] + certified
                results[ranks, floor].append(
                    (
                        (p @ gain) / (ceiling @ gain),
                        *(
                            (p * good)[part].sum() / good[part].sum()
                            for part in (in_group, ~in_group, less_schooled)
                        ),
                        (p * (1 - good))[in_group].sum() / p[in_group].sum(),
                    )
                )
        for (ranks, floor), rows in results.items():
            share, *rates = np.mean(rows, axis=0)
            broken, certified = breaks[ranks, floor]
            print(
                f"  {ranks:14s}{floor:30s}{share:12.2f}{rates[0]:12.2f}{rates[1]:8.2f}"
                f"{rates[2]:15.2f}{rates[3]:11.2f}   ({broken} of {certified})",
                flush=True,
            )


if __name__ == "__main__":
    main()
