"""Run benchmarks of speed: ``make bench``, or some: ``python -m benchmarks fit decide small``.

``python -m benchmarks certified`` shows what a certificate costs and whether it is kept,
``… groups`` whom it reaches, ``… drift`` what its monitor does, ``… pilots`` what comes before.
"""

from __future__ import annotations

import os
import sys

# Before numpy is imported: one thread, for ours and for the references alike.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

from benchmarks import (  # noqa: E402
    certified,
    decide,
    drift,
    finite,
    fit,
    groups,
    ledger,
    pilots,
    proving,
    small,
    thresholds,
)

PARTS = {
    "fit": fit.main,
    "thresholds": thresholds.main,
    "decide": decide.main,
    "small": small.main,
    "finite": finite.main,
    "ledger": ledger.main,
    "proving": proving.main,
}
OTHERS = {"certified": certified.main, "groups": groups.main, "drift": drift.main}
OTHERS["pilots"] = pilots.main


def main() -> None:
    """Run the parts named on the command line, or all."""
    for part in sys.argv[1:] or PARTS:
        print(f"\n== {part} ==", flush=True)
        (PARTS | OTHERS)[part]()


if __name__ == "__main__":
    main()
