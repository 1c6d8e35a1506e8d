"""η_w and σ against their definitions, computed from a list of people."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secondlook.errors import InputError
from secondlook.methods.finite import Counts, eta, sigma

N_CELLS = 4

# Somebody who applied: the cell, and the outcome if it was seen.
person = st.tuples(st.integers(0, N_CELLS - 1), st.sampled_from((None, 0, 1)))


def counts_of(people):
    cells = np.array([cell for cell, _ in people], dtype=int)
    counts = Counts.zeros(N_CELLS).with_applicants(np.bincount(cells, minlength=N_CELLS))
    seen = [
        np.bincount([cell for cell, y in people if y == outcome], minlength=N_CELLS)
        for outcome in (1, 0)
    ]
    return counts.with_outcomes(*seen)


def eta_by_definition(people, exploit, y):
    """Three factors, cell by cell, in fractions, divided by the sum over cells and outcomes."""

    def product(cell, outcome):
        seen = [o for c, o in people if c == cell and o is not None]
        if not exploit[cell] or not seen:
            return Fraction(0)
        applied = Fraction(sum(c == cell for c, _ in people), len(people))
        return applied * Fraction(seen.count(outcome), len(seen))

    total = sum(product(cell, outcome) for cell in range(N_CELLS) for outcome in (0, 1))
    return [float(product(cell, y) / total) if total else 0.0 for cell in range(N_CELLS)]


@given(
    people=st.lists(person, min_size=1, max_size=40),
    exploit=st.lists(st.booleans(), min_size=N_CELLS, max_size=N_CELLS),
)
@settings(max_examples=200, deadline=None)
def test_eta_is_its_definition(people, exploit):
    good, bad = eta(counts_of(people), np.array(exploit))
    assert good == pytest.approx(eta_by_definition(people, exploit, 1))
    assert bad == pytest.approx(eta_by_definition(people, exploit, 0))


@given(people=st.lists(person, min_size=1, max_size=40))
@settings(max_examples=50, deadline=None)
def test_without_weights_outcomes_are_counted(people):
    good, bad = eta(counts_of(people), np.ones(N_CELLS, bool), "none")
    seen = [one for one in people if one[1] is not None]
    for cell in range(N_CELLS):
        assert good[cell] == pytest.approx(seen.count((cell, 1)) / max(len(seen), 1))
        assert bad[cell] == pytest.approx(seen.count((cell, 0)) / max(len(seen), 1))


def test_eta_undoes_the_choice_of_whom_to_observe():
    """Of a cell half as often accepted, η_w is the same; the raw counts are not."""
    rng = np.random.default_rng(0)
    cell = rng.integers(2, size=200_000)
    good = rng.random(cell.size) < np.array([0.9, 0.3])[cell]
    seen = rng.random(cell.size) < np.array([0.8, 0.1])[cell]
    counts = Counts(
        np.bincount(cell), np.bincount(cell[seen & good]), np.bincount(cell[seen & ~good])
    )
    truth = np.array([0.45, 0.15])
    weighted, raw = (eta(counts, np.ones(2, bool), how)[0] for how in ("applicants", "none"))
    assert np.abs(weighted - truth).max() < 0.01
    assert np.abs(raw - truth).max() > 0.1


def test_new_cells_start_from_nothing():
    counts = counts_of([(0, 1), (3, 0), (3, None)]).with_applicants(np.array([0, 1, 0, 0, 5]))
    assert counts.applicants.tolist() == [1, 1, 0, 2, 5]
    assert counts.outcomes.tolist() == [1, 0, 0, 1, 0]
    assert counts.good_share().tolist() == [1.0, 0.5, 0.5, 0.0, 0.5]


def test_sigma_is_the_least_share():
    g, group = np.array([2.0, 1.0, 5.0, 2.0]), np.array(["a", "b", "a", "a"])
    assert sigma(g) == 0.1
    assert sigma(g, group, of="a") == 0.2
    with pytest.raises(InputError, match="no cell belongs to the group 'c'"):
        sigma(g, group, of="c")
    with pytest.raises(InputError, match="above 0 in some"):
        sigma([0.0, 0.0])
