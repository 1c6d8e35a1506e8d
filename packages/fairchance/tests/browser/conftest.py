"""Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import pytest

from browser.checks import chromium


# Not for the session: Playwright keeps an asyncio loop running, beside which none can start.
@pytest.fixture(scope="module")
def browser():
    """Start Chromium; skip the tests if there is none, which the end of the run says loudly."""
    if chromium() is None:
        pytest.skip("no Chromium")
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield started
        started.close()
