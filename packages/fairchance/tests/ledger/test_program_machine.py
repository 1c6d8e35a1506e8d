"""A program on a ledger survives every order of operations."""

from __future__ import annotations

import pytest

import fairchance as fc
from ledger.program_machine import play

KINDS = {
    "plain": lambda: fc.PartialFeedbackClassifier(
        utility=fc.Revenue(1, 3), budget=fc.FdrBudget(alpha=0.2), random_state=0
    ),
    "coins": lambda: fc.PartialFeedbackClassifier(
        utility=fc.Revenue(1, 3),
        budget=fc.FdrBudget(alpha=0.2),
        exploration="coins",
        random_state=0,
    ),
    "certified": lambda: fc.CertifiedClassifier(alpha=0.3, horizon=6, random_state=0),
    "certified with patience": lambda: fc.CertifiedClassifier(
        alpha=0.3, horizon=6, patience=2, random_state=0
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_program_survives_any_order_of_operations(kind):
    play(KINDS[kind], lives=2, steps=7, opens=kind != "plain")


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_a_program_survives_many_long_lives(kind):
    play(KINDS[kind], lives=15, steps=30, opens=kind != "plain")
