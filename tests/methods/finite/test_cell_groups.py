"""What groups may change on cells: all, only what is learned, or nothing; and who is counted."""

from __future__ import annotations

import copy
from itertools import product

import numpy as np
import pandas as pd
import pytest

from secondlook import (
    FdrBudget,
    GroupShare,
    Limited,
    Revenue,
    SelectionRateParity,
    TruePositiveRateParity,
    Uniform,
)
from secondlook.errors import InputError
from secondlook.methods.finite import CountedOutcomes, FiniteClassifier
from secondlook.methods.storage import dumps, loads

GOOD = np.array([0.96, 0.9, 0.93, 0.7, 0.85])  # by the first feature
IN_B = np.array([0.1, 0.8, 0.3, 0.5, 0.9])  # share of the group B


def people(rng, n):
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
    X, group, good = people(rng, n)
    classifier = FiniteClassifier(**options)
    classifier.fit(X, good, accepted=X[:, 0] < 4, sensitive_features=regroup(group, other))
    return classifier, rng, other


def run(seed=0, of_history=same_groups, of_batches=same_groups, n_rounds=4, **options):
    """Return the classifier and what it decided, with groups replaced on the way in."""
    classifier, rng, other = start(seed, of_history, **options)
    made = []
    for _ in range(n_rounds):
        X, group, good = people(rng, 300)
        batch = classifier.decide(X, sensitive_features=of_batches(group, other))
        classifier.observe(batch.ids[batch.accepted], good[batch.accepted])
        made.append(batch)
    return classifier, made


def equal(one, other):
    keys = ("accepted", "exploit", "score", "propensity")
    return all(np.array_equal(getattr(one, key), getattr(other, key)) for key in keys)


OPTIONS = {
    "defaults": {},
    "own function": {"strategy": by_group},
    "cuts": {"hypothesis": "threshold", "weights": "none"},
    "counted": {"coverage": CountedOutcomes(10), "strategy": Uniform()},
}
CONSTRAINED = {
    "similar rates": {"fairness": SelectionRateParity(0.02)},
    "similar rates of the good": {
        "fairness": TruePositiveRateParity(0.02),
        "hypothesis": "threshold",
    },
    "bounds within groups": {
        "constraints": "per_group",
        "budget": FdrBudget(alpha=0.13, exploit=0.075, slack=0.0),
        "n": 2000,
    },
}


@pytest.mark.parametrize(("seed", "name"), list(enumerate(OPTIONS)))
def test_audit_no_group_changes_anything(name, seed):
    options = OPTIONS[name] | {"group_mode": "audit"}
    first, made = run(seed, **options)
    second, again = run(seed, any_groups, any_groups, **options)
    assert all(map(equal, made, again))
    assert repr(first.rounds_) == repr(second.rounds_)
    assert first.group_counts_ != second.group_counts_
    X = np.array(list(product(range(5), range(2))))
    for answer in ("accepts", "predict_proba", "coverage_of"):
        assert np.array_equal(getattr(first, answer)(X), getattr(second, answer)(X)), answer


@pytest.mark.parametrize("name", OPTIONS | CONSTRAINED)
def test_aware_groups_do_change_decisions(name):
    """The control of the tests around it."""
    options = (OPTIONS | CONSTRAINED)[name]
    _, made = run(**options)
    _, again = run(of_history=shuffled, of_batches=shuffled, **options)
    assert not all(map(equal, made, again))


@pytest.mark.filterwarnings("ignore:No classifier with an FDR", "ignore:No cell of these")
@pytest.mark.parametrize("name", OPTIONS | CONSTRAINED)
def test_blind_no_permutation_changes_the_round_it_is_in(name):
    classifier, rng, other = start(0, group_mode="blind", **(OPTIONS | CONSTRAINED)[name])
    for _ in range(3):
        X, group, good = people(rng, 300)
        twins = [copy.deepcopy(classifier) for _ in range(2)]
        batch = classifier.decide(X, sensitive_features=group)
        for twin in twins:
            assert equal(batch, twin.decide(X, sensitive_features=other.permutation(group)))
        classifier.observe(batch.ids[batch.accepted], good[batch.accepted])


@pytest.mark.parametrize("name", OPTIONS)
def test_blind_without_a_constraint_is_audit(name):
    _, blind = run(group_mode="blind", **OPTIONS[name])
    _, audit = run(group_mode="audit", of_batches=shuffled, **OPTIONS[name])
    assert all(map(equal, blind, audit))


@pytest.mark.filterwarnings("ignore:No classifier with an FDR", "ignore:No cell of these")
@pytest.mark.parametrize("name", CONSTRAINED)
def test_blind_groups_of_people_with_outcomes_shape_what_is_learned(name):
    options = CONSTRAINED[name] | {"group_mode": "blind"}
    _, made = run(**options)
    _, again = run(of_history=shuffled, of_batches=shuffled, **options)
    assert equal(made[0], again[0])  # round 1 follows the past
    assert not all(map(equal, made, again))


@pytest.mark.filterwarnings("ignore:No cell of these people")
@pytest.mark.parametrize("parity", [SelectionRateParity, TruePositiveRateParity])
@pytest.mark.parametrize("seed", range(2))
def test_blind_f_is_the_best_function_of_features_person_by_person(parity, seed):
    """From a list of people: weights, rates of groups and utility by their definitions."""
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
    X, group, good = people(rng, 150)
    cell = X[:, 0]
    classifier.fit(cell, good, accepted=cell < 4, sensitive_features=group)
    applied = cell.tolist()
    seen = [one for one in zip(applied, group.tolist(), good.tolist(), strict=True) if one[0] < 4]
    costs = 0
    for t in range(1, 6):
        X, group, good = people(rng, 150)
        cell = X[:, 0]
        applied += cell.tolist()
        batch = classifier.decide(cell, sensitive_features=group)
        policy, record = classifier.policies_[-1], classifier.rounds_[-1]
        known = np.flatnonzero(policy.exploit).tolist()
        weight = {one: applied.count(one) / sum(x == one for x, *_ in seen) for one in known}
        rows = [(x, z, y, weight[x]) for x, z, y in seen if x in weight]
        tried = []
        for bits in product((0, 1), repeat=len(known)):
            f = {one for one, bit in zip(known, bits, strict=True) if bit}
            mass = sum(w for x, _, _, w in rows if x in f)
            bad = sum(w for x, _, y, w in rows if x in f and y == 0)
            rates = []
            for name in ("A", "B"):
                counted = [
                    (x, w)
                    for x, z, y, w in rows
                    if z == name and (y == 1 or parity is SelectionRateParity)
                ]
                taken = sum(w for x, w in counted if x in f)
                rates.append(taken / sum(w for _, w in counted))
            if bad <= classifier._budget.max_fdr(t) * mass + 1e-9:
                tried.append((mass - 9 * bad, abs(rates[0] - rates[1]), f))
        best = max((one for one in tried if one[1] <= 0.1 + 1e-9), key=lambda one: one[0])
        if t > 1:
            total = sum(w for *_, w in rows)
            assert record.estimated_utility == pytest.approx(best[0] / total, abs=1e-9), t
            assert record.disparity == pytest.approx(best[1], abs=1e-9), t
            assert set(np.flatnonzero(policy.accepts)) == best[2], t
            costs += max(one[0] for one in tried) > best[0] + 1e-6
        yes = batch.accepted
        classifier.observe(batch.ids[yes], good[yes])
        told = cell[yes].tolist(), group[yes].tolist(), good[yes].tolist()
        seen += list(zip(*told, strict=True))
    assert costs  # the constraint does something, so that leaving it out would be found


def test_blind_forgets_groups_too():
    fair = {"group_mode": "blind", "fairness": SelectionRateParity(0.05)}
    classifier, _ = run(**fair)
    everybody = [one.sum(axis=1) for one in classifier._state.by_group]
    assert everybody[0].tolist() == classifier.counts_.good.tolist()
    classifier.forget(np.arange(0, 1500, 3))
    again = classifier._ledger.outcomes(len(classifier.counts_.good))
    for kept, counted in zip(classifier._state.by_group, again, strict=True):
        assert kept.ravel().tolist() == counted.tolist()
        assert kept.shape[1] == 2
    assert classifier._state.by_group[1].sum() == classifier.counts_.bad.sum()
    assert classifier.counts_.good.sum() < everybody[0].sum()


def test_blind_the_missing_of_a_mature_round_count_in_their_groups():
    classifier, rng, _ = start(0, group_mode="blind", maturity=0)
    before = [one.copy() for one in classifier._state.by_group]
    X, group, good = people(rng, 200)
    batch = classifier.decide(X, sensitive_features=group)
    told = batch.accepted & (good == 1)
    classifier.observe(batch.ids[told], good[told])
    cells = {tuple(x): i for i, x in enumerate(classifier.cells_[0].tolist())}
    for i in np.flatnonzero(batch.accepted).tolist():
        at = cells[tuple(X[i].tolist())], "AB".index(group[i])
        before[0 if told[i] else 1][at] += 1
    counted = classifier._counting(classifier._state, 2).by_group
    assert [one.tolist() for one in counted] == [one.tolist() for one in before]
    assert (batch.accepted & ~told).any()


@pytest.mark.parametrize("mode", ["aware", "blind", "audit"])
@pytest.mark.parametrize("strategy", [None, Uniform()])
def test_heads_are_counted_by_group(mode, strategy):
    classifier, rng, _ = start(0, group_mode=mode, strategy=strategy)
    expected = []
    for _ in range(3):
        X, group, _ = people(rng, 200)
        batch = classifier.decide(X, sensitive_features=pd.Series(group, name="sex"))
        for name in ("A", "B"):
            mine = group == name
            counts = mine, batch.accepted & mine, batch.explored & mine
            expected.append((batch.round, "group", name, *(int(one.sum()) for one in counts)))
    assert [tuple(vars(one).values()) for one in classifier.group_counts_] == expected
    assert sum(one.n_explored for one in classifier.group_counts_) > 0
    assert loads(dumps(classifier)).group_counts_ == classifier.group_counts_


def test_a_column_of_groups_gives_counts_its_name(rng):
    X, group, good = people(rng, 200)
    for values in (pd.Series(group, name="sex"), pd.DataFrame({"sex": group})):
        for mode in ("aware", "blind"):
            classifier = FiniteClassifier(group_mode=mode, random_state=0)
            classifier.fit(X, good, sensitive_features=values).decide(X, sensitive_features=values)
            assert {one.attribute for one in classifier.group_counts_} == {"sex"}


def test_without_groups_there_is_nothing_to_count(rng):
    X, _, good = people(rng, 200)
    for mode in ("aware", "blind", "audit"):
        classifier = FiniteClassifier(group_mode=mode, random_state=0).fit(X, good)
        classifier.decide(X)
        assert classifier.group_counts_ == ()
        with pytest.raises(InputError, match="was not given to fit"):
            classifier.decide(X, sensitive_features=["A"] * 200)


def test_combinations_are_counted_where_cells_have_no_groups(rng):
    X, group, good = people(rng, 300)
    both = np.column_stack([group, np.where(rng.random(300) < 0.5, "old", "young")])
    classifier = FiniteClassifier(group_mode="audit", random_state=0)
    classifier.fit(X, good, sensitive_features=both).decide(X, sensitive_features=both)
    names, heads = np.unique([", ".join(one) for one in both.tolist()], return_counts=True)
    counted = [(one.group, one.n_people) for one in classifier.group_counts_]
    assert counted == list(zip(names.tolist(), heads.tolist(), strict=True))


def test_scores_need_no_groups_unless_aware():
    X = np.array([[0, 0], [4, 1], [9, 9]])
    for mode in ("blind", "audit"):
        classifier, _ = run(n_rounds=2, group_mode=mode)
        for name in ("predict_proba", "predict", "accepts", "coverage_of"):
            method = getattr(classifier, name)
            assert np.array_equal(method(X), method(X, sensitive_features=["A", "B", "A"]))
        with pytest.raises(InputError, match="holds the group 'C', which the history does not"):
            classifier.accepts(X, sensitive_features=["C"] * 3)
        with pytest.raises(InputError, match="sensitive_features is missing"):
            classifier.decide(X)
    aware, _ = run(n_rounds=2)
    with pytest.raises(InputError, match="sensitive_features is missing"):
        aware.accepts(X)


REFUSED = [
    ({"strategy": GroupShare()}, ("blind", "audit"), r"the strategy GroupShare\("),
    ({"hypothesis": "threshold_per_group"}, ("blind", "audit"), "hypothesis='threshold_per_gr"),
    ({"fairness": SelectionRateParity()}, ("audit",), "fairness, since no group may"),
    ({"constraints": "per_group"}, ("audit",), "constraints='per_group', since no"),
]


@pytest.mark.parametrize(
    ("options", "mode", "words"),
    [(options, mode, words) for options, modes, words in REFUSED for mode in modes],
)
def test_what_cannot_be_combined_is_refused(options, mode, words):
    with pytest.raises(InputError, match=rf"group_mode='{mode}' cannot be combined with {words}"):
        start(0, group_mode=mode, **options)
    start(0, **options)  # and goes well otherwise


def test_functions_and_domains_have_no_groups_where_these_may_not_decide(rng):
    X, group, good = people(rng, 200)
    with pytest.raises(InputError, match="group_mode must be one of"):
        start(0, group_mode="unaware")
    with pytest.raises(InputError, match="cut_score must be a function of X alone with group_mode"):
        start(0, group_mode="blind", cut_score=lambda X, group: X[:, 0], hypothesis="threshold")
    blind = FiniteClassifier(group_mode="blind", random_state=0)
    given = {"sensitive_features": group, "past_policy": lambda X, group: X[:, 0] < 2}
    with pytest.raises(InputError, match="past_policy must be a function of X alone"):
        blind.fit(X, good, **given)
    with pytest.raises(InputError, match="domain must be a pair of features and None"):
        blind.fit(X, good, sensitive_features=group, domain=([[0, 0]], ["A"]))
    with pytest.raises(InputError, match="limits on exploration are not kept"):
        start(0, group_mode="blind", strategy=Limited(Uniform(), max_risk=0.5))
    blind.set_params(cut_score=lambda X: -X[:, 0], hypothesis="threshold")
    domain = np.array(list(product(range(6), range(2))))
    past = {"past_policy": lambda X: X[:, 0] < 2, "domain": (domain, None)}
    blind.fit(X, good, sensitive_features=group, **past)
    batch = blind.decide([[0, 0], [5, 1], [7, 7]], sensitive_features=["A", "B", "B"])
    assert batch.exploit.tolist() == [True, False, False]
    assert len(blind.counts_.good) == 13


@pytest.mark.parametrize("mode", ["aware", "blind", "audit"])
def test_the_mode_is_in_every_record_and_in_files(mode):
    classifier, rng, _ = start(0, group_mode=mode)
    X, group, _ = people(rng, 200)
    classifier.decide(X, sensitive_features=group)
    loaded = loads(dumps(classifier))
    decided = [one.decide(X, sensitive_features=group) for one in (classifier, loaded)]
    assert equal(*decided)
    assert {one.group_mode for one in (*decided, *loaded.rounds_)} == {mode}
    assert classifier.decide(X[:0], sensitive_features=group[:0]).group_mode == mode
    other = "blind" if mode == "aware" else "aware"
    loaded.set_params(group_mode=other)
    words = f"group_mode was '{mode}' when the history was fitted and is '{other}' now"
    with pytest.raises(InputError, match=words):
        loaded.decide(X, sensitive_features=group)
