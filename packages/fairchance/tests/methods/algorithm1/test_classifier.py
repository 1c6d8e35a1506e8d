"""Algorithm 1: what holds in every round, whatever the options."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairchance as fc
import parities
from classifier_checks import CALLS, check_a_failed_batch_is_decided_as_if_it_had_not_failed
from fairchance import (
    ConstrainedLogistic,
    EqualGroups,
    FdrBudget,
    GroupShare,
    MeanPastScore,
    PartialFeedbackClassifier,
    PerGroup,
    PositiveRate,
    PowerSchedule,
    Revenue,
    ScoreWeighted,
    SelectionRateParity,
    SummedAcceptance,
    SumOfG,
    TruePositiveRateParity,
    Uniform,
)
from fairchance.core.coverage import CoverageRule
from fairchance.errors import InputError, LearningWarning, UnknownIdError
from fairchance.simulate.populations import Lender, draw_applicants
from fairchance.simulate.run import run
from sentences import one_sentence
from small_worlds import lender_world

OPTIONS = {
    "defaults": {},
    "cross-fitted": {"split": "cross"},
    "unweighted": {"weights": "none"},
    "mean past score": {"coverage": MeanPastScore()},
    "sum of g": {"coverage": SumOfG(threshold=0.5)},
    "uniform": {"strategy": Uniform()},
    "product reading": {"strategy": GroupShare(reading="product")},
    "equal groups": {"strategy": ScoreWeighted(beta=0.2) * EqualGroups()},
    "own function": {"strategy": lambda X, score, group: 1.0 + (X[:, 0] > 0) + group},
    "per-group thresholds": {"thresholds": "per_group", "fairness": SelectionRateParity(0.1)},
    "shared under fairness": {"fairness": TruePositiveRateParity(0.3)},
    "one classifier per group": {"learner": PerGroup()},
    "scikit-learn's logistic": {"learner": LogisticRegression()},
    "group as a feature": {"group_as_feature": True},
    "fair fit, blind thresholds": {
        "learner": ConstrainedLogistic(fairness=SelectionRateParity(0.1))
    },
    "first round learned": {"first_round": "learned"},
    "constant split": {"budget": FdrBudget(alpha=0.2, exploit=0.1)},
}
KEYS = ("accepted", "exploit", "score", "propensity")


def astuple(past):
    return past.people, past.accepted, past.outcomes


def equal(one, other):
    return all(np.array_equal(getattr(one, key), getattr(other, key)) for key in KEYS)


@pytest.mark.parametrize("name", OPTIONS)
def test_every_round(make_classifier, name):
    classifier, world = make_classifier(**OPTIONS[name])
    budget, allowed, explored = classifier._budget, 0.0, 0
    for result in run(classifier, world):
        decided, record = result.decided, classifier.rounds_[-1]
        inside = decided.exploit
        # Exploit and explore partition the batch, with exact propensities in each.
        assert np.array_equal(decided.propensity[inside], decided.accepted[inside].astype(float))
        assert np.all((decided.propensity[~inside] >= 0) & (decided.propensity[~inside] <= 1))
        assert decided.propensity[~inside].sum() == pytest.approx(record.n_explored)
        assert decided.explored.sum() == record.n_explored
        assert (decided.accepted & inside).sum() == record.n_exploited
        assert inside.sum() == record.n_exploit_region
        if record.n_explored:
            assert np.all(decided.propensity[~inside] > 0)  # everybody has a chance
        # The budget is never exceeded, nor is a round's own by more than one person.
        own = budget.explore_share(decided.round) * record.n_exploited
        allowed, explored = allowed + own, explored + record.n_explored
        assert explored <= allowed + 1e-9
        assert record.n_explored <= own + 1
    assert classifier.rounds_[-1].n_outcomes > 0


@pytest.mark.parametrize("kind", parities.FAMILY)
@pytest.mark.parametrize("options", [{"thresholds": "per_group"}, {"group_mode": "blind"}])
def test_every_constraint_is_kept_at_the_thresholds(make_classifier, kind, options, tmp_path):
    classifier, world = make_classifier(
        strategy=Uniform(), fairness=kind(ratio=0.8), n_rounds=3, n_batch=600, **options
    )
    for _ in run(classifier, world):
        pass
    last = classifier.rounds_[-1]
    assert last.feasible
    assert 0 <= last.disparity <= 0.2 + 1e-9
    fc.save(classifier, tmp_path / "saved")
    assert fc.load(tmp_path / "saved").fairness == classifier.fairness


def test_thresholds_follow_the_constraints(make_classifier):
    classifier, world = make_classifier(
        thresholds="per_group",
        fairness=SelectionRateParity(0.02),
        split="cross",
        n_rounds=12,
        n_batch=500,
    )
    for result in run(classifier, world):
        decided = result.decided
    inside, group = decided.exploit, result.applicants.people.group
    rates = [decided.accepted[inside & (group == z)].mean() for z in ("A", "B")]
    assert classifier.rounds_[-1].feasible
    assert 0 < classifier.rounds_[-1].disparity <= 0.02
    assert len(set(classifier.rounds_[-1].thresholds)) == 2
    assert abs(rates[0] - rates[1]) < 0.12  # 0.02 on the labelled rows, plus sampling error


@pytest.mark.parametrize("name", ["defaults", "cross-fitted", "mean past score", "sum of g"])
def test_outcomes_of_the_rejected_change_nothing(name):
    """Flip every outcome of everybody who is rejected, in the history and in all rounds."""

    def decisions(flip):
        world = lender_world(1, n_rounds=5)
        people, accepted, outcomes = astuple(world.history())
        known = np.where(accepted, outcomes, 1.0 if flip else 0.0)
        classifier = PartialFeedbackClassifier(random_state=0, **OPTIONS[name])
        classifier.fit(people.X, known, accepted=accepted, sensitive_features=people.group)
        made = []
        for batch in world.batches():
            people, truth = batch.applicants.people, batch.applicants.outcome.copy()
            decided = classifier.decide(people.X, sensitive_features=people.group)
            truth[~decided.accepted] = 1 if flip else 0
            classifier.observe(decided.ids[decided.accepted], truth[decided.accepted])
            made.append(decided)
        return made

    assert all(map(equal, decisions(flip=False), decisions(flip=True)))


@settings(max_examples=15)
@pytest.mark.filterwarnings("ignore::fairchance.errors.LearningWarning")  # whoever is accepted
@given(seed=st.integers(0, 2**32), names=st.sampled_from(["integers", "strings"]))
def test_order_of_rows_does_not_matter(seed, names):
    def decisions(shuffle):
        world = lender_world(seed % 1000, n_history=300, n_batch=200, n_rounds=4)
        order = np.random.default_rng(seed + 1)
        people, accepted, outcomes = astuple(world.history())
        label = (lambda ids: [f"person {i}" for i in ids]) if names == "strings" else (lambda i: i)
        perm = order.permutation(300) if shuffle else np.arange(300)
        classifier = PartialFeedbackClassifier(strategy=GroupShare(), random_state=3)
        classifier.fit(
            people.X[perm],
            outcomes[perm],
            accepted=accepted[perm],
            sensitive_features=people.group[perm],
            ids=label(perm),
        )
        made = {}
        for t, batch in enumerate(world.batches(), start=1):
            people, truth = batch.applicants.people, batch.applicants.outcome
            perm = order.permutation(200) if shuffle else np.arange(200)
            decided = classifier.decide(
                people.X[perm],
                sensitive_features=people.group[perm],
                ids=label(1000 * t + perm),
            )
            classifier.observe(decided.ids[decided.accepted], truth[perm][decided.accepted])
            made |= dict(
                zip(
                    decided.ids.tolist(),
                    zip(decided.accepted, decided.exploit, strict=True),
                    strict=True,
                )
            )
        return made

    assert decisions(shuffle=False) == decisions(shuffle=True)


@pytest.mark.filterwarnings("ignore::fairchance.errors.LearningWarning")
@settings(max_examples=15)
@given(parts=st.lists(st.integers(0, 10_000), min_size=1, max_size=5), seed=st.integers(0, 99))
def test_observing_in_parts_and_in_any_order_equals_observing_at_once(parts, seed):
    world = lender_world(seed, n_history=300, n_batch=150, n_rounds=3)
    people, accepted, outcomes = astuple(world.history())
    classifier = PartialFeedbackClassifier(random_state=0)
    classifier.fit(people.X, outcomes, accepted=accepted, sensitive_features=people.group)
    ids, truth = [], []
    for batch in world.batches():
        people = batch.applicants.people
        decided = classifier.decide(people.X, sensitive_features=people.group)
        ids.append(decided.ids[decided.accepted])
        truth.append(batch.applicants.outcome[decided.accepted])
    ids, truth = np.concatenate(ids), np.concatenate(truth)
    whole, bit_by_bit = copy.deepcopy(classifier), copy.deepcopy(classifier)
    whole.observe(ids, truth)
    shuffled = np.random.default_rng(seed).permutation(ids.size)
    for part in np.split(shuffled, sorted(p % (ids.size + 1) for p in parts)):
        bit_by_bit.observe(ids[part], truth[part])
        bit_by_bit.observe(ids[part], truth[part])  # the same again changes nothing
    people = Lender().draw(200, np.random.default_rng(seed))
    batch = {"X": people.X, "sensitive_features": people.group}
    assert equal(whole.decide(**batch), bit_by_bit.decide(**batch))


def test_outcomes_many_rounds_late(make_classifier):
    """Outcomes of a round arrive five rounds later; nothing is lost, learning goes on."""
    constant = FdrBudget(alpha=0.15, exploit=0.1)  # a schedule would move the thresholds too
    classifier, world = make_classifier(budget=constant, n_batch=200, n_rounds=15)
    waiting = []
    for batch in world.batches():
        people, truth = batch.applicants.people, batch.applicants.outcome
        decided = classifier.decide(people.X, sensitive_features=people.group)
        waiting.append((decided.ids[decided.accepted], truth[decided.accepted]))
        if len(waiting) > 5:
            classifier.observe(*waiting.pop(0))
    # Round 1 follows the past, and until outcomes come rounds share what the history taught.
    thresholds = [one.thresholds for one in classifier.rounds_]
    assert len(set(thresholds[1:6])) == 1
    assert len(set(thresholds[6:])) > 5
    assert [one.calibrated for one in classifier.rounds_] == sorted(
        one.calibrated for one in classifier.rounds_
    )
    assert classifier.rounds_[-1].calibrated


def test_one_application_at_a_time(make_classifier):
    # A schedule counts rounds; for single applications a constant split is the one to take.
    classifier, world = make_classifier(
        budget=FdrBudget(alpha=0.15, exploit=0.1), n_batch=1, n_rounds=400
    )
    explored = 0
    for batch in world.batches():
        people = batch.applicants.people
        decided = classifier.decide(people.X, sensitive_features=people.group)
        explored += int(decided.explored.sum())
        if decided.accepted.any() and decided.round % 50 == 0:
            classifier.observe(decided.ids, batch.applicants.outcome)
    assert explored > 5
    assert len(classifier.rounds_) == 400
    assert len(classifier.policies_) < 100  # rounds that act alike share a policy


@pytest.mark.parametrize("n_batch", [1, 5, 100])
@pytest.mark.parametrize("strategy", [Uniform(), GroupShare()], ids=["uniform", "shares"])
def test_the_log_knows_how_often_people_are_explored(n_batch, strategy):
    """Σ n_i·π_i of a stranger, over the rounds, against how often candidates were explored."""
    world = lender_world(4, n_history=400, n_batch=n_batch, n_rounds=2000 // n_batch)
    people, accepted, outcomes = astuple(world.history())
    classifier = PartialFeedbackClassifier(
        budget=FdrBudget(alpha=0.3, exploit=0.1),
        # Nobody becomes known on the way, so that all rounds see the same candidates.
        coverage=SummedAcceptance(reference_size=10**9),
        strategy=strategy,
        first_round="learned",
        random_state=0,
    ).fit(people.X, outcomes, accepted=accepted, sensitive_features=people.group)
    candidates, explored = [], []
    for batch in world.batches():
        people = batch.applicants.people
        decided = classifier.decide(people.X, sensitive_features=people.group)
        candidates.append((~decided.exploit).sum())
        explored.append(decided.explored.sum())
    log, probe = classifier._log, Lender().draw(2000, np.random.default_rng(1))
    group = (probe.group == "B").astype(np.intp)
    unknown = ~log.look(probe.X, group, classifier._rule, score_of=0).known
    rows = np.flatnonzero(unknown)
    own, _ = log.walk(probe.X, group, classifier._rule, log.past_acceptance(probe.X, group))
    logged = own[rows].mean() / log.n_people
    actual = np.sum(explored) / np.sum(candidates)
    assert np.sum(explored) > 60
    assert logged == pytest.approx(actual, rel=0.25)


def test_batches_of_one_cover_like_one_batch(make_classifier):
    """Coverage counts people, not rounds: 200 singles weigh as much as one batch of 200."""
    rule = SummedAcceptance(reference_size=600)
    whole, world = make_classifier(strategy=Uniform(), coverage=rule, n_batch=200, n_rounds=1)
    singles = copy.deepcopy(whole)
    (batch,) = world.batches()
    people = batch.applicants.people
    whole.decide(people.X, sensitive_features=people.group)
    for i in range(200):
        singles.decide(people.X[i : i + 1], sensitive_features=people.group[i : i + 1])
    probe = Lender().draw(500, np.random.default_rng(2))
    start = 0.5  # the history's threshold: those above are exploited in both
    before = whole._past.likelihood.score(probe.X, np.zeros(500, np.intp))
    known = before > start
    one = whole.coverage_of(probe.X, sensitive_features=probe.group)[known]
    many = singles.coverage_of(probe.X, sensitive_features=probe.group)[known]
    # In the second and later single rounds f_t is the learned classifier, not f_0: compare those
    # whom both accept.
    both = (many - before[known] > 0.3) & (one - before[known] > 0.3)
    assert both.sum() > 20
    assert np.allclose(one[both], many[both], atol=0.01)


def test_coverage_never_shrinks_under_the_default_rule(make_classifier):
    classifier, world = make_classifier()
    probe = Lender().draw(300, np.random.default_rng(5))
    last = classifier.coverage_of(probe.X, sensitive_features=probe.group)
    for _ in run(classifier, world):
        now = classifier.coverage_of(probe.X, sensitive_features=probe.group)
        assert np.all(now >= last - 1e-12)
        last = now


def test_round_one_follows_the_past_policy(rng):
    X = rng.normal(size=(500, 2))
    y = (rng.random(500) < 0.8).astype(int)

    def rule(X):
        return np.where(X[:, 0] > 0.5, 0.9, 0.2)

    classifier = PartialFeedbackClassifier(random_state=0).fit(
        X, y, accepted=rng.random(500) < rule(X), past_policy=rule
    )
    batch = rng.normal(size=(200, 2))
    decided = classifier.decide(batch)
    assert np.array_equal(decided.exploit, rule(batch) > 0.5)
    assert np.array_equal(decided.accepted & decided.exploit, batch[:, 0] > 0.5)
    assert not classifier.rounds_[0].calibrated
    assert classifier.rounds_[0].follows


def test_a_round_without_known_applicants_warns(rng):
    """A past that accepted few at random covers nobody: the paper's algorithm cannot start."""
    X = rng.normal(size=(500, 2))
    y = (rng.random(500) < 0.8).astype(int)
    accepted = rng.random(500) < 0.2
    stuck = PartialFeedbackClassifier(first_round="cut", random_state=0)
    stuck.fit(X, y, accepted=accepted)
    with pytest.warns(LearningWarning, match="500"):
        assert not stuck.decide(X).accepted.any()
    rule = SummedAcceptance(threshold=0.05)
    moving = PartialFeedbackClassifier(coverage=rule, first_round="learned", random_state=0)
    assert moving.fit(X, y, accepted=accepted).decide(X).exploit.all()


@pytest.mark.parametrize("split", ["half", "cross"])
@pytest.mark.parametrize("cap", [1.5, None])
def test_what_the_cap_changes_is_recorded(make_classifier, split, cap):
    """The capped share and the FDR without a cap, against a loop over the labelled rows."""
    options = {"learner": LogisticRegression(), "weight_cap": cap, "split": split}
    classifier, world = make_classifier(n_rounds=4, min_outcomes=20, **options)
    for _ in run(classifier, world):
        pass
    record, f, log = classifier.rounds_[-1], classifier._deployed, classifier._log
    others = copy.copy(log)
    others.policies = log.policies[:-1]  # those that the last thresholds were chosen under
    n_capped = n_used = 0
    for fold in classifier._people.parts[1 if split == "half" else 0 :]:
        group = np.maximum(fold["group"], 0)
        past = others.past_acceptance(fold.X, group)
        own, w = others.walk(fold.X, group, classifier._rule, past)
        for i in range(len(fold["round"])):
            counts = 0 < fold["round"][i] < 4 and fold["outcome"][i] >= 0
            if counts and w[i] > classifier._rule.level(others.n_rounds):
                n_used += 1
                n_capped += cap is not None and others.n_people / own[i] > cap
    assert record.calibrated
    assert record.n_outcomes == n_used
    assert record.capped_share == pytest.approx(n_capped / n_used)
    assert record.effective_sample_size < n_used
    if cap is None:
        assert record.uncapped_fdr == pytest.approx(record.estimated_fdr, nan_ok=True)
    else:
        assert 0 < record.capped_share < 1
        assert record.uncapped_fdr != pytest.approx(record.estimated_fdr)
    assert (record.follows, f.follows) == ("", "")


def test_thresholds_that_accept_nobody_make_no_mistake(rng):
    """With and without the cap: a report would otherwise show that nothing is known."""
    X, outcome = rng.integers(2, size=(600, 1)), rng.integers(2, size=600)
    classifier = PartialFeedbackClassifier(
        budget=FdrBudget(0.02), first_round="learned", random_state=0
    ).fit(X[:300], outcome[:300], accepted=np.arange(300) % 4 > 0)
    with pytest.warns(LearningWarning):
        classifier.decide(X[300:])
    record = classifier.rounds_[-1]
    assert (record.n_exploited, record.estimated_fdr, record.uncapped_fdr) == (0, 0.0, 0.0)


def test_weights_make_accepted_rows_represent_all_applicants(rng):
    """Half of the people are accepted nine times as often; weighted, they count as they are."""
    n = 4000
    X = (rng.random((n, 1)) < 0.5).astype(float)
    chance = np.where(X[:, 0] > 0, 0.9, 0.1)
    y = (rng.random(n) < np.where(X[:, 0] > 0, 0.95, 0.6)).astype(int)
    classifier = PartialFeedbackClassifier(
        utility=PositiveRate(),
        coverage=SummedAcceptance(threshold=0.01),
        budget=FdrBudget(alpha=0.5, exploit=0.4),
        weight_cap=10.0,
        random_state=0,
    ).fit(
        X,
        y,
        accepted=rng.random(n) < chance,
        past_policy=lambda X: np.where(X[:, 0] > 0, 0.9, 0.1),
    )
    truth = 0.5 * 0.05 + 0.5 * 0.4
    assert classifier._learned.estimated_fdr == pytest.approx(truth, abs=0.04)
    unweighted = PartialFeedbackClassifier(**classifier.get_params() | {"weights": "none"}).fit(
        X, y, accepted=rng.random(n) < chance, past_policy=lambda X: 0.1 + 0.8 * X[:, 0]
    )
    assert unweighted._learned.estimated_fdr < truth - 0.05


def test_the_bounds_in_the_fit_are_the_papers(make_classifier):
    """The budget's bound reaches the fit, and shifts likelihoods, as it does in the paper."""
    tight = FdrBudget(alpha=0.06)
    classifier, _ = make_classifier(bounds_in="both", budget=tight)
    free, _ = make_classifier(budget=tight)
    learner = classifier._learners[0]
    assert learner.max_fdr == pytest.approx(classifier._budget.alpha_exploit(1) + 0.001)
    people = Lender().draw(500, np.random.default_rng(0))
    constrained = classifier.predict_proba(people.X)[:, 1].mean()
    assert constrained < free.predict_proba(people.X)[:, 1].mean()


def test_predict_is_about_outcomes_and_accepts_about_decisions(make_classifier):
    classifier, _ = make_classifier()
    people = Lender().draw(300, np.random.default_rng(0))
    likelihood = classifier.predict_proba(people.X)[:, 1]
    assert np.array_equal(classifier.predict(people.X) == 1, likelihood > 0.5)
    threshold = classifier._learned.thresholds[0]
    assert np.array_equal(classifier.accepts(people.X), likelihood >= threshold)


def test_labels_may_be_words_and_good_may_be_the_smaller_one(rng):
    X = rng.normal(size=(300, 1))
    y = np.where(X[:, 0] + rng.normal(size=300) > -1, "good", "zero paid")
    classifier = PartialFeedbackClassifier(pos_label="good", random_state=0).fit(X, y)
    assert classifier.predict(np.array([[3.0]])).tolist() == ["good"]
    assert classifier.predict_proba(np.array([[3.0]]))[0, 0] > 0.5
    decided = classifier.decide(X)
    classifier.observe(decided.ids[decided.accepted], y[decided.accepted])


def test_changing_the_group_of_a_person_changes_nothing_when_thresholds_are_blind(make_classifier):
    classifier, _ = make_classifier(
        learner=ConstrainedLogistic(fairness=SelectionRateParity(0.05)),
        strategy=ScoreWeighted(),
    )
    people = Lender().draw(300, np.random.default_rng(0))
    swapped = np.where(people.group == "A", "B", "A")
    one = copy.deepcopy(classifier).decide(people.X, sensitive_features=people.group)
    assert equal(one, classifier.decide(people.X, sensitive_features=swapped))


def test_names_that_the_caller_changes_afterwards_stay_as_they_were(make_classifier):
    classifier, world = make_classifier()
    people = next(iter(world.batches())).applicants.people
    X, group = people.X[:20], people.group[:20]
    names = np.arange(10_000, 10_020)
    decided = classifier.decide(X, sensitive_features=group, ids=names)
    accepted = decided.ids[decided.accepted].copy()
    assert accepted.size > 0
    names += 50_000
    assert decided.ids[0] == 10_000
    classifier.observe(accepted, np.ones(accepted.size))  # knows them
    with pytest.raises(ValueError, match="read-only"):
        decided.ids[0] = 5
    following = classifier.decide(X, sensitive_features=group).ids
    with pytest.raises(ValueError, match="read-only"):
        following[0] = 5


def test_default_names_end_where_integers_do(make_classifier):
    classifier, world = make_classifier()
    people = next(iter(world.batches())).applicants.people
    X, group = people.X[:4], people.group[:4]
    classifier.decide(X, sensitive_features=group, ids=np.arange(2**63 - 6, 2**63 - 2))
    with pytest.raises(InputError, match="9223372036854775805"):
        classifier.decide(X, sensitive_features=group)
    last = classifier.decide(X[:2], sensitive_features=group[:2])
    assert last.ids.tolist() == [2**63 - 2, 2**63 - 1]


def test_an_unreadable_history_leaves_the_classifier_unchanged(make_classifier):
    classifier, world = make_classifier(n_batch=100, n_rounds=1)
    (batch,) = world.batches()
    people, truth = batch.applicants.people, batch.applicants.outcome
    decided = classifier.decide(people.X, sensitive_features=people.group)
    for wrong in (people.X * np.nan, people.X[:, :2]):
        with pytest.raises(ValueError, match=r"no column|group"):
            classifier.fit(wrong, truth, sensitive_features=["A"] * 99 + ["C"])
    classifier.observe(decided.ids[decided.accepted], truth[decided.accepted])
    assert classifier.decide(people.X, sensitive_features=people.group).round == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"coverage": MeanPastScore()}, "coverage"),
        ({"learner": LogisticRegression()}, "learner"),
        ({"random_state": 7}, "random_state.*0.*7"),
        ({"thresholds": "per_gruop"}, "thresholds"),
    ],
)
def test_options_that_may_not_change_between_rounds(make_classifier, change, message):
    classifier, _ = make_classifier()
    people = Lender().draw(100, np.random.default_rng(0))
    before = classifier.get_params(deep=False)
    with pytest.raises(ValueError, match=message):
        classifier.set_params(**change).decide(people.X, sensitive_features=people.group)
    classifier.set_params(**before).decide(people.X, sensitive_features=people.group)
    classifier.set_params(budget=FdrBudget(0.3), strategy=Uniform())  # these may
    assert classifier.decide(people.X, sensitive_features=people.group).round == 2


def test_overconfident_scores_keep_the_bound(rng):
    """Scores that pile up at 1 leave no room for a threshold that is a little too low."""
    n = 4000
    truth = rng.random(n) < 0.6
    signal = np.where(truth, 1.0, -1.0)[:, None] * 0.35
    X = signal + rng.normal(size=(n, 1)) + 0.3 * rng.normal(size=(n, 20))
    classifier = PartialFeedbackClassifier(
        utility=PositiveRate(), learner=GaussianNB(), random_state=0
    ).fit(X[:2000], truth[:2000])
    accepted = classifier.accepts(X[2000:])
    f = classifier._learned
    assert accepted.any()
    assert (1 - truth[2000:][accepted]).mean() < f.estimated_fdr + 0.06


def test_a_likelihood_per_group_needs_the_group(make_classifier):
    for split in ("half", "cross"):
        classifier, _ = make_classifier(learner=PerGroup(), split=split)
        people = Lender().draw(50, np.random.default_rng(0))
        with pytest.raises(ValueError, match="sensitive_features"):
            classifier.predict_proba(people.X)


def test_a_past_classifier_needs_the_classes_0_and_1(rng):
    X = rng.normal(size=(300, 1))
    taken, y = X[:, 0] > 0, (rng.random(300) < 0.7).astype(int)
    words = LogisticRegression().fit(X, np.where(taken, "accepted", "rejected"))
    with pytest.raises(ValueError, match="'accepted'"):
        PartialFeedbackClassifier().fit(X, y, accepted=taken, past_policy=words)
    past = LogisticRegression().fit(pd.DataFrame(X, columns=["x"]), taken)
    classifier = PartialFeedbackClassifier(random_state=0).fit(
        X, y, accepted=taken, past_policy=past
    )
    decided = classifier.decide(X)
    assert np.mean(decided.exploit == taken) > 0.95


def test_the_past_is_imitated_without_the_constraints_on_the_future(rng):
    X = rng.normal(size=(600, 2))
    y = (rng.random(600) < 0.6).astype(int)
    accepted = rng.random(600) < 1 / (1 + np.exp(-2 * X[:, 0]))
    tight = ConstrainedLogistic(max_fdr=0.39)
    for learner in (tight, make_pipeline(StandardScaler(), tight)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            classifier = PartialFeedbackClassifier(learner=learner, random_state=0)
            classifier.fit(X, y, accepted=accepted)
        score = classifier._past.likelihood.score(X, np.zeros(600, np.intp))
        assert score.mean() == pytest.approx(accepted.mean(), abs=0.02)


@pytest.mark.parametrize("learner", [None, RandomForestClassifier(10, random_state=0)])
def test_order_of_the_history_does_not_matter(rng, learner):
    X = rng.normal(size=(300, 2))
    y = (rng.random(300) < 0.7).astype(int)
    accepted = rng.random(300) < 1 / (1 + np.exp(-2 * X[:, 0]))
    decided = []
    for order in (np.arange(300), rng.permutation(300)):
        classifier = PartialFeedbackClassifier(learner=learner, random_state=0)
        classifier.fit(X[order], y[order], accepted=accepted[order], ids=order)
        decided.append(classifier.decide(X, ids=np.arange(1000, 1300)))
    one, other = decided
    assert np.array_equal(one.accepted, other.accepted)
    assert np.array_equal(one.score, other.score)
    assert np.array_equal(one.propensity, other.propensity)


def test_observing_nothing_changes_nothing(make_classifier):
    classifier, _ = make_classifier()
    known = classifier.n_outcomes_
    assert classifier.observe([], []).n_outcomes_ == known


@pytest.mark.parametrize(
    "y",
    [
        [1, None, 0, None, 1, 0],
        pd.array([True, None, False, None, True, False], dtype="boolean"),
        pl.Series([True, None, False, None, True, False]),
        np.array([1, "unknown", 0, "rejected", 1, 0], dtype=object),
        np.array([1, np.nan, 0, np.nan, 1, 0]),
    ],
    ids=["none", "pandas", "polars", "words", "nan"],
)
def test_the_rejected_may_have_anything_in_place_of_an_outcome(y):
    X = np.arange(6.0)[:, None]
    accepted = [True, False, True, False, True, True]
    classifier = PartialFeedbackClassifier(random_state=0).fit(X, y, accepted=accepted)
    assert len(classifier.classes_) == 2
    assert classifier.n_outcomes_ == 4


def test_logged_policies_cannot_be_changed(make_classifier):
    classifier, world = make_classifier(n_batch=50, n_rounds=1)
    for _ in run(classifier, world):
        pass
    with pytest.raises(ValueError, match="read-only"):
        classifier.policies_[0].thresholds[:] = 2


def test_a_round_that_accepts_none_warns(rng):
    """Here because the bad outcome was named instead of the good one."""
    X = rng.normal(size=(600, 1))
    y = np.where(rng.random(600) < 0.9, "repaid", "written off")
    classifier = PartialFeedbackClassifier(pos_label="written off", random_state=0).fit(X, y)
    with pytest.warns(LearningWarning, match="'written off'"):
        decided = classifier.decide(X)
    assert not decided.accepted.any()
    (note,) = classifier.rounds_[0].notes
    assert (note.code, note.facts["good"]) == ("none_worth_accepting", "written off")
    named = PartialFeedbackClassifier(pos_label="repaid", random_state=0).fit(X, y)
    assert repr(named.decide(X)).startswith("Decisions(round 1: 600 applicants, ")


def test_thresholds_follow_the_schedule_without_new_outcomes(make_classifier):
    """A run that the bound stopped goes on once the schedule allows more, though no news comes."""
    options = {"weights": "none", "budget": FdrBudget(0.15, PowerSchedule(start=0.001, power=2.5))}
    classifier, world = make_classifier(n_batch=400, n_rounds=7, **options)
    for batch in world.batches():
        people = batch.applicants.people
        classifier.decide(people.X, sensitive_features=people.group)
    cuts = [one.thresholds[0] for one in classifier.rounds_]
    assert cuts[6] < cuts[1] - 0.1
    assert classifier.rounds_[6].n_exploited > classifier.rounds_[1].n_exploited + 50


def test_options_that_may_change_between_rounds_count_at_once(make_classifier):
    classifier, world = make_classifier(n_batch=400, n_rounds=3)
    cuts = []
    for batch, loss in zip(world.batches(), (300, 300, 5000), strict=True):
        people = batch.applicants.people
        classifier.set_params(utility=Revenue(gain=200, loss=loss), weights="none")
        classifier.set_params(budget=FdrBudget(0.5, 0.4))
        classifier.decide(people.X, sensitive_features=people.group)
        cuts.append(classifier.rounds_[-1].thresholds[0])
    assert cuts[2] > cuts[1]


def test_accepts_is_the_classifier_that_decided(make_classifier):
    classifier, world = make_classifier(n_rounds=2)
    for batch in world.batches():  # round 1 follows the past, round 2 what was learned
        people = batch.applicants.people
        decided = classifier.decide(people.X, sensitive_features=people.group)
        accepts = classifier.accepts(people.X, sensitive_features=people.group)
        assert np.array_equal(accepts[decided.exploit], decided.accepted[decided.exploit])


def test_a_corrected_outcome_counts_as_if_it_had_been_right_at_once(make_classifier):
    right, world = make_classifier(n_rounds=1)
    wrong, _ = make_classifier(n_rounds=1)
    (batch,) = world.batches()
    people, truth = batch.applicants.people, batch.applicants.outcome
    for classifier, told in ((right, truth), (wrong, 1 - truth)):
        decided = classifier.decide(people.X, sensitive_features=people.group)
        classifier.observe(decided.ids[decided.accepted], told[decided.accepted])
    wrong.correct(decided.ids[decided.accepted], truth[decided.accepted])
    again = Lender().draw(200, np.random.default_rng(0))
    one, other = (
        classifier.decide(again.X, sensitive_features=again.group) for classifier in (right, wrong)
    )
    assert np.array_equal(one.score, other.score)
    assert np.array_equal(one.accepted, other.accepted)


def test_only_recorded_outcomes_can_be_corrected(make_classifier):
    classifier, world = make_classifier(n_rounds=1)
    (batch,) = world.batches()
    people = batch.applicants.people
    decided = classifier.decide(people.X, sensitive_features=people.group)
    first = decided.ids[decided.accepted][:1]
    with pytest.raises(InputError, match="observe"):
        classifier.correct(first, [1])
    classifier.observe(first, [1])
    with pytest.raises(InputError, match="with correct"):
        classifier.observe(first, [0])
    with pytest.raises(UnknownIdError):
        classifier.correct(decided.ids[~decided.accepted][:1], [1])


def test_folds_are_halves_that_depend_on_seed_and_id_only():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 1)), rng.integers(0, 2, 2000)
    folds = []
    for seed, order in ((1, np.arange(2000)), (1, rng.permutation(2000)), (2, np.arange(2000))):
        classifier = PartialFeedbackClassifier(random_state=seed)
        classifier.fit(X[order], y[order], ids=np.arange(2000)[order])
        folds.append(set(np.flatnonzero(classifier.fold_of(np.arange(2000)) == 0).tolist()))
        kept = classifier._people.parts[0].X[:, 0]
        assert np.array_equal(kept, X[sorted(folds[-1]), 0])
    assert folds[0] == folds[1] != folds[2]
    assert abs(len(folds[0]) - 1000) < 5 * np.sqrt(500)  # five standard deviations
    assert abs(len(folds[0] & folds[2]) - 500) < 5 * np.sqrt(375)


@pytest.mark.parametrize("ids", [[-3, -2, -1], [7, 8, 9], [9, 3, 5], [-5, 4, 6]])
def test_the_next_ids_come_after_the_largest(ids):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    clf = PartialFeedbackClassifier(random_state=0).fit(X, y, ids=np.arange(-100, -40))
    clf.decide(X[:3], ids=ids)
    assert clf.decide(X[:2]).ids.tolist() == [max(0, max(ids) + 1), max(0, max(ids) + 1) + 1]


def lived(classifier, n_rounds, **options):
    """Return a classifier after some rounds, and the last of them with its outcomes."""
    world = lender_world(0, n_rounds=max(1, n_rounds), **options)
    past = world.history()
    history = {"accepted": past.accepted, "sensitive_features": past.people.group}
    classifier.fit(past.people.X, past.outcomes, **history)
    decided = outcome = None
    for one in [*world.batches()][:n_rounds]:
        people, outcome = one.applicants.people, one.applicants.outcome
        decided = classifier.decide(people.X, sensitive_features=people.group)
        classifier.observe(decided.ids[decided.accepted], outcome[decided.accepted])
    return classifier, decided, outcome


@pytest.mark.parametrize("kind", [fc.PartialFeedbackClassifier, fc.CertifiedClassifier])
def test_before_any_round_nothing_is_deployed(kind):
    with pytest.raises(NotFittedError):
        _ = kind().deployed_
    assert not hasattr(kind(), "deployed_")
    assert not lived(kind(random_state=0), 0)[0].deployed_


def test_algorithm_1_follows_the_past_first_and_then_learns():
    first, decided, _ = lived(fc.PartialFeedbackClassifier(random_state=0), 1)
    assert first.deployed_.f.follows == "matched"
    assert first.deployed_.n_final <= 1
    later, decided, _ = lived(fc.PartialFeedbackClassifier(random_state=0), 3)
    deployed = later.deployed_
    assert deployed.f.follows == ""
    assert deployed.policy is later.policies_[-1]
    assert deployed.n_final == len(later.policies_) - 1  # the last may still be extended
    assert tuple(deployed.f.thresholds) == later.rounds_[-1].thresholds
    assert np.array_equal(decided.threshold, np.full(len(decided), deployed.f.thresholds[0]))


def test_the_policy_of_a_round_does_not_change_while_outcomes_come():
    classifier, decided, outcome = lived(fc.PartialFeedbackClassifier(random_state=0), 2)
    before = classifier.deployed_
    name = decided.ids[decided.accepted][:1]
    classifier.correct(name, 1 - outcome[decided.accepted][:1])
    after = classifier.deployed_
    assert after.f is before.f
    assert after.policy is before.policy
    assert after.n_final == before.n_final
    with pytest.raises(AttributeError):
        before.f = None


@pytest.mark.parametrize(("certify", "n"), [("overall", 1), ("per_group", 2)])
def test_the_certified_method_deploys_a_rung_for_each_certificate(certify, n):
    classifier = fc.CertifiedClassifier(alpha=0.4, delta=0.3, certify=certify, random_state=0)
    classifier, decided, _ = lived(classifier, 3, n_batch=500)
    deployed = classifier.deployed_
    assert len(deployed) == n
    assert tuple(one.record for one in deployed) == classifier.rounds_[-n:]
    for one in deployed:
        assert one.ladder.grid[one.rung] == one.record.share
        assert one.certified == (one.record.status == "certified")
        assert one.ladder.frozen <= one.record.round == 3
        assert (one.restarts, one.stage_began) == (0, 1)
    assert decided.certified == all(one.certified for one in deployed)


def test_a_restart_shows_at_once_and_the_round_does_not_change():
    classifier, decided, outcome = lived(fc.CertifiedClassifier(random_state=0), 2)
    (before,) = classifier.deployed_
    first = np.flatnonzero(decided.accepted)[:1]
    with pytest.warns(LearningWarning, match=f"{before.n_tested}"):
        classifier.correct(decided.ids[first], 1 - outcome[first])
    (after,) = classifier.deployed_
    assert (after.restarts, after.stage_began, after.n_tested) == (1, 3, 0)
    assert (after.ladder, after.rung, after.record) == (before.ladder, before.rung, before.record)


RULES = [
    SummedAcceptance(0.5),
    SummedAcceptance(0.8, reference_size=150),
    MeanPastScore(),
    SumOfG(),
]


def walked(classifier, x, z):
    """Return one person's chance in the last round, round by round as the method says it."""
    log, rule = classifier._log, classifier.coverage
    w = float(log.likelihoods[0].score(x[None], np.array([z]))[0])
    seen, pi = 0, None
    for policy in log.policies:
        score = float(log.likelihoods[policy.likelihood].score(x[None], np.array([z]))[0])
        g = max(score, 1e-6) * policy.group_factor[z]
        drawn = min(1.0, policy.left[z] * g / (policy.others[z] + g))
        by_threshold = float(score >= policy.thresholds[z])
        pi = by_threshold if w > rule.level(seen) else drawn
        pi = {"matched": max(pi, by_threshold), "drawn": score}.get(policy.follows, pi)
        adding = {"acceptance": pi, "score": score, "g": g}[rule.needs]
        w += adding * rule.round_weight(policy.n_people, policy.n_rounds, log.first_batch)
        seen += policy.n_rounds
    return pi


@pytest.mark.parametrize(
    ("rule", "first_round"),
    [
        *((rule, "matched") for rule in RULES),
        (RULES[1], "drawn"),
        (RULES[3], "drawn"),
        (RULES[1], "cut"),
    ],
    ids=str,
)
def test_acceptance_probability_against_a_walk_person_by_person(make_classifier, rule, first_round):
    classifier, world = make_classifier(coverage=rule, first_round=first_round, n_rounds=4)
    strangers = draw_applicants(Lender(), 200, np.random.default_rng(8)).people
    code = (strangers.group == "B").astype(int)
    some_explored = False
    for _ in run(classifier, world):
        p = classifier.acceptance_probability(strangers.X, sensitive_features=strangers.group)
        slow = [walked(classifier, x, z) for x, z in zip(strangers.X, code, strict=True)]
        assert p == pytest.approx(slow, abs=1e-9)
        some_explored |= bool(((p > 0) & (p < 1)).any())
    assert 0 < p.sum() < p.size
    assert some_explored or rule.needs == "g"


def test_in_the_batch_it_is_the_decision_where_people_are_known(make_classifier):
    classifier, world = make_classifier(n_rounds=5)
    for result in run(classifier, world):
        people, decided = result.applicants.people, result.decided
        p = classifier.acceptance_probability(people.X, sensitive_features=people.group)
        known = decided.exploit
        assert np.array_equal(p[known], decided.accepted[known])
        drawn = int(decided.explored.sum())
        assert p[~known].sum() == pytest.approx(drawn, rel=0.1)  # a place more, a place less
        assert drawn > 0


def test_asking_changes_no_decision(make_classifier):
    strangers = draw_applicants(Lender(), 100, np.random.default_rng(8)).people

    def decided(ask):
        classifier, world = make_classifier(n_rounds=4)
        for result in run(classifier, world):
            if ask:
                classifier.acceptance_probability(strangers.X, sensitive_features=strangers.group)
            yield result.decided.accepted.tolist()

    assert list(decided(True)) == list(decided(False))


def test_before_any_round_there_is_no_policy(make_classifier):
    classifier, _ = make_classifier()
    with pytest.raises(InputError):
        classifier.acceptance_probability(np.zeros((2, 3)), sensitive_features=["A", "B"])


@dataclass(frozen=True)
class BySize(CoverageRule):
    """What ``SummedAcceptance`` does with a full round of ``size`` people."""

    size: int = 60
    needs: ClassVar[str] = "acceptance"

    def round_weight(self, n_people, n_rounds, first_batch):
        return n_people / self.size


def decided(rule):
    """Return a classifier with ten rounds behind it, and the regions of all its people."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 2))
    good = (rng.random(1000) < 1 / (1 + np.exp(-1 - X[:, 0]))).astype(int)
    clf = fc.PartialFeedbackClassifier(coverage=rule, random_state=0)
    clf.fit(X[:400], good[:400], accepted=X[:400, 0] > 0.8)
    regions = []
    for rows in np.array_split(np.arange(400, 1000), 10):
        batch = clf.decide(X[rows])
        clf.observe(batch.ids[batch.accepted], good[rows][batch.accepted])
        regions.append(batch.region)
    return clf, np.concatenate(regions)


def test_a_rule_of_ones_own_decides_as_the_same_rule_of_ours():
    _, own = decided(BySize(0.7))
    _, ours = decided(fc.SummedAcceptance(0.7, reference_size=60))
    _, other = decided(fc.SummedAcceptance(0.7, reference_size=600))
    assert np.array_equal(own, ours)
    assert not np.array_equal(own, other)


def test_it_is_kept_by_its_name(tmp_path):
    clf, _ = decided(BySize(0.7, size=61))
    fc.save(clf, tmp_path / "kept")
    with pytest.raises(InputError, match="'BySize'"):
        fc.load(tmp_path / "kept")
    again = fc.load(tmp_path / "kept", types=[BySize])
    assert again.coverage == BySize(0.7, size=61)
    X = np.random.default_rng(1).normal(size=(50, 2))
    assert np.array_equal(again.decide(X).propensity, clf.decide(X).propensity)


@pytest.mark.parametrize(
    ("body", "got"), [({}, ""), ({"needs": "g²"}, "'g²'"), ({"needs": None}, "")]
)
def test_a_rule_must_define_needs(body, got):
    def round_weight(self, n_people, n_rounds, first_batch):
        return 1.0

    with pytest.raises(InputError, match=f"Mine.*{got}") as error:
        type("Mine", (CoverageRule,), {**body, "round_weight": round_weight})
    assert one_sentence(str(error.value))


def test_a_class_between_need_not_say_it_yet():
    between = type("Between", (CoverageRule,), {})
    with pytest.raises(TypeError, match="abstract"):
        between()
    kept = type("Kept", (BySize,), {})
    assert kept.needs == "acceptance"


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "make",
    [
        fc.PartialFeedbackClassifier,
        partial(fc.PartialFeedbackClassifier, split="cross", group_mode="audit"),
        partial(fc.PartialFeedbackClassifier, coverage=fc.SumOfG(threshold=0.9)),
        partial(fc.CertifiedClassifier, floor=0.05, horizon=6),
        partial(fc.CertifiedClassifier, floor=0.05, horizon=6, certify="per_group"),
    ],
    ids=["half", "cross", "sum of g", "certified", "certified per group"],
)
def test_a_batch_that_failed_is_decided_as_if_it_had_not(make, call):
    check_a_failed_batch_is_decided_as_if_it_had_not_failed(make, call)


def test_a_strategy_with_tiny_numbers_is_refused():
    X = np.random.default_rng(0).normal(size=(300, 2))
    clf = fc.PartialFeedbackClassifier(strategy=lambda X, score, group: 1e-300 * score)
    clf.fit(X[:100], X[:100, 0] > 0, accepted=X[:100, 1] > 0)
    with pytest.raises(InputError, match="1e-280"):
        clf.decide(X[100:])
