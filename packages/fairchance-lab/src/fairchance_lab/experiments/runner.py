"""Run an experiment: repetitions in parallel, each saved when it is done.

The folder of a run holds ``settings.json``, one file per repetition in ``parts/`` and, at the end,
``results.parquet``. Each file appears complete or not at all, so an interrupted run continues where
it stopped, and ends with the same rows as a run without interruption.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import joblib
import numpy as np
from joblib import Parallel, delayed

import fairchance
import fairchance_lab
from fairchance.errors import InputError
from fairchance.simulate.people import Table
from fairchance.simulate.populations import FiniteDomain, Population
from fairchance_lab.experiments.methods import (
    check_methods,
    check_options,
    find_main,
    find_once,
    label,
)
from fairchance_lab.experiments.repetition import check_world, run_repetition
from fairchance_lab.experiments.results import Results, read_results, write_results
from fairchance_lab.experiments.spec import Experiment
from fairchance_lab.experiments.world_file import read_world, read_world_file
from fairchance_lab.experiments.world_spec import load_source

__all__ = ["Run", "compare", "run_experiment"]

Progress = Callable[[int, int], None]
_RUN_FILES = ("settings.json", "parts", "results.parquet", "report.html", "figures", "tables")
_FRESH_ADVICE = (
    "add --fresh (from Python Run(fresh=True)), which moves them aside, or choose another folder"
)


@dataclass(frozen=True)
class Run:
    """How to run an experiment: folder and cores.

    Attributes
    ----------
    folder
        Folder for results; None keeps them in memory only.
    jobs
        Repetitions at a time; −1 means one per core.
    progress
        Called with (repetitions done, repetitions in total).
    fresh
        Start again: earlier results are moved into a subfolder ``before-1``, ``before-2``, …
    """

    folder: Path | None = None
    jobs: int = -1
    progress: Progress | None = None
    fresh: bool = False


def compare(world: str | Path | Mapping[str, Any], *, jobs: int = 1) -> Results:
    """Run methods in the same world and return their results, for ``plot.compare`` and others.

    Parameters
    ----------
    world
        A TOML file of a world (documentation: World files), or its content as a dictionary. With
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
    experiment = read_world(world) if isinstance(world, Mapping) else read_world_file(Path(world))
    return run_experiment(experiment, load_source(experiment.world), Run(jobs=jobs))


def run_experiment(
    experiment: Experiment, source: Table | Population, run: Run | None = None
) -> Results:
    """Run the missing repetitions and return the results of all.

    Parameters
    ----------
    experiment
        The experiment.
    source
        The data set or population of its world.
    run
        Folder and cores; None means the defaults. The repetitions run on the joblib backend in
        force, so ``joblib.parallel_config`` around this call moves them to a cluster.
    """
    run = Run() if run is None else run
    if run.jobs == 0 or run.jobs < -1:
        raise InputError(f"jobs must be 1 or more, or -1 for one per core, got {run.jobs}.")
    check_methods(experiment.methods, experiment.variants)
    check_options(experiment)
    check_world(experiment, source)
    about = _about(experiment, source)
    with _open_storage(run, experiment, about) as storage:
        done = storage.repetitions(experiment.repetitions)
        todo = [number for number in range(experiment.repetitions) if number not in done]
        _report_progress(run, len(done), experiment)
        for number, part in _run_parallel(experiment, source, todo, run):
            done.add(number)
            storage.save(number, part)
            _report_progress(run, len(done), experiment)
        results = storage.combine(experiment.repetitions, about)
        _check_not_empty(results)
        storage.finish(results)
    return results


def _check_not_empty(results: Results) -> None:
    """Raise if every method failed in every repetition."""
    if not results.count("n_people").any():
        first = results.failures[0]
        raise InputError(
            f"every method failed in every repetition; correct the methods and add --fresh. First "
            f"failure, of {first.method}: {first.sentence}"
        )


def _report_progress(run: Run, n_done: int, experiment: Experiment) -> None:
    if run.progress is not None:
        run.progress(n_done, experiment.repetitions)


def _run_parallel(
    experiment: Experiment, source: Table | Population, todo: list[int], run: Run
) -> Iterator[tuple[int, Results]]:
    """Yield repetitions as they finish, in any order."""
    if not todo:
        return
    pool = Parallel(
        n_jobs=min(run.jobs, len(todo)),
        return_as="generator_unordered",
        batch_size=1,
        pre_dispatch="n_jobs",
    )
    yield from pool(delayed(_run_numbered)(experiment, source, number) for number in todo)


def _run_numbered(
    experiment: Experiment, source: Table | Population, number: int
) -> tuple[int, Results]:
    return number, run_repetition(experiment, source, number)


def _about(experiment: Experiment, source: Table | Population) -> dict[str, Any]:
    """Return settings, version and data; no times, so that equal runs have equal files."""
    if isinstance(source, Table):
        data = {
            "name": source.name,
            "source": source.source,
            "fingerprint": source.fingerprint,
            "rows": len(source),
        }
    else:
        options = experiment.world.population.items()
        about = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in options)
        if isinstance(source, FiniteDomain):
            about = f"{source.mass.size} kinds of people"
        data = {
            "name": experiment.world.data,
            "source": f"A synthetic population with known truth{f': {about}' if about else ''}.",
            "fingerprint": joblib.hash(source),
            "rows": 0,
        }
    return {
        "experiment": experiment.as_dict(),
        "settings": [
            {"label": s.label, "alpha": s.goal.alpha, "options": dict(s.options)}
            for s in experiment.settings
        ],
        "main": find_main(experiment),
        "once": list(find_once(experiment)),
        "labels": {name: label(name, experiment.variants) for name in experiment.methods},
        "version": fairchance.__version__,
        "data": data,
    }


class _MemoryStorage:
    """Repetitions of a run without a folder."""

    def __init__(self) -> None:
        self._parts: dict[int, Results] = {}

    def repetitions(self, n: int) -> set[int]:  # noqa: ARG002
        return set()

    def save(self, number: int, part: Results) -> None:
        self._parts[number] = part

    def combine(self, n: int, about: dict[str, Any]) -> Results:
        return _combine_parts([self._parts[number] for number in range(n)], about)

    def finish(self, results: Results) -> None:
        """Do nothing."""


class _FolderStorage:
    """Repetitions of a run in a folder, one file for each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._parts = folder / "parts"
        self._parts.mkdir(exist_ok=True)

    def _path(self, number: int) -> Path:
        return self._parts / f"repetition-{number:05d}.parquet"

    def repetitions(self, n: int) -> set[int]:
        """Return the numbers of complete repetitions."""
        present = sorted(self._parts.glob("repetition-*.parquet"))
        if len(present) > n:
            raise InputError(
                f"the folder {self._folder} holds {len(present)} repetitions, more than {n}; run "
                f"at least as many, {_FRESH_ADVICE}."
            )
        return {number for number in range(n) if self._is_complete(self._path(number))}

    @staticmethod
    def _is_complete(path: Path) -> bool:
        if not path.is_file():
            return False
        try:
            return len(read_results(path)) > 0
        except InputError:  # damaged, for example by a full disk
            return False

    def save(self, number: int, part: Results) -> None:
        try:
            write_results(part, self._path(number))
        except OSError as error:
            raise InputError(
                f"repetition {number} could not be written to {self._parts} ({error}); the same "
                f"command keeps the repetitions done."
            ) from error

    def combine(self, n: int, about: dict[str, Any]) -> Results:
        return _combine_parts([read_results(self._path(i)) for i in range(n)], about)

    def finish(self, results: Results) -> None:
        write_results(results, self._folder / "results.parquet")


@contextmanager
def _open_storage(
    run: Run, experiment: Experiment, about: dict[str, Any]
) -> Iterator[_MemoryStorage | _FolderStorage]:
    """Lock the folder of a run for this process, and check that it is of the same experiment."""
    folder = run.folder
    if folder is None:
        yield _MemoryStorage()
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"results cannot be written to {folder} ({error.strerror}); name a writable folder."
        ) from error
    with (folder / "lock").open("w") as lock:
        _lock(lock, folder)
        if run.fresh:
            _move_aside(folder)
        settings = folder / "settings.json"
        content = {"key": _key(experiment, about), **about}
        if settings.is_file() and any((folder / "parts").glob("*.parquet")):
            _check_same(_read_settings(settings), content, folder)
        unfinished = settings.with_suffix(".part")
        unfinished.write_text(
            json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
        )
        unfinished.replace(settings)
        yield _FolderStorage(folder)


def _move_aside(folder: Path) -> None:
    """Move the files of an earlier run into a subfolder; other files stay."""
    present = [folder / name for name in _RUN_FILES if (folder / name).exists()]
    if not present:
        return
    number = 1
    while (folder / f"before-{number}").exists():
        number += 1
    aside = folder / f"before-{number}"
    try:
        aside.mkdir()
        for path in present:
            path.rename(aside / path.name)
    except OSError as error:
        raise InputError(
            f"earlier results cannot be moved to {aside} ({error.strerror}); choose another folder."
        ) from error


def _read_settings(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise InputError(f"{path} is not a settings file of a run; {_FRESH_ADVICE}.")
    return content


def _key(experiment: Experiment, about: dict[str, Any]) -> str:
    parts = (experiment.fingerprint, about["data"]["fingerprint"], about["version"])
    return " ".join([*parts, *(_source_hash(path) for path in _sources(experiment))])


def _sources(experiment: Experiment) -> list[Path]:
    """Return the code that results depend on: both packages', and the user's methods."""
    own = {name.partition(":")[0] for name in experiment.methods if ":" in name}
    files = [getattr(sys.modules.get(module), "__file__", None) for module in sorted(own)]
    libraries = [Path(package.__path__[0]) for package in (fairchance, fairchance_lab)]
    return [*libraries, *(Path(file) for file in files if file)]


def _source_hash(path: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _check_same(stored: dict[str, Any], current: dict[str, Any], folder: Path) -> None:
    if stored.get("key") == current["key"]:
        return
    differ = [
        name
        for name in ("experiment", "data", "version")
        if _comparable(stored.get(name)) != _comparable(current[name])
    ] or ["code"]
    raise InputError(
        f"the folder {folder} holds results of another run (different {' and '.join(differ)}); "
        f"{_FRESH_ADVICE}."
    )


def _comparable(part: Any) -> dict[str, Any]:
    fields = part if isinstance(part, dict) else {"value": part}
    return {key: value for key, value in fields.items() if key not in ("repetitions", "name")}


def _lock(file: IO[str], folder: Path) -> None:
    """Hold a lock until the process ends, even if it is killed."""
    if os.name != "posix":
        return
    import fcntl  # noqa: PLC0415 (only on POSIX)

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise InputError(
            f"another run is writing to the folder {folder}; wait for it, or choose another folder."
        ) from error


def _combine_parts(parts: list[Results], about: dict[str, Any]) -> Results:
    """Return all repetitions in the order setting, method, repetition, round, group."""
    first = parts[0].columns
    together = {key: np.concatenate([part.columns[key] for part in parts]) for key in first}
    blocks = [
        np.flatnonzero((first["setting"] == setting) & (first["method"] == method))
        for setting in dict.fromkeys(first["setting"].tolist())
        for method in dict.fromkeys(first["method"].tolist())
    ]
    starts = np.cumsum([0] + [len(part) for part in parts[:-1]])
    order = np.concatenate([start + block for block in blocks for start in starts])
    columns = {key: values[order] for key, values in together.items()}
    failures = tuple(failure for part in parts for failure in part.failures)
    return Results(columns, about, parts[0].certificates, failures)
