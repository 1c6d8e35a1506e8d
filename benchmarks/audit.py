"""How close estimates from logged decisions come to the truth.

``FAIRCHANCE_DATA=… python -m benchmarks audit [--data …] [--seeds …]`` runs the certified method
and Algorithm 1 on data sets whose outcomes are all known, hides those of rejected applicants, and
evaluates ten policies on the log: cuts of the recorded score, cuts of a challenger that was fitted
to other applicants, and rules on one feature. The truth is that of all applicants; that of a cut of
the recorded score, which is another policy in every round, is that of all applicants of the rounds.
"""

from __future__ import annotations

import argparse
import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.ensemble import HistGradientBoostingClassifier

from fairchance import CertifiedClassifier, FdrBudget, PartialFeedbackClassifier, Revenue
from fairchance.audit import Challenger, DecisionLog, Evaluation, evaluate
from fairchance.audit.estimates import ESTIMATORS
from fairchance.audit.policies import chances
from fairchance.errors import LearningWarning
from fairchance.simulate.histories import SelectedOnOutcome
from fairchance.simulate.people import Table
from fairchance.simulate.run import decision_log, run
from fairchance.simulate.streams import Parts, Resampled, Stream
from fairchance.simulate.worlds import World
from fairchance_lab.datasets import load

Floats = NDArray[np.float64]

SEED, ROUNDS = 51_000, 30
MEASURES = ("false_discovery_rate", "profit")
METHODS = ("certified", "algorithm 1")


@dataclass(frozen=True)
class Setting:
    """A data set, and what is asked on it."""

    name: str
    utility: Any
    alpha: float
    rules: tuple[str, ...]
    cuts: tuple[float, ...]  # of the recorded score
    n_other: int  # applicants whom only the challenger has seen
    n_batch: int = 0  # applicants in a round, drawn with replacement; 0 cuts the data into rounds

    def split(self, seed: int) -> tuple[Table, Table]:
        """Return the applicants of the log, and the others."""
        table = load(self.name)
        order = np.random.default_rng(seed).permutation(len(table))
        return _rows(table, order[self.n_other :]), _rows(table, order[: self.n_other])

    def stream(self, table: Table) -> Stream:
        """Return the history and the rounds."""
        if self.n_batch:
            return Resampled(table, self.n_batch, ROUNDS)
        return Parts(table, ROUNDS + 1)


SETTINGS = {
    "california": Setting(
        "acs-ca-2018-sample",
        Revenue(gain=200, loss=500),
        0.15,
        ("SCHL >= 21", "AGEP >= 40", "WKHP >= 45"),
        (0.6, 0.75, 0.9),
        5000,
    ),
    "german": Setting(
        "german",
        Revenue(gain=200, loss=300),
        0.25,
        ("duration <= 12", "age >= 40", "credit_amount <= 2000"),
        (0.7, 0.8, 0.9),
        200,
        n_batch=300,
    ),
}


def _rows(table: Table, rows: NDArray[np.intp]) -> Table:
    return replace(table, X=table.X[rows], group=table.group[rows], outcome=table.outcome[rows])


def play(setting: Setting, method: str, table: Table, seed: int) -> tuple[DecisionLog, Floats]:
    """Return the log of a run, and who was bad, rejected applicants too."""
    world = World(setting.stream(table), SelectedOnOutcome(), scaling="none", seed=seed)
    past = world.history()
    certified = method == "certified"
    classifier: Any = PartialFeedbackClassifier(
        setting.utility, FdrBudget(setting.alpha), random_state=seed
    )
    if certified:
        classifier = CertifiedClassifier(
            setting.alpha, utility=setting.utility, horizon=ROUNDS, random_state=seed
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LearningWarning)
        classifier.fit(
            past.people.X,
            past.outcomes,
            accepted=past.accepted,
            sensitive_features=past.people.group,
        )
        rounds = list(run(classifier, world))
        log = decision_log(rounds, coins=certified)
    return log, np.concatenate([1.0 - one.applicants.outcome for one in rounds])


def policies(setting: Setting, other: Table, seed: int) -> dict[str, Any]:
    """Return the ten policies."""
    model = HistGradientBoostingClassifier(max_iter=60, random_state=seed)
    model.fit(other.X, other.outcome)
    score = model.predict_proba(other.X)[:, 1]
    cuts = {
        f"challenger, best {share:.0%}": Challenger(
            model, float(np.quantile(score, 1 - share)), trained_through=0
        )
        for share in (0.15, 0.25, 0.4, 0.6)
    }
    recorded = {f"recorded score >= {cut}": f"score >= {cut}" for cut in setting.cuts}
    names = {name: f"x{at}" for at, name in enumerate(other.features)}
    rules = {}
    for rule in setting.rules:
        column, _, rest = rule.partition(" ")
        rules[rule] = f"{names[column]} {rest}"
    return recorded | cuts | rules


def truth(
    setting: Setting, policy: Any, table: Table, log: DecisionLog, bad: Floats
) -> dict[str, float]:
    """Return the true rate and profit of a policy."""
    n = len(table)
    everybody = DecisionLog(np.ones(n, bool), np.ones(n), table.outcome, X=table.X)
    if isinstance(policy, str) and policy.startswith("score"):
        everybody = DecisionLog(
            np.ones(len(log), bool), np.ones(len(log)), 1 - bad, score=log.score
        )
    pi = chances(everybody, policy).pi
    rate = float(pi @ (1 - everybody.outcome) / pi.sum())
    utility = setting.utility
    worth = utility.gain_good * (1 - rate) + utility.gain_bad * rate
    return {"false_discovery_rate": rate, "profit": float(pi.mean()) * worth}


Results = dict[str, tuple[Evaluation, dict[str, float]]]


def one(setting: Setting, method: str, seed: int) -> Results:
    """Return evaluation and truth of each policy, on the log of one run."""
    table, other = setting.split(seed)
    log, bad = play(setting, method, table, seed)
    asked = policies(setting, other, seed)
    found = evaluate(log, asked, utility=setting.utility, alpha=setting.alpha)
    return {
        name: (found[name], truth(setting, policy, table, log, bad))
        for name, policy in asked.items()
    }


def print_run(results: Results) -> None:
    """Print truth and estimates of one run, the best policy first."""
    titles = [*ESTIMATORS, "interval at all times", "least to most"]
    for measure in MEASURES:
        print(f"\n  {measure:29}    true" + "".join(f"{title:>24}" for title in titles))
        ranked = sorted(results, key=lambda name: results[name][1][measure])
        digits = 1 if measure == "profit" else 3
        for name in ranked if measure != "profit" else ranked[::-1]:
            evaluation, right = results[name]
            row = evaluation.of(measure)
            cells = [
                f"{row.estimates[by].value:.{digits}f}" if by in row.estimates else "–"
                for by in ESTIMATORS
            ]
            cells += [
                f"{low:.{digits}f} to {high:.{digits}f}"
                for low, high in ((row.low, row.high), (row.least, row.most))
            ]
            cells[0] += "" if evaluation.identified else " not identified"
            text = "".join(f"{cell:>24}" for cell in cells)
            print(f"  {name:29}{right[measure]:8.{digits}f}{text}")


def print_errors(runs: list[Results], measure: str, identified: bool) -> None:
    """Print how far estimates are off, of policies that are identified or of others."""
    print(f"    {'':22}policies    root mean square    mean error    rank correlation")
    for by in ESTIMATORS:
        off, ranks = [], []
        for results in runs:
            pairs = [
                (found.of(measure).estimates[by].value, right[measure])
                for found, right in results.values()
                if found.identified == identified and by in found.of(measure).estimates
            ]
            off += [estimate - right for estimate, right in pairs]
            if len(pairs) > 2:
                ranks.append(float(spearmanr(*zip(*pairs, strict=True)).statistic))
        if off:
            size, rank = math.sqrt(np.square(off).mean()), np.mean(ranks) if ranks else math.nan
            print(f"    {by:22}{len(off):8}{size:20.4f}{np.mean(off):14.4f}{rank:20.3f}")


def print_summary(runs: list[Results]) -> None:
    """Print how far estimates are off, and how often bounds were right."""
    everything = [pair for results in runs for pair in results.values()]
    n_known = sum(found.identified for found, _ in everything)
    print(f"\n  {len(runs)} runs: {n_known} of {len(everything)} policies are identified")
    for measure in MEASURES:
        for identified in (True, False):
            if any(found.identified == identified for found, _ in everything):
                print(f"  {measure}, {'identified' if identified else 'not identified'}")
                print_errors(runs, measure, identified)
        right = sum(
            found.of(measure).low <= true[measure] <= found.of(measure).high
            for found, true in everything
        )
        print(f"    {right} of {len(everything)} intervals at all times are right")


def main(arguments: list[str] | None = None) -> None:
    """Compare estimates with the truth."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks audit", description=__doc__)
    parser.add_argument("--data", nargs="*", choices=[*SETTINGS], default=[*SETTINGS])
    parser.add_argument("--seeds", type=int, default=5, help="runs of each method")
    options = parser.parse_args(arguments)
    for data in options.data:
        for method in METHODS:
            print(f"\n{data}, {method}", flush=True)
            seeds = range(SEED, SEED + options.seeds)
            runs = [one(SETTINGS[data], method, seed) for seed in seeds]
            print_run(runs[0])
            print_summary(runs)


if __name__ == "__main__":
    main()
