"""Draws from cells: the probabilities that are stated are those with which people are drawn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from secondlook.core.sampling import fixed_size_draw
from secondlook.errors import InputError
from secondlook.methods.finite.drawing import choose, fill, plan_draw
from secondlook.people.ids import keyed_bits, round_key

N_DRAWS = 6000
FALSE_ALARM = 1e-6  # of each frequency test as a whole

SIZE = np.array([1.0, 2.0, 40.0, 3.0, 0.5, 7.0])
HEADS = np.array([9, 4, 2, 5, 0, 6])
GROUP = np.array([0, 0, 1, 1, 1, 2])
SHARES = np.array([0.6, 0.1, 0.3])


def people():
    return np.repeat(np.arange(HEADS.size), HEADS).astype(np.int32)


def draw(round, n_draw, shares, ids):
    plan = plan_draw(SIZE, HEADS, n_draw, GROUP, shares, HEADS.sum())
    lined_up = keyed_bits(np.arange(SIZE.size, dtype=np.uint64), round_key(3, round, 4))
    counts = plan.counts(HEADS, lined_up, round_key(3, round, 2))
    return plan, choose(people(), ids, round_key(3, round, 1), counts, HEADS)


def fits(times_drawn, probability):
    """Test each count against the binomial, exactly, two-sided, Bonferroni."""
    low = binom.cdf(times_drawn, N_DRAWS, probability)
    high = binom.sf(times_drawn - 1, N_DRAWS, probability)
    return bool(np.all(np.minimum(low, high) >= FALSE_ALARM / (2 * times_drawn.size)))


@pytest.mark.parametrize("shares", [None, SHARES])
def test_everybody_is_drawn_as_often_as_stated(shares):
    cell, ids = people(), np.arange(HEADS.sum(), dtype=np.uint64)
    times = np.zeros(cell.size, int)
    for round in range(1, N_DRAWS + 1):
        plan, rows = draw(round, 10, shares, ids)
        assert rows.size == 10
        times[rows] += 1
    assert fits(times, plan.probability[cell])
    # The first of each cell instead of those with the smallest bits: as many, but the wrong ones.
    first = np.concatenate([[True], np.diff(cell) > 0])
    of_cell = np.bincount(cell, times)
    assert not fits(np.where(first, np.minimum(of_cell[cell], N_DRAWS), 0), plan.probability[cell])
    # Probabilities that forget the cap at 1.
    assert not fits(times, np.minimum(1, 10 * SIZE[cell] / SIZE[cell].sum()))


@pytest.mark.parametrize("shares", [None, SHARES])
@pytest.mark.parametrize("n_draw", [1, 5, 10, 20, 26])
def test_chances_are_those_of_a_draw_of_people(n_draw, shares):
    """The library's draw of people computes them person by person, in another way."""
    cell = people()
    plan = plan_draw(SIZE, HEADS, n_draw, GROUP, shares, 40)
    bits = np.arange(cell.size, dtype=np.uint64)
    by_people = fixed_size_draw(
        SIZE[cell], n_draw, bits, np.uint64(0), GROUP[cell], 3, shares, n_batch=40
    )
    assert plan.probability[cell] == pytest.approx(by_people.probability, abs=1e-8)
    assert plan.expected.sum() == pytest.approx(n_draw)
    empty = HEADS == 0
    would_be = by_people.chance(SIZE[empty], GROUP[empty])
    assert plan.probability[empty] == pytest.approx(would_be, abs=1e-8)


@given(
    cells=st.lists(
        st.tuples(st.floats(1e-6, 1e3), st.integers(0, 30), st.integers(0, 2)),
        min_size=1,
        max_size=12,
    ),
    part=st.floats(0, 1),
    quotas=st.booleans(),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=150, deadline=None)
def test_the_size_is_exact_and_cells_get_what_is_expected_of_them(cells, part, quotas, seed):
    size, heads, group = (np.array(one) for one in zip(*cells, strict=True))
    n_draw = int(part * heads.sum())
    shares = np.bincount(group, heads, 3) / max(heads.sum(), 1) if quotas else None
    plan = plan_draw(size, heads, n_draw, group, shares, max(heads.sum(), 1))
    bits = keyed_bits(np.arange(size.size, dtype=np.uint64), round_key(seed, 1))
    counts = plan.counts(heads, bits, round_key(seed, 2))
    assert counts.sum() == n_draw
    assert np.all(np.abs(counts - plan.expected) < 1 + 1e-9)
    assert np.all(counts <= heads)
    if quotas:  # the shares are those of the candidates, so each group gets its part
        got = np.bincount(group, plan.expected, 3)
        assert got == pytest.approx(n_draw * shares)


def test_the_order_of_rows_does_not_matter(rng):
    cell, ids = people(), rng.integers(2**63, size=HEADS.sum()).astype(np.uint64)
    counts, key = np.array([3, 1, 1, 2, 0, 6]), round_key(5, 1)
    rows = choose(cell, ids, key, counts, HEADS)
    assert np.bincount(cell[rows], minlength=6).tolist() == counts.tolist()
    mixed = rng.permutation(cell.size)
    again = choose(cell[mixed], ids[mixed], key, counts, HEADS)
    assert sorted(ids[mixed][again]) == sorted(ids[rows])


def test_a_cell_with_too_few_small_bits_is_looked_at_as_a_whole():
    """Bits as keyed randomness never has them: all of one cell's are large."""
    n, key = 2000, round_key(1, 1)
    candidates = np.arange(40 * n, dtype=np.uint64)
    own = keyed_bits(candidates, key)
    large = candidates[own > np.uint64(2**63)][:n]
    usual = candidates[-n:]
    cell = np.repeat([0, 1], n).astype(np.int32)
    bits = np.concatenate([large, usual])
    rows = choose(cell, bits, key, np.array([20, 20]), np.array([n, n]))
    for z in (0, 1):
        mine = np.flatnonzero(cell == z)
        smallest = mine[np.argsort(keyed_bits(bits[mine], key))[:20]]
        assert np.array_equal(np.sort(rows[cell[rows] == z]), np.sort(smallest))


def test_fill_against_bisection(rng):
    for _ in range(100):
        weight, room = rng.gamma(0.3, size=8) + 1e-9, rng.integers(1, 9, 8).astype(float)
        total = rng.random() * room.sum()
        low, high = 0.0, total / weight.min() + room.max() / weight.min()
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (
                (middle, high) if np.minimum(room, middle * weight).sum() < total else (low, middle)
            )
        assert fill(weight, room, total) == pytest.approx(np.minimum(room, high * weight), abs=1e-7)


def test_what_no_weight_can_take_goes_to_those_without():
    shared = fill(np.array([1.0, 0.0, 0.0]), np.array([2.0, 1.0, 3.0]), 4.0)
    assert shared.tolist() == [2.0, 0.5, 1.5]


def test_more_than_there_are_cannot_be_drawn():
    with pytest.raises(InputError, match="between 0 and the 26 candidates, got 27"):
        plan_draw(SIZE, HEADS, 27, GROUP, None, 40)
