"""What may change, be shuffled, corrected or saved without a decision on cells going wrong."""

from __future__ import annotations

import numpy as np
import pytest

import secondlook as sl
from methods.finite.small_domain import DOMAIN, PAST, REVENUE, draw, fitted
from secondlook.errors import InputError
from secondlook.methods.finite import FiniteClassifier


def test_the_outcomes_of_the_rejected_change_nothing():
    def decisions(flip):
        rng = np.random.default_rng(5)
        people, good = draw(rng, 400)
        accepted = PAST[DOMAIN.cell_of(people)] > 0
        shown = np.where(accepted, good, 1 - good if flip else good)
        classifier = FiniteClassifier(REVENUE, random_state=0)
        classifier.fit(people.X, shown, accepted=accepted, sensitive_features=people.group)
        for _ in range(3):
            people, good = draw(rng, 400)
            batch = classifier.decide(people.X, sensitive_features=people.group)
            classifier.observe(batch.ids[batch.accepted], good[batch.accepted])
        return batch.accepted

    assert np.array_equal(decisions(flip=False), decisions(flip=True))


def test_observing_in_parts_and_in_any_order_is_the_same():
    def decisions(parts):
        rng = np.random.default_rng(5)
        classifier = fitted(rng)
        people, good = draw(rng, 400)
        batch = classifier.decide(people.X, sensitive_features=people.group)
        ids, outcomes = batch.ids[batch.accepted], good[batch.accepted]
        order = np.random.default_rng(parts).permutation(ids.size) if parts else np.arange(ids.size)
        for part in np.array_split(order, max(parts, 1)):
            classifier.observe(ids[part], outcomes[part])
        people, _ = draw(rng, 400)
        return classifier.decide(people.X, sensitive_features=people.group).propensity

    assert np.array_equal(decisions(0), decisions(7))


def test_the_order_of_rows_does_not_matter():
    rng = np.random.default_rng(6)
    people, _ = draw(rng, 300)
    order, ids = rng.permutation(300), rng.permutation(10_000)[:300]
    plain, mixed = (fitted(np.random.default_rng(1)) for _ in range(2))
    one = plain.decide(people.X, sensitive_features=people.group, ids=ids + 1000)
    other = mixed.decide(
        people.X[order], sensitive_features=people.group[order], ids=ids[order] + 1000
    )
    assert np.array_equal(one.accepted[order], other.accepted)
    assert one.explored.any()


def test_a_mistake_can_be_corrected(rng):
    classifier = fitted(rng)
    people, _ = draw(rng, 100)
    batch = classifier.decide(people.X, sensitive_features=people.group)
    who = batch.ids[batch.accepted][:1]
    classifier.observe(who, [1])
    n_good = classifier.counts_.good.sum()
    classifier.correct(who, [0])
    assert classifier.counts_.good.sum() == n_good - 1
    with pytest.raises(InputError, match="recorded already"):
        classifier.observe(who, [1])


def test_it_is_saved_goes_on_and_remembers_corrections(tmp_path):
    rng = np.random.default_rng(0)
    job = rng.integers(6, size=3000)
    good = (rng.random(3000) < 0.5 + 0.09 * job).astype(int)
    classifier = FiniteClassifier(random_state=3)
    classifier.fit(job[:1000], good[:1000], accepted=job[:1000] > 3)
    decided = classifier.decide(job[1000:2000])
    taken = decided.ids[decided.accepted]
    classifier.observe(taken, good[1000:2000][decided.accepted])
    classifier.correct(taken[:2], 1 - good[1000:2000][decided.accepted][:2])
    assert [one.id for one in classifier.corrections_] == taken[:2].tolist()
    assert all(one.before == 1 - one.after for one in classifier.corrections_)
    sl.save(classifier, tmp_path / "cells")
    again = sl.load(tmp_path / "cells")
    assert again.corrections_ == classifier.corrections_
    one, other = classifier.decide(job[2000:]), again.decide(job[2000:])
    assert np.array_equal(one.accepted, other.accepted)
    assert np.array_equal(one.propensity, other.propensity)


def test_decisions_keep_their_names_whatever_becomes_of_the_ids_handed_in(rng):
    X, y = rng.integers(3, size=(60, 1)), np.arange(60) % 50 > 0
    accepted = rng.random(60) < 0.7
    classifier = FiniteClassifier(random_state=0)
    classifier.fit(X, y, accepted=accepted, ids=np.arange(60))
    ids = np.arange(100, 160)
    decided = classifier.decide(X, ids=ids)
    ids += 1000
    assert decided.ids.tolist() == list(range(100, 160))
