"""Many classes: what groups may change, who is counted, and outcomes that are late."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from secondlook import (
    EqualGroups,
    FdrBudget,
    GroupShare,
    ManyClassClassifier,
    OutcomeNoise,
    Revenue,
)
from secondlook.errors import InputError
from secondlook.methods.many_classes.class_noise import of_recorded
from secondlook.methods.many_classes.decision_table import read_table
from secondlook.methods.many_classes.operating_point import best_rule
from secondlook.methods.storage import dumps, loads

WORTH = {
    "refuse": {"honest": -5, "sloppy": 0, "fraud": 0},
    "pay": {"honest": 5, "sloppy": -2, "fraud": -20},
    "pay in part": {"honest": 1, "sloppy": 2, "fraud": -8},
}
CLASSES = np.array(["fraud", "sloppy", "honest"])


def claims(rng, n):
    X = rng.normal(size=(n, 2))
    kind = np.digitize(X[:, 0] + 0.5 * rng.normal(size=n), [-1, 0])
    group = np.where(rng.random(n) < 1 / (1 + np.exp(-X[:, 1])), "B", "A")
    return X, group, CLASSES[kind]


def make(**options):
    good = {"pay": ["honest"], "pay in part": ["honest", "sloppy"]}
    given = {"observed": ["pay", "pay in part"], "good": good, "random_state": 0} | options
    return ManyClassClassifier(WORTH, **given)


def same_groups(group, rng):
    return group


def shuffled(group, rng):
    return rng.permutation(group)


def any_groups(group, rng):
    codes = np.append([0, 0, 1, 1, 2, 2], rng.integers(3, size=len(group) - 6))
    return np.array(["x", "y", "z"])[codes]


def run(of_history=same_groups, of_batches=same_groups, n_rounds=2, **options):
    rng, other = np.random.default_rng(0), np.random.default_rng(1)
    X, group, y = claims(rng, 250)
    classifier = make(**options)
    classifier.fit(X, y, accepted=X[:, 0] > -0.5, sensitive_features=of_history(group, other))
    made = []
    for _ in range(n_rounds):
        X, group, y = claims(rng, 100)
        decided = classifier.decide(X, sensitive_features=of_batches(group, other))
        classifier.observe(decided.ids[decided.accepted], y[decided.accepted])
        made.append((X, group, decided))
    return classifier, made


def equal(one, other):
    keys = ("accepted", "exploit", "score", "propensity", "decision")
    return all(np.array_equal(getattr(one[2], key), getattr(other[2], key)) for key in keys)


def by_group(X, score, group):
    return 1.0 + (X[:, 0] > 0) + 5.0 * group


@pytest.mark.parametrize("mode", ["blind", "audit"])
@pytest.mark.parametrize("options", [{}, {"strategy": by_group}], ids=["defaults", "own function"])
def test_groups_that_may_not_decide_change_nothing(mode, options):
    first, made = run(group_mode=mode, **options)
    other = any_groups if mode == "audit" else shuffled  # blind, rounds have a place for each
    second, again = run(other, other, group_mode=mode, **options)
    assert all(map(equal, made, again))
    assert repr(first.rounds_) == repr(second.rounds_)
    X = np.random.default_rng(9).normal(size=(50, 2))
    for name in ("predict_proba", "accepts", "best_decision", "acceptance_probability"):
        assert np.array_equal(getattr(first, name)(X), getattr(second, name)(X)), name


@pytest.mark.parametrize(
    "options", [{"strategy": GroupShare()}, {"strategy": by_group}, {"group_as_feature": True}]
)
def test_aware_groups_do_change_decisions(options):
    _, made = run(**options)
    _, again = run(shuffled, shuffled, **options)
    assert not all(map(equal, made, again))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"strategy": EqualGroups()}, r"the strategy EqualGroups\("),
        ({"group_as_feature": True}, "group_as_feature=True"),
    ],
)
def test_what_cannot_be_combined_is_refused(options, words):
    for mode in ("blind", "audit"):
        with pytest.raises(InputError, match=f"'{mode}' cannot be combined with {words}"):
            run(group_mode=mode, n_rounds=0, **options)
    run(n_rounds=0, **options)
    with pytest.raises(InputError, match="group_mode must be one of"):
        run(group_mode="unaware", n_rounds=0)


@pytest.mark.parametrize("mode", ["aware", "audit"])
def test_heads_are_counted_and_the_mode_is_in_every_record(mode):
    classifier, made = run(group_mode=mode)
    expected = [
        (one.round, "group", name, *(int(x[group == name].sum()) for x in counts))
        for _, group, one in made
        for name, counts in (
            (name, (np.ones(len(one), bool), one.accepted, one.explored)) for name in ("A", "B")
        )
    ]
    assert [tuple(vars(one).values()) for one in classifier.group_counts_] == expected
    assert {one.group_mode for one in classifier.rounds_} == {mode}
    assert {one.group_mode for _, _, one in made} == {mode}
    loaded = loads(dumps(classifier))
    assert loaded.group_counts_ == classifier.group_counts_
    loaded.set_params(group_mode="blind" if mode == "aware" else "aware")
    with pytest.raises(InputError, match=f"group_mode was '{mode}' when the history"):
        loaded.decide(made[0][0], sensitive_features=made[0][1])


def test_attributes_side_by_side_are_counted_each():
    rng = np.random.default_rng(0)
    X, group, y = claims(rng, 300)
    both = np.column_stack([group, np.where(rng.random(300) < 0.5, "old", "young")])
    classifier = make(group_mode="audit", attributes="side_by_side")
    classifier.fit(X, y, sensitive_features=both).decide(X, sensitive_features=both)
    counted = {one.group: one.n_people for one in classifier.group_counts_}
    assert counted == {name: int((both == name).sum()) for name in ("A", "B", "old", "young")}


# Late outcomes.


def started(seed=0, **options):
    rng = np.random.default_rng(seed)
    X, _, y = claims(rng, 300)
    return make(**options).fit(X, y, accepted=X[:, 0] > -0.5), rng


def same_model(one, other):
    X = np.random.default_rng(5).normal(size=(40, 2))
    return np.allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-9)


@pytest.mark.filterwarnings("ignore:No rule keeps the estimated FDR")
@pytest.mark.parametrize("missing", ["sloppy", pytest.param("fraud", marks=pytest.mark.long)])
def test_the_missing_of_a_mature_round_count_as_the_class_that_is_named(missing):
    """A twin without maturity is told by hand what should count; the control what is known."""
    ours, rng = started(maturity=1, missing=missing)
    twin, control = started()[0], started()[0]
    X, _, y = claims(rng, 200)
    decided, *others = (one.decide(X) for one in (ours, twin, control))
    yes = np.flatnonzero(decided.accepted)
    known, late, gone = yes[::3], yes[1::3], yes[2::3]
    ours.observe(decided.ids[known], y[known]).withdraw(decided.ids[gone])
    X, _, _ = claims(rng, 100)
    again = [one.decide(X) for one in (ours, twin)]  # of round 1 nothing counts yet
    assert np.array_equal(again[0].score, again[1].score)
    control.decide(X)
    for one in (twin, control):
        one.observe(decided.ids[known], y[known])
    twin.observe(decided.ids[late], np.full(late.size, missing))
    X, _, _ = claims(rng, 100)
    third = [one.decide(X) for one in (ours, twin, control)]  # round 1 is mature, round 2 is not
    assert same_model(ours, twin)
    assert not same_model(ours, control)
    for key in ("accepted", "score", "propensity", "decision"):
        assert np.array_equal(getattr(third[0], key), getattr(third[1], key)), key
    assert ours.rounds_[0].seen == control.rounds_[0].seen  # reports tell what has come
    assert all(np.array_equal(decided.accepted, one.accepted) for one in others)


def test_a_complete_round_counts_at_once():
    ours, rng = started(maturity=5, missing="fraud")
    twin = started()[0]
    X, _, y = claims(rng, 300)
    for one in (ours, twin):
        decided = one.decide(X)
        one.observe(decided.ids[decided.accepted], y[decided.accepted])
    X, _, _ = claims(rng, 100)
    assert np.array_equal(ours.decide(X).score, twin.decide(X).score)
    assert clone(ours).get_params()["missing"] == "fraud"
    loaded = loads(dumps(ours))
    X, _, _ = claims(rng, 100)
    assert np.array_equal(ours.decide(X).score, loaded.decide(X).score)


def test_what_the_missing_count_as_must_be_said():
    for options, message in (
        (
            {"maturity": 2},
            r"maturity=2 needs missing=, .* \['fraud', 'honest', 'sloppy'\], got None",
        ),
        ({"maturity": 2, "missing": "bad"}, "needs missing=.*got 'bad'"),
        ({"missing": "fraud"}, "say with maturity= after how many rounds"),
        ({"maturity": -1, "missing": "fraud"}, "maturity counts rounds and must be 0 or more"),
    ):
        with pytest.raises(InputError, match=message):
            started(**options)
    classifier, rng = started(maturity=2, missing="fraud")
    classifier.set_params(missing="sloppy")
    with pytest.raises(InputError, match="missing was 'fraud' when the history was fitted"):
        classifier.decide(claims(rng, 50)[0])


# Wrong outcomes.

NOISE = {
    "fraud": {"fraud": 0.7, "honest": 0.3},
    "sloppy": {"sloppy": 0.9, "honest": 0.1},
    "honest": {"honest": 0.95, "sloppy": 0.05},
}
ORDER = ("fraud", "honest", "sloppy")
T = np.array([[NOISE[one].get(other, 0.0) for other in ORDER] for one in ORDER])


def table(noise=None):
    good = {"pay": ["honest"], "pay in part": ["honest", "sloppy"]}
    return read_table(WORTH, good, ["pay", "pay in part"], None, ORDER, noise)


def test_with_two_classes_it_is_the_noise_of_two_classes():
    noise, utility = OutcomeNoise(bad_as_good=0.2, good_as_bad=0.05), Revenue(2, 7)
    both = ((0.8, 0.2), (0.05, 0.95))
    worth = of_recorded(np.reshape(utility.gamma, (2, 2)), both)
    assert worth.ravel() == pytest.approx(noise.recorded_utility(utility).gamma)
    assert of_recorded(np.array([[1.0, 0.0]]), both)[0] == pytest.approx(noise.badness([1, 0]))


@pytest.mark.parametrize("max_fdr", [0.02, 0.08, 0.2])
def test_the_best_rule_of_recorded_classes_is_that_of_true_ones(max_fdr):
    """Everybody is there once as each class they may be recorded as, weighted by its chance."""
    rng = np.random.default_rng(2)
    p = rng.dirichlet([0.4, 0.8, 0.5], 300)
    outcome = (p.cumsum(axis=1) > rng.random((300, 1))).argmax(axis=1)
    weight = rng.uniform(0.5, 2, 300)
    each = np.repeat(p @ T, 3, axis=0), np.tile(np.arange(3), 300), (weight[:, None] * T[outcome])
    rows = each[0], each[1], each[2].ravel()
    true = best_rule(table(), p, outcome, weight, max_fdr=max_fdr)
    ours = best_rule(table(NOISE), *rows, max_fdr=max_fdr)
    wrong = best_rule(table(), *rows, max_fdr=max_fdr)

    def decided(rule, seen, of):
        looked = of.look(seen, rule.multiplier)
        return np.where(looked.score >= rule.threshold, looked.accepting, looked.rejecting)

    for name in ("multiplier", "utility", "fdr", "selection_rate"):
        assert getattr(ours, name) == pytest.approx(getattr(true, name), rel=1e-6, abs=1e-6), name
    found = decided(ours, p @ T, table(NOISE))
    assert np.array_equal(found, decided(true, p, table()))
    assert not np.array_equal(decided(wrong, p @ T, table()), found)  # the control


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_recorded_classes_teach_what_true_ones_would(seed):
    """As many are accepted as by whoever learns from true classes; without the noise far more."""
    rng = np.random.default_rng(seed)
    X, _, y = claims(rng, 25_000)
    chances = T[np.searchsorted(ORDER, y)].cumsum(axis=1)
    recorded = np.array(ORDER)[(chances > rng.random((y.size, 1))).argmax(axis=1)]
    accepted = []
    for noise, told in ((None, y), (NOISE, recorded), (None, recorded)):
        classifier = make(noise=noise, first_round="learned", budget=FdrBudget(alpha=0.3))
        classifier.fit(X[:20_000], told[:20_000]).decide(X[20_000:])
        accepted.append(classifier.rounds_[0].n_exploited)
    true, ours, wrong = accepted
    assert abs(ours - true) < 0.03 * true < 0.1 * true < wrong - true


def test_noise_must_tell_classes_apart_and_stay():
    rest = {"sloppy": {"sloppy": 1}, "honest": {"honest": 1}}
    for noise, message in (
        ({"fraud": {"fraud": 1}}, "noise must give each of the classes"),
        ({**rest, "fraud": {"fraud": 0.5}}, "which sum to 1"),
        ({**rest, "fraud": {"bad": 1}}, "noise must give each of the classes"),
        ({**rest, "fraud": {"honest": 1}}, "does not tell them apart"),
        (np.eye(2), "noise must give each of the classes"),
        (0.1, "noise must give each of the classes"),
    ):
        with pytest.raises(InputError, match=message):
            started(noise=noise)
    classifier, rng = started(noise=NOISE)
    classifier.set_params(noise=None)
    with pytest.raises(InputError, match="classes and noise must stay what they were"):
        classifier.decide(claims(rng, 50)[0])
    matrix = started(noise=T, classes=ORDER)[0]
    X, _, _ = claims(rng, 50)
    loaded = loads(dumps(classifier.set_params(noise=NOISE)))
    assert np.array_equal(matrix.decide(X).score, loaded.decide(X).score)
