"""Rounds of Algorithm 1 within limits: what is logged, said, learned and saved of the barred."""

from __future__ import annotations

import copy
import runpy
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from fairchance import (
    CertifiedClassifier,
    FdrBudget,
    GroupShare,
    PartialFeedbackClassifier,
    ScoreWeighted,
    Uniform,
    load,
    save,
)
from fairchance.core.coverage import SummedAcceptance, SumOfG
from fairchance.core.decisions import Note
from fairchance.core.limits import Above, Below, ExclusionRule, Limited, OneOf
from fairchance.errors import InputError
from fairchance.simulate.populations import Lender
from fairchance.simulate.run import run
from small_worlds import lender_world


def spent(classifier, world, amount):
    """Run a classifier and return rounds, with what their explored sum to."""
    for result in run(classifier, world):
        X, decided = result.applicants.people.X, result.decided
        yield result, classifier.rounds_[-1], float(amount(X)[decided.explored].sum())


def income(X):
    return 50 + 20 * np.abs(X[:, 0])


@pytest.mark.parametrize("inside", [ScoreWeighted(), GroupShare()], ids=repr)
def test_every_round_of_a_run_keeps_the_limits(make_classifier, inside):
    limited = Limited(inside, max_risk=0.6, exclude=Below(1, -1), exposure=400, amount=income)
    classifier, world = make_classifier(strategy=limited, first_round="learned")
    explored = 0
    for result, record, money in spent(classifier, world, income):
        people, decided = result.applicants.people, result.decided
        barred = (decided.score < 0.4) | (people.X[:, 1] < -1) | (income(people.X) > 400)
        candidates = ~decided.exploit
        assert np.array_equal(decided.propensity[candidates] == 0, barred[candidates])
        assert not decided.explored[barred].any()
        assert money <= 400
        here = candidates & barred
        assert record.n_unreachable == here.sum() > 0
        assert record.unreachable == tuple(int((people.group[here] == z).sum()) for z in "AB")
        never = classifier.never_explored(people.X, sensitive_features=people.group)
        assert np.array_equal(never, barred)
        excluded = int((candidates & (people.X[:, 1] < -1)).sum())
        barred_note, exposure = record.notes
        assert barred_note == Note(
            "barred",
            {
                "n_barred": here.sum(),
                "n_candidates": candidates.sum(),
                "excluded": excluded,
                "risk": here.sum() - excluded,
                "max_risk": 0.6,
            },
        )
        assert exposure.code == "exposure"
        assert exposure.facts["n_explored"] == record.n_explored < exposure.facts["n_wanted"]
        p = classifier.acceptance_probability(people.X, sensitive_features=people.group)
        assert p[here].max() < 1e-20
        assert p[candidates & ~barred].min() > 0
        explored += record.n_explored
    assert explored > 10


def test_without_the_limit_the_same_run_spends_more(make_classifier):
    classifier, world = make_classifier(strategy=ScoreWeighted(), first_round="learned")
    assert max(money for *_, money in spent(classifier, world, income)) > 1.5 * 400


@pytest.mark.parametrize("n_batch", [10, 300])
@pytest.mark.parametrize("limits", [{"max_risk": 0.3}, {"exclude": Below(1, 0)}], ids=str)
def test_the_log_knows_how_often_those_left_are_explored(n_batch, limits):
    """Σ n_i·π_i of strangers, over the rounds, against how often such candidates were explored."""
    world = lender_world(4, n_history=400, n_batch=n_batch, n_rounds=1500 // n_batch)
    past = world.history()
    classifier = PartialFeedbackClassifier(
        budget=FdrBudget(alpha=0.3, exploit=0.1),
        # Nobody becomes known on the way, so that all rounds see the same candidates.
        coverage=SummedAcceptance(reference_size=10**9),
        strategy=Limited(Uniform(), **limits),
        first_round="learned",
        random_state=0,
    ).fit(
        past.people.X,
        past.outcomes,
        accepted=past.accepted,
        sensitive_features=past.people.group,
    )
    candidates = explored = 0
    for batch in world.batches():
        people = batch.applicants.people
        decided = classifier.decide(people.X, sensitive_features=people.group)
        barred = classifier.never_explored(people.X, sensitive_features=people.group)
        candidates += (~decided.exploit & ~barred).sum()
        explored += decided.explored.sum()
    log, probe = classifier._log, Lender().draw(2000, np.random.default_rng(1))
    group = (probe.group == "B").astype(np.intp)
    unknown = ~log.look(probe.X, group, classifier._rule, score_of=0).known
    barred = classifier.never_explored(probe.X, sensitive_features=probe.group)
    own, _ = log.walk(probe.X, group, classifier._rule, log.past_acceptance(probe.X, group))
    assert 50 < (unknown & barred).sum() < unknown.sum() - 50
    assert own[unknown & barred].max() < 1e-8 * log.n_people
    assert explored > 40
    logged = own[unknown & ~barred].mean() / log.n_people
    assert logged == pytest.approx(explored / candidates, rel=0.25)


@pytest.mark.parametrize("rule", [SummedAcceptance(), SumOfG()], ids=repr)
def test_coverage_of_the_excluded_never_grows_by_exploration(make_classifier, rule):
    limited = Limited(Uniform(), exclude=Below(1, 0))
    classifier, world = make_classifier(strategy=limited, coverage=rule, first_round="cut")
    strangers = Lender().draw(300, np.random.default_rng(5))
    group = strangers.group
    before = classifier.coverage_of(strangers.X, sensitive_features=group)
    unknown = before <= classifier.coverage.threshold
    excluded = strangers.X[:, 1] < 0
    for _ in run(classifier, world):
        pass
    grown = classifier.coverage_of(strangers.X, sensitive_features=group) - before
    assert (unknown & excluded).sum() > 50
    assert np.abs(grown[unknown & excluded]).max() < 1e-9
    assert grown[unknown & ~excluded].min() > 0.01  # the control


def test_weights_of_labelled_rows_are_those_of_the_policies(make_classifier):
    """Σ n_i·π_i of our own accepted rows, against a sum over rounds person by person."""
    limited = Limited(ScoreWeighted(), max_risk=0.6, exclude=Below(1, -0.5))
    classifier, world = make_classifier(strategy=limited, n_rounds=4)
    for _ in run(classifier, world):
        pass
    log = classifier._log
    probe = Lender().draw(150, np.random.default_rng(3))
    code = (probe.group == "B").astype(np.intp)
    own, _ = log.walk(probe.X, code, classifier._rule, log.past_acceptance(probe.X, code))
    slow = []
    for x, z in zip(probe.X, code, strict=True):
        who = x[None], np.array([z])
        w, total, seen = float(log.likelihoods[0].score(*who)[0]), 0.0, 0
        for policy in log.policies:
            score = float(log.likelihoods[policy.likelihood].score(*who)[0])
            if w > classifier._rule.level(seen):
                pi = float(score >= policy.thresholds[z])
            elif score < 0.4 or x[1] < -0.5:
                pi = 0.0
            else:
                g = max(score, 1e-6)
                pi = min(1.0, policy.left[z] * g / (policy.others[z] + g))
            total += policy.n_people * pi
            w += pi * classifier._rule.round_weight(
                policy.n_people, policy.n_rounds, log.first_batch
            )
            seen += policy.n_rounds
        slow.append(total)
    assert own == pytest.approx(slow, abs=1e-9)


EXAMPLE = Path(__file__).parents[5] / "examples" / "risk_limits.py"
KEYS = ("accepted", "exploit", "score", "propensity")


def alike(one, other):
    return all(np.array_equal(getattr(one, key), getattr(other, key)) for key in KEYS)


def test_limits_that_bar_none_change_nothing(make_classifier):
    loose = Limited(GroupShare(), max_risk=0.9999, exclude=Below(0, -99), exposure=1e9, amount=1)
    classifier, world = make_classifier(strategy=loose)
    plain, _ = make_classifier(strategy=GroupShare())
    for batch in world.batches():
        X, group = batch.applicants.people.X, batch.applicants.people.group
        one, other = (c.decide(X, sensitive_features=group) for c in (classifier, plain))
        assert alike(one, other)
        for c in (classifier, plain):
            c.observe(one.ids[one.accepted], batch.applicants.outcome[one.accepted])
    assert classifier.rounds_[-1].n_unreachable == 0
    assert [one.notes for one in classifier.rounds_] == [one.notes for one in plain.rounds_]
    assert not plain.never_explored(X, sensitive_features=group).any()
    assert not classifier.never_explored(X, sensitive_features=group).any()


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ({"exclude": lambda X: np.ones(len(X), bool)}, "excluded"),
        ({"exposure": 10, "amount": 11}, "amount"),
        ({"max_risk": 0.0}, "risk"),
    ],
    ids=["excluded", "amount", "risk"],
)
def test_if_all_are_barred_none_is_explored_and_the_budget_is_carried(make_classifier, limits, why):
    classifier, world = make_classifier(strategy=Limited(**limits))
    for result in run(classifier, world):
        record, n = classifier.rounds_[-1], int((~result.decided.exploit).sum())
        assert record.n_explored == 0
        assert record.carried == 1.0  # at most one person is carried over, as ever
        assert record.n_unreachable == n == sum(record.unreachable)
        facts = record.notes[-1].facts
        assert facts["n_barred"] == facts["n_candidates"] == facts[why] == n
        assert np.isin(result.decided.propensity, [0, 1]).all()
    assert record.n_exploited > 0


def test_a_rule_that_answers_nan_is_refused_and_nothing_is_lost(make_classifier):
    broken = Limited(exclude=lambda X: np.where(X[:, 0] > 9, np.nan, 0.0))
    classifier, world = make_classifier(strategy=broken, n_rounds=2)
    (first, second) = (one.applicants.people for one in world.batches())
    classifier.decide(first.X, sensitive_features=first.group)
    untouched = copy.deepcopy(classifier)
    wrong = np.vstack([second.X, [[-9.0, 9.0, 0.0]]])
    classifier.strategy = Limited(exclude=lambda X: np.where(X[:, 1] > 8, np.nan, 0.0))
    group = np.append(second.group, "A")
    with pytest.raises(InputError, match=r"NaN.*1.*\d+"):
        classifier.decide(wrong, sensitive_features=group)
    with pytest.raises(InputError, match=r"NaN.*1.*301"):
        classifier.never_explored(wrong, sensitive_features=group)
    classifier.strategy = broken
    one, other = (
        c.decide(second.X, sensitive_features=second.group) for c in (classifier, untouched)
    )
    assert alike(one, other)


def test_amounts_that_are_none_are_refused(make_classifier):
    limited = Limited(exposure=100, amount=lambda X: np.where(X[:, 0] < 0, np.nan, 3))
    classifier, world = make_classifier(strategy=limited, n_rounds=1)
    (batch,) = world.batches()
    people = batch.applicants.people
    with pytest.raises(InputError, match="nan"):
        classifier.decide(people.X, sensitive_features=people.group)


def test_a_stream_of_single_applications(make_classifier):
    limited = Limited(Uniform(), exclude=Below(1, 0))
    budget = FdrBudget(alpha=0.3, exploit=0.1)
    classifier, world = make_classifier(
        strategy=limited, budget=budget, first_round="cut", n_batch=120, n_rounds=1
    )
    (batch,) = world.batches()
    people = batch.applicants.people
    explored = 0
    for i in range(120):
        one = classifier.decide(people.X[i : i + 1], sensitive_features=people.group[i : i + 1])
        explored += int(one.explored[0])
        assert not (one.explored[0] and people.X[i, 1] < 0)
        assert one.exploit[0] or people.X[i, 1] >= 0 or one.propensity[0] == 0
        p = classifier.acceptance_probability(people.X, sensitive_features=people.group)
        unknown = classifier.coverage_of(people.X, sensitive_features=people.group) <= 0.5
        assert p[unknown & (people.X[:, 1] < 0)].max() == 0
    assert explored > 3


# Frames and files.

NAMES = ["income", "debt", "years"]


def framed(kind, people):
    return kind(people.X, columns=NAMES) if kind is pd.DataFrame else kind(people.X, schema=NAMES)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("raw", [True, False])
def test_columns_are_found_by_their_names(kind, raw, tmp_path):
    world = lender_world(1, n_rounds=2)
    past = world.history()
    learner = make_pipeline(FunctionTransformer(), LogisticRegression()) if raw else None

    def classifier(column, table):
        limited = Limited(
            exclude=Below(column("debt"), -0.5) | Above(column("years"), 1.5),
            exposure=40,
            amount=FIVE,
        )
        return PartialFeedbackClassifier(
            strategy=limited, learner=learner, first_round="learned", random_state=0
        ).fit(
            table(past.people),
            past.outcomes,
            accepted=past.accepted,
            sensitive_features=past.people.group,
        )

    def framed_here(people):
        return framed(kind, people)

    def array(people):
        return people.X

    named, numbered = classifier(str, framed_here), classifier(NAMES.index, array)
    for batch in world.batches():
        people = batch.applicants.people
        one = named.decide(framed_here(people), sensitive_features=people.group)
        other = numbered.decide(people.X, sensitive_features=people.group)
        assert np.array_equal(one.accepted, other.accepted)
        assert one.propensity == pytest.approx(other.propensity, abs=1e-9)
        barred = (people.X[:, 1] < -0.5) | (people.X[:, 2] > 1.5)
        assert np.array_equal(
            named.never_explored(framed_here(people), sensitive_features=people.group), barred
        )
        assert not one.explored[barred].any()
    assert named.rounds_[-1].n_explored > 0


FIVE = 5.0


def test_a_column_that_is_not_there_is_refused_by_fit(tmp_path):
    world = lender_world(1)
    past = world.history()
    for kind in (PartialFeedbackClassifier, CertifiedClassifier):
        classifier = kind(strategy=Limited(exclude=Below("age", 18)))
        with pytest.raises(InputError, match=r"'age'.*'income'.*'debt'"):
            classifier.fit(framed(pd.DataFrame, past.people), past.outcomes, accepted=past.accepted)


def test_rules_are_saved_and_go_on_as_they_would_have(tmp_path):
    world = lender_world(2, n_rounds=3)
    past = world.history()

    def table(people):
        return framed(pd.DataFrame, people).assign(years=np.abs(people.X[:, 2]))

    limited = Limited(
        GroupShare(),
        max_risk=0.7,
        exclude=Below("debt", -1) | OneOf("years", (0.0,)) | Above("income", 3),
        exposure=30,
        amount="years",
    )
    classifier = PartialFeedbackClassifier(
        strategy=limited, first_round="learned", random_state=0
    ).fit(
        table(past.people),
        past.outcomes,
        accepted=past.accepted,
        sensitive_features=past.people.group,
    )
    *before, last = (one.applicants for one in world.batches())
    for one in before:
        decided = classifier.decide(table(one.people), sensitive_features=one.people.group)
        classifier.observe(decided.ids[decided.accepted], one.outcome[decided.accepted])
    save(classifier, tmp_path / "x")
    again = load(tmp_path / "x")
    assert again.strategy == limited
    assert repr(again.rounds_) == repr(classifier.rounds_)
    one, other = (
        c.decide(table(last.people), sensitive_features=last.people.group)
        for c in (classifier, again)
    )
    assert alike(one, other)
    assert one.explored.any()
    assert again.rounds_[-1].n_unreachable > 0


@pytest.mark.parametrize(
    "limits", [{"exclude": lambda X: X[:, 0] < 0}, {"exposure": 9, "amount": lambda X: X[:, 0]}]
)
def test_functions_live_in_memory_only(make_classifier, tmp_path, limits):
    classifier, _ = make_classifier(strategy=Limited(**limits))
    with pytest.raises(InputError):
        save(classifier, tmp_path / "x")


@dataclass(frozen=True)
class OddDebt(ExclusionRule):
    """A rule of the user's own."""

    answer: float = 1.0

    def excludes(self, X):
        return np.where(np.floor(X[:, 1]) % 2 == 1, self.answer, 0.0)


def test_a_rule_of_ones_own_is_saved_by_name_and_checked(make_classifier, tmp_path):
    classifier, _ = make_classifier(strategy=Limited(exclude=OddDebt()))
    save(classifier, tmp_path / "x")
    with pytest.raises(InputError, match="'OddDebt'"):
        load(tmp_path / "x")
    again = load(tmp_path / "x", types=[OddDebt])
    X = np.array([[0.0, 1.5, 0], [0, 2.5, 0]])
    assert again.never_explored(X, sensitive_features=["A", "B"]).tolist() == [True, False]
    with pytest.raises(InputError, match=r"NaN.*1.*2"):
        Limited(exclude=OddDebt(np.nan)).barred(X, np.ones(2))


@pytest.mark.skipif(not EXAMPLE.is_file(), reason="a source distribution has no examples")
def test_the_example_runs(capsys):
    example = runpy.run_path(str(EXAMPLE))
    table = example["main"]()
    assert (table["lent_to_explored"] <= example["EXPOSURE"]).all()
    assert (table["n_unreachable"] > 0).all()
    said = capsys.readouterr().out
    assert "barred" in said
