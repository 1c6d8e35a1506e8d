"""Label augmentation (De-Arteaga, Dubrawski and Chouldechova 2018): trust sure rejections."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from secondlook.lab.baselines.base import Floats
from secondlook.lab.baselines.greedy import ALIGNED, Greedy, check_share
from secondlook.lab.baselines.logistic_newton import fit_logistics, linear_scores
from secondlook.people.batches import History

__all__ = ["LabelAugmentation"]


class LabelAugmentation(Greedy):
    """Learn as if everybody the past was sure to reject had turned out bad.

    The propensity e(x) is a logistic model of who was accepted. The rejected with e(x) below
    ``sure_below`` join the labelled rows as bad, the other rejected are left out, and decisions are
    greedy on a logistic model of all that. No outcome of a rejected person is read: theirs is
    assumed.

    Parameters
    ----------
    cutoff
        Likelihood from which people are accepted, in (0, 1).
    sure_below
        Propensity below which a rejection counts as sure, in [0, 1].
    own_rounds
        Whether those rejected by our own rounds are augmented too; by default only the history's,
        which is where somebody with knowledge may have decided.
    l2
        Strength of the penalty on coefficients, at least 0.
    group_as_feature
        Append the group to the features.
    pos_label
        Label of the good outcome; None means the larger one.
    random_state
        Not used: nothing here is random.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> repaid = (rng.random(400) < 1 / (1 + np.exp(-1 - 2 * X[:, 0]))).astype(int)
    >>> method = LabelAugmentation(5 / 7).fit(X, repaid, accepted=X[:, 0] > 0)
    >>> method.n_augmented_ > 0
    True
    """

    settings: ClassVar[dict[str, dict[str, Any]]] = {
        "published": {"cutoff": 0.5},
        "aligned": {"cutoff": ALIGNED},
    }
    assumption: ClassVar[str] = (
        "Whoever the past was sure to reject would have turned out bad: its decisions knew better "
        "than the features where they were consistent."
    )

    def __init__(
        self,
        cutoff: float = 0.5,
        *,
        sure_below: float = 0.05,
        own_rounds: bool = False,
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
        self.sure_below = sure_below
        self.own_rounds = own_rounds

    @property
    def n_augmented_(self) -> int:
        """How many rejected people counted as bad in the last fit."""
        return self._n_augmented

    def _start(self, history: History) -> None:
        self._check_parameters()
        self._selection = _selection_model(history.X, history.accepted, self.l2)
        super()._start(history)

    def _learn(self) -> None:
        rows, rejected = self._labelled(), self._rejected()
        candidates = rejected.X if self.own_rounds else rejected.X[rejected.round == 0]
        sure = candidates[linear_scores(candidates, self._selection) < self.sure_below]
        self._n_augmented = len(sure)
        self._theta = fit_logistics(
            np.concatenate([rows.X, sure]),
            np.append(rows.outcome, np.zeros(len(sure))),
            l2=self.l2,
            start=self._theta,
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_share("sure_below", self.sure_below, ends=True)


def _selection_model(X: Floats, accepted: Any, l2: float) -> Floats:
    """Return a model of who was accepted; one of certainty where everybody was."""
    if accepted.all():
        return np.append(np.zeros(X.shape[1]), np.inf)
    return fit_logistics(X, accepted, l2=l2)
