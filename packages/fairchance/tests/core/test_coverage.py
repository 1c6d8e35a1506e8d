"""Rules of coverage: their settings."""

from __future__ import annotations

import numpy as np
import pytest

from fairchance.core.coverage import MeanPastScore, SummedAcceptance, SumOfG
from fairchance.errors import InputError


@pytest.mark.parametrize("rule", [SummedAcceptance, MeanPastScore, SumOfG])
@pytest.mark.parametrize("wrong", [-0.1, np.nan, np.inf])
def test_tau_is_a_number(rule, wrong):
    with pytest.raises(InputError, match=rf"threshold.*got {wrong}"):
        rule(wrong)


def test_reference_size_is_positive():
    with pytest.raises(InputError, match=r"reference_size.*got 0"):
        SummedAcceptance(reference_size=0)
