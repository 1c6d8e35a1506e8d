"""Errors as problem+json (RFC 9457), with the library's codes and sentences."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response

from fairchance.errors import InputError

__all__ = ["ProblemError", "json_answer", "problem", "problem_of"]

_STATUS = {
    "ledger": 503,
    "no_round": 409,
    "paused": 409,
    "round_closed": 503,
}
_TITLES = {
    400: "The request cannot be read",
    401: "A valid key is needed",
    403: "The key's role does not allow this",
    404: "Not found",
    405: "The method is not allowed",
    408: "The request came too slowly",
    409: "The state of the program does not allow this now",
    413: "The request is too large",
    422: "The content cannot be used",
    429: "Too many requests",
    500: "A bug of fairchance",
    503: "Not now; send it again",
}
_RETRY = {429: 1, 503: 1}  # seconds


class ProblemError(HTTPException):
    """A refusal by the service itself; errors of the library are ``InputError``."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(status, detail)
        self.code = code

    def response(self) -> Response:
        """Return the response."""
        return problem(self.status_code, self.code, self.detail)


def json_answer(data: Any) -> Response:
    """Return plain data as a response."""
    return Response(json.dumps(data) + "\n", media_type="application/json")


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    option: str = "",
    errors: Sequence[dict[str, Any]] = (),
) -> Response:
    """Return an error as a response."""
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": _TITLES.get(status, "Error"),
        "status": status,
        "code": code,
        "option": option or None,
        "detail": detail,
    }
    if errors:
        body["errors"] = list(errors)
    headers = {"Retry-After": str(_RETRY[status])} if status in _RETRY else {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(json.dumps(body) + "\n", status, headers, "application/problem+json")


def problem_of(error: InputError) -> Response:
    """Return an error of the library as a response."""
    status = _STATUS.get(error.code, 422)
    return problem(status, error.code, error.worded(error.option), option=error.option)
