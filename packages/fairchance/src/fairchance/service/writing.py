"""The paths that change the record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import GenericAlias
from typing import Annotated, Any

from fastapi import FastAPI, Header, Request
from pydantic import create_model
from starlette.responses import Response

from fairchance.ledger.applicant import decision_data
from fairchance.ledger.base import Entry
from fairchance.ledger.chain import NOTHING
from fairchance.ledger.program import Program
from fairchance.ledger.view import ProgramView
from fairchance.service import bodies
from fairchance.service.doors import only, visit_of
from fairchance.service.problems import json_answer
from fairchance.service.strict import Many, Strict
from fairchance.service.threads import Service

__all__ = ["add_paths"]

_NAMED = Header(
    alias="Idempotency-Key",
    min_length=1,
    max_length=200,
    description="Names the request, for ever: sent again under it, it changes nothing.",
)
Name = Annotated[str, _NAMED]
MaybeName = Annotated[str | None, _NAMED]


def add_paths(app: FastAPI, service: Service) -> None:
    """Add the paths that change the record."""
    _add_deciding(app, service)
    _add_applicants(app, service)
    _add_control(app, service)


def _add_deciding(app: FastAPI, service: Service) -> None:
    """Add decisions, and those that were made elsewhere."""
    form, many = service.form, Many(service.limits.rows)
    new: Any = Annotated[GenericAlias(list, form.Application), many]
    decided: Any = Annotated[GenericAlias(list, form.Decided), many]
    Applications = create_model("Applications", __base__=Strict, applications=(new, ...))
    Imported = create_model("Imported", __base__=bodies.MadeElsewhere, applications=(decided, ...))

    async def decide(request: Request, body: Any) -> Response:
        """Decide on applications, one or many, and answer once the decisions are durable.

        An application that is on record with the same content gets the recorded answer; with
        another content it is refused. If one application is refused, none is recorded.
        """
        visit, waiting = visit_of(request), service.decider.submit(body.applications)
        decisions = await waiting.answer
        visit.policy = decisions[0]["round"]
        visit.parts |= waiting.parts
        return json_answer({"decisions": decisions})

    async def import_decisions(request: Request, body: Any) -> Response:
        """Record decisions that were made by a round's policy while the record was out of reach.

        Each must follow from the policy. If the round is closed by now, they are no evidence, and
        tests begin again, once for each round. ``after_close`` says whether
        they were made after it had been closed: then recall the policy.
        """
        X, given = form.arrays(body.applications)
        accepted = [one.accepted for one in body.applications]
        made = {"round": body.round, "at": body.at, "where": body.where}

        def record(program: Program) -> Any:
            decided = program.import_decisions(X, accepted, **made, **given)
            with program.reading() as view:
                after = view.made_after_close(body.round, body.at)
            return {"decisions": decision_data(decided, form.sentences), "after_close": after}

        return json_answer(await service.write(visit_of(request).by, record))

    decide.__annotations__["body"] = Applications
    import_decisions.__annotations__["body"] = Imported
    answer = bodies.DecisionList
    app.post("/v1/decisions", response_model=answer, **only("decide", "edge"))(decide)
    imported = bodies.ImportedList
    path = app.post("/v1/decisions:import", response_model=imported, **only("edge"))
    path(import_decisions)


def _add_applicants(app: FastAPI, service: Service) -> None:
    """Add what is recorded about applicants who were decided on."""

    async def record(
        request: Request,
        kind: str,
        name: str,
        call: Callable[[Program], Any],
        left: Sequence[str] = (),
    ) -> Response:
        """Record something under a request's name, and answer with what the record has."""
        with service.once_at_a_time(kind, name):
            await service.write(visit_of(request).by, call)
            data = await service.read(lambda view: _recorded(view, kind, name))
        warned = [{"code": "not_compacted", "detail": one} for one in left if one]
        return json_answer(data | ({"warnings": warned} if warned else {}))

    answer = bodies.Recorded

    @app.post("/v1/outcomes", response_model=answer, **only("observe"))
    async def outcomes(request: Request, body: bodies.OutcomeList, name: Name) -> Response:
        """Record outcomes of accepted applicants; one that differs from the record corrects it."""
        names = list(map(str, service.form.ids([one.id for one in body.outcomes]).tolist()))
        part = names, [one.outcome for one in body.outcomes]
        unlike = body.unlike_expected
        return await record(
            request,
            "outcomes",
            name,
            lambda program: program.observe_parts([part], request=name, unlike_expected=unlike),
        )

    @app.post("/v1/overrides", response_model=answer, **only("operate"))
    async def overrides(request: Request, body: bodies.Overrides, name: Name) -> Response:
        """Record that a person decided differently from the program, or undo that."""
        ids = service.form.ids(body.ids)

        def call(program: Program) -> None:
            if body.accepted is None:
                program.undo_override(ids, body.reason, request=name)
            else:
                program.override(ids, body.accepted, body.reason, request=name)

        return await record(request, "override", name, call)

    @app.post("/v1/holds", response_model=answer, **only("operate"))
    async def holds(request: Request, body: bodies.Holds, name: Name) -> Response:
        """Protect applicants from erasure, or end that."""
        ids = service.form.ids(body.ids)

        def call(program: Program) -> None:
            (program.hold if body.held else program.release)(ids, body.reason, request=name)

        return await record(request, "hold", name, call)

    @app.post("/v1/erasures", response_model=answer, **only("operate"))
    async def erasures(request: Request, body: bodies.Erasures, name: Name) -> Response:
        """Erase applicants for good; the decisions on them stay.

        ``warnings`` says if files of the record may still hold them. Sent again, it tries again.
        """
        ids, left = service.form.ids(body.ids), list[str]()

        def call(program: Program) -> None:
            program.erase(ids, body.reason, early=body.early, compact=None, request=name)
            left.append(program.ledger.left_in_files(lock=False))

        return await record(request, "erasure", name, call, left)


def _add_control(app: FastAPI, service: Service) -> None:
    """Add how much the program decides."""

    async def control(request: Request, call: Callable[[Program], Any]) -> Response:
        await service.write(visit_of(request).by, call)

        def now(view: ProgramView) -> Any:
            return {"ramp": view.control.ramp, "paused": view.control.paused}

        return json_answer(await service.read(now))

    options = {"response_model": bodies.Controls} | only("operate")

    @app.post("/v1/ramp", **options)
    async def ramp(request: Request, body: bodies.Ramp, name: MaybeName = None) -> Response:
        """Set the share of applicants on whom the program decides; it closes the open round."""
        return await control(request, lambda program: program.ramp(body.ramp, request=name))

    @app.post("/v1/pause", **options)
    async def pause(request: Request, name: MaybeName = None) -> Response:
        """Let the lender's own decisions stand until the program is resumed."""
        return await control(request, lambda program: program.pause(request=name))

    @app.post("/v1/resume", **options)
    async def resume(request: Request, name: MaybeName = None) -> Response:
        """End a pause."""
        return await control(request, lambda program: program.resume(request=name))


def _recorded(view: ProgramView, kind: str, name: str) -> dict[str, Any]:
    """Return what is on record under a request's name, the same whenever it is asked."""
    kinds = ("outcomes", "correction") if kind == "outcomes" else (kind,)
    found = [view.reader.entry(each, name) for each in kinds]
    entries = [
        {
            "entry": entry.number,
            "kind": entry.kind,
            "n": _n_applicants(view, entry),
            "at": entry.at,
            "by": entry.by,
        }
        for entry in found
        if entry is not None
    ]
    return {"request": name, "entries": entries}


def _n_applicants(view: ProgramView, entry: Entry) -> int:
    if entry.kind == "hold":
        return len(entry.says["persons"])
    digests = vars(view.reader.stored_digests(entry)).values()
    return sum(len(one) for one in digests if one is not None) // len(NOTHING)
