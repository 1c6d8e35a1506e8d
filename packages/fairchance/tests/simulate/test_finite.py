from itertools import chain, combinations

import numpy as np
import pytest

from fairchance import Revenue
from fairchance.errors import InputError
from fairchance.simulate.people import People
from fairchance.simulate.populations import FiniteDomain


@pytest.fixture
def domain():
    return FiniteDomain(
        [[0, 1], [1, 1], [2, 0], [2, 1], [2, 1]],
        ["a", "a", "b", "b", "a"],
        mass=[0.25, 0.2, 0.4, 0.1, 0.05],
        good=[0.9, 0.8, 0.82, 0.3, 0.95],
    )


def test_people_are_drawn_from_the_cells(domain, rng):
    people = domain.draw(50_000, rng)
    cell = domain.cell_of(people)
    assert np.bincount(cell) / 50_000 == pytest.approx(domain.mass, abs=0.01)
    assert np.array_equal(domain.X[cell], people.X)
    assert np.array_equal(domain.group[cell], people.group)
    assert np.array_equal(domain.probability_good(people), domain.good[cell])


@pytest.mark.parametrize("alpha", [0.01, 0.06, 0.12, 0.15, 0.2, 0.5])
@pytest.mark.parametrize("loss", [200, 500, 1500])
def test_optimum_against_all_sets_of_cells(domain, alpha, loss):
    """The optimum is the best ranking by P(good); other sets of cells may be better."""
    utility = Revenue(200, loss)
    best = domain.optimum(utility, alpha)
    order = np.argsort(domain.good)[::-1]
    worth = [0.0]
    for size in range(1, 6):
        cells = order[:size]
        mass, good = domain.mass[cells], domain.good[cells]
        if mass @ (1 - good) <= alpha * mass.sum():
            worth.append(float(mass @ (200 * good - loss * (1 - good))))
    assert best.utility == pytest.approx(max(worth))
    everything = chain.from_iterable(combinations(range(5), k) for k in range(6))
    feasible = [
        float(
            domain.mass[list(c)] @ (200 * domain.good[list(c)] - loss * (1 - domain.good[list(c)]))
        )
        for c in everything
        if domain.mass[list(c)] @ (1 - domain.good[list(c)] - alpha) <= 1e-12
    ]
    assert best.utility <= max(feasible) + 1e-12


def test_unknown_people_and_invalid_cells(domain):
    with pytest.raises(InputError, match="'c'"):
        domain.cell_of(People(np.array([[0.0, 1.0]]), np.array(["c"])))
    with pytest.raises(InputError, match="cells"):
        FiniteDomain([[0], [0]], ["a", "a"], [1, 1], [0.5, 0.6])
    with pytest.raises(InputError, match=r"2.*1"):
        FiniteDomain([[0], [1]], ["a"], [1, 1], [0.5, 0.6])
    with pytest.raises(InputError, match=r"mass.*0"):
        FiniteDomain([[0]], ["a"], [0], [0.5])
    with pytest.raises(InputError):
        FiniteDomain([[0]], ["a"], [1], [1.5])


def test_a_cell_exactly_at_the_bound_is_allowed():
    """In floating point, 1 − 0.85 is slightly more than 0.15."""
    domain = FiniteDomain([[0.0], [1.0]], ["a", "a"], [0.5, 0.5], [0.85, 0.2])
    assert domain.optimum(Revenue(200, 500), 0.15).utility == pytest.approx(47.5)
