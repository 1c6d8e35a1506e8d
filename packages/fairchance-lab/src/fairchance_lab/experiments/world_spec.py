"""Worlds as plain data, and how to load their people and build them."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairchance.errors import InputError
from fairchance.simulate import feedback as fb
from fairchance.simulate import histories as h
from fairchance.simulate.people import Table
from fairchance.simulate.populations import Drifting, FiniteDomain, Lender, Population
from fairchance.simulate.streams import Drawn, Parts, Resampled, Scaling, Stream, TableDrift
from fairchance.simulate.worlds import World
from fairchance_lab.datasets import CATALOGUE, load, read_table

__all__ = ["PASTS", "POPULATIONS", "WorldSpec", "load_source"]

Options = Mapping[str, Any]

PASTS: dict[str, Callable[..., h.HistoryRule]] = {
    "outcome": h.SelectedOnOutcome,
    "composition": h.Composition,
    "cutoff": h.PastCutoff,
    "group": h.GroupExcluding,
    "random": h.AtRandom,
    "everybody": h.AllAccepted,
}
DELAYS: dict[str, Callable[..., fb.Delay]] = {
    "fixed": fb.Fixed,
    "between": fb.Between,
    "geometric": fb.Geometric,
    "by-outcome": fb.ByOutcome,
}


@dataclass(frozen=True)
class WorldSpec:
    """A world as plain data.

    Attributes
    ----------
    data
        Name of a data set or population (``fairchance datasets``), ``"lender"``, or a file.
    group
        How to group people, if a data set has several ways; empty means its first.
    columns
        For your own file: outcome, group, features, … as ``datasets.read_table`` takes them.
    population
        Options of a synthetic population.
    n_batch, n_rounds, n_history
        If people are drawn: people in a round (None means 500), rounds after S_0 (39), people in
        S_0 (as many as in a round).
    n_parts
        Number of parts of a data set that is cut into parts; 0 means that people are drawn.
    past
        Rules of the past, which are combined: each a dict with ``rule`` and its options. The rule
        ``"policy"`` is the past of the synthetic lender.
    feedback
        ``delay`` (a dict with ``kind`` and its options), ``missing``, ``wrong``,
        ``corrected_after``.
    drift
        Options of ``TableDrift`` or ``Drifting``.
    scaling
        ``"history"``, ``"stream"`` or ``"none"``.
    """

    data: str
    group: str = ""
    columns: Options = field(default_factory=dict)
    population: Options = field(default_factory=dict)
    n_batch: int | None = None
    n_rounds: int | None = None
    n_history: int | None = None
    n_parts: int = 0
    past: tuple[Options, ...] = ({"rule": "outcome", "good": 0.9, "bad": 0.1},)
    feedback: Options = field(default_factory=dict)
    drift: Options = field(default_factory=dict)
    scaling: Scaling = "history"

    def build(self, source: Table | Population, seed: int) -> World:
        """Return the world of one repetition."""
        return World(
            self.stream(source),
            self._past(source),
            feedback=self._feedback(),
            scaling=self.scaling,
            seed=seed,
        )

    def stream(self, source: Table | Population) -> Stream:
        """Return S_0 and the batches."""
        self._check_used(isinstance(source, Table))
        if isinstance(source, Table):
            if self.n_parts:
                return Parts(source, self.n_parts)
            drift = _build("drift", TableDrift, self.drift) if self.drift else None
            return Resampled(source, self.people_a_round, self.rounds, drift)
        if self.drift:
            if isinstance(source, FiniteDomain):
                raise InputError("a finite domain does not drift; leave drift out.")
            options = dict(self.drift)
            if not isinstance(options.get("shift", []), list | tuple):
                raise InputError(f"shift must be a list of numbers, got {options['shift']!r}.")
            options["shift"] = tuple(options.get("shift", ()))
            drifting: Population = _build("drift", Drifting, {"population": source, **options})
            return Drawn(drifting, self.people_a_round, self.rounds, self.n_history)
        return Drawn(source, self.people_a_round, self.rounds, self.n_history)

    @property
    def people_a_round(self) -> int:
        """People in a round, if people are drawn."""
        return 500 if self.n_batch is None else self.n_batch

    @property
    def rounds(self) -> int:
        """Rounds after S_0, if people are drawn."""
        return 39 if self.n_rounds is None else self.n_rounds

    def people_drawn(self, source: Table | Population) -> int:
        """Return how many people a repetition draws with replacement from a data set.

        S_0 is included; 0 means that people are synthetic or the data set is cut into parts.
        """
        stream = self.stream(source)
        return stream.n_batch * (stream.n_rounds + 1) if isinstance(stream, Resampled) else 0

    def _check_used(self, is_table: bool) -> None:
        """Raise if an option does not apply to this kind of world."""
        useless: dict[str, Any] = {"n_parts": self.n_parts}
        kind = "a population"
        if is_table:
            kind, useless = "a data set", {"n_history": self.n_history}
            if self.n_parts:
                kind = "a data set cut into parts"
                useless |= {"drift": self.drift, "n_batch": self.n_batch, "n_rounds": self.n_rounds}
        for name, value in useless.items():
            if value:
                raise InputError(f"{name} does not apply to {kind}, got {value!r}; leave it out.")

    def _past(self, source: Table | Population) -> h.HistoryRule:
        if not self.past:
            raise InputError("a world needs at least one past rule, got none.")
        rules = [_build_rule(options, source) for options in self.past]
        combined = rules[0]
        for rule in rules[1:]:
            combined = combined & rule
        return combined

    def _feedback(self) -> fb.Feedback:
        options = dict(self.feedback)
        delay = options.pop("delay", {"kind": "fixed"})
        if not isinstance(delay, Mapping):
            raise InputError(f'delay must be a table, such as {{kind = "fixed"}}, got {delay!r}.')
        delay = dict(delay)
        kind = delay.pop("kind", "fixed")
        if kind not in DELAYS:
            raise InputError(f"a delay must be one of {', '.join(DELAYS)}, got {kind!r}.")
        options["delay"] = _build(f"delay {kind}", DELAYS[kind], delay)
        feedback: fb.Feedback = _build("feedback", fb.Feedback, options)
        return feedback


def _build_rule(options: Options, source: Table | Population) -> h.HistoryRule:
    options = dict(options)
    name = options.pop("rule", None)
    if name == "policy":
        if not isinstance(source, Lender):
            raise InputError('the past rule "policy" needs data = "lender"; choose another.')
        return h.ByPolicy(source.probability_accepted_before)
    if name not in PASTS:
        known = ", ".join([*PASTS, "policy"])
        raise InputError(f"a past rule must be one of {known}, got {name!r}.")
    rule: h.HistoryRule = _build(f"past rule {name}", PASTS[name], options)
    return rule


def _build(name: str, make: Callable[..., Any], options: Options) -> Any:
    try:
        return make(**options)
    except TypeError as error:
        raise InputError(f"{name} has a wrong option: {error}.") from error


POPULATIONS: dict[str, Callable[..., Population]] = {"lender": Lender}


def load_source(
    spec: WorldSpec,
    *,
    data: Path | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> Table | Population:
    """Load the data set or population of a world.

    Parameters
    ----------
    spec
        The world.
    data
        A folder to search for data files before FAIRCHANCE_DATA and the cache.
    progress
        Called with bytes done and bytes in total during a download.
    """
    if spec.data in POPULATIONS:
        try:
            return POPULATIONS[spec.data](**spec.population)
        except TypeError as error:
            raise InputError(f"the population {spec.data} has a wrong option: {error}.") from error
    if spec.population:
        raise InputError(
            f"population options apply to {', '.join(POPULATIONS)} only, and data is "
            f"{spec.data!r}; leave them out."
        )
    near = difflib.get_close_matches(spec.data, POPULATIONS, n=1)
    if near and spec.data not in CATALOGUE and not spec.columns:
        raise InputError(f"there is no data set {spec.data!r}; did you mean {near[0]!r}?")
    if spec.columns:
        columns: dict[str, Any] = dict(spec.columns)
        return read_table(Path(spec.data), **_check_columns(columns))
    if Path(spec.data).suffix in (".csv", ".parquet"):
        raise InputError(
            f"{spec.data} is a file: name its outcome and group columns, such as "
            f'columns = {{outcome = "repaid", group = "sex"}}.'
        )
    return load(spec.data, group=spec.group or None, data=data, progress=progress)


def _check_columns(columns: dict[str, Any]) -> dict[str, Any]:
    known = ("outcome", "group", "features", "good", "missing", "name")
    for name in ("outcome", "group"):
        if name not in columns:
            raise InputError(f"columns must name the {name} column of the file, got none.")
    for name in columns:
        if name not in known:
            raise InputError(f"columns has no field {name!r}; known are {', '.join(known)}.")
    return columns
