"""FiniteClassifier: rounds against the paper's box, known cells, draws, and invariances."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import fairchance as fc
from fairchance import (
    EqualGroups,
    FdrBudget,
    GroupShare,
    Revenue,
    SelectionRateParity,
    SummedAcceptance,
    SumOfG,
    Uniform,
)
from fairchance.core.strategies import FromFunction
from fairchance.errors import InputError
from fairchance_lab.finite import CountedOutcomes, FiniteClassifier, NormalisedG
from finite.box import SlowAlgorithm1
from finite.small_domain import (
    DOMAIN,
    PAST,
    REVENUE,
    decide,
    draw,
    fitted,
    run,
    without_history,
)

G = np.array([1, 2, 3, 1, 2, 1, 1, 4.0])


def rounds_of_both(seed, n_rounds, n, loss=2.5, least=0.0, forgotten=0.0):
    """Yield the classifier and the slow implementation after each decision on the same batch."""
    rng = np.random.default_rng(seed)
    budget = FdrBudget(alpha=0.15, exploit=0.1, min_selection_rate=least, slack=0.005)
    classifier = FiniteClassifier(
        Revenue(gain=1, loss=loss),
        budget,
        NormalisedG(threshold=0.25),
        lambda X, score, group: G,
        gap=0,
        random_state=seed,
    )
    slow = SlowAlgorithm1(PAST.tolist(), 0.25, budget, lambda cell: G[cell], loss)
    people, good = draw(rng, 100)
    cells = DOMAIN.cell_of(people)
    accepted = PAST[cells] > 0
    classifier.fit(
        people.X,
        good,
        accepted=accepted,
        sensitive_features=people.group,
        domain=(DOMAIN.X, DOMAIN.group),
        past_policy=PAST,
    )
    slow.applicants = dict(enumerate(cells.tolist()))
    slow.outcomes = {i: int(good[i]) for i in np.flatnonzero(accepted).tolist()}
    for _ in range(n_rounds):
        people, good = draw(rng, n)
        cells = DOMAIN.cell_of(people)
        batch = decide(classifier, people)
        yield classifier, slow, batch, cells, slow.decide(batch.ids.tolist(), cells.tolist())
        ids, outcomes = batch.ids[batch.accepted], good[batch.accepted]
        classifier.observe(ids, outcomes)
        slow.outcomes |= dict(zip(ids.tolist(), outcomes.tolist(), strict=True))
        known = np.array(list(slow.applicants))
        gone = known[rng.random(known.size) < forgotten]
        classifier.forget(gone)
        slow.forget(gone.tolist())


def assert_same_round(classifier, slow, batch, cells, f, n_explore):
    t, policy = batch.round, classifier.policies_[-1]
    assert set(np.flatnonzero(policy.exploit)) == slow.exploit, t
    assert set(np.flatnonzero(policy.accepts)) == f, t
    assert np.array_equal(batch.accepted & batch.exploit, np.isin(cells, list(f))), t
    assert batch.explored.sum() == n_explore, t
    assert classifier.counts_.applicants.tolist() == slow.counts(), t
    assert classifier.n_outcomes_ == len(slow.outcomes), t
    assert classifier.coverage_ == pytest.approx(slow.w), t
    if t > 1:
        record = classifier.rounds_[-1]
        estimates = record.estimated_utility, record.estimated_fdr, record.selection_rate
        assert estimates == pytest.approx(slow.estimates), t


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("loss", "least"), [(2.5, 0.0), (14.0, 0.6)])
@pytest.mark.filterwarnings("ignore::fairchance.errors.LearningWarning")
def test_rounds_are_those_of_the_box(seed, loss, least):
    """f_t, EXPLOIT_t and n_explore are the same; the drawn applicants may differ."""
    for classifier, slow, batch, cells, decided in rounds_of_both(seed, 7, 200, loss, least):
        assert_same_round(classifier, slow, batch, cells, *decided)
    assert len(slow.exploit) > 3  # EXPLOIT has grown


@pytest.mark.filterwarnings("ignore::fairchance.errors.LearningWarning")
def test_rounds_with_forgotten_applicants_are_those_of_the_box_without_them():
    n_left = 0
    for seed in range(4):
        for classifier, slow, batch, cells, decided in rounds_of_both(seed, 8, 60, forgotten=0.65):
            assert_same_round(classifier, slow, batch, cells, *decided)
            before = classifier.policies_[max(batch.round - 2, 0)].exploit
            n_left += int((before & ~classifier.policies_[-1].exploit).sum())
        *_, (kept, *_) = rounds_of_both(seed, 8, 60)
        assert repr(kept.rounds_) != repr(classifier.rounds_)  # the control: another run
        assert kept.n_outcomes_ > 2 * classifier.n_outcomes_
    assert n_left  # some cells lost all their outcomes and were explored again


# Known cells.


@pytest.mark.parametrize(
    "coverage",
    [NormalisedG(0.2), CountedOutcomes(5), SummedAcceptance(threshold=0.3), SumOfG(threshold=0.9)],
)
def test_known_cells_stay_known(coverage):
    classifier = run(np.random.default_rng(0), coverage=coverage, n_rounds=8)
    regions = np.array([policy.exploit for policy in classifier.policies_])
    assert np.all(regions[1:] >= regions[:-1])
    assert regions[-1].sum() > regions[0].sum()


def test_cells_that_f_0_covers_stay_known_without_outcomes(rng):
    classifier = without_history(coverage=CountedOutcomes(10))
    for t in (1, 2):
        people, good = draw(rng, 300)
        batch = decide(classifier, people)
        assert np.array_equal(classifier.policies_[-1].exploit, PAST > 0), t
        first = np.flatnonzero(batch.accepted & (good == 1))[:1]
        classifier.observe(batch.ids[first], good[first])


def test_counted_outcomes_is_the_number_of_outcomes():
    classifier = run(np.random.default_rng(0), coverage=CountedOutcomes(8), n_rounds=5)
    assert np.array_equal(classifier.coverage_, classifier.counts_.outcomes)
    new = classifier.policies_[-1].exploit & ~classifier.policies_[0].exploit
    assert new.any()
    assert np.all(classifier.counts_.outcomes[new] > 8)


def test_summed_acceptance_is_the_sum_over_policies():
    classifier = run(
        np.random.default_rng(3), coverage=SummedAcceptance(reference_size=100), n_rounds=4
    )
    summed = sum(4 * policy.acceptance for policy in classifier.policies_)
    assert classifier.coverage_ == pytest.approx(PAST + summed)


def test_cell_without_outcomes_is_not_exploited():
    """With min_outcomes=0 coverage alone moves cells to EXPLOIT before any outcome."""
    options = {"coverage": NormalisedG(0.05), "strategy": Uniform(), "n_rounds": 2, "n": 40}
    default, literal = (
        run(np.random.default_rng(0), min_outcomes=least, **options) for least in (1, 0)
    )
    unobserved = literal.counts_.outcomes == 0
    assert literal.policies_[-1].exploit[unobserved].any()
    assert not default.policies_[-1].exploit[default.counts_.outcomes == 0].any()


def test_new_cell_is_unexplored():
    classifier = run(np.random.default_rng(0))
    X = np.vstack([np.tile([0, 0], (50, 1)), np.tile([7, 7], (50, 1))])
    batch = classifier.decide(X, sensitive_features=["a"] * 100, unlike_history=True)
    assert batch.exploit[:50].all()
    assert not batch.exploit[50:].any()
    assert classifier.rounds_[-1].n_cells == 9
    assert np.all(batch.propensity[50:] > 0)
    assert not classifier.accepts([[7, 7], [8, 8]], sensitive_features=["a", "a"]).any()
    assert classifier.coverage_of([[9, 9]], sensitive_features=["a"]).tolist() == [0.0]
    assert len(classifier.cells_[0]) == 9  # questions add no cell


# Accepted cells.


@pytest.mark.parametrize("seed", range(4))
def test_fairness_bounds_the_difference_of_selection_rates(seed):
    def disparity(**options):
        rng = np.random.default_rng(seed)
        classifier = run(rng, coverage=NormalisedG(0.1), n=2000, **options)
        policy = classifier.policies_[-1]
        heads = (classifier.counts_.applicants * policy.exploit).reshape(2, 4)
        rates = (heads * policy.accepts.reshape(2, 4)).sum(axis=1) / heads.sum(axis=1)
        return np.ptp(rates), policy.accepts

    free, _ = disparity()
    bound, accepts = disparity(fairness=SelectionRateParity(0.05))
    assert free > 0.05  # the constraint binds
    assert bound <= 0.05 + 1e-9
    assert accepts.any()


def test_constraints_per_group_bound_each_group():
    """Cells a1, a2 and b1 of the method's counterexample, in whole applicants."""
    heads, bad = np.array([500, 400, 800]), np.array([50, 80, 144])
    cell = np.repeat([0, 1, 2], heads)
    good = np.concatenate([np.arange(n) >= k for n, k in zip(heads, bad, strict=True)]).astype(int)
    group = np.array(["a", "a", "b"])

    def accepted(constraints):
        classifier = FiniteClassifier(
            Revenue(gain=1, loss=1),
            FdrBudget(alpha=0.16, exploit=0.149, slack=0.001),
            constraints=constraints,
            gap=0,
        )
        classifier.fit(cell, good, sensitive_features=group[cell])
        batch = np.repeat([0, 1, 2], heads // 100)
        classifier.decide(batch, sensitive_features=group[batch])
        return classifier.policies_[0].accepts.tolist()

    assert accepted("joint") == [True, False, True]
    assert accepted("per_group") == [True, True, False]


@pytest.mark.parametrize("hypothesis", ["threshold", "threshold_per_group"])
def test_cuts_accept_the_cells_of_highest_score(hypothesis):
    classifier = run(np.random.default_rng(0), hypothesis=hypothesis, coverage=NormalisedG(0.1))
    policy = classifier.policies_[-1]
    parts = [slice(0, 8)] if hypothesis == "threshold" else [slice(0, 4), slice(4, 8)]
    n_cuts = 0
    for part in parts:
        known = policy.exploit[part]
        score, f = policy.score[part][known], policy.accepts[part][known]
        if f.any() and not f.all():
            n_cuts += 1
            assert score[f].min() > score[~f].max()
    assert n_cuts


def test_cuts_can_use_any_score():
    classifier = run(
        np.random.default_rng(0),
        hypothesis="threshold",
        cut_score=lambda X, group: -2 * X[:, 0] - X[:, 1],
        coverage=NormalisedG(0.1),
    )
    policy = classifier.policies_[-1]
    score = -2 * DOMAIN.X[:, 0] - DOMAIN.X[:, 1]
    accepted, refused = policy.accepts, policy.exploit & ~policy.accepts
    assert score[accepted].min() > score[refused].max()


# Draws.


def sizes(X, score, group):
    return 1.0 + X[:, 0] + 20 * X[:, 1] + 2 * group


@pytest.mark.parametrize(
    "strategy", [sizes, GroupShare(FromFunction(sizes)), FromFunction(sizes) * EqualGroups()]
)
def test_applicants_are_explored_with_their_propensity(strategy):
    people, _ = draw(np.random.default_rng(1), 60)
    n_runs, times = 800, np.zeros(60, int)
    for seed in range(n_runs):
        batch = decide(without_history(strategy=strategy, random_state=seed), people)
        times += batch.accepted
    explore = ~batch.exploit
    assert batch.propensity[explore].sum() == pytest.approx(batch.explored.sum())
    assert np.unique(batch.propensity[explore]).size > 2
    cell = DOMAIN.cell_of(people)
    assert np.unique(cell).size == len(set(zip(cell, batch.propensity, strict=True)))

    def smallest_p_value(propensity):
        low = binom.cdf(times, n_runs, propensity)
        high = binom.sf(times - 1, n_runs, propensity)
        return np.minimum(low, high).min()

    assert smallest_p_value(batch.propensity) > 1e-6 / 120
    # The control: equal propensities for all candidates.
    equal = np.where(explore, batch.propensity[explore].mean(), batch.propensity)
    assert smallest_p_value(equal) < 1e-6 / 120


def test_propensity_is_capped_at_one_and_the_rest_is_shared():
    """Three candidates of a huge size are certain; others share what is left by their sizes."""
    classifier = FiniteClassifier(
        REVENUE,
        FdrBudget(alpha=0.3, exploit=0.1),
        strategy=lambda X, s, z: X[:, 0] ** 2.0,
        random_state=0,
    )
    classifier.fit(None, None, domain=([[1], [2], [3], [9]], None), past_policy=[1.0, 0, 0, 0])
    batch = classifier.decide(np.repeat([[1], [2], [3], [9]], [100, 20, 20, 3], axis=0))
    n_left = batch.explored.sum() - 3
    assert 0 < n_left < 40
    assert np.array_equal(batch.propensity[-3:], np.ones(3))
    total = 20 * 4.0 + 20 * 9.0
    expected = np.repeat([n_left * 4.0 / total, n_left * 9.0 / total], 20)
    assert batch.propensity[100:140] == pytest.approx(expected, rel=1e-8)


# Invariances.


def test_outcomes_of_rejected_applicants_change_nothing():
    def decisions(flip):
        rng = np.random.default_rng(5)
        people, good = draw(rng, 400)
        accepted = PAST[DOMAIN.cell_of(people)] > 0
        outcome = np.where(accepted, good, 1 - good if flip else good)
        classifier = FiniteClassifier(REVENUE, random_state=0)
        classifier.fit(people.X, outcome, accepted=accepted, sensitive_features=people.group)
        for _ in range(3):
            people, good = draw(rng, 400)
            batch = decide(classifier, people)
            classifier.observe(batch.ids[batch.accepted], good[batch.accepted])
        return batch.accepted

    assert np.array_equal(decisions(flip=False), decisions(flip=True))


def test_observing_in_parts_and_in_any_order_is_the_same():
    def decisions(parts):
        rng = np.random.default_rng(5)
        classifier = fitted(rng)
        people, good = draw(rng, 400)
        batch = decide(classifier, people)
        ids, outcomes = batch.ids[batch.accepted], good[batch.accepted]
        order = np.random.default_rng(parts).permutation(ids.size) if parts else np.arange(ids.size)
        for part in np.array_split(order, max(parts, 1)):
            classifier.observe(ids[part], outcomes[part])
        people, _ = draw(rng, 400)
        return decide(classifier, people).propensity

    assert np.array_equal(decisions(0), decisions(7))


def test_order_of_rows_does_not_matter():
    rng = np.random.default_rng(6)
    people, _ = draw(rng, 300)
    order, ids = rng.permutation(300), rng.permutation(10_000)[:300]
    first, second = (fitted(np.random.default_rng(1)) for _ in range(2))
    batch = decide(first, people, ids=ids + 1000)
    shuffled = second.decide(
        people.X[order], sensitive_features=people.group[order], ids=ids[order] + 1000
    )
    assert np.array_equal(batch.accepted[order], shuffled.accepted)
    assert batch.explored.any()


def test_correction_changes_the_counts(rng):
    classifier = fitted(rng)
    people, _ = draw(rng, 100)
    batch = decide(classifier, people)
    first = batch.ids[batch.accepted][:1]
    classifier.observe(first, [1])
    n_good = classifier.counts_.good.sum()
    classifier.correct(first, [0])
    assert classifier.counts_.good.sum() == n_good - 1
    with pytest.raises(InputError, match=str(first[0])):
        classifier.observe(first, [1])


def test_loaded_classifier_continues_and_keeps_corrections(tmp_path):
    rng = np.random.default_rng(0)
    job = rng.integers(6, size=3000)
    good = (rng.random(3000) < 0.5 + 0.09 * job).astype(int)
    classifier = FiniteClassifier(random_state=3)
    classifier.fit(job[:1000], good[:1000], accepted=job[:1000] > 3)
    decided = classifier.decide(job[1000:2000])
    accepted = decided.ids[decided.accepted]
    classifier.observe(accepted, good[1000:2000][decided.accepted])
    classifier.correct(accepted[:2], 1 - good[1000:2000][decided.accepted][:2])
    corrections = classifier.corrections_
    assert [correction.id for correction in corrections] == accepted[:2].tolist()
    assert all(correction.before == 1 - correction.after for correction in corrections)
    fc.save(classifier, tmp_path / "cells")
    loaded = fc.load(tmp_path / "cells")
    assert loaded.corrections_ == corrections
    batch, again = classifier.decide(job[2000:]), loaded.decide(job[2000:])
    assert np.array_equal(batch.accepted, again.accepted)
    assert np.array_equal(batch.propensity, again.propensity)


def test_decisions_copy_the_ids(rng):
    X, y = rng.integers(3, size=(60, 1)), np.arange(60) % 50 > 0
    classifier = FiniteClassifier(random_state=0)
    classifier.fit(X, y, accepted=rng.random(60) < 0.7, ids=np.arange(60))
    ids = np.arange(100, 160)
    decided = classifier.decide(X, ids=ids)
    ids += 1000
    assert decided.ids.tolist() == list(range(100, 160))


def test_a_matched_first_round_accepts_the_nearest_number(rng):
    """Cells of shares .9, .7 and .6: at ½ all are accepted, matched the nearest number."""
    cell = np.repeat([0, 1, 2, 3], 100)
    accepted = np.concatenate([np.arange(100) < n for n in (90, 70, 60, 10)])
    y = rng.random(400) < 0.9
    both = {
        how: FiniteClassifier(first_round=how, random_state=0)
        .fit(cell[:, None], y, accepted=accepted)
        .decide(cell[:, None])
        for how in ("matched", "cut")
    }
    assert both["matched"].accepted[:200].all()
    assert not both["matched"].accepted[both["matched"].exploit & (cell == 2)].any()
    assert both["cut"].accepted[:300].all()
