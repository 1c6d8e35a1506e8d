"""Ids as a file or a person spells them, and as the record does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from secondlook.cli.files.csv_files import arrow
from secondlook.cli.files.refusals import Refusals
from secondlook.cli.files.rows import cut
from secondlook.cli.output import people
from secondlook.errors import InputError
from secondlook.people.intake import Range, chance_beyond, n_beyond

if TYPE_CHECKING:
    from secondlook.ledger.config import Roles
    from secondlook.ledger.program import Program


def as_recorded(
    program: Program,
    given: Sequence[str | None],
    plain: Sequence[str | None] | None = None,
    *,
    erasing: bool = False,
) -> list[str | None]:
    """Return whom ids name: somebody who is called exactly so, or else without white space around.

    Programs that earlier versions or Python have made may know ``" 1"`` and ``"1"`` as two people.

    Parameters
    ----------
    program
        Whose people they are.
    given, plain
        The ids as they were given, and without white space around if that is at hand.
    erasing
        Whether they are to be erased. Then nobody is taken for somebody else where people have been
        erased before: the one who was called exactly so may be one of these.
    """
    from secondlook.people.ids import is_text  # noqa: PLC0415 - slow to import

    found = [one and one.strip() for one in given] if plain is None else list(plain)
    differs = np.array(given, np.object_) != np.array(found, np.object_)
    rows: list[int] = np.flatnonzero(differs).tolist()
    padded = [(at, name) for at in rows if is_text(name := given[at] or "")]
    if not padded:
        return found
    with program.ledger.reading(program.name) as reader:
        known = reader.standing([name for _, name in padded]).persons >= 0
        literally = erasing and any(True for _ in reader.entries(kind="erasure"))
    for (at, name), there in zip(padded, known.tolist(), strict=True):
        if there or literally:
            found[at] = name
    return found


def mistakable_ids(
    names: list[str], column: str, refusals: Refusals, program: Program | None = None
) -> NDArray[np.bool_]:
    """Refuse rows of new people whose ids could be taken for others; return whose these are.

    Parameters
    ----------
    names, column
        Ids of the rows that can be used so far, and what their column is called.
    refusals
        The rows that are left out, to which these are added.
    program
        Whose people are not new; None if everybody is.
    """
    from secondlook.people.ids import check_spelling, mistakable  # noqa: PLC0415 - slow to import

    found = np.zeros(len(names), np.bool_)
    try:
        check_spelling(np.array(names, np.str_))
    except InputError:
        why = [mistakable(one) for one in names]
        found = np.array([one is not None for one in why], np.bool_)
        if program is not None:
            found &= program.standing(names).persons < 0
        places = np.flatnonzero(found)
        told = [str(why[at]) for at in places]
        end = ", so that one person could have two ids; write it in one way only"
        refusals.add_each(np.flatnonzero(refusals.usable)[places], f"{column!r} has ", told, end)
    return found


ANSWERED = (
    "id",
    "decision",
    "region",
    "score",
    "threshold",
    "propensity",
    "round",
    "certified",
    "reasons",
)


def check_read_back(roles: Roles) -> None:
    """Raise if a file of decisions, sent back, would be read for something else than it is.

    Ids and outcomes are read from any file by the names of their columns; a file of decisions or
    an export has a column of its own under each of its names.
    """
    from secondlook.cli.files.export_tables import EXPORTED  # noqa: PLC0415 - needs the ledger

    for role, name in (("id", roles.id), ("outcome", roles.outcome)):
        if name != role and name in {*ANSWERED, *EXPORTED}:
            raise InputError(
                f"[columns] {role} must not be called like another column of the files that decide "
                f"and export write, got {name!r}; rename it in your files and there, for example "
                f"to {role!r}."
            )


def namesakes(program: Program, groups: Iterable[str]) -> list[str]:
    """Return the columns of the decisions that are called like a feature or a group."""
    known = {*(program.shape.columns.names or ()), *groups}
    return [one for one in ANSWERED if one in known]


def namesakes_words(names: list[str]) -> list[str]:
    """Say of columns of the decisions that they are not what they are called like.

    Examples
    --------
    >>> namesakes_words(["region", "score"])
    ["'region' and 'score' in the decisions are not your columns of that name: they say how \
people were decided on."]
    """
    if not names:
        return []
    one = len(names) == 1
    which = " and ".join([", ".join(map(repr, names[:-1])), repr(names[-1])][one:])
    are, your, say = ("is", "column", "it says") if one else ("are", "columns", "they say")
    return [
        f"{which} in the decisions {are} not your {your} of that name: {say} how people were "
        f"decided on."
    ]


_MANY = 0.5  # of the people with a value: a batch is stopped
_FALSE_STOPS = 1e-4  # of batches that are like the history, over all columns
_SOME, _FEWEST, _TIMES = 0.05, 5, 10  # told of: a share, people, and times what chance would make


def beyond_history(ranges: Mapping[str | int, Range] | None, X: Any) -> list[dict[str, Any]] | None:
    """Return the columns in which people are beyond the history's range, and more than by chance.

    Parameters
    ----------
    ranges
        ``feature_ranges_`` of a classifier; None if it does not know them.
    X
        Features of the batch, an Arrow table.

    Returns
    -------
    list or None
        For each such column, the most people first: ``column``, ``low`` and ``high`` of the
        history, how many ``people`` are beyond, ``of`` how many who have a value, and whether that
        is ``too_many`` to decide on the batch unasked. None if ranges are not known.
    """
    if ranges is None:
        return None
    found = []
    for key, known in ranges.items():
        name = key if isinstance(key, str) else X.column_names[key]
        values = np.asarray(X[name].cast("float64").to_numpy(), np.float64)
        people, of = n_beyond(values, known)
        stops = people > _MANY * of and _is_no_chance(known.n_values, of, people, len(ranges))
        expected = 2 / (known.n_values + 1) * of
        if stops or (people >= _FEWEST and people > max(_SOME * of, _TIMES * expected)):
            row = {"column": name, "low": known.low, "high": known.high}
            found.append(row | {"people": people, "of": of, "too_many": stops})
    return sorted(found, key=lambda row: -row["people"])


def check_like_history(found: list[dict[str, Any]] | None, source: str) -> None:
    """Raise if most people of a batch are beyond the history's range in a column."""
    wrong = [row for row in found or () if row["too_many"]]
    if not wrong:
        return
    first, others = wrong[0], ", ".join(repr(row["column"]) for row in wrong[1:])
    raise InputError(
        f"the column {first['column']!r} of {source} is not like the history: numbers there lay "
        f"within {_within(first)}, and {first['people']:,} of {people(first['of'])} are beyond"
        f"{f' (others like it: {others})' if others else ''}, which may be another unit or decimal "
        f"mark; nothing was decided or recorded, mend the file, or pass --unlike-history to decide "
        f"all the same."
    )


def beyond_words(found: list[dict[str, Any]] | None) -> list[str]:
    """Return what is not like the history in words, a line per column.

    Examples
    --------
    >>> row = {"column": "income", "low": 300.0, "high": 12000.0, "people": 9, "of": 80}
    >>> beyond_words([row])
    ["Beyond the history in 'income': 9 of 80 people are not within 300 to 12000; is it another unit
    or decimal mark?"]
    """
    return [
        f"Beyond the history in {row['column']!r}: {row['people']:,} of {people(row['of'])} are "
        f"not within {_within(row)}; is it another unit or decimal mark?"
        for row in found or ()
    ]


def insisted_on(found: list[dict[str, Any]] | None) -> dict[str, Any]:
    """Return what is kept with a batch that is decided although it is not like the history.

    Examples
    --------
    >>> row = {"column": "income", "low": 300.0, "high": 12000.0, "people": 60, "of": 60}
    >>> insisted_on([row | {"too_many": True}]) == {"unlike_history": [row]}
    True
    >>> insisted_on([row | {"too_many": False}])
    {}
    """
    rows = [
        {key: value for key, value in row.items() if key != "too_many"}
        for row in found or ()
        if row["too_many"]
    ]
    return {"unlike_history": rows} if rows else {}


def insisted_words(rows: list[dict[str, Any]], *, certified: bool) -> list[str]:
    """Return in words what a record keeps of a batch that is not like the history.

    Examples
    --------
    >>> row = {"column": "income", "low": 300.0, "high": 12000.0, "people": 60, "of": 60}
    >>> insisted_words([row], certified=True)
    ["Decided all the same (--unlike-history), which is on the record: 60 of 60 people not within
    300 to 12000 in 'income'. What is certified holds for people like those tested so far, which
    these may not be."]
    """
    if not rows:
        return []
    which = ", ".join(unlike(row) for row in rows)
    words = f"Decided all the same (--unlike-history), which is on the record: {which}."
    if certified:
        words += (
            " What is certified holds for people like those tested so far, which these may not be."
        )
    return [words]


def unlike(row: dict[str, Any]) -> str:
    """Return in words how a column is not like the history."""
    return (
        f"{row['people']:,} of {people(row['of'])} not within {_within(row)} in {row['column']!r}"
    )


def _is_no_chance(n_past: int, n_new: int, people: int, n_columns: int) -> bool:
    """Say whether so many would be beyond in almost no batch that is like the history."""
    return chance_beyond(n_past, n_new, people) < _FALSE_STOPS / n_columns


def _within(row: dict[str, Any]) -> str:
    return f"{row['low']:.10g} to {row['high']:.10g}"


_SHOWN = 3  # values of a column that are named; JSON has all
_TREATED = {
    "ignore": "the score reads them as none of the values it knows (handle_unknown='ignore')",
    "infrequent_if_exist": "the score reads them as it does rare values "
    "(handle_unknown='infrequent_if_exist')",
    "use_encoded_value": "the score reads them all as one other value "
    "(handle_unknown='use_encoded_value')",
}


def unseen_values(
    program: Program, X: Any, groups: Any, round_: int
) -> list[dict[str, Any]] | None:
    """Return values of text columns that the policy of the last round does not know.

    What a policy knows are the categories of the encoders in its learner. None if that cannot be
    told: the round is not the last one, or the learner reads text in another way.

    Parameters
    ----------
    program
        The program that decided.
    X, groups
        Features and group values of the batch.
    round_
        The round that decided on it.

    Returns
    -------
    list or None
        For each column and value, the most frequent first: ``column``, ``value``, ``people``, and
        ``treated``, what the encoder does with it.
    """
    texts = program.shape.columns.texts
    if not texts:
        return []
    classifier = program.classifier
    rounds = getattr(classifier, "rounds_", ())
    if not rounds or rounds[-1].round != round_ or not hasattr(classifier, "scored_by"):
        return None
    one = X.slice(0, 1), None if groups is None else groups[:1]
    likelihood = classifier.scored_by(one[0], sensitive_features=one[1]).likelihood
    known = _known_by(likelihood, list(X.column_names))
    if not set(texts) <= set(known):
        return None
    found: list[dict[str, Any]] = []
    for name in texts:
        values, treated = known[name]
        counted = arrow("compute").value_counts(X[name]).to_pylist()
        found += [
            {"column": name, "value": row["values"], "people": row["counts"], "treated": treated}
            for row in counted
            if row["values"] is not None and row["values"] not in values
        ]
    return sorted(found, key=lambda row: -row["people"])


def unseen_words(found: list[dict[str, Any]] | None) -> list[str]:
    """Return what was not known in words, a line per column.

    Examples
    --------
    >>> row = {"column": "region", "value": "moon", "people": 2, "treated": "ignore"}
    >>> unseen_words([row])[0]
    "Never seen in 'region': 'moon' (2 people); the score reads them as none of the values it knows
    (handle_unknown='ignore')."
    """
    lines = []
    for name in dict.fromkeys(row["column"] for row in found or ()):
        rows = [row for row in found or () if row["column"] == name]
        shown = ", ".join(f"{cut(row['value'])} ({people(row['people'])})" for row in rows[:_SHOWN])
        rest = rows[_SHOWN:]
        if rest:
            n = sum(row["people"] for row in rest)
            shown += f" and {len(rest):,} more ({people(n)})"
        how = rows[0]["treated"]
        treated = _TREATED.get(how or "", "what the score makes of them is the learner's affair")
        lines.append(f"Never seen in {name!r}: {shown}; {treated}.")
    return lines


def _known_by(likelihood: Any, names: list[str]) -> dict[str, tuple[set[Any], str | None]]:
    """Return the values that a likelihood's encoders know, and how they treat others, by column."""
    found: dict[str, tuple[set[Any], str | None]] = {}
    for estimator in _estimators(likelihood):
        for encoder, columns in _encoders(estimator, names):
            if len(columns) != len(encoder.categories_):
                continue  # it reads something else than these columns
            for name, values in zip(columns, encoder.categories_, strict=True):
                before, _ = found.get(name, (set(), None))
                treated = getattr(encoder, "handle_unknown", None)
                found[name] = before | set(np.asarray(values).tolist()), treated
    return found


def _estimators(likelihood: Any) -> Iterator[Any]:
    """Yield the estimators that a likelihood is made of."""
    for parts in ("of_group", "parts"):
        for part in getattr(likelihood, parts, ()):
            yield from _estimators(part)
    for name in ("estimator", "policy"):
        if hasattr(likelihood, name):
            yield getattr(likelihood, name)


def _encoders(estimator: Any, names: list[str]) -> Iterator[tuple[Any, list[str]]]:
    """Yield fitted encoders that know categories, each with the columns that it reads.

    Pipelines are followed up to the step behind which columns are no longer those of the table.
    """
    if hasattr(estimator, "categories_"):
        yield estimator, names
    elif hasattr(estimator, "transformers_"):
        for _, part, columns in estimator.transformers_:
            if not isinstance(part, str):
                yield from _encoders(part, _named(columns, names))
    elif hasattr(estimator, "steps"):
        for _, step in estimator.steps:
            if getattr(step, "n_features_in_", len(names)) != len(names):
                return
            yield from _encoders(step, names)
            if hasattr(step, "categories_") or hasattr(step, "transformers_"):
                return


def _named(columns: Any, names: list[str]) -> list[str]:
    """Return columns by name, however a column transformer was told of them."""
    if isinstance(columns, slice):
        if isinstance(columns.stop, str):  # both ends are meant
            return names[names.index(columns.start) : names.index(columns.stop) + 1]
        return names[columns]
    listed = np.atleast_1d(np.asarray(columns))
    if listed.dtype == np.bool_:
        listed = np.flatnonzero(listed)
    return [one if isinstance(one, str) else names[int(one)] for one in listed.tolist()]
