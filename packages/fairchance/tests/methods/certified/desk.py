"""A desk that decides on applicants and hears of their outcomes in any order."""

from __future__ import annotations

import numpy as np

from fairchance.simulate.populations import draw_applicants
from methods.certified.known_truth import Slope, start

N = 300


class Desk:
    """A classifier, with the outcomes of all applicants it accepted."""

    def __init__(self, seed=0, **options):
        self.rng = np.random.default_rng(seed)
        self.classifier = start(Slope(), self.rng, random_state=seed, **options)
        self.accepted = []

    @property
    def engine(self):
        return self.classifier._engines[0]

    @property
    def wealth(self):
        return np.concatenate([ladder.wealth.log.ravel() for ladder in self.engine.ladders])

    def decide(self, n=N):
        batch = draw_applicants(Slope(), n, self.rng)
        decided = self.classifier.decide(batch.people.X)
        self.accepted.append((decided.ids[decided.accepted], batch.outcome[decided.accepted]))
        return decided

    def tell(self, t, which=(0, 1)):
        ids, outcome = self.accepted[t - 1]
        chosen = np.isin(outcome, which)
        self.classifier.observe(ids[chosen], outcome[chosen])

    def rounds(self, n):
        for _ in range(n):
            decided = self.decide()
            self.tell(len(self.accepted))
        return decided


def certified_desk(**options):
    desk = Desk(**options)
    for _ in range(15):
        if desk.rounds(1).certified:
            return desk
    raise AssertionError("never certified")
