"""``fairchance init``: start a program from a configuration and a history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from fairchance.cli.files.histories import PastApplications, columns_message, read_history
from fairchance.cli.files.kinds import is_measure
from fairchance.cli.files.refusals import (
    check_share,
    commonest,
    refused_counts,
    refused_message,
    refused_path,
    too_many_message,
)
from fairchance.cli.files.rows import features_groups_ids, persons_of
from fairchance.cli.files.tables import check_apart, file_name, ledger_files
from fairchance.cli.input_checks import check_column_names
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
from fairchance.cli.output import is_interactive, print_json, print_lines
from fairchance.errors import InputError, LearningWarning, LedgerError, visible, writing
from fairchance.words import percent, shortened
from fairchance.words.columns import left_out_words
from fairchance.words.rounds import note_text

if TYPE_CHECKING:
    from fairchance.core.decisions import Note
    from fairchance.ledger.config import Config


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
    A column that looks like a protected attribute or like the time of the application is used only
    if [columns] names its role; otherwise the command asks, or without a terminal starts nothing.
    With --check, nothing is recorded and no file is written; it needs no ledger.

    Example: fairchance init --ledger sqlite:///lender.db --config program.toml past.csv
    """
    with errors(json):
        check_share(most_refused)
        check_name("program", program)
        check_name("by", by)
        if example:
            if history is not None or config is not None:
                raise InputError("{option} takes no argument but -o.", option="example")
            _write_example(output, json)
            return
        if (
            (ledger is None and not check)
            or config is None
            or history is None
            or output is not None
        ):
            raise InputError(
                "init needs --ledger, --config and a history; {option} writes a configuration.",
                option="example",
            )
        _start(history, ledger, config, program, refused, most_refused, strict, by, check, json)


def _write_example(output: Path | None, json: bool) -> None:
    from fairchance.ledger.config import example_config  # noqa: PLC0415 - an extra

    if output is None:
        print_lines(example_config().splitlines())
        return
    with writing(output), output.open("x", encoding="utf-8") as file:
        file.write(example_config())
    if json:
        print_json({"written": output})
    else:
        print_lines([f"Written: {output}; adapt it, then: fairchance init --config {output} …"])


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
    place = None
    if not (check or url is None):
        _check_new(url, name)
        place = refused_path(refused, source, "--json" if json else None)
        check_apart("refused rows", place, "the ledger", ledger_files(url))  # it may not be there
    history = read_history(source, configuration)
    if history.open_roles and not check:
        if json or source == "-" or not is_interactive():
            raise _open_roles_error(history, configuration, json=json)
        configuration = _with_answers(history, configuration)
        history = read_history(source, configuration)
    configuration.check_reasons(history.columns.names or ())
    if strict:
        history.refused.stop(source)
    place = None if place is None else history.refused.write(place)
    too_many = too_many_message(history.refused, most_refused, file_name(source))
    if too_many is not None:
        if not json:
            causes = refused_message(refused_counts(history.refused, place))
            print_lines(causes, to_stderr=place == "-")
        raise InputError(
            f"{too_many}, {commonest(history.refused, 1)}; no program was started"
            f"{'' if place is None else f', {place} has the rows with the reasons'}."
        )
    X, groups, ids = features_groups_ids(history.table, configuration.roles, history.columns)
    with progress("learning from the history", json), printed_warnings(LearningWarning) as warned:
        classifier, y, checkpoint = configuration.classifier(), history.good.astype(np.int8), None
        given = {"accepted": history.accepted, "sensitive_features": groups, "ids": ids}
        given |= {"not_taken": history.not_taken} if history.not_taken.any() else {}
        given |= persons_of(history.table, configuration.roles)
        about = configuration.about(history.columns.names or (), history.gaps)
        if check or url is None:
            classifier.fit(X, y, **given)  # raises what starting the program would raise
        else:
            created = Program.create(url, classifier, X, y, **given, name=name, by=by, about=about)
            checkpoint = str(created.checkpoint())
    read = getattr(classifier, "past_reading_", None)
    beside = configuration.roles.incumbent is not None
    noted = [] if read is None else [read.note(beside=beside)]
    _report(name, classifier.bound_, checkpoint, history, configuration, place, warned, noted, json)
    if history.open_roles:
        raise typer.Exit(2)  # as without --check


def _open_roles_message(history: PastApplications, config: Config) -> str:
    """Say which columns need a role."""
    looks: dict[str, list[str]] = {"protected": [], "applied": []}
    for column in history.open_roles:
        looks[column.left_out].append(repr(column.name))
    kinds = {"protected": "protected attributes", "applied": "the time of the application"}
    what = " and ".join(f"{kinds[kind]} ({', '.join(of)})" for kind, of in looks.items() if of)
    return (
        f"columns look like {what}, which decisions use only if you say so; name each in groups, "
        f"applied or ignore in [columns] of {config.source}, or list all features there, with it."
    )


def _proposed(history: PastApplications, config: Config) -> list[str]:
    """Return lines for [columns] that name a role of each open column."""
    roles, looks = config.roles, {one.name: one for one in history.open_roles}
    groups = [
        name
        for name, one in looks.items()
        if one.left_out == "protected" and not is_measure(history.table[name])
    ]
    times = [name for name, one in looks.items() if one.left_out == "applied"]
    applied = roles.applied or next(iter(times), None)
    rest = [name for name in looks if name not in (*groups, applied)]
    roles = replace(roles, groups=(*roles.groups, *groups), applied=applied)
    proposed = replace(config, roles=roles, ignore=(*config.ignore, *rest))
    lines = [f"For example, in [columns] of {config.source}:", *_in_toml(proposed)]
    dates = [name for name in times if looks[name].kind == "date"]  # other forms are not read
    if dates:
        used = [one.name for one in history.found if not one.left_out or one.name in dates]
        roles = replace(roles, applied=config.roles.applied, features=tuple(used))
        lines.append(f"Or, to use {', '.join(map(repr, dates))}, with all features:")
        lines += _in_toml(replace(config, roles=roles))
    return lines


def _in_toml(config: Config) -> list[str]:
    """Return the roles that a user may be asked for as lines of TOML."""
    roles = config.roles
    said = {
        "groups": roles.groups,
        "ignore": config.ignore,
        "features": roles.features,
        "applied": roles.applied,
    }
    return [f"{key} = {dumps(names, ensure_ascii=False)}" for key, names in said.items() if names]


def _open_roles_error(history: PastApplications, config: Config, *, json: bool) -> InputError:
    if not json:
        print_lines(_proposed(history, config))
    return InputError(_open_roles_message(history, config))


def _with_answers(history: PastApplications, config: Config) -> Config:
    """Ask for the role of each column that needs one; return the configuration that says so."""
    from fairchance.ledger.config import check_roles  # noqa: PLC0415 - an extra

    roles, used = config.roles, []
    chosen: dict[str, list[str]] = {"group": [], "applied": [], "ignore": [], "feature": []}
    for column in history.open_roles:
        first = "group" if column.left_out == "protected" else "applied"
        answers = [first, "ignore", "feature"]
        is_taken = first == "applied" and (roles.applied or chosen["applied"])
        if is_taken or (first == "group" and is_measure(history.table[column.name])):
            answers.remove(first)
        looks = f"{column.name!r} ({column.values}) {left_out_words(column.left_out)}."
        question = visible(f"{looks} What is it, {' or '.join(answers)}?")
        answer = ""
        while answer not in answers:
            try:
                answer = typer.prompt(question).strip()
            except (typer.Abort, RuntimeError):  # no answer, or standard input is closed
                raise _open_roles_error(history, config, json=False) from None
        chosen[answer].append(column.name)
    if chosen["feature"]:
        used = [
            column.name
            for column in history.found
            if not column.left_out or column.name in chosen["feature"]
        ]
    answered = replace(
        config,
        roles=replace(
            roles,
            groups=(*roles.groups, *chosen["group"]),
            applied=next(iter(chosen["applied"]), roles.applied),
            features=tuple(used),
        ),
        ignore=(*config.ignore, *chosen["ignore"]),
    )
    check_roles(answered)
    asked = f"To be asked no more, write into [columns] of {config.source}:"
    print_lines([asked, *_in_toml(answered)])
    return answered


def _check_new(url: str, name: str) -> None:
    """Raise if the ledger has a program of that name."""
    from fairchance.ledger import SqlLedger  # noqa: PLC0415 - an extra

    try:
        known = SqlLedger(url).programs()
    except LedgerError:
        return  # the ledger does not exist yet, or creating the program raises the same error
    if name in known:
        raise InputError(
            f"the ledger has a program {name!r} already; give another name with {{option}}.",
            option="program",
        )


def _report(
    program: str,
    alpha: float | None,
    checkpoint: str | None,
    history: PastApplications,
    config: Config,
    place: str | None,
    warned: list[str],
    noted: list[Note],
    json: bool,
) -> None:
    """Print what was recorded, or without a checkpoint what would be."""
    notes = [*_notes(history, alpha, config)]
    notes += [{"code": note.code, "message": note_text(note)} for note in noted]
    planned = {} if checkpoint is not None else _planned(history, config)
    if json:
        all_notes = [{"code": "learning", "message": message} for message in warned] + notes
        print_json(
            {
                "program": program,
                **history.as_dict(place),
                "groups": list(config.roles.groups),
                "notes": all_notes,
                "checkpoint": checkpoint,
                **planned,
            }
        )
        return
    lines = [
        f"Program {program!r} is recorded."
        if checkpoint is not None
        else f"Nothing is recorded, and without --check nothing would be, since columns have no "
        f"role. Once they have one, program {program!r} would be:"
        if history.open_roles
        else f"Nothing is recorded. Without --check, program {program!r} would be:",
        *history.lines(),
        *refused_message(refused_counts(history.refused, place)),
        *(note["message"] for note in notes),
        *(_proposed(history, config) if history.open_roles else ()),
        *columns_message(
            history.found,
            "in [columns]",
            persons=config.settings["kind"] == "certified" and not config.roles.persons,
        ),
    ]
    if config.roles.groups:
        lines.append(f"Groups: {', '.join(config.roles.groups)}")
    if planned:
        lines += _planned_message(planned)
    else:
        lines.append(f"Checkpoint (store it elsewhere): {checkpoint}")
        lines.append("Next: fairchance decide applicants.csv -o decisions.csv")
    print_lines(lines, to_stderr=place == "-")


def _notes(
    history: PastApplications, alpha: float | None, config: Config
) -> Iterator[dict[str, str]]:
    """Say what may be wrong with the history or the configuration."""
    from fairchance.core.metrics import exact_interval  # noqa: PLC0415 - slow

    n_bad, n = history.n_bad, history.n_bad + int(history.good.sum())
    if n and exact_interval(n_bad, n)[0] > max(alpha or 0.0, 0.5):
        message = f"{percent(n_bad / n)} of the outcomes are bad; is good in [outcomes] right?"
        yield {"code": "mostly_bad", "message": message}
    if history.open_roles:
        message = _open_roles_message(history, config)
        yield {"code": "open_roles", "message": f"{message[0].upper()}{message[1:]}"}
    for name, area in history.telling.items():
        message = (
            f"{name!r} alone tells good outcomes from bad ones (area under the curve {area:.2f}). "
            f"If it is known only after the decision, rankings and certificates from the history "
            f"are worth nothing: name it in ignore."
        )
        yield {"code": "tells_outcome", "message": message}
    for word in dict.fromkeys(column.word for column in history.found if column.word):
        message = f"If {shortened(word)} means a missing value, name it in missing_values."
        yield {"code": "missing_value", "message": message}
    unsaid = config.without_sentence(history.columns.names or (), history.gaps)
    if unsaid:
        message = (
            f"[reasons] has no sentence for {', '.join(map(repr, unsaid))}; letters give the name."
        )
        yield {"code": "no_sentence", "message": message}
    if config.settings["kind"] == "certified" and "patience" not in config.settings:
        message = (
            "Without patience in [classifier], one outcome that never arrives holds up all later "
            "certificates; set it to a number of rounds, such as 12, or to 'never'."
        )
        yield {"code": "no_patience", "message": message}
    if config.settings["kind"] == "certified" and "maturity" not in config.settings:
        message = (
            "Without maturity in [classifier], outcomes count as final at once, and certificates "
            "that rest on one are withdrawn if it is corrected; set it to the number of rounds "
            "until outcomes are no longer corrected, or to 0."
        )
        yield {"code": "final_at_once", "message": message}


def _planned(history: PastApplications, config: Config) -> dict[str, Any]:
    """Return what ``--check`` shows in addition."""
    roles, features = config.roles, history.columns.names or ()
    read = history.table[roles.outcome].filter(history.accepted).to_pylist()
    of_label = Counter(map(config.labels.meant, read))
    return {
        "outcomes": {
            state: {label: of_label[label] for label in labels}
            for state, labels in config.labels.by_state().items()
        },
        "people_of_group": {
            name: dict(sorted(Counter(history.table[name].to_pylist()).items()))
            for name in roles.groups
        },
        "roles": {
            role: name
            for role, name in roles.to_dict().items()
            if name and role not in ("groups", "features")
        },
        "settings": config.settings
        | ({"ramp": config.ramp} if config.ramp < 1 else {})
        | ({"not_taken_within": config.not_taken_within} if config.not_taken_within else {}),
        "needed": [
            roles.id,
            *roles.groups,
            *(name for name in features if name not in roles.groups),
            *roles.by_lender.values(),
            *filter(None, [roles.persons]),
        ],
        "may_be_missing": config.about(features, history.gaps)["missing"],
    }


def _planned_message(planned: dict[str, Any]) -> list[str]:
    """Return what ``_planned`` found as lines."""
    lines = [
        f"Outcomes that are {state.replace('_', ' ')}: "
        + ", ".join(f"{label!r} ({n:,})" for label, n in of.items())
        for state, of in planned["outcomes"].items()
        if of
    ]
    lines += [
        f"People by {name!r}: " + ", ".join(f"{value!r} ({n:,})" for value, n in of.items())
        for name, of in planned["people_of_group"].items()
    ]
    lines.append(
        "Roles: " + ", ".join(f"{role} = {name!r}" for role, name in planned["roles"].items())
    )
    lines.append(
        "Settings: " + ", ".join(f"{key} = {value!r}" for key, value in planned["settings"].items())
    )
    empty = ", ".join(map(repr, planned["may_be_missing"]))
    may = f"; values may be missing in {empty}" if empty else "; no value may be missing"
    return [*lines, f"A batch needs the columns {', '.join(map(repr, planned['needed']))}{may}."]
