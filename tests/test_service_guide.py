"""Every command of docs/service.md runs, in its order, on a server of PostgreSQL."""

from __future__ import annotations

import os
import signal
import socket
from contextlib import closing, suppress

import pytest

from guides import PLACE, ROOT, check_page

pytestmark = pytest.mark.xdist_group("guide")
PAGE = ROOT / "docs" / "service.md"


def test_the_page_comes_out_as_it_is_written(shell, new_database, request):
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    swaps = {PLACE: new_database(), "localhost:8000": f"localhost:{port}", "8000 ": f"{port} "}
    try:
        check_page(PAGE, shell, swaps, request)
    finally:
        with suppress(OSError, ValueError):
            os.kill(int((shell.folder / "service.pid").read_text()), signal.SIGKILL)
