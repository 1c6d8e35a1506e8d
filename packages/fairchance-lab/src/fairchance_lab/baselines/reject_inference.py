"""Reject inference: give rejected applicants outcomes that a model predicts, and learn from all."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from fairchance.errors import InputError
from fairchance.people.intake import History
from fairchance_lab.baselines.base import Floats, Labelled
from fairchance_lab.baselines.greedy import Greedy
from fairchance_lab.baselines.logistic import fit_logistics, linear_scores

__all__ = ["Extrapolation", "FuzzyAugmentation"]


class _RejectInference(Greedy):
    """Fit to the accepted, predict shares of good for the rejected, fit to all."""

    def _start(self, history: History) -> None:
        self._first: Floats | None = None
        super()._start(history)

    def _learn(self) -> None:
        rows, rejected = self._labelled(), self._rejected()
        self._theta = fit_logistics(
            np.concatenate([rows.X, rejected.X]),
            np.append(rows.outcome, self._made_up(rows, rejected.X)),
            l2=self.l2,
            start=self._theta,
        )

    def _first_model(self, columns: Floats, outcome: Any, others: Floats) -> Floats:
        """Fit a logistic model to the accepted and return what it says of others."""
        self._first = fit_logistics(columns, outcome, l2=self.l2, start=self._first)
        return linear_scores(others, self._first)

    @abstractmethod
    def _made_up(self, rows: Labelled, rejected: Floats) -> Floats:
        """Return the share of good that each rejected person counts as."""


@dataclass(eq=False, repr=False)
class Extrapolation(_RejectInference):
    """Reject inference by extrapolation: the rejected get the outcome that the accepted suggest.

    A first model μ is fitted to the accepted; a rejected person's outcome is μ(x), as a share; a
    second, linear one is fitted to all applicants, and decisions are greedy on it. μ also has
    squares and products of the features: if it were the same linear model, it would already solve
    the equations of the second one and add nothing to ``Greedy``.

    Parameters
    ----------
    cutoff
        Likelihood from which people are accepted, in (0, 1).
    products
        Whether μ has squares and products of two features in addition to the features.
    l2
        Strength of the penalty on coefficients of both models, at least 0.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> repaid = (rng.random(400) < 1 / (1 + np.exp(-1 - 2 * X[:, 0]))).astype(int)
    >>> method = Extrapolation(5 / 7).fit(X, repaid, accepted=X[:, 0] > 0)
    >>> method.assumption
    'At equal features, the rejected turn out as the accepted do, and the model is right for both.'
    """

    _: KW_ONLY
    products: bool = True

    assumption: ClassVar[str] = (
        "At equal features, the rejected turn out as the accepted do, and the model is right for "
        "both."
    )

    def _made_up(self, rows: Labelled, rejected: Floats) -> Floats:
        both = (rows.X, rejected)
        mine, others = (with_products(X) for X in both) if self.products else both
        return self._first_model(mine, rows.outcome, others)


def with_products(X: Floats) -> Floats:
    """Return features with their squares and the products of any two.

    Examples
    --------
    >>> with_products(np.array([[2.0, 3.0]])).tolist()
    [[2.0, 3.0, 4.0, 6.0, 9.0]]
    """
    i, j = np.triu_indices(X.shape[1])
    return np.hstack([X, X[:, i] * X[:, j]])


@dataclass(eq=False, repr=False)
class FuzzyAugmentation(_RejectInference):
    """Reject inference by fuzzy augmentation: each rejected person counts as part good, part bad.

    A first model μ is fitted to the accepted. A rejected person enters twice, as bad with weight
    min(1, k·(1 − μ(x))) and as good with the rest; k > 1 says how many times as bad the rejected
    are. A second model is fitted to all applicants, and decisions are greedy on it.

    Parameters
    ----------
    cutoff
        Likelihood from which people are accepted, in (0, 1).
    bad_ratio
        k, at least 0. Nothing in the data tells it.
    l2
        Strength of the penalty on coefficients of both models, at least 0.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> repaid = (rng.random(400) < 1 / (1 + np.exp(-1 - 2 * X[:, 0]))).astype(int)
    >>> method = FuzzyAugmentation(5 / 7).fit(X, repaid, accepted=X[:, 0] > 0)
    >>> method.assumption
    'At equal features, the rejected are bad bad_ratio times as often as the accepted.'
    """

    _: KW_ONLY
    bad_ratio: float = 2.0

    assumption: ClassVar[str] = (
        "At equal features, the rejected are bad bad_ratio times as often as the accepted."
    )

    def _made_up(self, rows: Labelled, rejected: Floats) -> Floats:
        bad = 1 - self._first_model(rows.X, rows.outcome, rejected)
        return 1 - np.minimum(1.0, self.bad_ratio * bad)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not self.bad_ratio >= 0:
            raise InputError(f"bad_ratio must be at least 0, got {self.bad_ratio!r}.")
