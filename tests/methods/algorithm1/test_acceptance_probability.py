"""The policy of the last round for people who were not in its batch, against a slow walk."""

from __future__ import annotations

import numpy as np
import pytest

from secondlook import Revenue
from secondlook.core.coverage import MeanPastScore, SummedAcceptance, SumOfG
from secondlook.errors import InputError
from secondlook.lab.baselines.fair_clf import fair_clf
from secondlook.lab.baselines.opt_offline import OfflineOptimum, OracleOptimum
from secondlook.lab.simulate.populations import Lender, draw_applicants
from secondlook.lab.simulate.run import run
from small_worlds import lender_world

RULES = [
    SummedAcceptance(0.5),
    SummedAcceptance(0.8, reference_size=150),
    MeanPastScore(),
    SumOfG(),
]


def walked(classifier, x, z):
    """Return one person's chance in the last round, round by round as the method says it."""
    log, rule = classifier._log, classifier.coverage
    w = float(log.likelihoods[0].score(x[None], np.array([z]))[0])
    seen, pi = 0, None
    for policy in log.policies:
        score = float(log.likelihoods[policy.likelihood].score(x[None], np.array([z]))[0])
        g = max(score, 1e-6) * policy.group_factor[z]
        drawn = min(1.0, policy.left[z] * g / (policy.others[z] + g))
        pi = float(score >= policy.thresholds[z]) if w > rule.level(seen) else drawn
        adding = {"acceptance": pi, "score": score, "g": g}[rule.needs]
        w += adding * rule.round_weight(policy.n_people, policy.n_rounds, log.first_batch)
        seen += policy.n_rounds
    return pi


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{type(rule).__name__}-{rule.threshold}")
def test_it_is_what_a_walk_person_by_person_gives(make_classifier, rule):
    classifier, world = make_classifier(coverage=rule, n_rounds=4)
    strangers = draw_applicants(Lender(), 200, np.random.default_rng(8)).people
    code = (strangers.group == "B").astype(int)
    some_explored = False
    for _ in run(classifier, world):
        p = classifier.acceptance_probability(strangers.X, sensitive_features=strangers.group)
        slow = [walked(classifier, x, z) for x, z in zip(strangers.X, code, strict=True)]
        assert p == pytest.approx(slow, abs=1e-9)
        some_explored |= bool(((p > 0) & (p < 1)).any())
    assert 0 < p.sum() < p.size
    assert some_explored or rule.needs == "g"


def test_in_the_batch_it_is_the_decision_where_people_are_known(make_classifier):
    classifier, world = make_classifier(n_rounds=5)
    for result in run(classifier, world):
        people, decided = result.applicants.people, result.decided
        p = classifier.acceptance_probability(people.X, sensitive_features=people.group)
        known = decided.exploit
        assert np.array_equal(p[known], decided.accepted[known])
        drawn = int(decided.explored.sum())
        assert p[~known].sum() == pytest.approx(drawn, rel=0.1)  # a place more, a place less
        assert drawn > 0


def test_asking_changes_no_decision(make_classifier):
    strangers = draw_applicants(Lender(), 100, np.random.default_rng(8)).people

    def decided(ask):
        classifier, world = make_classifier(n_rounds=4)
        for result in run(classifier, world):
            if ask:
                classifier.acceptance_probability(strangers.X, sensitive_features=strangers.group)
            yield result.decided.accepted.tolist()

    assert list(decided(True)) == list(decided(False))


def test_fair_clf_accepts_for_sure_or_not_at_all():
    world = lender_world(3, n_rounds=3)
    past = world.history()
    method = fair_clf(Revenue(gain=200, loss=300), random_state=0).fit(
        past.people.X,
        past.outcomes,
        accepted=past.accepted,
        sensitive_features=past.people.group,
    )
    for result in run(method, world):
        people = result.applicants.people
        p = method.acceptance_probability(people.X, sensitive_features=people.group)
        assert np.array_equal(p, result.decided.accepted)


def test_before_any_round_there_is_no_policy(make_classifier):
    classifier, _ = make_classifier()
    with pytest.raises(InputError, match=r"no round has been decided yet.*decide one"):
        classifier.acceptance_probability(np.zeros((2, 3)), sensitive_features=["A", "B"])
    oracle = OracleOptimum(Revenue(gain=200, loss=300))
    oracle.fit([(np.random.default_rng(0).normal(size=(40, 1)), np.arange(40) % 2)] * 2)
    with pytest.raises(InputError, match=r"no round has been decided yet.*decide one"):
        oracle.acceptance_probability(np.zeros((2, 1)))


@pytest.mark.parametrize("cross_fit", [True, False])
def test_oracles_say_whom_the_rule_of_each_round_accepts(cross_fit):
    world = lender_world(4, n_rounds=4)
    stream = [one.applicants for one in world.batches()]
    oracle = OracleOptimum(Revenue(gain=200, loss=300), cross_fit=cross_fit, groups=("A", "B"))
    oracle.fit(
        [(one.people.X, one.outcome) for one in stream],
        sensitive_features=[one.people.group for one in stream],
    )
    rules = []
    for result in run(oracle, world):
        people = result.applicants.people
        p = oracle.acceptance_probability(people.X, sensitive_features=people.group)
        assert np.array_equal(p, result.decided.accepted)
        first = stream[0].people
        rules.append(oracle.acceptance_probability(first.X, sensitive_features=first.group))
    # Rules of one model are one rule; those of models without the round in question are not.
    assert all(np.array_equal(rules[0], rule) for rule in rules) == (not cross_fit)


def test_the_offline_optimum_accepts_by_one_fixed_rule():
    world = lender_world(5, n_rounds=2)
    past = world.full_history()
    method = OfflineOptimum(Revenue(gain=200, loss=300)).fit(past.people.X, past.outcome)
    for result in run(method, world):
        p = method.acceptance_probability(result.applicants.people.X)
        assert np.array_equal(p, result.decided.accepted)
