"""CPU time of one whole run on small data: a history and 39 rounds of 500 people each.

German credit data is resampled if the environment variable ``SECONDLOOK_DATA`` names a folder that
holds ``german.data``; otherwise people with as many features are drawn.
"""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import secondlook as sl
from secondlook.errors import LearningWarning

N_BATCH, N_ROUNDS = 500, 39
TARGET = 0.1  # seconds
# Credit amount, duration, instalment rate, residence since, age, number of credits, people liable.
COLUMNS, STATUS, OUTCOME, WOMEN = (4, 1, 7, 10, 12, 15, 17), 8, 20, ("A92", "A95")

Data = tuple[NDArray[np.float64], NDArray[np.int8], NDArray[np.bool_]]
FAIR = sl.SelectionRateParity(0.05)
VARIANTS: dict[str, dict[str, Any]] = {
    "score-weighted": {},
    "fair fit": {"learner": sl.ConstrainedLogistic(fairness=FAIR)},
    "group shares": {"strategy": sl.GroupShare()},
    "both": {"learner": sl.ConstrainedLogistic(fairness=FAIR), "strategy": sl.GroupShare()},
    "fair threshold": {"fairness": FAIR},
    "fair thresholds": {"fairness": FAIR, "thresholds": "per_group"},
    "mean past score": {"coverage": sl.MeanPastScore()},
}


def everybody(rng: np.random.Generator) -> Data:
    """Return the people there are: features, who is good, and a group, which is a feature too."""
    path = Path(os.environ.get("SECONDLOOK_DATA", "")) / "german.data"
    if path.is_file():
        rows = [line.split() for line in path.read_text().splitlines()]
        X = np.array([[float(row[i]) for i in COLUMNS] for row in rows])
        good = np.array([row[OUTCOME] == "1" for row in rows]).astype(np.int8)
        group = np.array([row[STATUS] in WOMEN for row in rows])
    else:
        X, group = rng.normal(size=(1000, len(COLUMNS))), rng.random(1000) < 0.3
        good = (rng.random(1000) < 1 / (1 + np.exp(-1 - 0.7 * X[:, 0]))).astype(np.int8)
    X = np.column_stack((X, group))
    return (X - X.mean(axis=0)) / X.std(axis=0), good, group


def whole_run(options: dict[str, Any], seed: int) -> float:
    """Return the CPU time of a run, all that the classifier does included."""
    rng = np.random.default_rng(seed)
    X, good, group = everybody(rng)
    batches = rng.integers(len(good), size=(N_ROUNDS + 1, N_BATCH))
    past = batches[0]
    accepted = rng.random(N_BATCH) < np.where(good[past] == 1, 0.9, 0.1)
    start = time.process_time()
    classifier = sl.PartialFeedbackClassifier(
        utility=sl.Revenue(gain=200, loss=500),
        budget=sl.FdrBudget(alpha=0.15),
        random_state=seed,
        **options,
    )
    classifier.fit(X[past], good[past], accepted=accepted, sensitive_features=group[past])
    for batch in batches[1:]:
        decided = classifier.decide(X[batch], sensitive_features=group[batch])
        classifier.observe(decided.ids[decided.accepted], good[batch][decided.accepted])
    return time.process_time() - start


def main(repeat: int = 7) -> None:
    warnings.simplefilter("ignore", LearningWarning)
    with threadpool_limits(1):
        whole_run({}, 0)
        times: dict[str, list[float]] = {name: [] for name in VARIANTS}
        for seed in range(repeat):
            for name, options in VARIANTS.items():
                times[name].append(whole_run(options, seed))
    for name, seconds in times.items():
        print(
            f"one run, {name:16s} {median(seconds):.3f} s (least {min(seconds):.3f}); "
            f"target {TARGET}"
        )


if __name__ == "__main__":
    main()
