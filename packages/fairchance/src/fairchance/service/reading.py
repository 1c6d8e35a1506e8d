"""The paths that read."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from starlette.responses import Response

from fairchance.errors import InputError, NoRoundError, UnknownIdError
from fairchance.ledger.applicant import applicant_file, newest_decisions
from fairchance.ledger.policies import policy_content
from fairchance.ledger.status_data import status_data
from fairchance.ledger.view import ProgramView
from fairchance.service import bodies
from fairchance.service.doors import only, visit_of
from fairchance.service.metrics import metrics_text
from fairchance.service.problems import ProblemError, json_answer
from fairchance.service.threads import Service
from fairchance.words import plain_data

__all__ = ["add_paths"]

_BY_DEFAULT = timedelta(days=30)
_LATE = 180.0  # days, as ``fairchance status`` has it
_MOST = 1000  # decisions of a page
_DAY = Query(pattern=r"^\d{4}-\d\d-\d\d$", description="A day, such as 2031-01-31.")


def add_paths(app: FastAPI, service: Service) -> None:
    """Add the paths that read."""
    _add_probes(app, service)
    _add_decisions(app, service)
    _add_program(app, service)


def _add_probes(app: FastAPI, service: Service) -> None:
    @app.get("/livez", include_in_schema=False)
    async def livez() -> Response:
        return json_answer({"status": "alive"})

    @app.get("/readyz", include_in_schema=False)
    async def readyz() -> Response:
        service.check()
        try:
            await service.read(lambda view: view.reader.head())
        except InputError as error:  # its words may say where the ledger is, and anybody may ask
            raise ProblemError(503, error.code, "the record cannot be read now.") from error
        return json_answer({"status": "ready"})


def _add_decisions(app: FastAPI, service: Service) -> None:
    options = only("operate", "audit")

    @app.get("/v1/decisions", response_model=bodies.DecisionPage, **options)
    async def decisions(
        since: Annotated[str | None, _DAY] = None,
        cursor: Annotated[int | None, Query(ge=0, lt=2**63)] = None,
        limit: Annotated[int, Query(ge=1, le=_MOST)] = 100,
    ) -> Response:
        """List decisions, the newest first: those of the open round and of the last 30 days.

        ``since`` leaves out rounds that were closed before. The order is that of the applicants'
        numbers, and processes on PostgreSQL take these in blocks, so within a round it is not
        exactly that of time. ``next`` of an answer is the cursor of the next page.
        """
        now = service.program.ledger.clock()
        begin = now - _BY_DEFAULT if since is None else _read_day(since)

        def question(view: ProgramView) -> Any:
            listed, following = newest_decisions(view, begin, before=cursor, most=limit)
            return {"decisions": listed, "next": following}

        return json_answer(await service.read(question))

    @app.get("/v1/decisions/{id:path}", response_model=bodies.File, **options)
    async def decision(request: Request, id: str) -> Response:  # noqa: A002 - named so in the path
        """Return one applicant's file: all that is on record about an application."""
        groups = _sees_groups(request)

        def question(view: ProgramView) -> Any:
            return plain_data(asdict(applicant_file(view, id, groups=groups)))

        try:
            return json_answer(await service.read(question))
        except UnknownIdError as error:
            raise ProblemError(404, error.code, str(error)) from error


def _add_program(app: FastAPI, service: Service) -> None:
    options = only("operate", "audit")

    async def state(request: Request) -> Any:
        groups = _sees_groups(request)
        return await service.read(
            lambda view: plain_data(status_data(view.summary(groups=groups), _LATE))
        )

    @app.get("/v1/status", response_model=dict[str, Any], **options)
    async def status(request: Request) -> Response:
        """Return the state of the program, as ``fairchance status --json`` prints it."""
        return json_answer(await state(request))

    @app.get("/v1/rounds", response_model=bodies.Rounds, **options)
    async def rounds(request: Request) -> Response:
        """Return the closed rounds, and the one that is open."""
        data = await state(request)
        return json_answer({"open": data["open_round"], "rounds": data["rounds"]})

    file: Any = {200: {"content": {"application/octet-stream": {}}}}

    @app.get("/v1/policy", response_class=Response, responses=file, **only("edge"))
    async def policy() -> Response:
        """Return the policy of the open round, as a file that ``fairchance.load`` reads."""

        def question(view: ProgramView) -> Any:
            opened = view.reader.open_round()
            if opened is None:
                raise NoRoundError(f"no round of program {view.program.name!r} is open now.")
            return opened.says["round"], policy_content(view.reader, opened)

        round, content = await service.read(question)
        headers = {"Content-Disposition": f'attachment; filename="round-{round}.policy"'}
        return Response(content, headers=headers, media_type="application/octet-stream")

    text: Any = {200: {"content": {"text/plain": {}}}}

    @app.get("/metrics", response_class=Response, responses=text, **options)
    async def metrics(request: Request) -> Response:
        """Return numbers for Prometheus, read from the record."""
        groups = _sees_groups(request)
        numbers = await service.read(lambda view: metrics_text(view, groups=groups))
        return Response(numbers, media_type="text/plain; version=0.0.4")


def _read_day(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError as error:
        message = f"a day must be such as 2031-01-31, got {text!r}."
        raise InputError(message, option="since") from error


def _sees_groups(request: Request) -> bool:
    key = visit_of(request).key
    return key is not None and key.role == "audit"
