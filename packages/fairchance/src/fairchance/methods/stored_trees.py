"""Checks of stored decision trees, whose nodes must lead to existing nodes.

scikit-learn walks trees in compiled code without checks, because it built them itself. A file may
have been changed, and a node that leads nowhere would make that code read memory out of bounds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from fairchance.errors import InputError

__all__ = ["check_trees"]

_WORDS = 8  # of 32 bits: for each of 256 categories, whether it goes left


def check_trees(parts: Iterable[Any]) -> None:
    """Raise if a part of an estimator has trees that cannot be walked safely."""
    for part in parts:
        if isinstance(part, BaseEstimator):
            own = vars(part)
            safe = (
                ("tree_" not in own or _is_walkable(own["tree_"], own.get("n_features_in_")))
                and ("estimators_" not in own or _fit_together(own))
                and ("_predictors" not in own or _are_walkable(own))
            )
            if not safe:
                raise InputError(
                    f"the trees of a stored {type(part).__name__} do not fit together, so they "
                    f"were changed or are damaged; restore the file or ledger from a backup."
                )


def _is_walkable(tree: Any, n_features: Any) -> bool:
    if tree.n_features != n_features or not 0 < tree.node_count <= tree.capacity:
        return False
    left, right, feature = tree.children_left, tree.children_right, tree.feature
    inner = np.flatnonzero(left != -1)
    return _lead_on(inner, left[inner], right[inner], left.size) and _among(
        feature[inner], tree.n_features
    )


def _fit_together(own: dict[str, Any]) -> bool:
    """Return whether the trees of an ensemble read its features, if they do not check that."""
    members = np.array(own["estimators_"], object)
    per_round = own.get("n_trees_per_iteration_")
    if per_round is not None and members.shape[1:] != (per_round,):
        return False
    if "estimators_features_" in own:  # each member gets its own features, and checks them
        return True
    trees = [member for member in members.ravel() if hasattr(member, "tree_")]
    return all(tree.n_features_in_ == own.get("n_features_in_") for tree in trees)


def _are_walkable(own: dict[str, Any]) -> bool:
    n_features = own.get("n_features_in_")
    for tree in (tree for trees in own["_predictors"] for tree in trees):
        nodes, sets = tree.nodes, tree.raw_left_cat_bitsets
        inner = np.flatnonzero(nodes["is_leaf"] == 0)
        branches = nodes[inner]
        by_category = branches["bitset_idx"][branches["is_categorical"] != 0]
        if not (
            nodes.size
            and _lead_on(inner, branches["left"], branches["right"], nodes.size)
            and _among(branches["feature_idx"], n_features)
            and _among(by_category, len(sets))
            and (not by_category.size or sets.shape[1:] == (_WORDS,))
        ):
            return False
    return True


def _lead_on(
    inner: NDArray[np.intp], left: NDArray[Any], right: NDArray[Any], n_nodes: int
) -> bool:
    """Return whether all children are later nodes, so that a walk ends."""
    return all(bool(np.all((child > inner) & (child < n_nodes))) for child in (left, right))


def _among(values: NDArray[Any], n: Any) -> bool:
    return isinstance(n, int | np.integer) and bool(np.all((values >= 0) & (values < n)))
