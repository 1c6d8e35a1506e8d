"""The search over several groups: merging, polishing, and honest proofs when work is limited."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest

from fairchance.core.fairness import SelectionRateParity
from fairchance.core.utility import PositiveRate
from fairchance.learners import group_search, thresholds
from fairchance.learners.curves import Points, ThresholdBounds
from fairchance.learners.group_search import (
    THOROUGH,
    Effort,
    OpenCuts,
    SearchResult,
    _largest,
    merge,
    polish,
    relax,
)
from fairchance.learners.thresholds import OperatingPoint, group_thresholds
from learners.brute_force import (
    EXACT,
    Best,
    Case,
    brute_force,
    check_report,
    missed,
    random_case,
)

FREE = ThresholdBounds(0.0, 0.0, np.inf)
PRECISION = 1e-6  # to which the least violation of more than two groups is found


@pytest.fixture(scope="module")
def solved():
    """Return problems of three and four groups, half of them hard to meet, with their best."""
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


def check_truth(case: Case, point: OperatingPoint, best: Best) -> bool:
    """Compare a report with the best choice, and return whether anything was proven."""
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


def test_the_largest_selection_rate_is_proven_or_not(monkeypatch):
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
            SearchResult(None, -np.inf, np.inf)
            if len(bounds_met) == 1
            else solve(points, bounds, max_gap)
        )

    monkeypatch.setattr(thresholds, "_solve", limited)


def test_a_first_search_without_answer_does_not_mean_infeasible(solved, monkeypatch):
    feasible = 0
    for case, best in solved:
        with monkeypatch.context() as patched:
            gives_up_first(patched)
            point = case.solve(group_thresholds)
        check_truth(case, point, best)
        assert point.feasible == best.feasible
        feasible += best.feasible
    assert 10 < feasible < len(solved) - 10


def test_a_tiny_violation_is_not_proven_either(monkeypatch):
    """All but one in two million may be accepted, and the parity constraint does not bind."""
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


def random_table(seed: int) -> tuple[OpenCuts, ThresholdBounds]:
    """Return open cuts of a few groups, and how far their one or two rates may be apart.

    A cut's worth and its contribution to each constraint are random; later cuts accept more.
    """
    rng = np.random.default_rng([31, seed])
    n_groups = int(rng.integers(3, 5))
    sizes = rng.integers(2, 7, n_groups)
    points = [
        Points(
            rng.normal(0.05, 0.1, n),
            rng.integers(-3, 4, n) / 16,  # so that some choices meet a bound exactly
            np.sort(rng.random(n)) / n_groups,
            np.full((n, 1 + seed % 2), np.nan)
            if g == 0 and seed % 3 == 0
            else np.sort(rng.integers(9, size=(n, 1 + seed % 2)) / 8, axis=0),
        )
        for g, n in enumerate(sizes)
    ]
    table = OpenCuts(points, [np.arange(n) for n in sizes], float(rng.choice([0.0, 0.4])))
    bounds = [ThresholdBounds(0.0, 0.0, 0.5), ThresholdBounds(0.0, 0.0, 0.0, ratio=0.25)]
    return table, bounds[rng.integers(2)]


def groups_of(table: OpenCuts) -> list[np.ndarray]:
    return [np.arange(s, s + n) for s, n in zip(table.start, table.size, strict=True)]


def admissible(table: OpenCuts, choice: np.ndarray, bounds: ThresholdBounds) -> bool:
    for column in table.rate[choice].T:
        rates = column[~np.isnan(column)]
        if rates.size and bounds.ratio * rates.max() - rates.min() > bounds.difference:
            return False
    return bool(table.slack[choice].sum() >= 0 and table.surplus[choice].sum() >= 0)


def all_choices(table: OpenCuts, bounds: ThresholdBounds) -> list[tuple[float, tuple[int, ...]]]:
    """Return every admissible choice with its worth, the best last."""
    choices = (np.array(picks) for picks in product(*groups_of(table)))
    kept = [picks for picks in choices if admissible(table, picks, bounds)]
    return sorted((float(table.worth[picks].sum()), tuple(picks.tolist())) for picks in kept)


def test_the_best_admissible_choice_is_found():
    for seed in range(60):
        table, bounds = random_table(seed)
        relaxed, places = relax(table, -np.inf), groups_of(table)
        choices = all_choices(table, bounds)
        worths = [worth for worth, _ in choices] or [0.0]
        # Nothing known yet; a floor that only the best passes; and a floor that no choice passes.
        for floor in (-10.0, worths[-1] - 1e-9, worths[-1] + 1e-9):
            found, complete = merge(table, relaxed, places, floor, bounds, THOROUGH)
            assert complete
            if choices and floor < worths[-1]:
                assert tuple(found.tolist()) == choices[-1][1]
            else:
                assert found is None


def test_most_tables_have_a_choice_that_constraints_take_from_another():
    """The tables are not trivial: the best choice is mostly not admissible."""
    n_choices, n_bound = 0, 0
    for seed in range(60):
        table, bounds = random_table(seed)
        choices = all_choices(table, bounds)
        best = sum(float(table.worth[p].max()) for p in groups_of(table))
        n_choices += bool(choices)
        n_bound += bool(choices) and choices[-1][0] < best - 1e-9
    assert n_choices > 50
    assert n_bound > 30


def test_little_effort_keeps_the_most_promising():
    value, items = np.array([0.1, 0.9, -1.0, 0.5, 0.3]), np.array([7, 2, 5, 3, 8])
    for size, kept in ((1, [2]), (2, [2, 3]), (3, [2, 3, 8]), (5, items.tolist())):
        assert _largest(value, size, items).tolist() == kept


def test_little_effort_finds_less_and_reports_it():
    unsure = missed = 0
    for seed in range(60):
        table, bounds = random_table(seed)
        relaxed, places = relax(table, -np.inf), groups_of(table)
        choices = all_choices(table, bounds)
        for effort in (Effort(4, 12), Effort(3, 10_000), Effort(10_000, 12)):
            found, complete = merge(table, relaxed, places, -10.0, bounds, effort)
            best = choices[-1][1] if choices else None
            if found is not None:
                assert admissible(table, found, bounds)
            if complete:
                assert (None if found is None else tuple(found.tolist())) == best
            unsure += not complete
            missed += best is not None and (found is None or tuple(found.tolist()) != best)
    assert unsure > 60
    assert missed > 10


def test_polishing_lets_each_pair_answer_the_others_once():
    for seed in range(40):
        table, bounds = random_table(seed)
        choices, places = all_choices(table, bounds), groups_of(table)
        relaxed = relax(table, -np.inf)
        for _, start in choices[:: max(1, len(choices) // 5)]:
            expected = np.array(start)
            for g, h in combinations(range(len(places)), 2):
                answers = []
                for first, second in product(places[g], places[h]):
                    answer = expected.copy()
                    answer[[g, h]] = first, second
                    if admissible(table, answer, FREE):
                        answers.append((float(table.worth[answer].sum()), answer))
                worth, answer = max(answers, key=lambda pair: pair[0])
                better = worth > table.worth[expected].sum()
                expected = answer if better and admissible(table, answer, bounds) else expected
            found = polish(table, relaxed, places, np.array(start), bounds)
            assert found.tolist() == expected.tolist()
