"""A lender's program that is served, and clients that ask it."""

from __future__ import annotations

import http.client
import json
import warnings
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from cli.lender_files import CERTIFIED, done, people
from fairchance.errors import LearningWarning
from fairchance.ledger import Program, SqlLedger
from fairchance.ledger.keys import ROLES, add_key
from fairchance.service.app import make_app
from fairchance.service.doors import Limits
from fairchance.service.server import in_thread
from fairchance.service.threads import Service

ROUNDS = """
[rounds]
at_most = {at_most}
[reasons]
income = {{ code = "R1", text = "Your income is low." }}
"""
INCUMBENT = CERTIFIED.replace(
    'id = "id"', 'id = "id"\naccepted = "accepted"\nincumbent = "today"'
).replace(
    'withdrawn = "fraud"', 'withdrawn = "fraud"\nnot_taken = "none"\nnot_taken_within = "2 rounds"'
)


def make_program(url, config=INCUMBENT, at_most=10_000, n=600, **columns):
    """Make the lender's program, with more columns; applications come to it one at a time.

    Without a largest number of a round, rounds are opened by hand.
    """
    with TemporaryDirectory() as folder:
        past = people(n).assign(**columns)
        past["accepted"] = np.where(past["income"] > 0, "yes", "no")
        past.loc[past["accepted"] == "no", "outcome"] = ""
        past.to_csv(f"{folder}/history.csv", index=False)
        rounds = "" if at_most is None else ROUNDS.format(at_most=at_most)
        Path(folder, "program.toml").write_text(config + rounds)
        done("init", "--config", f"{folder}/program.toml", f"{folder}/history.csv", "--ledger", url)


@cache
def _file(config, at_most):
    with TemporaryDirectory() as folder:
        make_program(f"sqlite:///{folder}/x.db", config, at_most)
        return Path(folder, "x.db").read_bytes()


def started(url, config=INCUMBENT, at_most=10_000):
    """Make the lender's program at a URL, quicker if it was made before in this process."""
    if url.startswith("sqlite:///"):
        Path(url.removeprefix("sqlite:///")).write_bytes(_file(config, at_most))
    else:
        make_program(url, config, at_most)
    return url


def keys_for(url):
    """Make a key of each role."""
    ledger = SqlLedger(url)
    with ledger.writing("main") as writer:
        return {role: add_key(writer, role, role) for role in ROLES}


def applications(first, n=1, **changed):
    """Return applications as the service takes them."""
    rows = people(n, start=10_000 + first)
    return [
        {
            "id": row.id,
            "features": {"income": row.income, "debt": row.debt},
            "groups": {"sex": row.sex},
            "incumbent": bool(row.income > 0),
            **changed,
        }
        for row in rows.itertuples()
    ]


@dataclass
class Client:
    """Asks a service, with a key of a role for each request."""

    port: int
    keys: dict = field(default_factory=dict)

    def ask(self, method, path, role=None, body=None, headers=(), key=None):
        """Send a request; return the status, the answer and the headers."""
        sent = dict(headers)
        token = self.keys.get(role) if key is None else key
        if token is not None:
            sent.setdefault("Authorization", f"Bearer {token}")
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        if content is not None:
            sent.setdefault("Content-Type", "application/json")
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as there:
            there.request(method, path, content, sent)
            answer = there.getresponse()
            text = answer.read()
            kind = answer.headers.get("content-type", "")
            data = json.loads(text) if "json" in kind else text
            return answer.status, data, answer.headers

    def get(self, path, role, code=200):
        """Return the answer to a question, of the expected status."""
        status, data, _ = self.ask("GET", path, role)
        assert status == code, data
        return data

    def post(self, path, role, body=None, name=None, code=200):
        """Return the answer to a request under a name, of the expected status."""
        headers = {} if name is None else {"Idempotency-Key": name}
        status, data, _ = self.ask("POST", path, role, body, headers)
        assert status == code, data
        return data

    def decide(self, rows, code=200):
        """Return decisions."""
        data = self.post("/v1/decisions", "decide", {"applications": rows}, code=code)
        return data["decisions"] if code == 200 else data


@contextmanager
def served(url, limits=None, **changed):
    """Serve a program in a thread; yield a client with a key of each role, and the log."""
    keys, lines = keys_for(url), []
    service = Service(Program.open(url, by="test", load=False), limits or Limits(**changed))
    doors = make_app(service)
    doors.log = lines.append
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LearningWarning)
        with in_thread(doors) as port:
            client = Client(port, keys)
            client.log, client.service, client.doors = lines, service, doors
            yield client
