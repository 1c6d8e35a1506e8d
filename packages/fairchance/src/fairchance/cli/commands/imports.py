"""``fairchance import``: record decisions that were made from policies elsewhere.

They were made from a policy file during an outage, or by an engine on many machines. Files are read
piece by piece, and each decision is compared with the policy of its round before it is recorded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from fairchance.cli.commands.decide import usable_applicants, without_other_content
from fairchance.cli.files.pieces import PIECE, find_files
from fairchance.cli.files.refusals import (
    Cause,
    Refusals,
    merged_causes,
    refused_counts,
    refused_message,
    refused_path,
    write_pieces,
)
from fairchance.cli.files.rows import check_there, roles_and_labels, text_columns
from fairchance.cli.files.tables import SentTable, count_rows, file_name, read_pieces
from fairchance.cli.options import (
    By,
    Json,
    LedgerUrl,
    ProgramName,
    Refused,
    Strict,
    Trusted,
    errors,
    open_program,
    printed_warnings,
)
from fairchance.cli.output import counting_bar, print_json, print_lines
from fairchance.errors import InputError, LearningWarning
from fairchance.extras import arrow
from fairchance.people.cells import as_numbers, rows_where, truth_values
from fairchance.words import counted
from fairchance.words.rounds import RECALL, after_close_words, sentence

if TYPE_CHECKING:  # an extra, and slow to import
    from fairchance.cli.commands.decide import SentFile
    from fairchance.ledger.program import Program, ProgramView

__all__ = ["import_"]

# The columns of decide_batches(..., keep=True) that are read. None may be a column of the program:
# the lender's own decisions would be taken for those of the policy.
_ACCEPTED, _ROUND, _POLICY = "decided_accepted", "decided_round", "decided_policy"
_NUMBERS = ("decided_score", "decided_propensity")
_DECIDED = (_ACCEPTED, *_NUMBERS, _ROUND, _POLICY)
_SHOWN = 5  # ids of decisions that do not follow from a policy


def import_(
    decisions: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Applicants as for decide, with the columns decided_... of decide_batches(..., "
            "keep=True). Several files, a pattern in quotes or a folder are read piece by piece.",
        ),
    ],
    at: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="When the decisions were made: a day or a time, such as 2031-03-20T16:30.",
        ),
    ],
    where: Annotated[str, typer.Option(metavar="PLACE", help="Where they were made.")],
    ledger: LedgerUrl,
    program: ProgramName = None,
    refused: Refused = None,
    strict: Strict = False,
    trusted: Trusted = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Record decisions that were made elsewhere: from a policy file in an outage, or by an engine.

    Each decision must follow from the policy of its round; those that do not, and those of
    other rounds or programs, are written to a file with the reasons, and the others are
    recorded. If the round is closed by now, the decisions stand and are no evidence, and tests
    begin again, once for each round. The command counts those that were made after it had been
    closed, as by a machine that kept its policy file in a pause. Rows that are recorded already
    are left as they are, so an interrupted command may be given again.

    Example: fairchance import decided/ --at 2031-03-20 --where cluster
    """
    with errors(json):
        files = find_files(decisions)
        if refused is not None and len(files) > 1:
            raise InputError(
                "each of several files has refused rows of its own; leave out {option}.",
                option="refused",
            )
        importing = _Import(open_program(ledger, program, by, trusted), {"at": at, "where": where})
        sizes, done = [count_rows(file) for file in files], 0
        with counting_bar("decisions", json) as bar:
            for file, size in zip(files, sizes, strict=True):
                place = refused_path(refused, file, "--json" if json else None)
                importing.file(file, place, strict=strict)
                done += size
                if bar:
                    bar(done, sum(sizes))
        result = importing.result()
    if json:
        print_json(result)
    else:
        print_lines(_message(result), to_stderr=refused == "-")


class _Import:
    """Records decisions of files, piece by piece."""

    def __init__(self, program: Program, made: dict[str, str]) -> None:
        self._program, self._made = program, made
        from fairchance.ledger.rounds import made_at  # noqa: PLC0415 - an extra

        made_at(made["at"])  # before any row is read
        with program.reading() as view:
            roles, _ = roles_and_labels(view)
            self._id, self._text = roles.id, text_columns(roles, view.shape.columns)
            ours = {*self._text, *(view.shape.columns.names or ())} & {*_DECIDED}
        if ours:
            raise InputError(
                f"program {program.name!r} has a column {min(ours)!r}, which says what was decided "
                f"in files that are imported; import from Python (import_decisions)."
            )
        self._counts: Counter[str] = Counter()
        self._rounds: set[int] = set()
        self._refused = list[Cause]()
        self._places: list[str] = []
        self._wrong: list[str] = []  # ids of decisions that do not follow from their policy
        self._after_close, self._is_sure = set[int](), True
        self._notes: list[str] = []

    def file(self, path: str, place: str, *, strict: bool) -> None:
        """Record the decisions of a file, and write its refused rows."""
        source, refused, first = file_name(path), list[Refusals](), 0
        text = (*self._text, _ACCEPTED, _POLICY)
        for piece in read_pieces(path, PIECE, text):
            some, unsaid = self._said(piece, source)
            unsaid.n_before = first
            if strict:
                unsaid.stop(source)
            if len(unsaid):
                refused.append(unsaid)
            for round, key, part in self._by_round(some):
                with self._program.reading() as view:
                    sent = self._checked(view, part, source, round, key)
                sent.refusals.n_before = first
                if strict:
                    sent.refusals.stop(source)
                if len(sent.refusals):
                    refused.append(sent.refusals)
                self._record(sent, round, key)
            first += piece.table.num_rows
        self._refused = merged_causes(self._refused, refused)
        if refused:
            self._places.append(write_pieces(refused, place, text))

    def _said(self, some: SentTable, source: str) -> tuple[SentTable, Refusals]:
        """Return the rows that say what was decided in which round, and refuse the others."""
        table, names = some.table, set(some.table.column_names)
        check_there(table, [self._id], source)
        refusals = Refusals(table, table[self._id].to_pylist(), some.as_written, self._text)
        missing = [name for name in _DECIDED if name not in names]
        if missing:
            raise InputError(
                f"{source} has no column {missing[0]!r}; let decide_batches(..., keep=True) of the "
                f"policy write the file, or these columns: {', '.join(_DECIDED)}."
            )
        for name in (*_NUMBERS, _ROUND):
            values, strange = as_numbers(table[name])
            texts = [str(table[name][row]) for row in strange.tolist()]
            refusals.add(strange, "not_a_number", name, texts)
            empty = np.setdiff1d(np.flatnonzero(np.isnan(values)), strange)
            refusals.add(empty, "no_decision", name, allowed="a number")
            table = table.set_column(table.column_names.index(name), name, arrow().array(values))
        no_policy = rows_where(table[_POLICY].is_null())
        refusals.add(no_policy, "no_decision", _POLICY, allowed="the key of a policy")
        no_round = np.flatnonzero((np.abs(values) > 2**53) | (values > np.floor(values)))
        refusals.add(no_round, "other_round", values=map(str, values[no_round]))
        kept = arrow().array(refusals.usable)
        return SentTable(table.filter(kept), partial(_filtered, some, kept)), refusals

    def _by_round(self, some: SentTable) -> Iterator[tuple[int, str, SentTable]]:
        """Yield the rows of a piece by the round and the policy that decided on them."""
        table, compute = some.table, arrow("compute")
        keys = table.select([_ROUND, _POLICY]).group_by([_ROUND, _POLICY], use_threads=False)
        for one in keys.aggregate([]).to_pylist():
            round, key = one[_ROUND], one[_POLICY]
            same = compute.and_(
                compute.equal(table[_ROUND], round),
                compute.equal(table[_POLICY], key),
            )
            yield int(round), key, SentTable(table.filter(same), partial(_filtered, some, same))

    def _checked(
        self, view: ProgramView, part: SentTable, source: str, round: int, key: str
    ) -> SentFile:
        """Return the decisions of a round that are to be recorded; the others are refused."""
        others = (_ACCEPTED, *_NUMBERS)
        sent = usable_applicants(view, part, None, source, in_round=round, others=others)
        rows = np.flatnonzero(sent.refusals.usable)
        try:
            desk = view.desk(round)
        except InputError:
            sent.refusals.add(rows, "other_round", values=[str(round)] * rows.size)
            return sent.without(np.ones(rows.size, np.bool_))
        if desk.policy.key != key:
            known = desk.policy.key
            sent.refusals.add(rows, "other_policy", values=[key] * rows.size, allowed=known)
            return sent.without(np.ones(rows.size, np.bool_))
        sent = without_other_content(view, sent, round)
        if not sent.ids.size:
            return sent
        words = {"accepted": ["accept"], "rejected": ["reject"]}
        said = truth_values(sent.others[_ACCEPTED], words)
        numbers = {name.removeprefix("decided_"): sent.others[name].to_numpy() for name in _NUMBERS}
        _, batch = desk.read(**sent.given)
        does = desk.does_instead(batch, said == "yes", **numbers)
        unread = np.isin(said, ("", "?"))
        rows = np.flatnonzero(sent.refusals.usable)
        texts = np.array(
            [str(text or "") for text in sent.others[_ACCEPTED].to_pylist()], np.object_
        )
        sent.refusals.add(
            rows[unread], "not_a_decision", _ACCEPTED, texts[unread], allowed="accept or reject"
        )
        wrong = (does != "") & ~unread
        sent.refusals.add(rows[wrong], "does_not_follow", values=does[wrong].tolist())
        self._wrong += list(map(str, sent.ids[wrong].tolist()))[: _SHOWN - len(self._wrong)]
        self._counts["wrong"] += int(wrong.sum())
        return sent.without(wrong | unread)

    def _record(self, sent: SentFile, round: int, key: str) -> None:
        if not sent.ids.size:
            return
        given = sent.given
        with self._program.reading() as view:
            names = list(map(str, sent.ids.tolist()))
            new = view.reader.standing(names).persons < 0
        words = {"accepted": ["accept"], "rejected": ["reject"]}
        accepted = truth_values(sent.others[_ACCEPTED], words) == "yes"
        with printed_warnings(LearningWarning) as warned:  # tests begin again
            recorded = self._program.import_decisions(
                given.pop("X"), accepted, round=round, policy=key, **self._made, **given
            )
        self._notes += warned
        self._rounds.add(round)
        self._counts.update(
            people=len(recorded), accepted=int(recorded.accepted.sum()), known=int((~new).sum())
        )
        with self._program.reading() as view:
            after = view.made_after_close(round, self._made["at"])
        if after is not False:
            self._after_close.add(round)
            self._counts.update(after=int(new.sum()), explored=int((recorded.explored & new).sum()))
            self._is_sure &= after is True

    def result(self) -> dict[str, Any]:
        """Return what was recorded, as plain data."""
        return {
            "rounds": sorted(self._rounds),
            "people": self._counts["people"],
            "accepted": self._counts["accepted"],
            "known_already": self._counts["known"],
            "after_close": {
                "n": self._counts["after"],
                "explored": self._counts["explored"],
                "rounds": sorted(self._after_close),
                "sure": self._is_sure,
            },
            "do_not_follow": {"n": self._counts["wrong"], "first": self._wrong},
            "refused": refused_counts(self._refused, ", ".join(self._places)),
            **({"notes": self._notes} if self._notes else {}),
        }


def _filtered(some: SentTable, rows: Any) -> Any:
    """Return some rows of a piece as they were written."""
    return some.as_written().filter(rows)


def _message(result: dict[str, Any]) -> list[str]:
    rounds, wrong = result["rounds"], result["do_not_follow"]
    which = " and ".join(f"round {one}" for one in rounds).capitalize() or "No round"
    known = result["known_already"]
    before = f", {known:,} known already" if known else ""
    lines = [
        f"{which}: {counted(result['people'] - known, 'decision')} imported{before}; "
        f"{result['accepted']:,} accepted."
    ]
    if result["after_close"]["n"]:
        lines += [after_close_words(**result["after_close"]), sentence(RECALL)]
    if wrong["n"]:
        more = ", …" if wrong["n"] > len(wrong["first"]) else ""
        lines.append(
            f"{counted(wrong['n'], 'decision')} not recorded, since the policy does not make "
            f"{'it' if wrong['n'] == 1 else 'them'}: {', '.join(wrong['first'])}{more}"
        )
    return [*lines, *refused_message(result["refused"])]
