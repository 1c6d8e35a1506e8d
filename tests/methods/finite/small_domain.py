"""A domain of eight cells, and classifiers that have decided on its people."""

from __future__ import annotations

import numpy as np

from secondlook import (
    Revenue,
)
from secondlook.lab.simulate.finite import FiniteDomain
from secondlook.methods.finite import FiniteClassifier

REVENUE = Revenue(gain=200, loss=500)


DOMAIN = FiniteDomain(
    X=[[0, 0], [0, 1], [1, 0], [1, 1], [0, 0], [0, 1], [1, 0], [1, 1]],
    group=["a"] * 4 + ["b"] * 4,
    mass=[0.2, 0.15, 0.1, 0.1, 0.15, 0.1, 0.12, 0.08],
    good=[0.97, 0.9, 0.75, 0.55, 0.95, 0.92, 0.7, 0.85],
)


PAST = np.array([1, 1, 0, 0, 1, 0, 0, 0.0])


def draw(rng, n, domain=DOMAIN):
    people = domain.draw(n, rng)
    return people, (rng.random(n) < domain.probability_good(people)).astype(int)


def fitted(rng, n=400, domain=DOMAIN, past=PAST, **options):
    people, good = draw(rng, n, domain)
    options = {"utility": REVENUE, "random_state": 0} | options
    classifier = FiniteClassifier(**options)
    accepted = past[domain.cell_of(people)] > 0
    return classifier.fit(
        people.X,
        good,
        accepted=accepted,
        sensitive_features=people.group,
        domain=(domain.X, domain.group),
        past_policy=past,
    )


def run(rng, n_rounds=6, n=400, **options):
    classifier = fitted(rng, **options)
    for _ in range(n_rounds):
        people, good = draw(rng, n)
        batch = classifier.decide(people.X, sensitive_features=people.group)
        classifier.observe(batch.ids[batch.accepted], good[batch.accepted])
    return classifier
