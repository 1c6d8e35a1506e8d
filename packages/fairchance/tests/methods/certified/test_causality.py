"""Causality: nothing depends on the future, on rejected applicants, or on any order."""

from __future__ import annotations

import numpy as np
import pytest

from fairchance.errors import UnknownIdError
from fairchance.simulate.populations import draw_applicants
from methods.certified.known_truth import Slope, start

N, ROUNDS = 300, 12


def run(outcomes_of=None, tell=None, shuffle=None, rejected_of=None):
    """Return a classifier after some rounds, with each round's probabilities in order of ids.

    ``outcomes_of(t, outcome)`` changes outcomes of a round, ``rejected_of`` those of its rejected,
    ``tell`` how they arrive, ``shuffle`` the order of rows.
    """
    rng = np.random.default_rng(3)
    # Without the monitor, which would drop all ladders when a round turns bad.
    classifier = start(Slope(), rng, horizon=ROUNDS, monitor=0, random_state=5)
    everything, frozen = [], []
    for t in range(1, ROUNDS + 1):
        batch = draw_applicants(Slope(), N, rng)
        ids, X = np.arange(N) + 10_000 * t, batch.people.X
        order = np.arange(N) if shuffle is None else shuffle.permutation(N)
        decided = classifier.decide(X[order], ids=ids[order])
        back = np.argsort(decided.ids)
        outcome = batch.outcome if outcomes_of is None else outcomes_of(t, batch.outcome)
        accepted = decided.accepted[back]
        if rejected_of is not None:
            outcome = np.where(accepted, outcome, rejected_of(outcome))
        frozen.append(list(classifier._engines[0].ladders))
        if tell is None:
            classifier.observe(ids[accepted], outcome[accepted])
        else:
            tell(classifier, ids[accepted], outcome[accepted])
        everything.append((decided.propensity[back], accepted, decided.certified))
    return classifier, everything, frozen


def same_ladders(left, right):
    assert len(left) == len(right)
    for a, b in zip(left, right, strict=True):
        some = np.linspace(-2, 2, 41)[:, None]
        assert np.array_equal(*(x.ranking.likelihood.score(some, None) for x in (a, b)))
        assert np.array_equal(a.ranking.reference[0], b.ranking.reference[0])
        assert (a.tau, a.level, a.starts, a.frozen) == (b.tau, b.level, b.starts, b.frozen)


def same_rounds(left, right):
    for (p, accepted, certified), (p_other, accepted_other, certified_other) in zip(
        left, right, strict=True
    ):
        assert np.array_equal(p, p_other)
        assert np.array_equal(accepted, accepted_other)
        assert certified == certified_other


@pytest.fixture(scope="module")
def usual():
    return run()


@pytest.mark.parametrize("changed", [1, 2, 6])
def test_outcomes_change_nothing_before_they_come(usual, changed):
    _, rounds, frozen = usual
    _, others, others_frozen = run(lambda t, y: 1 - y if t == changed else y)
    same_rounds(rounds[:changed], others[:changed])
    for t in range(changed):
        same_ladders(frozen[t], others_frozen[t])
    # Ladders frozen before stay as they are, though later ones differ.
    before = len(frozen[changed - 1])
    same_ladders(frozen[-1][:before], others_frozen[-1][:before])
    assert any(
        not np.array_equal(p, other_p)
        for (p, *_), (other_p, *_) in zip(rounds[changed:], others[changed:], strict=True)
    )


def test_outcomes_of_the_rejected_are_unreachable(usual):
    classifier, rounds, _ = usual
    other, others, _ = run(rejected_of=lambda y: 1 - y)
    same_rounds(rounds, others)
    assert classifier.rounds_[-1] == other.rounds_[-1]
    _, accepted, _ = rounds[-1]
    ids = np.arange(N)[~accepted] + 10_000 * ROUNDS
    with pytest.raises(UnknownIdError):
        other.observe(ids[:3], [1, 1, 1])


def test_outcomes_of_the_historys_rejected_are_not_read():
    rng = np.random.default_rng(0)
    batch = draw_applicants(Slope(), 600, rng)
    accepted = rng.random(600) < np.where(batch.outcome == 1, 0.9, 0.1)
    new = draw_applicants(Slope(), N, rng).people.X
    answers = []
    for y in (batch.outcome, np.where(accepted, batch.outcome, 1 - batch.outcome)):
        classifier = start(Slope(), np.random.default_rng(1), random_state=1)
        classifier.fit(batch.people.X, y, accepted=accepted)
        answers.append(classifier.decide(new).propensity)
    assert np.array_equal(*answers)


def in_portions(classifier, ids, outcome):
    rng = np.random.default_rng(int(ids.size))
    for part in np.array_split(rng.permutation(ids.size), 3):
        classifier.observe(ids[part], outcome[part])


def test_portions_and_their_order_do_not_matter(usual):
    classifier, rounds, frozen = usual
    other, others, others_frozen = run(tell=in_portions)
    same_rounds(rounds, others)
    same_ladders(frozen[-1], others_frozen[-1])
    assert classifier.rounds_[-1] == other.rounds_[-1]


def test_the_order_of_rows_does_not_matter(usual):
    """Sums in another order differ in their last bits, decisions do not."""
    classifier, rounds, _ = usual
    other, others, _ = run(shuffle=np.random.default_rng(8))
    for (p, accepted, certified), (p_other, accepted_other, certified_other) in zip(
        rounds, others, strict=True
    ):
        assert p == pytest.approx(p_other, abs=1e-6)
        assert np.array_equal(accepted, accepted_other)
        assert certified == certified_other
    assert classifier.rounds_[-1].log_wealth == pytest.approx(other.rounds_[-1].log_wealth)


def test_propensities_are_those_of_the_coins(usual):
    """Accepted counts against Σp, over all rounds; a false alarm has probability below 0.0001."""
    _, rounds, _ = usual
    p = np.concatenate([p for p, _, _ in rounds])
    accepted = np.concatenate([accepted for _, accepted, _ in rounds])
    assert np.all(accepted[p == 1])
    soft = p < 1
    spread = np.sqrt((p[soft] * (1 - p[soft])).sum())
    assert abs(accepted[soft].sum() - p[soft].sum()) <= 4 * spread
