"""A lender's year and a half in two minutes: a service, and a simulated lender that asks it.

The applicants are drawn and the ledger's clock is fast; the service, its dashboard, the requests
and the record are as always.
"""

from __future__ import annotations

import http.client
import json
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from scipy.special import expit, logit

import fairchance as fc
from fairchance.cli.commands.demo import REASONS
from fairchance.errors import InputError
from fairchance.extras import arrow
from fairchance.ledger.keys import add_key
from fairchance.ledger.program import Program
from fairchance.service.app import make_app
from fairchance.service.server import in_thread
from fairchance.service.threads import Service
from fairchance.simulate.people import People
from fairchance.simulate.populations import Lender

__all__ = ["MONTHS", "WORSE_FROM", "LiveLender", "LiveMonth"]

MONTHS, _ALPHA = 17, 0.2
_N, _HISTORY = 600, 3000  # applicants of a month, and of the past
_RAMP = {3: 0.2, 5: 1.0}  # from these months on; shadow before
WORSE_FROM, _WORSE_BY = 12, 1.5  # from this month on repaying is less likely, in log-odds
_NOT_TAKEN = 0.08  # of accepted applicants
_TOGETHER = 50  # applications of a request
_LONG = timedelta(days=31)
_ABOUT = {
    "rounds": {"every": "1 month"},
    "ramp": 0.0,
    "not_taken_within": "2 rounds",
    "currency": "EUR",
    "reasons": REASONS,
}
_ROLES = ("decide", "observe", "operate", "audit")
# Today's process looks at income, with much noise, and mistrusts group B.
_TOWN = Lender(curvature=0.3, income_gap=0.0, past_penalty=1.5, past_intercept=-0.5, past_slope=1.0)


@dataclass(frozen=True)
class LiveMonth:
    """What happened in a month: who decided on how many, and how many were accepted."""

    month: int
    status: str
    ramp: float
    n_people: int
    n_accepted: int


class LiveLender:
    """A lender whose program is served.

    Attributes
    ----------
    address
        The dashboard, with a key; empty while nothing is served.
    """

    def __init__(self, url: str) -> None:
        self.address, self._port = "", 0
        self._rng, self._due = (
            np.random.default_rng(0),
            defaultdict[int, list[dict[str, str]]](list),
        )
        self._now = datetime.now(UTC) - (MONTHS + 1) * _LONG
        people, good, accepted = self._apply(_HISTORY, 0)
        program = Program.create(
            url,
            fc.CertifiedClassifier(
                _ALPHA, 0.1, fc.Revenue(200, 500), horizon=MONTHS, maturity=1, patience=5,
                floor=0.01, random_state=0,
            ),
            arrow().table(dict(zip(_TOWN.features, people.X.T, strict=True))),
            (good & accepted).astype(int),
            accepted=accepted,
            sensitive_features=people.group,
            name="live",
            by="fairchance demo",
            about=_ABOUT,
            clock=lambda: self._now,
        )  # fmt: skip
        with program.ledger.writing(program.name) as writer:
            self._keys = {role: add_key(writer, role, role) for role in _ROLES}
        self._program = program

    @contextmanager
    def served(self) -> Iterator[None]:
        """Serve the program at a free port of this machine."""
        doors = make_app(Service(self._program))
        doors.log = str  # which does nothing with it
        with in_thread(doors) as self._port:
            self.address = f"http://127.0.0.1:{self._port}/#key={self._keys['audit']}"
            yield

    def months(self, n: int, seconds: float) -> Iterator[LiveMonth]:
        """Live so many months, and yield each as it ends; it takes at least so many seconds."""
        for month in range(1, n + 1):
            begun = time.monotonic()
            self._now += _LONG / 100
            if self._due[month]:
                self._post("outcomes", "observe", {"outcomes": self._due[month]}, f"month {month}")
            if month in _RAMP:
                self._post("ramp", "operate", {"ramp": _RAMP[month]}, f"month {month}")
            people, good, accepted = self._apply(_N, month)
            decisions: list[dict[str, Any]] = []
            for first in range(0, _N, _TOGETHER):
                some = range(first, first + _TOGETHER)
                rows = [_application(month, at, people, bool(accepted[at])) for at in some]
                decisions += self._post("decisions", "decide", {"applications": rows})["decisions"]
                self._now += _LONG * 0.98 * _TOGETHER / _N
                time.sleep(max(0.0, begun + seconds * (first + _TOGETHER) / _N - time.monotonic()))
            self._lend(month, decisions, good)
            n_accepted = sum(one["decision"] == "accept" for one in decisions)
            yield LiveMonth(month, decisions[-1]["status"], decisions[-1]["ramp"], _N, n_accepted)
            self._now += _LONG / 100

    def _apply(self, n: int, month: int) -> tuple[People, Any, Any]:
        """Return applicants, whether they would repay, and whether the lender accepts them."""
        people = _TOWN.draw(n, self._rng)
        p = _TOWN.probability_good(people)
        p = expit(logit(p) - _WORSE_BY) if month >= WORSE_FROM else p
        accepted = self._rng.random(n) < _TOWN.probability_accepted_before(people)
        return people, self._rng.random(n) < p, accepted

    def _lend(self, month: int, decisions: list[dict[str, Any]], good: Any) -> None:
        """Lend to the accepted; outcomes come after a month or two."""
        for one, repays in zip(decisions, good.tolist(), strict=True):
            if one["decision"] == "accept":
                taken, later = self._rng.random() >= _NOT_TAKEN, int(self._rng.integers(1, 3))
                state = ("good" if repays else "bad") if taken else "not_taken"
                self._due[month + (later if taken else 1)] += [{"id": one["id"], "outcome": state}]

    def _post(self, what: str, role: str, body: Any, name: str = "") -> Any:
        headers = {"Authorization": f"Bearer {self._keys[role]}", "Idempotency-Key": name}
        headers["Content-Type"] = "application/json"
        there = http.client.HTTPConnection("127.0.0.1", self._port, timeout=120)
        with closing(there):
            there.request("POST", f"/v1/{what}", json.dumps(body), headers)
            response = there.getresponse()
            answer = json.loads(response.read())
        if response.status != 200:
            raise InputError(f"the service refused /v1/{what}: {answer['detail']}")
        return answer


def _application(month: int, at: int, people: People, accepted: bool) -> dict[str, Any]:
    return {
        "id": 1000 * (100 + month) + at,
        "features": dict(zip(_TOWN.features, people.X[at].tolist(), strict=True)),
        "groups": {"group": str(people.group[at])},
        "incumbent": accepted,
    }
