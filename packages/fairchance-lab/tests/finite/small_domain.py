"""A domain of eight cells, and classifiers that decide on its applicants."""

from __future__ import annotations

import numpy as np

from fairchance import Revenue
from fairchance.simulate.populations import FiniteDomain
from fairchance_lab.finite import FiniteClassifier

REVENUE = Revenue(gain=200, loss=500)
DOMAIN = FiniteDomain(
    X=[[0, 0], [0, 1], [1, 0], [1, 1], [0, 0], [0, 1], [1, 0], [1, 1]],
    group=["a"] * 4 + ["b"] * 4,
    mass=[0.2, 0.15, 0.1, 0.1, 0.15, 0.1, 0.12, 0.08],
    good=[0.97, 0.9, 0.75, 0.55, 0.95, 0.92, 0.7, 0.85],
)
PAST = np.array([1, 1, 0, 0, 1, 0, 0, 0.0])


def draw(rng, n, domain=DOMAIN):
    """Return applicants and their outcomes."""
    people = domain.draw(n, rng)
    return people, (rng.random(n) < domain.probability_good(people)).astype(int)


def fitted(rng, n=400, domain=DOMAIN, past=PAST, **options):
    """Return a classifier with a history."""
    people, good = draw(rng, n, domain)
    classifier = FiniteClassifier(**({"utility": REVENUE, "random_state": 0} | options))
    return classifier.fit(
        people.X,
        good,
        accepted=past[domain.cell_of(people)] > 0,
        sensitive_features=people.group,
        domain=(domain.X, domain.group),
        past_policy=past,
    )


def without_history(**options):
    """Return a classifier that starts from the past policy alone."""
    classifier = FiniteClassifier(**({"utility": REVENUE, "random_state": 0} | options))
    return classifier.fit(None, None, domain=(DOMAIN.X, DOMAIN.group), past_policy=PAST)


def decide(classifier, people, **options):
    return classifier.decide(people.X, sensitive_features=people.group, **options)


def run(rng, n_rounds=6, n=400, **options):
    """Return a classifier after some rounds."""
    classifier = fitted(rng, **options)
    for _ in range(n_rounds):
        people, good = draw(rng, n)
        batch = decide(classifier, people)
        classifier.observe(batch.ids[batch.accepted], good[batch.accepted])
    return classifier
