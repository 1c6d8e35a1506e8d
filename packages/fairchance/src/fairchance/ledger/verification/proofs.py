"""Two ways to repeat recorded decisions: by the stored policies, and by learning again."""

from __future__ import annotations

import copy
import json
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.core.decisions import Decisions, Round
from fairchance.core.versions import versions
from fairchance.errors import LearningWarning
from fairchance.ledger.base import DecisionRows, Entry, Facts, PeopleRows, to_json
from fairchance.ledger.encoding import Shape
from fairchance.ledger.policies import (
    EVIDENCE,
    granted_with,
    policy_content,
    read_policy,
    stores_policies,
)
from fairchance.ledger.records import AnyRound, read_rounds
from fairchance.ledger.replay import (
    CLOSE,
    Allowed,
    State,
    as_decisions,
    erased_rows,
    first_difference,
    lender_options,
    opens_rounds,
    recorded_parts,
    rows_of,
)
from fairchance.ledger.sql import LedgerReader
from fairchance.ledger.verification.compare import (
    first_other_content,
    first_other_value,
    json_values,
)
from fairchance.methods.certified.classifier import CertifiedClassifier
from fairchance.methods.estimator import uses_of_groups
from fairchance.methods.policy import Policy
from fairchance.methods.storage import dumps
from fairchance.people.reasons import first_misfit

__all__ = ["ByLearning", "ByPolicies", "GroupTrial", "MismatchError", "OpenRoundTrial"]
__all__ += ["OtherVersions", "Proof", "describe"]

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


@dataclass(frozen=True)
class OtherVersions:
    """Decisions that were not learned again, because other versions of packages learned them.

    Attributes
    ----------
    versions
        The recorded versions, by package.
    n_decisions
        The number of decisions, including later ones up to the next stored state.
    """

    versions: dict[str, str]
    n_decisions: int


@dataclass(frozen=True)
class OpenRoundTrial:
    """The round that is open: its number, and how many of its decisions were made again.

    Whether the record is complete can be checked once the round is closed.
    """

    round: int
    n_decisions: int


class Proof(ABC):
    """Goes over a program's entries in their order, and raises at the first mismatch."""

    n_decisions = 0
    n_not_repeated = 0
    stopped: str | None = None  # the entry at which learning again first met erased applicants
    skipped: tuple[OtherVersions, ...] = ()
    open_round: OpenRoundTrial | None = None
    groups = GroupTrial()
    _tried = 0  # the last entry whose decisions were made again with other groups

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
        difference: Callable[[PeopleRows], tuple[Any, str] | None],
    ) -> None:
        """If groups may not decide, give every applicant another one and decide again.

        Call it once the decisions are known to follow from the record, for an entry or its parts.
        """
        if entry.says["group_mode"] == "aware":
            return
        tried = np.zeros(len(people), np.bool_)
        for rows in exchanged:
            _refuse(entry, difference(rows), _BY_GROUP)
            tried |= np.array(rows.groups, np.object_) != np.array(people.groups, np.object_)
        n = int(tried.sum())
        self.groups = replace(
            self.groups,
            n_decisions=self.groups.n_decisions + n,
            n_rounds=self.groups.n_rounds + (n > 0 and entry.number != self._tried),
        )
        self._tried = entry.number if n else self._tried


class ByPolicies(Proof):
    """Repeats every decision from the stored policy of its round, the application and its coin.

    Erased applicants are left out. A draw of fixed size depends on all applicants of the batch, so
    after an erasure the draws of the others cannot be repeated; their scores, thresholds and
    regions are.
    """

    def __init__(self, reader: LedgerReader, allowed: Allowed) -> None:
        self._reader, self._allowed = reader, allowed
        self._policies: dict[int, Policy] = {}  # by round
        self._opened: Entry | None = None
        self._shape: Shape | None = None
        self._rounds: tuple[AnyRound, ...] = ()
        self._values = GroupValues()

    def step(self, entry: Entry) -> None:
        """Repeat the next entry."""
        facts = self._reader.facts(entry, people=entry.kind == "history")
        self._values.add(facts.people)
        if entry.kind == "program":
            self._shape = self._begin(entry, facts, self._allowed).shape
        elif entry.kind == "history":
            self._check_reference(entry, facts)
        elif entry.kind == "round":
            self._opened = entry
            self._add_policy(entry)
        elif entry.kind == "batch":
            self._check_batch(entry)
        elif entry.kind == "import":
            for people, decisions in self._parts(entry):
                self._repeat(entry, self._policies[entry.says["round"]], people, decisions)
        elif entry.kind == "certificate" and entry.says["what"] == "granted":
            self._check_evidence(entry)

    def _parts(self, entry: Entry) -> Iterator[tuple[PeopleRows, DecisionRows]]:
        """Yield the applicants of an entry in parts; all at once if a draw depends on all."""
        policy = self._policies[entry.says["round"]]
        parts = self._reader.parts(entry)
        if policy.draws_together:
            facts = self._reader.facts(entry)
            parts = iter(
                [(facts.people, facts.decisions)] if facts.people and facts.decisions else []
            )
        for people, decisions in parts:
            self._values.add(people)
            yield people, decisions

    def end(self) -> None:
        """Repeat the decisions of the round that is open."""
        opened = self._opened
        if opened is None:
            return
        before = self.n_decisions
        for people, decisions in self._parts(opened):
            self._repeat(opened, self._policies[opened.says["round"]], people, decisions)
        self.open_round = OpenRoundTrial(opened.says["round"], self.n_decisions - before)

    def _add_policy(self, entry: Entry) -> None:
        policy = read_policy(self._reader, entry, self._allowed)
        self._policies[policy.round] = policy
        _check_as_policy(entry, policy)

    def _check_batch(self, entry: Entry) -> None:
        says, opened = entry.says, self._opened
        if "opened" not in says:
            self._add_policy(entry)
        elif opened is None or opened.number != says["opened"]:
            raise MismatchError(f"{describe(entry)}: no round is open that it closes.")
        self._opened, policy = None, self._policies[says["round"]]
        _check_as_policy(entry, policy)
        self._rounds = read_rounds(entry)
        counts: Counter[str] = Counter()
        for people, decisions in self._parts(entry):
            self._repeat(entry, policy, people, decisions)
            counts.update(_counts(self._rounds, decisions))  # + would drop zeros
        for record, stated in zip(self._rounds, policy.stated(), strict=True):
            values = json_values(record)
            _refuse_record(entry, stated, {name: values[name] for name in stated})
        stated = {name: sum(getattr(one, name) for one in self._rounds) for name in counts}
        _refuse_record(entry, dict(counts), stated)

    def _repeat(
        self, entry: Entry, policy: Policy, people: PeopleRows, recorded: DecisionRows | None
    ) -> None:
        """Decide again on applicants, and with other groups."""
        shape = self._shape
        assert shape is not None
        known = np.flatnonzero(~erased_rows(people))
        n = len(people)
        if not known.size:
            self.n_not_repeated += n
            return
        is_drawn = known.size == n or not policy.draws_together
        if not is_drawn:
            policy = policy.without_draw()
        people, decisions = rows_of(people, known), rows_of(recorded, known)

        def difference(rows: PeopleRows) -> tuple[Any, str] | None:
            for part in recorded_parts(policy, shape, rows, decisions):
                decided = policy.decide_batch(part.applicants)
                drawn = _without_draw(part, policy.ramp) | is_drawn
                at = first_difference(part, decided, drawn=drawn, close=_close(decided))
                if at is not None:
                    return part.ids[at[0]], at[1]
            return None

        # A false record differs with any groups, so it must not be taken for a use of groups.
        _refuse(entry, difference(people), _DIFFERS)
        self._try_groups(entry, self._values.exchanged(people), people, difference)
        _check_reasons(entry, people, shape, policy, decisions)
        n_again = known.size if is_drawn else int(_without_draw(decisions, policy.ramp).sum())
        self.n_decisions += n_again
        self.n_not_repeated += n - n_again

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


def _without_draw(recorded: DecisionRows | Decisions, ramp: float) -> Bools:
    """Return which decisions depend on no draw; the lender's may be in the explore region."""
    if recorded.incumbent is None or ramp == 1:
        return recorded.exploit
    return recorded.exploit & ~recorded.incumbent


def _check_as_policy(entry: Entry, policy: Policy) -> None:
    """Check that an entry says of its round what the policy of the round says."""
    for name in ("round", "ramp", "status", "certified"):
        if getattr(policy, name) != entry.says[name]:
            raise MismatchError(f"{describe(entry)}: {name} {_DIFFERS}.")


def _counts(records: Sequence[AnyRound], decided: DecisionRows) -> Counter[str]:
    """Return how many of some applicants there are, by the names that records give the numbers."""
    accepted, exploit = decided.accepted, decided.exploit
    kinds = {"n_accepted": accepted}
    if isinstance(records[0], Round):
        kinds = {"n_exploited": accepted & exploit, "n_explored": accepted & ~exploit}
    counts = {name: int(np.count_nonzero(rows)) for name, rows in kinds.items()}
    return Counter({"n_people": accepted.size} | counts)


def _without_notes(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record without what no decision depends on."""
    return {name: value for name, value in record.items() if name != "notes"}


def _refuse_record(entry: Entry, made: dict[str, Any], stated: dict[str, Any]) -> None:
    name = first_other_value(json.loads(to_json(made)), json.loads(to_json(stated)), CLOSE)
    if name is not None:
        raise MismatchError(f"{describe(entry)}: {name} of its round {_DIFFERS}.")


class ByLearning(Proof):
    """Repeats everything from settings, history, batches and outcomes, and learns policies again.

    Stored policies, certificates and the states that are kept are compared with the result.
    Learning stops at an erased applicant and at an entry that other versions of packages wrote,
    since these may learn something else. It continues from the next stored state.
    """

    def __init__(self, reader: LedgerReader, allowed: Allowed) -> None:
        self._reader, self._allowed = reader, allowed
        self._state: State | None = None
        self._first: State | None = None
        self._granted: dict[str, dict[str, Any]] = {}  # reached, and not yet seen as an entry
        self._seen: set[str] = set()
        self._valid: dict[str, dict[str, Any]] = {}  # certificates granted and not dropped
        self._due: dict[str, list[str]] = {}  # certificates to be recorded as dropped, by key
        self._values = GroupValues()
        self._versions = versions()
        self._made_by: dict[str, str] | None = None  # by other versions, and so not learned again

    def step(self, entry: Entry) -> None:
        """Repeat the next entry."""
        facts = self._reader.facts(entry, people=not self._opens_rounds)
        self._values.add(facts.people)
        if entry.kind == "program":
            self._state = self._first = self._begin(entry, facts, self._allowed)
        elif entry.kind == "snapshot":
            self._check_snapshot(entry, facts)
        elif entry.kind == "certificate":
            self._check_certificate(entry)
        else:
            self._learn(entry, facts)

    def _learn(self, entry: Entry, facts: Facts) -> None:
        """Repeat an entry unless applicants in it are erased, or other versions learned from it."""
        made_by = entry.says.get("versions", self._versions)
        if self._state is not None and made_by != self._versions:
            self._state, self._made_by = None, made_by
        elif self._state is not None and not self._is_whole(entry, facts):
            self._state, self._made_by = None, None
            self.stopped = self.stopped or describe(entry)
        if self._state is not None:
            self._apply(self._state, entry, facts)
        elif entry.kind == "batch":
            self._skip(entry.says["rows"]["n"])

    def _skip(self, n: int) -> None:
        """Count decisions that are not learned again."""
        if self._made_by is None:
            self.n_not_repeated += n
            return
        others = [one for one in self.skipped if one.versions != self._made_by]
        n += sum(one.n_decisions for one in self.skipped if one.versions == self._made_by)
        self.skipped = (*others, OtherVersions(self._made_by, n))

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

    @property
    def _opens_rounds(self) -> bool:
        return self._first is not None and opens_rounds(self._first.classifier)

    def _is_whole(self, entry: Entry, facts: Facts) -> bool:
        people = entry.people_range
        if len(people) and self._reader.erased_between(people.start, people.stop):
            return False
        tables = [rows for rows in (facts.outcomes, facts.overrides) if rows is not None]
        return all(None not in self._reader.names(rows.persons) for rows in tables)

    def _check_snapshot(self, entry: Entry, facts: Facts) -> None:
        if facts.payload is None:
            return  # an applicant in it was erased later, or it is needed no more
        if self._state is None and self._first is not None:
            shape = self._first.shape
            self._state = State.from_snapshot(self._reader, entry, facts, shape, self._allowed)
            return
        if self._state is not None:
            again = dumps(self._state.classifier, features=False)
            name = first_other_content(again, facts.payload, CLOSE)
            if name is not None:
                raise MismatchError(f"{describe(entry)}: {name} {_DIFFERS}.")

    def _apply(self, state: State, entry: Entry, facts: Facts) -> None:
        self._check_dropped()
        before: Any = None
        if entry.kind == "batch":
            self.end()
            if entry.says["group_mode"] != "aware" and not stores_policies(state.classifier):
                before = state.copy()

        def compare(recorded: Decisions, decided: Decisions) -> None:
            at = first_difference(recorded, decided)
            _refuse(entry, at and (decided.ids[at[0]], at[1]), _DIFFERS)
            self.n_decisions += len(decided)

        state.apply(self._reader, entry, again=True, compare=compare)
        self._due = dict(_to_be_dropped(state.classifier, self._valid))
        if "policy" in entry.says:
            self._check_policy(state, entry)
        if entry.kind != "batch":
            return
        if before is not None and facts.people is not None and facts.decisions is not None:
            self._check_groups(before, state.shape, entry, facts.people, facts.decisions)
        for people, decisions in self._reader.parts(entry):
            _check_reasons(entry, people, state.shape, state.classifier, decisions)
        made = [one for one in state.classifier.rounds_ if one.round == entry.says["round"]]
        # As they are stored, since a classifier of another package has records of its own.
        for record, stated in zip(made, entry.says["rounds"], strict=True):
            _refuse_record(entry, _without_notes(json_values(record)), _without_notes(stated))
        granted = granted_with(state.classifier)
        self._granted = {key: says for key, says in granted.items() if key not in self._seen}

    def _check_policy(self, state: State, entry: Entry) -> None:
        """Compare the policy that was learned with the stored one."""
        stored = policy_content(self._reader, entry)
        is_open = entry.kind == "round"
        learned = state.classifier.open_policy_ if is_open else state.classifier.policy_
        learned = replace(learned, expires=entry.says.get("expires"))
        name = first_other_content(dumps(learned), stored, CLOSE)
        if name is not None:
            raise MismatchError(f"{describe(entry)}: {name} {_DIFFERS}.")

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

        def by_other_groups(rows: PeopleRows) -> tuple[Any, str] | None:
            X, groups, ids = shape.people(rows)
            twin: Any = copy.deepcopy(before)
            by_lender = lender_options(recorded, float(entry.says["ramp"]), rows)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LearningWarning)
                decided = twin.decide(
                    X, sensitive_features=groups, ids=ids, unlike_history=True, **by_lender
                )
            at = first_difference(as_decisions(recorded, ids), decided)
            return at and (ids[at[0]], at[1])

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


def _close(decided: Decisions) -> float:
    return _SAME_MODEL if decided.score.dtype == np.float64 else CLOSE


def describe(entry: Entry) -> str:
    """Return how messages name an entry."""
    return f"entry {entry.number} ({entry.kind} {entry.key!r})"


def _refuse(entry: Entry, at: tuple[Any, str] | None, why: str) -> None:
    if at is not None:
        name, what = at
        raise MismatchError(f"{describe(entry)}: the {what} of application '{name}' {why}.")


def _check_reasons(
    entry: Entry, people: PeopleRows, shape: Shape, scoring: Any, recorded: DecisionRows
) -> None:
    """Check the reasons of rejected applicants against a policy or a classifier that scores."""
    if shape.reference is None or not hasattr(scoring, "scored_by"):
        return
    X, groups, _ = shape.people(people)
    row = first_misfit(
        scoring,
        X,
        recorded.accepted,
        shape.reference,
        [None] * len(people) if people.reasons is None else people.reasons,
        sensitive_features=groups,
    )
    if row is not None:
        _refuse(entry, (people.applications[row], "reasons"), "differ from the record")


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
