"""Fixtures: no data on the machine, a local server, and small survey files."""

from __future__ import annotations

import io
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

PERSONS = """\
SERIALNO,ST,AGEP,COW,SCHL,MAR,OCCP,POBP,WKHP,RAC1P,SEX,PINCP,PWGTP,AGEP2
{year}HU0000001,{code},40,1,21,1,0440,006,40,1,2,60000,10,1
{year}HU0000001,{code},8,,5,5,,006,,1,1,,12,1
{year}GQ0000002,{code},30,2,16,5,4020,036,20,2,1,50000,9,1
{year}HU0000003,{code},50,3,22,1,1020,210,45,6,1,90000,8,1
{year}HU0000004,{code},70,,19,2,,006,,2,2,51000,7,1
"""


@pytest.fixture(autouse=True)
def bare_machine(tmp_path, monkeypatch):
    """No data folder, a cache of the test's own, and no proxy before the local server."""
    monkeypatch.delenv("FAIRCHANCE_DATA", raising=False)
    monkeypatch.setenv("FAIRCHANCE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def persons():
    """Return a function that makes a person file of five people; the fourth has RAC1P 6."""

    def make(year=2019, code="06"):
        return PERSONS.format(year=year, code=code)

    return make


@pytest.fixture
def zipped():
    """Return a function that makes the bytes of a zip file like the Census Bureau's."""

    def make(text, name="psam_p06.csv"):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(name, text)
            archive.writestr("README.pdf", "about")
        return buffer.getvalue()

    return make


class Server:
    """Serves bodies by path; ``promised`` overrides the content length, -1 leaves it out."""

    def __init__(self):
        self.bodies: dict[str, bytes] = {}
        self.promised: dict[str, int] = {}
        self.requests: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.requests.append(self.path)
                body = outer.bodies.get(self.path)
                self.send_response(404 if body is None else 200)
                body = body or b""
                length = outer.promised.get(self.path, len(body))
                if length >= 0:
                    self.send_header("Content-Length", str(length))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,))
        self.thread.start()

    def close(self):
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


@pytest.fixture
def server():
    server = Server()
    yield server
    server.close()
