"""A program as it is at one moment."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fairchance.audit.log import DecisionLog
from fairchance.core.groups import Attributes
from fairchance.errors import InputError
from fairchance.ledger.base import Entry, Standing
from fairchance.ledger.control import Control
from fairchance.ledger.decision_log import decision_log_of
from fairchance.ledger.encoding import Shape
from fairchance.ledger.objections import check_objections, to_hold
from fairchance.ledger.policies import read_policy
from fairchance.ledger.replay import State, recorded_parts
from fairchance.ledger.rounds import Desk, made_after_close
from fairchance.ledger.sql import LedgerReader
from fairchance.ledger.summary import Summary, summary_of
from fairchance.people.likeness import Unlike

if TYPE_CHECKING:
    from fairchance.ledger.program import Program

__all__ = ["ProgramView"]

_NEWEST = 1_000  # applicants of an open round that are compared with those before


class ProgramView:
    """A program at one moment: everything comes from the same read transaction.

    ``Program.reading`` makes it; it is valid inside that ``with`` block. Nothing is read before it
    is asked for, and what was read once is kept.
    """

    def __init__(self, program: Program, reader: LedgerReader) -> None:
        self.program, self.reader = program, reader
        self._desks: dict[int, Desk] = {}

    @cached_property
    def settings(self) -> Entry:
        """The program's first entry."""
        return self.program._settings(self.reader)

    @property
    def about(self) -> dict[str, Any]:
        """Data that ``Program.create`` stored with the settings."""
        about: dict[str, Any] = self.settings.says.get("about", {})
        return about

    @cached_property
    def shape(self) -> Shape:
        """The columns, groups, ids and outcome labels of the program."""
        return Shape.read(self.settings.says)

    @cached_property
    def control(self) -> Control:
        """The ramp in force, and whether the program is paused."""
        return Control.of(self.about, self.reader.entries(kind="control"))

    @cached_property
    def _state(self) -> State:
        return self.program._current(self.reader)

    @property
    def classifier(self) -> Any:
        """The classifier itself, not a copy: do not change it.

        Later calls of the program go on with this object, so copy what must outlive the block.
        """
        return self._state.classifier

    @cached_property
    def open_round(self) -> int | None:
        """The round in which the next applicant is decided on; None if a batch is a round."""
        opened = self.reader.open_round()
        if opened is not None:
            return int(opened.says["round"])
        if "rounds" not in self.about:
            self.program._is_at_once = True
            return None
        return self.next_round

    @cached_property
    def next_round(self) -> int:
        """The round that is open, or the next one."""
        opened = self.reader.open_round()
        if opened is not None:
            return int(opened.says["round"])
        last = next(self.reader.newest_first("batch"), None)
        return 1 if last is None else int(last.says["round"]) + 1

    def desk(self, round: int) -> Desk:
        """Return what decides by the policy of a round; ``InputError`` if there is none."""
        if round not in self._desks:
            opened = self.program._opening(self.reader, round)
            self._desks[round] = Desk(self.reader, self.settings, opened, self.program._allowed)
        return self._desks[round]

    def made_after_close(self, round: int, at: str) -> bool | None:
        """Return whether decisions were made after their round; None if a day does not tell."""
        return made_after_close(self.reader, round, at)

    @cached_property
    def reading_rules(self) -> Any:
        """How applicants are read: by the policy of the open round, or by the classifier."""
        opened = self.reader.open_round()
        if opened is not None:
            policy: Any = read_policy(self.reader, opened, self.program._allowed)
            return policy.reader
        return getattr(self.classifier, "_intake", None)

    @property
    def known_groups(self) -> Attributes | None:
        """The groups of the program's history, if it had any."""
        known: Attributes | None = getattr(self.reading_rules, "sensitive", None)
        return known

    def standing(self, ids: Any) -> Standing:
        """Return what is decided and known about applicants, as ``Program.standing`` does."""
        return self.reader.standing(self.shape.read_names(ids))

    def reasons(self, ids: Any) -> dict[Any, list[tuple[str, float]]]:
        """Return why the program rejected applicants, as ``Program.reasons`` does."""
        names = self.shape.read_ids(ids)
        persons = self.reader.standing(names).persons
        check_objections(names, to_hold(persons), "no reasons were read")
        rows = self.reader.recorded(names).people
        reasons_of = dict(zip(rows.applications, rows.reasons or [None] * len(rows), strict=True))
        recorded = [reasons_of[name] for name in names]
        pairs = zip(names, recorded, strict=True)
        without = [name for name, reasons in pairs if reasons is None]
        if without:
            raise InputError(
                f"{len(without)} of {len(names)} ids have no reasons on record, first "
                f"{without[0]!r}; only applicants whom the program rejected have some."
            )
        reasons = self.shape.reasons(recorded)
        assert reasons is not None
        listed = [reason or [] for reason in reasons]
        return dict(zip(self.shape.ids(names).tolist(), listed, strict=True))

    def summary(self, *, groups: bool = True, money: bool = True) -> Summary:
        """Return rounds, outcomes, mistakes and changes, as ``Program.summary`` does."""
        found = summary_of(
            self.reader,
            self.program.name,
            now=self.program.ledger.clock(),
            groups=groups,
            money=money,
            types=self.program._allowed.types,
            trusted=self.program._allowed.trusted,
        )
        if found.open_round is None or not found.open_round.n_people:
            return found
        try:
            unlike = tuple(one.as_dict() for one in self._unlike_so_far())
        except InputError:  # its state cannot be read, and counts do not need it
            return found
        return replace(found, open_round=replace(found.open_round, unlike=unlike))

    def _unlike_so_far(self) -> tuple[Unlike, ...]:
        """Compare the newest applicants of the open round with the history and the last round."""
        state, opened = self._state, self._state.opened
        assert opened is not None
        newest = [
            part
            for people, decisions in self.reader.parts(opened, newest=_NEWEST)
            for part in recorded_parts(
                state.classifier.open_policy_, state.shape, people, decisions
            )
        ]
        return state.classifier.compare(newest)  # type: ignore[no-any-return]

    def decision_log(
        self, *, history: bool = False, mixture: bool = False, groups: bool = True
    ) -> DecisionLog:
        """Return all decisions with their probabilities, as ``Program.decision_log`` does."""
        mean = getattr(self.classifier, "mean_acceptance", None) if mixture else None
        if mixture and (history or mean is None):
            whose = "the history" if history else f"a {type(self.classifier).__name__}"
            raise InputError(
                f"{{option}} needs stored policies, and {whose} has none; leave it out.",
                option="mixture",
            )
        return decision_log_of(
            self.reader, self.settings, history=history, groups=groups, mean_acceptance=mean
        )
