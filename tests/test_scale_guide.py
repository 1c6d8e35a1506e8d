"""Every command and snippet of docs/scale.md runs, in its order, and engines agree."""

from __future__ import annotations

import shutil
import sys
from importlib.util import find_spec

import pyarrow.dataset as ds
import pytest

from guides import ROOT, pieces, read

PAGE = ROOT / "docs" / "scale.md"
LONG = ("spark", "ray")  # words of snippets that `make test-long` runs


def decided_by(names, engine):
    """Return who was accepted in each month of an engine, as the other engines have it."""
    rows = names[f"with_{engine}"]
    if engine == "ray":
        rows = names["accepted_by_ray"]
    frame = rows.to_pandas() if hasattr(rows, "to_pandas") else rows
    return {row["id"] for row in frame.to_dict("records") if row["accepted"]}


def run(shell, left_out):
    """Run the page; return the names of its snippets, what was wrong, and the page as it is."""
    names = {}
    problems, now = read(PAGE.read_text(encoding="utf-8"), shell, {}, names, left_out)
    return names, problems, now


def check(names, engines):
    table = ds.dataset("decided").to_table()
    accepted = table.filter(ds.field("decided_accepted"))["id"].to_pylist()
    assert 0 < len(accepted) < table.num_rows == 1500
    for engine in engines:
        assert decided_by(names, engine) == set(accepted), engine


@pytest.mark.xdist_group("guide")
@pytest.mark.filterwarnings("ignore:.*inplace keyword")  # Dask with pandas 3.1
def test_the_page_comes_out_as_it_is_written(shell, request):
    names, problems, now = run(shell, LONG)
    if request.config.getoption("update_golden"):
        PAGE.write_text(now, encoding="utf-8")
    else:
        assert not problems, "\n".join(problems)
    assert shell.code == 0, "the last command failed"
    check(names, ["dask", "duckdb", "polars"])


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::UserWarning")
@pytest.mark.parametrize("engine", LONG)
def test_the_page_with_an_engine_that_is_large(shell, engine, monkeypatch):
    module = {"spark": "pyspark", "ray": "ray"}[engine]
    if find_spec(module) is None:
        pytest.skip(f"{module} is not installed; `pip install {module}` lets this run")
    if engine == "spark" and shutil.which("java") is None:
        pytest.skip("Spark needs Java 17, and there is no java; install a JDK")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    names, _, _ = run(shell, [word for word in LONG if word != engine])
    check(names, ["dask", "duckdb", "polars", engine])


def test_every_block_of_the_page_is_run():
    text = PAGE.read_text(encoding="utf-8")
    found = list(pieces(text))
    assert len(found) == text.count("```") / 2
    assert {kind for kind, _, _ in found} == {"console", "py"}
    snippets = [block for kind, _, block in found if kind == "py"]
    for word in LONG:
        assert len([block for block in snippets if word in block]) == 1
