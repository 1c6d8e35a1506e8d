"""FiniteClassifier: what groups may change, and counts by group."""

from __future__ import annotations

import copy
from itertools import product

import numpy as np
import pandas as pd
import pytest

import parities
from fairchance import (
    FdrBudget,
    GroupShare,
    Limited,
    Revenue,
    SelectionRateParity,
    TruePositiveRateParity,
    Uniform,
)
from fairchance.errors import InputError
from fairchance.methods.storage import dumps, loads
from fairchance_lab.finite import CountedOutcomes, FiniteClassifier

GOOD = np.array([0.96, 0.9, 0.93, 0.7, 0.85])  # P(good) by the first feature
IN_B = np.array([0.1, 0.8, 0.3, 0.5, 0.9])  # share of group B


def applicants(rng, n):
    x = rng.integers(5, size=n)
    group = np.where(rng.random(n) < IN_B[x], "B", "A")
    good = (rng.random(n) < GOOD[x]).astype(int)
    return np.column_stack([x, rng.integers(2, size=n)]), group, good


def by_group(X, score, group):
    return 1.0 + X[:, 0] + 5.0 * group


def same_groups(group, rng):
    return group


def shuffled(group, rng):
    return rng.permutation(group)


def any_groups(group, rng):
    codes = np.append([0, 0, 1, 1, 2, 2], rng.integers(3, size=len(group) - 6))
    return np.array(["x", "y", "z"])[codes]


def start(seed, regroup=same_groups, n=400, **options):
    rng, other = np.random.default_rng(seed), np.random.default_rng(seed + 1)
    usual = {"utility": Revenue(1, 3), "budget": FdrBudget(alpha=0.2), "random_state": 0}
    options = usual | options
    X, group, good = applicants(rng, n)
    classifier = FiniteClassifier(**options)
    classifier.fit(X, good, accepted=X[:, 0] < 4, sensitive_features=regroup(group, other))
    return classifier, rng, other


def run(seed=0, of_history=same_groups, of_batches=same_groups, n_rounds=4, **options):
    """Return the classifier and its decisions, with groups replaced in the input."""
    classifier, rng, other = start(seed, of_history, **options)
    batches = []
    for _ in range(n_rounds):
        X, group, good = applicants(rng, 300)
        batch = classifier.decide(X, sensitive_features=of_batches(group, other))
        classifier.observe(batch.ids[batch.accepted], good[batch.accepted])
        batches.append(batch)
    return classifier, batches


def equal(batch, other):
    keys = ("accepted", "exploit", "score", "propensity")
    return all(np.array_equal(getattr(batch, key), getattr(other, key)) for key in keys)


OPTIONS = {
    "defaults": {},
    "function": {"strategy": by_group},
    "cuts": {"hypothesis": "threshold", "weights": "none"},
    "counted": {"coverage": CountedOutcomes(10), "strategy": Uniform()},
}
CONSTRAINED = {
    "selection rates": {"fairness": SelectionRateParity(0.02)},
    "true positive rates": {
        "fairness": TruePositiveRateParity(0.02),
        "hypothesis": "threshold",
    },
    "bounds per group": {
        "constraints": "per_group",
        "budget": FdrBudget(alpha=0.13, exploit=0.075, slack=0.0),
        "n": 2000,
    },
}


@pytest.mark.parametrize(("seed", "name"), list(enumerate(OPTIONS)))
def test_audit_groups_change_nothing(name, seed):
    options = OPTIONS[name] | {"group_mode": "audit"}
    first, batches = run(seed, **options)
    second, again = run(seed, any_groups, any_groups, **options)
    assert all(map(equal, batches, again))
    assert repr(first.rounds_) == repr(second.rounds_)
    assert first.group_counts_ != second.group_counts_
    X = np.array(list(product(range(5), range(2))))
    for answer in ("accepts", "predict_proba", "coverage_of"):
        assert np.array_equal(getattr(first, answer)(X), getattr(second, answer)(X)), answer


@pytest.mark.parametrize("name", OPTIONS | CONSTRAINED)
def test_aware_groups_change_decisions(name):
    """The control of the other tests."""
    options = (OPTIONS | CONSTRAINED)[name]
    _, batches = run(**options)
    _, again = run(of_history=shuffled, of_batches=shuffled, **options)
    assert not all(map(equal, batches, again))


@pytest.mark.filterwarnings("ignore::fairchance.errors.LearningWarning")
@pytest.mark.parametrize("name", OPTIONS | CONSTRAINED)
def test_blind_permuted_groups_do_not_change_their_round(name):
    classifier, rng, other = start(0, group_mode="blind", **(OPTIONS | CONSTRAINED)[name])
    for _ in range(3):
        X, group, good = applicants(rng, 300)
        twins = [copy.deepcopy(classifier) for _ in range(2)]
        batch = classifier.decide(X, sensitive_features=group)
        for twin in twins:
            assert equal(batch, twin.decide(X, sensitive_features=other.permutation(group)))
        classifier.observe(batch.ids[batch.accepted], good[batch.accepted])


@pytest.mark.parametrize("name", OPTIONS)
def test_blind_without_a_constraint_decides_as_audit(name):
    _, blind = run(group_mode="blind", **OPTIONS[name])
    _, audit = run(group_mode="audit", of_batches=shuffled, **OPTIONS[name])
    assert all(map(equal, blind, audit))


@pytest.mark.filterwarnings("ignore::fairchance.errors.LearningWarning")
@pytest.mark.parametrize("name", CONSTRAINED)
def test_blind_groups_of_applicants_with_outcomes_change_f(name):
    options = CONSTRAINED[name] | {"group_mode": "blind"}
    _, batches = run(**options)
    _, again = run(of_history=shuffled, of_batches=shuffled, **options)
    assert equal(batches[0], again[0])  # round 1 follows the past
    assert not all(map(equal, batches, again))


@pytest.mark.filterwarnings("ignore::fairchance.errors.LearningWarning")
@pytest.mark.parametrize("parity", list(parities.FAMILY)[:4])
@pytest.mark.parametrize("seed", range(2))
def test_blind_f_is_the_best_function_of_features(parity, seed):
    """Weights, rates of groups and utility from lists of applicants, by their definitions."""
    rng = np.random.default_rng(seed)
    classifier = FiniteClassifier(
        Revenue(1, 8),
        FdrBudget(alpha=0.2),
        CountedOutcomes(5),
        fairness=parity(0.1),
        gap=0,
        group_mode="blind",
        random_state=seed,
    )
    X, group, good = applicants(rng, 150)
    cell = X[:, 0]
    classifier.fit(cell, good, accepted=cell < 4, sensitive_features=group)
    applied = cell.tolist()
    rows = zip(applied, group.tolist(), good.tolist(), strict=True)
    observed = [row for row in rows if row[0] < 4]
    costs = 0
    for t in range(1, 6):
        X, group, good = applicants(rng, 150)
        cell = X[:, 0]
        applied += cell.tolist()
        batch = classifier.decide(cell, sensitive_features=group)
        policy, record = classifier.policies_[-1], classifier.rounds_[-1]
        known = np.flatnonzero(policy.exploit).tolist()
        weight = {c: applied.count(c) / sum(x == c for x, *_ in observed) for c in known}
        rows = [(x, z, y, weight[x]) for x, z, y in observed if x in weight]
        tried = []
        for bits in product((0, 1), repeat=len(known)):
            f = {c for c, bit in zip(known, bits, strict=True) if bit}
            mass = sum(w for x, _, _, w in rows if x in f)
            bad = sum(w for x, _, y, w in rows if x in f and y == 0)
            columns = [[(x in f, y, w) for x, z, y, w in rows if z == name] for name in ("A", "B")]
            rates = [
                parities.rates(parity, *map(np.array, zip(*one, strict=True))) for one in columns
            ]
            if bad <= classifier._budget.max_fdr(t) * mass + 1e-9:
                tried.append((mass - 9 * bad, float(parities.worst(parity(), rates)[1]), f))
        best = max((fit for fit in tried if fit[1] <= 0.1 + 1e-9), key=lambda fit: fit[0])
        if t > 1:
            total = sum(w for *_, w in rows)
            assert record.estimated_utility == pytest.approx(best[0] / total, abs=1e-9), t
            assert record.disparity == pytest.approx(best[1], abs=1e-9), t
            assert set(np.flatnonzero(policy.accepts)) == best[2], t
            costs += max(value for value, *_ in tried) > best[0] + 1e-6
        rows = (values[batch.accepted] for values in (batch.ids, cell, group, good))
        ids, *new = (values.tolist() for values in rows)
        classifier.observe(ids, new[-1])
        observed += list(zip(*new, strict=True))
    assert costs  # the constraint binds


def test_blind_outcomes_are_counted_by_group_and_forgotten():
    classifier, _ = run(group_mode="blind", fairness=SelectionRateParity(0.05))
    before = classifier.counts_
    classifier.forget(np.arange(0, 1500, 3))
    after = classifier.counts_
    for counts in (before, after):
        good, bad = counts.by_group
        assert good.shape == bad.shape == (10, 2)
        assert good.sum(axis=1).tolist() == counts.good.tolist()
        assert bad.sum(axis=1).tolist() == counts.bad.tolist()
    assert np.all(after.by_group[0] <= before.by_group[0])
    assert after.good.sum() < before.good.sum()


def test_blind_missing_outcomes_of_a_mature_round_count_in_their_groups():
    parity = SelectionRateParity(1.0)  # met by any classifier
    classifier, rng, _ = start(0, group_mode="blind", maturity=0, fairness=parity)
    expected = [counts.copy() for counts in classifier.counts_.by_group]
    X, group, good = applicants(rng, 200)
    batch = classifier.decide(X, sensitive_features=group)
    known = batch.accepted & (good == 1)
    classifier.observe(batch.ids[known], good[known])
    cells = {tuple(x): i for i, x in enumerate(classifier.cells_[0].tolist())}
    for i in np.flatnonzero(batch.accepted).tolist():
        expected[0 if known[i] else 1][cells[tuple(X[i].tolist())], "AB".index(group[i])] += 1
    counted = classifier._count(len(cells), 2).by_group
    assert [counts.tolist() for counts in counted] == [counts.tolist() for counts in expected]
    assert (batch.accepted & ~known).any()


@pytest.mark.parametrize("mode", ["aware", "blind", "audit"])
@pytest.mark.parametrize("strategy", [None, Uniform()])
def test_counts_by_group(mode, strategy):
    classifier, rng, _ = start(0, group_mode=mode, strategy=strategy)
    expected = []
    for _ in range(3):
        X, group, _ = applicants(rng, 200)
        batch = classifier.decide(X, sensitive_features=pd.Series(group, name="sex"))
        for name in ("A", "B"):
            in_group = group == name
            flags = in_group, batch.accepted & in_group, batch.explored & in_group
            heads = (int(flag.sum()) for flag in flags)
            expected.append((batch.round, "group", name, *heads))
    assert [tuple(vars(count).values()) for count in classifier.group_counts_] == expected
    assert sum(count.n_explored for count in classifier.group_counts_) > 0
    assert loads(dumps(classifier)).group_counts_ == classifier.group_counts_


def test_group_counts_have_the_name_of_the_column(rng):
    X, group, good = applicants(rng, 200)
    for values in (pd.Series(group, name="sex"), pd.DataFrame({"sex": group})):
        for mode in ("aware", "blind"):
            classifier = FiniteClassifier(group_mode=mode, random_state=0)
            classifier.fit(X, good, sensitive_features=values).decide(X, sensitive_features=values)
            assert {count.attribute for count in classifier.group_counts_} == {"sex"}


def test_no_group_counts_without_groups(rng):
    X, _, good = applicants(rng, 200)
    for mode in ("aware", "blind", "audit"):
        classifier = FiniteClassifier(group_mode=mode, random_state=0).fit(X, good)
        classifier.decide(X)
        assert classifier.group_counts_ == ()
        with pytest.raises(InputError, match="sensitive_features"):
            classifier.decide(X, sensitive_features=["A"] * 200)


def test_combinations_of_attributes_are_counted(rng):
    X, group, good = applicants(rng, 300)
    both = np.column_stack([group, np.where(rng.random(300) < 0.5, "old", "young")])
    classifier = FiniteClassifier(group_mode="audit", random_state=0)
    classifier.fit(X, good, sensitive_features=both).decide(X, sensitive_features=both)
    names, heads = np.unique([", ".join(row) for row in both.tolist()], return_counts=True)
    counts = [(count.group, count.n_people) for count in classifier.group_counts_]
    assert counts == list(zip(names.tolist(), heads.tolist(), strict=True))


def test_questions_need_groups_only_if_aware():
    X = np.array([[0, 0], [4, 1], [9, 9]])
    for mode in ("blind", "audit"):
        classifier, _ = run(n_rounds=2, group_mode=mode)
        for name in ("predict_proba", "predict", "accepts", "coverage_of"):
            method = getattr(classifier, name)
            assert np.array_equal(method(X), method(X, sensitive_features=["A", "B", "A"]))
        assert np.array_equal(
            classifier.accepts(X), classifier.accepts(X, sensitive_features=["C"] * 3)
        )
        with pytest.raises(InputError, match="sensitive_features"):
            classifier.decide(X)
    aware, _ = run(n_rounds=2)
    with pytest.raises(InputError, match="sensitive_features"):
        aware.accepts(X)
    with pytest.raises(InputError, match="'C'"):
        aware.accepts(X, sensitive_features=["C"] * 3)


REFUSED = [
    ({"strategy": GroupShare()}, ("blind", "audit"), "GroupShare"),
    ({"hypothesis": "threshold_per_group"}, ("blind", "audit"), "hypothesis='threshold_per_group'"),
    ({"fairness": SelectionRateParity()}, ("audit",), "fairness"),
    ({"constraints": "per_group"}, ("audit",), "constraints='per_group'"),
]


@pytest.mark.parametrize(
    ("options", "mode", "message"),
    [(options, mode, message) for options, modes, message in REFUSED for mode in modes],
)
def test_options_that_read_groups_need_their_mode(options, mode, message):
    with pytest.raises(InputError, match=rf"group_mode='{mode}'.*{message}"):
        start(0, group_mode=mode, **options)
    start(0, **options)  # the control


def test_functions_and_domains_without_groups_unless_aware(rng):
    X, group, good = applicants(rng, 200)
    with pytest.raises(InputError, match=r"group_mode.* 'unaware'"):
        start(0, group_mode="unaware")
    with pytest.raises(InputError, match=r"cut_score .*X alone"):
        start(0, group_mode="blind", cut_score=lambda X, group: X[:, 0], hypothesis="threshold")
    blind = FiniteClassifier(group_mode="blind", random_state=0)
    given = {"sensitive_features": group, "past_policy": lambda X, group: X[:, 0] < 2}
    with pytest.raises(InputError, match=r"past_policy .*X alone"):
        blind.fit(X, good, **given)
    with pytest.raises(InputError, match=r"domain .*'blind'"):
        blind.fit(X, good, sensitive_features=group, domain=([[0, 0]], ["A"]))
    with pytest.raises(InputError, match="limits"):
        start(0, group_mode="blind", strategy=Limited(Uniform(), max_risk=0.5))
    blind.set_params(cut_score=lambda X: -X[:, 0], hypothesis="threshold")
    domain = np.array(list(product(range(6), range(2))))
    past = {"past_policy": lambda X: X[:, 0] < 2, "domain": (domain, None)}
    blind.fit(X, good, sensitive_features=group, **past)
    batch = blind.decide([[0, 0], [5, 1], [7, 7]], sensitive_features=["A", "B", "B"])
    assert batch.exploit.tolist() == [True, False, False]
    assert len(blind.counts_.good) == 13


@pytest.mark.parametrize("mode", ["aware", "blind", "audit"])
def test_every_record_and_saved_file_has_the_mode(mode):
    classifier, rng, _ = start(0, group_mode=mode)
    X, group, _ = applicants(rng, 200)
    classifier.decide(X, sensitive_features=group)
    loaded = loads(dumps(classifier))
    decided = [clf.decide(X, sensitive_features=group) for clf in (classifier, loaded)]
    assert equal(*decided)
    assert {record.group_mode for record in (*decided, *loaded.rounds_)} == {mode}
    assert classifier.decide(X[:0], sensitive_features=group[:0]).group_mode == mode
    other = "blind" if mode == "aware" else "aware"
    loaded.set_params(group_mode=other)
    with pytest.raises(InputError, match=rf"group_mode .*'{mode}'.*'{other}'"):
        loaded.decide(X, sensitive_features=group)
