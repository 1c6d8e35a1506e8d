"""``constraints="per_group"``: bounds within each group, and the improvement of every group.

Applicants of groups A (one in four) and B have a feature x, uniform in [0, 1]. The share of bad at
x is .05 + .50·(1 − x) in A and .12 + .20·(1 − x) in B, so of those above a cut c it is
.05 + .25·(1 − c) and .12 + .10·(1 − c). At an FDR of .15, A by itself is accepted from .6 on and B
from .7 on. At a joint FDR of .15 both are accepted up to one bad share, .194, which is from .71 on
in A: B is accepted beyond its own bound, and A pays for it. This is the counterexample of cells
a1, a2 and b1 (``tests/methods/finite/test_learner.py``) with a continuous feature.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from fairchance import (
    FdrBudget,
    PartialFeedbackClassifier,
    Revenue,
    SelectionRateParity,
    SummedAcceptance,
    Uniform,
)
from fairchance.errors import InputError, LearningWarning
from fairchance.learners.thresholds import group_thresholds

MONEY = Revenue(1, 1)
BOUND = 0.15
SHARES = 0.25, 0.75


def bad_share(x, group):
    return np.where(group == 0, 0.05 + 0.5 * (1 - x), 0.12 + 0.2 * (1 - x))


def utility_of(group, cut):
    """Return the true utility per applicant of a group that is accepted from a cut on."""
    x = (np.arange(10_000) + 0.5) / 10_000
    return float(np.mean((x >= cut) * (1 - 2 * bad_share(x, group))))


def best_cuts(known, constraints):
    """Return the best cuts on x with the whole truth about a region: per group, its least x."""
    x = np.concatenate([np.linspace(low, 1, 2001)[:-1] for low in known])
    group = np.repeat(np.arange(len(known)), 2000)
    mass = np.repeat([share * (1 - low) for share, low in zip(SHARES, known, strict=False)], 2000)
    bad = bad_share(x, group)
    point = group_thresholds(
        np.tile(x, 2),
        np.repeat([1, 0], x.size),
        np.concatenate([mass * (1 - bad), mass * bad]),
        np.tile(group, 2),
        len(known),
        utility=MONEY,
        max_fdr=BOUND,
        constraints=constraints,
    )
    assert point.feasible
    return point.thresholds


def test_joint_bounds_make_one_group_pay_for_another():
    (alone,) = best_cuts([0.0], "joint")
    assert alone == pytest.approx(0.6, abs=0.01)
    assert best_cuts([0.0, 0.0], "per_group") == pytest.approx([0.6, 0.7], abs=0.01)
    joint = best_cuts([0.0, 0.0], "joint")
    assert joint == pytest.approx([0.71, 0.63], abs=0.01)
    kept, paid = utility_of(0, alone), utility_of(0, joint[0])
    assert (kept, paid) == pytest.approx((0.28, 0.219), abs=0.005)


@pytest.mark.parametrize(("constraints", "improves"), [("per_group", True), ("joint", False)])
def test_group_improvement_while_the_known_region_grows(constraints, improves):
    """Theorem 2: a larger EXPLOIT region lowers no group's utility under bounds of its own."""
    regions = [(0.7, 1.0), (0.3, 1.0), (0.3, 0.9), (0.3, 0.4), (0.0, 0.0)]  # least x of A and B
    earned = []
    for known in regions:
        some = [low for low in known if low < 1]
        cuts = [*best_cuts(some, constraints), np.inf]
        earned.append([utility_of(g, cuts[g]) for g in range(2)])
    smallest_step = float(np.diff(earned, axis=0).min())
    assert (smallest_step > -1e-3) == improves
    assert improves or smallest_step < -0.03


class Truth(ClassifierMixin, BaseEstimator):
    """A learner that knows the share of good, so that only the operating point is learned."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        bad = bad_share(X[:, 0], X[:, 1])
        return np.column_stack([bad, 1 - bad])


def people(rng, n):
    """Return applicants with outcomes that follow the shares of bad as closely as they can."""
    X = np.column_stack([rng.random(n), rng.random(n) > SHARES[0]])
    order = np.lexsort(X.T)
    bad = np.diff(np.floor(np.cumsum(bad_share(*X[order].T)) + rng.random()), prepend=0.0)
    good = np.empty(n, dtype=int)
    good[order] = bad == 0
    return X, good


def only_a(X):
    """The past accepted A above .2 and almost none of B."""
    return np.where((X[:, 1] == 0) & (X[:, 0] > 0.2), 0.95, 0.01)


def run(seed, n_rounds=7, n=4000, **options):
    """Return the classifier after some rounds, with the utility of each group in each round."""
    rng = np.random.default_rng(seed)
    X, good = people(rng, n)
    clf = PartialFeedbackClassifier(
        MONEY,
        FdrBudget(0.3, BOUND, slack=0.0),
        SummedAcceptance(threshold=0.1),
        Uniform(),
        Truth(),
        thresholds="per_group",
        split="cross",
        weight_cap=100,
        random_state=seed,
        **options,
    )
    accepted = rng.random(n) < only_a(X)
    clf.fit(X, good, accepted=accepted, sensitive_features=X[:, 1], past_policy=only_a)
    earned, grid = [], (np.arange(2000) + 0.5) / 2000
    for _ in range(n_rounds):
        X, good = people(rng, n)
        decided = clf.decide(X, sensitive_features=X[:, 1])
        clf.observe(decided.ids[decided.accepted], good[decided.accepted])
        row = []
        for g in range(2):
            who = np.column_stack([grid, np.full(grid.size, g)])
            chance = clf.acceptance_probability(who, sensitive_features=who[:, 1])
            row.append(float(np.mean((chance == 1) * (1 - 2 * bad_share(grid, g)))))
        earned.append(row)
    return clf, np.array(earned)


@pytest.mark.parametrize(("constraints", "kept"), [("per_group", 0.28), ("joint", 0.23)])
def test_a_group_keeps_its_utility_when_the_other_becomes_known(constraints, kept):
    """From round 2 on f_t is learned; B becomes known a few rounds later."""
    clf, earned = run(0, constraints=constraints)
    sizes = [record.n_exploit_region for record in clf.rounds_]
    assert sizes[1] < 1000
    assert sizes[-1] == 4000
    assert earned[1] == pytest.approx([0.28, 0.0], abs=0.01)
    assert earned[-1, 0] == pytest.approx(kept, abs=0.02)
    assert earned[-1, 1] > 0.1


def two_groups(n=6000):
    """Return features, outcomes and groups; B is bad more often."""
    rng = np.random.default_rng(3)
    X, group = rng.normal(size=(n, 2)), np.where(rng.random(n) < 0.3, "B", "A")
    chance = 1 / (1 + np.exp(-1.5 - 2 * X[:, 0] + (group == "B")))
    return X, (rng.random(n) < chance).astype(int), group


def measured(least, **options):
    """Return FDR and selection rate of A and B on held-out rows, and the record of the round."""
    X, good, group = two_groups()
    clf = PartialFeedbackClassifier(
        MONEY,
        FdrBudget(0.2, 0.1, least, slack=0.01),
        learner=LogisticRegression(),
        weights="none",
        random_state=0,
        **options,
    ).fit(X, good, sensitive_features=group)
    clf.decide(X[:100], sensitive_features=group[:100])
    record = clf.rounds_[-1]
    held_out = clf.fold_of(np.arange(len(X))) == 1
    cut = np.where(group == "A", *record.thresholds)
    accepted = held_out & (clf.predict_proba(X, sensitive_features=group)[:, 1] >= cut)
    return [
        (float(1 - good[accepted & own].mean()), float(accepted[own & held_out].mean()))
        for own in (group == "A", group == "B")
    ], record


@pytest.mark.parametrize("thresholds", ["shared", "per_group"])
@pytest.mark.parametrize("fairness", [None, SelectionRateParity(0.2)])
def test_bounds_hold_within_each_group(thresholds, fairness):
    options = {"thresholds": thresholds, "fairness": fairness}
    joint, _ = measured(0.3, **options)
    assert max(fdr for fdr, _ in joint) > 0.115
    within, record = measured(0.3, constraints="per_group", **options)
    assert record.feasible
    for fdr, rate in within:
        assert fdr <= 0.11 + 1e-9
        assert rate >= 0.29 - 1e-9
    if fairness is not None:
        assert abs(within[0][1] - within[1][1]) <= 0.2 + 1e-9


def test_selection_rate_that_a_group_cannot_reach():
    with pytest.warns(LearningWarning):
        within, record = measured(0.8, thresholds="per_group", constraints="per_group")
    assert not record.feasible
    assert all(fdr <= 0.11 + 1e-9 for fdr, _ in within)
    assert within[0][1] < 0.8
    with pytest.warns(LearningWarning):
        measured(0.8, constraints="per_group", fairness=SelectionRateParity(0.05))


def test_explored_are_counted_over_all_groups():
    """None of B is exploited at first, so a budget for each group would never explore B."""
    clf, _ = run(0, n_rounds=2, constraints="per_group")
    exploited, explored = (
        sum(getattr(record, name) for record in clf.rounds_)
        for name in ("n_exploited", "n_explored")
    )
    assert 0 <= exploited * (0.3 - BOUND) / (1 - 0.3) - explored < 1
    of_b = [count.n_explored for count in clf.group_counts_ if count.group == 1]
    assert sum(of_b) > explored / 2


def test_constraints_per_group_need_groups():
    X, good, _ = two_groups(200)
    with pytest.raises(InputError, match="sensitive_features"):
        PartialFeedbackClassifier(constraints="per_group").fit(X, good)
