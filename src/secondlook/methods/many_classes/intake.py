"""The edge where outcomes have any number of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from secondlook.errors import InputError
from secondlook.frames import as_array, column, is_missing
from secondlook.methods.many_classes.decision_table import labels_of
from secondlook.people.intake import Intake

__all__ = ["ManyClassIntake"]

_MOST = 127  # codes of classes are kept in a byte


class ManyClassIntake(Intake):
    """Readers like those of two classes, with outcomes as codes into ``classes``.

    Parameters
    ----------
    named
        All classes there can be; None means those of the history.
    options
        As for ``Intake``.
    """

    def __init__(self, *, named: tuple[Any, ...] | None, **options: Any) -> None:
        super().__init__(pos_label=None, **options)
        self.named = named

    def _first_outcomes(self, y: Any, taken: NDArray[np.bool_], n: int) -> NDArray[np.int8]:
        """Read outcomes of the accepted and nothing of anybody else."""
        if y is None:
            raise ValueError("fit requires y to be passed, but the target y is None.")
        target = as_array(y)
        if target.ndim == 2:
            target = column_or_1d(target, warn=True)
        values = column(target, n, "y")[taken]
        missing = is_missing(values)
        if missing.any():
            raise InputError(
                f"y has no outcome (NaN or None) for {int(missing.sum())} accepted people; if "
                f"their outcome was not to be seen, say so with accepted= or decisions=, and if it "
                f"is still to come, leave them out of the history."
            )
        if values.dtype.kind == "O":
            values = np.array(values.tolist())  # the rejected may have had anything in their place
        if values.dtype.kind == "f":
            assert_all_finite(values, input_name="y")
        check_classification_targets(values)
        shown = np.unique(values)
        if shown.size == 1:
            raise InputError(
                f"the accepted people of the history show only one class of outcome, "
                f"{shown.tolist()[0]!r}; at least two are needed to tell them apart, so add people "
                f"with another."
            )
        self.classes = shown if self.named is None else np.unique(np.array(self.named))
        if self.classes.size > _MOST:
            raise InputError(
                f"there may be at most {_MOST} classes, got {self.classes.size}; merge some."
            )
        return self._codes(values, "y")

    def read_outcomes(self, outcomes: ArrayLike, n: int) -> NDArray[np.int8]:
        """Turn outcome labels into codes."""
        return self._codes(column(outcomes, n, "outcomes", per="id"), "outcomes")

    def _codes(self, values: NDArray[Any], name: str) -> NDArray[np.int8]:
        codes = np.full(values.shape, -1, np.int8)
        for code, label in enumerate(self.classes):
            codes[values == label] = code
        if np.any(codes < 0):
            strange = labels_of(values[codes < 0][:1])[0]
            raise InputError(
                f"{name} must be among the classes {self.classes.tolist()}, got {strange!r}; name "
                f"a class that the history does not show in classes= before fit, and leave out "
                f"whoever has no outcome yet."
            )
        return codes
