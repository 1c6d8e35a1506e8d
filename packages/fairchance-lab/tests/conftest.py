"""Shared pieces of the lab's tests; helpers of the product's tests are on the path."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(0)
