"""Greedy: learn from whoever was accepted, accept whoever looks worth it, and look no further."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from secondlook.errors import InputError
from secondlook.lab.baselines.base import Baseline, Floats
from secondlook.lab.baselines.logistic_newton import fit_logistics, linear_scores
from secondlook.people.batches import Batch, History

__all__ = ["ALIGNED", "Greedy"]

ALIGNED = 5 / 7  # where a loss of 500 and a gain of 200 break even


class Greedy(Baseline):
    """Accept from a fixed likelihood on, under a logistic model of all outcomes so far.

    Each round refits the model to everybody accepted so far, the history included, unweighted.
    Nobody is explored: a person the first model puts below the cut-off is never learned about.

    Parameters
    ----------
    cutoff
        Likelihood of the good outcome from which people are accepted, in (0, 1); the break-even
        point loss / (loss + gain) is the ``aligned`` setting, 0.5 the ``published`` one.
    l2
        Strength of the penalty on coefficients, at least 0.
    group_as_feature
        Append the group to the features.
    pos_label
        Label of the good outcome; None means the larger one.
    random_state
        Seed.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> repaid = (rng.random(400) < 1 / (1 + np.exp(-1 - 2 * X[:, 0]))).astype(int)
    >>> method = Greedy.setting("aligned").fit(X, repaid, accepted=X[:, 0] > -0.5)
    >>> batch = method.decide(rng.normal(size=(100, 2)))
    >>> int(batch.accepted.sum()), bool((batch.score[batch.accepted] >= 5 / 7).all())
    (55, True)
    """

    settings: ClassVar[dict[str, dict[str, Any]]] = {
        "published": {"cutoff": 0.5},
        "aligned": {"cutoff": ALIGNED},
    }

    def __init__(
        self,
        cutoff: float = 0.5,
        *,
        l2: float = 1.0,
        group_as_feature: bool = False,
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.cutoff = cutoff
        self.l2 = l2
        self.group_as_feature = group_as_feature
        self.pos_label = pos_label
        self.random_state = random_state

    def _start(self, history: History) -> None:
        self._check_parameters()
        self._theta = np.zeros(history.X.shape[1] + 1)
        self._learn()

    def _learn(self) -> None:
        rows = self._labelled()
        self._theta = fit_logistics(
            rows.X, rows.outcome, self._weights(), l2=self.l2, start=self._theta
        )

    def _weights(self) -> Floats | None:
        """Return the weights of the labelled rows; None means 1."""
        return None

    def _scores(self, people: Batch) -> Floats:
        return linear_scores(people.X, self._theta)

    def _probabilities(self, people: Batch) -> Floats:
        return (self._scores(people) >= self.cutoff).astype(np.float64)

    def _check_parameters(self) -> None:
        check_share("cutoff", self.cutoff)
        if not self.l2 >= 0:
            raise InputError(f"l2 must be at least 0, got {self.l2!r}.")


def check_share(name: str, value: Any, *, ends: bool = False) -> None:
    """Raise unless a parameter is a number in (0, 1), or in [0, 1] if the ends are allowed."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if number and (0 < value < 1 or (ends and value in (0, 1))):
        return
    raise InputError(f"{name} must be in {'[0, 1]' if ends else '(0, 1)'}, got {value!r}.")
