"""How the past selected its applicants, asked of the history alone.

Two readings of a history explain who was accepted and what became of the accepted:

- **features**: P(accepted | x) = a(x), any function, and P(good | x, accepted) = q(x);
- **outcome**: P(accepted | good) = s₁ and P(accepted | bad) = s₀, whatever the features, so that
  a good applicant is accepted with s₁·p(x), a bad one with s₀·(1 − p(x)), and an applicant is
  rejected with 1 − s₁·p(x) − s₀·(1 − p(x)).

The functions a, q and p are boosted trees of the same size; p is fitted by expectation maximisation
with soft labels of the rejected. Both readings are cross-fitted, and the difference of their
log-likelihoods per applicant (the gain of features) is compared with its standard error. There is
no third reading: a past that selected on both is read as features if these explain it better.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from fairchance.core.decisions import Note
from fairchance.core.saved import saved

__all__ = ["PastReading", "read_past"]

Floats = NDArray[np.float64]
_FOLDS = 3
_MOST = 5_000  # applicants that are read; larger histories are thinned
_CLEARLY = 3.0  # standard errors
_LEANS = -2.0  # the same, for what is assumed until it is known
_FEWEST = 5_000  # applicants of a history that may be read as selected on the outcome
_FEWEST_OF_A_KIND = 10  # accepted good, accepted bad and rejected applicants
_STEPS = 8  # of expectation maximisation, each with a fit of trees …
_RATE_STEPS = 20  # … and so many of s₁ and s₀
_LEAST = 1e-3  # probability that a model may give
_BINS = 32  # of a column
_PER_TREE = 10  # applicants of the rarer label
_TREES_OF_A_MODEL = (4, 30)
_TREES: dict[str, Any] = {
    "learning_rate": 0.2,
    "max_leaf_nodes": 8,
    "l2_regularization": 1.0,
    "max_bins": _BINS,
    "early_stopping": False,
    "random_state": 0,
}


@saved
@dataclass(frozen=True)
class PastReading:
    """What a history says about how it was selected.

    Attributes
    ----------
    selected_on
        ``"features"``, ``"outcome"``, or ``"unknown"`` if the history does not tell them apart.
    gain, z
        By how much the features explain an applicant better than the outcome does, in
        log-likelihood, and the same in standard errors; None if there are too few applicants.
    """

    selected_on: Literal["features", "outcome", "unknown"]
    gain: float | None = None
    z: float | None = None

    def note(self, *, beside: bool) -> Note:
        """Return the reading as a note of a round, perhaps one beside the lender's own process."""
        facts = asdict(self) | ({"beside": True} if beside else {})
        return Note("past_read", dict(sorted(facts.items())))  # as ledgers have them

    @property
    def leaning(self) -> Literal["features", "outcome"]:
        """What to assume of an unknown selection until outcomes of our own decide.

        Learning from the rejected is dear if the past selected on features, and leaving them out
        is cheap if it selected on the outcome.
        """
        return "outcome" if self.z is not None and self.z < _LEANS else "features"


def read_past(
    X: Floats, outcome: NDArray[np.int8], rejected: Floats, categorical: tuple[int, ...] = ()
) -> PastReading:
    """Return how the past selected, by its accepted applicants and the features of its rejected.

    ``categorical`` are the positions of columns that hold the codes of categories.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2))
    >>> good = (rng.random(2000) < 1 / (1 + np.exp(-X[:, 0]))).astype(np.int8)
    >>> cut = X[:, 0] + X[:, 1] > 0
    >>> read_past(X[cut], good[cut], X[~cut]).selected_on
    'features'
    """
    kinds = int(np.sum(outcome == 1)), int(np.sum(outcome == 0)), len(rejected)
    if min(kinds) < _FEWEST_OF_A_KIND:
        return PastReading("unknown")
    people = np.vstack([X, rejected])
    kind = np.concatenate([outcome, np.full(len(rejected), -1)])  # −1 is rejected
    # Neither the sample nor the folds depend on the order of rows.
    order = np.lexsort([kind, *people.T])
    n_all = order.size
    if n_all > _MOST:
        order = order[np.linspace(0, n_all - 1, _MOST).astype(np.intp)]
    people, kind = people[order], kind[order]
    people = np.column_stack([_binned(x, i in categorical) for i, x in enumerate(people.T)])
    fold = np.random.default_rng(0).permutation(kind.size) % _FOLDS
    gain = np.empty(kind.size)
    with threadpool_limits(1):  # several threads would sum in another order each time
        for number in range(_FOLDS):
            train, test = fold != number, fold == number
            models = _Readings(people[train], kind[train], categorical)
            gain[test] = models.gain(people[test], kind[test])
    mean, error = float(gain.mean()), float(gain.std(ddof=1) / np.sqrt(gain.size))
    z = mean / error if error > 0 else 0.0
    if z > _CLEARLY:
        return PastReading("features", mean, z)
    return PastReading("outcome" if z < -_CLEARLY and n_all >= _FEWEST else "unknown", mean, z)


class _Readings:
    """Both readings, fitted to some applicants."""

    def __init__(self, X: Floats, kind: NDArray[np.int8], categorical: tuple[int, ...]) -> None:
        accepted, _fit = kind >= 0, partial(_fitted, categorical)
        self.a = _fit(X, accepted, np.ones(kind.size))
        self.q = _fit(X[accepted], kind[accepted] == 1, np.ones(int(accepted.sum())))
        refused, n_good, n_bad = X[~accepted], np.sum(kind == 1), np.sum(kind == 0)
        # Under selection on the outcome those who look accepted look good, so g starts at a.
        g = _probability(self.a, refused)
        together = np.vstack([X[accepted], refused, refused])
        label = np.concatenate([kind[accepted] == 1, g > -1, g < -1])
        for _ in range(_STEPS):
            self.p = _fit(together, label, np.concatenate([np.ones(accepted.sum()), g, 1 - g]))
            p = _probability(self.p, refused)
            for _ in range(_RATE_STEPS):
                s1, s0 = n_good / (n_good + g.sum()), n_bad / (n_bad + (1 - g).sum())
                good, bad = p * (1 - s1), (1 - p) * (1 - s0)
                g = good / np.maximum(good + bad, _LEAST**2)
        self.s1, self.s0 = s1, s0

    def gain(self, X: Floats, kind: NDArray[np.int8]) -> Floats:
        """Return each applicant's log-likelihood by features, less that by the outcome."""
        a, q, p = (_probability(model, X) for model in (self.a, self.q, self.p))
        good, bad = self.s1 * p, self.s0 * (1 - p)
        by_features = np.select([kind == 1, kind == 0], [a * q, a * (1 - q)], 1 - a)
        by_outcome = np.select([kind == 1, kind == 0], [good, bad], 1 - good - bad)
        return np.asarray(np.log(by_features) - np.log(np.maximum(by_outcome, _LEAST**2)))


def _binned(x: Floats, category: bool) -> Floats:
    """Return the number of each value's bin; missing values stay missing."""
    present = ~np.isnan(x)
    values, at, counts = np.unique(x[present], return_inverse=True, return_counts=True)
    if category:  # the rare ones together
        rank = np.empty(values.size)
        rank[np.argsort(-counts, kind="stable")] = np.arange(values.size)
        bins = np.minimum(rank, _BINS - 1)
    elif values.size > _BINS:
        cuts = np.quantile(x[present], np.arange(1, _BINS) / _BINS)
        bins = np.searchsorted(cuts, values, side="right").astype(np.float64)
    else:
        bins = np.arange(values.size, dtype=np.float64)
    binned = np.full(x.size, np.nan)
    binned[present] = bins[at]
    return binned


def _fitted(
    categorical: tuple[int, ...], X: Floats, label: NDArray[np.bool_], weight: Floats
) -> HistGradientBoostingClassifier:
    """Fit trees, fewer of them to few applicants of a label."""
    few = min(weight[label].sum(), weight[~label].sum())
    n_trees = int(np.clip(few / _PER_TREE, *_TREES_OF_A_MODEL))
    model = HistGradientBoostingClassifier(
        max_iter=n_trees, categorical_features=list(categorical), **_TREES
    )
    return model.fit(X, label, weight)


def _probability(model: HistGradientBoostingClassifier, X: Floats) -> Floats:
    return np.asarray(np.clip(model.predict_proba(X)[:, -1], _LEAST, 1 - _LEAST))
