"""A slow reading of Algorithm 1 on cells."""

from __future__ import annotations

import math
from itertools import product


class PersonByPerson:
    """The box of Algorithm 1, with a list of people and loops over all classifiers."""

    def __init__(self, past, threshold, budget, g, loss):
        self.past, self.threshold, self.budget, self.g = past, threshold, budget, g
        self.loss, self.estimates = loss, None
        self.applied, self.seen = [], []  # cells; (cell, outcome)
        self.w = [float(p) for p in past]
        self.exploit = {c for c, p in enumerate(past) if p > threshold}
        self.t, self.carried = 0, 0.0

    def eta(self, cell, y):
        outcomes = [o for c, o in self.seen if c == cell]
        if cell not in self.exploit or not outcomes:
            return 0.0
        return self.applied.count(cell) * outcomes.count(y) / len(outcomes)

    def learn(self):
        cells = sorted(self.exploit)
        good, bad = ({c: self.eta(c, y) for c in cells} for y in (1, 0))
        total = sum(good.values()) + sum(bad.values())
        bound = self.budget.alpha_exploit(self.t) + self.budget.slack
        least = self.budget.min_selection_rate - self.budget.slack
        best = None
        for bits in product((0, 1), repeat=len(cells)):
            chosen = [c for c, bit in zip(cells, bits, strict=True) if bit]
            if any(good[c] + bad[c] == 0 for c in chosen):
                continue
            g, b = sum(good[c] for c in chosen), sum(bad[c] for c in chosen)
            if (g + b and b / (g + b) > bound + 1e-12) or (g + b) / total < least - 1e-12:
                continue
            value = (g - self.loss * b) / total
            if best is None or value > best[0] + 1e-12:
                best = (value, set(chosen), b / (g + b) if g + b else 0.0, (g + b) / total)
        self.estimates = (0.0, 0.0, 0.0) if best is None else (best[0], *best[2:])
        return set() if best is None else best[1]

    def decide(self, cells):
        self.t += 1
        self.applied += cells
        if self.t > 1:
            seen = {c for c, _ in self.seen}
            self.exploit |= {
                c for c in range(len(self.past)) if self.w[c] > self.threshold and c in seen
            }
        f = {c for c in self.exploit if self.past[c] >= 0.5} if self.t == 1 else self.learn()
        n_exploit = sum(c in f for c in cells)
        candidates = sum(c not in self.exploit for c in cells)
        alpha, budget = self.budget.alpha, self.budget
        share = (alpha - budget.alpha_exploit(self.t) - budget.slack) / (1 - alpha)
        allowed = share * n_exploit + self.carried
        n_explore = min(math.floor(allowed + 1e-9), candidates)
        self.carried = min(allowed - n_explore, 1.0)
        g = [self.g(c) for c in range(len(self.past))]
        self.w = [w + one / sum(g) for w, one in zip(self.w, g, strict=True)]
        return f, n_explore
