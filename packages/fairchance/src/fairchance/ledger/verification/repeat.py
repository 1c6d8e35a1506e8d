"""Decide batches again by their stored policies, and compare stored content with it."""

from __future__ import annotations

import copy
import io
import json
import math
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from fairchance.core.decisions import Decisions, Note, Round
from fairchance.core.sizes import unzipped
from fairchance.errors import InputError
from fairchance.ledger.base import Entry, Facts, to_json
from fairchance.ledger.policies import START
from fairchance.ledger.records import read_rounds
from fairchance.ledger.replay import Allowed
from fairchance.methods.algorithm1.classifier import PartialFeedbackClassifier
from fairchance.methods.algorithm1.learning import Learned
from fairchance.methods.algorithm1.policy_log import LoggedPolicy
from fairchance.methods.certified.classifier import CertifiedClassifier
from fairchance.methods.certified.engine import ChosenPolicy
from fairchance.methods.certified.ladder import Ladder
from fairchance.methods.storage import loads
from fairchance.people.store import PeopleStore

__all__ = ["Algorithm1Replayer", "CertifiedReplayer", "StoredPolicies"]
__all__ += ["first_other_content", "first_other_value", "json_values"]

_LEFT_OUT = ("notes",)  # what no decision depends on
_REFERENCES = {"ref", "skops", "array", "frame"}  # keys of values that refer to other content


class Algorithm1Replayer(PartialFeedbackClassifier):
    """Algorithm 1 by given policies, round after round; nothing is learned or remembered."""

    draws_together = True  # a draw depends on all applicants of the batch

    def begin(self) -> None:
        """Start before round 1."""
        self._people, self._rounds, self._carried = PeopleStore(), [], 0.0

    def decide_by(self, policy: Any, X: Any, groups: Any, ids: Any, **by_lender: Any) -> Decisions:
        """Decide a batch as the next round; nothing of it is kept until ``finish_round``."""
        self._given: Learned = policy
        return self.decide(X, sensitive_features=groups, ids=ids, unlike_history=True, **by_lender)

    def finish_round(self, policy: Learned, batch: Entry, *, is_whole: bool) -> str | None:
        """Log the round as its batch states it; return what differs from the last ``decide_by``.

        ``is_whole`` is False if applicants were erased, so that there is nothing to compare with.
        """
        stored, record = batch.says["logged"], read_rounds(batch)[0]
        assert isinstance(record, Round)
        factor, left, others = (
            np.array([float(value) for value in stored[name]])
            for name in ("group_factor", "left", "others")
        )
        position = self._log.add_likelihood(policy.likelihood)
        logged = LoggedPolicy(
            position,
            policy.thresholds,
            self._strategy,
            factor,
            left,
            others,
            record.n_people,
            follows=policy.follows,
            ramp=record.ramp,
        )
        problem = self._difference(logged, record) if is_whole else None
        self._log.n_final = stored["final"]
        self._log.append(logged, merge=self._rule.needs == "acceptance")
        self._rounds.append(record)
        self._carried = record.carried
        return problem

    def _difference(self, logged: LoggedPolicy, record: Round) -> str | None:
        drawn, made = self._drawn
        used = logged.left > 0  # without a draw the sizes of the others are arbitrary
        same = (
            np.allclose(drawn.left, logged.left, rtol=1e-9)
            and np.allclose(drawn.group_factor, logged.group_factor, rtol=1e-9)
            and np.allclose(drawn.others[used], logged.others[used], rtol=1e-9)
        )
        if not same:
            return "the logged draw"
        name = first_other_value(json_values(made), json_values(record), leave_out=_LEFT_OUT)
        return None if name is None else f"{name} of its round"

    def twin(self) -> Algorithm1Replayer:
        """Return an independent copy at the same round."""
        other = copy.copy(self)
        other._log = copy.copy(self._log)
        other._log.likelihoods = [*self._log.likelihoods]
        other._log.policies = [*self._log.policies]
        return other

    def _classifier_of_round(self, t: int) -> Learned:  # noqa: ARG002
        return self._given

    def _record_round(
        self, batch: Any, accepted: Any, explored: Any, f: Any, policy: Any, record: Any
    ) -> None:
        del batch, accepted, explored
        self._deployed, self._drawn = f, (policy, record)

    def _notes(self, f: Any, batch: Any, exploit: Any) -> tuple[Note, ...]:  # noqa: ARG002
        return ()

    def _counted(self, batch: Any, decided: Decisions) -> Decisions:  # noqa: ARG002
        return decided


class CertifiedReplayer(CertifiedClassifier):
    """The certified method by given choices."""

    draws_together = False

    def begin(self) -> None:
        """Start before round 1."""
        n_engines = self._intake.n_groups if self.certify == "per_group" else 1
        self._engines: Any = [None] * n_engines
        self._rounds: Any = []

    def decide_by(self, policy: Any, X: Any, groups: Any, ids: Any, **by_lender: Any) -> Decisions:
        """Decide a batch as the next round; nothing of it is kept until ``finish_round``."""
        ramp, incumbent = by_lender.pop("ramp", 1.0), by_lender.get("incumbent")
        deciding = self._policy(self._n_rounds + 1, policy, incumbent is not None, ramp)
        self._choices = list(deciding.choices)
        batch = deciding.read(X, sensitive_features=groups, ids=ids, **by_lender)
        decided = deciding.decide_batch(batch)
        rows = [deciding.rows_of(batch.group, z) for z in range(len(policy))]
        self._made = [
            {
                "round": decided.round,
                "status": choice.status,
                "n_people": members.size,
                "n_accepted": int(decided.accepted[members].sum()),
                "share": choice.sure_share,
            }
            for choice, members in zip(deciding.choices, rows, strict=True)
        ]
        return decided

    def finish_round(self, policy: Any, batch: Entry, *, is_whole: bool) -> str | None:
        """Add the round as its batch states it; return what differs from the last ``decide_by``."""
        del policy
        rounds = read_rounds(batch)
        self._rounds += rounds
        if not is_whole:
            return None
        for made, stated in zip(self._made, rounds, strict=True):
            name = first_other_value(made, {key: getattr(stated, key) for key in made})
            if name is not None:
                return f"{name} of its round"
        return None

    def twin(self) -> CertifiedReplayer:
        """Return an independent copy at the same round."""
        other = copy.copy(self)
        other._rounds = [*self._rounds]
        return other


class StoredPolicies:
    """The policies of a program, added as their entries are read."""

    def __init__(self, allowed: Allowed) -> None:
        self._allowed = allowed
        self._made: dict[int, Any] = {}
        self._ladders: dict[str, Ladder] = {}
        self.replayer: Any = None

    def add(self, entry: Entry, facts: Facts) -> None:
        """Add an entry of kind policy."""
        says = entry.says
        match says["what"]:
            case "start":
                self._begin(self._loaded(entry, facts, object))
            case "past":
                past, n_groups = self.replayer._past, self.replayer._intake.n_groups
                follows = Learned.following(past.likelihood, n_groups, says["follows"], past.cut)
                self._made[entry.number] = replace(follows, take_up=float(says["take_up"]))
            case "learned":
                self._made[entry.number] = self._loaded(entry, facts, Learned)
            case "ladder":
                self._ladders[says["ladder"]] = self._loaded(entry, facts, Ladder)
            case "rungs":
                self._made[entry.number] = [
                    ChosenPolicy(
                        self._ladders[made["ladder"]],
                        made["rung"],
                        made["certified"],
                        np.nan,
                        scale=made["scale"],
                    )
                    for made in says["choices"]
                ]
            case other:
                raise InputError(f"this version knows no policy of the kind {other!r}.")

    def __getitem__(self, number: int) -> Any:
        if number not in self._made:
            raise InputError(f"entry {number} holds no policy.")
        return self._made[number]

    def _begin(self, bare: Any) -> None:
        kinds: dict[type, type] = {
            PartialFeedbackClassifier: Algorithm1Replayer,
            CertifiedClassifier: CertifiedReplayer,
        }
        if type(bare) not in kinds:
            raise InputError(f"the classifier in the entry {START!r} stores no policies.")
        kind: Any = kinds[type(bare)]
        self.replayer = kind.__new__(kind)
        self.replayer.__dict__.update(vars(bare))
        self.replayer.begin()

    def _loaded(self, entry: Entry, facts: Facts, holds: type) -> Any:
        if facts.payload is None:
            raise InputError(f"the policy of entry {entry.number} is missing.")
        name = f"the policy stored in entry {entry.number}"
        types, trusted = self._allowed.types, self._allowed.trusted
        return loads(facts.payload, types=types, trusted=trusted, name=name, holds=holds)


def json_values(record: Any) -> dict[str, Any]:
    """Return the values of a record as JSON has them, in which NaN equals NaN."""
    values: dict[str, Any] = json.loads(to_json(asdict(record)))
    return values


def first_other_content(stored: bytes, again: bytes, close: float) -> str | None:
    """Return where two results of ``storage.dumps`` differ first; None if they are equal.

    Numbers may differ by ``close``, relative and absolute. Estimators of other libraries are not
    compared, since their scores are compared elsewhere.

    Examples
    --------
    >>> from fairchance.people.likelihoods import LinearLikelihood
    >>> from fairchance.methods.storage import dumps
    >>> left, right = (dumps(LinearLikelihood(np.ones(2), b)) for b in (0.5, 0.6))
    >>> first_other_content(left, right, 0.01)
    'LinearLikelihood.intercept'
    >>> first_other_content(left, right, 0.2) is None
    True
    """
    pair = _ContentPair(_unpack(stored), _unpack(again))
    if _first_path(pair.left.root, pair.right.root, pair, close) is not None:
        return "an object"
    for left, right in pair.met:  # grows on the way
        before, after = pair.left.objects[left], pair.right.objects[right]
        path = _first_path(before, after, pair, close)
        if path is not None:
            return f"{before.get('type', 'an object')}{path.removeprefix('.fields')}"
    return None


def first_other_value(
    left: dict[str, Any],
    right: dict[str, Any],
    close: float = 1e-9,
    leave_out: Collection[str] = (),
) -> str | None:
    """Return the name of the first value that differs between two records of JSON values.

    Examples
    --------
    >>> first_other_value({"a": 1, "b": [0.1]}, {"a": 1, "b": [0.2]})
    'b'
    >>> first_other_value({"a": 1.0}, {"a": 1.0 + 1e-12}) is None
    True
    """
    for name in {**left, **right}:
        if name in leave_out:
            continue
        in_both = name in left and name in right
        if not in_both or _first_path(left[name], right[name], None, close) is not None:
            return name
    return None


@dataclass(frozen=True)
class _Content:
    """A result of ``storage.dumps``: its first object, the table of objects, and its files."""

    root: Any
    objects: list[Any]
    files: dict[str, bytes]


class _ContentPair:
    """Two contents, and the pairs of objects that correspond to each other.

    Pairs are collected on the way from the first object, so objects that are never referred to are
    not compared.
    """

    def __init__(self, left: _Content, right: _Content) -> None:
        self.left, self.right = left, right
        self.met: list[tuple[int, int]] = []
        self._right_of: dict[int, int] = {}
        self._left_of: dict[int, int] = {}

    def meet(self, left: int, right: int) -> bool:
        """Return whether two objects correspond to each other, here and wherever they were met."""
        if left not in self._right_of and right not in self._left_of:
            self._right_of[left], self._left_of[right] = right, left
            self.met.append((left, right))
        return self._right_of.get(left) == right


def _unpack(content: bytes) -> _Content:
    files = unzipped(content, "a stored state")
    manifest = json.loads(files["manifest.json"])
    return _Content(manifest["root"], manifest["objects"], files)


def _first_path(left: Any, right: Any, pair: _ContentPair | None, close: float) -> str | None:
    """Return the path to the first difference, empty for the values themselves.

    Without ``pair`` these are plain values, and none refers to an object or a file.
    """
    if isinstance(left, dict) and isinstance(right, dict):
        return _first_path_in_dict(left, right, pair, close)
    if isinstance(left, list) and isinstance(right, list):
        if len(left) != len(right):
            return ""
        paths = (_first_path(a, b, pair, close) for a, b in zip(left, right, strict=True))
        return next((path for path in paths if path is not None), None)
    if _is_number(left) and _is_number(right):
        is_whole = isinstance(left, int) and isinstance(right, int)
        same = left == right or (
            not is_whole and math.isclose(left, right, rel_tol=close, abs_tol=close)
        )
        return None if same else ""
    return None if left == right else ""


def _first_path_in_dict(
    left: dict[str, Any], right: dict[str, Any], pair: _ContentPair | None, close: float
) -> str | None:
    if left.keys() != right.keys():
        return ""
    if pair is not None and not left.keys().isdisjoint(_REFERENCES):
        return None if _same_referent(left, right, pair, close) else ""
    for name, value in left.items():
        path = _first_path(value, right[name], pair, close)
        if path is not None:
            return f".{name}{path}"
    return None


def _same_referent(
    left: dict[str, Any], right: dict[str, Any], pair: _ContentPair, close: float
) -> bool:
    """Return whether two references lead to equal content; objects are compared later."""
    if "ref" in left:
        return pair.meet(left["ref"], right["ref"])
    if "skops" in left:
        return True
    kind = "array" if "array" in left else "frame"
    before, after = pair.left.files[left[kind]], pair.right.files[right[kind]]
    if kind == "frame":
        return before == after
    return _same_arrays(np.load(io.BytesIO(before)), np.load(io.BytesIO(after)), close)


def _same_arrays(left: Any, right: Any, close: float) -> bool:
    if left.shape != right.shape or left.dtype.kind != right.dtype.kind:
        return False
    if left.dtype.kind != "f":
        return bool(np.array_equal(left, right))
    return bool(np.allclose(left, right, rtol=close, atol=close, equal_nan=True))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
