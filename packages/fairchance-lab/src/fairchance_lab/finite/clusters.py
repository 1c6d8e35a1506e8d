"""Continuous features as cells: clusters of applicants, or leaves of a tree, replace points.

If outcomes change smoothly with the features, applicants who are close to each other can share a
cell. The outcomes within a cluster show how well that works.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.utils import ClassifierTags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from fairchance.core.saved import saved
from fairchance.errors import InputError
from fairchance.frames import UNNAMED, as_array, column, is_missing, read_features, to_frame

__all__ = ["ClusteredDomain"]

Floats = NDArray[np.floating[Any]]
Labels = NDArray[np.int64]


@saved
class ClusteredDomain(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn features into the number of a cell.

    A cell is the prediction of the clusterer or, for an estimator with ``apply``, the leaf of an
    applicant. It does not include the group: a finite domain has a cell per cluster and group.

    Parameters
    ----------
    clusterer
        A scikit-learn clusterer with ``predict`` for new data (KMeans, MiniBatchKMeans,
        GaussianMixture, a Pipeline that ends with one), or a decision tree. None means
        ``KMeans(random_state=0)``. A fitted clusterer is used without fitting it again; ``clone``
        drops the fit, as always in scikit-learn, unless it is wrapped in ``FrozenEstimator``. A
        tree that is not fitted learns from the outcomes of the accepted.

    Attributes
    ----------
    clusterer_
        The fitted clusterer.
    cells_
        Numbers of the cells with applicants at fit.
    purity_
        Result of ``purity`` at fit; None without outcomes. It is low if a cluster is too wide, or
        if outcomes are uncertain given all features; finer clusters help only in the first case.

    Examples
    --------
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> repaid, accepted = [1, 1, 0, 0, 0, 0], [True, True, True, False, True, False]
    >>> domain = ClusteredDomain(KMeans(2, random_state=0)).fit(X, repaid, accepted=accepted)
    >>> cell = domain.transform(X)[:, 0]
    >>> bool(cell[0] == cell[2]), bool(cell[0] == cell[5])
    (True, False)
    >>> np.sort(domain.purity_["purity"]).round(3).tolist()
    [0.667, 1.0]
    """

    def __init__(self, clusterer: Any = None) -> None:
        self.clusterer = clusterer

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        tags.classifier_tags = ClassifierTags(multi_class=False)  # good or bad
        tags.target_tags.required = _learns_from_outcomes(self.clusterer)
        return tags

    def fit(self, X: Any, y: Any = None, *, accepted: Any = None) -> ClusteredDomain:
        """Fit the clusterer to all applicants, or a tree to the accepted, and compute the purity.

        Parameters
        ----------
        X
            Features of all applicants; numbers.
        y
            Outcomes, of which the larger label is good; read only where accepted. NaN or None for
            outcomes that are not known yet. None means that there are no outcomes.
        accepted
            Which applicants were accepted; None means all.
        """
        features = self._features(X, reset=True)
        seen, good = self._outcomes(y, accepted, features.shape[0])
        self.clusterer_ = self._fitted(features, y, seen, good)
        cell = self._cells(features)
        self.cells_ = np.unique(cell)
        self.purity_ = None if y is None else _purity(cell, seen, good)
        return self

    def transform(self, X: Any) -> Labels:
        """Return a column with the cell of each applicant.

        If the clusterer was fitted to other data, a cell may not be in ``cells_``.
        """
        check_is_fitted(self)
        return self._cells(self._features(X, reset=False))[:, None]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:  # noqa: ARG002
        """Return the name of the column, ``cell``."""
        check_is_fitted(self)
        return np.array(["cell"], dtype=object)

    def purity(self, X: Any, y: Any, *, accepted: Any = None) -> NDArray[Any]:
        """Return how far the outcomes within each cell agree.

        Returns
        -------
        A structured array with a row per cell: ``cell``, ``people`` (number of applicants),
        ``seen`` (known outcomes), ``share_good`` among them, and ``purity``, the larger of the
        shares of good and bad; both are NaN without known outcomes.

        Examples
        --------
        >>> domain = ClusteredDomain(KMeans(1)).fit([[0.0], [1.0], [2.0], [3.0]])
        >>> domain.purity([[0.0], [1.0], [2.0]], [1, 0, 1], accepted=[0, 1, 1]).tolist()
        [(0, 3, 2, 0.5, 0.5)]
        """
        check_is_fitted(self)
        features = self._features(X, reset=False)
        if y is None:
            raise InputError("purity needs y: outcomes of the accepted, got None.")
        seen, good = self._outcomes(y, accepted, features.shape[0])
        return _purity(self._cells(features), seen, good)

    def _features(self, X: Any, *, reset: bool) -> Floats:
        features = read_features(
            X, raw=False, encode="clusters need numbers, so encode them before"
        )
        if features.backend not in UNNAMED:
            checked = validate_data(self, X, dtype=[np.float64, np.float32], reset=reset)
            return np.asarray(checked)
        array = check_array(features.X, dtype=[np.float64, np.float32], estimator=self)
        if reset:
            self.n_features_in_ = array.shape[1]
            self.feature_names_in_ = np.array(features.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            known = tuple(self.feature_names_in_)
            if known != features.names:
                names = ", ".join(map(repr, known))
                raise InputError(f"X must have the columns {names}, in this order.")
        return np.asarray(array)

    def _outcomes(
        self, y: Any, accepted: Any, n: int
    ) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return the rows whose outcome is known, and which of these are good."""
        if y is None:
            return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.bool_)
        rows = np.flatnonzero(_read_accepted(accepted, n))
        values = column(as_array(y), n, "y")[rows]
        known = ~is_missing(values)
        rows, values = rows[known], values[known]
        if values.dtype.kind == "O":
            values = np.array(values.tolist())  # entries of the rejected may have other types
        if not rows.size:
            return rows, np.empty(0, dtype=np.bool_)
        check_classification_targets(values)
        labels = np.unique(values)
        if labels.size > 2:
            raise InputError(f"y must have two labels, good and bad, got {labels.size}.")
        return rows, np.asarray(values == (1 if labels[0] == 0 else labels[-1]))

    def _fitted(self, X: Floats, y: Any, seen: NDArray[np.intp], good: NDArray[np.bool_]) -> Any:
        clusterer = KMeans(random_state=0) if self.clusterer is None else self.clusterer
        if not (hasattr(clusterer, "apply") or hasattr(clusterer, "predict")):
            raise InputError(f"clusterer must have predict, or apply, got {clusterer!r}.")
        if _is_fitted(clusterer):
            return clusterer
        if not _learns_from_outcomes(clusterer):
            return clone(clusterer).fit(X)
        if y is None:
            # As scikit-learn's checks want it.
            raise ValueError("a tree requires y to be passed, but the target y is None.")
        if not seen.size:
            raise InputError("a tree needs outcomes of the accepted, got none in y.")
        return clone(clusterer).fit(X[seen], good.astype(np.int8))

    def _cells(self, X: Floats) -> Labels:
        leaves = hasattr(self.clusterer_, "apply")
        label = np.asarray(self.clusterer_.apply(X) if leaves else self.clusterer_.predict(X))
        if label.ndim != 1 or label.dtype.kind not in "iu":
            raise InputError(
                f"clusterer must give each applicant an integer, got {label.dtype} of shape "
                f"{label.shape} from {self.clusterer_!r}."
            )
        return label.astype(np.int64, copy=False)


def _purity(cell: Labels, seen: NDArray[np.intp], good: NDArray[np.bool_]) -> NDArray[Any]:
    """Count applicants and outcomes per cell."""
    cells, position = np.unique(cell, return_inverse=True)
    n_seen = np.bincount(position[seen], minlength=cells.size)
    n_good = np.bincount(position[seen][good], minlength=cells.size)
    share = np.full(cells.size, np.nan)
    np.divide(n_good, n_seen, out=share, where=n_seen > 0)
    columns: dict[str, NDArray[Any]] = {
        "cell": cells,
        "people": np.bincount(position, minlength=cells.size),
        "seen": n_seen,
        "share_good": share,
        "purity": np.maximum(share, 1 - share),
    }
    table: NDArray[Any] = to_frame(columns, "numpy")
    return table


def _read_accepted(accepted: Any, n: int) -> NDArray[np.bool_]:
    if accepted is None:
        return np.ones(n, dtype=np.bool_)
    values = column(accepted, n, "accepted")
    if not np.isin(values, (0, 1)).all():
        raise InputError("accepted must be True or False (1 or 0) for each row.")
    return values.astype(np.bool_)


def _is_fitted(estimator: Any) -> bool:
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def _learns_from_outcomes(clusterer: Any) -> bool:
    return hasattr(clusterer, "apply") and not _is_fitted(clusterer)
