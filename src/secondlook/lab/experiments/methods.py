"""The methods of an experiment by name: each is built fresh for every repetition."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from secondlook.core.budget import ExploitOnly, FdrBudget
from secondlook.core.coverage import SummedAcceptance
from secondlook.core.fairness import SelectionRateParity
from secondlook.core.strategies import GroupShare, ScoreWeighted
from secondlook.errors import InputError
from secondlook.lab.baselines.fair_clf import fair_clf
from secondlook.lab.baselines.opt_offline import OfflineOptimum, OracleOptimum
from secondlook.lab.baselines.plug_in import PlugInClassifier
from secondlook.lab.experiments.baseline_methods import (
    BASELINES,
    DEEP,
    check_installed,
    deep_is_installed,
)
from secondlook.lab.experiments.setup import Setup
from secondlook.lab.experiments.spec import Goal
from secondlook.lab.simulate.run import Method
from secondlook.lab.simulate.worlds import World
from secondlook.methods.algorithm1.classifier import PartialFeedbackClassifier
from secondlook.methods.certified.classifier import CertifiedClassifier

__all__ = [
    "ABLATIONS",
    "METHODS",
    "REFERENCES",
    "SETS",
    "VARIANTS",
    "Setup",
    "Variant",
    "build",
    "check_methods",
    "constant_share",
    "expanded",
    "fitted",
    "label",
]


@dataclass(frozen=True)
class Variant:
    """One of the four variants of Algorithm 1: where it is fair."""

    exploit: bool
    explore: bool

    def fairness(self, goal: Goal) -> SelectionRateParity | None:
        """Return the group constraint on exploiting."""
        return SelectionRateParity(goal.difference) if self.exploit else None

    def thresholds(self) -> Literal["shared", "per_group"]:
        """Return how thresholds are set: a constraint between groups needs one for each."""
        return "per_group" if self.exploit else "shared"

    def strategy(self) -> ScoreWeighted | GroupShare:
        """Return whom to explore."""
        return GroupShare() if self.explore else ScoreWeighted()


VARIANTS = {
    "plain": Variant(exploit=False, explore=False),
    "exploit-fair": Variant(exploit=True, explore=False),
    "explore-fair": Variant(exploit=False, explore=True),
    "both-fair": Variant(exploit=True, explore=True),
}
ABLATIONS = ("no-exploration", "alpha-at-once")


def algorithm1(
    setup: Setup,
    variant: Variant,
    budget: Callable[..., FdrBudget] = FdrBudget,
    *,
    weights: Literal["acceptance", "none"] = "acceptance",
    **options: Any,
) -> PartialFeedbackClassifier:
    """Return a variant of Algorithm 1, fitted to the history; ``options`` are the budget's."""
    goal = setup.goal
    share: dict[str, Any] = {
        "exploit": goal.schedule,
        "min_selection_rate": goal.min_selection_rate,
        "slack": goal.slack,
    }
    classifier = PartialFeedbackClassifier(
        utility=goal.utility,
        budget=budget(goal.alpha, **share | options),
        coverage=SummedAcceptance(threshold=goal.threshold),
        strategy=variant.strategy(),
        fairness=variant.fairness(goal),
        thresholds=variant.thresholds(),
        weights=weights,
        group_as_feature=setup.group_as_feature,
        random_state=setup.seed,
    )
    return fitted(classifier, setup)


def fitted(classifier: PartialFeedbackClassifier, setup: Setup) -> PartialFeedbackClassifier:
    """Return a classifier fitted to the history."""
    past = setup.past
    return classifier.fit(
        past.people.X,
        past.outcomes,
        accepted=past.accepted,
        sensitive_features=past.people.group,
        past_policy=setup.past_policy,
    )


def _fair_clf(setup: Setup, *, schedule: bool) -> Method:
    goal = setup.goal
    method = fair_clf(
        goal.utility,
        goal.alpha,
        difference=goal.difference,
        schedule=goal.schedule if schedule else None,
        group_as_feature=setup.group_as_feature,
        random_state=setup.seed,
    )
    return fitted(method, setup)


def _certified(
    setup: Setup, kind: type[CertifiedClassifier] = CertifiedClassifier, **options: Any
) -> Method:
    goal, past = setup.goal, setup.past
    method = kind(
        goal.alpha,
        utility=goal.utility,
        horizon=setup.n_rounds,
        group_as_feature=setup.group_as_feature,
        random_state=setup.seed,
        **options,
    )
    return method.fit(
        past.people.X,
        past.outcomes,
        accepted=past.accepted,
        sensitive_features=past.people.group,
    )


METHODS: dict[str, tuple[str, Callable[[Setup], Method]]] = {
    "plain": ("Algorithm 1", lambda s: algorithm1(s, VARIANTS["plain"])),
    "plain-unweighted": (
        "Algorithm 1, rows not weighted",
        lambda s: algorithm1(s, VARIANTS["plain"], weights="none"),
    ),
    "exploit-fair": (
        "Algorithm 1, fair exploitation",
        lambda s: algorithm1(s, VARIANTS["exploit-fair"]),
    ),
    "explore-fair": (
        "Algorithm 1, fair exploration",
        lambda s: algorithm1(s, VARIANTS["explore-fair"]),
    ),
    "both-fair": ("Algorithm 1, both fair", lambda s: algorithm1(s, VARIANTS["both-fair"])),
    "no-exploration": (
        "Ablation: exploration off",
        lambda s: algorithm1(s, VARIANTS["plain"], ExploitOnly),
    ),
    "alpha-at-once": (
        "Ablation: all of α from round 1, exploration off",
        lambda s: algorithm1(s, VARIANTS["plain"], ExploitOnly, exploit=s.goal.alpha),
    ),
    "fair-clf": ("FAIR-CLF, α constant", lambda s: _fair_clf(s, schedule=False)),
    "fair-clf-schedule": ("FAIR-CLF, α scheduled", lambda s: _fair_clf(s, schedule=True)),
    "certified": ("Certified", _certified),
    "certified-within-group": (
        "Certified, ranks within groups",
        lambda s: _certified(s, ranks="within_group"),
    ),
    "certified-per-group": (
        "Certified for each group",
        lambda s: _certified(s, certify="per_group"),
    ),
    "plug-in": ("Plug-in thresholds, no test", lambda s: _certified(s, PlugInClassifier)),
    **BASELINES,
}


def _opt_offline(world: World, setup: Setup) -> Method:
    everything = world.full_history()
    goal, people = setup.goal, everything.people
    reference = OfflineOptimum(
        goal.utility, goal.alpha, groups=_groups(world, setup), random_state=setup.seed
    )
    return reference.fit(people.X, everything.outcome, sensitive_features=people.group)


def _opt_oracle(world: World, setup: Setup, *, cross_fit: bool) -> Method:
    stream = [one.applicants for one in world.batches()]
    goal, groups = setup.goal, _groups(world, setup)
    reference = OracleOptimum(goal.utility, goal.alpha, cross_fit=cross_fit, groups=groups)
    return reference.fit(
        [(one.people.X, one.outcome) for one in stream],
        sensitive_features=[one.people.group for one in stream],
    )


def _groups(world: World, setup: Setup) -> tuple[str, ...]:
    return world.stream.groups if setup.group_as_feature else ()


# These are handed the world itself: they are what a method is measured against.
REFERENCES: dict[str, tuple[str, Callable[[World, Setup], Method]]] = {
    "opt-offline": ("OPT-OFFLINE, all outcomes of S_0", _opt_offline),
    "opt-oracle": (
        "OPT-OFFLINE, all outcomes of the other rounds",
        lambda world, setup: _opt_oracle(world, setup, cross_fit=True),
    ),
    "opt-hindsight": (
        "OPT-OFFLINE, all outcomes of all rounds",
        lambda world, setup: _opt_oracle(world, setup, cross_fit=False),
    ),
}


# Names that stand for several methods. The quick schedules of deep methods are asked for by name.
_NOT_DEEP = tuple(name for name in (*METHODS, *REFERENCES) if name not in DEEP)
_DEEP = tuple(name for name in DEEP if "quick" not in name) if deep_is_installed() else ()
SETS: dict[str, tuple[str, ...]] = {"all": (*_NOT_DEEP, *_DEEP), "not-deep": _NOT_DEEP}


def expanded(names: Iterable[str], *, quick: bool = False) -> tuple[str, ...]:
    """Return names with each set replaced by the methods it stands for that are not named anyway.

    ``quick`` puts quick schedules of deep methods in the place of their own.

    Examples
    --------
    >>> expanded(["fair-clf", "not-deep"])[:3]
    ('fair-clf', 'plain', 'plain-unweighted')
    >>> expanded(["fairall-aligned"], quick=True)
    ('fairall-quick-aligned',)
    """
    names = list(names)
    found: list[str] = []
    for name in names:
        members = [one for one in SETS.get(name, ()) if one not in (*found, *names)]
        found += members if name in SETS else [name]
    faster = {name: name.replace("fairall-", "fairall-quick-") for name in found} if quick else {}
    return tuple(faster[one] if faster.get(one) in DEEP else one for one in found)


def build(name: str, world: World, setup: Setup) -> Method:
    """Return a method by its name, or by ``module:function`` for one of the user's own.

    ``explore-fair@0.13`` is that variant with α_exploit held at 0.13. A function of the user's own
    takes a ``Setup`` and returns something with ``decide`` and ``observe``.
    """
    if name in REFERENCES:
        return REFERENCES[name][1](world, setup)
    if name in METHODS:
        return METHODS[name][1](setup)
    variant, _, split = name.partition("@")
    if variant in VARIANTS and split:
        return algorithm1(setup, VARIANTS[variant], exploit=constant_share(name, split))
    check_methods([name])
    return _own(name)(setup)


def label(name: str) -> str:
    """Return a method's name for people."""
    if name in METHODS:
        return METHODS[name][0]
    if name in REFERENCES:
        return REFERENCES[name][0]
    variant, _, split = name.partition("@")
    return f"{METHODS[variant][0]}, α_exploit = {split}" if variant in METHODS else name


def check_methods(names: Iterable[str]) -> None:
    """Raise if a method cannot be built, before anything runs."""
    for name in names:
        variant, _, split = name.partition("@")
        if name in METHODS or name in REFERENCES:
            check_installed(name)
            continue
        if variant in VARIANTS and split:
            constant_share(name, split)
        elif ":" in name:
            _own(name)
        else:
            known = ", ".join([*METHODS, *REFERENCES])
            raise InputError(
                f"there is no method {name!r}; known are {known}, {' and '.join(SETS)} for many at "
                f"once, a variant with α_exploit held constant such as explore-fair@0.13, and "
                f"module:function for your own."
            )


def constant_share(name: str, split: str) -> float | None:
    """Return the α_exploit that a method's name holds after the @, if any."""
    if not split:
        return None
    try:
        return float(split)
    except ValueError:
        raise InputError(
            f"the method {name!r} needs a number after the @, such as explore-fair@0.13."
        ) from None


def _own(name: str) -> Callable[[Setup], Method]:
    module, _, function = name.partition(":")
    if "" not in sys.path:
        sys.path.append("")  # a file in the current folder, also in worker processes
    try:
        found = getattr(importlib.import_module(module), function)
        if not callable(found):
            raise TypeError(f"{function} is not a function")
        return found  # type: ignore[no-any-return]
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise InputError(
            f"the method {name!r} cannot be imported: {error}; name it module:function, with the "
            f"module in the current folder or where Python finds it."
        ) from error
