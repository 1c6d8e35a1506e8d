"""Plug-in thresholds: the widest policy that looks allowed, and how often looks deceive."""

from __future__ import annotations

import numpy as np
import pytest

from fairchance import CertifiedClassifier
from fairchance.simulate.populations import draw_applicants
from fairchance_lab.baselines.plug_in import PlugInClassifier
from methods.certified.known_truth import ALPHA, QUICK, Slope, play, rngs, start

ROUNDS, N = 12, 250


def test_it_deploys_the_widest_policy_whose_estimate_is_allowed():
    """Weights and estimates once more, from the probabilities that each round says it used."""
    rng, population = np.random.default_rng(3), Slope()
    classifier = start(population, rng, method=PlugInClassifier, horizon=ROUNDS)
    batches = [draw_applicants(population, N, rng) for _ in range(ROUNDS)]
    X = np.concatenate([one.people.X for one in batches])
    outcome = np.concatenate([one.outcome for one in batches])
    accepted, said = np.zeros(X.shape[0], bool), np.empty((ROUNDS, X.shape[0]))
    checked = 0
    for t, batch in enumerate(batches):
        known = np.flatnonzero(accepted)
        decided = classifier.decide(batch.people.X)
        said[t] = classifier.acceptance_probability(X)
        (choice,) = classifier._choices
        if known.size >= 30:
            pi = choice.ladder.policies(choice.ladder.locate(X[known], np.zeros(known.size, int)))
            weight = 1 / said[:t, known].mean(axis=0)
            fdr = (weight * (outcome[known] == 0)) @ pi / (weight @ pi)
            allowed = np.flatnonzero(fdr <= ALPHA)
            if allowed.size:
                assert choice.rung == allowed[-1]
                assert classifier.rounds_[-1].estimated_fdr == pytest.approx(fdr[allowed[-1]])
                checked += 1
        mine = slice(t * N, (t + 1) * N)
        accepted[mine] = decided.accepted
        classifier.observe(decided.ids[decided.accepted], batch.outcome[decided.accepted])
    assert checked >= ROUNDS // 2


def test_no_round_is_certified_and_most_runs_break_the_bound():
    """The certified method meets the same people and keeps it, up to δ."""
    population, broken = Slope(), {}
    for method in (PlugInClassifier, CertifiedClassifier):
        broken[method] = 0
        for rng in rngs(17, 4):
            classifier = start(population, rng, n_history=1500, method=method, learner=QUICK)
            policies = play(classifier, population, rng, n=300, rounds=20)
            certified = [one.certified for one in policies]
            assert any(certified) == (method is CertifiedClassifier)
            promised = [one for one in policies if one.certified or method is PlugInClassifier]
            broken[method] += any(one.fdr > ALPHA for one in promised)
            if method is PlugInClassifier:
                assert {one.status for one in classifier.rounds_} == {"pilot"}
    assert broken[PlugInClassifier] >= 3
    assert broken[CertifiedClassifier] <= 1
