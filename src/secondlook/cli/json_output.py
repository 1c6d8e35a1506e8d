"""What commands print for programs."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

__all__ = ["as_json"]


def as_json(value: Any) -> None:
    """Print a value as JSON; what is not known is null.

    Examples
    --------
    >>> as_json({"fdr": float("nan"), "out": Path("decisions.csv")})
    {
     "fdr": null,
     "out": "decisions.csv"
    }
    """
    # Where letters may be missing, all are escaped as JSON does it.
    takes_all = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")
    print(json.dumps(_plain(value), ensure_ascii=not takes_all, indent=1))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
