"""Several small networks trained side by side: one hidden layer, Adam, exact gradients."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

__all__ = ["Networks"]

Floats = NDArray[np.float64]

_FADES = (0.9, 0.999)  # of Adam's means of gradients and of their squares
_TINY = 1e-8


class Networks:
    """m networks with d inputs, h rectified hidden units and one logit, in one array.

    Parameters
    ----------
    weights
        All weights, of shape (m, (d + 2)·h + 1): input to hidden, hidden biases, hidden to output,
        output bias.
    n_features
        d.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> y = (X[:, 0] * X[:, 1] > 0).astype(float)
    >>> network = Networks.drawn(2, 10, rng)
    >>> network.train(X, y, np.array([400]), steps=500, minibatch=32, rate=0.01, rng=rng)
    >>> bool(((network.probability(X)[0] > 0.5) == y).mean() > 0.9)
    True
    """

    def __init__(self, weights: Floats, n_features: int) -> None:
        self.weights = weights
        self.n_features = n_features

    @staticmethod
    def drawn(n_features: int, n_hidden: int, rng: np.random.Generator) -> Networks:
        """Return one network, each weight even in ±1/√(number of inputs of its layer)."""
        first = rng.uniform(-1, 1, (n_features + 1) * n_hidden) / np.sqrt(n_features)
        second = rng.uniform(-1, 1, n_hidden + 1) / np.sqrt(n_hidden)
        return Networks(np.concatenate([first, second])[None], n_features)

    def copies(self, m: int) -> Networks:
        """Return m copies of the first network."""
        return Networks(np.repeat(self.weights[:1], m, axis=0), self.n_features)

    def probability(self, X: Floats) -> Floats:
        """Return P(good) of every person under every network, a row a network."""
        return np.asarray(expit(self._logit(X[None])[1]))

    def gradient(self, X: Floats, y: Floats) -> Floats:
        """Return each network's gradient of the mean log-loss on its own rows.

        ``X`` has shape (m, n, d), ``y`` has shape (m, n).
        """
        hidden, logit = self._logit(X)
        _, _, outer, _ = self._parts(self.weights)
        found = np.empty_like(self.weights)
        inner_slope, hidden_slope, outer_slope, last_slope = self._parts(found)
        excess = (expit(logit) - y) / y.shape[1]
        outer_slope[...] = np.matmul(excess[:, None], hidden)[:, 0]
        last_slope[...] = excess.sum(axis=1, keepdims=True)
        back = excess[:, :, None] * outer[:, None]
        back *= hidden > 0
        np.matmul(X.transpose(0, 2, 1), back, out=inner_slope)
        hidden_slope[...] = back.sum(axis=1)
        return found

    def train(
        self,
        X: Floats,
        y: Floats,
        ends: NDArray[np.intp],
        *,
        steps: int,
        minibatch: int,
        rate: float,
        rng: np.random.Generator,
        shared: int = 0,
    ) -> None:
        """Train every network by Adam, which starts anew with each call.

        Network k learns from the first ``shared`` rows and from those between ``ends[k-1]`` (or
        ``shared``, for the first) and ``ends[k]``, drawn with replacement.
        """
        begins = np.append(shared, ends[:-1])
        mean, square = np.zeros_like(self.weights), np.zeros_like(self.weights)
        for t, rows in enumerate(_minibatches(begins, ends, shared, steps, minibatch, rng), 1):
            slope = self.gradient(X[rows], y[rows])
            mean += (1 - _FADES[0]) * (slope - mean)
            square += (1 - _FADES[1]) * (slope * slope - square)
            size = rate * np.sqrt(1 - _FADES[1] ** t) / (1 - _FADES[0] ** t)
            self.weights -= size * mean / (np.sqrt(square) + _TINY)

    def _logit(self, X: Floats) -> tuple[Floats, Floats]:
        inner, bias, outer, last = self._parts(self.weights)
        hidden = np.matmul(X, inner)
        hidden += bias[:, None]
        np.maximum(hidden, 0, out=hidden)
        return hidden, np.matmul(hidden, outer[:, :, None])[:, :, 0] + last

    def _parts(self, flat: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return views: input to hidden, hidden biases, hidden to output, output bias."""
        m, d = flat.shape[0], self.n_features
        h = (flat.shape[1] - 1) // (d + 2)
        inner = flat[:, : d * h].reshape(m, d, h)
        return inner, flat[:, d * h : -h - 1], flat[:, -h - 1 : -1], flat[:, -1:]


def _minibatches(
    begins: NDArray[np.intp],
    ends: NDArray[np.intp],
    shared: int,
    steps: int,
    minibatch: int,
    rng: np.random.Generator,
) -> Iterator[NDArray[np.intp]]:
    """Yield the rows of each step, a row of them a network."""
    most = (shared + ends - begins)[:, None]
    shift = (begins - shared)[:, None]
    for _ in range(steps):
        drawn = rng.integers(0, most, size=(begins.size, minibatch))
        yield np.where(drawn < shared, drawn, drawn + shift)
