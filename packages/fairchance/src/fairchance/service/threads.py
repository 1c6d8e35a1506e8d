"""A program that is served, and the threads that work for its requests.

The event loop reads requests and writes answers. One thread decides, one writes everything else,
because the writers of a program take turns anyway, and a few read: one of them what takes long, so
that the others answer meanwhile.
"""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from fairchance.errors import InputError, LearningWarning, LedgerWarning
from fairchance.ledger.keys import Key, keys_of
from fairchance.ledger.program import Program
from fairchance.ledger.rounds import RoundRules
from fairchance.ledger.view import ProgramView
from fairchance.service.applications import Form
from fairchance.service.decider import Decider
from fairchance.service.doors import KeyRing, Limits
from fairchance.service.log import log, worded
from fairchance.service.problems import ProblemError

__all__ = ["Service"]

_READERS = 4
_MOST_WAITING = 64  # requests that wait to read, and to write
_KEYS_EVERY = 2.0  # seconds


class Service:
    """A program that is served.

    Attributes
    ----------
    program, form, limits
        The program, how its applications are written, and what clients may ask for.
    keys
        The valid keys.
    decider
        What decides.
    """

    def __init__(self, program: Program, limits: Limits | None = None) -> None:
        self.program, self.limits = program, limits or Limits()
        with program.reading() as view:
            _check_served(view)
            self.form = Form(view)
        self.keys = KeyRing(self._read_keys)
        self._writer = ThreadPoolExecutor(1, "writer")
        self._readers = ThreadPoolExecutor(_READERS, "reader")
        self._slow_reader = ThreadPoolExecutor(1, "slow reader")
        self._n_waiting = {self._writer: 0, self._readers: 0, self._slow_reader: 0}
        self._writing_since: float | None = None
        self._in_flight: set[tuple[str, str]] = set()
        self.decider = Decider(program, self.form, self.limits.waiting)

    def close(self) -> None:
        """Finish what was begun, and close the ledger."""
        self.decider.close()
        self._writer.shutdown()
        self._readers.shutdown()
        self._slow_reader.shutdown()
        self.program.ledger.close()

    def _read_keys(self) -> list[Key]:
        with self.program.ledger.reading(self.program.name) as reader:
            return keys_of(reader)

    async def follow_keys(self) -> None:
        """Read the keys again and again, so that new ones and revocations count soon."""
        is_read = True
        while True:
            await asyncio.sleep(_KEYS_EVERY)
            try:
                await asyncio.get_running_loop().run_in_executor(None, self.keys.refresh)
                is_read = True
            except Exception as error:  # the keys of before are valid for a while
                if is_read:
                    log(keys="cannot be read; it is tried again", **worded(error))
                is_read = False

    def check(self) -> None:
        """Raise if this process cannot answer, and has to be started anew if that lasts."""
        self.keys.check()
        now, most = time.monotonic(), self.limits.seconds
        for name, since in (("decides", self.decider.since), ("writes", self._writing_since)):
            if since is not None and now - since > most:
                detail = f"what {name} has been busy with one request for more than {most:g} s."
                raise ProblemError(503, "stuck", detail)

    async def read(self, question: Callable[[ProgramView], Any]) -> Any:
        """Return the answer to a question about the program at one moment."""
        return await self._run(self._readers, lambda: self._read(question))

    async def read_slowly(self, question: Callable[[ProgramView], Any]) -> Any:
        """Return the answer to a question that takes long; such questions wait for each other."""
        return await self._run(self._slow_reader, lambda: self._read(question))

    def _read(self, question: Callable[[ProgramView], Any]) -> Any:
        with self.program.reading() as view:
            return question(view)

    async def write(self, by: str, call: Callable[[Program], Any]) -> Any:
        """Return what a call returns that changes the record, made in the name of a key."""

        def answer() -> Any:
            self._writing_since = time.monotonic()
            try:
                with self.program.acting_as(by), _without_warnings():
                    return call(self.program)
            finally:
                self._writing_since = None

        return await self._run(self._writer, answer)

    async def _run(self, pool: ThreadPoolExecutor, call: Callable[[], Any]) -> Any:
        if self._n_waiting[pool] >= _MOST_WAITING:
            raise ProblemError(503, "busy", f"{_MOST_WAITING} requests wait; send it again.")
        self._n_waiting[pool] += 1
        work = asyncio.get_running_loop().run_in_executor(pool, call)
        work.add_done_callback(lambda _: self._done(pool))
        return await work

    def _done(self, pool: ThreadPoolExecutor) -> None:
        self._n_waiting[pool] -= 1

    @contextmanager
    def once_at_a_time(self, kind: str, name: str) -> Iterator[None]:
        """Refuse a request while the same one is in flight."""
        if (kind, name) in self._in_flight:
            raise ProblemError(
                409, "in_flight", f"request {name!r} is being recorded; send it again later."
            )
        self._in_flight.add((kind, name))
        try:
            yield
        finally:
            self._in_flight.discard((kind, name))


def _check_served(view: ProgramView) -> None:
    """Raise unless applications can come one at a time."""
    if RoundRules.of(view.about) is None and view.reader.open_round() is None:
        raise InputError(
            f"program {view.program.name!r} has no [rounds] and no round is open, so that each "
            f"request would be a round by itself; open a round, or make a program with [rounds]."
        )


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Keep what the library warns of, which the record has, from standard error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LearningWarning)
        warnings.simplefilter("ignore", LedgerWarning)
        yield
