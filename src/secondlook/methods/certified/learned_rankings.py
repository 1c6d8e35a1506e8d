"""Who looks best, learned from everything known so far, and what a history cannot teach of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from secondlook.learners.wrap import fit_likelihood
from secondlook.methods.certified.own_rows import OwnRows
from secondlook.methods.certified.past_people import PastPeople
from secondlook.people.batches import History
from secondlook.people.likelihoods import Likelihood

__all__ = ["learn_ranking", "missing_words"]


def learn_ranking(
    past: PastPeople, rows: OwnRows, learner: Any, n_groups: int
) -> Likelihood | None:
    """Return a model that ranks people; None if not both outcomes are known.

    Parameters
    ----------
    past
        The history, or a group's part of it.
    rows
        Our own accepted people.
    learner
        What is fitted to both; None means the logistic model that also learns how the past
        selected people.
    n_groups
        How many groups there are.
    """
    at = rows.known()
    outcome = np.concatenate([past.outcome, rows["outcome"][at]])
    if np.unique(outcome).size < 2:
        return None
    if learner is None:
        return past.rank(rows.X[at], rows["outcome"][at])
    likelihood, _ = fit_likelihood(
        learner,
        np.vstack([past.X, rows.X[at]]),
        outcome,
        np.ones(outcome.size),
        np.concatenate([past.group, rows["group"][at]]),
        n_groups,
    )
    return likelihood


def missing_words(history: History, learner: Any) -> str:
    """Say what a history cannot teach, and what is done instead; empty if it teaches all."""
    if not history.accepted.any():
        return (
            "Nobody in the history was accepted, so nothing is known of anybody; the pilot "
            "accepts at random until enough outcomes are known."
        )
    if learner is None and history.accepted.all():
        return (
            "Nobody in the history was rejected, so how the past selected people cannot be "
            "learned; they are ranked as if it had not."
        )
    return ""
