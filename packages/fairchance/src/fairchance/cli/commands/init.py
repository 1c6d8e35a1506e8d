"""``fairchance init``: start a program from a configuration and a history."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from fairchance.cli.files.kinds import FoundColumn, find_columns, with_codes_as_text
from fairchance.cli.files.refusals import (
    Refusals,
    check_share,
    commonest,
    refused_counts,
    refused_message,
    refused_path,
    too_many_message,
)
from fairchance.cli.files.rows import (
    TRUTH_VALUES,
    check_there,
    features_groups_ids,
    outcome_states,
    split_rows,
    text_columns,
    truth_values,
)
from fairchance.cli.files.tables import check_apart, file_name, ledger_files, read_sent
from fairchance.cli.input_checks import check_column_names, refuse_ambiguous_ids
from fairchance.cli.options import (
    By,
    Json,
    MostRefused,
    Refused,
    Strict,
    check_name,
    errors,
    printed_warnings,
    progress,
)
from fairchance.cli.output import print_json, print_lines
from fairchance.errors import InputError, LearningWarning, LedgerError
from fairchance.extras import arrow
from fairchance.words import counted, people, shortened

if TYPE_CHECKING:
    from fairchance.ledger.config import Config
    from fairchance.ledger.encoding import FeatureColumns

_ENOUGH_ROWS = 30  # so that columns do not agree by chance


def init(
    history: Annotated[
        str | None,
        typer.Argument(
            help="Past applications: .csv, .parquet, .xlsx, or - for csv on standard input."
        ),
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            envvar="FAIRCHANCE_LEDGER",
            metavar="URL",
            help="The ledger: sqlite:///lender.db or postgresql://host/database.",
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The program's configuration, in TOML.")
    ] = None,
    example: Annotated[
        bool, typer.Option("--example", help="Only write an example configuration.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="With --example: the file."),
    ] = None,
    program: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="A name for the program, instead of the configuration's."
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only print what would be recorded; write nothing.")
    ] = False,
    refused: Refused = None,
    most_refused: MostRefused = 0.5,
    strict: Strict = False,
    by: By = None,
    json: Json = False,
) -> None:
    """Start a program: record a classifier, its configuration and the history.

    Outcomes are read only for applicants who were accepted. Rows that cannot be used are written
    to a file with the reasons; if more than half of the rows cannot be used, no program is started.
    With --check, nothing is recorded and no file is written; it needs no ledger.

    Example: fairchance init --ledger sqlite:///lender.db --config program.toml past.csv
    """
    with errors(json):
        check_share(most_refused)
        check_name("--program", program)
        check_name("--by", by)
        if example:
            if history is not None or config is not None:
                raise InputError(
                    "--example only writes a configuration; give no other arguments than -o."
                )
            _write_example(output, json)
            return
        if (
            (ledger is None and not check)
            or config is None
            or history is None
            or output is not None
        ):
            raise InputError(
                "init needs --ledger (or FAIRCHANCE_LEDGER), --config and a history, and -o only "
                "with --example; fairchance init --example -o program.toml writes an example "
                "configuration."
            )
        _start(history, ledger, config, program, refused, most_refused, strict, by, check, json)


def _write_example(output: Path | None, json: bool) -> None:
    from fairchance.ledger.config import example_config  # noqa: PLC0415 - an extra

    if output is None:
        print_lines(example_config().splitlines())
        return
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(example_config())
    except FileExistsError:
        raise InputError(
            f"{str(output)!r} exists and is not overwritten; name another file."
        ) from None
    except OSError as error:
        raise InputError(
            f"{str(output)!r} cannot be written ({error.strerror}); name another file."
        ) from error
    if json:
        print_json({"written": output})
    else:
        print_lines(
            [f"Written: {output}; adapt it to your files, then: fairchance init --config …"]
        )


@dataclass(frozen=True)
class PastApplications:
    """The usable rows of a history.

    Attributes
    ----------
    table, columns
        The rows, and their features.
    found
        A description of all columns without another role.
    accepted, good
        Which applicants were accepted, and which of them were good.
    n_unread
        Outcomes of rejected applicants, which are not read.
    refused
        The refused rows.
    """

    table: Any
    columns: FeatureColumns
    found: list[FoundColumn]
    accepted: NDArray[np.bool_]
    good: NDArray[np.bool_]
    n_unread: int
    refused: Refusals

    @property
    def gaps(self) -> tuple[str, ...]:
        """The features that are missing for some applicant."""
        names = self.columns.names or ()
        return tuple(name for name in names if _n_missing(self.table[name]))


def _n_missing(column: Any) -> int:
    return int(arrow("compute").sum(column.is_null(nan_is_null=True)).as_py() or 0)


def _start(
    source: str,
    url: str | None,
    config: Path,
    name: str | None,
    refused: str | None,
    most_refused: float,
    strict: bool,
    by: str | None,
    check: bool,
    json: bool,
) -> None:
    from fairchance.ledger import Program  # noqa: PLC0415 - an extra
    from fairchance.ledger.config import read_config  # noqa: PLC0415

    if config.is_dir():
        raise InputError(f"{str(config)!r} is a folder; name a file in it.")
    configuration = read_config(config)
    check_column_names(configuration.roles)
    name = configuration.name if name is None else name
    if url is not None:
        _check_new(url, name)
    place = None
    if not check:
        place = refused_path(refused, source, "--json" if json else None)
        check_apart("refused rows", place, "the ledger", ledger_files(url))  # it may not be there
    history = _read_history(source, configuration)
    if strict:
        history.refused.stop(source)
    place = None if place is None else history.refused.write(place)
    too_many = too_many_message(history.refused, most_refused, file_name(source))
    if too_many is not None:
        raise InputError(
            f"{too_many}, {commonest(history.refused)}; no program was started, correct "
            f"the history or the configuration"
            f"{'' if place is None else f', {place} has the rows with the reasons'}."
        )
    X, groups, ids = features_groups_ids(history.table, configuration.roles, history.columns)
    with progress("learning from the history", json), printed_warnings(LearningWarning) as notes:
        classifier, y, checkpoint = configuration.classifier(), history.good.astype(np.int8), None
        given = {"accepted": history.accepted, "sensitive_features": groups, "ids": ids}
        about = configuration.about(history.columns.names or (), history.gaps)
        if check or url is None:
            classifier.fit(X, y, **given)  # raises what starting the program would raise
        else:
            created = Program.create(url, classifier, X, y, **given, name=name, by=by, about=about)
            checkpoint = str(created.checkpoint())
    _report(name, classifier.bound_, checkpoint, history, configuration, place, notes, json)


def _check_new(url: str, name: str) -> None:
    """Raise if the ledger has a program of that name."""
    from fairchance.ledger import SqlLedger  # noqa: PLC0415 - an extra

    try:
        known = SqlLedger(url).programs()
    except LedgerError:
        return  # the ledger does not exist yet, or creating the program raises the same error
    if name in known:
        raise InputError(
            f"the ledger has a program {name!r} already, and nothing was changed; go on with "
            f"it (fairchance decide), or give another name with --program."
        )


def _read_history(source: str, config: Config) -> PastApplications:
    roles = config.roles
    shown = file_name(source)
    sent = read_sent(source, text=(*text_columns(roles), *config.texts))
    table = with_codes_as_text(sent.table, sent.as_written)
    needed = [roles.id, roles.outcome, *([roles.accepted] if roles.accepted else [])]
    if roles.accepted is not None and roles.accepted not in table.column_names:
        raise InputError(
            f"{shown} has no column {roles.accepted!r}, which [columns] accepted names; name the "
            f"column of past decisions, or remove the key if all applicants with an outcome were "
            f"accepted."
        )
    check_there(table, [*needed, *roles.groups, *config.texts], shown)
    check_there(table, roles.features, shown)
    columns, found = find_columns(
        table,
        config.features(table.column_names),
        chosen=roles.features,
        texts=config.texts,
        missing=config.missing_values,
        source=shown,
    )
    ready, refused = split_rows(
        table,
        roles,
        columns,
        missing=() if config.missing == "refuse" else columns.names or (),
        missing_values=config.missing_values,
        why_not_missing="and [columns] missing = 'refuse' takes no such row",
        source=shown,
        as_written=sent.as_written,
    )
    before = refused.usable
    refuse_ambiguous_ids(ready[roles.id].to_pylist(), roles.id, refused)
    states, taken, unread = _past(refused, config)
    _refuse_single_members(refused, roles.groups)
    usable = refused.usable
    if not usable.any():
        raise InputError(
            f"no row of {shown} can be used, {commonest(refused)}; correct the file or "
            f"the configuration."
        )
    history = PastApplications(
        ready.filter(usable[before]),
        columns,
        found,
        taken[usable],
        states[usable] == "good",
        int(unread[usable].sum()),
        refused,
    )
    _check_outcomes(history, config, shown, unknown=bool((states == "?").any()))
    if not roles.features:
        _check_features_are_not_answers(history, shown)
    return history


def _check_outcomes(
    history: PastApplications, config: Config, source: str, *, unknown: bool
) -> None:
    """Raise if all outcomes are the same and that is a mistake, or the classifier cannot start."""
    good = history.good[history.accepted]
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


def _refuse_single_members(refused: Refusals, names: tuple[str, ...]) -> None:
    """Refuse applicants who are the only usable ones of their group."""
    if not names:
        return
    columns = (refused.table[name].to_pylist() for name in names)
    members = np.array([", ".join(map(str, row)) for row in zip(*columns, strict=True)], np.object_)
    rows = np.flatnonzero(refused.usable)
    of_row = members[rows].astype(np.str_)
    _, place, n = np.unique(of_row, return_inverse=True, return_counts=True)
    alone = rows[n[place] == 1]
    refused.add_each(
        alone,
        "the group ",
        [shortened(members[row]) for row in alone],
        " has no other applicant, and a group needs two; merge it with another",
    )


def _check_features_are_not_answers(history: PastApplications, source: str) -> None:
    """Raise if a column that is a feature by default repeats the decision or the outcome."""
    everyone = np.ones(history.accepted.size, np.bool_)
    for what, rows, truth in (
        ("decision", everyone, history.accepted),
        ("outcome", history.accepted, history.good[history.accepted]),
    ):
        if truth.size < _ENOUGH_ROWS or truth.all() or not truth.any():
            continue
        for name in history.columns.names or ():
            values = history.table[name].filter(rows).combine_chunks().dictionary_encode()
            codes = values.indices.fill_null(-1).to_numpy(zero_copy_only=False)
            alike = np.array_equal(codes == codes[0], truth == truth[0])
            if len(values.dictionary) == 2 and alike:
                raise InputError(
                    f"the column {name!r} of {source} repeats the {what} in every row, which is "
                    f"unknown when deciding; name its role in [columns], or list the features "
                    f"to use in [columns] features."
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
    if roles.accepted is None:
        _refuse_outcomes(states, refused, config)
        return states, np.isin(states, ("good", "bad")), np.zeros(states.size, np.bool_)
    decision = truth_values(table[roles.accepted])
    texts = table[roles.accepted].to_pylist()
    unread = (decision == "no") & (states != "")
    states = np.where(decision == "no", "", states)
    _refuse_outcomes(states, refused, config)
    odd = np.flatnonzero(np.isin(decision, ("?", "")))
    refused.add_each(
        odd,
        f"{roles.accepted!r} must be {TRUTH_VALUES}, got ",
        ["nothing" if texts[row] is None else shortened(texts[row]) for row in odd],
    )
    pending = np.flatnonzero((decision == "yes") & (states == ""))
    refused.add(pending, "the applicant was accepted and has no outcome yet")
    return states, decision == "yes", unread


def _refuse_outcomes(states: NDArray[np.str_], refused: Refusals, config: Config) -> None:
    """Refuse rows with an unknown label, or with the label for outcomes never to be known."""
    unknown = np.flatnonzero(states == "?")
    values = refused.table[config.roles.outcome].to_pylist()
    refused.add_each(
        unknown,
        "the outcome ",
        [shortened(values[row]) for row in unknown],
        f" is none of the labels in [outcomes]: {config.labels.listed()}",
    )
    refused.add(
        np.flatnonzero(states == "indeterminate"),
        "the outcome will never be known, so it teaches nothing",
    )


def _report(
    program: str,
    alpha: float | None,
    checkpoint: str | None,
    history: PastApplications,
    config: Config,
    place: str | None,
    notes: list[str],
    json: bool,
) -> None:
    """Print what was recorded, or without a checkpoint what would be."""
    n_accepted, n_good = int(history.accepted.sum()), int(history.good.sum())
    n, n_refused = len(history.accepted), len(history.refused)
    left_out = {column.name: column.left_out for column in history.found if column.left_out}
    suspect = _mostly_bad(n_good, n_accepted, alpha, config)
    words = dict.fromkeys(column.word for column in history.found if column.word)
    hints = [
        f"If {shortened(word)} means that a value is missing, add it to missing_values in "
        f"[columns], and start another program."
        for word in words
    ]
    if config.settings["kind"] == "certified" and "patience" not in config.settings:
        hints.append(
            "No patience is set, so one accepted applicant whose outcome never arrives holds up "
            "all later certificates. Set patience in [classifier] to the number of rounds after "
            "which missing outcomes count as bad, such as 12, or to 'never'"
            + ("." if checkpoint is None else ", and start another program (--program) with it.")
        )
    refused = refused_counts(history.refused, place)
    planned = {} if checkpoint is not None else _planned(history, config)
    if json:
        print_json(
            {
                "program": program,
                "people": n,
                "accepted": n_accepted,
                "good": n_good,
                "bad": n_accepted - n_good,
                "outcomes_not_read": history.n_unread,
                "refused": n_refused,
                "refused_rows": refused["file"],
                "reasons": refused["reasons"],
                "features": [
                    {
                        "column": column.name,
                        "kind": column.kind,
                        "values": column.values,
                        "missing": column.missing,
                    }
                    for column in history.found
                    if not column.left_out
                ],
                "left_out": left_out,
                "groups": list(config.roles.groups),
                "notes": [*notes, *suspect, *hints],
                "checkpoint": checkpoint,
                **planned,
            }
        )
        return
    lines = [
        f"Program {program!r} is recorded."
        if checkpoint is not None
        else f"Nothing is recorded. Without --check, program {program!r} would be:",
        f"{people(n)}: {n_accepted:,} accepted ({n_good:,} good, {n_accepted - n_good:,} bad), "
        f"{n - n_accepted:,} rejected",
    ]
    if history.n_unread:
        lines.append(f"Not read: {counted(history.n_unread, 'outcome')} of rejected applicants")
    lines += [*suspect, *refused_message(refused), *hints, *_columns_message(history.found)]
    if config.roles.groups:
        lines.append(f"Groups: {', '.join(config.roles.groups)}")
    if planned:
        lines += _planned_message(planned)
    else:
        lines.append(f"Checkpoint (store it elsewhere): {checkpoint}")
        lines.append("Next: fairchance decide applicants.csv -o decisions.csv")
    print_lines(lines, to_stderr=place == "-")


def _planned(history: PastApplications, config: Config) -> dict[str, Any]:
    """Return what ``--check`` shows in addition."""
    roles, features = config.roles, history.columns.names or ()
    read = map(
        config.labels.canonical, history.table[roles.outcome].filter(history.accepted).to_pylist()
    )
    of_label = Counter(read)
    return {
        "outcomes": {
            state: {label: of_label[label] for label in labels}
            for state, labels in config.labels.by_state().items()
        },
        "people_of_group": {
            name: dict(sorted(Counter(history.table[name].to_pylist()).items()))
            for name in roles.groups
        },
        "settings": config.settings,
        "needed": [
            roles.id,
            *roles.groups,
            *(name for name in features if name not in roles.groups),
        ],
        "may_be_missing": config.about(features, history.gaps)["missing"],
    }


def _planned_message(planned: dict[str, Any]) -> list[str]:
    """Return what ``_planned`` found as lines."""
    lines = [
        f"Outcomes that are {state}: " + ", ".join(f"{label!r} ({n:,})" for label, n in of.items())
        for state, of in planned["outcomes"].items()
        if of
    ]
    lines += [
        f"People by {name!r}: " + ", ".join(f"{value!r} ({n:,})" for value, n in of.items())
        for name, of in planned["people_of_group"].items()
    ]
    lines.append(
        "Settings: " + ", ".join(f"{key} = {value!r}" for key, value in planned["settings"].items())
    )
    empty = ", ".join(map(repr, planned["may_be_missing"]))
    may = f"; values may be missing in {empty}" if empty else "; no value may be missing"
    return [*lines, f"A batch needs the columns {', '.join(map(repr, planned['needed']))}{may}."]


def _mostly_bad(n_good: int, n: int, alpha: float | None, config: Config) -> list[str]:
    """Warn if so many outcomes are bad that the labels may be swapped."""
    from fairchance.core.metrics import exact_interval  # noqa: PLC0415 - slow

    if n == 0 or exact_interval(n - n_good, n)[0] <= max(alpha or 0.0, 0.5):
        return []
    bound = "" if alpha is None else f", against a bound of {100 * alpha:.3g} %"
    good = config.labels.good
    labels = repr(good[0]) if len(good) == 1 else str(list(good))
    return [
        f"{100 * (n - n_good) / n:.3g} % of the outcomes are bad{bound}; check in [outcomes] that "
        f"good = {labels} is right"
    ]


def _columns_message(found: list[FoundColumn]) -> list[str]:
    r"""Return the columns that decisions use as a table, and those that they do not use.

    Examples
    --------
    >>> income = FoundColumn("income", "number", "501 to 9,820", 12)
    >>> empty = FoundColumn("phone", "", "", 3000, "is empty in every row")
    >>> print(*_columns_message([income, empty]), sep="\n")
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
        f"  {column.name!r} {column.left_out}"
        + ("; to use it, list all features in [columns]" if column.kind == "number" else "")
        for column in found
        if column.left_out
    ]
    return [*lines, *(["Left out:", *left_out] if left_out else [])]
