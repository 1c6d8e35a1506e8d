"""Bechavod et al.: saddle points against linear programs, exploration, weights, fair mixtures."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binomtest

from fairchance.errors import InputError, UnknownIdError
from fairchance.simulate.run import run
from fairchance_lab.baselines.bechavod import (
    BechavodMixture,
    CostSensitive,
    FairProblem,
    fair_mixture,
)
from small_worlds import lender_world


def finite_game(seed, n=40, n_rules=60, bound=0.02, most=50.0):
    """Return a problem, all rules of a finite class, and an oracle that finds the cheapest."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    score = rng.normal(size=(n_rules, n)) + 0.8 * group
    rules = np.vstack([score > 0.6, np.zeros((1, n), bool), np.ones((1, n), bool)])
    rates = (np.arange(3)[:, None] == group) / np.bincount(group)[:, None]
    a, b = np.nonzero(~np.eye(3, dtype=bool))
    cost = (rng.normal(size=n) - 0.4 * group) / n
    problem = FairProblem(cost, rates[a] - rates[b], bound, most)

    def cheapest(price):
        best = int(np.argmin(rules @ price))
        return best, rules[best]

    return problem, rules, cheapest


def optimum(problem, rules):
    """Return the least cost of a mixture that keeps every bound."""
    answer = linprog(
        rules @ problem.cost,
        A_ub=problem.signal @ rules.T,
        b_ub=np.full(len(problem.signal), problem.bound),
        A_eq=np.ones((1, len(rules))),
        b_eq=[1.0],
    )
    assert answer.status == 0
    return float(answer.fun)


@pytest.mark.parametrize("seed", [0, 1, 2, 4, 5])
def test_the_mixture_is_the_best_fair_one(seed):
    problem, rules, cheapest = finite_game(seed)
    found = fair_mixture(problem, cheapest, n_more=100)
    want = optimum(problem, rules)
    mixed = found.share @ rules[list(found.rules)]
    assert found.cost == pytest.approx(problem.cost @ mixed)
    assert found.gaps == pytest.approx(problem.signal @ mixed)
    assert found.gaps.max() <= problem.bound + 1e-7
    assert found.cost == pytest.approx(want, abs=1e-5)
    assert found.lower - 1e-9 <= want <= found.upper + 1e-9
    assert found.upper - found.lower < 2e-6
    # The bound costs something, so a learner that ignored it would be seen.
    assert (rules @ problem.cost).min() < want - 1e-3


def averages_gap(problem, rules, choose, n_steps, rate):
    """Return the saddle-point gap of the players' averages by enumeration, and as reported."""
    answers = np.zeros(len(rules))

    def oracle(price):
        rule = int(choose(rules @ price))
        answers[rule] += 1 / n_steps
        return rule, rules[rule]

    found = fair_mixture(problem, oracle, n_steps=n_steps, rate=rate, n_more=0)
    cost, gaps = answers @ rules @ problem.cost, problem.signal @ (answers @ rules)
    worst = cost + problem.most * max(0.0, gaps.max() - problem.bound)
    prices = found.prices
    assert prices.min() >= 0
    assert prices.sum() <= problem.most
    at_prices = rules @ (problem.cost + prices @ problem.signal) - problem.bound * prices.sum()
    return worst - at_prices.min(), found.trace[-1]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_saddle_point_gap_shrinks(seed):
    """Below the theory's 2·B·ρ·√(log(K + 1)/T), and with T; with the dearest rules it is not."""
    problem, rules, _ = finite_game(seed, bound=0.1, most=1.0)
    widest = np.abs(problem.signal @ rules.T - problem.bound).max()
    reports = []
    for n_steps in (50, 400, 3200):
        pace = np.sqrt(np.log(len(problem.signal) + 1) / n_steps)
        promised = 2 * problem.most * widest * pace
        true, reported = averages_gap(problem, rules, np.argmin, n_steps, pace / widest)
        assert -1e-12 <= true <= reported + 1e-12
        assert reported <= promised
        reports.append(reported)
    assert np.all(np.diff(reports) < 0)
    assert reports[-1] < reports[0] / 2
    broken, _ = averages_gap(problem, rules, np.argmax, n_steps, pace / widest)
    assert broken > promised


def test_bounds_enclose_the_value_of_the_game_at_every_length():
    problem, rules, cheapest = finite_game(0)
    want = optimum(problem, rules)
    for n_steps in (1, 5, 20):
        found = fair_mixture(problem, cheapest, n_steps=n_steps, n_more=0)
        assert found.lower - 1e-9 <= want <= found.upper + 1e-9


def test_without_constraints_it_is_the_cheapest_rule():
    problem, rules, cheapest = finite_game(1)
    free = FairProblem(problem.cost, np.empty((0, problem.cost.size)), 0.0, 50.0)
    found = fair_mixture(free, cheapest)
    assert found.share.tolist() == [1.0]
    assert found.cost == pytest.approx((rules @ problem.cost).min())


@pytest.mark.parametrize("seed", range(4))
def test_the_cut_is_the_best_of_all_cuts_along_its_direction(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 3)).round(1)  # with ties
    cost = rng.normal(size=80) + X[:, 0] - 0.3
    learner = CostSensitive(X)
    rule, accepted = learner(cost)
    assert np.array_equal(accepted, X @ rule[:-1] + rule[-1] > 0)
    score = X @ learner._direction(cost)
    cuts = [-np.inf, *np.unique(score)]
    assert cost @ accepted == pytest.approx(
        min(0.0, *(cost @ (score > cut - 1e-12) for cut in cuts))
    )
    assert cost @ accepted < min(0.0, cost.sum())


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_where_all_cost_or_all_pay_nobody_or_everybody_is_accepted(sign, rng):
    _, accepted = CostSensitive(rng.normal(size=(20, 2)))(sign * (0.1 + rng.random(20)))
    assert np.all(accepted == (sign < 0))


def fitted(world, **options):
    past = world.history()
    options = {"random_state": 1, "n_rounds": world.n_rounds} | options
    return BechavodMixture(**options).fit(
        past.people.X,
        past.outcomes,
        accepted=past.accepted,
        sensitive_features=past.people.group,
    )


@pytest.mark.parametrize(
    ("n", "n_rounds", "want"), [(495, 39, 513), (6212, 39, 1816), (4, 2, 8), (10, 1000, 369)]
)
def test_how_many_are_explored(n, n_rounds, want):
    method = BechavodMixture(n_rounds=n_rounds)
    assert method._people_to_explore(n) == want
    assert BechavodMixture(explore_batches=2)._people_to_explore(n) == 2 * n


def test_everybody_is_accepted_until_enough_are_and_a_batch_is_cut():
    world = lender_world(0, n_batch=100, n_rounds=6)
    method = fitted(world, explore_batches=1, kappa=1.0)
    method.explore_people_ = 250
    method._rules = np.zeros((1, 4))[:, : method._rules.shape[1]]  # accepts nobody
    counts = []
    for result in run(method, world):
        counts.append(int(result.decided.accepted.sum()))
        if len(counts) == 3:
            assert result.decided.propensity == pytest.approx(0.5)
            break
    assert counts == [100, 100, 50]


def shifted(rng, n, shift):
    """Return people of three groups, the last of which have the better features."""
    X, group = rng.normal(size=(n, 2)), rng.choice(["a", "b", "c"], n, p=[0.4, 0.3, 0.3])
    X[:, 1] += shift * ((group == "c").astype(float) - (group == "a"))
    good = rng.random(n) < 1 / (1 + np.exp(-0.5 - X.sum(axis=1)))
    return X, group, good.astype(int)


@pytest.mark.parametrize(("equal", "code"), [("false_positive", 0), ("true_positive", 1)])
def test_rates_of_all_groups_are_as_near_as_asked_on_the_people_learned_from(equal, code, rng):
    past, batch, later = (shifted(rng, n, 0.6) for n in (500, 2000, 100))
    gaps, fits = {}, {}
    for gamma in (0.02, 1.0):
        method = BechavodMixture(
            explore_batches=1, slack=0.0, gamma=gamma, equal=equal, loss=1.0, gain=1.0
        )
        method.fit(past[0], past[2], sensitive_features=past[1])
        decided = method.decide(batch[0], sensitive_features=batch[1])
        method.observe(decided.ids, batch[2])
        method.decide(later[0], sensitive_features=later[1])
        p = method.acceptance_probability(batch[0])
        counted = batch[2] == code
        rates = [p[counted & (batch[1] == z)].mean() for z in "abc"]
        gaps[gamma], fits[gamma] = np.ptp(rates), method.fits_[0]
        assert fits[gamma].gap == pytest.approx(gaps[gamma], abs=1e-6)
        cells = [np.sum(counted & (batch[1] == z)) for z in "abc"]
        assert fits[gamma].smallest_cell == min(cells)
    assert gaps[0.02] <= 0.02 + 1e-6
    assert gaps[1.0] > 0.1
    assert fits[0.02].n_rules > 1
    assert fits[0.02].cost > fits[1.0].cost + 1e-3


def test_slack_follows_from_the_people_of_the_smallest_cell():
    world = lender_world(2, n_batch=400, n_rounds=3)
    method = fitted(world, explore_batches=1, gamma=0.03, delta=0.1)
    list(run(method, world))
    one = method.fits_[0]
    assert one.slack == pytest.approx(2 * np.sqrt(np.log(80) / one.smallest_cell))
    assert one.bound == pytest.approx(0.03 + one.slack)


def repeated(method, people, n_seeds):
    """Return decisions on a batch by one policy under many seeds."""
    answers = []
    for seed in range(n_seeds):
        again = copy.deepcopy(method)
        again._seed = seed
        answers.append(again.decide(people.X, sensitive_features=people.group))
    return answers


def smallest_p(taken, p, n):
    return min(binomtest(int(k), n, q).pvalue for k, q in zip(taken, p, strict=True))


def test_propensities_are_exact_where_a_batch_is_cut():
    """By an exact binomial test per person at 1e-3 in all; off by 0.1 it fails."""
    world, n_seeds = lender_world(5, n_batch=60, n_rounds=2), 400
    method = fitted(world, kappa=0.5)
    answers = repeated(method, next(world.batches()).applicants.people, n_seeds)
    p = answers[0].propensity
    share = method._people_to_explore(60) / 60
    assert 0.2 < share < 0.8
    assert set(np.unique(p.round(9))) == {round(share, 9), 1.0}
    taken = np.sum([decided.accepted for decided in answers], axis=0)
    assert np.all(taken[p == 1] == n_seeds)
    assert smallest_p(taken, p, n_seeds) > 1e-3 / 60
    assert smallest_p(taken, np.where(p < 1, p + 0.1, 1.0), n_seeds) < 1e-3 / 60


def test_propensities_of_a_mixture_are_exact():
    world, n_seeds = lender_world(1, n_batch=300, n_rounds=2), 300
    options = {"explore_batches": 1, "slack": 0.0, "gamma": 0.0, "loss": 1.0, "gain": 1.0}
    method = fitted(world, n_steps=5, **options)
    first, second = (one.applicants for one in world.batches())
    decided = method.decide(first.people.X, sensitive_features=first.people.group)
    method.observe(decided.ids, first.outcome)
    method._learn()
    method._news = False  # copies need not learn the same again
    answers = repeated(method, second.people, n_seeds)
    p = answers[0].propensity
    unsure = (p > 0) & (p < 1)
    assert unsure.sum() > 3
    taken = np.sum([decided.accepted for decided in answers], axis=0)
    assert np.all(taken[p == 1] == n_seeds)
    assert np.all(taken[p == 0] == 0)
    assert smallest_p(taken[unsure], p[unsure], n_seeds) > 1e-3 / 300
    assert smallest_p(taken[unsure], 1 - p[unsure], n_seeds) < 1e-3 / 300


def test_weights_make_a_cut_batch_stand_for_everybody(rng):
    """Mean of features over accepted people, weighted, against that of the population, 0."""
    past = shifted(rng, 500, 0.0)
    method = BechavodMixture(n_rounds=3, kappa=2.9).fit(past[0], past[2])
    weighted, plain = [], []
    for seed in range(200):
        again = copy.deepcopy(method)
        again._seed = seed
        X = [shifted(rng, 150, 0.0)[0] for _ in range(2)]
        accepted = [again.decide(one).accepted for one in X]
        assert accepted[0].all()
        assert 160 < again.explore_people_ < 290
        kept = np.concatenate([one[taken] for one, taken in zip(X, accepted, strict=True)])
        weighted.append(again._weights(again._scaled(kept), [1, 2]) @ kept / 300)
        plain.append(kept.mean(axis=0))
    spread = np.std(weighted, axis=0) / np.sqrt(200)
    assert np.all(np.abs(np.mean(weighted, axis=0)) < 4 * spread)
    assert np.all(np.abs(np.mean(plain, axis=0)) > 8 * spread)


def decisions(method, world):
    return np.concatenate([result.decided.accepted for result in run(method, world)])


def test_the_same_seed_decides_the_same():
    world = lender_world(7, n_batch=100, n_rounds=4)
    options = {"n_rounds": 4}
    first = decisions(fitted(world, **options), world)
    assert np.array_equal(first, decisions(fitted(world, **options), world))
    assert not np.array_equal(first, decisions(fitted(world, random_state=2, **options), world))


def test_the_order_of_rows_does_not_matter():
    world = lender_world(8, n_batch=100, n_rounds=2)
    people = next(world.batches()).applicants.people
    order = np.random.default_rng(0).permutation(100)
    ids = np.arange(10_000, 10_100)
    one, other = fitted(world, kappa=0.5), fitted(world, kappa=0.5)
    a = one.decide(people.X, sensitive_features=people.group, ids=ids)
    b = other.decide(people.X[order], sensitive_features=people.group[order], ids=ids[order])
    assert 0 < a.accepted.sum() < 100
    assert np.array_equal(a.accepted[order], b.accepted)


def test_the_rejected_have_no_outcome():
    world = lender_world(9, n_batch=200, n_rounds=3)
    past = world.history()
    told = fitted(world, explore_batches=1)
    lied = BechavodMixture(explore_batches=1, random_state=1).fit(
        past.people.X,
        np.where(past.accepted, past.outcomes, 1),
        accepted=past.accepted,
        sensitive_features=past.people.group,
    )
    assert np.array_equal(decisions(told, world), decisions(lied, world))
    batch = next(world.batches()).applicants.people
    answer = told.decide(batch.X, sensitive_features=batch.group)
    rejected = answer.ids[~answer.accepted]
    with pytest.raises(UnknownIdError, match=str(rejected[0])):
        told.observe(rejected, np.ones(rejected.size))


def test_before_its_outcomes_come_the_history_decides():
    world = lender_world(10, n_batch=200, n_rounds=3)
    method = fitted(world, explore_batches=1)
    first = [one.applicants for one in world.batches()]
    batch = method.decide(first[0].people.X, sensitive_features=first[0].people.group)
    before = method.decide(first[1].people.X, sensitive_features=first[1].people.group)
    assert not method.fits_
    X = method._scaled(first[1].people.X)
    rule = method._from_history()[0]
    assert np.array_equal(before.accepted, X @ rule[:-1] + rule[-1] > 0)
    method.observe(batch.ids, first[0].outcome)
    method.decide(first[2].people.X, sensitive_features=first[2].people.group)
    assert method.fits_[0].n_rows == 200


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("equal", "odds"),
        ("gamma", 2.0),
        ("eps", 0.0),
        ("loss", 0.0),
        ("delta", 1.0),
        ("explore_batches", 0),
        ("n_steps", 0),
    ],
)
def test_options_are_checked(name, value):
    with pytest.raises(InputError, match=f"{name}.* {value!r}"):
        fitted(lender_world(0), **{name: value})


def test_the_length_of_exploration_is_needed():
    with pytest.raises(InputError, match=r"n_rounds.* explore_batches"):
        fitted(lender_world(0), n_rounds=None)
