"""Cells from continuous features: against counting by hand, and blind to the rejected."""

from __future__ import annotations

import warnings

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

from secondlook.errors import InputError, LearningWarning
from secondlook.methods.finite.clusters import ClusteredDomain

CLUSTERERS = {
    "k-means": KMeans(6, n_init=1, random_state=0),
    "mini-batch": MiniBatchKMeans(6, n_init=1, random_state=0),
    "mixture": GaussianMixture(4, random_state=0),
    "pipeline": make_pipeline(StandardScaler(), KMeans(3, n_init=1, random_state=0)),
    "tree": DecisionTreeClassifier(max_leaf_nodes=7, random_state=0),
    "regression tree": DecisionTreeRegressor(max_leaf_nodes=7, random_state=0),
}
anything = pytest.mark.parametrize("clusterer", CLUSTERERS.values(), ids=CLUSTERERS.keys())
quiet = pytest.mark.filterwarnings("ignore::secondlook.errors.LearningWarning")


class Sealed:
    """An outcome that nobody may look at."""

    def _opened(self, *args):
        raise AssertionError("somebody looked at the outcome of a rejected person")

    __eq__ = __ne__ = __lt__ = __gt__ = __hash__ = __float__ = __int__ = __bool__ = _opened
    __str__ = __repr__ = __index__ = _opened


# No expected failures: the list scikit-learn offers for them is not used.
@quiet
@parametrize_with_checks(
    [
        ClusteredDomain(),
        ClusteredDomain(GaussianMixture(2, random_state=0)),
        ClusteredDomain(DecisionTreeClassifier(max_depth=3, random_state=0)),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture
def people(rng):
    X = rng.normal(size=(600, 2))
    good = (rng.random(600) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(int)
    accepted = rng.random(600) < 0.2 + 0.6 * (X[:, 1] > 0)
    return X, good, accepted


def table_by_hand(cell, good, accepted):
    """Count person by person."""
    kept = {}
    for c, y, taken in zip(cell.tolist(), good.tolist(), accepted.tolist(), strict=True):
        row = kept.setdefault(c, [0, 0, 0])
        row[0] += 1
        row[1] += taken
        row[2] += taken and y
    rows = []
    for c, (n, seen, n_good) in sorted(kept.items()):
        share = n_good / seen if seen else np.nan
        rows.append((c, n, seen, share, max(share, 1 - share) if seen else np.nan))
    return rows


@quiet
@anything
def test_purity_is_what_counting_person_by_person_gives(people, clusterer):
    X, good, accepted = people
    domain = ClusteredDomain(clusterer).fit(X, good, accepted=accepted)
    cell = domain.transform(X)[:, 0]
    assert np.unique(cell).size > 2
    assert domain.cells_.tolist() == np.unique(cell).tolist()
    by_hand = table_by_hand(cell, good, accepted)
    np.testing.assert_array_equal(np.array(domain.purity_.tolist()), np.array(by_hand))
    part = slice(0, 40)
    later = domain.purity(X[part], good[part], accepted=accepted[part])
    by_hand = table_by_hand(cell[part], good[part], accepted[part])
    np.testing.assert_array_equal(np.array(later.tolist()), np.array(by_hand))


def test_a_cluster_nobody_was_accepted_from_is_missing_not_pure(people):
    X, good, _ = people
    domain = ClusteredDomain(KMeans(4, n_init=1, random_state=0), min_purity=0.5)
    cell = domain.fit(X).transform(X)[:, 0]
    table = domain.fit(X, good, accepted=cell != 2).purity_
    row = table[table["cell"] == 2]
    assert row["people"] == (cell == 2).sum() > 0
    assert row["seen"] == 0
    assert np.isnan(row["share_good"])
    assert np.isnan(row["purity"])
    assert np.isfinite(table["purity"]).sum() == 3


@quiet
@anything
def test_outcomes_of_the_rejected_are_never_looked_at(people, clusterer):
    X, good, accepted = people
    sealed = good.astype(object)
    sealed[~accepted] = Sealed()
    with pytest.raises(AssertionError, match="somebody looked"):  # the seal holds
        ClusteredDomain(clusterer).fit(X, sealed)
    domain = ClusteredDomain(clusterer).fit(X, sealed, accepted=accepted)
    usual = ClusteredDomain(clusterer).fit(X, good, accepted=accepted)
    np.testing.assert_array_equal(domain.transform(X), usual.transform(X))
    np.testing.assert_array_equal(domain.purity_, usual.purity_)
    np.testing.assert_array_equal(domain.purity(X, sealed, accepted=accepted), usual.purity_)


@quiet
def test_a_tree_learns_from_the_accepted_only(people):
    X, good, accepted = people
    tree = CLUSTERERS["tree"]
    domain = ClusteredDomain(tree).fit(X, good, accepted=accepted)
    alone = clone(tree).fit(X[accepted], good[accepted])
    np.testing.assert_array_equal(domain.transform(X)[:, 0], alone.apply(X))
    everybody = clone(tree).fit(X, good)
    assert (everybody.apply(X) != alone.apply(X)).any()


def test_outcomes_that_have_not_come_count_as_unseen(people):
    X, good, accepted = people
    late = np.arange(600) % 3 == 0
    partly = np.where(late, np.nan, good)
    domain = ClusteredDomain(KMeans(3, n_init=1, random_state=0), min_purity=0.5)
    table = domain.fit(X, partly, accepted=accepted).purity_
    np.testing.assert_array_equal(table, domain.fit(X, good, accepted=accepted & ~late).purity_)
    none = domain.fit(X, np.full(600, np.nan)).purity_
    assert np.isnan(none["purity"]).all()
    assert none["people"].sum() == 600


def two_blobs(share_good, n=40):
    """Return two clusters far apart; the first has the given share of good, the second is good."""
    X = (
        np.concatenate([np.zeros(n), np.full(n, 9.0)])[:, None]
        + np.linspace(0, 0.1, 2 * n)[:, None]
    )
    good = np.ones(2 * n, dtype=int)
    good[: round(n * (1 - share_good))] = 0
    return X, good


def test_the_warning_comes_below_the_threshold_and_names_the_cluster():
    domain = ClusteredDomain(KMeans(2, n_init=1, random_state=0), min_purity=0.7)
    X, good = two_blobs(share_good=0.65)
    with pytest.warns(LearningWarning, match="1 of 2 clusters, with 50% of the people") as caught:
        domain.fit(X, good)
    cell = int(domain.transform(X[:1])[0, 0])
    assert f"purity is below 0.7 in {cell} (0.65); take" in str(caught[0].message)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        domain.fit(*two_blobs(share_good=0.7))
        domain.fit(*two_blobs(share_good=0.1))
        domain.fit(X)
        ClusteredDomain(domain.clusterer, min_purity=0.5).fit(X, good)
        # Nine outcomes are too few to call a cluster mixed; ten are enough.
        mixed = np.arange(80) % 2
        domain.fit(X, mixed, accepted=np.arange(80) < 9)
    with pytest.warns(LearningWarning, match="1 of 2 clusters"):
        domain.fit(X, mixed, accepted=np.arange(80) < 10)


def test_a_warning_names_the_five_worst():
    X = np.repeat(np.arange(8.0) * 10, 20)[:, None]
    good = np.tile([0, 1], 80)
    with pytest.warns(LearningWarning, match=r"8 of 8 clusters, with 100% .*\), …; take more"):
        ClusteredDomain(KMeans(8, n_init=1, random_state=0)).fit(X, good)


def test_finer_clusters_are_purer_where_outcomes_follow_from_features(rng):
    X = rng.uniform(size=(2000, 1))
    good = (np.floor(8 * X[:, 0]) % 2).astype(int)
    purity = []
    for k in (2, 8, 64):
        domain = ClusteredDomain(KMeans(k, n_init=1, random_state=0), min_purity=0.5)
        table = domain.fit(X, good).purity_
        purity.append(np.average(table["purity"], weights=table["people"]))
    assert purity[0] < 0.65
    assert purity[0] < purity[1] < purity[2]
    assert purity[2] > 0.9


@quiet
def test_a_fitted_clusterer_is_used_as_it_is(people):
    X, good, accepted = people
    fitted = KMeans(5, n_init=1, random_state=3).fit(X + 0.5)
    fresh = KMeans(5, n_init=1, random_state=3).fit(X)
    assert (fitted.predict(X) != fresh.predict(X)).any()
    domain = ClusteredDomain(fitted).fit(X, good, accepted=accepted)
    assert domain.clusterer_ is fitted
    np.testing.assert_array_equal(domain.transform(X)[:, 0], fitted.predict(X))
    frozen = clone(ClusteredDomain(FrozenEstimator(fitted))).fit(X)
    np.testing.assert_array_equal(frozen.transform(X)[:, 0], fitted.predict(X))
    tree = DecisionTreeClassifier(max_depth=2).fit(X[accepted], good[accepted])
    for one in (tree, FrozenEstimator(tree)):
        domain = ClusteredDomain(one).fit(X)  # needs no outcomes any more
        np.testing.assert_array_equal(domain.transform(X)[:, 0], tree.apply(X))
        assert domain.purity_ is None


def test_a_cell_nobody_was_in_at_fit_has_a_number_of_its_own():
    fitted = KMeans(2, n_init=1, random_state=0).fit([[0.0], [9.0]])
    domain = ClusteredDomain(fitted).fit([[0.0], [0.1]])
    assert domain.cells_.size == 1
    assert domain.transform([[8.0]])[0, 0] not in domain.cells_


@quiet
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames(people, frame):
    X, good, accepted = people
    table = frame({"income": X[:, 0], "age": X[:, 1]})
    clusterer = CLUSTERERS["k-means"]
    plain = ClusteredDomain(clusterer).fit(X, good, accepted=accepted)
    domain = ClusteredDomain(clusterer).fit(table, pl.Series(good), accepted=pd.Series(accepted))
    np.testing.assert_array_equal(domain.transform(table), plain.transform(X))
    np.testing.assert_array_equal(domain.purity_, plain.purity_)
    assert domain.feature_names_in_.tolist() == ["income", "age"]
    with pytest.raises(ValueError, match="order"):
        domain.transform(frame({"age": X[:, 1], "income": X[:, 0]}))
    with pytest.raises(InputError, match="columns that are not numbers: 'trade'"):
        domain.fit(frame({"trade": ["smith", "baker"]}))


def test_output_as_a_frame_and_in_a_pipeline(people):
    X, good, _ = people
    domain = ClusteredDomain(CLUSTERERS["k-means"], min_purity=0.5).set_output(transform="pandas")
    frame = domain.fit_transform(X, good)
    assert frame.columns.tolist() == domain.get_feature_names_out().tolist() == ["cell"]
    assert frame["cell"].dtype == np.int64
    chain = make_pipeline(StandardScaler(), domain, DecisionTreeClassifier()).fit(X, good)
    assert chain.score(X, good) > 0.6
    assert pd.DataFrame(domain.purity_)["people"].sum() == 600


def test_labels_in_words_and_labels_of_one_kind(people):
    X, good, accepted = people
    domain = ClusteredDomain(CLUSTERERS["k-means"], min_purity=0.5, pos_label="paid")
    words = np.where(good == 1, "paid", "unpaid")
    table = domain.fit(X, words, accepted=accepted).purity_
    plain = clone(domain).set_params(pos_label=None)
    np.testing.assert_array_equal(table, plain.fit(X, good, accepted=accepted).purity_)
    flipped = plain.fit(X, words, accepted=accepted).purity_  # "unpaid" is the larger word
    np.testing.assert_allclose(flipped["share_good"], 1 - table["share_good"])
    np.testing.assert_array_equal(plain.fit(X, np.zeros(600)).purity_["share_good"], 0)
    np.testing.assert_array_equal(plain.fit(X, np.ones(600, bool)).purity_["share_good"], 1)
    np.testing.assert_array_equal(domain.fit(X, ["unpaid"] * 600).purity_["share_good"], 0)
    with pytest.raises(InputError, match=r"only the outcome 'unpaid' was seen .* pos_label"):
        plain.fit(X, ["unpaid"] * 600)
    with pytest.raises(InputError, match="must be one of the outcomes, 0 or 1, got 'paid'"):
        domain.fit(X, good)
    with pytest.raises(InputError, match="two labels, got 3: 0, 1, 2; map them"):
        plain.fit(X, np.arange(600) % 3)


@pytest.mark.parametrize(
    ("clusterer", "words"),
    [
        (DBSCAN(), r"clusterer must have predict, .* got DBSCAN\(\); take KMeans"),
        (
            RandomForestClassifier(3, random_state=0),
            r"got int64 of shape \(600, 3\)",
        ),
        (LinearRegression().fit([[0.0, 1.0]], [1.0]), "one whole number, got float64"),
    ],
)
def test_what_is_no_clusterer(people, clusterer, words):
    X, good, _ = people
    with pytest.raises(InputError, match=words):
        ClusteredDomain(clusterer).fit(X, good)


def test_bad_input(people):
    X, good, accepted = people
    domain = ClusteredDomain(CLUSTERERS["tree"])
    for wrong in (0.4, 1.2, np.nan):
        with pytest.raises(InputError, match=r"min_purity .* must be in \[0.5, 1\], got"):
            ClusteredDomain(min_purity=wrong).fit(X)
    with pytest.raises(ValueError, match="requires y to be passed"):
        domain.fit(X)
    for nobody in ({"y": good, "accepted": np.zeros(600, bool)}, {"y": np.full(600, np.nan)}):
        with pytest.raises(InputError, match="outcomes of the accepted and there is none"):
            domain.fit(X, **nobody)
    with pytest.raises(InputError, match=r"accepted must be True or False .* got 2"):
        domain.fit(X, good, accepted=good + 1)
    with pytest.raises(InputError, match="accepted must be one column"):
        domain.fit(X, good, accepted=accepted[1:])
    with pytest.raises(InputError, match="y must be one column"):
        domain.fit(X, good[1:])
    with pytest.raises(InputError, match="purity needs y"):
        ClusteredDomain(min_purity=0.5).fit(X).purity(X, None)
