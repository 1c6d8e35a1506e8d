"""The fixtures of the product's tests, which are on the path, for tests of the guides."""

from __future__ import annotations

from browser.checks import browser
from fixtures import new_database, postgres, url
from guides import path, shell

__all__ = ["browser", "new_database", "path", "postgres", "shell", "url"]
