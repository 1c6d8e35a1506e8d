"""Deviations C of the released code: the algorithm."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from fairchance.core.coverage import MeanPastScore
from fairchance_lab.experiments.methods import VARIANTS
from fairchance_lab.experiments.world_spec import WorldSpec
from fairchance_lab.paper.released.classifier import ReleasedBudget, build_released
from paper.released_worlds import LENDER, driven, lender_setup, on, released


def test_c1_variants_share_an_object_and_its_outcomes():
    world, setup = lender_setup()
    shared, at_start = {}, []
    for name in VARIANTS:
        method = build_released(name, setup, on("C1"), shared)
        at_start.append(method.n_outcomes_)
        decided = driven(method, world)
        accepted = sum(int(decisions.accepted.sum()) for decisions, _ in decided)
        assert method.n_outcomes_ == at_start[-1] + accepted
        assert accepted > 0
        begun = method.rounds_[-LENDER.n_rounds :]
        expected = [0.075 * t**0.2 for t in (1, 2, 3, 4)]
        assert [record.alpha_exploit for record in begun] == pytest.approx(expected)
        assert begun[0].follows
        assert len(shared) == 1
        assert method is next(iter(shared.values()))
    assert at_start[0] == setup.past.accepted.sum()
    assert np.all(np.diff(at_start) > 0)
    assert len(method.rounds_) == 4 * LENDER.n_rounds


def test_c1_ablations_have_their_own_objects():
    _, setup = lender_setup()
    shared = {}
    first = build_released("plain", setup, on("C1"), shared)
    alone = build_released("no-exploration", setup, on("C1"), shared)
    assert first is not alone
    fresh = [build_released(name, setup, on("C2"), {}) for name in VARIANTS]
    assert len({id(method) for method in fresh}) == 4
    assert {method.n_outcomes_ for method in fresh} == {int(setup.past.accepted.sum())}


def test_c1_object_becomes_each_variant():
    world, setup = lender_setup(options={"fairness_difference": 0.01})
    shared, gaps = {}, {}
    for name in VARIANTS:
        method = build_released(name, setup, on("C1"), shared)
        driven(method, world)
        gaps[name] = [record.thresholds for record in method.rounds_[-3:]]
    split = {
        name: any(len(set(cuts)) > 1 for cuts in cuts_of_rounds)
        for name, cuts_of_rounds in gaps.items()
    }
    assert split == {
        "plain": False,
        "exploit-fair": True,
        "explore-fair": False,
        "both-fair": True,
    }


def test_c2_covers_people_by_the_mean_of_past_scores():
    world, setup = lender_setup()
    method = build_released("plain", setup, on("C2"), {})
    assert isinstance(method.coverage, MeanPastScore)
    batch = next(world.batches()).applicants
    X, group = batch.people.X, batch.people.group
    scores, regions = [], []
    for _ in range(4):
        if scores:  # f_0 counts for the history, and again as the classifier of round 1
            w = np.mean([scores[0], *scores], axis=0)
            assert method.coverage_of(X, sensitive_features=group) == pytest.approx(w, abs=1e-5)
        decided = method.decide(X, sensitive_features=group)
        if scores:
            clear = np.abs(w - 0.5) > 1e-4
            assert np.array_equal(decided.exploit[clear], (w > 0.5)[clear])
        scores.append(np.asarray(decided.score, dtype=float))
        regions.append(decided.exploit)
        taken = decided.accepted
        method.observe(decided.ids[taken], batch.outcome[taken].astype(float))
    left = [np.any(before & ~after) for before, after in pairwise(regions)]
    assert any(left)


def test_c4_learns_in_round_1():
    for switches, follows in (((), True), (("C4",), False)):
        method, _ = released("plain", *switches)
        first = method.rounds_[0]
        assert bool(first.follows) == follows
        assert (first.n_outcomes == 0) == follows
        assert np.isnan(first.estimated_fdr) == follows


@pytest.mark.parametrize("name", ["plain", "explore-fair"])
def test_c5_rounds_down_and_carries_nothing_over(name):
    method, decided = released(name, "C5")
    for record, (decisions, _) in zip(method.rounds_, decided, strict=True):
        floor = math.floor((0.15 - record.alpha_exploit) * record.n_exploited)
        assert record.n_explored == min(floor, int((~decisions.exploit).sum()))
        assert record.carried == 0
    assert sum(record.n_explored for record in method.rounds_) > 0
    ours, _ = released(name)
    assert any(record.carried for record in ours.rounds_)


def test_c6_lags_one_round_and_exceeds_alpha():
    late, ours = (ReleasedBudget(0.15, switches=on(*names)) for names in (("C6",), ()))
    assert late.alpha_exploit(1) == late.alpha_exploit(2) == 0.075
    for t in range(2, 40):
        assert late.alpha_exploit(t) == pytest.approx(0.075 * (t - 1) ** 0.2)
        assert ours.alpha_exploit(t) == pytest.approx(min(0.075 * t**0.2, 0.139))
    assert late.alpha_exploit(33) == pytest.approx(0.15)
    assert late.alpha_exploit(34) > 0.15
    assert late.max_fdr(39) > 0.15 >= ours.max_fdr(39)
    assert late.explore_share(34) == 0 < ours.explore_share(34)
    begun = ReleasedBudget(0.15, switches=on("C6"), begun=39)
    assert [begun.alpha_exploit(39 + t) for t in (1, 2, 3)] == [
        late.alpha_exploit(t) for t in (1, 2, 3)
    ]


def test_c6_in_a_run():
    method, _ = released("plain", "C6")
    expected = [0.075, 0.075, 0.075 * 2**0.2, 0.075 * 3**0.2]
    assert [record.alpha_exploit for record in method.rounds_] == pytest.approx(expected)


def test_c7_rounds_each_groups_quota_down():
    method, decided = released("explore-fair", "C5", "C7")
    lost = 0
    for record, (decisions, group) in zip(method.rounds_, decided, strict=True):
        places = math.floor((0.15 - record.alpha_exploit) * record.n_exploited)
        explore = ~decisions.exploit
        places = min(places, int(explore.sum()))
        for name in ("A", "B"):
            in_group = explore & (group == name)
            expected = math.floor(places * in_group.sum() / max(1, explore.sum()))
            assert int(decisions.explored[in_group].sum()) == expected
        lost += places - record.n_explored
    assert lost > 0
    assert sum(record.n_explored for record in method.rounds_) > 0


def test_c7_affects_group_quotas_only():
    plain, _ = released("plain", "C5")
    quotas, _ = released("plain", "C5", "C7")
    assert quotas.rounds_ == plain.rounds_


def test_c4_learns_round_1_with_the_bound_of_round_1():
    spec = WorldSpec("lender", n_batch=400, n_rounds=1, past=({"rule": "everybody"},))
    method, _ = released("plain", "C4", seed=3, spec=spec)
    assert method.rounds_[0].estimated_fdr <= 0.075 + 0.001
