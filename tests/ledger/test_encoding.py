"""Features as a ledger stores them."""

from __future__ import annotations

import pandas as pd
import pytest

from secondlook.errors import InputError
from secondlook.ledger.encoding import FeatureColumns


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
@pytest.mark.parametrize("kind", ["string", "object", "category"])
def test_missing_text_is_stored_as_missing(missing, kind):
    values = ["a", "b", missing] if kind == "object" else pd.array(["a", "b", missing], kind)
    X = pd.DataFrame({"t": pd.Series(values, dtype=kind), "x": [1.0, 2.0, 3.0]})
    columns = FeatureColumns.of(X)
    kept = columns.encode(X)
    assert kept.texts == ['["a"]', '["b"]', "[null]"]
    assert columns.decode(kept.numbers, kept.texts)["t"].to_pylist() == ["a", "b", None]


def test_text_mixed_with_numbers_is_refused():
    X = pd.DataFrame({"t": ["a", None, "b"]})
    strange = pd.DataFrame({"t": ["a", None, pd.NA, 7]}, dtype=object)
    with pytest.raises(InputError, match="the column 't' holds text and 7; a ledger keeps"):
        FeatureColumns.of(X).encode(strange)
