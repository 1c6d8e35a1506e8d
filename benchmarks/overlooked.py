"""Measure what becomes of a group that the past never accepted, and of the rule that finds it.

``FAIRCHANCE_DATA=… python -m benchmarks overlooked [--part …] [--data …] [--seeds …]``. Its parts:
``left-out`` (the share of the rejected that the rule leaves out if nobody was excluded; at most 1 %
may be), ``certified`` and ``plain`` (late true positive rates of an excluded group, whose column is
a feature, and of the others, with and without the rule on the same seeds, and what the rule earns;
also with one accepted applicant of the group). Rates are those of the policies of the last ten
rounds, judged on all applicants.
"""

from __future__ import annotations

import argparse
import warnings
from unittest.mock import patch

import numpy as np
from scipy.stats import t as student

from benchmarks.certified import (
    ALPHA,
    DATA,
    EXCLUDED,
    GAIN,
    LATE,
    LOSS,
    ROUNDS,
    everybody,
    play,
    select,
)
from fairchance import FdrBudget, PartialFeedbackClassifier, Revenue
from fairchance.errors import LearningWarning
from fairchance.learners import overlooked
from fairchance.learners.overlooked import Overlooked
from fairchance.people.columns import TableColumns

SEED = 57_000  # not used during development, for which seeds from 17,000, 27,000 and 47,000 were
HISTORIES = (1_300, 5_000)  # applicants of a history in which nobody was excluded
PASTS = ("excluded-group", "excluded-but-one")
Result = tuple[float, float, float, int]  # TPR of the group and of the others, earned, broken


def left_out(name: str, n: int, seed: int) -> float:
    """Return the share of the rejected with an overlooked value if nobody was excluded."""
    people, rng = everybody(name), np.random.default_rng(seed)
    X = TableColumns.of(people.X).codes(people.X)
    rows = rng.permutation(len(people))[:n]
    accepted = select(name, people, rows, "outcome", rng)
    rejected = X[rows][~accepted]
    return float(Overlooked.of(X[rows][accepted], rejected).among(rejected).mean())


def print_left_out(name: str, first: int, n_seeds: int) -> None:
    """Print the mean and the largest share."""
    for n in HISTORIES:
        shares = [left_out(name, n, first + i) for i in range(n_seeds)]
        print(
            f"{name}, history of {n:,} without exclusion: {np.mean(shares):.2%} of the rejected "
            f"left out, at most {max(shares):.2%} ({n_seeds} seeds)",
            flush=True,
        )


def certified(name: str, past: str, seed: int) -> Result:
    """Return the late rates of the certified method."""
    row = play(name, seed, kind=past)
    late = row["tpr_by_group"][LATE]
    others = next(group for group in late[0] if group != EXCLUDED[name])
    n_broken = sum(c and fdr > ALPHA for c, fdr in zip(row["certified"], row["fdr"], strict=True))
    rates = (float(np.mean([tpr[group] for tpr in late])) for group in (EXCLUDED[name], others))
    return *rates, float(np.mean(row["earned"])), n_broken


def plain(name: str, past: str, seed: int) -> Result:
    """Return the late rates of Algorithm 1."""
    people, rng = everybody(name), np.random.default_rng(seed)
    rows, *rounds = np.array_split(rng.permutation(len(people)), ROUNDS + 1)
    accepted = select(name, people, rows, past, rng)
    method = PartialFeedbackClassifier(Revenue(GAIN, LOSS), FdrBudget(ALPHA), random_state=seed)
    method.fit(people.X.iloc[rows], people.good[rows], accepted=accepted)
    good, mine = people.good == 1, people.group == EXCLUDED[name]
    earned, rates = 0.0, []
    for batch in rounds:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LearningWarning)
            taken = method.decide(people.X.iloc[batch])
            method.observe(taken.ids[taken.accepted], people.good[batch][taken.accepted])
        earned += float(np.where(good[batch], GAIN, -LOSS)[taken.accepted].sum())
        if len(rounds) - len(method.rounds_) < -LATE.start:
            chance = method.acceptance_probability(people.X)
            rates.append([chance[good & who].mean() for who in (mine, ~mine)])
    late = np.mean(rates, axis=0)
    return float(late[0]), float(late[1]), earned / sum(map(len, rounds)), 0


def print_method(name: str, method: str, first: int, n_seeds: int) -> None:
    """Print rates with and without the rule, and the paired difference in what they earn."""
    run = {"certified": certified, "plain": plain}[method]
    for past in PASTS:
        seeds = range(first, first + n_seeds)
        ours = np.array([run(name, past, seed) for seed in seeds])
        with patch.object(overlooked, "_SURPRISE", 1e-300):
            without = np.array([run(name, past, seed) for seed in seeds])
        difference = ours[:, 2] - without[:, 2]
        error = difference.std(ddof=1) / np.sqrt(n_seeds) if n_seeds > 1 else np.nan
        p = student.cdf(difference.mean() / error, n_seeds - 1)
        ratio = ours[:, 0].mean() / ours[:, 1].mean()
        runs = [mine / others for mine, others, *_ in ours if others > 0]  # Algorithm 1 may stop
        print(
            f"{name}, {method}, {past}: late TPR of {EXCLUDED[name]} {ours[:, 0].mean():.3f} "
            f"(without the rule {without[:, 0].mean():.3f}), of the others {ours[:, 1].mean():.3f} "
            f"({without[:, 1].mean():.3f}); ratio {ratio:.3f}, least of a run {min(runs):.3f}; "
            f"earned per applicant over all rounds {ours[:, 2].mean():.2f} "
            f"({without[:, 2].mean():.2f}), difference {difference.mean():+.2f} ± {error:.2f} "
            f"(probability of one so low {p:.2f}); certified rounds above α "
            f"{ours[:, 3].sum():.0f}; {n_seeds} seeds",
            flush=True,
        )


def main(arguments: list[str] | None = None) -> None:
    """Measure the parts that are asked for, by default all of them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks overlooked", description=__doc__)
    parts = ("left-out", "certified", "plain")
    parser.add_argument("--part", nargs="*", choices=parts, default=list(parts))
    parser.add_argument("--data", nargs="*", choices=DATA)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=SEED)
    options = parser.parse_args(arguments)
    for part in options.part:
        if part == "left-out":
            for name in options.data or DATA:
                print_left_out(name, options.first_seed, 4 * options.seeds)
        else:
            for name in options.data or ("california", "three-states"):
                print_method(name, part, options.first_seed, options.seeds)


if __name__ == "__main__":
    main()
