"""Bechavod et al.: saddle points against linear programs, exploration, weights, fair mixtures."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binomtest

from secondlook.baselines.bechavod import BechavodMixture, CostSensitive
from secondlook.baselines.fair_mixture import FairProblem, fair_mixture
from secondlook.errors import InputError, UnknownIdError
from secondlook.simulate.run import run
from small_worlds import lender_world


def finite_game(seed, n=40, n_rules=60, bound=0.02):
    """Return a problem, all rules of a finite class, and an oracle that finds the cheapest."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    score = rng.normal(size=(n_rules, n)) + 0.8 * group
    rules = np.vstack([score > 0.6, np.zeros((1, n), bool), np.ones((1, n), bool)])
    rates = (np.arange(3)[:, None] == group) / np.bincount(group)[:, None]
    a, b = np.nonzero(~np.eye(3, dtype=bool))
    cost = (rng.normal(size=n) - 0.4 * group) / n
    problem = FairProblem(cost, rates[a] - rates[b], bound, most=50.0)

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


@pytest.mark.parametrize("seed", range(5))
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


@pytest.mark.parametrize("seed", range(5))
def test_the_saddle_point_gap_shrinks(seed):
    """Below B·log(K + 1)/(ηT) + η·ρ²·B, as the method's theory says, and with T as 1/√T."""
    problem, rules, cheapest = finite_game(seed)
    widest = np.abs(problem.signal @ rules.T - problem.bound).max()
    last, options = len(problem.signal) + 1, {"n_more": 0}
    ends = []
    for n_steps in (50, 200, 800, 3200):
        rate = np.sqrt(np.log(last) / n_steps) / widest
        trace = fair_mixture(problem, cheapest, n_steps=n_steps, rate=rate, **options).trace
        promised = 2 * problem.most * widest * np.sqrt(np.log(last) / n_steps)
        assert -1e-9 <= trace[-1] <= promised
        ends.append(trace[-1])
    assert np.all(np.diff(ends) < 0)
    assert ends[-1] < ends[0] / 4

    def dearest(price):
        worst = int(np.argmax(rules @ price))
        return worst, rules[worst]

    broken = fair_mixture(problem, dearest, n_steps=3200, rate=rate, **options).trace[-1]
    assert not -1e-9 <= broken <= promised


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


def test_whole_batches_are_explored_to_their_end():
    world = lender_world(0, n_batch=100, n_rounds=6)
    method = fitted(world, whole_batches=True)
    assert method._people_to_explore(100) == 91
    counts = [int(result.decided.accepted.sum()) for result in run(method, world)]
    assert counts[0] == 100
    assert max(counts[1:]) < 100


def by_rates(method, people, outcome, equal=0):
    p = method.acceptance_probability(people.X)
    return [p[(people.group == z) & (outcome == equal)].mean() for z in method.groups_]


@pytest.mark.parametrize(("equal", "code"), [("false_positive", 0), ("true_positive", 1)])
def test_rates_of_groups_are_as_near_as_asked_on_the_people_learned_from(equal, code):
    world = lender_world(1, n_batch=1500, n_rounds=3)
    options = {"explore_batches": 1, "slack": 0.0, "equal": equal, "loss": 1.0, "gain": 1.0}
    fair = fitted(world, gamma=0.01, **options)
    free = fitted(world, gamma=1.0, **options)
    learned = None
    for first, second in zip(run(fair, world), run(free, world), strict=True):
        learned = learned or first.applicants
        assert pytest.approx(second.applicants.people.X) == first.applicants.people.X
    near = by_rates(fair, learned.people, learned.outcome, code)
    far = by_rates(free, learned.people, learned.outcome, code)
    assert abs(near[0] - near[1]) <= 0.01 + 1e-6
    assert abs(near[0] - near[1]) == pytest.approx(fair.fits_[0].gap, abs=1e-6)
    assert abs(far[0] - far[1]) > 0.05
    assert fair.fits_[0].cost > free.fits_[0].cost
    cells = [(learned.outcome[learned.people.group == z] == code).sum() for z in fair.groups_]
    assert fair.fits_[0].smallest_cell == min(cells)


def test_slack_follows_from_the_people_of_the_smallest_cell():
    world = lender_world(2, n_batch=400, n_rounds=3)
    method = fitted(world, explore_batches=1, gamma=0.03, delta=0.1)
    list(run(method, world))
    one = method.fits_[0]
    assert one.slack == pytest.approx(2 * np.sqrt(np.log(80) / one.smallest_cell))
    assert one.bound == pytest.approx(0.03 + one.slack)


def test_it_commits_unless_told_to_refit():
    world = lender_world(3, n_batch=300, n_rounds=5)
    once, again = (fitted(world, explore_batches=1, refit=refit) for refit in (False, True))
    for method in (once, again):
        list(run(method, world))
    assert [one.round for one in once.fits_] == [1]
    assert [one.round for one in again.fits_] == [1, 2, 3, 4]
    assert again.fits_[-1].n_rows > again.fits_[0].n_rows == 300


def test_after_exploring_a_floor_is_kept():
    world = lender_world(4, n_batch=200, n_rounds=4)
    method = fitted(world, explore_batches=1, floor=True)
    for t, result in enumerate(run(method, world), start=1):
        lowest = result.decided.propensity.min()
        came = 200 * t
        assert lowest == pytest.approx(1.0 if t == 1 else min(0.5, np.sqrt(np.log(came) / came)))


def repeated(world, n_seeds, n_rounds, **options):
    """Return the last of some rounds' decisions under many seeds."""
    answers = []
    batches = [one.applicants for one in world.batches()][:n_rounds]
    for seed in range(n_seeds):
        method = fitted(world, random_state=seed, **options)
        for now in batches:
            decided = method.decide(now.people.X, sensitive_features=now.people.group)
            kept = decided.accepted
            method.observe(decided.ids[kept], now.outcome[kept])
        answers.append((decided, method))
    return answers, batches


def smallest_p(taken, p, n):
    return min(binomtest(int(k), n, q).pvalue for k, q in zip(taken, p, strict=True))


def test_propensities_are_exact_where_a_batch_is_cut():
    """By an exact binomial test per person at 1e-3 in all; off by 0.1 it fails."""
    world = lender_world(5, n_batch=60, n_rounds=2)
    answers, _ = repeated(world, 400, 1, kappa=0.5)
    p = answers[0][0].propensity
    share = answers[0][1].explore_people_ / 60
    assert 0.2 < share < 0.8
    assert set(np.unique(p.round(9))) == {round(share, 9), 1.0}
    taken = np.sum([decided.accepted for decided, _ in answers], axis=0)
    assert np.all(taken[p == 1] == 400)
    assert smallest_p(taken, p, 400) > 1e-3 / 60
    assert smallest_p(taken, np.where(p < 1, p + 0.1, 1.0), 400) < 1e-3 / 60


def test_propensities_of_a_mixture_are_exact():
    """The mixture is the same under every seed, since everybody was explored in round 1."""
    world = lender_world(1, n_batch=300, n_rounds=2)
    options = {"explore_batches": 1, "slack": 0.0, "gamma": 0.0, "loss": 1.0, "gain": 1.0}
    answers, _ = repeated(world, 150, 2, n_steps=5, **options)
    p = answers[0][0].propensity
    assert all(np.array_equal(decided.propensity, p) for decided, _ in answers)
    unsure = (p > 0) & (p < 1)
    assert unsure.sum() > 3
    taken = np.sum([decided.accepted for decided, _ in answers], axis=0)
    assert np.all(taken[p == 1] == 150)
    assert np.all(taken[p == 0] == 0)
    assert smallest_p(taken[unsure], p[unsure], 150) > 1e-3 / 300
    assert smallest_p(taken[unsure], 1 - p[unsure], 150) < 1e-3 / 300


def test_weights_make_a_cut_batch_stand_for_everybody():
    """Mean of a feature over accepted people, weighted, against the mean over all who came."""
    world = lender_world(6, n_batch=150, n_rounds=3)
    errors, plain = [], []
    answers, batches = repeated(world, 150, 2, kappa=1.8, n_steps=1)
    everybody = np.concatenate([now.people.X for now in batches]).mean(axis=0)
    for _, method in answers:
        own = method._labelled().own()
        assert 150 < method.explore_people_ < 300
        weight = method._weights(method._scaled(own.X), [1, 2])
        assert weight.min() >= 1 - 1e-12
        errors.append(weight @ own.X / 300 - everybody)
        plain.append(own.X.mean(axis=0) - everybody)
    z = np.mean(errors, axis=0) / (np.std(errors, axis=0) / np.sqrt(len(errors)))
    broken = np.mean(plain, axis=0) / (np.std(plain, axis=0) / np.sqrt(len(plain)))
    assert np.abs(z).max() < 4
    assert np.abs(broken).max() > 8


def test_more_than_two_groups_are_compared_in_pairs(rng):
    X = rng.normal(size=(3000, 2))
    group = rng.choice(["a", "b", "c"], 3000)
    X[:, 1] += (group == "c") * 1.0 - (group == "a") * 1.0
    good = (rng.random(3000) < 1 / (1 + np.exp(-X.sum(axis=1)))).astype(int)
    method = BechavodMixture(explore_batches=1, slack=0.0, gamma=0.02, loss=1.0, gain=1.0)
    method.fit(X[:500], good[:500], sensitive_features=group[:500])
    batch = method.decide(X[500:2500], sensitive_features=group[500:2500])
    method.observe(batch.ids, good[500:2500])
    method.decide(X[2500:], sensitive_features=group[2500:])
    p = method.acceptance_probability(X[500:2500])
    bad = good[500:2500] == 0
    rates = [p[bad & (group[500:2500] == z)].mean() for z in "abc"]
    assert np.ptp(rates) <= 0.02 + 1e-6
    assert method.fits_[0].n_rules > 1


def decisions(method, world):
    return np.concatenate([result.decided.accepted for result in run(method, world)])


def test_the_same_seed_decides_the_same():
    world = lender_world(7, n_batch=100, n_rounds=4)
    options = {"explore_batches": 1, "floor": True}
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
    with pytest.raises(UnknownIdError, match="were rejected"):
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
    ("options", "text"),
    [
        ({"n_rounds": None}, "pass n_rounds, or explore_batches"),
        ({"equal": "odds"}, "equal must be 'false_positive' or 'true_positive', got 'odds'"),
        ({"gamma": 2.0}, r"gamma must be in \[0, 1\], got 2.0"),
        ({"eps": 0.0}, r"eps must be in \(0, 1\], got 0.0"),
        ({"loss": 0.0}, "loss must be positive, got 0.0"),
        ({"delta": 1.0}, r"delta must be in \(0, 1\), got 1.0"),
        ({"explore_batches": 0}, "explore_batches must be 1 or more, or None, got 0"),
        ({"n_steps": 0}, "n_steps must be 1 or more, got 0"),
    ],
)
def test_options_are_checked(options, text):
    with pytest.raises(InputError, match=text):
        fitted(lender_world(0), **options)
