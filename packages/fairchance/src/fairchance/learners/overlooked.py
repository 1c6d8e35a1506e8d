"""Values that the past overlooked: it accepted hardly anybody with them.

A fit that reads a rejection as a hint at a bad outcome would learn from such a past that everybody
with the value is bad, and nobody with it would be accepted ever again. But silence about a value is
no evidence against it. So fits leave out the rejected applicants with an overlooked value, and read
the value as the commonest one of the accepted, as if all else were known about its applicants and
the value were not. Our own outcomes can end that: once applicants with the value turn out bad more
than twice as often as the others that we accepted, beyond chance, the value is read as it is.

With n applicants of whom the past accepted k, and r the share that it accepted of all, a value is
**overlooked** if k / n < r / 10 and P(Binomial(n, r / 3) ≤ k) < n / (10·N), where N is the number
of all applicants. A test at the rate r itself would ask too little: a past that selects on the
outcome accepts few applicants with a value that is mostly bad. And since a column may have many
values, of which some have few acceptances by chance, rare values need more surprise.

Columns are looked at one by one, and a missing value is a value. Numbers are values as well, not
regions: of the youngest applicants a strict past may rightly have accepted hardly any. So a number
is not overlooked if the next smaller or larger one is: that past has cut on the column.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from fairchance.core.decisions import Note
from fairchance.core.saved import saved
from fairchance.people.likelihoods import Likelihood

__all__ = ["NameValue", "NeutralLikelihood", "Overlooked", "OverlookedValue"]
__all__ += ["find_overlooked", "much_worse"]

# The name of a column, and a value of it as JSON can hold it; None if it is missing.
NameValue = Callable[[int, float], tuple[str, str | float | None]]
_RATE = 1 / 10  # of the past's acceptance rate: an overlooked value has less …
_TESTED = 1 / 3  # … and at this part of it so few have a probability …
_SURPRISE = 0.1  # … below this times the share of applicants with the value
_TIMES_AS_BAD = 2.0  # as the others: a value that is worse is read …
_WORSE = 0.001  # … if its outcomes have less than this probability


@saved
@dataclass(frozen=True)
class OverlookedValue:
    """A value of a column that the past hardly ever accepted.

    Attributes
    ----------
    column
        Position of the column.
    value
        The value, or the code of a category; NaN if it is missing.
    read_as
        The commonest other value among the accepted; of several the middle one.
    n_accepted, n_rejected
        How many applicants with the value the past accepted, and how many it rejected.
    """

    column: int
    value: float
    read_as: float
    n_accepted: int
    n_rejected: int

    def has(self, X: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which applicants have the value."""
        x = X[:, self.column]
        return np.asarray(np.isnan(x) if np.isnan(self.value) else x == self.value)


def find_overlooked(
    accepted: NDArray[Any], rejected: NDArray[Any], categorical: Collection[int] = ()
) -> tuple[OverlookedValue, ...]:
    """Return the values that the past overlooked, the least likely first.

    Parameters
    ----------
    accepted, rejected
        Features of the applicants that the past accepted and rejected.
    categorical
        Positions of columns whose values have no order.

    Examples
    --------
    >>> x = np.arange(400)
    >>> people = np.column_stack([x % 7, x % 5]).astype(float)
    >>> accepted = (x % 2 == 0) & (x % 5 != 3)
    >>> find_overlooked(people[accepted], people[~accepted])
    (OverlookedValue(column=1, value=3.0, read_as=2.0, n_accepted=0, n_rejected=80),)
    """
    n_accepted, n_rejected = len(accepted), len(rejected)
    if not (n_accepted and n_rejected):
        return ()
    rate = n_accepted / (n_accepted + n_rejected)
    found: list[tuple[float, OverlookedValue]] = []
    for column, x in enumerate(np.vstack([accepted, rejected]).T):
        values, at = np.unique(x, return_inverse=True)  # all NaN are one value
        n = np.bincount(at, minlength=values.size)
        k = np.bincount(at[:n_accepted], minlength=values.size)
        likely = binom.logcdf(k, n, _TESTED * rate)
        surprising = likely < np.log(_SURPRISE * n / x.size)
        few = surprising & (k < _RATE * rate * n)
        if column not in categorical:
            numbers = few & ~np.isnan(values)
            few[1:] &= ~numbers[:-1] | np.isnan(values[1:])
            few[:-1] &= ~numbers[1:]
        for i in np.flatnonzero(few).tolist():
            others = np.where(np.arange(k.size) == i, 0, k)
            commonest = values[others == others.max()]
            read_as = float(commonest[commonest.size // 2])
            counts = int(k[i]), int(n[i] - k[i])
            found.append(
                (float(likely[i]), OverlookedValue(column, float(values[i]), read_as, *counts))
            )
    # The sort is stable: by column, then by value.
    return tuple(value for _, value in sorted(found, key=lambda pair: pair[0]))


def much_worse(value: OverlookedValue, X: NDArray[Any], outcome: NDArray[np.int8]) -> bool:
    """Return whether our own outcomes show that a value is much worse than the others.

    With n own outcomes of the value, b of them bad, and q the share of bad among our other outcomes
    (with one more good and one more bad), it is if P(Binomial(n, 2q) ≥ b) < .001.

    Examples
    --------
    >>> value = OverlookedValue(0, 1.0, 0.0, 0, 80)
    >>> X, outcome = np.repeat([[0.0], [1.0]], 100, axis=0), np.ones(200, np.int8)
    >>> outcome[:10] = 0
    >>> for n_bad in (30, 40):
    ...     outcome[100:] = np.arange(100) >= n_bad
    ...     print(much_worse(value, X, outcome))
    False
    True
    """
    mine = value.has(X)
    bad_of_others = (np.sum(outcome[~mine] == 0) + 1) / (np.sum(~mine) + 2)
    n_bad = int(np.sum(outcome[mine] == 0))
    likely = binom.sf(n_bad - 1, int(mine.sum()), min(1.0, _TIMES_AS_BAD * bad_of_others))
    return bool(likely < _WORSE)


@saved
@dataclass(frozen=True)
class Overlooked:
    """What a past overlooked.

    Attributes
    ----------
    values
        The values.
    unread
        Those that are read as the commonest of the accepted.
    names
        The column and the value of each as notes have them.
    """

    values: tuple[OverlookedValue, ...] = ()
    unread: tuple[OverlookedValue, ...] = ()
    names: tuple[tuple[str, str | float | None], ...] = ()

    @staticmethod
    def of(
        accepted: Any,
        rejected: Any,
        name: NameValue | None = None,
        categorical: Collection[int] = (),
    ) -> Overlooked:
        """Return what a past overlooked, all of it unread; nothing if features are no array."""
        if not isinstance(accepted, np.ndarray):
            return Overlooked()
        values = find_overlooked(accepted, rejected, categorical)
        names = [
            (f"x{v.column}", v.value) if name is None else name(v.column, v.value) for v in values
        ]
        return Overlooked(values, values, tuple(names))

    def after(self, X: NDArray[Any], outcome: NDArray[np.int8]) -> Overlooked:
        """Return what is still unread after our own outcomes."""
        return replace(self, unread=tuple(v for v in self.values if not much_worse(v, X, outcome)))

    def among(self, X: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which applicants have a value that the past overlooked."""
        found = np.zeros(len(X), np.bool_)
        for value in self.values:
            found |= value.has(X)
        return found

    def neutral(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return features with unread values read as the commonest of the accepted."""
        if self.unread:
            X = X.copy()
        for value in self.unread:
            X[value.has(X), value.column] = value.read_as
        return X

    def scored_by(self, likelihood: Likelihood) -> Likelihood:
        """Return a likelihood of features from one of features with neutral values."""
        return NeutralLikelihood(likelihood, self) if self.unread else likelihood

    def notes(self) -> tuple[Note, ...]:
        """Return a note on each value."""
        notes = []
        for value, (column, said) in zip(self.values, self.names, strict=True):
            facts = {
                "column": column,
                "value": said,
                "n_accepted": value.n_accepted,
                "n_rejected": value.n_rejected,
                "unread": value in self.unread,
            }
            notes.append(Note("overlooked", facts))
        return tuple(notes)


@saved
@dataclass(frozen=True, eq=False)
class NeutralLikelihood:
    """A likelihood that does not tell unread values from the commonest of the accepted."""

    likelihood: Likelihood
    overlooked: Overlooked

    @property
    def reads_group(self) -> bool:
        """Whether the likelihood does."""
        return self.likelihood.reads_group

    def score(self, X: Any, group: NDArray[np.intp]) -> NDArray[np.floating]:
        """Return the likelihood of a good outcome."""
        return self.likelihood.score(self.overlooked.neutral(X), group)
