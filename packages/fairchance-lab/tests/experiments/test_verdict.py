"""The verdict names the best and the worst by the rule, from counts that are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments.known_results import crafted, exact
from fairchance_lab.experiments import tables
from fairchance_lab.experiments.paired_tests import detectable, power
from fairchance_lab.experiments.verdict import find_verdict


def explored(results, *methods):
    for name in methods:
        results.count("n_explored")[:, results.methods.index(name)] = 1
    return results


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
    assert "earned more, 82,000 a round, by breaking α, as 15.6 %" in verdict.loser
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
    assert "39,000 a round in the last 1 round" in verdict.earned
    assert "75 %" in verdict.earned
    assert "10 %" in verdict.mistakes
    assert "below α = 15 %" in verdict.mistakes


def test_least_earner_is_the_worst_if_all_kept_alpha():
    verdict = find_verdict(
        exact({"plain": (200, 20), "frozen-past": (100, 5), "both-fair": (300, 30)})
    )
    assert verdict.worst.method == "frozen-past"
    assert verdict.yardstick is None
    assert np.isnan(verdict.best.share.mean)
    assert "%" not in verdict.earned.replace("95 % interval", "")
    alone = find_verdict(exact({"plain": (200, 20), "ceiling": (300, 30)}))
    assert (alone.best.method, alone.worst, alone.loser) == ("plain", None, "")
    assert alone.runner_up is alone.lead is None
    assert "no difference" in alone.precision


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
    assert allowed or "No method" in verdict.takeaway
    assert ("too few" in verdict.mistakes) == (repetitions < 5)


def test_amber_if_the_interval_reaches_alpha():
    results = exact({"plain": (100, 15)}, repetitions=6)
    results.count("n_accepted_good")[0, 0, 0] -= 6  # one repetition has 22 bad of 100
    (one,) = find_verdict(results).standings
    assert one.mistakes.low < 0.15 < one.mistakes.mean
    assert one.light == "amber"
    assert find_verdict(results).best is not None
    assert "may be above" in find_verdict(results).takeaway


def test_no_one_accepted_is_no_mistake():
    verdict = find_verdict(exact({"plain": (0, 0), "both-fair": (100, 90)}))
    assert verdict.best.method == "plain"
    assert verdict.best.light == "green"
    assert "No one was accepted" in verdict.mistakes


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
    assert "16,000 a round more than “No-exploration”" in verdict.takeaway
    assert "not measurably" not in verdict.takeaway
    assert verdict.exploring.mean == pytest.approx(39 - 23)
    assert "Exploring pays here: it adds 16,000" in verdict.exploration
    noisy = crafted({"plain": 90, "no-exploration": 89}, noise=20)
    found = find_verdict(explored(noisy, "plain", "no-exploration"))
    assert found.idle is None
    without = find_verdict(explored(exact(methods | {"no-exploration": (600, 60)}), "plain"))
    assert not without.best.explored
    assert "does not pay" in without.exploration
    assert find_verdict(exact({"plain": (300, 30)})).exploration == ""


def test_groups_in_which_the_bound_is_not_kept():
    verdict = find_verdict(exact({"plain": ([300, 50], [24, 15])}, groups=["old", "young"]))
    old, young = verdict.groups
    assert (old.light, young.light) == ("green", "red")
    assert young.mistakes.mean == pytest.approx(0.3)
    assert "young (30 % bad)" in verdict.in_groups
    assert "30 % of young and 8 % of old" in verdict.by_group
    assert "30 % of old and 5 % of young" in verdict.by_group
    even = find_verdict(exact({"plain": ([300, 50], [24, 4])}, groups=["old", "young"]))
    assert "No group" in even.in_groups
    assert find_verdict(exact({"plain": (100, 10)})).by_group == ""


def record(round, status, more=None, group=None):
    return {
        "setting": "α = 0.15",
        "method": "certified",
        "round": round,
        "group": group,
        "status": status,
        "more_outcomes": more,
    }


def test_certificates():
    results = exact({"plain": (200, 20), "certified": (100, 10)}, repetitions=5, rounds=4)
    without = replace(results, certificates=(record(1, "pilot"), record(4, "pilot", 430.0)))
    verdict = find_verdict(without)
    assert verdict.best.certificate is None
    assert verdict.certified.method == "certified"
    assert verdict.certified.missing == 430
    assert "no certificate in 5 runs; about 430 more" in verdict.certificate
    results.count("n_certified")[0, 1, :3, 2:] = 1000
    verdict = find_verdict(replace(results, certificates=(record(4, "certified"),)))
    assert verdict.certified.missing == 0
    assert verdict.certified.certificate.first_median == 3
    assert "round 3 (median) in 3 of 5 runs, and in 30 % of all rounds" in verdict.certificate
    assert "gives certificates" in find_verdict(exact({"plain": (200, 20)})).certificate


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
    assert "5 repetitions are few" in verdict.precision
