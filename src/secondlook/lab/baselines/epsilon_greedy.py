"""Greedy with chance: a random action now and then, or a share of those below the cut-off."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from secondlook.errors import InputError
from secondlook.lab.baselines.base import Floats
from secondlook.lab.baselines.greedy import ALIGNED, Greedy, check_share
from secondlook.people.batches import Batch

__all__ = ["EpsilonGreedy", "RandomBelowCutoff"]


class EpsilonGreedy(Greedy):
    """With probability ε_t toss a fair coin on somebody, otherwise decide greedily.

    So whoever the model rejects is accepted with probability ε_t / 2, and whoever it accepts is
    rejected with the same. ε_t falls in a line from ``epsilon`` to ``last`` over ``horizon`` rounds
    and stays there, or with the root of the round's number.

    Parameters
    ----------
    cutoff
        Likelihood from which the greedy action is to accept, in (0, 1).
    epsilon, last
        ε of the first round and, with ``decay="linear"``, of the last, in [0, 1].
    horizon
        Rounds over which ε falls, at least 2.
    decay
        ``"linear"``; ``"root"``: ε / √t; ``"none"``.
    l2
        Strength of the penalty on coefficients, at least 0.
    group_as_feature
        Append the group to the features.
    pos_label
        Label of the good outcome; None means the larger one.
    random_state
        Seed of the coins.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> repaid = (rng.random(400) < 1 / (1 + np.exp(-1 - 2 * X[:, 0]))).astype(int)
    >>> method = EpsilonGreedy(decay="none", random_state=0).fit(X, repaid)
    >>> batch = method.decide(rng.normal(size=(100, 2)))
    >>> np.unique(batch.propensity).tolist()
    [0.1, 0.9]
    """

    settings: ClassVar[dict[str, dict[str, Any]]] = {
        "published": {"cutoff": 0.5, "epsilon": 0.2, "last": 0.01},
        "aligned": {"cutoff": ALIGNED, "epsilon": 0.2, "last": 0.01},
    }

    def __init__(
        self,
        cutoff: float = 0.5,
        *,
        epsilon: float = 0.2,
        last: float = 0.01,
        horizon: int = 40,
        decay: Literal["linear", "root", "none"] = "linear",
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
        self.epsilon = epsilon
        self.last = last
        self.horizon = horizon
        self.decay = decay

    def epsilon_of(self, round: int) -> float:
        """Return ε of a round.

        Examples
        --------
        >>> [round(EpsilonGreedy(horizon=20).epsilon_of(t), 3) for t in (1, 2, 20, 30)]
        [0.2, 0.19, 0.01, 0.01]
        """
        if self.decay == "none":
            return self.epsilon
        if self.decay == "root":
            return float(self.epsilon / np.sqrt(round))
        gone = min(1.0, (round - 1) / (self.horizon - 1))
        return float(self.epsilon + gone * (self.last - self.epsilon))

    def _probabilities(self, people: Batch) -> Floats:
        epsilon = self.epsilon_of(max(1, self._round))
        return (1 - epsilon) * super()._probabilities(people) + epsilon / 2

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_share("epsilon", self.epsilon, ends=True)
        check_share("last", self.last, ends=True)
        if self.decay not in ("linear", "root", "none"):
            raise InputError(f"decay must be 'linear', 'root' or 'none', got {self.decay!r}.")
        if self.decay == "linear" and not self.horizon >= 2:
            raise InputError(f"horizon must be 2 rounds or more, got {self.horizon!r}.")


class RandomBelowCutoff(Greedy):
    """Accept from the cut-off on, and a fixed share of everybody below it at random.

    What lenders do who test below their cut-off: each person below has the same chance, so nobody
    is out of reach, and the logged probabilities are exact.

    Parameters
    ----------
    cutoff
        Likelihood from which people are accepted for sure, in (0, 1).
    share
        Probability with which anybody below is accepted, in [0, 1].
    weighted
        Whether labelled rows of our own rounds are weighted by 1 / probability, so that those below
        the cut-off count as many as they stand for. The history counts once each.
    l2
        Strength of the penalty on coefficients, at least 0.
    group_as_feature
        Append the group to the features.
    pos_label
        Label of the good outcome; None means the larger one.
    random_state
        Seed of the coins.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> repaid = (rng.random(400) < 1 / (1 + np.exp(-1 - 2 * X[:, 0]))).astype(int)
    >>> method = RandomBelowCutoff(5 / 7, share=0.05, random_state=0).fit(X, repaid)
    >>> batch = method.decide(rng.normal(size=(1000, 2)))
    >>> int(batch.explored.sum()), np.unique(batch.propensity).tolist()
    (26, [0.05, 1.0])
    """

    settings: ClassVar[dict[str, dict[str, Any]]] = {
        "published": {"cutoff": 0.5},
        "aligned": {"cutoff": ALIGNED},
    }

    def __init__(
        self,
        cutoff: float = 0.5,
        *,
        share: float = 0.02,
        weighted: bool = False,
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
        self.share = share
        self.weighted = weighted

    def _weights(self) -> Floats | None:
        if not self.weighted:
            return None
        return np.asarray(1 / np.nan_to_num(self._labelled().propensity, nan=1.0))

    def _probabilities(self, people: Batch) -> Floats:
        return np.maximum(super()._probabilities(people), self.share)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_share("share", self.share, ends=True)
