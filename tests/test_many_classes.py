"""Many classes: every round, every class, every kind of input, and two classes as they were."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from secondlook import (
    ExploitOnly,
    FdrBudget,
    GroupShare,
    MeanPastScore,
    PartialFeedbackClassifier,
    PerGroup,
    Revenue,
    SummedAcceptance,
    Uniform,
    load,
    save,
)
from secondlook.errors import InputError, LearningWarning, UnknownIdError
from secondlook.many_classes import ManyClassClassifier
from small_worlds import lender_world

CLASSES = np.array(["fraud", "honest", "sloppy"])
UTILITY = {
    "refuse": {"fraud": 0, "honest": -1, "sloppy": 0},
    "pay": {"fraud": -20, "honest": 5, "sloppy": -2},
    "part": {"fraud": -8, "honest": 1, "sloppy": 2},
}
GOOD = {"pay": ("honest",), "part": ("honest", "sloppy")}


@parametrize_with_checks(
    [
        ManyClassClassifier(),
        ManyClassClassifier(
            learner=HistGradientBoostingClassifier(max_iter=15), first_round="learned"
        ),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def claims(n, rng):
    """People of two groups with three classes."""
    X = rng.normal(size=(n, 2))
    logits = np.column_stack([X[:, 0] - 1, 1.5 + X[:, 1], np.zeros(n)])
    outcome = CLASSES[(logits + rng.gumbel(size=(n, 3))).argmax(axis=1)]
    return X, outcome, np.where(rng.random(n) < 0.3, "B", "A")


def claims_classifier(**options):
    options = {"budget": FdrBudget(0.2), "strategy": GroupShare()} | options
    return ManyClassClassifier(
        **{"utility": UTILITY, "good": GOOD, "observed": ("pay", "part"), "random_state": 0}
        | options
    )


def started(seed=0, n=800, **options):
    """Return a classifier with a history and the generator that goes on after it."""
    rng = np.random.default_rng(seed)
    X, outcome, group = claims(n, rng)
    accepted = X[:, 1] + 0.5 * rng.normal(size=n) > 0
    classifier = claims_classifier(**options)
    return classifier.fit(X, outcome, accepted=accepted, sensitive_features=group), rng


def go(classifier, rng, n_rounds=4, n=300):
    """Decide and observe some rounds; return decisions and true outcomes."""
    made = []
    for _ in range(n_rounds):
        X, outcome, group = claims(n, rng)
        decided = classifier.decide(X, sensitive_features=group)
        classifier.observe(decided.ids[decided.accepted], outcome[decided.accepted])
        made.append((decided, outcome))
    return made


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
def test_every_round(options):
    classifier, rng = started(**options)
    budget, allowed, explored = classifier._budget, 0.0, 0
    for decided, _ in go(classifier, rng):
        record = classifier.rounds_[decided.round - 1]
        inside = decided.exploit
        assert np.array_equal(decided.accepted, np.isin(decided.decision, ["pay", "part"]))
        assert np.array_equal(decided.propensity[inside], decided.accepted[inside].astype(float))
        assert decided.propensity[~inside].sum() == pytest.approx(record.n_explored)
        if record.n_explored:
            assert np.all(decided.propensity[~inside] > 0)  # everybody has a chance
        own = budget.explore_share(decided.round) * record.n_exploited
        allowed, explored = allowed + own, explored + record.n_explored
        assert explored <= allowed + 1e-9
        assert record.n_explored <= own + 1
    assert explored > 0
    assert classifier.rounds_[-1].n_outcomes > 0


@pytest.mark.parametrize("seed", range(3))
def test_two_classes_decide_as_the_two_class_classifier(seed):
    """The same people, draws and probabilities, round by round, and not those of another worth."""

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
        made = []
        for batch in world.batches():
            people = batch.applicants.people
            decided = classifier.decide(people.X, sensitive_features=people.group)
            classifier.observe(
                decided.ids[decided.accepted], batch.applicants.outcome[decided.accepted]
            )
            made.append(decided)
        return made, classifier.rounds_

    worth = Revenue(gain=200, loss=300)
    two, two_rounds = decisions(PartialFeedbackClassifier, utility=worth)
    many, many_rounds = decisions(ManyClassClassifier, utility=np.reshape(worth.gamma, (2, 2)))
    for one, other in zip(two, many, strict=True):
        assert np.array_equal(one.accepted, other.accepted)
        assert np.array_equal(one.exploit, other.exploit)
        assert np.allclose(one.score, other.score, rtol=0, atol=1e-11)
        assert np.allclose(one.propensity, other.propensity, rtol=0, atol=1e-9)
        assert np.array_equal(other.decision == 1, other.accepted)
    fdr = [[record.estimated_fdr for record in rounds[1:]] for rounds in (two_rounds, many_rounds)]
    assert np.allclose(*fdr)
    other_worth, _ = decisions(ManyClassClassifier, utility=Revenue(gain=200, loss=2000))
    assert any(
        not np.array_equal(one.accepted, other.accepted)
        for one, other in zip(two, other_worth, strict=True)
    )


def test_rounds_count_class_by_class():
    """The record against counting people one by one, with some outcomes still to come."""
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
        for one in CLASSES.tolist():
            given = [d for y, d, k in zip(outcome, decision, known, strict=True) if k and y == one]
            assert record.seen[one] == len(given)
            right = [d for d in given if one in GOOD[d]]
            if given:
                assert record.recall[one] == pytest.approx(len(right) / len(given))
            else:
                assert np.isnan(record.recall[one])
    assert sum(record.seen["sloppy"] for record in classifier.rounds_) > 0
    # A correction moves one outcome from its class to another.
    decision, outcome, known = tally[0]
    person = int(np.flatnonzero(known & (outcome == "honest"))[0])
    before = classifier.rounds_[0].seen
    classifier.correct([800 + person], ["fraud"])
    after = classifier.rounds_[0].seen
    assert after["honest"] == before["honest"] - 1
    assert after["fraud"] == before["fraud"] + 1
    (told,) = classifier.corrections_
    assert (told.id, told.before, told.after) == (800 + person, "honest", "fraud")


def test_outcomes_of_the_rejected_change_nothing():
    def decisions(instead):
        rng = np.random.default_rng(3)
        X, outcome, group = claims(600, rng)
        accepted = X[:, 1] > 0
        classifier = claims_classifier().fit(
            X, np.where(accepted, outcome, instead), accepted=accepted, sensitive_features=group
        )
        return [one.propensity for one, _ in go(classifier, rng)]

    assert all(map(np.array_equal, decisions("honest"), decisions("never heard of")))


def test_order_of_rows_and_of_outcomes_does_not_matter():
    def decisions(shuffled):
        rng, order = np.random.default_rng(5), np.random.default_rng(6)

        def permutation(n):
            return order.permutation(n) if shuffled else np.arange(n)

        X, outcome, group = claims(500, rng)
        at = permutation(500)
        classifier = claims_classifier().fit(
            X[at],
            outcome[at],
            accepted=(X[:, 1] > 0)[at],
            sensitive_features=group[at],
            ids=at,
        )
        made = {}
        for t in range(1, 5):
            X, outcome, group = claims(300, rng)
            at = permutation(300)
            decided = classifier.decide(X[at], sensitive_features=group[at], ids=1000 * t + at)
            who = permutation(300)
            for part in np.array_split(who[decided.accepted[who]], 3 if shuffled else 1):
                classifier.observe(decided.ids[part], outcome[at][part])
            made |= dict(zip(decided.ids.tolist(), decided.decision.tolist(), strict=True))
        return made

    assert decisions(shuffled=False) == decisions(shuffled=True)


def test_a_class_that_comes_later_must_be_named():
    rng = np.random.default_rng(0)
    X, outcome, _ = claims(600, rng)
    early = np.where(outcome == "fraud", "sloppy", outcome)
    options = {"classes": ("sloppy", "honest", "fraud"), "first_round": "learned"}
    named = claims_classifier(strategy=None, **options).fit(X, early)
    assert named.classes_.tolist() == sorted(options["classes"])
    assert np.all(named.predict_proba(X)[:, 0] == 0)  # nothing is known of fraud yet
    decided = named.decide(X)
    named.observe(decided.ids[decided.accepted], outcome[decided.accepted])
    assert named.rounds_[0].seen["fraud"] == sum(outcome[decided.accepted] == "fraud") > 0
    named.decide(X)
    assert np.all(named.predict_proba(X)[:, 0] > 0)

    unnamed = ManyClassClassifier(random_state=0).fit(X, early)
    decided = unnamed.decide(X)
    assert decided.accepted.any()
    with pytest.raises(InputError, match=r"outcomes must be among .*got 'fraud'; name a class"):
        unnamed.observe(decided.ids[decided.accepted], ["fraud"] * int(decided.accepted.sum()))
    by_worth = claims_classifier(strategy=None).fit(X, early)  # the utility names all three
    assert by_worth.classes_.tolist() == CLASSES.tolist()
    with pytest.raises(InputError, match=r"y must be among the classes .*got 'fraud'"):
        ManyClassClassifier(classes=("honest", "sloppy")).fit(X, outcome)


def test_a_matrix_follows_the_order_of_names():
    """The same worth as a dict of dicts and as a matrix with rows and columns of any order."""
    rng = np.random.default_rng(0)
    X, outcome, _ = claims(600, rng)
    classes, names = ["sloppy", "fraud", "honest"], ["part", "refuse", "pay"]
    matrix = [[UTILITY[name][one] for one in classes] for name in names]
    by_dict = claims_classifier(strategy=None).fit(X, outcome)
    by_matrix = claims_classifier(
        strategy=None, utility=matrix, decisions=names, classes=classes
    ).fit(X, outcome)
    assert by_matrix.decisions_.tolist() == names
    assert np.array_equal(by_dict.best_decision(X), by_matrix.best_decision(X))
    assert set(by_dict.best_decision(X)) == set(names)
    swapped = claims_classifier(
        strategy=None, utility=matrix, decisions=names, classes=sorted(classes)
    ).fit(X, outcome)
    assert not np.array_equal(by_dict.best_decision(X), swapped.best_decision(X))


def test_numbers_as_classes_and_decisions_of_several_types():
    rng = np.random.default_rng(0)
    X, outcome, _ = claims(600, rng)
    codes = np.searchsorted(CLASSES, outcome)
    classifier = ManyClassClassifier(
        utility={"no": {0: 0, 1: 0, 2: 0}, 1: {0: -20, 1: 5, 2: -2}},
        observed=1,
        random_state=0,
    ).fit(X, codes)
    decided = classifier.decide(X)
    assert set(decided.decision.tolist()) == {"no", 1}
    assert np.array_equal(decided.decision == 1, decided.accepted)
    assert classifier.predict(X).dtype.kind == "i"


def test_past_decisions_in_place_of_accepted():
    rng = np.random.default_rng(0)
    X, outcome, group = claims(600, rng)
    given = np.where(X[:, 1] > 0, np.where(X[:, 0] > 0, "part", "pay"), "refuse")
    by_name = claims_classifier().fit(X, outcome, decisions=given, sensitive_features=group)
    by_flag = claims_classifier().fit(
        X, outcome, accepted=given != "refuse", sensitive_features=group
    )
    batch = {"X": X, "sensitive_features": group}
    assert np.array_equal(by_name.decide(**batch).propensity, by_flag.decide(**batch).propensity)
    with pytest.raises(InputError, match=r"decisions names 'ask', which is not among"):
        claims_classifier().fit(X, outcome, decisions=np.where(given == "pay", "ask", given))
    with pytest.raises(InputError, match=r"if observed= names the decisions"):
        ManyClassClassifier().fit(X, outcome, decisions=given)


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
    assert classifier.rounds_[0].note == "Follows the past policy."
    assert np.array_equal(classifier.accepts(X), X[:, 0] > 0)
    assert np.array_equal(np.isin(classifier.best_decision(X), ["pay", "part"]), X[:, 0] > 0)


def test_nobody_worth_accepting_is_said_aloud():
    rng = np.random.default_rng(0)
    X, outcome, _ = claims(500, rng)
    classifier = claims_classifier(
        strategy=None, good=("fraud",), budget=FdrBudget(0.05), first_round="learned"
    ).fit(X, outcome)
    with pytest.warns(LearningWarning, match="No rule keeps the estimated FDR at or below"):
        assert not classifier.decide(X).accepted.any()


def test_a_selection_rate_out_of_reach_is_said_aloud():
    rng = np.random.default_rng(0)
    X, outcome, _ = claims(500, rng)
    budget = FdrBudget(0.05, min_selection_rate=0.95)
    classifier = claims_classifier(strategy=None, budget=budget, first_round="learned")
    classifier.fit(X, outcome)
    with pytest.warns(LearningWarning, match=r"No rule with an FDR of at most .* accepts a share"):
        classifier.decide(X)
    assert not classifier.rounds_[0].feasible
    assert classifier.rounds_[0].estimated_fdr <= budget.max_fdr(1)


@pytest.mark.parametrize("learner", [None, LogisticRegression()], ids=["default", "scikit-learn"])
def test_a_saved_classifier_goes_on_as_it_was(tmp_path, learner):
    classifier, rng = started(learner=learner)
    go(classifier, rng, n_rounds=2)
    path = tmp_path / "claims.secondlook"
    save(classifier, path)
    again = load(path)
    assert repr(again.rounds_) == repr(classifier.rounds_)
    one, other = (go(c, np.random.default_rng(9)) for c in (classifier, again))
    for (first, _), (second, _) in zip(one, other, strict=True):
        assert np.array_equal(first.decision, second.decision)
        assert np.array_equal(first.propensity, second.propensity)
    assert repr(again.rounds_) == repr(classifier.rounds_)


def test_frames_in_frames_out():
    rng = np.random.default_rng(0)
    X, outcome, _ = claims(400, rng)
    frame = pd.DataFrame(X, columns=["debt", "income"])
    classifier = claims_classifier(strategy=None).fit(frame, pd.Series(outcome))
    table = classifier.decide(frame).to_frame()
    assert isinstance(table, pd.DataFrame)
    assert table["decision"].isin(UTILITY).all()
    assert len(pd.DataFrame(classifier.rounds_)) == 1


def test_exploration_off_keeps_the_unknown_unknown():
    classifier, rng = started(budget=ExploitOnly(0.2, exploit=0.2))
    made = go(classifier, rng)
    assert all(not decided.explored.any() for decided, _ in made)
    assert any((~decided.exploit).any() for decided, _ in made)


def test_weights_make_the_accepted_stand_for_everybody(rng):
    """Half of the people are accepted nine times as often; weighted, they count as they are."""
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


def one_sentence(error):
    text = str(error.value)
    assert text.endswith("."), text
    assert ". " not in text, text


SETTINGS = {
    "a decision too few": (
        {"utility": [[0, 0, 0], [1, 1, 1]], "good": None, "observed": None},
        r"utility must be a finite number for each of the decisions \['fraud', 'honest'",
    ),
    "worth of nothing": (
        {"utility": UTILITY | {"part": UTILITY["part"] | {"fraud": np.nan}}},
        r"utility must be a finite number for each of the decisions",
    ),
    "a row that is none": (
        {"utility": UTILITY | {"part": 3}},
        r"utility must give each decision a dict from class to worth, got 3 for 'part'",
    ),
    "a class too few": (
        {"utility": UTILITY | {"part": {"honest": 1}}},
        r"utility\['part'\] must have an entry for each of the classes \['fraud', 'honest'",
    ),
    "names and rows differ": (
        {"decisions": ("refuse", "pay")},
        r"utility must have an entry for each of the decisions \['refuse', 'pay'\] and no other",
    ),
    "the same decision twice": (
        {"utility": np.eye(3), "decisions": ("a", "b", "b")},
        r"decisions must differ from one another",
    ),
    "the same class twice": (
        {"classes": ("fraud", "honest", "sloppy", "fraud")},
        r"classes must differ from one another",
    ),
    "decisions that are no classes": (
        {"utility": None, "decisions": ("a", "b")},
        r"utility must be given where decisions are no classes",
    ),
    "observed is no decision": (
        {"observed": ("pay", "wait")},
        r"observed names 'wait', which is not among the decisions \['refuse', 'pay', 'part'\]",
    ),
    "everything observed": (
        {"observed": tuple(UTILITY)},
        r"observed must name at least one decision and leave out at least one",
    ),
    "nothing observed": ({"observed": ()}, r"observed must name at least one decision"),
    "good is no class": (
        {"good": ("nice",)},
        r"good names 'nice', which is not among the classes",
    ),
    "good of no decision": (
        {"good": GOOD | {"wait": ("honest",)}},
        r"good names 'wait', which is not among the decisions",
    ),
    "good of one only": (
        {"good": {"pay": ("honest",)}},
        r"good must name the good classes of every observed decision, got none for 'part'",
    ),
    "nothing good": ({"good": ()}, r"good must name at least one class for 'pay', got none"),
    "good not given": (
        {"good": None},
        r"good must be given where an observed decision is no class",
    ),
    "a model per group": ({"learner": PerGroup()}, r"learner must not be PerGroup"),
    "no budget": ({"budget": 0.2}, r"budget must be a FdrBudget or None, got 0.2"),
    "no such weights": ({"weights": "some"}, r"weights must be one of"),
    "no weights taken": (
        {"learner": KNeighborsClassifier()},
        r"KNeighborsClassifier does not take sample_weight",
    ),
}


@pytest.mark.parametrize("case", SETTINGS)
def test_settings(case):
    options, message = SETTINGS[case]
    X, outcome, _ = claims(300, np.random.default_rng(0))
    with pytest.raises(InputError, match=message) as error:
        claims_classifier(**options).fit(X, outcome, accepted=X[:, 1] > 0)
    one_sentence(error)


FIT = {
    "NaN": ({"X": np.full((300, 2), np.nan)}, r"X contains NaN or inf in 300 of 300 rows"),
    "one class": ({"y": ["honest"] * 300}, r"show only one class of outcome, 'honest'; at least"),
    "missing": ({"y": [None] * 300}, r"y has no outcome \(NaN or None\) for 300 accepted people"),
    "ids": ({"ids": np.zeros(300, int)}, r"ids must be unique, got 0 more than once"),
    "nobody": ({"accepted": np.zeros(300, bool)}, r"nobody among the 300 people of the history"),
}


@pytest.mark.parametrize("case", FIT)
def test_bad_history(case):
    arguments, message = FIT[case]
    X, outcome, group = claims(300, np.random.default_rng(0))
    with pytest.raises(InputError, match=message) as error:
        claims_classifier().fit(**({"X": X, "y": outcome, "sensitive_features": group} | arguments))
    one_sentence(error)


def test_too_many_classes():
    X, _, _ = claims(300, np.random.default_rng(0))
    with pytest.raises(InputError, match=r"at most 127 classes, got 150; merge some") as error:
        ManyClassClassifier().fit(X, np.arange(300) // 2)
    one_sentence(error)


DECIDE = {
    "NaN": ({"X": np.full((50, 2), np.inf)}, r"X contains NaN or inf in 50 of 50 rows"),
    "empty": (
        {"X": np.empty((0, 2)), "sensitive_features": [], "ids": []},
        r"the batch is empty; pass at least one application",
    ),
    "group": ({"sensitive_features": ["C"] * 50}, r"holds the group 'C', which the history does"),
    "no group": ({"sensitive_features": None}, r"sensitive_features is missing"),
    "known ids": ({"ids": np.arange(50)}, r"50 of 50 ids were decided on before, first 0"),
    "twice": ({"ids": np.full(50, 9000)}, r"ids must be unique, got 9000 more than once"),
}


@pytest.mark.parametrize("case", DECIDE)
def test_a_bad_batch_changes_nothing(case):
    arguments, message = DECIDE[case]
    classifier, rng = started()
    X, _, group = claims(50, rng)
    batch = {"X": X, "sensitive_features": group}
    expected = copy.deepcopy(classifier).decide(**batch)
    with pytest.raises(InputError, match=message) as error:
        classifier.decide(**(batch | arguments))
    one_sentence(error)
    again = classifier.decide(**batch)
    assert again.round == 1
    assert np.array_equal(again.propensity, expected.propensity)


def test_bad_outcomes_change_nothing():
    classifier, rng = started()
    ((decided, _),) = go(classifier, rng, n_rounds=1)
    X, _, group = claims(300, rng)
    decided = classifier.decide(X, sensitive_features=group)
    taken, turned_away = decided.ids[decided.accepted], decided.ids[~decided.accepted]
    classifier.observe(taken[:1], ["sloppy"])
    seen = classifier.rounds_[1].seen
    for ids, outcomes, kind, message in [
        (turned_away[:1], ["honest"], UnknownIdError, r"1 of 1 ids were rejected"),
        ([10**6], ["honest"], UnknownIdError, r"were never decided on"),
        (taken[:1], ["honest"], InputError, r"is recorded already and differs"),
        (taken[1:2], ["nice"], InputError, r"outcomes must be among the classes .*got 'nice'"),
        (taken[1:2], [None], InputError, r"outcomes must be among the classes .*got None"),
        ([*taken[1:3], 10**6], ["honest"] * 3, UnknownIdError, r"nothing was recorded"),
    ]:
        with pytest.raises(kind, match=message) as error:
            classifier.observe(ids, outcomes)
        one_sentence(error)
        assert classifier.rounds_[1].seen == seen
    with pytest.raises(InputError, match=r"so there is nothing to correct"):
        classifier.correct(taken[1:2], ["honest"])


def test_what_decisions_rest_on_cannot_be_changed_between_rounds():
    classifier, rng = started()
    go(classifier, rng, n_rounds=1)
    X, _, group = claims(50, rng)
    for name, value in [("good", ("honest",)), ("observed", ("pay",)), ("coverage", Uniform())]:
        before = getattr(classifier, name)
        classifier.set_params(**{name: value})
        with pytest.raises(InputError, match=r"must stay what|coverage must be a|good must"):
            classifier.decide(X, sensitive_features=group)
        classifier.set_params(**{name: before})
    classifier.set_params(budget=FdrBudget(0.1))  # the budget may change
    classifier.decide(X, sensitive_features=group)
    assert classifier.rounds_[-1].alpha_exploit < 0.1
