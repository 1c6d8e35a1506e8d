"""Estimators of others in a file: no cache, no files that they name, trees that can be walked."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import skops.io
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from fairchance.errors import InputError, UntrustedError
from fairchance.methods.storage import dump_estimator, load_estimator


def people(n=120):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    X[:, 2] = rng.integers(0, 5, n)
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


def again(estimator):
    content = dump_estimator(estimator)
    return load_estimator(content, skops.io.get_untrusted_types(data=content))


def test_a_cache_is_left_behind(tmp_path):
    cached = make_pipeline(StandardScaler(), LogisticRegression(), memory=str(tmp_path / "cache"))
    learner = make_pipeline(StandardScaler(), cached)
    found = again(GridSearchCV(learner, {"pipeline": [cached]}, cv=2))
    assert found.estimator.steps[1][1].memory is None
    assert found.param_grid["pipeline"][0].memory is None
    assert cached.memory is not None
    X, y = people()
    assert np.array_equal(found.fit(X, y).predict(X), again(learner).fit(X, y).predict(X))
    assert not (tmp_path / "cache").exists()


PIPELINE = make_pipeline(StandardScaler(), LogisticRegression())
READERS = {
    "grid": GridSearchCV(PIPELINE, {"memory": ["cache"]}),
    "grids": GridSearchCV(PIPELINE, [{"memory": [None]}, {"memory": np.array(["cache"])}]),
    "drawn": RandomizedSearchCV(PIPELINE, {"memory": ["cache"]}),
    "within": make_pipeline(GridSearchCV(make_pipeline(PIPELINE), {"pipeline__memory": ["cache"]})),
    "words": make_pipeline(CountVectorizer(input="filename"), LogisticRegression()),
    "grid of words": GridSearchCV(make_pipeline(CountVectorizer()), {"x__input": ["file"]}),
}


@pytest.mark.parametrize("name", READERS)
def test_estimators_that_read_files_are_refused(name):
    with pytest.raises(UntrustedError):
        dump_estimator(READERS[name])
    content = skops.io.dumps(READERS[name])
    with pytest.raises(UntrustedError):
        load_estimator(content, skops.io.get_untrusted_types(data=content))


def test_words_and_grids_that_read_no_file_are_kept():
    words = CountVectorizer().fit(["memory input filename"])
    assert again(words).vocabulary_ == words.vocabulary_
    assert again(GridSearchCV(PIPELINE, {"memory": [None]})).param_grid == {"memory": [None]}


TREES = {
    "tree": DecisionTreeClassifier(random_state=0),
    "pruned": DecisionTreeClassifier(ccp_alpha=0.01, random_state=0),
    "best first": DecisionTreeClassifier(max_leaf_nodes=7, random_state=0),
    "stump of one": DecisionTreeClassifier(max_depth=1, min_samples_split=1000),
    "forest": RandomForestClassifier(5, random_state=0),
    "extra": ExtraTreesClassifier(5, random_state=0),
    "boosted": GradientBoostingClassifier(n_estimators=5, random_state=0),
    "adaptive": AdaBoostClassifier(n_estimators=5, random_state=0),
    "bagged": BaggingClassifier(DecisionTreeClassifier(), 5, max_features=2, random_state=0),
    "bins": HistGradientBoostingClassifier(max_iter=5, random_state=0),
    "categories": HistGradientBoostingClassifier(max_iter=5, categorical_features=[2]),
}


@pytest.mark.parametrize("name", TREES)
def test_trees_as_they_were_built_are_loaded(name):
    X, y = people()
    model = copy.deepcopy(TREES[name]).fit(X, y)
    assert np.array_equal(again(model).predict_proba(X), model.predict_proba(X))


def damaged_nodes(tree, change):
    """Change a tree's nodes as somebody could in a file; return the tree that would be made."""
    state = tree.__getstate__()
    nodes = state["nodes"].copy()
    change(nodes)
    made = type(tree)(tree.n_features, np.asarray(tree.n_classes), tree.n_outputs)
    made.__setstate__({**state, "nodes": nodes})
    return made


def set_to(field, value, at=0):
    def change(nodes):
        nodes[field][at] = value

    return change


NODES = {
    "beyond": set_to("left_child", 2**40),
    "right beyond": set_to("right_child", 2**40),
    "in circles": set_to("left_child", 0),
    "before": set_to("right_child", -5),
    "feature beyond": set_to("feature", 3),
    "no feature": set_to("feature", -3),
}


@pytest.mark.parametrize("name", NODES)
@pytest.mark.parametrize("kind", ["tree", "forest", "boosted", "adaptive"])
def test_nodes_that_lead_nowhere_are_refused(kind, name):
    X, y = people()
    model = copy.deepcopy(TREES[kind]).fit(X, y)
    each = model if kind == "tree" else np.ravel(model.estimators_)[-1]
    each.tree_ = damaged_nodes(each.tree_, NODES[name])
    with pytest.raises(InputError):
        again(model)


PREDICTORS = {
    "beyond": set_to("left", 1000),
    "right beyond": set_to("right", 1000),
    "in circles": set_to("right", 0),
    "feature beyond": set_to("feature_idx", 3),
    "no feature": set_to("feature_idx", -1),
}


@pytest.mark.parametrize("name", PREDICTORS)
def test_nodes_of_bins_that_lead_nowhere_are_refused(name):
    X, y = people()
    model = copy.deepcopy(TREES["bins"]).fit(X, y)
    PREDICTORS[name](model._predictors[-1][0].nodes)
    with pytest.raises(InputError, match="HistGradientBoostingClassifier"):
        again(model)


def test_a_category_beyond_the_sets_is_refused():
    X, _ = people()
    model = copy.deepcopy(TREES["categories"]).fit(X, 1 * (X[:, 2] % 2 == 0))
    nodes = model._predictors[0][0].nodes
    at = np.flatnonzero(nodes["is_categorical"])[0]
    nodes["bitset_idx"][at] = 99
    with pytest.raises(InputError):
        again(model)


@pytest.mark.parametrize("kind", ["tree", "forest", "boosted", "bins"])
def test_trees_that_read_more_features_than_there_are_are_refused(kind):
    X, y = people()
    model = copy.deepcopy(TREES[kind]).fit(X, y)
    assert X.shape[1] == 3
    model.n_features_in_ = 1
    with pytest.raises(InputError):
        again(model)


def test_more_trees_a_round_than_there_is_room_for_are_refused():
    X, y = people()
    model = copy.deepcopy(TREES["boosted"]).fit(X, y)
    model.estimators_ = np.hstack([model.estimators_] * 3)
    with pytest.raises(InputError):
        again(model)
