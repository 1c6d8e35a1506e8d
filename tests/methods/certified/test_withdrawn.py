"""Outcomes that never come, and decisions changed by hand: counted as bad, never left out."""

from __future__ import annotations

import numpy as np
import pytest

from methods.certified.known_truth import ALPHA, Slope, start
from secondlook.errors import InputError, UnknownIdError
from secondlook.lab.simulate.populations import draw_applicants
from secondlook.methods.certified.evidence import values


def decided(seed=0):
    rng = np.random.default_rng(seed)
    classifier = start(Slope(), rng, random_state=0)
    batch = draw_applicants(Slope(), 600, rng)
    found = classifier.decide(batch.people.X)
    return classifier, found.ids[found.accepted], batch.outcome[found.accepted]


def wealth(classifier):
    return classifier._engines[0].ladders[0].wealth.log


def test_they_count_as_bad_in_tests_and_teach_nothing():
    classifier, ids, outcome = decided()
    gone = np.arange(ids.size) % 5 == 0
    classifier.observe(ids[~gone], outcome[~gone])
    assert not wealth(classifier).any()  # the round is not complete
    classifier.withdraw(ids[gone])
    as_bad, _, _ = decided()
    as_bad.observe(ids, np.where(gone, 0, outcome))
    assert wealth(classifier) == pytest.approx(wealth(as_bad), abs=1e-12)
    assert wealth(classifier).any()
    assert classifier._engines[0].known_rows().size == (~gone).sum()
    assert as_bad._engines[0].known_rows().size == ids.size


def test_once_recorded_they_stay_unless_corrected():
    classifier, ids, outcome = decided()
    classifier.withdraw(ids[:2]).withdraw(ids[:2])
    with pytest.raises(InputError, match="is recorded already and differs"):
        classifier.observe(ids[:1], outcome[:1])
    classifier.correct(ids[:1], outcome[:1])
    assert classifier._engines[0].known_rows().size == 1
    classifier.observe(ids[2:], outcome[2:])
    with pytest.raises(InputError, match="is recorded already and differs"):
        classifier.withdraw(ids[3:4])


def test_only_accepted_people_can_be_withdrawn():
    classifier, ids, _ = decided()
    rejected = np.setdiff1d(np.arange(600, 1200), ids)
    with pytest.raises(UnknownIdError, match="were rejected, first"):
        classifier.withdraw(rejected[:1])
    with pytest.raises(UnknownIdError, match="were never decided on"):
        classifier.withdraw([10**6])
    assert classifier.withdraw([]) is classifier


@pytest.mark.parametrize("p", [0.0, -0.1, 1.2, np.nan])
def test_a_propensity_that_nobody_can_have_been_accepted_with(p):
    pi, logged, accepted = np.full((3, 2), 0.5), np.array([0.5, p, 0.5]), np.ones(3, bool)
    with pytest.raises(InputError, match=r"logged probability in \(0, 1\]"):
        values(pi, logged, accepted, accepted, ALPHA)
    accepted[1] = False
    if p == 0:  # nobody could have accepted them, and nobody did
        assert values(pi, logged, accepted, accepted, ALPHA)[1] == pytest.approx(-0.425)
