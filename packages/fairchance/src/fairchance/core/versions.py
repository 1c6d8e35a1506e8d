"""The versions of the packages that answers may depend on."""

from __future__ import annotations

import numpy as np
import scipy
import sklearn

import fairchance

__all__ = ["versions"]


def versions() -> dict[str, str]:
    """Return the versions of the packages that fits and scores use, by name.

    Examples
    --------
    >>> sorted(versions())
    ['fairchance', 'numpy', 'scikit-learn', 'scipy']
    """
    return {
        "fairchance": fairchance.__version__,
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
        "scipy": scipy.__version__,
    }
