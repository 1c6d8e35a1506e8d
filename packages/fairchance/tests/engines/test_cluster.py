"""A worker of a Dask cluster is killed while it decides, and the decisions are the same."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import dask
import dask.dataframe as dd
import numpy as np
import pyarrow as pa
import pytest
from distributed import Client, LocalCluster

from engines.cases import case, check_decided
from fairchance.engines import decide_dask

pytestmark = [
    pytest.mark.filterwarnings("ignore::fairchance.errors.LearningWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def part_of(frame, at, n, mark):
    """Return a partition; the first worker that gets the fourth one dies."""
    if at == 3 and not Path(mark).exists():
        Path(mark).write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGKILL)
    return frame.iloc[np.array_split(np.arange(len(frame)), n)[at]]


def test_a_worker_that_dies_changes_no_decision(tmp_path):
    one, mark = case("certified, per group, persons"), tmp_path / "killed"
    frame = one.table.to_pandas()
    options = {"dashboard_address": ":0", "local_directory": str(tmp_path)}
    quiet = {"distributed.admin.pdb-on-err": False, "logging.distributed": "critical"}
    with (
        dask.config.set(quiet),
        LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster,
        Client(cluster) as client,
    ):
        people = dd.from_map(
            lambda at: part_of(frame, at, 6, str(mark)), range(6), meta=frame.iloc[:0]
        )
        decided = decide_dask(one.policy, people, keep=True).compute()
        alive = {one["pid"] for one in client.run(lambda: {"pid": os.getpid()}).values()}
    assert int(mark.read_text()) not in alive
    check_decided(one, pa.Table.from_pandas(decided, preserve_index=False), "decided_")
