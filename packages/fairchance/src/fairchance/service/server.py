"""Running the service: workers are processes, and each makes the application anew."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import uvicorn

from fairchance.ledger.program import Program
from fairchance.service.alarms import watching
from fairchance.service.app import make_app
from fairchance.service.doors import Doors, Limits
from fairchance.service.log import LOGGING
from fairchance.service.threads import Service

__all__ = ["Served", "app", "in_thread", "run"]

_VARIABLE = "FAIRCHANCE_SERVED"  # through which workers learn what they serve


@dataclass(frozen=True)
class Served:
    """What is served, and how.

    Attributes
    ----------
    ledger, program, trusted
        The program, as for ``Program.open``.
    host, port, workers
        Where it listens, and the number of processes.
    limits
        What clients may ask for.
    proxies
        Addresses of proxies that sign people in, as for ``Doors``.
    """

    ledger: str
    program: str | None = None
    trusted: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    limits: Limits = field(default_factory=Limits)
    proxies: tuple[str, ...] = ()

    def open_program(self) -> Program:
        """Return the program."""
        return Program.open(
            self.ledger, self.program, by="fairchance serve", trusted=self.trusted, load=False
        )

    def open(self) -> Service:
        """Return the service; raise if the program cannot be served."""
        return Service(self.open_program(), self.limits)


def run(served: Served) -> None:
    """Serve until the process is told to end."""
    os.environ[_VARIABLE] = json.dumps(asdict(served))
    with watching(served.open_program()):
        uvicorn.run(
            "fairchance.service.server:app",
            factory=True,
            host=served.host,
            port=served.port,
            workers=served.workers,
            access_log=False,
            log_config=LOGGING,
            log_level="warning",
            server_header=False,
            proxy_headers=False,  # who asks is who is connected, not whom a header names
            timeout_graceful_shutdown=30,
        )


@contextmanager
def in_thread(doors: Doors) -> Iterator[int]:
    """Serve at a free port of this machine, in a thread of this process; yield the port."""
    config = uvicorn.Config(doors, port=0, log_level="critical", access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        thread.join(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


def app() -> Any:
    """Return the application of a worker."""
    logging.captureWarnings(True)  # else they are written to standard error, and wait for it
    data = json.loads(os.environ[_VARIABLE])
    served = Served(**data | {"limits": Limits(**data["limits"])})
    doors = make_app(served.open())
    doors.proxies = frozenset(served.proxies)
    return doors
