"""Exploration strategies: the paper's g(x, z; f_t), always positive.

A strategy is a product of a factor of the applicant (a function of features, score and group) and a
factor of the group, frozen from counts when a round is drawn; it may also give each group a share
of the draw. That split lets g of any past round be computed for an applicant who was not in it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairchance.core.saved import saved
from fairchance.errors import InputError

__all__ = [
    "Columns",
    "EqualGroups",
    "FromFunction",
    "GroupShare",
    "Product",
    "ScoreWeighted",
    "Strategy",
    "Uniform",
    "WithoutGroup",
    "as_strategy",
    "check_sizes",
]

Floats = NDArray[np.floating]  # scores come in the precision of the features
Counts = NDArray[np.float64]
Groups = NDArray[np.intp]

_LEAST = 1e-280  # of the largest g: whole numbers are made of ratios to it


class Columns(Protocol):
    """The columns of the features, as rules find them."""

    def find(self, column: str | int, *, ordered: bool = False) -> str | int:
        """Return a column by its position in the features; ``ordered`` refuses text."""

    def code(self, column: str | int, value: Any) -> Any:
        """Return a value of a column as the features hold it."""


class Strategy:
    """Base class of strategies, with g = 1 for all applicants.

    A subclass that reads the features sets ``reads_features = True``. Otherwise it may get None in
    their place, which saves copying them, and a table of scores with a column per round and the
    groups as a column: elementwise arithmetic works for both. ``reads_group`` is whether g depends
    on the group; it is set to True for a class with a factor or a share per group.

    Examples
    --------
    >>> class NearTheMiddle(Strategy):
    ...     def person_factor(self, X, score, group):
    ...         return 0.01 + score * (1 - score)
    >>> NearTheMiddle().person_factor(None, np.array([0.5, 0.9]), None).round(2).tolist()
    [0.26, 0.1]
    """

    reads_features: bool = False
    reads_group: bool = False
    is_limited: bool = False  # whether applicants or money are limited (limits.py)

    def __init_subclass__(cls, **options: Any) -> None:
        """Mark a class with a factor or a share per group as one that reads the group."""
        super().__init_subclass__(**options)
        by_group = "group_factor" in cls.__dict__ or "group_shares" in cls.__dict__
        if by_group and "reads_group" not in cls.__dict__:
            cls.reads_group = True

    def person_factor(self, X: Any, score: Floats, group: Groups) -> Floats:  # noqa: ARG002
        """Return the part of g that depends on the applicant, given f_t's score."""
        return np.ones_like(score)

    def group_factor(self, in_batch: Counts, in_explore: Counts) -> Counts:  # noqa: ARG002
        """Return the part of g that depends on the group, given counts per group."""
        return np.ones_like(in_batch)

    def group_shares(self, in_explore: Counts) -> Counts | None:  # noqa: ARG002
        """Return the share of the draw that each group gets, or None for no quotas."""
        return None

    def without_group(self) -> Strategy:
        """Return the same strategy without access to groups."""
        return WithoutGroup(self)

    def barred(self, X: Any, score: Floats) -> NDArray[np.int8] | None:  # noqa: ARG002
        """Return why each applicant may not be explored, 0 for those who may; None: all may."""
        return None

    def at_most(self, X: Any, n: int) -> int:  # noqa: ARG002
        """Return how many of ``n`` candidates may be explored at most, whichever are drawn."""
        return n

    @property
    def named_values(self) -> tuple[tuple[str | int, Any], ...]:
        """Columns with values that the strategy must tell from all others."""
        return ()

    def for_columns(self, columns: Columns) -> Strategy:  # noqa: ARG002
        """Return the strategy with its columns and their values as the features hold them."""
        return self

    def __mul__(self, other: Strategy) -> Product:
        return Product(self, other)


@saved
@dataclass(frozen=True)
class WithoutGroup(Strategy):
    """Another strategy that sees all applicants in the first group.

    Examples
    --------
    >>> own = FromFunction(lambda X, score, group: score + group)
    >>> own.without_group().person_factor(None, np.array([0.5, 0.5]), np.array([0, 1])).tolist()
    [0.5, 0.5]
    """

    strategy: Strategy

    def __post_init__(self) -> None:
        _check_unlimited(self.strategy, "WithoutGroup(...)")

    @property
    def reads_features(self) -> bool:  # type: ignore[override]
        """Whether the strategy reads the features."""
        return self.strategy.reads_features

    def person_factor(self, X: Any, score: Floats, group: Groups) -> Floats:
        """Return the strategy's factor for the first group."""
        return self.strategy.person_factor(X, score, np.zeros_like(group))


@saved
@dataclass(frozen=True)
class Uniform(Strategy):
    """All applicants in the explore region are equally likely: g = 1.

    Examples
    --------
    >>> Uniform().person_factor(None, np.array([0.1, 0.9]), None).tolist()
    [1.0, 1.0]
    """

    def without_group(self) -> Strategy:
        """Return itself, since it reads nothing; a subclass may."""
        return self if type(self) is Uniform else WithoutGroup(self)


@saved
@dataclass(frozen=True)
class ScoreWeighted(Strategy):
    """Applicants with a higher score are likelier: g = β + (1 − β) · score (the paper's g^clf).

    Parameters
    ----------
    beta
        Part that does not depend on the score, in [0, 1]; the paper's experiments use 0.
    floor
        Scores below it count as this much, so that no applicant is out of reach.

    Examples
    --------
    >>> g = ScoreWeighted(beta=0.5).person_factor(None, np.array([0.1, 1.0]), np.zeros(2, np.intp))
    >>> g.tolist()
    [0.55, 1.0]
    """

    beta: float = 0.0
    floor: float = 1e-6

    def __post_init__(self) -> None:
        if not 0 <= self.beta <= 1:
            raise InputError(f"beta must be in [0, 1], got {self.beta}.")
        if not 0 < self.floor <= 1:
            raise InputError(f"floor must be in (0, 1], got {self.floor}.")

    def without_group(self) -> Strategy:
        """Return itself, since it reads the score only; a subclass may read more."""
        return self if type(self) is ScoreWeighted else WithoutGroup(self)

    def person_factor(self, X: Any, score: Floats, group: Groups) -> Floats:  # noqa: ARG002
        """Return β + (1 − β) · max(score, floor)."""
        g = np.maximum(score, self.floor)
        if self.beta:
            g *= 1 - self.beta
            g += self.beta
        return g


@saved
@dataclass(frozen=True)
class GroupShare(Strategy):
    """Each group's part of the explored is its part of the explore region (the paper's g^fair).

    Parameters
    ----------
    within
        Strategy inside a group.
    reading
        ``"quota"``: the draw is split by the groups' shares, which is what the paper's prose asks
        for. ``"product"``: g = within · P(Z=z | EXPLORE_t), the paper's formula, under which a
        large group gets more than its share even if all scores are the same.

    Examples
    --------
    >>> GroupShare().group_shares(np.array([30.0, 10.0])).tolist()
    [0.75, 0.25]
    """

    within: Strategy = field(default_factory=ScoreWeighted)
    reading: Literal["quota", "product"] = "quota"

    @property
    def reads_features(self) -> bool:  # type: ignore[override]
        """Whether the strategy within reads the features."""
        return self.within.reads_features

    def __post_init__(self) -> None:
        if self.reading not in ("quota", "product"):
            raise InputError(f"reading must be 'quota' or 'product', got {self.reading!r}.")
        _check_unlimited(self.within, "GroupShare(...)")
        if self.within.group_shares(np.ones(2)) is not None:
            raise InputError(
                f"within must not have group quotas of its own, got {self.within!r}; "
                f"give it reading='product'."
            )

    def person_factor(self, X: Any, score: Floats, group: Groups) -> Floats:
        """Return the inner strategy's factor."""
        return self.within.person_factor(X, score, group)

    def group_factor(self, in_batch: Counts, in_explore: Counts) -> Counts:
        """Return the inner strategy's factor, times the group's share in the product reading."""
        inner = self.within.group_factor(in_batch, in_explore)
        if self.reading == "quota":
            return inner
        return inner * _shares(np.maximum(in_explore, 1.0))

    def group_shares(self, in_explore: Counts) -> Counts | None:
        """Return each group's share of the explore region in the quota reading."""
        return _shares(in_explore) if self.reading == "quota" else None


@saved
@dataclass(frozen=True)
class EqualGroups(Strategy):
    """About as many explored from each group: g = 1 / P(Z=z | S_t).

    Examples
    --------
    >>> EqualGroups().group_factor(np.array([75.0, 25.0]), np.array([40.0, 20.0])).tolist()
    [1.3333333333333333, 4.0]
    """

    def group_factor(self, in_batch: Counts, in_explore: Counts) -> Counts:  # noqa: ARG002
        """Return one over the group's share of the batch; an absent group counts as one."""
        return 1.0 / _shares(np.maximum(in_batch, 1.0))


@saved
@dataclass(frozen=True)
class Product(Strategy):
    """g of one strategy times g of another; written ``a * b``.

    Examples
    --------
    >>> ScoreWeighted() * EqualGroups()
    Product(left=ScoreWeighted(beta=0.0, floor=1e-06), right=EqualGroups())
    """

    left: Strategy
    right: Strategy

    def __post_init__(self) -> None:
        for factor in (self.left, self.right):
            _check_unlimited(factor, "a * b")

    @property
    def reads_features(self) -> bool:  # type: ignore[override]
        """Whether either factor reads the features."""
        return self.left.reads_features or self.right.reads_features

    @property
    def reads_group(self) -> bool:  # type: ignore[override]
        """Whether either factor depends on the group."""
        return self.left.reads_group or self.right.reads_group

    def without_group(self) -> Strategy:
        """Return the product of both without the group."""
        if type(self) is not Product:
            return WithoutGroup(self)
        return Product(self.left.without_group(), self.right.without_group())

    def person_factor(self, X: Any, score: Floats, group: Groups) -> Floats:
        """Return the product of both factors."""
        left = self.left.person_factor(X, score, group)
        return left * self.right.person_factor(X, score, group)

    def group_factor(self, in_batch: Counts, in_explore: Counts) -> Counts:
        """Return the product of both factors."""
        left = self.left.group_factor(in_batch, in_explore)
        return left * self.right.group_factor(in_batch, in_explore)

    def group_shares(self, in_explore: Counts) -> Counts | None:
        """Return the quotas of the one that has them."""
        left, right = self.left.group_shares(in_explore), self.right.group_shares(in_explore)
        if left is not None and right is not None:
            raise InputError(
                "two strategies with group quotas cannot be multiplied; "
                "give one of them reading='product'."
            )
        return right if left is None else left


@dataclass(frozen=True)
class FromFunction(Strategy):
    """A user's own g: any function of (X, score, group) that is positive everywhere.

    It gets features, the likelihood of a good outcome, and the number of the group in ``groups_``,
    with a row per applicant, and returns a number per applicant.

    A classifier with a function can be neither saved nor put on a ledger. Subclass ``Strategy``
    for a strategy that is recorded by name.

    Examples
    --------
    >>> def near_the_middle(X, score, group):
    ...     return 0.01 + score * (1 - score)
    >>> own = as_strategy(near_the_middle)
    >>> own.person_factor(None, np.array([0.5, 0.9]), np.array([0, 1])).round(2).tolist()
    [0.26, 0.1]
    """

    function: Callable[[Any, Floats, Groups], ArrayLike]
    reads_features = True

    def __post_init__(self) -> None:
        try:
            signature = inspect.signature(self.function)
        except (TypeError, ValueError):  # some functions written in C have none
            return
        try:
            signature.bind(None, None, None)
        except TypeError:
            name = getattr(self.function, "__name__", type(self.function).__name__)
            raise InputError(
                f"{name}{signature} cannot be a strategy, which is called with (X, score, group); "
                f"change its arguments."
            ) from None

    def person_factor(self, X: Any, score: Floats, group: Groups) -> Floats:
        """Call the function and check the shape of its answer."""
        own = group if group.flags.writeable else group.copy()  # the user may work on it
        g = np.asarray(self.function(X, score, own), dtype=np.float64)
        if g.shape != score.shape:
            raise InputError(
                f"a strategy must return one number per applicant, shape {score.shape}, "
                f"got shape {g.shape}."
            )
        return g


def as_strategy(strategy: Strategy | Callable[..., ArrayLike] | None) -> Strategy:
    """Return a strategy; None means score-weighted, a function becomes ``FromFunction``."""
    if strategy is None:
        return ScoreWeighted()
    if isinstance(strategy, Strategy):
        return strategy
    if callable(strategy) and not isinstance(strategy, type):
        return FromFunction(strategy)
    raise InputError(
        f"strategy must be a Strategy or a function of (X, score, group), got {strategy!r}."
    )


def check_sizes(g: Floats, strategy: Strategy) -> None:
    """Raise unless g is positive and finite on every candidate."""
    if g.size == 0 or (np.isfinite(g.max()) and g.min() > 0):  # a NaN fails both comparisons
        if g.size and g.max() < _LEAST:
            raise InputError(
                f"a strategy must return at least {_LEAST} for a candidate, got at most {g.max()} "
                f"from {strategy!r}; nothing was decided, multiply it by a constant."
            )
        return
    counts = {
        "zero": int((g == 0).sum()),
        "negative": int((g < 0).sum()),
        "NaN": int(np.isnan(g).sum()),
        "infinite": int(np.isinf(g).sum()),
    }
    wrong = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    raise InputError(
        f"a strategy must return a positive finite number for every candidate, got {wrong} among "
        f"{g.size} from {strategy!r}; nothing was decided, add a small positive constant to it."
    )


def _check_unlimited(part: Strategy, whole: str) -> None:
    """Raise if a part of a strategy has limits, which the whole would ignore."""
    if part.is_limited:
        raise InputError(
            f"limits go around a whole strategy, got {part!r} inside; write Limited({whole}, ...)."
        )


def _shares(counts: Counts) -> Counts:
    total = float(counts.sum())
    return counts / total if total > 0 else np.full_like(counts, 1.0 / counts.size)
