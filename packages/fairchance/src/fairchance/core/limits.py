"""Limits on exploration: risk, exclusion rules, money.

Exploring applicants can hurt them. ``Limited`` adds limits to any strategy. A barred applicant has
g = 0 wherever g is read: in the draw, in the log of past rounds, in coverage. The promise of
exploration then covers the others only, and the record of a round has the number of barred
applicants and the reasons.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairchance.core.saved import saved
from fairchance.core.strategies import Columns, Counts, Floats, Groups, Strategy, as_strategy
from fairchance.errors import InputError
from fairchance.frames import as_array, is_missing

__all__ = ["REASONS", "Above", "Below", "Column", "ColumnNames", "Either", "Limited", "OneOf"]
__all__ += ["ExclusionRule"]

Mask = NDArray[np.bool_]

_EXCLUDED, _AMOUNT, _RISK = 1, 2, 3  # 0 means not barred
REASONS = {_EXCLUDED: "excluded", _AMOUNT: "amount", _RISK: "risk"}
_ROUNDING = 1e-12  # three times 0.1 is 0.3: sums of decimal fractions pass their limit by rounding


@dataclass(frozen=True)
class ColumnNames:
    """The columns of features that are kept as they came; ``names`` is None for an array."""

    names: tuple[str, ...] | None

    def find(self, column: str | int, *, ordered: bool = False) -> str | int:  # noqa: ARG002
        """Return a column by its position among these names."""
        if isinstance(column, int) or self.names is None:
            return column
        if column not in self.names:
            raise InputError(
                f"there is no column {column!r}; name one of {', '.join(map(repr, self.names))}."
            )
        return self.names.index(column)

    def code(self, column: str | int, value: Any) -> Any:  # noqa: ARG002
        """Return the value."""
        return value


@saved
@dataclass(frozen=True)
class Column:
    """One column of the features, by its name or its position from 0.

    Examples
    --------
    >>> named = ColumnNames(("income", "age"))
    >>> Column("age").found(named).values(np.array([[30.0, 17.0]])).tolist()
    [17.0]
    """

    name: str | int

    def __post_init__(self) -> None:
        if isinstance(self.name, bool) or not isinstance(self.name, str | int):
            raise InputError(
                f"a column is given by its name or its position from 0, got {self.name!r}."
            )

    def found(self, columns: Columns) -> Column:
        """Return the column by its position in the features; text is refused."""
        return Column(columns.find(self.name, ordered=True))

    def values(self, X: Any) -> NDArray[Any]:
        """Return the column of an array or frame."""
        if isinstance(self.name, int) and not 0 <= self.name < X.shape[1]:
            raise InputError(
                f"a column's position must be from 0 to {X.shape[1] - 1}, got {self.name}."
            )
        if isinstance(X, np.ndarray):
            if isinstance(self.name, str):
                raise InputError(
                    f"the column {self.name!r} has no name in the array that fit got; give its "
                    f"position."
                )
            return np.asarray(X[:, self.name])
        frame = nw.from_native(X, eager_only=True)
        name = frame.columns[self.name] if isinstance(self.name, int) else self.name
        return as_array(nw.to_native(frame[name]))


class ExclusionRule(ABC):
    """Base class of exclusion rules; ``a | b`` excludes applicants that either rule excludes.

    Columns are given by their name or position. Subclass it for a rule of your own; a frozen
    dataclass can be saved with a classifier.
    """

    @abstractmethod
    def excludes(self, X: Any) -> Mask:
        """Return which applicants must not be explored."""

    @property
    def named_values(self) -> tuple[tuple[str | int, Any], ...]:
        """Columns with values that the rule must tell from all others."""
        return ()

    def for_columns(self, columns: Columns) -> ExclusionRule:  # noqa: ARG002
        """Return the rule with its columns and their values as the features hold them."""
        return self

    def __or__(self, other: ExclusionRule) -> Either:
        return Either(self, other)


@dataclass(frozen=True)
class _OfColumn(ExclusionRule):
    column: str | int

    def excludes(self, X: Any) -> Mask:
        """Return which applicants the rule excludes; those with a missing value are excluded."""
        values = Column(self.column).values(X)
        missing = is_missing(values)
        hit = np.ones(values.shape, np.bool_)
        hit[~missing] = self._hits(values[~missing])
        return hit

    @abstractmethod
    def _hits(self, values: NDArray[Any]) -> Any: ...


@dataclass(frozen=True)
class _Limit(_OfColumn):
    value: Any

    def for_columns(self, columns: Columns) -> ExclusionRule:
        """Return the rule with its column and its value as the features hold them."""
        at, value = columns.find(self.column, ordered=True), columns.code(self.column, self.value)
        return replace(self, column=at, value=value)


@saved
@dataclass(frozen=True)
class Below(_Limit):
    """Exclude applicants with a value below a number or date in a column, or without a value.

    Examples
    --------
    >>> Below(0, 18).excludes(np.array([[17.0], [18.0], [np.nan]])).tolist()
    [True, False, True]
    """

    def _hits(self, values: NDArray[Any]) -> Any:
        return _numbers(values) < self.value


@saved
@dataclass(frozen=True)
class Above(_Limit):
    """Exclude applicants with a value above a number or date in a column, or without a value.

    Examples
    --------
    >>> (Below(0, 18) | Above(0, 80)).excludes(np.array([[17.0], [40.0], [81.0]])).tolist()
    [True, False, True]
    """

    def _hits(self, values: NDArray[Any]) -> Any:
        return _numbers(values) > self.value


@saved
@dataclass(frozen=True)
class OneOf(_OfColumn):
    """Exclude applicants with one of some values in a column, or without a value.

    Examples
    --------
    >>> OneOf(0, (2, 3)).excludes(np.array([[1.0], [3.0]])).tolist()
    [False, True]
    """

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        if isinstance(self.values, str):
            raise InputError(f"values must be a tuple or list, got the word {self.values!r}.")
        object.__setattr__(self, "values", tuple(self.values))

    @property
    def named_values(self) -> tuple[tuple[str | int, Any], ...]:
        """The column with each of the values."""
        return tuple((self.column, value) for value in self.values)

    def for_columns(self, columns: Columns) -> ExclusionRule:
        """Return the rule with its column and its values as the features hold them."""
        values = tuple(columns.code(self.column, value) for value in self.values)
        return replace(self, column=columns.find(self.column), values=values)

    def _hits(self, values: NDArray[Any]) -> Any:
        return np.logical_or.reduce(
            [values == value for value in self.values] or [values != values]
        )


@saved
@dataclass(frozen=True)
class Either(ExclusionRule):
    """Exclude applicants that either of two rules excludes; written ``a | b``."""

    left: ExclusionRule
    right: ExclusionRule

    def excludes(self, X: Any) -> Mask:
        """Return which applicants must not be explored."""
        return self.left.excludes(X) | self.right.excludes(X)

    @property
    def named_values(self) -> tuple[tuple[str | int, Any], ...]:
        """The named values of both rules."""
        return self.left.named_values + self.right.named_values

    def for_columns(self, columns: Columns) -> ExclusionRule:
        """Return both rules with their columns and values as the features hold them."""
        return Either(self.left.for_columns(columns), self.right.for_columns(columns))


@saved
@dataclass(frozen=True)
class Limited(Strategy):
    """A strategy with limits on risk, applicants and money.

    Parameters
    ----------
    strategy
        The strategy among the others: a ``Strategy``, or a function of (X, score, group); None
        means ``ScoreWeighted()``.
    max_risk
        Bars applicants with a predicted risk, 1 − f_t's score, above it. As the model learns,
        applicants can pass the cap either way. In a round that follows the past policy the score is
        that policy's probability of acceptance; ``first_round="learned"`` avoids that.
    exclude
        Bars applicants by a rule such as ``Below("age", 18)``, or by a function of X that returns
        True or False for each row; a classifier with a function cannot be saved.
    exposure
        Money: the amounts of a round's explored applicants never sum to more. A round explores no
        more applicants than fit if those with the largest amounts were drawn, so that the draw's
        probabilities stay exact. An applicant with a larger amount is barred. Not for
        ``CertifiedClassifier``.
    amount
        The amount at stake for each applicant: a number for all, a column (its name, or
        ``Column(2)``), or a function of X. Needed by ``exposure``.

    Examples
    --------
    >>> careful = Limited(max_risk=0.8, exclude=Below(0, 18), exposure=1000, amount=Column(1))
    >>> X = np.array([[17.0, 500], [30, 500], [40, 700], [50, 2000]])
    >>> why = careful.barred(X, np.array([0.5, 0.5, 0.1, 0.5]))
    >>> [REASONS.get(code) for code in why.tolist()]
    ['excluded', None, 'risk', 'amount']
    """

    strategy: Any = None
    max_risk: float | None = None
    exclude: ExclusionRule | Callable[[Any], ArrayLike] | None = None
    exposure: float | None = None
    amount: float | str | Column | Callable[[Any], ArrayLike] | None = None
    is_limited = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "strategy", as_strategy(self.strategy))
        if self.strategy.is_limited:
            raise InputError(
                "a Limited strategy must not contain another; give all limits to one of them."
            )
        if isinstance(self.amount, str):
            object.__setattr__(self, "amount", Column(self.amount))
        if self.max_risk is not None and not (_is_number(self.max_risk) and 0 <= self.max_risk < 1):
            raise InputError(
                f"max_risk must be in [0, 1), or None for no cap, got {self.max_risk!r}."
            )
        if self.exclude is not None and not isinstance(self.exclude, ExclusionRule):
            _check_function("exclude", self.exclude, "a rule such as Below('age', 18)")
        self._check_money()

    def _check_money(self) -> None:
        if (self.exposure is None) != (self.amount is None):
            raise InputError(
                f"exposure and amount go together, got exposure={self.exposure!r} and "
                f"amount={self.amount!r}; give both."
            )
        if self.exposure is None:
            return
        if not (_is_number(self.exposure) and 0 < self.exposure < np.inf):
            raise InputError(f"exposure must be a positive amount a round, got {self.exposure!r}.")
        if _is_number(self.amount):
            _check_amounts(np.array([self.amount], np.float64))
        elif not isinstance(self.amount, Column):
            _check_function("amount", self.amount, "a number, the name of a column, a Column")

    @property
    def reads_features(self) -> bool:  # type: ignore[override]
        """Whether the strategy or a limit reads the features."""
        by_money = self.amount is not None and not _is_number(self.amount)
        return self.strategy.reads_features or self.exclude is not None or by_money

    @property
    def reads_group(self) -> bool:  # type: ignore[override]
        """Whether the strategy reads the group; limits do not."""
        return bool(self.strategy.reads_group)

    def without_group(self) -> Strategy:
        """Return the same limits around the strategy without the group."""
        return replace(self, strategy=self.strategy.without_group())

    @property
    def named_values(self) -> tuple[tuple[str | int, Any], ...]:
        """The named values of the rule and the strategy."""
        of_rule = self.exclude.named_values if isinstance(self.exclude, ExclusionRule) else ()
        return of_rule + tuple(self.strategy.named_values)

    def for_columns(self, columns: Columns) -> Strategy:
        """Return the strategy with columns and values as the features hold them."""
        exclude, amount = self.exclude, self.amount
        return replace(
            self,
            strategy=self.strategy.for_columns(columns),
            exclude=exclude.for_columns(columns) if isinstance(exclude, ExclusionRule) else exclude,
            amount=amount.found(columns) if isinstance(amount, Column) else amount,
        )

    def person_factor(self, X: Any, score: Floats, group: Groups) -> Floats:
        """Return the strategy's factor, 0 for barred applicants and those a rule cannot judge."""
        g = self.strategy.person_factor(X, score, group)
        return np.asarray(np.where(self._why_not(X, score, strict=False) == 0, g, 0))

    def group_factor(self, in_batch: Counts, in_explore: Counts) -> Counts:
        """Return the strategy's factor."""
        return self.strategy.group_factor(in_batch, in_explore)  # type: ignore[no-any-return]

    def group_shares(self, in_explore: Counts) -> Counts | None:
        """Return the strategy's shares, given how many of each group may be explored."""
        return self.strategy.group_shares(in_explore)  # type: ignore[no-any-return]

    def barred(self, X: Any, score: Floats) -> NDArray[np.int8]:
        """Return why each applicant may not be explored, 0 for those who may."""
        return self._why_not(X, score, strict=True)

    def at_most(self, X: Any, n: int) -> int:
        """Return the largest k such that even the k largest amounts of candidates fit."""
        if self.exposure is None:
            return n
        largest_first = np.sort(np.broadcast_to(self._amounts(X, n, strict=True), n))[::-1]
        return int(np.searchsorted(np.cumsum(largest_first), self._limit, side="right"))

    @property
    def _limit(self) -> float:
        return np.inf if self.exposure is None else self.exposure * (1 + _ROUNDING)

    def _why_not(self, X: Any, score: Floats, *, strict: bool) -> NDArray[np.int8]:
        why = np.zeros(score.shape, np.int8)
        if self.max_risk is not None:
            why[score < 1 - self.max_risk] = _RISK
        if self.exposure is not None:
            amounts = self._amounts(X, score.shape[0], strict=strict)
            fits = (amounts >= 0) & (amounts <= self._limit)
            why = np.where(fits, why, np.int8(_AMOUNT))
        if self.exclude is not None:
            why[self._excluded(X, score.shape[0], strict=strict)] = _EXCLUDED
        return why

    def _excluded(self, X: Any, n: int, *, strict: bool) -> Mask:
        ask = self.exclude.excludes if isinstance(self.exclude, ExclusionRule) else self.exclude
        answer = _answer("exclude", ask, X, n)
        missing = is_missing(answer)
        if strict and missing.any():
            raise InputError(
                f"exclude must return True or False for each applicant, got NaN or None for "
                f"{int(missing.sum())} of {n}."
            )
        values = answer[~missing]
        if not np.all((values == 0) | (values == 1)):
            raise InputError(
                f"exclude must return True or False for each applicant, got "
                f"{values[values != 1].tolist()[:3]}."
            )
        excluded = np.ones(n, np.bool_)
        excluded[~missing] = values == 1
        return excluded

    def _amounts(self, X: Any, n: int, *, strict: bool) -> NDArray[np.float64]:
        if _is_number(self.amount):
            return np.array(self.amount, np.float64)
        if isinstance(self.amount, Column):
            amounts = _numbers(self.amount.values(X))
        else:
            amounts = _numbers(_answer("amount", self.amount, X, n))
        if strict:
            _check_amounts(amounts)
        return amounts


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _check_function(name: str, value: Any, others: str) -> None:
    if not callable(value) or isinstance(value, type):
        raise InputError(f"{name} must be {others} or a function of X, got {value!r}.")


def _numbers(values: NDArray[Any]) -> NDArray[np.float64]:
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"only numbers can be compared or summed ({error}); use OneOf for words."
        ) from error


def _check_amounts(amounts: NDArray[np.float64]) -> None:
    wrong = ~(np.isfinite(amounts) & (amounts >= 0))
    if wrong.any():
        raise InputError(
            f"amounts must be finite and 0 or more, got {amounts[wrong][0].item()}, "
            f"{int(wrong.sum())} such in all; fill them in."
        )


def _answer(name: str, function: Any, X: Any, n: int) -> NDArray[Any]:
    answer = as_array(function(X))
    if answer.shape != (n,):
        raise InputError(
            f"{name} must return one value per applicant, shape ({n},), got shape {answer.shape}."
        )
    return answer
