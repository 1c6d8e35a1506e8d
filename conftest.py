"""What the tests of both packages share."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# The same examples on every machine; HYPOTHESIS_PROFILE=default looks for new ones, and for more of
# them. No profile limits time, which a busy machine exceeds.
settings.register_profile("same", derandomize=True, max_examples=50)
profile = settings.get_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
slow = [HealthCheck.too_slow]
settings.register_profile("any speed", profile, deadline=None, suppress_health_check=slow)
settings.load_profile("any speed")


def pytest_addoption(parser):
    """Add an option for what commands print."""
    words = "rewrite kept texts and guides from what commands print now"
    parser.addoption("--update-golden", action="store_true", help=words)


def pytest_terminal_summary(terminalreporter):
    """Say loudly that pages were not checked, if there is no browser."""
    skipped = terminalreporter.stats.get("skipped", ())
    n = sum("no Chromium" in str(report.longrepr) for report in skipped)
    if n:
        terminalreporter.section("PAGES WERE NOT CHECKED", red=True, bold=True)
        text = f"{n} tests of pages were skipped, since there is no Chromium: run `make browser`."
        terminalreporter.line(text, red=True, bold=True)
