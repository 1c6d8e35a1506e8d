"""A receiver of alerts, on this machine."""

from __future__ import annotations

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class Received(list):
    """The alerts that were received: headers and body; ``answers`` are the next statuses."""

    def __init__(self):
        super().__init__()
        self.answers, self.url = [], ""

    @property
    def taken(self):
        """The bodies of the alerts that were answered with 200."""
        return [json.loads(body) for status, _, body in self if status == 200]


@contextmanager
def receiving():
    """Receive alerts while the block runs."""
    received = Received()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            status = received.answers.pop(0) if received.answers else 200
            headers = {name.lower(): value for name, value in self.headers.items()}
            received.append((status, headers, body))
            self.send_response(status)
            if status == 302:
                self.send_header("location", received.url)
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        received.url = f"http://127.0.0.1:{server.server_port}/alerts"
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield received
        server.shutdown()
        thread.join()
