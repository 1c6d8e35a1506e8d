"""The map of applicants that a log says nothing about, and what learning about them would cost.

A shallow tree over the features divides applicants into **slices** that differ in how likely
acceptance was. It is fitted to √p, because a chance of 0 differs from one of 5 % more than 60 %
differs from 65 %: nothing can be learned about the first. Each slice is a list of conditions that
select exactly the applicants it counts.

A slice is *unknown* if fewer than ``needed`` outcomes of its applicants are known. If there are
several slices, each has at least four times as many applicants, so that none is unknown only
because it is small. The expected number of acceptances Σp tells a policy that never accepts from
one that was unlucky, and pending outcomes are counted before new ones are asked for. A slice that
is known may still have applicants without any chance of acceptance; they are counted, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeRegressor

from fairchance.audit.estimates import fit_bad
from fairchance.audit.evaluate import SMALL
from fairchance.audit.log import DecisionLog
from fairchance.core.utility import Accuracy, Utility
from fairchance.errors import InputError
from fairchance.frames import to_frame
from fairchance.notebook import Displayed
from fairchance.people.columns import TableColumn
from fairchance.words import audits as words

__all__ = ["Condition", "UnknownMap", "UnknownSlice", "unknown"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Rows = NDArray[np.intp]

_CATEGORIES = 20  # of one column that the tree may ask for: the most frequent
_TIMES = 4  # as many applicants as outcomes that are needed, in each of several slices
_SMALLEST = 0.01  # share of applicants that a leaf of the tree has at least


@dataclass(frozen=True)
class Condition:
    """What a slice asks of one column.

    Attributes
    ----------
    column
        Its name; ``"x0"``, ``"x1"``, … if columns have none.
    kind
        ``"number"``, ``"flag"``, ``"date"`` or ``"category"``.
    low, high
        Numbers from ``low`` to below ``high``; days since 1970 for dates, 0 and 1 for truth values.
    missing
        Whether applicants without a value are in the slice, too.
    is_
        The category, if one is asked for.
    is_not
        Categories that are left out.

    Examples
    --------
    >>> print(Condition("income", "number", high=1200.0, missing=True))
    income below 1,200 or missing
    >>> print(Condition("purpose", "category", is_not=("car", "tv")))
    purpose not car, not tv
    """

    column: str
    kind: str
    low: float = -math.inf
    high: float = math.inf
    missing: bool = False
    is_: str | None = None
    is_not: tuple[str, ...] = ()

    def __str__(self) -> str:
        return words.condition(self)


@dataclass(frozen=True)
class UnknownSlice:
    """Applicants who are alike, and what the record says about them.

    Attributes
    ----------
    conditions
        What its applicants have in common; none if they are all applicants.
    n_people, share
        Number of applicants, and their share of all.
    chance, largest_chance
        Mean and largest probability of acceptance: logged, or over all rounds' policies if the log
        has the mixture.
    n_without_chance
        Applicants with a probability of 0.
    expected
        Expected number of acceptances, the sum of the probabilities.
    n_accepted, n_outcomes, n_pending
        Number of accepted applicants, of known outcomes, and of outcomes still to come.
    unknown
        Whether fewer outcomes are known than are needed.
    still_needed
        Outcomes that are needed beyond those known and pending; 0 if the slice is known.
    bad_share
        Share of bad among its applicants who would take the loan, corrected by propensities; if
        fewer than 10 of its outcomes are known, what a model of all known outcomes says.
    extrapolated
        Whether the model says so.
    cost_at_most, cost_expected
        Loss on bad applicants among the outcomes still needed: if all are bad, and by
        ``bad_share``.
    rounds
        Rounds until then, with as many applicants in a round as the log has on average.
    cost_per_round
        Loss in each of these rounds if all applicants that it explores in the slice are bad.
    of_groups
        For each group, the share of its applicants who are in this slice.
    """

    conditions: tuple[Condition, ...]
    n_people: int
    share: float
    chance: float
    largest_chance: float
    n_without_chance: int
    expected: float
    n_accepted: int
    n_outcomes: int
    n_pending: int
    unknown: bool
    still_needed: int
    bad_share: float
    extrapolated: bool
    cost_at_most: float
    cost_expected: float
    rounds: int
    cost_per_round: float
    of_groups: Mapping[str, float]

    def __str__(self) -> str:
        return " and ".join(map(str, self.conditions)) or "all applicants"


@dataclass(frozen=True)
class UnknownMap(Displayed):
    """The map of applicants that a log says nothing about.

    Attributes
    ----------
    slices
        Every applicant is in one of them. Unknown ones come first, the largest at the top.
    needed
        Outcomes with which a slice is known.
    n_people
        Number of applicants.
    n_erased
        Applicants who are left out, since their features were erased.
    backend
        The kind of frame that the log came in.
    """

    slices: tuple[UnknownSlice, ...]
    needed: int
    n_people: int
    n_erased: int
    backend: str

    @property
    def unknown(self) -> tuple[UnknownSlice, ...]:
        """The slices that are unknown."""
        return tuple(each for each in self.slices if each.unknown)

    @property
    def of_groups(self) -> dict[str, float]:
        """For each group, the share of its applicants who are in unknown slices."""
        groups = self.slices[0].of_groups
        return {name: sum(each.of_groups[name] for each in self.unknown) for name in groups}

    def verdict(self) -> str:
        """Return which applicants the record says nothing about, in a few sentences."""
        return words.unknown_verdict(self)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return all slices as columns; a column for each group has its share in the slice."""
        rows = []
        for each in self.slices:
            row = {"slice": str(each)} | vars(each)
            del row["conditions"], row["of_groups"]
            rows.append(row | {f"share of {name}": v for name, v in each.of_groups.items()})
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}

    def to_frame(self, backend: str | None = None) -> Any:
        """Return all slices as a frame of the log's kind, or of a named kind."""
        return to_frame(self.columns(), self.backend if backend is None else backend)


def unknown(
    log: DecisionLog,
    *,
    utility: Utility | None = None,
    needed: int = 30,
    explore: float = 0.1,
    depth: int = 3,
) -> UnknownMap:
    """Return the map of applicants that the record says nothing about.

    Parameters
    ----------
    log
        The decisions, with features.
    utility
        What a bad acceptance costs; None counts 1.
    needed
        Outcomes with which a slice is known.
    explore
        The share of an unknown slice's applicants that exploration would accept.
    depth
        Depth of the tree, so that a slice has at most this many conditions.

    Examples
    --------
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> income = rng.integers(500, 4000, 3000)
    >>> propensity = np.where(income < 1200, 0.0, 0.9)
    >>> accepted = rng.random(3000) < propensity
    >>> outcome = np.where(accepted, rng.random(3000) < 0.8, np.nan)
    >>> log = DecisionLog(accepted, propensity, outcome, X=pd.DataFrame({"income": income}))
    >>> print(unknown(log).verdict())
    The record says nothing about 592 of 3,000 applicants (19.7 %): income below 1,200. Having \
30 outcomes of each slice takes 30 more, which cost at most 30, and at most 30 in a round.
    """
    for name, value in (("needed", needed), ("depth", depth)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(f"{name} must be a whole number of 1 or more, got {value!r}.")
    if not 0 < explore <= 1:
        raise InputError(f"explore must be a share above 0 and at most 1, got {explore}.")
    kept = log if not log.erased.any() else log.select(~log.erased)
    chance = kept.propensity if kept.mixture is None else kept.mixture
    found = [*_slices(kept, chance, needed, depth)]
    model = None
    if any(kept.known[rows].sum() < SMALL for _, rows in found):
        model = fit_bad(kept, kept.known, np.random.default_rng(0))
    loss = max(0.0, -(Accuracy() if utility is None else utility).gain_bad)
    n_rounds = np.unique(kept.round).size
    yields = explore * (kept.taken.sum() + 1) / (kept.accepted.sum() + 1)  # loans
    slices = []
    for conditions, rows in found:
        p, known = chance[rows], kept.known[rows]
        n_outcomes, n_pending = int(known.sum()), int(kept.pending[rows].sum())
        if n_outcomes >= SMALL:
            bad, weight = 1 - kept.outcome[rows][known], 1 / p[known]
            bad_share = float(weight @ bad / weight.sum())
        else:
            assert model is not None
            bad_share = float(model[rows].mean())
        still = max(0, needed - n_outcomes - n_pending)
        in_a_round = yields * rows.size / n_rounds
        slices.append(
            UnknownSlice(
                conditions=conditions,
                n_people=rows.size,
                share=rows.size / len(kept),
                chance=float(p.mean()),
                largest_chance=float(p.max()),
                n_without_chance=int((p == 0).sum()),
                expected=float(p.sum()),
                n_accepted=int(kept.accepted[rows].sum()),
                n_outcomes=n_outcomes,
                n_pending=n_pending,
                unknown=n_outcomes < needed,
                still_needed=still,
                bad_share=bad_share,
                extrapolated=n_outcomes < SMALL,
                cost_at_most=still * loss,
                cost_expected=still * loss * bad_share,
                rounds=math.ceil(still * n_rounds / (yields * rows.size)),
                cost_per_round=min(still, in_a_round) * loss,
                of_groups=dict(_of_groups(kept, rows)),
            )
        )
    slices.sort(key=lambda each: (not each.unknown, -each.n_people))
    return UnknownMap(tuple(slices), needed, len(kept), len(log) - len(kept), log.backend)


def _of_groups(log: DecisionLog, rows: Rows) -> Iterator[tuple[str, float]]:
    """Yield for each group the share of its applicants who are among some rows."""
    for column in log.groups:
        for code, name in enumerate(column.names):
            members = column.codes == code
            inside = int(members[rows].sum())
            yield f"{column.attribute} {name}", inside / max(1, int(members.sum()))


@dataclass(frozen=True, eq=False)
class _Question:
    """A column as the tree reads it.

    Attributes
    ----------
    column
        The column of the table.
    values
        Its numbers, or 1 where it has the category.
    category
        The category, if it is about one.
    """

    column: TableColumn
    values: Floats
    category: str | None = None

    @property
    def ranks(self) -> Floats:
        """Its values by rank, as the tree computes in single precision."""
        known = ~np.isnan(self.values)
        ranks = np.full(self.values.shape, np.nan)
        ranks[known] = np.unique(self.values[known], return_inverse=True)[1]
        return ranks

    def side(self, above: Condition | None, split: float, missing: bool, left: bool) -> Condition:
        """Return the condition on one side of a split, given that on the same column above it.

        ``left`` is the side of values below ``split``, ``missing`` whether it has missing ones.
        """
        column = self.column
        name = column.name if isinstance(column.name, str) else f"x{column.name}"
        known = above or Condition(name, column.kind, missing=bool(np.isnan(self.values).any()))
        if self.category is not None:
            if left:
                return replace(known, is_not=(*known.is_not, self.category))
            return replace(known, is_=self.category, is_not=())
        known = replace(known, missing=known.missing and missing)
        if left:
            return replace(known, high=min(known.high, split))
        return replace(known, low=max(known.low, split))


def _questions(log: DecisionLog, smallest: int) -> Iterator[_Question]:
    """Yield what the tree may ask."""
    columns, codes = log.table
    for at, values in zip(columns.kept, codes.T, strict=True):
        column = columns.columns[at]
        if column.kind != "category":
            yield _Question(column, values + column.origin)
            continue
        counts = np.bincount(values[~np.isnan(values)].astype(np.intp))[: len(column.categories)]
        for code in np.argsort(-counts, kind="stable")[:_CATEGORIES]:
            if counts[code] >= smallest:
                yield _Question(
                    column, (values == code).astype(np.float64), column.categories[code]
                )


def _slices(
    log: DecisionLog, chance: Floats, needed: int, depth: int
) -> Iterator[tuple[tuple[Condition, ...], Rows]]:
    """Yield slices that differ in the chance of acceptance, with their applicants."""
    smallest = max(_TIMES * needed, math.ceil(_SMALLEST * len(log)))
    questions = [*_questions(log, smallest)]
    all_rows = np.arange(len(log))
    if not questions:  # categories that hardly anyone has
        yield (), all_rows
        return
    ranks = np.stack([question.ranks for question in questions], axis=1)
    fitted = DecisionTreeRegressor(max_depth=depth, min_samples_leaf=smallest, random_state=0)
    tree = fitted.fit(ranks, np.sqrt(chance)).tree_

    def below(
        node: int, rows: Rows, asked: dict[str | int, Condition]
    ) -> Iterator[tuple[tuple[Condition, ...], Rows]]:
        if tree.children_left[node] < 0:
            yield tuple(asked.values()), rows
            return
        question, rank = questions[tree.feature[node]], ranks[rows, tree.feature[node]]
        to_left = bool(tree.missing_go_to_left[node])
        left = (rank <= tree.threshold[node]) | (np.isnan(rank) & to_left)
        less, more = question.values[rows[left]], question.values[rows[~left]]
        split = math.inf  # if only missing values are on the right
        if not np.isnan(more).all():
            split = _rounded(np.nanmax(less), np.nanmin(more), question.column.kind)
        for child, side, is_left in (
            (tree.children_left[node], rows[left], True),
            (tree.children_right[node], rows[~left], False),
        ):
            key = question.column.name
            condition = question.side(asked.get(key), split, to_left == is_left, is_left)
            yield from below(child, side, asked | {key: condition})

    yield from below(0, all_rows, {})


def _rounded(least: float, most: float, kind: str) -> float:
    """Return the number above ``least`` and up to ``most`` with the fewest digits; a whole day.

    Examples
    --------
    >>> [_rounded(*ends, "number") for ends in ((1180, 1250), (-3.2, 1.5), (0.312, 0.3571), (2, 3))]
    [1200.0, 0.0, 0.35, 3.0]
    """
    if kind == "date":
        return float(math.floor(most)) if math.floor(most) > least else float(most)
    if not math.isfinite(most - least):
        return float(most)
    if least < 0 <= most:
        return 0.0
    for digits in range(-math.ceil(math.log10(max(-least, most))), 18):
        number = float(round(math.floor(most * 10.0**digits) / 10.0**digits, digits))
        if least < number <= most:
            return number
    return float(most)
