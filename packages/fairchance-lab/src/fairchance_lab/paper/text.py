"""The paper's own choices where our defaults differ, as options of Algorithm 1's methods.

Its appendix: the bound on FDR, and parity if asked, hold in the fit, for likelihoods; one cut for
all groups maximises revenue on a held-out half of all labelled data, the history included, and no
bound holds there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairchance.methods.options import why_useless

__all__ = ["PAPER_TEXT", "with_paper_text"]

# What ``paper_text = true`` sets.
PAPER_TEXT: dict[str, Any] = {
    "bounds_in": "fit",
    "fairness_in": "fit",
    "min_outcomes": "none",
    "coverage": "sum-of-g",
    "strategy_reading": "product",
    "weight_cap": "none",
    "first_round": "cut",
}


def with_paper_text(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with the paper's choices in place of ``paper_text``, if that is on.

    Keys that are set stay as they are, and choices without an effect beside them are left out.

    Examples
    --------
    >>> list(with_paper_text({"paper_text": True, "weights": "none"}))
    ['bounds_in', 'min_outcomes', 'coverage', 'first_round', 'weights']
    """
    own = {key: value for key, value in options.items() if key != "paper_text"}
    if not options.get("paper_text"):
        return own
    together = PAPER_TEXT | own
    return {
        key: value
        for key, value in together.items()
        if key in own or not why_useless(key, together)
    }
