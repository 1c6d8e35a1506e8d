"""Models that can be asked what they would say had some people turned out good."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from secondlook.lab.baselines.logistic_newton import fit_logistics, linear_scores
from secondlook.lab.baselines.small_networks import Networks

__all__ = ["LogisticOptimist", "NetworkOptimist", "Optimist"]

Floats = NDArray[np.float64]

_PASS = 256  # rows a step in the rule for how many steps there are
_PASSES = 3


class Optimist(Protocol):
    """A model that learns from outcomes, and from pretended ones for a moment."""

    def learn(self, X: Floats, outcome: Floats, rng: np.random.Generator) -> None:
        """Learn from all outcomes so far, going on from what it knew."""

    def score(self, X: Floats) -> Floats:
        """Return P(good)."""

    def hope(self, chunks: list[Floats], rng: np.random.Generator) -> list[Floats]:
        """Return each chunk's P(good) under a model to which its people are good."""

    def hoped(self, X: Floats) -> Floats:
        """Return P(good) as the last round's optimistic models would put it, a row a model."""


class LogisticOptimist:
    """Logistic regression, solved to the end each time.

    Parameters
    ----------
    n_features
        Number of features.
    l2
        Strength of the penalty on coefficients, above 0.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> model = LogisticOptimist(1, l2=1.0)
    >>> model.learn(np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0.0, 0.0, 1.0, 1.0]), rng)
    >>> (hoped,) = model.hope([np.array([[0.0]])], rng)
    >>> bool(hoped[0] > model.score(np.array([[0.0]]))[0])
    True
    """

    def __init__(self, n_features: int, l2: float) -> None:
        self.l2 = l2
        self._theta = np.zeros(n_features + 1)
        self._hopes = self._theta[:, None]

    def learn(self, X: Floats, outcome: Floats, rng: np.random.Generator) -> None:  # noqa: ARG002
        """Fit to all outcomes so far."""
        self._X, self._outcome = X, outcome
        self._theta = fit_logistics(X, outcome, l2=self.l2, start=self._theta)
        self._hopes = self._theta[:, None]

    def score(self, X: Floats) -> Floats:
        """Return P(good)."""
        return linear_scores(X, self._theta)

    def hope(self, chunks: list[Floats], rng: np.random.Generator) -> list[Floats]:  # noqa: ARG002
        """Return each chunk's P(good) after a fit to which its people are good."""
        self._hopes = self._theta[:, None]
        if not chunks:
            return []
        sizes = [len(one) for one in chunks]
        own = np.repeat(np.eye(len(chunks)), sizes, axis=0)
        weight = np.concatenate([np.ones((len(self._X), len(chunks))), own])
        hopes = fit_logistics(
            np.concatenate([self._X, *chunks]),
            np.append(self._outcome, np.ones(sum(sizes))),
            weight,
            l2=self.l2,
            start=np.repeat(self._theta[:, None], len(chunks), axis=1),
        )
        # Somebody else would have been there in the place of one of the chunk.
        others = 1 - 1 / np.array(sizes)
        self._hopes = self._theta[:, None] + others * (hopes - self._theta[:, None])
        return [linear_scores(one, theta) for one, theta in zip(chunks, hopes.T, strict=True)]

    def hoped(self, X: Floats) -> Floats:
        """Return P(good) of each person once good themselves, in the place of one of each chunk.

        To first order: a chunk less one of its s people moves the model (s−1)/s as far, and one
        more good row moves the logit by (1−p)·h/(1 + p(1−p)·h) with h = xᵀH⁻¹x and H the Hessian
        of the fit.
        """
        rows, people = (np.column_stack([one, np.ones(len(one))]) for one in (self._X, X))
        p = expit(rows @ self._theta)
        hessian = (rows * (p * (1 - p))[:, None]).T @ rows
        hessian[np.diag_indices(len(hessian) - 1)] += self.l2
        hessian[-1, -1] += 1e-9
        lever = (people * np.linalg.solve(hessian, people.T).T).sum(axis=1)
        logit = (people @ self._hopes).T
        q = expit(logit)
        return np.asarray(expit(logit + (1 - q) * lever / (1 + q * (1 - q) * lever)))


class NetworkOptimist:
    """A network of one hidden layer, trained a while each time.

    Parameters
    ----------
    n_features, n_hidden
        Its size.
    rate
        Adam's step size.
    steps
        Least number of steps a round; at least three passes over all rows in minibatches of 256.
    pseudo_steps
        How many times as many steps an optimistic model is trained.
    minibatch
        Rows a step.
    rng
        Draws the first weights.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> size = {"rate": 0.01, "steps": 100, "pseudo_steps": 8, "minibatch": 32}
    >>> model = NetworkOptimist(1, 10, **size, rng=rng)
    >>> X = rng.normal(size=(100, 1))
    >>> model.learn(X, (X[:, 0] > 0).astype(float), rng)
    >>> doubtful = np.full((20, 1), -0.3)
    >>> (hoped,) = model.hope([doubtful], rng)
    >>> bool(np.all(hoped > model.score(doubtful)))
    True
    """

    def __init__(
        self,
        n_features: int,
        n_hidden: int,
        *,
        rate: float,
        steps: int,
        pseudo_steps: int,
        minibatch: int,
        rng: np.random.Generator,
    ) -> None:
        self.rate = rate
        self.steps = steps
        self.pseudo_steps = pseudo_steps
        self.minibatch = minibatch
        self._base = Networks.drawn(n_features, n_hidden, rng)
        self._hopes = self._base

    def learn(self, X: Floats, outcome: Floats, rng: np.random.Generator) -> None:
        """Go on training with all outcomes so far."""
        self._X, self._outcome = X, outcome
        self._train(self._base, X, outcome, np.array([len(X)]), 1, rng)
        self._hopes = self._base

    def score(self, X: Floats) -> Floats:
        """Return P(good)."""
        return np.asarray(self._base.probability(X)[0])

    def hope(self, chunks: list[Floats], rng: np.random.Generator) -> list[Floats]:
        """Return each chunk's P(good) after a copy was trained as if its people were good."""
        self._hopes = self._base
        if not chunks:
            return []
        n, sizes = len(self._X), [len(one) for one in chunks]
        hopes = self._base.copies(len(chunks))
        X = np.concatenate([self._X, *chunks])
        y = np.append(self._outcome, np.ones(sum(sizes)))
        self._train(hopes, X, y, n + np.cumsum(sizes), self.pseudo_steps, rng, shared=n)
        self._hopes = hopes
        alone = (Networks(one[None], hopes.n_features) for one in hopes.weights)
        return [net.probability(one)[0] for net, one in zip(alone, chunks, strict=True)]

    def hoped(self, X: Floats) -> Floats:
        """Return P(good) under each of the last models, in none of which a person's own hope is."""
        return self._hopes.probability(X)

    def _train(
        self,
        networks: Networks,
        X: Floats,
        y: Floats,
        ends: NDArray[np.intp],
        times: int,
        rng: np.random.Generator,
        *,
        shared: int = 0,
    ) -> None:
        steps = times * max(self.steps, -(-_PASSES * len(self._X) // _PASS))
        networks.train(
            X,
            y,
            ends,
            steps=steps,
            minibatch=self.minibatch,
            rate=self.rate,
            rng=rng,
            shared=shared,
        )
