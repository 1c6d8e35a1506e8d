"""Boosted trees as plain arrays, which score alike under any version of any package.

scikit-learn grows the trees; what is kept, stored and scored are arrays of ours. All trees score an
applicant at once (QuickScorer, Lucchese et al., 2015): the leaves of a tree are bits of a word, a
value of a column leaves some of them possible, and the ``and`` over columns leaves one. So a column
needs one search among its thresholds and one row of a table, however many trees there are. That is
quicker than walking the trees in compiled code, for one applicant and for a million.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier

from fairchance.core.saved import saved
from fairchance.errors import InputError

__all__ = ["MOST_LEAVES", "BoostedTrees", "EncodedColumn", "GradientBoosting", "with_encodings"]

Floats = NDArray[np.float64]
Positions = NDArray[np.int32]
Words = NDArray[np.unsignedinteger]

MOST_LEAVES = 64  # of a tree; each is a bit
_ROWS = 2_048  # applicants at a time, so that what is made of them stays in the cache


@saved
@dataclass(frozen=True, eq=False)
class EncodedColumn:
    """The mean outcome of applicants with each value of a column, if more than one has it."""

    column: int
    values: Floats
    means: Floats
    otherwise: float

    def encode(self, x: Floats) -> Floats:
        """Return the mean of each value; ``otherwise`` for values that are missing or rare."""
        if not self.values.size:
            return np.full(x.size, self.otherwise)
        at = np.minimum(np.searchsorted(self.values, x), self.values.size - 1)
        return np.where(self.values[at] == x, self.means[at], self.otherwise)


def with_encodings(X: Floats, encoded: tuple[EncodedColumn, ...]) -> Floats:
    """Return features followed by their encodings."""
    if not encoded:
        return X
    return np.column_stack([X, *(column.encode(X[:, column.column]) for column in encoded)])


@saved
class GradientBoosting(HistGradientBoostingClassifier):  # type: ignore[misc]
    """scikit-learn's gradient boosting with its defaults, to be cloned and fitted.

    It has one parameter, so a clone of a stored one has the others as the running version does.
    """

    def __init__(self, random_state: int = 0) -> None:
        super().__init__(random_state=random_state)


@saved
@dataclass(frozen=True, eq=False)
class BoostedTrees:
    """Log-odds as a sum over trees, from the columns and their encodings.

    An applicant goes from a node to the left if ``x ≤ threshold`` or, for a column of categories,
    if the node's set has the category. All arrays but the last four have an element per node, one
    tree after the other.

    Attributes
    ----------
    feature
        The column that a node tests; −1 for a leaf.
    threshold
        The largest value that goes left.
    missing_left
        Whether missing values go left, and categories that are unknown.
    left, right
        Positions of the next nodes.
    value
        What a leaf adds to the log-odds.
    ends
        Where each tree ends.
    categories
        Columns of categories, with their categories.
    sets
        For each node that tests categories, which of the column's go left.
    encoded
        Columns that trees also see by their mean outcomes.
    baseline
        Log-odds before the first tree.
    n_features
        Columns that the trees see.
    """

    reads_group: ClassVar[bool] = False
    feature: Positions
    threshold: Floats
    missing_left: NDArray[np.bool_]
    left: Positions
    right: Positions
    value: Floats
    ends: NDArray[np.int64]
    categories: tuple[tuple[int, Floats], ...]
    sets: NDArray[np.bool_]
    encoded: tuple[EncodedColumn, ...]
    baseline: float
    n_features: int

    @staticmethod
    def of(
        model: HistGradientBoostingClassifier, encoded: tuple[EncodedColumn, ...] = ()
    ) -> BoostedTrees:
        """Return the trees of a fitted model of two classes; ``MOST_LEAVES`` is the most."""
        trees = [tree for (tree,) in model._predictors]
        nodes = np.concatenate([tree.nodes for tree in trees])
        sizes = np.array([tree.nodes.size for tree in trees], np.int64)
        ends = np.cumsum(sizes)
        first, inner = np.repeat(ends - sizes, sizes), nodes["is_leaf"] == 0
        column, categories = _columns(model)
        return BoostedTrees(
            feature=np.where(inner, column[nodes["feature_idx"]], -1).astype(np.int32),
            threshold=np.where(inner, nodes["num_threshold"], 0.0),
            missing_left=nodes["missing_go_to_left"] != 0,
            left=np.where(inner, first + nodes["left"], 0).astype(np.int32),
            right=np.where(inner, first + nodes["right"], 0).astype(np.int32),
            value=np.where(inner, 0.0, nodes["value"]),
            ends=ends,
            categories=categories,
            sets=np.concatenate([_sets(tree) for tree in trees]),
            encoded=encoded,
            baseline=float(np.ravel(model._baseline_prediction)[0]),
            n_features=int(model.n_features_in_),
        )

    def log_odds(self, X: Any) -> Floats:
        """Return the log-odds of a good outcome."""
        X = np.asarray(X, np.float64)
        leaves, total = self._leaves, np.empty(len(X))
        if X.shape[1] + len(self.encoded) != self.n_features:
            raise _damaged()
        for at in range(0, len(X), _ROWS):
            rows = slice(at, at + _ROWS)
            total[rows] = leaves.sums(with_encodings(X[rows], self.encoded))
        return total + self.baseline

    def score(self, X: Any, group: Any) -> Floats:  # noqa: ARG002
        """Return the likelihood of a good outcome."""
        return np.asarray(expit(self.log_odds(X)))

    def __getstate__(self) -> dict[str, Any]:  # without the tables, which follow from the rest
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def _leaves(self) -> _Leaves:
        """The tables that score; raise if the arrays are not trees, since a file may be damaged."""
        try:
            if not self._are_trees():
                raise _damaged()
            return self._tables()
        except (AttributeError, IndexError, TypeError, ValueError) as error:
            raise _damaged() from error

    def _are_trees(self) -> bool:
        """Return whether each node but the first of a tree follows one node before it."""
        n, inner = self.feature.size, np.flatnonzero(self.feature >= 0)
        sizes = np.diff(self.ends, prepend=0)
        if n != sizes.sum() or np.any(sizes < 1) or np.any(self.feature >= self.n_features):
            return False
        per_node = (self.threshold, self.missing_left, self.left, self.right, self.value)
        children = np.concatenate([self.left[inner], self.right[inner]])
        others = np.setdiff1d(np.arange(n), self.ends - sizes)
        last = np.repeat(self.ends, sizes)[inner]
        return (
            all(part.shape == (n,) for part in per_node)
            and np.array_equal(np.sort(children), others)
            and bool(np.all((children > np.tile(inner, 2)) & (children < np.tile(last, 2))))
        )

    def _tables(self) -> _Leaves:
        sizes = np.diff(self.ends, prepend=0)
        tree = np.repeat(np.arange(sizes.size), sizes)
        leaf, inner = self.feature < 0, np.flatnonzero(self.feature >= 0)
        n_leaves = np.bincount(tree[leaf])
        if n_leaves.max() > MOST_LEAVES:
            raise _damaged()
        first = np.cumsum(n_leaves) - n_leaves
        bit = (np.cumsum(leaf) - 1 - first[tree])[leaf].astype(np.uint64)
        below = np.zeros(tree.size, np.uint64)  # the leaves that can be reached from a node
        below[leaf] = np.left_shift(np.uint64(1), bit)
        left, right = self.left[inner], self.right[inner]
        while np.any(below[inner] != (joined := below[left] | below[right])):
            below[inner] = joined
        kind = np.min_scalar_type(2 ** int(n_leaves.max()) - 1)
        below = below.astype(kind)
        tests = [
            self._column_tests(column, inner[self.feature[inner] == column], tree, below)
            for column in np.unique(self.feature[inner]).tolist()
        ]
        return _Leaves(tests, below[self.ends - sizes], first, self.value[leaf])

    def _column_tests(
        self, column: int, at: NDArray[np.intp], tree: NDArray[np.intp], below: Words
    ) -> _ColumnTests:
        """Return the tests of one column, which the nodes ``at`` hold."""
        known = dict(self.categories)
        if column in known:
            cuts = known[column]
            tested = np.flatnonzero(np.isin(self.feature, list(known)))
            to_left = self.sets[np.searchsorted(tested, at)][:, np.arange(cuts.size)]
        else:
            cuts, rank = np.unique(self.threshold[at], return_inverse=True)
            to_left = np.arange(cuts.size + 1) <= rank[:, None]
        to_left = np.column_stack([to_left, self.missing_left[at]])
        rest = ~np.where(to_left, below[self.right[at], None], below[self.left[at], None])
        trees, starts = np.unique(tree[at], return_index=True)
        keep = np.full((to_left.shape[1], self.ends.size), ~below.dtype.type(0))
        keep[:, trees] = np.bitwise_and.reduceat(rest, starts, axis=0).T
        return _ColumnTests(column, cuts, column in known, keep)


@dataclass(frozen=True)
class _ColumnTests:
    """All tests of one column: for each of its values and each tree, the leaves left possible.

    A value's row of ``keep`` is the number of cuts below it, or of its category; the last row is
    for missing values.
    """

    column: int
    cuts: Floats
    category: bool
    keep: Words

    def leaves(self, x: Floats) -> Words:
        row = np.searchsorted(self.cuts, x)
        if self.category:
            row[self.cuts.take(row, mode="clip") != x] = -1
        else:
            row[np.isnan(x)] = -1
        return self.keep.take(row, axis=0)


@dataclass(frozen=True)
class _Leaves:
    """The leaves of all trees: which there are, where each tree's first one is, and the values."""

    tests: list[_ColumnTests]
    of_tree: Words
    first: NDArray[np.intp]
    value: Floats

    def sums(self, X: Floats) -> Floats:
        """Return the sum of the values of each applicant's leaves, one of each tree."""
        possible = np.tile(self.of_tree, (len(X), 1))
        for tests in self.tests:
            possible &= tests.leaves(X[:, tests.column])
        # One bit is left, and as many bits are below it as there are leaves before its leaf.
        leaf = np.bitwise_count(possible - possible.dtype.type(1)) + self.first
        return np.asarray(self.value.take(leaf).sum(axis=1))


def _columns(
    model: HistGradientBoostingClassifier,
) -> tuple[NDArray[np.intp], tuple[tuple[int, Floats], ...]]:
    """Return the column of each feature that a model's trees see, and categories of columns."""
    if model._preprocessor is None:
        return np.arange(model.n_features_in_), ()
    of_categories = np.flatnonzero(model.is_categorical_)  # these come first
    encoder = model._preprocessor.named_transformers_["encoder"]
    categories = tuple(
        (int(column), values[~np.isnan(values)])
        for column, values in zip(of_categories, encoder.categories_, strict=True)
    )
    return np.concatenate([of_categories, np.flatnonzero(~model.is_categorical_)]), categories


def _sets(tree: Any) -> NDArray[np.bool_]:
    """Return which categories go left, for each node of a tree that tests categories."""
    rows = tree.nodes["bitset_idx"][tree.nodes["is_categorical"] != 0]
    octets = tree.raw_left_cat_bitsets.astype("<u4").view(np.uint8)
    return np.asarray(np.unpackbits(octets, axis=1, bitorder="little")[rows], np.bool_)


def _damaged() -> InputError:
    return InputError(
        "the trees of a stored ranking do not fit together, so they were changed or are damaged; "
        "restore the file or ledger from a backup."
    )
