"""Read a history for ``init`` and ``plan``: past applications, their decisions and outcomes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairchance.cli.files.kinds import FoundColumn, find_columns, is_measure, with_codes_as_text
from fairchance.cli.files.refusals import Refusals, commonest, refused_counts
from fairchance.cli.files.rows import (
    check_there,
    outcome_states,
    refuse_unknown_labels,
    refuse_without_person,
    split_rows,
    text_columns,
)
from fairchance.cli.files.tables import SentTable, file_name, read_sent
from fairchance.cli.input_checks import refuse_ambiguous_ids
from fairchance.errors import InputError
from fairchance.extras import arrow
from fairchance.people.cells import decision_words, truth_values
from fairchance.words import counted, people
from fairchance.words.columns import left_out_words

if TYPE_CHECKING:
    from fairchance.ledger.config import Config
    from fairchance.people.features import FeatureColumns

__all__ = ["PastApplications", "columns_message", "past_applications", "read_history"]

_ENOUGH_ROWS = 30  # so that columns do not agree by chance
_TELLING = 0.99  # area under the curve; what is known at an application hardly ever says so much
_FEW_TEXTS = 50  # values of a column of text: more could say the outcome by chance
# Rows that a history must not lose if it is evidence, and what to do about them.
_UNTOLD = {
    "pending": "accepted without an outcome; cut the file by the date of the application, rejected "
    "applicants too, so that all outcomes are known, and mark lost ones as withdrawn, which "
    "counts as bad",
    "not_a_label": "an outcome that is no word of [outcomes]; name it there",
    "twice": "an id that the file has several times; give each application one row",
}


@dataclass(frozen=True)
class PastApplications:
    """The usable rows of a history.

    Attributes
    ----------
    table, columns
        The rows, and their features.
    found
        A description of all columns without another role.
    accepted, not_taken, good
        Which applicants were accepted, which of them did not take the loan, and which were good.
    n_unread
        Outcomes of rejected applicants, which are not read.
    refused
        The refused rows.
    """

    table: Any
    columns: FeatureColumns
    found: list[FoundColumn]
    accepted: NDArray[np.bool_]
    not_taken: NDArray[np.bool_]
    good: NDArray[np.bool_]
    n_unread: int
    refused: Refusals

    @property
    def open_roles(self) -> list[FoundColumn]:
        """The columns whose role the user has to name."""
        return [column for column in self.found if column.is_open]

    @property
    def gaps(self) -> tuple[str, ...]:
        """The features that are missing for some applicant."""
        names = self.columns.names or ()
        return tuple(name for name in names if _n_missing(self.table[name]))

    @property
    def n_open(self) -> int:
        """Number of accepted applicants who are refused because they have no outcome yet."""
        return sum(any(one.code == "pending" for one in row.mistakes) for row in self.refused)

    @property
    def taken(self) -> NDArray[np.bool_]:
        """Which applicants took the loan, and so have an outcome."""
        return self.accepted & ~self.not_taken

    @property
    def n_bad(self) -> int:
        """Number of bad outcomes."""
        return int((self.taken & ~self.good).sum())

    @property
    def telling(self) -> dict[str, float]:
        """The features that alone tell good outcomes from bad ones, as if they came after them.

        With the chance that a good applicant is on the right side of a bad one.
        """
        taken, found = self.taken, {}
        bad = ~self.good[taken]
        if min(bad.sum(), (~bad).sum()) < _ENOUGH_ROWS:
            return {}
        for name in self.columns.names or ():
            column = self.table[name].filter(arrow().array(taken))
            texts = name in self.columns.texts
            values = column.fill_null("") if texts else column.to_numpy()
            n_bad, n_good = _counts(np.asarray(values), bad)
            if texts:  # the order that fits best
                order = np.argsort(n_bad / (n_bad + n_good), kind="stable")
                n_bad, n_good = n_bad[order], n_good[order]
            before = np.cumsum(n_good) - n_good / 2
            area = float(n_bad @ before / (n_bad.sum() * n_good.sum()))
            if (not texts or n_bad.size <= _FEW_TEXTS) and max(area, 1 - area) >= _TELLING:
                found[name] = max(area, 1 - area)
        return found

    def lines(self) -> list[str]:
        """Describe the applicants, and outcomes that are not read."""
        n, n_accepted, n_not_taken = (
            self.accepted.size,
            int(self.accepted.sum()),
            int(self.not_taken.sum()),
        )
        not_taken = f", {n_not_taken:,} not taken" if n_not_taken else ""
        lines = [
            f"{people(n)}: {n_accepted:,} accepted ({int(self.good.sum()):,} good, {self.n_bad:,} "
            f"bad{not_taken}), {n - n_accepted:,} rejected"
        ]
        if self.n_unread:
            lines.append(f"Not read: {counted(self.n_unread, 'outcome')} of rejected applicants")
        if self.n_open:
            lines.append(
                f"Left out: {self.n_open:,} accepted without a known outcome; leave out the "
                f"rejected applicants of the same time, too (cut the file by date)"
            )
        return lines

    def as_dict(self, place: str | None = None) -> dict[str, Any]:
        """Return the counts and columns as plain data; ``place`` is the file of refused rows."""
        refused = refused_counts(self.refused, place)
        return {
            "people": self.accepted.size,
            "accepted": int(self.accepted.sum()),
            "good": int(self.good.sum()),
            "bad": self.n_bad,
            "not_taken": int(self.not_taken.sum()),
            "accepted_without_outcome": self.n_open,
            "outcomes_not_read": self.n_unread,
            "refused": refused["rows"],
            "refused_rows": refused["file"],
            "causes": refused["causes"],
            "features": [
                {
                    "column": column.name,
                    "kind": column.kind,
                    "values": column.values,
                    "missing": column.missing,
                }
                for column in self.found
                if not column.left_out
            ],
            "left_out": {column.name: column.left_out for column in self.found if column.left_out},
        }


def _counts(values: NDArray[Any], bad: NDArray[np.bool_]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return how many of each value are bad, and how many good."""
    at = np.unique(values, return_inverse=True)[1]
    n = np.bincount(at)
    n_bad = np.bincount(at, bad, n.size)
    return n_bad, n - n_bad


def _n_missing(column: Any) -> int:
    return int(arrow("compute").sum(column.is_null(nan_is_null=True)).as_py() or 0)


def read_history(source: str, config: Config) -> PastApplications:
    """Read the usable rows of a file."""
    sent = read_sent(source, text=(*text_columns(config.roles), *config.texts))
    return past_applications(sent, config, file_name(source))


def past_applications(sent: SentTable, config: Config, shown: str) -> PastApplications:
    """Return the usable rows of a table; ``shown`` is its name in messages."""
    roles = config.roles
    table = with_codes_as_text(sent.table, sent.as_written)
    needed = [roles.id, roles.outcome, *filter(None, (roles.accepted, roles.persons))]
    if roles.accepted is not None and roles.accepted not in table.column_names:
        raise InputError(
            f"{shown} has no column {roles.accepted!r}, which [columns] accepted names; correct or "
            f"remove the key."
        )
    check_there(table, [*needed, *roles.groups, *config.texts], shown)
    check_there(table, (*roles.features, *config.ignore, *filter(None, [roles.applied])), shown)
    _check_groups(table, roles.groups, shown)
    features = config.features(table.column_names)
    columns, found = find_columns(
        table,
        features,
        chosen=roles.features,
        texts=config.texts,
        missing=config.missing_values,
        source=shown,
    )
    others = [one for one in config.without_role(table.column_names) if one not in features]
    found += [FoundColumn(name, "", "", 0, "unlisted") for name in others]
    ready, refused = split_rows(
        table,
        roles,
        columns,
        missing=() if config.missing == "refuse" else columns.names or (),
        missing_values=config.missing_values,
        missing_code="missing_refused",
        not_stated=config.settings.get("group_mode", "aware") != "aware",
        source=shown,
        as_written=sent.as_written,
    )
    before = refused.usable
    refuse_ambiguous_ids(ready[roles.id].to_pylist(), roles.id, refused)
    refuse_without_person(refused.table, roles, refused, np.arange(refused.table.num_rows))
    states, accepted, unread = _past(refused, config)
    _refuse_single_members(refused, ready, np.flatnonzero(before), roles.groups)
    usable = refused.usable
    if _testifies(config):
        _check_testimony(refused, shown)
    if not usable.any():
        raise InputError(
            f"no row of {shown} can be used, {commonest(refused)}; correct the file or the "
            f"configuration."
        )
    history = PastApplications(
        ready.filter(usable[before]),
        columns,
        found,
        accepted[usable],
        (accepted & (states == "not_taken"))[usable],
        states[usable] == "good",
        int(unread[usable].sum()),
        refused,
    )
    _check_outcomes(history, config, shown, unknown=bool((states == "?").any()))
    if not roles.features:
        _check_features_are_not_answers(history, shown)
    return history


def _testifies(config: Config) -> bool:
    """Return whether the history is evidence, which makes a certificate depend on each row."""
    return bool(config.settings.get("evidence") == "history")


def _check_testimony(refused: Refusals, shown: str) -> None:
    """Raise if rows are refused for a reason that may have to do with their outcome."""
    found = Counter(one.code for row in refused for one in row.mistakes if one.code in _UNTOLD)
    if found:
        some = "; ".join(f"{counted(n, 'row')}: {_UNTOLD[code]}" for code, n in found.items())
        raise InputError(
            f"{shown} cannot be evidence, since certificates would be false if rows were left out "
            f"because of their outcomes. {some}. Or remove evidence = 'history'."
        )


def _check_groups(table: Any, names: tuple[str, ...], shown: str) -> None:
    """Raise if a group is a column of many numbers, each of which would be a group."""
    for name in names:
        if is_measure(table[name]):
            n = len(table[name].drop_null().unique())
            raise InputError(
                f"[columns] groups has {name!r}, which has {n:,} different values in {shown}, and "
                f"each would be a group; write bands such as 18-29 into a column of its own, or "
                f"name it in ignore or features."
            )


def _check_outcomes(
    history: PastApplications, config: Config, source: str, *, unknown: bool
) -> None:
    """Raise if all outcomes are the same and that is a mistake, or the classifier cannot start."""
    good = history.good[history.taken]
    is_certified = config.settings["kind"] == "certified"  # starts with any history
    if not good.size or 0 < good.sum() < good.size or (is_certified and not unknown):
        return
    why = ""
    if len(history.refused):
        were = counted(len(history.refused), "row was", "rows were")
        why = f"; {were} refused, {commonest(history.refused, 1)}"
    instead = "" if is_certified else ", or choose kind = 'certified', which starts without them"
    raise InputError(
        f"all {good.size:,} accepted applicants of {source} are {'good' if good[0] else 'bad'}, "
        f"and learning needs both{why}; add the others, or correct [outcomes]{instead}."
    )


def _refuse_single_members(
    refused: Refusals, ready: Any, rows: NDArray[np.intp], names: tuple[str, ...]
) -> None:
    """Refuse applicants who are the only usable ones of their group; ``rows`` are the ready."""
    if not names:
        return
    usable = refused.usable[rows]
    columns = (ready[name].filter(usable).to_pylist() for name in names)
    members = np.array([", ".join(map(str, row)) for row in zip(*columns, strict=True)], np.str_)
    _, place, n = np.unique(members, return_inverse=True, return_counts=True)
    alone = n[place] == 1
    refused.add(rows[usable][alone], "lone_group", values=members[alone].tolist())


def _check_features_are_not_answers(history: PastApplications, source: str) -> None:
    """Raise if a column that is a feature by default repeats the decision or the outcome."""
    everyone = np.ones(history.accepted.size, np.bool_)
    for what, rows, truth in (
        ("decision", everyone, history.accepted),
        ("outcome", history.taken, history.good[history.taken]),
    ):
        if truth.size < _ENOUGH_ROWS or truth.all() or not truth.any():
            continue
        for name in history.columns.names or ():
            values = history.table[name].filter(rows).combine_chunks().dictionary_encode()
            codes = values.indices.fill_null(-1).to_numpy(zero_copy_only=False)
            alike = np.array_equal(codes == codes[0], truth == truth[0])
            if len(values.dictionary) == 2 and alike:
                raise InputError(
                    f"the column {name!r} of {source} repeats the {what} in every row; list the "
                    f"features without it."
                )


def _past(
    refused: Refusals, config: Config
) -> tuple[NDArray[np.str_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return outcomes, who was accepted, and which outcomes are not read.

    Outcomes of rejected applicants are not read. Rows of others are refused if their outcome and
    the past decision do not fit.
    """
    roles, table = config.roles, refused.table
    states = outcome_states(table[roles.outcome], config.labels)
    if _testifies(config):
        states = np.where(states == "withdrawn", "bad", states)
    if roles.accepted is None:
        _refuse_outcomes(states, refused, config)
        accepted = np.isin(states, ("good", "bad", "not_taken"))
        return states, accepted, np.zeros(states.size, np.bool_)
    decision = truth_values(table[roles.accepted], config.decisions)
    texts = table[roles.accepted].to_pylist()
    unread = (decision == "no") & (states != "")
    states = np.where(decision == "no", "", states)
    _refuse_outcomes(states, refused, config)
    for code, found in (("no_decision", ""), ("not_a_decision", "?")):
        rows = np.flatnonzero(decision == found)
        values = [texts[row] or "" for row in rows]
        allowed = decision_words(config.decisions)
        refused.add(rows, code, roles.accepted, values, allowed=allowed)
    refused.add(np.flatnonzero((decision == "yes") & (states == "")), "pending")
    return states, decision == "yes", unread


def _refuse_outcomes(states: NDArray[np.str_], refused: Refusals, config: Config) -> None:
    """Refuse rows with an unknown label, or with the label for outcomes never to be known."""
    column = refused.table[config.roles.outcome]
    refuse_unknown_labels(column, states, config.labels, refused)
    refused.add(np.flatnonzero(states == "withdrawn"), "withdrawn")


def columns_message(found: list[FoundColumn], where: str, *, persons: bool = False) -> list[str]:
    r"""Return the columns that decisions use as a table, and those that they do not use.

    ``where`` says where features are listed, as part of a sentence, and ``persons`` whether a
    column that says who applied may still be named.

    Examples
    --------
    >>> income = FoundColumn("income", "number", "501 to 9,820", 12)
    >>> empty = FoundColumn("phone", "", "", 3000, "empty")
    >>> print(*columns_message([income, empty], "in [columns]"), sep="\n")
    Feature  Kind    Values        Missing
    income   number  501 to 9,820       12
    Left out:
      'phone' is empty in every row
    """
    used = [column for column in found if not column.left_out]
    rows = [("Feature", "Kind", "Values", "Missing")]
    rows += [
        (column.name, column.kind, column.values, f"{column.missing:,}" if column.missing else "–")
        for column in used
    ]
    wide = [max(len(row[at]) for row in rows) for at in range(4)]
    lines = [
        f"{name:{wide[0]}}  {kind:{wide[1]}}  {values:{wide[2]}}  {missing:>{wide[3]}}"
        for name, kind, values, missing in rows
    ]
    left_out = [
        f"  {column.name!r} {left_out_words(column.left_out)}"
        + (
            f"; to use it, list all features {where}"
            if column.kind == "number" or column.is_open
            else ""
        )
        + (
            "; name it in persons if it says who applied"
            if persons and column.left_out == "identifier" and column.repeats
            else ""
        )
        for column in found
        if column.left_out not in ("", "unlisted")
    ]
    unlisted = ", ".join(repr(column.name) for column in found if column.left_out == "unlisted")
    left_out += [f"  {unlisted}: not listed as features {where}"] if unlisted else []
    return [*lines, *(["Left out:", *left_out] if left_out else [])]
