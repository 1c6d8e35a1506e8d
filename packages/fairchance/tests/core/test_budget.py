"""The budget of mistakes: schedule, cap, the size of exploration and what is carried over."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairchance.core.budget import ExploitOnly, FdrBudget, PowerSchedule
from fairchance.errors import InputError

ROUNDING = 1e-9  # people; see the source


@st.composite
def budgets(draw):
    """Budgets whose α_exploit + ε is at most α, as the proof needs."""
    alpha = draw(st.floats(0.02, 0.9))
    slack = draw(st.sampled_from([0.0, 0.001, 0.01]))
    if draw(st.booleans()):
        return FdrBudget(alpha, slack=slack, reserve=draw(st.sampled_from([0.0, 0.005])))
    return FdrBudget(alpha, draw(st.floats(0.05, 0.999)) * (alpha - slack), slack=slack)


rounds = st.lists(
    st.tuples(st.integers(0, 300), st.integers(0, 300)), min_size=1, max_size=30
)  # exploited people and candidates


@pytest.mark.parametrize("alpha", [0.05, 0.15, 0.4])
@pytest.mark.parametrize("round", [1, 2, 10, 30, 31, 33, 1000])
def test_default_schedule(alpha, round):
    expected = min(alpha / 2 * round**0.2, alpha - 0.001 - 0.01)
    assert FdrBudget(alpha).alpha_exploit(round) == pytest.approx(expected, abs=1e-15)


def test_the_cap_leaves_something_to_explore_for_ever():
    # The paper's schedule passes α in round 33 and ends exploration in round 31.
    paper = FdrBudget(0.15, PowerSchedule(start=0.075))
    assert 0.075 * 33**0.2 > 0.15
    assert paper.cap == pytest.approx(0.139)
    assert paper.explore_share(10**6) == pytest.approx(0.01 / 0.85)


def test_a_schedule_of_ones_own_is_capped_too():
    class Steep:
        def at(self, round, alpha):
            return alpha * round

    assert FdrBudget(0.2, Steep()).alpha_exploit(1) == pytest.approx(0.189)


@pytest.mark.parametrize("exploit", [0.149, 0.1, 1e-6])
def test_constants_below_alpha_are_kept(exploit):
    assert FdrBudget(0.15, exploit).alpha_exploit(99) == exploit


@pytest.mark.parametrize("exploit", [0.15, 0.2, 0.0, -0.1, math.nan, 1])
def test_other_constants_are_refused(exploit):
    with pytest.raises(InputError, match=f"got {exploit}"):
        FdrBudget(0.15, exploit)


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 1.5, math.nan])
def test_alpha_is_inside_the_unit_interval(alpha):
    with pytest.raises(InputError, match=f"alpha.*got {alpha}"):
        FdrBudget(alpha)


@pytest.mark.parametrize("rate", [-0.1, 1.0, math.nan])
def test_selection_rate_is_a_share(rate):
    with pytest.raises(InputError, match=rf"min_selection_rate.*got {rate}"):
        FdrBudget(min_selection_rate=rate)
    assert FdrBudget(min_selection_rate=0.0).min_selection_rate == 0


@pytest.mark.parametrize("parts", [{"slack": -1e-3}, {"reserve": -1e-3}, {"slack": math.nan}])
def test_slack_and_reserve_are_not_negative(parts):
    with pytest.raises(InputError, match=r"slack and reserve"):
        FdrBudget(**parts)


def test_slack_and_reserve_leave_something_to_exploit():
    with pytest.raises(InputError, match=r"slack \+ reserve.*0\.01"):
        FdrBudget(0.01)
    with pytest.raises(InputError, match=r"got 0\.25 \+ 0\.25"):
        FdrBudget(0.5, slack=0.25, reserve=0.25)
    assert FdrBudget(0.01, 0.005).alpha_exploit(1) == 0.005  # a constant has no reserve


def test_exploit_is_a_number_or_a_schedule():
    with pytest.raises(InputError, match="exploit"):
        FdrBudget(exploit="much")


@pytest.mark.parametrize("value", [0.0, -0.1, math.nan, math.inf])
def test_schedules_return_positive_numbers(value):
    class Wrong:
        def at(self, round, alpha):
            return value

    with pytest.raises(InputError, match=f"got {value} for round 7"):
        FdrBudget(exploit=Wrong()).alpha_exploit(7)


@given(budgets(), st.integers(1, 60), st.integers(0, 10_000))
def test_number_explored_is_that_of_the_paper(budget, round, n_exploit):
    exact = (
        (budget.alpha - budget.alpha_exploit(round) - budget.slack) * n_exploit / (1 - budget.alpha)
    )
    n_explore, carried = budget.allot(round, n_exploit, 0.0, 10**9)
    assert n_explore == math.floor(max(exact, 0) + ROUNDING)
    assert n_explore + carried == pytest.approx(max(exact, 0), abs=2 * ROUNDING)


def test_sums_of_decimal_fractions_are_whole_people():
    share = FdrBudget(0.15, 0.064, slack=0.001).explore_share(1)
    assert share * 30 < 3 < share * 30 + ROUNDING
    assert FdrBudget(0.15, 0.064, slack=0.001).allot(1, 30, 0.0, 99) == (3, 0.0)


@given(budgets(), st.integers(1, 60), st.integers(1, 10_000), st.integers(0, 10_000))
def test_a_batch_keeps_alpha_even_if_all_explored_are_bad(budget, round, n_exploit, n_candidates):
    n_explore, _ = budget.allot(round, n_exploit, 0.0, n_candidates)
    bad = (budget.alpha_exploit(round) + budget.slack) * n_exploit + n_explore
    assert bad <= budget.alpha * (n_exploit + n_explore) + 2 * ROUNDING


@given(budgets(), rounds)
def test_a_run_never_explores_more_than_its_budgets(budget, run):
    carried = earned = bad = accepted = 0.0
    explored = 0
    for round, (n_exploit, n_candidates) in enumerate(run, start=1):
        own = budget.explore_share(round) * n_exploit
        n_explore, carried = budget.allot(round, n_exploit, carried, n_candidates)
        earned, explored = earned + own, explored + n_explore
        accepted += n_exploit + n_explore
        bad += (budget.alpha_exploit(round) + budget.slack) * n_exploit + n_explore
        rounding = 2 * round * ROUNDING
        assert 0 <= n_explore <= min(n_candidates, own + 1 + rounding)
        assert 0 <= carried <= 1
        assert explored + carried <= earned + rounding
        assert bad <= budget.alpha * accepted + rounding


def test_single_applications_explore_in_the_end():
    budget, carried, explored = FdrBudget(0.15, 0.1), 0.0, []
    for _ in range(1000):
        n_explore, carried = budget.allot(1, n_exploit=1, carried=carried, n_candidates=1)
        explored.append(n_explore)
    assert max(explored) == 1
    assert sum(explored) == math.floor(1000 * budget.explore_share(1))


def test_unused_people_are_not_hoarded():
    assert FdrBudget(0.15).allot(1, n_exploit=1000, carried=0.0, n_candidates=3) == (3, 1.0)


def test_a_constant_just_below_alpha_never_lets_the_exploited_pass_alpha():
    budget = FdrBudget(alpha=0.15, exploit=np.float32(0.1499), slack=0.001)
    assert budget.max_fdr(1) == 0.15
    assert budget.explore_share(1) == 0
    assert FdrBudget(alpha=0.15).max_fdr(1) == pytest.approx(0.076)


def test_exploitation_alone_may_use_the_whole_bound():
    budget = ExploitOnly(alpha=0.15, exploit=0.15)
    assert budget.max_fdr(1) == 0.15
    assert budget.allot(1, n_exploit=1000, carried=0.0, n_candidates=1000) == (0, 0.0)
    assert ExploitOnly(alpha=0.15).alpha_exploit(10) == FdrBudget(alpha=0.15).alpha_exploit(10)
    with pytest.raises(InputError, match=r"exploit.*got 0\.2"):
        ExploitOnly(alpha=0.15, exploit=0.2)
