"""Trees from a file, whose nodes must lead to nodes: the code that follows them does not look.

scikit-learn walks trees in compiled code and trusts what it built itself. A file may have been
changed since, and a node that leads nowhere would make it read memory that is not its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from secondlook.errors import InputError

__all__ = ["check_trees"]

_WORDS = 8  # of 32 bits, which say of 256 categories whether they go left


def check_trees(parts: Iterable[Any]) -> None:
    """Raise if one of an estimator's parts has trees that cannot be walked safely."""
    for one in parts:
        if isinstance(one, BaseEstimator):
            own = vars(one)
            safe = (
                ("tree_" not in own or _is_walkable(own["tree_"], own.get("n_features_in_")))
                and ("estimators_" not in own or _fit_together(own))
                and ("_predictors" not in own or _are_walkable(own))
            )
            if not safe:
                raise InputError(
                    f"the trees of a stored {type(one).__name__} do not fit together, so they were "
                    f"changed or are damaged; restore the file or ledger from a backup."
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
    """Say whether trees read as many features as the whole is given, where that does not check."""
    members = np.array(own["estimators_"], object)
    per_round = own.get("n_trees_per_iteration_")
    if per_round is not None and members.shape[1:] != (per_round,):
        return False
    trees = [one for one in members.ravel() if hasattr(one, "tree_")]
    if "estimators_features_" in own:  # each is given its own features, and checks them
        return True
    return all(one.n_features_in_ == own.get("n_features_in_") for one in trees)


def _are_walkable(own: dict[str, Any]) -> bool:
    n_features = own.get("n_features_in_")
    for one in (tree for some in own["_predictors"] for tree in some):
        nodes, sets = one.nodes, one.raw_left_cat_bitsets
        inner = np.flatnonzero(nodes["is_leaf"] == 0)
        mine = nodes[inner]
        by_category = mine["bitset_idx"][mine["is_categorical"] != 0]
        if not (
            nodes.size
            and _lead_on(inner, mine["left"], mine["right"], nodes.size)
            and _among(mine["feature_idx"], n_features)
            and _among(by_category, len(sets))
            and (not by_category.size or sets.shape[1:] == (_WORDS,))
        ):
            return False
    return True


def _lead_on(
    inner: NDArray[np.intp], left: NDArray[Any], right: NDArray[Any], n_nodes: int
) -> bool:
    """Say whether all lead to later nodes, so that a walk ends."""
    return all(bool(np.all((one > inner) & (one < n_nodes))) for one in (left, right))


def _among(values: NDArray[Any], n: Any) -> bool:
    return isinstance(n, int | np.integer) and bool(np.all((values >= 0) & (values < n)))
