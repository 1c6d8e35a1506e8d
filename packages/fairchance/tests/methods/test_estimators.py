"""Everything scikit-learn asks of an estimator, and of one that lives among others."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairchance import (
    CertifiedClassifier,
    ConstrainedLogistic,
    FdrBudget,
    MeanPastScore,
    PartialFeedbackClassifier,
    PerGroup,
)
from fairchance.errors import InputError
from fairchance.methods.estimator import DecidingClassifier
from fairchance.simulate.populations import Lender
from versions import POLARS, SCIKIT_LEARN_1_9

# No expected failures: the list scikit-learn offers for them is not used.
ESTIMATORS = [
    PartialFeedbackClassifier(),
    PartialFeedbackClassifier(thresholds="per_group", split="cross", coverage=MeanPastScore()),
    PartialFeedbackClassifier(learner=PerGroup(), weights="none", first_round="learned"),
    PartialFeedbackClassifier(learner=HistGradientBoostingClassifier(max_iter=20)),
    PerGroup(),
    PerGroup(LogisticRegression()),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture
def history(rng):
    people = Lender().draw(400, rng)
    accepted = rng.random(400) < 0.6
    good = rng.random(400) < Lender().probability_good(people)
    return people.X, good.astype(int), accepted, people.group


def test_in_a_pipeline_and_a_grid_search_with_routed_metadata(history):
    X, y, accepted, group = history
    with config_context(enable_metadata_routing=True):
        classifier = (
            PartialFeedbackClassifier(random_state=0)
            .set_fit_request(accepted=True, sensitive_features=True)
            .set_score_request(accepted=True, sensitive_features=True)
        )
        pipeline = make_pipeline(StandardScaler(), classifier)
        budgets = [FdrBudget(0.1), FdrBudget(0.2)]
        search = GridSearchCV(
            pipeline,
            {"partialfeedbackclassifier__budget": budgets},
            cv=3,
            error_score="raise",
        )
        search.fit(X, y, accepted=accepted, sensitive_features=group)
        best = search.best_estimator_[-1]
        assert best.budget in budgets
        assert best.groups_.tolist() == ["A", "B"]
        # Without the request the metadata would be refused, not dropped.
        silent = make_pipeline(StandardScaler(), PartialFeedbackClassifier())
        with pytest.raises(Exception, match="not explicitly set as requested"):
            silent.fit(X, y, accepted=accepted)


def test_the_bound_is_known_before_and_after_fit(history):
    X, y, accepted, _ = history
    for classifier, alpha in (
        (PartialFeedbackClassifier(), 0.15),
        (PartialFeedbackClassifier(budget=FdrBudget(0.2)), 0.2),
        (CertifiedClassifier(alpha=0.1), 0.1),
    ):
        assert classifier.bound_ == alpha
        assert classifier.fit(X, y, accepted=accepted).bound_ == alpha
    assert DecidingClassifier().bound_ is None


def test_score_reads_outcomes_of_the_accepted_only(history):
    X, y, accepted, _ = history
    classifier = PartialFeedbackClassifier(random_state=0).fit(X, y, accepted=accepted)
    flipped = np.where(accepted, y, 1 - y)
    assert classifier.score(X, y, accepted=accepted) == classifier.score(
        X, flipped, accepted=accepted
    )


def raw_table(rng, n):
    trade = rng.choice(["smith", "baker", "miller"], n)
    income = rng.normal(size=n)
    good = rng.random(n) < 1 / (1 + np.exp(-(1 + income + (trade == "baker"))))
    return {"trade": trade, "income": income}, good.astype(int)


KINDS = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_learner_that_is_a_pipeline_reads_raw_columns(rng, kind):
    if kind == "polars" and not SCIKIT_LEARN_1_9:
        pytest.skip(POLARS)
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["trade"]), remainder="passthrough"
    )
    learner = make_pipeline(encoder, LogisticRegression())
    table, y = raw_table(rng, 400)
    accepted = rng.random(400) < 0.7
    classifier = PartialFeedbackClassifier(learner=learner, random_state=0)
    classifier.fit(KINDS[kind](table), y, accepted=accepted)
    for _ in range(3):
        table, y = raw_table(rng, 200)
        decided = classifier.decide(KINDS[kind](table))
        classifier.observe(decided.ids[decided.accepted], y[decided.accepted])
    frame = decided.to_frame()
    assert type(frame).__module__.startswith(kind)
    assert classifier.rounds_[-1].n_outcomes > 0


@pytest.mark.parametrize("kind", KINDS)
def test_frames_in_frames_out(rng, kind):
    X, y = rng.normal(size=(300, 2)), (rng.random(300) < 0.8).astype(int)
    names = ["income", "debt"]
    frame = KINDS[kind](dict(zip(names, X.T, strict=True)))
    by_frame = PartialFeedbackClassifier(random_state=0).fit(frame, y)
    by_array = PartialFeedbackClassifier(random_state=0).fit(X, y)
    assert by_frame.feature_names_in_.tolist() == names
    if kind != "pandas":  # scikit-learn demands an error there
        turned = KINDS[kind](dict(zip(names[::-1], X.T[::-1], strict=True)))
        assert np.array_equal(by_frame.predict_proba(turned), by_array.predict_proba(X))
    decided = by_frame.decide(frame)
    assert np.array_equal(decided.accepted, by_array.decide(X).accepted)
    out = decided.to_frame()
    assert type(out).__module__.startswith(kind)
    assert np.asarray(out["accepted"]).tolist() == decided.accepted.tolist()
    assert set(decided.to_frame("polars").columns) == {
        "id",
        "accepted",
        "region",
        "score",
        "threshold",
        "propensity",
        "round",
    }


def test_clone_forgets_and_keeps_parameters(history):
    X, y, accepted, _ = history
    classifier = PartialFeedbackClassifier(budget=FdrBudget(0.2), random_state=3)
    classifier.fit(X, y, accepted=accepted).decide(X)
    fresh = clone(classifier)
    assert fresh.budget == FdrBudget(0.2)
    assert not hasattr(fresh, "classes_")


def test_learner_without_weights_is_refused_unless_weights_are_off(history):
    X, y, accepted, _ = history
    learner = KNeighborsClassifier()
    with pytest.raises(InputError, match=r"KNeighborsClassifier.*sample_weight"):
        PartialFeedbackClassifier(learner=learner).fit(X, y, accepted=accepted)
    PartialFeedbackClassifier(learner=learner, weights="none").fit(X, y, accepted=accepted)


@pytest.mark.parametrize("learner", [None, HistGradientBoostingClassifier(max_iter=10)])
def test_missing_features_are_fine(history, learner):
    X, y, accepted, _ = history
    X = X.copy()
    X[0, 0] = np.nan
    classifier = PartialFeedbackClassifier(learner=learner, random_state=0)
    decided = classifier.fit(X, y, accepted=accepted).decide(X)
    assert np.isfinite(decided.score).all()
    X[0, 0] = np.inf
    with pytest.raises(InputError, match=r"inf.*1.*400"):
        classifier.decide(X)


def test_per_group_learns_groups_apart_and_falls_back(rng):
    X = rng.normal(size=(300, 1))
    group = np.repeat(["a", "b", "c"], 100)
    y = np.where(group == "a", X[:, 0] > 0, np.where(group == "b", X[:, 0] < 0, True)).astype(int)
    model = PerGroup(ConstrainedLogistic(l2=0.1)).fit(X, y, sensitive_features=group)
    low, high = np.array([[-2.0]]), np.array([[2.0]])
    assert model.predict(high, sensitive_features=["a"]) == 1
    assert model.predict(high, sensitive_features=["b"]) == 0
    # "c" shows one outcome only, and "d" was never seen: the model of everybody scores them.
    for name in ("c", "d"):
        assert np.array_equal(
            model.predict_proba(low, sensitive_features=[name]),
            model.shared_model_.predict_proba(low),
        )
    with pytest.raises(InputError, match="sensitive_features"):
        model.predict(X)


@pytest.mark.skipif(not SCIKIT_LEARN_1_9, reason=POLARS)
def test_raw_columns_keep_their_kind(rng):
    """A table of another kind is refused before anything is decided; numbers may change type."""
    encoder = make_column_transformer((OneHotEncoder(), ["trade"]), remainder="passthrough")
    learner = make_pipeline(encoder, LogisticRegression())
    table, y = raw_table(rng, 200)
    whole = {"trade": table["trade"], "income": np.rint(table["income"]).astype(int)}
    classifier = PartialFeedbackClassifier(learner=learner, random_state=0)
    classifier.fit(pl.DataFrame(whole), y)
    for wrong in (pd.DataFrame(table), pl.DataFrame({"trade": y, "income": table["income"]})):
        with pytest.raises(InputError, match="X"):
            classifier.decide(wrong)
    for _ in range(2):
        decided = classifier.decide(pl.DataFrame(table))
        classifier.observe(decided.ids[decided.accepted], y[decided.accepted])
    assert classifier.rounds_[-1].round == 2
