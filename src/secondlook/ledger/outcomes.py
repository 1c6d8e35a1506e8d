"""Outcomes that are handed to a program: read, checked and compared with the record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.errors import InputError
from secondlook.frames import as_array, column, plain
from secondlook.ledger.base import STATES, Standing
from secondlook.ledger.encoding import Shape
from secondlook.methods.certified.classifier import CertifiedClassifier

__all__ = ["check_states", "new_outcomes", "outcomes_are_final", "read_outcomes", "unique_outcomes"]


def outcomes_are_final(classifier: Any) -> bool:
    """Return whether an outcome can never be withdrawn, nor a withdrawal be undone.

    Certificates need this: otherwise bad outcomes could be withdrawn after a look at the tests.
    """
    return isinstance(classifier, CertifiedClassifier)


def read_outcomes(outcomes: Any, n: int, shape: Shape, about: Mapping[str, Any]) -> list[str]:
    """Return outcomes as states.

    Parameters
    ----------
    outcomes, n
        One outcome for each of ``n`` ids.
    shape
        Has the labels of the history.
    about
        What the program stores with its settings; a configuration has further labels there.
    """
    values = column(np.atleast_1d(as_array(outcomes)), n, "outcomes", per="id")
    good, bad = values == shape.good, values == shape.bad
    allowed = f"{shape.bad!r} or {shape.good!r}, as in the history"
    advice = "map it to one of them, or leave out applicants without an outcome"
    if about and not np.all(good | bad):
        from secondlook.ledger.config import Labels  # noqa: PLC0415 - it imports every learner

        distinct, place = np.unique(values.astype(np.str_), return_inverse=True)
        words = [Labels.canonical(word) for word in distinct.tolist()]
        labels = Labels.read(about) or Labels((), ())
        good = good | np.isin(words, labels.good)[place]
        bad = bad | np.isin(words, labels.bad)[place]
        configured = ", ".join(map(repr, (*labels.bad, *labels.good)))
        if configured:
            allowed += f", or a label of its configuration ({configured})"
        if np.isin(words, labels.indeterminate).any():
            advice = "withdraw applicants whose outcome will never be known, and map the others"
    if not np.all(good | bad):
        strange = values[np.flatnonzero(~(good | bad))[0]]
        raise InputError(f"outcomes must be {allowed}, got {plain(strange)!r}; {advice}.")
    states: list[str] = np.where(good, "good", "bad").tolist()
    return states


def check_states(names: Sequence[str], states: Sequence[str]) -> None:
    """Raise unless each id has one of the states that a ledger stores."""
    if len(names) != len(states):
        raise InputError(
            f"there must be one outcome per id, got {len(states)} outcomes for {len(names)} ids; "
            f"make the lists equally long."
        )
    strange = [state for state in states if state not in STATES]
    if strange:
        raise InputError(
            f"outcomes must be {', '.join(map(repr, STATES))} here, got {strange[0]!r}; map it."
        )


def unique_outcomes(names: Sequence[str], states: Sequence[str]) -> dict[str, str]:
    """Return one state per id; the same outcome may be given twice, but not two outcomes."""
    unique: dict[str, str] = {}
    for name, state in zip(names, states, strict=True):
        if unique.setdefault(name, state) != state:
            raise InputError(f"outcomes contradict each other for id {name!r}; give one per id.")
    return unique


def new_outcomes(
    outcomes: Mapping[str, str], standing: Standing, *, final: bool
) -> list[tuple[str, NDArray[np.intp]]]:
    """Return which outcomes are not on the record yet, by kind of entry, ordered by applicant.

    Parameters
    ----------
    outcomes
        States by id, of applicants who may have one.
    standing
        What the record has for the same ids in the same order.
    final
        Whether an outcome and a withdrawal exclude each other for good.
    """
    now = np.array([*outcomes.values()], np.object_)
    before = np.array(standing.states, np.object_)
    first = np.array([state is None for state in standing.states], np.bool_)
    changed = ~first & (before != now)
    excluded = changed & ((before == "indeterminate") | (now == "indeterminate"))
    if final and excluded.any():
        raise InputError(
            f"id {list(outcomes)[int(np.argmax(excluded))]!r} has an outcome or was withdrawn, and "
            f"the other is impossible from then on in a certified program; nothing was recorded, "
            f"remove it."
        )
    order = np.argsort(standing.persons, kind="stable")
    kinds = ("outcomes", order[first[order]]), ("correction", order[changed[order]])
    return [(kind, rows) for kind, rows in kinds if rows.size]
