"""Who looks best: a frozen order of people, learned from what was known at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.people.likelihoods import Likelihood

__all__ = ["Ranking"]

Floats = NDArray[np.float64]
Groups = NDArray[np.intp]


@dataclass(frozen=True)
class Ranking:
    """The share of reference people who look at least as good as somebody; 0 is the very best.

    Once made it never changes, so a policy built on it is a fixed function of the person.

    Attributes
    ----------
    likelihood
        The model.
    reference
        Scores of the reference people, sorted: one array, or one per group for ranks within groups.
    mean_bad
        At each of 100 shares, the mean of 1 − score over that best share of the reference.
    """

    likelihood: Likelihood
    reference: tuple[Floats, ...]
    mean_bad: Floats

    @staticmethod
    def freeze(
        likelihood: Likelihood, score: Floats, group: Groups, n_groups: int, within: bool
    ) -> Ranking:
        """Freeze the order that a model gives to people like those of a reference.

        Parameters
        ----------
        likelihood
            The model.
        score, group
            Its scores of the reference people, and their groups.
        n_groups
            How many groups there are.
        within
            Whether people are ranked among their own group only.
        """
        parts = [score[group == z] for z in range(n_groups)] if within else [score]
        reference = tuple(np.sort(part if part.size else score) for part in parts)
        ordered = np.sort(score)[::-1]
        ends = np.maximum(1, np.ceil(np.arange(1, 101) / 100 * score.size)).astype(np.intp)
        mean_bad = 1 - np.cumsum(ordered)[ends - 1] / ends
        return Ranking(likelihood, reference, mean_bad)

    def score(self, X: Any, group: Groups) -> Floats:
        """Return the model's likelihood of a good outcome."""
        if group.size == 0:
            return np.empty(0)  # not every learner takes nobody
        return np.asarray(self.likelihood.score(X, group), dtype=np.float64)

    def rank(self, score: Floats, group: Groups) -> Floats:
        """Return 1 − the share of reference people who score lower."""
        if len(self.reference) == 1:
            return self._among(score, self.reference[0])
        rank = np.empty(score.size)
        for z, reference in enumerate(self.reference):
            rank[group == z] = self._among(score[group == z], reference)
        return rank

    @staticmethod
    def _among(score: Floats, reference: Floats) -> Floats:
        return np.asarray(1 - np.searchsorted(reference, score) / reference.size)

    def cut(self, share: float, group: Groups) -> Floats:
        """Return the score from which each person's rank is at most a share."""
        cuts = np.array([_score_at(share, reference) for reference in self.reference])
        return np.broadcast_to(cuts, group.size) if cuts.size == 1 else cuts[group]

    def knee(self, mistakes: float) -> float:
        """Return the largest share whose expected share of bad, by the model itself, is allowed."""
        allowed = np.flatnonzero(self.mean_bad <= mistakes)
        return float(allowed[-1] + 1) / 100 if allowed.size else 0.0


def _score_at(share: float, reference: Floats) -> float:
    """Return the lowest score whose rank among the reference is at most a share."""
    ranks = 1 - np.arange(reference.size + 1) / reference.size
    n_lower = int(np.argmax(ranks <= share))
    return -np.inf if n_lower == 0 else float(np.nextafter(reference[n_lower - 1], np.inf))
