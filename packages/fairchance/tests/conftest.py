"""The fixtures of all tests of the product."""

from __future__ import annotations

from fixtures import make_classifier, new_database, place, postgres, rng, url
from golden import golden

__all__ = ["golden", "make_classifier", "new_database", "place", "postgres", "rng", "url"]
