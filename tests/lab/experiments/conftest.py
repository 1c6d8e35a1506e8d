"""Reports without pictures, for tests of their words."""

from __future__ import annotations

import pytest


@pytest.fixture
def words_only(monkeypatch):
    """Leave the pictures of results out of reports: drawing them takes seconds."""
    monkeypatch.setattr("secondlook.lab.experiments.figures.draw_all", lambda _: {})
