"""The default ranking: its parts against brute force, and what it does with a history."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import mannwhitneyu
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairchance import CertifiedClassifier
from fairchance.errors import LearningWarning
from fairchance.learners import ensemble
from fairchance.learners.ensemble import MixedLikelihood, SelectionAwareEnsemble
from fairchance.methods.storage import dumps, loads


def people(n, rng, slope=2.0):
    """Return applicants with a number, a code with 30 values, a category and a missing number."""
    X = np.column_stack(
        [
            rng.normal(size=n),
            rng.integers(0, 30, n),
            rng.integers(0, 4, n),
            np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
        ]
    )
    log_odds = slope * X[:, 0] + (X[:, 1] % 2) - (X[:, 2] == 3) + 0.5 * np.nan_to_num(X[:, 3])
    return X, (rng.random(n) < expit(log_odds)).astype(np.int8)


def selected_history(n, rng, good=0.9, bad=0.1):
    """Return the accepted with outcomes, and the rejected, of a past that knew the outcome."""
    X, y = people(n, rng)
    accepted = rng.random(n) < np.where(y == 1, good, bad)
    return X[accepted], y[accepted], X[~accepted]


@pytest.mark.parametrize("category", [False, True])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("few", [False, True])
def test_points_are_the_weighted_sum_of_expanded_columns(rng, category, missing, few):
    n = 400
    x = rng.integers(0, 6, n).astype(float) if few or category else rng.normal(size=n)
    if missing:
        x[rng.random(n) < 0.2] = np.nan
    bins = ensemble._Bins.of(x, category)
    expanded = bins.expand(x)
    weight, mean = rng.normal(size=(2, expanded.shape[1]))
    direct = np.nan_to_num(expanded - mean) @ weight
    assert bins.column(weight, mean).points(x) == pytest.approx(direct)


def test_values_beyond_the_quantiles_are_clipped(rng):
    x = rng.normal(size=1000)
    bins = ensemble._Bins.of(x, False)
    column = bins.column(np.ones(bins.cuts.size + 1), np.zeros(bins.cuts.size + 1))
    low, high = np.quantile(x, [0.01, 0.99])
    assert column.points(np.array([-1e9, low, high, 1e9])) == pytest.approx(
        [low, low, high + 9, high + 9]
    )


def test_encodings_are_smoothed_means_and_leave_out_the_own_fold(rng):
    n = 600
    x = rng.integers(0, 20, n).astype(float)
    x[0] = 77.0  # too rare for a mean of its own
    y = rng.random(n)
    (column,), columns = SelectionAwareEnsemble()._encodings(x[:, None], y)
    assert 77.0 not in column.values
    for value, mean in zip(column.values, column.means, strict=True):
        here = y[x == value]
        assert mean == pytest.approx((here.sum() + 10 * y.mean()) / (here.size + 10))
    for rows, others in KFold(5, shuffle=True, random_state=0).split(x):
        for at in others[:20]:
            same = y[rows][x[rows] == x[at]] if x[at] != 77.0 else y[rows][x[rows] == 77.0]
            mean = (same.sum() + 10 * y[rows].mean()) / (same.size + 10)
            assert columns[at, 0] == pytest.approx(mean)


def test_the_share_of_good_among_the_rejected_is_bayes_rule(rng):
    """Trees get g of each rejected applicant; g is the truth if p, s₁ and s₀ are."""
    n, s1, s0 = 400_000, 0.7, 0.2
    p = rng.choice([0.1, 0.5, 0.9], n)
    good = rng.random(n) < p
    rejected = rng.random(n) >= np.where(good, s1, s0)
    for value in (0.1, 0.5, 0.9):
        g = value * (1 - s1) / (value * (1 - s1) + (1 - value) * (1 - s0))
        here = rejected & (p == value)
        error = 4 * np.sqrt(g * (1 - g) / here.sum())
        assert good[here].mean() == pytest.approx(g, abs=error)
        scorecard = ensemble.Scorecard((), float(np.log(value / (1 - value))))
        fitted = ensemble._FittedScorecard(scorecard, s1, s0)
        assert ensemble._soft_labels(fitted, np.empty((1, 0))) == pytest.approx([g])


def test_the_rejected_improve_the_ranking_of_a_history_selected_on_the_outcome(rng):
    X, y, rejected = selected_history(2000, rng)
    new_X, new_y = people(5000, rng)
    with_them = SelectionAwareEnsemble((2,), "outcome").fit(X, y, rejected=rejected)
    without = SelectionAwareEnsemble((2,)).fit(X, y)
    area = [roc_auc_score(new_y, m.predict_proba(new_X)[:, 1]) for m in (with_them, without)]
    assert area[0] > area[1] + 0.01


def test_few_outcomes_make_a_scorecard_and_more_make_a_mixture(rng):
    X, y = people(400, rng)
    y[:] = 1
    y[:19] = 0
    assert isinstance(SelectionAwareEnsemble().fit(X, y).likelihood_, ensemble.Scorecard)
    y[19] = 0
    assert isinstance(SelectionAwareEnsemble().fit(X, y).likelihood_, MixedLikelihood)


def test_accepted_who_are_all_good_are_compared_with_the_rejected(rng):
    X, y, rejected = selected_history(3000, rng, bad=0.0)
    assert np.all(y == 1)
    model = SelectionAwareEnsemble((2,)).fit(X, y, rejected=rejected)
    new_X, new_y = people(3000, rng)
    assert roc_auc_score(new_y, model.predict_proba(new_X)[:, 1]) > 0.75


def test_a_history_the_wrong_way_round_is_left_out(rng):
    X, y, rejected = selected_history(1500, rng)
    own_X, own_y = people(400, rng)
    from_history = np.arange(len(X) + len(own_X)) < len(X)
    together = np.vstack([X, own_X])
    with pytest.warns(LearningWarning):
        model = SelectionAwareEnsemble((2,)).fit(
            together, np.append(1 - y, own_y), rejected=rejected, from_history=from_history
        )
    alone = SelectionAwareEnsemble((2,)).fit(own_X, own_y, from_history=np.zeros(400, bool))
    assert model.predict_proba(X) == pytest.approx(alone.predict_proba(X))


def test_an_honest_history_is_kept(rng):
    X, y, rejected = selected_history(1500, rng)
    own_X, own_y = people(400, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SelectionAwareEnsemble((2,)).fit(
            np.vstack([X, own_X]),
            np.append(y, own_y),
            rejected=rejected,
            from_history=np.arange(len(X) + 400) < len(X),
        )
    alone = SelectionAwareEnsemble((2,)).fit(own_X, own_y, from_history=np.zeros(400, bool))
    new_X, new_y = people(5000, rng)
    area = [roc_auc_score(new_y, m.predict_proba(new_X)[:, 1]) for m in (model, alone)]
    assert area[0] > area[1]


def test_the_shift_of_our_outcomes_is_the_selection_of_the_past(rng):
    """Selection on the outcome multiplies the odds of the accepted by s₁/s₀."""
    n = 30_000
    score, own = rng.normal(size=n), np.arange(n) < n // 2
    y = (rng.random(n) < expit(score)).astype(np.int8)
    accepted = own | (rng.random(n) < np.where(y == 1, 0.9, 0.3))
    by_features = own | (rng.random(n) < np.where(score > 0, 0.9, 0.3))
    for kept, shift in ((accepted, -np.log(3)), (by_features, 0)):
        # Any other scale of the score will do.
        found = ensemble._shift(5 + 2 * score[kept], y[kept], own[kept])
        assert found == pytest.approx(shift, abs=0.12)


def test_own_outcomes_tell_a_past_on_features_from_one_on_the_outcome(rng):
    own_X, own_y = people(200, rng)
    X, y = people(2000, rng)
    pasts = {
        "features": X[:, 0] > 0,
        "outcome": rng.random(2000) < np.where(y == 1, 0.9, 0.1),
    }
    for selected_on, accepted in pasts.items():
        n = int(accepted.sum())
        rows = np.vstack([X[accepted], own_X]), np.append(y[accepted], own_y)
        past = np.arange(n + 200) < n
        read = SelectionAwareEnsemble((2,))._selected_on(*rows, past, X[~accepted])
        assert read == selected_on


def test_a_known_selection_is_believed_and_a_leaning_until_outcomes_are_known(rng):
    X, y, rejected = selected_history(1500, rng)
    alone = SelectionAwareEnsemble((2,)).fit(X, y).predict_proba(X)
    for options in ({"past_selection": "features"}, {"leaning": "features"}):
        model = SelectionAwareEnsemble((2,), **options).fit(X, y, rejected=rejected)
        assert np.array_equal(model.predict_proba(X), alone)
    models = [
        SelectionAwareEnsemble((2,), **options).fit(X, y, rejected=rejected).predict_proba(X)
        for options in ({"past_selection": "outcome"}, {"leaning": "outcome"})
    ]
    assert np.array_equal(*models)
    assert not np.allclose(models[0], alone)


def test_area_and_its_standard_error_against_scipy(rng):
    score, outcome = rng.integers(0, 50, 300).astype(float), rng.integers(0, 2, 300)
    area = ensemble._area(score, outcome)
    assert area == pytest.approx(roc_auc_score(outcome, score))
    distinct = rng.permutation(300).astype(float)
    test = mannwhitneyu(
        distinct[outcome == 1], distinct[outcome == 0], use_continuity=False, method="asymptotic"
    )
    z = ensemble._standard_errors(ensemble._area(distinct, outcome), outcome)
    assert abs(z) == pytest.approx(abs(_normal_quantile(test.pvalue / 2)))


def _normal_quantile(p):
    from scipy.stats import norm  # noqa: PLC0415

    return norm.ppf(p)


def test_the_order_of_rows_does_not_matter(rng):
    X, y, rejected = selected_history(800, rng)
    order, other = rng.permutation(len(X)), rng.permutation(len(rejected))
    first = SelectionAwareEnsemble((2,), "outcome").fit(X, y, rejected=rejected)
    second = SelectionAwareEnsemble((2,), "outcome").fit(
        X[order], y[order], rejected=rejected[other]
    )
    assert np.array_equal(first.predict_proba(X), second.predict_proba(X))


def test_no_value_of_a_single_applicant_is_kept_as_a_value(rng):
    X, y = people(500, rng)
    X[0, 1] = 123_456.0
    X[:4, 0], X[4:, 0] = 77.0, rng.integers(0, 3, 496)
    model = SelectionAwareEnsemble((2,)).fit(X, y).likelihood_
    kept = [column.values for column in model.trees.encoded]
    kept += [column.cuts for column in model.scorecard.columns]
    assert not np.isin(np.concatenate(kept), [77.0, 123_456.0]).any()


def test_stored_as_plain_arrays(rng):
    X, y = people(800, rng)
    X = np.nan_to_num(X)
    classifier = CertifiedClassifier(random_state=0).fit(X, y, accepted=rng.random(800) < 0.7)
    again = loads(dumps(classifier))
    assert np.array_equal(again.predict_proba(X), classifier.predict_proba(X))


@parametrize_with_checks([SelectionAwareEnsemble()])
def test_is_a_scikit_learn_classifier(estimator, check):
    check(estimator)
