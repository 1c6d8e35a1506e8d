"""The application: its paths behind its doors, and its errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

import fairchance
from fairchance.errors import InputError
from fairchance.service import dashboard, reading, writing
from fairchance.service.description import description_of
from fairchance.service.doors import Doors, visit_of
from fairchance.service.log import log, worded
from fairchance.service.problems import ProblemError, problem, problem_of
from fairchance.service.strict import MOST_ERRORS
from fairchance.service.threads import Service

__all__ = ["make_app"]

_UNREADABLE = ("not_json", "no_idempotency_key")
_CODES = {  # of pydantic's errors; refused rows of files have the same codes
    "bool_type": "not_a_decision",
    "extra_forbidden": "unknown_column",
    "finite_number": "infinite",
    "float_type": "not_a_number",
    "json_invalid": "not_json",
    "missing": "missing",
    "string_pattern_mismatch": "nul",
    "string_too_long": "too_long",
    "string_too_short": "missing",
    "string_type": "not_text",
}


def make_app(service: Service) -> Doors:
    """Return the application, behind its doors.

    Parameters
    ----------
    service
        The program to serve; the application closes it at its end.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        following = asyncio.create_task(service.follow_keys())
        yield
        following.cancel()
        await asyncio.to_thread(service.close)
        await asyncio.to_thread(log.flush)

    app = FastAPI(
        title=f"fairchance: program {service.program.name!r}",
        version=fairchance.__version__,
        lifespan=lifespan,
        docs_url=None,  # these pages load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,  # functions of generated clients
    )
    for kind, handler in _HANDLERS.items():
        app.add_exception_handler(kind, handler)
    writing.add_paths(app, service)
    reading.add_paths(app, service)
    dashboard.add_paths(app, service)
    app.openapi = description_of(app, service)  # type: ignore[method-assign]
    doors = Doors(app, service.keys.find, service.limits)
    doors.open_paths |= dashboard.OPEN_PATHS
    return doors


async def _refused(_: Request, error: Any) -> Response:
    response: Response = error.response()
    return response


async def _by_library(_: Request, error: Any) -> Response:
    return problem_of(error)


async def _by_framework(request: Request, error: Any) -> Response:
    code = {404: "no_path", 405: "no_method"}.get(error.status_code, "not_json")
    response = problem(error.status_code, code, f"{error.detail}.")
    if error.status_code == 405:  # a path may be there twice, with one method each
        here = [one for one in request.app.routes if one.path_regex.match(request.url.path)]
        response.headers["Allow"] = ", ".join(
            sorted({name for one in here for name in one.methods})
        )
    return response


async def _invalid(_: Request, error: Any) -> Response:
    found = [
        {
            "pointer": "/" + "/".join(map(str, one["loc"][1:])),
            "code": _CODES.get(one["type"], "input"),
            "detail": one["msg"],
        }
        for one in error.errors()[:MOST_ERRORS]
    ]
    code = found[0]["code"]
    if ("header", "missing") in {(one["loc"][0], one["type"]) for one in error.errors()}:
        code = "no_idempotency_key"
    detail = "the request does not have the form that the API describes; see errors."
    return problem(400 if code in _UNREADABLE else 422, code, detail, errors=found)


async def _bug(request: Request, error: Exception) -> Response:
    visit_of(request).bug = worded(error)["detail"]
    detail = f"this is a bug of fairchance ({type(error).__name__}); nothing half-done is kept."
    return problem(500, "bug", detail)


_HANDLERS: dict[Any, Any] = {
    ProblemError: _refused,
    InputError: _by_library,
    HTTPException: _by_framework,
    RequestValidationError: _invalid,
    Exception: _bug,
}
