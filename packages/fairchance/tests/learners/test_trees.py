"""Trees as arrays: scored like the model they come from, and refused if they are damaged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier

from fairchance.errors import InputError
from fairchance.learners.trees import BoostedTrees, EncodedColumn
from fairchance.learners.wrap import as_likelihood
from fairchance.methods.storage import dumps, loads
from fairchance.people.likelihoods import EstimatorLikelihood


def people(n, rng):
    """Return applicants with a number, a code, a category and numbers that are missing."""
    X = np.column_stack(
        [
            rng.normal(size=n),
            rng.integers(0, 30, n),
            rng.choice([1.0, 2.5, 40.0, 7.0, np.nan], n),
            np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            np.where(rng.random(n) < 0.2, np.nan, 5.0),
        ]
    )
    score = 2 * X[:, 0] + X[:, 1] % 2 - 2 * (X[:, 2] == 7) + np.isnan(X[:, 4])
    return X, (rng.random(n) < expit(score + np.nan_to_num(X[:, 3]))).astype(np.int8)


def strangers(X, rng):
    """Return values that a model did not see: thresholds, other categories, infinities."""
    other = X.copy()
    rows = rng.integers(0, len(X), 400)
    other[rows[:100], 2] = rng.choice([0.0, 3.0, 100.0, -1.0], 100)
    other[rows[100:200], 1] = rng.choice([-5.0, 14.5, 99.0], 100)
    other[rows[200:], 3] = rng.choice([-np.inf, np.inf, 1e300], 200)
    return other


MODELS = {
    "few leaves": {"max_leaf_nodes": 8, "max_iter": 60},
    "stumps": {"max_leaf_nodes": 2, "max_iter": 30},
    "default": {"max_iter": 20},
    "many leaves": {"max_leaf_nodes": 64, "min_samples_leaf": 3, "max_iter": 10},
    "uneven": {"max_leaf_nodes": 20, "max_depth": 3, "min_samples_leaf": 200},
    "categories": {"categorical_features": [2, 1], "max_iter": 30},
    "one leaf": {"min_samples_leaf": 5000, "max_iter": 3},
}


def fitted(name, rng):
    X, y = people(3000, rng)
    return HistGradientBoostingClassifier(random_state=0, **MODELS[name]).fit(X, y), X


@pytest.mark.parametrize("name", MODELS)
def test_trees_score_like_the_model_they_come_from(rng, name):
    model, X = fitted(name, rng)
    trees = as_likelihood(model, 1)
    assert isinstance(trees, BoostedTrees)
    for seen in (X, strangers(X, rng)):
        score = trees.score(seen, None)
        assert score == pytest.approx(model.predict_proba(seen)[:, 1], abs=1e-12, rel=0)
        assert trees.log_odds(seen) == pytest.approx(model.decision_function(seen), abs=1e-12)
        # Nobody's score depends on who else is scored.
        alone = [trees.score(row[None], None)[0] for row in seen[:200]]
        assert np.array_equal(alone, score[:200])
    # A threshold goes left.
    inner = np.flatnonzero(trees.feature >= 0)[:50]
    at = X[: max(inner.size, 1)].copy()
    at[np.arange(inner.size), trees.feature[inner]] = trees.threshold[inner]
    assert trees.log_odds(at) == pytest.approx(model.decision_function(at), abs=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_stored_trees_score_alike(rng, name):
    model, X = fitted(name, rng)
    trees = BoostedTrees.of(model)
    score = trees.score(X, None)  # the tables that it makes are not stored
    again = loads(dumps(trees), holds=BoostedTrees)
    assert vars(again).keys() < vars(trees).keys()
    assert np.array_equal(again.score(X, None), score)


def test_larger_trees_stay_as_they_are(rng):
    X, y = people(3000, rng)
    model = HistGradientBoostingClassifier(max_leaf_nodes=65, min_samples_leaf=2, max_iter=3)
    assert isinstance(as_likelihood(model.fit(X, y), 1), EstimatorLikelihood)
    with pytest.raises(InputError):
        BoostedTrees.of(model).log_odds(X)


def test_encodings_follow_the_columns(rng):
    X, y = people(2000, rng)
    encoded = (EncodedColumn(1, np.arange(10.0), rng.random(10), 0.5),)
    seen = np.column_stack([X, np.where(X[:, 1] < 10, encoded[0].encode(X[:, 1]), 0.5)])
    model = HistGradientBoostingClassifier(max_iter=20).fit(seen, y)
    odds = BoostedTrees.of(model, encoded).log_odds(X)
    assert odds == pytest.approx(model.decision_function(seen), abs=1e-12)


DAMAGES = {
    "in circles": ("left", 0),
    "beyond": ("right", 100_000),
    "before": ("left", -1),
    "twice": ("right", 1),
    "no such column": ("feature", 99),
    "a leaf with children": ("feature", -1),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_nodes_that_are_no_trees_are_refused(rng, name):
    model, X = fitted("categories", rng)
    trees = BoostedTrees.of(model)
    field, value = DAMAGES[name]
    changed = getattr(trees, field).copy()
    changed[np.flatnonzero(trees.feature >= 0)[2]] = value
    with pytest.raises(InputError):
        replace(trees, **{field: changed}).log_odds(X)


@pytest.mark.parametrize(
    "field", ["feature", "threshold", "missing_left", "left", "right", "value", "ends", "sets"]
)
def test_arrays_that_are_too_short_are_refused(rng, field):
    model, X = fitted("categories", rng)
    trees = BoostedTrees.of(model)
    with pytest.raises(InputError):
        replace(trees, **{field: getattr(trees, field)[:-1]}).log_odds(X)
    with pytest.raises(InputError):
        replace(trees, sets=trees.sets[:, :3]).log_odds(X)


def test_children_in_another_tree_are_refused(rng):
    model, X = fitted("stumps", rng)
    trees = BoostedTrees.of(model)
    left = trees.left.copy()
    left[[0, 3]] = left[[3, 0]]  # each node still follows exactly one other
    with pytest.raises(InputError):
        replace(trees, left=left).log_odds(X)


def test_other_columns_than_the_trees_see_are_refused(rng):
    model, X = fitted("default", rng)
    with pytest.raises(InputError):
        BoostedTrees.of(model).log_odds(X[:, :3])
