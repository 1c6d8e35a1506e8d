"""Algorithm 1: what holds in every round, whatever the options."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from secondlook import (
    ConstrainedLogistic,
    EqualGroups,
    FdrBudget,
    GroupShare,
    MeanPastScore,
    PartialFeedbackClassifier,
    PerGroup,
    PositiveRate,
    ScoreWeighted,
    SelectionRateParity,
    SummedAcceptance,
    SumOfG,
    TruePositiveRateParity,
    Uniform,
)
from secondlook.errors import InputError, LearningWarning
from secondlook.lab.simulate.populations import Lender
from secondlook.lab.simulate.run import run
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


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.filterwarnings("ignore:No threshold keeps")  # whoever is accepted
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


@pytest.mark.filterwarnings("ignore:No threshold keeps")
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
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
    assert classifier.rounds_[0].note == "Follows the past policy."


def test_nobody_known_is_said_aloud(rng):
    """A past that accepted few at random covers nobody: the paper's algorithm cannot start."""
    X = rng.normal(size=(500, 2))
    y = (rng.random(500) < 0.8).astype(int)
    accepted = rng.random(500) < 0.2
    stuck = PartialFeedbackClassifier(random_state=0).fit(X, y, accepted=accepted)
    with pytest.warns(LearningWarning, match=r"None of the 500 applicants decided on"):
        assert not stuck.decide(X).accepted.any()
    rule = SummedAcceptance(threshold=0.05)
    moving = PartialFeedbackClassifier(coverage=rule, first_round="learned", random_state=0)
    assert moving.fit(X, y, accepted=accepted).decide(X).exploit.all()


def test_weights_make_the_accepted_stand_for_everybody(rng):
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


def test_constrain_fit_is_the_papers_fit(make_classifier):
    """The budget's bound reaches the fit, and shifts likelihoods, as it does in the paper."""
    tight = FdrBudget(alpha=0.06)
    classifier, _ = make_classifier(constrain_fit=True, budget=tight)
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
    with pytest.raises(InputError) as error:
        classifier.decide(X, sensitive_features=group)
    assert str(error.value) == (
        "the next 4 integers after 9223372036854775805 are not all below 2**63; pass ids of your "
        "own that are."
    )
    last = classifier.decide(X[:2], sensitive_features=group[:2])
    assert last.ids.tolist() == [2**63 - 2, 2**63 - 1]
