"""Operating points against brute force over every combination of cuts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import parities
from fairchance.core.fairness import (
    EqualizedOdds,
    FalseDiscoveryRateParity,
    FalseOmissionRateParity,
    SelectionRateParity,
    TruePositiveRateParity,
)
from fairchance.core.utility import Accuracy, PositiveRate, Revenue, Utility
from fairchance.errors import InputError
from fairchance.learners.curves import exact_weights
from fairchance.learners.pair_search import best_in_windows, range_max
from fairchance.learners.thresholds import group_thresholds, shared_threshold
from learners.brute_force import (
    EXACT,
    Case,
    brute_force,
    check_report,
    check_violation,
    random_case,
)

MAX_GAP = 1e-3
# A few problems each time, and many in the long tests.
SEEDS = pytest.mark.parametrize(
    "seeds", [range(50), pytest.param(range(50, 200), marks=pytest.mark.long)]
)


@SEEDS
def test_shared_threshold_is_the_best_of_all_cuts(seeds):
    for seed in seeds:
        rng = np.random.default_rng([1, seed])
        n_groups = int(rng.integers(1, 5))
        case = random_case(
            rng, n_groups, int(rng.integers(1, 40)), int(rng.integers(1, n_groups + 1))
        )
        point, best = case.solve(shared_threshold), brute_force(case, shared=True)
        check_report(case, point)
        check_violation(case, point, best)
        assert point.utility == pytest.approx(best.utility, abs=EXACT)
        assert point.selection_rate == pytest.approx(best.fewest, abs=EXACT)
        assert np.unique(point.thresholds).size == 1
        assert point.gap == 0


def test_the_cut_for_accuracy_is_one_half_if_scores_are_calibrated():
    """So the paper's fit for accuracy, which has no cut of its own, loses nothing."""
    rng = np.random.default_rng(0)
    p = rng.random(40_000)
    y = rng.random(p.size) < p
    rows = p, y.astype(int), np.ones(p.size), np.zeros(p.size, int), 1
    point = shared_threshold(*rows, utility=Accuracy(), max_fdr=1.0)
    assert point.thresholds[0] == pytest.approx(0.5, abs=0.03)
    assert point.utility - ((p >= 0.5) == y).mean() < 0.002


@SEEDS
def test_two_groups_are_solved_exactly(seeds):
    for seed in seeds:
        rng = np.random.default_rng([2, seed])
        case = random_case(rng, 2, int(rng.integers(1, 60)), int(rng.choice([1, 2, 2, 2])))
        point, best = case.solve(group_thresholds), brute_force(case, shared=False)
        check_report(case, point)
        check_violation(case, point, best)
        assert point.utility == pytest.approx(best.utility, abs=EXACT)
        assert point.selection_rate == pytest.approx(best.fewest, abs=EXACT)
        assert point.gap == 0


@SEEDS
def test_more_groups_are_solved_within_the_reported_gap(seeds):
    for seed in seeds:
        rng = np.random.default_rng([3, seed])
        n_groups = int(rng.choice([3, 4]))
        n = int(rng.integers(3, 90 if n_groups == 3 else 60))
        case = random_case(rng, n_groups, n, int(rng.integers(2, n_groups + 1)))
        best = brute_force(case, shared=False)
        unit = max(abs(case.utility.gain_good), abs(case.utility.gain_bad))
        for max_gap in (MAX_GAP, 0.0):
            point = case.solve(group_thresholds, max_gap=max_gap)
            check_report(case, point)
            check_violation(case, point, best)
            assert 0 <= point.gap <= max_gap
            gain = best.gain - (best.utility - point.utility)
            assert gain <= best.gain + EXACT * unit
            assert best.gain <= gain + point.gap * max(abs(gain), 1e-12 * unit) + EXACT * unit


@pytest.mark.parametrize("seed", range(6))
def test_pruning_and_tree_keep_the_best_pair(seed):
    """Large enough for pruning, small enough to look at every pair of cuts."""
    rng = np.random.default_rng([4, seed])
    case = big_case(rng, 5_000, 2)
    fairness = [
        None,
        SelectionRateParity(0.02),
        TruePositiveRateParity(ratio=0.9),
        EqualizedOdds(0.05),
        FalseDiscoveryRateParity(0.03),
        FalseOmissionRateParity(ratio=0.8),
    ][seed]
    utility = [Revenue(200, 500), PositiveRate()][seed % 2]
    case = replace(
        case, fairness=fairness, utility=utility, min_selection_rate=0.3 * (seed > 1), max_fdr=0.12
    )
    point = case.solve(group_thresholds)
    assert point.utility == pytest.approx(best_pair(case), abs=EXACT)
    check_report(case, point)


def best_pair(case: Case) -> float:
    """Utility of the best admissible pair of cuts, one row of the table of pairs at a time."""
    curves = []
    for g in range(2):
        own = np.flatnonzero(case.group == g)
        own = own[np.argsort(-case.score[own])]
        w, y = case.weight[own], case.outcome[own]
        sums = [np.append(0.0, np.cumsum(v)) for v in (w * y, w * (1 - y))]
        accepted = np.tri(own.size + 1, own.size, -1)
        rates = parities.rates(case.fairness, accepted, y, w) if case.fairness else []
        curves.append((*sums, rates))
    (G0, B0, R0), (G1, B1, R1) = curves
    total, best = case.weight.sum(), -np.inf
    for i in range(G0.size):
        G, B = G0[i] + G1, B0[i] + B1
        gain = (case.utility.gain_good * G + case.utility.gain_bad * B) / total
        fine = case.max_fdr * (G + B) >= B
        if case.fairness:
            fine &= parities.worst(case.fairness, [[r[i] + 0 * G for r in R0], R1])[0] <= 1e-12
        fine &= (G + B) / total >= case.min_selection_rate
        best = max(best, gain[fine].max(initial=-np.inf))
    return best


def big_case(rng: np.random.Generator, n: int, n_groups: int) -> Case:
    group = rng.integers(n_groups, size=n)
    score = 1 / (1 + np.exp(-rng.normal(1.0 + 0.8 * np.cos(group), 1.5)))
    outcome = (rng.random(n) < score).astype(np.int8)
    weight = rng.uniform(0.5, 2.0, n)
    return Case(
        score, outcome, weight, group, n_groups, Revenue(200, 500), 0.1, 0.0, SelectionRateParity()
    )


@pytest.mark.parametrize("n_groups", [3, 5, 8])
@pytest.mark.parametrize(
    "fairness", [None, SelectionRateParity(0.03), EqualizedOdds(0.1), FalseDiscoveryRateParity()]
)
@pytest.mark.parametrize(("max_fdr", "least"), [(0.05, 0.0), (0.12, 0.0), (0.15, 0.5)])
def test_the_gap_is_small_on_moderate_samples(n_groups, fairness, max_fdr, least):
    case = big_case(np.random.default_rng([5, n_groups]), 5_000, n_groups)
    case = replace(case, fairness=fairness, max_fdr=max_fdr, min_selection_rate=least)
    point = case.solve(group_thresholds)
    check_report(case, point)
    assert point.feasible
    assert 0 <= point.gap <= MAX_GAP
    shared = case.solve(shared_threshold)
    assert not shared.feasible or point.utility >= shared.utility * (1 - MAX_GAP)


def test_the_least_violation_on_a_moderate_sample():
    case = replace(
        big_case(np.random.default_rng(6), 2_000, 4), max_fdr=0.02, min_selection_rate=0.8
    )
    point = case.solve(group_thresholds)
    assert not point.feasible
    facts = point.missed.facts
    assert (facts["max_fdr"], facts["min_selection_rate"]) == (0.02, 0.8)
    assert facts["selection_rate"] == point.selection_rate
    assert point.gap <= MAX_GAP
    short = 0.8 - point.selection_rate
    over = point.disparity - 0.05
    eased = replace(
        case,
        min_selection_rate=0.8 - max(short, over) + 1e-6,
        fairness=SelectionRateParity(0.05 + max(short, over) - 1e-6),
    )
    assert not eased.solve(group_thresholds).feasible


@pytest.mark.parametrize("how", [shared_threshold, group_thresholds])
def test_row_order_and_zero_weight_rows_do_not_matter(how):
    for seed in range(20):
        rng = np.random.default_rng([7, seed])
        case = random_case(rng, 3, 50, 3)
        point = case.solve(how)
        for changed in (case.rows(rng.permutation(50)), case.rows(case.weight > 0)):
            again = changed.solve(how)
            assert again.thresholds.tolist() == point.thresholds.tolist()
            assert replace(again, thresholds=0) == replace(point, thresholds=0)


@pytest.mark.parametrize("how", [shared_threshold, group_thresholds])
def test_thresholds_separate_adjacent_floats(how):
    low = 0.5
    score = np.array([np.nextafter(low, 1), low, 0.1])
    point = how(score, [1, 0, 0], np.ones(3), np.zeros(3, int), 1, utility=Accuracy(), max_fdr=0.2)
    assert (score >= point.thresholds[0]).tolist() == [True, False, False]
    assert low < point.thresholds[0] <= score[0]


@pytest.mark.parametrize("how", [shared_threshold, group_thresholds])
def test_threshold_is_a_midpoint_and_never_below_the_data(how):
    rows = [0.9, 0.5, 0.2], [1, 1, 0], [1.0, 1.0, 1.0], [0, 0, 0]
    assert how(*rows, 1, utility=Accuracy(), max_fdr=0.5).thresholds[0] == pytest.approx(0.35)
    assert how(*rows, 1, utility=PositiveRate(), max_fdr=0.5).thresholds[0] == 0.2
    assert how(*rows, 1, utility=Utility(), max_fdr=0.5).thresholds[0] == np.inf


@pytest.mark.parametrize("how", [shared_threshold, group_thresholds])
@pytest.mark.parametrize(
    ("more", "taken"), [(0.0, 0), (1.5e-12, 0), (2.5e-12, 2), (1e-9, 2), (-1e-9, 0)]
)
def test_utilities_this_close_are_equal_and_fewer_are_accepted(how, more, taken):
    """A bad row ranks before a good one that is worth a little more than the bad one costs.

    Both together earn half of ``more`` a head, and half of 2e-12 does not count.
    """
    score, utility = np.array([0.9, 0.8]), Revenue(500.0 * (1 + more), 500.0)
    point = how(score, [0, 1], [1.0, 1.0], [0, 0], 1, utility=utility, max_fdr=1.0)
    assert (score >= point.thresholds[0]).sum() == taken


@pytest.mark.parametrize("how", [shared_threshold, group_thresholds])
def test_rounding_of_many_weights_does_not_make_equal_utilities_unequal(how):
    """One good person in four weighs as much as the three bad ones who rank before: a tie."""
    n = 20_000
    good = np.arange(n) >= 3 * n // 4
    weight = np.where(good, 0.3, 0.1)
    whole = exact_weights(weight)
    earned = float(whole @ np.where(good, 1.0, -1.0)) / whole.sum()
    assert earned > 2e-12  # as rounding has it
    point = how(
        np.linspace(1, 0, n), good, weight, np.zeros(n, int), 1, utility=Revenue(1, 1), max_fdr=1.0
    )
    assert point.thresholds[0] == np.inf


@pytest.mark.parametrize("how", [shared_threshold, group_thresholds])
def test_bounds_that_are_met_exactly_are_not_missed_by_rounding(how):
    """k bad among n rows of weight 0.1, with max_fdr = k/n and a selection rate of 1."""
    for n in range(2, 25):
        for k in range(1, n):
            rows = np.arange(n)[::-1] / n, np.arange(n) < n - k, np.full(n, 0.1), np.arange(n) % 2
            bounds = {"max_fdr": k / n, "min_selection_rate": 1.0}
            point = how(*rows, 2, utility=PositiveRate(), **bounds)
            assert point.feasible, (n, k)
            assert point.selection_rate == pytest.approx(1), (n, k)


def test_a_group_without_weight_gets_infinity():
    rows = [0.9, 0.8, 0.7], [1, 1, 1], [1.0, 0.0, 1.0], [0, 1, 2]
    point = group_thresholds(*rows, 4, utility=Accuracy(), max_fdr=0.1)
    assert point.thresholds.tolist() == [0.9, np.inf, 0.7, np.inf]


@pytest.mark.parametrize("how", [shared_threshold, group_thresholds])
@pytest.mark.parametrize("least", [0.0, 0.5])
def test_no_rows(how, least):
    point = how([], [], [], [], 3, utility=Accuracy(), max_fdr=0.1, min_selection_rate=least)
    assert point.thresholds.tolist() == [np.inf] * 3
    assert (point.utility, point.fdr, point.selection_rate) == (0, 0, 0)
    assert point.feasible == (least == 0)


@given(
    rows=st.lists(
        st.tuples(
            st.integers(0, 5),
            st.integers(0, 1),
            st.sampled_from([0.0, 0.5, 1.0, 3.0]),
            st.integers(0, 2),
        ),
        min_size=1,
        max_size=25,
    ),
    max_fdr=st.sampled_from([0.0, 0.1, 0.25, 1.0]),
    difference=st.sampled_from([None, 0.0, 0.1, 0.5]),
    loss=st.sampled_from([0.5, 1.0, 5.0]),
)
@settings(max_examples=150)
def test_properties(rows, max_fdr, difference, loss):
    score, outcome, weight, group = (np.array(column) for column in zip(*rows, strict=True))
    fairness = None if difference is None else SelectionRateParity(difference)
    settings_ = {"utility": Revenue(1.0, loss), "max_fdr": max_fdr}
    one = shared_threshold(score, outcome, weight, group, 3, fairness=fairness, **settings_)
    many = group_thresholds(score, outcome, weight, group, 3, fairness=fairness, **settings_)
    free = group_thresholds(score, outcome, weight, group, 3, **settings_)
    # Rejecting all is admissible; more freedom never hurts; fewer constraints never hurt.
    assert 0 <= one.utility <= many.utility * (1 + many.gap) + EXACT
    assert many.utility <= free.utility * (1 + free.gap) + EXACT
    for point in (one, many, free):
        assert point.feasible
        assert point.fdr <= max_fdr + EXACT
    assert many.disparity <= (1.0 if difference is None else difference) + EXACT
    # Only proportions of weights matter.
    doubled = group_thresholds(score, outcome, 2 * weight, group, 3, fairness=fairness, **settings_)
    assert doubled.thresholds.tolist() == many.thresholds.tolist()


@given(st.data())
@settings(max_examples=100)
def test_windows_are_searched_like_a_loop_would(data):
    n = data.draw(st.integers(1, 20))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    worth, slack = rng.integers(-3, 4, n).astype(float), rng.integers(-3, 4, n).astype(float)
    low, high = np.sort(rng.integers(0, n + 1, (2, 15)), axis=0)
    need = rng.integers(-4, 5, 15).astype(float)
    best = best_in_windows(worth, slack, (low, high), need)
    top = range_max(worth, low, high)
    for k in range(15):
        window = worth[low[k] : high[k]]
        fits = window[slack[low[k] : high[k]] >= need[k]]
        assert best[k] == fits.max(initial=-np.inf)
        assert top[k] == window.max(initial=-np.inf)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score": [0.1, np.nan]}, "score.*nan"),
        ({"outcome": [0, 2]}, "outcome.*2"),
        ({"weight": [1.0, -1.0]}, "weight.*-1"),
        ({"group": [0, 2]}, "group.*0.*1"),
        ({"weight": [1.0]}, None),
        ({"max_fdr": 1.5}, "max_fdr.*0.*1.*1.5"),
        ({"min_selection_rate": -0.1}, "min_selection_rate"),
        ({"max_gap": 2.0}, "max_gap"),
    ],
)
def test_invalid_input_is_named(change, message):
    given_ = {"score": [0.1, 0.2], "outcome": [0, 1], "weight": [1.0, 1.0], "group": [0, 1]}
    rest = {"n_groups": 2, "utility": Accuracy(), "max_fdr": 0.1}
    with pytest.raises(InputError, match=message):
        group_thresholds(**{**given_, **rest, **change})
