"""Certificates in results: the records of the first repetition, and how soon they came in all."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeVar

import numpy as np

from fairchance.core.decisions import CertifiedRound, CurvePoint, Note
from fairchance_lab.baselines.plug_in import PlugInClassifier
from fairchance_lab.experiments.results import Results

__all__ = [
    "CertifiedRuns",
    "certificate_records",
    "certified_methods",
    "records_of",
    "summarise_certificates",
]

T = TypeVar("T")


def certificate_records(method: Any, setting: str, name: str) -> list[dict[str, Any]]:
    """Return a certified method's rounds as plain data; other methods have none."""
    rounds = getattr(method, "rounds_", ())
    if isinstance(method, PlugInClassifier):  # has such rounds, and promises nothing
        return []
    return [
        {"setting": setting, "method": name} | _plain(asdict(record))
        for record in rounds
        if isinstance(record, CertifiedRound)
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value if isinstance(value, str | int | None) else str(value)


def certified_methods(results: Results) -> list[str]:
    """Return the methods that give certificates, even if none was reached."""
    recorded = {record["method"] for record in results.certificates}
    certified = results.count("n_certified").sum(axis=(0, 2, 3, 4)).tolist()
    return [
        name
        for name, n in zip(results.methods, certified, strict=True)
        if name in recorded or n > 0
    ]


def records_of(results: Results, method: str, at: int) -> dict[Any, list[CertifiedRound]]:
    """Return the first repetition's records by round, for each group with its own certificate."""
    records: dict[Any, list[CertifiedRound]] = {}
    for data in results.certificates:
        if data["method"] == method and data["setting"] == results.settings[at]:
            curve = tuple(_read(CurvePoint, point) for point in data["curve"])
            notes = tuple(_read(Note, note) for note in data["notes"])
            record = _read(CertifiedRound, data | {"curve": curve, "notes": notes})
            records.setdefault(record.group, []).append(record)
    return records


def _read(kind: type[T], data: dict[str, Any]) -> T:
    """Return a record from plain data, in which unknown numbers are None."""
    values = {one.name: data[one.name] for one in fields(kind)}  # type: ignore[arg-type]
    unknown = {
        name: math.nan
        for name, value in values.items()
        if value is None and name not in ("group", "n_incumbent")
    }
    return kind(**(values | unknown))


@dataclass(frozen=True)
class CertifiedRuns:
    """How soon and how long a method was certified, over all repetitions.

    Attributes
    ----------
    first_median, first_earliest, first_latest
        The first certified round of the runs with such a round; NaN without such runs.
    rounds_share
        Share of certified rounds.
    never_share
        Share of runs without any certified round.
    runs
        Number of runs.
    """

    first_median: float
    first_earliest: float
    first_latest: float
    rounds_share: float
    never_share: float
    runs: int


def summarise_certificates(results: Results, method: str, at: int) -> CertifiedRuns:
    """Return how soon and how long a method was certified.

    Parameters
    ----------
    results
        Results.
    method
        Name of the method.
    at
        Index of the setting.
    """
    i = results.methods.index(method)
    ran = results.count("n_people")[at, i].any(axis=(1, 2))  # false if the method failed
    rounds = results.count("n_certified")[at, i, ran].any(axis=-1)
    came = rounds.any(axis=1)
    first = rounds.argmax(axis=1)[came] + 1.0 if came.any() else np.array([np.nan])
    return CertifiedRuns(
        first_median=float(np.median(first)),
        first_earliest=float(first.min()),
        first_latest=float(first.max()),
        rounds_share=float(rounds.mean()) if came.size else float("nan"),
        never_share=float(1 - came.mean()) if came.size else float("nan"),
        runs=came.size,
    )
