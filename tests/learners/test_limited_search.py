"""Thresholds when the limit of work comes first: what is said to be proven must be true."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from learners.test_thresholds import EXACT, Best, Case, brute_force, check_report, random_case
from secondlook.core.fairness import SelectionRateParity
from secondlook.core.utility import PositiveRate
from secondlook.learners import group_search, thresholds
from secondlook.learners.group_search import Found
from secondlook.learners.merging import Effort
from secondlook.learners.thresholds import OperatingPoint, group_thresholds

PRECISION = 1e-6  # to which the least violation of more than two groups is found


@pytest.fixture(scope="module")
def solved():
    """Return problems of three and four groups, half of them hard to meet, and what is best."""
    found = []
    for seed in range(40):
        rng = np.random.default_rng([8, seed])
        n_groups = int(rng.choice([3, 4]))
        n = int(rng.integers(8, 60 if n_groups == 3 else 36))
        case = random_case(rng, n_groups, n, n_groups)
        if seed % 2:
            case = replace(case, max_fdr=0.1, min_selection_rate=float(rng.choice([0.2, 0.9])))
        found.append((case, brute_force(case, shared=False)))
    return found


def missed(case: Case, point: OperatingPoint) -> float:
    over = 0.0 if case.fairness is None else point.disparity - case.fairness.difference
    return max(case.min_selection_rate - point.selection_rate, over, 0.0)


def check_truth(case: Case, point: OperatingPoint, best: Best) -> bool:
    """Compare a report with what is best, and say whether anything was proven."""
    check_report(case, point)
    assert point.fdr <= case.max_fdr + EXACT
    assert point.feasible == (missed(case, point) <= EXACT)
    if np.isinf(point.gap):
        return False
    assert point.feasible == best.feasible
    assert missed(case, point) <= best.violation + PRECISION
    unit = max(abs(case.utility.gain_good), abs(case.utility.gain_bad))
    gain = best.gain - (best.utility - point.utility)
    assert best.gain <= gain + point.gap * max(abs(gain), 1e-12 * unit) + EXACT * unit
    return True


def solve_with(case: Case, boxes: int, monkeypatch) -> OperatingPoint:
    """Solve a problem with next to no work allowed."""
    monkeypatch.setattr(group_search, "_BOXES", boxes)
    for name in ("QUICK", "THOROUGH"):
        monkeypatch.setattr(group_search, name, Effort(1, 2))
    return case.solve(group_thresholds, max_gap=0.0)


@pytest.mark.parametrize("boxes", [0, 1, 2])
def test_a_finite_gap_is_true_however_early_the_search_ends(boxes, solved, monkeypatch):
    proven = [
        check_truth(case, solve_with(case, boxes, monkeypatch), best) for case, best in solved
    ]
    assert any(proven) == (boxes > 0)
    assert not all(proven)


def test_the_most_who_can_be_accepted_are_proven_or_not(monkeypatch):
    """Without a fairness constraint only accepting more people helps."""
    proven = []
    for seed in range(30, 60):
        rng = np.random.default_rng([9, seed])
        case = random_case(rng, 3, int(rng.integers(20, 60)), 3)
        case = replace(case, fairness=None, max_fdr=0.1, min_selection_rate=0.9)
        point = solve_with(case, 1, monkeypatch)
        proven.append(check_truth(case, point, brute_force(case, shared=False)))
    assert 2 < sum(proven) < 25


def gives_up_first(monkeypatch) -> None:
    """Let the first search of each problem end without an answer, and all others as ever."""
    solve, bounds_met = thresholds._solve, []

    def limited(points, bounds, max_gap):
        bounds_met.append(bounds)
        return (
            Found(None, -np.inf, np.inf) if len(bounds_met) == 1 else solve(points, bounds, max_gap)
        )

    monkeypatch.setattr(thresholds, "_solve", limited)


def test_what_the_first_search_did_not_find_is_not_called_impossible(solved, monkeypatch):
    feasible = 0
    for case, best in solved:
        with monkeypatch.context() as patched:
            gives_up_first(patched)
            point = case.solve(group_thresholds)
        check_truth(case, point, best)
        assert point.feasible == best.feasible
        feasible += best.feasible
    assert 10 < feasible < len(solved) - 10


def test_nothing_is_proven_of_a_tiny_violation_either(monkeypatch):
    """Everybody may be accepted but one in two million, and the parity constraint binds nobody."""
    n = 4
    case = Case(
        np.arange(3 * n) / (3 * n),
        np.append(0, np.ones(3 * n - 1, np.int8)),
        np.append(5e-7 * 3 * n, np.ones(3 * n - 1)),
        np.arange(3 * n) % 3,
        3,
        PositiveRate(),
        max_fdr=0.0,
        min_selection_rate=1.0,
        fairness=SelectionRateParity(1.0),
    )
    best = brute_force(case, shared=False)
    assert 0 < best.violation < PRECISION
    assert check_truth(case, case.solve(group_thresholds), best)
    gives_up_first(monkeypatch)
    assert case.solve(group_thresholds).gap == np.inf
