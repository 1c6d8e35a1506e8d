"""Pacchiano et al. 2021 (PLOT): call a few doubtful people good, and see whether a model agrees."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from secondlook.core.sampling import coin_flips
from secondlook.errors import InputError
from secondlook.lab.baselines.base import Baseline, Floats, Verdict
from secondlook.lab.baselines.greedy import ALIGNED, check_share
from secondlook.lab.baselines.optimists import LogisticOptimist, NetworkOptimist, Optimist
from secondlook.people.batches import Batch, History

__all__ = ["PseudoLabelOptimism"]

_CANDIDATE, _ORDER = 7, 8  # purposes of a round's randomness


class PseudoLabelOptimism(Baseline):
    """Accept whom the model accepts, and candidates whom an optimistic model accepts.

    Of the people at or below the threshold each becomes a candidate with probability ε_t. They are
    taken in small chunks; for each chunk the model is trained further as if its people had turned
    out good, and those of them whom that model puts above the threshold are accepted. Then the
    pretended outcomes are forgotten, and the model learns from the true ones. With much data the
    pretence moves nothing, so exploring ends by itself.

    The propensity is 1 above the threshold. Below it is ε_t times the chance that the optimistic
    model agrees, over the candidates somebody might have shared a chunk with, which is not known:
    it is NaN there. ``acceptance_probability`` estimates it with the optimistic models of the last
    round (and, with the logistic model, the push that the person's own pretended outcome would
    give, to first order).

    Parameters
    ----------
    threshold
        Likelihood above which people are accepted, in (0, 1).
    model
        ``"logistic"``, solved to the end, or ``"network"``, one hidden layer trained by Adam.
    epsilon
        ε, the probability of becoming a candidate in round 1, in [0, 1].
    decay
        Whether ε_t = ε/√t; if not, it stays ε.
    chunk
        Most candidates that are called good together.
    l2
        Logistic model: strength of the penalty on coefficients, above 0.
    n_hidden, learning_rate
        Network: hidden units, and Adam's step size.
    steps
        Network: least number of steps a round; at least three passes over all rows in minibatches
        of 256.
    pseudo_steps
        Network: how many times as many steps an optimistic model is trained.
    minibatch
        Network: rows a step; None means 32, or 256 where the history has more than 2,000 people.
    group_as_feature
        Append the group to the features.
    pos_label
        Label of the good outcome; None means the larger one.
    random_state
        Seed of candidates, chunks, first weights and minibatches.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> repaid = (rng.random(200) < 1 / (1 + np.exp(-1 - X[:, 0]))).astype(int)
    >>> method = PseudoLabelOptimism.setting("aligned", epsilon=0.5, random_state=0)
    >>> method = method.fit(X, repaid, accepted=X[:, 0] > 0)
    >>> batch = method.decide(rng.normal(size=(500, 2)))
    >>> explored = batch.accepted & (batch.score <= 5 / 7)
    >>> int(explored.sum()), bool(np.isnan(batch.propensity[explored]).all())
    (33, True)
    """

    propensity_known: ClassVar[bool] = False
    settings: ClassVar[dict[str, dict[str, Any]]] = {
        "published": {"threshold": 0.5},
        "aligned": {"threshold": ALIGNED},
    }

    def __init__(
        self,
        threshold: float = 0.5,
        *,
        model: Literal["logistic", "network"] = "logistic",
        epsilon: float = 0.2,
        decay: bool = True,
        chunk: int = 32,
        l2: float = 1.0,
        n_hidden: int = 40,
        learning_rate: float = 0.01,
        steps: int = 100,
        pseudo_steps: int = 8,
        minibatch: int | None = None,
        group_as_feature: bool = False,
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.threshold = threshold
        self.model = model
        self.epsilon = epsilon
        self.decay = decay
        self.chunk = chunk
        self.l2 = l2
        self.n_hidden = n_hidden
        self.learning_rate = learning_rate
        self.steps = steps
        self.pseudo_steps = pseudo_steps
        self.minibatch = minibatch
        self.group_as_feature = group_as_feature
        self.pos_label = pos_label
        self.random_state = random_state

    def _start(self, history: History) -> None:
        self._check_parameters()
        self._optimist = self._fresh(history)
        self._learn()

    def _learn(self) -> None:
        rows = self._labelled()
        self._optimist.learn(rows.X, rows.outcome.astype(np.float64), self._rng())

    def _decide(self, batch: Batch) -> Verdict:
        score = self._scores(batch)
        accepted = score > self.threshold
        chance = np.where(accepted, 0.0, self._share_of_candidates())
        candidate = np.flatnonzero(coin_flips(chance, self._bits(batch, _CANDIDATE)))
        order = candidate[np.argsort(self._bits(batch, _ORDER)[candidate])]
        chunks = np.array_split(order, -(-order.size // self.chunk)) if order.size else []
        hoped = self._optimist.hope([batch.X[one] for one in chunks], self._rng(1))
        if order.size:
            accepted[order] = np.concatenate(hoped) > self.threshold
        unknown = np.nan if self._share_of_candidates() > 0 else 0.0
        return Verdict(accepted, np.where(score > self.threshold, 1.0, unknown), score)

    def _probabilities(self, people: Batch) -> Floats:
        score = self._scores(people)
        agree = (self._optimist.hoped(people.X) > self.threshold).mean(axis=0)
        return np.where(score > self.threshold, 1.0, self._share_of_candidates() * agree)

    def _scores(self, people: Batch) -> Floats:
        return self._optimist.score(people.X)

    def _share_of_candidates(self) -> float:
        """Return ε_t."""
        return self.epsilon / np.sqrt(max(1, self._round)) if self.decay else self.epsilon

    def _fresh(self, history: History) -> Optimist:
        if self.model == "logistic":
            return LogisticOptimist(history.X.shape[1], self.l2)
        auto = 256 if len(history) > 2000 else 32
        return NetworkOptimist(
            history.X.shape[1],
            self.n_hidden,
            rate=self.learning_rate,
            steps=self.steps,
            pseudo_steps=self.pseudo_steps,
            minibatch=auto if self.minibatch is None else self.minibatch,
            rng=self._rng(2),
        )

    def _check_parameters(self) -> None:
        check_share("threshold", self.threshold)
        check_share("epsilon", self.epsilon, ends=True)
        if self.model not in ("logistic", "network"):
            raise InputError(f"model must be 'logistic' or 'network', got {self.model!r}.")
        for name in ("l2", "learning_rate"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be above 0, got {getattr(self, name)!r}.")
        for name in ("chunk", "n_hidden", "steps", "pseudo_steps", "minibatch"):
            value = getattr(self, name)
            if value is None and name == "minibatch":
                continue
            if not isinstance(value, int | np.integer) or value < 1:
                raise InputError(f"{name} must be a whole number of 1 or more, got {value!r}.")
