"""Estimates of what a policy would have done, from outcomes of applicants that others accepted.

Write A for an accepted applicant, p for the logged probability, π for the policy's, w = π/p, and T
for an applicant who takes the loan if accepted. Mistakes are counted among loans taken: the false
discovery rate is E[πT·bad] / E[πT], with N = Σπ − ΣAw(1 − T), of mean ΣπT, for its denominator.
Every estimate is a function of a few sums over applicants (``SUMS``):

=================  ==============================  =============================================
estimator          false discovery rate            when to use it
=================  ==============================  =============================================
``ips``            ΣAwT·bad / N                    the plainest; its numerator has no bias at all
``self_normalised``  ΣAwT·bad / ΣAwT               never leaves [0, 1], needs no model; the default
``doubly_robust``  Σ(π·f + Aw·(T·bad − f)) / N     least noise if the model f of P(T·bad | x) is
                                                   good; right even if it is not, as p is known
=================  ==============================  =============================================

Profit is what accepting earns over rejecting, per applicant; a loan that is not taken earns 0. It
is linear in the same sums.

Where a log covers a policy, all are equally close to the truth on real data, so the default is the
one that needs no model and stays within its range; where it does not, the doubly robust one is
closest, by the model's word alone (``python -m benchmarks audit``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.audit.log import DecisionLog
from fairchance.audit.models import cross_fitted, few_categories
from fairchance.core.utility import Utility

__all__ = ["DEFAULT", "ESTIMATORS", "MEASURES", "SUMS", "estimators", "fit_bad", "named"]
__all__ += ["row_sums", "standard_error"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Sums = dict[str, Any]

MEASURES = ("selection_rate", "false_discovery_rate", "profit")
ESTIMATORS = ("ips", "self_normalised", "doubly_robust")
DEFAULT = "self_normalised"
# For each applicant: 1, π, A·w, A·w·T, A·w·T·bad, and π·f + A·w·(T·bad − f).
SUMS = ("n", "pi", "aw", "awt", "awb", "dr")

_FOLDS = 3
_STEP = 1e-6


def fit_bad(log: DecisionLog, usable: Bools, rng: np.random.Generator) -> Floats:
    """Return P(T·bad | x) of every applicant, by models that have not seen their outcome.

    The columns are the log's features, or the recorded score if it has none. Acceptance depended on
    the features alone, so the accepted need no weights.
    """
    if log.has_features:
        columns, codes = log.table
        categories = few_categories(columns, codes)
    else:
        assert log.score is not None
        codes, categories = log.score[:, None], []
    bad = log.outcome == 0
    settled = usable & (log.known | log.not_taken)
    return cross_fitted(codes, categories, bad, settled, _FOLDS, rng)


def row_sums(
    log: DecisionLog, pi: Floats, bad: Floats, model: Floats | None
) -> tuple[Floats, tuple[str, ...]]:
    """Return the terms of all sums, a row per applicant, and the estimators that they allow.

    ``bad`` is 1 for a bad outcome, 0 for a good one, and anything without a loan; ``model`` is
    P(T·bad | x), or None.
    """
    a = log.accepted
    terms = np.zeros((len(log), len(SUMS)))
    terms[:, 0], terms[:, 1] = 1.0, pi
    terms[a, 2] = pi[a] / log.propensity[a]
    terms[:, 3] = terms[:, 2] * log.taken
    terms[:, 4] = terms[:, 3] * bad
    if model is None:
        return terms, ESTIMATORS[:-1]
    terms[:, 5] = (pi - terms[:, 2]) * model + terms[:, 4]
    return terms, ESTIMATORS


def estimators(utility: Utility) -> dict[tuple[str, str], Callable[[Sums], Any]]:
    """Return every estimate as a function of the sums, by measure and estimator."""
    good, change = utility.gain_good, utility.gain_bad - utility.gain_good

    def loans(s: Sums) -> Any:
        return s["pi"] - s["aw"] + s["awt"]

    return {
        ("selection_rate", DEFAULT): lambda s: s["pi"] / s["n"],
        ("false_discovery_rate", "ips"): lambda s: s["awb"] / loans(s),
        ("false_discovery_rate", "self_normalised"): lambda s: s["awb"] / s["awt"],
        ("false_discovery_rate", "doubly_robust"): lambda s: s["dr"] / loans(s),
        ("profit", "ips"): lambda s: (good * s["awt"] + change * s["awb"]) / s["n"],
        ("profit", "self_normalised"): lambda s: (
            s["pi"] / s["n"] * (good * s["awt"] + change * s["awb"]) / s["aw"]
        ),
        ("profit", "doubly_robust"): lambda s: (good * loans(s) + change * s["dr"]) / s["n"],
    }


def named(sums: Floats) -> Sums:
    """Return sums by name; the last axis has them in the order of ``SUMS``."""
    return dict(zip(SUMS, np.moveaxis(sums, -1, 0), strict=True))


def standard_error(estimate: Callable[[Sums], Any], terms: Floats) -> float:
    """Return the standard error of an estimate, by the delta method over applicants."""
    sums = terms.sum(axis=0)
    gradient = np.zeros_like(sums)
    for j in np.flatnonzero(sums):
        step = np.zeros_like(sums)
        step[j] = _STEP * abs(sums[j])
        ends = [float(estimate(named(sums + sign * step))) for sign in (1, -1)]
        gradient[j] = (ends[0] - ends[1]) / (2 * step[j])
    return float(np.linalg.norm(terms @ gradient))
