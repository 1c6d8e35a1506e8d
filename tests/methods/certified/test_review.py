"""What a review found: each of these once went wrong in silence."""

from __future__ import annotations

import numpy as np
import pytest

from methods.certified.known_truth import Flat, Slope, start
from secondlook import (
    CertifiedClassifier,
    EqualGroups,
    FiniteClassifier,
    Limited,
    OutcomeNoise,
    Uniform,
)
from secondlook.errors import InputError
from secondlook.lab.simulate.populations import draw_applicants


@pytest.mark.parametrize("how", ["late", "withdrawn"])
def test_with_noise_the_missing_count_as_much_as_a_recorded_bad_one(how):
    """Flat at an FDR of .18; everybody recorded as bad goes missing. Nothing may be certified."""
    noise = OutcomeNoise(bad_as_good=0.3)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        classifier = start(Flat(0.18), rng, noise=noise, patience=1, monitor=0.0, horizon=20)
        for _ in range(20):
            batch = draw_applicants(Flat(0.18), 600, rng)
            decided = classifier.decide(batch.people.X)
            assert not decided.certified
            ids, outcome = decided.ids[decided.accepted], batch.outcome[decided.accepted]
            recorded = (outcome == 1) | (rng.random(ids.size) < noise.bad_as_good)
            classifier.observe(ids[recorded], np.ones(recorded.sum(), int))
            if how == "withdrawn":
                classifier.withdraw(ids[~recorded])


def test_bad_outcomes_that_come_late_do_not_drive_the_pilot_outwards():
    """Estimates rest on rounds that are in the tests, as the tests do."""
    rng = np.random.default_rng(0)
    population = Slope(-0.5, 1.0)
    classifier = start(population, rng, maturity=4, patience=5, horizon=20)
    waiting = []
    for t in range(14):
        batch = draw_applicants(population, 600, rng)
        decided = classifier.decide(batch.people.X)
        ids, outcome = decided.ids[decided.accepted], batch.outcome[decided.accepted]
        classifier.observe(ids[outcome == 1], outcome[outcome == 1])
        waiting.append((ids[outcome == 0], outcome[outcome == 0]))
        if t >= 4:
            classifier.observe(*waiting[t - 4])
        assert classifier.rounds_[-1].share <= 0.105


def test_estimates_stand_for_everybody_when_batches_differ_in_size():
    errors = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        classifier = start(Slope(), rng, horizon=20)
        everybody = Slope().everybody()
        bad = 1 - Slope().probability_good(everybody)
        for n in [4000] * 4 + [250] * 12:
            batch = draw_applicants(Slope(), n, rng)
            decided = classifier.decide(batch.people.X)
            ids = decided.ids[decided.accepted]
            classifier.observe(ids, batch.outcome[decided.accepted])
        p = classifier.acceptance_probability(everybody.X)
        errors.append(classifier.rounds_[-1].estimated_fdr - p @ bad / p.sum())
    assert abs(np.mean(errors)) < 0.02


def test_options_that_the_promise_rests_on_are_fixed(rng):
    classifier = start(Slope(), rng)
    X = draw_applicants(Slope(), 100, rng).people.X
    classifier.decide(X)
    for name, value in (("alpha", 0.02), ("delta", 0.01), ("floor", 0.05), ("horizon", 5)):
        before = getattr(classifier, name)
        classifier.set_params(**{name: value})
        with pytest.raises(InputError, match=f"{name} was .* when the history was fitted"):
            classifier.decide(X)
        classifier.set_params(**{name: before})
    assert classifier.decide(X).round == 2


def test_a_round_that_fails_moves_no_pilot(rng):
    broken = []

    def moody(X, score, group):
        return np.zeros(score.size) if broken else np.ones(score.size)

    classifier = start(Slope(3.0), rng, strategy=moody, floor=0.01)
    batch = draw_applicants(Slope(3.0), 600, rng)
    decided = classifier.decide(batch.people.X)
    classifier.observe(decided.ids[decided.accepted], batch.outcome[decided.accepted])
    before = classifier._engines[0].stage.pilot.share
    broken.append(True)
    for _ in range(3):
        with pytest.raises(InputError, match="positive finite number for every candidate"):
            classifier.decide(batch.people.X)
    assert classifier._engines[0].stage.pilot.share == before
    broken.clear()
    assert classifier.decide(batch.people.X).round == 2


def test_a_strategy_that_compares_people_of_a_batch_is_refused(rng):
    def by_rank(X, score, group):
        return 1.0 + np.argsort(np.argsort(score))

    classifier = start(Slope(), rng, strategy=by_rank, floor=0.01)
    with pytest.raises(InputError, match="does not depend on the other applicants"):
        classifier.decide(draw_applicants(Slope(), 50, rng).people.X)


def test_refused_in_a_sentence(rng):
    X, y = rng.normal(size=(60, 1)), np.arange(60) % 2
    some = np.arange(60) % 3 > 0
    with pytest.raises(InputError, match="maturity counts rounds and must be 0 or more, got None"):
        CertifiedClassifier(maturity=None).fit(X, y, accepted=some)
    with pytest.raises(InputError, match="a strategy between groups changes nothing"):
        CertifiedClassifier(certify="per_group", floor=0.01, strategy=EqualGroups()).fit(
            X, y, accepted=some, sensitive_features=np.arange(60) % 2
        )
    with pytest.raises(InputError, match=r"max_risk=0\.3"):
        CertifiedClassifier(strategy=Limited(Uniform(), max_risk=0.3)).fit(
            X, None, accepted=np.zeros(60)
        )
    with pytest.raises(InputError, match="limits on exploration are not kept on cells"):
        FiniteClassifier(strategy=Limited(Uniform(), exposure=5, amount=1)).fit(y, y)
