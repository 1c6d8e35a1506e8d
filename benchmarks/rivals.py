"""Compare the certified method with what others would do: ``python -m benchmarks rivals``.

Four methods live through the same 39 rounds after the same history, and see the outcomes of those
whom they accept:

- ``certified``: ``CertifiedClassifier`` with its defaults;
- ``practice``: boosted trees on the accepted with known outcomes, cut where their own cross-fitted
  FDR is α, refitted every three rounds;
- ``mapie``: the same trees on two thirds of these applicants, cut by MAPIE's
  ``BinaryClassificationController`` on the others (precision 1 − α, confidence 1 − δ); it assumes
  that labels are a random sample, which labels of accepted applicants are not (``pip install
  mapie``; left out without it);
- ``algorithm-1``: ``PartialFeedbackClassifier`` with its defaults.

What they earn is counted on the batches, as a share of the ceiling (boosted trees with everybody's
label); the FDR is that of all accepted in the rounds named.
"""

from __future__ import annotations

import argparse
import importlib.util
import warnings
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import cross_val_predict

from benchmarks.certified import (
    ALPHA,
    DATA,
    DELTA,
    GAIN,
    LATE,
    LOSS,
    PASTS,
    ROUNDS,
    everybody,
    references,
    select,
)
from fairchance import CertifiedClassifier, FdrBudget, PartialFeedbackClassifier, Revenue

Bools = NDArray[np.bool_]
SEED = 61_000
EARLY = 10  # rounds
REFIT = 3  # rounds
FALLBACK = 0.02  # of applicants, the best of whom are accepted if no cut keeps α


class Practice:
    """Boosted trees on the accepted, and a cut that keeps α among them."""

    def __init__(self) -> None:
        self.X, self.good = [], []
        self.age = 0

    def observe(self, X: pd.DataFrame, good: NDArray[Any]) -> None:
        """Take in applicants with outcomes."""
        self.X.append(X)
        self.good.append(good)

    def decide(self, X: pd.DataFrame) -> Bools:
        """Return who is accepted."""
        if self.age % REFIT == 0:
            self.refit(pd.concat(self.X), np.concatenate(self.good))
        self.age += 1
        score = self.model.predict_proba(X)[:, 1]
        cut = np.quantile(score, 1 - FALLBACK) if np.isnan(self.cut) else self.cut
        return np.asarray(score >= cut)

    def refit(self, X: pd.DataFrame, good: NDArray[Any]) -> None:
        """Fit the trees, and choose the cut by scores of models that have not seen a row."""
        score = cross_val_predict(new_trees(), X, good, cv=5, method="predict_proba")[:, 1]
        order = np.argsort(-score)
        bad = np.cumsum(1 - good[order]) / np.arange(1, order.size + 1)
        kept = np.flatnonzero(bad <= ALPHA)
        self.cut = float(score[order][kept[-1]]) if kept.size else np.nan
        self.model = new_trees().fit(X, good)


class Mapie(Practice):
    """The same trees with MAPIE's certified precision, calibrated on the accepted."""

    def refit(self, X: pd.DataFrame, good: NDArray[Any]) -> None:
        """Fit the trees to two thirds, and let MAPIE choose the cut on the others."""
        from mapie.risk_control import BinaryClassificationController  # noqa: PLC0415 - optional

        held_out = np.random.default_rng(self.age).permutation(good.size) % 3 == 0
        self.model = new_trees().fit(X[~held_out], good[~held_out])
        controller = BinaryClassificationController(
            self.model.predict_proba, "precision", 1 - ALPHA, confidence_level=1 - DELTA
        )
        controller.calibrate(X[held_out], good[held_out])
        best = controller.best_predict_param
        self.cut = np.nan if best is None else float(best)


class Ours:
    """A classifier of ours, as one of the methods."""

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    def decide(self, X: pd.DataFrame) -> Bools:
        """Return who is accepted."""
        self.batch = self.classifier.decide(X)
        return np.asarray(self.batch.accepted)

    def observe(self, X: pd.DataFrame, good: NDArray[Any]) -> None:  # noqa: ARG002
        """Take in the outcomes of the last batch."""
        self.classifier.observe(self.batch.ids[self.batch.accepted], good)


def new_trees() -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(
        learning_rate=0.08, max_leaf_nodes=8, max_iter=100, random_state=0
    )


def start(method: str, X: pd.DataFrame, good: NDArray[Any], accepted: Bools, seed: int) -> Any:
    """Return a method that knows the history."""
    utility = Revenue(GAIN, LOSS)
    if method in ("practice", "mapie"):
        rival = Practice() if method == "practice" else Mapie()
        rival.observe(X[accepted], good[accepted])
        return rival
    classifier = (
        CertifiedClassifier(ALPHA, DELTA, utility, horizon=ROUNDS, random_state=seed)
        if method == "certified"
        else PartialFeedbackClassifier(utility, FdrBudget(ALPHA), random_state=seed)
    )
    return Ours(classifier.fit(X, np.where(accepted, good, 0), accepted=accepted))


def play(name: str, kind: str, method: str, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return how many good and bad applicants a method accepted in each round."""
    people, rng = everybody(name), np.random.default_rng(seed)
    X = people.X.apply(lambda x: x if is_numeric_dtype(x) else x.astype("category"))
    past, *rounds = np.array_split(rng.permutation(len(people)), ROUNDS + 1)
    accepted = select(name, people, past, kind, rng)
    player = start(method, X.iloc[past], people.good[past], accepted, seed)
    counts = np.zeros((ROUNDS, 2))
    for t, rows in enumerate(rounds):
        taken = rows[player.decide(X.iloc[rows])]
        good = people.good[taken]
        counts[t] = good.sum(), (1 - good).sum()
        player.observe(X.iloc[taken], good)
    return counts, np.array([rows.size for rows in rounds])


def main(arguments: list[str] | None = None) -> None:
    """Print a row for each data set, past and method."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks rivals", description=__doc__)
    parser.add_argument("--data", nargs="*", choices=DATA, default=[*DATA])
    parser.add_argument("--past", nargs="*", choices=PASTS, default=[*PASTS])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=SEED)
    options = parser.parse_args(arguments)
    methods = ["certified", "practice", "mapie", "algorithm-1"]
    if importlib.util.find_spec("mapie") is None:
        methods.remove("mapie")
        print("MAPIE is not installed and is left out: pip install mapie")
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    kinds = [kind for past in options.past for kind in PASTS[past]]
    print("| data | past | method | all rounds | late | FDR | FDR early | FDR late |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for name, kind, method in product(options.data, kinds, methods):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            played = [play(name, kind, method, seed) for seed in seeds]
        counts, sizes = (sum(parts) for parts in zip(*played, strict=True))
        earned, late = counts @ [GAIN, -LOSS], LATE
        most = references(name)[0]
        shares = [earned[some].sum() / sizes[some].sum() / most for some in (slice(None), late)]
        fdr = [
            counts[some, 1].sum() / max(1, counts[some].sum())
            for some in (slice(None), slice(EARLY), late)
        ]
        cells = [f"{value:.2f}" for value in shares] + [f"{value:.3f}" for value in fdr]
        print(f"| {name} | {kind} | {method} | {' | '.join(cells)} |", flush=True)
