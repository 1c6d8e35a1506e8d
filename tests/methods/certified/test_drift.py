"""A population that turns bad half way: what the monitor saves."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from methods.certified.known_truth import ALPHA, Slope, play, rngs, start

BEFORE, AFTER, N = 15, 15, 400
GOOD, WORSE = Slope(intercept=1.5), Slope(intercept=0.5)
RUNS = 6


@pytest.fixture(scope="module", params=[0.05, 0.0], ids=["monitor", "no monitor"])
def runs(request):
    """Return whether there was a monitor, and of each run restarts before and rounds after."""
    answers = []
    for rng in rngs(31, RUNS):
        classifier = start(GOOD, rng, horizon=BEFORE + AFTER, monitor=request.param)
        play(classifier, GOOD, rng, n=N, rounds=BEFORE)
        (engine,) = classifier._engines
        early = engine.stage.restarts
        after, fired = [], None
        for t in range(1, AFTER + 1):
            after += play(classifier, WORSE, rng, n=N, rounds=1)
            if fired is None and engine.stage.restarts > early:
                fired = t
        answers.append((early, fired, after))
    return request.param > 0, answers


def test_the_monitor_ends_violations_soon(runs):
    watched, answers = runs
    violating = [np.mean([one.certified and one.fdr > ALPHA for one in a[2]]) for a in answers]
    delays = [fired for _, fired, _ in answers]
    assert all(after[0].certified and after[0].fdr > ALPHA for _, _, after in answers)
    if watched:
        assert sum(early for early, _, _ in answers) <= 1  # δ = 0.05 in each of six runs
        assert all(fired is not None and fired <= 8 for fired in delays)
        assert np.mean(violating) <= 0.3
    else:
        assert delays == [None] * RUNS
        assert np.mean(violating) >= 0.9


def test_after_an_alarm_old_outcomes_are_left_out():
    rng = np.random.default_rng(2)
    classifier = start(GOOD, rng, horizon=30)
    play(classifier, GOOD, rng, n=N, rounds=12, truth=False)
    (engine,) = classifier._engines
    while engine.stage.restarts == 0:
        play(classifier, WORSE, rng, n=N, rounds=1, truth=False)
    t = classifier.rounds_[-1].round
    assert t <= 18
    assert engine.ladders == []
    assert engine.rows["round"][engine.known_rows()].min() == t - 4  # five rounds are kept
    policies = play(classifier, WORSE, rng, n=N, rounds=1)
    assert not policies[0].certified
    assert classifier.rounds_[-1].status == "pilot"


def test_an_alarm_takes_the_evidence_that_its_share_of_delta_asks_for(rng):
    """Half of the monitor's δ is for the first stage, half of the rest for the next, and so on."""
    for monitor, restarts, share in ((0.05, 0, 0.025), (0.05, 2, 0.00625), (0.2, 1, 0.05)):
        classifier = start(GOOD, rng, monitor=monitor)
        play(classifier, GOOD, rng, n=50, rounds=1, truth=False)
        (engine,) = classifier._engines
        engine.stage.restarts = restarts
        for log_wealth, alarm in ((-np.log(share) - 1e-9, False), (-np.log(share) + 1e-9, True)):
            engine.stage.monitor = SimpleNamespace(log_wealth=lambda value=log_wealth: value)
            assert engine._has_drifted() == alarm
