"""Fit any scikit-learn classifier as a likelihood model, and read it back as one."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from fairchance.core.decisions import Note
from fairchance.errors import InputError, LearningWarning
from fairchance.frames import subset
from fairchance.learners.ensemble import SelectionAwareEnsemble
from fairchance.learners.logistic import ConstrainedLogistic
from fairchance.learners.per_group import PerGroup
from fairchance.learners.trees import MOST_LEAVES, BoostedTrees, GradientBoosting
from fairchance.learners.watch import note_fit
from fairchance.people.columns import Expansion
from fairchance.people.likelihoods import (
    EstimatorLikelihood,
    GroupedLikelihood,
    Likelihood,
    LinearLikelihood,
    expanded,
)

__all__ = [
    "as_likelihood",
    "check_keeps_nobody",
    "fit_arguments",
    "fit_likelihood",
    "reads_raw_columns",
]

# Classes of scikit-learn that hold rows of the data once they are fitted.
_KEEP_ROWS = {
    "BaseLabelPropagation",
    "BaseLibSVM",
    "GaussianProcessClassifier",
    "KNNImputer",
    "KernelPCA",
    "NeighborsBase",
    "Nystroem",
}


def reads_raw_columns(learner: Any) -> bool:
    """Return whether a learner accepts a dataframe with columns that are not numbers."""
    if isinstance(learner, PerGroup):
        return reads_raw_columns(learner.learner)
    return isinstance(learner, Pipeline)


def check_keeps_nobody(model: Any, role: str = "learner") -> None:
    """Raise if a model keeps rows that it was fitted to, as nearest neighbours do."""
    parts = [model, *model.get_params(deep=True).values()] if hasattr(model, "get_params") else []
    for part in parts:
        if _KEEP_ROWS & {kind.__name__ for kind in type(part).__mro__}:
            raise InputError(
                f"{type(part).__name__} keeps people it was fitted to, so they stay in the "
                f"policies; nobody was forgotten, start again with a {role} that keeps "
                f"parameters, such as LogisticRegression."
            )


def fit_likelihood(
    learner: Any,
    X: Any,
    outcome: NDArray[np.int8],
    weight: NDArray[np.float64],
    group: NDArray[np.intp],
    n_groups: int,
    *,
    expansion: Expansion | None = None,
    rejected: Any = None,
    from_history: NDArray[np.bool_] | None = None,
) -> tuple[Likelihood, tuple[Note, ...]]:
    """Fit a learner to weighted rows; rows of weight zero are left out.

    If features are codes, the learner gets the numbers of their expansion. A learner whose ``fit``
    takes ``rejected`` gets the features of applicants that the past rejected; one whose ``fit``
    takes ``from_history`` gets which rows are of the history.

    Returns the likelihood and the warnings of the fit. A
    ``ConstrainedLogistic`` is refitted in place, so that it can start from its last solution; any
    other learner is cloned first, so that logged policies stay unchanged.
    """
    note_fit()
    used = weight > 0
    if isinstance(learner, ConstrainedLogistic):
        model, rows = learner, np.ones_like(used)  # skips rows of weight zero without a copy
    else:
        model, rows = clone(learner), used
    arguments = fit_arguments(model, weight[rows], group[rows])
    if rejected is not None and has_fit_parameter(model, "rejected"):
        arguments["rejected"] = rejected if expansion is None else expansion.numbers(rejected)
    if from_history is not None and has_fit_parameter(model, "from_history"):
        arguments["from_history"] = from_history[rows]
    with (
        warnings.catch_warnings(record=True) as caught,
        config_context(enable_metadata_routing=False),
    ):
        warnings.simplefilter("always")
        features = subset(X, rows)
        if expansion is not None:
            features = expansion.numbers(features)
        model.fit(features, outcome[rows], **arguments)
    said = [str(w.message) for w in caught if issubclass(w.category, LearningWarning)]
    for other in caught:
        if not issubclass(other.category, LearningWarning):
            warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)
    notes = tuple(Note("fit", {"says": text}) for text in said)
    return expanded(as_likelihood(model, n_groups), expansion), notes


def fit_arguments(
    model: Any, weight: NDArray[np.float64], group: NDArray[np.intp]
) -> dict[str, Any]:
    """Return the keyword arguments that a model's ``fit`` takes among weights and groups."""
    arguments: dict[str, Any] = {}
    target, prefix = model, ""
    if isinstance(model, Pipeline):
        name, target = model.steps[-1]
        prefix = f"{name}__"
    if has_fit_parameter(target, "sample_weight"):
        arguments[f"{prefix}sample_weight"] = weight
    elif np.ptp(weight) > 1e-12:
        raise InputError(
            f"the learner {type(target).__name__} does not take sample_weight, which weighting by "
            f"acceptance probability needs; choose another learner, or pass weights='none'."
        )
    if has_fit_parameter(target, "sensitive_features"):
        arguments[f"{prefix}sensitive_features"] = group
    return arguments


def as_likelihood(model: Any, n_groups: int) -> Likelihood:
    """Return the likelihood of the good outcome (class 1) under a fitted model.

    Linear models become coefficients and boosted trees arrays of ours, which are quick to score
    and plain to store. Any other model is stored as it is, so it needs the versions that made it.
    """
    if isinstance(model, PerGroup):
        parts = [as_likelihood(model.model_of(z), n_groups) for z in range(n_groups)]
        return GroupedLikelihood(tuple(parts))
    if isinstance(model, SelectionAwareEnsemble):
        likelihood: Likelihood = model.likelihood_
        return likelihood
    if isinstance(model, ConstrainedLogistic | LogisticRegression) and len(model.classes_) == 2:
        coef = np.array(model.coef_[0], dtype=np.float64)
        return LinearLikelihood(coef, float(np.ravel(model.intercept_)[0]))
    if type(model) in (HistGradientBoostingClassifier, GradientBoosting) and _are_small(model):
        return BoostedTrees.of(model)
    return EstimatorLikelihood(model, int(np.flatnonzero(model.classes_ == 1)[0]))


def _are_small(model: Any) -> bool:
    """Return whether the trees of a model fit into arrays of ours."""
    return len(model.classes_) == 2 and all(
        tree.get_n_leaf_nodes() <= MOST_LEAVES for (tree,) in model._predictors
    )
