"""What full knowledge would earn: fixed rules that know all outcomes.

None of them is available in practice. Each is a score learned from all people of a data set, with
the threshold of largest utility among those whose FDR among the same people is at most α.

- The **ceiling** scores by gradient boosting, cross-fitted: no one is scored by a model that saw
  them. Where the truth is known, the ceiling scores by P(good) and is the exact optimum.
- The **best linear rule** is found by a direct search for utility under the bound.
- **Logistic with all labels** is an ordinary logistic model.

The ceiling is not a proven bound, but the strongest rule that is easily found.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import KFold
from sklearn.preprocessing import TargetEncoder

from fairchance.core.utility import Utility
from fairchance.learners.logistic import ConstrainedLogistic
from fairchance.learners.thresholds import OperatingPoint, shared_threshold
from fairchance.simulate.people import Floats, People, Table, WholePopulation
from fairchance.simulate.populations import Population
from fairchance.simulate.streams import Standardisation
from fairchance.simulate.worlds import World, whole_population
from fairchance_lab.baselines.direct_search import search_linear_rule
from fairchance_lab.baselines.opt_offline import FixedRule

__all__ = ["Reference", "best_linear", "ceiling", "logistic_all_labels"]

_FOLDS = 5
_MANY = 12  # values of a column, from which on their mean outcomes become a column too
_FEWEST = 10  # people with a value, on average, for these means to be worth anything
_DECIMALS = 6  # of standardised features, which undoes the rounding of standardisations

Score = Callable[[Floats, People], Floats]  # of standardised features, and of people as they were


class _Population:
    """All people of a source with their outcomes, standardised by all of them."""

    def __init__(self, source: Table | Population, groups: tuple[str, ...]) -> None:
        self.source = source
        self.groups = groups
        self.whole: WholePopulation = whole_population(source)
        self.scale = Standardisation.fit(self.whole.people.X, tuple(source.features), ())
        self.Z = self.features(self.whole.people)
        # People whose P(good) is known count as good in one row and as bad in another.
        good = self.whole.good
        weight = np.concatenate([self.whole.mass * good, self.whole.mass * (1 - good)]) * good.size
        self.row = np.flatnonzero(weight) % good.size
        self.outcome = (np.flatnonzero(weight) < good.size).astype(np.int8)
        self.weight = weight[weight > 0]

    def features(self, people: People) -> Floats:
        """Return standardised features; with one column per group but the first, if named."""
        Z = np.round(self.scale.apply(people).X, _DECIMALS) + 0.0  # no −0.0
        if len(self.groups) < 2:
            return Z
        return np.hstack([Z, people.group[:, None] == np.array(self.groups[1:])])


class Reference(FixedRule):
    """A rule for one world that was learned from all people of the world's source.

    Parameters
    ----------
    world
        The world whose people it decides on.
    population
        All people of the world's source.
    score
        Scores people.
    point
        The threshold, and what it earns among all people.

    Attributes
    ----------
    point
        As given.
    """

    def __init__(
        self, world: World, population: _Population, score: Score, point: OperatingPoint
    ) -> None:
        self.point = point
        self._scale = world.scale
        self._everybody = population
        self._model = score
        self._threshold = float(point.thresholds[0])
        self._judged: tuple[Floats, Floats] | None = None

    def acceptance_probability(self, X: Floats, *, sensitive_features: Any = None) -> Floats:
        """Return 1 for applicants that the rule accepts, 0 for others."""
        # A judge asks about the same people after every round.
        if self._judged is None or self._judged[0] is not X:
            p = super().acceptance_probability(X, sensitive_features=sensitive_features)
            self._judged = X, p
        return self._judged[1]

    def _score(self, X: Floats, group: Any) -> Floats:
        people = People(X, np.asarray(group))
        people = people if self._scale is None else self._scale.undo(people)
        return self._model(self._everybody.features(people), people)


def ceiling(
    world: World, utility: Utility, alpha: float, groups: tuple[str, ...] = ()
) -> Reference:
    """Return the ceiling of a world.

    Parameters
    ----------
    world
        The world, which must not drift.
    utility, alpha
        What decisions are worth, and the bound on the FDR.
    groups
        All groups, if the group is to be appended to the features.
    """
    learn = _boosted if isinstance(world.stream.source, Table) else _truth
    return _reference(world, utility, alpha, groups, learn)


def best_linear(
    world: World, utility: Utility, alpha: float, groups: tuple[str, ...] = ()
) -> Reference:
    """Return the best linear rule that a direct search finds; parameters as for `ceiling`."""

    def searched(population: _Population) -> Score:
        rule, _ = search_linear_rule(
            population.Z[population.row],
            population.outcome,
            population.weight,
            utility=utility,
            max_fdr=alpha,
        )
        return lambda Z, _: np.asarray(rule.score(Z, np.zeros(len(Z), np.intp)), np.float64)

    return _reference(world, utility, alpha, groups, searched, (utility, alpha))


def logistic_all_labels(
    world: World, utility: Utility, alpha: float, groups: tuple[str, ...] = ()
) -> Reference:
    """Return logistic regression with all labels; parameters as for `ceiling`."""
    return _reference(world, utility, alpha, groups, _logistic)


# The last few scores by what they were learned from: all repetitions of a run share them.
_LEARNED: dict[tuple[object, ...], tuple[_Population, Score, Floats]] = {}
_KEPT = 8


def _reference(
    world: World,
    utility: Utility,
    alpha: float,
    groups: tuple[str, ...],
    learn: Callable[[_Population], Score],
    task: tuple[object, ...] = (),
) -> Reference:
    """Return a reference; ``task`` is what the score depends on beside the people."""
    world.check_has_population()
    source = world.stream.source
    fingerprint = source.fingerprint if isinstance(source, Table) else joblib.hash(source)
    key = (learn.__name__, fingerprint, groups, *task)
    if key not in _LEARNED:
        population = _Population(source, groups)
        score = learn(population)
        if len(_LEARNED) == _KEPT:
            _LEARNED.pop(next(iter(_LEARNED)))
        _LEARNED[key] = population, score, score(population.Z, population.whole.people)
    population, score, scores = _LEARNED[key]
    point = shared_threshold(
        scores[population.row],
        population.outcome,
        population.weight,
        np.zeros(population.row.size, np.intp),
        1,
        utility=utility,
        max_fdr=alpha,
    )
    return Reference(world, population, score, point)


def _truth(population: _Population) -> Score:
    source = population.source
    assert not isinstance(source, Table)
    return lambda _, people: source.probability_good(people)


def _logistic(population: _Population) -> Score:
    model = ConstrainedLogistic().fit(
        population.Z[population.row], population.outcome, sample_weight=population.weight
    )
    return lambda Z, _: np.asarray(model.predict_proba(Z)[:, 1])


def _boosted(population: _Population) -> Score:
    """Return scores by boosted trees of the other folds.

    People with the same features are in the same fold. So scores are a function of features, and
    a person who is drawn again, as in German credit, never meets a model that saw them.
    """
    Z, outcome = population.Z, population.whole.good
    n_values = np.array([np.unique(column).size for column in Z.T])
    encoded = np.flatnonzero((n_values > _MANY) & (n_values * _FEWEST <= len(Z)))
    fold = _fold(Z)
    models = [_boost(Z[fold != k], outcome[fold != k], encoded) for k in range(_FOLDS)]

    def score(Z: Floats, _: People) -> Floats:
        fold, scores = _fold(Z), np.empty(len(Z))
        for k in np.unique(fold):
            scores[fold == k] = models[k](Z[fold == k])
        return scores

    return score


def _fold(Z: Floats) -> NDArray[np.intp]:
    return np.array([zlib.crc32(row) % _FOLDS for row in np.ascontiguousarray(Z)], np.intp)


def _boost(Z: Floats, outcome: Floats, encoded: NDArray[np.intp]) -> Callable[[Floats], Floats]:
    """Fit boosted trees to all columns, and to the mean outcomes of the values of some."""
    if np.unique(outcome).size < 2:
        return lambda Z: np.zeros(len(Z))
    model = HistGradientBoostingClassifier(
        learning_rate=0.08,
        max_iter=int(np.clip(20 + len(Z) / 40, 40, 200)),
        max_leaf_nodes=8,
        l2_regularization=1.0,
        early_stopping=False,
        random_state=0,
    )
    if not encoded.size:
        model.fit(Z, outcome)
        return lambda Z: np.asarray(model.predict_proba(Z)[:, 1])
    codes, means = Z[:, encoded], np.empty((len(Z), encoded.size))
    # No one's own outcome may be in a mean. TargetEncoder can do this by itself, but how it is
    # seeded differs between versions.
    for others, these in KFold(_FOLDS, shuffle=True, random_state=0).split(Z):
        means[these] = _encoder().fit(codes[others], outcome[others]).transform(codes[these])
    encoder = _encoder().fit(codes, outcome)
    model.fit(np.hstack([Z, means]), outcome)
    return lambda Z: np.asarray(
        model.predict_proba(np.hstack([Z, encoder.transform(Z[:, encoded])]))[:, 1]
    )


def _encoder() -> TargetEncoder:
    return TargetEncoder(target_type="continuous")  # of one outcome only too
