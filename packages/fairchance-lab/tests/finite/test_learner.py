"""The exact learner against enumeration of all classifiers."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import parities
from fairchance import Accuracy, PositiveRate, Revenue, SelectionRateParity, TruePositiveRateParity
from fairchance.core.utility import Utility
from fairchance.errors import InputError
from fairchance_lab.finite import best_classifier
from fairchance_lab.finite.zero_one import _price_of_first, _ZeroOneProgram, maximise

UTILITIES = (
    Accuracy(),
    PositiveRate(),
    Revenue(gain=200, loss=500),
    Revenue(gain=1, loss=9),
    Utility(accept_good=-1, accept_bad=3),
)
SLIP = 1e-11


@st.composite
def domains(draw, most=8):
    """Cells with small whole masses: ties, empty cells and groups of a single cell occur."""
    n = draw(st.integers(1, most))
    masses = st.lists(st.integers(0, 4), min_size=n, max_size=n)
    group = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    return np.array(draw(masses)), np.array(draw(masses)), np.array(group)


@st.composite
def demands(draw):
    kind = draw(st.sampled_from((None, *parities.FAMILY)))
    bounds = [{"difference": d} for d in (0.0, 0.1, 0.25, 0.5)] + [{"ratio": 0.5}, {"ratio": 0.8}]
    return {
        "utility": draw(st.sampled_from(UTILITIES)),
        "max_fdr": draw(st.sampled_from((0.0, 0.2, 0.25, 1 / 3, 0.5, 1.0))),
        "min_selection_rate": draw(st.sampled_from((0.0, 0.0, 0.25, 0.5, 0.9))),
        "constraints": draw(st.sampled_from(("joint", "per_group"))),
        "fairness": kind and kind(**draw(st.sampled_from(bounds))),
    }


def share(part, whole):
    return part / whole if whole else None


def allowed(f, good, bad, group, demand):
    """Return whether a classifier meets the constraints; groups without mass have none."""
    mass = good + bad
    known = [z for z in np.unique(group) if mass[group == z].sum() > 0]
    if not known:
        return demand["min_selection_rate"] == 0
    parts = [np.ones(f.size, bool)]
    if demand["constraints"] == "per_group":
        parts = [group == z for z in known]
    for part in parts:
        accepted = f * part
        fdr = share(bad @ accepted, mass @ accepted) or 0.0
        rate = share(mass @ accepted, mass[part].sum()) or 0.0
        if fdr > demand["max_fdr"] + SLIP or rate < demand["min_selection_rate"] - SLIP:
            return False
    if demand["fairness"] is None:
        return True
    y, twice = np.repeat([1, 0], f.size), np.concatenate([f, f])
    weight, both = np.concatenate([good, bad]), np.concatenate([group, group])
    rates = [
        parities.rates(demand["fairness"], twice[m], y[m], weight[m])
        for m in (both == z for z in known)
    ]
    return parities.worst(demand["fairness"], rates)[0] <= SLIP


def mean_utility(f, good, bad, utility):
    g00, g01, g10, g11 = utility.gamma
    total = (g10 * bad + g11 * good) @ f + (g00 * bad + g01 * good) @ (1 - f)
    return total / ((good + bad).sum() or 1)


def every_function(good, bad, group):
    free = np.flatnonzero(good + bad)
    for bits in product((0, 1), repeat=free.size):
        f = np.zeros(good.size)
        f[free] = bits
        yield f


def every_cut(good, bad, group):
    mass = good + bad
    score = good / np.maximum(mass, 1)
    for cut in (*np.unique(score[mass > 0]), 2.0):
        yield ((score >= cut) & (mass > 0)).astype(float)


def every_cut_per_group(good, bad, group):
    mass = good + bad
    score = good / np.maximum(mass, 1)
    names = np.unique(group)
    cuts = [(*np.unique(score[(mass > 0) & (group == z)]), 2.0) for z in names]
    for chosen in product(*cuts):
        f = np.zeros(good.size)
        for z, cut in zip(names, chosen, strict=True):
            f[(group == z) & (score >= cut) & (mass > 0)] = 1
        yield f


CLASSES = {
    "cells": every_function,
    "threshold": every_cut,
    "threshold_per_group": every_cut_per_group,
}


def is_separate(demand, hypothesis):
    """Return whether groups are learned separately, so that some may fail."""
    per_group = demand["constraints"] == "per_group" and demand["fairness"] is None
    return per_group and hypothesis != "threshold"


def group_without_good():
    """Return a domain in which a group does not enter the rate and cannot be accepted."""
    demand = {
        "utility": UTILITIES[0],
        "max_fdr": 0.0,
        "min_selection_rate": 0.25,
        "constraints": "per_group",
        "fairness": TruePositiveRateParity(0.0),
    }
    return (np.array([0, 1]), np.array([1, 0]), np.array([0, 1])), demand


@pytest.mark.parametrize("hypothesis", CLASSES)
@example(*group_without_good())
@given(domain=domains(), demand=demands())
@settings(max_examples=120)
def test_fit_is_the_best_of_its_class(hypothesis, domain, demand):
    good, bad, group = domain
    fit = best_classifier(good, bad, group, hypothesis=hypothesis, gap=0, **demand)
    candidates = list(CLASSES[hypothesis](good, bad, group))
    values = [
        mean_utility(f, good, bad, demand["utility"])
        for f in candidates
        if allowed(f, good, bad, group, demand)
    ]
    assert fit.feasible == bool(values)
    if values:
        assert fit.utility == pytest.approx(max(values), abs=1e-8)
        assert allowed(fit.accepts.astype(float), good, bad, group, demand)
        assert fit.gap == pytest.approx(0, abs=1e-6)
        assert any(np.array_equal(fit.accepts, f > 0) for f in candidates)
    elif not is_separate(demand, hypothesis):
        assert not fit.accepts.any()


@given(domain=domains(), demand=demands())
@settings(max_examples=60)
def test_infeasible_groups_do_not_affect_others(domain, demand):
    good, bad, group = domain
    demand = demand | {"constraints": "per_group", "fairness": None}
    fit = best_classifier(good, bad, group, gap=0, **demand)
    for z in np.unique(group[good + bad > 0]):
        part = group == z
        own = best_classifier(good[part], bad[part], gap=0, **demand)
        assert np.isclose(
            mean_utility(fit.accepts[part], good[part], bad[part], demand["utility"]), own.utility
        )


def test_greedy_learner_is_worse():
    """The cell of highest share comes first and leaves no room for two that fit together."""
    good, bad = np.array([30.0, 40.0, 20.0]), np.array([0.0, 12.0, 5.5])
    demand = {"utility": PositiveRate(), "max_fdr": 0.15}
    best = best_classifier(good, bad, gap=0, **demand)
    greedy, accepted = np.zeros(3, bool), np.zeros(3, bool)
    for cell in np.argsort(-good / (good + bad)):
        accepted[cell] = True
        if bad @ accepted <= 0.15 * (good + bad) @ accepted:
            greedy = accepted.copy()
        accepted = greedy.copy()
    assert best.utility > mean_utility(greedy, good, bad, PositiveRate())


def programs(rng, n, n_rows):
    gain = rng.integers(-6, 7, n) / 7
    rows = rng.integers(-5, 6, (n_rows, n)) / 3
    limits = rng.integers(-4, 3, n_rows) / 3 + 1e-12
    return gain, rows, limits


@pytest.mark.parametrize("n_rows", [1, 2, 4])
def test_highs_agrees_with_enumeration(n_rows):
    rng = np.random.default_rng(n_rows)
    n_feasible = 0
    for _ in range(60):
        gain, rows, limits = programs(rng, 9, n_rows)
        every = ((np.arange(512)[:, None] >> np.arange(9)) & 1).astype(float)
        fine = np.all(every @ rows.T <= limits, axis=1)
        solution = maximise(gain, rows, limits, 0.0, core=1, whole=1)
        assert solution.feasible == fine.any()
        if fine.any():
            n_feasible += 1
            assert solution.value == pytest.approx((every @ gain)[fine].max(), abs=1e-9)
            assert np.all(rows @ solution.accepts <= limits)
    assert n_feasible > 10


def test_price_of_a_constraint_is_that_of_the_linear_program():
    rng = np.random.default_rng(3)
    for _ in range(200):
        gain, rows, limits = programs(rng, 12, 1)
        prices = _price_of_first(_ZeroOneProgram(gain, rows, limits))
        relaxed = linprog(-gain, rows, limits, bounds=(0, 1))
        assert (prices is None) == (relaxed.status == 2)
        if prices is not None:
            assert _ZeroOneProgram(gain, rows, limits).bound(prices) == pytest.approx(-relaxed.fun)


@pytest.mark.parametrize(
    "options", [{}, {"min_selection_rate": 0.55}, {"constraints": "per_group"}]
)
def test_gap_is_a_valid_bound(options):
    rng = np.random.default_rng(5)
    mass, p, group = rng.gamma(1, size=300), rng.beta(3, 1, 300), rng.integers(2, size=300)
    cells = mass * p, mass * (1 - p), group
    demand = {"utility": Revenue(200, 500), "max_fdr": 0.12} | options
    rough, best = (best_classifier(*cells, gap=gap, **demand) for gap in (1e-2, 0))
    assert rough.feasible
    assert best.gap <= 1e-9
    assert rough.gap <= 1e-2
    assert best.utility >= rough.utility > 0
    assert best.utility <= rough.utility * (1 + rough.gap) + 1e-9


def test_cut_on_any_score():
    good, bad = np.array([9.0, 5.0, 8.0]), np.array([1.0, 5.0, 2.0])
    fit = best_classifier(
        good,
        bad,
        utility=PositiveRate(),
        max_fdr=0.25,
        hypothesis="threshold",
        score=[0.1, 0.2, 0.3],
    )
    assert fit.accepts.tolist() == [False, False, True]


def test_counterexample_of_joint_constraints():
    """A cell of another group can displace a cell of a group (method, section 3)."""
    mass, bad = np.array([0.25, 0.20, 0.40]), np.array([0.10, 0.20, 0.18])
    demand = {"utility": PositiveRate(), "max_fdr": 0.15, "gap": 0}
    cells = mass * (1 - bad), mass * bad
    before = best_classifier(cells[0][:2], cells[1][:2], **demand)
    after = best_classifier(*cells, **demand)
    within = best_classifier(*cells, ["A", "A", "B"], constraints="per_group", **demand)
    assert before.accepts.tolist() == [True, True]
    assert after.accepts.tolist() == [True, False, True]
    assert within.accepts.tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"max_fdr": 1.5}, "max_fdr.* 1.5"),
        ({"min_selection_rate": -0.1}, "min_selection_rate.* -0.1"),
        ({"constraints": "both"}, "constraints.* 'both'"),
        ({"hypothesis": "trees"}, "hypothesis.* 'trees'"),
        ({"gap": -1.0}, "gap.* -1.0"),
        ({"fairness": SelectionRateParity(0.1).over(((0, 1),))}, "attributes"),
        ({"bad": [1.0, -1.0]}, "bad"),
        ({"bad": [1.0]}, "bad"),
        ({"score": [np.nan, 1.0]}, "score"),
    ],
)
def test_wrong_input_is_refused(wrong, message):
    demand = {"good": [1.0, 2.0], "bad": [1.0, 1.0], "utility": Accuracy(), "max_fdr": 0.5}
    with pytest.raises(InputError, match=message):
        best_classifier(**demand | wrong)


@st.composite
def shared_domains(draw, most=6):
    """Cells with small whole masses of several groups."""
    n, k = draw(st.integers(1, most)), draw(st.integers(1, 3))
    masses = st.lists(st.integers(0, 4), min_size=n * k, max_size=n * k)
    return tuple(np.array(draw(masses)).reshape(n, k) for _ in range(2))


def allowed_shared(f, good, bad, demand):
    """Return whether a function of cells meets the constraints, with a cell for each group."""
    n, k = good.shape
    return allowed(np.repeat(f, k), good.ravel(), bad.ravel(), np.tile(np.arange(k), n), demand)


@pytest.mark.parametrize("hypothesis", ["cells", "threshold"])
@given(domain=shared_domains(), demand=demands())
@settings(max_examples=50)
def test_shared_fit_is_the_best_function_of_cells(hypothesis, domain, demand):
    good, bad = domain
    fit = best_classifier(good, bad, hypothesis=hypothesis, gap=0, **demand)
    sums = good.sum(axis=1), bad.sum(axis=1)
    tried = list(CLASSES[hypothesis](*sums, np.zeros(len(good), int)))
    fine = [f for f in tried if allowed_shared(f, good, bad, demand)]
    assert fit.feasible == bool(fine)
    f = fit.accepts.astype(float)
    if fine:
        assert any(np.array_equal(f, other) for other in fine)
        best = max(mean_utility(other, *sums, demand["utility"]) for other in fine)
        assert fit.utility == pytest.approx(best, abs=1e-9)
    else:
        assert not f.any()


def test_separate_cells_per_group_gain_more():
    """The control: with a cell for each group of a cell, the same bounds allow more."""
    good, bad = np.array([[9.0, 1.0], [1.0, 9.0]]), np.array([[1.0, 9.0], [9.0, 1.0]])
    demand = {"utility": Revenue(1, 2), "max_fdr": 0.2, "fairness": SelectionRateParity(0.3)}
    alike = best_classifier(good, bad, gap=0, **demand)
    apart = best_classifier(good.ravel(), bad.ravel(), [0, 1, 0, 1], gap=0, **demand)
    assert apart.utility > alike.utility + 0.01


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"group": [0, 1]}, r"\(2, 2\)"),
        ({"bad": [1.0, 1.0]}, "bad"),
        ({"hypothesis": "threshold_per_group"}, "threshold_per_group"),
    ],
)
def test_wrong_shared_cells_are_refused(wrong, message):
    demand = {"good": np.ones((2, 2)), "bad": np.ones((2, 2)), "utility": Accuracy(), "max_fdr": 1}
    with pytest.raises(InputError, match=message):
        best_classifier(**demand | wrong)


@pytest.mark.parametrize("hypothesis", ["cells", "threshold"])
@pytest.mark.parametrize(("more", "accepted"), [(0.0, 0), (1.5e-12, 0), (2.5e-12, 1), (1e-9, 1)])
def test_cells_with_negligible_gain_are_not_accepted(hypothesis, more, accepted):
    """As many good as bad, and a good outcome gains slightly more: 1e-12 does not count."""
    fit = best_classifier(
        [0.1 + 0.2, 0.0],
        [0.3, 0.4],
        utility=Revenue(500.0 * (1 + more), 500.0),
        max_fdr=1.0,
        hypothesis=hypothesis,
        gap=0.0,
    )
    assert fit.accepts.tolist() == [bool(accepted), False]
