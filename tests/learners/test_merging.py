"""Merging groups one by one, and polishing, against every choice of one cut per group."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from secondlook.learners.curves import Points
from secondlook.learners.merging import THOROUGH, Effort, _largest, merge, polish
from secondlook.learners.relaxation import Table, relax


def random_table(seed: int) -> tuple[Table, float]:
    """Return open cuts of a few groups, one of which may have no rates, and how far these may be.

    What a cut is worth, and what it adds to or takes from each constraint, is drawn at random;
    later cuts accept more people.
    """
    rng = np.random.default_rng([31, seed])
    n_groups = int(rng.integers(3, 5))
    sizes = rng.integers(2, 7, n_groups)
    points = [
        Points(
            rng.normal(0.05, 0.1, n),
            rng.integers(-3, 4, n) / 16,  # so that some choices meet a bound exactly
            np.sort(rng.random(n)) / n_groups,
            np.full(n, np.nan)
            if g == 0 and seed % 3 == 0
            else np.sort(rng.integers(9, size=n) / 8),
        )
        for g, n in enumerate(sizes)
    ]
    table = Table(points, [np.arange(n) for n in sizes], float(rng.choice([0.0, 0.4])))
    return table, float(rng.choice([0.5, 1.0]))


def groups_of(table: Table) -> list[np.ndarray]:
    return [np.arange(s, s + n) for s, n in zip(table.start, table.size, strict=True)]


def admissible(table: Table, choice: np.ndarray, difference: float) -> bool:
    rates = table.rate[choice][~np.isnan(table.rate[choice])]
    close = rates.size < 2 or np.ptp(rates) <= difference
    enough = table.slack[choice].sum() >= 0 and table.surplus[choice].sum() >= 0
    return bool(close and enough)


def all_choices(table: Table, difference: float) -> list[tuple[float, tuple[int, ...]]]:
    """Return every admissible choice with its worth, the best last."""
    choices = (np.array(one) for one in product(*groups_of(table)))
    found = [one for one in choices if admissible(table, one, difference)]
    return sorted((float(table.worth[one].sum()), tuple(one.tolist())) for one in found)


@pytest.mark.parametrize("seed", range(60))
def test_the_best_admissible_choice_is_found(seed):
    table, difference = random_table(seed)
    relaxed, places = relax(table, -np.inf), groups_of(table)
    choices = all_choices(table, difference)
    worths = [worth for worth, _ in choices] or [0.0]
    # Nothing known yet; a floor that only the best passes; and one that nobody does.
    for floor in (-10.0, worths[-1] - 1e-9, worths[-1] + 1e-9):
        found, complete = merge(table, relaxed, places, floor, difference, THOROUGH)
        assert complete
        if choices and floor < worths[-1]:
            assert tuple(found.tolist()) == choices[-1][1]
        else:
            assert found is None


def test_most_tables_have_a_choice_that_constraints_take_from_another():
    """What the others are tested on: the best of all is mostly not admissible."""
    n_choices, n_bound = 0, 0
    for seed in range(60):
        table, difference = random_table(seed)
        choices = all_choices(table, difference)
        best = sum(float(table.worth[p].max()) for p in groups_of(table))
        n_choices += bool(choices)
        n_bound += bool(choices) and choices[-1][0] < best - 1e-9
    assert n_choices > 50
    assert n_bound > 30


def test_what_little_effort_keeps_is_the_most_promising():
    value, items = np.array([0.1, 0.9, -1.0, 0.5, 0.3]), np.array([7, 2, 5, 3, 8])
    for size, kept in ((1, [2]), (2, [2, 3]), (3, [2, 3, 8]), (5, items.tolist())):
        assert _largest(value, size, items).tolist() == kept


def test_little_effort_finds_less_and_says_so():
    unsure = missed = 0
    for seed in range(60):
        table, difference = random_table(seed)
        relaxed, places = relax(table, -np.inf), groups_of(table)
        choices = all_choices(table, difference)
        for effort in (Effort(4, 12), Effort(3, 10_000), Effort(10_000, 12)):
            found, complete = merge(table, relaxed, places, -10.0, difference, effort)
            best = choices[-1][1] if choices else None
            if found is not None:
                assert admissible(table, found, difference)
            if complete:
                assert (None if found is None else tuple(found.tolist())) == best
            unsure += not complete
            missed += best is not None and (found is None or tuple(found.tolist()) != best)
    assert unsure > 60
    assert missed > 10


@pytest.mark.parametrize("seed", range(40))
def test_polishing_lets_each_pair_answer_the_others_once(seed):
    table, difference = random_table(seed)
    choices, places = all_choices(table, difference), groups_of(table)
    relaxed = relax(table, -np.inf)
    for _, start in choices[:: max(1, len(choices) // 5)]:
        expected = np.array(start)
        for g, h in combinations(range(len(places)), 2):
            answers = []
            for one, other in product(places[g], places[h]):
                answer = expected.copy()
                answer[[g, h]] = one, other
                if admissible(table, answer, np.inf):
                    answers.append((float(table.worth[answer].sum()), answer))
            worth, answer = max(answers, key=lambda pair: pair[0])
            better = worth > table.worth[expected].sum()
            expected = answer if better and admissible(table, answer, difference) else expected
        found = polish(table, relaxed, places, np.array(start), difference)
        assert found.tolist() == expected.tolist()
