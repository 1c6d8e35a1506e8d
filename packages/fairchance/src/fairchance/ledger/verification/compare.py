"""Compare what was made again with what is stored."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fairchance.core.sizes import unzipped
from fairchance.ledger.base import to_json

__all__ = ["first_other_content", "first_other_value", "json_values"]

_REFERENCES = {"ref", "skops", "array", "frame"}  # keys of values that refer to other content


def json_values(record: Any) -> dict[str, Any]:
    """Return the values of a record as JSON has them, in which NaN equals NaN."""
    values: dict[str, Any] = json.loads(to_json(asdict(record)))
    return values


def first_other_content(stored: bytes, again: bytes, close: float) -> str | None:
    """Return where two results of ``storage.dumps`` differ first; None if they are equal.

    Numbers may differ by ``close``, relative and absolute. Estimators of other libraries are not
    compared, since their scores are compared elsewhere.

    Examples
    --------
    >>> from fairchance.people.likelihoods import LinearLikelihood
    >>> from fairchance.methods.storage import dumps
    >>> left, right = (dumps(LinearLikelihood(np.ones(2), b)) for b in (0.5, 0.6))
    >>> first_other_content(left, right, 0.01)
    'LinearLikelihood.intercept'
    >>> first_other_content(left, right, 0.2) is None
    True
    """
    pair = _ContentPair(_unpack(stored), _unpack(again))
    if _first_path(pair.left.root, pair.right.root, pair, close) is not None:
        return "an object"
    for left, right in pair.met:  # grows on the way
        before, after = pair.left.objects[left], pair.right.objects[right]
        path = _first_path(before, after, pair, close)
        if path is not None:
            return f"{before.get('type', 'an object')}{path.removeprefix('.fields')}"
    return None


def first_other_value(
    left: dict[str, Any],
    right: dict[str, Any],
    close: float = 1e-9,
    leave_out: Collection[str] = (),
) -> str | None:
    """Return the name of the first value that differs between two records of JSON values.

    Examples
    --------
    >>> first_other_value({"a": 1, "b": [0.1]}, {"a": 1, "b": [0.2]})
    'b'
    >>> first_other_value({"a": 1.0}, {"a": 1.0 + 1e-12}) is None
    True
    """
    for name in {**left, **right}:
        if name in leave_out:
            continue
        in_both = name in left and name in right
        if not in_both or _first_path(left[name], right[name], None, close) is not None:
            return name
    return None


@dataclass(frozen=True)
class _Content:
    """A result of ``storage.dumps``: its first object, the table of objects, and its files."""

    root: Any
    objects: list[Any]
    files: dict[str, bytes]


class _ContentPair:
    """Two contents, and the pairs of objects that correspond to each other.

    Pairs are collected on the way from the first object, so objects that are never referred to are
    not compared.
    """

    def __init__(self, left: _Content, right: _Content) -> None:
        self.left, self.right = left, right
        self.met: list[tuple[int, int]] = []
        self._right_of: dict[int, int] = {}
        self._left_of: dict[int, int] = {}

    def meet(self, left: int, right: int) -> bool:
        """Return whether two objects correspond to each other, here and wherever they were met."""
        if left not in self._right_of and right not in self._left_of:
            self._right_of[left], self._left_of[right] = right, left
            self.met.append((left, right))
        return self._right_of.get(left) == right


def _unpack(content: bytes) -> _Content:
    files = unzipped(content, "a stored state")
    manifest = json.loads(files["manifest.json"])
    return _Content(manifest["root"], manifest["objects"], files)


def _first_path(left: Any, right: Any, pair: _ContentPair | None, close: float) -> str | None:
    """Return the path to the first difference, empty for the values themselves.

    Without ``pair`` these are plain values, and none refers to an object or a file.
    """
    if isinstance(left, dict) and isinstance(right, dict):
        return _first_path_in_dict(left, right, pair, close)
    if isinstance(left, list) and isinstance(right, list):
        if len(left) != len(right):
            return ""
        paths = (_first_path(a, b, pair, close) for a, b in zip(left, right, strict=True))
        return next((path for path in paths if path is not None), None)
    if _is_number(left) and _is_number(right):
        is_whole = isinstance(left, int) and isinstance(right, int)
        same = left == right or (
            not is_whole and math.isclose(left, right, rel_tol=close, abs_tol=close)
        )
        return None if same else ""
    return None if left == right else ""


def _first_path_in_dict(
    left: dict[str, Any], right: dict[str, Any], pair: _ContentPair | None, close: float
) -> str | None:
    if left.keys() != right.keys():
        return ""
    if pair is not None and not left.keys().isdisjoint(_REFERENCES):
        return None if _same_referent(left, right, pair, close) else ""
    for name, value in left.items():
        path = _first_path(value, right[name], pair, close)
        if path is not None:
            return f".{name}{path}"
    return None


def _same_referent(
    left: dict[str, Any], right: dict[str, Any], pair: _ContentPair, close: float
) -> bool:
    """Return whether two references lead to equal content; objects are compared later."""
    if "ref" in left:
        return pair.meet(left["ref"], right["ref"])
    if "skops" in left:
        return True
    kind = "array" if "array" in left else "frame"
    before, after = pair.left.files[left[kind]], pair.right.files[right[kind]]
    if kind == "frame":
        return before == after
    return _same_arrays(np.load(io.BytesIO(before)), np.load(io.BytesIO(after)), close)


def _same_arrays(left: Any, right: Any, close: float) -> bool:
    if left.shape != right.shape or left.dtype.kind != right.dtype.kind:
        return False
    if left.dtype.kind != "f":
        return bool(np.array_equal(left, right))
    return bool(np.allclose(left, right, rtol=close, atol=close, equal_nan=True))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
