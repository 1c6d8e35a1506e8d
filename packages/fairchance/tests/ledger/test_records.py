"""Records of rounds in a ledger: they are read back as they were, or not at all."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from fairchance.core.decisions import CurvePoint, Note
from fairchance.errors import LedgerError
from fairchance.ledger.base import Entry, to_json
from fairchance.ledger.records import read_rounds
from round_records import a_pilot, a_round

RECORDS = [
    a_round(
        thresholds=(0.5, float("inf")), unreachable=(1, 2), notes=(Note("fit", {"says": "x"}),)
    ),
    a_pilot(group="B", curve=(CurvePoint(0.1, 0.2, 0.3, float("nan"), True),)),
    a_pilot(threshold=float("inf"), notes=(Note("barred", {"n_barred": 2}),)),
]


def batch(header):
    return Entry(3, "batch", "b", "", "", header, b"", b"", b"")


@pytest.mark.parametrize("record", RECORDS, ids=["round", "group", "pilot"])
def test_a_record_is_read_back_as_it_was(record):
    (again,) = read_rounds(batch(to_json({"rounds": [asdict(record)]})))
    assert type(again) is type(record)
    assert repr(again) == repr(record)


def test_what_another_class_adds_is_left_out():
    data = asdict(RECORDS[0]) | {"n_cells": 12}
    assert repr(read_rounds(batch(to_json({"rounds": [data]})))) == repr((RECORDS[0],))


@pytest.mark.parametrize("record", RECORDS, ids=["round", "group", "pilot"])
def test_a_damaged_record_is_a_ledger_error(record):
    whole = json.loads(to_json(asdict(record)))
    damaged = [{"rounds": None}, {"rounds": [None]}, {"rounds": [[]]}, {}]
    damaged += [{"rounds": [{k: v for k, v in whole.items() if k != name}]} for name in whole]
    wrong = {"a": 1}  # of no field's type but the group's
    damaged += [{"rounds": [whole | {name: wrong}]} for name in whole if name != "group"]
    damaged += [{"rounds": [whole | {"notes": [{"code": 1, "facts": []}]}]}]
    for header in damaged:
        if header.get("rounds") == [whole]:
            continue
        with pytest.raises(LedgerError, match="entry 3"):
            read_rounds(batch(json.dumps(header)))
