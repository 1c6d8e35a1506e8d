"""Start a program from the command line: ``secondlook init``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from secondlook.cli.files.refusals import (
    Refusals,
    check_share,
    commonest,
    reason_counts,
    refused_path,
    refused_words,
    too_many,
)
from secondlook.cli.files.rows import (
    check_there,
    cut,
    history_columns,
    outcome_states,
    people,
    split_rows,
    text_columns,
    truth_values,
)
from secondlook.cli.files.tables import called, check_apart, ledger_files, read_sent
from secondlook.cli.input_checks import check_read_back, mistakable_ids
from secondlook.cli.messages import alpha_and_delta
from secondlook.cli.options import (
    By,
    Json,
    MostRefused,
    Refused,
    Strict,
    check_named,
    errors,
    noted,
    progress,
)
from secondlook.cli.output import as_json, say
from secondlook.errors import InputError, LearningWarning, LedgerError

if TYPE_CHECKING:
    from secondlook.ledger.config import Config
    from secondlook.ledger.encoding import Columns

_ENOUGH_TO_TELL = 30  # rows that do not agree by chance


def init(
    history: Annotated[
        str | None,
        typer.Argument(help="Past applications: a csv or parquet file, or - for csv on stdin."),
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            envvar="SECONDLOOK_LEDGER",
            metavar="URL",
            help="Where the record will live: sqlite:///lender.db or postgresql://host/database.",
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The program's configuration, in TOML.")
    ] = None,
    example: Annotated[
        bool, typer.Option("--example", help="Write a configuration to begin with, and no more.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="With --example: where; else stdout."),
    ] = None,
    program: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A name for it, instead of the configuration's."),
    ] = None,
    refused: Refused = None,
    most_refused: MostRefused = 0.5,
    strict: Strict = False,
    by: By = None,
    json: Json = False,
) -> None:
    """Start a program: a classifier, its configuration and the history, on the record.

    Outcomes are read where somebody was accepted, and nowhere else. Rows that cannot be used go to
    a file with the reasons; if more than half are such rows, no program is started.

    Example: secondlook init --ledger sqlite:///lender.db --config program.toml past.csv
    """
    with errors(json):
        check_share(most_refused)
        check_named("--program", program)
        check_named("--by", by)
        if example:
            if history is not None or config is not None:
                raise InputError("--example only writes a configuration; give it -o or nothing.")
            _write_example(output, json)
            return
        if ledger is None or config is None or history is None or output is not None:
            raise InputError(
                "init needs --ledger (or SECONDLOOK_LEDGER), --config and a history, and -o only "
                "with --example; secondlook init --example -o program.toml writes a configuration "
                "to begin with."
            )
        _start(history, ledger, config, program, refused, most_refused, strict, by, json)


def _write_example(output: Path | None, json: bool) -> None:
    from secondlook.ledger.config import example_config  # noqa: PLC0415 - an extra

    if output is None:
        print(example_config(), end="")
        return
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(example_config())
    except FileExistsError:
        raise InputError(
            f"{str(output)!r} is there already and is not overwritten; name another file."
        ) from None
    except OSError as error:
        raise InputError(
            f"{str(output)!r} cannot be written ({error.strerror}); name another file."
        ) from error
    if json:
        as_json({"written": output})
    else:
        print(f"Written: {output}; change it to fit your files, then: secondlook init --config …")


@dataclass(frozen=True)
class _History:
    """A history that can be used, and what it was made of."""

    table: Any
    columns: Columns
    accepted: NDArray[np.bool_]
    good: NDArray[np.bool_]
    n_unread: int  # rejected people with an outcome, which is not read
    refused: Refusals


def _start(
    source: str,
    url: str,
    config: Path,
    name: str | None,
    refused: str | None,
    most_refused: float,
    strict: bool,
    by: str | None,
    json: bool,
) -> None:
    from secondlook.ledger import Program  # noqa: PLC0415 - an extra
    from secondlook.ledger.config import read_config  # noqa: PLC0415

    if config.is_dir():
        raise InputError(f"{str(config)!r} is a folder; name a file in it.")
    wanted = read_config(config)
    check_read_back(wanted.roles)
    name = wanted.name if name is None else name
    _check_new(url, name)
    place = refused_path(refused, source, "--json" if json else None)
    check_apart("refused rows", place, "the ledger", ledger_files(url))  # which may not be there
    found = _read_history(source, wanted)
    if strict:
        found.refused.stop(source)
    columns = found.columns
    names = columns.names or ()
    numbers = tuple(one for one in names if one not in columns.texts)
    classifier = wanted.classifier(columns.texts, numbers)
    place = found.refused.write(place)
    many = too_many(found.refused, most_refused, called(source))
    if many is not None:
        raise InputError(
            f"{many}, {commonest(found.refused)}; no program was started, mend the history or the "
            f"configuration, {place} has the rows with the reasons."
        )
    X, groups, ids = people(found.table, wanted.roles, columns)
    with progress("learning from the history", json), noted(LearningWarning) as notes:
        made = Program.create(
            url,
            classifier,
            X,
            found.good.astype(np.int8),
            accepted=found.accepted,
            sensitive_features=groups,
            ids=ids,
            name=name,
            by=by,
            about=wanted.about(names),
        )
    _report(made, found, wanted, place, notes, json)


def _check_new(url: str, name: str) -> None:
    """Raise if there is such a program; a ledger that is not there yet has none."""
    from secondlook.ledger import SqlLedger  # noqa: PLC0415 - an extra

    try:
        known = SqlLedger(url).programs()
    except LedgerError:
        return  # creating it will say what is wrong, if anything is
    if name in known:
        raise InputError(
            f"the ledger has a program called {name!r} already, and nothing was changed; go on "
            f"with it (secondlook decide), or name another with --program."
        )


def _read_history(source: str, config: Config) -> _History:
    roles = config.roles
    shown = called(source)
    sent = read_sent(source, text=(*text_columns(roles), *config.texts))
    table = sent.table
    needed = [roles.id, roles.outcome, *([roles.accepted] if roles.accepted else [])]
    if roles.accepted is not None and roles.accepted not in table.column_names:
        raise InputError(
            f"{shown} has no column {roles.accepted!r}, which [columns] accepted names; name the "
            f"one that says who was accepted, or take the key out if everybody with an outcome was."
        )
    check_there(table, [*needed, *roles.groups, *config.texts], shown)
    columns = history_columns(table, config.features(table.column_names), config.texts, shown)
    ready, refused = split_rows(
        table,
        roles,
        columns,
        missing=config.missing,
        source=shown,
        as_written=sent.as_written,
    )
    before = refused.usable
    mistakable_ids(ready[roles.id].to_pylist(), roles.id, refused)
    states, taken, unread = _past(refused, config)
    usable = refused.usable
    if not usable.any():
        raise InputError(
            f"no row of {shown} can be used, {commonest(refused)}; mend the file or the "
            f"configuration."
        )
    found = _History(
        ready.filter(usable[before]),
        columns,
        taken[usable],
        states[usable] == "good",
        int(unread[usable].sum()),
        refused,
    )
    _check_both_outcomes(found, shown)
    if not roles.features:
        _check_features_are_not_answers(found, shown)
    return found


def _check_both_outcomes(found: _History, source: str) -> None:
    good = found.good[found.accepted]
    if good.size and (good.all() or not good.any()):
        why = f"; {len(found.refused)} rows were refused" if len(found.refused) else ""
        why += f", {commonest(found.refused, 1)}" if why else ""
        raise InputError(
            f"all {good.size:,} accepted people of {source} are {'good' if good[0] else 'bad'}, "
            f"and both are needed to tell them apart{why}; add the others, or mend [outcomes]."
        )


def _check_features_are_not_answers(found: _History, source: str) -> None:
    """Raise if a column that nobody named as a feature says what is to be found out."""
    everybody = np.ones(found.accepted.size, np.bool_)
    for what, rows, truth in (
        ("who was accepted", everybody, found.accepted),
        ("what came of everybody accepted", found.accepted, found.good[found.accepted]),
    ):
        if truth.size < _ENOUGH_TO_TELL or truth.all() or not truth.any():
            continue
        for name in found.columns.names or ():
            values = found.table[name].filter(rows).combine_chunks().dictionary_encode()
            codes = values.indices.fill_null(-1).to_numpy(zero_copy_only=False)
            alike = np.array_equal(codes == codes[0], truth == truth[0])
            if len(values.dictionary) == 2 and alike:
                raise InputError(
                    f"the column {name!r} of {source} says in every row {what}, which nobody knows "
                    f"when deciding; name its role in [columns], or list the features to use in "
                    f"[columns] features."
                )


def _past(
    refused: Refusals, config: Config
) -> tuple[NDArray[np.str_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return everybody's outcome, who was accepted, and whose outcome is there and not read.

    Outcomes of the rejected are not read, whatever they say. Rows where the others' outcome and
    who was accepted do not fit are refused.
    """
    roles, table = config.roles, refused.table
    states = outcome_states(table[roles.outcome], config.labels)
    if roles.accepted is None:
        _refuse_outcomes(states, refused, config)
        nobody = np.zeros(states.size, np.bool_)
        return states, np.isin(states, ("good", "bad")), nobody
    said = truth_values(table[roles.accepted])
    words = table[roles.accepted].to_pylist()
    unread = (said == "no") & (states != "")
    states = np.where(said == "no", "", states)
    _refuse_outcomes(states, refused, config)
    odd = np.flatnonzero(np.isin(said, ("?", "")))
    refused.add_each(
        odd,
        f"{roles.accepted!r} must be 1 or 0, true or false, yes or no, y or n, got ",
        ["nothing" if words[row] is None else cut(words[row]) for row in odd],
    )
    pending = np.flatnonzero((said == "yes") & (states == ""))
    refused.add(pending, "accepted, and the outcome is still to come")
    return states, said == "yes", unread


def _refuse_outcomes(states: NDArray[np.str_], refused: Refusals, config: Config) -> None:
    """Refuse rows with an outcome that means nothing, or that says that none will be known."""
    strange = np.flatnonzero(states == "?")
    values = refused.table[config.roles.outcome].to_pylist()
    refused.add_each(
        strange,
        "the outcome ",
        [cut(values[row]) for row in strange],
        f" has no meaning; [outcomes] knows {config.labels.listed()}",
    )
    refused.add(
        np.flatnonzero(states == "indeterminate"),
        "the outcome will never be known, so a history cannot use it",
    )


def _report(
    program: Any, found: _History, config: Config, place: str, notes: list[str], json: bool
) -> None:
    columns, n_accepted, n_good = found.columns, int(found.accepted.sum()), int(found.good.sum())
    n, n_refused = len(found.accepted), len(found.refused)
    suspect = _mostly_bad(n_good, n_accepted, alpha_and_delta(program.classifier)[0], config)
    refused = reason_counts(found.refused, place)
    checkpoint = str(program.checkpoint())
    if json:
        as_json(
            {
                "program": program.name,
                "people": n,
                "accepted": n_accepted,
                "good": n_good,
                "bad": n_accepted - n_good,
                "outcomes_not_read": found.n_unread,
                "refused": n_refused,
                "refused_rows": refused["file"],
                "reasons": refused["reasons"],
                "features": list(columns.names or ()),
                "text_features": list(columns.texts),
                "groups": list(config.roles.groups),
                "notes": [*notes, *suspect],
                "checkpoint": checkpoint,
            }
        )
        return
    lines = [
        f"Program {program.name!r} is on the record.",
        f"{n:,} people: {n_accepted:,} accepted ({n_good:,} good, {n_accepted - n_good:,} bad), "
        f"{n - n_accepted:,} rejected",
    ]
    if found.n_unread:
        lines.append(
            f"Not read: {found.n_unread:,} outcomes of rejected people, since outcomes count only "
            f"where somebody was accepted"
        )
    lines += [*suspect, *refused_words(refused)]
    lines.append(f"Decides by: {', '.join(_shown(one, columns) for one in columns.names or ())}")
    if config.roles.groups:
        lines.append(f"Groups: {', '.join(config.roles.groups)}")
    lines.append(f"Checkpoint, to be kept elsewhere: {checkpoint}")
    lines.append("Next: secondlook decide applicants.csv -o decisions.csv")
    say(lines, beside_table=place == "-")


def _mostly_bad(n_good: int, n: int, alpha: float | None, config: Config) -> list[str]:
    """Say so if the accepted were bad so often that the words for outcomes may be swapped."""
    from secondlook.ledger.summary import exact_interval  # noqa: PLC0415 - an extra

    if n == 0 or exact_interval(n - n_good, n)[0] <= max(alpha or 0.0, 0.5):
        return []
    bound = "" if alpha is None else f", against a bound of {100 * alpha:.3g} %"
    good = config.labels.good
    words = (
        f"{good[0]!r} is the good word" if len(good) == 1 else f"{list(good)} are the good words"
    )
    return [
        f"{100 * (n - n_good) / n:.3g} % of the outcomes are bad{bound}; check in [outcomes] that "
        f"good = {words}"
    ]


def _shown(name: str, columns: Columns) -> str:
    return f"{name} (text)" if name in columns.texts else name
