"""Decide 40 rounds of a synthetic lender and show what was promised, what happened and who gained.

Run it with ``make demo``. The lender's past turned most of group B down. Truth is known here, so
each round shows what only a simulation can: the real share of mistakes and the real optimum.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from secondlook import FdrBudget, GroupShare, PartialFeedbackClassifier, Revenue
from secondlook.metrics import false_discovery_rate, group_rates
from secondlook.simulate.populations import Lender, constrained_optimum
from secondlook.simulate.run import Result, World, run

ALPHA, ROUNDS, BATCH, SEED = 0.15, 40, 1000, 0
UTILITY = Revenue(gain=200, loss=500)
PICTURE = Path("demo/lender.png")


def main() -> None:
    """Run the lender and print what happened."""
    world = World(Lender(), SEED)
    best = constrained_optimum(
        world.population, UTILITY, ALPHA, rng=np.random.default_rng(SEED + 1)
    )
    people, accepted, outcomes = world.history(2 * BATCH)
    classifier = PartialFeedbackClassifier(
        utility=UTILITY,
        budget=FdrBudget(alpha=ALPHA),
        strategy=GroupShare(),
        group_as_feature=True,  # so that the past's treatment of group B is seen, and undone
        random_state=SEED,
    ).fit(people.X, outcomes, accepted=accepted, sensitive_features=people.group)
    before = group_rates(accepted, people.group)
    print(
        f"History: {len(people)} people, {accepted.sum()} accepted "
        f"(group A {before['A']:.0%}, group B {before['B']:.0%}).\n"
        f"Aim: at most {ALPHA:.0%} bad among those accepted (FDR).\n"
        f"Known: share of the batch of whom enough is known; revenue: share of the best possible "
        f"(20 blocks are 100 %).\n"
    )
    print(
        "round  known  accepted  explored   FDR   revenue                   good accepted: A    B"
    )
    results = []
    for result in run(classifier, world, n_rounds=ROUNDS, n_batch=BATCH):
        results.append(result)
        if result.decided.round in (1, 2, 3) or result.decided.round % 5 == 0:
            print(_row(result, best.utility), flush=True)
    print(_summary(results, best.utility, classifier.rounds_))
    _draw(results, best.utility)
    print(f"Picture: {PICTURE.resolve()}")


def _row(result: Result, optimum: float) -> str:
    decided = result.decided
    rates = group_rates(decided.accepted, result.people.group, result.outcomes)
    worth = UTILITY.mean(decided.accepted, result.outcomes) / optimum
    bar = "█" * round(20 * max(0.0, worth))
    return (
        f"{decided.round:5d}  {decided.exploit.mean():5.0%}  {decided.accepted.sum():8d}  "
        f"{decided.explored.sum():8d}  "
        f"{false_discovery_rate(decided.accepted, result.outcomes):.3f}  "
        f"{bar:<24s}  {rates['A']:14.0%}  {rates['B']:4.0%}"
    )


def _summary(results: list[Result], optimum: float, rounds: tuple[object, ...]) -> str:
    accepted = np.concatenate([result.decided.accepted for result in results])
    outcomes = np.concatenate([result.outcomes for result in results])
    late = results[-ROUNDS // 4 :]
    worth = [UTILITY.mean(result.decided.accepted, result.outcomes) for result in late]
    worst = max(false_discovery_rate(one.decided.accepted, one.outcomes) for one in results)
    explored = sum(int(result.decided.explored.sum()) for result in results)
    return (
        f"\nOver {len(rounds)} rounds: {accepted.sum()} accepted, {explored} of them explored, "
        f"FDR {false_discovery_rate(accepted, outcomes):.3f} (worst round {worst:.3f}); revenue "
        f"in the last quarter "
        f"{np.mean(worth) / optimum:.0%} of the constrained optimum."
    )


def _draw(results: list[Result], optimum: float) -> None:
    """Draw FDR, revenue and who is accepted over the rounds."""
    rounds = np.arange(1, len(results) + 1)
    fdr = [false_discovery_rate(one.decided.accepted, one.outcomes) for one in results]
    worth = [UTILITY.mean(one.decided.accepted, one.outcomes) / optimum for one in results]
    good = [group_rates(one.decided.accepted, one.people.group, one.outcomes) for one in results]
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    axes[0].plot(rounds, fdr, color="#0072B2")
    axes[0].axhline(ALPHA, color="#D55E00", linestyle="--")
    axes[0].annotate("bound aimed at", (rounds[-1], ALPHA), ha="right", va="bottom")
    axes[0].set(title="Bad among the accepted (FDR)", xlabel="round", ylim=(0, 2 * ALPHA))
    axes[1].plot(rounds, worth, color="#0072B2")
    axes[1].axhline(1, color="#D55E00", linestyle="--")
    axes[1].set(title="Revenue, as a share of the optimum", xlabel="round", ylim=(0, 1.3))
    for name, colour in (("A", "#0072B2"), ("B", "#E69F00")):
        rate = [rates[name] for rates in good]
        axes[2].plot(rounds, rate, color=colour)
        axes[2].annotate(f" {name}", (rounds[-1], rate[-1]), va="center", color=colour)
    axes[2].set(
        title="Accepted among the good, by group", xlabel="round", ylim=(0, 1), xlim=(0, 43)
    )
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=120)


if __name__ == "__main__":
    main()
