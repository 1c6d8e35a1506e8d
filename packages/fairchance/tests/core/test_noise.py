"""Wrong outcomes at stated rates: identities by enumeration, and what stating them does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairchance import FdrBudget, OutcomeNoise, PartialFeedbackClassifier, Revenue, Utility
from fairchance.errors import InputError
from fairchance.methods.certified.evidence import values
from fairchance.simulate.populations import draw_applicants
from methods.certified.known_truth import ALPHA, DELTA, QUICK, UTILITY, Flat, Slope, start, too_many

rates = st.floats(0, 0.45)


@given(rates, rates, st.floats(0, 1))
def test_true_and_recorded_shares_of_bad(bad_as_good, good_as_bad, fdr):
    noise = OutcomeNoise(bad_as_good, good_as_bad)
    recorded = fdr * (1 - bad_as_good) + (1 - fdr) * good_as_bad
    assert noise.recorded_fdr(fdr) == pytest.approx(recorded, abs=1e-12)
    assert noise.true_fdr(recorded) == pytest.approx(fdr, abs=1e-9)
    # Chance may record more or less than any share of bad explains.
    assert noise.true_fdr(good_as_bad - 0.01) == 0
    assert noise.true_fdr(1 - bad_as_good + 0.01) == 1


@given(rates, rates, st.lists(st.floats(-500, 500), min_size=4, max_size=4))
def test_utility_of_recorded_outcomes_has_the_true_mean(bad_as_good, good_as_bad, gamma):
    noise, utility = OutcomeNoise(bad_as_good, good_as_bad), Utility(*gamma)
    table = np.array(noise.recorded_utility(utility).gamma).reshape(2, 2)  # decision, recorded
    truth = np.array(gamma).reshape(2, 2)
    chance = np.array([[1 - bad_as_good, bad_as_good], [good_as_bad, 1 - good_as_bad]])
    assert table @ chance.T == pytest.approx(truth, abs=1e-6)
    badness = noise.badness([True, False])
    assert chance @ badness == pytest.approx([1, 0], abs=1e-12)
    assert badness.max() == pytest.approx(noise.most_bad)


@pytest.mark.parametrize("cap", [4, 8])
@given(rates, rates, st.floats(0.01, 1), st.floats(0.01, 1), st.floats(0, 1), st.floats(0.05, 0.4))
def test_evidence_of_noisy_outcomes_has_the_true_mean(cap, e1, e0, pi, p, f, alpha):
    """E[Z | x] = π(α − f) − rem(1 − f), enumerated over coin, outcome and what is recorded."""
    noise = OutcomeNoise(e1, e0)
    mean = 0.0
    for accepted, coin in ((True, p), (False, 1 - p)):
        for bad, chance in ((True, f), (False, 1 - f)):
            wrong = e1 if bad else e0
            for recorded, how in ((bad, 1 - wrong), (not bad, wrong)):
                z = values(
                    np.array([[pi]]),
                    np.array([p]),
                    np.array([accepted]),
                    noise.badness([recorded]),
                    alpha,
                    cap,
                )
                mean += coin * chance * how * z[0, 0]
                assert z[0, 0] >= -(noise.most_bad - alpha) * max(1.0, min(pi / p, cap) + pi) - 1e-9
    rem = max(0.0, pi - cap * p)
    assert mean == pytest.approx(pi * (alpha - f) - rem * (1 - f), abs=1e-9)


def recorded(outcome, noise, rng):
    """Return outcomes as they are written down."""
    wrong = np.where(outcome == 1, noise.good_as_bad, noise.bad_as_good)
    return np.where(rng.random(outcome.size) < wrong, 1 - outcome, outcome)


FORGIVING = OutcomeNoise(bad_as_good=0.3)  # three bad outcomes in ten are never found out


def played(classifier, population, rng, noise, rounds=20, n=600):
    """Run a classifier on recorded outcomes and yield whether each round is certified."""
    for _ in range(rounds):
        batch = draw_applicants(population, n, rng)
        decided = classifier.decide(batch.people.X)
        told = recorded(batch.outcome[decided.accepted], noise, rng)
        classifier.observe(decided.ids[decided.accepted], told)
        yield decided.certified


def test_a_certified_round_is_monitored_by_recorded_outcomes(rng):
    """Among people of whom α are bad, more are recorded so."""
    noise = OutcomeNoise(0.02, 0.08)
    classifier = start(Flat(0.03), rng, n_history=3000, noise=noise, horizon=12)
    for _ in range(12):
        people = draw_applicants(Flat(0.03), 500, rng)
        decided = classifier.decide(people.people.X)
        classifier.observe(decided.ids[decided.accepted], people.outcome[decided.accepted])
        if decided.certified:
            break
    assert decided.certified
    (engine,) = classifier._engines
    assert engine.stage.monitor.alpha == pytest.approx(ALPHA * 0.98 + (1 - ALPHA) * 0.08)


def true_fdr(classifier, population):
    """Return the true FDR of the last round's policy."""
    everybody = population.whole_population()
    p = classifier.acceptance_probability(everybody.X)
    return float(p @ (1 - population.probability_good(everybody)) / p.sum())


def test_stated_noise_keeps_the_estimate_under_the_bound():
    """And a control: the same noise, not stated, breaks it."""
    late = {}
    for stated in (FORGIVING, None):
        for seed in range(2):
            rng = np.random.default_rng(seed)
            past = draw_applicants(Slope(1.0, 1.5), 800, rng)
            classifier = PartialFeedbackClassifier(
                Revenue(200, 200), FdrBudget(ALPHA), noise=stated, random_state=0
            )
            accepted = rng.random(800) < np.where(past.outcome == 1, 0.9, 0.1)
            told = recorded(past.outcome, FORGIVING, rng)
            classifier.fit(past.people.X, told, accepted=accepted)
            rounds = enumerate(played(classifier, Slope(1.0, 1.5), rng, FORGIVING))
            fdrs = [true_fdr(classifier, Slope(1.0, 1.5)) for t, _ in rounds if t >= 10]
            late.setdefault(stated, []).append(fdrs)
            assert classifier.rounds_[-1].estimated_fdr <= ALPHA
    assert np.mean(late[FORGIVING]) <= ALPHA
    assert np.mean(late[None]) > ALPHA + 0.02


@pytest.mark.filterwarnings("ignore:The history ranks")  # no ranking is right here
def test_certificates_from_noisy_outcomes():
    """Flat at an FDR just above α: recorded it looks good, and only stated noise says it is not."""
    population, runs = Flat(0.1505), 12
    certified = {FORGIVING: 0, None: 0}
    for stated in certified:
        for seed in range(runs):
            rng = np.random.default_rng(seed)
            classifier = start(population, rng, noise=stated, horizon=20, learner=QUICK)
            certified[stated] += any(played(classifier, population, rng, FORGIVING))
    assert not too_many(certified[FORGIVING], runs, DELTA)
    assert certified[None] >= 10


def test_certificates_come_in_spite_of_noise():
    noise = OutcomeNoise(0.05, 0.05)
    rng = np.random.default_rng(3)
    classifier = start(Slope(2.0, 2.0), rng, noise=noise, utility=UTILITY, horizon=20)
    for sure in played(classifier, Slope(2.0, 2.0), rng, noise):
        assert not sure or true_fdr(classifier, Slope(2.0, 2.0)) <= ALPHA
    assert sure


@pytest.mark.parametrize("wrong", [(-0.1, 0.0), (0.6, 0.4), (np.nan, 0.1)])
def test_rates_that_cannot_be(wrong):
    with pytest.raises(InputError, match="got"):
        OutcomeNoise(*wrong)


def test_noise_is_an_object(rng):
    with pytest.raises(InputError, match=r"noise.*got 0\.05"):
        start(Slope(), rng, noise=0.05)
    with pytest.raises(InputError, match=r"noise.*got 0\.05"):
        PartialFeedbackClassifier(noise=0.05).fit(rng.normal(size=(9, 1)), np.arange(9) % 2)
