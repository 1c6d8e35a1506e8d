"""Many classes: what every round keeps, counts and says."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from claims import CLASSES, GOOD, UTILITY, claims, claims_classifier, go, started
from secondlook import (
    ExploitOnly,
    FdrBudget,
    MeanPastScore,
    SummedAcceptance,
    Uniform,
)
from secondlook.errors import LearningWarning
from secondlook.methods.many_classes import ManyClassClassifier


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"strategy": Uniform(), "weights": "none"},
        {"coverage": MeanPastScore(0.4)},
        {"learner": LogisticRegression(), "first_round": "learned"},
        {"group_as_feature": True, "strategy": lambda X, score, group: 1 + score + group},
        {"good": ("honest", "sloppy"), "budget": FdrBudget(0.3, exploit=0.2)},
    ],
)
def test_every_round(options):
    classifier, rng = started(**options)
    budget, allowed, explored = classifier._budget, 0.0, 0
    for decided, _ in go(classifier, rng):
        record = classifier.rounds_[decided.round - 1]
        inside = decided.exploit
        assert np.array_equal(decided.accepted, np.isin(decided.decision, ["pay", "part"]))
        assert np.array_equal(decided.propensity[inside], decided.accepted[inside].astype(float))
        assert decided.propensity[~inside].sum() == pytest.approx(record.n_explored)
        if record.n_explored:
            assert np.all(decided.propensity[~inside] > 0)  # everybody has a chance
        own = budget.explore_share(decided.round) * record.n_exploited
        allowed, explored = allowed + own, explored + record.n_explored
        assert explored <= allowed + 1e-9
        assert record.n_explored <= own + 1
    assert explored > 0
    assert classifier.rounds_[-1].n_outcomes > 0


def test_rounds_count_class_by_class():
    """The record against counting people one by one, with some outcomes still to come."""
    classifier, rng = started()
    tally = []
    for _ in range(3):
        X, outcome, group = claims(200, rng)
        decided = classifier.decide(X, sensitive_features=group)
        known = decided.accepted & (rng.random(200) < 0.7)
        classifier.observe(decided.ids[known], outcome[known])
        tally.append((decided.decision, outcome, known))
    for record, (decision, outcome, known) in zip(classifier.rounds_, tally, strict=True):
        for name in UTILITY:
            assert record.decided[name] == sum(decision == name)
        assert set(record.error_share) == set(GOOD)
        for name, good in GOOD.items():
            outcomes = [
                y for y, d, k in zip(outcome, decision, known, strict=True) if k and d == name
            ]
            wrong = [y for y in outcomes if y not in good]
            if outcomes:
                assert record.error_share[name] == pytest.approx(len(wrong) / len(outcomes))
            else:
                assert np.isnan(record.error_share[name])
        for one in CLASSES.tolist():
            given = [d for y, d, k in zip(outcome, decision, known, strict=True) if k and y == one]
            assert record.seen[one] == len(given)
            right = [d for d in given if one in GOOD[d]]
            if given:
                assert record.recall[one] == pytest.approx(len(right) / len(given))
            else:
                assert np.isnan(record.recall[one])
    assert sum(record.seen["sloppy"] for record in classifier.rounds_) > 0
    # A correction moves one outcome from its class to another.
    decision, outcome, known = tally[0]
    person = int(np.flatnonzero(known & (outcome == "honest"))[0])
    before = classifier.rounds_[0].seen
    classifier.correct([800 + person], ["fraud"])
    after = classifier.rounds_[0].seen
    assert after["honest"] == before["honest"] - 1
    assert after["fraud"] == before["fraud"] + 1
    (told,) = classifier.corrections_
    assert (told.id, told.before, told.after) == (800 + person, "honest", "fraud")


def test_round_one_follows_the_past():
    rng = np.random.default_rng(0)
    X, outcome, _ = claims(500, rng)
    classifier = claims_classifier(strategy=None).fit(
        X,
        outcome,
        accepted=X[:, 0] > 0,
        past_policy=lambda X: np.where(X[:, 0] > 0, 0.9, 0.1),
    )
    decided = classifier.decide(X)
    assert np.array_equal(decided.exploit, X[:, 0] > 0)
    assert np.array_equal(decided.accepted & decided.exploit, X[:, 0] > 0)
    assert classifier.rounds_[0].note == "Follows the past policy."
    assert np.array_equal(classifier.accepts(X), X[:, 0] > 0)
    assert np.array_equal(np.isin(classifier.best_decision(X), ["pay", "part"]), X[:, 0] > 0)


def test_nobody_worth_accepting_is_said_aloud():
    rng = np.random.default_rng(0)
    X, outcome, _ = claims(500, rng)
    classifier = claims_classifier(
        strategy=None, good=("fraud",), budget=FdrBudget(0.05), first_round="learned"
    ).fit(X, outcome)
    with pytest.warns(LearningWarning, match="No rule keeps the estimated FDR at or below"):
        assert not classifier.decide(X).accepted.any()


def test_a_selection_rate_out_of_reach_is_said_aloud():
    rng = np.random.default_rng(0)
    X, outcome, _ = claims(500, rng)
    budget = FdrBudget(0.05, min_selection_rate=0.95)
    classifier = claims_classifier(strategy=None, budget=budget, first_round="learned")
    classifier.fit(X, outcome)
    with pytest.warns(LearningWarning, match=r"No rule with an FDR of at most .* accepts a share"):
        classifier.decide(X)
    assert not classifier.rounds_[0].feasible
    assert classifier.rounds_[0].estimated_fdr <= budget.max_fdr(1)


def test_exploration_off_keeps_the_unknown_unknown():
    classifier, rng = started(budget=ExploitOnly(0.2, exploit=0.2))
    made = go(classifier, rng)
    assert all(not decided.explored.any() for decided, _ in made)
    assert any((~decided.exploit).any() for decided, _ in made)


def test_weights_make_the_accepted_stand_for_everybody(rng):
    """Half of the people are accepted nine times as often; weighted, they count as they are."""
    n = 6000
    X = (rng.random((n, 1)) < 0.5).astype(float)
    p = np.where(X > 0, [[0.02, 0.95, 0.03]], [[0.2, 0.6, 0.2]])
    outcome = CLASSES[(rng.random(n)[:, None] > p.cumsum(axis=1)).sum(axis=1)]
    accepted = rng.random(n) < 0.1 + 0.8 * X[:, 0]
    truth = 0.5 * 0.05 + 0.5 * 0.4

    def estimated(**options):
        classifier = ManyClassClassifier(
            utility={"no": dict.fromkeys(CLASSES, 0), "yes": dict.fromkeys(CLASSES, 1)},
            good="honest",
            coverage=SummedAcceptance(threshold=0.01),
            budget=FdrBudget(0.5, exploit=0.4),
            weight_cap=10.0,
            random_state=0,
            **options,
        ).fit(X, outcome, accepted=accepted, past_policy=lambda X: 0.1 + 0.8 * X[:, 0])
        return classifier._learned.estimated_fdr

    assert estimated() == pytest.approx(truth, abs=0.04)
    assert estimated(weights="none") < truth - 0.05
