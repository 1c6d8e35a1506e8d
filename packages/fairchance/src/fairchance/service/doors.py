"""What every request passes: its key, limits, an id, and a line in the log.

This is an ASGI application around the service's own. A request without a valid key is refused
before anything of it is read; nothing about it is kept.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any

from fastapi import Depends, Request

from fairchance.ledger.keys import Key, split_token
from fairchance.service.log import log
from fairchance.service.problems import ProblemError

__all__ = ["Doors", "KeyRing", "Limits", "Visit", "only", "visit_of"]

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_OLDEST = 180.0  # seconds for which keys are valid that cannot be read again
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


@dataclass(frozen=True)
class Limits:
    """What a client may ask for.

    Attributes
    ----------
    body, rows
        Bytes of a request, and applications in it.
    seconds
        How long a request may take.
    rate
        Requests of a key in a second, on average, of each worker; 0 for any number.
    waiting
        Applications that may wait for their decisions.
    """

    body: int = 8_000_000
    rows: int = 2_000
    seconds: float = 30.0
    rate: float = 0.0
    waiting: int = 20_000


@dataclass
class Visit:
    """A request on its way through the service.

    Attributes
    ----------
    id, traceparent
        Its id, made here, and the caller's trace context.
    key
        The key it came with; None if the path needs none.
    policy
        The round whose policy decided.
    parts
        Milliseconds of its parts.
    bug
        Where an unexpected error arose.
    """

    id: str
    traceparent: str | None = None
    key: Key | None = None
    policy: int | None = None
    parts: dict[str, float] = field(default_factory=dict)
    bug: str | None = None

    @property
    def by(self) -> str:
        """Who sent it: the id of its key."""
        assert self.key is not None
        return self.key.id


def visit_of(request: Request) -> Visit:
    """Return what is known about a request."""
    visit: Visit = request.state.visit
    return visit


def only(*roles: str) -> dict[str, Any]:
    """Return the options of a path that keys of some roles may take."""

    async def check(request: Request) -> None:
        key = visit_of(request).key
        if key is None or key.role not in roles:
            raise ProblemError(403, "role", f"this needs a key with the role {' or '.join(roles)}.")

    return {"dependencies": [Depends(check)], "openapi_extra": {"x-roles": list(roles)}}


class Doors:
    """The way in.

    Attributes
    ----------
    open_paths
        Paths that need no key.
    proxies
        Addresses of proxies that sign people in: whom their header ``X-Forwarded-User`` names may
        look at the dashboard.
    """

    def __init__(self, app: Any, find_key: Callable[[str], Key | None], limits: Limits) -> None:
        self._app, self._find_key, self._limits = app, find_key, limits
        self._allowed: dict[str, tuple[float, float]] = {}  # per key: requests left, and when
        self.open_paths = {"/livez", "/readyz"}
        self.proxies: frozenset[str] = frozenset()
        self.log: Callable[[str], Any] = log.write

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Let a request pass, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        visit, begun, status = Visit(token_hex(8)), time.perf_counter(), 500
        trace = headers.get(b"traceparent", b"").decode("latin-1")
        visit.traceparent = trace if _TRACEPARENT.fullmatch(trace) else None
        scope.setdefault("state", {})["visit"] = visit
        own = [(b"x-request-id", visit.id.encode())]
        if visit.traceparent:
            own.append((b"traceparent", visit.traceparent.encode()))

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message["headers"], *own]}
            await send(message)

        try:
            await self._pass(scope, headers, visit, receive, sent)
        finally:
            visit.parts["total"] = 1000 * (time.perf_counter() - begun)
            self._write(scope, visit, status)

    async def _pass(
        self,
        scope: MutableMapping[str, Any],
        headers: dict[bytes, bytes],
        visit: Visit,
        receive: Receive,
        send: Send,
    ) -> None:
        started = False

        async def sent(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            if scope["path"] not in self.open_paths:
                visit.key = self._signed_in(scope, headers) or self._key(headers)
            self._check_size(headers)
            async with asyncio.timeout(self._limits.seconds):
                await self._app(scope, self._limited(receive), sent)
        except ProblemError as error:
            await error.response()(scope, receive, sent)
        except TimeoutError:
            if not started:
                late = ProblemError(503, "late", "this took too long; send it again.")
                await late.response()(scope, receive, sent)
        except Exception:
            if visit.bug is None:  # else it is answered and in the log, without its message
                raise

    def _signed_in(
        self, scope: MutableMapping[str, Any], headers: dict[bytes, bytes]
    ) -> Key | None:
        """Return a key for somebody whom a listed proxy signed in, for the dashboard only."""
        user = headers.get(b"x-forwarded-user", b"").decode("latin-1")
        client, _ = scope["client"] or ("", 0)
        if not user or client not in self.proxies or not scope["path"].startswith("/views/"):
            return None
        return Key(f"proxy:{user}", "audit", user, b"", "")

    def _key(self, headers: dict[bytes, bytes]) -> Key:
        kind, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        key = self._find_key(token) if kind.lower() == "bearer" else None
        if key is None:
            raise ProblemError(401, "no_key", "send Authorization: Bearer and a valid key.")
        if self._limits.rate and not self._may(key.id):
            raise ProblemError(429, "too_many", f"at most {self._limits.rate:g} a second.")
        return key

    def _may(self, key: str) -> bool:
        """Return whether a key may send another request now: twice the rate at once at most."""
        now, rate = time.monotonic(), self._limits.rate
        left, before = self._allowed.get(key, (2 * rate, now))
        left = min(2 * rate, left + (now - before) * rate)
        self._allowed[key] = (left - 1 if left >= 1 else left), now
        return left >= 1

    def _check_size(self, headers: dict[bytes, bytes]) -> None:
        size = headers.get(b"content-length", b"0")
        if not size.isdigit() or int(size) > self._limits.body:
            self._too_large()

    def _too_large(self) -> None:
        most = self._limits.body
        raise ProblemError(413, "too_large", f"a request has at most {most:,} bytes; split it.")

    def _limited(self, receive: Receive) -> Receive:
        n = 0

        async def received() -> Message:
            nonlocal n
            message = await receive()
            n += len(message.get("body", b""))
            if n > self._limits.body:
                self._too_large()
            return message

        return received

    def _write(self, scope: MutableMapping[str, Any], visit: Visit, status: int) -> None:
        route = getattr(scope.get("route"), "path_format", None)
        line = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "id": visit.id,
            "traceparent": visit.traceparent,
            "method": scope["method"],
            "route": route,
            "status": status,
            "key": None if visit.key is None else visit.key.id,
            "policy": visit.policy,
            "ms": {name: round(value, 2) for name, value in visit.parts.items()},
        } | ({"bug": visit.bug} if visit.bug else {})
        self.log(json.dumps(line))


class KeyRing:
    """The valid keys of a program, read from the ledger now and then.

    A wrong key costs a look into a dictionary, and leaves nothing behind.
    """

    def __init__(self, read: Callable[[], list[Key]]) -> None:
        self._read = read
        self._keys: dict[str, Key] = {}
        self._read_at = 0.0
        self.refresh()

    def refresh(self) -> None:
        """Read the keys."""
        begun = time.monotonic()
        self._keys = {key.id: key for key in self._read() if key.revoked is None}
        self._read_at = begun

    def check(self) -> None:
        """Raise if the keys were read so long ago that one of them may be revoked."""
        if time.monotonic() - self._read_at > _OLDEST:
            raise ProblemError(503, "old_keys", "the keys cannot be read, and may be revoked.")

    def find(self, token: str) -> Key | None:
        """Return the key of a text, if it is a valid one."""
        self.check()
        parts = split_token(token)
        key = None if parts is None else self._keys.get(parts[0])
        return key if key is not None and parts is not None and key.fits(parts[1]) else None
