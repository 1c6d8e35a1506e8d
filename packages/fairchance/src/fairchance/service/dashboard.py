"""The dashboard at ``/``: a document without data, and views of the record for role audit.

The document's script reads the key from the address and asks for views. Everything is served from
here, and the content security policy allows nothing else: no inline script or style, and no eval.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from importlib import resources
from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import Response

from fairchance.ledger.view import ProgramView
from fairchance.service.doors import only
from fairchance.service.problems import ProblemError
from fairchance.service.threads import Service

__all__ = ["OPEN_PATHS", "add_paths"]

_FILES = {
    "/": "dashboard.html",
    "/static/dashboard.css": "dashboard.css",
    "/static/dashboard.js": "dashboard.js",
    "/static/page.css": "page.css",
    "/static/page.js": "page.js",
    "/static/vega.js": "vega.js",
}
OPEN_PATHS = frozenset(_FILES)
_KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
# What was read is shown for so many times as long as reading it took, and at most so many seconds
# while nothing is recorded: whoever looks, views take at most a tenth of a worker's time.
_REST, _LONGEST = 10, 60.0


@dataclass
class _Kept:
    """Something that was read from the record: at which moment of it, and when."""

    value: Any
    moment: tuple[int, int]
    at: float
    cost: float


class _Views:
    """The views of a program, made from what was read of it not long ago, in one thread."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self._html: dict[str, tuple[Any, Any, str]] = {}

    def html(self, view: ProgramView, name: str) -> str:
        """Return a view."""
        from fairchance.service import views  # noqa: PLC0415 - slow to import

        gaps = self._read("gaps", view, views.read_gaps) if name == "groups" else None
        state = self._read("state", view, views.read_state)
        kept = self._html.get(name)
        if kept is None or kept[0] is not state or kept[1] is not gaps:
            more = () if gaps is None else (gaps,)
            kept = self._html[name] = state, gaps, views.view_html(state, name, more)
        return kept[2]

    def _read(self, name: str, view: ProgramView, read: Callable[[ProgramView], Any]) -> Any:
        moment = view.reader.head().number, view.reader.people_end()
        now, kept = time.monotonic(), self._kept.get(name)
        if kept is not None:
            rest = _REST * kept.cost
            if now - kept.at < (max(_LONGEST, rest) if kept.moment == moment else rest):
                return kept.value
        value = read(view)
        self._kept[name] = _Kept(value, moment, time.monotonic(), time.monotonic() - now)
        return value


def add_paths(app: FastAPI, service: Service) -> None:
    """Add the document, its files, and the views."""
    made = _Views()
    hidden: dict[str, Any] = {"include_in_schema": False}

    async def file(request: Request) -> Response:
        name = _FILES[request.url.path]
        text = await asyncio.to_thread(_text_of, name)  # the chart library takes a while
        return _answer(request, text, _KINDS[name.rpartition(".")[2]])

    for path in _FILES:
        app.get(path, **hidden)(file)

    @app.get("/views/{name}", **only("audit"), **hidden)
    async def view(request: Request, name: str, id: str = "") -> Response:  # noqa: A002
        def html(view: ProgramView) -> str:
            from fairchance.service import views  # noqa: PLC0415 - slow to import

            if name == "applicant":
                return views.applicant_html(view, id)
            if name not in views.VIEWS:
                raise ProblemError(404, "no_path", f"there is no view {name!r}.")
            return made.html(view, name)

        read = service.read if name == "applicant" else service.read_slowly
        return _answer(request, await read(html), "text/html")


def _text_of(name: str) -> str:
    if name.startswith("dashboard"):
        return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    from fairchance.pages.page import asset  # noqa: PLC0415 - slow to import

    return asset(name)


def _answer(request: Request, text: str, kind: str) -> Response:
    """Return a text, or that the browser has it already."""
    content = text.encode()
    etag = f'"{sha256(content).hexdigest()[:32]}"'
    headers = {**_HEADERS, "ETag": etag, "Cache-Control": "private, no-cache"}
    if request.headers.get("if-none-match") == etag:
        return Response(None, 304, headers)
    return Response(content, 200, headers, f"{kind}; charset=utf-8")
