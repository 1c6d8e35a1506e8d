"""Step 1, recomputed by hand from what the classifier has written down."""

from __future__ import annotations

import numpy as np
import pytest

from fairchance import (
    ConstrainedLogistic,
    FdrBudget,
    MeanPastScore,
    PartialFeedbackClassifier,
    Revenue,
    SummedAcceptance,
)
from fairchance.core.decisions import Note
from fairchance.learners.thresholds import shared_threshold
from fairchance.methods.algorithm1.classifier import GROWTH
from fairchance.methods.algorithm1.learning import effective_sample_size
from fairchance.people.likelihoods import LinearLikelihood, MeanLikelihood
from fairchance.simulate.run import run
from small_worlds import past_of

UTILITY = Revenue(gain=200, loss=300)


def labelled(classifier, fold):
    """Return features, outcomes, and weights (all rounds; own rounds only) of a fold."""
    rows, log = classifier._people.parts[fold], classifier._log
    past, own = rows["past"], rows["own"]
    everybody = (own + log.n_history * past) / (log.n_history + log.n_people)
    usable = (rows["outcome"] >= 0) & (rows["coverage"] > classifier._rule.level(log.n_rounds))
    cap = np.inf if classifier.weight_cap is None else classifier.weight_cap
    ours = usable & (rows["round"] > 0)
    return (
        rows.X,
        np.maximum(rows["outcome"], 0),
        usable * np.minimum(1 / everybody, cap),
        ours * np.minimum(log.n_people / np.maximum(own, 1e-12), cap),
    )


def after(make_classifier, n_rounds, **options):
    classifier, world = make_classifier(n_rounds=n_rounds, **options)
    for _ in run(classifier, world):
        pass
    learned = classifier._classifier_of_round(n_rounds + 1)
    return classifier, learned


def by_hand(classifier, fit_on, set_on):
    X, y, weight, _ = labelled(classifier, fit_on)
    used = weight > 0
    model = ConstrainedLogistic(tol=1e-9).fit(
        X[used], y[used], sample_weight=weight[used] / weight[used].mean()
    )
    X, y, weight, own = labelled(classifier, set_on)
    calibrated = own.sum() ** 2 >= classifier.min_outcomes * (own @ own)
    return model, model.predict_proba(X)[:, 1], y, own if calibrated else weight


@pytest.mark.parametrize(
    ("coverage", "cap"),
    [(SummedAcceptance(), 20.0), (MeanPastScore(), 20.0), (SummedAcceptance(), None)],
)
@pytest.mark.parametrize("n_rounds", [1, 5])
def test_one_half_fits_and_the_other_sets_the_threshold(make_classifier, n_rounds, coverage, cap):
    options = {"min_outcomes": 60, "weight_cap": cap, "coverage": coverage}
    classifier, learned = after(make_classifier, n_rounds, **options)
    model, score, y, weight = by_hand(classifier, 0, 1)
    assert learned.likelihood.likelihood.coef == pytest.approx(model.coef_[0], abs=1e-4)
    assert learned.calibrated == (n_rounds == 5)
    assert learned.n_outcomes == (weight > 0).sum()
    assert learned.effective_sample_size == pytest.approx(weight.sum() ** 2 / (weight @ weight))
    point = shared_threshold(
        score,
        y.astype(np.int8),
        weight,
        np.zeros(len(y), np.intp),
        1,
        utility=UTILITY,
        max_fdr=classifier._budget.max_fdr(n_rounds + 1),
    )
    assert learned.thresholds == pytest.approx(np.repeat(point.thresholds, 2), abs=1e-4)
    assert learned.estimated_fdr == pytest.approx(point.fdr, abs=1e-3)


def test_the_papers_cut_earns_most_on_all_labelled_rows_whatever_its_fdr(make_classifier):
    """With the bound in the fit no bound holds at the cut, and the history always counts."""
    options = {"bounds_in": "fit", "min_outcomes": None, "budget": FdrBudget(0.05)}
    classifier, learned = after(make_classifier, 5, **options)
    X, y, weight, own = labelled(classifier, 1)
    score = classifier.predict_proba(X)[:, 1]
    worth = weight * np.where(y == 1, UTILITY.gain_good, UTILITY.gain_bad)
    best = max(worth[score >= cut].sum() for cut in score)
    assert worth[score >= learned.thresholds[0]].sum() == pytest.approx(best)
    assert learned.n_outcomes == (weight > 0).sum() > (own > 0).sum() > 100
    assert learned.estimated_fdr > classifier._budget.max_fdr(6) + 0.02
    assert not learned.calibrated


def test_cross_fitting_uses_every_label_for_both(make_classifier):
    classifier, learned = after(make_classifier, 5, split="cross")
    one, score_1, y_1, weight_1 = by_hand(classifier, 0, 1)
    other, score_0, y_0, weight_0 = by_hand(classifier, 1, 0)
    mean = (one.coef_[0] + other.coef_[0]) / 2
    assert learned.likelihood.likelihood.coef == pytest.approx(mean, abs=1e-4)
    assert learned.n_outcomes == (weight_0 > 0).sum() + (weight_1 > 0).sum()
    point = shared_threshold(
        np.concatenate([score_1, score_0]),
        np.concatenate([y_1, y_0]).astype(np.int8),
        np.concatenate([weight_1, weight_0]),
        np.zeros(len(y_0) + len(y_1), np.intp),
        1,
        utility=UTILITY,
        max_fdr=classifier._budget.max_fdr(6),
    )
    assert learned.thresholds[0] == pytest.approx(point.thresholds[0], abs=1e-4)


def test_halves_persist_over_rounds(make_classifier):
    classifier, world = make_classifier(n_batch=200, n_rounds=4)
    first = [fold.X.copy() for fold in classifier._people.parts]
    for _ in run(classifier, world):
        pass
    for fold, before in zip(classifier._people.parts, first, strict=True):
        assert np.array_equal(fold.X[: len(before)], before)
        assert len(fold) > len(before)


def test_a_fold_with_one_outcome_is_joined_to_the_other(rng):
    X = rng.normal(size=(12, 1))
    y = np.r_[0, np.ones(11, int)]
    classifier = PartialFeedbackClassifier(random_state=0).fit(X, y)
    assert classifier._learned.notes == (Note("not_held_out"),)


def test_mean_of_likelihoods_is_taken_on_the_log_odds(rng):
    X, group = rng.normal(size=(20, 2)), np.zeros(20, np.intp)
    parts = (LinearLikelihood(np.array([1.0, 2]), 0.5), LinearLikelihood(np.array([-1.0, 0]), 1.5))
    linear = MeanLikelihood.of(parts)
    assert isinstance(linear, LinearLikelihood)
    assert linear.score(X, group) == pytest.approx(MeanLikelihood(parts).score(X, group))


def test_effective_sample_size():
    assert effective_sample_size(np.array([2.0, 2.0, 2.0])) == 3
    assert effective_sample_size(np.array([1.0, 0.0])) == 1
    assert effective_sample_size(np.zeros(3)) == 0


def test_late_rounds_learn_once_outcomes_have_grown_by_a_tenth(monkeypatch, rng):
    monkeypatch.setattr(PartialFeedbackClassifier, "_every_round", 3)
    budget = FdrBudget(alpha=0.15, exploit=0.1)  # a schedule changes what is learned
    X, y, accepted = past_of(rng, 0.5)
    classifier = PartialFeedbackClassifier(budget=budget, first_round="learned", random_state=0)
    classifier.fit(X, y, accepted=accepted)
    learned_at, learned = [], classifier._learned
    for t in range(1, 41):
        n_outcomes = classifier.n_outcomes_
        decided = classifier.decide(X[:100] + 0.001 * t)
        if classifier._learned is not learned:
            learned_at.append((t, n_outcomes))
            learned = classifier._learned
        classifier.observe(decided.ids[decided.accepted], y[:100][decided.accepted])
    assert [t for t, _ in learned_at[:2]] == [2, 3]  # what the history teaches is known
    late = np.array([n for _, n in learned_at[1:]])
    assert np.all(late[1:] >= late[:-1] * (1 + GROWTH))
    assert np.all(late[1:] <= late[:-1] * (1 + GROWTH) + 100)
    assert len(late) < 20
    assert len(classifier.policies_) <= 2 * len(learned_at)
    assert sum(policy.n_rounds for policy in classifier.policies_) == 40

    classifier.correct(decided.ids[decided.accepted][:1], 1 - y[:100][decided.accepted][:1])
    classifier.decide(X[:100])
    assert classifier._learned is not learned  # a revised outcome is learned at once
