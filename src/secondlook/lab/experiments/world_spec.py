"""Worlds as data: what a file or a command line says about one, and how it is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from secondlook.errors import InputError
from secondlook.lab.simulate import feedback as fb
from secondlook.lab.simulate import histories as h
from secondlook.lab.simulate.finite import FiniteDomain
from secondlook.lab.simulate.people import Table
from secondlook.lab.simulate.populations import Drifting, Lender, Population
from secondlook.lab.simulate.streams import Drawn, Parts, Resampled, Scaling, Stream, TableDrift
from secondlook.lab.simulate.worlds import World

__all__ = ["PASTS", "WorldSpec", "drawn_again"]

Options = Mapping[str, Any]

_A_TENTH = 10  # of the rows may be drawn before it is said that they come again

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
        Name of a data set or population (``secondlook datasets``), ``"lender"``, or a file.
    group
        Which groups, where a data set has several choices; empty means its first.
    columns
        For a file of one's own: outcome, group, features, … as ``datasets.read_table`` takes them.
    population
        Options of a synthetic population.
    n_batch, n_rounds, n_history
        Where people are drawn: people in a round (None means 500), rounds after S_0 (39), people in
        S_0 (as many as in a round).
    n_parts
        Where a data set is cut into parts instead; 0 means that people are drawn.
    past
        Rules by which the past decided, combined: each a dict with ``rule`` and its options. The
        rule ``"policy"`` is the synthetic lender's own past.
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
            drift = _made("drift", TableDrift, self.drift) if self.drift else None
            return Resampled(source, self.people_a_round, self.rounds, drift)
        if self.drift:
            if isinstance(source, FiniteDomain):
                raise InputError("a finite domain does not drift; leave drift out.")
            options = dict(self.drift)
            if not isinstance(options.get("shift", []), list | tuple):
                raise InputError(f"shift must be a list of numbers, got {options['shift']!r}.")
            options["shift"] = tuple(options.get("shift", ()))
            drifting: Population = _made("drift", Drifting, {"population": source, **options})
            return Drawn(drifting, self.people_a_round, self.rounds, self.n_history)
        return Drawn(source, self.people_a_round, self.rounds, self.n_history)

    @property
    def people_a_round(self) -> int:
        """People in a round, where people are drawn."""
        return 500 if self.n_batch is None else self.n_batch

    @property
    def rounds(self) -> int:
        """Rounds after S_0, where people are drawn."""
        return 39 if self.n_rounds is None else self.n_rounds

    def people_drawn(self, source: Table | Population) -> int:
        """Return how many people a repetition draws from the rows of a data set, S_0 included.

        It draws with replacement; 0 where people are made up, or a data set is cut into parts.
        """
        stream = self.stream(source)
        return stream.n_batch * (stream.n_rounds + 1) if isinstance(stream, Resampled) else 0

    def _check_used(self, is_table: bool) -> None:
        """Raise if something is said that this kind of world has no use for."""
        useless: dict[str, Any] = {"n_parts": self.n_parts}
        kind = "a population"
        if is_table:
            kind, useless = "a data set", {"n_history": self.n_history}
            if self.n_parts:
                kind = "a data set cut into parts"
                useless |= {"drift": self.drift, "n_batch": self.n_batch, "n_rounds": self.n_rounds}
        for name, value in useless.items():
            if value:
                raise InputError(f"{name} means nothing for {kind}, got {value!r}; leave it out.")

    def _past(self, source: Table | Population) -> h.HistoryRule:
        if not self.past:
            raise InputError("a world needs at least one rule of the past, got none.")
        rules = [_rule(one, source) for one in self.past]
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
            raise InputError(f"a delay is one of {', '.join(DELAYS)}, got {kind!r}.")
        made = _made(f"delay {kind}", DELAYS[kind], delay)
        made_of: fb.Feedback = _made("feedback", fb.Feedback, {"delay": made, **options})
        return made_of


def drawn_again(n_rows: int, n_drawn: int) -> list[str]:
    """Say that rows of a data set come again, where they do so often enough to matter.

    Examples
    --------
    >>> drawn_again(1_000_000, 20_000)
    []
    >>> print(*drawn_again(4_000, 10_000))
    A repetition draws 10,000 people with replacement from 4,000 rows, so the same row comes again \
as another person, and a learner that knows rows by heart looks better than among new people \
(docs/worlds.md).
    """
    if n_drawn <= n_rows / _A_TENTH:
        return []
    return [
        f"A repetition draws {n_drawn:,} people with replacement from {n_rows:,} rows, so the same "
        f"row comes again as another person, and a learner that knows rows by heart looks better "
        f"than among new people (docs/worlds.md)."
    ]


def _rule(options: Options, source: Table | Population) -> h.HistoryRule:
    options = dict(options)
    name = options.pop("rule", None)
    if name == "policy":
        if not isinstance(source, Lender):
            raise InputError('the past rule "policy" is the synthetic lender\'s; choose another.')
        return h.ByPolicy(source.probability_accepted_before)
    if name not in PASTS:
        known = ", ".join([*PASTS, "policy"])
        raise InputError(f"a past rule is one of {known}, got {name!r}.")
    made: h.HistoryRule = _made(f"past rule {name}", PASTS[name], options)
    return made


def _made(what: str, make: Callable[..., Any], options: Options) -> Any:
    try:
        return make(**options)
    except TypeError as error:
        raise InputError(f"{what} got options it does not know or lacks one: {error}.") from error
