"""Draw the picture of the README from the results of ``secondlook compare``.

Run ``secondlook compare adult-race --data-set acs-ca-2018-sample --repetitions 6 --methods
plain,certified --out results/picture``, then ``python docs/draw_picture.py results/picture
docs/certified-against-plain.svg``.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from secondlook.lab.experiments.comparison import (
    CEILING,
    LOGISTIC,
    population_fdr,
    population_utility,
)
from secondlook.lab.experiments.results import read_results

NAMES = {"plain": "plain (the paper's Algorithm 1)", "certified": "certified"}
COLOURS = {"plain": "#d55e00", "certified": "#0072b2"}


def draw(folder: Path, out: Path) -> None:
    """Write one picture: money earned and mistakes made by the policy of each round."""
    results = read_results(folder / "results.parquet")
    methods = list(results.methods)
    alpha = float(results.alphas[0])
    fdr, utility = population_fdr(results)[0], population_utility(results)[0]
    ceiling, logistic = (utility[methods.index(name)].mean() for name in (CEILING, LOGISTIC))
    plt.rcParams.update({"font.size": 9, "svg.hashsalt": "secondlook"})
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 2.9), layout="constrained")
    for name, label in NAMES.items():
        row = methods.index(name)
        rounds = np.arange(1, fdr.shape[2] + 1)
        left.plot(rounds, utility[row].mean(0) / ceiling, color=COLOURS[name], label=label)
        low, middle, high = np.nanquantile(fdr[row], [0.1, 0.5, 0.9], axis=0)
        right.plot(rounds, middle, color=COLOURS[name], label=label)
        right.fill_between(rounds, low, high, color=COLOURS[name], alpha=0.2, linewidth=0)
    left.axhline(1, color="grey", linewidth=0.8, linestyle="--")
    left.axhline(logistic / ceiling, color="grey", linewidth=0.8, linestyle=":")
    below = (1, logistic / ceiling)
    left.annotate("logistic with all labels", below, (0, 3), textcoords="offset points")
    left.set(title="earned, as a share of the ceiling", xlabel="round", ylim=(0, 1.1))
    right.axhline(alpha, color="black", linewidth=0.8, linestyle="--")
    end = (rounds[-1], alpha)
    right.annotate("α, the bound", end, (0, 3), textcoords="offset points", ha="right")
    right.set(title="bad among the accepted (80 % of runs)", xlabel="round", ylim=(0, None))
    left.legend(frameon=False, loc="lower right")
    figure.savefig(out, metadata={"Date": None})


if __name__ == "__main__":
    draw(Path(sys.argv[1]), Path(sys.argv[2]))
