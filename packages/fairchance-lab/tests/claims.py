"""Insurance claims: three outcome classes, three decisions, and a classifier for them."""

from __future__ import annotations

import numpy as np

from fairchance import (
    FdrBudget,
    GroupShare,
)
from fairchance_lab.many_classes import ManyClassClassifier

CLASSES = np.array(["fraud", "honest", "sloppy"])


UTILITY = {
    "refuse": {"fraud": 0, "honest": -1, "sloppy": 0},
    "pay": {"fraud": -20, "honest": 5, "sloppy": -2},
    "part": {"fraud": -8, "honest": 1, "sloppy": 2},
}


GOOD = {"pay": ("honest",), "part": ("honest", "sloppy")}


def claims(n, rng):
    """Return features, outcomes and groups of claims."""
    X = rng.normal(size=(n, 2))
    logits = np.column_stack([X[:, 0] - 1, 1.5 + X[:, 1], np.zeros(n)])
    outcome = CLASSES[(logits + rng.gumbel(size=(n, 3))).argmax(axis=1)]
    return X, outcome, np.where(rng.random(n) < 0.3, "B", "A")


def claims_classifier(**options):
    options = {"budget": FdrBudget(0.2), "strategy": GroupShare()} | options
    return ManyClassClassifier(
        **{"utility": UTILITY, "good": GOOD, "observed": ("pay", "part"), "random_state": 0}
        | options
    )


def started(seed=0, n=800, **options):
    """Return a classifier with a history, and the generator of later claims."""
    rng = np.random.default_rng(seed)
    X, outcome, group = claims(n, rng)
    accepted = X[:, 1] + 0.5 * rng.normal(size=n) > 0
    classifier = claims_classifier(**options)
    return classifier.fit(X, outcome, accepted=accepted, sensitive_features=group), rng


def go(classifier, rng, n_rounds=4, n=300):
    """Decide and observe some rounds; return decisions and true outcomes."""
    made = []
    for _ in range(n_rounds):
        X, outcome, group = claims(n, rng)
        decided = classifier.decide(X, sensitive_features=group)
        classifier.observe(decided.ids[decided.accepted], outcome[decided.accepted])
        made.append((decided, outcome))
    return made
