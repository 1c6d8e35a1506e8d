"""Decisions on their way into a ledger, and out of it as the answer to a repeated call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.core.decisions import Decisions
from fairchance.errors import InputError
from fairchance.frames import as_array, is_frame, take
from fairchance.ledger.base import DecisionRows, Entry, Facts, PeopleRows
from fairchance.ledger.encoding import Shape
from fairchance.ledger.replay import erased_rows
from fairchance.people.features import EncodedFeatures
from fairchance.people.ids import as_ids, check_spelling
from fairchance.people.intake import read_flags, read_persons
from fairchance.people.likeness import Unlike

__all__ = ["Lookalikes", "Sent", "answer", "facts_of", "first_rows", "new_ids", "recorded_batch"]


@dataclass(frozen=True)
class Sent:
    """Applications as a caller sends them, with features and groups as a ledger stores them."""

    encoded: EncodedFeatures
    groups: list[str] | None
    sensitive_features: Any = None
    ids: Any = None
    incumbent: Any = None
    barred: Any = None
    persons: Any = None

    def __len__(self) -> int:
        return len(self.encoded)

    def __getitem__(self, rows: NDArray[np.intp]) -> Sent:
        """Return some of the applications."""

        def some(values: Sequence[Any] | None) -> Any:
            return None if values is None else as_array(values)[rows]

        encoded = self.encoded
        columns = {
            name: some(getattr(self, name)) for name in ("ids", "incumbent", "barred", "persons")
        }
        groups = self.sensitive_features
        return Sent(
            EncodedFeatures(
                take(encoded.X, rows),
                encoded.backend,
                [encoded.numbers[row] for row in rows.tolist()],
                [encoded.texts[row] for row in rows.tolist()],
            ),
            None if self.groups is None else [self.groups[row] for row in rows.tolist()],
            take(groups, rows) if is_frame(groups) else some(groups),
            **columns,
        )

    @property
    def options(self) -> dict[str, Any]:
        """What a classifier or a policy reads beside the features, without what was not given."""
        given = {
            name: getattr(self, name)
            for name in ("sensitive_features", "incumbent", "barred", "persons")
        }
        return {name: values for name, values in given.items() if values is not None}

    def n_identical(self) -> int:
        """Return how many applicants repeat the features of another."""
        return len(self) - len({*zip(self.encoded.numbers, self.encoded.texts, strict=True)})


class Lookalikes:
    """Counts applicants who repeat the features of another, and whose persons are not known.

    Examples
    --------
    >>> alike = Lookalikes()
    >>> for numbers in ([b"1", b"2"], [b"2"]):
    ...     alike.add(PeopleRows(["a"] * len(numbers), numbers, [None] * len(numbers)))
    >>> alike.count()
    1
    """

    def __init__(self) -> None:
        self._hashes: list[NDArray[np.int64]] = []

    def add(self, people: PeopleRows) -> None:
        """Add some applicants."""
        if people.person_keys is None:
            content = zip(people.numbers, people.texts, strict=True)
            self._hashes.append(np.fromiter(map(hash, content), np.int64, len(people)))

    def count(self) -> int:
        """Return how many repeat another."""
        hashes = np.concatenate(self._hashes) if self._hashes else np.empty(0, np.int64)
        return int(hashes.size - np.unique(hashes).size)


def new_ids(ids: Any, n: int) -> NDArray[Any] | None:
    """Return the ids of new applicants; None if the program is to number them."""
    if ids is None:
        return None
    names = as_ids(ids, n)
    check_spelling(names)
    return names


def first_rows(persons: Any, n: int) -> NDArray[np.intp] | None:
    """Return the row of each person's first application; None if persons are not known.

    >>> first_rows(["Ada", "Bob", "Ada"], 3).tolist()
    [0, 1, 0]
    """
    if persons is None:
        return None
    _, first, number = np.unique(read_persons(persons, n), return_index=True, return_inverse=True)
    return np.asarray(first[number])


def facts_of(
    sent: Sent,
    decided: Decisions,
    reasons: Sequence[bytes | None] | None,
    who: NDArray[np.uint64] | None,
) -> Facts:
    """Return applications and the decisions on them as a ledger stores them.

    ``who`` are the pseudonyms of persons, None if these are not known.
    """
    return Facts(
        PeopleRows(
            list(map(str, decided.ids.tolist())),
            sent.encoded.numbers,
            sent.encoded.texts,
            sent.groups,
            reasons,
            None if who is None else who.view(np.int64).tolist(),
        ),
        DecisionRows(
            decided.round,
            decided.accepted,
            decided.exploit,
            decided.score.astype(np.float64),
            decided.propensity,
            None if decided.threshold is None else decided.threshold.astype(np.float64),
            decided.incumbent,
            decided.barred,
        ),
    )


def answer(
    says: Mapping[str, Any],
    shape: Shape,
    people: PeopleRows,
    decisions: DecisionRows,
    rows: Sequence[int] | NDArray[np.intp],
) -> Decisions:
    """Return recorded decisions in some order; ``says`` is the header of their round's entry."""
    rows = np.asarray(rows, np.intp)
    reasons = None if people.reasons is None else [people.reasons[row] for row in rows.tolist()]
    return Decisions(
        shape.ids(people.applications)[rows],
        decisions.accepted[rows],
        decisions.exploit[rows],
        decisions.score[rows],
        decisions.propensity[rows],
        says["round"],
        certified=says["certified"],
        group_mode=says["group_mode"],
        threshold=None if decisions.threshold is None else decisions.threshold[rows],
        reasons=shape.reasons(reasons),
        unlike=tuple(Unlike(**row) for row in says.get("unlike", ())),
        incumbent=None if decisions.incumbent is None else decisions.incumbent[rows],
        barred=None if decisions.barred is None else decisions.barred[rows],
        ramp=says["ramp"],
        status=says["status"],
    )


def recorded_batch(entry: Entry, facts: Facts, shape: Shape, sent: Sent) -> Decisions:
    """Return the decisions of a recorded batch if it has the content that was sent."""
    people, decisions = facts.people, facts.decisions
    assert people is not None
    assert decisions is not None
    rows = _check_same_batch(entry, people, sent)
    for name in ("incumbent", "barred"):
        recorded, given = getattr(decisions, name), getattr(sent, name)
        flags = None if given is None else read_flags(given, len(rows), name)
        if (recorded is None) != (flags is None) or (
            flags is not None and not np.array_equal(recorded[rows], flags)
        ):
            raise _recorded_with_other(entry, name)
    stored = None if people.person_keys is None else np.array(people.person_keys)[rows]
    pair = first_rows(stored, len(rows)), first_rows(sent.persons, len(rows))
    if (pair[0] is None) != (pair[1] is None) or not np.array_equal(*pair):  # type: ignore[arg-type]
        raise _recorded_with_other(entry, "persons")
    return answer(entry.says, shape, people, decisions, rows)


def _recorded_with_other(entry: Entry, name: str) -> InputError:
    return InputError(
        f"batch {entry.key!r} is recorded with another {name}; send it as recorded, or take "
        f"another name.",
        option="batch",
    )


def _check_same_batch(entry: Entry, people: PeopleRows, sent: Sent) -> list[int]:
    """Return the recorded row of each applicant that was sent, in any order if they have ids.

    Raises unless the batch is the recorded one, and nothing of it was erased.
    """
    erased = erased_rows(people)
    rows = list(range(len(sent)))
    if sent.ids is not None:
        # Erased applicants have no id, so their rows stand for ids that are unknown now.
        row_of = {name: row for row, name in enumerate(people.applications) if name is not None}
        gone = iter(np.flatnonzero(erased).tolist())
        names = map(str, as_ids(sent.ids, len(sent)).tolist())
        rows = [row_of[name] if name in row_of else next(gone, -1) for name in names]
    none: Sequence[Any] = [None] * max(len(people), len(rows))
    stored = [*zip(people.numbers, people.texts, people.groups or none[: len(people)], strict=True)]
    encoded = sent.encoded
    given = zip(encoded.numbers, encoded.texts, sent.groups or none[: len(rows)], strict=True)
    if sorted(rows) != list(range(len(people))) or any(
        new != stored[row] and not erased[row] for row, new in zip(rows, given, strict=True)
    ):
        raise InputError(
            f"batch {entry.key!r} is recorded with other applicants ({len(people)}); send it as "
            f"recorded, or take another name.",
            option="batch",
        )
    if erased.any():
        raise InputError(
            f"batch {entry.key!r} has {erased.sum()} erased applicants and cannot be answered "
            f"again; export its decisions, and send others under another name.",
            option="batch",
        )
    return rows
