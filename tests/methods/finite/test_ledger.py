"""Names and slots: a ledger says what a dictionary of people would say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secondlook.errors import InputError, UnknownIdError
from secondlook.methods.finite.ledger import Ledger
from secondlook.people.ids import id_bits

N_CELLS = 3


def record(ledger, ids, accepted, cell):
    ids = np.asarray(ids)
    ledger.check_new(ids, id_bits(ids))
    ledger.record(ids, id_bits(ids), np.asarray(accepted), np.asarray(cell, dtype=np.int32))


def observe(ledger, ids, outcomes, **how):
    return ledger.observe(np.asarray(ids), np.asarray(outcomes, dtype=np.int8), N_CELLS, **how)


def three_rounds():
    """Rounds with consecutive and with other names; the person in the middle was rejected."""
    ledger = Ledger()
    record(ledger, [0, 1, 2, 3], [True, False, True, False], [0, 1, 2, 0])
    record(ledger, [9, 7, 30], [True, False, True], [1, 1, 2])
    record(ledger, [4, 5, 6], [True, False, True], [0, 0, 1])
    return ledger


@pytest.fixture
def ledger():
    return three_rounds()


@given(
    order=st.permutations([0, 2, 9, 30, 4, 6]),
    cuts=st.lists(st.integers(0, 6), max_size=3),
    repeat=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_outcomes_are_counted_once_in_any_order_and_in_parts(order, cuts, repeat):
    ledger = three_rounds()
    outcome = {0: 1, 2: 0, 9: 1, 30: 1, 4: 1, 6: 0}
    good, bad = np.zeros(N_CELLS, int), np.zeros(N_CELLS, int)
    for part in np.split(np.array(order), sorted(cuts)):
        told = np.concatenate([part, part]) if repeat else part
        more = observe(ledger, told, [outcome[i] for i in told.tolist()])
        good, bad = good + more[0], bad + more[1]
    assert good.tolist() == [2, 1, 1]
    assert bad.tolist() == [0, 1, 1]


def test_a_correction_moves_the_count(ledger):
    observe(ledger, [9, 6], [1, 1])
    good, bad = observe(ledger, [9], [0], correcting=True)
    assert good.tolist() == [0, -1, 0]
    assert bad.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("ids", "outcomes", "kind", "message"),
    [
        ([1], [1], UnknownIdError, "1 of 2 ids were rejected, first 1"),
        ([0, 7], [1, 1], UnknownIdError, "1 of 3 ids were rejected, first 7"),
        ([5, 6], [1, 1], UnknownIdError, "were rejected, first 5"),
        ([8], [1], UnknownIdError, "never decided on"),
        ([0, 99], [1, 1], UnknownIdError, "never decided on, .* first 99"),
        ([-1], [1], UnknownIdError, "never decided on"),
        ([0, 0], [1, 0], InputError, "contradict each other for id 0"),
        ([2], [0], InputError, "recorded already and differs"),
    ],
)
def test_what_cannot_have_an_outcome_is_refused_and_nothing_changes(
    ledger, ids, outcomes, kind, message
):
    observe(ledger, [2], [1])
    with pytest.raises(kind, match=message):
        observe(ledger, [4, *ids], [1, *outcomes])
    good, _ = observe(ledger, [4], [1])
    assert good.tolist() == [1, 0, 0]  # it had not been recorded before


def test_what_is_not_recorded_cannot_be_corrected(ledger):
    with pytest.raises(InputError, match="nothing to correct"):
        observe(ledger, [4], [1], correcting=True)


@pytest.mark.parametrize("ids", [[3, 4], [30], [29, 30, 31], [2, 40], [6, 50, 7], [9, 8]])
def test_names_are_used_once(ledger, ids):
    with pytest.raises(InputError, match="were decided on before"):
        record(ledger, ids, [True] * len(ids), [0] * len(ids))


def test_words_are_names_too():
    ledger = Ledger()
    record(ledger, ["ann", "bob"], [True, False], [2, 2])
    assert observe(ledger, ["ann"], [1])[0].tolist() == [0, 0, 1]
    with pytest.raises(UnknownIdError, match="rejected, first 'bob'"):
        observe(ledger, ["bob"], [1])
