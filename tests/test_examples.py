"""Examples run as they stand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("many_classes.py", ()),
        ("risk_limits.py", ()),
        pytest.param("late_outcomes.py", ("1",), marks=pytest.mark.long),
    ],
)
def test_an_example_runs(name, arguments):
    command = [sys.executable, "-W", "error::DeprecationWarning", EXAMPLES / name, *arguments]
    one_thread = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=one_thread)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 5
