"""The fixtures of the product's tests, which are on the path, for all tests of the lab."""

from __future__ import annotations

from fixtures import make_classifier, new_database, place, postgres, rng, url
from golden import golden

__all__ = ["golden", "make_classifier", "new_database", "place", "postgres", "rng", "url"]
