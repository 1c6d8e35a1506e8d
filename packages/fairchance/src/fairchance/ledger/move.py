"""Move a program to another ledger, with its chain, salts and digests as they are.

A program lives in one place. So the chain of the original ends with an entry that says where it
went, after which nothing can be appended, and the copy goes on with one that says where it came
from. The copy appears whole, after its hashes were checked and after the end of the original is
durable. If that is interrupted, the same call goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fairchance.errors import InputError, LedgerError
from fairchance.ledger import schema
from fairchance.ledger.base import Facts
from fairchance.ledger.chain import NOTHING, Checkpoint
from fairchance.ledger.database import shown_url
from fairchance.ledger.program import login_name
from fairchance.ledger.sql import LedgerReader, SqlLedger
from fairchance.ledger.verification.hashes import entry_problem
from fairchance.ledger.verification.proofs import describe

__all__ = ["Moved", "move"]

_PART = 5_000  # rows that are held at once
_LARGE = (schema.payloads, schema.row_digests, schema.entries)  # a row may be as large as a batch


@dataclass(frozen=True)
class Moved:
    """A program that was moved.

    Attributes
    ----------
    program
        Its name.
    head
        The end of its chain in the new ledger.
    n_people
        The number of applicants, those of the history too.
    before
        Whether it had been moved by an earlier call, and nothing was left to do.
    """

    program: str
    head: Checkpoint
    n_people: int
    before: bool = False


def move(
    source: str, target: str, program: str | None = None, *, by: str | None = None
) -> Iterator[Moved]:
    """Move the programs of a ledger to another one, and yield each when it is there.

    Nobody can write to a program while it is moved, or to its original afterwards. Rows are held a
    few thousand at a time.

    Parameters
    ----------
    source, target
        The URLs of the two ledgers; the second one is made if it does not exist.
    program
        The program to move; None means all.
    by
        Who moves it; None means the user's login name.

    Raises
    ------
    LedgerError
        If a round is open, if the copy does not match its hashes, or if the program was moved to a
        third place before. The program was not moved then.
    InputError
        If the other ledger has a program of the name that was not moved from here.
    """
    who = login_name() if by is None else by
    here = SqlLedger(source)
    names = here.programs() if program is None else [here.named(program)]
    for name in names:  # before the other ledger is made
        with here.reading(name) as reader:
            _check_closed(reader, name)
    there = SqlLedger(target, make=True)
    for name in names:
        yield _moved_before(here, there, name) or _move(here, there, name, who)


def _moved_before(here: SqlLedger, there: SqlLedger, name: str) -> Moved | None:
    """Return a program that the new ledger has from here; raise if it has another one."""
    if name not in there.programs():
        return None
    with here.reading(name) as reader:
        last = reader.last_entry()
    with there.reading(name) as reader:
        same = None if last is None else next(reader.entries(last.number - 1), None)
        if last is not None and last.moved_to is not None and last == same:
            return Moved(name, reader.head(), reader.people_end(), before=True)
    raise InputError(
        f"the ledger at {_place(there)} has a program {name!r} already; choose another ledger."
    )


def _move(here: SqlLedger, there: SqlLedger, name: str, by: str) -> Moved:
    from_place, to_place = _place(here), _place(there)
    with there.creating(name) as copy:
        with here.writing(name) as original:
            last = original.last_entry()
            is_marked = last is not None and last.moved_to == to_place  # and then interrupted
            if not is_marked:
                original.check_is_here()
            _check_closed(original, name)
            for table in schema.metadata.sorted_tables[1:]:
                for columns in original.rows_of(table, 1 if table in _LARGE else _PART):
                    copy.add_rows(table, columns)
            _check_copy(copy, original.head())
            if not is_marked:
                header = {"what": "left", "to": to_place}
                last = original.append("move", header, Facts(), by=by)
        # The original is closed, durably, and only now the copy may appear.
        if not is_marked:
            names = [column.name for column in tuple(schema.entries.c)[1:]]
            copy.add_rows(schema.entries, {each: [getattr(last, each)] for each in names})
        copy.append("move", {"what": "arrived", "from": from_place}, Facts(), by=by)
        return Moved(name, copy.head(), copy.people_end())


def _place(ledger: SqlLedger) -> str:
    """Return where a ledger is, without passwords."""
    url = ledger.engine.url.set(drivername=ledger.engine.dialect.name)
    if url.drivername == "sqlite":
        url = url.set(database=str(Path(str(url.database)).resolve()))
    return shown_url(url)


def _check_closed(reader: LedgerReader, name: str) -> None:
    """Raise if a round is open: then others may add applicants at any time."""
    opened = reader.open_round()
    if opened is not None:
        raise LedgerError(
            f"round {opened.says['round']} of program {name!r} is open; end the processes that "
            f"decide, and close it (fairchance round close)."
        )


def _check_copy(copy: LedgerReader, head: Checkpoint) -> None:
    """Raise unless the rows of a copy match its hashes, to the end of the original's chain."""
    previous, problem = NOTHING, None
    for entry in copy.entries():
        problem = entry_problem(copy, entry, previous)
        if problem is not None:
            problem = f"{describe(entry)}: {problem}"
            break
        previous = entry.hash
    problem = problem or copy.uncovered()
    if problem is not None or previous != head.hash:
        problem = problem or "its end is another"
        raise LedgerError(
            f"program {head.program!r} was not moved, since its copy does not match its hashes "
            f"({problem}); verify the ledger."
        )
