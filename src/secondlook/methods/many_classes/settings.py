"""What the options of ``ManyClassClassifier`` may be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.errors import InputError
from secondlook.frames import as_array
from secondlook.learners.per_group import PerGroup
from secondlook.methods.algorithm1.classifier import PartialFeedbackClassifier
from secondlook.methods.algorithm1.settings import check_settings
from secondlook.methods.many_classes.decision_table import (
    DecisionTable,
    as_names,
    check_known,
    labels_of,
)

__all__ = ["accepted_by", "check_missing", "check_options"]

# Options that mean what they mean for two classes, and may be the same.
_SHARED = (
    "budget",
    "coverage",
    "strategy",
    "learner",
    "weights",
    "weight_cap",
    "min_outcomes",
    "first_round",
    "maturity",
    "group_as_feature",
    "group_mode",
    "attributes",
)


def check_options(classifier: Any) -> None:
    """Raise unless every option is one that is allowed; ``read_table`` checks the others."""
    shared = {name: getattr(classifier, name) for name in _SHARED}
    check_settings(PartialFeedbackClassifier(**shared))
    if isinstance(classifier.learner, PerGroup):
        raise InputError(
            "learner must not be PerGroup, which tells two classes apart; give the group as a "
            "feature with group_as_feature=True instead."
        )


def check_missing(classifier: Any, table: DecisionTable) -> None:
    """Raise unless it is said what a mature round counts those as whose outcome has not come."""
    if classifier.maturity is None:
        if classifier.missing is not None:
            raise InputError(
                f"missing={classifier.missing!r} says what outcomes count as that have not come "
                f"when their round is mature; say with maturity= after how many rounds it is."
            )
    elif classifier.missing not in table.classes:
        raise InputError(
            f"maturity={classifier.maturity} needs missing=, the class that outcomes count as "
            f"which have not come by then; the classes are {list(table.classes)}, got "
            f"{classifier.missing!r}."
        )


def accepted_by(classifier: Any, decisions: Any, accepted: Any) -> NDArray[np.bool_]:
    """Say whose outcome a history shows, from the decisions that people got."""
    if accepted is not None or classifier.observed is None:
        raise InputError(
            "decisions tells who was accepted if observed= names the decisions after which "
            "outcomes are seen; name them, and leave accepted out."
        )
    values = np.atleast_1d(as_array(decisions))
    utility = classifier.utility
    named = list(utility) if isinstance(utility, Mapping) else classifier.classes
    named = named if classifier.decisions is None else classifier.decisions
    if named is not None:
        check_known("decisions", labels_of(np.unique(values)), labels_of(named), "decisions")
    return np.isin(values, as_names(labels_of(classifier.observed)))
