"""Applicants as a ledger stores them, and back as a classifier reads them.

Features are encoded by ``people/features.py``; here are groups, ids, outcomes and reasons.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from fairchance.core.groups import Attributes
from fairchance.errors import InputError, LedgerError
from fairchance.extras import arrow
from fairchance.frames import as_array, plain
from fairchance.ledger.base import PeopleRows, to_json
from fairchance.people.features import FeatureColumns, check_surrogates
from fairchance.people.ids import as_ids
from fairchance.people.reasons import ReferenceApplicant, decode

__all__ = ["RecordedReasons", "Shape", "encode_batch_groups", "encode_groups"]
__all__ += ["encode_read_groups", "known_groups"]

_ID_KINDS = {"i": "integers", "U": "strings"}


@dataclass(frozen=True)
class Shape:
    """The columns, groups, ids and outcome labels of a program.

    Attributes
    ----------
    columns
        The columns of its features.
    group_names
        Names of the protected attributes; None if they have none.
    has_groups
        Whether applicants have groups.
    id_kind
        ``"i"`` if ids are integers, ``"U"`` if they are text.
    good, bad
        The labels of outcomes in the history.
    reference
        The applicant with whom rejected applicants are compared.
    """

    columns: FeatureColumns
    group_names: tuple[str, ...] | None
    has_groups: bool
    id_kind: str
    good: Any
    bad: Any
    reference: ReferenceApplicant | None = None

    @staticmethod
    def read(header: dict[str, Any]) -> Shape:
        """Return the shape that the header of a program's first entry describes."""
        names = header["group_names"]
        return Shape(
            FeatureColumns.read(header["columns"]),
            None if names is None else tuple(names),
            header["has_groups"],
            header["id_kind"],
            header["good"],
            header["bad"],
            ReferenceApplicant.read(header.get("reference")),
        )

    def people(self, rows: PeopleRows) -> tuple[Any, Any, NDArray[Any]]:
        """Return features, group values and ids."""
        X = self.features(rows.numbers, rows.texts)
        with _legible():
            return X, self.groups(rows.groups), self.ids(rows.applications)

    def features(self, numbers: Sequence[bytes | None], texts: Sequence[str | None]) -> Any:
        """Return features as the classifier reads them."""
        with _legible():
            return self.columns.decode([row or b"" for row in numbers], texts)

    def groups(self, values: Sequence[str | None] | None) -> Any:
        """Return group values as the classifier reads them, None for erased ones."""
        if values is None or not any(values):
            return None
        return _decode_groups(self.group_names, values)

    def ids(self, applications: Iterable[str | None]) -> NDArray[Any]:
        """Return ids of the program's kind from the names that the ledger stores."""
        kind = np.int64 if self.id_kind == "i" else np.str_
        return np.array([str(name) for name in applications], kind)

    def labels(self, states: Iterable[str]) -> NDArray[Any]:
        """Return outcomes in the labels of the history."""
        return np.array([self.good if state == "good" else self.bad for state in states])

    def reasons(self, encoded: Sequence[bytes | None] | None) -> RecordedReasons | None:
        """Return reasons that name the program's columns, from the bytes that a ledger stores."""
        if encoded is None:
            return None
        return RecordedReasons(encoded, () if self.reference is None else self.reference.names)

    def read_ids(self, ids: Any) -> list[str]:
        """Return ids as the names that the ledger stores; they must be of the program's kind."""
        values = np.atleast_1d(as_array(ids))
        checked = as_ids(values, values.shape[0])
        if checked.size and checked.dtype.kind != self.id_kind:
            raise InputError(
                f"ids must be {_ID_KINDS[self.id_kind]}, as in the history, got "
                f"{_ID_KINDS[checked.dtype.kind]}; convert them."
            )
        return list(map(str, checked.tolist()))

    def read_names(self, ids: Any) -> list[str]:
        """Return ids as stored names; text is accepted whatever kind the program's ids have."""
        values = np.atleast_1d(as_array(ids))
        if values.ndim == 1 and values.dtype.kind in "OU":
            names: list[Any] = values.tolist()
            if set(map(type, names)) <= {str}:
                return names
        return self.read_ids(values)


class RecordedReasons(Sequence[list[tuple[str, float]] | None]):
    """The reasons of a batch, decoded only when they are read; None for accepted applicants.

    Examples
    --------
    >>> from fairchance.people.reasons import encode
    >>> reasons = RecordedReasons([None, *encode(np.array([[-1.0, 0.5]]))], ("income", "debt"))
    >>> list(reasons)
    [None, [('income', -1.0)]]
    """

    def __init__(self, encoded: Sequence[bytes | None], names: Sequence[str]) -> None:
        self.encoded, self._names = encoded, names

    def __len__(self) -> int:
        return len(self.encoded)

    @overload
    def __getitem__(self, at: int) -> list[tuple[str, float]] | None: ...

    @overload
    def __getitem__(self, at: slice) -> RecordedReasons: ...

    def __getitem__(self, at: int | slice) -> list[tuple[str, float]] | RecordedReasons | None:
        """Return the reasons of one applicant, or of a slice."""
        if isinstance(at, slice):
            return RecordedReasons(self.encoded[at], self._names)
        reasons = self.encoded[at]
        return None if reasons is None else decode(reasons, self._names)


def encode_groups(
    sensitive_features: Any, n: int, *, not_stated: bool = False
) -> tuple[tuple[str, ...] | None, list[str]]:
    """Return the names of the protected attributes, and each applicant's values as JSON.

    With ``not_stated``, applicants without a group form one of their own.
    """
    attributes, codes = Attributes.of(sensitive_features, n, not_stated=not_stated)
    texts = _group_texts(attributes)
    return attributes.names, [texts[code] for code in codes.tolist()]


def known_groups(classifier: Any) -> Attributes | None:
    """Return the groups of a program's history, if it had any."""
    known: Attributes | None = getattr(getattr(classifier, "_intake", None), "sensitive", None)
    return known


def encode_batch_groups(classifier: Any, sensitive_features: Any, n: int) -> list[str] | None:
    """Return the group values of a batch as JSON, spelled as in the history if it had groups."""
    if sensitive_features is None:
        return None
    known = known_groups(classifier)
    if known is None:
        return encode_groups(sensitive_features, n)[1]
    known, codes = classifier._intake.read_groups(sensitive_features, n)
    texts = _group_texts(known)
    return [texts[code] for code in codes.tolist()]


def encode_read_groups(batch: Any) -> list[str] | None:
    """Return the group values of applicants that were read, spelled as in the history, as JSON."""
    if batch.sensitive is None:
        return None
    texts = _group_texts(batch.sensitive)
    return [texts[code] for code in batch.reported.tolist()]


def _group_texts(attributes: Attributes) -> list[str]:
    """Return the values of each group as JSON."""
    columns = [
        values[level] for values, level in zip(attributes.values, attributes.level_of, strict=True)
    ]
    rows = [[plain(value) for value in row] for row in zip(*columns, strict=True)]
    values = [value for row in rows for value in row]
    strange = [value for value in values if not isinstance(value, str | int | float)]
    if strange:
        raise InputError(
            f"sensitive_features must hold text or numbers, got {strange[0]!r}; convert them."
        )
    check_surrogates("sensitive_features", [value for value in values if isinstance(value, str)])
    return [to_json(row) for row in rows]


def _decode_groups(names: tuple[str, ...] | None, values: Sequence[str | None]) -> Any:
    """Return group values as a classifier reads them; erased ones are None."""
    code_of = {text: code for code, text in enumerate(dict.fromkeys(values))}
    codes = np.fromiter((code_of[text] for text in values), np.intp, len(values))
    rows = [None if text is None else json.loads(text) for text in code_of]
    nothing = [None] * max(len(row or ()) for row in rows)
    columns = [list(column) for column in zip(*(row or nothing for row in rows), strict=True)]
    if names is not None:
        parts = [np.array(column, dtype=object)[codes] for column in columns]
        return arrow().table(dict(zip(names, parts, strict=True)))
    if len(columns) == 1:
        return np.array(columns[0])[codes]
    return np.array(columns, dtype=object).T[codes]


@contextmanager
def _legible() -> Iterator[None]:
    """Report applicants that cannot be read as ``LedgerError``."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise LedgerError(
            f"applicants of the ledger cannot be read ({str(error).splitlines()[0]}); verify it."
        ) from error
