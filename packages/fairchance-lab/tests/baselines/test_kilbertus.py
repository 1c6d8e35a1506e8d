"""Kilbertus et al.: gradients against derivatives by enumeration, weights, starts and figures."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression

from fairchance.errors import InputError, UnknownIdError
from fairchance.simulate.run import run
from fairchance_lab.baselines import kilbertus
from fairchance_lab.baselines.kilbertus import (
    Ascent,
    Benefit,
    KilbertusPolicy,
    PolicyRows,
    acceptance,
    climb,
    slopes,
)
from fairchance_lab.datasets import load
from fairchance_lab.paper.experiment import paper_experiment
from small_worlds import lender_world

# Cells of equal mass; counts of people are whole numbers, so that rows enumerate the population.
PHI = np.array([[1.0, -1.0, 0.3], [1.0, 0.4, -0.8], [1.0, 1.1, 0.9], [1.0, -0.2, -1.3]])
GOOD = np.array([0.25, 0.5, 0.75, 0.25])
BEFORE = np.array([0.5, 1.0, 0.25, 0.5])
GROUP = np.array([0, 1, 2, 0])
THETA = np.array([0.2, 0.7, -0.6])
COST = 0.6
N_CELL = 16


def enumerated(benefit="demographic"):
    """Return every accepted person of a population, each as often as they are met on average."""
    cell, y = np.repeat(np.arange(4), 2), np.tile([1, 0], 4)
    count = N_CELL * BEFORE[cell] * np.where(y == 1, GOOD[cell], 1 - GOOD[cell])
    assert np.array_equal(count, np.round(count))
    cell, y = np.repeat(cell, count.astype(int)), np.repeat(y, count.astype(int))
    weight = 1 / BEFORE[cell]
    good = weight * y if benefit == "opportunity" else weight
    return PolicyRows(PHI[cell], (y - COST) * weight, good, GROUP[cell]), weight


def derivative(function, at, step=1e-6):
    sides = [[function(at + s * step * e) for s in (1, -1)] for e in np.eye(at.size)]
    return np.array([(up - down) / (2 * step) for up, down in sides])


def objective(theta, *, semi, penalty, benefit="demographic"):
    """Return J, with every expectation a sum over cells."""
    p = np.where(PHI @ theta >= 0, 1.0, expit(PHI @ theta)) if semi else expit(PHI @ theta)
    value = np.mean(p * (GOOD - COST))
    one = p * GOOD if benefit == "opportunity" else p
    b = [one[z == GROUP].mean() for z in range(3)]
    pairs = [(0, 1), (0, 2), (1, 2)]
    return value - penalty / 2 * sum((b[s] - b[r]) ** 2 for s, r in pairs)


def step_of(rows, benefit, *, semi=False, penalty=0.0, n_groups=3):
    """Return the change by one step of length 1 over all rows."""
    how = Ascent(semi, 1.0, expected=True, penalty=penalty, n_groups=n_groups)
    every = [np.arange(len(rows))]
    return climb(THETA, rows, every, how, np.random.default_rng(0), benefit) - THETA


@pytest.mark.parametrize("semi", [False, True])
@pytest.mark.parametrize("penalty", [0.0, 0.7])
@pytest.mark.parametrize("benefit", ["demographic", "opportunity"])
def test_a_step_is_the_derivative_of_the_expected_objective(semi, penalty, benefit):
    rows, weight = enumerated(benefit)
    if benefit == "demographic":
        share = (np.arange(3)[:, None] == GROUP) / np.bincount(GROUP)[:, None]
        measured = Benefit(PHI, share, weight.mean())
    else:
        member = np.arange(3)[:, None] == rows.group
        share = member * rows.benefit / (member @ weight)[:, None]
        measured = Benefit(rows.phi, share, weight.mean())
    step = step_of(rows, measured, semi=semi, penalty=penalty)
    want = derivative(lambda t: objective(t, semi=semi, penalty=penalty, benefit=benefit), THETA)
    n_people = 4 * N_CELL
    assert step * len(rows) / n_people == pytest.approx(want, abs=1e-8)
    # Without the weights it is the derivative of something else.
    biased = replace(rows, worth=rows.worth / weight)
    wrong = step_of(biased, measured, semi=semi, penalty=penalty)
    assert np.abs(wrong * len(rows) / n_people - want).max() > 1e-3


def test_penalty_and_utility_are_both_in_the_gradient():
    want = derivative(lambda t: objective(t, semi=False, penalty=0.7), THETA)
    without = derivative(lambda t: objective(t, semi=False, penalty=0.0), THETA)
    assert np.abs(want - without).max() > 1e-3


@pytest.mark.parametrize("semi", [False, True])
def test_drawn_slopes_are_right_on_average(semi):
    margin = np.array([-2.0, -0.3, 0.4, 1.5])
    p = expit(margin)
    accepted, rejected = (slopes(margin, semi, np.full(4, u)) for u in (0.0, 1.0))
    assert p * accepted + (1 - p) * rejected == pytest.approx(slopes(margin, semi))
    assert np.all(slopes(margin, semi)[margin > 0] == 0) == semi
    numeric = [derivative(lambda t: acceptance(t, semi)[0], np.array([m]))[0] for m in margin]
    assert slopes(margin, semi) == pytest.approx(numeric, abs=1e-8)


def test_minibatch_penalty_is_the_published_form():
    """Means over accepted rows of d·w, and of score·w·φ, by the formula written out for two."""
    rows, _ = enumerated()
    two = replace(rows, group=np.minimum(rows.group, 1), worth=np.zeros(len(rows)))
    step = step_of(two, None, penalty=0.7, n_groups=2)
    p, w, z = expit(two.phi @ THETA), two.benefit, two.group
    delta = (p * w)[z == 0].mean() - (p * w)[z == 1].mean()
    pull = (p * (1 - p) * w)[:, None] * two.phi
    want = -0.7 * delta * (pull[z == 0].mean(axis=0) - pull[z == 1].mean(axis=0))
    assert step == pytest.approx(want)


def fitted(world, **options):
    past = world.history()
    return KilbertusPolicy(**{"random_state": 1} | options).fit(
        past.people.X,
        past.outcomes,
        accepted=past.accepted,
        sensitive_features=past.people.group,
    )


@pytest.mark.parametrize("cost", [0.6, 5 / 7])
def test_the_first_policy_is_even_where_the_outcome_is_good_with_probability_c(cost):
    world = lender_world(0)
    past = world.history()
    X = past.people.X
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    known = past.accepted
    model = LogisticRegression(C=1 / (1e-3 * known.sum()), tol=1e-10, max_iter=1000)
    model.fit(scaled[known], past.outcomes[known])
    p = fitted(world, cost=cost).acceptance_probability(X)
    good = model.predict_proba(scaled)[:, 1]
    assert logit(p) == pytest.approx(logit(good) - logit(cost), abs=1e-4)
    assert np.array_equal(p > 0.5, good > cost)


@pytest.mark.parametrize("learn_from", ["all", "recent"])
def test_it_learns_from_its_own_people_with_the_weights_of_their_day(monkeypatch, learn_from):
    met, real = [], kilbertus.climb

    def watched(theta, rows, *others):
        met.append(rows)
        return real(theta, rows, *others)

    monkeypatch.setattr(kilbertus, "climb", watched)
    world = lender_world(2, n_rounds=4)
    method = fitted(world, learn_from=learn_from, clip=0.05, epochs=3)
    worth = []
    for result in run(method, world):
        kept = result.decided.accepted
        weight = 1 / np.maximum(result.decided.propensity[kept], 0.05)
        worth.append((result.applicants.outcome[kept] - 5 / 7) * weight)
    assert len(met) == 3
    for t, rows in enumerate(met):
        want = worth[t] if learn_from == "recent" else np.concatenate(worth[: t + 1])
        assert np.sort(rows.worth) == pytest.approx(np.sort(want))


def test_equal_opportunity_stands_for_everybody_though_only_the_accepted_are_known(monkeypatch):
    seen, real = [], kilbertus.climb

    def watched(theta, rows, *others):
        seen.append((theta, rows, others[-1]))
        return real(theta, rows, *others)

    monkeypatch.setattr(kilbertus, "climb", watched)
    monkeypatch.setattr(kilbertus, "_REFERENCE", 10**9)
    world = lender_world(3, n_batch=20_000, n_rounds=2)
    method = fitted(world, parity="opportunity", steps=1)
    now = next(iter(run(method, world))).applicants
    p = method.acceptance_probability(now.people.X)
    method.decide(now.people.X[:5], sensitive_features=now.people.group[:5])
    _, rows, benefit = seen[0]
    theta = seen[0][0]
    found = benefit.share @ expit(benefit.phi @ theta)
    names = method.groups_
    want = [(p * now.outcome)[now.people.group == z].mean() for z in names]
    assert found == pytest.approx(want, abs=0.02)
    plain = [
        (expit(rows.phi @ theta) * (rows.benefit > 0))[rows.group == z].mean()
        for z in range(names.size)
    ]
    assert np.abs(np.array(plain) - want).max() > 0.05


def test_demographic_benefit_is_over_everybody_of_the_last_round(monkeypatch):
    seen, real = [], kilbertus.climb

    def watched(theta, rows, *others):
        seen.append((theta, others[-1]))
        return real(theta, rows, *others)

    monkeypatch.setattr(kilbertus, "climb", watched)
    world = lender_world(4, n_rounds=3)
    method = fitted(world, parity="demographic", steps=5)
    rates = []
    for result in run(method, world):
        p, group = result.decided.propensity, result.applicants.people.group
        rates.append([p[group == z].mean() for z in method.groups_])
    for t, (theta, benefit) in enumerate(seen):
        assert benefit.share @ expit(benefit.phi @ theta) == pytest.approx(rates[t])


def test_a_penalty_buys_what_it_is_for():
    """On everybody of the stream: groups come nearer, v falls, and J rises."""
    world = lender_world(5, n_batch=500, n_rounds=20)
    stream = [one.applicants for one in world.batches()]
    X, group, y = (
        np.concatenate(part)
        for part in zip(*((a.people.X, a.people.group, a.outcome) for a in stream), strict=True)
    )
    worth, gap = {}, {}
    for penalty in (0.0, 10.0):
        method = fitted(world, parity="demographic", penalty=penalty)
        list(run(method, world))
        p = method.acceptance_probability(X)
        worth[penalty] = np.mean(p * (y - 5 / 7))
        gap[penalty] = p[group == "A"].mean() - p[group == "B"].mean()
    assert abs(gap[10.0]) < 0.8 * abs(gap[0.0])
    assert worth[10.0] < worth[0.0]
    assert worth[10.0] - 5 * gap[10.0] ** 2 > worth[0.0] - 5 * gap[0.0] ** 2


@pytest.mark.parametrize("family", ["logistic", "semi"])
def test_propensities_are_exact(family):
    """Over many seeds, by an exact binomial test per person at 1e-3 in all; off by 0.1 it fails."""
    world, n_seeds = lender_world(6, n_batch=60, n_rounds=1), 400
    people = next(world.batches()).applicants.people
    taken = np.zeros(60, int)
    method = fitted(world, family=family)
    for seed in range(n_seeds):
        again = copy.deepcopy(method)
        again._seed = seed
        decided = again.decide(people.X, sensitive_features=people.group)
        taken += decided.accepted
    p = decided.propensity
    assert p == pytest.approx(method.acceptance_probability(people.X))
    assert np.all(taken[p == 1] == n_seeds)

    def smallest(p):
        return min(binomtest(int(k), n_seeds, q).pvalue for k, q in zip(taken, p, strict=True))

    assert smallest(p) > 1e-3 / 60
    assert smallest(np.where(p > 0.5, p - 0.1, p + 0.1)) < 1e-3 / 60


def test_semi_logistic_people_above_one_half_teach_nothing():
    rows, _ = enumerated()
    above = rows.phi @ THETA >= 0
    only = PolicyRows(*(part[above] for part in (rows.phi, rows.worth, rows.benefit, rows.group)))
    assert len(only) > 0
    assert not step_of(only, None, semi=True).any()
    world = lender_world(7)
    method = fitted(world, family="semi")
    list(run(method, world))
    assert 0 < method.updates_[-1].moving_share < 1
    free = fitted(world)
    list(run(free, world))
    assert all(one.moving_share == 1 for one in free.updates_)


def test_weights_are_cut_and_counted():
    world = lender_world(8, n_rounds=3)
    method = fitted(world, clip=0.5)
    p = [r.decided.propensity[r.decided.accepted] for r in run(method, world)]
    rates = [one.clip_rate for one in method.updates_]
    want = [(np.concatenate(p[: t + 1]) < 0.5).mean() for t in range(len(rates))]
    assert rates == pytest.approx(want)
    assert max(rates) > 0


@pytest.mark.parametrize("learn_from", ["all", "recent"])
def test_a_pass_is_as_long_as_a_round_at_most(learn_from):
    """As in the authors' code: the last minibatch may be smaller, and counts as a step."""
    world = lender_world(9, n_batch=300, n_rounds=4)
    method = fitted(world, epochs=5, batch_size=32, learn_from=learn_from)
    counts = [int(r.decided.accepted.sum()) for r in run(method, world)][:3]
    rows = counts if learn_from == "recent" else np.cumsum(counts).tolist()
    assert [one.n_rows for one in method.updates_] == rows
    steps = [5 * int(np.ceil(min(n, 300) / 32)) for n in rows]
    assert [one.n_steps for one in method.updates_] == steps
    assert learn_from == "recent" or rows[-1] > 300
    fixed = fitted(world, steps=7)
    list(run(fixed, world))
    assert [one.n_steps for one in fixed.updates_] == [7, 7, 7]


def test_each_row_is_met_once_in_a_pass_and_drawn_anew_with_a_number_of_steps():
    method = KilbertusPolicy(epochs=3, batch_size=32)
    method._n_applicants = 1000
    batches = list(method._minibatches(100, np.random.default_rng(0)))
    assert [one.size for one in batches] == [32, 32, 32, 4] * 3
    assert np.concatenate(batches[:4]).tolist() != np.concatenate(batches[4:8]).tolist()
    assert all(sorted(np.concatenate(batches[k : k + 4])) == list(range(100)) for k in (0, 4, 8))
    method._n_applicants = 40
    assert [one.size for one in method._minibatches(100, np.random.default_rng(0))] == [32, 8] * 3
    drawn = list(method.set_params(steps=9)._minibatches(20, np.random.default_rng(0)))
    assert [one.size for one in drawn] == [32] * 9
    assert set(np.concatenate(drawn).tolist()) == set(range(20))


def test_rounds_of_whole_passes_are_the_published_update_written_out():
    """Minibatches of all rows leave only θ ← θ + lr·mean((y − c)/π'·π(1 − π)·φ), epoch by epoch."""
    world = lender_world(14, n_rounds=4)
    X = world.history().people.X
    mean, spread = X.mean(axis=0), X.std(axis=0)
    whole = {"batch_size": 10**6, "epochs": 4, "learning_rate": 0.3, "learn_from": "recent"}
    method = fitted(world, cost=0.6, **whole)
    theta = np.append(method.intercept_, method.coef_)
    for result in run(method, world):
        X = (result.applicants.people.X - mean) / spread
        phi = np.column_stack([np.ones(len(X)), X])
        before = result.decided.propensity
        assert before == pytest.approx(expit(phi @ theta))
        kept = result.decided.accepted
        worth = (result.applicants.outcome - 0.6) / np.maximum(before, 0.01)
        for _ in range(4):
            p = expit(phi[kept] @ theta)
            theta = theta + 0.3 * (worth[kept] * p * (1 - p)) @ phi[kept] / kept.sum()


def german_method(**options):
    world = replace(paper_experiment("german").world, n_rounds=2).build(load("german"), 0)
    return fitted(world, **options), world.history().people


@pytest.mark.parametrize("setting", ["published", "aligned", "icml"])
def test_the_group_is_a_feature_only_where_it_was(setting):
    """German credit has sex among its columns; a world without it appends the group."""
    blind = setting != "icml"
    method, people = german_method(**KilbertusPolicy.settings[setting])
    assert method.coef_.size == people.X.shape[1] - blind
    turned = people.X.copy()
    turned[:, -1] = 1 - turned[:, -1]
    p, other = (method.acceptance_probability(X) for X in (people.X, turned))
    assert np.array_equal(p, other) == blind
    world = lender_world(15)
    method = fitted(world, group_as_feature=True, **KilbertusPolicy.settings[setting])
    assert method.coef_.size == world.history().people.X.shape[1] + (not blind)


def decisions(method, world):
    return np.concatenate([result.decided.accepted for result in run(method, world)])


def test_the_same_seed_decides_the_same():
    world = lender_world(10, n_rounds=3)
    first = decisions(fitted(world), world)
    assert np.array_equal(first, decisions(fitted(world), world))
    assert not np.array_equal(first, decisions(fitted(world, random_state=2), world))


def test_the_rejected_have_no_outcome():
    world = lender_world(11, n_rounds=2)
    past = world.history()
    told = fitted(world)
    lied = KilbertusPolicy(random_state=1).fit(
        past.people.X,
        np.where(past.accepted, past.outcomes, 1),
        accepted=past.accepted,
        sensitive_features=past.people.group,
    )
    batch = next(world.batches()).applicants.people
    answers = [m.decide(batch.X, sensitive_features=batch.group) for m in (told, lied)]
    assert np.array_equal(answers[0].accepted, answers[1].accepted)
    rejected = answers[0].ids[~answers[0].accepted]
    with pytest.raises(UnknownIdError, match=str(rejected[0])):
        told.observe(rejected, np.ones(rejected.size))
    before = told.acceptance_probability(batch.X)
    told.decide(batch.X, sensitive_features=batch.group)
    assert np.array_equal(told.acceptance_probability(batch.X), before)


def test_an_outcome_of_the_history_can_be_corrected_before_ours_come():
    world = lender_world(12, n_rounds=2)
    past = world.history()
    batch = next(world.batches()).applicants.people
    known = np.flatnonzero(past.accepted)
    wrong = known[past.outcomes[known] == 1][:20]
    corrected = fitted(world).correct(wrong, np.zeros(wrong.size))
    outcomes = past.outcomes.copy()
    outcomes[wrong] = 0
    right = KilbertusPolicy(random_state=1).fit(
        past.people.X,
        outcomes,
        accepted=past.accepted,
        sensitive_features=past.people.group,
    )
    p = [m.decide(batch.X, sensitive_features=batch.group).propensity for m in (corrected, right)]
    assert p[0] == pytest.approx(p[1])
    assert np.abs(p[0] - fitted(world).acceptance_probability(batch.X)).max() > 0.01


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("family", "linear"),
        ("learn_from", "none"),
        ("parity", "odds"),
        ("cost", 1.0),
        ("clip", 0.0),
        ("batch_size", 0),
        ("steps", 0),
        ("penalty", -1.0),
    ],
)
def test_options_are_checked(name, value):
    with pytest.raises(InputError, match=f"{name}.* {value!r}"):
        fitted(lender_world(0), **{name: value})


def test_parity_needs_groups(rng):
    X = rng.normal(size=(50, 2))
    with pytest.raises(InputError, match=r"groups.* none"):
        KilbertusPolicy(parity="demographic").fit(X, X[:, 0] > 0)


def test_the_group_itself_is_not_standardised():
    world = lender_world(13, n_rounds=2)
    method = fitted(world, group_as_feature=True, blind=False)
    assert method.coef_.size == world.history().people.X.shape[1] + 1
    assert method._spread[-1] == 1
    assert method._centre[-1] == 0
    list(run(method, world))


def test_figures_on_german_credit():
    """A history of all the good and a third of the bad, as the figures' own: 11.3, 6.0 and 10.5."""
    experiment = paper_experiment("german")
    past = ({"rule": "outcome", "good": 1.0, "bad": 1 / 3},)
    source = load("german")
    earned, bad = {}, {}
    for name, options in (
        ("aligned", {}),
        ("published", {}),
        ("aligned", {"family": "semi"}),
    ):
        money, counts = [], np.zeros(2)
        for seed in range(3):
            world = replace(experiment.world, past=past).build(source, seed)
            history = world.history()
            method = KilbertusPolicy.setting(name, random_state=seed, **options).fit(
                history.people.X,
                history.outcomes,
                accepted=history.accepted,
                sensitive_features=history.people.group,
            )
            for result in run(method, world):
                y = result.applicants.outcome[result.decided.accepted]
                counts += np.bincount(y, minlength=2)
                money.append(200 * y.sum() - 500 * (1 - y).sum())
        key = name, options.get("family", "logistic")
        earned[key], bad[key] = np.mean(money), counts[0] / counts.sum()
    assert 10_000 < earned["aligned", "logistic"] < 13_500
    assert 4_500 < earned["published", "logistic"] < 7_500
    assert 7_500 < earned["aligned", "semi"] < 12_000
    assert bad["aligned", "logistic"] == pytest.approx(0.23, abs=0.015)
    assert bad["published", "logistic"] == pytest.approx(0.265, abs=0.015)
