"""The methods to compare with by name, each in all its settings.

``published`` is how a method's own paper, or usual practice, sets its cost; ``aligned`` puts that
cost where this experiment's gain and loss break even; ``icml`` is what the paper that this library
implements says it used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from secondlook.errors import InputError, to_install
from secondlook.lab.baselines.base import Baseline
from secondlook.lab.baselines.bechavod import BechavodMixture
from secondlook.lab.baselines.fairall import FairAll
from secondlook.lab.baselines.greedy import (
    BootstrapThompson,
    EpsilonGreedy,
    FrozenPast,
    Greedy,
    LabelAugmentation,
    RandomBelowCutoff,
)
from secondlook.lab.baselines.kilbertus import KilbertusPolicy
from secondlook.lab.baselines.plot import PseudoLabelOptimism
from secondlook.lab.baselines.reject_inference import Extrapolation, FuzzyAugmentation
from secondlook.lab.baselines.wei import WeiBootstrap, WeiFinite
from secondlook.lab.baselines.yang import BoundedExploration
from secondlook.lab.experiments.setup import Setup
from secondlook.lab.experiments.spec import Goal

__all__ = [
    "ASSUMPTIONS",
    "BASELINES",
    "DEEP",
    "break_even",
    "check_installed",
    "deep_is_installed",
    "left_out",
]

_COSTS = ("cutoff", "cost", "threshold")  # what a break-even point is called


@dataclass(frozen=True)
class _Family:
    """A method and the options by which its members differ."""

    title: str
    kind: type[Baseline]
    options: dict[str, Any] = field(default_factory=dict)
    settings: tuple[str, ...] = ("published", "aligned")


_FAMILIES = {
    "frozen-past": _Family("f_0, frozen", FrozenPast, settings=()),
    "greedy": _Family("Greedy", Greedy),
    "epsilon-greedy": _Family("ε-greedy", EpsilonGreedy),
    "random-2": _Family("2 % at random below the cut-off", RandomBelowCutoff, {"share": 0.02}),
    "random-5": _Family("5 % at random below the cut-off", RandomBelowCutoff, {"share": 0.05}),
    "thompson": _Family("Bootstrap Thompson sampling", BootstrapThompson),
    "label-augmentation": _Family("Label augmentation (De-Arteaga 2018)", LabelAugmentation),
    "extrapolation": _Family("Reject inference, extrapolation", Extrapolation),
    "fuzzy-augmentation": _Family("Reject inference, fuzzy augmentation", FuzzyAugmentation),
    "kilbertus": _Family(
        "Kilbertus 2020, logistic",
        KilbertusPolicy,
        {"group_as_feature": False},
        ("published", "aligned", "icml"),
    ),
    "kilbertus-semi": _Family(
        "Kilbertus 2020, semi-logistic",
        KilbertusPolicy,
        {"group_as_feature": False, "family": "semi"},
    ),
    "bechavod": _Family("Bechavod 2019", BechavodMixture),
    "yang": _Family("Yang 2022", BoundedExploration),
    "wei-finite": _Family("Wei 2021, cells", WeiFinite),
    "wei-bootstrap": _Family("Wei 2021, bootstrap", WeiBootstrap),
    "plot": _Family("PLOT (Pacchiano 2021), logistic", PseudoLabelOptimism),
    "plot-network": _Family(
        "PLOT (Pacchiano 2021), network", PseudoLabelOptimism, {"model": "network"}
    ),
    "fairall": _Family("FairAll (Rateike 2022)", FairAll),
    "fairall-quick": _Family("FairAll (Rateike 2022), quick", FairAll, {"schedule": "quick"}),
}


def break_even(goal: Goal) -> float:
    """Return the P(good) at which accepting earns nothing: loss / (loss + gain).

    Examples
    --------
    >>> break_even(Goal()) == 5 / 7
    True
    """
    return goal.loss / (goal.loss + goal.gain)


def _build(family: _Family, setting: str | None, setup: Setup) -> Baseline:
    kind, goal = family.kind, setup.goal
    options = dict(kind.settings[setting]) if setting is not None else {}
    if setting == "aligned":
        here = dict.fromkeys(_COSTS, break_even(goal)) | {"gain": goal.gain, "loss": goal.loss}
        options |= {name: value for name, value in here.items() if name in options}
    told = {
        "horizon": max(2, setup.n_rounds) if setup.n_rounds else None,
        "n_rounds": setup.n_rounds,
        "past_policy": setup.past_policy,
        "group_as_feature": setup.group_as_feature,
        "random_state": setup.seed,
    }
    asked = kind().get_params()
    options |= {name: one for name, one in told.items() if name in asked and one is not None}
    past = setup.past
    return kind(**options | family.options).fit(
        past.people.X,
        past.outcomes,
        accepted=past.accepted,
        sensitive_features=past.people.group,
    )


def _entry(family: _Family, setting: str | None) -> tuple[str, Callable[[Setup], Baseline]]:
    title = family.title if setting is None else f"{family.title} ({setting})"
    return title, lambda setup: _build(family, setting, setup)


def _names() -> dict[str, tuple[_Family, str | None]]:
    found: dict[str, tuple[_Family, str | None]] = {}
    for name, family in _FAMILIES.items():
        if not family.settings:
            found[name] = (family, None)
        found |= {f"{name}-{setting}": (family, setting) for setting in family.settings}
    return found


BASELINES: dict[str, tuple[str, Callable[[Setup], Baseline]]] = {
    name: _entry(*parts) for name, parts in _names().items()
}
# What must hold for a method to be right, where it needs more than others.
ASSUMPTIONS: dict[str, str] = {
    name: family.kind.assumption for name, (family, _) in _names().items() if family.kind.assumption
}
# Methods that need an extra and minutes rather than seconds a run.
DEEP: tuple[str, ...] = tuple(name for name in BASELINES if name.startswith("fairall"))


def deep_is_installed() -> bool:
    """Say whether the packages that deep methods need are there."""
    return not _missing()


def check_installed(name: str) -> None:
    """Raise if a method needs an extra that is not installed."""
    if name in DEEP and _missing():
        raise InputError(f"the method {name} {_needs()}, or name other methods.")


def left_out() -> str:
    """Say which methods ``all`` leaves out for want of an extra; empty if none."""
    if not DEEP or not _missing():
        return ""
    return f"Left out: {', '.join(name for name in DEEP if 'quick' not in name)}, which {_needs()}."


def _missing() -> list[str]:
    return [package for package in ("jax", "optax") if find_spec(package) is None]


def _needs() -> str:
    return f"needs {' and '.join(_missing())}: install {to_install('deep')}"
