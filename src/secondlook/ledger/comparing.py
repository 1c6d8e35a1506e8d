"""Comparing stored values, up to the last bits of numbers."""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Collection
from typing import Any

import numpy as np

__all__ = ["first_other_content", "first_other_value"]

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
}


def first_other_content(one: bytes, other: bytes, close: float) -> str | None:
    """Return where two results of ``storage.dumps`` differ first; None if nowhere.

    Numbers may differ by ``close``, relative and absolute. Estimators that are not ours are taken
    to be the same: what they say of people is compared elsewhere.

    Examples
    --------
    >>> from secondlook.likelihoods import LinearLikelihood
    >>> from secondlook.storage import dumps
    >>> one, other = (dumps(LinearLikelihood(np.ones(2), b)) for b in (0.5, 0.6))
    >>> first_other_content(one, other, 0.01)
    'LinearLikelihood.intercept'
    >>> first_other_content(one, other, 0.2) is None
    True
    """
    (before, files), (after, others) = _opened(one), _opened(other)
    if len(before) != len(after):
        return "the number of its parts"
    for left, right in zip(map(_without_words, before), map(_without_words, after), strict=True):
        where = str(left.get("type", "an object")) if isinstance(left, dict) else "an object"
        found = _other(left, right, (files, others), close)
        if found is not None:
            return f"{where}{found.removeprefix('.fields')}"
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
        if not both or _other(one[name], other[name], ({}, {}), close) is not None:
            return name
    return None


def _without_words(one: Any) -> Any:
    """Return an object without what it only says, and nothing rests on."""
    if not isinstance(one, dict) or one.get("type") not in _SAID:
        return one
    said = _SAID[one["type"]]
    fields = {name: value for name, value in one["fields"].items() if name not in said}
    return one | {"fields": fields}


def _opened(content: bytes) -> tuple[list[Any], dict[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(files["manifest.json"])
    return [*manifest["objects"], {"root": manifest["root"]}], files


def _other(
    one: Any, other: Any, files: tuple[dict[str, bytes], dict[str, bytes]], close: float
) -> str | None:
    """Return the path to the first difference, empty for the values themselves."""
    if isinstance(one, dict) and isinstance(other, dict):
        return _other_dict(one, other, files, close)
    if isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return ""
        pairs = zip(one, other, strict=True)
        found = (_other(a, b, files, close) for a, b in pairs)
        return next((path for path in found if path is not None), None)
    if _is_number(one) and _is_number(other):
        whole = isinstance(one, int) and isinstance(other, int)
        same = one == other or (
            not whole and math.isclose(one, other, rel_tol=close, abs_tol=close)
        )
        return None if same else ""
    return None if one == other else ""


def _other_dict(
    one: dict[str, Any],
    other: dict[str, Any],
    files: tuple[dict[str, bytes], dict[str, bytes]],
    close: float,
) -> str | None:
    if one.keys() != other.keys():
        return ""
    if "skops" in one:
        return None
    if "array" in one:
        before, after = (
            np.load(io.BytesIO(found[value["array"]]), allow_pickle=False)
            for found, value in zip(files, (one, other), strict=True)
        )
        return None if _same_arrays(before, after, close) else ""
    if "frame" in one:
        same = files[0][one["frame"]] == files[1][other["frame"]]
        return None if same else ""
    for name, value in one.items():
        path = _other(value, other[name], files, close)
        if path is not None:
            return f".{name}{path}"
    return None


def _same_arrays(one: Any, other: Any, close: float) -> bool:
    if one.shape != other.shape or one.dtype.kind != other.dtype.kind:
        return False
    if one.dtype.kind != "f":
        return bool(np.array_equal(one, other))
    return bool(np.allclose(one, other, rtol=close, atol=close, equal_nan=True))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
