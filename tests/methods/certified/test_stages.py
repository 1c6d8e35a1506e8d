"""Stages of testing: when each freezes its rankings, and whose certificates it drops."""

from __future__ import annotations

import numpy as np
import pytest

from methods.certified.known_truth import Flat, start
from secondlook import CertifiedClassifier
from secondlook.errors import LearningWarning
from secondlook.lab.simulate.populations import draw_applicants
from secondlook.ledger import Program, verify

GOOD = Flat(fdr=0.05)


def rounds(method, rng, n_rounds, n_people):
    """Decide and observe some rounds, and return the last one's accepted with their outcomes."""
    for _ in range(n_rounds):
        batch = draw_applicants(GOOD, n_people, rng)
        decided = method.decide(batch.people.X)
        ids, outcome = decided.ids[decided.accepted], batch.outcome[decided.accepted]
        method.observe(ids, outcome)
    return ids, outcome


@pytest.mark.parametrize(("horizon", "when"), [(20, (1, 2, 4, 8)), (25, (1, 3, 5, 10))])
def test_every_stage_freezes_at_the_same_shares_of_the_horizon(horizon, when, rng):
    """At once, and when a tenth, a fifth and two fifths of the horizon have begun."""
    classifier = start(GOOD, rng, n_history=3000, horizon=horizon)
    (engine,) = classifier._engines
    for began in (1, when[-1] + 1):
        ids, outcome = rounds(classifier, rng, when[-1], n_people=1500)
        assert [one.frozen for one in engine.ladders] == [began - 1 + t for t in when]
        with pytest.warns(LearningWarning, match="testing begins again with round"):
            classifier.correct(ids[:1], 1 - outcome[:1])


def test_a_stage_drops_no_certificate_of_its_own(tmp_path, rng):
    """A correction in a pilot drops nothing, and the first ladder after it is certified."""
    past = draw_applicants(GOOD, 300, rng)
    program = Program.create(
        f"sqlite:///{tmp_path}/lender.db",
        CertifiedClassifier(alpha=0.4, delta=0.2, horizon=40, random_state=0),
        past.people.X,
        past.outcome,
        accepted=np.arange(300) % 2 == 0,
    )
    ids, outcome = rounds(program, rng, 1, n_people=300)
    with pytest.warns(LearningWarning, match="testing begins again with round 2"):
        program.observe(ids[:1], 1 - outcome[:1])
    rounds(program, rng, 2, n_people=300)
    (deployed,) = program.classifier.deployed_
    assert deployed.certified
    assert deployed.ladder.frozen == deployed.stage_began == 2
    with program.ledger.reading("main") as reader:
        says = [one.says["what"] for one in reader.entries(kind="certificate")]
    assert says == ["granted"]
    assert verify(program.ledger, relearn=True).problem is None
