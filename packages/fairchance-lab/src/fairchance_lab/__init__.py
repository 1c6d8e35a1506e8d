"""The laboratory of fairchance: data sets, methods to compare with, and the paper's experiments.

Public names are imported on first use: ``fairchance --help`` need not wait for them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

_MODULE_OF_NAME = {
    "ClusteredDomain": "finite",
    "CountedOutcomes": "finite",
    "FiniteClassifier": "finite",
    "ManyClassClassifier": "many_classes",
    "NormalisedG": "finite",
    "compare": "experiments.runner",
}
_PACKAGES = ("plot",)  # not in __all__, as in fairchance

__version__ = "0.1.0rc1"  # of both packages
__all__ = sorted(_MODULE_OF_NAME)  # noqa: PLE0605

if TYPE_CHECKING:
    from fairchance_lab import plot
    from fairchance_lab.experiments.runner import compare
    from fairchance_lab.finite import (
        ClusteredDomain,
        CountedOutcomes,
        FiniteClassifier,
        NormalisedG,
    )
    from fairchance_lab.many_classes import ManyClassClassifier
else:

    def __getattr__(name):
        if name in _PACKAGES:
            return import_module(f"{__name__}.{name}")
        if name not in _MODULE_OF_NAME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_MODULE_OF_NAME[name]}"), name)
        globals()[name] = value
        return value

    def __dir__():
        dunder = (name for name in globals() if name.startswith("__"))
        return sorted({*__all__, *_PACKAGES, *dunder})
