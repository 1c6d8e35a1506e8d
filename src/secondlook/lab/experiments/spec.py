"""Experiments as plain data: world, goal, methods, repetitions."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from secondlook.core.budget import PowerSchedule
from secondlook.core.utility import Revenue, Utility
from secondlook.errors import InputError
from secondlook.lab.experiments.released import check_switches
from secondlook.lab.experiments.world_spec import WorldSpec

__all__ = ["Experiment", "Goal"]


@dataclass(frozen=True)
class Goal:
    """The value of decisions and the bound on mistakes; defaults are the paper's.

    Attributes
    ----------
    alpha
        Bound on the FDR.
    gain, loss
        Gain of accepting a good applicant, and loss of accepting a bad one.
    slack, min_selection_rate
        ε and λ.
    exploit_start, exploit_power
        α_exploit = start · round^power; start None means α/2.
    threshold
        τ.
    difference
        Largest selection-rate difference of methods that exploit fairly.
    """

    alpha: float = 0.15
    gain: float = 200.0
    loss: float = 500.0
    slack: float = 0.001
    min_selection_rate: float = 0.0
    exploit_start: float | None = None
    exploit_power: float = 0.2
    threshold: float = 0.5
    difference: float = 0.05

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise InputError(
                f"alpha is a share and must be in (0, 1), got {self.alpha}; write 15 % as 0.15."
            )

    @property
    def utility(self) -> Utility:
        """Revenue of a decision."""
        return Revenue(gain=self.gain, loss=self.loss)

    @property
    def schedule(self) -> PowerSchedule:
        """α_exploit over the rounds."""
        return PowerSchedule(self.exploit_start, self.exploit_power)


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
    alphas
        Bounds on the FDR, each tried with all methods; empty means only the goal's.
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
    """

    name: str
    world: WorldSpec
    methods: tuple[str, ...]
    goal: Goal = field(default_factory=Goal)
    alphas: tuple[float, ...] = ()
    repetitions: int = 50
    seed: int = 0
    switches: tuple[str, ...] = ()
    published: str | None = None
    segments: Literal["group", "past"] = "group"
    focus: str = ""
    judged: bool = False

    def __post_init__(self) -> None:
        if self.repetitions < 1:
            raise InputError(f"repetitions must be 1 or more, got {self.repetitions}.")
        if self.seed < 0:
            raise InputError(f"seed must be a whole number of at least 0, got {self.seed}.")
        if len(set(self.alphas)) < len(self.alphas) or not all(0 < a < 1 for a in self.alphas):
            raise InputError(
                f"alphas must be different numbers in (0, 1), got {list(self.alphas)}."
            )
        if not self.methods:
            raise InputError("an experiment needs at least one method, got none.")
        check_switches(self.switches)
        if self.segments not in ("group", "past"):
            raise InputError(f"segments must be 'group' or 'past', got {self.segments!r}.")
        repeated = {name for name in self.methods if self.methods.count(name) > 1}
        if repeated:
            raise InputError(f"methods must be named once, got {sorted(repeated)} more than once.")

    @property
    def goals(self) -> tuple[Goal, ...]:
        """The goal with each α."""
        return tuple(replace(self.goal, alpha=a) for a in self.alphas or (self.goal.alpha,))

    def as_dict(self) -> dict[str, Any]:
        """Return the experiment as plain data."""
        return dict(json.loads(json.dumps(asdict(self))))

    @property
    def fingerprint(self) -> str:
        """A hash of all settings that the results of a repetition depend on."""
        data = {k: v for k, v in self.as_dict().items() if k not in ("name", "repetitions")}
        return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]
