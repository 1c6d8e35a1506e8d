"""A file of loans."""

from __future__ import annotations

import numpy as np


def write_loans(path, outcomes=("no", "yes"), group=("X", "Y")):
    """Write 240 loans; the first has the last outcome."""
    rng = np.random.default_rng(5)
    lines = ["income,debt,town,paid"]
    for i in range(240):
        income, debt = rng.normal(size=2)
        chance = 1 / (1 + np.exp(-1 - 2 * income + debt))
        which = int(rng.random() < chance) if i else len(outcomes)
        paid = outcomes[min(which, len(outcomes) - 1)]
        lines.append(f"{income:.4f},{debt:.4f},{group[i % len(group)]},{paid}")
    path.write_text("\n".join(lines) + "\n")
