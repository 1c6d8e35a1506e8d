"""Reasons for refusals: what lowered the score most, against everything recomputed by hand."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import fairchance as fc
from fairchance.errors import InputError
from fairchance.learners.per_group import PerGroup
from fairchance.ledger.base import to_json
from fairchance.people.likelihoods import ConstantLikelihood, LinearLikelihood
from fairchance.people.reasons import (
    MOST,
    NO_SINGLE_FEATURE,
    ReferenceApplicant,
    Scored,
    contributions,
    decode,
    encode,
    first_misfit,
    in_words,
    reasons_for,
)
from ledger_worlds import algorithm_1, certified
from refused_people import lived, log_odds, mixed_people

NAMES = tuple("abcdefgh")


LINEAR = {
    "one model": algorithm_1,
    "mean of two": lambda: algorithm_1(split="cross"),
    "per group": lambda: algorithm_1(learner=PerGroup()),
    "mean of two per group": lambda: algorithm_1(learner=PerGroup(), split="cross"),
    "group as feature": lambda: algorithm_1(group_as_feature=True),
    "certified": lambda: certified(learner=LogisticRegression()),
    "certified per group": lambda: certified(certify="per_group", learner=LogisticRegression()),
}


@pytest.mark.parametrize("make", LINEAR.values(), ids=LINEAR)
def test_contributions_and_the_reference_sum_to_the_log_odds_of_a_linear_score(make):
    classifier, X, group, decided, reference = lived(make())
    found = contributions(classifier, X, reference, sensitive_features=group)
    assert found.shape == X.shape
    typical = np.tile(np.array(reference.values), (len(X), 1))  # in everybody's own group
    scored = classifier.scored_by(typical, sensitive_features=group)
    base = log_odds(scored.likelihood.score(scored.X, scored.group))
    total = found.sum(axis=1) + base
    assert np.abs(total - log_odds(decided.score)).max() < 1e-9
    assert np.ptp(found.sum(axis=1)) > 1


@pytest.mark.parametrize("make", [*LINEAR.values(), certified], ids=[*LINEAR, "ensemble"])
def test_a_contribution_is_the_change_by_one_column_alone(make):
    classifier, X, group, decided, reference = lived(make())
    found = contributions(classifier, X, reference, sensitive_features=group)
    rows = range(0, len(X), 37)
    for row in rows:
        for column in range(X.shape[1]):
            other = X[[row]].copy()
            other[0, column] = reference.values[column]
            scored = classifier.scored_by(other, sensitive_features=group[[row]])
            there = log_odds(scored.likelihood.score(scored.X, scored.group))[0]
            expected = log_odds(decided.score[row]) - there
            assert abs(found[row, column] - expected) < 1e-9


def test_any_other_model_has_one_column_replaced_at_a_time():
    rng = np.random.default_rng(5)
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["trade"]),
        remainder="passthrough",
    )
    learner = make_pipeline(encoder, HistGradientBoostingClassifier(max_iter=15, random_state=0))
    classifier = algorithm_1(learner=learner, strategy=fc.Uniform(), first_round="learned")
    X, y = mixed_people(rng, 500)
    accepted = rng.random(500) < np.where(X["debt"] < 0, 0.9, 0.4)
    classifier.fit(X, y, accepted=accepted)
    reference = ReferenceApplicant.of(X, accepted)
    taken = X[accepted]
    assert reference.values[0] == taken["trade"].mode()[0] == "baker"
    assert np.allclose(reference.values[1:], taken[["age", "debt"]].mean(), rtol=1e-12)
    X, _ = mixed_people(rng, 120)
    decided = classifier.decide(X)
    found = contributions(classifier, X, reference)
    for row in range(0, 120, 5):
        person = X.iloc[[row]]
        p = classifier.predict_proba(person)[0, 1]
        for column, name in enumerate(X.columns):
            there = classifier.predict_proba(person.assign(**{name: reference.values[column]}))
            assert abs(found[row, column] - (log_odds(p) - log_odds(there[0, 1]))) < 1e-9
    told = reasons_for(classifier, X, decided.accepted, reference)
    assert 0 < decided.accepted.sum() < 120
    for row in range(120):
        expected = sorted((c, at) for at, c in enumerate(found[row]) if c < -0.005)
        if decided.accepted[row]:
            assert told[row] is None
        else:
            gone = X.iloc[row].isna()
            names = [f"missing {name}" if gone[name] else name for name in X.columns]
            names = [names[at] for _, at in expected]
            assert [name for name, _ in decode(told[row], X.columns)] == names


@given(
    arrays(
        np.float64,
        st.tuples(st.integers(0, 6), st.integers(1, 8)),
        elements=st.sampled_from([-3.0, -1.5, -1.0, -0.004, -1e-9, 0.0, 0.25, 2.0]),
    )
)
def test_reasons_are_the_most_negative_contributions_in_order(table):
    encoded = encode(table)
    assert len(encoded) == len(table)
    for row, told in zip(table.tolist(), encoded, strict=True):
        negative = sorted((value, at) for at, value in enumerate(row) if value < -0.005)
        assert len(told) == 6 * min(MOST, len(negative))
        assert decode(told, NAMES) == [(NAMES[at], value) for value, at in negative[:MOST]]


def test_the_bytes_follow_the_documented_layout():
    table = np.array([[0.0] * 300 + [-1.5, -1e300]])
    (told,) = encode(table)
    largest = float(np.finfo(np.float32).max)
    assert told[:2] == (301).to_bytes(2, "little")
    assert told[2:6] == np.float32(-largest).tobytes()
    assert told[6:] == (300).to_bytes(2, "little") + np.array(-1.5, "<f4").tobytes()


KINDS = {"array": None, "pandas": pd.DataFrame, "polars": pl.DataFrame}


@pytest.mark.parametrize("kind", KINDS)
def test_empty_columns_are_called_missing(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = X.sum(axis=1) + rng.normal(size=600) > 0
    X[rng.random(X.shape) < 0.3] = np.nan
    names = ("x0", "x1") if kind == "array" else ("income", "debt")

    def table(Z):
        return Z if kind == "array" else KINDS[kind](dict(zip(names, Z.T, strict=True)))

    learner = make_pipeline(SimpleImputer(add_indicator=True), LogisticRegression())
    classifier = fc.PartialFeedbackClassifier(
        learner=learner, first_round="learned", random_state=0
    )
    classifier.fit(table(X[:400]), y[:400], accepted=rng.random(400) < 0.9)
    new = X[400:]
    accepted = classifier.decide(table(new)).accepted
    reference = ReferenceApplicant.of(table(X[:400]), np.ones(400, np.bool_))
    told = reasons_for(classifier, table(new), accepted, reference)
    named = set()
    for row, one in zip(new, told, strict=True):
        for name, _ in [] if one is None else decode(one, names):
            column = names.index(name.removeprefix("missing "))
            assert name.startswith("missing ") == np.isnan(row[column])
            named.add(name)
    assert named == {*names, *(f"missing {name}" for name in names)}

    def misfit(recorded):
        return first_misfit(classifier, table(new), accepted, reference, recorded)

    assert misfit(list(told)) is None
    marked = [
        at for at, one in enumerate(told) if one and decode(one, names)[0][0].startswith("missing")
    ]
    at = marked[0]
    unmarked = [one and one[:1] + bytes([one[1] & 0x7F]) + one[2:] for one in told]
    assert misfit([*told[:at], unmarked[at], *told[at + 1 :]]) == at
    false = next(at for at, one in enumerate(told) if one and one == unmarked[at])
    one = told[false]
    assert misfit([*told[:false], one[:1] + b"\x80" + one[2:], *told[false + 1 :]]) == false


def test_permuting_columns_permutes_reasons():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(900, 6))
    good = rng.random(900) < 1 / (1 + np.exp(-0.5 - X @ np.array([1.0, -0.8, 0.6, 0.3, 0.0, 2.0])))
    order = rng.permutation(6)
    told = []
    for columns in (np.arange(6), order):
        classifier = algorithm_1(strategy=fc.Uniform(), learner=LogisticRegression(tol=1e-10))
        mine = X[:, columns]
        classifier.fit(mine[:600], good[:600], accepted=X[:600, 0] > -0.5)
        reference = ReferenceApplicant.of(mine[:600], X[:600, 0] > -0.5)
        decided = classifier.decide(mine[600:])
        names = [f"f{column}" for column in columns]
        found = reasons_for(classifier, mine[600:], decided.accepted, reference)
        told.append([None if one is None else decode(one, names) for one in found])
    first, second = ([one for one in each if one is not None] for each in told)
    assert len(first) == len(second) > 50
    for one, two in zip(first, second, strict=True):
        assert [name for name, _ in one] == [name for name, _ in two]
        assert np.allclose([value for _, value in one], [value for _, value in two], atol=1e-5)


@pytest.mark.parametrize("mode", ["blind", "audit"])
def test_where_groups_may_not_decide_they_change_no_reason(mode):
    make = algorithm_1(group_mode=mode, strategy=fc.Uniform())
    classifier, X, group, decided, reference = lived(make)
    told = reasons_for(classifier, X, decided.accepted, reference, sensitive_features=group)
    others = reasons_for(classifier, X, decided.accepted, reference, sensitive_features=group[::-1])
    assert list(told) == list(others)
    classifier, X, group, decided, reference = lived(algorithm_1(learner=PerGroup()))
    told = reasons_for(classifier, X, decided.accepted, reference, sensitive_features=group)
    others = reasons_for(classifier, X, decided.accepted, reference, sensitive_features=group[::-1])
    assert list(told) != list(others)  # a mode in which they may


def test_reasons_are_about_the_person_and_not_about_the_draw():
    classifier, X, group, _, reference = lived(algorithm_1(strategy=fc.Uniform()), n_history=1500)
    twice, groups = np.repeat(X, 2, axis=0), np.repeat(group, 2)
    decided = classifier.decide(twice, sensitive_features=groups)
    told = reasons_for(classifier, twice, decided.accepted, reference, sensitive_features=groups)
    exploit = decided.exploit.reshape(-1, 2)[:, 0]
    first, second = decided.accepted.reshape(-1, 2).T
    assert (first != second).any()  # one twin was drawn
    everybody = reasons_for(
        classifier, X, np.zeros(len(X), bool), reference, sensitive_features=group
    )
    for at, one in enumerate(told):
        assert one == (None if decided.accepted[at] else everybody[at // 2])
    above = ~exploit & ~first & (decided.score[::2] >= decided.threshold[::2])
    assert above.any()
    words = [in_words(decode(everybody[at], reference.names)) for at in range(len(X))]
    assert not any("draw" in one for one in words)


def test_an_applicant_better_in_all_columns_has_no_single_reason():
    class Weighing:
        def scored_by(self, X, *, sensitive_features=None):
            model = LinearLikelihood(np.array([1.0, 2.0]), 0.0)
            return Scored(model, X, np.zeros(len(X), np.intp))

    reference = ReferenceApplicant(("a", "b"), (0.0, 0.0))
    accepted = np.zeros(2, np.bool_)
    told = reasons_for(Weighing(), np.array([[1.0, 1.0], [-1.0, 2.0]]), accepted, reference)
    assert told[0] == b""
    assert in_words(decode(told[0], reference.names)) == NO_SINGLE_FEATURE
    assert in_words(decode(told[1], reference.names)) == "a (-1.00)"


def test_a_score_that_is_the_same_for_all_gives_no_reasons():
    class Constant:
        def scored_by(self, X, *, sensitive_features=None):
            return Scored(ConstantLikelihood(0.4), X, np.zeros(len(X), np.intp))

    reference = ReferenceApplicant(("a",), (0.0,))
    told = reasons_for(Constant(), np.array([[-9.0]]), np.array([False]), reference)
    assert list(told) == [b""]


def test_bytes_that_are_no_reasons_are_refused():
    for wrong in (b"12345", np.array([9, 0, 0], "<u2").tobytes()):
        with pytest.raises(InputError, match=f"{len(wrong)} bytes"):
            decode(wrong, ("a", "b"))


def test_a_classifier_without_scores_gives_no_reasons():
    assert reasons_for(object(), None, np.array([False]), ReferenceApplicant((), ())) is None
    history = np.arange(40.0)[:, None], np.arange(40) % 2
    fresh = certified().fit(*history, accepted=np.arange(40) < 30)
    with pytest.raises(InputError, match="no round has been decided yet"):
        fresh.scored_by(np.zeros((1, 1)))
    assert "policy_" not in dir(fresh)


def test_the_reference_is_the_typical_accepted_person():
    accepted = np.array([True, True, True, False, False] * 5)
    X = pd.DataFrame(
        {
            "n": [1, 2, 6, 100, 100],
            "gaps": [np.nan, 2.0, 4.0, 9.0, 9.0],
            "none": [np.nan] * 3 + [1.0, 1.0],
            "yes": [True, True, False, False, False],
            "text": ["b", "a", "b", "c", "c"],
            "tie": ["y", "x", None, "z", "z"],
            "empty": [None, None, None, "z", "z"],
        }
    )
    X = pd.concat([X] * 5, ignore_index=True)
    X["name"] = [f"person {at}" for at in range(len(X))]  # a text of few applicants is not kept
    found = ReferenceApplicant.of(X, accepted, ["text", "elsewhere", None])
    expected = (3.0, 3.0, float("nan"), 2 / 3, "b", "x", None, None)
    assert [repr(one) for one in found.values] == [repr(one) for one in expected]
    assert found.protected == ("text",)
    assert found.allowed.tolist() == [0, 1, 2, 3, 5, 6, 7]
    again = ReferenceApplicant.read(json.loads(to_json(found.as_dict())))
    assert repr(again) == repr(found)
    assert again.is_like(found)
    assert ReferenceApplicant.read(None) is None
    nobody = ReferenceApplicant.of(X, np.zeros(25, np.bool_))
    assert nobody.values[0] == X["n"].mean()
    assert not nobody.is_like(found)
    for column, value in ((0, 3.001), (4, "a"), (6, "a"), (2, 0.0)):
        values = list(found.values)
        values[column] = value
        assert not ReferenceApplicant(found.names, tuple(values), found.protected).is_like(found)
    single = ReferenceApplicant.of(np.array([[1, 2], [3, 4]], np.float32), np.array([True, True]))
    assert single == ReferenceApplicant(("x0", "x1"), (2.0, 3.0))


def test_the_reference_of_cells_is_the_most_frequent_value():
    X = pd.DataFrame(
        {"n": [1, 1, 5, 9], "gaps": [np.nan, 2.0, 2.0, 0.0], "t": ["a", "b", "b", "c"]}
    )
    accepted = np.array([True, True, True, False])
    found = ReferenceApplicant.of(X, accepted, most_frequent=True)
    assert found.values == (1.0, 2.0, "b")
    again = ReferenceApplicant.read(json.loads(to_json(found.as_dict())))
    assert again.is_like(found)
    assert not again.is_like(ReferenceApplicant.of(X, accepted))
    assert again.of_same_kind(X, accepted) == found


def test_too_many_columns_are_refused():
    with pytest.raises(InputError, match=r"32767.*32768"):
        ReferenceApplicant.of(np.zeros((2, 32768), np.float32), np.array([True, True]))


def test_false_reasons_are_found():
    classifier, X, group, decided, reference = lived(algorithm_1())
    told = reasons_for(classifier, X, decided.accepted, reference, sensitive_features=group)

    def misfit(row=None, reasons=None):
        recorded = list(told)
        if row is not None:
            recorded[row] = reasons
        return first_misfit(
            classifier, X, decided.accepted, reference, recorded, sensitive_features=group
        )

    assert misfit() is None
    row = next(at for at, one in enumerate(told) if one is not None and len(one) == 12)
    items = np.frombuffer(told[row], np.dtype([("c", "<u2"), ("v", "<f4")]))
    assert items["v"][0] < items["v"][1] - 0.01

    def but(**columns):
        other = items.copy()
        for name, values in columns.items():
            other[name] = values
        return other.tobytes()

    unnamed = next(c for c in range(X.shape[1]) if c not in items["c"])
    third = np.append(items, np.array([(unnamed, -0.5)], items.dtype)).tobytes()
    for reasons in (
        None,
        b"",
        told[row][:6],
        told[row][6:],
        told[row][6:] + told[row][:6],
        told[row][:-1],
        told[row] * 2,
        told[row] * 3,
        third,
        but(v=items["v"] * 1.01),
        but(v=-items["v"]),
        but(c=items["c"][::-1]),
        but(c=[items["c"][0], unnamed]),
        but(c=[items["c"][0], 60_000]),
    ):
        assert misfit(row, reasons) == row
    assert misfit(row, but(v=items["v"] * (1 + 1e-6))) is None
    accepted = int(np.flatnonzero(decided.accepted)[0])
    assert misfit(accepted, b"") == accepted


def test_equal_contributions_may_swap_places():
    class Weighing:
        def scored_by(self, X, *, sensitive_features=None):
            slopes = np.array([1.0, 1.0 + 1e-9, 0.5, 2.0, 2.0, 0.5 + 1e-9])
            return Scored(LinearLikelihood(slopes, 0.0), X, np.zeros(len(X), np.intp))

    reference = ReferenceApplicant(tuple("abcdef"), (0.0,) * 6)
    X, nobody = -np.ones((1, 6)), np.array([False])
    dtype = np.dtype([("c", "<u2"), ("v", "<f4")])
    for columns, fits in (
        ([3, 4, 1, 0], True),
        ([4, 3, 0, 1], True),
        ([3, 4, 1, 2], False),
        ([3, 1, 4, 0], False),
        ([3, 4, 1], False),
    ):
        values = [(c, (-1.0, -1.0, -0.5, -2.0, -2.0, -0.5)[c]) for c in columns]
        told = [np.array(values, dtype).tobytes()]
        assert (first_misfit(Weighing(), X, nobody, reference, told) is None) == fits
