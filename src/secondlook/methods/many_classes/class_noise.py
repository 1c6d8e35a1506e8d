"""Classes that are recorded wrongly at stated rates, and what follows for worth and mistakes.

With T[i, j] the chance that class i is recorded as class j, anything u that depends on the class
has the same expectation as ``T⁻¹ u`` taken of what is recorded: so worth and mistakes are estimated
without bias from recorded classes, and the probabilities of recorded classes weigh decisions as
those of true ones would.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.errors import InputError

__all__ = ["ClassNoise", "of_recorded", "read_noise"]

Floats = NDArray[np.float64]
ClassNoise = tuple[tuple[float, ...], ...]

_MOST = 1e3  # by which an inverse may blow differences up


def read_noise(noise: Any, classes: tuple[Any, ...]) -> ClassNoise | None:
    """Return how likely each class (rows) is recorded as each class (columns); None means rightly.

    Parameters
    ----------
    noise
        A dict from class to a dict from recorded class to a probability, where what is left out
        is 0; or a matrix in the order of ``classes``.
    classes
        All classes.

    Examples
    --------
    >>> read_noise({"flu": {"flu": 0.9, "none": 0.1}, "none": {"none": 1}}, ("flu", "none"))
    ((0.9, 0.1), (0.0, 1.0))
    """
    if noise is None:
        return None
    entries = _entries(noise, classes) if isinstance(noise, Mapping) else noise
    try:
        table = np.array(entries, dtype=np.float64)
    except (TypeError, ValueError):
        table = np.empty(0)
    n = len(classes)
    if table.shape != (n, n) or not (np.all(table >= 0) and np.allclose(table.sum(axis=1), 1)):
        raise InputError(
            f"noise must give each of the classes {list(classes)} (rows) a probability of being "
            f"recorded as each of them (columns), which sum to 1, as a dict of dicts or a matrix, "
            f"got {noise!r}."
        )
    if np.linalg.matrix_rank(table) < n or np.abs(np.linalg.inv(table)).max() > _MOST:
        raise InputError(
            f"noise records some of the classes {list(classes)} so much alike that what is "
            f"recorded does not tell them apart, got {noise!r}; merge these classes."
        )
    return tuple(map(tuple, table.tolist()))


def _entries(noise: Mapping[Any, Any], classes: tuple[Any, ...]) -> list[list[Any]] | None:
    """Return the rows of a dict of dicts that names classes and nothing else."""
    if set(noise) != set(classes):
        return None
    rows = [noise[one] for one in classes]
    if not all(isinstance(row, Mapping) and set(row) <= set(classes) for row in rows):
        return None
    return [[row.get(one, 0.0) for one in classes] for row in rows]


def of_recorded(values: Floats, noise: ClassNoise) -> Floats:
    """Return what to count for recorded classes so that the mean is ``values`` of the true ones.

    Examples
    --------
    >>> of_recorded(np.array([[1.0, 0.0]]), ((0.95, 0.05), (0.05, 0.95))).round(4).tolist()
    [[1.0556, -0.0556]]
    """
    return np.linalg.solve(np.array(noise), values.T).T
