"""Known truth, data sets, methods to compare with, and the paper's experiments."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairchance.lab.experiments.results import Results

__all__ = ["compare"]


def compare(world: str | Path | Mapping[str, Any], *, jobs: int = 1) -> Results:
    """Run methods in the same world and return their results, for ``plot.compare`` and others.

    Parameters
    ----------
    world
        A TOML file of a world (``docs/worlds.md``), or the same content as a dictionary. With
        ``judged = true``, policies are also judged on the whole population, which takes longer.
    jobs
        Repetitions at a time; −1 means one per core.

    Examples
    --------
    >>> world = {"data": "lender", "n_batch": 100, "n_rounds": 2}
    >>> results = compare({"methods": ["plain", "ceiling"], "repetitions": 2, "world": world})
    >>> results.methods, results.shape
    (('plain', 'ceiling'), (1, 2, 2, 2, 2))
    """
    # Modules of the lab import this one, and are slow to import.
    from fairchance.lab.experiments.runner import Run, run_experiment  # noqa: PLC0415
    from fairchance.lab.experiments.world_file import read_world, read_world_file  # noqa: PLC0415
    from fairchance.lab.experiments.world_spec import load_source  # noqa: PLC0415

    experiment = read_world(world) if isinstance(world, Mapping) else read_world_file(Path(world))
    return run_experiment(experiment, load_source(experiment.world), Run(jobs=jobs))
