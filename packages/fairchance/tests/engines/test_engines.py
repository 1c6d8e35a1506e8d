"""Engines decide as one call does, whatever their partitions, and pass refusals on."""

from __future__ import annotations

from dataclasses import replace

import dask
import dask.dataframe as dd
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from engines.cases import CASES, N, case, check_decided, expired, of_other_version
from fairchance.engines import decide_dask, decide_spark
from fairchance.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore::fairchance.errors.LearningWarning")


def with_arrow(policy, table):
    return pa.Table.from_batches(policy.decide_batches(table.to_batches(70)))


def with_duckdb(policy, table):
    with duckdb.connect() as connection:
        reading = connection.cursor().sql("SELECT * FROM 'table' ORDER BY random()")
        batches = reading.to_arrow_reader(70)
        schema = policy.decided_schema(batches.schema)
        decided = pa.RecordBatchReader.from_batches(schema, policy.decide_batches(batches))
        return connection.from_arrow(decided).to_arrow_table()


def with_polars(policy, table):
    frames = pl.from_arrow(table).lazy().collect_batches(chunk_size=70)
    batches = (batch for frame in frames for batch in frame.to_arrow().to_batches())
    return pl.from_arrow(policy.decide_batches(batches)).to_arrow()


def partitions(table, n=6):
    return dd.from_pandas(table.to_pandas(), npartitions=n, sort=False)


def with_dask(policy, table):
    with dask.config.set(scheduler="threads"):
        decided = decide_dask(policy, partitions(table)).compute()
    return pa.Table.from_pandas(decided, preserve_index=False)


ENGINES = [with_arrow, with_duckdb, with_polars, with_dask]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_decides_as_one_call(engine, name):
    one = case(name)
    check_decided(one, engine(one.policy, one.table))


def test_cases_hold_what_they_are_about():
    for name in CASES:
        decided = case(name).whole
        assert 0 < decided.accepted.sum() < N, name
        assert ((decided.propensity > 0) & (decided.propensity < 1)).any(), name
        assert (decided.ramp < 1) == ("lender" in name or "persons" in name)
    # The control: coins of other ids are other coins.
    one = case("certified, aware")
    other = one.table.set_column(0, "loan", pa.array(np.arange(N) + 20_000))
    assert with_arrow(one.policy, other)["accepted"].to_pylist() != one.whole.accepted.tolist()


def test_dask_keeps_columns_index_and_empty_partitions():
    one = case("certified, blind")
    frame = partitions(one.table)
    kept = decide_dask(one.policy, frame[frame["loan"] >= 10_200], keep=True)
    assert [*kept.columns[: frame.shape[1]]] == [*frame.columns]
    with dask.config.set(scheduler="synchronous"):
        found = kept.compute()
        assert found.index.tolist() == list(range(200, N))
        assert found["decided_accepted"].tolist() == one.whole.accepted[200:].tolist()
        assert (found.dtypes == kept._meta.dtypes).all()


REFUSALS = {
    "expired at 2020-01-31": (expired, lambda table: table),
    "made with fairchance 0.0.9": (of_other_version, lambda table: table),
    "no column 'income'": (lambda one: one.policy, lambda table: table.drop_columns("income")),
}


@pytest.mark.parametrize("sentence", REFUSALS)
@pytest.mark.parametrize("engine", ENGINES)
def test_the_sentence_of_a_refusal_survives_in_the_error_of_an_engine(engine, sentence):
    one = case("certified, blind")
    policy_of, change = REFUSALS[sentence]
    with pytest.raises(Exception, match=sentence):
        engine(policy_of(one), change(one.table))


def test_a_draw_of_fixed_size_is_refused_before_anything_runs():
    policy = case("coins, blind").policy
    fixed = replace(policy, fixed=(3, np.uint64(5)), f=replace(policy.f, follows=""))
    with pytest.raises(InputError, match=r"draws a fixed number.*exploration='coins'"):
        decide_dask(fixed, partitions(case("coins, blind").table))


def test_without_pyspark_its_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyspark.sql", None)
    with pytest.raises(InputError, match=r"pyspark.*'fairchance\[spark\]'"):
        decide_spark(case("coins, blind").policy, None)
