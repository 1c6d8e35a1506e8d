"""The policy of the last round on applicants outside its batch, also in new cells."""

from __future__ import annotations

import numpy as np
import pytest

from fairchance import EqualGroups, FdrBudget, GroupShare, SummedAcceptance
from fairchance.core.strategies import FromFunction
from fairchance.errors import InputError
from fairchance.methods.storage import dumps, loads
from fairchance_lab.finite import CountedOutcomes, FiniteClassifier
from finite.small_domain import (
    DOMAIN,
    PAST,
    REVENUE,
    decide,
    draw,
    fitted,
    run,
    without_history,
)

NEW = np.array([[2, 0], [2, 2], [0, 2], [1, 7]])  # cells outside the domain
NEW_GROUP = np.array(["a", "b", "b", "a"])


def sizes(X, score, group):
    return 1.0 + X[:, 0] + 3 * X[:, 1] + 2 * group + score


def probability(classifier, X, group):
    return classifier.acceptance_probability(X, sensitive_features=group)


def test_probability_of_the_batch_is_its_propensity(rng):
    """Known cells 0 or 1, others n · g over the sum of g of all candidates."""
    classifier = fitted(rng, strategy=FromFunction(sizes), budget=FdrBudget(alpha=0.2))
    people, _ = draw(rng, 500)
    decided = decide(classifier, people)
    p, cell = probability(classifier, people.X, people.group), DOMAIN.cell_of(people)
    known = PAST[cell] > 0.5
    assert known.any()
    assert np.array_equal(p[known], np.ones(known.sum()))
    g = sizes(people.X, PAST[cell], (people.group == "b").astype(int))[~known]
    n_drawn = int((decided.accepted & ~known).sum())
    assert n_drawn > 5
    assert p[~known] == pytest.approx(n_drawn * g / g.sum(), rel=1e-8)
    assert np.array_equal(p, decided.propensity)


def twin_runs(rng, past_of_new, n_rounds, n=150, **options):
    """Return two classifiers after the same rounds; the domain of the second has the new cells."""
    domain = (np.vstack([DOMAIN.X, NEW]), np.append(DOMAIN.group, NEW_GROUP))
    twins = []
    for cells, past in (((DOMAIN.X, DOMAIN.group), PAST), (domain, np.append(PAST, past_of_new))):
        classifier = FiniteClassifier(REVENUE, random_state=3, **options)
        twins.append(classifier.fit(None, None, domain=cells, past_policy=past))
    for _ in range(n_rounds):
        people, good = draw(rng, n)
        first, second = (decide(classifier, people) for classifier in twins)
        assert np.array_equal(first.accepted, second.accepted)
        for classifier in twins:
            classifier.observe(first.ids[first.accepted], good[first.accepted])
    return twins


@pytest.mark.parametrize("n_rounds", [1, 2, 5])
@pytest.mark.parametrize(
    "strategy",
    [FromFunction(sizes), GroupShare(FromFunction(sizes)), EqualGroups()],
    ids=["function", "shares", "equal"],
)
@pytest.mark.parametrize(
    "rule", [SummedAcceptance(0.5), CountedOutcomes(5)], ids=["summed", "counted"]
)
def test_new_cell_is_treated_as_an_empty_cell_of_the_domain(rng, rule, strategy, n_rounds):
    classifier, named = twin_runs(rng, np.zeros(4), n_rounds, coverage=rule, strategy=strategy)
    p = probability(classifier, NEW, NEW_GROUP)
    assert np.array_equal(p, named.policies_[-1].acceptance[-4:])
    assert np.array_equal(p, probability(named, NEW, NEW_GROUP))
    assert np.all(p > 0)
    # Mixed with known cells, in any order: known cells keep their probabilities.
    X, group = np.vstack([NEW, DOMAIN.X])[::-1], np.append(NEW_GROUP, DOMAIN.group)[::-1]
    expected = np.append(p, classifier.policies_[-1].acceptance)[::-1]
    assert np.array_equal(probability(classifier, X, group), expected)
    assert len(classifier.cells_[0]) == len(DOMAIN.X)


def test_replacing_an_exploited_applicant_may_reduce_the_draw():
    """With an exploited applicant less, the budget may allow an explored applicant less."""
    n_reduced = 0
    for n in range(100, 160, 4):
        classifier, named = twin_runs(np.random.default_rng(n), np.zeros(4), 1, n=n, strategy=sizes)
        record, budget = classifier.rounds_[0], FdrBudget()
        n_reduced += budget.allowed(1, record.n_exploited * (1 - 1 / n), 0.0) < record.n_explored
        p = probability(classifier, NEW, NEW_GROUP)
        assert np.array_equal(p, named.policies_[-1].acceptance[-4:])
    assert 0 < n_reduced < 15


def past_function(X, group):
    """Return f_0 of the small domain; in new cells it accepts if the second feature is 2."""
    known = {(*x, z): p for x, z, p in zip(DOMAIN.X.tolist(), DOMAIN.group, PAST, strict=True)}
    cells = zip(X.tolist(), group, strict=True)
    return np.array([known.get((*x, z), float(x[1] == 2)) for x, z in cells])


@pytest.mark.parametrize("n_rounds", [1, 3])
def test_new_cell_that_the_past_covers_is_exploited(rng, n_rounds):
    """f_0 accepts it in round 1; later f_t rejects it, because it has no outcomes."""
    covered = past_function(NEW, NEW_GROUP) > 0.5
    assert covered.tolist() == [False, True, True, False]
    classifier, named = twin_runs(rng, covered, n_rounds, coverage=SummedAcceptance(0.5))
    as_function = FiniteClassifier(REVENUE)
    as_function.fit(None, None, domain=(DOMAIN.X, DOMAIN.group), past_policy=past_function)
    classifier._past = as_function._past
    p = probability(classifier, NEW, NEW_GROUP)
    assert np.array_equal(p, named.policies_[-1].acceptance[-4:])
    assert np.array_equal(p[covered], np.full(2, float(n_rounds == 1)))
    assert np.all((p[~covered] > 0) & (p[~covered] < 1))


def test_probability_in_the_place_of_an_average_applicant(rng):
    """An applicant of every cell is replaced in turn; the draw is exact for the replacement."""
    people, _ = draw(rng, 2000)
    cell = DOMAIN.cell_of(people)

    def decided(X, group):
        classifier = without_history(budget=FdrBudget(alpha=0.3), strategy=sizes)
        return classifier, classifier.decide(X, sensitive_features=group)

    expected = np.zeros(4)
    for c, heads in enumerate(np.bincount(cell)):
        i = int(np.flatnonzero(cell == c)[0])
        for k in range(4):
            X, group = people.X.copy(), people.group.copy()
            X[i], group[i] = NEW[k], NEW_GROUP[k]
            expected[k] += heads / 2000 * decided(X, group)[1].propensity[i]
    classifier, batch = decided(people.X, people.group)
    assert probability(classifier, NEW, NEW_GROUP) == pytest.approx(expected, rel=0.01)
    equal = batch.explored.sum() / (~batch.exploit).sum()  # the control: the same g for all
    assert np.all(abs(equal / expected - 1) > 0.1)


def test_questions_change_no_decision_and_work_after_loading(rng):
    classifier, other = (run(np.random.default_rng(5), n_rounds=3) for _ in range(2))
    p = probability(classifier, NEW, NEW_GROUP)
    assert np.array_equal(probability(loads(dumps(classifier)), NEW, NEW_GROUP), p)
    people, _ = draw(rng, 300)
    batch, again = decide(classifier, people), decide(other, people)
    assert np.array_equal(batch.accepted, again.accepted)
    assert np.array_equal(batch.propensity, again.propensity)


def test_later_outcomes_and_forgetting_do_not_change_it(rng):
    classifier = fitted(rng)
    people, good = draw(rng, 300)
    batch = decide(classifier, people)
    X, group = np.vstack([NEW, DOMAIN.X]), np.append(NEW_GROUP, DOMAIN.group)
    before = probability(classifier, X, group)
    classifier.observe(batch.ids[batch.accepted], good[batch.accepted])
    assert np.array_equal(probability(classifier, X, group), before)
    classifier.forget(batch.ids[:10])
    assert np.array_equal(probability(classifier, X, group), before)


def test_it_needs_a_round_and_known_groups(rng):
    classifier = fitted(rng)
    with pytest.raises(InputError, match="no round"):
        probability(classifier, NEW, NEW_GROUP)
    people, _ = draw(rng, 300)
    decide(classifier, people)
    with pytest.raises(InputError, match="'c'"):
        probability(classifier, NEW, np.full(4, "c"))
