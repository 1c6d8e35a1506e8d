"""Thompson sampling by the bootstrap: doubt is the disagreement of models of resampled people."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from secondlook.errors import InputError
from secondlook.lab.baselines.base import Floats
from secondlook.lab.baselines.greedy import ALIGNED, Greedy
from secondlook.lab.baselines.logistic_newton import fit_logistics, linear_scores
from secondlook.people.batches import Batch

__all__ = ["BootstrapThompson"]

_TOL = 1e-5  # of the mean gradient, far below what resampling makes of it


class BootstrapThompson(Greedy):
    """For each person draw one of B bootstrap models, and accept if it says so.

    Each round fits B logistic models to all labelled rows, each with weights of its own from
    Poisson(1). A person's model is drawn by their own coin, so the probability of acceptance is the
    share of the B models that put the person at the cut-off or above, exactly.

    Parameters
    ----------
    cutoff
        Likelihood from which a model accepts, in (0, 1).
    n_models
        B, at least 2.
    l2
        Strength of the penalty on coefficients, at least 0.
    group_as_feature
        Append the group to the features.
    pos_label
        Label of the good outcome; None means the larger one.
    random_state
        Seed of the weights and of the draws.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> repaid = (rng.random(200) < 1 / (1 + np.exp(-1 - 2 * X[:, 0]))).astype(int)
    >>> method = BootstrapThompson(5 / 7, n_models=4, random_state=0).fit(X, repaid)
    >>> batch = method.decide(rng.normal(size=(500, 2)))
    >>> np.unique(batch.propensity).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """

    settings: ClassVar[dict[str, dict[str, Any]]] = {
        "published": {"cutoff": 0.5},
        "aligned": {"cutoff": ALIGNED},
    }

    def __init__(
        self,
        cutoff: float = 0.5,
        *,
        n_models: int = 20,
        l2: float = 1.0,
        group_as_feature: bool = False,
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            cutoff,
            l2=l2,
            group_as_feature=group_as_feature,
            pos_label=pos_label,
            random_state=random_state,
        )
        self.n_models = n_models

    def _learn(self) -> None:
        super()._learn()  # all models start from the one of everybody
        rows = self._labelled()
        weight = self._rng().poisson(1.0, (len(rows), self.n_models)).astype(np.float64)
        # A replicate that drew nobody good, or nobody bad, has no model; it takes everybody.
        for good in (0, 1):
            weight[:, weight[rows.outcome == good].sum(axis=0) == 0] = 1.0
        self._models = fit_logistics(
            rows.X, rows.outcome, weight, l2=self.l2, start=self._theta, tol=_TOL
        )

    def _probabilities(self, people: Batch) -> Floats:
        scores = linear_scores(people.X, self._models)
        return np.asarray((scores >= self.cutoff).mean(axis=1))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not self.n_models >= 2:
            raise InputError(f"n_models must be 2 or more, got {self.n_models!r}.")
