"""What rounds and certificates are in words: every value is there, and empty is empty."""

from __future__ import annotations

import math

import pytest

from fairchance.core.decisions import Note
from fairchance.methods.certified.classifier import RestartedTests
from fairchance.words import rounds
from round_records import a_pilot, a_round


def said(record, *more):
    about = rounds.about_certificate if hasattr(record, "status") else rounds.about_round
    return " ".join(about(record, *more))


@pytest.mark.parametrize(
    ("record", "parts"),
    [
        (a_pilot(more_outcomes=120.4), ["roughly 120 "]),
        (a_pilot(group="B", more_outcomes=0.2), ["B", "1 more outcome"]),
        (a_pilot(tests_began=7, n_tested=9, restart_reason="correction"), ["round 7", "9"]),
        (a_pilot(status="certified", alpha=0.125, delta=0.05), ["95 %", "12.5 %"]),
        (a_pilot(status="certified", group="B"), ["B"]),
        (a_round(estimated_fdr=0.0734, n_outcomes=1200), ["7.34 %", "1,200"]),
        (a_round(notes=(Note("exposure", {"n_explored": 3, "n_wanted": 8}),)), ["3", "8"]),
    ],
)
def test_values_of_a_record_are_named(record, parts):
    assert all(part in said(record) for part in parts)


@pytest.mark.parametrize("kind", ["union", "incumbent"])
def test_a_certificate_names_the_part_of_todays_process(kind):
    own = said(a_pilot(status="certified", share=0.117))
    beside = said(a_pilot(status="certified", share=0.117, kind=kind))
    for part in ("all whom today's process accepts", "a rule about one applicant", "ramp is fixed"):
        assert (part in own, part in beside) == (False, True)
    assert ("the best 11.7 % besides" in beside) is (kind == "union")
    assert "a rule about" not in said(a_pilot(kind=kind))


def test_why_the_number_of_outcomes_is_unknown():
    assert said(a_pilot(next_n_tested=0)) != said(a_pilot(next_n_tested=9))
    assert rounds.needed(math.nan, certified=True) == ""
    assert "30" in rounds.needed(30.0, certified=True)
    assert "round 4" in rounds.needed(30.0, decided=4)


def test_one_reason_whatever_names_it():
    """A record says why tests began again; the ledger has the kind of the entry that did it."""
    assert rounds.reason("drift") == rounds.reason("outcomes")
    assert "outcomes" not in (rounds.reason(kind) for kind in ("correction", "outcomes"))
    assert rounds.reason("drift") in said(a_pilot(tests_began=7, restart_reason="drift"))
    lost = RestartedTests("A", 7, 526)
    for why in ("correction", "outcomes"):
        assert rounds.reason(why) in rounds.restart_cost([lost], why)


def test_the_bound_of_a_round_without_a_certificate_is_named():
    assert "15 %" in said(a_round(), 0.15)
    assert said(a_round(estimated_fdr=0.1)) != said(a_round(estimated_fdr=0.1, calibrated=False))


@pytest.mark.parametrize(
    ("code", "facts"),
    [
        ("fit", {"says": "a learner's own words"}),
        ("constraints_missed", {"max_fdr": 0.1, "per_group": True, "disparity": 0.3}),
        ("none_known", {"n_people": 512, "largest": 0.25, "threshold": 1}),
        ("none_worth_accepting", {"max_fdr": 0.1, "good": "repaid"}),
        ("barred", {"n_barred": 3, "n_candidates": 9, "amount": 3, "exposure": 500.0}),
        ("of another version", {"n": 17}),
    ],
)
def test_facts_of_a_note_are_named(code, facts):
    text = rounds.note_text(Note(code, facts | {"max_disparity": 0.2}))
    assert all(str(value) in text for value in facts.values() if not isinstance(value, bool))


def test_a_clause_becomes_a_sentence():
    assert rounds.sentence("") == ""
    assert rounds.needed(math.inf) == rounds.needed(math.nan)
