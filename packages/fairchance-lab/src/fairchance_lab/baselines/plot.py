"""Pacchiano et al. 2021 (PLOT): call a few doubtful people good, and see whether a model agrees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from fairchance.core.sampling import coin_flips
from fairchance.errors import InputError
from fairchance.people.intake import Batch, History
from fairchance_lab.baselines.base import CODE, Baseline, Decided, Floats, Sources
from fairchance_lab.baselines.greedy import ALIGNED, check_share
from fairchance_lab.baselines.logistic import fit_logistics, linear_scores

__all__ = [
    "LogisticOptimist",
    "NetworkOptimist",
    "Optimist",
    "PseudoLabelOptimism",
    "SmallNetworks",
]


_FADES = (0.9, 0.999)  # of Adam's means of gradients and of their squares
_TINY = 1e-8


class SmallNetworks:
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
    >>> network = SmallNetworks.drawn(2, 10, rng)
    >>> network.train(X, y, np.array([400]), steps=500, minibatch=32, rate=0.01, rng=rng)
    >>> bool(((network.probability(X)[0] > 0.5) == y).mean() > 0.9)
    True
    """

    def __init__(self, weights: Floats, n_features: int) -> None:
        self.weights = weights
        self.n_features = n_features

    @staticmethod
    def drawn(n_features: int, n_hidden: int, rng: np.random.Generator) -> SmallNetworks:
        """Return one network, each weight even in ±1/√(number of inputs of its layer)."""
        first = rng.uniform(-1, 1, (n_features + 1) * n_hidden) / np.sqrt(n_features)
        second = rng.uniform(-1, 1, n_hidden + 1) / np.sqrt(n_hidden)
        return SmallNetworks(np.concatenate([first, second])[None], n_features)

    def copies(self, m: int) -> SmallNetworks:
        """Return m copies of the first network."""
        return SmallNetworks(np.repeat(self.weights[:1], m, axis=0), self.n_features)

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
        # Another applicant would have taken the place of one of the chunk.
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
        self._base = SmallNetworks.drawn(n_features, n_hidden, rng)
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
        alone = (SmallNetworks(one[None], hopes.n_features) for one in hopes.weights)
        return [net.probability(one)[0] for net, one in zip(alone, chunks, strict=True)]

    def hoped(self, X: Floats) -> Floats:
        """Return P(good) under each of the last models, in none of which a person's own hope is."""
        return self._hopes.probability(X)

    def _train(
        self,
        networks: SmallNetworks,
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


_CANDIDATE, _ORDER = 7, 8  # purposes of a round's randomness


@dataclass(eq=False, repr=False)
class PseudoLabelOptimism(Baseline):
    """Accept applicants that the model accepts, and candidates that an optimistic model accepts.

    Of the people at or below the threshold each becomes a candidate with probability ε_t. They are
    taken in small chunks; for each chunk the model is trained further as if its people had turned
    out good, and the candidates that this model puts above the threshold are accepted. Then the
    pretended outcomes are forgotten, and the model learns from the true ones. With much data the
    pretence moves nothing, so exploring ends by itself.

    The propensity is 1 above the threshold. Below it is ε_t times the chance that the optimistic
    model agrees, over the candidates that might have been in the same chunk, which is not known:
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
    (29, True)
    """

    threshold: float = 0.5
    _: KW_ONLY
    model: Literal["logistic", "network"] = "logistic"
    epsilon: float = 0.2
    decay: bool = True
    chunk: int = 32
    l2: float = 1.0
    n_hidden: int = 40
    learning_rate: float = 0.01
    steps: int = 100
    pseudo_steps: int = 8
    minibatch: int | None = None

    propensity_known: ClassVar[bool] = False
    settings: ClassVar[dict[str, dict[str, Any]]] = {
        "published": {"threshold": 0.5},
        "aligned": {"threshold": ALIGNED},
    }
    sources: ClassVar[Sources] = {
        "published": {
            CODE: ("threshold", "epsilon", "n_hidden", "learning_rate", "steps", "pseudo_steps")
        }
    }

    def _start(self, history: History) -> None:
        self._check_parameters()
        self._optimist = self._fresh(history)
        self._learn()

    def _learn(self) -> None:
        rows = self._labelled()
        self._optimist.learn(rows.X, rows.outcome.astype(np.float64), self._rng())

    def _decide(self, batch: Batch) -> Decided:
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
        return Decided(accepted, np.where(score > self.threshold, 1.0, unknown), score)

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
