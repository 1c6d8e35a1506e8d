"""Two ways to repeat recorded decisions: by the stored policies, and by learning again."""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.core.decisions import Decisions
from fairchance.errors import LearningWarning
from fairchance.frames import take
from fairchance.ledger.base import DecisionRows, Entry, Facts, PeopleRows
from fairchance.ledger.encoding import Shape
from fairchance.ledger.policies import EVIDENCE, PolicyFact, granted_with, policies_of
from fairchance.ledger.records import AnyRound, read_rounds
from fairchance.ledger.replay import (
    CLOSE,
    Allowed,
    State,
    erased_rows,
    first_difference,
    fold_of,
    lender_options,
)
from fairchance.ledger.sql import Reader
from fairchance.ledger.verification.repeat import (
    StoredPolicies,
    first_other_content,
    first_other_value,
    json_values,
)
from fairchance.methods.certified.classifier import CertifiedClassifier
from fairchance.methods.estimator import uses_of_groups
from fairchance.methods.storage import dumps
from fairchance.people.reasons import first_misfit

__all__ = ["ByLearning", "ByPolicies", "GroupTrial", "MismatchError", "Proof", "describe"]

Bools = NDArray[np.bool_]
_SAME_MODEL = 1e-9  # one stored model: only the order of sums may differ between machines
_DIFFERS = "differs from the record"
_BY_GROUP = "depends on groups, which may not decide"


class MismatchError(Exception):
    """Ends a verification; its text is the problem."""


@dataclass(frozen=True)
class GroupTrial:
    """Whether groups may decide, and how it was tried that they did not.

    Attributes
    ----------
    mode
        The program's ``group_mode``; None if it has no groups.
    n_decisions, n_rounds
        How many decisions were made again with other groups, of how many rounds: once with groups
        permuted among applicants, and once with each group replaced by another. None changed, or
        the verification would have failed. Both are 0 if the mode is ``"aware"``.
    uses
        If the mode is ``"aware"``, what lets the group of an applicant decide.
    """

    mode: str | None = None
    n_decisions: int = 0
    n_rounds: int = 0
    uses: tuple[str, ...] = ()


class Proof(ABC):
    """Goes over a program's entries in their order, and raises at the first mismatch."""

    n_decisions = 0
    n_not_repeated = 0
    stopped: str | None = None  # the entry at which learning again first met erased applicants
    groups = GroupTrial()

    @abstractmethod
    def step(self, entry: Entry) -> None:
        """Repeat the next entry."""

    @abstractmethod
    def end(self) -> None:
        """Check that no entry is missing at the end."""

    def _begin(self, settings: Entry, facts: Facts, allowed: Allowed) -> State:
        """Note through what groups may decide; return the unfitted classifier."""
        state, says = State.first(settings, facts, allowed), settings.says
        if says["has_groups"]:
            uses: tuple[str, ...] = ()
            if says["group_mode"] == "aware":
                uses = tuple(uses_of_groups(state.classifier))
                if getattr(state.classifier, "reads_cells", False):
                    uses += ("cells, which have a group",)
            self.groups = GroupTrial(says["group_mode"], uses=uses)
        return state

    def _try_groups(
        self,
        entry: Entry,
        exchanged: Iterable[PeopleRows],
        people: PeopleRows,
        difference: Callable[[PeopleRows], tuple[int, str] | None],
        compared: Bools | bool = True,
    ) -> None:
        """If groups may not decide, give every applicant another one and decide again.

        Call it once the decisions are known to follow from the record.
        """
        if entry.says["group_mode"] == "aware":
            return
        tried = np.zeros(len(people), np.bool_)
        for rows in exchanged:
            _refuse(entry, people, difference(rows), _BY_GROUP)
            tried |= np.array(rows.groups, np.object_) != np.array(people.groups, np.object_)
        n = int((tried & compared).sum())
        self.groups = replace(
            self.groups,
            n_decisions=self.groups.n_decisions + n,
            n_rounds=self.groups.n_rounds + (n > 0),
        )


class ByPolicies(Proof):
    """Repeats every batch from its stored policy, the applicants and the keyed randomness.

    Erased applicants are left out. In a round of Algorithm 1 a draw depends on all applicants of
    the batch, so after an erasure the draws of the others cannot be repeated. Their scores,
    thresholds and regions are, and the stored state of the draw is used for later rounds.
    """

    def __init__(self, reader: Reader, allowed: Allowed) -> None:
        self._reader, self._allowed = reader, allowed
        self._policies = StoredPolicies(allowed)
        self._shape: Shape | None = None
        self._rounds: tuple[AnyRound, ...] = ()
        self._values = GroupValues()

    def step(self, entry: Entry) -> None:
        """Repeat the next entry."""
        facts = self._reader.facts(entry)
        self._values.add(facts.people)
        if entry.kind == "program":
            self._shape = self._begin(entry, facts, self._allowed).shape
        elif entry.kind == "history":
            self._check_reference(entry, facts)
        elif entry.kind == "policy":
            self._policies.add(entry, facts)
        elif entry.kind == "batch":
            self._decide(entry, facts)
        elif entry.kind == "certificate" and entry.says["what"] == "granted":
            self._check_evidence(entry)

    def end(self) -> None:
        """Do nothing: a batch is complete with its entry."""

    def _decide(self, entry: Entry, facts: Facts) -> None:
        people, recorded, says = facts.people, facts.decisions, entry.says
        assert people is not None
        assert recorded is not None
        shape = self._shape
        assert shape is not None
        policy, replayer = self._policies[says["policy"]], self._policies.replayer
        erased = erased_rows(people)
        is_whole = not erased.any()
        self._rounds = read_rounds(entry)
        if erased.all():
            replayer.finish_round(policy, entry, is_whole=False)
            self.n_not_repeated += len(people)
            return
        rows = people if is_whole else with_placeholders(people, erased)
        X, groups, ids = shape.people(rows)
        by_lender = lender_options(recorded, says["ramp"], rows)
        # A person's further applications have the answer of the first, which may be erased.
        known = ~erased & (is_whole or people.person_keys is None)
        drawn = known & (recorded.exploit if replayer.draws_together and not is_whole else True)

        def difference(decided: Decisions) -> tuple[int, str] | None:
            fold, close = fold_of(replayer, ids), _close(decided)
            return first_difference(
                recorded, decided, fold=fold, rows=known, drawn=drawn, close=close
            )

        def by_other_groups(rows: PeopleRows) -> tuple[int, str] | None:
            return difference(replayer.twin().decide_by(policy, *shape.people(rows), **by_lender))

        decided = replayer.decide_by(policy, X, groups, ids, **by_lender)
        # A false record differs with any groups, so it must not be taken for a use of groups.
        _refuse(entry, rows, difference(decided), _DIFFERS)
        self._try_groups(entry, self._values.exchanged(rows), rows, by_other_groups, drawn)
        if decided.certified != says["certified"]:
            raise MismatchError(f"{describe(entry)}: certified {_DIFFERS}.")
        _check_reasons(entry, rows, shape, replayer, X, groups, recorded, known)
        problem = replayer.finish_round(policy, entry, is_whole=is_whole)
        if problem is not None:
            raise MismatchError(f"{describe(entry)}: {problem} {_DIFFERS}.")
        self.n_decisions += int(drawn.sum())
        self.n_not_repeated += int((~drawn).sum())

    def _check_evidence(self, entry: Entry) -> None:
        says = entry.says
        record = json_values(self._rounds[int(says["ladder"].split(".")[0])])
        stated, known = ({name: values[name] for name in EVIDENCE} for values in (says, record))
        name = first_other_value(stated, known)
        if name is not None:
            raise MismatchError(f"{describe(entry)}: its {name} differs from that of the round.")

    def _check_reference(self, entry: Entry, facts: Facts) -> None:
        people, decided, shape = facts.people, facts.decisions, self._shape
        if people is None or decided is None or shape is None or shape.reference is None:
            return
        if not erased_rows(people).any():
            X, _, _ = shape.people(people)
            again = shape.reference.of_same_kind(X, decided.accepted)
            if not shape.reference.is_like(again):
                raise MismatchError(f"{describe(entry)}: the reference applicant {_DIFFERS}.")


class ByLearning(Proof):
    """Repeats everything from settings, history, batches and outcomes, and learns policies again.

    Stored policies, certificates and the states that are kept are compared with the result.
    Learning stops at an erased applicant, and continues from the next stored state.
    """

    def __init__(self, reader: Reader, allowed: Allowed) -> None:
        self._reader, self._allowed = reader, allowed
        self._state: State | None = None
        self._first: State | None = None
        self._stored: dict[int | str, tuple[Entry, bytes | None]] = {}  # by number and by key
        self._granted: dict[str, dict[str, Any]] = {}  # reached, and not yet seen as an entry
        self._seen: set[str] = set()
        self._valid: dict[str, dict[str, Any]] = {}  # certificates granted and not dropped
        self._due: dict[str, list[str]] = {}  # certificates to be recorded as dropped, by key
        self._values = GroupValues()

    def step(self, entry: Entry) -> None:
        """Repeat the next entry."""
        facts = self._reader.facts(entry)
        self._values.add(facts.people)
        if entry.kind == "program":
            self._state = self._first = self._begin(entry, facts, self._allowed)
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
        """Check that every certificate that was reached or dropped is recorded."""
        self._check_dropped()
        if self._granted:
            key = next(iter(self._granted))
            raise MismatchError(f"the certificate {key!r} was reached and is not recorded.")

    def _check_dropped(self) -> None:
        for dropped in self._due.values():
            raise MismatchError(
                f"the certificate {dropped[0]!r} had to be dropped, and that is not recorded."
            )

    def _is_whole(self, facts: Facts) -> bool:
        if facts.people is not None and erased_rows(facts.people).any():
            return False
        tables = [rows for rows in (facts.outcomes, facts.overrides) if rows is not None]
        return all(None not in self._reader.names(rows.persons) for rows in tables)

    def _check_snapshot(self, entry: Entry, facts: Facts) -> None:
        if facts.payload is None:
            return  # an applicant in it was erased later, or it is needed no more
        if self._state is None and self._first is not None:
            shape = self._first.shape
            self._state = State.from_snapshot(entry, facts, shape, self._allowed)
            return
        if self._state is not None:
            name = first_other_content(dumps(self._state.classifier), facts.payload, CLOSE)
            if name is not None:
                raise MismatchError(f"{describe(entry)}: {name} {_DIFFERS}.")

    def _apply(self, state: State, entry: Entry, facts: Facts) -> None:
        self._check_dropped()
        before: Any = None
        if entry.kind == "batch":
            self.end()
            if entry.says["group_mode"] != "aware":
                before = copy.deepcopy(state.classifier)
        decided = state.apply(self._reader, entry)
        self._due = dict(_to_be_dropped(state.classifier, self._valid))
        if decided is None or facts.decisions is None or facts.people is None:
            return
        recorded, people = facts.decisions, facts.people
        fold = fold_of(state.classifier, decided.ids)
        _refuse(entry, people, first_difference(recorded, decided, fold=fold), _DIFFERS)
        if before is not None:
            self._check_groups(before, state.shape, entry, people, recorded)
        X, groups, _ = state.shape.people(people)
        known = np.ones(len(people), np.bool_)
        args = state.shape, state.classifier, X, groups, recorded, known
        _check_reasons(entry, people, *args)
        if "policy" in entry.says:
            self._check_policy(state, entry)
        granted = granted_with(state.classifier)
        self._granted = {key: says for key, says in granted.items() if key not in self._seen}
        self.n_decisions += len(decided)

    def _check_policy(self, state: State, entry: Entry) -> None:
        """Compare the learned policy and its parts with the stored ones."""
        *parts, learned = policies_of(state.classifier)
        pairs = [(part, self._stored.get(part.key)) for part in parts]
        for policy, stored in [*pairs, (learned, self._stored.get(entry.says["policy"]))]:
            if stored is None:
                raise MismatchError(f"{describe(entry)}: its policy {policy.key!r} is not stored.")
            name = _first_other_part(policy, *stored)
            if name is not None:
                raise MismatchError(f"{describe(stored[0])}: {name} {_DIFFERS}.")

    def _check_certificate(self, entry: Entry) -> None:
        self._seen.add(entry.key)
        granted, dropped = self._granted.pop(entry.key, None), self._due.pop(entry.key, [])
        if entry.says["what"] != "granted":
            if self._state is not None and entry.says["certificates"] != dropped:
                raise MismatchError(
                    f"{describe(entry)}: the certificates that had to be dropped are {dropped}."
                )
            for key in entry.says["certificates"]:
                self._valid.pop(key, None)
            return
        self._valid[entry.key] = entry.says
        if self._state is None:
            return
        if granted is None:
            raise MismatchError(f"{describe(entry)}: no round depends on it.")
        stated = {name: entry.says.get(name) for name in granted}
        name = first_other_value(granted, stated, CLOSE)
        if name is not None:
            raise MismatchError(f"{describe(entry)}: its {name} {_DIFFERS}.")

    def _check_groups(
        self, before: Any, shape: Shape, entry: Entry, people: PeopleRows, recorded: DecisionRows
    ) -> None:
        """Decide a batch with other groups, by the classifier as it was before the batch."""

        def by_other_groups(rows: PeopleRows) -> tuple[int, str] | None:
            X, groups, ids = shape.people(rows)
            twin: Any = copy.deepcopy(before)
            by_lender = lender_options(recorded, entry.says["ramp"], people)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LearningWarning)
                decided = twin.decide(
                    X, sensitive_features=groups, ids=ids, unlike_history=True, **by_lender
                )
            return first_difference(recorded, decided)

        self._try_groups(entry, self._values.exchanged(people), people, by_other_groups)


def _to_be_dropped(
    classifier: Any, valid: dict[str, dict[str, Any]]
) -> Iterable[tuple[str, list[str]]]:
    """Yield certificates from before an engine's last restart, with the key that drops them."""
    deployed = classifier.deployed_ if isinstance(classifier, CertifiedClassifier) else ()
    for z, rung in enumerate(deployed):
        ladders = {key: says["ladder"].split(".") for key, says in valid.items()}
        dropped = [
            key
            for key, (own, frozen, *_) in ladders.items()
            if int(own) == z and int(frozen) < rung.stage_began
        ]
        if rung.restarts and dropped:
            yield f"dropped {z}.{rung.restarts}", dropped


def _first_other_part(learned: PolicyFact, entry: Entry, payload: bytes | None) -> str | None:
    stated = {name: entry.says.get(name) for name in learned.header}
    name = first_other_value(learned.header, stated)
    if name is not None or learned.payload is None:
        return name
    if payload is None:
        return "its payload"
    return first_other_content(learned.payload(), payload, CLOSE)


def _close(decided: Decisions) -> float:
    return _SAME_MODEL if decided.score.dtype == np.float64 else CLOSE


def describe(entry: Entry) -> str:
    """Return how messages name an entry."""
    return f"entry {entry.number} ({entry.kind} {entry.key!r})"


def _refuse(entry: Entry, people: PeopleRows, at: tuple[int, str] | None, why: str) -> None:
    if at is not None:
        row, what = at
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
    known: Bools,
) -> None:
    if shape.reference is None or not hasattr(classifier, "scored_by"):
        return
    rows = np.flatnonzero(known)
    reasons = [None] * len(people) if people.reasons is None else people.reasons
    row = first_misfit(
        classifier,
        take(X, rows),
        recorded.accepted[rows],
        shape.reference,
        [reasons[at] for at in rows.tolist()],
        sensitive_features=None if groups is None else take(groups, rows),
    )
    if row is not None:
        _refuse(entry, people, (int(rows[row]), "reasons"), "differ from the record")


class GroupValues:
    """The group values of a program's applicants, in order of appearance."""

    def __init__(self) -> None:
        self._known: dict[str, None] = {}

    def add(self, people: PeopleRows | None) -> None:
        """Add the values of an entry's applicants who are not erased."""
        if people is not None and people.groups is not None:
            new = {*people.groups} - {None} - self._known.keys()
            self._known |= dict.fromkeys(sorted(map(str, new)))

    def exchanged(self, people: PeopleRows) -> Iterator[PeopleRows]:
        """Yield applicants with the group of the next one, and with the group after their own.

        The second changes every group, also if all applicants have the same.
        """
        if people.groups is None:
            return
        yield replace(people, groups=[*people.groups[1:], people.groups[0]])
        known = [*self._known]
        following = dict(zip(known, [*known[1:], *known[:1]], strict=True))
        if len(known) > 1:
            yield replace(people, groups=[following[str(value)] for value in people.groups])


def with_placeholders(people: PeopleRows, erased: Bools) -> PeopleRows:
    """Return applicants with a placeholder for each erased one, so that rows keep their places.

    A placeholder has the features and group of another applicant, and a name of its own.
    """
    model = int(np.flatnonzero(~erased)[0])
    names = {name for name in people.applications if name is not None}
    is_numeric = all(name.lstrip("-").isdigit() for name in names)
    numbers = range(2 * len(people) + 1)
    free = (str(number) if is_numeric else f"erased {number}" for number in numbers)
    new = (name for name in free if name not in names)

    def filled(column: Any) -> list[Any]:
        pairs = zip(column, erased, strict=True)
        return [column[model] if is_erased else value for value, is_erased in pairs]

    return PeopleRows(
        [next(new) if name is None else name for name in people.applications],
        filled(people.numbers),
        filled(people.texts),
        None if people.groups is None else filled(people.groups),
        people.reasons,
        None if people.person_keys is None else filled(people.person_keys),
        people.persons,
    )
