"""Values that the past overlooked: the rule by brute force, and who is accepted because of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from fairchance import CertifiedClassifier, PartialFeedbackClassifier, Revenue
from fairchance.core.budget import FdrBudget
from fairchance.learners import overlooked
from fairchance.learners.overlooked import (
    NeutralLikelihood,
    Overlooked,
    OverlookedValue,
    find_overlooked,
    much_worse,
)
from fairchance.methods.storage import dumps, loads
from fairchance.words.rounds import note_text


def at_most(k: int, n: int, p: float) -> float:
    """Return P(Binomial(n, p) ≤ k) as a sum."""
    return math.fsum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1))


def by_brute_force(people: NDArray[Any], accepted: NDArray[np.bool_]) -> set[tuple[int, str]]:
    rate, found = accepted.mean(), set()
    for column in range(people.shape[1]):
        for value in {str(x) for x in people[:, column]}:  # text, so that NaN equals itself
            mine = np.array([str(x) == value for x in people[:, column]])
            n, k = int(mine.sum()), int((mine & accepted).sum())
            if k / n < rate / 10 and at_most(k, n, rate / 3) < n / (10 * len(people)):
                found.add((column, value))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_the_rule_agrees_with_brute_force_in_any_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 900
    people = np.column_stack([rng.integers(0, 6, n), rng.integers(0, 30, n), rng.normal(size=n)])
    people[rng.random(n) < 0.15, 1] = np.nan
    accepted = rng.random(n) < rng.uniform(0.3, 0.8)
    accepted &= ~((people[:, 0] == 2) & (rng.random(n) < 0.99))
    accepted &= ~(np.isnan(people[:, 1]) & (seed % 2 == 0))
    found = find_overlooked(people[accepted], people[~accepted])
    assert {(v.column, str(v.value)) for v in found} == by_brute_force(people, accepted)
    for v in found:
        mine = v.has(people)
        assert (v.n_accepted, v.n_rejected) == ((mine & accepted).sum(), (mine & ~accepted).sum())
        assert v.read_as != v.value
    order = rng.permutation(n)
    shuffled = find_overlooked(people[order][accepted[order]], people[order][~accepted[order]])
    assert str(shuffled) == str(found)  # text, since NaN is not equal to itself


def test_most_of_the_rejected_may_be_overlooked() -> None:
    people = np.repeat([[0.0], [1.0], [2.0]], [300, 190, 210], axis=0)
    accepted = np.arange(700) < 260
    found = find_overlooked(people[accepted], people[~accepted], categorical=(0,))
    # Values 1 and 2 were never accepted, and have 400 of 440 rejected applicants between them.
    assert [v.value for v in found] == [2.0, 1.0]
    assert find_overlooked(people, people[:0]) == find_overlooked(people[:0], people) == ()


def test_numbers_beside_each_other_are_a_cut() -> None:
    x = np.arange(2000) % 10
    half, people = np.arange(2000) < 1000, x[:, None].astype(float)
    for seen, values in ((x > 3, []), (x != 3, [3.0]), (~np.isin(x, [2, 7]), [2.0, 7.0])):
        accepted = seen & half
        found = find_overlooked(people[accepted], people[~accepted])
        assert sorted(v.value for v in found) == values


def test_one_accepted_applicant_does_not_end_it() -> None:
    people = np.repeat([[0.0], [1.0]], [900, 90], axis=0)
    accepted = np.arange(990) < 450
    for also in (0, 1, 20):
        accepted[900 : 900 + also] = True
        found = find_overlooked(people[accepted], people[~accepted])
        assert [v.n_accepted for v in found] == [also] * (also < 2)


def left_out(rng: np.random.Generator) -> float:
    """Return the share of rejected that are left out if nobody was excluded."""
    n = 1_500
    people = rng.integers(0, 40, (n, 12)).astype(float)
    good = rng.random(n) < np.where(people[:, 0] % 2 == 0, 0.9, 0.02)  # half of the values are bad
    accepted = rng.random(n) < np.where(good, 0.9, 0.1)
    found = Overlooked.of(people[accepted], people[~accepted])
    return float(found.among(people[~accepted]).mean())


def test_hardly_any_rejected_are_left_out_if_nobody_was_excluded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def mean_share() -> float:
        return float(np.mean([left_out(np.random.default_rng(seed)) for seed in range(40)]))

    assert mean_share() <= 0.01
    # The control: a test at the past's own rate leaves out many of a mostly bad value.
    monkeypatch.setattr(overlooked, "_TESTED", 1.0)
    assert mean_share() > 0.01


def test_much_worse_is_an_exact_binomial_tail() -> None:
    value = OverlookedValue(0, 1.0, 0.0, 0, 80)
    for n, n_others, bad_of_others in ((30, 200, 20), (80, 500, 60), (5, 40, 0)):
        X = np.repeat([[1.0], [0.0]], [n, n_others], axis=0)
        q = 2 * (bad_of_others + 1) / (n_others + 2)
        for n_bad in range(n + 1):
            outcome = np.ones(n + n_others, np.int8)
            outcome[:n_bad] = outcome[n : n + bad_of_others] = 0
            assert much_worse(value, X, outcome) == (1 - at_most(n_bad - 1, n, q) < 0.001)


# Who is accepted.


def applicants(rng: np.random.Generator, n: int, bad_group: bool) -> tuple[pd.DataFrame, Any]:
    """Return applicants of whom a sixth live in the south, and which of them are good."""
    south = rng.random(n) < 1 / 6
    X = pd.DataFrame({"income": rng.normal(size=n), "debt": rng.normal(size=n)})
    X["region"] = np.where(south, "south", "north")
    good = rng.random(n) < 1 / (1 + np.exp(-1 - 3 * X["income"]))
    return X, (good & ~(south & bad_group)).to_numpy().astype(int)


def rates_of_the_south(classifier: Any, *, bad_group: bool = False) -> tuple[list[int], list[int]]:
    """Return how many good and bad applicants of the excluded group each round accepts."""
    rng = np.random.default_rng(3)
    X, good = applicants(rng, 1200, bad_group)
    accepted = rng.random(1200) < np.where(good == 1, 0.9, 0.1)
    accepted &= (X["region"] == "north").to_numpy()
    accepted[np.flatnonzero((X["region"] == "south") & (good == (not bad_group)))[0]] = True
    classifier.fit(X, good, accepted=accepted)
    counts = []
    for _ in range(8):
        X, good = applicants(rng, 600, bad_group)
        batch = classifier.decide(X)
        classifier.observe(batch.ids[batch.accepted], good[batch.accepted])
        taken = batch.accepted & (X["region"] == "south").to_numpy()
        counts.append((int(good[taken].sum()), int((1 - good)[taken].sum())))
    return [n for n, _ in counts], [n for _, n in counts]


METHODS = {
    "certified": lambda: CertifiedClassifier(
        0.15, 0.1, Revenue(200, 500), horizon=8, past_selection="outcome", random_state=0
    ),
    "plain": lambda: PartialFeedbackClassifier(Revenue(200, 500), FdrBudget(0.15), random_state=0),
}


@pytest.mark.parametrize("method", METHODS)
def test_a_group_that_the_past_excluded_is_accepted(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    classifier = METHODS[method]()
    n_good, _ = rates_of_the_south(classifier)
    assert n_good[0] > 10
    assert sum(n_good[4:]) > 100  # of about 60 a round
    note = next(note for note in classifier.rounds_[-1].notes if note.code == "overlooked")
    facts = {"column": "region", "value": "south", "n_accepted": 1, "unread": True}
    assert facts.items() <= note.facts.items()
    assert "applicants with region south" in note_text(note)
    assert isinstance(loads(dumps(classifier)), type(classifier))
    # The control: without the rule hardly any of them is accepted.
    monkeypatch.setattr(overlooked, "_SURPRISE", 1e-300)
    n_good, _ = rates_of_the_south(METHODS[method]())
    assert sum(n_good[:3]) < 30


@pytest.mark.parametrize("method", METHODS)
def test_our_own_outcomes_end_it_if_all_of_the_group_are_bad(method: str) -> None:
    classifier = METHODS[method]()
    _, n_bad = rates_of_the_south(classifier, bad_group=True)
    assert sum(n_bad[1:]) < n_bad[0]
    notes = [note for note in classifier.rounds_[-1].notes if note.code == "overlooked"]
    assert [note.facts["unread"] for note in notes] == [False]
    assert "speak against the value" in note_text(notes[0])


def test_a_neutral_likelihood_does_not_tell_the_value_from_the_commonest() -> None:
    class First:
        reads_group = False

        def score(self, X: Any, group: Any) -> Any:
            return X[:, 0]

    value = OverlookedValue(0, np.nan, 0.25, 0, 80)
    X = np.array([[0.5], [np.nan]])
    model = NeutralLikelihood(First(), Overlooked((value,), (value,), (("x0", None),)))
    assert model.score(X, np.zeros(2, np.intp)).tolist() == [0.5, 0.25]
    assert np.isnan(X[1, 0])  # the applicants themselves are not changed
