"""Estimators that are not ours as bytes, in skops' format, of which only known types are made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from secondlook.errors import InputError, UntrustedError
from secondlook.methods.stored_trees import check_trees

__all__ = ["dump_estimator", "load_estimator"]

# Types of numpy and scikit-learn that hold arrays and nothing that could run; trees are checked.
_DATA_TYPES = {
    "numpy.dtype",
    "sklearn.tree._tree.Tree",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
}


_CACHE, _SOURCE = "memory", "input"  # parameters: a folder of pickles, and whether text is a file's
_FROM_FILES = ("filename", "file")
_GRIDS = ("param_grid", "param_distributions")  # attributes that name parameters to try


def dump_estimator(estimator: Any) -> bytes:
    """Return an estimator as a skops file."""
    _check_reads_no_file(list(_parts(estimator)))
    content: bytes = _skops().dumps(estimator)
    return content


def load_estimator(content: bytes, ours: Iterable[type], trusted: Iterable[str]) -> Any:
    """Make an estimator of scikit-learn's types, ours, and those whose names are trusted.

    Types are trusted one by one: a module has functions too, and a file that may name these could
    have them called. A cache is left out, since its files are pickles; it changes no result.
    """
    named = {f"{one.__module__}.{one.__qualname__}" for one in ours}
    allowed = _DATA_TYPES | named | set(trusted)
    found = set(_skops().get_untrusted_types(data=content))
    if found - allowed:
        raise UntrustedError(
            f"a stored estimator is made of types that are not trusted yet: "
            f"{', '.join(sorted(found - allowed))}; pass those you trust as trusted (--trusted)."
        )
    made = _skops().loads(content, trusted=sorted(found))
    parts = list(_parts(made))
    _check_reads_no_file(parts)
    check_trees(parts)
    for one in parts:
        if isinstance(one, BaseEstimator) and vars(one).get(_CACHE) is not None:
            vars(one)[_CACHE] = None
    return made


def _parts(estimator: Any) -> Iterator[Any]:
    """Yield all that an estimator holds, itself first."""
    seen, todo = set(), [estimator]
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, dict):
            todo += one.values()
        elif isinstance(one, list | tuple | set | frozenset):
            todo += one
        elif isinstance(one, np.ndarray):
            todo += one.ravel().tolist() if one.dtype == object else []
        elif not isinstance(one, type):
            todo += getattr(one, "__dict__", {}).values()


def _check_reads_no_file(parts: Iterable[Any]) -> None:
    """Raise if fitting an estimator would read files that it, or what it is given, names."""
    for one in parts:
        if not isinstance(one, BaseEstimator):
            continue
        own = vars(one)
        grids = [own[name] for name in _GRIDS if name in own]
        tried = [
            (name.rpartition("__")[2], value)
            for some in grids
            for grid in ([some] if isinstance(some, dict) else some)
            for name, values in grid.items()
            for value in np.ravel(np.array(values, object)).tolist()
        ]
        if own.get(_SOURCE) in _FROM_FILES or any(
            (name == _CACHE and value is not None) or (name == _SOURCE and value in _FROM_FILES)
            for name, value in tried
        ):
            raise UntrustedError(
                f"a stored estimator must not read files that it or a table names, and "
                f"{type(one).__name__} would, by its {_CACHE} or {_SOURCE}; leave that out."
            )


def _skops() -> Any:
    try:
        import skops.io  # noqa: PLC0415 - an extra that the core does not need
    except ImportError as error:
        raise InputError(
            "saving or loading an estimator that is not ours needs skops, and its raw columns "
            "pyarrow; install both with: pip install skops pyarrow"
        ) from error
    return skops.io
