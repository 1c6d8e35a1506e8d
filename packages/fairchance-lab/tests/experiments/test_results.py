"""Results files: written completely or not at all, and read back."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from experiments.known_results import make_results
from fairchance.errors import InputError
from fairchance_lab.experiments.results import COUNTS, KEYS, read_results, write_results
from sentences import one_sentence


@pytest.fixture
def results(rng):
    return make_results(rng, groups="abc", alphas=(0.1, 0.2), size=(3, 4))


def test_results_are_read_back(results, tmp_path):
    write_results(results, tmp_path / "r.parquet")
    again = read_results(tmp_path / "r.parquet")
    assert again.about == results.about
    for name in (*KEYS, *COUNTS):
        assert again.columns[name].tolist() == results.columns[name].tolist()
    assert [path.name for path in tmp_path.iterdir()] == ["r.parquet"]


def test_equal_results_write_equal_bytes(results, tmp_path):
    write_results(results, tmp_path / "1.parquet")
    write_results(read_results(tmp_path / "1.parquet"), tmp_path / "2.parquet")
    assert (tmp_path / "1.parquet").read_bytes() == (tmp_path / "2.parquet").read_bytes()


def test_axes_of_a_count(results):
    assert results.shape == (2, 2, 3, 4, 3)
    assert results.methods == ("plain", "no-exploration")
    count = results.count("n_people")
    for row in range(len(results)):
        at = {name: results.columns[name][row] for name in KEYS}
        place = (
            results.settings.index(at["setting"]),
            results.methods.index(at["method"]),
            at["repetition"],
            at["round"] - 1,
            results.groups.index(at["group"]),
        )
        assert count[place] == results.columns["n_people"][row]


def test_failed_write_keeps_the_old_file(results, tmp_path, monkeypatch):
    path = tmp_path / "r.parquet"
    write_results(results, path)
    before = path.read_bytes()

    def half(table, where, **_):
        where.write_bytes(b"PAR1")
        raise OSError("disk full")

    monkeypatch.setattr(parquet, "write_table", half)
    with pytest.raises(OSError, match="disk full"):
        write_results(results, path)
    assert path.read_bytes() == before


def test_folder_instead_of_a_file(results, tmp_path):
    write_results(results, tmp_path / "results.parquet")
    assert len(read_results(tmp_path)) == len(results)


def check_rejected(path, message):
    with pytest.raises(InputError, match=message) as error:
        read_results(path)
    assert str(path) in str(error.value)
    return error


def test_other_files_are_rejected(results, tmp_path):
    one_sentence(
        check_rejected(tmp_path / "no", "there are no results at .*; name the folder of a run")
    )
    one_sentence(check_rejected(tmp_path, "there are no results at"))
    (tmp_path / "settings.json").touch()
    one_sentence(check_rejected(tmp_path, "the run in .* is not complete; start it again"))
    text = tmp_path / "r.csv"
    text.write_text("a,b\n1,2\n")
    check_rejected(text, "cannot be read as a results file")
    other = tmp_path / "other.parquet"
    parquet.write_table(pa.table({"setting": ["α = 0.1"], "round": [1]}), other)
    one_sentence(
        check_rejected(other, "it lacks method, repetition, group.*name a file that `fairchance`")
    )
    bare = tmp_path / "bare.parquet"
    columns = {name: np.asarray(results.columns[name]) for name in (*KEYS, *COUNTS)}
    parquet.write_table(pa.table(columns), bare)
    one_sentence(check_rejected(bare, "it lacks the settings"))
