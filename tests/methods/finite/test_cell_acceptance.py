"""The policy of the last round for anybody, also of cells that nobody has been in."""

from __future__ import annotations

import numpy as np
import pytest

from methods.finite.small_domain import DOMAIN, PAST, REVENUE, draw, fitted
from methods.finite.small_domain import run as lived
from secondlook import EqualGroups, FdrBudget, GroupShare, SummedAcceptance
from secondlook.core.strategies import FromFunction
from secondlook.errors import InputError
from secondlook.methods.finite import CountedOutcomes, FiniteClassifier
from secondlook.methods.storage import dumps, loads

NEW = np.array([[2, 0], [2, 2], [0, 2], [1, 7]])  # cells that are in no domain here
NEW_GROUP = np.array(["a", "b", "b", "a"])


def sizes(X, score, group):
    return 1.0 + X[:, 0] + 3 * X[:, 1] + 2 * group + score


def asked(classifier, X, group):
    return classifier.acceptance_probability(X, sensitive_features=group)


def test_of_the_batch_it_is_the_share_of_the_draw(rng):
    """Known cells 0 or 1, others n · g over the sum of g of all candidates, written out."""
    classifier = fitted(rng, strategy=FromFunction(sizes), budget=FdrBudget(alpha=0.2))
    people, _ = draw(rng, 500)
    decided = classifier.decide(people.X, sensitive_features=people.group)
    p, cell = asked(classifier, people.X, people.group), DOMAIN.cell_of(people)
    known = PAST[cell] > 0.5
    assert known.any()
    assert np.array_equal(p[known], np.ones(known.sum()))
    g = sizes(people.X, PAST[cell], (people.group == "b").astype(int))[~known]
    n_drawn = int((decided.accepted & ~known).sum())
    assert n_drawn > 5
    assert p[~known] == pytest.approx(n_drawn * g / g.sum(), rel=1e-12)
    assert np.array_equal(p, decided.propensity)


RULES = [SummedAcceptance(0.5), CountedOutcomes(5)]
STRATEGIES = [FromFunction(sizes), GroupShare(FromFunction(sizes)), EqualGroups()]


def in_step(rng, named, n_rounds, n=150, **options):
    """Return classifiers after the same rounds, of which one had the new cells named before."""
    domain = (np.vstack([DOMAIN.X, NEW]), np.append(DOMAIN.group, NEW_GROUP))
    classifiers = []
    for cells, past in (((DOMAIN.X, DOMAIN.group), PAST), (domain, np.append(PAST, named))):
        one = FiniteClassifier(REVENUE, random_state=3, **options)
        classifiers.append(one.fit(None, None, domain=cells, past_policy=past))
    for _ in range(n_rounds):
        people, good = draw(rng, n)
        decided = [one.decide(people.X, sensitive_features=people.group) for one in classifiers]
        accepted = decided[0].accepted
        assert np.array_equal(accepted, decided[1].accepted)
        for one in classifiers:
            one.observe(decided[0].ids[accepted], good[accepted])
    return classifiers


@pytest.mark.parametrize("n_rounds", [1, 2, 5])
@pytest.mark.parametrize("strategy", STRATEGIES, ids=["own", "shares", "equal"])
@pytest.mark.parametrize("rule", RULES, ids=["summed", "counted"])
def test_a_new_cell_is_treated_as_one_that_was_named_and_is_empty(rng, rule, strategy, n_rounds):
    one, named = in_step(rng, np.zeros(4), n_rounds, coverage=rule, strategy=strategy)
    p = asked(one, NEW, NEW_GROUP)
    assert np.array_equal(p, named.policies_[-1].acceptance[-4:])
    assert np.array_equal(p, asked(named, NEW, NEW_GROUP))
    assert np.all(p > 0)
    # Together with others, in any order, and again: cells that are known stay what they were.
    X, group = np.vstack([NEW, DOMAIN.X])[::-1], np.append(NEW_GROUP, DOMAIN.group)[::-1]
    expected = np.append(p, one.policies_[-1].acceptance)[::-1]
    assert np.array_equal(asked(one, X, group), expected)
    assert len(one.cells_[0]) == len(DOMAIN.X)


def test_whoever_comes_instead_may_cost_the_draw_a_person():
    """Where one person less would be exploited, and that is one person less to explore."""
    fewer = 0
    for n in range(100, 160, 4):
        one, named = in_step(np.random.default_rng(n), np.zeros(4), 1, n=n, strategy=sizes)
        fewer += one._last.n_instead < one._last.n_explore
        assert np.array_equal(asked(one, NEW, NEW_GROUP), named.policies_[-1].acceptance[-4:])
    assert 0 < fewer < 15


def past_of(X, group):
    """f_0 of the small domain, and of new cells whatever their second column says."""
    known = {(*x, z): p for x, z, p in zip(DOMAIN.X.tolist(), DOMAIN.group, PAST, strict=True)}
    asked_of = zip(X.tolist(), group, strict=True)
    return np.array([known.get((*x, z), float(x[1] == 2)) for x, z in asked_of])


@pytest.mark.parametrize("n_rounds", [1, 3])
def test_a_new_cell_that_the_past_covers_is_exploited(rng, n_rounds):
    """f_0 accepts such people in round 1; then f_t, which knows no outcome of theirs, nobody."""
    covered = past_of(NEW, NEW_GROUP) > 0.5
    assert covered.tolist() == [False, True, True, False]
    one, named = in_step(rng, covered, n_rounds, coverage=SummedAcceptance(0.5))
    as_function = FiniteClassifier(REVENUE)
    as_function.fit(None, None, domain=(DOMAIN.X, DOMAIN.group), past_policy=past_of)
    one._past = as_function._past
    p = asked(one, NEW, NEW_GROUP)
    assert np.array_equal(p, named.policies_[-1].acceptance[-4:])
    assert np.array_equal(p[covered], np.full(2, float(n_rounds == 1)))
    assert np.all((p[~covered] > 0) & (p[~covered] < 1))


def test_it_is_the_chance_in_the_place_of_an_average_person(rng):
    """Somebody of every cell makes way in turn, and the draw is exact for who comes instead."""
    people, _ = draw(rng, 2000)
    cell = DOMAIN.cell_of(people)

    def decided(X, group):
        options = {"budget": FdrBudget(alpha=0.3), "strategy": sizes, "random_state": 0}
        classifier = FiniteClassifier(REVENUE, **options)
        classifier.fit(None, None, domain=(DOMAIN.X, DOMAIN.group), past_policy=PAST)
        return classifier, classifier.decide(X, sensitive_features=group)

    chance = np.zeros(4)
    for c, heads in enumerate(np.bincount(cell)):
        i = int(np.flatnonzero(cell == c)[0])
        for k in range(4):
            X, group = people.X.copy(), people.group.copy()
            X[i], group[i] = NEW[k], NEW_GROUP[k]
            chance[k] += heads / 2000 * decided(X, group)[1].propensity[i]
    classifier, batch = decided(people.X, people.group)
    assert asked(classifier, NEW, NEW_GROUP) == pytest.approx(chance, rel=0.01)
    alike = batch.explored.sum() / (~batch.exploit).sum()  # the control: as if all had one g
    assert np.all(abs(alike / chance - 1) > 0.1)


def test_asking_changes_no_decision_and_is_kept_in_files(rng):
    one, other = (lived(np.random.default_rng(5), n_rounds=3) for _ in range(2))
    p = asked(one, NEW, NEW_GROUP)
    assert np.array_equal(asked(loads(dumps(one)), NEW, NEW_GROUP), p)
    people, _ = draw(rng, 300)
    again = [one.decide(people.X, sensitive_features=people.group) for one in (one, other)]
    assert np.array_equal(again[0].accepted, again[1].accepted)
    assert np.array_equal(again[0].propensity, again[1].propensity)


def test_outcomes_that_come_later_change_nothing_of_the_round(rng):
    classifier = fitted(rng)
    people, good = draw(rng, 300)
    batch = classifier.decide(people.X, sensitive_features=people.group)
    before = asked(classifier, NEW, NEW_GROUP)
    classifier.observe(batch.ids[batch.accepted], good[batch.accepted])
    assert np.array_equal(asked(classifier, NEW, NEW_GROUP), before)


def test_what_cannot_be_told_is_said(rng):
    classifier = fitted(rng)
    with pytest.raises(InputError, match=r"no round has been decided yet.*decide one"):
        asked(classifier, NEW, NEW_GROUP)
    people, _ = draw(rng, 300)
    batch = classifier.decide(people.X, sensitive_features=people.group)
    known = asked(classifier, DOMAIN.X, DOMAIN.group)
    classifier.forget(batch.ids[:1])
    assert np.array_equal(asked(classifier, DOMAIN.X, DOMAIN.group), known)
    with pytest.raises(InputError, match=r"did not know, .* forgotten since .* decide another"):
        asked(classifier, NEW, NEW_GROUP)
    classifier.decide(people.X, sensitive_features=people.group)
    assert np.all(asked(classifier, NEW, NEW_GROUP) >= 0)
    with pytest.raises(InputError):
        asked(classifier, NEW, np.full(4, "c"))
