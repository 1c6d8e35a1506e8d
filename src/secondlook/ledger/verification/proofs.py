"""Two ways to make recorded decisions again: by the stored policies, and by learning anew."""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.core.decisions import Decisions
from secondlook.errors import LearningWarning
from secondlook.frames import take
from secondlook.ledger.base import DecisionRows, Entry, Facts, PeopleRows, Reader
from secondlook.ledger.encoding import Shape
from secondlook.ledger.policies import EVIDENCE, PolicyFact, granted_with, policies_of
from secondlook.ledger.replay import (
    CLOSE,
    Allowed,
    State,
    erased_rows,
    first_difference,
    fold_of,
)
from secondlook.ledger.verification.repeat import (
    StoredPolicies,
    first_other_content,
    first_other_value,
)
from secondlook.methods.certified.classifier import CertifiedClassifier
from secondlook.methods.storage import dumps
from secondlook.people.reasons import first_misfit

__all__ = ["ByLearning", "ByPolicies", "MismatchError", "Proof", "describe"]

Bools = NDArray[np.bool_]
_SAME_MODEL = 1e-9  # a stored model says the same, but for the order in which machines sum


class MismatchError(Exception):
    """Ends a verification; its text is the problem."""


class Proof(ABC):
    """Goes over a program's entries in their order, and raises where something does not fit."""

    n_decisions = 0
    n_not_repeated = 0
    stopped: str | None = None  # the first entry at which learning again met erased people

    @abstractmethod
    def step(self, entry: Entry) -> None:
        """Make the next entry again."""

    @abstractmethod
    def end(self) -> None:
        """Check that nothing is left over."""


class ByPolicies(Proof):
    """Every batch again from its stored policy, the people as they applied, and keyed randomness.

    Whoever was erased is left out. In a round of Algorithm 1 one person's draw depends on who else
    is there, so where people of a batch are gone the draws of the others cannot be repeated: their
    scores, thresholds and regions still are, and what the draw left for others is taken as stored.
    """

    def __init__(self, reader: Reader, allowed: Allowed) -> None:
        self._reader, self._policies = reader, StoredPolicies(allowed)
        self._shape: Shape | None = None
        self._rounds: list[dict[str, Any]] = []
        self._values = GroupValues()

    def step(self, entry: Entry) -> None:
        """Make the next entry again."""
        facts = self._reader.facts(entry)
        self._values.add(facts.people)
        if entry.kind == "program":
            self._shape = Shape.read(entry.says)
        elif entry.kind == "history":
            self._check_reference(entry, facts)
        elif entry.kind == "policy":
            self._policies.add(entry, facts)
        elif entry.kind == "batch":
            self._decide(entry, facts)
        elif entry.kind == "certificate" and entry.says["what"] == "granted":
            self._check_evidence(entry)

    def end(self) -> None:
        """Nothing can be left over: a batch is whole when its entry is."""

    def _decide(self, entry: Entry, facts: Facts) -> None:
        people, recorded, says = facts.people, facts.decisions, entry.says
        assert people is not None
        assert recorded is not None
        assert self._shape is not None
        policy, again = self._policies[says["policy"]], self._policies.again
        gone = erased_rows(people)
        whole = not gone.any()
        self._rounds = says["rounds"]
        if gone.all():
            again.go_on(policy, says, whole=False)
            self.n_not_repeated += len(people)
            return
        rows = people if whole else with_stand_ins(people, gone)
        X, groups, ids = self._shape.people(rows)
        there = ~gone
        drawn = there & (recorded.exploit if again.draws_together and not whole else True)

        def other(decided: Decisions) -> tuple[int, str] | None:
            fold, close = fold_of(again, ids), _close(decided)
            return first_difference(
                recorded, decided, fold=fold, rows=there, drawn=drawn, close=close
            )

        self._check_groups(entry, rows, policy, other)
        decided = again.decide_by(policy, X, groups, ids)
        _refuse(entry, rows, other(decided), "comes out otherwise than recorded")
        if decided.certified != says["certified"]:
            raise MismatchError(f"{describe(entry)}: its policy is not certified as it says.")
        _check_reasons(entry, rows, self._shape, again, X, groups, recorded, there)
        wrong = again.go_on(policy, says, whole=whole)
        if wrong is not None:
            raise MismatchError(f"{describe(entry)}: {wrong} comes out otherwise than recorded.")
        self.n_decisions += int(drawn.sum())
        self.n_not_repeated += int((~drawn).sum())

    def _check_evidence(self, entry: Entry) -> None:
        says = entry.says
        record = self._rounds[int(says["ladder"].split(".")[0])]
        told, known = ({name: one[name] for name in EVIDENCE} for one in (says, record))
        other = first_other_value(told, known)
        if other is not None:
            raise MismatchError(f"{describe(entry)}: its {other} is not that of the round.")

    def _check_groups(self, entry: Entry, people: PeopleRows, policy: Any, other: Any) -> None:
        """Where groups may not decide, give everybody another one and decide again."""
        if entry.says["group_mode"] == "aware":
            return
        assert self._shape is not None
        for rows in self._values.exchanged(people):
            decided = self._policies.again.twin().decide_by(policy, *self._shape.people(rows))
            _refuse(entry, people, other(decided), "depends on groups, which may not decide")

    def _check_reference(self, entry: Entry, facts: Facts) -> None:
        people, decided, shape = facts.people, facts.decisions, self._shape
        if people is None or decided is None or shape is None or shape.reference is None:
            return
        if not erased_rows(people).any():
            X, _, _ = shape.people(people)
            again = shape.reference.of_same_kind(X, decided.accepted)
            if not shape.reference.is_like(again):
                raise MismatchError(f"{describe(entry)}: the reference applicant is another.")


class ByLearning(Proof):
    """Everything again from settings, history, batches and outcomes: policies are learned anew.

    Stored policies, certificates and states are compared with what comes out. Where people were
    erased that stops, and goes on from the next stored state.
    """

    def __init__(self, reader: Reader, allowed: Allowed) -> None:
        self._reader, self._allowed = reader, allowed
        self._state: State | None = None
        self._first: State | None = None
        self._stored: dict[int | str, tuple[Entry, bytes | None]] = {}  # by number and by key
        self._granted: dict[str, dict[str, Any]] = {}
        self._seen: set[str] = set()
        self._standing: dict[str, dict[str, Any]] = {}  # certificates granted and not dropped
        self._due: dict[str, list[str]] = {}  # what must be recorded as dropped, by key
        self._values = GroupValues()

    def step(self, entry: Entry) -> None:
        """Make the next entry again."""
        facts = self._reader.facts(entry)
        self._values.add(facts.people)
        if entry.kind == "program":
            self._state = self._first = State.first(entry, facts, self._allowed)
        elif entry.kind == "snapshot":
            self._check_snapshot(entry, facts)
        elif entry.kind == "policy":
            self._stored[entry.number] = self._stored[entry.key] = entry, facts.payload
        elif entry.kind == "certificate":
            self._check_certificate(entry)
        elif self._state is not None and self._is_whole(facts):
            self._apply(self._state, entry, facts)
        else:
            self._state, self.stopped = None, self.stopped or describe(entry)
            if entry.kind == "batch" and facts.people is not None:
                self.n_not_repeated += len(facts.people)

    def end(self) -> None:
        """Check that no certificate is missing, and none stands that had to be dropped."""
        self._check_dropped()
        if self._granted:
            key = next(iter(self._granted))
            raise MismatchError(f"the certificate {key!r} was reached and is not recorded.")

    def _check_dropped(self) -> None:
        for lost in self._due.values():
            raise MismatchError(
                f"the certificate {lost[0]!r} had to be dropped, and that is not recorded."
            )

    def _is_whole(self, facts: Facts) -> bool:
        if facts.people is not None and erased_rows(facts.people).any():
            return False
        persons = [one.persons for one in (facts.outcomes, facts.overrides) if one is not None]
        return all(None not in self._reader.names(one) for one in persons)

    def _check_snapshot(self, entry: Entry, facts: Facts) -> None:
        if facts.payload is None:
            return  # people in it were erased later
        if self._state is None and self._first is not None:
            shape = self._first.shape
            self._state = State.from_snapshot(entry, facts, shape, self._allowed)
            return
        if self._state is not None:
            other = first_other_content(dumps(self._state.classifier), facts.payload, CLOSE)
            if other is not None:
                raise MismatchError(f"{describe(entry)}: {other} comes out otherwise than stored.")

    def _apply(self, state: State, entry: Entry, facts: Facts) -> None:
        self._check_dropped()
        if entry.kind == "batch":
            self.end()
            self._check_groups(state, entry, facts)
        decided = state.apply(self._reader, entry)
        self._due = dict(_to_be_dropped(state.classifier, self._standing))
        if decided is None or facts.decisions is None or facts.people is None:
            return
        recorded, people = facts.decisions, facts.people
        other = first_difference(recorded, decided, fold=fold_of(state.classifier, decided.ids))
        _refuse(entry, people, other, "comes out otherwise than recorded")
        X, groups, _ = state.shape.people(people)
        everybody = np.ones(len(people), np.bool_)
        args = state.shape, state.classifier, X, groups, recorded, everybody
        _check_reasons(entry, people, *args)
        if "policy" in entry.says:
            self._check_policy(state, entry)
        granted = granted_with(state.classifier)
        self._granted = {key: one for key, one in granted.items() if key not in self._seen}
        self.n_decisions += len(decided)

    def _check_policy(self, state: State, entry: Entry) -> None:
        """Compare what was learned with what is stored, the policy and what it is made of."""
        *parts, learned = policies_of(state.classifier)
        pairs = [(one, self._stored.get(one.key)) for one in parts]
        for one, kept in [*pairs, (learned, self._stored.get(entry.says["policy"]))]:
            if kept is None:
                raise MismatchError(f"{describe(entry)}: its policy {one.key!r} is not stored.")
            other = _other_policy(one, *kept)
            if other is not None:
                raise MismatchError(
                    f"{describe(kept[0])}: {other} comes out otherwise than stored."
                )

    def _check_certificate(self, entry: Entry) -> None:
        self._seen.add(entry.key)
        granted, lost = self._granted.pop(entry.key, None), self._due.pop(entry.key, [])
        if entry.says["what"] != "granted":
            if self._state is not None and entry.says["certificates"] != lost:
                raise MismatchError(f"{describe(entry)}: what had to be dropped is {lost}.")
            for key in entry.says["certificates"]:
                self._standing.pop(key, None)
            return
        self._standing[entry.key] = entry.says
        if self._state is None:
            return
        if granted is None:
            raise MismatchError(f"{describe(entry)}: the round does not rest on it.")
        other = first_other_value(granted, {name: entry.says.get(name) for name in granted}, CLOSE)
        if other is not None:
            raise MismatchError(f"{describe(entry)}: its {other} comes out otherwise.")

    def _check_groups(self, state: State, entry: Entry, facts: Facts) -> None:
        """Where groups may not decide, give everybody another one and decide again."""
        people = facts.people
        if people is None or facts.decisions is None or entry.says["group_mode"] == "aware":
            return
        for rows in self._values.exchanged(people):
            X, groups, ids = state.shape.people(rows)
            twin: Any = copy.deepcopy(state.classifier)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LearningWarning)
                decided = twin.decide(X, sensitive_features=groups, ids=ids)
            other = first_difference(facts.decisions, decided)
            _refuse(entry, people, other, "depends on groups, which may not decide")


def _to_be_dropped(
    classifier: Any, standing: dict[str, dict[str, Any]]
) -> Iterable[tuple[str, list[str]]]:
    """Yield certificates from before an engine last began anew, by the key of their end."""
    deployed = classifier.deployed_ if isinstance(classifier, CertifiedClassifier) else ()
    for z, rung in enumerate(deployed):
        ladders = {key: one["ladder"].split(".") for key, one in standing.items()}
        lost = [
            key
            for key, (own, frozen, *_) in ladders.items()
            if int(own) == z and int(frozen) < rung.stage_began
        ]
        if rung.restarts and lost:
            yield f"dropped {z}.{rung.restarts}", lost


def _other_policy(learned: PolicyFact, entry: Entry, payload: bytes | None) -> str | None:
    other = first_other_value(
        learned.header, {name: entry.says.get(name) for name in learned.header}
    )
    if other is not None or learned.payload is None:
        return other
    if payload is None:
        return "what it holds"
    return first_other_content(learned.payload(), payload, CLOSE)


def _close(decided: Decisions) -> float:
    return _SAME_MODEL if decided.score.dtype == np.float64 else CLOSE


def describe(entry: Entry) -> str:
    """Return what messages call an entry."""
    return f"entry {entry.number} ({entry.kind} {entry.key!r})"


def _refuse(entry: Entry, people: PeopleRows, other: tuple[int, str] | None, why: str) -> None:
    if other is not None:
        row, what = other
        raise MismatchError(
            f"{describe(entry)}: the {what} of application {people.applications[row]!r} {why}."
        )


def _check_reasons(
    entry: Entry,
    people: PeopleRows,
    shape: Shape,
    classifier: Any,
    X: Any,
    groups: Any,
    recorded: DecisionRows,
    there: Bools,
) -> None:
    if shape.reference is None or not hasattr(classifier, "scored_by"):
        return
    rows = np.flatnonzero(there)
    told = [None] * len(people) if people.reasons is None else people.reasons
    row = first_misfit(
        classifier,
        take(X, rows),
        recorded.accepted[rows],
        shape.reference,
        [told[at] for at in rows.tolist()],
        sensitive_features=None if groups is None else take(groups, rows),
    )
    if row is not None:
        other = int(rows[row]), "reasons"
        _refuse(entry, people, other, "come out otherwise than recorded")


class GroupValues:
    """The group values of a program's people, in the order in which they came."""

    def __init__(self) -> None:
        self._known: dict[str, None] = {}

    def add(self, people: PeopleRows | None) -> None:
        """Take in those of an entry's people, but for the erased."""
        if people is not None and people.groups is not None:
            new = {*people.groups} - {None} - self._known.keys()
            self._known |= dict.fromkeys(sorted(map(str, new)))

    def exchanged(self, people: PeopleRows) -> Iterator[PeopleRows]:
        """Yield people with the next one's group, and with the group that follows their own.

        The second changes everybody's, also where all have the same.
        """
        if people.groups is None:
            return
        yield replace(people, groups=[*people.groups[1:], people.groups[0]])
        known = [*self._known]
        following = dict(zip(known, [*known[1:], *known[:1]], strict=True))
        if len(known) > 1:
            yield replace(people, groups=[following[str(one)] for one in people.groups])


def with_stand_ins(people: PeopleRows, gone: NDArray[np.bool_]) -> PeopleRows:
    """Return people with others in the place of the erased, so that all rows stay where they are.

    The others' features and groups are those of somebody who is there, their names new.
    """
    someone = int(np.flatnonzero(~gone)[0])
    names = {one for one in people.applications if one is not None}
    numeric = all(one.lstrip("-").isdigit() for one in names)
    free = (str(at) if numeric else f"erased {at}" for at in range(2 * len(people) + 1))
    new = (one for one in free if one not in names)

    def filled(column: Any) -> list[Any]:
        return [column[someone] if lost else one for one, lost in zip(column, gone, strict=True)]

    return PeopleRows(
        [next(new) if one is None else one for one in people.applications],
        filled(people.numbers),
        filled(people.texts),
        None if people.groups is None else filled(people.groups),
        people.reasons,
    )
