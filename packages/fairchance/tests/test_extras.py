"""Packages that may be missing."""

import sys

import pytest

from fairchance.errors import InputError
from fairchance.extras import arrow


def test_without_pyarrow_its_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
    with pytest.raises(InputError, match=r"pyarrow.*'fairchance\[data\]'"):
        arrow("csv")
