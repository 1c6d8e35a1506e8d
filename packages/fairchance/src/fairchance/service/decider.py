"""Decisions that are committed together.

One thread of a worker decides. It takes all requests that wait, decides and commits them in one
transaction, with one wait for the disk, and answers each after the commit; meanwhile the next
requests gather. Most of the work does not depend on how many they are, so clients who ask again at
once are waited for, a few milliseconds at most; a client alone is not kept waiting.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from threading import Condition, Thread
from typing import Any

from fairchance.ledger.applicant import decision_data
from fairchance.ledger.program import Program
from fairchance.service.applications import Form
from fairchance.service.problems import ProblemError

__all__ = ["Decider", "Waiting"]

_OF_ALL = ("ledger", "round_closed", "paused", "no_round")  # codes of errors that concern everybody
_GATHER = 0.003  # seconds for which requests are waited for
_REMEMBERED = 100_000  # applications
_MOST_ROWS = 2000  # rows that are decided together, unless one request has more


@dataclass(eq=False)
class Waiting:
    """A request that waits for its decisions."""

    applications: Sequence[Any]
    answer: asyncio.Future[list[dict[str, Any]]]
    since: float = field(default_factory=time.perf_counter)
    parts: dict[str, float] = field(default_factory=dict)  # milliseconds


class Decider:
    """The thread that decides, and the requests that wait for it.

    Attributes
    ----------
    since
        When the call began that decides now; None while it waits for requests.
    """

    def __init__(self, program: Program, form: Form, most_waiting: int) -> None:
        self._program, self._form, self._most = program, form, most_waiting
        self._waiting: list[Waiting] = []
        self._n_rows, self._is_open, self._changed = 0, True, Condition()
        self._n_lately = 0  # requests that were answered last, and that waited meanwhile
        self._known: dict[int, None] = {}  # hashes of ids that were decided or refused, a while
        self.since: float | None = None
        self._thread = Thread(target=self._run, name="decider", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Answer those who wait, and end the thread."""
        with self._changed:
            self._is_open = False
            self._changed.notify()
        self._thread.join()

    def submit(self, applications: Sequence[Any]) -> Waiting:
        """Let applications wait for their decisions; raise if too many do."""
        waiting = Waiting(applications, asyncio.get_running_loop().create_future())
        with self._changed:
            if self._n_rows + len(applications) > self._most and self._waiting:
                raise ProblemError(503, "busy", f"{self._n_rows} applications wait; send it again.")
            self._waiting.append(waiting)
            self._n_rows += len(applications)
            self._changed.notify()
        return waiting

    def _run(self) -> None:
        while together := self._taken():
            for some in self._known_apart(together):
                begun = time.perf_counter()
                answers = self._answers(some)
                took = 1000 * (time.perf_counter() - begun)
                for one in some:
                    one.parts |= {"wait": 1000 * (begun - one.since), "decide": took}
                some[0].answer.get_loop().call_soon_threadsafe(_answer, some, answers)
            self.since = None
            self._n_lately += len(self._waiting)

    def _taken(self) -> list[Waiting]:
        """Wait for requests, and return those that are decided together; none at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or not self._is_open)
            self._changed.wait_for(self._are_all_there, _GATHER)
            together: list[Waiting] = []
            n = 0
            for one in self._waiting:
                n += len(one.applications)
                alike = not together or self._given(one) == self._given(together[0])
                if together and (n > _MOST_ROWS or not alike):
                    break
                together.append(one)
            del self._waiting[: len(together)]
            self._n_lately = len(together)
            self._n_rows -= sum(len(one.applications) for one in together)
            return together

    def _known_apart(self, together: Sequence[Waiting]) -> list[list[Waiting]]:
        """Divide requests: those of new applications, and those with one that was sent before.

        The latter are answered by the record or refused, and the former need not suffer from that.
        """
        parts: list[list[Waiting]] = [[], []]
        for one in together:
            names = [hash(row.id) for row in one.applications]
            parts[any(name in self._known for name in names)].append(one)
            self._known |= dict.fromkeys(names)
        for name in list(islice(self._known, max(0, len(self._known) - _REMEMBERED))):
            del self._known[name]
        return [part for part in parts if part]

    def _are_all_there(self) -> bool:
        return len(self._waiting) >= self._n_lately or not self._is_open

    def _given(self, waiting: Waiting) -> Any:
        return self._form.given(waiting.applications[0])

    def _answers(self, together: Sequence[Waiting]) -> list[list[dict[str, Any]] | Exception]:
        """Return the answer to each request, by one call if that is possible."""
        self.since = time.monotonic()
        try:
            decided = self._decide([row for one in together for row in one.applications])
        except Exception as error:
            if len(together) == 1 or getattr(error, "code", "") in _OF_ALL:
                return [error] * len(together)
            # One of them cannot be decided, and the others must not suffer from that.
            half = len(together) // 2
            return self._answers(together[:half]) + self._answers(together[half:])
        ends = accumulate(len(one.applications) for one in together)
        return [
            decided[end - len(one.applications) : end]
            for one, end in zip(together, ends, strict=True)
        ]

    def _decide(self, applications: Sequence[Any]) -> list[dict[str, Any]]:
        X, given = self._form.arrays(applications)
        decided = self._program.decide_in_round(X, **given)
        return decision_data(decided, self._form.sentences)


def _answer(together: Sequence[Waiting], answers: Sequence[Any]) -> None:
    """Answer requests, in the thread of their loop; some may have given up waiting."""
    for one, answer in zip(together, answers, strict=True):
        if one.answer.done():
            continue
        if isinstance(answer, Exception):
            one.answer.set_exception(answer)
        else:
            one.answer.set_result(answer)
