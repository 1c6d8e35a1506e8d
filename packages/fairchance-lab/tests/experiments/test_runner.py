"""Runs give the same rows, whether interrupted, resumed or parallel."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from joblib import parallel_config
from joblib.parallel import ThreadingBackend

from experiments.small_experiment import SMALL, SPEC
from fairchance.errors import InputError
from fairchance.simulate.populations import Lender
from fairchance_lab.datasets import load
from fairchance_lab.experiments import tables
from fairchance_lab.experiments.methods import METHODS
from fairchance_lab.experiments.repetition import run_repetition
from fairchance_lab.experiments.results import COUNTS, KEYS, read_results
from fairchance_lab.experiments.runner import Run, run_experiment
from fairchance_lab.experiments.spec import Experiment
from fairchance_lab.experiments.world_file import read_world_file
from fairchance_lab.experiments.world_spec import WorldSpec, load_source
from sentences import one_sentence

KILLED = """
methods = ["plain", "no-exploration"]
repetitions = 7
[world]
data = "german"
n_batch = 300
n_rounds = 10
"""

SCRIPT = """
import os, signal, sys
from pathlib import Path
from fairchance_lab.experiments.runner import Run, run_experiment
from fairchance_lab.experiments.world_spec import load_source
from fairchance_lab.experiments.world_file import read_world_file
def stop_after_two(n_done, _):
    if n_done == 2:
        os.kill(os.getpid(), signal.SIGSTOP)
experiment = read_world_file(Path(sys.argv[1]))
run = Run(Path(sys.argv[2]), jobs=1, progress=stop_after_two)
run_experiment(experiment, load_source(experiment.world), run)
"""


def rows(results):
    return list(zip(*(results.columns[name].tolist() for name in (*KEYS, *COUNTS)), strict=True))


def parts_of(folder):
    return sorted((folder / "parts").glob("*.parquet"))


def marks_of(paths):
    """Return inodes and times, which change if a file is written again."""
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in paths}


@pytest.fixture(scope="module")
def whole():
    return run_experiment(SMALL, Lender(), Run(jobs=1))


@pytest.fixture
def counted(monkeypatch):
    """Return a list that grows with each repetition that runs; for ``jobs=1``."""
    ran = []

    def make(setup):
        ran.append(setup.seed)
        return METHODS["alpha-at-once"][1](setup)

    monkeypatch.setitem(METHODS, "counted", ("Counted", make))
    return ran


def test_killed_run_resumes_and_writes_the_same_bytes(tmp_path):
    file, folder = tmp_path / "world.toml", tmp_path / "killed"
    file.write_text(KILLED)
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(file), str(folder)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )
    try:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), process.stderr.read()
        busy = replace(read_world_file(file), repetitions=1)
        with pytest.raises(InputError, match=str(folder)) as caught:
            run_experiment(busy, load("german"), Run(folder, 1))
        one_sentence(caught)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    before = marks_of(parts_of(folder))
    assert len(before) == 2
    assert not (folder / "results.parquet").exists()
    with pytest.raises(InputError, match=str(folder)):
        read_results(folder)

    calls = []
    experiment = read_world_file(file)
    source = load_source(experiment.world)
    run = Run(folder, jobs=1, progress=lambda *counts: calls.append(counts))
    resumed = run_experiment(experiment, source, run)
    assert calls[0] == (len(before), 7)
    assert len(calls) == 1 + 7 - len(before)
    assert {name: marks_of(parts_of(folder))[name] for name in before} == before

    whole = run_experiment(experiment, source, Run(tmp_path / "whole", jobs=1))
    assert rows(resumed) == rows(whole)
    for name in ("results.parquet", "settings.json"):
        assert (folder / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    for part, other in zip(parts_of(folder), parts_of(tmp_path / "whole"), strict=True):
        assert part.read_bytes() == other.read_bytes()


def test_two_processes_give_the_same_rows(whole):
    calls = []
    run = Run(jobs=2, progress=lambda done, total: calls.append((done, total)))
    assert rows(run_experiment(SMALL, Lender(), run)) == rows(whole)
    assert calls == [(done, 4) for done in range(5)]


def test_a_joblib_backend_of_the_caller_gives_the_same_rows(whole):
    started = []

    class Cluster(ThreadingBackend):
        def submit(self, func, callback=None):
            started.append(func)
            return super().submit(func, callback)

    with parallel_config(backend=Cluster()):
        spread = run_experiment(SMALL, Lender(), Run(jobs=2))
    assert len(started) == 4
    assert rows(spread) == rows(whole)


def test_a_single_repetition_has_the_same_rows(whole):
    for number in (2, 0):
        alone = run_repetition(SMALL, Lender(), number).columns
        chosen = whole.columns["repetition"] == number
        for name in (*KEYS, *COUNTS):
            assert alone[name].tolist() == whole.columns[name][chosen].tolist()


def test_order_of_rows(whole):
    order = [
        (setting, method, repetition, t, group)
        for setting in ("α = 0.15", "α = 0.25")
        for method in SMALL.methods
        for repetition in range(4)
        for t in (1, 2, 3)
        for group in "AB"
    ]
    assert [row[: len(KEYS)] for row in rows(whole)] == order
    people = whole.count("n_people")
    assert np.all(people.sum(axis=-1) == 80)
    assert np.array_equal(people[0], people[1])
    assert np.array_equal(people[:, 0], people[:, 1])


def test_more_repetitions_reuse_earlier_ones(tmp_path, counted):
    few = replace(SMALL, methods=("counted",), vary={}, repetitions=2)
    first = run_experiment(few, Lender(), Run(tmp_path, 1))
    before = marks_of(parts_of(tmp_path))
    more = run_experiment(replace(few, repetitions=5), Lender(), Run(tmp_path, 1))
    assert len(counted) == len(set(counted)) == 5
    assert {name: marks_of(parts_of(tmp_path))[name] for name in before} == before
    early = more.columns["repetition"] < 2
    for name in (*KEYS, *COUNTS):
        assert more.columns[name][early].tolist() == first.columns[name].tolist()
    assert more.shape[2] == 5
    with pytest.raises(InputError, match=r"5 repetitions.* 2"):
        run_experiment(few, Lender(), Run(tmp_path, 1))
    assert len(counted) == 5
    parts_of(tmp_path)[-1].write_bytes(b"")  # a damaged repetition is run again
    again = run_experiment(replace(few, repetitions=5), Lender(), Run(tmp_path, 1))
    assert len(counted) == 6
    assert rows(again) == rows(more)


def test_equal_runs_write_equal_bytes(tmp_path):
    for name in ("one", "two"):
        run_experiment(SMALL, Lender(), Run(tmp_path / name, 1))
    for name in ("results.parquet", "settings.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_folder_and_memory_give_the_same(whole, tmp_path):
    kept = run_experiment(SMALL, Lender(), Run(tmp_path, 1))
    assert rows(kept) == rows(whole) == rows(read_results(tmp_path))
    assert kept.about == whole.about == read_results(tmp_path).about


def test_settings_and_data_are_kept(tmp_path):
    experiment = replace(SMALL, world=WorldSpec("german", "sex", n_batch=60, n_rounds=2))
    table = load("german")
    single = replace(experiment, methods=("opt-offline",), repetitions=1)
    about = run_experiment(single, table, Run(tmp_path, 1)).about
    assert about["experiment"] == single.as_dict()
    assert about["data"]["fingerprint"] == table.fingerprint
    assert about["data"]["rows"] == 1000
    assert about["labels"] == {"opt-offline": "OPT-OFFLINE, all outcomes of S_0"}
    settings = json.loads((tmp_path / "settings.json").read_text())
    assert {name: settings[name] for name in about} == about


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"methods": ("opt-offline", "plain")},
        {"vary": {"alpha": (0.15,)}},
        {"switches": ("C2",)},
        {"world": replace(SPEC, n_batch=81)},
    ],
)
def test_folder_of_another_experiment_is_rejected(tmp_path, change):
    quick = replace(SMALL, methods=("opt-offline",), repetitions=1)
    run_experiment(quick, Lender(), Run(tmp_path, 1))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match=r"\(different experiment.* --fresh") as caught:
        run_experiment(replace(quick, **change), Lender(), Run(tmp_path, 1))
    assert str(tmp_path) in one_sentence(caught)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    run_experiment(replace(quick, name="another name"), Lender(), Run(tmp_path, 1))


def test_fresh_run_moves_earlier_results_aside(tmp_path):
    quick = replace(SMALL, methods=("opt-offline",), repetitions=2)
    run_experiment(quick, Lender(), Run(tmp_path, 1, fresh=True))  # without earlier results
    (tmp_path / "notes.txt").write_text("not a part of a run")
    (tmp_path / "report.html").write_text("a page")
    for number, seed in ((1, 1), (2, 0)):
        before = {
            path.relative_to(tmp_path): path.read_bytes()
            for path in sorted(tmp_path.rglob("*"))
            if path.is_file() and path.name not in ("lock", "notes.txt")
        }
        other = replace(quick, seed=seed, repetitions=1)
        results = run_experiment(other, Lender(), Run(tmp_path, 1, fresh=True))
        assert results.shape[2] == 1
        aside = tmp_path / f"before-{number}"
        moved = {name: content for name, content in before.items() if "before" not in str(name)}
        assert {name: (aside / name).read_bytes() for name in moved} == moved
        kept = {name: content for name, content in before.items() if "before" in str(name)}
        assert {name: (tmp_path / name).read_bytes() for name in kept} == kept
    assert (tmp_path / "notes.txt").read_text() == "not a part of a run"
    assert read_results(tmp_path / "before-1").shape[2] == 2
    assert read_results(tmp_path).about["experiment"]["seed"] == 0


def test_fresh_run_leaves_a_running_run_alone(tmp_path, monkeypatch):
    quick = replace(SMALL, methods=("nested",), vary={}, repetitions=1)
    refused = []

    def make(setup):
        with pytest.raises(InputError, match=str(tmp_path)) as caught:
            run_experiment(quick, Lender(), Run(tmp_path, 1, fresh=True))
        refused.append(caught)
        return METHODS["alpha-at-once"][1](setup)

    monkeypatch.setitem(METHODS, "nested", ("Nested", make))
    run_experiment(quick, Lender(), Run(tmp_path, 1))
    assert len(refused) == 1
    assert not list(tmp_path.glob("before-*"))


def test_folder_of_other_data_is_rejected(tmp_path):
    table = load("german")
    world = WorldSpec("german", "sex", n_batch=60, n_rounds=2)
    quick = replace(SMALL, world=world, methods=("opt-offline",), repetitions=1)
    run_experiment(quick, table, Run(tmp_path, 1))
    other = replace(table, outcome=table.outcome[::-1])
    with pytest.raises(InputError, match=r"\(different data") as caught:
        run_experiment(quick, other, Run(tmp_path, 1))
    one_sentence(caught)


def test_two_runs_in_one_folder_are_rejected(tmp_path, monkeypatch):
    quick = replace(SMALL, methods=("nested",), vary={}, repetitions=1)
    refused = []

    def nested(setup):
        with pytest.raises(InputError, match=str(tmp_path)) as caught:
            run_experiment(quick, Lender(), Run(tmp_path, 1))
        refused.append(one_sentence(caught))
        return METHODS["alpha-at-once"][1](setup)

    monkeypatch.setitem(METHODS, "nested", ("Nested", nested))
    run_experiment(quick, Lender(), Run(tmp_path, 1))
    assert len(refused) == 1


def test_incomplete_files_of_a_killed_run_are_ignored(tmp_path, whole):
    (tmp_path / "parts").mkdir()
    half = (
        "settings.part",
        "results.parquet.part",
        "parts/repetition-00001.parquet.part",
        "parts/repetition-00002.parquet.part",
    )
    for name in half:
        (tmp_path / name).write_bytes(b"PAR1 half")
    assert rows(run_experiment(SMALL, Lender(), Run(tmp_path, 1))) == rows(whole)
    assert rows(read_results(tmp_path)) == rows(whole)


def test_interrupted_run_keeps_its_repetitions(tmp_path, monkeypatch):
    def make(setup):
        made.append(setup)
        if len(made) == 3:
            raise KeyboardInterrupt
        return METHODS["alpha-at-once"][1](setup)

    made = []
    monkeypatch.setitem(METHODS, "fails", ("Fails", make))
    quick = replace(SMALL, methods=("fails",), vary={}, repetitions=4)
    with pytest.raises(KeyboardInterrupt):
        run_experiment(quick, Lender(), Run(tmp_path, 1))
    assert len(parts_of(tmp_path)) == 2
    done = run_experiment(quick, Lender(), Run(tmp_path, 1))
    assert len(made) == 5
    assert done.shape[2] == 4


def diverging(numbers):
    """Return a function that makes a method which diverges in these repetitions."""
    made = []

    def make(setup):
        made.append(setup.seed)
        if len(made) - 1 in numbers:
            raise FloatingPointError(f"diverged with seed {setup.seed}")
        return METHODS["alpha-at-once"][1](setup)

    return make, made


def test_failures_are_kept_with_their_seeds(tmp_path, monkeypatch):
    make, made = diverging({1, 3})
    monkeypatch.setitem(METHODS, "diverges", ("Diverges", make))
    quick = replace(SMALL, methods=("diverges", "alpha-at-once"), vary={}, repetitions=4)
    run_experiment(quick, Lender(), Run(tmp_path, 1))
    results = read_results(tmp_path)
    failed = results.failed("diverges", 0)
    assert [failure.repetition for failure in failed] == [1, 3]
    assert [failure.seed for failure in failed] == [made[1], made[3]]
    assert all(f"diverged with seed {failure.seed} (at " in failure.sentence for failure in failed)
    assert results.failed("alpha-at-once", 0) == ()
    # Its other repetitions have the numbers of a method that never fails.
    revenue = tables.per_repetition(results, "revenue")[0]
    assert np.isnan(revenue[0]).tolist() == [False, True, False, True]
    assert revenue[0, ::2].tolist() == revenue[1, ::2].tolist()


def test_run_in_which_every_method_fails(monkeypatch):
    monkeypatch.setitem(METHODS, "diverges", ("Diverges", diverging(set(range(9)))[0]))
    quick = replace(SMALL, methods=("diverges",), vary={}, repetitions=2)
    with pytest.raises(InputError, match="diverges: Floating"):
        run_experiment(quick, Lender(), Run(jobs=1))


def test_progress(tmp_path):
    calls = []
    quick = replace(SMALL, methods=("opt-offline",))
    run = Run(tmp_path, 1, progress=lambda done, total: calls.append((done, total)))
    run_experiment(quick, Lender(), run)
    assert calls == [(done, 4) for done in range(5)]
    calls.clear()
    run_experiment(quick, Lender(), run)
    assert calls == [(4, 4)]


@pytest.mark.parametrize("jobs", [0, -2])
def test_invalid_jobs_are_rejected(jobs):
    with pytest.raises(InputError, match=f"jobs.* {jobs}") as caught:
        run_experiment(SMALL, Lender(), Run(jobs=jobs))
    one_sentence(caught)


def test_absent_group_has_rows_of_zeros():
    world = WorldSpec(
        "lender",
        population={"share_b": 0.01},
        n_batch=30,
        n_rounds=2,
        past=({"rule": "random", "rate": 0.9},),
    )
    experiment = Experiment(
        "x", world, ("opt-offline", "logistic-all-labels"), repetitions=5, seed=2
    )
    results = run_experiment(experiment, load_source(world), Run(jobs=1))
    assert results.shape == (1, 2, 5, 2, 2)
    assert np.all(results.count("n_people").sum(axis=-1) == 30)


def test_unknown_method_leaves_no_folder(tmp_path):
    wrong = replace(SMALL, methods=("opt-offline", "plian"), vary={}, repetitions=1)
    with pytest.raises(InputError, match="'plian'"):
        run_experiment(wrong, Lender(), Run(tmp_path, 1))
    run_experiment(replace(wrong, methods=("opt-offline",)), Lender(), Run(tmp_path, 1))


def test_file_instead_of_a_folder_is_rejected(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file") as caught:
        run_experiment(SMALL, Lender(), Run(tmp_path / "file", 1))
    one_sentence(caught)


def test_negative_seed_is_rejected():
    with pytest.raises(InputError, match="seed"):
        run_experiment(replace(SMALL, seed=-1), Lender(), Run(jobs=1))


def test_unknown_settings_files_are_rejected(tmp_path):
    (tmp_path / "settings.json").write_text("")
    quick = replace(SMALL, methods=("opt-offline",), repetitions=1)
    run_experiment(quick, Lender(), Run(tmp_path, 1))  # without results to protect
    for text in ("", "[]"):
        (tmp_path / "settings.json").write_text(text)
        with pytest.raises(InputError, match="settings") as caught:
            run_experiment(quick, Lender(), Run(tmp_path, 1))
        one_sentence(caught)
