"""Comparisons against loops over single rounds, and their errors against a bootstrap."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from lab.experiments.test_spec import one_sentence
from lab.experiments.test_tables import make_results
from secondlook.errors import InputError
from secondlook.lab.experiments.comparison import COMPARED, compared, comparison, unjudged
from secondlook.lab.experiments.methods import METHODS, REFERENCES
from secondlook.lab.experiments.paper import EXPERIMENTS
from secondlook.lab.experiments.results import SHARES

METHODS_HERE = ("plain", "certified", "opt-hindsight")


def judged_results(rng, size=(6, 14), **options):
    """Return random results with shares of a population, some rounds accepting nobody."""
    results = make_results(rng, METHODS_HERE, size=size, **options)
    n = len(results)
    accepted = rng.random(n) * 0.3 * (rng.random(n) > 0.1)
    good = accepted * rng.uniform(0.75, 0.95, n)
    shares = dict(zip(SHARES, (np.full(n, 0.5), np.full(n, 0.35), accepted, good), strict=True))
    rounds = np.repeat(rng.random(n // len(results.groups)) < 0.4, len(results.groups))
    certified = rounds & (results.columns["method"] == "certified")
    columns = results.columns | shares
    columns["n_certified"] = certified * results.columns["n_people"]
    return replace(results, columns=columns)


def by_hand(results, method):
    """Return utility, FDR, certified and TPR of each round of each repetition, row by row."""
    found = {}
    columns = results.columns
    for i in range(len(results)):
        if columns["method"][i] == method:
            key = int(columns["repetition"][i]), int(columns["round"][i])
            one = found.setdefault(key, {"accepted": 0.0, "good": 0.0, "cert": False, "tpr": {}})
            one["accepted"] += columns["p_accepted"][i]
            one["good"] += columns["p_accepted_good"][i]
            one["cert"] |= bool(columns["n_certified"][i])
            rate = columns["p_accepted_good"][i] / columns["p_good"][i]
            one["tpr"][columns["group"][i]] = rate
    return found


def mean_utility(found, rounds):
    worth = [
        200 * one["good"] - 500 * (one["accepted"] - one["good"])
        for (_, t), one in found.items()
        if t in rounds
    ]
    return sum(worth) / len(worth)


def test_a_comparison_is_what_a_loop_over_rounds_gives(rng):
    results = judged_results(rng)
    optimum = by_hand(results, "opt-hindsight")
    some_certified_break = False
    for method, one in zip(METHODS_HERE, compared(results), strict=True):
        found = by_hand(results, method)
        for period, rounds in (
            ("early", range(1, 6)),
            ("middle", range(6, 11)),
            ("late", range(11, 15)),
            ("whole", range(1, 15)),
        ):
            best = mean_utility(optimum, rounds)
            want = mean_utility(found, rounds) / best if best > 0 else math.nan
            assert one.earned[period].share == pytest.approx(want, nan_ok=True), period
        for kind, breaks in ((True, one.certified), (False, one.uncertified)):
            mine = {key: each for key, each in found.items() if each["cert"] == kind}
            broken = {
                key
                for key, each in mine.items()
                if each["accepted"] and 1 - each["good"] / each["accepted"] > 0.15
            }
            assert (breaks.rounds, breaks.broken) == (len(mine), len(broken))
            assert breaks.runs == len({run for run, _ in mine})
            assert breaks.broken_runs == len({run for run, _ in broken})
            some_certified_break |= kind and bool(broken)
        for group in results.groups:
            late = [each["tpr"][group] for (_, t), each in found.items() if t > 10]
            assert one.true_positive_rates[group] == pytest.approx(sum(late) / len(late))
        mine = results.columns["method"] == method
        explored, accepted = (
            results.columns[f"n_{n}"][mine].sum() for n in ("explored", "accepted")
        )
        assert one.explored == pytest.approx(explored / accepted)
    assert some_certified_break
    assert compared(results)[2].earned["whole"].share == 1


def test_the_error_of_a_share_is_that_of_a_bootstrap_over_runs(rng):
    results = judged_results(rng, size=(60, 8))
    found = compared(results)[0].earned["whole"]
    worth = {}
    for method in ("plain", "opt-hindsight"):
        rounds = by_hand(results, method)
        worth[method] = np.array(
            [
                mean_utility({k: v for k, v in rounds.items() if k[0] == r}, range(9))
                for r in range(60)
            ]
        )
    picks = rng.integers(60, size=(4000, 60))
    ratios = worth["plain"][picks].mean(1) / worth["opt-hindsight"][picks].mean(1)
    assert found.standard_error == pytest.approx(ratios.std(), rel=0.15)


def test_where_nothing_can_be_earned_shares_are_not_known(rng):
    results = judged_results(rng)
    columns = dict(results.columns)
    optimum = columns["method"] == "opt-hindsight"
    for name in ("p_accepted", "p_accepted_good"):
        columns[name] = np.where(optimum, 0.0, columns[name])
    found = compared(replace(results, columns=columns))
    assert [one.method for one in found] == list(results.methods)
    for one in found:
        assert math.isnan(one.earned["whole"].share)
        assert math.isnan(one.earned["whole"].standard_error)


def test_a_share_needs_the_optimum(rng):
    results = judged_results(rng)
    columns = {
        k: v[results.columns["method"] != "opt-hindsight"] for k, v in results.columns.items()
    }
    with pytest.raises(InputError, match=r"opt-hindsight.*plain, certified; add it") as no:
        compared(replace(results, columns=columns))
    one_sentence(no)


def test_an_experiment_is_compared_on_its_own_seeds_and_goal():
    german = EXPERIMENTS["german"]
    changed = comparison(replace(german, seed=4, alphas=(0.1, 0.2)))
    assert changed.methods == COMPARED
    assert set(COMPARED) <= {*METHODS, *REFERENCES}
    assert changed.judged
    assert changed.alphas == ()
    assert (changed.seed, changed.goal, changed.world) == (4, german.goal, german.world)


def test_methods_of_ones_own_choice_are_compared_with_the_optimum():
    german = EXPERIMENTS["german"]
    assert comparison(german, ("greedy-aligned", "plain")).methods == (
        *("greedy-aligned", "plain", "opt-hindsight"),
    )
    assert comparison(german, ("opt-hindsight", "plain")).methods == ("opt-hindsight", "plain")
    assert comparison(german, ("plain", "usual", "own:method", "plain")).methods == (
        *("plain", "plain-unweighted"),
        *COMPARED[2:-1],
        *("opt-hindsight", "own:method"),
    )
    assert set(comparison(german, ("not-deep",)).methods) >= set(COMPARED)


def test_methods_that_cannot_say_whom_they_accept_are_named(rng):
    results = judged_results(rng)
    assert unjudged(results) == []
    columns = dict(results.columns)
    mine = columns["method"] == "plain"
    columns["p_accepted"] = np.where(mine, np.nan, columns["p_accepted"])
    assert unjudged(replace(results, columns=columns)) == ["plain"]
    columns["n_people"] = np.where(mine, 0, columns["n_people"])  # it failed throughout
    assert unjudged(replace(results, columns=columns)) == []
