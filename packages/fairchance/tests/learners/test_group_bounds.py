"""Bounds on FDR and selection rate within each group, against brute force over all cuts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fairchance.core.utility import Accuracy, PositiveRate, Revenue
from fairchance.errors import InputError
from fairchance.learners.thresholds import group_thresholds, shared_threshold
from parities import random_parity, rates, worst

MONEY = Revenue(200, 500)
EXACT = 1e-9


def random_rows(rng, n_groups, n):
    """Return score, outcome, weight and group, with ties and rows without weight."""
    score = rng.random(n) if rng.random() < 0.5 else rng.integers(0, 6, n) / 8
    outcome = (rng.random(n) < 0.4 + 0.5 * score).astype(np.int8)
    weight = np.ones(n) if rng.random() < 0.3 else rng.exponential(size=n)
    weight[rng.random(n) < 0.1] = 0.0
    return score, outcome, weight, rng.integers(0, n_groups, n)


def random_bounds(rng, fair):
    parity = random_parity(rng)
    return {
        "utility": [MONEY, Accuracy(), PositiveRate()][rng.integers(3)],
        "max_fdr": float(rng.choice([0.0, 0.1, 0.25, 0.4])),
        "min_selection_rate": float(rng.choice([0.0, 0.2, 0.6])),
        "fairness": parity if fair else None,
    }


def apply(rows, thresholds, bounds):
    """Return the utility and the worst violation of thresholds; inf if a group breaks the FDR."""
    score, outcome, weight, group = rows
    accepted = score >= np.asarray(thresholds)[group]
    missed = [0.0]
    for g in np.unique(group[weight > 0]):
        w = weight * (group == g)
        if (w * accepted * (1 - outcome)).sum() > (bounds["max_fdr"] + 1e-12) * (
            w * accepted
        ).sum():
            missed.append(np.inf)
        missed.append(bounds["min_selection_rate"] - (w * accepted).sum() / w.sum())
    if bounds["fairness"] is not None:
        own = [(weight > 0) & (group == g) for g in range(len(thresholds))]
        found = [rates(bounds["fairness"], accepted[z], outcome[z], weight[z]) for z in own]
        missed.append(float(worst(bounds["fairness"], found)[0]))
    return bounds["utility"].mean(accepted, outcome, weight), max(missed)


def best_of_all(rows, n_groups, bounds, *, shared):
    """Return the utility and the violation of the best thresholds, by trying all."""
    score, _, weight, group = rows
    seen = [score[(weight > 0) & (shared | (group == g))] for g in range(n_groups)]
    cuts = [np.append(np.unique(values), np.inf) for values in seen]
    tried = ([c] * n_groups for c in cuts[0]) if shared else itertools.product(*cuts)
    found = [apply(rows, thresholds, bounds) for thresholds in tried]
    least = max(0.0, min(violation for _, violation in found))
    allowed = [
        u for u, violation in found if violation <= (least + 1e-10 if least > 1e-12 else 1e-12)
    ]
    return max(allowed), least


@pytest.mark.parametrize("shared", [False, True])
def test_best_of_all_thresholds_within_the_bounds_of_each_group(shared):
    for seed in range(80):
        rng = np.random.default_rng([7, seed])
        n_groups = int(rng.choice([1, 2, 2, 3]))
        rows = random_rows(rng, n_groups, int(rng.integers(6, 45 if n_groups < 3 else 24)))
        bounds = random_bounds(rng, fair=shared or seed % 2 == 0)
        find = shared_threshold if shared else group_thresholds
        more = {} if shared else {"max_gap": 0.0}
        point = find(*rows, n_groups, **bounds, constraints="per_group", **more)
        utility, violation = best_of_all(rows, n_groups, bounds, shared=shared)
        found = apply(rows, point.thresholds, bounds)
        assert point.feasible == (violation <= 1e-12) == (point.missed is None)
        assert found[1] == pytest.approx(violation, abs=1e-6)
        assert point.utility == pytest.approx(found[0], abs=EXACT)
        if violation <= 1e-12 or bounds["fairness"] is not None or n_groups == 1:
            assert found[0] == pytest.approx(utility, abs=EXACT if violation <= 1e-12 else 1e-3)


def test_groups_are_problems_of_their_own():
    """Without parity, each group gets the threshold that it gets alone, also if others fail."""
    for seed in range(20):
        rng = np.random.default_rng([8, seed])
        score, outcome, weight, group = rows = random_rows(rng, 3, 60)
        bounds = random_bounds(rng, fair=False)
        together = group_thresholds(*rows, 3, **bounds, constraints="per_group")
        met = True
        for g in range(3):
            own = group == g
            alone = group_thresholds(
                score[own], outcome[own], weight[own], np.zeros(own.sum(), np.intp), 1, **bounds
            )
            assert together.thresholds[g] == alone.thresholds[0]
            met &= alone.feasible
        assert together.feasible == met
        assert together.gap == 0


def test_joint_bounds_let_one_group_pay_for_another():
    """Half of B is bad: jointly A makes up for it, within groups B is rejected."""
    rows = (
        np.repeat([0.9, 0.8], [90, 10]),
        np.ones(100, int),
        np.ones(100),
        np.repeat([0, 1], [90, 10]),
    )
    rows[1][90:95] = 0
    joint = group_thresholds(*rows, 2, utility=PositiveRate(), max_fdr=0.1)
    within = group_thresholds(
        *rows, 2, utility=PositiveRate(), max_fdr=0.1, constraints="per_group"
    )
    assert joint.selection_rate == 1
    assert within.thresholds.tolist() == [0.9, np.inf]
    cut = shared_threshold(*rows, 2, utility=PositiveRate(), max_fdr=0.1, constraints="per_group")
    assert cut.selection_rate == pytest.approx(0.9)


def test_missed_selection_rate_of_a_group_is_reported():
    rows = [0.9, 0.9, 0.5, 0.5], [1, 1, 0, 0], [1.0] * 4, [0, 0, 1, 1]
    bounds = {"utility": PositiveRate(), "max_fdr": 0.1, "min_selection_rate": 0.4}
    assert group_thresholds(*rows, 2, **bounds).feasible
    for find in (group_thresholds, shared_threshold):
        point = find(*rows, 2, **bounds, constraints="per_group")
        assert not point.feasible
        facts = {"selection_rate": 0.0, "min_selection_rate": 0.4, "per_group": True}
        assert facts.items() <= point.missed.facts.items()
        assert point.selection_rate == 0.5


def test_unknown_constraints_are_refused():
    with pytest.raises(InputError, match="'groups'"):
        shared_threshold(
            [0.5], [1], [1.0], [0], 1, utility=MONEY, max_fdr=0.1, constraints="groups"
        )
