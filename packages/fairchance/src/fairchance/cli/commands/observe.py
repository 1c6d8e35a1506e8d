"""``fairchance observe``: record the outcomes in a file.

The command takes four transactions: one finds the program, one compares the file with the record,
one records, one counts for the summary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from fairchance.cli.files.refusals import (
    Refusals,
    refused_counts,
    refused_message,
    refused_path,
)
from fairchance.cli.files.rows import (
    check_there,
    outcome_states,
    refuse_unknown_labels,
    roles_and_labels,
)
from fairchance.cli.files.tables import check_output, file_name, read_listed
from fairchance.cli.input_checks import as_recorded
from fairchance.cli.options import (
    By,
    Json,
    LedgerUrl,
    ProgramName,
    Refused,
    RequestName,
    Strict,
    Trusted,
    check_name,
    errors,
    open_program,
    progress,
    recorded_already,
    repeated,
    repeated_message,
)
from fairchance.cli.output import print_json, print_lines
from fairchance.people.cells import trimmed
from fairchance.words import counted, people
from fairchance.words.batches import unlike_expected_words
from fairchance.words.checks import mistakes_so_far
from fairchance.words.rounds import restart_cost

if TYPE_CHECKING:  # an extra, and slow to import
    from fairchance.ledger.base import Standing
    from fairchance.ledger.objections import Request
    from fairchance.ledger.program import Program, ProgramView

__all__ = ["observe"]

_SHOWN_CORRECTIONS = 3
_DONE = "given an outcome"


def observe(
    outcomes: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Ids and outcomes: .csv, .parquet, .xlsx, or - for csv on standard input.",
        ),
    ],
    ledger: LedgerUrl,
    program: ProgramName = None,
    request: RequestName = None,
    refused: Refused = None,
    strict: Strict = False,
    corrections: Annotated[
        bool,
        typer.Option(
            "--corrections/--no-corrections",
            help="Record outcomes that contradict the record as corrections, or refuse them.",
        ),
    ] = True,
    unlike_expected: Annotated[
        bool,
        typer.Option(
            "--unlike-expected",
            help="Record outcomes even if they contradict what was expected, and record that.",
        ),
    ] = False,
    trusted: Trusted = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Record outcomes of accepted applicants: at any time later, in any order and in parts.

    Empty outcomes are skipped: the applicants go on waiting. Outcomes that are recorded already
    change nothing. An outcome that contradicts the record is recorded as a correction; if it was
    tested, the correction drops all certificates and testing begins again. Rows that cannot be
    used are written to a file with the reasons. If the outcomes would fit much better with good and
    bad exchanged, nothing is recorded.

    Example: fairchance observe outcomes.csv --ledger sqlite:///lender.db
    """
    with errors(json):
        check_name("request", request)
        refused_file = refused_path(refused, outcomes, "--json" if json else None)
        check_output(refused_file)
        opened = open_program(ledger, program, by, trusted)
        with progress("reading outcomes", json), opened.reading() as view:
            sent = _read_outcomes(view, outcomes, request, corrections=corrections)
            last_entry = view.reader.head().number
        if strict:
            sent.refusals.stop(file_name(outcomes))
        refused_file = sent.refusals.write(refused_file)
        with progress(f"recording {counted(int(sent.is_new.sum()), 'outcome')}", json):
            restarts = _record(opened, sent, request, unlike_expected=unlike_expected)
        with (
            recorded_already(
                "everything is recorded and only this summary is missing",
                "the same command again prints it",
            ),
            opened.reading() as view,
        ):
            result = sent.counts() | {
                "certificates_dropped": _dropped_since(view, last_entry),
                "testing_began_again": restarts,
                "unlike_expected": _unlike_since(view, last_entry),
                "so_far": view.summary(money=False).so_far(),
                "refused": refused_counts(sent.refusals, refused_file),
                "repeats": None if sent.recorded is None else repeated(sent.recorded),
            }
    if json:
        print_json(result)
    else:
        print_lines(_message(result), to_stderr=refused_file == "-")
    if len(sent.refusals) and not sent.ids.size and not any(sent.empty.values()):
        raise typer.Exit(2)


# Reading outcomes


@dataclass(frozen=True)
class SentOutcomes:
    """The usable outcomes of a file, compared with the record; one for each applicant.

    Attributes
    ----------
    ids, states
        Ids and outcomes.
    before
        The outcomes on record, "" if there is none.
    in_history
        Which applicants belong to the history.
    empty
        How many applicants have an empty outcome in the file and no other: those who wait for one
        (``not_yet_known``), have one on record (``known_already``), or are not accepted
        (``not_accepted``). Nothing is recorded for them.
    ignored
        Columns that were not read.
    refusals
        The refused rows.
    recorded
        The request that the file repeats; its outcomes count as on record.
    """

    ids: NDArray[Any]
    states: NDArray[np.str_]
    before: NDArray[np.str_]
    in_history: NDArray[np.bool_]
    empty: dict[str, int]
    ignored: list[str]
    refusals: Refusals
    recorded: Request | None

    @property
    def is_new(self) -> NDArray[np.bool_]:
        """Which outcomes differ from the record."""
        return np.asarray(self.states != self.before, np.bool_)

    def counts(self) -> dict[str, Any]:
        """Return how many outcomes are new, corrected and known already, as plain data."""
        from fairchance.ledger.base import STATES  # noqa: PLC0415 - an extra

        first = self.before == ""
        return {
            "recorded": {state: int((first & (self.states == state)).sum()) for state in STATES},
            "corrections": int((self.is_new & ~first).sum()),
            "corrected": self._corrected(),
            "known_already": int((~self.is_new).sum()),
            "pending": self.empty["not_yet_known"],
            "empty": self.empty,
            "ignored_columns": self.ignored,
        }

    def _corrected(self) -> list[dict[str, Any]]:
        rows = np.flatnonzero(self.is_new & (self.before != ""))
        columns = (self.ids, self.before, self.states, self.in_history)
        return [
            dict(zip(("id", "before", "now", "history"), values, strict=True))
            for values in zip(*(column[rows].tolist() for column in columns), strict=True)
        ]


def _read_outcomes(
    view: ProgramView, path: str, request: str | None, *, corrections: bool
) -> SentOutcomes:
    """Read a file of outcomes and compare it with the record.

    Outcomes that contradict the record are refused unless ``corrections`` are allowed.
    """
    roles, labels = roles_and_labels(view)
    file, column = read_listed(path, roles.id, text=(roles.outcome,), may_be_empty=True)
    table = file.table
    check_there(table, (column, roles.outcome), file_name(path))
    plain = trimmed(table, column)[column].to_pylist()
    meant = as_recorded(view.reader, table[column].to_pylist(), plain)
    ids = np.array([name or "" for name in meant], np.object_)
    states = outcome_states(table[roles.outcome], labels)
    refusals = Refusals(table, ids.tolist(), file.as_written, (column, roles.outcome))
    no_id = np.array([not name or "\0" in name for name in ids], np.bool_)
    refusals.add(np.flatnonzero(no_id), "no_id", column)
    refuse_unknown_labels(table[roles.outcome], states, labels, refusals)
    empty = _count_empty(view, ids, states, refusals)
    rows = np.flatnonzero(refusals.usable & (states != ""))
    rows = rows[~_refuse_contradictory(ids, states, rows, refusals)]
    names, first, place = np.unique(ids[rows], return_index=True, return_inverse=True)
    sent = states[rows][first]
    standing = view.reader.standing(names.tolist())
    before = np.array([state or "" for state in standing.states], np.str_)
    from fairchance.ledger.objections import Request  # noqa: PLC0415 - an extra

    recorded = Request.recorded(view.reader, "outcomes", request)
    covered = np.zeros(names.size, np.bool_)
    if recorded is not None:
        covered = recorded.covers(view.reader, standing, sent.tolist())
        before = np.where(covered, sent, before)
    usable = np.ones(names.size, np.bool_)
    contradicts = (before != "") & (sent != before) & (not corrections)
    impossible = _impossible(view, sent, before, standing)
    for applies, code in [*impossible, (contradicts, "other_outcome")]:
        refused = applies & usable & ~covered
        refusals.add(rows[refused[place]], code, allowed=_DONE)
        usable &= ~refused
    if recorded is not None and not covered[usable].all():
        raise recorded.other_content()
    return SentOutcomes(
        names[usable],
        sent[usable],
        before[usable],
        standing.round[usable] == 0,
        empty,
        [name for name in table.column_names if name not in (column, roles.outcome)],
        refusals,
        recorded,
    )


def _count_empty(
    view: ProgramView, ids: NDArray[Any], states: NDArray[np.str_], refusals: Refusals
) -> dict[str, int]:
    """Count applicants who have only empty outcomes in the file; refuse unknown ids."""
    rows = np.flatnonzero(refusals.usable & (states == ""))
    rows = rows[~np.isin(ids[rows].astype(np.str_), ids[states != ""].astype(np.str_))]
    names, place = np.unique(ids[rows], return_inverse=True)
    standing = view.reader.standing(names.tolist())
    unknown = standing.persons < 0
    refusals.add(rows[unknown[place]], "unknown", allowed=_DONE)
    has_outcome = np.array([state is not None for state in standing.states], np.bool_)
    return {
        "not_yet_known": int((standing.accepted & ~has_outcome & ~unknown).sum()),
        "known_already": int((has_outcome & ~unknown).sum()),
        "not_accepted": int((~standing.accepted & ~has_outcome & ~unknown).sum()),
    }


def _refuse_contradictory(
    ids: NDArray[Any], states: NDArray[np.str_], rows: NDArray[np.int64], refusals: Refusals
) -> NDArray[np.bool_]:
    """Refuse the rows of applicants with different outcomes in the file; return which."""
    from fairchance.ledger.base import STATES  # noqa: PLC0415 - an extra

    names, place = np.unique(ids[rows], return_inverse=True)
    code = np.searchsorted(sorted(STATES), states[rows])
    low, high = np.full(names.size, len(STATES)), np.full(names.size, -1)
    np.minimum.at(low, place, code)
    np.maximum.at(high, place, code)
    contradictory = (low < high)[place]
    refusals.add(rows[contradictory], "two_outcomes")
    return np.asarray(contradictory, np.bool_)


def _impossible(
    view: ProgramView, sent: NDArray[np.str_], before: NDArray[np.str_], standing: Standing
) -> list[tuple[NDArray[np.bool_], str]]:
    """Return which outcomes the program would refuse, with the codes of the reasons."""
    from fairchance.ledger.objections import to_not_taken, to_outcome  # noqa: PLC0415 - an extra
    from fairchance.ledger.outcomes import TakeUpWindow, outcomes_are_final  # noqa: PLC0415

    final, not_taken = outcomes_are_final(view.classifier), sent == "not_taken"
    never, known = "withdrawn", np.isin(before, ("good", "bad", "not_taken"))
    late = []
    if not_taken.any():
        window, now = TakeUpWindow.of(view.about), view.program.ledger.clock()
        late = to_not_taken(view.reader, standing, window, now)
    return [
        *((one.applies, one.code) for one in to_outcome(standing)),
        *((one.applies & not_taken, one.code) for one in late),
        (final & (standing.round == 0) & (sent != before), "history_final"),
        (final & (before == never) & (sent != never), "withdrawn_final"),
        (final & known & (sent == never), "outcome_final"),
    ]


# Recording


def _record(
    program: Program, sent: SentOutcomes, request: str | None, *, unlike_expected: bool
) -> list[dict[str, Any]]:
    """Record the new outcomes; return which tests began again, and after what."""
    first = sent.before == ""
    # In parts, to know what each of them did to the tests. Corrections come with the outcomes that
    # were known already, since how many there are decides whether the corrections are plausible.
    parts = {"outcomes": first, "correction": ~first}
    parts = {after: rows for after, rows in parts.items() if (rows & sent.is_new).any()}
    if sent.recorded is not None or not (parts or request):
        return []
    restarts = program.observe_parts(
        ((sent.ids[rows], sent.states[rows]) for rows in parts.values()),
        request=request,
        unlike_expected=unlike_expected,
    )
    return [
        asdict(restart) | {"after": after}
        for after, begun in zip(parts, restarts, strict=True)
        for restart in begun
    ]


def _dropped_since(view: ProgramView, number: int) -> int:
    """Return how many certificates were dropped after an entry."""
    later = [entry.says for entry in view.reader.entries(number, kind="certificate")]
    return sum(says["what"] == "dropped" for says in later)


def _unlike_since(view: ProgramView, number: int) -> dict[str, Any] | None:
    """Return how the outcomes that were recorded after an entry are unlike expected."""
    later = (entry.says for entry in view.reader.entries(number))
    return next((says["unlike_expected"] for says in later if "unlike_expected" in says), None)


# Summary


def _message(result: dict[str, Any]) -> list[str]:
    """Return the lines that are printed."""
    new = result["recorded"]
    n = new["good"] + new["bad"]
    parts = [f"{counted(n, 'outcome')} recorded"]
    if n:
        parts[0] += f" ({new['good']:,} good, {new['bad']:,} bad)"
    for count, word in (
        (new["withdrawn"], "withdrawn"),
        (new["not_taken"], "not taken"),
        (result["corrections"], "corrected"),
        (result["known_already"], "known already"),
    ):
        if count:
            parts.append(f"{count:,} {word}")
    lines = [", ".join(parts) + ".", *_empty_message(result["empty"])]
    if result["repeats"] is not None:
        lines.append(repeated_message(result["repeats"]))
    if result["corrections"]:
        lines.append(_corrected_message(result["corrected"]))
        lines.append("The record keeps the earlier outcomes; decisions already made do not change.")
    lines += _unlike_message(result["unlike_expected"])
    lines += _restarts_message(result["testing_began_again"])
    if result["ignored_columns"]:
        lines.append(f"Not read: the columns {', '.join(map(repr, result['ignored_columns']))}.")
    lines.append(mistakes_so_far(result["so_far"]))
    lines += refused_message(result["refused"])
    codes = {one["code"] for cause in result["refused"]["causes"] for one in cause["mistakes"]}
    if "not_a_label" in codes and new["good"] and not new["bad"]:
        lines.append("No outcome recorded from this file is bad; is one of the refused words?")
    return lines


def _unlike_message(unlike: dict[str, Any] | None) -> list[str]:
    """Say that outcomes are unlike expected, and whether they were recorded anyway.

    Examples
    --------
    >>> print(*_unlike_message({"bad": 60, "of": 200, "expected": 0.15, "stops": False}))
    Unlike expected: 60 of 200 outcomes are bad, and at most about 15 % were expected; did something
    change?
    """
    if unlike is None:
        return []
    from fairchance.ledger.outcomes import UnlikeExpected  # noqa: PLC0415 - an extra

    anyway = " Recorded anyway (--unlike-expected)." if unlike["stops"] else ""
    return [f"Unlike expected: {unlike_expected_words(UnlikeExpected(**unlike))}{anyway}"]


def _restarts_message(restarts: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield which evidence the outcomes cost."""
    if not restarts:
        return
    from fairchance.methods.certified.classifier import RestartedTests  # noqa: PLC0415 - slow

    for after in dict.fromkeys(one["after"] for one in restarts):
        lost = [
            RestartedTests(one["group"], one["round"], one["n_outcomes"])
            for one in restarts
            if one["after"] == after
        ]
        yield restart_cost(lost, after)


def _corrected_message(corrected: Sequence[dict[str, Any]]) -> str:
    """Name the first corrected outcomes.

    Examples
    --------
    >>> row = {"id": "a1", "before": "good", "now": "bad", "history": True}
    >>> _corrected_message([row])
    "Corrected: 'a1' was good and is bad (history)."
    """
    shown = [
        f"{row['id']!r} was {_word(row['before'])} and is {_word(row['now'])}"
        + (" (history)" if row["history"] else "")
        for row in corrected[:_SHOWN_CORRECTIONS]
    ]
    more = len(corrected) - len(shown)
    past = sum(row["history"] for row in corrected[_SHOWN_CORRECTIONS:])
    rest = f"; and {more:,} more" if more else ""
    return f"Corrected: {'; '.join(shown)}{rest}{f', {past:,} of the history' if past else ''}."


def _word(state: str) -> str:
    return state.replace("_", " ")


def _empty_message(empty: dict[str, int]) -> list[str]:
    """Say how many applicants have an empty outcome.

    Examples
    --------
    >>> _empty_message({"not_yet_known": 3, "known_already": 1, "not_accepted": 0})
    ['Empty for 4 people, without a change of the record: 3 not yet known, 1 known already.']
    """
    n = sum(empty.values())
    if not n:
        return []
    parts = ", ".join(f"{count:,} {key.replace('_', ' ')}" for key, count in empty.items() if count)
    return [f"Empty for {people(n)}, without a change of the record: {parts}."]
