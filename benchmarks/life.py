"""Measure what a lender earns who starts beside a business that exists.

``FAIRCHANCE_DATA=… python -m benchmarks life [--data …] [--pasts …] [--seeds …] [-j …]`` plays
three years of monthly rounds after a history. In the history and in every round the lender has a
process of its own, the past d; some applicants do not take the loan; bad outcomes arrive before
good ones. The policy of each round is judged on all applicants of the data set, among loans taken.
Options with several values are combined; ``--take-up none equal`` and ``--delay equal life`` are
compared with each other. Each run is appended to a file, and a repeated command continues where the
last one stopped.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
import warnings
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.certified import ALPHA, DATA, DELTA, GAIN, LOSS, everybody, mean, table_of
from fairchance import CertifiedClassifier, FdrBudget, PartialFeedbackClassifier, Revenue
from fairchance.errors import LearningWarning
from fairchance.simulate.people import People
from fairchance_lab.baselines.references import ceiling
from fairchance_lab.experiments.world_spec import WorldSpec

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Row = dict[str, Any]

SEED = 57_000  # for figures that are quoted; develop with another --first-seed
ROUNDS, YEAR = 36, 12
TAKE_UP, TAKE_UP_ODDS = 0.75, (0.8 / 0.2) / (0.6 / 0.4)  # mean, and odds of good ones against bad
PAST_FDR = {".10": 0.10, ".14": 0.14, ".22": 0.22}
PASTS = (*PAST_FDR, "human", "outcome", "none")
HUMAN_FDR = 0.14  # a human accepts as many as the score cut of this FDR
RAMPS = {"shadow-year": 0.0, "ramp-year": 0.05}  # in the first year; then 1
N_PROBE = 500  # applicants whose probabilities tell policies apart


@dataclass(frozen=True)
class Life:
    """What identifies a run.

    Attributes
    ----------
    data
        A data set of ``benchmarks certified``.
    past
        The lender's own policy d: a logistic score, learned from all applicants, with the cut that
        has a given FDR among loans taken; ``human``, the same score with noise half as large as its
        spread; ``outcome``, which accepts .9 of the good and .1 of the bad applicants; or ``none``:
        nobody was accepted in the history, and there is no d.
    method
        ``certified`` or ``plain`` (Algorithm 1).
    batch, history
        Applicants in a round and in the history.
    delay
        ``life``: bad outcomes are known 3 to 9 rounds after the decision, good ones 12. ``equal``:
        all of them 12. ``none``: all of them in the next round.
    take_up
        ``life``: 25 % of all applicants would not take a loan, more of the bad ones. ``equal``:
        25 % of the good and of the bad ones would not. ``none``: all of them would take it.
    ramp
        A number, or a name of ``RAMPS``.
    evidence
        ``rounds`` or ``history``.
    incumbent
        Whether the method knows d in the rounds.
    seed
        Seed of the applicants' order, take-up and delays, and of the method.
    """

    data: str
    past: str
    method: str = "certified"
    batch: int = 600
    history: int = 5_000
    delay: str = "life"
    take_up: str = "life"
    ramp: str = "1"
    evidence: str = "rounds"
    incumbent: bool = True
    seed: int = SEED

    def __str__(self) -> str:
        """Return the data set, the past, and the options that differ from their defaults."""
        other = [
            f"{field.name.replace('_', '-')} {getattr(self, field.name)}"
            for field in fields(self)[2:-1]
            if getattr(self, field.name) != field.default
        ]
        return ", ".join([self.data, f"past {self.past}", *other])

    def ramp_of(self, t: int) -> float:
        """Return the ramp of a round."""
        if self.ramp in RAMPS:
            return RAMPS[self.ramp] if t <= YEAR else 1.0
        return float(self.ramp)


# The world.


@cache
def scores(name: str) -> tuple[Floats, Floats]:
    """Return everybody's score by the ceiling, and by the logistic model of the past."""
    people, table = everybody(name), table_of(name)
    world = WorldSpec(DATA[name]).build(table, 0)
    boosting = ceiling(world, Revenue(GAIN, LOSS), ALPHA)
    applicants = People(table.X, table.group)
    X = applicants.X if world.scale is None else world.scale.apply(applicants).X
    dummies = pd.get_dummies(people.X, dtype=float)
    logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    return boosting._score(X, table.group), logistic.fit(dummies, people.good).decision_function(
        dummies
    )


def take_up_rates(share_good: float) -> tuple[float, float]:
    """Return the shares of bad and good applicants who take a loan, given their mean and odds."""

    def rates(log_odds: float) -> tuple[float, float]:
        return float(expit(log_odds)), float(expit(log_odds + np.log(TAKE_UP_ODDS)))

    def excess(log_odds: float) -> float:
        bad, good = rates(log_odds)
        return (1 - share_good) * bad + share_good * good - TAKE_UP

    return rates(brentq(excess, -10, 10))


def cuts(score: Floats, good: Bools, taken: Bools) -> tuple[Floats, Floats, Floats]:
    """Return the cuts of a score, their FDR among loans taken, and what they earn per applicant."""
    order = np.argsort(-score, kind="stable")
    last = np.append(np.diff(score[order]) != 0, True)  # of those with the same score
    n = np.cumsum(taken[order])[last]
    n_bad = np.cumsum((taken & ~good)[order])[last]
    earned = (GAIN * (n - n_bad) - LOSS * n_bad) / order.size
    return score[order][last], n_bad / np.maximum(n, 1), earned


def best_cut(score: Floats, good: Bools, taken: Bools) -> float:
    """Return what the best cut with FDR ≤ α among loans taken earns per applicant."""
    _, fdr, earned = cuts(score, good, taken)
    return float(earned[fdr <= ALPHA].max(initial=0.0))


def widest_cut(score: Floats, good: Bools, taken: Bools, fdr: float) -> Bools:
    """Return whom a score accepts at the widest cut with at most an FDR among loans taken."""
    at, rates, _ = cuts(score, good, taken)
    return np.asarray(score >= at[rates <= fdr].min(initial=np.inf))


class World:
    """All applicants of a data set in one life: hidden outcomes, take-up, delays and the past.

    All of that is fixed per applicant by the seed, and does not depend on the other options.
    """

    def __init__(self, life: Life) -> None:
        people = everybody(life.data)
        self.X, self.good = people.X, people.good == 1
        order, taking, waiting, deciding = map(
            np.random.default_rng, np.random.SeedSequence(life.seed).spawn(4)
        )
        n = len(people)
        rates = {"none": (1.0, 1.0), "equal": (TAKE_UP, TAKE_UP)}
        rate_of = np.array(rates.get(life.take_up) or take_up_rates(self.good.mean()))
        self.taken = taking.random(n) < rate_of[self.good.astype(int)]
        waits = {
            "none": 1,
            "equal": 12,
            "life": np.where(self.good, 12, waiting.integers(3, 10, n)),
        }
        self.wait = np.broadcast_to(waits[life.delay], n)
        self.past = self._past(life.past, scores(life.data)[1], deciding)
        self.ceiling = best_cut(scores(life.data)[0], self.good, self.taken)
        # Small data sets are gone through again if a life has more applicants.
        size = life.history + ROUNDS * life.batch
        rows = np.concatenate([order.permutation(n) for _ in range(-(-size // n))])[:size]
        self.history = rows[: life.history]
        self.rounds = np.split(rows[life.history :], ROUNDS)

    def _past(self, past: str, score: Floats, rng: np.random.Generator) -> Bools:
        noise, luck = rng.normal(size=score.size), rng.random(score.size)
        if past == "none":
            return np.zeros(score.size, np.bool_)
        if past == "outcome":
            return np.asarray(luck < np.where(self.good, 0.9, 0.1))
        if past == "human":
            share = widest_cut(score, self.good, self.taken, HUMAN_FDR).mean()
            noisy = score + 0.5 * score.std() * noise
            return np.asarray(noisy > np.quantile(noisy, 1 - share))
        return widest_cut(score, self.good, self.taken, PAST_FDR[past])

    def rates(self, p: Floats) -> Row:
        """Return what a policy earns per applicant, its FDR among loans taken, and its share."""
        taken = p * self.taken
        bad = float(taken @ ~self.good)
        earned = (GAIN * (taken.sum() - bad) - LOSS * bad) / p.size
        return {
            "earned": float(earned),
            "fdr": bad / max(float(taken.sum()), 1e-9),
            "share": float(p.mean()),
        }


class Judge:
    """Judges deployed policies and frozen rankings on all applicants, each of them once."""

    def __init__(self, life: Life, world: World) -> None:
        self.world = world
        self.d = world.past if knows_incumbent(life) else None
        self.probe = np.random.default_rng(0).choice(world.good.size, N_PROBE, replace=False)
        self.known: dict[bytes, Row] = {}
        self.rankings: dict[int, tuple[Any, Row]] = {}  # kept, so that their ids stay unique

    def policy(self, classifier: Any) -> Row:
        """Return the rates of the last round's policy.

        Policies differ in an edge that reaches far below their cut, so those that treat the
        applicants of the probe alike are the same, or nearly so.
        """
        key = self._probabilities(classifier, self.probe).tobytes()
        if key not in self.known:
            self.known[key] = self.world.rates(self._probabilities(classifier, slice(None)))
        return self.known[key]

    def _probabilities(self, classifier: Any, rows: Any) -> Floats:
        d = {} if self.d is None else {"incumbent": self.d[rows]}
        p = classifier.acceptance_probability(self.world.X.iloc[rows], **d)
        return np.asarray(p, np.float64)

    def look_at_ladders(self, classifier: Any) -> bool:
        """Note what the best cut of each new ranking earns, and return if a rung is certified."""
        engines = getattr(classifier, "_engines", ())
        ladders = [ladder for engine in engines for ladder in engine.ladders]
        for ladder in ladders:
            if id(ladder.ranking) in self.rankings:
                continue
            X, group = classifier._intake.for_scoring(classifier, self.world.X, None, True)
            score = ladder.ranking.score(X, group)
            worth = best_cut(score, self.world.good, self.world.taken) / self.world.ceiling
            about = {"round": int(ladder.frozen), "worth": worth}
            self.rankings[id(ladder.ranking)] = ladder.ranking, about
        return any(bool(ladder.certified().any()) for ladder in ladders)


def knows_incumbent(life: Life) -> bool:
    """Return whether the method is given the lender's own decisions."""
    return life.incumbent and life.past != "none"


# A run.


def new_classifier(life: Life) -> Any:
    """Return the method of a run, with its defaults."""
    if life.method == "plain":
        budget = FdrBudget(ALPHA)
        return PartialFeedbackClassifier(Revenue(GAIN, LOSS), budget, random_state=life.seed)
    options = {} if life.evidence == "rounds" else {"evidence": life.evidence}
    utility = Revenue(GAIN, LOSS)
    return CertifiedClassifier(
        ALPHA, DELTA, utility, horizon=ROUNDS, random_state=life.seed, **options
    )


def live(life: Life) -> Row:
    """Play a life, and return what happened in each of its rounds."""
    start = time.perf_counter()
    world = World(life)
    judge, classifier, trace = Judge(life, world), new_classifier(life), []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LearningWarning)
        cpu = time.process_time()
        start_from_history(classifier, world)
        cpu = time.process_time() - cpu
        for t, seconds, batch in play_rounds(classifier, life, world):
            cpu += seconds
            record = classifier.rounds_[-1]
            trace.append(
                {
                    "has_certificate": judge.look_at_ladders(classifier),
                    "status": getattr(batch, "status", "") or getattr(record, "status", ""),
                    "kind": getattr(record, "kind", ""),
                    "accepted": float(batch.accepted.mean()),
                    **judge.policy(classifier),
                }
            )
            if sys.stderr.isatty():
                clock = f"{time.perf_counter() - start:.0f} s"
                print(f"\r{life}, seed {life.seed}: round {t}, {clock} ", end="", file=sys.stderr)
        # Messages that differ only in numbers and ids are counted together.
        messages = sorted({re.sub(r"\d[\d,.]*", "…", str(entry.message)) for entry in caught})
    return {name: [entry[name] for entry in trace] for name in trace[0]} | {
        "life": asdict(life),
        "past_rates": world.rates(world.past.astype(float)),
        "ceiling": world.ceiling,
        "take_up_rate": float(world.taken.mean()),
        "freezes": [about for _, about in judge.rankings.values()],
        "cpu": cpu,
        "messages": messages,
    }


def start_from_history(classifier: Any, world: World) -> None:
    """Fit the history: d, and the outcomes of the loans that were taken."""
    rows = world.history
    accepted = world.past[rows]
    if not accepted.any():
        classifier.fit(world.X.iloc[rows], None, accepted=accepted)
        return
    not_taken = accepted & ~world.taken[rows]
    take_up = {"not_taken": not_taken} if not_taken.any() else {}
    y = world.good[rows].astype(int)
    classifier.fit(world.X.iloc[rows], y, accepted=accepted, **take_up)


def play_rounds(classifier: Any, life: Life, world: World) -> Iterator[tuple[int, float, Any]]:
    """Decide the rounds, take in what is known by then, and yield each with its CPU seconds."""
    outcomes: dict[int, list[tuple[Any, Any]]] = defaultdict(list)  # by the round they arrive in
    no_loans: dict[int, Any] = {}
    for t, rows in enumerate(world.rounds, 1):
        cpu = time.process_time()
        if t in no_loans:
            classifier.not_taken(no_loans.pop(t))
        for ids, good in outcomes.pop(t, ()):
            classifier.observe(ids, good)
        d = {"incumbent": world.past[rows]} if knows_incumbent(life) else {}
        ramp = {} if life.ramp_of(t) == 1 else {"ramp": life.ramp_of(t)}
        batch = classifier.decide(world.X.iloc[rows], **d, **ramp)
        yield t, time.process_time() - cpu, batch
        taken = batch.accepted & world.taken[rows]
        if np.any(batch.accepted & ~taken):
            no_loans[t + 1] = batch.ids[batch.accepted & ~taken]
        for wait in np.unique(world.wait[rows][taken]):
            known = taken & (world.wait[rows] == wait)
            arrived = batch.ids[known], world.good[rows][known].astype(int)
            outcomes[t + int(wait)].append(arrived)


# Results.


def by_year(values: Iterable[Any]) -> NDArray[Any]:
    """Return values of rounds with one row per year."""
    return np.array(list(values)).reshape(-1, YEAR)


def first_certificate(row: Row) -> int:
    """Return the first round that began with a certificate, deployed or not; 37 if none did."""
    return [*row["has_certificate"], True].index(True) + 1


def first_certified(row: Row) -> int:
    """Return the first certified round; 37 if there is none."""
    return [*row["status"], "certified"].index("certified") + 1


def firsts(first: Iterable[int]) -> str:
    """Return the mean and the last of first rounds, and how many there are not."""
    rounds = np.array(list(first))
    known = rounds[rounds <= ROUNDS]
    mean_and_last = f"round {known.mean():.1f} (last {known.max()}), " if known.size else ""
    return f"{mean_and_last}never in {rounds.size - known.size} of {rounds.size} runs"


def versus_past(row: Row) -> Floats:
    """Return earned against d for years 1, 2 and 3, and in total by the end of year 2."""
    earned, past = by_year(row["earned"]).mean(axis=1), row["past_rates"]["earned"]
    return np.append(earned, earned[:2].mean()) / (past if past > 0 else np.nan)


def broken_rounds(row: Row) -> Bools:
    """Return in which certified rounds the policy broke α on the population."""
    return (np.array(row["status"]) == "certified") & (np.array(row["fdr"]) > ALPHA)


def print_life(life: Life, rows: list[Row]) -> None:
    """Print the results of the runs of one kind."""
    past = pd.DataFrame([row["past_rates"] for row in rows]).mean()
    most, take_up = (np.mean([row[name] for row in rows]) for name in ("ceiling", "take_up_rate"))
    everyone = " (everybody, whose FDR is lower)" if past["share"] == 1 else ""
    print(
        f"\n{life}, {len(rows)} runs: take-up {take_up:.3f}, past accepts {past['share']:.1%}"
        f"{everyone}, FDR {past['fdr']:.3f}"
    )
    ratios = np.array([versus_past(row) for row in rows])
    shares = np.array([by_year(row["earned"]).mean(axis=1) / row["ceiling"] for row in rows])
    years: dict[str, list[str]] = {
        "earned per applicant by the past": [f"{past['earned']:.2f}"] * 3,
        "  by us": of_years([by_year(row["earned"]) for row in rows], 2),
        "  by the ceiling": [f"{most:.2f}"] * 3,
        "us / past": [mean(list(column)) for column in ratios.T[:3]],
        "us / ceiling": [mean(list(column)) for column in shares.T],
        "accepted": of_years([by_year(row["share"]) for row in rows], 3),
        "FDR among loans taken": of_years([by_year(row["fdr"]) for row in rows], 3),
    }
    statuses = Counter(status for row in rows for status in row["status"])
    for status in statuses:
        counts = [YEAR * (by_year(row["status"]) == status) for row in rows]
        years[f"rounds {status or 'without a status'}"] = of_years(counts, 1)
    broken = [broken_rounds(row) for row in rows]
    kinds = Counter(kind for row in rows for kind in row["kind"] if kind)
    lines = {text: "".join(f"{value:>16s}" for value in values) for text, values in years.items()}
    lines |= {
        "total by the end of year 2 / past": f"{mean(list(ratios[:, 3])):>16s}",
        "certified rounds that break α": f"{np.sum(broken)} of {statuses['certified']}, in "
        f"{np.any(broken, axis=1).sum()} runs",
        "first certificate": firsts(map(first_certificate, rows)),
        "first certified round": firsts(map(first_certified, rows)),
        "rounds by kind of policy": ", ".join(f"{kind} {n}" for kind, n in kinds.items()),
        "rankings, share of the ceiling": rankings(rows),
        "CPU seconds a run": f"{np.mean([row['cpu'] for row in rows]):.1f}",
    }
    for text, value in lines.items():
        print(f"  {text:34s} {value}")
    for message, n in Counter(message for row in rows for message in row["messages"]).items():
        print(f"  in {n} runs: {message}")


def of_years(values: list[NDArray[Any]], digits: int) -> list[str]:
    """Return the means by year over runs and rounds."""
    return [f"{value:.{digits}f}" for value in np.mean(values, axis=(0, 2))]


def rankings(rows: list[Row]) -> str:
    """Return the mean worth of the first, second, … frozen rankings, with their mean rounds."""
    texts = []
    for k in range(max(len(row["freezes"]) for row in rows)):
        frozen = [row["freezes"][k] for row in rows if len(row["freezes"]) > k]
        round = np.mean([freeze["round"] for freeze in frozen])
        texts.append(f"{np.mean([freeze['worth'] for freeze in frozen]):.2f} (round {round:.0f})")
    return ", ".join(texts) or "none"


def first_learned(row: Row) -> float:
    """Return the worth of the first ranking that was frozen after the first round."""
    return next((freeze["worth"] for freeze in row["freezes"] if freeze["round"] > 1), np.nan)


def print_summary(kinds: dict[Life, list[Row]]) -> None:
    """Print a line for each kind of run, and the comparisons that are asked for."""
    print("\nearned / past in year 1, 2, 3, by the end of year 2; α broken; first certificates")
    for life, rows in kinds.items():
        ratios = np.mean([versus_past(row) for row in rows], axis=0)
        broken = sum(int(broken_rounds(row).sum()) for row in rows)
        numbers = " ".join(f"{ratio:6.3f}" for ratio in ratios)
        print(f"  {life!s:40s} {numbers}  {broken:3d}  {firsts(map(first_certificate, rows))}")
    for life, rows in kinds.items():
        full = kinds.get(replace(life, take_up="none"), [])
        if life.take_up != "none" and full:
            late, early = (np.mean([first_certificate(r) for r in x]) for x in (rows, full))
            print(
                f"\n{life}: first certificate in round {late:.1f}, with full take-up {early:.1f}, "
                f"{late / early:.2f} times as late (never counts as {ROUNDS + 1})"
            )
        equal = kinds.get(replace(life, delay="equal"), [])
        if life.delay == "life" and equal:
            worth, other = (np.nanmean([first_learned(r) for r in x]) for x in (rows, equal))
            print(
                f"\n{life}: the first ranking frozen after round 1 is worth {worth:.3f} of the "
                f"ceiling, with equal delays {other:.3f}; {worth / other:.2f} of that"
            )


def state_of_code() -> str:
    """Return the commit, with a checksum of what differs from it."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(Path(__file__).parent), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    changes = git("diff", "HEAD")
    return git("describe", "--always") + (f"+{zlib.crc32(changes.encode()):08x}" if changes else "")


def measure(lives: list[Life], out: Path, jobs: int) -> None:
    """Run the lives that are not in the file yet, append each to it, and print the results."""
    code, start = state_of_code(), time.perf_counter()
    saved = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    done = {Life(**row["life"]): row for row in saved if row["commit"] == code}
    todo = [life for life in lives if life not in done]
    print(f"{len(todo)} runs of {len(lives)} to do", file=sys.stderr, flush=True)
    runs = joblib.Parallel(jobs, return_as="generator_unordered")(
        joblib.delayed(live)(life) for life in todo
    )
    for n, row in enumerate(runs, 1):
        life = Life(**row["life"])
        done[life] = {"commit": code} | row
        out.parent.mkdir(parents=True, exist_ok=True)
        with out.open("a") as file:
            file.write(json.dumps(done[life]) + "\n")
        ratios = " ".join(f"{ratio:.3f}" for ratio in versus_past(row))
        what = f"{life}, seed {life.seed}: {ratios}, first {first_certificate(row)}"
        clock = f"{time.perf_counter() - start:.0f} s"
        print(f"\r{n} of {len(todo)} after {clock}: {what}", file=sys.stderr, flush=True)
    kinds: dict[Life, list[Row]] = defaultdict(list)
    for life in lives:
        kinds[replace(life, seed=lives[0].seed)].append(done[life])
    for life, rows in kinds.items():
        print_life(life, rows)
    print_summary(kinds)


def ramp(text: str) -> str:
    """Return a ramp as it is recorded, or raise if it is neither a number nor a name."""
    return text if text in RAMPS else f"{float(text):g}"


def main(arguments: list[str] | None = None) -> None:
    """Measure all combinations of the options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks life", description=__doc__)
    several: dict[str, Any] = {"nargs": "+"}
    parser.add_argument("--data", **several, choices=DATA, default=list(DATA))
    parser.add_argument("--pasts", **several, choices=PASTS, default=list(PAST_FDR))
    parser.add_argument(
        "--method", **several, choices=["certified", "plain"], default=["certified"]
    )
    parser.add_argument("--batch", **several, type=int, default=[600])
    parser.add_argument("--history", **several, type=int, default=[5_000])
    parser.add_argument("--delay", **several, choices=["none", "equal", "life"], default=["life"])
    parser.add_argument("--take-up", **several, choices=["none", "equal", "life"], default=["life"])
    parser.add_argument(
        "--ramp", **several, type=ramp, default=["1"], help=f"R, {', '.join(RAMPS)}"
    )
    parser.add_argument("--evidence", **several, choices=["rounds", "history"], default=["rounds"])
    parser.add_argument("--without-incumbent", action="store_true", help="do not pass d in rounds")
    parser.add_argument("--seeds", type=int, default=5, help="runs of each kind")
    parser.add_argument("--first-seed", type=int, default=SEED)
    parser.add_argument("--results", type=Path, default=Path("results/life.jsonl"))
    parser.add_argument("-j", "--jobs", type=int, default=1, help="processes")
    o = parser.parse_args(arguments)
    settings = product(
        o.data, o.pasts, o.method, o.batch, o.history, o.delay, o.take_up, o.ramp, o.evidence
    )
    lives = [
        Life(*setting, incumbent=not o.without_incumbent, seed=seed)
        for setting in settings
        for seed in range(o.first_seed, o.first_seed + o.seeds)
    ]
    measure(lives, o.results, o.jobs)


if __name__ == "__main__":
    main()
