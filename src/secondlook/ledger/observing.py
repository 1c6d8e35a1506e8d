"""Outcomes that come in: recorded as new facts, as corrections, or not at all."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from secondlook.errors import LearningWarning
from secondlook.ledger.base import Facts, OutcomeRows, Writer
from secondlook.ledger.certificates import record_certificates
from secondlook.ledger.part import PartOfProgram
from secondlook.ledger.replay import State
from secondlook.ledger.telling import (
    are_final,
    as_deployed,
    news,
    read_ids,
    read_outcomes,
    told_once,
)
from secondlook.methods.certified.records import BegunAgain, begun_again, given_up_words

__all__ = ["Observing"]


class Observing(PartOfProgram):
    """The part of a program that is told what became of people."""

    def observe(self, ids: Any, outcomes: Any) -> None:
        """Record outcomes of accepted people: in any order, in parts, any time later.

        An outcome that is told again changes nothing. One that contradicts what is recorded is
        kept as a correction, with who told it and when; decisions already made stay as they are.
        If a certificate or a pilot had been tested on it, testing begins again, and a
        ``LearningWarning`` says so.

        Parameters
        ----------
        ids
            Names of the applications.
        outcomes
            Their outcomes, in the labels of the history or the words of the configuration.

        Raises
        ------
        UnknownIdError
            If somebody is not known, or does not stand accepted; then nothing is recorded.
        """
        with self.ledger.writing(self.name) as writer:
            state = self._current(writer)
            names = read_ids(ids, state.shape)
            about = self._settings(writer).says.get("about", {})
            states = read_outcomes(outcomes, len(names), state.shape, about)
            lost = self._record_outcomes(writer, state, names, states)
            if lost:  # not later, or what raises where warnings are errors would be recorded
                warnings.warn(given_up_words(lost), LearningWarning, stacklevel=2)
        self._state = state

    def withdraw(self, ids: Any) -> None:
        """Record of accepted people that their outcome will never be known.

        Nothing is learned from them; in the tests of a certificate they count as bad. Where there
        are no certificates that can be taken back, by telling an outcome after all, and an outcome
        can be withdrawn: both are kept as corrections.
        """
        with self.ledger.writing(self.name) as writer:
            state = self._current(writer)
            names = read_ids(ids, state.shape)
            self._record_outcomes(writer, state, names, ["indeterminate"] * len(names))
        self._state = state

    def tell(
        self, parts: Iterable[tuple[Iterable[Any], Iterable[str]]]
    ) -> list[tuple[BegunAgain, ...]]:
        """Record parts of what a file tells, one after the other and all in one transaction.

        Parameters
        ----------
        parts
            Names of applications, all may be text, and what became of each: ``good``, ``bad`` or
            ``indeterminate``.

        Returns
        -------
        list of tuple of BegunAgain
            Where each part made testing begin again.
        """
        found = []
        with self.ledger.writing(self.name) as writer:
            state = self._current(writer)  # and none in memory until all is durable
            for ids, states in parts:
                before, names = as_deployed(state.classifier), [*map(str, ids)]
                self._record_outcomes(writer, state, names, [*map(str, states)])
                found.append(begun_again(before, as_deployed(state.classifier)))
        self._state = state
        return found

    def _record_outcomes(
        self, writer: Writer, state: State, names: list[str], states: list[str]
    ) -> tuple[BegunAgain, ...]:
        """Append what is new; return where corrections made testing begin again."""
        told = told_once(names, states)
        lost: tuple[BegunAgain, ...] = ()
        standing, ids = writer.standing(list(told)), state.shape.ids(told)
        listed = np.array([*told.values()], np.object_)
        for kind, rows in news(told, standing, for_good=are_final(state.classifier)):
            outcomes = OutcomeRows(standing.persons[rows], listed[rows].tolist())
            entry = writer.append(kind, {}, Facts(outcomes=outcomes), by=self.by)
            ours = rows[~standing.overridden[rows]]
            before = as_deployed(state.classifier)
            state.learn(entry, ids[ours], listed[ours].tolist())
            if kind == "correction":
                lost = begun_again(before, as_deployed(state.classifier))
            record_certificates(writer, state.classifier, self.by, why=kind)
        return lost
