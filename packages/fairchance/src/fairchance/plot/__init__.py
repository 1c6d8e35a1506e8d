"""Charts of classifiers, programs and audits in Vega-Lite; reports and notebooks share them.

``rows`` turns a fitted classifier, a ledger's ``Program`` or its ``Summary`` into plain rows, and
what draws (``marks``) knows rows only. ``fairchance_lab.plot`` draws results of experiments.
"""

from fairchance.errors import InputError, to_install

try:
    import altair as _altair
except ImportError as missing:
    raise InputError(f"charts need altair; {to_install('report')} installs it.") from missing

from fairchance.plot.audit import calibration, cut_offs, drift, group_audit
from fairchance.plot.charts import (
    certificate,
    coverage,
    curve,
    groups,
    money,
    outcomes,
    rounds,
    save,
    trade_off,
)
from fairchance.plot.rows import spans

__all__ = ["calibration", "certificate", "coverage", "curve", "cut_offs", "drift", "group_audit"]
__all__ += ["groups", "money", "outcomes", "rounds", "save", "spans", "trade_off"]


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
