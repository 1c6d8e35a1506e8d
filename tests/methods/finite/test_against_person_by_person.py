"""Algorithm 1 on cells against a slow reading of its box, person by person."""

from __future__ import annotations

import numpy as np
import pytest

from methods.finite.person_by_person import PersonByPerson
from methods.finite.small_domain import DOMAIN, PAST, draw
from secondlook import (
    FdrBudget,
    Revenue,
)
from secondlook.methods.finite import FiniteClassifier, NormalisedG


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("loss", "least"), [(2.5, 0.0), (14.0, 0.6)])
@pytest.mark.filterwarnings("ignore:No classifier with an FDR")
def test_the_same_rounds_as_the_box_person_by_person(seed, loss, least):
    """f_t, EXPLOIT_t and n_explore are the same; who is drawn is up to chance."""
    rng = np.random.default_rng(seed)
    budget = FdrBudget(alpha=0.15, exploit=0.1, min_selection_rate=least, slack=0.005)
    sizes = np.array([1, 2, 3, 1, 2, 1, 1, 4.0])
    classifier = FiniteClassifier(
        Revenue(gain=1, loss=loss),
        budget,
        NormalisedG(threshold=0.25),
        lambda X, score, group: sizes,
        gap=0,
        random_state=seed,
    )
    people, good = draw(rng, 200)
    cells = DOMAIN.cell_of(people)
    taken = PAST[cells] > 0
    classifier.fit(
        people.X,
        good,
        accepted=taken,
        sensitive_features=people.group,
        domain=(DOMAIN.X, DOMAIN.group),
        past_policy=PAST,
    )
    slow = PersonByPerson(PAST.tolist(), 0.25, budget, lambda cell: sizes[cell], loss)
    slow.applied = cells.tolist()
    slow.seen = list(zip(cells[taken].tolist(), good[taken].tolist(), strict=True))
    for t in range(1, 8):
        people, good = draw(rng, 200)
        cells = DOMAIN.cell_of(people)
        f, n_explore = slow.decide(cells.tolist())
        batch = classifier.decide(people.X, sensitive_features=people.group)
        policy = classifier.policies_[-1]
        assert set(np.flatnonzero(policy.exploit)) == slow.exploit, t
        assert set(np.flatnonzero(policy.accepts)) == f, t
        assert batch.explored.sum() == n_explore, t
        if t > 1:
            record = classifier.rounds_[-1]
            estimates = record.estimated_utility, record.estimated_fdr, record.selection_rate
            assert estimates == pytest.approx(slow.estimates), t
        in_f = np.isin(cells, list(f))
        assert np.array_equal(batch.accepted & batch.exploit, in_f)
        assert classifier.coverage_ == pytest.approx(slow.w)
        classifier.observe(batch.ids[batch.accepted], good[batch.accepted])
        shown = zip(cells[batch.accepted].tolist(), good[batch.accepted].tolist(), strict=True)
        slow.seen += list(shown)
    assert len(slow.exploit) > 3  # EXPLOIT has grown
