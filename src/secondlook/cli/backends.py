"""Clusters that joblib can spread repetitions over."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from secondlook.errors import InputError

__all__ = ["cluster"]


def cluster(jobs: int, scheduler: str | None) -> AbstractContextManager[Any]:
    """Return a Dask client: of a scheduler that runs already, or of workers started here.

    Parameters
    ----------
    jobs
        Workers to start; −1 means one per core.
    scheduler
        Address of a running scheduler, such as ``tcp://host:8786``.
    """
    try:
        import distributed  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise InputError(
            "the backend dask needs Dask; install it with `pip install 'secondlook[dask]'`."
        ) from error
    client: Callable[..., AbstractContextManager[Any]] = distributed.Client
    if scheduler is None:
        workers = os.cpu_count() or 1 if jobs == -1 else jobs
        return client(n_workers=workers, threads_per_worker=1, dashboard_address=None)
    try:
        return client(scheduler, timeout=10)
    except OSError as error:
        raise InputError(f"no Dask scheduler answers at {scheduler}: {error}.") from error
