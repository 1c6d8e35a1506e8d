"""Draws: exact inclusion probabilities, exact sizes, and no dependence on the order of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from fairchance.core.sampling import Draw, coin_flips, fixed_size_draw, ramped_coins
from fairchance.errors import InputError
from fairchance.people.ids import keyed_bits, ramp_bits, round_key

N_DRAWS = 20_000
FALSE_ALARM = 1e-6  # of each frequency test as a whole, whatever the number of people


@dataclass(frozen=True)
class Case:
    size: np.ndarray
    n_draw: int
    group: np.ndarray | None = None
    shares: np.ndarray | None = None

    @property
    def n(self) -> int:
        return self.size.size

    @property
    def groups(self) -> np.ndarray:
        return np.zeros(self.n, np.intp) if self.group is None else self.group

    @property
    def n_groups(self) -> int:
        return 1 if self.shares is None else self.shares.size

    def draw(self, bits: np.ndarray, start: np.uint64) -> Draw:
        return fixed_size_draw(
            self.size, self.n_draw, bits, start, self.groups, self.n_groups, self.shares
        )

    def in_round(self, round: int) -> Draw:
        bits = keyed_bits(np.arange(self.n, dtype=np.uint64), round_key(11, round, 1))
        return self.draw(bits, round_key(11, round, 2))


UNIFORM = Case(np.ones(7), 3)
CAPPED = Case(np.array([500.0, 90.0, 7.0, 4.0, 2.0, 1.0, 1.0]), 4)
# Group 0 has 2 members for a quota of 4.2; group 1 gets 5/7 and group 2 gets 2/7 of the other 4.
QUOTAS = Case(
    np.array([1.0, 5.0, 9.0, 1.0, 1.0, 1.0, 2.0, 3.0, 1.0, 1.0]),
    6,
    np.array([0, 0, 1, 1, 1, 1, 1, 2, 2, 2]),
    np.array([0.7, 0.75 / 3.5, 0.3 / 3.5]),
)


@pytest.fixture(scope="module")
def keys() -> tuple[np.ndarray, np.ndarray]:
    """Keys of the bits and starts of the comb, a pair for each of many rounds."""
    pairs = [(round_key(11, t, 1), round_key(11, t, 2)) for t in range(1, N_DRAWS + 1)]
    bits, starts = np.array(pairs, np.uint64).T
    return bits, starts


def fits(times_drawn: np.ndarray, pi: np.ndarray, n_draws: int = N_DRAWS) -> bool:
    """Test each person's count against Binomial(n_draws, π), exactly, two-sided, Bonferroni."""
    low = binom.cdf(times_drawn, n_draws, pi)
    high = binom.sf(times_drawn - 1, n_draws, pi)
    return bool(np.all(np.minimum(low, high) >= FALSE_ALARM / (2 * pi.size)))


def by_bisection(size: np.ndarray, quota: float) -> np.ndarray:
    """Return min(1, c·size) with sum ``quota``, c found by bisection."""
    low, high = 0.0, 2 * quota / size.min()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(1, middle * size).sum() < quota else (low, middle)
    return np.minimum(1, high * size)


@pytest.mark.parametrize(
    ("case", "quotas"),
    [(UNIFORM, [3]), (CAPPED, [4]), (QUOTAS, [2, 4 * 5 / 7, 4 * 2 / 7])],
    ids=["uniform", "capped", "quotas"],
)
def test_frequencies_are_the_inclusion_probabilities(case, quotas, keys):
    pi = np.empty(case.n)
    for z, quota in enumerate(quotas):
        pi[case.groups == z] = by_bisection(case.size[case.groups == z], quota)
    bits = keyed_bits(np.arange(case.n, dtype=np.uint64), keys[0][:, None])
    drawn = np.empty((N_DRAWS, case.n), bool)
    for t, start in enumerate(keys[1]):
        draw = case.draw(bits[t], start)
        drawn[t] = draw.drawn
    per_group = drawn @ (case.groups[:, None] == np.arange(len(quotas))).astype(int)
    assert draw.probability == pytest.approx(pi, rel=1e-6)  # sizes have 32 bits
    assert np.all(per_group.sum(axis=1) == case.n_draw)
    assert np.all(per_group >= np.floor(quotas))
    assert np.all(per_group <= np.ceil(quotas))
    assert fits(drawn.sum(axis=0), pi)


def test_sequential_draws_without_replacement_fail_the_same_test():
    rng, pi = np.random.default_rng(0), by_bisection(CAPPED.size[2:], 3)
    chance = CAPPED.size[2:] / CAPPED.size[2:].sum()
    counts = np.zeros(pi.size, int)
    for _ in range(N_DRAWS):
        counts[rng.choice(pi.size, 3, replace=False, p=chance)] += 1
    assert not fits(counts, pi)


def test_a_comb_that_always_starts_at_zero_fails_the_same_test(keys):
    case = Case(np.array([1.0, 3.0, 3.0, 3.0]), 1, np.array([0, 1, 1, 1]), np.array([0.1, 0.9]))
    bits = keyed_bits(np.arange(4, dtype=np.uint64), keys[0][:2000, None])
    counts = sum(case.draw(row, np.uint64(0)).drawn.astype(int) for row in bits)
    assert not fits(counts, np.array([0.1, 0.3, 0.3, 0.3]), 2000)


@st.composite
def cases(draw):
    n = draw(st.integers(1, 30))
    size = np.array(draw(st.lists(st.floats(1e-3, 1e3), min_size=n, max_size=n)))
    n_draw = draw(st.integers(0, n))
    if draw(st.booleans()):
        return Case(size, n_draw)
    p = draw(st.integers(1, 4))
    group = np.array(draw(st.lists(st.integers(0, p - 1), min_size=n, max_size=n)))
    raw = np.array(draw(st.lists(st.sampled_from([0.0, 0.1, 1.0, 5.0]), min_size=p, max_size=p)))
    raw[0] += raw.sum() == 0
    return Case(size, n_draw, group, raw / raw.sum())


@given(cases(), st.integers(1, 10**6))
def test_every_draw_keeps_its_promises(case, round):
    draw = case.in_round(round)
    pi, group = draw.probability, case.groups
    assert draw.drawn.sum() == case.n_draw
    assert pi.sum() == pytest.approx(case.n_draw, abs=1e-9)
    assert np.all((pi >= 0) & (pi <= 1))
    # Proportional to size among those who are neither certain nor out of it, line by line.
    for z in range(case.n_groups if case.shares is not None else 1):
        loose = (pi > 0) & (pi < 1) & ((group == z) | (case.shares is None))
        # Sizes are whole numbers of 2^-32 of the largest one, here at worst 1 in 4000 of a size.
        assert not loose.any() or np.ptp(np.log(pi[loose] / case.size[loose])) < 1e-3
    # Somebody of average size who was not there would have had an average chance.
    assert draw.left.shape == draw.others.shape == (case.n_groups,)
    if case.shares is None and case.n_draw and np.all(pi < 1):
        mean = np.array([case.size.mean()])
        chance = draw.chance(mean, np.zeros(1, np.intp))
        assert chance == pytest.approx(case.n_draw / case.size.size, rel=1e-3)
    assert np.all(draw.drawn[pi == 1])
    assert not np.any(draw.drawn[pi == 0])
    if case.shares is not None:
        quotas = np.bincount(group, pi, case.n_groups)
        counts = np.bincount(group[draw.drawn], minlength=case.n_groups)
        assert np.all(counts >= np.floor(quotas + 1e-9))
        assert np.all(counts <= np.ceil(quotas - 1e-9))


@given(cases(), st.integers(1, 1000), st.randoms(use_true_random=False))
def test_order_of_rows_does_not_matter(case, round, random):
    order = np.array(random.sample(range(case.n), case.n))
    bits = keyed_bits(np.arange(case.n, dtype=np.uint64), round_key(1, round))
    start = round_key(2, round)
    shuffled = Case(
        case.size[order],
        case.n_draw,
        None if case.group is None else case.group[order],
        case.shares,
    )
    one, other = case.draw(bits, start), shuffled.draw(bits[order], start)
    assert np.array_equal(one.drawn[order], other.drawn)
    assert np.array_equal(one.probability[order], other.probability)
    assert np.array_equal(one.left, other.left)
    assert np.array_equal(one.others, other.others)


def test_sums_are_exact_among_millions_of_people():
    """Above 2⁵³ sums of whole numbers are rounded, and differ with the order of rows."""
    rng, n = np.random.default_rng(4), 2_500_000
    bits = rng.integers(0, 2**64, n, dtype=np.uint64)
    crowd = Case(rng.uniform(0.9, 1, n), 7, np.zeros(n, np.intp), np.ones(1))
    backwards = Case(crowd.size[::-1], 7, crowd.group, crowd.shares)
    one, other = crowd.draw(bits, np.uint64(5)), backwards.draw(bits[::-1], np.uint64(5))
    assert np.array_equal(one.probability, other.probability[::-1])
    assert np.array_equal(one.others, other.others)
    finer = np.ceil(crowd.size * 2**32)  # the control: as fine as sizes are in smaller batches
    sums = [np.bincount(crowd.group, some)[0] for some in (finer, finer[::-1])]
    assert sums[0] != sums[1]


def test_draws_of_none_and_of_all():
    nobody, everybody = Case(CAPPED.size, 0).in_round(1), Case(CAPPED.size, 7).in_round(1)
    assert not nobody.drawn.any()
    assert not nobody.probability.any()
    assert not nobody.chance(CAPPED.size, np.zeros(7, np.intp)).any()
    assert everybody.drawn.all()
    assert everybody.probability == pytest.approx(np.ones(7))
    assert np.all(everybody.chance(CAPPED.size, np.zeros(7, np.intp)) == 1)
    assert Case(np.empty(0), 0).in_round(1).drawn.size == 0


def test_quotas_follow_the_shares_where_there_is_room():
    group = np.repeat([0, 1, 2], [10, 10, 1])
    shares = np.array([0.5, 0.25, 0.25])
    # The single member of group 2 cannot take more than one; the rest is split 2 : 1.
    for n_draw, quotas in ((4, [2, 1, 1]), (6, [10 / 3, 5 / 3, 1]), (8, [14 / 3, 7 / 3, 1])):
        draw = Case(np.ones(21), n_draw, group, shares).in_round(1)
        assert np.bincount(group, draw.probability) == pytest.approx(quotas)
        assert draw.drawn.sum() == n_draw


def test_a_group_without_a_share_fills_in_only_when_the_others_are_used_up():
    group = np.repeat([0, 1], [3, 9])
    shares = np.array([1.0, 0.0])
    assert (
        Case(np.ones(12), 3, group, shares).in_round(1).drawn.tolist() == [True] * 3 + [False] * 9
    )
    assert Case(np.ones(12), 5, group, shares).in_round(1).probability == pytest.approx(
        np.repeat([1, 2 / 9], [3, 9])
    )


@pytest.mark.parametrize("n_draw", [-1, 8])
def test_no_more_than_there_are(n_draw):
    with pytest.raises(InputError, match=f"7.*got {n_draw}"):
        Case(np.ones(7), n_draw).in_round(1)


def plain_draw(case: Case, bits: np.ndarray, start: np.uint64, quotas: np.ndarray) -> np.ndarray:
    """Sort everybody, walk the running sum of π and see who holds a tooth."""
    offset = float(int(start) >> 11) / 2**53
    drawn, begin = np.zeros(case.n, bool), 0.0
    for z, quota in enumerate(quotas):
        people, left = np.flatnonzero(case.groups == z), quota
        while np.any(certain := case.size[people] * left >= case.size[people].sum()):
            drawn[people[certain]] = True
            people, left = people[~certain], left - certain.sum()
        people = people[np.argsort(bits[people])]
        sums = np.cumsum(case.size[people])
        edges = begin + left * np.r_[0, sums] / sums[-1]
        drawn[people[np.diff(np.floor(edges - offset)) > 0]] = True
        begin += left
    return drawn


@pytest.mark.parametrize("n", [100, 2**16 + 5000])
@pytest.mark.parametrize("share_drawn", [0.0005, 0.2, 0.9])
@pytest.mark.parametrize("shares", [None, [0.5, 0.2, 0.3]])
def test_against_a_plain_walk_along_the_line(n, share_drawn, shares):
    rng = np.random.default_rng(n)
    size = 2.0 ** rng.integers(0, 11, n) + rng.integers(0, 2, n)
    size[0] = 2.0**12  # a power of two: sizes are whole numbers without rounding
    n_draw = max(1, int(share_drawn * n))
    group = None if shares is None else rng.choice(3, n, p=shares)
    members = None if group is None else np.bincount(group)
    case = Case(size, n_draw, group, None if members is None else members / n)
    quotas = np.array([n_draw]) if members is None else n_draw * members / n
    for round in range(3):
        bits, start = (
            keyed_bits(np.arange(n, dtype=np.uint64), round_key(0, round)),
            round_key(1, round),
        )
        assert np.array_equal(case.draw(bits, start).drawn, plain_draw(case, bits, start, quotas))


def test_coins_fall_as_often_as_they_should(keys):
    pi = np.array([0.0, 1e-3, 0.3, 0.5, 0.999, 1.0])
    bits = keyed_bits(np.arange(6, dtype=np.uint64), keys[0][:, None])
    counts = coin_flips(pi, bits).sum(axis=0)
    assert fits(counts, pi)
    assert not fits(counts, np.array([0.0, 1e-3, 0.33, 0.5, 0.999, 1.0]))


@pytest.mark.parametrize("wrong", [-1e-9, 1 + 1e-9, np.nan])
def test_coins_need_probabilities(wrong):
    with pytest.raises(InputError, match="probabilities"):
        coin_flips(np.array([0.5, wrong]), np.zeros(2, np.uint64))


@pytest.mark.parametrize("ramp", [0.0, 0.05, 0.6, 1.0])
def test_ramped_coins_have_their_probabilities(ramp):
    pi, d = np.array([0.0, 0.3, 1.0] * 2), np.repeat([False, True], 3)
    ids, counts = np.arange(6, dtype=np.uint64), np.zeros(6)
    for seed in range(N_DRAWS):
        bits = keyed_bits(ids, round_key(seed, 1, 4))
        accepted, p = ramped_coins(pi, d, ramp, bits, ramp_bits(ids, seed))
        counts += accepted
    assert p.tolist() == ((1 - ramp) * d + ramp * pi).tolist()
    assert fits(counts, p)
    if ramp < 1:
        assert not fits(counts, pi)


@given(st.integers(0, 2**31), st.floats(0, 1), st.floats(0, 1))
def test_a_small_ramp_is_part_of_a_larger_one(seed, one, other):
    small, large = sorted((one, other))
    ids = np.arange(200, dtype=np.uint64)
    follows = [
        ramped_coins(np.ones(200), np.zeros(200, bool), ramp, ids, ramp_bits(ids, seed))[0]
        for ramp in (small, large)
    ]
    assert not np.any(follows[0] & ~follows[1])


def test_without_an_incumbent_the_policy_decides():
    bits = np.array([0, 2**63], np.uint64)
    accepted, p = ramped_coins(np.array([0.5, 0.5]), None, 1.0, bits, bits)
    assert (accepted.tolist(), p.tolist()) == ([True, False], [0.5, 0.5])


def draw(size, n_draw, start=0, shares=None, group=None):
    n = len(size)
    group = np.zeros(n, np.intp) if group is None else np.array(group)
    bits = np.arange(n, dtype=np.uint64) << np.uint64(50)
    n_groups = int(group.max()) + 1
    sizes, tooth = np.array(size, float), np.uint64(start)
    return fixed_size_draw(sizes, n_draw, bits, tooth, group, n_groups, shares)


def test_a_giant_does_not_coarsen_the_others():
    giant = draw([1e12, 1, 1, 1, 2], 2)
    assert giant.probability == pytest.approx([1, 0.2, 0.2, 0.2, 0.4], rel=1e-9)
    apart = draw([1e12, 1e12, 1, 2], 2, shares=np.array([0.5, 0.5]), group=[0, 0, 1, 1])
    assert apart.probability == pytest.approx([0.5, 0.5, 1 / 3, 2 / 3], rel=1e-9)


def test_sizes_may_be_tiny():
    assert draw([1e-290, 3e-290], 1).probability == pytest.approx([0.25, 0.75])


@pytest.mark.parametrize("n_draw", [1, 2])
def test_every_size_has_a_chance(n_draw):
    small = draw([1.0, 1.0, 1e-15, 1e-300], n_draw)
    assert np.all(small.probability > 0)
    assert small.probability.sum() == pytest.approx(n_draw)
    apart = draw([1.0, 1e-15, 1.0, 1.0], 2, shares=np.array([0.5, 0.5]), group=[0, 0, 1, 1])
    assert np.all(apart.probability > 0)


@pytest.mark.parametrize("start", [0, 1, 1 << 11, 1 << 12, 1 << 30, 2**64 - 1])
def test_never_one_too_many(start):
    for n_draw in (1, 3, 7):
        assert draw(np.ones(10), n_draw, start).drawn.sum() == n_draw


@pytest.mark.parametrize("n_groups", [10, 20])
def test_quotas_with_rounding_errors_still_draw_all(n_groups):
    """Ten tenths of three people sum to a little less than three."""
    group, shares = np.arange(2 * n_groups) % n_groups, np.full(n_groups, 1 / n_groups)
    sums = np.cumsum(np.outer(np.arange(1, 8), shares), axis=1)[:, -1]
    assert np.any(sums < np.arange(1, 8))
    for n_draw in range(1, 8):
        assert draw(np.ones(group.size), n_draw, 0, shares, group).drawn.sum() == n_draw


def test_groups_without_a_share_fill_in_by_their_members():
    group, shares = np.repeat([0, 1, 2], [2, 3, 9]), np.array([1.0, 0.0, 0.0])
    found = draw(np.ones(14), 6, shares=shares, group=group)
    assert np.bincount(group, found.probability) == pytest.approx([2, 1, 3])


def test_the_chance_of_an_absent_applicant():
    group = np.zeros(1, np.intp)
    alone = draw([0.3], 1)  # whoever comes alone and is allowed is drawn
    assert alone.chance(np.array([0.9]), group) == 1
    assert Draw.of_nobody(3, 1).chance(np.array([0.9]), group) == 1
    assert Draw.of_nobody(0, 1).chance(np.array([0.9]), group) == 0
    many = draw(np.ones(1000), 100)
    assert many.chance(np.array([2.0]), group) == pytest.approx(200 / 1001)
    assert many.chance(np.array([20.0]), group) == 1  # 100 · 20 is more than all there are
    bits = np.arange(10, dtype=np.uint64)
    # Among 40, of whom 10 were candidates, an average person makes way for a fortieth of all.
    among = fixed_size_draw(
        np.ones(10), 2, bits, np.uint64(0), np.zeros(10, np.intp), 1, n_batch=40
    )
    assert among.chance(np.ones(1), group) == pytest.approx(2 / (10 * 39 / 40 + 1))
    # A group that nobody was there of gets an average share.
    two = fixed_size_draw(
        np.ones(10), 2, bits, np.uint64(0), np.zeros(10, np.intp), 2, np.array([1.0, 0.0])
    )
    assert two.chance(np.array([5.0]), np.array([1])) == pytest.approx(0.2)
