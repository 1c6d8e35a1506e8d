"""Protected attributes: one column or several, and the groups that they form.

Each applicant has one code, that of their combination of values. An attribute is then a partition
of the codes: an array with the level of each code, so that counts by code can be summed to the
levels of any attribute.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairchance.core.saved import saved
from fairchance.errors import InputError
from fairchance.frames import as_array, column, is_missing, plain

__all__ = ["NOT_STATED", "Attributes", "of_each_attribute"]

Codes = NDArray[np.intp]
NOT_STATED = "not stated"  # the group of applicants without one, if groups do not decide
_NAME = "sensitive_features"
_SHOWN = 12  # groups listed in a message


@saved
@dataclass(frozen=True, eq=False)
class Attributes:
    """The values of the protected attributes of a history, and their combinations.

    Attributes
    ----------
    names
        Names of the columns, None if they came without.
    values
        Per attribute, its values, sorted.
    level_of
        Level of each group, one row per attribute: an index into its values.

    Examples
    --------
    >>> people = [["f", "40+"], ["m", "40+"], ["f", "40+"], ["m", "under 40"]]
    >>> attributes, codes = Attributes.of(people, 4)
    >>> attributes.labels.tolist(), codes.tolist()
    (['f, 40+', 'm, 40+', 'm, under 40'], [0, 1, 0, 2])
    >>> attributes.partitions
    ((0, 1, 1), (0, 0, 1))
    """

    names: tuple[str, ...] | None
    values: tuple[NDArray[Any], ...]
    level_of: Codes

    @staticmethod
    def of(
        sensitive_features: Any, n: int, *, not_stated: bool = False
    ) -> tuple[Attributes, Codes]:
        """Read the attributes of all applicants; return them with each applicant's code.

        With ``not_stated``, a missing text is ``NOT_STATED`` instead of an error.
        """
        names, columns = _columns(sensitive_features, n, not_stated=not_stated)
        values, levels = [], []
        for raw in columns:
            _check_present(raw)
            distinct, level = _sorted_values(raw)
            values.append(distinct)
            levels.append(np.asarray(level, dtype=np.intp))
        codes, first = levels[0], None
        for distinct, level in zip(values[1:], levels[1:], strict=True):
            _, first, codes = np.unique(
                codes * distinct.size + level, return_index=True, return_inverse=True
            )
        if first is None:
            level_of = np.arange(values[0].size)[None]
        else:
            level_of = np.array([level[first] for level in levels])
        return Attributes(names, tuple(values), level_of), np.asarray(codes, dtype=np.intp)

    @property
    def n_groups(self) -> int:
        """Number of combinations."""
        return int(self.level_of.shape[1])

    @property
    def labels(self) -> NDArray[Any]:
        """Name of each group: the value itself, or the values of all attributes, as text."""
        if len(self.values) == 1:
            return self.values[0]
        parts = [values[level] for values, level in zip(self.values, self.level_of, strict=True)]
        groups = [list(map(str, group)) for group in zip(*parts, strict=True)]
        labels = np.array([", ".join(group) for group in groups])
        if np.unique(labels).size < labels.size:  # a comma inside a value
            labels = np.array([", ".join(map(repr, group)) for group in groups])
        return labels

    @property
    def titles(self) -> tuple[str, ...]:
        """A name for each attribute, made up if it has none."""
        if self.names is not None:
            return self.names
        if len(self.values) == 1:
            return ("group",)
        return tuple(f"attribute {position}" for position in range(len(self.values)))

    @property
    def partitions(self) -> tuple[tuple[int, ...], ...]:
        """Per attribute, the level of each group."""
        return tuple(tuple(row) for row in self.level_of.tolist())

    def read(
        self, sensitive_features: Any, n: int, *, extend: bool = False
    ) -> tuple[Attributes, Codes]:
        """Return the codes of applicants.

        If a combination of values is unknown, this raises, or with ``extend`` returns attributes
        that have it too, with a code after those of the known ones; a missing text is then
        ``NOT_STATED``.

        Examples
        --------
        >>> attributes, _ = Attributes.of(["f", "m", "f"], 3)
        >>> more, codes = attributes.read(["x", "f", "d", "x"], 4, extend=True)
        >>> more.labels.tolist(), codes.tolist()
        (['f', 'm', 'd', 'x'], [3, 0, 2, 3])
        """
        names, columns = _columns(sensitive_features, n, not_stated=extend)
        self._check_same_columns(names, len(columns))
        keys, known = np.zeros(n, np.intp), np.zeros(self.n_groups, np.intp)
        strange = np.zeros(n, np.bool_)
        for raw, values, level_of in zip(columns, self.values, self.level_of, strict=True):
            level = np.full(n, -1, dtype=np.intp)
            for code, value in enumerate(values):
                level[raw == value] = code
            strange |= level < 0
            keys, known = keys * values.size + level, known * values.size + level_of
            # Renumber the keys, so that they cannot overflow with many attributes.
            distinct, known = np.unique(known, return_inverse=True)
            place = np.minimum(np.searchsorted(distinct, keys), distinct.size - 1)
            strange |= distinct[place] != keys
            keys = np.where(strange, 0, place)
        if not strange.any():
            return self, np.argsort(known)[keys]  # keys are in sorted order, groups may not be
        if not extend:
            self._refuse(columns, int(np.flatnonzero(strange)[0]))
        more = self._extended([raw[strange] for raw in columns])
        return more, more.read(sensitive_features, n, extend=True)[1]

    def values_of(self, codes: Codes) -> list[NDArray[Any]]:
        """Return the values of applicants with these codes, one array per attribute."""
        by_attribute = zip(self.values, self.level_of, strict=True)
        return [values[level_of[codes]] for values, level_of in by_attribute]

    def _extended(self, columns: list[NDArray[Any]]) -> Attributes:
        """Return these attributes with the combinations of some applicants."""
        values, levels = [], []
        for raw, known in zip(columns, self.values, strict=True):
            new = sorted(set(_alike(raw, known)) - set(known.tolist()))
            together = [*known.tolist(), *new]
            values.append(np.array(together, dtype=object if known.dtype == object else None))
            place = {value: at for at, value in enumerate(together)}
            levels.append([place[value] for value in raw.tolist()])
        combinations = {*zip(*levels, strict=True)} - {*zip(*self.level_of.tolist(), strict=True)}
        level_of = np.hstack([self.level_of, np.array(sorted(combinations), np.intp).T])
        return Attributes(self.names, tuple(values), level_of)

    def _refuse(self, columns: list[NDArray[Any]], row: int) -> None:
        values = [column[row] for column in columns]
        label = plain(values[0]) if len(values) == 1 else ", ".join(map(str, values))
        raise InputError(
            f"{_NAME} holds the group {label!r}, which the history does not have; map it to one of "
            f"{self.listed()}."
        )

    def listed(self) -> str:
        """Return the groups as part of a sentence."""
        labels = self.labels.tolist()
        more = f" and {len(labels) - _SHOWN} more" if len(labels) > _SHOWN else ""
        return ", ".join(map(repr, labels[:_SHOWN])) + more

    def _check_same_columns(self, names: tuple[str, ...] | None, n_columns: int) -> None:
        named = self.names is not None and names is not None and len(self.values) > 1
        if n_columns == len(self.values) and not (named and names != self.names):
            return
        got = f"{n_columns} columns" if names is None else ", ".join(map(repr, names))
        expected = f"{len(self.values)}" if self.names is None else ", ".join(map(repr, self.names))
        raise InputError(
            f"{_NAME} must have the columns that fit got, in the same order: {expected}, got "
            f"{got}; select them."
        )


def of_each_attribute(sensitive_features: Any, n: int) -> list[tuple[str, NDArray[Any], Codes]]:
    """Return the title of each attribute, its values, and the code of each applicant.

    Examples
    --------
    >>> each = of_each_attribute([["f", "old"], ["m", "old"], ["f", "young"]], 3)
    >>> [values.tolist() for _, values, _ in each]
    [['f', 'm'], ['old', 'young']]
    """
    attributes, codes = Attributes.of(sensitive_features, n)
    of_each = zip(attributes.titles, attributes.values, attributes.level_of, strict=True)
    return [(title, values, level[codes]) for title, values, level in of_each]


def _columns(
    sensitive_features: Any, n: int, *, not_stated: bool
) -> tuple[tuple[str, ...] | None, list[NDArray[Any]]]:
    """Return the columns of a frame, series, array or list, with their names if they have any."""
    names, columns = _given_columns(sensitive_features, n)
    return names, [_stated(values) for values in columns] if not_stated else columns


def _stated(values: NDArray[Any]) -> NDArray[Any]:
    """Return a column of text with a word for missing values; numbers as they are."""
    missing = is_missing(values) if values.dtype.kind == "O" else np.zeros(1, np.bool_)
    if not missing.any() or not all(isinstance(value, str) for value in values[~missing]):
        return values
    return np.where(missing, NOT_STATED, values)


def _given_columns(
    sensitive_features: Any, n: int
) -> tuple[tuple[str, ...] | None, list[NDArray[Any]]]:
    try:
        native = nw.from_native(
            sensitive_features, allow_series=True, eager_only=True, pass_through=True
        )
    except nw.exceptions.DuplicateError:
        raise InputError(f"{_NAME} has two columns of the same name; rename one.") from None
    if isinstance(native, nw.DataFrame) and len(native.columns) > 1:
        columns = [np.asarray(series.to_numpy()) for series in native.iter_columns()]
        return tuple(map(str, native.columns)), [column(values, n, _NAME) for values in columns]
    array = as_array(sensitive_features)
    if array.ndim == 2 and array.shape[0] == n and array.shape[1] > 1:
        return None, list(array.T)
    names = None
    if isinstance(native, nw.DataFrame) and native.columns:
        names = (str(native.columns[0]),)
    elif isinstance(native, nw.Series) and native.name:
        names = (str(native.name),)
    return names, [column(array, n, _NAME)]


def _check_present(values: NDArray[Any]) -> None:
    if is_missing(values).any():
        raise InputError(
            f"{_NAME} has missing values; give each applicant a group, such as 'unknown'."
        )


def _alike(values: NDArray[Any], known: NDArray[Any]) -> list[Any]:
    """Return values as the type of known ones; raise if they are missing or of another kind."""
    _check_present(values)
    kind = type(known.tolist()[0])
    alike = [kind(value) if isinstance(value, int | float) else value for value in values.tolist()]
    for given, value in zip(values.tolist(), alike, strict=True):
        if type(value) is not kind or value != given:
            raise InputError(
                f"{_NAME} holds {given!r}, and the groups of the history are like "
                f"{known.tolist()[0]!r}; convert it."
            )
    return alike


def _sorted_values(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    try:
        distinct, level = np.unique(values, return_inverse=True)
    except TypeError:
        raise InputError(
            f"{_NAME} has mixed types in one column; turn them all into text or numbers."
        ) from None
    return distinct, level
