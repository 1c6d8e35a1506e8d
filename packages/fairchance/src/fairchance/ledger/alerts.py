"""Tell a receiver of changed lights, once, by a signed POST over HTTP.

The form is that of Standard Webhooks, for which many languages have a library: the headers
``webhook-id``, ``webhook-timestamp`` and ``webhook-signature``, which is ``v1,`` and the base64 of
HMAC-SHA256 over ``id.timestamp.body``. What was told is an entry of kind ``alert``, appended after
the receiver answered. If that is interrupted, the alert is sent again with the same id.
"""

from __future__ import annotations

import base64
import hmac
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from http import HTTPStatus
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from fairchance.errors import InputError, UnavailableError
from fairchance.ledger.base import Entry, Facts
from fairchance.ledger.config import ADDRESS
from fairchance.ledger.health import Check, check_health, worst_light
from fairchance.ledger.program import login_name
from fairchance.ledger.sql import SqlLedger
from fairchance.ledger.summary import Summary
from fairchance.words import LIGHTS, moved
from fairchance.words.checks import check_text, verdict

__all__ = ["Alert", "LightChange", "Receiver", "notify"]

_URL = "FAIRCHANCE_ALERTS_URL"  # a variable that overrules the configuration
_SECRET = "FAIRCHANCE_ALERTS_SECRET"  # where the secret is, unless the configuration says it
_PREFIX, _LEAST = "whsec_", 24  # of a secret: how it may begin, and its bytes at least
_PAUSES = (1.0, 5.0, 25.0)  # seconds before the second attempt and the next ones
_PATIENCE = 10.0  # seconds for an answer


@dataclass(frozen=True)
class Receiver:
    """Who is told, and the secret with which alerts are signed.

    Examples
    --------
    >>> Receiver("https://example.org/alerts", b"s" * 24)
    Receiver(url='https://example.org/alerts')
    """

    url: str
    secret: bytes = field(repr=False)

    @staticmethod
    def of(about: Mapping[str, Any], variables: Mapping[str, str] | None = None) -> Receiver | None:
        """Return the receiver of a program; None if it has none.

        Parameters
        ----------
        about
            What the program's first entry has from its configuration.
        variables
            Variables of the environment; None means those of the process.
        """
        variables = os.environ if variables is None else variables
        known = about.get("alerts", {})
        url = variables.get(_URL) or known.get("url")
        if not url:
            return None
        ADDRESS.read(_URL, url)
        name = known.get("secret_variable", _SECRET)
        try:
            secret = base64.b64decode(variables[name].removeprefix(_PREFIX), validate=True)
        except (KeyError, ValueError):
            secret = b""
        if len(secret) < _LEAST:
            raise InputError(
                f"the variable {name} must hold the secret that signs alerts, at least {_LEAST} "
                f"bytes as base64; `openssl rand -base64 32` makes one."
            )
        return Receiver(url, secret)

    def headers(self, name: str, at: int, body: bytes) -> dict[str, str]:
        """Return the headers of an alert that is sent at a time, in seconds."""
        signed = hmac.digest(self.secret, f"{name}.{at}.".encode() + body, "sha256")
        return {
            "content-type": "application/json",
            "user-agent": "fairchance",
            "webhook-id": name,
            "webhook-timestamp": str(at),
            "webhook-signature": f"v1,{base64.b64encode(signed).decode()}",
        }

    def send(self, name: str, body: bytes) -> None:
        """Send an alert; raise ``UnavailableError`` if it is not taken after some attempts."""
        place = urlsplit(self.url).hostname
        for pause in (*_PAUSES, None):
            headers = self.headers(name, int(time.time()), body)
            try:
                asked = urllib.request.Request(self.url, body, headers, method="POST")
                with _opener.open(asked, timeout=_PATIENCE):
                    return
            except urllib.error.HTTPError as error:
                error.close()
                problem, again = f"HTTP {error.code}", _may_pass(error.code)
            except (OSError, HTTPException) as error:
                problem, again = str(getattr(error, "reason", error)), True
            if pause is None or not again:
                raise UnavailableError(
                    f"the receiver of alerts at {place} did not take an alert ({problem}), and it "
                    f"will be sent again next time; look at [alerts] url and at the receiver."
                )
            time.sleep(pause)


def _may_pass(status: int) -> bool:
    """Return whether an error of a server may be gone soon."""
    too_many = status == HTTPStatus.TOO_MANY_REQUESTS
    return too_many or status >= HTTPStatus.INTERNAL_SERVER_ERROR


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Take a redirection for an error: it would make a GET of a POST, elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirect)


@dataclass(frozen=True)
class LightChange:
    """A question of ``check_health`` whose light changed, of all applicants or of a group."""

    question: str
    group: str
    was: str
    light: str
    message: str


@dataclass(frozen=True)
class Alert:
    """What a receiver is told.

    Attributes
    ----------
    id
        The same if an alert is sent again.
    program, at, checkpoint
        The program, the time (ISO 8601, UTC) and the end of its chain.
    light, was
        The worst light now, and when the last alert was sent.
    message
        The verdict, as ``status`` prints it.
    changes
        The lights that changed.
    """

    id: str
    program: str
    at: str
    checkpoint: str
    light: str
    was: str
    message: str
    changes: Sequence[LightChange]

    def body(self) -> bytes:
        """Return the alert as JSON."""
        return json.dumps({"type": "lights", **asdict(self)}).encode()


def notify(
    ledger: SqlLedger,
    summary: Summary,
    receiver: Receiver,
    *,
    late: float = 180.0,
    by: str | None = None,
) -> Alert | None:
    """Send the lights that changed since the last alert; return the alert, None if none did.

    The first alert has all lights that are not green.

    Parameters
    ----------
    ledger, summary
        The ledger, and the program's summary.
    receiver
        Who is told.
    late
        Days after which a pending outcome is late.
    by
        The author of the entry that records what was told; None means the user's login name.
    """
    left = summary.moved
    if left is not None:  # what is told could not be recorded, and would be told again
        gone = moved(left.says["to"], left.at, left.by)
        raise UnavailableError(f"no alert was sent: program {summary.program!r} {gone}")
    with ledger.reading(summary.program) as reader:
        last = next(reader.newest_first("alert"), None)
    checks = check_health(summary, late)
    alert = _alert(summary, checks, last)
    if not alert.changes:
        return None
    receiver.send(alert.id, alert.body())
    header = {"lights": _told(_lights(checks)), "to": urlsplit(receiver.url).hostname}
    with ledger.writing(summary.program) as writer:
        if writer.entry("alert", alert.id) is None:  # nobody else told the same meanwhile
            who = login_name() if by is None else by
            writer.append("alert", header, Facts(), by=who, key=alert.id)
    return alert


def _lights(checks: Sequence[Check]) -> dict[tuple[str, str], Check]:
    """Return the worst check of each question and group, without green ones."""
    lights: dict[tuple[str, str], Check] = {}
    for check in checks:  # the worst first
        if check.light != "green":
            lights.setdefault((check.question, check.group), check)
    return lights


def _told(lights: Mapping[tuple[str, str], Check]) -> list[list[str]]:
    """Return lights as an entry has them."""
    return [[*about, check.light] for about, check in lights.items()]


def _alert(summary: Summary, checks: Sequence[Check], last: Entry | None) -> Alert:
    lights = _lights(checks)
    told = {} if last is None else {(q, group): light for q, group, light in last.says["lights"]}
    changes = []
    for about in dict.fromkeys([*lights, *told]):
        check, was = lights.get(about), told.get(about, "green")
        light = "green" if check is None else check.light
        if light != was:
            message = "This is as it should be again." if check is None else check_text(check)
            changes.append(LightChange(*about, was, light, message))
    number = 0 if last is None else last.number
    content = json.dumps([summary.program, number, sorted(_told(lights))])
    return Alert(
        f"msg_{sha256(content.encode()).hexdigest()[:32]}",
        summary.program,
        summary.at,
        str(summary.head),
        worst_light(checks),
        min(told.values(), key=LIGHTS.index, default="green"),
        verdict(checks),
        tuple(changes),
    )
