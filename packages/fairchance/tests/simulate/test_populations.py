import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit

from fairchance import Revenue
from fairchance.errors import InputError
from fairchance.simulate.people import People
from fairchance.simulate.populations import (
    Binormal,
    Lender,
    PastPopulation,
    constrained_optimum,
    draw_applicants,
)
from fairchance.simulate.streams import Standardisation


class Uniform:
    """A population with uniform P(good) on [0, 1], so that the optimum has a closed form."""

    def draw(self, n, rng):
        return People(rng.random((n, 1)), np.full(n, "A"))

    def probability_good(self, people):
        return people.X[:, 0]

    def probability_accepted_before(self, people):
        return np.ones(len(people))


@pytest.mark.parametrize(
    ("loss", "threshold"),
    [
        (500, 5 / 7),  # break-even is above the threshold of the bound
        (300, 0.7),  # the bound is active: FDR (1 − c) / 2 = 0.15
    ],
)
def test_optimum_against_a_closed_form(loss, threshold, rng):
    best = constrained_optimum(Uniform(), Revenue(200, loss), 0.15, rng=rng)
    worth, _ = quad(lambda p: 200 * p - loss * (1 - p), threshold, 1)
    assert best.threshold == pytest.approx(threshold, abs=3e-3)
    assert best.utility == pytest.approx(worth, rel=0.01)
    assert best.fdr == pytest.approx((1 - threshold) / 2, abs=2e-3)
    assert best.selection_rate == pytest.approx(1 - threshold, abs=3e-3)


def test_accepting_no_one_is_optimal(rng):
    best = constrained_optimum(Uniform(), Revenue(1, 10**9), 0.15, n=1000, rng=rng)
    assert (best.threshold, best.selection_rate) == (np.inf, 0.0)


def test_lender(rng):
    people = Lender(past_penalty=2.0).draw(50_000, rng)
    p, before = (
        Lender().probability_good(people),
        Lender().probability_accepted_before(people),
    )
    in_b = people.group == "B"
    assert in_b.mean() == pytest.approx(0.3, abs=0.01)
    assert before[in_b].mean() < before[~in_b].mean() - 0.2
    # Given the features, the group does not change the probability of repaying.
    twin = People(people.X, np.where(in_b, "A", "B"))
    assert np.array_equal(p, Lender().probability_good(twin))


def test_binormal_base_rate_and_auc(rng):
    population = Binormal(good=0.6, auc=0.8, shares=(("b", 1.0), ("a", 3.0)))
    people = population.draw(20_000, rng)
    p = population.probability_good(people)
    good = rng.random(20_000) < p
    assert good.mean() == pytest.approx(0.6, abs=0.02)
    higher = np.searchsorted(np.sort(people.X[~good, 0]), people.X[good, 0]).mean() / (~good).sum()
    assert higher == pytest.approx(0.8, abs=0.01)
    assert (people.group == "a").mean() == pytest.approx(0.75, abs=0.02)
    assert population.groups == ("a", "b")
    with pytest.raises(InputError, match="auc"):
        Binormal(auc=0.4)


@pytest.mark.parametrize("rejected_are_bad", [False, True])
def test_today_s_policy_earns_what_it_earned_in_the_history(rng, rejected_are_bad):
    """It decided by more than the features; a wild value does not change what the others are."""
    X = rng.lognormal(8, 0.5, size=(4000, 2))
    hidden = rng.normal(size=4000)
    good = rng.random(4000) < expit(np.log(X[:, 0]) - 7 + hidden)
    accepted = np.log(X[:, 1]) + hidden > 8
    past = (X, np.full(4000, "A"), ("income", "savings"), accepted, good[accepted])
    population = PastPopulation(*past, rejected_are_bad=rejected_are_bad)
    drawn = draw_applicants(population, 40_000, rng)
    today = drawn.people.today
    assert today.mean() == pytest.approx(accepted.mean(), abs=0.01)
    assert drawn.outcome[today].mean() == pytest.approx(good[accepted].mean(), abs=0.01)
    # The rejected are worse than like the accepted, since hidden information decided, too.
    assert (population.rejected_good > good[~accepted].mean()) != rejected_are_bad
    assert Standardisation(X.mean(axis=0), X.std(axis=0)).apply(drawn.people).today is today
    wild = X.copy()
    wild[0] = 1e12
    other = PastPopulation(wild, *past[1:], rejected_are_bad=rejected_are_bad)
    differs = other.probability_good(drawn.people) - population.probability_good(drawn.people)
    assert np.abs(differs).mean() < 0.002
