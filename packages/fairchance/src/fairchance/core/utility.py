"""The utility of decisions: the paper's γ tuple, revenue, accuracy, positive rate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairchance.core.saved import saved
from fairchance.errors import InputError

__all__ = ["Accuracy", "PositiveRate", "Revenue", "Utility"]


@saved
@dataclass(frozen=True)
class Utility:
    """Worth of each (decision, outcome) pair.

    ``Util(f, γ) = Σ γ_ij · P(f = i, Y = j)``: the first index is the decision (1 = accept), the
    second the outcome (1 = good). The paper's section 2.

    Parameters
    ----------
    reject_bad, reject_good, accept_bad, accept_good
        γ00, γ01, γ10 and γ11.

    Examples
    --------
    >>> Utility(1, 0, 0, 1).mean(accepted=[True, True, False], outcomes=[1, 0, 0])
    0.6666666666666666
    """

    reject_bad: float = 0.0
    reject_good: float = 0.0
    accept_bad: float = 0.0
    accept_good: float = 0.0

    def __repr__(self) -> str:
        """Return the call that makes it, by its own name if it has one."""
        if self.gamma == (1, 0, 0, 1):
            return "Accuracy()"
        if self.gamma == (0, 0, 1, 1):
            return "PositiveRate()"
        if self.gamma[:2] == (0, 0) and self.accept_bad < 0 < self.accept_good:
            return f"Revenue(gain={self.accept_good}, loss={-self.accept_bad})"
        gammas = (f"{name}={value}" for name, value in vars(self).items() if value)
        return f"Utility({', '.join(gammas)})"

    def __post_init__(self) -> None:
        if not np.all(np.isfinite(self.gamma)):
            raise InputError(f"every entry of gamma must be a finite number, got {self.gamma}.")

    @property
    def gamma(self) -> tuple[float, float, float, float]:
        """The tuple (γ00, γ01, γ10, γ11)."""
        return (self.reject_bad, self.reject_good, self.accept_bad, self.accept_good)

    @property
    def gain_good(self) -> float:
        """Worth of accepting rather than rejecting a good applicant, γ11 − γ01."""
        return self.accept_good - self.reject_good

    @property
    def gain_bad(self) -> float:
        """Worth of accepting rather than rejecting a bad applicant, γ10 − γ00."""
        return self.accept_bad - self.reject_bad

    def of(self, accepted: ArrayLike, outcomes: ArrayLike) -> NDArray[np.float64]:
        """Return the worth of each decision, given its outcome."""
        table = np.array(self.gamma, dtype=np.float64)
        i = np.asarray(accepted).astype(np.intp)
        j = np.asarray(outcomes).astype(np.intp)
        if not np.all((i | j | 1) == 1):
            raise InputError("accepted and outcomes must be 0 or 1; leave out unknown outcomes.")
        return np.asarray(table[2 * i + j])

    def mean(
        self, accepted: ArrayLike, outcomes: ArrayLike, weight: ArrayLike | None = None
    ) -> float:
        """Return the weighted mean worth, which is ``Util`` of the empirical distribution."""
        weights = None if weight is None else np.asarray(weight, float)
        return float(np.average(self.of(accepted, outcomes), weights=weights))

    def expected(self, acceptance: ArrayLike, probability_good: ArrayLike) -> NDArray[np.float64]:
        """Return each applicant's expected worth, given P(accepted) and P(good)."""
        a, p = np.asarray(acceptance, float), np.asarray(probability_good, float)
        rejected = self.reject_bad * (1 - p) + self.reject_good * p
        return rejected + a * (self.gain_bad * (1 - p) + self.gain_good * p)

    def by_group(
        self, accepted: ArrayLike, outcomes: ArrayLike, group: ArrayLike
    ) -> dict[object, float]:
        """Return ``Util`` conditioned on each group.

        Examples
        --------
        >>> Accuracy().by_group([1, 0, 1], [1, 1, 1], ["a", "a", "b"])
        {'a': 0.5, 'b': 1.0}
        """
        worth, names = self.of(accepted, outcomes), np.asarray(group)
        return {z: float(worth[names == z].mean()) for z in np.unique(names).tolist()}


def Accuracy() -> Utility:  # noqa: N802 - reads as the utility it makes
    """Share of right decisions: γ = (1, 0, 0, 1).

    Examples
    --------
    >>> Accuracy().of([1, 0, 1], [1, 0, 0]).tolist()
    [1.0, 1.0, 0.0]
    """
    return Utility(reject_bad=1.0, accept_good=1.0)


def PositiveRate() -> Utility:  # noqa: N802
    """Share of accepted applicants: γ = (0, 0, 1, 1); the paper prints (0, 1, 0, 1), a slip.

    Examples
    --------
    >>> PositiveRate().of([1, 0, 1], [1, 0, 0]).tolist()
    [1.0, 0.0, 1.0]
    """
    return Utility(accept_bad=1.0, accept_good=1.0)


def Revenue(gain: float, loss: float) -> Utility:  # noqa: N802
    """Money per applicant: ``gain`` for an accepted good one, minus ``loss`` for a bad one.

    Both are amounts, so both are positive; γ = (0, 0, −loss, gain). A good share above
    ``loss / (loss + gain)`` among the accepted earns money.

    Examples
    --------
    >>> utility = Revenue(200, 500)
    >>> utility, utility.gamma
    (Revenue(gain=200, loss=500), (0.0, 0.0, -500, 200))
    """
    if not (gain > 0 and loss > 0):
        raise InputError(
            f"gain and loss are amounts of money and must be positive, "
            f"got gain={gain}, loss={loss}."
        )
    return Utility(accept_bad=-loss, accept_good=gain)
