"""Both backends keep the contract that is shipped with the library."""

from __future__ import annotations

import pytest

from fairchance.ledger.sql import SqlLedger
from fairchance.testing import LedgerContract


class TestSqlLedger(LedgerContract):
    @pytest.fixture
    def ledger(self, url):
        return SqlLedger(url, make=True)
