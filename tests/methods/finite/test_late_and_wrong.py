"""Outcomes that come late or are recorded wrongly, on cells."""

from __future__ import annotations

import numpy as np
import pytest

from secondlook import FdrBudget, OutcomeNoise, Revenue, SelectionRateParity
from secondlook.errors import InputError
from secondlook.methods.finite import CountedOutcomes, FiniteClassifier
from secondlook.methods.storage import dumps, loads

GOOD = np.array([0.97, 0.9, 0.8, 0.93, 0.6])


def applicants(rng, n):
    cell = rng.integers(5, size=n)
    return cell, (rng.random(n) < GOOD[cell]).astype(int)


def fitted(rng, **options):
    options = {"utility": Revenue(1, 4), "random_state": 0, "gap": 0} | options
    cell, good = applicants(rng, 300)
    return FiniteClassifier(**options).fit(cell, good, accepted=cell < 3), (cell, good)


def counted_by_hand(told, t, maturity):
    """Return good and bad by cell from (round, cell, outcome); None is still to come."""
    table = np.zeros((2, 5), int)
    for number in {one[0] for one in told}:
        mine = [one for one in told if one[0] == number]
        missing = any(outcome is None for _, _, outcome in mine)
        if missing and maturity is not None and t - number <= maturity:
            continue
        for _, cell, outcome in mine:
            if outcome is None and maturity is None:
                continue
            table[1 - (outcome or 0), cell] += 1
    return table


@pytest.mark.filterwarnings("ignore:No cell of these people")
@pytest.mark.parametrize(
    ("maturity", "coverage"), [(None, None), (0, None), (1, CountedOutcomes(8)), (3, None)]
)
def test_a_round_counts_when_it_is_complete_or_mature(maturity, coverage):
    """Bad outcomes come three rounds late; a twin is told by hand what counts in each round."""
    rng = np.random.default_rng(0)
    classifier, (cell, good) = fitted(rng, maturity=maturity, coverage=coverage)
    history = np.flatnonzero(cell < 3)
    people = {int(i): [0, int(cell[i]), int(good[i])] for i in history}
    late = []
    for t in range(1, 8):
        cell, good = applicants(rng, 120)
        batch = classifier.decide(cell)
        policy, record = classifier.policies_[-1], classifier.rounds_[-1]
        table = counted_by_hand(people.values(), t, maturity)
        if t > 1:
            assert record.n_outcomes == table[:, policy.exploit].sum()
            seen = table.sum(axis=0)
            score = np.where(seen, table[0] / np.maximum(seen, 1), table[0].sum() / seen.sum())
            assert policy.score == pytest.approx(score)
        for i in np.flatnonzero(batch.accepted).tolist():
            people[int(batch.ids[i])] = [t, int(cell[i]), None]
            late.append((t + (0 if good[i] else 3), int(batch.ids[i]), int(good[i])))
        due = [(name, outcome) for when, name, outcome in late if when == t]
        classifier.observe(*(list(one) for one in zip(*due, strict=True)))
        for name, outcome in due:
            people[name][2] = outcome
        if t == 3:  # whoever is withdrawn counts nowhere, and nobody waits for them
            gone = [name for when, name, _ in late if when > t][:5]
            classifier.withdraw(gone)
            late = [one for one in late if one[1] not in gone]
            for name in gone:
                del people[name]
        if t == 4:  # nor for the forgotten
            gone = [name for when, name, _ in late if when > t][:3]
            classifier.forget(gone)
            late = [one for one in late if one[1] not in gone]
            for name in gone:
                del people[name]
    assert classifier.n_outcomes_ == sum(outcome is not None for _, _, outcome in people.values())
    again = loads(dumps(classifier))
    cell, _ = applicants(rng, 120)
    assert np.array_equal(again.decide(cell).propensity, classifier.decide(cell).propensity)


def test_pending_left_out_look_better_than_they_are():
    """The control: where bad ones come late, only maturity keeps them from being forgotten."""
    found = {}
    for maturity in (None, 4):
        rng = np.random.default_rng(1)
        classifier, _ = fitted(rng, maturity=maturity, budget=FdrBudget(alpha=0.2))
        for _ in range(4):
            cell, good = applicants(rng, 400)
            batch = classifier.decide(cell)
            known = batch.accepted & (good == 1)
            classifier.observe(batch.ids[known], good[known])
        found[maturity] = classifier.rounds_[-1].estimated_fdr
        share = classifier.policies_[-1].score[2]
        if maturity is None:
            assert share > GOOD[2] + 0.05
        else:
            assert share == pytest.approx(GOOD[2], abs=0.1)
    assert found[None] < found[4]


def counts(share, n=2000):
    """Return outcomes of ``n`` people of each cell of whom a share is good, in whole people."""
    good = np.rint(share * n).astype(int)
    assert good == pytest.approx(share * n)
    cell = np.repeat(np.arange(share.size), n)
    return cell, np.concatenate([(np.arange(n) < k).astype(int) for k in good])


@pytest.mark.parametrize(
    "options",
    [{}, {"hypothesis": "threshold"}, {"fairness": SelectionRateParity(0.5)}],
    ids=["cells", "cuts", "fair"],
)
def test_noise_is_undone_exactly(options):
    """Recorded shares that are just what the noise makes of true ones lead to the true answer."""
    noise = OutcomeNoise(bad_as_good=0.2, good_as_bad=0.05)
    true = np.array([0.96, 0.9, 0.86, 0.8])
    recorded = true * 0.95 + (1 - true) * 0.2
    made = {}
    for name, share, stated in (
        ("true", true, None),
        ("corrected", recorded, noise),
        ("uncorrected", recorded, None),
    ):
        classifier = FiniteClassifier(
            Revenue(1, 4),
            FdrBudget(alpha=0.2, exploit=0.115, slack=0.0),
            noise=stated,
            gap=0,
            random_state=0,
            **options,
        )
        cell, good = counts(share)
        group = np.tile(["A", "B"], cell.size // 2)
        classifier.fit(cell, good, sensitive_features=group)
        classifier.decide(cell[::100], sensitive_features=group[: cell.size // 100])
        made[name] = classifier.rounds_[0], classifier.policies_[0].accepts.tolist()
    (one, f), (other, same), (wrong, another) = made.values()
    for field in ("estimated_utility", "estimated_fdr", "selection_rate"):
        assert getattr(other, field) == pytest.approx(getattr(one, field), abs=1e-9), field
    assert 0 < sum(f) < len(f)
    assert f == same
    assert f != another  # and without a word of the noise it is another answer
    assert wrong.estimated_fdr != pytest.approx(one.estimated_fdr, abs=0.005)


def test_wrong_options_are_refused(rng):
    for options, message in (
        ({"maturity": -1}, "maturity counts rounds and must be 0 or more"),
        ({"maturity": 1.5}, "maturity counts rounds"),
        ({"noise": 0.1}, "noise must be a OutcomeNoise or None"),
    ):
        with pytest.raises(InputError, match=message):
            fitted(rng, **options)
