"""Measure what a certificate earns, and whether certified policies keep their bound.

``FAIRCHANCE_DATA=… python -m benchmarks certified [--part …] [--data …] [--seeds …]`` judges the
policy of each round on all applicants of a data set, not only on the batch of the round. Its parts:
``populations`` (the default settings on four data sets), ``nulls`` (no policy keeps the bound, so
each certificate is false), ``hopeless`` (no policy comes near it: how soon pilots give up),
``controls`` (broken tests, to be caught), ``flipped`` (a history with wrong outcomes), ``groups``
(options about groups), ``floors`` (what a chance for everybody costs) and ``speed``. ``--past``
says how the past selected: on the ``outcome`` (the default), by a cut on ``features`` (three
kinds), a noisy ``human`` who sees features, or ``excluded-group``, on the outcome, but nobody or
one of a group, whose column is a feature. ``--batch`` is the number of applicants in a round, by
default a fortieth of the data set, and a run has as many rounds of 39 as there are applicants for.
Each run is appended to a file, and a repeated command
continues where the last one stopped.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import binom
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairchance import CertifiedClassifier, Revenue
from fairchance.errors import LearningWarning
from fairchance.methods.certified.engine import Engine
from fairchance.simulate.people import Table
from fairchance_lab.baselines.references import ceiling
from fairchance_lab.datasets import load
from fairchance_lab.datasets.download import find
from fairchance_lab.experiments.world_spec import WorldSpec

Floats = NDArray[np.float64]
Row = dict[str, Any]

ALPHA, DELTA, ROUNDS = 0.15, 0.1, 39
LATE = slice(-10, None)  # rounds
GAIN, LOSS = 200.0, 500.0
SEED = 37_000  # not used during development, for which seeds from 17,000 and 27,000 were
NULLS = {"null": 5, "noise": 60}  # numbers of features
HOPELESS = {"hopeless": 600, "hopeless-200": 200}  # applicants per round
DATA = {
    "california": "acs-ca-2018-sample",
    "three-states": "acs-pa-ma-in-2024",
    "adult": "adult",
    "taiwan": "taiwan",
}
EXCLUDED = {"california": "Black", "three-states": "Black", "adult": "Female", "taiwan": "female"}
PASTS = {
    "outcome": ["outcome"],
    "features": ["score 30 %", "score 50 %", "column 30 %"],
    "human": ["human"],
    "excluded-group": ["excluded-group", "excluded-but-one"],
}


@dataclass(frozen=True, eq=False)
class Everybody:
    """All applicants of a data set, with outcomes that methods see of the accepted only."""

    X: pd.DataFrame
    group: NDArray[Any]
    good: NDArray[np.int8]

    def __len__(self) -> int:
        return self.good.size


@cache
def table_of(name: str) -> Table:
    """Return a data set of the catalogue."""
    table = load(DATA[name], group="sex" if name in ("adult", "taiwan") else "race")
    if name != "three-states":
        return table
    rows = np.sort(np.random.default_rng(0).choice(len(table), 60_000, replace=False))
    X, group, outcome = table.X[rows], table.group[rows], table.outcome[rows]
    return replace(table, X=X, group=group, outcome=outcome)


@cache
def everybody(name: str) -> Everybody:
    """Return a data set as its users have it."""
    table = table_of(name)
    X = pd.DataFrame(table.X, columns=list(table.features))
    if name == "adult":  # with its text
        X = pd.read_parquet(find(None, ["uci_adult.parquet"]))[list(table.features)]
    return Everybody(X, table.group, table.outcome)


@cache
def references(name: str) -> tuple[float, float]:
    """Return what the ceiling and logistic with all labels earn per applicant."""
    people, utility = everybody(name), Revenue(GAIN, LOSS)
    world = WorldSpec(DATA[name], n_parts=ROUNDS + 1).build(table_of(name), SEED)
    X = pd.get_dummies(people.X, dtype=float)  # the codes of categories have no order
    logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    score = logistic.fit(X, people.good).predict_proba(X)[:, 1]
    return ceiling(world, utility, ALPHA).point.utility, best_cut(score, people.good)


def best_cut(score: Floats, good: NDArray[np.int8]) -> float:
    """Return what the best cut with FDR ≤ α earns per applicant."""
    order = np.argsort(-score, kind="stable")
    n, n_good = np.arange(1, order.size + 1), np.cumsum(good[order])
    last = np.append(np.diff(score[order]) != 0, True)  # of those with the same score
    allowed = last & (n - n_good <= ALPHA * n)
    earned = GAIN * n_good - LOSS * (n - n_good)
    return float(earned[allowed].max(initial=0.0)) / order.size


def null(seed: int, n_features: int = 5) -> Everybody:
    """Return applicants of whom each is bad with a probability just above α, whatever the features.

    The probability is α + .0001 for even seeds and α + .005 for odd ones.
    """
    rng = np.random.default_rng(seed)
    n = 600 * (ROUNDS + 1)
    X = pd.DataFrame(rng.normal(size=(n, n_features)), columns=[f"x{i}" for i in range(n_features)])
    X["place"] = rng.integers(0, 150, n)
    good = rng.random(n) >= ALPHA + (0.005 if seed % 2 else 0.0001)
    return Everybody(X, np.full(n, "all"), good.astype(np.int8))


def hopeless(seed: int, n_round: int) -> Everybody:
    """Return applicants like those of COMPAS: 45 % are bad, and even the best too often.

    Boosting with all labels finds an FDR of .19 in the best 2 % and .23 in the best 10 %.
    """
    rng = np.random.default_rng(seed)
    n = n_round * (ROUNDS + 1)
    X = pd.DataFrame(rng.normal(size=(n, 6)), columns=[f"x{i}" for i in range(6)])
    score = 0.9 * X.x0 + 0.6 * X.x1 - 0.5 * X.x2 + 0.3 * X.x0 * X.x3
    good = rng.random(n) >= 0.15 + 0.6 / (1 + np.exp(-score))
    return Everybody(X, np.full(n, "all"), good.astype(np.int8))


def people_of(name: str, seed: int) -> Everybody:
    """Return the applicants of a data set, or of a population without a policy that keeps α."""
    if name in HOPELESS:
        return hopeless(seed, HOPELESS[name])
    return null(seed, NULLS[name]) if name in NULLS else everybody(name)


@cache
def lender_scores(name: str) -> tuple[Floats, Floats]:
    """Return standardised scores of a lender: logistic, and the column that tells most alone."""
    people = everybody(name)
    X = pd.get_dummies(people.X, dtype=float)
    logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    columns = X.to_numpy() * np.sign(X.corrwith(pd.Series(people.good)).to_numpy())
    areas = [roc_auc_score(people.good, column) for column in columns.T]
    column = columns[:, int(np.argmax(areas))]
    score = logistic.fit(X, people.good).decision_function(X)
    return (score - score.mean()) / score.std(), (column - column.mean()) / column.std()


def select(
    name: str, people: Everybody, rows: NDArray[np.intp], kind: str, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Return whom a past of a kind accepted among some applicants."""
    if kind in ("outcome", "excluded-group", "excluded-but-one"):
        accepted = rng.random(rows.size) < np.where(people.good[rows] == 1, 0.9, 0.1)
        excluded = (people.group[rows] == EXCLUDED.get(name)) & (kind != "outcome")
        if kind == "excluded-but-one":
            excluded[np.flatnonzero(excluded & accepted)[:1]] = False
        return accepted & ~excluded
    share = 0.5 if kind == "human" else int(kind.split()[1]) / 100
    # Noise of 1e-6 decides between equal values of the column.
    score = lender_scores(name)[int(kind.startswith("column"))][rows]
    score = score + rng.normal(scale=1.0 if kind == "human" else 1e-6, size=rows.size)
    return score >= np.quantile(score, 1 - share)


def stream(
    n_people: int, batch: int | None, rng: np.random.Generator
) -> tuple[NDArray[np.intp], list[NDArray[np.intp]]]:
    """Return who is in the history and in each round, in random order."""
    past, *rounds = np.array_split(rng.permutation(n_people), ROUNDS + 1)
    if batch is None:
        return past, rounds
    rest = np.concatenate(rounds)
    return past, np.split(rest, np.arange(batch, rest.size + 1, batch))[:-1][:ROUNDS]


def play(
    name: str,
    seed: int,
    *,
    method: type[CertifiedClassifier] = CertifiedClassifier,
    flipped: bool = False,
    kind: str = "outcome",
    batch: int | None = None,
    **options: Any,
) -> Row:
    """Run a method for up to 39 rounds after a history.

    Parameters
    ----------
    name
        A data set, each of whose applicants occurs once, in the history or in a round.
    seed
        Seed of the stream and of the method.
    method, options
        The classifier.
    flipped
        Whether the outcomes of the history are recorded the wrong way round.
    kind
        How the past selected.
    batch
        Applicants in a round; None for a fortieth of all.
    """
    people = people_of(name, seed)
    rng = np.random.default_rng(seed)
    past, rounds = stream(len(people), batch, rng)
    good = people.good[past]
    accepted = select(name, people, past, kind, rng)
    classifier = method(
        ALPHA, DELTA, Revenue(GAIN, LOSS), horizon=ROUNDS, random_state=seed, **options
    )
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LearningWarning)
        classifier.fit(
            people.X.iloc[past],
            1 - good if flipped else good,
            accepted=accepted,
            sensitive_features=people.group[past],
        )
        cpu, trace, judge = time.process_time() - start, [], Judge(people, rounds)
        for rows in rounds:
            start = time.process_time()
            batch = classifier.decide(people.X.iloc[rows], sensitive_features=people.group[rows])
            cpu += time.process_time() - start
            judged = {} if name in NULLS else judge(classifier)
            start = time.process_time()
            classifier.observe(batch.ids[batch.accepted], people.good[rows][batch.accepted])
            cpu += time.process_time() - start
            notes = [note.code for note in classifier.rounds_[-1].notes]
            entry = {"certified": bool(batch.certified), "accepted": float(batch.accepted.mean())}
            entry["bad"] = int(np.sum(people.good[rows][batch.accepted] == 0))
            trace.append(entry | {"given_up": "none_in_sight" in notes} | judged)
        messages = sorted({str(warning.message) for warning in caught})
    row = {name: [entry[name] for entry in trace] for name in trace[0]}
    for name in ("ladder", "share", "more_outcomes", "n_outcomes"):  # per group, if certified so
        row[name] = [getattr(record, name) for record in classifier.rounds_]
    return row | {"cpu": cpu, "messages": messages}


class Judge:
    """Judges deployed policies on all applicants, each of whom a ranking scores once.

    What late policies earn is also judged on late applicants, whom no ranking has learned from.
    """

    def __init__(self, people: Everybody, rounds: list[NDArray[np.intp]]) -> None:
        self.people = people
        self.late = np.concatenate(rounds[LATE])
        self.bad = 1 - people.good
        self.groups = {str(name): people.group == name for name in np.unique(people.group)}
        self.known: dict[Any, Any] = {}

    def __call__(self, classifier: CertifiedClassifier) -> Row:
        """Return what the policies of the last round earn, their FDR, and both rates by group."""
        key = tuple((id(part.ladder), part.rung) for part in classifier.deployed_)
        if key not in self.known:
            self.known[key] = self._rates(self._probabilities(classifier))
        return self.known[key]

    def _probabilities(self, classifier: CertifiedClassifier) -> Floats:
        if "features" not in self.known:
            self.known["features"] = classifier._intake.for_scoring(
                classifier, self.people.X, self.people.group, True
            )
        X, group = self.known["features"]
        p = np.empty(len(group))
        for z, part in enumerate(classifier.deployed_):
            rows = classifier._rows_of(group, z)
            if id(part.ladder) not in self.known:  # kept with the ladder, so that ids stay unique
                at = part.ladder.locate(X[rows], group[rows])
                self.known[id(part.ladder)] = part.ladder, at
            p[rows] = part.ladder.policy(self.known[id(part.ladder)][1], part.rung)
        return p

    def _rates(self, p: Floats) -> Row:
        good, bad, groups = self.people.good, self.bad, self.groups.items()
        worth = p * np.where(bad, -LOSS, GAIN)
        return {
            "fdr": float(p @ bad / p.sum()),
            "earned": float(worth.mean()),
            "earned_late": float(worth[self.late].mean()),
            "tpr_by_group": {z: float(p[at] @ good[at] / good[at].sum()) for z, at in groups},
            "fdr_by_group": {z: float(p[at] @ bad[at] / p[at].sum()) for z, at in groups},
        }


# Broken controls.


class _Replaying(Engine):
    """Tests each new ladder on the rounds that its ranking has learned from too."""

    def log(self, prepared: Any, rows: Any) -> None:
        super().log(prepared, rows)
        self.past = [*getattr(self, "past", []), prepared.waiting]

    def _freeze(self, *args: Any) -> None:
        super()._freeze(*args)
        ladder_rows = self.stage.ladder_rows[-1]
        for waiting in getattr(self, "past", []):
            at = ladder_rows.ladder.locate(waiting.X, waiting.group)
            bad = np.zeros(waiting.accepted.size)
            bad[waiting.accepted] = self._outcomes(waiting) != 1
            use = ladder_rows.ladder.worth_betting(at, waiting.p, self.estimates.fdr(ladder_rows))
            applicants = at, waiting.p, waiting.accepted, bad
            bounds = ladder_rows.ladder.ratio_bounds(None)
            ladder_rows.ladder.test(*applicants, ratio_bounds=bounds, use=use)


class _Unweighted(Engine):
    """Tests rounds as if everyone had been accepted with probability 1."""

    def _test(self, waiting: Any) -> None:
        super()._test(replace(waiting, p=np.ones(waiting.p.size)))

    def _choose_bets(self, policy: Any, *, beside: bool) -> Any:
        return [np.ones_like(use) for use in super()._choose_bets(policy, beside=beside)]


class TestsTrainingRounds(CertifiedClassifier):
    """A certificate that tests a ladder on the rounds its ranking learned from."""

    engine = _Replaying

    def _engine(self, n_engines: int, z: int) -> Engine:
        made = super()._engine(n_engines, z)
        return self.engine(made.rules, made.rows, made.n_groups)


class IgnoresPropensities(TestsTrainingRounds):
    """A certificate that takes every logged probability as 1."""

    engine = _Unweighted


# Parts.

GROUP_OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "ranks within groups": {"ranks": "within_group"},
    "certificate per group": {"certify": "per_group"},
    "floor .003": {"floor": 0.003},
    "floor .01": {"floor": 0.01},
}


def variants(part: str) -> dict[str, dict[str, Any]]:
    """Return the kinds of runs of a part, each with its options of ``play``."""
    if part == "flipped":
        return {"flipped history": {"flipped": True}}
    if part == "controls":
        return {
            "tests training rounds": {"method": TestsTrainingRounds},
            "ignores propensities": {"method": IgnoresPropensities},
        }
    if part == "floors":
        return {f"floor {floor:g}": {"floor": floor} for floor in (0.0, 0.0005, 0.001, 0.002)}
    return GROUP_OPTIONS if part == "groups" else {"default": {}}


def runs(
    part: str, data: list[str], seeds: range, kinds: list[str], batch: int | None
) -> Iterator[tuple[Row, Callable[[], Row]]]:
    """Yield the runs of a part: what identifies each, and a function that runs it."""
    for seed, name, kind in product(seeds, data, kinds):
        for variant, options in variants(part).items():
            said = variant if kind == "outcome" else f"{variant}, past: {kind}"
            said += "" if batch is None else f", batch: {batch}"
            about = {"part": part, "data": name, "variant": said, "seed": seed}
            yield about, partial(play, name, seed, kind=kind, batch=batch, **options)


def mean(values: list[float]) -> str:
    """Return a mean with its standard error."""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
    return f"{np.mean(values):.3f} ± {error:.3f}"


def print_judged(name: str, variant: str, rows: list[Row]) -> None:
    """Print the results of runs of one kind on a data set."""
    most, logistic = references(name)
    certified = np.array([row["certified"] for row in rows])
    broken = np.array([row["fdr"] for row in rows]) > ALPHA
    late = np.array([np.mean(row["earned"][LATE]) for row in rows])
    fresh = np.array([np.mean(row["earned_late"][LATE]) for row in rows])
    whole = np.array([np.mean(row["earned"]) for row in rows])
    first = np.where(certified.any(axis=1), certified.argmax(axis=1) + 1.0, np.nan)
    pilots, kept = ~certified, (certified & broken).any(axis=1)
    print(f"\n{name}, {variant}, {len(rows)} runs (ceiling {most:.1f}, logistic {logistic:.1f})")
    lines = {
        "late share of the ceiling": mean(list(late / most)),
        "the same on late applicants, and the least": f"{mean(list(fresh / most))}, "
        f"{fresh.min() / most:.3f}",
        "late share of logistic with all labels": mean(list(late / logistic)),
        "share of the ceiling over all rounds": mean(list(whole / most)),
        "first certificate, mean and worst": f"{np.nanmean(first):.1f}, {np.nanmax(first):.0f}"
        if certified.any()
        else "none",
        "runs certified by round 20": f"{np.sum(first <= 20)} of {len(rows)}",
        "runs never certified": f"{np.sum(~certified.any(axis=1))} of {len(rows)}",
        "certified rounds that break α": f"{np.sum(certified & broken)} of {np.sum(certified)}",
        "runs with such a round": f"{np.sum(kept)} of {len(rows)}",
        "pilot rounds that break α": f"{np.sum(pilots & broken)} of {np.sum(pilots)}",
        "rounds without a policy at α in sight": f"{np.sum([row['given_up'] for row in rows])}",
        "share accepted by pilots": spread(np.array([r["accepted"] for r in rows])[pilots]),
        "their predictions of outcomes needed": predictions(rows),
        "CPU seconds a run": f"{np.mean([row['cpu'] for row in rows]):.1f}",
    }
    for rate in ("tpr", "fdr"):
        for group in rows[0][f"{rate}_by_group"][0]:
            values = [r[group] for row in rows for r in row[f"{rate}_by_group"][LATE]]
            lines[f"late {rate.upper()} of {group}"] = f"{np.mean(values):.2f}"
    for text, value in lines.items():
        print(f"  {text:43s} {value}", flush=True)


def predictions(rows: list[Row]) -> str:
    """Return how often ``more_outcomes`` was near the outcomes that the first certificate took."""
    ratios = []
    for row in rows:
        if not any(row["certified"]) or len(row["n_outcomes"]) > len(row["certified"]):
            continue
        first = row["certified"].index(True)
        for more, n in zip(row["more_outcomes"][:first], row["n_outcomes"][:first], strict=True):
            # The need is known only up to the outcomes of a round.
            least, most = row["n_outcomes"][first - 1] - n, row["n_outcomes"][first] - n
            if n:
                ratios.append(more / np.clip(more, max(least, 1), most))
    known = np.array(ratios)[np.isfinite(ratios)]
    if known.size == 0:
        return "none"
    near = np.mean(np.abs(np.log2(known)) <= 1)
    return f"{near:.0%} of {known.size} within a factor of two, {len(ratios) - known.size} unknown"


def spread(values: Floats) -> str:
    """Return the least, the median and the largest value."""
    if values.size == 0:
        return "none"
    return f"{values.min():.0%} to {values.max():.0%} (median {np.median(values):.0%})"


def print_nulls(name: str, variant: str, rows: list[Row]) -> None:
    """Print how many null runs were certified, which at most δ of them may be."""
    n_false = sum(any(row["certified"]) for row in rows)
    surprise = binom.sf(n_false - 1, len(rows), DELTA)
    print(
        f"\n{name}, {variant}: {n_false} of {len(rows)} runs certified (allowed {DELTA:.0%}; as "
        f"many or more have probability {surprise:.3g} if it is kept), "
        f"CPU seconds a run {np.mean([row['cpu'] for row in rows]):.1f}",
        flush=True,
    )


def print_hopeless(name: str, variant: str, rows: list[Row]) -> None:
    """Print how many pilots broke α before they gave up, and what exploration cost afterwards."""
    certified, given_up = (
        np.array([row[key] for row in rows]) for key in ("certified", "given_up")
    )
    broken = np.array([row["fdr"] for row in rows]) > ALPHA
    full = np.sum(broken & ~certified & ~given_up, axis=1)
    bad = np.array([row["bad"] for row in rows])
    print(
        f"\n{name}, {variant}, {len(rows)} runs: pilot rounds above α before giving up, mean "
        f"{full.mean():.1f}, most {full.max()} of {ROUNDS}; bad applicants a round before "
        f"{bad[~given_up].mean():.1f}, after {bad[given_up].mean():.1f} (price "
        f"{HOPELESS[name] / 200:g}); certified {np.sum(certified)}",
        flush=True,
    )


def print_results(rows: list[Row]) -> None:
    """Print the results of a part."""
    kinds = dict.fromkeys((row["data"], row["variant"]) for row in rows)
    for name, variant in kinds:
        chosen = [row for row in rows if (row["data"], row["variant"]) == (name, variant)]
        if name in NULLS:
            print_nulls(name, variant, chosen)
        elif name in HOPELESS:
            print_hopeless(name, variant, chosen)
        else:
            print_judged(name, variant, chosen)
        counts: dict[str, int] = {}
        for message in (message for row in chosen for message in row["messages"]):
            counts[message] = counts.get(message, 0) + 1
        for message, n in counts.items():
            print(f"  in {n} runs: {message}")


def measure(
    part: str, data: list[str], seeds: range, kinds: list[str], batch: int | None, out: Path
) -> None:
    """Run what is not in the file yet, append each run to it, and print the results."""
    saved = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    keys = ("part", "data", "variant", "seed", "commit")
    done = {tuple(row[key] for key in keys): row for row in saved}
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    ).stdout.strip()
    rows = []
    for about, run in runs(part, data, seeds, kinds, batch):
        about["commit"] = commit
        key = tuple(about[name] for name in keys)
        if key not in done:
            done[key] = about | run()
            out.parent.mkdir(parents=True, exist_ok=True)
            with out.open("a") as file:
                file.write(json.dumps(done[key]) + "\n")
            print(*key, "done", flush=True)
        rows.append(done[key])
    print_results(rows)


def print_speed() -> None:
    """Print the CPU time of a freeze and of a large batch, and the rounds with a fit."""
    people, rng = everybody("california"), np.random.default_rng(SEED)
    past, *rounds = np.split(rng.permutation(len(people)), 44_000 + 250 * np.arange(31))
    accepted = rng.random(past.size) < np.where(people.good[past] == 1, 0.9, 0.1)
    classifier = CertifiedClassifier(ALPHA, DELTA, Revenue(GAIN, LOSS), horizon=30, random_state=0)
    classifier.fit(people.X.iloc[past], people.good[past], accepted=accepted)
    learn, fitted, freezes = HistGradientBoostingClassifier.fit, [], {}
    for t, rows in enumerate(rounds[:30], 1):
        with patch.object(HistGradientBoostingClassifier, "fit", autospec=True) as fit:
            fit.side_effect = learn
            spent, start = classifier.rounds_[-1].delta_spent if t > 1 else 0.0, time.process_time()
            batch = classifier.decide(people.X.iloc[rows])
            seconds = time.process_time() - start
            classifier.observe(batch.ids[batch.accepted], people.good[rows][batch.accepted])
        if classifier.rounds_[-1].delta_spent > spent:
            freezes[t] = seconds
        fitted += [t] * fit.called
    n_known = accepted.sum() + classifier.rounds_[-1].n_outcomes
    print(
        f"\na freeze with {accepted.sum():,} to {n_known:,} known outcomes: at most "
        f"{max(freezes.values()):.1f} CPU seconds"
    )
    print(f"  rounds with a freeze {list(freezes)}, rounds with a fit of trees {fitted}")
    million = people.X.iloc[rng.integers(len(people), size=1_000_000)]
    start = time.process_time()
    classifier.decide(million)
    print(f"decide 1,000,000 applicants: {time.process_time() - start:.1f} CPU seconds", flush=True)


# Default data sets and numbers of runs.
PARTS: dict[str, tuple[list[str], int]] = {
    "populations": (list(DATA), 5),
    "nulls": (["null"], 300),
    "hopeless": (list(HOPELESS), 20),
    "controls": (["california", "noise"], 5),
    "flipped": (list(DATA), 5),
    "groups": (["california", "adult"], 4),
    "floors": (list(DATA), 3),
}


def main(arguments: list[str] | None = None) -> None:
    """Measure the parts that are asked for, by default all of them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks certified", description=__doc__)
    parser.add_argument("--part", nargs="*", choices=[*PARTS, "speed"], default=[*PARTS, "speed"])
    parser.add_argument("--data", nargs="*", choices=[*DATA, *NULLS, *HOPELESS])
    parser.add_argument("--seeds", type=int, help="runs of each kind")
    parser.add_argument("--first-seed", type=int, default=SEED)
    parser.add_argument("--past", choices=PASTS, default="outcome", help="how the past selected")
    parser.add_argument("--batch", type=int, help="applicants in a round")
    parser.add_argument("--out", type=Path, default=Path("results/certified.jsonl"))
    options = parser.parse_args(arguments)
    for part in options.part:
        if part == "speed":
            print_speed()
            continue
        data, n = PARTS[part]
        seeds = range(options.first_seed, options.first_seed + (options.seeds or n))
        kinds, batch = PASTS[options.past], options.batch
        measure(part, options.data or data, seeds, kinds, batch, options.out)


if __name__ == "__main__":
    main()
