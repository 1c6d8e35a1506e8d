"""What can be decided, what may come out, and what each pair of these is worth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.core.utility import Utility
from secondlook.errors import InputError
from secondlook.methods.many_classes.class_noise import ClassNoise, of_recorded, read_noise

__all__ = [
    "SCORE_DIGITS",
    "DecisionTable",
    "as_names",
    "check_known",
    "labels_of",
    "named_classes",
    "read_table",
]

Floats = NDArray[np.float64]

SCORE_DIGITS = 12


@dataclass(frozen=True)
class DecisionTable:
    """Decisions against outcome classes.

    A person is *accepted* by a decision after which their outcome is seen. An accepted person's
    class is a mistake if it is not good for the decision they got.

    Attributes
    ----------
    decisions, classes
        Names of both.
    worth
        U: a row a decision, a column a class.
    good
        Whether a class is good for a decision.
    observed
        Whether the outcome is seen after a decision.
    noise
        How likely each class is recorded as each class; None if always as itself.

    Examples
    --------
    >>> table = read_table([[0, 0], [-500, 200]], None, None, None, ("bad", "good"))
    >>> worth = table.look(np.array([[0.25, 0.75]]), multiplier=0.0)
    >>> worth.score.tolist(), table.decisions[worth.accepting[0]]
    ([0.75], 'good')
    """

    decisions: tuple[Any, ...]
    classes: tuple[Any, ...]
    worth: tuple[tuple[float, ...], ...]
    good: tuple[tuple[bool, ...], ...]
    observed: tuple[bool, ...]
    noise: ClassNoise | None = None

    @property
    def recorded_worth(self) -> Floats:
        """U as it is to be counted for recorded classes."""
        worth = np.array(self.worth)
        return worth if self.noise is None else of_recorded(worth, self.noise)

    @property
    def recorded_bad(self) -> Floats:
        """``bad`` as it is to be counted for recorded classes."""
        return self.bad if self.noise is None else of_recorded(self.bad, self.noise)

    @property
    def bad(self) -> Floats:
        """1 where accepting by this decision a person of this class is a mistake, else 0."""
        return np.asarray(np.array(self.observed, float)[:, None] * ~np.array(self.good))

    @property
    def unit(self) -> float:
        """Largest difference between two entries of U; 1 if all are the same."""
        return float(np.ptp(np.array(self.worth))) or 1.0

    def in_order(self, classes: tuple[Any, ...]) -> DecisionTable:
        """Return the same table with its classes in another order."""
        at = [self.classes.index(one) for one in classes]
        noise = self.noise
        if noise is not None:
            noise = tuple(tuple(noise[i][j] for j in at) for i in at)
        return replace(
            self,
            classes=classes,
            noise=noise,
            worth=tuple(tuple(row[i] for i in at) for row in self.worth),
            good=tuple(tuple(row[i] for i in at) for row in self.good),
        )

    def look(self, p: Floats, multiplier: float) -> Looked:
        """Weigh up accepting against rejecting people with probabilities ``p`` of recorded classes.

        The net worth of accepting is ``max_d (u_d − λ·b_d) − max_r u_r`` with d over the observed
        decisions, r over the others, u a decision's expected worth, b its chance of a mistake and λ
        the multiplier, the price of one. The score is the net worth on a scale from 0, its least
        possible value, to 1, its largest; for two classes and two decisions that is P(good).
        """
        seen = np.array(self.observed)
        worth = self.recorded_worth
        accepting = (worth - multiplier * self.recorded_bad)[seen]
        rejecting = worth[~seen]
        by_accepting, by_rejecting = p @ accepting.T, p @ rejecting.T
        net = by_accepting.max(axis=1) - by_rejecting.max(axis=1)
        entries = accepting[:, None, :] - rejecting[None, :, :]
        least, most = entries.min(axis=(1, 2)).max(), entries.max(axis=(0, 2)).min()
        score = np.ones(net.size) if most <= least else (net - least) / (most - least)
        return Looked(
            # Rounded, so that people who are alike score alike in whatever block they come.
            np.clip(score.round(SCORE_DIGITS), 0.0, 1.0),
            np.flatnonzero(seen)[by_accepting.argmax(axis=1)],
            np.flatnonzero(~seen)[by_rejecting.argmax(axis=1)],
        )


@dataclass(frozen=True)
class Looked:
    """Each person's score, the best decision that accepts them and the best that does not."""

    score: Floats
    accepting: NDArray[np.intp]
    rejecting: NDArray[np.intp]


def labels_of(given: Any) -> tuple[Any, ...]:
    """Return one label, or a collection of them, as a tuple of plain values.

    Examples
    --------
    >>> labels_of("paid"), labels_of(np.array([1, 2]))
    (('paid',), (1, 2))
    """
    several = isinstance(given, Iterable) and not isinstance(given, str | bytes)
    labels = list(given) if several else [given]
    return tuple(one.item() if isinstance(one, np.generic) else one for one in labels)


def as_names(labels: tuple[Any, ...]) -> NDArray[Any]:
    """Return labels as an array that keeps them as they are, whatever their types."""
    names = np.array(labels)
    return names if names.tolist() == list(labels) else np.array(labels, dtype=object)


def named_classes(classes: Any, utility: Any) -> tuple[Any, ...] | None:
    """Return all classes there can be where a user names them, by themselves or in a utility."""
    if classes is not None:
        return labels_of(classes)
    rows = utility.values() if isinstance(utility, Mapping) else ()
    named = [one for row in rows if isinstance(row, Mapping) for one in labels_of(row)]
    return tuple(dict.fromkeys(named)) or None


def read_table(
    utility: Any,
    good: Any,
    observed: Any,
    decisions: Any,
    classes: tuple[Any, ...],
    noise: Any = None,
) -> DecisionTable:
    """Read and check what a user hands in; see ``ManyClassClassifier`` for what it may be."""
    if len(set(classes)) < len(classes):
        raise InputError(f"classes must differ from one another, got {list(classes)}.")
    worth, names = _read_worth(utility, decisions, classes)
    chosen = names[1:] if observed is None else labels_of(observed)
    check_known("observed", chosen, names, "decisions")
    if not 0 < len(set(chosen)) < len(names):
        raise InputError(
            f"observed must name at least one decision and leave out at least one, whose outcome "
            f"is not seen; the decisions are {list(names)}, got {list(chosen)}."
        )
    good_for = {name: _good_for(name, good, names, classes) for name in chosen}
    return DecisionTable(
        names,
        classes,
        tuple(map(tuple, worth.tolist())),
        tuple(tuple(one in good_for.get(name, ()) for one in classes) for name in names),
        tuple(name in chosen for name in names),
        read_noise(noise, classes),
    )


def _read_worth(
    utility: Any, decisions: Any, classes: tuple[Any, ...]
) -> tuple[Floats, tuple[Any, ...]]:
    """Return U and the names of its rows."""
    if isinstance(utility, Mapping):
        names = labels_of(list(utility) if decisions is None else decisions)
        _check_same("utility", labels_of(utility), names, "the decisions")
        for name in names:
            row = utility[name]
            if not isinstance(row, Mapping):
                raise InputError(
                    f"utility must give each decision a dict from class to worth, got {row!r} for "
                    f"{name!r}."
                )
            _check_same(f"utility[{name!r}]", labels_of(row), classes, "the classes")
        entries = [[utility[name][one] for one in classes] for name in names]
    else:
        names = classes if decisions is None else labels_of(decisions)
        entries = _entries(utility, names, classes)
    if len(set(names)) < len(names):
        raise InputError(f"decisions must differ from one another, got {list(names)}.")
    try:
        worth = np.array(entries, dtype=np.float64)
    except (TypeError, ValueError):
        worth = np.empty(0)
    if worth.shape != (len(names), len(classes)) or not np.isfinite(worth).all():
        raise InputError(
            f"utility must be a finite number for each of the decisions {list(names)} (rows) and "
            f"the classes {list(classes)} (columns), or a dict of dicts, got {utility!r}."
        )
    return worth, names


def _entries(utility: Any, names: tuple[Any, ...], classes: tuple[Any, ...]) -> Any:
    if isinstance(utility, Utility):
        return np.reshape(utility.gamma, (2, 2))
    if utility is not None:
        return utility
    if not set(names) <= set(classes):
        raise InputError(
            f"utility must be given where decisions are no classes: the decisions are "
            f"{list(names)}, the classes {list(classes)}."
        )
    return [[float(name == one) for one in classes] for name in names]


def _good_for(
    name: Any, good: Any, decisions: tuple[Any, ...], classes: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Return the classes that are good for an observed decision."""
    if good is None:
        if name not in classes:
            raise InputError(
                f"good must be given where an observed decision is no class: name the classes that "
                f"are good for {name!r} among {list(classes)}."
            )
        return (name,)
    if isinstance(good, Mapping):
        check_known("good", labels_of(good), decisions, "decisions")
        if name not in good:
            raise InputError(
                f"good must name the good classes of every observed decision, got none for "
                f"{name!r}; add it."
            )
        good = good[name]
    chosen = labels_of(good)
    check_known("good", chosen, classes, "classes")
    if not chosen:
        raise InputError(f"good must name at least one class for {name!r}, got none.")
    return chosen


def check_known(what: str, got: tuple[Any, ...], allowed: tuple[Any, ...], kind: str) -> None:
    """Raise if a label is not among those allowed."""
    strange = [one for one in got if one not in allowed]
    if strange:
        raise InputError(
            f"{what} names {strange[0]!r}, which is not among the {kind} {list(allowed)}."
        )


def _check_same(what: str, got: tuple[Any, ...], wanted: tuple[Any, ...], kind: str) -> None:
    if set(got) != set(wanted):
        raise InputError(
            f"{what} must have an entry for each of {kind} {list(wanted)} and no other, "
            f"got {list(got)}."
        )
