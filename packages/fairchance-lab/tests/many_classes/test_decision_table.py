"""Decision tables: classes that are recorded wrongly."""

from __future__ import annotations

import numpy as np
import pytest

from claims import CLASSES, GOOD, UTILITY, claims, claims_classifier
from fairchance import FdrBudget, OutcomeNoise, Revenue
from fairchance.errors import InputError
from fairchance.methods.storage import dumps, loads
from fairchance_lab.many_classes.decision_table import (
    correct_for_noise,
    read_noise,
    read_table,
)
from fairchance_lab.many_classes.operating_point import best_rule

NOISE = {
    "fraud": {"fraud": 0.7, "honest": 0.3},
    "sloppy": {"sloppy": 0.9, "honest": 0.1},
    "honest": {"honest": 0.95, "sloppy": 0.05},
}
ORDER = tuple(CLASSES.tolist())
T = np.array([[NOISE[label].get(other, 0.0) for other in ORDER] for label in ORDER])


def table(noise=None):
    return read_table(UTILITY, GOOD, tuple(GOOD), None, ORDER, noise)


def test_noise_of_two_classes_agrees_with_outcome_noise():
    noise, utility = OutcomeNoise(bad_as_good=0.2, good_as_bad=0.05), Revenue(2, 7)
    both = ((0.8, 0.2), (0.05, 0.95))
    corrected = correct_for_noise(np.reshape(utility.gamma, (2, 2)), both)
    assert corrected.ravel() == pytest.approx(noise.recorded_utility(utility).gamma)
    badness = correct_for_noise(np.array([[1.0, 0.0]]), both)[0]
    assert badness == pytest.approx(noise.badness([1, 0]))


@pytest.mark.parametrize("max_fdr", [0.02, 0.08, 0.2])
def test_best_rule_on_recorded_classes_is_the_best_on_true_classes(max_fdr):
    """Each row appears once for each recorded class, weighted by the probability of the record."""
    rng = np.random.default_rng(2)
    p = rng.dirichlet([0.4, 0.8, 0.5], 300)
    outcome = (p.cumsum(axis=1) > rng.random((300, 1))).argmax(axis=1)
    weight = rng.uniform(0.5, 2, 300)
    recorded_weight = (weight[:, None] * T[outcome]).ravel()
    rows = np.repeat(p @ T, 3, axis=0), np.tile(np.arange(3), 300), recorded_weight
    on_true = best_rule(table(), p, outcome, weight, max_fdr=max_fdr)
    corrected = best_rule(table(NOISE), *rows, max_fdr=max_fdr)
    uncorrected = best_rule(table(), *rows, max_fdr=max_fdr)

    def decide(rule, p, table):
        best = table.evaluate(p, rule.multiplier)
        return np.where(best.score >= rule.threshold, best.accepting, best.rejecting)

    for name in ("multiplier", "utility", "fdr", "selection_rate"):
        expected = pytest.approx(getattr(on_true, name), rel=1e-6, abs=1e-6)
        assert getattr(corrected, name) == expected, name
    decided = decide(corrected, p @ T, table(NOISE))
    assert np.array_equal(decided, decide(on_true, p, table()))
    assert not np.array_equal(decided, decide(uncorrected, p @ T, table()))  # the control


def graded_claims(n, rng):
    """Return features and classes that follow the first feature, from fraud to honest."""
    X = rng.normal(size=(n, 2))
    grade = np.digitize(X[:, 0] + 0.5 * rng.normal(size=n), [-1, 0])
    return X, np.array(["fraud", "sloppy", "honest"])[grade]


@pytest.mark.long
def test_learning_from_recorded_classes_accepts_as_learning_from_true_classes():
    """In the mean of eight runs, whose scatter is about 2 %."""

    def n_exploited(noise, outcomes):
        classifier = claims_classifier(
            utility=UTILITY | {"refuse": {"honest": -5, "sloppy": 0, "fraud": 0}},
            strategy=None,
            noise=noise,
            first_round="learned",
            budget=FdrBudget(alpha=0.3),
        )
        classifier.fit(X[:20_000], outcomes[:20_000]).decide(X[20_000:])
        return classifier.rounds_[0].n_exploited

    found = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, outcome = graded_claims(25_000, rng)
        chances = T[np.searchsorted(ORDER, outcome)].cumsum(axis=1)
        recorded = CLASSES[(chances > rng.random((outcome.size, 1))).argmax(axis=1)]
        given = ((None, outcome), (NOISE, recorded), (None, recorded))
        found.append([n_exploited(*noise_and_outcomes) for noise_and_outcomes in given])
    on_true, corrected, uncorrected = np.mean(found, axis=0)
    assert abs(corrected - on_true) < 0.02 * on_true
    assert uncorrected - on_true > 0.05 * on_true  # the control


@pytest.mark.parametrize(
    ("fraud", "values"),
    [
        ({"fraud": 0.5}, "0.5"),
        ({"bad": 1}, "'bad'"),
        ({"honest": 1}, "merge"),  # cannot be distinguished from honest
    ],
)
def test_noise_that_is_not_a_transition_matrix_is_refused(fraud, values):
    noise = {"sloppy": {"sloppy": 1}, "honest": {"honest": 1}, "fraud": fraud}
    with pytest.raises(InputError, match=values):
        read_noise(noise, ORDER)


@pytest.mark.parametrize("noise", [{"fraud": {"fraud": 1}}, np.eye(2), 0.1])
def test_noise_of_the_wrong_shape_is_refused(noise):
    with pytest.raises(InputError, match=r"noise .*'fraud', 'honest', 'sloppy'"):
        read_noise(noise, ORDER)


def test_noise_must_not_change_and_a_matrix_means_the_same_as_a_dict():
    rng = np.random.default_rng(0)
    X, outcome, _ = claims(300, rng)
    options = {"strategy": None, "classes": ORDER}
    by_dict = claims_classifier(noise=NOISE, **options).fit(X, outcome, accepted=X[:, 1] > 0)
    by_matrix = claims_classifier(noise=T, **options).fit(X, outcome, accepted=X[:, 1] > 0)
    batch, _, _ = claims(50, rng)
    by_dict.set_params(noise=None)
    with pytest.raises(InputError, match="noise"):
        by_dict.decide(batch)
    loaded = loads(dumps(by_dict.set_params(noise=NOISE)))
    assert np.array_equal(by_matrix.decide(batch).score, loaded.decide(batch).score)
