"""Several protected attributes at once, crossed or side by side: constraints and rounds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import parities
from attribute_gaps import LEVELS, gaps
from fairchance import (
    CertifiedClassifier,
    ConstrainedLogistic,
    GroupShare,
    PartialFeedbackClassifier,
    Revenue,
    SelectionRateParity,
    TruePositiveRateParity,
    load,
    save,
)
from fairchance.errors import InputError
from fairchance.learners.thresholds import group_thresholds, shared_threshold
from fairchance.learners.wrap import fit_likelihood
from fairchance.methods.algorithm1 import learning

pytestmark = pytest.mark.filterwarnings("ignore::fairchance.errors.LearningWarning")

PARITIES = [SelectionRateParity, TruePositiveRateParity]
labelled = st.lists(
    st.tuples(
        st.sampled_from([0.1, 0.3, 0.5, 0.7, 0.9]),
        st.integers(0, 1),
        st.sampled_from([0.0, 1.0, 2.0]),
        st.integers(0, 4),
    ),
    min_size=1,
    max_size=14,
)


@settings(max_examples=200)
@given(
    rows=labelled,
    parity=st.sampled_from(list(parities.FAMILY)),
    difference=st.sampled_from([0.0, 0.2, 0.5]),
    least=st.sampled_from([0.0, 0.4]),
)
def test_a_shared_threshold_is_the_best_for_all_attributes(rows, parity, difference, least):
    score, outcome, weight, group = (np.array(one) for one in zip(*rows, strict=True))
    fairness = parity(difference).over(LEVELS)
    utility = Revenue(gain=2, loss=3)
    point = shared_threshold(
        score,
        outcome,
        weight,
        group,
        5,
        utility=utility,
        max_fdr=0.5,
        min_selection_rate=least,
        fairness=fairness,
    )
    total = weight.sum() or 1.0

    def judge(threshold):
        accepted = (score >= threshold).astype(float)
        taken = (accepted * weight).sum()
        bad = (accepted * weight * (outcome == 0)).sum()
        worst = max(gaps(parity, accepted, outcome, weight, group))
        violation = max(least - taken / total, worst - difference, 0.0)
        worth = (2 * (taken - bad) - 3 * bad) / total
        return bad <= 0.5 * taken + 1e-12, violation, worth, worst

    used = score[weight > 0]
    cuts = [judge(threshold) for threshold in [np.inf, *np.unique(used)]]
    allowed = [cut for cut in cuts if cut[0]]
    smallest = min(cut[1] for cut in allowed)
    best = max(cut[2] for cut in allowed if cut[1] <= smallest + 1e-9)
    chosen = judge(point.thresholds[0])
    assert np.all(point.thresholds == point.thresholds[0])
    assert chosen[0]
    assert chosen[1] == pytest.approx(smallest, abs=1e-9)
    assert chosen[2] == pytest.approx(best, abs=1e-9)
    assert point.utility == pytest.approx(chosen[2], abs=1e-9)
    assert point.disparity == pytest.approx(chosen[3], abs=1e-9)
    assert point.feasible == (smallest <= 1e-9)
    accepted = (score >= point.thresholds[0]).astype(float)
    found = fairness.disparity(accepted, outcome.astype(np.int8), weight, group, 5)
    assert found == pytest.approx(chosen[3], abs=1e-9)


def attributes_apart(seed=0, n=400):
    """Labelled rows in which both attributes go with the features, in different ways."""
    rng = np.random.default_rng(seed)
    sex, age = rng.integers(2, size=n), rng.integers(3, size=n)
    X = rng.normal(size=(n, 3))
    X[:, 0] += 0.9 * sex
    X[:, 1] -= 0.6 * age
    good = rng.random(n) < expit(0.4 + X[:, 0] + 0.8 * X[:, 1])
    levels = ((0,) * 3 + (1,) * 3, (0, 1, 2) * 2)
    return X, good.astype(np.int8), 3 * sex + age, levels, rng.uniform(0.5, 2, size=n)


def expected_gaps(parity, model, X, good, weight, group, levels):
    score = model.predict_proba(X)[:, 1]
    return gaps(parity, score, good, weight, group, levels)


@pytest.mark.parametrize("parity", PARITIES)
def test_the_fit_keeps_the_bound_for_every_attribute(parity):
    """Against scipy's solver, from several starts."""
    X, good, group, levels, weight = attributes_apart()
    bound, l2 = 0.05, 1.0
    model = ConstrainedLogistic(fairness=parity(bound).over(levels), l2=l2)
    model.fit(X, good, weight, sensitive_features=group)
    assert model.status_.feasible
    found = expected_gaps(parity, model, X, good, weight, group, levels)
    assert max(found) <= bound + 1e-5

    def loss(x):
        margin = X @ x[:3] + x[3]
        return weight @ (np.logaddexp(0, margin) - good * margin) + l2 / 2 * x[:3] @ x[:3]

    def slack(x):
        score = expit(X @ x[:3] + x[3])
        counts = weight * (good == 1 if parity is TruePositiveRateParity else 1)
        out = []
        for level_of in levels:
            level = np.array(level_of)[group]
            rates = [
                (counts * score)[level == z].sum() / counts[level == z].sum() for z in set(level_of)
            ]
            out += [bound - (a - b) for a in rates for b in rates if a is not b]
        return np.array(out)

    starts = [np.zeros(4), *np.random.default_rng(1).normal(size=(4, 4))]
    others = [
        minimize(loss, x, method="SLSQP", constraints={"type": "ineq", "fun": slack}, tol=1e-10)
        for x in starts
    ]
    best = min(one.fun for one in others if slack(one.x).min() >= -1e-6)
    own = loss(np.append(model.coef_[0], model.intercept_))
    assert own <= best * (1 + 1e-4)
    # The controls: without a constraint both attributes are apart, and a bound on one leaves the
    # other apart.
    free = ConstrainedLogistic(l2=l2).fit(X, good, weight)
    assert min(expected_gaps(parity, free, X, good, weight, group, levels)) > 2 * bound
    for one in (0, 1):
        single = ConstrainedLogistic(fairness=parity(bound).over((levels[one],)), l2=l2)
        single.fit(X, good, weight, sensitive_features=group)
        apart = expected_gaps(parity, single, X, good, weight, group, levels)
        assert apart[one] <= bound + 1e-5
        assert apart[1 - one] > 2 * bound


def test_the_same_attribute_twice_is_the_attribute():
    X, good, group, levels, weight = attributes_apart()
    fits = []
    for some in ((levels[0],), (levels[0], levels[0])):
        model = ConstrainedLogistic(fairness=SelectionRateParity(0.05).over(some))
        model.fit(X, good, weight, sensitive_features=group)
        assert model.status_.feasible
        fits.append(np.append(model.coef_, model.intercept_))
    assert fits[0] == pytest.approx(fits[1], abs=1e-4)


def test_codes_keep_their_meaning_where_a_group_has_no_rows():
    """A pipeline's last step is handed codes; those of absent groups must not close ranks."""
    X, good, group, levels, weight = attributes_apart()
    weight = weight * (group != 0)
    fair = ConstrainedLogistic(fairness=SelectionRateParity(0.03).over(levels), l2=1.0)
    alone, _ = fit_likelihood(fair, X, good, weight, group, 6)
    piped, _ = fit_likelihood(
        make_pipeline(StandardScaler(with_mean=False, with_std=False), fair),
        X,
        good,
        weight,
        group,
        6,
    )
    assert piped.score(X, group) == pytest.approx(alone.score(X, group), abs=1e-4)
    found = gaps(SelectionRateParity, piped.score(X, group), good, weight, group, levels)
    assert max(found) <= 0.03 + 1e-4
    with pytest.raises(InputError, match="6"):
        fair.fit(X, good, sensitive_features=np.full(len(X), "a"))
    with pytest.raises(InputError, match=r"0.*5"):
        fair.fit(X, good, sensitive_features=np.full(len(X), 6))


def test_thresholds_per_group_compare_groups_only():
    with pytest.raises(InputError):
        group_thresholds(
            [0.5],
            [1],
            [1.0],
            [0],
            5,
            utility=Revenue(1, 1),
            max_fdr=0.5,
            fairness=SelectionRateParity().over(LEVELS),
        )


def applicants(rng, n):
    """Return features, a frame of two attributes, and outcomes."""
    sex, age = rng.random(n) < 0.5, rng.integers(3, size=n)
    X = rng.normal(size=(n, 3))
    X[:, 0] += 0.8 * sex
    X[:, 1] -= 0.5 * age
    good = (rng.random(n) < expit(1 + X[:, 0] + 0.7 * X[:, 1])).astype(int)
    frame = pd.DataFrame(
        {"sex": np.where(sex, "m", "f"), "age": np.array(["20", "40", "60+"])[age]}
    )
    return X, frame, good


def rounds(classifier, *, convert=lambda frame: frame, n_rounds=4, seed=0):
    rng = np.random.default_rng(seed)
    X, frame, good = applicants(rng, 500)
    accepted = rng.random(500) < expit(1 + X[:, 0])
    classifier.fit(X, good, accepted=accepted, sensitive_features=convert(frame))
    for _ in range(n_rounds):
        X, frame, good = applicants(rng, 300)
        decided = classifier.decide(X, sensitive_features=convert(frame))
        classifier.observe(decided.ids[decided.accepted], good[decided.accepted])
        yield decided, frame


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (PartialFeedbackClassifier, {"strategy": GroupShare()}),
        (PartialFeedbackClassifier, {"fairness": SelectionRateParity(0.1)}),
        (CertifiedClassifier, {"ranks": "within_group", "alpha": 0.3}),
    ],
)
def test_crossing_equals_combinations_made_by_hand(kind, options):
    def by_hand(frame):
        return (frame["sex"] + ", " + frame["age"]).to_numpy()

    runs = [
        [decided for decided, _ in rounds(kind(random_state=0, **options), convert=convert)]
        for convert in (lambda frame: frame, by_hand, pl.from_pandas)
    ]
    for one, *others in zip(*runs, strict=True):
        for other in others:
            assert np.array_equal(one.accepted, other.accepted)
            assert np.array_equal(one.propensity, other.propensity)


def test_crossed_groups_have_readable_names_and_the_usual_sentences():
    classifier = PartialFeedbackClassifier(random_state=0)
    next(rounds(classifier))
    labels = ["f, 20", "f, 40", "f, 60+", "m, 20", "m, 40", "m, 60+"]
    assert classifier.groups_.tolist() == labels
    X = np.zeros((1, 3))
    with pytest.raises(InputError) as strange:
        classifier.decide(X, sensitive_features=pd.DataFrame({"sex": ["f"], "age": ["80"]}))
    for words in ("'f, 80'", ", ".join(map(repr, labels))):
        assert words in str(strange.value)
    with pytest.raises(InputError, match=r"'f, 20', 'f, 40', 'f, 60\+'"):
        classifier.decide(X)
    rng = np.random.default_rng(0)
    X, frame, good = applicants(rng, 100)
    frame.loc[0] = ["m", "100"]
    with pytest.raises(InputError, match="'m, 100'"):
        classifier.fit(X, good, sensitive_features=frame)
    assert classifier.groups_.tolist() == labels  # what was known is not lost


def test_side_by_side_the_threshold_keeps_the_bound_for_every_attribute(monkeypatch):
    """What the classifier asks for and gets, judged person by person."""
    asked = []

    def watched(score, outcome, weight, group, n_groups, **options):
        point = shared_threshold(score, outcome, weight, group, n_groups, **options)
        asked.append((point, score, outcome, weight, group))
        return point

    monkeypatch.setattr(learning, "shared_threshold", watched)
    levels = ((0,) * 3 + (1,) * 3, (0, 1, 2) * 2)
    worst = {}
    for attributes in ("side_by_side", "crossed"):
        asked.clear()
        classifier = PartialFeedbackClassifier(
            fairness=SelectionRateParity(0.12),
            attributes=attributes,
            utility=Revenue(200, 300),
            split="cross",
            random_state=0,
        )
        for _ in rounds(classifier):
            pass
        assert classifier.rounds_[-1].disparity == asked[-1][0].disparity
        used = {"side_by_side": levels, "crossed": (tuple(range(6)),)}[attributes]
        for point, score, outcome, weight, group in asked:
            accepted = (score >= point.thresholds[group]).astype(float)
            found = max(gaps(SelectionRateParity, accepted, outcome, weight, group, used))
            assert point.disparity == pytest.approx(found)
            assert not point.feasible or found <= 0.12 + 1e-9
            worst.setdefault(attributes, []).append(found)
    assert worst["side_by_side"] != worst["crossed"]


def test_side_by_side_the_fit_keeps_the_bound_for_every_attribute():
    learner = ConstrainedLogistic(fairness=SelectionRateParity(0.03))
    for kind in (PartialFeedbackClassifier, CertifiedClassifier):
        classifier = kind(
            learner=learner, attributes="side_by_side", group_mode="blind", random_state=0
        )
        for _ in rounds(classifier):
            pass
        assert classifier.learner.fairness.attributes == ()  # the caller's own stays as it was
        fitted = classifier._learner if kind is CertifiedClassifier else classifier._learners[0]
        assert fitted.fairness.attributes == ((0, 0, 0, 1, 1, 1), (0, 1, 2, 0, 1, 2))
    # In the certified one everybody counts alike, so that its fit can be judged on its rows.
    past, own = classifier._history, classifier._engines[0].rows
    X, group = np.vstack([past.X, own.X]), np.concatenate([past.group, own["group"]])
    good, alike = np.concatenate([past.outcome, own["outcome"]]), np.ones(len(X))
    likelihood, _ = fit_likelihood(fitted, X, good, alike, group, 6)
    levels = fitted.fairness.attributes
    found = gaps(SelectionRateParity, likelihood.score(X, group), good, alike, group, levels)
    assert max(found) <= 0.03 + 1e-5
    free = ConstrainedLogistic().fit(X, good).predict_proba(X)[:, 1]
    assert min(gaps(SelectionRateParity, free, good, alike, group, levels)) > 0.06


def test_side_by_side_with_thresholds_per_group_is_refused():
    options = {"attributes": "side_by_side", "thresholds": "per_group"}
    with pytest.raises(InputError, match=r"thresholds='shared'.*'per_group'"):
        next(rounds(PartialFeedbackClassifier(fairness=SelectionRateParity(), **options)))
    next(rounds(PartialFeedbackClassifier(**options)))  # without a constraint, by combination
    allowed = r"attributes.*\('crossed', 'side_by_side'\).*'each'"
    with pytest.raises(InputError, match=allowed):
        next(rounds(CertifiedClassifier(attributes="each")))


def heads(accepted, frame, attributes):
    """Attribute, group, people and accepted, by pandas."""
    titles = [["sex", "age"]] if attributes == "crossed" else [["sex"], ["age"]]
    for names in titles:
        for key, rows in frame.assign(accepted=accepted).groupby(names):
            yield ", ".join(names), ", ".join(key), len(rows), int(rows["accepted"].sum())


@pytest.mark.parametrize("attributes", ["crossed", "side_by_side"])
@pytest.mark.parametrize("kind", [PartialFeedbackClassifier, CertifiedClassifier])
def test_counts_go_by_attribute_or_by_combination(kind, attributes):
    classifier = kind(attributes=attributes, group_mode="audit", random_state=0)
    expected = [
        (decided.round, *counts)
        for decided, frame in rounds(classifier)
        for counts in heads(decided.accepted, frame, attributes)
    ]
    counted = [tuple(vars(one).values())[:5] for one in classifier.group_counts_]
    assert counted == expected
    assert len(counted) == 4 * (6 if attributes == "crossed" else 5)


@pytest.mark.parametrize("attributes", ["crossed", "side_by_side"])
def test_attributes_are_kept_in_files(attributes, tmp_path):
    classifier = PartialFeedbackClassifier(
        attributes=attributes,
        fairness=SelectionRateParity(0.1),
        learner=ConstrainedLogistic(fairness=SelectionRateParity(0.1)),
        random_state=0,
    )
    for _ in rounds(classifier, n_rounds=2):
        pass
    save(classifier, tmp_path / "file")
    loaded = load(tmp_path / "file")
    assert loaded.groups_.tolist() == classifier.groups_.tolist()
    assert loaded.group_counts_ == classifier.group_counts_
    rng = np.random.default_rng(5)
    for _ in range(3):
        X, frame, good = applicants(rng, 200)
        one, other = (c.decide(X, sensitive_features=frame) for c in (classifier, loaded))
        assert np.array_equal(one.accepted, other.accepted)
        for c in (classifier, loaded):
            c.observe(one.ids[one.accepted], good[one.accepted])
    assert repr(loaded.rounds_) == repr(classifier.rounds_)
