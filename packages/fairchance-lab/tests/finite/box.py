"""A slow implementation of Algorithm 1 on cells, applicant by applicant."""

from __future__ import annotations

import math
from itertools import product


class SlowAlgorithm1:
    """The paper's box, with lists of applicants and loops over all classifiers."""

    def __init__(self, past, threshold, budget, g, loss):
        self.past, self.threshold, self.budget, self.g = past, threshold, budget, g
        self.loss, self.estimates = loss, None
        self.applicants = {}  # id -> cell
        self.outcomes = {}  # id -> outcome
        self.w = [float(p) for p in past]
        self.exploit = {c for c, p in enumerate(past) if p > threshold}
        self.t, self.carried = 0, 0.0

    def counts(self):
        """Return the number of applicants of each cell."""
        cells = list(self.applicants.values())
        return [cells.count(c) for c in range(len(self.past))]

    def observed(self, cell):
        return [y for i, y in self.outcomes.items() if self.applicants[i] == cell]

    def eta(self, cell, y):
        outcomes = self.observed(cell)
        if cell not in self.exploit or not outcomes:
            return 0.0
        return self.counts()[cell] * outcomes.count(y) / len(outcomes)

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

    def decide(self, ids, cells):
        """Return the cells that f_t accepts, and how many to explore."""
        self.t += 1
        self.applicants |= dict(zip(ids, cells, strict=True))
        if self.t > 1:
            self.exploit |= {
                c for c in range(len(self.past)) if self.w[c] > self.threshold and self.observed(c)
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
        self.w = [w + size / sum(g) for w, size in zip(self.w, g, strict=True)]
        return f, n_explore

    def forget(self, ids):
        """Delete applicants; a cell that loses all its outcomes is explored again."""
        lost = {self.applicants[i] for i in ids if i in self.outcomes}
        for i in ids:
            del self.applicants[i]
            self.outcomes.pop(i, None)
        self.exploit -= {c for c in lost if not self.observed(c)}
