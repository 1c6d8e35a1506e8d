"""FairAll's objectives against integrals over the latent space, by numpy and scipy on grids."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logsumexp, ndtri

jax = pytest.importorskip("jax")

from jax.flatten_util import ravel_pytree  # noqa: E402

from fairchance_lab.baselines.fairall import model as vae  # noqa: E402
from fairchance_lab.baselines.fairall.columns import Layout  # noqa: E402
from fairchance_lab.baselines.fairall.model import apply, initialise, log_features, precision  # noqa: E402  # noqa: E402
from fairchance_lab.baselines.fairall.training import (  # noqa: E402
    PolicyNoise,
    acceptance,
    nodes,
    policy_loss,
)

# What runs a few times is not worth optimising.
quickly = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})

pytestmark = pytest.mark.xdist_group("fairall")

LAYOUT = Layout(n_real=2, n_count=1, n_binary=1, levels=(3,))
GRID = np.linspace(-12.0, 12.0, 4001)
STEP = GRID[1] - GRID[0]
COST = 0.7


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def some_people(n, seed=0):
    rng = np.random.default_rng(seed)
    x = np.column_stack(
        [
            rng.normal(size=(n, 2)),
            rng.poisson(2.0, n),
            rng.integers(0, 2, n),
            np.eye(3)[rng.integers(0, 3, n)],
        ]
    )
    s = rng.choice([-1.0, 1.0], (n, 1))
    u = rng.integers(0, 2, n).astype(float)
    return vae.FairAllRows(x, s, u, rng.uniform(1, 4, n), np.ones(n))


def some_model(latent=1, seed=0, layout=LAYOUT):
    """Return small networks with weights large enough for z to matter."""
    sizes = vae.Sizes(latent, 1, (5,), (4,), (4,))
    rng = np.random.default_rng(seed)
    model = vae.initial_model(rng, layout, sizes)
    for network in model.values():
        network[:] = [(1.2 * weights, rng.normal(0, 0.3, bias.shape)) for weights, bias in network]
    return model, [(2.0 * w, b) for w, b in initialise(rng, [latent, 4, 1])]


def forward(network, rows):
    """Return what a network gives, by numpy."""
    for weights, bias in network[:-1]:
        rows = np.maximum(rows @ weights + bias, 0.0)
    weights, bias = network[-1]
    return rows @ weights + bias


def seen(x):
    """Return features as networks read them: counts, the third column, on a log scale."""
    return np.concatenate([x[:2], [np.log1p(x[2])], x[3:]])


def posterior(model, x, u, s):
    """Return location and scale of q(z | x, u, s), by numpy."""
    out = forward(model["encoder"], np.concatenate([seen(x), [u], s]))
    return out[0], np.log1p(np.exp(out[1]))


def log_density(model, z, x, s):
    """Return log p(x | z, s) and log p(u = 1 | z, s) at points z, by scipy's distributions."""
    out = forward(model["decoder"], np.column_stack([z, np.full(len(z), s[0])]))
    total = np.zeros(len(z))
    for j in range(2):
        free = np.log1p(np.exp(out[:, 2 + j]))
        tau = 0.01 + free * 99.99 / (free + 99.99)
        total += stats.norm.logpdf(x[j], out[:, j] / tau, tau**-0.5)
    total += stats.poisson.logpmf(x[2], np.exp(out[:, 4]))
    total += stats.bernoulli.logpmf(x[3], expit(out[:, 5]))
    total += out[:, 6 + int(np.argmax(x[4:]))] - logsumexp(out[:, 6:9], axis=1)
    return total, out[:, 9]


def spread(k):
    """Return k numbers spread like N(0, 1): the quantiles of a uniform grid."""
    return ndtri((np.arange(k) + 0.5) / k)


def integral(values):
    return float(values.sum() * STEP)


def test_densities_of_each_kind_are_those_of_scipy():
    people, (model, _) = some_people(20), some_model()
    z = np.random.default_rng(1).normal(size=20)
    parameters, logit = vae.decode(model, z[:, None], people.s)
    ours = np.asarray(log_features(parameters, people.x, LAYOUT))
    theirs = [
        log_density(model, z[i : i + 1], people.x[i], people.s[i]) for i in range(len(people.x))
    ]
    np.testing.assert_allclose(ours, [one[0][0] for one in theirs], rtol=1e-10)
    np.testing.assert_allclose(logit, [one[1][0] for one in theirs], rtol=1e-10)


def test_a_level_nobody_had_adds_nothing():
    parameters = np.array([[0.3, -0.2, 1.0]])
    none = log_features(parameters, np.zeros((1, 3)), Layout(0, levels=(3,)))
    assert float(none[0]) == 0.0


def test_the_spread_of_a_real_column_stays_in_bounds():
    tau = np.asarray(precision(np.linspace(-100, 1e4, 300)))
    assert np.all(np.diff(tau) >= 0)
    assert 0.01 <= tau[0] < 0.0101
    assert 90 < tau[-1] <= 100


def test_kl_of_a_gaussian_is_its_integral():
    for loc, scale in ((0.0, 1.0), (1.7, 0.4), (-0.6, 1.4)):
        q = stats.norm(loc, scale)
        exact = integral(q.pdf(GRID) * (q.logpdf(GRID) - stats.norm.logpdf(GRID)))
        ours = float(vae.gaussian_kl(np.array([loc]), np.array([scale])))
        assert ours == pytest.approx(exact, abs=1e-8)


MIXTURES = [
    (0.3, [[-1.5, 0.5], [1.0, -1.0]], [[0.4, 0.9], [0.7, 0.3]]),
    (0.5, [[0.2, 0.0], [0.2, 0.0]], [[0.5, 0.5], [0.5, 0.5]]),
    (0.9, [[2.5, 2.0], [-2.0, -2.0]], [[0.2, 0.3], [0.3, 0.2]]),
]


def exact_mixture_kl(share, loc, scale):
    """Return the divergence of a mixture in two dimensions, summed over a fine square."""
    axis = np.linspace(-8, 8, 801)
    a, b = np.meshgrid(axis, axis, indexing="ij")
    each = [
        np.log(part) + stats.norm.logpdf(a, m[0], d[0]) + stats.norm.logpdf(b, m[1], d[1])
        for part, m, d in zip((1 - share, share), loc, scale, strict=True)
    ]
    log_q = np.logaddexp(*each)
    log_p = stats.norm.logpdf(a) + stats.norm.logpdf(b)
    return float((np.exp(log_q) * (log_q - log_p)).sum() * (axis[1] - axis[0]) ** 2)


def kl_by_cdfs(share, loc, scale, noise):
    """Return what distribution functions in the place of densities give, coordinate by coordinate.

    It is the form that FairAll's released code has.
    """
    z = loc + scale * noise[:, :, 0]
    under = [stats.norm.cdf(z, m, d) for m, d in zip(loc, scale, strict=True)]
    q = logsumexp([(1 - share) * under[0], share * under[1]], axis=0)
    each = (q - stats.norm.cdf(z)).sum(axis=-1).mean(axis=0)
    return (1 - share) * each[0] + share * each[1]


@pytest.mark.parametrize(("share", "loc", "scale"), MIXTURES)
def test_kl_of_a_mixture_is_its_integral(share, loc, scale):
    loc, scale = np.array(loc), np.array(scale)
    noise = np.random.default_rng(0).normal(size=(100, 400, 2, 1, 2))
    log_share = np.log([[1 - share], [share]])
    estimate = quickly(
        jax.vmap(lambda one: vae.mixture_kl(log_share, loc[:, None], scale[:, None], one)[0])
    )
    runs = np.asarray(estimate(noise))
    error = runs.std(ddof=1) / len(runs) ** 0.5
    exact = exact_mixture_kl(share, loc, scale)
    assert abs(runs.mean() - exact) < 4.5 * error + 1e-6
    broken = kl_by_cdfs(share, loc, scale, noise.reshape(-1, 2, 1, 2))
    assert abs(broken - exact) > 10 * error
    # The mean divergence of the components is an upper bound, reached where they are the same.
    apart = np.array([1 - share, share]) @ np.asarray(vae.gaussian_kl(loc, scale))
    assert exact <= apart + 1e-6
    assert (apart - exact < 1e-6) == bool(np.all(loc[0] == loc[1]))


def test_the_labelled_bound_misses_the_likelihood_by_a_divergence():
    """ELBO = log p(x, u | s) − KL(q(z | x, u, s) ‖ p(z | x, u, s)), all by integration."""
    people, (model, _) = some_people(6), some_model()
    noise = np.broadcast_to(spread(100_001)[:, None, None], (100_001, 6, 1))
    elbo = quickly(vae.labelled_elbo, static_argnums=(3,))
    bound, kl = elbo(model, people, noise, LAYOUT, 1.0)
    half, _ = elbo(model, people, noise, LAYOUT, 0.5)
    np.testing.assert_allclose(half - bound, 0.5 * kl, rtol=1e-6)
    for i in range(6):
        features, logit = log_density(model, GRID, people.x[i], people.s[i])
        joint = features + stats.bernoulli.logpmf(int(people.u[i]), expit(logit))
        joint += stats.norm.logpdf(GRID)
        evidence = np.log(integral(np.exp(joint)))
        q = stats.norm(*posterior(model, people.x[i], people.u[i], people.s[i]))
        gap = integral(q.pdf(GRID) * (q.logpdf(GRID) - (joint - evidence)))
        assert gap > 1e-3  # else the test would say nothing of q
        assert float(bound[i]) == pytest.approx(evidence - gap, abs=1e-3)


def test_the_unlabelled_bound_misses_the_likelihood_by_a_divergence():
    """The same with the mixture over both outcomes, and log p(x | s)."""
    people, (model, _) = some_people(6, seed=1), some_model(seed=1)
    noise = np.broadcast_to(spread(50_001)[:, None, None, None], (50_001, 2, 6, 1))
    bound, _ = quickly(vae.unlabelled_elbo, static_argnums=(4,))(
        model, people, noise, noise, LAYOUT, 1.0
    )
    for i in range(6):
        x, s = people.x[i], people.s[i]
        joint = log_density(model, GRID, x, s)[0] + stats.norm.logpdf(GRID)
        evidence = np.log(integral(np.exp(joint)))
        good = expit(forward(model["classifier"], np.concatenate([seen(x), s]))[0])
        q0, q1 = (stats.norm(*posterior(model, x, u, s)) for u in (0.0, 1.0))
        log_q = np.logaddexp(np.log1p(-good) + q0.logpdf(GRID), np.log(good) + q1.logpdf(GRID))
        gap = integral(np.exp(log_q) * (log_q - (joint - evidence)))
        assert gap > 1e-3
        assert float(bound[i]) == pytest.approx(evidence - gap, abs=1e-3)


def test_the_classifier_is_indifferent_at_the_cost():
    logits = np.linspace(-4, 4, 8001)
    for good in (0.2, COST, 0.9):
        mean = sum(
            share * np.asarray(vae.classifier_loss(logits, np.full(8001, u), np.ones(8001), COST))
            for u, share in ((1.0, good), (0.0, 1 - good))
        )
        best = logits[np.argmin(mean)]
        odds = good * (1 - COST) / ((1 - good) * COST)
        assert best == pytest.approx(np.log(odds), abs=1e-3)
    assert np.log(COST * (1 - COST) / ((1 - COST) * COST)) == 0.0


def test_weights_make_up_for_who_was_accepted():
    """Summed over all ways to be accepted, the weighted loss is the loss of everybody."""
    rng = np.random.default_rng(0)
    n = 6
    p, logit = rng.uniform(0.1, 0.9, n), rng.normal(size=n)
    u = rng.integers(0, 2, n).astype(float)
    everybody = float(np.sum(vae.classifier_loss(logit, u, np.ones(n), COST)))
    weighted, unweighted = 0.0, 0.0
    for code in range(2**n):
        taken = (code >> np.arange(n)) & 1
        chance = np.prod(np.where(taken, p, 1 - p))
        weighted += chance * float(np.sum(taken * vae.classifier_loss(logit, u, 1 / p, COST)))
        unweighted += chance * float(np.sum(taken * vae.classifier_loss(logit, u, 1 + 0 * p, COST)))
    assert weighted == pytest.approx(everybody, rel=1e-10)
    assert abs(unweighted - everybody) > 0.1 * everybody


PLAN = vae.TrainingPlan(LAYOUT, 2, COST, 0.7, 5.0, 3, 4, 1e-3)

losses = quickly(jax.value_and_grad(partial(vae.losses, plan=PLAN), has_aux=True))
policy_losses = quickly(partial(policy_loss, plan=PLAN))


def a_step(seed=0):
    """Return a minibatch of 5 people with outcomes and 4 without, and its noise."""
    rng = np.random.default_rng(seed)
    shapes = (1, 5, 2), (3, 2, 4, 2), (4, 2, 4, 2)
    return some_people(5, 3), some_people(4, 4), vae.Noise(*map(rng.standard_normal, shapes))


def test_the_loss_is_the_sum_of_its_parts_and_its_gradient_a_difference_quotient():
    model, _ = some_model(latent=2)
    step = labelled, *_ = a_step()
    (value, parts), slopes = losses(model, *step)
    rows = [[*seen(x), *s] for x, s in zip(labelled.x, labelled.s, strict=True)]
    logit, u = forward(model["classifier"], np.array(rows))[:, 0], labelled.u
    errors = (1 - COST) * u * np.logaddexp(0, -logit) + COST * (1 - u) * np.logaddexp(0, logit)
    expected = -parts.labelled + 5.0 * np.mean(labelled.weight * errors) - parts.unlabelled
    assert float(value) == pytest.approx(float(expected), rel=1e-10)

    flat, shaped = ravel_pytree(model)
    flat, slope = np.asarray(flat), np.asarray(ravel_pytree(slopes)[0])
    # The shares of both outcomes are held still in the gradient, so the classifier is left out.
    size = sum(leaf.size for leaf in jax.tree.leaves(model["classifier"]))
    for j in np.random.default_rng(0).choice(np.arange(size, flat.size), 12, replace=False):
        change = np.zeros_like(flat)
        change[j] = 1e-5
        above, below = (losses(shaped(flat + by), *step)[0][0] for by in (change, -change))
        assert slope[j] == pytest.approx(float(above - below) / 2e-5, rel=1e-5, abs=1e-6)


def test_people_without_outcomes_teach_no_classifier_and_their_outcome_is_not_looked_at():
    model, _ = some_model(latent=2)
    labelled, unlabelled, noise = a_step()
    unweighted = labelled._replace(weight=np.zeros(5))
    (value, _), slopes = losses(model, unweighted, unlabelled, noise)
    assert not any(np.any(leaf) for leaf in jax.tree.leaves(slopes["classifier"]))
    hidden = unlabelled._replace(u=np.full(4, np.nan), weight=np.full(4, np.nan))
    assert float(losses(model, unweighted, hidden, noise)[0][0]) == float(value)
    _, slopes = losses(model, labelled, unlabelled, noise)
    assert all(np.any(leaf) for leaf in jax.tree.leaves(slopes["classifier"])[-2:])


def test_losses_are_means_over_people_and_padding_is_nobody():
    model, policy = some_model(latent=2)
    labelled, unlabelled, noise = a_step()

    def parts(some, others):
        rows = labelled._replace(there=np.array(some, float))
        return losses(model, rows, unlabelled._replace(there=np.array(others, float)), noise)[0][1]

    one, two = np.eye(5), np.eye(4)
    together = parts([1, 1, 1, 0, 0], [1, 1, 0, 0])
    for name, apart in (
        ("labelled", [parts(one[i], two[0]).labelled for i in range(3)]),
        ("classifier", [parts(one[i], two[0]).classifier for i in range(3)]),
        ("unlabelled", [parts(one[0], two[i]).unlabelled for i in range(2)]),
    ):
        assert float(getattr(together, name)) == pytest.approx(float(np.mean(apart)), rel=1e-10)
    assert float(parts(one[0], np.zeros(4)).unlabelled) == 0.0
    assert float(parts(np.zeros(5), two[0]).labelled) == 0.0

    rng = np.random.default_rng(1)
    draws = PolicyNoise(rng.normal(size=(5, 2)), rng.normal(size=(4, 2)), rng.random(4))
    errors = [
        float(
            policy_losses(
                policy, model, labelled._replace(there=a), unlabelled._replace(there=b), draws
            )
        )
        for a, b in ((one[0], 0 * two[0]), (0 * one[0], two[1]), (one[0], two[1]))
    ]
    assert errors[2] == pytest.approx((errors[0] + errors[1]) / 2, rel=1e-10)


def test_pretraining_leaves_everything_of_outcomes_alone():
    model, _ = some_model(latent=2)
    people = some_people(7)
    noise = np.random.default_rng(0).normal(size=(7, 2))

    def loss(weights, u):
        rows = people._replace(u=u, weight=u)
        return vae.pretraining_loss(weights, rows, noise, PLAN)[0]

    evaluate = quickly(jax.value_and_grad(loss))
    value, slopes = evaluate(model, people.u)
    assert float(value) == float(evaluate(model, np.full(7, np.nan))[0])
    first = np.asarray(slopes["encoder"][0][0])
    row = LAYOUT.width  # of the outcome, between features and group
    assert not first[row].any()
    assert np.any(first[:row], axis=1).all()
    assert not np.asarray(slopes["decoder"][-1][0])[:, -1].any()
    assert not any(np.any(leaf) for leaf in jax.tree.leaves(slopes["classifier"]))


def test_the_policy_learns_what_the_decoder_says_of_everybody():
    model, policy = some_model(latent=2, seed=6)
    labelled, unlabelled = some_people(9, 3), some_people(8, 4)
    rng = np.random.default_rng(1)
    noise = PolicyNoise(rng.normal(size=(9, 2)), rng.normal(size=(8, 2)), rng.random(8))
    errors, targets = [], []
    for rows, normal in ((labelled, noise.labelled), (unlabelled, noise.unlabelled)):
        for i in range(len(rows.x)):
            x, s, u = rows.x[i], rows.s[i], rows.u[i]
            if rows is unlabelled:
                good = expit(forward(model["classifier"], np.concatenate([seen(x), s]))[0])
                u = float(noise.uniform[i] < good)
            out = forward(model["encoder"], np.concatenate([seen(x), [u], s]))
            z = out[:2] + np.log1p(np.exp(out[2:])) * normal[i]
            target = expit(forward(model["decoder"], np.concatenate([z, s]))[-1]) >= COST
            f = forward(policy, z)[0]
            errors.append((1 - COST) * np.logaddexp(0, -f) if target else COST * np.logaddexp(0, f))
            targets.append(target)
    assert 0 < sum(targets) < len(targets)
    ours = policy_losses(policy, model, labelled, unlabelled, noise)
    assert float(ours) == pytest.approx(np.mean(errors), rel=1e-10)


def test_the_chance_of_acceptance_is_that_of_the_published_draws():
    """Outcome from the classifier, z from the encoder, then a coin with σ(f(z))."""
    model, policy = some_model(latent=2, seed=3)
    people = some_people(5, seed=3)
    point, weight = np.polynomial.hermite_e.hermegauss(61)
    fine = (
        np.array(list(itertools.product(point, point))),
        np.outer(weight, weight).ravel() / weight.sum() ** 2,
    )
    chances = quickly(acceptance, static_argnames="layout")
    ours, used = (
        np.asarray(chances(model, policy, people.x, people.s, rule, LAYOUT))
        for rule in (fine, nodes(2))
    )
    np.testing.assert_allclose(used, ours, atol=0.005)
    draws, rng = 40_000, np.random.default_rng(0)
    wrong = []
    for i in range(5):
        x, s = people.x[i], people.s[i]
        good = expit(forward(model["classifier"], np.concatenate([seen(x), s]))[0])
        u = (rng.random(draws) < good).astype(float)
        rows = np.column_stack([np.tile(seen(x), (draws, 1)), u, np.tile(s, (draws, 1))])
        out = forward(model["encoder"], rows)
        z = out[:, :2] + np.log1p(np.exp(out[:, 2:])) * rng.normal(size=(draws, 2))
        taken = rng.random(draws) < expit(forward(policy, z)[:, 0])
        assert stats.binomtest(int(taken.sum()), draws, ours[i]).pvalue > 1e-4
        for_sure_good = forward(model["encoder"], np.concatenate([seen(x), [1.0], s]))[:2]
        broken = expit(forward(policy, for_sure_good)[0])
        wrong.append(stats.binomtest(int(taken.sum()), draws, broken).pvalue)
    assert min(wrong) < 1e-6


@pytest.mark.parametrize("latent", [1, 2, 3, 4])
def test_the_rule_has_the_moments_of_a_normal(latent):
    points, weights = nodes(latent)
    assert points.shape == (len(weights), latent)
    assert np.all(weights > 0)
    np.testing.assert_allclose(weights.sum(), 1.0)
    np.testing.assert_allclose(weights @ points, 0.0, atol=1e-12)
    np.testing.assert_allclose((points * weights[:, None]).T @ points, np.eye(latent), atol=1e-12)


def test_networks_start_as_xavier_says():
    network = initialise(np.random.default_rng(0), [30, 500, 20])
    for (weights, bias), limit in zip(network, (6 / 530, 6 / 520), strict=True):
        assert np.all(bias == 0.01)
        assert 0.99 * limit**0.5 < np.abs(weights).max() <= limit**0.5
        assert weights.var() == pytest.approx(limit / 3, rel=0.05)
    rows = np.random.default_rng(1).normal(size=(4, 30))
    np.testing.assert_allclose(apply(network, rows), forward(network, rows), rtol=1e-12)
