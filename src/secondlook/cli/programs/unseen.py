"""Words in columns of text that the policy of a round does not know, and what it makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from secondlook.cli.files.csv_files import arrow
from secondlook.cli.files.rows import cut
from secondlook.cli.programs.batch_words import how_many

if TYPE_CHECKING:
    from secondlook.ledger.program import Program

__all__ = ["unseen_values", "unseen_words"]

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
        shown = ", ".join(
            f"{cut(row['value'])} ({how_many(row['people'])})" for row in rows[:_SHOWN]
        )
        rest = rows[_SHOWN:]
        if rest:
            n = sum(row["people"] for row in rest)
            shown += f" and {len(rest):,} more ({how_many(n)})"
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
