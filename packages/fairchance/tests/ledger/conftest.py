"""The place of a ledger in a file."""

from __future__ import annotations

import pytest


@pytest.fixture
def place(tmp_path):
    return f"sqlite:///{tmp_path}/ledger.db"
