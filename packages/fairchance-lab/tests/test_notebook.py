"""What a notebook shows of the lab's rounds and results."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairchance_lab import FiniteClassifier, compare
from fairchance_lab.experiments.results import Failure, Results
from fairchance_lab.experiments.verdict import find_verdict
from fairchance_lab.experiments.words import takeaway
from fairchance_lab.finite.classifier import FiniteRound
from fairchance_lab.many_classes.classifier import ManyClassDecisions, ManyClassRound
from notebook_cells import HOSTILE, NAME, shown


def test_rounds_of_a_finite_domain_are_shown(rng):
    X = rng.integers(0, 3, size=(300, 2))
    good = (rng.random(300) < 0.8).astype(int)
    clf = FiniteClassifier(random_state=0).fit(X[:200], good[:200])
    batch = clf.decide(X[200:])
    assert "applied" in shown(clf.rounds_).texts
    assert shown(clf.rounds_[0]).texts[0].startswith("Round 1")
    assert "Round 1" in shown(batch).text


def test_results_show_the_verdict_and_every_method():
    results = compare(
        {
            "methods": [NAME, "no-exploration", "ceiling"],
            "variants": {NAME: {"method": "plain"}},
            "repetitions": 2,
            "world": {"data": "lender", "n_batch": 100, "n_rounds": 2},
        }
    )
    page, verdict = shown(results), find_verdict(results)
    assert page.texts[0] == takeaway(verdict)
    assert {one.label for one in verdict.standings} <= set(page.texts)
    assert NAME in page.text
    failed = replace(results, failures=(Failure("α = 0.15", NAME, 0, 1, HOSTILE),))
    assert "results.failures" in shown(failed).text


@pytest.mark.parametrize("kind", [FiniteRound, ManyClassDecisions, ManyClassRound, Results])
def test_everything_that_users_get_back_is_shown(kind):
    assert hasattr(kind, "_repr_html_")
