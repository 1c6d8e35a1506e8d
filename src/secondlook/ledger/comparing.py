"""Comparing stored values, up to the last bits of numbers."""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["first_other_content", "first_other_value"]

_STANDS = {"ref", "skops", "array", "frame"}  # for an object, or for what is in a file

# What rounds say for people, which a later version may say in other words.
_SAID = {
    "CertifiedRound": {
        "message",
        "more_outcomes",
        "next_share",
        "next_log_wealth",
        "next_threshold",
    },
    "Round": {"note"},
    "Ladder": {"_z", "_z_squared"},  # sums that older versions kept, and nothing read
    "Intake": {"ranges"},  # which older versions did not keep, and nothing is decided by
    "ManyClassIntake": {"ranges"},
    "FiniteClassifier": {"_last"},  # likewise
}


def first_other_content(one: bytes, other: bytes, close: float) -> str | None:
    """Return where two results of ``storage.dumps`` differ first; None if nowhere.

    Numbers may differ by ``close``, relative and absolute. Estimators that are not ours are taken
    to be the same: what they say of people is compared elsewhere.

    Examples
    --------
    >>> from secondlook.people.likelihoods import LinearLikelihood
    >>> from secondlook.methods.storage import dumps
    >>> one, other = (dumps(LinearLikelihood(np.ones(2), b)) for b in (0.5, 0.6))
    >>> first_other_content(one, other, 0.01)
    'LinearLikelihood.intercept'
    >>> first_other_content(one, other, 0.2) is None
    True
    """
    both = _Both(_opened(one), _opened(other))
    if _other(both.one.root, both.other.root, both, close) is not None:
        return "an object"
    for left, right in both.met:  # which grows on the way
        before, after = _comparable(both.one.objects[left]), _comparable(both.other.objects[right])
        found = _other(before, after, both, close)
        if found is not None:
            return f"{before.get('type', 'an object')}{found.removeprefix('.fields')}"
    return None


def first_other_value(
    one: dict[str, Any], other: dict[str, Any], close: float = 1e-9, leave_out: Collection[str] = ()
) -> str | None:
    """Return the name of the first value that differs between two records of JSON values.

    Examples
    --------
    >>> first_other_value({"a": 1, "b": [0.1]}, {"a": 1, "b": [0.2]})
    'b'
    >>> first_other_value({"a": 1.0}, {"a": 1.0 + 1e-12}) is None
    True
    """
    names = [name for name in {**one, **other} if name not in leave_out]
    for name in names:
        both = name in one and name in other
        if not both or _other(one[name], other[name], None, close) is not None:
            return name
    return None


@dataclass(frozen=True)
class _Content:
    """What ``storage.dumps`` wrote: its first object, the table of them, and files beside it."""

    root: Any
    objects: list[Any]
    files: dict[str, bytes]


class _Both:
    """Two contents, and the pairs of objects that stand in each other's place.

    Pairs are met on the way from the first one, so that an object to which only something that is
    left out refers is left out too.
    """

    def __init__(self, one: _Content, other: _Content) -> None:
        self.one, self.other = one, other
        self.met: list[tuple[int, int]] = []
        self._place: dict[int, int] = {}
        self._back: dict[int, int] = {}

    def meet(self, one: int, other: int) -> bool:
        """Say whether two objects stand in each other's place here, as wherever they were met."""
        if one not in self._place and other not in self._back:
            self._place[one], self._back[other] = other, one
            self.met.append((one, other))
        return self._place.get(one) == other


def _comparable(one: Any) -> Any:
    """Return an object without what it only says."""
    if "fields" not in one:
        return one
    said = _SAID.get(one["type"], ())
    fields = {name: value for name, value in one["fields"].items() if name not in said}
    return one | {"fields": fields}


def _opened(content: bytes) -> _Content:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(files["manifest.json"])
    return _Content(manifest["root"], manifest["objects"], files)


def _other(one: Any, other: Any, both: _Both | None, close: float) -> str | None:
    """Return the path to the first difference, empty for the values themselves.

    Without ``both`` these are plain values, of which none stands for an object or a file.
    """
    if isinstance(one, dict) and isinstance(other, dict):
        return _other_dict(one, other, both, close)
    if isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return ""
        pairs = zip(one, other, strict=True)
        found = (_other(a, b, both, close) for a, b in pairs)
        return next((path for path in found if path is not None), None)
    if _is_number(one) and _is_number(other):
        whole = isinstance(one, int) and isinstance(other, int)
        same = one == other or (
            not whole and math.isclose(one, other, rel_tol=close, abs_tol=close)
        )
        return None if same else ""
    return None if one == other else ""


def _other_dict(
    one: dict[str, Any], other: dict[str, Any], both: _Both | None, close: float
) -> str | None:
    if one.keys() != other.keys():
        return ""
    if both is not None and not one.keys().isdisjoint(_STANDS):
        return None if _same_behind(one, other, both, close) else ""
    for name, value in one.items():
        path = _other(value, other[name], both, close)
        if path is not None:
            return f".{name}{path}"
    return None


def _same_behind(one: dict[str, Any], other: dict[str, Any], both: _Both, close: float) -> bool:
    """Say whether two values stand for the same; of objects, whether they may, for now."""
    if "ref" in one:
        return both.meet(one["ref"], other["ref"])
    if "skops" in one:
        return True
    kind = "array" if "array" in one else "frame"
    before, after = both.one.files[one[kind]], both.other.files[other[kind]]
    if kind == "frame":
        return before == after
    left, right = (np.load(io.BytesIO(file), allow_pickle=False) for file in (before, after))
    return _same_arrays(left, right, close)


def _same_arrays(one: Any, other: Any, close: float) -> bool:
    if one.shape != other.shape or one.dtype.kind != other.dtype.kind:
        return False
    if one.dtype.kind != "f":
        return bool(np.array_equal(one, other))
    return bool(np.allclose(one, other, rtol=close, atol=close, equal_nan=True))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
