"""Random problems of thresholds, and their best choice by brute force over every combination."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray

import parities
from fairchance.core.fairness import (
    RateParity,
)
from fairchance.core.utility import Accuracy, PositiveRate, Revenue, Utility
from fairchance.learners.thresholds import OperatingPoint

EXACT = 1e-9


@dataclass(frozen=True)
class Case:
    score: NDArray[np.float64]
    outcome: NDArray[np.int8]
    weight: NDArray[np.float64]
    group: NDArray[np.intp]
    n_groups: int
    utility: Utility
    max_fdr: float
    min_selection_rate: float
    fairness: RateParity | None

    def solve(self, how, **more) -> OperatingPoint:
        return how(
            self.score,
            self.outcome,
            self.weight,
            self.group,
            self.n_groups,
            utility=self.utility,
            max_fdr=self.max_fdr,
            min_selection_rate=self.min_selection_rate,
            fairness=self.fairness,
            **more,
        )

    def rows(self, at) -> Case:
        return replace(
            self,
            score=self.score[at],
            outcome=self.outcome[at],
            weight=self.weight[at],
            group=self.group[at],
        )


def random_case(rng: np.random.Generator, n_groups: int, n: int, filled: int) -> Case:
    """Ties, zero weights, empty and one-class groups, every constraint and utility by chance."""
    group = rng.choice(rng.permutation(n_groups)[:filled], n)
    score = rng.random(n) if rng.random() < 0.5 else rng.integers(0, 6, n) / 8
    outcome = (rng.random(n) < 0.3 + 0.6 * score).astype(np.int8)
    if rng.random() < 0.2:
        outcome[group == group[0]] = rng.integers(2)
    weight = np.ones(n) if rng.random() < 0.3 else rng.exponential(size=n)
    weight[rng.random(n) < rng.choice([0.0, 0.2])] = 0.0
    weight[0] = 1.0
    utilities = (Revenue(200, 500), Revenue(500, 200), Accuracy(), PositiveRate())
    pick = rng.integers(6)
    utility = utilities[pick] if pick < len(utilities) else Utility(*rng.normal(size=4))
    return Case(
        score,
        outcome,
        weight,
        group,
        n_groups,
        utility,
        max_fdr=float(rng.choice([0.0, 0.1, 0.2, 0.25, 0.5])),
        min_selection_rate=float(rng.choice([0.0, 0.0, 0.2, 0.5, 0.9])),
        fairness=None if rng.random() < 0.15 else parities.random_parity(rng),
    )


def measure(case: Case, thresholds) -> tuple[float, float, float, float]:
    """Utility, FDR, selection rate and disparity of applying thresholds, the plain way."""
    accepted = case.score >= np.asarray(thresholds)[case.group]
    w, y = case.weight, case.outcome
    taken = (w * accepted).sum()
    fdr = (w * accepted * (1 - y)).sum() / taken if taken > 0 else 0.0
    disparity = 0.0
    if case.fairness is not None:
        mine = [(case.group == g) & (w > 0) for g in range(case.n_groups)]
        rates = [parities.rates(case.fairness, accepted[m], y[m], w[m]) for m in mine]
        disparity = parities.worst(case.fairness, rates)[1]
    return case.utility.mean(accepted, y, w), fdr, taken / w.sum(), disparity


@dataclass(frozen=True)
class Best:
    gain: float
    utility: float
    feasible: bool
    violation: float
    fewest: float


def brute_force(case: Case, shared: bool) -> Best:
    """Best of all combinations: FDR first, then the least violation, then utility."""
    seen = [case.score[(case.group == g) & (case.weight > 0)] for g in range(case.n_groups)]
    if shared:
        cuts = [np.append(np.unique(np.concatenate(seen)), np.inf)]
    else:
        cuts = [np.append(np.unique(s), np.inf) for s in seen]
    good, bad, rates = [], [], []
    for g in range(case.n_groups):
        own = (case.group == g) & (case.weight > 0)
        s, w, y = case.score[own], case.weight[own], case.outcome[own]
        accepted = s[None, :] >= cuts[0 if shared else g][:, None]
        good.append(accepted @ (w * y))
        bad.append(accepted @ (w * (1 - y)))
        if case.fairness is not None:
            rates.append(parities.rates(case.fairness, accepted, y, w))
    if shared:
        combos = [(c,) * case.n_groups for c in range(cuts[0].size)]
    else:
        combos = list(itertools.product(*(range(c.size) for c in cuts)))
    index = np.array(combos)
    G = sum(good[g][index[:, g]] for g in range(case.n_groups))
    B = sum(bad[g][index[:, g]] for g in range(case.n_groups))
    total = case.weight.sum()
    violation = case.min_selection_rate - (G + B) / total
    if case.fairness is not None:
        chosen = [[rate[index[:, g]] for rate in own] for g, own in enumerate(rates)]
        violation = np.fmax(violation, parities.worst(case.fairness, chosen)[0])
    violation = np.where(violation <= 1e-12, 0.0, violation)
    violation[(case.max_fdr + 1e-12) * (G + B) - B < 0] = np.inf
    least = violation.min()
    gain = (case.utility.gain_good * G + case.utility.gain_bad * B) / total
    allowed = violation <= (0.0 if least == 0 else least + 1e-10)
    best = gain[allowed].max()
    tied = allowed & (gain >= best - 1e-11)
    rejecting = case.utility.mean(np.zeros(len(case.score)), case.outcome, case.weight)
    return Best(best, best + rejecting, least == 0, least, ((G + B)[tied] / total).min())


def check_report(case: Case, point: OperatingPoint) -> None:
    found = point.utility, point.fdr, point.selection_rate, point.disparity
    assert found == pytest.approx(measure(case, point.thresholds), abs=EXACT)
    assert point.thresholds.shape == (case.n_groups,)
    assert (point.missed is None) == point.feasible


def check_violation(case: Case, point: OperatingPoint, best: Best) -> None:
    assert point.feasible == best.feasible
    assert point.fdr <= case.max_fdr + EXACT
    assert missed(case, point) == pytest.approx(best.violation, abs=EXACT)


def missed(case: Case, point: OperatingPoint) -> float:
    """Return by how much the thresholds miss the constraints other than the FDR bound."""
    short = case.min_selection_rate - point.selection_rate
    if case.fairness is None:
        return max(short, 0.0)
    accepted = case.score >= point.thresholds[case.group]
    rates = [
        parities.rates(case.fairness, accepted[m], case.outcome[m], case.weight[m])
        for m in ((case.group == g) & (case.weight > 0) for g in range(case.n_groups))
    ]
    return max(short, float(parities.worst(case.fairness, rates)[0]), 0.0)
