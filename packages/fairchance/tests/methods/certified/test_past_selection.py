"""Does a classifier rank by the way in which its past selected, and say so?"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from fairchance import CertifiedClassifier
from fairchance.core.decisions import Note
from fairchance.errors import InputError
from fairchance.learners.past_selection import PastReading
from fairchance.methods.storage import dumps, loads
from fairchance.words.rounds import note_text


def lender(rng, n=1200):
    """Return applicants, their outcomes, and whom a cut on a score accepted."""
    X = rng.normal(size=(n, 3))
    good = (rng.random(n) < expit(2 * X[:, 0] + X[:, 1])).astype(int)
    return X, good, X[:, 0] + X[:, 2] > 0


def fitted(rng, **options):
    X, good, accepted = lender(rng)
    return CertifiedClassifier(random_state=0, **options).fit(X, good, accepted=accepted)


def test_a_cut_is_read_recorded_and_the_rejected_do_not_change_the_ranking(rng):
    X, good, accepted = lender(rng)
    new = rng.normal(size=(200, 3))
    clf = CertifiedClassifier(random_state=0).fit(X, good, accepted=accepted)
    said = CertifiedClassifier(random_state=0, past_selection="features")
    said.fit(X, good, accepted=accepted)
    assert clf.past_reading_.selected_on == "features"
    assert np.array_equal(clf.decide(new).score, said.decide(new).score)
    assert clf.past_reading_.note(beside=False) in clf.rounds_[0].notes
    assert said.past_reading_ is None
    assert not any(note.code == "past_read" for note in said.rounds_[0].notes)


def test_the_reading_is_taken_once_and_kept(rng, monkeypatch):
    clf = fitted(rng)
    again = loads(dumps(clf))
    assert again.past_reading_ == clf.past_reading_
    module = "fairchance.methods.certified.classifier.read_past"
    monkeypatch.setattr(module, lambda *_: pytest.fail("the history was read again"))
    for _ in range(12):
        X, good, _ = lender(rng, 300)
        batch = again.decide(X)
        again.observe(batch.ids[batch.accepted], good[batch.accepted])
    assert len({round_.ladder for round_ in again.rounds_}) > 1


def test_an_unknown_word_is_refused(rng):
    with pytest.raises(InputError, match="past_selection"):
        fitted(rng, past_selection="both")


@pytest.mark.parametrize(
    ("reading", "words"),
    [
        (PastReading("features", 0.1, 6.2), ("on features", "z = 6.2", "leaves")),
        (PastReading("outcome", -0.1, -4.0), ("on the outcome", "z = 4.0", "corrects")),
        (PastReading("unknown", 0.0, -0.5), ("does not tell", "z = -0.5", "our own outcomes")),
        (PastReading("unknown"), ("too small to tell", "our own outcomes")),
    ],
)
def test_each_reading_has_a_sentence(reading, words):
    text = note_text(reading.note(beside=False))
    assert isinstance(reading.note(beside=False), Note)
    assert all(word in text for word in words)


@pytest.mark.parametrize("beside", [False, True])
def test_beside_the_lender_a_ranking_learns_whom_a_cut_rejected(beside, rng):
    """Otherwise those whom the lender rejects look as good as the others."""
    X = rng.normal(size=(3000, 3))
    good = (rng.random(3000) < expit(1 + X[:, 0])).astype(int)
    cut = X[:, 1] > 0.3  # which says nothing about the outcome
    classifier = CertifiedClassifier(horizon=12, random_state=0).fit(X, good, accepted=cut)
    assert classifier.past_reading_.selected_on == "features"
    decided = classifier.decide(X, incumbent=cut if beside else None)
    gap = decided.score[cut].mean() - decided.score[~cut].mean()
    assert (gap > 0.3) if beside else (abs(gap) < 0.1)
