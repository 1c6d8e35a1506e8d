"""Read a history for ``secondlook plan``: with gaps, ids, text columns and missing outcomes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook.cli.files.rows import truth_values
from secondlook.cli.files.tables import as_text
from secondlook.errors import InputError
from secondlook.lab.datasets.files import check_finite
from secondlook.lab.datasets.reading import (
    as_floats,
    listed,
    pyarrow,
    read_columns,
    read_names,
)
from secondlook.lab.simulate.people import Table

_ID_NAME = re.compile(r"(^|[^a-z])(id|uuid|key)$", re.IGNORECASE)
_SHOWN = 5  # values of an outcome in a sentence


@dataclass(frozen=True)
class PlannedHistory:
    """Applicants with a known outcome, and the rows and columns that are not used.

    Attributes
    ----------
    table
        The applicants.
    rejected, unclear, unread
        If a column has the past decisions: the number of rejected applicants, of rows that say
        neither yes nor no, and of rejected applicants with an outcome, which is not read.
    without_outcome, with_gaps
        The number of other rows without an outcome, and of the rest without a group or a feature.
    left_out
        Columns that are not used as features, with the reasons.
    """

    table: Table
    rejected: int
    unclear: int
    unread: int
    without_outcome: int
    with_gaps: int
    left_out: dict[str, str]

    def lines(self) -> list[str]:
        """Describe the rows and columns that are used, and those that are not."""
        others = {
            "of people who were not accepted": self.rejected,
            "that say neither yes nor no to that": self.unclear,
            "with gaps": self.with_gaps,
        }
        more = "".join(f", {n:,} {what}" for what, n in others.items() if n)
        lines = [
            f"{len(self.table):,} people with a known outcome, "
            f"{int(self.table.outcome.sum()):,} of them good; left out: {self.without_outcome:,} "
            f"rows without an outcome{more}."
        ]
        if self.unread:
            lines.append(f"Not read: {self.unread:,} outcomes of rejected applicants.")
        lines.append(f"Features: {', '.join(self.table.features)}.")
        if self.left_out:
            columns = ", ".join(f"{name} ({why})" for name, why in self.left_out.items())
            lines.append(f"Not used: {columns}; name the features to use with --features.")
        if self.without_outcome or self.rejected:
            lines.append(
                "Planned as if all applicants were like people with a known outcome; if others are "
                "worse, it takes longer and costs more."
            )
        return lines

    def as_dict(self) -> dict[str, Any]:
        """Return the counts as plain data for JSON."""
        return {
            "people": len(self.table),
            "good": int(self.table.outcome.sum()),
            "rows_rejected": self.rejected,
            "rows_unclear": self.unclear,
            "outcomes_not_read": self.unread,
            "rows_without_outcome": self.without_outcome,
            "rows_with_gaps": self.with_gaps,
            "features": list(self.table.features),
            "columns_left_out": self.left_out,
        }


def read_history(
    path: Path,
    *,
    outcome: str,
    group: str,
    good: str = "",
    features: Sequence[str] = (),
    accepted: str = "",
) -> PlannedHistory:
    r"""Read the applicants of a history that have a known outcome.

    Parameters
    ----------
    path
        A file that ends in .csv, .csv.gz or .parquet.
    outcome, group
        Names of its columns. Rows without an outcome are left out.
    good
        The good outcome; may be empty if outcomes are 0 and 1.
    features
        Columns to decide by; if empty, all columns of numbers except ids.
    accepted
        The column of past decisions, as in ``init``: outcomes of rejected applicants are not read.
        If empty, all applicants with an outcome were accepted.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "loans.csv")
    ...     text = "id,income,town,paid\n1,20,X,no\n2,40,Y,yes\n3,30,X,\n4,50,X,yes\n"
    ...     _ = path.write_text(text)
    ...     past = read_history(path, outcome="paid", good="yes", group="town")
    >>> past.table.features, past.table.outcome.tolist(), past.without_outcome, past.left_out
    (('income',), [0, 1, 1], 1, {'id': 'an id'})
    """
    there = read_names(path)
    asked = {"outcome": [outcome], "group": [group], "features": features}
    asked |= {"accepted": [accepted]} if accepted else {}
    for option, names in asked.items():
        for name in names:
            if name not in there:
                raise InputError(
                    f"{path.name} has no column {name!r}, which --{option} names; its columns are "
                    f"{listed(there)}."
                )
    if outcome == group or outcome in features:
        raise InputError(
            f"the outcome {outcome!r} cannot also be --group or among --features; name other "
            f"columns."
        )
    if accepted and accepted in (outcome, group, *features):
        raise InputError(
            f"the column {accepted!r} of past decisions cannot also be --outcome or --group or "
            f"among --features; name other columns."
        )
    rows = read_columns(path, there)
    has_outcome = _has_value(rows[outcome])
    past_decisions = _past_decisions(rows, accepted, path.name)
    used = has_outcome & (past_decisions == "yes")
    if not used.any():
        raise InputError(
            f"no {'accepted ' if accepted else ''}row of {path.name} has an outcome in "
            f"{outcome!r}; name the column that holds outcomes with --outcome."
        )
    known = rows.filter(pyarrow().array(used))
    others = [name for name in there if name not in (outcome, group, accepted)]
    left_out = {} if features else _left_out(rows, known, others)
    chosen = list(features) or [name for name in others if name not in left_out]
    _check_features(known, chosen, path.name)
    whole = _whole(known, [group, *chosen], path.name)
    usable = known.filter(pyarrow().array(whole))
    is_good, word = _good(usable[outcome], outcome, good)
    table = Table(
        name=path.name.split(".")[0],
        source=f"{usable.num_rows:,} rows of the file {path.name}; good is {outcome} = {word}, "
        f"groups are the values of {group}.",
        features=tuple(chosen),
        X=np.column_stack([_finite(usable[name], name) for name in chosen]),
        group=np.array([str(value) for value in usable[group].to_pylist()], np.str_),
        outcome=is_good,
        group_feature=group if group in chosen else None,
    )
    return PlannedHistory(
        table,
        rejected=int((past_decisions == "no").sum()),
        unclear=int((past_decisions == "?").sum()),
        unread=int((has_outcome & (past_decisions == "no")).sum()),
        without_outcome=int((~has_outcome & (past_decisions == "yes")).sum()),
        with_gaps=int((~whole).sum()),
        left_out=left_out,
    )


def _past_decisions(rows: Any, name: str, source: str) -> NDArray[np.str_]:
    """Return "yes", "no" or "?" for each row; raise if most say neither yes nor no."""
    if not name:
        return np.full(rows.num_rows, "yes")
    column, types = rows[name], pyarrow().types
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        kind = pyarrow().string()
    table = as_text(pyarrow().table({name: column.cast(kind)}), [name], source)
    answers = truth_values(table[name])
    answers = np.where(answers == "", "?", answers)
    unclear = np.flatnonzero(answers == "?")
    if 2 * unclear.size > answers.size:
        got = rows[name][int(unclear[0])].as_py()
        raise InputError(
            f"{unclear.size:,} of {answers.size:,} rows of {source} have no past decision in "
            f"{name!r} (--accepted), which must be 1 or 0, true or false, yes or no, y or n, got "
            f"{'nothing' if got is None else repr(got)}; name another column or correct it."
        )
    return answers


def _has_value(column: Any) -> NDArray[np.bool_]:
    """Return which rows have a value that is neither null nor white space."""
    compute, types = pyarrow("compute"), pyarrow().types
    empty = compute.is_null(column, nan_is_null=True)
    if types.is_string(column.type) or types.is_large_string(column.type):
        blank = compute.equal(compute.utf8_trim_whitespace(column), "")
        empty = compute.or_(empty, compute.fill_null(blank, True))
    return ~np.asarray(empty.to_numpy(zero_copy_only=False), np.bool_)


def _check_features(rows: Any, chosen: list[str], source: str) -> None:
    if len(set(chosen)) < len(chosen):
        raise InputError(f"--features must name each column once, got {listed(chosen)}.")
    words = [name for name in chosen if not _is_number(rows[name].type)]
    if words:
        raise InputError(
            f"plan decides by numbers, and {listed(words)} of {source} hold something else; leave "
            f"them out of --features, or turn them into numbers."
        )
    if not chosen:
        raise InputError(
            f"{source} has no column of numbers to decide by, got {listed(rows.column_names)}; add "
            f"one, or name columns with --features."
        )


def _left_out(rows: Any, known: Any, names: list[str]) -> dict[str, str]:
    """Return the columns that cannot be meant as features, with the reasons."""
    reasons = {name: _why_not(rows[name], known[name], name) for name in names}
    return {name: why for name, why in reasons.items() if why}


def _why_not(column: Any, known: Any, name: str) -> str:
    """Return why a column is not used as a feature, or an empty string if it is.

    An id is recognised by all rows of the column, the rest by the rows with an outcome.
    """
    types, kind = pyarrow().types, known.type
    if known.null_count == len(known):
        return "empty"
    if not _is_number(kind):
        return "dates or times" if types.is_temporal(kind) else "text"
    if len(known) > 1 and len(known.unique()) == 1:
        return "the same in every row"
    if not types.is_integer(kind) or len(column.unique()) < len(column):
        return ""
    ends = pyarrow("compute").min_max(column).as_py()
    counted = ends["max"] - ends["min"] == len(column) - 1  # 1, 2, 3, … in any order
    return "an id" if counted or _ID_NAME.search(name) else ""


def _is_number(kind: Any) -> bool:
    types = pyarrow().types
    kinds = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    return any(is_kind(kind) for is_kind in kinds)


def _whole(rows: Any, names: list[str], source: str) -> NDArray[np.bool_]:
    """Return which rows are complete; raise if fewer than half are."""
    there = {name: _has_value(rows[name]) for name in names}
    whole = np.logical_and.reduce(list(there.values()))
    if 2 * int(whole.sum()) < whole.size:
        lacking = sorted(names, key=lambda name: int(there[name].sum()))[:3]
        counts = ", ".join(f"{name!r} ({int((~there[name]).sum()):,} rows)" for name in lacking)
        raise InputError(
            f"{int((~whole).sum()):,} of {whole.size:,} rows of {source} with an outcome lack the "
            f"group or a feature, most often {counts}; name features without gaps with --features."
        )
    return np.asarray(whole, np.bool_)


def _good(column: Any, name: str, good: str) -> tuple[NDArray[np.int8], str]:
    """Return 1 for good and 0 for bad outcomes, and the value that means good."""
    coded = column.combine_chunks()
    if not pyarrow().types.is_dictionary(coded.type):
        coded = coded.dictionary_encode()
    used, codes = np.unique(coded.indices.to_numpy(), return_inverse=True)
    values = [coded.dictionary[int(code)].as_py() for code in used]
    if len(values) != 2:
        shown = listed(values[:_SHOWN]) + ", …" * (len(values) > _SHOWN)
        raise InputError(
            f"the outcome {name!r} (--outcome) must have exactly two values where it is known, got "
            f"{len(values)}: {shown}; leave unknown outcomes empty, or merge some values."
        )
    words = [_plain(value) for value in values]
    if not good and set(words) != {"0", "1"}:
        raise InputError(
            f"the outcome {name!r} has the values {listed(values)}, and it is unclear which is "
            f"good; name the good value with --good-outcome."
        )
    wanted = _plain(good or "1")
    if wanted not in words:
        raise InputError(
            f"--good-outcome must be one of the values {listed(values)} of the outcome {name!r}, "
            f"got {good!r}."
        )
    place = words.index(wanted)
    return (codes == place).astype(np.int8), str(values[place])


def _plain(value: object) -> str:
    """Return the form in which outcomes are compared: 1, 1.0, "1" and true are the same."""
    if isinstance(value, bool):
        return str(int(value))
    word = str(value).strip()
    return word.removesuffix(".0") if re.fullmatch(r"-?\d+\.0", word) else word


def _finite(column: Any, name: str) -> NDArray[np.float64]:
    types = pyarrow().types
    is_bool = types.is_boolean(column.type)
    numbers = as_floats(column.cast(pyarrow().int8()) if is_bool else column)
    check_finite(name, numbers, "--features")
    return numbers
