"""What groups may change: nothing in audit, only what is learned in blind, everything in aware."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from classifier_checks import check_wrong_groups_stop_a_batch
from fairchance import (
    CertifiedClassifier,
    ConstrainedLogistic,
    EqualGroups,
    GroupShare,
    MeanPastScore,
    PartialFeedbackClassifier,
    PerGroup,
    ScoreWeighted,
    SelectionRateParity,
    SumOfG,
    TruePositiveRateParity,
    Uniform,
    load,
    save,
)
from fairchance.core.strategies import FromFunction, Product, Strategy
from fairchance.errors import InputError
from small_worlds import lender_world

pytestmark = pytest.mark.filterwarnings(
    "ignore::fairchance.errors.LearningWarning", "ignore:No model found"
)


class WeightsByGroup(LogisticRegression):
    """A learner whose fit reads groups: everybody of the first group counts five times."""

    def fit(self, X, y, sample_weight=None, sensitive_features=None):
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        return super().fit(X, y, weight * np.where(sensitive_features == 0, 5.0, 1.0))


def by_first_feature_and_group(X, score, group):
    return 1.0 + (X[:, 0] > 0) + 5.0 * group


FAIR_FIT = ConstrainedLogistic(fairness=SelectionRateParity(0.02))
PLAIN = {
    "defaults": (PartialFeedbackClassifier, {}),
    "uniform, cross-fitted": (
        PartialFeedbackClassifier,
        {"strategy": Uniform(), "split": "cross", "weights": "none"},
    ),
    "own function": (PartialFeedbackClassifier, {"strategy": by_first_feature_and_group}),
    "product with an own function": (
        PartialFeedbackClassifier,
        {"strategy": ScoreWeighted(0.1) * FromFunction(by_first_feature_and_group)},
    ),
    "mean past score": (
        PartialFeedbackClassifier,
        {"coverage": MeanPastScore(), "learner": LogisticRegression()},
    ),
    "sum of g": (
        PartialFeedbackClassifier,
        {"coverage": SumOfG(threshold=0.5), "strategy": by_first_feature_and_group},
    ),
    "pipeline, learned at once": (
        PartialFeedbackClassifier,
        {
            "learner": make_pipeline(StandardScaler(), LogisticRegression()),
            "first_round": "learned",
        },
    ),
    "certified": (CertifiedClassifier, {"alpha": 0.3}),
    "certified with a floor": (
        CertifiedClassifier,
        {"alpha": 0.3, "floor": 0.05, "strategy": by_first_feature_and_group},
    ),
    "certified, any learner": (
        CertifiedClassifier,
        {"alpha": 0.3, "floor": 0.05, "strategy": ScoreWeighted(), "learner": LogisticRegression()},
    ),
}
# Fits that read the groups of labelled people.
READING_FITS = {
    "a fit that reads groups": (PartialFeedbackClassifier, {"learner": WeightsByGroup()}),
    "certified, a fit that reads groups": (
        CertifiedClassifier,
        {"alpha": 0.3, "learner": WeightsByGroup()},
    ),
}
CONSTRAINED = {
    "fair fit": (PartialFeedbackClassifier, {"learner": FAIR_FIT}),
    "fair fit in a pipeline": (
        PartialFeedbackClassifier,
        {"learner": make_pipeline(StandardScaler(), FAIR_FIT), "split": "cross"},
    ),
    "fair shared threshold": (
        PartialFeedbackClassifier,
        {"fairness": TruePositiveRateParity(0.01), "strategy": by_first_feature_and_group},
    ),
    "bounds per group": (
        PartialFeedbackClassifier,
        {"constraints": "per_group", "learner": LogisticRegression()},
    ),
    "certified, fair fit": (CertifiedClassifier, {"alpha": 0.3, "learner": FAIR_FIT}),
}
CHANGING = {  # aware: each lets groups change decisions in its own way
    "group share": (PartialFeedbackClassifier, {"strategy": GroupShare()}),
    "own function": PLAIN["own function"],
    "thresholds per group": (PartialFeedbackClassifier, {"thresholds": "per_group"}),
    "group as a feature": (PartialFeedbackClassifier, {"group_as_feature": True}),
    "a model per group": (PartialFeedbackClassifier, {"learner": PerGroup()}),
    "certified, ranks within groups": (
        CertifiedClassifier,
        {"alpha": 0.3, "ranks": "within_group"},
    ),
    "certified with a floor": PLAIN["certified with a floor"],
    **READING_FITS,
    **CONSTRAINED,
}


def same_groups(group, rng):
    return group


def shuffled(group, rng):
    return rng.permutation(group)


def any_groups(group, rng):
    """Other groups for everybody, three of them, whatever there was."""
    codes = np.append([0, 0, 1, 1, 2, 2], rng.integers(3, size=len(group) - 6))
    return np.array(["x", "y", "z"])[codes]


def start(kind, options, *, seed=0, regroup=same_groups, rng=None, n_batch=150, n_rounds=4):
    world = lender_world(seed, n_history=300, n_batch=n_batch, n_rounds=n_rounds)
    past = world.history()
    classifier = kind(random_state=seed, **options)
    classifier.fit(
        past.people.X,
        np.where(past.accepted, past.outcomes, 0),
        accepted=past.accepted,
        sensitive_features=regroup(past.people.group, rng),
    )
    return classifier, world


def run(kind, options, *, of_history=same_groups, of_batches=same_groups, seed=0, **sizes):
    """Return the classifier and what it decided, with groups replaced on the way in."""
    rng = np.random.default_rng(seed + 1)
    classifier, world = start(kind, options, seed=seed, regroup=of_history, rng=rng, **sizes)
    made = []
    for batch in world.batches():
        people = batch.applicants.people
        group = of_batches(people.group, rng)
        decided = classifier.decide(people.X, sensitive_features=group, unlike_history=True)
        accepted = decided.accepted
        classifier.observe(decided.ids[accepted], batch.applicants.outcome[accepted])
        made.append(decided)
    return classifier, made


def equal(one, other):
    keys = ("accepted", "exploit", "score", "propensity")
    return all(np.array_equal(getattr(one, key), getattr(other, key)) for key in keys)


def assert_same_in_every_way(one, other):
    (first, made), (second, again) = one, other
    assert all(map(equal, made, again))
    assert repr(first.rounds_) == repr(second.rounds_)  # NaN is unlike itself, but reads the same
    X = np.random.default_rng(9).normal(size=(50, first.n_features_in_))
    names = ["predict_proba", "accepts", "acceptance_probability"]
    names += ["coverage_of"] * isinstance(first, PartialFeedbackClassifier)
    for name in names:
        assert np.array_equal(getattr(first, name)(X), getattr(second, name)(X)), name


@pytest.mark.parametrize("name", PLAIN | READING_FITS)
@settings(max_examples=2)
@given(seed=st.integers(0, 1000))
def test_audit_no_group_changes_anything(name, seed):
    kind, options = (PLAIN | READING_FITS)[name]
    options = options | {"group_mode": "audit"}
    assert_same_in_every_way(
        run(kind, options, seed=seed),
        run(kind, options, of_history=any_groups, of_batches=any_groups, seed=seed),
    )


def test_audit_over_many_rounds():
    sizes = {"seed": 3, "n_rounds": 25, "n_batch": 120}
    for name in ("own function", "certified with a floor", "certified, a fit that reads groups"):
        kind, options = (PLAIN | READING_FITS)[name]
        audit = options | {"group_mode": "audit"}
        assert_same_in_every_way(
            run(kind, audit, **sizes),
            run(kind, audit, of_history=any_groups, of_batches=any_groups, **sizes),
        )


@pytest.mark.parametrize("name", CHANGING)
def test_aware_groups_do_change_decisions(name):
    """The control of the tests around it: each of these reads the groups somewhere."""
    kind, options = CHANGING[name]
    _, made = run(kind, options)
    _, again = run(kind, options, of_history=shuffled, of_batches=shuffled)
    assert not all(map(equal, made, again))


@pytest.mark.parametrize("name", PLAIN)
@settings(max_examples=2)
@given(seed=st.integers(0, 1000))
def test_blind_groups_of_those_decided_on_change_nothing_without_a_constraint(name, seed):
    kind, options = PLAIN[name]
    options = options | {"group_mode": "blind"}
    assert_same_in_every_way(
        run(kind, options, seed=seed), run(kind, options, of_batches=shuffled, seed=seed)
    )


@pytest.mark.parametrize("name", PLAIN | READING_FITS | CONSTRAINED)
def test_blind_no_permutation_changes_the_round_it_is_in(name):
    """Every round is decided by copies of the classifier, with groups in another order each."""
    kind, options = (PLAIN | READING_FITS | CONSTRAINED)[name]
    classifier, world = start(kind, options | {"group_mode": "blind"})
    rng = np.random.default_rng(0)
    for batch in world.batches():
        people = batch.applicants.people
        copies = [copy.deepcopy(classifier) for _ in range(2)]
        decided = classifier.decide(people.X, sensitive_features=people.group)
        for one in copies:
            again = one.decide(people.X, sensitive_features=rng.permutation(people.group))
            assert equal(decided, again)
        accepted = decided.accepted
        classifier.observe(decided.ids[accepted], batch.applicants.outcome[accepted])


@pytest.mark.parametrize("name", READING_FITS | CONSTRAINED)
def test_blind_groups_of_labelled_rows_change_what_is_learned(name):
    kind, options = (READING_FITS | CONSTRAINED)[name]
    options = options | {"group_mode": "blind"}
    _, made = run(kind, options)
    _, again = run(kind, options, of_history=shuffled, of_batches=shuffled)
    assert equal(made[0], again[0]) or kind is CertifiedClassifier  # round 1 follows the past
    assert not all(map(equal, made, again))


@pytest.mark.parametrize("name", READING_FITS)
def test_blind_groups_of_those_decided_on_are_learned_from_later(name):
    """Only the groups of batches are replaced: the round stays, what is learned of it does not."""
    kind, options = READING_FITS[name]
    soon = {"horizon": 6} if kind is CertifiedClassifier else {}  # it learns again that often
    options = options | soon | {"group_mode": "blind"}
    sizes = {"n_rounds": 6, "n_batch": 400}
    _, made = run(kind, options, **sizes)
    _, again = run(kind, options, of_batches=shuffled, **sizes)
    assert equal(made[0], again[0])
    assert not all(map(equal, made, again))


@pytest.mark.parametrize("name", ["fair fit", "fair shared threshold", "certified, fair fit"])
def test_blind_is_aware_where_nothing_reads_the_group_of_those_decided_on(name):
    kind, options = CONSTRAINED[name]
    options = options | {"strategy": ScoreWeighted()}
    _, aware = run(kind, options)
    _, blind = run(kind, options | {"group_mode": "blind"})
    assert all(map(equal, aware, blind))


def test_scores_need_no_groups_unless_aware():
    X = np.random.default_rng(0).normal(size=(20, 2))
    for kind, mode in [
        (kind, mode)
        for kind in (PartialFeedbackClassifier, CertifiedClassifier)
        for mode in ("blind", "audit")
    ]:
        classifier, _ = run(kind, {"group_mode": mode}, n_rounds=2)
        X = np.random.default_rng(0).normal(size=(20, classifier.n_features_in_))
        for method in (
            classifier.predict_proba,
            classifier.predict,
            classifier.accepts,
            classifier.acceptance_probability,
            getattr(classifier, "coverage_of", classifier.predict),
        ):
            with_groups = method(X, sensitive_features=np.array(["A", "B", "C", "D"] * 5))
            assert np.array_equal(method(X), with_groups)
        with pytest.raises(InputError, match="sensitive_features"):
            classifier.decide(X)  # they are recorded
    aware, _ = run(PartialFeedbackClassifier, {}, n_rounds=2)
    with pytest.raises(InputError, match="sensitive_features"):
        aware.coverage_of(X)


class OwnQuota(Strategy):
    """A user's strategy that says nothing of reading the group but has a share for each."""

    def group_shares(self, in_explore):
        return np.ones_like(in_explore) / in_explore.size


BOTH = ("blind", "audit")
REFUSED = [
    (PartialFeedbackClassifier, {"thresholds": "per_group"}, BOTH, "thresholds='per_group'"),
    (PartialFeedbackClassifier, {"group_as_feature": True}, BOTH, "group_as_feature=True"),
    (PartialFeedbackClassifier, {"learner": PerGroup()}, BOTH, ""),
    (
        PartialFeedbackClassifier,
        {"learner": PerGroup(LogisticRegression())},
        BOTH,
        "",
    ),
    (PartialFeedbackClassifier, {"strategy": GroupShare()}, BOTH, "GroupShare"),
    (
        PartialFeedbackClassifier,
        {"strategy": Uniform() * EqualGroups()},
        BOTH,
        "Product",
    ),
    (PartialFeedbackClassifier, {"strategy": OwnQuota()}, BOTH, "OwnQuota"),
    (CertifiedClassifier, {"ranks": "within_group"}, BOTH, "ranks='within_group'"),
    (CertifiedClassifier, {"certify": "per_group"}, BOTH, "certify='per_group'"),
    (CertifiedClassifier, {"group_as_feature": True}, BOTH, "group_as_feature=True"),
    (CertifiedClassifier, {"strategy": EqualGroups()}, BOTH, "EqualGroups"),
    (PartialFeedbackClassifier, {"fairness": SelectionRateParity()}, ("audit",), "fairness"),
    (
        PartialFeedbackClassifier,
        {"constraints": "per_group"},
        ("audit",),
        "constraints='per_group'",
    ),
    (
        PartialFeedbackClassifier,
        {"learner": make_pipeline(StandardScaler(), FAIR_FIT)},
        ("audit",),
        "",
    ),
    (CertifiedClassifier, {"learner": FAIR_FIT}, ("audit",), ""),
]


@pytest.mark.parametrize(
    ("kind", "options", "mode", "words"),
    [(kind, options, mode, words) for kind, options, modes, words in REFUSED for mode in modes],
)
def test_options_that_cannot_be_combined_are_refused(kind, options, mode, words):
    with pytest.raises(InputError, match=rf"group_mode='{mode}'.*{words}"):
        start(kind, options | {"group_mode": mode})
    start(kind, options)  # and goes well otherwise


@pytest.mark.parametrize("kind", [PartialFeedbackClassifier, CertifiedClassifier])
def test_unknown_modes_are_refused(kind):
    with pytest.raises(InputError, match=r"group_mode.*\('aware', 'blind', 'audit'\)"):
        start(kind, {"group_mode": "unaware"})


@pytest.mark.parametrize("kind", [PartialFeedbackClassifier, CertifiedClassifier])
@pytest.mark.parametrize("mode", ["aware", "blind", "audit"])
def test_the_mode_is_in_every_record_and_in_files(kind, mode, tmp_path):
    classifier, world = start(kind, {"group_mode": mode, "strategy": ScoreWeighted()})
    batches = [batch.applicants.people for batch in world.batches()]
    classifier.decide(batches[0].X, sensitive_features=batches[0].group)
    save(classifier, tmp_path / "file")
    loaded = load(tmp_path / "file")
    for people in batches[1:]:
        decided = classifier.decide(people.X, sensitive_features=people.group)
        again = loaded.decide(people.X, sensitive_features=people.group)
        assert decided.group_mode == again.group_mode == mode
        assert equal(decided, again)
    for one in (classifier, loaded):
        assert {record.group_mode for record in one.rounds_} == {mode}
        assert one.get_params()["group_mode"] == mode
    assert loaded.group_counts_ == classifier.group_counts_
    other = "blind" if mode == "aware" else "aware"
    loaded.set_params(group_mode=other)
    with pytest.raises(InputError, match=rf"group_mode.*'{mode}'.*'{other}'"):
        loaded.decide(people.X, sensitive_features=people.group)


def test_a_strategy_that_reads_groups_is_refused_later_too():
    classifier, world = start(PartialFeedbackClassifier, {"group_mode": "blind"})
    people = next(iter(world.batches())).applicants.people
    classifier.set_params(strategy=GroupShare())
    with pytest.raises(InputError, match="GroupShare"):
        classifier.decide(people.X, sensitive_features=people.group)
    assert classifier.rounds_ == ()


@pytest.mark.parametrize("kind", [PartialFeedbackClassifier, CertifiedClassifier])
@pytest.mark.parametrize("mode", ["aware", "blind", "audit"])
def test_heads_are_counted_by_group(kind, mode):
    classifier, world = start(kind, {"group_mode": mode})
    expected = []
    for batch in world.batches():
        people = batch.applicants.people
        decided = classifier.decide(people.X, sensitive_features=people.group)
        for name in ("A", "B"):
            mine = people.group == name
            expected.append(
                (
                    decided.round,
                    "group",
                    name,
                    int(mine.sum()),
                    int(decided.accepted[mine].sum()),
                    int(decided.explored[mine].sum()),
                )
            )
    counted = [tuple(vars(one).values()) for one in classifier.group_counts_]
    assert counted == expected
    assert sum(one.n_accepted for one in classifier.group_counts_) > 0


def with_newcomers(group, rng):
    """A group that the history lacks for every fifth applicant, another one for the next."""
    place = np.arange(group.size) % 5
    return np.where(place == 0, "a new one", np.where(place == 1, "0", group))


UNSEEN = {
    "algorithm 1": (PartialFeedbackClassifier, {}),
    "certified": (CertifiedClassifier, {"alpha": 0.3, "learner": LogisticRegression()}),
}


@pytest.mark.parametrize("mode", ["blind", "audit"])
@pytest.mark.parametrize("name", UNSEEN)
def test_a_group_that_the_history_lacks_is_counted_and_changes_nothing(name, mode):
    kind, options = UNSEEN[name]
    options = options | {"group_mode": mode}
    usual, new = run(kind, options), run(kind, options, of_batches=with_newcomers)
    assert_same_in_every_way(usual, new)
    counts = new[0].group_counts_
    assert [one.group for one in counts[:4]] == ["A", "B", "0", "a new one"]
    assert {one.n_people for one in counts if one.group == "a new one"} == {30}
    assert sum(one.n_accepted for one in counts) == sum(each.accepted.sum() for each in new[1])
    assert new[0].groups_.tolist() == ["A", "B"]
    with pytest.raises(InputError, match="'a new one'"):
        run(kind, options | {"group_mode": "aware"}, of_batches=with_newcomers)


@pytest.mark.parametrize("kind", [PartialFeedbackClassifier, CertifiedClassifier])
def test_applicants_without_a_group_are_decided_unless_groups_decide(kind):
    X = np.random.default_rng(0).normal(size=(200, 2))
    y, sex = X[:, 0] > -0.5, np.array(["f", "m", "f", None] * 50, object)
    for mode in ("blind", "audit"):
        classifier = kind(group_mode=mode, random_state=0).fit(X, y, sensitive_features=sex)
        classifier.decide(X[:40], sensitive_features=sex[:40])
        counted = {one.group: one.n_people for one in classifier.group_counts_}
        assert counted == {"f": 20, "m": 10, "not stated": 10}
    with pytest.raises(InputError, match="missing"):
        kind().fit(X, y, sensitive_features=sex)
    with pytest.raises(InputError, match="missing"):  # of numbers, no text can be a further one
        kind(group_mode="audit").fit(X, y, sensitive_features=np.where(y, 1.0, np.nan))


@pytest.mark.parametrize("mode", ["blind", "audit"])
@pytest.mark.parametrize("name", UNSEEN)
def test_a_column_of_groups_that_went_wrong_stops_a_batch(name, mode):
    kind, options = UNSEEN[name]
    check_wrong_groups_stop_a_batch(kind(group_mode=mode, random_state=0, **options))


@pytest.mark.parametrize("name", ["a fit that reads groups", "fair fit", "fair shared threshold"])
def test_fits_that_compare_groups_leave_out_groups_that_the_history_lacks(name):
    """Their outcomes change nothing, and other outcomes would."""
    kind, options = (READING_FITS | CONSTRAINED)[name]

    def decided(leave_out):
        rng = np.random.default_rng(1)
        options_ = options | {"group_mode": "blind", "strategy": Uniform()}
        classifier, world = start(kind, options_, rng=rng, n_batch=400)
        made = []
        for batch in world.batches():
            people = batch.applicants.people
            group = with_newcomers(people.group, rng)
            one = classifier.decide(people.X, sensitive_features=group, unlike_history=True)
            told = one.accepted & ~np.isin(group, leave_out)
            classifier.observe(one.ids[told], batch.applicants.outcome[told])
            made.append(one)
        return made

    everybody = decided([])
    assert all(map(equal, everybody, decided(["0", "a new one"])))
    assert not all(map(equal, everybody, decided(["A"])))


def test_a_constraint_that_is_added_later_compares_groups_of_before():
    kind, options = PartialFeedbackClassifier, {"group_mode": "blind", "strategy": Uniform()}
    unfair, _ = run(kind, options)
    later = copy.deepcopy(unfair).set_params(fairness=SelectionRateParity(0.01))
    X = np.random.default_rng(3).normal(size=(300, later.n_features_in_))
    group, ids = ["A", "B"] * 150, range(10_000, 10_300)
    for classifier in (later, unfair):
        classifier.decide(X, sensitive_features=group, ids=ids)
    assert later.rounds_[-1].disparity <= 0.01
    assert later._deployed.thresholds[0] != unfair._deployed.thresholds[0]


def test_groups_of_another_kind_are_refused():
    X = np.random.default_rng(0).normal(size=(60, 1))
    classifier = PartialFeedbackClassifier(group_mode="audit", random_state=0)
    classifier.fit(X, X[:, 0] > 0, sensitive_features=np.arange(60) % 2)
    classifier.decide(X, sensitive_features=np.arange(60) % 3.0, unlike_history=True)
    assert [one.group for one in classifier.group_counts_] == [0, 1, 2]
    for wrong in (np.arange(60) % 2 + 0.5, ["0"] * 60):
        with pytest.raises(InputError):
            classifier.decide(X, sensitive_features=wrong)


def test_new_combinations_of_attributes_are_counted():
    X = np.random.default_rng(0).normal(size=(60, 1))
    sex, age = np.where(np.arange(60) % 2, "f", "m"), np.where(np.arange(60) % 3, "old", "young")
    classifier = PartialFeedbackClassifier(group_mode="audit", random_state=0)
    only = np.where(sex == "f", "old", age)  # no young women in the history
    classifier.fit(X, X[:, 0] > 0, sensitive_features=np.column_stack([sex, only]))
    classifier.decide(X, sensitive_features=np.column_stack([sex, age]))
    found = {one.group: one.n_people for one in classifier.group_counts_}
    assert found == {"f, old": 20, "f, young": 10, "m, old": 20, "m, young": 10}
    sides = copy.deepcopy(classifier).set_params(attributes="side_by_side")
    assert [(one.group, one.n_people) for one in sides.group_counts_] == [
        ("f", 30),
        ("m", 30),
        ("old", 40),
        ("young", 20),
    ]


def test_without_groups_there_is_nothing_to_count():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    classifier = PartialFeedbackClassifier(group_mode="audit", random_state=0)
    classifier.fit(X, X[:, 0] + rng.normal(size=200) > 0, accepted=X[:, 1] > -0.5)
    classifier.decide(X)
    assert classifier.group_counts_ == ()


def test_strategies_without_the_group():
    """Ours that read none stay as they are; a subclass, which may read it, is handed zeros."""

    class Partial(ScoreWeighted):
        def person_factor(self, X, score, group):
            return score + group

    score, group = np.array([0.2, 0.2]), np.array([0, 1])
    blind = (Uniform() * Partial()).without_group()
    assert isinstance(blind, Product)
    assert blind.left == Uniform()
    assert blind.person_factor(None, score, group).tolist() == [0.2, 0.2]
    assert (Uniform() * Partial()).person_factor(None, score, group).tolist() == [0.2, 1.2]
    marks = [Uniform(), ScoreWeighted(), GroupShare(), EqualGroups(), OwnQuota(), blind]
    assert [one.reads_group for one in marks] == [False, False, True, True, True, False]


@pytest.mark.parametrize("mode", ["blind", "audit"])
@pytest.mark.parametrize("kind", [CertifiedClassifier, PartialFeedbackClassifier])
def test_a_group_that_is_a_feature_is_refused(kind, mode):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=200), "sex": rng.integers(0, 2, 200)})
    y, clf = (table["x"] > 0).astype(int), kind(group_mode=mode)
    with pytest.raises(InputError, match="'sex'"):
        clf.fit(table, y, sensitive_features=table["sex"])
    clf.fit(table[["x"]], y, sensitive_features=table["sex"])
