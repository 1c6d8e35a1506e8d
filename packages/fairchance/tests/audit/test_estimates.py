"""Estimates, against loops, other software and a population whose truth is known."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from estimators.bandits import ips, snips
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from audit.cells import (
    BAD,
    FALSE_ALARM,
    MASS,
    POLICY,
    TAKES,
    UTILITY,
    adaptive,
    play,
    rngs,
    selective,
    truth,
)
from fairchance import Revenue, Utility
from fairchance.audit import DecisionLog, evaluate
from fairchance.audit.estimates import (
    ESTIMATORS,
    estimators,
    fit_bad,
    named,
    row_sums,
    standard_error,
)

SEEDS = st.integers(0, 2**32 - 1)
ALARM = norm.isf(FALSE_ALARM / 2)  # in standard errors


def random_log(rng, n=60, take_up=1.0, **options):
    p = rng.uniform(0.05, 1.0, n)
    accepted, takes = rng.random(n) < p, rng.random(n) < take_up
    outcome = np.where(accepted & takes, rng.random(n) < 0.6, np.nan)
    return DecisionLog(accepted, p, outcome, not_taken=accepted & ~takes, **options)


@given(SEEDS)
def test_estimates_are_their_formulas(seed):
    """Each by a loop over applicants, as the table in the module says."""
    rng = np.random.default_rng(seed)
    log = random_log(rng, take_up=rng.choice([0.7, 1.0]))
    utility = Utility(*rng.normal(size=4))
    pi, model = rng.random(len(log)), rng.random(len(log))
    bad = 1 - np.nan_to_num(log.outcome)
    terms, allowed = row_sums(log, pi, bad, model)
    assert allowed == ESTIMATORS
    n = len(log)
    expected = {}
    for name in ("ips", "self_normalised"):
        mass = mass_bad = left = 0.0
        for i in range(n):
            if log.accepted[i] and log.not_taken[i]:
                left += pi[i] / log.propensity[i]
            elif log.accepted[i]:
                mass += pi[i] / log.propensity[i]
                mass_bad += pi[i] / log.propensity[i] * (log.outcome[i] == 0)
        earned = utility.gain_good * (mass - mass_bad) + utility.gain_bad * mass_bad
        loans = pi.sum() - left
        expected[name] = (mass_bad / loans, earned / n)
        if name == "self_normalised":
            expected[name] = (mass_bad / mass, pi.mean() * earned / (mass + left))
    mass_bad = 0.0
    for i in range(n):
        mass_bad += pi[i] * model[i]
        if log.accepted[i]:
            mass_bad += pi[i] / log.propensity[i] * ((log.outcome[i] == 0) - model[i])
    earned = utility.gain_good * (loans - mass_bad) + utility.gain_bad * mass_bad
    expected["doubly_robust"] = (mass_bad / loans, earned / n)
    found, sums = estimators(utility), named(terms.sum(axis=0))
    for name, (rate, earned) in expected.items():
        assert found["false_discovery_rate", name](sums) == pytest.approx(rate)
        assert found["profit", name](sums) == pytest.approx(earned)


def runs_of(
    seed, runs, sizes, logging, model=None, *, ignore=False, with_errors=True, takes=(1, 1)
):
    """Return values and standard errors of every estimate in many runs, by measure and name.

    ``ignore`` replaces probabilities by the share of applicants that were accepted.
    """
    values, errors = defaultdict(list), defaultdict(list)
    functions = estimators(UTILITY)
    for rng in rngs(seed, runs):
        logged = play(rng, sizes, logging, takes=takes)
        log = logged.log
        if ignore:
            log.propensity = np.full(len(log), log.accepted.mean())
        f = None if model is None else model(logged, rng)
        terms, allowed = row_sums(log, POLICY[logged.cell], logged.bad, f)
        sums = named(terms.sum(axis=0))
        for (measure, name), estimate in functions.items():
            if name in allowed:
                values[measure, name].append(float(estimate(sums)))
                if with_errors:
                    errors[measure, name].append(standard_error(estimate, terms))
        # The numerator of the false discovery rate, per applicant.
        values["mistakes", "ips"].append(sums["awb"] / sums["n"])
        values["mistakes", "doubly_robust"].append(sums["dr"] / sums["n"])
        values["loans", "ips"].append((sums["pi"] - sums["aw"] + sums["awt"]) / sums["n"])
    return {k: np.array(v) for k, v in values.items()}, {k: np.array(v) for k, v in errors.items()}


def bias(values, key, takes=(1, 1)):
    """Return the bias of an estimate over runs, and its standard error."""
    right = truth(takes=takes)
    right["loans"] = (MASS * POLICY) @ (takes[0] * (1 - BAD) + takes[1] * BAD)
    right["mistakes"] = right["false_discovery_rate"] * right["loans"]
    return values[key].mean() - right[key[0]], values[key].std(ddof=1) / np.sqrt(values[key].size)


def wrong_model(logged, _rng):
    """Return a model of P(bad) that is far off."""
    return np.array([0.9, 0.5, 0.2, 0.1])[logged.cell]


def crossfitted(logged, rng):
    """Return the model that ``evaluate`` uses, with the cell as the only feature."""
    log = logged.log
    log.score = logged.cell.astype(float)
    return fit_bad(log, np.ones(len(log), bool), rng)


UNBIASED = [(what, by) for what in ("mistakes", "profit") for by in ("ips", "doubly_robust")]


@pytest.mark.parametrize(
    ("logging", "model", "takes"),
    [
        (selective, wrong_model, (1, 1)),
        (selective, crossfitted, TAKES),
        (adaptive, wrong_model, TAKES),
        (adaptive, crossfitted, (1, 1)),
    ],
)
def test_inverse_propensity_and_doubly_robust_estimates_have_no_bias(logging, model, takes):
    size = 25 if takes == (1, 1) else 100  # a noisy denominator needs more for its standard error
    values, errors = runs_of(1, 800, [size] * 4, logging, model, takes=takes)
    for key in [*UNBIASED, ("loans", "ips")] if takes == TAKES else UNBIASED:
        off, error = bias(values, key, takes)
        assert abs(off) < ALARM * error, key
    for key, error in errors.items():
        spread = values[key].std()
        assert np.sqrt((error**2).mean()) == pytest.approx(spread, rel=0.13), key


def test_estimates_that_ignore_propensities_are_found_to_be_biased():
    """The control of the test above, with a quarter of its runs."""
    values, _ = runs_of(1, 200, [25] * 4, selective, crossfitted, ignore=True)
    for key in UNBIASED:
        off, error = bias(values, key)
        assert abs(off) > 2 * ALARM * error, key


@pytest.mark.long
@pytest.mark.parametrize("logging", [selective, adaptive])
def test_doubly_robust_estimates_with_fitted_trees_have_no_bias(logging):
    values, errors = runs_of(2, 800, [150] * 4, logging, crossfitted)
    for key in UNBIASED:
        off, error = bias(values, key)
        assert abs(off) < ALARM * error, key
    for key in errors:
        assert np.sqrt((errors[key] ** 2).mean()) == pytest.approx(values[key].std(), rel=0.13), key
    # That is what the model is for; it is too rough to help with profit here.
    rates = [values["false_discovery_rate", by].std() for by in ("doubly_robust", "ips")]
    assert rates[0] < 0.95 * rates[1]


def test_the_bias_of_the_self_normalised_estimate_shrinks_with_the_log():
    """It divides by a sum that is random."""
    few, _ = runs_of(3, 4000, [4] * 4, selective, with_errors=False)
    many, _ = runs_of(4, 1000, [64] * 4, selective, with_errors=False)
    for what in ("false_discovery_rate", "profit"):
        off, error = bias(few, (what, "self_normalised"))
        later, later_error = bias(many, (what, "self_normalised"))
        assert abs(off) > ALARM * error  # with 16 applicants there is a bias
        assert abs(later) < abs(off) / 4 + ALARM * later_error  # with 256 it is a small part


@pytest.mark.parametrize("enough", [False, True])
def test_the_model_of_an_applicant_has_not_seen_the_applicants_outcome(enough):
    """Whether it is a constant or trees, another outcome changes other folds only."""
    n = 900 if enough else 90
    rng = np.random.default_rng(0)
    X = rng.random((n, 2))
    good = rng.random(n) < X[:, 0]
    log = DecisionLog(np.ones(n, bool), np.full(n, 1.0), good, X=X)
    before = fit_bad(log, np.ones(n, bool), np.random.default_rng(1))
    changed = good.copy()
    changed[7] = not good[7]
    other = DecisionLog(np.ones(n, bool), np.full(n, 1.0), changed, X=X)
    after = fit_bad(other, np.ones(n, bool), np.random.default_rng(1))
    fold = np.random.default_rng(1).integers(3, size=n)
    assert np.array_equal(before[fold == fold[7]], after[fold == fold[7]])
    assert not np.array_equal(before[fold != fold[7]], after[fold != fold[7]])
    assert (np.unique(before).size > 3) == enough  # a constant for each fold, or trees


# Another implementation.


@given(SEEDS)
def test_numbers_are_those_of_vw_estimators(seed):
    """Vowpal Wabbit's: profit by inverse propensity over all decisions, FDR over the accepted."""
    rng = np.random.default_rng(seed)
    log, utility, pi = random_log(rng), Revenue(*rng.uniform(0.1, 9, 2)), rng.random(60)
    all_decisions, accepted_only = ips.Estimator(), snips.Estimator()
    for a, p, y, target in zip(log.accepted, log.propensity, log.outcome, pi, strict=True):
        if a:
            all_decisions.add_example(p, utility.gain_good if y else utility.gain_bad, target)
            accepted_only.add_example(p, float(y == 0), target)
        else:  # rejecting earns nothing
            all_decisions.add_example(1 - p, 0.0, 1 - target)
    result = evaluate(log, pi, utility=utility)
    rates = result.of("false_discovery_rate").estimates
    assert result.of("profit").estimates["ips"].value == pytest.approx(all_decisions.get())
    assert rates["self_normalised"].value == pytest.approx(accepted_only.get())
