"""The verdict names the best and the worst by the rule, from counts that are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments.known_results import crafted, exact, explored, record
from fairchance_lab.experiments import tables
from fairchance_lab.experiments.paired_tests import detectable, power
from fairchance_lab.experiments.verdict import find_verdict


def test_best_earned_most_of_those_that_kept_alpha():
    """Greedy earns most and breaks α; references win nothing, whatever they earn."""
    methods = {
        "plain": (200, 20),
        "certified": (300, 30),
        "greedy-aligned": (900, 140),
        "frozen-past": (100, 5),
        "logistic-all-labels": (390, 40),
        "ceiling": (400, 40),
    }
    verdict = find_verdict(exact(methods))
    assert verdict.best.method == "certified"
    assert verdict.runner_up.method == "plain"
    assert verdict.worst.method == "greedy-aligned"
    assert [one.method for one in verdict.standings][:3] == [
        "greedy-aligned",
        "ceiling",
        "logistic-all-labels",
    ]
    # 270 · 200 − 30 · 500 = 39,000 a round of the ceiling's 360 · 200 − 40 · 500 = 52,000.
    assert verdict.best.earned.mean == pytest.approx(39)
    assert verdict.best.share.mean == pytest.approx(0.75)
    assert verdict.best.share.low < 0.75 < verdict.best.share.high
    assert verdict.lead.mean == pytest.approx(13)


def test_least_earner_is_the_worst_if_all_kept_alpha():
    verdict = find_verdict(
        exact({"plain": (200, 20), "frozen-past": (100, 5), "both-fair": (300, 30)})
    )
    assert verdict.worst.method == "frozen-past"
    assert verdict.yardstick is None
    assert np.isnan(verdict.best.share.mean)
    alone = find_verdict(exact({"plain": (200, 20), "ceiling": (300, 30)}))
    assert (alone.best.method, alone.worst) == ("plain", None)
    assert alone.runner_up is alone.lead is None


def test_yardstick_without_a_ceiling_is_the_reference_that_earned_most():
    verdict = find_verdict(
        exact({"plain": (100, 10), "opt-offline": (150, 15), "best-linear": (200, 20)})
    )
    assert verdict.yardstick.method == "best-linear"
    assert verdict.best.share.mean == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("bad", "repetitions", "light", "allowed"),
    [
        (10, 6, "green", True),  # .10 of 100, wholly below
        (15, 6, "amber", True),  # exactly α
        (20, 6, "red", False),
        (10, 4, "amber", True),  # too few
        (20, 4, "amber", False),  # too few, and the estimate is above α
        (20, 1, "amber", False),
    ],
)
def test_light_of_mistakes(bad, repetitions, light, allowed):
    verdict = find_verdict(exact({"plain": (100, bad)}, repetitions))
    assert verdict.standings[0].light == light
    assert (verdict.best is not None) == allowed


def test_amber_if_the_interval_reaches_alpha():
    results = exact({"plain": (100, 15)}, repetitions=6)
    results.count("n_accepted_good")[0, 0, 0] -= 6  # one repetition has 22 bad of 100
    (one,) = find_verdict(results).standings
    assert one.mistakes.low < 0.15 < one.mistakes.mean
    assert one.light == "amber"
    assert find_verdict(results).best is not None


def test_no_one_accepted_is_no_mistake():
    verdict = find_verdict(exact({"plain": (0, 0), "both-fair": (100, 90)}))
    assert verdict.best.method == "plain"
    assert verdict.best.light == "green"


def test_gain_over_the_best_method_that_explored_no_one():
    methods = {
        "plain": (300, 30),
        "no-exploration": (150, 10),
        "frozen-past": (100, 10),
        "greedy-aligned": (400, 100),
    }
    verdict = find_verdict(explored(exact(methods), "plain"))
    assert verdict.idle.method == "no-exploration"
    assert verdict.gain.mean == pytest.approx(39 - 23)
    assert verdict.exploring.mean == pytest.approx(39 - 23)
    noisy = crafted({"plain": 90, "no-exploration": 89}, noise=20)
    found = find_verdict(explored(noisy, "plain", "no-exploration"))
    assert found.idle is None
    without = find_verdict(explored(exact(methods | {"no-exploration": (600, 60)}), "plain"))
    assert not without.best.explored
    assert without.exploring.high < 0
    assert find_verdict(exact({"plain": (300, 30)})).exploring is None


def test_groups_in_which_the_bound_is_not_kept():
    verdict = find_verdict(exact({"plain": ([300, 50], [24, 15])}, groups=["old", "young"]))
    old, young = verdict.groups
    assert (old.light, young.light) == ("green", "red")
    assert young.mistakes.mean == pytest.approx(0.3)
    assert len(find_verdict(exact({"plain": (100, 10)})).groups) == 1


def test_certificates():
    results = exact({"plain": (200, 20), "certified": (100, 10)}, repetitions=5, rounds=4)
    without = replace(results, certificates=(record(1, "pilot"), record(4, "pilot", 430.0)))
    verdict = find_verdict(without)
    assert verdict.best.certificate is None
    assert verdict.certified.method == "certified"
    assert verdict.certified.missing == 430
    results.count("n_certified")[0, 1, :3, 2:] = 1000
    verdict = find_verdict(replace(results, certificates=(record(4, "certified"),)))
    assert verdict.certified.missing == 0
    assert verdict.certified.certificate.first_median == 3
    assert find_verdict(exact({"plain": (200, 20)})).certified is None


def test_methods_without_numbers_are_left_out():
    results = exact({"plain": (100, 10), "both-fair": (200, 20)})
    for name in ("n_people", "n_good", "n_accepted", "n_accepted_good"):
        results.count(name)[0, 1] = 0
    assert [one.method for one in find_verdict(results).standings] == ["plain"]


def test_smallest_lead_that_repetitions_show():
    verdict = find_verdict(crafted({"plain": 100, "both-fair": 98}, noise=20, size=(5, 8)))
    late = tables.per_repetition(
        crafted({"plain": 100, "both-fair": 98}, noise=20, size=(5, 8)), "late_revenue"
    )
    sd = np.std(late[0, 0] - late[0, 1], ddof=1)
    assert verdict.detectable == pytest.approx(detectable(5, sd))
    assert power(5, verdict.detectable / sd) == pytest.approx(0.8)
