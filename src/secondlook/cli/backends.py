"""Clusters that joblib can spread repetitions over."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from joblib.parallel import BACKENDS

from secondlook.errors import InputError, to_install

__all__ = ["prepared"]


def prepared(backend: str | None, jobs: int, scheduler: str | None) -> AbstractContextManager[Any]:
    """Return a context in which joblib knows a backend.

    Parameters
    ----------
    backend
        Name of the backend; ``"dask"`` gets a client, ``"ray"`` is registered, others are known.
    jobs
        Dask workers to start here; −1 means one per core.
    scheduler
        Address of a running Dask scheduler instead, such as ``tcp://host:8786``.
    """
    if backend == "dask":
        return _dask(jobs, scheduler)
    if scheduler is not None:
        raise InputError(f"a scheduler goes with the backend dask, got backend {backend!r}.")
    if backend == "ray":
        _register_ray()
    elif backend is not None and backend not in BACKENDS:
        known = ", ".join(sorted({*BACKENDS, "dask", "ray"}))
        raise InputError(f"joblib knows no backend {backend!r}; known are {known}.")
    return nullcontext()


def _register_ray() -> None:
    try:
        from ray.util.joblib import register_ray  # noqa: PLC0415 (not ours to install)
    except ImportError as error:
        raise InputError("the backend ray needs Ray; install it with `pip install ray`.") from error
    register_ray()


def _dask(jobs: int, scheduler: str | None) -> AbstractContextManager[Any]:
    """Return a client of a scheduler that runs already, or of workers started here."""
    try:
        import distributed  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise InputError(
            f"the backend dask needs Dask; {to_install('dask')} installs it."
        ) from error
    client: Callable[..., AbstractContextManager[Any]] = distributed.Client
    if scheduler is None:
        workers = os.cpu_count() or 1 if jobs == -1 else jobs
        return client(n_workers=workers, threads_per_worker=1, dashboard_address=None)
    try:
        return client(scheduler, timeout=10)
    except (OSError, ValueError) as error:
        raise InputError(f"no Dask scheduler answers at {scheduler}: {error}.") from error
