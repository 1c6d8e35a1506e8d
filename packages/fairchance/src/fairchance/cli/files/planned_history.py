"""Read a history for ``fairchance plan``, with the features that ``init`` would find in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairchance.cli.files.kinds import as_dates, as_numbers, find_columns, with_codes_as_text
from fairchance.cli.files.rows import TRUTH_VALUES, truth_values
from fairchance.cli.files.tables import read_sent
from fairchance.errors import InputError
from fairchance.extras import arrow
from fairchance.simulate.people import Table
from fairchance.words import counted, listed, people

if TYPE_CHECKING:
    from fairchance.ledger.encoding import FeatureColumns

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
    without_outcome, unusable
        The number of other rows without an outcome, and of the rest without a group, or with a
        word or infinity in a column of numbers.
    features
        The columns that are used; text becomes several columns of the table.
    left_out
        Columns that are not used as features, with the reasons.
    """

    table: Table
    rejected: int
    unclear: int
    unread: int
    without_outcome: int
    unusable: int
    features: tuple[str, ...]
    left_out: dict[str, str]

    def lines(self) -> list[str]:
        """Describe the rows and columns that are used, and those that are not."""
        others = {
            "of people who were not accepted": self.rejected,
            "that say neither yes nor no to that": self.unclear,
            "that cannot be used": self.unusable,
        }
        more = "".join(f", {n:,} {what}" for what, n in others.items() if n)
        lines = [
            f"{people(len(self.table))} with a known outcome, "
            f"{int(self.table.outcome.sum()):,} of them good; left out: "
            f"{counted(self.without_outcome, 'row')} without an outcome{more}."
        ]
        if self.unread:
            lines.append(f"Not read: {counted(self.unread, 'outcome')} of rejected applicants.")
        lines.append(f"Features: {', '.join(self.features)}.")
        if self.left_out:
            columns = ", ".join(f"{name!r} {why}" for name, why in self.left_out.items())
            lines.append(f"Left out: {columns}; name the features to use with --features.")
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
            "rows_unusable": self.unusable,
            "features": list(self.features),
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
        A file that ends in .csv, .parquet or .xlsx.
    outcome, group
        Names of its columns. Rows without an outcome are left out.
    good
        The good outcome; may be empty if outcomes are 0 and 1.
    features
        Columns to decide by; if empty, all other columns except identifiers.
    accepted
        The column of past decisions, as in ``init``: outcomes of rejected applicants are not read.
        If empty, all applicants with an outcome were accepted.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "loans.csv")
    ...     text = "income,town,paid\n20,X,no\n40,Y,yes\n30,X,\n50,X,yes\n"
    ...     _ = path.write_text(text)
    ...     past = read_history(path, outcome="paid", good="yes", group="town")
    >>> past.features, past.table.outcome.tolist(), past.without_outcome
    (('income',), [0, 1, 1], 1)
    """
    sent = read_sent(str(path), text=(outcome, group, *([accepted] if accepted else [])))
    rows = with_codes_as_text(sent.table, sent.as_written)
    there = rows.column_names
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
    has_outcome = rows[outcome].is_valid().to_numpy()
    past_decisions = _past_decisions(rows, accepted, path.name)
    used = has_outcome & (past_decisions == "yes")
    if not used.any():
        raise InputError(
            f"no {'accepted ' if accepted else ''}row of {path.name} has an outcome in "
            f"{outcome!r}; name the column that holds outcomes with --outcome."
        )
    others = [name for name in features or there if name not in (outcome, group, accepted)]
    columns, found = find_columns(rows, others, chosen=features, source=path.name)
    X, strange = _features(rows, columns)
    usable = used & ~strange & rows[group].is_valid().to_numpy()
    _check_most_usable(usable, used, path.name)
    is_good, word = _good(rows[outcome].filter(arrow().array(usable)), outcome, good)
    names, numbers = _as_numbers(X.filter(arrow().array(usable)))
    table = Table(
        name=path.stem,
        source=f"{int(usable.sum()):,} rows of the file {path.name}; good is {outcome} = {word}, "
        f"groups are the values of {group}.",
        features=names,
        X=numbers,
        group=np.array(rows[group].filter(arrow().array(usable)).to_pylist(), np.str_),
        outcome=is_good,
    )
    return PlannedHistory(
        table,
        rejected=int((past_decisions == "no").sum()),
        unclear=int((past_decisions == "?").sum()),
        unread=int((has_outcome & (past_decisions == "no")).sum()),
        without_outcome=int((~has_outcome & (past_decisions == "yes")).sum()),
        unusable=int((used & ~usable).sum()),
        features=columns.names or (),
        left_out={column.name: column.left_out for column in found if column.left_out},
    )


def _past_decisions(rows: Any, name: str, source: str) -> NDArray[np.str_]:
    """Return "yes", "no" or "?" for each row; raise if most say neither yes nor no."""
    if not name:
        return np.full(rows.num_rows, "yes")
    answers = truth_values(rows[name])
    answers = np.where(answers == "", "?", answers)
    unclear = np.flatnonzero(answers == "?")
    if 2 * unclear.size > answers.size:
        got = rows[name][int(unclear[0])].as_py()
        raise InputError(
            f"{unclear.size:,} of {answers.size:,} rows of {source} have no past decision in "
            f"{name!r} (--accepted), which must be {TRUTH_VALUES}, got "
            f"{'nothing' if got is None else repr(got)}; name another column or correct it."
        )
    return answers


def _features(rows: Any, columns: FeatureColumns) -> tuple[Any, NDArray[np.bool_]]:
    """Return the features, and the rows with a word or infinity in a column of numbers."""
    features, unusable = {}, np.zeros(rows.num_rows, np.bool_)
    for name in columns.names or ():
        if name in columns.texts:
            features[name], strange = rows[name], np.empty(0, np.int64)
        elif name in columns.dates:
            features[name], strange = as_dates(rows[name])
        else:
            features[name], strange = as_numbers(rows[name])
            unusable |= np.isinf(features[name])
        unusable[strange] = True
    return arrow().table(features), unusable


def _as_numbers(X: Any) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """Return features as numbers, with their names; text becomes columns of 0 and 1."""
    from fairchance.people.columns import TableColumns  # noqa: PLC0415 - slow to import

    columns = TableColumns.of(X)
    numbers, expansion = columns.codes(X), columns.expansion(allow_missing=False)
    names = [X.column_names[at] for at in columns.kept]
    if expansion is not None:
        owners = [names[at] for at in expansion.owners]
        names = [f"{name} {owners[:at].count(name)}" for at, name in enumerate(owners)]
        numbers = expansion.numbers(numbers)
    return tuple(names), numbers.astype(np.float64, copy=False)


def _check_most_usable(usable: NDArray[np.bool_], used: NDArray[np.bool_], source: str) -> None:
    n, of = int((used & ~usable).sum()), int(used.sum())
    if 2 * n > of:
        raise InputError(
            f"{n:,} of {of:,} rows of {source} with an outcome lack the group, or have a word or "
            f"infinity in a column of numbers; correct the file, or name features with --features."
        )


def _good(column: Any, name: str, good: str) -> tuple[NDArray[np.int8], str]:
    """Return 1 for good and 0 for bad outcomes, and the value that means good."""
    values = np.array([_plain(value) for value in column.to_pylist()], np.str_)
    words = np.unique(values).tolist()
    if len(words) != 2:
        shown = listed(words[:_SHOWN]) + ", …" * (len(words) > _SHOWN)
        raise InputError(
            f"the outcome {name!r} (--outcome) must have exactly two values where it is known, got "
            f"{len(words)}: {shown}; leave unknown outcomes empty, or merge some values."
        )
    if not good and words != ["0", "1"]:
        raise InputError(
            f"the outcome {name!r} has the values {listed(words)}, and it is unclear which is "
            f"good; name the good value with --good-outcome."
        )
    wanted = _plain(good or "1")
    if wanted not in words:
        raise InputError(
            f"--good-outcome must be one of the values {listed(words)} of the outcome {name!r}, "
            f"got {good!r}."
        )
    return (values == wanted).astype(np.int8), wanted


def _plain(value: str) -> str:
    """Return the form in which outcomes are compared: 1, 1.0 and true are the same."""
    from fairchance.ledger.config import Labels  # noqa: PLC0415 - an extra

    word = Labels.canonical(value)
    return {"true": "1", "false": "0"}.get(word, word)
