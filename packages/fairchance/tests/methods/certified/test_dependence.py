"""Applicants who depend on each other: several applications of a person, and common shocks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.neighbors import KNeighborsClassifier

from fairchance import CertifiedClassifier
from fairchance.errors import InputError
from fairchance.methods.certified.evidence import Dependence, Wealth, by_person, log_growth, values
from fairchance.methods.certified.ranking import PastApplicants
from methods.certified.known_truth import ALPHA, DELTA, QUICK, rngs, too_many
from methods.certified.ladders import LEVEL, make_ladder
from methods.certified.lender import Town, open_program, tell

RUNG, MOST, RUNS = 70, 5, 60
HISTORY_LEVEL = 0.016  # of δ = .1, for a history as evidence


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


@pytest.mark.filterwarnings("ignore:Unlike the history")  # forty applicants are alike
@pytest.mark.parametrize("fdr", [0.02, 0.06])
def test_further_applications_ruin_no_gambler_on_any_ladder(fdr):
    """Forty applications of one person, bad at last: at most five count, the monitor's too.

    All rankings are tested, not only that of the policy in use; a logarithm of a negative number
    would be an error.
    """
    (rng,), town = rngs(73, 1), Town(lender=(0.8, 0.33)).with_lenders_fdr(fdr)
    classifier, statuses, most = open_program(town, rng, n_history=600), [], 0
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
        most = max(most, len(engine.ladders))  # forty bad outcomes may look like drift
    assert most >= 4
    assert "certified" in statuses or fdr > 0.02


def test_in_shadow_the_lender_decides_on_further_applications_too(rng):
    clf, X = fitted(rng, per_person=2), rng.normal(size=(300, 2))
    theirs = X[:, 0] > 0
    batch = clf.decide(X, persons=np.arange(300) // 6, incumbent=theirs, ramp=0)
    np.testing.assert_array_equal(batch.accepted, theirs)
    np.testing.assert_array_equal(batch.propensity, theirs)
    assert not batch.explored.any()


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


def method_certifies(rng, *, told=True, rounds=12, n_persons=150, **numbers):
    """Return whether the whole method ever certifies a policy, of which each breaks α."""
    persons, bad = applications(rng, 300, **numbers)
    clf = CertifiedClassifier(
        ALPHA, DELTA, learner=QUICK, per_person=MOST, horizon=rounds, random_state=0
    )
    X = rng.normal(size=(300, 2))[persons]
    clf.fit(X, 1 - bad, accepted=X[:, 0] > -1, persons=persons if told else None)
    for _ in range(rounds):
        persons, bad = applications(rng, n_persons, **numbers)
        X = rng.normal(size=(n_persons, 2))[persons]
        decided = clf.decide(X, persons=persons if told else None, unlike_history=True)
        clf.observe(decided.ids[decided.accepted], 1 - bad[decided.accepted])
        if decided.certified:
            return True
    return False


@pytest.mark.parametrize(("bad_apply", "good_apply"), [(5, 1), (1, 5), (5, 5)])
@pytest.mark.parametrize("runs", [4, pytest.param(200, marks=pytest.mark.long)])
def test_the_whole_method_certifies_nothing_if_persons_apply_often(runs, bad_apply, good_apply):
    often = {"bad_apply": bad_apply, "good_apply": good_apply}
    false = sum(method_certifies(rng, **often) for rng in rngs(84, runs))
    assert not too_many(false, runs, DELTA)


@pytest.mark.long
def test_the_whole_method_is_false_if_it_is_not_told_of_persons():
    false = sum(
        method_certifies(rng, told=False, bad_apply=5, good_apply=5) for rng in rngs(85, 100)
    )
    assert too_many(false, 100, DELTA)


# The history as evidence.


def history_certifies(rng, learner=QUICK, *, told=True, n_persons=200, **numbers):
    """Return whether the history tests policies and certifies one; each of them breaks α.

    Features say nothing about outcomes, but all applications of a person have the same.
    """
    persons, bad = applications(rng, n_persons, **numbers)
    X = rng.normal(size=(n_persons, 2))[persons]
    clf = CertifiedClassifier(
        ALPHA, DELTA, learner=learner, evidence="history", per_person=MOST, random_state=0
    )
    told_persons = persons if told else None
    clf.fit(X, 1 - bad, accepted=persons != persons[-1], persons=told_persons)
    clf.decide(rng.normal(size=(50, 2)), unlike_history=True)
    ladders = [ladder for ladder in clf._engines[0].ladders if ladder.from_history]
    assert clf._engines[0].rules.history_level == pytest.approx(HISTORY_LEVEL)
    return len(ladders) > 0, any(ladder.certified().any() for ladder in ladders)


@pytest.mark.parametrize(("bad_apply", "good_apply"), [(5, 1), (1, 5), (5, 5)])
@pytest.mark.filterwarnings("ignore:All accepted")
@pytest.mark.parametrize("runs", [RUNS, pytest.param(1500, marks=pytest.mark.long)])
def test_persons_who_apply_often_in_the_history_certify_nothing(runs, bad_apply, good_apply):
    often = {"bad_apply": bad_apply, "good_apply": good_apply}
    tested, false = np.sum([history_certifies(rng, **often) for rng in rngs(81, runs)], axis=0)
    assert tested > runs / 2
    assert not too_many(false, runs, HISTORY_LEVEL)


def test_halves_by_application_are_false():
    """A model has then seen other applications of the persons on whom it is tested."""
    memory = KNeighborsClassifier(1)
    often = {"bad_apply": 5, "good_apply": 5, "n_persons": 400, "told": False}
    assert sum(history_certifies(rng, memory, **often)[1] for rng in rngs(82, 8)) >= 7


def test_halves_by_person_with_a_bet_per_application_are_false(monkeypatch):
    monkeypatch.setattr(PastApplicants, "dependence", lambda self: Dependence())
    often = {"bad_apply": 5, "good_apply": 5}
    false = sum(history_certifies(rng, **often)[1] for rng in rngs(83, 2 * RUNS))
    assert too_many(false, 2 * RUNS, HISTORY_LEVEL)


def test_halves_of_the_history_divide_no_person(rng):
    persons = rng.integers(0, 100, 500)
    X = rng.normal(size=(500, 2))
    clf = CertifiedClassifier(learner=QUICK, random_state=0)
    clf.fit(X, persons % 2, accepted=rng.random(500) < 0.7, persons=persons)
    for split in (0, 1):
        halves = [clf._history.fold(number, split) for number in (0, 1)]
        who = [{*half.persons.tolist(), *half.rejected_persons.tolist()} for half in halves]
        assert who[0].isdisjoint(who[1])
        assert len(who[0] | who[1]) == np.unique(persons).size
        assert min(map(len, who)) > 25


def test_a_history_with_too_many_applications_of_a_person_is_no_evidence(rng):
    """Leaving out the others would count persons instead of applications."""
    X, persons = rng.normal(size=(300, 2)), np.maximum(np.arange(300) - 6, 0)
    given = {"accepted": X[:, 0] > 0, "persons": persons}
    options = {"learner": QUICK, "evidence": "history", "random_state": 0}
    with pytest.raises(InputError, match=r"7 applications .* per_person=6"):
        CertifiedClassifier(per_person=6, **options).fit(X, persons % 2, **given)
    CertifiedClassifier(per_person=7, **options).fit(X, persons % 2, **given)
