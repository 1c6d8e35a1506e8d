"""Reports without figures, for tests of their text."""

from __future__ import annotations

import pytest


@pytest.fixture
def without_figures(monkeypatch):
    """Leave figures of results out of reports, since drawing them takes seconds."""
    monkeypatch.setattr("secondlook.lab.experiments.figures.draw_all", lambda _: {})
