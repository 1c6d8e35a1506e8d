"""``fairchance decide``: decide on the applicants in a file, on the record.

The command takes four transactions: one finds the program, one reads it and looks up the
applicants, one decides and records, one reads what the round promises.
"""

from __future__ import annotations

import glob
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

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
    check_there,
    features_groups_ids,
    persons_of,
    refuse_without_person,
    roles_and_labels,
    split_rows,
    text_columns,
)
from fairchance.cli.files.tables import (
    SentTable,
    check_apart,
    check_writable,
    file_name,
    ledger_files,
    read_sent,
    replace_table,
)
from fairchance.cli.input_checks import (
    DECISION_COLUMNS,
    as_recorded,
    namesakes,
    namesakes_message,
    new_groups,
    new_groups_message,
    refuse_ambiguous_ids,
    unseen_values,
    unseen_values_message,
)
from fairchance.cli.options import (
    By,
    Json,
    LedgerUrl,
    MostRefused,
    ProgramName,
    Strict,
    Trusted,
    UnlikeHistory,
    errors,
    open_program,
    progress,
    recorded_already,
)
from fairchance.cli.output import print_json, print_lines
from fairchance.errors import InputError, LearningWarning, LedgerError
from fairchance.extras import arrow
from fairchance.people.cells import decision_words, group_values, truth_values
from fairchance.people.plain import is_whole
from fairchance.words import counted
from fairchance.words.batches import unlike_words
from fairchance.words.rounds import IN_OPEN_ROUND, about_certificate, about_round

if TYPE_CHECKING:  # an extra, and slow to import
    from fairchance.core.decisions import Decisions
    from fairchance.core.groups import Attributes
    from fairchance.ledger.base import Entry, Standing
    from fairchance.ledger.config import Roles
    from fairchance.ledger.encoding import Shape
    from fairchance.ledger.program import Program, ProgramView
    from fairchance.ledger.sql import LedgerReader

__all__ = ["SentFile", "check_columns", "decide", "decide_batch", "decision_table"]
__all__ += ["read_applicants", "usable_applicants", "without_other_content"]


def decide(
    applicants: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Applicants: .csv, .parquet, .xlsx, or - for csv on standard input. Several "
            "files, a pattern in quotes such as 'people/*.parquet', or a folder are decided in "
            "pieces, into a folder.",
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE|FOLDER/",
            help="File for the decisions: .csv or .parquet, or - for csv on standard output. A "
            "folder, with a / at the end, gets a parquet file for each file of applicants.",
        ),
    ],
    ledger: LedgerUrl,
    program: ProgramName = None,
    batch: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A name for the batch; default a random one."),
    ] = None,
    close: Annotated[
        bool,
        typer.Option(
            "--close", help="Into a folder: close the round once all applicants are decided on."
        ),
    ] = False,
    refused: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="File for refused rows, with reasons; default <input>.refused.csv beside the "
            "decisions. Existing files are kept.",
        ),
    ] = None,
    most_refused: MostRefused = 0.5,
    unlike_history: UnlikeHistory = False,
    strict: Strict = False,
    trusted: Trusted = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Decide on all applicants in a file, record the decisions, and write them to a file.

    Rows that cannot be used are written to a file with the reasons, and the others are decided. If
    more than half of the rows cannot be used, or if a column is very unlike the history, nothing is
    recorded. Applicants who were decided on in an earlier round do not count as refused. If the
    same command is given again, for example after a crash, it answers from the record and decides
    nothing again. While a round is open, applicants are decided on in it, and --batch has no use.

    With a folder for the decisions, files of any size are decided piece by piece in one open round,
    which is opened if none is; a file of decisions appears once all of its rows are on record. An
    interrupted command continues where it stopped if it is given again, and ends with the same
    files. The round stays open for further applicants, until fairchance round close or --close. In
    a program with [rounds], rounds end as set there.

    Example: fairchance decide applicants.csv -o decisions.csv --ledger sqlite:///lender.db
    """
    with errors(json):
        check_share(most_refused)
        if _is_folder(out):
            from fairchance.cli import in_pieces  # noqa: PLC0415 - few need it

            in_pieces.check_options(batch, refused)
            files = in_pieces.DecidedFiles(
                open_program(ledger, program, by, trusted),
                most_refused=most_refused,
                strict=strict,
                unlike_history=unlike_history,
            )
            in_pieces.print_files(files.decide(applicants, out, json, close=close), json)
            return
        if close:
            raise InputError(
                "{option} is for decisions into a folder; close the round with fairchance round "
                "close.",
                option="close",
            )
        path = _single_file(applicants)
        refused_file = _check_paths(path, out, refused, ledger, json)
        source = file_name(path)
        opened = open_program(ledger, program, by, trusted)
        with progress("reading applicants", json), opened.reading() as view:
            sent = read_applicants(view, path, batch, source, in_round=view.open_round)
            sentences = view.about.get("reasons", {})
        if strict:
            sent.refusals.stop(source)
        _check_usable(sent, most_refused, source, refused_file, out, json)
        with (
            progress("deciding", json),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore", LearningWarning)  # the summary has it from the record
            decisions = decide_batch(opened, sent, source, unlike_history=unlike_history)
        with (
            progress("writing the decisions", json),
            recorded_already(
                f"{_record_of(sent)} recorded and its file is missing",
                "the same command writes it, with another -o if necessary",
            ),
        ):
            refused_file = sent.refusals.write(refused_file, out)
            kept = replace_table(decision_table(decisions, sentences), out)
        with (
            recorded_already(
                f"{_record_of(sent)} recorded and this summary is missing",
                "the same command prints it",
            ),
            opened.reading() as view,
        ):
            result = _result(view, sent, decisions) | {
                "refused": refused_counts(sent.refusals, refused_file),
                "out": out,
                "kept": kept,
            }
    if json:
        print_json(result)
    else:
        print_lines(_message(result), to_stderr="-" in (out, refused_file))


def _record_of(sent: SentFile) -> str:
    return "the decisions are" if sent.name is None else f"batch {sent.name!r} is"


def _check_paths(source: str, out: str, refused: str | None, ledger: str, json: bool) -> str:
    """Check that everything can be written before anything is decided; return the refused file."""
    check_writable(out)
    if json and out == "-":
        raise InputError(
            "--json and -o - both write to standard output; name a file.", option="out"
        )
    taken_by = "--json" if json else "-o -" if out == "-" else None
    refused_file = refused_path(refused, source, taken_by)
    if refused is None and out != "-":
        refused_file = str(Path(out).with_name(refused_file))
    for what, path, other, taken in (
        ("the decisions", out, "the input", [source]),
        ("refused rows", refused_file, "the input", [source]),
        ("refused rows", refused_file, "the decisions", [out]),
        ("the decisions", out, "the ledger", ledger_files(ledger)),
    ):
        check_apart(what, path, other, taken)
    return refused_file


def _single_file(named: list[str]) -> str:
    """Return the only file; raise if there are several, which need a folder for the decisions."""
    path, *others = named
    is_one = path == "-" or not (glob.has_magic(path) or Path(path).is_dir())
    if others or not (is_one or Path(path).is_file()):
        raise InputError(
            "several files of applicants are decided into a folder; name one that ends with /, "
            "such as {option} decisions/.",
            option="out",
        )
    return path


def _is_folder(out: str) -> bool:
    """Return whether decisions go into a folder, one file for each file of applicants.

    Examples
    --------
    >>> _is_folder("decisions/"), _is_folder("decisions.csv")
    (True, False)
    """
    return out.endswith(("/", os.sep)) or Path(out).is_dir()


# Reading applicants


@dataclass(frozen=True)
class SentFile:
    """The usable rows of a file, as a program takes them.

    Attributes
    ----------
    X, groups, ids
        Features, group values and ids.
    by_lender
        The lender's own decisions (``incumbent``), who is ``barred``, and who applied
        (``persons``), if the program has them.
    name
        Name of the batch.
    recorded
        Its entry, if it is recorded already.
    refusals
        The refused rows.
    n_decided
        How many refused rows are of applicants who were decided on in earlier rounds, with no
        mistake.
    others
        The same rows of other columns that were asked for.
    """

    X: Any
    groups: Any
    ids: NDArray[Any]
    by_lender: dict[str, Any]
    name: str | None
    recorded: Entry | None
    refusals: Refusals
    n_decided: int
    others: Any = None

    def without(self, left_out: NDArray[np.bool_]) -> SentFile:
        """Return the applicants without some, who were refused."""
        kept = arrow().array(~left_out)
        groups = self.groups
        if groups is not None:
            groups = groups.filter(kept) if hasattr(groups, "filter") else groups[~left_out]
        return replace(
            self,
            X=self.X.filter(kept),
            groups=groups,
            ids=self.ids[~left_out],
            by_lender={role: values[~left_out] for role, values in self.by_lender.items()},
            others=None if self.others is None else self.others.filter(kept),
        )

    @property
    def given(self) -> dict[str, Any]:
        """The applicants as the arguments of ``Program.decide``."""
        return {
            "X": self.X,
            "ids": self.ids,
            "sensitive_features": self.groups,
            **self.by_lender,
        }


def read_applicants(
    view: ProgramView,
    path: str,
    batch: str | None,
    source: str,
    *,
    in_round: int | None = None,
) -> SentFile:
    """Read a file of applicants.

    Applicants who were decided on before are refused, unless it was in this batch, or in the round
    ``in_round``, which has no batch yet: a file that is sent again gives the same batch, in any
    order of its rows. Unknown applicants are refused too
    if others in the file belong to a batch with erased applicants: they may be among the erased
    and must not be decided on twice.
    """
    roles, _ = roles_and_labels(view)
    check_columns(view.program.name, view.shape, roles, batch)
    file = read_sent(path, text=text_columns(roles, view.shape.columns))
    return usable_applicants(view, file, batch, source, in_round=in_round)


def usable_applicants(
    view: ProgramView,
    file: SentTable,
    batch: str | None,
    source: str,
    *,
    in_round: int | Sequence[int] | None,
    others: Sequence[str] = (),
) -> SentFile:
    """Return the usable rows of a table, as ``read_applicants`` does, with ``others`` columns."""
    shape, reader = view.shape, view.reader
    roles, _ = roles_and_labels(view)
    groups = view.known_groups
    is_aware = view.settings.says["group_mode"] == "aware"
    table, refusals = split_rows(
        file.table,
        roles,
        shape.columns,
        groups=groups if is_aware else None,
        not_stated=not is_aware and groups is not None and _are_text(groups),
        missing=_may_be_missing(view),
        missing_values=view.about.get("missing_values", ()),
        source=source,
        as_written=file.as_written,
        names_of=lambda given, plain: as_recorded(reader, given, plain),
    )
    decisions = view.about.get("decisions", {})
    table = _with_truths(table, roles, decisions, refusals, source)
    if shape.id_kind == "i":
        table = _with_whole_ids(table, roles.id, refusals)
    table = _with_zeros(view, table, refusals)
    ambiguous = refuse_ambiguous_ids(table[roles.id].to_pylist(), roles.id, refusals, reader)
    table = table.filter(arrow().array(~ambiguous))
    standing = reader.standing(table[roles.id].to_pylist())
    named = None if batch is None else reader.entry("batch", batch)
    unsure = _maybe_erased(reader, standing.persons, named)
    recorded = named
    if batch is None and in_round is None:
        recorded = _batch_of(reader, standing.persons[~unsure])
    decided = _decided_elsewhere(standing, recorded)
    decided &= ~np.isin(standing.round, -1 if in_round is None else in_round)
    unsure &= ~decided
    rows = np.flatnonzero(refusals.usable)
    refusals.add(rows[unsure], "maybe_erased")
    _refuse_decided(rows, decided, standing, refusals)
    left_out = unsure | decided
    table = table.filter(arrow().array(~left_out))
    X, values, ids = _as_sent(table, roles, shape, groups)
    name = batch or (token_hex(6) if recorded is None else recorded.key)
    by_lender = {
        role: truth_values(table[column], decisions if role == "incumbent" else {}) == "yes"
        for role, column in roles.by_lender.items()
    } | persons_of(table, roles)
    n_decided = int((decided & (standing.round > 0)).sum())  # the history is never sent on purpose
    in_batch = None if in_round is not None and batch is None else name
    more = table.select(list(others))
    return SentFile(X, values, ids, by_lender, in_batch, recorded, refusals, n_decided, more)


def without_other_content(
    view: ProgramView, sent: SentFile, in_round: int | Sequence[int]
) -> SentFile:
    """Refuse applicants who were decided on in a round, or one of several, with other values."""
    rounds = view.reader.standing(list(map(str, sent.ids.tolist()))).round
    known = rounds[np.isin(rounds, in_round)]
    if not known.size:
        return sent
    desk = view.desk(int(known[0]))
    _, other, _ = desk.compared(view.reader, *desk.read(**sent.given))
    sent.refusals.add(np.flatnonzero(sent.refusals.usable)[other], "other_content")
    return sent.without(other)


def _may_be_missing(view: ProgramView) -> Sequence[str]:
    """Return the features that may be missing; in a program made in Python, all or none."""
    from sklearn.utils import get_tags  # noqa: PLC0415 - slow to import

    recorded: Sequence[str] | None = view.about.get("missing")
    if recorded is not None:
        return recorded
    takes_missing = get_tags(view.classifier).input_tags.allow_nan
    return (view.shape.columns.names or ()) if takes_missing else ()


def check_columns(name: str, shape: Shape, roles: Roles, batch: str | None) -> None:
    """Raise if the program cannot decide from files, or if the batch's name is empty."""
    if batch is not None and not batch.strip():
        raise InputError(f"{{option}} must be a name, got {batch!r}.", option="batch")
    if shape.columns.names is None:
        raise InputError(f"the columns of program {name!r} have no names; decide from Python.")
    if roles.id in {*shape.columns.names, *roles.groups}:
        raise InputError(
            f"program {name!r} has a feature or group {roles.id!r}, the column of ids; decide from "
            f"Python."
        )


def _are_text(groups: Attributes) -> bool:
    return all(isinstance(value, str) for values in groups.values for value in values.tolist())


def _with_truths(
    table: Any, roles: Roles, decisions: dict[str, list[str]], refusals: Refusals, source: str
) -> Any:
    """Return the rows in which the lender's columns are filled in, with truth values that agree."""
    check_there(table, [*roles.by_lender.values(), *filter(None, [roles.persons])], source)
    rows, read = np.flatnonzero(refusals.usable), {}
    refuse_without_person(table, roles, refusals, rows)
    for role, column in roles.by_lender.items():
        words = decisions if role == "incumbent" else {}
        read[role] = truth_values(table[column], words)
        texts = np.array(table[column].to_pylist(), np.object_)
        for code, found in (("no_decision", ""), ("not_a_decision", "?")):
            here = read[role] == found
            values = [text or "" for text in texts[here]]
            refusals.add(rows[here], code, column, values, allowed=decision_words(words))
    if len(read) == 2:
        both = (read["incumbent"] == "yes") & (read["barred"] == "yes")
        refusals.add(rows[both], "barred_and_accepted")
    return table.filter(arrow().array(refusals.usable[rows]))


def _with_whole_ids(table: Any, column: str, refusals: Refusals) -> Any:
    """Return the rows with ids that are 64-bit integers; refuse the others."""
    names, rows = table[column].to_pylist(), np.flatnonzero(refusals.usable)
    whole = np.array([is_whole(name) for name in names], np.bool_)
    values = [name for name in names if not is_whole(name)]
    refusals.add(rows[~whole], "not_whole", column, values)
    return table.filter(arrow().array(whole))


def _with_zeros(view: ProgramView, table: Any, refusals: Refusals) -> Any:
    """Return the rows whose codes have the leading zeros of the history; refuse the others."""
    columns, rows = getattr(view.reading_rules, "columns", None), np.flatnonzero(refusals.usable)
    for column in () if columns is None else columns.columns:
        if column.shortened:
            texts = np.array(table[column.name].to_pylist(), np.object_)
            lost = np.array([text in column.shortened for text in texts], np.bool_)
            refusals.add(rows[lost], "lost_zeros", column.name, texts[lost])
    return table.filter(arrow().array(refusals.usable[rows]))


def _as_sent(
    table: Any, roles: Roles, shape: Shape, known: Attributes | None
) -> tuple[Any, Any, NDArray[Any]]:
    """Return features, group values and ids, in the types of the history."""
    X, groups, names = features_groups_ids(table, roles, shape.columns)
    if groups is not None and known is not None:
        columns = [
            group_values(groups[name], values)
            for name, values in zip(roles.groups, known.values, strict=True)
        ]
        groups = arrow().table(dict(zip(roles.groups, columns, strict=True)))
        if shape.group_names is None:
            groups = columns[0]
    return X, groups, shape.ids(names.tolist())


def _maybe_erased(
    reader: LedgerReader, persons: NDArray[np.int64], named: Entry | None
) -> NDArray[np.bool_]:
    """Return which unknown applicants may be erased ones of a batch in the file.

    The history counts as a batch. The named batch is left to the program, which compares its
    content with the file.
    """
    none = np.zeros(persons.size, np.bool_)
    unknown, known = persons < 0, np.sort(persons[persons >= 0])
    if not unknown.any() or not known.size:
        return none
    parts = [reader.facts(entry).erased for entry in reader.entries(kind="erasure")]
    erased = np.sort(np.concatenate([part for part in parts if part is not None] or [known[:0]]))
    kinds = ("history", "batch", "import")
    batches = (entry for kind in kinds for entry in reader.entries(kind=kind))
    for entry in batches if erased.size else ():
        rows = entry.says["rows"]
        ends = rows["first"], rows["end"]
        n_known, n_erased = (
            np.diff(np.searchsorted(part, ends)).item() for part in (known, erased)
        )
        if n_known and n_erased and (named is None or named.number != entry.number):
            return unknown
    return none


def _batch_of(reader: LedgerReader, persons: NDArray[np.int64]) -> Entry | None:
    """Return the newest batch if the applicants contain all of it and no unknown ones.

    A name computed from the content would outlive erased applicants, and a guess of their data
    could be confirmed by it.
    """
    if not persons.size or persons.min() < 0:
        return None
    for entry in reader.newest_first("batch"):
        rows = entry.says["rows"]
        if rows["first"] <= persons.max():
            return entry if int((persons >= rows["first"]).sum()) == rows["n"] else None
    return None


def _decided_elsewhere(standing: Standing, recorded: Entry | None) -> NDArray[np.bool_]:
    """Return which applicants were decided on before, and not in this batch."""
    known = standing.persons >= 0
    if recorded is not None:
        rows = recorded.says["rows"]
        known &= (standing.persons < rows["first"]) | (standing.persons >= rows["end"])
    return known


def _refuse_decided(
    rows: NDArray[np.int64], decided: NDArray[np.bool_], standing: Standing, refusals: Refusals
) -> None:
    """Refuse applicants who were decided on before, in a round or in the history."""
    in_round, in_history = decided & (standing.round > 0), decided & (standing.round == 0)
    rounds = map(str, standing.round[in_round].tolist())
    refusals.add(rows[in_round], "decided_in_round", values=rounds)
    refusals.add(rows[in_history], "decided_in_history")


def _check_usable(
    sent: SentFile, most: float, source: str, refused_file: str, out: str, json: bool
) -> None:
    """Raise, after writing the refused rows, if no row is usable or too many are refused."""
    if sent.recorded is not None:
        if not sent.ids.size:
            raise InputError(
                f"batch {sent.name!r} was recorded with other applicants than those of {source}; "
                f"take another name.",
                option="batch",
            )
        return
    too_many = too_many_message(sent.refusals, most, source, decided=sent.n_decided)
    if sent.ids.size and too_many is None:
        return
    refused_file = sent.refusals.write(refused_file, out)
    if not json:
        causes = refused_message(refused_counts(sent.refusals, refused_file))
        print_lines(causes, to_stderr="-" in (out, refused_file))
    if not sent.ids.size:
        advice = ""
        codes = {one.code for refusal in sent.refusals for one in refusal.mistakes}
        if codes == {"decided_in_round"}:
            advice = (
                ", fairchance export has the decisions, and a whole batch that is sent without "
                "--batch is answered from the record"
            )
        raise InputError(
            f"none of the {len(sent.refusals)} rows of {source} can be used, "
            f"{commonest(sent.refusals, 1)}, so nothing was decided; {refused_file} has them with "
            f"the reasons{advice}."
        )
    raise InputError(
        f"{too_many}, {commonest(sent.refusals, 1)}; nothing was decided or recorded, "
        f"correct the file and send it again, {refused_file} has the rows with the reasons."
    )


# Deciding


def decide_batch(
    program: Program, sent: SentFile, source: str, *, unlike_history: bool
) -> Decisions:
    """Decide a batch; explain it if another process decided on its applicants meanwhile."""
    try:
        return program.decide(
            sent.X,
            sensitive_features=sent.groups,
            ids=sent.ids,
            **sent.by_lender,
            batch=sent.name,
            unlike_history=unlike_history,
        )
    except LedgerError:
        raise
    except InputError as error:
        if sent.recorded is None and (program.standing(sent.ids).persons >= 0).any():
            raise InputError(
                f"another process decided on applicants of {source} just now; give the command "
                f"again, which answers from the record."
            ) from error
        raise


def decision_table(decisions: Decisions, sentences: dict[str, dict[str, str]]) -> Any:
    """Return decisions as the table that is written."""
    from fairchance.people.reasons import in_words, letters  # noqa: PLC0415 - with the ledger

    pa, n = arrow(), len(decisions)
    threshold = np.full(n, np.nan) if decisions.threshold is None else decisions.threshold
    reasons = decisions.reasons or [None] * n
    columns = (
        decisions.ids,
        np.where(decisions.accepted, "accept", "reject"),
        decisions.region,
        decisions.score,
        threshold,
        decisions.propensity,
        np.full(n, decisions.round),
        np.full(n, decisions.certified),
    )
    arrays = [pa.array(column, from_pandas=True) for column in columns]
    texts = [None if reason is None else in_words(reason) for reason in reasons]
    arrays.append(pa.array(texts, pa.string()))
    table = dict(zip(DECISION_COLUMNS, arrays, strict=True))
    given: dict[str, Any] = {"incumbent": decisions.incumbent, "barred": decisions.barred}
    if sentences:
        letter = letters(reasons, sentences, ramp=decisions.ramp, **given)
        given = {"letter": pa.array(letter, pa.string())} | given
    return pa.table(table | {name: values for name, values in given.items() if values is not None})


# Summary


def _result(view: ProgramView, sent: SentFile, decisions: Decisions) -> dict[str, Any]:
    """Return what was decided, as plain data."""
    shape = view.shape
    entry = None if sent.name is None else view.reader.entry("batch", sent.name)
    says: dict[str, Any] = {} if entry is None else entry.says
    roles, _ = roles_and_labels(view)
    accepted, explored = int(decisions.accepted.sum()), int(decisions.explored.sum())
    before = sent.recorded
    return {
        "batch": None if entry is None else entry.key,
        "round": decisions.round,
        "recorded_before": None if before is None else {"at": before.at, "by": before.by},
        "people": len(decisions),
        "accepted": accepted,
        "exploited": accepted - explored,
        "explored": explored,
        "rejected": len(decisions) - accepted,
        "incumbent": None if decisions.incumbent is None else int(decisions.incumbent.sum()),
        "barred": None if decisions.barred is None else int(decisions.barred.sum()),
        "ramp": decisions.ramp,
        "status": decisions.status,
        "certified": bool(decisions.certified),
        "rounds": says.get("rounds", []),
        "message": IN_OPEN_ROUND if entry is None else _promise_of(entry, view.classifier.bound_),
        "overridden_since": _overridden_since(view, sent),
        "unseen": unseen_values(view.reading_rules, sent.X) if shape.columns.texts else [],
        "new_groups": [] if entry is None else new_groups(view.classifier, sent.groups),
        "unlike": says.get("unlike", []),
        "namesakes": namesakes(shape.columns.names or (), roles.groups),
    }


def _overridden_since(view: ProgramView, sent: SentFile) -> dict[str, int]:
    """Return how many decisions of a batch that is answered from the record are overridden."""
    from fairchance.ledger.objections import overrides_in_force  # noqa: PLC0415 - with the ledger

    if sent.recorded is None:
        return {"accepted": 0, "rejected": 0}
    standing = view.standing(sent.ids)
    overridden = overrides_in_force(view.reader, standing)
    accepted = int((overridden & standing.accepted).sum())
    return {"accepted": accepted, "rejected": int(overridden.sum()) - accepted}


def _message(result: dict[str, Any]) -> list[str]:
    """Return the lines that are printed."""
    return [
        *_decided_message(result),
        *_overridden_message(result["overridden_since"]),
        *namesakes_message(result["namesakes"]),
        *unseen_values_message(result["unseen"]),
        *new_groups_message(result["new_groups"]),
        *_unlike_message(result["unlike"]),
        *refused_message(result["refused"]),
    ]


def _decided_message(result: dict[str, Any]) -> list[str]:
    counts = (
        f"Round {result['round']}: {result['accepted']:,} of "
        f"{counted(result['people'], 'applicant')} accepted, {result['exploited']:,} by "
        f"score{'' if result['incumbent'] is None else ' or the lender'} and "
        f"{result['explored']:,} explored."
    )
    before = result["recorded_before"]
    if result["batch"] is None:
        lines = [counts]
    elif before is None:
        lines = [counts, f"Recorded as batch {result['batch']}."]
    else:
        when = before["at"][:19].replace("T", " ")
        recorded = f"Recorded before as batch {result['batch']} (by {before['by']} at {when} UTC)"
        lines = [f"{recorded}, answered from the record.", counts]
    lines.append(result["message"])
    if result["out"] != "-":
        lines.append(f"Decisions: {result['out']}")
    if result["kept"]:
        lines.append(f"The file that was there is kept: {result['kept']}")
    return lines


def _unlike_message(unlike: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Say in which columns a batch is unlike the history, and whether it was decided anyway.

    Examples
    --------
    >>> row = {"column": "age", "code": "missing", "n": 60, "of": 60, "usual": 0.04}
    >>> row |= {"since": "history", "stops": True}
    >>> print(*_unlike_message([row]))
    Unlike the history: 60 of 60 applicants have no value in 'age' (4 % in the history); is the
    column filled in?
    Decided anyway (--unlike-history), which is recorded.
    """
    from fairchance.people.likeness import Unlike  # noqa: PLC0415 - slow to import

    for row in unlike:
        yield f"Unlike the {row['since']}: {unlike_words(Unlike(**row))}"
    if any(row["stops"] for row in unlike):
        yield "Decided anyway (--unlike-history), which is recorded."


def _overridden_message(since: dict[str, int]) -> list[str]:
    """Say how many decisions of a batch that is answered from the record are overridden."""
    if not any(since.values()):
        return []
    return [
        f"Overridden since: {since['accepted']:,} accepted and {since['rejected']:,} rejected, "
        f"which only fairchance export has."
    ]


def _promise_of(entry: Entry, alpha: float | None) -> str:
    """Say what the round of a batch promises or estimates."""
    from fairchance.core.decisions import CertifiedRound  # noqa: PLC0415 - slow to import
    from fairchance.ledger.records import read_rounds  # noqa: PLC0415 - an extra

    said: list[str] = []
    for record in read_rounds(entry):
        if isinstance(record, CertifiedRound):
            said += about_certificate(record)
        else:
            said += about_round(record, alpha)
    return " ".join(dict.fromkeys(filter(None, said)))
