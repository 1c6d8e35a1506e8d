"""Run an experiment: repetitions spread over cores or a cluster, each kept as soon as it is done.

A folder of a run holds ``settings.json``, one file per repetition in ``parts/`` and, once all are
there, ``results.parquet``. Each file is written whole or not at all, so a run that was killed goes
on where it stopped, and ends with the same rows as one that was not.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

import joblib
import numpy as np
from joblib import Parallel, delayed, parallel_config

from secondlook.errors import InputError
from secondlook.lab.experiments.methods import check_methods, label
from secondlook.lab.experiments.repetition import check_world, run_repetition
from secondlook.lab.experiments.results import Results, read_results, write_results
from secondlook.lab.experiments.spec import Experiment
from secondlook.lab.simulate.finite import FiniteDomain
from secondlook.lab.simulate.people import Table
from secondlook.lab.simulate.populations import Population

__all__ = ["Run", "run_experiment"]

Progress = Callable[[int, int], None]
_LEFT = ("settings.json", "parts", "results.parquet", "report.html", "figures")
_AFRESH = (
    "add --fresh (from Python Run(fresh=True)), which moves them aside, or choose another folder"
)


@dataclass(frozen=True)
class Run:
    """How to run: where results go, on how many cores or on what cluster.

    Attributes
    ----------
    folder
        Where results go; None keeps them in memory only.
    jobs
        Repetitions at a time; −1 means one per core.
    backend
        Name of a joblib backend (``"loky"``, ``"dask"``, ``"ray"``); None means joblib's own.
    progress
        Called with (repetitions done, repetitions in all).
    fresh
        Begin again: results that are in the folder are moved aside, into a folder ``before-1``,
        ``before-2``, … in it.
    """

    folder: Path | None = None
    jobs: int = -1
    backend: str | None = None
    progress: Progress | None = None
    fresh: bool = False


def run_experiment(
    experiment: Experiment, source: Table | Population, run: Run | None = None
) -> Results:
    """Run what has not run yet and return the results of all repetitions.

    Parameters
    ----------
    experiment
        What to run.
    source
        The data set or population that its world names.
    run
        Where and how.
    """
    run = Run() if run is None else run
    if run.jobs == 0 or run.jobs < -1:
        raise InputError(f"jobs must be 1 or more, or -1 for one per core, got {run.jobs}.")
    check_methods(experiment.methods)
    check_world(experiment, source)
    about = _about(experiment, source)
    with _opened(run, experiment, about) as kept:
        done = kept.repetitions(experiment.repetitions)
        todo = [number for number in range(experiment.repetitions) if number not in done]
        _tell(run, len(done), experiment)
        for number, part in _computed(experiment, source, todo, run):
            done.add(number)
            kept.keep(number, part)
            _tell(run, len(done), experiment)
        results = kept.combined(experiment.repetitions, about)
        _check_any(results)
        kept.finish(results)
    return results


def _check_any(results: Results) -> None:
    """Raise if there is nothing to show, since every method failed in every repetition."""
    if not results.count("n_people").any():
        first = results.failures[0]
        raise InputError(
            f"every method failed in every repetition, so mend them and add --fresh; "
            f"{first.method} said: {first.sentence}"
        )


def _tell(run: Run, n_done: int, experiment: Experiment) -> None:
    if run.progress is not None:
        run.progress(n_done, experiment.repetitions)


def _computed(
    experiment: Experiment, source: Table | Population, todo: list[int], run: Run
) -> Iterator[tuple[int, Results]]:
    """Yield repetitions as they are done, in any order."""
    if not todo:
        return
    named = nullcontext() if run.backend is None else parallel_config(backend=run.backend)
    with named:
        pool = Parallel(
            n_jobs=min(run.jobs, len(todo)),
            return_as="generator_unordered",
            batch_size=1,
            pre_dispatch="n_jobs",
        )
    yield from pool(delayed(_numbered)(experiment, source, number) for number in todo)


def _numbered(
    experiment: Experiment, source: Table | Population, number: int
) -> tuple[int, Results]:
    return number, run_repetition(experiment, source, number)


def _about(experiment: Experiment, source: Table | Population) -> dict[str, Any]:
    """Return what results rest on: settings, version, data; no times, which would differ."""
    if isinstance(source, Table):
        data = {
            "name": source.name,
            "source": source.source,
            "fingerprint": source.fingerprint,
            "rows": len(source),
        }
    else:
        words = repr(source)
        if isinstance(source, FiniteDomain):
            words = f"{source.mass.size} kinds of people"
        data = {
            "name": experiment.world.data,
            "source": f"A population with known truth: {words}.",
            "fingerprint": joblib.hash(source),
            "rows": 0,
        }
    return {
        "experiment": experiment.as_dict(),
        "labels": {name: label(name) for name in experiment.methods},
        "version": version("secondlook"),
        "data": data,
    }


class _InMemory:
    """Repetitions of a run without a folder."""

    def __init__(self) -> None:
        self._parts: dict[int, Results] = {}

    def repetitions(self, n: int) -> set[int]:  # noqa: ARG002
        return set()

    def keep(self, number: int, part: Results) -> None:
        self._parts[number] = part

    def combined(self, n: int, about: dict[str, Any]) -> Results:
        return _combined([self._parts[number] for number in range(n)], about)

    def finish(self, results: Results) -> None:
        """Keep nothing."""


class _InFolder:
    """Repetitions of a run in a folder, each in a file of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._parts = folder / "parts"
        self._parts.mkdir(exist_ok=True)

    def _path(self, number: int) -> Path:
        return self._parts / f"repetition-{number:05d}.parquet"

    def repetitions(self, n: int) -> set[int]:
        """Return which repetitions are there, whole."""
        there = sorted(self._parts.glob("repetition-*.parquet"))
        if len(there) > n:
            raise InputError(
                f"the folder {self._folder} holds {len(there)} repetitions and {n} are asked for; "
                f"ask for at least as many, {_AFRESH}."
            )
        return {number for number in range(n) if self._whole(self._path(number))}

    @staticmethod
    def _whole(path: Path) -> bool:
        if not path.is_file():
            return False
        try:
            return len(read_results(path)) > 0
        except InputError:  # a full disk, say
            return False

    def keep(self, number: int, part: Results) -> None:
        try:
            write_results(part, self._path(number))
        except OSError as error:
            raise InputError(
                f"repetition {number} could not be written to {self._parts} ({error}); make room, "
                f"and give the same command again: what is there is kept."
            ) from error

    def combined(self, n: int, about: dict[str, Any]) -> Results:
        return _combined([read_results(self._path(i)) for i in range(n)], about)

    def finish(self, results: Results) -> None:
        write_results(results, self._folder / "results.parquet")


@contextmanager
def _opened(
    run: Run, experiment: Experiment, about: dict[str, Any]
) -> Iterator[_InMemory | _InFolder]:
    """Open the folder of a run for this process alone, if it is one of the same experiment."""
    folder = run.folder
    if folder is None:
        yield _InMemory()
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"results cannot go to {folder} ({error.strerror}); name a folder that can be written."
        ) from error
    with (folder / "lock").open("w") as lock:
        _lock(lock, folder)
        if run.fresh:
            _move_aside(folder)
        settings = folder / "settings.json"
        mine = {"key": _key(experiment, about), **about}
        if settings.is_file() and any((folder / "parts").glob("*.parquet")):
            _check_same(_settings(settings), mine, folder)
        unfinished = settings.with_suffix(".part")
        unfinished.write_text(json.dumps(mine, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
        unfinished.replace(settings)
        yield _InFolder(folder)


def _move_aside(folder: Path) -> None:
    """Move what a run has left in a folder into one of its own there; other files stay."""
    there = [folder / name for name in _LEFT if (folder / name).exists()]
    if not there:
        return
    number = 1
    while (folder / f"before-{number}").exists():
        number += 1
    aside = folder / f"before-{number}"
    try:
        aside.mkdir()
        for one in there:
            one.rename(aside / one.name)
    except OSError as error:
        raise InputError(
            f"earlier results cannot be moved to {aside} ({error.strerror}); choose another folder."
        ) from error


def _settings(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise InputError(
            f"{path} is not a settings file of a run, so nobody knows what is beside it; {_AFRESH}."
        )
    return content


def _key(experiment: Experiment, about: dict[str, Any]) -> str:
    parts = (experiment.fingerprint, about["data"]["fingerprint"], about["version"])
    return " ".join([*parts, *(_source_hash(path) for path in _sources(experiment))])


def _sources(experiment: Experiment) -> list[Path]:
    """Return the files whose code decides on results: the library's, and those of own methods."""
    own = {name.partition(":")[0] for name in experiment.methods if ":" in name}
    files = [getattr(sys.modules.get(module), "__file__", None) for module in sorted(own)]
    package = Path(__file__).parents[1]
    return [package, *(Path(file) for file in files if file)]


def _source_hash(path: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _check_same(there: dict[str, Any], mine: dict[str, Any], folder: Path) -> None:
    if there.get("key") == mine["key"]:
        return
    differ = [
        name
        for name in ("experiment", "data", "version")
        if _comparable(there.get(name)) != _comparable(mine[name])
    ] or ["code"]
    raise InputError(
        f"the folder {folder} holds results of another run (different {' and '.join(differ)}); "
        f"{_AFRESH}."
    )


def _comparable(part: Any) -> dict[str, Any]:
    found = part if isinstance(part, dict) else {"value": part}
    return {key: value for key, value in found.items() if key not in ("repetitions", "name")}


def _lock(file: IO[str], folder: Path) -> None:
    """Hold a lock that goes away with the process, however that ends."""
    if os.name != "posix":
        return
    import fcntl  # noqa: PLC0415 (not there elsewhere)

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise InputError(
            f"another run is writing to the folder {folder}; wait for it, or choose another."
        ) from error


def _combined(parts: list[Results], about: dict[str, Any]) -> Results:
    """Return all repetitions in the order alpha, method, repetition, round, group."""
    first = parts[0].columns
    together = {key: np.concatenate([part.columns[key] for part in parts]) for key in first}
    blocks = [
        np.flatnonzero((first["alpha"] == alpha) & (first["method"] == method))
        for alpha in dict.fromkeys(first["alpha"].tolist())
        for method in dict.fromkeys(first["method"].tolist())
    ]
    starts = np.cumsum([0] + [len(part) for part in parts[:-1]])
    order = np.concatenate([start + block for block in blocks for start in starts])
    columns = {key: values[order] for key, values in together.items()}
    failures = tuple(one for part in parts for one in part.failures)
    return Results(columns, about, parts[0].certificates, failures)
