"""The methods of an experiment by name; each is built anew for every repetition.

The settings of the methods to compare with: ``published`` sets a method's cost as its own paper, or
usual practice, does; ``aligned`` sets the cost to the break-even point of the experiment's gain and
loss; ``icml`` uses the values of the paper that this library implements, and of its released code.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple

from fairchance.core.coverage import SummedAcceptance
from fairchance.core.strategies import ScoreWeighted
from fairchance.errors import InputError, to_install
from fairchance.methods.algorithm1.classifier import PartialFeedbackClassifier
from fairchance.methods.certified.classifier import CertifiedClassifier
from fairchance.methods.options import PARTIAL, build_classifier, why_useless
from fairchance.simulate.run import Method
from fairchance.simulate.worlds import Past, World
from fairchance_lab.baselines.base import CODE, OURS, Baseline
from fairchance_lab.baselines.bechavod import BechavodMixture
from fairchance_lab.baselines.conformal import ConformalSelection
from fairchance_lab.baselines.fair_clf import FAIR_CLF, AllKnown
from fairchance_lab.baselines.fairall import FairAll
from fairchance_lab.baselines.greedy import (
    BootstrapThompson,
    EpsilonGreedy,
    FrozenPast,
    Greedy,
    LabelAugmentation,
)
from fairchance_lab.baselines.kilbertus import KilbertusPolicy
from fairchance_lab.baselines.opt_offline import OptOffline
from fairchance_lab.baselines.plot import PseudoLabelOptimism
from fairchance_lab.baselines.plug_in import PlugInClassifier
from fairchance_lab.baselines.references import best_linear, ceiling, logistic_all_labels
from fairchance_lab.baselines.reject_inference import Extrapolation, FuzzyAugmentation
from fairchance_lab.baselines.wei import WeiBootstrap, WeiFinite
from fairchance_lab.baselines.yang import BoundedExploration
from fairchance_lab.experiments.spec import NO_VARIANTS, Experiment, Goal, Options, Variants
from fairchance_lab.paper.text import PAPER_TEXT, with_paper_text

__all__ = [
    "ABLATIONS",
    "ALGORITHM1",
    "ASSUMPTIONS",
    "BASELINES",
    "DEEP",
    "METHODS",
    "PARITY_CELLS",
    "REFERENCES",
    "SETS",
    "VARIANTS",
    "ParityCell",
    "Setup",
    "Variant",
    "break_even",
    "build",
    "cell_of_fair_clf",
    "check_methods",
    "check_options",
    "expand_names",
    "find_main",
    "find_once",
    "find_variant",
    "fit_to_past",
    "label",
    "left_out",
    "make_classifier",
    "options_of",
    "taken_options",
    "values_of",
]


@dataclass(frozen=True)
class Setup:
    """What a method may know when it is built: the history, the goal, and a seed.

    Attributes
    ----------
    past
        What is known about S_0, the applicants before round 1: ``past.people.X`` (features),
        ``past.people.group`` (names of groups), ``past.accepted`` (past decisions) and
        ``past.outcomes`` (1 good, 0 bad, NaN for rejected applicants).
    goal
        ``goal.alpha`` (the bound on mistakes), ``goal.gain`` and ``goal.loss`` (of accepting a
        good and a bad applicant).
    group_as_feature
        Whether the method must append the group, which is not among the features.
    seed
        Seed of the method's own randomness.
    n_rounds
        Number of rounds to come, if known.
    past_policy
        f_0 if it is given, as ``PartialFeedbackClassifier.fit`` takes it; None means that
        methods imitate the past themselves.
    options
        Options of Algorithm 1's methods that the experiment sets.

    Examples
    --------
    >>> import numpy as np
    >>> from fairchance import CertifiedClassifier
    >>> from fairchance.simulate.people import People
    >>> def make_method(setup):
    ...     past = setup.past
    ...     return CertifiedClassifier(setup.goal.alpha, random_state=setup.seed).fit(
    ...         past.people.X,
    ...         past.outcomes,
    ...         accepted=past.accepted,
    ...         sensitive_features=past.people.group,
    ...     )
    >>> X, accepted = np.arange(40.0).reshape(-1, 1), np.arange(40) % 2 == 0
    >>> people = People(X, np.where(X[:, 0] < 20, "A", "B"))
    >>> outcomes = np.where(accepted, np.arange(40) % 4 == 0, np.nan)
    >>> setup = Setup(Past(people, accepted, outcomes), Goal(), False, seed=0)
    >>> method = make_method(setup)
    >>> method.decide(X[:5], sensitive_features=people.group[:5]).accepted.shape
    (5,)
    """

    past: Past
    goal: Goal
    group_as_feature: bool
    seed: int
    n_rounds: int | None = None
    past_policy: Any = None
    options: Options = field(default_factory=dict)


@dataclass(frozen=True)
class Variant:
    """A method of Algorithm 1, by the options that define it.

    Attributes
    ----------
    title
        Its name for readers.
    options
        Keys of a program's [classifier] table with their values.
    at_once
        Whether α_exploit is all of α from round 1.
    all_known
        Whether all applicants count as known.
    """

    title: str
    options: Options = field(default_factory=dict)
    at_once: bool = False
    all_known: bool = False


class ParityCell(NamedTuple):
    """How exploiting treats groups.

    Attributes
    ----------
    parity
        Where similar selection rates are required: nowhere, at the cut, or in the fit.
    cuts
        One cut for all groups, or one for each.
    """

    parity: Literal["none", "cut", "fit"] = "none"
    cuts: Literal["shared", "per-group"] = "shared"

    @property
    def options(self) -> dict[str, str]:
        """The cell as options of a method."""
        fairness = {} if self.parity == "none" else {"fairness": "selection-rate"}
        in_fit = {"fairness_in": "fit"} if self.parity == "fit" else {}
        cuts = {} if self.cuts == "shared" else {"thresholds": self.cuts}
        return fairness | in_fit | cuts

    @property
    def title(self) -> str:
        """The cell for readers."""
        parity = {"none": "no parity", "cut": "parity at the cut", "fit": "parity in the fit"}
        cuts = {"shared": "a shared cut", "per-group": "a cut per group"}
        return f"{parity[self.parity]}, {cuts[self.cuts]}"


# Parity and a cut for each group, each with and without the other. The paper's variants have
# neither, or parity at the cut, which comes with a cut for each group.
PARITY_CELLS = {
    "plain": ParityCell(),
    "fair-shared-cut": ParityCell("cut"),
    "fair-fit": ParityCell("fit"),
    "per-group-cuts": ParityCell(cuts="per-group"),
    "exploit-fair": ParityCell("cut", "per-group"),
    "fair-fit-per-group-cuts": ParityCell("fit", "per-group"),
}


def cell_of_fair_clf(cell: str) -> str:
    """Return FAIR-CLF's name in a cell that is named by its variant of Algorithm 1.

    Examples
    --------
    >>> [cell_of_fair_clf(cell) for cell in ("plain", "fair-fit", "exploit-fair")]
    ['clf-plain', 'clf-fair-fit', 'fair-clf']
    """
    return "fair-clf" if cell == "exploit-fair" else f"clf-{cell}"


_FAIR_EXPLOIT, _FAIR_EXPLORE = PARITY_CELLS["exploit-fair"].options, {"strategy": "group-share"}
_FAIR_CLF = FAIR_CLF | _FAIR_EXPLOIT
ALGORITHM1 = {
    "plain": Variant("Algorithm 1"),
    "plain-unweighted": Variant("Algorithm 1, rows not weighted", {"weights": "none"}),
    "exploit-fair": Variant("Algorithm 1, fair exploitation", _FAIR_EXPLOIT),
    "explore-fair": Variant("Algorithm 1, fair exploration", _FAIR_EXPLORE),
    "both-fair": Variant("Algorithm 1, both fair", _FAIR_EXPLOIT | _FAIR_EXPLORE),
    **{
        name: Variant(f"Algorithm 1, {cell.title}", cell.options)
        for name, cell in PARITY_CELLS.items()
        if name not in ("plain", "exploit-fair")
    },
    "no-exploration": Variant("Algorithm 1 without exploration", {"explore": False}),
    "alpha-at-once": Variant(
        "Algorithm 1 without exploration, all of α from round 1", {"explore": False}, at_once=True
    ),
    "fair-clf": Variant("FAIR-CLF, α constant", _FAIR_CLF, at_once=True, all_known=True),
    "fair-clf-schedule": Variant("FAIR-CLF, α scheduled", _FAIR_CLF, all_known=True),
    **{
        cell_of_fair_clf(name): Variant(
            f"FAIR-CLF, {cell.title}", FAIR_CLF | cell.options, at_once=True, all_known=True
        )
        for name, cell in PARITY_CELLS.items()
        if name != "exploit-fair"
    },
}
VARIANTS = ("plain", "exploit-fair", "explore-fair", "both-fair")  # of the paper
ABLATIONS = ("no-exploration", "alpha-at-once")


# Options of Algorithm 1's methods that other methods take, too.
_OF_OTHERS = {"opt-offline": ("bounds_in",)}


def find_variant(name: str, variants: Variants = NO_VARIANTS) -> Variant | None:
    """Return a method of Algorithm 1 by its name; None for other methods.

    Parameters
    ----------
    name
        ``explore-fair@0.13`` is that variant with constant α_exploit = 0.13.
    variants
        Methods with options of their own, as ``Experiment.variants`` holds them.
    """
    if name in variants:
        own = dict(variants[name])
        base = find_variant(own.pop("method"))
        if base is None:
            raise InputError(
                f"the method of [variants.{name}] must be one of {', '.join(ALGORITHM1)}, got "
                f"{variants[name]['method']!r}; change it."
            )
        return replace(base, title=name, options={**base.options, **own})
    plain, _, split = name.partition("@")
    if plain in VARIANTS and split:
        base = ALGORITHM1[plain]
        constant = {"alpha_exploit": _constant_share(name, split)}
        return replace(
            base, title=f"{base.title}, α_exploit = {split}", options={**base.options, **constant}
        )
    return ALGORITHM1.get(name)


def options_of(variant: Variant, goal: Goal, given: Options) -> dict[str, Any]:
    """Return all options of a method of Algorithm 1: its own, and those given that it takes.

    Examples
    --------
    >>> options_of(ALGORITHM1["plain-unweighted"], Goal(), {"weight_cap": 5, "slack": 0.01})
    {'slack': 0.01, 'weights': 'none'}
    """
    own = {**variant.options, **({"alpha_exploit": goal.alpha} if variant.at_once else {})}
    if "fairness" in own and {**given, **own}.get("paper_text"):
        own.pop("thresholds", None)  # the paper has one cut for all, and parity in the fit
    together = with_paper_text({**given, **own})
    if variant.all_known:
        together = {k: v for k, v in together.items() if not k.startswith("coverage")}
    return {k: v for k, v in together.items() if k in own or not why_useless(k, together)}


def taken_options(
    name: str, goal: Goal, given: Options, variants: Variants = NO_VARIANTS
) -> dict[str, Any]:
    """Return the given options that a method takes, whether or not it is Algorithm 1's.

    Examples
    --------
    >>> [taken_options(name, Goal(), {"slack": 0.01}) for name in ("plain", "ceiling")]
    [{'slack': 0.01}, {}]
    """
    variant = find_variant(name, variants)
    if variant is None:
        known = _OF_OTHERS.get(name, ())
        return {k: v for k, v in with_paper_text(given).items() if k in known}
    own = options_of(variant, goal, {})
    return {k: v for k, v in options_of(variant, goal, given).items() if k not in own}


def make_classifier(
    variant: Variant,
    goal: Goal,
    given: Options,
    *,
    group_as_feature: bool = False,
    seed: int = 0,
) -> PartialFeedbackClassifier:
    """Return a method of Algorithm 1 that is not yet fitted; ``given`` as for ``options_of``."""
    settings = {
        "kind": PARTIAL,
        "alpha": goal.alpha,
        "utility": {"good": goal.gain, "bad": -goal.loss},
        "group_as_feature": group_as_feature,
        "seed": seed,
        **options_of(variant, goal, given),
    }
    classifier: PartialFeedbackClassifier = build_classifier(settings, {})
    return classifier.set_params(coverage=AllKnown()) if variant.all_known else classifier


def algorithm1(setup: Setup, variant: Variant) -> PartialFeedbackClassifier:
    """Return a method of Algorithm 1, fitted to the past."""
    classifier = make_classifier(
        variant,
        setup.goal,
        setup.options,
        group_as_feature=setup.group_as_feature,
        seed=setup.seed,
    )
    return fit_to_past(classifier, setup)


def fit_to_past(classifier: PartialFeedbackClassifier, setup: Setup) -> PartialFeedbackClassifier:
    """Return the classifier, fitted to the past."""
    past = setup.past
    return classifier.fit(
        past.people.X,
        past.outcomes,
        accepted=past.accepted,
        sensitive_features=past.people.group,
        past_policy=setup.past_policy,
    )


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


_COSTS = ("cutoff", "cost", "threshold")  # options of baselines that are a break-even point
_ALIGNED = (*_COSTS, "gain", "loss")  # options that aligned settings have from the experiment
# Options that all settings have from the experiment.
_KNOWN = ("alpha", "horizon", "n_rounds", "past_policy", "group_as_feature", "random_state")


@dataclass(frozen=True)
class _Family:
    """A baseline, with the options, their source, and the settings in which it is offered."""

    title: str
    kind: type[Baseline]
    options: dict[str, Any] = field(default_factory=dict)
    settings: tuple[str, ...] = ("published", "aligned")
    source: str = OURS


_FAMILIES = {
    "frozen-past": _Family("Frozen past policy", FrozenPast, settings=()),
    "greedy": _Family("Greedy", Greedy),
    "epsilon-greedy": _Family("ε-greedy", EpsilonGreedy),
    "random-2": _Family(
        "2 % at random below the cut-off", EpsilonGreedy, {"epsilon": 0.02, "last": 0.02}
    ),
    "random-5": _Family(
        "5 % at random below the cut-off", EpsilonGreedy, {"epsilon": 0.05, "last": 0.05}
    ),
    "thompson": _Family("Bootstrap Thompson sampling", BootstrapThompson),
    "label-augmentation": _Family("Label augmentation (De-Arteaga 2018)", LabelAugmentation),
    "extrapolation": _Family("Reject inference, extrapolation", Extrapolation),
    "fuzzy-augmentation": _Family("Reject inference, fuzzy augmentation", FuzzyAugmentation),
    "kilbertus": _Family(
        "Kilbertus 2020, logistic",
        KilbertusPolicy,
        settings=("published", "aligned", "icml"),
    ),
    "kilbertus-semi": _Family(
        "Kilbertus 2020, semi-logistic", KilbertusPolicy, {"family": "semi"}, source=CODE
    ),
    "bechavod": _Family("Bechavod 2019", BechavodMixture),
    "yang": _Family("Yang 2022", BoundedExploration),
    "wei-finite": _Family("Wei 2021, cells", WeiFinite),
    "wei-bootstrap": _Family("Wei 2021, bootstrap", WeiBootstrap),
    "plot": _Family("PLOT (Pacchiano 2021), logistic", PseudoLabelOptimism),
    "plot-network": _Family(
        "PLOT (Pacchiano 2021), network", PseudoLabelOptimism, {"model": "network"}, source=CODE
    ),
    "conformal": _Family("Conformal selection (Jin 2023)", ConformalSelection, settings=()),
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


def _build_baseline(family: _Family, setting: str | None, setup: Setup) -> Baseline:
    kind, goal = family.kind, setup.goal
    options = dict(kind.settings[setting]) if setting is not None else {}
    if setting == "aligned":
        aligned = dict.fromkeys(_COSTS, break_even(goal)) | {"gain": goal.gain, "loss": goal.loss}
        options |= {name: value for name, value in aligned.items() if name in options}
    known = {
        "alpha": goal.alpha,
        "horizon": max(2, setup.n_rounds) if setup.n_rounds else None,
        "n_rounds": setup.n_rounds,
        "past_policy": setup.past_policy,
        "group_as_feature": setup.group_as_feature,
        "random_state": setup.seed,
    }
    accepted = kind().get_params()
    options |= {name: v for name, v in known.items() if name in accepted and v is not None}
    past = setup.past
    return kind(**options | family.options).fit(
        past.people.X,
        past.outcomes,
        accepted=past.accepted,
        sensitive_features=past.people.group,
    )


def values_of(name: str) -> dict[str, tuple[Any, str]]:
    """Return the parameters of a baseline with their values, and where these come from.

    Those that every method has from the experiment, such as the number of rounds, are left out.

    Examples
    --------
    >>> values_of("kilbertus-icml")["learning_rate"]
    (0.01, 'the paper implemented here')
    >>> values_of("kilbertus-aligned")["cost"][1]
    'the experiment'
    """
    family, setting = _baseline_names()[name]
    given = family.kind.settings.get(setting or "", {}) | family.options
    values: dict[str, tuple[Any, str]] = {}
    for parameter, value in family.kind(**given).get_params().items():
        source = family.kind.source_of(setting, parameter)
        if parameter in family.options:
            source = family.source
        elif setting == "aligned" and parameter in _ALIGNED:
            source = "the experiment"
        if parameter not in (*_KNOWN, "pos_label"):
            values[parameter] = (value, source)
    return values


def _baseline(family: _Family, setting: str | None) -> tuple[str, Callable[[Setup], Baseline]]:
    title = family.title if setting is None else f"{family.title} ({setting})"
    return title, lambda setup: _build_baseline(family, setting, setup)


def _baseline_names() -> dict[str, tuple[_Family, str | None]]:
    names: dict[str, tuple[_Family, str | None]] = {}
    for name, family in _FAMILIES.items():
        if not family.settings:
            names[name] = (family, None)
        names |= {f"{name}-{setting}": (family, setting) for setting in family.settings}
    return names


BASELINES: dict[str, tuple[str, Callable[[Setup], Baseline]]] = {
    name: _baseline(*parts) for name, parts in _baseline_names().items()
}
# Assumptions that a method needs and others do not.
ASSUMPTIONS: dict[str, str] = {
    name: family.kind.assumption
    for name, (family, _) in _baseline_names().items()
    if family.kind.assumption
}
# Methods that need an extra, and take minutes rather than seconds per run.
DEEP: tuple[str, ...] = tuple(name for name in BASELINES if name.startswith("fairall"))


def left_out() -> str:
    """Return a message on the methods that ``all`` leaves out because of a missing extra."""
    if not _missing_packages():
        return ""
    names = ", ".join(name for name in DEEP if "quick" not in name)
    return f"Left out: {names}, which {_needs_message()}."


def _missing_packages() -> list[str]:
    return [package for package in ("jax", "optax") if find_spec(package) is None]


def _needs_message() -> str:
    how = to_install("deep", "fairchance-lab")
    return f"needs {' and '.join(_missing_packages())}: install {how}"


METHODS: dict[str, tuple[str, Callable[[Setup], Method]]] = {
    **{name: (v.title, partial(algorithm1, variant=v)) for name, v in ALGORITHM1.items()},
    "certified": ("Certified", _certified),
    "certified-within-group": (
        "Certified (ranks within groups)",
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
    reference = OptOffline(
        goal.utility,
        goal.alpha,
        bounds_in=with_paper_text(setup.options).get("bounds_in", "thresholds"),
        groups=_groups(world, setup),
        random_state=setup.seed,
    )
    return reference.fit(people.X, everything.outcome, sensitive_features=people.group)


def _reference(make: Callable[..., Method]) -> Callable[[World, Setup], Method]:
    return lambda world, setup: make(
        world, setup.goal.utility, setup.goal.alpha, _groups(world, setup)
    )


def _groups(world: World, setup: Setup) -> tuple[str, ...]:
    return world.stream.groups if setup.group_as_feature else ()


# References get the world itself, outcomes of the rejected included.
REFERENCES: dict[str, tuple[str, Callable[[World, Setup], Method]]] = {
    "opt-offline": ("OPT-OFFLINE, all outcomes of S_0", _opt_offline),
    "logistic-all-labels": ("Logistic with all labels", _reference(logistic_all_labels)),
    "best-linear": ("Best linear rule with all labels", _reference(best_linear)),
    "ceiling": ("Ceiling: all outcomes known", _reference(ceiling)),
}


# Names that stand for several methods. Quick schedules of deep methods must be named one by one.
_NOT_DEEP = tuple(name for name in (*METHODS, *REFERENCES) if name not in DEEP)
_DEEP = tuple(name for name in DEEP if "quick" not in name) if not _missing_packages() else ()
SETS: dict[str, tuple[str, ...]] = {
    "all": (*_NOT_DEEP, *_DEEP),
    "not-deep": _NOT_DEEP,
    "baselines": tuple(name for name in BASELINES if name not in DEEP),
    "parity": (*PARITY_CELLS, *map(cell_of_fair_clf, PARITY_CELLS)),
}


def expand_names(names: Iterable[str], *, quick: bool = False) -> tuple[str, ...]:
    """Return names with each set replaced by its methods, without repeating named methods.

    ``quick`` replaces deep methods by their quick schedules.

    Examples
    --------
    >>> expand_names(["fair-clf", "not-deep"])[:3]
    ('fair-clf', 'plain', 'plain-unweighted')
    >>> expand_names(["fairall-aligned"], quick=True)
    ('fairall-quick-aligned',)
    """
    names = list(names)
    single: list[str] = []
    for name in names:
        members = [member for member in SETS.get(name, ()) if member not in (*single, *names)]
        single += members if name in SETS else [name]
    faster = {name: name.replace("fairall-", "fairall-quick-") for name in single} if quick else {}
    return tuple(faster[name] if faster.get(name) in DEEP else name for name in single)


def build(name: str, world: World, setup: Setup, variants: Variants = NO_VARIANTS) -> Method:
    """Build a method by its name, or by ``module:function`` for the user's own.

    The user's function takes a ``Setup`` and returns an object with ``decide`` and ``observe``.

    Parameters
    ----------
    name
        Name of the method.
    world, setup
        The world, which only references may read, and what other methods may know about it.
    variants
        As for ``find_variant``.
    """
    variant = find_variant(name, variants)
    if variant is not None:
        return algorithm1(setup, variant)
    if name in REFERENCES:
        return REFERENCES[name][1](world, setup)
    if name in METHODS:
        return METHODS[name][1](setup)
    check_methods([name])
    return _import_method(name)(setup)


def label(name: str, variants: Variants = NO_VARIANTS) -> str:
    """Return a method's name for readers."""
    variant = find_variant(name, variants)
    if variant is not None:
        return variant.title
    return {**METHODS, **REFERENCES}[name][0] if name in (*METHODS, *REFERENCES) else name


def check_methods(names: Iterable[str], variants: Variants = NO_VARIANTS) -> None:
    """Raise if a method cannot be built."""
    taken = [name for name in variants if name in (*METHODS, *REFERENCES, *SETS)]
    if taken:
        raise InputError(
            f"[variants.{taken[0]}] has the name of another method; choose another name."
        )
    for name in names:
        if find_variant(name, variants) is not None:
            continue
        if name in METHODS or name in REFERENCES:
            if name in DEEP and _missing_packages():
                raise InputError(f"the method {name} {_needs_message()}, or name other methods.")
        elif ":" in name:
            _import_method(name)
        else:
            known = ", ".join([*variants, *METHODS, *REFERENCES])
            raise InputError(
                f"there is no method {name!r}; known are {known}, the sets {', '.join(SETS)}, "
                f"explore-fair@0.13 for a constant α_exploit, and module:function for your own."
            )


def check_options(experiment: Experiment) -> None:
    """Raise if an option has a wrong value, or if no method takes it."""
    for setting in experiment.settings:
        for name in experiment.methods:
            variant = find_variant(name, experiment.variants)
            if variant is not None:
                make_classifier(variant, setting.goal, setting.options)
    for key in experiment.settings[0].options:
        if not any(_takes(experiment, name, key) for name in experiment.methods):
            raise InputError(
                f"none of the methods {', '.join(experiment.methods)} takes {key}; leave it out."
            )


def _takes(experiment: Experiment, name: str, key: str) -> bool:
    """Return whether a method takes an option in some setting; the user's own may read any."""
    variants = experiment.variants
    taken = [taken_options(name, s.goal, s.options, variants) for s in experiment.settings]
    keys = PAPER_TEXT if key == "paper_text" else (key,)
    own = ":" in name and name not in variants
    return own or any(one in options for options in taken for one in keys)


def find_once(experiment: Experiment) -> tuple[str, ...]:
    """Return the methods that the varied option does not change, which run at one setting only."""
    key = experiment.varied
    if key is None or key == "alpha":
        return ()
    return tuple(name for name in experiment.methods if not _takes(experiment, name, key))


def find_main(experiment: Experiment) -> int:
    """Return the index of the setting that tables show first: with our default, or the first."""
    settings, key = experiment.settings, experiment.varied
    if key == "alpha":
        away = [abs(setting.goal.alpha - experiment.goal.alpha) for setting in settings]
        return away.index(min(away))
    named = (name for name in experiment.methods if key and _takes(experiment, name, key))
    found = (find_variant(name, experiment.variants) for name in named)
    variant = next((variant for variant in found if variant is not None), None)
    if variant is None:
        return 0
    made = [
        make_classifier(variant, experiment.goal, options).get_params(deep=False)
        for options in (experiment.classifier, *(setting.options for setting in settings))
    ]
    for params in made:
        params["learner"] = repr(params["learner"])  # estimators are equal only to themselves
        params["coverage"] = params["coverage"] or SummedAcceptance()
        params["strategy"] = params["strategy"] or ScoreWeighted()
    return made.index(made[0], 1) - 1 if made[0] in made[1:] else 0


def _constant_share(name: str, split: str) -> float:
    """Return the constant α_exploit after the @ of a method's name."""
    try:
        return float(split)
    except ValueError:
        raise InputError(
            f"the method {name!r} needs a number after the @, such as explore-fair@0.13."
        ) from None


def _import_method(name: str) -> Callable[[Setup], Method]:
    module, _, function = name.partition(":")
    if "" not in sys.path:
        sys.path.append("")  # finds files in the current folder, also in worker processes
    try:
        make = getattr(importlib.import_module(module), function)
        if not callable(make):
            raise TypeError(f"{function} is not a function")
        return make  # type: ignore[no-any-return]
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise InputError(
            f"the method {name!r} cannot be imported: {error}; name it module:function."
        ) from error
    except Exception as error:  # whatever a user's file raises
        line = traceback.extract_tb(error.__traceback__)[-1]
        raise InputError(
            f"the method {name!r} cannot be imported: {type(error).__name__}: {error} (at "
            f"{line.filename}, line {line.lineno})."
        ) from error
