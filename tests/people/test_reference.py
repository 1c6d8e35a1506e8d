"""The typical accepted person, whom reasons compare with."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from secondlook.errors import InputError
from secondlook.ledger.base import to_json
from secondlook.people.reference import Reference


def test_the_reference_is_the_typical_accepted_person():
    accepted = np.array([True, True, True, False, False])
    X = pd.DataFrame(
        {
            "n": [1, 2, 6, 100, 100],
            "gaps": [np.nan, 2.0, 4.0, 9.0, 9.0],
            "none": [np.nan] * 3 + [1.0, 1.0],
            "yes": [True, True, False, False, False],
            "text": ["b", "a", "b", "c", "c"],
            "tie": ["y", "x", None, "z", "z"],
            "empty": [None, None, None, "z", "z"],
        }
    )
    found = Reference.of(X, accepted, ["text", "elsewhere", None])
    expected = (3.0, 3.0, float("nan"), 2 / 3, "b", "x", None)
    assert [repr(one) for one in found.values] == [repr(one) for one in expected]
    assert found.protected == ("text",)
    assert found.allowed.tolist() == [0, 1, 2, 3, 5, 6]
    again = Reference.read(json.loads(to_json(found.as_dict())))
    assert repr(again) == repr(found)
    assert again.is_like(found)
    assert Reference.read(None) is None
    nobody = Reference.of(X, np.zeros(5, np.bool_))
    assert nobody.values[0] == X["n"].mean()
    assert not nobody.is_like(found)
    for column, value in ((0, 3.001), (4, "a"), (6, "a"), (2, 0.0)):
        values = list(found.values)
        values[column] = value
        assert not Reference(found.names, tuple(values), found.protected).is_like(found)
    single = Reference.of(np.array([[1, 2], [3, 4]], np.float32), np.array([True, True]))
    assert single == Reference(("x0", "x1"), (2.0, 3.0))


def test_a_mean_is_nobodys_where_people_are_cells():
    X = pd.DataFrame(
        {"n": [1, 1, 5, 9], "gaps": [np.nan, 2.0, 2.0, 0.0], "t": ["a", "b", "b", "c"]}
    )
    accepted = np.array([True, True, True, False])
    found = Reference.of(X, accepted, most_frequent=True)
    assert found.values == (1.0, 2.0, "b")
    again = Reference.read(json.loads(to_json(found.as_dict())))
    assert again.is_like(found)
    assert not again.is_like(Reference.of(X, accepted))
    assert again.of_same_kind(X, accepted) == found


def test_too_many_columns_are_refused():
    with pytest.raises(InputError, match="at most 32767 columns, got 32768; leave out"):
        Reference.of(np.zeros((2, 32768), np.float32), np.array([True, True]))
