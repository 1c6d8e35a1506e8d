"""Records of rounds with any values, for tests of what is made of them."""

from __future__ import annotations

import math
from dataclasses import replace

from fairchance.core.decisions import CertifiedRound, Round

_NAN = math.nan

ROUND = Round(
    round=1,
    n_people=100,
    n_exploit_region=0,
    n_exploited=0,
    n_explored=0,
    alpha_exploit=0.09,
    carried=0.0,
    thresholds=(),
    calibrated=True,
    n_outcomes=0,
    effective_sample_size=0.0,
    estimated_fdr=_NAN,
    disparity=0.0,
    feasible=True,
)
PILOT = CertifiedRound(
    round=1,
    group=None,
    status="pilot",
    n_people=100,
    n_accepted=10,
    ladder=0,
    share=0.1,
    log_wealth=1.0,
    threshold=5.0,
    certified_from=_NAN,
    certified_to=_NAN,
    next_share=0.1,
    next_log_wealth=1.0,
    next_threshold=5.0,
    more_outcomes=_NAN,
    delta_spent=0.01,
    n_outcomes=0,
    estimated_fdr=_NAN,
    alpha=0.15,
    delta=0.1,
)


def a_round(**values: object) -> Round:
    """Return the record of a round of Algorithm 1."""
    return replace(ROUND, **values)  # type: ignore[arg-type]


def a_pilot(**values: object) -> CertifiedRound:
    """Return the record of a round of the certified method, a pilot unless values say otherwise."""
    return replace(PILOT, **values)  # type: ignore[arg-type]
