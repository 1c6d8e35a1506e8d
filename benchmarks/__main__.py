"""Print the speed table: ``make bench``, or ``python -m benchmarks [rows ...]``.

``python -m benchmarks NAME`` also runs the studies that the documentation quotes: ``certified``
(what a certificate earns and keeps), ``rivals`` (the same beside what others would do), ``past``
(how histories say they were selected), ``overlooked`` (groups that the past never accepted),
``life`` (what a lender earns beside an existing business), ``drift`` (the drift monitor) and
``audit`` (estimates from logs against the truth), all with options of their own (``certified
--help``), ``audit_speed`` (a million logged decisions), ``engines`` (a million decisions from
record batches), ``finite`` (ten million applicants in cells), ``likeness`` (false stops of batches,
and mistakes that are found), ``singles`` (single decisions by one process and by eight), and with
options of their own ``service`` (decisions over HTTP) and ``scale`` (ten million applicants, on the
record).
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys

# Set before numpy is imported, so that our code and the references both use a single thread.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

from benchmarks import speed  # noqa: E402

WITH_OPTIONS = ("certified", "past", "overlooked", "life", "audit", "rivals", "drift", "service")
WITH_OPTIONS += ("scale",)
STUDIES = (*WITH_OPTIONS, "audit_speed", "engines", "finite", "likeness", "singles")


def main() -> None:
    """Run the named rows of the speed table or studies, by default the whole table."""
    if sys.argv[1:2] and sys.argv[1] in WITH_OPTIONS:
        importlib.import_module(f"benchmarks.{sys.argv[1]}").main(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*speed.ROWS, *STUDIES, []], metavar="name")
    parser.add_argument(
        "--decisions",
        type=int,
        default=speed.LEDGER_SIZE,
        help="decisions in the ledger of the row 'open' (default: %(default)s)",
    )
    options = parser.parse_args()
    studies = [name for name in options.names if name in STUDIES]
    for name in studies:
        importlib.import_module(f"benchmarks.{name}").main()
    rows = [name for name in options.names if name in speed.ROWS]
    if rows or not studies:
        speed.print_table(rows or list(speed.ROWS), options.decisions)


if __name__ == "__main__":
    main()
