"""Yang et al. 2022: bounds by the Beta distribution's own quantiles, cuts by trying all."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats
from scipy.stats import binomtest

from baselines.playing import N, check_promises, check_refusals, on_german, people, started
from fairchance.errors import InputError
from fairchance.simulate.run import run
from fairchance_lab.baselines.yang import (
    CUTS,
    BoundedExploration,
    Rates,
    ScoreDensity,
    best_cuts,
    lower_bound,
    rates_of,
    upper_bound,
    weighted_quantile,
)
from fairchance_lab.datasets import load
from fairchance_lab.paper.experiment import paper_experiment


@pytest.mark.parametrize(("a", "b", "cut"), [(2.0, 5.0, 0.6), (8.0, 1.4, 0.95), (0.7, 0.9, 0.8)])
def test_bounds_are_mirror_images_in_the_densities(a, b, cut):
    """By scipy.stats, whose distribution functions are not the ones used."""
    bad, good = ScoreDensity(a, b, level=0.6), ScoreDensity(a + 1, b, level=0.5)
    law_of_bad, law_of_good = stats.beta(a, b), stats.beta(a + 1, b)
    assert cut > law_of_bad.ppf(0.6) == pytest.approx(bad.reference)
    lower = lower_bound(bad, cut)
    middle = (law_of_bad.cdf(lower) + law_of_bad.cdf(cut)) / 2
    assert middle == pytest.approx(0.6)
    upper = upper_bound(good, lower)
    assert (law_of_good.cdf(lower) + law_of_good.cdf(upper)) / 2 == pytest.approx(0.5)


def test_bounds_stay_where_there_is_room():
    bad, good = ScoreDensity(2.0, 2.0, level=0.6), ScoreDensity(2.0, 2.0, level=0.5)
    assert lower_bound(bad, cut=0.4) == 0.4  # the watched quantile lies above the cut
    assert lower_bound(ScoreDensity(2.0, 2.0, level=0.3), cut=0.99) == 0.0
    assert upper_bound(good, lower=0.0) == 1.0


def test_densities_are_fitted_by_likelihood():
    for a, b, seed in ((2.0, 5.0, 0), (9.0, 1.3, 1), (0.6, 0.8, 2)):
        scores = np.clip(np.random.default_rng(seed).beta(a, b, 300), 1e-6, 1 - 1e-6)
        density = ScoreDensity.fit(scores, 0.5)
        theirs = stats.beta.fit(scores, floc=0, fscale=1)[:2]
        np.testing.assert_allclose((density.a, density.b), theirs, rtol=1e-4)
    with pytest.raises(InputError, match="history"):
        ScoreDensity.fit(np.array([0.5, 0.5]), 0.5)


def test_a_density_takes_the_reference_it_is_given():
    density = ScoreDensity(2.0, 1.7, level=0.6).with_reference(0.8)
    assert density.b == 1.7
    assert stats.beta(density.a, 1.7).cdf(0.8) == pytest.approx(0.6)
    grid = np.arange(0.01, 10, 0.01)
    nearest = grid[np.abs(stats.beta(grid, 1.7).cdf(0.8) - 0.6).argmin()]
    assert density.a == pytest.approx(nearest, abs=0.0051)


def test_a_density_is_mended_from_what_lies_above_a_bound():
    """The truth is a fixed point; forgetting that scores are cut off below is not."""
    truth, above = ScoreDensity(3.0, 2.0, level=0.6), 0.45
    left = 1 - stats.beta(3, 2).cdf(above)
    scores = stats.beta(3, 2).ppf(1 - left * (1 - (np.arange(20_000) + 0.5) / 20_000))
    weight = np.ones(scores.size)
    assert truth.mended(scores, weight, above).a == pytest.approx(3.0, abs=2e-3)
    assert truth.mended(scores, weight, 0.0).a > 3.5
    # Many mendings lead from a wrong start to the truth.
    density = ScoreDensity(1.8, 2.0, level=0.6)
    for _ in range(60):
        density = density.mended(scores, weight, above)
    assert density.a == pytest.approx(3.0, abs=0.02)


def test_a_density_stays_where_its_reference_cannot_be_seen():
    density = ScoreDensity(3.0, 2.0, level=0.3)
    assert density.mended(np.linspace(0.8, 1, 50), np.ones(50), 0.8) is density
    assert density.mended(np.linspace(0, 0.1, 50), np.ones(50), 0.2) is density


def test_a_weight_counts_as_so_many_people():
    rng = np.random.default_rng(0)
    scores, times = rng.random(40), rng.integers(1, 5, 40)
    for share in (0.05, 0.3, 0.5, 0.99):
        repeated = np.quantile(np.repeat(scores, times), share, method="inverted_cdf")
        assert weighted_quantile(scores, times.astype(float), share) == repeated


def test_weights_stand_for_keeping_some_by_a_coin():
    """Explored people whole, others by ε: the mean over coins of what a thinned sample says."""
    rng = np.random.default_rng(1)
    score = rng.beta(3, 2, 4000)
    epsilon, cut = 0.3, 0.7
    explored = (score < cut) & (rng.random(4000) < epsilon)
    accepted = explored | (score >= cut)
    weight = np.where(score >= cut, epsilon, 1.0)[accepted]
    ours = weighted_quantile(score[accepted], weight, 0.5)
    thinned = [
        np.median(score[explored | ((score >= cut) & (rng.random(4000) < epsilon))])
        for _ in range(300)
    ]
    assert ours == pytest.approx(np.mean(thinned), abs=3e-3)
    assert ours == pytest.approx(stats.beta(3, 2).median(), abs=0.02)
    unweighted = weighted_quantile(score[accepted], np.ones(accepted.sum()), 0.5)
    assert abs(unweighted - stats.beta(3, 2).median()) > 0.05


def labelled(seed, n=150):
    rng = np.random.default_rng(seed)
    group, outcome = rng.integers(0, 2, n), (rng.random(n) < 0.6).astype(np.int8)
    score = np.round(np.clip(rng.normal(0.4 + 0.25 * outcome + 0.08 * group, 0.2), 0.01, 1), 2)
    return score, outcome, group


def test_rates_are_head_counts():
    score, outcome, group = labelled(0)
    rates = rates_of(score, outcome, group, 2)
    for z, k in itertools.product((0, 1), (0, 40, 77, 130, CUTS.size - 1)):
        above = score[group == z] >= CUTS[k] - 1e-9
        y = outcome[group == z]
        assert rates.good[z, k] == pytest.approx(above[y == 1].mean())
        assert rates.bad[z, k] == pytest.approx(above[y == 0].mean())


def test_a_group_without_one_outcome_gets_the_rates_of_everybody():
    score, outcome, group = labelled(1)
    keep = (group == 0) | (outcome == 1)
    rates = rates_of(score[keep], outcome[keep], group[keep], 3)
    np.testing.assert_array_equal(rates.bad[1], rates.bad[0])
    np.testing.assert_array_equal(rates.bad[2], rates.bad[0])
    assert not np.array_equal(rates.good[1], rates.good[0])
    assert rates.base[2] == pytest.approx(outcome[keep].mean())


def tried_out(rates: Rates, share, gain, loss):
    """Return the most that any pair of matching cuts is worth, by trying every pair."""
    best = -np.inf
    rate = rates.good
    for i, j in itertools.product(range(CUTS.size), repeat=2):
        # Stricter cuts would both fall short of what the lower of the two reaches.
        level = min(rate[0, i], rate[1, j])
        if (i and rate[0, i - 1] >= level - 1e-12) or (j and rate[1, j - 1] >= level - 1e-12):
            continue
        worth = sum(
            share[z]
            * (
                rates.base[z] * rates.good[z, k] * gain
                - (1 - rates.base[z]) * rates.bad[z, k] * loss
            )
            for z, k in ((0, i), (1, j))
        )
        best = max(best, worth)
    return best


@pytest.mark.parametrize(("gain", "loss"), [(0.5, 0.5), (2.0, 5.0)])
def test_cuts_are_the_best_of_all_that_match(gain, loss):
    for seed in (2, 3):
        rates, share = rates_of(*labelled(seed), 2), np.array([0.7, 0.3])
        cut = best_cuts(rates, share, gain, loss)
        at = [int(np.flatnonzero(cut[z] == CUTS)[0]) for z in (0, 1)]
        worth = sum(
            share[z]
            * (
                rates.base[z] * rates.good[z, at[z]] * gain
                - (1 - rates.base[z]) * rates.bad[z, at[z]] * loss
            )
            for z in (0, 1)
        )
        assert worth == pytest.approx(tried_out(rates, share, gain, loss))
        jumps = [rates.good[z, at[z]] - rates.good[z, at[z] - 1] for z in (0, 1)]
        assert abs(rates.good[0, at[0]] - rates.good[1, at[1]]) <= max(jumps)


def test_exploring_fades_by_a_tenth_with_each_tenth_of_the_rounds():
    method = BoundedExploration(horizon=39)
    rounds = np.arange(1, 60)
    expected = [max(0.0, 1 - 0.1 * ((10 * (t - 1)) // 39)) for t in rounds.tolist()]
    np.testing.assert_allclose(method._exploring(rounds), expected)


def test_decisions_follow_the_bounds_that_are_shown():
    method = started(BoundedExploration(1.0, 6.0, horizon=4, random_state=0))
    kinds, moved = set(), 0
    for t in range(4):
        X, z, y = people(N, np.random.default_rng([7, t]))
        before = method.bounds_
        batch = method.decide(X, sensitive_features=z)
        low, cut, upper = method.bounds_[(z == "B").astype(int)].T
        epsilon = [1.0, 0.8, 0.5, 0.3][t]
        expected = np.where(batch.score >= cut, 1.0, np.where(batch.score >= low, epsilon, 0.0))
        np.testing.assert_allclose(batch.propensity, expected)
        assert np.all(low <= cut)
        assert np.all(upper <= 1)
        kinds |= set(np.unique(batch.propensity).tolist())
        method.observe(batch.ids[batch.accepted], y[batch.accepted])
        moved += not np.array_equal(before, method.bounds_)
    assert moved >= 2
    assert {0.0, 1.0} < kinds


def test_densities_are_mended_by_hand_the_same_way():
    """Round 1 explores with certainty, so all of its rows count whole."""
    X, z, y = people(3 * N, np.random.default_rng(8))

    def after_one_round(min_outcomes):
        method = BoundedExploration.setting("aligned", horizon=10, min_outcomes=min_outcomes)
        method = started(method.set_params(random_state=0))
        first, low = method.densities_, method.bounds_[:, 0]
        batch = method.decide(X, sensitive_features=z)
        method.observe(batch.ids[batch.accepted], y[batch.accepted])
        method.decide(X[:5], sensitive_features=z[:5])
        return method, first, low, batch

    method, first, _, batch = after_one_round(10**6)
    fewest = min((batch.accepted & (z == g) & (y == k)).sum() for g in "AB" for k in (0, 1))
    assert fewest > 5
    assert method.densities_ == first
    method, first, *_ = after_one_round(float(fewest))  # all wait for the rarest, and for more
    assert method.densities_ == first
    method, first, low, batch = after_one_round(fewest - 0.5)
    changed = 0
    for g, name in enumerate("AB"):
        for outcome in (0, 1):
            mine = batch.accepted & (z == name) & (y == outcome)
            before, after = first[g][outcome], method.densities_[g][outcome]
            tau = (0.6, 0.5)[outcome]
            law = stats.beta(before.a, before.b)
            inside = 1 - (1 - tau) / (1 - law.cdf(low[g]))
            if inside <= 0:
                assert after == before
                continue
            omega = np.quantile(batch.score[mine], inside, method="inverted_cdf")
            assert stats.beta(after.a, before.b).cdf(omega) == pytest.approx(tau)
            changed += 1
    assert changed >= 2


def test_the_score_is_learned_once_and_a_late_outcome_is_no_harm():
    method = started(BoundedExploration(horizon=6, random_state=0))
    X, z, y = people(N, np.random.default_rng(3))
    score = method.decide(X, sensitive_features=z)
    later = method.decide(X, sensitive_features=z)
    method.observe(later.ids[later.accepted], y[later.accepted])
    third = method.decide(X, sensitive_features=z)
    method.observe(score.ids[score.accepted], y[score.accepted])
    fourth = method.decide(X, sensitive_features=z)
    for one in (later, third, fourth):
        np.testing.assert_array_equal(one.score, score.score)


def test_propensities_are_the_probabilities_of_acceptance():
    """3,000 seeds, an exact test for each person at level 1e-4 in all; a false claim fails it."""
    method = started(BoundedExploration(1.0, 6.0, horizon=4, random_state=0))
    method._round = 3
    X, z, _ = people(80, np.random.default_rng(2))
    batch = method._people(X, z)
    runs, times = 3000, np.zeros(80)
    method._lows = [method._low] * 3
    for seed in range(runs):
        method._seed = seed
        verdict = method._decide(batch)
        times += verdict.accepted
    p = verdict.propensity
    assert {0.0, 0.5, 1.0} == set(np.unique(p).tolist())
    assert min(binomtest(int(k), runs, q).pvalue for k, q in zip(times, p, strict=True)) > 1e-4 / 80
    wrong = np.where(p == 0.5, 0.45, p)
    tests = [binomtest(int(k), runs, q).pvalue for k, q in zip(times, wrong, strict=True)]
    assert min(tests) < 1e-4 / 80


def test_what_every_baseline_keeps():
    check_promises(BoundedExploration(2.0, 5.0, horizon=4, random_state=0))


def test_three_groups_and_none():
    X, _, y = people(600, np.random.default_rng(0))
    z = np.arange(600) % 3
    method = BoundedExploration(2.0, 5.0, random_state=0).fit(X, y, sensitive_features=z)
    assert method.bounds_.shape == (3, 3)
    alone = BoundedExploration(2.0, 5.0, random_state=0).fit(X, y)
    assert alone.bounds_.shape == (1, 3)
    assert 0 < alone.decide(X).accepted.sum() < 600


def test_wrong_parameters_are_named():
    wrong = [
        ("gain", 0.0),
        ("loss", -1.0),
        ("horizon", 0),
        ("bad_level", 1.0),
        ("good_level", 0.0),
        ("min_outcomes", 0.0),
        ("l2", -1.0),
    ]
    check_refusals(BoundedExploration(), wrong)


def test_german_batches_allow_the_published_minimum():
    """150 new outcomes of the rarest kind come together several times in 39 rounds."""
    method = BoundedExploration.setting("published", random_state=0)
    assert method.min_outcomes == 150
    world = paper_experiment("german").world.build(load("german"), 0)
    past = world.history()
    method = method.fit(
        past.people.X, past.outcomes, accepted=past.accepted, sensitive_features=past.people.group
    )
    mended = [method._mended for _ in run(method, world)]
    assert 3 <= np.count_nonzero(np.diff(mended)) <= 13


def test_on_german_credit_its_published_costs_accept_nearly_everybody():
    """As the published comparison has it: FDR .29, about what accepting everybody gives."""
    published = on_german(BoundedExploration.setting("published", random_state=0))
    assert published.acceptance > 0.85
    assert 0.26 < published.fdr < 0.31
    assert -6000 < published.revenue < 4000
