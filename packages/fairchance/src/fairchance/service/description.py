"""The description of the API (OpenAPI), with the program's own columns and an example."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from fairchance.service.bodies import Problem
from fairchance.service.threads import Service

__all__ = ["description_of"]

_ABOUT = (
    "Decisions of a fairchance program, outcomes, and what is on record. An application is decided "
    "on once: sent again with the same content, it gets the recorded answer. Other requests that "
    "change the record have a name in Idempotency-Key. After a 503, send the same again."
)
_PROBLEM = {
    "description": "It is refused (4xx) or cannot be answered now (5xx): see code and detail.",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}


def description_of(app: FastAPI, service: Service) -> Callable[[], dict[str, Any]]:
    """Return what describes the paths of an application, once they are all there."""

    def describe() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _described(app, service)
        return app.openapi_schema

    return describe


def _described(app: FastAPI, service: Service) -> dict[str, Any]:
    described = get_openapi(
        title=app.title, version=app.version, description=_ABOUT, routes=app.routes
    )
    parts = described.setdefault("components", {})
    schemas = parts.setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas["Problem"] = Problem.model_json_schema()
    schemas["Application"]["examples"] = [service.form.example]
    parts["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    described["security"] = [{"key": []}]
    for path in described["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = _PROBLEM
    return described
