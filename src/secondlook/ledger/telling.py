"""What callers tell a program: read, checked, and compared with what is recorded."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from secondlook.core.decisions import Decisions
from secondlook.core.groups import Attributes
from secondlook.errors import InputError, UnknownIdError
from secondlook.frames import as_array, column, plain
from secondlook.ledger.base import Entry, OutcomeRows, Reader, Standing
from secondlook.ledger.columns import Kept, encode_groups, encode_known_groups
from secondlook.ledger.replay import Shape, erased_rows
from secondlook.ledger.retention import REMOVE, UNKNOWN
from secondlook.methods.certified.classifier import CertifiedClassifier
from secondlook.methods.deployed import DeployedRung
from secondlook.people.ids import as_ids, check_spelling
from secondlook.people.in_parts import InParts

__all__ = [
    "are_final",
    "as_deployed",
    "as_names",
    "check_batch",
    "check_new_name",
    "fold_of",
    "fresh_copy",
    "groups_of",
    "known_groups",
    "new_ids",
    "news",
    "past_outcomes",
    "read_ids",
    "read_names",
    "read_outcomes",
    "recorded_decisions",
    "told_once",
    "without_outcome",
]

_MAP_IT = "map it to one of them, or leave out whoever has no outcome yet"


def fresh_copy(classifier: Any) -> Any:
    """Return a classifier with the same settings that knows nothing, if it can be replayed."""
    seed = getattr(classifier, "random_state", None)
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise InputError(
            f"random_state must be a whole number in a ledger, so that decisions can be "
            f"recomputed from the record, got {seed!r}; choose one."
        )
    return clone(classifier)


def check_batch(X: Any, name: Any) -> None:
    """Raise if nobody is in a batch, or its name is none."""
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise InputError(f"a batch's name must be text with letters, got {name!r}; take another.")
    n = X.shape[:1] if hasattr(X, "shape") else (len(X) if hasattr(X, "__len__") else 1,)
    if tuple(n) == (0,):
        raise InputError("the batch is empty; pass at least one application.")


def check_new_name(name: str | None) -> None:
    """Raise if a new batch would have the name of one that has none."""
    if name is not None and re.fullmatch(r"#\d+", name):
        raise InputError(
            f"a batch's name must not be # and a number, as unnamed ones have, got {name!r}; take "
            f"another."
        )


def new_ids(ids: Any, n: int) -> NDArray[Any] | None:
    """Return the names of people who are new; None where the caller leaves them to the program."""
    if ids is None:
        return None
    names = as_ids(ids, n)
    check_spelling(names)
    return names


def fold_of(classifier: Any, ids: NDArray[Any]) -> NDArray[np.int64] | None:
    """Return the fold of each application, where a classifier has folds."""
    if not hasattr(classifier, "fold_of"):
        return None
    return np.asarray(classifier.fold_of(ids), np.int64)


def as_names(ids: NDArray[Any]) -> InParts[str]:
    """Return ids as the ledger keeps them, made as they are recorded."""
    return InParts(ids.size, lambda rows: list(map(str, ids[rows].tolist())))


def are_final(classifier: Any) -> bool:
    """Say whether an outcome and a withdrawal exclude each other for good: certificates need it."""
    return isinstance(classifier, CertifiedClassifier)


def as_deployed(classifier: Any) -> tuple[DeployedRung, ...]:
    """Return what decided the last round where certificates are tested for; else nothing."""
    if not isinstance(classifier, CertifiedClassifier):
        return ()
    return classifier.deployed_


def known_groups(classifier: Any) -> Attributes | None:
    """Return the groups of a program's history, if it had any."""
    found: Attributes | None = getattr(getattr(classifier, "_intake", None), "sensitive", None)
    return found


def groups_of(classifier: Any, sensitive_features: Any, n: int) -> list[str] | None:
    """Return the group values of a batch as the ledger keeps them, if they are the history's."""
    if sensitive_features is None:
        return None
    known = known_groups(classifier)
    if known is None:
        return encode_groups(sensitive_features, n)[1]
    return encode_known_groups(known, sensitive_features, n)


def past_outcomes(
    fitted: Any, y: Any, accepted: Any, n: int
) -> tuple[NDArray[np.bool_], OutcomeRows | None, Any, Any]:
    """Return who was accepted in a history that was fitted, the outcomes, and their labels."""
    labels = fitted.classes_.tolist()
    if len(labels) != 2:
        raise InputError(
            f"a ledger keeps outcomes as good or bad, and these are {labels}; merge them into two, "
            f"or decide without a ledger."
        )
    decisions = list(getattr(fitted, "decisions_", ()))
    if len(decisions) > 2:
        raise InputError(
            f"a ledger keeps whether somebody was accepted, and this classifier decides between "
            f"{', '.join(map(str, decisions))}; leave two decisions, or decide without a ledger."
        )
    good = labels[-1] if fitted.pos_label is None else fitted.pos_label
    bad = next(one for one in labels if one != good)
    taken = np.ones(n, np.bool_)
    if accepted is not None:
        taken = column(accepted, n, "accepted").astype(np.bool_)
    rows = np.flatnonzero(taken)
    if not rows.size:
        return taken, None, good, bad
    states = np.where(as_array(y).reshape(n)[rows] == good, "good", "bad").tolist()
    return taken, OutcomeRows(rows, states), good, bad


def read_ids(ids: Any, shape: Shape) -> list[str]:
    """Return names of applications as the ledger keeps them."""
    values = np.atleast_1d(as_array(ids))
    names = as_ids(values, values.shape[0])
    if names.size and names.dtype.kind != shape.id_kind:
        kinds = {"i": "integers", "U": "strings"}
        raise InputError(
            f"ids must be {kinds[shape.id_kind]}, as in the history, got "
            f"{kinds[names.dtype.kind]}; convert them."
        )
    return list(map(str, names.tolist()))


def read_names(ids: Any, shape: Shape) -> list[str]:
    """Return the same; text is taken as the ledger keeps it, whatever kind of ids there are."""
    values = np.atleast_1d(as_array(ids))
    if values.ndim == 1 and values.dtype.kind in "OU":
        names: list[Any] = values.tolist()
        if set(map(type, names)) <= {str}:
            return names
    return read_ids(values, shape)


def read_outcomes(
    outcomes: Any, n: int, shape: Shape, about: Mapping[str, Any] | None = None
) -> list[str]:
    """Return outcomes as states; ``about`` may have the words of a configuration for them."""
    values = column(np.atleast_1d(as_array(outcomes)), n, "outcomes", per="id")
    good, bad = values == shape.good, values == shape.bad
    known, then = f"{shape.bad!r} or {shape.good!r}, as in the history", _MAP_IT
    if about and not np.all(good | bad):
        from secondlook.ledger.config import Labels  # noqa: PLC0415 - it knows how to build learners

        distinct, place = np.unique(values.astype(np.str_), return_inverse=True)
        words = [Labels.canonical(one) for one in distinct.tolist()]
        labels = Labels.read(about) or Labels((), ())
        good = good | np.isin(words, labels.good)[place]
        bad = bad | np.isin(words, labels.bad)[place]
        told = ", ".join(map(repr, (*labels.bad, *labels.good)))
        known = f"{known}, or a word of its configuration ({told})" if told else known
        if np.isin(words, labels.indeterminate).any():
            then = "withdraw whose outcome will never be known, and map others to one of these"
    if not np.all(good | bad):
        strange = values[np.flatnonzero(~(good | bad))[0]]
        raise InputError(f"outcomes must be {known}, got {plain(strange)!r}; {then}.")
    states: list[str] = np.where(good, "good", "bad").tolist()
    return states


def told_once(names: Sequence[str], states: Sequence[str]) -> dict[str, str]:
    """Return one state per application; the same may be told twice, but not two."""
    told = dict(zip(names, states, strict=True))
    if len(told) == len(names):
        return told
    told.clear()
    for name, one in zip(names, states, strict=True):
        if told.setdefault(name, one) != one:
            raise InputError(f"outcomes contradict each other for id {name!r}; give one per id.")
    return told


def news(
    told: dict[str, str], standing: Standing, *, for_good: bool
) -> list[tuple[str, NDArray[np.intp]]]:
    """Return whose outcomes are new, by kind of entry, as places in the order of the record.

    What is recorded already is not new. ``for_good``: whoever was withdrawn can have no outcome
    later, and whoever has one cannot be withdrawn, since a certificate may rest on it.
    """
    names = list(told)
    _check_standing(names, standing)
    now, before = np.array([*told.values()], np.object_), np.array(standing.states, np.object_)
    first = np.array([one is None for one in standing.states], np.bool_)
    other = ~first & (before != now)
    excluded = other & ((before == "indeterminate") | (now == "indeterminate"))
    if for_good and excluded.any():
        raise InputError(
            f"id {names[int(np.argmax(excluded))]!r} has an outcome or was withdrawn, and these "
            f"exclude each other for good where certificates rest on them; nothing was recorded, "
            f"remove it."
        )
    order = np.argsort(standing.persons, kind="stable")
    kinds = ("outcomes", order[first[order]]), ("correction", order[other[order]])
    return [(kind, rows) for kind, rows in kinds if rows.size]


def without_outcome(standing: Standing) -> list[tuple[NDArray[np.bool_], str]]:
    """Return who can have no outcome, and why, in words that follow on "ids that"."""
    return [
        (standing.persons < 0, UNKNOWN),
        (~standing.accepted, "do not stand accepted"),
    ]


def _check_standing(names: Sequence[str], standing: Standing) -> None:
    """Raise unless everybody is known and stands accepted."""
    for wrong, words in without_outcome(standing):
        rows = np.flatnonzero(wrong)
        if rows.size:
            raise UnknownIdError(
                f"{rows.size} of {len(names)} ids {words}, first {names[rows[0]]!r}, and outcomes "
                f"are known for accepted people only; nothing was recorded, {REMOVE}."
            )


def recorded_decisions(
    reader: Reader, shape: Shape, entry: Entry, kept: Kept, groups: list[str] | None, ids: Any
) -> Decisions:
    """Return the decisions of a recorded batch, if what was sent is that batch."""
    facts = reader.facts(entry)
    people, decided = facts.people, facts.decisions
    assert people is not None
    assert decided is not None
    gone = erased_rows(people)
    sent: list[Sequence[Any]] = [kept.numbers, kept.texts]
    stored: list[Sequence[Any]] = [people.numbers, people.texts]
    if ids is not None:
        sent.append([str(one) for one in as_ids(ids, len(kept)).tolist()])
        stored.append(people.applications)
    sent.append([None] * len(kept) if groups is None else groups)
    stored.append([None] * len(people) if people.groups is None else people.groups)
    if len(people) != len(kept):
        raise InputError(
            f"a batch was recorded under the name {entry.key!r} with other content, "
            f"{len(people)} people and not {len(kept)}; nothing was decided, send what was sent "
            f"then or take another name."
        )
    pairs = zip(zip(*sent, strict=True), zip(*stored, strict=True), gone, strict=True)
    row = next((at for at, (a, b, lost) in enumerate(pairs) if a != b and not lost), None)
    if row is not None:
        raise InputError(
            f"a batch was recorded under the name {entry.key!r} with other content, first in row "
            f"{row}, counted from 0; nothing was decided, send what was sent then or take another "
            f"name."
        )
    if gone.any():
        n = int(gone.sum())
        who = "1 person" if n == 1 else f"{n} people"
        raise InputError(
            f"{who} of the batch {entry.key!r} {'has' if n == 1 else 'have'} been erased, so it "
            f"cannot be answered from the record again; secondlook export has its decisions, "
            f"without the names of the erased, and new people go into a batch with another name."
        )
    return Decisions(
        shape.ids(people.applications),
        decided.accepted,
        decided.exploit,
        decided.score,
        decided.propensity,
        decided.round,
        certified=entry.says["certified"],
        group_mode=entry.says["group_mode"],
        threshold=decided.threshold,
    )
