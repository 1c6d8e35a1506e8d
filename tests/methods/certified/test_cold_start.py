"""No outcome to begin with: the pilot accepts at random, learns, and then certifies."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import secondlook as sl
from methods.certified.known_truth import (
    ALPHA,
    DELTA,
    UTILITY,
    Flat,
    Slope,
    deployed_fdr,
    play,
    playing,
    too_many,
)
from secondlook import CertifiedClassifier
from secondlook.errors import InputError, LearningWarning
from secondlook.lab.simulate.populations import draw_applicants


def cold(population, rng, **options):
    """Return a classifier that has seen people, and no outcome of any of them."""
    people = draw_applicants(population, 50, rng).people
    options = {"alpha": ALPHA, "delta": DELTA, "utility": UTILITY, "horizon": 39} | options
    options.setdefault("random_state", int(rng.integers(2**31)))
    with pytest.warns(LearningWarning, match="the pilot accepts at random"):
        return CertifiedClassifier(**options).fit(people.X, None, accepted=np.zeros(50))


def test_the_first_round_accepts_everybody_alike(rng):
    classifier = cold(Slope(), rng)
    batch = draw_applicants(Slope(), 600, rng)
    decided = classifier.decide(batch.people.X)
    assert np.unique(decided.propensity).size == 1
    assert decided.propensity[0] == pytest.approx(classifier.rounds_[0].share, abs=0.01)
    assert classifier.rounds_[0].status == "pilot"
    assert "carries no promise" in classifier.rounds_[0].message
    assert np.all(classifier.predict_proba(batch.people.X) == 0.5)


def test_ratios_of_a_cold_ladder_are_bounded(rng):
    """All rungs accept at random, so that ratios are those of their rates."""
    classifier = cold(Slope(), rng)
    X = draw_applicants(Slope(), 600, rng).people.X
    classifier.decide(X)
    (ladder,) = classifier._engines[0].ladders
    rates = ladder.policies(ladder.locate(X[:1], np.zeros(1, np.intp)))[0]
    assert np.all(np.diff(rates) > 0)
    assert rates[0] < 0.1 < 0.9 < rates[-1] <= 1
    for rung in (0, 12, 40):
        bounds = ladder.ratio_bounds(rung)
        ratio = np.maximum(1, rates / rates[rung])
        assert bounds[ratio <= 4] == pytest.approx(ratio[ratio <= 4])


@pytest.mark.parametrize("learner", [None, DecisionTreeClassifier(max_depth=2, random_state=0)])
def test_what_is_learned_ranks_and_certifies(learner, rng):
    classifier = cold(Slope(), rng, learner=learner)
    policies = play(classifier, Slope(), rng, truth=False)
    assert not policies[0].certified
    assert policies[-1].certified
    assert deployed_fdr(classifier, Slope()) <= ALPHA
    X = np.array([[-2.0], [2.0]])
    assert np.diff(classifier.predict_proba(X)[:, 1])[0] > 0.2


@pytest.mark.parametrize(
    ("runs", "rounds"), [(20, 15), pytest.param(60, 39, marks=pytest.mark.long)]
)
def test_nothing_is_certified_that_should_not_be(runs, rounds):
    certified = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        policies = playing(cold(Flat(), rng), Flat(), rng, rounds=rounds, truth=False)
        certified += any(policy.certified for policy in policies)
    assert not too_many(certified, runs, DELTA)


def test_where_almost_all_are_good_accepting_at_random_is_certified(rng):
    population = Flat(0.05)
    classifier = cold(population, rng)
    assert any(policy.certified for policy in play(classifier, population, rng, truth=False))


def test_one_outcome_only_keeps_it_cold(rng):
    """A model of good outcomes only ranks nobody, so that no ladder is spent on it."""
    classifier = cold(Slope(), rng)
    for _ in range(8):
        decided = classifier.decide(rng.normal(size=(600, 1)))
        classifier.observe(decided.ids[decided.accepted], np.zeros(decided.accepted.sum()))
    assert len(classifier._engines[0].ladders) == 1
    assert classifier.rounds_[-1].n_accepted > 0


def test_it_is_saved_and_goes_on(rng, tmp_path):
    classifier = cold(Slope(), rng)
    play(classifier, Slope(), rng, rounds=2, truth=False)
    sl.save(classifier, tmp_path / "cold.zip")
    again = sl.load(tmp_path / "cold.zip")
    X = rng.normal(size=(500, 1))
    assert np.array_equal(classifier.decide(X).propensity, again.decide(X).propensity)


def test_labels_where_none_was_seen(rng):
    X = rng.normal(size=(20, 1))
    with pytest.raises(InputError, match="pos_label must be 0 or 1 where nobody in the history"):
        CertifiedClassifier(pos_label="paid").fit(X, None, accepted=np.zeros(20))
    with pytest.raises(ValueError, match="y is None"):
        CertifiedClassifier().fit(X, None)
    with pytest.raises(InputError, match="nobody among the 20 people of the history was accepted"):
        sl.PartialFeedbackClassifier().fit(X, np.zeros(20), accepted=np.zeros(20))
