"""Chromium, for the tests of pages."""

from __future__ import annotations

from browser.checks import browser

__all__ = ["browser"]
