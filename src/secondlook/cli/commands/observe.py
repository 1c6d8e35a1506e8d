"""Real batches from the command line: ``secondlook decide`` and ``secondlook observe``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from secondlook.cli.files.refusals import (
    Refusals,
    reason_counts,
    refused_path,
    refused_words,
)
from secondlook.cli.files.rows import check_there, cut, outcome_states, trimmed
from secondlook.cli.files.tables import (
    called,
    check_output,
    read_listed,
)
from secondlook.cli.input_checks import (
    as_recorded,
)
from secondlook.cli.messages import (
    NO_SUMMARY,
    SHOW_AGAIN,
    on_record,
    outcomes_count,
    so_far,
    so_far_words,
)
from secondlook.cli.options import (
    By,
    Json,
    LedgerUrl,
    ProgramName,
    Refused,
    Strict,
    Trusted,
    errors,
    opened,
    progress,
    roles_and_labels,
)
from secondlook.cli.output import as_json, people, say

if TYPE_CHECKING:
    from secondlook.ledger.base import Standing
    from secondlook.ledger.config import Labels, Roles
    from secondlook.ledger.program import Program


def observe(
    outcomes: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Ids and outcomes: .csv or .parquet, or - for csv on standard input.",
        ),
    ],
    ledger: LedgerUrl,
    program: ProgramName = "main",
    refused: Refused = None,
    strict: Strict = False,
    corrections: Annotated[
        bool,
        typer.Option(
            "--corrections/--no-corrections",
            help="Whether outcomes that contradict the record are corrections, or refused.",
        ),
    ] = True,
    trusted: Trusted = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Record outcomes of accepted people: any time later, in any order and in parts.

    An empty outcome records nothing: who waits for one goes on waiting. What is told again changes
    nothing, and what contradicts the record is kept as a correction; a correction of an outcome
    that was tested drops all certificates, and testing begins again. Rows that cannot be used go to
    a file with the reasons.

    Example: secondlook observe outcomes.csv --ledger sqlite:///lender.db
    """
    with errors(json):
        no = refused_path(refused, outcomes, "--json" if json else None)
        check_output(no)
        mine = opened(ledger, program, by, trusted, json)
        with progress("reading outcomes", json):
            roles, labels = roles_and_labels(mine)
            told = read_outcomes(
                mine, roles, labels, outcomes, called(outcomes), corrections=corrections
            )
            before = mine.checkpoint().number
        if strict:
            told.refusals.stop(called(outcomes))
        no = told.refusals.write(no)
        with progress(f"recording {told.news.sum():,} outcomes", json):
            began_again = _record(mine, told)
        with on_record(NO_SUMMARY, SHOW_AGAIN):
            summary = told.counts() | {
                "certificates_dropped": _dropped_since(mine, before),
                "testing_began_again": began_again,
                "so_far": so_far(mine.summary()),
                "refused": reason_counts(told.refusals, no),
            }
    if json:
        as_json(summary)
    else:
        lines = [*told_words(summary), so_far_words(summary["so_far"])]
        say([*lines, *refused_words(summary["refused"])], beside_table=no == "-")
    if len(told.refusals) and not told.ids.size and not any(told.empty.values()):
        raise typer.Exit(2)


def _record(program: Program, told: Told) -> list[dict[str, Any]]:
    """Record what a file says that is new; return where testing began again, after what."""
    never, first = told.states == "indeterminate", told.before == ""
    # Apart, so that it is known what each of them did to the tests.
    parts = {
        "outcomes": told.news & ~never & first,
        "correction": told.news & ~never & ~first,
        "withdrawal": told.news & never,
    }
    parts = {after: which for after, which in parts.items() if which.any()}
    again = program.observe_parts((told.ids[one], told.states[one]) for one in parts.values())
    return [
        asdict(one) | {"after": after}
        for after, found in zip(parts, again, strict=True)
        for one in found
    ]


def _dropped_since(program: Program, number: int) -> int:
    """Return how many certificates were dropped after an entry."""
    with program.ledger.reading(program.name) as reader:
        later = [one.says for one in reader.entries(number, kind="certificate")]
    return sum(one["what"] == "dropped" for one in later)


_SHOWN_CORRECTIONS = 3
_NOBODY = "the id was never decided on, or is erased"


@dataclass(frozen=True)
class Told:
    """What a file says that can be used, one place per application.

    Attributes
    ----------
    ids, states
        Who, and what became of it.
    before
        What the record says, "" for nothing.
    past
        Who is of the history.
    empty
        Of how many people the file tells nothing but an empty outcome: who wait for one
        (``not_yet_known``), have one on record (``known_already``), or do not stand accepted
        (``not_accepted``). Nothing is recorded for them.
    ignored
        Columns that were not read.
    refusals
        The rows that are left out.
    """

    ids: NDArray[Any]
    states: NDArray[np.str_]
    before: NDArray[np.str_]
    past: NDArray[np.bool_]
    empty: dict[str, int]
    ignored: list[str]
    refusals: Refusals

    @property
    def news(self) -> NDArray[np.bool_]:
        """Whose outcome is not recorded like this already."""
        return np.asarray(self.states != self.before, np.bool_)

    def counts(self) -> dict[str, Any]:
        """Return how much was new and how much was not."""
        from secondlook.ledger.base import STATES  # noqa: PLC0415 - an extra

        first = self.before == ""
        return {
            "recorded": {one: int((first & (self.states == one)).sum()) for one in STATES},
            "corrections": int((self.news & ~first).sum()),
            "corrected": self._corrected(),
            "known_already": int((~self.news).sum()),
            "pending": self.empty["not_yet_known"],
            "empty": self.empty,
            "ignored_columns": self.ignored,
        }

    def _corrected(self) -> list[dict[str, Any]]:
        """Return what contradicts the record, one by one."""
        rows = np.flatnonzero(self.news & (self.before != ""))
        columns = (self.ids, self.before, self.states, self.past)
        return [
            dict(zip(("id", "before", "now", "history"), row, strict=True))
            for row in zip(*(one[rows].tolist() for one in columns), strict=True)
        ]


def read_outcomes(
    program: Program,
    roles: Roles,
    labels: Labels,
    path: str,
    source: str,
    *,
    corrections: bool = True,
) -> Told:
    """Read a file of outcomes, and compare it with the record.

    Parameters
    ----------
    program
        Whose people they are.
    roles, labels
        Which columns to read, and what the words in them mean.
    path
        The file, as for ``read_table``.
    source
        What messages call it.
    corrections
        Whether what contradicts the record is a correction; if not, it is refused.
    """
    sent, column = read_listed(path, roles.id, text=(roles.outcome,), may_be_empty=True)
    table = sent.table
    check_there(table, (column, roles.outcome), source)
    plain = trimmed(table, column)[column].to_pylist()
    meant = as_recorded(program, table[column].to_pylist(), plain)
    ids = np.array([one or "" for one in meant], np.object_)
    states = outcome_states(table[roles.outcome], labels)
    refusals = Refusals(table, ids.tolist(), sent.as_written, (column, roles.outcome))
    nobody = np.array([not one or "\0" in one for one in ids], np.bool_)
    refusals.add(np.flatnonzero(nobody), f"{column!r} is empty or holds NUL, so names nobody")
    _refuse_unknown_labels(table[roles.outcome], states, labels, refusals)
    empty = _empty(program, ids, states, refusals)
    rows = np.flatnonzero(refusals.usable & (states != ""))
    rows = rows[~_contradictory(ids, states, rows, refusals)]
    names, first, place = np.unique(ids[rows], return_index=True, return_inverse=True)
    told = states[rows][first]
    standing = program.standing(names)
    before = np.array([one or "" for one in standing.states], np.str_)
    usable = np.ones(names.size, np.bool_)
    ruled_out = (before != "") & (told != before) & (not corrections)
    another = [(ruled_out, "the record tells another outcome, and corrections were ruled out")]
    for wrong, words in [*_cannot_be(told, before, standing, program.classifier), *another]:
        refusals.add(rows[(wrong & usable)[place]], words)
        usable &= ~wrong
    return Told(
        names[usable],
        told[usable],
        before[usable],
        standing.round[usable] == 0,
        empty,
        [one for one in table.column_names if one not in (column, roles.outcome)],
        refusals,
    )


def _empty(
    program: Program, ids: NDArray[Any], states: NDArray[np.str_], refusals: Refusals
) -> dict[str, int]:
    """Count people with an empty outcome and no other; refuse rows of those who are not known."""
    rows = np.flatnonzero(refusals.usable & (states == ""))
    rows = rows[~np.isin(ids[rows].astype(np.str_), ids[states != ""].astype(np.str_))]
    names, place = np.unique(ids[rows], return_inverse=True)
    standing = program.standing(names)
    unknown = standing.persons < 0
    refusals.add(rows[unknown[place]], _NOBODY)
    told = np.array([one is not None for one in standing.states], np.bool_)
    return {
        "not_yet_known": int((standing.accepted & ~told & ~unknown).sum()),
        "known_already": int((told & ~unknown).sum()),
        "not_accepted": int((~standing.accepted & ~told & ~unknown).sum()),
    }


def _refuse_unknown_labels(
    column: Any, states: NDArray[np.str_], labels: Labels, refusals: Refusals
) -> None:
    rows = np.flatnonzero(states == "?")
    values = column.take(rows).to_pylist()
    shown = [cut(one) for one in values]
    refusals.add_each(rows, "the outcome ", shown, f" is none of {labels.listed()}")


def _contradictory(
    ids: NDArray[Any], states: NDArray[np.str_], rows: NDArray[np.int64], refusals: Refusals
) -> NDArray[np.bool_]:
    """Refuse everybody of whom a file tells two things, since nobody knows which is meant."""
    from secondlook.ledger.base import STATES  # noqa: PLC0415 - an extra

    names, place = np.unique(ids[rows], return_inverse=True)
    code = np.searchsorted(sorted(STATES), states[rows])
    low, high = np.full(names.size, len(STATES)), np.full(names.size, -1)
    np.minimum.at(low, place, code)
    np.maximum.at(high, place, code)
    twice = (low < high)[place]
    refusals.add(rows[twice], "the file tells more than one outcome of this id")
    return np.asarray(twice, np.bool_)


def _cannot_be(
    told: NDArray[np.str_], before: NDArray[np.str_], standing: Standing, classifier: Any
) -> list[tuple[NDArray[np.bool_], str]]:
    """Return whose outcome a program would refuse, with the reasons."""
    from secondlook.ledger.outcomes import outcomes_are_final  # noqa: PLC0415 - an extra

    for_good = outcomes_are_final(classifier)
    past = for_good & (standing.round == 0) & (told != before)
    never, known = "indeterminate", np.isin(before, ("good", "bad"))
    return [
        (standing.persons < 0, _NOBODY),
        (~standing.accepted, "the person does not stand accepted, so there is no outcome to know"),
        (
            past,
            "the person is the history's, whose outcomes a certified program takes as they were",
        ),
        (
            for_good & (before == never) & (told != never),
            "it is on record that the outcome will never be known, for good where certificates "
            "rest on it",
        ),
        (
            for_good & known & (told == never),
            "an outcome is on record, and it cannot be withdrawn where certificates rest on it",
        ),
    ]


def told_words(told: dict[str, Any]) -> list[str]:
    """Return in words what was new in a file of outcomes."""
    new = told["recorded"]
    parts = [f"{outcomes_count(new['good'] + new['bad'])} recorded"]
    if new["good"] + new["bad"]:
        parts[0] += f" ({new['good']:,} good, {new['bad']:,} bad)"
    for n, words in (
        (new["indeterminate"], "withdrawn"),
        (told["corrections"], "corrected"),
        (told["known_already"], "known already"),
    ):
        if n:
            parts.append(f"{n:,} {words}")
    lines = [", ".join(parts) + ".", *_empty_words(told["empty"])]
    if told["corrections"]:
        lines.append(_corrected_words(told["corrected"]))
        lines.append(
            "Corrections are kept beside what was told before, with who told them and when; "
            "decisions already made stay as they are."
        )
    lines += _began_again_words(told["testing_began_again"], told["certificates_dropped"])
    if told["ignored_columns"]:
        lines.append(f"Not read: the columns {', '.join(map(repr, told['ignored_columns']))}.")
    return lines


def _began_again_words(found: Sequence[dict[str, Any]], n_dropped: int) -> list[str]:
    """Return what outcomes cost a certificate or a pilot, if testing began again.

    Examples
    --------
    >>> one = {"group": None, "round": 7, "n_outcomes": 526, "after": "correction"}
    >>> print(*_began_again_words([one], 0))
    Testing begins again with round 7: it rested on outcomes that were corrected, so the evidence of
    526 outcomes is given up, and only rounds from then on count.
    """
    lines = []
    corrected = any(one["after"] == "correction" for one in found)
    if n_dropped and corrected:
        lines.append(
            "What had been certified rested on outcomes that were corrected, and holds no longer: "
            "rounds are pilots until there is new evidence."
        )
    elif n_dropped:
        lines.append(
            "Outcomes of certified rounds speak against what had been certified, and it holds no "
            "longer: rounds are pilots until there is new evidence."
        )
    for one in found:
        whom = "" if one["group"] is None else f" for {one['group']}"
        n = f"{one['n_outcomes']:,} outcome{'' if one['n_outcomes'] == 1 else 's'}"
        why = f"the evidence of {n} is given up"
        if one["after"] == "correction":
            why = f"it rested on outcomes that were corrected, so {why}"
        lines.append(
            f"Testing begins again{whom} with round {one['round']}: {why}, and only rounds from "
            f"then on count."
        )
    return lines


def _corrected_words(found: Sequence[dict[str, Any]]) -> str:
    """Return whose outcome was corrected, the first few by name.

    Examples
    --------
    >>> one = {"id": "a1", "before": "good", "now": "bad", "history": True}
    >>> _corrected_words([one])
    "Corrected: 'a1' was good and is bad (history)."
    """
    shown = [
        f"{one['id']!r} was {one['before']} and is {one['now']}"
        + (" (history)" if one["history"] else "")
        for one in found[:_SHOWN_CORRECTIONS]
    ]
    more = len(found) - len(shown)
    past = sum(one["history"] for one in found[_SHOWN_CORRECTIONS:])
    rest = f"; and {more:,} more" if more else ""
    return f"Corrected: {'; '.join(shown)}{rest}{f', {past:,} of the history' if past else ''}."


def _empty_words(empty: dict[str, int]) -> list[str]:
    """Return what an empty outcome means for whom, if there are any.

    Examples
    --------
    >>> _empty_words({"not_yet_known": 3, "known_already": 1, "not_accepted": 0})
    ['Empty for 4 people, and nothing was recorded for them: 3 not yet known, 1 known and left so.']
    """
    n = sum(empty.values())
    if not n:
        return []
    words = {
        "not_yet_known": "not yet known",
        "known_already": "known and left so",
        "not_accepted": "not accepted",
    }
    whom = people(n)
    parts = ", ".join(f"{empty[key]:,} {text}" for key, text in words.items() if empty[key])
    return [f"Empty for {whom}, and nothing was recorded for them: {parts}."]
