"""One decide on a million people with 40 past models, and one whole round, against their floors.

The floor of scoring is the bare product ``X @ W`` of the same dtype; the floor of a round is one
fit of the labelled rows plus one such scoring.
"""

from __future__ import annotations

import copy
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from scipy.special import expit

from secondlook import (
    ConstrainedLogistic,
    MeanPastScore,
    PartialFeedbackClassifier,
    Revenue,
    SummedAcceptance,
)

N, FEATURES, MODELS, REPEATS = 1_000_000, 10, 40, 15


def people(n: int, rng: np.random.Generator, dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """Draw people of whom about a fifth are worth accepting."""
    X = rng.normal(size=(n, FEATURES)).astype(dtype)
    good = rng.random(n) < expit(-0.5 + 2 * X[:, 0] + X[:, 1])
    return X, good.astype(int)


def after_rounds(rule: object, dtype: type, rng: np.random.Generator) -> PartialFeedbackClassifier:
    """Return a classifier that has logged the policies of 40 rounds and learned the next f_t."""
    X, y = people(4000, rng, dtype)
    accepted = rng.random(4000) < expit(2 * X[:, 0])
    classifier = PartialFeedbackClassifier(
        Revenue(gain=200, loss=500), coverage=rule, random_state=0
    )
    classifier.fit(X, y, accepted=accepted)
    for _ in range(MODELS):
        X, y = people(2000, rng, dtype)
        decided = classifier.decide(X)
        classifier.observe(decided.ids[decided.accepted], y[decided.accepted])
    classifier._classifier_of_round(MODELS + 1)
    return classifier


def medians(*tasks: Callable[[], object]) -> list[float]:
    """Return the median CPU time of each task, all run in turn several times."""
    times: list[list[float]] = [[] for _ in tasks]
    for _ in range(REPEATS):
        for task, mine in zip(tasks, times, strict=True):
            start = time.process_time()
            task()
            mine.append(time.process_time() - start)
    return [float(np.median(one)) for one in times]


def fresh(classifier: PartialFeedbackClassifier) -> Callable[[], PartialFeedbackClassifier]:
    """Return a source of copies made beforehand, so that copying is not timed."""
    copies = [copy.deepcopy(classifier) for _ in range(REPEATS)]
    return copies.pop


def scoring(dtype: type) -> None:
    rng = np.random.default_rng(0)
    X, _ = people(N, rng, dtype)
    W = rng.normal(size=(FEATURES, MODELS)).astype(dtype)
    numbers = np.arange(10**9, 10**9 + N)[rng.permutation(N)]
    for rule, target in ((MeanPastScore(), "2.0 / 1.5"), (SummedAcceptance(), "4")):
        classifier = after_rounds(rule, dtype, rng)
        source = fresh(classifier)
        bare, ours = medians(lambda: X @ W, lambda source=source: source().decide(X))
        print(
            f"decide, {type(rule).__name__:16s} {dtype.__name__}: {ours / bare:5.2f} x bare X @ W "
            f"({ours * 1e3:.0f} : {bare * 1e3:.0f} ms); target {target}",
            flush=True,
        )
    source, words = fresh(classifier), fresh(classifier)
    texts = np.char.add("application-", numbers.astype(str))
    classifier._intake.id_kind = "i"
    bare, ours = medians(lambda: X @ W, lambda: source().decide(X, ids=numbers))
    print(f"  the same with shuffled integer ids: {ours / bare:5.2f} x ({ours * 1e3:.0f} ms)")

    def with_words() -> None:
        one = words()
        one._intake.id_kind = "U"  # as if the history had had names
        one.decide(X, ids=texts)

    bare, ours = medians(lambda: X @ W, with_words)
    print(f"  the same with string ids: {ours / bare:5.2f} x ({ours * 1e3:.0f} ms)", flush=True)


def whole_round() -> None:
    rng = np.random.default_rng(1)
    X, _ = people(N, rng, np.float64)
    W = rng.normal(size=(FEATURES, MODELS))
    classifier = after_rounds(SummedAcceptance(), np.float64, rng)
    batch, outcomes = people(500_000, rng, np.float64)
    decided = classifier.decide(batch)
    accepted = decided.ids[decided.accepted], outcomes[decided.accepted]
    labelled = classifier._people.parts[0]
    rows, y = labelled.X.copy(), np.maximum(labelled["outcome"], 0)
    learned, deciding = fresh(classifier), fresh(classifier)

    def fit() -> None:
        ConstrainedLogistic().fit(rows, y)

    def score() -> None:
        deciding().decide(X)

    def a_round() -> None:
        learned().observe(*accepted).decide(X)

    bare, one_fit, one_score, everything = medians(lambda: X @ W, fit, score, a_round)
    print(
        f"whole round (observe {accepted[0].size} outcomes, learn from {rows.shape[0]} rows a "
        f"fold, decide {N}; {everything * 1e3:.0f} ms): "
        f"{everything / (one_fit + one_score):.2f} x (fit + decide, {one_fit * 1e3:.0f} + "
        f"{one_score * 1e3:.0f} ms), {everything / (one_fit + bare):.2f} x (fit + bare X @ W); "
        f"target 1.3"
    )


def memory() -> None:
    rng = np.random.default_rng(2)
    classifier = after_rounds(SummedAcceptance(), np.float64, rng)
    X, _ = people(N, rng, np.float64)
    tracemalloc.start()
    classifier.decide(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(f"memory of a round beyond the batch: {peak / X.nbytes:.2f} x the batch; target 3")


def main() -> None:
    for dtype in (np.float64, np.float32):
        scoring(dtype)
    whole_round()
    memory()


if __name__ == "__main__":
    main()
