"""Certificates of a run: what the first repetition was told, and how soon they came in all."""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from secondlook.core.decisions import CertifiedRound
from secondlook.lab.baselines.plug_in import PlugInClassifier
from secondlook.lab.experiments.results import Results

__all__ = [
    "Certified",
    "certificate_records",
    "certified_methods",
    "freezes",
    "records_of",
    "restarts",
    "summarised",
]

Record = dict[str, Any]


def certificate_records(method: Any, alpha: float, name: str) -> list[Record]:
    """Return a certified method's rounds as plain data; of another method, none."""
    rounds = getattr(method, "rounds_", ())
    if isinstance(method, PlugInClassifier):  # built of the same parts, and promises nothing
        return []
    return [
        {"alpha": alpha, "method": name} | {key: _plain(one) for key, one in asdict(each).items()}
        for each in rounds
        if isinstance(each, CertifiedRound)
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value if isinstance(value, str | int | None) else str(value)


def certified_methods(results: Results) -> list[str]:
    """Return the methods that give certificates, whether or not one ever came."""
    told = {record["method"] for record in results.certificates}
    certified = results.count("n_certified").sum(axis=(0, 2, 3, 4)).tolist()
    return [
        name for name, n in zip(results.methods, certified, strict=True) if name in told or n > 0
    ]


def records_of(results: Results, method: str, alpha: float) -> dict[Any, list[Record]]:
    """Return the first repetition's records, round by round, for each group that has its own."""
    found: dict[Any, list[Record]] = {}
    for record in results.certificates:
        if record["method"] == method and record["alpha"] == alpha:
            found.setdefault(record["group"], []).append(record)
    return found


@dataclass(frozen=True)
class Certified:
    """How soon and how long one method was certified, over all repetitions.

    Attributes
    ----------
    first_median, first_earliest, first_latest
        The first certified round among runs that had one; NaN where none had.
    rounds_share
        Share of all rounds that were certified.
    never_share
        Share of runs without any certified round.
    runs
        How many runs there were.
    """

    first_median: float
    first_earliest: float
    first_latest: float
    rounds_share: float
    never_share: float
    runs: int


def summarised(results: Results, method: str, at: int) -> Certified:
    """Return how soon and how long a method was certified, at one of the α by its place.

    Parameters
    ----------
    results
        Results.
    method
        Name of the method.
    at
        Place of the α among those tried.
    """
    i = results.methods.index(method)
    ran = results.count("n_people")[at, i].any(axis=(1, 2))  # not so where the method failed
    rounds = results.count("n_certified")[at, i, ran].any(axis=-1)
    came = rounds.any(axis=1)
    first = rounds.argmax(axis=1)[came] + 1.0 if came.any() else np.array([np.nan])
    return Certified(
        first_median=float(np.median(first)),
        first_earliest=float(first.min()),
        first_latest=float(first.max()),
        rounds_share=float(rounds.mean()) if came.size else float("nan"),
        never_share=float(1 - came.mean()) if came.size else float("nan"),
        runs=came.size,
    )


def freezes(records: list[Record]) -> list[int]:
    """Return the rounds before which a ranking was frozen: a part of δ is spent on each."""
    spent = [0.0] + [record["delta_spent"] for record in records]
    return [
        record["round"]
        for record, before in zip(records, spent, strict=False)
        if record["delta_spent"] > before
    ]


def restarts(records: list[Record]) -> list[int]:
    """Return the rounds before which all certificates were dropped and testing began again.

    A pilot follows a certified round only then; and a pilot uses the newest ranking, so among
    pilots one that was frozen and is not numbered higher began a new stage.
    """
    frozen = set(freezes(records))
    return [
        now["round"]
        for before, now in itertools.pairwise(records)
        if now["status"] == "pilot"
        and (
            before["status"] == "certified"
            or (now["round"] in frozen and now["ladder"] <= before["ladder"])
        )
    ]
