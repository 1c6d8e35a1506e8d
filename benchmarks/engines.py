"""What a policy decides in a second on one core, from Arrow record batches, and what it writes.

Each row prints what was measured: the policy's file, decisions a second from record batches beside
``decide`` on the same tables and beside the model alone, how fast the round is closed in memory,
and bytes of a decision in a compressed parquet file, alone and beside its applicant.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.speed import print_row
from fairchance import CertifiedClassifier, PartialFeedbackClassifier, Policy
from fairchance.methods.storage import dumps

N, PIECE, N_HISTORY, N_NUMBERS = 1_000_000, 100_000, 20_000, 16
_JOBS = ("clerk", "nurse", "pilot", "driver", "teacher")


def applicants(n: int, rng: np.random.Generator) -> tuple[pa.Table, Any]:
    """Return applicants with 20 features, of which two are text, and outcomes."""
    numbers = rng.normal(size=(n, N_NUMBERS))
    job = rng.integers(0, len(_JOBS), n)
    columns: dict[str, Any] = {
        "id": [f"{number:015x}" for number in rng.integers(0, 2**60, n)],
        "sex": np.where(rng.random(n) < 0.5, "f", "m"),
        **{f"x{at}": numbers[:, at] for at in range(N_NUMBERS)},
        "owner": rng.random(n) < 0.3,
        "since": np.datetime64("2020-01-01", "D") + rng.integers(0, 2000, n),
        "job": np.array(_JOBS)[job],
        "area": np.array([f"area {at}" for at in range(50)])[rng.integers(0, 50, n)],
    }
    odds = numbers[:, :4].sum(axis=1) / 2 + 1.5 + (job == 1) - columns["owner"]
    return pa.table(columns), rng.random(n) < 1 / (1 + np.exp(-odds))


def programs() -> Iterator[tuple[str, Any, list[str]]]:
    """Yield classifiers that learned from a history of 20,000 applicants, and their features."""
    table, good = applicants(N_HISTORY, np.random.default_rng(0))
    accepted = table["x0"].to_numpy() > -0.5
    numbers = [f"x{at}" for at in range(N_NUMBERS)]
    for name, make, features in (
        ("certified, 20 columns", CertifiedClassifier, [*table.column_names[2:]]),
        ("certified, 16 numbers", CertifiedClassifier, numbers),
        ("Algorithm 1, 20 columns", PartialFeedbackClassifier, [*table.column_names[2:]]),
    ):
        options = {"exploration": "coins"} if make is PartialFeedbackClassifier else {}
        classifier = make(random_state=0, group_mode="blind", **options)
        classifier.fit(
            table.select(features),
            good,
            accepted=accepted,
            sensitive_features=table["sex"],
            ids=table["id"].to_numpy(),
        )
        yield name, classifier, features


def seconds_of(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU seconds of a piece of work, and what it returned."""
    begun = time.process_time()
    done = work()
    return time.process_time() - begun, done


def main() -> None:
    """Print the rows."""
    table, _ = applicants(N, np.random.default_rng(1))
    pieces = [table.slice(at, PIECE) for at in range(0, N, PIECE)]
    for name, classifier, features in programs():
        policy: Policy = classifier.open_round(N).for_table(groups="sex")

        def parts(policy: Policy = policy, features: list[str] = features) -> list[Any]:
            given = [
                {"ids": one["id"].to_numpy(), "sensitive_features": one["sex"]} for one in pieces
            ]
            features_of = [one.select(features) for one in pieces]
            return [policy.decide(X, **g) for X, g in zip(features_of, given, strict=True)]

        batches = table.to_batches(PIECE)
        engine, decided = seconds_of(lambda: [*policy.decide_batches(batches)])  # noqa: B023
        arrays, answers = seconds_of(parts)
        model, _ = seconds_of(lambda: policy.scored_by(table.select(features)).log_odds())  # noqa: B023
        closing, _ = seconds_of(lambda: classifier.close_round(answers))  # noqa: B023
        kept = [*policy.decide_batches(batches, keep=True)]
        print_row(f"{name}: policy file", "", f"{len(dumps(policy)) / 1e6:.2f} MB")
        print_row(f"{name}: decisions a second from record batches", "", f"{N / engine:,.0f}")
        print_row(f"{name}: CPU time of these beside decide", "", f"{engine / arrays:.2f} x")
        print_row(f"{name}: CPU time of these beside the model", "", f"{engine / model:.2f} x")
        print_row(f"{name}: applicants closed in a second", "", f"{N / closing:,.0f}")
        print_row(f"{name}: a decision in parquet", "", f"{packed(decided) / N:.0f} bytes")
        print_row(f"{name}: an applicant with it", "", f"{packed(kept) / N:.0f} bytes")


def packed(batches: list[Any]) -> int:
    """Return the bytes of a compressed parquet file."""
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_batches(batches), sink, compression="zstd")
    return len(sink.getvalue())
