"""Experiments as plain data: world, goal, methods, repetitions."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal

from fairchance.core.utility import Revenue, Utility
from fairchance.errors import InputError
from fairchance.methods.option_values import FLAG, NUMBER
from fairchance.methods.options import CLASSIFIERS, PARTIAL, RESEARCH
from fairchance_lab.datasets import CATALOGUE
from fairchance_lab.experiments.world_spec import WorldSpec
from fairchance_lab.paper.released import check_switches

__all__ = [
    "NO_VARIANTS",
    "Experiment",
    "Goal",
    "Options",
    "RunSetting",
    "Variants",
    "read_options",
    "stated_goal",
    "written",
]

Options = Mapping[str, Any]  # keys of a program's [classifier] table, and paper_text
Variants = Mapping[str, Options]
NO_VARIANTS: Variants = MappingProxyType({})

# The goal and the repetition set these.
_NOT_OPTIONS = {"kind": "", "alpha": "it belongs in [goal]", "seed": ""}


@dataclass(frozen=True)
class Goal:
    """The value of decisions and the bound on mistakes; defaults are the paper's.

    Attributes
    ----------
    alpha
        Bound on the FDR.
    gain, loss
        Gain of accepting a good applicant, and loss of accepting a bad one.
    """

    alpha: float = 0.15
    gain: float = 200.0
    loss: float = 500.0

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise InputError(
                f"alpha is a share and must be in (0, 1), got {self.alpha}; write 15 % as 0.15."
            )

    @property
    def utility(self) -> Utility:
        """Revenue of a decision."""
        return Revenue(gain=self.gain, loss=self.loss)


def read_options(given: Options, where: str, also: Iterable[str] = ()) -> dict[str, Any]:
    """Return options of Algorithm 1's methods, checked.

    Parameters
    ----------
    given
        The options: keys of a program's [classifier] table, research options, and ``paper_text``.
    where
        Where they are, for messages.
    also
        Other names that are known there.

    Examples
    --------
    >>> read_options({"weight_cap": "none", "coverage": "sum_of_g"}, "[classifier]")
    {'weight_cap': 'none', 'coverage': 'sum-of-g'}
    """
    known = CLASSIFIERS[PARTIAL] | RESEARCH | {"paper_text": FLAG}
    known = {name: kind for name, kind in known.items() if name not in _NOT_OPTIONS}
    for name in given:
        if name not in known:
            names = [*also, *known]
            near = difflib.get_close_matches(name, names, n=1, cutoff=0.75)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(names)}."
            hint = f"{_NOT_OPTIONS[name]}." if _NOT_OPTIONS.get(name) else hint
            raise InputError(f"{where} has no key {name!r}; {hint}")
    return {name: known[name].read(f"{where} {name}", value) for name, value in given.items()}


def stated_goal(data: str) -> dict[str, float]:
    """Return the α, gain and loss that the catalogue states for a data set, if it has it.

    Examples
    --------
    >>> stated_goal("taiwan")
    {'alpha': 0.15, 'gain': 200.0, 'loss': 500.0}
    >>> stated_goal("lender")
    {}
    """
    entry = CATALOGUE.get(data)
    return {} if entry is None else {name: getattr(entry, name) for name in Goal.__match_args__}


@dataclass(frozen=True)
class RunSetting:
    """A goal and options that the methods of an experiment are run with, and a name for readers."""

    label: str
    goal: Goal
    options: Options


@dataclass(frozen=True)
class Experiment:
    """A complete experiment: equal experiments give equal results on any machine.

    Attributes
    ----------
    name
        Name of the experiment.
    world
        The people and the past.
    goal
        The value of decisions and the bound on mistakes.
    methods
        Names of methods, in running order.
    classifier
        Options of Algorithm 1's methods: keys of a program's [classifier] table. A method takes
        those that have an effect on it and that do not define it.
    variants
        Methods with options of their own, by name: each has ``method``, a method of Algorithm 1,
        and options, which come before those of ``classifier``.
    vary
        One option with the values to try, such as ``{"weight_cap": (1, 3, "none")}``. The name
        ``alpha`` varies the goal's bound, for all methods; other options vary the methods that take
        them, and the others run once.
    repetitions
        Number of repetitions, each with its own seed.
    seed
        Seed of the experiment, from which each repetition derives its own.
    switches
        Deviations of the paper's released code to switch on, by name (``released.SWITCHES``).
    published
        Key of the paper's table to compare with, or None.
    segments
        How people are counted: by ``"group"``, or by ``"past"``, on which side of the past's
        cut-off they are.
    focus
        The group, or segment, that the past excluded, if the experiment is about it.
    judged
        Whether each round's policy is also judged on the whole population, which takes longer.
    description
        What the world is like, for readers of the report.
    """

    name: str
    world: WorldSpec
    methods: tuple[str, ...]
    goal: Goal = field(default_factory=Goal)
    classifier: Options = field(default_factory=dict)
    variants: Variants = field(default_factory=dict)
    vary: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    repetitions: int = 50
    seed: int = 0
    switches: tuple[str, ...] = ()
    published: str | None = None
    segments: Literal["group", "past"] = "group"
    focus: str = ""
    judged: bool = False
    description: str = ""

    def __post_init__(self) -> None:
        if self.repetitions < 1:
            raise InputError(f"repetitions must be 1 or more, got {self.repetitions}.")
        if self.seed < 0:
            raise InputError(f"seed must be a whole number of at least 0, got {self.seed}.")
        if not self.methods:
            raise InputError("an experiment needs at least one method, got none.")
        check_switches(self.switches)
        variants = {name: _read_variant(name, given) for name, given in self.variants.items()}
        object.__setattr__(self, "classifier", read_options(self.classifier, "[classifier]"))
        object.__setattr__(self, "variants", variants)
        object.__setattr__(self, "vary", _read_varied(self.vary))
        if self.segments not in ("group", "past"):
            raise InputError(f"segments must be 'group' or 'past', got {self.segments!r}.")
        repeated = {name for name in self.methods if self.methods.count(name) > 1}
        if repeated:
            raise InputError(f"methods must be named once, got {sorted(repeated)} more than once.")

    @property
    def varied(self) -> str | None:
        """Name of the option that is varied, or None."""
        return next(iter(self.vary), None)

    @property
    def settings(self) -> tuple[RunSetting, ...]:
        """What is run: a setting for each value of the varied option."""
        name, goal = self.varied, self.goal
        if name is None or name == "alpha":
            return tuple(
                RunSetting(f"α = {alpha:g}", replace(goal, alpha=alpha), self.classifier)
                for alpha in self.vary.get("alpha", (goal.alpha,))
            )
        return tuple(
            RunSetting(f"{name} = {written(value)}", goal, {**self.classifier, name: value})
            for value in self.vary[name]
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the experiment as plain data."""
        return dict(json.loads(json.dumps(asdict(self))))

    @property
    def fingerprint(self) -> str:
        """A hash of all settings that the results of a repetition depend on."""
        words = ("name", "description", "repetitions")
        data = {k: v for k, v in self.as_dict().items() if k not in words}
        return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]


def _read_variant(name: str, given: Options) -> dict[str, Any]:
    where = f"[variants.{name}]"
    if not isinstance(given, Mapping) or not isinstance(given.get("method"), str):
        raise InputError(f'{where} needs method, such as method = "plain", got {given!r}; add it.')
    own = {key: value for key, value in given.items() if key != "method"}
    return {"method": given["method"], **read_options(own, where)}


def _read_varied(vary: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    if len(vary) > 1:
        raise InputError(
            f"vary takes one option, got {', '.join(vary)}; run the others on their own."
        )
    read = {}
    for name, values in vary.items():
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise InputError(f"vary needs a list of values for {name}, got {values!r}.")
        if name == "alpha":
            read[name] = tuple(NUMBER.read("vary alpha", value) for value in values)
            for value in read[name]:
                Goal(alpha=value)
        else:
            read[name] = tuple(
                read_options({name: value}, "vary", ("alpha",))[name] for value in values
            )
        if not read[name] or any(read[name].count(value) > 1 for value in read[name]):
            raise InputError(f"vary needs different values of {name}, got {list(values)}.")
    return read


def written(value: Any) -> str:
    """Return a value of an option as --set takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
