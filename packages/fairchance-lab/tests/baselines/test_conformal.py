"""Conformal selection: p-values by counting, the bound on bad people, and what breaks it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from baselines.playing import check_promises, check_refusals, people, started
from fairchance_lab.baselines.conformal import (
    ConformalSelection,
    benjamini_hochberg,
    conformal_p_values,
)

METHOD = ConformalSelection(0.3, audit=0.2, learner=LogisticRegression(), random_state=0)
ALPHA = 0.15


class LearnsFromItsCalibration(ConformalSelection):
    """Broken on purpose: the score has seen the audited that calibrate it."""

    def _decide(self, batch):
        self._learned[self._first_of_calibration(self._round)] = self._fitted()
        return super()._decide(batch)


class CountsTheRejectedAsGood(ConformalSelection):
    """Broken on purpose: applicants without an outcome are counted as if it were good."""

    def _calibrate(self, first):
        super()._calibrate(first)
        self._n_audited = int((self._all_applicants().round >= first).sum())


def test_what_every_baseline_keeps():
    check_promises(METHOD)
    check_refusals(METHOD, [("alpha", 1.0), ("alpha", "0.1"), ("audit", 0.0), ("audit", 1)])


def test_p_values_and_selection_by_their_definition(rng):
    scores, bad = (rng.random(60) ** 0.2).round(1), rng.random(25).round(1)  # with ties
    p = conformal_p_values(scores, bad, 40)
    assert p.tolist() == [(1 + sum(b >= s for b in bad)) / 41 for s in scores]
    level = benjamini_hochberg(p, 0.3)
    sizes = [k for k in range(1, 61) if (p <= 0.3 * k / 60).sum() >= k]
    assert (p <= level).sum() == max(sizes)
    # scipy adjusts p-values so that those at most alpha are selected.
    assert ((stats.false_discovery_control(p) <= 0.3) == (p <= level)).all()
    assert benjamini_hochberg(p, 1e-6) == 0.0


def test_the_audited_are_a_coin_of_all_applicants():
    method = started(METHOD)
    for t in range(3):
        X, group, good = people(4000, np.random.default_rng(t))
        batch = method.decide(X, sensitive_features=group)
        method.observe(batch.ids[batch.accepted], good[batch.accepted])
    rows = method._store.parts[0]
    own = rows["round"] == 3
    selected = rows["propensity"][own] == 1
    audited = rows["audited"][own]
    assert selected.sum() > 1000
    for part, n in (
        (audited & selected, selected.sum()),
        (audited & ~selected, 4000 - selected.sum()),
    ):
        assert stats.binomtest(int(part.sum()), int(n), 0.2).pvalue > 1e-4
    assert not rows["audited"][rows["round"] == 0].any()
    assert np.unique(batch.propensity).tolist() == [0.2, 1.0]


def bad_share(kind, learner, runs, t=3):
    """Return in how many runs one selected applicant of round t, drawn at random, is bad.

    One run has a bad one with the expected share of bad among the selected, which conformal
    selection bounds by α; a run in which nobody is selected counts as one without a bad applicant.
    """
    bad, sizes = 0, []
    for seed in np.random.SeedSequence(7).spawn(runs):
        rng = np.random.default_rng(seed)
        method = kind(ALPHA, audit=0.3, learner=learner, random_state=int(rng.integers(2**31)))
        X, _, good = people(200, rng)
        method.fit(X, good, accepted=(X[:, 1] > 0) & (good == 1) | (rng.random(200) < 0.1))
        for _ in range(t):
            X, _, good = people(150, rng)
            batch = method.decide(X)
            method.observe(batch.ids[batch.accepted], good[batch.accepted])
        selected = np.flatnonzero(batch.propensity == 1)
        sizes.append(selected.size)
        bad += int(selected.size > 0 and good[rng.choice(selected)] == 0)
    return bad, np.mean(sizes)


def test_the_expected_share_of_bad_is_at_most_alpha():
    bad, size = bad_share(ConformalSelection, GaussianNB(), 200)
    assert size > 20
    assert stats.binomtest(bad, 200, ALPHA, alternative="greater").pvalue > 1e-3
    assert bad > 0.08 * 200  # and the bound is not met by selecting next to nobody


@pytest.mark.parametrize(
    ("kind", "learner"),
    [
        (LearnsFromItsCalibration, KNeighborsClassifier(1)),
        (CountsTheRejectedAsGood, GaussianNB()),
    ],
)
def test_broken_calibrations_are_caught(kind, learner):
    bad, _ = bad_share(kind, learner, 120)
    assert stats.binomtest(bad, 120, ALPHA, alternative="greater").pvalue < 1e-3
