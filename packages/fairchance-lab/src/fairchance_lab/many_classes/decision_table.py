"""Decisions against outcome classes: utility, mistakes, and which decisions show the outcome."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.core.saved import saved
from fairchance.core.utility import Utility
from fairchance.errors import InputError

__all__ = [
    "SCORE_DIGITS",
    "ClassNoise",
    "DecisionTable",
    "as_names",
    "as_tuple",
    "check_known",
    "correct_for_noise",
    "named_classes",
    "read_noise",
    "read_table",
]

Floats = NDArray[np.float64]
ClassNoise = tuple[tuple[float, ...], ...]

SCORE_DIGITS = 12
_MAX_INVERSE = 1e3  # largest entry of an inverted noise matrix: it scales the estimation error


@saved
@dataclass(frozen=True)
class DecisionTable:
    """Utility of each decision for each outcome class.

    An applicant is *accepted* by a decision after which the outcome is observed. The class of an
    accepted applicant is a mistake if it is not good for the decision.

    Attributes
    ----------
    decisions, classes
        Names of both.
    utility
        U: a row per decision, a column per class.
    good
        Whether a class is good for a decision.
    observed
        Whether the outcome is observed after a decision.
    noise
        Probability that each class is recorded as each class; None if classes are recorded
        correctly.

    Examples
    --------
    >>> table = read_table([[0, 0], [-500, 200]], None, None, None, ("bad", "good"))
    >>> best = table.evaluate(np.array([[0.25, 0.75]]), multiplier=0.0)
    >>> best.score.tolist(), table.decisions[best.accepting[0]]
    ([0.75], 'good')
    """

    decisions: tuple[Any, ...]
    classes: tuple[Any, ...]
    utility: tuple[tuple[float, ...], ...]
    good: tuple[tuple[bool, ...], ...]
    observed: tuple[bool, ...]
    noise: ClassNoise | None = None

    @property
    def recorded_utility(self) -> Floats:
        """U for recorded classes: its mean over them is that of U over the true classes."""
        utility = np.array(self.utility)
        return utility if self.noise is None else correct_for_noise(utility, self.noise)

    @property
    def recorded_mistakes(self) -> Floats:
        """``mistakes`` for recorded classes."""
        return self.mistakes if self.noise is None else correct_for_noise(self.mistakes, self.noise)

    @property
    def mistakes(self) -> Floats:
        """1 if a decision accepts and the class is not good for it, else 0."""
        return np.asarray(np.array(self.observed, float)[:, None] * ~np.array(self.good))

    @property
    def unit(self) -> float:
        """Largest difference between two entries of U; 1 if all are equal."""
        return float(np.ptp(np.array(self.utility))) or 1.0

    def reorder(self, classes: tuple[Any, ...]) -> DecisionTable:
        """Return the same table with its classes in another order."""
        at = [self.classes.index(label) for label in classes]
        noise = self.noise
        if noise is not None:
            noise = tuple(tuple(noise[i][j] for j in at) for i in at)
        return replace(
            self,
            classes=classes,
            noise=noise,
            utility=tuple(tuple(row[i] for i in at) for row in self.utility),
            good=tuple(tuple(row[i] for i in at) for row in self.good),
        )

    def evaluate(self, p: Floats, multiplier: float) -> Evaluation:
        """Compare accepting with rejecting applicants, given probabilities of recorded classes.

        The net utility of accepting is ``max_d (u_d − λ·b_d) − max_r u_r`` with d over the observed
        decisions, r over the others, u the expected utility of a decision, b its probability of a
        mistake and λ the multiplier, the price of a mistake. The score is the net utility on a
        scale from 0, the smallest possible value, to 1, the largest; for two classes and two
        decisions it is P(good).
        """
        observed = np.array(self.observed)
        utility = self.recorded_utility
        accepting = (utility - multiplier * self.recorded_mistakes)[observed]
        rejecting = utility[~observed]
        by_accepting, by_rejecting = p @ accepting.T, p @ rejecting.T
        net = by_accepting.max(axis=1) - by_rejecting.max(axis=1)
        entries = accepting[:, None, :] - rejecting[None, :, :]
        least, most = entries.min(axis=(1, 2)).max(), entries.max(axis=(0, 2)).min()
        score = np.ones(net.size) if most <= least else (net - least) / (most - least)
        return Evaluation(
            # A matrix product rounds by block size; equal applicants must get equal scores.
            np.clip(score.round(SCORE_DIGITS), 0.0, 1.0),
            np.flatnonzero(observed)[by_accepting.argmax(axis=1)],
            np.flatnonzero(~observed)[by_rejecting.argmax(axis=1)],
        )


@dataclass(frozen=True)
class Evaluation:
    """Score of each applicant, the best decision that accepts and the best that rejects."""

    score: Floats
    accepting: NDArray[np.intp]
    rejecting: NDArray[np.intp]


def as_tuple(labels: Any) -> tuple[Any, ...]:
    """Return a single label, or a collection of labels, as a tuple of Python values.

    Examples
    --------
    >>> as_tuple("paid"), as_tuple(np.array([1, 2]))
    (('paid',), (1, 2))
    """
    several = isinstance(labels, Iterable) and not isinstance(labels, str | bytes)
    values = list(labels) if several else [labels]
    return tuple(value.item() if isinstance(value, np.generic) else value for value in values)


def as_names(labels: tuple[Any, ...]) -> NDArray[Any]:
    """Return labels as an array, of objects if numpy would change one of them."""
    names = np.array(labels)
    return names if names.tolist() == list(labels) else np.array(labels, dtype=object)


def named_classes(classes: Any, utility: Any) -> tuple[Any, ...] | None:
    """Return the classes that ``classes`` or else a dict of utilities names; None without names."""
    if classes is not None:
        return as_tuple(classes)
    rows = utility.values() if isinstance(utility, Mapping) else ()
    named = [label for row in rows if isinstance(row, Mapping) for label in as_tuple(row)]
    return tuple(dict.fromkeys(named)) or None


def read_table(
    utility: Any,
    good: Any,
    observed: Any,
    decisions: Any,
    classes: tuple[Any, ...],
    noise: Any = None,
) -> DecisionTable:
    """Read and check the options of ``ManyClassClassifier`` that describe decisions."""
    if len(set(classes)) < len(classes):
        raise InputError(f"classes must differ from one another, got {list(classes)}.")
    entries, names = _read_utility(utility, decisions, classes)
    accepting = names[1:] if observed is None else as_tuple(observed)
    check_known("observed", accepting, names, "decisions")
    if not 0 < len(set(accepting)) < len(names):
        raise InputError(
            f"observed must name some of the decisions {list(names)} and leave out others, got "
            f"{list(accepting)}."
        )
    good_for = {name: _good_for(name, good, names, classes) for name in accepting}
    return DecisionTable(
        names,
        classes,
        tuple(map(tuple, entries.tolist())),
        tuple(tuple(label in good_for.get(name, ()) for label in classes) for name in names),
        tuple(name in accepting for name in names),
        read_noise(noise, classes),
    )


def _read_utility(
    utility: Any, decisions: Any, classes: tuple[Any, ...]
) -> tuple[Floats, tuple[Any, ...]]:
    """Return U and the names of its rows."""
    if isinstance(utility, Mapping):
        names = as_tuple(list(utility) if decisions is None else decisions)
        _check_same("utility", as_tuple(utility), names, "the decisions")
        for name in names:
            row = utility[name] if isinstance(utility[name], Mapping) else {}
            _check_same(f"utility[{name!r}]", as_tuple(row), classes, "the classes")
        values = [[utility[name][label] for label in classes] for name in names]
    else:
        names = classes if decisions is None else as_tuple(decisions)
        values = _utility_matrix(utility, names, classes)
    if len(set(names)) < len(names):
        raise InputError(f"decisions must differ from one another, got {list(names)}.")
    try:
        entries = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        entries = np.empty(0)
    if entries.shape != (len(names), len(classes)) or not np.isfinite(entries).all():
        raise InputError(
            f"utility must be a finite number for each of the decisions {list(names)} (rows) and "
            f"the classes {list(classes)} (columns), got {utility!r}."
        )
    return entries, names


def _utility_matrix(utility: Any, names: tuple[Any, ...], classes: tuple[Any, ...]) -> Any:
    if isinstance(utility, Utility):
        return np.reshape(utility.gamma, (2, 2))
    if utility is not None:
        return utility
    if not set(names) <= set(classes):
        raise InputError(f"utility must be given if decisions are not classes, got {list(names)}.")
    return [[float(name == label) for label in classes] for name in names]


def _good_for(
    name: Any, good: Any, decisions: tuple[Any, ...], classes: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Return the classes that are good for an observed decision."""
    if good is None:
        if name not in classes:
            raise InputError(
                f"good must name the classes of {list(classes)} that are good for {name!r}."
            )
        return (name,)
    if isinstance(good, Mapping):
        check_known("good", as_tuple(good), decisions, "decisions")
        good = good.get(name, ())
    labels = as_tuple(good)
    check_known("good", labels, classes, "classes")
    if not labels:
        raise InputError(f"good must name at least one class for {name!r}, got none.")
    return labels


def check_known(option: str, labels: tuple[Any, ...], known: tuple[Any, ...], kind: str) -> None:
    """Raise if a label is not among the known ones."""
    unknown = [label for label in labels if label not in known]
    if unknown:
        raise InputError(
            f"{option} names {unknown[0]!r}, which is not among the {kind} {list(known)}."
        )


def _check_same(option: str, labels: tuple[Any, ...], expected: tuple[Any, ...], kind: str) -> None:
    if set(labels) != set(expected):
        raise InputError(
            f"{option} must have an entry for each of {kind} {list(expected)}, got {list(labels)}."
        )


def read_noise(noise: Any, classes: tuple[Any, ...]) -> ClassNoise | None:
    """Return T[i, j], the probability that class i is recorded as class j; None without noise.

    Parameters
    ----------
    noise
        A dict from class to a dict from recorded class to probability, in which missing entries
        are 0; or a matrix in the order of ``classes``.
    classes
        All classes.

    Examples
    --------
    >>> read_noise({"flu": {"flu": 0.9, "none": 0.1}, "none": {"none": 1}}, ("flu", "none"))
    ((0.9, 0.1), (0.0, 1.0))
    """
    if noise is None:
        return None
    try:
        table = np.array(_noise_matrix(noise, classes), dtype=np.float64)
    except (TypeError, ValueError):
        table = np.empty(0)
    n = len(classes)
    if table.shape != (n, n) or not (np.all(table >= 0) and np.allclose(table.sum(axis=1), 1)):
        raise InputError(
            f"noise must give each of the classes {list(classes)} (rows) probabilities of being "
            f"recorded as each class (columns), got {noise!r}."
        )
    if np.linalg.matrix_rank(table) < n or np.abs(np.linalg.inv(table)).max() > _MAX_INVERSE:
        raise InputError(
            f"noise must tell the classes {list(classes)} apart, got {noise!r}; merge some."
        )
    return tuple(map(tuple, table.tolist()))


def _noise_matrix(noise: Any, classes: tuple[Any, ...]) -> Any:
    """Return a matrix unchanged, or the rows of a dict of dicts; None if its names are wrong."""
    if not isinstance(noise, Mapping):
        return noise
    if set(noise) != set(classes):
        return None
    rows = [noise[label] for label in classes]
    if not all(isinstance(row, Mapping) and set(row) <= set(classes) for row in rows):
        return None
    return [[row.get(label, 0.0) for label in classes] for row in rows]


def correct_for_noise(values: Floats, noise: ClassNoise) -> Floats:
    """Return T⁻¹ u: values of recorded classes with the mean of ``values`` of the true classes.

    Examples
    --------
    >>> correct_for_noise(np.array([[1.0, 0.0]]), ((0.95, 0.05), (0.05, 0.95))).round(4).tolist()
    [[1.0556, -0.0556]]
    """
    return np.linalg.solve(np.array(noise), values.T).T
