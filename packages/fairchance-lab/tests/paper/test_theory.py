"""The theorems' sample sizes: against their tail bound, by what must grow, and in words."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairchance.errors import InputError
from fairchance_lab.paper.theory import Setting, convergence, feasibility, improvement, theory_lines

EXAMPLE = Setting(cells=20)
BOUNDS = {"feasibility": feasibility, "improvement": improvement, "convergence": convergence}

settings = st.builds(
    Setting,
    cells=st.integers(1, 10**5),
    tau=st.floats(0.01, 0.99),
    epsilon=st.floats(1e-3, 0.5),
    alpha_explore=st.floats(1e-3, 0.5),
    min_selection_rate=st.floats(0.01, 1.0),
    delta=st.floats(1e-6, 0.9),
)


def chance_of_failure(setting, people, power):
    """Return the union bound over |D|/σ events, each with an exponentially small tail.

    ε³ stands for ε² of the tail and one ε of the rarest cell that matters.
    """
    epsilon = min(setting.epsilon, setting.min_selection_rate / 3)
    rate = setting.tau * epsilon**3 * setting.alpha_explore**power * setting.min_selection_rate
    exponent = -people * rate / (12 * setting.cells)
    return math.exp(exponent + math.log(setting.cells) - math.log(setting.least_share))


@given(settings)
def test_the_people_asked_for_are_just_enough_for_the_tail_bound(setting):
    for bound, power in ((feasibility, 1), (improvement, 1), (convergence, 2)):
        people = bound(setting).people
        assert chance_of_failure(setting, people, power) <= setting.delta * (1 + 1e-9)
        fewer = min(people - 1, people * (1 - 1e-9))
        assert chance_of_failure(setting, fewer, power) >= setting.delta * (1 - 1e-9)
        assert chance_of_failure(setting, 0.9 * people, power) > setting.delta


def test_the_example_needs_about_three_billion_people():
    exact = Fraction(12 * 20) / (Fraction(1, 2) * Fraction(1, 20) ** 3)
    exact /= Fraction(1, 20) * Fraction(1, 5)
    people = float(exact) * math.log(20 * 20 * 10)
    assert feasibility(EXAMPLE).people == math.ceil(people)
    assert 2.5e9 < people < 3.5e9
    assert convergence(EXAMPLE).people == math.ceil(20 * people)


@given(settings, st.sampled_from(sorted(BOUNDS)))
def test_more_is_asked_for_where_more_is_promised(setting, name):
    people = BOUNDS[name](setting).people
    harder = {
        "cells": setting.cells + 1,
        "tau": setting.tau / 2,
        "epsilon": setting.effective_epsilon / 2,
        "alpha_explore": setting.alpha_explore / 2,
        "min_selection_rate": setting.min_selection_rate / 2,
        "delta": setting.delta / 2,
        "sigma": setting.least_share / 2,
    }
    for field, value in harder.items():
        assert BOUNDS[name](replace(setting, **{field: value})).people > people, field


def test_a_larger_slack_than_a_third_of_lambda_buys_nothing():
    third = replace(EXAMPLE, epsilon=0.2 / 3)
    for epsilon in (0.07, 0.5):
        wide = replace(EXAMPLE, epsilon=epsilon)
        assert wide.effective_epsilon == 0.2 / 3
        assert feasibility(wide) == feasibility(third)
    assert feasibility(EXAMPLE).people > feasibility(third).people


@pytest.mark.parametrize("cells", [1, 2, 3, 20, 49, 98, 103, 10**4])
def test_rounds_until_the_last_cell_is_known(cells):
    """By adding up: after these rounds the rarest cell has coverage above any τ below 1."""
    sizes = Fraction(1, cells)
    assert convergence(Setting(cells)).rounds == cells
    covered, rounds = Fraction(0), 0
    while covered <= Fraction(999_999, 1_000_000):
        covered, rounds = covered + sizes, rounds + 1
    assert convergence(Setting(cells)).rounds == rounds
    uneven = Setting(cells, sigma=0.7 / cells)
    assert convergence(uneven).rounds == math.ceil(Fraction(10 * cells, 7))


def test_a_group_that_is_explored_more_waits_for_fewer_rounds():
    setting = replace(EXAMPLE, sigma=0.01)
    assert convergence(setting).rounds == 100
    own = convergence(setting, sigma_group=0.04)
    assert own.rounds == 25
    assert own.people == convergence(setting).people
    assert "the group's utility" in own.promise
    assert feasibility(setting).rounds == improvement(setting).rounds == 0


def test_the_slack_of_each_promise():
    assert feasibility(EXAMPLE).slack == pytest.approx(14 * 0.05 / 0.2)
    assert improvement(EXAMPLE).slack == convergence(EXAMPLE).slack == 0.05


def test_the_sentence_gives_the_ratio_in_either_direction():
    bound = feasibility(Setting(1, epsilon=0.3, alpha_explore=0.9, min_selection_rate=1.0))
    assert bound.times(100) == bound.people / 100
    assert bound.sentence(bound.people).endswith(f"which a batch of {bound.people:,} has.")
    short = bound.sentence(bound.people - 1)
    assert short.endswith(f"1.0 times a batch of {bound.people - 1:,}.")
    assert f"{bound.people:,} people a round" in short


@pytest.mark.parametrize(
    ("ratio", "words"),
    [(1.24, "1.2"), (9.96, "10"), (12.4, "12"), (123.0, "120"), (99_600, "100,000")],
)
def test_ratios_have_two_digits(ratio, words):
    bound = replace(feasibility(EXAMPLE), people=round(ratio * 10**6))
    assert f" {words} times a batch of 1,000,000." in bound.sentence(10**6)


def test_lines_for_a_plan():
    lines = theory_lines(EXAMPLE, batch=500)
    assert "with 20 kinds of people" in lines[0]
    for bound, line in zip((feasibility, improvement, convergence), lines[1:4], strict=True):
        assert line == bound(EXAMPLE).sentence(500)
    assert "for 20 rounds" in lines[3]
    needed = feasibility(replace(EXAMPLE, epsilon=0.02 * 0.2 / 14))
    assert needed.slack == pytest.approx(0.02)
    assert f"{needed.people / 10**9:.2g}" == f"{1.7e7:.2g}"
    assert "must have 17,000,000 billion people" in lines[4]
    assert lines[-1].startswith("At this size the theorems promise nothing")


def test_lines_say_nothing_of_emptiness_where_there_is_none():
    narrow = replace(EXAMPLE, epsilon=0.01)
    lines = theory_lines(narrow, batch=convergence(narrow).people)
    assert len(lines) == 4
    assert all(line.endswith("has.") for line in lines[1:])
    assert theory_lines(Setting(1), batch=5)[0].endswith("with 1 kind of people:")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"cells": 0}, "cells.* 0"),
        ({"cells": 2.5}, "cells.* 2.5"),
        ({"tau": 1.0}, "tau.* 1.0"),
        ({"tau": 0.0}, "tau.* 0.0"),
        ({"epsilon": 0.0}, "epsilon.* 0.0"),
        ({"epsilon": math.nan}, "epsilon.* nan"),
        ({"alpha_explore": 0.0}, "alpha_explore.* 0.0"),
        ({"alpha_explore": "0.1"}, "alpha_explore.* '0.1'"),
        ({"min_selection_rate": 0.0}, "min_selection_rate.* 0.0"),
        ({"min_selection_rate": 1.1}, "min_selection_rate.* 1.1"),
        ({"delta": 1.0}, "delta.* 1.0"),
        ({"delta": True}, "delta.* True"),
        ({"sigma": 0.0}, "sigma.* 0.0"),
        ({"sigma": 0.06}, "sigma.* 0.05.* 0.06"),
    ],
)
def test_bad_settings(change, named):
    with pytest.raises(InputError, match=named):
        Setting(**({"cells": 20} | change))


def test_bad_batches_and_groups():
    for batch in (0, 2.5, -3):
        with pytest.raises(InputError, match=f"batch.* {batch}"):
            theory_lines(EXAMPLE, batch=batch)
    with pytest.raises(InputError, match=r"sigma_group.* 0.05.* 0.01"):
        convergence(EXAMPLE, sigma_group=0.01)
    with pytest.raises(InputError, match=r"sigma_group.* 0.0"):
        convergence(EXAMPLE, sigma_group=0.0)
