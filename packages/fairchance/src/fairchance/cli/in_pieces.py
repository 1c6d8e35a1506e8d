"""Decide on files of any size, piece by piece: ``fairchance decide FILES -o FOLDER/``."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairchance.cli.commands.decide import (
    SentFile,
    check_columns,
    decision_table,
    usable_applicants,
    without_other_content,
)
from fairchance.cli.files.pieces import PIECE, DecisionFile, find_files
from fairchance.cli.files.refusals import (
    Cause,
    Refusals,
    commonest,
    merged_causes,
    refused_counts,
    refused_message,
    too_many_message,
    write_pieces,
)
from fairchance.cli.files.rows import roles_and_labels, text_columns
from fairchance.cli.files.tables import SentTable, count_rows, file_name, read_pieces
from fairchance.cli.input_checks import namesakes, namesakes_message
from fairchance.cli.output import counting_bar, print_json, print_lines
from fairchance.errors import InputError, LearningWarning, NoRoundError, writing
from fairchance.extras import arrow
from fairchance.words import counted
from fairchance.words.rounds import IN_OPEN_ROUND

if TYPE_CHECKING:  # an extra, and slow to import
    from fairchance.core.decisions import Decisions
    from fairchance.ledger.program import Program, ProgramView
    from fairchance.ledger.sql import LedgerReader

__all__ = ["DecidedFiles", "check_options", "print_files"]

_CLOSE_IT = "Close it with fairchance round close."


def check_options(batch: str | None, refused: str | None) -> None:
    """Raise if an option has no use with a folder."""
    if batch is not None:
        raise InputError(
            "decisions into a folder are made in an open round, in which ids name applications; "
            "leave out {option}.",
            option="batch",
        )
    if refused is not None:
        raise InputError(
            "decisions into a folder have the refused rows of each file beside them; leave out "
            "{option}.",
            option="refused",
        )


class DecidedFiles:
    """Decides on files of applicants, piece by piece in an open round."""

    def __init__(
        self, program: Program, *, most_refused: float, strict: bool, unlike_history: bool
    ) -> None:
        self._program, self._most, self._strict = program, most_refused, strict
        self._anyway = unlike_history
        self._counts: Counter[str] = Counter()
        self._rounds: set[int] = set()
        self._refused = list[Cause]()
        self._n_expected = 0
        self._nobody = ""  # why a file has no decisions

    def decide(self, named: list[str], out: str, quiet: bool, *, close: bool) -> dict[str, Any]:
        """Decide on all applicants, and return what was decided as plain data."""
        from fairchance.ledger.replay import check_opens_rounds  # noqa: PLC0415 - an extra

        sources = find_files(named)
        with self._program.reading() as view:
            check_opens_rounds(view.classifier)
            roles, _ = roles_and_labels(view)
            check_columns(self._program.name, view.shape, roles, None)
            self._text = text_columns(roles, view.shape.columns)
            self._gives_incumbent = roles.by_lender.get("incumbent") is not None
            self._sentences = view.about.get("reasons", {})
            names = namesakes(view.shape.columns.names or (), roles.groups)
            files = [DecisionFile(one, out, view.settings.hash.hex()) for one in sources]
        with writing(out):
            Path(out).mkdir(parents=True, exist_ok=True)
        there = [file.is_there() for file in files]
        sizes = [count_rows(file.source) for file in files]
        self._n_expected = sum(n for n, is_there in zip(sizes, there, strict=True) if not is_there)
        with counting_bar("applicants", quiet) as bar:
            for at, file in enumerate(files):
                done = partial(_advance, bar, sum(sizes[:at]), sum(sizes))
                if there[at]:
                    self._count_again(file)
                else:
                    self._decide_file(file, done)
                done(sizes[at])
        if not self._counts["people"]:
            raise InputError(
                f"{self._nobody or 'the files have no rows'}, and nothing was decided; fairchance "
                f"export has earlier decisions."
            )
        closed = close and self._close()
        people, accepted = self._counts["people"], self._counts["accepted"]
        return {
            "rounds": sorted(self._rounds),
            "people": people,
            "accepted": accepted,
            "exploited": accepted - self._counts["explored"],
            "explored": self._counts["explored"],
            "rejected": people - accepted,
            "closed": closed,
            "files": len(files),
            "there_before": sum(there),
            "namesakes": names,
            "out": out,
            "refused": refused_counts(self._refused, str(Path(out) / "*.refused.csv")),
        }

    def _decide_file(self, file: DecisionFile, done: Callable[[int], None]) -> None:
        """Decide on the applicants of a file, and write the decisions and the refused rows."""
        source, refused = file_name(file.source), list[Any]()
        with self._program.reading() as view:
            begun = file.begun(view.next_round)

        def tables() -> Iterator[Any]:
            first = 0
            for some in read_pieces(file.source, PIECE, self._text):
                sent = self._read(some, source, first, begun)
                if len(sent.refusals):
                    refused.append(sent.refusals)
                self._check_refused(sent, source, first, file, refused)
                if sent.ids.size:
                    yield self._decided(sent)
                first += some.table.num_rows
                done(first)

        is_written, place = file.write(tables()), self._write_refused(file, refused)
        if not is_written and refused:
            self._nobody = (
                f"no row of {source} can be used, {commonest(refused[0], 1)}; {place} has the rows "
                f"with the reasons"
            )

    def _read(self, some: SentTable, source: str, first: int, begun: int) -> SentFile:
        """Return the usable rows of a piece, which begins after ``first`` rows of its file.

        ``begun`` is the round in which the file was begun; applicants who were decided on since
        then get the decisions that are on record.
        """
        with self._program.reading() as view:
            rounds = range(begun, view.next_round + 1)
            sent = usable_applicants(view, some, None, source, in_round=rounds)
            sent.refusals.n_before = first
            if self._strict:
                sent.refusals.stop(source)
            sent = without_other_content(view, sent, rounds)
            if (
                sent.ids.size
                and not self._anyway
                and hasattr(view.classifier, "check_like_history")
            ):
                self._check_like_history(view, sent, f"rows {first + 1:,} and on of {source}")
        return sent

    def _check_like_history(self, view: ProgramView, sent: SentFile, which: str) -> None:
        try:
            view.classifier.check_like_history(
                view.shape.columns.encode(sent.X).X,
                ids=sent.ids,
                sensitive_features=sent.groups,
                incumbent=sent.by_lender.get("incumbent"),
            )
        except InputError as error:
            if error.option != "unlike_history":
                raise
            raise InputError(f"{which}: {error.args[0]}", option=error.option) from error

    def _check_refused(
        self,
        sent: SentFile,
        source: str,
        first: int,
        file: DecisionFile,
        refused: list[Refusals],
    ) -> None:
        """Raise, after writing the refused rows, if too many rows of a piece are refused."""
        too_many = too_many_message(sent.refusals, self._most, source, decided=sent.n_decided)
        if too_many is None:
            return
        place = self._write_refused(file, refused)
        raise InputError(
            f"{too_many} (from row {first + 1:,} on), {commonest(sent.refusals, 1)}; none of these "
            f"was decided on, correct the file and give the command again, {place} has the rows "
            f"with the reasons."
        )

    def _write_refused(self, file: DecisionFile, refused: list[Refusals]) -> str:
        """Write the refused rows of a file, if there are any, and count them."""
        self._refused = merged_causes(self._refused, refused)
        return write_pieces(refused, str(file.refused), self._text)

    def _decided(self, sent: SentFile) -> Any:
        """Decide on a piece, and return the decisions as a table once they are on record."""
        pa, places, tables = arrow(), list[Any](), list[Any]()
        with self._program.reading() as view:
            rounds = view.reader.standing(list(map(str, sent.ids.tolist()))).round
        for round in np.unique(rounds).tolist():
            here = rounds == round
            some = sent.without(~here)
            decisions = self._decide(some) if round < 0 else self._recorded(some, round)
            accepted, explored = int(decisions.accepted.sum()), int(decisions.explored.sum())
            self._counts.update(people=len(decisions), accepted=accepted, explored=explored)
            self._rounds.add(decisions.round)
            places.append(np.flatnonzero(here))
            tables.append(_with_doubles(decision_table(decisions, self._sentences)))
        self._n_expected -= rounds.size
        return pa.concat_tables(tables).take(pa.array(np.argsort(np.concatenate(places))))

    def _recorded(self, sent: SentFile, round: int) -> Decisions:
        """Return the decisions of a round that are on record."""
        with self._program.reading() as view:
            desk = view.desk(round)
            return desk.answer(view.reader, desk.read(**sent.given)[1])

    def _decide(self, sent: SentFile) -> Decisions:
        """Decide on applicants in the open round, and open one if none is."""
        while True:
            with self._program.reading() as view:
                is_open = view.reader.open_round() is not None
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LearningWarning)  # closing puts them on record
                if not is_open:
                    expected = max(self._n_expected, sent.ids.size)
                    self._program.open_round(expected, incumbent=self._gives_incumbent)
                try:
                    return self._program.decide_in_round(**sent.given)
                except NoRoundError:  # another process has closed it just now
                    continue

    def _count_again(self, file: DecisionFile) -> None:
        """Count the decisions of a file that is there; they must be on record."""
        compute, ids, rounds = arrow("compute"), list[Any](), list[int]()
        for some in file.columns("id", "decision", "region", "round"):
            accepted = compute.equal(some["decision"], "accept")
            explored = compute.and_(accepted, compute.equal(some["region"], "explore"))
            counts = {"people": some.num_rows} | {
                name: compute.sum(mask).as_py() or 0
                for name, mask in (("accepted", accepted), ("explored", explored))
            }
            self._counts.update(counts)
            self._rounds.update(some["round"].unique().to_pylist())
            ids += [str(some["id"][at].as_py()) for at in (0, -1)]
            rounds += [some["round"][at].as_py() for at in (0, -1)]
        with self._program.reading() as view:
            unknown = view.reader.standing(ids).persons < 0
            # The ledger has all decisions of a round of which somebody is erased.
            erased = _rounds_with_erased(view.reader) if unknown.any() else set()
        lost = [
            name
            for name, round, gone in zip(ids, rounds, unknown, strict=True)
            if gone and round not in erased
        ]
        if lost:
            raise InputError(
                f"{str(file.path)!r} has decisions that the ledger does not have, first on "
                f"{lost[0]!r}; is the ledger an older copy? Move the file away, and give the "
                f"command again."
            )

    def _close(self) -> bool:
        """Close the round of the decisions, unless it is closed; return whether it is."""
        with self._program.reading() as view:
            opened = view.reader.open_round()
        if opened is not None and opened.says["round"] in self._rounds:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LearningWarning)
                self._program.close_round()
        return True


def _advance(bar: Callable[[int, int], None] | None, before: int, total: int, of_file: int) -> None:
    """Show how many applicants are done."""
    if bar is not None:
        bar(before + of_file, total)


def _rounds_with_erased(reader: LedgerReader) -> set[int]:
    """Return the rounds of which an applicant was erased, which are closed."""
    return {
        entry.says["round"]
        for entry in reader.entries(kind="batch")
        if reader.erased_between(entry.people_range.start, entry.people_range.stop)
    }


def _with_doubles(table: Any) -> Any:
    """Return a table in which all numbers have double precision, as the record has them."""
    pa = arrow()
    for at, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            table = table.set_column(at, field.name, table[field.name].cast(pa.float64()))
    return table


def print_files(result: dict[str, Any], json: bool) -> None:
    """Print what was decided."""
    if json:
        print_json(result)
        return
    rounds = result["rounds"]
    which = f"Round {rounds[0]}" if len(rounds) == 1 else f"Rounds {rounds[0]} to {rounds[-1]}"
    before = result["there_before"]
    lines = [
        f"{which if rounds else 'No round'}: {result['accepted']:,} of "
        f"{counted(result['people'], 'applicant')} accepted, {result['exploited']:,} by score and "
        f"{result['explored']:,} explored.",
        f"Decisions: {counted(result['files'], 'file')} in {result['out']}"
        + (f", {before:,} of them there before" if before else ""),
        "The round is closed." if result["closed"] else f"{IN_OPEN_ROUND} {_CLOSE_IT}",
        *namesakes_message(result["namesakes"]),
        *refused_message(result["refused"]),
    ]
    print_lines(lines)
