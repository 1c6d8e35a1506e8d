"""A policy on engines whose tables may be larger than memory: Dask and Spark.

Within a round a policy is a value, and coins are keyed by ids, so the partitions of a table are
decided as one call would. Nothing is recorded here: with ``keep=True`` the answer can be written to
files that ``fairchance import`` records. DuckDB, Polars and others need no adapter, since
``decide_batches`` of a policy takes their record batches; ``docs/scale.md`` has recipes.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from fairchance.errors import InputError, to_install
from fairchance.extras import arrow
from fairchance.methods.policy import Policy

__all__ = ["decide_dask", "decide_spark"]

_SPARK_TYPES = {
    "bool": "BooleanType",
    "double": "DoubleType",
    "int64": "LongType",
    "string": "StringType",
}


def decide_dask(policy: Policy, people: Any, *, keep: bool = False, reasons: bool = False) -> Any:
    """Return the decisions on a Dask dataframe, as one with the same partitions and index.

    Parameters
    ----------
    policy
        The policy of an open round, which knows what the columns are called (``for_table``).
    people
        The applicants.
    keep, reasons
        As for ``decide_batches``.
    """
    from dask.delayed import delayed  # noqa: PLC0415 - an extra

    meta = _decide_frame(people._meta, policy, keep=keep, reasons=reasons)
    sent = delayed(policy, pure=True)  # once to each worker, and not with each partition
    return people.map_partitions(_decide_frame, sent, keep=keep, reasons=reasons, meta=meta)


def decide_spark(policy: Policy, people: Any, *, keep: bool = False, reasons: bool = False) -> Any:
    """Return the decisions on a Spark dataframe.

    Parameters
    ----------
    policy
        The policy of an open round, which knows what the columns are called (``for_table``).
    people
        The applicants.
    keep, reasons
        As for ``decide_batches``.
    """
    try:
        from pyspark.sql import types  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise InputError(
            f"deciding on Spark needs pyspark, which is not installed; {to_install('spark')} "
            f"installs it."
        ) from error
    kept, added = policy.decided_columns(people.columns, keep=keep, reasons=reasons)
    fields = [people.schema[name] for name in kept]
    fields += [
        types.StructField(name, getattr(types, _SPARK_TYPES[kind])())
        for name, kind in added.items()
    ]
    decide = partial(policy.decide_batches, keep=keep, reasons=reasons)
    return people.mapInArrow(decide, types.StructType(fields))


def _decide_frame(part: Any, policy: Policy, *, keep: bool, reasons: bool) -> Any:
    """Return the decisions on a partition, which is a pandas dataframe."""
    batch = arrow().RecordBatch.from_pandas(part, preserve_index=False)
    (decided,) = policy.decide_batches([batch], keep=keep, reasons=reasons)
    frame = decided.to_pandas().set_axis(part.index)
    return (
        part.assign(**{name: frame[name] for name in frame.columns[part.shape[1] :]})
        if keep
        else frame
    )
