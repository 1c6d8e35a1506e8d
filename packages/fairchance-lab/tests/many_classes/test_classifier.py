"""ManyClassClassifier: rounds, invariances, groups and late outcomes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from claims import CLASSES, GOOD, UTILITY, claims, claims_classifier, go, started
from fairchance import (
    EqualGroups,
    ExploitOnly,
    FdrBudget,
    GroupShare,
    MeanPastScore,
    PartialFeedbackClassifier,
    Revenue,
    SummedAcceptance,
    Uniform,
    load,
    save,
)
from fairchance.errors import InputError, LearningWarning
from fairchance.ledger import Program
from fairchance.methods.storage import dumps, loads
from fairchance_lab.many_classes import ManyClassClassifier
from small_worlds import lender_world, past_of


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"strategy": Uniform(), "weights": "none"},
        {"coverage": MeanPastScore(0.4)},
        {"learner": LogisticRegression(), "first_round": "learned"},
        {"group_as_feature": True, "strategy": lambda X, score, group: 1 + score + group},
        {"good": ("honest", "sloppy"), "budget": FdrBudget(0.3, exploit=0.2)},
    ],
)
def test_every_round_keeps_budget_and_propensities(options):
    classifier, rng = started(**options)
    budget, allowed, explored = classifier._budget, 0.0, 0
    for decided, _ in go(classifier, rng):
        record = classifier.rounds_[decided.round - 1]
        inside = decided.exploit
        assert np.array_equal(decided.accepted, np.isin(decided.decision, ["pay", "part"]))
        assert np.array_equal(decided.propensity[inside], decided.accepted[inside].astype(float))
        assert decided.propensity[~inside].sum() == pytest.approx(record.n_explored)
        if record.n_explored:
            assert np.all(decided.propensity[~inside] > 0)  # all may be drawn
        own = budget.explore_share(decided.round) * record.n_exploited
        allowed, explored = allowed + own, explored + record.n_explored
        assert explored <= allowed + 1e-9
        assert record.n_explored <= own + 1
    assert explored > 0
    assert classifier.rounds_[-1].n_outcomes > 0


def test_rounds_count_outcomes_by_class():
    """The record against counts applicant by applicant, with some outcomes unknown."""
    classifier, rng = started()
    tally = []
    for _ in range(3):
        X, outcome, group = claims(200, rng)
        decided = classifier.decide(X, sensitive_features=group)
        known = decided.accepted & (rng.random(200) < 0.7)
        classifier.observe(decided.ids[known], outcome[known])
        tally.append((decided.decision, outcome, known))
    for record, (decision, outcome, known) in zip(classifier.rounds_, tally, strict=True):
        for name in UTILITY:
            assert record.decided[name] == sum(decision == name)
        assert set(record.error_share) == set(GOOD)
        for name, good in GOOD.items():
            outcomes = [
                y for y, d, k in zip(outcome, decision, known, strict=True) if k and d == name
            ]
            wrong = [y for y in outcomes if y not in good]
            if outcomes:
                assert record.error_share[name] == pytest.approx(len(wrong) / len(outcomes))
            else:
                assert np.isnan(record.error_share[name])
        for label in CLASSES.tolist():
            rows = zip(outcome, decision, known, strict=True)
            given = [d for y, d, k in rows if k and y == label]
            assert record.seen[label] == len(given)
            right = [d for d in given if label in GOOD[d]]
            if given:
                assert record.recall[label] == pytest.approx(len(right) / len(given))
            else:
                assert np.isnan(record.recall[label])
    assert sum(record.seen["sloppy"] for record in classifier.rounds_) > 0
    # A correction moves one outcome from its class to another.
    decision, outcome, known = tally[0]
    row = int(np.flatnonzero(known & (outcome == "honest"))[0])
    before = classifier.rounds_[0].seen
    classifier.correct([800 + row], ["fraud"])
    after = classifier.rounds_[0].seen
    assert after["honest"] == before["honest"] - 1
    assert after["fraud"] == before["fraud"] + 1
    (correction,) = classifier.corrections_
    assert (correction.id, correction.before, correction.after) == (800 + row, "honest", "fraud")


def test_round_one_follows_the_past():
    rng = np.random.default_rng(0)
    X, outcome, _ = claims(500, rng)
    classifier = claims_classifier(strategy=None).fit(
        X,
        outcome,
        accepted=X[:, 0] > 0,
        past_policy=lambda X: np.where(X[:, 0] > 0, 0.9, 0.1),
    )
    decided = classifier.decide(X)
    assert np.array_equal(decided.exploit, X[:, 0] > 0)
    assert np.array_equal(decided.accepted & decided.exploit, X[:, 0] > 0)
    assert classifier.rounds_[0].follows
    assert np.array_equal(classifier.accepts(X), X[:, 0] > 0)
    assert np.array_equal(np.isin(classifier.best_decision(X), ["pay", "part"]), X[:, 0] > 0)


def test_warning_if_no_rule_accepts():
    rng = np.random.default_rng(0)
    X, outcome, _ = claims(500, rng)
    classifier = claims_classifier(
        strategy=None, good=("fraud",), budget=FdrBudget(0.05), first_round="learned"
    ).fit(X, outcome)
    with pytest.warns(LearningWarning, match="No rule keeps the estimated FDR"):
        assert not classifier.decide(X).accepted.any()


def test_warning_if_the_selection_rate_cannot_be_met():
    rng = np.random.default_rng(0)
    X, outcome, _ = claims(500, rng)
    budget = FdrBudget(0.05, min_selection_rate=0.95)
    classifier = claims_classifier(strategy=None, budget=budget, first_round="learned")
    classifier.fit(X, outcome)
    with pytest.warns(LearningWarning, match=r"0\.949"):
        classifier.decide(X)
    assert not classifier.rounds_[0].feasible
    assert classifier.rounds_[0].estimated_fdr <= budget.max_fdr(1)


def test_exploit_only_explores_none():
    classifier, rng = started(budget=ExploitOnly(0.2, exploit=0.2))
    rounds = go(classifier, rng)
    assert all(not decided.explored.any() for decided, _ in rounds)
    assert any((~decided.exploit).any() for decided, _ in rounds)


def test_weights_correct_for_unequal_acceptance(rng):
    """Half of the applicants are accepted nine times as often; weights restore their share."""
    n = 6000
    X = (rng.random((n, 1)) < 0.5).astype(float)
    p = np.where(X > 0, [[0.02, 0.95, 0.03]], [[0.2, 0.6, 0.2]])
    outcome = CLASSES[(rng.random(n)[:, None] > p.cumsum(axis=1)).sum(axis=1)]
    accepted = rng.random(n) < 0.1 + 0.8 * X[:, 0]
    truth = 0.5 * 0.05 + 0.5 * 0.4

    def estimated(**options):
        classifier = ManyClassClassifier(
            utility={"no": dict.fromkeys(CLASSES, 0), "yes": dict.fromkeys(CLASSES, 1)},
            good="honest",
            coverage=SummedAcceptance(threshold=0.01),
            budget=FdrBudget(0.5, exploit=0.4),
            weight_cap=10.0,
            random_state=0,
            **options,
        ).fit(X, outcome, accepted=accepted, past_policy=lambda X: 0.1 + 0.8 * X[:, 0])
        return classifier._learned.estimated_fdr

    assert estimated() == pytest.approx(truth, abs=0.04)
    assert estimated(weights="none") < truth - 0.05


@pytest.mark.parametrize("seed", range(3))
def test_two_classes_decide_as_partial_feedback_classifier(seed):
    """The same decisions and propensities in every round, and others for another utility."""

    def decisions(kind, **options):
        world = lender_world(seed, n_batch=300, n_rounds=6)
        past = world.history()
        classifier = kind(
            learner=LogisticRegression(), strategy=GroupShare(), random_state=seed, **options
        ).fit(
            past.people.X,
            past.outcomes,
            accepted=past.accepted,
            sensitive_features=past.people.group,
        )
        rounds = []
        for batch in world.batches():
            people = batch.applicants.people
            decided = classifier.decide(people.X, sensitive_features=people.group)
            classifier.observe(
                decided.ids[decided.accepted], batch.applicants.outcome[decided.accepted]
            )
            rounds.append(decided)
        return rounds, classifier.rounds_

    utility = Revenue(gain=200, loss=300)
    two, two_rounds = decisions(PartialFeedbackClassifier, utility=utility)
    many, many_rounds = decisions(ManyClassClassifier, utility=np.reshape(utility.gamma, (2, 2)))
    for decided, other in zip(two, many, strict=True):
        assert np.array_equal(decided.accepted, other.accepted)
        assert np.array_equal(decided.exploit, other.exploit)
        assert np.allclose(decided.score, other.score, rtol=0, atol=1e-11)
        assert np.allclose(decided.propensity, other.propensity, rtol=0, atol=1e-9)
        assert np.array_equal(other.decision == 1, other.accepted)
    fdr = [[record.estimated_fdr for record in rounds[1:]] for rounds in (two_rounds, many_rounds)]
    assert np.allclose(*fdr)
    other_utility, _ = decisions(ManyClassClassifier, utility=Revenue(gain=200, loss=2000))
    assert any(
        not np.array_equal(decided.accepted, other.accepted)
        for decided, other in zip(two, other_utility, strict=True)
    )


def test_outcomes_of_rejected_applicants_change_nothing():
    def decisions(instead):
        rng = np.random.default_rng(3)
        X, outcome, group = claims(600, rng)
        accepted = X[:, 1] > 0
        classifier = claims_classifier().fit(
            X, np.where(accepted, outcome, instead), accepted=accepted, sensitive_features=group
        )
        return [decided.propensity for decided, _ in go(classifier, rng)]

    assert all(map(np.array_equal, decisions("honest"), decisions("never heard of")))


def test_order_of_rows_and_outcomes_does_not_matter():
    def decisions(shuffle):
        rng, order = np.random.default_rng(5), np.random.default_rng(6)

        def permutation(n):
            return order.permutation(n) if shuffle else np.arange(n)

        X, outcome, group = claims(500, rng)
        at = permutation(500)
        classifier = claims_classifier().fit(
            X[at],
            outcome[at],
            accepted=(X[:, 1] > 0)[at],
            sensitive_features=group[at],
            ids=at,
        )
        decision_of = {}
        for t in range(1, 5):
            X, outcome, group = claims(300, rng)
            at = permutation(300)
            decided = classifier.decide(X[at], sensitive_features=group[at], ids=1000 * t + at)
            rows = permutation(300)
            for part in np.array_split(rows[decided.accepted[rows]], 3 if shuffle else 1):
                classifier.observe(decided.ids[part], outcome[at][part])
            decision_of |= dict(zip(decided.ids.tolist(), decided.decision.tolist(), strict=True))
        return decision_of

    assert decisions(shuffle=False) == decisions(shuffle=True)


@pytest.mark.parametrize("learner", [None, LogisticRegression()], ids=["default", "scikit-learn"])
def test_loaded_classifier_continues_unchanged(tmp_path, learner):
    classifier, rng = started(learner=learner)
    go(classifier, rng, n_rounds=2)
    path = tmp_path / "claims.fairchance"
    save(classifier, path)
    again = load(path)
    assert repr(again.rounds_) == repr(classifier.rounds_)
    rounds, others = (go(c, np.random.default_rng(9)) for c in (classifier, again))
    for (first, _), (second, _) in zip(rounds, others, strict=True):
        assert np.array_equal(first.decision, second.decision)
        assert np.array_equal(first.propensity, second.propensity)
    assert repr(again.rounds_) == repr(classifier.rounds_)


def any_groups(group, rng):
    codes = np.append([0, 0, 1, 1, 2, 2], rng.integers(3, size=len(group) - 6))
    return np.array(["x", "y", "z"])[codes]


def shuffled(group, rng):
    return rng.permutation(group)


def run(change_groups=None, n_rounds=2, **options):
    """Decide rounds of claims whose groups may be changed; return applicants and decisions."""
    rng, other = np.random.default_rng(0), np.random.default_rng(1)

    def changed(group):
        return group if change_groups is None else change_groups(group, other)

    X, outcome, group = claims(250, rng)
    classifier = claims_classifier(**({"strategy": None} | options))
    classifier.fit(X, outcome, accepted=X[:, 1] > -0.5, sensitive_features=changed(group))
    rounds = []
    for _ in range(n_rounds):
        X, outcome, group = claims(100, rng)
        decided = classifier.decide(X, sensitive_features=changed(group))
        classifier.observe(decided.ids[decided.accepted], outcome[decided.accepted])
        rounds.append((X, group, decided))
    return classifier, rounds


def same_decisions(rounds, others):
    keys = ("accepted", "exploit", "score", "propensity", "decision")
    return all(
        np.array_equal(getattr(decided, key), getattr(other, key))
        for (_, _, decided), (_, _, other) in zip(rounds, others, strict=True)
        for key in keys
    )


def by_group(X, score, group):
    return 1.0 + (X[:, 0] > 0) + 5.0 * group


@pytest.mark.parametrize("mode", ["blind", "audit"])
@pytest.mark.parametrize("options", [{}, {"strategy": by_group}], ids=["defaults", "function"])
def test_groups_do_not_change_decisions_unless_aware(mode, options):
    first, rounds = run(group_mode=mode, **options)
    other = any_groups if mode == "audit" else shuffled  # blind rounds keep a threshold per group
    second, others = run(other, group_mode=mode, **options)
    assert same_decisions(rounds, others)
    assert repr(first.rounds_) == repr(second.rounds_)
    X = np.random.default_rng(9).normal(size=(50, 2))
    for name in ("predict_proba", "accepts", "best_decision", "acceptance_probability"):
        assert np.array_equal(getattr(first, name)(X), getattr(second, name)(X)), name


@pytest.mark.parametrize(
    "options", [{"strategy": GroupShare()}, {"strategy": by_group}, {"group_as_feature": True}]
)
def test_aware_groups_change_decisions(options):
    assert not same_decisions(run(**options)[1], run(shuffled, **options)[1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": EqualGroups()}, "EqualGroups"),
        ({"group_as_feature": True}, "group_as_feature"),
    ],
)
@pytest.mark.parametrize("mode", ["blind", "audit"])
def test_options_that_read_groups_need_aware_mode(options, message, mode):
    with pytest.raises(InputError, match=f"'{mode}'.*{message}"):
        run(group_mode=mode, n_rounds=0, **options)
    run(n_rounds=0, **options)


@pytest.mark.parametrize("mode", ["aware", "audit"])
def test_groups_are_counted_and_every_record_has_the_mode(mode):
    classifier, rounds = run(group_mode=mode)
    expected = [
        (
            decided.round,
            "group",
            name,
            sum(group == name),
            sum(decided.accepted[group == name]),
            sum(decided.explored[group == name]),
        )
        for _, group, decided in rounds
        for name in ("A", "B")
    ]
    assert [tuple(vars(count).values()) for count in classifier.group_counts_] == expected
    assert {record.group_mode for record in classifier.rounds_} == {mode}
    assert {decided.group_mode for _, _, decided in rounds} == {mode}
    loaded = loads(dumps(classifier))
    assert loaded.group_counts_ == classifier.group_counts_
    loaded.set_params(group_mode="blind" if mode == "aware" else "aware")
    X, group, _ = rounds[0]
    with pytest.raises(InputError, match=f"group_mode .*'{mode}'"):
        loaded.decide(X, sensitive_features=group)


def test_attributes_side_by_side_are_counted_separately():
    rng = np.random.default_rng(0)
    X, outcome, group = claims(300, rng)
    both = np.column_stack([group, np.where(rng.random(300) < 0.5, "old", "young")])
    classifier = claims_classifier(strategy=None, group_mode="audit", attributes="side_by_side")
    classifier.fit(X, outcome, sensitive_features=both).decide(X, sensitive_features=both)
    counts = {count.group: count.n_people for count in classifier.group_counts_}
    assert counts == {name: int((both == name).sum()) for name in ("A", "B", "old", "young")}


# Late outcomes.


def started_with_maturity(maturity=None, missing=None):
    rng = np.random.default_rng(0)
    X, outcome, _ = claims(300, rng)
    classifier = claims_classifier(strategy=None, maturity=maturity, missing=missing)
    return classifier.fit(X, outcome, accepted=X[:, 1] > -0.5), rng


def same_model(classifier, other):
    X = np.random.default_rng(5).normal(size=(40, 2))
    return np.allclose(classifier.predict_proba(X), other.predict_proba(X), atol=1e-9)


@pytest.mark.filterwarnings("ignore::fairchance.errors.LearningWarning")
@pytest.mark.parametrize("missing", ["sloppy", pytest.param("fraud", marks=pytest.mark.long)])
def test_missing_outcomes_of_a_mature_round_count_as_the_named_class(missing):
    """A twin without maturity observes the named class itself; the control known outcomes only."""
    ours, rng = started_with_maturity(1, missing)
    twin, control = started_with_maturity()[0], started_with_maturity()[0]
    X, outcome, _ = claims(200, rng)
    decided, *others = (classifier.decide(X) for classifier in (ours, twin, control))
    assert all(np.array_equal(decided.accepted, other.accepted) for other in others)
    accepted = np.flatnonzero(decided.accepted)
    known, late, withdrawn = accepted[::3], accepted[1::3], accepted[2::3]
    ours.observe(decided.ids[known], outcome[known]).withdraw(decided.ids[withdrawn])
    X, _, _ = claims(100, rng)
    # Round 1 is not mature yet, so it does not count.
    assert np.array_equal(ours.decide(X).score, twin.decide(X).score)
    control.decide(X)
    for classifier in (twin, control):
        classifier.observe(decided.ids[known], outcome[known])
    twin.observe(decided.ids[late], np.full(late.size, missing))
    X, _, _ = claims(100, rng)
    # Round 1 is mature, round 2 is not.
    third, of_twin, _ = (classifier.decide(X) for classifier in (ours, twin, control))
    assert same_model(ours, twin)
    assert not same_model(ours, control)
    for key in ("accepted", "score", "propensity", "decision"):
        assert np.array_equal(getattr(third, key), getattr(of_twin, key)), key
    assert ours.rounds_[0].seen == control.rounds_[0].seen  # records count known outcomes


def test_complete_round_counts_at_once():
    ours, rng = started_with_maturity(5, "fraud")
    twin = started_with_maturity()[0]
    X, outcome, _ = claims(300, rng)
    for classifier in (ours, twin):
        decided = classifier.decide(X)
        classifier.observe(decided.ids[decided.accepted], outcome[decided.accepted])
    X, _, _ = claims(100, rng)
    assert np.array_equal(ours.decide(X).score, twin.decide(X).score)
    assert clone(ours).get_params()["missing"] == "fraud"
    loaded = loads(dumps(ours))
    X, _, _ = claims(100, rng)
    assert np.array_equal(ours.decide(X).score, loaded.decide(X).score)


@pytest.mark.parametrize(
    ("maturity", "missing", "message"),
    [
        (2, None, r"missing .*'honest'.*maturity=2.*None"),
        (2, "bad", "missing .*'bad'"),
        (None, "fraud", "missing .*'fraud'"),
        (-1, "fraud", "maturity .*-1"),
    ],
)
def test_maturity_needs_a_class_for_missing_outcomes(maturity, missing, message):
    with pytest.raises(InputError, match=message):
        started_with_maturity(maturity, missing)


def test_class_of_missing_outcomes_must_not_change():
    classifier, rng = started_with_maturity(2, "fraud")
    classifier.set_params(missing="sloppy")
    with pytest.raises(InputError, match=r"missing .*'fraud'.*'sloppy'"):
        classifier.decide(claims(50, rng)[0])


@pytest.mark.parametrize("first_round", ["matched", "drawn"])
def test_the_first_round_follows_the_past(rng, first_round):
    X, _, accepted = past_of(rng, 0.6)
    y = np.where(X[:, 0] > 0, "honest", rng.choice(["honest", "sloppy", "fraud"], len(X)))
    classifier = ManyClassClassifier(
        classes=("fraud", "sloppy", "honest"),
        learner=LogisticRegression(),
        first_round=first_round,
        random_state=0,
    ).fit(X, y, accepted=accepted)
    decided = classifier.decide(X)
    share = decided.propensity if first_round == "drawn" else decided.accepted & decided.exploit
    assert share.sum() == pytest.approx(accepted.sum(), rel=0.01)
    classifier.observe(decided.ids[decided.accepted], y[decided.accepted])
    assert len(classifier.decide(X + 0.1)) == len(X)


def test_rounds_count_who_is_left_after_some_are_forgotten():
    rng = np.random.default_rng(0)

    def claims(n):
        X = rng.normal(size=(n, 2))
        return X, np.where(X[:, 0] + rng.normal(size=n) > 0, "fair", "fraud")

    X, y = claims(500)
    classifier = ManyClassClassifier(classes=("fraud", "fair"), random_state=0)
    classifier.fit(X, y, accepted=X[:, 1] > -1)
    X, y = claims(300)
    decided = classifier.decide(X)
    classifier.observe(decided.ids[decided.accepted], y[decided.accepted])
    gone = np.arange(300) % 3 == 0
    classifier.forget(np.concatenate([decided.ids[gone], np.arange(0, 500, 5)]))
    left = decided.accepted & ~gone
    assert left.any()
    seen = {name: int((left & (y == name)).sum()) for name in ("fair", "fraud")}
    assert classifier.rounds_[0].seen == seen
    classifier.decide(claims(100)[0])


def test_a_program_with_two_outcomes_has_a_log(place, rng):
    X = rng.normal(size=(500, 2))
    good = np.where(X[:, 0] + rng.normal(size=500) > -1, "yes", "no")
    classifier = ManyClassClassifier(
        {"reject": {"yes": 0, "no": 0}, "accept": {"yes": 1, "no": -2}},
        observed="accept",
        good="yes",
        random_state=0,
    )
    program = Program.create(place, classifier, X[:300], good[:300], accepted=X[:300, 0] > -1)
    decided = program.decide(X[300:])
    log = program.decision_log(mixture=True)
    assert np.array_equal(log.accepted, decided.accepted)
    assert np.array_equal(log.drawn, ~decided.exploit)
