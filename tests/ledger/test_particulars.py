"""Reasons are counted as by looking at each person, however they are handed in."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from secondlook.errors import InputError
from secondlook.ledger.particulars import Reason, Refusals, count_reasons
from secondlook.people.reasons import decode, encode

NAMES = ["age", "income", "debt", "years", "region", "rent"]


def test_counts_are_those_of_reading_one_by_one():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(400, len(NAMES))) + np.linspace(-1.0, 2.5, len(NAMES))
    kept = encode(np.where(rng.random((400, 1)) < 0.1, np.abs(values), values)).tolist()
    lists = [[name for name, _ in decode(one, NAMES)] for one in kept]
    everything = Counter(name for one in lists for name in one)
    first = Counter(one[0] for one in lists if one)
    whole = count_reasons([kept], NAMES)
    assert (whole.n, whole.n_without) == (400, lists.count([]))
    assert whole.n_without > 0
    assert {one.name: (one.n, one.n_first) for one in whole.reasons} == {
        name: (n, first[name]) for name, n in everything.items()
    }
    assert [one.n for one in whole.reasons] == sorted(everything.values(), reverse=True)
    assert count_reasons([kept[:7], [], kept[7:]], NAMES) == whole


def test_nobody_and_nothing():
    assert count_reasons([], []) == count_reasons([[]], NAMES) == Refusals()
    assert count_reasons([[b"", b""]], NAMES) == Refusals(2, 2)
    (one,) = count_reasons([encode(np.array([[-1.0]])).tolist()], ["age"]).reasons
    assert one == Reason("age", 1, 1)


@pytest.mark.parametrize("kept", [b"abc", encode(np.array([[0.0, -1.0]]))[0]])
def test_what_are_no_reasons_is_said(kept):
    with pytest.raises(InputError, match="are no reasons about 1 columns; verify the ledger"):
        count_reasons([[b"", kept]], ["age"])
