"""The fixtures of the product's tests, which are on the path, for tests of the guides."""

from __future__ import annotations

from browser.checks import browser
from fixtures import new_database, postgres, url

__all__ = ["browser", "new_database", "postgres", "url"]
