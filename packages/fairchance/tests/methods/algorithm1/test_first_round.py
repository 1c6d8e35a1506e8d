"""Round 1 follows f_0: cut where the past's share is accepted, drawn, or cut at ½."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression

from fairchance import Limited, PartialFeedbackClassifier, SummedAcceptance
from fairchance.errors import InputError
from fairchance.methods.algorithm1.learning import LabelledRows
from fairchance.methods.algorithm1.past import matched_cut
from fairchance.simulate.run import run
from small_worlds import past_of

FALSE_ALARM = 1e-6


def fitted(rng, share, **options):
    X, y, accepted = past_of(rng, share)
    classifier = PartialFeedbackClassifier(
        learner=LogisticRegression(), random_state=0, **options
    ).fit(X, y, accepted=accepted)
    return classifier, X, accepted


@pytest.mark.parametrize("share", [0.15, 0.66, 0.95])
def test_a_matched_f_0_accepts_as_many_of_the_history_as_the_past(rng, share):
    """At ½ it accepts other shares, and where the past accepted few, none may be known at all."""
    classifier, X, accepted = fitted(rng, share)
    again = classifier.decide(X)
    assert abs(int((again.accepted & again.exploit).sum()) - int(accepted.sum())) <= 1
    at_half = (classifier._past.likelihood.score(X, np.zeros(len(X), np.intp)) >= 0.5).sum()
    assert abs(int(at_half) - int(accepted.sum())) > 10  # the control


@given(
    st.lists(
        st.tuples(st.sampled_from([0.1, 0.3, 0.5, 0.9]), st.booleans(), st.integers(1, 5)),
        min_size=2,
        max_size=12,
    )
)
def test_tied_scores_are_cut_at_the_nearest_number(cells):
    score, some, heads = map(np.array, zip(*cells, strict=True))
    accepted = np.where(some, heads, heads // 2)
    wanted, cut = accepted.sum(), matched_cut(score, accepted, heads)
    if wanted == heads.sum():
        assert cut == 0.5
        return
    numbers = [heads[score >= value].sum() for value in np.unique(score)]
    assert heads[score >= cut].sum() == min(numbers, key=lambda n: (abs(n - wanted), n))
    rows = np.repeat(np.arange(score.size), heads)
    one_by_one = np.concatenate([np.arange(n) < k for n, k in zip(heads, accepted, strict=True)])
    assert matched_cut(score[rows], one_by_one) == cut


def test_probability_zero_is_never_accepted():
    cut = matched_cut(np.zeros(4), np.array([True, True, True, False]))
    assert 0 < np.float32(cut) < 1e-20


def test_a_given_policy_without_rejections_in_the_history_is_cut_at_half(rng):
    X, y, _ = past_of(rng, 0.5)
    classifier = PartialFeedbackClassifier(learner=LogisticRegression(), random_state=0)
    classifier.fit(X, y, past_policy=lambda X: 1 / (1 + np.exp(-X[:, 0])))
    decided = classifier.decide(X)
    assert np.array_equal(decided.accepted & decided.exploit, X[:, 0] >= 0)
    imitated = PartialFeedbackClassifier(learner=LogisticRegression(), random_state=0).fit(X, y)
    imitated.decide(X)
    assert imitated.deployed_.f.follows == ""  # there is no f_0 to follow


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_drawn_round_has_the_probabilities_of_f_0(rng, dtype):
    X, y, accepted = past_of(rng, 0.6)
    X = X.astype(dtype)
    classifier = PartialFeedbackClassifier(
        first_round="drawn", learner=LogisticRegression(), random_state=0
    ).fit(X, y, accepted=accepted)
    f_0 = classifier._past.likelihood.score(X, np.zeros(len(X), np.intp))
    covered = classifier.coverage_of(X)
    decided = classifier.decide(X)
    assert decided.propensity == pytest.approx(f_0, abs=1e-6)
    assert np.array_equal(decided.propensity, decided.score.astype(float))
    assert classifier.acceptance_probability(X) == pytest.approx(decided.propensity, abs=1e-6)
    grown = classifier.coverage_of(X) - covered
    assert grown == pytest.approx(f_0, abs=1e-6)  # a full round adds π_1 to w
    assert not decided.exploit.any()
    assert decided.propensity.sum() == pytest.approx(accepted.sum(), rel=0.01)


def test_weights_after_a_drawn_round_are_one_over_f_0(rng):
    """The history and round 1 accepted with the same probability, so that is the mean."""
    classifier, X, _ = fitted(rng, 0.6, first_round="drawn", weight_cap=50.0)
    decided = classifier.decide(X)
    classifier.observe(decided.ids[decided.accepted], np.ones(decided.accepted.sum(), int))
    rules = classifier._rules(2)
    for fold in classifier._people.parts:
        classifier._log.update(fold, rules.rule)
        rows = LabelledRows.of(fold, classifier._log, rules)
        used = rows.weight > 0
        f_0 = classifier._past.likelihood.score(rows.X, rows.group)
        assert used.sum() > 100
        assert rows.weight[used] == pytest.approx(1 / f_0[used])
        own = rows.own_weight > 0
        assert rows.own_weight[own] == pytest.approx(1 / f_0[own])


def test_drawn_coins_follow_their_probabilities(rng):
    """An exact binomial test at a stated false-alarm rate; a coin of .35 must fail it."""
    X, y, accepted = past_of(rng, 0.5)
    batch = rng.normal(size=(6000, 3))

    def heads(p):
        classifier = PartialFeedbackClassifier(
            first_round="drawn", learner=LogisticRegression(), random_state=3
        ).fit(X, y, accepted=accepted, past_policy=lambda X: np.full(len(X), p))
        return int(classifier.decide(batch).accepted.sum())

    assert binomtest(heads(0.3), 6000, 0.3).pvalue > FALSE_ALARM
    assert binomtest(heads(0.35), 6000, 0.3).pvalue < FALSE_ALARM


def test_coins_do_not_depend_on_the_order_of_rows(rng):
    X, y, accepted = past_of(rng, 0.6)
    ids, order = np.arange(5000, 5000 + len(X)), rng.permutation(len(X))
    found = []
    for rows in (np.arange(len(X)), order):
        classifier = PartialFeedbackClassifier(
            first_round="drawn", learner=LogisticRegression(), random_state=0
        ).fit(X, y, accepted=accepted)
        decided = classifier.decide(X[rows], ids=ids[rows])
        found.append(set(decided.ids[decided.accepted].tolist()))
    assert 0 < len(found[0]) < len(X)
    assert found[0] == found[1]


@pytest.mark.parametrize("first_round", ["matched", "drawn", "cut"])
def test_outcomes_of_the_rejected_change_nothing(rng, first_round):
    X, y, accepted = past_of(rng, 0.6)
    batches = rng.normal(size=(3, 200, 3))
    decisions = []
    for lie in (False, True):
        classifier = PartialFeedbackClassifier(
            first_round=first_round, learner=LogisticRegression(), random_state=1
        ).fit(X, np.where(lie & ~accepted, 1 - y, y), accepted=accepted)
        rows = []
        for batch in batches:
            decided = classifier.decide(batch)
            known = decided.accepted
            classifier.observe(decided.ids[known], (batch[known, 0] > -0.5).astype(int))
            rows.append((decided.accepted, decided.propensity))
        decisions.append(rows)
    assert all(
        np.array_equal(a, b)
        for one, other in zip(*decisions, strict=True)
        for a, b in zip(one, other, strict=True)
    )


def test_a_past_that_accepted_few_can_start_when_matched(rng):
    """No score of f_0 exceeds τ, so with a cut at ½ none is known and none can be explored."""
    X, y, accepted = past_of(rng, 0.05)
    high = SummedAcceptance(threshold=0.9)
    classifier = PartialFeedbackClassifier(
        coverage=high, learner=LogisticRegression(), random_state=0
    ).fit(X, y, accepted=accepted)
    decided = classifier.decide(X)
    assert decided.accepted.sum() >= accepted.sum() - 1
    assert classifier.coverage_of(X[decided.accepted & decided.exploit]).min() > 0.9


def test_a_drawn_round_is_refused_with_limits(rng):
    X, y, accepted = past_of(rng, 0.6)
    classifier = PartialFeedbackClassifier(first_round="drawn", strategy=Limited(max_risk=0.5))
    with pytest.raises(InputError, match=r"drawn.*Limited"):
        classifier.fit(X, y, accepted=accepted)


def test_a_run_goes_on_from_a_drawn_round(make_classifier):
    classifier, world = make_classifier(first_round="drawn", n_rounds=4)
    for result in run(classifier, world):
        assert np.all((result.decided.propensity >= 0) & (result.decided.propensity <= 1))
    assert [policy.follows for policy in classifier.policies_][:2] == ["drawn", ""]
