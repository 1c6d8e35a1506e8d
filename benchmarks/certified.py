"""Measure the cost of a certificate, and whether certified policies keep it.

``SECONDLOOK_DATA=… python -m benchmarks certified`` computes the false discovery rate and revenue
of each round's policy over all applicants of a data set, not only over the batch of the round.
Without SECONDLOOK_DATA it uses only German credit and populations with known truth.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace

import numpy as np

from secondlook.lab.datasets import load
from secondlook.lab.experiments.certificates import summarise_certificates
from secondlook.lab.experiments.comparison import CEILING, compared
from secondlook.lab.experiments.methods import Setup, build
from secondlook.lab.experiments.paper import paper_experiment
from secondlook.lab.experiments.runner import Run, run_experiment
from secondlook.lab.experiments.spec import Experiment
from secondlook.lab.experiments.world_spec import WorldSpec
from secondlook.lab.simulate.people import Table
from secondlook.lab.simulate.populations import Lender, constrained_optimum
from secondlook.lab.simulate.run import run

SEED = 3000  # not used during development
TIMED = 3  # runs


@dataclass(frozen=True)
class Slanted(Lender):
    """A population of mostly good, or mostly bad, applicants."""

    shift: float = 0.0

    def probability_good(self, people):
        """Return P(repays | x), with all log-odds shifted."""
        p = super().probability_good(people)
        return 1 / (1 + (1 - p) / p * np.exp(-self.shift))


def cpu_seconds(experiment, source):
    """Return the CPU time of a run of the method, without its evaluation."""
    spent = 0.0
    for seed in range(TIMED):
        world = experiment.world.build(source, seed)
        appended = not (isinstance(source, Table) and source.group_feature is not None)
        setup = Setup(world.history(), experiment.goal, appended, seed, n_rounds=world.n_rounds)
        start = time.process_time()
        for _ in run(build("certified", world, setup), world):
            pass
        spent += time.process_time() - start
    return spent / TIMED


def show(name, experiment, source, repetitions):
    """Run an experiment and print its results."""
    experiment = replace(
        experiment,
        methods=("certified", CEILING),
        repetitions=repetitions,
        seed=SEED,
        judged=True,
    )
    results = run_experiment(experiment, source, Run())
    method, times = compared(results)[0], summarise_certificates(results, "certified", 0)
    print(f"\n{name}, {repetitions} runs")
    for period, earned in method.earned.items():
        print(f"  {period:32s} {earned.share:.3f} ± {earned.standard_error:.3f}")
    for kind, breaks in (("certified", method.certified), ("pilot", method.uncertified)):
        print(f"  {kind + ' rounds that break α':32s} {breaks.share_of_rounds:.3f}")
        print(f"  {'runs with such a round':32s} {breaks.broken_runs} of {breaks.runs}")
    first = f"{times.first_median:g} ({times.first_earliest:g} to {times.first_latest:g})"
    print(f"  {'first certificate, median':32s} {first}")
    print(f"  {'runs never certified':32s} {times.never_share:.3f}")
    print(f"  {'CPU seconds a run':32s} {cpu_seconds(experiment, source):.2f}", flush=True)


def main() -> None:
    """Print the results of all data sets and populations."""
    show("German credit", paper_experiment("german"), load("german"), 40)
    lender = Experiment("lender", WorldSpec("lender", n_batch=780, n_rounds=39), (CEILING,))
    goal = lender.goal
    for name, shift in (("most are good", 1.4), ("few are good", -2.35)):
        source = Slanted(shift=shift)
        best = constrained_optimum(source, goal.utility, goal.alpha, rng=np.random.default_rng(0))
        share = f"the best rule accepts {best.selection_rate:.0%}"
        show(f"A population where {name} ({share})", lender, source, 8)
    if "SECONDLOOK_DATA" not in os.environ:
        return
    for data, repetitions in (("acs-ca-2018-sample", 40), ("acs-pa-ma-in-2024", 10)):
        people = load(data, group="race")
        show(data, paper_experiment("adult-race", data), people, repetitions)


if __name__ == "__main__":
    main()
