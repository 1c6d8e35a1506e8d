"""ClusteredDomain: purity against slow counts; outcomes of the rejected are not read."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.cluster import DBSCAN, KMeans, MiniBatchKMeans
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairchance.errors import InputError
from fairchance_lab.finite.clusters import ClusteredDomain

CLUSTERERS = {
    "k-means": KMeans(6, n_init=1, random_state=0),
    "mini-batch": MiniBatchKMeans(6, n_init=1, random_state=0),
    "mixture": GaussianMixture(4, random_state=0),
    "pipeline": make_pipeline(StandardScaler(), KMeans(3, n_init=1, random_state=0)),
    "tree": DecisionTreeClassifier(max_leaf_nodes=7, random_state=0),
    "regression tree": DecisionTreeRegressor(max_leaf_nodes=7, random_state=0),
}
every_clusterer = pytest.mark.parametrize("clusterer", CLUSTERERS.values(), ids=CLUSTERERS.keys())


class Sealed:
    """An outcome that must not be read."""

    def _opened(self, *args):
        raise AssertionError("the outcome of a rejected applicant was read")

    __eq__ = __ne__ = __lt__ = __gt__ = __hash__ = __float__ = __int__ = __bool__ = _opened
    __str__ = __repr__ = __index__ = _opened


@parametrize_with_checks(
    [
        ClusteredDomain(),
        ClusteredDomain(DecisionTreeClassifier(max_depth=3, random_state=0)),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture
def applicants(rng):
    X = rng.normal(size=(600, 2))
    good = (rng.random(600) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(int)
    accepted = rng.random(600) < 0.2 + 0.6 * (X[:, 1] > 0)
    return X, good, accepted


def count_slowly(cell, good, accepted):
    """Count applicant by applicant."""
    counts = {}
    for c, y, is_accepted in zip(cell.tolist(), good.tolist(), accepted.tolist(), strict=True):
        row = counts.setdefault(c, [0, 0, 0])
        row[0] += 1
        row[1] += is_accepted
        row[2] += is_accepted and y
    rows = []
    for c, (n, seen, n_good) in sorted(counts.items()):
        share = n_good / seen if seen else np.nan
        rows.append((c, n, seen, share, max(share, 1 - share) if seen else np.nan))
    return rows


@every_clusterer
def test_purity_agrees_with_slow_counts(applicants, clusterer):
    X, good, accepted = applicants
    domain = ClusteredDomain(clusterer).fit(X, good, accepted=accepted)
    cell = domain.transform(X)[:, 0]
    assert np.unique(cell).size > 2
    assert domain.cells_.tolist() == np.unique(cell).tolist()
    expected = count_slowly(cell, good, accepted)
    np.testing.assert_array_equal(np.array(domain.purity_.tolist()), np.array(expected))
    part = slice(0, 40)
    later = domain.purity(X[part], good[part], accepted=accepted[part])
    expected = count_slowly(cell[part], good[part], accepted[part])
    np.testing.assert_array_equal(np.array(later.tolist()), np.array(expected))


def test_the_larger_label_is_good(applicants):
    X, good, accepted = applicants
    domain = ClusteredDomain(CLUSTERERS["k-means"])
    table = domain.fit(X, good, accepted=accepted).purity_
    words = domain.fit(X, np.where(good == 1, "paid", "late"), accepted=accepted).purity_
    np.testing.assert_array_equal(words, table)
    assert not domain.fit(X, np.zeros(600)).purity_["share_good"].any()


def test_purity_of_a_cluster_without_outcomes_is_missing(applicants):
    X, good, _ = applicants
    domain = ClusteredDomain(KMeans(4, n_init=1, random_state=0))
    cell = domain.fit(X).transform(X)[:, 0]
    table = domain.fit(X, good, accepted=cell != 2).purity_
    row = table[table["cell"] == 2]
    assert row["people"] == (cell == 2).sum() > 0
    assert row["seen"] == 0
    assert np.isnan(row["share_good"])
    assert np.isnan(row["purity"])
    assert np.isfinite(table["purity"]).sum() == 3


@every_clusterer
def test_outcomes_of_rejected_applicants_are_not_read(applicants, clusterer):
    X, good, accepted = applicants
    sealed = good.astype(object)
    sealed[~accepted] = Sealed()
    with pytest.raises(AssertionError, match="was read"):  # the control
        ClusteredDomain(clusterer).fit(X, sealed)
    domain = ClusteredDomain(clusterer).fit(X, sealed, accepted=accepted)
    usual = ClusteredDomain(clusterer).fit(X, good, accepted=accepted)
    np.testing.assert_array_equal(domain.transform(X), usual.transform(X))
    np.testing.assert_array_equal(domain.purity_, usual.purity_)
    np.testing.assert_array_equal(domain.purity(X, sealed, accepted=accepted), usual.purity_)


def test_tree_learns_from_the_accepted_only(applicants):
    X, good, accepted = applicants
    tree = CLUSTERERS["tree"]
    domain = ClusteredDomain(tree).fit(X, good, accepted=accepted)
    alone = clone(tree).fit(X[accepted], good[accepted])
    np.testing.assert_array_equal(domain.transform(X)[:, 0], alone.apply(X))
    on_all = clone(tree).fit(X, good)
    assert (on_all.apply(X) != alone.apply(X)).any()


def test_unknown_outcomes_do_not_count(applicants):
    X, good, accepted = applicants
    late = np.arange(600) % 3 == 0
    partly = np.where(late, np.nan, good)
    domain = ClusteredDomain(KMeans(3, n_init=1, random_state=0))
    table = domain.fit(X, partly, accepted=accepted).purity_
    np.testing.assert_array_equal(table, domain.fit(X, good, accepted=accepted & ~late).purity_)
    none = domain.fit(X, np.full(600, np.nan)).purity_
    assert np.isnan(none["purity"]).all()
    assert none["people"].sum() == 600


def test_finer_clusters_are_purer_if_features_determine_outcomes(rng):
    X = rng.uniform(size=(2000, 1))
    good = (np.floor(8 * X[:, 0]) % 2).astype(int)
    purity = []
    for k in (2, 8, 64):
        domain = ClusteredDomain(KMeans(k, n_init=1, random_state=0))
        table = domain.fit(X, good).purity_
        purity.append(np.average(table["purity"], weights=table["people"]))
    assert purity[0] < 0.65
    assert purity[0] < purity[1] < purity[2]
    assert purity[2] > 0.9


def test_fitted_clusterer_is_not_fitted_again(applicants):
    X, good, accepted = applicants
    fitted = KMeans(5, n_init=1, random_state=3).fit(X + 0.5)
    fresh = KMeans(5, n_init=1, random_state=3).fit(X)
    assert (fitted.predict(X) != fresh.predict(X)).any()
    domain = ClusteredDomain(fitted).fit(X, good, accepted=accepted)
    assert domain.clusterer_ is fitted
    np.testing.assert_array_equal(domain.transform(X)[:, 0], fitted.predict(X))
    frozen = clone(ClusteredDomain(FrozenEstimator(fitted))).fit(X)
    np.testing.assert_array_equal(frozen.transform(X)[:, 0], fitted.predict(X))
    tree = DecisionTreeClassifier(max_depth=2).fit(X[accepted], good[accepted])
    for fitted_tree in (tree, FrozenEstimator(tree)):
        domain = ClusteredDomain(fitted_tree).fit(X)  # needs no outcomes
        np.testing.assert_array_equal(domain.transform(X)[:, 0], tree.apply(X))
        assert domain.purity_ is None


def test_cell_without_applicants_at_fit_has_its_own_number():
    fitted = KMeans(2, n_init=1, random_state=0).fit([[0.0], [9.0]])
    domain = ClusteredDomain(fitted).fit([[0.0], [0.1]])
    assert domain.cells_.size == 1
    assert domain.transform([[8.0]])[0, 0] not in domain.cells_


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_give_the_cells_of_arrays(applicants, frame):
    X, good, accepted = applicants
    table = frame({"income": X[:, 0], "age": X[:, 1]})
    clusterer = CLUSTERERS["k-means"]
    plain = ClusteredDomain(clusterer).fit(X, good, accepted=accepted)
    domain = ClusteredDomain(clusterer).fit(table, pl.Series(good), accepted=pd.Series(accepted))
    np.testing.assert_array_equal(domain.transform(table), plain.transform(X))
    np.testing.assert_array_equal(domain.purity_, plain.purity_)
    assert domain.feature_names_in_.tolist() == ["income", "age"]
    with pytest.raises(ValueError, match="order"):
        domain.transform(frame({"age": X[:, 1], "income": X[:, 0]}))
    with pytest.raises(InputError, match="'trade'"):
        domain.fit(frame({"trade": ["smith", "baker"]}))


def test_frame_output_and_pipeline(applicants):
    X, good, _ = applicants
    domain = ClusteredDomain(CLUSTERERS["k-means"]).set_output(transform="pandas")
    frame = domain.fit_transform(X, good)
    assert frame.columns.tolist() == domain.get_feature_names_out().tolist() == ["cell"]
    assert frame["cell"].dtype == np.int64
    chain = make_pipeline(StandardScaler(), domain, DecisionTreeClassifier()).fit(X, good)
    assert chain.score(X, good) > 0.6
    assert pd.DataFrame(domain.purity_)["people"].sum() == 600


@pytest.mark.parametrize(
    ("clusterer", "message"),
    [
        (DBSCAN(), r"DBSCAN\(\)"),
        (RandomForestClassifier(3, random_state=0), r"\(600, 3\)"),
        (LinearRegression().fit([[0.0, 1.0]], [1.0]), "float64"),
    ],
)
def test_estimators_that_give_no_cells_are_refused(applicants, clusterer, message):
    X, good, _ = applicants
    with pytest.raises(InputError, match=message):
        ClusteredDomain(clusterer).fit(X, good)


def test_wrong_input_is_refused(applicants):
    X, good, accepted = applicants
    domain = ClusteredDomain(CLUSTERERS["tree"])
    for named, arguments in (
        ("y", {"y": good, "accepted": np.zeros(600, bool)}),
        ("y", {"y": np.full(600, np.nan)}),
        ("y.* 3", {"y": np.arange(600) % 3}),
        ("y", {"y": good[1:]}),
        ("accepted", {"y": good, "accepted": good + 1}),
        ("accepted", {"y": good, "accepted": accepted[1:]}),
    ):
        with pytest.raises(InputError, match=named):
            domain.fit(X, **arguments)
    with pytest.raises(InputError, match="y"):
        ClusteredDomain().fit(X).purity(X, None)
