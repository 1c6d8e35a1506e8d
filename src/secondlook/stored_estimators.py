"""Estimators that are not ours as bytes, in skops' format, of which only known types are made."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from secondlook.errors import InputError, UntrustedError

__all__ = ["dump_estimator", "load_estimator"]

# Types of numpy and scikit-learn that hold arrays and nothing that could run.
_DATA_TYPES = {
    "numpy.dtype",
    "sklearn.tree._tree.Tree",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
}


def dump_estimator(estimator: Any) -> bytes:
    """Return an estimator as a skops file."""
    _check_no_cache(estimator)
    content: bytes = _skops().dumps(estimator)
    return content


def load_estimator(content: bytes, ours: Iterable[type], trusted: Iterable[str]) -> Any:
    """Make an estimator of scikit-learn's types, ours, and those whose names are trusted.

    Types are trusted one by one: a module has functions too, and a file that may name these could
    have them called.
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
    _check_no_cache(made)
    return made


def _check_no_cache(estimator: Any) -> None:
    """Raise if fitting an estimator would read pickles from a folder that it names."""
    caches = {
        name: value
        for name, value in estimator.get_params(deep=True).items()
        if name.split("__")[-1] == "memory" and value is not None
    }
    if caches:
        name, value = min(caches.items())
        raise UntrustedError(
            f"a stored estimator must not have a cache, since its files are pickles, got "
            f"{name}={value!r}; set {name}=None."
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
