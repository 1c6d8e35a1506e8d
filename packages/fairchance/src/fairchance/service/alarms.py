"""Tell the receiver of alerts of changed lights while the service runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from fairchance.ledger.alerts import Receiver, notify
from fairchance.ledger.program import Program
from fairchance.service.log import log, worded

__all__ = ["watching"]

_EVERY = 60.0  # seconds between two looks at the record
_AT_LEAST = 3600.0  # seconds after which lights are asked for without a new entry: time passes


@contextmanager
def watching(program: Program) -> Iterator[None]:
    """Watch a program's lights, if it has a receiver of alerts, while the block runs.

    This is for one process of a service, the one that starts the workers.
    """
    receiver = Receiver.of(program.about)
    ended = Event()
    if receiver is not None:
        Thread(target=_watch, args=(program, receiver, ended), daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _watch(program: Program, receiver: Receiver, ended: Event) -> None:
    seen, due = -1, 0.0
    while True:
        try:
            number = program.checkpoint().number
            if number != seen or time.monotonic() >= due:
                alert = notify(program.ledger, program.summary(), receiver, by=program.by)
                seen, due = number, time.monotonic() + _AT_LEAST
                if alert is not None:
                    log(alert=alert.id, light=alert.light, changes=len(alert.changes))
        except Exception as error:  # the receiver or the ledger is out of reach: look again later
            log(alert=None, **worded(error))
        if ended.wait(_EVERY):
            return
