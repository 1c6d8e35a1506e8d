"""Rows of a table that cannot be used, each with what is wrong, and the file that they go to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, count, repeat
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairchance.cli.files.tables import check_writable, is_same_file, write_new_table
from fairchance.errors import InputError
from fairchance.extras import arrow
from fairchance.words import counted, shortened
from fairchance.words.applicants import objection_advice, objection_words

__all__ = [
    "Cause",
    "Mistake",
    "Refusal",
    "Refusals",
    "check_share",
    "commonest",
    "merged_causes",
    "refused_counts",
    "refused_message",
    "refused_path",
    "too_many_message",
    "write_pieces",
]

_SHOWN_CAUSES = 5  # in a summary; the file has all
_NAMED_CAUSES = 3  # in a sentence
_LONGEST = 100  # characters of a value that are kept
_SENTENCES = {
    # Ids
    "no_id": "{column} is empty or holds a NUL character",
    "twice": "{column} is in the file {value} times",
    "ambiguous_id": "{column} {value} has white space at an end, an invisible character, or a form "
    "other than Unicode's NFC, so that one applicant could have two ids",
    "not_whole": "{column} must be a whole number of 64 bits, as in the history, got {value}",
    "decided_in_round": "the id was decided on in round {value}; a new application needs a new id",
    "decided_in_history": "the id is in the history; a new application needs a new id",
    "other_content": "the id was decided on with other values; a new application needs a new id",
    # Decisions that were made elsewhere
    "other_round": "the program has no policy of round {value}",
    "other_policy": "the decision is by the policy {value}, and that of the round is {allowed}",
    "does_not_follow": "the decision does not follow from the policy of the round, which {value}",
    "maybe_erased": "the applicant may be an erased one of a batch in this file; send new "
    "applicants in a file of their own",
    # Features and groups
    "missing": "{column} is missing, which it never is in the history",
    "missing_refused": "{column} is missing, and [columns] missing is 'refuse'",
    "too_long": "{column} has {value} characters; the most is {allowed}",
    "nul": "{column} holds a NUL character",
    "not_a_number": "{column} must be a number, got {value}",
    "formatted": "{column} must be a number without separators or units, got {value}",
    "infinite": "{column} is infinite",
    "lost_zeros": "{column} is {value}, a code that the history has with zeros in front; write the "
    "column as text",
    "not_a_date": "{column} must be a date such as 2031-01-31, got {value}",
    "no_group": "{column} is empty, and every applicant needs a group unless group_mode of a "
    "program is 'blind' or 'audit'",
    "unknown_group": "the group {value} was not in the history, which has {allowed}",
    "lone_group": "the group {value} has no other applicant, and a group needs two",
    "no_person": "{column} is empty, and must say who applied",
    # Past decisions and outcomes
    "no_decision": "{column} is empty, and must be {allowed}",
    "not_a_decision": "{column} must be {allowed}, got {value}; name further words for decisions "
    "in [decisions]; applicants who are not decided on yet may be left out",
    "barred_and_accepted": "the lender's own process accepts the applicant, who is barred",
    "pending": "the applicant was accepted and has no outcome yet",
    "withdrawn": "the outcome will never be known, so it teaches nothing",
    "not_a_label": "the outcome {value} is none of {allowed}",
    "two_outcomes": "the file has different outcomes for this id",
    "history_final": "outcomes of the history are final in a certified program",
    "take_up_over": "the decision is too old to count as not taken; withdraw the applicant, who "
    "then counts as bad",
    "taken": "an outcome is on record, so the loan was taken",
    "withdrawn_final": "the applicant was withdrawn, which is final in a certified program",
    "outcome_final": "an outcome is on record, and it cannot be withdrawn in a certified program",
    "other_outcome": "the record has another outcome, and corrections are not allowed",
}
_OF_WORDS = {"not_a_label", "not_a_decision"}  # codes of words that a configuration may define
# Codes with a number or a word of ours as their value.
_NUMBERS = {"twice", "decided_in_round", "other_round", "does_not_follow", "too_long"}


class Mistake(NamedTuple):
    """What is wrong with a row.

    Attributes
    ----------
    code
        What kind of mistake it is: one of ``_SENTENCES``, or of an ``Objection``.
    column
        The column with it; empty if it is not in one.
    value
        What the row has there; may be empty.
    allowed
        What is allowed there, the same for all rows; of an objection, what cannot be done.
    option
        The option that lets the row pass.
    others
        Whether other rows with the same mistake have other values.
    """

    code: str
    column: str = ""
    value: str = ""
    allowed: str = ""
    option: str = ""
    others: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data, without the fields that do not apply."""
        return {name: value for name, value in self._asdict().items() if value}

    @property
    def words(self) -> str:
        """The mistake as a sentence."""
        if self.code not in _SENTENCES:
            text = f"ids that {objection_words(self.code, self.value)} cannot be {self.allowed}"
            advice = objection_advice(self.code).format(option=f"--{self.option}")
            return f"{text}; {advice}" if self.option else text
        value = shortened(self.value)
        if self.code in _NUMBERS:
            value = self.value
        elif self.code == "ambiguous_id":
            value = ascii(self.value)
        value += " (and others)" if self.others else ""
        return _SENTENCES[self.code].format(
            column=repr(self.column), value=value, allowed=self.allowed
        )


class Refusal(NamedTuple):
    """A refused row: its number from 1, its id if it has one, and what is wrong."""

    row: int
    id: str | None
    mistakes: tuple[Mistake, ...]


class Cause(NamedTuple):
    """Mistakes that rows have in common, with the values of the first row, and their number."""

    mistakes: tuple[Mistake, ...]
    n: int


class Refusals:
    """Rows of a table that cannot be used, with the reasons.

    Parameters
    ----------
    table
        The table as it was read.
    ids
        The id of each row, None if it has none.
    as_written
        Returns the same rows as they were written, if the table was parsed from text.
    text
        Columns that are text whatever they look like.

    Examples
    --------
    >>> import pyarrow as pa
    >>> refused = Refusals(pa.table({"id": ["a", "b"], "age": [31, None]}), ["a", "b"])
    >>> refused.add([1], "no_group", "age")
    >>> [(one.row, one.id, one.mistakes[0].code) for one in refused], refused.usable.tolist()
    ([(2, 'b', 'no_group')], [True, False])
    >>> refused.to_table().select(["id", "reason_code", "reason"]).to_pylist()[0]
    {'id': 'b', 'reason_code': 'no_group', 'reason': "'age' is empty, and every applicant needs a
    group unless group_mode of a program is 'blind' or 'audit'"}
    """

    def __init__(
        self,
        table: Any,
        ids: list[str | None],
        as_written: Callable[[], Any] | None = None,
        text: Iterable[str] = (),
    ) -> None:
        self.table = table
        self._as_written, self._text = as_written, set(text)
        self._ids = ids
        self.n_before = 0  # rows of the file before these
        self._mistakes: dict[int, list[Mistake]] = {}

    def __len__(self) -> int:
        return len(self._mistakes)

    def __iter__(self) -> Iterator[Refusal]:
        for row in sorted(self._mistakes):
            yield Refusal(self.n_before + row + 1, self._ids[row], tuple(self._mistakes[row]))

    def add(
        self,
        rows: Iterable[int],
        code: str,
        column: str = "",
        values: Iterable[str] | None = None,
        *,
        allowed: str = "",
        option: str = "",
    ) -> None:
        """Refuse rows, counted from 0, for the same mistake, with a value for each row."""
        for row, value in zip(rows, repeat("") if values is None else values, strict=False):
            mistake = Mistake(code, column, value[:_LONGEST], allowed, option)
            self._mistakes.setdefault(int(row), []).append(mistake)

    def causes(self) -> list[Cause]:
        """Return the mistakes with the number of rows, the commonest first.

        Each unknown word for an outcome or a decision is a cause of its own, since each may have
        another meaning.

        Examples
        --------
        >>> import pyarrow as pa
        >>> refused = Refusals(pa.table({"age": ["9,5", "31", "8,1"]}), ["a", "b", "c"])
        >>> refused.add([0, 2], "not_a_number", "age", ["9,5", "8,1"])
        >>> (cause,) = refused.causes()
        >>> cause.n, cause.mistakes[0].words
        (2, "'age' must be a number, got '9,5' (and others)")
        """
        found: dict[tuple[Mistake, ...], list[tuple[Mistake, ...]]] = defaultdict(list)
        for refusal in self:
            found[_kinds(refusal.mistakes)].append(refusal.mistakes)
        causes = [Cause(_common(all_of), len(all_of)) for all_of in found.values()]
        return sorted(causes, key=lambda cause: -cause.n)

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Whether each row can be used."""
        usable = np.ones(self.table.num_rows, np.bool_)
        usable[list(self._mistakes)] = False
        return usable

    def stop(self, source: str) -> None:
        """Raise an error for the first refused row, if there is one."""
        for refusal in self:
            raise InputError(
                f"{source}, row {refusal.row} (id {refusal.id!r}): {_words(refusal.mistakes)}; "
                f"{len(self)} of {self.table.num_rows} rows cannot be used, correct them or leave "
                f"out --strict."
            )

    def to_table(self) -> Any:
        """Return the refused rows as they were written, with columns for codes and reasons.

        The columns have names of their own: rows that were refused before have reasons already.
        """
        whole = self.table if self._as_written is None else self._as_written()
        table = whole.take(arrow().array(sorted(self._mistakes), arrow().int64()))
        ends = chain(("", "_refused"), (f"_refused_{number}" for number in count(2)))
        there = set(table.column_names)
        end = next(end for end in ends if not {f"reason_code{end}", f"reason{end}"} & there)
        codes = [", ".join(one.code for one in refusal.mistakes) for refusal in self]
        table = table.append_column(f"reason_code{end}", arrow().array(codes, arrow().string()))
        reasons = [_words(refusal.mistakes) for refusal in self]
        return table.append_column(f"reason{end}", arrow().array(reasons, arrow().string()))

    def write(self, path: str, *taken: str) -> str:
        """Write the refused rows, if there are any, and return the path of the file.

        An existing file is never replaced (``write_new_table``); ``taken`` names files that this
        command will write to.
        """
        if not len(self):
            return path
        numbers = [name for name in self.table.column_names if name not in self._text]
        return write_new_table(self.to_table(), path, numbers=numbers, taken=taken)


def _words(mistakes: Iterable[Mistake]) -> str:
    return "; ".join(one.words for one in mistakes)


def _kinds(mistakes: tuple[Mistake, ...]) -> tuple[Mistake, ...]:
    """Return what the mistakes of rows with the same cause have in common."""
    return tuple(
        one._replace(value=one.value if one.code in _OF_WORDS else "", others=False)
        for one in mistakes
    )


def _common(rows: list[tuple[Mistake, ...]]) -> tuple[Mistake, ...]:
    """Return the mistakes of the first row, marked if other rows have other values."""
    return tuple(
        first._replace(others=any(row[at].others or row[at].value != first.value for row in rows))
        for at, first in enumerate(rows[0])
    )


def check_share(most: float) -> None:
    """Raise unless ``--most-refused`` is a share."""
    if not 0 <= most <= 1:
        raise InputError(f"--most-refused must be a share of the rows from 0 to 1, got {most:g}.")


def too_many_message(
    refusals: Refusals, most: float, source: str, *, decided: int = 0
) -> str | None:
    """Say how many rows are refused if it is more than a share of them; None otherwise.

    ``decided`` rows of applicants who were decided on in earlier rounds do not count.
    """
    n, of = len(refusals) - decided, refusals.table.num_rows - decided
    if n <= most * of:
        return None
    return (
        f"{n:,} of {of:,} rows of {source} are refused, and --most-refused allows a share of "
        f"{most:g}"
    )


def refused_counts(refused: Refusals | Sequence[Cause], path: str | None) -> dict[str, Any]:
    """Return how many rows are refused, why, and where they are written, as plain data."""
    causes = refused.causes() if isinstance(refused, Refusals) else refused
    n = sum(cause.n for cause in causes)
    return {
        "rows": n,
        "file": path if n else None,
        "causes": [
            {"rows": cause.n, "mistakes": [one.as_dict() for one in cause.mistakes]}
            for cause in causes
        ],
    }


def merged_causes(known: Sequence[Cause], refused: Iterable[Refusals]) -> list[Cause]:
    """Return causes with those of further pieces, the commonest first.

    Examples
    --------
    >>> import pyarrow as pa
    >>> causes = []
    >>> for round in ("1", "2"):
    ...     refused = Refusals(pa.table({"id": ["a"]}), ["a"])
    ...     refused.add([0], "decided_in_round", values=[round])
    ...     causes = merged_causes(causes, [refused])
    >>> causes[0].n, causes[0].mistakes[0].words
    (2, 'the id was decided on in round 1 (and others); a new application needs a new id')
    """
    merged: dict[tuple[Mistake, ...], Cause] = {}
    for cause in chain(known, *(some.causes() for some in refused)):
        key = _kinds(cause.mistakes)
        same = [merged[key], cause] if key in merged else [cause]
        merged[key] = Cause(_common([one.mistakes for one in same]), sum(one.n for one in same))
    return sorted(merged.values(), key=lambda cause: -cause.n)


def write_pieces(refused: Sequence[Refusals], path: str, text: Iterable[str]) -> str:
    """Write the refused rows of several pieces of a file; return the path."""
    if not refused:
        return path
    table = arrow().concat_tables([one.to_table() for one in refused], promote_options="permissive")
    numbers = [name for name in table.column_names if name not in text]
    return write_new_table(table, path, numbers=numbers)


def commonest(refusals: Refusals, most: int = _NAMED_CAUSES) -> str:
    """Return the commonest mistakes as part of a sentence.

    Applicants who were decided on in earlier rounds are left out, in words, if there are others.

    Examples
    --------
    >>> import pyarrow as pa
    >>> refused = Refusals(pa.table({"age": [None, 31, None]}), ["a", "b", "c"])
    >>> refused.add([0, 2], "infinite", "age")
    >>> commonest(refused)
    "most often because 'age' is infinite (2 rows)"
    """
    causes = refusals.causes()
    wrong = [
        cause for cause in causes if {one.code for one in cause.mistakes} != {"decided_in_round"}
    ]
    named = (wrong or causes)[:most]
    reasons = (f"{_words(cause.mistakes)} ({counted(cause.n, 'row')})" for cause in named)
    rest = "apart from ids that were decided on before, " if 0 < len(wrong) < len(causes) else ""
    return f"{rest}most often because {', then '.join(reasons)}"


def refused_message(refused: dict[str, Any]) -> list[str]:
    """Return ``refused_counts`` as lines, the commonest causes first."""
    if not refused["rows"]:
        return []
    causes = refused["causes"]
    place = "standard output" if refused["file"] == "-" else refused["file"]
    where = "" if place is None else f", with the reasons in {place}"
    lines = [f"{counted(refused['rows'], 'row')} refused{where}:"]
    for cause in causes[:_SHOWN_CAUSES]:
        mistakes = [Mistake(**one) for one in cause["mistakes"]]
        lines.append(f"  {cause['rows']:,} × {_words(mistakes)}")
    rest = sum(cause["rows"] for cause in causes[_SHOWN_CAUSES:])
    return [*lines, f"  {rest:,} for other reasons"] if rest else lines


def refused_path(given: str | None, source: str, taken_by: str | None = None) -> str:
    """Return where refused rows go: the given file, or a file named after the input.

    Refused rows cannot go to standard output if another option, ``taken_by``, writes there.

    Examples
    --------
    >>> refused_path(None, "2031/applicants.csv"), refused_path("no.csv", "-")
    ('applicants.refused.csv', 'no.csv')
    """
    if given is None:
        return f"{'input' if source == '-' else Path(source).stem}.refused.csv"
    if given == "-" and taken_by is not None:
        raise InputError(
            f"{taken_by} and --refused - both write to standard output; name a file with --refused."
        )
    if "-" not in (given, source) and is_same_file(given, source):
        raise InputError(f"refused rows would replace the input {source!r}; choose another file.")
    check_writable(given)
    return given
