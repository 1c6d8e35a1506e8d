"""Applicants who depend on each other: several applications of a person, and common shocks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from fairchance import CertifiedClassifier
from fairchance.errors import InputError
from fairchance.methods.certified.evidence import Dependence, Wealth, by_person, log_growth, values
from methods.certified.known_truth import ALPHA, QUICK, rngs, too_many
from methods.certified.ladders import LEVEL, make_ladder
from methods.certified.lender import Town, open_program, tell

RUNG, MOST, RUNS = 70, 5, 60


def at_rung(**options):
    """Return a ladder with one walk, from the rung that is deployed."""
    return make_ladder(starts=((RUNG, 1.0),), **options)


def applications(rng, n_persons=150, *, bad_apply=MOST, good_apply=1):
    """Return the person of each application and whether it is bad; its FDR is just above α.

    Persons differ in how often they apply, and all applications of a person end alike.
    """
    share = (ALPHA + 0.0005) / bad_apply
    rest = (1 - ALPHA - 0.0005) / good_apply
    bad = rng.random(n_persons) < share / (share + rest)
    number = np.repeat(np.arange(n_persons), np.where(bad, bad_apply, good_apply))
    return number, bad[number]


def round_of(rng, ladder, bad):
    at = ladder.locate(rng.normal(size=(bad.size, 1)), np.zeros(bad.size, np.intp))
    p = ladder.policy(at, RUNG)
    accepted = rng.random(bad.size) < p
    return at, p, accepted, (bad & accepted).astype(float)


def is_certified(rng, *, told, rounds=20, **numbers):
    """Return whether the deployed rung is ever certified, with or without the persons."""
    ladder = at_rung()
    use = np.arange(ladder.grid.size) == RUNG
    for _ in range(rounds):
        persons, bad = applications(rng, **numbers)
        dependence = Dependence(persons, MOST) if told else None
        bounds = ladder.ratio_bounds(RUNG)
        ladder.test(
            *round_of(rng, ladder, bad), ratio_bounds=bounds, use=use, dependence=dependence
        )
    return bool(ladder.certified()[RUNG])


@pytest.mark.parametrize(("bad_apply", "good_apply"), [(5, 1), (1, 5), (5, 5)])
def test_persons_who_apply_often_certify_nothing(bad_apply, good_apply):
    """Also if how often they apply says something about the outcome; false alarm 0.001."""
    often = {"bad_apply": bad_apply, "good_apply": good_apply}
    false = sum(is_certified(rng, told=True, **often) for rng in rngs(71, RUNS))
    assert not too_many(false, RUNS, LEVEL)


def test_a_test_that_is_not_told_of_persons_is_false():
    false = sum(is_certified(rng, told=False, bad_apply=5, good_apply=5) for rng in rngs(72, RUNS))
    assert binom.sf(false - 1, RUNS, LEVEL) < 1e-6


@pytest.mark.parametrize("by_features", [False, True])
def test_dividing_by_the_actual_number_counts_persons_and_is_false(by_features):
    """So is one bet on all applicants who look the same, who are different persons."""
    false = 0
    for rng in rngs(73, 15):
        ladder, wealth = at_rung(), Wealth.start(ALPHA, 1)
        shares = wealth.shares(np.ones((2, 1)))
        for _ in range(20):
            persons, bad = applications(rng)
            if by_features:  # five values belong to one bad applicant each, one to all others
                bad = np.arange(bad.size) < (ALPHA + 0.0005) * bad.size
                persons = np.where(bad, 0, 1 + np.arange(bad.size) % 20)
            at, p, accepted, was_bad = round_of(rng, ladder, bad)
            z = values(ladder.policies(at, RUNG), p, accepted, was_bad, ALPHA, 4.0)
            order = np.argsort(persons, kind="stable")
            n = by_person(np.ones_like(z), persons[order])
            z = by_person(z[order], persons[order]) / n
            wealth.add(np.array([log_growth(z, share) for share in shares]))
        false += wealth.best[0] >= -np.log(LEVEL)
    assert false >= 14


def test_the_sum_over_persons_equals_a_loop(rng):
    ladder = at_rung()
    persons, bad = applications(rng, n_persons=3000)  # several chunks
    shuffled = rng.permutation(persons.size)
    persons, bad = persons[shuffled], bad[shuffled]
    batch = round_of(rng, ladder, bad)
    bounds = ladder.ratio_bounds(RUNG)
    use = np.arange(ladder.grid.size) == RUNG
    shares = ladder.wealth.shares(bounds)[:, :, RUNG] / MOST
    ladder.test(*batch, ratio_bounds=bounds, use=use, dependence=Dependence(persons, MOST))
    at, p, accepted, was_bad = batch
    for i, cap in enumerate((4.0, 8.0)):
        z = values(ladder.policies(at, RUNG), p, accepted, was_bad, ALPHA, cap)[:, 0]
        sums = np.bincount(persons, z)
        expected = [np.log1p(share * sums).sum() for share in shares[i]]
        np.testing.assert_allclose(ladder.wealth.log[i, :, RUNG], expected, atol=1e-9)


def shocked_run(rng, told, *, sigma=0.02, n=3000, rounds=30):
    """Return whether the rung is ever certified; its FDR averaged over shocks is just above α."""
    ladder = make_ladder(starts=((RUNG, 1.0),))
    if told:
        ladder.shock = sigma
        ladder.wealth = ladder.start_wealth(ALPHA)
        many = rng.normal(size=(20_000, 1))
        at = ladder.locate(many, np.zeros(len(many), np.intp))
        ladder.mass = ladder.policies(at).mean(axis=0)
    use = np.arange(ladder.grid.size) == RUNG
    for _ in range(rounds):
        bad = rng.random(n) < ALPHA + 0.0005 + sigma * rng.normal()
        bounds = ladder.ratio_bounds(RUNG)
        ladder.test(*round_of(rng, ladder, bad), ratio_bounds=bounds, use=use)
    return bool(ladder.certified()[RUNG])


@pytest.mark.parametrize("told", [True, False])
def test_common_shocks_certify_nothing_if_they_are_allowed_for(told):
    false = sum(shocked_run(rng, told) for rng in rngs(74, RUNS))
    if told:
        assert not too_many(false, RUNS, LEVEL)
    else:
        assert binom.sf(false - 1, RUNS, LEVEL) < 1e-6


def test_a_shock_allowance_still_certifies(rng):
    """A true FDR of .05 is certified within a few rounds with σ = .02."""
    ladder = make_ladder(starts=((RUNG, 1.0),))
    ladder.shock, ladder.mass = 0.02, 0.9
    ladder.wealth = ladder.start_wealth(ALPHA)
    use = np.arange(ladder.grid.size) == RUNG
    for _ in range(10):
        bad = rng.random(1000) < 0.05 + 0.02 * rng.normal()
        bounds = ladder.ratio_bounds(RUNG)
        ladder.test(*round_of(rng, ladder, bad), ratio_bounds=bounds, use=use)
    assert ladder.certified()[RUNG]


def fitted(rng, **options):
    X = rng.normal(size=(500, 2))
    good = (rng.random(500) < 0.8).astype(int)
    clf = CertifiedClassifier(learner=QUICK, random_state=0, **options)
    return clf.fit(X, good, accepted=X[:, 0] > 0)


def test_further_applications_get_the_answer_of_the_first(rng):
    clf, X = fitted(rng, per_person=2), rng.normal(size=(300, 2))
    persons = np.arange(300) // 6
    batch = clf.decide(X, persons=persons)
    answers = batch.accepted.reshape(50, 6)
    propensity = batch.propensity.reshape(50, 6)
    for accepted, p in zip(answers, propensity, strict=True):
        copied = [np.sum(p == value) for value in np.unique(p)]
        assert sum(n - 1 for n in copied) >= 4  # four of six repeat an answer
        assert len({(a, q) for a, q in zip(accepted, p, strict=True)}) <= 2


@pytest.mark.parametrize("fdr", [0.02, 0.06])
def test_further_applications_ruin_no_gambler_on_any_ladder(fdr):
    """Forty applications of one person, bad at last: at most five count, the monitor's too.

    All rankings are tested, not only that of the policy in use; a logarithm of a negative number
    would be an error.
    """
    (rng,), town = rngs(73, 1), Town(lender=(0.8, 0.33)).with_lenders_fdr(fdr)
    classifier, statuses = open_program(town, rng, n_history=600), []
    engine = classifier._engines[0]
    for t in range(10):
        month, persons = town.draw(300, rng), np.arange(300)
        if t % 2:
            persons[:40] = 0
            month.X[:40], month.bad[:40], month.incumbent[:20] = month.X[0], True, True
        decided = classifier.decide(month.X, incumbent=month.incumbent, persons=persons)
        tell(classifier, month, decided)
        statuses.append(decided.status)
        assert all(np.isfinite(ladder.wealth.log).all() for ladder in engine.ladders)
        assert engine.stage.monitor is None or np.isfinite(engine.stage.monitor.log_wealth())
    assert len(engine.ladders) >= 6
    assert "certified" in statuses or fdr > 0.02


def test_persons_do_not_depend_on_the_order_of_rows(rng):
    X, persons = rng.normal(size=(200, 2)), rng.integers(0, 60, 200)
    ids, order = np.arange(1000, 1200), rng.permutation(200)
    one = fitted(np.random.default_rng(0), per_person=2).decide(X, ids=ids, persons=persons)
    other = fitted(np.random.default_rng(0), per_person=2).decide(
        X[order], ids=ids[order], persons=persons[order]
    )
    np.testing.assert_array_equal(other.accepted, one.accepted[order])
    np.testing.assert_allclose(other.propensity, one.propensity[order])


@pytest.mark.parametrize("persons", [[1, 2], [None, *range(9)]])
def test_wrong_persons_are_refused(rng, persons):
    clf = fitted(rng)
    with pytest.raises(InputError, match="persons"):
        clf.decide(rng.normal(size=(10, 2)), persons=persons)
    assert len(clf.rounds_) == 0
